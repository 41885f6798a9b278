#!/usr/bin/env python3
"""Random models in llama2.c's format, made GGUF by llama2c.py: 08_llm's logits are those of a decoder written after llama2.c's, and text becomes the tokens of the vocabulary.

    llm_llama2c.py PROGRAM SOURCE SCRATCH      SOURCE: the root of the tree
"""
import os
import shutil
import struct
import subprocess
import sys

import numpy as np

DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, LENGTH = 32, 48, 2, 4, 2, 64
SIZE = DIM // HEADS
WORDS = ["<unk>", "\n<s>\n", "\n</s>\n"] + [f"<0x{b:02X}>" for b in range(256)] + [" ", "a", "b", "ab", " ab", "aab"]
PROMPT, TOKENS = "ab aab\n", [1, WORDS.index(" ab"), WORDS.index(" "), WORDS.index("aab"), 3 + 10]


def write(path, tied, rng):
    v = len(WORDS)
    shapes = [(v, DIM), (LAYERS, DIM), (LAYERS, DIM, DIM), (LAYERS, KV_HEADS * SIZE, DIM), (LAYERS, KV_HEADS * SIZE, DIM), (LAYERS, DIM, DIM), (LAYERS, DIM), (LAYERS, HIDDEN, DIM),
              (LAYERS, DIM, HIDDEN), (LAYERS, HIDDEN, DIM), (DIM,), (LENGTH, SIZE)] + [(v, DIM)] * (not tied)
    arrays = [rng.normal(0, 0.4, s).astype("<f4") for s in shapes]
    with open(path, "wb") as f:
        f.write(struct.pack("<7i", DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, v if tied else -v, LENGTH) + b"".join(a.tobytes() for a in arrays))
    return [a.astype(float) for a in arrays]


def logits(arrays, tokens):
    embedding, att, wq, wk, wv, wo, ffn, w1, w2, w3, last, _, *head = arrays
    norm = lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w
    turn = np.exp(1j * np.arange(len(tokens))[:, None] * 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE))[:, None]

    def turned(x):
        z = (x[..., ::2] + 1j * x[..., 1::2]) * turn
        return np.stack([z.real, z.imag], -1).reshape(x.shape)

    x = embedding[tokens]
    for i in range(LAYERS):
        h = norm(x, att[i])
        q, k, v = ((h @ w[i].T).reshape(len(x), -1, SIZE) for w in (wq, wk, wv))
        q, k = turned(q), turned(k)
        k, v = (np.repeat(t, HEADS // KV_HEADS, axis=1) for t in (k, v))
        s = np.where(np.tri(len(x), dtype=bool), np.einsum("nhd,mhd->hnm", q, k) / np.sqrt(SIZE), -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        x = x + np.einsum("hnm,mhd->nhd", p / p.sum(-1, keepdims=True), v).reshape(len(x), -1) @ wo[i].T
        h = norm(x, ffn[i])
        gate = h @ w1[i].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w3[i].T)) @ w2[i].T
    return norm(x, last) @ (head[0] if head else embedding).T


def main(program, source, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    at = lambda name: os.path.join(scratch, name)
    with open(at("words.bin"), "wb") as f:
        f.write(struct.pack("<i", 8) + b"".join(struct.pack("<fi", float(len(w)), len(w.encode())) + w.encode() for w in WORDS))
    faults = 0
    for tied in (True, False):
        arrays = write(at("model.bin"), tied, np.random.default_rng(tied))
        for words in ([at("words.bin")], []):
            convert = [sys.executable, os.path.join(source, "examples", "08_llm", "llama2c.py"), at("model.bin"), at("model.gguf"), *words]
            subprocess.run(convert, check=True, timeout=60)
            prompt = PROMPT if words else "".join(f"<{t}>" for t in TOKENS[1:])
            r = subprocess.run([program, "-w", at("model.gguf"), prompt], capture_output=True, text=True, timeout=60, check=False)
            subprocess.run([program, "-n", "0", "-l", at("l.npy"), at("model.gguf"), prompt], capture_output=True, timeout=120, check=True)
            got, want = np.load(at("l.npy")), logits(arrays, TOKENS)
            error = np.abs(got - want).max() / np.abs(want).max() if got.shape == want.shape else np.inf
            wrong = r.stdout.split() != [str(t) for t in TOKENS] or not error < 1e-5
            faults += wrong
            if wrong:
                print(f"tied {tied}, words {words}: tokens {r.stdout.strip()}{r.stderr}, not {TOKENS}; error {error:.1e}")
    with open(at("model.bin"), "ab") as f:
        f.write(b"1234")
    r = subprocess.run(convert, capture_output=True, text=True, timeout=60, check=False)
    faults += "not a model of version 0" not in r.stderr
    print(f"{faults} faults")
    shutil.rmtree(scratch)
    return faults > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
