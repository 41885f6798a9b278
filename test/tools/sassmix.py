#!/usr/bin/env python3
"""Counts the instructions of a cubin (sm_80 to sm_90a), per kernel and per innermost loop. No disassembler is needed.

    sassmix.py FILE.cubin [--kernel NAME] [--json] [--require EXPR]...

An instruction is 16 bytes; the low 12 bits say which: 9 bits the operation (codegen/report/sass.def), 3 bits where its
operands are. Loops come from the branches: blocks, dominators, natural loops, and what branches enter at several places; a loop that holds another is not listed.
Counts are of instructions in the text, not of how often they run. The padding behind the last branch does not count.
One that never runs (@!PT: ptxas for sm_80 puts such behind waits for copies) is a NOP. A trip of a loop that has
branches need not run all of it; the shortest way round is counted apart.

The main loop of a kernel is the one with the most matrix instructions; else of floating point; else of all, as for tilec explain.

--kernel NAME   only kernels whose symbol is NAME, or NAME and a number (gemm: gemm_0, gemm_1)
--json          [{"kernel", "total", "mix": {name: count}, "loops": [{"from", "to", "main", "total", "mix",
                "short": {"total", "mix", "bytes"}, "moving": the same of the way round that moves the most bytes, the shortest
                of these; "begins": of the way that begins the most bulk copies and products into tensor memory}], "bytes": {"global", "shared"}}]; bytes are those that a lane asks for, bulk copies (TMA) aside
--require EXPR  every kernel must fulfil it, else exit 1 and a line that says why. EXPR is arithmetic and a comparison;
                names are operations, `all` is every instruction: "(all - HMMA - LDSM - LDGSTS) / HMMA <= 0.5". Counts
                are of the main loop, of its shortest way round behind `short.`, of the whole kernel behind `kernel.`:
                "kernel.STL == 0".
"""
import argparse
import ast
import collections
import heapq
import json
import os
import re
import struct
import sys

ALWAYS, NEVER = 7, 15  # guards: the predicate that is true, and its opposite


MOST_OF_WAIT = 8
# What begins bulk copies and products into tensor memory: UTCHMMA and its like, UTCBAR, UTCCP, which have no names here.
BEGINS = ("UTMALDG", "op_1ea", "op_1e9", "op_1e7")
# Accesses, and the bytes of a lane by the code that says how many (bits 73 to 75; of matrices, bits 72 and 73: how many). Copies count
# as accesses to global memory, as the bytes are the same.
BY_WIDTH = (1, 1, 2, 2, 4, 8, 16, 0)
BY_TYPE = (4, 4, 8, 16, 4, 4, 4, 4)
WIDTHS = {"LDG": ("global", BY_WIDTH), "STG": ("global", BY_WIDTH), "LD": ("global", BY_WIDTH), "ST": ("global", BY_WIDTH),
          "LDGSTS": ("global", BY_WIDTH), "REDG": ("global", BY_TYPE), "ATOMG": ("global", BY_TYPE), "ATOM": ("global", BY_TYPE),
          "LDS": ("shared", BY_WIDTH), "STS": ("shared", BY_WIDTH), "LDSM": ("shared", (4, 8, 16, 16)), "STSM": ("shared", (4, 8, 16, 16))}
OF_WIDTH, OF_MATRICES = 9, 8  # where the code is in the high word


def table():
    """The compiler's: (name, operation of 9 bits, class)."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "codegen", "report", "sass.def"), encoding="utf-8") as f:
        rows = re.findall(r'^SASS\("(\w+)", *(0x[0-9a-f]+), *(\w+)\)', f.read(), re.M)
    return [(name, int(code, 16), of) for name, code, of in rows]


OPCODES = {code: name for name, code, _ in table()}
MATRIX, FLOAT = (tuple({name: None for name, _, of in table() if of == wanted}) for wanted in ("MATRIX", "FLOAT"))


# ---- the file ----

class NotACubin(Exception):
    pass


def read_cubin(data):
    """(number of the architecture, [(kernel, its bytes)] in the order of names)."""
    if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != 190:
        raise NotACubin("no cubin: not an ELF file for NVIDIA's machines")
    flags, = struct.unpack_from("<I", data, 48)
    at, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]
    strings = heads[names][4]

    def name(head):
        start = strings + head[0]
        return data[start:data.index(b"\0", start)].decode()

    kernels = [(name(h)[len(".text."):], data[h[4]:h[4] + h[5]]) for h in heads if name(h).startswith(".text.")]
    return flags >> 8 & 0xff if data[8] >= 8 else flags & 0xff, sorted(kernels)


# ---- instructions ----

class Instruction:
    def __init__(self, low, high):
        self.low, self.high = low, high
        code = low & 0x1ff
        self.operation = OPCODES.get(code, f"op_{code:03x}")
        self.name = "NOP" if low >> 12 & 15 == NEVER else self.operation

    def is_conditional(self):
        """Guarded by a predicate, or a branch with one as operand, or with a uniform one, or a call, which comes back."""
        if self.low >> 12 & 15 != ALWAYS:
            return True
        return self.name == "CALL" or (self.name == "BRA" and (self.high >> 23 & 15 != ALWAYS or self.low >> 9 & 7 != 4))

    def bytes(self):
        """(memory, bytes that a lane asks for), or None"""
        if self.name not in WIDTHS:
            return None
        memory, table = WIDTHS[self.name]
        at = OF_MATRICES if len(table) == 4 else OF_WIDTH
        return memory, table[self.high >> at & (len(table) - 1)]

    def offset(self, sm):
        """Bytes from the next instruction to a relative branch's target."""
        words = self.low >> 34 | (self.high & 0x3ffff) << 30
        bits = 48
        if sm >= 90:
            words, bits = words << 8 | self.low >> 16 & 0xff, 56
        if words >> (bits - 1):
            words -= 1 << bits
        return words * 4


def decode(text):
    words = struct.unpack(f"<{len(text) // 8}Q", text[:len(text) // 16 * 16])
    found = [Instruction(words[i], words[i + 1]) for i in range(0, len(words), 2)]
    while found and found[-1].name == "NOP":
        found.pop()
    if len(found) > 1 and found[-1].name == "BRA" and found[-2].name in ("EXIT", "RET", "BRA"):
        found.pop()  # a branch to itself behind the end
    return found


# ---- loops ----

JUMPS = ("BRA", "CALL")  # relative; ptxas for sm_80 also leaves loops by CALL
ENDS = JUMPS + ("EXIT", "RET", "BRX", "BRXU", "JMP", "JMX", "JMXU", "KILL")


class Flow:
    """Blocks as [first, last) indices of instructions, and where they go on."""
    jumps, ends = JUMPS, ENDS

    def __init__(self, code, sm):
        self.code, self.sm = code, sm
        starts = {0}
        for i, x in enumerate(code):
            if x.name in self.ends:
                starts.add(i + 1)
            if x.name in self.jumps:
                starts.add(self.target(i))
        self.first = sorted(s for s in starts if 0 <= s < len(code))
        self.last = self.first[1:] + [len(code)]
        number = {s: b for b, s in enumerate(self.first)}
        self.next = [[number[i] for i in self.targets(last - 1) if i in number] for last in self.last]
        self.before = [[] for _ in self.first]
        for b, following in enumerate(self.next):
            for n in following:
                self.before[n].append(b)

    def target(self, i):
        return i + 1 + self.code[i].offset(self.sm) // 16

    def targets(self, i):
        x = self.code[i]
        going = [self.target(i)] if x.name in self.jumps else []
        if x.name not in self.ends or x.is_conditional():
            going.append(i + 1)
        return going

    def dominators(self):
        """Sets of blocks. What nothing goes to is an entry: the kernel, and functions that are called."""
        everything = set(range(len(self.first)))
        dom = [{b} if b == 0 or not self.before[b] else everything for b in range(len(self.first))]
        changed = True
        while changed:
            changed = False
            for b, before in enumerate(self.before):
                if b == 0 or not before:
                    continue
                new = set.intersection(*(dom[p] for p in before)) | {b}
                if new != dom[b]:
                    dom[b], changed = new, True
        return dom

    def loops(self):
        """Header to the set of blocks."""
        dom, found = self.dominators(), {}
        for b, following in enumerate(self.next):
            for head in following:
                if head not in dom[b]:
                    continue
                body = found.setdefault(head, {head})
                todo = [b]
                while todo:
                    x = todo.pop()
                    if x not in body:
                        body.add(x)
                        todo += self.before[x]
        return found

    def entered_twice(self, known):
        """Loops without one header, as natural loops have it: what reaches itself, and is no body of `known`. In place of the header stands
        the longest block."""
        found = {}
        for body in cycles(self.next):
            if body not in known.values():
                found[max(sorted(body), key=lambda b: self.last[b] - self.first[b])] = body
        return found

    def innermost(self):
        """[(header, blocks)]"""
        all_loops = self.loops()
        outer = {head: body for head, body in self.entered_twice(all_loops).items()
                 if head not in all_loops and not any(body & other and not self.waits(other) for other in all_loops.values())}
        all_loops = {head: body for head, body in {**all_loops, **outer}.items() if not self.waits(body)}
        return [(head, body) for head, body in sorted(all_loops.items())
                if not any(other != head and other in body for other in all_loops)]

    def instructions(self, blocks):
        return [x for b in blocks for x in self.code[self.first[b]:self.last[b]]]

    def heaviest(self, head, body):
        """The block with most matrix instructions, the header where there are none: a wait may lead back to the header, too."""
        return max([head, *sorted(body)], key=lambda b: sum(x.name in MATRIX for x in self.instructions([b])))

    def waits(self, blocks):
        """Do they only wait for an mbarrier?"""
        names = [x.name for x in self.instructions(blocks)]
        return len(names) <= MOST_OF_WAIT and any(n.startswith("SYNCS") for n in names)

    def shortest(self, head, body):
        """Blocks from the header until it comes again, as few instructions as there can be."""
        todo, done = [(0, head, ())], set()
        while True:
            so_far, b, way = heapq.heappop(todo)
            if b == head and way:
                return way
            if b in done:
                continue
            done.add(b)
            for n in set(self.next[b]) & body:
                heapq.heappush(todo, (so_far + self.last[b] - self.first[b], n, way + (b,)))


    def moving(self, head, body, own_of=None):
        """Blocks of a trip that asks for the most bytes of global memory (or has the most of what `own_of` gives of instructions), and has
        the fewest instructions then."""
        best = {}
        own_of = own_of or (lambda code: sum(x.bytes()[1] for x in code if x.bytes() and x.bytes()[0] == "global"))

        def way(b, on):
            if b not in best:
                code = self.instructions([b])
                own = own_of(code)
                ends = [(0, 0, ())] if head in self.next[b] else []
                ends += [w for n in self.next[b] if n in body and n != head and n not in on for w in [way(n, on | {n})] if w]
                most = max(ends, default=None)
                best[b] = most and (own + most[0], most[1] - len(code), (b, *most[2]))
            return best[b]
        return way(head, {head})[2]


def cycles(following):
    """Sets of blocks that reach each other (Tarjan), of more than one block."""
    number, low, found, stack = {}, {}, [], []
    for root in range(len(following)):
        work = [(root, iter(following[root]))] if root not in number else []
        while work:
            b, rest = work[-1]
            if b not in number:
                number[b] = low[b] = len(number)
                stack.append(b)
            n = next(rest, None)
            if n is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[b])
                if low[b] == number[b]:
                    at = stack.index(b)
                    body, stack[at:] = frozenset(stack[at:]), []
                    found += [body] if len(body) > 1 else []
            elif n not in number:
                work.append((n, iter(following[n])))
            elif n in stack:
                low[b] = min(low[b], number[n])
    return found


def summary(code):
    return {"total": len(code), "mix": mix_of(code), "bytes": bytes_of(code)}


def mix_of(code):
    return collections.Counter(x.name for x in code)


def bytes_of(code):
    found = {"global": 0, "shared": 0}
    for memory, n in filter(None, (x.bytes() for x in code)):
        found[memory] += n
    return found


def weight(loop):
    return tuple(sum(loop["mix"][n] for n in names) for names in (MATRIX, FLOAT)) + (loop["total"],)


def analyze(name, text, sm):
    """What --json prints of one kernel."""
    code = decode(text)
    flow, loops = Flow(code, sm), []
    for head, body in flow.innermost() if code else []:
        inside, short = flow.instructions(body), flow.instructions(flow.shortest(flow.heaviest(head, body), body))
        moving = flow.instructions(flow.moving(head, body))
        begins = flow.instructions(flow.moving(head, body, lambda c: sum(x.name in BEGINS for x in c)))
        loops.append({"from": 16 * min(flow.first[b] for b in body), "to": 16 * max(flow.last[b] for b in body),
                      "main": False, "total": len(inside), "mix": mix_of(inside),
                      "short": summary(short), "moving": summary(moving), "begins": summary(begins)})
    if loops:
        max(loops, key=weight)["main"] = True
    return {"kernel": name, "total": len(code), "mix": mix_of(code), "loops": loops, "bytes": bytes_of(code)}


def analyze_file(path, kernel=None):
    with open(path, "rb") as f:
        sm, kernels = read_cubin(f.read())
    wanted = re.compile(re.escape(kernel) + r"(_\d+)?") if kernel else re.compile(".*")
    return [analyze(name, text, sm) for name, text in kernels if wanted.fullmatch(name)]


# ---- requirements ----

OPERATORS = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
             ast.Div: lambda a, b: a / b if b else float("inf") if a else 0.0,
             ast.LtE: lambda a, b: a <= b, ast.Lt: lambda a, b: a < b, ast.GtE: lambda a, b: a >= b,
             ast.Gt: lambda a, b: a > b, ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b}


def count(scope, name):
    if name != "all" and name not in OPCODES.values():
        raise ValueError(f"no operation is called '{name}'")
    return scope["total"] if name == "all" else scope["mix"][name]


def value(node, kernel, main, count_of):
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name):
        return count_of(main, node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("kernel", "short"):
        return count_of(kernel if node.value.id == "kernel" else main["short"], node.attr)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](value(node.left, kernel, main, count_of), value(node.right, kernel, main, count_of))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return OPERATORS[type(node.ops[0])](value(node.left, kernel, main, count_of), value(node.comparators[0], kernel, main, count_of))
    raise ValueError("only counts, numbers, + - * / and one comparison")


def check(kernel, text, count_of=count):
    """None, or what is wrong."""
    nothing = {"total": 0, "mix": collections.Counter(), "names": collections.Counter()}
    main = next((x for x in kernel["loops"] if x["main"]), {**nothing, "short": nothing})
    tree = ast.parse(text, mode="eval").body
    if not isinstance(tree, ast.Compare):
        raise ValueError("a requirement is a comparison")
    if value(tree, kernel, main, count_of):
        return None
    return f"{kernel['kernel']}: {text} does not hold: {value(tree.left, kernel, main, count_of):g}"


# ---- text ----

def show_mix(mix, indent):
    total = sum(mix.values())
    for name, n in sorted(mix.items(), key=lambda x: (-x[1], x[0])):
        print(f"{indent}{name:<10} {n:6} {100 * n / total:5.1f}%")


def show(kernel):
    print(f"kernel {kernel['kernel']}: {kernel['total']} instructions")
    show_mix(kernel["mix"], "    ")
    for x in kernel["loops"]:
        main = " (main)" if x["main"] else ""
        print(f"  loop {x['from']:#06x}..{x['to']:#06x}{main}: {x['total']} instructions")
        show_mix(x["mix"], "      ")
        if x["short"]["total"] < x["total"]:
            print(f"    shortest way round: {x['short']['total']} instructions")
            show_mix(x["short"]["mix"], "      ")


def command(name, args, doc, read, show_one, count_of, faults):
    """The command line of this module and of amdmix.py: reads kernels (file, name), shows them or checks what they must have. `faults`:
    what is wrong with a file."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--kernel")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--require", action="append", default=[])
    a = parser.parse_args(args)
    try:
        kernels = read(a.file, a.kernel)
        wrong = [w for k in kernels for text in a.require for w in [check(k, text, count_of)] if w]
    except (*faults, OSError, ValueError, SyntaxError) as e:
        print(f"{name}: {a.file}: {e}", file=sys.stderr)
        return 2
    if not kernels:
        wrong.append(f"no kernel {a.kernel or ''} in {a.file}")
    if a.json:
        print(json.dumps(kernels, indent=1))
    else:
        for k in kernels:
            show_one(k)
    for w in wrong:
        print(f"{name}: {w}", file=sys.stderr)
    return 1 if wrong else 0


def main(args):
    return command("sassmix", args, __doc__, analyze_file, show, count, (NotACubin, struct.error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
