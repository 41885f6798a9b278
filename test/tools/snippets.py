#!/usr/bin/env python3
"""Compiles every ```tile block of Markdown files, runs those that say how, and compiles ```c blocks with a main against them.

    snippets.py TILEC INCLUDE DEVICE[,DEVICE...] FILE.md...

`<!-- run: WORDS : y == EXPRESSION ; z ~ EXPRESSION -->` after a block runs it on each device: WORDS as for `tilec run`, arrays made here
(zeros nan iota full(v) normal(seed) ints(seed,lo,hi), then [extents]). The expressions are NumPy's, over the arrays after the run and the
scalars; `y0` is what y was before; packed arrays
are bytes. `==` compares exactly, `~` within the rounding of the type. A comment `<!-- not: TEXT -->` says that a
block is wrong on purpose, and what the compiler says. INCLUDE is the folder of tile.h. Needs NumPy.
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

DTYPE = {"u4": np.uint8, "i4": np.uint8, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bool": np.bool_, **{k + n: getattr(np, word + n) for k, word in (("i", "int"), ("u", "uint")) for n in ("8", "16", "32", "64")}}
BOUND = {np.float16: 4e-3, np.float32: 2e-5, np.float64: 1e-13}


def array(text, dtype):
    kind, args, shape = re.fullmatch(r"(\w+)(?:\((.*?)\))?\[(.*)\]", text).groups()
    shape = tuple(int(n) for n in shape.split(","))
    args = [float(a) for a in args.split(",")] if args else []
    if kind == "normal":
        return np.random.default_rng(int(args[0])).standard_normal(shape).astype(dtype)
    if kind == "ints":
        return np.random.default_rng(int(args[0])).integers(args[1], args[2], shape).astype(dtype)
    if kind == "iota":
        return np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    value = {"zeros": 0, "nan": np.nan if np.issubdtype(dtype, np.floating) else 77, "full": (args or [0])[0]}[kind]
    return np.full(shape, value, dtype)


def arguments(words, source, folder):
    """(words for tilec, names and values); the type of an array is its parameter's in the source."""
    out, values, arrays = [], {}, []
    given = dict(re.findall(r"--const (\w+)=(\w+)", " ".join(words)))
    for word in words:
        m = re.fullmatch(r"(\w+)=(.*)", word)
        if not m or out[-1:] == ["--const"]:
            out.append(word)
            continue
        name, text = m.groups()
        if "[" not in text:
            out.append(word)
            values[name] = None if text.startswith(("&", "addresses(")) else float(text)
            continue
        spelled = re.search(rf"(\w+) \*?{name}\b", source)[1]
        default = re.search(rf"const type {spelled} = (\w+)", source)
        spelled = given.get(spelled, default[1] if default else spelled)
        values[name] = array(text, DTYPE[{"int": "i32", "float": "f32"}.get(spelled, spelled)])
        arrays.append(name)
        np.save(os.path.join(folder, name + ".npy"), values[name])
        out.append(f"{name}=@{os.path.join(folder, name + '.npy')}")
    for name in arrays:
        out += ["--save", f"{name}={os.path.join(folder, name + '.out.npy')}"]
    return out, values, arrays


def check(claim, values):
    name, how, text = re.fullmatch(r"(\w+) (==|~) (.*)", claim).groups()
    got = values[name]
    want = np.asarray(eval(text, {"np": np}, {k: v.astype(np.float64) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v for k, v in values.items()}))
    if how == "==":
        good = np.array_equal(got, np.broadcast_to(want, got.shape), equal_nan=got.dtype.kind == "f")
    else:
        bound = BOUND.get(got.dtype.type, 0)
        good = np.allclose(got, want, rtol=bound, atol=bound)
    return None if good else f"{claim}: got {got.ravel()[:8]}, wanted {want.ravel()[:8]}"


def run(tilec, path, source, how, device):
    words, _, claims = how.partition(" : ")
    with tempfile.TemporaryDirectory(prefix="tile-doc-") as folder:
        words, values, arrays = arguments(words.split(), source, folder)
        p = subprocess.run([tilec, "run", path, "--device", device, "--check", *words], capture_output=True, text=True, timeout=120)
        if p.returncode != 0:
            return [f"{device}: {' '.join(words)}: {p.stderr.strip()}"]
        before = {name + "0": values[name] for name in arrays}
        after = {name: np.load(os.path.join(folder, name + ".out.npy")) for name in arrays}
        said = [check(c.strip(), {**values, **before, **after}) for c in claims.split(" ; ")]
        return [f"{device}: {s}" for s in said if s]


def compiles(tilec, path, wrong):
    p = subprocess.run([tilec, path, "--emit=tir", "-o", os.devnull], capture_output=True, text=True)
    if wrong is None:
        return [] if p.returncode == 0 else [p.stderr.strip()]
    return [] if p.returncode == 1 and wrong in p.stderr else [f"should say '{wrong}', says: {p.stderr.strip()}"]


def host(tilec, include, folder, kernels, text):
    """A C program, against the headers of the blocks before it, each under the name of its first kernel."""
    for name, path in kernels.items():
        p = subprocess.run([tilec, path, "--kernel", name, "--target", "cpu", "-o", os.path.join(folder, name + ".o"), "--header", os.path.join(folder, name + ".h")], capture_output=True, text=True)
        if p.returncode and f'"{name}.h"' in text:
            return [p.stderr]
    with open(os.path.join(folder, "host.c"), "w", encoding="utf-8") as f:
        f.write(text)
    p = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", include, "-I", folder, os.path.join(folder, "host.c")], capture_output=True, text=True)
    return [p.stderr] if p.returncode else []


def document(tilec, include, devices, path, count):
    """Faults of one file."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    bad, kernels = [], {}
    with tempfile.TemporaryDirectory(prefix="tile-doc-") as folder:
        for m in re.finditer(r"^```(tile|c)\n(.*?)^```\n((?:<!-- .*? -->\n)*)", text, re.S | re.M):
            language, source, notes = m.groups()
            where = f"{os.path.basename(path)}:{text[:m.start()].count(chr(10)) + 1}"
            faults = []
            if language == "c":
                faults = host(tilec, include, folder, kernels, source) if "main(" in source else []
                count["c"] += "main(" in source
            else:
                block = os.path.join(folder, f"block{m.start()}.tile")
                with open(block, "w", encoding="utf-8") as f:
                    f.write(source)
                wrong = re.search(r"<!-- not: (.*?) -->", notes)
                kernels.update({k: block for k in re.findall(r"^kernel (\w+)", source, re.M)[:1]} if not wrong else {})
                runs = re.findall(r"<!-- run: (.*?) -->", notes, re.S)
                faults = [] if runs else compiles(tilec, block, wrong and wrong[1])
                faults += [f for how in runs for d in devices.split(",") for f in run(tilec, block, source, how, d)]
                count["tile"] += 1
                count["run"] += len(runs)
            bad += [f"{where}: {f}" for f in faults]
    return bad


def main(tilec, include, devices, *paths):
    count = {"tile": 0, "run": 0, "c": 0}
    bad = [f for p in paths for f in document(tilec, include, devices, p, count)]
    print("\n".join([*bad, f"{count['tile']} blocks, {count['run']} runs, {count['c']} hosts, {len(bad)} faults"]))
    return 1 if bad or not count["tile"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
