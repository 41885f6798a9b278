#!/usr/bin/env python3
"""The same command writes the same bytes when it is run again: in another folder, with another locale, time zone, umask, number of
threads and of processors, date of the source, home and size of the environment.

    reproducible.py BIN ROOT SCRATCH

Kernels are examples; each is compiled to an object for several CPU levels and GPUs with its header and its list of files,
and to each other stage. Prints what differs and, last, "N files, N differ"; exit 1 if any differ.
"""
import os
import shutil
import subprocess
import sys

KERNELS = {name: sum((["--const", c] for c in consts.split()), []) for name, consts in
           (("softmax", "B=1024"), ("matmul", "BM=16 BN=32 BK=16"), ("attention", "BD=32 BM=32 BN=32"))}
ALL = "cpu:x86-64-v2,cpu:x86-64-v3,cpu:x86-64-v4,cpu:aarch64,sm_80,sm_90a,gfx942,gfx1100,emu:sm_80@x86-64-v2"
COMMANDS = [["-o", "{k}.o", "--header", "{k}.h", "-MD", "--target", ALL],
            ["-o", "{k}.g.o", "-g", "--check", "--target", ALL],
            ["-o", "{k}.image", "--emit", "image", "--target", ALL],
            ["-o", "{k}.hsaco", "--emit", "hsaco", "--target", "gfx942"]]
COMMANDS += [["-o", f"{{k}}.{stage}", "--emit", stage, "--target", target] for target, stages in
             (("cpu:x86-64-v3", "ast tir opt llvm asm"), ("sm_80", "laidout ptx")) for stage in stages.split()]
HERE = {"LC_ALL": "C", "TZ": "UTC", "HOME": "/", "TILE_THREADS": "1", "COLUMNS": "80"}
THERE = {"LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8", "TZ": "Asia/Kathmandu", "HOME": "/nowhere",
         "TILE_THREADS": "7", "COLUMNS": "300", "MORE": 5000 * "x", "USER": "somebody", "SOURCE_DATE_EPOCH": "1"}
# folder, environment, umask, processors of the process (0: all), date of the sources
SETTINGS = [("here", HERE, 0o022, 1, 1), ("another folder, with a longer name", THERE, 0o077, 0, 2000000000)]


def compile_all(tilec, root, folder, env, umask, processors, date):
    """name -> bytes of every file that was written, and what was said."""
    def prepare():
        os.umask(umask)
        if processors:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:processors])

    os.makedirs(folder)
    written = {}
    for k, consts in KERNELS.items():
        source = next(os.path.join(at, k + ".tile") for at, _, names in os.walk(os.path.join(root, "examples")) if k + ".tile" in names)
        shutil.copyfile(source, os.path.join(folder, k + ".tile"))
        os.utime(os.path.join(folder, k + ".tile"), (date, date))
        for c in COMMANDS:
            words = [tilec, k + ".tile", *consts, *(w.format(k=k) for w in c)]
            p = subprocess.run(words, cwd=folder, env={"PATH": os.environ["PATH"], "TILE_CACHE": "off", **env}, preexec_fn=prepare, capture_output=True)
            if p.returncode:
                sys.exit(f"{' '.join(words)}: status {p.returncode}: {p.stderr.decode()}")
            written[f"what '{' '.join(words[1:])}' says"] = p.stdout + p.stderr
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            written[name] = f.read()
    return written


def main(bin_, root, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    tilec = os.path.abspath(os.path.join(bin_, "tilec"))
    first, bad = None, 0
    for folder, *setting in SETTINGS:
        got = compile_all(tilec, root, os.path.join(scratch, folder), *setting)
        first = first or got
        for name in sorted(first.keys() | got.keys()):
            if first.get(name) != got.get(name):
                bad += 1
                print(f"{folder}: {name} differs")
    print(f"{len(first)} files, {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
