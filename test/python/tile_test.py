"""The Python package `tile` against NumPy: arguments, errors, streams, memory.

    tile_test.py [-v] [NAME...]      with the package on PYTHONPATH and the library in TILE_LIBRARY
"""
import ast
import copy
import gc
import inspect
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
import weakref
from collections import namedtuple
from ctypes import addressof

import numpy as np

import tile
from tile import native

SCALE = """
/// x *= a.
/// In place.
kernel scale(f32 x[R : s, C : t], f32 a, i32 rows, const int B = 64)
    grid(rows)
    require(C <= B)
{
    x[pid(0), 0 +: B] = a * x[pid(0), 0 +: B];
}
"""
COPY = "kernel copy(const T x[N], T y[N], const type T) grid(1) require(N <= 64) { y[0 +: 64] = x[0 +: 64]; }"
FILL = "kernel fill(T y[N], T a, const type T) grid(1) require(N <= 16) { y[0 +: 16] = a; }"


class Capsule:
    """An object with DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Arrays(unittest.TestCase):
    def test_no_copies(self):
        """The kernel's writes are in the very array, whatever hands it over, and what a View or a DLPack object names is its address."""
        scale = tile.kernel(SCALE)
        for wrap in (lambda a: a, Capsule, lambda a: tile.view(a, "f32")):
            x = np.arange(12, dtype=np.float32).reshape(3, 4)
            before = x.ctypes.data
            scale(wrap(x), 2.0, 3)
            self.assertEqual(x.ctypes.data, before)
            self.assertTrue((x == 2 * np.arange(12).reshape(3, 4)).all())

    def test_address(self):
        """What reaches the library is the array's own address."""
        from tile import arrays
        x = np.zeros((4, 6), np.float32)
        for value, address in ((x, x.ctypes.data), (x[1:, 2:], x.ctypes.data + 32), (Capsule(x), x.ctypes.data),
                               (Capsule(x[1:, 2:]), x.ctypes.data + 32), (tile.view(x, "f32"), x.ctypes.data)):
            self.assertEqual(arrays.memory_of(value).address, address)
        self.assertEqual(tuple(arrays.memory_of(Capsule(x[::2, ::3])).strides), (12, 3))

    def test_strides(self):
        x = np.arange(60, dtype=np.float32).reshape(6, 10)
        expected = x.copy()
        expected[::2, 1::3] *= 3
        tile.kernel(SCALE)(x[::2, 1::3], 3, 3)
        self.assertTrue((x == expected).all())
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        tile.kernel(SCALE)(x.T, 3, 4)
        self.assertTrue((x == 3 * np.arange(12).reshape(3, 4)).all())

    def test_types(self):
        for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool".split():
            dtype = tile.arrays.NUMPY.get(name, {"uint8": "u8", "uint16": "u16"}.get(name))
            copy = tile.kernel(COPY, T=dtype)
            x = (np.arange(50) % 7).astype(name)
            y = np.zeros_like(x)
            copy(x, y)
            self.assertTrue((x == y).all(), name)
        self.assertEqual(tile.kernel(COPY, T=np.dtype("int16")).consts, {"T": "i16"})
        for given, named in ((np.float16, "f16"), ("float64", "f64"), (np.dtype("uint8"), "u8"), ("uint16", "u16"), ("bf16", "bf16")):
            self.assertEqual(tile.kernel(COPY, T=given).consts, {"T": named})

    def test_words_and_bytes(self):
        half = tile.kernel("kernel half(bf16 x[N]) grid(1) require(N <= 16) { x[0 +: 16] = (bf16)((f32)x[0 +: 16] * 0.5); }")
        x = np.full(16, 0x4040, np.uint16)
        half(x)
        half(tile.view(x, "bf16"))
        self.assertTrue((x == 0x3F40).all())
        with self.assertRaisesRegex(tile.ArgumentError, "expects elements of type bf16, got f16"):
            half(tile.view(x, "f16"))
        with self.assertRaisesRegex(tile.ArgumentError, "elements of 16 bits cannot be viewed as f8e4m3"):
            half(tile.view(x, "f8e4m3"))
        with self.assertRaisesRegex(tile.ArgumentError, "unknown element type 'half'"):
            tile.view(x, "half")

    def test_packed(self):
        unpack = tile.kernel("kernel unpack(const i4 x[R, C], i32 y[R, C]) grid(R) require(C <= 8) { y[pid(0), 0 +: 8] = (i32)x[pid(0), 0 +: 8]; }")
        x = np.array([[0x21, 0xF3, 0x80], [0x10, 0x32, 0x04]], np.uint8)
        y = np.zeros((2, 6), np.int32)
        unpack(x, y)
        self.assertEqual(y.tolist(), [[1, 2, 3, -1, 0, -8], [0, 1, 2, 3, 4, 0]])
        y = np.zeros((2, 5), np.int32)
        unpack(tile.view(x, "i4", (2, 5)), y)
        self.assertEqual(y.tolist(), [[1, 2, 3, -1, 0], [0, 1, 2, 3, 4]])
        with self.assertRaisesRegex(tile.ArgumentError, r"\(2, 7\) packed elements do not lie in \(2, 3\) bytes"):
            unpack(tile.view(x, "i4", (2, 7)), y)

    def test_pointers(self):
        k = tile.kernel("kernel k(f32 *p, i32 n) grid(n) { p[pid(0)] = 7; }")
        x = np.zeros((2, 3), np.float32)
        k(x, 6)
        self.assertTrue((x == 7).all())
        k(x.ctypes.data, 1)
        with self.assertRaisesRegex(tile.ArgumentError, "'p': an array for a pointer must be contiguous"):
            k(x[:, :2], 1)

    def test_library(self):
        """A module of the library in place of a path; a kernel of it that takes tables of addresses."""
        gen, sizes = np.random.default_rng(1), [(33, 20, 40), (5, 70, 9), (0, 4, 4), (1, 1, 0)]
        a, b = ([gen.integers(-3, 4, (m, k) if first else (k, n)).astype(np.float32) for m, n, k in sizes] for first in (True, False))
        c = [np.full((m, n), np.nan, np.float32) for m, n, _ in sizes]
        table = lambda arrays: np.array([x.ctypes.data for x in arrays], np.uint64)
        products = tile.kernel("std.kernels.gemm", "gemm_pointers", T="f32", BM=32, BN=16, BK=16)
        products(table(a), table(b), table(c), np.array(sizes, np.int32), np.array([(k, n, n) for _, n, k in sizes], np.int32))
        for x, y, z in zip(a, b, c):
            self.assertTrue((z == x @ y).all())
        with self.assertRaises(OSError):
            tile.kernel("std.kernels.gem", "gemm")

    def test_library_muon(self):
        """A step of Muon, as the host composes it, against the same in f64: what it steps by is near to orthogonal."""
        gen, shapes = np.random.default_rng(3), [(24, 40), (40, 24)]
        w, g = ([gen.standard_normal(s).astype(np.float32) for s in shapes] for _ in range(2))
        b, x = ([np.zeros(s, np.float32) for s in shapes] for _ in range(2))
        table = lambda arrays: np.array([y.ctypes.data for y in arrays], np.uint64)
        length, part, none = np.array([y.size for y in w]), np.zeros((2, 3), np.float32), np.zeros(0, np.float32)
        own = lambda name, **consts: tile.kernel("std.kernels.optimizers", name, X="f32", **consts)
        own("muon_momentum")(table(g), table(b), table(x), length, part, none, 1.0, 0.9)
        own("muon_normalise")(table(x), length, part)
        want = [1.9 * y.astype(float) / np.linalg.norm(1.9 * y.astype(float)) for y in g]
        for i, (rows, cols) in enumerate(shapes):
            right, k = rows > cols, min(rows, cols)
            square = tile.kernel("std.kernels.gemm", "gemm", T="f32", TA=right, TB=not right)
            half = [tile.kernel("std.kernels.optimizers", "newton_schulz", T="f32", RIGHT=r) for r in (False, right)]
            A, B, y = np.zeros((k, k), np.float32), np.zeros((k, k), np.float32), np.zeros(shapes[i], np.float32)
            for _ in range(5):
                square(x[i], x[i], A)
                half[0](A, A, B, 2.0315, -4.775)
                half[1](B, x[i], y, 1.0, 3.4445)
                x[i][:] = y
                v = want[i].T if right else want[i]
                v = 3.4445 * v + (-4.775 * v @ v.T + 2.0315 * v @ v.T @ v @ v.T) @ v
                want[i] = v.T if right else v
            self.assertTrue(np.allclose(x[i], want[i], atol=1e-4))
            spread = np.linalg.svd(x[i], compute_uv=False)
            self.assertTrue(0.6 < spread.min() and spread.max() < 1.25, spread)
        scale, before = np.array([1.0, (40 / 24) ** 0.5], np.float32), [y.copy() for y in w]
        own("muon_apply")(table(w), table(x), np.zeros(0, np.uint64), length, scale, none, 0.1, 0.5, 0)
        for i in range(2):
            self.assertTrue(np.allclose(w[i], before[i] - 0.1 * (scale[i] * want[i] + 0.5 * before[i]), atol=1e-4))

    def test_library_strides(self):
        """Attention over heads within rows, [B, M, H, D], without a copy."""
        gen = np.random.default_rng(2)
        q, k, v = (gen.standard_normal((2, n, h, 16)).astype(np.float32) for n, h in ((21, 4), (33, 2), (33, 2)))
        o, lse, none = np.zeros_like(q), np.zeros((2, 4, 21), np.float32), np.zeros(0, np.float32)
        by_head = lambda x: x.transpose(0, 2, 1, 3)
        attention = tile.kernel("std.kernels.attention", "attention", T="f32", **{"t.D": 16, "t.BM": 16, "t.BN": 16})
        attention(by_head(q), by_head(k), by_head(v), by_head(o), lse, none, none, {"scale": 0.25})
        s = by_head(q) @ np.repeat(by_head(k), 2, 1).transpose(0, 1, 3, 2) * 0.25
        p = np.exp(s - s.max(-1, keepdims=True))
        want = p @ np.repeat(by_head(v), 2, 1) / p.sum(-1, keepdims=True)
        self.assertTrue(np.allclose(by_head(o), want, atol=1e-5))

    def test_library_sort(self):
        """Whole arrays by launches of std.kernels.sort, as its recipe has them; the order is NumPy's stable one."""
        gen, block = np.random.default_rng(3), 256
        for dtype, name, down in ((np.uint32, "u32", False), (np.float32, "f32", True), (np.int64, "i64", True), (np.float16, "f16", False), (np.uint8, "u8", False)):
            for n in (0, 1, 5000):
                x = gen.integers(-9 if name[0] in "if" else 0, 10, n).astype(dtype)
                if name[0] == "f":
                    x = np.where(gen.random(n) < 0.1, np.nan, x * gen.random(n).round()).astype(dtype)
                else:
                    x[::3] = gen.integers(0, np.iinfo(dtype).max, len(x[::3]), dtype)
                v, size, parts = np.arange(n, dtype=np.uint32), x.itemsize, -(-n // block)
                order = sorted(range(n), key=lambda i: (x[i] != x[i], 0 if x[i] != x[i] else -x[i].item() if down else x[i].item()))
                y, w, count, state = np.empty_like(x), np.empty_like(v), np.zeros((size, 256), np.uint32), np.zeros((size + 1, parts, 256), np.uint32)
                given = x.copy()
                tile.kernel("std.kernels.sort", "radix_count", T=name, DOWN=down, B=block)(x, count)
                one_pass = tile.kernel("std.kernels.sort", "radix_pass", T=name, V="u32", PAIRS=True, DOWN=down, B=block)
                for d in range(size):
                    one_pass(x, v, count, y, w, state, d)
                    x, y, v, w = y, x, w, v
                self.assertEqual(v.tolist(), order)
                self.assertEqual(x.tobytes(), given[order].tobytes())

    def test_empty(self):
        tile.kernel(SCALE)(np.zeros((0, 4), np.float32), 1, 0)

    def test_refused(self):
        scale = tile.kernel(SCALE)
        x = np.zeros((3, 4), np.float32)
        for bad, error, text in (
                (x.astype(np.float64), tile.ArgumentError, "'x' expects elements of type f32, got f64"),
                (x[0], tile.ArgumentError, "'x' expects a view of 2 axes, got 1"),
                (x.astype(">f4"), TypeError, "'x': .*other byte order"),
                (x.astype(complex), TypeError, "'x': no element type of kernels is NumPy's <c16"),
                (np.zeros((3, 4), object), TypeError, "'x': no element type"),
                ([[1.0]], TypeError, "'x': expected an array of f32, got list: make one, numpy.array"),
                (None, TypeError, "'x': expected an array of f32, got NoneType"),
                (np.broadcast_to(x[0], (3, 4)), tile.ArgumentError, "'x': the kernel writes to it, and the array is read-only"),
                (np.zeros((3, 4), [("a", "f4"), ("b", "i1")])["a"], tile.ArgumentError, "'x': the strides .* are not whole elements"),
                (np.zeros((1,) * 9, np.float32), tile.ArgumentError, "'x': an array of 9 axes")):
            with self.assertRaisesRegex(error, text):
                scale(bad, 1.0, 3)

    def test_array_protocols(self):
        """What NumPy sees of an array of the host's memory is that memory; it lives as long as one of them."""
        numbers = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        a = tile.upload(numbers)
        self.assertEqual((len(a), a.size, a.nbytes, a.ndim, a.element), (2, 24, 96, 3, "f32"))
        for seen in (np.asarray(a), np.from_dlpack(a)):
            self.assertEqual(seen.ctypes.data, a.address)
            self.assertTrue(np.array_equal(seen, numbers))
        self.assertNotEqual(np.array(a, copy=True).ctypes.data, a.address)
        self.assertEqual(np.asarray(a, np.int32).dtype, np.int32)
        self.assertEqual(sum(part.download().sum() for part in a), numbers.sum())
        self.assertEqual(a[1, 2, 3].item(), 23)
        self.assertIn("f32 [2, 3, 4] on", repr(a))
        self.assertNotIn("\n", repr(tile.empty(2000, "f32")))
        self.assertEqual(np.asarray(tile.empty((0, 3), "f32")).shape, (0, 3))
        alive, seen, capsule = weakref.ref(a), np.from_dlpack(a), a.__dlpack__()
        del a
        self.assertIsNotNone(alive())
        self.assertTrue(np.array_equal(seen, numbers))
        del seen, capsule
        gc.collect()
        self.assertIsNone(alive())

    def test_array_indices(self):
        numbers = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
        a = tile.upload(numbers)
        for index in (0, -1, slice(1, None), (slice(None), 2), (Ellipsis, 1), (1, Ellipsis, slice(None, None, 2)), (slice(None, None, -1), 1, 2),
                      (slice(3, 3),), (2, 3, 4), (slice(1, 3), slice(None, None, 3), slice(4, 0, -2)), Ellipsis):
            expected = numbers[index]
            self.assertEqual(a[index].shape, expected.shape, index)
            self.assertTrue(np.array_equal(a[index].download(), expected), index)
            self.assertTrue(np.array_equal(np.asarray(a[index]), expected), index)
        a[1].upload(np.zeros((4, 5), np.int32))
        numbers[1] = 0
        self.assertTrue(np.array_equal(a[1:][0:1].download(), numbers[1:2]))
        f = tile.upload(np.arange(12, dtype=np.float32).reshape(3, 4))
        tile.kernel(SCALE)(f[::2, 1:], 2, 2)
        self.assertEqual(f.download().tolist(), [[0, 2, 4, 6], [4, 5, 6, 7], [8, 18, 20, 22]])
        for index, kind in ((3, IndexError), ((0, 0, 0, 0), IndexError), ((Ellipsis, Ellipsis), IndexError), (1.5, TypeError), ([0, 1], TypeError)):
            with self.assertRaises(kind):
                a[index]
        with self.assertRaisesRegex(tile.ArgumentError, "side by side"):
            a[:, 0].upload(np.zeros((3, 5), np.int32))

    def test_array_types(self):
        """The language's names, NumPy's types, and those of ml_dtypes where it is installed."""
        for dtype, element, size in (("f32", "f32", 4), ("bf16", "bf16", 2), ("f8e4m3", "f8e4m3", 1), (np.float16, "f16", 2), ("int8", "i8", 1),
                                     ("u8", "u8", 1), ("bool", "bool", 1), (np.uint16, "u16", 2), (">f4", ">f4", 4)):
            a = tile.empty((2, 3), dtype)
            self.assertEqual((a.element, a.dtype.itemsize), (element, size))
        x, y = tile.empty(4, "bf16"), tile.empty(4, "bf16")
        tile.kernel(FILL, T="bf16")(x, 1.5)
        tile.kernel(COPY, T="bf16")(x, y)
        self.assertEqual(y.download().view(np.uint16).tolist(), 4 * [0x3FC0])
        with self.assertRaisesRegex(tile.ArgumentError, "expects elements of type bf16, got f16"):
            tile.kernel(COPY, T="bf16")(x, tile.empty(4, "f16"))
        with self.assertRaisesRegex(tile.ArgumentError, "two elements of i4 are in a byte"):
            tile.empty(4, "i4")

    def test_array_html(self):
        html = tile.upload(np.arange(6, dtype=np.int32).reshape(2, 3))._repr_html_()
        self.assertTrue(html.startswith("<table><caption>tile.Array i32 [2, 3] on"))
        self.assertIn("<tr><td>3</td><td>4</td><td>5</td></tr></table>", html)
        self.assertIn("(the first rows and columns)", tile.empty((100, 100), "f32")._repr_html_())
        self.assertTrue(tile.empty((2, 2, 2), "f32")._repr_html_().startswith("<pre>&lt;tile.Array"))

    def test_device_arrays(self):
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        for device in ("cpu", "ref", "emu:sm_80"):
            there = tile.upload(x, device)
            tile.kernel(SCALE, device=device)(there, 2, 3)
            self.assertTrue((there.download() == 2 * x).all())
        with self.assertRaisesRegex(tile.ArgumentError, r"expected an array of float32 \(3, 4\), got float64 \(3, 4\)"):
            there.upload(x.astype(np.float64))


class Scalars(unittest.TestCase):
    def fill(self, dtype, value, as_type):
        y = np.zeros(16, as_type)
        tile.kernel(FILL, T=dtype)(y, value)
        return y[0]

    def test_values(self):
        self.assertEqual(self.fill("i8", -128, np.int8), -128)
        self.assertEqual(self.fill("u64", 2**64 - 1, np.uint64), 2**64 - 1)
        self.assertEqual(self.fill("f32", np.float64(0.1), np.float32), np.float32(0.1))
        self.assertEqual(self.fill("f16", 1e9, np.float16), np.inf)
        self.assertEqual(self.fill("bool", True, np.bool_), True)
        self.assertEqual(self.fill("i32", np.int64(5), np.int32), 5)
        # 1 + 2^-8 is half way between two bf16: to even; a NaN stays one
        for value, bits in ((1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82), (float("nan"), 0x7FC0), (-2.0, 0xC000)):
            self.assertEqual(self.fill("bf16", value, np.uint16), bits)

    def test_refused(self):
        for dtype, value, error in (("i8", 128, OverflowError), ("u32", -1, OverflowError), ("i32", 1.5, TypeError), ("f32", "1", TypeError),
                                    ("i32", True, TypeError), ("bool", 2, TypeError), ("f32", None, TypeError)):
            with self.assertRaisesRegex(error, "parameter 'a'"):
                self.fill(dtype, value, np.int8)


class Kernels(unittest.TestCase):
    def test_signature(self):
        scale = tile.kernel(SCALE)
        self.assertEqual(list(inspect.signature(scale).parameters), ["x", "a", "rows"])
        self.assertEqual(inspect.signature(scale).parameters["x"].annotation, "f32[R : s, C : t]")
        self.assertIn("x *= a.\nIn place.\n", scale.__doc__)
        self.assertIn("B : i32 = 64", scale.__doc__)
        self.assertEqual(scale.__name__, "scale")

    def test_copies(self):
        """A module of a network that has a kernel is copied."""
        scale = tile.kernel(SCALE)
        self.assertIs(copy.deepcopy({"k": [scale]})["k"][0], scale)
        self.assertIs(copy.copy(scale), scale)
        with self.assertRaisesRegex(TypeError, "kernel 'scale' cannot be pickled: make it where it is used"):
            pickle.dumps(scale)

    def test_advice(self):
        """What may be done about an argument, in Python's words."""
        x = np.zeros((4, 8), np.float32)
        rows = tile.kernel("kernel rows(const f32 x[R, C], f32 y[R, C]) grid(R) require(C <= 8) { y[pid(0), 0 +: 8] = x[pid(0), 0 +: 8]; }")
        with self.assertRaisesRegex(tile.ArgumentError, r"'x': stride \(axis 1\) must be 1.*; or give a copy, x.contiguous\(\) or numpy"):
            rows(np.zeros((8, 4), np.float32).T, x)
        with self.assertRaisesRegex(tile.ArgumentError, r"'y': stride \(axis 1\) must be 1[^;]*; others need[^;]*$"):
            rows(x, np.zeros((8, 4), np.float32).T)
        typed = tile.kernel("kernel typed(T y[N], const type T = f32) grid(1) require(N >= 1) { y[0] = cast(1, T); }")
        with self.assertRaisesRegex(tile.ArgumentError, r'type f32, got f64; its type is a constant: make the kernel with T="f64"$'):
            typed(np.zeros(4))
        with self.assertRaisesRegex(tile.ArgumentError, r"'y' expects a view of 1 axis, got 2; x.reshape\(-1\) has one$"):
            typed(x)
        with self.assertRaisesRegex(TypeError, 'a device is a tile.Device or a name, as "cpu" or "cuda:0", not 3'):
            tile.kernel(SCALE, device=3)

    def test_class(self):
        """The class itself can be asked, too."""
        self.assertIn("A compiled kernel", tile.Kernel.__doc__)
        self.assertIn("module", str(inspect.signature(tile.Kernel)))

    def test_structs(self):
        k = tile.kernel("""
            struct part { i8 lo = -2; f64 d; };
            struct work { f32 scale = 3; bool twice; part p; };
            kernel k(f32 y[N], work s, const f32 x[N]) grid(1)
            { y[0] = x[0] * s.scale * (s.twice ? 2 : 1) + (f32)s.p.lo + (f32)s.p.d; }""")
        x, y = np.ones(1, np.float32), np.zeros(1, np.float32)
        Part, Work = namedtuple("Part", "d"), namedtuple("Work", "scale twice p")
        for args, named, want in (((y, {"twice": True, "p": {"d": 1}}, x), {}, 5), ((y,), {"s": Work(4, False, Part(2.5)), "x": x}, 4.5),
                                  ((y,), {"s": {"p": Part(0)}, "x": x, "s.twice": 0, "s.p.lo": 7}, 10)):
            k(*args, **named)
            self.assertEqual(y[0], want)
        self.assertEqual(str(inspect.signature(k)), "(y: 'f32[N]', s: 'work', x: 'const f32[N]')")
        self.assertIn("k(y, s, x)", repr(k))
        for args, text in (((y, {"p": {"d": 1}}, x), "missing 1 argument: s.twice$"), ((y, {"two": 1}, x), "unexpected keyword argument 's.two'"),
                           ((y, 3, x), "'s' is a struct of scale, twice, p, got int"), ((y, {"twice": True, "p": 3}, x), "'s.p' is a struct of lo, d, got int"),
                           ((y, 3, True, 1, 1, x), "takes 3 arguments but 6")):
            with self.assertRaisesRegex(TypeError, text):
                k(*args)
        with self.assertRaisesRegex(OverflowError, "parameter 's.p.lo': 128 does not fit in i8"):
            k(y, {"twice": True, "p": {"lo": 128, "d": 1}}, x)

    def test_calls_again(self):
        """A call after one that was alike takes a shorter way, with the same results and the same errors."""
        scale = tile.kernel(SCALE)
        whole = np.arange(48, dtype=np.float32).reshape(6, 8)
        for _ in range(3):
            for part in (whole, whole[::2], whole[:, ::3], whole[1:, 2:], whole.T, whole[::-1, ::-1]):
                expected = part * 2
                scale(part, 2.0, len(part))
                self.assertTrue(np.array_equal(part, expected))
                scale(a=0.5, x=part, rows=len(part))
                self.assertTrue(np.array_equal(part * 2, expected))
            for value, kind, text in ((2.5, TypeError, "'rows': expected a whole number"), (2**40, OverflowError, "'rows': 1099511627776 does not fit"),
                                      (True, TypeError, "'rows': expected a whole number")):
                with self.assertRaisesRegex(kind, text):
                    scale(whole, 1.0, value)
            fixed = whole.copy()
            fixed.flags.writeable = False
            with self.assertRaisesRegex(tile.ArgumentError, "'x': the kernel writes to it, and the array is read-only"):
                scale(fixed, 1.0, 6)
            with self.assertRaisesRegex(tile.ArgumentError, "expects elements of type f32, got f64"):
                scale(whole.astype(np.float64), 1.0, 6)
            for dtype, value in (("u64", 2**64 - 1), ("i8", -128), ("f16", 1.5), ("bool", True), ("f64", 0.1), ("i64", -1)):
                y = np.zeros(16, {"u64": "u8", "i8": "i1", "f16": "f2", "bool": "?", "f64": "f8", "i64": "i8"}[dtype])
                tile.kernel(FILL, T=dtype)(y, value)
                self.assertEqual(y.tolist(), 16 * [value], dtype)
        given = tile.kernel("struct more { f32 a = 3; i32 b = -2; }; kernel given(f32 y[N], more m) grid(1) require(N <= 16) { y[0 +: 16] = m.a + (f32)m.b; }")
        for _ in range(3):
            y = np.zeros(16, np.float32)
            given(y, {})
            self.assertEqual(y[0], 1)
            given(y, {"b": 4})
            self.assertEqual(y[0], 7)

    def test_calls_within_calls(self):
        """A print function may call the kernel whose print it gets."""
        source = 'kernel say(i32 n[N]) grid(1) require(N >= 1) { n[0] = n[0] + 1; print("n", n[0]); }'
        n, seen = np.zeros(1, np.int32), []

        def take(text):
            seen.append(text)
            if len(seen) < 5:
                say(n)
        say = tile.kernel(source, device=tile.Device("cpu", print=take))
        say(n)
        say(n)
        self.assertGreaterEqual(len(seen), 5)

    def test_remembered(self):
        """The same call gives the same kernel, until something is different."""
        self.assertIs(tile.kernel(SCALE), tile.kernel(SCALE))
        self.assertIs(tile.kernel("std.kernels.rows", "softmax_rows", BN=64), tile.kernel("std.kernels.rows", "softmax_rows", BN=64))
        self.assertIsNot(tile.kernel(SCALE), tile.kernel(SCALE, B=32))
        self.assertIsNot(tile.kernel(SCALE), tile.kernel(SCALE, check=True))
        self.assertIsNot(tile.kernel(SCALE), tile.kernel(SCALE, device="ref"))
        device = tile.Device("cpu")
        self.assertIsNot(tile.kernel(SCALE, device=device), tile.kernel(SCALE, device=device))
        with tempfile.TemporaryDirectory() as folder:
            path, part, y = os.path.join(folder, "k.tile"), os.path.join(folder, "part.tile"), np.zeros(16, np.float32)
            for text in ("1", "2"):
                with open(path, "w") as f:
                    f.write(FILL.replace("T a, const type T", "const type T = f32").replace("T y", "f32 y").replace("= a", "= " + text))
                tile.kernel(path)(y)
                self.assertEqual(y[0], float(text))
            for text in ("3", "4"):
                with open(part, "w") as f:
                    f.write(f"f32 number() {{ return {text}; }}")
                with open(path, "w") as f:
                    f.write('import "part.tile"; kernel k(f32 y[N]) grid(1) require(N <= 16) { y[0 +: 16] = part.number(); }')
                tile.kernel(path)(y)
                self.assertEqual(y[0], float(text))

    def test_binding(self):
        scale, x = tile.kernel(SCALE), np.ones((3, 4), np.float32)
        scale(x, rows=3, a=2)
        self.assertEqual(x[0, 0], 2)
        for args, named, text in (((x,), {}, "missing 2 arguments: a, rows$"), ((x, 1, 2, 3), {}, "takes 3 arguments but 4"),
                                  ((x,), dict(b=1), "unexpected keyword argument 'b'; its parameters: x, a, rows"),
                                  ((x,), dict(x=x), "multiple values for argument 'x'")):
            with self.assertRaisesRegex(TypeError, text):
                scale(*args, **named)
        with self.assertRaisesRegex(TypeError, "stream is a tile.Stream"):
            scale(x, 1, 2, stream=3)
        copy = tile.kernel("kernel copy(const f32 x[N], f32 y[N], f32 a) grid(N) { y[pid(0)] = a * x[pid(0)]; }")
        for args, text in (((x[0],), "missing 2 arguments: y, a "), ((x[0], 2.0), "missing 1 argument: a ")):
            with self.assertRaisesRegex(TypeError, text + r"\(it returns nothing: the caller gives what is written, y\)$"):
                copy(*args)
        with self.assertRaisesRegex(TypeError, "copy: kernels have grids of their own: .*grid="):
            copy[(4,)](x[0], x[0], 1)
        with self.assertRaisesRegex(TypeError, "not iterable"):
            iter(copy)

    def test_grid(self):
        x = np.zeros(10, np.float32)
        k = tile.kernel("kernel k(f32 x[N]) grid(N) { x[pid(0)] = 1; }")
        k(x, grid=4)
        k(x, grid=(2,))
        self.assertEqual(x.sum(), 4)

    def test_together(self):
        k = tile.kernel("kernel k(i32 count[1], i32 x[N]) grid(N) { atomic_add(count[0], 1, order = acq_rel);"
                        " while (atomic_load(count[0], order = acquire) < N) {} x[pid(0)] += 1; }")
        count, x = np.zeros(1, np.int32), np.zeros(1, np.int32)
        room = k.room(count, x)
        self.assertGreaterEqual(room, 1)
        x = np.zeros(min(room, 8), np.int32)
        k(count, x, together=True)
        self.assertEqual(x.sum(), len(x))
        with self.assertRaisesRegex(tile.Error, "cannot run together on"):
            k(count, np.zeros(room + 1, np.int32), together=True)
        with self.assertRaisesRegex(tile.Error, "cannot run together on"):
            k(count, x, grid=room + 1, together=True)
        k(np.full(1, 1000, np.int32), x, overlap=True)
        self.assertEqual(x.sum(), 2 * len(x))

    def test_overlap(self):
        k = tile.kernel("kernel k(const f32 x[M: a, N: b], f32 y[M: a, N: b]) grid(M) { int i = pid(0); y[i, 0] = x[i, 0]; }")
        z = np.zeros((8, 12), np.float32)
        for x, y in (z, z), (z[:, :5], z[:, 4:9]), (z[:6:2], z[2:8:2]), (z[::-1], z[::-1]), (z.T[:6], z.T[:6]):
            with self.assertRaisesRegex(tile.ArgumentError, r"parameters 'x' and 'y' overlap, which requires alias\(x, y\)"):
                k(x, y)
        for x, y in (z, z.copy()), (z[:, :4], z[:, 4:8]), (z[:6:2], z[1:7:2]), (z[:4], z[4:]), (z[:0], z[:0]):
            k(x, y)

    def test_constants(self):
        with self.assertRaisesRegex(tile.NotFoundError, "has no constant 'C'; it has: B"):
            tile.kernel(SCALE, C=3)
        with self.assertRaisesRegex(tile.NotFoundError, "the constant 'T' has no value"):
            tile.kernel(COPY)
        with self.assertRaisesRegex(TypeError, "a constant is a number"):
            tile.kernel(COPY, T=None)
        with self.assertRaisesRegex(tile.NotFoundError, "say which kernel: a, b"):
            tile.kernel("kernel a(f32 x[N]) grid(1) { x[0] = 1; } kernel b(f32 x[N]) grid(1) { x[0] = 1; }")
        named = "kernel k(f32 x[N], const int check) grid(1) { x[0] = (f32)check; }"
        x = np.zeros(1, np.float32)
        tile.kernel(named, consts={"check": 5})(x)
        self.assertEqual(x[0], 5)

    def test_errors(self):
        with self.assertRaises(tile.CompileError) as caught:
            tile.kernel("kernel k(f32 x[N]) grid(1) { x[0] = q; }")
        self.assertIn("error[E0201]: unknown name 'q'\n    1 | kernel k(", caught.exception.diagnostics)
        self.assertEqual(caught.exception.status, "compile error")
        with self.assertRaises(FileNotFoundError):
            tile.kernel("nowhere.tile")
        with self.assertRaisesRegex(tile.ArgumentError, "unknown device 'gpu'"):
            tile.kernel(SCALE, device="gpu")
        with self.assertRaisesRegex(tile.ArgumentError, "opt"):
            tile.kernel(SCALE, opt_level=9)

    def test_warnings(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            tile.kernel("kernel k(f32 x[N]) grid(1) { x[0 +: 16] = 1; }")
        self.assertTrue(any(issubclass(w.category, tile.CompileWarning) and "warning[unrequired-tail]" in str(w.message) and w.filename == __file__
                            for w in said), [str(w) for w in said])

    def test_files_and_imports(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "more"))
            with open(os.path.join(folder, "more", "twice.tile"), "w") as f:
                f.write("f32 twice(f32 x) { return x + x; }\n")
            path = os.path.join(folder, "k.tile")
            with open(path, "w") as f:
                f.write('import "twice.tile";\nkernel k(f32 x[N]) grid(1) { x[0] = twice.twice(x[0]); }\n')
            x = np.full(1, 4, np.float32)
            tile.kernel(path, include_dirs=[os.path.join(folder, "more")])(x)
            self.assertEqual(x[0], 8)
            with self.assertRaisesRegex(tile.CompileError, "k.tile:1"):
                tile.kernel(path)

    def test_ahead_of_time(self):
        image = tile.compile(SCALE, target="cpu", B=64)
        module = tile.load_image(image.data)
        self.assertEqual(module.names, ["scale"])
        x = np.ones((3, 4), np.float32)
        module.kernel()(x, 2, 3)
        self.assertEqual(x.sum(), 24)
        self.assertIn(".visible .entry", tile.compile(SCALE, target="sm_80", emit="ptx").text)
        self.assertIn("sm_90a", tile.targets())
        self.assertIn("ptx", tile.stages())
        with self.assertRaisesRegex(tile.ArgumentError, "unknown stage 'nix'"):
            tile.compile(SCALE, emit="nix")
        with self.assertRaises(tile.CompileError):
            tile.compile("kernel {")
        with self.assertRaises(tile.Error):
            tile.load_image(image.data[:100])

    def test_explain(self):
        text = str(tile.kernel(SCALE).explain("sm_80,gfx942"))
        self.assertIn("scale for sm_80", text)
        self.assertIn("scale for gfx942", text)
        self.assertRegex(repr(tile.explain(SCALE, target="sm_80")), "occupancy")
        self.assertIn("loops over tiles", str(tile.explain(SCALE, target="cpu")))
        with self.assertRaisesRegex(tile.ArgumentError, "is neither"):
            tile.explain(SCALE, target="ref")


@unittest.skipUnless(native.launcher, "the library lies alone, or this Python loads no module of the stable ABI")
class QuickCalls(unittest.TestCase):
    """Calls by launcher.c: kernel.launcher.call says whether it made one."""

    def is_quick(self, kernel, *values):
        return kernel.launcher.call(values)

    def test_what_is_quick(self):
        scale = tile.kernel("kernel quick_scale(f32 x[N : s], f32 a, i32 _n) grid(cdiv(N, 64)) { x[pid(0) * 64 +: 64] = a * x[pid(0) * 64 +: 64]; }")
        for x in (np.ones(100, np.float32), np.ones(100, np.float32)[::-2], np.ones(1, np.float32), np.ones(0, np.float32), tile.upload(np.ones(9, np.float32))):
            self.assertFalse(self.is_quick(scale, x, 2.0, 1))
            scale(x, 2.0, 1)
            self.assertTrue(self.is_quick(scale, x, -3.0, -7))
            self.assertTrue((np.asarray(x) == -6).all())
            for other in ((x, 2, 1), (x, 2.0, True), (x, 2.0, 1.0), (x, 2.0, 2**31), (x, 2.0), (x, 2.0, 1, 1), [x, 2.0, 1], (None, 2.0, 1)):
                self.assertFalse(scale.launcher.call(other), other)
        fixed = np.ones(100, np.float32)
        fixed.flags.writeable = False
        for other in (fixed, np.ones(100, np.int32), np.ones(100, ">f4"), np.ones((100, 1), np.float32), np.ones(101, np.float32),
                      np.ones(100, np.float32).view(np.recarray), Capsule(np.ones(100, np.float32)), tile.view(np.ones(100, np.float32), "f32")):
            self.assertFalse(self.is_quick(scale, other, 2.0, 1))
        scale(tile.view(np.ones(100, np.float32), "f32"), 2.0, 1)  # of no kind that is quick
        self.assertFalse(self.is_quick(scale, tile.view(np.ones(100, np.float32), "f32"), 2.0, 1))

    def test_numbers(self):
        """The bits that a quick call passes are those of a call that is looked at."""
        values = {"i8": (-128, 127), "u8": (0, 255), "i32": (-2**31, 2**31 - 1), "u32": (0, 2**32 - 1), "i64": (-2**63, 2**63 - 1), "u64": (0, 2**64 - 1),
                  "f16": (1.5, -65504.0, float("inf")), "bf16": (3.14159, -0.0), "f32": (0.1, 1e300, -1e-320, float("-inf")), "f64": (0.1, 1e300, 5e-324), "bool": (True, False)}
        for dtype, some in values.items():
            fill = tile.kernel(FILL, T=dtype)
            y, z = (np.zeros(16, {"bf16": "u2", "bool": "?"}.get(dtype, dtype[0] + str(int(dtype.strip("iuf")) // 8) if dtype[0] in "iuf" else "")) for _ in range(2))
            views = (tile.view(y, "bf16"), tile.view(z, "bf16")) if dtype == "bf16" else (y, z)
            for value in some:
                fill(views[0], value)
                launcher, fill.launcher = fill.launcher, None
                fill(views[1], value)
                fill.launcher = launcher
                self.assertEqual(y.tobytes(), z.tobytes(), (dtype, value))
                self.assertEqual(self.is_quick(fill, y, value), dtype != "bf16")
                self.assertEqual(y.tobytes(), z.tobytes(), (dtype, value))
            if dtype[0] in "iu":
                for value in (some[0] - 1, some[1] + 1):
                    self.assertFalse(self.is_quick(fill, y, value))
                    with self.assertRaisesRegex(OverflowError, f"'a': {value} does not fit in {dtype}"):
                        fill(y, value)

    def test_many(self):
        """Arguments that the stack has no place for; more shapes than plans."""
        names = [f"a{i}" for i in range(40)]
        total = tile.kernel("kernel quick_total(f64 y[N], " + ", ".join("f64 " + n for n in names) + ") grid(1) require(N <= 16) { y[0 +: 16] = "
                            + " + ".join(names) + "; }")
        y = np.zeros(3)
        for k in range(3):
            total(y, *[float(i * k) for i in range(40)])
            self.assertEqual(y.tolist(), 3 * [780.0 * k])
        self.assertTrue(self.is_quick(total, y, *[1.0] * 40))
        copy = tile.kernel(COPY, T="f32")
        for n in [*range(1, 65)] * 2 + [*range(64, 0, -1)]:
            x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
            copy(x, y)
            self.assertTrue((x == y).all() and self.is_quick(copy, x, y))

    def test_threads(self):
        """Calls of one kernel from several threads, each with arrays of its own."""
        copy, wrong = tile.kernel(COPY, T="f32"), []

        def calls(seed):
            x = np.arange(64, dtype=np.float32) + seed
            for i in range(300):
                y = np.zeros(1 + (i + seed) % 64, np.float32)
                copy(x[:len(y)], y)
                if not (y == x[:len(y)]).all():
                    wrong.append((seed, i))

        threads = [threading.Thread(target=calls, args=(100 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_failures(self):
        """A quick call raises what the kernel says, and the next one is none the worse."""
        lines = []
        device = tile.Device("cpu", print=lines.append)
        stop = tile.load("kernel quick_stop(const i32 x[N]) grid(1) require(N <= 16) { auto v = load(x[0 +: 16], pad = 0); assert(all(v < 9), \"too large\"); print(\"x\", max(v)); }",
                         device=device, debug=True).kernel()
        x = np.arange(8, dtype=np.int32)
        for largest in (7, 8, 9, 7, 10, 8):
            x[3] = largest
            lines.clear()
            if largest < 9:
                stop(x)
                self.assertIn(str(largest), "".join(lines))
                continue
            with self.assertRaisesRegex(tile.KernelError, "too large") as caught:
                stop(x)
            self.assertTrue(any("too large" in f for f in caught.exception.failures))
        self.assertTrue(self.is_quick(stop, np.arange(8, dtype=np.int32)))

    def test_ends(self):
        """A kernel that was called quickly goes with its last reference, one that a device's print function keeps with the next collection."""
        kernel = tile.load(COPY, device="cpu").kernel(T="f32")
        kernel(np.ones(4, np.float32), np.zeros(4, np.float32))
        gone = weakref.ref(kernel)
        del kernel
        self.assertIsNone(gone())
        owner = []
        device = tile.Device("cpu", print=lambda text: owner)
        owner.append(tile.load(COPY, device=device).kernel(T="f32"))
        owner[0](np.ones(4, np.float32), np.zeros(4, np.float32))
        gone = weakref.ref(owner[0])
        del owner, device
        gc.collect()
        self.assertIsNone(gone())

    def test_wrong_use(self):
        """The module itself refuses what would not end well."""
        launcher, args = tile.kernel(COPY, T="f32").launcher, (native.Arg * 2)()
        for address, patterns in ((0, ()), (addressof(args), ()), (0, (1, 2)), *((addressof(args), p) for p in ((1, 2), ((), ()), ((0,), (0,)), (("a",) * 7,) * 2))):
            with self.assertRaises(TypeError):
                launcher.learn(address, (1, 2), patterns)
        for how in (3, 4, 99):  # an int is no array, no tensor
            self.assertFalse(launcher.learn(addressof(args), (1, 2), ((how, int, None, None, None, "i", 32),) * 2))
        for values in ((), 1, None, [1, 2], (1, 2, 3)):
            self.assertFalse(launcher.call(values))
        with self.assertRaises(TypeError):
            native.launcher.Launcher()
        self.assertFalse(native.launcher.has_exchange(np.ndarray) and native.launcher.has_exchange(int))
        x = np.zeros((2, 3))
        for wrong in ((8, x.dtype, x.shape, x.strides, True), (x.ctypes.data, np.dtype("f4"), x.shape, x.strides, True), (x.ctypes.data, x.dtype, (3, 2), x.strides, True),
                      (x.ctypes.data, x.dtype, x.shape, (8, 24), True), (x.ctypes.data, x.dtype, x.shape, x.strides, False)):
            self.assertFalse(native.launcher.fields_are_known(x, *wrong))
        self.assertTrue(native.launcher.fields_are_known(x, x.ctypes.data, x.dtype, x.shape, x.strides, True))  # and so they are again


class Running(unittest.TestCase):
    def test_prints_and_failures(self):
        said = []
        device = tile.Device("cpu", print=said.append)
        k = tile.kernel('kernel k(const i32 x[N]) grid(N) { print("x", x[pid(0)]); assert(x[pid(0)] < 2, "big"); }', device=device, debug=True)
        with self.assertRaisesRegex(tile.KernelError, "assertion failed: big") as caught:
            k(np.arange(4, dtype=np.int32))
        self.assertEqual(said, ["x = 0", "x = 1", "x = 2", "x = 3"])
        self.assertEqual(caught.exception.status, "failed in a kernel")
        self.assertTrue(caught.exception.failures)
        k(np.zeros(1, np.int32))  # the failure was delivered

    def test_print_that_raises(self):
        """Each call runs once, and raises what the function did."""
        said = []

        def print_badly(text):
            said.append(text)
            raise RuntimeError("no paper")
        device = tile.Device("cpu", print=print_badly)
        k = tile.kernel('kernel k(const i32 x[N]) grid(1) { print("x", x[0]); }', device=device)
        for calls in (1, 2, 3):
            with self.assertRaisesRegex(RuntimeError, "no paper"):
                k(np.zeros(1, np.int32))
            self.assertEqual(len(said), calls)

    def test_checks(self):
        k = tile.kernel("kernel k(f32 x[N], i32 i) grid(1) { unchecked x[i] = 1; }", check=True)
        with self.assertRaises(tile.KernelError):
            k(np.zeros(4, np.float32), 9)

    def test_streams(self):
        with tile.Stream() as stream:
            scale = tile.kernel(SCALE)
            x = np.ones((64, 64), np.float32)
            first, last = tile.Event(), tile.Event()
            first.record(stream)
            for _ in range(10):
                scale(x, 2, 64, stream=stream)
            scale(np.ones((64, 64), np.float32), 2, 64, stream=stream)  # kept by the stream
            last.record(stream)
            self.assertTrue(stream.running)
        self.assertFalse(stream.running)
        self.assertTrue((x == 1024).all())
        self.assertGreaterEqual(last.milliseconds_since(first), 0)
        other = tile.Stream()
        other.wait(last)
        other.synchronize()

    def test_parts(self):
        scale = tile.kernel(SCALE)
        x = np.ones((64, 64), np.float32)
        streams = [tile.Stream(part=i, parts=3) for i in range(3)]
        threads = [threading.Thread(target=scale, args=(x, 2, 64), kwargs={"stream": s}) for s in streams]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for s in streams:
            s.synchronize()
        self.assertTrue((x == 2).all())
        with self.assertRaisesRegex(tile.Error, "part 3 of 3"):
            tile.Stream(part=3, parts=3)

    def test_threads_of_a_device(self):
        self.assertEqual(tile.Device("cpu", threads=3, affinity="none").processors, 3)
        with self.assertRaisesRegex(tile.Error, "affinity is 'far'"):
            tile.Device("cpu", affinity="far")

    def test_devices(self):
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        for name in ("cpu", "ref", "emu:sm_90a", "emu:gfx942"):
            y = x.copy()
            tile.kernel(SCALE, device=name)(y, 2, 3)
            self.assertTrue((y == 2 * x).all(), name)
        device = tile.Device("emu:sm_80")
        self.assertEqual((device.target, device.host_memory), ("emu:sm_80", True))

    def test_threads(self):
        scale, wrong = tile.kernel(SCALE), []

        def work(n):
            for i in range(50):
                x = np.full((3, 4), n, np.float32)
                scale(x, 2, 3)
                other = tile.kernel(SCALE, B=32 + n % 2)
                other(x, 2, 3)
                try:
                    other(x, 2)
                except TypeError:
                    pass
                if not (x == 4 * n).all():
                    wrong.append(n)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_freed(self):
        """Modules, streams, arrays and devices go with their last reference."""
        device = tile.Device("cpu")
        k = tile.kernel(SCALE, device=device)
        stream = tile.Stream(device)
        there = tile.upload(np.zeros((3, 4), np.float32), device)
        k(there, 1, 3, stream=stream)
        gone = [weakref.ref(thing) for thing in (k, k.module, stream, there, device)]
        stream.synchronize()
        del k, stream, there, device
        gc.collect()
        self.assertEqual([r() for r in gone], [None] * 5)

    def test_freed_while_running(self):
        stream = tile.Stream()
        x = np.ones((64, 64), np.float32)
        for _ in range(20):
            tile.kernel(SCALE)(x, 1, 64, stream=stream)
        del stream

    def test_memory_does_not_grow(self):
        x = np.ones((3, 4), np.float32)

        def some(n):
            for _ in range(n):
                tile.kernel(SCALE)(Capsule(x), 1, 3)
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        some(20)
        before = some(100)
        self.assertLess(some(300) - before, 4 << 20)
        references = sys.getrefcount(x)
        some(5)
        self.assertEqual(sys.getrefcount(x), references)


TUNED = """
kernel add(const f32 x[N], f32 y[N], f32 a, const int B, const int U = 1)
    grid(cdiv(N, B * U))
    tune(B in {64, 128, 256}, U in {1, 2})
    key(N)
{
    for (int u : range(U)) y[(pid(0) * U + u) * B +: B] = x[(pid(0) * U + u) * B +: B] + a;
}
kernel which(f32 x[N], const int B) grid(1) tune(B in {1, 2, 4}) key(N) { x[0] = (f32)B; }
"""


class Tuning(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "k.tile")
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(TUNED)
        self.x, self.y = np.arange(1000, dtype=np.float32), np.full(1000, -1, np.float32)

    def test_tune(self):
        seen = []
        found = tile.tune(self.path, "add", (self.x, self.y, 2), progress=seen.append)
        self.assertEqual((found.total, found.timed, found.rejected, found.kept, found.complete), (6, 6, 0, 0, True))
        self.assertTrue(found.best.startswith("B=") and found.best_us > 0 and found.standard_us > 0)
        self.assertTrue((self.y == -1).all(), "the arrays were not put back")
        checked = {p.config for p in seen if p.step == "check"}
        self.assertEqual(len(checked), 6)
        self.assertEqual({(p.kernel, p.total) for p in seen}, {("add", 6)})
        again = tile.tune(self.path, "add", dict(a=2, y=self.y, x=self.x))
        self.assertEqual(again._replace(best_us=0, standard_us=0), found._replace(best_us=0, standard_us=0, timed=0, kept=6))
        self.assertEqual(tile.tune(self.path, "add", (self.x, self.y, 2), again=True, only=["B=64 U=1"]).timed, 1)

    def test_results_are_used(self):
        self.assertEqual(tile.tune(self.path, "which", (self.x,), only=["B=4"], tolerance=1).best, "B=4")
        x = np.zeros(1000, np.float32)
        tile.kernel(self.path, "which")(x)
        self.assertEqual(x[0], 4)
        tile.kernel(self.path, "which", B=2)(x)
        self.assertEqual(x[0], 2)

    def test_stopped(self):
        found = tile.tune(self.path, "add", (self.x, self.y, 2), progress=lambda p: p.done >= 2)
        self.assertFalse(found.complete)
        self.assertLess(found.timed, 6)
        self.assertEqual(tile.tune(self.path, "add", (self.x, self.y, 2)).complete, True)

        def wrong(p):
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            tile.tune(self.path, "add", (self.x, self.y, 2), again=True, progress=wrong)

    def test_wrong(self):
        for call, kind, words in ((lambda: tile.tune(TUNED, "add", ()), tile.ArgumentError, "takes a file"),
                                  (lambda: tile.tune(self.path, "none", ()), tile.NotFoundError, "none"),
                                  (lambda: tile.tune(self.path, "add", (self.x, self.y[:9], 2)), tile.ArgumentError, "must be"),
                                  (lambda: tile.tune(self.path, "add", (self.x,)), TypeError, "missing"),
                                  (lambda: tile.tune(self.path, "add", (self.x, self.y, 2), budget=-1), tile.ArgumentError, "below 0"),
                                  (lambda: tile.tune(self.path, "add", (self.x, self.y, 2), device=tile.Device("emu:sm_80")), tile.ArgumentError, "emulator")):
            with self.assertRaisesRegex(kind, words):
                call()


class Library(unittest.TestCase):
    def test_named_by_its_folder(self):
        with tempfile.TemporaryDirectory() as empty:
            for folder, said in ((os.path.dirname(tile.native.lib._name), "0.1.0"), (empty, "libtilec.so.0.1 or its folder")):
                p = subprocess.run([sys.executable, "-c", "import tile; print(tile.__version__)"], env=os.environ | {"TILE_LIBRARY": folder}, capture_output=True,
                                   text=True, check=False)
                self.assertIn(said, p.stdout + p.stderr)


class Types(unittest.TestCase):
    def test_annotated(self):
        """Every function of the package says its types, and py.typed that it does (typed.test: mypy on them)."""
        folder = os.path.dirname(tile.__file__)
        self.assertTrue(os.path.exists(os.path.join(folder, "py.typed")))
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    tree = ast.parse(f.read())
                for node in ast.walk(tree):
                    if isinstance(node, ast.FunctionDef):
                        given = node.args
                        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
                        missing = [a.arg for a in every if a.annotation is None and a.arg not in ("self", "cls")]
                        self.assertEqual((missing, node.returns is None), ([], False), f"{name}:{node.lineno}: {node.name}")


if __name__ == "__main__":
    unittest.main()
