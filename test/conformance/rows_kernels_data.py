"""std.kernels.scan, sort, select, histogram and segments against NumPy: exact, whatever the programs' order."""
from kernel_library import Arr, exact, kernel_row, np, poison, rounded
from values import is_float, ints, rng, normal, random_bits, small, store, wide, zeros


# ---- scan ------------------------------------------------------------------------------------------------------------
def running(f, x, neutral, exclusive):
    y, total = [], neutral
    for v in x:
        y.append(total)
        total = f(total, v)
        y[-1] = y[-1] if exclusive else total
    return np.array(y, dtype=object)


SCANS = [("i32", "i32", "i32", 777, "add", False), ("f32", "f32", "f32", 1, "add", True),
         ("f16", "f32", "f16", 70, "add", False), ("f32", "f32", "f32", 130, "max", False),
         ("u8", "i64", "i64", 333, "add", True), ("f64", "f64", "f64", 65, "min", True),
         ("u32", "u32", "u32", 0, "add", False), ("u64", "u64", "u64", 99, "max", True),
         ("bf16", "f32", "f32", 33, "add", False), ("i32", "i32", "i32", 600, "fill", True),
         ("i64", "i64", "i64", 77, "fill", False)]
NEUTRAL = {"add": 0, "fill": 0, "max": -np.inf, "min": np.inf}
for t, a, o, n, f, exclusive in SCANS:
    x, neutral = small(t, 1, n), 0 if f == "max" and t[0] == "u" else NEUTRAL[f]
    parts = -(-n // 16) + 1
    args = {"x": x, "y": poison(o, n)}
    consts = {"T": t, "A": a, "O": o, "f": f, "EXCLUSIVE": exclusive, "B": 16}
    step = {"add": lambda p, q: p + q, "max": max, "min": min, "fill": lambda p, q: q
            if q != 0 else p}[f]  # the last one does not commute
    done = running(step, [v.item() for v in wide(x)], neutral, exclusive)

    def want(_, o=o, done=done):
        return {"y": rounded(done.astype(np.float64), o) if o[0] in "bf" else exact(done)}

    kernel_row(
        "scan", "prefix_scan", f"{t}_{a}_{f}_{n}", {
            **args, "state": zeros("i32", parts), "part": poison(a, 2, parts),
            "neutral": float(neutral) if a[0] == "f" else neutral
        }, want, **consts, W=2 if f == "fill" else 32)
    if a == t and o == t or t == "f16":
        block = 16
        blocks = [
            running(step, [v.item() for v in wide(x)[i:i + block]], neutral, False)[-1] for i in range(0, n, block)
        ]
        padded = blocks + [3] * (parts - len(blocks))
        before = running(step, padded, neutral, True)
        number = float(neutral) if a[0] == "f" else neutral
        own = {k: v for k, v in consts.items() if k in ("T", "A", "f")}
        as_ = lambda v, a=a: Arr(a, np.array(list(v), dtype=np.dtype(zeros(a, 0).store.dtype)))
        kernel_row("scan", "scan_parts", f"{t}_{a}_{f}_{n}", {"x": x, "part": as_([3] * parts), "neutral": number},
                   lambda _, v=as_(padded).store: {"part": exact(v)}, **own, B=block)
        kernel_row("scan", "scan_offsets", f"{a}_{f}_{n}", {"part": as_(padded), "neutral": number},
                   lambda _, v=as_(before).store: {"part": exact(v)}, A=a, f=f, B=8)
        kernel_row("scan", "scan_blocks", f"{t}_{a}_{f}_{n}",
                   {"x": x, "part": as_(before), "y": poison(o, n), "neutral": number}, want, **consts)


# ---- sort ------------------------------------------------------------------------------------------------------------
def codes(x, t, down):
    """Unsigned numbers in the order of x, NaN last, zeros of both signs equal: from ranks of an independent kind, by
    the value's own order."""
    bits = {"f16": 16, "bf16": 16}.get(t) or int(t[1:])
    raw, top, most = x.store, 1 << (bits - 1), (1 << bits) - 1
    number = [int(v) & most for v in raw.view(f"u{bits // 8}").ravel()]
    if not is_float(t):
        c = [v ^ (top if t[0] == "i" else 0) for v in number]
        return [most - v if down else v for v in c]
    c = []
    for v, w in zip(number, wide(x).ravel()):
        v = 0 if w == 0 else v
        up = top - 1 - (v - top) if v >= top else v + top
        c.append(most if w != w else most - up if down else up)
    return c


def stable(x, t, down):
    """The places of x's elements in the order of the built-in sort."""
    v = wide(x)
    if is_float(t):
        key = np.where(np.isnan(v), 0, -v if down else v)
        return np.lexsort((key + 0.0, np.isnan(v)))
    return np.array(sorted(range(len(v)), key=lambda i: -int(v[i]) if down else int(v[i])), dtype=np.int64)


def keys(t, kind, n, seed=1):
    """Arrays on which sorts go wrong."""
    x = random_bits(t, seed, n) if kind == "random" else None
    if kind == "equal":
        x = Arr(t, np.full(n, 3).astype(random_bits(t, 1, 1).store.dtype))
    elif kind in ("rising", "falling"):
        x = random_bits(t, seed, n)
        order = stable(x, t, kind == "falling")
        x = Arr(t, x.store[order])
    elif kind == "special":
        v = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 2.0**-14, -np.nan, 0.0, -0.0])
        x = Arr(t, store(np.resize(v, n), t)) if is_float(t) else small(t, seed, n)
        if is_float(t):  # a NaN with its sign
            x.store.view(f"u{x.store.itemsize}")[2::11] |= 1 << (8 * x.store.itemsize - 1)
    return x


SORTS = [("u32", "random", 300), ("i32", "special", 70), ("f32", "special", 99), ("f16", "special", 130),
         ("i64", "random", 65), ("u8", "random", 257), ("u64", "rising", 64), ("f64", "special", 33),
         ("bf16", "special", 40), ("i8", "random", 90), ("u16", "falling", 100), ("i16", "equal", 77),
         ("f32", "random", 1), ("u32", "random", 0), ("f16", "random", 200), ("f32", "falling", 129)]
for i, (t, kind, n) in enumerate(SORTS):
    down, pairs, block = i % 2 == 1, i % 3 != 1, 32
    x = keys(t, kind, n)
    c, bytes_, parts = codes(x, t, down), x.store.itemsize, -(-n // block) + (i % 2)
    assert [c[j] for j in stable(x, t, down)] == sorted(c), t  # what the passes sort by is the order that is promised
    count = np.stack([np.bincount([v >> 8 * d & 255 for v in c], minlength=256)
                      for d in range(bytes_)]).astype(np.uint32)
    name = f"{t}_{kind}_{n}" + ("_down" if down else "")
    kernel_row("sort", "radix_count", name, {"x": x, "count": zeros("u32", bytes_, 256)},
               lambda _, count=count: {"count": exact(count)}, T=t, DOWN=down, B=block)
    d, vt = (i * 3 + 1) % bytes_, ("u32", "f64", "u8")[i % 3]
    order = np.argsort([v >> 8 * d & 255 for v in c], kind="stable")
    v = random_bits(vt, 5, n if pairs else 0)

    def want(_, x=x, v=v, order=order, pairs=pairs, t=t, vt=vt):
        out = {"y": exact(wide(Arr(t, x.store[order])))}
        return {**out, "w": exact(wide(Arr(vt, v.store[order])))} if pairs else out

    kernel_row(
        "sort", "radix_pass", name, {
            "x": x, "v": v, "count": Arr("u32", count), "y": poison(t, n), "w": poison(vt, n if pairs else 0),
            "state": zeros("u32", bytes_ + 1, parts, 256), "d": int(d)
        }, want, T=t, V=vt, PAIRS=pairs, DOWN=down, B=block)

for i, (t, kind, m, n) in enumerate([("f32", "special", 3, 33), ("u64", "random", 2, 50), ("f16", "special", 2, 64),
                                     ("i32", "random", 1, 1), ("bf16", "special", 2, 20), ("u8", "random", 1, 40),
                                     ("f64", "special", 1, 30), ("i16", "falling", 2, 9), ("u32", "random", 2, 0)]):
    down = i % 2 == 0
    rows_ = [keys(t, kind, n, s) for s in range(m)]
    x = Arr(t, np.stack([r.store for r in rows_]))
    order = np.stack([stable(r, t, down) for r in rows_]).astype(np.int32)
    kernel_row(
        "sort", "sort_rows", f"{t}_{kind}_{m}x{n}", {"x": x, "y": poison(t, m, n), "at": poison("i32", m, n)}, lambda _,
        x=x, order=order, t=t: {"y": exact(wide(Arr(t, np.take_along_axis(x.store, order, 1)))), "at": exact(order)},
        T=t, DOWN=down, B=64)

for i, (t, kind, m, n, parts, k) in enumerate([("f32", "special", 2, 99, 3, 4), ("f16", "random", 1, 200, 1, 5),
                                               ("i32", "rising", 1, 100, 4, 3), ("u64", "random", 3, 40, 2, 1),
                                               ("bf16", "special", 2, 21, 1, 8), ("f64", "random", 1, 5, 3, 4),
                                               ("u8", "equal", 1, 64, 2, 6), ("f32", "rising", 1, 77, 1, 3)]):
    rows_ = [keys(t, kind, n, s) for s in range(m)]
    x = Arr(t, np.stack([r.store for r in rows_]))
    share, value, at = -(-n // parts), np.zeros((m, parts, k), x.store.dtype), np.full((m, parts, k), -1, np.int32)
    for r in range(m):
        for p in range(parts):
            mine = Arr(t, x.store[r, p * share:(p + 1) * share])
            order = stable(mine, t, True)[:k]
            value[r, p, :len(order)], at[r, p, :len(order)] = mine.store[order], order + p * share
    kernel_row("sort", "top_k", f"{t}_{kind}_{n}",
               {"x": x, "value": poison(t, m, parts, k), "at": poison("i32", m, parts, k)},
               lambda _, value=value, at=at, t=t: {"value": exact(wide(Arr(t, value))), "at": exact(at)}, T=t, K=k,
               B=16)
    order = np.stack([stable(r, t, True)[:k] for r in rows_]).astype(np.int32)
    best = Arr(t, np.take_along_axis(x.store, order, 1))
    kernel_row("sort", "top_rows", f"{t}_{kind}_{n}",
               {"x": x, "y": poison(t, m, order.shape[1]), "at": poison("i32", m, order.shape[1])},
               lambda _, best=best, order=order: {"y": exact(wide(best)), "at": exact(order)}, T=t, K=8, B=16)
    kernel_row(
        "sort", "top_k_merge", f"{t}_{kind}_{n}",
        {"value": Arr(t, value), "at": Arr("i32", at), "y": poison(t, m, k), "from": poison("i32", m, k)}, lambda _, x=
        x, order=order, t=t: {"y": exact(wide(Arr(t, np.take_along_axis(x.store, order, 1)))), "from": exact(order)},
        T=t, K=k, B=16)

for words, n in ((70, 5), (3, 100), (0, 1), (40, 0)):
    kernel_row("sort", "sort_start", f"{words}_{n}",
               {"word": Arr("u32", np.full(words, 7, np.uint32)), "place": Arr("i32", np.full(n, 7, np.int32))},
               lambda _, words=words, n=n: {"word": exact(np.zeros(words, np.uint32)),
                                            "place": exact(np.arange(n, dtype=np.int32))}, B=32)

# ---- select ----------------------------------------------------------------------------------------------------------
def front(x, t, m):
    """The first elements of an array of m; behind them what was there."""
    out = poison(t, m).store.copy()
    out[:len(x)] = x[:m]
    return exact(wide(Arr(t, out)))


for i, (t, keep, n, flags, places, rest, m) in enumerate([("f32", "nonzero", 333, False, True, False, 333),
                                                          ("i32", "positive", 100, False, False, True, 100),
                                                          ("u8", "nonzero", 70, True, True, True, 70),
                                                          ("f16", "finite", 65, False, True, True, 65),
                                                          ("f64", "positive", 1, False, False, True, 1),
                                                          ("u64", "nonzero", 0, True, True, False, 3),
                                                          ("bf16", "nonzero", 40, True, False, False, 9)]):
    x = keys(t, "special", n) if keep == "finite" else small(t, i, n)
    flag, v = ints("u8", 9, 0, 3, n if flags else 0), wide(x)
    chosen = flag.store != 0 if flags else {"nonzero": v != 0, "positive": v > 0, "finite": np.isfinite(v)}[keep]
    parts, extents = -(-n // 16) + 2, {"y": m, "rest": n if rest else 0, "at": m if places else 0}

    def want(_, x=x, t=t, chosen=chosen, e=extents):
        return {
            "y": front(x.store[chosen], t,
                       e["y"]), "rest": front(x.store[~chosen], t, e["rest"]) if e["rest"] else exact(np.zeros(0)),
            "at": front(np.flatnonzero(chosen).astype(np.int32), "i32", e["at"]) if e["at"] else exact(np.zeros(0)),
            "n": exact([chosen.sum()])
        }

    kernel_row(
        "select", "select", f"{t}_{keep}_{n}", {
            "x": x, "flag": flag, "y": poison(t, m), "rest": poison(t, extents["rest"]), "at": poison(
                "i32", extents["at"]), "n": poison("i32", 1), "state": zeros("i32", parts), "part": poison(
                    "i32", 2, parts)
        }, want, T=t, keep=keep, FLAGS=flags, PLACES=places, REST=rest, B=16)

for t, kind, n in (("f32", "special", 130), ("i32", "runs", 333), ("u8", "equal", 77), ("i64", "rising", 64),
                   ("f16", "special", 1), ("bf16", "special", 0), ("f64", "runs", 50)):
    x = Arr(t, np.repeat(small(t, 3, n).store, 7)[3:][:n]) if kind == "runs" else keys(t, kind, n)
    v, parts = wide(x), -(-n // 16) + 1
    start = np.flatnonzero(np.concatenate([[True] * (n > 0), v[1:] != v[:-1]])).astype(np.int32)
    state = {"n": poison("i32", 1), "state": zeros("i32", parts)}
    kernel_row("select", "unique", f"{t}_{kind}_{n}",
               {"x": x, "y": poison(t, n), **state, "part": poison("i32", 2, parts)},
               lambda _, x=x, t=t, start=start: {"y": front(x.store[start], t, len(x.store)), "n": exact([len(start)])},
               T=t, B=16)
    length = np.diff(np.append(start, n)).astype(np.int32)
    kernel_row(
        "select", "run_length_encode", f"{t}_{kind}_{n}", {
            "x": x, "value": poison(t, n), "start": poison("i32", n), "length": poison("i32", n),
            **state, "part": poison("u64", 2, parts)
        }, lambda _, x=x, t=t, n=n, start=start, length=length: {
            "value": front(x.store[start], t, n), "start": front(start, "i32", n), "length": front(length, "i32", n),
            "n": exact([len(start)])
        }, T=t, B=16)

# ---- histogram -------------------------------------------------------------------------------------------------------
for n in (777, 1, 0):
    x = ints("u8", 4, 0, 256 if n > 1 else 1, n)
    kernel_row("histogram", "histogram_u8", str(n), {"x": x, "count": Arr("i32", np.arange(256, dtype=np.int32))},
               lambda a: {"count": exact(np.arange(256) + np.bincount(a["x"], minlength=256))}, B=32)


def even_bins(x, low, high, bins, f):
    """The kernel's formula, in type f."""
    with np.errstate(all="ignore"):
        b = np.floor((x.astype(f) - f(low)) * (f(bins) / (f(high) - f(low))))
        inside = (x >= f(low)) & (x <= f(high))
    return np.minimum(b[inside], bins - 1).astype(int)


for t, n, bins, room in (("f32", 500, 10, 16), ("f16", 99, 7, 0), ("i32", 200, 5, 5), ("u8", 70, 33, 64),
                         ("f64", 333, 100, 0), ("bf16", 40, 4, 8), ("f32", 1, 1, 1), ("i64", 0, 3, 4)):
    values_ = rng(6).normal(0, 3, n)
    if n > 40 and is_float(t):
        values_[:5] = np.nan, np.inf, -np.inf, 4, -3
    x = Arr(t, store(values_, t)) if is_float(t) else ints(t, 6, 0, 9, n)
    a = "f64" if t == "f64" else "f32"
    f = np.float64 if a == "f64" else np.float32
    low, high = (-3.0, 4.0) if is_float(t) else (1.0, 6.0)

    def want(v, bins=bins, low=low, high=high, f=f):
        b = even_bins(v["x"], low, high, bins, f)
        # beside the formula, what numpy.histogram says, but for values at the border of two bins
        usual = np.histogram(v["x"][np.isfinite(v["x"])], bins, (low, high))[0]
        assert np.abs(np.bincount(b, minlength=bins) - usual).sum() <= 4
        return {"count": exact(np.bincount(b, minlength=bins))}

    kernel_row("histogram", "histogram_even", f"{t}_{n}_in_{bins}",
               {"x": x, "count": zeros("i32", bins), "low": low, "high": high}, want, T=t, A=a, BINS=room, B=64)
for t, n, edges_ in (("f32", 300, [-2.0, -0.5, -0.5, 0, 1, 2.5]), ("i32", 100, [-2, 0, 3]), ("f16", 1, [0.0, 1.0]),
                     ("u8", 40, [0, 1, 2, 3, 4]), ("f64", 0, [0.0, 5.0])):
    x = normal(t, 7, n) if is_float(t) else small(t, 7, n)
    edge = Arr(t, store(np.array(edges_), t))
    kernel_row("histogram", "histogram_range", f"{t}_{n}",
               {"x": x, "edge": edge, "count": zeros("i32",
                                                     len(edges_) - 1)},
               lambda a: {"count": exact(np.histogram(a["x"], a["edge"])[0])}, T=t, B=64)
for t, a, k, n, bins in (("f32", "f32", "i32", 200, 7), ("f16", "f32", "i64", 99, 3), ("i32", "i64", "i32", 64, 1),
                         ("u8", "i32", "u32", 1, 9), ("f64", "f64", "i32", 0, 2)):
    key = ints(k, 8, 0 if k[0] == "u" else -1, bins + 1, n)

    def want(v, bins=bins):
        known = (v["key"] >= 0) & (v["key"] < bins)
        return {
            "sum": exact(
                np.bincount(v["key"][known].astype(np.int64), v["x"][known].astype(float),
                            minlength=bins).astype(float))
        }

    kernel_row("histogram", "sum_by_key", f"{t}_{a}_{n}", {"x": small(t, 9, n), "key": key, "sum": zeros(a, bins)},
               want, T=t, A=a, K=k, B=32)

# ---- segments --------------------------------------------------------------------------------------------------------
for i, (t, a, o, f, lengths) in enumerate([("f32", "f32", "f32", "scan.add", [3, 0, 0, 100, 1, 7, 64, 0]),
                                           ("f16", "f32", "f16", "scan.add", [5]),
                                           ("i32", "i32", "i32", "max", [0, 1, 40, 2]),
                                           ("u8", "i64", "i64", "scan.add", [33] * 9),
                                           ("f64", "f64", "f64", "min", [1] * 40),
                                           ("bf16", "f32", "f32", "scan.add", [0, 0, 0]),
                                           ("i64", "i64", "i64", "scan.add", [])]):
    offset, n = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32), sum(lengths)
    x, neutral = small(t, i, n), {"max": -2**31, "min": np.inf, "scan.add": 0}[f]
    go = {"max": max, "min": min, "scan.add": lambda p, q: p + q}[f]

    def segments(v, offset=offset, neutral=neutral, go=go):
        return np.array([
            running(go, v["x"][b:e].astype(float), neutral, False)[-1] if e > b else neutral
            for b, e in zip(offset, offset[1:])
        ], float)
    args = {"x": x, "offset": Arr("i32", offset)}
    kernel_row("segments", "segment_reduce", f"{t}_{f[-3:]}_{n}",
               {**args, "y": poison(o, len(lengths)), "neutral": float(neutral) if a[0] == "f" else neutral},
               lambda v, s=segments, o=o: {"y": rounded(s(v), o)}, T=t, A=a, O=o, f=f, R=4, W=8)
    if f == "scan.add":
        kernel_row("segments", "segment_sum", f"{t}_{n}", {**args, "y": zeros(a, len(lengths))},
                   lambda v, s=segments: {"y": exact(s(v))}, T=t, A=a, B=16)
