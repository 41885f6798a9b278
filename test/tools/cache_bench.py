"""What the tests of the cache share (cache_attack.py): running tilec with and without it, and looking into it."""
import os
import re
import shutil
import signal
import subprocess
import time

HANG = 60
KERNEL = "kernel k(const f32 x[N], f32 y[N], const int B = 16) grid(cdiv(N, B)) { int i = pid(0) * B; y[i +: B] = x[i +: B] * %s; }\n"
WARNS = KERNEL.replace("int i", "int spare = 3; int i") % "2.0"
TOP = 'import "lib.tile";\nkernel k(const f32 x[N], f32 y[N]) grid(N) { y[pid(0)] = lib.one(x[pid(0)]); }\n'
LIB = 'import "deep.tile";\nauto one(auto x) { return deep.two(x) + 1; }\n'
DEEP = "auto two(auto x) { return x * %d; }\n"
PTXAS = """#!/bin/sh
echo ran >> "$PTXAS_LOG"
[ -z "$PTXAS_DOES" ] || eval "$PTXAS_DOES"
cp "$2" "$4"
"""
GROUPS = []
NAME = re.compile(r"^[0-9a-f]{2}/[0-9a-f]{62}$")
CONTROL = {"lock", "added", "CACHEDIR.TAG"}


def test(f):
    GROUPS.append(f)
    return f


def tree(folder):
    """name -> path of each file below the folder, links and pipes included."""
    return {os.path.relpath(os.path.join(at, n), folder): os.path.join(at, n) for at, dirs, names in os.walk(folder)
            for n in names + [d for d in dirs if os.path.islink(os.path.join(at, d))]}


def gone(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


class Bench:
    def __init__(self, bin_, folder, long):
        self.tilec, self.folder, self.long = os.path.join(os.path.abspath(bin_), "tilec"), folder, long
        self.cache = self.at("cache")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("TILE_", "XDG_"))}
        self.env.update(HOME=self.at("home"), TILE_CACHE=self.cache, TILE_THREADS="2", PTXAS_LOG=self.at("ptxas.log"))
        self.refs = {}
        os.makedirs(self.at("home"))
        os.makedirs(self.at("fake"))
        self.put("fake/ptxas", PTXAS)
        os.chmod(self.at("fake/ptxas"), 0o755)

    def at(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, data=""):
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        with open(self.at(name), "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)

    def get(self, path):
        with open(self.at(path), "rb") as f:
            return f.read()

    def words(self, words):
        return [self.tilec, *(words.split() if isinstance(words, str) else words)]

    def popen(self, words, env=None, **more):
        def heed_interrupts():  # lit ignores them, and what it starts would, too
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        more = {"preexec_fn": heed_interrupts, "cwd": self.folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **more}
        return subprocess.Popen(self.words(words), env={k: v for k, v in {**self.env, **(env or {})}.items() if v is not None}, **more)

    def run(self, words, files=(), env=None, stdin=b"", hang=HANG, **more):
        """(exit status, standard output, standard error, contents of the files)"""
        where = more.get("cwd", self.folder)
        for f in files:
            if os.path.lexists(os.path.join(where, f)):
                os.unlink(os.path.join(where, f))
        p = self.popen(words, env, **{"stdin": subprocess.PIPE, **more})
        try:
            out, err = p.communicate(stdin, timeout=hang)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            raise AssertionError(f"{words}: hangs") from None
        return p.returncode, out, err, [self.get(os.path.join(where, f)) if os.path.exists(os.path.join(where, f)) else None for f in files]

    def same(self, words, files=(), times=2, ref=None, **more):
        """Without the cache, then `times` times with it: all the same. Gives the first."""
        words = words.split() if isinstance(words, str) else list(words)
        want = ref or self.run([*words, "--cache=off"], files, **more)
        for i in range(times):
            got = self.run(words, files, **more)
            for what, a, b in zip(("status", "stdout", "stderr", "files"), want, got):
                assert a == b, f"{words}, time {i + 1}: {what} {str(b)[:300]!r}, without the cache {str(a)[:300]!r}"
        return want

    def entries(self):
        return {n: p for n, p in tree(self.cache).items() if NAME.match(n)}

    def strays(self, cache=None):
        return [n for n in tree(cache or self.cache) if not NAME.match(n) and n not in CONTROL]

    def added(self):
        """4 KiB blocks that were ever added to the cache. Entries of these tests are one block or few."""
        path = os.path.join(self.cache, "added")
        return os.path.getsize(path) if os.path.isfile(path) else 0

    def compiles(self, f):
        """Blocks that are written while f runs."""
        before = self.added()
        f()
        return self.added() - before

    def clear(self):
        if os.path.islink(self.cache) or os.path.isfile(self.cache):
            os.unlink(self.cache)
        shutil.rmtree(self.cache, ignore_errors=True)

    def kernel(self, name="k.tile", factor="2.0"):
        self.put(name, KERNEL % factor)
        return name

    def one(self):
        """The path of the only entry of a cache that has just been made, and what its command gives."""
        self.clear()
        self.kernel()
        ref = self.same("k.tile -o k.o", ["k.o"], 1)
        (path,) = self.entries().values()
        return path, ref

    def ptxas(self, does=None, **more):
        """The environment in which tilec starts our ptxas, which does something first."""
        return {"PATH": self.at("fake") + os.pathsep + self.env["PATH"], **({"PTXAS_DOES": does} if does else {}), **more}

    def assembled(self):
        return len(self.get("ptxas.log").split()) if os.path.exists(self.at("ptxas.log")) else 0

    def wait_for(self, condition, what):
        end = time.monotonic() + HANG
        while not condition():
            assert time.monotonic() < end, f"{what} never came"
            time.sleep(0.005)


CUBIN = "k.tile --target sm_80 --emit cubin -o -"
