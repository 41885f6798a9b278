"""How Sphinx makes the site: of the folder that stage.py has filled. Read by `cmake --build build --target docs`."""
import importlib.util
import os
import re
import sys

from pygments.lexer import bygroups, words
from pygments.lexers.c_cpp import CLexer
from pygments.token import Comment, Keyword, Name, Number, Punctuation, String, Text

ROOT = os.environ["TILE_SOURCE"]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "test", "tools"))
import editors  # noqa: E402  (the tables of the language's words)

project = "tilec"
author = "the tilec authors"
with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
    version = release = re.search(r"^project\(tile VERSION ([\d.]+)", f.read(), re.M)[1]
extensions = ["myst_parser"]
myst_heading_anchors = 4  # as GitHub names them
root_doc = "index"
source_suffix = {".md": "markdown"}
highlight_language = "text"
suppress_warnings = ["myst.header"]  # a page may begin at any level
html_theme = "furo" if importlib.util.find_spec("furo") else "alabaster"
html_title = f"tilec {version}"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
if html_theme == "alabaster":
    html_sidebars = {"**": ["about.html", "searchbox.html", "globaltoc.html"]}
    html_theme_options = {"page_width": "1100px", "description": "tile kernels for C programs"}
else:
    html_theme_options = {"sidebar_hide_name": False}


TABLE = editors.tables(ROOT)
RESERVED = TABLE["control"] + TABLE["declaration"] + TABLE["hint"]


class TileLexer(CLexer):
    """The .tile language: C with the words of the front end's tables."""
    name, aliases, filenames = "tile", ["tile"], ["*.tile"]
    tokens = {
        "root": [
            (r"///.*?$", Comment.Special),
            (words(TABLE["type"], suffix=r"\b"), Keyword.Type),
            (words(TABLE["constant"], suffix=r"\b"), Keyword.Constant),
            (words(RESERVED, suffix=r"\b"), Keyword),
            (rf"\b({'|'.join(TABLE['clause'])})(?=\s*\()", Keyword.Namespace),
            (rf"\b({'|'.join(TABLE['builtin'])})(?=\s*\()", Name.Builtin),
            (r"\b(fast|target|device)(\.)", bygroups(Name.Namespace, Punctuation)),
            (r"\s+", Text),
            (r"//.*?$|/\*(?:.|\n)*?\*/", Comment),
            (r"0[xX][\w.]+(?:[pP][+-]?\d+)?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?", Number),
            (r'"(?:\\.|[^"\\\n])*"', String),
            (r"\w+", Name),
            (r".", Punctuation),
        ]
    }


def setup(app):
    app.add_lexer("tile", TileLexer)
    app.add_lexer("cuda", CLexer)
