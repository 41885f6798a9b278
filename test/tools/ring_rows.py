"""Rows of ring.py --products: matrix products and attention in every way that Hopper's loops are run, each way of every axis of
AXES with each way of the others, or, with twice the rows, Blackwell's. All of a kernel's ways must give the bits of `ref`."""
import itertools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
import numpy as np  # noqa: E402

import values  # noqa: E402
from rows import Row  # noqa: E402

# Ways to run a loop: a word for the row's name, and what it sets. warps, stages: what the row states; loop: the loop's clauses;
# clauses: the kernel's; persistent: two programs do all tiles in a loop around. Texts of several axes are added up. A new axis is a line.
AXES = (
    [("g1", {"warps": 4}), ("g2", {"warps": 8}), ("g4", {"warps": 16})],  # warpgroups: 64 rows each, or more
    [(f"s{n}", {"stages": n}) for n in range(1, 6)],
    [("together", {"loop": " specialize(0)"}), ("alone", {"loop": " specialize"}), ("turns", {"loop": " specialize(2)"})],
    [("each", {}), ("persistent", {"persistent": True})],
    [("c1", {}), ("c2", {"clauses": " cluster(2)"})],
)

# name: types of A and B and of the sums; B's columns in one piece (all that 8 bits can have); rows for each warpgroup (below 0: of all), columns, step
# along k; what is added to the lengths that are whole blocks
PRODUCTS = {
    "f16": ("f16", "f32", False, (64, 64, 64), (24, 16, 16)),
    "f16_columns": ("f16", "f32", True, (64, 96, 32), (0, 0, 0)),
    "f16_strips": ("f16", "f32", False, (192, 64, 16), (8, 8, 8)),
    "bf16": ("bf16", "f32", False, (64, 128, 32), (24, 8, 8)),
    "f8e4m3": ("f8e4m3", "f32", True, (64, 64, 64), (24, 16, 32)),
    "f8e5m2": ("f8e5m2", "f32", True, (64, 24, 128), (0, 0, 16)),
    "i8": ("i8", "i32", True, (64, 64, 32), (24, 16, 16)),
    "u8": ("u8", "i32", True, (64, 16, 128), (8, 0, 16)),
    "f16_along_n": ("f16", "f32", False, (-64, 64, 32), (24, 8, 16)),  # 64 rows, however many warpgroups
    "f8e4m3_along_n": ("f8e4m3", "f32", True, (-64, 128, 64), (8, 16, 32)),
    "f16_turned": ("f16", "f32", False, (-32, 64, 32), (8, 8, 16)),  # 32 rows: the product of the transposed operands
    "bf16_turned": ("bf16", "f32", True, (-32, 128, 32), (0, 0, 0)),
    "i8_rows": ("i8", "i32", False, (64, 128, 64), (16, 16, 16)),  # B along N: threads bring it
    "odd": ("f16", "f32", False, (64, 32, 32), (-5, -3, 7)),  # no bulk copies
}
# too small for warpgroups: warps, or some of them, take parts of k
SPREAD = {
    "f16_along_k": ("f16", "f32", False, (-16, 16, 128), (8, 8, 16)),
    "bf16_along_k": ("bf16", "f32", True, (-16, 32, 256), (0, 0, 0)),
    "i8_along_k": ("i8", "i32", True, (-16, 16, 256), (8, 8, 32)),
}
# of Blackwell alone: 64 rows at once, however many warpgroups
HALVES = {
    "f16_half": ("f16", "f32", False, (-64, 64, 32), (24, 8, 16)),
    "bf16_half_strips": ("bf16", "f32", False, (-192, 64, 16), (8, 8, 8)),
}
# what no product into tensor memory does: of 24 columns; turned, as they have too few rows for wgmma; small ones in a row,
# which cost more there
NOT_TENSOR = ("f8e5m2", "f16_turned", "bf16_turned", "attention_32", "attention_along_n")
TENSOR_COLUMNS = 512  # of 128 rows; products with more sums are for each warp
TRIPS = 4
PRODUCT = """    tile<{acc}, {bm}, {bn}> acc = 0;
    for (int k : range(0, K, {bk})) pipeline{loop}
        acc = dot(A[x * {bm} +: {bm}, k +: {bk}], B[k +: {bk}, y * {bn} +: {bn}], acc);
    C[x * {bm} +: {bm}, y * {bn} +: {bn}] = acc;"""
ATTENTION = """    auto q = Q[y, x * {rows} +: {rows}, 0 +: {width}];
    tile<f32, {rows}, {width}> acc = 0;
    for (int n : range(0, N, 32)) pipeline{loop} {{
        auto s = dot(q, trans(K[y, n +: 32, 0 +: {width}]));
        acc = dot(({type})max(s, 0), V[y, n +: 32, 0 +: {width}], acc * 0.5);
    }}
    O[y, x * {rows} +: {rows}, 0 +: {width}] = acc;"""
BULK = {}  # threads of a block, of each row whose operands bulk copies bring
ATTENTIONS = {"attention_64": ("f16", 64, 16), "attention_32": ("bf16", 32, 16), "attention_along_n": ("f16", 64, 0)}  # element, width, rows of each warp


def ways():
    """(word for the name, what is set)"""
    for way in itertools.product(*AXES):
        said = {"loop": "", "clauses": "", "persistent": False}
        for _, sets in way:
            for key, value in sets.items():
                said[key] = said.get(key, "") + value if key in ("loop", "clauses") else value
        yield "_".join(word for word, _ in way), said


def filled(t, seed, *shape):
    rng = np.random.default_rng(seed)
    store = np.frombuffer(rng.bytes(values.STORE[t]().itemsize * int(np.prod(shape))), values.STORE[t])
    return values.Arr(t, store.reshape(shape))  # ring.py fills floats itself


def row(name, source, args, output, said):
    if said["stages"] > 1 and "_odd_" not in name and "_rows_" not in name and "_along_k_" not in name:
        BULK[name] = 32 * (said["warps"] + (0 if said["loop"] == " specialize(0)" else 4))
    return Row(name, source, args, lambda a: [output], {}, None, ["-Wno-no-effect"], [], True, False, False, said["warps"], said["stages"])


def kernel(parameters, across, down, tile, said, require=""):
    """A kernel that does `tile`, a text of x and y, for across x down of them."""
    head = f"\nkernel k({parameters})\n    grid({2 if said['persistent'] else f'{across}, {down}'}){require}{said['clauses']}\n{{\n"
    if not said["persistent"]:
        return head + f"    int x = pid(0);\n    int y = pid(1);\n{tile}\n}}\n"
    loop = f"    int across = {across};\n    for (int t : range(pid(0), across * {down}, npid(0))) {{\n    int x = t % across;\n    int y = t / across;\n"
    return head + loop + tile + "\n    }\n}\n"


def product(name, word, said, times):
    t, acc, in_columns, block, more = {**PRODUCTS, **SPREAD, **HALVES}[name]
    block = (block[0] if name in HALVES or name in SPREAD else times * block[0], *block[1:])
    bm, bn, bk = -block[0] if block[0] < 0 else block[0] * said["warps"] // 4, block[1], block[2]
    if times > 1 and bm // 128 * bn > TENSOR_COLUMNS:
        return None
    m, n, k = bm + more[0], 2 * bn + more[1], TRIPS * bk + more[2]
    b = filled(t, 2, k, n)
    source = kernel(f"const {t} A[M, K], const {t} B[{'K : 1, N : ldb' if in_columns else 'K, N'}], {acc} C[M, N]", f"cdiv(M, {bm})", f"cdiv(N, {bn})",
                    PRODUCT.format(acc=acc, bm=bm, bn=bn, bk=bk, loop=said["loop"]), said)
    args = {"A": filled(t, 1, m, k), "B": values.Arr(t, np.asfortranarray(b.store)) if in_columns else b, "C": values.poison(acc, m, n)}
    return row(f"product_{name}_{word}", source, args, "C", said)


def attention(name, word, said, times):
    t, width, each = ATTENTIONS[name]
    rows = times * (each * said["warps"] or 64)
    source = kernel(f"const {t} Q[H, M, D], const {t} K[H, N, D], const {t} V[H, N, D], f32 O[H, M, D]", f"cdiv(M, {rows})", "H",
                    ATTENTION.format(type=t, width=width, rows=rows, loop=said["loop"]), said, f" require(D == {width})")
    lengths = {"Q": rows + 8, "K": 32 * TRIPS + 8, "V": 32 * TRIPS + 8}
    args = {name: filled(t, seed, 2, n, width) for seed, (name, n) in enumerate(lengths.items())}
    return row(f"product_{name}_{word}", source, {**args, "O": values.poison("f32", 2, rows + 8, width)}, "O", said)


def fault(name, device, stats):
    """Why a row has not run as it is meant to (a text, or None), by what --stats said: no products by warpgroups, or into tensor memory, no bulk
    copies, no producer; on other GPUs, no matrix instructions."""
    if "_along_k_" in name or not is_of_warpgroups(device):
        return None if re.search(r"\bmma_", stats) else "--stats does not say mma"
    wanted = [r"\btensor_mma: " if is_tensor(device) else r"\bwgmma: "]
    wanted += [r"\bbulk_(?:all_|pair_)?\d: ", rf"blocks of {BULK[name]} threads"] if name in BULK else []
    missing = [word for word in wanted if not re.search(word, stats)]
    return f"--stats does not say {', '.join(missing)}" if missing else None


def is_tensor(device):
    return device.startswith("emu:sm_10")


def is_of_warpgroups(device):
    return is_tensor(device) or device.startswith("emu:sm_90a")


def rows(tensor):
    made = {**dict.fromkeys(PRODUCTS, product), **dict.fromkeys(SPREAD, product), **dict.fromkeys(ATTENTIONS, attention)}
    if tensor:
        made = {name: make for name, make in made.items() if name not in NOT_TENSOR} | dict.fromkeys(HALVES, product)
    all_of = (make(name, word, said, 2 if tensor else 1) for name, make in made.items() for word, said in ways())
    return [r for r in all_of if r]
