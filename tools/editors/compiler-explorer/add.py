#!/usr/bin/env python3
"""Adds Tile to an instance of Compiler Explorer on this machine.

    add.py EXPLORER [TILEC]    EXPLORER: a checkout of it; TILEC: the compiler's path (default: the tilec on the PATH)

Copies a compiler class, properties and a first program, and names the language in three of its files. What is there already stays, so that
it may be run again. The program of the instance is started by its own `make`; see tools/editors/README.md.
"""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LANGUAGE = """    tile: {
        name: 'Tile',
        monaco: 'nc',
        extensions: ['.tile'],
        alias: [],
        logoFilename: null,
        logoFilenameDark: null,
        formatter: null,
        previewFilter: null,
        monacoDisassembly: null,
        digitSeparator: '_',
    },
"""
# File, the line that what is added goes behind, and what that is.
EDITS = [
    ("types/languages.interfaces.ts", r"^export type LanguageKey =\n", "    | 'tile'\n"),
    ("lib/languages.ts", r"^const definitions: Record<LanguageKey, LanguageDefinition> = \{\n", LANGUAGE),
    ("lib/compilers/_all.ts", r"^export \{TIC2000\} from '\./tic2000\.js';\n", "export {TileCompiler} from './tile.js';\n"),
]
PROGRAM = """// One program adds a block of elements.
kernel add(const f32 a[N], const f32 b[N], f32 out[N], const int BLOCK = 1024)
    grid(cdiv(N, BLOCK))
{
    int i = pid(0) * BLOCK;
    out[i +: BLOCK] = a[i +: BLOCK] + b[i +: BLOCK];
}
"""


def edit(path, place, addition):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if addition in text:
        return
    found = re.search(place, text, re.M)
    if not found:
        sys.exit(f"add.py: {path} has no line like {place!r}: add by hand\n{addition}")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text[:found.end()] + addition + text[found.end():])


def main(explorer, tilec=None):
    tilec = os.path.abspath(tilec or shutil.which("tilec") or sys.exit("add.py: no tilec on the PATH: name it"))
    for path, place, addition in EDITS:
        edit(os.path.join(explorer, path), place, addition)
    shutil.copy(os.path.join(HERE, "tile.ts"), os.path.join(explorer, "lib/compilers/tile.ts"))
    with open(os.path.join(HERE, "tile.defaults.properties"), encoding="utf-8") as f:
        properties = f.read().replace("=/usr/bin/tilec\n", f"={tilec}\n")
    with open(os.path.join(explorer, "etc/config/tile.defaults.properties"), "w", encoding="utf-8") as f:
        f.write(properties)
    os.makedirs(os.path.join(explorer, "examples/tile"), exist_ok=True)
    with open(os.path.join(explorer, "examples/tile/default.tile"), "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    print(f"Tile is in {explorer}: make EXTRA_ARGS='--language tile'")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
