"""The rows of the CPU benchmark: what is done, on what sizes, and how fast it shall be.

Row(name, work, args, flops=, read=, write=, ...): `work args` goes to every contender (contender.h), sizes in elements.
flops, read, write: what one run computes, and the bytes that it reads and writes, at the least. turns: so many sets of inputs
are used in turn, for rows whose inputs caches shall not hold. peak: the type of the multiply-adds that limit it.
least, aim: the ratio, best peer's time over ours, that the row shall reach and that is hoped for; limit_least: the ratio of the
memory's time to ours. seconds: in place of a peer, the time that it may take. once: threads do not matter.
"""
from dataclasses import dataclass, field

# Contender: what it is called, its colour in the picture
PEERS = {"gcc": ("gcc", "#a05000"), "clang": ("clang", "#c08a30"), "blas": ("OpenBLAS", "#2060a0"), "dnnl": ("oneDNN", "#6030a0"),
         "pocl": ("PoCL", "#208060"), "torch": ("PyTorch", "#c03050"), "ggml": ("ggml", "#707070")}


def called(contender):
    return PEERS[contender][0] if contender in PEERS else "tilec"


@dataclass
class Row:
    name: str
    work: str
    args: tuple
    flops: float = 0
    read: float = 0
    write: float = 0
    turns: int = 1
    peak: str = "f32"
    least: float = 1.0
    aim: float = 2.0
    limit_least: float = 0
    seconds: float = 0
    once: bool = False
    group: str = ""
    tolerance: float = 2e-4  # of the greatest value
    tolerances: dict = field(default_factory=dict)  # of a peer that rounds otherwise
    own: str = ""            # the row that this one is compared with, where there is no peer
    own_least: float = 0

    @property
    def bytes(self):
        return self.read + self.write


ROWS = []


def row(*args, **kwargs):
    ROWS.append(Row(*args, **kwargs))


for n in (256, 512, 1024, 2048):
    row(f"matmul {n}", "matmul", (n, n, n), flops=2 * n**3, read=8 * n * n, write=4 * n * n, least=0.95, aim=1.05, group="matmul")
for m, n, k in ((1000, 777, 333), (16, 4096, 4096), (4096, 16, 4096)):
    row(f"matmul {m}x{n}x{k}", "matmul", (m, n, k), flops=2 * m * n * k, read=4 * (m * k + k * n), write=4 * m * n, least=1.0,
        aim=1.5, group="skinny")
row("batched 64 x 128", "batched", (64, 128, 128, 128), flops=2 * 64 * 128**3, read=8 * 64 * 128**2, write=4 * 64 * 128**2,
    least=1.0, aim=1.5, group="skinny")
row("gemv 4096", "gemv", (4096, 4096), flops=2 * 4096**2, read=4 * 4096**2, least=1.0, aim=1.0, limit_least=0.9, group="gemv")
# ggml quantises x to 8 bits; the others do not. Eight matrices in turn, as the layers of a model are.
for kind, size in (("q4_0", 18), ("q8_0", 34)):
    for n in (1024, 4096):
        row(f"gemv {kind} {n}", f"gemv_{kind}", (n, n, 8), flops=2 * n * n, read=n * n // 32 * size, turns=8, least=1.0,
            aim=1.0, limit_least=0.9 if n > 1024 else 0, group="gemv", tolerances={"ggml": 1e-2})
row("matmul bf16 1024", "matmul_bf16", (1024, 1024, 1024), flops=2 * 1024**3, read=4 * 1024**2, write=4 * 1024**2,
    peak="bf16", least=0.9, aim=1.0, group="types", own="matmul 1024", own_least=1.6, tolerance=2e-2)
row("matmul i8 1024", "matmul_i8", (1024, 1024, 1024), flops=2 * 1024**3, read=2 * 1024**2, write=4 * 1024**2,
    peak="i8", least=0.9, aim=1.0, group="types", own="matmul 1024", own_least=1.6, tolerance=0)
row("matmul + bias + gelu 1024", "matmul_gelu", (1024, 1024, 1024), flops=2 * 1024**3, read=8 * 1024**2,
    write=4 * 1024**2, least=1.0, aim=1.1, group="matmul")
for work in ("softmax", "layer_norm", "rms_norm"):
    for c in (128, 1000, 4096, 32768):
        r = 4096 if c < 32768 else 1024
        row(f"{work} {r}x{c}", work, (r, c), read=4 * r * c, write=4 * r * c, least=1.2, aim=3, limit_least=0.85, group="rows")
for causal in (0, 1):
    row("attention 8x1024x64" + (" causal" if causal else ""), "attention", (8, 1024, 64, causal),
        flops=4 * 8 * 1024 * 1024 * 64 / (1 + causal), read=12 * 8 * 1024 * 64, write=4 * 8 * 1024 * 64, least=1.2, aim=2.5, group="attention")
row("add 2^24", "add", (1 << 24,), read=8 << 24, write=4 << 24, least=0.95, aim=1.0, limit_least=0.95, group="elementwise")
row("add 2^12", "add", (1 << 12,), read=8 << 12, write=4 << 12, least=1.0, aim=1.0, group="launch")
row("gelu 2^22", "gelu", (1 << 22,), read=4 << 22, write=4 << 22, least=1.0, aim=2.0, group="elementwise")
row("black-scholes 2^20", "black_scholes", (1 << 20,), read=12 << 20, write=8 << 20, group="elementwise")
row("mandelbrot 512", "mandelbrot", (768, 512, 256), flops=0, group="elementwise", tolerance=0.02)
row("row sums 4096", "sums", (4096, 4096), read=4 << 24, group="rows")
row("cumsum 4096", "cumsum", (4096, 4096), read=4 << 24, write=4 << 24, group="rows")
row("sort rows of 256", "sort", (4096, 256), read=4 << 20, write=4 << 20, group="rows")
row("transpose 2048", "transpose", (2048, 2048), read=4 << 22, write=4 << 22, group="moving")
row("gather 65536 rows of 256", "gather", (1 << 16, 256, 1 << 15), read=4 << 24, write=4 << 24, group="moving")
row("histogram 2^24 in 256", "histogram", (1 << 24, 256), read=4 << 24, group="moving", tolerance=0)
row("stencil 2048", "stencil", (2048, 2048), read=4 << 22, write=4 << 22, group="moving")
row("conv2d 3x3 56x56x64", "convolution", (56, 56, 64, 64), flops=2 * 9 * 56 * 56 * 64 * 64, read=4 * 56 * 56 * 64,
    write=4 * 56 * 56 * 64, group="matmul")
# The library's kernels, in f32. ggml quantises the other matrix to 8 bits, so its results are near ours; what no peer has is compared with the
# product of floats.
for m, n in ((16, 1024), (16, 4096), (512, 1024), (512, 4096), (1024, 1024)):
    size, product = f"{m}x{n}x{n}", dict(flops=2 * m * n * n, write=4 * m * n, group="library", least=0.95, aim=1.1)
    row(f"lib gemm {size}", "lib_gemm", (m, n, n), read=4 * (m + n) * n, **product)
    for kind, bits in (("u4", 4.25), ("q4_0", 4.5), ("q8_0", 8.5)):
        row(f"lib gemm_{kind} {size}", f"lib_gemm_{kind}", (m, n, n), read=4 * m * n + bits / 8 * n * n, own=f"lib gemm {size}", own_least=0.85,
            tolerances={"ggml": 1e-2}, **product)
    row(f"lib gemm_fused i8 {size}", "lib_gemm_i8", (m, n, n), read=m * n + n * n, peak="i8", **product)
# Few rows, as in decoding; one column; few blocks of C and long sums
for m in (1, 2, 4, 8, 16):
    for n, k in ((4096, 4096), (1000, 2048)):
        size, product = f"{m}x{n}x{k}", dict(flops=2 * m * n * k, write=4 * m * n, group="library", limit_least=0.9 if m == 1 and n == 4096 else 0)
        row(f"few rows gemm {size}", "lib_gemm", (m, n, k), read=4 * (m + n) * k, **product)
        row(f"few rows gemm nn {size}", "lib_gemm_nn", (m, n, k), read=4 * (m + n) * k, **product)
        row(f"few rows gemm bf16 {size}", "lib_gemm_bf16", (m, n, k), read=2 * (m + n) * k, peak="bf16", tolerance=2e-2, **product)
        row(f"few rows gemm_fused i8 {size}", "lib_gemm_i8", (m, n, k), read=(m + n) * k, peak="i8", **product)
        if n == 4096: # ggml rounds A to 8 bits, and so do these
            for kind, bits in (("q4_0", 4.5), ("q8_0", 8.5), ("q4_k", 4.5)):
                row(f"few rows gemm_{kind} by i8 {size}", f"lib_gemm_{kind}_i8", (m, n, k), read=4 * m * k + bits / 8 * n * k, peak="i8", tolerance=1e-2, **product)
row("one column gemm nn 256x1x131072", "lib_gemm_nn", (256, 1, 131072), flops=2 * 256 * 131072, read=4 * 257 * 131072, group="library", limit_least=0.9)
row("one row gemm 1x256x131072", "lib_gemm", (1, 256, 131072), flops=2 * 256 * 131072, read=4 * 257 * 131072, group="library", limit_least=0.9)
row("split-k 256x256x65536", "lib_gemm_split_k", (256, 256, 65536, 4), flops=2 * 256 * 256 * 65536, read=8 * 256 * 65536, group="library", tolerance=1e-3)
for causal in (0, 1):
    name = " causal" if causal else ""
    product = dict(group="library", least=1.2, aim=2.5)
    row("lib attention 8x1024x64" + name, "lib_attention", (8, 1024, 64, causal), flops=4 * 8 * 1024 * 1024 * 64 / (1 + causal), read=12 * 8 * 1024 * 64, write=4 * 8 * 1024 * 64, **product)
    row("lib attention backward 8x1024x64" + name, "lib_attention_backward", (8, 1024, 64, causal), flops=10 * 8 * 1024 * 1024 * 64 / (1 + causal), read=20 * 8 * 1024 * 64, write=12 * 8 * 1024 * 64, **product)
for h, hk, n, d in ((32, 32, 4096, 128), (32, 8, 4096, 128), (8, 8, 4096, 64)):
    row(f"lib decode {h} of {hk}x{n}x{d}", "lib_decode", (h, hk, n, d), flops=4 * h * n * d, read=8 * hk * n * d, group="library", aim=1.3)
for work, reads, writes in (("layer_norm", 1, 1), ("layer_norm_backward", 2, 1)):
    for c in (128, 1024, 4096):
        row(f"lib {work} 4096x{c}", f"lib_{work}", (4096, c), read=4 * 4096 * c * reads, write=4 * 4096 * c * writes, group="library", aim=3)
for work, writes in (("cross_entropy", 0), ("cross_entropy_backward", 1), ("argmax", 0)):
    row(f"lib {work} 512x32000", f"lib_{work}", (512, 32000), read=4 * 512 * 32000, write=4 * 512 * 32000 * writes, group="library")
row("lib swiglu 1024x4096", "lib_swiglu", (1024, 4096), read=8 << 22, write=4 << 22, group="library")
row("lib rope 1024x32x128", "lib_rope", (1024, 32, 128), read=4 << 22, write=4 << 22, group="library")
row("lib embedding 4096x1024", "lib_embedding", (4096, 1024, 32000), read=4 << 22, write=4 << 22, group="library")
row("lib embedding_backward 4096x1024", "lib_embedding_backward", (4096, 1024, 8000), read=4 << 22, write=12 << 22, group="library", tolerance=1e-4)
# Images, channels innermost, filters of 3 x 3
for n, h, i, o, step in ((1, 56, 64, 64, 1), (4, 14, 256, 256, 1), (1, 56, 128, 128, 2), (1, 224, 3, 64, 2), (1, 224, 1, 32, 1)):
    p = (h - 1) // step + 1
    name = f"{n}x{h}x{h}x{i} to {o}" + (f" by {step}" if step > 1 else "")
    image = dict(flops=2 * 9 * n * p * p * i * o, read=4 * (n * h * h * i + 9 * i * o), write=4 * n * p * p * o, group="images", least=1 / 1.1, aim=1.1)
    row("conv2d " + name, "conv2d", (n, h, i, o, step), **image)
    if i > 4:
        row("conv2d backward data " + name, "conv2d_backward_data", (n, h, i, o, step), **image)
        row("conv2d backward weight " + name, "conv2d_backward_weight", (n, h, i, o, step), **image)
row("conv2d transpose 4x16x16x128 to 64 by 2", "conv2d_transpose", (4, 16, 128, 64, 2), flops=2 * 9 * 4 * 16 * 16 * 128 * 64,
    read=4 * (4 * 16 * 16 * 128 + 9 * 128 * 64), write=4 * 4 * 32 * 32 * 64, group="images", least=1 / 1.1, aim=1.1)
for work, step in (("depthwise_conv2d", 1), ("max_pool", 2), ("avg_pool", 2)):
    for n, h, c in ((4, 56, 128), (1, 224, 32), (1, 448, 3), (1, 896, 1)):
        row(f"{work} {n}x{h}x{h}x{c}" + (f" by {step}" if step > 1 else ""), work, (n, h, c, step), read=4 * n * h * h * c, write=4 * n * h * h * c // step**2, group="images", least=1 / 1.1)
for c, g in ((64, 32), (64, 8), (64, 1), (1024, 8), (3, 3)):
    row(f"group_norm 4x{200704 // c}x{c} in {g}", "group_norm", (4, 200704 // c, c, g), read=4 * 802816, write=4 * 802816, group="images", least=1 / 1.1)
for work, reads in (("batch_norm", 1), ("batch_norm_backward", 2)):
    row(f"{work} 12544x128", work, (12544, 128), read=4 * 12544 * 128 * reads, write=4 * 12544 * 128, group="images", least=1 / 1.1)
# From the text of an example to code that is loaded
for i, name in enumerate(("vector_add", "softmax", "matmul", "layernorm", "attention", "persistent", "split_k"), 1):
    row(f"compile {i:02}_{name}", "compile", (i,), seconds=0.06, least=1.0, aim=2.0, once=True, group="compile", tolerance=1e-5)
