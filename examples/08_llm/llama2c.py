#!/usr/bin/env python3
"""A model in llama2.c's format (version 0, f32) as a file in GGUF, for 08_llm.

    llama2c.py MODEL.bin OUT.gguf [TOKENIZER.bin]

Without its vocabulary, token n is written <n>.
"""
import struct
import sys

import numpy as np

import make_model
import reference

NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6


def read_model(path):
    with open(path, "rb") as f:
        dim, hidden, layers, heads, kv_heads, vocabulary, length = struct.unpack("<7i", f.read(28))
        data = np.frombuffer(f.read(), "<f4")
    size, tied, at = dim // heads, vocabulary > 0, 0
    vocabulary = abs(vocabulary)

    def take(*shape):
        nonlocal at
        at += int(np.prod(shape))
        return data[at - int(np.prod(shape)):at].reshape(shape)

    m = reference.Model()
    m.config = dict(model_type="llama", num_hidden_layers=layers, hidden_size=dim, intermediate_size=hidden, num_attention_heads=heads, num_key_value_heads=kv_heads,
                    max_position_embeddings=length, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=tied)
    m.weights = {"token_embd": take(vocabulary, dim)}
    shapes = {"attn_norm": (dim,), "attn_q": (dim, dim), "attn_k": (kv_heads * size, dim), "attn_v": (kv_heads * size, dim), "attn_output": (dim, dim), "ffn_norm": (dim,),
              "ffn_gate": (hidden, dim), "ffn_down": (dim, hidden), "ffn_up": (hidden, dim)}
    for name, shape in shapes.items():
        for layer, w in enumerate(take(layers, *shape)):
            m.weights[f"blk.{layer}.{name}"] = w
    m.weights["output_norm"] = take(dim)
    take(length, size)  # cosines and sines
    if not tied:
        m.weights["output"] = take(vocabulary, dim)
    if at != len(data):
        sys.exit(f"{path}: {len(data)} numbers, not {at}: not a model of version 0")
    return m, vocabulary


def read_vocabulary(path, count):
    """[(text, score, type)]; without a file names of numbers."""
    if path is None:
        return [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)] + [(f"<{n}>", 0.0, USER) for n in range(3, count)]
    with open(path, "rb") as f:
        data = f.read()
    out, at = [], 4
    for n in range(count):
        score, size = struct.unpack_from("<fi", data, at)
        text = data[at + 8:at + 8 + size].decode()
        at += 8 + size
        kind = UNKNOWN if n == 0 else CONTROL if n < 3 else BYTE if n < 259 else NORMAL
        out.append((text.strip() if n < 3 else text.replace(" ", "\u2581"), score, kind))
    return out


def main(model, out, tokenizer=None):
    m, count = read_model(model)
    words = read_vocabulary(tokenizer, count)
    keys = {"general.architecture": "llama", **{"llama." + n: m.config[k] for k, n in make_model.GGUF_NAMES.items() if k in m.config},
            "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": [t for t, _, _ in words], "tokenizer.ggml.scores": [s for _, s, _ in words],
            "tokenizer.ggml.token_type": [k for _, _, k in words], "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "llama.vocab_size": count}
    make_model.write_packed(out, keys, [(name + ".weight", w.shape, 0, w.astype("<f4").tobytes()) for name, w in m.weights.items()])


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
