"""Who may put code into a process: folders and programs that others could have written are not used, and the environment says
nothing to a program that has more rights than its caller.

    privileged.py BIN UNIT      tilec is in BIN, runtime_privileged in UNIT; without rights to be another user, some are skipped
"""
import grp
import os
import pwd
import shutil
import subprocess
import sys
import tempfile

NOBODY = 65534
ROOT = os.geteuid() == 0
FAKE = """#!/bin/sh
echo "$0 $*" >> {log}
while [ "$1" != -o ]; do shift; done
echo made > "$2"
"""
TUNED = """{"format": "tile-tune", "version": 1, "results": [{"kernel": "gemm", "constants": "", "hash": "1",
"device": {"target": "sm_80", "name": "", "threads": 0}, "keys": "N", "bucket": [1], "sizes": [1], "best": "BM=16", "how": "timed", "tool": "",
"times": {"BM=16": 1}}]}
"""
KERNEL = "kernel k(f32 y[1]) grid(1) { y[0] = 1; }\n"


class Place:
    """A folder below /tmp that only this user may write to, and that others may enter."""

    def __init__(self, bin_, unit):
        self.folder = tempfile.mkdtemp(prefix="tile-trust-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.tilec, self.program = os.path.join(bin_, "tilec"), self.at("program")
        shutil.copy(os.path.join(unit, "runtime_privileged"), self.program)
        with open(self.at("k.tile"), "w", encoding="utf-8") as f:
            f.write(KERNEL)

    def at(self, name):
        return os.path.join(self.folder, name)

    def make(self, name, mode=0o755, owner=None):
        os.makedirs(self.at(name), exist_ok=True)
        if owner is not None:
            os.chown(self.at(name), owner, owner)
        os.chmod(self.at(name), mode)  # after chown
        return self.at(name)

    def run(self, *words, env=None, **who):
        clean = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "TILE_THREADS": "1"}
        if os.environ.get("LD_LIBRARY_PATH"):
            clean["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        p = subprocess.run(words, env={**clean, **(env or {})}, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False, **who)
        return p.stdout + p.stderr

    def runs(self, *words, **more):
        out = self.run(self.program, *words, **more)
        assert "status 0, y = 1234.5" in out, out
        return out


def entries(folder):
    return sorted(os.path.join(at, n) for at, _, names in os.walk(folder) for n in names if len(n) == 62)


def used(p, cache, **more):
    """Is a folder that TILE_CACHE names used as the cache?"""
    before = len(entries(cache))
    p.runs(env={"TILE_CACHE": cache}, **more)
    return len(entries(cache)) > before


def is_alone():
    """Is nobody else in the group of folders that we make?"""
    user, group = os.geteuid(), os.getegid()
    users, members = [u.pw_uid for u in pwd.getpwall() if u.pw_gid == group], [m for g in grp.getgrall() if g.gr_gid == group for m in g.gr_mem]
    return user != 0 and users == [user] and set(members) <= {pwd.getpwuid(user).pw_name}


def caches(p):
    assert used(p, p.at("fresh"))
    assert used(p, p.make("own", 0o700))
    assert used(p, p.make("sticky/x", 0o700) if p.make("sticky", 0o1777) else None)
    for mode in (0o777, 0o775, 0o757, 0o1777):
        own = mode == 0o775 and is_alone()
        assert used(p, p.make(f"mode{mode:o}", mode)) == own, oct(mode)
        p.make(f"in{mode:o}")
        if not mode & 0o1000:
            p.make(f"in{mode:o}", mode)
            assert used(p, p.make(f"in{mode:o}/x", 0o700)) == own, oct(mode)
            assert used(p, p.at(f"in{mode:o}/absent")) == own, oct(mode)
    os.symlink(p.at("mode777"), p.at("link"))
    assert not used(p, p.at("link"))
    os.symlink(p.at("nothing"), p.at("dangling"))
    assert not used(p, p.at("dangling")) and not os.path.exists(p.at("nothing"))
    said = p.run(p.tilec, "cache", "dir", env={"TILE_CACHE": p.at("mode777")})
    assert "can be written by others" in said, said
    p.runs(p.at("mode777"))  # the API's word counts
    assert entries(p.at("mode777"))
    p.run(p.tilec, "k.tile", "-o", "k.o", "--cache", p.at("mode775"))
    assert entries(p.at("mode775"))


def caches_of_others(p):
    assert not used(p, p.make("nobodys", 0o755, NOBODY))
    p.make("nobody", 0o755, NOBODY)
    assert not used(p, p.make("nobody/roots", 0o700, 0))
    assert not used(p, p.at("nobody/absent"))
    cache = p.make("planted", 0o700)
    assert used(p, cache)
    (entry,) = entries(cache)
    whole = open(entry, "rb").read()
    os.chown(entry, NOBODY, NOBODY)
    p.runs(env={"TILE_CACHE": cache})
    assert os.stat(entry).st_uid == 0 and open(entry, "rb").read() == whole, "an entry of another user was used"
    os.chmod(entry, 0o666)
    p.runs(env={"TILE_CACHE": cache})
    assert os.stat(entry).st_mode & 0o777 == 0o600, "an entry that others can write was used"


def set_user_id(p):
    os.chown(p.program, 0, 0)
    os.chmod(p.program, 0o4755)
    mine = p.make("mine", 0o755, NOBODY)
    env = {"TILE_CACHE": mine, "XDG_CACHE_HOME": mine, "HOME": mine, "TMPDIR": mine, "PATH": mine, "TILE_COMPILER": mine, "TILE_PTXAS": mine,
           "TILE_DEVICE": "no such device", "TILE_THREADS": "nonsense", "TILE_SYNC": "nonsense", "TILE_PRINT": "nonsense", "TILE_BREAK": "nonsense", "TILE_TUNE": "nonsense",
           "TILE_CACHE_SIZE": "nonsense", "TILE_CACHE_BYTES": "nonsense", "TILE_AFFINITY": "nonsense", "LD_LIBRARY_PATH": ""}
    out = p.run(p.program, env=env, user=NOBODY, group=NOBODY, extra_groups=[])
    os.chmod(p.program, 0o755)
    if f"uid {NOBODY}, euid {NOBODY}" in out:
        return "skipped: the set-user-ID bit does not count here"
    if "cannot open shared object" in out:
        return "skipped: the program needs LD_LIBRARY_PATH"
    assert f"uid {NOBODY}, euid 0, status 0, y = 1234.5" in out, out
    assert not os.listdir(mine), os.listdir(mine)
    return None


def assembler(p):
    log = p.at("log")

    def install(folder, mode):
        path = os.path.join(p.make(folder), "ptxas")
        with open(path, "w", encoding="utf-8") as f:
            f.write(FAKE.format(log=log))
        os.chmod(path, 0o755)
        return p.make(folder, mode)

    def started(path, **env):
        if os.path.exists(log):
            os.unlink(log)
        out = p.run(p.tilec, "k.tile", "--target", "sm_80", "--emit=cubin", "-o", "k.cubin", "--cache=off", env={"PATH": path, **env})
        return open(log, encoding="utf-8").read() if os.path.exists(log) else out

    good, bad = install("tools/good", 0o755), install("tools/bad", 0o777)
    assert started(good + ":/usr/bin:/bin").startswith(good + "/ptxas ")
    out = started(bad + ":/usr/bin:/bin")
    assert "no ptxas on PATH that can be trusted" in out and bad in out and "can be written by others" in out, out
    assert started(f"{bad}:{good}:/usr/bin:/bin").startswith(good + "/ptxas ")
    for relative in ("tools/good:/usr/bin:/bin", ":/usr/bin:/bin"):
        assert "no ptxas on PATH" in started(relative)
    assert started("/usr/bin:/bin", TILE_PTXAS=bad + "/ptxas").startswith(bad + "/ptxas ")
    assert "TILE_PTXAS is 'ptxas'" in started(good, TILE_PTXAS="ptxas")
    os.chmod(os.path.join(good, "ptxas"), 0o757)
    assert "others can write it" in started(good + ":/usr/bin:/bin")
    os.chmod(os.path.join(good, "ptxas"), 0o755)
    os.makedirs(p.at("tools/link"))
    os.symlink(bad + "/ptxas", p.at("tools/link/ptxas"))
    assert "can be written by others" in started(p.at("tools/link") + ":/usr/bin:/bin")
    own, open_ = p.make("temporary", 0o700), p.make("open", 0o777)
    path = good + ":/usr/bin:/bin"
    assert f" {own}/tilec-" in started(path, TMPDIR=own)
    assert f" {p.make('sticky2', 0o1777)}/tilec-" in started(path, TMPDIR=p.at("sticky2"))
    for other in (open_, "open", "/nowhere"):
        assert " /tmp/tilec-" in started(path, TMPDIR=other), other
    assert not os.listdir(own) and not os.listdir(open_)


def tuning(p):
    """Results for a module of the library are in the current folder, which nobody named."""
    home = p.make("tuning")
    with open(os.path.join(home, "std.kernels.gemm.tune.json"), "w", encoding="utf-8") as f:
        f.write(TUNED)

    def said(mode, *words):
        p.make("tuning", mode)
        q = subprocess.run([p.tilec, "std.kernels.gemm", "--kernel", "gemm", "--const", "T=f32", "-o", p.at("gemm.o"), "--cache=off", *words], cwd=home, capture_output=True,
                           text=True, env={"PATH": "/usr/bin:/bin"}, timeout=120, check=False)
        return q.stderr

    assert "not used" not in said(0o755), said(0o755)
    out = said(0o777)
    assert "the tuning results are not used: " in out and "can be written by others" in out, out
    assert "not used" not in said(0o777, "--tune", "std.kernels.gemm.tune.json")  # it has been named


def main(bin_, unit):
    p, n = Place(os.path.abspath(bin_), os.path.abspath(unit)), 0
    try:
        for f in (caches, assembler, tuning, *((caches_of_others, set_user_id) if ROOT else ())):
            note = f(p)
            print(f"{f.__name__}: {note or 'ok'}")
            n += 1
        if not ROOT:
            print("skipped: what needs another user")
    finally:
        shutil.rmtree(p.folder)
    print(f"{n} groups, 0 failed")


if __name__ == "__main__":
    main(*sys.argv[1:3])
