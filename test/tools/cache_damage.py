"""The cache damaged, misplaced, without rights, without room (a part of cache_attack.py)."""
import os
import random
import resource
import shutil
import socket
import stat
import subprocess

from cache_bench import CONTROL, gone, HANG, test, tree


# ---- damage ----

def mended(b, path, ref, whole, what):
    """The damage changes nothing, and what can be put right is."""
    b.same("k.tile -o k.o", ["k.o"], 1, ref=ref)
    assert os.path.isfile(path) and not os.path.islink(path) and b.get(path) == whole, f"{what}: the entry was not replaced"


@test
def damaged_bytes(b):
    path, ref = b.one()
    whole = b.get(path)
    size, step = len(whole), 1 if b.long else 53
    for at in sorted({*range(0, size, step), *range(0, 64, 1 if b.long else 9), size - 1}):
        data = bytearray(whole)
        data[at] ^= 1 << (at % 8)
        b.put(path, bytes(data))
        mended(b, path, ref, whole, f"byte {at} changed")
    for at in sorted({*range(0, size, 11 if b.long else 419), *range(0, 80, 1 if b.long else 9), size - 1}):
        b.put(path, whole[:at])
        mended(b, path, ref, whole, f"cut off after {at} bytes")
    chance = random.Random(1)
    for data in (whole + b"\0", whole + whole, b"\0" * size, b"\xff" * size, whole[:size // 2] + b"\0" * (size - size // 2), chance.randbytes(size), b"\n",
                 *(whole[:at] + b"\xff" * 8 + whole[at + 8:] for at in range(0, 96, 8))):
        b.put(path, data)
        assert b.run("cache verify")[0] == 1, "verify finds nothing"
        mended(b, path, ref, whole, "other bytes")
    assert b.run("cache verify")[0] == 0 and not b.strays()


def replacements(b, path):
    """Functions, each of which puts something else at the path."""
    def sparse(size):
        def make():
            b.put(path)
            os.truncate(path, size)
        return make

    def bound():
        s = socket.socket(socket.AF_UNIX)
        here = os.getcwd()
        os.chdir(os.path.dirname(path))  # names of sockets are short
        s.bind(os.path.basename(path)[:100])
        os.chdir(here)
        s.close()

    def full_folder():
        os.makedirs(path)
        b.put(os.path.join(path, "mine"), "mine")

    def unreadable(mode):
        def make():
            b.put(path, b"x" * 100)
            os.chmod(path, mode)
        return make

    return {"an empty folder": lambda: os.makedirs(path), "a folder": full_folder, "a pipe": lambda: os.mkfifo(path), "a socket": bound,
            "an empty file": sparse(0), "a huge file": sparse(1 << 36), "unreadable": unreadable(0), "unwritable": unreadable(0o444),
            **{"a link to " + to: lambda to=to: os.symlink(to, path) for to in ("/dev/zero", "/dev/full", "/dev/null", "/dev/tty", "nowhere", path, b.at("victim"), "/")}}


@test
def replaced_entries(b):
    path, ref = b.one()
    whole = b.get(path)
    for name, make in replacements(b, path).items():
        b.put("victim", "do not touch")
        gone(path)
        make()
        b.same("k.tile -o k.o", ["k.o"], 2, ref=ref)
        for action in ("ls", "verify", "dir"):
            assert b.run("cache " + action)[0] in (0, 1), name
        assert b.get("victim") == b"do not touch", name
        if not os.path.isdir(path):
            assert b.get(path) == whole, f"{name}: not replaced"
        assert name != "a folder" or os.path.exists(os.path.join(path, "mine")), "a file that is not ours was removed"
    gone(path)
    b.same("k.tile -o k.o", ["k.o"], 1, ref=ref)
    b.same("k.tile -o k.o -O0", ["k.o"], 1)
    other = next(p for p in b.entries().values() if p != path)
    shutil.copyfile(other, path)
    mended(b, path, ref, whole, "another entry under this name")
    shutil.copyfile(path, other)
    b.same("k.tile -o k.o -O0", ["k.o"])
    os.unlink(path)
    os.link(other, path)
    b.same("k.tile -o k.o", ["k.o"])
    folder = os.path.dirname(path)
    for make in (lambda: b.put(folder, "a file"), lambda: os.symlink(b.at("home"), folder), lambda: os.symlink("nowhere", folder), lambda: os.mkfifo(folder)):
        gone(folder)
        make()
        b.same("k.tile -o k.o", ["k.o"], ref=ref)
        assert b.run("cache ls")[0] == 0


@test
def replaced_control_files(b):
    _, ref = b.one()
    for control in sorted(CONTROL):
        path = os.path.join(b.cache, control)
        for name, make in replacements(b, path).items():
            b.put("victim", "do not touch")
            gone(path)
            make()
            b.same("k.tile -o k.o", ["k.o"], 1, ref=ref)
            for p in b.entries().values():
                os.unlink(p)
            b.same("k.tile -o k.o", ["k.o"], 2, ref=ref)
            b.same("k.tile -o k.o", ["k.o"], 1, ref=ref, env={"TILE_CACHE_SIZE": "1"})
            b.run("cache prune --size 0")
            b.run("cache clear")
            assert b.get("victim") == b"do not touch", f"{control} is {name}: the file that it leads to was written"
        gone(path)


# ---- where the cache is ----

@test
def places(b):
    b.kernel()
    ref = b.run("k.tile -o k.o --cache=off", ["k.o"])
    b.put("file", "a file")
    os.symlink("real", b.at("goes"))
    os.symlink("missing", b.at("dangles"))
    os.symlink("round", b.at("round"))
    os.makedirs(b.at("real"))
    for place in ("file", "file/x", "/dev/null", "/dev/null/x", "/proc", "/proc/self/x", "/dev/full", "x" * 300, "y/" * 2500, b.at("z/" * 2000)[:4090], "goes", "dangles", "round",
                  "relative/a/b/c", "./dot/", "new\nline", "Ünïcode", "%s%n", "-o", " ", "off", "OFF"):
        for env in ({"TILE_CACHE": place}, {"TILE_CACHE": None, "XDG_CACHE_HOME": place}, {"TILE_CACHE": None, "HOME": place}):
            b.same("k.tile -o k.o", ["k.o"], ref=ref, env=env)
            for action in ("dir", "ls", "verify"):
                got = b.run("cache " + action, env=env)
                assert got[0] in (0, 1, 2) and got[2].count(b"\n") < 4, (place, env, got)
        b.same("k.tile -o k.o --cache " + "relative2" if place.startswith("-") else ["k.tile", "-o", "k.o", "--cache", place], ["k.o"], ref=ref)
    assert b.get("file") == b"a file"
    for env in ({"TILE_CACHE": ""}, {"TILE_CACHE": None, "HOME": None}, {"TILE_CACHE": None, "HOME": ""}, {"TILE_CACHE": None, "XDG_CACHE_HOME": ""},
                {"TILE_CACHE": None, "XDG_CACHE_HOME": "relative-xdg"}, *({"TILE_CACHE_SIZE": s} for s in ("", "0", "x", "-1", "1Z", "1e99", "9" * 40, "18014398509481984K", "1"))):
        b.same("k.tile -o k.o", ["k.o"], ref=ref, env=env)
    os.umask(0)
    try:
        b.clear()
        b.same("k.tile -o k.o", ["k.o"], ref=ref)
        b.same("k.tile -o k.o", ["k.o"], ref=ref, env={"TILE_CACHE": None})
        for at in (b.cache, b.at("home/.cache/tile")):
            for f in (at, *tree(at).values(), *(os.path.dirname(p) for p in tree(at).values())):
                assert not os.stat(f).st_mode & 0o077, f"{f} can be written by others"
        if not os.getuid():  # others cannot read what they have written under this mask
            os.umask(0o777)
            b.same("k.tile -o k.o", ["k.o"], ref=ref, env={"TILE_CACHE": "masked"})
    finally:
        os.umask(0o022)


@test
def default_place_of_others(b):
    b.kernel()
    home, env = b.at("home/.cache/tile"), {"TILE_CACHE": None}
    ref = b.same("k.tile -o k.o", ["k.o"], env=env)
    shutil.rmtree(home)
    os.makedirs(home)
    for mode in (0o777, 0o775, 0o702):
        os.chmod(home, mode)
        b.same("k.tile -o k.o", ["k.o"], env=env, ref=ref)
        assert not tree(home), f"mode {mode:o} is trusted"
    os.chmod(home, 0o700)
    if os.getuid() == 0:
        os.chown(home, 12345, 12345)
        b.same("k.tile -o k.o", ["k.o"], env=env, ref=ref)
        assert not tree(home), "a folder of another user is trusted"


def as_nobody(b, where):
    """A way to run tilec as a user without rights; None where we have no rights either to become one."""
    if os.getuid():
        return {}
    nobody = 65534
    if subprocess.run([b.tilec, "--version"], user=nobody, group=nobody, extra_groups=[], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      cwd=where, check=False).returncode:
        return None
    return {"user": nobody, "group": nobody, "extra_groups": []}


@test
def rights(b):
    b.kernel()
    words = "k.tile --emit asm -o -"
    ref = b.same(words)
    for at in (b.folder, b.cache):
        os.chmod(at, 0o755)
    try:
        who = as_nobody(b, b.folder)
    except (PermissionError, OSError):
        who = None
    if who is None or subprocess.run(["cat", b.at("k.tile")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **who).returncode:
        return "skipped: no other user can run tilec here"
    modes = {p: stat.S_IMODE(os.stat(p).st_mode) for p in (b.cache, *tree(b.cache).values(), *(os.path.dirname(p) for p in tree(b.cache).values()))}
    for change in ({p: m & 0o555 for p, m in modes.items()}, {p: 0o555 if os.path.isdir(p) else 0 for p in modes}, {b.cache: 0o555}, {b.cache: 0},
                   {os.path.join(b.cache, "lock"): 0}, {os.path.join(b.cache, "added"): 0o444}, {os.path.dirname(p): 0o555 for p in b.entries().values()}):
        for p, m in change.items():
            os.chmod(p, m)
        b.same(words, ref=ref, **who)
        b.same(words + " -O1", **who)
        for action in ("ls", "verify", "prune --size 0", "clear", "dir"):
            assert b.run("cache " + action, **who)[0] in (0, 1, 2), action
        for p, m in modes.items():
            if os.path.exists(p):  # who owns the cache may have cleared it
                os.chmod(p, m)
        b.same(words, ref=ref)
        modes.update({p: stat.S_IMODE(os.stat(p).st_mode) for p in tree(b.cache).values()})
    os.chmod(b.at("home"), 0o555)
    b.same(words, ref=ref, env={"TILE_CACHE": None}, **who)
    os.chmod(b.at("home"), 0o755)


# ---- limits ----

def limit(what, n):
    return lambda: resource.setrlimit(what, (n, n))


@test
def small_limits(b):
    b.kernel()
    ref = b.run("k.tile -o -  --emit asm --cache=off")
    for n in (0, 1, 100, 1000, 3000, 5000):
        b.clear()
        b.same("k.tile --emit asm -o -", ref=ref, preexec_fn=limit(resource.RLIMIT_FSIZE, n))
        assert not b.strays(), f"at most {n} bytes: {b.strays()} stay"
    b.same("k.tile --emit asm -o -", ref=ref)
    for n in range(3, 16):
        for again in range(2):
            off = b.run("k.tile --emit asm -o - --cache=off", preexec_fn=limit(resource.RLIMIT_NOFILE, n))
            if off[0] == 0:
                b.same("k.tile --emit asm -o -", ref=ref, preexec_fn=limit(resource.RLIMIT_NOFILE, n))
            b.clear()
    for mib in (*range(60, 400, 20 if b.long else 60), 1000):
        off = b.run("k.tile --emit asm -o - --cache=off", preexec_fn=limit(resource.RLIMIT_AS, mib << 20))
        for _ in range(2):
            got = b.run("k.tile --emit asm -o -", preexec_fn=limit(resource.RLIMIT_AS, mib << 20))
            assert got in (off, ref) or (got[0] > 0 and got[2]), f"{mib} MiB: {got}, without the cache {off}"
        b.same("k.tile --emit asm -o -", ref=ref)


@test
def full_disk(b):
    b.clear()
    os.makedirs(b.cache)
    if os.getuid() or subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", b.cache], stderr=subprocess.DEVNULL, check=False).returncode:
        return "skipped: cannot mount a file system"
    script = ["n=0; ok=0"]
    for i in range(12):
        b.kernel(f"k{i}.tile", f"{i}.5")
        b.run(f"k{i}.tile --name k -o ref{i}.o --cache=off")
        script.append(f"for t in 1 2; do rm -f got; \"$T\" k{i}.tile --name k -o got 2>err && cmp got ref{i}.o && [ ! -s err ] && ok=$((ok + 1)); n=$((n + 1)); done")
    script.append('echo "$ok of $n"; find "$C" -name ".*" -type f | wc -l; "$T" cache verify; "$T" cache clear')
    for options in ("size=4k", "size=16k", "size=32k", "size=64k", "nr_inodes=2", "nr_inodes=6", "nr_inodes=12", "ro"):
        mount = f'mount -t tmpfs -o mode=700,{options} none "$C" || exit 9; '
        p = subprocess.run(["unshare", "-m", "sh", "-c", mount + "\n".join(script)], cwd=b.folder, env={**b.env, "T": b.tilec, "C": b.cache},
                           capture_output=True, text=True, timeout=2 * HANG, check=False)
        lines = p.stdout.splitlines()
        assert lines[:2] == ["24 of 24", "0"], f"{options}: {p.stdout}{p.stderr}"
        assert len(lines) < 3 or lines[2].endswith(" 0 damaged"), f"{options}: {lines[2]}"
    return None
