#!/usr/bin/env python3
"""The page of tilec explain --html, and its JSON: explain_page.py TILEC SOURCE FOLDER [CHROMIUM [NAME]]

With NAME, the pages of the library's kernels whose names contain it ("": all, in some 15 minutes), each for five GPUs. The page is well-formed, refers to nothing outside of itself, and holds exactly what `explain --json` prints, whatever names and
sources contain. The report's parts agree with each other. With CHROMIUM it is drawn: without an error, with the report's numbers.
"""
import html.parser
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import amd_asm  # noqa: E402

GPUS = "sm_80,sm_90a,sm_100a,gfx942,gfx1100"
VOID = {"meta", "input", "br", "link", "img", "hr"}
HOSTILE = '''// </script><script>alert(1)</script> <!-- @REPORT@ @TITLE@ ${x} `x` \\u003c & \x01 \xff
/// "</script>"
kernel odd(const f32 x[N, M], f32 y[N]) grid(N)
{
    f32 s = 0;
    for (int j : range(0, M, 64)) s += sum(load(x[pid(0), j +: 64])); // ]]> </textarea>
    assert(s == s, "</script>");
    y[pid(0)] = s;
}
'''.encode("latin-1")
LONG = "".join(f"f32 twice{i}(f32 x)\n{{\n    return x * {i} + 1;\n}}\n\n" for i in range(60)) + '''kernel many(const f32 x[N, M], f32 y[N], f32 z[N]) grid(N)
{
    tile<f32, 64> s = 0;
    for (int i : range(0, 4)) {
        for (int j : range(0, M, 64)) s += x[pid(0), j +: 64] * (f32)i;
        s = s * 2;
    }
    for (int k : range(0, M, 64)) s = max(s, x[pid(0), k +: 64]);
    int n = (int)x[0, 0];
    while (n > 0) n = n - 1;
    y[pid(0)] = sum(s);
    z[pid(0)] = max(s);
}

kernel plain(const f32 x[N], f32 y[N]) grid(N) { y[pid(0)] = twice7(x[pid(0)]); }
'''


class Page(html.parser.HTMLParser):
    """Checks nesting; collects attributes, and the text of scripts."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.attributes, self.scripts, self.title = [], [], [], ""

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> in {self.open}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        if self.open and self.open[-1] == "title":
            self.title += data


def run(*command, status=0):
    p = subprocess.run(command, capture_output=True, timeout=300)
    assert p.returncode == status, f"{command}: {p.returncode}: {p.stderr.decode(errors='replace')}"
    return p.stdout


def parsed(page):
    p = Page()
    p.feed(page.decode("utf-8"))
    p.close()
    assert not p.open, p.open
    return p


def check_page(page, as_json, title):
    p = parsed(page)
    assert p.title == title, p.title
    assert len(p.scripts) == 2, f"{len(p.scripts)} scripts"
    assert "<" not in p.scripts[0] and json.loads(p.scripts[0]) == json.loads(as_json), "the page's report is not what --json prints"
    code = page.decode("utf-8").replace(p.scripts[0], "")
    check_alone(p, code)
    check_kinds(json.loads(as_json), code)


def check_alone(p, code):
    """A page refers to nothing outside of itself."""
    for tag, name, value in p.attributes:
        assert name not in ("src", "href", "action", "background", "srcset", "data", "poster", "formaction"), (tag, name, value)
        assert not name.startswith("on"), (tag, name)
    urls = set(re.findall(r"[\"'(]\s*(?:\w+:)?//\w[^\s\"')]*", code))
    assert urls <= {'"http://www.w3.org/2000/svg'}, urls
    assert "@import" not in code and "url(" not in code and "fetch(" not in code and "innerHTML" not in code
    assert any(value.startswith("default-src 'none'") for _, name, value in p.attributes if name == "content"), "no policy"


def check_kinds(report, code):
    """The page draws rows by their kind, whatever their op: it has a colour for each kind, and no list of ops."""
    rows = [r for t in report["targets"] for k in t["kernels"] for r in k["accesses"] + k["exchanges"]]
    for kind in report["kinds"]:
        assert code.count(f"--{kind}: #") == 3, f"colours of {kind}: light, dark, and of a picture that is saved"
    known = set(re.findall(r'\bop [!=]==? "(\w+)"', code)) - {"wait", "loop", "arith"}  # of events: the page's own
    assert known <= {"convert"} and not re.search(r"\.test\(\w+\.op\)", code), f"the page knows {known}; it counts conversions only"
    for r in rows:
        assert r.get("kind", "memory") in report["kinds"], r


def together(a, b):
    return a["first"] <= b["last"] and b["first"] <= a["last"]


def check_kernel(k, where):
    """What the report says twice, it says alike."""
    for i, a in enumerate(k["buffers"]):
        assert a["offset"] + a["bytes"] <= k["shared_bytes"], (where, a)
        for b in k["buffers"][:i]:
            apart = a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]
            assert apart or not together(a, b), (where, a, b)
    for rows in ("accesses", "exchanges", "waits", "lines"):
        for r in k[rows]:
            assert r["order"] < k["length"] and -1 <= r["loop"] < len(k["loops"]), (where, r)
            if r["loop"] >= 0:
                loop = k["loops"][r["loop"]]
                assert loop["first"] < r["order"] <= loop["last"], (where, r, loop)
    for i, loop in [(-1, k)] + list(enumerate(k["loops"])):
        moved = sum(a["bytes"] * a["sectors"] // a["least"] * a["share"] // 100 for a in k["accesses"] if a["loop"] == i)
        flops = sum(2 * (x["macs"] * x["share"] // 100) for x in k["exchanges"] if x["loop"] == i)
        flops += sum(r["flops"] * r["share"] // 100 for r in k["lines"] if r["loop"] == i)
        work = k["outside"] if i < 0 else loop["each"]
        assert (work["bytes"], work["flops"]) == (moved, flops), (where, i, work, moved, flops)
    for x in k["exchanges"]:
        if x["op"] in ("put", "get", "copy"):
            assert x["buffer"] >= 0 and k["buffers"][x["buffer"]]["slots"] >= 1, (where, x)
    assert k["words"] == max([r["words"] for r in k["lines"]] + [0]), (where, k["words"])


def check_report(report):
    paths = [s["path"] for s in report["sources"]]
    assert len(paths) == len(set(paths)) and paths[0] == report["input"], paths
    for t in report["targets"]:
        assert t["rates"]["sms"] > 0, t["target"]
        for k in t["kernels"]:
            check_kernel(k, f"{k['name']} for {t['target']}, {k['variant']}")
            for rows in ("buffers", "accesses", "exchanges", "loops", "waits", "lines"):
                assert all(r["file"] in paths for r in k[rows]), rows


def check_gemm(report):
    """The figures of one product that are known from its tiles: 128 x 128 x 32 in f16, of K = 256."""
    for t in report["targets"]:
        k = t["kernels"][0]
        (loop,) = k["loops"]
        assert (loop["param"], loop["axis"], loop["step"], loop["stages"]) == ("A", 1, 32, 3), loop
        assert loop["each"] == {"bytes": 16384, "flops": 2 * 128 * 128 * 32, "macs": 128 * 128 * 32}, loop
        assert k["outside"]["bytes"] == 2 * 16384 + 128 * 128 * 2, "the prologue of two trips, and C"
        ahead = {(a["op"], a["ahead"]) for a in k["accesses"] if a["loop"] == 0}
        assert ahead == ({("copy", 2)} if t["target"] == "sm_80" else {("load", 2)}), ahead
        assert {b["param"] for b in k["buffers"] if b["slots"] > 1} == {"A", "B"}, k["buffers"]
        assert [w["pending"] for w in k["waits"]] == ([1, 0] if t["target"] == "sm_80" else []), k["waits"]
        assert k["grid"] == ["cdiv(M, BM)", "cdiv(N, BN)"] and k["params"][0]["extents"] == ["M", "K"], k["grid"]
        assert t["counted"]["shapes"] == {"A": [128, 256], "B": [256, 128], "C": [128, 128]}, t["counted"]


def check_counted(report):
    """Bytes of global memory that follow from the report are those that the emulator counts of a launch of one program, K = 256."""
    for t in report["targets"]:
        k = t["kernels"][0]
        said = sum(a["bytes"] * a["sectors"] // a["least"] * a["share"] // 100 * (1 if a["loop"] < 0 else 8 - a["ahead"]) for a in k["accesses"])
        text = t["counted"]["text"]
        counted = sum(int(n) for n in re.findall(r"^(?:global (?:loads|stores)|copies): .*?(\d+) bytes", text, re.M))
        assert said == counted == 160 * 1024, (t["target"], said, counted)


def drawn(chromium, path, folder):
    """The page's document after its script has run."""
    p = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={folder}/profile",
                        "--dump-dom", "file://" + os.path.abspath(path)], capture_output=True, timeout=120)
    said = [line for line in p.stderr.decode(errors="replace").split("\n") if "CONSOLE" in line]
    assert p.returncode == 0 and not said, said or p.stderr
    return p.stdout.decode("utf-8")


def check_drawn(dom, report):
    dom = re.sub(r"<script.*?</script>", "", dom, flags=re.S)  # the report, and what draws it: both have no "<" of sources
    assert "<script" not in dom and "</textarea" not in dom, "a source became part of the page"
    sections = dom.split("<section ")[1:]

    def heading(k):
        return k["name"], ", ".join(f"{c['name']} = {c['value']}" for c in k["consts"])

    assert len(sections) == len({heading(k) for t in report["targets"] for k in t["kernels"]}), len(sections)
    for section in sections:
        name, consts = re.search(r'<h2>([^<]*)</h2><div class="soft">([^<]*)</div>', section).groups()
        all_ = [(t, k) for t in report["targets"] for k in t["kernels"] if heading(k) == (name, consts)]
        rows = re.findall(r'<tr role="tab".*?</tr>', section)
        assert len(rows) == len(all_), (name, len(rows))
        for row, (t, k) in zip(rows, all_):
            cells = [re.sub(r"<[^>]*>", "", c).replace("\u202f", "") for c in re.findall(r"<td[^>]*>.*?</td>", row)]
            assert cells[0] == f"{t['target']}, {k['variant']}" and cells[1] == str(k["threads"]) and cells[4] == str(k["words"]), cells
            assert cells[2] == ("?" if k["registers"] < 0 else str(k["registers"])), cells
        k = all_[0][1]
        lines = {r["line"] for rows in ("accesses", "lines", "exchanges") for r in k[rows] if r["file"] == report["input"]}
        missing = {n for n in lines if f'data-l="0:{n}"' not in section}
        assert not missing, (name, missing)
        said = re.sub(r'<td class="code">.*?</td>', "", section, flags=re.S)  # sources say NaN
        assert "NaN" not in said and "undefined" not in said and "[object" not in said, name
        assert section.count("iteration 0</text>") == sum(1 for loop in k["loops"] if loop["stages"]), name


def check_library(tilec, folder, chromium, name):
    """Every kernel of the library at its defaults; without ptxas, whose registers a page then leaves open."""
    wrong = pages = 0
    os.environ.setdefault("TILE_PTXAS", "/nonexistent")
    for r in amd_asm.library(True):
        if name not in r.name:
            continue
        words = [os.path.join(amd_asm.ROOT, r.file), "--kernel", r.kernel, *(w for n, v in r.consts.items() for w in ("--const", f"{n}={v}")), "--target", GPUS]
        out = os.path.join(folder, r.name.replace("/", "_") + ".html")
        pages += 1
        try:
            as_json = run(tilec, "explain", *words, "--json")
            run(tilec, "explain", *words, "--html", out)
            with open(out, "rb") as f:
                check_page(f.read(), as_json, words[0])
            report = json.loads(as_json)
            check_report(report)
            check_drawn(drawn(chromium, out, folder), report)
        except (AssertionError, subprocess.TimeoutExpired) as e:
            wrong += 1
            print(f"{r.name}: {e}", flush=True)
    print(f"{pages} pages, {wrong} wrong")


def main(tilec, source, folder, chromium=None, name=None):
    os.makedirs(folder, exist_ok=True)
    if name is not None:
        return check_library(tilec, folder, chromium, name)
    odd, long_ = os.path.join(folder, 'a<b>&"c.tile'), os.path.join(folder, "long.tile")
    with open(odd, "wb") as f:
        f.write(HOSTILE)
    with open(long_, "w", encoding="ascii") as f:
        f.write(LONG)
    gemm = [os.path.join(source, "test/bench/gemm.tile"), "--const", "BK=32", "--stages", "3", "--target", "sm_80,gfx942",
            "A=zeros[128,256]", "B=zeros[256,128]", "C=nan[128,128]"]
    attention = [os.path.join(source, "examples/05_attention/attention.tile"), "--const", "BD=64", "--target", "sm_90a,gfx1100"]
    warpgroups = [os.path.join(source, "examples/06_persistent/persistent.tile"), "--target", "sm_90a"]
    pages = 0
    for args in (gemm, attention, warpgroups, [odd, "--target", "sm_80"], [long_, "--target", "gfx90a"]):
        out = os.path.join(folder, f"{pages}.html")
        as_json = run(tilec, "explain", *args, "--json")
        assert run(tilec, "explain", *args, "--html", out) == b"", "--html prints"
        with open(out, "rb") as f:
            page = f.read()
        check_page(page, as_json, args[0])
        report = json.loads(as_json)
        check_report(report)
        if args is gemm:
            check_gemm(report)
            check_counted(report)
        if args[0] is odd:
            assert run(tilec, "explain", *args, "--html", "-") == page, "two runs, two pages"
            assert report["sources"][0]["text"].encode("utf-8") == HOSTILE.decode("ascii", "replace").encode("utf-8")
        if chromium:
            dom = drawn(chromium, out, folder)
            check_drawn(dom, report)
            assert args is not gemm or "A program: 8.39&nbsp;million operations, 160&nbsp;KiB" in dom, "sums of the roofline"
        pages += 1
        if args is warpgroups:
            assert any(x["kind"] == "matrix" and x["op"] != "dot" for x in report["targets"][0]["kernels"][0]["exchanges"])
    run(tilec, "explain", odd, "--target", "cpu", "--html", os.path.join(folder, "none.html"), status=2)
    assert not os.path.exists(os.path.join(folder, "none.html"))
    print(f"{pages} pages, 0 wrong")


if __name__ == "__main__":
    main(*sys.argv[1:])
