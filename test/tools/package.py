#!/usr/bin/env python3
"""What `cmake --install` puts in place: it may be moved, other projects use it as they like, and it goes away again.

    package.py SOURCE BUILD SCRATCH
"""
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys

KERNEL = """kernel add(const f32 x[N], f32 y[N], const int B) grid(cdiv(N, B))
{
    y[pid(0) * B +: B] = x[pid(0) * B +: B] + (B == 16 ? 1 : 2);
}
"""
# Libraries and programs by the plain form of target_link_libraries and by the other, before the kernels and after.
CMAKE = """cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C)
find_package(Tile REQUIRED)
add_library(one STATIC one.c)
target_link_libraries(one m)
tile_add_kernels(one add.tile OPTIONS --const B=16)
add_library(two SHARED two.c)
tile_add_kernels(two add.tile OPTIONS --const B=32)
target_link_libraries(two PUBLIC m)
add_executable(plain main.c)
tile_add_kernels(plain own.tile TUNE results.json)
target_link_libraries(plain one two)
add_executable(keyword main.c)
target_link_libraries(keyword PRIVATE one two)
tile_add_kernels(keyword own.tile TUNE results.json)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE one)
add_executable(shared shared.c)
target_link_libraries(shared PRIVATE Tile::runtime_shared)
add_executable(jit jit.c)
target_link_libraries(jit PRIVATE Tile::compiler)
add_executable(library library.c)
tile_add_kernels(library std.kernels.gemm OPTIONS --kernel gemm --const T=f32)
tile_add_kernels(library std.kernels.gemm NAME update OPTIONS --kernel gemm_update --const TA=true)
add_executable(functions functions.c)
target_link_libraries(functions PRIVATE Tile::kernels)
add_executable(functions_shared functions.c)
target_link_libraries(functions_shared PRIVATE Tile::kernels_shared)
add_executable(devices devices.c)
target_link_libraries(devices PRIVATE Tile::collectives)
add_executable(devices_shared devices.c)
target_link_libraries(devices_shared PRIVATE Tile::collectives_shared)
"""
FILES = {
    "add.tile": KERNEL,
    "own.tile": "kernel own(f32 y[N], const int V) grid(N) tune(V in {3, 5}) { y[pid(0)] = (f32)V; }\n",
    "results.json": json.dumps({"format": "tile-tune", "version": 1, "results": [
        {"kernel": "own", "constants": "", "hash": "0", "device": {"target": "cpu:" + level, "name": "", "threads": 1}, "keys": "",
         "bucket": [], "sizes": [], "best": "V=5", "how": "timed", "tool": "", "times": {"V=5": 1}}
        for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-zen4", "x86-64-v4-avx10", "x86-64-v4-apx", "x86-64-v4-amx", "aarch64", "armv8.4-a", "armv8.6-a", "armv9-a")]}),
    "CMakeLists.txt": CMAKE,
    "one.c": '#include "add.h"\nint one(float *x, float *y);\nint one(float *x, float *y) { return add(0, x, y, 1); }\n',
    "two.c": '#include "add.h"\nint two(float *x, float *y);\nint two(float *x, float *y) { return add(0, x, y, 1); }\n',
    "main.c": r"""#include <stdio.h>
#include "own.h"
int one(float *x, float *y);
int two(float *x, float *y);
int main(void)
{
    float x = 1, y = 0, z = 0, w = 0;
    if (one(&x, &y) || two(&x, &z) || own(NULL, &w, 1) || tile_stream_synchronize(NULL)) return puts(tile_last_error()), 1;
    printf("%g %g %g\n", y, z, w);
    return 0;
}
""",
    "consumer.c": r"""#include <stdio.h>
#include "add.h" /* of the library's kernels */
int main(void)
{
    float x = 1, y = 0;
    if (add(NULL, &x, &y, 1) || tile_stream_synchronize(NULL)) return puts(tile_last_error()), 1;
    printf("%g\n", y);
    return 0;
}
""",
    "jit.c": r"""#include <stdio.h>
#include <tile_jit.h>
int main(void)
{
    float x = 1, y = 0;
    tile_module *m;
    tile_kernel *k;
    if (tile_module_load_file(NULL, "add.tile", NULL, &m) || tile_kernel_get(m, "add", (tile_const[]){{"B", 32}, {0}}, &k) ||
        tile_launch(k, NULL, (tile_arg[]){tile_view(&x, 1), tile_view(&y, 1)}, 2) || tile_stream_synchronize(NULL))
        return puts(tile_last_error()), 1;
    printf("%g\n", y);
    tile_module_free(m);
    return 0;
}
""",
    "library.c": r"""#include <stdio.h>
#include "gemm.h" /* of a module of the library */
#include "update.h"
int main(void)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, c[4], d[4] = {1, 1, 1, 1};
    struct gemm_update_args u = {.A = a, .B = b, .C = d, .alpha = 2, .beta = 1, .M = 2, .N = 2, .K = 3, .lda = 2, .ldb = 2, .ldc = 2};
    if (gemm(NULL, a, b, c, 2, 3, 2, 3, 2, 2) || gemm_update_launch(NULL, &u) || tile_stream_synchronize(NULL)) return puts(tile_last_error()), 1;
    printf("%g %g %g %g, %g %g %g %g\n", c[0], c[1], c[2], c[3], d[0], d[1], d[2], d[3]);
    return 0;
}
""",
    "functions.c": r"""#include <stdio.h>
#include <tile_kernels.h>
int main(void)
{
    float A[] = {1, 2, 3, 4, 5, 6}, B[] = {1, 0, 0, 1, 1, 1}, C[4], bias[] = {-5, 1};
    tile_gemm_options options = {.struct_size = sizeof options, .bias = bias, .activation = TILE_RELU};
    tile_kernels *k;
    if (tile_kernels_open(NULL, &k) ||
        tile_gemm(k, NULL, TILE_F32, TILE_NO_TRANSPOSE, TILE_NO_TRANSPOSE, 2, 2, 3, 1, A, 3, B, 2, 0, C, 2, &options) ||
        tile_stream_synchronize(NULL))
        return puts(tile_last_error()), 1;
    printf("%g %g %g %g\n", C[0], C[1], C[2], C[3]);
    if (!tile_gemm(k, NULL, TILE_F32, TILE_NO_TRANSPOSE, TILE_TRANSPOSE, 2, 2, 3, 1, A, 3, B, 2, 0, C, 2, NULL)) return 1;
    puts(tile_last_error());
    float Q[] = {1, 0}, K[] = {0, 5, 0, 7}, V[] = {1, 2, 3, 6}, O[2]; /* one query, two keys, both with the score 0 */
    if (tile_attention(k, NULL, TILE_F32, 1, 1, 1, 1, 2, 2, Q, K, V, O, NULL) || tile_softmax(k, NULL, TILE_F32, 1, 2, V, 2, V, 2) ||
        tile_stream_synchronize(NULL))
        return puts(tile_last_error()), 1;
    printf("%g %g %.4f\n", O[0], O[1], V[1]);
    tile_kernels_close(k);
    return 0;
}
""",
    "devices.c": r"""#include <stdio.h>
#include <tile_collectives.h>
int main(void)
{
    tile_device *d;
    tile_comm *c[2];
    float x[2] = {1, 2};
    if (tile_default_device(&d) || tile_comm_create_all((tile_device *[]){d, d}, 2, NULL, c)) return puts(tile_last_error()), 1;
    tile_comm_group_begin();
    for (int i = 0; i < 2; i++) tile_comm_all_reduce(c[i], tile_view(x + i, 1), tile_view(x + i, 1), TILE_COMM_SUM, NULL);
    if (tile_comm_group_end()) return puts(tile_last_error()), 1;
    printf("%g %g\n", x[0], x[1]);
    for (int i = 0; i < 2; i++) tile_comm_free(c[i]);
    return 0;
}
""",
    "shared.c": r"""#include <stdio.h>
#include <tile.h>
int main(void)
{
    tile_device *d;
    if (tile_device_open("cpu", &d)) return puts(tile_last_error()), 1;
    tile_device_close(d);
    puts("shared");
    return 0;
}
""",
}


def run(words, **more):
    p = subprocess.run(words, capture_output=True, text=True, **more)
    if p.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{p.stdout}{p.stderr}")
    return p.stdout


def flags(folder, name):
    """What pkg-config says of a .pc file; worked out here, and compared with the real one where there is one."""
    with open(os.path.join(folder, name + ".pc"), encoding="utf-8") as f:
        lines = dict(re.split(r"[:=] ?", line, maxsplit=1) for line in f.read().splitlines() if line)
    lines["pcfiledir"] = folder
    text = f"{lines['Cflags']} {lines['Libs']}"
    while "${" in text:
        text = re.sub(r"\$\{(\w+)\}", lambda m: lines[m.group(1)], text)
    if shutil.which("pkg-config"):
        said = run(["pkg-config", "--cflags", "--libs", name], env=dict(os.environ, PKG_CONFIG_PATH=folder)).split()
        if sorted(map(os.path.normpath, said)) != sorted(map(os.path.normpath, text.split())):
            sys.exit(f"pkg-config says {said}, not {text.split()}")
    return text.split()


def symbols(lib):
    exported = [line.split()[-1] for line in run(["nm", "-D", "--defined-only", os.path.join(lib, "libtile.so")]).splitlines()]
    print(len([n for n in exported if n.startswith("tile_")]) > 20 and "exports tile_*", "and", [n for n in exported if not n.startswith("tile_")])
    print(re.search(r"soname: \[(.*)\]", run(["readelf", "-d", os.path.join(lib, "libtile.so")])).group(1))
    rows = [line.split() for name in ("libtile.a", "libtilekernels.a", "libtile-collectives.a")
            for line in run(["readelf", "-sW", os.path.join(lib, name)]).splitlines()]
    print("visible in archives:", sorted({r[7] for r in rows if len(r) == 8 and r[4] == "GLOBAL" and r[5] == "DEFAULT" and r[6] != "UND"
                                          and not r[7].startswith("tile_")}))


def needed(path):
    """The shared libraries that it names, but for those of the C library."""
    names = re.findall(r"NEEDED.*\[(.*)\]", run(["readelf", "-d", path]))
    return [n for n in names if not re.match(r"(libc|libm|ld-linux.*)\.so\.\d+$", n)]


def in_little_room(tilec, work):
    """Where there is no room for LLVM, tilec says so; what is in the cache is found in less."""
    said = set()
    cache = dict(os.environ, TILE_CACHE=os.path.join(work, "cache"))
    words = [tilec, "add.tile", "--const", "B=16", "-o", "add.o"]
    for mib in (16, 40, 64, 74, 76, 90):
        p = subprocess.run([*words, "--cache=off"], cwd=work, capture_output=True, text=True,
                           preexec_fn=lambda m=mib: resource.setrlimit(resource.RLIMIT_AS, (m << 20, m << 20)))
        said.add((p.returncode, p.stderr))
    run(words, cwd=work, env=cache)
    run(words, cwd=work, env=cache, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (16 << 20, 16 << 20)))
    return sorted(said)


def new_project(tilec, prefix, pc, work):
    """What tilec new makes builds and passes its test by CMake and by make."""
    run([tilec, "new", "saxpy"], cwd=work)
    made = os.path.join(work, "saxpy")
    out = os.path.join(made, "build")
    run(["cmake", "-S", made, "-B", out, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"])
    run(["cmake", "--build", out])
    tested = run(["ctest", "--test-dir", out])
    if shutil.which("make") and shutil.which("pkg-config"):
        said = run(["make", "-s", "-C", made, "test"], env=dict(os.environ, PKG_CONFIG_PATH=pc, PATH=f"{os.path.dirname(tilec)}:{os.environ['PATH']}"))
        tested += "" if "saxpy: 1000 elements, 0 wrong" in said else said
    return "100% tests passed" in tested and tested.count("wrong") == 0


def main(source, build, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    prefix, moved, work = (os.path.join(scratch, n) for n in ("prefix", "moved", "user"))
    os.makedirs(work)
    manifest = os.path.join(scratch, "manifest.txt")
    for component in ("runtime", "collectives", "kernels", "development", "compiler"):  # each writes a manifest of its own
        run(["cmake", "--install", build, "--prefix", prefix, "--component", component])
        with open(os.path.join(build, f"install_manifest_{component}.txt"), encoding="utf-8") as part, open(manifest, "a", encoding="utf-8") as f:
            f.write(part.read().rstrip("\n") + "\n")
    shutil.copytree(prefix, moved, symlinks=True)
    run(["cmake", "-D", "MANIFEST=" + manifest, "-P", os.path.join(source, "tools/cmake/uninstall.cmake")])
    print("left:", [n for _, _, names in os.walk(prefix) for n in names], not os.path.exists(os.path.join(prefix, "lib/cmake")))
    print("target:", bool(re.search(r"^uninstall:", run(["cmake", "--build", build, "--target", "help"]), re.M)))
    for name, text in FILES.items():
        with open(os.path.join(work, name), "w", encoding="utf-8") as f:
            f.write(text)
    out = os.path.join(work, "out")
    run(["cmake", "-S", work, "-B", out, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={moved}"])
    run(["cmake", "--build", out])
    for name in ("plain", "keyword", "consumer", "library", "functions", "functions_shared", "devices", "devices_shared", "shared"):
        print(name + ":", run([os.path.join(out, name)]), end="")
    print("jit:", run([os.path.join(out, "jit")], cwd=work), end="")
    lib = next(d for d, _, names in os.walk(moved) if "libtile.a" in names)
    symbols(lib)
    tilec = os.path.join(moved, "bin", "tilec")
    print("needed:", [needed(p) for p in (tilec, os.path.join(out, "jit"), *glob.glob(os.path.join(lib, "libtile*.so")),
                                          *glob.glob(os.path.join(lib, "libtilec-core.so.*")))])
    print("tilec in MB:", os.path.getsize(tilec) >> 20)
    print("little room:", in_little_room(tilec, work))
    pc = os.path.join(lib, "pkgconfig")
    print("new:", new_project(tilec, moved, pc, work))
    run([tilec, "add.tile", "--const", "B=16", "-o", "add.o", "--header", "add.h"], cwd=work)
    run(["cc", "-I.", "consumer.c", "add.o", "-o", "by_pc", *flags(pc, "tile")], cwd=work)
    print("tile.pc:", run([os.path.join(work, "by_pc")]), end="")
    run(["cc", "-I.", "functions.c", "-o", "functions_by_pc", *flags(pc, "tilekernels")], cwd=work)
    print("tilekernels.pc:", run([os.path.join(work, "functions_by_pc")]), end="")
    run(["cc", "-I.", "devices.c", "-o", "devices_by_pc", *flags(pc, "tile-collectives")], cwd=work)
    print("tile-collectives.pc:", run([os.path.join(work, "devices_by_pc")]), end="")
    print("tilec.pc says only where it lies:", prefix not in " ".join(flags(pc, "tilec")))
    again = os.path.join(scratch, "again")
    os.rename(moved, again)  # programs look for the compiler where it was
    off = dict(os.environ, TILE_CACHE="off")
    for folder in (None, again + lib[len(moved):], "relative"):
        env = {**off, "TILE_COMPILER": folder} if folder else off
        p = subprocess.run([os.path.join(out, "jit")], cwd=work, capture_output=True, text=True, env=env, check=False)
        print("moved again:", (p.stdout + p.stderr).strip().replace(scratch, ""))


if __name__ == "__main__":
    main(*sys.argv[1:])
