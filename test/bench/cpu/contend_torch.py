"""PyTorch's CPU build, as a contender (contender.h has the protocol). Needs torch; says why when it is absent."""
import os
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.set_grad_enabled(False)
except ImportError:
    torch = None


def noise(which, n):
    """As in contender.h."""
    mask = 0xFFFFFFFF
    x = (torch.arange(n, dtype=torch.int64) * 2654435761 + which * 0x9E3779B9) & mask
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & mask
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & mask
    return (x ^ (x >> 16)) >> 8


def floats(which, shape, lo=-1.0, hi=1.0):
    n = 1
    for s in shape:
        n *= s
    return (lo + (hi - lo) * (noise(which, n).float() * 2.0**-24)).reshape(shape)


def bfloats(which, shape):
    return ((noise(which, shape[0] * shape[1]) % 129).float() / 64 - 1).to(torch.bfloat16).reshape(shape)


def matmul(m, n, k):
    a, b = floats(0, (m, k)), floats(1, (k, n))
    return lambda: a @ b


def batched(l, m, n, k):
    a, b = floats(0, (l, m, k)), floats(1, (l, k, n))
    return lambda: torch.bmm(a, b)


def matmul_gelu(m, n, k):
    a, b, bias = floats(0, (m, k)), floats(1, (k, n)), floats(2, (n,))
    return lambda: F.gelu(torch.addmm(bias, a, b))


def matmul_bf16(m, n, k):
    a, b = bfloats(0, (m, k)), bfloats(1, (k, n))
    return lambda: a @ b


def gemv(m, n):
    a, x = floats(0, (m, n)), floats(1, (n,))
    return lambda: torch.mv(a, x)


def add(n):
    a, b = floats(0, (n,)), floats(1, (n,))
    return lambda: a + b


def gelu(n):
    a = floats(0, (n,), -4, 4)
    return lambda: F.gelu(a)


def softmax(r, c):
    x = floats(0, (r, c), -4, 4)
    return lambda: torch.softmax(x, 1)


def layer_norm(r, c):
    x, w, b = floats(0, (r, c), -4, 4), floats(1, (c,), 0.5, 1.5), floats(2, (c,))
    return lambda: F.layer_norm(x, (c,), w, b, 1e-5)


def rms_norm(r, c):
    x, w = floats(0, (r, c), -4, 4), floats(1, (c,), 0.5, 1.5)
    return lambda: F.rms_norm(x, (c,), w, 1e-5)


def cumsum(r, c):
    x = floats(0, (r, c), -4, 4)
    return lambda: torch.cumsum(x, 1)


def sort(r, c):
    x = floats(0, (r, c), -4, 4)
    return lambda: torch.sort(x, 1).values


def sums(r, c):
    x = floats(0, (r, c), -4, 4)
    return lambda: x.sum(1)


def transpose(m, n):
    x = floats(0, (m, n))
    return lambda: x.t().contiguous()


def gather(r, c, rows):
    t, index = floats(0, (rows, c)), noise(1, r) % rows
    return lambda: t.index_select(0, index)


def histogram(n, bins):
    x = noise(0, n) % bins
    return lambda: torch.bincount(x, minlength=bins)


def attention(h, n, d, causal):
    q, k, v = (floats(i, (1, h, n, d)) for i in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal))


def convolution(h, w, i, o):
    x = floats(0, (1, h + 2, w + 2, i)).permute(0, 3, 1, 2)
    f = floats(1, (3, 3, i, o)).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return lambda: F.conv2d(x, f).permute(0, 2, 3, 1)


def image(which, n, h, c, lo=-1.0, hi=1.0):
    """Channels innermost."""
    return floats(which, (n, h, h, c), lo, hi).permute(0, 3, 1, 2)


def filters(which, i, o):
    return floats(which, (3, 3, i, o)).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)


def innermost(x):
    return x.permute(0, 2, 3, 1)


def conv2d(n, h, i, o, step):
    x, f = image(0, n, h, i), filters(1, i, o)
    return lambda: innermost(F.conv2d(x, f, stride=step, padding=1))


def conv2d_backward(x, up, f, step, which):
    def backward():
        return torch.ops.aten.convolution_backward(up, x, f, None, [step, step], [1, 1], [1, 1], False, [0, 0], 1, [which == 0, which == 1, False])[which]
    return backward


def conv2d_backward_data(n, h, i, o, step):
    up, f = image(0, n, (h - 1) // step + 1, o), filters(1, i, o)
    back = conv2d_backward(image(2, n, h, i), up, f, step, 0)
    return lambda: innermost(back())


def conv2d_backward_weight(n, h, i, o, step):
    x, up = image(0, n, h, i), image(1, n, (h - 1) // step + 1, o)
    back = conv2d_backward(x, up, filters(2, i, o), step, 1)
    return lambda: back().permute(2, 3, 1, 0)


def conv2d_transpose(n, p, i, o, step):
    x = image(0, n, p, i)
    f = floats(1, (3, 3, o, i)).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return lambda: innermost(F.conv_transpose2d(x, f, stride=step, padding=1, output_padding=step - 1))


def depthwise_conv2d(n, h, c, step):
    x, f = image(0, n, h, c), filters(1, 1, c)
    return lambda: innermost(F.conv2d(x, f, stride=step, padding=1, groups=c))


def max_pool(n, h, c, step):
    x = image(0, n, h, c)
    return lambda: innermost(F.max_pool2d(x, 3, step, 1))


def avg_pool(n, h, c, step):
    x = image(0, n, h, c)
    return lambda: innermost(F.avg_pool2d(x, 3, step, 1, count_include_pad=False))


def group_norm(n, l, c, g):
    x, w, b = floats(0, (n, l, 1, c), -4, 4).permute(0, 3, 1, 2), floats(1, (c,), 0.5, 1.5), floats(2, (c,), -1, 1)
    return lambda: innermost(F.group_norm(x, g, w, b, 1e-5))


def batch_norm(m, c):
    x, w, b = floats(0, (1, m, 1, c), -4, 4).permute(0, 3, 1, 2), floats(1, (c,), 0.5, 1.5), floats(2, (c,))
    mean, variance = torch.zeros(c), torch.ones(c)
    return lambda: innermost(F.batch_norm(x, mean, variance, w, b, training=True))


def batch_norm_backward(m, c):
    x, w = floats(0, (1, m, 1, c), -4, 4).permute(0, 3, 1, 2), floats(1, (c,), 0.5, 1.5)
    mean, variance = torch.zeros(c), torch.ones(c)
    _, kept, rstd = torch.native_batch_norm(x, w, floats(2, (c,)), mean, variance, True, 0.1, 1e-5)
    up = floats(3, (1, m, 1, c)).permute(0, 3, 1, 2)
    return lambda: innermost(torch.ops.aten.native_batch_norm_backward(up, x, w, mean, variance, kept, rstd, True, 1e-5, [True] * 3)[0])


def lib_gemm(m, n, k):
    a, w = floats(0, (m, k)), floats(1, (n, k))
    return lambda: F.linear(a, w)


def lib_gemm_nn(m, n, k):
    return matmul(m, n, k)


def lib_gemm_bf16(m, n, k):
    a, w = bfloats(0, (m, k)), bfloats(1, (n, k))
    return lambda: F.linear(a, w)


def lib_gemm_split_k(m, n, k, parts):
    return matmul(m, n, k)


def lib_attention(h, n, d, causal):
    return attention(h, n, d, causal) if hasattr(F, "scaled_dot_product_attention") else plain_attention(h, n, d, causal)


def lib_decode(h, hk, n, d):
    """One query, the last of n places."""
    q, k, v = floats(0, (1, h, 1, d)), floats(1, (1, hk, n, d)), floats(2, (1, hk, n, d))
    return lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=h != hk)


def plain_attention(h, n, d, causal):
    q, k, v = (floats(i, (h, n, d)) for i in range(3))
    hidden = torch.full((n, n), float("-inf")).triu(1) if causal else torch.zeros(n, n)
    return lambda: torch.softmax(torch.baddbmm(hidden, q, k.transpose(1, 2), alpha=d**-0.5), 2) @ v


def lib_attention_backward(h, n, d, causal):
    q, k, v = (floats(i, (h, n, d)).requires_grad_() for i in range(3))
    hidden = torch.full((n, n), float("-inf")).triu(1) if causal else torch.zeros(n, n)
    with torch.enable_grad():
        o = torch.softmax(torch.baddbmm(hidden, q, k.transpose(1, 2), alpha=d**-0.5), 2) @ v
    up = floats(3, (h, n, d))
    return lambda: torch.autograd.grad(o, (q, k, v), up, retain_graph=True)[0]


def lib_layer_norm(r, c):
    return layer_norm(r, c)


def lib_layer_norm_backward(r, c):
    x, w, b = floats(0, (r, c), -4, 4), floats(1, (c,), 0.5, 1.5), floats(2, (c,))
    _, mean, rstd = torch.native_layer_norm(x, (c,), w, b, 1e-5)
    up = floats(3, (r, c))
    return lambda: torch.ops.aten.native_layer_norm_backward(up, x, (c,), mean, rstd, w, b, [True] * 3)[0]


def lib_cross_entropy(r, v):
    x, label = floats(0, (r, v), -4, 4), noise(1, r) % v
    return lambda: F.cross_entropy(x, label, reduction="none")


def lib_cross_entropy_backward(r, v):
    x, label = floats(0, (r, v), -4, 4).requires_grad_(), noise(1, r) % v
    with torch.enable_grad():
        loss = F.cross_entropy(x, label, reduction="sum")
    return lambda: torch.autograd.grad(loss, x, retain_graph=True)[0]


def lib_argmax(r, v):
    x = floats(0, (r, v), -4, 4)
    return lambda: x.argmax(1)


def lib_swiglu(r, n):
    x = floats(0, (r, 2 * n), -4, 4)
    return lambda: F.silu(x[:, :n]) * x[:, n:]


def lib_rope(n, h, d):
    x, c, s = floats(0, (n, h, d)), floats(1, (n, 1, d // 2)), floats(2, (n, 1, d // 2))

    def rotate():
        a, b = x[..., :d // 2], x[..., d // 2:]
        return torch.cat((a * c - b * s, a * s + b * c), 2)
    return rotate


def lib_embedding(n, d, v):
    w, index = floats(0, (v, d)), noise(1, n) % v
    return lambda: F.embedding(index, w)


def lib_embedding_backward(n, d, v):
    up, index = floats(0, (n, d)), noise(1, n) % v
    return lambda: torch.ops.aten.embedding_dense_backward(up, index, v, -1, False)


WORKS = {f.__name__: f for f in (matmul, batched, matmul_gelu, matmul_bf16, gemv, add, gelu, softmax, layer_norm, rms_norm, cumsum,
                                 sort, sums, transpose, gather, histogram, attention, convolution, conv2d, conv2d_backward_data, conv2d_backward_weight,
                                 conv2d_transpose, depthwise_conv2d, max_pool, avg_pool, batch_norm, batch_norm_backward, group_norm, lib_gemm, lib_gemm_nn, lib_gemm_bf16, lib_gemm_split_k, lib_attention, lib_attention_backward, lib_decode,
                                 lib_layer_norm, lib_layer_norm_backward, lib_cross_entropy, lib_cross_entropy_backward, lib_argmax,
                                 lib_swiglu, lib_rope, lib_embedding, lib_embedding_backward)}


def seconds(run, least):
    now = time.process_time if os.environ.get("CONTENDER_CLOCK") == "processor" else time.perf_counter
    begin = end = now()
    runs, batch = 0, 1
    while end - begin < least:
        for _ in range(batch):
            run()
        runs += batch
        batch = min(2 * runs, 64)
        end = now()
    return (end - begin) / runs


def sample(run, n):
    flat = run().contiguous().reshape(-1)
    return [flat[(2 * i + 1) * flat.numel() // (2 * n)].item() for i in range(n)]


def main():
    run = None
    for line in sys.stdin:
        words = line.split()
        if words[0] == "quit":
            break
        if words[0] == "prepare":
            run, why = None, "no PyTorch" if not torch else "not this work"
            if torch and words[1] in WORKS:
                try:
                    run = WORKS[words[1]](*map(int, words[2:]))
                    print("ready", run().numel(), flush=True)
                    continue
                except (RuntimeError, TypeError) as e:
                    run, why = None, str(e).split("\n")[0]
            print("none", why, flush=True)
        elif run and words[0] == "time":
            print("seconds", seconds(run, float(words[1])), flush=True)
        elif run and words[0] == "sample":
            print("values", *sample(run, int(words[1])), flush=True)
        else:
            print("none wrong line", flush=True)


if __name__ == "__main__":
    main()
