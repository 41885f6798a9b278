"""Extents as python/tile/extents.py reads and computes them."""
import unittest

from tile import extents

VALUES = {"R": 3, "C": 4, "TA": True, "K": 5, "M": 6, "N": 100, "G": 2, "t.D": 9}


class Extents(unittest.TestCase):
    def test_values(self):
        for text, expected in (("R : ld, C", [3, 4]), ("2 * C : b, (t.D)", [8, 9]), ("TA ? K : M : lda, !TA ? K : M", [5, 6]),
                               ("cdiv(N, K / G), -1 + 3 * 2 - 1", [50, 4]), ("i64 N", [100]), ("N - R - G, N % 7", [95, 2]),
                               ("(N + R * G) / (C - 1), 7 / 2 * 2", [35, 6]), ("R < C && C <= 4 || 0 ? max(R, C) : 0", [4]),
                               ("TA ? TA ? 1 : 2 : 3", [1]), ("floor_mod(N, C), floor_div(N, 7), min(abs(-5), N)", [0, 14, 5])):
            self.assertEqual([extents.value(axis.extent, VALUES) for axis in extents.axes(text)], expected, text)

    def test_strides(self):
        self.assertEqual([axis.stride and axis.stride.text for axis in extents.axes("TA ? K : M : lda, C, N : 1")], ["lda", None, "1"])

    def test_bound(self):
        values = {"TA": False}
        for axis, size in zip(extents.axes("TA ? K : M, TB ? K : N, 2 * R, C"), (1, 2, 3, 4)):
            extents.bind(axis.extent, size, values)
        self.assertEqual(values, {"TA": False, "M": 1, "C": 4})

    def test_unknown(self):
        for text in ("Q", "C * Q", "device.sms", "sqrt(C)"):
            with self.assertRaises(extents.Unknown):
                extents.value(extents.axes(text)[0].extent, VALUES)


if __name__ == "__main__":
    unittest.main()
