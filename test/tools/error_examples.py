#!/usr/bin/env python3
"""The page of diagnostics is what `tilec error --markdown` writes, has a section for every row of diags.def, and each example is
right or wrong as it says.

    error_examples.py ROOT TILEC

A section's first block has the diagnostic, its second has neither it nor an error; both are compiled for the processor.
"""
import os
import re
import subprocess
import sys
import tempfile


def said(tilec, source, folder):
    """(ids of all diagnostics, is it wrong)"""
    path = os.path.join(folder, "example.tile")
    with open(path, "w", encoding="utf-8") as f:
        f.write(source + "\n")
    p = subprocess.run([tilec, path, "--target", "cpu", "--emit=tir", "-o", os.devnull], capture_output=True, text=True, timeout=60)
    return re.findall(r"(?:error|warning)\[([\w-]+)\]", p.stderr), p.returncode != 0


def section(tilec, head, title, text, folder):
    """Faults of one section."""
    blocks = [b if "kernel " in b else f"{head}\n{b}\n}}" for b in re.findall(r"^```\n(.*?)\n```$", text, re.S | re.M)]
    if len(blocks) not in (0, 2):
        yield f"{title}: {len(blocks)} examples"
    if len(blocks) == 2:
        found, _ = said(tilec, blocks[0], folder)
        if title not in found:
            yield f"{title}: the wrong example gives {found}"
        found, wrong = said(tilec, blocks[1], folder)
        if wrong or title in found:
            yield f"{title}: the right example gives {found}"


def main(root, tilec):
    with open(os.path.join(root, "frontend/ERRORS.md"), encoding="utf-8") as f:
        page = f.read()
    with open(os.path.join(root, "ir/support/diags.def"), encoding="utf-8") as f:
        rows = f.read()
    made = subprocess.run([tilec, "error", "--markdown"], capture_output=True, text=True, check=True).stdout
    faults = [] if made == page else ["frontend/ERRORS.md is stale: tilec error --markdown > frontend/ERRORS.md"]
    parts = re.split(r"^## (.*)\n", made, flags=re.M)
    head = re.search(r"^```\n(kernel .*?) \.\.\. }\n```$", parts[0], re.M)[1]
    titles = parts[1::2]
    known = re.findall(r"^DIAG\((\w+),", rows, re.M) + re.findall(r'^WARN\(\w+, "([^"]+)"', rows, re.M)
    faults += [f"{name} has no section: it needs a row in frontend/errors.def" for name in known if titles.count(name) < known.count(name)]
    with tempfile.TemporaryDirectory(prefix="tile-errors-") as folder:
        for title, text in zip(titles, parts[2::2]):
            faults += section(tilec, head, title, text, folder)
    print("\n".join([*faults, f"{len(titles)} sections, {made.count('```') // 4} with examples, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
