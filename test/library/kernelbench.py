#!/usr/bin/env python3
"""The problems of KernelBench (Ouyang et al. 2025), levels 1 and 2, by kernels of the library or ten lines: writes, or checks, the page
stdlib/kernels/KERNELBENCH.md.

    kernelbench.py ROOT [--write] [-k N] [--device D]    runs what level 2 says (problem N alone) on `cpu`, or D, beside NumPy, and compares
                                                         the page; exit 1 where something differs

LEVEL_1 names kernels; their rows in test/conformance compare them with NumPy. LEVEL_2 has a list of steps for each problem. A step is a form
of kernelbench_chain.py with the expression that it computes, or a kernel of the library with its constants.
"""
import argparse
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "tools")]
from check_kernels import kernels  # noqa: E402
from kernelbench_chain import FORMS, Chain, library_layer  # noqa: E402
from kernelbench_numpy import NumPy  # noqa: E402

PAGE = "stdlib/kernels/KERNELBENCH.md"

G, R = "gemm.gemm", "reductions.reduce_axes"
CONV, CONVT, DEPTH = "conv3d.conv3d", "conv3d.conv3d_transpose", "conv3d.depthwise_conv3d"
LEVEL_1 = {
    1: G, 2: G, 3: "gemm.gemm_batched", 4: "blas.blas_gemv", 5: "elementwise.binary_strided of A and a scalar with strides 0, f=multiply",
    6: "gemm.gemm_split_k", 7: G, 8: G, 9: G, 10: G + " of [N M, K]", 11: G + " of [B I J, L]",
    12: "elementwise.binary_strided f=multiply, the diagonal with stride 0 along the columns", 13: G, 14: "ten lines: `upper`",
    15: "ten lines: `lower`", 16: G + " TA", 17: G + " TB", 18: G + " TA, TB",
    **{n: f"elementwise.unary f={f}" for n, f in {
        19: "activation.relu", 20: "leaky_relu", 21: "sigmoid", 22: "tanh", 25: "activation.silu", 26: "activation.gelu", 27: "selu",
        28: "hard_sigmoid", 29: "activation.softplus", 30: "activation.softsign", 31: "elu", 32: "hard_tanh", 88: "activation.gelu_tanh"
    }.items()},
    23: "rows.softmax_long_rows", 24: "rows.softmax_long_rows LOG", 33: "axes_norms.axes_moments then axes_norms.axes_norm",
    34: "axes_norms.axes_norm_whole", 35: "axes_norms.axes_norm_whole", 36: "reductions.normalize_axes divisor=by_root_mean",
    37: R + " twice (map=square; finish=root), then elementwise.binary_strided f=divide",
    38: "reductions.normalize_axes map=magnitude, divisor=by_mean", 39: "reductions.normalize_axes",
    40: "axes_norms.axes_norm_whole ELEMENTS",
    **{n: "pool3d.pool3d combine=reductions.greater, finish=reductions.total" for n in (41, 42, 43)},
    **{n: "pool3d.pool3d COUNT_PAD" for n in (44, 45, 46)},
    47: R, 48: R + " finish=mean", 49: R + " combine=greater", 51: "reductions.argmax_axes", 52: "reductions.argmax_axes LEAST",
    53: R + " combine=less",
    **{n: CONV for n in (50, 54, 55, 56, 59, 60, 62, 63, 66, 67, 76, 80, 87)},
    **{n: CONVT for n in (57, 58, 61, 64, 65, 68, 69, 70, 71, 72, 73, 74, 75, 77, 78, 79, 81)},
    **{n: DEPTH for n in (82, 83, 84, 85)}, 86: DEPTH + " then " + CONV,
    89: "scan.scan_axis", 90: "scan.scan_axis f=multiply", 91: "scan.scan_axis REVERSE", 92: "scan.scan_axis EXCLUSIVE",
    93: "scan.scan_axis MASK", 94: "pair_losses.pair_loss", 95: "losses.cross_entropy then " + R,
    96: "pair_losses.pair_loss f=huber", 97: "attention.attention", 98: "pair_losses.pair_loss f=divergence",
    99: "pair_losses.triplet_margin then " + R, 100: "pair_losses.pair_loss f=hinge",
}

# Steps: (form, dimensions?, expression) or (kernel, ...). Dimensions of convolutions: 2 or 3. With "layer" a is what the layer gave.
MEAN, GREATEST = ("mean", ), ("pool", "max", 2)


def AV(n):
    return ("pool", "mean", n)


RELU, GELU, MISH, SILU, SWISH = (f"activation.{f}(v)" for f in ("relu", "gelu", "mish", "silu", "hard_swish"))
LSE = "expand(softmax.log_sum_exp(u, 0), 0)"
LEAST = "min(v, axis = 0, keep = true, where = here)"


def of(f, x):
    """f of the expression x."""
    return f.replace("(v)", f"({x})")


LEVEL_2 = {
    1: [("conv", 2, RELU + " + b")],
    2: [("transposed", 2, "clamp(clamp(v + b, 0.0, 1.0) * 2.0, 0.0, 1.0) / 2.0")],
    3: [("transposed", 3, "v + 0.5"), ("norm", "layer"), AV(2), ("map", GELU)],
    4: [("conv", 2, of(MISH, MISH))],
    5: [("transposed", 2, "tanh(v - b)")],
    6: [("conv", 3, "softmax.softmax(u, 0)"), GREATEST, GREATEST],
    7: [("conv", 3, "sigmoid(" + of(GELU, f"activation.leaky_relu({RELU}, 0.01)") + ") + b")],
    8: [("conv", 3, "v / 2.0"), GREATEST, MEAN, ("columns", "sum(v + b, axis = 0, keep = true, where = here)")],
    9: [("linear", "activation.relu((v - 2.0) * 1.5)")],
    10: [("transposed", 2, "v"), GREATEST, ("map", "clamp(v, -1.0, 1.0)"), MEAN, ("map", "tanh(v)")],
    11: [("transposed", 2, "v"), ("norm", "batch"), ("map", "tanh(v)"), GREATEST, ("norm", "group")],
    12: [("linear", "activation.leaky_relu(v * 2.0, 0.1)")],
    13: [("transposed", 3, "v"), ("mean depth", ), ("columns", "tanh(softmax.softmax(here ? v + b : -inf, 0)) * 2.0")],
    14: [("linear", "v / 2.0"), ("sum rows", ), ("map", "v * 1.5")],
    15: [("transposed", 3, "v"), ("norm", "batch"), ("less mean", )],
    16: [("transposed", 2, "clamp(" + MISH + " + 0.5, -1.0, 1.0) * 2.0")],
    17: [("conv", 2, "v"), ("norm", "instance"), ("map", "v / 2.0")],
    18: [("linear", "v"), ("sum rows", )],
    19: [("transposed", 2, GELU), ("norm", "group")],
    20: [("transposed", 3, "(v + b + v) * v + v")],
    21: [("conv", 2, "sigmoid((v + b) * b)"), ("norm", "group")],
    22: [("linear", "clamp(v * 2.0 + v * 2.0, -10.0, 10.0)"), ("log sum exp rows", ), ("map", "v * " + MISH)],
    23: [("conv", 3, "v"), ("norm", "group"), ("mean all", )],
    24: [("conv", 3, "v"), ("least depth", ), ("columns", "softmax.softmax(u, 0)")],
    25: [("conv", 2, f"tanh(tanh({LEAST}))")],
    26: [("transposed", 3, "v"), ("map", "(v + a) * activation.hard_swish(v + a)")],
    27: [("conv", 3, SWISH), ("norm", "group"), MEAN],
    28: [("linear", "v"), ("norm", "layer rows"), ("map", "(v + a) * a")],
    29: [("linear", of(MISH, MISH))],
    30: [("linear", "v"), ("norm", "group rows"), ("map", "clamp(v, -1.0, 1.0)")],
    31: [("conv", 2, "(min(v, 0.5) + b) * 2.0")],
    32: [("conv", 2, LEAST.replace("v", "v * 2.0", 1))],
    33: [("linear", "v * b"), ("norm", "batch rows")],
    34: [("transposed", 3, "v"), ("norm", "layer"), ("map", GELU + " * 2.0")],
    35: [("conv", 2, "activation.hard_swish(v - 0.5)"), GREATEST, ("map", MISH)],
    36: [("transposed", 2, LEAST), ("sum height", ), ("map", GELU + " + b")],
    37: [("linear", "sigmoid(v) * v + b"), ("norm", "group rows")],
    38: [AV(2), ("transposed", 3, "clamp(v, 0.0, 1.0)"), ("softmax places", ), ("map", "v * b")],
    39: [("linear", "v * b"), ("norm", "batch rows")],
    40: [("linear", "v * 0.5 + v")],
    41: [("linear", "v"), ("norm", "batch rows"), ("map", of(RELU, GELU))],
    42: [("transposed", 2, "v"), MEAN, ("columns", "expand(softmax.log_sum_exp(here ? v + b : -inf, 0), 0) * 10.0")],
    43: [("conv", 3, "v"), GREATEST, ("columns", of(RELU, LSE))],
    44: [("transposed", 2, "v * 0.5"), MEAN],
    45: [("linear", "sigmoid(v)"), ("linear", "v"), ("log sum exp rows", )],
    46: [("conv", 2, "tanh(v - 0.5) - 0.2"), AV(2)],
    47: [("conv", 3, "tanh(" + MISH + ")")],
    48: [("conv", 3, "sigmoid(tanh(v * b) * b)")],
    49: [("transposed", 3, "sigmoid(softmax.softmax(u, 0))")],
    50: [("transposed", 3, "v * 0.5"), AV(2), ("map", "(v + b) * 2.0")],
    51: [("linear", "v - b"), ("mean rows", ), ("map", GELU), ("residual", )],
    52: [("conv", 2, "tanh(activation.softplus(v)) * v"), ("norm", "batch")],
    53: [("linear", "activation.gelu(clamp(v * 0.5, -2.0, 2.0))")],
    54: [("conv", 2, "activation.gelu(activation.leaky_relu(v * b, 0.01))")],
    55: [("linear", "v"), ("pool rows", "max"), ("sum rows", ), ("map", "v * 0.5")],
    56: [("linear", "sigmoid(v)"), ("sum rows", )],
    57: [("conv", 2, f"{RELU} * clamp(({RELU} + 3.0) / 6.0, 0.0, 1.0)")],
    58: [("transposed", 3, LSE), ("map", "clamp(v * sigmoid(v + 3.0) / 6.0 - b, -1.0, 1.0)")],
    59: [("linear", "v * sigmoid(v) * 2.0")],
    60: [("transposed", 3, SILU), ("norm", "group"), ("map", SWISH)],
    61: [("transposed", 3, RELU), ("norm", "group")],
    62: [("linear", "v"), ("norm", "group rows"), ("map", "activation.leaky_relu(v, 0.01) + activation.leaky_relu(v, 0.01)")],
    63: [("linear", RELU + " / 2.0")],
    64: [("linear", "v"), ("log sum exp rows", ), ("map", of(GELU, of(GELU, "activation.leaky_relu(activation.leaky_relu(v, 0.01), 0.01)")))],
    65: [("conv", 2, "v"), AV(2), ("map", "sigmoid(v)"), ("sum all", )],
    66: [("linear", "v"), ("dropout", ), ("softmax rows", )],
    67: [("conv", 2, GELU), MEAN],
    68: [("linear", "min(v, 2.0) - 2.0")],
    69: [("conv", 2, of(RELU, SWISH))],
    70: [("linear", "sigmoid(v) * 2.0 + v")],
    71: [("conv", 2, "activation.leaky_relu(v / 2.0, 0.01)")],
    72: [("transposed", 3, "v"), ("norm", "batch"), AV(2), AV(2)],
    73: [("conv", 2, "v"), ("norm", "batch"), ("map", "v * 2.0")],
    74: [("transposed", 3, "activation.leaky_relu(activation.leaky_relu(v, 0.2) * b, 0.2)"), GREATEST],
    75: [("linear", "v"), ("norm", "group rows"), ("least rows", ), ("with each bias", )],
    76: [("linear", "activation.relu(v + b)")],
    77: [("transposed", 3, "v * 2.0"), ("norm", "batch"), MEAN],
    78: [("transposed", 3, "v"), GREATEST, GREATEST, ("columns", "sum(v, axis = 0, keep = true, where = here)")],
    79: [("conv", 3, "v * b"), ("norm", "instance"), ("columns", "max(clamp(v, -1.0, 1.0) * b, axis = 0, keep = true, where = here)")],
    80: [("linear", "v"), ("greatest rows", ), ("map", "activation.gelu(v - v)")],
    81: [("linear", "clamp(tanh(clamp(v * sigmoid(v) / 2.0, -1.0, 1.0)), -1.0, 1.0)")],
    82: [("conv", 2, "tanh(v) * 2.0 + b"), GREATEST],
    83: [("conv", 3, "v"), ("norm", "group"), ("map", "clamp(min(v, 0.0), 0.0, 1.0)"), ("dropout", )],
    84: [("linear", "v"), ("norm", "batch rows"), ("map", "v * 2.0"), ("softmax rows", )],
    85: [("conv", 2, "v"), ("norm", "group"), ("map", "v * b"), GREATEST, ("map", "clamp(v, 0.0, 1.0)")],
    86: [("linear", "activation.gelu(v / 2.0)")],
    87: [("conv", 2, "activation.mish(v - 0.5 - 0.2)")],
    88: [("linear", "v"), ("norm", "group rows"), ("map", f"{SILU} * b * sigmoid({SILU} * b)")],
    89: [("transposed", 3, "v"), GREATEST,
         ("columns", "max(activation.silu(softmax.softmax(u, 0) - b), axis = 0, keep = true, where = here)")],
    90: [("conv", 3, "activation.gelu(clamp(activation.leaky_relu(v, 0.2) + b, -1.0, 1.0))")],
    91: [("transposed", 2, "sigmoid((softmax.softmax(u, 0) + b) * 2.0)")],
    92: [("conv", 2, "v"), ("norm", "group"),
         ("columns", "expand(softmax.log_sum_exp(here ? a + activation.hard_swish(tanh(v)) : -inf, 0), 0)", "layer")],
    93: [("transposed", 2, "activation.gelu(min(v + 0.5, 0.0)) * 2.0")],
    94: [("linear", "activation.mish(clamp(v + b, -1.0, 1.0))"), ("norm", "group rows")],
    95: [("linear", "clamp(activation.gelu(tanh(activation.silu(v + b))), -1.0, 1.0)")],
    96: [("transposed", 3, "v * 0.5"), GREATEST, MEAN, ("map", "clamp(v, 0.0, 1.0)")],
    97: [("linear", "v"), ("norm", "batch rows"), ("map", "activation.silu((v + 0.5) / 2.0)")],
    98: [("linear", "v"), ("pool rows", "mean"), ("map", GELU + " * 2.0"), ("greatest rows", )],
    99: [("linear", GELU), ("softmax rows", )],
    100: [("transposed", 3, "max(v, -0.5) / 2.0")],
}

# What a step of the library is on the page.
WORDS = {
    "norm": {"layer": "axes_norms.axes_norm_whole", "layer rows": "axes_norms.axes_norm_whole", "group": "axes_norms.axes_norm_whole",
             "instance": "axes_norms.axes_norm_whole", "batch": "axes_norms.axes_moments, axes_norms.axes_norm",
             "batch rows": "image_norms.batch_norm_statistics, image_norms.batch_norm", "group rows": "image_norms.group_norm BL=1"},
    "pool": {"max": "pool3d.pool3d combine=reductions.greater, finish=reductions.total", "mean": "pool3d.pool3d"},
    "pool rows": {"max": "pool3d.pool3d combine=reductions.greater, finish=reductions.total", "mean": "pool3d.pool3d"},
    "mean": R + " finish=mean", "mean depth": R + " finish=mean", "mean all": R + " finish=mean",
    "less mean": R + " finish=mean, elementwise.binary_strided f=subtract", "least depth": R + " combine=less",
    "sum height": R, "sum rows": R, "sum all": R, "mean rows": R + " finish=mean", "greatest rows": R + " combine=greater",
    "least rows": R + " combine=less", "log sum exp rows": "reductions.log_sum_exp_axes", "with each bias": "elementwise.binary_strided",
    "softmax places": "reductions.softmax_axes", "softmax rows": "rows.softmax_long_rows", "dropout": "layers.dropout",
    "residual": "elementwise.binary_strided",
}


def run(root, number, folder, device):
    """What is wrong with a problem of level 2, or nothing."""
    chain = Chain(root, folder, number, NumPy(), device)
    for step in LEVEL_2[number]:
        chain.step(*step)
    error = chain.difference()
    return "" if error < 2e-5 else f"level 2, problem {number}: error {error:.1e}"


# ---- the page ----
def said(step):
    if step[0] in FORMS:
        text = step[2 if isinstance(step[1], int) else 1]
        name, consts = library_layer(step[0], text) or (None, {})
        return f"`{name}` " + ", ".join(k if v is True else f"{k}={v}" for k, v in consts.items()) if name else f"{step[0]}: `{text}`"
    word = WORDS[step[0]]
    return " ".join(f"`{w}`" if "." in w and "=" not in w else w for w in (word[step[1]] if isinstance(word, dict) else word).split(" "))


def level_1(text):
    return " ".join(f"`{w}`" if re.fullmatch(r"[a-z_0-9]+\.[a-z_0-9]+", w) else w for w in text.split(" "))


def written(text):
    """The page with its two tables and its forms."""
    one = "".join(f"| {n} | {level_1(LEVEL_1[n])} |\n" for n in range(1, 101))
    two = "".join(f"| {n} | {'; '.join(map(said, LEVEL_2[n]))} |\n" for n in range(1, 101)).replace("||", "\\|\\|")
    forms = "\n".join(f"`{name}`:\n\n```tile\n{body}```\n" for name, body in FORMS.items()).replace("EXPR", "activation.relu(v + b)")
    for name, body in (("level 1", "| problem | kernel |\n| --- | --- |\n" + one), ("level 2", "| problem | steps |\n| --- | --- |\n" + two), ("forms", forms)):
        text = re.sub(rf"(<!-- {name}: .*? -->\n).*?(<!-- end -->)", lambda m, b=body: f"{m.group(1)}\n{b}\n{m.group(2)}", text, flags=re.S)
    return text


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("root")
    ap.add_argument("--write", action="store_true")
    ap.add_argument("-k", type=int)
    ap.add_argument("--device", default="cpu")
    o = ap.parse_args()
    page = os.path.join(o.root, PAGE)
    with open(page, encoding="utf-8") as f:
        text = f.read()
    if o.write:
        with open(page, "w", encoding="utf-8") as f:
            f.write(written(text))
        return 0
    wrong = [] if written(text) == text else [f"{PAGE} is not what kernelbench.py --write gives"]
    known = {f"{module}.{name}" for module, _, name, _, _ in kernels(o.root)}
    named = set(re.findall(r"`([a-z_0-9]+\.[a-z_0-9]+)`", text))
    wrong += [f"{PAGE}: there is no kernel {n}" for n in sorted(named - known)]
    with tempfile.TemporaryDirectory() as folder:
        for n in [o.k] if o.k else LEVEL_2:
            try:
                wrong += filter(None, [run(o.root, n, folder, o.device)])
            except Exception as e:  # pylint: disable=broad-except
                wrong.append(f"level 2, problem {n}: {e!r}")
    print("\n".join([*wrong, f"{len(LEVEL_1)} and {len(LEVEL_2)} problems, {len(wrong)} faults"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
