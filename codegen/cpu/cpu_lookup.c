/* Gathers from arrays of few elements (nest_lookup.c): all of the array's elements are loaded, and
 * lanes of them taken by an index's low bits, group by group; its higher bits select:
 *
 *     bits   .. 1 0 | low
 *     groups 0 1   2 3        bit 0: 0 or 1, 2 or 3; bit 1: of these */
#include "codegen/cpu/cpu_access.h"

typedef struct Lookup {
    TlCpuGen *g;
    const TlCpuAccess *a;
    const TlType *elem; /* of the result */
    TlNestLookup is;
    LLVMTypeRef ints; /* the vector */
} Lookup;

/* Lanes from `first` on; those behind x's last are any. */
static LLVMValueRef lanes_of(TlCpuGen *g, LLVMValueRef x, int first, int n)
{
    LLVMValueRef lane[TL_NEST_LANES];
    int width = tl_gen_width_of(x);
    for (int i = 0; i < n; i++)
        lane[i] = first + i < width ? tl_cpu_i32(g, (uint64_t)(first + i)) : LLVMGetUndef(g->i32);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                                  LLVMConstVector(lane, (unsigned)n), "");
}

/* Of two vectors. */
static LLVMValueRef joined(TlCpuGen *g, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef lane[TL_NEST_LANES];
    int n = 2 * tl_gen_width_of(x);
    for (int i = 0; i < n; i++)
        lane[i] = tl_cpu_i32(g, (uint64_t)i);
    return LLVMBuildShuffleVector(g->b, x, y, LLVMConstVector(lane, (unsigned)n), "");
}

/* The register that holds elements from `first` on, again and again. */
static LLVMValueRef table_from(const Lookup *k, LLVMValueRef base, int first)
{
    TlCpuGen *g = k->g;
    const TlNestPermute *p = k->is.permute;
    int n = k->is.elems - first < p->elems ? k->is.elems - first : p->elems;
    LLVMValueRef at = tl_gen_address(&g->gen, k->elem->dtype, base, tl_gen_int(&g->gen, first)),
                 x = tl_cpu_plain_load(g, k->a, k->elem, at, n), lane[TL_NEST_LANES];
    x = tl_gen_to_mem(&g->gen, k->elem, x);
    if (n == 1)
        x = tl_gen_splat(&g->gen, x, p->lanes);
    for (int i = 0; i < p->lanes && n > 1; i++)
        lane[i] = tl_cpu_i32(g, (uint64_t)(i % p->elems < n ? i % p->elems : 0));
    if (n > 1)
        x = LLVMBuildShuffleVector(g->b, x, x, LLVMConstVector(lane, (unsigned)p->lanes), "");
    return LLVMBuildBitCast(g->b, x, k->ints, "");
}

/* What group `group` has for the index. */
static LLVMValueRef of_group(const Lookup *k, LLVMValueRef base, LLVMValueRef index, int group)
{
    const TlNestPermute *p = k->is.permute;
    int first = group * p->registers * p->elems;
    LLVMValueRef low = table_from(k, base, first), args[3] = {low, index, low};
    if (p->registers == 2) {
        if (first + p->elems < k->is.elems)
            args[2] = table_from(k, base, first + p->elems);
        return tl_gen_intrinsic(&k->g->gen, p->name, NULL, 0, args, 3);
    }
    if (p->bytes == 1) { /* of an index above 127 the instruction makes 0 */
        LLVMValueRef most = LLVMConstInt(LLVMGetElementType(k->ints), (unsigned)p->elems - 1, 0);
        args[1] = LLVMBuildAnd(k->g->b, index, tl_gen_splat(&k->g->gen, most, p->lanes), "");
    }
    return tl_gen_intrinsic(&k->g->gen, p->name, NULL, 0, args, 2);
}

/* A vector of the instruction's lanes. */
static LLVMValueRef look_up(const Lookup *k, LLVMValueRef base, LLVMValueRef index)
{
    TlCpuGen *g = k->g;
    const TlNestPermute *p = k->is.permute;
    LLVMValueRef found[TL_NEST_LANES];
    int n = k->is.groups, bit = p->registers * p->elems;
    TL_ASSERT(n <= TL_NEST_LANES, "%d groups", n);
    for (int i = 0; i < n; i++)
        found[i] = of_group(k, base, index, i);
    for (; n > 1; n = (n + 1) / 2, bit *= 2) {
        LLVMValueRef one = LLVMConstInt(LLVMGetElementType(k->ints), (unsigned)bit, 0),
                     set = LLVMBuildAnd(g->b, index, tl_gen_splat(&g->gen, one, p->lanes), ""),
                     is = LLVMBuildICmp(g->b, LLVMIntNE, set, LLVMConstNull(k->ints), "");
        for (int i = 0; i < n; i += 2)
            found[i / 2] =
                i + 1 < n ? LLVMBuildSelect(g->b, is, found[i + 1], found[i], "") : found[i];
    }
    return found[0];
}

LLVMValueRef tl_cpu_load_looked_up(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                   const TlCpuSpot *s, LLVMValueRef mask, LLVMValueRef other,
                                   int width)
{
    enum { BITS = 8 };
    Lookup k = {.g = g, .a = a, .elem = elem, .is = tl_nest_lookup(g->plan, a->a)};
    if (!k.is.permute || !s->lanes || elem->ptr || elem->dtype != a->view->dtype)
        return NULL;
    int lanes = k.is.permute->lanes;
    LLVMTypeRef element = LLVMIntTypeInContext(g->c, (unsigned)(BITS * k.is.permute->bytes));
    k.ints = tl_gen_vec(element, lanes);
    LLVMValueRef index = LLVMBuildIntCast2(g->b, s->lanes, tl_gen_vec(element, width), 0, ""),
                 part[TL_NEST_LANES];
    LLVMValueRef base = s->base;
    if (s->uniform) /* may be a row outside: as many zeros are there */
        base = LLVMBuildSelect(g->b, s->uniform, base, tl_cpu_zero_row(g), "");
    int n = (width + lanes - 1) / lanes;
    for (int i = 0; i < n; i++)
        part[i] = look_up(&k, base, lanes_of(g, index, i * lanes, lanes));
    for (; n > 1; n /= 2)
        for (int i = 0; i < n / 2; i++)
            part[i] = joined(g, part[2 * i], part[2 * i + 1]);
    LLVMValueRef all = tl_gen_width_of(part[0]) > width ? lanes_of(g, part[0], 0, width) : part[0];
    LLVMTypeRef type = tl_gen_vec(tl_gen_mem_type(&g->gen, elem), width);
    LLVMValueRef x = tl_gen_from_mem(&g->gen, elem, LLVMBuildBitCast(g->b, all, type, ""));
    return LLVMBuildSelect(g->b, mask, x, other, "");
}
