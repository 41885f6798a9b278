#!/usr/bin/env python3
"""Every file that a text of the tree names is in the tree, every link between its Markdown files arrives, and every one of these is a page
of the site.

    check_docs.py [ROOT]        one line per reference that leads nowhere, then "N files read, N references, N dangling"
    check_docs.py --self-test   shows that a dangling reference is seen

Texts are all of each Markdown file, and the comments of sources: C, re2c, Bison, Python, CMake, shell, tests. A reference is a
word with an ending of ENDINGS, or a path that begins with a top-level folder. It is found if it is a tracked path from the root or
from the text's own folder, the tail of a tracked path, the lit name of a test, or a pattern (`*`, `{a,b}`) that matches one. It needs
no file if it stands in OUTSIDE, if it is a placeholder in capitals (`FILE.tile`), if it is a kernel or array of a user's, or if the
document shows it (console.py). A link's anchor is a heading's, as GitHub and the site spell them. tools/docs/contents.md lists the pages, but
for those that stage.py puts below others.
"""
import fnmatch
import os
import re
import subprocess
import sys

ENDINGS = "c h cc def re y md py sh test tir tile cmake in inc txt json"
# Names of a user's files: kernels, and what is made from them.
MADE = (".tile", ".tir", ".npy", ".json")
# Files of other projects and of the system, files that a build makes, and hosts and headers in our examples.
OUTSIDE = set("""stdio.h stdlib.h string.h stdint.h stddef.h pthread.h math.h elf.h cuda.h hip.h CallingConv.h cuda_occupancy.h
    onnxruntime_c_api.h ggml-common.h run.c ggml-quants.c CMakeLists.txt lit.py lit.cfg.py lit.site.cfg.py install_manifest.txt
    grammar.c grammar.h lexer.c stdlib_embed.c softmax.h rms_norm.h heat.h gemm.h saxpy.h add.h host.c ahead.c k.h""".split())
# Words that look like files and are not: names of layouts, of a project.
WORDS = {"mma.v2.c", "llama2.c"}
TOP = "frontend ir passes codegen runtime stdlib examples python test tools .ci .github".split()
PLACE = re.compile(r"(?<![\w/.$%{}<-])((?:\.{1,2}/)*[\w*{},-]+(?:[/.][\w*{},-]+)*)(?![\w$])")


def tracked(root):
    out = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True)
    paths = out.stdout.split() if out.returncode == 0 else []
    if not paths:  # an unpacked archive
        for folder, dirs, names in os.walk(root):
            dirs[:] = [d for d in dirs if not d.startswith("build") and d not in (".git", "__pycache__")]
            paths += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return [p for p in paths if os.path.isfile(os.path.join(root, p))]


def braces(word):
    """a{b,c}d as abd and acd."""
    m = re.search(r"\{([^{}]*)\}", word)
    if not m:
        return [word]
    return [w for part in m[1].split(",") for w in braces(word[: m.start()] + part + word[m.end():])]


class Tree:
    def __init__(self, paths):
        self.paths = set(paths)
        for p in paths:
            while "/" in p:
                p = p.rsplit("/", 1)[0]
                self.paths.add(p)
        self.tails = set()
        # lit names its tests by their paths below test/, without the ending
        self.paths.update(p.rsplit(".", 1)[0] for p in paths if p.startswith("test/") and p.endswith((".test", ".tile", ".tir")))
        for p in sorted(self.paths):
            parts = p.split("/")
            self.tails.update("/".join(parts[i:]) for i in range(len(parts)))

    def has(self, word, folder):
        word = word.rstrip("/")
        here = os.path.normpath(os.path.join(folder, word))
        if word.startswith("."):
            return here in self.paths or word in self.paths
        if "*" in word:
            return any(fnmatch.fnmatch(p, word) for p in self.tails)
        return word in self.tails or here in self.paths


def comments(path, text):
    """Pairs of (line, text) to be read."""
    if path.endswith(".md"):
        keep = re.sub(r"^```(?:cuda|python)\n.*?^```", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S | re.M)
    elif path.endswith((".c", ".h", ".cc", ".cpp", ".def", ".re", ".y", ".tile", ".tir")):
        found = re.compile(r'"(?:\\.|[^"\\\n])*"|(//[^\n]*|/\*.*?\*/)', re.S)
        keep = blank_all_but(found, text)
    elif path.endswith((".py", ".cmake", ".sh", ".txt")) or path == "bootstrap":
        keep = blank_all_but(re.compile(r'\A(?:#!.*\n)?r?"""(?:.|\n)*?"""|(?:^|(?<=  ))#(?!include)[^\n]*', re.M), text)
    elif path.endswith(".test"):
        keep = "\n".join(line if re.match(r"// |# ", line) else "" for line in text.split("\n"))
    else:
        return
    for i, line in enumerate(keep.split("\n"), 1):
        if not re.search(r"\bRUN\b|[A-Z]{2,}(-[A-Z0-9]+)*:", line):
            yield i, line


def blank_all_but(pattern, text):
    out, at = [], 0
    for m in pattern.finditer(text):
        kept = m.group(1) if pattern.groups else m.group()
        out.append(re.sub(r"[^\n]", " ", text[at:m.start()]))
        out.append(kept if kept is not None else re.sub(r"[^\n]", " ", m.group()))
        at = m.end()
    out.append(re.sub(r"[^\n]", " ", text[at:]))
    return "".join(out)


def references(line):
    for m in PLACE.finditer(line):
        word = m.group(1).rstrip(".,")
        stem, dot, ending = word.rpartition(".")
        is_file = bool(dot) and ending in ENDINGS.split() and bool(stem.strip("./*"))
        is_path = "/" in word and word.split("/")[0] in TOP and re.fullmatch(r"[\w./*{},-]+", word)
        if is_file or is_path:
            yield word


def needs_no_file(word):
    parts = word.rsplit(".", 1)[0].split("/")
    if word in WORDS or os.path.basename(word) in OUTSIDE or word == "FILE.md":
        return True
    if any(re.search(r"[A-Z]{2,}|^[A-Z]$", p) for p in parts) and not word.endswith(".md"):
        return True  # a placeholder: FILE.tile, NAME.c, OUT/x.def
    return word.endswith(MADE) and parts[0] not in TOP


def dangling(tree, path, text):
    folder, seen = os.path.dirname(path), 0
    shown = set(re.findall(r"^`(\S+)`:\n\n```", text, re.M))
    for number, line in comments(path, text):
        for word in references(line):
            seen += 1
            if word not in shown and not needs_no_file(word) and not all(tree.has(w, folder) for w in braces(word)):
                yield f"{path}:{number}: there is no {word}"
    yield seen


def anchors(text):
    """Of a document's headings, outside of code."""
    text = re.sub(r"^(`{3,}).*?^\1 *$", "", text, flags=re.S | re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ +(.*?) *$", text, re.M)}


def dead_links(texts):
    """Of the Markdown files `texts`, by path: links to a page or a heading that is not there, then the number of links."""
    seen = 0
    for path, text in texts.items():
        text = re.sub(r"^(`{3,}).*?^\1 *$", "", text, flags=re.S | re.M)
        for to, anchor in re.findall(r"\]\(([^()#\s]*\.md)?(?:#([^()\s]+))?\)", text):
            target = os.path.normpath(os.path.join(os.path.dirname(path), to)) if to else path
            seen += 1
            if target not in texts:
                yield f"{path}: a link leads to {target}, which is not there"
            elif anchor and anchor not in anchors(texts[target]):
                yield f"{path}: {target} has no heading #{anchor}"
    yield seen


def unlisted(root, pages):
    """Pages that the site's contents lack."""
    with open(os.path.join(root, "tools/docs/contents.md"), encoding="utf-8") as f:
        listed = {line.strip() + ".md" for line in f}
    with open(os.path.join(root, "tools/docs/stage.py"), encoding="utf-8") as f:
        below = dict(re.findall(r'"([\w/]+)/README\.md": "([^"]+)"', f.read()))
    patterns = [f"{folder}/{pattern}.md" for folder, pattern in below.items()]
    for page in pages:
        if page not in listed and page not in ("README.md", "tools/docs/start.md") and not any(fnmatch.fnmatch(page, p) for p in patterns):
            yield f"{page}: tools/docs/contents.md does not list it"


def self_test_links():
    texts = {"a.md": "# One `x`: two\n[b](b/c.md#there) [up](#one-x-two)\n", "b/c.md": "## There\n[a](../a.md) [1](../gone.md) [2](../a.md#gone) [3](#gone)\n"}
    *found, seen = dead_links(texts)
    return [] if len(found) == 3 and seen == 6 else [f"links: {found}, {seen}"]


def self_test():
    tree = Tree(["ir/ops.def", "ir/text/parse.c", "test/tools/x.py", "README.md"])
    bad = [("a.md", "see `language.md`"), ("ir/a.c", "/* verify.c says */"), ("ir/a.c", "// test/gone/"), ("t.py", "# ir/parse.c"),
           ("a.md", "[x](ir/nothing)"), ("a.md", "`mine.c`:\n\n```c\n```\n`yours.c`")]
    good = [("a.md", "`ops.def`, `text/parse.c`, [x](ir/text) and ir/*.def"), ("ir/a.c", 'x = "gone.c"; /* parse.c */'),
            ("a.md", "`tilec k.tile`, `NAME.c`"), ("a.md", "`mine.c`:\n\n```c\n```\n`mine.c`"), ("ir/a.md", "[up](../README.md)"), ("a.md", "test/tools/{x}.py")]
    wrong = [t for p, t in bad if len(list(dangling(tree, p, t))) != 2]
    wrong += [t for p, t in good if len(list(dangling(tree, p, t))) != 1]
    wrong += self_test_links()
    for text in wrong:
        print("self-test failed on", text)
    return 1 if wrong else 0


def main(args):
    if args == ["--self-test"]:
        return self_test()
    root = args[0] if args else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    paths = tracked(root)
    tree, files, count, faults, pages = Tree(paths), 0, 0, [], {}
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            text = f.read()
        *found, seen = dangling(tree, path, text)
        files, count = files + 1, count + seen
        faults += found
        if path.endswith(".md") and path != "tools/docs/contents.md":
            pages[path] = text
    *found, seen = dead_links(pages)
    count += seen
    faults += [*found, *unlisted(root, pages)]
    for line in faults:
        print(line)
    print(f"{files} files read, {count} references, {len(faults)} dangling")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
