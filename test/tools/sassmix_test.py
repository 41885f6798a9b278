#!/usr/bin/env python3
"""sassmix on cubins made here, word by word: needs no NVIDIA tool."""
import contextlib
import io
import os
import struct
import sys
import tempfile
import unittest

import sassmix

GUARDED = 0  # the predicate register of a guard


def word(code, guard=7, offset=None, sm=80):
    """An instruction of 12 opcode bits; offset: of a branch, in instructions from the next one."""
    low, high = code | guard << 12, 0x000fea0003800000
    if offset is not None:
        units = offset * 16 // 4
        if sm >= 90:
            low |= (units & 0xff) << 16
            units >>= 8
        low |= (units & ((1 << 30) - 1)) << 34
        high |= units >> 30 & 0x3ffff
    return struct.pack("<QQ", low, high)


def cubin(texts, sm=80, abi=8):
    """An ELF file with a section per kernel."""
    names = b"\0" + b"".join(b".text." + n.encode() + b"\0" for n in texts) + b".shstrtab\0"
    bodies, at = b"", 64
    heads = [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for n, text in texts.items():
        heads.append(struct.pack("<IIQQQQIIQQ", names.index(b".text." + n.encode() + b"\0"), 1, 6, 0, at + len(bodies), len(text), 0, 0, 128, 0))
        bodies += text
    heads.append(struct.pack("<IIQQQQIIQQ", names.index(b".shstrtab"), 3, 0, 0, at + len(bodies), len(names), 0, 0, 1, 0))
    bodies += names
    flags = sm << 8 if abi >= 8 else sm
    ident = b"\x7fELF\x02\x01\x01\x41" + bytes([abi]) + bytes(7)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at + len(bodies), flags, 64, 0, 0, 64, len(heads), len(heads) - 1)
    return head + bodies + b"".join(heads)


MOV, FFMA, FADD, IMAD, HMMA, EXIT, BRA, NOP, CALL = 0x202, 0x223, 0x221, 0x224, 0x23c, 0x94d, 0x947, 0x918, 0x944


def nest(sm):
    """mov; outer { ffma; inner { hmma; hmma; bra inner }; bra outer }; exit; bra itself; nop"""
    return b"".join([word(MOV), word(FFMA), word(HMMA), word(HMMA), word(BRA, GUARDED, -3, sm), word(BRA, GUARDED, -5, sm),
                     word(EXIT), word(BRA, 7, -1, sm), word(NOP)])


class SassMix(unittest.TestCase):
    def analyze(self, data, kernel=None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.cubin")
            with open(path, "wb") as f:
                f.write(data)
            return sassmix.analyze_file(path, kernel)

    def run_main(self, data, *args):
        out = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            path = os.path.join(folder, "x.cubin")
            with open(path, "wb") as f:
                f.write(data)
            return sassmix.main([path, *args]), out.getvalue()

    def test_only_the_innermost_loop_is_listed(self):
        for sm, abi in ((80, 7), (80, 8), (89, 8), (90, 8)):
            kernel, = self.analyze(cubin({"k": nest(sm)}, sm, abi))
            self.assertEqual((kernel["total"], kernel["mix"]["BRA"], kernel["mix"]["NOP"]), (7, 2, 0))
            loop, = kernel["loops"]
            self.assertEqual((loop["from"], loop["to"], dict(loop["mix"])), (0x20, 0x50, {"HMMA": 2, "BRA": 1}))

    def test_main_loop_has_the_matrix_instructions(self):
        one = b"".join([word(FFMA)] * 9 + [word(BRA, GUARDED, -10)])
        two = b"".join([word(HMMA), word(BRA, GUARDED, -2)])
        kernel, = self.analyze(cubin({"k": one + two + word(EXIT)}))
        self.assertEqual([x["main"] for x in kernel["loops"]], [False, True])

    def test_main_loop_without_matrix_instructions(self):
        """Has most of floating point: an IMAD may be a move."""
        one = b"".join([word(IMAD)] * 2 + [word(FFMA), word(BRA, GUARDED, -4)])
        two = b"".join([word(FADD), word(FFMA), word(BRA, GUARDED, -3)])
        kernel, = self.analyze(cubin({"k": one + two + word(EXIT)}))
        self.assertEqual([x["main"] for x in kernel["loops"]], [False, True])

    def test_blocks_behind_the_end_belong_to_the_loop(self):
        """0: ffma; 1: @p bra 4; 2: @p bra 0; 3: exit; 4: mov; 5: bra 2"""
        text = b"".join([word(FFMA), word(BRA, GUARDED, 2), word(BRA, GUARDED, -3), word(EXIT), word(MOV), word(BRA, 7, -4)])
        loop, = self.analyze(cubin({"k": text}))[0]["loops"]
        self.assertEqual((loop["total"], loop["mix"]["MOV"], loop["mix"]["EXIT"]), (5, 1, 0))

    def test_a_loop_that_is_entered_twice(self):
        """bra 2; 1: ffma; 2: hmma; hmma; bra 1; exit"""
        text = b"".join([word(BRA, GUARDED, 1), word(FFMA), word(HMMA), word(HMMA), word(BRA, GUARDED, -4), word(EXIT)])
        kernel, = self.analyze(cubin({"k": text}))
        self.assertEqual([(x["total"], x["short"]["total"], x["mix"]["HMMA"]) for x in kernel["loops"]], [(4, 4, 2)])

    def test_a_jump_back_that_is_no_loop(self):
        """0: @p bra 3; 1: mov; 2: exit; 3: bra 1: the target does not dominate its source"""
        text = b"".join([word(BRA, GUARDED, 2), word(MOV), word(EXIT), word(BRA, 7, -3), word(NOP)])
        self.assertEqual(self.analyze(cubin({"k": text}))[0]["loops"], [])

    def test_a_loop_left_by_call(self):
        """0: ffma; 1: @p call 3; 2: bra 0; 3: exit"""
        text = b"".join([word(FFMA), word(CALL, GUARDED, 1), word(BRA, 7, -3), word(EXIT)])
        loop, = self.analyze(cubin({"k": text}))[0]["loops"]
        self.assertEqual(loop["total"], 3)

    def test_kernels_by_name(self):
        data = cubin({"gemm_1": word(EXIT), "gemm_0": word(EXIT), "gemmx_0": word(EXIT)})
        self.assertEqual([k["kernel"] for k in self.analyze(data, "gemm")], ["gemm_0", "gemm_1"])
        self.assertEqual([k["kernel"] for k in self.analyze(data, "gemm_1")], ["gemm_1"])
        self.assertEqual(self.run_main(data, "--kernel", "x")[0], 1)

    def test_requirements(self):
        data = cubin({"k": nest(80)})
        self.assertEqual(self.run_main(data, "--require", "(all - HMMA) / HMMA <= 0.5", "--require", "kernel.FFMA == 1")[0], 0)
        status, text = self.run_main(data, "--require", "(all - HMMA) / HMMA < 0.5")
        self.assertEqual(status, 1)
        self.assertIn("k: (all - HMMA) / HMMA < 0.5 does not hold: 0.5", text)
        for wrong in ("HMMMA == 1", "HMMA", "__import__('os')", "HMMA ==", "HMMA.real == 1", "1 < HMMA < 3"):
            self.assertEqual(self.run_main(data, "--require", wrong)[0], 2, wrong)

    def test_unknown_operations_are_seen(self):
        self.assertEqual(dict(self.analyze(cubin({"k": word(0x9ff)}))[0]["mix"]), {"op_1ff": 1})

    def test_what_never_runs_is_a_nop(self):
        text = word(FFMA, sassmix.NEVER) + word(FFMA, GUARDED) + word(EXIT)
        self.assertEqual(dict(self.analyze(cubin({"k": text}))[0]["mix"]), {"NOP": 1, "FFMA": 1, "EXIT": 1})

    def test_bytes(self):
        """As ptxas 13.0 encodes ld.v4.b32, st.u16, cp.async of 8 bytes, red.v4.f32, ld.shared.v2.b32, ldmatrix.x2 and a multiply-add."""
        words = ((0x981, 0xc1e1d00), (0x986, 0xc101504), (0xfae, 0xb921a44), (0x9a6, 0xc10f784), (0x984, 0xa00), (0x83b, 0x100), (0x223, 0))
        code = [sassmix.Instruction(sassmix.ALWAYS << 12 | low, high) for low, high in words]
        self.assertEqual(sassmix.bytes_of(code), {"global": 16 + 2 + 8 + 16, "shared": 8 + 8})

    def test_other_files(self):
        good = cubin({"k": nest(80)})
        for data in (b"", b"\x7fELF", good[:200], good.replace(struct.pack("<HH", 2, 190), struct.pack("<HH", 2, 62))):
            status, text = self.run_main(data)
            self.assertEqual((status, text.count("\n")), (2, 1), text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
