#!/usr/bin/env python3
"""Files for editors, made from the tables of the front end: words (lexer.re), types (types.def), built-in functions (builtins.def).

    editors.py ROOT            compares them with those in tools/editors; exit 1 if one is out of date
    editors.py ROOT --write    writes them
"""
import json
import os
import re
import sys
import textwrap

# The lexer's reserved words by what they are. One that is missing here is an error.
GROUPS = {
    "control": "if else for while return break continue in",
    "declaration": "kernel const import struct tile auto void fn static static_assert",
    "hint": "pipeline unroll nounroll specialize unchecked",
    "constant": "true false inf nan",
}
SPACES = "fast target device"
NUMBER = r"0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9]+)?|0[bB][01_]+|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def tables(root):
    """Words by group; also `clause`, `type` and `builtin`."""
    lexer = read(root, "frontend/lexer.re")
    reserved = re.findall(r'^    "([a-z_]+)" +\{ return TL_TOK_', lexer, re.M)
    found = {group: words.split() for group, words in GROUPS.items()}
    listed = sum(found.values(), [])
    if sorted(listed) != sorted(reserved):
        sys.exit(f"editors.py: the groups of words differ from lexer.re: {sorted(set(listed) ^ set(reserved))}")
    found["clause"] = re.findall(r'^    "([a-z_]+)" +\{ return word', lexer, re.M)
    heads = re.search(r"^clausehead:\n(.*?)^  ;", read(root, "frontend/grammar.y"), re.M | re.S)[1]
    found["plain clause"] = re.findall(r'^  [ |] "(\w+)"', heads, re.M)
    found["type"] = re.findall(r'^DTYPE\(\w+, +"(\w+)"', read(root, "ir/types.def"), re.M) + ["int", "float"]
    found["builtin"] = re.findall(r"^BUILTIN\((\w+),", read(root, "frontend/builtins.def"), re.M)
    return found


# ---- Vim ----

def vim_syntax(t):
    def words(group, name):
        return f"syn keyword {group} {' '.join(t[name])}"

    called = "|".join(t["builtin"])
    clauses = "|".join(t["clause"])
    return f'''" Vim syntax file for .tile, made by test/tools/editors.py.
if exists("b:current_syntax")
  finish
endif

{words("tileControl", "control")}
{words("tileDeclaration", "declaration")}
{words("tileHint", "hint")}
{words("tileConstant", "constant")}
{words("tileType", "type")}
syn keyword tileTodo contained TODO FIXME NOTE
syn match tileBuiltin /\\v<({called})>\\ze\\s*\\(/
syn match tileClause /\\v<({clauses})>\\ze\\s*\\(/
syn match tileClause /\\v;\\s*\\zswhere>/
syn match tileSpace /\\v<({SPACES.replace(" ", "|")})>\\ze\\s*\\./
syn match tileNumber /\\v<0[xX][0-9a-fA-F_]*(\\.[0-9a-fA-F_]*)?([pP][+-]?\\d+)?|<0[bB][01_]+|<\\d[0-9_]*(\\.[0-9_]*)?([eE][+-]?\\d+)?/
syn region tileString start=/"/ skip=/\\\\./ end=/"\\|$/
syn match tileComment /\\/\\/.*/ contains=tileTodo,@Spell
syn match tileDoc /\\/\\/\\/\\/\\@!.*/ contains=tileTodo,@Spell
syn region tileComment start=/\\/\\*/ end=/\\*\\// contains=tileTodo,@Spell

hi def link tileControl Statement
hi def link tileDeclaration Keyword
hi def link tileHint PreProc
hi def link tileClause PreProc
hi def link tileConstant Constant
hi def link tileType Type
hi def link tileBuiltin Function
hi def link tileSpace Identifier
hi def link tileNumber Number
hi def link tileString String
hi def link tileComment Comment
hi def link tileDoc SpecialComment
hi def link tileTodo Todo

let b:current_syntax = "tile"
'''


VIM_DETECT = '''" Made by test/tools/editors.py.
au BufRead,BufNewFile *.tile setfiletype tile
'''
VIM_PLUGIN = '''" Made by test/tools/editors.py.
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1
setlocal commentstring=//\\ %s comments=s1:/*,mb:*,ex:*/,:///,://
setlocal shiftwidth=4 expandtab cindent
setlocal formatprg=tilec\\ fmt\\ -
let b:undo_ftplugin = "setl cms< com< sw< et< cin< fp<"
'''


# ---- TextMate ----

def match(scope, pattern):
    return {"name": scope + ".tile", "match": pattern}


def textmate(t):
    def words(name):
        return r"\b(?:" + "|".join(t[name]) + r")\b"

    head = {"match": r"\b(kernel|struct)\s+([A-Za-z_]\w*)",
            "captures": {"1": {"name": "keyword.declaration.tile"}, "2": {"name": "entity.name.function.tile"}}}
    comment = {"name": "comment.block.tile", "begin": r"/\*", "end": r"\*/"}
    string = {"name": "string.quoted.double.tile", "begin": '"', "end": '"|$',
              "patterns": [match("constant.character.escape", r"\\.")]}
    return {
        "name": "Tile",
        "comment": "Made by test/tools/editors.py.",
        "scopeName": "source.tile",
        "fileTypes": ["tile"],
        "patterns": [
            match("comment.line.documentation", r"///(?!/).*$"),
            match("comment.line.double-slash", r"//.*$"),
            comment,
            string,
            head,
            match("keyword.control", words("control")),
            match("keyword.declaration", words("declaration")),
            match("keyword.other.hint", words("hint")),
            match("keyword.other.clause", words("clause") + r"(?=\s*\()"),
            match("constant.language", words("constant")),
            match("storage.type", words("type")),
            match("variable.language", r"\b(?:" + SPACES.replace(" ", "|") + r")\b(?=\s*\.)"),
            match("support.function", words("builtin") + r"(?=\s*\()"),
            match("entity.name.function", r"\b[A-Za-z_]\w*(?=\s*\()"),
            match("constant.numeric", r"\b(?:" + NUMBER + r")|(?<![\w.])\.[0-9][0-9_]*(?:[eE][+-]?[0-9]+)?"),
            match("keyword.operator", r"\+:|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%&|^~!<>=?:]"),
        ],
    }


# ---- tree-sitter ----

def sitter_words(t):
    reserved = sum((t[group] for group in GROUPS), [])

    def row(name, words):
        lines = textwrap.fill(", ".join(f"'{w}'" for w in words), 136, initial_indent="    ", subsequent_indent="    ")
        return f"  {name}: [\n{lines},\n  ],\n"

    rows = row("reserved", reserved) + row("clauses", t["plain clause"]) + row("types", t["type"])
    return f"// Made by test/tools/editors.py.\nmodule.exports = {{\n{rows}}};\n"


def sitter_highlights(t):
    def quoted(words):
        return " ".join(f'"{w}"' for w in words)

    def named(words):
        return " ".join(f"({w})" for w in words)

    # Those that are nodes of their own in grammar.js; `tile` is part of a type.
    nodes = ["auto", "void"]
    declaration = [w for w in t["declaration"] if w not in [*nodes, "tile"]] + ["type", "where"]
    builtins = textwrap.fill(quoted(t["builtin"]), 136, initial_indent="    ", subsequent_indent="    ")
    return f'''; Made by test/tools/editors.py. No node has two captures, so that it does not matter which of two an editor takes.
[{quoted(t["control"])}] @keyword.control
[{quoted(declaration)}] @keyword
[{quoted(t["hint"])}] @keyword.directive
(clause_name) @attribute
["tile" {named(["scalar_type", *nodes])}] @type.builtin
(type_identifier) @type
(pointer_type (identifier) @type)
[{named(t["constant"])}] @constant.builtin
[(integer) (float)] @number
(string) @string
(escape) @string.escape
(comment) @comment
(doc_comment) @comment.documentation

(kernel name: (identifier) @function)
(function name: (identifier) @function)
(nested_function name: (identifier) @function)
(function_parameter name: (identifier) @function)
((call function: (identifier) @function.builtin)
  (#any-of? @function.builtin "in"
{builtins}))
((call function: (identifier) @function.call)
  (#not-any-of? @function.call "in"
{builtins}))
(call function: (member name: (identifier) @function.call))
((member object: (identifier) @module.builtin)
  (#any-of? @module.builtin {quoted(SPACES.split())}))
(import module: (module_name (identifier) @module))
(qualified_type module: (identifier) @module)

(array_parameter name: (identifier) @variable.parameter)
(parameter name: (identifier) @variable.parameter)
(constant_parameter name: (identifier) @constant)
(lambda parameter: (identifier) @variable.parameter)
(constants (init name: (identifier) @constant))
(constant_name (identifier) @constant)
(field name: (identifier) @property)
(named_argument name: (identifier) @variable.parameter)
(named_value name: (identifier) @property)

["+:" "<<=" ">>=" "<<" ">>" "<=" ">=" "==" "!=" "&&" "||" "++" "--" "+=" "-=" "*=" "/=" "%=" "&=" "|=" "^="
 "+" "-" "*" "/" "%" "&" "|" "^" "~" "!" "=" "?" "=>"] @operator
(binary operator: ["<" ">"] @operator)
(tile_type ["<" ">"] @punctuation.bracket)
["(" ")" "[" "]" "{{" "}}"] @punctuation.bracket
["," ";" "." ":"] @punctuation.delimiter
'''


SETTINGS = {
    "tile.path": {"type": "string", "default": "tilec", "scope": "machine", "description": "The compiler, whose language server is started."},
    "tile.target": {"type": "string", "default": "", "description": "A target, such as sm_90a, whose costs are shown behind lines."},
    "tile.includes": {"type": "array", "items": {"type": "string"}, "default": [], "description": "Folders of imported files (-I)."},
}


def vscode(version):
    pairs = [["{", "}"], ["[", "]"], ["(", ")"]]
    closing = [{"open": a, "close": b} for a, b in pairs] + [{"open": '"', "close": '"', "notIn": ["string", "comment"]}]
    configuration = {
        "comments": {"lineComment": "//", "blockComment": ["/*", "*/"]},
        "brackets": pairs,
        "autoClosingPairs": closing,
        "surroundingPairs": pairs + [['"', '"']],
    }
    manifest = {
        "name": "tile",
        "displayName": "Tile kernels",
        "description": "Tile kernels: syntax, and the language server of tilec",
        "version": version,
        "publisher": "tilec",
        "license": "Apache-2.0 WITH LLVM-exception",
        "engines": {"vscode": "^1.67.0"},
        "categories": ["Programming Languages"],
        "main": "./extension.js",
        "activationEvents": ["onLanguage:tile"],
        "contributes": {
            "configuration": {"title": "Tile", "properties": SETTINGS},
            "languages": [{"id": "tile", "aliases": ["Tile"], "extensions": [".tile"],
                           "configuration": "./language-configuration.json"}],
            "grammars": [{"language": "tile", "scopeName": "source.tile", "path": "./syntaxes/tile.tmLanguage.json"}],
        },
    }
    return manifest, configuration


def as_json(value):
    return json.dumps(value, indent=2) + "\n"


def made(root):
    t = tables(root)
    version = re.search(r"project\([^)]*VERSION\s+([\d.]+)", read(root, "CMakeLists.txt"))[1]
    manifest, configuration = vscode(version)
    return {
        "vim/syntax/tile.vim": vim_syntax(t),
        "vim/ftdetect/tile.vim": VIM_DETECT,
        "vim/ftplugin/tile.vim": VIM_PLUGIN,
        "vscode/package.json": as_json(manifest),
        "vscode/language-configuration.json": as_json(configuration),
        "vscode/syntaxes/tile.tmLanguage.json": as_json(textmate(t)),
        "tree-sitter/words.js": sitter_words(t),
        "tree-sitter/queries/highlights.scm": sitter_highlights(t),
    }


def check_grammar(root):
    """Faults of the TextMate grammar on a line of each kind."""
    patterns = [(p["name"], re.compile(p["match"])) for p in textmate(tables(root))["patterns"] if "name" in p and "match" in p]

    def scope(text, word):
        at = text.index(word)
        hits = [(m.start(), i, name) for i, (name, r) in enumerate(patterns) for m in r.finditer(text) if m.start() <= at < m.end()]
        return min(hits, key=lambda h: (h[0], h[1]))[2] if hits else None

    rows = [
        ("/// text", "text", "comment.line.documentation"), ("//// text", "text", "comment.line.double-slash"),
        ("for (int i : range(4)) unroll", "for", "keyword.control"), ("for (int i : range(4)) unroll", "unroll", "keyword.other.hint"),
        ("for (int i : range(4))", "int", "storage.type"), ("    require(N > 3)", "require", "keyword.other.clause"),
        ("key = 3", "key", None), ("x = -inf;", "inf", "constant.language"), ("fast.exp(x)", "fast", "variable.language"),
        ("exp(x)", "exp", "support.function"), ("mine(x)", "mine", "entity.name.function"), ("expx", "expx", None),
        ("x = 0x1.8p3;", "0x1.8p3", "constant.numeric"), ("x = .5;", ".5", "constant.numeric"), ("x[0 +: 4]", "+:", "keyword.operator"),
    ]
    for text, word, want in rows:
        got = scope(text, word)
        if got != (want and want + ".tile"):
            yield f"'{word}' in '{text}' is {got}, should be {want}"


def main():
    root, write = sys.argv[1], "--write" in sys.argv
    faults = list(check_grammar(root))
    files = made(root)
    for name, text in files.items():
        path = os.path.join(root, "tools/editors", name)
        if write:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        elif not os.path.exists(path) or read(root, "tools/editors/" + name) != text:
            faults.append(f"tools/editors/{name} is out of date: test/tools/editors.py . --write")
    for fault in faults:
        print(fault)
    print(f"{len(files)} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
