#!/usr/bin/env python3
"""Arrays through `tilec run`: what NumPy saves is what the kernel sees, and what it leaves is what NumPy loads.

    tilec_npy.py TILEC FOLDER
"""
import os
import re
import subprocess
import sys

import numpy as np

COPY = """kernel copy(const T x[M, N], T y[M, N], const type T = f32) grid(M, N) {
    y[pid(0), pid(1)] = x[pid(0), pid(1)];
}
"""
PICK = """kernel pick(const f32 x[M : sm, N : sn], f32 y[M, N]) grid(1) {
    y[0 +: 8, 0 +: 8] = x[0 +: 8, 0 +: 8] + (f32)(sm * 100 + sn);
}
"""
DEEP = "kernel deep(const i16 x[A, B, C, D], i16 *p, int n) grid(n) { p[pid(0)] = x[0, 1, 0, pid(0)]; }\n"
PACKED = """kernel packed(const u4 w[N, K], i32 x[N, K]) grid(1) {
    x[0 +: 4, 0 +: 8] = (i32)w[0 +: 4, 0 +: 8];
}
"""
bad = rows = 0


def check(name, fine, more=""):
    global bad, rows
    rows += 1
    if not fine:
        bad += 1
        print(f"{name}: wrong {more}")


class Runner:
    def __init__(self, tilec, folder):
        self.tilec, self.folder, self.count = tilec, folder, 0

    def __call__(self, source, arrays, saves=(), options=(), scalars=()):
        """Runs the source; the saved arrays, the exit status and stderr."""
        self.count += 1
        at = lambda name: os.path.join(self.folder, f"{self.count}_{name}")
        with open(at("k.tile"), "w") as f:
            f.write(source)
        args = [self.tilec, "run", at("k.tile")] + list(options) + list(scalars)
        for name, value in arrays.items():
            if isinstance(value, np.ndarray):
                np.save(at(name + ".npy"), value)
                value = "@" + at(name + ".npy")
            args.append(f"{name}={value}")
        for name in saves:
            args += ["--save", f"{name}={at('out_' + name + '.npy')}"]
        p = subprocess.run(args, capture_output=True, timeout=60)
        out = {name: np.load(at("out_" + name + ".npy")) for name in saves if os.path.exists(at("out_" + name + ".npy"))}
        return out, p.returncode, p.stderr.decode()


def same(a, b):
    return a is not None and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def types(run):
    kinds = {"bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
             "f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8"}
    raw = np.random.default_rng(1).integers(0, 256, 5 * 3 * 8, np.uint8)
    for t, d in kinds.items():
        dtype = np.dtype(d)
        x = (raw[:15] & 1).astype(bool).reshape(5, 3) if t == "bool" else np.frombuffer(raw.tobytes(), dtype)[:15].reshape(5, 3)
        for device in ("cpu", "ref"):
            out, status, err = run(COPY, {"x": x, "y": "zeros[5,3]"}, ["y"], ["--const", f"T={t}", "--device", device])
            # a signalling NaN may come out quiet: compare the bits where x is no NaN
            got = out.get("y")
            nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
            fine = got is not None and got.dtype == dtype and got.shape == x.shape and np.array_equal(got[~nan], x[~nan])
            check(f"{t} on {device}", fine and status == 0, err)


def orders(run):
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    out, status, err = run(PICK, {"x": np.asfortranarray(x), "y": "nan[5,7]"}, ["y", "x"])
    check("Fortran order is read by its strides", status == 0 and same(out.get("y"), x + 105), err)
    check("Fortran order is saved as such", same(np.asarray(out.get("x")), np.asfortranarray(x)) and out["x"].flags.f_contiguous)
    out, status, err = run(PICK, {"x": x, "y": "nan[5,7]"}, ["y"])
    check("C order", status == 0 and same(out.get("y"), x + 701), err)
    out, status, err = run(COPY, {"x": np.asfortranarray(x), "y": "nan[5,7]"})
    check("Fortran order where dense rows are wanted", status == 3 and re.search(r"'x'.*stride.*must be 1, got 5; others need a stride in the declaration: x\[N : s\]", err), err)
    one = np.asfortranarray(x[:1])
    out, status, err = run(COPY, {"x": one, "y": "nan[1,7]"}, ["y"])
    check("one row has any order", status == 0 and same(out.get("y"), np.ascontiguousarray(one)), err)
    out, status, err = run(PICK, {"x": x.astype(">f4"), "y": "nan[5,7]"}, ["y"])
    check("big-endian", status == 0 and same(out.get("y"), x + 701), err)
    p = subprocess.run([run.tilec, "run", os.path.join(run.folder, "1_k.tile")], capture_output=True)
    check("the folder is not needed", p.returncode == 2)


def shapes(run):
    x = np.arange(2 * 3 * 1 * 4, dtype=np.int16).reshape(2, 3, 1, 4)
    p = np.zeros((2, 2), np.int16)
    out, status, err = run(DEEP, {"x": x, "p": p}, ["p", "x"], scalars=["n=4"])
    check("a pointer keeps its file's shape", status == 0 and same(out.get("p"), x[0, 1, 0].reshape(2, 2)), err)
    check("an input is saved as it was", same(out.get("x"), x))
    out, status, err = run(COPY, {"x": np.zeros((0, 3), np.float32), "y": "nan[0,3]"}, ["y"])
    check("no elements", status == 0 and out["y"].shape == (0, 3), err)
    out, status, err = run("kernel k(f32 *p) grid(1) { p[0] = 4; }\n", {"p": np.array(1, np.float32)}, ["p"])
    check("rank 0", status == 0 and same(out.get("p"), np.array(4, np.float32)), err)


def packed(run):
    w = np.random.default_rng(2).integers(0, 256, (3, 4), np.uint8)
    wide = np.stack((w & 15, w >> 4), -1).reshape(3, 8).astype(np.int32)
    for k in (8, 7):
        out, status, err = run(PACKED, {"w": w, "x": np.zeros((3, k), np.int32)}, ["x", "w"], ["--device", "ref"])
        check(f"{k} packed elements a row", status == 0 and same(out.get("x"), wide[:, :k].copy()), err)
        check("packed bytes come back", same(out.get("w"), w))
    out, status, err = run(PACKED, {"w": w, "x": np.zeros((3, 6), np.int32)}, [], ["--device", "ref"])
    check("too few packed elements", status == 3 and re.search(r"'x'|'w'", err), err)


def refused(run):
    x = np.zeros((5, 7))
    for dtype, word in (("f8", "f64"), ("i4", "i32"), ("f2", "f16"), ("u1", "u8"), ("c8", "<c8")):
        out, status, err = run(COPY, {"x": x.astype(dtype), "y": "nan[5,7]"})
        check(f"{dtype} for f32", status == 3 and re.search(r"'x'.*f32.*" + word, err), err)
    out, status, err = run(COPY, {"x": x.astype("u2"), "y": "nan[5,7]"}, options=["--const", "T=f16"])
    check("u2 for f16", status == 3 and re.search(r"'x'.*f16.*u16", err), err)
    for bad_type in (np.array([["a"]]), np.array([[None]], object), np.zeros((1, 1), "m8[s]")):
        out, status, err = run(COPY, {"x": bad_type, "y": "nan[1,1]"})
        check(f"{bad_type.dtype}", status in (2, 3) and err, err)


def main():
    run = Runner(sys.argv[1], sys.argv[2])
    for part in (types, orders, shapes, packed, refused):
        part(run)
    print(f"{rows} checks, {bad} wrong")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
