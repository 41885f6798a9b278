#!/usr/bin/env python3
"""Traces of --time-trace: JSON that Chrome and Perfetto read, whose spans nest, with the parts that were run.

    time_trace.py TILEC EXAMPLES FOLDER

Expected passes come from the pipelines of `tilec --print-after=all`, not from the trace.
"""
import json
import os
import re
import shutil
import subprocess
import sys

PHASES = {"compile", "front end", "modules", "parse", "check", "instantiate", "passes", "code", "lower to LLVM", "LLVM passes",
          "LLVM code generation"}
GPU = PHASES | {"expand leaves"}
# target: (options, spans that are there, LLVM passes that are there, threads that are there)
TARGETS = {
    "cpu": ("", PHASES | {"image"}, {"sroa", "early-cse", "loop-mssa(licm)"}, {"compile"}),
    "sm_80": ("", GPU | {"image", "PTX"}, {"early-cse", "loop-mssa(licm)"}, {"compile"}),
    "gfx942": ("", GPU | {"image", "link"}, {"sroa", "loop-mssa(loop-rotate,licm)", "infer-address-spaces"}, {"compile"}),
    "emu:gfx1100": ("", GPU | {"image"}, {"sroa", "gvn<no-pre>"}, {"compile"}),
}


def nanoseconds(number):
    """Exactly: a double holds no nanoseconds of a clock that runs for long."""
    whole, _, part = number.partition(".")
    return int(whole) * 1000 + int((part + "000")[:3])


def load(path):
    """({(process, thread): [(begin, end, name, category, detail)]}, names of processes, names of threads)"""
    with open(path, encoding="utf-8") as f:
        trace = json.load(f, parse_float=str, parse_int=str)
    spans, processes, threads = {}, {}, {}
    for e in trace["traceEvents"]:
        who = int(e["pid"]), int(e["tid"])
        if e["ph"] == "M":
            names = {"process_name": processes, "thread_name": threads}[e["name"]]
            key = who[0] if names is processes else who
            assert key not in names, f"two names of {key}"
            names[key] = e["args"]["name"]
            continue
        assert e["ph"] == "X", e
        begin, length = nanoseconds(e["ts"]), nanoseconds(e["dur"])
        spans.setdefault(who, []).append((begin, begin + length, e["name"], e["cat"], e.get("args", {}).get("detail")))
    assert set(spans) <= set(threads), "a thread without a name"
    return spans, processes, threads


def check_nesting(spans):
    """Spans of a thread lie in one another or side by side; longest first where they begin together."""
    for who, rows in spans.items():
        open_ = []
        for begin, end, name, _, _ in sorted(rows, key=lambda r: (r[0], -r[1])):
            assert end >= begin, f"{name} ends before it begins"
            while open_ and begin >= open_[-1][0]:
                open_.pop()
            assert not open_ or end <= open_[-1][0], f"{name} of thread {who} reaches out of {open_[-1][1]}"
            open_.append((end, name))


def parents(rows):
    """{name: names around it}"""
    found, open_ = {}, []
    for begin, end, name, _, _ in sorted(rows, key=lambda r: (r[0], -r[1])):
        while open_ and begin >= open_[-1][0]:
            open_.pop()
        found.setdefault(name, set()).update(n for _, n in open_)
        open_.append((end, name))
    return found


def outermost(rows):
    """Those that lie in no other: choose-warps tries the passes behind it."""
    found = []
    for r in sorted(rows, key=lambda r: (r[0], -r[1])):
        if not found or r[0] >= found[-1][1]:
            found.append(r)
    return found


def run(tilec, args):
    return subprocess.run([tilec] + args, capture_output=True, text=True, check=True)


def passes_of(tilec, source, target):
    err = run(tilec, [source, "--target", target, "--print-after=all"])
    return re.findall(r"^// ---- after ([\w-]+)", err.stderr + err.stdout, re.M)


def check_target(tilec, source, target, folder):
    options, wanted, llvm, names = TARGETS[target]
    plain, path, out = (os.path.join(folder, n) for n in ("plain", "trace.json", "out"))
    run(tilec, [source, "--target", target, "--emit=image", "-o", plain])
    run(tilec, [source, "--target", target, "--emit=image", "-o", out, "--time-trace=" + path] + options.split())
    with open(plain, "rb") as a, open(out, "rb") as b:
        assert a.read() == b.read(), f"{target}: the trace changes the code"
    spans, processes, threads = load(path)
    check_nesting(spans)
    assert set(processes.values()) == {target}, processes
    assert names <= set(threads.values()), threads
    rows = [r for t in spans.values() for r in t]
    lacking = wanted - {r[2] for r in rows}
    assert not lacking, f"{target}: no span of {lacking}"
    lacking = {f"function({p})" for p in llvm} - {r[2] for r in rows}
    assert not lacking, f"{target}: no LLVM pass {lacking}"
    main = next(who for who in spans if threads[who] == "compile")
    outer = parents(spans[main])
    for name in wanted & set(outer) - {"compile"}:
        assert "compile" in outer[name], f"{name} is not in compile"
    mine = outermost([r for r in spans[main] if r[3] == "pass" and r[2] != "passes"])
    kernels = {r[4] for r in mine} - {None}  # passes over the module have no kernel
    assert kernels == {"matmul"}, kernels
    ran = passes_of(tilec, source, target)
    got = [r[2].split("{")[0] for r in mine]  # without options
    of_module = {r[2] for r in mine if r[4] is None}
    functions = len(got) - sum(p in of_module for p in ran)
    each = functions // max(sum(p not in of_module for p in ran), 1)  # the aligned form of a kernel is one more
    expected = [p for p in ran for _ in range(1 if p in of_module else each)]
    assert ran and got == expected, f"{target}: passes {got}, not {ran}, those of functions each {each} times"
    return len(rows)


def check_several(tilec, source, folder):
    path = os.path.join(folder, "several.json")
    run(tilec, [source, "--target", "sm_80,gfx942,cpu", "-o", os.path.join(folder, "a.o"), "--time-trace", path])
    spans, processes, _ = load(path)
    check_nesting(spans)
    assert processes == {1: "sm_80", 2: "gfx942", 3: "cpu"}, processes
    assert {p for p, _ in spans} == {1, 2, 3}


def check_workers(tilec, source, folder):
    """PTX of several functions: each worker is a thread with a lane of its own."""
    path = os.path.join(folder, "workers.json")
    run(tilec, [source, "--target", "sm_80", "--emit=ptx", "-o", os.devnull, "--time-trace", path])
    spans, _, threads = load(path)
    check_nesting(spans)
    if len(os.sched_getaffinity(0)) > 1 and os.sysconf("SC_NPROCESSORS_ONLN") > 1:
        assert "matmul_0" in threads.values(), threads
    assert sum(r[2] == "PTX" for t in spans.values() for r in t) == 2


def check_cubin(tilec, source, folder):
    path = os.path.join(folder, "cubin.json")
    run(tilec, [source, "--target", "sm_80", "--emit=cubin", "-o", os.devnull, "--time-trace", path])
    spans, _, _ = load(path)
    check_nesting(spans)
    assert any(r[2] == "ptxas" for t in spans.values() for r in t)


def check_run(tilec, folder):
    source, path = os.path.join(folder, 'a"b.tile'), os.path.join(folder, "run.json")
    with open(source, "w", encoding="utf-8") as f:
        f.write("kernel k(const f32 x[N], f32 y[N]) grid(N) { y[pid(0)] = x[pid(0)]; }\n")
    run(tilec, ["run", source, "x=iota[2]", "y=nan[2]", "--time-trace", path])
    spans, _, _ = load(path)
    check_nesting(spans)
    assert any(r[2] == "compile" and r[4] == source for t in spans.values() for r in t), "the name with a quote"


def check_failure(tilec, folder):
    """A program with errors leaves no trace, and an older file as it was."""
    source, path = os.path.join(folder, "bad.tile"), os.path.join(folder, "bad.json")
    for name, text in ((source, "kernel k(f32 x[N]) grid(N) { x[0] = y; }\n"), (path, "old")):
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)
    p = subprocess.run([tilec, source, "--time-trace", path], capture_output=True, text=True)
    with open(path, encoding="utf-8") as f:
        assert p.returncode == 1 and f.read() == "old", p


def main(args):
    tilec, examples, folder = args
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    source = os.path.join(examples, "03_matmul", "matmul.tile")
    for target in TARGETS:
        print(f"{target}: {check_target(tilec, source, target, folder)} spans")
    check_several(tilec, source, folder)
    check_workers(tilec, source, folder)
    if shutil.which("ptxas"):
        check_cubin(tilec, source, folder)
    check_run(tilec, folder)
    check_failure(tilec, folder)
    print("traces are good")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
