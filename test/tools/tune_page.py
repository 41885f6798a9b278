#!/usr/bin/env python3
"""The page of tilec tune --html: tune_page.py TILEC FOLDER [CHROMIUM]

It is well-formed, refers to nothing outside of itself, and holds what the file of results holds, whatever reasons and names contain. With CHROMIUM it is drawn: each
configuration in its place, the gain over the default, each constant's values, the reasons of those that were rejected.
"""
import html
import json
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import explain_page  # noqa: E402

SOURCE = '''/// What divides by zero is rejected by the compiler, what is too large by require.
kernel scale(const f32 x[N], f32 y[N], const int B = 64, const int U = 1)
    grid(cdiv(N, B))
    require(B <= 512)
    tune(B in {64, 256, 512, 1024}, U in {1, 2})
    key(N)
{
    y[pid(0) * B +: B] = x[pid(0) * B +: B] * U / U;
}
'''


def text_of(part):
    return html.unescape(re.sub(r"<[^>]*>", "", part)).replace("\u202f", "").replace("\u00a0", " ")


def rows_of(card):
    return [[text_of(c) for c in re.findall(r"<td[^>]*>.*?</td>", row)] for row in re.findall(r"<tr.*?</tr>", card)]


def check_section(section, r):
    """What is drawn of a result, against the file."""
    ran = sorted(((t, c) for c, t in r["times"].items() if not isinstance(t, str)), key=lambda x: x[0])  # equal ones as in the file
    cards = dict(re.findall(r"<h3>(.*?)</h3>(.*?)(?=<h3>|$)", section, re.S))
    head = next(name for name in cards if "that ran" in name)
    assert text_of(head).startswith(f"{len(ran)} configuration"), head
    rows = rows_of(cards[head])
    for (t, config), row in zip(ran, rows, strict=True):
        words = row[0].replace("chosen", " chosen").replace("default", " default").split()
        assert [w for w in words if "=" in w] == config.split(), (row, config)
        assert ("chosen" in words) == (config == r["best"]) and ("default" in words) == (config == r["default"]), row
        number, unit = row[2].split()
        assert abs(float(number) * {"ns": 1e-3, "µs": 1, "ms": 1e3, "s": 1e6}[unit] - t) <= 0.06 * max(1, t), (row, t)
    gain = r["times"][r["default"]] / r["times"][r["best"]]
    gain = f"{gain:.2f}" if gain < 10 else f"{gain:.0f}"
    said = text_of(section)
    assert "the default is the best" in said if r["best"] == r["default"] else f"{gain}× the default's speed" in said, said
    effects = [row for row in rows_of(cards["How much each constant matters"]) if len(row) == 3]
    names = {w.split("=")[0] for c in r["times"] for w in c.split()}
    values = {n: {w.split("=")[1] for _, c in ran for w in c.split() if w.startswith(n + "=")} for n in names}
    assert len(effects) == sum(len(v) for v in values.values() if len(v) > 1), (effects, values)
    reasons = {t for t in r["times"].values() if isinstance(t, str)}
    assert ("Rejected" in cards) == bool(reasons) and all(reason in text_of(cards["Rejected"]) for reason in reasons), reasons
    assert "NaN" not in said and "undefined" not in said and "[object" not in said, said


def check(tilec, folder, chromium, source, *words):
    path, page = source.replace(".tile", ".tune.json"), os.path.join(folder, "page.html")
    explain_page.run(tilec, "tune", source, *words, "--html", page)
    with open(page, "rb") as f:
        data = f.read()
    with open(path, encoding="utf-8") as f:
        results = json.load(f)
    p = explain_page.parsed(data)
    assert p.title == source and len(p.scripts) == 2 and "<" not in p.scripts[0], p.title
    assert json.loads(p.scripts[0]) == results, "the page's results are not the file's"
    explain_page.check_alone(p, data.decode("utf-8").replace(p.scripts[0], ""))
    if chromium:
        dom = re.sub(r"<script.*?</script>", "", explain_page.drawn(chromium, page, folder), flags=re.S)
        assert "<script" not in dom, "a reason became part of the page"
        sections = dom.split("<section ")[1:]
        assert len(sections) == len(results["results"]), len(sections)
        for section, r in zip(sections, results["results"]):
            check_section(section, r)
    return results["results"]


def main(tilec, folder, chromium=None):
    os.makedirs(folder, exist_ok=True)
    source = os.path.join(folder, 'a<b>&"c.tile')
    arguments = ("x=normal(1)[N]", "y=nan[N]")
    with open(source, "w", encoding="ascii") as f:
        f.write(SOURCE)
    rows = check(tilec, folder, chromium, source, "--sizes", "N=100,5000", *arguments)
    assert len(rows) == 2 and all(r["default"] == "B=64 U=1" and len(r["times"]) == 8 for r in rows), rows
    assert all(isinstance(t, str) == ("B=1024" in c) for r in rows for c, t in r["times"].items()), rows
    # a reason as a compiler of another day may give it; a run with nothing to do draws it, too
    path = source.replace(".tile", ".tune.json")
    with open(path, encoding="utf-8") as f:
        results = json.load(f)
    results["results"][0]["times"]["B=1024 U=1"] = "</script><script>alert(1)</script> <!-- & @REPORT@"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(results, f)
    check(tilec, folder, chromium, source, "--sizes", "N=100,5000", *arguments)
    for name in (source, path):  # neither is overwritten
        explain_page.run(tilec, "tune", source, "--sizes", "N=100", *arguments, "--html", name, status=2)
    print("2 pages, 0 wrong")


if __name__ == "__main__":
    main(*sys.argv[1:])
