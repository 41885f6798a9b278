#!/usr/bin/env python3
"""Every rule of frontend/LANGUAGE.md has a test that exists.

    clauses.py ROOT BUILD

Rules are the bullets `* [5.3] ...` of section 5, numbered from 1 without gaps; sections 1 to 13 have no other bullets. Section 14
gives for each the tests: `name` a row of test/conformance, `folder/name` a lit test, `ctest:name` a test of ctest; a name with `*`
stands for all that it fits, at least one. Needs NumPy, as the rows do.
"""
import fnmatch
import glob
import importlib
import os
import re
import subprocess
import sys


def rows(root):
    sys.path.insert(0, os.path.join(root, "test/conformance"))
    for path in glob.glob(os.path.join(root, "test/conformance/rows_*.py")):
        importlib.import_module(os.path.basename(path)[:-3])
    return {r.name for r in importlib.import_module("rows").ROWS}


def lit_tests(root):
    paths = [p for s in ("tile", "tir", "test") for p in glob.glob(os.path.join(root, "test/**/*." + s), recursive=True)]
    return {os.path.splitext(os.path.relpath(p, os.path.join(root, "test")))[0] for p in paths if "/Inputs/" not in p}


def ctests(build):
    said = subprocess.run(["ctest", "--test-dir", build, "-N"], capture_output=True, text=True, check=True).stdout
    return {"ctest:" + n for n in re.findall(r"Test +#\d+: (\S+)", said)}


def numbering(sections):
    """Faults of the rules' numbers, and the rules in order."""
    bad, found = [], []
    for s, text in sections.items():
        bullets = re.findall(r"^\* (.*)", text, re.M)
        for i, b in enumerate(bullets):
            want = f"[{s}.{i + 1}] "
            found.append(want[1:-2])
            if not b.startswith(want):
                bad.append(f"section {s}: '{b[:40]}' should begin with {want}")
    return bad, found


def main(root, build):
    with open(os.path.join(root, "frontend/LANGUAGE.md"), encoding="utf-8") as f:
        parts = re.split(r"^## (\d+) .*$", f.read(), flags=re.M)
    sections = dict(zip(map(int, parts[1::2]), parts[2::2]))
    table = re.findall(r"^\| (\d+\.\d+) \| (.*?) \|$", sections.pop(14), re.M)
    bad, rules = numbering(sections)
    known = rows(root) | lit_tests(root) | ctests(build)
    for rule, tests in table:
        bad += [f"[{rule}] names '{t}', which is no test" for t in tests.split() if not fnmatch.filter(known, t)]
        bad += [] if tests.split() else [f"[{rule}] has no test"]
        bad += [] if rule in rules else [f"section 14 names [{rule}], which is no rule"]
    named = [r for r, _ in table]
    bad += [f"[{r}] has no test" for r in rules if r not in named]
    bad += ["section 14 is not in the rules' order"] if not bad and named != rules else []
    print("\n".join([*bad, f"{len(rules)} rules, {len(bad)} faults"]))
    return 1 if bad or not rules else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
