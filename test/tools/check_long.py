#!/usr/bin/env python3
"""The long checks: the full product of axes that `./bootstrap test` takes a part of. Hours; each part says how it went.

    check_long.py [--root DIR] [--jobs N] [PART..]        PART: a word of a part's name; without any, all parts

The last result of each part stands in test/LONG.md, with the commit it is of; this command writes it anew.
"""
import argparse
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPUS = "sm_75,sm_80,sm_86,sm_89,sm_90,sm_90a,sm_100,sm_100f,sm_100a,sm_103a,sm_110a,sm_120,sm_120f,sm_120a,sm_121a,gfx906,gfx908,gfx90a,gfx942,gfx950,gfx1030,gfx1100,gfx1101,gfx1102,gfx1150,gfx1151,gfx1152,gfx1153,gfx1200,gfx1201,gfx1250,gfx10-3-generic,gfx11-generic,gfx12-generic,gfx9-4-generic"
EMULATED = ",".join("emu:" + t for t in GPUS.split(","))
RUN, RING, LANGUAGE, IR = "test/conformance/run.py", "test/tools/ring.py", "test/fuzz/language.py", "test/fuzz/tile_ir.py"
ROWS = "test/fuzz/chunked_rows.py"
SEQUENCES, OTHER, TORCH = "test/tools/sequences.py", "test/tools/other_cpu.py", "test/library/torch_gradients.py"

# name, script and its words. Scripts end with a line "N passed, N failed" or the like, and exit 1 when anything failed.
PARTS = [
    ("conformance-targets", "each row on ref, cpu and every emulated target", [RUN, "--devices", "ref,cpu,emu:each"]),
    ("conformance-warps", "each row with 1, 2, 4 and 8 warps", [RUN, "--devices", "ref,emu:all"]),
    ("conformance-stages", "each row with 1 to 5 stages", [RUN, "--devices", "ref,emu:stages"]),
    ("cpu-levels", "every operation, type and rank on every CPU level", ["test/tools/levels.py", "--long"]),
    ("conformance-levels", "each row on every CPU level of the machine", [RUN, "--devices", "cpu:x86-64-v2,cpu:x86-64-v3,cpu:x86-64-v4,cpu:x86-64-v4-vnni,cpu:x86-64-v4-zen4,emu:sm_80@x86-64-v2"]),
    ("other-cpu-v4", "each row on an emulated CPU with AVX-512", [OTHER, "--devices", "cpu:x86-64-v4"]),
    ("other-cpu-v4-gpus", "one row in forty on emulated GPUs, on an emulated CPU with AVX-512",
     [OTHER, "--devices", "emu:sm_80@x86-64-v4,emu:gfx942@x86-64-v4", "--every", "40"]),
    ("other-cpu-v2", "each row on an emulated CPU without AVX", [OTHER, "--devices", "cpu:x86-64-v2", "--model", "corei5_lynnfield_750"]),
    ("other-cpu-aarch64", "each row on an emulated CPU of aarch64", [OTHER, "--devices", "cpu:aarch64"]),
    ("other-cpu-armv8", "products on emulated CPUs of aarch64 with dot products of bytes",
     [OTHER, "--devices", "cpu:armv8.4-a,cpu:armv8.6-a", "-k", "dot|gemm|quant|q[48]_|conv"]),
    ("other-cpu-sve2", "each row on an emulated CPU of aarch64 with SVE2 of 256 bits",
     [OTHER, "--devices", "cpu:armv9-a", "--model", "max,sve256=on"]),
    ("other-cpu-aarch64-gpus", "one row in ten on emulated GPUs, on an emulated CPU of aarch64",
     [OTHER, "--devices", "emu:sm_80@aarch64,emu:gfx942@aarch64", "--every", "10"]),
    ("ring-warps", "each row in the ring on every target, 1, 4 and 8 warps", [RING, "--devices", "cpu," + EMULATED, "--warps", "1,4,8"]),
    ("ring-layouts", "each row in the ring under three layouts drawn at random", [RING, "--devices", "emu:sm_80,emu:sm_90a,emu:gfx942,emu:gfx1100", "--seeds", "1,2,3"]),
    ("ring-seeds", "each row in the ring under 50 layouts drawn at random, targets and warps going round",
     [RING, "--devices", "emu:sm_80,emu:sm_90a,emu:gfx942,emu:gfx1100", "--warps", "1,2,4,8", "--seeds", ",".join(map(str, range(1, 51))), "--round"]),
    ("ring-products", "products and attention in the ring in every way that Hopper's loops are run, under all schedules",
     [RING, "--products", "--devices", "emu:sm_90a", "--warps", "0", "--schedules", "all"]),
    ("ring-products-spread", "those of few rows and columns, whose warps take parts of k or of N, on GPUs of every kind",
     [RING, "--products", "--devices", "emu:sm_80,emu:gfx942,emu:gfx1100", "--warps", "0", "--schedules", "all", "-k", "along_[kn]_.*each_c1"]),
    ("ring-products-seeds", "one in 23 of these under 50 layouts drawn at random",
     [RING, "--products", "--devices", "emu:sm_90a", "--warps", "0", "--seeds", ",".join(map(str, range(1, 51))), "--every", "23"]),
    ("targets-library", "each kernel of the library through ptxas for sm_90a: no spills, no notes on products of warpgroups",
     ["test/tools/compile_rows.py", "--strict", "--targets", "sm_90a", "-k", "std_"]),
    ("targets-tools", "each kernel through the tools of every target", ["test/tools/compile_rows.py", "--targets", GPUS]),
    ("programs", "random programs of the language against NumPy", [LANGUAGE, "100000", "3000", "--per-program", "4"]),
    ("programs-products", "random programs of large products in loops against NumPy, on Hopper", [LANGUAGE, "100000", "500", "--products", "--per-program", "3"]),
    ("programs-blackwell", "the same on Blackwell, with scales of blocks",
     [LANGUAGE, "100000", "300", "--products", "--per-program", "2", "--ways", "emu:sm_100a/w4/c,emu:sm_100a/w8/t3/c,emu:sm_120a/w4/c,emu:sm_120a/w8/t4/c"]),
    ("kernels", "random kernels of tile IR against ref", [IR, "100000", "2000", "--per-kernel", "4"]),
    ("chunked-rows", "random kernels on rows that are cut into chunks against NumPy", [ROWS, "100000", "2000"]),
    ("library-torch", "kernels of the library beside PyTorch, forward and backward, 40 shapes a case", [TORCH, "--shapes", "40", "--devices", "cpu,ref,emu:sm_90a,emu:gfx942"]),
    ("user-kernels", "random kernels as users write them against NumPy, on every kind of device",
     ["test/fuzz/user_kernels.py", "100000", "5000", "--ways", "cpu,cpu/s,cpu:x86-64-v2,cpu:x86-64-v3,ref,emu:sm_80/w4,emu:sm_90a/w4,emu:sm_100a/w4,emu:sm_120a/w8,emu:gfx942/w4,emu:gfx950/w4/c,emu:gfx1100/w2"]),
    ("api-sequences", "10000 random sequences of API calls under ASan, 2000 under TSan", [SEQUENCES]),
    ("mutate", "each barrier, wait, fence and arrival left out, of all kernels for warpgroups and tensor memory, too",
     ["test/tools/mutate.py"]),
    ("growth", "each form of the language, doubled, for each target: at most 2.5 times the cost; the table goes to test/GROWTH.md",
     ["test/tools/growth.py", "build/bin/tilec", "--md", "test/GROWTH.md"]),
    ("cache", "the cache with each byte of an entry damaged, and many processes killed and stopped", ["test/tools/cache_attack.py", "build/bin", "build/cache-attack", "--long"]),
    ("control-flow", "random control flow against a small interpreter", ["test/fuzz/control_flow.py", "100000", "1000"]),
]
TAKES_JOBS = (RUN, RING, LANGUAGE, IR, ROWS, SEQUENCES, OTHER)
HEAD = """# What `./bootstrap check-long` said last

The whole product of axes, in parts that take from minutes to hours; `./bootstrap check-long PART` runs one and writes its line.
By hand, as root: `test/tools/clean_machine.sh` (the README's commands in a fresh chroot) and `test/tools/clean_packages.sh` (the `.deb` packages, the
tarball and the wheel in one: programs in C, C++ and Python by CMake, Make and Meson; on Debian 12 8 ran, 0 failed).

| part | what | result | minutes | commit |
| --- | --- | --- | --- | --- |
"""


def run(words, cx):
    """(exit status, last line of the output)"""
    if words[0] in TAKES_JOBS:
        words = [*words, "--jobs", str(cx.jobs)]
    env = {**os.environ, "PATH": os.path.join(cx.root, "build", "bin") + os.pathsep + os.environ["PATH"]}
    p = subprocess.Popen([sys.executable, "-W", "ignore", *words], cwd=cx.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    last = ""
    for line in p.stdout:
        last = line.strip() or last
        print("    " + line.rstrip()[:300], flush=True)
    return p.wait(), last


def recorded(path):
    """Lines of the table by part."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as f:
        return {m[1]: m[0] for m in re.finditer(r"^\| ([a-z0-9-]+) \|.*$", f.read(), re.M) if m[1] != "part"}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default=ROOT)
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("parts", nargs="*")
    cx = ap.parse_args()
    chosen = [p for p in PARTS if not cx.parts or any(word in p[0] for word in cx.parts)]
    if not chosen:
        sys.exit("no such part; known: " + " ".join(p[0] for p in PARTS))
    commit = subprocess.run(["git", "-C", cx.root, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    table, failed = os.path.join(cx.root, "test", "LONG.md"), 0
    lines = recorded(table)
    for name, what, words in chosen:
        print(f"{name}: {what}", flush=True)
        start = time.monotonic()
        status, last = run(words, cx)
        failed += status != 0
        lines[name] = f"| {name} | {what} | {last if re.search('[0-9]', last) else f'exit status {status}'} | {(time.monotonic() - start) / 60:.0f} | {commit} |"
        with open(table, "w", encoding="utf-8") as f:
            f.write(HEAD + "\n".join(lines[p[0]] for p in PARTS if p[0] in lines) + "\n")
    print(f"{len(chosen) - failed} parts passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
