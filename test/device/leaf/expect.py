#!/usr/bin/env python3
"""What the leaf kernels (leaf_words.c) must write, computed here from what runtime/contract/leaf.def says of each row.

    expect.py FOLDER LANES      FOLDER: leaf_words --dump; prints what differs, then "N rows, N bad"

Independent of the emulator: words that it or a GPU wrote are held against this.
"""
import os
import sys

import numpy as np

BLOCKS, THREADS, RESULTS, CELLS = 2, 128, 24, 12
ALL = BLOCKS * THREADS
WIDTHS = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
u32 = np.uint32

x = np.arange(ALL, dtype=u32)  # linear thread
tid, block = x % THREADS, x // THREADS
ALWAYS, NEVER, SOME = np.ones(ALL, bool), np.zeros(ALL, bool), tid % 3 != 0
PREDS = [ALWAYS, NEVER, SOME]
INPUT = ((np.arange(ALL * 64, dtype=np.uint64) * 2654435761 & 0xFFFFFFFF) >> 24).astype(np.uint8)


def mix(n):
    return ((x + u32(1 + n)) * u32(2654435761)) ^ u32(0x5BD1E995 * n & 0xFFFFFFFF)


def as_bytes(*words):
    """[thread, byte] of words side by side."""
    return np.stack(words, 1).astype("<u4").view(np.uint8)


def value(width, n):
    """leaf_words.c's value(): a mixed word cut to width, or several."""
    words = [mix(n)] if width <= 4 else [mix(n * 4 + i) for i in range(width // 4)]
    return as_bytes(*words)[:, :width]


class Out:
    def __init__(self):
        self.results = np.full((ALL, RESULTS, 16), 0xAB, np.uint8)
        self.n = 0

    def keep(self, data, where=ALWAYS):
        """The next result of every thread: [thread, byte]."""
        self.results[where, self.n, : data.shape[1]] = data[where]
        self.n += 1


def keep_words(out, words):
    out.keep(as_bytes(words))


def ldg(out, width):
    for h in range(6):
        fill = np.array([0x82, 0xFF, 0x81, 0x7F] * 4 if h & 1 else [0] * 16, np.uint8)[:width]
        for p in PREDS:
            at = (x * width + h * width).astype(int)[:, None] + np.arange(width)
            out.keep(np.where(p[:, None], INPUT[at], fill).astype(np.uint8))


def stg(out, width):
    for h in range(6):
        for p in PREDS:
            out.keep(value(width, h), p)


NEAR = [(None, 0), (None, 4096 + 48), (60 * 16, 0)]  # leaf_words.c's: records and far, of accesses of 16 bytes


def ldb(out, width):
    for h in range(2):
        fill = np.array([0x82, 0xFF, 0x81, 0x7F] * 4 if h else [0] * 16, np.uint8)[:width]
        for p in PREDS:
            for records, far in NEAR:
                there = p & (tid * width + width <= records // 16 * width) if records else p
                at = (x * width + far // 16 * width).astype(int)[:, None] + np.arange(width)
                out.keep(np.where(there[:, None], INPUT[at], fill).astype(np.uint8))


def stb(out, width):
    for h in range(2):
        for p in PREDS:
            for records, _ in NEAR:
                end = tid * RESULTS * 16 + 16 * out.n + width
                out.keep(value(width, h), p & (end <= 60 * RESULTS * 16) if records else p)


def filled():
    """Shared memory after fill_shared: [block, thread, 16 bytes]."""
    return as_bytes(*[mix(j) for j in range(4)]).reshape(BLOCKS, THREADS, 16).copy()


def of_other(shared):
    """Each thread's view of the 16 bytes of thread tid ^ 33."""
    return shared[block, tid ^ 33]


def lds(out, width):
    seen = of_other(filled())
    for j in range(16 // width):
        out.keep(seen[:, j * width:(j + 1) * width])


def sts(out, width):
    shared = filled()
    for p in range(3):
        at, data = p * width % 16, value(width, 9 + p)
        for t in np.flatnonzero(PREDS[p]):
            shared[block[t], tid[t], at:at + width] = data[t]
        seen = of_other(shared)
        for j in range(4):
            out.keep(seen[:, 4 * j:4 * j + 4])


def adds(out):
    words = filled().view(u32)
    for p in range(3):
        for to, n in ((tid, 9), (tid ^ 33, 19)):
            np.add.at(words, (block, to, 1), np.where(PREDS[p], mix(n + p), u32(0)))
        keep_words(out, words[block, tid ^ 33, 1])


def copied(shared, width, at, does, inside):
    """Each thread's copy of so many bytes from its place in the input, or of zeros."""
    for t in np.flatnonzero(does):
        where = at % 16
        source = INPUT[int(x[t]) * width + at:][:width]
        shared[block[t], tid[t], where:where + width] = source if inside[t] else 0


def cp_async(out, width):
    shared, odd = filled(), tid & 4 != 0
    for p in range(3):
        for q in range(3):
            copied(shared, width, (3 * p + q) * width, PREDS[p], PREDS[q] if q < 2 else odd)
            out.keep(of_other(shared))


def near_rows(out):
    shared = filled()
    for at in (0, 32, 64):
        copied(shared, 16, at, ALWAYS, ALWAYS)
        out.keep(of_other(shared))


def row_groups(out):
    shared = filled()
    for at in (0, 16):
        copied(shared, 16, at, ALWAYS, ALWAYS)
        out.keep(of_other(shared))


def groups(out):
    shared = filled()
    for at in (0, 4, 8):
        copied(shared, 4, at, ALWAYS, ALWAYS)
    for at in (0, 12):
        out.keep(shared[block, tid, at:at + 4])
    out.keep(of_other(shared))


def ldsm(out, n, trans):
    shared, lane, warp = filled(), x % 32, x - x % 32
    for rows in (tid, tid ^ 33, tid * 5 + 3 & 127, tid * 8 & 127):
        words = []
        for m in range(n):
            if trans:
                pair = [shared[block, rows[warp + 8 * m + 2 * (lane & 3) + h]] for h in range(2)]
                at = 2 * (lane >> 2)
                words += [p[np.arange(ALL), at + i] for p in pair for i in range(2)]
            else:
                row = shared[block, rows[warp + 8 * m + (lane >> 2)]]
                words += [row[np.arange(ALL), 4 * (lane & 3) + i] for i in range(4)]
        out.keep(np.stack(words, 1))


def ldsm_bytes(out, n):
    """Of matrices of 16 rows: two columns, 8 apart, four rows of each."""
    shared, lane, warp = filled(), x % 32, x - x % 32
    for rows in (tid, tid ^ 33, tid * 5 + 3 & 127, tid * 8 & 127):
        out.keep(np.stack([shared[block, rows[warp + 16 * m + 4 * (lane & 3) + i], (lane >> 2) + 8 * half]
                           for m in range(n) for half in range(2) for i in range(4)], 1))


def columns(out, bits):
    """Of 16 lanes each: they bring 8 bytes, each gets a column of the rows of 16 elements that these make."""
    shared, size = filled().reshape(BLOCKS, -1), bits // 8
    n, lane = 8 // size, x % 16
    for pieces in (tid, tid ^ 37, tid * 5 + 3 & 255, tid * 8 & 255):
        got = []
        for row in range(n):
            at = pieces[x - lane + row * (16 // n) + lane // n] * 8 + lane % n * size
            got += [shared[block, at + i] for i in range(size)]
        out.keep(np.stack(got, 1))


def stsm(out, n, form):
    shared, lane, warp = filled(), x % 32, x - x % 32
    for i, rows in enumerate((tid, tid ^ 33, tid * 5 + 3 & 127)):
        for m in range(n):
            word = as_bytes(mix(20 + 4 * i + m))
            if form == "8":
                for b in range(4):
                    shared[block, rows[warp + 8 * m + 2 * (lane & 3) + b % 2], (lane >> 2) + 8 * (b // 2)] = word[:, b]
            elif form == "t":
                for h in range(2):
                    row = rows[warp + 8 * m + 2 * (lane & 3) + h]
                    for b in range(2):
                        shared[block, row, 2 * (lane >> 2) + b] = word[:, 2 * h + b]
            else:
                for b in range(4):
                    shared[block, rows[warp + 8 * m + (lane >> 2)], 4 * (lane & 3) + b] = word[:, b]
        out.keep(shared[block, tid])


def barrier(out):
    for r in range(4):
        keep_words(out, mix(r)[block * THREADS + (tid + 1 + 40 * r) % THREADS])


def shfl_xor(out, lanes):
    mask = 1
    while mask <= lanes - 1:
        keep_words(out, mix(mask)[x ^ mask])
        mask = mask * 2 + (mask == 4)
    keep_words(out, mix(77)[x ^ (lanes - 1)])


def shfl_end(out, lanes):
    for n in (16, 32):
        group = x % lanes // n * n
        keep_words(out, np.where(group > 0, mix(n)[x - x % lanes + np.maximum(group, 1) - 1], 0))


def shfl_shift(out, lanes):
    group, thread = lanes, x.astype(int)
    while group >= 2:
        n = 1
        while n < group:
            for way in (n, -n):
                source, there = thread - way, (thread - way) // group == thread // group
                out.keep(as_bytes(mix(n)[np.where(there, source, thread)], there.astype(u32)))
            n *= 4
        group //= 2


def of_warp(f, values, lanes):
    return np.repeat(f.reduce(values.reshape(-1, lanes), axis=1, dtype=values.dtype), lanes).view(u32)


def redux(out, lanes):
    for how, (f, t) in enumerate([(np.add, u32), (np.minimum, np.int32), (np.maximum, np.int32), (np.minimum, u32), (np.maximum, u32),
                                  (np.bitwise_and, u32), (np.bitwise_or, u32), (np.bitwise_xor, u32)]):
        keep_words(out, of_warp(f, mix(how).view(t), lanes))


def redux_f32(out, lanes):
    for n, f in ((1, np.fmin), (2, np.fmax)):
        keep_words(out, of_warp(f, mix(n).view(np.float32), lanes))


def choose_bytes(out):
    fixed = [np.full(ALL, w, u32) for w in (0x05040100, 0x00020406, 0x03020706)]
    for i, chosen in enumerate(fixed + [mix(9) & u32(0x07070707)]):
        out.keep(np.take_along_axis(as_bytes(mix(i), mix(i + 4)), as_bytes(chosen).astype(int), 1))


def shfl_idx(out, lanes):
    lane, base = x % lanes, x - x % lanes
    for i, source in enumerate([(lane + 1) % lanes, lane ^ 5, lane * 0 + 3, lane * 7 % lanes, lane * 0 + lanes - 1, lanes - 1 - lane]):
        keep_words(out, mix(i)[base + source])


# ---- atomics: plain Python integers, one thread after the other ----


def cell_bits(c, width):
    if width <= 2:
        return c * 257 & (1 << 8 * width) - 1
    return int.from_bytes(np.array(c % 100, f"<f{width}").tobytes(), "little")


def signed(v, width):
    return v - (1 << 8 * width) if v >> (8 * width - 1) else v


def fadd(a, b, width):
    f = [np.frombuffer(v.to_bytes(width, "little"), f"<f{width}")[0] for v in (a, b)]
    return int.from_bytes((f[0] + f[1]).tobytes(), "little")


OPS = {
    "add": lambda o, v, e, w: o + v & (1 << 8 * w) - 1,
    "min_s": lambda o, v, e, w: min(o, v, key=lambda a: signed(a, w)),
    "max_s": lambda o, v, e, w: max(o, v, key=lambda a: signed(a, w)),
    "min_u": lambda o, v, e, w: min(o, v),
    "max_u": lambda o, v, e, w: max(o, v),
    "and": lambda o, v, e, w: o & v,
    "or": lambda o, v, e, w: o | v,
    "xor": lambda o, v, e, w: o ^ v,
    "xchg": lambda o, v, e, w: v,
    "store": lambda o, v, e, w: v,
    "load": lambda o, v, e, w: o,
    "cas": lambda o, v, e, w: v if o == e else o,
    "fadd": lambda o, v, e, w: fadd(o, v, w),
}


def operand(op, width, n):
    if op == "fadd":
        return [cell_bits(int(t) + n, width) for t in tid]
    return [(int(a) | int(b) << 32) & (1 << 8 * width) - 1 for a, b in zip(mix(n), mix(n + 50))]


def atom(out, width, op):
    cells, other = [cell_bits(c, width) for c in range((ALL + 1) * CELLS)], 57 if width == 1 else 12345
    for v in range(CELLS):
        operands, old = operand(op, width, v), np.zeros((ALL, width), np.uint8)
        for t in range(ALL):
            c = t * CELLS + v
            if v != 5 or SOME[t]:
                before = cells[c]
                old[t] = list(before.to_bytes(width, "little"))
                cells[c] = OPS[op](before, operands[t], before if t & 1 else other, width)
            if op not in ("xchg", "cas", "store") and (v != 7 or SOME[t]):
                shared = ALL * CELLS + v
                cells[shared] = OPS[op](cells[shared], operands[t], other, width)
        if op != "store":
            out.keep(old)
    return cells


# ---- matrix instructions: the fragments as PTX's manual and AMD's matrix instruction calculator have them ----

SIZE = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "s8": 1, "u8": 1, "i8": 1, "e4m3": 1, "e5m2": 1, "e4m3fnuz": 1, "e5m2fnuz": 1, "e2m1": 1}


def fragments(kind, k, size):
    """m, n, lanes, transposed, and (row, column) of [lane, element] of A, B, D."""
    per = max(4 // size, 1)
    if kind == "mma" and size == 8:
        g, c = np.arange(32)[:, None] // 4, np.arange(32)[:, None] % 4
        e = np.arange(2)[None]
        return 8, 8, 32, False, (g, c), (c, g), (g + 0 * e, 2 * c + e)
    if kind == "mma":
        g, c = np.arange(32)[:, None] // 4, np.arange(32)[:, None] % 4
        e = np.arange(16 * k // 32)[None]
        q, i = e // per, e % per
        a = g + 8 * (q & 1), per * c + i + 4 * per * (q >> 1)
        e = np.arange(8 * k // 32)[None]
        q, i = e // per, e % per
        b = per * c + i + 4 * per * q, g + 0 * e
        e = np.arange(4)[None]
        return 16, 8, 32, False, a, b, (g + 8 * (e >> 1), 2 * c + (e & 1))
    if kind in ("wmma1", "wmma1t"):
        lane, e, v = np.arange(32)[:, None], np.arange(16)[None], np.arange(8)[None]
        return 16, 16, 32, kind == "wmma1t", (lane % 16 + 0 * e, 0 * lane + e), (0 * lane + e, lane % 16 + 0 * e), (2 * v + lane // 16, lane % 16 + 0 * v)
    lanes, results, kind = 32 if kind in ("wmma2", "wmma3") else 64, kind.endswith("r"), kind.rstrip("r")
    m = 16 if kind != "mfma32" else 32
    lane, e = np.arange(lanes)[:, None], np.arange(m * k // lanes)[None]
    part = min(k * m // lanes, 4 if results else 16 // size if kind == "wmma3" else 16)  # more of K are in parts
    ks = e % part + part * (lane // m) + e // part * (part * lanes // m)
    v = np.arange(m * m // lanes)[None]
    i = (8 * (lane // 16) + v if kind in ("wmma2", "wmma3") else 8 * (v // 4) + 4 * (lane // 32) + v % 4 if m == 32
         else lane // 16 + 4 * v if size == 8 else 4 * (lane // 16) + v)
    return m, m, lanes, True, (lane % m + 0 * e, ks), (ks, lane % m + 0 * e), (i, lane % m + 0 * v)


def small_numbers(t, n, thread):
    mixed = ((thread.astype(u32) + u32(1 + n)) * u32(2654435761)) ^ u32(0x5BD1E995 * n & 0xFFFFFFFF)
    v = (mixed >> 9 & 7).astype(np.int64)
    if t in ("u8", "e2m1"):  # e2m1: codes
        return v
    return np.array([0, 1, 2, 3, -4, -3, -2, -1])[v] if t[:2] in ("e4", "e5") else v - 4


F4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def block_scales(kind, threads, i, e4m3, blocks):
    """[row of A or column of B, block along K] of the scales of a warp, powers of two, in the lanes that bring them: PTX's "block scaling", thread 0; AMD's
    lanes of 16 or 32 rows a block."""
    word = (mix(900 + i)[threads].astype(np.int64) >> 5 & 0x01010101) * (8 if e4m3 else 1) + (0x38383838 if e4m3 else 0x7F7F7F7F)
    byte = np.stack([word >> 8 * n & 255 for n in range(4)], 1)
    value = 2.0**((byte >> 3) - 7) if e4m3 else 2.0**(byte - 127)
    if kind == "mma":
        first = np.arange(8) * 4
        return value[np.concatenate([first, first + 1]) if i == 0 else first, :blocks]
    rows = 32 if kind == "mfma32" else 16
    return value[:, 0].reshape(-1, rows).T


def matrix(out, name, lanes):
    words = name.split(".")
    scaled = words.pop(1) if len(words) > 2 and words[1] in ("mx", "nv") else None
    kind, types = words[0], words[2:]
    a, b = types[0], types[-1]
    k = int(words[1].replace("k", "x").split("x")[-1])
    pairs = scaled and a == b == "e2m1"
    k = k // 2 if pairs else k
    acc = 8 if a == "f64" else 4
    if kind in ("mfma", "mfmar") and words[1].startswith("32"):
        kind = kind.replace("mfma", "mfma32")
    m, n, want, transposed, at_a, at_b, at_d = fragments(kind, k, SIZE[a])
    if want != lanes:
        return
    swap = (lambda p: p[::-1]) if transposed else (lambda p: p)
    warps = x.reshape(-1, lanes)
    results = np.zeros((ALL, at_d[0].shape[1]))
    for w, threads in enumerate(warps):
        lane16 = threads - threads % THREADS + threads % THREADS % 16 if kind in ("wmma1", "wmma1t") else threads
        A, B, C = np.zeros((m, k)), np.zeros((k, n)), np.zeros((m, n))
        for t, base, M, at in ((a, 0, A, at_a), (b, 64, B, at_b)):
            for e in range(at[0].shape[1]):
                M[at[0][:, e], at[1][:, e]] = small_numbers(t, base + e, lane16)
        row, column = swap(at_d)
        for e in range(row.shape[1]):
            C[row[:, e], column[:, e]] = small_numbers("f32", 128 + e, threads)
        if pairs:  # small codes: the upper half of each byte is 0
            A, B = (F4[np.stack([M, 0 * M], -1).astype(int)] for M in (A, B.T))
            A, B, K = A.reshape(m, 2 * k), B.reshape(n, 2 * k).T, 2 * k
        elif scaled:
            A, B, K = (F4[A.astype(int)] if a == "e2m1" else A), (F4[B.astype(int)] if b == "e2m1" else B), k
        if scaled:
            each = 16 if scaled == "nv" else 32
            SA, SB = (np.repeat(block_scales(kind, threads, i, scaled == "nv", K // each), each, 1) for i in range(2))
            A, B = A * SA, B * SB.T
        D = C + A @ B
        results[threads] = D[row, column]
    integer = a in ("s8", "u8", "i8")
    data = results.astype("<i4" if integer else f"<f{acc}")
    words32 = np.ascontiguousarray(data).view("<u4")
    for i in range(words32.shape[1]):
        keep_words(out, words32[:, i])


# ---- products of warpgroups, as PTX's manual has them: "Matrix descriptor", "Strides", "Swizzling modes", "Register fragments for wgmma" ----


def swizzled(at, span):
    """16-byte pieces of rows of 128, 64 or 32 bytes are XORed with bits 7 and up of their address."""
    return at ^ (at >> 7 & span // 16 - 1) << 4


def in_shared(t, seed, b, rows, span, across):
    """[row along M or N, k] of both steps of k: the element at a place is a number of that place."""
    size = SIZE[t]
    i, k = np.arange(rows)[:, None], np.arange(64 // size)[None]
    if across:
        at = i * size // span * (32 * span) + swizzled(k * span + i * size % span, span)
    else:
        at = k * size // span * (rows * span) + swizzled(i * span + k * size % span, span)
    return small_numbers(t, seed, b * THREADS + at // size).astype(np.float64)


def in_words(t, threads):
    """A of one warpgroup, from registers."""
    per, A = 4 // SIZE[t], np.zeros((64, 64 // SIZE[t]))
    lane, warp = threads % 32, threads % THREADS // 32
    for step in range(2):
        for q in range(4):
            for e in range(per):
                k = 8 * per * step + per * (lane & 3) + e + 4 * per * (q >> 1)
                A[16 * warp + (lane >> 2) + 8 * (q & 1), k] = small_numbers(t, 300 + per * (4 * step + q) + e, threads)
    return A


def product(out, name):
    _, n, span, how, *types = name.split(".")
    n, span, a, b = int(n), int(span), types[0], types[-1]
    results = np.zeros((ALL, n // 2))
    for pid in range(BLOCKS):
        threads = pid * THREADS + np.arange(THREADS)
        lane, warp, i = threads[:, None] % 32, threads[:, None] % THREADS // 32, np.arange(n // 2)[None]
        row, column = 16 * warp + (lane >> 2) + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (lane & 3) + (i & 1)
        A = in_words(a, threads) if "r" in how else in_shared(a, 0, pid, 64, span, "a" in how)
        D = A @ in_shared(b, 64, pid, n, span, "b" in how).T
        results[threads] = D[row, column]
        for k in range(n // 2):
            results[threads, k] += small_numbers("f32", 128 + k, threads)
    data = results.astype("<i4" if a in ("s8", "u8") else "<f4").view("<u4")
    for i in range(0, n // 2, 4):
        keep_words4(out, data[:, i:i + 4])


def scales_in_memory(threads, i):
    """[row, block along K]: thread t writes word t of the piece, four blocks of row t / 4 + 32 (t % 4): PTX's "Scale factors in tensor memory"."""
    word = (mix(900 + i)[threads].astype(np.int64) >> 5 & 0x01010101) + 0x7F7F7F7F
    values = np.zeros((128, 4))
    t = np.arange(128)
    for n in range(4):
        values[t // 4 + 32 * (t % 4), n] = 2.0**((word >> 8 * n & 255) - 127)
    return values


def tensor(out, scaled, rows):
    """Into tensor memory: thread t of a warpgroup holds row t, all 32 columns; of 64 rows, each warp the 16 of mma.sync's fragments, 8 columns at a time."""
    n = 32 * rows // 128
    results = np.zeros((ALL, n))
    t, r = np.arange(THREADS)[:, None], np.arange(n)
    row = t // 32 * 16 + t % 32 // 4 + 8 * (r // 2 % 2) if rows == 64 else t + 0 * r
    column = t % 4 * 2 + r % 2 + 8 * (r // 4) if rows == 64 else r + 0 * t
    for pid in range(BLOCKS):
        threads = pid * THREADS + np.arange(THREADS)
        t = "e4m3" if scaled else "f16"
        A, B = in_shared(t, 0, pid, 128, 64, False), in_shared(t, 64, pid, 32, 64, False)
        if scaled:
            A, B = (M * np.repeat(scales_in_memory(threads, i)[:len(M), :2], 32, 1) for i, M in enumerate((A, B)))
        results[threads] = (A @ B.T)[row, column]
        for k in range(n):
            results[threads, k] += small_numbers("f32", 128 + k, threads)
    data = results.astype("<f4").view("<u4")
    for i in range(0, n, 4):
        keep_words4(out, data[:, i:i + 4])


def keep_words4(out, words):
    out.keep(as_bytes(*words.T))


# leaf_words.c's, by axes: extents and strides of the view, the axis of the box's rows, bytes and number of these, where it begins
BOXES = {
    2: ((30, 60), (72, 1), 0, 128, 16, ((4, 0), (22, 8))),
    3: ((4, 10, 40), (800, 64, 1), 1, 64, 8, ((3, 1, 8), (1, -2, 16))),
    4: ((3, 12, 2, 40), (2000, 160, 48, 1), 1, 32, 8, ((2, 3, 1, 24), (0, 8, 2, 0))),
    5: ((2, 2, 3, 9, 40), (2400, 1200, 384, 40, 1), 3, 64, 8, ((1, 1, 2, 0, 8), (1, -1, 2, 4, 24))),
}


def elements(rank):
    """(program, number of the element in memory or None where it is outside, bytes in shared memory)"""
    extents, strides, other, span, rows, starts = BOXES[rank]
    for pid in range(BLOCKS):
        for r in range(rows):
            for c in range(span // 2):
                at = list(starts[pid])
                at[other] += r
                at[-1] += c
                inside = all(0 <= p < e for p, e in zip(at, extents))
                place = int(swizzled(np.int64(r * span + 2 * c), span))
                yield pid, sum(p * s for p, s in zip(at, strides)) if inside else None, slice(place, place + 2)


def bulk(out, rank):
    memory, shared = np.ascontiguousarray(INPUT).reshape(-1, 2), filled().reshape(BLOCKS, -1)
    for pid, at, place in elements(rank):
        shared[pid, place] = 0 if at is None else memory[at]
    out.keep(shared.reshape(ALL, 16))


def bulk_store(out, rank):
    memory, shared = out.results.reshape(-1, 2), filled().reshape(BLOCKS, -1)
    for pid, at, place in elements(rank):
        if at is not None:
            memory[at] = shared[pid, place]


def halves(out):
    for r in range(4):
        keep_words(out, mix(r)[block * THREADS + (tid & 64) + (tid + 1 + 20 * r) % 64])


def turns(out):
    for r in range(3):
        lower, upper = mix(max(r - 1, 0)), mix(r)
        other = block * THREADS + (tid ^ 64)
        keep_words(out, np.where(tid < 64, lower[other] if r else 0, upper[other]).astype(u32))


def registers(out):
    for n in (0, 0, 1):
        keep_words(out, mix(n))


def mul_wide(out, word):
    for i in range(4):
        p = mix(i).view(word).astype(np.int64).view(np.uint64) * mix(i + 7).view(word).astype(np.int64).view(np.uint64)
        keep_words(out, (p & np.uint64(0xFFFFFFFF)).astype(u32))
        keep_words(out, (p >> np.uint64(32)).astype(u32))


def ex2(out, flush):
    for i in range(4):
        n = (mix(i) & u32(255)).astype(np.int64) - 140
        n = np.where(n < -126, -2000, n) if flush else n
        keep_words(out, np.ldexp(np.ones(len(n)), n).astype("<f4").view("<u4"))


def power_of_two(n, step):
    return ((mix(n) & u32(128 // step - 1)) * u32(step) + u32(65)) << u32(23)


def floats(words):
    return words.view("<f4").astype(np.float64)


def keep_floats(out, x):
    keep_words(out, x.astype("<f4").view("<u4"))


def quotients(out):
    for i in range(4):
        keep_floats(out, floats(power_of_two(i, 1)) / floats(power_of_two(i + 7, 1)))
    keep_floats(out, 1 / floats(power_of_two(4, 1)))


def big_quotients(out):
    for i in range(4):
        keep_floats(out, floats(power_of_two(i, 1)) / floats(power_of_two(i + 7, 1)))


def reciprocals(out):
    for i in range(4):
        keep_floats(out, 1 / floats(power_of_two(i, 1)))


def saturated(out):
    for i in range(4):
        x = floats(power_of_two(i, 1) | mix(i + 3) & u32(1 << 31)).astype(np.float64) * floats(power_of_two(i + 7, 1)).astype(np.float64)
        keep_floats(out, np.clip(x + 0.5, 0, 1))
    keep_floats(out, np.ones(len(mix(0))))
    keep_floats(out, np.zeros(len(mix(0))))


def roots(out, reciprocal):
    for i in range(4):
        y = np.sqrt(floats(power_of_two(i, 2)))
        keep_floats(out, 1 / y if reciprocal else y)


def extremes(out, name):
    finite, nan = u32(0xBFFFFFFF), np.full(len(mix(0)), 0x7FFFFFFF, u32)
    x = mix(2) & finite
    for a, b in ((mix(0) & finite, mix(1) & finite), (mix(0) & u32(1 << 31), mix(1) & u32(1 << 31)), (nan, x), (x, nan)):
        order = [np.where(v >> u32(31), -(v & u32(0x7FFFFFFF)).astype(np.int64) - 1, v.astype(np.int64)) for v in (a, b)]
        first = order[0] < order[1] if name.startswith("min") else order[0] > order[1]
        y = np.where(first, a, b)
        for v, other in ((a, b), (b, a)):
            y = np.where(v == nan, v if name.endswith("_nan") else other, y)
        keep_words(out, y)


def bf16(out):
    ties = mix(1) & u32(0xBFFF8000)
    for v in (mix(0) & u32(0xBFFFFFFF), ties, ties | u32(0x18000), mix(2) | u32(0x7F800000)):
        nan = (v & u32(0x7FFFFFFF)) > u32(0x7F800000)
        rounded = (v.astype(np.uint64) + 0x7FFF + (v >> u32(16) & u32(1))) >> np.uint64(16)
        keep_words(out, np.where(nan, 0x7FFF, rounded).astype(u32))


SMALL = {"e4m3": (3, 7, 0x80, 0x7E, 0x7F), "e5m2": (2, 15, 0x80, 0x7B, 0x7F), "e2m1": (1, 1, 8, 7, 7)}  # fraction, bias, sign, greatest, NaN


def small_values(t):
    """The numbers of the codes 0 to the greatest."""
    fraction, bias, _, greatest, _ = SMALL[t]
    code = np.arange(greatest + 1)
    exponent, rest = code >> fraction, code & (1 << fraction) - 1
    return np.where(exponent > 0, (rest + (1 << fraction)) * 2.0 ** (exponent - bias - fraction), rest * 2.0 ** (1 - bias - fraction))


def of_small(out, types):
    for i, t in enumerate(types):
        _, _, sign, greatest, _ = SMALL[t]
        values, halves = small_values(t), []
        for part in range(2):
            code = mix(i) >> u32(part * (4 if sign == 8 else 8)) & u32(2 * sign - 1)
            size = code & u32(sign - 1)
            half = np.where(size <= greatest, values[np.minimum(size, greatest)], np.inf).astype(np.float16).view(np.uint16).astype(u32)
            half = np.where(size <= greatest, half | np.where(code & u32(sign), 0x8000, 0).astype(u32), 0x7FFF).astype(u32)
            if t == "e5m2":  # it has infinities
                half = np.where(size == 0x7C, u32(0x7C00) | (code & u32(0x80)) << u32(8), half).astype(u32)
            halves.append(half)
        keep_words(out, halves[0] | halves[1] << u32(16))


def to_small(out, types):
    for t in types:
        _, _, sign, greatest, nan = SMALL[t]
        values = small_values(t)
        near, ties = (mix(0) & u32(0x87FFFFFF)) + u32(0x3B000000), (mix(1) & u32(0x87F80000)) + u32(0x3B000000)
        zero = np.full_like(near, 0x80000000)
        for pair in ((near, ties), (mix(2) | u32(0x7F800000), mix(3)), (zero, near)):
            codes = []
            for bits in pair:
                x = bits.view(np.float32)
                size = np.minimum(np.abs(np.where(np.isnan(x), 0, x)).astype(np.float64), values[-1])
                above = np.clip(np.searchsorted(values, size), 1, greatest)  # the first that is not less
                low, high = size - values[above - 1], values[above] - size
                code = np.where((low < high) | ((low == high) & (above % 2 == 1)), above - 1, above).astype(u32)
                codes.append(np.where(np.isnan(x), nan, code | np.where(bits >> u32(31), sign, 0).astype(u32)).astype(u32))
            keep_words(out, codes[0] | codes[1] << u32(4 if sign == 8 else 8))


def f2i(out):
    """Signed: how & 1; to nearest, ties to even: how & 2."""
    for bits in (8, 16, 32):
        for how in range(4):
            for v in (mix(0) & u32(0xC3FFFFFF) | u32(0x3F000000), mix(1)):
                x = v.view(np.float32).astype(np.float64)
                y = np.rint(x) if how & 2 else np.trunc(x)
                low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if how & 1 else (0.0, 2.0**bits - 1)
                keep_words(out, np.where(np.isnan(x), 0, np.clip(y, low, high)).astype(np.int64).astype(u32))


def start_cells(width, cells=None):
    data = np.full(((ALL + 1) * CELLS, 8), 0xCD, np.uint8)
    for c in range(len(data)):
        bits = cell_bits(c, width) if cells is None else cells[c]
        data[c, :width] = list(bits.to_bytes(width, "little"))
    return data


def expected(name, lanes):
    """All bytes that the row's kernel leaves; None for rows that only speak."""
    out, cells, width = Out(), None, 8
    kind, _, rest = name.partition("_")
    if kind.startswith("wgmma") or name == "fence_async":
        product(out, name if "." in name else "wgmma.16.128.x.f16")
    elif kind == "tensor":
        tensor(out, "scale" in name, 64 if name.endswith("_16") else 128)
    elif "." in name:
        matrix(out, name, lanes)
    elif name in ("bulk_commit", "bulk_wait") or rest.startswith("store"):
        bulk_store(out, int(rest[-1]) if rest[-1].isdigit() else 2)
    elif kind == "bulk":
        bulk(out, int(rest.removeprefix("all_")))  # of a cluster of one
    elif kind == "elect":
        keep_words(out, (tid % 32 == 0).astype(u32))
    elif name == "vote_any":
        for r in range(4):
            keep_words(out, np.repeat((mix(r) & u32(63) == r).reshape(-1, 32).any(1), 32).astype(u32))
    elif name == "barrier_of":
        halves(out)
    elif kind == "turn":
        turns(out)
    elif kind == "registers":
        registers(out)
    elif kind == "stsm":
        stsm(out, int(name[-1]), rest.split("_")[0])
    elif name.startswith("lds_t"):
        columns(out, int(rest.removeprefix("t_")))
    elif name.startswith("ldsm_8"):
        ldsm_bytes(out, int(name[-1]))
    elif kind == "ldsm":
        ldsm(out, int(name[-1]), "_t_" in name)
    elif name in ("cp_commit", "cp_wait"): # of 64 lanes: gfx950
        (row_groups if lanes == 64 else groups)(out)
    elif name == "cp_row_near":
        near_rows(out)
    elif name == "cp_row":
        cp_async(out, 16)
    elif kind == "cp":
        cp_async(out, int(name.split("_")[-1]))
    elif kind == "mul":
        mul_wide(out, u32 if name.endswith("_u") else np.int32)
    elif kind == "bytes":
        choose_bytes(out)
    elif kind == "ex2":
        ex2(out, name.endswith("ftz"))
    elif name == "div":
        quotients(out)
    elif name == "div_big":
        big_quotients(out)
    elif kind == "rcp":
        reciprocals(out)
    elif kind == "fma":
        saturated(out)
    elif kind in ("sqrt", "rsqrt"):
        roots(out, kind == "rsqrt")
    elif kind == "bf16":
        bf16(out)
    elif name in ("of_f8", "of_f4"):
        of_small(out, ["e2m1"] if name == "of_f4" else ["e4m3", "e5m2"])
    elif name in ("to_f8", "to_f4"):
        to_small(out, ["e2m1"] if name == "to_f4" else ["e4m3", "e5m2"])
    elif kind == "f2i":
        f2i(out)
    elif kind in ("min", "max"):
        extremes(out, name)
    elif kind == "atom":
        bits, _, op = rest.partition("_")
        width = WIDTHS[bits]
        cells = atom(out, width, op)
    elif kind in ("ldg", "stg", "ldb", "stb", "lds", "sts"):
        globals()[kind](out, WIDTHS[rest])
    elif kind == "adds":
        adds(out)
    elif kind in ("shfl", "redux"):
        globals()[name](out, lanes)
    elif kind in ("barrier", "mbar", "meet"):
        barrier(out)
    elif kind == "cluster":
        keep_words(out, np.full(len(tid), 1 if rest == "size" else 0, u32))
    elif kind in ("tid", "ctaid"):
        keep_words(out, tid if kind == "tid" else block)
    elif kind not in ("fail", "outside", "print"):
        raise ValueError(f"row {name} is not known here")
    return np.concatenate([out.results.reshape(-1), start_cells(width, cells).reshape(-1)])


def main():
    folder, lanes = sys.argv[1], int(sys.argv[2])
    names, bad = sorted(f[:-4] for f in os.listdir(folder) if f.endswith(".bin")), 0
    for name in names:
        got, want = np.fromfile(os.path.join(folder, name + ".bin"), np.uint8), expected(name, lanes)
        wrong = np.flatnonzero(got != want) if got.shape == want.shape else np.array([-1])
        if len(wrong):
            at = int(wrong[0])
            place = f"thread {at // (RESULTS * 16)}, result {at // 16 % RESULTS}" if at < ALL * RESULTS * 16 else \
                f"cell {(at - ALL * RESULTS * 16) // 8}"
            print(f"{name}: {len(wrong)} bytes differ, the first at {at} ({place}): got {got[at]}, want {want[at]}")
            bad += 1
    print(f"{len(names)} rows, {bad} bad")
    return 1 if bad or not names else 0


if __name__ == "__main__":
    sys.exit(main())
