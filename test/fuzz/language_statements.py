"""Statements of random programs (language.py), and whole programs."""
import re

import numpy as np
from language_expressions import Expressions
from language_places import MAKERS as PLACES
from language_records import MAKERS as RECORDS
from language_values import bits, clamped, F8, FLOATS, INTS, is_int, SHAPES, slices, STORE, tile_of, Value, window


class Maker(Expressions):
    # ---- statements ---------------------------------------------------------------------------------------------------
    def declare(self, indent):
        t = self.r.choice(INTS + FLOATS + ["bool", "i32", "i32"] + F8)
        shape = self.r.choice(SHAPES)
        v = self.expr(t, shape, self.r.choice([0, 0, 1]))
        name = self.name("v")

        def step(e):
            e[name] = v.run(e)
        self.vars.append(Value(name, t, shape, lambda e: e[name]))
        how = self.r.choice(["auto", tile_of(t, shape)])
        return [f"{indent}{how} {name} = {v.text};"], [step]

    def assign(self, indent):
        if not self.vars or self.r.random() < .2:
            return self.memory(indent)
        var = self.r.choice([v for v in self.vars if v.text.startswith("v")] or self.vars)
        if not var.text.startswith("v"):
            return self.declare(indent)
        v = self.expr(var.type, var.shape, 2)
        name = var.text

        def step(e):
            e[name] = v.run(e)
        return [f"{indent}{name} = {v.text};"], [step]

    def memory(self, indent):
        """Stores to a scratch view and loads back in another shape."""
        r = self.r
        t, n = r.choice([s for s in INTS + FLOATS]), r.choice([24, 60, 96])
        name, got = self.name("m"), self.name("v")
        self.params.append(f"{t} {name}[{self.programs}, {name}_n]")
        self.arrays[name] = (t, self.data(t, (self.programs, n)))
        v, start, step_ = self.expr(t, (r.choice([8, 13, 24]),), 2), r.choice([0, -3, 5, n - 6]), r.choice([1, 1, 2])
        w = r.choice([(6, 4), (5,), (3, 2, 2)])
        mask = self.expr("bool", v.shape, 3) if r.random() < .4 else None
        scatter, turn = r.random() < .4, r.choice([1, 7, 11])
        perm = Value(f"((iota({v.shape[0]}) * {turn} + {start}) % {n} - 2)", "i32", v.shape, lambda e: np.fmod(np.arange(v.shape[0]) * turn + start, n) - 2)
        mult = r.choice([1, 5, 7, 11])
        at = f"({'reshape(iota(%d), %s)' % (int(np.prod(w)), ', '.join(map(str, w)))} * {mult} - 3)"
        atomic = is_int(t) and bits(t) >= 32 and r.random() < .4

        def step(e):
            m = e[name][e["pid"]]
            x = v.run(e)
            i = (perm.run(0) if scatter else start + np.arange(v.shape[0]) * step_)
            ok = (i >= 0) & (i < n) & (mask.run(e) if mask else True)
            m[i[ok]] = m[i[ok]] + x[ok] if atomic else x[ok]
            j = np.arange(int(np.prod(w))).reshape(w) * mult - 3
            okj = (j >= 0) & (j < n)
            e[got] = np.where(okj, m[np.clip(j, 0, n - 1)], np.zeros((), m.dtype))
        where = f"{name}[pid(0), {start} +: {v.shape[0]}" + (f" : {step_}]" if step_ > 1 else "]")
        if scatter:
            where = f"{name}[pid(0), {perm.text}]"
        masked = f", mask = {mask.text}" if mask else ""
        lines = [f"{indent}atomic_add({where}, {v.text}{masked});" if atomic else f"{indent}store({where}, {v.text}{masked});" if mask else f"{indent}{where} = {v.text};",
                 f"{indent}auto {got} = {name}[pid(0), {at}];"]
        self.vars.append(Value(got, t, w, lambda e: e[got]))
        return lines, [step]

    def block(self, indent, count):
        mark = len(self.vars)
        lines, steps = [], []
        for _ in range(count):
            more, run = self.statement(indent)
            lines += more
            steps += run
        self.vars = self.vars[:mark]
        return lines, steps

    def accumulate(self, indent):
        """A variable and a loop that adds products of loaded blocks to it."""
        r, got, i = self.r, self.name("v"), self.name("loop")
        t, m, n, k = r.choice(["f32", "i32", "f64"]), r.choice([1, 7, 16, 32]), r.choice([8, 16, 24]), r.choice([3, 8, 16, 32])
        p = r.choice({"i32": ["i8", "u8"], "f32": ["f16", "bf16", "f32"], "f64": ["f64"]}[t])
        trips, hint = r.choice([0, 1, 2, 5]), r.choice(["", " pipeline", " pipeline(2)", " pipeline(4)", " unroll(2)", " unroll"])
        mark = len(self.vars)
        self.vars.append(Value(i, "i32", (), lambda e: np.int32(e[i])))
        a, b = (self.fresh_load(p, s) if r.random() < .7 else self.expr(p, s, 2) for s in ((m, k), (k, n)))
        extra = self.expr("bool", (), 3)
        self.vars = self.vars[:mark]
        cut = (lambda v: f"clamp({v.text}, -2, 2)" if not is_int(p) else v.text)
        lim = (lambda x: clamped(x, 2).astype(np.float64) if not is_int(p) else x.astype(np.int64))
        how = r.choice(["plain", "if", "sum"])

        def step(e):
            x = np.zeros((m, n), STORE[t])
            for j in range(trips):
                e[i] = j
                if how == "if" and not extra.run(e):
                    continue
                x = (x + (lim(a.run(e)) @ lim(b.run(e)))).astype(STORE[t])
                if how == "sum":
                    x = clamped(x, 1000) if t != "i32" else x ^ np.int32(j)
            e[got] = x
        add = f"{got} = dot({cut(a)}, {cut(b)}, {got});"
        body = {"plain": add, "if": f"if ({extra.text}) {add}", "sum": add + (f" {got} = clamp({got}, -1000, 1000);" if t != "i32" else f" {got} ^= {i};")}[how]
        self.vars.append(Value(got, t, (m, n), lambda e: e[got]))
        return [f"{indent}{tile_of(t, (m, n))} {got};", f"{indent}for (int {i} : range({trips})){hint} {{ {body} }}"], [step]

    def operand(self, t, shape, bound):
        """A block for a product: loaded, turned, widened, looked up or computed, within what sums keep exact."""
        r, k = self.r, self.r.random()
        if k < .5:
            v = self.fresh_load(t, shape)
        elif k < .65:
            u = self.fresh_load(t, shape[::-1])
            v = Value(f"trans({u.text})", t, shape, lambda e: u.run(e).T)
        elif k < .8 and t in ("f16", "bf16", "f32"):
            u = self.fresh_load(r.choice(["i8", "u8"]), shape)
            v = Value(f"cast({u.text} & 3, {t})", t, shape, lambda e: (u.run(e) & 3).astype(STORE[t]))
        else:
            v = self.expr(t, shape, 2)
        return v if is_int(t) else Value(f"clamp({v.text}, -{bound}, {bound})", t, shape, lambda e: clamped(v.run(e), bound).astype(STORE[t]))

    def action(self, i, states):
        """(line, step) of one thing that a pipelined loop does."""
        r, k = self.r, self.r.random()
        name = self.name("v")
        if k < .5:
            t, m, n, q = r.choice(["f32", "f32", "i32", "f64"]), r.choice([1, 5, 16, 32, 64]), r.choice([8, 16, 24, 32]), r.choice([1, 8, 16, 24, 32])
            p = r.choice({"i32": ["i8", "u8"], "f32": ["f16", "bf16", "f32"], "f64": ["f64"]}[t])
            a, b = self.operand(p, (m, q), 2), self.operand(p, (q, n), 2)
            states.append(Value(name, t, (m, n), lambda e: e[name]))

            def step(e):
                wide = np.int64 if t == "i32" else np.float64
                e[name] = (e[name] + a.run(e).astype(wide) @ b.run(e).astype(wide)).astype(STORE[t])
            return f"{name} = dot({a.text}, {b.text}, {name});", step
        if k < .7:
            t, shape = r.choice(["i32", "u16", "i64", "u8"]), r.choice([(32,), (5, 9), (16, 16), (100,)])
            v, op = self.expr(t, shape, 2), r.choice(["+", "^"])
            states.append(Value(name, t, shape, lambda e: e[name]))

            def step(e):
                e[name] = (e[name] + v.run(e) if op == "+" else e[name] ^ v.run(e)).astype(STORE[t])
            return f"{name} {op}= {v.text};", step
        if k < .85:
            v = self.fresh_load(r.choice(["i8", "i32", "u16"]), (8, r.choice([5, 16, 40])))
            states.append(Value(name, "i32", (8,), lambda e: e[name]))

            def step(e):
                e[name] = np.maximum(e[name], v.run(e).astype(np.int32).sum(1, dtype=np.int32))
            return f"{name} = max({name}, sum(cast({v.text}, i32), axis = 1));", step
        # what a trip stores the next reads
        memory, t, n = self.name("m"), r.choice(["i32", "f16", "u8", "f64"]), r.choice([8, 13, 32])
        self.params.append(f"{t} {memory}[{self.programs}, {memory}_n]")
        self.arrays[memory] = (t, self.data(t, (self.programs, 90)))
        back, by, v = r.choice([0, 1, n, -3]), r.choice([1, n, 5]), self.expr(t, (n,), 3)
        states.append(Value(name, t, (n,), lambda e: e[name]))

        def step(e):
            m, at = e[memory][e["pid"]], int(e[i]) * by
            old = window(m, [at - back], (n,), (1,))[0]
            index = at + np.arange(n)
            ok = (index >= 0) & (index < 90)
            m[index[ok]] = np.fmax(old, v.run(e))[ok]
            e[name] = old
        return f"{name} = {memory}[pid(0), {i} * {by} - {back} +: {n}]; {memory}[pid(0), {i} * {by} +: {n}] = max({name}, {v.text});", step

    def pipelined(self, indent):
        """A loop of products, sums and memory, with any bounds, hints and exits."""
        r, i = self.r, self.name("loop")
        n = self.scalar(3)
        lo, by = r.choice([0, 0, 2, -3]), r.choice([1, 1, 2, 16, -1])
        runs_to = r.choice([None, 0, 1, 3, 6])  # None: known at run time only
        states, actions, mark = [], [], len(self.vars)
        self.vars.append(Value(i, "i32", (), lambda e: np.int32(e[i])))
        for _ in range(r.randrange(1, 4)):
            actions.append(self.action(i, states))
        end = self.expr("bool", (), 3) if r.random() < .3 else None
        word, at = r.choice(["break", "continue"]), r.randrange(len(actions) + 1)
        under = self.expr("bool", (), 3) if r.random() < .2 else None
        self.vars = self.vars[:mark]
        hint = r.choice(["", "", " pipeline", " pipeline", " pipeline(2)", " pipeline(4)", " unroll(2)", " pipeline(3) unroll(2)", " specialize"])
        hi = f"{lo} + {by} * (({n.text}) & 3)" if runs_to is None else str(lo + by * runs_to)
        lines = [line for line, _ in actions]
        if under:
            lines[-1] = f"if ({under.text}) {{ {lines[-1]} }}"
        if end:
            lines.insert(at, f"if ({end.text}) {word};")

        def step(e):
            for v in states:
                e[v.text] = np.zeros(v.shape, STORE[v.type])
            stop = lo + by * (int(n.run(e)) & 3) if runs_to is None else lo + by * runs_to
            for j in range(lo, stop, by):
                e[i] = j
                for k, (_, run) in enumerate(actions):
                    if end is not None and k == at and end.run(e):
                        break
                    if under is None or k < len(actions) - 1 or under.run(e):
                        run(e)
                else:
                    if end is None or at < len(actions) or not end.run(e) or word == "continue":
                        continue
                    break
                if word == "break":
                    break
        out = [f"{indent}{tile_of(v.type, v.shape)} {v.text};" for v in states]
        out += [f"{indent}for (int {i} : range({lo}, {hi}, {by})){hint} {{", *[f"{indent}    {line}" for line in lines], f"{indent}}}"]
        self.vars += states
        return out, [step]

    def record(self, indent):
        """Variables go through a struct, whose fields change."""
        r = self.r
        some = [v for v in self.vars if v.text.startswith("v")]
        if len(some) < 2:
            return self.declare(indent)
        given = r.sample(some, min(len(some), r.randrange(2, 4)))
        name, var = self.name("pack"), self.name("s")
        fields = [f"f{k}" for k in range(len(given))]
        self.functions.append(f"struct {name} {{ {' '.join(f'{tile_of(v.type, v.shape)} {f};' for v, f in zip(given, fields))} }};\n"
                              f"struct {name} turn_{name}(struct {name} p, bool c) {{ if (c) {{ auto t = p.f0; p.f0 = t; return p; }} p.f1 = p.f1; return p; }}")
        c, k = self.expr("bool", (), 3), r.randrange(len(given))
        new = self.expr(given[k].type, given[k].shape, 2)

        def step(e):
            values = [v.run(e) for v in given]
            if c.run(e):
                values[k] = new.run(e)
            for v, x in zip(given, values):
                e[v.text] = x
        out = [f"{indent}struct {name} {var} = {{{', '.join(v.text for v in given)}}};", f"{indent}if ({c.text}) {var}.f{k} = {new.text};", f"{indent}{var} = turn_{name}({var}, {c.text});"]
        return out + [f"{indent}{v.text} = {var}.{f};" for v, f in zip(given, fields)], [step]

    def within(self, indent):
        """A function among the statements, which sees its variables as they are when it is called."""
        r, f, got = self.r, self.name("inner"), self.name("v")
        t, shape = r.choice(INTS + FLOATS), r.choice(SHAPES)
        v = self.expr(t, shape, 2)
        lines, steps = self.assign(indent)

        def step(e):
            e[got] = v.run(e)
        self.vars.append(Value(got, t, shape, lambda e: e[got]))
        body = f"auto deep() {{ return {v.text}; }} return deep();" if r.random() < .3 else f"return {v.text};"
        return [f"{indent}{tile_of(t, shape)} {f}() {{ {body} }}", *lines, f"{indent}auto {got} = {f}();"], [*steps, step]

    def branch(self, indent):
        c = self.expr("bool", (), 2)
        a_lines, a = self.block(indent + "    ", self.r.randrange(1, 3))
        b_lines, b = self.block(indent + "    ", self.r.randrange(0, 3))

        def step(e):
            for s in a if c.run(e) else b:
                s(e)
        return [f"{indent}if ({c.text}) {{", *a_lines, f"{indent}}} else {{", *b_lines, f"{indent}}}"], [step]

    def loop(self, indent):
        r, i = self.r, self.name("loop")
        lo, hi, by = r.choice([(0, 3, 1), (2, -4, -2), (5, 5, 1), (-3, 9, 5), (0, 1, 1)])
        mark = len(self.vars)
        self.vars.append(Value(i, "i32", (), lambda e: np.int32(e[i])))
        end = self.expr("bool", (), 2) if r.random() < .4 else None
        word = r.choice(["break", "continue"])
        lines, steps = self.block(indent + "    ", r.randrange(1, 3))
        more, rest = self.block(indent + "    ", r.randrange(0, 2))
        self.vars = self.vars[:mark]
        hint = r.choice(["", "", " unroll(2)", " pipeline", " nounroll", " unroll"])

        def step(e):
            for k in range(lo, hi, by):
                e[i] = k
                for s in steps:
                    s(e)
                if end is not None and end.run(e):
                    if word == "break":
                        break
                    continue
                for s in rest:
                    s(e)
        exit_ = [f"{indent}    if ({end.text}) {word};"] if end is not None else []
        return [f"{indent}for (int {i} : range({lo}, {hi}, {by})){hint} {{", *lines, *exit_, *more, f"{indent}}}"], [step]

    def call(self, indent):
        """A function of some variables that returns early or late."""
        some = [v for v in self.vars if v.text.startswith("v")]
        if not some:
            return self.declare(indent)
        given = self.r.sample(some, min(len(some), self.r.randrange(1, 4)))
        name, got = self.name("g"), self.name("v")
        names = [self.name("v") for _ in given]
        saved, self.vars = self.vars, [Value(n, v.type, v.shape, (lambda n: lambda e: e[n])(n)) for n, v in zip(names, given)]
        out = self.r.choice(given)
        early = self.expr("bool", (), 2)
        lines, steps = self.block("    ", self.r.randrange(1, 3))
        first = self.expr(out.type, out.shape, 2)
        last = self.expr(out.type, out.shape, 2)
        self.vars = saved
        views = []
        text = " ".join([*lines, early.text, first.text, last.text])
        for p in self.params:  # the views that the body uses are passed on
            p = p.split(" = ")[0]
            n = p.split("[")[0].split()[-1]
            if re.search(rf"\b{n}\b", text):
                views.append((n, p))
        typed = ", ".join([f"{tile_of(v.type, v.shape)} {n}" if self.r.random() < .5 else f"auto {n}" for n, v in zip(names, given)] + [p for _, p in views])
        self.functions.append(f"auto {name}({typed}) {{\n    if ({early.text}) return {first.text};\n" + "\n".join(lines) + f"\n    return {last.text};\n}}")
        gets = [v for v in given]

        def step(e):
            for n, v in zip(names, gets):
                e[n] = v.run(e)
            if early.run(e):
                e[got] = first.run(e)
                return
            for s in steps:
                s(e)
            e[got] = last.run(e)
        self.vars.append(Value(got, out.type, out.shape, lambda e: e[got]))
        return [f"{indent}auto {got} = {name}({', '.join([v.text for v in given] + [n for n, _ in views])});"], [step]

    def statement(self, indent):
        self.depth += 1
        k = self.r.random()
        if self.loops and self.depth < 3 and k < .8:
            out = self.pipelined(indent)
        elif self.depth > 3 or k < .3:
            out = self.declare(indent) if k < .5 else self.assign(indent)
        elif k < .45:
            out = self.assign(indent)
        elif k < .55:
            out = self.branch(indent)
        elif k < .58:
            out = self.accumulate(indent)
        elif k < .61:
            out = self.pipelined(indent)
        elif k < .64:
            out = self.record(indent)
        elif k < .67:
            out = self.within(indent)
        elif k < .88:
            make = self.r.choice(PLACES + RECORDS)
            self.used.add(make.__name__)
            out = make(self, indent)
        elif k < .95:
            out = self.loop(indent)
        else:
            out = self.call(indent)
        self.depth -= 1
        return out

    def program(self):
        """(text, arrays by name, expected by name)"""
        lines, steps = [], []
        for _ in range(self.r.randrange(3, 8)):
            more, run = self.statement("    ")
            lines += more
            steps += run
        for k, v in enumerate([v for v in self.vars if v.text.startswith("v") and len(v.shape) < 5][-6:]):
            y, shape = f"y{k}", v.shape or (1,)
            self.params.append(f"{v.type} {y}[{', '.join(f'{y}_{d}' for d in range(len(shape) + 1))}]")
            self.arrays[y] = (v.type, np.full((self.programs, *shape), 77 if v.type != "bool" else 0).astype(STORE[v.type]))
            first = self.r.choice(["pid(0)", "pid(0)", "pid(0) +: 1"])
            lines.append(f"    {y}[{first}, {slices(v.shape) or '0'}] = {v.text};" if v.shape or "+" not in first else f"    {y}[{first}, 0 +: 1] = {v.text};")
            steps.append((lambda y, v, shape: lambda e: e[y].__setitem__(e["pid"], np.asarray(v.run(e)).reshape(shape)))(y, v, shape))
        e = {n: a.copy() for n, (_, a) in self.arrays.items()}
        for pid in range(self.programs):
            e["pid"] = pid
            for s in steps:
                s(e)
        head = "\n".join(self.functions)
        text = f"{head}\nkernel k({', '.join(self.params)})\n    grid({self.programs})\n{{\n" + "\n".join(lines) + "\n}\n"
        written = [n for n in self.arrays if n[0] in "my"]
        return text, self.arrays, {n: e[n] for n in written}
