/* The dot-product instructions of CPUs: each lane multiplies a few neighbouring elements of A by
 * as many of B and adds the products to a sum that is as large as they are together. */
#include "codegen/nest/dot_insn.h"
#include <string.h>

/* BY_I8: any bytes of A by i8 of B. */
typedef enum Takes { BYTES, MIXED, BY_I8, BY_U8, I16_ONLY, BF16 } Takes;

/* The first row that fits is the best. An instruction is slow on a CPU without the feature `fast`:
 * VDPBF16PS does twice as much as a multiply-add of f32 on AMD's, which alone have SSE4a, but half
 * as much on Intel's (82 and 172 GFLOP/s on an Emerald Rapids). */
static const struct {
    Takes takes;
    const char *fast;
    TlCpuDotInsn insn;
} ROWS[] = {
    {BYTES, "", {TL_CPU_DOT_MIXED, 4, 16, "avx512vnni", "llvm.x86.avx512.vpdpbusd.512"}},
    {BYTES, "", {TL_CPU_DOT_MIXED, 4, 8, "avx512vnni,avx512vl", "llvm.x86.avx512.vpdpbusd.256"}},
    {BYTES, "", {TL_CPU_DOT_MIXED, 4, 4, "avx512vnni,avx512vl", "llvm.x86.avx512.vpdpbusd.128"}},
    {BYTES, "", {TL_CPU_DOT_MIXED, 4, 8, "avxvnni", "llvm.x86.avx512.vpdpbusd.256"}},
    {BYTES, "", {TL_CPU_DOT_MIXED, 4, 4, "avxvnni", "llvm.x86.avx512.vpdpbusd.128"}},
    {BYTES, "", {TL_CPU_DOT_WORDS, 2, 16, "avx512bw", "llvm.x86.avx512.pmaddw.d.512"}},
    {BYTES, "", {TL_CPU_DOT_WORDS, 2, 8, "avx2", "llvm.x86.avx2.pmadd.wd"}},
    {BYTES, "", {TL_CPU_DOT_WORDS, 2, 4, "sse3", "llvm.x86.sse2.pmadd.wd"}},
    {I16_ONLY, "", {TL_CPU_DOT_WORDS, 2, 16, "avx512bw", "llvm.x86.avx512.pmaddw.d.512"}},
    {I16_ONLY, "", {TL_CPU_DOT_WORDS, 2, 8, "avx2", "llvm.x86.avx2.pmadd.wd"}},
    {I16_ONLY, "", {TL_CPU_DOT_WORDS, 2, 4, "sse3", "llvm.x86.sse2.pmadd.wd"}},
    {MIXED, "", {TL_CPU_DOT_MIXED, 4, 4, "i8mm", "llvm.aarch64.neon.usdot"}},
    {BY_I8, "", {TL_CPU_DOT_SAME, 4, 4, "dotprod", "llvm.aarch64.neon.sdot"}},
    {BY_U8, "", {TL_CPU_DOT_SAME, 4, 4, "dotprod", "llvm.aarch64.neon.udot"}},
    {BF16, "", {TL_CPU_DOT_BF16, 2, 4, "bf16", "llvm.aarch64.neon.bfdot"}},
    {BF16, "sse4a", {TL_CPU_DOT_BF16, 2, 16, "avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.512"}},
    {BF16,
     "sse4a",
     {TL_CPU_DOT_BF16, 2, 8, "avx512bf16,avx512vl", "llvm.x86.avx512bf16.dpbf16ps.256"}},
    {BF16,
     "sse4a",
     {TL_CPU_DOT_BF16, 2, 4, "avx512bf16,avx512vl", "llvm.x86.avx512bf16.dpbf16ps.128"}},
};
enum { NROWS = sizeof ROWS / sizeof *ROWS };

static bool is_byte(TlDtype d)
{
    return d == TL_I8 || d == TL_U8;
}

static bool does_take(Takes takes, TlDtype a, TlDtype b)
{
    switch (takes) {
    case BYTES: return is_byte(a) && is_byte(b);
    case MIXED: return is_byte(a) && is_byte(b) && a != b;
    case BY_I8: return is_byte(a) && b == TL_I8;
    case BY_U8: return is_byte(a) && b == TL_U8;
    case I16_ONLY: return a == TL_I16 && b == TL_I16;
    case BF16: return a == TL_BF16 && b == TL_BF16;
    }
    TL_UNREACHABLE("what an instruction takes: %d", (int)takes);
}

static bool has_all(const TlLlvm *l, const char *features)
{
    char name[32];
    for (const char *p = features; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        TL_ASSERT(n < sizeof name, "a long feature: %s", p);
        memcpy(name, p, n);
        name[n] = 0;
        if (!tl_llvm_has_feature(l, name))
            return false;
        p += n;
    }
    return true;
}

static bool is_fast(const TlLlvm *l, const char *fast)
{
    return !*fast || tl_llvm_has_feature(l, fast);
}

const TlCpuDotInsn *tl_cpu_dot_insn(const TlLlvm *l, TlDtype a, TlDtype b, int64_t k, int lanes,
                                    bool any)
{
    for (int i = 0; i < NROWS; i++) {
        const TlCpuDotInsn *insn = &ROWS[i].insn;
        if (insn->lanes == lanes && k % insn->per == 0 && does_take(ROWS[i].takes, a, b) &&
            has_all(l, insn->features) && (any || is_fast(l, ROWS[i].fast)))
            return insn;
    }
    return NULL;
}

const char *tl_cpu_dot_pairs(const TlLlvm *l, const TlCpuDotInsn *insn)
{
    static const struct {
        const char *insn, *features, *pairs;
    } PAIRS[] = {
        {"llvm.aarch64.neon.sdot", "i8mm", "llvm.aarch64.neon.smmla"},
        {"llvm.aarch64.neon.udot", "i8mm", "llvm.aarch64.neon.ummla"},
        {"llvm.aarch64.neon.usdot", "i8mm", "llvm.aarch64.neon.usmmla"},
        {"llvm.aarch64.neon.bfdot", "bf16", "llvm.aarch64.neon.bfmmla"},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++)
        if (!strcmp(insn->name, PAIRS[i].insn) && has_all(l, PAIRS[i].features))
            return PAIRS[i].pairs;
    return NULL;
}

TlDtype tl_cpu_dot_part(const TlCpuDotInsn *insn, TlDtype d)
{
    return insn->form == TL_CPU_DOT_WORDS ? TL_I16 : d;
}

bool tl_cpu_dot_flips(const TlCpuDotInsn *insn, TlDtype a, TlDtype b)
{
    return insn->form == TL_CPU_DOT_MIXED ? a == b : insn->form == TL_CPU_DOT_SAME && a != b;
}

/* ---- tiles ---- */

/* With the instruction for single rows, which takes the same packed elements. */
static const struct {
    TlDtype a, b;
    const char *features, *name;
} TILES[] = {
    {TL_I8, TL_I8, "amx-int8,amx-tile,avx512vnni", "llvm.x86.tdpbssd"},
    {TL_I8, TL_U8, "amx-int8,amx-tile,avx512vnni", "llvm.x86.tdpbsud"},
    {TL_U8, TL_I8, "amx-int8,amx-tile,avx512vnni", "llvm.x86.tdpbusd"},
    {TL_U8, TL_U8, "amx-int8,amx-tile,avx512vnni", "llvm.x86.tdpbuud"},
    {TL_BF16, TL_BF16, "amx-bf16,amx-tile,avx512bf16", "llvm.x86.tdpbf16ps"},
};

const char *tl_cpu_tile_insn(const TlLlvm *l, TlDtype a, TlDtype b)
{
    for (size_t i = 0; i < sizeof TILES / sizeof *TILES; i++)
        if (TILES[i].a == a && TILES[i].b == b && has_all(l, TILES[i].features))
            return TILES[i].name;
    return NULL;
}

/* By Intel's numbers for Sapphire Rapids, and not yet by measurement: tiles are multiplied in 16
 * cycles, whatever they have of rows and along k, and two rows of one are loaded in a cycle; of the
 * other instructions two begin in a cycle, for a row and a packed element along k each. Tiles of A
 * are loaded while B's are multiplied. */
int tl_cpu_tile_depth(int64_t depth, int64_t rows)
{
    enum { CYCLES = 16, AT_ONCE = 2 };
    int64_t most = TL_CPU_TILE_BYTES / 4;
    while (depth % most)
        most--;
    return rows * most / AT_ONCE > CYCLES + most / AT_ONCE ? (int)most : 0;
}
