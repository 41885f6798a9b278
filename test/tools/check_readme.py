#!/usr/bin/env python3
r"""Builds and runs the README's kernel and C host as a user would, against an installed tree.

    check_readme.py SOURCE BUILD SCRATCH

Installs BUILD below SCRATCH, takes the first ```tile and ```c blocks of README.md, and builds them twice: by
find_package(Tile), and by the flags of tilec.pc; the ```cmake block makes a third program of the kernel, compiled ahead of time. Then each example's folder is copied away and built by its own CMakeLists.txt.
"""
import os
import re
import shutil
import subprocess
import sys

CMAKE = """cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C)
find_package(Tile 0.1 REQUIRED)
add_executable(host host.c)
target_link_libraries(host PRIVATE Tile::compiler)
"""
AHEAD = r"""#include <stdio.h>
#include "softmax.h"

int main(void)
{
    static float x[3][777], y[3][777];
    x[2][5] = 3;
    if (softmax(NULL, &x[0][0], &y[0][0], 3, 777) || tile_stream_synchronize(NULL)) return puts(tile_last_error()), 1;
    printf("%.4f\n", y[2][5] / y[2][6]);
    return 0;
}
"""


def run(words, **more):
    p = subprocess.run(words, capture_output=True, text=True, errors="replace", **more)
    if p.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{p.stdout}{p.stderr}")
    return p.stdout


WORDS = {"08_llm": [], "09_image": [], "10_nbody": [], "11_heat": [], "12_int8": [], "13_train_digits": ["check", "1", "64"],
         "14_gan2d": ["hinge", "1500"], "15_train_gpt": ["-g"], "16_lstm_text": ["-g"]}  # others take sizes


def block(text, language):
    return re.search(rf"^```{language}\n(.*?)^```", text, re.S | re.M).group(1)


def pc_flags(prefix, lib):
    """What pkg-config would say, without asking the machine to have it."""
    pc = os.path.join(prefix, lib, "pkgconfig", "tilec.pc")
    lines = dict(re.split(r"[:=] ?", line, maxsplit=1) for line in open(pc, encoding="utf-8").read().splitlines() if line)
    lines["prefix"] = prefix  # as pkg-config --define-prefix
    flags = f"{lines['Cflags']} {lines['Libs']}"
    while "${" in flags:
        flags = re.sub(r"\$\{(\w+)\}", lambda m: lines[m.group(1)], flags)
    return flags.split()


def example(folder, scratch, prefix):
    """A copy of an example's folder and of shared/ beside it, built against the installed tree, and run, those that take sizes on one element."""
    name = os.path.basename(folder)
    copy, out = os.path.join(scratch, name), os.path.join(scratch, name, "out")
    shutil.copytree(folder, copy)
    shutil.copytree(os.path.join(os.path.dirname(folder), "shared"), os.path.join(scratch, "shared"), dirs_exist_ok=True)
    run(["cmake", "-S", copy, "-B", out, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"])
    run(["cmake", "--build", out])
    if os.path.exists(os.path.join(out, name)):
        print(run([os.path.join(out, name), *WORDS.get(name, ["1", "1", "1"])], cwd=scratch).splitlines()[0])
        print(name, "works outside of the tree")
    else:
        print(name, "lacks a package")


def main(source, build, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    prefix, work = os.path.join(scratch, "prefix"), os.path.join(scratch, "user")
    os.makedirs(work)
    run(["cmake", "--install", build, "--prefix", prefix])
    with open(os.path.join(source, "README.md"), encoding="utf-8") as f:
        text = f.read()
    for name, language in (("softmax.tile", "tile"), ("host.c", "c")):
        with open(os.path.join(work, name), "w", encoding="utf-8") as f:
            f.write(block(text, language))
    with open(os.path.join(work, "CMakeLists.txt"), "w", encoding="utf-8") as f:
        f.write(CMAKE + block(text, "cmake"))
    with open(os.path.join(work, "ahead.c"), "w", encoding="utf-8") as f:
        f.write(AHEAD)
    run(["cmake", "-S", work, "-B", os.path.join(work, "out"), "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"])
    run(["cmake", "--build", os.path.join(work, "out")])
    print("cmake:", run([os.path.join(work, "out", "host")], cwd=work), end="")
    print("ahead:", run([os.path.join(work, "out", "ahead")], cwd=work), end="")
    print("ahead needs", "LLVM" if "LLVM" in run(["ldd", os.path.join(work, "out", "ahead")]) else "no compiler")
    lib = next(d for d, _, names in os.walk(prefix) if "libtile.a" in names)
    run(["cc", "host.c", "-o", "host", *pc_flags(prefix, os.path.relpath(lib, prefix))], cwd=work)
    print("cc:", run([os.path.join(work, "host")], cwd=work), end="")
    for name in sorted(os.listdir(os.path.join(source, "examples"))):
        if os.path.exists(os.path.join(source, "examples", name, "CMakeLists.txt")):
            example(os.path.join(source, "examples", name), scratch, prefix)


if __name__ == "__main__":
    main(*sys.argv[1:])
