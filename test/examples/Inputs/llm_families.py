#!/usr/bin/env python3
"""Tiny random models of all families of make_model.py: 08_llm computes NumPy's logits (examples/08_llm/reference.py), or refuses by name what it does not compute.

    llm_families.py PROGRAM SOURCE SCRATCH      SOURCE: the root of the tree

Where a variant is to be computed, its logits differ from those of the model without it.
"""
import os
import shutil
import subprocess
import sys

import numpy as np

LLM = os.path.join(sys.argv[2], "examples", "08_llm")
sys.path.insert(0, LLM)
import make_model  # noqa: E402
import reference  # noqa: E402

with open(os.path.join(LLM, "text.txt"), encoding="utf-8") as f:
    TEXT = f.read()
PROMPT = "A tile is a block of numbers whose shape is known"
SHORT = "A"  # one token
NEAR = {"rope_type": "default", "rope_theta": 500.0}
FAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 200000.0}
NONE = {"rope_theta": None, "rope_scaling": None, "rope_local_base_freq": None}
FACTORS = {"long_factor": [1.5 + 0.25 * i for i in range(24)], "short_factor": [1 + 0.125 * i for i in range(24)]}
FAR_TEXTS = {"rope_scaling": {"type": "longrope", **FACTORS}, "original_max_position_embeddings": 8}
# name, family, settings that change, what is refused (None: it is computed); None as a value: the setting is left out
FOLDERS = [
    ("kinds of layers", "gemma2", {"layer_types": ["full_attention", "full_attention", "sliding_attention"]}, None),
    ("a longer window", "gemma2", {"sliding_window": 9}, None),
    ("another scale", "gemma2", {"query_pre_attn_scalar": 77}, None),
    ("another cap of scores", "gemma2", {"attn_logit_softcapping": 0.7}, None),
    ("the usual cap of scores", "gemma2", {"attn_logit_softcapping": "left out"}, None),
    ("no caps", "gemma2", {"attn_logit_softcapping": None, "final_logit_softcapping": None}, None),
    ("the usual cap of logits", "gemma2", {"final_logit_softcapping": "left out"}, None),
    ("another activation", "gemma2", {"hidden_activation": "relu"}, None),
    ("a base of positions", "gemma2", {"rope_theta": 500.0}, None),
    ("one window in two", "gemma3", {"sliding_window_pattern": 2}, None),
    ("one window in three, by a later name", "gemma3", {"_sliding_window_pattern": 3}, None),
    ("another near base", "gemma3", {"rope_local_base_freq": 500.0}, None),
    ("positions of transformers 5", "gemma3", NONE | {"rope_parameters": {"sliding_attention": NEAR, "full_attention": FAR}}, None),
    ("a cap of logits", "gemma3", {"final_logit_softcapping": 3.0}, None),
    ("no window", "phi3", {"sliding_window": None}, None),
    ("few heads of 96", "phi3", {"num_attention_heads": 2, "num_key_value_heads": 1}, None),
    ("bases of positions", "phi3", {"rope_theta": 500.0}, None),
    ("positions for long texts, in short ones", "phi3", FAR_TEXTS | {"original_max_position_embeddings": 64}, None),
    ("positions for long texts, in long ones", "phi3", FAR_TEXTS, None),
    ("the same by its first name, sizes said", "phi3", {"rope_scaling": {"type": "su", "attention_factor": 1.3, **FACTORS}, "original_max_position_embeddings": 8}, None),
    ("the same of transformers 5", "phi3", NONE | {"original_max_position_embeddings": "left out", "rope_parameters": {"rope_type": "longrope", "rope_theta": 500.0, "original_max_position_embeddings": 8,
                                                                                                                         "factor": 4.0, **FACTORS}}, None),
    ("factors of fewer pairs", "phi3", {"rope_scaling": {"type": "longrope", "long_factor": [2.0] * 24, "short_factor": [1.0] * 23}},
     "'short_factor' has 23 numbers and 'long_factor' 24, not one for each of the 24 pairs of a head"),
    ("factors that turns are not scaled by", "phi3", {"rope_scaling": {"type": "linear", "factor": 2.0, **FACTORS}}, "positions of type 'linear' have no 'short_factor'"),
    ("a factor below 0", "phi3", {"rope_scaling": {"type": "longrope", "long_factor": [-2.0] * 24, "short_factor": [1.0] * 24}},
     "'rope_scaling.long_factor' is -2, not one of up to 256 positive numbers"),
    ("another limit of the gate", "gpt_oss", {"swiglu_limit": 0.4}, None),
    ("the usual limit of the gate", "gpt_oss", {"swiglu_limit": "left out"}, None),
    ("another slope of the gate", "gpt_oss", {"swiglu_alpha": 3.0}, None),
    ("kinds of layers", "gpt_oss", {"layer_types": ["full_attention", "full_attention", "sliding_attention"]}, None),
    ("one expert of a row, by another name", "gpt_oss", {"num_experts_per_tok": 1, "experts_per_token": 1}, None),
    ("a ramp between whole pairs", "gpt_oss", {"rope_scaling": dict(make_model.FAMILIES["gpt_oss"]["rope_scaling"], truncate=True)}, None),
    ("no scaling of positions", "gpt_oss", {"rope_scaling": "left out"}, "'rope_scaling' is not said"),
    ("weights of another kind", "gpt_oss", {"quantization_config": {"quant_method": "gptq"}}, "'quantization_config.quant_method' is gptq, not mxfp4"),
    ("a part of a head turns", "phi3", {"partial_rotary_factor": 0.75}, None),
    ("a part of a head turns, tied, long texts, as Phi-4-mini", "phi3", {"partial_rotary_factor": 0.75, "tie_word_embeddings": True, "full_attn_mod": 1, "interpolate_factor": 1,
     "rope_scaling": {"type": "longrope", "long_factor": FACTORS["long_factor"][:18], "short_factor": FACTORS["short_factor"][:18]}, "original_max_position_embeddings": 8}, None),
    ("an odd part of a head turns", "phi3", {"partial_rotary_factor": 0.4}, "19 elements of a head's 48 turn: they have to be pairs"),
    ("a part of a head turns", "gemma2", {"partial_rotary_factor": 0.75}, "'partial_rotary_factor' is 0.75, not 1"),
    ("one expert of a row", "mixtral", {"num_experts_per_tok": 1}, None),
    ("17 experts", "mixtral", {"num_local_experts": 17}, None),
    ("shares as they are", "qwen3_moe", {"norm_topk_prob": False}, None),
    ("shares as they are where nothing is said", "qwen3_moe", {"norm_topk_prob": "left out"}, None),
    ("experts by their later name", "qwen3_moe", {"num_experts": "left out", "num_local_experts": 5, "moe_intermediate_size": 32}, None),
    ("layers without experts", "qwen3_moe", {"mlp_only_layers": [1]}, "'mlp_only_layers' is 1, not []"),
    ("experts in every other layer", "qwen3_moe", {"decoder_sparse_step": 2}, "'decoder_sparse_step' is 2, not 1"),
    ("experts that nothing goes to", "mixtral", {"num_experts_per_tok": 0}, "4 experts, of which a token goes through 0"),
    ("kinds of fewer layers", "gemma2", {"layer_types": ["full_attention"]}, "'layer_types' has 1 layers of 3"),
    ("an unknown kind of layers", "gemma2", {"layer_types": ["full_attention", "chunked_attention", "full_attention"]}, "'layer_types' is chunked_attention, not one of"),
    ("near positions that are scaled", "gemma3", NONE | {"rope_parameters": {"sliding_attention": FAR, "full_attention": FAR}},
     "'rope_parameters.sliding_attention.rope_type' is linear, not default"),
    ("both directions", "gemma3", {"use_bidirectional_attention": True}, "'use_bidirectional_attention' is true, not false"),
    ("pictures", "gemma3", {"model_type": "gemma3"}, "'model_type' is gemma3, not one of: llama mistral"),
    ("a cap below 0", "gemma2", {"attn_logit_softcapping": -2.0}, "out of range"),
    ("a window of no size", "gemma2", {"sliding_window": 0, "layer_types": ["sliding_attention"] * 3}, "'sliding_window' is not said"),
]
FILES = [
    ("the usual caps", "gemma2", {"attn_logit_softcapping": None, "final_logit_softcapping": None}, None),
    ("no window", "gemma3", {"sliding_window": None}, None),
    ("few heads of 96", "phi3", {"num_attention_heads": 2, "num_key_value_heads": 1}, None),
    ("one expert of a row", "mixtral", {"num_experts_per_tok": 1}, None),
    ("positions for long texts, in long ones", "phi3", FAR_TEXTS, None),
    ("positions for long texts, in short ones", "phi3", FAR_TEXTS | {"original_max_position_embeddings": 64}, None),
    ("a part of a head turns", "phi3", {"partial_rotary_factor": 0.75}, None),
    ("layers that see everything", "gpt_oss", {"sliding_window": None}, None),
]

EXPERTS = "model.layers.1.mlp.experts."
# Tensors of gpt-oss's folders that are replaced (None: left out), and what is refused.
DAMAGED = [
    ({EXPERTS + "down_proj_scales": np.zeros((5, 64, 2), np.uint8)}, "down_proj: wrong shape or type"),
    ({EXPERTS + "gate_up_proj_blocks": np.zeros((5, 191, 2, 16), np.uint8), EXPERTS + "gate_up_proj_scales": np.zeros((5, 191, 2), np.uint8)}, "gate_up_proj: wrong shape or type"),
    ({EXPERTS + "down_proj_blocks": np.zeros((4, 64, 3, 16), np.uint8), EXPERTS + "down_proj_scales": np.zeros((4, 64, 3), np.uint8)},
     "down_proj.weight: has not the shape [64, 96]"),
    ({EXPERTS + "down_proj_scales": None}, "mlp.experts.down_proj: neither numbers nor blocks and scales are in the file"),
    ({EXPERTS + "gate_up_proj_bias": None}, "gate_proj.bias: is not in the file"),
    ({EXPERTS + "gate_up_proj_bias": np.zeros((5, 190))}, "gate_proj.bias: has not the shape [5, 96]"),
    ({"model.layers.1.self_attn.sinks": None}, "self_attn.sinks.weight: is not in the file"),
    ({"lm_head.weight": np.zeros((297, 64), np.uint8)}, "lm_head.weight: is of U8"),
]


def write_damaged(path, changed):
    m, tensors = make_model.tiny("gpt_oss", TEXT), make_model.oss_tensors
    make_model.oss_tensors = lambda *args: [(n, w) for n, w in (dict(tensors(*args)) | changed).items() if w is not None]
    make_model.write_folder(path, m, "mxfp4")
    make_model.oss_tensors = tensors
    return path


def run(program, model, *options, prompt=PROMPT):
    return subprocess.run([program, "-n", "0", *options, model, prompt], capture_output=True, text=True, errors="replace", timeout=120)


def logits(path, prompt=PROMPT):
    m = reference.read(path)
    return reference.logits(m, reference.encode(m, prompt))


def computed(program, path, base, prompt=PROMPT):
    """None if the logits are NumPy's, and not those of the plain model."""
    file = os.path.join(os.path.dirname(path), "logits.npy")
    r = run(program, path, "-l", file, prompt=prompt)
    if r.returncode:
        return f"status {r.returncode}: {r.stderr.strip()}"
    want, got = logits(path, prompt), np.load(file)
    error = np.abs(got - want).max() / np.abs(want).max() if got.shape == want.shape else np.inf
    if not error < 5e-6:
        return f"another result: {error:.1e}"
    changed = base is None or np.abs(base - want).max() > 1e-3 * np.abs(want).max()
    return None if changed else "nothing changed: the variant says nothing"


def refused(program, path, why):
    r = run(program, path)
    lines = r.stderr.splitlines()
    return None if r.returncode == 1 and len(lines) == 1 and why in lines[0] else f"status {r.returncode}, {r.stderr!r}, not {why!r}"


def write(path, family, settings, folder, form="f32"):
    m = make_model.tiny(family, TEXT, **{k: v for k, v in settings.items() if k not in ("model_type", "num_experts")})
    m.config = {k: v for k, v in (m.config | settings).items() if v != "left out"}
    (make_model.write_folder if folder else make_model.write_gguf)(path, m, form)
    return path


def main(program, _, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    counts, faults, bases = {True: 0, False: 0}, [], {}
    at = lambda *parts: os.path.join(scratch, "-".join(map(str, parts)))
    for family in make_model.FAMILIES:
        more = [(True, "mxfp4"), (False, "mxfp4")] if family == "gpt_oss" else []
        forms = [(True, "f32"), (True, "int8")] + more + [(False, form) for form in ("f32", "q8_0", "q4_0") if make_model.gguf_family(make_model.FAMILIES[family])]
        for folder, form in forms:
            path = write(at(family, form) + ("" if folder else ".gguf"), family, {}, folder, form)
            faults.append((f"{family} in {form}", computed(program, path, None) or computed(program, path, None, SHORT)))
            counts[True] += 1
            if form == "f32":
                bases[family, folder] = logits(path)
    for folder, rows in ((True, FOLDERS), (False, FILES)):
        for i, (name, family, settings, why) in enumerate(rows):
            path = write(at("variant", folder, i) + ("" if folder else ".gguf"), family, settings, folder)
            faults.append((f"{family}, {name}", computed(program, path, bases[family, folder]) if why is None else refused(program, path, why)))
            counts[why is None] += 1
    for i, (changed, why) in enumerate(DAMAGED):
        faults.append((f"gpt_oss, {', '.join(changed)}", refused(program, write_damaged(at("damaged", i), changed), why)))
        counts[False] += 1
    faults = [f for f in faults if f[1]]
    for name, wrong in faults:
        print(f"{name}: {wrong}")
    print(f"{counts[True]} models computed, {counts[False]} refused, {len(faults)} faults")
    shutil.rmtree(scratch)
    return len(faults) > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
