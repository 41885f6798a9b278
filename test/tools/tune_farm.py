#!/usr/bin/env python3
"""tilec tune --farm under mpirun: what is shared, what is kept when a rank is killed.

    tune_farm.py BIN SCRATCH      prints one line per failed check, then "N checks, N failed"
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

BIN, SCRATCH = sys.argv[1:3]
TILEC = os.path.join(BIN, "tilec")
N = 32  # configurations
KERNEL = """
kernel scale(const f32 x[N], f32 y[N], f32 a, const int B, const int U = 1)
    grid(cdiv(N, B * U))
    tune(B in {8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128}, U in {1, 2})
    key(N)
{
    for (int u : range(U)) {
        int i = (pid(0) * U + u) * B;
        y[i +: B] = x[i +: B] * a;
    }
}
"""
ARGS = ["--sizes", "N=1000", "x=uniform(1)[N]", "y=nan[N]", "a=3"]
ENV = dict(os.environ)
ENV.pop("TILE_THREADS", None)
checks = failed = 0


def check(ok, *what):
    global checks, failed
    checks += 1
    if not ok:
        failed += 1
        print("failed:", *what)


def farm(file, *words):
    return ["mpirun", *words[:2], TILEC, "tune", "--farm", os.path.join(SCRATCH, "scale.tile"), "-o", os.path.join(SCRATCH, file), *words[2:], *ARGS]


def run(command, status=0):
    r = subprocess.run(command, capture_output=True, text=True, cwd=SCRATCH, env=ENV, timeout=300)
    check(r.returncode == status, r.returncode, r.stdout, r.stderr)
    return r


def results(file):
    with open(os.path.join(SCRATCH, file), encoding="utf-8") as f:
        return json.load(f)["results"]


def counts(text):
    """(configurations, timed, rejected, known before), of each line that ends a list."""
    return [tuple(map(int, m)) for m in re.findall(r"\(of (\d+): (\d+) timed, (\d+) rejected, (\d+) known before\)\n", text)]


def ranks_of_one_kind():
    r = run(farm("one.json", "-n", "4"))
    check(counts(r.stdout) == [(N, N, 0, 0)], r.stdout)
    (row,) = results("one.json")
    check(len(row["times"]) == N and "settled" not in row and row["best"] in row["times"], row)
    share = max(1, len(os.sched_getaffinity(0)) // 4)
    check(abs(row["device"]["threads"] - share) <= 1, row["device"], share)
    first = re.findall(r"^rank (\d): N=1000: (B=\d+ U=\d):", r.stderr, re.M)
    check(len({rank for rank, _ in first}) > 1 and len({config for _, config in first}) == N, first)
    with open(os.path.join(SCRATCH, "one.json"), encoding="utf-8") as f:
        before = f.read()
    r = run(farm("one.json", "-n", "4"))
    check(counts(r.stdout) == [(N, 0, 0, N)], r.stdout)
    with open(os.path.join(SCRATCH, "one.json"), encoding="utf-8") as f:
        check(f.read() == before, "a run with nothing new changed the file")


def ranks_of_two_kinds():
    # (A shell chooses: mpirun of Open MPI 5.0.7 crashes where programs are separated by a colon.)
    kind = 'd=cpu; [ "$OMPI_COMM_WORLD_RANK" = 2 ] && d=cpu:x86-64-v2; exec "$@" --device $d'
    mpirun, n, ranks, *tune = farm("two.json", "-n", "3")
    r = run([mpirun, n, ranks, "sh", "-c", kind, "sh", *tune])
    check(sorted(counts(r.stdout)) == [(N, N, 0, 0)] * 2, r.stdout)
    rows = results("two.json")
    check([row["device"]["target"] for row in rows].count("cpu:x86-64-v2") == 1 and len(rows) == 2, [row["device"] for row in rows])
    check(all(len(row["times"]) == N and "settled" not in row for row in rows), rows)


def process_of(rank):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                words = f.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                command = f.read()
        except OSError:
            continue
        if f"OMPI_COMM_WORLD_RANK={rank}".encode() in words and os.path.join(SCRATCH, "scale.tile").encode() in command:
            return int(pid)
    return None


def killed(file, *options):
    """Starts, kills rank 2 when something is in the file, and tells what is in the file when all is over."""
    with subprocess.Popen([*farm(file, "-n", "3")[:1], *options, *farm(file, "-n", "3")[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          cwd=SCRATCH, env=ENV) as p:
        while not os.path.exists(os.path.join(SCRATCH, file)) and p.poll() is None:
            time.sleep(0.01)
        pid = process_of(2)
        check(pid, "rank 2 cannot be found")
        if pid:
            os.kill(pid, signal.SIGKILL)
        out, _ = p.communicate(timeout=300)
    (row,) = results(file)
    return row, out


def a_rank_is_killed():
    row, out = killed("killed.json")
    known = len(row["times"])
    check(known > 0 and row["settled"] is False, row, out)
    told = [int(n) for n in re.findall(r": (\d+) of 32 are known", out)]
    check(not told or known >= max(told), known, told)
    r = run(farm("killed.json", "-n", "3"))
    check(counts(r.stdout) == [(N, N - known, 0, known)], r.stdout, known)
    # mpirun may be told to go on: the others do what is left.
    ENV["TILE_FARM_SILENCE"] = "5"
    row, out = killed("on.json", "--enable-recovery")
    check("rank 2 says nothing any more" in out and len(row["times"]) >= N - 8, out, row)
    r = run(farm("on.json", "-n", "2"))
    (row,) = results("on.json")
    check(len(row["times"]) == N and "settled" not in row, row)


def without_the_library():
    bare = os.path.join(SCRATCH, "bare", "bin")
    os.makedirs(bare)
    shutil.copy(TILEC, bare)
    r = subprocess.run([os.path.join(bare, "tilec"), *farm("none.json", "-n", "1")[4:]], capture_output=True, text=True, cwd=SCRATCH, env=ENV)
    check(r.returncode == 2 and "--farm: MPI cannot be used: libtilec-mpi" in r.stderr and "libopenmpi-dev" in r.stderr, r.returncode, r.stderr)
    r = subprocess.run([TILEC, "tune", "--farm", "--model", "--target", "sm_80", "scale.tile", *ARGS], capture_output=True, text=True, cwd=SCRATCH, env=ENV)
    check(r.returncode == 2 and "--farm times on devices" in r.stderr, r.returncode, r.stderr)
    r = subprocess.run([TILEC, "tune", "--farm", "--html", "page.html", "scale.tile", *ARGS], capture_output=True, text=True, cwd=SCRATCH, env=ENV)
    check(r.returncode == 2 and "--farm writes no page" in r.stderr, r.returncode, r.stderr)


os.makedirs(SCRATCH, exist_ok=True)
with open(os.path.join(SCRATCH, "scale.tile"), "w", encoding="utf-8") as source:
    source.write(KERNEL)
for test in (ranks_of_one_kind, ranks_of_two_kinds, a_rank_is_killed, without_the_library):
    test()
print(f"{checks} checks, {failed} failed")
sys.exit(failed > 0)
