#!/usr/bin/env python3
"""Blackwell's words, bit by bit: instruction and shared memory descriptors of products into tensor memory, of tilec and of Triton, for the same tiles.

    words.py [BUILD] [--python PYTHON] [-k PART] [-v]

A tile is types, which axis of A and B lies along memory, rows, columns, a step of k, and whether one block or a pair does the product; both compile
it for sm_100a (no GPU is needed). Of each tcgen05.mma of a step, in order, what does not depend on where buffers are is computed from the PTX: the instruction
descriptor, bits 16 to 63 of both operands' descriptors, and how far their addresses (/ 16) are from the first instruction's. Exit 1 if any differs, or is not found.
--python has Triton and its Gluon (words_triton.py); without it only tilec's words are printed.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

from run import talk

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
TARGET = "sm_100a"
SOURCE = """kernel words(const {a} A[{of_a}], const {b} B[{of_b}], {c} C[M, N]) grid(cdiv(M, {bm}), cdiv(N, {bn})){cluster}
{{
    int m = pid(0) * {bm};
    int n = pid(1) * {bn};
    tile<{c}, {bm}, {bn}> acc = 0;
    for (int k : range(0, K, {bk})) pipeline
        acc = dot({x}, {y}, acc{more});
    C[m +: {bm}, n +: {bn}] = acc;
}}
"""
# With a scale for `each` elements of k.
SCALED = """import std.scaled;
kernel words(const {a} A[M, K], const {s} SA[M, L], const {b} B[N, K], const {s} SB[N, L], f32 C[M, N]) grid(cdiv(M, {bm}), cdiv(N, {bn}))
{{
    int m = pid(0) * {bm};
    int n = pid(1) * {bn};
    tile<f32, {bm}, {bn}> acc = 0;
    for (int k : range(0, K, {bk})) pipeline
        acc = dot_scaled(A[m +: {bm}, k +: {bk}], scaled.magnitude(SA[m +: {bm}, k / {each} +: {bk} / {each}]),
                         trans(B[n +: {bn}, k +: {bk}]), scaled.magnitude(SB[n +: {bn}, k / {each} +: {bk} / {each}]), acc);
    C[m +: {bm}, n +: {bn}] = acc;
}}
"""
TYPES = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f8e4m3": "fp8e4nv", "f8e5m2": "fp8e5", "i8": "i8", "f4e2m1": "u8"}
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f4e2m1": 4}  # of elements; others have 8
STEP = 32  # bytes of k of an instruction


def tile(a, bm, bn, bk, b=None, majors="kk", pair=False, scale=None):
    """majors: of A and of B, the axis along which memory is: k, or m and n. pair: bm are the rows of both."""
    return {"name": f"{a}{'' if b is None else '.' + b} {majors} {bm}x{bn}x{bk}{' pair' if pair else ''}{' by ' + scale if scale else ''}", "a": a, "b": b or a, "bm": bm, "bn": bn,
            "bk": bk, "majors": majors, "pair": pair, "scale": scale}


TILES = [
    *(tile("f16", bm, bn, 64, majors=m) for bm in (64, 128) for bn in (64, 128, 256) for m in ("kk", "kn", "mk", "mn")),
    *(tile("f16", 128, bn, bk, majors=m) for bn, bk in ((16, 64), (32, 32), (128, 32), (128, 128)) for m in ("kk", "kn")),
    *(tile("bf16", bm, 128, 64, majors=m) for bm in (64, 128) for m in ("kk", "kn")),
    *(tile("f32", bm, bn, 32) for bm in (64, 128) for bn in (64, 128)),
    *(tile(t, bm, 128, bk) for t in ("f8e4m3", "f8e5m2", "i8") for bm in (64, 128) for bk in (64, 128)),
    *(tile(t, 128, 128, 128, majors="kn") for t in ("f8e4m3", "f8e5m2")),
    tile("f8e4m3", 128, 128, 128, "f8e5m2"), tile("f8e5m2", 128, 128, 128, "f8e4m3"),
    *(tile("f16", 256, bn, 64, majors=m, pair=True) for bn in (64, 128, 256) for m in ("kk", "kn")),
    tile("bf16", 256, 128, 64, pair=True), tile("f8e4m3", 256, 128, 128, pair=True),
    *(tile(t, 128, 128, 128, scale="u8") for t in ("f8e4m3", "f8e5m2")), tile("f4e2m1", 128, 128, 128, scale="u8"), tile("f4e2m1", 128, 128, 128, scale="f8e4m3"),
]


# ---- what PTX computes ----

class Text:
    """Registers of a kernel's PTX, each computed where all that is not known there (addresses, sizes, what the first trip has) is 0."""

    def __init__(self, ptx):
        self.defined, self.words = {}, {}
        for line in ptx.splitlines():
            m = re.match(r"\s*([a-z][\w.:]*)\s+(\{?[^;]*);", line)
            if not m or m[1].startswith(("st.", "tcgen05", "mbarrier", "bra")):
                continue
            operands = re.findall(r"\{[^}]*\}|[^,\s][^,]*", m[2])
            if re.fullmatch(r"%\w+", operands[0].strip()):
                self.defined.setdefault(operands[0].strip(), []).append((m[1], [x.strip() for x in operands[1:]]))

    def value(self, x, inside=()):
        if re.fullmatch(r"-?\d+", x):
            return int(x)
        if x.startswith("{"):  # words, the lower one first
            low, high = (self.value(w.strip(), inside) for w in x.strip("{}").split(","))
            return low & 0xffffffff | high << 32
        if x in self.words or x in inside or x not in self.defined:
            return self.words.get(x, 0)
        op, operands = self.defined[x][0]
        got = self.computed(op, operands, (*inside, x))
        if not inside:
            self.words[x] = got
        return got

    def computed(self, op, operands, inside):
        name, bits = op.split(".")[0], 64 if op.endswith("64") else 32
        v = [self.value(x, inside) for x in operands] if name in WORK else []
        return WORK[name](*v) & (1 << bits) - 1 if v else 0


WORK = {
    "mov": lambda x: x, "cvt": lambda x: x, "cvta": lambda x: x, "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "shl": lambda x, n: x << n,
    "shr": lambda x, n: x >> n, "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y, "mul": lambda x, y: x * y, "mad": lambda x, y, z: x * y + z,
    "bfe": lambda x, at, n: x >> at & (1 << n) - 1, "bfi": lambda x, y, at, n: y & ~((1 << n) - 1 << at) | (x & (1 << n) - 1) << at,
}
PRODUCT = re.compile(r"tcgen05\.mma\.cta_group::(\d)\.kind::(\w+)[\w.:]*\s+\[[^\]]*\], *(%\w+), *(%\w+), *(%\w+|\d+)")


def words_of(ptx, steps):
    """[(block or pair, kind, instruction, A, B, A's and B's distance from the first one's)] of a step; or a text."""
    text, found = Text(ptx), []
    for group, kind, a, b, instruction in PRODUCT.findall(ptx):
        found.append((int(group), kind, text.value(instruction), text.value(a), text.value(b)))
    if not found or len(found) % steps:
        return f"{len(found)} products for steps of {steps}"
    trips = []
    for i in range(0, len(found), steps):
        first = found[i]
        trips.append([(g, kind, w, x >> 16, y >> 16, (x - first[3]) & 0x3fff, (y - first[4]) & 0x3fff) for g, kind, w, x, y in found[i:i + steps]])
    return trips[0] if all(t == trips[0] for t in trips) else "its trips differ"


# ---- both compilers ----

def steps_of(t):
    return t["bk"] * BITS.get(t["a"], 8) // 8 // STEP


def ours(tilec, t, folder):
    k_a, k_b = t["majors"] == "kk" or t["majors"] == "kn", t["majors"] in ("kk", "mk")
    bm = t["bm"] // 2 if t["pair"] else t["bm"]
    integers = t["a"] == "i8"
    where = {"a": t["a"], "b": t["b"], "bm": bm, "bn": t["bn"], "bk": t["bk"], "c": "i32" if integers else "f32", "cluster": " cluster(2)" if t["pair"] else ""}
    if t["scale"]:
        source = SCALED.format(**where, s=t["scale"], each=32 if t["scale"] == "u8" else 16)
    else:
        source = SOURCE.format(**where, of_a="M, K" if k_a else "K, M", of_b="N, K" if k_b else "K, N", more=", precision = tf32" if t["a"] == "f32" else "",
                               x=f"A[m +: {bm}, k +: {t['bk']}]" if k_a else f"trans(A[k +: {t['bk']}, m +: {bm}])",
                               y=f"trans(B[n +: {t['bn']}, k +: {t['bk']}])" if k_b else f"B[k +: {t['bk']}, n +: {t['bn']}]")
    path = os.path.join(folder, "words.tile")
    with open(path, "w", encoding="utf-8") as f:
        f.write(source)
    p = subprocess.run([tilec, path, "--target", TARGET, "--warps", str(8 if t["bn"] > 128 and t["bm"] > 64 else 4), "--stages", "2", "--forms", "aligned", "--emit", "ptx", "-o", "-"], capture_output=True, text=True, check=False,
                       env={**os.environ, "TILE_CACHE": "off"})
    return words_of(p.stdout, steps_of(t)) if p.returncode == 0 else p.stderr.strip().split("\n")[0]


def theirs(python, tiles, folder):
    """({name of a tile: words or a text}, Triton's version)"""
    jobs = [{**t, "name": str(i), "a": TYPES.get(t["a"], t["a"]), "b": TYPES.get(t["b"], t["b"])} for i, t in enumerate(tiles)]
    answers, version = talk(python, "words_triton.py", TARGET, folder, jobs)
    found = {}
    for x in answers:
        t = tiles[int(x["name"])]
        found[t["name"]] = x.get("error")
        if not x.get("error"):
            with open(os.path.join(folder, x["name"] + ".ptx"), encoding="utf-8") as f:
                found[t["name"]] = words_of(f.read(), steps_of(t))
    return found, version


def shown(words):
    if isinstance(words, str):
        return words
    group, kind, instruction, a, b, _, _ = words[0]
    return f"{kind}, of {group}: {instruction:#x}, A {a << 16:#018x}, B {b << 16:#018x}, " + " ".join(f"+{x[5]}+{x[6]}" for x in words)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", default=os.path.join(root, "build"))
    p.add_argument("--python", help="a python that has Triton")
    p.add_argument("-k", default="")
    p.add_argument("-v", action="store_true")
    a = p.parse_args()
    tiles = [t for t in TILES if a.k in t["name"]]
    equal = 0
    with tempfile.TemporaryDirectory() as folder:
        peers, version = theirs(a.python, tiles, folder) if a.python else ({}, "not asked")
        for t in tiles:
            mine, peer = ours(os.path.join(a.build, "bin", "tilec"), t, folder), peers.get(t["name"], "-")
            same = not isinstance(mine, str) and (mine == peer or not a.python)
            equal += same
            if a.v or not same or not a.python:
                print(f"{t['name']}: {shown(mine)}" + ("" if mine == peer or not a.python else f"\n    Triton: {shown(peer)}"), flush=True)
    print(f"{equal} of {len(tiles)} tiles " + (f"equal; Triton {version}" if a.python else "found; no Triton was asked"))
    return 0 if equal == len(tiles) and tiles else 1


if __name__ == "__main__":
    sys.exit(main())
