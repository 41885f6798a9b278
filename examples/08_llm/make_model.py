#!/usr/bin/env python3
"""Checkpoints for 08_llm: a small decoder that knows text.txt by heart, in six forms, and tiny random ones of other families.

    make_model.py FOLDER                f32, bf16, int8 (as Hugging Face has them), f16.gguf, q8_0.gguf, q4_0.gguf
    make_model.py FOLDER --random N     the same with about N million weights, all random: to measure speed
    make_model.py FOLDER --gguf         f32.gguf, f16.gguf, q8_0.gguf, q4_0.gguf only
    make_model.py FOLDER --families     a folder and, where llama.cpp has the family, a file in GGUF for each of FAMILIES

Byte pairs are those of the text. The layers are random numbers of 4 bits; the last matrix is fitted to what comes out of them, by gradient
descent on the cross entropy of the next token (Adam), with noise for what rounding does to the features. Seeds are fixed.
"""
import argparse
import json
import os
import re
import struct
from collections import Counter

import numpy as np

import reference

END = "<|end|>"
SMALL = dict(num_hidden_layers=2, hidden_size=128, intermediate_size=352, num_attention_heads=8, num_key_value_heads=2)
COMMON = dict(architectures=["LlamaForCausalLM"], model_type="llama", rope_theta=10000.0, rms_norm_eps=1e-5,
              max_position_embeddings=2048, tie_word_embeddings=False,
              rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64))

TINY = dict(hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, head_dim=32, rms_norm_eps=1e-5, rope_theta=10000.0,
            max_position_embeddings=256)
HEADS_OF_48 = {k: v for k, v in TINY.items() if k != "head_dim"}
# Windows are shorter than a sentence, and there are layers of all kinds.
FAMILIES = {
    "gemma2": TINY | dict(architectures=["Gemma2ForCausalLM"], model_type="gemma2", num_hidden_layers=3, hidden_activation="gelu_pytorch_tanh", sliding_window=5,
                          query_pre_attn_scalar=32, attn_logit_softcapping=2.0, final_logit_softcapping=3.0, tie_word_embeddings=True),
    "gemma3": TINY | dict(architectures=["Gemma3ForCausalLM"], model_type="gemma3_text", num_hidden_layers=7, hidden_activation="gelu_pytorch_tanh", sliding_window=5,
                          query_pre_attn_scalar=32, rope_theta=1000000.0, rope_local_base_freq=10000.0, rope_scaling=dict(rope_type="linear", factor=8.0),
                          tie_word_embeddings=True),
    "phi3": HEADS_OF_48 | dict(architectures=["Phi3ForCausalLM"], model_type="phi3", num_hidden_layers=2, hidden_size=192, hidden_act="silu", sliding_window=9,
                        tie_word_embeddings=False, original_max_position_embeddings=256, pad_token_id=0),
    "mixtral": HEADS_OF_48 | dict(architectures=["MixtralForCausalLM"], model_type="mixtral", num_hidden_layers=2, hidden_act="silu", sliding_window=None,
                                  num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=False),
    "qwen3_moe": TINY | dict(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", num_hidden_layers=2, hidden_act="silu", num_experts=6,
                             num_experts_per_tok=3, moe_intermediate_size=64, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[],
                             tie_word_embeddings=False),
    "gpt_oss": TINY | dict(architectures=["GptOssForCausalLM"], model_type="gpt_oss", num_hidden_layers=3, hidden_act="silu", attention_bias=True, sliding_window=5,
                           num_local_experts=5, num_experts_per_tok=2, swiglu_limit=1.5, tie_word_embeddings=False,
                           rope_scaling=dict(rope_type="yarn", factor=8.0, beta_fast=32.0, beta_slow=1.0, original_max_position_embeddings=32, truncate=False)),
}

# ---- byte pairs ----


def byte_pairs(text, merges):
    """(tokens, pairs): the pairs that are most frequent in the text, one after another."""
    counts = Counter(tuple(w) for w in reference.words(text))
    tokens, pairs = sorted(reference.LETTER.values()), []
    for _ in range(merges):
        seen = Counter()
        for word, n in counts.items():
            for pair in zip(word, word[1:]):
                seen[pair] += n
        best = max(seen, key=lambda p: (seen[p], p))
        if seen[best] < 2:
            break
        pairs.append(best)
        tokens.append("".join(best))
        counts = Counter({merged(word, best): n for word, n in counts.items()})
    return tokens + [END], pairs


def merged(word, pair):
    out = []
    for letter in word:
        if out and (out[-1], letter) == pair:
            out[-1] += letter
        else:
            out.append(letter)
    return tuple(out)


# ---- weights ----


def random_weights(g, vocabulary, rng):
    e, f, d = g["hidden_size"], g["intermediate_size"], reference.head_size(g)
    one = 0 if reference.is_gemma(g) else 1  # its norms' weights are less by 1
    queries, keys = g["num_attention_heads"] * d, g["num_key_value_heads"] * d
    matrix = lambda rows, cols, size=1.0: rng.normal(0, size / np.sqrt(cols), (rows, cols)).astype(np.float32)
    biases = {}
    w = {"model.embed_tokens": matrix(vocabulary, e, np.sqrt(e) * (0.25 if reference.is_gemma(g) else 1)), "model.norm": one + rng.normal(0, 0.1, e), "lm_head": matrix(vocabulary, e)}
    for i in range(g["num_hidden_layers"]):
        at = f"model.layers.{i}."
        w |= {at + "input_layernorm": one + rng.normal(0, 0.1, e), at + "post_attention_layernorm": one + rng.normal(0, 0.1, e),
              at + "self_attn.q_proj": matrix(queries, e, 1.5), at + "self_attn.k_proj": matrix(keys, e, 1.5),
              at + "self_attn.v_proj": matrix(keys, e, 2), at + "self_attn.o_proj": matrix(e, queries, 2),
              at + "mlp.gate_proj": matrix(f, e), at + "mlp.up_proj": matrix(f, e), at + "mlp.down_proj": matrix(e, f)}
        if reference.is_gemma(g):
            w |= {at + "pre_feedforward_layernorm": rng.normal(0, 0.3, e), at + "post_feedforward_layernorm": rng.normal(0, 0.3, e)}
        if g["model_type"] in ("qwen3", "qwen3_moe", "gemma3_text"):
            w |= {at + f"self_attn.{part}_norm": one + rng.normal(0, 0.3, d) for part in "qk"}
        if reference.many(g):
            dense = {part: w.pop(at + "mlp." + part + "_proj").shape for part in ("gate", "up", "down")}
            size = g.get("moe_intermediate_size") or f
            shapes = {part: tuple(size if n == f else n for n in shape) for part, shape in dense.items()}
            called = reference.names(g)
            w[at + called["ffn_gate_inp"]] = matrix(reference.many(g), e)
            if g["model_type"] != "gpt_oss":
                w |= {at + called[f"ffn_{part}_exps"].replace("*", str(i)): matrix(*shapes[part]) for i in range(reference.many(g)) for part in shapes}
        for whole, rows in reference.parts(g).items() if g["model_type"] == "phi3" else ():
            w[at + whole] = np.concatenate([w.pop(at + part) for part in rows])
        if g["model_type"] == "gpt_oss":
            for part in shapes:
                w[at + f"mlp.experts.{part}_proj"] = np.stack([matrix(*shapes[part]) * 2 for _ in range(reference.many(g))])
                biases[at + f"mlp.experts.{part}_proj.bias"] = rng.normal(0, 0.3, (reference.many(g), shapes[part][0]))
            w[at + "self_attn.sinks"] = rng.normal(0, 1, g["num_attention_heads"])
            biases[at + "mlp.router.bias"] = rng.normal(0, 1, reference.many(g))
            biases |= {at + f"self_attn.{part}_proj.bias": rng.normal(0, 0.5, len(w[at + f"self_attn.{part}_proj"])) for part in "qkvo"}
    if g["tie_word_embeddings"]:
        del w["lm_head"]
    return {n: v.astype(np.float32) for n, v in biases.items()} | {name + ".weight": on_grid(v.astype(np.float32)) for name, v in w.items()}


def on_grid(w):
    """Matrices of numbers that have 4 bits from the start, as training for few bits makes them: layers of rounded random numbers are others."""
    return reference.DECODE["Q4_0"](q4_0(w).tobytes()).reshape(w.shape) if w.ndim == 2 else w


def fit(m, text, steps=150):
    """The last matrix, so that each token of a paragraph is followed by the next one."""
    number = {t: i for i, t in enumerate(m.tokens)}
    paragraphs = [reference.encode(m, p) + [number[END]] for p in text.strip().split("\n\n")]
    x = np.concatenate([reference.features(m, p[:-1]) for p in paragraphs]).astype(np.float32)
    y = np.concatenate([p[1:] for p in paragraphs])
    rng = np.random.default_rng(2)
    w = np.zeros((len(m.tokens), x.shape[1]), np.float32)
    first, second = np.zeros_like(w), np.zeros_like(w)
    for step in range(1, steps + 1):
        noisy = x + rng.normal(0, 0.2, x.shape).astype(np.float32)
        z = noisy @ w.T
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss = -np.log(p[np.arange(len(y)), y]).mean()
        p[np.arange(len(y)), y] -= 1
        grad = p.T @ noisy / len(y)
        first += 0.1 * (grad - first)
        second += 0.01 * (grad * grad - second)
        w -= 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    known = ((x @ w.T).argmax(1) == y).mean()
    print(f"{len(m.tokens)} tokens, {len(y)} places in the text: cross entropy {loss:.3f}, {100 * known:.1f}% known by heart")
    return w


# ---- forms of numbers ----


def bf16(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def q8_0(x):
    x = x.reshape(-1, 32)
    d = np.abs(x).max(1, keepdims=True) / 127
    q = np.round(x * np.divide(1, d, out=np.zeros_like(d), where=d != 0)).astype(np.int8)
    return np.concatenate([d.astype("<f2").view(np.uint8), q.view(np.uint8)], 1)


def q4_0(x):
    x = x.reshape(-1, 32)
    d = np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1) / -8
    q = np.minimum(x * np.divide(1, d, out=np.zeros_like(d), where=d != 0) + 8.5, 15).astype(np.uint8)
    return np.concatenate([d.astype("<f2").view(np.uint8), q[:, :16] | q[:, 16:] << 4], 1)


def int8(x):
    scale = np.abs(x).max(1, keepdims=True) / 127
    return np.round(x / scale).astype(np.int8), scale.astype("<f4")


# ---- files ----


def mxfp4(x):
    """Scales (by the greatest number of 32) and the codes of the nearest of e2m1."""
    x = x.reshape(*x.shape[:-1], -1, 32).astype(np.float64)
    power = np.floor(np.log2(np.maximum(np.abs(x).max(-1), 1e-30))) - 2
    code = np.abs(x[..., None] / np.exp2(power)[..., None, None] - reference.E2M1).argmin(-1)
    return (power + 127).astype(np.uint8), code.astype(np.uint8)


def gguf_mxfp4(x):
    scale, code = mxfp4(x)
    return np.concatenate([scale[..., None], code[..., :16] | code[..., 16:] << 4], -1)


def oss_tensors(m, form):
    """(name, tensor) as gpt-oss's folders have them: numbers [experts, columns, rows], rows of the gate and of what it lets through by turns, or mxfp4."""
    for name, w in m.weights.items():
        stem, what = name.rsplit(".", 1)
        if stem.endswith("sinks"):
            yield stem, w
        elif ".experts." not in name:
            yield name, w
        elif ".up_proj" not in name:
            if ".gate_proj" in name:
                w = np.stack([w, m.weights[name.replace("gate_proj", "up_proj")]], 2).reshape(len(w), -1, *w.shape[2:])
            stem = stem.replace("gate_proj", "gate_up_proj")
            if what == "bias":
                yield stem + "_bias", w
            elif form == "mxfp4":
                scale, code = mxfp4(w)
                yield from ((stem + "_scales", scale), (stem + "_blocks", code[..., ::2] | code[..., 1::2] << 4))
            else:
                yield stem, w.swapaxes(1, 2)


def write_folder(path, m, form):
    os.makedirs(path, exist_ok=True)
    arrays = {}
    for name, w in oss_tensors(m, form) if m.config["model_type"] == "gpt_oss" else m.weights.items():
        if w.dtype == np.uint8:
            arrays[name] = ("U8", w)
            continue
        if form == "int8" and w.ndim == 2 and name.endswith("weight"):
            arrays[name], arrays[name + "_scale"] = ("I8", int8(w)[0]), ("F32", int8(w)[1])
        else:
            arrays[name] = ("F32", np.ascontiguousarray(w, "<f4")) if form != "bf16" else ("BF16", bf16(w))
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (kind, a) in sorted(arrays.items()):
        header[name] = dict(dtype=kind, shape=a.shape, data_offsets=[len(data), len(data) + a.nbytes])
        data += a.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(path, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    number = {t: i for i, t in enumerate(m.tokens)}
    config = dict(m.config, vocab_size=len(m.tokens), eos_token_id=number[END])
    if form == "mxfp4":
        config["quantization_config"] = dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn", "lm_head"])
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=1)
    tokenizer = dict(added_tokens=[dict(id=number[END], content=END, special=True)],
                     pre_tokenizer=dict(type="ByteLevel", add_prefix_space=False, use_regex=True),
                     model=dict(type="BPE", vocab={t: i for t, i in number.items() if t != END}, merges=[" ".join(p) for p in m.merges]))
    with open(os.path.join(path, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump(tokenizer, f, indent=1)


def pack_text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def pack_key(name, value):
    def bare(v):
        return (8, pack_text(v)) if isinstance(v, str) else (6, struct.pack("<f", v)) if isinstance(v, float) else (4, struct.pack("<I", v))

    if isinstance(value, list):
        packed = [(5, struct.pack("<i", v)) if isinstance(v, int) else bare(v) for v in value]
        return pack_text(name) + struct.pack("<IIQ", 9, packed[0][0], len(value)) + b"".join(p for _, p in packed)
    kind, packed = bare(value)
    return pack_text(name) + struct.pack("<I", kind) + packed


def interleave_heads(w, heads):
    """Rows of a head so that rotary pairs, which were halves of it, become neighbours."""
    return w.reshape(heads, 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def gguf_tensors(m, form):
    if reference.kind(m.config) == "longrope":
        for what in ("short", "long"):
            factor = np.array(reference.rope(m.config)[what + "_factor"], "<f4")
            yield f"rope_factors_{what}.weight", factor.shape, 0, factor.tobytes()
    if reference.kind(m.config) == "llama3":
        factor = reference.slowness(m.config)
        yield "rope_freqs.weight", factor.shape, 0, factor.astype("<f4").tobytes()
    parts = {v: k for k, v in reference.names(m.config).items()}
    for name, w in m.weights.items():
        stem, what = name.rsplit(".", 1)
        if stem.startswith("model.layers."):
            layer, part = stem[len("model.layers."):].split(".", 1)
            if gguf_family(m.config) == "llama" and part in ("self_attn.q_proj", "self_attn.k_proj"):
                w = interleave_heads(w, m.config["num_attention_heads" if part[10] == "q" else "num_key_value_heads"])
            expert = re.search(r"experts\.(\d+)\.", part)
            if expert and int(expert[1]):
                continue  # it is in one tensor with the first
            if expert:
                part = part.replace(".0.", ".*.")
                w = np.stack([m.weights[f"model.layers.{layer}.{part.replace('*', str(i))}.weight"] for i in range(reference.many(m.config))])
            stem = f"blk.{layer}.{parts[part]}"
        else:
            stem = parts[stem]
        w = w + m.offset if w.ndim == 1 and stem.endswith("norm") else w
        # norms in f32 and the last matrix in 8 bits, as llama.cpp's files of 4 bits have it
        kind = "f32" if w.ndim == 1 or stem.endswith("inp") or what == "bias" or (form == "mxfp4" and "exps" not in stem) else "q8_0" if form == "q4_0" and stem == "output" else form
        code, packed = {"f32": (0, lambda x: x.astype("<f4")), "f16": (1, lambda x: x.astype("<f2")), "q4_0": (2, q4_0), "q8_0": (8, q8_0),
                        "mxfp4": (39, gguf_mxfp4)}[kind]
        yield f"{stem}.{what}", w.shape, code, packed(w).tobytes()


GGUF_NAMES = {"num_hidden_layers": "block_count", "max_position_embeddings": "context_length", "hidden_size": "embedding_length",
              "intermediate_size": "feed_forward_length", "num_attention_heads": "attention.head_count", "num_key_value_heads": "attention.head_count_kv",
              "rope_theta": "rope.freq_base", "rms_norm_eps": "attention.layer_norm_rms_epsilon", "sliding_window": "attention.sliding_window",
              "attn_logit_softcapping": "attn_logit_softcapping", "num_local_experts": "expert_count", "num_experts": "expert_count",
              "num_experts_per_tok": "expert_used_count", "moe_intermediate_size": "expert_feed_forward_length", "final_logit_softcapping": "final_logit_softcapping"}


def gguf_family(g):
    """What llama.cpp calls a model type."""
    return {**{v: k for k, v in reference.MODEL_TYPE.items()}, "mixtral": "llama"}.get(g["model_type"], g["model_type"])


def write_packed(path, keys, tensors):
    """A file in GGUF: keys, and (name, shape, number of the type, bytes) of tensors."""
    head, data = b"", b""
    for name, shape, code, raw in tensors:
        head += pack_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], code, len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    start = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(pack_key(*k) for k in keys.items()) + head
    with open(path, "wb") as f:
        f.write(start + b"\0" * (-len(start) % 32) + data)


def write_gguf(path, m, form):
    g, family = m.config, gguf_family(m.config)
    keys = {"general.architecture": family, "general.name": os.path.basename(path), **{f"{family}.{n}": g[k] for k, n in GGUF_NAMES.items() if g.get(k) is not None},
            f"{family}.attention.key_length": reference.head_size(g), f"{family}.attention.value_length": reference.head_size(g), f"{family}.vocab_size": len(m.tokens),
            "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": m.tokens,
            "tokenizer.ggml.token_type": [3 if t == END else 1 for t in m.tokens],
            "tokenizer.ggml.merges": [" ".join(p) for p in m.merges], "tokenizer.ggml.eos_token_id": m.tokens.index(END)}
    if reference.turned(g) < reference.head_size(g):
        keys[f"{family}.rope.dimension_count"] = reference.turned(g)
    if reference.kind(g) == "longrope":
        keys |= {f"{family}.rope.scaling.attn_factor": reference.amplitude(g), f"{family}.rope.scaling.original_context_length": reference.original(g)}
    if reference.kind(g) == "yarn":
        keys |= {f"{family}.rope.scaling.type": "yarn", f"{family}.rope.scaling.factor": reference.rope(g)["factor"],
                 f"{family}.rope.scaling.original_context_length": reference.original(g)}
    if reference.kind(g) == "linear":
        keys |= {f"{family}.rope.scaling.type": "linear", f"{family}.rope.scaling.factor": reference.rope(g)["factor"]}
    write_packed(path, keys, list(gguf_tensors(m, form)))


def tiny(name, text, **more):
    """A random model of FAMILIES, with some settings changed."""
    m = reference.Model()
    m.config = FAMILIES[name] | more
    m.interleaved, m.offset = False, float(reference.is_gemma(m.config))
    m.tokens, m.merges = byte_pairs(text, 40)
    m.weights = random_weights(m.config, len(m.tokens), np.random.default_rng(3))
    return m


def write_families(folder, text):
    os.makedirs(folder, exist_ok=True)
    for name in FAMILIES:
        m = tiny(name, text)
        write_folder(os.path.join(folder, name), m, "f32")
        write_gguf(os.path.join(folder, name + ".gguf"), m, "f16")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--random", type=float, metavar="N")
    parser.add_argument("--gguf", action="store_true")
    parser.add_argument("--families", action="store_true")
    options = parser.parse_args()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "text.txt"), encoding="utf-8") as f:
        text = f.read()
    if options.families:
        return write_families(options.folder, text)
    m = reference.Model()
    m.interleaved = False
    m.config = dict(SMALL)
    m.tokens, m.merges = byte_pairs(text, 400)
    if options.random:
        wide = round((options.random * 1e6 / 96) ** 0.5 / 128) * 128  # 8 layers: 2.5 e^2 of attention, 9 e^2 of the rest
        m.config.update(num_hidden_layers=8, hidden_size=wide, intermediate_size=3 * wide, num_attention_heads=wide // 64,
                        num_key_value_heads=wide // 128)
    m.config = dict(COMMON, **m.config)
    m.weights = random_weights(m.config, len(m.tokens), np.random.default_rng(1))
    if not options.random:
        m.weights["lm_head.weight"] = fit(m, text)
    os.makedirs(options.folder, exist_ok=True)
    for form in () if options.gguf else ("f32", "bf16", "int8"):
        write_folder(os.path.join(options.folder, form), m, form)
    for form in ("f32",) * options.gguf + ("f16", "q8_0", "q4_0"):
        write_gguf(os.path.join(options.folder, form + ".gguf"), m, form)


if __name__ == "__main__":
    main()
