#!/usr/bin/env python3
"""The CPU device beside its peers, in one run.

    run.py [BUILD] [-k PART,...] [--threads 1,2] [--rounds 7] [--seconds 0.2] [--peers P,...] [--json FILE] [--svg FILE] [--list]

Every contender is a process of its own (contender.h): tilec, plain C by gcc and by clang with OpenMP, OpenBLAS, oneDNN, PoCL,
PyTorch, each where it is installed. For each row all of them prepare the same inputs and their results are compared; then they
take turns, round by round, and the median counts. Beside them stand the limits, measured in the same rounds: a copy of the
bytes that must move at least, and multiply-adds in registers. The ratio is the best peer's time over tilec's: more than 1 is
faster than all of them. Without other load, please.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from rows import ROWS  # noqa: E402

SAMPLES = 64
PEERS = ("gcc", "clang", "blas", "dnnl", "pocl", "torch")
NAMES = {"tile": "tilec", "gcc": "gcc", "clang": "clang", "blas": "OpenBLAS", "dnnl": "oneDNN", "pocl": "PoCL", "torch": "PyTorch"}


class Contender:
    def __init__(self, name, build, threads):
        self.name = name
        command = os.path.join(build, "bench", "contend_" + name)
        words = [sys.executable, os.path.join(here, "contend_torch.py")] if name == "torch" else [command]
        n = str(threads)
        env = dict(os.environ, TILE_THREADS=n, OMP_NUM_THREADS=n, OPENBLAS_NUM_THREADS=n, POCL_MAX_PTHREAD_COUNT=n,
                   OMP_WAIT_POLICY="passive", OMP_PROC_BIND="false")
        env.pop("TILE_DEVICE", None)
        if "avx512f" in flags():  # OpenBLAS takes a slower kernel on CPUs that it does not know
            env.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")
        self.process = None
        if name == "torch" or os.path.exists(command):
            self.process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        """The answer's words; ["none", reason] when there is no such contender any more."""
        if not self.process:
            return ["none", "not built"]
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().split()
        except BrokenPipeError:
            answer = []
        if not answer:
            self.process = None
            return ["none", "it ended"]
        return answer

    def close(self):
        if self.process:
            self.ask("quit")
            self.process = None


def flags():
    try:
        with open("/proc/cpuinfo") as f:
            return next((line.split(":")[1].split() for line in f if line.startswith("flags")), [])
    except OSError:
        return []


def differs(got, want, tolerance):
    most = max(map(abs, want)) or 1
    wrong = [(g, w) for g, w in zip(got, want) if not abs(g - w) <= tolerance * most]
    # counts of an iteration may be one off at a border, anywhere but seldom
    return wrong if len(wrong) > (SAMPLES // 16 if tolerance >= 0.02 else 0) else []


def measure(row, contenders, limits, rounds, seconds):
    """name -> seconds of each round; name -> why not."""
    line = " ".join(["prepare", row.work, *map(str, row.args)])
    times, missing, values = {}, {}, {}
    for c in contenders:
        answer = c.ask(line)
        if answer[0] != "ready":
            missing[c.name] = " ".join(answer[1:])
            continue
        values[c.name] = list(map(float, c.ask(f"sample {SAMPLES}")[1:]))
        times[c.name] = []
    if "tile" in values:
        for name in [n for n in values if n != "tile"]:
            if differs(values["tile"], values[name], row.tolerance):
                raise SystemExit(f"{row.name}: tilec and {NAMES[name]} differ: {differs(values['tile'], values[name], row.tolerance)[:3]}")
    copied = max(int(row.bytes) // 8, 1024)
    copies = row.bytes and limits.ask(f"prepare copy {copied}")[0] == "ready"
    times["copy"] = []
    for _ in range(rounds):
        for c in contenders:
            if c.name in times:
                times[c.name].append(float(c.ask(f"time {seconds}")[1]))
        if copies:
            times["copy"].append(float(limits.ask(f"time {seconds}")[1]) * row.bytes / (8 * copied))
    return times, missing


def peak(contenders, threads, seconds):
    """FLOP/s of multiply-adds in registers, by all threads."""
    best = 0
    for c in contenders:
        if c.name in ("gcc", "clang") and c.ask("prepare peak 100000")[0] == "ready":
            flops = float(c.ask("sample 1")[1]) * 100000 * threads
            best = max(best, *(flops / float(c.ask(f"time {seconds}")[1]) for _ in range(3)))
    return best


def spread(t):
    return (max(t) - min(t)) / statistics.median(t)


def describe(row, times, threads, top):
    ours = statistics.median(times["tile"])
    peers = {n: statistics.median(t) for n, t in times.items() if n not in ("tile", "copy") and t}
    best = min(peers, key=peers.get) if peers else None
    result = {"row": row.name, "group": row.group, "threads": threads, "seconds": ours, "spread": spread(times["tile"]),
              "peers": peers, "best": best, "ratio": peers[best] / ours if best else None, "least": row.least, "aim": row.aim,
              "gflops": row.flops / ours * 1e-9, "gbytes": row.bytes / ours * 1e-9,
              "of_peak": row.flops / ours / top if row.flops and top else None,
              "of_copy": statistics.median(times["copy"]) / ours if times["copy"] else None, "limit_least": row.limit_least}
    return result


def line_of(r):
    speed = f"{r['gflops']:.1f} GFLOP/s" if r["gflops"] else f"{r['gbytes']:.1f} GB/s" if r["gbytes"] else f"{1e3 * r['seconds']:.2f} ms"
    others = ", ".join(f"{NAMES[n]} {t / r['seconds']:.2f}" for n, t in sorted(r["peers"].items(), key=lambda x: x[1]))
    ratio = f"{r['ratio']:.2f}" if r["ratio"] else ""
    copy = f"{r['of_copy']:.2f}" if r["of_copy"] else ""
    top = f"{r['of_peak']:.2f}" if r["of_peak"] else ""
    reached = "" if not r["ratio"] else "yes" if r["ratio"] >= r["least"] and (r["of_copy"] or 0) >= r["limit_least"] else "no"
    return f"| {r['row']} | {r['threads']} | {speed} | {others} | {ratio} | {r['least']:.2f} | {reached} | {copy} | {top} | {100 * r['spread']:.0f}% |"


HEAD = ("| row | threads | tilec | peers' time over tilec's | best peer | at least | reached | of copy | of peak | spread |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=os.path.join(here, "..", "..", "..", "build"))
    parser.add_argument("-k", default="")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--processor-time", action="store_true", help="not the clock's: for one thread, on a busy machine")
    parser.add_argument("--json")
    parser.add_argument("--svg")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    rows = [r for r in ROWS if any(k in r.name for k in args.k.split(","))]
    if args.processor_time:
        os.environ["CONTENDER_CLOCK"] = "processor"
    if args.list:
        print(*(r.name for r in rows), sep="\n")
        return 0
    results, reasons = [], {}
    print(HEAD, flush=True)
    tops = {}
    for threads in map(int, args.threads.split(",")):
        names = ["tile"] + [p for p in args.peers.split(",") if p]
        contenders = [Contender(n, args.build, threads) for n in names]
        limits = Contender("gcc", args.build, threads)
        tops[threads] = top = peak(contenders, threads, args.seconds)
        for row in rows:
            times, missing = measure(row, contenders, limits, args.rounds, args.seconds)
            for n, why in missing.items():
                reasons.setdefault((n, why), []).append(row.name)
            if "tile" not in times:
                print(f"| {row.name} | {threads} | {missing['tile']} | | | | | | | |", flush=True)
                continue
            results.append(describe(row, times, threads, top))
            print(line_of(results[-1]), flush=True)
        for c in [*contenders, limits]:
            c.close()
    for threads, top in tops.items():
        print(f"\nMultiply-adds in registers, {threads} thread{'s' if threads > 1 else ''}: {top * 1e-9:.1f} GFLOP/s.")
    for (n, why), where in sorted(reasons.items()):
        if why != "not this work":
            print(f"{NAMES[n]} absent ({why}): {', '.join(where) if len(where) < len(rows) else 'all rows'}.")
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"machine": machine(), "peak": tops, "results": results}, f, indent=1)
    if args.svg:
        import plot
        with open(args.svg, "w") as f:
            f.write(plot.svg(results, tops))
    return 0


def machine():
    name = ""
    try:
        with open("/proc/cpuinfo") as f:
            name = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), "")
    except OSError:
        pass
    return {"cpu": name, "level": "x86-64-v4" if "avx512f" in flags() else "x86-64-v3" if "avx2" in flags() else platform.machine()}


if __name__ == "__main__":
    sys.exit(main())
