#!/usr/bin/env python3
"""GPU code beside Triton's and CUDA Tile's, counted: instructions, registers and spills of the same kernels (no GPU is needed).

    run.py [BUILD] [--targets sm_80,sm_90a,gfx942,gfx1100] [-k PART] [--python PYTHON] [--json FILE] [--against FILE]

tilec's kernels are those of kernels.tile, in the form for aligned arguments; Triton's those of triton_kernels.py and CUDA Tile's (NVIDIA only) those of
cutile_kernels.py, by the python that has the packages (--python; without it only tilec's are counted). tilec's PTX and Triton's go through the ptxas on
PATH. Each is tried with the row's numbers of warps, Triton from sm_90a on also with tensor descriptors, and the best of each is shown: with the fewest spills,
then with the fewest instructions times warps. Kernels without a loop are counted as a whole, others by the shortest way round their main loop (sassmix.py,
amdmix.py). The last column is the best peer's instructions times warps over tilec's: 1 or more is as good as the peers or better. Where single warps begin bulk copies and
products into tensor memory, what these do is named and counted once.
--against takes tilec's earlier figures from a file that --json wrote.
"""
import argparse
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
sys.path.insert(0, os.path.join(root, "test", "tools"))
import amdmix  # noqa: E402
import sassmix  # noqa: E402

F32, F16, I8, I32, F8, U8, E8 = "fp32", "fp16", "i8", "i32", "fp8e4nv", "u8", "e8m0"
NVIDIA, AMD = ("sm_80", "sm_90a", "sm_100a", "sm_120a"), ("gfx90a", "gfx942", "gfx1100", "gfx1201")
STAGES_AMD = 2
BOTH = (4, 8)  # warps


def row(name, kernel, types, tile, triton=None, warps=4, stages=3, peer=None, targets=NVIDIA + AMD, cutile=None, tiles=None, more=None, ctas=1):
    """A row; `tile` are constants of all, `more`, `triton` and `tiles` further ones of tilec's, Triton's and CUDA Tile's; `peer` the kernel's name there, or a tuple of
    names of those that Triton may take, the first for all targets, the second from sm_90a on; `cutile`: False where CUDA Tile has none, or another name; `ctas`:
    blocks that the peers' program has."""
    peers = peer if isinstance(peer, tuple) else (peer or kernel,)
    return {"name": name, "kernel": kernel, "types": types, "tile": tile, "triton": triton or {}, "warps": warps if isinstance(warps, tuple) else (warps,),
            "stages": stages, "peers": peers, "targets": targets, "cutile": peers[0] if cutile is None else cutile, "tiles": tiles or {}, "more": more or {}, "ctas": ctas}


def gemm(name, kernel, t, c, bm, bn, bk, warps, stages, columns=False, precision="ieee", s="float32", tile=None, targets=NVIDIA + AMD, cutile=None):
    blocks = {"BM": bm, "BN": bn, "BK": bk}
    return row(name, kernel, [t, t, c], {**blocks, **(tile or {})}, {"COLUMNS": columns, "P": precision, "S": s}, warps, stages, ("gemm", "gemm_tma"),
               targets, cutile, {"COLUMNS": columns})


def odd(r, names, form):
    """The row for numbers `names` that are multiples of nothing: the form that tilec makes for such a launch."""
    return {**r, "name": f"{r['name']}, {' and '.join(names)} odd", "odd": names, "form": form, "peers": r["peers"][:1], "cutile": False, "targets": NVIDIA}


def attention(d, bm, bn, warps, stages, causal=False):
    return row(f"attention {bm}x{bn}, D = {d}{', causal' if causal else ''}", "attention", [F16] * 4,
               {"BM": bm, "BN": bn, "BD": d, "CAUSAL": str(causal).lower()}, {"CAUSAL": causal}, warps, stages, ("attention", "attention_tma"),
               tiles={"CAUSAL": causal})


def backward(what, results, d, bm, bn, warps, stages=2):
    return row(f"attention {what} {bm}x{bn}, D = {d}", "attention_" + what, [F16] * 4 + [F32] * 2 + [F16] * results, {"BM": bm, "BN": bn, "BD": d},
               {"TMA": False}, warps, stages, ("attention_" + what, "attention_" + what))


ROWS = [
    row("add 1024", "add", [F32] * 3, {"B": 1024}),
    row("relu 1024", "relu", [F32] * 2, {"B": 1024}),
    row("divide 1024", "divide", [F32] * 3, {"B": 1024}),
    row("swiglu 1024 f16", "swiglu", [F16] * 3, {"B": 1024}),
    row("softmax 4096", "softmax", [F32] * 2, {"B": 4096}, None, BOTH),
    row("softmax 4096, fast.exp", "softmax_fast", [F32] * 2, {"B": 4096}, None, BOTH, peer="softmax", targets=NVIDIA),
    row("softmax 4096 f16", "softmax_f16", [F16] * 2, {"B": 4096}, None, BOTH, peer="softmax"),
    row("layer norm 4096", "layernorm", [F32] * 4, {"B": 4096}, None, BOTH),
    row("rms norm backward 4096 f16", "rmsnorm_backward", [F16] * 4 + [F32], {"B": 4096}, None, BOTH),
    row("cross entropy 4096 f16", "cross_entropy", [F16, I32, F32, F16], {"B": 4096}, None, BOTH),
    row("row sum by 1024", "row_sum", [F32] * 2, {"B": 1024}, cutile=False),  # CUDA Tile takes several tiles a trip
    row("cumsum 1024", "cumsum_rows", [F32] * 2, {"B": 1024}, None),
    row("cumsum 4096", "cumsum_rows", [F32] * 2, {"B": 4096}, None, BOTH),
    row("embedding 16 x 128", "embedding", [I32, F32, F32], {"B": 16, "BD": 128}, None, BOTH),
    row("rope 8 heads of 128 f16", "rope", [F16, I32, F32, F32, F16], {"BH": 8, "I": 64}, None, BOTH),
    row("split-k gemv 16x256 f16", "gemv_split_k", [F16, F16, F32], {"BM": 16, "BK": 256, "SPLIT": 4}, None, BOTH),
    row("histogram of 4096 in 256 bins", "histogram_of", [I32] * 2, {"B": 4096, "BINS": 256}, None, BOTH, cutile="histogram"),
    gemm("f16 128x128x32", "gemm", F16, F32, 128, 128, 32, 4, 4),
    gemm("f16 128x128x64", "gemm", F16, F32, 128, 128, 64, BOTH, 3),
    gemm("f16 128x256x64", "gemm", F16, F32, 128, 256, 64, 8, 3),
    odd(gemm("f16 128x128x32", "gemm", F16, F32, 128, 128, 32, 4, 4), ["N"], "A=16,A.extent.1=8,B=16,C=16,near,grid"),
    odd(gemm("f16 128x128x32", "gemm", F16, F32, 128, 128, 32, 4, 4), ["K"], "A=16,B=16,B.extent.1=8,C=16,C.extent.1=4,near,grid"),
    odd(gemm("f16 128x128x32", "gemm", F16, F32, 128, 128, 32, 4, 4), ["M", "N", "K"], "A=16,B=16,C=16,near,grid"),
    gemm("f16 128x128x32, B by columns", "gemm_columns", F16, F32, 128, 128, 32, 4, 4, True),
    gemm("tf32 128x128x32", "gemm_tf32", F32, F32, 128, 128, 32, 4, 3, precision="tf32", targets=NVIDIA, cutile="gemm_tf32"),
    gemm("tf32x3 128x128x32", "gemm_tf32x3", F32, F32, 128, 128, 32, 8, 3, precision="tf32x3", targets=NVIDIA, cutile=False),
    gemm("tf32x3 64x64x32", "gemm_tf32x3", F32, F32, 64, 64, 32, 4, 3, precision="tf32x3", targets=NVIDIA, cutile=False),
    gemm("bf16x3 128x128x32", "gemm_bf16x3", F32, F32, 128, 128, 32, 8, 3, precision="bf16x3", cutile=False),
    gemm("i8 128x128x64, B by columns", "gemm_columns", I8, I32, 128, 128, 64, 4, 3, True, s="int32", tile={"T": "i8", "S": "i32"}),
    gemm("i8 128x128x128, B by columns", "gemm_columns", I8, I32, 128, 128, 128, BOTH, 3, True, s="int32", tile={"T": "i8", "S": "i32"}, targets=NVIDIA),
    gemm("f8 128x128x64, B by columns", "gemm_columns", F8, F32, 128, 128, 64, 4, 3, True, tile={"T": "f8e4m3"}, targets=("sm_90a", "sm_100a")),
    gemm("f8 128x128x128, B by columns", "gemm_columns", F8, F32, 128, 128, 128, BOTH, 3, True, tile={"T": "f8e4m3"}, targets=("sm_90a", "sm_100a")),
    row("u4 64x128x64, groups of 128", "std.kernels.quantized:gemm_u4", [F16, U8, F16, U8, F16], {"BM": 64, "BN": 128, "BK": 64, "G": 128}, None, BOTH, 3,
        "gemm_u4"),
    *(row(f"mxf8 128x128x{bk}", "std.kernels.quantized:gemm_mx", [F8, E8, F8, E8, F16], {"BM": 128, "BN": 128, "BK": bk}, {"TMA": False}, warps,
          stages, ("gemm_mx", "gemm_mx"), ("sm_100a", "sm_120a")) for bk, warps, stages in ((64, BOTH, 3), (128, 8, 2))),
    *(row(f"mxf4 128x128x{bk}", "std.kernels.quantized:gemm_mx", [U8, E8, U8, E8, F16], {"BM": 128, "BN": 128, "BK": bk}, {"TMA": False}, warps,
          stages, ("gemm_mx4", "gemm_mx4"), ("sm_100a", "sm_120a"), False, more={"TA": "f4e2m1"}) for bk, warps, stages in ((128, BOTH, 3), (256, 8, 2))),
    row("f16 256x256x64, two blocks", "gemm_pair", [F16, F16, F32], {"BN": 256, "BK": 64}, {"BM": 256, "COLUMNS": False, "P": "ieee", "S": "float32"}, 8, 3,
        ("gemm", "gemm_tma"), ("sm_100a",), "gemm", {"BM": 256, "COLUMNS": False}, {"BM": 128}, 2),
    row("grouped 128x128x64", "grouped", [F16, F16, I32, F16], {"BM": 128, "BN": 128, "BK": 64}, None, BOTH, 3, targets=("sm_90a", "sm_100a")),
    row("convolution 3x3, 128x64x64", "conv", [F16, F16, F16], {"BM": 128, "BN": 64, "BK": 64, "KH": 3, "KW": 3}, None, BOTH, 3),
    row("fused MoE 64x128x32", "fused_moe", [F16, F16, F32, I32, I32, F16], {"BM": 64, "BN": 128, "BK": 32, "TOP": 2}, None, 4, 3, cutile=False),
    row("chunk scan 128x64x32", "chunk_scan", [F16, F16, F32, F32, F16, F16, F16], {"BM": 128, "BN": 64, "BK": 32, "BD": 128}, None, 4, 3, cutile=False),
    attention(64, 128, 64, 4, 3),
    attention(64, 128, 64, 4, 3, True),
    attention(128, 128, 64, 8, 2),
    attention(128, 128, 64, 8, 2, True),
    backward("dkdv", 2, 64, 64, 64, BOTH),
    backward("dq", 1, 64, 64, 64, BOTH),
    backward("dkdv", 2, 128, 64, 64, BOTH),
    backward("dq", 1, 128, 64, 64, BOTH),
]


# ---- counts ----

def count(cubin, kernel, log, one_warp=False):
    """The figures of a kernel: instructions of the whole, of a trip, registers, bytes of spills. one_warp: the others pass by its main loop."""
    found = [k for k in sassmix.analyze_file(cubin) if kernel is None or k["kernel"] == kernel]
    if len(found) != 1:
        raise ValueError(f"{cubin}: no kernel {kernel}")
    k = found[0]
    part = log.split(f"Compiling entry function '{k['kernel']}'")[1].split("Compiling entry")[0]
    return {"all": k["total"], **figures(k, one_warp), "registers": int(re.search(r"Used (\d+) registers", part).group(1)),
            "spills": sum(int(n) for n in re.findall(r"(\d+) bytes spill", part))}


def begins(summary):
    return any(summary["mix"].get(name) for name in sassmix.BEGINS)


def roles(k):
    """(instructions of a trip of most warps; what single warps do in place of it, by name; is there a loop?). Where several loops begin bulk copies or
    products into tensor memory, each is a warp's own, and other warps may have no loop; else one warp of the main loop may begin them on a longer way."""
    loops = [x for x in k["loops"] if x["short"]["total"] > sassmix.MOST_OF_WAIT]
    main = next((x for x in loops if x["main"]), None)
    own = [x for x in loops if begins(x["short"])]
    if main in own and len(own) > 1:
        main = max((x for x in loops if x not in own), key=sassmix.weight, default=None)
    if own and not main and k["mix"]["MUFU"]:
        raise ValueError("its threads compute in loops round others, which sassmix does not list")
    one = {}
    for x in own:
        if x is not main:
            name = "copies" if x["short"]["mix"].get("UTMALDG") else "products"
            one[name] = one.get(name, 0) + x["begins"]["total"]
    if main and begins(main["begins"]) and not begins(main["short"]):
        one["one of them"] = main["begins"]["total"]
    return main["short"]["total"] if main else 0, one, bool(loops)


def figures(k, one_warp=False):
    trip, one, loop = roles(k)
    if one_warp and "products" not in one:
        trip, one = 0, {**one, "one of them": next(x for x in k["loops"] if x["main"])["begins"]["total"]}
    return {"trip": trip, "one": one, "loop": loop}


def count_cubin(cubin):
    """The same of a cubin without a log; spills are instructions that touch local memory, times 4."""
    k = sassmix.analyze_file(cubin)[0]
    with open(cubin, "rb") as f:
        data = f.read()
    return {"all": k["total"], **figures(k), "registers": registers(data), "spills": 4 * (k["mix"]["STL"] + k["mix"]["LDL"])}


def registers(data):
    """Of the only kernel of a cubin: its section .nv.info has entries of (format, key, size, bytes); key 0x2f is (symbol, registers)."""
    at, = struct.unpack_from("<Q", data, 40)
    size, sections, names = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(sections)]
    for head in heads:
        name = heads[names][4] + head[0]
        if data[name:data.index(b"\0", name)] != b".nv.info":
            continue
        here_, end = head[4], head[4] + head[5]
        while here_ < end:
            form, key, length = struct.unpack_from("<BBH", data, here_)
            if key == 0x2f:
                return struct.unpack_from("<II", data, here_ + 4)[1]
            here_ += 4 + (length if form == 4 else 0)
    return 0


def count_amd(path, kernel=None):
    k = sorted(amdmix.analyze_file(path, kernel), key=lambda x: x["kernel"])[0]
    main = [x["short"]["total"] for x in k["loops"] if x["main"]]
    return {"all": k["total"], "trip": main[0] if main else 0, "loop": bool(main), "registers": k["facts"]["vgprs"], "spills": k["facts"]["scratch_bytes"]}


def assemble(ptx, target):
    """Triton's text is of the version that its own ptxas takes; an older one takes it, too, with its own version in its place."""
    words = ["ptxas", "-v", f"-arch={target}", ptx, "-o", ptx + ".cubin"]
    p = subprocess.run(words, capture_output=True, text=True, check=False)
    newest = re.search(r"Unsupported \.version [\d.]+; current version is '([\d.]+)'", p.stderr)
    if newest:
        with open(ptx, encoding="utf-8") as f:
            older = re.sub(r"(?m)^\.version .*", f".version {newest[1]}", f.read())
        with open(ptx, "w", encoding="utf-8") as f:
            f.write(older)
        p = subprocess.run(words, capture_output=True, text=True, check=False)
    if p.returncode:
        raise ValueError(p.stderr.strip().split("\n")[0])
    return ptx + ".cubin", p.stderr + p.stdout


def of_form(cubin, log, kernel):
    """(cubin, name of its aligned form, log): the first of the forms."""
    names = [k["kernel"] for k in sassmix.analyze_file(cubin)]
    return cubin, sorted(n for n in names if n == kernel or re.fullmatch(re.escape(kernel) + r"_\d+", n))[0], log


def is_amd(target):
    return target.startswith("gfx")


def file_name(r):
    return re.sub(r"[ ,:]+", "_", r["name"])


def stages(r, target):
    return STAGES_AMD if is_amd(target) else r["stages"]


# ---- tilec's and the peers' ----

def source(r):
    """(tilec's words for a row: file or module, kernel, constants; the kernel's name)"""
    module, kernel = r["kernel"].split(":") if ":" in r["kernel"] else (os.path.join(here, "kernels.tile"), r["kernel"])
    return [module, "--kernel", kernel, *(w for k, v in {**r["tile"], **r["more"]}.items() for w in ("--const", f"{k}={v}"))], kernel


def ours(tilec, r, target, folder, warps):
    path = os.path.join(folder, f"{file_name(r)}.tilec.{warps}")
    words, kernel = source(r)
    forms = ["--forms", r.get("form", "aligned;general")]
    emit = ["--emit", "asm"] if is_amd(target) else ["--emit", "ptx", *forms]
    subprocess.run([tilec, *words, "--target", target, *emit, "-o", path, "--warps", str(warps), "--stages", str(stages(r, target))], check=True,
                   env={**os.environ, "TILE_CACHE": "off"})
    if is_amd(target):
        return count_amd(path, kernel)
    return count(*of_form(*assemble(path, target), kernel), is_for_one_warp(tilec, [*words, *forms], target, r, warps))


def is_for_one_warp(tilec, words, target, r, warps):
    """Does the first form have a loop that all warps but one pass by?"""
    p = subprocess.run([tilec, *words, "--target", target, "--emit", "staged", "-o", "-", "--warps", str(warps), "--stages", str(stages(r, target))], check=True,
                       env={**os.environ, "TILE_CACHE": "off"}, capture_output=True, text=True)
    return "one_warp" in p.stdout.split("\nkernel @")[0 if p.stdout.startswith("kernel @") else 1]


def ask_triton(python, rows, target, folder):
    """({name of a file in the folder: what went wrong, or None}, Triton's version or why there is none)"""
    jobs = [{"name": name, "kernel": kernel, "types": ["i8" if t in (U8, E8) else t for t in r["types"]], "warps": warps, "stages": stages(r, target), "odd": r.get("odd", []),
             "ctas": r["ctas"],
             "constants": {**{k: v for k, v in r["tile"].items() if k not in ("T", "S")}, **r["triton"], **more}}
            for r in rows for name, kernel, warps, more in of_triton(r, target)]
    answers, said = talk(python, "triton_kernels.py", target, folder, jobs)
    return {x["name"]: x.get("error") for x in answers}, said


def of_triton(r, target):
    """(file, kernel, warps, further constants) of each of Triton's kernels that a row tries."""
    for i, kernel in enumerate(r["peers"][:2 if target in NVIDIA[1:] else 1]):
        for warps in r["warps"]:
            yield triton_file(r, i, warps), kernel, warps, {"TMA": bool(i)} if "TMA" in r["triton"] else {}


def triton_file(r, i, warps):
    return f"{file_name(r)}.{i}.{warps}"


def talk(python, script, target, folder, jobs):
    """(answers, the package's version or the last line that it said)"""
    p = subprocess.run([python, os.path.join(here, script), target, folder], input="\n".join(map(json.dumps, jobs)), capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in p.stdout.splitlines()]
    versions = [x["version"] for x in answers if "version" in x]
    return answers, versions[-1] if versions else (p.stderr.strip().split("\n") or ["no answer"])[-1]


def triton(python, rows, target, folder):
    """Name of a row to figures, or to a text that says why there are none."""
    answers, version = ask_triton(python, rows, target, folder)
    found = {}
    for r in rows:
        tries = []
        for name, _, warps, _ in of_triton(r, target):
            path = os.path.join(folder, name + (".s" if is_amd(target) else ".ptx"))
            tries.append(attempt(answers.get(name, "no answer"), warps, (lambda p=path: count_amd(p)) if is_amd(target) else lambda p=path: counted(p, target)))
        found[file_name(r)] = best(tries)
    return found, version


def counted(ptx, target):
    cubin, log = assemble(ptx, target)
    return count(cubin, None, log)


def cutile(python, rows, target, folder):
    rows = [r for r in rows if r["cutile"] and not is_amd(target)]
    jobs = [{"name": file_name(r), "kernel": r["cutile"], "types": r["types"], "constants": {**r["tile"], **r["tiles"]}, "tries": BOTH, "ctas": r["ctas"]} for r in rows]
    answers, version = talk(python, "cutile_kernels.py", target, folder, jobs) if jobs else ([], "-")
    found = {r["name"]: [] for r in rows}
    for r in rows:
        for x in (x for x in answers if x["name"] == file_name(r)):
            path = os.path.join(folder, f"{x['name']}.{x['warps']}.cubin")
            found[r["name"]].append(attempt(x.get("error"), x["warps"], lambda p=path: count_cubin(p)))
    return {file_name(r): best(found[r["name"]]) for r in rows}, version


def attempt(error, warps, measure):
    """The figures with warps, or a text that says why there are none."""
    try:
        return error or {**measure(), "warps": warps}
    except (ValueError, OSError, IndexError) as e:
        return str(e)


def work(f):
    """Of all warps: `one of them` is another way of a warp that is among these, what has another name are warps besides."""
    one = f.get("one", {})
    more = sum(n - (f["trip"] if name == "one of them" else 0) for name, n in one.items())
    return (f["trip"] if f.get("loop", f["trip"]) else f["all"]) * f["warps"] + more


def best(tries):
    good = [t for t in tries if not isinstance(t, str)]
    return min(good, key=lambda t: (t["spills"], work(t))) if good else (tries or ["-"])[0]


def text(f):
    if isinstance(f, str):
        return f
    one = "".join(f", {name} {n}" for name, n in f.get("one", {}).items())
    return f"{f['trip'] if f.get('loop', f['trip']) else f['all']}, {f['warps']} warps{one}, {f['registers']} registers" + (f", {f['spills']} B spilled" if f["spills"] else "")


def ratio(mine, peers):
    peers = [p for p in peers if not isinstance(p, str) and bool(p["loop"]) == bool(mine["loop"])]
    return f"{min(map(work, peers)) / work(mine):.2f}" if peers else "-"


def table(a, target, before, results, folder):
    rows = [r for r in ROWS if a.k in r["name"] and target in r["targets"]]
    theirs, version = triton(a.python, rows, target, folder) if a.python else ({}, "not asked")
    tiles, other = cutile(a.python, rows, target, folder) if a.python else ({}, "not asked")
    print(f"\n{target}: instructions (of a loop's trip where there is one); Triton {version}{'' if is_amd(target) else f'; CUDA Tile {other}'}\n")
    print("| kernel | tilec before | tilec | Triton | CUDA Tile | peers / tilec |\n| --- | --- | --- | --- | --- | --- |")
    for r in rows:
        mine = best([attempt(None, w, lambda w=w, r=r: ours(os.path.join(a.build, "bin", "tilec"), r, target, folder, w)) for w in r["warps"]])
        results[f"{target} {r['name']}"] = mine
        peers = [theirs.get(file_name(r), "-"), tiles.get(file_name(r), "-")]
        old = before.get(f"{target} {r['name']}", "-")
        print(f"| {r['name']} | {text(old)} | {text(mine)} | {' | '.join(map(text, peers))} | {ratio(mine, peers)} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", default=os.path.join(root, "build"))
    p.add_argument("--targets", default="sm_80,sm_90a,gfx942,gfx1100")
    p.add_argument("-k", default="")
    p.add_argument("--python", help="a python that has Triton and CUDA Tile")
    p.add_argument("--json")
    p.add_argument("--against")
    a = p.parse_args()
    before = json.load(open(a.against, encoding="utf-8")) if a.against else {}
    results = {}
    for target in a.targets.split(","):
        with tempfile.TemporaryDirectory() as folder:
            table(a, target, before, results, folder)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
