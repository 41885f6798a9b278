"""Every allocation of a program fails in turn: it ends by itself, says so, and leaves nothing half done.

    points.py [--build DIR] [--only REGEX] [--most N | --all] [--after] [--jobs N]

Each entry below is a command, run once in peace, then once for each allocation it makes (counted from main on), which is
refused (fail_nth.c); with --after, so is every one that comes after it. Each time the program must
  * end by itself, in time;
  * with status 0, and then its output and files are those of the run in peace,
  * or with another (1, 3, 70), and then it says why on stderr, and no file is there that was not, nor is an old one changed.
Some functions of LLVM allocate behind a lock; what they ask for is refused, too, the first time.
--most N: at most so many points of an entry that has more than 100, evenly spread; --all: every one. Prints the number of
points of each entry.
Exit status 1 when a point is wrong.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ONE_EXP = os.path.join(HERE, "Inputs", "one_exp.tile")
TUNED = os.path.join(HERE, "Inputs", "tuned.tile")
X, Y = "x=full(1)[64]", "y=zeros[64]"

# name, program, arguments; {out} is a folder of the run's own. A file there named "old" is to be replaced or kept.
ENTRIES = [
    ("run ref", "tilec", ["run", ONE_EXP, "--device", "ref", X, Y, "--print", "y"]),
    ("run ref, files", "tilec", ["run", ONE_EXP, "--device", "ref", "x=@{out}/x.npy", Y, "--save", "y={out}/y.npy"]),
    ("run cpu", "tilec", ["run", ONE_EXP, "--device", "cpu", X, Y, "--print", "y"]),
    ("run emu:sm_80", "tilec", ["run", ONE_EXP, "--device", "emu:sm_80", X, Y, "--print", "y"]),
    ("run emu:gfx942", "tilec", ["run", ONE_EXP, "--device", "emu:gfx942", X, Y, "--print", "y"]),
    ("run, cached", "tilec", ["run", ONE_EXP, "--device", "cpu", X, Y, "--print", "y"]),
    ("compile tir", "tilec", [ONE_EXP, "--emit", "tir", "-o", "{out}/old"]),
    ("compile cpu", "tilec", [ONE_EXP, "-o", "{out}/k.o", "--header", "{out}/k.h", "-MD"]),
    ("compile sm_90a", "tilec", [ONE_EXP, "--target", "sm_90a", "--emit", "ptx", "-o", "{out}/old"]),
    ("compile gfx942", "tilec", [ONE_EXP, "--target", "gfx942", "-o", "{out}/k.o"]),
    ("compile sm_80,gfx1100", "tilec", [ONE_EXP, "--target", "sm_80,gfx1100", "-o", "{out}/k.o"]),
    ("compile, wrong", "tilec", [os.path.join(HERE, "Inputs", "wrong.tile")]),
    ("compile ref", "tilec", [ONE_EXP, "--target", "ref", "-o", "{out}/old"]),
    ("explain", "tilec", ["explain", ONE_EXP, "--target", "sm_80"]),
    ("explain --html", "tilec", ["explain", ONE_EXP, "--target", "gfx942", "--html", "{out}/page.html"]),
    ("tune ref", "tilec", ["tune", "{out}/tuned.tile", "--device", "ref", X, Y]),
    ("bench ref", "tilec", ["bench", ONE_EXP, "--device", "ref", "--seconds", "0.001", X, Y]),
    ("fmt", "tilec", ["fmt", "{out}/ugly.tile"]),
    ("fmt --check", "tilec", ["fmt", "--check", ONE_EXP]),
    ("error", "tilec", ["error", "E0303"]),
    ("targets", "tilec", ["targets"]),
    ("completion", "tilec", ["completion", "bash"]),
    ("--help", "tilec", ["--help"]),
    ("--man", "tilec", ["--man"]),
    ("cache ls", "tilec", ["cache", "ls"]),
    ("cache verify", "tilec", ["cache", "verify"]),
    ("cache prune", "tilec", ["cache", "prune"]),
    ("twice ref", "twice", ["ref", ONE_EXP]),
    ("twice cpu", "twice", ["cpu", ONE_EXP]),
    ("twice emu:sm_80", "twice", ["emu:sm_80", ONE_EXP]),
    ("twice emu:gfx942", "twice", ["emu:gfx942", ONE_EXP]),
    ("twice cpu, process", "twice", ["cpu", ONE_EXP]),
    ("tile-opt", "tile-opt", ["--passes=cse,dce", os.path.join(HERE, "Inputs", "one_exp.tir")]),
    ("tile-opt --run", "tile-opt", ["--run", os.path.join(HERE, "Inputs", "one_exp.tir")]),
    ("tile-opt --list-ops", "tile-opt", ["--list-ops=md"]),
]
# Functions of LLVM that allocate behind a lock of the process, and compilations that call them.
ANNOTATION = "(?:findOneNVVMAnnotation|globalHasNVVMAnnotation)", "(?:findAllNVVMAnnotation|argHasNVVMAnnotation)"  # of LLVM 19, of 22
LOCKED = [*((f, "compile sm_90a") for f in ANNOTATION), ("SDNode::getValueTypeList", "compile sm_90a"),
          ("SDNode::getValueTypeList", "compile gfx942"), ("SDNode::getValueTypeList", "compile cpu"),
          ("TargetLibraryInfoImpl::getLibFunc", "compile gfx942"), ("ManagedStaticBase::RegisterManagedStatic", "compile gfx942"), ("lookupUnfoldTable", "compile cpu"),
          ("lookupBroadcastFoldTableBySize", "compile cpu")]
TIMES = re.compile(rb"\d+(\.\d+)?")  # outputs in which they stand are compared without
MEASURED = {"tune ref", "bench ref"}  # what they say depends on what they measure
VARIES = MEASURED | {"cache ls"}
# twice: a host that goes on after a failure (twice.c)
CACHED = {"run, cached", "cache ls", "cache verify", "cache prune"}


class Wrong(Exception):
    pass


class Entry:
    def __init__(self, build, folder, name, program, args, after, preload):
        self.name, self.args, self.after, self.preload = name, args, after, preload
        self.program = os.path.join(build, "unit" if program == "twice" else "bin", program)
        self.process = os.path.join(build, "bin", "tilec")
        self.folder = os.path.join(folder, re.sub(r"\W+", "_", name))
        os.makedirs(self.folder)
        self.peace = None

    def prepare(self, out):
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(os.path.join(out, "cache"), mode=0o700)
        with open(os.path.join(out, "old"), "w", encoding="utf-8") as f:
            f.write("what was there before\n")
        with open(os.path.join(out, "ugly.tile"), "w", encoding="utf-8") as f:
            f.write("kernel  k(const f32 x[N], f32 y[N])   grid(1) { y[0+:64]=x[0+:64]; }\n")
        shutil.copy(TUNED, os.path.join(out, "tuned.tile"))
        shutil.copy(os.path.join(HERE, "Inputs", "x.npy"), out)

    def start(self, out, **env):
        folder, name = os.path.split(self.preload)  # LD_PRELOAD takes no blanks
        env = dict(os.environ, TILE_THREADS="1", TILE_CACHE="off", LD_PRELOAD=name, LD_LIBRARY_PATH=folder, **env)
        if self.name in CACHED:
            env["TILE_CACHE"] = os.path.join(out, "cache")
        if self.name.endswith("process"):
            env["TILE_PROCESS"] = self.process
        args = [a.replace("{out}", out) for a in self.args]
        try:
            return subprocess.run([self.program, *args], env=env, capture_output=True, timeout=60, cwd=out, check=False,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as e:
            raise Wrong("it does not end") from e

    def files(self, out):
        found = {}
        for folder, _, names in os.walk(out):
            if os.path.basename(folder) == "cache" or os.sep + "cache" + os.sep in folder + os.sep:
                continue
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    found[os.path.relpath(os.path.join(folder, name), out)] = f.read()
        return found

    def shown(self, result, out):
        text = result.stdout.replace(out.encode(), b"OUT")
        if self.name in MEASURED:
            return bool(text)
        return TIMES.sub(b"#", text) if self.name in VARIES else text

    def run_in_peace(self):
        out = os.path.join(self.folder, "peace")
        self.prepare(out)
        if self.name in CACHED:
            filled = subprocess.run([self.program, "run", ONE_EXP, "--device", "cpu", X, Y], capture_output=True, check=False,
                                    env=dict(os.environ, TILE_CACHE=os.path.join(out, "cache")))
            if filled.returncode:
                raise Wrong(f"the cache is not filled: {filled.stderr}")
            self.cache = os.path.join(self.folder, "cache")
            shutil.copytree(os.path.join(out, "cache"), self.cache)
        self.before = self.files(out)
        count = os.path.join(self.folder, "count")
        result = self.start(out, FAIL_COUNT=count)
        if result.returncode not in (0, 1):
            raise Wrong(f"in peace: status {result.returncode}, {result.stderr.decode()}")
        self.peace = result.returncode, self.shown(result, out), self.files(out)
        with open(count, encoding="utf-8") as f:
            return int(f.read())

    def same_files(self, out, expected):
        files = self.files(out)
        if self.name in VARIES:  # measured times are in them
            return set(files) == set(expected)
        return {k: v.replace(out.encode(), b"") for k, v in files.items()} == \
            {k: v.replace(os.path.join(self.folder, "peace").encode(), b"") for k, v in expected.items()}

    def check(self, n, **where):
        out = os.path.join(self.folder, f"at{n}")
        self.prepare(out)
        if self.name in CACHED:
            shutil.rmtree(os.path.join(out, "cache"))
            shutil.copytree(self.cache, os.path.join(out, "cache"))
        extra = {"FAIL_ALL": "1"} if self.after else {}
        result = self.start(out, **(where or {"FAIL_AT": str(n)}), **extra)
        status, text, files = self.peace
        if result.returncode < 0:
            raise Wrong(f"signal {-result.returncode}: {result.stderr[-200:].decode(errors='replace')}")
        if result.returncode not in (0, 1, 3, 70):
            raise Wrong(f"status {result.returncode}: {result.stderr[-200:].decode(errors='replace')}")
        if result.returncode != 0 and not result.stderr:
            raise Wrong(f"status {result.returncode} without a word")
        if result.returncode == status == 0 and self.shown(result, out) != text:
            raise Wrong("status 0, but another output")
        if result.returncode == status == 0 and not self.same_files(out, files):
            raise Wrong(f"status 0, but other files: {sorted(self.files(out))}")
        if result.returncode != 0 and not self.same_files(out, self.before) and not self.same_files(out, files):
            raise Wrong(f"status {result.returncode}, but files are left: {sorted(self.files(out))}")
        if any(b"out of memory" in text for text in self.files(out).values()):
            raise Wrong("a file tells of it, for ever")  # a configuration that is rejected in a .tune.json
        shutil.rmtree(out)
        return result.returncode


def run(entry, most, pool):
    try:
        total = entry.run_in_peace()
    except Wrong as e:
        print(f"{entry.name}: {e}", flush=True)
        return 1
    step = 1 if not most or total <= 100 else -(-total // most)
    points = range(1, total + 1, step)
    bad, ends = 0, {}
    for n, future in [(n, pool.submit(entry.check, n)) for n in points]:
        try:
            status = future.result()
            ends[status] = ends.get(status, 0) + 1
        except Wrong as e:
            bad += 1
            if bad <= 8:
                print(f"{entry.name}: allocation {n}: {e}", flush=True)
    statuses = ", ".join(f"status {k}: {v}" for k, v in sorted(ends.items()))
    print(f"{entry.name}: {total} allocations, {len(points)} refused, {bad} wrong ({statuses})", flush=True)
    return bad


def run_locked(entries, build):
    """Refuses what the functions of LOCKED ask for; a program without symbols has none of them."""
    names = subprocess.run(["nm", "-SC", os.path.join(build, "bin", "tilec")], capture_output=True, text=True, check=False).stdout
    bad = met = 0
    for n, (function, entry) in enumerate(LOCKED):
        at = re.search(rf"^(\w+) (\w+) [TtWw] llvm::{function}\(", names, re.M)
        if entry not in entries or "llvm::" not in names:
            continue
        if not at:  # then llvm_memory.c does not find it either
            bad += 1
            print(f"LLVM has no function {function}", flush=True)
            continue
        first = int(at.group(1), 16)
        refused = os.path.join(entries[entry].folder, "refused")
        try:
            entries[entry].check(f"_{n}", FAIL_IN=f"{first:x}-{first + int(at.group(2), 16):x}", FAIL_COUNT=refused)
            with open(refused, encoding="utf-8") as f:
                met += f.read() != "0\n"
        except Wrong as e:
            bad += 1
            print(f"{entry}, behind the lock of {function}: {e}", flush=True)
    print(f"behind locks of LLVM: {met} refused, {bad} wrong", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--most", type=int, default=12)
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--after", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    o = parser.parse_args()
    build = os.path.abspath(o.build)
    preload = os.path.join(build, "test", "memory", "libfail_nth.so")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        entries = {e[0]: Entry(build, folder, *e, o.after, preload) for e in ENTRIES if re.search(o.only, e[0])}
        bad = sum(run(e, 0 if o.all else o.most, pool) for e in entries.values())
        bad += run_locked(entries, build)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
