"""tile.kernels against NumPy: results, layouts of arrays, arguments that are wrong, streams.

    kernels_test.py [-v] [NAME...]      with the package on PYTHONPATH and the libraries beside TILE_LIBRARY
"""
import importlib.util
import unittest

import numpy as np

import tile
from tile import kernels


def floats(*shape, dtype=np.float32):
    return np.random.default_rng(5).standard_normal(shape).astype(dtype)


def softmax_of(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Products(unittest.TestCase):
    def test_layouts(self):
        """Transposed views, rows at a distance, batches with one matrix for all."""
        a, b = floats(7, 30), floats(30, 11)
        wide = np.zeros((7, 40), np.float32)
        wide[:, 3:33] = a
        for x in (a, np.asfortranarray(a), wide[:, 3:33]):
            for y in (b, np.asfortranarray(b)):
                self.assertTrue(np.allclose(kernels.gemm(x, y), a @ b, atol=1e-4))
        c = floats(3, 7, 30)
        self.assertTrue(np.allclose(kernels.gemm(c, b), c @ b, atol=1e-4))
        self.assertTrue(np.allclose(kernels.gemm(c.swapaxes(1, 2), floats(7, 2)), c.swapaxes(1, 2) @ floats(7, 2), atol=1e-4))

    def test_update(self):
        a, b, c = floats(4, 5), floats(5, 6), floats(4, 6)
        want = np.maximum(2 * a @ b - c + np.arange(6), 0)
        out = kernels.gemm(a, b, c, alpha=2, beta=-1, bias=np.arange(6, dtype=np.float32), activation="relu")
        self.assertIs(out, c)
        self.assertTrue(np.allclose(c, want, atol=1e-4))

    def test_types(self):
        for dtype in (np.float16, np.float64):
            a, b = floats(5, 6, dtype=dtype), floats(6, 7, dtype=dtype)
            self.assertEqual(kernels.gemm(a, b).dtype, dtype)
            self.assertTrue(np.allclose(kernels.gemm(a, b), a.astype(float) @ b.astype(float), atol=1e-2))
        a, b = np.full((3, 300), 127, np.int8), np.full((300, 2), -128, np.int8)
        self.assertTrue((kernels.gemm(a, b) == 300 * 127 * -128).all())

    def test_wrong(self):
        a, b = floats(4, 5), floats(5, 6)
        frozen = floats(4, 6)
        frozen.flags.writeable = False
        for call, text in ((lambda: kernels.gemm(a, a), "do not fit for a product"),
                           (lambda: kernels.gemm(a, b.astype(np.float16)), "b is of f16, but should be of f32"),
                           (lambda: kernels.gemm(a, b, activation="tanh"), "activation is 'tanh', but should be one of"),
                           (lambda: kernels.gemm(a, b, beta=1), "beta is given without out"),
                           (lambda: kernels.gemm(a, b, frozen), "read-only"),
                           (lambda: kernels.gemm(a, b, floats(6, 4).T), "rows of out do not lie side by side"),
                           (lambda: kernels.gemm(a, b, floats(4, 7)), "of (4, 6), but out of (4, 7)"),
                           (lambda: kernels.gemm(a, b, bias=floats(5)), "bias should have 6 elements"),
                           (lambda: kernels.gemm(floats(8, 10)[::2, ::2], b), "no axis whose elements lie side by side"),
                           (lambda: kernels.gemm(np.zeros((4, 5), np.uint16), b), "tile.view(a"),
                           (lambda: kernels.gemm(a.astype(np.int32), b.astype(np.int32)), "type is i32, but must be")):
            with self.assertRaises(tile.ArgumentError) as caught:
                call()
            self.assertIn(text, str(caught.exception))
        with self.assertRaises(TypeError):
            kernels.gemm(2, b)


class Rows(unittest.TestCase):
    def test_softmax(self):
        x = floats(2, 3, 50)
        self.assertTrue(np.allclose(kernels.softmax(x), softmax_of(x), atol=1e-6))
        self.assertTrue(np.allclose(kernels.log_softmax(x), np.log(softmax_of(x)), atol=1e-5))
        self.assertTrue(np.allclose(kernels.softmax(x[:, 1, 5:20]), softmax_of(x[:, 1, 5:20]), atol=1e-6))
        want = softmax_of(x)
        self.assertIs(kernels.softmax(x, x), x)
        self.assertTrue(np.allclose(x, want, atol=1e-6))

    def test_norms(self):
        x, w, b, mean, rstd = floats(6, 33), floats(33), floats(33), np.empty(6, np.float32), np.empty(6, np.float32)
        average, r = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-3)
        y = kernels.layer_norm(x, w, b, 1e-3, mean=mean, rstd=rstd)
        self.assertTrue(np.allclose(y, (x - average[:, None]) * r[:, None] * w + b, atol=1e-5))
        self.assertTrue(np.allclose(mean, average, atol=1e-6) and np.allclose(rstd, r, rtol=1e-5))
        r = 1 / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)
        self.assertTrue(np.allclose(kernels.rms_norm(x, w, offset=1), x * r * (w + 1), atol=1e-5))
        self.assertTrue(np.allclose(kernels.rms_norm(x), x * r, atol=1e-5))

    def test_wrong(self):
        for call, text in ((lambda: kernels.softmax(floats(4, 6).T), "rows of x do not lie side by side"),
                           (lambda: kernels.softmax(floats(6, 4, 5)[::2, ::3]), "not equally far"),
                           (lambda: kernels.softmax(floats(4, dtype=np.float64)), "type is f64"),
                           (lambda: kernels.layer_norm(floats(2, 4), floats(5)), "weight should have 4 elements"),
                           (lambda: kernels.softmax(floats(2, 4), floats(2, 5)), "out of (2, 5)")):
            with self.assertRaises(tile.ArgumentError) as caught:
                call()
            self.assertIn(text, str(caught.exception))


class Losses(unittest.TestCase):
    def test_cross_entropy(self):
        x, labels, lse, up = floats(4, 9), np.array([0, 8, -100, 3], np.int32), np.empty(4, np.float32), floats(4)
        p, there = softmax_of(x), labels >= 0
        loss = kernels.cross_entropy(x, labels, lse=lse)
        want = np.where(there, -np.log(p[np.arange(4), labels * there]), 0)
        self.assertTrue(np.allclose(loss, want, atol=1e-5) and np.allclose(lse, np.log(np.exp(x).sum(1)), atol=1e-5))
        want = (p - (np.arange(9) == labels[:, None])) * (up * there)[:, None]
        self.assertTrue(np.allclose(kernels.cross_entropy_backward(x, labels, lse, up), want, atol=1e-6))


class Attention(unittest.TestCase):
    def test_layouts(self):
        q, k, v = floats(2, 4, 9, 16), floats(2, 2, 12, 16), floats(2, 2, 12, 8)  # heads first
        s = np.einsum("bhmd,bhnd->bhmn", q, np.repeat(k, 2, 1)) / 4
        hidden = np.arange(12) > np.arange(9)[:, None] + 3
        for causal in (False, True):
            p = softmax_of(np.where(hidden, -np.inf, s) if causal else s)
            want = np.einsum("bhmn,bhnd->bhmd", p, np.repeat(v, 2, 1))
            lse = np.empty((2, 4, 9), np.float32)
            o = kernels.attention(*(x.swapaxes(1, 2) for x in (q, k, v)), causal=causal, lse=lse)
            self.assertEqual(o.shape, (2, 9, 4, 8))
            self.assertTrue(np.allclose(o.swapaxes(1, 2), want, atol=1e-5))
            dense = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v))
            self.assertTrue((kernels.attention(*dense, causal=causal) == o).all())
        with self.assertRaises(tile.ArgumentError):
            kernels.attention(q, k, v)

    def test_mask_and_gradients(self):
        q, k, v, up = floats(2, 4, 3, 8), floats(2, 5, 1, 8), floats(2, 5, 1, 6), floats(2, 4, 3, 6)
        s = np.einsum("bmhd,bnd->bhmn", q, k[:, :, 0]) / np.sqrt(8)
        for mask in (floats(4, 5), floats(3, 1, 5), floats(2, 1, 1, 5), floats(1, 1, 1, 5), None):
            p = softmax_of(s if mask is None else s + mask)
            lse = np.empty((2, 3, 4), np.float32)
            o = kernels.attention(q, k, v, mask=mask, lse=lse)
            self.assertTrue(np.allclose(o, np.einsum("bhmn,bnd->bmhd", p, v[:, :, 0]), atol=1e-5))
            dp = np.einsum("bmhd,bnd->bhmn", up, v[:, :, 0])
            ds = p * (dp - (p * dp).sum(-1, keepdims=True)) / np.sqrt(8)
            dq, dk, dv = kernels.attention_backward(q, k, v, o, up, lse, mask=mask)
            self.assertTrue(np.allclose(dq, np.einsum("bhmn,bnd->bmhd", ds, k[:, :, 0]), atol=1e-5))
            self.assertTrue(np.allclose(dk[:, :, 0], np.einsum("bhmn,bmhd->bnd", ds, q), atol=1e-5))
            self.assertTrue(np.allclose(dv[:, :, 0], np.einsum("bhmn,bmhd->bnd", p, up), atol=1e-5))
        with self.assertRaises(tile.ArgumentError):
            kernels.attention(q, k, v, mask=floats(4, 4))

    def test_dropout(self):
        q, k, v, up = floats(2, 40, 2, 8), floats(2, 50, 2, 8), floats(2, 50, 2, 6), floats(2, 40, 2, 6)
        each = np.broadcast_to(np.eye(50, dtype=np.float32)[:, None], (2, 50, 2, 50))
        p = softmax_of(np.einsum("bmhd,bnhd->bhmn", q, k) / np.sqrt(8))
        options, lse = {"dropout": 0.25, "seed": 2**63 + 5}, np.empty((2, 2, 40), np.float32)
        thin = kernels.attention(q, k, each, **options).transpose(0, 2, 1, 3) / p
        self.assertTrue((np.isclose(thin, 0) | np.isclose(thin, 4 / 3, rtol=1e-4)).all())
        self.assertTrue(0.22 < (thin < 1).mean() < 0.28)
        self.assertFalse((kernels.attention(q, k, each, dropout=0.25).transpose(0, 2, 1, 3) / p == thin).all())
        o = kernels.attention(q, k, v, lse=lse, **options)
        self.assertTrue(np.allclose(o, np.einsum("bhmn,bnhd->bmhd", thin * p, v), atol=1e-5))
        dp = thin * np.einsum("bmhd,bnhd->bhmn", up, v)
        ds = p * (dp - (p * dp).sum(-1, keepdims=True)) / np.sqrt(8)
        dq, dk, dv = kernels.attention_backward(q, k, v, o, up, lse, **options)
        self.assertTrue(np.allclose(dq, np.einsum("bhmn,bnhd->bmhd", ds, k), atol=1e-5))
        self.assertTrue(np.allclose(dk, np.einsum("bhmn,bmhd->bnhd", ds, q), atol=1e-5))
        self.assertTrue(np.allclose(dv, np.einsum("bhmn,bmhd->bnhd", thin * p, up), atol=1e-5))

    def test_rope(self):
        x, angle = floats(5, 3, 8), floats(5, 4)
        a, b, c, s = x[..., :4], x[..., 4:], np.cos(angle)[:, None], np.sin(angle)[:, None]
        y = kernels.rope(x, np.cos(angle), np.sin(angle))
        self.assertTrue(np.allclose(y, np.concatenate([a * c - b * s, a * s + b * c], -1), atol=1e-6))
        back = kernels.rope(y, np.cos(angle), np.sin(angle), place=np.arange(5, dtype=np.int32), backward=True)
        self.assertTrue(np.allclose(back, x, atol=1e-6))


class Axes(unittest.TestCase):
    def test_reduce(self):
        """Every reduction along every axis, of views too."""
        numpys = {"sum": np.sum, "mean": np.mean, "norm1": lambda x, axis: np.abs(x).sum(axis), "max": np.max, "min": np.min,
                  "norm2": lambda x, axis: np.linalg.norm(x, axis=axis), "argmax": np.argmax, "argmin": np.argmin}
        for x in (floats(3, 50, 7), floats(4, 50, 7, dtype=np.float64), floats(6, 40)[::2, 1:30], floats(9), floats(1, 1, 5)):
            for name, numpy in numpys.items():
                for axis in range(-x.ndim, x.ndim):
                    y = kernels.reduce(x, name, axis)
                    self.assertEqual(y.dtype, np.int32 if "arg" in name else x.dtype)
                    self.assertTrue(np.allclose(y, numpy(x, axis=axis), atol=1e-5), (name, axis))

    def test_scan(self):
        x = floats(2, 3, 300)
        self.assertTrue(np.allclose(kernels.scan(x), np.cumsum(x, -1), atol=1e-4))
        self.assertTrue(np.array_equal(kernels.scan(x, "max"), np.maximum.accumulate(x, -1)))
        self.assertTrue(np.allclose(kernels.scan(x[0], exclusive=True)[:, 1:], np.cumsum(x[0], -1)[:, :-1], atol=1e-4))
        want = np.cumsum(x, -1)
        self.assertIs(kernels.scan(x, out=x), x)
        self.assertTrue(np.allclose(x, want, atol=1e-4))

    def test_wrong(self):
        x = floats(4, 5)
        for call, text in ((lambda: kernels.reduce(x, "median"), "reduction is 'median', but should be one of 'sum', 'mean'"),
                           (lambda: kernels.reduce(x, axis=2), "axis is 2, but x has 2 axes"),
                           (lambda: kernels.reduce(x.T, axis=0), "behind axis 0 do not lie side by side"),
                           (lambda: kernels.reduce(np.broadcast_to(x[0, 0], (2, 3))), "one element for many"),
                           (lambda: kernels.reduce(x[::-1]), "negative stride"),
                           (lambda: kernels.reduce(x[:, :0], "max"), "N is 0, but must be 1 or more"),
                           (lambda: kernels.reduce(x, out=floats(5)), "the result is of (4,), but out of (5,)"),
                           (lambda: kernels.reduce(x, "argmax", out=floats(4)), "out is of f32, but should be of i32"),
                           (lambda: kernels.reduce(x.astype(np.int8)), "type is i8, but must be"),
                           (lambda: kernels.scan(x, "mean"), "operation is 'mean'"),
                           (lambda: kernels.scan(x, out=x[:, 1:]), "x is of (4, 5), but out of (4, 4)")):
            with self.assertRaises(tile.ArgumentError) as caught:
                call()
            self.assertIn(text, str(caught.exception))


def aligned(*shape, dtype=np.float32, fill=None):
    """Numbers, or one number, at a multiple of 64 bytes, as frameworks allocate tensors."""
    size = int(np.prod(shape))
    space = np.zeros(size * 4 + 64, np.uint8)
    out = space[-space.ctypes.data % 64:][:size * np.dtype(dtype).itemsize].view(dtype).reshape(shape)
    out[...] = floats(*shape, dtype=dtype) if fill is None else fill
    return out


class Order(unittest.TestCase):
    def test_sort(self):
        for n in (1, 50, 1000, 3000):
            for dtype in (np.float32, np.float16, np.float64):
                x = floats(3, n, dtype=dtype)
                self.assertTrue(np.array_equal(kernels.sort(x), np.sort(x, -1)))
                self.assertTrue(np.array_equal(kernels.sort(x, descending=True), np.sort(x, -1)[:, ::-1]))
                self.assertTrue(np.array_equal(kernels.argsort(x), np.argsort(x, -1, kind="stable")))

    def test_top_k(self):
        x = floats(4, 900)
        values, places = kernels.top_k(x, 30)
        self.assertTrue(np.array_equal(values, np.sort(x, -1)[:, :-31:-1]))
        self.assertTrue(np.array_equal(np.take_along_axis(x, places, -1), values))

    def test_wrong(self):
        x = floats(4, 5)
        for call, text in ((lambda: kernels.sort(x, places=np.zeros((4, 4), np.int32)), "places is of (4, 4), but x of (4, 5)"),
                           (lambda: kernels.sort(x, x), "overlap"), (lambda: kernels.top_k(x, 6), "K is 6, but must be from 0 to N"),
                           (lambda: kernels.argsort(x.astype(np.int32)), "type is i32, but must be")):
            with self.assertRaises(tile.ArgumentError) as caught:
                call()
            self.assertIn(text, str(caught.exception))


class Training(unittest.TestCase):
    def test_norms(self):
        """Gradients beside differences of the norm's values."""
        x, dy, w = floats(4, 9), floats(4, 9)[::-1].copy(), floats(9)
        mean, rstd, dw, db = (np.empty(n, np.float32) for n in (4, 4, 9, 9))
        kernels.layer_norm(x, w, w, mean=mean, rstd=rstd)
        dx = kernels.layer_norm_backward(dy, x, mean, rstd, w, dweight=dw, dbias=db)
        n = (x.astype(float) - x.mean(-1, keepdims=True)) * rstd[:, None]
        self.assertTrue(np.allclose(dw, (dy * n).sum(0), atol=1e-5))
        self.assertTrue(np.allclose(db, dy.sum(0), atol=1e-5))
        g = dy * w
        self.assertTrue(np.allclose(dx, (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) * rstd[:, None], atol=1e-5))
        kernels.rms_norm(x, w, rstd=rstd)
        dx = kernels.rms_norm_backward(dy, x, rstd, w, dweight=dw)
        n = x * rstd[:, None]
        self.assertTrue(np.allclose(dx, (g - n * (g * n).mean(-1, keepdims=True)) * rstd[:, None], atol=1e-5))
        self.assertTrue(np.allclose(dw, (dy * n).sum(0), atol=1e-5))

    def test_steps(self):
        w, g = [aligned(3, 5), aligned(700)], [aligned(3, 5), aligned(700)]
        m, v = ([aligned(3, 5, fill=0), aligned(700, fill=0)] for _ in range(2))
        was = [x.copy() for x in w]
        kernels.sgd(w, g, 0.1)
        self.assertTrue(all(np.allclose(x, y - 0.1 * z, atol=1e-6) for x, y, z in zip(w, was, g)))
        was = [x.copy() for x in w]
        kernels.adam(w, g, m, v, 1, 0.1, decay=0.5)
        self.assertTrue(all(np.allclose(x, y - 0.1 * (0.5 * y + np.sign(z)), atol=1e-4) for x, y, z in zip(w, was, g)))
        kernels.adam([], [], [], [], 1, 0.1)
        for call, text in ((lambda: kernels.sgd(w, g[:1], 0.1), "the tensors of dw have [15] elements"),
                           (lambda: kernels.sgd(w, g, 0.1, momentum=0.9), "momenta is NULL"),
                           (lambda: kernels.adam(w, g, m, v, 0, 0.1), "step is 0"),
                           (lambda: kernels.adam(w, g, m, [x.astype(np.float16) for x in v], 1, 0.1), "squares is of f16")):
            with self.assertRaises(tile.ArgumentError) as caught:
                call()
            self.assertIn(text, str(caught.exception))


class Systems(unittest.TestCase):
    def test_triangles(self):
        a, b = floats(3, 7, 7) + 5 * np.eye(7, dtype=np.float32), floats(3, 7, 4)
        for lower, transpose in ((True, False), (False, True)):
            op = np.tril(a) if lower else np.triu(a)
            op = op.swapaxes(1, 2) if transpose else op
            x = kernels.trsm(a, b.copy(), lower=lower, transpose=transpose, alpha=2)
            self.assertTrue(np.allclose(op @ x, 2 * b, atol=1e-4))
        x = kernels.trsm(a[0], b.swapaxes(1, 2).copy(), right=True, unit=True)
        self.assertTrue(np.allclose(x @ (np.tril(a[0], -1) + np.eye(7)), b.swapaxes(1, 2), atol=1e-3))

    def test_factors(self):
        a = floats(2, 90, 90, dtype=np.float64)
        b, spd = floats(2, 90, 3, dtype=np.float64), a @ a.swapaxes(1, 2) + np.eye(90)
        low = spd.copy()
        self.assertEqual(kernels.potrf(low).tolist(), [0, 0])
        self.assertTrue(np.allclose(np.tril(low), np.linalg.cholesky(spd)))
        self.assertTrue(np.allclose(spd @ kernels.potrs(low, b.copy()), b))
        self.assertEqual(kernels.potrf(-spd[0], lower=False), 1)
        lu = a.copy()
        pivots, info = kernels.getrf(lu)
        self.assertEqual((pivots.shape, info.tolist()), ((2, 90), [0, 0]))
        self.assertTrue(np.allclose(a @ kernels.getrs(lu, pivots, b.copy()), b))
        self.assertTrue(np.allclose(a.swapaxes(1, 2) @ kernels.getrs(lu, pivots, b.copy(), transpose=True), b))

    def test_reflections(self):
        for shape in ((50, 35), (2, 9, 4), (3, 8)):
            a = np.random.default_rng(3).standard_normal(shape)
            f = a.copy()
            tau = kernels.geqrf(f)
            q = np.broadcast_to(np.eye(shape[-2]), (*shape[:-2], shape[-2], shape[-2])).copy()
            kernels.ormqr(f, tau, q)
            self.assertTrue(np.allclose(q @ np.triu(f), a) and np.allclose(q.swapaxes(-1, -2) @ q, np.eye(shape[-2])))
            self.assertTrue(np.allclose(kernels.ormqr(f, tau, a.copy(), transpose=True), np.triu(f)))
        a, b = np.random.default_rng(4).standard_normal((40, 5)), np.arange(40.0)[:, None]
        f = a.copy()
        x = kernels.ormqr(f, kernels.geqrf(f), b.copy(), transpose=True)[:5]
        self.assertTrue(np.allclose(kernels.trsm(f[:5], x, lower=False), np.linalg.lstsq(a, b, rcond=None)[0]))
        with self.assertRaises(tile.ArgumentError):
            kernels.ormqr(f, np.zeros(4), b)

    def test_wrong(self):
        a, b = np.eye(3), np.ones((3, 2))
        frozen = np.eye(3)
        frozen.flags.writeable = False
        pivots = np.zeros(3, np.int32)
        for call, text in ((lambda: kernels.trsm(a[:2], b), "a is of (2, 3), but should be square"),
                           (lambda: kernels.trsm(a, b.T), "do not lie side by side"),
                           (lambda: kernels.trsm(a, b, right=True), "do not fit for a system of equations"),
                           (lambda: kernels.trsm(a, b.astype(np.float32)), "b is of f32, but should be of f64"),
                           (lambda: kernels.potrf(frozen), "read-only"),
                           (lambda: kernels.potrf(a.astype(np.float16)), "type is f16, but must be f32 or f64"),
                           (lambda: kernels.potrs(np.stack([a] * 3), np.stack([b] * 2)), "do not fit"),
                           (lambda: kernels.getrs(a, pivots[:2], b), "pivots is of (2,), but should be of (3,)"),
                           (lambda: kernels.getrs(a, pivots, np.stack([b] * 2)), "each matrix of b needs one of a")):
            with self.assertRaises(tile.ArgumentError) as caught:
                call()
            self.assertIn(text, str(caught.exception))


class Blas(unittest.TestCase):
    def test_vectors(self):
        for t in (np.float32, np.float64):
            whole = floats(90).astype(t)
            for x, y in ((whole[:30], whole[60:]), (whole[:60:2], whole[60:][::-1]), (whole[:0], whole[1:1]), (whole[3:4], whole[5:6])):
                x, y, first = x, y.copy(), y.copy()
                self.assertTrue(np.allclose(kernels.axpy(2.0, x, y), 2 * x + first, atol=1e-5))
                self.assertTrue(np.allclose(kernels.dot(x, y), x @ y, atol=1e-4))
                self.assertTrue(np.allclose(kernels.nrm2(x), np.linalg.norm(x), atol=1e-5))
                self.assertTrue(np.allclose(kernels.asum(x), np.abs(x).sum(), atol=1e-4))
                self.assertEqual(int(kernels.iamax(x)), int(np.abs(x).argmax()) if len(x) else -1)
                self.assertTrue(np.array_equal(kernels.copy(x, y), x))
            v = np.arange(6, dtype=t).reshape(2, 3)
            kernels.swap(v[:, 0], v[::-1, 2])
            self.assertEqual(v.tolist(), [[5, 1, 3], [2, 4, 0]])
            self.assertEqual(kernels.scal(0.5, v[1, ::-1]).tolist(), [0, 2, 1])
        for call, text in ((lambda: kernels.axpy(1.0, v[0], v[1, :2]), "y has 2 elements, but should have 3"),
                           (lambda: kernels.dot(v[0], v[0].astype(np.float32)), "y is of f32, but should be of f64"),
                           (lambda: kernels.nrm2(np.broadcast_to(v[0, :1], 3)), "x has one element for many"),
                           (lambda: kernels.asum(v[0].astype(np.float16)), "type is f16, but must be f32 or f64")):
            with self.assertRaises(tile.ArgumentError) as caught:
                call()
            self.assertIn(text, str(caught.exception))

    def test_triangles(self):
        for t in (np.float32, np.float64):
            a, b, x = floats(7, 7).astype(t), floats(7, 4).astype(t), floats(14).astype(t)[::2]
            a[np.arange(7), np.arange(7)] = 3
            for lower in (True, False):
                half = np.tril(a) if lower else np.triu(a)
                same = half + half.T - np.diag(np.diag(half))
                self.assertTrue(np.allclose(kernels.trmm(a, b.copy(), lower=lower, transpose=True, alpha=2.0), 2 * half.T @ b, atol=1e-4))
                v = kernels.trmv(a, x.copy(), lower=lower)
                self.assertTrue(np.allclose(v, half @ x, atol=1e-4))
                self.assertTrue(np.allclose(kernels.trsv(a, v, lower=lower), x, atol=1e-3))
                self.assertTrue(np.allclose(kernels.symv(a, x, lower=lower), same @ x, atol=1e-4))
                self.assertTrue(np.allclose(kernels.symm(a, b, lower=lower, alpha=-1.0), -(same @ b), atol=1e-4))
                self.assertTrue(np.allclose(kernels.symm(a, b.T.copy(), lower=lower, right=True), b.T @ same, atol=1e-4))
                c = kernels.syrk(b, lower=lower)
                self.assertTrue(np.allclose(c, (np.tril if lower else np.triu)(b @ b.T), atol=1e-4))
                self.assertTrue(np.allclose(kernels.syrk(b, np.ones((4, 4), t), lower=lower, transpose=True, beta=1.0)[0, 0], (b.T @ b)[0, 0] + 1, atol=1e-4))
        for call, text in ((lambda: kernels.trsv(a, b[:, 0][:3].copy()), "x has 3 elements, but should have 7"),
                           (lambda: kernels.symm(a, b, beta=1.0), "beta is not 0, but out is missing"),
                           (lambda: kernels.symm(a, b, right=True), "do not fit for a product"),
                           (lambda: kernels.trmv(b, x.copy()), "a is of (7, 4), but should be one square matrix")):
            with self.assertRaises(tile.ArgumentError) as caught:
                call()
            self.assertIn(text, str(caught.exception))


class Torch(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("torch"), "no torch here")
    def test_results(self):
        import torch
        a, b = torch.randn(5, 7), torch.randn(7, 3)
        c = kernels.gemm(a, b)
        self.assertIsInstance(c, torch.Tensor)
        self.assertTrue(torch.allclose(c, a @ b, atol=1e-4))
        self.assertEqual(kernels.softmax(a.bfloat16()).dtype, torch.bfloat16)
        self.assertTrue(torch.equal(torch.as_tensor(kernels.reduce(a, "argmax")), a.argmax(1).int()))
        with self.assertRaisesRegex(TypeError, "tensors of torch only"):
            kernels.softmax(tile.upload(a))


class Signals(unittest.TestCase):
    def test_fft(self):
        for n in (2, 16, 64, 4096):
            x = (floats(3, n) + 1j * floats(3, n)[::-1]).astype(np.complex64)
            y = kernels.fft(x)
            self.assertTrue(np.allclose(y, np.fft.fft(x), atol=1e-4 * n**0.5))
            self.assertTrue(np.allclose(kernels.fft(y, inverse=True, table=kernels.fft_table(n)), x, atol=1e-4))
        for n, real, most in ((16, np.float32, 1e-5), (128, np.float64, 1e-13), (4, np.float64, 1e-14)):
            x = floats(3, 2, n).astype(real)
            y = kernels.rfft(x)
            self.assertEqual(y.dtype, np.result_type(real, np.complex64))
            self.assertTrue(np.allclose(y, np.fft.rfft(x.astype(float)), atol=most * n))
            self.assertTrue(np.allclose(kernels.irfft(y, table=kernels.rfft_table(n, real)), x, atol=most * n))
            z = x + 1j * x[::-1]
            self.assertTrue(np.allclose(kernels.fft(z), np.fft.fft(z), atol=most * n))
            z = np.stack([z, z[:, ::-1]], -2)  # [3, 2, 2, n]
            self.assertTrue(np.allclose(kernels.fft2(z), np.fft.fft2(z), atol=most * 4 * n))
            self.assertTrue(np.allclose(kernels.fft2(kernels.fft2(z), inverse=True), z, atol=most * 4 * n))
        with self.assertRaises(tile.ArgumentError):
            kernels.rfft(np.zeros(16, np.float16))
        with self.assertRaises(tile.ArgumentError) as caught:
            kernels.fft(np.zeros(12, np.complex64))
        self.assertIn("N is 12, but must be a power of 2", str(caught.exception))

    def test_images(self):
        x, f, b = floats(2, 6, 7, 3), floats(3, 2, 3, 4), floats(4)
        padded = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))
        seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (1, 2))[:, ::2]  # [N, P, Q, C, R, S]
        self.assertTrue(np.allclose(kernels.conv2d(x, f, b, stride=(2, 1), pad=(1, 0)), np.einsum("npqcrs,rsck->npqk", seen, f) + b, atol=1e-4))
        windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 2))[:, ::2, ::3]
        values, places = kernels.max_pool2d(x, (2, 3))
        self.assertTrue(np.array_equal(values, windows.max((-1, -2))))
        self.assertTrue(np.array_equal(np.take_along_axis(x.reshape(2, 42, 3), places.reshape(2, -1, 3), 1).reshape(values.shape), values))
        self.assertTrue(np.allclose(kernels.avg_pool2d(x, (2, 3)), windows.mean((-1, -2)), atol=1e-6))
        dy = floats(*values.shape)
        want = np.zeros((2, 42, 3), np.float32)
        np.put_along_axis(want, places.reshape(2, -1, 3), dy.reshape(2, -1, 3), 1)
        self.assertTrue(np.array_equal(kernels.max_pool2d_backward(dy, places, x.shape, (2, 3)), want.reshape(x.shape)))
        want = np.pad(dy.repeat(2, 1).repeat(3, 2) / 6, ((0, 0), (0, 0), (0, 1), (0, 0)))
        self.assertTrue(np.allclose(kernels.avg_pool2d_backward(dy, x.shape, (2, 3)), want, atol=1e-6))
        with self.assertRaises(tile.ArgumentError) as caught:
            kernels.avg_pool2d_backward(dy, x.shape, (3, 3))
        self.assertIn("dy is of (2, 3, 2, 3), but the windows of x are (2, 2, 2, 3)", str(caught.exception))
        outer, turned = np.ascontiguousarray(x.transpose(0, 3, 1, 2)), np.ascontiguousarray(f.transpose(3, 2, 0, 1))
        y = kernels.conv2d(outer, turned, b, stride=(2, 1), pad=(1, 0), layout="NCHW")
        self.assertTrue(np.allclose(y.transpose(0, 2, 3, 1), np.einsum("npqcrs,rsck->npqk", seen, f) + b, atol=1e-4))
        self.assertTrue(np.array_equal(kernels.max_pool2d(outer, (2, 3), layout="NCHW")[0].transpose(0, 2, 3, 1), values))
        self.assertTrue(np.allclose(kernels.avg_pool2d(outer, (2, 3), layout="NCHW").transpose(0, 2, 3, 1), windows.mean((-1, -2)), atol=1e-6))
        each = floats(3, 2, 1, 3)
        want = np.einsum("npqcrs,rsc->npqc", seen, each[:, :, 0])
        self.assertTrue(np.allclose(kernels.conv2d(x, each, stride=(2, 1), pad=(1, 0), groups=3), want, atol=1e-4))
        with self.assertRaises(tile.ArgumentError) as caught:
            kernels.conv2d(x, floats(3, 2, 4, 4))
        self.assertIn("x has 3 channels, but f 4 in each of 1 groups", str(caught.exception))
        dy = floats(2, 3, 6, 4)
        df, db = kernels.conv2d_backward_weights(x, dy, (3, 2), bias=True, stride=(2, 1), pad=(1, 0))
        self.assertTrue(np.allclose(df, np.einsum("npqcrs,npqk->rsck", seen, dy), atol=1e-4))
        self.assertTrue(np.allclose(db, dy.sum((0, 1, 2)), atol=1e-4))
        dx = kernels.conv2d_backward_data(dy, f, x.shape, stride=(2, 1), pad=(1, 0))
        forward = kernels.conv2d(x, f, stride=(2, 1), pad=(1, 0))
        self.assertAlmostEqual(float((dx * x).sum()), float((forward * dy).sum()), delta=1e-2)
        outer_dy = np.ascontiguousarray(dy.transpose(0, 3, 1, 2))
        same = kernels.conv2d_backward_data(outer_dy, turned, outer.shape, stride=(2, 1), pad=(1, 0), layout="NCHW")
        self.assertTrue(np.allclose(same.transpose(0, 2, 3, 1), dx, atol=1e-4))
        same = kernels.conv2d_backward_weights(outer, outer_dy, (3, 2), stride=(2, 1), pad=(1, 0), layout="NCHW")
        self.assertTrue(np.allclose(same.transpose(2, 3, 1, 0), df, atol=1e-4))
        for call in (lambda: kernels.conv2d_backward_data(dy, f, x.shape), lambda: kernels.conv2d_backward_weights(x, dy, (3, 2))):
            with self.assertRaises(tile.ArgumentError) as caught:
                call()
            self.assertIn("dy is of (2, 3, 6, 4), but the result of conv2d of (2, 4, 6, 4)", str(caught.exception))

    def test_blocks(self):
        w = np.random.default_rng(2).integers(-127, 127, (6, 2, 34)).astype(np.int8).view(np.uint8)
        w[:, :, :2] = np.array([0.5], np.float16).view(np.uint8)
        values = w[:, :, 2:].view(np.int8).reshape(6, 64) * 0.5
        for m in (1, 3, 40):
            a = floats(m, 64)
            self.assertTrue(np.allclose(kernels.gemm_blocks(a, w, "q8_0"), a @ values.T, rtol=1e-4, atol=1e-2))
            self.assertTrue(np.allclose(kernels.gemm_blocks(a, w, "q8_0", round_a=True), a @ values.T, rtol=0.05, atol=20))
        with self.assertRaises(tile.ArgumentError) as caught:
            kernels.gemm_blocks(a, w, "q4_0")
        self.assertIn("do not fit for a product of q4_0", str(caught.exception))


class Empty(unittest.TestCase):
    def test_no_elements(self):
        """Arrays of no elements, whose strides are 0 in NumPy."""
        for shape in ((3, 0), (0, 3), (0, 0), (2, 3, 0), (0,)):
            x = np.zeros(shape, np.float32)
            for function in (kernels.softmax, kernels.log_softmax, kernels.layer_norm, kernels.rms_norm, kernels.scan, kernels.sort):
                self.assertEqual(function(x).shape, shape)
            for axis in range(len(shape)):
                self.assertTrue(np.array_equal(kernels.reduce(x, "sum", axis), x.sum(axis)))
        for a, b in (((3, 0), (0, 2)), ((0, 3), (3, 2)), ((3, 2), (2, 0)), ((2, 3, 0), (2, 0, 4))):
            x, y = np.zeros(a, np.float32), np.zeros(b, np.float32)
            self.assertTrue(np.array_equal(kernels.gemm(x, y), x @ y))
        self.assertTrue(np.array_equal(kernels.gemm(np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32), bias=floats(2)), [floats(2)] * 3))


class Devices(unittest.TestCase):
    def test_ref(self):
        a = floats(3, 4)
        self.assertTrue(np.allclose(kernels.gemm(a, a.T, device="ref"), a @ a.T, atol=1e-5))

    def test_stream(self):
        """A call on a stream returns at once; the stream keeps the arrays."""
        a, out = floats(200, 200), np.empty((200, 200), np.float32)
        stream = tile.Stream()
        want = a @ a
        kernels.gemm(a, a, out, stream=stream)
        del a
        stream.synchronize()
        self.assertTrue(np.allclose(out, want, atol=1e-3))


if __name__ == "__main__":
    unittest.main()
