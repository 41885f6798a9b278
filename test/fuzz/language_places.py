"""Statements of random programs (language.py) that change memory: atomics of every type, points, packed stores. Each function makes
(lines, steps), as the methods of Maker do."""
import numpy as np
from language_values import BORDER, clamped, F8, FLOATS, INTS, is_int, PACKED, STORE, TABLE, Value

NARROW = ["i8", "u8", "i16", "u16", "bool"]
# What an atomic leaves where v meets m, and the types that have it.
ATOMICS = {"add": np.add, "mul": np.multiply, "min": np.fmin, "max": np.fmax, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
           "xchg": lambda m, v: v, "cas": None}
HAS = {"bool": ["and", "or", "xor", "xchg", "cas"], "f16": ["add", "mul"], "bf16": ["add", "mul"],
       "f32": ["add", "mul", "min", "max", "xchg"], "f64": ["add", "mul", "min", "max", "xchg"], **{t: list(ATOMICS) for t in INTS}}
LANES = [(5,), (8,), (13,), (3, 5)]


def scratch(self, t, *extents):
    """A view that each program reads and writes a part of."""
    name = self.name("m")
    self.params.append(f"{t} {name}[{', '.join([str(self.programs), *(f'{name}_{k}' for k in range(len(extents)))])}]")
    self.arrays[name] = (t, self.data(t, (self.programs, *extents)))
    return name


def distinct(self, shape, n):
    """Distinct positions, most of them from 0 to n - 1; n is no multiple of 7 and 11."""
    count, turn, start = int(np.prod(shape)), self.r.choice([1, 7, 11]), self.r.randrange(n)
    text = f"((iota({count}) * {turn} + {start}) % {n} - 2)"
    if len(shape) > 1:
        text = f"reshape({text}, {', '.join(map(str, shape))})"
    return Value(text, "i32", shape, lambda e: ((np.arange(count) * turn + start) % n - 2).reshape(shape))


def anywhere(self, shape, n):
    """Any positions, about 0 to n - 1."""
    t = self.r.choice(["i32", "i32", "u8", "i64"])
    i, most = self.expr(t, shape, 3), 2**int(n).bit_length() - 1
    return Value(f"(cast({i.text} & {most}, i32) - 3)", "i32", shape, lambda e: (i.run(e) & STORE[t](most)).astype(np.int64) - 3)


def inside(extents, index):
    return np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, extents)])


def limited(self, v, most):
    return v if is_int(v.type) or v.type == "bool" else Value(f"clamp({v.text}, -{most}, {most})", v.type, v.shape, lambda e: clamped(v.run(e), most).astype(STORE[v.type]))


def place(self, name, n, shape, once):
    """(text, positions) of elements of a program's n, each once if so."""
    i, k = (distinct if once and shape else anywhere)(self, shape, n), self.r.random()
    if k < .3 and len(shape) == 1:
        start, step = self.r.choice([0, -3, 5]), self.r.choice([1, 1, 2])
        return f"{name}[pid(0), {start} +: {shape[0]}{f' : {step}' if step > 1 else ''}]", lambda e: start + np.arange(shape[0]) * step
    if k < .6 and len(shape) < 2:
        return f"{name}[pid(0), {i.text}]", i.run
    return f"at({name}, {self.r.choice(['pid(0)', '(i64)pid(0)', '(u8)pid(0)'])}, {i.text})", i.run


def atomics(self, indent):
    """An atomic; where it meets each element once, the old values are a variable."""
    r = self.r
    t, n, shape = r.choice(NARROW * 2 + INTS + FLOATS), r.choice([24, 60, 96]), r.choice([(), *LANES])
    word = r.choice(HAS[t])
    once = word in ("xchg", "cas") or t in FLOATS or r.random() < .5
    name, got = scratch(self, t, n), self.name("v")
    where, index = place(self, name, n, shape, once)
    v = limited(self, self.expr(t, shape, 2), 1 if word == "mul" else 2)
    mask = self.expr("bool", shape, 3) if r.random() < .4 else None
    meets, other = self.expr("bool", shape, 3), self.expr(t, shape, 3)  # of cas: whether to expect what is there
    self.used |= {f"atomic_{word}", f"atomic of {'bool' if t == 'bool' else t[-2:].lstrip('iuf')} bits"}

    expected = f", ({meets.text} ? {where} : {other.text})" if word == "cas" else ""
    text = f"atomic_{word}({where}{expected}, {v.text}{f', mask = {mask.text}' if mask else ''})"
    old = Value(text, t, shape, lambda e: e["old"])
    seen = old if t == "bool" else self.small(old, t)

    def step(e):
        m, i, x = e[name][e["pid"]], np.asarray(index(e)), np.asarray(v.run(e))
        ok = inside((n,), (i,)) & (mask.run(e) if mask else True)
        if not once:
            ATOMICS[word].at(m, i[ok], x[ok])
            return
        was = m[np.where(ok, i, 0)]
        x = np.where(meets.run(e) | (was == other.run(e)), x, was) if word == "cas" else ATOMICS[word](was, x).astype(m.dtype)
        m[i[ok]] = x[ok]
        e["old"] = np.where(ok, was, np.zeros((), m.dtype))
        e[got] = seen.run(e)
    if once:
        self.vars.append(Value(got, t, shape, lambda e: e[got]))
    return [f"{indent}{f'auto {got} = ' if once else ''}{seen.text if once else text};"], [step]


def points_of(self, name, rows, columns, make):
    """(text, indices, shape) of points of a program's matrix, by positions that make gives."""
    r, k = self.r, self.r.random()
    if k < .4:
        shape = r.choice(LANES)
        p = make(self, shape, rows * columns)
        text = f"floor_div({p.text}, {columns}), floor_mod({p.text}, {columns})"
        return f"at({name}, pid(0), {text})", lambda e: (p.run(e) // columns, p.run(e) % columns), shape
    if k < .7:
        i, j = make(self, (3,), rows), make(self, (5,), columns)
        return f"at({name}, pid(0), {i.text}, col({j.text}))", lambda e: (i.run(e)[None, :], j.run(e)[:, None]), (5, 3)
    shape, start, width = r.choice([(3,), (2, 2)]), r.choice([0, -2, 3]), r.choice([4, 7])
    i = make(self, shape, rows)
    self.used.add("points with slices behind")
    return f"at({name}, pid(0), {i.text}, {start} +: {width})", lambda e: (i.run(e)[..., None], start + np.arange(width)), (*shape, width)


def read_points(self, t, name, extents):
    """What is at points of the memory, or what a border or a pad says."""
    r, text, indices, shape = self.r, *points_of(self, name, *extents, anywhere)
    border, mask = r.choice([None, *BORDER]), self.expr("bool", shape, 3) if r.random() < .3 else None
    pad = r.randrange(9) if not border and t not in ("bool", *F8) and r.random() < .5 else 0
    words = f", border = {border}" if border else f", pad = {pad}" if pad else ""
    self.used |= {"load of points", *(["border of points"] if border else [])}

    def run(e):
        m, index = e[name][e["pid"]], np.broadcast_arrays(*indices(e))
        ok = np.ones(shape, bool) if border else inside(extents, index)
        index = [BORDER[border](i, n) for i, n in zip(index, extents)] if border else [np.where(ok, i, 0) for i in index]
        return np.where(ok & mask.run(e) if mask else ok, m[tuple(index)], np.array(pad).astype(m.dtype))
    words += f", mask = {mask.text}" if mask else ""
    return Value(f"load({text}{words})" if words else text, t, shape, run)


def points(self, indent):
    """A store or atomic at points, and a load at others."""
    r, got = self.r, self.name("v")
    t, extents = r.choice([*INTS, *FLOATS, "bool", *F8]), r.choice([(4, 6), (5, 12), (1, 24), (8, 8)])
    name = scratch(self, t, *extents)
    text, indices, shape = points_of(self, name, *extents, distinct)
    v, mask = self.expr(t, shape, 2), self.expr("bool", shape, 3) if r.random() < .4 else None
    word = r.choice(["add", "or", "xchg", "mul"]) if is_int(t) and r.random() < .3 else None
    self.used.add(f"{'atomic' if word else 'store'} at points")
    seen = read_points(self, t, name, extents)

    def step(e):
        m, x = e[name][e["pid"]], v.run(e)
        index = np.broadcast_arrays(*indices(e))
        ok = inside(extents, index) & (mask.run(e) if mask else True)
        to = tuple(i[ok] for i in index)
        m[to] = ATOMICS[word](m[to], x[ok]) if word else x[ok]
        e[got] = seen.run(e)
    more = f", mask = {mask.text}" if mask else ""
    line = f"atomic_{word}({text}, {v.text}{more});" if word else f"store({text}, {v.text}{more});" if mask else f"{text} = {v.text};"
    self.vars.append(Value(got, t, seen.shape, lambda e: e[got]))
    return [f"{indent}{line}", f"{indent}auto {got} = {seen.text};"], [step]


def halves(x):
    """The two elements of each byte, first the low one."""
    return np.stack((x & 15, x >> 4), -1).reshape(*x.shape[:-1], 2 * x.shape[-1])


def nearest_f4(x):
    """Codes of f4e2m1 nearest to x, of two the even one; beyond the greatest that."""
    codes = sorted(range(8), key=lambda c: c % 2)
    near = np.abs(np.abs(x)[..., None] - TABLE["f4e2m1"][codes])
    return (np.array(codes)[near.argmin(-1)] + np.where(x < 0, 8, 0)).astype(np.uint8)


def codes_of(self, t, shape):
    """(text, run) of a cast to the packed type t, as codes."""
    r = self.r
    if t == "f4e2m1":
        v = self.expr("i32", shape, 2)
        return f"cast(cast({v.text} & 31, f32) * 0.5 - 7, {t})", lambda e: nearest_f4((v.run(e) & 31) * 0.5 - 7)
    of = r.choice(INTS + FLOATS)
    sat = is_int(of) and r.random() < .5
    v = self.expr(of, shape, 2)
    lo, hi = (-8, 7) if t == "i4" else (0, 15)

    def run(e):
        x = v.run(e)
        if not is_int(of):
            x = np.trunc(np.clip(np.where(np.isnan(x), 0, x), lo, hi)).astype(np.int64)
        elif sat:
            x = np.clip(x.astype(object), lo, hi)
        return np.asarray(x.astype(object) & 15).astype(np.uint8)
    return f"cast({v.text}, {t}{', sat = true' if sat else ''})", run


def packed_stores(self, indent):
    """Stores to a view of 4-bit elements, which begin at even ones, and a load."""
    r, t = self.r, self.r.choice(PACKED)
    name, got, size = self.name("m"), self.name("v"), r.choice([3, 8, 20])
    rows, odd = r.choice([1, 3]), r.random() < .3  # odd: the view ends within the last byte
    self.params += [f"{t} {name}[{self.programs}, {name}_h, {name}_n]", *([f"const u8 odd_{name}[{name}_n]"] if odd else [])]
    self.arrays[name] = (t, self.np.integers(0, 256, (self.programs, rows, size), dtype=np.uint8))
    if odd:
        self.arrays[f"odd_{name}"] = ("u8", np.zeros(2 * size - 1, np.uint8))
    s, loop, trips = self.scalar(3), self.name("loop"), r.choice([2, 3])
    width, first = r.choice([2, 6, 8, 16]), r.choice([0, -1, 1])
    form = r.choice(["known", "twice", "promised", "loop"])
    known = r.choice([-4, 0, 2, 8])
    start = {"known": str(known), "twice": f"2 * ({s.text} & 7)", "promised": f"multiple_of(({s.text} & 7) * 2, 2)", "loop": f"{loop} - 2"}[form]
    text, codes = codes_of(self, t, (2, width))
    back = r.choice([0, -1, 3])
    wide = "f32" if t == "f4e2m1" else r.choice(["i32", "i64", "i8"])
    last = 2 * size - odd

    def step(e):
        m, x, at = halves(e[name][e["pid"]]), codes(e), [known] if form == "known" else [2 * k * width - 2 for k in range(trips)] if form == "loop" else [2 * (int(s.run(e)) & 7)]
        for i in range(2):
            for a in at:
                for k in range(width):
                    if 0 <= first + i < rows and 0 <= a + k < last:
                        m[first + i, a + k] = x[i, k]
        e[name][e["pid"]] = m[:, 0::2] | m[:, 1::2] << 4
        column = back + np.arange(9)
        seen = np.where((column >= 0) & (column < last), m[rows - 1, np.clip(column, 0, last - 1)], 0)
        e[got] = np.rint(TABLE[t][seen]).astype(STORE[wide])
    where = f"{name}[pid(0), {first} +: 2, {start} +: {width}]"
    line = f"{where} = {text};"
    if form == "loop":
        line = f"for (int {loop} : range(0, {2 * trips * width}, {2 * width})) {line}"
    seen = f"cast({name}[pid(0), {rows - 1}, {back} +: 9], {wide})"
    self.vars.append(Value(got, wide, (9,), lambda e: e[got]))
    return [f"{indent}{line}", f"{indent}auto {got} = {f'rint({seen})' if wide == 'f32' else seen};"], [step]


MAKERS = [atomics, atomics, points, points, packed_stores]
