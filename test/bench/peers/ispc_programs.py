#!/usr/bin/env python3
"""Programs of bench_programs by ISPC (programs.ispc), one thread, the processor's time, in turns in one process.

    ispc_programs.py BENCH_PROGRAMS ISPC [NAME...]     a row each: tilec's time, plain C's, ISPC's, its target, ratio

BENCH_PROGRAMS lies in the build's bench folder, ISPC is the compiler. Each program is built for each of TARGETS that the compiler
has; a row is the target that does best beside tilec. bench_programs compares the results with plain C's.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

TARGETS = ("avx512icl-x16", "avx512icl-x8", "avx512icl-x32", "avx2-i32x8")
FLAGS = ["-O3", "--opt=fast-math", "--pic", "--wno-perf"]
ROUNDS, TURNS = "9", 5
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs.ispc")


def peers(header):
    """C that calls ISPC's functions as bench_programs calls its peers."""
    text = f'#include "{header}"\n'
    with open(header) as f:
        functions = re.findall(r"extern void (\w+)\((.*)\);", f.read())
    for name, args in functions:
        passed = ", ".join(f"p[{i}]" for i in range(args.count(",") + 1))
        text += f"void program_{name}(void *const *p) {{ {name}({passed}); }}\n"
    return text


def build(ispc, folder, target):
    """The library of a target, or None where this compiler lacks it."""
    at = os.path.join(folder, target)
    made = subprocess.run([ispc, SOURCE, f"--target={target}", *FLAGS, "-o", at + ".o", "-h", at + ".h"], capture_output=True, text=True)
    if made.returncode:
        print(f"{target}: {made.stderr.strip() or made.stdout.strip()}", file=sys.stderr)
        return None
    with open(at + ".c", "w") as f:
        f.write(peers(at + ".h"))
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-w", "-shared", "-fPIC", at + ".c", at + ".o", "-o", at + ".so", "-lm"], check=True)
    return at + ".so"


def times(bench, name, library):
    """Of each program whose name contains that: tilec's time, plain C's, ISPC's."""
    done = subprocess.run([bench, ROUNDS, name, library], env={**os.environ, "TILE_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{os.path.basename(library)}: {done.stderr.strip()}")
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    return {row[0]: [float(cell) for cell in row[1:4]] for row in rows}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    bench, ispc = os.path.abspath(sys.argv[1]), shutil.which(sys.argv[2])
    if not ispc:
        sys.exit(f"{sys.argv[2]}: there is no such compiler; ISPC is at https://ispc.github.io")
    with tempfile.TemporaryDirectory() as folder:
        libraries = {t: lib for t in TARGETS if (lib := build(ispc, folder, t))}
        wanted = sys.argv[3:] or [""]
        turns = {}
        for _ in range(TURNS):
            for target, library in libraries.items():
                for name in wanted:
                    for program, row in times(bench, name, library).items():
                        turns.setdefault(program, {}).setdefault(target, []).append(row)
    print("| work | tilec, us | plain C, us | ISPC, us | its target | ratio to the best |\n| --- | --- | --- | --- | --- | --- |")
    for program, by_target in turns.items():
        rows = {t: [statistics.median(column) for column in zip(*r)] for t, r in by_target.items()}
        target = min(rows, key=lambda t: rows[t][2] / rows[t][0])
        a, b, c = rows[target]
        print(f"| {program} | {a:.1f} | {b:.1f} | {c:.1f} | {target} | {min(b, c) / a:.2f} |", flush=True)


if __name__ == "__main__":
    main()
