/* The CPU lowering on hand-written tile IR, through our own loader: against the
 * interpreter on the same memory: bit for bit, since the data are small integers. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/gen/codegen.h"
#include "codegen/target/worker.h"
#include "ir/interp/interp.h"
#include "ir/numeric.h"
#include "runtime/host/elf.h"
#include "test/unit/unit.h"

enum { MAX_ARGS = 10, BYTES = 1 << 16 };

typedef struct Row {
    const char *name;
    int64_t extent[MAX_ARGS][4], stride[MAX_ARGS][4]; /* by parameter; views */
    uint64_t scalar[MAX_ARGS];
    const char *text;
} Row;

static void show_diagnostics(TlCtx *ctx, TlArena *arena)
{
    TlSbuf s;
    tl_sbuf_init(&s, arena);
    tl_diags_render(&ctx->diags, TL_DIAG_TEXT, false, &s);
    fprintf(stderr, "%s\n", s.text);
}

/* The same for both runs: small integers in every element, or any bits in rows whose name starts
 * with "bits". */
static void fill_memory(const Row *row, TlDtype d, unsigned char *memory, unsigned seed)
{
    bool any = !strncmp(row->name, "bits", 4);
    for (int64_t i = 0; any && d != TL_BOOL && i < BYTES; i++) {
        seed = seed * 1664525u + 1013904223u;
        memory[i] = (unsigned char)(seed >> 24);
    }
    if (any && d != TL_BOOL)
        return;
    for (int64_t i = 0; i < BYTES / tl_dtype_bytes(d); i++) {
        seed = seed * 1664525u + 1013904223u;
        int64_t v = (int64_t)(seed >> 16) % 9 - (tl_dtype_kind(d) == TL_KIND_U ? 0 : 4);
        tl_elem_set(d, memory, i, tl_bits_from_int(d, v));
    }
}

static uint64_t slot_word(const Row *row, const tile_image_slot *s, unsigned char **memory)
{
    switch (s->kind) {
    case TILE_SLOT_POINTER: return (uint64_t)(uintptr_t)memory[s->param];
    case TILE_SLOT_SCALAR: return row->scalar[s->param];
    case TILE_SLOT_EXTENT: return (uint64_t)row->extent[s->param][s->axis];
    default: return (uint64_t)row->stride[s->param][s->axis];
    }
}

static void run_native(const Row *row, TlModule *m, TlArena *arena, unsigned char **memory)
{
    TlCodegenOptions o = {.target = tl_target_find("cpu", NULL), .opt_level = 3};
    TlKernelCodes k = {0};
    size_t size;
    if (getenv("CPU_TEST_LLVM"))
        printf("%s\n", (char *)tl_cpu_compile(m, &o, TL_EMIT_LLVM, arena, &k, &size));
    k.len = 0;
    void *object = tl_cpu_compile(m, &o, TL_EMIT_OBJ, arena, &k, &size), *entry;
    tl_elf *elf;
    if (!CHECK(tl_elf_load(object, size, TL_ELF_HOST, NULL, 0, k.data[0].symbol, &elf, &entry) ==
               TILE_OK))
        return;
    uint64_t params[64];
    for (uint32_t i = 0; i < k.data[0].slots.len; i++)
        params[i] = slot_word(row, &k.data[0].slots.data[i], memory);
    static const tile_cpu_services services = {.fmod = fmod, .fmodf = fmodf};
    tile_cpu_ctx c = {.services = &services,
                      .scratch = aligned_alloc(64, k.data[0].scratch_bytes + 64),
                      .npid = {1, 1, 1, 1, 1, 1},
                      .cache_bytes = strstr(row->name, "stream") ? 0 : UINT64_MAX,
                      .count = 1,
                      .rows = 1};
    tile_cpu_kernel kernel;
    memcpy(&kernel, &entry, sizeof kernel);
    memset(c.scratch, 0xAB, k.data[0].scratch_bytes);
    memset(c.scratch, 0, k.data[0].zeroed_bytes);
    kernel(&c, params);
    free(c.scratch);
    tl_elf_free(elf);
}

static void run_reference(const Row *row, const TlFn *fn, TlArena *arena, unsigned char **memory)
{
    TlInterpArg args[MAX_ARGS] = {{0}};
    int32_t pid[6] = {0}, npid[6] = {1, 1, 1, 1, 1, 1};
    for (uint32_t i = 0; i < fn->body->nargs; i++) {
        args[i] = (TlInterpArg){.address = memory[i], .bytes = BYTES, .scalar = row->scalar[i]};
        memcpy(args[i].extent, row->extent[i], sizeof row->extent[i]);
        memcpy(args[i].stride, row->stride[i], sizeof row->stride[i]);
    }
    TlInterpOptions o = {0};
    tl_interp_program(fn, args, pid, npid, &o, arena);
}

static bool same_element(TlDtype d, uint64_t a, uint64_t b)
{
    double x = tl_bits_to_double(d, a), y = tl_bits_to_double(d, b);
    return a == b || (tl_is_float(d) && x != x && y != y); /* a NaN is a NaN */
}

static void compare(const Row *row, const TlFn *fn, unsigned char **got, unsigned char **want)
{
    for (uint32_t i = 0; i < fn->body->nargs; i++) {
        TlDtype d = fn->body->args[i]->type->dtype;
        int64_t k = 0, n = BYTES / tl_dtype_bytes(d);
        while (k < n && same_element(d, tl_elem_get(d, got[i], k), tl_elem_get(d, want[i], k)))
            k++;
        if (k == n)
            continue;
        fprintf(stderr, "%s: parameter %u element %lld: got %g, want %g\n", row->name, i,
                (long long)k, tl_bits_to_double(d, tl_elem_get(d, got[i], k)),
                tl_bits_to_double(d, tl_elem_get(d, want[i], k)));
        CHECK(!"memory differs");
    }
}

static void run_row(const Row *row, TlCtx *ctx, TlArena *arena)
{
    TlModule *m =
        tl_parse_module(ctx, tl_diags_source(&ctx->diags, row->name, row->text, strlen(row->text)));
    if (!m) {
        show_diagnostics(ctx, arena);
        CHECK(!"the text is not valid IR");
        return;
    }
    const TlFn *fn = m->fns.data[0];
    unsigned char *got[MAX_ARGS], *want[MAX_ARGS];
    for (uint32_t i = 0; i < fn->body->nargs; i++) {
        got[i] = tl_alloc(arena, BYTES);
        want[i] = tl_alloc(arena, BYTES);
        fill_memory(row, fn->body->args[i]->type->dtype, got[i], i + 1);
        memcpy(want[i], got[i], BYTES);
    }
    run_reference(row, fn, arena, want);
    run_native(row, m, arena, got);
    compare(row, fn, got, want);
}

static const Row ROWS[] = {
#include "test/unit/cpu_rows.h"
};

static void guarded_row(const Row *row)
{
    TlAlloc alloc = {tl_libc_alloc, NULL};
    TlCtx ctx;
    TlArena arena;
    TlGuard guard;
    tl_ctx_init(&ctx, alloc);
    tl_arena_init(&arena, alloc);
    if (TL_GUARD(&guard)) {
        run_row(row, &ctx, &arena);
        tl_guard_pop(&guard);
    } else {
        fprintf(stderr, "%s: fault: %s\n", row->name, guard.text);
        CHECK(!"a fault");
    }
    tl_arena_free(&arena);
    tl_ctx_free(&ctx);
}

/* ---- rows made from tables ---- */

typedef struct Text {
    char name[96], text[8192];
    size_t len;
    Row row;
} Text;

static void add(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(Text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    t->len += (size_t)vsnprintf(t->text + t->len, sizeof t->text - t->len, format, args);
    va_end(args);
}

static void run_text(Text *t)
{
    t->row.name = t->name;
    t->row.text = t->text;
    guarded_row(&t->row);
}

/* One vector view of 999 elements per parameter. */
static void add_vectors(Text *t, int n, const char *const *names, const char *const *types)
{
    add(t, "kernel @k(");
    for (int i = 0; i < n; i++)
        add(t, "%s%%%s: view<%s, 1>", i ? ", " : "", names[i], types[i]);
    add(t, ") info {\n");
    for (int i = 0; i < n; i++) {
        add(t, "  param \"%s\" view %s [const 999 : dense]\n", names[i], types[i]);
        t->row.extent[i][0] = 999;
        t->row.stride[i][0] = 1;
    }
    add(t, "} {\n  %%z = const {value = 0} : i32\n");
}

static const char *const TYPES[] = {"f16", "bf16", "f32", "f64", "i8",   "i16",    "i32",   "i64",
                                    "u8",  "u16",  "u32", "u64", "bool", "f8e4m3", "f8e5m2",
                                    "f8e4m3fnuz"};
enum { NFLOATS = 4, NARITH = 12, NTYPES = 16 };

static void element_op(const char *op, int operands, bool compare_, const char *type)
{
    Text t = {.len = 0};
    const char *names[] = {"a", "b", "o"}, *result = compare_ ? "bool" : type,
               *types[] = {type, type, result};
    snprintf(t.name, sizeof t.name, "bits_%s_%s", op, type);
    add_vectors(&t, 3, names, types);
    add(&t,
        "  %%x = load %%a, %%z {axes = [999]} : tile<%s, 999>\n  %%y = load %%b, %%z {axes = "
        "[999]} : tile<%s, 999>\n",
        type, type);
    add(&t, "  %%r = %s %%x%s : tile<%s, 999>\n", op, operands == 2 ? ", %y" : "", result);
    add(&t, "  store %%o, %%z, %%r {axes = [999]}\n  return\n}");
    run_text(&t);
}

static void element_ops(void)
{
    static const char *const UNARY[] = {"neg", "abs"}, *const UNARY_F[] = {"sqrt", "floor",
                                                                           "ceil", "trunc",
                                                                           "rint", "round"},
                             *const UNARY_I[] = {"not", "popcount", "clz", "ctz"},
                             *const BINARY[] = {"add", "sub", "mul", "div", "rem", "min", "max"},
                             *const BINARY_F[] = {"min_nan", "max_nan"},
                             *const BINARY_I[] = {"and", "or", "xor", "shl", "shr", "mulhi"},
                             *const COMPARE[] = {"eq", "ne", "lt", "le", "gt", "ge"};
#define EACH(list, operands, compare_)                                                             \
    for (size_t k = 0; k < sizeof list / sizeof *list; k++)                                        \
    element_op(list[k], operands, compare_, TYPES[i])
    for (int i = 0; i < NARITH; i++) {
        EACH(UNARY, 1, false);
        EACH(BINARY, 2, false);
        EACH(COMPARE, 2, true);
        if (i < NFLOATS) {
            EACH(UNARY_F, 1, false);
            EACH(BINARY_F, 2, false);
        } else {
            EACH(UNARY_I, 1, false);
            EACH(BINARY_I, 2, false);
        }
    }
}

static void casts(void)
{
    for (int i = 0; i < NTYPES; i++)
        for (int j = 0; j < NTYPES; j++) {
            if (i == j)
                continue;
            Text t = {.len = 0};
            const char *names[] = {"a", "o"}, *types[] = {TYPES[i], TYPES[j]};
            snprintf(t.name, sizeof t.name, "bits_cast_%s_%s", TYPES[i], TYPES[j]);
            add_vectors(&t, 2, names, types);
            add(&t,
                "  %%x = load %%a, %%z {axes = [999]} : tile<%s, 999>\n  %%r = cast %%x : tile<%s, "
                "999>\n",
                TYPES[i], TYPES[j]);
            add(&t, "  store %%o, %%z, %%r {axes = [999]}\n  return\n}");
            run_text(&t);
        }
}

/* C = A . B + C on M x K and K x N operands, each perhaps transposed; the views are smaller than
 * the tiles. */
static void dot(int m, int n, int k, bool ta, bool tb, const char *type, const char *acc)
{
    Text t = {.len = 0};
    int shape[3][2] = {{ta ? k : m, ta ? m : k}, {tb ? n : k, tb ? k : n}, {m, n}};
    snprintf(t.name, sizeof t.name, "dot_%d_%d_%d_%s%s_%s", m, n, k, ta ? "t" : "n", tb ? "t" : "n",
             type);
    add(&t, "kernel @k(%%A: view<const %s, 2>, %%B: view<const %s, 2>, %%C: view<%s, 2>) info {\n",
        type, type, acc);
    for (int i = 0; i < 3; i++)
        add(&t, "  param \"%c\" view %s%s [sym %d : dense, sym %d : dense]\n", "ABC"[i],
            i < 2 ? "const " : "", i < 2 ? type : acc, 2 * i, 2 * i + 1);
    for (int i = 0; i < 6; i++) {
        add(&t, "  sym \"s%d\" extent %d, %d\n", i, i / 2, i % 2);
        t.row.extent[i / 2][i % 2] = shape[i / 2][i % 2] - (i % 2);
        t.row.stride[i / 2][i % 2] = i % 2 ? 1 : shape[i / 2][1] - 1;
    }
    add(&t, "} {\n  %%z = const {value = 0} : i32\n");
    for (int i = 0; i < 3; i++)
        add(&t, "  %%%c = load %%%c, %%z, %%z {axes = [%d, %d]} : tile<%s, %d, %d>\n", "abc"[i],
            "ABC"[i], shape[i][0], shape[i][1], i < 2 ? type : acc, shape[i][0], shape[i][1]);
    if (ta)
        add(&t, "  %%at = trans %%a {perm = [1, 0]} : tile<%s, %d, %d>\n", type, m, k);
    if (tb)
        add(&t, "  %%bt = trans %%b {perm = [1, 0]} : tile<%s, %d, %d>\n", type, k, n);
    add(&t, "  %%r = dot %s, %s, %%c : tile<%s, %d, %d>\n", ta ? "%at" : "%a", tb ? "%bt" : "%b",
        acc, m, n);
    add(&t, "  store %%C, %%z, %%z, %%r {axes = [%d, %d]}\n  return\n}", m, n);
    run_text(&t);
}

static void dots(void)
{
    static const int SHAPES[][3] = {{16, 32, 8}, {7, 5, 3}, {33, 70, 20}, {64, 64, 32},
                                    {1, 17, 4},  {5, 2, 9}, {3, 1, 2}};
    static const char *const PAIRS[][2] = {
        {"f16", "f32"}, {"bf16", "f32"}, {"i8", "i32"}, {"u8", "i32"}, {"f64", "f64"}};
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
        for (int form = 0; form < 4; form++)
            dot(SHAPES[i][0], SHAPES[i][1], SHAPES[i][2], form & 1, form & 2, "f32", "f32");
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++)
        for (int form = 0; form < 4; form++)
            dot(17, 19, 16, form & 1, form & 2, PAIRS[i][0], PAIRS[i][1]);
}

static void add_shape(Text *t, const char *type, int rank, const int *shape)
{
    if (rank == 0) {
        add(t, "%s", type);
        return;
    }
    add(t, "tile<%s", type);
    for (int d = 0; d < rank; d++)
        add(t, ", %d", shape[d]);
    add(t, ">");
}

static void add_view(Text *t, uint32_t param, const char *name, const char *type, int rank,
                     const int *shape)
{
    int64_t stride = 1;
    add(t, "  param \"%s\" view %s [", name, type);
    for (int d = 0; d < rank; d++)
        add(t, "%sconst %d : dense", d ? ", " : "", shape[d]);
    add(t, "]\n");
    for (int d = rank - 1; d >= 0; d--) {
        t->row.extent[param][d] = shape[d];
        t->row.stride[param][d] = stride;
        stride *= shape[d];
    }
}

static void add_place(Text *t, int rank, const int *shape, const char *value)
{
    for (int d = 0; d < (rank ? rank : 1); d++)
        add(t, ", %%z");
    add(t, "%s {axes = [", value);
    for (int d = 0; d < rank; d++)
        add(t, "%s%d", d ? ", " : "", shape[d]);
    add(t, rank ? "]}" : "i]}");
}

static void reduction(const char *kind, const char *type, int rank, const int *shape, int axis)
{
    static const int ONE[] = {1};
    Text t = {.len = 0};
    int out[4], n = 0;
    for (int d = 0; d < rank; d++)
        if (d != axis)
            out[n++] = shape[d];
    snprintf(t.name, sizeof t.name, "reduce_%s_%s_%d_of_rank_%d_first_%d", kind, type, axis, rank,
             shape[0]);
    add(&t, "kernel @k(%%x: view<%s, %d>, %%y: view<%s, %d>) info {\n", type, rank, type,
        n ? n : 1);
    add_view(&t, 0, "x", type, rank, shape);
    add_view(&t, 1, "y", type, n ? n : 1, n ? out : ONE);
    add(&t, "} {\n  %%z = const {value = 0} : i32\n  %%t = load %%x");
    add_place(&t, rank, shape, "");
    add(&t, " : ");
    add_shape(&t, type, rank, shape);
    add(&t, "\n  %%u = add %%t, %%t : ");
    add_shape(&t, type, rank, shape);
    add(&t, "\n  %%r = reduce %%u {axis = %d, kind = %s} : ", axis, kind);
    add_shape(&t, type, n, out);
    add(&t, "\n  store %%y");
    add_place(&t, n, out, ", %r");
    add(&t, "\n  return\n}");
    run_text(&t);
}

static void reductions(void)
{
    static const struct {
        int rank, shape[3], axis;
    } SHAPES[] = {{1, {100}, 0},     {1, {1}, 0},      {1, {1000}, 0},   {2, {5, 7}, 0},
                  {2, {5, 7}, 1},    {2, {33, 64}, 0}, {2, {33, 64}, 1}, {3, {3, 1, 50}, 2},
                  {3, {4, 6, 5}, 1}, {2, {64, 1}, 0},  {2, {9, 130}, 1}, {2, {9, 130}, 0}};
    static const char *const KINDS[] = {"add", "max", "min", "mul"}, *const OF[] = {"i32", "f32",
                                                                                    "u8", "f64",
                                                                                    "i64"};
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++)
        for (size_t k = 0; k < 4; k++)
            for (size_t i = 0; i < sizeof OF / sizeof *OF; i++) {
                bool inexact =
                    k == 3 && OF[i][0] == 'f'; /* long products of floats depend on the order */
                if (!inexact)
                    reduction(KINDS[k], OF[i], SHAPES[s].rank, SHAPES[s].shape, SHAPES[s].axis);
            }
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (argc < 2 || !strcmp(argv[1], ROWS[i].name))
            guarded_row(&ROWS[i]);
    if (argc > 1)
        return unit_result();
    element_ops();
    casts();
    dots();
    reductions();
    return unit_result();
}
