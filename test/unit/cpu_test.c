/* The CPU lowering on hand-written tile IR, through our own loader: against the
 * interpreter on the same memory: bit for bit, since the data are small integers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "ir/interp.h"
#include "ir/numeric.h"
#include "runtime/elf.h"
#include "test/unit/unit.h"

static void *host_memory(void *user, void *p, size_t a, size_t b)
{
    (void)user, (void)a;
    if (b) return realloc(p, b);
    free(p);
    return NULL;
}

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

/* The same for both runs: small integers in every element, or any bits in rows whose name starts with "bits". */
static void fill_memory(const Row *row, TlDtype d, unsigned char *memory, unsigned seed)
{
    bool any = !strncmp(row->name, "bits", 4);
    for (int64_t i = 0; any && d != TL_BOOL && i < BYTES; i++) {
        seed = seed * 1664525u + 1013904223u;
        memory[i] = (unsigned char)(seed >> 24);
    }
    if (any && d != TL_BOOL) return;
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
    TlCodegenOptions o = {.target = tl_target_find("cpu"), .opt_level = 3};
    TlKernelCodes k = {0};
    size_t size;
    if (getenv("CPU_TEST_LLVM")) printf("%s\n", (char *)tl_cpu_compile(m, &o, TL_EMIT_LLVM, arena, &k, &size));
    k.len = 0;
    void *object = tl_cpu_compile(m, &o, TL_EMIT_OBJ, arena, &k, &size), *entry;
    tl_elf *elf;
    if (!CHECK(tl_elf_load(object, size, TL_ELF_HOST, k.data[0].symbol, &elf, &entry) == TILE_OK)) return;
    uint64_t params[64];
    for (uint32_t i = 0; i < k.data[0].slots.len; i++) params[i] = slot_word(row, &k.data[0].slots.data[i], memory);
    static const tile_cpu_services services = {.fmod = fmod, .fmodf = fmodf};
    tile_cpu_ctx c = {.services = &services, .scratch = aligned_alloc(64, k.data[0].scratch_bytes + 64), .npid = {1, 1, 1, 1, 1, 1}};
    tile_cpu_kernel kernel;
    memcpy(&kernel, &entry, sizeof kernel);
    memset(c.scratch, 0xAB, k.data[0].scratch_bytes);
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
        while (k < n && same_element(d, tl_elem_get(d, got[i], k), tl_elem_get(d, want[i], k))) k++;
        if (k == n) continue;
        fprintf(stderr, "%s: parameter %u element %lld: got %g, want %g\n", row->name, i, (long long)k,
                tl_bits_to_double(d, tl_elem_get(d, got[i], k)), tl_bits_to_double(d, tl_elem_get(d, want[i], k)));
        CHECK(!"memory differs");
    }
}

static void run_row(const Row *row, TlCtx *ctx, TlArena *arena)
{
    TlModule *m = tl_parse_module(ctx, tl_diags_source(&ctx->diags, row->name, row->text, strlen(row->text)));
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
    TlAlloc alloc = {host_memory, NULL};
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

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (argc < 2 || !strcmp(argv[1], ROWS[i].name)) guarded_row(&ROWS[i]);
    return unit_result();
}
