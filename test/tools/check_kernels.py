#!/usr/bin/env python3
"""Every kernel of stdlib/kernels/*.tile has a documentation line with a formula, a place in the table of stdlib/kernels/README.md, and rows of
the conformance suite, or a test of its own.

    check_kernels.py ROOT    prints what is wrong, exit 1; or the number of kernels
"""
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_stdlib import rows, table  # noqa: E402

KERNEL = re.compile(r"((?:^//[^\n]*\n)*)^kernel (\w+)\(", re.M)
# What no row can launch, and the test that does.
ELSEWHERE = {"gemm.gemm_pointers": "test/python/tile_test.py"}


def kernels(root):
    """(module, its text, kernel, documentation) of each kernel of the library; the documentation may be empty."""
    for path in sorted(glob.glob(os.path.join(root, "stdlib", "kernels", "*.tile"))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for m in KERNEL.finditer(text):
            lines = [line[3:].strip() for line in m.group(1).splitlines() if line.startswith("///")]
            yield os.path.basename(path)[:-5], text, m.group(2), " ".join(lines)


def tested(root, module, name, launched):
    if name in launched:
        return True
    path = os.path.join(root, ELSEWHERE.get(f"{module}.{name}", ""))
    if not os.path.isfile(path):
        return False
    with open(path, encoding="utf-8") as f:
        return f'"{name}"' in f.read()


def faults(root):
    found, launched = list(kernels(root)), {}
    for r in rows(root):
        launched.setdefault(r.source, set()).add(r.kernel)
    listed = table(root, "stdlib/kernels/README.md")
    for module, text, name, doc in found:
        place = f"stdlib/kernels/{module}.tile: {name}"
        if not re.search(r"[=~]", doc):
            yield f"{place}: its line has no formula"
        if not tested(root, module, name, launched.get(text, ())):
            yield f"{place} has no row in test/conformance"
        if name not in listed.get(module, ()):
            yield f"stdlib/kernels/README.md: {module}.tile: no {name}"
    known = {(module, name) for module, _, name, _ in found}
    for module, names in listed.items():
        for name in sorted(n for n in names if (module, n) not in known):
            yield f"stdlib/kernels/README.md: {module}.tile: {name} is no kernel"
    if not found:
        yield "stdlib/kernels: no kernels found"


def main(argv):
    wrong = list(faults(argv[0]))
    print("\n".join(wrong) if wrong else f"{len(list(kernels(argv[0])))} kernels, 0 faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
