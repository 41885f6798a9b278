#!/usr/bin/env python3
"""The cache of compiled kernels, from outside: whatever is done to it, tilec gives what it gives without it.

    cache_attack.py BIN FOLDER [-k SUBSTRING] [--long] [-v]

BIN holds tilec. Each command runs with `--cache=off` and then with the cache, cold and warm: exit status, both streams and each file
that it writes agree byte for byte, nothing takes longer than HANG seconds, and nothing is left in the cache but entries. How often
something was compiled is counted: by the bytes of the file `added`, or by a stand-in for ptxas that writes a line to a log.
`--long` damages every byte of an entry, kills more processes, and stops the holder of a lock for longer than others wait for it.
"""
import argparse
import os
import shutil
import sys
import threading
import time
import traceback

import cache_damage  # noqa: F401  (its tests join GROUPS)
import cache_meanwhile  # noqa: F401
from cache_bench import Bench, CUBIN, DEEP, GROUPS, KERNEL, LIB, PTXAS, TOP, WARNS, test

# ---- what a result depends on ----


@test
def warm_is_cold(b):
    b.kernel()
    b.put("warns.tile", WARNS)
    for words, files in (("k.tile -o k.o --header k.h -MD", ["k.o", "k.h", "k.d"]), ("warns.tile -o k.o -MD -MF deps", ["k.o", "deps"]),
                         ("k.tile --emit ptx --target sm_80 -o -", []), ("warns.tile", []), ("warns.tile --diagnostics json", []),
                         ("k.tile -o k.o --target cpu:x86-64-v2,sm_80,gfx942 --header k.h", ["k.o", "k.h"]), ("k.tile --emit header", []),
                         ("run k.tile x=iota[32] y=nan[32] --print y", []), ("run warns.tile x=iota[32] y=nan[32] --print y", [])):
        n = b.compiles(lambda: b.same(words, files, 1))
        assert n > 0, f"{words}: nothing was kept"
        n = b.compiles(lambda: b.same(words, files, 2))
        assert n == 0, f"{words}: compiled again"
    before = b.get("warns.tile")
    b.put("warns.tile", before)
    os.utime(b.at("warns.tile"), (1, 1))
    assert b.compiles(lambda: b.same("warns.tile", [], 1)) == 0, "a changed date compiles again"


@test
def sources(b):
    words, files = "top.tile -I later -I last -o t.o -MD", ["t.o", "t.d"]

    def step():
        b.same(words, files)

    b.put("top.tile", TOP)
    step()                                          # lib is nowhere: an error
    b.put("last/lib.tile", LIB)
    step()                                          # deep is nowhere
    b.put("last/deep.tile", DEEP % 2)
    step()
    first = b.get("t.o")
    for name, text in (("top.tile", TOP.replace("pid(0)]) ", "pid(0)])  ")), ("top.tile", TOP.replace("lib.one(", "2 * lib.one(")), ("last/lib.tile", LIB.replace("+ 1", "+ 2")),
                       ("last/deep.tile", DEEP % 3), ("later/deep.tile", DEEP % 4), ("deep.tile", DEEP % 5),
                       ("later/lib.tile", LIB.replace("+ 1", "+ 3")), ("lib.tile", LIB.replace("+ 1", "+ 4"))):
        b.put(name, text)
        step()
    for name in ("lib.tile", "later/lib.tile", "deep.tile", "later/deep.tile"):
        os.unlink(b.at(name))
        step()
    for name in ("lib.tile", "later/lib.tile"):     # found first, but no file
        os.makedirs(b.at(name))
        step()
        os.rmdir(b.at(name))
        os.symlink("nowhere", b.at(name))
        step()
        os.unlink(b.at(name))
        os.symlink(b.at(name), b.at(name))
        step()
        os.unlink(b.at(name))
    for name in ("last/deep.tile", "last/lib.tile"):
        text = b.get(name)
        os.unlink(b.at(name))
        step()
        b.put(name, text + b"// more\n")
        step()
        b.put(name, text)
        step()
    b.put("last/deep.tile", DEEP % 2)
    b.put("last/lib.tile", LIB)
    b.put("top.tile", TOP)
    assert b.compiles(lambda: b.same(words, files, 1)) == 0 and b.get("t.o") == first
    os.rename(b.at("last"), b.at("elsewhere"))
    step()
    os.symlink("elsewhere", b.at("last"))
    step()
    b.put("other/lib.tile", LIB.replace("+ 1", "+ 9"))
    b.put("other/deep.tile", DEEP % 2)
    os.unlink(b.at("last"))
    os.symlink("other", b.at("last"))
    step()
    for order in ("-I elsewhere -I other", "-I other -I elsewhere", "-I other", "-I ./other", "-I other/", "-I " + b.at("other")):
        b.same(f"top.tile {order} -o t.o -MD", files)
    b.put("s.tile", "import std.softmax;\nkernel k(const f32 x[M,N], f32 y[M,N], const int B = 32) grid(M) "
                    "{ y[pid(0), 0 +: B] = softmax.softmax(x[pid(0), 0 +: B]); }\n")
    b.same("s.tile -o s.o -MD", ["s.o", "s.d"])
    b.put("std/softmax.tile", "auto softmax(auto x) { return x + 1; }\n")
    b.same("s.tile -o s.o -MD", ["s.o", "s.d"])


@test
def places_of_sources(b):
    for n, folder in enumerate(("one", "two", "t wo", "new\nline", "Ünïcode-日本", "dash/-o", "$(false)", "perc%nt\\")):
        b.put(folder + "/top.tile", TOP)
        b.put(folder + "/lib.tile", LIB)
        b.put(folder + "/deep.tile", DEEP % n)
    for n, folder in enumerate(("one", "two", "t wo", "new\nline", "Ünïcode-日本", "dash/-o", "$(false)", "perc%nt\\")):
        b.same("top.tile -o t.o -MD", ["t.o", "t.d"], cwd=b.at(folder))
        b.same([folder + "/top.tile", "-o", "t.o", "-MD"], ["t.o", "t.d"])
        b.same([b.at(folder) + "/top.tile", "-o", "t.o", "-MD"], ["t.o", "t.d"])
        b.same(["../one/top.tile", "-o", "t.o", "-MD"], ["t.o", "t.d"], cwd=b.at(folder.split("/")[0]))
    for target in ("one", "two"):
        for link, to in (("link.tile", f"{target}/top.tile"), ("folder", target)):
            if os.path.lexists(b.at(link)):
                os.unlink(b.at(link))
            os.symlink(to, b.at(link))
        b.same("link.tile -o t.o -MD", ["t.o", "t.d"])
        b.same("folder/top.tile -o t.o -MD", ["t.o", "t.d"])
        b.same("./folder/../folder/top.tile -o t.o -MD", ["t.o", "t.d"])
        b.put("lib.tile", LIB.replace("+ 1", f"+ {len(target)}"))
        b.put("deep.tile", DEEP % 7)
        b.same("link.tile -o t.o -MD", ["t.o", "t.d"])
    for text in (KERNEL % "2.0", KERNEL % "3.0", TOP, WARNS, "", "\0", "kernel"):
        for name in ("-", "/dev/stdin"):
            b.same(f"{name} -o t.o -MD", ["t.o", "t.d"], stdin=text.encode())
        b.same("- -o t.o", ["t.o"], stdin=text.encode(), cwd=b.at("two"))
    b.same("one/top.tile --emit tir -o k.tir", ["k.tir"])
    ir = b.get("k.tir")
    for data in (ir, ir.replace(b"%x", b"%z"), ir[:-5], ir):
        b.put("k.tir", data)
        b.same("k.tir -o t.o -MD", ["t.o", "t.d"])
        b.same("k.tir --emit ptx --target sm_80 -o -")


@test
def sources_that_can_be_read_once(b):
    """A pipe gives its bytes once; who asks again waits for ever."""
    os.mkfifo(b.at("pipe.tile"))
    b.put("top.tile", TOP.replace("lib", "pipe"))

    def feed(text):
        def write():
            with open(b.at("pipe.tile"), "w", encoding="ascii") as f:
                f.write(text)
        t = threading.Thread(target=write, daemon=True)
        t.start()
        return t

    for words, text in (("pipe.tile -o t.o", KERNEL % "5.0"), ("top.tile -o t.o", "auto one(auto x) { return x * 7; }\n")):
        results = []
        for end in ("--cache=off", "--color=never", "--color=never"):
            t = feed(text)
            results.append(b.run(f"{words} {end}", ["t.o"], hang=20))
            t.join(20)
            assert not t.is_alive()
        assert results[0] == results[1] == results[2], f"{words}: {results}"


@test
def options(b):
    b.put("o.tile", "kernel k(const f32 x[N], f32 y[N], const int B = 32) grid(cdiv(N, B)) { int spare = 1; int i = pid(0) * B; assert(N > 0); "
                    "for (int j : range(4)) { y[i +: B] = x[i +: B] * 2.0; } }\nkernel l(f32 y[N], const int C = 4) grid(N) { y[pid(0)] = (f32)C; }\n")
    b.same("o.tile --emit tir --target sm_80 -o o.tir", ["o.tir"])
    variants = ["", "--name other", "--name a.b", "--kernel k", "--kernel l", "--const B=64", "--const B=128", "--const k.B=64", "--const C=5", "--const B=64 --const C=5",
                "--const C=5 --const B=64", "--warps 1", "--warps 2", "--stages 2", "--stages 3", "-I .", "-O0", "-O1", "-O2", "-O3", "-g", "--check", "-g --check", "--fp strict",
                "--fp ring", "--fp default", "-Werror", "-Wno-unused", "-Werror=unused", "-Wall", "-Wno-unused -Wall", "-Wall -Wno-unused", "-Werror -Wno-error",
                "--color always", "--color never", "--diagnostics json", "--diagnostics sarif", "--diagnostics text", "--skip dce", "--skip cse", "--stop-after dce",
                "--passes dce", "--stress-layouts 1", "--stress-layouts 2", "--verify-each", "--const B=nonsense", "--const B=48", "--fp nonsense", "--kernel nobody",
                "--override dce:o.tir", "--bisect 3", "--bisect 0", "--print-after dce", "--header o.h"]
    targets = ["--target sm_80 --emit ptx", "--target cpu"]
    if b.long:
        targets += [f"--target {t} --emit {e}" for t, e in (("cpu:x86-64-v2", "asm"), ("gfx942", "asm"), ("sm_90a", "llvm"), ("sm_80", "laidout"), ("cpu", "ast"),
                                                            ("cpu", "opt"), ("cpu", "tir"), ("gfx942", "hsaco"), ("ref", "image"), ("emu:sm_80", "image"))]
    refs = {}
    for again in range(2):  # the second time, all of them are there
        for target in targets:
            for v in variants:
                words = f"o.tile -o o.out -MD {target} {v}"
                refs[words] = b.same(words, ["o.out", "o.d", "o.h"], 1, ref=refs.get(words))
    for stage in "ast tir opt laidout staged nest loops llvm asm ptx obj header image".split():
        b.same(f"o.tile --kernel k --emit {stage} --target sm_80 -o o.out", ["o.out"])
    for target in ("cpu", "cpu:x86-64-v2", "cpu:x86-64-v3", "ref", "sm_90", "gfx942", "cpu,sm_80", "sm_80,cpu", "emu:sm_80", "emu:sm_80@x86-64-v2", "nonsense"):
        b.same(f"o.tile --emit image --target {target} -o o.out", ["o.out"])
    b.put("over.tir", b.get("o.tir").replace(b"0", b"0 "))
    b.same("o.tile --target sm_80 --emit ptx --override dce:over.tir -o o.out", ["o.out"])
    os.unlink(b.at("over.tir"))
    b.same("o.tile --target sm_80 --emit ptx --override dce:over.tir -o o.out", ["o.out"])


@test
def watched(b):
    """What is watched neither reads nor writes the cache; the result is the same."""
    b.kernel()
    ref = b.same("k.tile -o k.o", ["k.o"], 1)
    for words, files in (("--time-passes", []), ("--time-trace trace", []), ("--print-after all", []), ("--dump-dir dump", []), ("--bisect 2", [])):
        got = []
        n = b.compiles(lambda: got.append(b.run(f"k.tile -o k.o {words}", ["k.o", *files])))
        assert got[0][0] == 0 and n == 0, (words, n)
        assert "bisect" in words or got[0][3][0] == ref[3][0], words
    assert os.path.exists(b.at("trace")) and os.listdir(b.at("dump"))
    shutil.rmtree(b.at("dump"))
    b.run("k.tile -o k.o --dump-dir dump")
    assert os.listdir(b.at("dump")), "a second compilation dumps nothing"
    for n in range(2):
        p = b.run("explain k.tile --target gfx942")
        assert p[0] == 0 and p == b.run("explain k.tile --target gfx942 --cache=off")


@test
def warnings(b):
    b.put("w.tile", WARNS)
    forms = ["", "-Werror", "-Wno-unused", "--diagnostics json", "--diagnostics sarif", "-Werror=unused", "--color always", "-Werror --diagnostics json"]
    for first in forms:
        b.clear()
        for then in (first, *forms):
            b.same(f"w.tile -o w.o {then}", ["w.o"])
    b.put("w.tile", "\n" + WARNS)
    b.same("w.tile -o w.o", ["w.o"])
    os.rename(b.at("w.tile"), b.at("v.tile"))
    b.same("v.tile -o w.o", ["w.o"])
    for columns, terminal in (("80", "dumb"), ("30", "xterm-256color"), ("1", "")):
        b.same("v.tile -o w.o", ["w.o"], env={"COLUMNS": columns, "TERM": terminal, "NO_COLOR": terminal or None})


@test
def ptxas_is_an_input(b):
    """--emit=cubin depends on the program that PATH finds."""
    b.kernel()
    env = b.ptxas()
    one = b.same(CUBIN, env=env)
    assert one[0] == 0 and one[1], one
    b.put("other/ptxas", PTXAS.replace("cp", "echo another > \"$4\"; :"))
    os.chmod(b.at("other/ptxas"), 0o755)
    b.same(CUBIN, env={**env, "PATH": b.at("other") + ":" + env["PATH"]})
    b.same(CUBIN, env=env)
    b.put("other/ptxas", PTXAS.replace("cp", "echo better > \"$4\"; :"))
    b.same(CUBIN, env={**env, "PATH": b.at("other") + ":" + env["PATH"]})
    os.chmod(b.at("other/ptxas"), 0o644)
    b.same(CUBIN, env={**env, "PATH": b.at("other") + ":" + env["PATH"]})
    shutil.rmtree(b.at("other"))
    os.makedirs(b.at("other/ptxas"))
    b.same(CUBIN, env={**env, "PATH": b.at("other") + ":" + env["PATH"]})
    b.same(CUBIN, env={**env, "PATH": "fake:/usr/bin:/bin"})
    b.same(CUBIN, env={**env, "PATH": ":/usr/bin:/bin"}, cwd=b.at("fake"))  # "": the current folder
    b.kernel("fake/k.tile")
    b.same(CUBIN, env={**env, "PATH": ":/usr/bin:/bin"}, cwd=b.at("fake"))
    b.same(CUBIN, env={**env, "PATH": "/nowhere"})
    b.same(CUBIN, env={**env, "PATH": None})


@test
def sources_that_change_meanwhile(b):
    """ptxas changes a source that has been read: what is compiled is not kept for what is there now."""
    for name, new in (("top.tile", TOP.replace("lib.one(", "3 * lib.one(")), ("lib.tile", LIB.replace("+ 1", "+ 8")), ("deep.tile", DEEP % 8), ("early/lib.tile", None)):
        b.clear()
        for n, text in (("top.tile", TOP), ("late/lib.tile", LIB), ("late/deep.tile", DEEP % 2)):
            b.put(n, text)
        name = name if name in ("top.tile", "early/lib.tile") else "late/" + name
        b.put("new", new or LIB.replace("+ 1", "+ 6"))
        os.makedirs(b.at("early"), exist_ok=True)
        if os.path.exists(b.at("early/lib.tile")):
            os.unlink(b.at("early/lib.tile"))
        words = "top.tile -I early -I late --target sm_80 --emit cubin -o -"
        b.run(words, env=b.ptxas(f"cp new {name}", PTXAS_LOG=b.at("log2")))
        b.same(words, env=b.ptxas())
        if os.path.exists(b.at("early/lib.tile")):
            os.unlink(b.at("early/lib.tile"))
        for n, text in (("top.tile", TOP), ("late/lib.tile", LIB), ("late/deep.tile", DEEP % 2)):
            b.put(n, text)
        b.same(words, env=b.ptxas())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("bin")
    ap.add_argument("folder")
    ap.add_argument("-k", default="")
    ap.add_argument("--long", action="store_true")
    ap.add_argument("-v", action="store_true")
    ap.add_argument("--jobs", help=argparse.SUPPRESS)
    a = ap.parse_args()
    os.umask(0o022)
    passed = failed = skipped = 0
    for f in GROUPS:
        if a.k not in f.__name__:
            continue
        folder = os.path.join(os.path.abspath(a.folder), f.__name__)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        start, why = time.monotonic(), None
        try:
            why = f(Bench(a.bin, folder, a.long))
            skipped, passed = skipped + bool(why), passed + (not why)
        except AssertionError as e:
            failed += 1
            why = f"FAILED: {e}"
        except Exception as e:  # a test is no judge of its own faults
            failed += 1
            why = f"FAILED: {e!r}"
            traceback.print_exc()
        if why or a.v:
            print(f"{f.__name__}: {why or 'passed'}" + (f", {time.monotonic() - start:.1f} s" if a.v else ""), flush=True)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
