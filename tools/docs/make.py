#!/usr/bin/env python3
"""Makes the site and checks it: `cmake --build build --target docs`, or `./bootstrap docs`, which first installs what it needs.

    make.py SOURCE TILEC OUT     OUT/html/index.html is the site; exit status 1 after a warning, a fault or a link that leads nowhere,
                                 77 where a tool is missing

Sphinx and MyST must be there; furo (how it looks) and Doxygen (the pages of the headers) may be missing.
"""
import importlib.util
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import links  # noqa: E402
import stage  # noqa: E402


def main(source, tilec, out):
    missing = [package for module, package in (("sphinx", "python3-sphinx"), ("myst_parser", "python3-myst-parser")) if not importlib.util.find_spec(module)]
    if missing:
        print(f"docs: not made: this Python lacks what the Debian packages {' '.join(missing)} bring (./bootstrap docs installs them)")
        return 77
    doxygen = shutil.which("doxygen")
    if not doxygen:
        print("docs: no doxygen: the pages of the C headers will only say so")
    pages, html = os.path.join(out, "pages"), os.path.join(out, "html")
    stage.main(source, tilec, pages, doxygen)
    shutil.rmtree(html, ignore_errors=True)
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", stage.HERE, "-d", os.path.join(out, "doctrees"), pages, html]
    if subprocess.run(words, env={**os.environ, "TILE_SOURCE": source, "PYTHONDONTWRITEBYTECODE": "1"}).returncode:
        return 1
    return links.main([html])


if __name__ == "__main__":
    sys.exit(main(*(os.path.abspath(a) for a in sys.argv[1:4])))
