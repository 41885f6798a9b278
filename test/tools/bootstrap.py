#!/usr/bin/env python3
"""bootstrap on machines that lack things: a copy of it, in a folder of its own, with a PATH of our making.

    bootstrap.py SOURCE SCRATCH
"""
import os
import re
import shutil
import subprocess
import sys

TOOLS = "sh env cat date dirname getconf grep head kill ls mkdir printf rm sed sort tail tr".split()


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def machine(scratch, name, **programs):
    """A folder of programs: the everyday ones, and scripts."""
    folder = os.path.join(scratch, name)
    os.makedirs(folder)
    for tool in TOOLS:
        if shutil.which(tool):
            os.symlink(shutil.which(tool), os.path.join(folder, tool))
    for program, text in programs.items():
        script(folder, program.replace("_", "-"), text)
    return folder


def bootstrap(tree, path, **env):
    p = subprocess.run([os.path.join(tree, "bootstrap"), "build"], env={"PATH": path, **env}, capture_output=True, text=True, timeout=120,
                       stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout, p.stderr


def check(what, fine, said):
    print(f"{what}: {'ok' if fine else 'WRONG: ' + repr(said)}")


def main(source, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    tree = os.path.join(scratch, "tree")
    os.makedirs(tree)
    shutil.copy(os.path.join(source, "bootstrap"), tree)
    user, apt = 'echo 1000\n', 'echo "apt-get ran" >&2; exit 1\n'
    wanted = re.compile(r"packages are missing: .*\bbison\b.*\n.*root.*no sudo.*\n\n +apt-get update && apt-get install .*\bbison\b.*re2c", re.S)
    said = bootstrap(tree, machine(scratch, "none", id=user, apt_get=apt))
    check("no sudo", said[0] == 1 and wanted.search(said[2]) and "apt-get ran" not in said[2], said)
    check("what users need comes along", re.search(r"apt-get install .*\bmake\b.*\bpkg-config\b", said[2]), said)
    refuses = 'echo "sudo: user is not in the sudoers file" >&2; exit 1\n'
    said = bootstrap(tree, machine(scratch, "refuses", id=user, apt_get=apt, sudo=refuses))
    check("sudo refuses", said[0] == 1 and "not in the sudoers" in said[2] and "sudo refuses" in said[2] and "--no-install-recommends" in said[2], said)
    said = bootstrap(tree, machine(scratch, "no_apt", id=user))
    check("no apt-get", said[0] == 1 and "no apt-get here" in said[2] and "bison" in said[2], said)
    # apt-get would install, but some of it is nowhere.
    cache = 'case $2 in bison|llvm-*) exit 0 ;; esac\necho "  Candidate: 1.0"\n'
    rich = machine(scratch, "no_llvm", id="echo 0\n", apt_get='[ "$1" = update ] || { echo "apt-get ran" >&2; exit 1; }\necho "E: no route"\n', apt_cache=cache)
    said = bootstrap(tree, rich, TILE_LLVM="22")
    check("packages that are nowhere", said[0] == 1 and re.search(r"no route\n.*no source of apt offers: bison\b.*\nThis is ", said[2]) and "ran" not in said[2], said)
    there = os.path.exists("/usr/lib/llvm-22/bin/lit") and os.path.exists("/usr/lib/llvm-22/include/llvm-c/Core.h")
    check("no such LLVM", there or re.search("llvm-22-dev.*\nThis is .*\nLLVM 22.1 is in Debian 12 .*Ubuntu 24.04 has none", said[2]), said)
    said = bootstrap(tree, rich, TILE_LLVM="20")
    check("another LLVM", said[0] == 1 and "TILE_LLVM=20: this takes LLVM 19.1" in said[2] and "installing" not in said[1], said)
    # Everything there, and a ninja that takes until it has been seen to make progress.
    nothing, fast = "exit 0\n", "exec /bin/sleep 0.01\n"
    ninja = 'i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo "[$i/300] Building C object"; /bin/sleep 0.005; done\n'
    tools = dict(cmake=nothing, gcc=nothing, re2c=nothing, bison=nothing, sleep=fast)
    folder = machine(scratch, "slow", id=user, ninja=ninja, **tools)
    script(folder, "g++", nothing)
    said = bootstrap(tree, folder)
    steps = re.findall(r"^building: (\d+) of 300 steps$", said[1], re.M)
    check("progress", said[0] == 0 and len(steps) > 1 and steps == sorted(steps, key=int) and "built build in" in said[1], said)
    script(folder, "ninja", 'echo "[1/2] Building C object"; echo "x.c:1: error: no"; exit 1\n')
    said = bootstrap(tree, folder)
    check("a build that fails", said[0] == 1 and "x.c:1: error: no" in said[2] and "the whole log" in said[2], said)


if __name__ == "__main__":
    main(*sys.argv[1:])
