"""tile.op: operators of torch made of kernels: schema, fake tensors, autograd, torch.compile, autocast, what is refused."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import torch

import tile
from torch.autograd import forward_ad
from torch.library import opcheck

README = os.path.join(os.path.dirname(os.path.abspath(tile.__file__)), os.pardir, "README.md")

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "rms.tile"), encoding="utf-8") as source:
    NORM = source.read()
PAIR = """
kernel pair(const f64 a[N], const f64 b[N], f64 p[N], f64 q[N]) grid(cdiv(N, 64))
{
    int n = pid(0) * 64;
    p[n +: 64] = a[n +: 64] * b[n +: 64];
    q[n +: 64] = a[n +: 64] + 3 * b[n +: 64];
}
kernel half(const f64 dp[N], const f64 dq[N], f64 t[N], f64 u[N]) grid(cdiv(N, 64))
{
    int n = pid(0) * 64;
    t[n +: 64] = dp[n +: 64];
    u[n +: 64] = dq[n +: 64];
}
kernel rest(const f64 a[N], const f64 b[N], const f64 t[N], const f64 u[N], f64 da[N], f64 db[N]) grid(cdiv(N, 64))
{
    int n = pid(0) * 64;
    da[n +: 64] = t[n +: 64] * b[n +: 64] + u[n +: 64];
    db[n +: 64] = t[n +: 64] * a[n +: 64] + 3 * u[n +: 64];
}
"""
SCALE = "kernel scale(f32 x[R : s, C : t], f32 a, const f32 OFF = 0) grid(R) require(C <= 64) { x[pid(0), 0 +: 64] = a * x[pid(0), 0 +: 64] + OFF; }"
COUNT = "kernel count(const i32 x[N], i32 n[(bins)], bool on, i32 bins) grid(N) { if (on) atomic_add(n[x[pid(0)]], 1); }"
TAKE = "kernel take(const f32 x[N], f32 y[P], i32 step) grid(P) { y[pid(0)] = x[pid(0) * step]; }"


@tile.op("tile_test::rms", NORM, "rms", backward="rms_backward", zeros=["dw"], autocast="bf16", B=64)
def rms(x, w, eps=1e-5):
    """The norm of rows."""


@tile.op("tile_test::rms_f64", NORM, "rms", backward="rms_backward", zeros=["dw"], B=64, T="f64", S="f64")
def rms_f64(x, w, eps=0.5):
    pass


@tile.op("tile_test::pair", PAIR, "pair", backward=["half", "rest"])
def pair(a, b):
    pass


@tile.op("tile_test::scale_", SCALE, "scale", OFF=1)
def scale_(x, a):
    pass


@tile.op("tile_test::take", TAKE)
def take(x, step=2):
    return x.new_empty((x.shape[0] + step - 1) // step)


def rms_of(x, w, eps=1e-5):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w


class Operators(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        torch._dynamo.reset()

    def test_results(self):
        x, w = torch.randn(3, 10), torch.randn(10)
        y, r = rms(x, w)
        torch.testing.assert_close(y, rms_of(x, w))
        torch.testing.assert_close(rms(x, w, eps=0.25)[0], rms_of(x, w, 0.25))
        self.assertEqual((r.shape, rms.__doc__), ((3,), "The norm of rows."))
        self.assertEqual(str(torch.ops.tile_test.rms.default._schema),
                         "tile_test::rms(Tensor x, Tensor w, float eps=1.0000000000000001e-05) -> (Tensor, Tensor)")

    def test_opcheck(self):
        x, w = torch.randn(3, 10), torch.randn(10)
        for needs in (False, True):
            given = (x.clone().requires_grad_(needs), w.clone().requires_grad_(needs))
            opcheck(rms, given)
            opcheck(rms, (given[0].T.contiguous().T, given[1], 0.5))
        opcheck(pair, (torch.randn(100, dtype=torch.float64, requires_grad=True), torch.randn(100, dtype=torch.float64)))
        opcheck(scale_, (torch.randn(4, 5), 2.0))
        opcheck(take, (torch.randn(7),))
        opcheck(take, (torch.randn(7), 3))

    def test_gradcheck(self):
        x, w = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 10), (10,)))
        self.assertTrue(torch.autograd.gradcheck(lambda x, w: rms_f64(x, w)[0], (x, w)))
        self.assertTrue(torch.autograd.gradcheck(lambda x, w: rms_f64(x.T, w)[0], (torch.randn(10, 3, dtype=torch.float64, requires_grad=True), w)))
        a, b = (torch.randn(100, dtype=torch.float64, requires_grad=True) for _ in "ab")
        self.assertTrue(torch.autograd.gradcheck(pair, (a, b)))
        self.assertTrue(torch.autograd.gradcheck(lambda a, b: pair(a, b)[1], (a, b)))

    def test_gradients(self):
        """An expanded gradient, a result without one, an input that needs none."""
        x, w = torch.randn(3, 10, requires_grad=True), torch.randn(10)
        y, r = rms(x, w)
        self.assertFalse(r.requires_grad)
        y.sum().backward()
        z = x.detach().clone().requires_grad_()
        rms_of(z, w).sum().backward()
        torch.testing.assert_close(x.grad, z.grad)
        with torch.no_grad():
            self.assertFalse(rms(x, w)[0].requires_grad)

    def test_lost_gradient(self):
        with self.assertRaisesRegex(tile.NotFoundError, "no kernel 'rms_backward_x'; it has rms, rms_backward"):
            tile.op("tile_test::rms_lost", NORM, "rms", backward="rms_backward_x", B=64)
        source = PAIR + "kernel a_only(const f64 dp[N], const f64 b[N], f64 da[N]) grid(1) require(N <= 64) { da[0 +: 64] = dp[0 +: 64] * b[0 +: 64]; }"

        @tile.op("tile_test::pair_a", source, "pair", backward="a_only")
        def pair_a(a, b):
            pass
        a, b = (torch.randn(10, dtype=torch.float64, requires_grad=True) for _ in "ab")
        pair_a(a, b.detach())[0].sum().backward()
        torch.testing.assert_close(a.grad, b.detach())
        with self.assertRaisesRegex(tile.ArgumentError, "tile_test::pair_a: 'b' requires grad, and the backward kernels do not write 'db'"):
            pair_a(a, b)

    def test_no_backward(self):
        """An operator without one takes tensors that require grad; where the gradient is asked for, it says how to give it one."""
        y = take(torch.randn(8, requires_grad=True))
        with self.assertRaisesRegex(RuntimeError, "tile_test::take has no gradient: .* tile.op.*backward="):
            y.sum().backward()

    def test_compile(self):
        """One graph, forwards and backwards, for shapes that vary too."""
        w = torch.randn(10)
        f = torch.compile(lambda x: rms(2 * x, w)[0].sum(), backend="aot_eager", fullgraph=True, dynamic=True)
        for rows in (3, 5, 8):
            x = torch.randn(rows, 10, requires_grad=True)
            y = x.detach().clone().requires_grad_()
            f(x).backward()
            rms_of(2 * y, w).sum().backward()
            torch.testing.assert_close(x.grad, y.grad)

        def in_place(x):
            y = x + 1
            scale_(y, 3.0)
            return y * take(x[0], 3).sum()
        x = torch.randn(4, 10)
        torch.testing.assert_close(torch.compile(in_place, backend="aot_eager", fullgraph=True)(x), ((x + 1) * 3 + 1) * x[0, ::3].sum())

    def test_in_place(self):
        x = torch.arange(12.0).reshape(3, 4)
        self.assertIsNone(scale_(x.T, 2.0))
        self.assertTrue(torch.equal(x, 2 * torch.arange(12.0).reshape(3, 4) + 1))

    def test_open_types(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            x, w = torch.randn(3, 10).to(dtype), torch.randn(10).to(dtype)
            y, r = rms(x, w)
            self.assertEqual((y.dtype, r.dtype), (dtype, torch.float32))
            torch.testing.assert_close(y.float(), rms_of(x.float(), w.float()), rtol=1e-2, atol=1e-2)

    def test_autocast(self):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertEqual(rms(torch.randn(3, 10), torch.randn(10))[0].dtype, torch.bfloat16)
            self.assertEqual(take(torch.randn(10)).dtype, torch.float32)

    def test_zeros(self):
        """Integers and bools, and a shape by a number."""
        @tile.op("tile_test::count", COUNT, zeros=["n"])
        def count(x, bins, on=True):
            pass
        x = torch.tensor([0, 2, 2, 1, 2], dtype=torch.int32)
        self.assertEqual(count(x, 4).tolist(), [1, 1, 3, 0])
        self.assertEqual(count(x, 4, on=False).tolist(), [0, 0, 0, 0])

    def test_zero_size(self):
        self.assertEqual(rms(torch.randn(0, 10), torch.randn(10))[0].shape, (0, 10))
        self.assertEqual(take(torch.randn(0)).shape, (0,))

    def test_readme(self):
        """The example of python/README.md, and what it prints there."""
        with open(README, encoding="utf-8") as f:
            text = f.read()
        files = dict(re.findall(r"`(swish\.\w+)`:\n+```\w+\n(.*?)```", text, re.S))
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(content)
            p = subprocess.run([sys.executable, "swish.py"], cwd=folder, capture_output=True, text=True)
        self.assertEqual((p.stderr * (p.returncode != 0), len(files)), ("", 2))
        self.assertIn("$ python3 swish.py\n" + p.stdout, text)

    def test_refused(self):
        with self.assertRaisesRegex(RuntimeError, "tile_test::rms has no rule for torch.vmap"):
            torch.vmap(rms, (0, None))(torch.randn(2, 3, 10), torch.randn(10))
        x, w = torch.randn(3, 10), torch.randn(10)
        with self.assertRaisesRegex(RuntimeError, "tile_test::rms has no rule for differentiation in forward mode .*: differentiate it by backward"):
            torch.func.jvp(lambda x: rms(x, w), (x,), (x,))
        with forward_ad.dual_level(), self.assertRaisesRegex(RuntimeError, "no rule for differentiation in forward mode"):
            rms(forward_ad.make_dual(x, x), w)
        with self.assertRaisesRegex(tile.ArgumentError, "an operator's name has a namespace before it, 'mine::take', not 'take'"):
            tile.op("take", TAKE)
        with self.assertRaisesRegex(tile.ArgumentError, "the first argument is the operator's name, as 'mine::swish', not 'kernel "):
            tile.op(TAKE, "take")
        with self.assertRaisesRegex(tile.ArgumentError, "parameter 'w' expects elements of type f32, got f64"):
            rms(torch.randn(3, 10), torch.randn(10).double())
        for words, function, text in (
                ((TAKE,), lambda z: None, "kernel 'take' has no parameter 'z'; it has x, y, step"),
                ((TAKE,), lambda x: None, "the function lacks the parameter 'step' of kernel 'take'"),
                (("struct s { f32 a; }; kernel k(const f32 x[N], s p) grid(1) { }",), lambda x, p: None, "'p' is a struct"),
                ((PAIR, "pair", "pair"), lambda a, b: None, "backward kernel takes a, b, p, q, dp, dq and writes da, db, by these names"),
                ((SCALE + "kernel b(const f32 x[N], f32 dx[N]) grid(1) { }", "scale", "b"), lambda x, a: None, "'x' is changed in place")):
            with self.assertRaisesRegex(tile.ArgumentError, text):
                tile.op("tile_test::refused", *words[:2], backward=words[2:])(function)
        with self.assertRaisesRegex(tile.ArgumentError, "the shape of 'y' does not follow from the arguments .'P'.: let the decorated function"):
            tile.op("tile_test::take_unknown", TAKE)(lambda x, step: None)(torch.randn(7), 2)
        with self.assertRaisesRegex(tile.NotFoundError, "kernel 'take' has no constant 'Q'"):
            tile.op("tile_test::refused", TAKE, Q=3)


if __name__ == "__main__":
    unittest.main()
