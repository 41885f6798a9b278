#!/usr/bin/env python3
"""Draws layouts of a kernel: which thread holds which element of a tile, which bank of shared memory an element lies in.

    tilec k.tile --target T --emit laidout -o - | layout_picture.py OUT.svg TITLE=TEXT...

For each TITLE a panel: the last layout in the first line of the IR that contains TEXT (TEXT@2: in the second such line). Of a tile, each
warp has a colour, dark and light from thread to thread, and what thread 0 of warp 0 holds is black. Of a buffer in shared memory, each
group of four banks has a colour: a column of 8 rows in 8 colours is read at full speed. Tiles of one axis are drawn in rows of 64.
"""
import re
import sys

WARPS = ["#3b6fb6", "#d98032", "#4f9d58", "#9463b5", "#b5495b", "#7a6a58", "#c0679f", "#6f7d88"]
ROW = 64
BANK_BYTES, BANKS, GROUP = 4, 32, 4
GAP, TOP = 28, 22
NOTE = {"warp": "a warp each colour; black: thread 0", "bank": "four banks each colour"}


def bases(text):
    """{"reg": [(0, 1), ...], ...} and the extents of a layout's text."""
    parts, extents = text.split(" -> ")
    found = {name: [tuple(int(n) for n in b.split(",")) for b in re.findall(r"\(([\d,]+)\)", vectors)] for name, vectors in re.findall(r"(\w+)((?:\([\d,]+\))+)", parts)}
    return found, tuple(int(n) for n in extents.split("x"))


def image(vectors, index, axes):
    """Where element `index` of a dimension lies: the basis vectors of its bits, added without carry."""
    at = [0] * axes
    for bit, vector in enumerate(vectors):
        if index >> bit & 1:
            at = [a ^ v for a, v in zip(at, vector)]
    return at


def plus(a, b):
    return tuple(x ^ y for x, y in zip(a, b))


def holders(found, extents):
    """{element: (warp, lane)}; of several holders the first."""
    out = {}
    images = {name: [image(v, i, len(extents)) for i in range(1 << len(v))] for name, v in found.items()}
    for w, at_warp in enumerate(images.get("warp", [[0] * len(extents)])):
        for n, at_lane in enumerate(images.get("lane", [[0] * len(extents)])):
            for at_reg in images.get("reg", [[0] * len(extents)]):
                out.setdefault(plus(plus(at_warp, at_lane), at_reg), (w, n))
    return out


def shade(warp, lane):
    return "#111" if (warp, lane) == (0, 0) else WARPS[warp % len(WARPS)] + ("" if lane % 2 else "a0")


def colours(found, extents, bits):
    """({element: colour}, what colours mean)"""
    if "offset" in found:
        vectors = found["offset"]
        group = {tuple(image(vectors, o, len(extents))): o * bits // 8 // BANK_BYTES % BANKS // GROUP for o in range(1 << len(vectors))}
        return {at: WARPS[g] for at, g in group.items()}, "bank"
    return {at: shade(*holder) for at, holder in holders(found, extents).items()}, "warp"


def cells(colour, extents):
    """{colour: [(row, column, width)]}: neighbours of one colour are one box."""
    rows, columns = (extents[0] // ROW, ROW) if len(extents) == 1 else extents
    boxes = {}
    for r in range(rows):
        c = 0
        while c < columns:
            def of(column):
                return colour[(r * ROW + column,) if len(extents) == 1 else (r, column)]
            width = next((w for w in range(1, columns - c) if of(c + w) != of(c)), columns - c)
            boxes.setdefault(of(c), []).append((r, c, width))
            c += width
    return boxes, rows, columns


def panel(title, layout, bits, x, size):
    found, extents = bases(layout)
    colour, kind = colours(found, extents, bits)
    boxes, rows, columns = cells(colour, extents)
    out = [f'<text x="{x}" y="13" font-weight="bold">{title}</text>']
    for fill, runs in sorted(boxes.items()):
        path = "".join(f"M{x + c * size} {TOP + r * size}h{w * size}v{size}h-{w * size}z" for r, c, w in runs)
        out.append(f'<path d="{path}" fill="{fill}" stroke="#fff" stroke-width=".6"/>')
    height, width = rows * size, columns * size
    what = f"{extents[0]} elements, {ROW} in a row" if len(extents) == 1 else f"{rows} x {columns} elements"
    for i, words in enumerate((what, NOTE[kind])):
        out.append(f'<text x="{x}" y="{TOP + height + 14 + 13 * i}">{words}</text>')
    return out, max(width, 7 * max(len(title), len(NOTE[kind]))), height


def chosen(ir, text):
    """The layout, as text, and the bits of an element."""
    text, _, n = text.partition("@")
    line = [line for line in ir.splitlines() if text in line][int(n or 1) - 1]
    number = re.findall(r"#(\d+)", line)[-1]
    element = re.findall(r"<(?:const )?[a-z]+(\d+)", line)
    return re.search(rf'#{number} "([^"]*)"', ir)[1], int(element[-1])


def main(out, *titles):
    ir = sys.stdin.read()
    body, x, height = [], 4, 0
    for title in titles:
        title, _, text = title.partition("=")
        layout, bits = chosen(ir, text)
        drawn, width, tall = panel(title, layout, bits, x, 5 if "x" in layout.split(" -> ")[1] else 7)
        body += drawn
        x, height = x + width + GAP, max(height, tall)
    with open(out, "w", encoding="utf-8") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{x - GAP + 4}" height="{TOP + height + 34}" font-family="sans-serif" font-size="11" fill="#222">\n'
                + '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
