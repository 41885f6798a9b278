#!/usr/bin/env python3
"""Source texts that try to hurt the compiler. Each must end in a diagnostic, or compile where it is only unusual, in time.

    hostile.py TILEC [SECONDS] [-k SUBSTRING] [-v]

SECONDS (default 1) of processor time per input, so that a busy machine changes nothing. Memory is limited to 4 GiB where no sanitizer is in the way.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

DIAG, FINE, EITHER = "diagnostic", "fine", "either"
CASES = []  # name, bytes, what must come, other files


def add(name, text, want=DIAG, **files):
    CASES.append((name, text if isinstance(text, bytes) else text.encode(), want, files))


def kernel(body, head="", params="const i32 x[N], i32 y[N]", clauses=""):
    return f"{head}\nkernel k({params})\n    grid(1){clauses}\n{{\n{body}\n}}\n"


def nest(opening, inner, closing, n):
    return opening * n + inner + closing * n


# ---- nesting ----
for n in (300, 200000):
    add(f"parentheses_{n}", kernel(f"    y[0] = {nest('(', '1', ')', n)};"))
    add(f"blocks_{n}", kernel(nest("{", "y[0] = 1;", "}", n)))
    add(f"ifs_{n}", kernel(nest("if (x[0] > 1) ", "y[0] = 1;", "", n)))
    add(f"loops_{n}", kernel(nest("for (int i : range(3)) ", "y[0] = 1;", "", n)))
    add(f"indices_{n}", kernel(f"    y[0] = {nest('x[', '0', ']', n)};"))
    add(f"calls_{n}", kernel(f"    y[0] = {nest('abs(', '1', ')', n)};"))
    add(f"tile_types_{n}", kernel(f"    {nest('tile<', 'f32', ', 2>', n)} t = 0;"))
    add(f"casts_{n}", kernel(f"    y[0] = {nest('(i32)', '1', '', n)};"), EITHER)
    add(f"minus_{n}", kernel(f"    y[0] = {nest('- ', '1', '', n)};"), EITHER)
    add(f"not_{n}", kernel(f"    if ({nest('!', 'true', '', n)}) y[0] = 1;"), EITHER)
    add(f"choices_{n}", kernel(f"    y[0] = {nest('x[0] > 1 ? 1 : ', '2', '', n)};"), EITHER)
    add(f"tuples_{n}", kernel(f"    auto t = {nest('(1, ', '2', ')', n)};"))
    add(f"unclosed_{n}", kernel("    y[0] = " + "(" * n))
add("long_sum", kernel("    y[0] = " + " + ".join(f"x[{i}]" for i in range(3000)) + ";"), FINE)
add("long_literal_sum", kernel("    y[0] = " + " + ".join(["1"] * 5000) + ";"), FINE)
add("else_if_ladder", kernel("    " + "\n    else ".join(f"if (x[0] == {i}) y[0] = {i + 1};" for i in range(1000)) + "\n    else y[0] = 0;"), FINE)

# ---- extents and numbers ----
for i, e in enumerate(["2147483647", "4294967296", "0", "-1", "99999999999999999999999999", "1 << 31", "2097152", "1048577", "9223372036854775807 + 1"]):
    add(f"extent_{i}", kernel(f"    tile<i32, {e}> t = 1;\n    y[0] = sum(t);"))
add("extents_product", kernel("    tile<i32, 65536, 65536, 65536, 65536, 65536> t = 1;\n    y[0] = sum(t);"))
add("extents_product_of_four_billion_squared", kernel("    tile<i32, 1048576, 1048576> t = 1;\n    y[0] = sum(t);"))
add("rank_six", kernel("    tile<i32, 1, 1, 1, 1, 1, 1> t = 1;\n    y[0] = sum(t);"))
add("iota_huge", kernel("    y[0] = sum(iota(1073741824));"))
add("slice_huge", kernel("    y[0 +: 4294967296] = 1;"))
add("broadcast_huge", kernel("    auto t = broadcast(x[0], 1048576, 1048576);\n    y[0] = 1;"))
add("reshape_overflow", kernel("    auto t = reshape(iota(16), 65536, 65536, 16);\n    y[0] = 1;"))
add("long_number", kernel(f"    y[0] = {'9' * 1000000};"))
add("long_fraction", kernel(f"    f32 f = 0.{'3' * 1000000};\n    y[0] = (i32)f;"), EITHER)
add("huge_exponent", kernel("    f64 f = 1e999999999999;\n    y[0] = (i32)f;"))
add("f16_overflow", kernel("    f16 f = 70000;\n    y[0] = (i32)f;"))
add("hex_without_digits", kernel("    y[0] = 0x;"))
add("octal", kernel("    y[0] = 0123;"))
add("separator_at_the_end", kernel("    y[0] = 1__;"))
add("suffix", kernel("    y[0] = 12abc;"))

# ---- compile-time evaluation ----
add("const_of_itself", kernel("    y[0] = A;", "const int A = A + 1;"))
add("const_cycle", kernel("    y[0] = A;", "const int A = B;\nconst int B = C;\nconst int C = A;"))
add("const_division_by_zero", kernel("    y[0] = A;", "const int A = 1 / 0;"))
add("const_overflow", kernel("    y[0] = A;", "const int A = 2147483647 * 2;"))
add("const_least_by_minus_one", kernel("    y[0] = A;", "const i64 A = (-9223372036854775807 - 1) / -1;"))
add("static_for_endless", kernel("    static for (int i : range(0, 2000000000)) y[0] = i;"))
add("static_for_squared", kernel("    static for (int i : range(0, 100000)) static for (int j : range(0, 100000)) y[0] = j;"))
add("static_for_step_0", kernel("    static for (int i : range(0, 10, 0)) y[0] = i;\n    y[1] = 2;"), EITHER)
add("static_assert_false", kernel('    static_assert(1 > 2, "no");\n    y[0] = 1;'))
add("unroll_huge", kernel("    for (int i : range(0, 1000000000)) unroll(1000000000) y[0] = i;"), EITHER)
add("chain_of_10000_constants", kernel("    y[0] = C9999;", "const int C0 = 1;\n" + "\n".join(f"const int C{i} = C{i - 1} + 1;" for i in range(1, 10000))), EITHER)

# ---- functions ----
add("recursion", kernel("    y[0] = f(3);", "i32 f(i32 n) { return f(n - 1); }"))
add("recursion_in_a_ring", kernel("    y[0] = f(3);", "i32 f(i32 n) { return g(n); }\ni32 g(i32 n) { return h(n); }\ni32 h(i32 n) { return f(n); }"))
add("recursion_through_const_fn", kernel("    y[0] = f(3, f);", "i32 f(i32 n, const fn g) { return g(n, g); }"))
add("recursion_growing_constant", kernel("    y[0] = f(3, 1);", "i32 f(i32 n, const int K) { return f(n, K + 1); }"))
add("recursion_growing_type", kernel("    auto t = f(x[0 +: 1]);\n    y[0] = 1;", "auto f(auto t) { return f(expand(t, 0)); }"))
add("chain_of_5000_functions", kernel("    y[0] = f4999(1);", "i32 f0(i32 a) { return a + 1; }\n" + "\n".join(
    f"i32 f{i}(i32 a) {{ return f{i - 1}(a); }}" for i in range(1, 5000))), EITHER)
add("inlining_explosion", kernel("    y[0] = f40(1);", "i32 f0(i32 a) { return a + 1; }\n" + "\n".join(
    f"i32 f{i}(i32 a) {{ return f{i - 1}(a) + f{i - 1}(a + 1); }}" for i in range(1, 41))))
for n in (20, 22, 240):
    add(f"pairs_of_pairs_{n}", kernel(f"    auto t = f_{n}(x[0]);\n    y[0] = 1;", "auto f_0(auto a) { return a; }\n" + "\n".join(
        f"auto f_{i}(auto a) {{ auto q = f_{i - 1}(a); return (q, q); }}" for i in range(1, n + 1))))
for n in (22, 100000):
    for name, order in (("", 1), ("_from_the_last", -1)):
        add(f"structs_of_structs_{n}{name}", kernel(f"    struct s{n} v;\n    y[0] = 1;", "\n".join(
            (["struct s0 { f32 a; };"] + [f"struct s{i} {{ struct s{i - 1} a, b; }};" for i in range(1, n + 1)])[::order])))
add("struct_of_20000_fields", kernel("    struct wide v;\n    y[0] = 1;", "struct wide { " + " ".join(f"f32 f_{i};" for i in range(20000)) + " };"))
add("tuple_of_20000", kernel("    auto t = (" + ", ".join(["x[0]"] * 20000) + ");\n    y[0] = 1;"))
add("5000_sorts", kernel("\n".join(f"    y[{i} +: 64] = sort(x[{i} +: 64], axis = 0);" for i in range(5000))))
add("5000_topks", kernel("\n".join(f"    auto (v_{i}, i_{i}) = topk(x[{i} +: 64], 4);" for i in range(5000)) + "\n    y[0] = 1;"))
add("5000_variants", kernel("    y[0] = B;", params="i32 y[N], const int B", clauses="\n    instantiate(" + "; ".join(f"B = {i}" for i in range(5000)) + ")"), EITHER)
add("400_variants_of_400_operations", kernel("    i32 a = y[0];\n" + "    a = a * a + B;\n" * 200 + "    y[0] = a;", params="i32 y[N], const int B", clauses="\n    instantiate(" + "; ".join(
    f"B = {i}" for i in range(400)) + ")"))
add("same_name_10000_times", "\n".join("i32 f(i32 a) { return a; }" for _ in range(10000)) + kernel("    y[0] = f(1);"))
add("100000_parameters", kernel("    y[0] = 1;", params=", ".join(f"i32 p{i}" for i in range(100000)) + ", i32 y[N]"), EITHER)
add("100000_errors", kernel("\n".join(f"    y[0] = nobody{i};" for i in range(100000))))
add("100000_statements", kernel("\n".join(f"    y[{i}] = {i};" for i in range(20000))), EITHER)
add("struct_of_itself", kernel("    y[0] = 1;", "struct s { struct s a; };"))
add("struct_cycle", kernel("    y[0] = 1;", "struct s { struct t a; };\nstruct t { struct s a; };"))
add("seven_axes", "kernel k(i32 y[N])\n    grid(1, 1, 1, 1, 1, 1, 1)\n{\n    y[0] = 1;\n}\n")
add("axis_out_of_range", kernel("    y[0] = sum(iota(8), axis = 4000000000);"))
add("type_used_as_value", kernel("    y[0] = f32;"))
for form, leaf, node, call in (("auto", "auto g0(auto x) { return x * x; }", "auto g{0}(auto x) {{ return g{1}(x) + g{1}(x + 1); }}", "x[0]"),
                               ("i32", "i32 g0(i32 x) { return x * x; }", "i32 g{0}(i32 x) {{ return g{1}(x) + g{1}(x + 1); }}", "x[0]"),
                               ("number", "auto g0(auto x, i32 n) { return x * n; }", "auto g{0}(auto x, i32 n) {{ return g{1}(x, {0}) + g{1}(x + 1, {0}); }}", "x[0], 1"),
                               ("const", "auto g0(auto x, const int n) { return x * n; }", "auto g{0}(auto x, const int n) {{ return g{1}(x, n + 1) + g{1}(x + 1, 2 * n); }}", "x[0], n = 1"),
                               ("pair", "auto g0(auto x) { return (x, x); }", "auto g{0}(auto x) {{ auto (a, b) = g{1}(x); auto (c, d) = g{1}(b); return (a, d); }}", "x[0]")):
    tree = "\n".join([leaf] + [node.format(i, i - 1) for i in range(1, 40)])
    got = f"    y[0] = g39({call});" if form != "pair" else f"    auto (a, b) = g39({call});\n    y[0] = a + b;"
    add(f"call_tree_{form}", kernel(got, tree))
add("kernel_called", kernel("    k(x, y);"))

# ---- bytes ----
add("nul_in_the_middle", b"kernel k(i32 y[N])\n    grid(1)\n{\n    y[0] = \0 1;\n}\n")
add("only_nul", b"\0" * 1000)
add("nul_in_a_comment", b"// a \0 b\n" + kernel("    y[0] = 1;").encode(), EITHER)
add("invalid_utf8_in_a_name", b"kernel k(i32 y[N])\n    grid(1)\n{\n    i32 a\xff\xfe = 1;\n    y[0] = 1;\n}\n")
add("invalid_utf8_in_a_string", b'kernel k(i32 y[N])\n    grid(1)\n{\n    print("\xc3\x28\xff", 1);\n    y[0] = 1;\n}\n', EITHER)
add("overlong_utf8", b"kernel k(i32 y[N])\n    grid(1)\n{\n    y[0] = \xc0\xaf;\n}\n")
add("byte_order_mark", b"\xef\xbb\xbf" + kernel("    y[0] = 1;").encode(), EITHER)
add("carriage_returns", kernel("    y[0] = 1;").replace("\n", "\r\n"), EITHER)
add("all_bytes", bytes(range(256)) * 100)
add("random_bytes", bytes((i * 7919 + (i >> 3) * 104729) & 255 for i in range(100000)))
add("open_comment", "/* " + kernel("    y[0] = 1;"))
add("open_string", kernel('    print("abc, x[0]);'))
add("open_brace", "kernel k(i32 y[N])\n    grid(1)\n{\n    y[0] = 1;\n" + "{" * 100)
add("long_name", kernel(f"    i32 {'a' * 1000000} = 1;\n    y[0] = {'a' * 999999};"))
add("long_string", kernel('    print("' + "a" * 1000000 + '", x[0]);'), EITHER)
add("long_line_of_errors", kernel("    y[0] = " + "@" * 1000000 + ";"))
add("seventeen_mebibytes", kernel("    y[0] = 1;") + " " * (17 << 20))
add("million_semicolons", kernel(";" * 1000000), EITHER)
add("million_closing_braces", "}" * 1000000)
add("percent_signs", kernel("    y[0] = %s%n%d;\n    nobody_%s%n();"))

# ---- modules ----
add("import_of_itself", 'import "import_of_itself.tile";\n' + kernel("    y[0] = 1;"))
add("import_cycle", 'import "b.tile";\n' + kernel("    y[0] = b.B;"), **{"b.tile": 'import "c.tile";\nconst int B = 1;\n', "c.tile": 'import "b.tile";\n'})
add("import_missing", 'import "nowhere.tile";\n' + kernel("    y[0] = 1;"))
add("import_missing_of_std", "import std.nowhere;\n" + kernel("    y[0] = 1;"))
add("import_a_folder", 'import ".";\n' + kernel("    y[0] = 1;"))
add("import_endless_device", 'import "/dev/zero";\n' + kernel("    y[0] = 1;"))
add("import_long_path", f'import "{"a/" * 5000}b.tile";\n' + kernel("    y[0] = 1;"))
add("import_nul_in_path", b'import "a\0b.tile";\n' + kernel("    y[0] = 1;").encode())
add("import_chain_of_300", 'import "m0.tile";\n' + kernel("    y[0] = 1;"), EITHER,
    **{f"m{i}.tile": (f'import "m{i + 1}.tile";\n' if i < 300 else "") + f"const int M{i} = 1;\n" for i in range(301)})


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not os.environ.get("ASAN_OPTIONS"):  # the sanitizer reserves terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def spent():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(name, text, want, files, cx):
    with tempfile.TemporaryDirectory() as folder:
        for file, content in {name + ".tile": text, **files}.items():
            with open(os.path.join(folder, file), "wb") as f:
                f.write(content if isinstance(content, bytes) else content.encode())
        start = spent()
        try:
            p = subprocess.run([cx.tilec, name + ".tile", "--emit=tir", "-o", "out"], cwd=folder, capture_output=True, timeout=cx.seconds * 10, preexec_fn=limit)
        except subprocess.TimeoutExpired:
            return f"no end within {cx.seconds * 10} s"
        seconds, err = spent() - start, p.stderr.decode("utf-8", "replace")
    if seconds > cx.seconds:
        return f"took {seconds:.1f} s"
    if p.returncode == 1 and "error[E" in err:
        return None if want != FINE else "refused: " + err.splitlines()[0][:200]
    if p.returncode == 0:
        return None if want != DIAG else "accepted"
    return f"exit status {p.returncode}: {err.strip()[:200]}"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("tilec")
    ap.add_argument("seconds", nargs="?", type=float, default=1.0)
    ap.add_argument("-k", default="")
    ap.add_argument("-v", action="store_true")
    cx = ap.parse_args()
    cx.tilec = os.path.abspath(cx.tilec)
    chosen = [c for c in CASES if cx.k in c[0]]
    harm = 0
    for name, text, want, files in chosen:
        wrong = run(name, text, want, files, cx)
        harm += bool(wrong)
        if wrong or cx.v:
            print(f"{name}: {wrong or 'ok'}", flush=True)
    print(f"{harm} of {len(chosen)} hostile inputs did harm")
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main())
