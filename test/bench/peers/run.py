#!/usr/bin/env python3
"""GPU code beside Triton's, counted: instructions, registers and spills of the same kernels (no GPU is needed).

    run.py [BUILD] [--targets sm_80,sm_90a] [-k PART] [--python PYTHON] [--json FILE] [--against FILE]

tilec's kernels are those of kernels.tile, in the form for aligned arguments; Triton's those of triton_kernels.py, by the
python that has the package (--python; without it only tilec's are counted). Both go through the ptxas on PATH and are
counted by sassmix.py: kernels without a loop as a whole, others by the shortest way round their main loop.
--against takes tilec's earlier figures from a file that --json wrote.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
sys.path.insert(0, os.path.join(root, "test", "tools"))
import sassmix  # noqa: E402

F32, F16, I8, I32, F8 = "fp32", "fp16", "i8", "i32", "fp8e4nv"


def row(name, kernel, types, tile, triton=None, warps=4, stages=3, peer=None, targets=("sm_80", "sm_90a")):
    """A row; `tile` are constants of both, `triton` further ones of Triton's; `peer` its kernel there."""
    return {"name": name, "kernel": kernel, "types": types, "tile": tile, "triton": triton or {}, "warps": warps, "stages": stages,
            "peer": peer or kernel, "targets": targets}


def gemm(name, kernel, t, c, bm, bn, bk, warps, stages, columns=False, precision="ieee", s="float32", tile=None, targets=("sm_80", "sm_90a")):
    blocks = {"BM": bm, "BN": bn, "BK": bk}
    return row(name, kernel, [t, t, c], {**blocks, **(tile or {})}, {"COLUMNS": columns, "P": precision, "S": s}, warps, stages, "gemm", targets)


def odd(r, names, form):
    """The row for numbers `names` that are multiples of nothing: the form that tilec makes for such a launch."""
    return {**r, "name": f"{r['name']}, {' and '.join(names)} odd", "odd": names, "form": form}


def attention(d, bm, bn, warps, stages):
    return row(f"attention {bm}x{bn}, D = {d}", "attention", [F16] * 4, {"BM": bm, "BN": bn, "BD": d}, None, warps, stages)


ROWS = [
    row("add 1024", "add", [F32] * 3, {"B": 1024}),
    row("relu 1024", "relu", [F32] * 2, {"B": 1024}),
    row("divide 1024", "divide", [F32] * 3, {"B": 1024}),
    row("swiglu 1024 f16", "swiglu", [F16] * 3, {"B": 1024}),
    row("softmax 4096", "softmax", [F32] * 2, {"B": 4096}, None, 8),
    row("softmax 4096, fast.exp", "softmax_fast", [F32] * 2, {"B": 4096}, None, 8, peer="softmax"),
    row("softmax 4096 f16", "softmax_f16", [F16] * 2, {"B": 4096}, None, 8, peer="softmax"),
    row("layer norm 4096", "layernorm", [F32] * 4, {"B": 4096}, None, 8),
    row("rms norm backward 4096 f16", "rmsnorm_backward", [F16] * 4 + [F32], {"B": 4096}, None, 8),
    row("cross entropy 4096 f16", "cross_entropy", [F16, I32, F32, F16], {"B": 4096}, None, 8),
    row("row sum by 1024", "row_sum", [F32] * 2, {"B": 1024}),
    row("cumsum 1024", "cumsum_rows", [F32] * 2, {"B": 1024}),
    row("embedding 16 x 128", "embedding", [I32, F32, F32], {"B": 16, "BD": 128}),
    gemm("f16 128x128x32", "gemm", F16, F32, 128, 128, 32, 4, 4),
    gemm("f16 128x256x64", "gemm", F16, F32, 128, 256, 64, 8, 3),
    odd(gemm("f16 128x128x32", "gemm", F16, F32, 128, 128, 32, 4, 4), ["N"], "A=16,A.extent.1=8,B=16,C=16,near,grid"),
    odd(gemm("f16 128x128x32", "gemm", F16, F32, 128, 128, 32, 4, 4), ["K"], "A=16,B=16,B.extent.1=8,C=16,C.extent.1=4,near,grid"),
    odd(gemm("f16 128x128x32", "gemm", F16, F32, 128, 128, 32, 4, 4), ["M", "N", "K"], "A=16,B=16,C=16,near,grid"),
    gemm("f16 128x128x32, B by columns", "gemm_columns", F16, F32, 128, 128, 32, 4, 4, True),
    gemm("tf32 128x128x32", "gemm_tf32", F32, F32, 128, 128, 32, 4, 3, precision="tf32"),
    gemm("tf32x3 128x128x32", "gemm_tf32x3", F32, F32, 128, 128, 32, 8, 3, precision="tf32x3"),
    gemm("tf32x3 64x64x32", "gemm_tf32x3", F32, F32, 64, 64, 32, 4, 3, precision="tf32x3"),
    gemm("bf16x3 128x128x32", "gemm_bf16x3", F32, F32, 128, 128, 32, 8, 3, precision="bf16x3"),
    gemm("i8 128x128x64, B by columns", "gemm_columns", I8, I32, 128, 128, 64, 4, 3, True, s="int32", tile={"T": "i8", "S": "i32"}),
    gemm("f8 128x128x64, B by columns", "gemm_columns", F8, F32, 128, 128, 64, 4, 3, True, tile={"T": "f8e4m3"}, targets=("sm_90a",)),
    row("fused MoE 64x128x32", "fused_moe", [F16, F16, F32, I32, I32, F16], {"BM": 64, "BN": 128, "BK": 32, "TOP": 2}, None, 4, 3),
    row("chunk scan 128x64x32", "chunk_scan", [F16, F16, F32, F32, F16, F16, F16], {"BM": 128, "BN": 64, "BK": 32, "BD": 128}, None, 4, 3),
    attention(64, 128, 64, 4, 3),
    attention(128, 128, 64, 8, 2),
]


def count(cubin, kernel, log):
    """The figures of a kernel: instructions of the whole, of a trip, registers, bytes of spills."""
    found = [k for k in sassmix.analyze_file(cubin) if kernel is None or k["kernel"] == kernel]
    if len(found) != 1:
        raise ValueError(f"{cubin}: no kernel {kernel}")
    k = found[0]
    main = [x for x in k["loops"] if x["main"]]
    part = log.split(f"Compiling entry function '{k['kernel']}'")[1].split("Compiling entry")[0]
    return {"all": k["total"], "trip": main[0]["short"]["total"] if main else 0,
            "registers": int(re.search(r"Used (\d+) registers", part).group(1)),
            "spills": sum(int(n) for n in re.findall(r"(\d+) bytes spill", part))}


def assemble(ptx, target):
    p = subprocess.run(["ptxas", "-v", f"-arch={target}", ptx, "-o", ptx + ".cubin"], capture_output=True, text=True, check=False)
    if p.returncode:
        raise ValueError(p.stderr.strip().split("\n")[0])
    return ptx + ".cubin", p.stderr + p.stdout


def ours(tilec, r, target, folder):
    ptx = os.path.join(folder, file_name(r) + ".tilec.ptx")
    constants = [w for k, v in r["tile"].items() for w in ("--const", f"{k}={v}")]
    subprocess.run([tilec, os.path.join(here, "kernels.tile"), "--kernel", r["kernel"], "--target", target, "--emit", "ptx", "-o", ptx,
                    "--warps", str(r["warps"]), "--stages", str(r["stages"]), "--forms", r.get("form", "aligned;general"), *constants],
                   check=True)
    return count(*of_form(*assemble(ptx, target), r["kernel"]))


def of_form(cubin, log, kernel):
    """(cubin, name of its aligned form, log): the first of the forms."""
    names = [k["kernel"] for k in sassmix.analyze_file(cubin)]
    return cubin, sorted(n for n in names if n == kernel or re.fullmatch(re.escape(kernel) + r"_\d+", n))[0], log


def file_name(r):
    return r["name"].replace(" ", "_").replace(",", "")


def ask_triton(python, rows, target, folder):
    """({name of a file in the folder: what went wrong, or None}, Triton's version or why there is none)"""
    jobs = [{"name": file_name(r), "kernel": r["peer"], "types": r["types"], "warps": r["warps"], "stages": r["stages"], "odd": r.get("odd", []),
             "constants": {**{k: v for k, v in r["tile"].items() if k not in ("T", "S")}, **r["triton"]}} for r in rows]
    p = subprocess.run([python, os.path.join(here, "triton_kernels.py"), target, folder], input="\n".join(map(json.dumps, jobs)),
                       capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in p.stdout.splitlines()]
    versions = [x["version"] for x in answers if "version" in x]
    return {x["name"]: x.get("error") for x in answers}, versions[-1] if versions else p.stderr.strip().split("\n")[-1]


def triton(python, rows, target, folder):
    """Name to figures, or to a text that says why there are none."""
    answers, version = ask_triton(python, rows, target, folder)
    found = {}
    for name, error in answers.items():
        try:
            found[name] = error or counted(os.path.join(folder, name + ".ptx"), target)
        except ValueError as e:
            found[name] = str(e)
    return found, version


def counted(ptx, target):
    cubin, log = assemble(ptx, target)
    return count(cubin, None, log)


def figures(f):
    if isinstance(f, str):
        return f, None
    text = f"{f['trip'] or f['all']}, {f['registers']} registers" + (f", {f['spills']} B spilled" if f["spills"] else "")
    return text, f["trip"] or f["all"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", default=os.path.join(root, "build"))
    p.add_argument("--targets", default="sm_80,sm_90a")
    p.add_argument("-k", default="")
    p.add_argument("--python", help="a python that has Triton")
    p.add_argument("--json")
    p.add_argument("--against")
    a = p.parse_args()
    before = json.load(open(a.against, encoding="utf-8")) if a.against else {}
    results = {}
    for target in a.targets.split(","):
        rows = [r for r in ROWS if a.k in r["name"] and target in r["targets"]]
        with tempfile.TemporaryDirectory() as folder:
            peers, version = triton(a.python, rows, target, folder) if a.python else ({}, "not asked")
            print(f"\n{target}: instructions (of a loop's trip where there is one); Triton {version}\n")
            print("| kernel | tilec before | tilec | Triton | tilec / Triton |\n| --- | --- | --- | --- | --- |")
            for r in rows:
                mine = ours(os.path.join(a.build, "bin", "tilec"), r, target, folder)
                results[f"{target} {r['name']}"] = mine
                mine, n = figures(mine)
                old = before.get(f"{target} {r['name']}")
                theirs, m = figures(peers.get(file_name(r), "-"))
                print(f"| {r['name']} | {figures(old)[0] if old else '-'} | {mine} | {theirs} | {f'{n / m:.2f}' if m else '-'} |", flush=True)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
