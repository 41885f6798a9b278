#!/usr/bin/env python3
"""A client of `tilec lsp`: what an editor asks, and what a broken one sends.

    lsp.py TILEC FOLDER [-k SUBSTRING]

Each function `test_...` talks to a server of its own. Prints "N tests, M faults".
"""
import json
import os
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
    assert c["textDocumentSync"]["change"] == 1 and c["hoverProvider"] and c["positionEncoding"] == "utf-16"
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
    assert "sum(x, [axis =], [keep =], [where =])" in hover(s, uri, TEXT, "sum(v")
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
            for method in ("hover", "definition", "completion", "references"):
                s.ask("textDocument/" + method, textDocument={"uri": uri}, position={"line": line, "character": character})
    for r in (None, {}, {"start": 3}, {"start": {"line": 5, "character": 0}, "end": {"line": -1, "character": 0}}):
        s.ask("textDocument/inlayHint", textDocument={"uri": uri}, range=r)
        s.ask("textDocument/codeAction", textDocument={"uri": uri}, range=r, context={})


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
            s.ask("textDocument/documentSymbol", textDocument={"uri": uri})


def test_big_file(s):
    body = "".join(f"/// Number {i}.\nauto g{i}(auto x) {{ return x + {i}; }}\n" for i in range(5000))
    uri = s.open(body + "kernel k(f32 x[N]) grid(1) { x[0] = g4999(x[0]); }\n")
    assert s.diagnostics(uri) == []
    assert len(s.ask("textDocument/documentSymbol", textDocument={"uri": uri})) == 5001
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
