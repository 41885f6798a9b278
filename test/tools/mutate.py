#!/usr/bin/env python3
"""Mutation over barriers, waits, fences, arrivals, and bytes that arrivals expect: does the emulator see each one that is missing or
wrong, and is each one needed? A copy to all programs of a cluster goes to the one alone that begins it instead; a wait until bulk stores are in
memory waits until they have read shared memory.

    mutate.py [--tilec TILEC] [--devices emu:sm_80,emu:gfx942] [-k SUBSTRING] [--rows SUBSTRING] [--every N] [-v]

Runs kernels with --check under all schedules, first as they are, then with each of their barriers, waits for copies and
products, ends of groups of copies, fences, and arrivals and waits at barriers that count left out in turn, and with more bytes expected
and fewer (TILE_EMU_DROP_BARRIER). On emu:sm_90a and emu:sm_100a, which are always among the devices, only kernels for warpgroups and for tensor memory
run; there, asking for tensor memory and giving it back are left out, too. A mutant is
    reported    the run fails: a race, an uninitialised read, threads that diverge;
    redundant   nothing is reported and the outputs are those of the kernel as it is: what happens before what is not
                changed by the barrier, so synchronize could have done without it;
    unmet       nobody came to the barrier: nothing was tried (not counted);
    missed      nothing is reported, but the outputs are others: a hole in the detectors.
Prints one line per kernel and device and the score; exit 1 when any is missed or more than 5% are redundant.
--every N tries one mutant in N of the kernels for warpgroups and tensor memory, other ones in the next kernel; what is redundant
does not count then, as a part may have more of it than the whole.
--rows takes the rows of the conformance suite whose names contain SUBSTRING ("" is all of them; minutes) and needs NumPy.
"""
import argparse
import glob
import importlib
import itertools
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
examples = os.path.join(here, "..", "..", "examples")
MOST_REDUNDANT = 0.05

GEMM = """kernel gemm(const f16 A[M, K], const f16 B[K, N], f32 C[M, N]) grid(1)
          {
              tile<f32, 64, 64> acc = 0;
              for (int k : range(0, K, 32)) pipeline
                  acc = dot(A[0 +: 64, k +: 32], B[k +: 32, 0 +: 64], acc);
              C[0 +: 64, 0 +: 64] = acc;
          }"""
WARPGROUPS = """kernel gemm(const f16 A[M, K], const f16 B[K, N], f32 C[M, N]) grid(cdiv(M, {m})) {clause}
                {{
                    int m = pid(0) * {m};
                    tile<f32, {m}, 64> acc = 0;
                    for (int k : range(0, K, 32)) {hint}
                        acc = dot(A[m +: {m}, k +: 32], {b}, acc);
                    C[m +: {m}, 0 +: 64] = acc;
                }}"""
# what is stored in bulk, again and again from one buffer; the last trips' rows are those of others, too
STORES = """kernel gemm(const f16 A[M, K], const f16 B[K, N], f16 C[M, N]) grid(1)
            {{
                int down = cdiv(M, 128);
                for (int t : range(pid(0), down * cdiv(N, 128), npid(0))) {{
                    tile<f32, 128, 128> acc = 0;
                    for (int k : range(0, K, 32)) {hint}
                        acc = dot(A[min(t % down * 128, M - 128) +: 128, k +: 32], B[k +: 32, t / down * 128 +: 128], acc);
                    C[min(t % down * 128, M - 128) +: 128, t / down * 128 +: 128] = (f16)acc;
                }}
            }}"""
# of 8 bits: both operands with memory along K
NARROW = """kernel gemm(const {t} A[M, K], const {t} B[N, K], {acc} C[M, N]) grid(cdiv(M, {m}))
            {{
                int m = pid(0) * {m};
                tile<{acc}, {m}, 64> acc = 0;
                for (int k : range(0, K, 64)) {hint}
                    acc = dot(A[m +: {m}, k +: 64], trans(B[0 +: 64, k +: 64]), acc);
                C[m +: {m}, 0 +: 64] = acc;
            }}"""
# loops behind each other have the same bytes of shared memory; so has what comes before, and a loop in a loop makes its barriers again
REUSE = """kernel reuse(const f32 x[M, N], const f16 A[M, K], const f16 B[K, N], f32 C[M, N]) grid(1)
           {
               auto t = cumsum(x[0 +: 128, 0 +: 64], axis = 0);
               tile<f32, 128, 64> v = 0;
               for (int k : range(0, K, 32)) pipeline
                   v = dot(A[0 +: 128, k +: 32], B[k +: 32, 0 +: 64], v);
               tile<f32, 128, 64> w = t;
               for (int k : range(0, K, 64)) pipeline
                   w = dot(A[0 +: 128, k +: 64], B[k +: 64, 0 +: 64] * 2, w);
               C[0 +: 128, 0 +: 64] = v + w;
           }"""
NESTED = """kernel nested(const f16 A[M, K], const f16 B[K, N], f32 C[M, N]) grid(1)
            {
                for (int m : range(0, M, 64)) {
                    tile<f32, 64, 64> acc = 0;
                    for (int k : range(0, K, 32)) pipeline
                        acc = dot(A[m +: 64, k +: 32], B[k +: 32, 0 +: 64], acc);
                    C[m +: 64, 0 +: 64] = acc;
                }
            }"""
ATTENTION = """kernel attention(const f16 Q[M, D], const f16 K[N, D], const f16 V[N, D], f32 O[M, D],
                                const int BD, const int BM, const int BN) grid(1)
               {
                   auto q = Q[0 +: BM, 0 +: BD];
                   tile<f32, BM> total = 0;
                   tile<f32, BM, BD> acc = 0;
                   for (int n : range(0, N, BN)) {
                       auto p = (row(n + iota(BN)) < N) ? exp(dot(q, trans(K[n +: BN, 0 +: BD]))) : 0.0;
                       total += sum(p, axis = 1);
                       acc = dot((f16)p, V[n +: BN, 0 +: BD], acc);
                   }
                   O[0 +: BM, 0 +: BD] = acc / col(total);
               }"""

# name: (source or path, kernel, options and arguments, outputs)
KERNELS = {
    "vector_add": ("01_vector_add/vector_add.tile", "vector_add",
                   "--const B=256 x=normal(1)[1000] y=normal(2)[1000] z=nan[1000]", "z"),
    "softmax": ("02_softmax/softmax.tile", "softmax", "--const B=512 x=normal(1)[3,500] y=nan[3,500]", "y"),
    "matmul": ("03_matmul/matmul.tile", "matmul",
               "--const BM=32 --const BN=32 --const BK=16 A=iota[40,48] B=normal(2)[48,36] C=nan[40,36]", "C"),
    "layernorm": ("04_layernorm/layernorm.tile", "layernorm",
                  "--const B=512 x=normal(1)[3,500] w=normal(2)[500] b=normal(3)[500] y=nan[3,500]", "y"),
    "attention": ("05_attention/attention.tile", "attention",
                  "--const BD=16 --const BM=16 --const BN=16 Q=normal(1)[1,20,16] K=normal(2)[1,40,16] "
                  "V=normal(3)[1,40,16] O=nan[1,20,16] scale=0.25", "O"),
    "persistent": ("06_persistent/persistent.tile", "persistent",
                   "--const BM=32 --const BN=32 --const BK=16 --grid 2 A=normal(1)[80,50] B=normal(2)[50,36] C=nan[80,36]", "C"),
    "split_k": ("07_split_k/split_k.tile", "split_k",
                "--const BM=32 --const BN=32 --const BK=16 A=normal(1)[40,100] B=normal(2)[100,20] C=nan[40,20] parts=nan[3,40,20] "
                "arrived=zeros[2,1]", "C"),
    "transpose": ("kernel transpose(const f32 x[M, N], f32 y[N, M]) grid(1) { y[0 +: 64, 0 +: 64] = trans(x[0 +: 64, 0 +: 64]); }",
                  "transpose", "x=normal(1)[64,64] y=nan[64,64]", "y"),
    "transpose_loop": ("""kernel transpose_loop(const f32 x[M, N], f32 y[N, M]) grid(1)
                          {
                              for (int i : range(0, N, 32))
                                  y[i +: 32, 0 +: 64] = trans(x[0 +: 64, i +: 32]);
                          }""", "transpose_loop", "x=normal(1)[64,128] y=nan[128,64]", "y"),
    "columns": ("kernel columns(const f32 x[M, N], f32 y[N]) grid(1) { y[0 +: 64] = sum(x[0 +: 64, 0 +: 64], axis = 0); }",
                "columns", "x=iota[64,64] y=nan[64]", "y"),
    "scan": ("kernel scan(const f32 x[N], f32 y[N]) grid(1) { y[0 +: 1024] = cumsum(x[0 +: 1024], axis = 0); }",
             "scan", "x=iota[1024] y=nan[1024]", "y"),
    **{f"gemm{n}": (GEMM, "gemm", f"--stages {n} A=normal(1)[40,160] B=normal(2)[160,64] C=nan[40,64]", "C")
       for n in range(1, 6)},
    "gemm_odd": (GEMM, "gemm", "--stages 3 A=normal(1)[31,105] B=normal(2)[105,59] C=nan[31,59]", "C"),
    "attention16": (ATTENTION, "attention", "--stages 3 --const BD=64 --const BM=64 --const BN=32 "
                    "Q=normal(1)[40,64] K=normal(2)[136,64] V=normal(3)[136,64] O=nan[40,64]", "O"),
    "read_back": ("""kernel read_back(f32 x[N]) grid(1)
                     {
                         for (int i = 0; i < 3; i += 1)
                             x[0 +: 512] = x[1 +: 512] + 1;
                     }""", "read_back", "x=iota[512]", "x"),
}

# The same, of Hopper alone: operands by bulk copies, computed, by the threads' loads (what is not aligned), from registers; with a
# producer of its own.
HOPPER = {
    **{f"warpgroups{n}": (WARPGROUPS.format(m=64, hint="pipeline", clause="", b="B[k +: 32, 0 +: 64]"), "gemm",
                          f"--stages {n} A=normal(1)[104,320] B=normal(2)[320,64] C=nan[104,64]", "C") for n in range(1, 5)},
    "warpgroups_alone": (WARPGROUPS.format(m=64, hint="pipeline specialize", clause="", b="B[k +: 32, 0 +: 64]"), "gemm",
                         "--stages 3 A=normal(1)[104,320] B=normal(2)[320,64] C=nan[104,64]", "C"),
    **{f"warpgroups_cluster{n}": (WARPGROUPS.format(m=64, hint=hint, clause="cluster(2)", b="B[k +: 32, 0 +: 64]"), "gemm",
                                  f"--stages {n} A=normal(1)[104,320] B=normal(2)[320,64] C=nan[104,64]", "C")
       for n, hint in ((2, "pipeline"), (3, "pipeline specialize"))},
    **{f"warpgroups_stores{name}": (STORES.format(hint=hint), "gemm",
                                    f"--warps 8 --stages 3 A=normal(1)[232,96] B=normal(2)[96,136] C=nan[232,136]", "C")
       for name, hint in (("", "pipeline"), ("_alone", "pipeline specialize"))},
    "warpgroups_computed": (WARPGROUPS.format(m=64, hint="pipeline", clause="", b="B[k +: 32, 0 +: 64] * 2"), "gemm",
                            "--stages 3 A=normal(1)[104,320] B=normal(2)[320,64] C=nan[104,64]", "C"),
    "warpgroups_loads": (WARPGROUPS.format(m=64, hint="pipeline", clause="", b="B[k +: 32, 0 +: 64]"), "gemm",
                         "--stages 3 A=normal(1)[40,105] B=normal(2)[105,59] C=nan[40,59]", "C"),
    **{f"warpgroups_attention{name}": (ATTENTION.replace("N, BN))", f"N, BN)) pipeline {hint}"), "attention",
                                       "--stages 3 --const BD=64 --const BM=64 --const BN=32 "
                                       "Q=normal(1)[40,64] K=normal(2)[200,64] V=normal(3)[200,64] O=nan[40,64]", "O")
       for name, hint in (("", ""), ("_alone", "specialize"))},
    "warpgroups_turns": (NARROW.format(t="i8", acc="i32", m=128, hint="pipeline specialize(2)"), "gemm",
                         "--stages 2 --warps 8 A=iota[128,192] B=iota[64,192] C=zeros[128,64]", "C"),
    "warpgroups_attention_wide": (ATTENTION.replace("N, BN))", "N, BN)) pipeline specialize"), "attention",
                                  "--warps 8 --stages 2 --const BD=128 --const BM=128 --const BN=64 "
                                  "Q=normal(1)[40,128] K=normal(2)[200,128] V=normal(3)[200,128] O=nan[40,128]", "O"),
    **{f"warpgroups_{t}{name}": (NARROW.format(t=t, acc=acc, m=m, hint=hint), "gemm",
                                 f"--warps {m // 16} --stages {stages} A={a}[104,{k}] B={b}[64,{k}] C={empty}[104,64]", "C")
       for t, acc, a, b, empty in (("f8e4m3", "f32", "normal(1)", "normal(2)", "nan"), ("i8", "i32", "iota", "iota", "zeros"))
       for name, m, stages, k, hint in (("", 64, 2, 320, "pipeline"), ("_alone", 128, 4, 640, "pipeline specialize"))},
    "warpgroups_reuse": (REUSE, "reuse", "--stages 3 x=normal(1)[128,64] A=normal(2)[128,160] B=normal(3)[160,64] C=nan[128,64]", "C"),
    "warpgroups_nested": (NESTED, "nested", "--stages 3 A=normal(2)[128,160] B=normal(3)[160,64] C=nan[128,64]", "C"),
}
# Of Blackwell alone: 128 rows or 64, sums in tensor memory; two strips of rows, read by eight warps; onto what is there; two products, one
# after the other; attention, whose sums stay there and are rescaled
ONTO = """kernel onto(const f16 A[M, K], const f16 B[K, N], f32 C[M, N]) grid(1)
          {
              tile<f32, 128, 64> acc = C[0 +: 128, 0 +: 64];
              for (int k : range(0, K, 32)) pipeline
                  acc = dot(A[0 +: 128, k +: 32], B[k +: 32, 0 +: 64], acc);
              tile<f32, 128, 64> more = 0;
              for (int k : range(0, K, 32)) pipeline
                  more = dot(A[0 +: 128, k +: 32], B[k +: 32, 0 +: 64], more);
              C[0 +: 128, 0 +: 64] = acc + more;
          }"""
ONLINE = """kernel attention(const f16 Q[M, D], const f16 K[N, D], const f16 V[N, D], f32 O[M, D]) grid(1)
            {{
                auto q = Q[0 +: {m}, 0 +: 64];
                tile<f32, {m}> greatest = -inf;
                tile<f32, {m}> total = 0;
                tile<f32, {m}, 64> acc = 0;
                for (int n : range(0, N, {n})) pipeline {hint} {{
                    auto s = (row(n + iota({n})) < N) ? dot(q, trans(K[n +: {n}, 0 +: 64])) : -inf;
                    auto next = max(greatest, max(s, axis = 1));
                    auto p = exp(s - col(next));
                    auto rescale = exp(greatest - next);
                    total = total * rescale + sum(p, axis = 1);
                    acc = dot((f16)p, V[n +: {n}, 0 +: 64], acc * col(rescale));
                    greatest = next;
                }}
                O[0 +: {m}, 0 +: 64] = acc / col(total);
            }}"""
# with scales of blocks, which that thread brings to tensor memory: loaded by threads ahead of time, or computed
SCALED = """kernel gemm(const f8e4m3 A[M, K], const u8 sa[M, K / 32], const f8e4m3 B[N, K], const u8 sb[N, K / 32], f32 C[M, N]) grid(1)
            {{
                tile<f32, 128, 128> acc = 0;
                for (int k : range(0, K, 128)) pipeline {hint}
                    acc = dot_scaled(A[0 +: 128, k +: 128], sa[0 +: 128, k / 32 +: 4]{more}, trans(B[0 +: 128, k +: 128]),
                                     sb[0 +: 128, k / 32 +: 4], acc);
                C[0 +: 128, 0 +: 128] = acc;
            }}"""
# the same of 64 columns, whose scales are parts of pieces, one tile after the other
SCALED_TILES = """kernel gemm(const f8e4m3 A[M, K], const u8 sa[M, K / 32], const f8e4m3 B[N, K], const u8 sb[N, K / 32], f32 C[M, N])
                      grid(cdiv(M, 128), cdiv(N, 64)) persistent(1)
                  {
                      tile<f32, 128, 64> acc = 0;
                      for (int k : range(0, K, 64)) pipeline
                          acc = dot_scaled(A[pid(0) * 128 +: 128, k +: 64], sa[pid(0) * 128 +: 128, k / 32 +: 2],
                                           trans(B[pid(1) * 64 +: 64, k +: 64]), sb[pid(1) * 64 +: 64, k / 32 +: 2], acc);
                      C[pid(0) * 128 +: 128, pid(1) * 64 +: 64] = acc;
                  }"""
# two programs of a cluster do their products together: one, or one tile after the other; onto zeros, or onto what is there
PAIR = """kernel pair(const f16 A[M, K], const f16 B[K, N], f32 C[M, N]) grid(cdiv(M, 128)) cluster(2)
          {{
              int m = pid(0) * 128;
              {loop} {{
                  tile<f32, 128, 64> acc = {start};
                  for (int k : range(0, K, 64)) pipeline {hint}
                      acc = dot(A[m +: 128, k +: 64], B[k +: 64, n +: 64], acc);
                  C[m +: 128, n +: 64] = acc;
              }}
          }}"""
BLACKWELL = {
    **{f"tensor_pair{name}": (PAIR.format(loop=loop, start=start, hint=hint), "pair",
                              f"--warps 4 --stages 3 A=normal(1)[232,320] B=normal(2)[320,{n}] C={c}[232,{n}]", "C")
       for name, loop, start, hint, n, c in (
           ("", "const int n = 0;", "0", "specialize(0)", 64, "nan"),
           ("_alone", "for (int n : range(0, N, 64))", "0", "specialize", 128, "nan"),
           ("_onto_alone", "for (int n : range(0, N, 64))", "C[m +: 128, n +: 64]", "specialize", 128, "zeros"))},
    **{f"tensor_scaled{name}": (SCALED.format(hint=hint, more=more), "gemm",
                                f"--warps {warps} --stages {stages} A=normal(1)[104,320] sa=full(126)[104,10] B=normal(2)[120,320] "
                                "sb=full(128)[120,10] C=nan[104,120]", "C")
       for name, hint, more, warps, stages in (("", "", "", 4, 3), ("_computed", "", " | 1", 8, 2))},
    "tensor_scaled_tiles": (SCALED_TILES, "gemm", "--warps 8 --stages 3 --grid 2 A=normal(1)[104,192] sa=full(126)[104,6] B=normal(2)[136,192] "
                            "sb=full(128)[136,6] C=nan[104,136]", "C"),
    "tensor_half": (WARPGROUPS.format(m=64, hint="pipeline specialize", clause="", b="B[k +: 32, 0 +: 64]"), "gemm",
                    "--warps 4 --stages 3 A=normal(1)[104,320] B=normal(2)[320,64] C=nan[104,64]", "C"),
    **{f"tensor{n}": (WARPGROUPS.format(m=128, hint=hint, clause="", b="B[k +: 32, 0 +: 64]"), "gemm",
                      f"--warps 4 --stages {n} A=normal(1)[232,320] B=normal(2)[320,64] C=nan[232,64]", "C")
       for n, hint in ((1, "pipeline"), (2, "pipeline"), (3, "pipeline specialize"), (4, "pipeline specialize(0)"))},
    "tensor_cluster": (WARPGROUPS.format(m=128, hint="pipeline specialize", clause="cluster(2)", b="B[k +: 32, 0 +: 64]"), "gemm",
                       "--warps 4 --stages 3 A=normal(1)[232,320] B=normal(2)[320,64] C=nan[232,64]", "C"),
    "tensor_stores_alone": (STORES.format(hint="pipeline specialize"), "gemm",
                            "--warps 8 --stages 3 A=normal(1)[232,224] B=normal(2)[224,136] C=nan[232,136]", "C"),
    **{f"tensor_attention{name}": (ONLINE.format(m=m, n=n, hint=hint), "attention", f"--stages 2 --warps 4 Q=normal(1)[{m - 28},64] K=normal(2)[{4 * n + 8},64] "
                                   f"V=normal(3)[{4 * n + 8},64] O=nan[{m - 28},64]", "O")
       for name, m, n, hint in (("", 128, 32, "specialize(0)"), ("_alone", 128, 32, "specialize"), ("_half", 64, 64, "specialize"))},
    "tensor_onto": (ONTO, "onto", "--warps 4 --stages 3 A=normal(1)[128,160] B=normal(2)[160,64] C=zeros[128,64]", "C"),
    **{f"tensor_{t}": (NARROW.format(t=t, acc=acc, m=256, hint="pipeline specialize"), "gemm",
                       f"--warps 8 --stages 3 A={a}[232,320] B={b}[64,320] C={empty}[232,64]", "C")
       for t, acc, a, b, empty in (("f8e4m3", "f32", "normal(1)", "normal(2)", "nan"), ("i8", "i32", "iota", "iota", "zeros"))},
}
KERNELS.update(HOPPER)
KERNELS.update(BLACKWELL)


def run(tilec, words, folder, outputs, drop):
    """(exit status, stderr, {output: bytes})"""
    env = dict(os.environ)
    env.pop("TILE_EMU_DROP_BARRIER", None)
    if drop is not None:
        env["TILE_EMU_DROP_BARRIER"] = str(drop)
    saves = []
    for name in outputs:
        saves += ["--save", f"{name}={os.path.join(folder, name + '.out.npy')}"]  # an argument's own file stays
    r = subprocess.run([tilec, "run", *words, "--check", "--schedules", "all", *saves], env=env, capture_output=True,
                       text=True, timeout=300)
    got = {}
    for name in outputs:
        path = os.path.join(folder, name + ".out.npy")
        if r.returncode == 0 and os.path.exists(path):
            with open(path, "rb") as f:
                got[name] = f.read()
    return r.returncode, r.stderr.strip(), got


def words_of(name, device, folder):
    source, kernel, arguments, _ = KERNELS[name]
    path = os.path.join(examples, source)
    if not source.endswith(".tile"):
        path = os.path.join(folder, name + ".tile")
        with open(path, "w", encoding="utf-8") as f:
            f.write(source + "\n")
    return [path, "--kernel", kernel, "--device", device, *arguments.split()]


def rows_of(part, device, folder):
    """(name, words, outputs) of conformance rows."""
    sys.path.insert(0, os.path.join(here, "..", "conformance"))
    import run as conformance
    import values
    for path in sorted(glob.glob(os.path.join(here, "..", "conformance", "rows_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    for row in conformance.ROWS:
        if part not in row.name or row.big:
            continue
        words = conformance.command(row, conformance.expand(row, [device], 0, 1)[0][1], "tilec", folder)[2:]
        want = row.want({k: values.wide(v) if isinstance(v, values.Arr) else v for k, v in row.args.items()})
        yield row.name, words, list(want)


def mutate(tilec, name, device, words, outputs, folder, verbose, numbers):
    """[what became of each mutant], or a text when the kernel itself fails."""
    status, text, want = run(tilec, words, folder, outputs, None)
    if status != 0:
        return text
    fates = []
    for number in numbers:
        status, text, got = run(tilec, words, folder, outputs, number)
        if "there is none to drop" in text:
            return fates
        fates.append("unmet" if "no thread reached the barrier" in text else "reported" if status == 3 else "redundant" if status == 0 and got == want else "missed")
        if verbose or fates[-1] in ("redundant", "missed"):
            print(f"{name} {device} barrier {number}: {fates[-1]}: {text[:200]}")
    return fates


def run_kernels(o, kernels, device, folder, total, every):
    """Adds to the total; returns how many kernels fail as they are."""
    broken = 0
    for k, (name, words, outputs) in enumerate(kernels):
        fates = mutate(o.tilec, name, device, words, outputs, folder, o.v, itertools.count(k % every, every))
        if isinstance(fates, str):
            print(f"{name} {device}: fails as it is: {fates[:300]}")
            broken += 1
            continue
        for fate in fates:
            total[fate] += 1
        if fates or o.rows is None:
            print(f"{name} {device}: {len(fates)} barriers, {fates.count('reported')} reported")
    return broken


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tilec", default="build/bin/tilec")
    p.add_argument("--devices", default="emu:sm_80,emu:gfx942")
    p.add_argument("-k", default="")
    p.add_argument("--rows")
    p.add_argument("--every", type=int, default=1)
    p.add_argument("-v", action="store_true")
    o = p.parse_args()
    broken = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        mine = [(["emu:sm_90a"], HOPPER, o.every), (["emu:sm_100a"], BLACKWELL, o.every)] if o.rows is None else []
        for devices, names, every in [(o.devices.split(","), [k for k in KERNELS if k not in HOPPER and k not in BLACKWELL], 1), *mine]:
            total = {"reported": 0, "redundant": 0, "unmet": 0, "missed": 0}
            for device in devices:
                if o.rows is None:
                    kernels = [(k, words_of(k, device, folder), KERNELS[k][3].split()) for k in names if o.k in k]
                else:
                    kernels = rows_of(o.rows, device, folder)
                broken += run_kernels(o, kernels, device, folder, total, every)
            n = sum(total.values()) - total["unmet"]
            bad += total["missed"] + (every == 1 and total["redundant"] > MOST_REDUNDANT * n)
            if devices:
                print(f"{','.join(devices)}: {n} mutants: {total['reported']} reported, {total['redundant']} redundant, "
                      f"{total['missed']} missed; {broken} kernels fail as they are")
    return 1 if broken or bad else 0


if __name__ == "__main__":
    sys.exit(main())
