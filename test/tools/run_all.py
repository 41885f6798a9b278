#!/usr/bin/env python3
"""Runs every suite that this machine can run and adds up.

    run_all.py [--root DIR] [--jobs N] [NAME...]      NAME: a suite or a group of the table SUITES below

Called by `./bootstrap test`, `check-asan` and `test-llvm22`, after the builds. Suites named one by one are run alone;
otherwise all suites of the groups. One line per suite, then what failed (with the end of its output), what was
skipped and why, and as the last line "N passed, N failed, N skipped". Exit status 0 only if nothing failed and
something passed. Whole results: BUILD/results/SUITE.json.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import namedtuple

Row = namedtuple("Row", "name status text")  # status: pass, fail, skip; text: output, or the reason of a skip
SUITE_SECONDS = 1800


def run(command, seconds=SUITE_SECONDS, env=None):
    """(status, output); a command that takes too long is ended with all its children and has status 124."""
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                         env=dict(os.environ, TILE_CACHE="off", **(env or {})), start_new_session=True)
    try:
        out, _ = p.communicate(timeout=seconds)
        return p.returncode, out
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, _ = p.communicate()
        return 124, out + f"\nended after {seconds} s"


def sanitizer_env(strings=False):
    """Nothing is suppressed: libLLVM leaks nothing either. strings: whole strings are looked at in each call, which makes a compilation
    take twice the time."""
    return dict(ASAN_OPTIONS=f"detect_leaks=1:strict_string_checks={int(strings)}:check_initialization_order=1",
                UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1")


def broken(name, out):
    """A suite that gave no result is one failure, never nothing."""
    return [Row(name, "fail", out)]


def unit(cx, build):
    """ctest; a test that exits with 77 is skipped, its output says why."""
    xml = os.path.join(build, "results", "unit.xml")
    if os.path.exists(xml):
        os.remove(xml)
    _, out = run(["ctest", "--test-dir", build, "-j", str(cx.jobs), "--output-junit", xml], env=sanitizer_env(strings=True))
    if not os.path.exists(xml):
        return broken("unit", out)
    rows = []
    for case in ET.parse(xml).getroot().iter("testcase"):
        status = {"run": "pass", "fail": "fail"}.get(case.get("status"), "skip")
        rows.append(Row(case.get("name"), status, (case.findtext("system-out") or "").strip()))
    return rows


# lit and conformance run one job more than there are processors: tests wait for processes, files and each other.
def lit(cx, build, words=(), env=None, name="lit"):
    result = os.path.join(build, "results", name + ".json")
    if os.path.exists(result):
        os.remove(result)
    tools = ["/usr/lib/llvm-19/build/utils/lit/lit.py", "/usr/lib/llvm-22/bin/lit"]
    tool = next((t for t in tools if os.path.exists(t)), tools[0])
    _, out = run([sys.executable, tool, "-q", "-j", str(cx.jobs + 1), "-o", result, *words, os.path.join(build, "test")], env=env)
    if not os.path.exists(result):
        return broken(name, out)
    with open(result, encoding="utf-8") as f:
        tests = json.load(f)["tests"]
    rows = []
    for test in tests:
        name = test["name"].split(" :: ", 1)[1]
        status = {"PASS": "pass", "FLAKYPASS": "pass", "XFAIL": "pass", "UNSUPPORTED": "skip", "SKIPPED": "skip"}
        text = test["output"]
        if test["code"] == "UNSUPPORTED":
            needs = re.search(r"unavailable features: (.*)", text)
            text = "needs " + needs.group(1) if needs else "unsupported here"
        rows.append(Row(name, status.get(test["code"], "fail"), text))
    return rows


# Where a test may ask for what a machine may lack, but those that take long and do not ask (mix_classes.test does it both ways itself).
MAY_ASK = ":: (codegen/(explain|nvptx|products)|device|python|stdlib|tools)/"
ASK_NOT = "mutate|cache|/(bench|bench_figures|tune|new_row|lsp).test|docs_|long_unrolled|growth|readme|documents|amd_|mix_classes|reproducible"


def lit_bare(cx, build):
    """What passes where ptxas, MPI, torch, NumPy and the like are must pass without them, too."""
    rows = lit(cx, build, ("--filter", MAY_ASK, "--filter-out", ASK_NOT), dict(TILE_TEST_WITHOUT="all"), "lit-bare")
    return [r for r in rows if r.status != "skip"]  # why they are skipped is clear, and each is counted in "lit"


# Where LLVM's text is looked at.
LLVM_TEXT = ":: (codegen|tools/(amd|gpu_registers|mix|registers|what_llvm)|memory)"


def lit_llvm(cx, build):
    return lit(cx, build, ("--filter", LLVM_TEXT), name="lit-llvm22")


def conformance(cx, build):
    """Kernels of test/conformance on every device, against NumPy."""
    result = os.path.join(build, "results", "conformance.json")
    if os.path.exists(result):
        os.remove(result)
    command = [sys.executable, os.path.join(cx.root, "test", "conformance", "run.py"), "--build", build,
               "--jobs", str(cx.jobs + 1), "--json", result]
    if build.endswith("-asan"):
        command += ["--small", "--every", "6", "--emu-every", "12"]
    elif build.endswith("-llvm22"):
        command += ["--every", "10"]
    _, out = run(command, env=sanitizer_env())
    if not os.path.exists(result):
        return broken("conformance", out)
    with open(result, encoding="utf-8") as f:
        return [Row(*row) for row in json.load(f)]


# group, name, build folder, function
SUITES = [
    ("test", "unit", "build", unit),
    ("test", "lit", "build", lit),
    ("test", "lit-bare", "build", lit_bare),
    ("test", "conformance", "build", conformance),
    ("test-llvm22", "unit-llvm22", "build-llvm22", unit),
    ("test-llvm22", "lit-llvm22", "build-llvm22", lit_llvm),
    ("test-llvm22", "conformance-llvm22", "build-llvm22", conformance),
    ("check-asan", "unit-asan", "build-asan", unit),
    ("check-asan", "lit-asan", "build-asan", lit),
    ("check-asan", "conformance-asan", "build-asan", conformance),
]
GROUPS = sorted({s[0] for s in SUITES})


def report(name, rows, seconds):
    count = {s: sum(r.status == s for r in rows) for s in ("pass", "fail", "skip")}
    print(f"{name:18} {count['pass']:5} passed {count['fail']:4} failed {count['skip']:4} skipped {seconds:6.1f} s",
          flush=True)
    for row in [r for r in rows if r.status == "fail"][:20]:
        print(f"  FAILED {row.name}")
        for line in row.text.strip().splitlines()[-25:]:
            print("    | " + line[:200])
    return count


def skipped(total_rows):
    """Skips by reason, so that thirty tests without a GPU are one line."""
    reasons = {}
    for suite, row in total_rows:
        if row.status == "skip":
            reason = row.text.strip().splitlines()[-1] if row.text.strip() else "no reason given"
            reasons.setdefault((suite, reason), []).append(row.name)
    for (suite, reason), names in sorted(reasons.items()):
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        print(f"skipped in {suite}: {reason}: {', '.join(names[:3])}{more}")


def main():
    ap = argparse.ArgumentParser()
    here = os.path.dirname(os.path.abspath(__file__))
    ap.add_argument("--root", default=os.path.normpath(os.path.join(here, "..", "..")))
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("names", nargs="*", metavar="NAME")
    cx = ap.parse_args()
    cx.root = os.path.abspath(cx.root)  # ctest takes the name of its report from the build
    known = [s[1] for s in SUITES]
    unknown = set(cx.names) - set(known) - set(GROUPS)
    if unknown:
        ap.error(f"unknown suite {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    groups = [g for g in GROUPS if g in cx.names] or GROUPS
    chosen = set(cx.names) & set(known) or {s[1] for s in SUITES if s[0] in groups}
    total, everything = {"pass": 0, "fail": 0, "skip": 0}, []
    for _, name, folder, function in SUITES:
        if name not in chosen:
            continue
        build = os.path.join(cx.root, folder)
        os.makedirs(os.path.join(build, "results"), exist_ok=True)
        start = time.time()
        rows = function(cx, build)
        for status, n in report(name, rows, time.time() - start).items():
            total[status] += n
        everything += [(name, r) for r in rows]
    skipped(everything)
    print(f"{total['pass']} passed, {total['fail']} failed, {total['skip']} skipped")
    return 0 if total["fail"] == 0 and total["pass"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
