#!/usr/bin/env python3
"""Are all lanes active where AMD code reads other lanes? A walk over the assembly of kernels, along all paths.

    amd_lanes.py [FILE.s ...] [--tilec TILEC] [--targets gfx942,gfx1100|all] [-k PART] [--few] [--library] [--sets] [-v]

FILE: assembly text with its `.amdgcn_target` line; without files the kernels of amd_asm.py (--few: six of them; --library: the library's, too;
--sets: these with all types and options of the conformance suite) are compiled for the targets. An error is, by line:
  * an instruction that reads other lanes (a permutation, a data-parallel move, a swizzle, a matrix instruction, a load that transposes) where
    exec is not known to be full, what the kernel began with: lanes that are not active have not computed what it reads, or give 0
  * v_readlane, which reads any lane, there: unless all lanes were active where the register was written last, or that lane was
    written by v_writelane, as spilled scalars are

What is known on a path is which masks, of 32 lanes each, are full together: exec, scalar registers, and lanes of vector registers that hold
spilled ones. At first exec is. `s_and_saveexec s0, vcc` makes s0 full, and exec not; after `s_xor s0, exec, s0` exec and s0 are full together;
`s_or exec, exec, s0` makes them one. A vector register that holds masks may itself be in scratch memory for a time: a word there is a register,
if all lanes are active where it is stored and loaded; a store to an address that is not known is one to all words. A loop that lanes leave
one by one keeps "exec and those that left". Where paths meet, what holds on both remains. Of a mask that is compared for nothing is known, so
code that masks a branch which whole waves take is an error, too. What the lowering takes for a branch of whole waves is to be a scalar branch.

Last line: "N kernels, N instructions, N that read lanes, N faults"; exit 1 if there are faults.
"""
import argparse
import itertools
import os
import re
import sys

import amd_asm

READS = re.compile(r"v_permlane|ds_swizzle|ds_b?permute|v_wmma|v_swmmac|v_mfma|v_smfmac|\w+_dpp\b|\w+_tr\d*_b\d+")
SECOND_RESULT = re.compile(r"v_(add|sub|subrev|addc|subb|subbrev)_co_|v_div_scale|v_mad_(co_)?[ui]64|v_swap|v_permlane\d+_swap")
NO_RESULT = re.compile(r"s_(cmp|bitcmp|cbranch|branch|waitcnt|wait_|nop|barrier|endpgm|setprio|sendmsg|delay|clause|set_gpr|store|dcache|code_end|sleep)"
                       r"|(global|buffer|flat|scratch|ds)_(store|write)|global_load_(async_to_)?lds")

SCRATCH = re.compile(r"(buffer|scratch)_(load|store)_(\w+)")
WORDS = {"dword": 1, "b32": 1, "dwordx2": 2, "b64": 2, "dwordx3": 3, "b96": 3, "dwordx4": 4, "b128": 4}
FRAME = [f"frame.{i}" for i in range(4)] # values of the words of the descriptor of scratch memory

REGISTERS = [f"{kind}{i}" for kind in "va" for i in range(256)]


def masks(operand):
    """The names of its words; a constant stands for itself."""
    operand = operand.split(" ")[0]
    if operand in ("exec", "vcc"):
        return [operand + "_lo", operand + "_hi"]
    found = re.fullmatch(r"s\[(\d+):(\d+)\]", operand)
    if found:
        return [f"s{i}" for i in range(int(found.group(1)), int(found.group(2)) + 1)]
    return [operand] * 2 if re.fullmatch(r"-?[\d.x]+\w*", operand) else [operand]


def number(text):
    try:
        return int(text, 0)
    except ValueError:
        return None


def vectors(operand):
    found = re.match(r"([va])(?:(\d+)|\[(\d+):(\d+)\])", operand)
    if not found:
        return []
    kind, one, first, last = found.groups()
    return [f"{kind}{i}" for i in (range(int(first), int(last) + 1) if not one else [int(one)])]


class Masks:
    """What is known: sets of masks that are full together (of one mask: it is full), none of which holds another; the vector registers that
    were written last with all lanes active, or by v_writelane; values of scalar registers, numbers or of FRAME, by which scratch memory is reached;
    and the registers of which anything may be known by lane."""
    MOST_TOGETHER, MOST = 4, 64

    def __init__(self, facts=(), whole=(), values=(), by_lane=()):
        self.facts, self.whole, self.values, self.by_lane = set(facts), set(whole), dict(values), set(by_lane)

    def copy(self):
        return Masks(self.facts, self.whole, self.values, self.by_lane)

    def key(self):
        return self.facts, self.whole, self.values

    def are_full(self, *masks):
        return any(f <= set(masks) for f in self.facts)

    def keep_least(self):
        """The smallest sets; of those of more than one mask not all."""
        single = {f for f in self.facts if len(f) < 2}
        full = frozenset().union(*single)
        more = {f for f in self.facts - single if len(f) <= self.MOST_TOGETHER and not f & full}
        more = [f for f in more if not any(frozenset(g) in more for n in range(2, len(f)) for g in itertools.combinations(f, n))]
        self.facts = single.union(sorted(more, key=lambda f: (len(f), sorted(f)))[:self.MOST])

    def meet(self, other):
        """Here is what was at the start of a block, there one more way to it."""
        here, there = self.facts - other.facts, other.facts - self.facts
        new = Masks((self.facts & other.facts) | {f | g for f in here for g in there}, self.whole & other.whole,
                    self.values.items() & other.values.items(), self.by_lane | other.by_lane)
        new.keep_least()
        return new

    def without(self, a):
        """What is full together with a mask."""
        return {frozenset()} if a == "-1" else {f - {a} for f in self.facts if a in f}

    def result(self, op, a, b):
        """Facts of a op b, of 32 bits, which they call "new"."""
        new, with_a, with_b = frozenset(["new"]), self.without(a), self.without(b)
        if op == "mov":
            return {f | new for f in with_a}
        if op == "or":
            return {f - {a, b} | new for f in with_a | with_b}
        if op == "and":
            return {f | g | new for f in with_a for g in with_b}
        facts = {f | {b} | new for f in with_a} if op in ("andn2", "xor") else set() # with b it is all of a
        return facts | ({f | {a} | new for f in with_b} if op == "xor" else set())

    def write(self, d, facts, saved=None):
        """A mask gets a new value, with these facts; or the value of the mask `saved`, which gets the new one."""
        self.values.pop(d, None)
        if not facts and not saved and not any(d in f for f in self.facts):
            return
        if "." in d:
            self.by_lane.add(d.split(".")[0])
        names = {"new": saved or d, saved: d}
        self.facts = {f for f in self.facts if d not in f}
        of_saved = {f for f in self.facts if saved in f}
        facts = {f - {"0"} for f in facts if d not in f} | of_saved
        self.facts -= of_saved
        self.facts |= {frozenset(names.get(m, m) for m in f) for f in facts if all(m[0].isalpha() for m in f)}
        self.keep_least()

    def combine(self, op, d, a, b="0"):
        self.write(d, self.result(op, a, b))

    def forget(self, m):
        self.write(m, set())

    def forget_lanes(self, v):
        self.whole.discard(v)
        if v in self.by_lane:
            lane = v + "."
            self.facts = {f for f in self.facts if not any(m.startswith(lane) for m in f)}
            self.whole = {x for x in self.whole if not x.startswith(lane)}
            self.by_lane.discard(v)

    def forget_words(self, at, words):
        """Those of scratch memory which some at an address overlap, or, where that is None, may."""
        if at is None:
            near = {x for x in self.whole | self.by_lane if x.startswith("scratch")}
        else:
            near = {f"scratch{n}" for n in range(at - 3, at + 4 * words)}
        for x in near:
            self.forget_lanes(x)

    def copy_lanes(self, a, b):
        """b, of whose lanes nothing is known, becomes what a is."""
        if a in self.whole:
            self.whole.add(b)
        if a in self.by_lane:
            self.whole |= {b + x[len(a):] for x in self.whole if x.startswith(a + ".")}
            self.by_lane.add(b)
            for m in {m for f in self.facts for m in f if m.startswith(a + ".")}:
                self.combine("mov", b + m[len(a):], m)

    def be_nothing(self, words):
        """exec is 0 on this path."""
        for m in words:
            self.facts |= self.without(m)
        self.facts.discard(frozenset())
        self.keep_least()


OPS = {"and": "and", "or": "or", "xor": "xor", "andn2": "andn2", "and_not1": "andn2", "orn2": "orn2", "or_not1": "orn2"}
BINARY = re.compile(r"s_(and|or|xor|andn2|and_not1|orn2|or_not1)_b(32|64)")
SAVE = re.compile(r"s_(and|or|xor|andn2|and_not1|andn1|and_not0|orn2|or_not1|orn1|or_not0)_saveexec_b(32|64)")


class Walk:
    def __init__(self, kernel, lanes, has_frame):
        self.kernel, self.faults, self.reads = kernel, {}, set()
        self.begin = {f"s{i}": x for i, x in enumerate(FRAME)} if has_frame else {}
        self.exec = ["exec_lo"] if lanes == 32 else ["exec_lo", "exec_hi"]

    def is_whole(self, s):
        return all(s.are_full(m) for m in self.exec)

    def fault(self, i, text):
        self.faults[i.line, text] = i.text

    def scalar(self, i, s):
        """True: what is known of its results is in s."""
        o = [masks(x) for x in i.operands]
        binary, save, one = BINARY.fullmatch(i.name), SAVE.fullmatch(i.name), re.fullmatch(r"s_(mov|not)_b(32|64)", i.name)
        if binary:
            for d, a, b in zip(*o):
                s.combine(OPS[binary.group(1)], d, a, b)
        elif save: # d = exec; exec = a op exec
            for d, a, e in zip(*o, self.exec):
                op = save.group(1)
                new = s.result("andn2", e, a) if op in ("andn1", "and_not0") else s.result(OPS.get(op, "other"), a, e)
                s.write(d, new, e)
        elif one:
            for d, a in zip(*o):
                s.combine("xor" if one.group(1) == "not" else "mov", d, *(("-1", a) if one.group(1) == "not" else (a,)))
        elif i.name == "v_readlane_b32" and i.operands[2].isdigit():
            s.combine("mov", i.operands[0], f"{i.operands[1]}.{i.operands[2]}")
        elif i.name == "v_writelane_b32" and i.operands[2].isdigit():
            slot = f"{i.operands[0]}.{i.operands[2]}"
            s.combine("mov", slot, o[1][0])
            s.whole.add(slot)
            s.by_lane.add(i.operands[0])
        else:
            return False
        return True

    def value(self, i, s):
        """{a scalar register: the value that an instruction gives it}"""
        if i.name in ("s_mov_b32", "s_movk_i32") and number(i.operands[1]) is not None:
            return {i.operands[0]: number(i.operands[1])}
        if i.name in ("s_mov_b32", "s_mov_b64"):
            return {d: s.values[a] for d, a in zip(*(masks(x) for x in i.operands)) if a in s.values}
        if i.name in ("s_add_u32", "s_addc_u32") and s.values.get(i.operands[1]) in FRAME: # where a wave's part begins
            s.forget_words(None, 0)
            return {i.operands[0]: s.values[i.operands[1]]}
        return {}

    def address(self, kind, operands, s):
        """(Is it one of scratch memory, its value if that is known) of a load's operands behind the result."""
        offset = re.search(r"offset:(-?\d+)", operands[-1])
        if kind == "buffer" and (len(operands) < 3 or [s.values.get(m) for m in masks(operands[1])] != FRAME):
            return False, None
        base = operands[-1].split(" ")[0]
        base = 0 if base == "off" else s.values.get(base, number(base))
        return True, base + int(offset.group(1) if offset else 0) if operands[0] == "off" and isinstance(base, int) else None

    def scratch(self, i, s):
        """True: it was an access of scratch memory, of which all is in s."""
        found = SCRATCH.fullmatch(i.name)
        kind, what, size = found.groups() if found else (None, None, "")
        o = i.operands[1::-1] + i.operands[2:] if (kind, what) == ("scratch", "store") else i.operands
        is_scratch, at = self.address(kind, o[1:], s) if found else (False, None)
        if not is_scratch:
            return False
        words, is_known = WORDS.get(size, 1), at is not None and size in WORDS and self.is_whole(s)
        if what == "store":
            s.forget_words(at, words)
        for n, v in enumerate(vectors(o[0])):
            word = f"scratch{at + 4 * n}" if is_known else "none"
            if what == "load":
                s.forget_lanes(v)
            s.copy_lanes(*((v, word) if what == "store" else (word, v)) if is_known else ("none", v))
        return True

    def write(self, i, s):
        """Forgets what an instruction overwrites."""
        results = i.operands[:0 if NO_RESULT.match(i.name) else 2 if SECOND_RESULT.match(i.name) else 1]
        for part in i.text.split(" :: ")[1:]: # two in one
            results.append(part.split(" ", 1)[1].split(",")[0])
        for o in results:
            for m in masks(o):
                s.forget(m)
            for v in vectors(o) if not i.name.startswith("v_cmpx") else ():
                s.forget_lanes(v)
                if self.is_whole(s):
                    s.whole.add(v)
        if i.name.startswith("v_cmpx") or i.name.startswith("s_wqm"):
            for m in self.exec:
                s.forget(m)

    def check(self, i, s):
        if i.name == "v_readlane_b32":
            self.reads.add(i.line)
            register = i.operands[1]
            if not (self.is_whole(s) or register in s.whole or f"{register}.{i.operands[2]}" in s.whole):
                self.fault(i, "not all lanes were active where the register was written")
        elif READS.match(i.name):
            self.reads.add(i.line)
            if not self.is_whole(s):
                self.fault(i, "not all lanes are active")

    def step(self, i, s):
        self.check(i, s)
        value = self.value(i, s)
        if not self.scalar(i, s) and not self.scratch(i, s):
            self.write(i, s)
        s.values.update(value)

    def run(self):
        blocks, states, work = self.kernel.blocks, {0: Masks([frozenset([m]) for m in self.exec], REGISTERS, self.begin)}, [0]
        while work:
            n = work.pop()
            s = states[n].copy()
            for i in blocks[n].code:
                self.step(i, s)
            last = blocks[n].code[-1]
            for k, to in enumerate(blocks[n].next):
                out = s.copy()
                if last.name == ("s_cbranch_execz" if k == 0 else "s_cbranch_execnz") and len(blocks[n].next) == 2:
                    out.be_nothing(self.exec)
                old = states.get(to)
                new = out if old is None else old.meet(out)
                if old is None or new.key() != old.key():
                    states[to] = new
                    work.append(to)
        return self.faults


def find_faults(text):
    """{(kernel, line, what): instruction}, how many instructions were seen, and how many of them read lanes."""
    target = re.search(r'\.amdgcn_target "amdgcn-amd-amdhsa--(gfx\w+)', text).group(1)
    found, seen, reads = {}, 0, 0
    for k in amd_asm.read(text).values():
        walk = Walk(k, 64 if target.startswith("gfx9") else 32, ".amdhsa_user_sgpr_private_segment_buffer 1" in text)
        for (line, what), code in walk.run().items():
            found[k.name, line, what] = code
        seen += sum(len(b.code) for b in k.blocks)
        reads += len(walk.reads)
    return found, seen, reads


def rows_of(a):
    rows = amd_asm.FEW if a.few else amd_asm.all_rows()
    rows = list(amd_asm.library(not a.sets)) + ([] if a.few else rows) if a.library or a.sets else rows
    return [r for r in rows if any(k in r.name for k in a.k.split(","))]


def targets_of(a):
    if a.targets != "all":
        return a.targets.split(",")
    with open(os.path.join(amd_asm.ROOT, "runtime", "contract", "gpu.def"), encoding="utf-8") as f:
        return re.findall(r'^GPU(?:_AS\(\w+, "|\()(gfx[\w-]+)', f.read(), re.M)


def texts(a):
    for path in a.files:
        with open(path, encoding="utf-8") as f:
            yield path, f.read()
    for row in [] if a.files else rows_of(a):
        for target in targets_of(a):
            try:
                text = row.asm(a.tilec, target)
            except ValueError as e: # what the target has no room for is said by other tests
                print(f"{row.name}, {target}: not compiled: {e}", flush=True)
                continue
            yield f"{row.name}, {target}", text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*")
    p.add_argument("--tilec", default=amd_asm.ROOT + "/build/bin/tilec")
    p.add_argument("--targets", default=",".join(amd_asm.TARGETS))
    p.add_argument("-k", default="")
    for option in ("--few", "--library", "--sets", "-v"):
        p.add_argument(option, action="store_true")
    a = p.parse_args()
    kernels = seen = reads = faults = 0
    for name, text in texts(a):
        found, instructions, of = find_faults(text)
        kernels, seen = kernels + len(amd_asm.read(text)), seen + instructions
        reads, faults = reads + of, faults + len(found)
        for (kernel, line, what), code in sorted(found.items()):
            print(f"{name}: {kernel}:{line}: {what}: {code}", flush=True)
        if a.v:
            print(f"{name}: {instructions} instructions, {of} read lanes, {len(found)} faults", flush=True)
    print(f"{kernels} kernels, {seen} instructions, {reads} that read lanes, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
