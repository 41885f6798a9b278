#!/usr/bin/env python3
"""Fills the folder that Sphinx reads: every Markdown file of the tree at its own path, and the pages that are made from other files.

    stage.py SOURCE TILEC OUT [DOXYGEN]

README.md becomes the index, with the ways in (start.md) and the contents (contents.md). Each chapter of the language is a page. Comments within a line go; those on lines of their own end lists, and stay. A link to a
folder leads to its README; one to a source offers the file. Pages made here: of `tilec --help`, of the `///` lines of the library, of the
public headers (api.py), of the Python tutorial's cells. Without DOXYGEN those of the headers say so.
"""
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "test", "tools")]
import api  # noqa: E402
from check_docs import anchors, tracked  # noqa: E402
from check_stdlib import FUNCTION  # noqa: E402

FENCE = re.compile(r"^(`{3,}).*?^\1 *$", re.S | re.M)
# Folders that are no part of the site: a test's data, GitHub's own files, and this folder's pieces.
LEFT_OUT = ("test/tools/Inputs/", "tools/docs/contents.md", "tools/docs/start.md")

# Of its chapters each is a page.
LANGUAGE = "frontend/LANGUAGE.md"
# Pages with pages below them.
BELOW = {"examples/README.md": "[0-9]*/README", "examples/tutorial/README.md": "[0-9]*", "test/bench/README.md": "results/*",
         "tools/README.md": "*/README"}


def outside_of_code(text, change):
    """`text`, with `change` applied to what is outside of fenced blocks."""
    out, at = [], 0
    for m in FENCE.finditer(text):
        out += [change(text[at:m.start()]), m.group()]
        at = m.end()
    return "".join(out + [change(text[at:])])


class Site:
    def __init__(self, source, out):
        self.source, self.out = source, out
        self.paths = set(tracked(source))
        self.folders = {os.path.dirname(p) for p in self.paths}
        self.chapters = {}  # of the language, by the anchors of their headings
        for name, text in chapters(self.read(LANGUAGE))[1]:
            self.chapters.update((a, name) for a in anchors(text))

    def read(self, path):
        with open(os.path.join(self.source, path), encoding="utf-8") as f:
            return f.read()

    def put(self, path, text):
        path = os.path.join(self.out, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def target(self, page, link):
        """Where a link of a page leads on the site; None: nowhere, it is a folder without a page."""
        path, mark, anchor = link.partition("#")
        folder = os.path.dirname(page)
        if anchor in self.chapters and (os.path.normpath(os.path.join(folder, path)) if path else page) == LANGUAGE:
            return os.path.join(os.path.dirname(path), self.chapters[anchor] + ".md") + mark + anchor
        if not path or re.match(r"\w+:", link):
            return link
        found = os.path.normpath(os.path.join(folder, path))
        if found + "/README.md" in self.paths:
            path, found = path.rstrip("/") + "/README.md", found + "/README.md"
        if found == "README.md":
            path = re.sub(r"README\.md$", "index.md", path)
        elif found in self.paths and not found.endswith(".md"):
            self.copy(found)
        elif found not in self.paths:
            return None if any(f == found or f.startswith(found + "/") for f in self.folders) else link
        return path + mark + anchor

    def copy(self, path):
        os.makedirs(os.path.dirname(os.path.join(self.out, path)), exist_ok=True)
        shutil.copyfile(os.path.join(self.source, path), os.path.join(self.out, path))

    def page(self, path):
        def link(m):
            to = self.target(path, m[2])
            return m[1] if to is None else f"[{m[1]}]({to})" if m[1] or to else m[0]

        def prose(text):
            text = re.sub(r"(?<=\S) ?<!--.*?-->", "", text, flags=re.S)
            return re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)", link, text)

        text = self.read(path)
        if path == "frontend/ERRORS.md":  # its examples are in the language
            text = re.sub(r"^```\n(.*?)^```$", r"```tile\n\1```", text, flags=re.S | re.M)
        return outside_of_code(text, prose)


def chapters(text):
    """(the beginning, [(page, text)...]) of a document: its headings of the second level begin chapters."""
    starts = [m.start() for m in re.finditer(r"^## ", FENCE.sub(lambda m: "x" * len(m[0]), text), re.M)]
    parts = [text[a:b].replace("\n### ", "\n## ").replace("## ", "# ", 1) for a, b in zip(starts, [*starts[1:], len(text)])]
    return text[:starts[0]], [("LANGUAGE-" + min(anchors(p.split("\n")[0])), p) for p in parts]


def functions(source):
    """The page of the standard library's functions."""
    page = "# Functions of the standard library\n\nMade from the `///` lines of `stdlib/*.tile`. [The library](README.md) says what holds of all of them.\n"
    for name in sorted(os.listdir(os.path.join(source, "stdlib"))):
        if not name.endswith(".tile"):
            continue
        with open(os.path.join(source, "stdlib", name), encoding="utf-8") as f:
            text = f.read()
        page += f"\n## std.{name[:-5]}\n\n"
        head = re.match(r"(?://[^/].*\n)+", text)
        page += " ".join(line[2:].strip() for line in head[0].splitlines()) + "\n" if head else ""
        for m in FUNCTION.finditer(text):
            lines = [line[3:].removeprefix(" ") for line in m[1].splitlines() if line.startswith("///")]
            if lines:
                signature = re.match(r"auto (\w+\([^{]*?\))\s*\{", text[m.end(1):])
                page += f"\n```tile\n{' '.join(signature[1].split())}\n```\n\n" + "\n".join(escape(line) for line in lines) + "\n"
    return page


def cells(source):
    """The page of python/tutorial.py: its cells of text and of code."""
    with open(os.path.join(source, "python", "tutorial.py"), encoding="utf-8") as f:
        parts = re.split(r"^# %%(.*)\n", f.read(), flags=re.M)
    page = ""
    for kind, text in zip(parts[1::2], parts[2::2]):
        page += re.sub(r"^# ?", "", text.strip(), flags=re.M) + "\n\n" if "markdown" in kind else f"```python\n{text.strip()}\n```\n\n"
    return page


def escape(line):
    return line if line.startswith("    ") else re.sub(r"([*_<>|\[\]\\])", r"\\\1", line)


def main(source, tilec, out, doxygen=""):
    shutil.rmtree(out, ignore_errors=True)
    site = Site(source, out)
    for path in sorted(site.paths):
        if path.endswith(".md") and not path.startswith(LEFT_OUT):
            text = site.page(path)
            if path == "README.md":
                title, lead, rest = text.split("\n\n", 2)
                path, text = "index.md", "\n\n".join((title, lead, site.page("tools/docs/start.md").replace("](../../", "](") + rest)) + "\n" + site.read("tools/docs/contents.md")
            if path == LANGUAGE:
                text, pages = chapters(text)
                text += "\n```{toctree}\n\n" + "\n".join(name for name, _ in pages) + "\n```\n"
                for name, chapter in pages:
                    site.put(f"frontend/{name}.md", chapter)
            if path in BELOW:
                text += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{BELOW[path]}\n```\n"
            site.put(path, text)
    site.put("tools/OPTIONS.md", "# Commands and options\n\nWhat `tilec --help` prints.\n\n```text\n" + subprocess.run([tilec, "--help"], capture_output=True, text=True, check=True).stdout + "```\n")
    site.put("stdlib/FUNCTIONS.md", functions(source))
    site.put("python/TUTORIAL.md", cells(source))
    for name, text in api.pages(source, os.path.join(out, "..", "doxygen"), doxygen):
        site.put(f"api/{name}.md", text)


if __name__ == "__main__":
    main(*sys.argv[1:])
