"""Kernels in words of language 1.2 and their twins in older words (costs.py): a word that promises to cost nothing makes the same number of
instructions."""

HEAD = "kernel k(const f32 x[M, N], f32 y[M, N], f32 s, int n, const int B = 64)\n    grid(cdiv(N, B), M)\n    require(s > 0)\n{\n    int i = pid(0) * B, r = pid(1);\n"


def rows(body, head="", first=HEAD):
    """A kernel on row r from i of width B."""
    return head + first + body + "}\n"


GRID = "kernel k(const f32 x[64, 1024], f32 y[64, 1024], const int B = 128) grid(1024 / B, 64)\n{{\n    int i = pid(0) * B, r = pid(1);\n    y[r, i +: B] = {};\n}}\n"


# name: (kernel, twin)
TWINS = {
    "nested function": (
        rows("""
    auto v = x[r, i +: B];
    auto m = s * 2;
    auto gate(auto t, auto by) { return t > m ? t * by : t + v; }
    y[r, i +: B] = gate(v, s) + gate(v * v, m);
"""),
        rows("""
    auto v = x[r, i +: B];
    auto m = s * 2;
    y[r, i +: B] = gate(v, s, m, v) + gate(v * v, m, m, v);
""", "auto gate(auto t, auto by, auto m, auto v) { return t > m ? t * by : t + v; }\n")),
    "nested function in a loop": (
        rows("""
    tile<f32, B> acc;
    void step(int j) { y[j, i +: B] = x[j, i +: B] * s; }
    auto next(int j) { return max(acc, x[j, i +: B] + s); }
    for (int j : range(n)) {
        step(j);
        acc = next(j);
    }
    y[r, i +: B] = acc;
"""),
        rows("""
    tile<f32, B> acc;
    for (int j : range(n)) {
        y[j, i +: B] = x[j, i +: B] * s;
        acc = max(acc, x[j, i +: B] + s);
    }
    y[r, i +: B] = acc;
""")),
    "nested function that returns early": (
        rows("""
    auto v = x[r, i +: B];
    f32 rate(int j) { if (j < 3) return s; return s * 0.5; }
    y[r, i +: B] = v * rate(n);
"""),
        rows("""
    auto v = x[r, i +: B];
    y[r, i +: B] = v * rate(n, s);
""", "f32 rate(int j, f32 s) { if (j < 3) return s; return s * 0.5; }\n")),
    "fn in reduce": (
        rows("    y[r, i] = reduce(x[r, i +: B], 0, fn (a, b) => a * b);\n"),
        rows("    y[r, i] = reduce(x[r, i +: B], 0, times);\n", "auto times(auto a, auto b) { return a * b; }\n")),
    "fn in scan": (
        rows("    y[r, i +: B] = scan(x[r, i +: B], 0, fn (a, b) => max(a, b));\n"),
        rows("    y[r, i +: B] = scan(x[r, i +: B], 0, more);\n", "auto more(auto a, auto b) { return max(a, b); }\n")),
    "fn for a const fn": (
        rows("    y[r, i +: B] = apply(x[r, i +: B], fn (a) => a * a + s);\n", "auto apply(auto v, const fn f) { return f(f(v)); }\n"),
        rows("    y[r, i +: B] = apply(x[r, i +: B], s);\n", "auto square(auto a, f32 s) { return a * a + s; }\nauto apply(auto v, f32 s) { return square(square(v, s), s); }\n")),
    "struct of options": (
        """
struct options { bool relu = false; f32 scale = 1, bias = 0.5; int B = 16; };
auto apply(auto x, const options o)
{
    auto v = x * o.scale + o.bias;
    static if (o.relu) v = max(v, 0);
    return v;
}
kernel k(const f32 x[N], f32 y[N], const options o = {relu = true, B = 64}) grid(cdiv(N, o.B))
{
    int i = pid(0) * o.B;
    y[i +: o.B] = apply(x[i +: o.B], o);
}
""", """
auto apply(auto x, const bool relu, const f32 scale, const f32 bias)
{
    auto v = x * scale + bias;
    static if (relu) v = max(v, 0);
    return v;
}
kernel k(const f32 x[N], f32 y[N], const bool relu = true, const f32 scale = 1, const f32 bias = 0.5, const int B = 64) grid(cdiv(N, B))
{
    int i = pid(0) * B;
    y[i +: B] = apply(x[i +: B], relu, scale, bias);
}
"""),
    "struct at run time": (
        """
struct window { f32 scale; int lo = 3; int hi; bool negative = false; };
auto inside(auto at, window w) { return at >= w.lo && at < w.hi; }
kernel k(const f32 x[N], f32 y[N], window w, const int B = 64) grid(cdiv(N, B)) require(w.lo <= w.hi)
{
    int i = pid(0) * B;
    window u = w;
    u.hi += 1;
    y[i +: B] = inside(i + iota(B), u) ? x[i +: B] * w.scale * (w.negative ? -1.0 : 1.0) : 0.0;
}
""", """
kernel k(const f32 x[N], f32 y[N], f32 scale, int lo, int hi, bool negative, const int B = 64) grid(cdiv(N, B)) require(lo <= hi)
{
    int i = pid(0) * B;
    auto at = i + iota(B);
    y[i +: B] = at >= lo && at < hi + 1 ? x[i +: B] * scale * (negative ? -1.0 : 1.0) : 0.0;
}
"""),
    "struct of auto fields": (
        rows("""
    act a = {f = fn (t) => t * s, v = y};
    act b = a;
    b.v[r, i +: B] = run(b, x[r, i +: B]);
""", "struct act { auto f; auto v; f32 by = 2; };\nauto run(auto o, auto t) { return o.f(t) * o.by; }\n"),
        rows("    y[r, i +: B] = x[r, i +: B] * s * 2;\n")),
    "points, one index a row": (
        rows("    auto j = r + iota(8) * n;\n    y[r +: 8, i +: B] = at(x, j, i +: B);\n"),
        rows("    auto j = r + iota(8) * n;\n    y[r +: 8, i +: B] = x[j, i +: B];\n")),
    "points, index tiles": (
        rows("    auto j = col(iota(16)) + r, c = row(iota(16)) * n;\n    y[r +: 16, i +: 16] = at(x, j, c);\n"),
        rows("    auto j = col(iota(16)) + r, c = row(iota(16)) * n;\n    y[r +: 16, i +: 16] = x[j, c];\n")),
    "points, vectors": (
        rows("    auto j = iota(B) % 3 + r, c = i + iota(B) * n;\n    y[r, i +: B] = at(x, j, c);\n"),
        rows("    auto j = iota(B) % 3 + r, c = i + iota(B) * n;\n    y[r, i +: B] = squeeze(x[row(j), row(c)], 0);\n")),
    "points, stored": (
        rows("    auto j = iota(B) % 3 + r, c = i + iota(B) * n;\n    at(y, j, c) = x[r, i +: B];\n"),
        rows("    auto j = iota(B) % 3 + r, c = i + iota(B) * n;\n    y[row(j), row(c)] = row(x[r, i +: B]);\n")),
    "points, atomic": (
        rows("    auto j = iota(B) % 3 + r, c = i + iota(B) * n;\n    atomic_add(at(y, j, c), x[r, i +: B]);\n"),
        rows("    auto j = iota(B) % 3 + r, c = i + iota(B) * n;\n    atomic_add(y[row(j), row(c)], row(x[r, i +: B]));\n")),
    "border, all inside": (
        "kernel k(const f32 x[64, 256], f32 y[64, 256]) grid(64)\n{\n    y[pid(0), 0 +: 256] = load(x[8, 0 +: 256], border = reflect);\n}\n",
        "kernel k(const f32 x[64, 256], f32 y[64, 256]) grid(64)\n{\n    y[pid(0), 0 +: 256] = x[8, 0 +: 256];\n}\n"),
    "border, inside by the grid": (
        GRID.format("load(x[r, i +: B], border = reflect)"), GRID.format("x[r, i +: B]")),
    "border, all of a short axis": (
        GRID.format("load(x[8, 64 +: B], border = wrap)"), GRID.format("x[8, 64 +: B]")),
    "border edge of slices": (
        rows("    y[r, i +: B] = load(x[r, i - 1 +: B], border = edge) + load(x[r, i + 1 +: B], border = edge);\n"),
        rows("    y[r, i +: B] = x[r, i - 1 +: B] + x[r, i + 1 +: B];\n")),
    "border wrap of slices": (
        rows("    y[r, i +: B] = load(x[r, i - 1 +: B], border = wrap);\n"),
        rows("    y[r, i +: B] = x[r, i - 1 +: B];\n")),
    "border edge of an index": (
        rows("    auto c = i + iota(B) * n;\n    y[r, i +: B] = load(x[r, c], border = edge);\n"),
        rows("    auto c = i + iota(B) * n;\n    y[r, i +: B] = x[clamp(r, 0, M - 1), clamp(c, 0, N - 1)];\n")),
    "known integers": (
        rows("    y[r, i +: B] = (x[r, i +: B] * B + RATE - B / 4) / RATE;\n", "const int RATE = 48000;\n"),
        rows("    y[r, i +: B] = (x[r, i +: B] * 64.0 + 48000.0 - 16.0) / 48000.0;\n")),
    "known integers of a static for": (
        rows("    tile<f32, B> v;\n    static for (int j : range(4)) v += x[r, i + j +: B] * j;\n    y[r, i +: B] = v;\n"),
        rows("    tile<f32, B> v;\n    static for (int j : range(4)) v += x[r, i + j +: B] * cast(j, f32);\n    y[r, i +: B] = v;\n")),
    "local array, known indices": (
        rows("""
    tile<f32, B> V[3] = {x[r, i +: B]};
    V[1] = V[0] * s;
    V[2] = V[1] + V[0];
    auto W = V;
    W[0] = V[2];
    y[r, i +: B] = W[0] * W[1] + V[0];
"""),
        rows("""
    auto a = x[r, i +: B];
    auto b = a * s;
    auto c = b + a;
    y[r, i +: B] = c * b + a;
""")),
    "local array carried by a loop": (
        rows("""
    tile<f32, B> V[2];
    for (int j : range(n)) {
        V[0] = max(V[0], x[j, i +: B]);
        V[1] += V[0] * s;
    }
    y[r, i +: B] = V[0] + V[1];
"""),
        rows("""
    tile<f32, B> a, b;
    for (int j : range(n)) {
        a = max(a, x[j, i +: B]);
        b += a * s;
    }
    y[r, i +: B] = a + b;
""")),
    "local array of a static for": (
        rows("""
    f32 w[4];
    static for (int j : range(4)) w[j] = s * (j + 1);
    tile<f32, B> v;
    static for (int j : range(4)) v += x[r, i + j +: B] * w[j];
    y[r, i +: B] = v;
"""),
        rows("""
    f32 a = s * 1, b = s * 2, c = s * 3, d = s * 4;
    tile<f32, B> v;
    v += x[r, i +: B] * a;
    v += x[r, i + 1 +: B] * b;
    v += x[r, i + 2 +: B] * c;
    v += x[r, i + 3 +: B] * d;
    y[r, i +: B] = v;
""")),
}

# Words that cost more than their twins, and why.
ARMS = "one test of the whole place, then the plain load; the load at the border is code beside it that does not run elsewhere"
MORE = {
    "points, stored": "CPUs: 4 instructions before the loop, which is its twin's",
    "border, inside by the grid": "the form of GPUs for aligned arrays is the twin; CPUs and the form for any grid test, as plain loads do there",
    "border edge of slices": ARMS,
    "border wrap of slices": ARMS,
}
