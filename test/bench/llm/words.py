#!/usr/bin/env python3
"""08_llm's tokens beside those that llama.cpp's own tests expect of real vocabularies.

    words.py BUILD FOLDER      FOLDER: models/ of a tree of llama.cpp, with ggml-vocab-NAME.gguf, .inp and .out

Each vocabulary goes into a file that says it is a small llama without a first token, as the tests have none.
"""
import glob
import os
import struct
import subprocess
import sys
import tempfile

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
CONFIG = {"block_count": 1, "embedding_length": 8, "feed_forward_length": 8, "attention.head_count": 1, "context_length": 1 << 20}


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def keys(data):
    """(name, the bytes of type and value) of each key."""
    at = 24
    take = lambda form: struct.unpack_from("<" + form, data, at)[0]
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        n = take("Q")
        name, at = data[at + 8:at + 8 + n].decode(), at + 8 + n
        start, kind, at = at, take("I"), at + 4
        if kind == 9:
            of, n, at = take("I"), struct.unpack_from("<Q", data, at + 4)[0], at + 12
        else:
            of, n = kind, 1
        for _ in range(n if of == 8 else 0):
            at += 8 + take("Q")
        at += 0 if of == 8 else n * SIZES[of]
        yield name, data[start:at]


def as_llama(data):
    kept = {k: v for k, v in keys(data) if k.startswith("tokenizer.") and k != "tokenizer.ggml.eos_token_id"}
    kept["general.architecture"] = struct.pack("<I", 8) + text("llama")
    kept["tokenizer.ggml.add_bos_token"] = struct.pack("<IB", 7, 0)
    kept |= {"llama." + k: struct.pack("<II", 4, v) for k, v in CONFIG.items()}
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(kept)) + b"".join(text(k) + v for k, v in kept.items())


def compare(program, path, scratch):
    with open(path, "rb") as f:
        data = as_llama(f.read())
    model = os.path.join(scratch, "model.gguf")
    with open(model, "wb") as f:
        f.write(data)
    with open(path + ".inp", encoding="utf-8", newline="") as f:
        texts = f.read().split("\n__ggml_vocab_test__\n")
    with open(path + ".out", encoding="utf-8") as f:
        expected = [line.split() for line in f.read().split("\n")]
    texts = [t for t in texts if "\0" not in t]
    r = subprocess.run([program, "-w", model, *texts], capture_output=True, text=True, check=False)
    if r.returncode:
        return r.stderr.strip().replace(model + ": ", "")
    got = [line.split() for line in r.stdout.split("\n")]
    wrong = [i for i in range(len(texts)) if got[i] != expected[i]]
    for i in wrong[:3] if "-v" in sys.argv else []:
        print(repr(texts[i]), got[i], expected[i])
    return f"{len(texts) - len(wrong)} of {len(texts)} texts"


def main(build, folder, *_):
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(glob.glob(os.path.join(folder, "*.gguf"))):
            if os.path.exists(path + ".out"):
                print(f"| {os.path.basename(path)[11:-5]} | {compare(os.path.join(build, 'bin', '08_llm'), path, scratch)} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
