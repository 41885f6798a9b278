"""std.random against Philox-4x32-10 written out in Python, and the formulas of the language for uniform and normal."""
import os
import sys

import numpy as np
from lib import DEVICES, near, run, ulp

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 2, "conformance"))
from values import philox  # noqa: E402

KERNEL = """
import std.random;
kernel k(const T i[N], u32 w[4, N], u32 b[N], f32 u[N], f32 n[N], u64 seed, const type T, const int B = 64)
    grid(cdiv(N, B))
{
    int at = pid(0) * B;
    auto c = i[at +: B];
    auto (w0, w1, w2, w3) = random.bits4(seed, c);
    w[0, at +: B] = w0;
    w[1, at +: B] = w1;
    w[2, at +: B] = w2;
    w[3, at +: B] = w3;
    b[at +: B] = random.bits(seed, c);
    u[at +: B] = random.uniform(seed, c);
    n[at +: B] = random.normal(seed, c);
}
"""
rng = np.random.default_rng(1)
for device in DEVICES:
    for name, dtype in dict(i32=np.int32, u32=np.uint32, i64=np.int64, u64=np.uint64, i16=np.int16).items():
        info = np.iinfo(dtype)
        i = np.concatenate([np.array([0, 1, info.min, info.max], dtype), rng.integers(info.min, info.max, 200, dtype)])
        for seed in (0, 1, 0x123456789ABCDEF0, 2**64 - 1):
            empty = np.full(i.size, 7, np.uint32)
            w, b, u, n = run(KERNEL, dict(i=i, w=np.tile(empty, (4, 1)), b=empty, u=empty.astype(np.float32),
                                          n=empty.astype(np.float32), seed=seed), "wbun", device, ["--const", "T=" + name])
            want = np.array([philox(seed, int(x) & 0xFFFFFFFFFFFFFFFF) for x in i], np.uint64).T
            near("bits4 " + name, device, w, want, 0)
            near("bits " + name, device, b, want[0], 0)
            near("uniform " + name, device, u, (want[0] >> 8) * 2.0**-24, 0)
            turns = (want[1] >> 8) * 2.0**-24
            radius = np.sqrt(-2 * np.log(((want[0] >> 8) + 1) * 2.0**-24))
            normal = radius * np.cos(2 * np.pi * turns)
            normal[turns % 0.5 == 0.25] = 0
            near("normal " + name, device, n, normal, 4 * ulp(normal) + 1e-15)

# the moments of many, and scalars as counters
MANY = """
import std.random;
kernel k(f32 s[4]) grid(1)
{
    auto x = random.normal(42, iota(65536));
    auto y = random.uniform(42, iota(65536) + ((i64)1 << 40));
    s[0] = sum(x) / 65536;
    s[1] = sum(x * x) / 65536;
    s[2] = sum(y) / 65536;
    s[3] = random.uniform(42, 5);
}
"""
for device in DEVICES:
    (s,) = run(MANY, dict(s=np.zeros(4, np.float32)), "s", device)
    near("moments", device, s[:3], [0, 1, 0.5], [0.02, 0.03, 0.006])
    near("scalar", device, s[3], (philox(42, 5)[0] >> 8) * 2.0**-24, 0)
DROPOUT = """
import std.random;
kernel k(const f32 x[N], f32 y[N]) grid(1) { y[0 +: 1024] = random.dropout(x[0 +: 1024], 0.25, 9, iota(1024)); }
"""
x = rng.normal(0, 1, 1024).astype(np.float32)
keep = np.array([(philox(9, i)[0] >> 8) * 2.0**-24 >= 0.25 for i in range(1024)])
for device in DEVICES:
    (y,) = run(DROPOUT, dict(x=x, y=np.full_like(x, 7)), "y", device)
    near("dropout", device, y, np.where(keep, x / 0.75, 0), np.abs(x) * 1e-6)
print("random: ok")
