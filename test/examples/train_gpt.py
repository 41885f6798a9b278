#!/usr/bin/env python3
"""15_train_gpt by two ranks, and by one in two parts, against one rank's run with the same sequences in each step: the same curve within rounding.

    train_gpt.py PROGRAM TEXT...    prints the number of runs that were compared
"""
import os
import re
import subprocess
import sys

WORDS = ["-l", "1", "-d", "32", "-h", "2", "-f", "48", "-c", "24", "-b", "8", "-n", "12", "-m", "0"]
ENV = dict(os.environ, OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
           OMPI_MCA_btl_vader_single_copy_mechanism="none", TILE_DEVICE="cpu", TILE_THREADS="1")
LINE = re.compile(r"^step +(\d+): ([\d.]+) bits a byte, held out ([\d.]+); norm ([\d.]+)", re.M)


def curve(command):
    p = subprocess.run(command, capture_output=True, text=True, env=ENV, timeout=120)
    assert p.returncode == 0, (command, p.stdout, p.stderr)
    return [tuple(map(float, m)) for m in LINE.findall(p.stdout)], p.stdout


def main(program, *text):
    one, _ = curve([program, *WORDS, *text])
    assert len(one) == 12 and one[-1][1] < one[0][1] - 1, one
    other, _ = curve([program, *WORDS, "-s", "2", *text])
    assert max(abs(a - b) for p, q in zip(one, other) for a, b in zip(p, q)) > 0.05, "other sequences, the same curve"
    commands = {"two parts": [program, *WORDS, "-a", "2", *text]}
    if "--mpi" in sys.argv:
        commands["two ranks"] = ["mpirun", "-n", "2", program, *WORDS, *text]
    for name, command in commands.items():
        got, said = curve(command)
        assert len(got) == 12 and (f"; {2 if name == 'two ranks' else 1} ranks" in said), said
        worst = max(abs(a - b) for p, q in zip(one, got) for a, b in zip(p, q))
        assert worst <= 2e-3, (name, worst, one, got)
    print(f"{len(commands)} curves agree")


if __name__ == "__main__":
    main(*[w for w in sys.argv[1:] if w != "--mpi"])
