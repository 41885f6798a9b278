#!/usr/bin/env python3
"""tilec tune --model against what ptxas and AMD's metadata say of the same code: all that is rejected is over a limit, and all else fits.

    tune_model.py BIN SCRATCH ATTENTION [--all]      prints one line per failed check, then "N configurations, N rejected, N failed"

Each configuration that the model has ranked is compiled again, to PTX or to an hsaco, and the registers, threads and memory of that are held
against the limits below, which are those of NVIDIA's CUDA C++ Programming Guide (compute capability 9.0) and of AMD's CDNA 3 ISA guide. Of a
configuration that was rejected, the threads are counted from `warps`, and the reason names what is needed and what there is. ATTENTION is
examples/05_attention/attention.tile. Without ptxas, sm_90a is left out; the last line then says so. --all takes longer lists, and minutes.
"""
import json
import os
import re
import shutil
import subprocess
import sys

BIN, SCRATCH, ATTENTION = sys.argv[1:4]
ALL = "--all" in sys.argv
TILEC = os.path.join(BIN, "tilec")
failed = 0

GEMM = """
kernel gemm(const f16 A[M, K], const f16 B[K, N], f16 C[M, N], const int BM = 64, const int BN = 64, const int BK = 64)
    grid(cdiv(M, BM), cdiv(N, BN))
    tune(BM in {GEMM_BM}, BK in {GEMM_BK}, warps in {4, 64}, stages in {2})
{
    tile<f32, BM, BN> acc = 0;
    for (int k : range(0, K, BK)) pipeline
        acc = dot(A[pid(0) * BM +: BM, k +: BK], B[k +: BK, pid(1) * BN +: BN], acc);
    C[pid(0) * BM +: BM, pid(1) * BN +: BN] = (f16)acc;
}
"""
TRANSPOSE = """
kernel transpose(const f32 x[N, M], f32 y[M, N], const int B)
    grid(cdiv(N, B), cdiv(M, B))
    tune(B in {32, 256}, warps in {4, 32})
{
    y[pid(1) * B +: B, pid(0) * B +: B] = trans(x[pid(0) * B +: B, pid(1) * B +: B]);
}
"""
# The longer lists have kernels that ptxas takes long for.
LISTS = {"GEMM_BM": "32, 128" if ALL else "32", "GEMM_BK": "64, 512" if ALL else "64", "ATTENTION_BM": "32, 64" if ALL else "32",
         "ATTENTION_BN": "32, 256" if ALL else "32"}
# bytes of shared memory of a block, registers of a multiprocessor (AMD: of a lane of a SIMD, of which there are four), lanes of a warp
LIMITS = {"sm_90a": (232448, 65536, 32), "gfx942": (65536, 512, 64)}
MOST_THREADS = 1024


def check(ok, *what):
    global failed
    if not ok:
        failed += 1
        print("failed:", *what)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, cwd=SCRATCH)


def cuda_figures(code):
    """(registers, threads) of each variant, by ptxas."""
    r = run("ptxas", "-v", "-arch=sm_90a", code, "-o", os.devnull)
    check(r.returncode == 0, "ptxas", code, r.stderr)
    with open(os.path.join(SCRATCH, code), encoding="utf-8") as f:
        threads = [int(n) for n in re.findall(r"\.reqntid (\d+)", f.read())]
    return list(zip([int(n) for n in re.findall(r"Used (\d+) registers", r.stderr)], threads))


def amd_figures(code):
    notes = run("llvm-readelf", "--notes", code).stdout
    numbers = [[int(n) for n in re.findall(rf"\.{name}: +(\d+)", notes)] for name in ("vgpr_count", "max_flat_workgroup_size")]
    return list(zip(*numbers))


def rounded(n, step):
    return (n + step - 1) // step * step


def fits(target, registers, threads):
    _, there, lanes = LIMITS[target]
    if target.startswith("gfx"):
        return threads <= MOST_THREADS and rounded(registers, 8) * max(1, threads // lanes // 4) <= there
    return threads <= MOST_THREADS and rounded(registers, 8) * threads <= there


def check_ranked(source, target, config, options):
    """What the tools say of it is within the limits; shared memory, which is dynamic, as explain says it."""
    stage = "hsaco" if target.startswith("gfx") else "ptx"
    code = "code." + stage
    command = [source, "--target", target, "--config", config, *options]
    r = run(TILEC, *command, "--emit", stage, "-o", code)
    check(r.returncode == 0, source, target, config, "was ranked and does not compile:", r.stderr)
    figures = amd_figures(code) if stage == "hsaco" else cuda_figures(code)
    check(figures, source, config, "no figures")
    for registers, threads in figures:
        check(fits(target, registers, threads), source, target, config, f"was ranked with {registers} registers of {threads} threads")
    shared = re.findall(r"^shared memory +(\d+) bytes of (\d+)", run(TILEC, "explain", *command).stdout, re.M)
    check(shared, source, config, "explain does not say how much shared memory")
    for used, there in shared:
        check(int(there) == LIMITS[target][0] and int(used) <= int(there), source, target, config, f"was ranked with {used} bytes")


def check_rejected(source, target, config, reason):
    most, _, lanes = LIMITS[target]
    threads = int(re.search(r"warps=(\d+)", config)[1]) * lanes
    shared = re.search(r"needs (\d+) bytes of shared memory, the target has (\d+)$", reason)
    by_threads = threads > MOST_THREADS and f"a block of {threads} threads" in reason
    by_shared = shared and int(shared[1]) > int(shared[2]) == most
    check(by_threads or by_shared, source, target, config, "was rejected:", reason)
    return "threads" if by_threads else "shared"


def model(source, targets, options, args):
    file = source + ".json"
    r = run(TILEC, "tune", source, "--model", "--target", ",".join(targets), "-o", file, *options, *args)
    check(r.returncode == 0, r.stderr)
    with open(os.path.join(SCRATCH, file), encoding="utf-8") as f:
        rows = json.load(f)["results"]
    why, ranked = [], 0
    for row in rows:
        for config, time in row["times"].items():
            if isinstance(time, str):
                why.append((row["device"]["target"], check_rejected(source, row["device"]["target"], config, time)))
            else:
                check_ranked(source, row["device"]["target"], config, options)
                ranked += 1
        check(not isinstance(row["times"][row["best"]], str) and row["how"] == "model", row)
    return ranked, why


os.makedirs(SCRATCH, exist_ok=True)
with open(ATTENTION, encoding="utf-8") as f:
    attention = f.read().replace("    warps(8)\n", "    tune(BM in {ATTENTION_BM}, BN in {ATTENTION_BN}, warps in {4, 32})\n")
for name, text in ("gemm.tile", GEMM), ("transpose.tile", TRANSPOSE), ("attention.tile", attention):
    for word, values in LISTS.items():
        text = text.replace(word, values)
    with open(os.path.join(SCRATCH, name), "w", encoding="utf-8") as f:
        f.write(text)
targets = ["gfx942"] + (["sm_90a"] if shutil.which("ptxas") else [])
total, rejected = 0, []
for source, options, args in (
        ("gemm.tile", [], ["A=zeros[512,512]", "B=zeros[512,512]", "C=zeros[512,512]"]),
        ("transpose.tile", [], ["x=zeros[512,512]", "y=zeros[512,512]"]),
        ("attention.tile", ["--const", "BD=64"], ["Q=zeros[2,256,64]", "K=zeros[2,256,64]", "V=zeros[2,256,64]", "O=zeros[2,256,64]", "scale=1"])):
    ranked, why = model(source, targets, options, args)
    total += ranked + len(why)
    rejected += why
# The limit of threads was met by something. Shared memory rejects nothing: kernels exchange data in parts that fit.
for target in targets:
    check("threads" in {why for where, why in rejected if where == target}, target, "nothing was rejected for its threads", rejected)
print(f"{total} configurations, {len(rejected)} rejected, {failed} failed" + ("" if len(targets) == 2 else "; no ptxas: without sm_90a"))
sys.exit(failed > 0)
