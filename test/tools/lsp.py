#!/usr/bin/env python3
"""A client of `tilec lsp`: what an editor asks, and what a broken one sends.

    lsp.py TILEC FOLDER [-k SUBSTRING]

Each function `test_...` talks to a server of its own. Prints "N tests, M faults".
"""
import json
import os
import random
import re
import subprocess
import sys
import threading
import urllib.parse

TEXT = """import std.random;
import "geo.tile";

/// Twice x.
auto twice(auto x) { return x + x; }
struct pair { f32 a; f32 b; };

/// y = 2 x.
kernel scale(const f32 x[M, N], f32 y[M, N], f32 s, const int B = 64, const int C)
    grid(cdiv(N, B))
    require(C > 0)
{
    int i = pid(0) * B;
    auto v = x[0 +: 4, i +: B];
    auto w = sum(v, axis = 1);
    auto (p, q) = both(v);
    /* \u00fc\U0001F600 */ auto z = twice(v) * geo.half(2.0) + col(w);
    y[0 +: 4, i +: B] = z + random.uniform(1, iota(B)) + p;
    struct pair r = {1.0, 2.0};
    y[0, 0] = r.b + exp(s);
    i += 1;
}
auto both(auto x) { return (x, x); }
"""
GEO = """/// Half of x.
auto half(auto x) { return x / 2; }
const int SIDES = 6;
"""


class Server:
    def __init__(self, tilec, *options, start=True):
        env = dict(os.environ, TMPDIR=FOLDER)
        self.process = subprocess.Popen([tilec, "lsp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.timer = threading.Timer(120, self.process.kill)
        self.timer.start()
        self.next, self.seen = 1, []
        if start:
            self.initialized = self.ask("initialize", processId=None, rootUri=None, capabilities={})
            self.tell("initialized")

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def post(self, message, separator="\r\n"):
        body = message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False).encode()
        self.raw(f"Content-Length: {len(body)}{separator}{separator}".encode() + body)

    def read(self):
        length = None
        while line := self.process.stdout.readline():
            if line.strip() == b"":
                if length is not None:
                    return json.loads(self.process.stdout.read(length))
            elif line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        raise EOFError("the server is gone")

    def tell(self, method, **params):
        self.post({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, method, **params):
        self.next += 1
        self.post({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        return self.next

    def answer(self, number):
        while True:
            for m in self.seen:
                if m.get("id") == number and "method" not in m:
                    self.seen.remove(m)
                    return m
            self.seen.append(self.read())

    def ask(self, method, **params):
        m = self.answer(self.send(method, **params))
        if "error" in m:
            raise ValueError(m["error"])
        return m["result"]

    def note(self, method, keep=lambda p: True):
        """The parameters of the next notification of this name."""
        while True:
            for m in self.seen:
                if m.get("method") == method and keep(m["params"]):
                    self.seen.remove(m)
                    return m["params"]
            self.seen.append(self.read())

    def open(self, text, name="a.tile", version=1):
        uri = uri_of(name)
        self.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": "tile", "version": version, "text": text})
        return uri

    def diagnostics(self, uri):
        return self.note("textDocument/publishDiagnostics", lambda p: p["uri"] == uri)["diagnostics"]

    def at(self, method, uri, text, needle, inside=0, **more):
        """A request at a place: behind `inside` characters of the text's first `needle`."""
        before = text[:text.index(needle) + inside]
        line = before[before.rfind("\n") + 1:]
        position = {"line": before.count("\n"), "character": len(line.encode("utf-16-le")) // 2}
        return self.ask("textDocument/" + method, textDocument={"uri": uri}, position=position, **more)

    def close(self):
        try:
            self.ask("shutdown")
            self.tell("exit")
            status = self.process.wait(timeout=60)
            assert status == 0, f"exit status {status}"
        finally:
            self.timer.cancel()
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()


def hover(s, uri, text, needle, inside=0):
    h = s.at("hover", uri, text, needle, inside)
    return h["contents"]["value"] if h else None


# ---- life ----

def test_initialize(s):
    c = s.initialized["capabilities"]
    assert c["textDocumentSync"]["change"] == 2 and c["hoverProvider"] and c["positionEncoding"] == "utf-16"
    assert s.initialized["serverInfo"]["name"] == "tilec"


def test_order():
    s = Server(TILEC, "--stdio", start=False)
    assert s.answer(s.send("textDocument/hover"))["error"]["code"] == -32002
    s.ask("initialize", capabilities={})
    assert s.answer(s.send("initialize"))["error"]["code"] == -32600
    s.ask("shutdown")
    assert s.answer(s.send("textDocument/hover"))["error"]["code"] == -32600
    s.shutdown = True
    s.tell("exit")
    assert s.process.wait(timeout=60) == 0
    s.timer.cancel()


def test_exit_without_shutdown():
    s = Server(TILEC)
    s.tell("exit")
    assert s.process.wait(timeout=60) == 1
    s.timer.cancel()


def test_end_of_input():
    s = Server(TILEC)
    s.open(TEXT)
    s.process.stdin.close()
    assert s.process.wait(timeout=60) == 1
    s.timer.cancel()


# ---- what is wrong ----

def test_diagnostics(s):
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    assert s.diagnostics(uri) == [], "the program is right"
    bad = TEXT.replace("auto w = sum(v, axis = 1);", "auto w = summ(v) + 1.0f;")
    s.tell("textDocument/didChange", textDocument={"uri": uri, "version": 2}, contentChanges=[{"text": bad}])
    found = s.diagnostics(uri)
    codes = {d["code"]: d for d in found}
    assert "E0008" in codes and "E0201" in codes, found
    d = codes["E0201"]
    line = bad[:bad.index("summ(")].count("\n")
    assert d["severity"] == 1 and d["source"] == "tilec" and d["range"]["start"] == {"line": line, "character": 13}, d
    assert d["range"]["end"]["character"] == 17 and "did you mean" in d["message"]
    actions = s.ask("textDocument/codeAction", textDocument={"uri": uri}, range=d["range"], context={"diagnostics": [d]})
    edits = [e for a in actions for e in a["edit"]["changes"][uri]]
    assert {"sum", "1.0"} <= {e["newText"] for e in edits}, edits
    s.tell("textDocument/didClose", textDocument={"uri": uri})
    assert s.diagnostics(uri) == []


def test_related(s):
    text = "const int A = 1;\nconst int A = 2;\n"
    (d,) = s.diagnostics(s.open(text))
    (r,) = d["relatedInformation"]
    assert r["location"]["range"]["start"]["line"] == 0 and "defined here before" in r["message"]


def test_warning(s):
    (d,) = s.diagnostics(s.open("kernel k(f32 x[N]) grid(1)\n{\n    int n = 3;\n    x[0] = 1;\n}\n"))
    assert d["severity"] == 2 and d["code"] == "unused" and d["tags"] == [1], d


def test_error_in_import(s):
    write("wrong.tile", "auto f(auto x) { return y; }\n")
    (d,) = s.diagnostics(s.open('import "wrong.tile";\nkernel k(f32 x[N]) grid(1) { x[0] = wrong.f(x[0]); }\n'))
    assert d["range"]["start"]["line"] == 0 and d["relatedInformation"][0]["location"]["uri"].endswith("/wrong.tile"), d


def test_import_of_open_document(s):
    geo = s.open(GEO.replace("SIDES", "EDGES"), "geo.tile")
    uri = s.open('import "geo.tile";\nkernel k(i32 x[N]) grid(1) { x[0] = geo.EDGES; }\n')
    assert s.diagnostics(uri) == []
    s.tell("textDocument/didChange", textDocument={"uri": geo, "version": 2}, contentChanges=[{"text": GEO}])
    assert [d["code"] for d in s.diagnostics(uri)] == ["E0203"]


def test_positions_in_utf16(s):
    text = "/* \u00fc\U0001F600 */ const int A = nowhere;\r\nconst int B = elsewhere;\r\n"
    a, b = s.diagnostics(s.open(text))
    assert a["range"] == {"start": {"line": 0, "character": 24}, "end": {"line": 0, "character": 31}}, a
    assert b["range"]["start"] == {"line": 1, "character": 14}, b


def test_other_bytes(s):
    """A file on disk may hold anything; what is sent is JSON."""
    with open(os.path.join(FOLDER, "latin.tile"), "wb") as f:
        f.write("/// Gr\u00f6\u00dfe.\nauto size(auto x) { return x; }\n".encode("latin-1"))
    text = 'import "latin.tile";\nkernel k(f32 x[N]) grid(1) { x[0] = latin.size(x[0]); }\n'
    assert "Gr\ufffd\ufffde." in hover(s, s.open(text), text, "latin.size", 7)


# ---- names ----

def test_hover(s):
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    assert "tile<f32, 4, 64>" in hover(s, uri, TEXT, "v = x[")
    assert "tile<f32, 4>" in hover(s, uri, TEXT, "w = sum")
    assert "x[M, N]" in hover(s, uri, TEXT, "x[0 +:") and "-> tile<f32, 4, 64>" in hover(s, uri, TEXT, "x[0 +:")
    doc = hover(s, uri, TEXT, "twice(v)", 3)
    assert "auto twice(auto x)" in doc and "Twice x." in doc and "-> tile<f32, 4, 64>" in doc, doc
    assert "Half of x." in hover(s, uri, TEXT, "half(2.0)")
    total = hover(s, uri, TEXT, "sum(v")
    assert "sum(x, [axis =], [keep =], [where =])" in total and "The sum along an axis" in total, total
    assert "kernel scale(" in hover(s, uri, TEXT, "scale(") and "y = 2 x." in hover(s, uri, TEXT, "scale(")
    assert "B: i32 = 64" in hover(s, uri, TEXT, "* B;", 2)
    assert "tile<f32, 4, 64>" in hover(s, uri, TEXT, "* geo.half") and "tile<f32, 4, 64>" in hover(s, uri, TEXT, "+ col(w)")
    assert hover(s, uri, TEXT, "{\n    int") is None
    # behind characters of two and four bytes
    assert "z: tile<f32, 4, 64>" in hover(s, uri, TEXT, "z = twice")


def test_definition(s):
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    assert s.at("definition", uri, TEXT, "v, axis")["range"]["start"] == {"line": 13, "character": 9}
    assert s.at("definition", uri, TEXT, "twice(v)")["range"]["start"]["line"] == 4
    assert s.at("definition", uri, TEXT, "pair r")["range"]["start"]["line"] == 5
    there = s.at("definition", uri, TEXT, "half(2.0)")
    assert there["uri"].endswith("/geo.tile") and there["range"]["start"] == {"line": 1, "character": 5}
    std = s.at("definition", uri, TEXT, "uniform(1")
    path = urllib.parse.unquote(std["uri"].removeprefix("file://"))
    with open(path) as f:
        assert "auto uniform(" in f.read().split("\n")[std["range"]["start"]["line"]]
    assert s.at("definition", uri, TEXT, "random;")["uri"] == std["uri"]
    assert s.at("definition", uri, TEXT, "geo.half")["uri"] == there["uri"]
    assert s.at("definition", uri, TEXT, "exp(s)") is None
    s.library = os.path.dirname(path)


def test_references(s):
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    lines = sorted(r["range"]["start"]["line"] for r in s.at("references", uri, TEXT, "v = x[", context={}))
    assert lines == [13, 14, 15, 16], lines
    lines = sorted(r["range"]["start"]["line"] for r in s.at("references", uri, TEXT, "N], f32 y", context={}))
    assert lines == [8, 8, 9], lines  # both views and the grid
    places = {(r["range"]["start"]["line"], r["range"]["start"]["character"]) for r in s.at("references", uri, TEXT, "i += 1", context={})}
    assert places == {(n, m.start()) for n, line in enumerate(TEXT.split("\n")) for m in re.finditer(r"\bi\b", line)}, places
    assert s.at("definition", uri, TEXT, "b + exp")["range"]["start"] == {"line": 5, "character": 25}
    lines = sorted(r["range"]["start"]["line"] for r in s.at("documentHighlight", uri, TEXT, "both(v)"))
    assert lines == [15, 22], lines


def test_symbols(s):
    uri = s.open(TEXT)
    symbols = s.ask("textDocument/documentSymbol", textDocument={"uri": uri})
    assert [x["name"] for x in symbols] == ["random", "geo", "twice", "pair", "scale", "both"], symbols
    kernel = symbols[4]
    assert kernel["detail"] == "kernel" and kernel["range"]["end"] == {"line": 21, "character": 1}, kernel
    assert kernel["children"] == [], kernel


NESTED = """kernel k(const f32 x[16], f32 y[16], f32 s)
    grid(1)
{
    auto scaled(auto t) { auto twice = t + t; return twice * s; }
    y[0 +: 16] = scaled(x[0 +: 16]);
    y[0] = reduce(x[0 +: 16], 0, fn (a, b) => a + b);
}
"""


def test_nested_functions(s):
    uri = s.open(NESTED)
    assert s.diagnostics(uri) == []
    kernel, = s.ask("textDocument/documentSymbol", textDocument={"uri": uri})
    assert [x["name"] for x in kernel["children"]] == ["scaled"], kernel
    assert "auto scaled(auto t)" in hover(s, uri, NESTED, "scaled(x")
    assert "t: tile<f32, 16>" in hover(s, uri, NESTED, "t + t")
    assert "s: f32" in hover(s, uri, NESTED, "s; }")
    assert "a: f32" in hover(s, uri, NESTED, "a + b")
    assert s.at("definition", uri, NESTED, "scaled(x")["range"]["start"] == {"line": 3, "character": 9}
    lines = sorted(r["range"]["start"]["line"] for r in s.at("references", uri, NESTED, "s)", context={}))
    assert lines == [0, 3], lines
    labels = {h["label"] for h in s.ask("textDocument/inlayHint", textDocument={"uri": uri}, range={"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}})}
    assert any(x.startswith(": tile<f32, 16>") for x in labels), labels


def test_inlays(s):
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    hints = s.ask("textDocument/inlayHint", textDocument={"uri": uri}, range=whole)
    by_line = {(h["position"]["line"], h["position"]["character"]): h["label"] for h in hints}
    assert by_line[(13, 10)] == ": tile<f32, 4, 64>" and by_line[(14, 10)] == ": tile<f32, 4>", by_line
    assert by_line[(15, 11)] == by_line[(15, 14)] == ": tile<f32, 4, 64>", by_line
    assert by_line[(4, 17)] == ": tile<f32, 4, 64>", by_line
    some = s.ask("textDocument/inlayHint", textDocument={"uri": uri},
                 range={"start": {"line": 14, "character": 0}, "end": {"line": 14, "character": 1}})
    assert len(some) == 1, some


COST = """kernel gemm(const f16 A[M, K], const f16 B[K, N], f32 C[M, N], const int BK)
    grid(M / 64, N / 64)
{
    tile<f32, 64, 64> acc = 0;
    for (int k : range(0, K, BK))
        acc = dot(A[pid(0) * 64 +: 64, k +: BK], B[k +: BK, pid(1) * 64 +: 64], acc);
    C[pid(0) * 64 +: 64, pid(1) * 64 +: 64] = acc;
}
"""


def test_costs():
    """With a target, what lines become there; with constants missing, nothing; and the text as it is now."""
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    for constants, expected in ((["--const", "BK=32"], True), ([], False)):
        s = Server(TILEC, "--target", "sm_80", *constants)
        uri = s.open(COST)
        hints = {h["position"]["line"]: h for h in s.ask("textDocument/inlayHint", textDocument={"uri": uri}, range=whole)}
        assert set(hints) == ({4, 5, 6} if expected else set()), hints
        if expected:
            label = hints[5]["label"]
            assert "copy A 16 B, copy B 16 B" in label and "mma.m16n8k16.f16 in each warp" in label and " words" in label, label
            assert hints[5]["position"]["character"] == len(COST.split("\n")[5]) and "store C" in hints[6]["label"], hints
            changed = COST.replace("f16", "f32").replace("dot(", "/* */ dot(")
            s.tell("textDocument/didChange", textDocument={"uri": uri, "version": 2}, contentChanges=[{"text": changed}])
            hints = s.ask("textDocument/inlayHint", textDocument={"uri": uri}, range={"start": {"line": 5, "character": 0}, "end": {"line": 5, "character": 1}})
            assert len(hints) == 1 and "mma" not in hints[0]["label"], hints
            assert hints[0]["position"]["character"] == len(changed.split("\n")[5]), hints
        s.close()


def labels(s, uri, text, needle, inside=0):
    return {i["label"]: i for i in s.at("completion", uri, text, needle, inside)}


def test_completion(s):
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    found = labels(s, uri, TEXT, "z + random", 0)
    assert {"v", "w", "x", "twice", "random", "geo", "sum", "for", "pipeline", "require", "f32", "fast", "B"} <= set(found)
    assert found["v"]["detail"] == "tile<f32, 4, 64>" and "Twice x." in found["twice"]["documentation"]["value"]
    assert set(labels(s, uri, TEXT, "geo.half", 4)) == {"half", "SIDES"}
    assert {"uniform", "normal", "bits4"} <= set(labels(s, uri, TEXT, "random.uniform", 9))
    assert set(labels(s, uri, TEXT, "r.b", 2)) == {"a", "b"}
    broken = TEXT.replace("    y[0, 0] = r.b + exp(s);", "    auto later = v;\n    y[0, 0] = geo.")
    s.tell("textDocument/didChange", textDocument={"uri": uri, "version": 2}, contentChanges=[{"text": broken}])
    assert set(labels(s, uri, broken, "= geo.", 6)) == {"half", "SIDES"}
    broken = broken.replace("= geo.", "= la")
    s.tell("textDocument/didChange", textDocument={"uri": uri, "version": 3}, contentChanges=[{"text": broken}])
    assert {"later", "v"} <= set(labels(s, uri, broken, "= la", 4))
    assert labels(s, uri, "fast.", "fast.", 5) is not None


def test_formatting(s):
    uri = s.open("const int A=1;\n")
    (edit,) = s.ask("textDocument/formatting", textDocument={"uri": uri}, options={"tabSize": 4, "insertSpaces": True})
    assert edit["newText"] == "const int A = 1;\n" and edit["range"]["end"] == {"line": 1, "character": 0}
    uri = s.open("const int A = 1;\n", "b.tile")
    assert s.ask("textDocument/formatting", textDocument={"uri": uri}, options={}) == []
    uri = s.open("const int A = ;\n", "c.tile")
    assert s.ask("textDocument/formatting", textDocument={"uri": uri}, options={}) is None


def test_parts_of_changes(s):
    uri = s.open("const int A = 1;\n")
    assert s.diagnostics(uri) == []
    where = {"start": {"line": 0, "character": 14}, "end": {"line": 0, "character": 15}}
    s.tell("textDocument/didChange", textDocument={"uri": uri, "version": 2}, contentChanges=[{"range": where, "text": "B"}])
    assert [d["code"] for d in s.diagnostics(uri)] == ["E0201"]


def apply(text, changes):
    """The text after changes, as a client has it: positions are lines and UTF-16 units."""
    def offset(p):
        lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
        line = lines[p["line"]].encode("utf-16-le")[:2 * p["character"]].decode("utf-16-le")
        return len("".join(lines[:p["line"]])) + len(line)

    for c in sorted(changes, key=lambda c: (c["range"]["start"]["line"], c["range"]["start"]["character"]), reverse=True):
        text = text[:offset(c["range"]["start"])] + c.get("newText", c.get("text")) + text[offset(c["range"]["end"]):]
    return text


def test_changes_at_random(s):
    """Edits in UTF-16 units leave the text that a client has: every answer is that to the whole text."""
    random.seed(3)
    pieces = ["x", "const int Q = 1;\n", "\u00fc", "\U0001F600", "\r\n", "\r", "\n", "", "{", "/* ", " */", "nowhere"]
    text = TEXT
    parts, whole = s.open(text, "parts.tile"), s.open(text, "whole.tile")
    for version in range(2, 62):
        changes = []
        for _ in range(random.randint(1, 3)):
            a = random.randint(0, len(text))
            b = min(len(text), a + random.choice([0, 0, 1, 2, 40]))
            # not between the two characters that end a line
            a, b = (n - (text[n - 1:n + 1] == "\r\n") for n in (a, b))
            where = {"start": place_of(text, a), "end": place_of(text, b)}
            piece = random.choice(pieces)
            changes.append({"range": where, "text": piece})
            text = text[:a] + piece + text[b:]
        s.tell("textDocument/didChange", textDocument={"uri": parts, "version": version}, contentChanges=changes)
        s.tell("textDocument/didChange", textDocument={"uri": whole, "version": version}, contentChanges=[{"text": text}])
        for method in ("foldingRange", "documentSymbol", "semanticTokens/full"):
            a, b = (s.ask("textDocument/" + method, textDocument={"uri": u}) for u in (parts, whole))
            assert a == b, (version, method, changes)
        a, b = (s.note("textDocument/publishDiagnostics", lambda p, u=u: (p["uri"], p["version"]) == (u, version)) for u in (parts, whole))
        a, b = ([(d["code"], d["range"]) for d in p["diagnostics"]] for p in (a, b))
        assert a == b, (version, changes)


def place_of(text, offset):
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text[:offset])
    return {"line": len(lines) - 1, "character": len(lines[-1].encode("utf-16-le")) // 2}


def signature(s, uri, text, needle, inside=0):
    h = s.at("signatureHelp", uri, text, needle, inside)
    if h is None:
        return None, None
    one, n = h["signatures"][0], h["activeParameter"]
    a, b = one["parameters"][n]["label"] if one["parameters"] else (0, 0)
    return one["label"], one["label"][a:b]


def test_signature(s):
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    assert signature(s, uri, TEXT, "axis = 1", 8) == ("sum(x, [axis =], [keep =], [where =])", "[axis =]")
    assert signature(s, uri, TEXT, "sum(v", 4)[1] == "x"
    assert signature(s, uri, TEXT, "twice(v)", 6) == ("auto twice(auto x)", "auto x")
    assert signature(s, uri, TEXT, "half(2.0)", 6) == ("auto half(auto x)", "auto x")
    assert "seed" in signature(s, uri, TEXT, "iota(B)")[0] or signature(s, uri, TEXT, "iota(B)")[0].startswith("auto uniform")
    assert signature(s, uri, TEXT, "{\n    int") == (None, None)
    # while it is being typed; brackets within strings and comments do not count
    typed = TEXT[:TEXT.index("    i += 1;")] + '    y[0, 0] = clamp(s /* ( */, cast(s, f32), '
    s.tell("textDocument/didChange", textDocument={"uri": uri, "version": 2}, contentChanges=[{"text": typed}])
    assert signature(s, uri, typed, "cast(s, f32), ", 14) == ("clamp(x, lo, hi)", "hi")
    assert signature(s, uri, typed, "f32), ", 2)[0].startswith("cast(") and signature(s, uri, typed, "f32), ", 2)[1] == "type"


def test_folding(s):
    text = '// one\n// two\nimport std.random;\nimport "geo.tile";\n' + COST + "/* a\n   b */\n"
    folds = {(f["startLine"], f["endLine"], f.get("kind")) for f in s.ask("textDocument/foldingRange", textDocument={"uri": s.open(text)})}
    assert folds == {(0, 1, "comment"), (2, 3, "imports"), (6, 10, None), (12, 13, "comment")}, folds


def test_workspace_symbols(s):
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    found = {x["name"]: x for x in s.ask("workspace/symbol", query="S")}
    assert {"scale", "SIDES"} <= set(found) and "twice" not in found, set(found)
    assert found["scale"]["location"]["uri"] == uri and found["SIDES"]["location"]["uri"].endswith("/geo.tile")
    names = [x["name"] for x in s.ask("workspace/symbol", query="") if x["location"]["uri"] == uri]
    assert names == ["twice", "pair", "scale", "both"], names
    path = next(x["location"]["uri"] for x in s.ask("workspace/symbol", query="uniform"))
    s.library = os.path.dirname(urllib.parse.unquote(path.removeprefix("file://")))


# ---- rename ----

def renamed(s, uri, text, needle, new, inside=0):
    return {u: e for u, e in s.at("rename", uri, text, needle, inside, newName=new)["changes"].items()}


def refused(s, uri, text, needle, new, inside=0):
    try:
        edits = s.at("rename", uri, text, needle, inside, newName=new)
    except ValueError as e:
        assert e.args[0]["code"] == -32803, e
        return e.args[0]["message"]
    raise AssertionError(f"{needle} -> {new} was not refused: {edits}")


def ptx(text):
    """The code of the kernel: names of sources and lines aside."""
    write("code.tile", text)
    r = subprocess.run([TILEC, os.path.join(FOLDER, "code.tile"), "--target", "sm_80", "--emit", "ptx", "--const", "C=3", "-o", "-"],
                       capture_output=True, text=True, check=False, env=dict(os.environ, TILE_CACHE_DIR=FOLDER))
    assert r.returncode == 0, r.stderr
    return "\n".join(line for line in r.stdout.split("\n") if not line.strip().startswith(("//", ".file", ".loc")))


def test_rename_keeps_the_code(s):
    """Each name of the program, one after the other: the renamed program compiles to the same code."""
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    before, text, rounds = ptx(TEXT), TEXT, 0
    for needle, inside in (("twice(v)", 0), ("both(v)", 0), ("v = x[", 0), ("w = sum", 0), ("i += 1", 0), ("p, q", 0), ("z = twice", 0),
                           ("r = {", 0), ("s, const", 0), ("B = 64", 0), ("pair r", 0), ("b; }", 0), ("x + x", 0), ("N], f32 y", 0)):
        old = re.match(r"\w+", TEXT[TEXT.index(needle) + inside:])[0]
        edits = renamed(s, uri, TEXT, needle, "fresh_" + old, inside)
        assert list(edits) == [uri] and len(edits[uri]) >= 2 - (old in ("r",)), (needle, edits)
        text, rounds = apply(TEXT, edits[uri]), rounds + 1
        assert re.search(r"\bfresh_" + old, text)
        if needle not in ("s, const", "B = 64", "N], f32 y"):  # names of the kernel's interface are in the code
            assert ptx(text) == before, needle
        s.tell("textDocument/didChange", textDocument={"uri": uri, "version": rounds}, contentChanges=[{"text": text}])
        assert [d["code"] for d in s.ask("textDocument/codeAction", textDocument={"uri": uri}, range=None, context={})] == []
        back = s.at("rename", uri, text, "fresh_" + old, 0, newName=old)["changes"][uri]
        assert apply(text, back) == TEXT, needle
        s.tell("textDocument/didChange", textDocument={"uri": uri, "version": rounds}, contentChanges=[{"text": TEXT}])


def test_rename_across_files(s):
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    edits = renamed(s, uri, TEXT, "half(2.0)", "halved")
    assert {u.rsplit("/")[-1] for u in edits} == {"a.tile", "geo.tile"} and all(len(e) == 1 for e in edits.values()), edits
    there = s.open(GEO, "geo.tile")
    assert renamed(s, there, GEO, "half(", "halved") == edits


def test_rename_refused(s):
    write("geo.tile", GEO)
    text = TEXT + "auto part(auto n, auto cut) { return n / cut; }\nauto use(auto k) { return part(k, cut = 2); }\n"
    uri = s.open(text)
    assert "built-in" in refused(s, uri, text, "sum(v", "total")
    assert "library" in refused(s, uri, text, "uniform(1", "uni")
    assert "file" in refused(s, uri, text, "geo.half", "shapes")
    for new, why in (("for", "word"), ("f32", "word"), ("sum", "built-in"), ("1x", "none"), ("", "none"), ("a b", "none"),
                     ("w", "a.tile:15: 'w' is used here"), ("twice", "is used here")):
        assert why in refused(s, uri, text, "v = x[", new), new
    assert "is used here" in refused(s, uri, text, "twice(v)", "both")
    assert "a.tile:25: it is not known whether 'cut'" in refused(s, uri, text, "cut) {", "width")  # cut = 2
    assert len(renamed(s, uri, text, "n / cut", "width")[uri]) == 2
    assert refused(s, uri, text, "{\n    int", "x1")
    assert s.at("prepareRename", uri, text, "twice(v)")["placeholder"] == "twice"
    assert s.answer(s.send("textDocument/rename", textDocument={"uri": uri}, position={"line": 4, "character": 6}))["error"]["code"] == -32803


def test_semantic_tokens(s):
    write("geo.tile", GEO)
    uri = s.open(TEXT)
    legend = s.initialized["capabilities"]["semanticTokensProvider"]["legend"]

    def tokens(method, **more):
        data = s.ask("textDocument/semanticTokens/" + method, textDocument={"uri": uri}, **more)["data"]
        line = column = 0
        lines = [t.encode("utf-16-le") for t in TEXT.split("\n")]
        for dl, dc, n, kind, mods in zip(*[iter(data)] * 5):
            line, column = line + dl, dc if dl else column + dc
            word = lines[line][2 * column:2 * (column + n)].decode("utf-16-le")
            yield line, word, legend["tokenTypes"][kind], {m for i, m in enumerate(legend["tokenModifiers"]) if mods >> i & 1}

    found = list(tokens("full"))
    assert all(re.fullmatch(r"\w+", word) for _, word, _, _ in found), found
    kinds = {(word, kind) for _, word, kind, _ in found}
    assert {("twice", "function"), ("v", "variable"), ("x", "parameter"), ("geo", "namespace"), ("pair", "struct"), ("b", "property"),
            ("sum", "function"), ("z", "variable"), ("half", "function")} <= kinds, kinds
    mods = {(word, kind): m for _, word, kind, m in found}
    assert "defaultLibrary" in mods["sum", "function"] and "readonly" in mods["B", "parameter"], mods
    part = list(tokens("range", range={"start": {"line": 13, "character": 0}, "end": {"line": 14, "character": 0}}))
    assert part == [t for t in found if 13 <= t[0] <= 14], part


# ---- what a client should not send ----

def test_unknown_methods(s):
    assert s.answer(s.send("textDocument/fly"))["error"]["code"] == -32601
    s.tell("$/whatever")
    s.tell("textDocument/fly")
    assert s.answer(s.send("textDocument/hover", textDocument={"uri": "file:///none"}))["error"]["code"] == -32602
    assert s.answer(s.send("textDocument/hover"))["error"]["code"] == -32602


def test_malformed(s):
    s.post(b"{ no json")
    assert s.answer(None)["error"]["code"] == -32700
    s.post(b"[1, 2]")
    assert s.answer(None)["error"]["code"] == -32600
    s.post(b"{}")
    assert s.answer(None)["error"]["code"] == -32600
    s.post(b"")
    assert s.answer(None)["error"]["code"] == -32700
    s.post(b"[" * 100000)
    assert s.answer(None)["error"]["code"] == -32700
    s.post(b'"\xff\xfe"')
    assert s.answer(None)["error"]["code"] == -32700
    s.raw(b"Nonsense: 3\r\n\r\nContent-Length: x\r\n\r\n")
    s.raw(b"Content-Length: -5\r\n\r\n")
    s.post({"jsonrpc": "2.0", "id": "text", "method": "textDocument/fly"}, separator="\n")
    assert s.answer("text")["error"]["code"] == -32601
    for params in (None, 3, [], {"textDocument": 3}, {"textDocument": {"uri": 3}}, {"textDocument": {"uri": "x"}, "contentChanges": 3}):
        for method in ("didOpen", "didChange", "didClose", "didSave"):
            s.post({"jsonrpc": "2.0", "method": "textDocument/" + method, "params": params})
        assert "error" in s.answer(s.send("textDocument/hover", **(params if isinstance(params, dict) else {})))


def test_odd_positions(s):
    uri = s.open(TEXT)
    for line in (-1, 0, 5, 10 ** 9, 1e300, "x", None):
        for character in (-1, 0, 10 ** 9, 0.5, None):
            for method in ("hover", "definition", "completion", "references", "signatureHelp"):
                s.ask("textDocument/" + method, textDocument={"uri": uri}, position={"line": line, "character": character})
    for r in (None, {}, {"start": 3}, {"start": {"line": 5, "character": 0}, "end": {"line": -1, "character": 0}}):
        s.ask("textDocument/inlayHint", textDocument={"uri": uri}, range=r)
        s.ask("textDocument/codeAction", textDocument={"uri": uri}, range=r, context={})
        s.ask("textDocument/semanticTokens/range", textDocument={"uri": uri}, range=r)


def test_odd_parameters(s):
    """Any request with any parameters at any place of any text has an answer."""
    random.seed(5)
    uri = s.open(TEXT)
    methods = ("hover", "rename", "prepareRename", "signatureHelp", "foldingRange", "semanticTokens/full", "semanticTokens/range",
               "completion", "references", "documentSymbol", "codeAction", "inlayHint", "formatting")
    odd = [None, 3, -1, 1e300, "", "x", [], {}, {"line": 8}, {"start": {"line": 1e9}}, {"line": 14, "character": 9}, True]
    for n in range(400):
        params = {k: random.choice(odd) for k in random.sample(["position", "range", "newName", "context", "options", "query"], 3)}
        for method in ("textDocument/" + random.choice(methods), "workspace/symbol"):
            s.answer(s.send(method, textDocument={"uri": uri}, **params))  # read at once: both pipes could fill
        if n % 20 == 0:
            cut = random.randint(0, len(TEXT))
            where = random.choice(odd)
            s.tell("textDocument/didChange", textDocument={"uri": uri, "version": n},
                   contentChanges=[{"text": TEXT[:cut]}, {"range": {"start": where, "end": random.choice(odd)}, "text": random.choice(["(", "\n", ".", "x"])}])


def test_cancel(s):
    uri = s.open(TEXT)
    position = {"line": 1, "character": 1}
    messages = [{"jsonrpc": "2.0", "id": 1000 + i, "method": "textDocument/hover",
                 "params": {"textDocument": {"uri": uri}, "position": position}} for i in range(20)]
    messages.append({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1019}})
    messages.append({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 77777}})
    bodies = [json.dumps(m).encode() for m in messages]
    s.raw(b"".join(b"Content-Length: %d\r\n\r\n" % len(b) + b for b in bodies))
    answers = [s.answer(1000 + i) for i in range(20)]
    assert all("result" in a or a["error"]["code"] == -32800 for a in answers)


def test_broken_texts(s):
    """Every beginning of a program, and programs with a piece missing, are only texts with errors."""
    uri = s.open("")
    for n, cut in enumerate(range(0, len(TEXT), 23)):
        for text in (TEXT[:cut], TEXT[:cut] + TEXT[cut + 40:], TEXT[:cut] + "\x00{([\"/*" + TEXT[cut:]):
            s.tell("textDocument/didChange", textDocument={"uri": uri, "version": n}, contentChanges=[{"text": text}])
            line = text[:cut].count("\n")
            for method in ("hover", "completion", "definition"):
                s.ask("textDocument/" + method, textDocument={"uri": uri}, position={"line": line, "character": 3})
            s.at("signatureHelp", uri, text + "~", (text + "~")[cut:])
            s.answer(s.send("textDocument/rename", textDocument={"uri": uri}, position={"line": line, "character": 5}, newName="other"))
            for method in ("documentSymbol", "foldingRange", "semanticTokens/full"):
                s.ask("textDocument/" + method, textDocument={"uri": uri})
            s.ask("workspace/symbol", query="")


def test_big_file(s):
    body = "".join(f"/// Number {i}.\nauto g{i}(auto x) {{ return x + {i}; }}\n" for i in range(5000))
    uri = s.open(body + "kernel k(f32 x[N]) grid(1) { x[0] = g4999(x[0]); }\n")
    assert s.diagnostics(uri) == []
    assert len(s.ask("textDocument/documentSymbol", textDocument={"uri": uri})) == 5001
    assert len(s.ask("textDocument/semanticTokens/full", textDocument={"uri": uri})["data"]) == 5 * 15006
    assert len(s.ask("textDocument/foldingRange", textDocument={"uri": uri})) == 0
    s.tell("textDocument/didChange", textDocument={"uri": uri, "version": 2}, contentChanges=[{"text": "x" * (20 << 20)}])
    assert [d["code"] for d in s.diagnostics(uri)] == ["E0790"]


def test_paths(s):
    os.makedirs(os.path.join(FOLDER, "with space \u00fc"), exist_ok=True)
    write("with space \u00fc/geo.tile", GEO)
    uri = uri_of("with space \u00fc/a.tile")
    assert uri.endswith("/with%20space%20%C3%BC/a.tile")
    text = 'import "geo.tile";\nconst int A = geo.SIDES;\n'
    s.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": "tile", "version": 1, "text": text})
    assert s.diagnostics(uri) == []
    there = s.at("definition", uri, text, "SIDES")
    assert there["uri"] == uri.replace("a.tile", "geo.tile"), there
    text = text.replace("geo.tile", "none.tile")
    s.tell("textDocument/didOpen", textDocument={"uri": "untitled:Untitled-1", "languageId": "tile", "version": 1, "text": text})
    assert "E0204" in [d["code"] for d in s.diagnostics("untitled:Untitled-1")]


def uri_of(name):
    return "file://" + urllib.parse.quote(os.path.join(FOLDER, name))


def write(name, text):
    with open(os.path.join(FOLDER, name), "w") as f:
        f.write(text)


def run(test):
    try:
        if not test.__code__.co_argcount:
            test()
            return None
        s = Server(TILEC)
        try:
            test(s)
            s.close()
        finally:
            s.timer.cancel()
            s.process.kill()
            s.process.wait()
        assert not os.path.exists(getattr(s, "library", "/nowhere")), "the library's files stayed"
    except Exception as e:  # pylint: disable=broad-except
        return f"{type(e).__name__}: {e}"
    return None


if __name__ == "__main__":
    TILEC, FOLDER = sys.argv[1], os.path.abspath(sys.argv[2])
    os.makedirs(FOLDER, exist_ok=True)
    only = sys.argv[4] if sys.argv[3:4] == ["-k"] else ""
    tests = [(n, t) for n, t in sorted(globals().items()) if n.startswith("test_") and only in n]
    faults = [(n, f) for n, f in ((n, run(t)) for n, t in tests) if f]
    for name, fault in faults:
        print(f"{name}: {fault}")
    print(f"{len(tests)} tests, {len(faults)} faults")
    sys.exit(1 if faults else 0)
