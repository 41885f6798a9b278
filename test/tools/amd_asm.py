"""AMD assembly text (`tilec --emit asm`) as kernels: their blocks of instructions, and what their notes say."""
import os
import re
import subprocess

HIGH = re.compile(r"v\S+ /\*(v\S+)\*/") # a register above 255, reached by a mode: as a number below it, and what it is
FACTS = ("private_segment_fixed_size", "vgpr_count", "agpr_count", "vgpr_spill_count", "sgpr_spill_count")


class Instruction:
    """`line` is that of the text, from 1; `operands` as they are written, without modifiers behind the last."""

    def __init__(self, line, text):
        self.line, self.text = line, text
        self.name, _, rest = text.partition(" ")
        self.operands = [x.strip() for x in re.split(r",(?![^\[]*\])", rest)] if rest else []


class Block:
    """Instructions without a label among them; `next` are the blocks that may follow."""

    def __init__(self):
        self.code, self.next = [], []


class Kernel:
    def __init__(self, name):
        self.name, self.blocks, self.facts = name, [], {}

    def loops(self):
        """Ranges of blocks (first, last) in text order that a branch closes."""
        return sorted({(to, i) for i, b in enumerate(self.blocks) for to in b.next if to <= i})


def instructions(lines):
    """(label or None, Instruction or None) of each line that has one. Of a far branch, the place that it is measured from is no label."""
    for n, line in lines:
        line = HIGH.sub(r"\1", line.split(";")[0]).strip()
        label = re.fullmatch(r"([.\w$]+):", line)
        if label and label.group(1).startswith(".Lpost_getpc"):
            continue
        if label:
            yield label.group(1), None
        elif line and not line.startswith((".", "//")):
            yield None, Instruction(n, " ".join(line.split()))


def make_blocks(lines):
    blocks, at, names = [Block()], {}, []
    for label, code in instructions(lines):
        if label:
            if blocks[-1].code:
                blocks.append(Block())
            at[label] = len(blocks) - 1
            continue
        blocks[-1].code.append(code)
        if code.name.startswith(("s_cbranch", "s_branch", "s_setpc", "s_endpgm")):
            blocks.append(Block())
    if not blocks[-1].code:
        names = [x for x, i in at.items() if i == len(blocks) - 1]
        blocks.pop()
    for i, b in enumerate(blocks):
        last = b.code[-1]
        if last.name.startswith(("s_cbranch", "s_branch")):
            if last.operands[0] not in names:
                b.next.append(at[last.operands[0]])
        if last.name.startswith("s_setpc"):
            far = [x for c in b.code for x in re.findall(r"\((\.L\w+)-\.Lpost_getpc", c.text)]
            b.next += [at[x] for x in far[-1:] if x not in names]
        if not last.name.startswith(("s_branch", "s_setpc", "s_endpgm")) and i + 1 < len(blocks):
            b.next.append(i + 1)
    return blocks


def read(text):
    """The kernels of a text, by name."""
    lines, kernels = list(enumerate(text.splitlines(), 1)), {}
    start = {x.group(1): n for n, line in lines if (x := re.match(r"\s*\.type\s+([\w.$]+),@function", line))}
    for name, first in start.items():
        end = next(n for n, line in lines[first:] if line.startswith(".Lfunc_end"))
        k = kernels[name] = Kernel(name)
        k.blocks = make_blocks([x for x in lines[first:end - 1] if x[1].strip() != f"{name}:"])
    for part in re.split(r"\n  - \.a", text.partition("amdhsa.kernels:")[2])[1:]:
        name = re.search(r"\.symbol:\s+'?([\w.$]+)\.kd", part).group(1)
        kernels[name].facts = {f: int(x.group(1)) if (x := re.search(rf"\b{f}:\s+(\d+)", ".a" + part)) else 0 for f in FACTS}
    return kernels


# ---- what the tools look at ----

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")


class Row:
    """A kernel of a .tile file with constants; warps 0: as the file says."""

    def __init__(self, file, kernel=None, warps=0, stages=0, **consts):
        self.file, self.kernel, self.warps, self.stages, self.consts = file, kernel, warps, stages, consts
        name = kernel or os.path.basename(file).removesuffix(".tile")
        shape = "x".join(str(consts[x]) for x in ("BM", "BN", "BK") if x in consts)
        other = [f"{k}={v}" for k, v in consts.items() if k not in ("BM", "BN", "BK")]
        self.name = " ".join([name, shape, *other, *([f"{warps} warps"] if warps else []), *([f"{stages} stages"] if stages else [])]).replace("  ", " ")

    def asm(self, tilec, target):
        """The text, or what is wrong."""
        words = [tilec, os.path.join(ROOT, self.file), "--target", target, "--emit", "asm", "-o", "-"]
        words += ["--kernel", self.kernel] if self.kernel else []
        words += ["--warps", str(self.warps)] if self.warps else []
        words += ["--stages", str(self.stages)] if self.stages else []
        words += [w for k, v in self.consts.items() for w in ("--const", f"{k}={v}")]
        p = subprocess.run(words, capture_output=True, text=True, check=False)
        if p.returncode:
            raise ValueError(p.stderr.strip().split("\n")[0])
        return p.stdout


PEERS = "test/bench/peers/kernels.tile"
FEW = [Row("examples/02_softmax/softmax.tile", B=4096), Row("examples/03_matmul/matmul.tile", epilogue="relu"),
       Row("examples/05_attention/attention.tile", BD=64, CAUSAL=1), Row(PEERS, "gemm", 8, 2, BM=128, BN=256, BK=64),
       Row(PEERS, "gemm", 8, 3, BM=128, BN=128, BK=32), Row(PEERS, "attention", 4, 2, BM=128, BN=64, BD=64)]


def examples():
    return [Row("examples/01_vector_add/vector_add.tile"), Row("examples/04_layernorm/layernorm.tile", B=4096),
            Row("examples/06_persistent/persistent.tile", epilogue="relu"), Row("examples/07_split_k/split_k.tile"), Row("test/bench/gemm.tile")]


def others():
    """The peers' kernels that are no product."""
    rows = [Row(PEERS, k, 8, B=4096) for k in ("softmax", "softmax_fast", "softmax_f16", "layernorm", "rmsnorm_backward", "cross_entropy")]
    rows += [Row(PEERS, k, 4, B=1024) for k in ("add", "relu", "divide", "swiglu", "row_sum", "cumsum_rows")]
    return rows + [Row(PEERS, "embedding", 4, B=16, BD=128)]


def products():
    rows = []
    for warps in (4, 8):
        for m, n, k in ((64, 64, 64), (128, 128, 32), (128, 128, 64), (128, 256, 64), (256, 128, 32)):
            rows += [Row(PEERS, "gemm", warps, 2, BM=m, BN=n, BK=k), Row(PEERS, "gemm_columns", warps, 2, BM=m, BN=n, BK=k)]
        for stages in (3, 4):
            rows.append(Row(PEERS, "gemm", warps, stages, BM=128, BN=128, BK=32))
        rows.append(Row(PEERS, "gemm", warps, 2, BM=128, BN=128, BK=64, T="bf16"))
        rows.append(Row(PEERS, "gemm_columns", warps, 2, BM=128, BN=128, BK=64, T="i8", S="i32"))
        for m, n, d in ((64, 32, 64), (64, 64, 64), (128, 32, 64), (128, 64, 64), (64, 32, 128), (128, 32, 128), (128, 64, 128)):
            rows.append(Row(PEERS, "attention", warps, 2, BM=m, BN=n, BD=d))
    return rows


def library(first):
    """The library's kernels, whose types and options are those of their first rows in the conformance suite; first: one set of each kernel."""
    from check_kernels import kernels # pylint: disable=import-outside-toplevel
    from check_stdlib import rows
    from explain_kernels import chosen
    of = {}
    for r in rows(ROOT):
        of.setdefault((r.source, r.kernel), []).append(r)
    for module, text, kernel, *_ in kernels(ROOT):
        sets = []
        for r in of.get((text, kernel), []):
            if chosen(r, text) not in sets:
                sets.append(chosen(r, text))
        for consts in sets[:1] if first else sets or [{}]:
            row = Row(f"stdlib/kernels/{module}.tile", kernel, **consts)
            row.name = f"{module}.{row.name}"
            yield row


def all_rows():
    return FEW + examples() + others() + products()
