"""The forms of the language, each as a function of how much of it there is: what test/tools/growth.py doubles.

FORMS[name] = (make, first, most, devices): make(n) gives {file: text} with k.tile among them; the smallest and the largest n;
which kinds of target the form is for. A form whose limit of the language is lower than `most` is refused there, and that ends it.
"""
FORMS = {}
KINDS = ("front", "cpu", "nvidia", "amd")
PARAMS = "const f32 x[N], f32 y[N], i32 z[M], i64 w[M], i64 s"


def kernel(body, head="", params=PARAMS, clauses=""):
    return f"{head}\nkernel k({params})\n    grid(1) {clauses}\n{{\n{body}\n}}\n"


def form(first=64, most=1 << 20, kinds=KINDS):
    def wrap(make):
        def files(n):
            made = make(n)
            return made if isinstance(made, dict) else {"k.tile": made}
        FORMS[make.__name__] = (files, first, most, kinds)
        return make
    return wrap


def times(n, line, sep="\n"):
    """`line`, n times, with @ as the number"""
    return sep.join(line.replace("@", str(i)) for i in range(n))


def on_tile(n, line, setup="", ty="f32", size=256):
    """n statements on a tile `a`, which is loaded before and stored after."""
    view = {"f32": ("x", "y"), "i32": ("z", "z"), "i64": ("w", "w")}[ty]
    return kernel(f"    auto a = {view[0]}[0 +: {size}];\n    auto b = {view[0]}[7 +: {size}];\n{setup}\n{times(n, line)}\n    {view[1]}[0 +: {size}] = a;")


# ---- expressions ----
@form()
def sum_of_scalars(n):
    return kernel("    y[0] = " + " + ".join(f"x[{i}]" for i in range(n)) + ";")


@form()
def sum_of_literals(n):
    return kernel("    y[0] = " + " + ".join(["1.5"] * n) + ";")


@form()
def arithmetic(n):
    return on_tile(n, "    a = a * b + 1.5;")


@form()
def select(n):
    return on_tile(n, "    a = a > @.5 ? b : a + 1.0;")


@form()
def scalar_choices(n):
    return kernel("    f32 a = x[0];\n" + times(n, "    a = x[@] > a ? x[@ + 1] : a;") + "\n    y[0] = a;")


@form()
def bool_chain(n):
    return kernel("    bool c = " + " && ".join(f"x[{i}] > {i}.0" for i in range(n)) + ";\n    if (c) y[0] = 1;")


@form()
def squarings_in_a_loop(n):
    return kernel("    auto a = x[0 +: 64];\n    for (int i : range(z[0])) {\n" + times(n, "        a = a * a;") + "\n    }\n    y[0 +: 64] = a;")


@form()
def squarings(n):
    return on_tile(n, "    a = a * a;")


@form(8)
def sines_in_a_loop(n):
    return kernel("    auto a = x[0 +: 64];\n    for (int i : range(z[0])) {\n" + times(n, "        a = sin(a);") + "\n    }\n    y[0 +: 64] = a;")


@form(8)
def math(n):
    return on_tile(n, "    a = exp(a) + log(a) + tanh(b) + pow(a, b);", size=64)


@form(8)
def roots_and_divisions(n):
    return on_tile(n, "    a = sqrt(a) / b;")


@form(8)
def fmod(n):
    return on_tile(n, "    a = fmod(a, b);", size=64)


@form()
def shifts(n):
    return on_tile(n, "    a = (a << 3) ^ (a >> b);", ty="i32")


@form()
def chain_of_shifts(n):
    return kernel("    i32 a = z[0];\n    a = a" + " << 1" * n + ";\n    z[1] = a;")


@form()
def scalar_shifts(n):
    return kernel("    i32 a = z[0];\n" + times(n, "    a = a ^ (a << (a & 7));") + "\n    z[1] = a;")


@form()
def integers(n):
    return on_tile(n, "    a = min(max(a * b, 3), a ^ @) + popcount(b);", ty="i32")


@form(16)
def i32_divisions(n):
    return on_tile(n, "    a = a / b + a % (b + 1);", ty="i32")


@form(4)
def i64_divisions(n):
    return on_tile(n, "    a = a / b;", ty="i64", size=64)


@form(8)
def i64_divisions_in_static_for(n):
    return kernel(f"    i64 a = w[0];\n    static for (int i : range({n})) a = a / (w[i] + s) + i;\n    w[0] = a;")


@form()
def casts(n):
    return on_tile(n, "    a = (f32)(i32)(a * 2.0) + (f32)(f16)b + (f32)(bf16)a;")


@form(8)
def small_float_casts(n):
    return on_tile(n, "    a = a + (f32)cast(a * @.0, f8e4m3) + (f32)cast(a, f8e5m2);")


@form()
def bitcasts(n):
    return on_tile(n, "    a = bitcast(bitcast(a, i32) + @, f32);")


# ---- names, functions, structs, tuples ----
@form()
def variables(n):
    return kernel("    f32 v0 = x[0];\n" + "\n".join(f"    f32 v{i} = v{i - 1} + v{i // 2};" for i in range(1, n)) + f"\n    y[0] = v{n - 1};")


@form()
def constants(n):
    return kernel(f"    y[0] = (f32)C{n - 1};", "const int C0 = 1;\n" + "\n".join(f"const int C{i} = (C{i - 1} + 1) & 255;" for i in range(1, n)))


@form()
def functions(n):
    return kernel(times(n, "    a = f_@(a);").replace("    a = f_0(a);", "    f32 a = f_0(x[0]);", 1) + "\n    y[0] = a;", times(n, "f32 f_@(f32 a) { return a + @.0; }"))


@form()
def functions_unused(n):
    return kernel("    y[0] = 1;", times(n, "auto f_@(auto a) { if (a > @) return a + @; return a; }"))


@form()
def calls(n):
    return on_tile(n, "    a = f(a, b, 3);", "", "f32").replace("kernel k", "auto f(auto a, auto b, const int K) { auto c = a + b; return c * (f32)K; }\nkernel k")


@form(8, 250)
def nested_calls(n):
    return kernel("    y[0] = f_%d(x[0]);" % (n - 1), "f32 f_0(f32 a) { return a; }\n" + "\n".join(f"f32 f_{i}(f32 a) {{ return f_{i - 1}(a) * a; }}" for i in range(1, n)))


@form(8)
def call_tree(n):
    depth = max(1, n.bit_length() - 1)
    return kernel(f"    y[0 +: 64] = f{depth}(x[0 +: 64]);", "auto f0(auto a) { return a + 1.0; }\n" + "\n".join(f"auto f{i}(auto a) {{ return f{i - 1}(a) + f{i - 1}(a * 2.0); }}" for i in range(1, depth + 1)))


@form(16)
def pairs_of_pairs(n):
    depth = max(1, n.bit_length() - 1)
    return kernel(f"    auto t = f_{depth}(x[0]);\n    y[0] = 1;", "auto f_0(auto a) { return a; }\n" + "\n".join(f"auto f_{i}(auto a) {{ auto q = f_{i - 1}(a); return (q, q); }}" for i in range(1, depth + 1)))


@form(16)
def structs_of_structs(n):
    depth = max(1, n.bit_length() - 1)
    return kernel(f"    struct s{depth} v;\n    y[0] = 1;", "struct s0 { f32 a; };\n" + "\n".join(f"struct s{i} {{ struct s{i - 1} a, b; }};" for i in range(1, depth + 1)))


@form()
def struct_fields(n):
    return kernel("    struct pack v;\n" + times(n, "    v.f_@ = x[@];") + "\n    f32 a = 0;\n" + times(n, "    a += v.f_@;") + "\n    y[0] = a;",
                  "struct pack { " + times(n, "f32 f_@;", " ") + " };")


@form()
def struct_declarations(n):
    return kernel("    y[0] = 1;", times(n, "struct s@ { f32 a; tile<f32, 4> b; };"))


@form()
def struct_copies(n):
    return kernel("    struct pack v = {x[0], x[1]};\n" + times(n, "    v = g(v);") + "\n    y[0] = v.a;", "struct pack { f32 a, b; };\npack g(pack v) { v.a = v.b + v.a; return v; }")


@form()
def tuples(n):
    return kernel("    auto (a, b) = (x[0], x[1]);\n" + times(n, "    (a, b) = (b, a + b);") + "\n    y[0] = a + b;")


@form(16, 120)
def parameters(n):
    return kernel("    y[0] = " + " + ".join(f"p{i}[0]" for i in range(n)) + ";", params=times(n, "const f32 p@[N]", ", ") + ", f32 y[N]")


@form()
def imports(n):
    files = {f"m{i}.tile": f"const f32 M = {i};\nf32 f(f32 a) {{ return a + M; }}\n" for i in range(n)}
    return {"k.tile": kernel("    f32 a = x[0];\n" + times(n, "    a = m@.f(a);") + "\n    y[0] = a;", times(n, 'import "m@.tile";')), **files}


@form(8)
def kernels(n):
    return times(n, "kernel k@(const f32 x[N], f32 y[N])\n    grid(1)\n{\n    y[0 +: 64] = x[0 +: 64] * @.0;\n}")


@form(8)
def instantiate(n):
    return kernel("    y[0 +: 32] = x[B +: 32];", params="const f32 x[N], f32 y[N], const int B", clauses="instantiate(" + times(n, "B = @", "; ") + ")")


@form()
def requires(n):
    return kernel("    y[0] = 1;", clauses=times(n, "require(N > @ && s != @)"))


@form()
def errors(n):
    return kernel(times(n, "    y[0] = nobody@;"))


@form()
def comments(n):
    return kernel(times(n, "    // a line that says nothing of any use, @") + "\n    y[0] = 1;")


# ---- control flow ----
@form()
def static_for(n):
    return kernel(f"    auto a = x[0 +: 64];\n    static for (int i : range({n})) a = a * (f32)i + 1;\n    y[0 +: 64] = a;")


@form(8)
def loops(n):
    return kernel("    auto a = x[0 +: 64];\n" + times(n, "    for (int i : range(z[@])) a = a * 0.5 + x[i +: 64];") + "\n    y[0 +: 64] = a;")


@form(4, 120)
def nested_loops(n):
    return kernel("    f32 a = x[0];\n    " + "".join(f"for (int i_{i} : range(z[{i}])) " for i in range(n)) + "a = a * 0.5;\n    y[0] = a;")


@form(4, 120)
def nested_tile_loops(n):
    return kernel("    auto a = x[0 +: 64];\n    " + "".join(f"for (int i_{i} : range(z[{i}])) " for i in range(n)) + "a = a * 0.5;\n    y[0 +: 64] = a;")


@form(8)
def whiles(n):
    return kernel("    f32 a = x[0];\n" + times(n, "    while (a > @.0) { a = a - 1.5; if (a == 3.0) break; if (a == 5.0) continue; a *= 0.5; }") + "\n    y[0] = a;")


@form(8)
def carried_values(n):
    return kernel(times(n, "    auto a@ = x[@ +: 32];") + "\n    for (int i : range(z[0])) {\n" + times(n, "        a@ = a@ * 0.5 + 1.0;") + "\n    }\n" + times(n, "    y[32 * @ +: 32] = a@;"))


@form(8)
def ifs(n):
    return kernel("    auto a = x[0 +: 64];\n" + times(n, "    if (z[@] > 1) a = a + @.0; else a = a * 2.0;") + "\n    y[0 +: 64] = a;")


@form(8)
def else_ifs(n):
    return kernel("    " + "\n    else ".join(f"if (z[0] == {i}) y[0] = {i + 1};" for i in range(n)) + "\n    else y[0] = 0;")


@form(8)
def else_ifs_of_a_variable(n):
    return kernel("    auto a = x[0 +: 32];\n    " + "\n    else ".join(f"if (z[0] == {i}) a = a + {i}.0;" for i in range(n)) + "\n    y[0 +: 32] = a;")


@form(8, 240)
def nested_ifs(n):
    return kernel("    " + "".join(f"if (z[{i}] > 1) " for i in range(n)) + "y[0] = 1;")


@form(8)
def returns(n):
    return kernel(times(n, "    if (z[@] > 5) return;") + "\n    y[0] = 1;")


@form(8)
def static_ifs(n):
    return kernel("    f32 a = x[0];\n" + times(n, "    static if (@ % 2 == 0) a = a + 1; else a = a * 2;") + "\n    y[0] = a;")


@form(8)
def unrolled(n):
    return kernel(f"    auto a = x[0 +: 64];\n    for (int i : range({n})) unroll({min(n, 1000)}) a = a * 0.5 + x[i +: 64];\n    y[0 +: 64] = a;")


# ---- memory ----
@form()
def scalar_loads_and_stores(n):
    return kernel(times(n, "    y[@] = x[@ + 3];"))


@form(8)
def slices(n):
    return kernel(times(n, "    y[64 * @ +: 64] = x[64 * @ +: 64] + 1.0;"))


@form(8)
def slices_at_any_place(n):
    return kernel(times(n, "    y[z[@] +: 64] += x[z[@ + 1] +: 64];"))


@form(8)
def masked_loads(n):
    return kernel(times(n, "    store(y[64 * @ +: 64], load(x[64 * @ +: 64], mask = iota(64) < z[@], pad = 1), mask = iota(64) > z[@]);"))


@form(8)
def index_tiles(n):
    return kernel("    auto i = z[0 +: 64];\n" + times(n, "    y[i + @] = x[i * 2 + @];"))


@form(8)
def pointers(n):
    return kernel("    auto p = raw(x) + iota(64);\n    auto q = raw(y) + iota(64);\n" + times(n, "    store(q + @, load(p + @, mask = iota(64) < @));"))


@form(8)
def views(n):
    return kernel("    auto v = view(raw(x), (1024, 1024), (1024, 1));\n" + times(n, "    auto v@ = sub(v, (@, z[@]), (16, 16));\n    y[@] = v@[1, 1];"))


@form(8)
def two_dimensional(n):
    return kernel(times(n, "    C[16 * @ +: 16, 0 +: 16] = trans(A[0 +: 16, 16 * @ +: 16]);"), params="const f32 A[M, K], f32 C[M, K]")


@form(8)
def atomics(n):
    return kernel(times(n, "    atomic_add(y[64 * @ +: 64], x[64 * @ +: 64]);"))


@form(8)
def scalar_atomics(n):
    return kernel("    i32 a = 0;\n" + times(n, "    a += atomic_add(z[@], a) + atomic_cas(z[0], a, @);") + "\n    z[1] = a;")


# ---- tiles ----
@form(4)
def reductions(n):
    return kernel(times(n, "    y[@] = sum(x[256 * @ +: 256]);"))


@form(4)
def chained_reductions(n):
    return on_tile(n, "    a = a - max(a) + sum(a * b);")


@form(4)
def arg_reductions(n):
    return kernel(times(n, "    z[@] = argmax(x[256 * @ +: 256]);"))


@form(4)
def user_reductions(n):
    return kernel(times(n, "    y[@] = reduce(x[256 * @ +: 256], 0, f);"), "f32 f(f32 a, f32 b) { return a * b + 1.0; }")


@form(8)
def user_reduction_body(n):
    return kernel("    y[0] = reduce(x[0 +: 4096], 0, f);", "f32 f(f32 a, f32 b) {\n" + times(n, "    a = a * b + @.5;") + "\n    return a;\n}")


@form(8)
def user_scan_body(n):
    return kernel("    y[0 +: 1024] = scan(x[0 +: 1024], 0, f);", "f32 f(f32 a, f32 b) {\n" + times(n, "    a = a * b + @.5;") + "\n    return a;\n}")


@form(4)
def scans(n):
    return on_tile(n, "    a = cumsum(a, axis = 0);")


@form(2)
def sorts(n):
    return on_tile(n, "    a = sort(a + b, axis = 0);", size=128)


@form(2)
def topks(n):
    return kernel(times(n, "    auto (v@, i_@) = topk(x[128 * @ +: 128], 8);\n    y[8 * @ +: 8] = v@;"))


@form(4)
def histograms(n):
    return kernel(times(n, "    z[64 * @ +: 64] = histogram(z[256 * @ +: 256], 64);"))


@form(4)
def gathers(n):
    return on_tile(n, "    a = gather(a, i, 0) + b;", "    auto i = z[0 +: 256];")


@form(4)
def shape_changes(n):
    return on_tile(n, "    a = reshape(trans(reshape(a, 16, 16)), 256);")


@form(4)
def joins(n):
    return on_tile(n, "    auto (p@, q@) = split(join(a, b));\n    a = interleave(extract(p@, 0 +: 128), flip(extract(q@, 128 +: 128), 0));")


def dots(n, size, setup="", extra=""):
    return kernel(f"    auto c = tile<f32, {size}, {size}>(0);\n" + times(n, f"    c = dot(A[0 +: {size}, {size} * @ +: {size}], B[{size} * @ +: {size}, 0 +: {size}], c);") +
                  f"\n    C[0 +: {size}, 0 +: {size}] = c;", params="const f16 A[M, K], const f16 B[K, N], f32 C[M, N]")


@form(4)
def dots_16(n):
    return dots(n, 16)


@form(4)
def dots_17(n):
    return dots(n, 17)


@form(4)
def dots_of_f32(n):
    return dots(n, 32).replace("f16", "f32")


@form(2)
def chained_dots(n):
    return kernel("    auto a = A[0 +: 32, 0 +: 32];\n" + times(n, "    a = (f16)dot(a, a);") + "\n    C[0 +: 32, 0 +: 32] = a;", params="const f16 A[M, K], f16 C[M, N]")


@form(1)
def scaled_dots(n):
    return kernel("    auto c = tile<f32, 32, 32>(0);\n" + times(n, "    c = dot_scaled(A[0 +: 32, 32 * @ +: 32], S[0 +: 32, @ +: 1], B[32 * @ +: 32, 0 +: 32], T[0 +: 32, @ +: 1], c);") +
                  "\n    C[0 +: 32, 0 +: 32] = c;", params="const f8e4m3 A[M, K], const u8 S[M, KS], const f8e4m3 B[K, N], const u8 T[N, KS], f32 C[M, N]")


@form(1)
def random_numbers(n):
    return kernel("    u64 seed = (u64)s;\n" + times(n, "    y[256 * @ +: 256] = random.uniform(seed, iota(256) + @);"), "import std.random;")


# ---- larger tiles ----
@form(64, 1 << 17)
def tile_of_a_sum(n):
    return kernel(f"    y[0] = sum(x[0 +: {n}]);")


@form(256, 1 << 17)
def tile_of_a_softmax(n):
    return kernel(f"    auto a = x[0 +: {n}];\n    a = exp(a - max(a));\n    y[0 +: {n}] = a / sum(a);")


@form(256, 1 << 17)
def tile_of_a_scan(n):
    return kernel(f"    y[0 +: {n}] = cumsum(x[0 +: {n}], axis = 0);")


@form(256, 1 << 17)
def tile_of_random_numbers(n):
    return kernel(f"    u64 seed = (u64)s;\n    auto i = iota({n});\n    y[0 +: {n}] = random.uniform(seed, i) + random.uniform(seed + 1, i) * random.uniform(seed + 2, i);", "import std.random;")


@form(64, 1 << 14)
def tile_of_a_sort(n):
    return kernel(f"    y[0 +: {n}] = sort(x[0 +: {n}], axis = 0);")


@form(256, 1 << 17)
def tile_of_a_gather(n):
    return kernel(f"    y[0 +: {n}] = gather(x[0 +: {n}], z[0 +: {n}], 0);")


@form(256, 1 << 17)
def tile_of_i64_divisions(n):
    return kernel(f"    w[0 +: {n}] = w[0 +: {n}] / (w[5 +: {n}] + s);")


@form(256, 1 << 17)
def tile_of_atomics(n):
    return kernel(f"    atomic_add(y[0 +: {n}], x[0 +: {n}]);")


@form(16, 1 << 12)
def tile_of_a_transpose(n):
    return kernel(f"    C[0 +: {n}, 0 +: 64] = trans(A[0 +: 64, 0 +: {n}]);", params="const f32 A[M, K], f32 C[M, K]")


@form(16, 1 << 12)
def tile_of_a_dot(n):
    return kernel(f"    C[0 +: {n}, 0 +: 64] = dot(A[0 +: {n}, 0 +: 64], B[0 +: 64, 0 +: 64]);", params="const f16 A[M, K], const f16 B[K, N], f32 C[M, N]")


@form(16, 1 << 12)
def tile_of_a_dot_in_a_loop(n):
    return kernel(f"    auto c = tile<f32, {n}, 64>(0);\n    for (int i : range(0, K, 64)) c = dot(A[0 +: {n}, i +: 64], B[i +: 64, 0 +: 64], c);\n    C[0 +: {n}, 0 +: 64] = c;",
                  params="const f16 A[M, K], const f16 B[K, N], f32 C[M, N]")


@form(32, 1 << 12)
def tile_of_a_scaled_dot(n):
    return kernel(f"    C[0 +: {n}, 0 +: 32] = dot_scaled(A[0 +: {n}, 0 +: 64], S[0 +: {n}, 0 +: 2], B[0 +: 64, 0 +: 32], T[0 +: 32, 0 +: 2]);",
                  params="const f8e4m3 A[M, K], const u8 S[M, KS], const f8e4m3 B[K, N], const u8 T[N, KS], f32 C[M, N]")


# ---- debugging ----
@form(8)
def prints(n):
    return kernel(times(n, '    print("v@", x[@]);'))


@form(8)
def tile_prints(n):
    return kernel(times(n, '    print("v@", x[@ +: 32]);'))


@form(8)
def asserts(n):
    return kernel(times(n, '    assert(x[@] > 0.0, "a@");') + "\n    y[0] = 1;")


@form(8, kinds=("nvidia", "amd"))
def assembly(n):
    text = 'static if (target.kind == "cuda") { a = asm("add.rn.f32 {0}, {1}, {2};", f32, a, b); } else { a = asm("v_add_f32 {0}, {1}, {2}", f32, a, b); }'
    return kernel("    auto a = x[0 +: 64];\n    auto b = x[5 +: 64];\n" + times(n, "    " + text) + "\n    y[0 +: 64] = a;")
