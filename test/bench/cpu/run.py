#!/usr/bin/env python3
"""The CPU device beside its peers, in one run.

    run.py [BUILD] [-k PART,...] [--threads 1,2] [--rounds 7] [--seconds 0.2] [--peers P,...] [--json FILE] [--svg FILE] [--list]

Every contender is a process of its own (contender.h): tilec, plain C by gcc and by clang with OpenMP, OpenBLAS, oneDNN, PoCL,
PyTorch, ggml, each where it is installed. For each row all of them prepare the same inputs and their results are compared; then
they take turns, round by round, and the median counts. The ratio is the best peer's time over tilec's: more than 1 is faster
than all of them. Beside them stand the limits, measured in the same rounds, best round against best round: reading and writing
the bytes of the row ("of memory"), and multiply-adds in registers of its type ("of peak"). Without other load, please.
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
from rows import PEERS, ROWS, called  # noqa: E402

SAMPLES = 64
ROUNDS_OF_PEAK = 300000  # a millisecond
WINDOWS = 5  # a limit is the best of so many parts of a round


class Contender:
    """program: in place of the one of this name in the build. variables: of its environment, beside those of all."""

    def __init__(self, name, build, threads, program=None, variables=()):
        self.name = name
        torch = os.path.join(here, "contend_torch.py")
        command = program or (torch if name == "torch" else os.path.join(build, "bench", "contend_" + name))
        words = [sys.executable, command] if command.endswith(".py") else [command]
        n = str(threads)
        env = dict(os.environ, TILE_CACHE="off", TILE_THREADS=n, OMP_NUM_THREADS=n, OPENBLAS_NUM_THREADS=n, POCL_MAX_PTHREAD_COUNT=n,
                   OMP_PROC_BIND="false", GOMP_SPINCOUNT="100000", KMP_BLOCKTIME="1")  # awake between runs, not between turns
        env.pop("TILE_DEVICE", None)
        env.update(variables)
        if "avx512f" in flags():  # OpenBLAS takes a slower kernel on CPUs that it does not know
            env.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")
        self.process = None
        if os.path.exists(command):
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


WIDENED = {"bf16": "f32"}  # some CPUs multiply these faster


class Limits:
    """What the machine can do with so many threads."""

    def __init__(self, build, threads):
        self.threads = threads
        self.registers, self.memory = (Contender("limits", build, threads) for _ in range(2))
        self.flops = {}  # of multiply-adds in registers by type, the best so far

    def prepare(self, row):
        """Whether there is a limit of registers, of memory."""
        floats = " ".join(str(n * row.turns // 64 * 16) for n in (row.read, row.write))  # whole vectors
        return (row.flops > 0 and self.registers.ask(f"prepare peak_{row.peak} {ROUNDS_OF_PEAK}")[0] == "ready",
                row.bytes > 0 and self.memory.ask("prepare move " + floats)[0] == "ready")

    @staticmethod
    def best(contender, seconds):
        return min(float(contender.ask(f"time {seconds / WINDOWS}")[1]) for _ in range(WINDOWS))

    def time_registers(self, kind, seconds):
        flops = float(self.registers.ask("sample 1")[1]) * ROUNDS_OF_PEAK * self.threads
        self.flops[kind] = max(self.flops.get(kind, 0), flops / self.best(self.registers, seconds))

    def time_memory(self, row, seconds):
        return self.best(self.memory, seconds) / row.turns

    def close(self):
        self.registers.close()
        self.memory.close()


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
            wrong = differs(values["tile"], values[name], row.tolerances.get(name, row.tolerance))
            if wrong:
                raise SystemExit(f"{row.name}: tilec and {called(name)} differ: {wrong[:3]}")
    times["memory"] = []
    of_registers, of_memory = limits.prepare(row)
    for _ in range(rounds):
        for c in contenders:
            if c.name in times:
                times[c.name].append(float(c.ask(f"time {seconds}")[1]))
        if of_registers:
            limits.time_registers(row.peak, seconds)
        if of_memory:
            times["memory"].append(limits.time_memory(row, seconds))
    return times, missing


def spread(t):
    return (max(t) - min(t)) / statistics.median(t)


def describe(row, times, threads, flops):
    ours, best_of_ours = statistics.median(times["tile"]), min(times["tile"])
    peers = {n: statistics.median(t) for n, t in times.items() if n not in ("tile", "memory") and t}
    best = min(peers, key=peers.get) if peers else None
    beside = peers[best] if peers else row.seconds
    top = max(flops.get(kind, 0) for kind in (row.peak, WIDENED.get(row.peak)))
    result = {"row": row.name, "group": row.group, "threads": threads, "seconds": ours, "spread": spread(times["tile"]),
              "peers": peers, "best": best, "at_most": row.seconds or None, "ratio": beside / ours if beside else None,
              "least": row.least, "aim": row.aim, "flops": row.flops, "bytes": row.bytes, "peak": row.peak,
              "of_peak": row.flops / best_of_ours / top if row.flops and top else None,
              "of_memory": min(times["memory"]) / best_of_ours if times["memory"] else None, "limit_least": row.limit_least}
    result["reached"] = None if not beside else result["ratio"] >= row.least and (result["of_memory"] or 0) >= row.limit_least
    return result


def line_of(r):
    rate = 1e-9 / r["seconds"]
    speed = (f"{rate * r['flops']:.1f} GFLOP/s" if r["flops"] else f"{rate * r['bytes']:.1f} GB/s" if r["bytes"]
             else f"{1e3 * r['seconds']:.2f} ms")
    others = ", ".join(f"{called(n)} {t / r['seconds']:.2f}" for n, t in sorted(r["peers"].items(), key=lambda x: x[1]))
    others = others or (f"at most {1e3 * r['at_most']:.0f} ms" if r["at_most"] else "")
    ratio, memory, top = (f"{r[k]:.2f}" if r[k] else "" for k in ("ratio", "of_memory", "of_peak"))
    reached = {None: "", True: "yes", False: "no"}[r["reached"]]
    return f"| {r['row']} | {r['threads']} | {speed} | {others} | {ratio} | {r['least']:.2f} | {reached} | {memory} | {top} | {100 * r['spread']:.0f}% |"


HEAD = ("| row | threads | tilec | peers' time over tilec's | best peer | at least | reached | of memory | of peak | spread |\n"
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
    first, *_ = counts = list(map(int, args.threads.split(",")))
    for threads in counts:
        names = ["tile"] + [p for p in args.peers.split(",") if p]
        contenders = [Contender(n, args.build, threads) for n in names]
        limits = Limits(args.build, threads)
        tops[threads] = limits.flops
        for row in rows if threads == first else [r for r in rows if not r.once]:
            times, missing = measure(row, contenders, limits, args.rounds, args.seconds)
            for n, why in missing.items():
                reasons.setdefault((n, why), []).append(row.name)
            if "tile" not in times:
                print(f"| {row.name} | {threads} | {missing['tile']} | | | | | | | |", flush=True)
                continue
            results.append(describe(row, times, threads, limits.flops))
            print(line_of(results[-1]), flush=True)
        for c in [*contenders, limits]:
            c.close()
    for threads, flops in tops.items():
        said = ", ".join(f"{kind} {1e-9 * x:.1f}" for kind, x in flops.items())
        print(f"\nMultiply-adds in registers, {threads} thread{'s' if threads > 1 else ''}, GFLOP/s: {said or 'not measured'}.")
    for (n, why), where in sorted(reasons.items()):
        if why != "not this work":
            print(f"{called(n)} absent ({why}): {', '.join(where) if len(where) < len(rows) else 'all rows'}.")
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
