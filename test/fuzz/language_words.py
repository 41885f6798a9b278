"""Words of language 1.2 in random programs: each function makes a Value of the type and shape, or None where its word gives
no such thing, as the methods of Expressions do. Words of statements are in language_places.py and language_records.py."""
import numpy as np
from language_values import FLOATS, INTS, is_int, ordered, STORE, SUM, Value


def exactly(f, a, b, t):
    """f of exact integers, which must fit into t."""
    return np.asarray(np.vectorize(lambda x, y: f(int(x), int(y)), otypes=[object])(a, b)).astype(STORE[t])


def floors(self, t, shape, depth):
    if not is_int(t):
        return None
    word, a, b = self.r.choice(["floor_div", "floor_mod"]), self.expr(t, shape, depth), self.expr(t, shape, depth)
    below = t[0] == "i" and self.r.random() < .5  # divisors from -8 to -1 without -1, which MIN cannot be divided by
    by = f"(-2 - ({b.text} & 6))" if below else f"({b.text} & 7 | 1)"
    f = (lambda x, y: x // y) if word == "floor_div" else (lambda x, y: x % y)
    return Value(f"{word}({a.text}, {by})", t, shape, lambda e: exactly(lambda x, y: f(x, -2 - (y & 6) if below else y & 7 | 1), a.run(e), b.run(e), t))


def limited(self, t, shape, depth):
    if not is_int(t):
        return None
    word, a, b = self.r.choice(["add_sat", "sub_sat", "avg"]), self.expr(t, shape, depth), self.expr(t, shape, depth)
    lo, hi = np.iinfo(STORE[t]).min, np.iinfo(STORE[t]).max
    f = {"add_sat": lambda x, y: min(max(x + y, lo), hi), "sub_sat": lambda x, y: min(max(x - y, lo), hi), "avg": lambda x, y: (x + y + 1) >> 1}[word]
    return Value(f"{word}({a.text}, {b.text})", t, shape, lambda e: exactly(f, a.run(e), b.run(e), t))


def along(x, k, back, step, first):
    """The exclusive scan of x along axis k, from behind if back."""
    x = np.moveaxis(x, k, 0)
    x = x[::-1] if back else x
    y = np.empty_like(x)
    last = np.full(x.shape[1:], first, x.dtype)
    for i in range(len(x)):
        y[i] = last
        last = step(last, x[i])
    return np.moveaxis(y[::-1] if back else y, 0, k)


def exclusive(self, t, shape, depth):
    if not shape or not is_int(t) or np.prod(shape) > 300:
        return None
    narrow = [s for s in SUM if SUM[s] == t and s != "bool"]
    of = self.r.choice(narrow) if t in ("i32", "u32") else t
    if of in SUM and of == t:
        return None
    k, back = self.axis(shape), self.r.random() < .4
    word, step, first = self.r.choice([("cumsum", np.add, 0), ("cumprod", np.multiply, 1)])
    a = self.expr(of, shape, depth)
    return Value(f"{word}({a.text}, axis = {k}{', reverse = true' if back else ''}, exclusive = true)", t, shape, lambda e: along(a.run(e).astype(STORE[t]), k, back, step, first))


def from_init(self, t, shape, depth):
    """scan with init, exclusive or not, by a function without a name."""
    if not shape or t not in ("i32", "u32", "i64", "u64"):
        return None
    op, step = self.r.choice([("+", np.add), ("^", np.bitwise_xor), ("|", np.bitwise_or), ("*", np.multiply)])
    k, back, out, first = self.axis(shape), self.r.random() < .4, self.r.random() < .6, self.r.randrange(9)
    a = self.expr(t, shape, depth)

    def run(e):
        x = a.run(e)
        y = along(x, k, back, step, STORE[t](first))
        return y if out else step(y, x)
    return Value(f"scan({a.text}, {k}, fn (p, q) => p {op} q, init = cast({first}, {t}){', reverse = true' if back else ''}{', exclusive = true' if out else ''})", t, shape, run)


def running(self, t, shape, depth):
    if not shape or t not in INTS + FLOATS:
        return None
    up, k, back, out = self.r.random() < .5, self.axis(shape), self.r.random() < .4, self.r.random() < .4
    word, step = ("cummax", np.fmax) if up else ("cummin", np.fmin)
    a = self.expr(t, shape, depth)

    def run(e):
        x = a.run(e)
        ends = (np.iinfo(x.dtype).max, np.iinfo(x.dtype).min) if is_int(t) else (np.inf, -np.inf)
        return along(x, k, back, step, ends[up]) if out else np.flip(step.accumulate(np.flip(x, k), k), k) if back else step.accumulate(x, k)
    v = Value(f"{word}({a.text}, axis = {k}{', reverse = true' if back else ''}{', exclusive = true' if out else ''})", t, shape, run)
    return v if is_int(t) else self.small(v, t)


def sorted_beside(self, t, shape, depth):
    """What stands beside sorted or greatest keys."""
    if not shape or t not in INTS + FLOATS:
        return None
    of, down = self.r.choice(INTS + FLOATS), self.r.random() < .5
    if self.r.random() < .3:
        n = self.r.randrange(0, 4)
        full = (*shape[:-1], shape[-1] + n)
        keys, a = self.expr(of, full, depth), self.expr(t, full, depth)
        text = "auto beside_top(auto k, auto v, const int n) { auto (a, b) = topk((k, v), n); return b; }"
        if text not in self.functions:
            self.functions.append(text)
        return Value(f"beside_top({keys.text}, {a.text}, {shape[-1]})", t, shape, lambda e: np.take_along_axis(a.run(e), ordered(keys.run(e), -1, True), -1)[..., :shape[-1]])
    k = self.axis(shape)
    keys, a = self.expr(of, shape, depth), self.expr(t, shape, depth)
    name, how = ("beside_down", ", descending = true") if down else ("beside", "")
    text = f"auto {name}(auto k, auto v, const int axis) {{ auto (a, b) = sort((k, v), axis{how}); return b; }}"
    if text not in self.functions:
        self.functions.append(text)
    return Value(f"{name}({keys.text}, {a.text}, {k})", t, shape, lambda e: np.take_along_axis(a.run(e), ordered(keys.run(e), k, down), k))


def rolled(self, t, shape, depth):
    k = self.axis(shape)
    if k is None:
        return None
    a, n = self.expr(t, shape, depth), self.scalar()
    return Value(f"roll({a.text}, {k}, {n.text} % 50)", t, shape, lambda e: np.roll(a.run(e), int(np.fmod(int(n.run(e)), 50)), k))


def weighed(self, t, shape, depth):
    """A histogram of weights, which are added as sum adds them."""
    if t not in ("i32", "u32", "i64", "u64") or len(shape) != 1:
        return None
    narrow = [s for s in SUM if SUM[s] == t and s not in ("bool", t)]
    of, n = self.r.choice(narrow) if narrow else t, self.r.choice([(1,), (13,), (64,), (3, 5)])
    a, w = self.expr(self.r.choice(INTS), n, depth), self.expr(of, n, depth)

    def run(e):
        x, by = a.run(e).astype(object), w.run(e).astype(STORE[t])
        return np.array([by[x == b].sum(dtype=STORE[t]) for b in range(shape[0])], STORE[t])
    return Value(f"histogram({a.text}, {shape[0]}, weights = {w.text})", t, shape, run)


def whole_product(self, t, shape, depth):
    """dot of wide integers: 16 bits give i32, others wrap in their own type."""
    if len(shape) not in (2, 3) or t not in ("i32", "u32", "i64", "u64"):
        return None
    n, of = self.r.choice([1, 3, 8, 16, 20]), ["i16", "u16"] if t == "i32" and self.r.random() < .6 else [t]
    p, q = self.r.choice(of), self.r.choice(of)
    a, b = self.expr(p, (*shape[:-1], n), depth), self.expr(q, (*shape[:-2], n, shape[-1]), depth)
    return Value(f"dot({a.text}, {b.text})", t, shape, lambda e: a.run(e).astype(STORE[t]) @ b.run(e).astype(STORE[t]))


KNOWN = ["const int THREE = 3;", "const u8 FOUR = 4;", "const i64 LESS = -2;"]
# Integers that the compiler knows: how a program writes them, the value. The last ones need no name.
INTEGERS = [("THREE", 3), ("FOUR", 4), ("LESS", -2), ("(THREE * 2 + 1)", 7), ("(LESS + THREE)", 1), ("(FOUR / 3)", 1), ("(THREE == 3 ? FOUR : 0)", 4)]
# What may stand beside them: the text, the meaning; each exact where q is 4 or 1.
BESIDE = [("({a} + {q})", np.add), ("({q} - {a})", lambda a, q: q - a), ("({a} * {q})", np.multiply), ("max({a}, {q})", np.fmax), ("min({q}, {a})", np.fmin),
          ("({a} != {a} ? {q} : {a})", lambda a, q: np.where(a != a, q, a))]


def known(self, t, shape, depth):
    """An integer that the compiler knows, beside a float."""
    if t not in FLOATS and t != "bool":
        return None
    of = t if t in FLOATS else self.r.choice(FLOATS)
    text, q = self.r.choice(INTEGERS)
    self.functions += [line for line in KNOWN if line not in self.functions]
    a = self.small(self.expr(of, shape, depth), of)
    if t == "bool":
        return Value(f"({a.text} <= {text})", t, shape, lambda e: a.run(e) <= q)
    if q in (1, 4) and self.r.random() < .3:
        return Value(f"rint({a.text} / {text})", t, shape, lambda e: np.rint(a.run(e) / STORE[t](q)).astype(STORE[t]))
    f, mean = self.r.choice(BESIDE)
    return self.small(Value(f.format(a=a.text, q=text), t, shape, lambda e: mean(a.run(e), STORE[t](q)).astype(STORE[t])), t)


MAKERS = [known, floors, limited, exclusive, from_init, running, sorted_beside, rolled, weighed, whole_product]
