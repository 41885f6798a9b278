"""std.kernels.scan, sort, select, histogram and segments against NumPy: exact, whatever the programs' order."""
from kernel_library import Arr, exact, kernel_row, np, poison, rounded
from values import ints, normal, random_bits, small, store, wide, zeros

# ---- scan -------------------------------------------------------------------------------------------------------------
def running(f, x, neutral, exclusive):
    y, total = [], neutral
    for v in x:
        y.append(total)
        total = f(total, v)
        y[-1] = y[-1] if exclusive else total
    return np.array(y, dtype=object)


SCANS = [("i32", "i32", "i32", 777, "add", False), ("f32", "f32", "f32", 1, "add", True), ("f16", "f32", "f16", 70, "add", False), ("f32", "f32", "f32", 130, "max", False),
         ("u8", "i64", "i64", 333, "add", True), ("f64", "f64", "f64", 65, "min", True), ("u32", "u32", "u32", 0, "add", False), ("u64", "u64", "u64", 99, "max", True), ("bf16", "f32", "f32", 33, "add", False)]
NEUTRAL = {"add": 0, "max": -np.inf, "min": np.inf}
for t, a, o, n, f, exclusive in SCANS:
    x, neutral = small(t, 1, n), 0 if f == "max" and t[0] == "u" else NEUTRAL[f]
    parts = -(-n // 16) + 1
    args = {"x": x, "y": poison(o, n)}
    consts = {"T": t, "A": a, "O": o, "f": f, "EXCLUSIVE": exclusive, "B": 16}
    step = {"add": lambda p, q: p + q, "max": max, "min": min}[f]
    done = running(step, [v.item() for v in wide(x)], neutral, exclusive)

    def want(_, o=o, done=done):
        return {"y": rounded(done.astype(np.float64), o) if o[0] in "bf" else exact(done)}
    kernel_row("scan", "prefix_scan", f"{t}_{a}_{f}_{n}", {**args, "state": zeros("i32", parts), "part": poison(a, 2, parts), "neutral": float(neutral) if a[0] == "f" else neutral}, want, **consts)
    if a == t and o == t or t == "f16":
        block = 16
        blocks = [running(step, [v.item() for v in wide(x)[i:i + block]], neutral, False)[-1] for i in range(0, n, block)]
        padded = blocks + [3] * (parts - len(blocks))
        before = running(step, padded, neutral, True)
        number = float(neutral) if a[0] == "f" else neutral
        own = {k: v for k, v in consts.items() if k in ("T", "A", "f")}
        as_ = lambda v, a=a: Arr(a, np.array(list(v), dtype=np.dtype(zeros(a, 0).store.dtype)))
        kernel_row("scan", "scan_parts", f"{t}_{a}_{f}_{n}", {"x": x, "part": as_([3] * parts), "neutral": number}, lambda _, v=as_(padded).store: {"part": exact(v)}, **own, B=block)
        kernel_row("scan", "scan_offsets", f"{a}_{f}_{n}", {"part": as_(padded), "neutral": number}, lambda _, v=as_(before).store: {"part": exact(v)}, A=a, f=f, B=8)
        kernel_row("scan", "scan_blocks", f"{t}_{a}_{f}_{n}", {"x": x, "part": as_(before), "y": poison(o, n), "neutral": number}, want, **consts)
