#!/usr/bin/env python3
"""Random texts of the grammar that frontend/LANGUAGE.md prints are read without a syntax error.

    grammar.py LANGUAGE.md FIRST COUNT    seeds; the last line is "N texts, N wrong"

The texts mean nothing: only `tilec --emit=ast` sees them. What a hint is followed by is kept from looking like its argument.
"""
import os
import random
import re
import subprocess
import sys
import tempfile

WORDS = {
    "IDENT": "a b c x y v1 acc T N pid sum load store".split(),
    "INTEGER": "0 1 42 0xFF 0b101 1_000".split(),
    "FLOAT": "1.5 .5 5. 1e-3 0x1.8p3".split(),
    "STRING": ['"text"', '"a\\n"'],
    "SCALAR": "bool i8 i32 u64 f16 f32 f8e4m3 f8e5m2fnuz int float i4".split(),
}


def grammar(path):
    """{name: tree}; a tree is ("word", w), ("all", [..]), ("one", [..]), ("maybe", t), ("many", t)"""
    with open(path, encoding="utf-8") as f:
        text = re.search(r"<!-- grammar:.*?-->\n(.*?)<!-- end -->", f.read(), re.S)[1]
    rules = re.findall(r"^    (\w+) +=(.*(?:\n {14}.*)*)", text, re.M)
    return {name: choice(re.findall(r'"[^"]*"|\w+|[()\[\]{}|]', body)) for name, body in rules}


def choice(tokens):
    ways = [[]]
    while tokens and tokens[0] not in (")", "]", "}"):
        t = tokens.pop(0)
        if t == "|":
            ways.append([])
        elif t in ("(", "[", "{"):
            inner = choice(tokens)
            tokens.pop(0)
            ways[-1].append({"(": inner, "[": ("maybe", inner), "{": ("many", inner)}[t])
        else:
            ways[-1].append(("word", t))
    return ("one", [("all", w) for w in ways])


def least(tree, known):
    """How deep a tree must go."""
    kind, what = tree
    if kind == "word":
        return known.get(what, 99) if what.islower() and what[0] != '"' else 0
    if kind in ("maybe", "many"):
        return 0
    inner = [least(t, known) for t in what]
    return max(inner, default=0) if kind == "all" else min(inner)


def depths(rules):
    known = {}
    for _ in rules:
        known.update({n: 1 + least(t, known) for n, t in rules.items()})
    return known


class Writer:
    def __init__(self, rules, seed):
        self.rules, self.known, self.random = rules, depths(rules), random.Random(seed)

    def words(self, tree, left):
        kind, what = tree
        if kind == "word":
            if what[0] == '"':
                return [what[1:-1]]
            return [self.random.choice(WORDS[what])] if what in WORDS else self.words(self.rules[what], left - 1)
        if kind == "all":
            return [w for t in what for w in self.words(t, left)]
        if kind == "one":
            fits = [t for t in what if least(t, self.known) < left]
            return self.words(self.random.choice(fits) if fits else min(what, key=lambda t: least(t, self.known)), left)
        often = self.random.choice((0, 0, 1) if kind == "maybe" else (0, 0, 1, 2)) if least(what, self.known) < left else 0
        return [w for _ in range(often) for w in self.words(what, left)]


HINTS = ("pipeline", "unroll", "nounroll", "specialize")


def text_of(words):
    """A statement in parentheses after a bare hint would be the hint's argument: an empty one goes before... so the hint goes."""
    out = []
    for i, w in enumerate(words):
        bare = w in HINTS and words[i + 1:i + 2] != ["("]
        out.append("" if bare and i + 1 < len(words) and words[i + 1] not in HINTS + ("{", ";") else w)
    return " ".join(w for w in out if w)


def main(path, first, count):
    rules, bad = grammar(path), 0
    with tempfile.TemporaryDirectory(prefix="tile-grammar-") as folder:
        file = os.path.join(folder, "t.tile")
        for seed in range(int(first), int(first) + int(count)):
            text = text_of(Writer(rules, seed).words(("word", "item"), 21))
            with open(file, "w", encoding="utf-8") as f:
                f.write(text + "\n")
            p = subprocess.run(["tilec", "--emit=ast", file, "-o", os.devnull], capture_output=True, text=True, timeout=20)
            if "E0101" in p.stderr or p.returncode not in (0, 1):
                bad += 1
                print(f"seed {seed}: {p.stderr.strip()}")
    print(f"{count} texts, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
