/* The interpreter, op group by op group: kernels in the text form on small arrays, expected values
 * by hand or in plain C. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "ir/interp/interp.h"
#include "ir/numeric.h"
#include "test/unit/unit.h"

/* ---- running a text -------------------------------------------------------------------------- */

typedef struct Log {
    int fails, prints, stops;
    TlInterpFailKind kind;
    uint32_t line;
    char text[256], shown[256];
} Log;
static Log said;

static void on_fail(void *user, const int32_t *pid, TlInterpFailKind kind, TlLoc loc,
                    const char *text)
{
    Log *l = user;
    (void)pid;
    if (l->fails++) return;
    l->kind = kind;
    l->line = loc.line;
    snprintf(l->text, sizeof l->text, "%s", text);
}

static void on_print(void *user, const int32_t *pid, const char *text, TlTileData value)
{
    Log *l = user;
    snprintf(l->shown, sizeof l->shown, "%d:%s:%lld:%lld", pid[0], text,
             (long long)tl_type_elems(value.type),
             (long long)tl_elem_get(value.type->dtype, value.data, 0));
    l->prints++;
}

static bool on_stop(void *user) { return ++((Log *)user)->stops > 3; }

static TlModule *parse(TlCtx *ctx, const char *text)
{
    uint32_t source = tl_diags_source(&ctx->diags, "test.tir", text, strlen(text));
    TlModule *m = tl_parse_module(ctx, source);
    if (m) return m;
    TlSbuf out;
    tl_sbuf_init(&out, &ctx->perm);
    tl_diags_render(&ctx->diags, TL_DIAG_TEXT, false, &out);
    fprintf(stderr, "%s\n%s\n", text, out.text);
    return NULL;
}

/* Runs programs 0..grid-1 of the only kernel. Returns bytes of the arena after the last one; -1
 * when it did not run. */
static long long run_grid(const char *text, const TlInterpArg *args, int grid, bool check,
                          bool stop)
{
    TlCtx ctx;
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlGuard g;
    long long bytes = -1;
    memset(&said, 0, sizeof said);
    if (TL_GUARD(&g)) {
        TlModule *m = parse(&ctx, text);
        TlInterpOptions options = {check, {&said, on_print, on_fail, stop ? on_stop : NULL}};
        for (int i = 0; CHECK(m != NULL) && i < grid; i++) {
            TlArena scratch;
            tl_arena_init(&scratch, (TlAlloc){0});
            int32_t pid[6] = {i}, npid[6] = {grid, 1, 1, 1, 1, 1};
            bool done = tl_interp_program(m->fns.data[0], args, pid, npid, &options, &scratch);
            CHECK(done != stop);
            bytes = (long long)scratch.total;
            tl_arena_free(&scratch);
        }
        tl_module_free(m);
        tl_guard_pop(&g);
    } else {
        fprintf(stderr, "%s\nfault: %s\n", text, g.text);
        CHECK(!"fault");
    }
    tl_ctx_free(&ctx);
    return bytes;
}

static long long run(const char *text, const TlInterpArg *args)
{
    return run_grid(text, args, 1, false, false);
}

static TlInterpArg view1(void *p, int64_t n, size_t elem)
{
    return (TlInterpArg){.address = p, .bytes = (uint64_t)n * elem, .extent = {n}, .stride = {1}};
}
static TlInterpArg view2(void *p, int64_t m, int64_t n, size_t elem)
{
    return (TlInterpArg){
        .address = p, .bytes = (uint64_t)(m * n) * elem, .extent = {m, n}, .stride = {n, 1}};
}
static TlInterpArg view3(void *p, int64_t l, int64_t m, int64_t n, size_t elem)
{
    return (TlInterpArg){.address = p,
                         .bytes = (uint64_t)(l * m * n) * elem,
                         .extent = {l, m, n},
                         .stride = {m * n, n, 1}};
}
static TlInterpArg scalar(uint64_t bits) { return (TlInterpArg){.scalar = bits}; }

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
static char text_buffer[8192];
#define TEXT(...) (snprintf(text_buffer, sizeof text_buffer, __VA_ARGS__), text_buffer)

/* ---- arithmetic ------------------------------------------------------------------------------ */

static const char *binary_kernel(const char *op, const char *type, const char *to, int n)
{
    return TEXT("kernel @k(%%x: view<const %s, 1>, %%y: view<const %s, 1>, %%z: view<%s, 1>) {\n"
                "  %%0 = const {value = 0} : i32\n"
                "  %%a = load %%x, %%0 {axes = [%d]} : tile<%s, %d>\n"
                "  %%b = load %%y, %%0 {axes = [%d]} : tile<%s, %d>\n"
                "  %%c = %s %%a, %%b : tile<%s, %d>\n"
                "  store %%z, %%0, %%c {axes = [%d]}\n"
                "  return\n}\n", type, type, to, n, type, n, n, type, n, op, to, n, n);
}

static const char *unary_kernel(const char *op, const char *attrs, const char *type, const char *to,
                                int n)
{
    return TEXT("kernel @k(%%x: view<const %s, 1>, %%z: view<%s, 1>) {\n"
                "  %%0 = const {value = 0} : i32\n"
                "  %%a = load %%x, %%0 {axes = [%d]} : tile<%s, %d>\n"
                "  %%c = %s %%a %s : tile<%s, %d>\n"
                "  store %%z, %%0, %%c {axes = [%d]}\n"
                "  return\n}\n", type, to, n, type, n, op, attrs, to, n, n);
}

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UWide;

static Wide slow_binary(const char *op, Wide p, Wide q, int width, bool is_signed)
{
    Wide least = is_signed ? -((Wide)1 << (width - 1)) : 0;
    int by = (int)(q & (width - 1));
    switch (op[0] << 8 | op[1]) {
    case 'a' << 8 | 'd': return p + q;
    case 's' << 8 | 'u': return p - q;
    case 'm' << 8 | 'u':
        return op[3] ? (Wide)((UWide)p * (UWide)q) >> width : (Wide)((UWide)p * (UWide)q);
    case 'd' << 8 | 'i': return q == 0 ? 0 : is_signed && p == least && q == -1 ? least : p / q;
    case 'r' << 8 | 'e': return q == 0 ? 0 : p % q;
    case 'm' << 8 | 'i': return p < q ? p : q;
    case 'm' << 8 | 'a': return p > q ? p : q;
    case 'a' << 8 | 'n': return p & q;
    case 'o' << 8 | 'r': return p | q;
    case 'x' << 8 | 'o': return p ^ q;
    case 's' << 8 | 'h': return op[2] == 'l' ? p * ((Wide)1 << by) : p >> by;
    default: return 0;
    }
}

static uint64_t rng_state = 1234567;
static uint64_t rng(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state;
}

enum { N = 64 };

static void check_integers(void)
{
    static const TlDtype types[] = {TL_I8, TL_I16, TL_I32, TL_I64, TL_U8, TL_U16, TL_U32, TL_U64};
    static const char *ops[] = {"add", "sub", "mul", "div", "rem", "min",  "max",
                                "and", "or",  "xor", "shl", "shr", "mulhi"};
    uint64_t x[N], y[N], z[N];
    for (int t = 0; t < COUNT(types); t++) {
        TlDtype d = types[t];
        bool is_signed = tl_is_signed(d);
        int width = tl_dtype_bits(d);
        uint64_t special[] = {0, 1,           2, ~0ull, tl_dtype_max_bits(d), tl_dtype_min_bits(d),
                              7, (uint64_t)-7};
        for (int i = 0; i < N; i++) {
            tl_elem_set(d, x, i, i % 3 ? rng() : special[i % 8]);
            tl_elem_set(d, y, i, i % 2 ? rng() >> (rng() % 60) : special[i / 8]);
        }
        for (int o = 0; o < COUNT(ops); o++) {
            size_t bytes = (size_t)tl_dtype_bytes(d);
            TlInterpArg args[] = {view1(x, N, bytes), view1(y, N, bytes), view1(z, N, bytes)};
            run(binary_kernel(ops[o], tl_dtype_name(d), tl_dtype_name(d), N), args);
            for (int i = 0; i < N; i++) {
                Wide p = tl_bits_to_int(d, tl_elem_get(d, x, i)),
                     q = tl_bits_to_int(d, tl_elem_get(d, y, i));
                if (d == TL_U64) p = (Wide)(uint64_t)p, q = (Wide)(uint64_t)q;
                uint64_t want = (uint64_t)slow_binary(ops[o], p, q, width, is_signed);
                if (width == 64 && strcmp(ops[o], "mulhi") == 0 && !is_signed)
                    want = (uint64_t)(((UWide)(uint64_t)p * (uint64_t)q) >> 64);
                if (width < 64) want &= ((uint64_t)1 << width) - 1;
                if (!CHECK(tl_elem_get(d, z, i) == want))
                    fprintf(stderr, "  %s %s at %d\n", ops[o], tl_dtype_name(d), i);
            }
        }
    }
    int32_t a[] = {0, 1, -1, INT32_MIN, 5, 256, -5, INT32_MAX}, r[8];
    TlInterpArg args[] = {view1(a, 8, 4), view1(r, 8, 4)};
    static const struct { const char *op; int32_t want[8];
    } rows[] = {
        {"neg", {0, -1, 1, INT32_MIN, -5, -256, 5, -INT32_MAX}},
        {"not", {-1, -2, 0, INT32_MAX, -6, -257, 4, INT32_MIN}},
        {"abs", {0, 1, 1, INT32_MIN, 5, 256, 5, INT32_MAX}},
        {"popcount", {0, 1, 32, 1, 2, 1, 31, 31}},
        {"clz", {32, 31, 0, 0, 29, 23, 0, 1}},
        {"ctz", {32, 0, 0, 31, 0, 8, 0, 0}},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        run(unary_kernel(rows[i].op, "", "i32", "i32", 8), args);
        CHECK(memcmp(r, rows[i].want, sizeof r) == 0);
    }
}

static double slow_float(const char *op, double p, double q)
{
    switch (op[0]) {
    case 'a': return p + q;
    case 's': return p - q;
    case 'd': return p / q;
    case 'r': return fmod(p, q);
    default: break;
    }
    if (op[1] == 'u') return p * q;
    if (strlen(op) > 3 && (p != p || q != q)) return NAN;
    if (p != p) return q;
    if (q != q) return p;
    bool less = p < q || (p == q && signbit(p));
    return (op[1] == 'i') == less ? p : q;
}

static void check_floats(void)
{
    static const TlDtype types[] = {TL_F16, TL_BF16, TL_F32, TL_F64};
    static const char *ops[] = {"add", "sub", "mul",     "div",    "rem",
                                "min", "max", "min_nan", "max_nan"};
    static const double special[] = {0.0, -0.0, 1, -1.5, INFINITY, -INFINITY, NAN, 0x1p-14};
    uint64_t x[N], y[N], z[N];
    for (int t = 0; t < COUNT(types); t++) {
        TlDtype d = types[t];
        size_t bytes = (size_t)tl_dtype_bytes(d);
        for (int i = 0; i < N; i++) {
            tl_elem_set(
                d, x, i,
                tl_bits_from_double(d, i % 2 ? (double)(int64_t)rng() * 0x1p-60 : special[i % 8]));
            tl_elem_set(
                d, y, i,
                tl_bits_from_double(d, i % 3 ? (double)(int64_t)rng() * 0x1p-62 : special[i / 8]));
        }
        for (int o = 0; o < COUNT(ops); o++) {
            TlInterpArg args[] = {view1(x, N, bytes), view1(y, N, bytes), view1(z, N, bytes)};
            run(binary_kernel(ops[o], tl_dtype_name(d), tl_dtype_name(d), N), args);
            for (int i = 0; i < N; i++) {
                double p = tl_bits_to_double(d, tl_elem_get(d, x, i)),
                       q = tl_bits_to_double(d, tl_elem_get(d, y, i));
                double want = slow_float(ops[o], p, q),
                       got = tl_bits_to_double(d, tl_elem_get(d, z, i));
                uint64_t bits = tl_bits_from_double(d, want); /* exact or 53 bits wide, then once */
                if (!CHECK(want != want ? got != got : tl_elem_get(d, z, i) == bits))
                    fprintf(stderr, "  %s %s of %g and %g: %g, not %g\n", ops[o], tl_dtype_name(d),
                            p, q, got, want);
            }
        }
    }
    static const float zeros[] = {0.0f, -0.0f, -0.0f, 0.0f}, other[] = {-0.0f, 0.0f, -0.0f, 0.0f};
    float zero[4];
    /* min, max and their propagating forms: -0 is below +0 */
    for (int o = 5; o < COUNT(ops); o++) {
        TlInterpArg args[] = {view1((void *)zeros, 4, 4), view1((void *)other, 4, 4),
                              view1(zero, 4, 4)};
        run(binary_kernel(ops[o], "f32", "f32", 4), args);
        for (int i = 0; i < 2; i++) CHECK(zero[i] == 0 && !signbit(zero[i]) == (ops[o][1] == 'a'));
        CHECK(signbit(zero[2]) && !signbit(zero[3]));
    }
    float a[] = {2.5f, -2.5f, 3.5f, -0.4f, 1e30f, 0.25f, -1.75f, 9}, r[8];
    TlInterpArg args[] = {view1(a, 8, 4), view1(r, 8, 4)};
    static const struct { const char *op; float want[8];
    } rows[] = {
        {"floor", {2, -3, 3, -1, 1e30f, 0, -2, 9}},
        {"ceil", {3, -2, 4, -0.0f, 1e30f, 1, -1, 9}},
        {"trunc", {2, -2, 3, -0.0f, 1e30f, 0, -1, 9}},
        {"rint", {2, -2, 4, -0.0f, 1e30f, 0, -2, 9}},
        {"round", {3, -3, 4, -0.0f, 1e30f, 0, -2, 9}},
        {"neg", {-2.5f, 2.5f, -3.5f, 0.4f, -1e30f, -0.25f, 1.75f, -9}},
        {"abs", {2.5f, 2.5f, 3.5f, 0.4f, 1e30f, 0.25f, 1.75f, 9}},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        run(unary_kernel(rows[i].op, "", "f32", "f32", 8), args);
        CHECK(memcmp(r, rows[i].want, sizeof r) == 0);
    }
    float roots[8] = {4, 2, 0, -0.0f, INFINITY, 1e-40f, 0.25f, 3};
    args[0] = view1(roots, 8, 4);
    run(unary_kernel("sqrt", "", "f32", "f32", 8), args);
    for (int i = 0; i < 8; i++) CHECK(r[i] == sqrtf(roots[i]));
}

static void check_compare_select_fma(void)
{
    float x[] = {1, 2, NAN, 0, -0.0f, 3, INFINITY, -1},
          y[] = {1, 3, 1, -0.0f, 0, NAN, INFINITY, -2};
    static const struct { const char *op; uint8_t want[8];
    } rows[] = {
        {"eq", {1, 0, 0, 1, 1, 0, 1, 0}}, {"ne", {0, 1, 1, 0, 0, 1, 0, 1}},
        {"lt", {0, 1, 0, 0, 0, 0, 0, 0}}, {"le", {1, 1, 0, 1, 1, 0, 1, 0}},
        {"gt", {0, 0, 0, 0, 0, 0, 0, 1}}, {"ge", {1, 0, 0, 1, 1, 0, 1, 1}},
    };
    uint8_t r[8];
    TlInterpArg args[] = {view1(x, 8, 4), view1(y, 8, 4), view1(r, 8, 1)};
    for (int i = 0; i < COUNT(rows); i++) {
        run(binary_kernel(rows[i].op, "f32", "bool", 8), args);
        CHECK(memcmp(r, rows[i].want, 8) == 0);
    }
    uint64_t big[2] = {~0ull, 1}, one[2] = {1, ~0ull};
    TlInterpArg uargs[] = {view1(big, 2, 8), view1(one, 2, 8), view1(r, 2, 1)};
    run(binary_kernel("lt", "u64", "bool", 2), uargs);
    CHECK(r[0] == 0 && r[1] == 1);
    run(binary_kernel("lt", "i64", "bool", 2), uargs);
    CHECK(r[0] == 1 && r[1] == 0);

    float a[4] = {0x1.000002p0f, 3, 1e30f, -2}, s[4], t[4], f[4];
    TlInterpArg sargs[] = {view1(a, 4, 4), view1(s, 4, 4), view1(t, 4, 4), view1(f, 4, 4),
                           scalar(1)};
    run("kernel @k(%x: view<const f32, 1>, %s: view<f32, 1>, %t: view<f32, 1>, %f: view<f32, 1>, "
        "%c: bool) {\n"
        "  %0 = const {value = 0} : i32\n"
        "  %a = load %x, %0 {axes = [4]} : tile<f32, 4>\n"
        "  %z = const {value = 0.5} : tile<f32, 4>\n"
        "  %n = neg %a : tile<f32, 4>\n"
        "  %m = lt %z, %a : tile<bool, 4>\n"
        "  %1 = select %m, %a, %z : tile<f32, 4>\n"
        "  %2 = select %c, %n, %z : tile<f32, 4>\n"
        "  %p = mul %a, %a : tile<f32, 4>\n"
        "  %q = neg %p : tile<f32, 4>\n"
        "  %3 = fma %a, %a, %q : tile<f32, 4>\n"
        "  store %s, %0, %1 {axes = [4]}\n"
        "  store %t, %0, %2 {axes = [4]}\n"
        "  store %f, %0, %3 {axes = [4]}\n"
        "  return\n}\n",
        sargs);
    CHECK(s[0] == a[0] && s[1] == 3 && s[3] == 0.5f && t[0] == -a[0] && t[3] == 2);
    CHECK(f[0] == 0x1p-46f && f[1] == 0);
}

/* The fast loops of cast mean what tl_cast_bits means, for every pair. */
static void check_casts(void)
{
    uint64_t x[N], z[N];
    for (TlDtype from = 0; from < TL_DTYPE_COUNT; from++)
        for (TlDtype to = 0; to < TL_DTYPE_COUNT; to++) {
            if (tl_dtype_bits(from) < 8 || tl_dtype_bits(to) < 8 || from == to) continue;
            for (int i = 0; i < N; i++)
                tl_elem_set(
                    from, x, i,
                    tl_is_float(from)
                        ? tl_bits_from_double(from, (double)(int64_t)rng() * ldexp(1, -40 - i % 30))
                        : rng());
            TlInterpArg args[] = {view1(x, N, (size_t)tl_dtype_bytes(from)),
                                  view1(z, N, (size_t)tl_dtype_bytes(to))};
            run(unary_kernel("cast", "", tl_dtype_name(from), tl_dtype_name(to), N), args);
            int bad = 0;
            for (int i = 0; i < N; i++)
                bad += tl_elem_get(to, z, i) !=
                       tl_cast_bits(from, to, tl_elem_get(from, x, i), TL_ROUND_NEAREST, false);
            if (!CHECK(bad == 0))
                fprintf(stderr, "  %s to %s\n", tl_dtype_name(from), tl_dtype_name(to));
        }
    float f[4] = {1.999f, -1e9f, 1e9f, 0.3f};
    uint8_t e[4];
    TlInterpArg args[] = {view1(f, 4, 4), view1(e, 4, 1)};
    run(unary_kernel("cast", "{round = zero}", "f32", "f8e5m2", 4), args);
    CHECK(e[0] == 0x3f && e[1] == 0xfb && e[2] == 0x7b);
    run(unary_kernel("cast", "{nosat}", "f32", "f8e4m3", 4), args);
    CHECK(e[0] == 0x40 && e[1] == 0xff && e[2] == 0x7f);
    uint32_t u[4];
    args[1] = view1(u, 4, 4);
    run(unary_kernel("bitcast", "", "f32", "u32", 4), args);
    CHECK(memcmp(u, f, 16) == 0);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void check_shapes(void)
{
    int32_t x[24], t[24], b[24], e[24];
    for (int i = 0; i < 24; i++) x[i] = 100 + i;
    TlInterpArg args[] = {view3(x, 2, 3, 4, 4), view3(t, 4, 2, 3, 4), view2(b, 6, 4, 4),
                          view1(e, 24, 4)};
    run("kernel @k(%x: view<const i32, 3>, %t: view<i32, 3>, %b: view<i32, 2>, %e: view<i32, 1>) "
        "{\n"
        "  %0 = const {value = 0} : i32\n"
        "  %a = load %x, %0, %0, %0 {axes = [2, 3, 4]} : tile<i32, 2, 3, 4>\n"
        "  %1 = trans %a {perm = [2, 0, 1]} : tile<i32, 4, 2, 3>\n"
        "  store %t, %0, %0, %0, %1 {axes = [4, 2, 3]}\n"
        "  %v = iota : tile<i32, 6>\n"
        "  %c = expand %v {axis = 1} : tile<i32, 6, 1>\n"
        "  %d = broadcast %c : tile<i32, 6, 4>\n"
        "  %w = iota : tile<i32, 4>\n"
        "  %r = expand %w {axis = 0} : tile<i32, 1, 4>\n"
        "  %s = broadcast %r : tile<i32, 6, 4>\n"
        "  %ten = const {value = 10} : i32\n"
        "  %tens = broadcast %ten : tile<i32, 6, 4>\n"
        "  %m = mul %d, %tens : tile<i32, 6, 4>\n"
        "  %n = add %m, %s : tile<i32, 6, 4>\n"
        "  store %b, %0, %0, %n {axes = [6, 4]}\n"
        "  %f = reshape %1 : tile<i32, 24>\n"
        "  store %e, %0, %f {axes = [24]}\n"
        "  return\n}\n",
        args);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 3; k++) CHECK_INT(t[(i * 2 + j) * 3 + k], x[(j * 3 + k) * 4 + i]);
    for (int i = 0; i < 24; i++) CHECK_INT(b[i], i / 4 * 10 + i % 4);
    CHECK(memcmp(e, t, sizeof t) == 0);
}

/* ---- reductions and scans -------------------------------------------------------------------- */

static const char *reduce_kernel(const char *op, int axis, const char *kind, const char *type,
                                 const char *shape, const char *axes)
{
    return TEXT("kernel @k(%%x: view<const %s, 3>, %%y: view<%s, %d>) {\n"
                "  %%0 = const {value = 0} : i32\n"
                "  %%a = load %%x, %%0, %%0, %%0 {axes = [2, 5, 3]} : tile<%s, 2, 5, 3>\n"
                "  %%r = %s %%a {axis = %d, kind = %s} : tile<%s, %s>\n"
                "  store %%y, %s, %%r {axes = [%s]}\n"
                "  return\n}\n",
                type, type, strcmp(op, "scan") == 0 ? 3 : 2, type, op, axis, kind, type, shape,
                strcmp(op, "scan") == 0 ? "%0, %0, %0" : "%0, %0", axes);
}

static int32_t fold2(const char *kind, int32_t a, int32_t b)
{
    switch (kind[0]) {
    case 'a': return kind[1] == 'd' ? a + b : a & b;
    case 'o': return a | b;
    case 'x': return a ^ b;
    default: return kind[1] == 'u' ? a * b : (kind[1] == 'a') == (a > b) ? a : b;
    }
}

static void check_reduce_kinds(void)
{
    static const char *kinds[] = {"add", "mul", "max", "min", "and", "or", "xor"};
    static const int shape[3] = {2, 5, 3}, stride[3] = {15, 3, 1};
    int32_t x[30], y[30];
    for (int i = 0; i < 30; i++) x[i] = (int32_t)(rng() % 19) - 9;
    for (int k = 0; k < COUNT(kinds); k++)
        for (int axis = 0; axis < 3; axis++) {
            int o1 = axis == 0 ? 1 : 0, o2 = axis == 2 ? 1 : 2;
            char left[32], comma[32];
            snprintf(left, sizeof left, "%d, %d", shape[o1], shape[o2]);
            snprintf(comma, sizeof comma, "%d, %d", shape[o1], shape[o2]);
            TlInterpArg args[] = {view3(x, 2, 5, 3, 4), view2(y, shape[o1], shape[o2], 4)};
            run(reduce_kernel("reduce", axis, kinds[k], "i32", left, comma), args);
            TlInterpArg scan_args[] = {view3(x, 2, 5, 3, 4), view3(y, 2, 5, 3, 4)};
            for (int i = 0; i < shape[o1]; i++)
                for (int j = 0; j < shape[o2]; j++) {
                    int at = i * stride[o1] + j * stride[o2];
                    int32_t acc = x[at];
                    for (int m = 1; m < shape[axis]; m++)
                        acc = fold2(kinds[k], acc, x[at + m * stride[axis]]);
                    CHECK_INT(y[i * shape[o2] + j], acc);
                }
            run(reduce_kernel("scan", axis, kinds[k], "i32", "2, 5, 3", "2, 5, 3"), scan_args);
            for (int i = 0; i < shape[o1]; i++)
                for (int j = 0; j < shape[o2]; j++) {
                    int at = i * stride[o1] + j * stride[o2];
                    int32_t acc = x[at];
                    for (int m = 0; m < shape[axis]; m++) {
                        if (m) acc = fold2(kinds[k], acc, x[at + m * stride[axis]]);
                        CHECK_INT(y[at + m * stride[axis]], acc);
                    }
                }
        }
    uint16_t h[30], s[30]; /* 2048 + 1 + 1 is 2048 when each sum is rounded to f16 */
    for (int i = 0; i < 30; i++)
        h[i] = tl_f32_to_f16(i / 3 % 5 == 0 ? 2048 : i / 3 % 5 == 1 || i / 3 % 5 == 3 ? 1 : 0);
    TlInterpArg args[] = {view3(h, 2, 5, 3, 2), view2(s, 2, 3, 2)};
    run(reduce_kernel("reduce", 1, "add", "f16", "2, 3", "2, 3"), args);
    CHECK(tl_f16_to_f32(s[0]) == 2050);
}

/* (s, t) after (a, b): x -> t(x) is affine; composing them is associative, not commutative. With
 * `flow`, the same combiner computes its product in an `if`. */
static void check_user_scan(bool flow, bool reverse)
{
    enum { R = 3, K = 7 };
    int32_t m[R * K], c[R * K], ym[R * K], yc[R * K];
    for (int i = 0; i < R * K; i++) m[i] = (int32_t)(rng() % 3), c[i] = (int32_t)(rng() % 10);
    TlInterpArg args[] = {view2(m, R, K, 4), view2(c, R, K, 4), view2(ym, R, K, 4),
                          view2(yc, R, K, 4), scalar(0)};
    run(TEXT("kernel @k(%%m: view<const i32, 2>, %%c: view<const i32, 2>, %%ym: view<i32, 2>, "
             "%%yc: view<i32, 2>, %%zero: i32) {\n"
             "  %%0 = const {value = 0} : i32\n"
             "  %%a = load %%m, %%0, %%0 {axes = [3, 7]} : tile<i32, 3, 7>\n"
             "  %%b = load %%c, %%0, %%0 {axes = [3, 7]} : tile<i32, 3, 7>\n"
             "  %%p, %%q = scan %%a, %%b {axis = 1, kind = user%s} : tile<i32, 3, 7>, tile<i32, 3, "
             "7> "
             "(%%a1: i32, %%a2: i32, %%b1: i32, %%b2: i32) {\n"
             "    %%m1 = mul %%a1, %%b1 : i32\n"
             "    %%z = add %%m1, %%zero : i32\n"
             "%s"
             "    %%s = add %%t, %%b2 : i32\n"
             "    yield %%z, %%s\n"
             "  }\n"
             "  store %%ym, %%0, %%0, %%p {axes = [3, 7]}\n"
             "  store %%yc, %%0, %%0, %%q {axes = [3, 7]}\n"
             "  return\n}\n",
             reverse ? ", reverse" : "",
             flow ? "    %e = eq %b1, %zero : bool\n"
                    "    %t = if %e : i32 () {\n      yield %zero\n    } () {\n"
                    "      %tt = mul %a2, %b1 : i32\n      yield %tt\n    }\n"
                  : "    %t = mul %a2, %b1 : i32\n"),
        args);
    for (int r = 0; r < R; r++)
        for (int step = 0, am = 0, ac = 0; step < K; step++) {
            int i = r * K + (reverse ? K - 1 - step : step);
            if (step) ac = ac * m[i] + c[i], am *= m[i];
            else am = m[i], ac = c[i];
            CHECK_INT(ym[i], am);
            CHECK_INT(yc[i], ac);
        }
}

/* Greatest value and its first index, over the first axis, with and without control flow. */
static void check_user_reduce(bool flow)
{
    enum { K = 9, C = 4 };
    float x[K * C], v[C];
    int32_t at[C];
    for (int i = 0; i < K * C; i++) x[i] = (float)(rng() % 6);
    TlInterpArg args[] = {view2(x, K, C, 4), view1(v, C, 4), view1(at, C, 4)};
    const char *plain = "    %s = select %w, %v1, %v2 : f32\n    %i = select %w, %i1, %i2 : i32\n  "
                        "  yield %s, %i\n";
    const char *branch = "    %s, %i = if %w : f32, i32 () {\n      yield %v1, %i1\n    } () {\n   "
                         "   yield %v2, %i2\n    }\n    yield %s, %i\n";
    run(TEXT("kernel @k(%%x: view<const f32, 2>, %%v: view<f32, 1>, %%at: view<i32, 1>) {\n"
             "  %%0 = const {value = 0} : i32\n"
             "  %%a = load %%x, %%0, %%0 {axes = [9, 4]} : tile<f32, 9, 4>\n"
             "  %%n = iota : tile<i32, 9>\n"
             "  %%c = expand %%n {axis = 1} : tile<i32, 9, 1>\n"
             "  %%m = broadcast %%c : tile<i32, 9, 4>\n"
             "  %%p, %%q = reduce %%a, %%m {axis = 0, kind = user} : tile<f32, 4>, tile<i32, 4> "
             "(%%v1: f32, %%i1: i32, %%v2: f32, %%i2: i32) {\n"
             "    %%g = gt %%v1, %%v2 : bool\n"
             "    %%e = eq %%v1, %%v2 : bool\n"
             "    %%l = lt %%i1, %%i2 : bool\n"
             "    %%el = and %%e, %%l : bool\n"
             "    %%w = or %%g, %%el : bool\n"
             "%s"
             "  }\n"
             "  store %%v, %%0, %%p {axes = [4]}\n"
             "  store %%at, %%0, %%q {axes = [4]}\n"
             "  return\n}\n", flow ? branch : plain), args);
    for (int c = 0; c < C; c++) {
        int best = 0;
        for (int k = 1; k < K; k++)
            if (x[k * C + c] > x[best * C + c]) best = k;
        CHECK(v[c] == x[best * C + c]);
        CHECK_INT(at[c], best);
    }
}

/* ---- dot ------------------------------------------------------------------------------------- */

static void check_dot(TlDtype ab, TlDtype acc, int batch)
{
    enum { M = 5, K = 7, C = 6 };
    uint64_t a[2 * M * K], b[2 * K * C], c[2 * M * C], y[2 * M * C];
    for (int i = 0; i < batch * M * K; i++)
        tl_elem_set(ab, a, i, tl_bits_from_int(ab, (int64_t)(rng() % 15) - 7));
    for (int i = 0; i < batch * K * C; i++)
        tl_elem_set(ab, b, i, tl_bits_from_int(ab, (int64_t)(rng() % 15) - 7));
    for (int i = 0; i < batch * M * C; i++)
        tl_elem_set(acc, c, i, tl_bits_from_int(acc, (int64_t)(rng() % 15) - 7));
    size_t sab = (size_t)tl_dtype_bytes(ab), sacc = (size_t)tl_dtype_bytes(acc);
    TlInterpArg args[] = {view3(a, batch, M, K, sab), view3(b, batch, K, C, sab),
                          view3(c, batch, M, C, sacc), view3(y, batch, M, C, sacc)};
    const char *ta = tl_dtype_name(ab), *tc = tl_dtype_name(acc), *first = batch > 1 ? "2" : "i",
               *lead = batch > 1 ? "2, " : "";
    run(TEXT("kernel @k(%%a: view<const %s, 3>, %%b: view<const %s, 3>, %%c: view<const %s, 3>, "
             "%%y: view<%s, 3>) {\n"
             "  %%0 = const {value = 0} : i32\n"
             "  %%1 = load %%a, %%0, %%0, %%0 {axes = [%s, 5, 7]} : tile<%s, %s5, 7>\n"
             "  %%2 = load %%b, %%0, %%0, %%0 {axes = [%s, 7, 6]} : tile<%s, %s7, 6>\n"
             "  %%3 = load %%c, %%0, %%0, %%0 {axes = [%s, 5, 6]} : tile<%s, %s5, 6>\n"
             "  %%4 = dot %%1, %%2, %%3 : tile<%s, %s5, 6>\n"
             "  store %%y, %%0, %%0, %%0, %%4 {axes = [%s, 5, 6]}\n"
             "  return\n}\n",
             ta, ta, tc, tc, first, ta, lead, first, ta, lead, first, tc, lead, tc, lead, first),
        args);
    for (int g = 0; g < batch; g++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < C; j++) {
                int at = (g * M + i) * C + j;
                double want = tl_bits_to_double(acc, tl_elem_get(acc, c, at));
                for (int k = 0; k < K; k++)
                    want += tl_bits_to_double(ab, tl_elem_get(ab, a, (g * M + i) * K + k)) *
                            tl_bits_to_double(ab, tl_elem_get(ab, b, (g * K + k) * C + j));
                CHECK(tl_bits_to_double(acc, tl_elem_get(acc, y, at)) == want);
            }
}

/* ---- control --------------------------------------------------------------------------------- */

static void check_for(void)
{
    static const struct { int64_t lo, hi, step, trips, last;
    } rows[] = {
        {0, 10, 1, 10, 9},
        {0, 10, 3, 4, 9},
        {10, 0, -3, 4, 1},
        {0, 0, 1, 0, 0},
        {0, 10, 0, 0, 0},
        {0, 10, -1, 0, 0},
        {5, -5, 1, 0, 0},
        {INT64_MAX - 3, INT64_MAX, 2, 2, INT64_MAX - 1},
        {INT64_MIN + 2, INT64_MIN, -1, 2, INT64_MIN + 1},
        {INT64_MIN, INT64_MAX, INT64_MAX, 3, INT64_MAX - 1},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        int64_t y[3] = {0};
        TlInterpArg args[] = {scalar((uint64_t)rows[i].lo), scalar((uint64_t)rows[i].hi),
                              scalar((uint64_t)rows[i].step), view1(y, 3, 8)};
        run("kernel @k(%lo: i64, %hi: i64, %step: i64, %y: view<i64, 1>) {\n"
            "  %zero = const {value = 0} : i64\n"
            "  %one = const {value = 1} : i64\n"
            "  %two = const {value = 2} : i64\n"
            "  %n, %l = for %lo, %hi, %step, %zero, %zero : i64, i64 (%i: i64, %cn: i64, %cl: i64) "
            "{\n"
            "    %a = add %cn, %one : i64\n"
            "    yield %a, %i\n"
            "  }\n"
            "  store %y, %zero, %n {axes = [i]}\n"
            "  store %y, %one, %l {axes = [i]}\n"
            "  return\n}\n",
            args);
        CHECK_INT(y[0], rows[i].trips);
        CHECK_INT(y[1], rows[i].last);
    }
}

/* Carried tiles change places in every iteration; memory does not grow with the trip count. */
static void check_carried(void)
{
    int32_t y[24];
    long long bytes[2];
    for (int turn = 0; turn < 2; turn++) {
        TlInterpArg args[] = {view2(y, 3, 8, 4), scalar(turn ? 20001 : 5)};
        bytes[turn] = run(
            "kernel @k(%y: view<i32, 2>, %n: i32) {\n"
            "  %0 = const {value = 0} : i32\n"
            "  %1 = const {value = 1} : i32\n"
            "  %v = iota : tile<i32, 8>\n"
            "  %z = const {value = 7} : tile<i32, 8>\n"
            "  %p, %q, %r, %s = for %0, %n, %1, %v, %z, %v, %v : tile<i32, 8>, tile<i32, 8>, "
            "tile<i32, 8>, tile<i32, 8> "
            "(%i: i32, %a: tile<i32, 8>, %b: tile<i32, 8>, %c: tile<i32, 8>, %d: tile<i32, 8>) {\n"
            "    %e = add %a, %b : tile<i32, 8>\n"
            "    %w = sub %e, %b : tile<i32, 8>\n"
            "    yield %b, %w, %w, %d\n"
            "  }\n"
            "  store %y, %0, %0, %p {axes = [i, 8]}\n"
            "  store %y, %1, %0, %q {axes = [i, 8]}\n"
            "  %2 = const {value = 2} : i32\n"
            "  store %y, %2, %0, %r {axes = [i, 8]}\n"
            "  return\n}\n",
            args);
        for (int i = 0; i < 8; i++) {
            CHECK_INT(y[i], 7);
            CHECK_INT(y[8 + i], i);
            CHECK_INT(y[16 + i], i);
        }
    }
    CHECK(bytes[0] == bytes[1]);
}

static void check_while_and_if(void)
{
    for (int start = 1; start < 30; start += 7) { /* Collatz: steps and the greatest value */
        int32_t y[2];
        TlInterpArg args[] = {view1(y, 2, 4), scalar((uint64_t)start)};
        run("kernel @k(%y: view<i32, 1>, %n: i32) {\n"
            "  %0 = const {value = 0} : i32\n"
            "  %1 = const {value = 1} : i32\n"
            "  %2 = const {value = 2} : i32\n"
            "  %3 = const {value = 3} : i32\n"
            "  %v, %s, %m = while %n, %0, %n : i32, i32, i32 (%a: i32, %b: i32, %c: i32) {\n"
            "    %go = ne %a, %1 : bool\n"
            "    condition %go, %a, %b, %c\n"
            "  } (%d: i32, %e: i32, %f: i32) {\n"
            "    %r = rem %d, %2 : i32\n"
            "    %odd = eq %r, %1 : bool\n"
            "    %next = if %odd : i32 () {\n"
            "      %t = mul %d, %3 : i32\n"
            "      %u = add %t, %1 : i32\n"
            "      yield %u\n"
            "    } () {\n"
            "      %h = div %d, %2 : i32\n"
            "      yield %h\n"
            "    }\n"
            "    %g = add %e, %1 : i32\n"
            "    %x = max %f, %next : i32\n"
            "    yield %next, %g, %x\n"
            "  }\n"
            "  store %y, %0, %s {axes = [i]}\n"
            "  store %y, %1, %m {axes = [i]}\n"
            "  return\n}\n", args);
        int steps = 0, top = start;
        for (int v = start; v != 1; steps++) {
            v = v % 2 ? 3 * v + 1 : v / 2;
            if (v > top) top = v;
        }
        CHECK_INT(y[0], steps);
        CHECK_INT(y[1], top);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void check_slices(void)
{
    static const int64_t starts[] = {
        0, -3, 5, 8, 100, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_MAX - 5, -8};
    int16_t x[10], y[8], z[10];
    for (int i = 0; i < 10; i++) x[i] = (int16_t)(i + 1);
    for (int s = 0; s < COUNT(starts); s++)
        for (int step = -2; step <= 3; step++) {
            if (step == 0) continue;
            TlInterpArg args[] = {view1(x, 10, 2), view1(y, 8, 2), view1(z, 10, 2),
                                  scalar((uint64_t)starts[s])};
            for (int i = 0; i < 10; i++) z[i] = -1;
            run(TEXT("kernel @k(%%x: view<const i16, 1>, %%y: view<i16, 1>, %%z: view<i16, 1>, "
                     "%%s: i64) {\n"
                     "  %%0 = const {value = 0} : i32\n"
                     "  %%pad = const {value = -7} : tile<i16, 8>\n"
                     "  %%a = load %%x, %%s, %%pad {axes = [8:%d], other} : tile<i16, 8>\n"
                     "  store %%y, %%0, %%a {axes = [8]}\n"
                     "  %%v = iota : tile<i16, 8>\n"
                     "  %%in = inside %%z, %%s {axes = [8:%d]} : tile<bool, 8>\n"
                     "  store %%z, %%s, %%v {axes = [8:%d]}\n"
                     "  assert %%in {text = \"some are out\"}\n"
                     "  return\n}\n",
                     step, step, step),
                args);
            int outside = 0;
            for (int i = 0; i < 8; i++) {
                Wide at = (Wide)starts[s] + (Wide)step * i;
                bool in = at >= 0 && at < 10;
                outside += !in;
                CHECK_INT(y[i], in ? x[at] : -7);
                if (in) CHECK_INT(z[at], i);
            }
            for (int j = 0; j < 10; j++) {
                Wide d = (Wide)j - starts[s];
                bool hit = d % step == 0 && d / step >= 0 && d / step < 8;
                CHECK(hit || z[j] == -1);
            }
            CHECK_INT(said.fails, outside > 0);
        }
}

static void check_gather(void)
{
    float x[6 * 8], y[4 * 3], p[4], w[2 * 2 * 4];
    int32_t i[4] = {5, -1, 0, 2}, j[3] = {7, 8, 3};
    int64_t q[4] = {0, 5, 5, 100};
    for (int k = 0; k < 48; k++) x[k] = (float)(k + 1);
    TlInterpArg args[] = {view2(x, 6, 8, 4), view1(i, 4, 4), view1(j, 3, 4),      view1(q, 4, 8),
                          view2(y, 4, 3, 4), view1(p, 4, 4), view3(w, 2, 2, 4, 4)};
    run("kernel @k(%x: view<f32, 2>, %i: view<const i32, 1>, %j: view<const i32, 1>, %q: "
        "view<const i64, 1>, %y: view<f32, 2>, %p: view<f32, 1>, %w: view<f32, 3>) {\n"
        "  %0 = const {value = 0} : i32\n"
        "  %a = load %i, %0 {axes = [4]} : tile<i32, 4>\n"
        "  %b = load %j, %0 {axes = [3]} : tile<i32, 3>\n"
        "  %c = load %q, %0 {axes = [4]} : tile<i64, 4>\n"
        "  %g = load %x, %a, %b {axes = [t, t]} : tile<f32, 4, 3>\n"
        "  store %y, %0, %0, %g {axes = [4, 3]}\n"
        "  %a2 = reshape %a : tile<i32, 2, 2>\n"
        "  %c2 = reshape %c : tile<i64, 2, 2>\n"
        "  %h = load %x, %a2, %c2 {axes = [t, t]} : tile<f32, 2, 2>\n"
        "  %h1 = reshape %h : tile<f32, 4>\n"
        "  store %p, %0, %h1 {axes = [4]}\n"
        "  %two = const {value = 2} : i32\n"
        "  %s = load %x, %a2, %two {axes = [t, 4]} : tile<f32, 2, 2, 4>\n"
        "  store %w, %0, %0, %0, %s {axes = [2, 2, 4]}\n"
        "  %vi = iota : tile<i32, 4>\n"
        "  %v = cast %vi : tile<f32, 4>\n"
        "  %one = const {value = 1} : tile<i32, 4>\n"
        "  store %x, %one, %0, %v {axes = [t, i]}\n"
        "  return\n}\n",
        args);
    for (int k = 0; k < 12; k++) {
        int r = i[k / 3], c = j[k % 3];
        CHECK(y[k] == (r < 0 || c > 7 ? 0 : (float)(r * 8 + c + 1)));
    }
    for (int k = 0; k < 4; k++)
        CHECK(p[k] == (i[k] < 0 || q[k] > 7 ? 0 : (float)(i[k] * 8 + q[k] + 1)));
    for (int k = 0; k < 16; k++)
        CHECK(w[k] == (i[k / 4] < 0 ? 0 : (float)(i[k / 4] * 8 + 2 + k % 4 + 1)));
    CHECK(x[8] == 3); /* all four went to one place: the last stays */
}

static void check_pointers(void)
{
    int32_t x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {0}, z[4] = {0};
    TlInterpArg args[] = {
        {.address = x, .bytes = 32}, {.address = y, .bytes = 32}, view2(z, 2, 2, 4), scalar(1)};
    run("kernel @k(%x: ptr<const i32>, %y: ptr<i32>, %z: view<i32, 2>, %c: bool) {\n"
        "  %v = iota : tile<i32, 8>\n"
        "  %three = const {value = 3} : tile<i32, 8>\n"
        "  %xs = broadcast %x : tile<ptr<const i32>, 8>\n"
        "  %ys = broadcast %y : tile<ptr<i32>, 8>\n"
        "  %xp = ptr_add %xs, %v : tile<ptr<const i32>, 8>\n"
        "  %yp = ptr_add %ys, %v : tile<ptr<i32>, 8>\n"
        "  %m = lt %v, %three : tile<bool, 8>\n"
        "  %o = const {value = 9} : tile<i32, 8>\n"
        "  %a = load %xp, %m, %o {mask, other} : tile<i32, 8>\n"
        "  %nm = not %m : tile<bool, 8>\n"
        "  %b = load %xp, %nm {mask} : tile<i32, 8>\n"
        "  %s = add %a, %b : tile<i32, 8>\n"
        "  store %yp, %s\n"
        "  %two = const {value = 2} : i64\n"
        "  %one = const {value = 1} : i64\n"
        "  %four = const {value = 4} : i64\n"
        "  %w = view %y, %two, %two, %four, %one : view<i32, 2>\n"
        "  %u = sub_view %w, %one, %one, %four, %four : view<i32, 2>\n"
        "  %0 = const {value = 0} : i32\n"
        "  %t = load %u, %0, %0 {axes = [2, 2]} : tile<i32, 2, 2>\n"
        "  store %z, %0, %0, %t {axes = [2, 2]}\n"
        "  %e = extent %u {axis = 0} : i64\n"
        "  %st = stride %u {axis = 0} : i64\n"
        "  %e32 = cast %e : i32\n"
        "  %s32 = cast %st : i32\n"
        "  %pz = view_ptr %u : ptr<i32>\n"
        "  %ps = select %c, %pz, %y : ptr<i32>\n"
        "  store %ps, %e32\n"
        "  %pn = ptr_add %ps, %one : ptr<i32>\n"
        "  store %pn, %s32\n"
        "  return\n}\n", args);
    CHECK_INT(y[0], 1);
    CHECK_INT(y[2], 3);
    CHECK_INT(y[3], 13);
    CHECK_INT(y[7], 17);
    /* (1, 1) of the 2 x 2 view with stride 4 is y[5] = 6 + 9; the rest is outside */
    CHECK_INT(z[0], 15);
    CHECK_INT(z[1] | z[2] | z[3], 0);
    CHECK_INT(y[5], 1);
    CHECK_INT(y[6], 4);
}

static void check_sub_view(void)
{
    static const struct { int64_t start, extent, got; int32_t first;
    } rows[] = {
        {0, 10, 10, 100},
        {3, 4, 4, 103},
        {-2, 4, 4, 100},
        {8, 5, 2, 108},
        {10, 5, 0, -1},
        {50, 5, 0, -1},
        {2, 0, 0, -1},
        {2, -7, 0, -1},
        {INT64_MIN, INT64_MAX, 10, 100},
        {INT64_MAX, INT64_MAX, 0, -1},
        {9, INT64_MAX, 1, 109},
    };
    int32_t x[10];
    for (int i = 0; i < 10; i++) x[i] = 100 + i;
    for (int i = 0; i < COUNT(rows); i++) {
        int64_t got = -1;
        int32_t first = 0;
        TlInterpArg args[] = {view1(x, 10, 4), scalar((uint64_t)rows[i].start),
                              scalar((uint64_t)rows[i].extent), view1(&got, 1, 8),
                              view1(&first, 1, 4)};
        run_grid("kernel @k(%x: view<const i32, 1>, %s: i64, %n: i64, %e: view<i64, 1>, %f: "
                 "view<i32, 1>) {\n"
                 "  %v = sub_view %x, %s, %n : view<const i32, 1>\n"
                 "  %0 = const {value = 0} : i32\n"
                 "  %m = extent %v {axis = 0} : i64\n"
                 "  %pad = const {value = -1} : i32\n"
                 "  %a = load %v, %0, %pad {axes = [i], other} : i32\n"
                 "  store %e, %0, %m {axes = [i]}\n"
                 "  store %f, %0, %a {axes = [i]}\n"
                 "  return\n}\n",
                 args, 1, true, false);
        CHECK_INT(got, rows[i].got);
        CHECK_INT(first, rows[i].first);
        CHECK_INT(said.fails, 0);
    }
}

static void check_packed(void)
{
    /* 2 rows of 5, one nibble of padding */
    uint8_t x[2][3] = {{0x21, 0x43, 0x85}, {0xa9, 0xcb, 0xed}};
    int32_t y[10], z[6];
    float f[10];
    TlInterpArg packed = {.address = x, .bytes = 6, .extent = {2, 5}, .stride = {6, 1}};
    TlInterpArg args[] = {packed,           packed, packed, view2(y, 2, 5, 4), view2(z, 2, 3, 4),
                          view2(f, 2, 5, 4)};
    run("kernel @k(%i: view<const i4, 2>, %u: view<const u4, 2>, %e: view<const f4e2m1, 2>, %y: "
        "view<i32, 2>, %z: view<i32, 2>, %f: view<f32, 2>) {\n"
        "  %0 = const {value = 0} : i32\n"
        "  %a = load %i, %0, %0 {axes = [2, 5]} : tile<i4, 2, 5>\n"
        "  %b = cast %a : tile<i32, 2, 5>\n"
        "  store %y, %0, %0, %b {axes = [2, 5]}\n"
        "  %l0 = const {value = 0} : i64\n"
        "  %l1 = const {value = 1} : i64\n"
        "  %l3 = const {value = 3} : i64\n"
        "  %s = sub_view %u, %l0, %l1, %l3, %l3 : view<const u4, 2>\n"
        "  %c = load %s, %0, %0 {axes = [2, 3]} : tile<u4, 2, 3>\n"
        "  %d = cast %c : tile<i32, 2, 3>\n"
        "  store %z, %0, %0, %d {axes = [2, 3]}\n"
        "  %g = load %e, %0, %0 {axes = [2, 5]} : tile<f4e2m1, 2, 5>\n"
        "  %h = cast %g : tile<f32, 2, 5>\n"
        "  store %f, %0, %0, %h {axes = [2, 5]}\n"
        "  return\n}\n",
        args);
    static const int32_t want_y[] = {1, 2, 3, 4, 5, -7, -6, -5, -4, -3},
                         want_z[] = {2, 3, 4, 10, 11, 12};
    static const float want_f[] = {0.5f, 1, 1.5f, 2, 3, -0.5f, -1, -1.5f, -2, -3};
    CHECK(memcmp(y, want_y, sizeof y) == 0);
    CHECK(memcmp(z, want_z, sizeof z) == 0);
    CHECK(memcmp(f, want_f, sizeof f) == 0);
}

/* ---- atomics --------------------------------------------------------------------------------- */

static void check_atomics(void)
{
    int32_t bins[4] = {10, 20, 30, 40}, old[6];
    int32_t at[6] = {1, 1, 3, 4, -1, 1};
    TlInterpArg args[] = {view1(bins, 4, 4), view1(at, 6, 4), view1(old, 6, 4)};
    run("kernel @k(%b: view<i32, 1>, %at: view<const i32, 1>, %o: view<i32, 1>) {\n"
        "  %0 = const {value = 0} : i32\n"
        "  %i = load %at, %0 {axes = [6]} : tile<i32, 6>\n"
        "  %v = const {value = 5} : tile<i32, 6>\n"
        "  %r = atomic_rmw %b, %i, %v {rmw = add, order = relaxed, scope = device, axes = [t]} : "
        "tile<i32, 6>\n"
        "  store %o, %0, %r {axes = [6]}\n"
        "  return\n}\n",
        args);
    static const int32_t want[] = {20, 25, 40, 0, 0, 30};
    CHECK(memcmp(old, want, sizeof old) == 0);
    CHECK(bins[0] == 10 && bins[1] == 35 && bins[3] == 45);

    static const struct { const char *op, *type; double x, v, want;
    } rows[] = {
        {"add", "f16", 1.5, 2.25, 3.75},    {"add", "bf16", 1.5, 2.25, 3.75},
        {"add", "f32", 1.5, 2.25, 3.75},    {"add", "f64", 1.5, 2.25, 3.75},
        {"add", "u64", 7, 8, 15},           {"min", "i32", -3, 2, -3},
        {"min", "u32", 4294967293.0, 2, 2}, {"max", "i64", -3, 2, 2},
        {"min", "f32", NAN, 2, 2},          {"max", "f64", 1, NAN, 1},
        {"and", "u32", 12, 10, 8},          {"or", "i32", 12, 10, 14},
        {"xor", "i64", 12, 10, 6},          {"xchg", "f32", 1, 5, 5},
        {"xchg", "u64", 1, 5, 5},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        TlDtype d = TL_BOOL;
        CHECK(tl_dtype_parse(rows[i].type, strlen(rows[i].type), &d));
        uint64_t x[1] = {0}, o[1] = {0};
        tl_elem_set(d, x, 0, tl_bits_from_double(d, rows[i].x));
        TlInterpArg a[] = {{.address = x, .bytes = 8},
                           scalar(tl_bits_from_double(d, rows[i].v)),
                           {.address = o, .bytes = 8}};
        run(TEXT("kernel @k(%%x: ptr<%s>, %%v: %s, %%o: ptr<%s>) {\n"
                 "  %%r = atomic_rmw %%x, %%v {rmw = %s, order = acq_rel, scope = system} : %s\n"
                 "  store %%o, %%r\n"
                 "  %%f = const {value = false} : bool\n"
                 "  %%n = atomic_rmw %%x, %%v, %%f {rmw = %s, order = acq_rel, scope = system, "
                 "mask} : %s\n"
                 "  return\n}\n",
                 rows[i].type, rows[i].type, rows[i].type, rows[i].op, rows[i].type, rows[i].op,
                 rows[i].type),
            a);
        CHECK(tl_bits_to_double(d, tl_elem_get(d, x, 0)) == rows[i].want);
        CHECK_INT(tl_elem_get(d, o, 0), tl_bits_from_double(d, rows[i].x));
    }
    float f[3] = {-0.0f, 1, 2}, of[3];
    TlInterpArg c[] = {view1(f, 3, 4), view1(of, 3, 4)};
    run("kernel @k(%x: view<f32, 1>, %o: view<f32, 1>) {\n"
        "  %0 = const {value = 0} : i32\n"
        "  %e = const {value = 0} : tile<f32, 4>\n"
        "  %d = const {value = 9} : tile<f32, 4>\n"
        "  %r = atomic_cas %x, %0, %e, %d {order = relaxed, scope = block, axes = [4]} : tile<f32, "
        "4>\n"
        "  %1 = const {value = 1} : i32\n"
        "  %one = const {value = 1} : f32\n"
        "  %d2 = const {value = 7} : f32\n"
        "  %s = atomic_cas %x, %1, %one, %d2 {order = relaxed, scope = block, axes = [i]} : f32\n"
        "  %l = atomic_load %x, %0 {order = acquire, scope = device, axes = [4]} : tile<f32, 4>\n"
        "  store %o, %0, %l {axes = [4]}\n"
        "  %2 = const {value = 2} : i32\n"
        "  atomic_store %x, %2, %s {order = release, scope = device, axes = [i]}\n"
        "  %no = const {value = false} : bool\n"
        "  %t = atomic_cas %x, %1, %d2, %one, %no {order = relaxed, scope = block, axes = [i], "
        "mask} : f32\n"
        "  %u = atomic_load %x, %1, %no {order = acquire, scope = device, axes = [i], mask} : f32\n"
        "  atomic_store %x, %1, %one, %no {order = release, scope = device, axes = [i], mask}\n"
        "  %w = add %t, %u : f32\n"
        "  store %o, %0, %w {axes = [i]}\n"
        "  return\n}\n",
        c);
    CHECK(of[0] == 0 && !signbit(of[0])); /* masked off: nothing happens, 0 comes back */
    /* -0 is not the bits of 0 */
    CHECK(f[1] == 7 && signbit(f[0]) && of[1] == 7 && of[2] == 2 && f[2] == 1);
}

/* Two programs on two threads add to the same places; nothing may get lost. */
typedef struct Racer {
    const TlFn *fn;
    const TlInterpArg *args;
    int32_t pid[6];
} Racer;

static void *race(void *user)
{
    Racer *r = user;
    static const int32_t npid[6] = {2, 1, 1, 1, 1, 1};
    TlInterpOptions options = {false, {NULL, NULL, NULL, NULL}};
    TlArena scratch;
    TlGuard g;
    tl_arena_init(&scratch, (TlAlloc){0});
    if (TL_GUARD(&g)) {
        tl_interp_program(r->fn, r->args, r->pid, npid, &options, &scratch);
        tl_guard_pop(&g);
    }
    tl_arena_free(&scratch);
    return NULL;
}

static void check_threads(void)
{
    TlCtx ctx;
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlModule *m = parse(&ctx, "kernel @k(%x: view<u16, 1>, %f: view<f64, 1>, %h: view<f16, 1>) {\n"
                              "  %0 = const {value = 0} : i32\n"
                              "  %1 = const {value = 1} : i32\n"
                              "  %n = const {value = 1000} : i32\n"
                              "  %i = const {value = 0} : tile<i32, 8>\n"
                              "  %d = const {value = 0.5} : tile<f64, 8>\n"
                              "  %e = const {value = 0.25} : f16\n"
                              "  for %0, %n, %1 (%j: i32) {\n"
                              "    %r = atomic_rmw %f, %i, %d {rmw = add, order = relaxed, scope = "
                              "device, axes = [t]} : tile<f64, 8>\n"
                              "    %s = atomic_rmw %h, %1, %e {rmw = add, order = relaxed, scope = "
                              "device, axes = [i]} : f16\n"
                              "    yield\n"
                              "  }\n"
                              "  return\n}\n");
    uint16_t x[2] = {0}, h[2] = {0, 0};
    double f[1] = {0};
    TlInterpArg args[] = {view1(x, 2, 2), view1(f, 1, 8), view1(h, 2, 2)};
    if (!CHECK(m != NULL)) return;
    Racer racers[2] = {{m->fns.data[0], args, {0}}, {m->fns.data[0], args, {1}}};
    pthread_t thread;
    if (CHECK(pthread_create(&thread, NULL, race, &racers[0]) == 0)) {
        race(&racers[1]);
        pthread_join(thread, NULL);
        CHECK(f[0] == 8000);
        CHECK(tl_f16_to_f32(h[1]) == 500 && h[0] == 0);
    }
    tl_ctx_free(&ctx);
}

/* ---- debugging and checks -------------------------------------------------------------------- */

static const char *check_kernel =
    "files \"k.tile\"\n"
    "kernel @k(%x: ptr<const f32>, %y: ptr<f32>, %v: view<f32, 1>, %at: i32, %c: bool) {\n"
    "  %p = ptr_add %x, %at : ptr<const f32> @3:7\n"
    "  %a = load %p : f32 @4:5\n"
    "  %q = ptr_add %y, %at : ptr<f32>\n"
    "  store %q, %a @6:1\n"
    "  store %v, %at, %a {axes = [i], unchecked} @7:1\n"
    "  assume %c @8:1\n"
    "  print %at {text = \"at\"}\n"
    "  return\n}\n";

static void check_checks(void)
{
    float x[11] = {0}, y[11] = {0}, v[11] = {0};
    uint8_t shadow[44];
    memset(shadow, 1, sizeof shadow);
    TlInterpArg args[] = {{.address = x, .bytes = 44, .shadow = shadow},
                          {.address = y, .bytes = 44},
                          view1(v, 11, 4),
                          scalar(10),
                          scalar(1)};
    run_grid(check_kernel, args, 2, true, false);
    CHECK_INT(said.fails, 0);
    CHECK_INT(said.prints, 2);
    CHECK_STR(said.shown, "1:at:1:10");
    args[3] = scalar(11);
    run_grid(check_kernel, args, 1, true, false);
    CHECK_INT(said.fails, 3);
    CHECK(said.kind == TL_FAIL_BOUNDS);
    CHECK_INT(said.line, 4);
    CHECK_STR(said.text, "load of 4 bytes at x + 44 is outside its 44 bytes");
    args[3] = scalar((uint64_t)-1);
    run_grid(check_kernel, args, 1, true, false);
    CHECK_STR(said.text, "load of 4 bytes at x - 4 is outside its 44 bytes");
    args[3] = scalar(3);
    shadow[14] = 0;
    run_grid(check_kernel, args, 1, true, false);
    CHECK(said.fails == 1 && said.kind == TL_FAIL_UNINIT && said.line == 4);
    CHECK_STR(said.text, "load of 4 bytes at x + 12, which nothing has written");
    shadow[14] = 1;
    args[4] = scalar(0);
    run_grid(check_kernel, args, 1, true, false);
    CHECK(said.fails == 1 && said.kind == TL_FAIL_ASSUME && said.line == 8);
    run_grid(check_kernel, args, 1, false, false);
    CHECK_INT(said.fails, 0);
    run_grid("files \"k.tile\"\n"
             "kernel @k(%c: i32) {\n"
             "  %v = iota : tile<i32, 4>\n"
             "  %d = broadcast %c : tile<i32, 4>\n"
             "  %b = ne %v, %d : tile<bool, 4>\n"
             "  assert %b {text = \"not equal\"} @9:2\n"
             "  return\n}\n", (TlInterpArg[]){scalar(2)}, 1, false, false);
    CHECK(said.fails == 1 && said.kind == TL_FAIL_ASSERT && said.line == 9);
    CHECK_STR(said.text, "not equal");
    run_grid("kernel @k(%c: bool) {\n" /* an endless loop is ended by stop */
             "  while () {\n    condition %c\n  } () {\n    yield\n  }\n"
             "  return\n}\n", (TlInterpArg[]){scalar(1)}, 1, false, true);
    CHECK_INT(said.stops, 4);
}

/* ---- folding --------------------------------------------------------------------------------- */

static void check_fold(void)
{
    TlCtx ctx;
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlGuard g;
    if (TL_GUARD(&g)) {
        TlModule *m = parse(&ctx, "kernel @k(%x: i32, %p: ptr<i32>) {\n"
                                  "  %v = iota : tile<i32, 5>\n"
                                  "  %w = mul %v, %v : tile<i32, 5>\n"
                                  "  %s = reduce %w {axis = 0, kind = add} : i32\n"
                                  "  %n = pid {axis = 0} : i32\n"
                                  "  %l = load %p : i32\n"
                                  "  return\n}\n");
        TlTileData v, w, s, none;
        if (CHECK(m != NULL)) {
            const TlOp *op = m->fns.data[0]->body->first;
            CHECK(tl_interp_eval(op, NULL, &v, &ctx.perm));
            op = op->next;
            CHECK(tl_interp_eval(op, (TlTileData[]){v, v}, &w, &ctx.perm));
            op = op->next;
            CHECK(tl_interp_eval(op, &w, &s, &ctx.perm));
            CHECK_INT(*(int32_t *)s.data, 30);
            CHECK(!tl_interp_eval(op->next, NULL, &none, &ctx.perm));
            CHECK(!tl_interp_eval(op->next->next, &w, &none, &ctx.perm));
        }
        tl_module_free(m);
        tl_guard_pop(&g);
    } else {
        CHECK(!"fault");
    }
    tl_ctx_free(&ctx);
}

int main(void)
{
    check_integers();
    check_floats();
    check_compare_select_fma();
    check_casts();
    check_shapes();
    check_reduce_kinds();
    for (int i = 0; i < 4; i++) check_user_scan(i & 1, i >> 1);
    check_user_reduce(false);
    check_user_reduce(true);
    check_dot(TL_F16, TL_F32, 1);
    check_dot(TL_BF16, TL_F32, 2);
    check_dot(TL_F8E4M3, TL_F32, 1);
    check_dot(TL_F8E5M2FNUZ, TL_F32, 1);
    check_dot(TL_F16, TL_F16, 1);
    check_dot(TL_F32, TL_F32, 2);
    check_dot(TL_F64, TL_F64, 1);
    check_dot(TL_I8, TL_I32, 2);
    check_for();
    check_carried();
    check_while_and_if();
    check_slices();
    check_gather();
    check_pointers();
    check_sub_view();
    check_packed();
    check_atomics();
    check_threads();
    check_checks();
    check_fold();
    return unit_result();
}
