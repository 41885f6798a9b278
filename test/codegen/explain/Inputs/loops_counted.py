#!/usr/bin/env python3
"""What tilec explain says a program issues against a count over the listing: loops_counted.py TILEC SOURCE_ROOT TARGET

Of each kernel it is known how often a thread executes one operation, explain's 32 trips of loops with unknown ones assumed; so the listing (sassmix.py) tells
how often its main loop turns, however it was unrolled. What stands outside of the loop counts once, what stands in a loop around it as often as that turns.
The cycles of issue that explain says agree within 1.3.
"""
import json
import os
import subprocess
import sys
import tempfile

TILEC, ROOT, TARGET = sys.argv[1:4]
sys.path.insert(0, os.path.join(ROOT, "test", "tools"))
import sassmix  # noqa: E402

TRIPS, MOST = 32, 1.3
PEERS, LOOPS = "test/bench/peers/kernels.tile", "test/codegen/explain/Inputs/loops_counted.tile"


def product(m, n, k, warps, instruction, each=1):
    """Matrix instructions of a warp in all trips."""
    return TRIPS * each * m * n * k // instruction // warps


def group_product(m, k, warps, each=1, deep=16):
    """Those of a warpgroup, which have 64 rows and all columns."""
    return TRIPS * each * (m // 64) * (k // deep) * 4 // warps


# source, kernel, constants, warps, the operation, how often a thread executes it in the loop, trips of the loop around that
PRODUCTS = [
    (PEERS, "gemm", "BM=128 BN=128 BK=32", 4, "HMMA", product(128, 128, 32, 4, 2048), 1),
    (PEERS, "gemm", "BM=128 BN=256 BK=64", 8, "HMMA", product(128, 256, 64, 8, 2048), 1),
    (PEERS, "gemm", "BM=64 BN=64 BK=64", 4, "HMMA", product(64, 64, 64, 4, 2048), 1),
    (PEERS, "gemm_columns", "BM=128 BN=128 BK=32", 4, "HMMA", product(128, 128, 32, 4, 2048), 1),
    (PEERS, "gemm_columns", "BM=128 BN=128 BK=64 T=i8 S=i32", 4, "IMMA", product(128, 128, 64, 4, 4096), 1),
    (PEERS, "gemm_tf32", "BM=128 BN=128 BK=32", 4, "HMMA", product(128, 128, 32, 4, 1024), 1),
    (PEERS, "gemm_bf16x3", "BM=128 BN=128 BK=32", 8, "HMMA", product(128, 128, 32, 8, 2048, 3), 1),
    (PEERS, "attention", "BM=128 BN=64 BD=64", 4, "HMMA", product(128, 64, 64, 4, 2048, 2), 1),
    (PEERS, "attention", "BM=128 BN=64 BD=128", 8, "HMMA", product(128, 64, 128, 8, 2048, 2), 1),
    (PEERS, "attention_dq", "BM=64 BN=64 BD=64", 4, "HMMA", product(64, 64, 64, 4, 2048, 3), 1),
    (PEERS, "attention_dkdv", "BM=64 BN=64 BD=64", 4, "HMMA", product(64, 64, 64, 4, 2048, 4), 1),
    (PEERS, "fused_moe", "BM=64 BN=128 BK=32", 4, "HMMA", product(64, 128, 32, 4, 2048), 1),
    (PEERS, "chunk_scan", "BM=128 BN=64 BK=32 BD=128", 4, "HMMA", product(128, 64, 32, 4, 2048), 1),
    ("std.kernels.quantized", "gemm_u4", "", 4, "HMMA", product(64, 64, 64, 4, 2048), 1),
]
GROUP_PRODUCTS = [
    (PEERS, "gemm", "BM=128 BN=128 BK=32", 4, "HGMMA", group_product(128, 32, 4), 1),
    (PEERS, "gemm", "BM=128 BN=256 BK=64", 8, "HGMMA", group_product(128, 64, 8), 1),
    (PEERS, "gemm", "BM=64 BN=64 BK=64", 4, "HGMMA", group_product(64, 64, 4), 1),
    (PEERS, "gemm_columns", "BM=128 BN=128 BK=32", 4, "HGMMA", group_product(128, 32, 4), 1),
    (PEERS, "gemm_columns", "BM=128 BN=128 BK=64 T=i8 S=i32", 4, "IGMMA", group_product(128, 64, 4, deep=32), 1),
    (PEERS, "gemm_tf32", "BM=128 BN=128 BK=32", 4, "HGMMA", group_product(128, 32, 4, deep=8), 1),
    (PEERS, "gemm_bf16x3", "BM=128 BN=128 BK=32", 8, "HGMMA", group_product(128, 32, 8, 3), 1),
    (PEERS, "attention", "BM=128 BN=64 BD=64", 4, "HGMMA", group_product(128, 64, 4, 2), 1),
    (PEERS, "attention", "BM=128 BN=64 BD=128", 8, "HGMMA", group_product(128, 128, 8) + group_product(128, 64, 8), 1),
    (PEERS, "attention_dq", "BM=64 BN=64 BD=64", 4, "HGMMA", group_product(64, 64, 4, 3), 1),
    (PEERS, "attention_dkdv", "BM=64 BN=64 BD=64", 4, "HGMMA", group_product(64, 64, 4, 4), 1),
    (PEERS, "fused_moe", "BM=64 BN=128 BK=32", 4, "HGMMA", group_product(64, 32, 4), 1),
    (PEERS, "chunk_scan", "BM=128 BN=64 BK=32 BD=128", 4, "HGMMA", group_product(128, 32, 4), 1),
    ("std.kernels.quantized", "gemm_u4", "", 4, "HGMMA", group_product(64, 64, 4), 1),
]
OTHERS = [
    ("examples/03_matmul/matmul.tile", "matmul", "BM=64 BN=64 BK=64", 4, "FFMA", TRIPS * 64 * 64 * 64 // 128, 1),
    (PEERS, "row_sum", "B=1024", 4, "FADD", TRIPS * 1024 // 128, 1),
    (PEERS, "gemv_split_k", "BM=16 BK=256 SPLIT=4", 4, "FFMA", TRIPS * 16 * 256 // 128, 1),
    (LOOPS, "counted", "", 4, "LDS", 2 * 1024 // 4, 1),
    (LOOPS, "counted_in_loop", "", 4, "LDS", TRIPS * 2 * 1024 // 4, TRIPS),
    (LOOPS, "counted", "B=4096 BINS=1024", 8, "LDS", 2 * 4096 // 4, 1),
    (LOOPS, "rounds", "", 4, "LDS", 2 * 16384 // 128, 1),
    (LOOPS, "nested", "", 4, "FADD", TRIPS * TRIPS * 1024 // 128, TRIPS),
]


ROWS = (GROUP_PRODUCTS if TARGET == "sm_90a" else PRODUCTS) + OTHERS


def words(source, kernel, constants, warps):
    path = os.path.join(ROOT, source) if "/" in source else source
    return [path, "--kernel", kernel, "--target", TARGET, "--forms", "aligned", "--warps", str(warps),
            *(w for c in constants.split() for w in ("--const", c))]


def said(row):
    """Cycles of issue of a program, as explain says."""
    out = subprocess.run([TILEC, "explain", *words(*row), "--json"], capture_output=True, text=True, check=True).stdout
    k = json.loads(out)["targets"][0]["kernels"][0]
    return next(r["program"] for r in k["roofs"] if r["name"] == "issue slots")


def listed(row, operation, times, outer, folder):
    """The same, counted."""
    cubin = os.path.join(folder, "k.cubin")
    subprocess.run([TILEC, *words(*row), "--emit", "cubin", "-o", cubin], check=True)
    with open(cubin, "rb") as f:
        sm, kernels = sassmix.read_cubin(f.read())
    (_, text), = kernels
    flow = sassmix.Flow(sassmix.decode(text), sm)
    count = lambda blocks, name=None: sum(name in (None, x.name) for x in flow.instructions(blocks))
    head, body = max(flow.innermost(), key=lambda x: (count(x[1], operation), count(x[1])))
    short = flow.shortest(flow.heaviest(head, body), body)
    around = min((b for h, b in flow.loops().items() if h != head and head in b), key=len, default=body)
    everything = set(range(len(flow.first)))
    n = count(everything - around) + count(around - body) * outer + count(short) * times / count(short, operation)
    return n * row[3] / 4  # four warps issue in a cycle


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for *row, operation, times, outer in ROWS:
            a, b = said(row), listed(row, operation, times, outer, folder)
            bad = not 1 / MOST <= a / b <= MOST
            wrong += bad
            print(f"{'WRONG ' if bad else ''}{row[1]} {row[2]}: explain {a:.0f}, the listing {b:.0f}: {a / b:.2f}")
    print(f"{len(ROWS)} kernels, {wrong} wrong")


main()
