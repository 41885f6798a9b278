#!/usr/bin/env python3
"""tilec fmt over the .tile files of the tree, as they are and mangled.

    format.py TILEC ROOT FOLDER [SEEDS [FILES_A_SEED]]

Formats a copy of every file in FOLDER, and, for each seed, of some files whose white space was replaced at random and into which
comments were put at random. Each must keep its tokens and its comments, by a lexer of our own, and formatting a second time must change
nothing. Files that do not parse must stay as they are, with an error. Prints "N texts, M faults".
"""
import os
import random
import re
import subprocess
import sys

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<space>\s+)|"(?:\\.|[^"\\\n])*"
    |0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?\w*)?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d)?\w*
    |[A-Za-z_]\w*|\+:|<<=|>>=|<<|>>|<=|>=|=>|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|.""", re.S | re.X)


def lex(text):
    """[(text, is a comment)]; comments without the blanks that a formatter may change."""
    found = []
    for m in TOKEN.finditer(text.removeprefix("\ufeff")):
        if m.lastgroup == "comment":
            found.append(("\n".join(line.strip() for line in m.group().split("\n")), True))
        elif m.lastgroup != "space":
            found.append((m.group(), False))
    return found


def read(path):
    with open(path, encoding="utf-8", newline="") as f:
        return f.read()


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(text)


# ---- mangling ----

def comment(rng, n):
    word = f"c{n}" + rng.choice(["", " and more words of it", " \u00fc" * rng.randrange(4), "x" * rng.randrange(90)])
    return rng.choice([f"// {word}\n", f"/// {word}\n", f"/* {word} */", f"/* {word}\n     second line\n  third */", f"\n// {word}\n",
                       f"\n/* {word} */\n", f"//{word}\n//\n"])


def gap(rng, wild):
    if rng.random() > wild:
        return " "
    return rng.choice(["", "", " ", "  ", "\t", "\n", "\n\n", "\n    ", " \n\n\n ", "\r\n"])


def mangle(text, rng):
    """The same tokens and comments in another form, with more comments."""
    out, wild, chatty = [], rng.choice([0.05, 0.3, 1.0]), rng.choice([0.0, 0.02, 0.2])
    for n, (token, is_comment) in enumerate(lex(text)):
        space = gap(rng, wild)
        if rng.random() < chatty:
            space += " " + comment(rng, n) + gap(rng, wild)
        if not space and out and re.search(r"[\w.\"'+\-*/<>=!&|^%:]$", out[-1]) and re.match(r"[\w.\"'+\-*/<>=!&|^%:]", token):
            space = " "
        out.append(space + token + ("\n" if is_comment and token.startswith("//") else ""))
    return "".join(out)


# ---- checks ----

def fmt(tilec, folder, *options):
    return subprocess.run([tilec, "fmt", "-r", *options, folder], capture_output=True, text=True, timeout=300)


def compare(name, before, after):
    a, b = lex(before), lex(after)
    if a != b:
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        return [f"{name}: token {at} was {a[at:at + 3]}, is {b[at:at + 3]}"]
    if re.search(r"[ \t]\r?\n", re.sub(r"/\*.*?\*/", "c", after, flags=re.S)):
        return [f"{name}: blanks at the end of a line"]
    return []


def check(tilec, folder, texts):
    """texts: name -> text. A list of faults."""
    os.makedirs(folder, exist_ok=True)
    for name, text in texts.items():
        write(os.path.join(folder, name), text)
    run, faults = fmt(tilec, folder), []
    if run.returncode not in (0, 1):
        faults.append(f"exit status {run.returncode}: {run.stderr[-300:]}")
    broken = {os.path.basename(m) for m in re.findall(r"^([^\n:]*\.tile):\d+:\d+: error", run.stderr, re.M)}
    once = {name: read(os.path.join(folder, name)) for name in texts}
    for name, text in texts.items():
        faults += [f"{name}: changed in spite of an error"] if name in broken and once[name] != text else []
        faults += [] if name in broken else compare(name, text, once[name])
    again = fmt(tilec, folder, "--check").stdout.split()
    return faults + [f"{os.path.basename(p)}: formatting again changes it" for p in again], broken


def patched(text, diff):
    """The text with a unified diff applied."""
    old, new, at = text.splitlines(keepends=True), [], 0
    for hunk in re.split(r"^(?=@@ )", diff, flags=re.M)[1:]:
        head, *lines = hunk.splitlines(keepends=True)
        start, count = (int(n) for n in re.match(r"@@ -(\d+),(\d+) ", head).groups())
        new += old[at:start - (count > 0)]
        at = start - (count > 0) + count
        new += [line[1:] for line in lines if line[0] in " +"]
    return "".join(new + old[at:])


def check_diffs(tilec, folder, texts, names):
    """What --diff prints leads from the text to the formatted one."""
    faults = []
    for name in names:
        path = os.path.join(folder, "diff.tile")
        write(path, texts[name])
        diff = subprocess.run([tilec, "fmt", "--diff", path], stdout=subprocess.PIPE, timeout=60).stdout.decode()
        fmt(tilec, folder)
        faults += [] if patched(texts[name], diff) == read(path) else [f"{name}: the diff does not lead to what is written"]
    return faults


def main():
    tilec, root, folder = sys.argv[1:4]
    seeds, some = (int(a) for a in (sys.argv[4:6] + ["2", "60"][len(sys.argv) - 4:])[:2])
    tree = {}
    for at, dirs, names in os.walk(root):
        dirs[:] = sorted(d for d in dirs if d not in ("build", ".git") and not d.startswith("build"))
        for name in sorted(names):
            if name.endswith(".tile"):
                path = os.path.join(at, name)
                try:
                    tree[os.path.relpath(path, root).replace(os.sep, "__")] = read(path)
                except UnicodeDecodeError:
                    continue
    os.makedirs(os.path.join(folder, "diffs"), exist_ok=True)
    faults, broken = check(tilec, os.path.join(folder, "tree"), tree)
    count, names = len(tree), sorted(set(tree) - broken)
    for seed in range(seeds):
        rng = random.Random(seed)
        texts = {name: mangle(tree[name], rng) for name in sorted(rng.sample(names, min(some, len(names))))}
        more, broken = check(tilec, os.path.join(folder, f"seed{seed}"), texts)
        faults += [f"seed {seed}: {f}" for f in more] + [f"seed {seed}: {n}: does not parse" for n in sorted(broken)]
        texts = {name: text.replace("\r", "") for name, text in texts.items()}
        faults += check_diffs(tilec, os.path.join(folder, "diffs"), texts, sorted(texts)[:8])
        count += len(texts)
    print(*faults[:20], sep="\n")
    print(f"{count} texts, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
