/* The facts of axis_info.h.
 *
 * Golden facts: Triton's test-alignment.mlir as far as it has a meaning here (reference: appendix B
 * of the project's notes on Triton), as a table of ops and what is known of the last value. C, D, K
 * are contiguity, divisibility, constancy, "max" the divisibility of 0. Where ours says more, or
 * less because numbers may be negative or wrap, the row says so.
 *
 * Property: random functions over integers, with loops, branches, assumptions and shape ops, are
 * interpreted; each element of each value must be as its facts say. axis_info_test [SEED
 * [COUNT]]. */
#include "ir/interp/interp.h"
#include "ir/numeric.h"
#include "ir/rewrite.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/variants.h"
#include "passes/pass.h"
#include "test/unit/unit.h"
#include <stdlib.h>

static TlCtx ctx;

static TlModule *parse(const char *text)
{
    uint32_t source = tl_diags_source(&ctx.diags, "test.tir", text, strlen(text));
    TlModule *m = tl_parse_module(&ctx, source);
    if (CHECK(m))
        return m;
    TlSbuf out;
    tl_sbuf_init(&out, &ctx.perm);
    tl_diags_render(&ctx.diags, TL_DIAG_TEXT, false, &out);
    fprintf(stderr, "%s\n%s\n", text, out.text);
    return NULL;
}

static const char *number(int64_t x)
{
    return x == (int64_t)1 << 62 ? "max" : tl_format(&ctx.perm, "%" PRId64, x);
}

static const char *show(const TlAxisFacts *f, const TlType *t)
{
    TlSbuf s;
    tl_sbuf_init(&s, &ctx.perm);
    for (int d = 0; d < (t->rank ? t->rank : 1); d++)
        tl_sbuf_putf(&s, "%sC%s D%s K%s", d ? ", " : "", number(f->contiguity[d]),
                     number(f->divisibility[d]), number(f->constancy[d]));
    if (f->is_known)
        tl_sbuf_putf(&s, " =%" PRId64, f->value);
    return s.text;
}

/* ---- golden facts ---- */

typedef struct Row {
    const char *ops, *facts; /* of %v; %v0 is forbidden */
} Row;

/* What every row can use. %n: i32, %l: i64; %d16: i32 that is promised to be a multiple of 16 and
 * not negative; %s16, the same that may be negative. */
#define PRELUDE                                                                                    \
    "kernel @k(%n: i32, %l: i64, %d16: i32, %s16: i32, %l16: i64, %p: ptr<f32>, %c: bool) {\n"     \
    "  %zero = const {value = 0} : i32\n  %two = const {value = 2} : i32\n"                        \
    "  %sixteen = const {value = 16} : i32\n  %lzero = const {value = 0} : i64\n"                  \
    "  %lsixteen = const {value = 16} : i64\n"                                                     \
    "  %a0 = rem %d16, %sixteen : i32\n  %a1 = eq %a0, %zero : bool\n"                             \
    "  %a2 = ge %d16, %zero : bool\n  %a3 = and %a1, %a2 : bool\n  assume %a3\n"                   \
    "  %b0 = rem %s16, %sixteen : i32\n  %b1 = eq %b0, %zero : bool\n  assume %b1\n"               \
    "  %c0 = rem %l16, %lsixteen : i64\n  %c1 = eq %c0, %lzero : bool\n  assume %c1\n"             \
    "  %r = iota : tile<i32, 128>\n  %r8 = iota : tile<i32, 8>\n"                                  \
    "  %k0 = const {value = 0} : tile<i32, 128>\n  %k1 = const {value = 1} : tile<i32, 128>\n"     \
    "  %k2 = const {value = 2} : tile<i32, 128>\n  %k4 = const {value = 4} : tile<i32, 128>\n"     \
    "  %k6 = const {value = 6} : tile<i32, 128>\n  %k8 = const {value = 8} : tile<i32, 128>\n"     \
    "  %k16 = const {value = 16} : tile<i32, 128>\n  %k32 = const {value = 32} : tile<i32, 128>\n" \
    "  %k64 = const {value = 64} : tile<i32, 128>\n  %k66 = const {value = 66} : tile<i32, 128>\n" \
    "  %k192 = const {value = 192} : tile<i32, 128>\n"                                             \
    "  %k8192 = const {value = 8192} : tile<i32, 128>\n"                                           \
    "  %r1 = add %r, %k1 : tile<i32, 128>\n  %r16 = add %r, %k16 : tile<i32, 128>\n"               \
    "  %r32 = add %r, %k32 : tile<i32, 128>\n  %r8192 = add %r, %k8192 : tile<i32, 128>\n"         \
    "  %half = div %r, %k2 : tile<i32, 128>\n  %x4k2 = mul %half, %k4 : tile<i32, 128>\n"

static const Row rows[] = {
    /* const, splat, make_range */
    {"%v = const {value = 128} : tile<i32, 128>", "C1 D128 K128 =128"},
    {"%v = const {value = true} : bool", "C1 D1 K1 =1"},
    {"%v = broadcast %d16 : tile<i32, 128, 128>", "C1 D16 K128, C1 D16 K128"},
    {"%v = add %r, %k0 : tile<i32, 128>", "C128 Dmax K1"},
    {"%v = add %r, %k32 : tile<i32, 128>", "C128 D32 K1"},
    {"%v = iota : tile<i32, 96>", "C32 D32 K1"}, /* no power of two: aligned runs only */
    /* add, sub */
    {"%v = sub %r, %k1 : tile<i32, 128>", "C128 D1 K1"},
    {"%v = sub %k1, %r : tile<i32, 128>", "C1 D1 K1"},
    {"%v = sub %r, %r : tile<i32, 128>", "C1 Dmax K128"},  /* more: constant */
    {"%v = sub %r, %r1 : tile<i32, 128>", "C1 D1 K128"},   /* more */
    {"%v = sub %r, %r16 : tile<i32, 128>", "C1 D16 K128"}, /* more */
    {"%v = sub %r, %x4k2 : tile<i32, 128>", "C2 D2 K1"},
    {"%v = sub %x4k2, %x4k2 : tile<i32, 128>", "C1 D4 K2"},
    {"%v = add %r, %x4k2 : tile<i32, 128>", "C2 D2 K1"},
    {"%v = add %n, %d16 : i32", "C1 D1 K1"},
    {"%v = add %d16, %sixteen : i32", "C1 D16 K1"},
    /* mul, shl */
    {"%v = mul %r, %k1 : tile<i32, 128>", "C128 Dmax K1"},
    {"%v = mul %r, %k2 : tile<i32, 128>", "C1 D2 K1"},
    {"%x = const {value = 128} : tile<i32, 128>\n%v = mul %x, %k2 : tile<i32, 128>",
     "C1 D256 K128 =256"},
    {"%x = const {value = 4611686018427387904} : i64\n%v = mul %l16, %x : i64", "C1 Dmax K1"},
    {"%x = broadcast %n : tile<i32, 128>\n%v = mul %x, %k0 : tile<i32, 128>", "C1 Dmax K128 =0"},
    {"%v = shl %r, %k1 : tile<i32, 128>", "C1 D2 K1"},
    {"%v = shl %k8, %k1 : tile<i32, 128>", "C1 D16 K128"},
    {"%v = shl %s16, %two : i32", "C1 D64 K1"},
    /* div, shr */
    {"%v = div %r, %k1 : tile<i32, 128>", "C128 Dmax K1"},
    {"%v = div %k1, %r : tile<i32, 128>", "C1 D1 K1"},
    {"%v = div %r, %k64 : tile<i32, 128>", "C1 D1 K64"},
    {"%v = div %k64, %r : tile<i32, 128>", "C1 D1 K1"},
    {"%v = div %r, %k66 : tile<i32, 128>", "C1 D1 K2"},
    {"%v = div %r8192, %k64 : tile<i32, 128>", "C1 D1 K64"},
    {"%v = div %d16, %two : i32", "C1 D8 K1"},
    {"%x = const {value = 32} : i32\n%v = div %d16, %x : i32", "C1 D1 K1"},
    {"%x = const {value = 6} : i32\n%v = div %d16, %x : i32", "C1 D1 K1"},
    {"%x = sub %r, %k64 : tile<i32, 128>\n%v = div %x, %k64 : tile<i32, 128>",
     "C1 D1 K1"}, /* less: -64..-1 give -1, 0, ... 0 */
    {"%x = sub %r, %k64 : tile<i32, 128>\n%v = shr %x, %k6 : tile<i32, 128>", "C1 D1 K64"},
    {"%v = shr %r, %k4 : tile<i32, 128>", "C1 D1 K16"},
    {"%v = shr %s16, %two : i32", "C1 D4 K1"},
    /* rem */
    {"%v = rem %r, %k1 : tile<i32, 128>", "C1 Dmax K128 =0"},
    {"%v = rem %k1, %r : tile<i32, 128>", "C1 D1 K1"},
    {"%v = rem %r, %k64 : tile<i32, 128>", "C64 D64 K1"},
    {"%v = rem %r, %k66 : tile<i32, 128>", "C2 D2 K1"},
    {"%v = rem %r, %k192 : tile<i32, 128>", "C64 D64 K1"},
    {"%v = rem %r32, %k64 : tile<i32, 128>", "C32 D32 K1"},
    {"%v = rem %r, %r : tile<i32, 128>", "C1 D1 K1"},
    {"%x = sub %r, %k64 : tile<i32, 128>\n%v = rem %x, %k64 : tile<i32, 128>", "C1 D1 K1"},
    /* expand, broadcast, trans, reshape */
    {"%x = mul %r, %k2 : tile<i32, 128>\n%v = expand %x {axis = 1} : tile<i32, 128, 1>",
     "C1 D2 K1, C1 D2 K1"},
    {"%v = expand %r {axis = 0} : tile<i32, 1, 128>", "C1 D1 K1, C128 Dmax K1"},
    {"%x = expand %k64 {axis = 1} : tile<i32, 128, 1>\n%v = broadcast %x : tile<i32, 128, 128>",
     "C1 D64 K128, C1 D64 K128 =64"},
    {"%x = expand %r {axis = 1} : tile<i32, 128, 1>\n%v = broadcast %x : tile<i32, 128, 8>",
     "C128 Dmax K1, C1 D1 K8"},
    {"%x = expand %r {axis = 1} : tile<i32, 128, 1>\n%y = broadcast %x : tile<i32, 128, 8>\n"
     "%v = trans %y {perm = [1, 0]} : tile<i32, 8, 128>",
     "C1 D1 K8, C128 Dmax K1"},
    {"%v = reshape %r : tile<i32, 8, 16>", "C1 D1 K1, C16 D16 K1"},
    {"%v = reshape %half : tile<i32, 8, 16>", "C1 D1 K1, C1 D1 K2"},
    {"%x = reshape %r : tile<i32, 8, 16>\n%v = reshape %x : tile<i32, 128>", "C16 D16 K1"},
    {"%v = reshape %r : tile<i32, 1, 128, 1>", "C1 D1 K1, C128 Dmax K1, C1 D1 K1"},
    {"%x = expand %r8 {axis = 1} : tile<i32, 8, 1>\n%y = broadcast %x : tile<i32, 8, 16>\n"
     "%v = reshape %y : tile<i32, 128>",
     "C1 D1 K16"},
    {"%x = reshape %k64 : tile<i32, 8, 16>\n%y = expand %x {axis = 1} : tile<i32, 8, 1, 16>\n"
     "%z = broadcast %n : tile<i32, 8, 1, 16>\n%w = add %y, %z : tile<i32, 8, 1, 16>\n"
     "%v = reshape %w : tile<i32, 4, 32>",
     "C1 D1 K4, C1 D1 K32"}, /* whole axes that are constant go together */
    {"%x = iota : tile<i32, 12>\n%y = reshape %x : tile<i32, 3, 4>\n%v = reshape %y : tile<i32, 2, "
     "6>",
     "C1 D1 K1, C2 D2 K1"},
    /* comparisons with something on the right */
    {"%v = eq %r, %k0 : tile<bool, 128>", "C1 D1 K1"},
    {"%v = ne %r, %k0 : tile<bool, 128>", "C1 D1 K1"},
    {"%v = le %r, %k0 : tile<bool, 128>", "C1 D1 K1"},
    {"%v = gt %r, %k0 : tile<bool, 128>", "C1 D1 K1"},
    {"%v = lt %r, %k0 : tile<bool, 128>", "C1 Dmax K128 =0"}, /* more: the answer */
    {"%v = ge %r, %k0 : tile<bool, 128>", "C1 D1 K128 =1"},   /* more */
    {"%v = eq %k0, %r : tile<bool, 128>", "C1 D1 K1"},
    {"%v = ne %k0, %r : tile<bool, 128>", "C1 D1 K1"},
    {"%v = lt %k0, %r : tile<bool, 128>", "C1 D1 K1"},
    {"%v = ge %k0, %r : tile<bool, 128>", "C1 D1 K1"},
    {"%v = le %k0, %r : tile<bool, 128>", "C1 D1 K128 =1"},
    {"%v = gt %k0, %r : tile<bool, 128>", "C1 Dmax K128 =0"},
    {"%v = gt %k8, %r : tile<bool, 128>", "C1 D1 K8"},
    {"%v = gt %k8, %k1 : tile<bool, 128>", "C1 D1 K128 =1"},
    {"%x = broadcast %d16 : tile<i32, 128>\n%v = lt %r, %x : tile<bool, 128>", "C1 D1 K16"},
    {"%x = broadcast %n : tile<i32, 128>\n%v = lt %r, %x : tile<bool, 128>", "C1 D1 K1"},
    {"%x = add %r, %x4k2 : tile<i32, 128>\n%y = broadcast %d16 : tile<i32, 128>\n"
     "%v = ge %x, %y : tile<bool, 128>",
     "C1 D1 K2"},                                      /* cmp_partial_contiguous */
    {"%v = lt %r, %r1 : tile<bool, 128>", "C1 D1 K1"}, /* cmp_all_contiguous */
    /* logic */
    {"%v = and %r, %k64 : tile<i32, 128>", "C1 D64 K64"}, /* more: bits below 64 are gone */
    {"%v = or %r, %k64 : tile<i32, 128>", "C1 D1 K1"},
    {"%v = xor %r, %k64 : tile<i32, 128>", "C1 D1 K1"},
    {"%x = const {value = 15} : tile<i32, 128>\n%v = and %r, %x : tile<i32, 128>", "C16 D16 K1"},
    {"%x = div %r, %k8 : tile<i32, 128>\n%y = div %r, %k4 : tile<i32, 128>\n"
     "%v = or %x, %y : tile<i32, 128>",
     "C1 D1 K4"},
    /* select, min, max */
    {"%v = select %c, %r, %k64 : tile<i32, 128>", "C1 D1 K1"},
    {"%v = select %c, %r, %r32 : tile<i32, 128>", "C128 D32 K1"},
    {"%x = broadcast %c : tile<bool, 128>\n%v = select %x, %r, %r32 : tile<i32, 128>",
     "C128 D32 K1"},
    {"%x = lt %r, %k16 : tile<bool, 128>\n%v = select %x, %r, %r32 : tile<i32, 128>",
     "C16 D16 K1"}, /* select_cond_constancy_clamps_divisibility */
    {"%x = eq %r, %k16 : tile<bool, 128>\n%v = select %x, %k64, %k64 : tile<i32, 128>",
     "C1 D64 K128 =64"}, /* select_same_value_constancy */
    {"%x = const {value = true} : bool\n%v = select %x, %r, %k64 : tile<i32, 128>", "C128 Dmax K1"},
    {"%v = max %k64, %k16 : tile<i32, 128>", "C1 D64 K128 =64"},
    {"%v = min %k64, %k16 : tile<i32, 128>", "C1 D16 K128 =16"},
    {"%v = max %r, %k16 : tile<i32, 128>", "C1 D1 K1"},
    {"%v = max %r, %k0 : tile<i32, 128>", "C128 Dmax K1"}, /* cmp_after_max: never below 0 */
    {"%v = max %d16, %sixteen : i32", "C1 D16 K1"},
    /* casts */
    {"%v = cast %r : tile<i64, 128>", "C128 Dmax K1"},
    {"%v = cast %r : tile<i8, 128>", "C128 Dmax K1"},
    {"%v = cast %k64 : tile<i64, 128>", "C1 D64 K128 =64"},
    {"%v = cast %k64 : tile<f32, 128>", "C1 D1 K128"},
    {"%x = broadcast %n : tile<i32, 128>\n%y = add %x, %r : tile<i32, 128>\n"
     "%v = cast %y : tile<i64, 128>",
     "C1 D1 K1"}, /* less: may wrap inside of the run */
    {"%x = broadcast %s16 : tile<i32, 128>\n%y = add %x, %r : tile<i32, 128>\n"
     "%v = cast %y : tile<i64, 128>",
     "C16 D16 K1"},
    {"%x = const {value = 200} : tile<u8, 128>\n%v = cast %x : tile<i8, 128>", "C1 D8 K128 =-56"},
    /* pointers: D in bytes */
    {"%x = broadcast %p : tile<ptr<f32>, 128>\n%v = ptr_add %x, %r : tile<ptr<f32>, 128>",
     "C128 D4 K1"},
    {"%x = broadcast %p : tile<ptr<f32>, 128>\n%v = ptr_add %x, %k16 : tile<ptr<f32>, 128>",
     "C1 D4 K128"},
    {"%v = ptr_add %p, %d16 : ptr<f32>", "C1 D4 K1"},
    /* pointers from memory: as the address, at least aligned to the element */
    {"%u = cast %d16 : u64\n%v = pointer %u : ptr<f32>", "C1 D16 K1"},
    {"%u = cast %n : u64\n%v = pointer %u : ptr<f32>", "C1 D4 K1"},
    {"%u = cast %r : tile<u64, 128>\n%v = pointer %u : tile<ptr<f16>, 128>", "C1 D2 K1"},
    {"%u = cast %k64 : tile<u64, 128>\n%v = pointer %u : tile<ptr<f16>, 128>", "C1 D64 K128"},
    {"%u = cast %d16 : u64\n%x = pointer %u : ptr<f32>\n%y = broadcast %x : tile<ptr<f32>, 128>\n"
     "%v = ptr_add %y, %r : tile<ptr<f32>, 128>",
     "C128 D16 K1"},
    {"%v = address %p : u64", "C1 D1 K1"},
    /* loops and branches */
    {"%v = if %c : i32 () {\n yield %sixteen\n} () {\n yield %d16\n}", "C1 D16 K1"},
    {"%v = if %c : tile<i32, 128> () {\n yield %r\n} () {\n yield %r32\n}", "C128 D32 K1"},
    {"%v = for %zero, %n, %two, %d16 : i32 (%i: i32, %x: i32) {\n"
     " %y = add %x, %sixteen : i32\n yield %y\n}",
     "C1 D16 K1"},
    {"%four = const {value = 4} : i32\n"
     "%v = for %zero, %n, %two, %d16 : i32 (%i: i32, %x: i32) {\n"
     " %y = add %x, %four : i32\n yield %y\n}",
     "C1 D4 K1"},
    {"%v, %w = for %zero, %n, %two, %d16, %sixteen : i32, i32 (%i: i32, %x: i32, %y: i32) {\n"
     " %z = if %c : i32 () {\n  yield %y\n } () {\n  yield %two\n }\n yield %z, %x\n}",
     "C1 D2 K1"}, /* in the third round */
    {"%v = for %d16, %n, %sixteen, %zero : i32 (%i: i32, %x: i32) {\n yield %i\n}", "C1 D16 K1"},
    {"%v = while %r : tile<i32, 128> (%x: tile<i32, 128>) {\n condition %c, %x\n}"
     " (%y: tile<i32, 128>) {\n %z = add %y, %k32 : tile<i32, 128>\n yield %z\n}",
     "C128 D32 K1"},
    {"%v = while %r, %zero : i32 (%x: tile<i32, 128>, %i: i32) {\n condition %c, %i\n}"
     " (%j: i32) {\n %z = add %j, %two : i32\n yield %k32, %z\n}",
     "C1 D2 K1"}, /* carries two, gives one */
    {"%v = for %zero, %n, %two, %zero : i32 (%i: i32, %x: i32) {\n"
     " %y = for %zero, %i, %two, %x : i32 (%j: i32, %z: i32) {\n"
     "  %w = add %z, %j : i32\n  yield %w\n }\n yield %y\n}",
     "C1 D2 K1"}, /* for_if_for, chained_for */
    /* reductions: equal rows have equal sums */
    {"%x = expand %x4k2 {axis = 1} : tile<i32, 128, 1>\n%y = broadcast %x : tile<i32, 128, 8>\n"
     "%v = reduce %y {axis = 1, kind = add} : tile<i32, 128>",
     "C1 D1 K2"},
};

#define END "\n  return\n}\n"

static const char *text_of(const char *const *parts)
{
    TlSbuf s;
    tl_sbuf_init(&s, &ctx.perm);
    for (; *parts; parts++)
        tl_sbuf_puts(&s, *parts);
    return s.text;
}

static const TlValue *find_value(const TlFn *fn, const char *name)
{
    for (TlOp *op = fn->body->first; op; op = op->next)
        for (uint32_t i = 0; i < op->nout; i++)
            if (op->out[i]->name && !strcmp(op->out[i]->name, name))
                return op->out[i];
    return NULL;
}

static void golden_facts(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TlModule *m = parse(text_of((const char *[]){PRELUDE, rows[i].ops, END, NULL}));
        if (!m)
            continue;
        const TlFn *fn = m->fns.data[0];
        const TlValue *v = find_value(fn, "v");
        TlArena arena;
        tl_arena_init(&arena, (TlAlloc){0});
        if (CHECK(v) &&
            !CHECK_STR(show(tl_axis_facts(tl_axis_info(fn, &arena), v), v->type), rows[i].facts))
            fprintf(stderr, "    of %s\n", rows[i].ops);
        tl_arena_free(&arena);
        tl_module_free(m);
    }
}

/* ---- accesses ---- */

typedef struct AccessRow {
    const char *op;   /* the access, %v its result when it has one */
    const char *want; /* "dim D, width W", then "inside", "offset32" */
    bool aligned;
} AccessRow;

#define VIEWS                                                                                      \
    "kernel @k(%x: view<const f32, 1>, %h: view<const f16, 2>, %t: view<f32, 2>, %q: view<f32, "   \
    "2>, "                                                                                         \
    "%i: i32, %p: ptr<f32>) info {\n"                                                              \
    "    param \"x\" view const f32 [sym 0 : dense]\n"                                             \
    "    param \"h\" view const f16 [sym 1 : dense, sym 0 : dense]\n"                              \
    "    param \"t\" view f32 [sym 1 : const 1, sym 0 : sym 2]\n"                                  \
    "    param \"q\" view f32 [const 64 : dense, const 128 : dense]\n"                             \
    "    param \"i\" scalar i32\n    param \"p\" pointer f32\n"                                    \
    "    sym \"N\" extent 0, 0\n    sym \"M\" extent 1, 0\n    sym \"ld\" stride 2, 1\n"           \
    "    expr int \"cdiv(N, 64)\" [sym 0, const 64, cdiv]\n    grid 0\n"
#define INDICES                                                                                    \
    "  } {\n  %z = const {value = 0} : i32\n  %c64 = const {value = 64} : i32\n"                   \
    "  %pid = pid {axis = 0} : i32\n  %s = mul %pid, %c64 : i32\n"                                 \
    "  %r = iota : tile<i32, 64>\n"                                                                \
    "  %sv = broadcast %s : tile<i32, 64>\n  %o = add %sv, %r : tile<i32, 64>\n"                   \
    "  %ps = broadcast %p : tile<ptr<f32>, 64>\n"                                                  \
    "  %po = ptr_add %ps, %o : tile<ptr<f32>, 64>\n"

static const AccessRow accesses[] = {
    /* extents are not known: vectors only in the aligned kernel */
    {"%v = load %x, %s {axes = [64]} : tile<f32, 64>", "dim 0, width 1", false},
    {"%v = load %x, %s {axes = [64]} : tile<f32, 64>", "dim 0, width 4", true},
    {"%v = load %x, %i {axes = [64]} : tile<f32, 64>", "dim 0, width 1", true},
    {"%v = load %x, %s {axes = [6]} : tile<f32, 6>", "dim 0, width 2", true},
    {"%v = load %x, %s {axes = [64:2]} : tile<f32, 64>", "dim -1, width 1", true},
    {"%v = load %x, %s {axes = [i]} : f32", "dim -1, width 1", true},
    /* f16: eight; a row that is not known is no matter */
    {"%v = load %h, %i, %s {axes = [i, 64]} : tile<f16, 64>", "dim 0, width 8", true},
    {"%v = load %h, %i, %s {axes = [16, 64]} : tile<f16, 16, 64>", "dim 1, width 8", true},
    {"%v = load %h, %s, %i {axes = [64, 16]} : tile<f16, 64, 16>", "dim 1, width 1", true},
    /* the dense axis is the first one: its extent is promised, and the stride of the other */
    {"%v = load %t, %s, %i {axes = [64, 16]} : tile<f32, 64, 16>", "dim 0, width 4", true},
    {"%v = load %t, %s, %i {axes = [64, 16], unchecked} : tile<f32, 64, 16>",
     "dim 0, width 4, inside", true},
    /* constant extents: vectors need only the address */
    {"%v = load %q, %i, %z {axes = [16, 64]} : tile<f32, 16, 64>", "dim 1, width 4, offset32",
     true},
    {"%v = load %q, %i, %z {axes = [16, 64]} : tile<f32, 16, 64>", "dim 1, width 1, offset32",
     false},
    {"%v = load %q, %z, %c64 {axes = [16, 64]} : tile<f32, 16, 64>",
     "dim 1, width 4, inside, offset32", true},
    /* gathers: the index counts up, or another axis does */
    {"%v = load %x, %o {axes = [t]} : tile<f32, 64>", "dim 0, width 4", true},
    {"%w = mul %o, %sv : tile<i32, 64>\n%v = load %x, %w {axes = [t]} : tile<f32, 64>",
     "dim -1, width 1", true},
    {"%v = load %h, %o, %s {axes = [t, 64]} : tile<f16, 64, 64>", "dim 1, width 8", true},
    {"%c8 = const {value = 8} : tile<i32, 64>\n%row = div %r, %c8 : tile<i32, 64>\n"
     "%col = rem %r, %c8 : tile<i32, 64>\n%e = expand %row {axis = 0} : tile<i32, 1, 64>\n"
     "%f = expand %col {axis = 0} : tile<i32, 1, 64>\n"
     "%v = load %h, %e, %f {axes = [t, t]} : tile<f16, 1, 64>",
     "dim 1, width 8", true},
    /* masks: as long as they are constant */
    {"%n4 = const {value = 20} : tile<i32, 64>\n%m = lt %r, %n4 : tile<bool, 64>\n"
     "%v = load %x, %s, %m {axes = [64], mask} : tile<f32, 64>",
     "dim 0, width 4", true},
    {"%n2 = const {value = 18} : tile<i32, 64>\n%m = lt %r, %n2 : tile<bool, 64>\n"
     "%v = load %x, %s, %m {axes = [64], mask} : tile<f32, 64>",
     "dim 0, width 2", true},
    /* pointers */
    {"%v = load %po : tile<f32, 64>", "dim 0, width 1, inside", false},
    {"%v = load %po : tile<f32, 64>", "dim 0, width 4, inside", true},
    /* parts of views: clipped to the view, from where they start */
    {"%l = cast %c64 : i64\n%ls = cast %s : i64\n%part = sub_view %x, %ls, %l : view<const f32, "
     "1>\n"
     "%v = load %part, %z {axes = [16]} : tile<f32, 16>",
     "dim 0, width 4, offset32", true},
    {"%l = cast %c64 : i64\n%ls = cast %i : i64\n%part = sub_view %x, %ls, %l : view<const f32, "
     "1>\n"
     "%v = load %part, %z {axes = [16]} : tile<f32, 16>",
     "dim 0, width 1, offset32", true},
};

static const char *show_access(TlAccessInfo i)
{
    return tl_format(&ctx.perm, "dim %d, width %d%s%s", i.dim, i.width,
                     i.needs_bounds ? "" : ", inside", i.offset32 ? ", offset32" : "");
}

static void access_facts(void)
{
    for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++) {
        const AccessRow *row = &accesses[i];
        const char *aligned = row->aligned ? "    aligned\n" : "";
        TlModule *m = parse(text_of((const char *[]){VIEWS, aligned, INDICES, row->op, END, NULL}));
        if (!m)
            continue;
        const TlValue *v = find_value(m->fns.data[0], "v");
        TlArena arena;
        tl_arena_init(&arena, (TlAlloc){0});
        TlAxisInfo *a = tl_axis_info(m->fns.data[0], &arena);
        if (CHECK(v) && !CHECK_STR(show_access(tl_access_info(a, v->def)), row->want))
            fprintf(stderr, "    of %s\n", row->op);
        tl_arena_free(&arena);
        tl_module_free(m);
    }
}

/* ---- the tests of aligned kernels ---- */

/* Only what the accesses rest on is asked for: kind, parameter.axis, mask. */
static const AccessRow variants[] = {
    {"%v = load %x, %s {axes = [64]} : tile<f32, 64>", "pointer 0 15, extent 0.0 3, grid 1", true},
    {"%v = load %h, %i, %s {axes = [i, 64]} : tile<f16, 64>", "pointer 1 15, extent 1.1 7, grid 1",
     true}, /* the outer stride is that extent */
    {"%v = load %q, %i, %z {axes = [16, 64]} : tile<f32, 16, 64>",
     "pointer 3 15, stride 3.0 18446744073705357312, grid 1", true},
    {"%v = load %po : tile<f32, 64>", "pointer 5 15, grid 1", true},
    {"%v = load %x, %s {axes = [i]} : f32", "grid 1", true},
    {"%v = load %x, %i {axes = [64]} : tile<f32, 64>", "grid 1", true}, /* %i may be anything */
    {"%v = load %x, %s {axes = [64]} : tile<f32, 64>", "", false},
    /* the extent of one view places what is read of another */
    {"%e = extent %h {axis = 1} : i64\n%v = load %q, %z, %e {axes = [i, 4]} : tile<f32, 4>",
     "extent 1.1 7, pointer 3 15, grid 1", true},
};

static const char *show_tests(const TlTests *tests)
{
    static const char *const names[] = {"pointer", "extent", "stride", "span", "scalar", "grid"};
    TlSbuf s;
    tl_sbuf_init(&s, &ctx.perm);
    tl_sbuf_puts(&s, "");
    for (uint32_t i = 0; i < tests->len; i++) {
        const tile_image_test *t = &tests->data[i];
        tl_sbuf_putf(&s, "%s%s", i ? ", " : "", names[t->kind]);
        if (t->kind == TILE_TEST_EXTENT || t->kind == TILE_TEST_STRIDE)
            tl_sbuf_putf(&s, " %u.%u", t->param, t->axis);
        else if (t->kind != TILE_TEST_GRID)
            tl_sbuf_putf(&s, " %u", t->param);
        tl_sbuf_putf(&s, " %" PRIu64, t->mask);
    }
    return s.text;
}

/* What settle-variants has found is what is found again, and is forgotten when a pass changes the
 * kernel. */
static void check_kept(TlModule *m, const char *want)
{
    TlFn *fn = m->fns.data[0];
    TlTests kept = {0};
    tl_variant_settle(fn, &m->arena);
    CHECK(fn->info->tests_known);
    tl_variant_tests(fn, &m->arena, &kept);
    CHECK_STR(show_tests(&kept), want);
    CHECK(tl_run_passes(m, "dce", NULL));
    CHECK(!fn->info->tests_known);
}

static void tests_of_variants(void)
{
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const AccessRow *row = &variants[i];
        const char *aligned = row->aligned ? "    aligned\n" : "";
        TlModule *m = parse(text_of((const char *[]){VIEWS, aligned, INDICES, row->op, END, NULL}));
        TlTests tests = {0};
        if (!m)
            continue;
        tl_variant_tests(m->fns.data[0], &m->arena, &tests);
        if (!CHECK_STR(show_tests(&tests), row->want))
            fprintf(stderr, "    of %s\n", row->op);
        if (row->aligned)
            check_kept(m, row->want);
        tl_module_free(m);
    }
}

/* ---- sums of 32 bits ---- */

/* Volumes: of rows of 128; of any rows; with strides of their own; with an extent of i64; of 4
 * bits. Matrices: of any extents, of 2^31 elements and of a row more. */
#define VOLUMES                                                                                    \
    "kernel @k(%x: view<f16, 3>, %y: view<f32, 3>, %t: view<u8, 3>, %w: view<f16, 3>, "            \
    "%m: view<f64, 2>, %u: view<u4, 3>, %i: i32, %l: i64, %p: ptr<f32>, %e: view<u8, 2>, %f: "     \
    "view<u8, 2>) info {\n"                                                                        \
    "    param \"x\" view f16 [sym 0 : dense, sym 1 : dense, const 128 : dense]\n"                 \
    "    param \"y\" view f32 [sym 0 : dense, sym 1 : dense, sym 2 : dense]\n"                     \
    "    param \"t\" view u8 [sym 0 : sym 3, sym 1 : sym 4, sym 2 : const 1]\n"                    \
    "    param \"w\" view f16 [sym 0 : dense, i64 sym 5 : dense, sym 1 : dense]\n"                 \
    "    param \"m\" view f64 [sym 0 : dense, sym 1 : dense]\n"                                    \
    "    param \"u\" view u4 [sym 0 : dense, sym 1 : dense, const 128 : dense]\n"                  \
    "    param \"i\" scalar i32\n    param \"l\" scalar i64\n"                                     \
    "    param \"p\" pointer f32\n"                                                                \
    "    param \"e\" view u8 [const 16777216 : dense, const 128 : dense]\n"                        \
    "    param \"f\" view u8 [const 16777217 : dense, const 128 : dense]\n"                        \
    "    sym \"P\" extent 0, 0\n    sym \"H\" extent 0, 1\n    sym \"D\" extent 1, 2\n"            \
    "    sym \"s\" stride 2, 0\n    sym \"r\" stride 2, 1\n    sym \"L\" extent 3, 1\n"            \
    "    expr int \"P\" [sym 0]\n    grid 0\n"
#define ROW_16 " {axes = [i, 16, 128]} : tile<"

/* The first axis of those that fit 31 bits together, strides that the form asks to be short, those
 * that are; and what a launch tests. */
static const AccessRow sums[] = {
    /* a plane is below the stride of planes, if that is asked for; else a row is below that of
     * rows */
    {"%v = load %x, %i, %s, %z" ROW_16 "f16, 16, 128>",
     "inner 1, asked 1, low 7, stride 0.1 below 2^22, stride 0.0 below 2^31", true},
    {"%v = load %x, %i, %s, %z" ROW_16 "f16, 16, 128>", "inner 2, asked 0, low 6", false},
    {"%v = load %y, %i, %s, %z" ROW_16 "f32, 16, 128>",
     "inner 1, asked 1, low 7, stride 1.1 below 2^22, stride 1.0 below 2^30", true},
    {"%v = load %y, %i, %s, %z" ROW_16 "f32, 16, 128>", "inner 2, asked 0, low 4", false},
    /* what is not dense has no sum but along the last axis */
    {"%v = load %t, %i, %s, %z" ROW_16 "u8, 16, 128>",
     "inner 2, asked 1, low 7, stride 2.1 below 2^22, stride 2.0 below 2^31", true},
    {"%v = load %t, %i, %i, %z {axes = [i, i, 128]} : tile<u8, 128>",
     "inner 2, asked 3, low 7, stride 2.0 below 2^31, stride 2.1 below 2^31", true},
    /* planes of any number of rows: asked to be short, they hold less than 2^31 elements */
    {"%v = load %w, %i, %l, %z {axes = [i, i, 128]} : tile<f16, 128>",
     "inner 1, asked 1, low 5, stride 3.0 below 2^31", true},
    {"%v = load %w, %i, %l, %z {axes = [i, i, 128]} : tile<f16, 128>", "inner 2, asked 0, low 4",
     false},
    /* an index of 64 bits; a scalar access */
    {"%v = load %x, %l, %s, %z" ROW_16 "f16, 16, 128>",
     "inner 2, asked 0, low 6, stride 0.1 below 2^22", true},
    {"%v = load %x, %i, %i, %z {axes = [i, i, i]} : f16", "inner 2, asked 0, low 6", true},
    /* of a matrix the stride is an extent: below 2^31 elements, not below 2^32 bytes */
    {"%v = load %m, %i, %s {axes = [i, 64]} : tile<f64, 64>", "inner 1, asked 0, low 2", true},
    /* 2^31 elements, and a row more */
    {"%v = load %e, %i, %z {axes = [16, 128]} : tile<u8, 16, 128>", "inner 0, asked 0, low 3",
     false},
    {"%v = load %f, %i, %z {axes = [16, 128]} : tile<u8, 16, 128>", "inner 1, asked 0, low 3",
     false},
    /* a row of 4 bits is padded */
    {"%v = load %u, %i, %s, %z" ROW_16 "u4, 16, 128>",
     "inner 2, asked 1, low 7, stride 5.1 below 2^22, stride 5.0 below 2^31", true},
};

/* Strides that launches test, with the number of bits that they may have. */
static const char *show_strides(const TlFn *fn)
{
    TlTests tests = {0};
    TlSbuf s;
    tl_sbuf_init(&s, &ctx.perm);
    tl_variant_tests(fn, &ctx.perm, &tests);
    for (uint32_t i = 0; i < tests.len; i++)
        if (tests.data[i].kind == TILE_TEST_STRIDE && !(tests.data[i].mask & 1))
            tl_sbuf_putf(&s, ", stride %u.%u below 2^%d", tests.data[i].param, tests.data[i].axis,
                         __builtin_ctzll(tests.data[i].mask));
    tl_sbuf_puts(&s, "");
    return s.text;
}

static void sums_of_accesses(void)
{
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const AccessRow *row = &sums[i];
        const char *aligned = row->aligned ? "    aligned\n" : "";
        TlModule *m =
            parse(text_of((const char *[]){VOLUMES, aligned, INDICES, row->op, END, NULL}));
        if (!m)
            continue;
        TlFn *fn = m->fns.data[0];
        TlArena arena;
        tl_arena_init(&arena, (TlAlloc){0});
        TlAccessInfo a = tl_access_info(tl_axis_info(fn, &arena), find_value(fn, "v")->def);
        const char *got = tl_format(&ctx.perm, "inner %u, asked %x, low %x%s", a.inner, a.asked,
                                    a.low, show_strides(fn));
        if (!CHECK_STR(got, row->want))
            fprintf(stderr, "    of %s\n", row->op);
        tl_arena_free(&arena);
        tl_module_free(m);
    }
}

/* ---- random functions ---- */

enum { VALUES = 64, OPS = 40, PROGRAMS = 3, PROMISED = 16 };

typedef struct Gen {
    uint64_t state;
    TlFn *fn;
    TlBuilder b;
    TlValue *values[VALUES]; /* integers and bools in scope */
    int n, depth;
} Gen;

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static int pick(Gen *g, int n)
{
    uint64_t z = g->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (int)(((z ^ z >> 31) >> 33) % (unsigned)n);
}

static void keep(Gen *g, TlValue *v)
{
    g->values[g->n < VALUES ? g->n++ : pick(g, VALUES)] = v;
}

static const TlDtype integers[] = {TL_I32, TL_I32, TL_I32, TL_I64, TL_I8, TL_U8, TL_U32, TL_U64};
static const int32_t shapes[][3] = {{16, 0, 0}, {8, 0, 0},  {12, 0, 0}, {4, 8, 0},
                                    {1, 16, 0}, {16, 1, 0}, {6, 4, 0},  {2, 2, 4}};
static const int64_t numbers[] = {0,  1,  2,  3,   4,   6,  8,  12, 16,  31,
                                  32, 64, 96, 127, 100, -1, -2, -8, -16, 1 << 20};

static const TlType *random_type(Gen *g, TlDtype d)
{
    const int32_t *s = shapes[pick(g, COUNT(shapes))];
    return tl_type_tile(&ctx, d, pick(g, 4) == 0 ? 0 : 1 + (s[1] > 0) + (s[2] > 0), s);
}

static TlValue *constant(Gen *g, const TlType *t, bool nonzero)
{
    int64_t v = numbers[pick(g, COUNT(numbers))];
    uint64_t bits = tl_bits_from_int(t->dtype, v);
    return tl_const_bits(&g->b, t, bits || !nonzero ? bits : 1);
}

/* A value of the type: one there is, or made of one, or new. */
static TlValue *some(Gen *g, const TlType *t)
{
    for (int tries = 0; tries < 12 && g->n; tries++) {
        TlValue *v = g->values[pick(g, g->n)];
        if (v->type == t)
            return v;
        if (v->type->dtype == t->dtype && v->type->rank == 0)
            return tl_broadcast(&g->b, v, t->rank, t->shape);
        if (tl_same_shape(v->type, t) && !tl_is_bool(t->dtype))
            return tl_cast(&g->b, v, t->dtype);
    }
    if (t->rank == 1 && tl_is_int(t->dtype) && pick(g, 3))
        return tl_op_new(&g->b, TL_OP_IOTA, 0, NULL, 1, &t, 0, 0, NULL)->out[0];
    return constant(g, t, false);
}

static TlValue *any_value(Gen *g, bool number)
{
    for (int tries = 0; tries < 20 && g->n; tries++) {
        TlValue *v = g->values[pick(g, g->n)];
        if (!number || !tl_is_bool(v->type->dtype))
            return v;
    }
    return some(g, random_type(g, integers[pick(g, COUNT(integers))]));
}

static TlValue *arithmetic(Gen *g)
{
    static const TlOpcode ops[] = {TL_OP_ADD, TL_OP_ADD, TL_OP_SUB, TL_OP_MUL, TL_OP_DIV, TL_OP_DIV,
                                   TL_OP_REM, TL_OP_REM, TL_OP_AND, TL_OP_OR,  TL_OP_XOR, TL_OP_MIN,
                                   TL_OP_MAX, TL_OP_SHL, TL_OP_SHR, TL_OP_SHR};
    TlOpcode op = ops[pick(g, COUNT(ops))];
    TlValue *x = any_value(g, true);
    bool divides = op == TL_OP_DIV || op == TL_OP_REM; /* by 0 is not specified */
    TlValue *y = divides || pick(g, 2) ? constant(g, x->type, divides) : some(g, x->type);
    return pick(g, 6) ? tl_binary(&g->b, op, x, y)
           : divides  ? tl_unary(&g->b, TL_OP_NEG, x)
                      : tl_binary(&g->b, op, y, x);
}

static TlValue *comparison(Gen *g)
{
    static const TlOpcode ops[] = {TL_OP_EQ, TL_OP_NE, TL_OP_LT, TL_OP_LE, TL_OP_GT, TL_OP_GE};
    TlValue *x = any_value(g, true);
    TlValue *y = pick(g, 2) ? constant(g, x->type, false) : some(g, x->type);
    return pick(g, 2) ? tl_binary(&g->b, ops[pick(g, 6)], x, y)
                      : tl_binary(&g->b, ops[pick(g, 6)], y, x);
}

static TlValue *choice(Gen *g)
{
    TlValue *x = any_value(g, true);
    const TlType *c =
        pick(g, 3) ? tl_type_with_dtype(&ctx, x->type, TL_BOOL) : tl_type_scalar(&ctx, TL_BOOL);
    return tl_select(&g->b, some(g, c), x, some(g, x->type));
}

static TlValue *one_result(Gen *g, TlOpcode op, TlValue *x, const TlType *t, TlAttr attr)
{
    return tl_op_new(&g->b, op, 1, &x, 1, &t, 0, attr.id != TL_ATTR_COUNT, &attr)->out[0];
}

static TlValue *expanded(Gen *g, TlValue *x)
{
    int32_t shape[TL_MAX_RANK];
    int axis = pick(g, x->type->rank + 1);
    for (int d = 0; d <= x->type->rank; d++)
        shape[d] = d == axis ? 1 : x->type->shape[d - (d > axis)];
    TlValue *y =
        one_result(g, TL_OP_EXPAND, x, tl_type_with_shape(&ctx, x->type, x->type->rank + 1, shape),
                   (TlAttr){.id = TL_ATTR_AXIS, .u.i = axis});
    shape[axis] = 1 << pick(g, 4);
    return tl_broadcast(&g->b, y, x->type->rank + 1, shape);
}

static TlValue *transposed(Gen *g, TlValue *x)
{
    static const int64_t turns[4][3] = {{0}, {0}, {1, 0}, {1, 2, 0}};
    const int64_t *perm = turns[x->type->rank];
    int32_t shape[3];
    for (int d = 0; d < x->type->rank; d++)
        shape[d] = x->type->shape[perm[d]];
    return one_result(g, TL_OP_TRANS, x, tl_type_with_shape(&ctx, x->type, x->type->rank, shape),
                      (TlAttr){.id = TL_ATTR_PERM, .n = x->type->rank, .u.ints = perm});
}

static TlValue *reshaped(Gen *g, TlValue *x)
{
    int64_t n = tl_type_elems(x->type);
    int32_t shape[3] = {(int32_t)n, 1, 1};
    int rank = 1 + pick(g, 3);
    for (int d = 1; d < rank; d++)
        for (int32_t by = 1 << pick(g, 4); by > 1 && shape[d] == 1; by /= 2)
            if (shape[0] % by == 0) {
                shape[d] = by;
                shape[0] /= by;
            }
    return one_result(g, TL_OP_RESHAPE, x, tl_type_with_shape(&ctx, x->type, rank, shape),
                      (TlAttr){.id = TL_ATTR_COUNT});
}

static TlValue *shaped(Gen *g)
{
    TlValue *x = any_value(g, false);
    int how = pick(g, 4);
    if (x->type->rank == 0 || tl_type_elems(x->type) > 256)
        return x;
    if (how == 0 && x->type->rank < 3)
        return expanded(g, x);
    if (how == 1 && x->type->rank > 1 && x->type->rank <= 3)
        return transposed(g, x);
    if (how != 2)
        return reshaped(g, x);
    if (tl_is_bool(x->type->dtype))
        return x;
    int axis = pick(g, x->type->rank);
    int32_t shape[TL_MAX_RANK];
    for (int d = 0, n = 0; d < x->type->rank; d++)
        if (d != axis)
            shape[n++] = x->type->shape[d];
    const TlType *t = tl_type_with_shape(&ctx, x->type, x->type->rank - 1, shape);
    TlAttr attrs[] = {{.id = TL_ATTR_AXIS, .u.i = axis},
                      {.id = TL_ATTR_KIND, .u.i = pick(g, 2) ? TL_COMBINE_MAX : TL_COMBINE_MIN}};
    return tl_op_new(&g->b, TL_OP_REDUCE, 1, &x, 1, &t, 0, 2, attrs)->out[0];
}

static void fill(Gen *g, int ops);

static void fill_block(Gen *g, TlBlock *block, TlValue *const *out_types, uint32_t n)
{
    Gen inner = *g;
    inner.b = (TlBuilder){.fn = g->fn, .block = block};
    inner.depth++;
    for (uint32_t i = 0; i < block->nargs; i++)
        keep(&inner, block->args[i]);
    fill(&inner, 5);
    TlValue *yields[2];
    for (uint32_t i = 0; i < n; i++)
        yields[i] = some(&inner, out_types[i]->type);
    tl_yield(&inner.b, TL_OP_YIELD, n, yields);
    g->state = inner.state;
}

static void loop(Gen *g)
{
    const TlType *t = tl_type_scalar(&ctx, integers[pick(g, 5)]);
    static const int64_t bounds[][3] = {{0, 8, 2}, {4, 40, 12}, {8, -9, -4}, {0, 3, 1}, {5, 5, 1}};
    const int64_t *bound = bounds[pick(g, COUNT(bounds))];
    TlValue *in[5];
    for (int i = 0; i < 3; i++)
        in[i] = tl_const_int(&g->b, t, bound[i]);
    in[3] = any_value(g, true);
    in[4] = any_value(g, false);
    const TlType *types[2] = {in[3]->type, in[4]->type};
    TlOp *op = tl_op_new(&g->b, TL_OP_FOR, 5, in, 2, types, 1, 0, NULL);
    tl_block_arg(op->regions[0], t, NULL);
    tl_block_arg(op->regions[0], types[0], NULL);
    tl_block_arg(op->regions[0], types[1], NULL);
    fill_block(g, op->regions[0], in + 3, 2);
    keep(g, op->out[0]);
    keep(g, op->out[1]);
}

static void branch(Gen *g)
{
    TlValue *like = any_value(g, true), *c = some(g, tl_type_scalar(&ctx, TL_BOOL));
    TlOp *op = tl_op_new(&g->b, TL_OP_IF, 1, &c, 1, &like->type, 2, 0, NULL);
    fill_block(g, op->regions[0], &like, 1);
    fill_block(g, op->regions[1], &like, 1);
    keep(g, op->out[0]);
}

static void fill(Gen *g, int ops)
{
    for (int i = 0; i < ops; i++) {
        int what = pick(g, 20);
        if (what == 0 && g->depth < 2)
            loop(g);
        else if (what == 1 && g->depth < 3)
            branch(g);
        else if (what < 3)
            keep(g, some(g, random_type(g, integers[pick(g, COUNT(integers))])));
        else if (what < 10)
            keep(g, arithmetic(g));
        else if (what < 12)
            keep(g, comparison(g));
        else if (what < 14)
            keep(g, choice(g));
        else if (what < 16)
            keep(g, tl_cast(&g->b, any_value(g, false), integers[pick(g, COUNT(integers))]));
        else
            keep(g, shaped(g));
    }
}

/* The first argument is a promised multiple of 16. */
static void promise(Gen *g)
{
    TlValue *x = tl_block_arg(g->fn->body, tl_type_scalar(&ctx, TL_I32), NULL);
    TlValue *zero = tl_const_int(&g->b, x->type, 0);
    TlValue *rest = tl_binary(&g->b, TL_OP_REM, x, tl_const_int(&g->b, x->type, PROMISED));
    TlValue *c = tl_binary(&g->b, TL_OP_AND, tl_binary(&g->b, TL_OP_EQ, rest, zero),
                           tl_binary(&g->b, TL_OP_GE, x, zero));
    tl_op_new(&g->b, TL_OP_ASSUME, 1, &c, 0, NULL, 0, 0, NULL);
    keep(g, x);
    keep(g, tl_block_arg(g->fn->body, tl_type_scalar(&ctx, TL_I64), NULL));
    const TlType *t = tl_type_scalar(&ctx, TL_I32);
    TlAttr axis = {.id = TL_ATTR_AXIS};
    keep(g, tl_op_new(&g->b, TL_OP_PID, 0, NULL, 1, &t, 0, 1, &axis)->out[0]);
}

static TlModule *random_module(uint64_t seed)
{
    TlModule *m = tl_module_new(&ctx);
    Gen g = {.state = seed, .fn = tl_fn_new(m, "k", (TlLoc){0})};
    g.b = tl_builder_end(g.fn->body);
    promise(&g);
    for (int i = 0; i < 6; i++)
        keep(&g, some(&g, random_type(&g, TL_I32)));
    fill(&g, OPS);
    tl_yield(&g.b, TL_OP_RETURN, 0, NULL);
    return m;
}

/* ---- are the facts true? ---- */

typedef struct Truth {
    const TlAxisInfo *a;
    TlValue **values; /* by id */
    const char *wrong;
    uint64_t checked;
} Truth;

static int64_t element(const TlTileData *x, int64_t i)
{
    return tl_bits_to_int(x->type->dtype, tl_elem_get(x->type->dtype, x->data, i));
}

static bool equal_wrapped(TlDtype d, int64_t a, int64_t b)
{
    return tl_bits_from_int(d, a) == tl_bits_from_int(d, b);
}

/* Element i, which is number `at` along an axis where neighbours are `stride` elements apart. */
static const char *element_is_wrong(const TlAxisFacts *f, int d, const TlTileData *x, int64_t i,
                                    int64_t at, int64_t stride)
{
    int64_t c = f->contiguity[d], k = f->constancy[d];
    int64_t in_run = at % c, first = element(x, i - in_run * stride), v = element(x, i);
    if (!equal_wrapped(x->type->dtype, v, (int64_t)((uint64_t)first + (uint64_t)in_run)) &&
        !tl_is_bool(x->type->dtype))
        return "contiguity";
    if (in_run == 0 && ((uint64_t)v & ((uint64_t)f->divisibility[d] - 1)) != 0)
        return "divisibility";
    return element(x, i - at % k * stride) == v ? NULL : "constancy";
}

static const char *number_is_wrong(const TlAxisFacts *f, const TlTileData *x, int64_t i)
{
    int64_t v = element(x, i);
    if (f->is_known && f->value != v)
        return "value";
    bool any = x->type->dtype == TL_U64 && f->lo < 0;
    return any || (v >= f->lo && v <= f->hi) ? NULL : "range";
}

static const char *value_is_wrong(const TlAxisFacts *f, const TlTileData *x)
{
    int64_t n = tl_type_elems(x->type), stride = n;
    const char *wrong = NULL;
    for (int64_t i = 0; i < n && !wrong; i++)
        wrong = number_is_wrong(f, x, i);
    for (int d = 0; d < (x->type->rank ? x->type->rank : 1); d++) {
        int64_t extent = x->type->rank ? x->type->shape[d] : 1;
        stride /= extent;
        for (int64_t i = 0; i < n && !wrong; i++)
            wrong = element_is_wrong(f, d, x, i, i / stride % extent, stride);
    }
    return wrong;
}

static void on_print(void *user, const int32_t *pid, const char *text, TlTileData value)
{
    Truth *t = user;
    (void)pid;
    const TlValue *v = t->values[atoi(text)];
    const char *wrong = value_is_wrong(tl_axis_facts(t->a, v), &value);
    t->checked++;
    if (wrong && !t->wrong)
        t->wrong = tl_format(&ctx.perm, "value %u: %s of %s", v->id, wrong,
                             show(tl_axis_facts(t->a, v), v->type));
}

static void on_fail(void *user, const int32_t *pid, TlInterpFailKind kind, TlLoc loc,
                    const char *text)
{
    (void)pid, (void)loc, (void)kind;
    ((Truth *)user)->wrong = text;
}

static void print_value(TlFn *fn, Truth *t, TlValue *v, TlBlock *block, TlOp *before)
{
    t->values[v->id] = v;
    TlBuilder b = {.fn = fn, .block = block, .before = before};
    TlAttr text = {.id = TL_ATTR_TEXT, .u.s = tl_format(&fn->module->arena, "%u", v->id)};
    tl_op_new(&b, TL_OP_PRINT, 1, &v, 0, NULL, 0, 1, &text);
}

static void print_all(TlFn *fn, Truth *t)
{
    TL_VEC(TlOp *) ops = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        tl_vec_push(&fn->module->arena, &ops, op);
    for (uint32_t i = 0; i < ops.len; i++) {
        TlOp *op = ops.data[i];
        for (uint32_t r = 0; r < op->nout; r++)
            print_value(fn, t, op->out[r], op->block, op->next);
        for (uint32_t r = 0; r < op->nregions; r++)
            for (uint32_t k = 0; k < op->regions[r]->nargs; k++)
                print_value(fn, t, op->regions[r]->args[k], op->regions[r], op->regions[r]->first);
    }
}

static uint64_t true_of_random_functions(uint64_t seed)
{
    TlModule *m = random_module(seed);
    TlFn *fn = m->fns.data[0];
    TlSbuf faults, text;
    tl_sbuf_init(&faults, &m->arena);
    tl_sbuf_init(&text, &m->arena);
    tl_print_module(&text, m);
    if (!CHECK(tl_verify_fn(fn, &faults)))
        fprintf(stderr, "    seed %" PRIu64 ": %s\n%s", seed, faults.text, text.text);
    TlArena arena, scratch;
    tl_arena_init(&arena, (TlAlloc){0});
    tl_arena_init(&scratch, (TlAlloc){0});
    Truth t = {.a = tl_axis_info(fn, &arena)};
    t.values = TL_NEW_ARRAY(&arena, TlValue *, fn->nvalues);
    print_all(fn, &t);
    for (int p = 0; p < PROGRAMS && faults.len == 0; p++) {
        TlInterpArg args[2] = {{.scalar = (uint64_t)(p * p * PROMISED)},
                               {.scalar = (uint64_t)(p - 1) * 0x40000001u}};
        TlInterpOptions o = {.hooks = {.user = &t, .print = on_print, .fail = on_fail}};
        int32_t pid[6] = {p * 1000003}, npid[6] = {INT32_MAX, 1, 1, 1, 1, 1};
        tl_interp_program(fn, args, pid, npid, &o, &scratch);
        tl_arena_free(&scratch);
    }
    if (!CHECK_STR(t.wrong, NULL))
        fprintf(stderr, "    seed %" PRIu64 "\n%s", seed, text.text);
    tl_arena_free(&arena);
    tl_module_free(m);
    return t.checked;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, values = 0;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 800;
    tl_ctx_init(&ctx, (TlAlloc){0});
    golden_facts();
    access_facts();
    tests_of_variants();
    sums_of_accesses();
    for (uint64_t seed = first; seed < first + count && unit_failures < 5; seed++)
        values += true_of_random_functions(seed);
    CHECK(values > 50 * count || unit_failures);
    tl_ctx_free(&ctx);
    return unit_result();
}
