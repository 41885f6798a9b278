#!/usr/bin/env python3
"""Checkpoints whose settings and tensors vary: 08_llm computes what they say, as NumPy does (examples/08_llm/reference.py), or refuses them by name.

    llm_settings.py PROGRAM SOURCE SCRATCH      SOURCE: the root of the tree

A random decoder of two layers, with bytes as tokens. Where a variant is to be computed, NumPy's logits differ from those of the model without it.
"""
import json
import os
import shutil
import struct
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(sys.argv[2], "examples", "08_llm"))
import reference  # noqa: E402

D, F, H, HK, HD, V, LAYERS = 256, 256, 4, 2, 64, 258, 2
TOKENS = sorted(reference.LETTER.values()) + ["ab", "<|end|>"]
PROMPT = "the quick brown fox jumps over a lazy dog"
rng = np.random.default_rng(1)
HF = {v: k for k, v in reference.NAMES.items()}
Q = "model.layers.1.self_attn.q_proj.weight"
HEAD = "lm_head.weight"


def random(*shape, size=1.0):
    return (size * rng.standard_normal(shape) / np.sqrt(shape[-1])).astype("<f4")


def weights():
    w = {"model.embed_tokens.weight": random(V, D, size=4), "model.norm.weight": 1 + random(D), HEAD: random(V, D, size=3)}
    for i in range(LAYERS):
        for name, rows, cols, size in (("self_attn.q_proj", H * HD, D, 1.5), ("self_attn.k_proj", HK * HD, D, 1.5), ("self_attn.v_proj", HK * HD, D, 1),
                                       ("self_attn.o_proj", D, H * HD, 1), ("mlp.gate_proj", F, D, 1), ("mlp.up_proj", F, D, 1), ("mlp.down_proj", D, F, 1)):
            w[f"model.layers.{i}.{name}.weight"] = random(rows, cols, size=size)
        for name in ("input_layernorm", "post_attention_layernorm"):
            w[f"model.layers.{i}.{name}.weight"] = 1 + random(D)
    return w


def biases(parts):
    return {f"model.layers.{i}.{p}_proj.bias": random(rows, size=4) for i in range(LAYERS) for p, rows in parts.items()}


def head_norms(size):
    return {f"model.layers.{i}.self_attn.{p}_norm.weight": 1 + random(size, size=4) for i in range(LAYERS) for p in "qk"}


ATTENTION = {"self_attn.q": H * HD, "self_attn.k": HK * HD, "self_attn.v": HK * HD, "self_attn.o": D}
MLP = {"mlp.gate": F, "mlp.up": F, "mlp.down": D}
WEIGHTS = weights()
QKV = {k: v for k, v in ATTENTION.items() if k[-1] != "o"}
HEADS_OF_32 = {n: w[:len(w) // 2] if "q_proj" in n or "k_proj" in n or "v_proj" in n else np.ascontiguousarray(w[:, :H * 32]) if "o_proj" in n else w
               for n, w in WEIGHTS.items()}
UNTIED = {n: w for n, w in WEIGHTS.items() if n != HEAD}


# ---- a folder ----


def bf16(x):
    return (np.ascontiguousarray(x, "<f4").view("<u4") >> 16).astype("<u2")


def write_part(path, tensors):
    head, data = {}, b""
    for name, a in tensors.items():
        kind, a = {"float32": ("F32", a), "float16": ("F16", a), "uint16": ("BF16", a)}[a.dtype.name]
        head[name] = {"dtype": kind, "shape": list(a.shape), "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.tobytes()
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def folder(path, settings, tensors, parts=None, more=None):
    """parts: how many files the tensors are in; more: other files, a JSON value each."""
    os.makedirs(path)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": D, "intermediate_size": F, "num_hidden_layers": LAYERS,
              "num_attention_heads": H, "num_key_value_heads": HK, "vocab_size": V, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "float32", "use_cache": True,
              "initializer_range": 0.02, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": V - 1} | settings
    tokenizer = {"added_tokens": [{"id": V - 1, "content": TOKENS[-1], "special": True}],
                 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
                 "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(TOKENS[:-1])}, "merges": ["a b"]}}
    for name, value in {"config.json": {k: v for k, v in config.items() if v != "left out"}, "tokenizer.json": tokenizer, **(more or {})}.items():
        with open(os.path.join(path, name), "w", encoding="utf-8") as f:
            json.dump(value, f)
    if parts is None:
        write_part(os.path.join(path, "model.safetensors"), tensors)
        return path
    names, where = list(tensors), {}
    for i in range(parts):
        file = f"model-{i + 1:05}-of-{parts:05}.safetensors"
        write_part(os.path.join(path, file), {n: tensors[n] for n in names[i::parts]})
        where |= {n: file for n in names[i::parts]}
    with open(os.path.join(path, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
        json.dump({"metadata": {"total_size": 1}, "weight_map": where}, f)
    return path


# ---- GGUF ----


class Typed:
    """A number of a type: the type's number in GGUF, struct's letter."""

    def __init__(self, code, form, value):
        self.code, self.raw = code, struct.pack("<" + form, value)


def u16(v):
    return Typed(2, "H", v)


def i32(v):
    return Typed(5, "i", v)


def u64(v):
    return Typed(10, "Q", v)


def f64(v):
    return Typed(12, "d", v)


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def typed(v):
    if isinstance(v, Typed):
        return v.code, v.raw
    if isinstance(v, bool):
        return 7, struct.pack("<B", v)
    if isinstance(v, str):
        return 8, text(v)
    if isinstance(v, list):
        parts = [typed(x) for x in v]
        return 9, struct.pack("<IQ", parts[0][0], len(parts)) + b"".join(p for _, p in parts)
    return (6, struct.pack("<f", v)) if isinstance(v, float) else (4, struct.pack("<I", v))


def blocks(kind, rows, cols, size):
    """Random bytes as blocks: numbers of about `size`. They need not be what a quantiser would write."""
    _, each, width, _ = reference.BLOCKS[kind]
    b = rng.integers(0, 256, (rows * cols // each, width), dtype=np.uint8)
    n = len(b)
    half = lambda x: np.full(n, x, "<f2").view(np.uint8).reshape(n, 2)
    step = {"Q4_0": 1 / 5, "Q4_1": 1 / 5, "Q5_0": 1 / 9, "Q5_1": 1 / 9, "Q8_0": 1 / 70, "Q4_K": 1 / 160, "Q5_K": 1 / 320, "Q6_K": 1 / 1400, "IQ4_NL": 1 / 70,
            "Q2_K": 1 / 12, "Q3_K": 1 / 60, "IQ4_XS": 1 / 1200}
    if kind == "MXFP4":
        b[:, 0] = np.round(np.log2(size)).astype(int) - 1 + 127
        return b
    d = size * step[kind]
    at = {"Q6_K": 208, "Q3_K": 108, "Q2_K": 80}.get(kind, 0)
    b[:, at:at + 2] = half(d)
    if kind in ("Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K"):  # a least number, or a scale of such: as much below 0 as above
        b[:, at + 2:at + 4] = half({"Q2_K": 1.5, "Q4_1": -7.5, "Q5_1": -15.5, "Q4_K": 7.5, "Q5_K": 15.5}[kind] * d)
    return b


def gguf(path, keys, tensors, forms=None, more=()):
    """forms: tensors in ggml's blocks, by name; more: other tensors, (name, extents, type, bytes)."""
    head = {"general.architecture": "llama", "general.name": "bytes", "general.file_type": 0, "general.quantization_version": 2,
            "llama.block_count": LAYERS, "llama.context_length": 128, "llama.embedding_length": D, "llama.feed_forward_length": F,
            "llama.attention.head_count": H, "llama.attention.head_count_kv": HK, "llama.rope.dimension_count": HD, "llama.rope.freq_base": 10000.0,
            "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.vocab_size": V, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": TOKENS, "tokenizer.ggml.token_type": [i32(3 if t == TOKENS[-1] else 1) for t in TOKENS],
            "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.eos_token_id": V - 1, "tokenizer.ggml.add_bos_token": False,
            "tokenizer.chat_template": "{{ messages }}"} | keys
    family = head["general.architecture"]
    head = {family + k[5:] if k.startswith("llama.") else k: v for k, v in head.items() if v is not None}
    rows = []
    for name, w in tensors.items():
        stem, what = name.rsplit(".", 1)
        if stem.startswith("model.layers."):
            layer, part = stem[len("model.layers."):].split(".", 1)
            stem = f"blk.{layer}.{HF[part]}"
        else:
            stem = HF[stem]
        form = (forms or {}).get(name)
        if form:
            raw = blocks(form, *w.shape, 1 / np.sqrt(w.shape[1])).tobytes()
        rows.append((f"{stem}.{what}", w.shape, reference.BLOCKS[form][0] if form else 0, raw if form else w.tobytes()))
    about, data = b"", b""
    for name, shape, code, raw in rows + list(more):
        about += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], code, len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    start = b"GGUF" + struct.pack("<IQQ", 3, len(rows) + len(more), len(head))
    start += b"".join(text(k) + struct.pack("<I", typed(v)[0]) + typed(v)[1] for k, v in head.items()) + about
    with open(path, "wb") as f:
        f.write(start + b"\0" * (-len(start) % 32) + data)
    return path


# ---- variants: name, what is written, what is refused (None: it is computed) ----

LONG = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32, "rope_theta": 500000.0}
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16}
V5 = {"rope_theta": "left out", "torch_dtype": "left out", "dtype": "float32", "transformers_version": "5.0.0"}


def folders():
    def config(name, settings, refused=None, tensors=None, **more):
        return name, lambda path: folder(path, settings, tensors or WEIGHTS, **more), refused

    yield config("rope_theta", {"rope_theta": 500000.0})
    yield config("rope_scaling, llama3 as it was called", {"rope_scaling": {**LONG, "type": "llama3"}, "rope_theta": 500000.0})
    yield config("rope_scaling, linear by its older name", {"rope_scaling": {"type": "linear", "factor": 4.0}})
    yield config("rope_parameters", {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}, **V5})
    yield config("rope_parameters, llama3", {"rope_parameters": LONG, **V5})
    yield config("rope_parameters, linear", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}, **V5})
    yield config("rope_parameters, yarn", {"rope_parameters": YARN, **V5})
    yield config("yarn, the length from elsewhere", {"rope_parameters": {"rope_type": "yarn", "factor": 8.0}, **V5})
    yield config("yarn, all that it has", {"rope_parameters": {**YARN, "beta_fast": 8.0, "beta_slow": 2.0, "attention_factor": 1.5, "truncate": False}, **V5})
    yield config("yarn, mscale", {"rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5}, **V5})
    yield config("hidden_act: gelu", {"hidden_act": "gelu"})
    yield config("hidden_act: gelu_pytorch_tanh", {"hidden_act": "gelu_pytorch_tanh"})
    yield config("hidden_act: quick_gelu", {"hidden_act": "quick_gelu"})
    yield config("hidden_act: relu", {"hidden_act": "relu"})
    yield config("hidden_act: relu2", {"hidden_act": "relu2"})
    yield config("attention_bias", {"attention_bias": True}, tensors=WEIGHTS | biases(ATTENTION))
    yield config("attention_bias, none behind attention", {"attention_bias": True}, tensors=WEIGHTS | biases({k: v for k, v in ATTENTION.items() if k[-1] != "o"}))
    yield config("mlp_bias", {"mlp_bias": True}, tensors=WEIGHTS | biases(MLP))
    yield config("sliding_window", {"sliding_window": 5})
    yield config("mistral, sliding_window", {"model_type": "mistral", "sliding_window": 7, "layer_types": ["sliding_attention"] * LAYERS})
    yield config("tied", {"tie_word_embeddings": True}, tensors=UNTIED)
    yield config("head_dim", {"head_dim": 32}, tensors={n: w[:len(w) // 2] if "q_proj" in n or "k_proj" in n or "v_proj" in n else
                                                        w[:, :H * 32] if "o_proj" in n else w for n, w in WEIGHTS.items()})
    yield config("more rows than tokens", {"vocab_size": V + 6}, tensors=WEIGHTS | {n: np.concatenate([WEIGHTS[n], random(6, D)]) for n in ("model.embed_tokens.weight", HEAD)})
    yield config("norms and biases of 16 bits", {"attention_bias": True}, tensors=WEIGHTS | {n: bf16(b) for n, b in biases(ATTENTION).items()}
                 | {n: w.astype("<f2") for n, w in WEIGHTS.items() if w.ndim == 1})
    yield config("several files", {"rope_theta": 500000.0}, parts=3)
    yield config("angles of an older version", {"rope_theta": 500000.0}, tensors=WEIGHTS | {"model.layers.0.self_attn.rotary_emb.inv_freq": random(HD // 2)})

    qwen = {"use_sliding_window": False, "sliding_window": 7, "max_window_layers": 1}
    yield config("qwen2", {"model_type": "qwen2", **qwen}, tensors=WEIGHTS | biases(QKV))
    yield config("qwen3", {"model_type": "qwen3", "head_dim": HD, "attention_bias": False, **qwen, "sliding_window": None}, tensors=WEIGHTS | head_norms(HD))
    yield config("qwen3, heads that are no part of the width", {"model_type": "qwen3", "head_dim": 32, "layer_types": ["full_attention"] * LAYERS, **qwen},
                 tensors=HEADS_OF_32 | head_norms(32))
    yield config("qwen3, biases, tied", {"model_type": "qwen3", "head_dim": HD, "attention_bias": True, "tie_word_embeddings": True},
                 tensors=UNTIED | head_norms(HD) | biases(ATTENTION))
    yield config("qwen2 with a window", {"model_type": "qwen2", **qwen, "use_sliding_window": True}, "'use_sliding_window' is true, not false",
                 tensors=WEIGHTS | biases(QKV))
    yield config("qwen2 without biases", {"model_type": "qwen2"}, "self_attn.q_proj.bias: is not in the file, but 'model_type' is qwen2")
    yield config("qwen3 without norms of heads", {"model_type": "qwen3", "head_dim": HD}, "model.layers.0.self_attn.q_norm.weight: is not in the file")
    yield config("qwen3 of another size of heads", {"model_type": "qwen3"}, "self_attn.q_proj.weight: has not the shape [512, 256]", tensors=WEIGHTS | head_norms(HD))
    yield config("qwen2 with experts", {"model_type": "qwen2_moe"}, "'model_type' is qwen2_moe, not one of: llama mistral qwen2 qwen3")
    yield config("rope_parameters, dynamic", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}, **V5}, "'rope_parameters.rope_type' is dynamic")
    yield config("rope_parameters of kinds of layers", {"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "'rope_parameters.full_attention.rope_type'")
    yield config("linear without a factor", {"rope_parameters": {"rope_type": "linear"}}, "'linear' need 'factor'")
    yield config("llama3 without a factor of it", {"rope_scaling": {k: v for k, v in LONG.items() if k not in ("low_freq_factor", "rope_theta")}}, "need 'low_freq_factor'")
    yield config("two bases", {"rope_parameters": {"rope_theta": 500000.0}}, "'rope_theta' and 'rope_parameters.rope_theta' contradict each other")
    yield config("a part of a head turns", {"partial_rotary_factor": 0.5}, "'partial_rotary_factor' is 0.5")
    yield config("hidden_act: tanh", {"hidden_act": "tanh"}, "'hidden_act' is tanh, not one of: silu")
    yield config("hidden_act, no text", {"hidden_act": 3}, "'hidden_act' is 3")
    yield config("attention_bias that is not there", {"attention_bias": True}, "self_attn.q_proj.bias: is not in the file, but 'attention_bias' is true")
    yield config("mlp_bias that is not there", {"mlp_bias": True}, "mlp.gate_proj.bias: is not in the file, but 'mlp_bias' is true")
    yield config("a bias that no setting has", {}, "self_attn.q_proj.bias: is in the file, but no part of this model", tensors=WEIGHTS | biases(ATTENTION))
    yield config("kinds of layers", {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 4}, "'layer_types' and 'layer_types' contradict")
    yield config("a window of no size", {"layer_types": ["sliding_attention"] * LAYERS}, "'sliding_window' is not said")
    yield config("no head", {"tie_word_embeddings": False}, "lm_head.weight: is not in the file, but 'tie_word_embeddings' is not true", tensors=UNTIED)
    yield config("tied, with another head", {"tie_word_embeddings": True}, "lm_head.weight: is not the embedding, but 'tie_word_embeddings' is true")
    yield config("an unknown setting", {"logits_scaling": 8.0}, "the setting 'logits_scaling', 8, is not known here")
    yield config("an unknown object", {"quantization_config": {"quant_method": "gptq"}}, "'quantization_config.quant_method', gptq, is not known here")
    yield config("an unknown list", {"mlp_only_layers": [1]}, "'mlp_only_layers', a list, is not known here")
    yield config("an unknown tensor", {}, "model.layers.0.self_attn.q_norm.weight: is in the file", tensors=WEIGHTS | {"model.layers.0.self_attn.q_norm.weight": random(HD)})
    yield config("fewer rows than tokens", {"vocab_size": V - 1, "eos_token_id": 1}, f"'vocab_size' is {V - 1}, but there are {V} tokens")
    yield config("a number as a flag", {"attention_bias": 1}, "'attention_bias' is 1, not true or false")


def files():
    def keys(name, settings, refused=None, tensors=None, **more):
        return name, lambda path: gguf(path + ".gguf", settings, tensors or WEIGHTS, **more), refused

    scaling = "llama.rope.scaling."
    for kind in reference.BLOCKS:
        names = [n for n, w in WEIGHTS.items() if w.ndim == 2]
        yield keys(f"all in {kind}", {}, forms=dict.fromkeys(names, kind))
    yield keys("Q4_0, the head in Q6_K", {}, forms=dict.fromkeys([n for n, w in WEIGHTS.items() if w.ndim == 2], "Q4_0") | {HEAD: "Q6_K"})
    yield keys("Q4_K, some in Q6_K and Q5_0", {}, forms=dict.fromkeys([n for n, w in WEIGHTS.items() if w.ndim == 2], "Q4_K")
               | {n: "Q6_K" for n in WEIGHTS if "1.self_attn.v" in n or "0.mlp.down" in n} | {n: "Q5_0" for n in WEIGHTS if "0.mlp.up" in n})
    yield keys("the head is the embedding", {}, tensors=UNTIED)
    yield keys("the head is the embedding, in Q6_K", {}, tensors=UNTIED, forms={"model.embed_tokens.weight": "Q6_K"})
    yield keys("rope.freq_base", {"llama.rope.freq_base": 500000.0})
    yield keys("rope.scaling, linear", {scaling + "type": "linear", scaling + "factor": 4.0})
    yield keys("rope.scaling without a type", {scaling + "factor": 4.0})
    yield keys("rope.scaling, yarn", {scaling + "type": "yarn", scaling + "factor": 4.0, scaling + "original_context_length": 32, scaling + "finetuned": True})
    yield keys("yarn, all that it has", {scaling + "type": "yarn", scaling + "factor": 4.0, scaling + "original_context_length": 16, scaling + "yarn_beta_fast": 8.0,
                                         scaling + "yarn_beta_slow": 2.0})
    yield keys("rope_freqs", {}, more=[("rope_freqs.weight", (HD // 2,), 0, (1 + np.arange(HD // 2, dtype="<f4")).tobytes())])
    yield keys("biases", {}, tensors=WEIGHTS | biases(ATTENTION) | biases(MLP))
    yield keys("biases of queries, keys and values", {}, tensors=WEIGHTS | biases({k: v for k, v in ATTENTION.items() if k[-1] != "o"}))
    yield keys("attention.sliding_window", {"llama.attention.sliding_window": 5})
    yield keys("attention.scale", {"llama.attention.scale": 0.05})
    yield keys("numbers of other types", {"llama.block_count": i32(LAYERS), "llama.embedding_length": u64(D), "llama.attention.head_count": u16(H),
                                          "llama.rope.freq_base": f64(500000.0), "llama.feed_forward_length": [i32(F)] * LAYERS})
    yield keys("heads that are no part of the width", {"llama.attention.key_length": 32, "llama.attention.value_length": 32, "llama.rope.dimension_count": 32},
               tensors={n: w[:len(w) // 2] if "q_proj" in n or "k_proj" in n or "v_proj" in n else np.ascontiguousarray(w[:, :H * 32]) if "o_proj" in n else w
                        for n, w in WEIGHTS.items()})

    yield keys("qwen2", {"general.architecture": "qwen2", "tokenizer.ggml.pre": "qwen2"}, tensors=WEIGHTS | biases(QKV))
    yield keys("qwen3", {"general.architecture": "qwen3", "llama.attention.key_length": HD, "llama.attention.value_length": HD}, tensors=WEIGHTS | head_norms(HD))
    yield keys("qwen3, heads that are no part of the width, the head is the embedding", {"general.architecture": "qwen3", "llama.attention.key_length": 32,
               "llama.attention.value_length": 32, "llama.rope.dimension_count": 32}, tensors={n: w for n, w in HEADS_OF_32.items() if n != HEAD} | head_norms(32))
    yield keys("qwen3 without norms of heads", {"general.architecture": "qwen3"}, "blk.0.attn_q_norm.weight: is not in the file")
    yield keys("qwen2, an unknown key", {"general.architecture": "qwen2", "llama.residual_scale": 0.5}, "the setting 'qwen2.residual_scale', 0.5, is not known here")
    yield keys("qwen2, heads of several sizes", {"general.architecture": "qwen2", "llama.attention.key_length": 32},
               "'qwen2.rope.dimension_count' and 'qwen2.attention.key_length' contradict each other")
    yield keys("qwen2, no layers", {"general.architecture": "qwen2", "llama.block_count": 0}, "'qwen2.block_count' is 0, or missing")
    yield keys("qwen2 with experts", {"general.architecture": "qwen2moe"}, "'general.architecture' is qwen2moe, not one of: llama qwen2 qwen3")
    yield keys("another length of keys", {"llama.attention.key_length": 32}, "'llama.rope.dimension_count' and 'llama.attention.key_length' contradict each other")
    yield keys("another length of values", {"llama.attention.key_length": HD, "llama.attention.value_length": 32}, "'llama.attention.value_length' contradict each other")
    yield keys("layers of several widths", {"llama.feed_forward_length": [F, 2 * F]}, "'llama.feed_forward_length' contradict each other")
    yield keys("rope.scaling, longrope", {scaling + "type": "longrope"}, "'llama.rope.scaling.type' is longrope")
    yield keys("a factor that turns are not scaled by", {scaling + "type": "none", scaling + "factor": 4.0}, "have no 'factor', 4")
    yield keys("yarn_attn_factor", {scaling + "type": "yarn", scaling + "factor": 4.0, scaling + "yarn_attn_factor": 0.5}, "yarn_attn_factor' is 0.5, not 1")
    yield keys("factors for long texts", {}, "rope_factors_long.weight: is in the file, but no part", more=[("rope_factors_long.weight", (HD // 2,), 0, bytes(2 * HD))])
    yield keys("experts", {"llama.expert_count": 8}, "8 experts, of which a token goes through 0")
    yield keys("qwen2 with experts, by another name", {"general.architecture": "qwen2", "llama.expert_count": 8}, "'qwen2.expert_count' is 8, not 0")
    yield keys("an unknown key", {"llama.residual_scale": 0.5}, "the setting 'llama.residual_scale', 0.5, is not known here")
    yield keys("a part of several files", {"split.count": u16(2), "split.no": u16(0)}, "'split.count' is 2")
    yield keys("an adapter", {"general.type": "adapter"}, "'general.type' is adapter, not model")
    yield keys("an end behind each text", {"tokenizer.ggml.add_eos_token": True}, "'tokenizer.ggml.add_eos_token' is true, not false")
    yield keys("a norm of heads", {}, "blk.0.attn_q_norm.weight: is in the file", more=[("blk.0.attn_q_norm.weight", (HD,), 0, bytes(4 * HD))])


def run(program, model, *options):
    return subprocess.run([program, *options, model, PROMPT], capture_output=True, text=True, errors="replace", timeout=120)


def computed(program, model, base):
    """None if the logits are NumPy's, and not those of the plain model."""
    file = os.path.join(os.path.dirname(model), "logits.npy")
    r = run(program, model, "-n", "0", "-l", file)
    if r.returncode:
        return f"status {r.returncode}: {r.stderr.strip()}"
    m, got = reference.read(model), np.load(file)
    want = reference.logits(m, reference.encode(m, PROMPT))
    if got.shape != want.shape or not np.abs(got - want).max() < 1e-5 * np.abs(want).max():
        return f"another result: {np.abs(got - want).max() / np.abs(want).max() if got.shape == want.shape else got.shape:.1e}"
    changed = base is None or base.shape != want.shape or np.abs(base - want).max() > 1e-2 * np.abs(want).max()
    return None if changed else "nothing changed: the variant says nothing"


def refused(program, model, why):
    r = run(program, model, "-n", "0")
    lines = r.stderr.splitlines()
    return None if r.returncode == 1 and len(lines) == 1 and why in lines[0] else f"status {r.returncode}, {r.stderr!r}, not {why!r}"


def ends(program, path):
    """Tokens that end a text, in all the ways to say so: (how, what was generated)."""
    plain = lambda p, **more: folder(p, {"rope_theta": 500000.0}, WEIGHTS, **more)
    def generated(model):
        r = run(program, model, "-n", "3")
        out = r.stdout.split(f"[{PROMPT}]", 1)
        return len(out[1].split("\nprompts")[0].encode()) if len(out) == 2 else r.stderr
    folder_base, gguf_base = plain(path + "-base"), gguf(path + "-base.gguf", {}, WEIGHTS)
    first = {m: int(np.argmax(reference.logits(*(lambda n: (n, reference.encode(n, PROMPT)))(reference.read(m)))[-1])) for m in (folder_base, gguf_base)}
    a, b = first[folder_base], first[gguf_base]
    yield "nothing, a folder", generated(folder_base) != 0
    yield "eos_token_id, a list", generated(folder(path + "-list", {"rope_theta": 500000.0, "eos_token_id": [V - 1, a]}, WEIGHTS)) == 0
    yield "generation_config.json", generated(plain(path + "-generation", more={"generation_config.json": {"eos_token_id": [a], "top_p": 0.9}})) == 0
    yield "nothing, GGUF", generated(gguf_base) != 0
    for name in ("eos", "eot", "eom"):
        yield f"{name}_token_id", generated(gguf(f"{path}-{name}.gguf", {f"tokenizer.ggml.{name}_token_id": b}, WEIGHTS)) == 0


def main(program, _, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    counts, faults = {True: 0, False: 0}, 0
    for group in (folders, files):
        base = None
        plain = folder(os.path.join(scratch, "base"), {}, WEIGHTS) if group is folders else gguf(os.path.join(scratch, "base.gguf"), {}, WEIGHTS)
        m = reference.read(plain)
        wrong = computed(program, plain, None)
        base = reference.logits(m, reference.encode(m, PROMPT))
        faults += bool(wrong)
        if wrong:
            print(f"{group.__name__}, the plain model: {wrong}")
        for i, (name, write, why) in enumerate(group()):
            model = write(os.path.join(scratch, f"{group.__name__}{i}"))
            wrong = computed(program, model, base) if why is None else refused(program, model, why)
            counts[why is None] += 1
            faults += bool(wrong)
            if wrong:
                print(f"{group.__name__}, {name}: {wrong}")
    for how, good in ends(program, os.path.join(scratch, "ends")):
        faults += not good
        if not good:
            print(f"a token that ends a text, {how}: it does not, or others do")
    print(f"{counts[True]} variants computed, {counts[False]} refused, {faults} faults")
    shutil.rmtree(scratch)
    return faults > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
