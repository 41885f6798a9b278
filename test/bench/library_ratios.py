"""libtilekernels beside OpenBLAS and PyTorch (MKL and oneDNN) on shapes drawn at random from those that models use.

    library_ratios.py BENCH_LIBRARY [--count 200] [--seed 44] [--only NAME] [--rounds 5] [--seconds 0.01]

BENCH_LIBRARY is build/bench/bench_library. One thread, f32, the processor's time of a call, the least of the rounds, which take turns. A ratio
is the fastest peer's time over ours: below 1 we are slower. PyTorch is called from Python, which takes it 1 to 3 us a call; ours and OpenBLAS's
are calls from C. Run it with a Python that has PyTorch.
"""
import argparse
import os
import random
import subprocess
import time

for name in ("OPENBLAS_NUM_THREADS", "TILE_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

if "avx512f" in open("/proc/cpuinfo", encoding="utf-8").read():  # OpenBLAS takes a slower kernel on CPUs that it does not know
    os.environ.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")

import torch  # noqa: E402  (after the numbers of threads)
import torch.nn.functional as F  # noqa: E402

WIDTHS = (64, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, 1536, 2048, 3072, 4096)
ROWS = (1, 2, 4, 7, 8, 16, 32, 50, 64, 77, 100, 128, 196, 197, 256, 512, 784, 1024)
MOST = 1.5e9  # multiplications

# ---- shapes: (name, numbers of the case in bench_library.c) ----


def some_gemm(r):
    """A layer, a few of them with a long K and few outputs, one column, or batches of small ones."""
    kind = r.choice(("layer",) * 6 + ("long", "column", "batch", "batch"))
    if kind == "layer":
        batch, m, n, k = 1, r.choice(ROWS), r.choice(WIDTHS), r.choice(WIDTHS)
    elif kind == "long":
        batch, m, n, k = 1, r.choice((4, 10, 16, 32, 64)), r.choice((10, 16, 32, 64)), r.choice((8192, 16384, 32768, 65536))
    elif kind == "column":
        batch, m, n, k = 1, r.choice((256, 1024, 4096)), 1, r.choice(WIDTHS)
    else:
        batch, m, n, k = r.choice((8, 12, 32, 64)), r.choice((1, 16, 49, 64, 77, 128)), r.choice((32, 49, 64, 77, 128)), r.choice((32, 64, 77, 128))
    return "gemm", (batch, m, n, k, r.choice((0, 1)))


def some_heads(r):
    batch, heads, d = r.choice((1, 2, 4)), r.choice((4, 8, 12, 16)), r.choice((32, 40, 64, 64, 80, 96, 128))
    n = r.choice((49, 77, 128, 197, 256, 512, 1024))
    return batch, heads, r.choice((heads, heads, heads // 4)), n, n, d


def some_attention(r):
    shape = some_heads(r)
    if r.random() < 0.3:  # a token's, over a cache
        shape = (*shape[:3], 1, r.choice((128, 512, 1024, 2048)), shape[5])
    return "attention", (*shape, r.choice((0, 1)))


def some_rows(r):
    name = r.choice(("softmax", "layer_norm", "layer_norm", "rms_norm", "cross_entropy", "reduce"))
    m = r.choice((1, 7, 16, 77, 128, 512, 1024, 4096))
    n = r.choice((1000, 10000, 32000, 50257)) if name == "cross_entropy" else r.choice((10, 49, 64, 77, 197, *WIDTHS))
    return name, (min(m, 512), n) if name == "cross_entropy" else (m, n, r.choice((0, 1, 2))) if name == "reduce" else (m, n)


LAYERS = (  # of ResNet, MobileNet, EfficientNet, UNet, VGG, ConvNeXt: C, size, K, taps, stride, groups
    (3, 224, 64, 7, 2, 1), (64, 56, 64, 3, 1, 1), (64, 56, 256, 1, 1, 1), (256, 56, 64, 1, 1, 1), (128, 28, 128, 3, 1, 1), (256, 56, 128, 1, 2, 1),
    (256, 14, 256, 3, 1, 1), (512, 7, 512, 3, 1, 1), (1024, 14, 256, 1, 1, 1), (512, 7, 2048, 1, 1, 1), (128, 56, 128, 3, 2, 1), (3, 224, 32, 3, 2, 1),
    (32, 112, 32, 3, 1, 32), (96, 112, 96, 3, 2, 96), (144, 56, 144, 3, 1, 144), (240, 28, 240, 5, 2, 240), (480, 14, 480, 5, 1, 480),
    (32, 112, 16, 1, 1, 1), (16, 112, 96, 1, 1, 1), (24, 56, 144, 1, 1, 1), (192, 28, 32, 1, 1, 1), (3, 224, 64, 3, 1, 1), (64, 112, 64, 3, 1, 1),
    (3, 224, 96, 4, 4, 1), (96, 56, 96, 7, 1, 96), (320, 32, 320, 3, 1, 1), (128, 28, 128, 3, 1, 32), (1, 28, 32, 3, 1, 1), (32, 26, 64, 3, 1, 1))


def some_conv(r):
    c, size, k, taps, stride, groups = r.choice(LAYERS)
    return "conv2d", (r.choice((1, 1, 4)), c, size, size, k, taps, stride, 0 if taps == stride else taps // 2, groups, r.choice((0, 1)))


def some_pool(r):
    c, size = r.choice(((64, 112), (128, 56), (192, 56), (480, 28), (32, 26), (512, 14)))
    taps, stride, pad = r.choice(((2, 2, 0), (3, 2, 1), (3, 1, 1)))
    return r.choice(("max_pool2d", "avg_pool2d")), (r.choice((1, 4)), c, size, size, c, taps, stride, pad, 1, r.choice((0, 1)))


def work_of(name, v):
    if name == "gemm":
        return v[0] * v[1] * v[2] * v[3]
    if name.startswith("attention"):
        return v[0] * v[1] * v[3] * v[4] * v[5] * (7 if name.endswith("backward") else 2)
    if name == "conv2d":
        return v[0] * v[1] // v[8] * v[4] * v[5]**2 * (v[2] // v[6])**2
    return 0


def draw(count, seed):
    r = random.Random(seed)
    kinds = (some_gemm,) * 9 + (some_attention,) * 3 + (lambda r: ("attention_backward", (*some_heads(r), r.choice((0, 1)))),) * 2 + (some_rows,) * 3 + \
        (some_conv,) * 3 + (some_pool,)
    shapes = []
    while len(shapes) < count:
        shape = r.choice(kinds)(r)
        if work_of(*shape) <= MOST:
            shapes.append(shape)
    return shapes


# ---- PyTorch ----

def heads(batch, count, rows, d, grad):
    return torch.randn(batch, count, rows, d, requires_grad=grad)


def attention(v, backward):
    b, h, hk, m, n, d, causal = v
    q, k, u = heads(b, h, m, d, backward), heads(b, hk, n, d, backward), heads(b, hk, n, d, backward)
    # PyTorch's is_causal aligns the first query with the first key; ours the last with the last: one query sees all
    run = lambda: F.scaled_dot_product_attention(q, k, u, is_causal=bool(causal) and m > 1, enable_gqa=h != hk)
    if not backward:
        return run
    out = run()
    up = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, (q, k, u), up, retain_graph=True)


def of_images(name, v):
    n, c, h, w, k, taps, stride, pad, groups, outer = v
    layout = torch.contiguous_format if outer else torch.channels_last
    x, f, b = torch.randn(n, c, h, w).to(memory_format=layout), torch.randn(k, c // groups, taps, taps), torch.randn(k)
    f = f.to(memory_format=layout)
    if name == "conv2d":
        return lambda: F.conv2d(x, f, b, stride, pad, 1, groups)
    if name == "max_pool2d":
        return lambda: F.max_pool2d(x, taps, stride, pad, return_indices=True)
    return lambda: F.avg_pool2d(x, taps, stride, pad, count_include_pad=False)


def of_rows(name, v):
    m, n = v[:2]
    x, weight, bias = torch.randn(m, n), torch.randn(n), torch.randn(n)
    labels = torch.arange(m) * 7 % n
    return {
        "softmax": lambda: torch.softmax(x, 1), "layer_norm": lambda: F.layer_norm(x, (n,), weight, bias),
        "rms_norm": lambda: F.rms_norm(x, (n,), weight, 1e-5), "cross_entropy": lambda: F.cross_entropy(x, labels, reduction="none"),
        "reduce": (lambda: x.sum(1), lambda: x.sum(0), lambda: x.amax(1))[v[2] if name == "reduce" else 0]
    }[name]


def by_torch(name, v):
    if name == "gemm":
        batch, m, n, k, tb = v
        a, b = torch.randn(batch, m, k).squeeze(0), torch.randn(batch, n, k).squeeze(0)
        b = b.mT if tb else b.mT.contiguous()
        out = torch.empty(batch, m, n).squeeze(0)
        return (lambda: torch.mm(a, b, out=out)) if batch == 1 else lambda: torch.bmm(a, b, out=out)
    if name.startswith("attention"):
        return attention(v, name.endswith("backward"))
    return of_images(name, v) if name in ("conv2d", "max_pool2d", "avg_pool2d") else of_rows(name, v)


def time_of(run, seconds):
    """Of one call, in microseconds."""
    calls = 1
    while True:
        start = time.process_time()
        for _ in range(calls):
            run()
        took = time.process_time() - start
        if took >= seconds:
            return took / calls * 1e6
        calls *= 2


# ---- all ----

class Library:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise SystemExit(f"bench_library ended at: {line}")
        return answer


def compare(library, name, numbers, rounds, seconds):
    """Times in microseconds: ours, and the peers' by name."""
    has_blas = library.ask(f"case {name} " + " ".join(map(str, numbers))) == "blas"
    run, times = by_torch(name, numbers), {}
    run()
    for _ in range(rounds):
        for who, t in (("ours", float(library.ask(f"ours {seconds}"))), ("PyTorch", time_of(run, seconds)),
                       *((("OpenBLAS", float(library.ask(f"blas {seconds}"))),) if has_blas else ())):
            times[who] = min(times.get(who, 1e30), t)
    return times.pop("ours"), times


def text_of(name, v):
    if name == "gemm":
        return (f"{v[0]} of " if v[0] > 1 else "") + f"{v[1]}x{v[2]}x{v[3]} " + ("nt" if v[4] else "nn")
    if name.startswith("attention"):
        return f"{v[0]}x{v[1]}" + (f"({v[2]})" if v[1] != v[2] else "") + f" {v[3]}x{v[4]}x{v[5]}" + (" causal" if v[6] else "")
    if name in ("conv2d", "max_pool2d", "avg_pool2d"):
        return f"{v[0]}x{v[1]}x{v[2]}x{v[3]}" + (f" to {v[4]}" if name == "conv2d" else "") + f", {v[5]}x{v[5]} by {v[6]}" + \
            (f", {v[8]} groups" if v[8] > 1 else "") + (" NCHW" if v[9] else " NHWC")
    return f"{v[0]}x{v[1]}" + ((" of rows", " of columns", ", the greatest of rows")[v[2]] if name == "reduce" else "")


def summary(ratios):
    ratios = sorted(ratios)
    return f"{len(ratios)} | {ratios[len(ratios) // 2]:.2f} | {ratios[len(ratios) // 20]:.2f} | {ratios[0]:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=44)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.01)
    options = parser.parse_args()
    torch.set_num_threads(1)
    library, ratios, rows = Library(options.library), {}, []
    for name, numbers in draw(options.count, options.seed):
        if options.only in f"{name} {text_of(name, numbers)}":
            ours, peers = compare(library, name, numbers, options.rounds, options.seconds)
            best = min(peers, key=peers.get)
            ratios.setdefault(name, []).append(peers[best] / ours)
            rows.append((peers[best] / ours, f"| {name} {text_of(name, numbers)} | {ours:.2f} | {best} {peers[best]:.2f} | {peers[best] / ours:.2f} |"))
            print(rows[-1][1], flush=True)
    print("\n| function | shapes | median | a twentieth below | least |\n| --- | --- | --- | --- | --- |")
    for name, of in ratios.items():
        print(f"| {name} | {summary(of)} |")
    print(f"| all | {summary([x for of in ratios.values() for x in of])} |")


if __name__ == "__main__":
    main()
