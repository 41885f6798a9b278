#!/usr/bin/env python3
"""Random kernels of tile IR, run with --fp=ring on `ref` and elsewhere: all must give the same bits.

    tile_ir.py FIRST COUNT [--ways cpu,emu:sm_80,...] [--per-kernel N] [--tilec tilec] [--keep DIR] [--jobs N]
    tile_ir.py --file FILE --ways W      exit status 0 when FILE gives the same bits that way as on ref

Kernel number s depends on s only. It is made of loads with any bounds, arithmetic on all types, casts, shape ops, reductions
and scans with and without regions, gathers, histograms, dots, ifs, fors, whiles, atomics, and memory of its own that it writes and reads back
in other shapes. A way is DEVICE[/wWARPS][/sSEED][/kN][/pN][/c], as in emu:gfx942/w8/s3 (s: the seed of --stress-layouts, k: chunk-rows first, by N
elements, p: cut-carried first, in N parts, c: with --check, so that races are watched); each kernel is run in --per-kernel of them (0: all), which change with the kernel. A kernel that differs is kept with --keep; make it small by

    tile-reduce F.tir -o small.tir -- sh -c '! tile_ir.py --file "$1" --ways emu:sm_80/w4' sh

Parameters say in their names what they are, so any reduced text can be run: a_f32_3x16 is an array of random bits, n_5 the
number 5.
"""
import argparse
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
NUMPY = {"i8": "|i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "u8": "|u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "f16": "<f2", "bf16": "<u2", "f32": "<f4", "f64": "<f8"}
SHAPES = [(), (), (1,), (3,), (7,), (16,), (32,), (64,), (100,), (128,), (256,), (600,), (4, 8), (16, 16), (5, 3), (1, 32), (32, 1), (16, 1), (32, 16), (2, 3, 4), (3, 1, 16), (48, 16)]
DOTS = [("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("f64", "f64"), ("f16", "f16"), ("i16", "i32"), ("u32", "u32"), ("i64", "i64")]
ALL_WAYS = ["cpu", "ref/k3", "ref/k32", "ref/p2", "ref/p4", "emu:sm_80/w2/k32/c", "emu:sm_90a/w4/p8/c", "emu:gfx942/w1/k9/c"] + [f"{d}/w{w}{s}" for d in ("emu:sm_80", "emu:gfx942", "emu:gfx1100") for w in (1, 2, 4, 8) for s in ("/c", "/s1", "/s2/c")]
PROGRAMS, SECONDS = 3, 60


def bits(t):
    return 8 if t == "bool" else int(t.lstrip("biuf"))


def size(shape):
    n = 1
    for e in shape:
        n *= e
    return n


def text(t, shape):
    return t if not shape else f"tile<{t}, {', '.join(map(str, shape))}>"


class Value:
    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, dtype, shape


class Maker:
    def __init__(self, seed, without=()):
        self.r, self.without = random.Random(seed), without
        self.lines, self.scope, self.params, self.names = [], [], {}, 0
        self.depth, self.budget = 1, self.r.randint(8, 40)
        self.pid = None

    # ---- text ----
    def name(self):
        self.names += 1
        return f"%v{self.names}"

    def line(self, s):
        self.lines.append("  " * self.depth + s)

    def op(self, code, operands, dtype, shape, attrs=""):
        v = Value(self.name(), dtype, shape)
        attrs = f" {{{attrs}}}" if attrs else ""
        names = " " + ", ".join(o.name for o in operands) if operands else ""
        self.line(f"{v.name} = {code}{names}{attrs} : {text(dtype, shape)}")
        self.scope.append(v)
        return v

    def param(self, prefix, dtype, shape, const):
        name = f"{prefix}_{dtype}_{'x'.join(map(str, shape))}"
        self.params.setdefault(name, (dtype, shape, const))
        return "%" + name

    # ---- values ----
    def number(self, dtype):
        if dtype == "bool":
            return self.r.choice(["true", "false"])
        if dtype in FLOATS:
            return self.r.choice(["0.0", "-0.0", "1.0", "-1.0", "2.0", "0.5", "3.25", "inf", "-inf", "-7.0"])
        top = 2 ** bits(dtype)
        n = self.r.choice([0, 1, 2, 3, 5, 7, -1, top // 2 - 1, -top // 2])
        return str(n % top if dtype[0] == "u" else n)

    def const(self, dtype, shape=(), value=None):
        return self.op("const", [], dtype, shape, f"value = {self.number(dtype) if value is None else value}")

    def load_input(self, dtype, shape):
        array = self.param("a", dtype, tuple(self.r.choice([e, e + 1, max(e - 2, 1), 40]) for e in shape) or (4,), True)
        axes, starts = ([str(e) for e in shape], []) if shape else (["i"], [])
        for _ in axes:
            starts.append(self.r.choice([self.pid, self.index(), self.const("i32", (), self.r.choice([0, 0, 0, 1, 2, -1, 5]))]))
        mask = self.r.random() < .2 and shape
        extra, attrs = [], f"axes = [{', '.join(axes)}]"
        if mask:
            extra.append(self.make("bool", shape))
            attrs += ", mask"
        if self.r.random() < .3:
            extra.append(self.const(dtype, shape))
            attrs += ", other"
        v = Value(self.name(), dtype, shape)
        operands = ", ".join([array] + [s.name for s in starts + extra])
        self.line(f"{v.name} = load {operands} {{{attrs}}} : {text(dtype, shape)}")
        self.scope.append(v)
        return v

    def index(self):
        """A small i32 scalar."""
        known = [v for v in self.scope if v.dtype == "i32" and v.shape == ()]
        x = self.r.choice(known) if known else self.const("i32", (), 1)
        return self.op("and", [x, self.const("i32", (), self.r.choice([1, 3, 7]))], "i32", ())

    def make(self, dtype, shape):
        fit = [v for v in self.scope if v.dtype == dtype and v.shape == shape]
        if fit and self.r.random() < .8:
            return self.r.choice(fit[-6:])
        others = [v for v in self.scope if v.shape == shape]
        k = self.r.random()
        if dtype == "bool":
            return self.compare(shape)
        if others and k < .5:
            return self.op("cast", [self.r.choice(others[-6:])], dtype, shape)
        if k < .85:
            return self.load_input(dtype, shape)
        return self.const(dtype, shape)

    def any(self, kinds=None, shape=None):
        fit = [v for v in self.scope if (kinds is None or v.dtype in kinds) and (shape is None or v.shape == shape)]
        if fit and self.r.random() < .9:
            return self.r.choice(fit[-10:])
        return self.make(self.r.choice(kinds or INTS + FLOATS), self.r.choice(SHAPES) if shape is None else shape)

    # ---- ops ----
    def compare(self, shape):
        t = self.r.choice(["i32", "f32", "u8", "f16"])
        x = self.make(t, shape)
        return self.op(self.r.choice(["lt", "le", "gt", "ge", "eq", "ne"]), [x, self.make(t, shape)], "bool", shape)

    def arithmetic(self):
        x = self.any(INTS + FLOATS)
        both = ["add", "sub", "mul", "min", "max", "div", "rem"]
        code = self.r.choice(both + (["min_nan", "max_nan"] if x.dtype in FLOATS else ["and", "or", "xor", "shl", "shr", "mulhi", "add_sat", "sub_sat"]))
        self.op(code, [x, self.make(x.dtype, x.shape)], x.dtype, x.shape)

    def unary(self):
        x = self.any(INTS + FLOATS)
        codes = ["sqrt", "floor", "ceil", "trunc", "rint", "round"] if x.dtype in FLOATS else ["not", "popcount", "clz", "ctz"]
        self.op(self.r.choice(codes + ["neg", "abs"]), [x], x.dtype, x.shape)

    def fma(self):
        t, shape = self.r.choice(["f32", "f64"]), self.r.choice(SHAPES)
        self.op("fma", [self.make(t, shape), self.make(t, shape), self.make(t, shape)], t, shape)

    def cast(self):
        x = self.any()
        self.op("cast", [x], self.r.choice([t for t in INTS + FLOATS if t != x.dtype]), x.shape)

    def bitcast(self):
        x = self.any(INTS + FLOATS)
        self.op("bitcast", [x], self.r.choice([t for t in INTS + FLOATS if bits(t) == bits(x.dtype)]), x.shape)

    def select(self):
        x = self.any(INTS + FLOATS)
        c = self.make("bool", self.r.choice([x.shape, ()]))
        self.op("select", [c, x, self.make(x.dtype, x.shape)], x.dtype, x.shape)

    def broadcast(self):
        x = self.any()
        if x.shape == ():
            shape = self.r.choice(SHAPES[2:])
        else:
            shape = tuple(self.r.choice([1, 4, 16]) if e == 1 else e for e in x.shape)
        if shape != x.shape and size(shape) <= 1024:
            self.op("broadcast", [x], x.dtype, shape)

    def expand(self):
        x = self.any()
        if 0 < len(x.shape) < 4:
            a = self.r.randint(0, len(x.shape))
            self.op("expand", [x], x.dtype, x.shape[:a] + (1,) + x.shape[a:], f"axis = {a}")

    def reshape(self):
        x = self.any()
        n = size(x.shape)
        shapes = [s for s in SHAPES + [(n,), (1, n), (n // 2, 2), (2, n // 2)] if size(s) == n and s]
        if shapes and x.shape:
            self.op("reshape", [x], x.dtype, self.r.choice(shapes))

    def trans(self):
        x = self.any()
        if len(x.shape) > 1:
            perm = list(range(len(x.shape)))
            self.r.shuffle(perm)
            self.op("trans", [x], x.dtype, tuple(x.shape[p] for p in perm), f"perm = {perm}")

    def iota(self):
        self.op("iota", [], self.r.choice(["i32", "i64", "u8", "u32"]), self.r.choice([s for s in SHAPES if len(s) == 1]))

    # ---- over an axis ----
    def combiner(self, operands):
        """A region on scalars that is associative and commutative: componentwise, or the greatest pair."""
        a, b = [[Value(self.name(), o.dtype, ()) for o in operands] for _ in range(2)]
        self.lines[-1] += f" ({', '.join(f'{v.name}: {v.dtype}' for v in a + b)}) {{"
        kept, self.scope = self.scope, []
        self.depth += 1
        if len(operands) == 2 and self.r.random() < .7:
            gt = self.op("gt", [b[0], a[0]], "bool", ())
            eq = self.op("eq", [b[0], a[0]], "bool", ())
            lt = self.op("lt", [b[1], a[1]], "bool", ())
            both = self.op("and", [eq, lt], "bool", ())
            take = self.op("or", [gt, both], "bool", ())
            out = [self.op("select", [take, y, x], x.dtype, ()) for x, y in zip(a, b)]
        else:
            out = [self.op(self.r.choice(["add", "max", "mul"]), [x, y], x.dtype, ()) for x, y in zip(a, b)]
        self.line(f"yield {', '.join(v.name for v in out)}")
        self.depth -= 1
        self.scope = kept
        self.line("}")

    def over_axis(self):
        x = self.any(shape=self.r.choice([s for s in SHAPES if s]))
        axis, scan = self.r.randrange(len(x.shape)), self.r.random() < .35
        operands, kinds = [x], ["and", "or", "xor"] if x.dtype == "bool" else ["add", "add", "mul", "max", "min"]
        if x.dtype in INTS:
            kinds = kinds + ["and", "or", "xor"]
        user = x.dtype != "bool" and self.r.random() < .3
        if user and self.r.random() < .6:
            operands.append(self.make(self.r.choice(["i32", "f32", "i64"]), x.shape))
        shape = x.shape if scan else x.shape[:axis] + x.shape[axis + 1:]
        out = [Value(self.name(), o.dtype, shape) for o in operands]
        attrs = f"axis = {axis}, kind = {'user' if user else self.r.choice(kinds)}" + (", reverse" if scan and self.r.random() < .4 else "")
        begins = [self.make(o.dtype, ()) for o in operands] if scan and self.r.random() < .5 else []
        attrs += ", exclusive" * (bool(begins) and self.r.random() < .6)
        names = ", ".join(o.name for o in operands + begins)
        self.line(f"{', '.join(v.name for v in out)} = {'scan' if scan else 'reduce'} {names} {{{attrs}}} : {', '.join(text(v.dtype, v.shape) for v in out)}")
        if user:
            self.combiner(operands)
        self.scope += out

    def gather(self):
        x = self.any(shape=self.r.choice([s for s in SHAPES if s]))
        axis = self.r.randrange(len(x.shape))
        shape = x.shape[:axis] + (self.r.choice([x.shape[axis], 1, 5, 16]),) + x.shape[axis + 1:]
        i = self.make(self.r.choice(["i32", "i32", "u8", "i64", "i8", "u32"]), shape)
        if self.r.random() < .8:
            i = self.op("and", [i, self.const(i.dtype, shape, self.r.choice([3, 7, 15, 63]))], i.dtype, shape)
        self.op("gather", [x, i], x.dtype, shape, f"axis = {axis}")

    def histogram(self):
        x = self.make("i32", self.r.choice([s for s in SHAPES if s]))
        if self.r.random() < .8:
            x = self.op("and", [x, self.const("i32", x.shape, self.r.choice([3, 15, 127]))], "i32", x.shape)
        bins = (self.r.choice([1, 4, 16, 100, 256]),)
        w = self.make(self.r.choice(["i32", "u64", "f32"]), x.shape) if self.r.random() < .4 else None
        self.op("histogram", [x, w] if w else [x], w.dtype if w else "i32", bins)

    def dot(self):
        t, acc = self.r.choice(DOTS)
        m, n, k = (self.r.choice([16, 16, 32, 8, 5]) for _ in range(3))
        batch = (2,) if self.r.random() < .15 else ()
        self.op("dot", [self.make(t, batch + (m, k)), self.make(t, batch + (k, n)), self.make(acc, batch + (m, n))], acc, batch + (m, n))

    # ---- memory of its own: row `pid` of w ----
    def own(self):
        t = self.r.choice(["f32", "i32", "f16", "i64"])
        return t, self.param("w", t, (PROGRAMS, 640), False)

    def own_store(self):
        t, w = self.own()
        shape = self.r.choice([s for s in SHAPES if len(s) <= 1])
        x, at = self.make(t, shape), self.index()
        if shape and self.r.random() < .25:  # backwards, by index
            i = self.op("iota", [], "i32", shape)
            i = self.op("sub", [self.const("i32", shape, self.r.choice([600, 300, 20])), i], "i32", shape)
            self.line(f"store {w}, {self.pid.name}, {i.name}, {x.name} {{axes = [i, t]}}")
        else:
            self.line(f"store {w}, {self.pid.name}, {at.name}, {x.name} {{axes = [i, {shape[0] if shape else 'i'}]}}")

    def own_load(self):
        t, w = self.own()
        shape = self.r.choice([s for s in SHAPES if len(s) <= 2])
        v = Value(None, t, shape)
        if len(shape) < 2:
            at, axes = self.index(), str(shape[0]) if shape else "i"
        else:
            at, axes = self.make("i32", shape), "t"
        v.name = self.name()
        self.line(f"{v.name} = load {w}, {self.pid.name}, {at.name} {{axes = [i, {axes}]}} : {text(t, shape)}")
        self.scope.append(v)

    def own_atomic(self):
        """Updates that may meet in one place: of one kind, their old values unseen."""
        t = self.r.choice(["f32", "i32"])
        w = self.param("w", t, (PROGRAMS, 640), False)
        shape = self.r.choice([s for s in SHAPES if len(s) == 1])
        at = self.op("and", [self.make("i32", shape), self.const("i32", shape, 15)], "i32", shape)
        kind = "add" if t == "f32" else self.r.choice(["add", "max", "xor"])
        self.line(f"{self.name()} = atomic_rmw {w}, {self.pid.name}, {at.name}, {self.make(t, shape).name} {{axes = [i, t], rmw = {kind}, order = relaxed, scope = device}} : {text(t, shape)}")

    # ---- control ----
    def block(self, head, args, results, end="yield", first=()):
        """A region: some ops, then values of the types of `results`."""
        self.lines[-1] += head + f"({', '.join(f'{a.name}: {text(a.dtype, a.shape)}' for a in args)}) {{"
        kept = list(self.scope)
        self.scope += args
        self.depth += 1
        self.statements(self.r.randint(0, 4))
        out = [v.name for v in first] + [self.make(v.dtype, v.shape).name for v in results]
        self.line(f"{end} {', '.join(out)}" if out else end)
        self.depth -= 1
        self.scope = kept
        self.line("}")

    def carried(self):
        n = self.r.randint(0, 3)
        inits = [self.any(INTS + FLOATS) for _ in range(n)]
        return inits, [Value(self.name(), v.dtype, v.shape) for v in inits]

    @staticmethod
    def results_text(out):
        return (", ".join(v.name for v in out) + " = ", " : " + ", ".join(text(v.dtype, v.shape) for v in out)) if out else ("", "")

    def if_(self):
        c, (like, out) = self.make("bool", ()), self.carried()
        left, right = self.results_text(out)
        self.line(f"{left}if {c.name}{right}")
        self.block(" ", [], out)
        self.block(" ", [], out)
        self.scope += out

    def for_(self):
        inits, out = self.carried()
        lo, step = self.const("i32", (), self.r.choice([0, 1, -2])), self.const("i32", (), self.r.choice([1, 2, 3]))
        hi = self.r.choice([self.index(), self.const("i32", (), self.r.choice([0, 1, 4, 5]))])
        left, right = self.results_text(out)
        self.line(f"{left}for {', '.join(v.name for v in [lo, hi, step] + inits)}{right} ")
        args = [Value(self.name(), "i32", ())] + [Value(self.name(), v.dtype, v.shape) for v in inits]
        self.block("", args, out)
        self.scope += out

    def while_(self):
        zero, limit, (inits, out) = self.const("i32", (), 0), self.index(), self.carried()
        out = [Value(self.name(), "i32", ())] + out
        left, right = self.results_text(out)
        self.line(f"{left}while {', '.join(v.name for v in [zero] + inits)}{right} ")
        i, k = Value(self.name(), "i32", ()), Value(self.name(), "i32", ())
        args = [[j] + [Value(self.name(), v.dtype, v.shape) for v in inits] for j in (i, k)]
        self.lines[-1] += f"({', '.join(f'{a.name}: {text(a.dtype, a.shape)}' for a in args[0])}) {{"
        self.depth += 1
        go = self.name()
        self.line(f"{go} = lt {i.name}, {limit.name} : bool")
        self.line(f"condition {', '.join([go] + [a.name for a in args[0]])}")
        self.depth -= 1
        self.line("} ")
        kept = list(self.scope)
        self.lines[-1] += f"({', '.join(f'{a.name}: {text(a.dtype, a.shape)}' for a in args[1])}) {{"
        self.scope += args[1]
        self.depth += 1
        one = self.const("i32", (), 1)
        next_ = self.op("add", [k, one], "i32", ())
        self.statements(self.r.randint(0, 3))
        self.line("yield " + ", ".join([next_.name] + [self.make(v.dtype, v.shape).name for v in out[1:]]))
        self.depth -= 1
        self.scope = kept
        self.line("}")
        self.scope += out

    def statements(self, n):
        plain = [self.arithmetic] * 5 + [self.unary, self.fma, self.cast, self.cast, self.bitcast, self.select, self.broadcast, self.broadcast, self.expand, self.reshape, self.trans, self.trans,
                                         self.iota, self.over_axis, self.over_axis, self.over_axis, self.gather, self.gather, self.histogram, self.dot, self.own_store, self.own_store, self.own_load, self.own_load, self.own_atomic]
        plain = [f for f in plain if f.__name__ not in self.without]
        for _ in range(n):
            self.budget -= 1
            deep = self.depth > 3 or self.budget < 0
            self.r.choice(plain if deep else plain + [self.if_, self.for_, self.while_])()

    def kernel(self):
        self.pid = self.op("pid", [], "i32", (), "axis = 0")
        for _ in range(3):
            self.load_input(self.r.choice(["f32", "f16", "i32", "f64", "bf16", "i8"]), self.r.choice(SHAPES))
        self.statements(self.r.randint(4, 16))
        shown = [v for v in self.scope if v.dtype != "bool"]
        for n, v in enumerate(self.r.sample(shown, min(len(shown), 5)) + shown[-3:]):
            zero = self.const("i32", (), 0)
            out = self.param(f"o{n}", v.dtype, (PROGRAMS, *v.shape), False)
            starts = ", ".join([self.pid.name] + [zero.name] * len(v.shape))
            self.line(f"store {out}, {starts}, {v.name} {{axes = [{', '.join(['i'] + [str(e) for e in v.shape])}]}}")
        self.line("return")
        return self.header() + "\n".join(self.lines) + "\n}\n"

    def header(self):
        args = ", ".join(f"%{n}: view<{'const ' if c else ''}{t}, {len(s)}>" for n, (t, s, c) in self.params.items())
        info, syms = [], []
        for p, (n, (t, s, c)) in enumerate(self.params.items()):
            axes = []
            for a in range(len(s)):
                axes.append(f"sym {len(syms)} : dense")
                syms.append(f'    sym "S{len(syms)}" extent {p}, {a}')
            info.append(f'    param "{n}" view {"const " if c else ""}{t} [{", ".join(axes)}]')
        return "\n".join([f"kernel @k({args}) info {{", *info, *syms, f'    expr int "{PROGRAMS}" [const {PROGRAMS}]', "    grid 0", "} {", ""])


# ---- running ----------------------------------------------------------------------------------------------------------
def arrays_of(source):
    """(name, element type, shape) of each array, by the names of the kernel's parameters."""
    head = source[source.index("("):source.index(")")]
    for name in re.findall(r"%(\w+): view", head):
        t, shape = name.split("_")[-2:]
        yield name, t, tuple(int(e) for e in shape.split("x"))


def write_array(path, name, t, shape):
    """Random bits that follow from the name. Some are small numbers, for indices and shifts."""
    r = random.Random(zlib.crc32(name.encode()))
    data = bytearray(r.randbytes(size(shape) * bits(t) // 8))
    if t in INTS:
        for i in range(0, size(shape), 3):
            n = bits(t) // 8
            data[i * n:(i + 1) * n] = r.randrange(16).to_bytes(n, "little")
    head = f"{{'descr': '{NUMPY[t]}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


CUTS = {"k": "chunk-rows{elements=", "p": "cut-carried{parts="}


def cut(tilec, file, word, folder):
    """(what tile-opt said, or None; the kernel after a pass of CUTS)"""
    out = os.path.join(folder, "cut.tir")
    opt = os.path.join(os.path.dirname(tilec), "tile-opt")
    p = subprocess.run([opt, "--verify-each", f"--passes=ring,{CUTS[word[0]]}{word[1:]}}}", file], capture_output=True)
    with open(out, "wb") as f:
        f.write(p.stdout)
    return f"exit status {p.returncode} of tile-opt: " + p.stderr.decode("utf-8", "replace")[:400] if p.returncode else None, out


def run(tilec, file, arrays, way, folder):
    """(what tilec said, or None; outputs by name)"""
    os.makedirs(folder, exist_ok=True)
    device, *rest = way.split("/")
    for word in [o for o in rest if o[0] in CUTS]:
        wrong, file = cut(tilec, file, word, folder)
        if wrong:
            return wrong, {}
    words = [tilec, "run", file, "--fp=ring", "--device", device]
    words += [{"w": "--warps=", "s": "--stress-layouts=", "c": "--check"}[o[0]] + o[1:] for o in rest if o[0] not in CUTS]
    for name, _, _ in arrays:
        words.append(f"{name}=@{os.path.join(folder, '..', name + '.npy')}")
        if name[0] != "a":
            words += ["--save", f"{name}={os.path.join(folder, name + '.npy')}"]
    try:
        p = subprocess.run(words, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "no end within the time allowed", {}
    if p.returncode != 0:
        return f"exit status {p.returncode}: " + " / ".join((p.stderr + p.stdout).decode("utf-8", "replace").split("\n")[:4]), {}
    out = {}
    for name, _, _ in arrays:
        if name[0] != "a":
            with open(os.path.join(folder, name + ".npy"), "rb") as f:
                out[name] = f.read()
    return None, out


def compare(tilec, file, ways):
    """[(way, what is wrong)]; with 'ref' alone there was nothing to compare with."""
    with open(file, encoding="utf-8") as f:
        arrays = list(arrays_of(f.read()))
    folder = tempfile.mkdtemp(prefix="tile-fuzz-")
    try:
        for name, t, shape in arrays:
            write_array(os.path.join(folder, name + ".npy"), name, t, shape)
        wrong, want = run(tilec, file, arrays, "ref", os.path.join(folder, "ref"))
        if wrong:
            return [("ref", wrong)]
        faults = []
        for i, way in enumerate(ways):
            wrong, got = run(tilec, file, arrays, way, os.path.join(folder, str(i)))
            differs = [n for n in want if got.get(n) != want[n]]
            if wrong or differs:
                faults.append((way, wrong or f"differs from ref: {', '.join(differs)}"))
        return faults
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def one(seed, cx):
    folder = tempfile.mkdtemp(prefix="tile-fuzz-")
    try:
        file = os.path.join(folder, f"seed{seed}.tir")
        with open(file, "w", encoding="utf-8") as f:
            f.write(Maker(seed, cx.without).kernel())
        ways = cx.ways
        if cx.per_kernel:
            ways = random.Random(f"ways {seed}").sample(ways, min(cx.per_kernel, len(ways)))
        faults = compare(cx.tilec, file, ways)
        if faults and cx.keep:
            os.makedirs(cx.keep, exist_ok=True)
            shutil.copy(file, cx.keep)
        return [f"seed {seed} on {way}: {what}" for way, what in faults], len(ways)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("first", type=int, nargs="?", default=1)
    ap.add_argument("count", type=int, nargs="?", default=1)
    ap.add_argument("--ways", default=",".join(ALL_WAYS))
    ap.add_argument("--per-kernel", type=int, default=3)
    ap.add_argument("--tilec", default="tilec")
    ap.add_argument("--keep")
    ap.add_argument("--without", default="", help="kinds of statements to leave out: dot,own_atomic,...")
    ap.add_argument("--file")
    ap.add_argument("--text", action="store_true", help="print the kernels only")
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    cx = ap.parse_args()
    cx.ways, cx.without = cx.ways.split(","), cx.without.split(",")
    if cx.file:
        faults = compare(cx.tilec, cx.file, cx.ways)
        print("\n".join(f"{way}: {what}" for way, what in faults))
        return 1 if any(way != "ref" for way, _ in faults) else 0
    if cx.text:
        for seed in range(cx.first, cx.first + cx.count):
            print(Maker(seed, cx.without).kernel())
        return 0
    runs = bad = 0
    with ThreadPoolExecutor(max(cx.jobs, 1)) as pool:
        for lines, n in pool.map(lambda s: one(s, cx), range(cx.first, cx.first + cx.count)):
            runs, bad = runs + n, bad + len(lines)
            for s in lines:
                print(s, flush=True)
    print(f"{cx.count} kernels, {runs - bad} passed, {bad} failed")
    return 1 if bad or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
