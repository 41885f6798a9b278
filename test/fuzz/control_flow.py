#!/usr/bin/env python3
"""Random programs of nested ifs, loops, break, continue and return, run by `tilec run` and by the small interpreter below.

    control_flow.py FIRST COUNT [--device ref] [--tilec tilec] [--keep DIR]

Program number s depends on s only. A program that differs is printed (and kept with --keep); exit status 1 then.
All values stay small (every operation is taken modulo 97), so C and Python agree.
"""
import argparse
import random
import subprocess
import sys
import tempfile


class Break(Exception):
    pass


class Continue(Exception):
    pass


class Return(Exception):
    def __init__(self, value):
        self.value = value


# ---- making ---------------------------------------------------------------------------------------------------------
class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.slots = self.names = 0
        self.functions = {}

    def expr(self, names, depth=0):
        r, k = self.random, self.random.random()
        if k < .35 or depth > 2:
            return ("var", r.choice(names))
        if k < .5:
            return ("num", r.randrange(-9, 10))
        if k < .58 and self.functions and depth < 2:
            return ("call", r.choice(sorted(self.functions)), [self.expr(names, depth + 1) for _ in range(2)])
        if k < .68:
            return ("?", self.cond(names, depth + 1), self.expr(names, depth + 1), self.expr(names, depth + 1))
        return ("op", r.choice("+-*"), self.expr(names, depth + 1), self.expr(names, depth + 1))

    def cond(self, names, depth=0):
        r = self.random
        if depth < 2 and r.random() < .3:
            return (r.choice(["&&", "||"]), self.cond(names, depth + 1), self.cond(names, depth + 1))
        return ("cmp", r.choice(["<", ">", "==", "!="]), self.expr(names, depth + 1), self.expr(names, depth + 1))

    def block(self, names, depth, loop, inside):
        names = list(names)
        return [self.stmt(names, depth, loop, inside) for _ in range(self.random.randrange(1, 5))]

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def stmt(self, names, depth, loop, inside):
        """`inside`: in a function, where results are returned; else in the kernel, where they are stored"""
        r, k = self.random, self.random.random()
        target = r.choice([n for n in names if n[0] != "c"])
        if k < .22 or (depth >= 3 and k >= .48) or (inside and .22 <= k < .3):
            return ("set", target, self.expr(names))
        if k < .3:
            self.slots += 1
            return ("store", self.slots - 1, self.expr(names))
        if k < .35:
            e, n = self.expr(names), self.name("w")
            names.append(n)
            return ("declare", n, e)
        if k < .44 and loop:
            return ("if", [(self.cond(names), [("break",) if k < .4 else ("continue",)])], None)
        if k < .48:
            return ("if", [(self.cond(names), [("return", self.expr(names) if inside else None)])], None)
        if k < .68:
            arms = [(self.cond(names), self.block(names, depth + 1, loop, inside)) for _ in range(r.choice([1, 1, 1, 2, 3]))]
            return ("if", arms, self.block(names, depth + 1, loop, inside) if r.random() < .5 else None)
        i = self.name("k")
        if k < .78:
            return ("range", i, r.randrange(-2, 3), r.randrange(-2, 6), r.choice([1, 1, 2, -1]), self.block(names + [i], depth + 1, True, inside))
        if k < .86:
            body = self.block(names + [i] if r.random() < .5 else names, depth + 1, True, inside)
            return ("for", i, r.randrange(0, 3), r.randrange(0, 5), r.choice([1, 2]), body)
        if k < .94:
            return ("while", i, r.randrange(1, 5), self.cond(names), self.block(names, depth + 1, True, inside))
        return ("static", "c" + i, r.randrange(0, 4), self.block(names + ["c" + i], depth + 1, loop, inside))

    def program(self):
        """functions, the kernel's body, the number of its results"""
        for n in range(self.random.randrange(0, 3)):
            self.functions[f"f_{n}"] = self.block(["a", "b"], 1, False, True) + self.block(["a", "b"], 1, False, True)
        body = [self.stmt(["x", "y", "z"], 0, False, False) for _ in range(self.random.randrange(2, 6))]
        body += [("store", self.slots + i, ("var", v)) for i, v in enumerate("xyz")]
        return self.functions, body, self.slots + 3


# ---- as text --------------------------------------------------------------------------------------------------------
def expr_text(e):
    if e[0] == "var":
        return e[1]
    if e[0] == "num":
        return f"({e[1]})"
    if e[0] == "call":
        return f"{e[1]}({expr_text(e[2][0])}, {expr_text(e[2][1])})"
    if e[0] == "?":
        return f"({cond_text(e[1])} ? cast({expr_text(e[2])}, i32) : {expr_text(e[3])})"
    return f"((i32)({expr_text(e[2])} {e[1]} {expr_text(e[3])}) % 97)"


def cond_text(c):
    if c[0] == "cmp":
        return f"(cast({expr_text(c[2])}, i32) {c[1]} {expr_text(c[3])})"
    return f"({cond_text(c[1])} {c[0]} {cond_text(c[2])})"


def stmt_text(s, pad):
    def body(block):
        return f" {{\n{block_text(block, pad + '    ')}{pad}}}\n"

    if s[0] == "set":
        return f"{pad}{s[1]} = {expr_text(s[2])};\n"
    if s[0] == "store":
        return f"{pad}o[{s[1]}] = {expr_text(s[2])};\n"
    if s[0] == "declare":
        return f"{pad}int {s[1]} = {expr_text(s[2])};\n"
    if s[0] in ("break", "continue"):
        return f"{pad}{s[0]};\n"
    if s[0] == "return":
        return f"{pad}return{'' if s[1] is None else ' ' + expr_text(s[1])};\n"
    if s[0] == "if":
        text = pad + f"{pad}else ".join(f"if {cond_text(c)}{body(b)}" for c, b in s[1])
        return text + (f"{pad}else{body(s[2])}" if s[2] is not None else "")
    if s[0] == "range":
        return f"{pad}for (int {s[1]} : range({s[2]}, {s[3]}, {s[4]})){body(s[5])}"
    if s[0] == "for":
        guard = f"{pad}    steps += 1;\n{pad}    if (steps > 300) break;\n"
        return f"{pad}for (int {s[1]} = {s[2]}; {s[1]} < {s[3]}; {s[1]} += {s[4]}) {{\n{guard}{block_text(s[5], pad + '    ')}{pad}}}\n"
    if s[0] == "while":
        count = f"{pad}    {s[1]} += 1;\n"
        return f"{pad}int {s[1]} = 0;\n{pad}while ({s[1]} < {s[2]} && {cond_text(s[3])}) {{\n{count}{block_text(s[4], pad + '    ')}{pad}}}\n"
    return f"{pad}static for (int {s[1]} : range(0, {s[2]})){body(s[3])}"


def block_text(block, pad):
    return "".join(stmt_text(s, pad) for s in block)


def program_text(functions, body, seed):
    text = ""
    for i, (name, block) in enumerate(functions.items()):
        text += f"{'auto' if (seed + i) % 2 else 'int'} {name}(int a, int b)\n{{\n    int steps = 0;\n{block_text(block, '    ')}    return a;\n}}\n\n"
    start = "    int x = p, y = q, z = 1;\n    int steps = 0;\n"
    return text + f"kernel k(i32 o[N], int p, int q)\n    grid(1)\n{{\n{start}{block_text(body, '    ')}}}\n"


# ---- as a meaning ---------------------------------------------------------------------------------------------------
class Interpreter:
    def __init__(self, functions):
        self.functions, self.stored = functions, {}

    def expr(self, e, env):
        if e[0] == "var":
            return env[e[1]]
        if e[0] == "num":
            return e[1]
        if e[0] == "?":
            return self.expr(e[2] if self.cond(e[1], env) else e[3], env)
        a, b = (self.expr(x, env) for x in (e[2] if e[0] == "call" else e[2:]))
        if e[0] == "call":
            own = dict(a=a, b=b, steps=0)
            try:
                self.block(self.functions[e[1]], own)
            except Return as r:
                return r.value
            return own["a"]
        v = a + b if e[1] == "+" else a - b if e[1] == "-" else a * b
        return -(-v % 97) if v < 0 else v % 97

    def cond(self, c, env):
        if c[0] == "&&":
            return self.cond(c[1], env) and self.cond(c[2], env)
        if c[0] == "||":
            return self.cond(c[1], env) or self.cond(c[2], env)
        a, b = self.expr(c[2], env), self.expr(c[3], env)
        return {"<": a < b, ">": a > b, "==": a == b, "!=": a != b}[c[1]]

    def block(self, block, env):
        for s in block:
            self.stmt(s, env)

    def loop(self, block, env, passes):
        """runs the block for each pass; False when it was left by break"""
        for _ in passes:
            try:
                self.block(block, env)
            except Break:
                return
            except Continue:
                pass

    def counts(self, s, env):
        env[s[1]] = s[2]
        while env[s[1]] < s[3]:
            env["steps"] += 1
            if env["steps"] > 300:
                return
            yield
            env[s[1]] += s[4]

    def whiles(self, s, env):
        env[s[1]] = 0
        while env[s[1]] < s[2] and self.cond(s[3], env):
            env[s[1]] += 1
            yield

    def stmt(self, s, env):
        if s[0] in ("set", "declare"):
            env[s[1]] = self.expr(s[2], env)
        elif s[0] == "store":
            self.stored[s[1]] = self.expr(s[2], env)
        elif s[0] == "break":
            raise Break
        elif s[0] == "continue":
            raise Continue
        elif s[0] == "return":
            raise Return(None if s[1] is None else self.expr(s[1], env))
        elif s[0] == "if":
            taken = next((b for c, b in s[1] if self.cond(c, env)), s[2])
            self.block(taken or [], env)
        elif s[0] == "range":
            self.loop(s[5], env, (env.__setitem__(s[1], i) for i in range(s[2], s[3], s[4])))
        elif s[0] == "for":
            self.loop(s[5], env, self.counts(s, env))
        elif s[0] == "while":
            self.loop(s[4], env, self.whiles(s, env))
        else:
            for i in range(s[2]):
                env[s[1]] = i
                self.block(s[3], env)


def meaning(functions, body, count, p, q):
    run = Interpreter(functions)
    try:
        run.block(body, dict(x=p, y=q, z=1, steps=0))
    except Return:
        pass
    return [run.stored.get(i, -86) for i in range(count)]


# ---- comparing ------------------------------------------------------------------------------------------------------
def read_npy(path):
    data = open(path, "rb").read()
    start = 10 + int.from_bytes(data[8:10], "little")
    return [int.from_bytes(data[i:i + 4], "little", signed=True) for i in range(start, len(data), 4)]


def difference(seed, o, folder):
    functions, body, count = Maker(seed).program()
    text = program_text(functions, body, seed)
    path = f"{folder}/{seed}.tile"
    open(path, "w").write(text)
    for p, q in ((3, -2), (0, 7)):
        done = subprocess.run([o.tilec, "run", path, "--device", o.device, f"o=full(-86)[{count}]", f"p={p}", f"q={q}", "--save", f"o={folder}/o.npy"],
                              capture_output=True, text=True, timeout=120)
        if done.returncode:
            return f"{text}exit status {done.returncode}: {done.stderr[:2000]}"
        got, want = read_npy(f"{folder}/o.npy"), meaning(functions, body, count, p, q)
        if got != want:
            return f"{text}p = {p}, q = {q}: got {got}, wanted {want}"
    return None


def main():
    a = argparse.ArgumentParser()
    a.add_argument("first", type=int)
    a.add_argument("count", type=int)
    a.add_argument("--device", default="ref")
    a.add_argument("--tilec", default="tilec")
    a.add_argument("--keep")
    o = a.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(o.first, o.first + o.count):
            what = difference(seed, o, o.keep or folder)
            if what:
                print(f"program {seed}:\n{what}")
                bad += 1
    print(f"{o.count - bad} agree, {bad} differ")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
