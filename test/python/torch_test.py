"""torch tensors as arguments of kernels: no copies, torch's bf16 and f8, views, and CUDA tensors where there are any."""
import unittest

import torch

import tile
from tile import arrays, native

SCALE = "kernel scale(T x[R : s, C : t], f32 a, const type T = f32) grid(R) require(C <= 64) { x[pid(0), 0 +: 64] = cast((f32)x[pid(0), 0 +: 64] * a, T); }"

COPY = "kernel copy(const f32 x[R : s, C : t], f32 y[R : u, C : v]) grid(R) require(C <= 64) { y[pid(0), 0 +: 64] = x[pid(0), 0 +: 64]; }"
COUNT = "kernel count(u32 n[N]) grid(1) require(N >= 1) { n[0] = n[0] + 1; }"


class Torch(unittest.TestCase):
    def test_no_copies(self):
        x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
        self.assertEqual(arrays.memory_of(x).address, x.data_ptr())
        self.assertEqual(arrays.memory_of(x[1:, 2:]).address, x[1:, 2:].data_ptr())
        tile.kernel(SCALE)(x, 2)
        self.assertTrue(torch.equal(x, 2 * torch.arange(12.0).reshape(3, 4)))

    def test_strides(self):
        x = torch.arange(60, dtype=torch.float32).reshape(6, 10)
        expected = x.clone()
        expected[::2, 1::3] *= 3
        tile.kernel(SCALE)(x[::2, 1::3], torch.tensor(3.0))
        self.assertTrue(torch.equal(x, expected))
        tile.kernel(SCALE)(x.T, 1)

    def test_types(self):
        for dtype, name in ((torch.bfloat16, "bf16"), (torch.float16, "f16"), (torch.float64, "f64")):
            x = torch.arange(12).reshape(3, 4).to(dtype)
            tile.kernel(SCALE, T=name)(x, 2)
            self.assertTrue(torch.equal(x, 2 * torch.arange(12).reshape(3, 4).to(dtype)), name)
            self.assertEqual(tile.kernel(SCALE, T=dtype).consts, {"T": name})
        with self.assertRaisesRegex(tile.ArgumentError, "expects elements of type f32, got bf16"):
            tile.kernel(SCALE)(x.to(torch.bfloat16), 2)

    @unittest.skipUnless(hasattr(torch, "float8_e4m3fn"), "this torch has no f8")
    def test_bytes(self):
        x = torch.tensor([[1.0, 2.0, 3.0]]).to(torch.float8_e4m3fn)
        tile.kernel(SCALE, T="f8e4m3")(tile.view(x.view(torch.uint8), "f8e4m3"), 2)
        self.assertEqual(x.float().tolist(), [[2, 4, 6]])

    def test_gradients(self):
        """Where a gradient would be lost a call says so, by the parameter's name; where none is wanted it works."""
        x = torch.ones(3, 4, requires_grad=True)
        for values in ((x, torch.empty(3, 4)), (torch.ones(3, 4), x * 1)):
            with self.assertRaisesRegex(tile.ArgumentError, "parameter '[xy]': the tensor requires grad.*tile.op"):
                tile.kernel(COPY)(*values)
        y = torch.empty(3, 4)
        tile.kernel(COPY)(x.detach(), y)
        self.assertTrue(torch.equal(y, torch.ones(3, 4)))
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                y = torch.empty(3, 4)
                tile.kernel(COPY)(x, y)
                tile.kernel(COPY)(torch.nn.Parameter(2 * x), y)
                self.assertTrue(torch.equal(y, 2 * torch.ones(3, 4)))

    def test_saved_for_backward(self):
        """A kernel that overwrites what a backward pass needs is noticed, as operators of torch are."""
        x = torch.ones(3, 4, requires_grad=True)
        z = (x * 2).exp()
        with torch.no_grad():
            tile.kernel(SCALE)(z, 2)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            z.sum().backward()

    def test_lazily_negated(self):
        z = torch.tensor([[1 + 2j, 3 + 4j]])
        imaginary, y = z.conj().imag, torch.zeros(1, 2)
        self.assertTrue(imaginary.is_neg())
        for part, expected in ((z.imag, [[2, 4]]), (imaginary, [[-2, -4]])):  # the same strides
            tile.kernel(COPY)(part, y)
            self.assertEqual(y.tolist(), expected)
        with self.assertRaisesRegex(tile.ArgumentError, "'y': the kernel writes to it.*resolve_neg"):
            tile.kernel(COPY)(y, imaginary)
        with self.assertRaisesRegex(TypeError, "'x': no element type of kernels is torch.complex64: torch.view_as_real"):
            tile.kernel(COPY)(z, y)

    def test_no_memory(self):
        y = torch.zeros(3, 4)
        for x in (torch.ones(3, 4).to_sparse(), torch.ones(3, 4, device="meta")):
            with self.assertRaisesRegex(tile.ArgumentError, "'x': Tensor .* has no elements in memory"):
                tile.kernel(COPY)(x, y)
        with self.assertRaisesRegex(tile.ArgumentError, "'x': Tensor .* under torch.func"):
            torch.vmap(lambda x: tile.kernel(COPY)(x, y))(torch.ones(2, 3, 4))

    def test_tangents(self):
        x, y = torch.ones(3, 4), torch.zeros(3, 4)
        copy = tile.kernel(COPY)
        copy(x, y)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x)
            with self.assertRaisesRegex(tile.ArgumentError, "'x': the tensor has a tangent .*: pass forward_ad.unpack_dual"):
                copy(dual, y)
            copy(torch.autograd.forward_ad.unpack_dual(dual).primal * 2, y)
        self.assertEqual(y.tolist(), (x * 2).tolist())

    @unittest.skipUnless(native.launcher, "no launcher.c")
    def test_quick(self):
        """Calls by launcher.c take tensors that tile.h can take, and leave the others to be looked at."""
        x, y, copy = torch.ones(3, 4), torch.zeros(3, 4), tile.kernel(COPY)
        copy(x, y)
        self.assertTrue(copy.launcher.call((5 * x, y)))
        self.assertEqual(y.tolist(), (5 * x).tolist())
        grad, z = torch.ones(3, 4, requires_grad=True), torch.view_as_complex(torch.ones(3, 4, 2))
        for other in (grad, z.conj().imag, x.to(torch.float64), torch.ones(4, 3).T, torch.ones(3, 4, device="meta"), torch.nn.Parameter(x), torch.ones(3, 4, 1)):
            self.assertFalse(copy.launcher.call((other, y)))
        self.assertFalse(copy.launcher.call((x, grad)))
        with torch.no_grad():
            self.assertTrue(copy.launcher.call((grad, y)))
            copy(torch.nn.Parameter(x), y)
            self.assertTrue(copy.launcher.call((torch.nn.Parameter(x), y)))
        before = y._version
        self.assertTrue(copy.launcher.call((x, y)))
        self.assertGreater(y._version, before)
        with torch.autograd.forward_ad.dual_level():
            self.assertFalse(copy.launcher.call((x, y)))
        with self.assertRaisesRegex(tile.ArgumentError, "'x': Tensor .* under torch.func"):
            torch.vmap(lambda x: copy(x, y))(torch.ones(2, 3, 4))
        with self.assertRaisesRegex(tile.ArgumentError, "'x': "):
            torch.func.grad(lambda x: (copy(x, y), x.sum())[1])(torch.ones(3, 4))

    def test_signs(self):
        with self.assertRaisesRegex(tile.ArgumentError, r"'n': expects elements of type u32, got i32: tile.view\(x, \"u32\"\)"):
            tile.kernel(COUNT)(torch.zeros(4, dtype=torch.int32))
        n = torch.zeros(4, dtype=torch.int32)
        tile.kernel(COUNT)(tile.view(n, "u32"))
        self.assertEqual(n.tolist(), [1, 0, 0, 0])

    def test_zero_size(self):
        for shape in ((0, 4), (3, 0)):
            y = torch.empty(shape)
            tile.kernel(COPY)(torch.empty(shape), y)

    def test_device_arrays(self):
        for dtype in ("f32", "bf16", "u8", "i64"):
            a = tile.empty((3, 4), dtype)
            t = torch.from_dlpack(a)
            self.assertEqual((t.data_ptr(), t.dtype, t[1:, ::2].shape), (a.address, getattr(torch, {"f32": "float32", "bf16": "bfloat16", "u8": "uint8",
                                                                                                 "i64": "int64"}[dtype]), (2, 2)))
            t.fill_(3)
            self.assertEqual(torch.from_dlpack(a[1:, ::2]).tolist(), [[3, 3], [3, 3]])

    def test_compile(self):
        """A call breaks the graph, and nothing of the package is traced."""
        copy = tile.kernel(COPY)

        def f(x):
            y = torch.empty_like(x)
            copy(x + 1, y)
            return y * 2

        torch._dynamo.utils.counters.clear()
        self.assertTrue(torch.equal(torch.compile(f, backend="eager")(torch.ones(3, 4)), 4 * torch.ones(3, 4)))
        self.assertEqual(sum(torch._dynamo.utils.counters["graph_break"].values()), 1)
        torch._dynamo.reset()
        with self.assertRaises(torch._dynamo.exc.Unsupported):
            torch.compile(f, backend="eager", fullgraph=True)(torch.ones(3, 4))

    @unittest.skipUnless(torch.cuda.is_available(), "no CUDA device")
    def test_cuda(self):
        x = torch.ones(3, 4, device="cuda:0")
        scale = tile.kernel(SCALE, device="cuda:0")
        with torch.cuda.stream(torch.cuda.Stream()):
            scale(x, 2)
            x += 1
        torch.cuda.synchronize()
        self.assertTrue((x == 3).all())
        with self.assertRaisesRegex(tile.ArgumentError, "host's memory"):
            scale(torch.ones(3, 4), 2)


if __name__ == "__main__":
    unittest.main()
