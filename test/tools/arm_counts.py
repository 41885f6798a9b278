#!/usr/bin/env python3
"""Cycles of the hot loops of tilec's code for aarch64, beside those of plain C by clang, as llvm-mca counts them: no machine is timed.

    arm_counts.py [--build DIR] [--tilec FILE] [--target cpu:armv9-a] [--mcpu neoverse-v2] [-k PATTERN] [--md FILE] [--show NAME]

The kernels are those of bench_move (test/bench/move.tile) and those below; the peers bench_move_plain.c and the C below, by
clang-19 -O3 -ffast-math -mcpu, which has SVE where the CPU has. Of the innermost loops of a function the one counts that takes the fewest
cycles for an element that is stored, of those that store at least half as many in a trip as any; in products for a multiply-add. Cycles are
those of 100 trips by llvm-mca-19, all blocks of the loop one after the other, everything in the first cache. A column says what a trip
makes: elements, or multiply-adds. Tails, launches, packing and what happens once per program are not counted; kernels of several loops
(tables, softmax) are left out; clang calls expf for each element of exps and converts no vectors to bf16. --show prints the loops of a
kernel. Needs clang-19 and llvm-mca-19.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOVE = os.path.join(ROOT, "test", "bench", "move.tile")
KERNELS = """
kernel gemm(const TA A[M, K], const TB B[K, N], TC C[M, N], const type TA, const type TB, const type TC) grid(cdiv(M, 64), cdiv(N, 64))
{
    int m = pid(0) * 64;
    int n = pid(1) * 64;
    tile<TC, 64, 64> acc = 0;
    for (int k : range(0, K, 64))
        acc = dot(A[m +: 64, k +: 64], B[k +: 64, n +: 64], acc);
    C[m +: 64, n +: 64] = acc;
}
kernel exps(const f32 A[N], f32 B[N], const int W = 256) grid(cdiv(N, W))
{
    B[pid(0) * W +: W] = exp(A[pid(0) * W +: W]);
}
kernel saxpy(const f32 A[N], f32 B[N], f32 s, const int W = 256) grid(cdiv(N, W))
{
    B[pid(0) * W +: W] = fma(A[pid(0) * W +: W], s, B[pid(0) * W +: W]);
}
kernel gather(const f32 A[N], const i32 J[M], f32 B[M], const int W = 256) grid(cdiv(M, W))
{
    B[pid(0) * W +: W] = A[J[pid(0) * W +: W]];
}
kernel masked(const f32 A[N], f32 B[N], const int W = 256) grid(cdiv(N, W))
{
    int i = pid(0) * W;
    auto a = A[i +: W];
    store(B[i +: W], a * 3, mask = a > 0);
}
kernel scatter(const f32 A[M], const i32 J[M], f32 B[N], const int W = 256) grid(cdiv(M, W))
{
    B[J[pid(0) * W +: W]] = A[pid(0) * W +: W];
}
kernel dot_bytes(const i8 A[M, K], const i8 B[K], i32 C[M]) grid(M)
{
    tile<i32, 32> acc = 0;
    for (int k : range(0, K, 128))
        acc += sum(reshape((i32)A[pid(0), k +: 128] * (i32)B[k +: 128], 32, 4), axis = 1);
    C[pid(0)] = sum(acc);
}
kernel convert(const TA A[N], TB B[N], const type TA, const type TB, const int W = 256) grid(cdiv(N, W))
{
    B[pid(0) * W +: W] = cast(A[pid(0) * W +: W], TB);
}
"""
PLAIN = """
#include <stdint.h>
typedef __fp16 f16;
typedef __bf16 bf16;
typedef float f32;
typedef int32_t i32;
typedef int16_t i16;
typedef int8_t i8;
typedef uint8_t u8;
#define TO_f32(x) ((float)(x))
#define TO_i32(x) ((int32_t)(x))
#define GEMM(TA, TB, TC)                                                                            \\
    void gemm_##TA##_##TB(const TA *restrict A, const TB *restrict B, TC *restrict C, int M, int N, int K) \\
    {                                                                                               \\
        for (int m = 0; m < M; m++)                                                                 \\
            for (int k = 0; k < K; k++)                                                             \\
                for (int n = 0; n < N; n++)                                                         \\
                    C[m * N + n] += TO_##TC(A[m * K + k]) * TO_##TC(B[k * N + n]);                            \\
    }
GEMM(f32, f32, f32)
GEMM(bf16, bf16, f32)
GEMM(f16, f16, f32)
GEMM(i8, i8, i32)
GEMM(u8, i8, i32)
GEMM(i16, i16, i32)
#define CONVERT(TA, TB) void convert_##TA##_##TB(const TA *restrict A, TB *restrict B, int N) { for (int i = 0; i < N; i++) B[i] = (TB)A[i]; }
void saxpy(const f32 *restrict A, f32 *restrict B, f32 s, int N)
{
    for (int i = 0; i < N; i++)
        B[i] += A[i] * s;
}
void gather(const f32 *restrict A, const i32 *restrict J, f32 *restrict B, int M)
{
    for (int i = 0; i < M; i++)
        B[i] = A[J[i]];
}
void masked(const f32 *restrict A, f32 *restrict B, int N)
{
    for (int i = 0; i < N; i++)
        if (A[i] > 0)
            B[i] = A[i] * 3;
}
void scatter(const f32 *restrict A, const i32 *restrict J, f32 *restrict B, int M)
{
#pragma clang loop vectorize(assume_safety)
    for (int i = 0; i < M; i++)
        B[J[i]] = A[i];
}
i32 dot_bytes(const i8 *restrict A, const i8 *restrict B, int K)
{
    i32 sum = 0;
    for (int k = 0; k < K; k++)
        sum += A[k] * B[k];
    return sum;
}
CONVERT(f16, f32)
CONVERT(f32, f16)
CONVERT(bf16, f32)
CONVERT(u8, f32)
CONVERT(i8, i32)
"""
# bytes of an element that is stored; else 4
BYTES = {"shift1_u8": 1, "flip_u8": 1, "step2_u8": 1, "two_u8": 1, "rgb_u8": 1, "rgba_u8": 1, "store_rgb_u8": 1, "saturating_u8": 1, "table_u8": 1,
         "convert_f32_f16": 2, "convert_f32_bf16": 2}
PRODUCTS = [("f32", "f32", "f32"), ("bf16", "bf16", "f32"), ("f16", "f16", "f32"), ("i8", "i8", "i32"), ("u8", "i8", "i32"), ("i16", "i16", "i32")]
CONVERSIONS = [("f16", "f32"), ("f32", "f16"), ("bf16", "f32"), ("f32", "bf16"), ("u8", "f32"), ("i8", "i32")]
BRANCH = re.compile(r"^\s+(b\.\w+|b|cbn?z|tbn?z)\s+(?:.*,\s*)?(\.?\w+)$")
# Multiply-adds of one instruction; the first pattern that fits.
PRODUCTS_OF = [(r"bfmmla", 16), (r"[su]mmla", 32), (r"bfdot", 8), (r"[su]dot", 16), (r"mlal[bt]?\s+z\d+\.s", 4), (r"\bf?mla\s+v\d+\.8h", 8), (r"mlal", 4),
               (r"\bf?mla\s+v\d+\.4s", 4), (r"\bf?mla\s+v\d+\.2d", 2), (r"f?ml[as]\s+z.*\.s|f?mad\s+z.*\.s", 4), (r"fmadd\s+s|madd\s+w", 1)]
AFTER = re.compile(r"^(\s+st\w+\s.*\[(x\d+)\]), #(\d+)$")
LANE_BY_LANE = re.compile(r"\btbn?z\s+w\d+, #[1-9]|\bstr\s+q\d+, \[sp")  # a mask's bits, lanes by way of the stack: what is left of a row
WIDTH = {"b": 1, "h": 2, "s": 4, "d": 8, "q": 16, "w": 4, "x": 8}


def run(*words, stdin=None):
    return subprocess.run(words, input=stdin, check=True, capture_output=True, text=True).stdout


def functions(assembly):
    """name -> lines"""
    out, name = {}, None
    for line in assembly.split("\n"):
        line = line.split("//")[0].rstrip()
        label = re.match(r"^(\w[\w.]*):$", line)
        if label:
            name = label[1]
            out[name] = []
        elif name and (re.match(r"^\.L\w+:$", line) or (line.startswith("\t") and not line.startswith("\t."))):
            out[name].append(line)
    return out


def inner_loops(lines):
    """Bodies of loops in which there is no other; labels are left out."""
    labels = {line[:-1]: i for i, line in enumerate(lines) if line.endswith(":")}
    spans = []
    for i, line in enumerate(lines):
        to = BRANCH.match(line)
        if to and labels.get(to[2], i) < i:
            spans.append((labels[to[2]], i))
    inner = [s for s in spans if not any(s != t and s[0] <= t[0] and t[1] <= s[1] for t in spans)]
    return [[x for x in lines[a:b + 1] if not x.endswith(":")] for a, b in inner]


def bytes_of_store(line):
    m = re.match(r"^\s+([\w.]+)\s*(.*)$", line)
    op, rest = m[1], m[2]
    if re.match(r"st[1-4]$", op):
        regs = re.match(r"\{([^}]*)\}(\[\d+\])?", rest)
        first, last = re.findall(r"v(\d+)", regs[1])[0], re.findall(r"v(\d+)", regs[1])[-1]
        count = (int(last) - int(first)) % 32 + 1 if "-" in regs[1] else regs[1].count("v")
        lanes, kind = re.search(r"\.(\d*)([bhsd])", regs[1]).groups()
        return count * WIDTH[kind] * (1 if regs[2] else int(lanes or 1))
    if re.match(r"(st1[bhwd]|str)$", op) and re.search(r"\bz\d+", rest):  # vectors of 128 bits
        return 16 * WIDTH[op[3]] // WIDTH[re.search(r"z\d+\.([bhsd])", rest)[1]] if op != "str" else 16
    if op in ("stp", "str", "stur", "strb", "strh", "sturb", "sturh", "stnp"):
        if "[sp" in rest:
            return 0  # a spill
        each = 1 if op.endswith("rb") else 2 if op.endswith("rh") else WIDTH[rest[0]]
        return each * (2 if op in ("stp", "stnp") else 1)
    return 0


def products_of(line):
    return next((n for pattern, n in PRODUCTS_OF if re.search(pattern, line)), 0)


def cycles(body, mcpu):
    """Of a trip. Branches go, as llvm-mca knows no labels. A store that moves its address is two instructions: llvm-mca-19 has the next
    one wait 12 cycles for that."""
    text = "\n".join(AFTER.sub(r"\1\n\tadd\t\2, \2, #\3", x) for x in body if not BRANCH.match(x))
    said = run("llvm-mca-19", "-mtriple=aarch64-linux-gnu", "-mcpu=" + mcpu, "-mattr=+i8mm,+bf16,+fp16fml,+fullfp16", "-iterations=100",
               stdin=text)
    return int(re.search(r"Total Cycles:\s+(\d+)", said)[1]) / 100


def hot(lines, each, counts_products, mcpu, show):
    """(elements of a trip, cycles, instructions) of the loop that counts; None."""
    whole, others = [], []
    for body in inner_loops(lines):
        made = sum(map(products_of, body)) if counts_products else sum(map(bytes_of_store, body)) // each
        if made:
            (others if any(LANE_BY_LANE.search(line) for line in body) else whole).append((made, cycles(body, mcpu), len(body)))
        if show:
            print(f"-- {made} in a trip of {cycles(body, mcpu):.1f} cycles\n" + "\n".join(body))
    loops = whole or others
    return min((x for x in loops if 2 * x[0] >= max(loops)[0] or counts_products), key=lambda x: x[1] / x[0], default=None)


def kernels():
    """(name, file or text, kernel, constants, does it count products)"""
    with open(MOVE, encoding="utf-8") as f:
        names = [n for n in re.findall(r"^kernel (\w+)", f.read(), re.M) if n not in ("carried", "heavy", "tree", "table_u8", "table_f32")]
    yield from ((n, MOVE, n, [], False) for n in names)
    yield from ((n, None, n, [], n == "dot_bytes") for n in ("exps", "saxpy", "masked", "gather", "scatter", "dot_bytes"))
    yield from ((f"gemm_{a}_{b}", None, "gemm", [f"TA={a}", f"TB={b}", f"TC={c}"], True) for a, b, c in PRODUCTS)
    yield from ((f"convert_{a}_{b}", None, "convert", [f"TA={a}", f"TB={b}"], False) for a, b in CONVERSIONS)


def clang(source, mcpu):
    return functions(run("clang-19", "--target=aarch64-linux-gnu", "-O3", "-ffast-math", "-mcpu=" + mcpu, "-w", "-ffreestanding", "-nostdlibinc",
                         "-mllvm", "-disable-loop-idiom-memcpy", "-I" + ROOT, "-S", "-o", "-", source))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(ROOT, "build"))
    ap.add_argument("--tilec")
    ap.add_argument("--target", default="cpu:armv9-a")
    ap.add_argument("--mcpu", default="neoverse-v2")
    ap.add_argument("-k", default="")
    ap.add_argument("--md")
    ap.add_argument("--show")
    cx = ap.parse_args()
    tilec = cx.tilec or os.path.join(cx.build, "bin", "tilec")
    rows = []
    with tempfile.TemporaryDirectory(prefix="tile-arm-") as folder:
        for name, text in (("k.tile", KERNELS), ("plain.c", PLAIN)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        plain = clang(os.path.join(ROOT, "test", "bench", "bench_move_plain.c"), cx.mcpu)
        plain |= clang(os.path.join(folder, "plain.c"), cx.mcpu)
        for name, source, kernel, constants, products in kernels():
            if not re.search(cx.k, name):
                continue
            assembly = run(tilec, source or os.path.join(folder, "k.tile"), "--kernel", kernel, *(w for c in constants for w in ("--const", c)),
                           "--target", cx.target, "--emit=asm", "-o", "-")
            ours = [line for lines in functions(assembly).values() for line in lines]
            theirs = plain.get("plain_" + name) or plain.get(name)
            each = BYTES.get(name, 4)
            rows.append((name, *(lines and hot(lines, each, products, cx.mcpu, cx.show == name) for lines in (ours, theirs))))
    lines = ["| work | tilec, cycles | in a trip of | clang, cycles | in a trip of | ratio |", "| --- | --- | --- | --- | --- | --- |"]
    for name, ours, theirs in rows:
        cells = [f"{x[1] / x[0]:.3f} | {x[0]}" if x else "none |" for x in (ours, theirs)]
        ratio = f"{theirs[1] / theirs[0] / (ours[1] / ours[0]):.2f}" if ours and theirs else ""
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {ratio} |")
    print("\n".join(lines))
    if cx.md:
        with open(cx.md, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
