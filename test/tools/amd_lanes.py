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
`s_or exec, exec, s0` makes them one. A loop that lanes leave one by one keeps "exec and those that left". Where paths meet, what holds on
both remains. Of a mask that is compared for nothing is known, so code that masks a branch which whole waves take is an error, too. What the
lowering takes for a branch of whole waves is to be a scalar branch.

Last line: "N kernels, N instructions, N that read lanes, N faults"; exit 1 if there are faults.
"""
import argparse
import os
import re
import sys

import amd_asm

READS = re.compile(r"v_permlane|ds_swizzle|ds_b?permute|v_wmma|v_swmmac|v_mfma|v_smfmac|\w+_dpp\b|\w+_tr\d*_b\d+")
SECOND_RESULT = re.compile(r"v_(add|sub|subrev|addc|subb|subbrev)_co_|v_div_scale|v_mad_(co_)?[ui]64|v_swap|v_permlane\d+_swap")
NO_RESULT = re.compile(r"s_(cmp|bitcmp|cbranch|branch|waitcnt|wait_|nop|barrier|endpgm|setprio|sendmsg|delay|clause|set_gpr|store|dcache|code_end|sleep)"
                       r"|(global|buffer|flat|scratch|ds)_(store|write)")

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


def vectors(operand):
    found = re.match(r"([va])(?:(\d+)|\[(\d+):(\d+)\])", operand)
    if not found:
        return []
    kind, one, first, last = found.groups()
    return [f"{kind}{i}" for i in (range(int(first), int(last) + 1) if not one else [int(one)])]


class Masks:
    """What is known: sets of masks that are full together (of one mask: it is full), none of which holds another, and the vector registers that
    were written last with all lanes active, or by v_writelane."""
    MOST_TOGETHER, MOST = 4, 64

    def __init__(self, facts=(), whole=()):
        self.facts, self.whole = set(facts), set(whole)

    def copy(self):
        return Masks(self.facts, self.whole)

    def key(self):
        return self.facts, self.whole

    def are_full(self, *masks):
        return any(f <= set(masks) for f in self.facts)

    def keep_least(self):
        least = [f for f in self.facts if len(f) <= self.MOST_TOGETHER and not any(g < f for g in self.facts)]
        self.facts = set(sorted(least, key=lambda f: (len(f), sorted(f)))[:self.MOST])

    def meet(self, other):
        """Here is what was at the start of a block, there one more way to it."""
        new = Masks({f | g for f in self.facts for g in other.facts}, self.whole & other.whole)
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
        names = {"new": saved or d, saved: d}
        facts = {f - {"0"} for f in self.facts | facts if d not in f}
        self.facts = {frozenset(names.get(m, m) for m in f) for f in facts if all(m[0].isalpha() for m in f)}
        self.keep_least()

    def combine(self, op, d, a, b="0"):
        self.write(d, self.result(op, a, b))

    def forget(self, m):
        self.write(m, set())

    def forget_lanes(self, v):
        self.facts = {f for f in self.facts if not any(m.startswith(v + ".") for m in f)}
        self.whole = {x for x in self.whole if x != v and not x.startswith(v + ".")}

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
    def __init__(self, kernel, lanes):
        self.kernel, self.faults, self.reads = kernel, {}, set()
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
        else:
            return False
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
        if not self.scalar(i, s):
            self.write(i, s)

    def run(self):
        blocks, states, work = self.kernel.blocks, {0: Masks([frozenset([m]) for m in self.exec], REGISTERS)}, [0]
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
        walk = Walk(k, 64 if target.startswith("gfx9") else 32)
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
        return re.findall(r'^GPU\((gfx\w+)', f.read(), re.M)


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
