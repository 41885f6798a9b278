#!/usr/bin/env python3
"""The grammar for tree-sitter reads what the compiler reads, and nothing else.

    tree_sitter.py ROOT [--texts N] [--broken N] [--seed N]

Generates the parser in a copy of tools/editors/tree-sitter, runs its corpus and its queries, and compares its verdict on three kinds of texts
with that of `tilec fmt`, which only parses: every .tile file of the repository, random texts of the grammar that LANGUAGE.md prints, and files
with one token left out, doubled or replaced. tree-sitter before 0.25 knows no reserved words, so that it may take a broken text.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

FOLDERS = ("stdlib", "examples", "test", "tools")
# What the text shows; other errors that the parser reports are of meaning (a hint given twice, a literal that is too large).
SYNTAX = {"E0002", "E0003", "E0004", "E0005", "E0006", "E0007", "E0008", "E0009", "E0012", "E0013", "E0014", "E0101"}
# What is left out of broken texts, besides clause words: grammar.js says how its tokens differ.
UNLIKE = {"++", "--"}
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|[\w.]*\d[\w.]*|\w+|\+:|=>|<<=|>>=|<<|>>|&&|\|\||\+\+|--|[-+*/%&|^<>=!]=|\S', re.S)


class Tool:
    """tree-sitter in a copy of the grammar, with a home of its own."""

    def __init__(self, source, folder):
        self.place = os.path.join(folder, "grammar")
        shutil.copytree(source, self.place)
        home = os.path.join(folder, "home")
        os.mkdir(home)
        self.environment = dict(os.environ, HOME=home, XDG_CACHE_HOME=home, XDG_CONFIG_HOME=home, NO_COLOR="1")
        version = re.search(r"(\d+)\.(\d+)", self.run("--version").stdout)
        self.reserves = (int(version[1]), int(version[2])) >= (0, 25)

    def run(self, *args):
        return subprocess.run(["tree-sitter", *args], cwd=self.place, env=self.environment, capture_output=True, text=True, errors="replace",
                              timeout=120, check=False)

    def refused(self, files):
        """Those of `files` in whose tree is a node ERROR or MISSING."""
        listing = self.place + ".files"
        with open(listing, "w", encoding="utf-8") as f:
            f.writelines(name + "\n" for name in files)
        p = self.run("parse", "--quiet", "--stat", "--paths", listing)
        total = re.search(r"Total parses: (\d+)", p.stdout)
        if not total or int(total[1]) != len(files):
            sys.exit(f"tree-sitter parse: {p.stdout}{p.stderr}")
        names = set(files)
        lines = [line for line in p.stdout.splitlines() if "(ERROR" in line or "(MISSING" in line]
        return {line.split("\t")[0].strip() for line in lines} & names


def broken_of(files):
    """Those in which the compiler finds a fault of syntax."""
    p = subprocess.run(["tilec", "fmt", "--check", *files], capture_output=True, timeout=120, check=False)
    if p.returncode not in (0, 1):
        sys.exit(f"tilec fmt: status {p.returncode}: {p.stderr[-500:]}")
    errors = re.findall(r"^(.*?):\d+:\d+: error\[(E\d+)\]", p.stderr.decode(errors="replace"), re.M)
    return {path for path, code in errors if code in SYNTAX}


def sources(root):
    for folder in FOLDERS:
        for place, _, names in os.walk(os.path.join(root, folder)):
            yield from (os.path.join(place, n) for n in names if n.endswith(".tile"))


def random_texts(root, count, seed):
    sys.path.insert(0, os.path.join(root, "test/fuzz"))
    import grammar
    rules = grammar.grammar(os.path.join(root, "frontend/LANGUAGE.md"))
    for i in range(count):
        yield grammar.text_of(grammar.Writer(rules, seed + i).words(("word", "item"), 21)) + "\n"


def broken_texts(root, files, count, seed):
    with open(os.path.join(root, "frontend/lexer.re"), encoding="utf-8") as f:
        contextual = set(re.findall(r'^    "([a-z_]+)" +\{ return word', f.read(), re.M))
    choose = random.Random(seed)
    texts = []
    for path in files:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if len(text) < 20000:
            texts.append((text, list(TOKEN.finditer(text))))
    words = sorted({t.group() for _, tokens in texts for t in tokens if not t.group().startswith("/")} - UNLIKE - contextual)
    for _ in range(count):
        text, tokens = choose.choice(texts)
        t = choose.choice(tokens)
        put = choose.choice(["", t.group() + " " + t.group(), " " + choose.choice(words) + " "])
        yield text[:t.start()] + put + text[t.end():]


def compare(kind, tool, files):
    """Prints what the two disagree on; returns how often."""
    files = sorted(files)
    broken = broken_of(files)
    refused = tool.refused(files)
    differ = broken ^ refused if tool.reserves else refused - broken
    for path in sorted(differ):
        print(f"{path}: {'tilec' if path in broken else 'tree-sitter'} alone finds an error")
        if kind != "file":
            with open(path, encoding="utf-8") as f:
                print(f.read())
    print(f"{kind}: {len(files)}, {'some' if len(broken) > len(files) // 50 else 'few'} of them broken, {len(differ)} differ")
    return len(differ)


def written(folder, kind, texts):
    place = os.path.join(folder, kind)
    os.mkdir(place)
    for i, text in enumerate(texts):
        path = os.path.join(place, f"{i}.tile")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        yield path


def check_queries(tool, files):
    """Each query is one that the grammar has nodes for, and finds something."""
    faults = 0
    for name in sorted(os.listdir(os.path.join(tool.place, "queries"))):
        p = tool.run("query", "queries/" + name, *files)
        captures = set(re.findall(r"capture: (?:\d+ - )?([\w.]+)", p.stdout))
        if p.returncode or not captures:
            faults += 1
            print(f"{name}: {p.stderr}")
        print(f"{name}: {' '.join(sorted(captures))}")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--broken", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tile-sitter-") as folder:
        tool = Tool(os.path.join(args.root, "tools/editors/tree-sitter"), folder)
        made = tool.run("generate")
        if made.returncode or "onflict" in made.stderr:
            sys.exit(f"tree-sitter generate: {made.stderr}")
        files = sorted(sources(os.path.abspath(args.root)))
        faults = compare("file", tool, files)
        corpus = tool.run("test")
        print(corpus.stdout if corpus.returncode else "the corpus passes")
        faults += bool(corpus.returncode)
        right = [f for f in files if "/stdlib/" in f or "/examples/" in f]
        faults += check_queries(tool, right)
        faults += compare("random text", tool, list(written(folder, "random", random_texts(args.root, args.texts, args.seed))))
        faults += compare("broken text", tool, list(written(folder, "broken", broken_texts(args.root, right, args.broken, args.seed))))
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
