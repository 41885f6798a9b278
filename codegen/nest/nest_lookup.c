/* Gathers from an array of few elements, which registers hold.
 *
 *     t: view<const u8, 1>, of 256 elements
 *     t[x[i +: 64]]          two permutations of two registers each, and one selection
 *
 * An instruction that permutes lanes looks up as many elements as a register holds, or two of them.
 * Where an array has more, each group of so many is looked up, and the index's higher bits select
 * among what was found, pairwise. That is one vector of elements without an address; elements one
 * by one take about a cycle each. */
#include "codegen/nest/nest.h"

static const TlNestPermute PERMUTES[] = {
    {1, 64, 2, 64, "avx512vbmi", "llvm.x86.avx512.vpermi2var.qi.512"},
    {1, 32, 1, 16, "avx2", "llvm.x86.avx2.pshuf.b"},
    {1, 16, 1, 16, "ssse3", "llvm.x86.ssse3.pshuf.b.128"},
    {2, 32, 2, 32, "avx512bw", "llvm.x86.avx512.vpermi2var.hi.512"},
    {4, 16, 2, 16, "avx512f", "llvm.x86.avx512.vpermi2var.d.512"},
    {4, 8, 1, 8, "avx2", "llvm.x86.avx2.permd"},
    {8, 8, 2, 8, "avx512f", "llvm.x86.avx512.vpermi2var.q.512"}};

static const TlNestPermute *permute_of(const TlNests *plan, int bytes)
{
    for (size_t i = 0; i < sizeof PERMUTES / sizeof *PERMUTES; i++) {
        const TlNestPermute *p = &PERMUTES[i];
        if (p->bytes == bytes && tl_llvm_has_feature(plan->m.l, p->feature))
            return p;
    }
    return NULL;
}

/* Half cycles for a vector: permutations, selections, of which a cycle has two, and tests of the
 * index's bits. */
static int work_of(int groups)
{
    int tests = 0;
    while (1 << tests < groups)
        tests++;
    return 2 * groups + (groups - 1) + 2 * tests;
}

/* Is it an element of an array, or of a row of one? The array is there as a whole: it is one of the
 * launch's, and its extents are known. */
static bool takes_from_row(const TlNests *plan, const TlNestAccess *a)
{
    const TlPlace *p = &a->place;
    const TlValue *base = p->base;
    int64_t extent;
    if (!a->loads || !p->axes || p->mask || a->asks)
        return false;
    for (uint32_t i = 0; i < p->naxes; i++) {
        bool last = i + 1 == p->naxes;
        if (p->axes[i].kind != (last ? TL_AXIS_TILE : TL_AXIS_SCALAR) ||
            !tl_nest_extent(plan->fn, base, i, &extent) || extent < 1)
            return false;
    }
    while (base->def && base->def->opcode == TL_OP_SUB_VIEW)
        base = tl_in(base->def, 0);
    return p->naxes && !base->def && !a->axis[p->naxes - 1].affine.is &&
           a->axis[p->naxes - 1].stride == 1;
}

TlNestLookup tl_nest_lookup(const TlNests *plan, const TlNestAccess *a)
{
    enum { LEAST = 8 }; /* bits */
    const TlNestLookup none = {NULL, 0, 0};
    int64_t elems;
    if (!takes_from_row(plan, a))
        return none;
    TlDtype dtype = a->place.base->type->dtype;
    bool is_bytes = dtype != TL_BOOL && tl_dtype_bits(dtype) >= LEAST;
    const TlNestPermute *p = is_bytes ? permute_of(plan, tl_dtype_bytes(dtype)) : NULL;
    tl_nest_extent(plan->fn, a->place.base, a->place.naxes - 1, &elems);
    bool is_indexed = p && (p->bytes > 1 || elems <= 1 << LEAST); /* by an element's bits */
    if (!is_indexed || elems > TL_NEST_LOOKED_UP * p->elems)
        return none;
    int each = p->registers * p->elems, groups = (int)((elems + each - 1) / each);
    return work_of(groups) < 2 * p->lanes ? (TlNestLookup){p, (int)elems, groups} : none;
}
