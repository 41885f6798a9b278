#!/usr/bin/env python3
"""Every link and picture of a folder of HTML pages that leads into it arrives, at its anchor too.

    links.py FOLDER        one line per link that does not, then "N pages, N links, N dead"; exit status 1 if one is
    links.py --self-test   shows that dead links and anchors are seen

Links to other hosts are not followed. The pages of a search, an index and the like, which Sphinx adds, are read like all others.
"""
import os
import sys
import tempfile
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[name] for name in ("id", "name") if attrs.get(name))
        self.links += [attrs[name] for name in ("href", "src") if attrs.get(name)]


def dead(folder, path, page, pages):
    for link in page.links:
        url = urlsplit(link)
        if url.scheme or url.netloc:
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(path), unquote(url.path))) if url.path else path
        if not os.path.isfile(os.path.join(folder, target)):
            yield f"{path}: {link}: there is no {target}"
        elif url.fragment and target in pages and unquote(url.fragment) not in pages[target].anchors:
            yield f"{path}: {link}: {target} has no such anchor"


def faults(folder):
    pages = {}
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".html"):
                with open(os.path.join(where, name), encoding="utf-8") as f:
                    pages[os.path.relpath(os.path.join(where, name), folder)] = Page(f.read())
    found = [fault for path in sorted(pages) for fault in dead(folder, path, pages[path], pages)]
    return len(pages), sum(len(p.links) for p in pages.values()), found


def self_test():
    texts = {"a.html": '<h1 id="top">A</h1><a href="b/c.html#there">x</a><a href="#top">y</a><a href="https://example.org/z">z</a>',
             "b/c.html": '<i id="there"></i><a href="../a.html">back</a><a href="../gone.html">1</a><a href="../a.html#gone">2</a><img src="gone.svg"/>'}
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "b"))
        for path, text in texts.items():
            with open(os.path.join(folder, path), "w", encoding="utf-8") as f:
                f.write(text)
        pages, links, found = faults(folder)
    print(f"{pages} pages, {links} links, {len(found)} dead")
    return 0 if len(found) == 3 and all("b/c.html: " in f for f in found) else 1


def main(args):
    if args == ["--self-test"]:
        return self_test()
    pages, links, found = faults(args[0])
    print("\n".join([*found, f"{pages} pages, {links} links, {len(found)} dead"]))
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
