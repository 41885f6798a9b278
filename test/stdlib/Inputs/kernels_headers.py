"""Every module of the library of kernels as a typed header, in C: kernels_headers.py TILEC SOURCE FOLDER CC..."""
import glob
import os
import re
import subprocess
import sys

tilec, source, folder, *cc = sys.argv[1:]
modules = sorted(os.path.basename(p)[:-5] for p in glob.glob(os.path.join(source, "stdlib", "kernels", "*.tile")))
for m in modules:
    with open(os.path.join(source, "stdlib", "kernels", m + ".tile"), encoding="utf-8") as f:
        text = f.read()
    heads = re.findall(r"^kernel (\w+)\(((?:.|\n)*?)\n\{", text, re.M)
    # tiles without a default
    given = [w for kernel, head in heads for name in re.findall(r"const int (\w+)(?=[,)])", head) for w in ("--const", f"{kernel}.{name}=64")]
    header = os.path.join(folder, m + "_all.h")
    p = subprocess.run([tilec, "std.kernels." + m, *given, "--emit=header", "-o", header], capture_output=True, text=True)
    if p.returncode or p.stderr:
        sys.exit(f"{m}: {p.stderr}")
    with open(header, encoding="utf-8") as f:
        made = f.read()
    missing = [k for k, _ in heads if f"static inline tile_status {k}(" not in made or f"{k}_launch(" not in made]
    if missing:
        sys.exit(f"{m}: no {missing}")
with open(os.path.join(folder, "all.c"), "w", encoding="utf-8") as f:
    f.write("".join(f'#include "{m}_all.h"\n' for m in modules))
include = os.path.join(source, "runtime", "include")
sys.exit(subprocess.run([*cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only", "-I", include, os.path.join(folder, "all.c")]).returncode)
