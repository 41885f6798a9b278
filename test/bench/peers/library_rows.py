"""The rows of library.py: a kernel of the library, and its Triton original, with tiles as like each other as they can be.

`ours` is (module, kernel, constants), `theirs` (module, kernel, types of arguments that are no i32, constants, None for a pointer that is
not used), or a list of such, with how often each runs, where several do what ours does. `work` is how much a trip of each does, where that differs; a row's `note` says what else does.
"""

P16, P32, PI, PU, F = "*fp16", "*fp32", "*i32", "*i8", "fp32"
N = 4096
LIGER, VLLM, FLA, GEMS, UNSLOTH = "liger_kernel.ops", "vllm", "fla.ops", "flag_gems", "unsloth.kernels"
LAYERS = f"{VLLM}.model_executor.layers"


def row(ours, theirs, note="", work=(1, 1), warps=(4, 4), stages=None, odd=(), part="auto", targets=()):
    """`part`: what is counted: the main loop's trip where there is one (auto), or all. `targets`: those that the row is for, if not all."""
    return {"ours": ours, "theirs": theirs, "note": note, "work": work, "warps": warps, "stages": stages, "odd": list(odd), "part": part, "targets": targets}


def pointers(kind, *names):
    return {n: kind for n in names}


W8 = (8, 8)
FLAGS = {k: False for k in ("USE_G", "USE_SINK_BIAS", "USE_WINDOW", "IS_VARLEN")}
# The arguments of vLLM's unified attention that are switched off.
UNIFIED_OFF = {k: False for k in ("USE_ALIBI_SLOPES", "USE_ALIBI_SQRT", "USE_QQ_BIAS", "USE_SOFTCAP", "USE_SINKS", "USE_PER_SEQ_CAUSAL", "USE_MM_PREFIX",
                                  "USE_R_SWA", "USE_FP8", "IS_3D")}
UNIFIED_OFF.update({k: None for k in ("sink_ptr", "alibi_slopes_ptr", "qq_bias_ptr", "per_seq_causal_ptr", "mm_prefix_range_ptr", "rswa_prefix_lens_ptr",
                                      "q_scale", "k_scale", "v_scale", "out_scale", "softcap")})
STEPS = {k: 1 for k in ("stride_cb_csize_k", "stride_x_hdim", "stride_z_hdim", "stride_out_hdim", "stride_dt_csize", "stride_dA_cs_csize",
                        "stride_seq_idx_chunk", "stride_C_dstate", "stride_states_dstate", "stride_init_states_dstate", "stride_D_head")}
MAMBA = {"chunk_size": 256, "hdim": 64, "dstate": 128, "nheads_ngroups_ratio": 8}
LORA = {"USE_GDC": False, "launch_pdl": False, "SLICE_NUM": 1, "EVEN_K": False}

# What ours does, in two kernels.
MAMBA_2 = [
    (f"{LAYERS}.mamba.ops.ssd_chunk_state", "_chunk_state_fwd_kernel", {**pointers(P16, "x_ptr", "b_ptr"), **pointers(P32, "states_ptr", "dt_ptr", "dA_cumsum_ptr"),
     "cu_chunk_seqlens_ptr": PI}, {**{k: v for k, v in STEPS.items() if k in ("stride_x_hdim", "stride_states_dstate", "stride_dt_csize", "stride_dA_cs_csize")},
                                   "stride_b_dstate": 1, **MAMBA, "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 32}, 8),
    (f"{LAYERS}.mamba.ops.ssd_chunk_scan", "_chunk_scan_fwd_kernel", {**pointers(P16, "cb_ptr", "x_ptr", "out_ptr", "C_ptr", "states_ptr"),
     **pointers(P32, "dt_ptr", "dA_cumsum_ptr", "D_ptr"), **pointers(PI, "seq_idx_ptr", "cu_chunk_seqlens_ptr")},
     {**STEPS, **MAMBA, "z_ptr": None, "initstates_ptr": None, "IS_CAUSAL": True, "HAS_D": True, "D_HAS_HDIM": False, "HAS_Z": False, "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 64,
      "BLOCK_SIZE_K": 32, "BLOCK_SIZE_DSTATE": 128, "IS_TRITON_22": True, "HAS_INITSTATES": False}, 12)
]

ROWS = {
    # ---- norms ----
    "rms norm": row(("norms", "rms_norm", {"BN": N}), (f"{LIGER}.rms_norm", "_rms_norm_forward_kernel",
                    {**pointers(P16, "Y_ptr", "X_ptr", "W_ptr"), "RSTD_ptr": P32, "eps": F, "offset": F},
                    {"casting_mode": 0, "elementwise_affine": True, "BLOCK_SIZE": N}), warps=W8),
    "rms norm, residual": row(("norms", "rms_norm", {"BN": N, "RESIDUAL": "true"}), (f"{LIGER}.fused_add_rms_norm", "_fused_add_rms_norm_forward_kernel",
                              {**pointers(P16, "Y_ptr", "S_ptr", "X_ptr", "R_ptr", "W_ptr"), "RSTD_ptr": P32, "eps": F, "offset": F},
                              {"casting_mode": 0, "BLOCK_SIZE": N}), warps=W8),
    "rms norm backward": row(("norms", "rms_norm_backward", {"BN": N}), (f"{LIGER}.rms_norm", "_rms_norm_backward_kernel",
                             {**pointers(P16, "dY_ptr", "dX_ptr", "X_ptr", "W_ptr"), **pointers(P32, "RSTD_ptr", "dW_ptr"), "offset": F},
                             {"X_dtype": "float16", "casting_mode": 0, "elementwise_affine": True, "BLOCK_SIZE": N, "COMPUTE_DW": True}), warps=W8),
    "layer norm": row(("norms", "layer_norm", {"BN": N}), (f"{LIGER}.layer_norm", "_layer_norm_forward_kernel",
                      {**pointers(P16, "Y_ptr", "X_ptr", "W_ptr", "B_ptr"), **pointers(P32, "Mean_ptr", "RSTD_ptr"), "eps": F}, {"BLOCK_SIZE": N}), warps=W8),
    "layer norm backward": row(("norms", "layer_norm_backward", {"BN": N}), (f"{LIGER}.layer_norm", "_layer_norm_backward_kernel",
                               {**pointers(P16, "X_ptr", "W_ptr", "DX_ptr", "DY_ptr"), **pointers(P32, "Mean_ptr", "RSTD_ptr", "DW_ptr", "DB_ptr")},
                               {"rows_per_program": 64, "BLOCK_SIZE": N}), warps=W8),
    "group norm": row(("image_norms", "group_norm", {"BL": 16, "BC": 64}), (f"{GEMS}.ops.groupnorm", "group_norm_kernel",
                      {**pointers(P16, "X", "Y", "W", "B"), **pointers(P32, "Mean", "Rstd"), "eps": F},
                      {"BLOCK_GROUP_SIZE": 64, "BLOCK_HW_SIZE": 16}), "the original keeps a group in one tile, channels first; ours goes over it in tiles"),
    # ---- layers ----
    "swiglu": row(("layers", "gated", {"B": N}), (f"{LIGER}.swiglu", "_swiglu_forward_kernel_tiled", {**pointers(P16, "a_ptr", "b_ptr", "c_ptr"),
                  "gate_multiplier": F}, {"BLOCK_SIZE": N}), "Liger's multiplies by a scalar, too", warps=W8),
    "swiglu backward": row(("layers", "gated_backward", {"B": N}), (f"{LIGER}.swiglu", "_swiglu_backward_kernel_tiled",
                           {**pointers(P16, "dc_ptr", "a_ptr", "b_ptr"), "gate_multiplier": F}, {"BLOCK_SIZE": N}), "Liger's multiplies by a scalar, too", warps=W8),
    "geglu, tanh": row(("layers", "gated", {"B": N, "act": "activation.gelu_tanh"}), (f"{LIGER}.geglu", "_geglu_tanh_forward_kernel",
                       pointers(P16, "a", "b", "c"), {"n_cols": N, "BLOCK_SIZE": N}), "Liger's row is known to be as long as the tile", warps=W8),
    "geglu, tanh, backward": row(("layers", "gated_backward", {"B": N, "act": "activation.gelu_tanh", "grad": "activation.gelu_tanh_grad"}),
                                 (f"{LIGER}.geglu", "_geglu_tanh_backward_kernel", pointers(P16, "dc", "a", "b"), {"n_cols": N, "BLOCK_SIZE": N}),
                                 "Liger's row is known to be as long as the tile", warps=W8),
    "geglu, exact": row(("layers", "gated", {"B": 1024, "act": "activation.gelu"}), (f"{UNSLOTH}.geglu", "_exact_forward_kernel",
                        pointers(P16, "e", "g", "h"), {"BLOCK_SIZE": 1024, "LONG_INDEXING": False})),
    "rope": row(("layers", "rope", {"BH": 32}), (f"{LIGER}.rope", "_triton_rope", {**pointers(P16, "q_ptr", "k_ptr"), **pointers(P32, "cos", "sin")},
                {"bs": 1, "cos_bs": 1, "n_qh": 32, "n_kh": 8, "hd": 128, "pad_n_qh": 32, "pad_n_kh": 8, "pad_hd": 128, "pad_rd": 128, "rd": 128,
                 "BLOCK_SIZE": 128}), "32 heads; Liger's: 32 and 8, known numbers, of q and k", work=(32, 40)),
    "embedding": row(("layers", "embedding", {"SCALE": "false", "BN": 4, "B": 1024}), (f"{GEMS}.ops.embedding", "embedding_kernel",
                     {"out_ptr": P16, "in_ptr": PI, "weight_ptr": P16}, {"N": 1024, "BLOCK_SIZE": 1024}),
                     "ours has four rows in a program, and tests the index; the original's row is known to be as long as the tile", work=(4, 1), part="all"),
    "embedding backward": row(("layers", "embedding_backward", {"BN": 16, "B": 1024}), (f"{LIGER}.experimental.embedding", "embedding_backward_kernel",
                              {"grad_output_ptr": P16, "grad_weight_ptr": P32, "indices_ptr": PI}, {"embedding_dim": N, "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128}),
                              "Liger's tile is 128 rows by 128; ours scales, and leaves a row out", work=(16 * 1024, 128 * 128), part="all"),
    "embedding, tiles of rows": row(("layers", "embedding", {"SCALE": "false", "BN": 16, "B": 1024}), (f"{LIGER}.experimental.embedding", "embedding_forward_kernel",
                     {**pointers(P16, "embeddings_ptr", "output_ptr"), "indices_ptr": PI}, {"embedding_dim": N, "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128}),
                     "Liger's tile is 128 rows by 128", work=(16 * 1024, 128 * 128), part="all"),
    "dropout": row(("layers", "dropout", {"B": 4096}), (f"{GEMS}.ops.dropout", "dropout_forward_kernel", {**pointers(P16, "X", "Y"), "dropout_mask": "*i1", "p": F,
                   "philox_seed": "i64", "philox_offset": "i64"}, {"BLOCK": 1024}),
                   "the original stores the mask, and has a thread's four elements apart", warps=W8),
    # ---- losses ----
    "cross entropy": row(("losses", "cross_entropy", {"BV": N}), (f"{LIGER}.cross_entropy", "liger_cross_entropy_kernel",
                         {"X_ptr": P16, "Y_ptr": PI, "loss_ptr": P32, "n_non_ignore": F}, {**{k: None for k in (
                             "weight_ptr", "z_loss_ptr", "token_accuracy_ptr", "predicted_tokens_ptr", "softcap", "sum_non_ignore_weight", "weight_sum")},
                          "lse_square_scale": 0.0, "label_smoothing": 0.0, "reduction": "mean", "BLOCK_SIZE": N, "HAS_GRADIENTS": False,
                          **{k: False for k in ("RETURN_Z_LOSS", "RETURN_TOKEN_ACCURACY", "RETURN_PREDICTED_TOKENS", "HAS_WEIGHT", "HAS_SOFTCAPPING")}}),
                         "ours sums x for the smoothing, and finds the label in the tile", warps=W8),
    "kl divergence": row(("losses", "kl_divergence", {"BV": 2048}), [(f"{LIGER}.kl_div", "_kldiv_kernel_forward", {**pointers(P16, "y_ptr", "gt_ptr"),
                         "loss_ptr": P32, "eps": F}, {"BLOCK_SIZE": 2048, "reduction": 1, "log_target": True}, 1),
                         (f"{LIGER}.kl_div", "_kldiv_kernel_backward", pointers(P16, "target_ptr", "new_grads_ptr"), {"BLOCK_SIZE": 2048, "log_target": True}, 1)],
                         "a trip of the last of ours' three loops, which gives loss and gradient; Liger's forward and backward trips, which take logarithms", warps=W8),
    "jsd": row(("losses", "jsd", {"BV": 2048}), (f"{LIGER}.jsd", "_jsd_kernel", {**pointers(P16, "X_ptr", "Y_ptr", "dX_ptr"), "loss_ptr": P32, "label_ptr": PI},
               {"beta": 0.5, "ignore_index": -100, "BLOCK_SIZE": 2048, "HAS_LABEL": False}),
               "a trip of one of ours' four loops; Liger's takes logarithms", warps=W8),
    # ---- products ----
    "u4 product (AWQ)": row(("quantized", "gemm_u4", {"BM": 64, "BN": 64, "BK": 32, "G": 128}), (f"{LAYERS}.quantization.awq_triton", "awq_gemm_kernel",
                            {**pointers(P16, "a_ptr", "c_ptr", "scales_ptr"), **pointers(PI, "b_ptr", "zeros_ptr")},
                            {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 32, "SPLIT_K": 1}), "the original sums in f16", stages=3),
    "fused MoE": row(("moe", "moe_gemm", {"BM": 64, "BN": 128, "BK": 32, "WEIGHTED": "true", "DIV": 2}), (f"{LAYERS}.fused_moe.fused_moe", "fused_moe_kernel",
                     {**pointers(P16, "a_ptr", "b_ptr", "c_ptr"), "topk_weights_ptr": P32, **pointers(PI, "sorted_token_ids_ptr", "expert_ids_ptr", "num_tokens_post_padded_ptr")},
                     {**{k: None for k in ("b_bias_ptr", "a_scale_ptr", "b_scale_ptr")}, "group_n": 0, "group_k": 0, "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128,
                      "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 8, "SPLIT_K": 1, "MUL_ROUTED_WEIGHT": True, "top_k": 2, "compute_type": "float16",
                      **{k: False for k in ("naive_block_assignment", "use_fp8_w8a8", "use_int8_w8a8", "use_int8_w8a16", "per_channel_quant", "HAS_BIAS", "SWAP_AB")},
                      "stride_ak": 1, "stride_bk": 1, "stride_cn": 1}), stages=4),
    "LoRA, shrink": row(("gemm", "gemm_split_k", {"TB": "true", "BM": 32, "BN": 16, "BK": 256}), (f"{VLLM}.lora.ops.triton_ops.lora_shrink_op", "_lora_shrink_kernel",
                        {**pointers(P16, "input_ptr", "lora_ptr"), "out_ptr": P32, "scaling": F,
                         **pointers(PI, "token_indices_sorted_by_lora_ids", "num_tokens_per_lora", "lora_token_start_loc", "lora_ids")},
                        {"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 256, "SPLIT_K": 8, "GROUP_SIZE_M": 8, "input_d1_stride": 1, "lora_d2_stride": 1, "output_d2_stride": 1,
                         **LORA}), "ours has one adapter, and rows in order; both test K", stages=2),
    # ---- attention ----
    "attention": row(("attention", "attention", {"t.D": 128, "t.BM": 128, "t.BN": 64}), (f"{FLA}.attn.parallel", "parallel_attn_fwd_kernel",
                     {**pointers(P16, "q", "k", "v", "o"), "lse": P32, "scale": F}, {**{k: None for k in ("g_cumsum", "sink_bias", "cu_seqlens", "chunk_indices")},
                      "W": 0, "B": 1, "H": 8, "HQ": 32, "G": 4, "K": 128, "V": 128, "BT": 128, "BS": 64, "BK": 128, "BV": 128, **FLAGS}), warps=W8, stages=2),
    "attention backward, dq": row(("attention", "attention_backward_dq", {"t.D": 128, "t.BM": 64, "t.BN": 64}), (f"{FLA}.attn.parallel", "parallel_attn_bwd_kernel_dq",
                                  {**pointers(P16, "q", "k", "v", "do", "dq"), **pointers(P32, "lse", "delta"), "scale": F},
                                  {**{k: None for k in ("dg_cumsum", "g_cumsum", "cu_seqlens", "chunk_indices")}, "W": 0, "B": 1, "H": 8, "HQ": 32, "G": 4, "K": 128,
                                   "V": 128, "BT": 64, "BS": 64, "BK": 128, "BV": 128, **{k: v for k, v in FLAGS.items() if k != "USE_SINK_BIAS"}}), warps=W8, stages=2, odd=["T"]),
    "attention backward, dk and dv": row(("attention", "attention_backward_dkdv", {"t.D": 128, "t.BM": 64, "t.BN": 64}), (f"{FLA}.attn.parallel", "parallel_attn_bwd_kernel_dkv",
                                         {**pointers(P16, "q", "k", "v", "do", "dk", "dv"), **pointers(P32, "lse", "delta"), "scale": F},
                                         {**{k: None for k in ("dg_cumsum", "g_cumsum", "cu_seqlens", "chunk_indices")}, "W": 0, "B": 1, "H": 8, "HQ": 32, "G": 4, "K": 128,
                                          "V": 128, "BT": 64, "BS": 64, "BK": 128, "BV": 128, **{k: v for k, v in FLAGS.items() if k != "USE_SINK_BIAS"}}),
                                         "causal in the original, whose masked loop is apart", warps=W8, stages=2, odd=["T"]),
    "attention, pages": row(("attention", "attention_paged", {"t.D": 128, "t.BM": 64, "t.BN": 64}), (f"{VLLM}.v1.attention.ops.triton_unified_attention", "kernel_unified_attention",
                            {**pointers(P16, "output_ptr", "query_ptr", "key_cache_ptr", "value_cache_ptr"), **pointers(PI, "block_tables_ptr", "seq_lens_ptr", "query_start_len_ptr"),
                             "scale": F}, {**UNIFIED_OFF, "num_query_heads": 32, "num_queries_per_kv": 4, "qq_bias_stride_0": 0, "BLOCK_SIZE": 16, "TILE_SIZE": 64, "HEAD_SIZE": 128,
                             "HEAD_SIZE_PADDED": 128, "SLIDING_WINDOW": 0, "USE_CAUSAL": True, "MAX_MM_RANGES": 0, "R_SWA_WINDOW": 0, "stride_k_cache_3": 1, "stride_v_cache_3": 1,
                             "BLOCK_Q": 16, "BLOCK_M": 64, "NUM_SEGMENTS_PER_SEQ": 1}), "page size a constant in the original", warps=W8, stages=2),
    "decode, pages": row(("decode", "decode_paged", {"D": 128, "BH": 16, "BN": 64}), (f"{VLLM}.v1.attention.ops.triton_decode_attention", "_fwd_grouped_kernel_stage1",
                         {**pointers(P16, "Q", "K_Buffer", "V_Buffer"), **pointers(PI, "Req_to_tokens", "B_Seqlen"), **pointers(P32, "Att_Out", "k_scale", "v_scale"), "sm_scale": F},
                         {"kv_group_num": 8, "q_head_num": 32, "BLOCK_DMODEL": 128, "BLOCK_DPE": 0, "BLOCK_DV": 128, "BLOCK_N": 64, "BLOCK_H": 16, "NUM_KV_SPLITS": 8,
                          "PAGE_SIZE": 16, "logit_cap": 0.0, "Lk": 128, "Lv": 128}), stages=2),
    # ---- layers with a state ----
    "linear attention": row(("recurrent", "linear_attention", {"D": 64, "BV": 32, "C": 64}), (f"{FLA}.common.fused_chunk", "fused_chunk_fwd_kernel",
                            {**pointers(P16, "q", "k", "v", "o"), "ht": P32, "scale": F}, {**{k: None for k in ("g", "g_gamma", "h0", "cu_seqlens")}, "B": 1, "H": 16, "K": 64, "V": 64,
                             "BT": 64, "BK": 64, "BV": 32, "USE_G": False, "USE_G_GAMMA": False, "USE_INITIAL_STATE": False, "STORE_FINAL_STATE": True, "IS_VARLEN": False}),
                            stages=2, odd=["T"]),
    "linear attention, decays": row(("recurrent", "linear_attention", {"D": 64, "BV": 32, "C": 64, "GATED": "true"}), (f"{FLA}.common.fused_chunk", "fused_chunk_fwd_kernel",
                                    {**pointers(P16, "q", "k", "v", "o"), **pointers(P32, "g", "ht"), "scale": F}, {**{k: None for k in ("g_gamma", "h0", "cu_seqlens")}, "B": 1,
                                     "H": 16, "K": 64, "V": 64, "BT": 64, "BK": 64, "BV": 32, "USE_G": True, "USE_G_GAMMA": False, "USE_INITIAL_STATE": False,
                                     "STORE_FINAL_STATE": True, "IS_VARLEN": False}), "ours sums the decays up, too", stages=2, odd=["T"]),
    "Mamba-2": row(("recurrent", "ssd", {"N": 128, "BP": 64, "C": 64}), MAMBA_2,
                   "256 tokens of a head of 64: 4 trips of ours; 8 and 12 of the original's kernels for states and outputs, without their beginnings, and what makes C B^T",
                   work=(1 / 4, 1), stages=2, targets=("sm_90a", "gfx942")),
    "Mamba-2, chunks of 32": row(("recurrent", "ssd", {"N": 128, "BP": 64, "C": 32}), MAMBA_2, "the same, 8 trips of ours", work=(1 / 8, 1), warps=(8, 4), stages=2),
    # ---- to few bits ----
    "quantize rows, i8": row(("quantized", "quantize_rows_i8", {"BK": N}), (f"{LAYERS}.quantization.utils.int8_utils", "_per_token_quant_int8",
                             {"x_ptr": P16, "xq_ptr": PU, "scale_ptr": P32}, {"BLOCK": N}), "", warps=W8),
    "quantize groups, f8": row(("quantized", "quantize_groups_f8", {"G": 128, "BM": 8}), (f"{LAYERS}.quantization.utils.fp8_utils", "_per_token_group_quant_fp8",
                               {"y_ptr": P16, "y_q_ptr": "*fp8e4nv", "y_s_ptr": P32, "eps": F}, {"fp8_min": -448.0, "fp8_max": 448.0, "use_ue8m0": False, "BLOCK": 128}),
                               "ours has 8 groups in 4 warps, the original one in one", work=(8, 1), warps=(4, 1)),
    "product of f8, scales of blocks": row(("quantized", "gemm_f8_blocks", {"BM": 64, "BN": 128, "BK": 128}), (f"{LAYERS}.quantization.utils.fp8_utils",
                                           "_w8a8_triton_block_scaled_mm", {**pointers("*fp8e4nv", "A", "B"), "C": "*bf16", **pointers(P32, "As", "Bs")},
                                           {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 8, "stride_ak": 1, "stride_bk": 1, "stride_cn": 1,
                                            "group_n": 128, "group_k": 128}), stages=3, targets=("sm_90a",)),
    # ---- others ----
    "cache write": row(("decode", "cache_write", {"D": 128, "BH": 8}), (f"{VLLM}.v1.attention.ops.triton_reshape_and_cache_flash", "reshape_and_cache_kernel_flash",
                       {**pointers(P16, "key_ptr", "value_ptr", "key_cache_ptr", "value_cache_ptr"), "slot_mapping_ptr": "*i64", **pointers(P32, "k_scale", "v_scale")},
                       {"num_heads": 8, "head_size": 128, "block_size": 16, "x": 1, "USE_HEAD_MAJOR_LAYOUT": False, "INTERLEAVED_V_PACK_FACTOR": 0, "FP8_KV_CACHE": False,
                        "TILE_SIZE": 1024, "dim_stride_k": 1, "dim_stride_v": 1}), "numbers of heads are constants in the original"),
    "moe sum": row(("moe", "moe_sum", {"B": 1024}), (f"{GEMS}.fused.moe_sum", "moe_sum_kernel", pointers(P16, "input_ptr", "output_ptr"), {"BLOCK_SIZE": 1024, "input_stride_hidden": 1, "output_stride_hidden": 1})),
    "convolution 3x3": row(("conv", "conv2d", {"BM": 128, "BN": 64, "BC": 32}), (f"{GEMS}.ops.conv2d", "conv2d_forward_kernel", {**pointers(P16, "input_pointer", "weight_pointer",
                       "output_pointer"), "bias_pointer": P16}, {"weight_c": 64, "weight_height": 3, "weight_width": 3, "stride_height": 1, "stride_width": 1,
                       "padding_height": 1, "padding_width": 1, "dilation_height": 1, "dilation_width": 1, "groups": 1, "BLOCK_NI_HO_WO": 128, "BLOCK_CI": 32, "BLOCK_CO": 64,
                       "input_width_stride": 1, "output_width_stride": 1, "weight_width_stride": 1}), "channels first in the original, its window a constant", warps=W8, stages=3),
    "average pooling": row(("pooling", "avg_pool2d", {"BM": 16, "BC": 64}), (f"{GEMS}.ops.avg_pool2d", "avg_pool2d_forward_kernel", pointers(P16, "input_ptr", "output_ptr"),
                           {"kernel_h": 3, "kernel_w": 3, "stride_h": 2, "stride_w": 2, "padding_h": 1, "padding_w": 1, "dilation_h": 1, "dilation_w": 1,
                            "COUNT_INCLUDE_PAD": False, "divisor_override": 0, "BLOCK_H": 32, "BLOCK_W": 32, "in_stride_w": 1}),
                           "a trip of ours has four places of the window", work=(4, 1), targets=("sm_80", "sm_90a")),
    "max pooling": row(("pooling", "max_pool2d", {"BM": 16, "BC": 64}), (f"{GEMS}.ops.max_pool2d_with_indices", "max_pool2d_forward_kernel",
                       {**pointers(P16, "input_ptr", "output_ptr"), "indices_ptr": "*i64"}, {"kernel_h": 3, "kernel_w": 3, "stride_h": 2, "stride_w": 2, "padding_h": 1,
                        "padding_w": 1, "dilation_h": 1, "dilation_w": 1, "BLOCK_H": 32, "BLOCK_W": 32, "in_stride_w": 1}), "a trip of ours is a place of the window, of which the original has all nine", work=(1, 9)),
    "argmax": row(("sampling", "argmax_rows", {"BV": N}), (f"{GEMS}.ops.argmax", "argmax_kernel_inner", {"inp": P16, "out_index": "*i64"},
                  {"TILE_N": N, "ONE_TILE_PER_CTA": False}), warps=W8),
    "sort rows of 1024": row(("sort", "sort_rows", {"T": "f32", "B": 1024}), (f"{GEMS}.ops.sort", "sort_kernel", {**pointers(P32, "in_ptr", "out_ptr"), "out_index_ptr": "*i64"},
                             {"N": 1024, "BLOCK_SIZE": 1024, "DESCENDING": False, "IS_FLOAT": True}), part="all"),
    "scan, blocks": row(("scan", "scan_blocks", {"B": 2048}), (f"{GEMS}.ops.cumsum", "scan_part_sum_kernel", pointers(P32, "inp", "out", "partial_sum"), {"BLOCK_SIZE": 2048}),
                        "ours adds what is before the block, the original stores the block's sum"),
}
