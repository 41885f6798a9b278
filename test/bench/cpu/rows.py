"""The rows of the CPU benchmark: what is done, on what sizes, and how fast it shall be.

Row(name, work, args, flops=, bytes=, limit=, least=, aim=, peers=): `work args` goes to every contender (contender.h).
flops, bytes: of one run, what must be computed and moved at the least. limit: "copy" compares with the speed of memory too.
least, aim: the ratio, best peer's time over ours, that the row shall reach and that it is hoped for (limit_least: against
the copy). All sizes are in elements.
"""
from dataclasses import dataclass


@dataclass
class Row:
    name: str
    work: str
    args: tuple
    flops: float = 0
    bytes: float = 0
    least: float = 1.0
    aim: float = 2.0
    limit_least: float = 0
    group: str = ""
    tolerance: float = 2e-4  # of the greatest value
    own: str = ""            # the row that this one is compared with, where there is no peer
    own_least: float = 0


ROWS = []


def row(*args, **kwargs):
    ROWS.append(Row(*args, **kwargs))


for n in (256, 512, 1024, 2048):
    row(f"matmul {n}", "matmul", (n, n, n), flops=2 * n**3, bytes=12 * n * n, least=0.95, aim=1.05, group="matmul")
for m, n, k in ((1000, 777, 333), (16, 4096, 4096), (4096, 16, 4096)):
    row(f"matmul {m}x{n}x{k}", "matmul", (m, n, k), flops=2 * m * n * k, bytes=4 * (m * k + k * n + m * n), least=1.0, aim=1.5,
        group="skinny")
row("batched 64 x 128", "batched", (64, 128, 128, 128), flops=2 * 64 * 128**3, bytes=12 * 64 * 128**2, least=1.0, aim=1.5, group="skinny")
row("gemv 4096", "gemv", (4096, 4096), flops=2 * 4096**2, bytes=4 * 4096**2, least=1.0, aim=1.0, limit_least=0.9, group="gemv")
row("matmul bf16 1024", "matmul_bf16", (1024, 1024, 1024), flops=2 * 1024**3, bytes=8 * 1024**2, least=0.9, aim=1.0, group="types",
    own="matmul 1024", own_least=1.6, tolerance=2e-2)
row("matmul i8 1024", "matmul_i8", (1024, 1024, 1024), flops=2 * 1024**3, bytes=6 * 1024**2, least=0.9, aim=1.0, group="types",
    own="matmul 1024", own_least=1.6, tolerance=0)
row("matmul + bias + gelu 1024", "matmul_gelu", (1024, 1024, 1024), flops=2 * 1024**3, bytes=12 * 1024**2, least=1.0, aim=1.1, group="matmul")
for work in ("softmax", "layer_norm", "rms_norm"):
    for c in (128, 1000, 4096, 32768):
        r = 4096 if c < 32768 else 1024
        row(f"{work} {r}x{c}", work, (r, c), bytes=8 * r * c, least=1.2, aim=3, limit_least=0.85, group="rows")
for causal in (0, 1):
    row("attention 8x1024x64" + (" causal" if causal else ""), "attention", (8, 1024, 64, causal),
        flops=4 * 8 * 1024 * 1024 * 64 / (1 + causal), bytes=16 * 8 * 1024 * 64, least=1.2, aim=2.5, group="attention")
row("add 2^24", "add", (1 << 24,), bytes=12 << 24, least=0.95, aim=1.0, limit_least=0.95, group="elementwise")
row("add 2^12", "add", (1 << 12,), bytes=12 << 12, least=1.0, aim=1.0, group="launch")
row("gelu 2^22", "gelu", (1 << 22,), bytes=8 << 22, least=1.0, aim=2.0, group="elementwise")
row("black-scholes 2^20", "black_scholes", (1 << 20,), bytes=20 << 20, group="elementwise")
row("mandelbrot 512", "mandelbrot", (768, 512, 256), flops=0, group="elementwise", tolerance=0.02)
row("row sums 4096", "sums", (4096, 4096), bytes=4 << 24, limit_least=0, group="rows")
row("cumsum 4096", "cumsum", (4096, 4096), bytes=8 << 24, group="rows")
row("sort rows of 256", "sort", (4096, 256), bytes=8 << 20, group="rows")
row("transpose 2048", "transpose", (2048, 2048), bytes=8 << 22, group="moving")
row("gather 65536 rows of 256", "gather", (1 << 16, 256, 1 << 15), bytes=8 << 24, group="moving")
row("histogram 2^24 in 256", "histogram", (1 << 24, 256), bytes=4 << 24, group="moving", tolerance=0)
row("stencil 2048", "stencil", (2048, 2048), bytes=8 << 22, group="moving")
row("conv2d 3x3 56x56x64", "convolution", (56, 56, 64, 64), flops=2 * 9 * 56 * 56 * 64 * 64, bytes=4 * 2 * 56 * 56 * 64, group="matmul")
