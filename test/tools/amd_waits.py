#!/usr/bin/env python3
"""Does AMD code wait for what it loads? A walk over the assembly of kernels, along all paths.

    amd_waits.py [FILE.s ...] [--tilec TILEC] [--targets gfx942,gfx1100] [-k PART] [--few] [--mutate] [-v]

FILE: assembly text with its `.amdgcn_target` line; without files the kernels of amd_asm.py (--few: six of them) are compiled for the
targets. Reported is, by line:
  * an operand, read or written, whose load may not have returned: fewer than all later loads were waited for
  * a barrier that is reached while an access to LDS, or on gfx11 and gfx12 a store to memory, may not be done
  * the end of the kernel while a copy to LDS may not be done
  * registers given back (s_sendmsg MSG_DEALLOC_VGPRS) while a store to scratch may not be done
--mutate: takes each wait out in turn; it is reported whether that is noticed. Some waits are behind others, and needless.

Copies to LDS are in flight at barriers, as loops begin them ahead; which of them a read of LDS needs is not looked at.
Counters: gfx9 vmcnt (loads, stores and copies to LDS), lgkmcnt (LDS in order, scalar loads in any); gfx11 besides vscnt (stores); gfx12 loadcnt,
storecnt, dscnt, kmcnt, gfx1250 besides asynccnt (copies to LDS). A load that is no older than n others of its counter is not there after a wait for n. Hazards that s_nop covers are
not looked at. Last line: "N kernels, N instructions, N waits, N faults"; exit 1 if there are faults.
"""
import argparse
import re
import sys

import amd_asm

REGISTER = re.compile(r"\b([vsa])(?:(\d+)|\[(\d+):(\d+)\])(?![\w\[])")
GREATEST = 63
LDS, MEMORY, SCRATCH, COPY = "an access to LDS", "a store to memory", "a store to scratch", "a copy to LDS"


def registers(operand):
    found = []
    for kind, one, first, last in REGISTER.findall(operand):
        first, last = (one, one) if one else (first, last)
        found += [(kind, i) for i in range(int(first), int(last) + 1)]
    found += [("vcc", 0)] if re.match(r"vcc", operand) else []
    return found


class Counters:
    """Which counter an instruction counts up, and how waits are written."""

    def __init__(self, target):
        self.generation = 9 if target.startswith("gfx9") else int(target[3:5])
        new = self.generation >= 12
        self.load = "loadcnt" if new else "vmcnt"
        self.store = "storecnt" if new else "vscnt" if self.generation >= 10 else "vmcnt"
        self.lds = "dscnt" if new else "lgkmcnt"
        self.scalar = "kmcnt" if new else "lgkmcnt"

    def waits(self, i):
        """{counter: n} of a wait; None: it is none."""
        if i.name == "s_waitcnt":
            return {name: int(n) for name, n in re.findall(r"(\w+)\((\d+)\)", i.text)} or {c: 0 for c in ("vmcnt", "lgkmcnt") if i.operands == ["0"]}
        if i.name == "s_waitcnt_vscnt":
            return {"vscnt": int(i.operands[1], 0)}
        found = re.fullmatch(r"s_wait_(load|store|ds|km|async)cnt(_dscnt)?", i.name)
        if not found:
            return {"loadcnt": 0, "storecnt": 0, "dscnt": 0, "kmcnt": 0, "asynccnt": 0} if i.name == "s_wait_idle" else None
        n = int(i.operands[0], 0)
        if found.group(2):
            return {found.group(1) + "cnt": n >> 8 & 63, "dscnt": n & 63}
        return {found.group(1) + "cnt": n}

    def issued(self, i):
        """(counter, operand that is loaded or None, what may not be on its way at a barrier or None); None: it counts nothing."""
        name = i.name
        if name.startswith("global_load_async_to_lds"):
            return "asynccnt", None, COPY
        if name.startswith("global_load_lds") or (name.startswith("buffer_load") and re.search(r"\blds\b", i.text)):
            return self.load, None, COPY
        if name.startswith(("s_load", "s_buffer_load")):
            return self.scalar, 0, None
        if name.startswith("ds_"):
            returns = "_read" in name or "_load" in name or "_rtn" in name or "permute" in name or "swizzle" in name
            moves = "permute" in name or "swizzle" in name
            return self.lds, 0 if returns else None, None if moves else LDS
        space = re.match(r"(global|buffer|scratch|flat)_(load|store|atomic)", name)
        if not space:
            return None
        where = SCRATCH if space.group(1) == "scratch" else MEMORY
        if space.group(2) == "load":
            return self.load, 0, None
        if space.group(2) == "atomic" and re.search(r"\b(glc|sc0|TH_ATOMIC_RETURN)\b", i.text):
            return self.load, 0, None
        return self.store, None, where


class Walk:
    """What is on its way: {(register, counter) or (what, counter): how many of the counter's are younger}."""

    def __init__(self, counters, kernel):
        self.counters, self.kernel, self.faults = counters, kernel, {}

    def fault(self, i, text):
        self.faults.setdefault((i.line, text), i.text)

    def check(self, i, state, operands):
        for operand in operands:
            for r in registers(operand):
                for counter in (self.counters.load, self.counters.lds, self.counters.scalar):
                    if state.pop((r, counter), None) is not None:
                        self.fault(i, f"{r[0]}{r[1]} may not be there: {counter}")

    def issue(self, i, state, counter, loaded, what):
        """Scalar loads return in any order: others do not age by them, and they do not age."""
        scalar = i.name.startswith("s_")
        for key in [k for k in state if k[1] == counter and k[0][0] != "s"] if not scalar else ():
            state[key] += 1
            if state[key] == GREATEST: # the counter counts no further, so it is there
                del state[key]
        if loaded is not None:
            for r in registers(i.operands[loaded]):
                state[r, counter] = 0
        if what:
            state[what, counter] = 0

    def step(self, i, state):
        waits = self.counters.waits(i)
        if waits is not None:
            for key in [k for k, age in state.items() if k[1] in waits and age >= waits[k[1]]]:
                del state[key]
            return
        issued = self.counters.issued(i)
        in_order = issued and issued[1] is not None and not i.name.startswith("s_")
        if in_order: # a load over one of the same kind comes after it
            same = {(r, issued[0]) for r in registers(i.operands[issued[1]])}
            for key in same & set(state):
                if key[0] not in [r for o in i.operands[1:] for r in registers(o)]:
                    del state[key]
        self.check(i, state, i.operands)
        if issued:
            self.issue(i, state, *issued)
        at_barrier = i.name in ("s_barrier", "s_barrier_signal")
        for what, counter in [k for k in state if isinstance(k[0], str)]:
            if at_barrier and (what == LDS or (what == MEMORY and self.counters.generation > 9)):
                self.fault(i, f"a barrier, and {what} is on its way: {counter}")
            if i.name == "s_endpgm" and what == COPY:
                self.fault(i, f"the end, and {what} is on its way: {counter}")
            if "DEALLOC" in i.text and what == SCRATCH:
                self.fault(i, f"registers are given back, and {what} is on its way: {counter}")

    def run(self):
        blocks, states, work = self.kernel.blocks, {0: {}}, [0]
        while work:
            n = work.pop()
            state = dict(states[n])
            for i in blocks[n].code:
                self.step(i, state)
            for to in blocks[n].next:
                old = states.get(to)
                new = dict(state) if old is None else {k: min(old.get(k, GREATEST), state.get(k, GREATEST)) for k in old.keys() | state.keys()}
                if new != old:
                    states[to] = new
                    work.append(to)
        return self.faults


def find_faults(text, kernels=None):
    """{(kernel, line, what): instruction}, how many instructions and waits were seen."""
    target = re.search(r'\.amdgcn_target "amdgcn-amd-amdhsa--(gfx\w+)', text).group(1)
    counters, found, seen, waits = Counters(target), {}, 0, []
    kernels = kernels or amd_asm.read(text)
    for k in kernels.values():
        for (line, what), code in Walk(counters, k).run().items():
            found[k.name, line, what] = code
        code = [i for b in k.blocks for i in b.code]
        seen += len(code)
        waits += [(k, i) for i in code if counters.waits(i) is not None]
    return found, seen, waits


def mutate(text):
    """How many waits there are whose absence is noticed, of how many."""
    kernels, noticed = amd_asm.read(text), 0
    _, _, waits = find_faults(text, kernels)
    for k, i in waits:
        name, i.name = i.name, "s_nop"
        found, _, _ = find_faults(text, {k.name: k})
        noticed += bool(found)
        i.name = name
    return noticed, len(waits)


def texts(a):
    for path in a.files:
        with open(path, encoding="utf-8") as f:
            yield path, f.read()
    for row in [] if a.files else [r for r in (amd_asm.FEW if a.few else amd_asm.all_rows()) if a.k in r.name]:
        for target in a.targets.split(","):
            yield f"{row.name}, {target}", row.asm(a.tilec, target)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*")
    p.add_argument("--tilec", default=amd_asm.ROOT + "/build/bin/tilec")
    p.add_argument("--targets", default=",".join(amd_asm.TARGETS))
    p.add_argument("-k", default="")
    p.add_argument("--few", action="store_true")
    p.add_argument("--mutate", action="store_true")
    p.add_argument("-v", action="store_true")
    a = p.parse_args()
    kernels = seen = waits = faults = 0
    for name, text in texts(a):
        found, instructions, all_waits = find_faults(text)
        kernels, seen = kernels + len(amd_asm.read(text)), seen + instructions
        waits, faults = waits + len(all_waits), faults + len(found)
        for (kernel, line, what), code in sorted(found.items()):
            print(f"{name}: {kernel}:{line}: {what}: {code}", flush=True)
        if a.mutate:
            noticed, of = mutate(text)
            print(f"{name}: {noticed} of {of} waits are missed when they are not there", flush=True)
        elif a.v:
            print(f"{name}: {instructions} instructions, {len(all_waits)} waits, {len(found)} faults", flush=True)
    print(f"{kernels} kernels, {seen} instructions, {waits} waits, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
