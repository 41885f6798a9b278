"""Many processes at one cache, killed and stopped; its size; tilec cache (a part of cache_attack.py)."""
import os
import random
import re
import shutil
import signal
import threading
import time

from cache_bench import CONTROL, CUBIN, DEEP, HANG, LIB, TOP, gone, test, tree


# ---- at the same time ----

def all_of(b, started, ref):
    for p in started:
        out, err = p.communicate(timeout=2 * HANG)
        assert (p.returncode, out, err) == ref[:3], f"{p.args}: {p.returncode} {err[-300:]!r}, {len(out)} bytes, not {len(ref[1])}"


@test
def once_per_key(b):
    keys = 4
    refs = []
    for i in range(keys):
        b.kernel(f"k{i}.tile", f"{i}.5")
        refs.append(b.run(f"k{i}.tile --target sm_80 --emit cubin -o - --cache=off", env=b.ptxas()))
    before = b.assembled()
    env = b.ptxas('while [ ! -e go ]; do sleep 0.01; done')
    started = [(i % keys, b.popen(f"k{i % keys}.tile --target sm_80 --emit cubin -o -", env)) for i in range(16)]
    b.wait_for(lambda: b.assembled() >= before + keys, "the first compilations")
    b.put("go")
    for i, p in started:
        all_of(b, [p], refs[i])
    assert b.assembled() == before + keys, f"{b.assembled() - before} compilations of {keys} keys"
    assert len(b.entries()) == keys and not b.strays()
    b.clear()  # and without anything that makes them wait for each other
    for _ in range(10 if b.long else 2):
        before = b.added()
        b.kernel(factor=str(random.random()))
        ref = b.run("k.tile --emit asm -o - --cache=off")
        all_of(b, [b.popen("k.tile --emit asm -o -") for _ in range(16)], ref)
        (size,) = {os.path.getsize(p) for n, p in b.entries().items()} if len(b.entries()) == 1 else (0,)
        assert not size or b.added() - before == (size + 4095) // 4096, "compiled more than once"
        b.clear()


@test
def holders_that_die(b):
    """Who waits goes on at once when the holder is killed, though its ptxas lives on."""
    b.kernel()
    ref = b.run(CUBIN + " --cache=off", env=b.ptxas())
    for sign in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGABRT, signal.SIGHUP, signal.SIGPIPE):
        before = b.assembled()
        env = b.ptxas('if mkdir first 2>/dev/null; then ls -l /proc/$$/fd >> fds; sleep 1000 & echo $! > sleeper; wait; fi')
        holder = b.popen(CUBIN, env)
        b.wait_for(lambda: os.path.exists(b.at("sleeper")) and b.get("sleeper"), "the sleeper")
        waiting = [b.popen(CUBIN, env) for _ in range(3)]
        time.sleep(0.05)
        assert b.assembled() == before + 1, "one did not wait"
        os.kill(holder.pid, sign)
        holder.wait(HANG)
        all_of(b, waiting, ref)
        assert b.assembled() == before + 2, f"signal {sign}: {b.assembled() - before} compilations"
        os.kill(int(b.get("sleeper")), signal.SIGKILL)
        holder.communicate()
        for name in ("first", "sleeper"):
            gone(b.at(name))
        b.clear()
    assert b.cache.encode() not in b.get("fds"), "ptxas inherits files of the cache"


@test
def changed_and_changed_back(b):
    """What is kept is of the files that its key tells of, though an import changes behind it and is as before at the end."""
    b.put("k.tile", TOP)
    b.put("lib.tile", LIB)
    b.put("deep.tile", DEEP % 2)
    b.put("before", DEEP % 2)
    ref = b.run(CUBIN + " --cache=off", env=b.ptxas())
    env = b.ptxas("if mkdir first 2>/dev/null; then sleep 1000 & echo $! > sleeper; wait; else cp before deep.tile; fi")
    holder = b.popen(CUBIN, env)
    b.wait_for(lambda: os.path.exists(b.at("sleeper")) and b.get("sleeper"), "the sleeper")
    waiting = b.popen(CUBIN, env)
    time.sleep(0.3)
    b.put("deep.tile", DEEP % 3)
    holder.kill()
    all_of(b, [waiting], ref)
    assert b.get("deep.tile") == (DEEP % 2).encode(), "it was not changed back"
    b.same(CUBIN, times=2, ref=ref, env=b.ptxas())
    os.kill(int(b.get("sleeper")), signal.SIGKILL)
    holder.communicate()


@test
def holder_that_stops(b):
    if not b.long:
        return "skipped: two minutes, with --long"
    b.kernel()
    ref = b.run(CUBIN + " --cache=off", env=b.ptxas())
    env = b.ptxas("if mkdir first 2>/dev/null; then sleep 1000 & echo $! > sleeper; wait; fi")
    holder = b.popen(CUBIN, env)
    b.wait_for(lambda: os.path.exists(b.at("sleeper")) and b.get("sleeper"), "the sleeper")
    os.kill(holder.pid, signal.SIGSTOP)
    waiting = [b.popen(CUBIN, env) for _ in range(3)]
    for p in waiting:
        assert p.communicate(timeout=150)[0] == ref[1]
    os.kill(holder.pid, signal.SIGKILL)
    os.kill(int(b.get("sleeper")), signal.SIGKILL)
    holder.communicate()
    gone(b.at("first"))
    return None


@test
def killed_at_any_moment(b):
    chance, rounds, strays = random.Random(2), 400 if b.long else 24, 0
    refs = {}
    for i in range(4):
        b.kernel(f"k{i}.tile", f"{i}.5")
        refs[i] = b.run(f"k{i}.tile --emit asm -o - --cache=off")
    for n in range(rounds):
        if n % 4 == 0:
            for p in b.entries().values():
                os.unlink(p)
        started = [b.popen(f"k{chance.randrange(4)}.tile --emit asm -o -") for _ in range(3)]
        time.sleep(chance.random() * 0.05)
        for p in started:
            p.kill()
            p.communicate()
        strays = len(b.strays())
        assert strays <= 3 * (n + 1)
        i = n % 4
        b.same(f"k{i}.tile --emit asm -o -", times=1, ref=refs[i])
    assert b.run("cache verify")[0] == 0
    b.put(os.path.join(b.cache, "ab", "." + "0" * 62 + "-1-1"), "half")
    strays = b.strays()
    assert b.run("cache prune")[0] == 0 and b.strays() == strays, "what is being written was removed"
    for s in strays:
        os.utime(os.path.join(b.cache, s), (time.time() - 7200,) * 2)
    assert b.run("cache prune")[0] == 0 and not b.strays(), f"{b.strays()} stay"


@test
def pruned_meanwhile(b):
    refs, stop, failures = {}, threading.Event(), []
    for i in range(6):
        b.kernel(f"k{i}.tile", f"{i}.5")
        refs[i] = b.run(f"k{i}.tile --emit asm -o - --cache=off")

    def loop(action):
        while not stop.is_set():
            if action is None:
                shutil.rmtree(b.cache, ignore_errors=True)
                time.sleep(0.01)
            elif (got := b.run(action))[0] not in (0, 1):
                failures.append((action, got))

    for actions in (["cache prune --size 0", "cache clear", "cache verify"], [None]):
        stop.clear()
        threads = [threading.Thread(target=loop, args=(a,)) for a in actions]
        for t in threads:
            t.start()
        try:
            for n in range(60 if b.long else 8):
                env = {"TILE_CACHE_SIZE": ("1", "5000", "20K", "1G")[n % 4]}
                started = [(i % 6, b.popen(f"k{i % 6}.tile --emit asm -o -", env)) for i in range(8)]
                for i, p in started:
                    all_of(b, [p], refs[i])
        finally:
            stop.set()
            for t in threads:
                t.join()
        assert not failures, failures[0]
    assert not b.strays() and b.run("cache verify")[0] == 0


# ---- sizes, clocks, tilec cache ----

def bytes_kept(b):
    return sum(os.stat(p).st_blocks * 512 for p in b.entries().values())


@test
def sizes(b):
    for n in range(40 if b.long else 24):
        b.kernel(factor=f"{n}.5")
        b.run("k.tile --emit asm -o -", env={"TILE_CACHE_SIZE": "32K"})
        assert bytes_kept(b) <= 64 << 10, f"{bytes_kept(b)} bytes after {n + 1} results, at most 32K"
    assert b.entries() and not b.strays()
    far = time.time() + 10 * 365 * 86400
    for p in (*b.entries().values(), *(os.path.join(b.cache, c) for c in CONTROL)):
        os.utime(p, (far, far))  # the clock was set back
    for n in range(24):
        b.kernel(factor=f"{n}.25")
        b.same("k.tile --emit asm -o -", env={"TILE_CACHE_SIZE": "32K"})
        assert bytes_kept(b) <= 64 << 10, "clock set back: no limit"
    assert b.compiles(lambda: b.same("k.tile --emit asm -o -", times=1, env={"TILE_CACHE_SIZE": "32K"})) == 0, "clock set back: what is new is not kept"
    b.clear()
    for n in range(5):
        b.kernel(f"k{n}.tile", f"{n}.5")
        b.run(f"k{n}.tile --emit asm -o -")
        now = time.time() - 1000 + n
        for p in b.entries().values():
            if os.path.getmtime(p) > time.time() - 500:
                os.utime(p, (now, now))
    assert b.compiles(lambda: b.same("k0.tile --emit asm -o -", times=1)) == 0  # used now
    sizes_ = [os.stat(p).st_blocks * 512 for p in b.entries().values()]
    assert b.run(f"cache prune --size {max(sizes_) * 2}")[0] == 0 and len(b.entries()) == 2
    assert b.compiles(lambda: (b.same("k0.tile --emit asm -o -", times=1), b.same("k4.tile --emit asm -o -", times=1))) == 0, "not the oldest went"


@test
def commands(b):
    for words in ("cache nonsense", "cache ls more", "cache --size 1", "cache prune 5", "cache prune --size", "cache prune --size -1", "cache prune --size 1X", "cache prune --size=",
                  "cache prune --size 1 2", "cache clear x", "cache verify x", "cache dir x", "cache ls ls", "cache prune --size 99999999999999999999", "cache prune --size 1e3",
                  "cache prune --size +1", "cache prune --size 0x10"):
        got = b.run(words)
        assert got[0] == 2 and got[2] and not got[1], (words, got)
    for action in ("", "ls", "verify", "prune", "prune --size 0", "clear"):
        b.clear()
        assert b.run("cache " + action)[0] == 0 and not os.path.exists(b.cache), f"{action} makes a folder"
        os.makedirs(b.cache)
        assert b.run("cache " + action)[0] == 0 and not tree(b.cache), f"{action} makes files"
    assert b.run("cache dir")[1] == b.cache.encode() + b"\n"
    with open("/dev/full", "wb") as full:
        for action in ("ls", "dir", "verify", "prune", "clear"):
            b.one()
            assert b.run("cache " + action, stdout=full)[0] == 2, f"{action}: a full disk is not said"
    for name in ("a\x1b[31mb.tile", "new\nline.tile", "cr\rx.tile", "tab\tx.tile"):
        b.clear()
        b.kernel(name)
        b.run([name, "-o", "k.o"])
        out = b.run("cache ls")[1]
        assert out.count(b"\n") == 3 and not re.search(rb"[\x00-\x09\x0b-\x1f]", out), f"{name!r}: {out}"


@test
def files_that_are_not_ours(b):
    for has_cache in (False, True):
        b.clear()
        if has_cache:
            b.one()
        foreign = ["ab/note", "ab/.hidden", "ab/" + "g" * 62, "ab/" + "a" * 61, "ab/" + "a" * 63, "ab/" + "A" * 62, "abc/" + "a" * 61, "note", ".git/config", "objects/ab/" + "c" * 62,
                   "ab/.x-1-1", "ab/" + "a" * 62 + ".pack", "abcdef", "AB/" + "a" * 62, "0/x", "zz/" + "a" * 62, "ab/sub/" + "a" * 62]
        for name in foreign:
            b.put(os.path.join(b.cache, name), "mine")
            os.utime(os.path.join(b.cache, name), (1, 1))
        b.put("aside/" + "a" * 62, "mine")
        free = next(f"{i:02x}" for i in range(256) if not os.path.lexists(os.path.join(b.cache, f"{i:02x}")))
        os.symlink(b.at("aside"), os.path.join(b.cache, free))  # where no entry of this compiler has its folder
        for action in ("ls", "verify", "prune", "prune --size 0", "clear"):
            b.run("cache " + action)
            for name in foreign:
                assert os.path.exists(os.path.join(b.cache, name)), f"{action} removed {name}"
            assert os.path.exists(b.at("aside/" + "a" * 62)), f"{action} went through a link"
        b.kernel()
        b.run("k.tile -o k.o", env={"TILE_CACHE_SIZE": "1"})
        assert all(os.path.exists(os.path.join(b.cache, name)) for name in foreign)
        shutil.rmtree(b.cache)
    b.put(os.path.join(b.cache, "ab", "a" * 62), "an object of somebody else's database")  # no cache: it has no tag
    b.run("cache clear")
    b.run("cache prune --size 0")
    assert os.path.exists(os.path.join(b.cache, "ab", "a" * 62)), "clear removed a file of a folder that is no cache"
