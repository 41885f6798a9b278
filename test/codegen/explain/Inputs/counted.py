#!/usr/bin/env python3
"""What tilec explain says beforehand against what the emulator counts: counted.py TILEC SOURCE_ROOT

The kernels have no element outside and no branch, so that each access is made by every warp as often as its loops
turn. Then per source line: requests and sectors of global accesses, wavefronts and conflicts of shared memory, shuffles agree.
"""
import collections
import re
import subprocess
import sys

# file, options, arguments, (blocks, warps, trips of the loop)
KERNELS = [
    ("examples/01_vector_add/vector_add.tile", [], ["x=iota[8192]", "y=iota[8192]", "z=nan[8192]"], (2, 4, 0)),
    ("examples/03_matmul/matmul.tile", [], ["A=iota[128,192]", "B=iota[192,64]", "C=nan[128,64]"], (2, 4, 3)),
    ("examples/02_softmax/softmax.tile", ["B=1024"], ["x=iota[3,1024]", "y=nan[3,1024]"], (3, 4, 0)),
    ("test/bench/gemm.tile", ["BK=32"], ["A=zeros[128,256]", "B=zeros[256,128]", "C=nan[128,128]"], (1, 4, 8)),
    ("test/codegen/explain/Inputs/transpose.tile", [], ["x=iota[64,128]", "y=nan[128,64]"], (2, 4, 0)),
    ("test/codegen/explain/Inputs/transpose.tile", ["B=32"], ["x=iota[64,128]", "y=nan[128,64]"], (8, 4, 0)),
    ("test/codegen/explain/Inputs/scans.tile", ["B=1024"], ["x=iota[2048]", "y=nan[2048]", "a=zeros[32,64]", "b=nan[32,64]"], (2, 4, 0)),
    ("test/codegen/explain/Inputs/scans.tile", ["B=4096"], ["x=iota[4096]", "y=nan[4096]", "a=zeros[32,64]", "b=nan[32,64]"], (1, 4, 0)),
    ("test/codegen/explain/Inputs/histograms.tile", [], ["x=iota[2048]", "w=iota[2048]", "c=zeros[2,256]", "s=nan[2,256]"], (2, 4, 0)),
    ("test/codegen/explain/Inputs/histograms.tile", ["B=16384"], ["x=iota[16384]", "w=iota[16384]", "c=zeros[1,256]", "s=nan[1,256]"], (1, 4, 0)),
]


def rows(page):
    """Of the first kernel: (line, table, op, times, figures)."""
    table, line = "", 0
    for text in page.split("counted on")[0].split("\n"):
        quoted = re.match(r"\s+(\d+) \|", text)
        row = re.match(r" {9}(\w.*?)(, \w+)?(?: \((\d+) times\))?((?: {2,}\d+(?: B)?)+)$", text)
        if re.match(r"\w.* for \w+, general", text):
            return
        if text.startswith(("shared memory by", "global memory", "between threads", "loops")):
            table = text
        elif quoted:
            line = int(quoted.group(1))
        elif row and row.group(2) not in (", else", ", part"):  # the same as then and whole, with bounds
            figures = [int(x) for x in re.findall(r"\d+", row.group(4))]
            yield line, table, row.group(1).split()[0], int(row.group(3) or 1), figures


def said(page, trips):
    """Line to [requests, sectors, wavefronts, least, shuffles] of one warp. What is fetched before the loop for its first trips is
    not fetched by its last ones; there a load does nothing, and a copy writes zeros."""
    lines = collections.defaultdict(lambda: [0] * 5)
    fetched = {line for line, _, op, _, figures in rows(page) if op in ("copy", "load", "put") and figures[-1]}
    for line, table, op, times, figures in rows(page):
        often = times * (trips if figures[-1] else 1)
        early = op in ("copy", "load", "put") and not figures[-1] and line in fetched
        if early and op != "copy":
            continue
        if table.startswith("global"):
            _, _, requests, sectors, _, _ = figures
            lines[line][0] += often * requests
            lines[line][1] += often * requests * (0 if early else sectors)
        elif table.startswith("between"):
            shuffles, wavefronts, conflicts, _, _ = figures[-5:]
            lines[line][2] += often * wavefronts
            lines[line][3] += often * (wavefronts - conflicts)
            lines[line][4] += often * shuffles
    return lines


COUNTED = re.compile(r"\s+.+?:(\d+):\d+ (ldg|stg|ldb|stb|lds|sts|ldsm|cp_async)\w*: (\d+) requests, (.*)")
SHUFFLES = re.compile(r"\s+.+?:(\d+):\d+ shfl_\w+: (\d+)$")
FIGURE = re.compile(r"([\d.]+) (sectors|wavefronts)/request \(min ([\d.]+)\)")


def counted(page):
    lines = collections.defaultdict(lambda: [0] * 5)
    for text in page.split("counted on")[1].split("\n"):
        m, shuffles = COUNTED.match(text), SHUFFLES.match(text)
        if shuffles:
            lines[int(shuffles.group(1))][4] += int(shuffles.group(2))
        for value, unit, least in FIGURE.findall(m.group(4)) if m else []:
            row, requests = lines[int(m.group(1))], int(m.group(3))
            if unit == "sectors":
                row[0] += requests
                row[1] += requests * float(value)
            else:
                row[2] += requests * float(value)
                row[3] += requests * float(least)
    return lines


def main(tilec, root):
    bad = 0
    for file, consts, arguments, (blocks, warps, trips) in KERNELS:
        for target in ("sm_80", "gfx942"):
            words = [tilec, "explain", f"{root}/{file}", "--target", target, "--warps", str(warps)] + [w for c in consts for w in ("--const", c)]
            p = subprocess.run(words + arguments, capture_output=True, text=True)
            if p.returncode:
                print(f"{file} for {target}: {p.stderr}")
                return 1
            expected = {line: [x * blocks * warps for x in row] for line, row in said(p.stdout, trips).items()}
            found = counted(p.stdout)
            for line in sorted(set(expected) | set(found)):
                want, got = expected.get(line, [0] * 5), found[line]
                wrong = [i for i in range(5) if abs(want[i] - got[i]) > 0.01 * max(want[i], 1)]
                bad += bool(wrong)
                if wrong:
                    print(f"{file}:{line} for {target}: said {want}, counted {got}")
    print(f"{2 * len(KERNELS)} pages, {bad} lines differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
