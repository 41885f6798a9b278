"""std.kernels.axes against NumPy: every reduction and scan, lengths within a tile and longer, NaN, nothing."""
from kernel_library import EPS, exact, f64, kernel_row, near, np, poison
from values import normal


def reduced(x, axis, op):
    if op in (5, 6):
        return (np.argmax if op == 5 else np.argmin)(x, axis).astype(np.int32)
    return (x.sum(axis), np.abs(x).sum(axis), np.sqrt((x * x).sum(axis)), x.max(axis, initial=-np.inf),
            x.min(axis, initial=np.inf))[op]


def wanted(x, axis, op, t):
    y = reduced(x, axis, op)
    return exact(y) if op > 4 else near(y, 4 * EPS * (np.abs(x).sum(axis) + 1) * (x.shape[axis] + 1), t)


for op, t, m, n, bm, bn in ((0, "f32", 5, 33, 4, 16), (1, "f16", 3, 7, 1, 8), (2, "bf16", 2, 64, 1, 32),
                            (3, "f32", 9, 20, 8, 16), (4, "f64", 1, 1, 1, 4), (5, "f32", 5, 33, 4, 8),
                            (6, "f16", 3, 50, 1, 16), (0, "f64", 2, 0, 1, 8), (0, "bf16", 0, 5, 1, 8),
                            (5, "bf16", 2, 9, 1, 16)):
    A = "f64" if t == "f64" else "f32"
    O = "i32" if op > 4 else t
    kernel_row("axes", "reduce_rows", f"{op}_{t}_{m}x{n}",
               {"x": normal(t, 1, m, n), "y": poison(O, m), "factor": 1.0},
               lambda a, op=op, t=t: {"y": wanted(f64(a, "x")[0], 1, op, t)}, T=t, A=A, O=O, OP=op, BM=bm, BN=bn)
for op, t, m, n, l, bn, bl in ((0, "f32", 2, 9, 20, 4, 16), (1, "f16", 1, 5, 3, 2, 8), (2, "bf16", 2, 3, 9, 4, 8),
                               (3, "f32", 2, 7, 33, 4, 16), (4, "f64", 1, 1, 1, 2, 4), (5, "f32", 3, 9, 17, 4, 16),
                               (6, "f16", 1, 20, 5, 8, 8), (0, "f64", 2, 0, 3, 2, 4), (6, "bf16", 2, 4, 0, 2, 4)):
    A = "f64" if t == "f64" else "f32"
    O = "i32" if op > 4 else t
    kernel_row("axes", "reduce_middle", f"{op}_{t}_{m}x{n}x{l}",
               {"x": normal(t, 1, m, n, l), "y": poison(O, m, l), "factor": 1.0},
               lambda a, op=op, t=t: {"y": wanted(f64(a, "x")[0], 1, op, t)}, T=t, A=A, O=O, OP=op, BN=bn, BL=bl)

SCANS = {
    "add": (np.add, 0.0), "multiply": (np.multiply, 1.0), "greatest": (np.maximum, -np.inf),
    "least": (np.minimum, np.inf)
}


def scanned(x, f, exclusive):
    function, start = SCANS[f]
    y = function.accumulate(np.concatenate([np.full((len(x), 1), start), x], 1), 1)
    return y[:, :-1] if exclusive else y[:, 1:]


for f, t, m, n, exclusive, bm, bn in (("add", "f32", 5, 33, 0, 4, 16), ("multiply", "f64", 2, 9, 1, 1, 4),
                                      ("greatest", "f16", 3, 40, 0, 2, 16), ("least", "bf16", 1, 17, 1, 1, 8),
                                      ("add", "f16", 2, 5, 1, 1, 8), ("add", "f32", 0, 5, 0, 1, 8),
                                      ("greatest", "f32", 1, 1, 1, 1, 4)):
    A = "f64" if t == "f64" else "f32"
    kernel_row("axes", "scan_rows", f"{f}_{t}_{m}x{n}", {
        "x": normal(t, 1, m, n), "y": poison(t, m, n), "start": SCANS[f][1], "exclusive": exclusive
    }, lambda a, f=f, t=t, e=exclusive: {"y": near(scanned(f64(a, "x")[0], f, e), 200 * EPS, t)}, T=t, A=A, f=f, BM=bm,
               BN=bn)
