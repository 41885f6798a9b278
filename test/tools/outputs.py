#!/usr/bin/env python3
"""What the programs write: complete files or none, never over an input, and every failure said.

    outputs.py BIN CC FOLDER [-k SUBSTRING]

BIN holds tilec, tile-opt and tile-reduce; CC builds the library that stops a program at rename().
"""
import os
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

FILES = {
    "k.tile": 'import "lib.tile";\nkernel k(const f32 x[N], f32 y[N]) grid(N) { y[pid(0)] = lib.one(x[pid(0)]); print("n", pid(0)); }\n',
    "lib.tile": "auto one(auto x) { return x + 1; }\n",
    "k.tir": None,  # of k.tile, below
}
STOP = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int rename(const char *from, const char *to)
{
    FILE *f = fopen(getenv("STOPPED"), "w");
    (void)from, (void)to;
    if (f) fclose(f);
    for (;;) pause();
}
"""
TESTS = []


def test(f):
    TESTS.append(f)
    return f


class Bench:
    def __init__(self, bin_, cc, folder):
        self.bin, self.cc, self.folder = bin_, cc, folder

    def at(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        with open(self.at(name), "rb") as f:
            return f.read()

    def put(self, name, data=b"old"):
        with open(self.at(name), "wb") as f:
            f.write(data)

    def command(self, line):
        words = line.split() if isinstance(line, str) else list(line)
        return [os.path.join(self.bin, words[0])] + words[1:]

    def run(self, line, status=0, err="", **more):
        """The standard output; the exit status and what stderr must match."""
        more.setdefault("stdout", subprocess.PIPE)
        p = subprocess.run(self.command(line), cwd=self.folder, stderr=subprocess.PIPE, timeout=120, **more)
        said = p.stderr.decode(errors="replace")
        assert p.returncode == status, f"{line}: status {p.returncode}, not {status}: {said}"
        assert re.search(err, said, re.S), f"{line}: stderr {said!r} lacks {err!r}"
        return p.stdout

    def leftovers(self):
        return [n for n in os.listdir(self.folder) if n.startswith(".tile-")]


def npy(values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}f", *values)


# ---- onto inputs and each other ----

@test
def outputs_onto_inputs(b):
    os.symlink("k.tile", b.at("link.o"))
    os.link(b.at("k.tile"), b.at("hard.o"))
    os.symlink("lib.tile", b.at("lib.o"))
    before = b.text("k.tile"), b.text("lib.tile")
    for args in ("-o k.tile", "-o ./k.tile", "-o link.o", "-o hard.o", "-o a.o --header k.tile", "-o a.o --header link.o",
                 "-o a.o -MD -MF k.tile", "-o lib.tile", "-o lib.o", "-o a.o --header lib.tile", "-o a.o -MD -MF lib.tile",
                 "--emit=tir -o k.tile", "--emit=header -o lib.tile", "-o a.o --time-trace lib.tile", "-o a.o --override dce:k.tir --header k.tir"):
        b.run("tilec k.tile " + args, 2, "is also read, as '")
    b.run(["tilec", "k.tile", "-o", b.at("k.tile")], 2, "is also read, as '")
    assert (b.text("k.tile"), b.text("lib.tile")) == before
    assert not os.path.exists(b.at("a.o")), "an object was written beside a refused header"
    b.put("x.npy", npy([1, 2]))
    before = b.text("x.npy")
    b.run("tilec explain k.tile --target sm_80 --html lib.tile", 2, "--html: 'lib.tile' is also read")
    b.run("tilec run k.tile x=@x.npy y=nan[2] --save y=x.npy", 2, "--save: 'x.npy' is also read, as 'x.npy'")
    b.run("tilec run k.tile x=@x.npy y=nan[2] --save y=lib.tile", 2, "is also read")
    b.run("tilec run k.tile x=@x.npy y=nan[2] --time-trace k.tile", 2, "--time-trace: 'k.tile' is also read")
    b.run("tile-opt k.tir -o k.tir", 2, "")
    b.run("tile-reduce k.tir -o ./k.tir -- true", 2, "'./k.tir' is read and written")
    assert b.text("x.npy") == before


@test
def outputs_onto_each_other(b):
    os.symlink("one.o", b.at("two.o"))  # leads nowhere yet
    os.mkdir(b.at("sub"))
    for args in ("-o a.o --header a.o", "-o a.o --header ./a.o", "-o sub/../a.o --header a.o", "-o one.o --header two.o",
                 "-o a.o -MD -MF a.o", "-o a.o --time-trace a.o", "-o a.o --header a.h -MD -MF a.h", "--emit=tir -o - --header -", "-o a.o --header a.d -MD"):
        b.run("tilec k.tile " + args, 2, "are one file")
    assert not os.path.exists(b.at("a.o"))
    b.run("tilec run k.tile x=iota[2] y=nan[2] --save y=s.npy --save x=./s.npy", 2, "are one file")
    assert not os.path.exists(b.at("s.npy"))
    b.run("tilec k.tile -o /dev/null --header /dev/null -MD -MF /dev/null")
    b.run("tilec k.tile -o a.o --header a.h -MD")


# ---- full disks, closed streams ----

PRINTS = ["tilec --help", "tilec --version", "tilec targets", "tilec k.tile --emit=tir", "tilec k.tile --emit=ast", "tilec k.tile -o -",
          "tilec k.tile --emit=header", "tilec explain k.tile --target gfx942", "tilec explain k.tile --target gfx942 --json", "tilec explain k.tile --target gfx942 --html -", "tilec explain k.tile --target gfx942 x=iota[2] y=nan[2]",
          "tilec run k.tile x=iota[2] y=nan[2]", "tilec run k.tile x=iota[2] y=nan[2] --print y", "tilec run k.tile --device ref x=iota[2] y=nan[2]",
          "tile-opt k.tir", "tile-opt k.tir --run", "tile-opt --help", "tile-opt --list-ops", "tile-opt --list-passes=md"]


@test
def standard_output_is_full(b):
    for line in PRINTS:
        with open("/dev/full", "w") as full:
            b.run(line, 2, "cannot write .*(No space left on device|an earlier write failed)", stdout=full)


@test
def standard_output_is_closed(b):
    for line in PRINTS:
        b.run(line, 2, "cannot write .*(Bad file descriptor|an earlier write failed)", stdout=None, preexec_fn=lambda: os.close(1))
    b.run("tilec k.tile -o closed.o", stdout=None, preexec_fn=lambda: os.close(1))  # prints nothing
    assert b.text("closed.o")[:4] == b"\x7fELF"
    b.run("tilec k.tile --emit=tir -o closed.tir", stdout=None, preexec_fn=lambda: (os.close(0), os.close(1)))
    assert b"kernel @k" in b.text("closed.tir")


@test
def files_are_full(b):
    for stage in "ast tir opt llvm asm obj header image".split():
        b.run(f"tilec k.tile --emit={stage} -o /dev/full", 2, "'/dev/full': No space left on device")
    for args in ("--header /dev/full", "-MD -MF /dev/full", "--time-trace=/dev/full"):
        b.run("tilec k.tile -o full.o " + args, 2, "'/dev/full': No space left on device")
        assert not os.path.exists(b.at("full.o")), "an object without its header"
    for args in ("--save y=/dev/full", "--time-trace /dev/full"):
        b.run("tilec run k.tile x=iota[2] y=nan[2] " + args, 2, "'/dev/full': No space left on device")
    b.run("tilec explain k.tile --target sm_80 --html /dev/full", 2, "'/dev/full': No space left on device")
    b.run("tile-opt k.tir -o /dev/full", 2, "'/dev/full': No space left on device")
    b.run("tile-reduce k.tir -o /dev/full -- true", 2, "No space left|Permission|cannot write")


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))


@test
def a_file_grows_too_large(b):
    for line, name in (("tilec k.tile -o limit.o", "limit.o"), ("tilec k.tile --emit=tir -o limit.tir", "limit.tir"),
                       ("tilec k.tile -o /dev/null --header limit.h", "limit.h"), ("tilec k.tile --time-trace limit.json", "limit.json"),
                       ("tilec run k.tile x=iota[2000] y=nan[2000] --save y=limit.npy", "limit.npy"),
                       ("tilec explain k.tile --target sm_80 --html limit.html", "limit.html"), ("tile-opt k.tir -o out.tir", "out.tir")):
        out = {} if "run" not in line else {"stdout": subprocess.DEVNULL}
        b.run(line, 2, f"'{name}': File too large", preexec_fn=small_files, **out)
        assert not os.path.exists(b.at(name)), name
        b.put(name)
        b.run(line, 2, "File too large", preexec_fn=small_files, **out)
        assert b.text(name) == b"old", f"{name} was touched"
    assert not b.leftovers(), b.leftovers()


# ---- stopped in the middle ----

def default_signals():
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.SIG_DFL)  # whoever runs the tests may ignore them


def stopped(b, line, sign):
    """The program's status when `sign` comes while its files are complete but not in place."""
    mark = b.at("stopped")
    if os.path.exists(mark):
        os.unlink(mark)
    env = dict(os.environ, LD_PRELOAD="stop.so", LD_LIBRARY_PATH=b.folder, STOPPED=mark)  # no blanks in LD_PRELOAD
    p = subprocess.Popen(b.command(line), cwd=b.folder, env=env, stdout=subprocess.DEVNULL, preexec_fn=default_signals)
    limit = time.monotonic() + 60
    while not os.path.exists(mark):
        assert p.poll() is None and time.monotonic() < limit, f"{line}: never came to rename()"
        time.sleep(0.01)
    p.send_signal(sign)
    return p.wait(60)


@test
def interrupted(b):
    with open(b.at("stop.c"), "w", encoding="ascii") as f:
        f.write(STOP)
    subprocess.run([b.cc, "-shared", "-fPIC", b.at("stop.c"), "-o", b.at("stop.so")], check=True)
    for line, names in (("tilec k.tile -o int.o --header int.h -MD", ("int.o", "int.h", "int.d")),
                        ("tilec run k.tile x=iota[2] y=nan[2] --save y=int.npy", ("int.npy",)), ("tile-opt k.tir -o int.tir", ("int.tir",))):
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            assert stopped(b, line, sign) == -sign
            assert sign == signal.SIGKILL or not b.leftovers(), f"{line}: {b.leftovers()} after {sign}"
            assert not any(os.path.exists(b.at(n)) for n in names)
        for n in names:
            b.put(n)
        for sign in (signal.SIGINT, signal.SIGKILL):
            assert stopped(b, line, sign) == -sign
            assert all(b.text(n) == b"old" for n in names)
        for name in b.leftovers():  # of SIGKILL alone, whole
            os.unlink(b.at(name))


# ---- what files become ----

@test
def files_that_are_none(b):
    tir = b.run("tilec k.tile --emit=tir")
    assert b.run("tilec k.tile --emit=tir -o /dev/stdout") == tir
    os.mkfifo(b.at("pipe"))
    reader = subprocess.Popen(["cat", "pipe"], cwd=b.folder, stdout=subprocess.PIPE)
    b.run("tilec k.tile --emit=tir -o pipe")
    assert reader.communicate(timeout=60)[0] == tir and stat.S_ISFIFO(os.stat(b.at("pipe")).st_mode)
    with open(b.at("mixed"), "wb") as f:  # standard output stays where it is when it is a file
        f.write(b"before\n")
        f.flush()
        b.run("tilec k.tile --emit=tir -o /dev/stdout", stdout=f)
        f.write(b"")
    assert b.text("mixed") == b"before\n" + tir
    b.run("tilec k.tile --emit=tir -o sub_is_none/x", 2, "No such file")
    os.mkdir(b.at("folder"))
    b.run("tilec k.tile --emit=tir -o folder", 2, "'folder': Is a directory")


@test
def links_and_modes(b):
    os.mkdir(b.at("real"))
    os.symlink("real/k.o", b.at("via.o"))
    for _ in range(2):  # new, then there
        b.run("tilec k.tile -o via.o")
        assert os.path.islink(b.at("via.o")) and b.text("real/k.o")[:4] == b"\x7fELF"
    b.put("mode.o")
    os.chmod(b.at("mode.o"), 0o640)
    b.run("tilec k.tile -o mode.o")
    assert stat.S_IMODE(os.stat(b.at("mode.o")).st_mode) == 0o640
    b.run("tilec k.tile -o fresh.o", preexec_fn=lambda: os.umask(0o027))
    assert stat.S_IMODE(os.stat(b.at("fresh.o")).st_mode) == 0o640
    if os.geteuid() != 0:
        b.put("fixed.o")
        os.chmod(b.at("fixed.o"), 0o444)
        b.run("tilec k.tile -o fixed.o", 2, "Permission denied")
        assert b.text("fixed.o") == b"old"


def main(bin_, cc, folder, *rest):
    wanted = rest[1] if rest[:1] == ("-k",) else ""
    bad = 0
    for f in TESTS:
        if wanted not in f.__name__ or (f is interrupted and os.environ.get("ASAN_OPTIONS")):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        b = Bench(os.path.abspath(bin_), cc, os.path.abspath(folder))
        for name, text in FILES.items():
            if text:
                b.put(name, text.encode())
        b.put("k.tir", b.run("tilec k.tile --emit=tir"))
        try:
            f(b)
        except AssertionError as e:
            bad += 1
            print(f"{f.__name__}: {e}")
    print(f"{len(TESTS)} tests, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
