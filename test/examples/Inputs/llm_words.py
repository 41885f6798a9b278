#!/usr/bin/env python3
"""Vocabularies of a few tokens, whose words are known: 08_llm -w has to find them.

    llm_words.py PROGRAM SCRATCH
"""
import json
import os
import struct
import subprocess
import sys

SMALL = {"llama.block_count": 1, "llama.embedding_length": 8, "llama.feed_forward_length": 8, "llama.attention.head_count": 1}
LETTERS = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
LETTERS = {**{b: chr(b) for b in LETTERS}, **{b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in LETTERS)}}


def packed(v):
    if isinstance(v, bool):
        return 7, struct.pack("<B", v)
    if isinstance(v, str):
        return 8, struct.pack("<Q", len(v.encode())) + v.encode()
    if isinstance(v, float):
        return 6, struct.pack("<f", v)
    if isinstance(v, list):
        kind = 5 if isinstance(v[0], int) else packed(v[0])[0]
        return 9, struct.pack("<IQ", kind, len(v)) + b"".join(struct.pack("<i", x) if kind == 5 else packed(x)[1] for x in v)
    return 4, struct.pack("<I", v)


def gguf(path, family="llama", chat=None, **words):
    keys = {"general.architecture": family, **{k.replace("llama", family): v for k, v in SMALL.items()}, **{"tokenizer.ggml." + k: v for k, v in words.items()},
            **({"tokenizer.chat_template": chat} if chat else {})}
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)))
        for name, value in keys.items():
            kind, raw = packed(value)
            f.write(packed(name)[1] + struct.pack("<I", kind) + raw)


def folder(path, **tokenizer):
    os.makedirs(path, exist_ok=True)
    config = dict(model_type="llama", num_hidden_layers=1, hidden_size=8, intermediate_size=8, num_attention_heads=1)
    for name, content in (("config.json", config), ("tokenizer.json", tokenizer)):
        with open(os.path.join(path, name), "w", encoding="utf-8") as f:
            json.dump(content, f)
    with open(os.path.join(path, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", 2) + b"{}")


# ---- bytes ----

MERGES = ["3 4", "1 2", "12 3", "' S", "I T", "Ġ x", "Ċ Ċ"]
BYTE_TOKENS = [LETTERS[b] for b in range(256)] + [m.replace(" ", "") for m in MERGES] + ["xyz", "\u200d", "<|end|>"]  # one that is not in the letters' alphabet: no text becomes it
BYTES = {t: i for i, t in enumerate(BYTE_TOKENS)}
# The same text as the families cut it: digits in runs, in threes or alone; endings in capitals or not; a sign before letters; lines.
TEXTS = ["1234", "IT'S", "a-x  x", "xyz", "1\n\nx", "é２", "\u200d", "x<|end|>x"]
GPT2 = ["12 34", "IT ' S", "a - x Ġ Ġx", "x y z", "1 Ċ Ċ x", "Ã © ï ¼ Ĵ", "â Ģ į", "x <|end|> x"]
AS_GPT4 = ["1 2 3 4", "IT 'S", "a - x Ġ Ġx", "x y z", "1 ĊĊ x", "Ã © ï ¼ Ĵ", "â Ģ į", "x <|end|> x"]
SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def numbers(words, of):
    return " ".join(str(of[w]) for w in words.split(" ") if w)


def byte_cases(scratch):
    """(name, model, texts, expected lines)"""
    as_llama3 = ["123 4"] + AS_GPT4[1:3] + ["xyz"] + AS_GPT4[4:]
    for pre, words, first in (("gpt-2", GPT2, ""), ("qwen2", AS_GPT4, ""), ("smollm", ["1 2 3 4"] + GPT2[1:], ""), ("gpt-4o", ["123 4"] + AS_GPT4[1:], ""),
                              ("llama-bpe", as_llama3, "<|end|> ")):
        path = os.path.join(scratch, pre + ".gguf")
        types = [3 if t == "<|end|>" else 1 for t in BYTE_TOKENS]
        gguf(path, model="gpt2", pre=pre, tokens=BYTE_TOKENS, merges=MERGES, token_type=types, bos_token_id=BYTES["<|end|>"])
        yield pre, path, TEXTS, [numbers(first + w, BYTES) for w in words]
    level, plain = dict(type="ByteLevel", add_prefix_space=False, use_regex=True), dict(type="ByteLevel", add_prefix_space=False, use_regex=False)
    split = dict(type="Split", pattern=dict(Regex=SPLIT), behavior="Isolated", invert=False)
    digits = dict(type="Digits", individual_digits=True)
    template = dict(type="TemplateProcessing", single=[dict(SpecialToken=dict(id="<|end|>", type_id=0)), dict(Sequence=dict(id="A", type_id=0))])
    chain = lambda *steps: dict(type="Sequence", pretokenizers=list(steps))
    for name, pre, post, words, first in (("level", level, None, GPT2, ""), ("split", chain(split, plain), None, AS_GPT4, ""),
                                          ("digits", chain(digits, level), dict(type="Sequence", processors=[plain, template]), ["1 2 3 4"] + GPT2[1:], "<|end|> ")):
        path = os.path.join(scratch, name)
        folder(path, model=dict(type="BPE", vocab={t: i for t, i in BYTES.items() if t != "<|end|>"}, merges=[m.split(" ") for m in MERGES]),
               added_tokens=[dict(id=BYTES["<|end|>"], content="<|end|>", special=True)], pre_tokenizer=pre, post_processor=post)
        yield name, path, TEXTS, [numbers(first + w, BYTES) for w in words]


# ---- characters ----

CHARACTER_TOKENS = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["▁", "a", "b", "▁a", "ab", "ba", "▁b", "▁▁"]
CHARACTERS = {t: i for i, t in enumerate(CHARACTER_TOKENS)}
SCORES = {"▁a": -1.0, "ab": -2.0, "ba": -0.5, "▁b": -3.0, "▁▁": -4.0}


def character_cases(scratch):
    texts = ["ab", "aba", "", "é a", "b</s>ab", "  b"]
    words = ["▁a b", "▁a ba", "", "▁ <0xC3> <0xA9> ▁a", "▁b </s> ▁a b", "▁▁ ▁b"]
    bare = ["ab", "a ba", "", "<0xC3> <0xA9> ▁a", "b </s> ab", "▁ ▁b"]
    common = dict(model="llama", tokens=CHARACTER_TOKENS, token_type=[2, 3, 3] + [6] * 256 + [1] * 8, bos_token_id=1,
                  scores=[SCORES.get(t, 0.0) for t in CHARACTER_TOKENS])
    for name, keys, expected, first in (("characters", {}, words, "<s> "), ("without a first", {"add_bos_token": False}, words, ""),
                                        ("without a blank", {"add_space_prefix": False}, bare, "<s> ")):
        path = os.path.join(scratch, name + ".gguf")
        gguf(path, **common, **keys)
        yield name, path, texts, [numbers(first + w, CHARACTERS) for w in expected]
    merges = sorted(SCORES, key=SCORES.get, reverse=True)
    each = words[:-1] + ["▁ ▁b"]  # there is a blank before
    once = each[:-2] + ["▁b </s> ab", "▁ ▁b"]
    replace = dict(type="Replace", pattern=dict(String=" "), content="▁")
    prepend = dict(type="Sequence", normalizers=[dict(type="Prepend", prepend="▁"), replace])
    gemma = dict(type="Split", pattern=dict(String=" "), behavior="MergedWithPrevious", invert=False)
    space = lambda scheme, split: dict(type="Metaspace", replacement="▁", prepend_scheme=scheme, split=split)
    for name, normalizer, pre, expected in (("prepend", prepend, None, words), ("replace", replace, None, bare), ("always", None, space("always", False), each),
                                            ("first", None, space("first", False), once), ("never", None, space("never", False), bare),
                                            ("split", None, space("always", True), each), ("Gemma's", replace, gemma, bare)):
        path = os.path.join(scratch, "characters-" + name)
        folder(path, model=dict(type="BPE", byte_fallback=True, vocab=CHARACTERS, merges=[f"{m[0]} {m[1]}" for m in merges]), normalizer=normalizer, pre_tokenizer=pre,
               added_tokens=[dict(id=i, content=CHARACTER_TOKENS[i], special=True) for i in (0, 1, 2, CHARACTERS["▁▁"])])
        yield "characters, " + name, path, texts, [numbers(w, CHARACTERS) for w in expected]
    texts, words = ["b</s> \n\u2003 ab", "b</s>\ta", "b </s>"], ["▁b </s> ▁a b", "▁b </s> ▁a", "▁b ▁ </s>"]  # blanks behind a token go with it
    path = os.path.join(scratch, "eaten")
    folder(path, model=dict(type="BPE", byte_fallback=True, vocab=CHARACTERS, merges=[f"{m[0]} {m[1]}" for m in merges]), normalizer=prepend, pre_tokenizer=None,
           added_tokens=[dict(id=i, content=CHARACTER_TOKENS[i], special=True, rstrip=i == 2) for i in range(3)])
    yield "eaten blanks", path, texts, [numbers(w, CHARACTERS) for w in words]
    gguf(path + ".gguf", family="phi3", add_bos_token=False, **common)
    yield "eaten blanks, GGUF", path + ".gguf", texts, [numbers(w, CHARACTERS) for w in words]


def main(program, scratch):
    os.makedirs(scratch, exist_ok=True)
    count = wrong = 0
    for name, path, texts, expected in (*byte_cases(scratch), *character_cases(scratch)):
        p = subprocess.run([program, "-w", path, *texts], capture_output=True, text=True, check=False)
        got = p.stdout.split("\n")[:-1]
        count += len(texts)
        if p.returncode or len(got) != len(texts):
            wrong += len(texts)
            print(f"{name}: status {p.returncode}: {p.stderr.strip()}")
            continue
        for text, g, e in zip(texts, got, expected):
            if g != e:
                wrong += 1
                print(f"{name}: {text!r} is {g}, not {e}")
    print(f"{count} texts, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
