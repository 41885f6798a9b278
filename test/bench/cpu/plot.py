"""The figures of run.py as one self-contained SVG: each row's peers beside tilec, and the roofline of the machine."""
import math
from html import escape

from rows import PEERS

ROW, LEFT, WIDTH, TOP = 18, 250, 520, 60
LOW, HIGH = 1 / 16, 16
ROOF = 340


def x_of(ratio):
    at = (math.log2(min(max(ratio, LOW), HIGH)) - math.log2(LOW)) / (math.log2(HIGH) - math.log2(LOW))
    return LEFT + at * WIDTH


def text(x, y, words, anchor="start", size=11, colour="#222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{escape(words)}</text>'


def line(x1, y1, x2, y2, colour="#ddd", width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def dot(x, y, colour, title, r=4):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{colour}"><title>{escape(title)}</title></circle>'


def beside(results):
    """One line a row: where tilec is 1, how much longer each peer takes."""
    bottom = TOP + ROW * len(results)
    out = [text(LEFT, 20, "Time of each peer over tilec's (more than 1: tilec is faster)", size=14)]
    for i, (name, colour) in enumerate(PEERS.values()):
        out += [dot(LEFT + 75 * i, 36, colour, name), text(LEFT + 75 * i + 8, 40, name)]
    for k in range(-4, 5):
        out += [line(x_of(2**k), TOP - 8, x_of(2**k), bottom, "#222" if k == 0 else "#ddd"),
                text(x_of(2**k), bottom + 14, f"{2.0**k:g}", "middle")]
    for i, r in enumerate(results):
        y = TOP + ROW * i + ROW / 2
        out.append(text(LEFT - 10, y + 4, f"{r['row']}, {r['threads']} thr.", "end"))
        out.append(line(x_of(r["least"]), y - 6, x_of(r["least"]), y + 6, "#c00", 2))
        for peer, seconds in r["peers"].items():
            name, colour = PEERS[peer]
            out.append(dot(x_of(seconds / r["seconds"]), y, colour, f"{name} {seconds / r['seconds']:.2f}"))
        if r["at_most"]:
            out.append(dot(x_of(r["ratio"]), y, "#222", f"{1e3 * r['seconds']:.1f} ms of {1e3 * r['at_most']:.0f}"))
    return out, bottom + 30


def roofline(results, tops, y0):
    """FLOP/s against FLOP per byte. The roofs are what was measured in the same run: multiply-adds in registers of each type, and
    the memory of the row with the most bytes."""
    threads = max(tops)
    peaks = tops[threads]
    results = [r for r in results if r["threads"] == threads]
    moved = [r for r in results if r["of_memory"]]
    if not moved or not peaks:
        return [], y0
    most = max(moved, key=lambda r: r["bytes"])
    band, top = most["bytes"] / most["seconds"] / most["of_memory"], max(peaks.values())
    x = lambda i: LEFT + (math.log2(min(max(i, 1 / 16), 1024)) + 4) / 14 * WIDTH  # noqa: E731
    floor = top / 2**10
    y = lambda f: y0 + 30 + (ROOF - 60) * (1 - math.log2(min(max(f, floor), top) / floor) / 10)  # noqa: E731
    said = ", ".join(f"{kind} {1e-9 * f:.0f}" for kind, f in peaks.items())
    out = [text(LEFT, y0 + 10, f"Roofline, {threads} thread(s): GFLOP/s {said}; memory {band * 1e-9:.1f} GB/s", size=13),
           line(x(1 / 16), y(band / 16), x(top / band), y(top), "#222", 2)]
    for f in peaks.values():
        out.append(line(x(f / band), y(f), x(1024), y(f), "#222", 2))
    for k in range(-4, 11, 2):
        out += [line(x(2**k), y0 + 30, x(2**k), y0 + ROOF - 30), text(x(2**k), y0 + ROOF - 14, f"{2.0**k:g}", "middle")]
    out.append(text(LEFT + WIDTH / 2, y0 + ROOF, "FLOP per byte that must move", "middle"))
    for r in results:
        if r["flops"] and r["bytes"]:
            speed = r["flops"] / r["seconds"]
            out.append(dot(x(r["flops"] / r["bytes"]), y(speed), "#2060a0", f"{r['row']}: {speed * 1e-9:.1f} GFLOP/s"))
    return out, y0 + ROOF + 20


def svg(results, tops):
    first, y = beside(results)
    second, y = roofline(results, tops, y + 20)
    width = LEFT + WIDTH + 30
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y:.0f}" viewBox="0 0 {width} {y:.0f}" '
            'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>\n' + "\n".join(first + second) + "\n</svg>\n")
