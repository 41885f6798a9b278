"""Statements of random programs (language.py) about structs, local arrays and functions among the statements. Each function makes
(lines, steps), as the methods of Maker do."""
import numpy as np
from language_values import F8, FLOATS, INTS, is_int, SHAPES, STORE, tile_of, to, Value

FEW = [s for s in SHAPES if np.prod(s) <= 64]


def bound(self, name, t, shape):
    """The variable of the name, from now on."""
    self.vars.append(Value(name, t, shape, lambda e: e[name]))
    return self.vars[-1]


def step_of(name, v):
    def step(e):
        e[name] = v.run(e)
    return step


def number(self, t):
    """A small number of the type: (its text in the language, on the command line, its value)."""
    if t == "bool":
        x = self.r.random() < .5
        return str(x).lower(), str(int(x)), np.bool_(x)
    x = self.r.randrange(0 if t[0] == "u" else -4, 8)
    return str(x), str(x), to(x, t)[()]


def mixed(self, a, b, t, shape):
    """a and b, values of one type, in one."""
    if is_int(t):
        return Value(f"({a.text} ^ {b.text})", t, shape, lambda e: a.run(e) ^ b.run(e))
    if t == "bool":
        return Value(f"({a.text} != {b.text})", t, shape, lambda e: a.run(e) != b.run(e))
    return Value(f"max({a.text}, {b.text})", t, shape, lambda e: np.fmax(a.run(e), b.run(e)))


# ---- local arrays ---------------------------------------------------------------------------------------------------
def element(self, array, count, t, shape):
    """(text, get, set) of an element, or of one for each lane; get and set take the array as [count, *shape]."""
    r, k = self.r, self.r.random()
    if k < .35:
        i = r.randrange(count)
        return f"{array}[{i}]", lambda e, a: a[i], lambda e, a, x: a.__setitem__(i, x)
    i = self.expr(r.choice(["i32", "i32", "u8", "i64"]), shape if shape and k > .65 else (), 3)
    text = f"{array}[({i.text} & 127) % {count}]"

    def at(e):
        return (i.run(e) & STORE[i.type](127)).astype(np.int64) % count
    if not i.shape:
        return text, lambda e, a: a[int(at(e))], lambda e, a, x: a.__setitem__(int(at(e)), x)
    self.used.add("array elements by lanes")
    lanes = np.indices(shape)
    return text, lambda e, a: a[(at(e), *lanes)], lambda e, a, x: a.__setitem__((at(e), *lanes), x)


def arrays(self, indent):
    """A local array, changed by known, scalar and tile indices, by a loop, a branch and a function; then an element."""
    r, name, got = self.r, self.name("a"), self.name("v")
    t, shape, count = r.choice([*INTS, *FLOATS, "bool", *F8]), r.choice(FEW), r.choice([1, 2, 3, 4, 7, 33, 40])
    first = [self.expr(t, shape, 2) for _ in range(r.randrange(min(count, 3) + 1))]
    lines = [f"{tile_of(t, shape)} {name}[{count}]{' = {' + ', '.join(v.text for v in first) + '}' if first or r.random() < .3 else ''};"]

    def begin(e):
        e[name] = np.zeros((count, *shape), STORE[t])
        for k, v in enumerate(first):
            e[name][k] = v.run(e)
    steps = [begin]
    for _ in range(r.randrange(1, 4)):
        (text, _, put), v, how = element(self, name, count, t, shape), self.expr(t, shape, 2), r.choice(["plain", "plain", "if", "loop", "copy", "call"])
        c, loop, other = self.expr("bool", (), 3), self.name("loop"), self.name("a")
        if how == "call":
            f = f"auto put_{name}_{loop}(auto a, int i, auto x) {{ if (i > {count // 2}) a[i % {count}] = x; return a; }}"
            self.functions.append(f)
            i = self.scalar(3)
            lines.append(f"{name} = put_{name}_{loop}({name}, {i.text} & 63, {v.text});")

            def step(e, v=v, i=i):
                at = int(i.run(e)) & 63
                if at > count // 2:
                    e[name] = e[name].copy()
                    e[name][at % count] = v.run(e)
        elif how == "loop":
            lines.append(f"for (int {loop} : range({count})) if ({loop} % 3 != 1) {name}[{loop}] = {loop} == 0 ? {v.text} : {name}[{loop} / 2];")

            def step(e, v=v):
                for k in range(count):
                    if k % 3 != 1:
                        e[name][k] = v.run(e) if k == 0 else e[name][k // 2]
        elif how == "copy":
            lines += [f"auto {other} = {name};", f"{text} = {v.text};", f"if ({c.text}) {name} = {other};"]

            def step(e, v=v, put=put, c=c):
                old = e[name].copy()
                put(e, e[name], v.run(e))
                if c.run(e):
                    e[name] = old
        else:
            lines.append(f"if ({c.text}) {text} = {v.text};" if how == "if" else f"{text} = {v.text};")

            def step(e, v=v, put=put, c=c, how=how):
                if how == "plain" or c.run(e):
                    put(e, e[name], v.run(e))
        steps.append(step)
    text, get, _ = element(self, name, count, t, shape)

    def last(e):
        e[got] = np.array(get(e, e[name]))
    bound(self, got, t, shape)
    return [indent + line for line in [*lines, f"auto {got} = {text};"]], [*steps, last]


# ---- structs --------------------------------------------------------------------------------------------------------
def options(self, indent):
    """A struct of options, with defaults, given as an argument, a constant, a kernel's parameter or on the command line."""
    r, name, got = self.r, self.name("opt"), self.name("v")
    t, shape = r.choice(INTS + FLOATS), r.choice(FEW)
    types = {"n": "i32", "w": t, "on": "bool", "m": r.choice(INTS)}
    default = {f: number(self, u) for f, u in types.items()}
    default["n"] = (lambda k: (str(k), str(k), np.int32(k)))(r.randrange(1, 5))
    given = {f: number(self, types[f]) for f in r.sample(["w", "on", "m"], r.randrange(0, 4))}
    listed = f"{{{', '.join(f'{f} = {x[0]}' for f, x in given.items())}}}"
    v, w = self.expr(t, shape, 2), self.expr(t, shape, 2)
    self.functions.append(
        f"struct {name} {{ {' '.join(f'{u} {f} = {default[f][0]};' for f, u in types.items())} }};\n"
        f"auto use_{name}(auto x, auto y, const {name} o{f' = {listed}' if r.random() < .5 else ''}) {{\n"
        f"    static if (o.on) {{ tile<i32, o.n> t = o.n; x = min(x, max(cast(sum(t) - 4 + cast(o.m % 3, i32), {t}), o.w)); }}\n    return o.on && o.w == 3 ? y : x;\n}}")
    how, o = r.choice(["argument", "constant", "inner constant", "parameter", "command line"]), self.name("o")
    lines = []
    if how == "argument":
        argument = f"(struct {name}){listed}"
    elif how == "inner constant":
        argument = o
        lines.append(f"const {name} {o} = {listed};")
    elif how == "constant":
        argument = o
        self.functions.append(f"const {name} {o} = {listed};")
    else:
        argument = o
        self.params.append(f"const {name} {o}" + (f" = {listed}" if how == "parameter" else ""))
        for f, x in given.items() if how == "command line" else ():
            self.words += ["--const", f"{r.choice(['', 'k.'])}{o}.{f}={x[1]}"]
    o = {f: x[2] for f, x in {**default, **given}.items()}
    self.used.add(f"options: {how}")

    def run(e):
        x = v.run(e)
        if o["on"]:
            x = np.fmin(x, np.fmax(to(np.array(int(o["n"])**2 - 4 + int(np.fmod(int(o["m"]), 3))), t), o["w"])).astype(STORE[t])
        return w.run(e) if o["on"] and o["w"] == 3 else x
    bound(self, got, t, shape)
    return [*(indent + line for line in lines), f"{indent}auto {got} = use_{name}({v.text}, {w.text}, {argument});"], [step_of(got, Value("", t, shape, run))]


def passed(self, indent):
    """A struct that is a parameter of the kernel at run time."""
    r, name, s, got = self.r, self.name("of"), self.name("s"), self.name("v")
    t, shape = r.choice(INTS + FLOATS), r.choice(FEW)
    fields = {"w": t, "on": "bool", "n": "i32", "q": r.choice(INTS + FLOATS)}
    default, given = ({f: number(self, u) for f, u in fields.items()} for _ in range(2))
    shown = [f for f in fields if r.random() < .6]
    self.functions.append(f"struct {name} {{ {' '.join(f'{u} {f}' + ('' if f in shown and r.random() < .5 else f' = {default[f][0]}') + ';' for f, u in fields.items())} }};")
    self.params.append(f"{name} {s}")
    self.words += [f"{s}.{f}={given[f][1]}" for f in shown]
    x = {f: given[f][2] if f in shown else default[f][2] for f in fields}
    v = self.expr(t, shape, 2)
    copy, n = self.name("t"), self.scalar(3)
    more = Value(f"{copy}.w", t, (), lambda e: x["w"])
    both = mixed(self, v, more, t, shape)
    for f, u in fields.items():
        self.vars.append(Value(f"{s}.{f}", u, (), lambda e, f=f: x[f]))

    def step(e):
        e[got] = (both if x["on"] or int(to(n.run(e) + x["n"], "i32")) > 5 else v).run(e)
    bound(self, got, t, shape)
    return [f"{indent}{name} {copy} = {s};", f"{indent}{copy}.n += {n.text};",
            f"{indent}auto {got} = {copy}.on || {copy}.n > 5 ? {both.text} : {v.text};"], [step]


def records(self, indent):
    """A struct of auto fields: a function, a tile and a view."""
    r, name, s, got = self.r, self.name("any"), self.name("s"), self.name("v")
    t, shape, n = r.choice(INTS + FLOATS), r.choice(FEW), r.choice([24, 30])
    v, w, seen = self.expr(t, shape, 2), self.expr(t, (), 2), self.name("w")
    memory = self.name("m")
    self.params.append(f"{t} {memory}[{self.programs}, {memory}_n]")
    self.arrays[memory] = (t, self.data(t, (self.programs, n)))
    call = f"call_{name}"
    self.functions.append(f"struct {name} {{ auto f; auto x; int n = 2; auto m; }};\nauto {call}(auto o, auto x) {{ return o.f(o.n > 2 ? x : o.x); }}")
    a, one = Value("p", t, shape, lambda e: e["p"]), Value(seen, t, (), lambda e: e[seen])
    body = mixed(self, a, one, t, shape)
    k = r.choice([2, 3])
    function, lines = f"fn (p) => {body.text}", [f"auto {seen} = {w.text};"]
    if r.random() < .5:
        function = self.name("fun")
        lines.append(f"auto {function}(auto p) {{ return {body.text}; }}")
    late, c = self.expr(t, shape, 3), self.expr("bool", (), 3)
    count = int(np.prod(shape))
    flat = f"reshape({got}, {count})" if len(shape) != 1 and shape else got
    width = f"0 +: {count}" if shape else "0"
    lines += [f"{name} {s} = {{f = {function}, x = {v.text}, m = {memory}{f', n = {k}' if k > 2 else ''}}};", f"if ({c.text}) {s}.x = {late.text};", f"auto {got} = {call}({s}, {late.text});",
              f"{s}.m[pid(0), {width}] = {flat};"]

    def step(e):
        e[seen] = w.run(e)
        x = late.run(e) if k > 2 or c.run(e) else v.run(e)
        e["p"] = x
        e[got] = body.run(e)
        m = e[memory][e["pid"]]
        m[:min(count, n)] = np.asarray(e[got]).reshape(-1)[:n]
    bound(self, got, t, shape)
    return [indent + line for line in lines], [step]


# ---- functions among the statements ---------------------------------------------------------------------------------
def nested(self, indent):
    """A function with parameters, which sees variables around it; called twice, the variables changed between."""
    r, f, p, q, got, then = self.r, self.name("near"), self.name("p"), self.name("p"), self.name("v"), self.name("v")
    t, shape = r.choice(INTS + FLOATS), r.choice(FEW)
    of, at = r.choice(INTS + FLOATS + ["bool"]), r.choice([(), shape])
    mark = len(self.vars)
    self.vars += [Value(p, t, shape, lambda e: e[p]), Value(q, of, at, lambda e: e[q])] * 2
    early, first, last = self.expr("bool", (), 3), self.expr(t, shape, 2), self.expr(t, shape, 1)
    del self.vars[mark:]
    passed_on = r.random() < .3
    if passed_on:
        twice = "auto through(auto x, auto y, const fn g) { return g(x, y); }"
        if twice not in self.functions:
            self.functions.append(twice)
    call = f"through({{}}, {{}}, {f})" if passed_on else f"{f}({{}}, {{}})"

    def make(name):
        a, b = self.expr(t, shape, 2), self.expr(of, at, 2)

        def step(e):
            e[p], e[q] = a.run(e), b.run(e)
            e[name] = first.run(e) if early.run(e) else last.run(e)
        return f"{indent}auto {name} = {call.format(a.text, b.text)};", step
    one = make(got)
    bound(self, got, t, shape)
    lines, steps = self.assign(indent)
    two = make(then)
    bound(self, then, t, shape)
    typed = r.choice([f"{tile_of(t, shape)} {p}, auto {q}", f"auto {p}, {tile_of(of, at)} {q}"])
    self.used |= {"nested through const fn"} if passed_on else set()
    return [f"{indent}auto {f}({typed}) {{ if ({early.text}) return {first.text}; return {last.text}; }}", one[0], *lines, two[0]], [one[1], *steps, two[1]]


# (text, meaning) of functions of lanes p, q and a scalar d that they see, in which any order of combination gives the same
COMBINE = [("p + q + {d}", lambda p, q, d: p + q + d), ("p ^ {d} ^ q", lambda p, q, d: p ^ q ^ d),
           ("max(p, min(q, {d}))", lambda p, q, d: np.maximum(p, np.minimum(q, d)))]


def combined(self, indent):
    """A scan or reduction by a function that sees a scalar of run time."""
    r, got, f, d = self.r, self.name("v"), self.name("mix"), self.name("d")
    t, shape = r.choice(["i32", "u32", "i64", "u64"]), r.choice([s for s in FEW if s])
    v, w, k = self.expr(t, shape, 2), self.expr(t, (), 3), self.axis(shape)
    scan = r.random() < .5
    text, mean = r.choice(COMBINE if scan else COMBINE[:2])
    body = text.format(d=d)
    lines, function = [f"auto {d} = {w.text};"], f"fn (p, q) => {body}"
    if r.random() < .5:
        function = f
        lines.append(f"auto {f}(auto p, auto q) {{ return {body}; }}")
    back = scan and r.random() < .4

    def step(e):
        x, seen = np.moveaxis(v.run(e), k, 0), w.run(e)
        x = (x[::-1] if back else x).copy()
        for i in range(1, len(x)):
            x[i] = mean(x[i - 1], x[i], seen)
        e[got] = np.moveaxis(x[::-1] if back else x, 0, k) if scan else x[-1]
    lines.append(f"auto {got} = {'scan' if scan else 'reduce'}({v.text}, {k}, {function}{', reverse = true' if back else ''});")
    bound(self, got, t, shape if scan else (*shape[:k], *shape[k + 1:]))
    self.used.add("fn without a name" if function != f else "nested as combination")
    return [indent + line for line in lines], [step]


def storing(self, indent):
    """A function among the statements that stores through a view it sees, in a loop."""
    r, f, i, got = self.r, self.name("put"), self.name("loop"), self.name("v")
    t, n, w = r.choice(INTS + FLOATS), r.choice([24, 30]), r.choice([5, 8])
    memory = self.name("m")
    self.params.append(f"{t} {memory}[{self.programs}, {memory}_n]")
    self.arrays[memory] = (t, self.data(t, (self.programs, n)))
    self.vars.append(Value(i, "i32", (), lambda e: np.int32(e[i])))
    v, by = self.expr(t, (w,), 2), r.choice([1, 3, w])
    self.vars.pop()

    def step(e):
        m = e[memory][e["pid"]]
        for e[i] in range(4):
            at = e[i] * by - 1 + np.arange(w)
            ok = (at >= 0) & (at < n)
            m[at[ok]] = v.run(e)[ok]
        e[got] = m[:w].copy()
    lines = [f"void {f}(int at, auto x) {{ {memory}[pid(0), at +: {w}] = x; }}", f"for (int {i} : range(4)) {f}({i} * {by} - 1, {v.text});", f"auto {got} = {memory}[pid(0), 0 +: {w}];"]
    bound(self, got, t, (w,))
    return [indent + line for line in lines], [step]


MAKERS = [arrays, arrays, options, passed, records, nested, combined, storing]
