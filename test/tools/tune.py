#!/usr/bin/env python3
"""tilec tune and what uses its files: what is timed and what is kept, budgets and interrupts, rejections, damaged files.

    tune.py BIN SCRATCH README      prints one line per failed check, then "N checks, N failed"

No check depends on how long anything takes. README is runtime/tune/README.md, whose example is run.
"""
import json
import os
import re
import signal
import subprocess
import sys

BIN, SCRATCH, README = sys.argv[1:4]
TILEC = os.path.join(BIN, "tilec")
checks = failed = 0

KERNEL = """
kernel scale(const f32 x[N], f32 y[N], f32 a, const int B, const int U = 1)
    grid(cdiv(N, B * U))
    tune(B in {LIST}, U in {1, 2}; where B * U <= 512)
    key(N)
{
    for (int u : range(U)) {
        int i = (pid(0) * U + u) * B;
        y[i +: B] = x[i +: B] * a;
    }
}
"""
ARGS = ["x=uniform(1)[N]", "y=nan[N]", "a=3"]


def check(ok, *what):
    global checks, failed
    checks += 1
    if not ok:
        failed += 1
        print("failed:", *what)


def tune(path, *args, status=0, **kwargs):
    r = subprocess.run([TILEC, "tune", path, *args], capture_output=True, text=True, cwd=SCRATCH, **kwargs)
    check(r.returncode == status, args, r.returncode, r.stderr)
    return r


def write(name, text):
    path = os.path.join(SCRATCH, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def results(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)["results"]


def counts(r):
    """(configurations, timed, rejected, known before) of the last line."""
    m = re.findall(r"\(of (\d+): (\d+) (?:timed|ranked), (\d+) rejected, (\d+) known before\)", r.stdout)
    return tuple(map(int, m[-1])) if m else r.stdout + r.stderr


def the_life_of_a_file():
    source, file = write("scale.tile", KERNEL.replace("LIST", "64, 128, 256, 512")), os.path.join(SCRATCH, "scale.tune.json")
    r = tune(source, "--sizes", "N=100", *ARGS)
    check(counts(r) == (7, 7, 0, 0), counts(r))
    check("7 of 7: B=512 U=1: " in r.stderr, r.stderr)
    with open(file, encoding="utf-8") as f:
        first = f.read()
    (row,) = results(file)
    check(row["bucket"] == [7] and row["sizes"] == [100] and row["how"] == "timed" and row["best"] in row["times"], row)
    check(list(row["times"])[:3] == ["B=64 U=1", "B=64 U=2", "B=128 U=1"], row["times"])
    r = tune(source, "--sizes", "N=100", *ARGS)
    check(counts(r) == (7, 0, 0, 7) and r.stderr == "", counts(r), r.stderr)
    with open(file, encoding="utf-8") as f:
        check(f.read() == first, "a run with nothing new changed the file")
    r = tune(source, "--sizes", "N=100", *ARGS, "--again")
    check(counts(r) == (7, 7, 0, 0), counts(r))
    r = tune(source, "--sizes", "N=1000,3000", *ARGS)
    check([x["bucket"] for x in results(file)] == [[7], [10], [12]], results(file))
    # A longer list costs what is new, and the best once more.
    write("scale.tile", KERNEL.replace("LIST", "32, 64, 128, 256, 512"))
    r = tune(source, "--sizes", "N=100", *ARGS)
    check(counts(r) == (9, 3, 0, 6), counts(r))
    # A constant that is given takes the place of its set; what is known of it is known.
    r = tune(source, "--sizes", "N=100", *ARGS, "--const", "B=128")
    check(counts(r) == (2, 0, 0, 2), counts(r))
    # Another kernel, other times.
    write("scale.tile", KERNEL.replace("LIST", "64, 128").replace("* a", "* a + 1"))
    r = tune(source, "--sizes", "N=100", *ARGS)
    check(counts(r) == (4, 4, 0, 0), counts(r))
    check(len(results(file)[0]["times"]) == 4, results(file)[0])
    # A comment is no change.
    write("scale.tile", "// a comment\n/// documentation" + KERNEL.replace("LIST", "64, 128").replace("* a", "*  a + 1"))
    r = tune(source, "--sizes", "N=100", *ARGS)
    check(counts(r) == (4, 0, 0, 4), counts(r))


def json_lines():
    source = write("json.tile", KERNEL.replace("LIST", "64, 128"))
    r = tune(source, "--sizes", "N=100", *ARGS, "--json", "-o", "j.json")
    lines = [json.loads(line) for line in r.stdout.splitlines()]
    check(lines[-1]["event"] == "result" and lines[-1]["timed"] == 4 and lines[-1]["complete"] == 1, lines[-1])
    check({"compile", "check", "time"} >= {x["event"] for x in lines[:-1]}, {x["event"] for x in lines})
    check(all(x["total"] == 4 for x in lines) and not os.path.exists(os.path.join(SCRATCH, "json.tune.json")), "files")
    check(results(os.path.join(SCRATCH, "j.json"))[0]["best"] == lines[-1]["best"], lines[-1])


REJECTED = """
kernel k(f32 x[N], const int B, const bool WRONG = false, const bool BIG = false)
    grid(cdiv(N, B))
    require(B >= 32)
    tune(B in {32, 16, 64}, WRONG in {false, true}, BIG in {false, true}; where !(WRONG && BIG) && (B == 64 || !(WRONG || BIG)))
{
    if (BIG) x[0 +: B + 1] = x[0 +: B];
    x[pid(0) * B +: B] = x[pid(0) * B +: B] + (WRONG ? 2 : 1);
}
"""


def rejections():
    source = write("rejected.tile", REJECTED)
    r = tune(source, "x=full(1)[100]")
    check(counts(r) == (5, 2, 3, 0), counts(r))
    times = results(os.path.join(SCRATCH, "rejected.tune.json"))[0]["times"]
    check("require(B >= 32) does not hold" in str(times["B=16 WRONG=false BIG=false"]), times)
    check("not those of 'B=32 WRONG=false BIG=false': element 0 of 'x' is 3, not 2" in str(times["B=64 WRONG=true BIG=false"]), times)
    check("does not broadcast" in str(times["B=64 WRONG=false BIG=true"]), times)
    check("rejected: " in r.stderr, r.stderr)
    source = write("none.tile", REJECTED.replace("B in {32, 16, 64}", "B in {16}"))
    r = tune(source, "x=full(1)[100]", status=3)
    check("none of its 1 configurations can run; B=16" in r.stderr, r.stderr)


def stops():
    source = write("stops.tile", KERNEL.replace("LIST", "8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128"))
    r = tune(source, "--sizes", "N=100", *ARGS, "--budget", "0.000001", "-o", "b.json")
    check("; not complete" in r.stdout, r.stdout)
    command = [TILEC, "tune", source, "--sizes", "N=100", *ARGS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SCRATCH) as p:
        seen = p.stderr.readline()
        p.send_signal(signal.SIGINT)
        out, err = p.communicate()
    check(p.returncode == 130 and "1 of 32: B=8 U=1" in seen, p.returncode, seen, err)
    (row,) = results(os.path.join(SCRATCH, "stops.tune.json"))
    known = len(row["times"])
    check(1 <= known < 32 and row["best"] in row["times"] and "; not complete" in out, row, out)
    r = tune(source, "--sizes", "N=100", *ARGS)
    # What is not known is timed, and of the known ones, those that had not been compared with the best yet.
    check(row["settled"] is False and counts(r)[1] + counts(r)[3] == 32 and 33 - known <= counts(r)[1], row, counts(r))
    (row,) = results(os.path.join(SCRATCH, "stops.tune.json"))
    check("settled" not in row and len(row["times"]) == 32, row)
    check(counts(tune(source, "--sizes", "N=100", *ARGS)) == (32, 0, 0, 32), "a third run timed something")
    check(not [f for f in os.listdir(SCRATCH) if ".json." in f], os.listdir(SCRATCH))


def edited(source, change):
    """Changes the only result of a source's file."""
    file = source.replace(".tile", ".tune.json")
    with open(file, encoding="utf-8") as f:
        text = json.load(f)
    change(text["results"][0])
    with open(file, "w", encoding="utf-8") as f:
        json.dump(text, f)


def stopped_at_the_end():
    """Everything has a time, but the best ones have not been compared side by side."""
    source = write("end.tile", KERNEL.replace("LIST", "64, 128"))
    tune(source, "--sizes", "N=100", *ARGS)

    def reopen(row):
        row["settled"], row["best"] = False, "B=128 U=2"
        row["times"] = {"B=64 U=1": 5.2, "B=64 U=2": 1000, "B=128 U=1": 5.1, "B=128 U=2": 5}
    edited(source, reopen)
    check(counts(tune(source, "--sizes", "N=100", *ARGS)) == (4, 3, 0, 1), "the near ones")
    (row,) = results(source.replace(".tile", ".tune.json"))
    check("settled" not in row and row["times"]["B=64 U=2"] == 1000 and row["times"]["B=64 U=1"] != 5.2, row)

    def far(row):
        row["settled"], row["best"] = False, "B=128 U=2"
        row["times"] = {"B=64 U=1": 50, "B=64 U=2": 1000, "B=128 U=1": 51, "B=128 U=2": 5}
    edited(source, far)
    check(counts(tune(source, "--sizes", "N=100", *ARGS)) == (4, 1, 0, 3), "nothing is near")
    check("settled" not in results(source.replace(".tile", ".tune.json"))[0], "it stays open")


def part_of_the_list():
    """Of a part of the list, the best one is the best of all only if it is faster than the one that was."""
    source = write("part.tile", KERNEL.replace("LIST", "64, 128"))
    tune(source, "--sizes", "N=100", *ARGS)

    def shorten(row):
        row["best"], row["times"] = "B=64 U=1", {"B=64 U=1": row["best"] and row["times"][row["best"]] / 1000}
    edited(source, shorten)
    check(counts(tune(source, "--sizes", "N=100", *ARGS, "--const", "B=128")) == (2, 2, 0, 0), "the part")
    check(results(source.replace(".tile", ".tune.json"))[0]["best"] == "B=64 U=1", "a slower one of the part was taken")
    r = subprocess.run([TILEC, source, "--const", "B=256", "--target", "cpu"], capture_output=True, text=True, cwd=SCRATCH)
    check("tuning data of kernel 'scale': no configuration with the values given was timed; none is used" in r.stderr, r.stderr)
    r = subprocess.run([TILEC, source, "--const", "U=1024", "--target", "cpu"], capture_output=True, text=True, cwd=SCRATCH)
    check("tune lists no configuration with the values given; none is used" in r.stderr, r.stderr)
    r = subprocess.run([TILEC, source, "--const", "B=64", "--target", "cpu"], capture_output=True, text=True, cwd=SCRATCH)
    check(r.returncode == 0 and r.stderr == "", r.stderr)


def nothing_to_do():
    """Arrays are not even filled when nothing is new."""
    source = write("large.tile", KERNEL.replace("LIST", "64, 128"))
    tune(source, "--sizes", "N=100", *ARGS)

    def enlarge(row):
        row["bucket"], row["sizes"] = [27], [100000000]
    edited(source, enlarge)
    command = [TILEC, "tune", source, "--sizes", "N=100000000", *ARGS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=SCRATCH) as p:
        out = p.stdout.read()
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    check(p.returncode == 0 and "(of 4: 0 timed, 0 rejected, 4 known before)" in out, p.returncode, out)
    check(used.ru_maxrss < 300 << 10, f"{used.ru_maxrss} KiB for arrays of 800 MB that nothing reads")


def side_by_side():
    """Several processes add to one file at the same time."""
    write("many.tile", "kernel k(f32 x[N], const int B) grid(cdiv(N, B)) tune(B in {8}) key(N) { x[pid(0) * B +: B] = 1; }")
    commands = [[TILEC, "tune", "many.tile", "-o", "many.json", f"x=zeros[{1 << i}]"] for i in range(1, 11)]
    running = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=SCRATCH) for c in commands]
    for p in running:
        _, err = p.communicate()
        check(p.returncode == 0, err)
    check([row["bucket"] for row in results(os.path.join(SCRATCH, "many.json"))] == [[i] for i in range(1, 11)], "results were lost")


def damaged():
    source = write("damaged.tile", KERNEL.replace("LIST", "64"))
    file = write("damaged.tune.json", "{\n  \"format\": \"tile-tune\",\n")
    r = tune(source, "--sizes", "N=100", *ARGS, status=3)
    check("damaged.tune.json: line 3: it is not JSON; repair or remove it" in r.stderr, r.stderr)
    with open(file, encoding="utf-8") as f:
        check(f.read() == "{\n  \"format\": \"tile-tune\",\n", "a damaged file was overwritten")
    r = subprocess.run([TILEC, source], capture_output=True, text=True, cwd=SCRATCH)
    check(r.returncode == 0 and "warning: the tuning results are not used: line 3" in r.stderr, r.stderr)
    r = tune(source, "--sizes", "N=100", *ARGS, "-o", os.path.join(SCRATCH, "no", "f.json"), status=3)
    check("cannot write" in r.stderr, r.stderr)


def wrong_usage():
    source = write("usage.tile", KERNEL.replace("LIST", "64") + KERNEL.replace("LIST", "64").replace("scale", "other"))
    check("choose a kernel" in tune(source, "--sizes", "N=100", *ARGS, status=2).stderr, "kernels")
    check("budget" in tune(source, "--kernel", "scale", "--sizes", "N=9", *ARGS, "--budget", "-1", status=2).stderr, "budget")
    r = tune(source, "--kernel", "scale", "--sizes", "N=9", *ARGS, "--device", "emu:sm_80", status=3)
    check("the emulator's times say nothing of the GPU" in r.stderr, r.stderr)
    r = tune(source, "--kernel", "scale", "x=zeros[3]", "y=zeros[4]", "a=1", status=3)
    check("must be 3" in r.stderr, r.stderr)
    r = tune(source, "--kernel", "scale", "--sizes", "N=100", *ARGS, "--const", "B=16", "--const", "U=64", status=2)
    check("no configuration of tune has the values given" in r.stderr, r.stderr)


HOST = """
kernel twice(const f32 x[N], f32 y[N], const int B = 128) grid(cdiv(N, B)) tune(B in {64, 128}, warps in {4, 8}, stages in {2, 3, 4}) key(N)
{
    y[pid(0) * B +: B] = 2.0 * x[pid(0) * B +: B];
}
"""


def the_host():
    """warps and stages are no choice there; what names them is understood; the default's speed is told."""
    source, file = write("host.tile", HOST), os.path.join(SCRATCH, "host.tune.json")
    args = ["x=uniform(1)[100]", "y=nan[100]"]
    r = tune(source, *args)
    check(counts(r) == (2, 2, 0, 0), counts(r), r.stderr)
    check(list(results(file)[0]["times"]) == ["B=64", "B=128"], results(file))
    speed = re.search(r", ([0-9.]+) of the default's speed ", r.stdout)
    check(speed and float(speed[1]) >= 0.9, r.stdout)
    r = tune(source, *args, "--json")
    last = json.loads(r.stdout.splitlines()[-1])
    check(last["standard_us"] >= 0.9 * last["best_us"] > 0, last)
    r = tune(source, "--model", "--target", "sm_80", *args, "-o", os.path.join(SCRATCH, "sm_80.json"))
    check(counts(r) == (12, 12, 0, 0), counts(r))
    with open(file, encoding="utf-8") as f:
        old = f.read().replace('"B=64"', '"B=64 warps=8 stages=3"').replace('"B=128"', '"B=128 warps=4 stages=2"')
    write("old.json", old)
    for words in (["--tune", "old.json"], ["--config", "B=64 warps=8 stages=2"], ["--config", "B=64"]):
        r = subprocess.run([TILEC, source, *words], capture_output=True, text=True, cwd=SCRATCH)
        check(r.returncode == 0 and r.stderr == "", words, r.stderr)
    r = subprocess.run([TILEC, source, "--config", "B=64", "--target", "sm_80"], capture_output=True, text=True, cwd=SCRATCH)
    check("the first is B=64 warps=4 stages=2" in r.stderr, r.stderr)
    r = tune(write("knobs.tile", HOST.replace("B in {64, 128}, ", "")), *args, status=2)
    check("only warps and stages differ" in r.stderr, r.stderr)


def the_readme():
    """The example of the document, as it stands there."""
    with open(README, encoding="utf-8") as f:
        text = f.read()
    write("gemm.tile", re.search(r"```tile\n(.*?)```", text, re.S)[1])
    command = re.search(r"^\$ (tilec tune gemm.tile (?:.*\\\n)*.*)$", text, re.M)[1]
    env = dict(os.environ, PATH=BIN + os.pathsep + os.environ["PATH"])
    r = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=SCRATCH, env=env)
    check(r.returncode == 0 and len(r.stdout.splitlines()) == 2, r.stdout, r.stderr)
    rows = results(os.path.join(SCRATCH, "gemm.tune.json"))
    check([x["bucket"] for x in rows] == [[4, 8, 8], [8, 8, 8]], rows)
    shown = json.loads(re.search(r"```json\n(.*?)```", text, re.S)[1])
    check(shown["results"][0].keys() == rows[0].keys(), rows[0].keys())
    for m in (16, 256):
        r = subprocess.run([TILEC, "run", "gemm.tile", f"A=full(1)[{m},256]", "B=full(2)[256,256]", f"C=nan[{m},256]", "--print", "C"],
                           capture_output=True, text=True, cwd=SCRATCH)
        check(r.returncode == 0 and r.stderr == "" and "[512, 512, 512" in r.stdout and "nan" not in r.stdout, r.stdout, r.stderr)


os.makedirs(SCRATCH, exist_ok=True)
for test in (the_life_of_a_file, json_lines, rejections, stops, stopped_at_the_end, part_of_the_list, nothing_to_do, side_by_side, damaged, wrong_usage,
             the_host, the_readme):
    test()
print(f"{checks} checks, {failed} failed")
sys.exit(failed > 0)
