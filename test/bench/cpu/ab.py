#!/usr/bin/env python3
"""Contenders of several builds, side by side: did a change help?

    ab.py FOLDER|CONTENDER,... [-k PART,...] [--threads N] [--rounds 11] [--seconds 0.05] [--wall] [--env WORD=VALUE,...]

The first name is what the others are compared with. A FOLDER is a build, whose bench/contend_tile is taken; a CONTENDER is a
program of contender.h, as build/bench/contend_clang, or contend_torch.py. Keep the old build's contend_tile under another name, build,
and compare:

    cp build/bench/contend_tile /tmp/old && ninja -C build && test/bench/cpu/ab.py /tmp/old,build,build/bench/contend_clang -k histogram

For each row whose name contains a PART all prepare the same inputs and their results are compared; then they take turns, a
different one first in each round. Shown are microseconds of a run, the median and the least, and by them how many times as fast as
the first each one is. Times are those that processors gave to the process (--wall: the clock's; for more threads than one, or
what waits), so that load beside it disturbs less. --env gives all of them variables, as TILE_DEVICE=cpu:x86-64-v3.
"""
import argparse
import os
import statistics
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from rows import ROWS  # noqa: E402
from run import SAMPLES, Contender, differs  # noqa: E402


def program_of(name):
    return os.path.join(name, "bench", "contend_tile") if os.path.isdir(name) else name


def measure(row, contenders, rounds, seconds):
    """Seconds of each round, by contender; [] for one that does not do the row."""
    values = []
    for c in contenders:
        answer = c.ask(" ".join(["prepare", row.work, *map(str, row.args)]))
        values.append(list(map(float, c.ask(f"sample {SAMPLES}")[1:])) if answer[0] == "ready" else None)
    there = [i for i, v in enumerate(values) if v]
    for i in there[1:]:
        peer = max([row.tolerance, *row.tolerances.values()])
        wrong = differs(values[there[0]], values[i], peer)
        if wrong:
            raise SystemExit(f"{row.name}: {contenders[there[0]].name} and {contenders[i].name} differ: {wrong[:3]}")
    times = [[] for _ in contenders]
    for n in range(rounds):
        for i in there[n % len(there):] + there[:n % len(there)]:
            times[i].append(float(contenders[i].ask(f"time {seconds}")[1]))
    return times


def line_of(row, times):
    def against_first(f, t):
        return f"{f(times[0]) / f(t):.3f}" if times[0] else "-"
    cells = [f"{1e6 * statistics.median(t):.1f} {1e6 * min(t):.1f} | {against_first(statistics.median, t)} {against_first(min, t)}"
             if t else "- | -" for t in times]
    return " | ".join([f"| {row.name}", *cells]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("contenders")
    parser.add_argument("-k", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--wall", action="store_true")
    parser.add_argument("--env", default="")
    args = parser.parse_args()
    if not args.wall:
        os.environ["CONTENDER_CLOCK"] = "processor"
    variables = dict(word.split("=", 1) for word in args.env.split(",") if word)
    names = args.contenders.split(",")
    contenders = [Contender(name, None, args.threads, program_of(name), variables) for name in names]
    absent = [c.name for c in contenders if not c.process]
    if absent:
        parser.error("no such contender: " + ", ".join(absent))
    print(" | ".join(["| row", *(f"{n}: median least | times as fast" for n in names)]) + " |")
    print("| ---" * (1 + 2 * len(names)) + " |", flush=True)
    for row in ROWS:
        if any(k in row.name for k in args.k.split(",")):
            print(line_of(row, measure(row, contenders, args.rounds, args.seconds)), flush=True)
    for c in contenders:
        c.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
