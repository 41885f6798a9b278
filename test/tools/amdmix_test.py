#!/usr/bin/env python3
"""amdmix on assembly written here: needs no compiler."""
import contextlib
import io
import os
import tempfile
import unittest

import amdmix

TEXT = """
\t.type\tmain_0,@function
main_0:
\ts_load_dwordx2 s[0:1], s[2:3], 0x0
\tv_mov_b32_e32 v0, 0
.LBB0_1:                                ; outer
\tbuffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen
\ts_cbranch_execz .LBB0_3
\tds_write_b32 v0, v1
.LBB0_3:
\tv_mfma_f32_16x16x16_f16 v[0:3], v[0:1], v[0:1], v[0:3]
\tv_add_f32_e32 v0, v0, v0
\ts_cbranch_vccz .LBB0_4
\tds_write_b64 v0, v[0:1]
.LBB0_4:
\tbuffer_load_dword v1, off, s[0:3], 0 ; 4-byte Folded Reload
\ts_waitcnt vmcnt(0)
\ts_cbranch_scc1 .LBB0_1
\tglobal_store_dword v[0:1], v2, off
\ts_endpgm
\ts_nop 0
.Lfunc_end0:
\ts_nop 0
other:
\ts_endpgm
.Lfunc_end1:
\t.amdgpu_metadata
amdhsa.kernels:
  - .agpr_count:     4
    .args:
      - .offset:         0
        .size:           8
    .name:           main_0
    .private_segment_fixed_size: 8
    .vgpr_count:     27
    .vgpr_spill_count: 1
  - .args: []
    .name:           other
    .vgpr_count:     3
"""


class AmdMix(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "x.s")
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(TEXT)

    def tearDown(self):
        self.folder.cleanup()

    def run_main(self, *args):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            return amdmix.main([self.path, *args]), out.getvalue()

    def test_counts_kinds_of_the_kernel(self):
        k = amdmix.analyze_file(self.path, "main")[0]
        self.assertEqual((k["kernel"], k["total"]), ("main_0", 14))
        self.assertEqual(dict(k["mix"]), {"smem": 1, "valu": 2, "buffer_load": 1, "branch": 4, "lds_write": 2, "matrix": 1,
                                          "scratch": 1, "wait": 1, "global_store": 1})

    def test_the_shortest_way_leaves_out_what_a_branch_passes_but_for_idle_waves(self):
        loop = amdmix.analyze_file(self.path, "main")[0]["loops"][0]
        self.assertTrue(loop["main"])
        self.assertEqual((loop["total"], loop["short"]["total"]), (10, 9))
        self.assertEqual((loop["short"]["names"]["ds_write_b32"], loop["short"]["names"]["ds_write_b64"]), (1, 0))

    def test_a_loop_around_small_ones_is_main_if_only_it_has_matrix_instructions(self):
        small = ".LBB0_5:\n\tv_readfirstlane_b32 s0, v0\n\ts_cbranch_execnz .LBB0_5\n\tv_mfma_f32_16x16x16_f16 v[0:3], v[0:1], v[0:1], v[0:3]\n"
        before, first, after = TEXT.partition("\tv_mfma_f32_16x16x16_f16 v[0:3], v[0:1], v[0:1], v[0:3]\n")
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(before + small + after)
        loops = amdmix.analyze_file(self.path, "main")[0]["loops"]
        self.assertTrue(first)
        self.assertEqual([(x["main"], x["total"]) for x in loops], [(True, 12), (False, 2)])

    def test_reads_facts(self):
        facts = {k["kernel"]: k["facts"] for k in amdmix.analyze_file(self.path)}
        self.assertEqual(facts["main_0"], {"vgprs": 27, "agprs": 4, "scratch_bytes": 8, "spills": 1})
        self.assertEqual(facts["other"], {"vgprs": 3})

    def test_requirements(self):
        self.assertEqual(self.run_main("--kernel", "main", "--require", "(valu + scratch) / matrix <= 2")[0], 0)
        self.assertEqual(self.run_main("--kernel", "main", "--require", "kernel.vgprs == 27", "--require", "v_add_f32_e32 == 1")[0], 0)
        status, text = self.run_main("--kernel", "main", "--require", "kernel.scratch == 0")
        self.assertEqual(status, 1)
        self.assertIn("main_0: kernel.scratch == 0 does not hold: 1", text)

    def test_says_what_it_does_not_know(self):
        self.assertEqual(self.run_main("--require", "nonsense == 0")[0], 2)
        self.assertEqual(self.run_main("--kernel", "absent")[0], 1)


if __name__ == "__main__":
    unittest.main()
