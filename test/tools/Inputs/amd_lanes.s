	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.type	sunk,@function
sunk:
	v_mul_lo_u32 v1, v0, 3
	s_mov_b32 s0, exec_lo
	v_cmpx_eq_u32_e32 0, v0
	s_cbranch_execz .LBB0_2
	v_permlanex16_b32 v2, v1, s1, s2
.LBB0_2:
	s_or_b32 exec_lo, exec_lo, s0
	v_permlanex16_b32 v2, v1, s1, s2
	s_endpgm
.Lfunc_end0:
	.type	two_arms,@function
two_arms:
	v_cmp_eq_u32_e32 vcc_lo, 0, v0
	s_and_saveexec_b32 s0, vcc_lo
	s_xor_b32 s0, exec_lo, s0
	s_cbranch_execz .LBB1_2
	v_mov_b32_dpp v2, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
.LBB1_2:
	s_and_not1_saveexec_b32 s0, s0
	s_cbranch_execz .LBB1_4
	v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]
.LBB1_4:
	s_or_b32 exec_lo, exec_lo, s0
	v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]
	s_endpgm
.Lfunc_end1:
	.type	lanes_leave,@function
lanes_leave:
	s_mov_b32 s1, 0
.LBB2_1:
	v_cmp_eq_u32_e32 vcc_lo, s2, v0
	s_mov_b32 s3, exec_lo
	v_cmpx_gt_u32_e32 s4, v0
	s_xor_b32 s3, exec_lo, s3
	s_or_b32 exec_lo, exec_lo, s3
	ds_swizzle_b32 v3, v1 offset:swizzle(SWAP,16)
	s_or_b32 s1, vcc_lo, s1
	s_and_not1_b32 exec_lo, exec_lo, s1
	s_cbranch_execnz .LBB2_1
	s_or_b32 exec_lo, exec_lo, s1
	ds_swizzle_b32 v3, v1 offset:swizzle(SWAP,16)
	s_endpgm
.Lfunc_end2:
	.type	spilled,@function
spilled:
	v_mov_b32_e32 v5, v0
	v_cmp_eq_u32_e32 vcc_lo, 0, v0
	s_and_saveexec_b32 s0, vcc_lo
	v_writelane_b32 v40, s0, 3
	s_mov_b32 s0, 0
	v_mov_b32_e32 v6, v0
	v_readlane_b32 s7, v5, 9
	v_readlane_b32 s8, v6, 9
	v_readlane_b32 s0, v40, 3
	s_or_b32 exec_lo, exec_lo, s0
	v_permlane16_b32 v2, v1, s1, s2
	s_endpgm
.Lfunc_end3:
	.type	one_path,@function
one_path:
	v_cmp_eq_u32_e32 vcc_lo, 0, v0
	s_cbranch_scc0 .LBB4_2
	s_and_saveexec_b32 s0, vcc_lo
.LBB4_2:
	ds_bpermute_b32 v2, v1, v0
	s_endpgm
.Lfunc_end4:
	.type	in_scratch,@function
in_scratch:
	v_cmp_eq_u32_e32 vcc_lo, 0, v0
	v_writelane_b32 v40, exec_lo, 3
	scratch_store_b32 off, v40, s4 offset:4
	scratch_store_b32 off, v40, off offset:8
	s_and_b32 exec_lo, exec_lo, vcc_lo
	s_or_saveexec_b32 s1, -1
	scratch_load_b32 v41, off, off offset:8
	s_mov_b32 exec_lo, s1
	v_readlane_b32 s0, v41, 3
	s_or_b32 exec_lo, exec_lo, s0
	v_permlane16_b32 v2, v1, s1, s2
	scratch_store_b32 off, v1, s4
	scratch_load_b32 v41, off, off offset:8
	v_readlane_b32 s0, v41, 3
	s_mov_b32 exec_lo, s0
	v_permlane16_b32 v2, v1, s1, s2
	s_endpgm
.Lfunc_end5:
