#!/usr/bin/env python3
"""Damaged checkpoints: 08_llm has to refuse each, in one line that says why.

    llm_damage.py PROGRAM MODELS SCRATCH      MODELS: what examples/08_llm/make_model.py has made
"""
import json
import os
import shutil
import struct
import subprocess
import sys


def put(data, at, form, value):
    return data[:at] + struct.pack("<" + form, value) + data[at + struct.calcsize("<" + form):]


def behind(data, name, skip):
    """The place `skip` bytes behind a name that stands in the data once."""
    assert data.count(name) == 1, name
    return data.index(name) + len(name) + skip


def gguf_cases(whole):
    """(name, damaged file, what the message has to say)"""
    tokens = behind(whole, b"tokenizer.ggml.tokens", 0)
    first = behind(whole, b"blk.0.attn_q.weight", 0)  # rank 4 bytes, 2 extents of 8, type 4, offset 8
    yield "empty", b"", "no GGUF file"
    yield "not GGUF", b"GGML" + whole[4:], "no GGUF file"
    yield "version 1", put(whole, 4, "I", 1), "version 1, not 2 or 3"
    yield "tensors without end", put(whole, 8, "Q", 2**60), "tensors and"
    yield "keys without end", put(whole, 16, "Q", 2**63), "keys in a file of"
    yield "end within keys", whole[:3000], "past the end"
    yield "end within tensors", whole[:first + 10], "past the end"
    yield "end within numbers", whole[:-5000], "past the end"
    yield "a name without end", put(whole, 24, "Q", 2**64 - 1), "past the end"
    yield "an unknown type of key", put(whole, behind(whole, b"llama.block_count", 0), "I", 77), "unknown type 77"
    yield "an array of arrays", put(whole, tokens + 4, "I", 9), "array of arrays"
    yield "an array without end", put(whole, tokens + 8, "Q", 2**61), "past the end"
    yield "another architecture", whole.replace(b"llama\f", b"mamba\f", 1), "general.architecture"
    yield "a merge of what is no token", whole.replace(b"\xc4\xa0 t", b"\xc4\xa0 \x01", 1), "is not of tokens"
    yield "a huge extent", put(whole, first + 4, "Q", 2**62), "too large"
    yield "a negative extent", put(whole, first + 4, "Q", 2**64 - 32), "an extent of"
    yield "half a block", put(whole, first + 4, "Q", 127), "no whole blocks"
    yield "another shape", put(whole, first + 12, "Q", 64), "has not the shape [128, 128]"
    yield "five extents", put(whole, first, "I", 5), "5 extents"
    yield "an unknown type of tensor", put(whole, first + 20, "I", 16), "type 16 is not known here"
    yield "rows of half a block", put(whole, first + 20, "I", 14), "rows of 128 numbers are no whole blocks of Q6_K, which have 256"
    yield "an offset past the end", put(whole, first + 24, "Q", 2**63), "past the end"
    yield "an unknown way to cut texts", whole.replace(b"gpt-2", b"gpt-9", 1), "tokenizer.ggml.pre 'gpt-9'"
    yield "an unknown alphabet", whole.replace(b"gpt2", b"bert", 1), "tokenizer.ggml.model"
    factors = behind(whole, b"rope_freqs.weight", 0)
    yield "factors of another type", put(whole, factors + 12, "I", 1), "rope_freqs.weight is not F32"
    yield "too few factors", put(whole, factors + 4, "Q", 7), "rope_freqs.weight is not F32"
    yield "no heads", put(whole, behind(whole, b"llama.attention.head_count\x04", 3), "I", 0), "'llama.attention.head_count' is 0, or missing"
    yield "a size that is no size", put(whole, behind(whole, b"llama.block_count", 4), "I", 2**31), "'llama.block_count' is 2147483648, not a whole number"
    yield "a size that is a text", whole.replace(b"llama.block_count\x04", b"llama.block_count\x08"), "past the end"
    yield "another token that ends", put(whole, behind(whole, b"tokenizer.ggml.eos_token_id", 4), "I", 2**24), "the token 16777216 that ends a text"
    yield "layers that are not there", put(whole, behind(whole, b"llama.block_count", 4), "I", 3), "blk.2"


def header(whole, change):
    """The file with its JSON header changed."""
    n = struct.unpack("<Q", whole[:8])[0]
    about = json.loads(whole[8:8 + n])
    change(about)
    text = json.dumps(about).encode()
    return struct.pack("<Q", len(text)) + text + whole[8 + n:]


def folder_cases(whole):
    name = "model.layers.0.mlp.up_proj.weight"
    yield "no length", whole[:5], "a header of 0 bytes in a file of 5"
    yield "a header without end", put(whole, 0, "Q", 2**63), "a header of"
    yield "no JSON", whole[:8] + b"!" + whole[9:], "no JSON object"
    yield "end within numbers", whole[:-1000], "not within the"
    yield "an unknown type", header(whole, lambda h: h[name].update(dtype="F8_E4M3")), "unknown type 'F8_E4M3'"
    yield "no type", header(whole, lambda h: h[name].pop("dtype")), "unknown type"
    yield "an offset past the end", header(whole, lambda h: h[name].update(data_offsets=[0, 2**62])), "not within"
    yield "an offset before the start", header(whole, lambda h: h[name].update(data_offsets=[-352 * 128, 0])), "not within"
    yield "extents whose product wraps", header(whole, lambda h: h[name].update(shape=[2**32, 2**32])), "do not hold"
    yield "a negative extent", header(whole, lambda h: h[name].update(shape=[-352, -128])), "no list of up to 4 extents"
    yield "too few bytes", header(whole, lambda h: h[name].update(shape=[352, 129])), "do not hold"
    yield "no tensor", header(whole, lambda h: h.pop(name)), "is not in the file"
    yield "no scales", header(whole, lambda h: h.pop(name + "_scale")), "scales of their rows"
    yield "a tensor that is no object", header(whole, lambda h: h.update({name: 3})), "unknown type"


def text_cases():
    yield "config.json", lambda t: t[:50], "config.json: line"
    yield "config.json", lambda t: t.replace("llama", "gpt_neox"), "'model_type' is gpt_neox, not one of: llama mistral"
    yield "config.json", lambda t: t.replace('"hidden_size": 128', '"hidden_size": 99999999999'), "'hidden_size' is 99999999999, not a whole number"
    yield "config.json", lambda t: t.replace('"num_key_value_heads": 2', '"num_key_value_heads": 3'), "8 heads share 3"
    yield "config.json", lambda t: t.replace('"llama3"', '"dynamic"'), "'rope_scaling.rope_type' is dynamic"
    yield "config.json", lambda t: t.replace('"llama3"', '"yarn"'), "positions of type 'yarn' have no 'low_freq_factor'"
    yield "config.json", lambda t: t.replace('"llama3"', '[]'), "'rope_scaling.rope_type' is a list"
    yield "config.json", lambda t: t.replace('"hidden_size"', '"hidden_size": 64, "hidden_size"'), "duplicate object key"
    yield "tokenizer.json", lambda t: t.replace("ByteLevel", "Whitespace"), "pre_tokenizer 'Whitespace'"
    yield "tokenizer.json", lambda t: t.replace('"pre_tokenizer"', '"normalizer": {"type": "Lowercase"}, "pre_tokenizer"'), "normalizer 'Lowercase'"
    yield "tokenizer.json", lambda t: t.replace('"pre_tokenizer"', '"normalizer": {"type": "Prepend", "prepend": "x"}, "pre_tokenizer"'), "normalizer 'Prepend'"
    yield "tokenizer.json", lambda t: t.replace('"pre_tokenizer"', '"post_processor": {"type": "BertProcessing"}, "pre_tokenizer"'), "post_processor 'BertProcessing'"
    behind = '"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|end|>"}}]}, "pre_tokenizer"'
    yield "tokenizer.json", lambda t: t.replace('"pre_tokenizer"', behind), "the post_processor puts '<|end|>' where"
    yield "tokenizer.json", lambda t: t.replace('"special": true', '"lstrip": true'), "'lstrip' of the token 424"
    yield "tokenizer.json", lambda t: t.replace('"type": "BPE"', '"type": "BPE", "end_of_word_suffix": "</w>"'), "'end_of_word_suffix' is not known"
    yield "tokenizer.json", lambda t: t.replace("BPE", "Unigram"), "is not 'BPE'"
    yield "tokenizer.json", lambda t: t.replace(": 7,", ": 1000000,"), "not numbered from 0 on"


def refused(program, model, want):
    """None if the program refuses the model for that reason, else what it did."""
    p = subprocess.run([program, "-n", "1", model, "A"], capture_output=True, text=True, errors="replace", timeout=60)
    lines = p.stderr.splitlines()
    return None if p.returncode == 1 and len(lines) == 1 and want in lines[0] else f"status {p.returncode}, {p.stderr!r}, not {want!r}"


def main(program, models, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(os.path.join(models, "int8"), scratch)
    cases, faults = 0, 0

    def check(name, path, data, want, model):
        nonlocal cases, faults
        with open(path, "wb") as f:
            f.write(data)
        wrong = refused(program, model, want)
        cases, faults = cases + 1, faults + bool(wrong)
        if wrong:
            print(f"{os.path.basename(path)}, {name}: {wrong}")

    def read(path):
        with open(path, "rb") as f:
            return f.read()

    for name, data, want in gguf_cases(read(os.path.join(models, "q4_0.gguf"))):
        check(name, os.path.join(scratch, "m.gguf"), data, want, os.path.join(scratch, "m.gguf"))
    tensors = os.path.join(scratch, "model.safetensors")
    whole = read(tensors)
    for name, data, want in folder_cases(whole):
        check(name, tensors, data, want, scratch)
    with open(tensors, "wb") as f:
        f.write(whole)
    for name, change, want in text_cases():
        path = os.path.join(scratch, name)
        text = read(path)
        check(want, path, change(text.decode()).encode(), want, scratch)
        with open(path, "wb") as f:
            f.write(text)
    missing = refused(program, os.path.join(scratch, "nothing"), "No such file")
    print(f"{cases + 1} damaged checkpoints, {faults + bool(missing)} faults")
    return faults + bool(missing)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
