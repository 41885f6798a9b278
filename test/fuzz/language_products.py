"""Random programs (language.py --products) of what Hopper does by products of warpgroups, bulk copies and producers of their own: loops of
products of 64 rows and more, whose operands are slices of arrays of any extents, transposed or not, loaded, computed or sums themselves; and of
products with scales of blocks, which Blackwell has."""
import numpy as np
from language_statements import Maker
from language_values import clamped, is_int, STORE, TABLE, tile_of, Value, window

SUMS = {"f16": "f32", "bf16": "f32", "f8e4m3": "f32", "f8e5m2": "f32", "i8": "i32", "u8": "i32"}
CODES = {t: [int(np.flatnonzero(TABLE[t] == x)[0]) for x in range(-2, 3)] for t in ("f8e4m3", "f8e5m2", "f4e2m1")}
ROWS, COLUMNS, STEPS = (64, 64, 128, 128, 192, 256), (16, 24, 32, 48, 64, 64, 96, 128, 128, 176, 256), (16, 32, 32, 64, 64, 128)
MOST_CELLS = 128 * 256
HINTS = (" pipeline", " pipeline", " pipeline(2)", " pipeline(4)", " specialize", " pipeline specialize", " pipeline specialize", "")


class Products(Maker):
    def few(self, t, shape):
        """-2 to 2 (u8: 0 to 3), as memory holds it."""
        if t in CODES:
            return np.array(CODES[t], np.uint8)[self.np.integers(0, 5, shape)]
        return self.np.integers(0 if t == "u8" else -2, 4 if t == "u8" else 3, shape).astype(STORE[t])

    def matrix(self, t, rows, columns, more):
        """(text of a slice by the starts of its rows and columns, run by the same) of a view of its own; more: what the view has beyond
        whole tiles, or lacks."""
        name, r = self.name("x"), self.r
        turned, extents = r.random() < .35, [max(n + m, 1) for n, m in zip((rows, columns), more)]
        array = self.few(t, extents[::-1] if turned else extents)
        if r.random() < .25:
            array = np.asfortranarray(array)
        strides = [" : 1", f" : {name}_ld"] if np.isfortran(array) else ["", ""]
        self.params.append(f"const {t} {name}[{', '.join(f'{name}_{k}{s}' for k, s in enumerate(strides))}]")
        self.arrays[name] = (t, array)
        seen = TABLE[t][array] if t in TABLE else array

        def text(at, widths):
            parts = [f"{a} +: {w}" for a, w in zip(at, widths)]
            return f"trans({name}[{parts[1]}, {parts[0]}])" if turned else f"{name}[{', '.join(parts)}]"

        def run(at, widths):
            return window(seen.T if turned else seen, at, widths, (1, 1))[0]
        return text, run

    def operand_of(self, t, text, run):
        """The slice, or something computed from it."""
        k = self.r.random()
        if k < .75 or t in TABLE:
            return text, run
        if k < .9:
            return f"({text} + {text})", lambda e: (lambda x: x + x)(run(e))
        return f"max({text}, 0)", lambda e: np.maximum(run(e), 0)

    def more(self, t):
        """Beyond whole tiles: nothing, what keeps rows aligned, anything."""
        unit = 16 if len(t) > 4 or t[1:] == "8" else 8
        return self.r.choice([0, 0, unit, 3 * unit, -unit, -unit, 5, -3])

    def one_product(self, i, acc, t, m, n, k, trips):
        """(lines, step) of acc = dot(a, b, acc) at trip i, and perhaps another product of the same operand."""
        a_text, a_run = self.matrix(t, m * self.programs, k * trips, (self.more(t), self.more(t)))
        ends = self.more(t)
        first = self.operand_of(t, a_text((f"pid(0) * {m}", f"{i} * {k}"), (m, k)), lambda e: a_run((e["pid"] * m, e[i] * k), (m, k)))
        lines, others = [], []
        for name in acc:
            b_text, b_run = self.matrix(t, k * trips, n, (ends, self.more(t)))
            others.append(self.operand_of(t, b_text((f"{i} * {k}", "0"), (k, n)), lambda e, b_run=b_run: b_run((e[i] * k, 0), (k, n))))
            lines.append(f"{name} = dot({first[0]}, {others[-1][0]}, {name});")

        def step(e):
            wide = np.int64 if is_int(t) else np.float64
            for name, (_, run) in zip(acc, others):
                e[name] = (e[name] + first[1](e).astype(wide) @ run(e).astype(wide)).astype(e[name].dtype)
        return lines, step

    def attention(self, i, acc, t, m, n, k, trips):
        """(lines, step) of two products at trip i, the second of the first."""
        q_text, q_run = self.matrix(t, m * self.programs, k, (self.more(t), 0))
        k_text, k_run = self.matrix(t, n * trips, k, (self.more(t), 0))
        v_text, v_run = self.matrix(t, n * trips, k, (0, 0))
        s, trip = self.name("v"), (f"{i} * {n}", "0")
        lines = [f"auto {s} = dot({q_text((f'pid(0) * {m}', '0'), (m, k))}, trans({k_text(trip, (n, k))}));",
                 f"{acc[0]} = dot(cast(clamp({s}, -2, 2), {t}), {v_text(trip, (n, k))}, {acc[0]});"]

        def step(e):
            x = q_run((e["pid"] * m, 0), (m, k)).astype(np.float64) @ k_run((e[i] * n, 0), (n, k)).astype(np.float64).T
            e[acc[0]] = (e[acc[0]] + clamped(x, 2) @ v_run((e[i] * n, 0), (n, k)).astype(np.float64)).astype(np.float32)
        return lines, step

    def pairs(self, rows, columns):
        """As matrix, of f4e2m1: two in a byte, whole tiles along K."""
        name, codes = self.name("x"), self.few("f4e2m1", (max(rows, 1), max(columns, 2)))
        self.params.append(f"const f4e2m1 {name}[{name}_0, {name}_1]")
        self.arrays[name] = ("f4e2m1", codes[:, ::2] | codes[:, 1::2] << 4)
        return (lambda at, widths: f"{name}[{at[0]} +: {widths[0]}, {at[1]} +: {widths[1]}]",
                lambda at, widths: window(TABLE["f4e2m1"][codes], at, widths, (1, 1))[0])

    def scales(self, s, rows, columns):
        """As matrix, of powers of two: e8m0, or f8e4m3 whose sign is left out."""
        name = self.name("x")
        codes = self.np.choice([126, 127, 128] if s == "u8" else [0x30, 0x38, 0x40, 0xB8], (max(rows, 1), max(columns, 1))).astype(np.uint8)
        self.params.append(f"const {s} {name}[{name}_0, {name}_1]")
        self.arrays[name] = (s, codes)
        seen = 2.0**(codes - 127.0) if s == "u8" else np.abs(TABLE[s][codes])

        def text(at, widths):
            part = f"{name}[{at[0]} +: {widths[0]}, {at[1]} +: {widths[1]}]"
            return part if s == "u8" else f"bitcast(bitcast({part}, u8) & 0x7F, {s})"
        return text, lambda at, widths: window(seen, at, widths, (1, 1))[0]

    def scaled(self, i, acc, m, n, k, trips):
        """(lines, step) of acc = dot_scaled(a, sa, b, sb, acc) at trip i."""
        s = self.r.choice(["u8", "u8", "f8e4m3"])
        each, sides = 32 if s == "u8" else 16, []
        both = self.r.random() < .4
        for rows, many in ((m, self.programs), (n, 1)):
            t = "f4e2m1" if both else self.r.choice(["f8e4m3", "f8e5m2"])
            x = self.pairs(rows * many, k * trips) if both else self.matrix(t, rows * many, k * trips, (self.more(t), 0))
            sides.append((x, self.scales(s, rows * many, k * trips // each)))
        (a, sa), (b, sb) = sides
        row = f"pid(0) * {m}"
        lines = [f"{acc[0]} = dot_scaled({a[0]((row, f'{i} * {k}'), (m, k))}, {sa[0]((row, f'{i} * {k // each}'), (m, k // each))}, "
                 f"trans({b[0](('0', f'{i} * {k}'), (n, k))}), {sb[0](('0', f'{i} * {k // each}'), (n, k // each))}, {acc[0]});"]

        def step(e):
            part = lambda x, y, at, rows: x[1]((at, e[i] * k), (rows, k)).astype(np.float64) * np.repeat(
                y[1]((at, e[i] * k // each), (rows, k // each)), each, 1)
            e[acc[0]] = (e[acc[0]] + part(a, sa, e["pid"] * m, m) @ part(b, sb, 0, n).T).astype(np.float32)
        return lines, step

    def products(self, indent):
        r, i = self.r, self.name("loop")
        t = r.choice(list(SUMS))
        k, trips = r.choice(STEPS) * (2 if len(t) > 4 or t in ("i8", "u8") else 1), r.choice([0, 1, 2, 3, 5])
        m, n = r.choice([(m, n) for m in ROWS for n in COLUMNS if m * n <= MOST_CELLS])
        chained = t in ("f16", "bf16") and r.random() < .4
        if chained:
            n, k = r.choice([16, 32, 64, 80]), r.choice([32, 64, 128])
        with_scales = not chained and r.random() < .2
        if with_scales:
            t, k, (m, n) = "f8e4m3", r.choice([64, 128, 128, 256]), r.choice([(128, 128), (128, 128), (128, 256), (256, 128), (64, 64), (128, 64)])
        acc = [self.name("v") for _ in range(1 if chained or with_scales or m * n * 2 > MOST_CELLS or r.random() < .7 else 2)]
        if with_scales:
            lines, product = self.scaled(i, acc, m, n, k, trips)
        else:
            lines, product = (self.attention if chained else self.one_product)(i, acc, t, m, n, k, trips)
        way = r.choice(["plain", "plain", "plain", "if", "scale"])
        if way == "if":
            lines = [f"if (({i} & 1) == 0) {{ {' '.join(lines)} }}"]
        if way == "scale":
            lines += [f"{name} = clamp({name}, -500, 500);" for name in acc]
        shape = (m, k if chained else n)

        def step(e):
            for name in acc:
                e[name] = np.zeros(shape, STORE[SUMS[t]])
            for e[i] in range(trips):
                if way != "if" or e[i] % 2 == 0:
                    product(e)
                for name in acc if way == "scale" else []:
                    e[name] = clamped(e[name], 500)
        self.vars += [Value(name, SUMS[t], shape, lambda e, name=name: e[name]) for name in acc]
        out = [f"{indent}{tile_of(SUMS[t], shape)} {name};" for name in acc]
        return [*out, f"{indent}for (int {i} : range({trips})){r.choice(HINTS)} {{", *[f"{indent}    {line}" for line in lines], f"{indent}}}"], [step]

    def statement(self, indent):
        """At the top, products; now and then there is something else between them."""
        if self.depth == 0 and self.r.random() < .8:
            return self.products(indent)
        return super().statement(indent)
