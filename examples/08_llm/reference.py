#!/usr/bin/env python3
"""The decoder in NumPy, f64, with readers of its own: what 08_llm is compared with.

    reference.py MODEL LOGITS.npy PROMPT...     the greatest difference of logits; exit status 1 if it is large

A model is a folder with config.json, model.safetensors and tokenizer.json, or a GGUF file.
"""
import json
import math
import os
import re
import struct
import sys

import numpy as np

# ---- numbers ----


def from_bf16(raw):
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)


def halves(b):
    return np.concatenate([b & 15, b >> 4], -1)


def f16(b):
    return b.copy().view("<f2").astype(np.float32)


def fifths(b):
    """The bits of 4 bytes, each as 16 or 0."""
    return np.unpackbits(b, axis=1, bitorder="little") * 16


def six_bits(s):
    """8 scales and 8 least numbers of 6 bits in 12 bytes."""
    a, b, c = s[:, :4], s[:, 4:8], s[:, 8:]
    return np.concatenate([a & 63, c & 15 | a >> 6 << 4], 1), np.concatenate([b & 63, c >> 4 | b >> 6 << 4], 1)


def of_parts(b, q):
    scale, least = six_bits(b[:, 4:16])
    return (f16(b[:, :2]) * scale)[..., None] * q.reshape(-1, 8, 32) - (f16(b[:, 2:4]) * least)[..., None]


def two_bits(b):
    """The 2 bits of 256 numbers in 64 bytes."""
    return (b.reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3).reshape(-1, 16, 16)


def from_q2_k(b):
    return (f16(b[:, 80:82]) * (b[:, :16] & 15))[..., None] * two_bits(b[:, 16:80]) - (f16(b[:, 82:]) * (b[:, :16] >> 4))[..., None]


def from_q3_k(b):
    third = np.unpackbits(b[:, :32, None], axis=2, bitorder="little").swapaxes(1, 2).reshape(-1, 16, 16)
    high = (b[:, None, 104:108] >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3).reshape(-1, 16)
    scale = (halves(b[:, 96:104]) | high << 4).astype(np.float32) - 32
    return (f16(b[:, 108:]) * scale)[..., None] * ((two_bits(b[:, 32:96]) | third << 2).astype(np.float32) - 4)


def from_iq4_xs(b):
    high = b[:, 2:4].copy().view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    low = np.stack([b[:, 4:8] & 15, b[:, 4:8] >> 4], 2).reshape(-1, 8)
    return (f16(b[:, :2]) * ((low | high << 4).astype(np.float32) - 32))[..., None] * UNEVEN[halves(b[:, 8:].reshape(-1, 8, 16))]


def from_q6_k(b):
    low = halves(b[:, :128].reshape(-1, 2, 64)).reshape(-1, 16, 16)
    q = (low | two_bits(b[:, 128:192]) << 4).astype(np.float32) - 32
    return (f16(b[:, 208:]) * b[:, 192:208].view(np.int8))[..., None] * q


UNEVEN = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
# ggml's blocks: the number of the type in GGUF, numbers and bytes of a block, the numbers of blocks [N, bytes]
BLOCKS = {
    "Q4_0": (2, 32, 18, lambda b: f16(b[:, :2]) * (halves(b[:, 2:]).astype(np.float32) - 8)),
    "Q4_1": (3, 32, 20, lambda b: f16(b[:, :2]) * halves(b[:, 4:]) + f16(b[:, 2:4])),
    "Q5_0": (6, 32, 22, lambda b: f16(b[:, :2]) * ((halves(b[:, 6:]) | fifths(b[:, 2:6])).astype(np.float32) - 16)),
    "Q5_1": (7, 32, 24, lambda b: f16(b[:, :2]) * (halves(b[:, 8:]) | fifths(b[:, 4:8])) + f16(b[:, 2:4])),
    "Q8_0": (8, 32, 34, lambda b: f16(b[:, :2]) * b[:, 2:].view(np.int8)),
    "Q2_K": (10, 256, 84, from_q2_k),
    "Q3_K": (11, 256, 110, from_q3_k),
    "Q4_K": (12, 256, 144, lambda b: of_parts(b, halves(b[:, 16:].reshape(-1, 4, 32)))),
    "Q5_K": (13, 256, 176, lambda b: of_parts(b, halves(b[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
                                              | (b[:, 16:48, None] >> np.arange(8, dtype=np.uint8) & 1).swapaxes(1, 2) * 16)),
    "Q6_K": (14, 256, 210, from_q6_k),
    "IQ4_NL": (20, 32, 18, lambda b: f16(b[:, :2]) * UNEVEN[halves(b[:, 2:])]),
    "IQ4_XS": (23, 256, 136, from_iq4_xs),
    "MXFP4": (39, 32, 17, lambda b: np.exp2(b[:, :1].astype(np.float32) - 127) * E2M1[halves(b[:, 1:])]),
}


def from_blocks(name):
    _, _, size, numbers = BLOCKS[name]
    return lambda raw: numbers(np.frombuffer(raw, np.uint8).reshape(-1, size)).ravel()


def from_mxfp4(blocks, scales):
    """Neighbours share a byte in gpt-oss's folders, [..., 16]; scales [...]."""
    q = np.stack([blocks & 15, blocks >> 4], -1).reshape(*blocks.shape[:-1], 32)
    return (np.exp2(scales[..., None].astype(np.float64) - 127) * E2M1[q]).reshape(*blocks.shape[:-2], -1)


DECODE = {"F32": lambda r: np.frombuffer(r, "<f4"), "F16": lambda r: np.frombuffer(r, "<f2"), "BF16": from_bf16,
          "I8": lambda r: np.frombuffer(r, np.int8), "U8": lambda r: np.frombuffer(r, np.uint8), **{name: from_blocks(name) for name in BLOCKS}}
GGUF = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 30: ("BF16", 1, 2), **{b[0]: (name, b[1], b[2]) for name, b in BLOCKS.items()}}

# ---- files ----

NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
GEMMA = {"ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
PHI = {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}
MIXTRAL = {"ffn_gate_inp": "block_sparse_moe.gate", "ffn_gate_exps": "block_sparse_moe.experts.*.w1", "ffn_up_exps": "block_sparse_moe.experts.*.w3",
           "ffn_down_exps": "block_sparse_moe.experts.*.w2"}
QWEN_MOE = {"ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.experts.*.gate_proj", "ffn_up_exps": "mlp.experts.*.up_proj", "ffn_down_exps": "mlp.experts.*.down_proj"}
GPT_OSS = {"ffn_norm": "post_attention_layernorm", "post_attention_norm": "post_attention_layernorm", "attn_sinks": "self_attn.sinks", "ffn_gate_inp": "mlp.router",
           **{f"ffn_{part}_exps": f"mlp.experts.{part}_proj" for part in ("gate", "up", "down")}}
OF_FAMILY = {"gpt_oss": GPT_OSS, "gemma2": GEMMA, "gemma3_text": GEMMA, "phi3": PHI, "mixtral": MIXTRAL, "qwen3_moe": QWEN_MOE}
MODEL_TYPE = {"gemma3": "gemma3_text", "qwen3moe": "qwen3_moe", "gpt-oss": "gpt_oss"}  # where GGUF has another name


def names(g):
    """GGUF's names of a layer's tensors: Hugging Face's."""
    return NAMES | OF_FAMILY.get(g.get("model_type"), {})


class Model:
    """config (of Hugging Face's names), weights by Hugging Face's names, tokens, merges; interleaved: rotary pairs are neighbours; factor: of a head's pairs, see
    slowness, as far as tensors say it; offset: what is added to the weights of norms."""

    factor = 1.0
    offset = 0.0


def read_folder(path):
    m = Model()
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        m.config = json.load(f)
    with open(os.path.join(path, "tokenizer.json"), encoding="utf-8") as f:
        tokenizer = json.load(f)
    vocab = dict(tokenizer["model"]["vocab"], **{t["content"]: t["id"] for t in tokenizer["added_tokens"]})
    m.tokens = sorted(vocab, key=vocab.get)
    m.merges = [tuple(p.split(" ")) if isinstance(p, str) else tuple(p) for p in tokenizer["model"]["merges"]]
    raw = {}
    for name in sorted(os.listdir(path)):
        if name.endswith(".safetensors"):
            with open(os.path.join(path, name), "rb") as f:
                header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
                data = f.read()
            raw |= {n: DECODE[t["dtype"]](data[slice(*t["data_offsets"])]).reshape(t["shape"]) for n, t in header.items() if n != "__metadata__"}
    if m.config["model_type"] == "gpt_oss":
        raw = gpt_oss(raw)
    raw = {n: w.astype(np.float64) for n, w in raw.items()}
    m.weights = {n: w * raw.get(n + "_scale", 1) for n, w in raw.items() if not n.endswith("_scale")}
    m.interleaved, m.offset = False, float(is_gemma(m.config))
    return m


def gpt_oss(raw):
    """The tensors of gpt-oss's folders by other families' names: [experts, rows, columns]."""
    out = {n: w for n, w in raw.items() if ".experts." not in n and "sinks" not in n}
    out |= {n + ".weight": w for n, w in raw.items() if "sinks" in n}
    for n in raw:
        if not n.endswith("_proj_bias"):
            continue
        stem, bias = n[:-len("_bias")], raw[n]
        w = from_mxfp4(raw[stem + "_blocks"], raw[stem + "_scales"]) if stem + "_blocks" in raw else raw[stem].swapaxes(1, 2)
        parts = {"gate_proj": slice(0, None, 2), "up_proj": slice(1, None, 2)} if stem.endswith("gate_up_proj") else {"down_proj": slice(None)}
        for part, rows in parts.items():
            one = stem.rsplit(".", 1)[0] + "." + part
            out |= {one + ".weight": w[:, rows], one + ".bias": bias[:, rows]}
    return out


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        v = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return v[0]

    def text(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            of, n = self.take("I"), self.take("Q")
            return [self.value(of) for _ in range(n)]
        return self.take("BbHhIif?xxQqd"[kind])


def read_gguf(path):
    m = Model()
    with open(path, "rb") as f:
        c = Cursor(f.read())
    assert c.data[:4] == b"GGUF"
    c.at = 8
    ntensors, nkeys = c.take("Q"), c.take("Q")
    keys = {}
    for _ in range(nkeys):
        name = c.text()
        keys[name] = c.value(c.take("I"))
    about = []
    for _ in range(ntensors):
        name, rank = c.text(), c.take("I")
        shape = [c.take("Q") for _ in range(rank)][::-1]
        about.append((name, shape, c.take("I"), c.take("Q")))
    start = -(-c.at // 32) * 32
    m.weights, factors = {}, {}
    m.config = gguf_config(keys)
    called = names(m.config)
    for name, shape, kind, offset in about:
        form, elements, size = GGUF[kind]
        raw = c.data[start + offset:start + offset + int(np.prod(shape)) // elements * size]
        if name.startswith("rope_f"):
            factors[name] = DECODE[form](raw)
            continue
        part, what = name.split(".")[-2:]
        layer = f"model.layers.{name.split('.')[1]}." if name.startswith("blk.") else ""
        w = DECODE[form](raw).reshape(shape).astype(np.float64)
        for i, one in enumerate(w if "*" in called[part] else [w]):
            m.weights[f"{layer}{called[part].replace('*', str(i))}.{what}"] = one
    m.factor = factors.get("rope_freqs.weight", 1.0)
    if "rope_factors_long.weight" in factors:
        m.config["rope_parameters"] |= dict(rope_type="longrope", attention_factor=keys.get(keys["general.architecture"] + ".rope.scaling.attn_factor", 1.0),
                                            **{f"{what}_factor": factors[f"rope_factors_{what}.weight"] for what in ("short", "long")})
    m.tokens, m.merges = keys["tokenizer.ggml.tokens"], [tuple(p.split(" ")) for p in keys.get("tokenizer.ggml.merges", [])]
    m.interleaved = keys["general.architecture"] == "llama"
    return m


def gguf_config(keys):
    family = keys["general.architecture"]
    get = lambda name, other=None: keys.get(f"{family}.{name}", other)
    scaling = dict(rope_type=get("rope.scaling.type", "linear" if family + ".rope.scaling.factor" in keys else "default"), factor=get("rope.scaling.factor"),
                   original_max_position_embeddings=get("rope.scaling.original_context_length"), beta_fast=get("rope.scaling.yarn_beta_fast"),
                   beta_slow=get("rope.scaling.yarn_beta_slow"), rope_theta=get("rope.freq_base", 10000.0))
    g = dict(num_hidden_layers=get("block_count"), intermediate_size=get("feed_forward_length"), hidden_size=get("embedding_length"), num_attention_heads=get("attention.head_count"),
                    num_key_value_heads=get("attention.head_count_kv"), head_dim=get("attention.key_length"), max_position_embeddings=get("context_length"),
                    rope_parameters={k: v for k, v in scaling.items() if v is not None}, rms_norm_eps=get("attention.layer_norm_rms_epsilon"),
                    sliding_window=get("attention.sliding_window"), attention_scale=get("attention.scale"), model_type=MODEL_TYPE.get(family, family))
    if family == "phi3" and get("rope.dimension_count"):
        g["partial_rotary_factor"] = get("rope.dimension_count") / head_size(g)
    if get("expert_count"):
        g |= dict(num_experts=get("expert_count"), num_experts_per_tok=get("expert_used_count"), norm_topk_prob=True,
                  model_type="mixtral" if family == "llama" else g["model_type"])
    if is_gemma(g):
        wide = g["num_hidden_layers"] == {"gemma2": 46, "gemma3": 62}[family]
        g |= dict(query_pre_attn_scalar=g["hidden_size"] / g["num_attention_heads"] if wide else head_size(g), rope_local_base_freq=get("rope.freq_base_swa", 10000.0),
                  sliding_window_pattern=get("attention.sliding_window_pattern"), **{what: get(what) for what in ("attn_logit_softcapping", "final_logit_softcapping") if get(what)},
                  sliding_window=get("attention.sliding_window", 4096 if family == "gemma2" else None))
    return g


def read(path):
    return read_gguf(path) if path.endswith(".gguf") else read_folder(path)


# ---- byte pairs ----

WORDS = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z\x80-\xff]+| ?[0-9]+| ?[^\sA-Za-z0-9\x80-\xff]+|\s+(?!\S)|\s+")
SHOWN = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
HIDDEN = [b for b in range(256) if b not in SHOWN]
LETTER = {**{b: chr(b) for b in SHOWN}, **{b: chr(256 + i) for i, b in enumerate(HIDDEN)}}


def words(text):
    """Words of a text in GPT-2's alphabet, a letter a byte."""
    return ["".join(LETTER[ord(c)] for c in w) for w in WORDS.findall(text.encode().decode("latin-1"))]


def encode(m, text):
    rank = {pair: i for i, pair in enumerate(m.merges)}
    number = {t: i for i, t in enumerate(m.tokens)}
    out = []
    for word in words(text):
        parts = list(word)
        while len(parts) > 1:
            best = min(range(len(parts) - 1), key=lambda i: rank.get((parts[i], parts[i + 1]), len(rank)))
            if (parts[best], parts[best + 1]) not in rank:
                break
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        out += [number[p] for p in parts]
    return out


# ---- the decoder ----


def norm(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def head_size(g):
    return g.get("head_dim") or g["hidden_size"] // g["num_attention_heads"]


def is_gemma(g):
    return g.get("model_type", "").startswith("gemma")


def rope(g):
    r = g.get("rope_parameters") or g.get("rope_scaling") or {}
    return r.get("full_attention", r)


def kind(g):
    return rope(g).get("rope_type") or rope(g).get("type") or "default"


def base(g):
    return rope(g).get("rope_theta") or g.get("rope_theta", 10000.0)


def original(g):
    """The length of texts that positions were made for."""
    return rope(g).get("original_max_position_embeddings") or g.get("original_max_position_embeddings") or g["max_position_embeddings"]


def turned(g):
    """So many elements of a head turn, the first."""
    return int(head_size(g) * (rope(g).get("partial_rotary_factor") or g.get("partial_rotary_factor") or 1))


def slowness(g, length=0):
    """What divides the angle of each pair of a head, that long texts can be told from short ones; in texts of that length."""
    s, d = rope(g), turned(g)
    i, long = np.arange(d // 2), original(g)
    if kind(g) in ("longrope", "su"):
        return np.array(s["long_factor" if length > long else "short_factor"], float)
    if kind(g) == "llama3":
        wave = 2 * np.pi * base(g) ** (i / len(i))
        stay = (long / wave - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
    elif kind(g) == "yarn":
        place = lambda turns: d * np.log(long / (turns * 2 * np.pi)) / (2 * np.log(base(g)))
        low, high = place(s.get("beta_fast", 32)), place(s.get("beta_slow", 1))
        if s.get("truncate", True):
            low, high = np.floor(low), np.ceil(high)
        low, high = max(low, 0), min(high, d - 1)
        stay = 1 - (i - low) / (high - low)
    else:
        stay = 0 * i
    stay = stay.clip(0, 1)
    return 1 / ((1 - stay) / (s.get("factor", 1) if kind(g) not in ("default", "none") else 1) + stay)


def amplitude(g):
    """What YaRN and LongRoPE multiply what turns of queries and keys by."""
    s = rope(g)
    if kind(g) in ("longrope", "su"):
        factor = s.get("factor") or g["max_position_embeddings"] / original(g)
        return s.get("attention_factor") or (math.sqrt(1 + math.log(factor) / math.log(original(g))) if factor > 1 else 1.0)
    grow = lambda m: 0.1 * m * np.log(s["factor"]) + 1
    if kind(g) != "yarn":
        return 1.0
    if s.get("attention_factor"):
        return s["attention_factor"]
    return grow(s["mscale"]) / grow(s["mscale_all_dim"]) if s.get("mscale") and s.get("mscale_all_dim") else grow(1)


def rotate(x, base, factor, size, interleaved, d):
    """x [N, H, D], row n at place n; the first d elements turn, and grow by `size`."""
    n, still, x = len(x), x[..., d:], x[..., :d]
    angle = np.arange(n)[:, None, None] * base ** (-np.arange(d // 2) * 2 / d) / factor
    cos, sin = size * np.cos(angle), size * np.sin(angle)
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., : d // 2], x[..., d // 2:])
    pair = a * cos - b * sin, a * sin + b * cos
    return np.concatenate([np.stack(pair, -1).reshape(x.shape) if interleaved else np.concatenate(pair, -1), still], -1)


def cap_of(g, what):
    """Gemma 2 has caps where nothing is said."""
    usual = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0} if g.get("model_type") == "gemma2" else {}
    return g.get(what, usual.get(what))


def capped(x, cap):
    """Numbers that stay between -cap and cap."""
    return cap * np.tanh(x / cap) if cap else x


def attention(q, k, v, scale, window, cap, sinks=None):
    """Causal, q [N, H, D], k and v [N, HK, D]; a query sees `window` keys, its own one too, or all before it. A sink is one score more, without a value."""
    k, v = (np.repeat(t, q.shape[1] // t.shape[1], axis=1) for t in (k, v))
    s = capped(np.einsum("nhd,mhd->hnm", q, k) * scale, cap)
    seen = np.tri(len(q), dtype=bool) & ~np.tri(len(q), k=-(window or len(q)), dtype=bool)
    s = np.where(seen, s, -np.inf)
    top = s.max(-1, keepdims=True)
    p = np.exp(s - top)
    rest = 0 if sinks is None else np.exp(sinks[:, None, None] - top)
    return np.einsum("hnm,mhd->nhd", p / (p.sum(-1, keepdims=True) + rest), v).reshape(len(q), -1)


def window(g, i):
    """That of layer i. Qwen's files have the length of a window that is not used; of Gemma's layers all but one in some have it."""
    pattern = g.get("sliding_window_pattern") or g.get("_sliding_window_pattern") or {"gemma2": 2, "gemma3_text": 6, "gpt_oss": 2}.get(g.get("model_type"))
    if g.get("model_type", "").startswith("qwen"):
        return None
    if (is_gemma(g) or g.get("model_type") == "gpt_oss") and g.get("layer_types"):
        return g["sliding_window"] if g["layer_types"][i] == "sliding_attention" else None
    return None if pattern and (i + 1) % pattern == 0 else g.get("sliding_window")


def turns(m, i, length=0):
    """In texts of that length: the base, the factors and the size of the positions in layer i: those of Gemma 3's windows are others."""
    g = m.config
    near = (g.get("rope_parameters") or {}).get("sliding_attention", {}).get("rope_theta") or g.get("rope_local_base_freq")
    return (near, 1.0, 1.0) if g.get("model_type") == "gemma3_text" and window(g, i) else (base(g), m.factor * slowness(g, length), amplitude(g))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


ACTIVATION = {"silu": lambda x: x / (1 + np.exp(-x)), "gelu": np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2)))),
              "gelu_pytorch_tanh": gelu_tanh, "gelu_new": gelu_tanh, "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
              "relu": lambda x: np.maximum(x, 0), "relu2": lambda x: np.maximum(x, 0) ** 2}


def parts(g):
    """The tensors that are one in Phi-3's files, and the rows of each."""
    d, f = head_size(g), g["intermediate_size"]
    return {"self_attn.qkv_proj": {"self_attn.q_proj": g["num_attention_heads"] * d, "self_attn.k_proj": g["num_key_value_heads"] * d,
                                   "self_attn.v_proj": g["num_key_value_heads"] * d}, "mlp.gate_up_proj": {"mlp.gate_proj": f, "mlp.up_proj": f}}


def apart(m):
    """The weights, with a tensor for each matrix."""
    out = dict(m.weights)
    for name, w in m.weights.items():
        for whole, rows in parts(m.config).items() if m.config.get("model_type") == "phi3" else ():
            if whole in name:
                out |= {name.replace(whole, part): p for part, p in zip(rows, np.split(out.pop(name), np.cumsum(list(rows.values()))[:-1]))}
    return out


def many(g):
    """The number of experts; 0: none."""
    return g.get("num_local_experts") or g.get("num_experts") or 0


def clamped(g):
    """gpt-oss's gate."""
    limit, slope = g.get("swiglu_limit", 7.0), g.get("swiglu_alpha", 1.702)

    def of(gate, up):
        gate, up = np.minimum(gate, limit), up.clip(-limit, limit)
        return gate / (1 + np.exp(-slope * gate)) * (up + 1)
    return of


def experts(x, g, linear, act, at):
    """Each row through the experts with the greatest logits of the router, by their shares."""
    mixtral, oss = g["model_type"] == "mixtral", g["model_type"] == "gpt_oss"
    name = at + ("block_sparse_moe" if mixtral else "mlp")
    gate, up, down = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    route = linear(x, name + (".router" if oss else ".gate"))
    share = np.exp(route - route.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    chosen = np.argsort(-route, axis=-1, kind="stable")[:, :g["num_experts_per_tok"]]
    out = np.zeros_like(x)
    for r, those in enumerate(chosen):
        whole = share[r, those].sum() if mixtral or oss or g.get("norm_topk_prob") else 1
        for e in those:
            one, nth = (f"{name}.experts.", e) if oss else (f"{name}.experts.{e}.", None)
            hidden = linear(x[r], one + gate, nth), linear(x[r], one + up, nth)
            out[r] += share[r, e] / whole * linear(clamped(g)(*hidden) if oss else act(hidden[0]) * hidden[1], one + down, nth)
    return out


def features(m, tokens):
    """What goes into the last matrix, a row for each token."""
    weights = apart(m)
    g, w, gemma = m.config, lambda name: weights[f"model.{name}.weight"], is_gemma(m.config)
    rms = lambda x, name: norm(x, w(name) + m.offset, g["rms_norm_eps"])
    after = (lambda x, name: rms(x, name)) if gemma else (lambda x, _: x)
    def linear(x, name, nth=None):
        """By the matrix of that name, or the nth of those that are one tensor."""
        bias = weights.get(f"model.{name}.bias", np.zeros(1))
        return x @ w(name).T + bias if nth is None else x @ w(name)[nth].T + bias[nth]
    x = m.weights["model.embed_tokens.weight"][tokens] * (g["hidden_size"] ** 0.5 if gemma else 1)
    act = ACTIVATION[g.get("hidden_activation", "gelu_pytorch_tanh") if gemma else g.get("hidden_act", "silu")]
    scale = (g.get("attention_scale") or (g["query_pre_attn_scalar"] if gemma else head_size(g)) ** -0.5)
    before = "pre_feedforward_layernorm" if gemma else "post_attention_layernorm"
    for i in range(g["num_hidden_layers"]):
        at = f"layers.{i}."
        h = rms(x, at + "input_layernorm")
        q, k, v = (linear(h, at + f"self_attn.{n}_proj").reshape(len(x), -1, head_size(g)) for n in "qkv")
        if f"model.{at}self_attn.q_norm.weight" in m.weights:
            q, k = rms(q, at + "self_attn.q_norm"), rms(k, at + "self_attn.k_norm")
        q, k = (rotate(t, *turns(m, i, len(x)), m.interleaved, turned(g)) for t in (q, k))
        sinks = weights.get(f"model.{at}self_attn.sinks.weight")
        seen = linear(attention(q, k, v, scale, window(g, i), cap_of(g, "attn_logit_softcapping"), sinks), at + "self_attn.o_proj")
        x = x + after(seen, at + "post_attention_layernorm")
        h = rms(x, at + before)
        if g.get("num_experts_per_tok"):
            x = x + experts(h, g, linear, act, at)
        else:
            x = x + after(linear(act(linear(h, at + "mlp.gate_proj")) * linear(h, at + "mlp.up_proj"), at + "mlp.down_proj"), at + "post_feedforward_layernorm")
    return rms(x, "norm")


def logits(m, tokens):
    head = m.weights.get("lm_head.weight", m.weights["model.embed_tokens.weight"])
    return capped(features(m, tokens) @ head.T, cap_of(m.config, "final_logit_softcapping"))


def main(path, result, *prompts):
    m = read(path)
    want = np.concatenate([logits(m, encode(m, p)) for p in prompts])
    got = np.load(result)
    error = np.abs(got - want).max() / np.abs(want).max() if got.shape == want.shape else np.inf
    print(f"{os.path.basename(path)}: {got.shape[0]} rows of {got.shape[1]} logits, up to {np.abs(want).max():.3g}: "
          f"relative difference {error:.1e}")
    return not error < 1e-5


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
