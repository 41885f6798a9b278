#!/usr/bin/env python3
"""Every kernel of stdlib/kernels/*.tile has a documentation line with a formula, a place in the table of stdlib/kernels/README.md, and rows of
the conformance suite, or a test of its own. Its conditions are the same in its text and in its clauses: the sentence "Requires A, B." at the end of
the documentation says what require(A, B) says; neither that text nor the module's speaks of conditions in other words.

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
HEAD = re.compile(r"(?:^//[^\n]*\n)+", re.M)
REQUIRES = re.compile(r"\bRequires (.*)\.$")
# How a condition reads that nothing checks.
CONDITION = re.compile(r"\bmultiples? of\b|\bdivides\b|\bdivisible\b|\bpowers? of two\b|\bat (?:least|most)\b|\bmust\b|\bbelow 2\^|"
                       r"\b[A-Z_]{1,5} (?:<=|>=|<|>) |\b[a-z]\w+ (?:<=|>=|<|>) [01]\b")
# What is none: values in arrays, what is computed, what is the caller's choice.
NO_CONDITION = {
    "fft": ("for k <= N / 2", "w is the table of W, a multiple of N"),
    "gan": ("divides the weights W",),
    "moe": ("filled up with I to a multiple of BM",),
    "optimizers": ("multiples of 16 bytes", "where R > C", "singular values of 1 at most"),
    "scan": ("of any length below 2^31",),
    "solve": ("divides nothing",),
    "sparse": ("need not be multiples of the blocks",),
    "README": ("one tile of at most 2^20 elements",),
}


def kernels(root):
    """(module, its text, kernel, documentation, clauses) of each kernel of the library; the documentation may be empty."""
    for path in sorted(glob.glob(os.path.join(root, "stdlib", "kernels", "*.tile"))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for m in KERNEL.finditer(text):
            lines = [line[3:].strip() for line in m.group(1).splitlines() if line.startswith("///")]
            yield os.path.basename(path)[:-5], text, m.group(2), " ".join(lines), clauses(text, m.end() - 1)


def closed(text, at):
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i + 1
    return len(text)


def clauses(text, at):
    """What is between the parameters, which begin at `at`, and the body."""
    start = end = closed(text, at)
    while end < len(text) and text[end] != "{":
        end = closed(text, end) if text[end] in "([" else end + 1
    return text[start:end]


def conditions(text):
    """{"N <= B", "P > 0"} of "N <= B && P > 0": parts between commas and && that are in no brackets."""
    found, at, start = set(), 0, 0
    while at < len(text):
        if text[at] in "([":
            at = closed(text, at)
        elif text[at] == "," or text.startswith("&&", at):
            found.add(" ".join(text[start:at].split()))
            at += 1 if text[at] == "," else 2
            start = at
        else:
            at += 1
    return found | {" ".join(text[start:].split())} - {""}


def required(clauses_):
    found = set()
    for m in re.finditer(r"\brequire\(", clauses_):
        found |= conditions(clauses_[m.end():closed(clauses_, m.end() - 1) - 1])
    return found


def wrong_conditions(module, doc, clauses_):
    m = REQUIRES.search(doc)
    said, kept = conditions(m.group(1)) if m else set(), required(clauses_)
    for c in sorted(kept - said):
        yield f"require({c}) is not in its text: Requires {c}."
    for c in sorted(said - kept):
        yield f"its text says Requires {c}, but no clause require({c}) does"
    yield from unchecked(module, doc[:m.start()] if m else doc)


def unchecked(module, text):
    for known in NO_CONDITION.get(module, ()):
        text = text.replace(known, "")
    for m in CONDITION.finditer(text):
        yield f"'{text[max(0, m.start() - 30):m.end() + 20]}': a condition? Say it by 'Requires ...' and require(...)"


def head(text):
    return " ".join(line[2:].strip() for line in HEAD.match(text).group(0).splitlines())


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
    for module, text in sorted({(module, text) for module, text, _, _, _ in found}):
        yield from (f"stdlib/kernels/{module}.tile: {w}" for w in unchecked(module, head(text)))
    with open(os.path.join(root, "stdlib", "kernels", "README.md"), encoding="utf-8") as f:
        yield from (f"stdlib/kernels/README.md: {w}" for w in unchecked("README", re.sub(r"```.*?```|<!--.*?-->", "", f.read(), flags=re.S)))
    for module, text, name, doc, clauses_ in found:
        place = f"stdlib/kernels/{module}.tile: {name}"
        yield from (f"{place}: {w}" for w in wrong_conditions(module, doc, clauses_))
        if not re.search(r"[=~]", doc):
            yield f"{place}: its line has no formula"
        if not tested(root, module, name, launched.get(text, ())):
            yield f"{place} has no row in test/conformance"
        if name not in listed.get(module, ()):
            yield f"stdlib/kernels/README.md: {module}.tile: no {name}"
    known = {(module, name) for module, _, name, _, _ in found}
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
