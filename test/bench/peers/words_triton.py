"""The tiles of words.py in Triton, and, of two blocks, in its Gluon (PyPI), compiled without a GPU:  words_triton.py TARGET OUTDIR

Reads a JSON object a line, a tile; writes OUTDIR/NAME.ptx and prints a JSON object for each: {"name", "version"} or "error".
"""
import json
import sys

import triton
import triton.language as tl
from triton.compiler import ASTSource
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, allocate_tensor_memory, mbarrier, tcgen05_mma, tma

from triton_kernels import gpu_target


@triton.jit
def product(da, db, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TA: tl.constexpr, TB: tl.constexpr, O: tl.constexpr):
    """a by k x m if TA, b by k x n if TB"""
    im, jn = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), O)
    for k in range(0, K, BK):
        x = da.load([k, im]).T if TA else da.load([im, k])
        y = db.load([k, jn]) if TB else db.load([jn, k]).T
        acc = tl.dot(x, y, acc, out_dtype=O)
    i, j = im + tl.arange(0, BM), jn + tl.arange(0, BN)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@triton.jit
def scaled(da, db, c, sa, sb, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, T: tl.constexpr, V: tl.constexpr):
    """Operands and scales by bytes; a scale for V bytes of k."""
    im, jn = tl.program_id(0) * BM, tl.program_id(1) * BN
    i, j, s = im + tl.arange(0, BM), jn + tl.arange(0, BN), tl.arange(0, BK // V)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x, y = da.load([im, k]), db.load([jn, k])
        sx = tl.load(sa + i[:, None] * (K // V) + k // V + s[None, :])
        sy = tl.load(sb + j[:, None] * (K // V) + k // V + s[None, :])
        acc = tl.dot_scaled(x, sx, T, y.T, sy, T, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@gluon.jit
def pair(da, db, c, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, TB: gl.constexpr, SUMS: gl.constexpr, REGISTERS: gl.constexpr):
    """Two blocks, one product."""
    sa = gl.allocate_shared_memory(da.dtype, [BM, BK], da.layout)
    sb = gl.allocate_shared_memory(db.dtype, [BK, BN] if TB else [BN, BK], db.layout)
    full = mbarrier.allocate_mbarrier(two_ctas=True)
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    mbarrier.init(done, count=1)
    acc = allocate_tensor_memory(gl.float32, [BM, BN], SUMS)
    im, jn = gl.program_id(0) * BM, gl.program_id(1) * BN
    phase = 0
    for k in range(0, K, BK):
        mbarrier.expect(full, da.nbytes_per_cta + db.nbytes_per_cta)
        tma.async_load(da, [im, k], full, sa)
        if TB:
            tma.async_load(db, [k, jn], full, sb)
        else:
            tma.async_load(db, [jn, k], full, sb)
        mbarrier.wait(full, phase)
        if TB:
            tcgen05_mma(sa, sb, acc, use_acc=k != 0, mbarriers=[done])
        else:
            tcgen05_mma(sa, sb.permute((1, 0)), acc, use_acc=k != 0, mbarriers=[done])
        mbarrier.wait(done, phase)
        phase ^= 1
    mbarrier.invalidate(full)
    mbarrier.invalidate(done)
    x = acc.load(REGISTERS)
    m, n = gl.arange(0, BM, gl.SliceLayout(1, REGISTERS)), gl.arange(0, BN, gl.SliceLayout(0, REGISTERS))
    gl.store(c + (im + m)[:, None] * N + (jn + n)[None, :], x)


def descriptor(t, *shape):
    return f"tensordesc<{t}[{', '.join(map(str, shape))}]>"


def along(j):
    """Does memory lie along rows of A, columns of B?"""
    return j["majors"][0] == "m", j["majors"][1] == "n"


def of_product(j):
    ta, tb = along(j)
    bm, bn, bk = j["bm"], j["bn"], j["bk"]
    integers = j["a"] == "i8"
    kinds = {"da": descriptor(j["a"], *((bk, bm) if ta else (bm, bk))), "db": descriptor(j["b"], *((bk, bn) if tb else (bn, bk))), "c": "*i32" if integers else "*fp32"}
    return product, kinds, {"BM": bm, "BN": bn, "BK": bk, "TA": ta, "TB": tb, "O": tl.int32 if integers else tl.float32}


def of_scaled(j):
    fours = j["a"] == "u8"  # two of f4e2m1
    scale, each = ("u8", 16 if fours else 32) if j["scale"] == "u8" else ("fp8e4nv", 8)
    bk = j["bk"] // 2 if fours else j["bk"]
    kinds = {"da": descriptor(j["a"], j["bm"], bk), "db": descriptor(j["b"], j["bn"], bk), "c": "*fp32", "sa": f"*{scale}", "sb": f"*{scale}"}
    name = "e2m1" if fours else {"fp8e4nv": "e4m3", "fp8e5": "e5m2"}[j["a"]]
    return scaled, kinds, {"BM": j["bm"], "BN": j["bn"], "BK": bk, "T": name, "V": each}


def of_pair(j):
    _, tb = along(j)
    bm, bn, bk = j["bm"], j["bn"], j["bk"]
    element = {"fp16": gl.float16, "bf16": gl.bfloat16, "fp8e4nv": gl.float8e4nv}[j["a"]]
    rows, columns = [[1, 0]], [[0, 1]]
    shape_b = [bk, bn] if tb else [bn, bk]
    la = gl.NVMMASharedLayout.get_default_for([bm, bk], element, cga_layout=rows)
    lb = gl.NVMMASharedLayout.get_default_for(shape_b, element, cga_layout=columns if tb else rows)
    kinds = {"da": f"tensordesc<{j['a']}[{bm}, {bk}],{la}>", "db": f"tensordesc<{j['b']}[{shape_b[0]}, {shape_b[1]}],{lb}>", "c": "*fp32"}
    sums = TensorMemoryLayout(block=(bm // 2, bn), col_stride=1, cga_layout=rows, two_ctas=True)
    registers = gl.BlockedLayout([1, bn], [32, 1], [4, 1], [1, 0], cga_layout=rows)
    return pair, kinds, {"BM": bm, "BN": bn, "BK": bk, "TB": tb, "SUMS": sums, "REGISTERS": registers}


def build(target, j):
    kernel, kinds, constants = (of_pair if j["pair"] else of_scaled if j["scale"] else of_product)(j)
    names = kernel.arg_names
    kinds = {k: "constexpr" if k in constants else kinds.get(k, "i32") for k in names}
    whole = {(i,): [["tt.divisibility", 16]] for i, k in enumerate(names) if kinds[k] == "i32" or kinds[k][0] == "*"}
    source = (GluonASTSource if j["pair"] else ASTSource)(kernel, kinds, {(names.index(k),): v for k, v in constants.items()}, whole)
    return triton.compile(source, target=gpu_target(target), options={"num_warps": 4, "num_stages": 2, "num_ctas": 2 if j["pair"] else 1})


def main(target, out):
    for line in sys.stdin:
        j = json.loads(line)
        try:
            with open(f"{out}/{j['name']}.ptx", "w", encoding="utf-8") as f:
                f.write(build(target, j).asm["ptx"])
            print(json.dumps({"name": j["name"], "version": triton.__version__}), flush=True)
        except Exception as e:  # pylint: disable=broad-except
            print(json.dumps({"name": j["name"], "error": " ".join(str(e).split())[-300:]}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
