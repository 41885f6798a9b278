#!/usr/bin/env python3
"""Counts the instructions of AMD assembly as LLVM prints it (tilec --emit asm, Triton's amdgcn), by kind, kernel and loop.

    amdmix.py FILE.s [--kernel NAME] [--json] [--require EXPR]...

Kinds are those of KINDS; loops, their shortest way round and the main one are sassmix.py's. Registers, scratch and spills
are those that the file's metadata tell. `v_dual_` instructions count once. What `s_cbranch_execz` passes over counts.

--kernel NAME   only kernels whose symbol is NAME, or NAME and a number (gemm: gemm_0, gemm_1)
--json          [{"kernel", "total", "mix": {kind: count}, "names": {instruction: count}, "facts": {...}, "loops": [...]}]
--require EXPR  every kernel must fulfil it, else exit 1 and a line that says why: as in sassmix.py, names are kinds, facts
                (kernel.vgprs) and instructions: "(valu + salu) / matrix <= 1.5", "kernel.scratch == 0".
"""
import collections
import re
import sys

import sassmix

# Kind and what the instructions' names begin with; the first that fits.
KINDS = [("matrix", r"v_(mfma|smfmac|wmma|swmmac)_"), ("accvgpr", r"v_accvgpr_"), ("valu", r"v_"), ("scratch", r"scratch_"),
         ("copy", r"global_load_(async_to_)?lds_"), ("buffer_load", r"buffer_load_"), ("buffer_store", r"buffer_store_"), ("global_load", r"(global|flat)_load_"),
         ("global_store", r"(global|flat)_store_"), ("atomic", r"(global|flat|buffer)_atomic_"), ("lds_read", r"ds_(read|load)"),
         ("lds_write", r"ds_(write|store)"), ("lds_lane", r"ds_(bpermute|permute|swizzle)"), ("lds_other", r"ds_"),
         ("wait", r"s_wait"), ("barrier", r"s_barrier"), ("hint", r"s_(nop|delay_alu|clause|setprio|sleep|code_end|set_inst|sched)"),
         ("branch", r"s_(branch|cbranch|endpgm|setpc|swappc)"), ("smem", r"s_(buffer_)?load_"), ("salu", r"s_"), ("other", r"")]
NAMES = [k for k, _ in KINDS]
MATRIX = "matrix"
FACTS = {"vgprs": "vgpr_count", "agprs": "agpr_count", "sgprs": "sgpr_count", "scratch_bytes": "private_segment_fixed_size",
         "spills": "vgpr_spill_count", "lds_bytes": "group_segment_fixed_size"}


class Instruction:
    def __init__(self, name, operands, comment):
        self.name, self.operands = name, operands
        self.kind = next(k for k, pattern in KINDS if re.match(pattern, name))
        if self.kind == "buffer_load" and re.search(r"\blds\b", operands):
            self.kind = "copy"
        # gfx90a has scratch memory behind the buffer instructions, of the resource that the kernel is given
        if self.kind.startswith("buffer_") and re.search(r"\bFolded (Spill|Reload)", comment):
            self.kind = "scratch"

    def is_conditional(self):
        return self.name.startswith("s_cbranch")

    def bytes(self):
        """(memory, bytes that a lane asks for), or None"""
        m = re.match(r"(global|flat|buffer|ds)_(load|store|read|write|atomic)(2(?:st64)?)?_(?:\w+?_)?(?:[usbif](\d+)|[us]?(byte|short)|dword(?:x(\d))?)", self.name)
        if not m:
            return None
        each = int(m[4]) // 8 if m[4] else {"byte": 1, "short": 2}.get(m[5], 4 * int(m[6] or 1))
        return "shared" if m[1] == "ds" else "global", each * (2 if m[3] else 1)


class Flow(sassmix.Flow):
    jumps = ("s_branch", "s_cbranch_scc0", "s_cbranch_scc1", "s_cbranch_vccz", "s_cbranch_vccnz", "s_cbranch_execz", "s_cbranch_execnz")
    ends = jumps + ("s_endpgm", "s_setpc_b64")

    def target(self, i):
        return self.sm[self.code[i].operands]  # the labels

    def targets(self, i):
        """What is passed over where no lane is active counts: the branch is for the rare wave."""
        return [i + 1] if self.code[i].name == "s_cbranch_execz" else super().targets(i)


def read(text):
    """[(kernel, instructions, label to index)]: what lies between the label of a kernel and its .Lfunc_end."""
    facts, found, code, labels = read_facts(text), [], None, {}
    for line in text.splitlines():
        body, _, comment = line.partition(";")
        label = re.match(r"([\w.$]+):", body)
        if label and label[1] in facts:
            code, labels = [], {}
            found.append((label[1], code, labels))
        elif label and label[1].startswith(".Lfunc_end"):
            code = None
        elif label and code is not None:
            labels[label[1]] = len(code)
        elif code is not None and re.match(r"\s+[a-z]", body):
            name, _, operands = body.strip().partition(" ")
            code.append(Instruction(name, operands.strip(), comment))
    return [(name, body, labels, facts[name]) for name, body, labels in found]


def read_facts(text):
    """Kernel to its facts, from the file's metadata."""
    found = {}
    for part in re.split(r"\n  - ", text.split(".amdgpu_metadata", 1)[-1])[1:]:
        name = re.search(r"^\s*\.name:\s+(\S+)$", part, re.M)
        if name:
            found[name[1]] = {k: int(m[1]) for k, field in FACTS.items() for m in [re.search(rf"\.{field}:\s+(\d+)", part)] if m}
    return found


def mixes(code):
    return {"total": len(code), "mix": collections.Counter(x.kind for x in code), "names": collections.Counter(x.name for x in code),
            "bytes": sassmix.bytes_of(code)}


def weight(loop):
    return loop["mix"][MATRIX], loop["names"]["v_fma_f32"] + loop["names"]["v_fmac_f32_e32"], loop["total"]


def worth_counting(flow):
    """[(header, blocks)]: innermost loops, and those that are the innermost around a matrix instruction: an address that differs between
    lanes is used in a small loop of its own."""
    every = flow.loops()
    with_matrix = {head for head, body in every.items() if any(x.kind == MATRIX for x in flow.instructions(body))}
    inside = {head: {other for other in every if other != head and other in body} for head, body in every.items()}
    return [(head, every[head]) for head in sorted(every)
            if not inside[head] or (head in with_matrix and not inside[head] & with_matrix)]


def analyze(name, code, labels, facts):
    while code and code[-1].name in ("s_code_end", "s_nop"):
        code.pop()
    flow, loops = Flow(code, labels), []
    for head, body in worth_counting(flow) if code else []:
        loops.append({"main": False, **mixes(flow.instructions(body)), "short": mixes(flow.instructions(flow.shortest(head, body))),
                      "moving": mixes(flow.instructions(flow.moving(head, body)))})
    if loops:
        max(loops, key=weight)["main"] = True
    return {"kernel": name, **mixes(code), "facts": facts, "loops": loops}


def analyze_file(path, kernel=None):
    with open(path, encoding="utf-8") as f:
        kernels = read(f.read())
    wanted = re.compile(re.escape(kernel) + r"(_\d+)?") if kernel else re.compile(".*")
    return [analyze(*k) for k in kernels if wanted.fullmatch(k[0])]


def count(scope, name):
    if name == "all":
        return scope["total"]
    if name in scope.get("facts", {}):
        return scope["facts"][name]
    if name not in NAMES and not re.match(r"(v|s|ds|buffer|global|flat|scratch)_", name):
        raise ValueError(f"no kind, fact or instruction is called '{name}'")
    return scope["mix"][name] if name in NAMES else scope["names"][name]


def show(kernel):
    facts = ", ".join(f"{n} {name}" for name, n in kernel["facts"].items())
    print(f"kernel {kernel['kernel']}: {kernel['total']} instructions; {facts}")
    sassmix.show_mix(kernel["mix"], "    ")
    for x in kernel["loops"]:
        print(f"  loop{' (main)' if x['main'] else ''}: {x['total']} instructions; the shortest way round {x['short']['total']}")
        sassmix.show_mix(x["short"]["mix"], "      ")


def main(args):
    return sassmix.command("amdmix", args, __doc__, analyze_file, show, count, (KeyError,))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
