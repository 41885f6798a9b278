"""Expressions of random programs (language.py): each method gives a Value of the wanted type and shape."""
import random

import numpy as np
from language_values import bf16, bits, BORDER, clamped, F8, FLOATS, INTS, is_int, MOST, ordered, PACKED, STORE, SUM, TABLE, tile_of, to, Value, WILD, window
from language_words import MAKERS as WORDS, rolled


class Expressions:
    def __init__(self, seed):
        self.loops = seed % 3 == 0  # mostly loops of products
        self.r = random.Random(seed)
        self.np = np.random.default_rng(seed)
        self.params, self.arrays, self.functions = [], {}, []
        self.words, self.used = [], set()  # of the command line; of the generators
        self.vars, self.count, self.mutable = [], 0, []
        self.depth = 0
        self.programs = self.r.choice([1, 1, 2, 3])

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    # ---- data -----------------------------------------------------------------------------------------------------
    def data(self, t, shape):
        if t == "bool":
            return self.np.integers(0, 2, shape).astype(bool)
        if t in TABLE:
            return self.np.integers(0, 256, shape).astype(np.uint8)
        if is_int(t):
            if self.r.random() < .5:
                return self.np.integers(0, 256, (*shape, STORE[t]().itemsize), dtype=np.uint8).view(STORE[t]).reshape(shape)
            return self.np.integers(0 if t[0] == "u" else -20, 40, shape).astype(STORE[t])
        x = self.np.integers(-MOST[t], MOST[t] + 1, shape).astype(STORE[t])
        if self.r.random() < .3:
            x = np.where(self.np.random(shape) < .2, self.np.choice(np.array(WILD), shape), x).astype(STORE[t])
        return x

    def view(self, t, shape, want_fortran=False):
        """A view parameter with an array about as large as shape."""
        if len(self.params) > 60 or self.r.random() < .2:
            same = [(n, a) for n, (of, a) in self.arrays.items() if n[0] == "x" and of == t and a.ndim == len(shape)]
            if same:
                return self.r.choice(same)
        name = self.name("x")
        extents = [max(0 if self.r.random() < .04 else 1, n + self.r.choice([0, 0, 0, -1, 2, 5, -n // 2])) for n in shape]
        array = self.data(t, extents)
        fortran = len(shape) == 2 and t not in PACKED and self.r.random() < .2
        if fortran:
            array = np.asfortranarray(array)
        names = [f"{name}_{k}" for k in range(len(shape))]
        strides = [" : 1", f" : {name}_ld"] if fortran else [""] * len(shape)
        self.params.append(f"const {t} {name}[{', '.join(a + b for a, b in zip(names, strides))}]")
        self.arrays[name] = (t, array)
        return name, array

    def fresh_load(self, t, shape):
        r = self.r
        if t in INTS + FLOATS and r.random() < .08:
            return self.narrow_load(t, shape)
        if len(shape) <= 3 and r.random() < .25:
            return self.gather_load(t, shape)
        shape_of = shape or (self.r.choice([1, 4]),)
        name, array = self.view(t, shape_of)
        starts = [r.choice([0, 0, 0, -1, 1, 3, -2]) for _ in shape_of]
        steps = [r.choice([1, 1, 1, 1, 2]) for _ in shape_of]
        by = r.choice([0, 0, 0, 1, -2])  # the first start moves with the program
        first = f"{starts[0]} + pid(0) * {by}" if by else str(starts[0])
        trips = [v for v in self.vars if v.text.startswith("loop")]
        trip, far = r.choice(trips) if trips and r.random() < .7 else None, r.choice([1, 2, 8, -1])
        which = r.randrange(len(shape_of))  # the axis that moves with the loop
        heads = [first, *map(str, starts[1:])]
        if trip:
            heads[which] += f" + {trip.text} * {far}"

        def at_program(e):
            at = [starts[0] + by * e["pid"], *starts[1:]]
            at[which] += far * int(trip.run(e)) if trip else 0
            return at
        if not shape:
            return Value(f"{name}[{heads[0]}]", t, (), lambda e: window(array, at_program(e), (1,), (1,))[0][0])
        at = ", ".join(f"{s} +: {n}" + (f" : {k}" if k > 1 else "") for s, n, k in zip(heads, shape, steps))
        k = r.random()
        if k < .1:
            return Value(f"{self.part_of(name, array)}[{at}]", t, shape, lambda e: window(array, at_program(e), shape, steps)[0])
        if k < .25 and t not in ("bool", *F8):
            pad = r.randrange(0, 9)
            return Value(f"load({name}[{at}], pad = {pad})", t, shape, lambda e: window(array, at_program(e), shape, steps, pad)[0])
        if .3 <= k < .45:
            border = r.choice(list(BORDER))

            def bordered(e):
                index = [BORDER[border](s + np.arange(w) * q, n) for s, w, q, n in zip(at_program(e), shape, steps, array.shape)]
                return np.zeros(shape, array.dtype) if 0 in array.shape else array[np.ix_(*index)]
            return Value(f"load({name}[{at}], border = {border})", t, shape, bordered)
        if k < .3 and t == "bool":
            return Value(f"in({name}[{at}])", t, shape, lambda e: window(array, at_program(e), shape, steps)[1])
        return Value(f"{name}[{at}]", t, shape, lambda e: window(array, at_program(e), shape, steps)[0])

    def part_of(self, name, array):
        """The whole view, said in another way."""
        if array.ndim == 1 and self.r.random() < .5:
            return f"view(raw({name}), ({name}_0), (1))"
        return f"sub({name}, ({', '.join(self.r.choice(['0', '-3']) for _ in array.shape)}), ({', '.join(f'{name}_{k} + {self.r.randrange(3)}' for k in range(array.ndim))}))"

    def narrow_load(self, t, shape):
        """Elements of 8 and 4 bits, widened by a cast."""
        of = self.r.choice(F8 + PACKED)
        full = shape or (1,)
        name, array = self.view(of, (*full[:-1], full[-1] // 2 + 1) if of in PACKED else full)
        values = TABLE[of][array if of in F8 else np.stack((array & 15, array >> 4), -1).reshape(*array.shape[:-1], 2 * array.shape[-1])]
        start = self.r.choice([0, 0, -1, 2])
        at = ", ".join(["0 +: %d" % n for n in full[:-1]] + ([f"{start} +: {full[-1]}"] if shape else [f"{start}"]))
        pad = TABLE[of][0]
        v = Value(f"cast({name}[{at}], {t})", t, shape, lambda e: to(window(values, [0] * (len(full) - 1) + [start], full, (1,) * len(full), pad)[0].reshape(shape), t))
        return v if is_int(t) else self.small(Value(f"rint({v.text})", t, shape, lambda e: np.rint(v.run(e))), t)

    def gather_load(self, t, shape):
        """Index tiles: of rank 1, each its own axis; of the shape itself, pointwise; pointers."""
        r, k = self.r, self.r.random()
        if k < .3 and shape and t not in ("bool", *F8):
            name, array = self.view(t, (40,))
            i, m = self.expr("i32", shape, 3), self.expr("bool", shape, 3)

            def run(e):
                n, ok = array.shape[0], m.run(e)
                at = i.run(e).astype(np.int64) & 15
                ok = ok & (at < n)
                return np.where(ok, array[np.minimum(at, n - 1)], np.array(5).astype(STORE[t]))
            if array.size == 0:
                return self.leaf(t, shape)
            p = r.choice([f"raw({name})", f"(const {t} *)(u64)raw({name})"])
            return Value(f"load({p} + ({i.text} & 15), mask = {m.text} && ({i.text} & 15) < {name}_0, other = 5)", t, shape, run)
        if k < .6 or not shape:
            n = r.choice([1, 2, 3])
            name, array = self.view(t, (7, 5, 6)[:n])
            parts = [self.expr("i32", r.choice([shape, shape, ()]) if j else shape, 3) for j in range(n)]
            vectors = len(shape) == 1 and sum(len(p.shape) for p in parts) > 1  # an outer product, if not of at
            points, border = vectors or r.random() < .3, r.choice([*BORDER, None, None, None, None])
            if border:
                return self.bordered(name, array, t, shape, border, parts, points)

            def run(e):
                at = np.broadcast_arrays(*[p.run(e).astype(np.int64) & 7 for p in parts]) if shape else [int(p.run(e)) & 7 for p in parts]
                ok = np.logical_and.reduce([(a >= 0) & (a < m) for a, m in zip(at, array.shape)])
                if array.size == 0:
                    return np.zeros(shape, array.dtype)
                got = array[tuple(np.where(ok, a, 0) for a in at)]
                return np.where(ok, got, np.zeros((), array.dtype))
            if points:
                return Value(f"at({name}, {', '.join(f'{p.text} & 7' for p in parts)})", t, shape, run)
            return Value(f"{name}[{', '.join(f'({p.text} & 7)' for p in parts)}]", t, shape, run)
        name, array = self.view(t, tuple(max(n, 3) for n in shape))
        which = [r.random() < .5 for _ in shape]
        parts = [self.expr(r.choice(["i32", "i64", "u8"]), (n,), 3) if w else None for n, w in zip(shape, which)]
        if r.random() < .3:
            return self.bordered(name, array, t, shape, r.choice(list(BORDER)), parts, False)

        def run(e):
            index = [(p.run(e).astype(np.int64) & 7) if p else np.arange(n) for p, n in zip(parts, shape)]
            ok = np.ones(shape, bool)
            for d, i in enumerate(index):
                ok &= ((i >= 0) & (i < array.shape[d])).reshape([-1 if d == q else 1 for q in range(len(shape))])
            if array.size == 0:
                return np.zeros(shape, array.dtype)
            return np.where(ok, array[np.ix_(*[np.minimum(i, m - 1) for i, m in zip(index, array.shape)])], np.zeros((), array.dtype))
        return Value(f"{name}[{', '.join(f'({p.text} & 7)' if p else f'0 +: {n}' for p, n in zip(parts, shape))}]", t, shape, run)

    def bordered(self, name, array, t, shape, border, parts, points):
        """A load with a border by index tiles, each for its axis (None: a slice of all of it), or by points."""
        self.used.add("border of points" if points else "border of index tiles")
        outer = not points and (None in parts or len(shape) == len(parts) and all(len(p.shape) == 1 for p in parts))

        def run(e):
            at = [(p.run(e) & STORE[p.type](63)).astype(np.int64) - 20 if p else np.arange(n) - 2 for p, n in zip(parts, shape if None in parts else parts)]
            at = [BORDER[border](np.asarray(i), n) for i, n in zip(at, array.shape)]
            if array.size == 0:
                return np.zeros(shape, array.dtype)
            return array[np.ix_(*at)] if outer else array[tuple(np.broadcast_arrays(*at))].reshape(shape)
        index = ", ".join(f"cast({p.text} & 63, i32) - 20" if p else f"-2 +: {n}" for p, n in zip(parts, shape if None in parts else parts))
        return Value(f"load({f'at({name}, {index})' if points else f'{name}[{index}]'}, border = {border})", t, shape, run)

    # ---- expressions --------------------------------------------------------------------------------------------------
    def leaf(self, t, shape):
        r = self.r
        found = [v for v in self.vars if v.type == t and v.shape == tuple(shape)]
        if found and r.random() < .75:
            return r.choice(found)
        k = r.random()
        if k < .12 and t == "i32" and len(shape) == 1:
            return Value(f"iota({shape[0]})", t, shape, lambda e: np.arange(shape[0], dtype=np.int32))
        if k < .25 and t not in F8:
            lit = r.randrange(0, 8) if t != "bool" else bool(r.randrange(2))
            text = str(lit).lower()
            if not shape:
                return Value(f"cast({text}, {t})", t, shape, lambda e: to(lit, t))
            return Value(f"{tile_of(t, shape)}({text})", t, shape, lambda e: np.full(shape, to(lit, t)))
        return self.fresh_load(t, shape)

    def expr(self, t, shape, depth=0):
        shape = tuple(shape)
        r = self.r
        if depth > 3 or r.random() < .12 * (depth + 1) - .1:
            return self.leaf(t, shape)
        for _ in range(20):
            make = r.choice(self.moves if t in F8 else self.makers)
            v = make(self, t, shape, depth + 1)
            if v is not None:
                self.used.add(make.__name__)
                return v
        return self.leaf(t, shape)

    def scalar(self, depth=2):
        return self.expr("i32", (), depth)

    def small(self, v, t):
        """A float kept to where sums are exact."""
        return Value(f"clamp({v.text}, -{MOST[t]}, {MOST[t]})", t, v.shape, lambda e: clamped(v.run(e), MOST[t]).astype(STORE[t])) if not is_int(t) else v

    def arithmetic(self, t, shape, depth):
        if t == "bool":
            return None
        op = self.r.choice(["+", "-", "*"] + (["&", "|", "^"] if is_int(t) else []))
        other = shape if self.r.random() < .6 else self.r.choice([(), shape[1:], *[(1,) * k + shape[k:] for k in range(len(shape))]])
        a, b = self.expr(t, shape, depth), self.expr(t, other, depth)
        if self.r.random() < .5:
            a, b = b, a
        f = {"+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}[op]
        round_ = bf16 if t == "bf16" else (lambda x: x.astype(STORE[t]))
        return self.small(Value(f"({a.text} {op} {b.text})", t, shape, lambda e: round_(f(a.run(e), b.run(e)))), t)

    def shifts(self, t, shape, depth):
        if not is_int(t):
            return None
        op, a, b = self.r.choice(["<<", ">>"]), self.expr(t, shape, depth), self.expr(self.r.choice(["u8", "i32", t]), shape, depth)

        def run(e):
            x, n = a.run(e), (b.run(e).astype(np.int64) & (bits(t) - 1)).astype(STORE[t])
            return (np.left_shift(x, n) if op == "<<" else np.right_shift(x, n)).astype(STORE[t])
        return Value(f"({a.text} {op} {b.text})", t, shape, run)

    def division(self, t, shape, depth):
        if not is_int(t):
            return None
        op, a, b = self.r.choice(["/", "%"]), self.expr(t, shape, depth), self.expr(t, shape, depth)

        def run(e):
            x, y = a.run(e).astype(object), ((b.run(e) & STORE[t](7)) | STORE[t](1)).astype(object)
            q = np.vectorize(lambda p, d: abs(int(p)) // int(d) * (1 if p >= 0 else -1), otypes=[object])(x, y)
            return np.asarray(q if op == "/" else x - q * y).astype(STORE[t])
        return Value(f"({a.text} {op} ({b.text} & 7 | 1))", t, shape, run)

    def unary(self, t, shape, depth):
        a = self.expr(t, shape, depth)
        if t == "bool":
            return Value(f"(!{a.text})", t, shape, lambda e: ~a.run(e))
        k = self.r.choice(["-", "abs", "~", "popcount", "clz", "rotl"] if is_int(t) else ["-", "abs", "floor", "rint", "identity"])
        n = bits(t)
        if k == "-":
            return Value(f"(-({a.text}))", t, shape, lambda e: (STORE[t](0) - a.run(e)).astype(STORE[t]))
        if k == "~":
            return Value(f"(~{a.text})", t, shape, lambda e: np.invert(a.run(e)))
        if k == "abs":
            return Value(f"abs({a.text})", t, shape, lambda e: np.abs(a.run(e)).astype(STORE[t]))
        if k in ("floor", "rint", "identity"):
            return Value(f"{k}({a.text})", t, shape, lambda e: {"floor": np.floor, "rint": np.rint, "identity": lambda x: x}[k](a.run(e)))

        def run(e):
            x = np.asarray(a.run(e)).astype(object) % 2**n
            f = {"popcount": lambda v: bin(v).count("1"), "clz": lambda v: n - int(v).bit_length(), "rotl": lambda v: (v << 3 | v >> (n - 3)) % 2**n}[k]
            y = np.vectorize(lambda v: f(int(v)), otypes=[object])(x)
            return np.asarray(np.where(y >= 2**(n - 1), y - 2**n, y) if t[0] == "i" else y).astype(STORE[t])
        return Value(f"{k}({a.text}, 3)" if k == "rotl" else f"{k}({a.text})", t, shape, run)

    def extremes(self, t, shape, depth):
        if t == "bool":
            return None
        op, a, b = self.r.choice(["min", "max"]), self.expr(t, shape, depth), self.expr(t, self.r.choice([shape, ()]), depth)
        f = np.fmin if op == "min" else np.fmax
        return Value(f"{op}({a.text}, {b.text})", t, shape, lambda e: f(a.run(e), b.run(e)))

    def compare(self, t, shape, depth):
        if t != "bool":
            return None
        of = self.r.choice(INTS + FLOATS)
        op, a, b = self.r.choice(["<", "<=", ">", ">=", "==", "!="]), self.expr(of, shape, depth), self.expr(of, self.r.choice([shape, ()]), depth)
        f = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}[op]
        return Value(f"({a.text} {op} {b.text})", t, shape, lambda e: f(a.run(e), b.run(e)))

    def logic(self, t, shape, depth):
        if t != "bool":
            return None
        op, a, b = self.r.choice(["&&", "||", "==", "!="]), self.expr(t, shape, depth), self.expr(t, shape, depth)
        f = {"&&": np.logical_and, "||": np.logical_or, "==": np.equal, "!=": np.not_equal}[op]
        return Value(f"({a.text} {op} {b.text})", t, shape, lambda e: f(a.run(e), b.run(e)))

    def select(self, t, shape, depth):
        c = self.expr("bool", self.r.choice([shape, shape, ()]), depth)
        a, b = self.expr(t, shape, depth), self.expr(t, shape, depth)
        return Value(f"({c.text} ? {a.text} : {b.text})", t, shape, lambda e: np.where(c.run(e), a.run(e), b.run(e)))

    def casts(self, t, shape, depth):
        if t == "bool" or not is_int(t):
            of = self.r.choice(["i8", "u8"] if t != "bool" else INTS + FLOATS)
            a = self.expr(of, shape, depth)
            if t == "bool":
                return Value(f"cast({a.text}, bool)", t, shape, lambda e: a.run(e) != 0)
            m = 8
            return Value(f"cast({a.text} % {m}, {t})", t, shape, lambda e: np.fmod(a.run(e), STORE[of](m)).astype(STORE[t]))
        a = self.expr(self.r.choice([*INTS, *FLOATS, "bool"]), shape, depth)
        return Value(f"cast({a.text}, {t})", t, shape, lambda e: to(a.run(e), t))

    def transposed(self, t, shape, depth):
        if len(shape) < 2:
            return None
        perm = list(range(len(shape)))
        self.r.shuffle(perm)
        source = [0] * len(shape)
        for i, p in enumerate(perm):
            source[p] = shape[i]
        a = self.expr(t, source, depth)
        return Value(f"trans({a.text}, {', '.join(map(str, perm))})", t, shape, lambda e: a.run(e).transpose(perm))

    def reshaped(self, t, shape, depth):
        n = int(np.prod(shape))
        if not shape:
            return None
        options = [(n,)] + [(d, n // d) for d in range(1, n + 1) if n % d == 0] + [(d, 2, n // d // 2) for d in range(1, n) if n % (2 * d) == 0]
        a = self.expr(t, self.r.choice(options), depth)
        return Value(f"reshape({a.text}, {', '.join(map(str, shape))})", t, shape, lambda e: a.run(e).reshape(shape))

    def axis(self, shape):
        return self.r.randrange(len(shape)) if shape else None

    def flipped(self, t, shape, depth):
        k = self.axis(shape)
        if k is None:
            return None
        a = self.expr(t, shape, depth)
        return Value(f"flip({a.text}, {k})", t, shape, lambda e: np.flip(a.run(e), k))

    def repeated(self, t, shape, depth):
        k = self.axis(shape)
        ways = [d for d in (2, 3, 4, 5) if k is not None and shape[k] % d == 0]
        if not ways:
            return None
        n = self.r.choice(ways)
        a = self.expr(t, (*shape[:k], shape[k] // n, *shape[k + 1:]), depth)
        return Value(f"repeat({a.text}, {k}, {n})", t, shape, lambda e: a.run(e).repeat(n, k))

    def joined(self, t, shape, depth):
        k = self.axis(shape)
        if k is None or shape[k] < 2:
            return None
        cut = self.r.randrange(1, shape[k])
        a, b = (self.expr(t, (*shape[:k], n, *shape[k + 1:]), depth) for n in (cut, shape[k] - cut))
        return Value(f"cat({a.text}, {b.text}, {k})", t, shape, lambda e: np.concatenate((a.run(e), b.run(e)), k))

    def interleaved(self, t, shape, depth):
        if not shape or shape[-1] % 2:
            return None
        half = (*shape[:-1], shape[-1] // 2)
        if shape[-1] == 2 and self.r.random() < .5:
            a, b = self.expr(t, shape[:-1], depth), self.expr(t, shape[:-1], depth)
            return Value(f"join({a.text}, {b.text})", t, shape, lambda e: np.stack((a.run(e), b.run(e)), -1))
        a, b = self.expr(t, half, depth), self.expr(t, half, depth)
        return Value(f"interleave({a.text}, {b.text})", t, shape, lambda e: np.stack((a.run(e), b.run(e)), -1).reshape(shape))

    def extracted(self, t, shape, depth):
        if not shape or np.prod(shape) > 200:
            return None
        extents = [n + self.r.choice([0, 0, 1, 3]) for n in shape]
        starts = [self.r.randrange(m - n + 1) for m, n in zip(extents, shape)]
        a = self.expr(t, extents, depth)
        cut = tuple(slice(s, s + n) for s, n in zip(starts, shape))
        return Value(f"extract({a.text}, {', '.join(f'{s} +: {n}' for s, n in zip(starts, shape))})", t, shape, lambda e: a.run(e)[cut])

    def picked(self, t, shape, depth):
        if len(shape) > 3 or np.prod(shape) > 200:
            return None
        k, n = self.r.randrange(len(shape) + 1), self.r.choice([1, 2, 3, 7])
        a, i = self.expr(t, (*shape[:k], n, *shape[k:]), depth), self.scalar()
        return Value(f"pick({a.text}, {k}, ({i.text} & 65535) % {n})", t, shape, lambda e: np.take(a.run(e), (int(i.run(e)) & 65535) % n, k))

    def put(self, t, shape, depth):
        k = self.axis(shape)
        if k is None:
            return None
        a, i, v = self.expr(t, shape, depth), self.scalar(), self.expr(t, (*shape[:k], *shape[k + 1:]), depth)

        def run(e):
            x, at, w = a.run(e).copy(), (int(i.run(e)) & 65535) % shape[k], v.run(e)
            x[(slice(None),) * k + (at,)] = w
            return x
        return Value(f"put({a.text}, {k}, ({i.text} & 65535) % {shape[k]}, {v.text})", t, shape, run)

    def shifted(self, t, shape, depth):
        k = self.axis(shape)
        if k is None:
            return None
        a, n, f = self.expr(t, shape, depth), self.scalar(), self.expr(t, self.r.choice([(), shape]), depth)

        def run(e):
            x, by, fill = a.run(e), int(np.fmod(int(n.run(e)), 5)), f.run(e)
            i = np.arange(shape[k]) - by
            ok = ((i >= 0) & (i < shape[k])).reshape([-1 if d == k else 1 for d in range(len(shape))])
            return np.where(ok, np.take(x, np.clip(i, 0, shape[k] - 1), k), fill)
        return Value(f"shift({a.text}, {k}, {n.text} % 5, {f.text})", t, shape, run)

    def squeezed(self, t, shape, depth):
        if len(shape) > 4:
            return None
        k = self.r.randrange(len(shape) + 1)
        a = self.expr(t, (*shape[:k], 1, *shape[k:]), depth)
        return Value(f"squeeze({a.text}, {k})", t, shape, lambda e: a.run(e).squeeze(k))

    def expanded(self, t, shape, depth):
        ones = [k for k, n in enumerate(shape) if n == 1]
        if not ones:
            return None
        k = self.r.choice(ones)
        a = self.expr(t, (*shape[:k], *shape[k + 1:]), depth)
        return Value(f"expand({a.text}, {k})", t, shape, lambda e: np.expand_dims(a.run(e), k))

    def spread(self, t, shape, depth):
        if not shape:
            return None
        lower = self.r.choice([(), shape[1:], *[shape[:k] + (1,) + shape[k + 1:] for k in range(len(shape))]])
        a = self.expr(t, lower, depth)
        return Value(f"broadcast({a.text}, {', '.join(map(str, shape))})", t, shape, lambda e: np.broadcast_to(a.run(e), shape))

    def reduced(self, t, shape, depth):
        if len(shape) > 3 or np.prod(shape) > 128:
            return None
        r, n = self.r, self.r.choice([1, 2, 3, 5, 8, 16])
        k = r.randrange(len(shape) + 1)
        full, m = (*shape[:k], n, *shape[k:]), None
        of = t
        if t == "bool":
            a, op = self.expr("bool", full, depth), r.choice(["any", "all"])
            return Value(f"{op}({a.text}, axis = {k})", t, shape, lambda e: getattr(np, op)(a.run(e), k))
        op = r.choice(["sum", "max", "min", "xor_sum", "prod"] if is_int(t) else ["sum", "max", "min"])
        if t == "i32" and r.random() < .3:
            op, of = r.choice(["argmax", "argmin"]), r.choice(INTS + FLOATS)
        elif op in ("sum", "prod"):
            of = r.choice([s for s in SUM if SUM[s] == t and (op == "sum" or s != "bool")] + [t]) if t in ("i32", "u32") else t
            if of in SUM.keys() and of == t:
                return None
        a = self.expr(of, full, depth)
        where = self.expr("bool", full, depth) if r.random() < .25 and op != "xor_sum" else None
        text = f"{op}({a.text}, axis = {k}{f', where = {where.text}' if where else ''})"

        def run(e):
            x, w = a.run(e), where.run(e) if where else np.ones(full, bool)
            if op in ("sum", "prod", "xor_sum"):
                x = np.where(w, x, 1 if op == "prod" else 0).astype(STORE[t])
                return {"sum": np.add, "prod": np.multiply, "xor_sum": np.bitwise_xor}[op].reduce(x, k, dtype=STORE[t])
            lo, hi = (-np.inf, np.inf) if not is_int(of) else (np.iinfo(STORE[of]).min, np.iinfo(STORE[of]).max)
            least = op in ("max", "argmax")
            x = np.where(w, x, np.array(lo if least else hi).astype(STORE[of]))
            if op in ("max", "min"):
                return (np.fmax if op == "max" else np.fmin).reduce(x, k)
            # of what was left out nothing is taken, even where it ties
            best = (x == (np.fmax if least else np.fmin).reduce(x, k, keepdims=True)) & w
            return best.argmax(k).astype(np.int32)
        v = Value(text, t, shape, run)
        return self.small(v, t) if op == "sum" or where else v

    def by_function(self, t, shape, depth):
        """reduce and scan with a function of the program."""
        if t not in ("i32", "u32", "i64", "u64") or not shape:
            return None
        f, run_one = self.r.choice([("f_last", lambda x, y: np.where(y != 0, y, x)), ("f_xor", np.bitwise_xor), ("f_add", np.add)])
        text = {"f_last": "auto f_last(auto a, auto b) { return b != 0 ? b : a; }", "f_xor": "auto f_xor(auto a, auto b) { if (a == 0) return b; return a ^ b; }", "f_add": "auto f_add(auto a, auto b) { return a + b; }"}[f]
        if text not in self.functions:
            self.functions.append(text)
        k, back = self.axis(shape), self.r.random() < .5
        a = self.expr(t, shape, depth)

        def run(e):
            x = np.moveaxis(a.run(e), k, 0)
            x = (x[::-1] if back else x).copy()
            for i in range(1, len(x)):
                x[i] = run_one(x[i - 1], x[i])
            return np.moveaxis(x[::-1] if back else x, 0, k)
        return Value(f"scan({a.text}, {k}, {f}{', reverse = true' if back else ''})", t, shape, run)

    def scanned(self, t, shape, depth):
        if not shape or not is_int(t) or np.prod(shape) > 300:
            return None
        of = self.r.choice([s for s in SUM if SUM[s] == t and s != "bool"] + [t]) if t in ("i32", "u32") else t
        if of in SUM:
            if of == t:
                return None
        k, back, op = self.axis(shape), self.r.random() < .4, self.r.choice(["cumsum", "cumsum", "cumprod"])
        a = self.expr(of, shape, depth)

        def run(e):
            x = a.run(e).astype(STORE[t])
            x = np.flip(x, k) if back else x
            y = getattr(np, op)(x, k, dtype=STORE[t])
            return np.flip(y, k) if back else y
        return Value(f"{op}({a.text}, axis = {k}{', reverse = true' if back else ''})", t, shape, run)

    def sorted_(self, t, shape, depth):
        if t == "bool" or not shape:
            return None
        k, down = self.axis(shape), self.r.random() < .5
        if t == "i32" and self.r.random() < .4:
            a = self.expr(self.r.choice(INTS + FLOATS), shape, depth)

            def run(e):
                return ordered(a.run(e), k, down).astype(np.int32)
            return Value(f"argsort({a.text}, {k}{', descending = true' if down else ''})", t, shape, run)
        a = self.expr(t, shape, depth)
        if k == len(shape) - 1 and self.r.random() < .3:
            n = self.r.randrange(0, 4)
            b = self.expr(t, (*shape[:-1], shape[-1] + n), depth)
            name = "top"
            if "auto top(" not in " ".join(self.functions):
                self.functions.append("auto top(auto v, const int n) { auto (a, i) = topk(v, n); return a; }")
            return Value(f"{name}({b.text}, {shape[-1]})", t, shape, lambda e: (lambda x: np.take_along_axis(x, ordered(x, -1, True), -1)[..., :shape[-1]])(b.run(e)))
        return Value(f"sort({a.text}, {k}{', descending = true' if down else ''})", t, shape, lambda e: (lambda x: np.take_along_axis(x, ordered(x, k, down), k))(a.run(e)))

    def gathered(self, t, shape, depth):
        k = self.axis(shape)
        if k is None:
            return None
        n = self.r.choice([1, 3, 8, 20])
        a, i = self.expr(t, (*shape[:k], n, *shape[k + 1:]), depth), self.expr(self.r.choice(["i32", "u8", "i64"]), shape, depth)

        def run(e):
            x, at = a.run(e), (i.run(e) & 31).astype(np.int64) - 2
            ok = (at >= 0) & (at < n)
            return np.where(ok, np.take_along_axis(x, np.where(ok, at, 0), k), np.zeros((), x.dtype))
        return Value(f"gather({a.text}, cast({i.text} & 31, i32) - 2, {k})", t, shape, run)

    def counted(self, t, shape, depth):
        if t != "i32" or len(shape) != 1:
            return None
        a = self.expr(self.r.choice(INTS), self.r.choice([(1,), (13,), (64,), (100,)]), depth)

        def run(e):
            x = a.run(e).astype(object)
            return np.array([(x == b).sum() for b in range(shape[0])], np.int32)
        return Value(f"histogram({a.text}, {shape[0]})", t, shape, run)

    def product(self, t, shape, depth):
        if len(shape) not in (2, 3) or t not in ("i32", "f32", "f64"):
            return None
        n = self.r.choice([1, 3, 8, 16, 20, 32])
        of = {"i32": ["i8", "u8"], "f32": ["f16", "bf16", "f32"], "f64": ["f64"]}[t]
        p = self.r.choice(of)
        q = self.r.choice(of) if t == "i32" else p
        a, b = self.expr(p, (*shape[:-1], n), depth), self.expr(q, (*shape[:-2], n, shape[-1]), depth)
        cut = (lambda v, u: f"clamp({v.text}, -8, 8)" if not is_int(u) else v.text)
        lim = (lambda x, u: clamped(x, 8) if not is_int(u) else x)
        v = Value(f"dot({cut(a, p)}, {cut(b, q)})", t, shape, lambda e: to((lim(a.run(e), p).astype(np.int64 if t == "i32" else np.float64) @ lim(b.run(e), q).astype(np.int64 if t == "i32" else np.float64)), t))
        return self.small(v, t) if t != "i32" else v

    makers = [arithmetic, arithmetic, shifts, division, unary, extremes, compare, logic, select, casts, transposed, reshaped, flipped, repeated, joined, interleaved, extracted, picked, put, shifted, squeezed,
              expanded, spread, reduced, reduced, by_function, scanned, sorted_, gathered, counted, product, *WORDS]

    moves = [select, transposed, reshaped, flipped, repeated, joined, interleaved, extracted, picked, put, shifted, squeezed, expanded, spread, gathered, rolled]
