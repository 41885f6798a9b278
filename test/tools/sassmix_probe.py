#!/usr/bin/env python3
"""Proves codegen/report/sass.def: assembles PTX that has one instruction several times and looks for the operation it becomes.

    sassmix_probe.py [TARGET...] [--nvdisasm FILE.cubin...]      default: sm_80 sm_89 sm_90a

Each probe is assembled with its instruction never and TIMES times; the difference is what the instruction adds. It must
be the operation of the row: exactly TIMES where the row says `=`, at least as often where `>`, at least once where `1`
(ptxas has other ways to do the same and mixes them). Every operation of every probe must be in the table. With --nvdisasm (NVIDIA's disassembler on PATH) the files given are compared with it, word
by word, branch targets too; nothing needs it.
"""
import collections
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import sassmix

TIMES = 3

# (operation, "=" or ">" or "1", first target that has it or the only one, PTX). %a0 ... are loaded b32 registers, %d0 ... b64;
# [%g] is global memory of this thread, [%s] its shared memory. What an instruction gives it should also take.
MMA = "{%a0,%a1,%a2,%a3}, {%a4,%a5,%a6,%a7}, {%a4,%a5}, {%a0,%a1,%a2,%a3};"
ROWS = [
    ("HMMA", "=", 80, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + MMA),
    ("HMMA", "=", 80, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " + MMA),
    ("HMMA", "=", 80, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 " + MMA),
    ("IMMA", "=", 80, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 " + MMA),
    ("IMMA", "=", 80, "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 " + MMA),
    ("QMMA", "=", "sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 " + MMA),
    ("DMMA", "=", 80, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0,%d1}, {%d2}, {%d3}, {%d0,%d1};"),
    ("LDSM", "=", 80, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0,%a1,%a2,%a3}, [%s]; xor.b32 %s, %a0, %a3;"),
    ("LDSM", "=", 80, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%a0,%a1}, [%s]; xor.b32 %s, %a0, %a1;"),
    ("STSM", "=", 90, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%s], {%a0,%a1,%a2,%a3};"),
    ("LDGSTS", "=", 80, "cp.async.cg.shared.global [%s], [%g], 16;"),
    ("LDGSTS", "=", 80, "cp.async.ca.shared.global [%s], [%g], 4;"),
    ("LDGDEPBAR", "=", 80, "cp.async.cg.shared.global [%s], [%g], 16; cp.async.commit_group;"),
    ("DEPBAR", ">", 80, "cp.async.cg.shared.global [%s], [%g], 16; cp.async.commit_group; cp.async.wait_group 0;"),
    ("LDG", "=", 80, "ld.volatile.global.b32 %a0, [%g]; xor.b32 %a1, %a1, %a0;"),
    ("LDG", "=", 80, "ld.volatile.global.v4.b32 {%a0,%a1,%a2,%a3}, [%g]; cvt.u64.u32 %o, %a3; add.s64 %g, %g, %o;"),
    ("STG", "=", 80, "st.volatile.global.v4.b32 [%g], {%a0,%a1,%a2,%a3};"),
    ("LDS", "=", 80, "ld.volatile.shared.v2.b32 {%a0,%a1}, [%s]; xor.b32 %s, %s, %a1;"),
    ("STS", "=", 80, "st.volatile.shared.b32 [%s], %a0;"),
    ("LDL", "=", 80, "st.local.b32 [%l], %a0; xor.b32 %l, %l, %a1; ld.local.b32 %a1, [%l]; xor.b32 %l, %l, %a1;"),
    ("STL", "=", 80, "st.local.b32 [%l], %a0; xor.b32 %l, %l, %a1; ld.local.b32 %a1, [%l]; xor.b32 %l, %l, %a1;"),
    ("BAR", "=", 80, "bar.sync 0; ld.volatile.shared.b32 %a0, [%s];"),
    ("MEMBAR", "=", 80, "fence.acq_rel.gpu; st.volatile.global.b32 [%g], %a0;"),
    ("SHFL", "=", 80, "shfl.sync.bfly.b32 %a0, %a0, 3, 31, -1;"),
    ("VOTE", "=", 80, "setp.lt.s32 %p, %a0, %a1; vote.sync.ballot.b32 %a0, %p, -1;"),
    ("REDUX", ">", 80, "redux.sync.add.s32 %a0, %a0, -1; xor.b32 %a0, %a0, %a1;"),
    ("ATOMS", "=", 80, "atom.shared.exch.b32 %a0, [%s], %a0;"),
    ("ATOMG", "=", 80, "atom.global.exch.b32 %a0, [%g], %a0;"),
    ("FFMA", "=", 80, "fma.rn.f32 %a0, %a0, %a1, %a2;"),
    ("FADD", "=", 80, "add.rn.f32 %a0, %a0, %a1;"),
    ("FMUL", "=", 80, "mul.rn.f32 %a0, %a0, %a1;"),
    ("FMNMX", "=", 80, "max.f32 %a0, %a0, %a1; add.rn.f32 %a0, %a0, %a2;"),
    ("MUFU", "=", 80, "ex2.approx.ftz.f32 %a0, %a0;"),
    ("DFMA", "=", 80, "fma.rn.f64 %d0, %d0, %d1, %d2;"),
    ("DADD", "=", 80, "add.rn.f64 %d0, %d0, %d1;"),
    ("DMUL", "=", 80, "mul.rn.f64 %d0, %d0, %d1;"),
    ("HFMA2", "1", 80, "fma.rn.f16x2 %a0, %a0, %a1, %a2;"),
    ("HADD2", "1", 80, "add.rn.f16x2 %a0, %a0, %a1; max.f16x2 %a0, %a0, %a2;"),
    ("HMUL2", "1", 80, "mul.rn.f16x2 %a0, %a0, %a1; max.f16x2 %a0, %a0, %a2;"),
    ("HMNMX2", "=", 80, "mul.rn.f16x2 %a0, %a0, %a1; max.f16x2 %a0, %a0, %a2;"),
    ("F2FP", "=", 80, "cvt.rn.f16x2.f32 %a0, %a0, %a1;"),
    ("I2F", "=", 80, "cvt.rn.f64.s32 %d0, %a0; cvt.rzi.s32.f64 %a0, %d0;"),
    ("F2I", "=", 80, "cvt.rn.f64.s32 %d0, %a0; cvt.rzi.s32.f64 %a0, %d0;"),
    ("F2F", "=", 80, "cvt.rn.f32.f64 %a0, %d0; mov.b64 %d0, {%a0, %a1};"),
    ("IMAD", "1", 80, "mad.lo.s32 %a0, %a0, %a1, %a2; xor.b32 %a0, %a0, %a3;"),
    ("IADD3", "1", 80, "add.s32 %a0, %a0, %a1; add.s32 %a0, %a0, %a2; xor.b32 %a0, %a0, %a3;"),
    ("LOP3", "=", 80, "lop3.b32 %a0, %a0, %a1, %a2, 0xd8; mul.rn.f32 %a0, %a0, %a1;"),
    ("SHF", "1", 80, "shf.l.wrap.b32 %a0, %a0, %a1, %a2;"),
    ("PRMT", "=", 80, "prmt.b32 %a0, %a0, %a1, 0x1537;"),
    ("POPC", "=", 80, "popc.b32 %a0, %a0;"),
    ("FLO", "=", 80, "bfind.u32 %a0, %a0;"),
    ("BREV", "=", 80, "brev.b32 %a0, %a0; xor.b32 %a0, %a0, %a1;"),
    ("FSETP", ">", 80, "setp.lt.f32 %p, %a0, %a1; @%p mul.rn.f32 %a0, %a0, %a2;"),
    ("ISETP", ">", 80, "setp.lt.s32 %p, %a0, %a1; @%p mul.rn.f32 %a0, %a0, %a2;"),
    ("SEL", ">", 80, "setp.lt.s32 %p, %a0, %a1; selp.b32 %a0, %a2, %a3, %p; mul.rn.f32 %a0, %a0, %a2;"),
    ("SYNCS", ">", 90, "mbarrier.arrive.shared.b64 _, [%s];"),
    ("UBLKCP", "=", 90, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%g], 16, [%s];"),
    ("UTMALDG", "=", 90, "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                         "[%s], [%g, {%a0, %a1}], [%s];"),
    ("UTMASTG", "=", 90, "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%g, {%a0, %a1}], [%s];"),
    ("HGMMA", "1", "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%a0,%a1,%a2,%a3}, %d0, %d1, 1, 1, 1, 0, 0;"),
    ("IGMMA", "1", "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%a0,%a1,%a2,%a3}, %d0, %d1, 1;"),
    ("QGMMA", "1", "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%a0,%a1,%a2,%a3}, %d0, %d1, 1, 1, 1;"),
]

KERNEL = """.visible .entry {name}(.param .u64 place)
{{
.reg .pred %p; .reg .b32 %a<8>, %s, %l, %t; .reg .b64 %d<4>, %g, %o;
.local .align 16 .b8 stack[64]; .shared .align 128 .b8 memory[8192];
ld.param.u64 %g, [place]; cvta.to.global.u64 %g, %g;
mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 64; add.s64 %g, %g, %o;
mov.u32 %s, memory; shl.b32 %l, %t, 4; add.s32 %s, %s, %l;
mov.u32 %l, stack; and.b32 %t, %t, 12; add.s32 %l, %l, %t;
ld.volatile.global.v4.b32 {{%a0,%a1,%a2,%a3}}, [%g]; ld.volatile.global.v4.b32 {{%a4,%a5,%a6,%a7}}, [%g+16];
mov.b64 %d0, {{%a0,%a1}}; mov.b64 %d1, {{%a2,%a3}}; mov.b64 %d2, {{%a4,%a5}}; mov.b64 %d3, {{%a6,%a7}};
{body}
st.volatile.global.v4.b32 [%g], {{%a0,%a1,%a2,%a3}}; st.volatile.global.v2.b64 [%g+16], {{%d0,%d1}};
st.volatile.global.b32 [%g+32], %s;
ret;
}}
"""


def has(row, target):
    if isinstance(row[2], str):
        return row[2] == target
    return row[2] <= int(re.match(r"sm_(\d+)", target).group(1))


def assemble(rows, target, path):
    """An error's text, or None."""
    ptx = f".version 8.4\n.target {target}\n.address_size 64\n"
    for i, row in enumerate(rows):
        for n in (0, TIMES):
            ptx += KERNEL.format(name=f"probe{i}_{n}", body="\n".join([row[3]] * n))
    with open(path + ".ptx", "w", encoding="utf-8") as f:
        f.write(ptx)
    p = subprocess.run(["ptxas", f"-arch={target}", path + ".ptx", "-o", path], capture_output=True, text=True)
    return (p.stderr or p.stdout).strip() if p.returncode else None


def judge(row, without, with_):
    """What is wrong with a row, or None."""
    name, want, _, ptx = row
    unknown = [n for n in with_["mix"] if n.startswith("op_")]
    if unknown:
        return f"{ptx}: {', '.join(unknown)} is not in the table"
    more = with_["mix"][name] - without["mix"][name]
    if more == TIMES or (want == ">" and more > TIMES) or (want == "1" and more > 0):
        return None
    found = collections.Counter(with_["mix"])
    found.subtract(without["mix"])
    return f"{ptx}: {more} {name}, not {TIMES}; it became {dict((k, v) for k, v in found.items() if v)}"


def probe(target, folder):
    """(number of rows, complaints)."""
    rows, path = [r for r in ROWS if has(r, target)], f"{folder}/{target}.cubin"
    error = assemble(rows, target, path)
    if error:
        return len(rows), [error]
    found = {k["kernel"]: k for k in sassmix.analyze_file(path)}
    wrong = [judge(row, found[f"probe{i}_0"], found[f"probe{i}_{TIMES}"]) for i, row in enumerate(rows)]
    return len(rows), [w for w in wrong if w]


# ---- against NVIDIA's disassembler ----

LINE = re.compile(r"\s+/\*([0-9a-f]+)\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z]\w*)[^;`]*(?:`\((\.L_\w+)\))?")


def listing(path):
    """(kernel, address) to (operation, label it goes to), and (kernel, label) to its address."""
    text = subprocess.run(["nvdisasm", "-c", path], capture_output=True, text=True, check=True).stdout
    kernel, waiting, code, labels = None, [], {}, {}
    for line in text.split("\n"):
        section, label = re.match(r"\s*\.section\s+\.text\.([^,]+),", line), re.match(r"(\.L_\w+):", line)
        m = LINE.match(line)
        if section:
            kernel, waiting = section.group(1), []
        elif label:
            waiting.append(label.group(1))
        elif m and kernel:
            at = int(m.group(1), 16)
            code[kernel, at] = m.group(2), m.group(3)
            labels.update({(kernel, w): at for w in waiting})
            waiting = []
    return code, labels


def compare(path):
    """(instructions, complaints)."""
    code, labels = listing(path)
    with open(path, "rb") as f:
        sm, kernels = sassmix.read_cubin(f.read())
    texts, wrong = dict(kernels), []
    for (kernel, at), (name, label) in code.items():
        x = sassmix.Instruction(*struct.unpack_from("<QQ", texts[kernel], at))
        if x.operation != name:
            wrong.append(f"{path}: {kernel}+{at:#x}: {x.operation}, but nvdisasm says {name}")
        to = labels.get((kernel, label))
        if x.name in sassmix.JUMPS and to is not None and at + 16 + x.offset(sm) != to:
            wrong.append(f"{path}: {kernel}+{at:#x}: {x.name} goes to {to:#x}, not {at + 16 + x.offset(sm):#x}")
    return len(code), wrong


def main(args):
    bad = False
    if "--nvdisasm" in args:
        for path in args[args.index("--nvdisasm") + 1:]:
            count, wrong = compare(path)
            bad |= bool(wrong)
            print("\n".join(wrong + [f"{path}: {count} instructions compared, {len(wrong)} wrong"]))
        return 1 if bad else 0
    if not shutil.which("ptxas"):
        print("skipped: no ptxas on PATH")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for target in args or ["sm_80", "sm_89", "sm_90a"]:
            count, wrong = probe(target, folder)
            bad |= bool(wrong)
            print("\n".join(wrong + [f"{target}: {count} probes, {len(wrong)} wrong"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
