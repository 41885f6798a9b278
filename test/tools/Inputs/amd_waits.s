	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.type	one_path,@function
one_path:
	global_load_b32 v1, v2, s[0:1]
	s_cbranch_scc0 .LBB0_2
	s_waitcnt vmcnt(0)
.LBB0_2:
	v_mov_b32_e32 v3, v1
	s_endpgm
.Lfunc_end0:
	.type	way_back,@function
way_back:
	ds_load_b32 v1, v2
.LBB1_1:
	s_waitcnt lgkmcnt(1)
	v_add_nc_u32_e32 v3, v1, v3
	ds_load_b32 v1, v2
	ds_load_b32 v4, v2
	s_cbranch_scc1 .LBB1_1
	s_endpgm
.Lfunc_end1:
	.type	in_order,@function
in_order:
	global_load_b32 v1, v2, s[0:1]
	global_load_b32 v1, v3, s[0:1]
	global_load_b32 v4, v3, s[0:1]
	s_waitcnt vmcnt(1)
	global_store_b32 v1, v1, s[0:1]
	s_load_b32 s4, s[0:1], 0x0
	ds_load_b32 v5, v2
	s_waitcnt lgkmcnt(0) vmcnt(0)
	v_add_nc_u32_e32 v6, s4, v5
	s_waitcnt_vscnt null, 0x0
	s_barrier
	scratch_store_b32 off, v6, off
	s_waitcnt_vscnt null, 0x0
	s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
	s_endpgm
.Lfunc_end2:
	.type	scalars,@function
scalars:
	s_load_b32 s4, s[0:1], 0x0
	s_load_b32 s5, s[0:1], 0x4
	s_waitcnt lgkmcnt(1)
	s_mov_b32 s6, s4
	s_endpgm
.Lfunc_end3:
	.type	written,@function
written:
	ds_load_b64 v[1:2], v3
	v_mov_b32_e32 v2, 0
	global_store_b32 v4, v5, s[0:1]
	s_barrier
	s_endpgm
.Lfunc_end4:
