"""The clauses of frontend/LANGUAGE.md on views, launches, memory order and atomics, written from what they promise.

Litmus rows wait for programs that start earlier: a device that starts them in another order, or lets a started program
starve,
does not end. Emulated targets check them for races under several schedules.
"""
import math

import numpy as np

from rows import row
from values import Arr, exact, exactly, ints, iota, poison, small, zeros

# ---- the order of programs ------------------------------------------------------------------------------------------
row(
    "lang_message_from_program_0", """
kernel k(const i32 x[N], i32 data[N], i32 flag[1], i32 y[P, N])
    grid(P)
{
    if (pid(0) == 0) {
        data[0 +: 256] = x[0 +: 256] * 3;
        data[255] = -7;
        atomic_store(flag[0], 1, order = release);
    } else {
        while (atomic_load(flag[0], order = acquire) == 0) { }
    }
    y[pid(0), 0 +: 256] = data[255 - iota(256)] + pid(0);
}
""", {"x": iota("i32", 256), "data": poison("i32", 256), "flag": zeros("i32", 1), "y": poison("i32", 9, 256)}, lambda a:
    (lambda d: {"data": exact(d), "y": exact(d[::-1] + np.arange(9)[:, None])})
    (np.concatenate([3 * np.arange(255), [-7]])))

row(
    "lang_chain_in_start_order_of_three_axes", """
kernel k(i32 order[A, B, C], i64 turn[1])
    grid(A, B, C)
{
    i64 mine = (i64)pid(0) + A * (pid(1) + B * pid(2));
    while (atomic_load(turn[0], order = acquire) != mine) { }
    order[pid(0), pid(1), pid(2)] = (i32)atomic_add(turn[0], 1, order = release);
}
""", {"order": poison("i32", 3, 5, 4), "turn": zeros("i64", 1)}, lambda a:
    {"order": exact(np.fromfunction(lambda i, j, k: i + 3 * (j + 5 * k), (3, 5, 4), dtype=int)), "turn": exact([60])})

row(
    "lang_chain_in_start_order_of_a_grouped_grid", """
kernel k(i32 order[M, N], i32 turn[1])
    grid(M, N, group = 3)
{
    int band = pid(0) / 3;
    int height = min(3, M - band * 3);
    int mine = band * 3 * N + pid(1) * height + (pid(0) - band * 3);
    while (atomic_load(turn[0], order = acquire) != mine) { }
    order[pid(0), pid(1)] = mine;
    atomic_store(turn[0], mine + 1, order = release);
}
""", {"order": poison("i32", 7, 4), "turn": zeros("i32", 1)}, lambda a: {
        "order": exact(
            np.array([[i // 3 * 12 + j * min(3, 7 - i // 3 * 3) + i % 3 for j in range(4)]
                      for i in range(7)])), "turn": exact([28])
    })

row("lang_scan_by_looking_back", """
kernel k(const i32 x[N], i32 y[N], i64 total[P], i32 ready[P])
    grid(cdiv(N, 64))
{
    int p = pid(0);
    auto t = x[p * 64 +: 64];
    i64 before = 0;
    if (p > 0) {
        while (atomic_load(ready[p - 1], order = acquire) == 0) { }
        before = total[p - 1];
    }
    total[p] = before + (i64)sum(t);
    atomic_store(ready[p], 1, order = release);
    y[p * 64 +: 64] = cumsum(t, axis = 0) + (i32)before;
}
""", {"x": ints("i32", 1, -50, 90, 777), "y": poison("i32", 777), "total": zeros("i64", 13), "ready": zeros("i32", 13)},
    lambda a: {"y": exact(np.cumsum(a["x"])), "ready": exact(np.ones(13))})

row("lang_lock_by_compare_and_exchange", """
kernel k(i32 lock[1], i32 log_[N], i32 n[1], f32 sums[64])
    grid(N)
{
    while (atomic_cas(lock[0], 0, 1, order = acquire) != 0) { }
    int at = n[0];
    n[0] = at + 1;
    log_[at] = pid(0);
    sums[0 +: 64] += (f32)(pid(0) + iota(64));
    atomic_store(lock[0], 0, order = release);
}
""", {"lock": zeros("i32", 1), "log_": poison("i32", 21), "n": zeros("i32", 1), "sums": zeros("f32", 64)},
    lambda a: {"lock": exact([0]), "n": exact([21]), "sums": exact(210 + 21 * np.arange(64.0))})

row("lang_release_covers_what_was_seen", """
kernel k(i32 a[64], i32 b[64], i32 flag[2], i32 y[64])
    grid(3)
{
    int p = pid(0);
    if (p == 0) {
        a[0 +: 64] = iota(64) + 5;
        atomic_xchg(flag[0], 1, order = release, scope = system);
    } else if (p == 1) {
        while (atomic_add(flag[0], 0, order = acquire) == 0) { }
        b[0 +: 64] = 2 * iota(64);
        atomic_or(flag[1], 4, order = acq_rel);
    } else {
        while (atomic_max(flag[1], 0, order = acquire) != 4) { }
        y[0 +: 64] = a[63 - iota(64)] + b[63 - iota(64)];
    }
}
""", {"a": poison("i32", 64), "b": poison("i32", 64), "flag": zeros("i32", 2), "y": poison("i32", 64)},
    lambda a: {"y": exact(3 * np.arange(64)[::-1] + 5), "flag": exact([1, 4])})

row(
    "lang_counters_without_order", """
kernel k(i32 n[4], u64 m[2], f32 s[2], i32 late[1])
    grid(333)
{
    atomic_add(n[0], 1);
    atomic_add(n[1], 1, scope = device);
    atomic_add(n[2], 1, scope = system, order = acq_rel);
    atomic_max(n[3], pid(0));
    atomic_add(m[0], (u64)1 << 33);
    atomic_xor(m[1], (u64)pid(0));
    atomic_add(s[0], 0.5);
    atomic_min(s[1], (f32)-pid(0));
    i32 mine = atomic_add(late[0], 1, scope = block, mask = pid(0) == 7);
}
""", {"n": zeros("i32", 4), "m": zeros("u64", 2), "s": zeros("f32", 2), "late": zeros("i32", 1)}, lambda a: {
        "n": exact([333, 333, 333, 332]), "m": exact(
            exactly("u64", [333 << 33, int(np.bitwise_xor.reduce(np.arange(333)))]).store), "s": exact([166.5, -332]),
        "late": exact([1])
    })

# ---- atomics, one by one --------------------------------------------------------------------------------------------
row(
    "lang_atomics_give_the_old_value", """
kernel k(i32 a[12], i32 r[12], f32 f[8], f32 g[8], u64 u[4], u64 v[4], i32 t[8], i32 old[8])
    grid(1)
{
    r[0] = atomic_add(a[0], 5);
    r[1] = atomic_min(a[1], -5);
    r[2] = atomic_max(a[2], 100);
    r[3] = atomic_and(a[3], 6);
    r[4] = atomic_or(a[4], 64);
    r[5] = atomic_xor(a[5], 3);
    r[6] = atomic_xchg(a[6], 77);
    r[7] = atomic_cas(a[7], 7, 70);
    r[8] = atomic_cas(a[8], 9, 90);
    r[9] = atomic_load(a[9]);
    atomic_store(a[10], 42);
    r[10] = atomic_add(a[12], 1) + atomic_xchg(a[-1], 3) + atomic_load(a[100]);
    r[11] = atomic_add(a[11], 1, mask = false);
    g[0] = atomic_add(f[0], 0.25);
    g[1] = atomic_min(f[1], nan);
    g[2] = atomic_max(f[2], nan);
    g[3] = atomic_xchg(f[3], -0.0);
    g[4] = atomic_cas(f[4], 0.0, 5.0);
    g[5] = atomic_load(f[5]);
    atomic_store(f[6], inf);
    g[6] = atomic_max(f[7], 3.0);
    v[0] = atomic_max(u[0], 0xFFFF_FFFF_FFFF_FFFF);
    v[1] = atomic_cas(u[1], 1, 2);
    v[2] = atomic_and(u[2], 0);
    v[3] = atomic_add(u[3], 0x8000_0000_0000_0000);
    auto i = iota(8);
    old[0 +: 8] = atomic_add(t[i / 2], 10, mask = i != 3);
}
""", {
        "a": iota("i32", 12), "r": poison("i32", 12), "f": exactly(
            "f32", [1.5, 2, 3, 4, -0.0, 6, 7, math.nan]), "g": zeros("f32", 8), "u": exactly(
                "u64", [5, 1, 2**63, 2**63 + 9]), "v": zeros("u64", 4), "t": zeros("i32", 8), "old": poison("i32", 8)
    }, lambda a: {
        "a": exact([5, -5, 100, 2, 68, 6, 77, 70, 8, 9, 42, 11]), "r": exact([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0]),
        "f": exact(np.array([1.75, 2, 3, -0.0, -0.0, 6, math.inf, 3], np.float32)), "g": exact(
            np.array([1.5, 2, 3, 4, -0.0, 6, math.nan, 0], np.float32)), "u": exact(
                exactly("u64", [2**64 - 1, 2, 0, 9]).store), "v": exact(exactly("u64", [5, 1, 2**63, 2**63 + 9]).store
                                                                        ), "t": exact([20, 10, 20, 20, 0, 0, 0, 0])
    })

row(
    "lang_atomics_on_every_place", """
kernel k(i32 A[R, C], i32 *p, i32 seen[16], const i32 at[Q])
    grid(1)
{
    atomic_add(A[0, 0 +: 8], iota(8));
    atomic_add(A[1 +: 2, 2], 100);
    atomic_add(A[3, 5], 7);
    atomic_add(A[at[0 +: 4], 0 +: 3], 1000);
    atomic_add(A[reshape(at[0 +: 4], 2, 2), 6], 10000);
    atomic_add(sub(A, (1, 1), (2, 2))[0 +: 4, 0 +: 4], 100000);
    atomic_add(p + 3, 1);
    atomic_add(p + iota(8), 10, mask = iota(8) % 2 == 0);
    atomic_add(raw(A) + 39, 5);
    seen[0 +: 16] = atomic_load(A[0, 0 +: 16]);
    atomic_store(A[4, 0 +: 7], iota(7));
}
""", {"A": zeros("i32", 5, 8), "p": zeros("i32", 8), "seen": poison("i32", 16), "at": exactly("i32", [0, 3, 9, -1])},
    lambda a: places())


def places():
    A = np.zeros((5, 8), int)
    A[0] += np.arange(8)
    A[1:3, 2] += 100
    A[3, 5] += 7
    A[[0, 3], :3] += 1000
    A[[0, 3], 6] += 10000
    A[1:3, 1:3] += 100000
    A[4, 7] += 5
    seen = np.concatenate([A[0], np.zeros(8, int)])
    A[4, :7] = np.arange(7)
    p = np.where(np.arange(8) % 2 == 0, 10, 0)
    p[3] += 1
    return {"A": exact(A), "p": exact(p), "seen": exact(seen)}


for t in ("i64", "f32", "f64", "u32"):
    row(f"lang_atomic_load_store_{t}", f"""
kernel k({t} x[N], {t} y[N])
    grid(cdiv(N, 32))
{{
    int i = pid(0) * 32;
    atomic_store(y[i +: 32], atomic_load(x[i +: 32], order = acquire), order = release);
}}
""", {"x": small(t, 1, 70), "y": poison(t, 70)}, lambda a: {"y": exact(a["x"])})

# ---- order within a program -----------------------------------------------------------------------------------------
row("lang_program_order_of_every_shape_of_access", """
kernel k(i32 A[64, 64], i32 y[9, 64], i32 *p)
    grid(1)
    alias(A, p)
{
    A[0 +: 64, 0 +: 64] = col(iota(64)) * 64 + iota(64);
    y[0, 0 +: 64] = A[0 +: 64, 5];
    y[1, 0 +: 64] = load(p + iota(64) * 65);
    A[0 +: 32, 0 +: 64] = trans(A[0 +: 64, 32 +: 32]);
    y[2, 0 +: 64] = A[7, 63 - iota(64)];
    p[70] = -1;
    y[3, 0 +: 64] = A[1, 0 +: 64];
    atomic_add(A[1, 0 +: 64], iota(64));
    y[4, 0 +: 64] = view(raw(A) + 64, (64), (1))[0 +: 64];
    for (int i : range(1, 64)) A[2, i] = A[2, i - 1] + 1;
    y[5, 0 +: 64] = A[2, 0 +: 64];
    for (int i : range(8)) A[3, 0 +: 64] = A[3, 63 - iota(64)] + i;
    y[6, 0 +: 64] = A[3, 0 +: 64];
    A[4, 0 +: 64] = 9;
    unchecked A[4, 10 +: 20] = 8;
    store(A[4, iota(64)], 7, mask = iota(64) % 8 == 0);
    y[7, 0 +: 64] = unchecked A[4, 0 +: 64];
    atomic_store(A[5, 3], 1234);
    y[8, 0 +: 64] = A[5, 0 +: 64] + atomic_load(A[5, 3]);
}
""", {"A": poison("i32", 64, 64), "y": poison("i32", 9, 64), "p": "&A"}, lambda a: ordered())


def ordered():
    A = np.arange(4096).reshape(64, 64)
    y = [A[:, 5].copy(), A.ravel()[np.arange(64) * 65]]
    A[:32] = A[:, 32:].T.copy()
    y.append(A[7, ::-1].copy())
    A[1, 6] = -1
    y.append(A[1].copy())
    A[1] += np.arange(64)
    y.append(A[1].copy())
    for i in range(1, 64):
        A[2, i] = A[2, i - 1] + 1
    y.append(A[2].copy())
    for i in range(8):
        A[3] = A[3, ::-1] + i
    y.append(A[3].copy())
    A[4] = 9
    A[4, 10:30] = 8
    A[4, ::8] = 7
    y.append(A[4].copy())
    A[5, 3] = 1234
    y.append(A[5] + 1234)
    return {"y": exact(np.stack(y)), "A": exact(A)}


# ---- views ----------------------------------------------------------------------------------------------------------
row("lang_parts_of_views", """
f32 all_of(const f32 A[M, N]) { return (f32)(M * 100 + N) * 1000 + sum(A[0 +: 8, 0 +: 8]); }
kernel k(const f32 A[M, N], f32 y[12], i64 e[4], i64 far)
    grid(1)
{
    y[0] = all_of(sub(A, (0, 0), (2, 3)));
    y[1] = all_of(sub(A, (3, 4), (100, 100)));
    y[2] = all_of(sub(A, (-2, -1), (4, 3)));
    y[3] = all_of(sub(A, (5, 0), (1, 2)));
    y[4] = all_of(sub(A, (0, 99), (2, 2)));
    y[5] = all_of(sub(A, (1, 1), (-3, 2)));
    y[6] = all_of(sub(sub(A, (1, 1), (3, 3)), (1, 1), (9, 9)));
    auto S = sub(A, (-1, 2), (3, 2));
    y[7] = S[0, 0] * 10 + S[-1, 0] + S[2, 0] + S[0, 2];
    y[8] = all_of(sub(A, (far, 0), (far, 2)));
    y[9] = all_of(sub(A, (-far, 0), (far, 2)));
    auto R = view(raw(A) + 29, (5, 2), (-6, -1));
    y[10] = R[0, 0] * 1000 + R[1, 1] + R[5, 0] + R[0, 2];
    auto Z = view(raw(A) + 7, (4, 3), (0, 0));
    y[11] = sum(Z[0 +: 8, 0 +: 8]);
}
""", {"A": iota("f32", 5, 6), "y": poison("f32", 12), "e": zeros("i64", 4), "far": 2**40}, lambda a: parts(a["A"]))


def parts(A):
    def told(B):
        return (B.shape[0] * 100 + B.shape[1]) * 1000 + B.sum()

    return {
        "y": exact([
            told(A[:2, :3]),
            told(A[3:, 4:]),
            told(A[:4, :3]),
            told(A[5:, :2]),
            told(A[:2, 6:]),
            told(A[1:1, 1:3]),
            told(A[2:4, 2:4]), 20 + 0 + 14 + 0,
            told(A[5:, :2]),
            told(A[:5, :2]), 29 * 1000 + 22, 84
        ])
    }


row(
    "lang_strides_of_parameters", """
kernel k(const i32 A[M : lda, N : 1], i32 B[N : 1, M : ldb], const i32 C[P : sp, Q : sq, R : sr], i32 D[P, Q, R],
         const i32 E[Z : any, N : any2], i32 s[8])
    grid(1)
{
    B[0 +: 8, 0 +: 4] = trans(A[0 +: 4, 0 +: 8]);
    D[0 +: 2, 0 +: 4, 0 +: 4] = C[0 +: 2, 0 +: 4, 0 +: 4];
    s[0 +: 8] = 0;
    s[0] = lda;
    s[1] = ldb;
    s[2] = sp;
    s[3] = sq;
    s[4] = sr;
    s[5] = E[0, N - 1];
}
""", {
        "A": Arr("i32",
                 np.arange(40, dtype=np.int32).reshape(5, 8)[:3, :6].copy()),
        "B": Arr("i32", np.asfortranarray(np.full((6, 3), -1, np.int32))), "C": Arr(
            "i32", np.asfortranarray(np.arange(24, dtype=np.int32).reshape(2, 3, 4))), "D": poison("i32", 2, 3, 4),
        "E": Arr("i32", np.asfortranarray(np.arange(6, dtype=np.int32).reshape(1, 6))), "s": poison("i32", 8)
    }, lambda a: {"B": exact(a["A"].T), "D": exact(a["C"]), "s": exact([6, 6, 1, 2, 6, 5, 0, 0])})

row(
    "lang_extents_are_unified_and_computed", """
kernel k(const i32 X[N, K / G], const i32 s[N, 4], i32 y[P + 1, 2 * (3)], const i32 *p, i32 z[N], const int G = 4,
         const int K = 12, int P)
    grid(N)
{
    z[pid(0)] = N * 1000 + P * 100 + X[pid(0), 2] + s[pid(0), 3];
    if (pid(0) == 0) y[P, 5] = p[1];
}
""", {
        "X": iota("i32", 5, 3), "s": iota("i32", 5, 4), "y": zeros("i32", 4, 6), "p": iota("i32", 2), "z": poison(
            "i32", 5), "P": 3
    },
    lambda a: {"z": exact(5300 + a["X"][:, 2] + a["s"][:, 3]), "y": exact(np.array([[0] * 6] * 3 + [[0] * 5 + [1]]))})

for chosen in (False, True):
    row(
        f"lang_extents_that_a_constant_chooses_{chosen}".lower(), """
kernel k(const i32 X[TX ? K : M : TX ? 1 : ldx, TX ? M : K : TX ? ldx : 1], i32 y[M, N == 1 ? 4 : K],
         const i32 none[TX ? 0 : K], const bool TX, const int N = 2)
    grid(M)
{
    int m = pid(0);
    static if (TX) {
        y[m, 0 +: 4] = X[0 +: 4, m] + K * 100 + ldx * 1000;
    } else {
        y[m, 0 +: 4] = X[m, 0 +: 4] + K * 100 + ldx * 1000 + none[0 +: 4];
    }
}
""", {
            "X": Arr(
                "i32",
                np.arange(24, dtype=np.int32).reshape(4, 6)[:, :3].copy("F") if chosen else np.arange(
                    24, dtype=np.int32).reshape(6, 4)[:3]), "y": poison("i32", 3, 4), "none": Arr(
                        "i32", np.zeros(0 if chosen else 4, np.int32))
        }, lambda a, chosen=chosen: {"y": exact((a["X"].T if chosen else a["X"]) + 400 + 4000)},
        consts={"TX": str(chosen).lower()})

row("lang_bounds_and_addresses_in_64_bits", """
kernel k(const i32 *p, i32 y[16], i64 big, int near)
    grid(1)
{
    auto V = view(p, (big, 4), (-4, 1));
    y[0] = V[0, 3] + V[-1, 0] + V[big, 0] + V[big + 1, 0];
    auto W = view(p + 4, (2, big), (8, 1));
    y[1 +: 4] = W[1, -2 +: 4];
    y[5] = W[0, 0] + (in(W[0, big - 1]) ? 1 : 0) + (in(W[0, big]) ? 1 : 0);
    y[6] = sum(in(W[1, big - 3 +: 8]));
    y[7] = cdiv(near, 2) == 1073741824 ? 1 : 0;
    y[8] = cdiv(near, near) + cdiv(near, 1) / 2147483647;
    auto U = view(p, (near, 1), (1, 7));
    y[9] = sum(in(U[near - 4 +: 8, 0]));
    y[10] = sum(in(U[near +: 8, 0])) + sum(U[near +: 8, 0]);
    int trips = 0;
    for (int i : range(near - 10, near, 4)) trips++;
    for (i64 i : range(big - 5, big + 5, 5)) trips += 10;
    y[11] = trips;
    i16 small_ = 3;
    u8 tiny = 2;
    u64 huge = 18446744073709551615;
    y[12] = p[small_] * 10 + p[tiny] + view(p, (8), (1))[huge];
    y[13] = view(p, (8), (1))[tiny] + sub(view(p, (8), (1)), (tiny), (small_))[0];
    y[14] = (i32)sum(view(p, (8), (1))[(tile<u64, 2>)huge]);
    y[15] = sum(view(p, (8), (1))[cast(iota(4), i8) - 2]);
}
""", {"p": iota("i32", 16), "y": poison("i32", 16), "big": 2**40, "near": 2**31 - 1},
    lambda a: {"y": exact([3, 0, 0, 12, 13, 4 + 1, 3, 1, 2, 4, 0, 3 + 20, 32, 4, 0, 1])})

row("lang_steps_and_dropped_axes", """
kernel k(const i32 A[M, N], i32 y[6, 8], i32 B[L], int at)
    grid(1)
{
    y[0, 0 +: 8] = A[at, 1 +: 8 : 3];
    y[1, 0 +: 4] = A[0 +: 4 : 2, at];
    y[2, 0] = A[at, at + 1];
    y[3, 0 +: 8] = reshape(A[1 +: 2 : 2, 0 +: 4 : 5], 8);
    B[-4 +: 8 : 4] = iota(8);
    B[1 +: 3 : 7] += 100;
    y[4, 0 +: 8] = B[0 +: 8];
    y[5, 0 +: 8] = load(A[at, 15 +: 8 : 2], pad = -1);
}
""",
    {"A": iota("i32", 6, 20), "y": zeros("i32", 6, 8), "B": zeros("i32", 18), "at": 2}, lambda a: stepped(a["A"]))


def stepped(A):
    y, B = np.zeros((6, 8), int), np.zeros(18, int)
    y[0] = [A[2, c] if c < 20 else 0 for c in range(1, 25, 3)]
    y[1, :4] = [A[r, 2] if r < 6 else 0 for r in (0, 2, 4, 6)]
    y[2, 0] = A[2, 3]
    y[3] = A[[1, 3]][:, [0, 5, 10, 15]].ravel()
    for i, at in enumerate(range(-4, 28, 4)):
        if 0 <= at < 18:
            B[at] = i
    B[[1, 8, 15]] += 100
    y[4] = B[:8]
    y[5] = [A[2, c] if c < 20 else -1 for c in range(15, 31, 2)]
    return {"y": exact(y), "B": exact(B)}


row(
    "lang_load_store_with_everything", """
kernel k(const f32 A[M, N], f32 y[8, 8], f32 *p, const i32 at[Q])
    grid(1)
{
    y[0, 0 +: 8] = load(A[1, 2 +: 8], pad = 5, cache = stream, evict = first);
    y[1, 0 +: 4] = load(A[at[0 +: 4], 1], pad = inf);
    y[2, 0 +: 8] = load(A[1, 2 +: 8], mask = iota(8) % 2 == 0, pad = -1);
    y[3, 0 +: 8] = load(p + iota(8), mask = iota(8) < 3, other = 9);
    y[4, 0 +: 8] = load(p + iota(8), mask = iota(8) < 3);
    store(y[5, 0 +: 8], 2, mask = iota(8) > 3, cache = stream);
    store(y[5, at[0 +: 4]], 3);
    store(p + 3 + iota(8), (f32)iota(8) * 0.5, mask = iota(8) == 2);
    store(p, 11);
    p[1] = 12;
    p[1] += 1;
    y[6, 0] = load(p + 5, mask = false, other = 4) + load(p + 1);
    y[6, 1] = load(A[0, -1], pad = 8) + load(A[0, 1], pad = 8);
    y[7, 0 +: 8] = unchecked A[0, 0 +: 8];
}
""", {"A": iota("f32", 3, 8), "y": zeros("f32", 8, 8), "p": iota("f32", 8), "at": exactly("i32", [2, -1, 7, 0])},
    lambda a: loads(a["A"]))


def loads(A):
    y = np.zeros((8, 8))
    y[0] = [*A[1, 2:], 5, 5]
    y[1, :4] = [A[2, 1], np.inf, np.inf, A[0, 1]]
    y[2] = [A[1, 2], -1, A[1, 4], -1, A[1, 6], -1, -1, -1]
    y[3] = [0, 1, 2, 9, 9, 9, 9, 9]
    y[4] = [0, 1, 2, 0, 0, 0, 0, 0]
    y[5] = [3, 0, 3, 0, 2, 2, 2, 3]
    y[6, :2] = [4 + 13, 8 + 1]
    y[7] = A[0]
    return {"y": exact(y), "p": exact([11, 13, 2, 3, 4, 1, 6, 7])}


# ---- the grid -------------------------------------------------------------------------------------------------------
row(
    "lang_axes_that_the_grid_lacks", """
kernel k(i32 y[P, 13])
    grid(P)
{
    int p = pid(0);
    y[p, 0] = pid(0); y[p, 1] = pid(1); y[p, 2] = pid(2); y[p, 3] = pid(3); y[p, 4] = pid(4); y[p, 5] = pid(5);
    y[p, 6] = npid(0); y[p, 7] = npid(1); y[p, 8] = npid(2); y[p, 9] = npid(3); y[p, 10] = npid(4); y[p, 11] = npid(5);
    y[p, 12] = bitcast(pid(0), i32);
}
""", {"y": poison("i32", 3, 13)},
    lambda a: {"y": exact(np.array([[p, 0, 0, 0, 0, 0, 3, 1, 1, 1, 1, 1, p] for p in range(3)]))})

row("lang_grid_of_no_programs", """
kernel k(const f32 x[N], f32 y[4])
    grid(cdiv(N, 8), 3, N)
{
    y[0] = 1;
}
""", {"x": zeros("f32", 0), "y": Arr("f32", np.full(4, 7, np.float32))}, lambda a: {"y": exact([7] * 4)})

row("lang_grid_expressions", """
const int PER = 4;
kernel k(i32 y[M, N, 6], int n, f32 unused, const int B = 8, const bool WIDE = true)
    grid(WIDE ? cdiv(M * B, B) : 0, max(n - 2, min(N, 1)), PER > 3 && N > 0 ? 6 : 1)
    require(M > 0 && n == N + 2)
    assume(n < 100)
    require(unused > 1.5)
    key(M, N)
    warps(2)
    stages(2)
    maxreg(128)
    cluster(1)
{
    y[pid(0), pid(1), pid(2)] = npid(0) * 10000 + npid(1) * 100 + npid(2);
}
""", {"y": poison("i32", 3, 2, 6), "n": 4, "unused": 1.75}, lambda a: {"y": exact(np.full((3, 2, 6), 30206))})

row(
    "lang_persistent_grid", """
kernel k(const f32 x[N], f32 y[N], i32 programs[1])
    grid(min(cdiv(N, 64), device.sms * 2))
{
    for (int t : range(pid(0), cdiv(N, 64), npid(0))) y[t * 64 +: 64] = x[t * 64 +: 64] * 2;
    if (pid(0) == 0) programs[0] = npid(0) > 0 && npid(0) <= cdiv(N, 64) ? 1 : 0;
}
""", {"x": small("f32", 1, 5000), "y": poison("f32", 5000), "programs": zeros("i32", 1)},
    lambda a: {"y": exact(2 * a["x"]), "programs": exact([1])})

for group in (0, 1, 2, 5, 100):
    row(
        f"lang_persistent_clause_{group}", f"""
kernel k(i32 y[M, N, P], i32 sum[1])
    grid(M, N, P{f', group = {group}' if group else ''}) persistent(1)
{{
    y[pid(0), pid(1), pid(2)] = pid(0) + 100 * pid(1) + 10000 * pid(2) + 1000000 * npid(1);
    if (pid(0) % 2 == 0)
        atomic_add(sum[0], 1);
}}
""", {"y": poison("i32", 7, 4, 3), "sum": zeros("i32", 1)}, lambda a: {
            "y": exact(np.arange(7)[:, None, None] + 100 * np.arange(4)[:, None] + 10000 * np.arange(3) + 4000000),
            "sum": exact([4 * 4 * 3])
        })

for group in (1, 2, 5, 100):
    row(
        f"lang_grouped_grid_{group}", f"""
kernel k(i32 y[M, N, P])
    grid(M, N, P, group = {group})
{{
    atomic_add(y[pid(0), pid(1), pid(2)], pid(0) + 100 * pid(1) + 10000 * pid(2) + npid(0) * 1000000 + 1);
}}
""", {"y": zeros("i32", 7, 3, 2)}, lambda a:
        {"y": exact(np.fromfunction(lambda i, j, k: i + 100 * j + 10000 * k + 7000001, (7, 3, 2), dtype=int))})

row(
    "lang_variant_by_the_constant_given", """
auto twice(auto x) { return x + x; }
kernel k(const T x[N], T y[N], i32 which[2], const int B, const bool NEG = false, const fn f = identity,
         const type T = f32)
    grid(cdiv(N, B))
    require(B >= 16)
    instantiate(B = 8; B = 32, NEG = true; B = 32, f = twice; B = 16, NEG = true)
{
    auto v = f(x[pid(0) * B +: B]);
    y[pid(0) * B +: B] = NEG ? -v : v;
    if (pid(0) == 0) {
        which[0] = B;
        which[1] = NEG ? 1 : 0;
    }
}
""", {"x": small("f32", 1, 40), "y": poison("f32", 40), "which": zeros("i32", 2)},
    lambda a: {"y": exact(2 * a["x"]), "which": exact([32, 0])}, consts={"NEG": "false"})

row("lang_tune_changes_nothing", """
kernel k(const f32 x[N], f32 y[N], int n, const int B = 16, const bool TWICE = false, const type T = f64)
    grid(cdiv(N, B))
    key(N, n)
    tune(B in {16, 32, 64,}, warps in {2, 4}, stages in {1, 2}; where B * warps <= 128 && stages < 3)
    tune(TWICE in {false}, T in {f64, f32}, cluster in {1}, maxreg in {64, 128}; where maxreg > B)
{
    y[pid(0) * B +: B] = (f32)cast(x[pid(0) * B +: B], T) + (f32)n;
}
""", {"x": small("f32", 1, 100), "y": poison("f32", 100), "n": 3}, lambda a: {"y": exact(a["x"] + 3)})

for hint in ("", "pipeline", "pipeline(4) unroll(2)"):
    row(
        f"lang_alias_in_a_loop_{hint or 'plain'}".replace("(", "").replace(") ", "_").replace(")", ""), f"""
kernel k(const f32 x[N], f32 y[N], f32 *p, const f32 z[N])
    grid(1)
    alias(x, y, p)
{{
    for (int i : range(0, N - 16, 16)) {hint}
        y[i + 16 +: 16] = x[i +: 16] + 1;
    for (int i : range(0, N, 16)) {hint} {{
        auto before = x[0 +: 16];
        store(p + iota(16), before + z[i +: 16]);
        y[i +: 16] = y[i +: 16] + x[0 +: 16];
    }}
    f32 s = 0;
    for (int i : range(1, 20)) {hint} {{
        s += x[i - 1];
        y[i] = s;
    }}
}}
""", {"y": exactly("f32", [float(i % 16) for i in range(128)]), "x": "&y", "p": "&y", "z": small("f32", 3, 128)},
        lambda a: aliased(a))


def aliased(a):
    y = a["y"].astype(np.float64)
    for i in range(0, 112, 16):
        y[i + 16:i + 32] = y[i:i + 16] + 1
    for i in range(0, 128, 16):
        y[:16] = y[:16] + a["z"][i:i + 16]
        y[i:i + 16] = y[i:i + 16] + y[:16]
    s = np.float32(0)
    for i in range(1, 20):
        s = np.float32(s + y[i - 1])
        y[i] = s
    return {"y": exact(y)}


row("lang_loads_are_not_kept_over_stores_and_atomics", """
kernel k(i32 x[N], i32 y[8], i32 flag[2])
    grid(1)
{
    int first = x[3];
    x[3] = first + 1;
    y[0] = x[3];
    auto V = x;
    int n = 0;
    for (int i : range(5)) {
        n += V[7];
        sub(x, (7), (1))[0] = n;
        V[7] = V[7] + 1;
    }
    y[1] = n;
    atomic_add(x[0], 5, order = acq_rel);
    y[2] = x[0];
    view(raw(x), (2, 2), (1, 4))[1, 1] = 44;
    y[3] = x[5];
    if (n > 0) x[2 +: 4] = 9;
    y[4] = sum(x[0 +: 8]);
    while (x[2] > 0) x[2] -= 4;
    y[5] = x[2];
    x[x[1]] = x[x[1] + 1] + 100;
    y[6] = x[1];
    y[7] = atomic_xchg(x[1], 3) + x[1];
}
""", {"x": exactly("i32", [1, 1, 2, 3, 4, 5, 6, 7]), "y": zeros("i32", 8), "flag": zeros("i32", 2)}, lambda a: kept())


def kept():
    x, y = [1, 1, 2, 3, 4, 5, 6, 7], [0] * 8
    x[3] += 1
    y[0] = x[3]
    n = 0
    for _ in range(5):
        n += x[7]
        x[7] = n
        x[7] += 1
    y[1] = n
    x[0] += 5
    y[2] = x[0]
    x[5] = 44
    y[3] = x[5]
    x[2:6] = [9] * 4
    y[4] = sum(x)
    while x[2] > 0:
        x[2] -= 4
    y[5] = x[2]
    x[x[1]] = x[x[1] + 1] + 100
    y[6] = x[1]
    y[7] = x[1] + 3
    x[1] = 3
    return {"y": exact(y), "x": exact(x)}
