"""Random kernels as users write them (user_kernels.py): a block of an image or of rows a program, loaded through taps, borders, steps, index
tiles and channels, moved, reduced, scanned, multiplied, gone over in loops, and stored in one of as many ways. While a program is made, NumPy
says what each value is. Floats are small integers, so that each order of a sum gives the same bits."""
import random

import numpy as np
from language_values import BORDER, STORE, is_int, tile_of, to, window

TYPES = ["f32", "f32", "f32", "i32", "i32", "u8", "i16", "f16", "u32", "i64", "f64", "i8"]
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 12, 16, 16, 17, 24, 32, 32, 33, 48, 64, 64, 65, 96, 100, 128, 192, 256, 300, 512, 1000]
HEIGHTS = [1, 2, 3, 4, 4, 5, 8, 8, 9, 16, 16, 32, 64]
MOST_ELEMENTS, EXACT, SMALL = 4096, {"f16": 512, "f32": 2 ** 20, "f64": 2 ** 40}, {"f16": 8, "f32": 100, "f64": 100}


class V:
    """text: an expression of the type and shape; run: of (memory, pid) gives the array; most: floats are at most so large."""
    def __init__(self, text, type_, shape, run, most=0):
        self.text, self.type, self.shape, self.run, self.most = text, type_, tuple(shape), run, most


def wide(t):
    return np.int64 if t in ("i64",) else np.float64 if t[0] == "f" else np.int64


class Program:
    def __init__(self, seed):
        self.r, self.np = random.Random(seed), np.random.default_rng(seed)
        self.params, self.arrays, self.outs, self.lines, self.scalars, self.steps, self.used = [], {}, [], [], {}, [], set()
        self.n, self.exact = 0, True
        r = self.r
        while True:
            self.rank = r.choice([1, 1, 2, 2, 2])
            self.w, self.h = r.choice(WIDTHS), r.choice(HEIGHTS) if self.rank == 2 else 1
            if self.w * self.h <= MOST_ELEMENTS:
                break
        self.shape = (self.w,) if self.rank == 1 else (self.h, self.w)
        self.grid = (r.choice([1, 2, 3]), r.choice([1, 2]) if self.rank == 2 else 1)

    def name(self, of):
        self.n += 1
        return f"{of}{self.n}"

    # ---- arrays ----
    def data(self, t, shape, most=None):
        if is_int(t):
            if most is None and self.r.random() < .3:
                i = np.iinfo(STORE[t])
                return self.np.integers(i.min, i.max, shape, STORE[t], endpoint=True)
            return self.np.integers(0 if t[0] == "u" else -(most or 9), (most or 9) + 1, shape).astype(STORE[t])
        return self.np.integers(-(most or 9), (most or 9) + 1, shape).astype(STORE[t])

    def extent(self, whole):
        """Of an axis that whole elements would cover."""
        r = self.r
        return max(0 if r.random() < .01 else 1, r.choice([whole, whole, whole + 3, whole - 1, whole - r.randrange(1, whole + 1), whole + r.randrange(40), whole + 64]))

    def view(self, t, extents, out=False, most=None):
        name = self.name("y" if out else "x")
        axes = [f"{name}_{k}" for k in range(len(extents))]
        array = self.data(t, extents, most)
        if len(extents) == 2 and self.r.random() < .08:
            array, axes = np.asfortranarray(array), [f"{axes[0]} : 1", f"{axes[1]} : {name}_ld"]
            self.used.add("column-major")
        elif len(extents) > 1 and self.r.random() < .15:
            full = np.zeros((*extents[:-1], extents[-1] + self.r.choice([1, 4, 13])), array.dtype)
            full[..., :extents[-1]] = array
            array = full[..., :extents[-1]]
            if len(extents) == 2:
                axes[0] += f" : {name}_ld"
            else:
                axes = [f"{a} : {name}_s{k}" for k, a in enumerate(axes)]
            self.used.add("row stride")
        self.params.append(f"{'' if out else 'const '}{t} {name}[{', '.join(axes)}]")
        self.arrays[name] = array
        if out:
            self.outs.append(name)
        return name

    def scalar(self, t, value):
        name = self.name("n")
        self.params.append(f"{t} {name}")
        self.scalars[name] = value
        return name

    # ---- where a program is ----
    def starts(self, scale=1):
        """(texts, of pid) of the start of the program's block."""
        if self.rank == 1:
            return [f"pid(0) * {self.w * scale}"], lambda p: [p[0] * self.w * scale]
        return [f"pid(1) * {self.h}", f"pid(0) * {self.w * scale}"], lambda p: [p[1] * self.h, p[0] * self.w * scale]

    def covered(self, scale=1):
        return [self.grid[0] * self.w * scale] if self.rank == 1 else [self.grid[1] * self.h, self.grid[0] * self.w * scale]

    def value(self, text, t, shape, run, most=0):
        """A variable with that value; floats that have become large are clamped."""
        v = V(text, t, shape, run, most)
        if not is_int(t) and t != "bool" and most > EXACT[t] / 16:
            m = SMALL[t]
            v = V(f"clamp({text}, -{m}, {m})", t, shape, lambda e, p: np.clip(run(e, p), -m, m), m)
        return v

    # ---- loads ----
    def most_of(self, t):
        return 0 if is_int(t) else 9

    def plain(self, t, shape=None, offsets=None):
        """A slice at the program's block, moved, with a step, a pad, a border or neither."""
        r, shape = self.r, shape or self.shape
        step = r.choice([1, 1, 1, 1, 2, 3])
        name = self.view(t, [self.extent(n) for n in self.covered(step)])
        texts, at = self.starts(step)
        off = offsets or [r.choice([0, 0, 0, 1, -1, 2, -3, 7]) for _ in shape]
        border, pad = r.choice([None, None, None, *BORDER]), r.choice([0, 0, 5])
        parts = [f"{s}{f' + {o}' if o > 0 else f' - {-o}' if o else ''} +: {w}{f' : {step}' if step > 1 and k == len(shape) - 1 else ''}"
                 for k, (s, o, w) in enumerate(zip(texts, off, shape))]
        text = f"{name}[{', '.join(parts)}]"
        if border:
            text = f"load({text}, border = {border})"
        elif pad:
            text = f"load({text}, pad = {pad})"
        self.used.add(f"slice, border {border}" if border else "slice, step" if step > 1 else "slice")
        steps = [1] * (len(shape) - 1) + [step]

        def run(e, p):
            x, s = e[name], [a + o for a, o in zip(at(p), off)]
            return taken(x, s, shape, steps, border, pad)
        return self.value(text, t, shape, run, self.most_of(t))

    def taps(self, t):
        """A sum of weighted taps with one border."""
        r = self.r
        name = self.view(t, [self.extent(n) for n in self.covered()])
        texts, at = self.starts()
        border, count = r.choice([None, *BORDER]), r.choice([2, 3, 3, 5, 9])
        taps = [([r.randrange(-2, 3) for _ in self.shape], r.choice([1, 1, 2, -1, 3])) for _ in range(count)]
        words = []
        for off, weight in taps:
            place = f"{name}[{', '.join(f'{s} + {o} +: {w}' if o >= 0 else f'{s} - {-o} +: {w}' for s, o, w in zip(texts, off, self.shape))}]"
            place = f"load({place}, border = {border})" if border else place
            words.append(place if weight == 1 else f"{place} * {weight}" if weight > 0 or t[0] != "u" else f"{place} * {256 + weight if t == 'u8' else 7}")
        weights = [w if w > 0 or t[0] != "u" else 256 + w if t == "u8" else 7 for _, w in taps]
        self.used.add("taps")

        def run(e, p):
            total = np.zeros(self.shape, STORE[t])
            for (off, _), weight in zip(taps, weights):
                total = total + taken(e[name], [a + o for a, o in zip(at(p), off)], self.shape, [1] * len(self.shape), border) * STORE[t](weight)
            return total.astype(STORE[t])
        return self.value(" + ".join(words), t, self.shape, run, 9 * sum(abs(w) for w in weights))

    def index(self, n, axis_start, width, p_axis):
        """(text, of (e, p)) of a vector of positions along an extent of n."""
        r = self.r
        i = f"({axis_start} + iota({width}))"
        base = lambda p: p_axis(p) + np.arange(width)  # noqa: E731
        k = r.randrange(10)
        c = r.randrange(-3, 6)
        forms = [(i, base), (f"{i} / {c + 4}", lambda p: base(p) // (c + 4)), (f"{i} * 2 + {c & 1}", lambda p: base(p) * 2 + (c & 1)),
                 (f"clamp({i} + {c}, 0, {n} - 1)", lambda p, n=n: np.minimum(np.maximum(base(p) + c, 0), self.runtime(n) - 1)),
                 (f"({i} + {abs(c)}) % {n}", lambda p, n=n: (base(p) + abs(c)) % max(self.runtime(n), 1)),
                 (f"{n} - 1 - {i}", lambda p, n=n: self.runtime(n) - 1 - base(p)), (f"({i} ^ 1)", lambda p: base(p) ^ 1),
                 (f"max({i} - {abs(c)}, 0)", lambda p: np.maximum(base(p) - abs(c), 0)), (f"{i} / 2 + {i} % 2", lambda p: base(p) // 2 + base(p) % 2)]
        if k < 9:
            return forms[k]
        table = self.view("i32", [self.covered()[-1]], most=40)
        return f"{table}[{axis_start} +: {width}]", lambda p: window(self.memory[table], [p_axis(p)], [width], [1])[0]

    def runtime(self, extent):
        """An extent by its name."""
        name, axis = extent.rsplit("_", 1)
        return self.arrays[name].shape[int(axis)]

    def by_index(self, t):
        """Through index tiles along one axis or both."""
        r = self.r
        name = self.view(t, [self.extent(n) for n in self.covered(r.choice([1, 1, 2]))])
        texts, at = self.starts()
        border = r.choice([None, None, None, "edge"])
        last = self.index(f"{name}_{self.rank - 1}", texts[-1], self.w, lambda p: at(p)[-1])
        if self.rank == 1:
            text, places = f"{name}[{last[0]}]", lambda p: [last[1](p)]
        elif r.random() < .5:
            text, places = f"{name}[{texts[0]} +: {self.h}, {last[0]}]", lambda p: [at(p)[0] + np.arange(self.h)[:, None], last[1](p)[None, :]]
        else:
            first = self.index(f"{name}_0", texts[0], self.h, lambda p: at(p)[0])
            if r.random() < .5:
                text = f"{name}[{first[0]}, {last[0]}]"
            else:
                text = f"{name}[col({first[0]}) + row(iota({self.w})) * 0, row({last[0]}) + 0 * col(iota({self.h}))]"
                self.used.add("points")
            places = lambda p: [first[1](p)[:, None], last[1](p)[None, :]]  # noqa: E731
        if border:
            text = f"load({text}, border = {border})"
        self.used.add("index tiles")

        def run(e, p):
            x = e[name]
            i = [np.asarray(v, np.int64) for v in np.broadcast_arrays(*places(p))]
            if 0 in x.shape:
                return np.zeros(self.shape, x.dtype)
            if border:
                return x[tuple(BORDER[border](v, n) for v, n in zip(i, x.shape))]
            ok = np.logical_and.reduce([(v >= 0) & (v < n) for v, n in zip(i, x.shape)])
            return np.where(ok, x[tuple(np.clip(v, 0, n - 1) for v, n in zip(i, x.shape))], x.dtype.type(0))
        return self.value(text, t, self.shape, run, self.most_of(t))

    def channels(self, t):
        """A weighted sum of channels, or a field of records."""
        r = self.r
        c = r.choice([2, 3, 3, 4, 5])
        name = self.view(t, [self.extent(n) for n in self.covered()] + [c])
        texts, at = self.starts()
        part = ", ".join(f"{s} +: {w}" for s, w in zip(texts, self.shape))
        picked = [(k, r.choice([1, 2, 3])) for k in range(c) if r.random() < .6] or [(0, 1)]
        self.used.add("channels")

        def run(e, p):
            got = sum(taken(e[name], at(p) + [k], (*self.shape, 1), [1] * (self.rank + 1))[..., 0] * STORE[t](w) for k, w in picked)
            return np.asarray(got).astype(STORE[t])
        whole = r.random()
        if whole < .25 and not is_int(t):
            text = f"sum({name}[{part}, 0 +: {c}], axis = {self.rank})"
            self.used.add("channels, summed")
            return self.value(text, t, self.shape, lambda e, p: taken(e[name], at(p) + [0], (*self.shape, c), [1] * (self.rank + 1)).sum(-1).astype(STORE[t]), 9 * c)
        return self.value(" + ".join(f"{name}[{part}, {k}]{f' * {w}' if w > 1 else ''}" for k, w in picked), t, self.shape, run, 30 * c)

    def vectors(self, t):
        """A row or a column, in all rows or columns."""
        if self.rank == 1:
            return self.plain(t)
        r, (texts, at) = self.r, self.starts()
        k = r.randrange(2)
        name = self.view(t, [self.extent(self.covered()[k])])
        self.used.add("row" if k else "column")

        def run(e, p):
            x = window(e[name], [at(p)[k]], [self.shape[k]], [1])[0]
            return np.broadcast_to(x[None, :] if k else x[:, None], self.shape)
        return self.value(f"broadcast({'row' if k else 'col'}({name}[{texts[k]} +: {self.shape[k]}]), {self.h}, {self.w})", t, self.shape, run, self.most_of(t))

    def reduced(self, t):
        """A longer load, reduced to the block."""
        r, (texts, at) = self.r, self.starts()
        k, axis = r.choice([2, 3, 4, 8, 5]), r.randrange(self.rank + 1)
        shape = [*self.shape[:axis], k, *self.shape[axis:]]
        if np.prod(shape) > 2 * MOST_ELEMENTS or (is_int(t) and t not in ("i32", "u32", "i64")):
            return self.plain(t)
        extents = self.covered()
        extents.insert(axis, r.choice([k, k + 1]))
        name = self.view(t, [max(1, n - r.choice([0, 0, 1])) for n in extents])
        parts = [f"{s} +: {n}" for s, n in zip(texts[:axis] + ["0"] + texts[axis:], shape)]
        word, f = r.choice([("sum", np.sum), ("max", np.max), ("min", np.min)])
        self.used.add("reduction of a third axis")
        return self.value(f"{word}({name}[{', '.join(parts)}], axis = {axis})", t, self.shape,
                          lambda e, p: f(taken(e[name], at(p)[:axis] + [0] + at(p)[axis:], shape, [1] * len(shape)), axis).astype(STORE[t]), 9 * k)

    def product(self, t):
        """A product, its operands by rows or columns, in a loop or at once."""
        r = self.r
        sums = {"f32": ("f32", "f32"), "f16": ("f16", "f32"), "i32": ("i8", "i32"), "f64": ("f64", "f64")}.get(t)
        if self.rank == 1 or not sums or self.h * self.w > 2048:
            return self.plain(t)
        of, to_ = sums
        k, trips = r.choice([1, 3, 8, 16, 16, 32, 33, 64]), r.choice([1, 1, 2, 3])
        inner = max(1, k * trips - r.choice([0, 0, 1, 2]))
        turned = [r.random() < .4, r.random() < .4]
        extents = [[self.extent(self.covered()[0]), inner], [inner, self.extent(self.covered()[1])]]
        a, b = [self.view(of, x[::-1] if turned[i] else x, most=2) for i, x in enumerate(extents)]
        (m, n), at = self.starts()
        acc, i = self.name("v"), self.name("k")
        pa, pb = f"{m} +: {self.h}", f"{n} +: {self.w}"
        kk = f"{i} * {k} +: {k}"
        ta = f"trans({a}[{kk}, {pa}])" if turned[0] else f"{a}[{pa}, {kk}]"
        tb = f"trans({b}[{pb}, {kk}])" if turned[1] else f"{b}[{kk}, {pb}]"
        bound = self.scalar("i32", trips) if r.random() < .5 else trips
        self.lines += [f"tile<{to_}, {self.h}, {self.w}> {acc} = 0;",
                       f"for (int {i} : range({bound})){r.choice(['', '', ' pipeline', ' pipeline(3)', ' unroll(2)'])}", f"    {acc} = dot({ta}, {tb}, {acc});"]
        self.used.add(f"product of {of}")

        def run(e, p):
            x, y = (e[v].T if q else e[v] for v, q in zip((a, b), turned))
            s = at(p)
            w = np.float64 if of[0] == "f" else np.int64
            return (taken(x, [s[0], 0], (self.h, k * trips), (1, 1)).astype(w) @ taken(y, [0, s[1]], (k * trips, self.w), (1, 1)).astype(w)).astype(STORE[to_])
        v = V(acc, to_, self.shape, run, 4 * k * trips)
        return self.value(f"cast({acc}, {t})", t, self.shape, lambda e, p: run(e, p).astype(STORE[t]), v.most) if to_ != t else self.value(acc, t, self.shape, run, v.most)

    def loop(self, t):
        """A loop that adds rows, columns or taps to what it carries."""
        r, (texts, at) = self.r, self.starts()
        name = self.view(t, [self.extent(n) for n in self.covered()])
        lo, hi, axis = r.randrange(-4, 1), r.randrange(1, 7), r.randrange(self.rank)
        border = r.choice([None, None, *BORDER])
        acc, i, word = self.name("v"), self.name("k"), r.choice(["static for", "for", "for", "for"])
        parts = [f"{s}{f' + {i}' if k == axis else ''} +: {w}" for k, (s, w) in enumerate(zip(texts, self.shape))]
        place = f"{name}[{', '.join(parts)}]"
        place = f"load({place}, border = {border})" if border else place
        op, f = r.choice([("{0} + {1}", lambda x, y: x + y), ("max({0}, {1})", np.maximum), ("min({0}, {1} + 1)", lambda x, y: np.minimum(x, y + y.dtype.type(1))),
                          ("{1} - {0}", lambda x, y: y - x), ("{0} * 2 + {1}", lambda x, y: x * x.dtype.type(2) + y)])
        end = self.scalar("i32", hi) if word == "for" and r.random() < .5 else hi
        self.lines += [f"{tile_of(t, self.shape)} {acc};", f"{word} (int {i} : range({lo}, {end}))", f"    {acc} = {op.format(acc, place)};"]
        self.used.add("carried tile")

        def run(e, p):
            v = np.zeros(self.shape, STORE[t])
            for j in range(lo, hi):
                s = at(p)
                s[axis] += j
                v = f(v, taken(e[name], s, self.shape, [1] * self.rank, border)).astype(STORE[t])
            return v
        return self.value(acc, t, self.shape, run, 10 * 2 ** (hi - lo))

    def rolling(self, t):
        """Rows that one trip loads and the next ones use again."""
        r, (texts, at) = self.r, self.starts()
        if self.rank == 1:
            return self.loop(t)
        rows = r.choice([2, 5, 7])
        name = self.view(t, [self.extent(self.covered()[0] + rows), self.extent(self.covered()[1])])
        acc, last, i, cur = self.name("v"), self.name("v"), self.name("k"), self.name("v")
        border = r.choice([None, "edge", "reflect"])

        def place(extra):
            s = f"{name}[{texts[0]} + {extra} +: {self.h}, {texts[1]} +: {self.w}]"
            return f"load({s}, border = {border})" if border else s
        self.lines += [f"auto {last} = {place(0)};", f"{tile_of(t, self.shape)} {acc};", f"for (int {i} : range(1, {rows})) {{", f"    auto {cur} = {place(i)};",
                       f"    {acc} = max({acc}, {cur} - {last});", f"    {last} = {cur};", "}"]
        self.used.add("rolling rows")

        def run(e, p):
            y, x = at(p)
            v, before = np.zeros(self.shape, STORE[t]), None
            for j in range(rows):
                now = taken(e[name], [y + j, x], self.shape, (1, 1), border)
                if j:
                    v = np.maximum(v, (now - before).astype(STORE[t]))
                before = now
            return v
        return self.value(acc, t, self.shape, run, 20)

    def steps_of(self, t):
        """Lanes that end at different times."""
        if t not in ("i32", "u32", "f32", "i64"):
            return self.plain(t)
        v, n, count = self.plain("i32"), self.name("v"), self.name("v")
        self.lines += [f"auto {n} = ({v.text}) & 63;", f"{tile_of('i32', self.shape)} {count};", f"while (any({n} > 1)) {{",
                       f"    auto on = {n} > 1;", f"    {count} += on ? 1 : 0;", f"    {n} = on ? ({n} % 2 == 0 ? {n} / 2 : ({n} + 1) / 2 + {n} % 3) : {n};", f"    if (max({count}) >= 40) break;", "}"]
        self.used.add("while any")

        def run(e, p):
            x, c = (v.run(e, p) & 63).astype(np.int32), np.zeros(self.shape, np.int32)
            while np.any(x > 1):
                on = x > 1
                c += on
                x = np.where(on, np.where(x % 2 == 0, x // 2, (x + 1) // 2 + x % 3), x)
                if c.max() >= 40:
                    break
            return c.astype(STORE[t])
        return self.value(count if t == "i32" else f"cast({count}, {t})", t, self.shape, run, 40)

    def halved(self, t):
        """Every second row and column, several of them together: a level of a pyramid."""
        r = self.r
        name = self.view(t, [self.extent(2 * n) for n in self.covered()])
        (texts, at), border = self.starts(), r.choice([None, None, *BORDER])
        taps = [([r.randrange(-2, 3) for _ in self.shape], r.choice([1, 2, 3])) for _ in range(r.choice([1, 2, 4, 6]))]

        def place(off):
            s = f"{name}[{', '.join(f'2 * ({s}) + {o} +: {w} : 2' if o >= 0 else f'2 * ({s}) - {-o} +: {w} : 2' for s, o, w in zip(texts, off, self.shape))}]"
            return f"load({s}, border = {border})" if border else s
        self.used.add("every second")

        def run(e, p):
            return sum(taken(e[name], [2 * a + o for a, o in zip(at(p), off)], self.shape, [2] * self.rank, border) * STORE[t](w) for off, w in taps).astype(STORE[t])
        return self.value(" + ".join(f"{place(off)} * {w}" if w > 1 else place(off) for off, w in taps), t, self.shape, run, 9 * sum(w for _, w in taps))

    def two_stages(self, t):
        """Sums along rows, of which the block's rows take several: a separable filter."""
        r, (texts, at) = self.r, self.starts()
        if self.rank == 1:
            return self.taps(t)
        k, border, stage = r.choice([1, 2, 3]), r.choice([None, "edge", "reflect"]), self.name("v")
        name = self.view(t, [self.extent(n) for n in self.covered()])
        across, down = [r.choice([1, 1, 2]) for _ in range(r.choice([2, 3, 5]))], [r.choice([1, 1, 2]) for _ in range(2 * k + 1)]

        def place(dx):
            s = f"{name}[{texts[0]} - {k} +: {self.h + 2 * k}, {texts[1]} + {dx} +: {self.w}]"
            return f"load({s}, border = {border})" if border else s
        self.lines.append(f"auto {stage} = {' + '.join(f'{place(dx)} * {w}' for dx, w in enumerate(across))};")
        self.used.add("two stages")

        def run(e, p):
            y, x = at(p)
            s = sum(taken(e[name], [y - k, x + dx], (self.h + 2 * k, self.w), (1, 1), border) * STORE[t](w) for dx, w in enumerate(across)).astype(STORE[t])
            return sum(s[dy:dy + self.h] * STORE[t](w) for dy, w in enumerate(down)).astype(STORE[t])
        text = " + ".join(f"extract({stage}, {dy} +: {self.h}, 0 +: {self.w}) * {w}" for dy, w in enumerate(down))
        return self.value(text, t, self.shape, run, 9 * sum(across) * sum(down))

    def matrix_vector(self, t):
        """A matrix times a vector, by products and sums of parts."""
        r = self.r
        kinds = {"f32": "f32", "f64": "f64", "i32": "i32", "i64": "i64"}
        if self.rank == 2 or t not in kinds or self.w > 256:
            return self.plain(t)
        of = r.choice(["f16", "f32"]) if t == "f32" else "i8" if t == "i32" and r.random() < .6 else t
        k, trips, by_rows = r.choice([4, 8, 16, 32, 33, 64]), r.choice([1, 2, 3, 5]), r.random() < .6
        if k * self.w > 2 * MOST_ELEMENTS:
            k = 4
        inner, n = max(1, k * trips - r.choice([0, 0, 1, 3])), self.extent(self.covered()[0])
        a, x = self.view(of, [n, inner] if by_rows else [inner, n], most=3), self.view(of, [inner], most=3)
        (start,), at = self.starts()
        acc, i = self.name("v"), self.name("k")
        part, here = f"{i} * {k} +: {k}", f"{start} +: {self.w}"
        wide_ = (lambda s: s) if of == t else lambda s: f"cast({s}, {t})"
        terms = f"{wide_(f'{a}[{here}, {part}]')} * row({wide_(f'{x}[{part}]')})" if by_rows else f"{wide_(f'{a}[{part}, {here}]')} * col({wide_(f'{x}[{part}]')})"
        if by_rows and of == "i8" and k % 4 == 0 and r.random() < .6:
            terms = f"sum(reshape({terms}, {self.w}, {k // 4}, 4), axis = 2)"
            self.used.add("sums of four bytes")
        self.lines += [f"tile<{t}, {self.w}> {acc};", f"for (int {i} : range({trips}))", f"    {acc} += sum({terms}, axis = {1 if by_rows else 0});"]
        self.used.add("matrix times vector" + (" by rows" if by_rows else ""))

        def run(e, p):
            s, m = at(p)[0], e[a] if by_rows else e[a].T
            return (taken(m, [s, 0], (self.w, k * trips), (1, 1)).astype(wide(t)) @ taken(e[x], [0], (k * trips,), (1,)).astype(wide(t))).astype(STORE[t])
        return self.value(acc, t, self.shape, run, 10 * k * trips)

    LOADS = ["plain", "plain", "taps", "taps", "by_index", "by_index", "channels", "vectors", "reduced", "product", "loop", "rolling", "steps_of", "converted",
             "halved", "two_stages", "matrix_vector"]

    def converted(self, t):
        """From another type of memory."""
        of = self.r.choice([u for u in TYPES if u != t])
        v = self.load(of)
        if not is_int(of) or is_int(t):
            return self.value(f"cast({v.text}, {t})", t, self.shape, lambda e, p: to(v.run(e, p), t), v.most)
        return self.value(f"cast({v.text} & 15, {t})", t, self.shape, lambda e, p: (v.run(e, p) & 15).astype(STORE[t]), 15)

    def load(self, t):
        word = self.r.choice(self.LOADS)
        while word == "converted" and self.n > 12:
            word = self.r.choice(self.LOADS)
        v = getattr(self, word)(t)
        name = self.name("v")
        self.lines.append(f"auto {name} = {v.text};")
        return V(name, t, v.shape, v.run, v.most)

    # ---- what is done with values ----
    def moved(self, v):
        r, t, s = self.r, v.type, v.shape
        axis = r.randrange(len(s))
        n = s[axis]
        k = r.randrange(9)
        d = r.randrange(-n, n + 1) if n < 9 else r.choice([1, -1, 2, -3, 8, n // 2, -n + 1])
        last = s[-1]

        def out(text, f, most=v.most, name=None):
            self.used.add(name or text.split("(")[0])
            return self.value(text, t, s, lambda e, p: f(v.run(e, p)), most)
        if k == 0:
            return out(f"shift({v.text}, {axis}, {d}, 3)", lambda x: shifted(x, axis, d, 3))
        if k == 1:
            return out(f"roll({v.text}, {axis}, {d})", lambda x: np.roll(x, d, axis))
        if k == 2:
            return out(f"flip({v.text}, {axis})", lambda x: np.flip(x, axis))
        if k == 3 and last % 2 == 0:
            half = (*s[:-1], last // 2)
            cut = ", ".join(f"0 +: {m}" for m in s[:-1])
            cut += ", " if cut else ""
            a, b = (f"extract({v.text}, {cut}{o} +: {last // 2})" for o in (0, last // 2))
            return out(f"interleave({a}, {b})", lambda x: np.stack([x[..., :half[-1]], x[..., half[-1]:]], -1).reshape(s))
        if k == 4 and last % 2 == 0:
            p, q = self.name("v"), self.name("v")
            self.lines.append(f"auto ({p}, {q}) = split(reshape({v.text}, {', '.join(map(str, (*s[:-1], last // 2, 2)))}));")
            return out(f"cat({q}, {p}, {len(s) - 1})", lambda x: np.concatenate([x[..., 1::2], x[..., ::2]], -1))
        if k == 5:
            full = int(np.prod(s))
            cuts = [c for c in (2, 3, 4, 5, 8, 16, 32) if full % c == 0] or [1]
            c = r.choice(cuts)
            return out(f"reshape(trans(reshape({v.text}, {c}, {full // c})), {', '.join(map(str, s))})", lambda x: x.reshape(c, full // c).T.reshape(s), name="trans of reshape")
        if k == 6 and n > 1:
            c = r.randrange(1, n)
            parts = [", ".join(f"{lo if i == axis else 0} +: {w if i == axis else m}" for i, m in enumerate(s)) for lo, w in ((c, n - c), (0, c))]
            return out(f"cat(extract({v.text}, {parts[0]}), extract({v.text}, {parts[1]}), {axis})", lambda x: np.roll(x, -c, axis))
        if k == 7 and n % 2 == 0:
            part = ", ".join(f"0 +: {m // 2 if i == axis else m}" for i, m in enumerate(s))
            return out(f"repeat(extract({v.text}, {part}), {axis}, 2)", lambda x: np.repeat(np.take(x, range(n // 2), axis), 2, axis))
        word, f = r.choice([("cumsum", np.cumsum), ("cummax", np.maximum.accumulate)])
        if word == "cumsum" and (n > 512 or t not in ("i32", "u32", "i64", "f32", "f64")):
            word, f = "cummax", np.maximum.accumulate
        back = r.random() < .4
        return out(f"{word}({v.text}, axis = {axis}{', reverse = true' if back else ''})",
                   lambda x: (np.flip(f(np.flip(x, axis), axis), axis) if back else f(x, axis)).astype(STORE[t]), v.most * (n if word == "cumsum" else 1))

    def back(self, v):
        """With a reduction of itself."""
        r, t, s = self.r, v.type, v.shape
        axis = r.randrange(len(s))
        word, f = r.choice([("max", np.max), ("min", np.min), ("sum", np.sum)])
        if word == "sum" and is_int(t) and t not in ("i32", "u32", "i64"):
            word, f = "max", np.max
        self.used.add(f"{word} of itself")
        return self.value(f"{v.text} - {word}({v.text}, axis = {axis}, keep = true)", t, s, lambda e, p: (lambda x: (x - f(x, axis, keepdims=True).astype(x.dtype)).astype(x.dtype))(v.run(e, p)),
                          v.most * (s[axis] + 1 if word == "sum" else 2))

    def combined(self, a, b):
        t, s, r = a.type, self.shape, self.r
        k = r.randrange(8)
        x = lambda f: lambda e, p: f(a.run(e, p), b.run(e, p)).astype(STORE[t])  # noqa: E731
        if k < 2:
            return self.value(f"{a.text} + {b.text}", t, s, x(lambda u, v: u + v), a.most + b.most)
        if k == 2:
            return self.value(f"{a.text} - {b.text} * 2", t, s, x(lambda u, v: u - v * v.dtype.type(2)), a.most + 2 * b.most)
        if k == 3:
            return self.value(f"{a.text} * {b.text}", t, s, x(lambda u, v: u * v), a.most * b.most)
        if k == 4:
            return self.value(f"max({a.text}, {b.text})", t, s, x(np.maximum), max(a.most, b.most))
        if k == 5:
            return self.value(f"{a.text} > {b.text} ? {a.text} : {b.text} + 1", t, s, x(lambda u, v: np.where(u > v, u, v + v.dtype.type(1))), max(a.most, b.most) + 1)
        if k == 6 and is_int(t):
            return self.value(f"({a.text} >> 1) ^ {b.text}", t, s, x(lambda u, v: (u >> u.dtype.type(1)) ^ v))
        return self.value(f"min(abs({a.text} - {b.text}), 50)" if t[0] != "u" else f"min({a.text}, {b.text})", t, s,
                          x(np.minimum if t[0] == "u" else lambda u, v: np.minimum(np.abs(u - v), u.dtype.type(50))), a.most + b.most)

    def finished(self, v):
        """Of a float, something that is not exact: what is stored is near it."""
        r, t = self.r, v.type
        axis = r.randrange(len(v.shape))
        a, along = v.text, f"axis = {axis}, keep = true"
        name = self.name("v")
        low = self.name("v")

        def rows(x):
            x = np.exp(x - x.max(axis, keepdims=True))
            return x / x.sum(axis, keepdims=True)

        def norm(x):
            d = x - x.mean(axis, keepdims=True)
            return d / np.sqrt((d * d).mean(axis, keepdims=True) + 1)
        n = v.shape[axis]
        forms = {"softmax": ([f"auto {low} = {a} * 0.125;", f"auto {name} = exp({low} - max({low}, {along}));"], f"{name} / sum({name}, {along})", lambda x: rows(x / 8)),
                 "norm": ([f"auto {low} = {a} - sum({a}, {along}) / {n};", f"auto {name} = sum({low} * {low}, {along}) / {n};"], f"{low} * rsqrt({name} + 1)", norm),
                 "sigmoid": ([], f"sigmoid({a} * 0.0625)", lambda x: 1 / (1 + np.exp(-x / 16))), "sqrt": ([], f"sqrt(abs({a}))", lambda x: np.sqrt(np.abs(x))),
                 "quotient": ([], f"{a} / (abs({a}) + 3)", lambda x: x / (np.abs(x) + 3)), "tanh": ([], f"tanh({a} * 0.03125)", lambda x: np.tanh(x / 32))}
        word = r.choice(list(forms))
        lines, text, f = forms[word]
        self.lines += lines
        self.used.add(f"ends in {word}")
        return V(text, t, v.shape, lambda e, p: f(v.run(e, p).astype(np.float64)).astype(STORE[t]), v.most)

    # ---- stores ----
    def store(self, v):
        r, t, (texts, at) = self.r, v.type, self.starts()
        k = r.randrange(9)
        if t == "f32" and v.most <= 2000 and k < 5 and r.random() < .5:
            v, self.exact = self.finished(v), False
        if k < 3:
            name = self.view(t, [self.extent(n) for n in self.covered()], True)
            word = " +=" if r.random() < .2 and t not in ("f16",) else " ="
            if not is_int(t) and word == " +=":
                v = self.value(v.text, t, v.shape, v.run, v.most)
            self.lines.append(f"{name}[{', '.join(f'{s} +: {w}' for s, w in zip(texts, self.shape))}]{word} {v.text};")
            self.used.add("store" + word)
            return lambda e, p: put(e[name], at(p), [1] * self.rank, v.run(e, p), word == " +=")
        if k == 3:
            name = self.view(t, [self.extent(n) for n in self.covered(2)], True)
            texts, at = self.starts(2)
            o = r.randrange(2)
            self.lines.append(f"{name}[{', '.join(f'{s} +: {w}' for s, w in zip(texts[:-1], self.shape))}{', ' if self.rank > 1 else ''}{texts[-1]} + {o} +: {self.w} : 2] = {v.text};")
            self.used.add("store, step")
            return lambda e, p: put(e[name], [*at(p)[:-1], at(p)[-1] + o], [1] * (self.rank - 1) + [2], v.run(e, p))
        if k == 4:
            c = r.choice([2, 3, 4])
            name = self.view(t, [self.extent(n) for n in self.covered()] + [c], True)
            values = [v] + [self.value(f"{v.text} + {i}", t, v.shape, lambda e, p, i=i: v.run(e, p) + STORE[t](i), v.most + i) for i in range(1, c)]
            order = r.sample(range(c), r.randrange(1, c + 1))
            for i in order:
                self.lines.append(f"{name}[{', '.join(f'{s} +: {w}' for s, w in zip(texts, self.shape))}, {i}] = {values[i].text};")
            self.used.add("store, channels")
            return lambda e, p: [put(e[name], at(p) + [i], [1] * (self.rank + 1), values[i].run(e, p)[..., None]) for i in order] and None
        if k == 5:
            n = self.covered()[-1]
            name = self.view(t, [self.extent(m) for m in self.covered()[:-1]] + [max(1, n - r.choice([0, 0, 1, 5]))], True)
            head = f"{texts[0]} +: {self.h}, " if self.rank > 1 else ""
            self.lines.append(f"{name}[{head}{name}_{self.rank - 1} - 1 - ({texts[-1]} + iota({self.w}))] = {v.text};")
            self.used.add("store, backwards")
            return lambda e, p: put(e[name], [*at(p)[:-1], e[name].shape[-1] - at(p)[-1] - self.w], [1] * self.rank, np.flip(v.run(e, p), -1))
        if k == 6 and self.rank == 2:
            name = self.view(t, [self.extent(n) for n in self.covered()[::-1]], True)
            self.lines.append(f"{name}[{texts[1]} +: {self.w}, {texts[0]} +: {self.h}] = trans({v.text});")
            self.used.add("store, transposed")
            return lambda e, p: put(e[name], at(p)[::-1], [1, 1], v.run(e, p).T)
        if k == 7:
            bins = r.choice([4, 16, 37, 256])
            name = self.view("i32", [bins], True)
            index = V(f"cast({v.text}, i32)", "i32", v.shape, lambda e, p: to(v.run(e, p), "i32")) if t != "i32" else v
            mask = r.choice([3, 15, 63, 255])
            if r.random() < .5 and len(v.shape) == 1:
                self.lines.append(f"atomic_add({name}[0 +: {bins}], histogram({index.text} & {mask}, {bins}));")
            else:
                self.lines.append(f"atomic_add({name}[{index.text} & {mask}], 1);")
            self.used.add("histogram")

            def count(e, p):
                i = (index.run(e, p) & mask).reshape(-1)
                np.add.at(e[name], i[i < bins], 1)
            return count
        axis = r.randrange(self.rank)
        word, f = r.choice([("max", np.max), ("sum", np.sum), ("argmax", np.argmax), ("min", np.min)])
        if word == "sum" and is_int(t) and t not in ("i32", "u32", "i64"):
            word, f = "max", np.max
        if self.rank == 1:
            name = self.view("i32" if word == "argmax" else t, [self.extent(self.grid[0])], True)
            self.lines.append(f"{name}[pid(0)] = {word}({v.text}, axis = 0);")
            where = lambda p: [p[0]]  # noqa: E731
            shape = (1,)
        else:
            left = self.shape[1 - axis]
            rows = self.grid[0] if axis else self.grid[1]
            name = self.view("i32" if word == "argmax" else t, [self.extent(rows), self.extent(self.covered()[1 - axis])], True)
            self.lines.append(f"{name}[pid({0 if axis else 1}), {texts[1 - axis]} +: {left}] = {word}({v.text}, axis = {axis});")
            where = lambda p: [p[0] if axis else p[1], at(p)[1 - axis]]  # noqa: E731
            shape = (1, left)
        self.used.add(f"store of {word}")
        return lambda e, p: put(e[name], where(p), [1] * len(shape), np.asarray(f(v.run(e, p), axis)).astype(e[name].dtype).reshape(shape))

    def program(self):
        """(text, arrays, scalars, names of what is written, run of (memory))."""
        r = self.r
        t = r.choice(TYPES)
        values = [self.load(t) for _ in range(r.choice([1, 1, 2, 2, 3]))]
        fresh = list(values)  # what nothing has taken yet

        def any_of():
            v = r.choice(fresh if fresh and r.random() < .7 else values)
            if v in fresh:
                fresh.remove(v)
            return v
        for _ in range(r.choice([0, 1, 2, 3, 5])):
            k = r.random()
            v = self.moved(any_of()) if k < .45 else self.back(any_of()) if k < .55 else self.combined(any_of(), any_of())
            if r.random() < .6:
                name = self.name("v")
                self.lines.append(f"auto {name} = {v.text};")
                v = V(name, v.type, v.shape, v.run, v.most)
            else:
                v = V(f"({v.text})", v.type, v.shape, v.run, v.most)
            values.append(v)
            fresh.append(v)
        stores = [self.store(v) for v in fresh] + [self.store(r.choice(values)) for _ in range(r.choice([0, 0, 0, 1]))]
        grid = f"grid({self.grid[0]}{f', {self.grid[1]}' if self.rank == 2 else ''})"
        text = f"kernel k({', '.join(self.params)}) {grid}\n{{\n" + "".join(f"    {line}\n" for line in self.lines) + "}\n"

        def run(memory):
            self.memory = memory
            for q in range(self.grid[1]):
                for p in range(self.grid[0]):
                    for s in stores:
                        s(memory, (p, q))
        return text, self.arrays, self.scalars, self.outs, run


def taken(x, starts, widths, steps, border=None, pad=0):
    if not border:
        return window(x, starts, widths, steps, pad)[0]
    if 0 in x.shape:
        return np.zeros(widths, x.dtype)
    index = [BORDER[border](s + np.arange(w) * k, n) for s, w, k, n in zip(starts, widths, steps, x.shape)]
    return x[np.ix_(*index)]


def put(y, starts, steps, v, add=False):
    index = [s + np.arange(w) * k for s, w, k in zip(starts, v.shape, steps)]
    ok = [(i >= 0) & (i < n) for i, n in zip(index, y.shape)]
    place = np.ix_(*[i[k] for i, k in zip(index, ok)])
    v = v[np.ix_(*ok)].astype(y.dtype)
    y[place] = y[place] + v if add else v


def shifted(x, axis, n, fill):
    i = np.arange(x.shape[axis]) - n
    got = np.take(x, np.clip(i, 0, x.shape[axis] - 1), axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    return np.where(((i >= 0) & (i < x.shape[axis])).reshape(shape), got, x.dtype.type(fill))
