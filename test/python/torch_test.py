"""torch tensors as arguments of kernels: no copies, torch's bf16 and f8, views, and CUDA tensors where there are any."""
import unittest

import torch

import tile
from tile import arrays

SCALE = "kernel scale(T x[R : s, C : t], f32 a, const type T = f32) grid(R) require(C <= 64) { x[pid(0), 0 +: 64] = cast((f32)x[pid(0), 0 +: 64] * a, T); }"


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
        with self.assertRaisesRegex(tile.ArgumentError, "expects elements of type f32, got bf16"):
            tile.kernel(SCALE)(x.to(torch.bfloat16), 2)

    @unittest.skipUnless(hasattr(torch, "float8_e4m3fn"), "this torch has no f8")
    def test_bytes(self):
        x = torch.tensor([[1.0, 2.0, 3.0]]).to(torch.float8_e4m3fn)
        tile.kernel(SCALE, T="f8e4m3")(tile.view(x.view(torch.uint8), "f8e4m3"), 2)
        self.assertEqual(x.float().tolist(), [[2, 4, 6]])

    def test_gradients(self):
        x = torch.ones(3, 4, requires_grad=True)
        with self.assertRaises((BufferError, RuntimeError)):
            tile.kernel(SCALE)(x, 2)
        tile.kernel(SCALE)(x.detach(), 2)

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
