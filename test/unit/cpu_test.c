/* The CPU lowering on hand-written tile IR, through our own loader: what front-end programs seldom or never produce. */
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "runtime/elf.h"
#include "test/unit/unit.h"

static void *no_memory(void *user, void *p, size_t a, size_t b)
{
    (void)user, (void)a;
    if (b) return realloc(p, b);
    free(p);
    return NULL;
}

/* Compiles the one kernel of `text` and runs one program on the given parameter words. */
static bool run(const char *text, const uint64_t *params, uint32_t nparams)
{
    TlCtx ctx;
    TlArena arena;
    TlAlloc alloc = {no_memory, NULL};
    volatile bool ok = false;
    TlGuard guard;
    tl_ctx_init(&ctx, alloc);
    tl_arena_init(&arena, alloc);
    if (TL_GUARD(&guard)) {
        TlModule *m = tl_parse_module(&ctx, tl_diags_source(&ctx.diags, "t.tir", text, strlen(text)));
        if (!m) {
            TlSbuf s;
            tl_sbuf_init(&s, &arena);
            tl_diags_render(&ctx.diags, TL_DIAG_TEXT, false, &s);
            fprintf(stderr, "%s\n", s.text);
        }
        TlCodegenOptions o = {.target = tl_target_find("cpu"), .opt_level = 3};
        TlKernelCodes k = {0};
        size_t size;
        if (getenv("CPU_TEST_LLVM")) printf("%s\n", (char *)tl_cpu_compile(m, &o, TL_EMIT_LLVM, &arena, &k, &size));
        k.len = 0;
        void *object = tl_cpu_compile(m, &o, TL_EMIT_OBJ, &arena, &k, &size);
        CHECK(k.data[0].slots.len <= nparams);
        tl_elf *elf;
        void *entry;
        tile_status status = tl_elf_load(object, size, TL_ELF_HOST, k.data[0].symbol, &elf, &entry);
        CHECK(status == TILE_OK);
        if (status == TILE_OK) {
            tile_cpu_ctx c = {.scratch = aligned_alloc(64, k.data[0].scratch_bytes + 64)};
            tile_cpu_kernel kernel;
            memcpy(&kernel, &entry, sizeof kernel);
            kernel(&c, params);
            free(c.scratch);
            tl_elf_free(elf);
            ok = true;
        }
        tl_guard_pop(&guard);
    } else {
        fprintf(stderr, "fault: %s\n", guard.text);
    }
    tl_arena_free(&arena);
    tl_ctx_free(&ctx);
    return ok;
}

static const char copy_add[] =
    "kernel @k(%x: ptr<f32>, %n: i32) info { param \"x\" pointer f32\n param \"n\" scalar i32 } {\n"
    "  %0 = const {value = 0} : i32\n"
    "  %1 = const {value = 1} : i32\n"
    "  %2 = const {value = 0.5} : tile<f32, 13>\n"
    "  %3 = for %0, %n, %1, %2 : tile<f32, 13> (%i: i32, %acc: tile<f32, 13>) {\n"
    "    %4 = cast %i : f32\n"
    "    %5 = broadcast %4 : tile<f32, 13>\n"
    "    %a = add %acc, %5 : tile<f32, 13>\n"
    "    yield %a\n"
    "  }\n"
    "  %6 = iota : tile<i32, 13>\n"
    "  %7 = broadcast %x : tile<ptr<f32>, 13>\n"
    "  %8 = ptr_add %7, %6 : tile<ptr<f32>, 13>\n"
    "  store %8, %3\n"
    "  return\n"
    "}\n";

static void carried_tile(void)
{
    float x[16];
    for (int i = 0; i < 16; i++) x[i] = -1;
    uint64_t params[] = {(uint64_t)(uintptr_t)x, 5};
    /* slots are in order of first use: pointer, scalar */
    CHECK(run(copy_add, params, 2));
    for (int i = 0; i < 13; i++) CHECK(x[i] == 10.5f);
    CHECK(x[13] == -1);
}

int main(void)
{
    carried_tile();
    return unit_result();
}
