/* Which dot-product instruction is taken, by the CPU's features, the operands' types and the width
 * of vectors. What they compute is tested where a CPU has them: conformance rows products_*. */
#include "codegen/nest/dot_insn.h"
#include "test/unit/unit.h"

#define V4 "+avx512f,+avx512bw,+avx512vl,+avx2,+sse3"

static const struct {
    const char *features;
    TlDtype a, b;
    int lanes, k;
    const char *name; /* the end of the intrinsic's; NULL: none is taken */
} choices[] = {
    {"+sse3", TL_I8, TL_U8, 4, 64, "sse2.pmadd.wd"},
    {"+sse3", TL_I8, TL_I8, 2, 64, NULL},
    {"+sse3,+avx2", TL_U8, TL_U8, 8, 64, "avx2.pmadd.wd"},
    {"+sse3,+avx2,+avxvnni", TL_U8, TL_U8, 8, 64, "vpdpbusd.256"},
    {"+sse3,+avx2,+avxvnni", TL_U8, TL_U8, 4, 64, "vpdpbusd.128"},
    {"+sse3,+avx2,+avx512f", TL_I8, TL_I8, 16, 64, NULL},
    {V4, TL_I8, TL_I8, 16, 64, "pmaddw.d.512"},
    {V4 ",+avx512vnni", TL_I8, TL_U8, 16, 64, "vpdpbusd.512"},
    {V4 ",+avx512vnni", TL_I8, TL_U8, 8, 64, "vpdpbusd.256"},
    {V4 ",+avx512vnni", TL_I8, TL_U8, 8, 6, "avx2.pmadd.wd"},
    {V4 ",+avx512vnni", TL_I8, TL_U8, 8, 3, NULL},
    {"+avx512f,+avx512bw,+avx2,+avx512vnni", TL_I8, TL_U8, 8, 64, "avx2.pmadd.wd"},
    {V4 ",+avx512vnni", TL_BF16, TL_BF16, 16, 64, NULL},
    {V4 ",+avx512bf16,+sse4a", TL_BF16, TL_BF16, 16, 64, "dpbf16ps.512"},
    {V4 ",+avx512bf16,+sse4a", TL_BF16, TL_BF16, 4, 64, "dpbf16ps.128"},
    {V4 ",+avx512bf16", TL_BF16, TL_F32, 16, 64, NULL},
    {V4 ",+avx512bf16,+avx512vnni", TL_F16, TL_F16, 16, 64, NULL},
    {V4 ",+avx512bf16,+avx512vnni", TL_F32, TL_F32, 16, 64, NULL},
    {"+fp-armv8,+neon", TL_I8, TL_I8, 4, 64, NULL},
    {"+fp-armv8,+neon,+dotprod", TL_I8, TL_I8, 4, 64, "neon.sdot"},
    {"+fp-armv8,+neon,+dotprod", TL_U8, TL_U8, 4, 64, "neon.udot"},
    {"+fp-armv8,+neon,+dotprod", TL_I8, TL_U8, 4, 64, "neon.udot"},
    {"+fp-armv8,+neon,+dotprod", TL_U8, TL_I8, 4, 64, "neon.sdot"},
    {"+fp-armv8,+neon,+dotprod,+i8mm", TL_I8, TL_U8, 4, 64, "neon.usdot"},
    {"+fp-armv8,+neon,+dotprod,+i8mm", TL_I8, TL_I8, 4, 64, "neon.sdot"},
    {"+fp-armv8,+neon,+i8mm", TL_I8, TL_I8, 4, 64, NULL},
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static void best_is_taken(void)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        TlLlvm l = {.features = choices[i].features};
        const TlCpuDotInsn *insn =
            tl_cpu_dot_insn(&l, choices[i].a, choices[i].b, choices[i].k, choices[i].lanes, false);
        CHECK((insn != NULL) == (choices[i].name != NULL));
        if (insn && choices[i].name)
            CHECK(ends_with(insn->name, choices[i].name) && insn->lanes == choices[i].lanes);
    }
}

static void alike_bytes_are_flipped(void)
{
    TlLlvm vnni = {.features = "+avxvnni,+sse3"}, arm = {.features = "+dotprod"};
    const TlCpuDotInsn *mixed = tl_cpu_dot_insn(&vnni, TL_I8, TL_I8, 8, 4, false);
    const TlCpuDotInsn *same = tl_cpu_dot_insn(&arm, TL_I8, TL_I8, 8, 4, false);
    CHECK(mixed && same);
    CHECK(tl_cpu_dot_flips(mixed, TL_I8, TL_I8) && tl_cpu_dot_flips(mixed, TL_U8, TL_U8));
    CHECK(!tl_cpu_dot_flips(mixed, TL_I8, TL_U8) && !tl_cpu_dot_flips(same, TL_I8, TL_I8));
    const TlCpuDotInsn *turned = tl_cpu_dot_insn(&arm, TL_I8, TL_U8, 8, 4, false);
    CHECK(turned && tl_cpu_dot_flips(turned, TL_I8, TL_U8));
    CHECK(tl_cpu_dot_part(mixed, TL_U8) == TL_U8);
    vnni.features = "+sse3";
    const TlCpuDotInsn *words = tl_cpu_dot_insn(&vnni, TL_U8, TL_U8, 8, 4, false);
    CHECK(words && tl_cpu_dot_part(words, TL_U8) == TL_I16);
}

/* Intel's have no SSE4a. */
static void slow_ones_are_not_taken(void)
{
    static const char *const more[] = {"", ",+sse4a"};
    for (int i = 0; i < 2; i++) {
        char features[400];
        snprintf(features, sizeof features, "%s,+avx512bf16,+avx512vnni%s", V4, more[i]);
        TlLlvm l = {.features = features};
        CHECK_INT(tl_cpu_dot_insn(&l, TL_BF16, TL_BF16, 64, 16, false) != NULL, i);
        CHECK(tl_cpu_dot_insn(&l, TL_BF16, TL_BF16, 64, 16, true) != NULL); /* beside tiles */
        CHECK(tl_cpu_dot_insn(&l, TL_I8, TL_I8, 64, 16, false) != NULL);
    }
}

static void tiles_are_taken_by_signs(void)
{
    static const char AMX[] = V4 ",+avx512vnni,+amx-tile,+amx-int8";
    static const char *const lacking[] = {V4 ",+avx512vnni,+amx-tile,+amx-bf16",
                                          V4 ",+avx512vnni,+amx-int8", V4 ",+amx-tile,+amx-int8"};
    TlLlvm l = {.features = AMX};
    CHECK_STR(tl_cpu_tile_insn(&l, TL_I8, TL_U8), "llvm.x86.tdpbsud");
    CHECK_STR(tl_cpu_tile_insn(&l, TL_U8, TL_I8), "llvm.x86.tdpbusd");
    CHECK(!tl_cpu_tile_insn(&l, TL_BF16, TL_BF16) && !tl_cpu_tile_insn(&l, TL_I16, TL_I16));
    for (int i = 0; i < 3; i++) {
        l.features = lacking[i];
        CHECK(!tl_cpu_tile_insn(&l, TL_I8, TL_I8) && !tl_cpu_tile_insn(&l, TL_BF16, TL_BF16));
    }
    l.features = V4 ",+avx512bf16,+amx-tile,+amx-bf16";
    CHECK_STR(tl_cpu_tile_insn(&l, TL_BF16, TL_BF16), "llvm.x86.tdpbf16ps");
}

/* The greatest part of an iteration that a tile has room for, and what it costs. */
static void tiles_must_pay(void)
{
    CHECK_INT(tl_cpu_tile_depth(64, 64), 16);
    CHECK_INT(tl_cpu_tile_depth(24, 64), 12);
    CHECK_INT(tl_cpu_tile_depth(17, 64), 1);
    CHECK_INT(tl_cpu_tile_depth(16, 4), 16);
    CHECK_INT(tl_cpu_tile_depth(16, 3), 0);
    CHECK_INT(tl_cpu_tile_depth(8, 5), 0);
    CHECK_INT(tl_cpu_tile_depth(8, 6), 8);
    CHECK_INT(tl_cpu_tile_depth(1, 16), 0);
}

int main(void)
{
    best_is_taken();
    slow_ones_are_not_taken();
    alike_bytes_are_flipped();
    tiles_are_taken_by_signs();
    tiles_must_pay();
    return unit_result();
}
