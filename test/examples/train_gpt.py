#!/usr/bin/env python3
"""15_train_gpt by one rank in two parts, by two and four ranks, and by two with a stub of NCCL, against one rank's run with the same sequences in each step: the
same curve within rounding.

    train_gpt.py PROGRAM [--nccl=LIBRARY] TEXT...    prints the number of runs that were compared; ranks only with the library
"""
import os
import re
import subprocess
import sys

WORDS = ["-l", "1", "-d", "32", "-h", "2", "-f", "48", "-c", "24", "-b", "8", "-n", "12", "-m", "0"]
ENV = dict(os.environ, TILE_DEVICE="cpu", TILE_THREADS="1")
LINE = re.compile(r"^step +(\d+): ([\d.]+) bits a byte, held out ([\d.]+); norm ([\d.]+)", re.M)


def curve(command):
    p = subprocess.run(command, capture_output=True, text=True, errors="replace", env=ENV, timeout=120)
    assert p.returncode == 0, (command, p.stdout, p.stderr)
    return [tuple(map(float, m)) for m in LINE.findall(p.stdout)], p.stdout + p.stderr


def check_sums(said):
    """Each step has added up the norm, and all gradients, with the gaps between tensors, of which each rank keeps its part."""
    weights = int(re.search(r"(\d+) weights", said)[1])
    sums, numbers, scattered = map(int, re.search(r"stub nccl: (\d+) sums, the last of (\d+) numbers; (\d+) were scattered", said).groups())
    assert sums == 12 and numbers == 64 and weights <= scattered / 12 < weights + 64 * 2 * 9, said


def main(program, library, *text):
    one, _ = curve([program, *WORDS, *text])
    assert len(one) == 12 and one[-1][1] < one[0][1] - 1, one
    other, _ = curve([program, *WORDS, "-s", "2", *text])
    assert max(abs(a - b) for p, q in zip(one, other) for a, b in zip(p, q)) > 0.05, "other sequences, the same curve"
    commands = {"two parts": [program, *WORDS, "-a", "2", *text]}
    if library:
        commands["two ranks"] = ["mpirun", "-n", "2", program, *WORDS, *text]
        commands["two ranks in two parts"] = ["mpirun", "-n", "2", program, *WORDS, "-a", "2", *text]
        commands["four ranks"] = ["mpirun", "-n", "4", program, *WORDS, *text]
        commands["two ranks by NCCL"] = ["mpirun", "-n", "2", program, *WORDS, "-L", library, *text]
    for name, command in commands.items():
        got, said = curve(command)
        assert len(got) == 12 and f"; {2 if name.startswith('two ranks') else 4 if name == 'four ranks' else 1} ranks" in said, said
        if "NCCL" in name:
            check_sums(said)
        worst = max(abs(a - b) for p, q in zip(one, got) for a, b in zip(p, q))
        assert worst <= 2e-3, (name, worst, one, got)
    print(f"{len(commands)} curves agree")


if __name__ == "__main__":
    words = sys.argv[1:]
    named = [w.removeprefix("--nccl=") for w in words if w.startswith("--nccl=")]
    main(words[0], named[0] if named else None, *[w for w in words[1:] if not w.startswith("--nccl=")])
