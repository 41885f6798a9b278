#!/usr/bin/env python3
"""arm_counts.py on assembly written by hand, which needs no compiler; where llvm-mca-19 is, its cycles, too."""
import shutil
import unittest

import arm_counts

ASSEMBLY = """
    .text
kernel:
    mov    x8, #0
.LBB0_1:
    ldp    q0, q1, [x1], #32
    fadd    v0.4s, v0.4s, v2.4s
    str    q3, [sp, #16]
    stp    q0, q1, [x0], #32 // a comment
    cmp    x8, x9
    b.lt    .LBB0_1
.LBB0_2:
    mov    x7, #0
.LBB0_3:
    ldr    w4, [x2, x7]
    st1    { v1.s }[2], [x3], #4
    str    q1, [x5, x7]
    tbnz    w4, #3, .LBB0_3
    tbz    w5, #0, .LBB0_2
    ret
other:
.LBB1_1:
    smmla    v1.4s, v2.16b, v3.16b
    usdot    v4.4s, v2.16b, v3.16b
    bfmmla    v5.4s, v6.8h, v7.8h
    bfdot    v5.4s, v6.8h, v7.8h
    fmla    v5.4s, v6.4s, v7.s[1]
    smlal2    v5.4s, v6.8h, v7.8h
    b.ne    .LBB1_1
""".replace("    ", "\t")


class Test(unittest.TestCase):
    def test_inner_loops(self):
        f = arm_counts.functions(ASSEMBLY)
        self.assertEqual([len(body) for body in arm_counts.inner_loops(f["kernel"])], [6, 4])
        self.assertEqual(len(arm_counts.inner_loops(f["other"])[0]), 7)

    def test_stores(self):
        for line, n in (("str q0, [x1]", 16), ("stp d0, d1, [x1, #8]", 16), ("strb w1, [x2]", 1), ("sturh w1, [x2]", 2), ("str q0, [sp, #8]", 0),
                        ("st3 { v0.16b, v1.16b, v2.16b }, [x0], #48", 48), ("st2 { v0.4s, v1.4s }, [x0]", 32), ("st1 { v0.8b - v3.8b }, [x0]", 32),
                        ("st1 { v0.s }[1], [x0]", 4), ("st1w { z0.s }, p0, [x0]", 16), ("st1b { z0.s }, p0, [x0]", 4), ("str z0, [x0]", 16)):
            self.assertEqual(arm_counts.bytes_of_store("\t" + line), n, line)

    def test_products(self):
        body = arm_counts.inner_loops(arm_counts.functions(ASSEMBLY)["other"])[0]
        self.assertEqual([arm_counts.products_of(x) for x in body], [32, 16, 16, 8, 4, 4, 0])

    @unittest.skipUnless(shutil.which("llvm-mca-19"), "needs llvm-mca-19")
    def test_hot(self):
        made, cycles, _ = arm_counts.hot(arm_counts.functions(ASSEMBLY)["kernel"], 4, False, "neoverse-v2", False)
        self.assertEqual(made, 8)  # not the loop that goes by a mask's bits
        self.assertTrue(1 <= cycles < 4, cycles)


if __name__ == "__main__":
    unittest.main()
