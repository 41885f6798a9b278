#!/usr/bin/env python3
"""How good tilec tune's choice is: tunes several times and then times the choices, and what came near them, side by side.

    test/bench/tune_regret.py [--build build] [--runs 3] [--top 5] [--processes 5] [--rounds 160] FILE.tile [TILEC-OPTION]... PARAM=VALUE...

Times of different minutes cannot be compared: machines are shared, clocks move. So each run of `tilec tune --again` writes a file of its own;
its choice and its five fastest configurations, and the kernel without a choice, are then timed in turn, in a new order each round, with cold
caches, in several processes (each has other addresses). In a process, a configuration's time is what one in 16 of its launches is below; its
figure is the median, over processes, of that time over the best one's; the regret of a choice is its figure over the least. What other
programs do still shows: the figures of the processes are printed, too. --const and --sizes go to tilec; name one size.
"""
import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLUSH = 64 << 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--top", type=int, default=5)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=160)
    parser.add_argument("--only", metavar="JSON", help=argparse.SUPPRESS)
    parser.add_argument("source")
    return parser.parse_known_args()


def tune(o, rest, folder, n):
    file = os.path.join(folder, f"{n}.json")
    start = time.monotonic()
    subprocess.run([os.path.join(o.build, "bin/tilec"), "tune", o.source, "--again", "-o", file, *rest], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(file, encoding="utf-8") as f:
        row = json.load(f)["results"][0]
    return row, time.monotonic() - start


def fastest(row, n):
    times = {c: t for c, t in row["times"].items() if not isinstance(t, str)}
    return sorted(times, key=times.get)[:n]


def arrays(tile, kernel, rest):
    """NumPy arrays for PARAM=maker[DIMS]; numbers as they are."""
    import numpy as np
    sizes = dict(rest[i + 1].split("=") for i, word in enumerate(rest) if word == "--sizes")
    values = {}
    for item in (word for word in rest if "[" in word or word.partition("=")[0] in kernel.places):
        name, _, value = item.partition("=")
        if "[" not in value:
            values[name] = float(value)
            continue
        shape = [int(sizes.get(d, d)) for d in value[value.index("[") + 1:-1].split(",")]
        dtype = next(s.dtype for s in kernel.slots if s.name == name)
        values[name] = np.random.default_rng(1).random(shape).astype({"f32": "float32", "f64": "float64", "f16": "float16"}[dtype])
    return values


def measure(o, rest, wanted):
    """One process: {configuration: what one in 16 of its times is below, in us}."""
    os.environ["TILE_LIBRARY"] = os.path.join(o.build, "package/libtilec.so.0.1")
    sys.path.insert(0, os.path.join(ROOT, "python"))
    import tile
    compile_options = [w for pair in zip(rest, rest[1:]) if pair[0] in ("--const", "--kernel", "-O", "--fp") for w in pair]
    kernels = {}
    with tempfile.TemporaryDirectory() as folder:
        for i, config in enumerate(wanted):
            image = os.path.join(folder, str(i))
            subprocess.run([os.path.join(o.build, "bin/tilec"), o.source, "--emit=image", "-o", image, "--tune", "off", *compile_options,
                            *(["--config", config] if config else [])], check=True)
            kernels[config] = tile.load_image(image).kernel()
    values = arrays(tile, next(iter(kernels.values())), rest)
    memory, times = ctypes.create_string_buffer(FLUSH), {c: [] for c in wanted}
    order = list(wanted)
    clock = time.thread_time_ns if tile.Device("cpu").processors == 1 else time.perf_counter_ns
    for n in range(o.rounds):
        random.shuffle(order)
        for config in order:
            ctypes.memset(memory, n, FLUSH)
            start = clock()
            kernels[config](**values)
            times[config].append(clock() - start)
    return {c: sorted(t)[len(t) // 16] / 1e3 for c, t in times.items()}


def main():
    o, rest = arguments()
    if o.only:
        print(json.dumps(measure(o, rest, json.loads(o.only))))
        return
    choices, wanted = [], [""]
    with tempfile.TemporaryDirectory() as folder:
        for n in range(o.runs):
            row, seconds = tune(o, rest, folder, n)
            choices.append(row["best"])
            print(f"run {n + 1}: {row['best']}, {row['times'][row['best']]} us, in {seconds:.1f} s", flush=True)
            wanted = list(dict.fromkeys([*wanted, row["best"], *fastest(row, o.top)]))
    times = []
    for _ in range(o.processes):
        r = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--only", json.dumps(wanted)], check=True, stdout=subprocess.PIPE)
        times.append(json.loads(r.stdout))
    figure = {c: statistics.median(t[c] / min(t.values()) for t in times) for c in wanted}
    best = min(figure.values())
    for config in sorted(figure, key=figure.get):
        ratios = [t[config] / min(t.values()) for t in times]
        us = statistics.median(t[config] for t in times)
        print(f"{figure[config] / best:6.3f}  ({min(ratios):.3f} to {max(ratios):.3f} by process) {us:10.1f} us  {config or 'without a choice'}"
              + (f"   chosen {choices.count(config)} times" if config in choices else ""))
    regrets = [figure[c] / best for c in choices]
    print(f"regret: {', '.join(f'{r:.3f}' for r in regrets)}; the kernel without a choice over the choices: "
          f"{min(figure[''] / figure[c] for c in choices):.2f} at least")


main()
