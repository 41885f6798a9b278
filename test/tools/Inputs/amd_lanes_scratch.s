	.amdgcn_target "amdgcn-amd-amdhsa--gfx1030"
	.type	spilled,@function
spilled:
	s_mov_b64 s[22:23], s[2:3]
	s_mov_b64 s[20:21], s[0:1]
	s_add_u32 s20, s20, s7
	s_addc_u32 s21, s21, 0
	v_cmp_eq_u32_e32 vcc_lo, 0, v0
	v_writelane_b32 v40, exec_lo, 3
	s_mov_b32 s5, 0x1000
	s_or_saveexec_b32 s4, -1
	buffer_store_dword v40, off, s[20:23], s5 offset:8
	s_mov_b32 exec_lo, s4
	s_and_b32 exec_lo, exec_lo, vcc_lo
	buffer_store_dword v1, off, s[20:23], s5 offset:4
	buffer_store_dword v1, off, s[8:11], s5 offset:8
	s_or_saveexec_b32 s4, -1
	buffer_load_dword v41, off, s[20:23], 0 offset:4104
	s_mov_b32 exec_lo, s4
	v_readlane_b32 s6, v41, 3
	s_or_b32 exec_lo, exec_lo, s6
	v_permlane16_b32 v2, v1, s1, s2
	s_endpgm
.Lfunc_end0:
	.type	stored_in_part,@function
stored_in_part:
	v_cmp_eq_u32_e32 vcc_lo, 0, v0
	v_writelane_b32 v40, exec_lo, 3
	s_and_b32 exec_lo, exec_lo, vcc_lo
	buffer_store_dword v40, off, s[0:3], 0 offset:8
	s_mov_b32 exec_lo, -1
	buffer_load_dword v41, off, s[0:3], 0 offset:8
	v_readlane_b32 s6, v41, 3
	s_mov_b32 exec_lo, s6
	v_permlane16_b32 v2, v1, s1, s2
	s_endpgm
.Lfunc_end1:
	.type	loaded_in_part,@function
loaded_in_part:
	v_cmp_eq_u32_e32 vcc_lo, 0, v0
	v_writelane_b32 v40, exec_lo, 3
	buffer_store_dword v40, off, s[0:3], 0 offset:8
	s_and_b32 exec_lo, exec_lo, vcc_lo
	buffer_load_dword v40, off, s[0:3], 0 offset:8
	v_readlane_b32 s6, v40, 3
	s_endpgm
.Lfunc_end2:
	.type	by_a_byte,@function
by_a_byte:
	v_writelane_b32 v40, exec_lo, 3
	buffer_store_dword v40, off, s[0:3], 0 offset:8
	buffer_store_byte v1, off, s[0:3], 0 offset:11
	buffer_load_dword v41, off, s[0:3], 0 offset:8
	v_readlane_b32 s6, v41, 3
	s_mov_b32 exec_lo, s6
	v_permlane16_b32 v2, v1, s1, s2
	s_endpgm
.Lfunc_end3:
	.type	by_any,@function
by_any:
	v_writelane_b32 v40, exec_lo, 3
	buffer_store_dword v40, off, s[0:3], 0 offset:8
	buffer_store_dword v1, v0, s[0:3], 0 offen offset:16
	buffer_load_dword v41, off, s[0:3], 0 offset:8
	v_readlane_b32 s6, v41, 3
	s_mov_b32 exec_lo, s6
	v_permlane16_b32 v2, v1, s1, s2
	s_endpgm
.Lfunc_end4:
	.type	moved,@function
moved:
	v_writelane_b32 v40, exec_lo, 3
	buffer_store_dword v40, off, s[0:3], 0 offset:8
	s_add_u32 s0, s0, s7
	buffer_load_dword v41, off, s[0:3], 0 offset:8
	v_readlane_b32 s6, v41, 3
	s_mov_b32 exec_lo, s6
	v_permlane16_b32 v2, v1, s1, s2
	s_endpgm
.Lfunc_end5:
	.type	not_scratch,@function
not_scratch:
	v_writelane_b32 v40, exec_lo, 3
	s_mov_b32 s0, s8
	buffer_store_dword v40, off, s[0:3], 0 offset:8
	buffer_load_dword v41, off, s[0:3], 0 offset:8
	v_readlane_b32 s6, v41, 3
	s_mov_b32 exec_lo, s6
	v_permlane16_b32 v2, v1, s1, s2
	s_endpgm
.Lfunc_end6:
		.amdhsa_user_sgpr_private_segment_buffer 1
