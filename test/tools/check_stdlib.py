#!/usr/bin/env python3
"""Every public function of stdlib/*.tile, one with a `///` line, is in the table of stdlib/README.md, says what its error is, and has a
row of the conformance suite that uses it; and what rows and other modules call of a module is public there.

    check_stdlib.py ROOT    prints what is wrong, exit 1; or the number of functions

A row uses std.M's f if it imports std.M and says M.f(...) or M.f as a function to pass. The functions that built-in names mean
(math, fast, and what IMPLIED lists) are used by the built-in name; NAME_f64, NAME_f16 and NAME_bf16 by NAME in a row of that type.
"""
import glob
import importlib
import os
import re
import sys

sys.dont_write_bytecode = True
IMPLIED = {"order.sort_pairs": "sort", "order.sort_values": "sort", "order.greatest_places": "topk"}
ERROR = re.compile(r"\bexact|\berrors?\b|\bulp\b|\bwithin\b|\brounded\b|\brounding\b|multiples of|<=|2\^-", re.I)
FUNCTION = re.compile(r"((?:^//[^\n]*\n)*)^auto (\w+)\(", re.M)


def functions(root):
    """(module, name, documentation) of each function of the library; the documentation is None for a helper."""
    for path in sorted(glob.glob(os.path.join(root, "stdlib", "*.tile"))):
        module = os.path.basename(path)[:-5]
        with open(path, encoding="utf-8") as f:
            for m in FUNCTION.finditer(f.read()):
                lines = [line[3:].strip() for line in m.group(1).splitlines() if line.startswith("///")]
                yield module, m.group(2), " ".join(lines) if lines else None


def rows(root):
    sys.path.insert(0, os.path.join(root, "test", "conformance"))
    for path in sorted(glob.glob(os.path.join(root, "test", "conformance", "rows_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    return importlib.import_module("rows").ROWS


def uses(source, consts, module, name):
    if f"import std.{module};" in source and re.search(rf"\b{module}\.{name}\b", source):
        return True
    if module == "fast":
        return re.search(rf"\bfast\.{name}\(", source)
    if module == "math":
        name, _, kind = name.partition("_")
        return re.search(rf"\b{name}\(", source) and (not kind or kind in source or kind in consts.values())
    builtin = IMPLIED.get(f"{module}.{name}")
    return bool(builtin and re.search(rf"\b{builtin}\(", source))


def table(root, readme="stdlib/README.md"):
    """module -> the names in its row of the README's table"""
    with open(os.path.join(root, readme), encoding="utf-8") as f:
        lines = re.findall(r"^\| `(\w+)\.tile` \| (.*) \|$", f.read(), re.M)
    return {module: set(re.findall(r"`(\w+)`", text)) for module, text in lines}


def faults(root):
    found = list(functions(root))
    public = {(m, n) for m, n, doc in found if doc is not None}
    all_rows, listed = rows(root), table(root)
    for module, name, doc in found:
        if doc is None:
            continue
        if not ERROR.search(doc):
            yield f"stdlib/{module}.tile: {name}: its line says nothing of errors"
        if not any(uses(r.source, r.consts, module, name) for r in all_rows):
            yield f"stdlib/{module}.tile: {name} has no row in test/conformance"
        if module not in listed:
            yield f"stdlib/README.md: no row for {module}.tile"
        elif module != "math" and name not in listed[module]:
            yield f"stdlib/README.md: {module}.tile: no {name}"
    for module, names in listed.items():
        for name in sorted(names - {n for m, n in public if m == module} if module != "math" else ()):
            yield f"stdlib/README.md: {module}.tile: {name} is no public function"
    for module in {m for m, _, _ in found}:
        for name in sorted({n for r in all_rows for n in re.findall(rf"\b{module}\.(\w+)\(", r.source) if f"import std.{module};" in r.source}):
            if (module, name) not in public:
                yield f"stdlib/{module}.tile: {name} is called by a row and has no /// line"
    if not public:
        yield "stdlib: no functions found"


def main(argv):
    wrong = list(faults(argv[0]))
    print("\n".join(wrong) if wrong else f"{sum(doc is not None for _, _, doc in functions(argv[0]))} functions, 0 faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
