#!/usr/bin/env python3
"""The conformance suite: every row of rows_*.py on every device of this machine, against NumPy.

    run.py [--build DIR] [--devices cpu,ref,emu] [--every N] [--emu-every N] [-k SUBSTRINGS] [-v] [--keep DIR] [--small]
           [--list] [--jobs N] [--json FILE] [--budget SECONDS]

A row is a kernel, its arguments and what NumPy says (see rows.py). On each device `tilec run` is called with .npy
files; outputs are compared with the expected values, and, where the row says `same_bits`, byte for byte between the
devices. The device `emu` is four emulated targets, two of NVIDIA's and two of AMD's, with all checks on; one row in
three without --check, which has code of its own where the hardware tests bounds. A family of rows (names equal but for
element types; big rows; all rows that state their warps) is divided between them, one target a row; a row without
family runs on one target of each vendor; one row in eight runs on one of the other targets, too, which take turns.
Warps, stages and schedules rotate over rows and targets, so that every pair of values meets many rows; rows that state
their warps and stages keep them. `emu:four` is all four targets for each row, `emu:each` each emulated target once,
`emu:all` every pair of target and warps, `emu:stages` every pair of target and stages.
Other devices: cpu, cpu:LEVEL, ref, emu:TARGET, emu:TARGET@LEVEL, cuda[:N], hip[:N]; one that this machine lacks is
skipped with the reason. Rows that have not begun when the budget is spent are skipped, too.
--keep DIR leaves the files and the command line of failed rows there. The last line is "N passed, N failed, N skipped".
Needs NumPy (Debian: python3-numpy).
"""
import argparse
import functools
import glob
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import numpy as np  # noqa: E402

import values  # noqa: E402
from rows import ROWS  # noqa: E402

SECONDS = 120
os.environ.setdefault("TILE_CACHE", "off")  # what a row compiles is compiled
warnings.simplefilter("ignore")  # infinities and NaN are what half of the rows are about


EMU = ("sm_80", "sm_90a", "gfx942", "gfx1100")
ROUND = ("sm_80", "gfx942", "sm_90a", "gfx1100")
# What `emu` goes round over. The numbers are coprime in pairs where it matters, so that pairs do not lock together.
WARPS = (4, 1, 8, 2)
STAGES = (3, 1, 4, 2, 5)
SCHEDULES = ("rr", "reverse", "ahead", "random:1", "random:2")


@functools.cache
def known_targets():
    """Names of the GPU targets that the compiler has."""
    with open(os.path.join(here, "..", "..", "runtime", "contract", "gpu.def"), encoding="utf-8") as f:
        return re.findall(r'^GPU(?:_AS\(\w+, "|\()([\w-]+)', f.read(), re.M)


TYPE = re.compile(r"(?<=_)(bool|[iu](4|8|16|32|64)|bf16|f(16|32|64|8|8e4m3|8e5m2|8e4m3fnuz|8e5m2fnuz|4e2m1))(?=_|$)")


def family(row):
    """What rows share that differ in element types only; big rows, and those of the covering arrays, are one family
    each."""
    return "big" if row.big else "covering" if row.warps else TYPE.sub("T", row.name)


@functools.cache
def places():
    """row name -> (its place in its family, the family's size)"""
    members = {}
    for row in ROWS:
        members.setdefault(family(row), []).append(row.name)
    return {name: (i, len(names)) for names in members.values() for i, name in enumerate(names)}


def shared_targets(row):
    """The emulated targets of a row: the next of its family's round, which alternates between the vendors and begins
    anywhere; without a family one of each vendor."""
    place, size = places()[row.name]
    first = zlib.crc32(family(row).encode())
    if size == 1:
        return (EMU[first % 2], EMU[2 + first // 2 % 2])
    return (ROUND[(first + place) % 4],)


def emulated(row, name, n, every):
    """[(target, warps, stages)] for row number n; `emu` for one row in `every`."""
    if name == "emu:all":
        return [(t, w, row.stages or 3) for t in EMU for w in WARPS]
    if name == "emu:stages":
        return [(t, row.warps or 4, s) for t in EMU for s in STAGES]
    if name == "emu" and n % every != 0:
        return []
    others = [t for t in known_targets() if t not in EMU]
    turn = (others[n // 8 % len(others)],) if n % 8 == 0 else ()
    targets = {"emu": shared_targets(row) + turn, "emu:four": EMU}.get(name) or known_targets()
    return [(t, row.warps or WARPS[(n + k) % 4], row.stages or STAGES[(n + k) % 5]) for k, t in enumerate(targets)]


def expand(row, devices, n, every):
    """[(label, words for tilec)]"""
    out = []
    for name in devices:
        if name.startswith("emu") and name.removeprefix("emu") in ("", ":four", ":each", ":all", ":stages"):
            checks = [] if row.beside or n % 3 == 2 else ["--check"]
            words = [*checks, "--schedules", SCHEDULES[n % len(SCHEDULES)]]
            out += [(f"emu:{t} warps {w} stages {s}",
                     ["--device", f"emu:{t}", "--warps",
                      str(w), "--stages", str(s), *words]) for t, w, s in emulated(row, name, n, every)]
        else:
            said = ["--warps", str(row.warps), "--stages", str(row.stages)] if row.warps else []
            out.append(
                (name, ["--device", name, *said] + (["--check"] if name.startswith("emu:") and not row.beside else [])))
    return out


def expected(row):
    """What NumPy says: {parameter: Want}."""
    return row.want({k: values.wide(v) if isinstance(v, values.Arr) else v for k, v in row.args.items()})


def program(row, folder):
    """Writes the row's kernel; the words that compile it."""
    path = os.path.join(folder, row.name + ".tile")
    with open(path, "w", encoding="utf-8") as f:
        f.write(row.source)
    words = [path, "-Wno-unrequired-tail", *row.options]  # rows fix their extents by the arrays
    words += ["--kernel", row.kernel] if row.kernel else []
    for name, value in row.consts.items():
        words += ["--const", f"{name}={value}"]
    return words


def arguments(row, folder):
    """Writes the row's arrays; the words that pass its arguments."""
    words = []
    for name, value in row.args.items():
        if isinstance(value, values.Arr):
            np.save(os.path.join(folder, name + ".npy"), value.store)
            words.append(f"{name}=@{os.path.join(folder, name + '.npy')}")
        else:
            words.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}")
    return words


def command(row, device, tilec, folder):
    """Writes the row's files; the command line that runs it."""
    return [tilec, "run", *program(row, folder), *device, *arguments(row, folder)]


def saved(name, folder):
    """Where a parameter's array is after the run."""
    return os.path.join(folder, f"out_{name}.npy")


def judged(row, want, folder, status, said):
    """(what is wrong or None, outputs by name) of a run that ended with `status` and said those bytes."""
    if status != 0:
        text = said.decode("utf-8", "replace").strip().splitlines()
        return f"exit status {status}: {' / '.join(text[:6])}", {}
    outputs = {}
    for name, w in want.items():
        file = saved(name, folder)
        if not os.path.exists(file):
            return f"{name} was not saved", outputs
        outputs[name] = np.load(file)
        wrong = values.compare(values.Arr(row.args[name].type, outputs[name]), w)
        if wrong:
            return f"{name}: {wrong}", outputs
    return None, outputs


def run_on(row, want, device, tilec, folder):
    """(what is wrong or None, outputs by name)"""
    os.makedirs(folder, exist_ok=True)
    words = command(row, device, tilec, folder)
    for name in want:
        words += ["--save", f"{name}={saved(name, folder)}"]
    with open(os.path.join(folder, "command"), "w", encoding="utf-8") as f:
        f.write(shlex.join(words) + "\n")
    try:
        p = subprocess.run(words, capture_output=True, timeout=SECONDS * (10 if row.big else 1))
    except subprocess.TimeoutExpired:
        return "no end within the time allowed", {}
    return judged(row, want, folder, p.returncode, p.stderr + p.stdout)


def run_from_c(row, want, device, host, folder):
    """The same row through host.c, on the files that run_on wrote."""
    words = [
        host, device,
        os.path.join(folder, row.name + ".tile"), row.kernel or row.source.split("kernel ")[1].split("(")[0]
    ]
    words += [f"{n}={v}" for n, v in row.consts.items()] + ["--"]
    for name, v in row.args.items():
        is_array = isinstance(v, values.Arr)
        words.append(f"{v.type}:{os.path.join(folder, name + '.npy')}"
                     if is_array else f"{'f32' if isinstance(v, float) else 'i32'}={v}")
    p = subprocess.run(words, capture_output=True, timeout=SECONDS * 10)
    if p.returncode != 0:
        return f"exit status {p.returncode}: {p.stderr.decode('utf-8', 'replace').strip()[:500]}"
    for name, w in want.items():
        wrong = values.compare(values.Arr(row.args[name].type, np.load(os.path.join(folder, name + ".npy.out"))), w)
        if wrong:
            return f"{name}: {wrong}"
    return None


def same_bits(row, a, b):
    """Names of outputs whose bits differ; one NaN is as good as another."""
    bad = []
    for name in a.keys() & b.keys():  # the rest is missing where an earlier one was wrong
        x, y = (np.ascontiguousarray(v[name]) for v in (a, b))
        if x.tobytes() != y.tobytes():
            nan = [
                np.isnan(w) if w.dtype.kind == "f" else False
                for w in (values.wide(values.Arr(row.args[name].type, v)) for v in (x, y))
            ]
            bits = f"u{x.itemsize}"
            if x.shape != y.shape or not np.all(nan[0] & nan[1] | (x.view(bits) == y.view(bits))):
                bad.append(name)
    return bad


PROBE = "kernel probe(f32 y[N]) grid(1) { y[0] = 1; }\n"


def missing(device, tilec):
    """Why the device cannot be had here; None when it can."""
    if device.split(":")[0] not in ("cuda", "hip") and not re.match(r"cpu:|emu:.*@", device):
        return None
    with tempfile.TemporaryDirectory(prefix="tile-conf-") as folder:
        path = os.path.join(folder, "probe.tile")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PROBE)
        p = subprocess.run([tilec, "run", path, "--device", device, "y=zeros[1]"], capture_output=True, timeout=SECONDS)
    text = p.stderr.decode("utf-8", "replace").strip()
    return text if p.returncode and re.search(
        r"no \w+ driver|no device|is not available|does not start|driver is (too old|of version)", text) else None


def run_row(number, row, cx):
    """[(name, status, text)] of one row on all chosen devices."""
    if time.monotonic() > cx.end:
        return [(row.name, "skip", "no time left")]
    folder = tempfile.mkdtemp(prefix="tile-conf-")
    results, outputs = [], {}
    try:
        want = expected(row)
        for device, words in expand(row, cx.devices, number, cx.emu_every):
            label = f"{row.name} on {device}"
            if row.devices and device.split(":")[0] not in row.devices:
                results.append((label, "skip", f"for {', '.join(row.devices)} only"))
                continue
            reason = cx.missing.get(words[1])
            if reason:
                results.append((label, "skip", reason))
                continue
            wrong, outputs[device] = run_on(row, want, words, cx.tilec,
                                            os.path.join(folder, re.sub(r"\W", "_", device)))
            results.append((label, "fail" if wrong else "pass", wrong or ""))
            if row.from_c and not (row.big and words[1].startswith("emu")):
                wrong = run_from_c(row, want, words[1], cx.host, os.path.join(folder, re.sub(r"\W", "_", device)))
                results.append((f"{row.name} from C on {device}", "fail" if wrong else "pass", wrong or ""))
        devices = list(outputs)
        for other in devices[1:] if row.same_bits else []:
            if outputs[devices[0]] and outputs[other]:
                bad = same_bits(row, outputs[devices[0]], outputs[other])
                label = f"{row.name} same bits on {devices[0]} and {other}"
                results.append((label, "fail" if bad else "pass", f"differ: {', '.join(bad)}" if bad else ""))
    except Exception:
        results.append((row.name, "fail", "the row itself failed: " + traceback.format_exc(limit=-3)))
    if cx.keep and any(s == "fail" for _, s, _ in results):
        shutil.copytree(folder, os.path.join(cx.keep, row.name), dirs_exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    return results


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(here, "..", "..", "build"))
    ap.add_argument("--devices", default="cpu,ref,emu")
    ap.add_argument("--every", type=int, default=1, help="one row in so many")
    ap.add_argument("--emu-every", type=int, default=1, help="`emu` for one row in so many")
    ap.add_argument("-k", default="",
                    help="only rows whose name contains this, or one of these, with commas between them")
    ap.add_argument("-v", action="store_true")
    ap.add_argument("--keep")
    ap.add_argument("--small", action="store_true", help="leave out big rows (for sanitizer builds)")
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("--json")
    ap.add_argument("--budget", type=float, default=float("inf"))
    cx = ap.parse_args()
    cx.tilec = os.path.abspath(os.path.join(cx.build, "bin", "tilec"))
    cx.host = os.path.abspath(os.path.join(cx.build, "bin", "conformance_host"))
    cx.devices = cx.devices.split(",")
    return cx


def main():
    cx = parse()
    for path in sorted(glob.glob(os.path.join(here, "rows_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    chosen = [r for r in ROWS if any(k in r.name for k in cx.k.split(",")) and not (cx.small and r.big)][:: cx.every]
    if cx.list:
        print("\n".join(r.name for r in chosen))
        return 0
    if not os.access(cx.tilec, os.X_OK):
        sys.exit(f"no {cx.tilec}: build first")
    if not chosen:
        sys.exit(f"no row has '{cx.k}' in its name; --list shows them")
    cx.missing = {d: missing(d, cx.tilec) for d in cx.devices}
    cx.end = time.monotonic() + cx.budget
    results = []
    with ThreadPoolExecutor(max(cx.jobs, 1)) as pool:
        for rows in pool.map(lambda r: run_row(*r, cx), enumerate(chosen)):
            results += rows
            for name, status, text in rows:
                if status == "fail" or cx.v:
                    print(f"{status:4} {name}{': ' + text if text else ''}", flush=True)
    if cx.json:
        with open(cx.json, "w", encoding="utf-8") as f:
            json.dump(results, f)
    count = {s: sum(r[1] == s for r in results) for s in ("pass", "fail", "skip")}
    print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped")
    return 1 if count["fail"] or not count["pass"] else 0


if __name__ == "__main__":
    sys.exit(main())
