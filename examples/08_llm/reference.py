#!/usr/bin/env python3
"""The decoder in NumPy, f64, with readers of its own: what 08_llm is compared with.

    reference.py MODEL LOGITS.npy PROMPT...     the greatest difference of logits; exit status 1 if it is large

A model is a folder with config.json, model.safetensors and tokenizer.json, or a GGUF file.
"""
import json
import os
import re
import struct
import sys

import numpy as np

# ---- numbers ----


def from_bf16(raw):
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)


def from_q8_0(raw):
    b = np.frombuffer(raw, np.uint8).reshape(-1, 34)
    return (b[:, :2].copy().view("<f2").astype(np.float32) * b[:, 2:].view(np.int8)).ravel()


def from_q4_0(raw):
    b = np.frombuffer(raw, np.uint8).reshape(-1, 18)
    q = np.concatenate([b[:, 2:] & 15, b[:, 2:] >> 4], 1).astype(np.int8) - 8
    return (b[:, :2].copy().view("<f2").astype(np.float32) * q).ravel()


DECODE = {"F32": lambda r: np.frombuffer(r, "<f4"), "F16": lambda r: np.frombuffer(r, "<f2"), "BF16": from_bf16,
          "I8": lambda r: np.frombuffer(r, np.int8), "Q4_0": from_q4_0, "Q8_0": from_q8_0}
GGUF = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 30: ("BF16", 1, 2), 2: ("Q4_0", 32, 18), 8: ("Q8_0", 32, 34)}

# ---- files ----

NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
         "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


class Model:
    """config (of Hugging Face's names), weights by Hugging Face's names, tokens, merges; interleaved: rotary pairs are neighbours; factor: of a head's pairs, see
    slowness."""


def read_folder(path):
    m = Model()
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        m.config = json.load(f)
    with open(os.path.join(path, "tokenizer.json"), encoding="utf-8") as f:
        tokenizer = json.load(f)
    vocab = dict(tokenizer["model"]["vocab"], **{t["content"]: t["id"] for t in tokenizer["added_tokens"]})
    m.tokens = sorted(vocab, key=vocab.get)
    m.merges = [tuple(p.split(" ")) if isinstance(p, str) else tuple(p) for p in tokenizer["model"]["merges"]]
    with open(os.path.join(path, "model.safetensors"), "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    raw = {n: DECODE[t["dtype"]](data[slice(*t["data_offsets"])]).reshape(t["shape"]).astype(np.float64)
           for n, t in header.items() if n != "__metadata__"}
    m.weights = {n: w * raw.get(n + "_scale", 1) for n, w in raw.items() if not n.endswith("_scale")}
    m.interleaved = False
    m.factor = slowness(m.config)
    return m


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
    m.weights = {}
    for name, shape, kind, offset in about:
        form, elements, size = GGUF[kind]
        raw = c.data[start + offset:start + offset + int(np.prod(shape)) // elements * size]
        if name == "rope_freqs.weight":
            m.factor = DECODE[form](raw)
            continue
        part = name.split(".")[-2]
        layer = f"model.layers.{name.split('.')[1]}." if name.startswith("blk.") else ""
        m.weights[layer + NAMES[part] + ".weight"] = DECODE[form](raw).reshape(shape).astype(np.float64)
    m.tokens, m.merges = keys["tokenizer.ggml.tokens"], [tuple(p.split(" ")) for p in keys["tokenizer.ggml.merges"]]
    m.config = dict(num_hidden_layers=keys["llama.block_count"], num_attention_heads=keys["llama.attention.head_count"],
                    num_key_value_heads=keys["llama.attention.head_count_kv"], rope_theta=keys["llama.rope.freq_base"],
                    rms_norm_eps=keys["llama.attention.layer_norm_rms_epsilon"])
    m.interleaved = True
    return m


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


def slowness(g):
    """What Llama 3.1 divides the angle of each pair of a head by, that long texts can be told from short ones."""
    s, i = g["rope_scaling"], np.arange(g["hidden_size"] // g["num_attention_heads"] // 2)
    wave = 2 * np.pi * g["rope_theta"] ** (i / len(i))
    smooth = (s["original_max_position_embeddings"] / wave - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
    smooth = smooth.clip(0, 1)
    return 1 / ((1 - smooth) / s["factor"] + smooth)


def rotate(x, base, factor, interleaved):
    """x [N, H, D], row n at place n."""
    n, _, d = x.shape
    angle = np.arange(n)[:, None, None] * base ** (-np.arange(d // 2) * 2 / d) / factor
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., : d // 2], x[..., d // 2:])
    pair = a * cos - b * sin, a * sin + b * cos
    return np.stack(pair, -1).reshape(x.shape) if interleaved else np.concatenate(pair, -1)


def attention(q, k, v):
    """Causal, q [N, H, D], k and v [N, HK, D]."""
    k, v = (np.repeat(t, q.shape[1] // t.shape[1], axis=1) for t in (k, v))
    s = np.einsum("nhd,mhd->hnm", q, k) / np.sqrt(q.shape[2])
    s = np.where(np.tri(len(q), dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("hnm,mhd->nhd", p / p.sum(-1, keepdims=True), v).reshape(len(q), -1)


def features(m, tokens):
    """What goes into the last matrix, a row for each token."""
    g, w = m.config, lambda name: m.weights[f"model.{name}.weight"]
    eps, x = g["rms_norm_eps"], m.weights["model.embed_tokens.weight"][tokens]
    for i in range(g["num_hidden_layers"]):
        at = f"layers.{i}."
        h = norm(x, w(at + "input_layernorm"), eps)
        q, k, v = (h @ w(at + f"self_attn.{n}_proj").T for n in "qkv")
        q, k, v = q.reshape(len(x), g["num_attention_heads"], -1), *(t.reshape(len(x), g["num_key_value_heads"], -1) for t in (k, v))
        q, k = (rotate(t, g["rope_theta"], m.factor, m.interleaved) for t in (q, k))
        x = x + attention(q, k, v) @ w(at + "self_attn.o_proj").T
        h = norm(x, w(at + "post_attention_layernorm"), eps)
        gate = h @ w(at + "mlp.gate_proj").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w(at + "mlp.up_proj").T)) @ w(at + "mlp.down_proj").T
    return norm(x, w("norm"), eps)


def logits(m, tokens):
    head = m.weights.get("lm_head.weight", m.weights["model.embed_tokens.weight"])
    return features(m, tokens) @ head.T


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
