/* Well-formed texts with every form of the grammar; what they mean does not matter. */
#ifndef TL_TEST_PARSE_PROGRAMS_H
#define TL_TEST_PARSE_PROGRAMS_H

static const char *const programs[] = {
    "",
    ";",
    "import std.random; import \"lib/geo.tile\"; import a.b.c;",
    "const int A = 3, B = 0x0; ",
    "const auto C = 1e3; const geo.pair P = {1, 2}; const f32 E = -inf, F = nan;",
    "static_assert(A == 3, \"A is three\\n\");",
    "struct pair { i32 a, b; tile<f32, 3> t; struct geo.vec v; geo.vec w; f32 x[4]; };",
    "/// adds\n///\n///  indented\nvoid f() {}\n//// no documentation\nauto g(auto x) { return x; "
    "}",
    "f32 *at(f32 *p, const f32 *q, int i) { return p + i; } const f32 *b(T *p) { return p; } "
    "geo.vec c(geo.vec v) "
    "{ return v; }",
    "tile<T, N> relu(tile<T, N> x, const int M = 4, const bool B, const fn g, const fn h = f, "
    "const type T, "
    "const type U = tile<f32, 4>) { return max(x, 0); }",
    "void v(const f16 A[M, K], f16 B[K : 1, N : ldb], T x[i64 N], u4 w[i64 N : 3, R + 1, (a ? b : "
    "c)]) {}",
    "kernel k() {}",
    "kernel k(f32 y[N], const int BM = 128, const type T = f16)\n grid(cdiv(N, BM), 1, 2, group = "
    "8) require(N > 0)\n"
    " assume(N % 16 == 0, N < 100) key(M, N) alias(x, y) warps(4) stages(3) cluster(2, 1) "
    "maxreg(128)\n"
    " tune(BM in {64, 128}, warps in {4, 8,}, T in {f16, bf16}; where BM * 2 <= 3 && true)\n"
    " tune(stages in {2})\n instantiate(BM = 8, T = f16; BM = 16; T = tile<f32, 4>) {}",
    "void f() { int x; int y = 1, z; const i64 a = 3; auto b = x; const auto c = 2; f32 *p = q; "
    "const f32 *r = p;"
    " T *s = p; tile<f32> t0; tile<T, N, (M), 2 * N + 1, f(a < b)> t; struct pair u = {1, 2,}; "
    "pair w = {x}; }",
    "void f() { auto (x, y) = g(); const auto (a, b, c) = h(); (x, y) = (y, x); (p.a, q[3]) = g(); "
    "}",
    "void f() { x = 1; x += 2; x -= 1; x *= 1; x /= 1; x %= 1; x &= 1; x |= 1; x ^= 1; x <<= 1; x "
    ">>= 1; x++; x--;"
    " unchecked A[i] = 3; unchecked A[i] += unchecked B[j +: 4 : 2] + 1; f(); }",
    "void f() { if (a) if (b) c(); else d(); if (x) { } else if (y) ; else if (z) { g(); } else "
    "h(); }",
    "void f() { static if (a) b(); else static if (c) d(); else { e(); } static for (int i : "
    "range(3)) g(i);"
    " static for (auto i : range(3)) g(i); static_assert(true); }",
    "void f() { while (a) b(); for (;;) { break; } for (int i = 0; i < n; i++) unroll(4) continue;"
    " for (x = 0; ; x += 1) ; for (i64 i : range(0, n, -1)) pipeline(3) specialize nounroll { "
    "return; }"
    " for (auto i : range(n)) pipeline unroll { (x, y) = g(); } }",
    "void f() { a = b || c && d | e ^ f & g == h < i << j + k * -l; a = (((b + c) * d - e) / (f - "
    "(g - h))); }",
    "void f() { a = b ? c : d ? e : f; a = (b ? c : d) ? (e, f) : !g; a = b - -c - -1 - ~+!d; }",
    "void f() { a = (f32)x; a = (f32)-x; a = -(i8)(x + 1); a = (tile<f32, 4>)b[0]; a = "
    "(f32)(i32)x; a = ((f32)x)(1); }",
    "void f() { a = 1 + 2.5 + .5 + 5. + 1e9 + 1.5e-3 + 0x1.8p3 + 0xFFp0 + 0b1010_0101 + 1_000_000 "
    "+ 18446744073709551615"
    " + 1e-320 + 0.1 + 123456789.123456789 + inf + nan + true + false; }",
    "void f() { print(\"a\\\"\\\\\\x01\\t\" \"b\", x); asm(\"{0}\", f32, x, y); }",
    "void f() { g(a, b +: 4, c = d, where = m, axis = 1, group = 8, T = f32, U = tile<f32, 4>, "
    "type = 3, f16); }",
    "void f() { a = (f32 *)u; b = (const T *)p[i] + 1; c = (u64)(T *)u; d = ((T) *)u; e = (a * b "
    "*)u; }",
    "void f() { static if (T == f16 || tile<f32, 4> != T) a = f16 == T ? 1 : 0; b = U != T == "
    "true; }",
    "void f() { a = cast(x, f8e5m2, round = stochastic(3), sat = true); b = bitcast(x, tile<i32, "
    "N>);"
    " c = tile<f32, 4>(1); d = f32(2); e = (struct pair){1, (2, 3)}; h = (struct geo.pair){1,}; }",
    "void f() { a = x[0, i +: 4, rows, j +: 8 : -2](1)[2].key.type.z; b = in(x[0 +: 4]) ? in(y) : "
    "z; c = a.b.c(d).e; }",
    "void f() { grid = key + where[type] + group.x.y + warps(1); T key = 3; alias.x = 1; "
    "device.sms(3); }",
    "void f() { auto V = view(p, (M, K), (lda, 1)); auto W = sub(V, (m0, k0), (m, k)); {{ ; }} }",
    "void f() { a = (x); b = ((x) + (y)); c = (x)[1]; d = (f)(1); e = (x ? y : z).w; }",
    "void f() { (a + b); (-a); ((f32)a); (unchecked a[0]); (a + b) = c; (unchecked a[1]) = 2; (a ? "
    "b : c)++; }",
    "void f() { tile<T, (N)> g(tile<T, M> a, const int k = 3) { auto h(auto b) { return b; } "
    "return h(a); }"
    " f32 *p(f32 *q) { return q; } const f32 *r() { ; } void s(const f32 A[M, K]) { } }",
    "auto f(const fn g = fn (a, b) => a ? fn () => b : c) { x = (fn (a) => -a)(1); "
    "y = reduce(x, 0, fn (a, b) => a * b + c); if (x) int h(int a) { return a; "
    "} else auto key(auto where) { return where; } }",
};
enum { NPROGRAMS = (int)(sizeof programs / sizeof *programs) };
#endif
