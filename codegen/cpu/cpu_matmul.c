/* Products in a loop on the CPU: for (k ...) acc = dot(A[m, k], B[k, n], acc), and nothing else.
 *
 * Iteration by iteration, acc would go through memory for each block of k, and the kernel's own
 * block size would decide the speed. Here iterations are gathered into chunks. A chunk's operands
 * are packed, B by panels, each of which stays in the first cache while all rows of A pass; then
 * each block of acc, mr rows by a panel of columns, stays in registers for all k of the chunk.
 * nest_product.c and nest_blocks.c decide what is packed, kept, read in memory, listed and stored;
 * codegen/README.md explains it.
 *
 * Each sum adds its products in the order of k, as the interpreter does; products that are packed
 * together are added as the instruction does. What is left out would have added zeros. */
#include "codegen/cpu/cpu_matmul.h"

enum {
    TAG_BYTES = TL_NEST_TAG_BYTES,
    FEW_BLOCKS = 8,       /* of rows, for which A is not packed */
    PAGE_BYTES = 4096,    /* between columns that are packed, at least, */
    SETS_BYTES = 2048,    /* or so many, or a multiple: they are in two sets of the first cache */
    HELD_BYTES = 1 << 15, /* of B, which the first cache holds */
};

/* ---- what stays ---- */

typedef struct Chunk {
    TlCpuMultiply x;
    const TlNestProduct *p;
    LLVMValueRef n;           /* iterations of the loop over k */
    LLVMValueRef few;         /* of these, the first so many may read B as it is; NULL: none */
    LLVMValueRef reads_b;     /* those of this chunk do */
    LLVMValueRef small_b;     /* i1: the first cache holds all of B; NULL: it is not asked */
    const TlCpuAccess *a, *b; /* of the first iteration: direct A, kept B */
    const TlCpuAccess *c;     /* the store, if the last chunk may do it */
    LLVMValueRef is_whole;    /* direct A ends with a packed element; NULL: it does */
    LLVMValueRef direct;      /* A is where it stays; NULL: as the product says */
    LLVMValueRef in_last;     /* kept B is in the slot that chunks share; NULL: it is not kept */
    LLVMValueRef filled;      /* rows of that slot that chunks which wait have */
    LLVMValueRef is_first, is_last; /* of those that are multiplied together */
} Chunk;

typedef struct Tag {
    LLVMValueRef word[TAG_BYTES / 8];
    int n;
} Tag;

static void add_word(TlCpuGen *g, Tag *t, LLVMValueRef w)
{
    if (LLVMGetTypeKind(LLVMTypeOf(w)) == LLVMPointerTypeKind)
        w = LLVMBuildPtrToInt(g->b, w, g->i64, "");
    TL_ASSERT(t->n < TAG_BYTES / 8, "a tag of more than %d words", TAG_BYTES / 8);
    t->word[t->n++] = LLVMBuildIntCast2(g->b, w, g->i64, 0, "");
}

/* Does the address follow from the starts of the slices, throughout a launch? */
static bool is_by_starts(const TlCpuAccess *a)
{
    bool only_slices = true;
    for (uint32_t i = 0; i < a->a->place.naxes; i++)
        only_slices &= a->start[i] != NULL;
    return only_slices && !a->a->place.base->def && a->a->param >= 0;
}

/* What identifies a chunk of B: the launch, the room in its panels, how many iterations it has and
 * how many columns, the address and the starts of the slices of its first iteration; of computed B,
 * k there and its keys. */
static Tag tag_of(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlCpuAccess *a = c->b;
    Tag t = {.n = 0};
    LLVMValueRef offset = tl_gen_int(&g->gen, offsetof(tile_cpu_ctx, launch));
    LLVMValueRef p = LLVMBuildInBoundsGEP2(g->b, g->i8, g->ctx, &offset, 1, "");
    LLVMValueRef w = LLVMBuildLoad2(g->b, g->i64, p, "");
    w = tl_cpu_add(g, tl_cpu_times(g, w, c->x.n->most_trips * c->p->depth + 2), c->x.panel_rows);
    w = tl_cpu_add(g, tl_cpu_times(g, w, c->x.n->most_trips + 1), c->x.trips);
    if (c->x.b_row)
        w = tl_cpu_add(g, tl_cpu_times(g, w, c->x.n->most_trips * c->p->depth + 1), c->x.b_row);
    add_word(g, &t, tl_cpu_add(g, tl_cpu_times(g, w, c->x.acc_row + 1), c->x.columns));
    if (!a) {
        LLVMValueRef first = LLVMBuildIntCast2(g->b, c->x.first, LLVMTypeOf(c->x.lo), 0, "");
        add_word(g, &t, tl_cpu_add(g, c->x.lo, LLVMBuildMul(g->b, first, c->x.by, "")));
        for (int i = 0; i < c->p->nkeys; i++)
            add_word(g, &t, tl_gen_scalar(&g->gen, c->p->key[i]));
        return t;
    }
    if (!is_by_starts(a))
        add_word(g, &t, a->ptr);
    if (a->ok)
        add_word(g, &t, a->ok);
    for (uint32_t i = 0; i < a->a->place.naxes; i++)
        if (a->start[i])
            add_word(g, &t, a->start[i]);
    return t;
}

static LLVMValueRef word_at(TlCpuGen *g, LLVMValueRef base, int i)
{
    LLVMValueRef offset = tl_gen_int(&g->gen, i);
    return LLVMBuildInBoundsGEP2(g->b, g->i64, base, &offset, 1, "");
}

static LLVMValueRef differs(TlCpuGen *g, const Tag *t, LLVMValueRef kept)
{
    LLVMValueRef any = NULL;
    for (int i = 0; i < t->n; i++) {
        LLVMValueRef was = LLVMBuildLoad2(g->b, g->i64, word_at(g, kept, i), "");
        LLVMValueRef c = LLVMBuildICmp(g->b, LLVMIntNE, was, t->word[i], "");
        any = any ? LLVMBuildOr(g->b, any, c, "") : c;
    }
    return any;
}

/* ---- the loop ---- */

/* Packs one operand, for all iterations of the chunk. */
static void pack_trips(Chunk *c, bool is_b)
{
    TlCpuGen *g = c->x.g;
    TlCpuLoop l;
    tl_cpu_loop_begin(g, &l, tl_gen_int(&g->gen, 0), c->x.trips, 1, 0, NULL);
    tl_cpu_lower_trip(&c->x, tl_cpu_add(g, c->x.first, l.i));
    LLVMValueRef k = tl_cpu_times(g, l.i, tl_in(c->p->dot, 1)->type->shape[0]);
    tl_cpu_pack(&c->x, c->x.n->pack[is_b], is_b ? c->x.b : c->x.a, k);
    tl_cpu_loop_end(g, &l, NULL);
    if (is_b)
        tl_cpu_correct(&c->x);
}

/* ---- few rows ---- */

/* Are all columns of B inside that are seen? */
static LLVMValueRef columns_are_inside(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlNestFew *f = &c->x.n->few_rows;
    const TlCpuAccess *b = tl_cpu_access_of(g, f->ends->op);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    return LLVMBuildAnd(
        g->b, LLVMBuildICmp(g->b, LLVMIntEQ, b->lo[f->ends_axis], zero, ""),
        LLVMBuildICmp(g->b, LLVMIntSGE, b->hi[f->ends_axis], c->x.columns, ""), "");
}

/* Are B's rows of the iteration inside, and what blocks read past their columns, too? That is of
 * the rows that follow, if there is nothing between rows. */
static LLVMValueRef goes_past(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlCpuAccess *b = tl_cpu_access_of(g, c->p->b_load);
    const TlPlace *place = &b->a->place;
    int k = tl_nest_slice_of(place, 0), n = tl_nest_slice_of(place, 1);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), rows = tl_gen_int(&g->gen, place->axes[k].width),
                 columns = tl_gen_int(&g->gen, place->axes[n].width);
    LLVMValueRef last =
        LLVMBuildSub(g->b, tl_cpu_add(g, b->start[k], rows), tl_gen_int(&g->gen, 1), "");
    LLVMValueRef left = LLVMBuildSub(g->b, b->view->extent[k], last, "");
    left = LLVMBuildSub(g->b, LLVMBuildMul(g->b, left, b->stride[k], ""), b->start[n], "");
    LLVMValueRef all[] = {LLVMBuildICmp(g->b, LLVMIntEQ, b->lo[k], zero, ""),
                          LLVMBuildICmp(g->b, LLVMIntEQ, b->hi[k], rows, ""),
                          LLVMBuildICmp(g->b, LLVMIntEQ, b->lo[n], zero, ""),
                          LLVMBuildICmp(g->b, LLVMIntEQ, b->stride[n], tl_gen_int(&g->gen, 1), ""),
                          LLVMBuildICmp(g->b, LLVMIntEQ, b->stride[k], b->view->extent[n], ""),
                          LLVMBuildICmp(g->b, LLVMIntSGE, left, columns, "")};
    LLVMValueRef good = b->ok ? b->ok : LLVMConstInt(g->i1, 1, 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        good = LLVMBuildAnd(g->b, good, all[i], "");
    return good;
}

/* Is all of B inside in an iteration, and all k of A, if that is read where it lies? */
static LLVMValueRef is_whole_trip(Chunk *c, LLVMValueRef trip)
{
    TlCpuGen *g = c->x.g;
    TlNest boxed, *b = c->x.n->pack[1];
    const TlNestFew *f = &c->x.n->few_rows;
    tl_cpu_lower_trip(&c->x, trip);
    if (f->ends) {
        boxed = *b;
        boxed.boxed = f->ends;
        boxed.boxed_axes = 1u << f->ends_axis;
        b = &boxed;
    }
    LLVMValueRef all = tl_gen_int(&g->gen, b->value->type->shape[b->lane]), whole;
    LLVMValueRef end = tl_cpu_bounds(g, b, b->width).end;
    whole = end ? LLVMBuildICmp(g->b, LLVMIntEQ, end, all, "") : LLVMConstInt(g->i1, 1, 0);
    if (f->ends)
        whole = LLVMBuildAnd(g->b, whole, columns_are_inside(c), "");
    if (f->past)
        whole = LLVMBuildOr(g->b, whole, goes_past(c), "");
    if (!c->p->a_load)
        return whole;
    const TlCpuAccess *a = tl_cpu_access_of(g, c->p->a_load);
    int k = tl_nest_slice_of(&a->a->place, 1);
    LLVMValueRef width = tl_gen_int(&g->gen, a->a->place.axes[k].width);
    LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntEQ, a->hi[k], width, "");
    return LLVMBuildAnd(g->b, whole, inside, "");
}

/* How many iterations from the first on have all inside: all, all but the last, or fewer than there
 * are, one or none. */
static LLVMValueRef whole_trips(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), one = tl_gen_int(&g->gen, 1), whole = zero;
    TlCpuLoop l;
    tl_cpu_loop_known(g, &l, 0, 3, 1, 1, &whole); /* the first, the last but one, the last */
    LLVMValueRef is_first = LLVMBuildICmp(g->b, LLVMIntEQ, l.i, zero, "");
    LLVMValueRef at = tl_cpu_add(g, c->n, LLVMBuildSub(g->b, l.i, tl_gen_int(&g->gen, 3), ""));
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntSLT, at, zero, ""),
                 some = LLVMBuildICmp(g->b, LLVMIntSGT, l.carry[0], zero, "");
    none = LLVMBuildOr(g->b, is_first, none, "");
    at = LLVMBuildSelect(g->b, none, zero, at, "");
    LLVMValueRef can = LLVMBuildOr(g->b, is_first, some, "");
    can = LLVMBuildAnd(g->b, can, is_whole_trip(c, at), "");
    whole = LLVMBuildSelect(g->b, can, tl_cpu_add(g, at, one), l.carry[0], "");
    tl_cpu_loop_end(g, &l, &whole);
    return l.carry[0];
}

/* All columns of a block are computed where one is seen: more than half of them, or few rows. */
static LLVMValueRef sees_enough(Chunk *c, LLVMValueRef rows)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef half = tl_gen_int(&g->gen, c->x.acc_row / 2),
                 mr = tl_gen_int(&g->gen, c->x.n->few_rows.mr);
    LLVMValueRef many = LLVMBuildICmp(g->b, LLVMIntSGT, c->x.columns, half, ""),
                 some = LLVMBuildICmp(g->b, LLVMIntSGT, c->x.columns, tl_gen_int(&g->gen, 0), "");
    some = LLVMBuildAnd(g->b, some, LLVMBuildICmp(g->b, LLVMIntSLE, rows, mr, ""), "");
    return LLVMBuildOr(g->b, many, some, "");
}

/* Bytes of B's rows, with what is between them. */
static LLVMValueRef bytes_of_b(Chunk *c, const TlCpuAccess *b)
{
    TlCpuGen *g = c->x.g;
    int outer = c->x.n->few_rows.axis[c->x.n->few_rows.along];
    LLVMValueRef n = LLVMBuildMul(g->b, b->view->extent[outer], b->stride[outer], "");
    return tl_cpu_times(g, n, tl_dtype_bytes(b->view->dtype));
}

/* The same of B that is read up to its ends: all iterations do, or none. */
static void find_few_to_ends(Chunk *c, LLVMValueRef rows)
{
    TlCpuGen *g = c->x.g;
    const TlNestFew *f = &c->x.n->few_rows;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    tl_cpu_lower_trip(&c->x, zero);
    const TlCpuAccess *b = tl_cpu_access_of(g, c->p->b_load);
    LLVMValueRef held = tl_gen_int(&g->gen, HELD_BYTES);
    c->small_b = LLVMBuildICmp(g->b, LLVMIntULE, bytes_of_b(c, b), held, "");
    LLVMValueRef some = tl_gen_int(&g->gen, f->small_rows), most = tl_gen_int(&g->gen, f->rows);
    if (!f->along)
        most = LLVMBuildSelect(g->b, c->small_b, some, most, "");
    LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntSLE, rows, most, "");
    if (f->each)
        few = LLVMBuildAnd(g->b, few,
                           LLVMBuildICmp(g->b, LLVMIntSLE, tl_cpu_times(g, rows, f->each),
                                         b->view->extent[f->axis[0]], ""),
                           "");
    for (int i = 0; i < 2; i++) {
        LLVMValueRef begins = LLVMBuildICmp(g->b, LLVMIntEQ, b->lo[f->axis[i]], zero, "");
        few = LLVMBuildAnd(g->b, few, begins, "");
    }
    LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntSGE, b->hi[f->axis[1]], c->x.columns, ""),
                 seen = f->along ? LLVMBuildICmp(g->b, LLVMIntSGT, c->x.columns, zero, "")
                                 : sees_enough(c, rows);
    few = LLVMBuildAnd(g->b, LLVMBuildAnd(g->b, few, inside, ""), seen, "");
    few = b->ok ? LLVMBuildAnd(g->b, few, b->ok, "") : few;
    c->few = LLVMBuildSelect(g->b, few, c->n, zero, "");
}

/* Sets c->few: iterations that read B as it is, if C has few rows. */
static void find_few(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlNestFew *f = &c->x.n->few_rows;
    if (!f->rows)
        return;
    TlPlace p = tl_op_place(c->p->store);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), most = tl_gen_int(&g->gen, f->rows);
    LLVMValueRef rows = tl_gen_view(&g->gen, p.base)->extent[tl_nest_slice_of(&p, 0)];
    if (f->to_ends) {
        find_few_to_ends(c, rows);
        return;
    }
    LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntSLE, rows, most, "");
    if (f->some) {
        c->x.some = LLVMBuildNot(g->b, few, "");
        few = LLVMBuildICmp(g->b, LLVMIntSLE, rows, tl_gen_int(&g->gen, f->some), "");
    }
    LLVMValueRef all = tl_gen_int(&g->gen, c->x.acc_row);
    LLVMValueRef columns = f->ends   ? LLVMBuildICmp(g->b, LLVMIntSGT, c->x.columns, zero, "")
                           : f->past ? sees_enough(c, rows)
                                     : LLVMBuildICmp(g->b, LLVMIntEQ, c->x.columns, all, "");
    few = LLVMBuildAnd(g->b, few, columns, "");
    few = LLVMBuildAnd(g->b, few, LLVMBuildICmp(g->b, LLVMIntSGT, c->n, zero, ""), "");
    TlCpuBranch branch = tl_cpu_branch(g, few, true, "few", "many");
    LLVMValueRef trips = whole_trips(c);
    if (f->each) {
        LLVMValueRef k = tl_cpu_times(g, trips, tl_in(c->p->dot, 1)->type->shape[0]);
        few = LLVMBuildICmp(g->b, LLVMIntSLE, tl_cpu_times(g, rows, f->each), k, "");
        trips = LLVMBuildSelect(g->b, few, trips, zero, "");
    }
    c->few = tl_cpu_join_value(g, branch, trips, zero);
}

/* Which iteration of a loop around it is, of how many. */
static LLVMValueRef trip_of(TlCpuGen *g, TlOp *loop, LLVMValueRef *all)
{
    const TlValue *k = loop->regions[0]->args[0];
    LLVMValueRef bound[3];
    for (uint32_t j = 0; j < 3; j++)
        bound[j] = tl_gen_scalar(&g->gen, tl_in(loop, j));
    *all = tl_gen_trip_count(&g->gen, loop, bound[0], bound[1], bound[2]);
    LLVMValueRef lo = tl_gen_to_i64(&g->gen, k, bound[0]),
                 step = tl_gen_to_i64(&g->gen, k, bound[2]),
                 at = tl_gen_to_i64(&g->gen, k, g->scalar[k->id]);
    return LLVMBuildSDiv(g->b, LLVMBuildSub(g->b, at, lo, ""), step, "");
}

/* Which chunk it is, of those of all iterations of the loops around. */
static LLVMValueRef number_of_chunk(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlNestProduct *p = c->p;
    LLVMValueRef trips = tl_gen_int(&g->gen, p->trips), n = NULL;
    for (int i = p->naround + p->nbeyond - 1; i >= 0; i--) {
        TlOp *loop = i < p->naround ? p->around[i] : p->beyond[i - p->naround];
        LLVMValueRef all, trip = trip_of(g, loop, &all);
        n = n ? tl_cpu_add(g, LLVMBuildMul(g->b, n, all, ""), trip) : trip;
    }
    LLVMValueRef first = LLVMBuildUDiv(g->b, c->x.first, trips, "");
    LLVMValueRef chunks =
        LLVMBuildUDiv(g->b, tl_cpu_add(g, c->n, tl_gen_int(&g->gen, p->trips - 1)), trips, "");
    return n ? tl_cpu_add(g, LLVMBuildMul(g->b, n, chunks, ""), first) : first;
}

/* The same by where B is, along the axes on which the loops around move it, and how many there are:
 * programs that have every second iteration have chunks of their own so. *outside: i1, it is not
 * within B. NULL: no number says where it is. */
static LLVMValueRef number_by_place(Chunk *c, LLVMValueRef *all, LLVMValueRef *outside)
{
    TlCpuGen *g = c->x.g;
    const TlNestProduct *p = c->p;
    LLVMValueRef n = NULL, trips = tl_gen_int(&g->gen, p->trips);
    for (uint32_t i = 0; p->numbering >> i; i++) {
        if (!(p->numbering >> i & 1))
            continue;
        TlValue *at = c->b->a->place.index[i].value;
        LLVMValueRef index = tl_gen_to_i64(&g->gen, at, tl_gen_scalar(&g->gen, at)),
                     extent = c->b->view->extent[i],
                     out = LLVMBuildICmp(g->b, LLVMIntUGE, index, extent, "");
        *all = n ? LLVMBuildMul(g->b, *all, extent, "") : extent;
        *outside = n ? LLVMBuildOr(g->b, *outside, out, "") : out;
        n = n ? tl_cpu_add(g, LLVMBuildMul(g->b, n, extent, ""), index) : index;
    }
    if (!n)
        return NULL;
    LLVMValueRef first = LLVMBuildUDiv(g->b, c->x.first, trips, "");
    LLVMValueRef chunks =
        LLVMBuildUDiv(g->b, tl_cpu_add(g, c->n, tl_gen_int(&g->gen, p->trips - 1)), trips, "");
    *all = LLVMBuildMul(g->b, *all, chunks, "");
    return tl_cpu_add(g, LLVMBuildMul(g->b, n, chunks, ""), first);
}

/* By place where there are slots for half of these: what programs keep of the others is little. */
static LLVMValueRef slot_of_chunk(Chunk *c, LLVMValueRef last)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef all, outside, by_trips = number_of_chunk(c),
                               n = number_by_place(c, &all, &outside);
    if (!n)
        return by_trips;
    LLVMValueRef fits = LLVMBuildICmp(g->b, LLVMIntULE, all, tl_cpu_times(g, last, 2), "");
    fits = LLVMBuildAnd(g->b, fits, LLVMBuildNot(g->b, outside, ""), "");
    return LLVMBuildSelect(g->b, fits, n, by_trips, "");
}

/* ---- chunks that are multiplied together ----
 * Chunks of the iterations of the loops around wait for each other, so that sums go through memory
 * once for all of them: scratch memory says how many they are, how many rows of the shared slot
 * they have, and what each is. */

/* Is it the first of them, is it the last? */
static void find_ends(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), end = tl_cpu_add(g, c->x.first, c->x.trips);
    c->is_first = LLVMBuildICmp(g->b, LLVMIntEQ, c->x.first, zero, "");
    c->is_last = LLVMBuildICmp(g->b, LLVMIntSGE, end, c->n, "");
    for (int i = 0; i < c->p->ngathered; i++) {
        LLVMValueRef all, trip = trip_of(g, c->p->around[i], &all);
        LLVMValueRef next = tl_cpu_add(g, trip, tl_gen_int(&g->gen, 1));
        LLVMValueRef begins = LLVMBuildICmp(g->b, LLVMIntEQ, trip, zero, ""),
                     ends = LLVMBuildICmp(g->b, LLVMIntEQ, next, all, "");
        c->is_first = LLVMBuildAnd(g->b, c->is_first, begins, "");
        c->is_last = LLVMBuildAnd(g->b, c->is_last, ends, "");
    }
}

/* Word i of what is said of all that wait; the first chunk finds 0. */
static LLVMValueRef waiting_word(Chunk *c, int i)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef n =
        LLVMBuildLoad2(g->b, g->i64, word_at(g, tl_cpu_home_ptr(g, c->p->gathered), i), "");
    return LLVMBuildSelect(g->b, c->is_first, tl_gen_int(&g->gen, 0), n, "");
}

/* In the shared slot the chunk lies below those that wait. */
static void find_room(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    find_ends(c);
    c->filled = waiting_word(c, 1);
    c->x.b_row = LLVMBuildSelect(g->b, c->in_last, c->filled, zero, "");
}

/* The last slot has room for the greatest chunk, or for several that wait; the others, where all
 * loops of a launch are as long, for as many rows as a chunk of theirs has, and are the more for
 * it. */
static LLVMValueRef choose_slot(Chunk *c, LLVMValueRef buffer)
{
    TlCpuGen *g = c->x.g;
    const TlNestProduct *p = c->p;
    int64_t great = p->panel_rows * c->x.acc_row, before = ((int64_t)p->slots - 1) * great;
    LLVMValueRef last = tl_gen_int(&g->gen, (int64_t)p->slots - 1);
    LLVMValueRef size = tl_gen_int(&g->gen, great), rows = c->x.panel_rows;
    if (p->tagged > p->slots) {
        LLVMValueRef most = tl_gen_int(&g->gen, (int64_t)p->tagged - 1);
        rows = tl_cpu_add(g, tl_cpu_times(g, c->n, p->depth / p->trips), tl_gen_int(&g->gen, 1));
        size = tl_cpu_smaller(g, rows, tl_gen_int(&g->gen, p->panel_rows));
        size = tl_cpu_times(g, size, c->x.acc_row);
        last = LLVMBuildUDiv(g->b, tl_gen_int(&g->gen, before), size, "");
        last = tl_cpu_smaller(g, last, most);
        rows = tl_cpu_smaller(g, rows, c->x.panel_rows);
    }
    LLVMValueRef n = slot_of_chunk(c, last);
    c->in_last = LLVMBuildICmp(g->b, LLVMIntUGE, n, last, "");
    LLVMValueRef at = LLVMBuildMul(g->b, n, size, "");
    at = LLVMBuildSelect(g->b, c->in_last, tl_gen_int(&g->gen, before), at, "");
    c->x.b = tl_cpu_elem_at(&c->x, buffer, at);
    c->x.panel_rows = LLVMBuildSelect(g->b, c->in_last, c->x.panel_rows, rows, "");
    return LLVMBuildSelect(g->b, c->in_last, last, n, "");
}

static void provide_b(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlNestProduct *p = c->p;
    LLVMValueRef buffer = tl_cpu_home_ptr(g, p->b);
    c->x.b = buffer;
    if (!p->keeps_b) {
        pack_trips(c, true);
        return;
    }
    LLVMValueRef slot = choose_slot(c, buffer);
    if (p->ngathered)
        find_room(c);
    LLVMValueRef i =
        tl_cpu_add(g, tl_cpu_times(g, slot, TAG_BYTES), tl_gen_int(&g->gen, (int64_t)p->tags));
    LLVMValueRef kept = LLVMBuildInBoundsGEP2(g->b, g->i8, g->scratch, &i, 1, "");
    Tag t = tag_of(c);
    TlCpuBranch pack = tl_cpu_branch(g, differs(g, &t, kept), true, "pack", "packed");
    pack_trips(c, true);
    for (int w = 0; w < t.n; w++)
        LLVMBuildStore(g->b, t.word[w], word_at(g, kept, w));
    tl_cpu_join(g, pack);
}

/* Where A's rows move: do the chunk's iterations follow each other in memory, each with all k? */
static LLVMValueRef trips_follow(Chunk *c, int row, int k)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef width = tl_gen_int(&g->gen, c->a->a->place.axes[k].width),
                 zero = tl_gen_int(&g->gen, 0), one = tl_gen_int(&g->gen, 1);
    LLVMValueRef step = tl_cpu_times(g, c->a->stride[row], c->p->a_moves),
                 left = LLVMBuildSub(g->b, c->a->view->extent[k], c->a->start[k], "");
    LLVMValueRef low = LLVMBuildICmp(g->b, LLVMIntSGE, c->a->start[k], zero, ""),
                 high = LLVMBuildICmp(g->b, LLVMIntSGE, left, width, ""),
                 follow = LLVMBuildICmp(g->b, LLVMIntEQ, step, width, ""),
                 single = LLVMBuildICmp(g->b, LLVMIntEQ, c->x.trips, one, "");
    follow = LLVMBuildOr(g->b, follow, single, "");
    return LLVMBuildAnd(g->b, LLVMBuildAnd(g->b, low, high, ""), follow, "");
}

/* Reads A in memory, from the chunk's first k to the end of A, unless that is within a packed
 * element. The elements past the end would have added zeros, which turns -0 into +0: x->last does
 * that. Sums that began at +0 do not become -0, but for underflow. */
static void point_at_a(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    TlPlace place = c->a->a->place;
    bool columns = c->p->a_by_columns;
    int row = tl_nest_slice_of(&place, columns), k = tl_nest_slice_of(&place, !columns);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    LLVMValueRef left = LLVMBuildSub(g->b, c->a->view->extent[k], c->a->start[k], "");
    c->x.a = c->a->ptr;
    c->x.a_row = c->p->a_rows ? zero : c->a->stride[columns ? k : row];
    if (c->p->a_moves) {
        c->is_whole = trips_follow(c, row, k);
        return;
    }
    if (c->p->a_is_whole) {
        LLVMValueRef all = tl_cpu_times(g, c->x.count, c->x.per);
        c->is_whole = LLVMBuildICmp(g->b, LLVMIntSGE, left, all, "");
        return;
    }
    left = tl_cpu_larger(g, left, zero);
    int64_t together = c->p->pairs ? 2 : 1;
    LLVMValueRef per = tl_gen_int(&g->gen, together * c->x.per),
                 whole = tl_cpu_times(g, LLVMBuildUDiv(g->b, left, per, ""), together);
    LLVMValueRef inside = tl_cpu_smaller(g, c->x.count, whole);
    if (c->x.per > 1) {
        LLVMValueRef ends =
            LLVMBuildICmp(g->b, LLVMIntNE, tl_cpu_times(g, whole, c->x.per), left, "");
        ends = LLVMBuildAnd(g->b, ends, LLVMBuildICmp(g->b, LLVMIntSLT, whole, c->x.count, ""), "");
        c->is_whole = LLVMBuildNot(g->b, ends, "");
        inside = LLVMBuildSelect(g->b, ends, c->x.count, inside, "");
    }
    if (tl_is_float(c->x.dtype) && !g->fn->ring && !c->p->from_zero) {
        LLVMValueRef cut = LLVMBuildICmp(g->b, LLVMIntSLT, inside, c->x.count, "");
        LLVMValueRef z = LLVMBuildSelect(g->b, cut, LLVMConstReal(c->x.elem, 0),
                                         LLVMConstReal(c->x.elem, -0.0), "");
        c->x.last = tl_gen_splat(&g->gen, z, c->x.width);
    }
    c->x.count = inside;
}

/* B, where it is read up to its ends. */
static void point_at_b(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlNestFew *f = &c->x.n->few_rows;
    int k = f->axis[0],
        far = f->along ? TL_CPU_FAR_BYTES / tl_dtype_bytes(c->b->view->dtype) : TL_CPU_FAR_ROWS;
    c->x.b_from = c->b->ptr;
    c->x.b_down = c->b->stride[f->axis[f->along]];
    c->x.b_inside = c->b->hi[f->axis[1]];
    LLVMValueRef left = LLVMBuildSub(g->b, c->b->view->extent[k], c->b->start[k], "");
    left = LLVMBuildSub(g->b, left, tl_gen_int(&g->gen, far), "");
    c->x.b_asks = LLVMBuildSelect(g->b, tl_cpu_is_far(g, c->b), left, tl_gen_int(&g->gen, 0), "");
}

/* How many rows of A there are, of which no number is too large for the index's type. */
static LLVMValueRef rows_of_a(Chunk *c, int row)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef extent = c->a->view->extent[row];
    int bytes = tl_dtype_bytes(c->a->a->place.index[row].value->type->dtype);
    if (!c->p->a_moves || bytes == 8)
        return extent;
    return tl_cpu_smaller(g, extent, tl_gen_int(&g->gen, ((int64_t)1 << (8 * bytes - 1)) - 1));
}

/* Are the rows of A that are computed inside of it, in all of the chunk's iterations? */
static LLVMValueRef rows_are_inside(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    TlPlace place = c->a->a->place;
    int row = tl_nest_slice_of(&place, c->p->a_by_columns);
    TL_ASSERT(row >= 0, "A's rows are not along an axis");
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    LLVMValueRef from = tl_cpu_add(g, c->a->start[row], c->x.from),
                 to = tl_cpu_add(g, c->a->start[row], c->x.to);
    if (c->p->a_moves) {
        LLVMValueRef further = LLVMBuildSub(g->b, c->x.trips, tl_gen_int(&g->gen, 1), "");
        to = tl_cpu_add(g, to, tl_cpu_times(g, further, c->p->a_moves));
    }
    LLVMValueRef low = LLVMBuildICmp(g->b, LLVMIntSGE, from, zero, ""),
                 high = LLVMBuildICmp(g->b, LLVMIntSLE, to, rows_of_a(c, row), "");
    LLVMValueRef inside = LLVMBuildAnd(g->b, low, high, "");
    return c->a->ok ? LLVMBuildAnd(g->b, inside, c->a->ok, "") : inside;
}

/* Of B's rows, from the chunk's first on, so many are inside. */
static LLVMValueRef rows_left_of_b(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    bool transposed;
    TlOp *load = tl_nest_load_under(tl_in(c->p->dot, 1), &transposed);
    TL_ASSERT(load, "rows of B that no load reads");
    const TlCpuAccess *b = tl_cpu_access_of(g, load);
    int i = tl_nest_slice_of(&b->a->place, transposed ? 1 : 0);
    LLVMValueRef left = LLVMBuildSub(g->b, b->view->extent[i], b->start[i], "");
    return tl_cpu_larger(g, left, tl_gen_int(&g->gen, 0));
}

/* How many iterations the chunk has, and the room in its panels. */
static void set_trips(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef most = tl_gen_int(&g->gen, c->p->trips);
    if (c->x.n->deepens) {
        LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntSLE, tl_cpu_packed_columns(&c->x),
                                         tl_gen_int(&g->gen, c->x.n->few), "");
        if (c->p->a_may_end)
            few = LLVMBuildAnd(g->b, few, rows_are_inside(c), "");
        most = LLVMBuildSelect(g->b, few, tl_gen_int(&g->gen, c->x.n->most_trips), most, "");
    }
    LLVMValueRef end = c->n;
    if (c->few) {
        c->reads_b = c->x.reads_now = LLVMBuildICmp(g->b, LLVMIntSLT, c->x.first, c->few, "");
        LLVMValueRef trips = tl_gen_int(&g->gen, c->x.n->few_rows.trips);
        if (c->small_b)
            trips = LLVMBuildSelect(g->b, c->small_b, c->few, trips, "");
        if (c->x.some)
            trips = LLVMBuildSelect(g->b, c->x.some, most, trips, "");
        most = LLVMBuildSelect(g->b, c->reads_b, trips, most, "");
        end = LLVMBuildSelect(g->b, c->reads_b, c->few, end, "");
    }
    int64_t k = tl_in(c->p->dot, 1)->type->shape[0] / c->x.per;
    c->x.panel_rows = tl_cpu_add(g, tl_cpu_times(g, most, k), tl_gen_int(&g->gen, 1));
    c->x.trips = tl_cpu_smaller(g, LLVMBuildSub(g->b, end, c->x.first, ""), most);
    c->x.count = tl_cpu_times(g, c->x.trips, k);
    if (c->p->cuts_listed)
        c->x.count = tl_cpu_smaller(g, c->x.count, rows_left_of_b(c));
}

/* ---- rows that move ----
 * In the iterations of a loop around, A's rows begin further on, or further back, and nothing else
 * of A changes. Where all of them are inside, A is read where it lies. Where not, and they are no
 * further apart than a block has rows, the first iteration packs the rows of all of them. */

typedef struct Slide {
    LLVMValueRef from, span;   /* the least start of the rows, how far it is to the greatest */
    LLVMValueRef begins, ends; /* is it the loop's first iteration, its last? */
} Slide;

static TlValue *start_of_rows(const TlNestProduct *p)
{
    TlPlace place = tl_op_place(p->a_load);
    return place.index[tl_nest_slice_of(&place, 1)].value;
}

/* Where A's rows begin in that iteration of the loop around. */
static LLVMValueRef row_start(Chunk *c, LLVMValueRef k)
{
    TlCpuGen *g = c->x.g;
    TlBlock *body = c->p->slides->regions[0];
    TlValue *at = start_of_rows(c->p), *arg = body->args[0];
    LLVMValueRef kept[TL_NEST_SLIDING], now = g->scalar[arg->id];
    int n = 0;
    for (TlOp *op = body->first; op != c->p->loop; op = op->next)
        kept[n++] = g->scalar[op->out[0]->id];
    g->scalar[arg->id] = LLVMBuildIntCast2(g->b, k, LLVMTypeOf(now), 0, "");
    for (TlOp *op = body->first; op != c->p->loop; op = op->next)
        g->lower_op(g, op);
    LLVMValueRef start = tl_gen_to_i64(&g->gen, at, tl_gen_scalar(&g->gen, at));
    n = 0;
    for (TlOp *op = body->first; op != c->p->loop; op = op->next)
        g->scalar[op->out[0]->id] = kept[n++];
    g->scalar[arg->id] = now;
    return start;
}

static Slide find_slide(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    TlOp *loop = c->p->slides;
    const TlValue *k = loop->regions[0]->args[0];
    LLVMValueRef all, trip = trip_of(g, loop, &all), one = tl_gen_int(&g->gen, 1);
    LLVMValueRef lo = tl_gen_to_i64(&g->gen, k, tl_gen_scalar(&g->gen, tl_in(loop, 0))),
                 step = tl_gen_to_i64(&g->gen, k, tl_gen_scalar(&g->gen, tl_in(loop, 2)));
    LLVMValueRef last = LLVMBuildSub(g->b, all, one, "");
    LLVMValueRef a = row_start(c, lo),
                 b = row_start(c, tl_cpu_add(g, lo, LLVMBuildMul(g->b, last, step, "")));
    LLVMValueRef from = tl_cpu_smaller(g, a, b), most = tl_cpu_larger(g, a, b);
    return (Slide){
        .from = from,
        .span = LLVMBuildSub(g->b, most, from, ""),
        .begins = LLVMBuildICmp(g->b, LLVMIntEQ, trip, tl_gen_int(&g->gen, 0), ""),
        .ends = LLVMBuildICmp(g->b, LLVMIntEQ, trip, last, ""),
    };
}

/* Packs the rows of all iterations, as many at a time as a tile has. */
static void pack_slide(Chunk *c, const Slide *s)
{
    TlCpuGen *g = c->x.g;
    TlValue *at = start_of_rows(c->p);
    LLVMValueRef now = g->scalar[at->id], to = c->x.to, packed = c->x.a;
    LLVMValueRef all = tl_cpu_add(g, s->span, to);
    TlCpuLoop l;
    tl_cpu_loop_begin(g, &l, tl_gen_int(&g->gen, 0), all, c->x.rows, 0, NULL);
    g->scalar[at->id] =
        LLVMBuildIntCast2(g->b, tl_cpu_add(g, s->from, l.i), LLVMTypeOf(now), 1, "");
    c->x.to = tl_cpu_smaller(g, LLVMBuildSub(g->b, all, l.i, ""), tl_gen_int(&g->gen, c->x.rows));
    c->x.a = tl_cpu_part_at(&c->x, packed, l.i);
    pack_trips(c, false);
    tl_cpu_loop_end(g, &l, NULL);
    g->scalar[at->id] = now;
    c->x.to = to;
    c->x.a = packed;
}

/* Are the rows of all iterations inside? */
static LLVMValueRef slide_is_inside(Chunk *c, const Slide *s)
{
    TlCpuGen *g = c->x.g;
    TlPlace place = c->a->a->place;
    LLVMValueRef end = tl_cpu_add(g, tl_cpu_add(g, s->from, s->span), c->x.to);
    LLVMValueRef low = LLVMBuildICmp(g->b, LLVMIntSGE, tl_cpu_add(g, s->from, c->x.from),
                                     tl_gen_int(&g->gen, 0), ""),
                 high = LLVMBuildICmp(g->b, LLVMIntSLE, end,
                                      c->a->view->extent[tl_nest_slice_of(&place, 1)], "");
    LLVMValueRef inside = LLVMBuildAnd(g->b, low, high, "");
    return c->a->ok ? LLVMBuildAnd(g->b, inside, c->a->ok, "") : inside;
}

/* The rows of all iterations are packed together, those of this one, or neither; a chunk whose rows
 * the next one packs over is multiplied now. */
static void provide_sliding_a(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlNestProduct *p = c->p;
    Slide s = find_slide(c);
    LLVMValueRef a = c->x.a, a_row = c->x.a_row, packed = tl_cpu_home_ptr(g, p->a);
    LLVMValueRef inside = slide_is_inside(c, &s), direct = rows_are_inside(c);
    LLVMValueRef room = tl_gen_int(&g->gen, 2 * c->x.rows), all = tl_cpu_add(g, s.span, c->x.to);
    LLVMValueRef fits = LLVMBuildICmp(g->b, LLVMIntSLE, all, room, ""),
                 one = LLVMBuildICmp(g->b, LLVMIntSLE, c->n, tl_gen_int(&g->gen, p->trips), "");
    fits = LLVMBuildAnd(g->b, LLVMBuildAnd(g->b, fits, one, ""),
                        LLVMBuildNot(g->b, inside, ""), "");
    direct = LLVMBuildAnd(g->b, direct, LLVMBuildNot(g->b, fits, ""), "");
    c->x.a = packed;
    TlCpuBranch pack =
        tl_cpu_branch(g, LLVMBuildAnd(g->b, fits, s.begins, ""), true, "pack", "packed");
    pack_slide(c, &s);
    tl_cpu_join(g, pack);
    pack = tl_cpu_branch(g, LLVMBuildOr(g->b, direct, fits, ""), false, "pack", "packed");
    pack_trips(c, false);
    tl_cpu_join(g, pack);
    int row = tl_nest_slice_of(&c->a->a->place, 1);
    LLVMValueRef by = LLVMBuildSub(g->b, c->a->start[row], s.from, "");
    by = LLVMBuildSelect(g->b, fits, by, tl_gen_int(&g->gen, 0), "");
    c->x.a = LLVMBuildSelect(g->b, direct, a, tl_cpu_part_at(&c->x, packed, by), "");
    c->x.a_row =
        LLVMBuildSelect(g->b, direct, a_row, tl_gen_int(&g->gen, p->a_row * p->per), "");
    LLVMValueRef stays = LLVMBuildAnd(g->b, fits, LLVMBuildNot(g->b, s.ends, ""), "");
    c->direct = LLVMBuildOr(g->b, direct, stays, "");
}

/* Is A by columns better read where it lies? Columns a page apart, or by a power of two, drive each
 * other out of the first cache, and the pages' numbers out of theirs: blocks of many rows would pay
 * for that again and again. Chunks of more iterations have no room to be packed. */
static LLVMValueRef stays_by_columns(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef bytes = tl_cpu_times(g, c->x.a_row, tl_dtype_bytes(c->p->part[0]));
    LLVMValueRef rows = LLVMBuildSub(g->b, c->x.to, c->x.from, ""),
                 beside = LLVMBuildURem(g->b, bytes, tl_gen_int(&g->gen, SETS_BYTES), "");
    LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntSLE, rows,
                                     tl_gen_int(&g->gen, (int64_t)FEW_BLOCKS * c->x.mr), ""),
                 deep = LLVMBuildICmp(g->b, LLVMIntSGT, c->x.trips,
                                      tl_gen_int(&g->gen, c->p->trips), ""),
                 near = LLVMBuildICmp(g->b, LLVMIntULT, bytes, tl_gen_int(&g->gen, PAGE_BYTES), ""),
                 apart = LLVMBuildICmp(g->b, LLVMIntNE, beside, tl_gen_int(&g->gen, 0), "");
    near = LLVMBuildAnd(g->b, near, apart, "");
    return LLVMBuildOr(g->b, LLVMBuildOr(g->b, few, deep, ""), near, "");
}

static void provide_a(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef packed = NULL, row = tl_gen_int(&g->gen, c->p->a_row * c->p->per);
    if (c->p->a_bytes)
        packed = tl_cpu_home_ptr(g, c->p->a);
    if (!c->a) {
        c->x.a = packed;
        c->x.a_row = row;
        pack_trips(c, false);
        return;
    }
    if (!c->p->a_may_end && !c->p->a_packs)
        return;
    if (c->p->slides) {
        provide_sliding_a(c);
        return;
    }
    LLVMValueRef a = c->x.a, a_row = c->x.a_row,
                 direct = c->p->a_may_end ? rows_are_inside(c) : LLVMConstInt(g->i1, 1, 0);
    if (c->p->a_packs)
        direct = LLVMBuildAnd(g->b, direct, stays_by_columns(c), "");
    if (c->is_whole)
        direct = LLVMBuildAnd(g->b, direct, c->is_whole, "");
    c->direct = direct;
    TlCpuBranch pack = tl_cpu_branch(g, direct, false, "pack", "packed");
    c->x.a = packed;
    pack_trips(c, false);
    tl_cpu_join(g, pack);
    c->x.a = LLVMBuildSelect(g->b, direct, a, packed, "");
    c->x.a_row = LLVMBuildSelect(g->b, direct, a_row, row, "");
}

/* ---- rows by an index tile ---- */

/* The addresses of `width` rows from `m` on of what the load `a` reads from `begin` on: in the
 * view, or of zeros. */
static LLVMValueRef addresses_of(Chunk *c, const TlCpuAccess *a, LLVMValueRef begin, LLVMValueRef m,
                                 int width)
{
    TlCpuGen *g = c->x.g;
    uint32_t row = 0;
    while (a->a->place.index[row].value != c->p->a_rows)
        row++;
    TlCpuAt at;
    tl_cpu_at_init(g, &at, 1, 0, width);
    at.idx[0] = m;
    LLVMValueRef i = tl_gen_to_i64(&g->gen, c->p->a_rows, tl_cpu_eval(g, c->p->a_rows, &at));
    LLVMValueRef offset = LLVMBuildMul(g->b, i, tl_gen_splat(&g->gen, a->stride[row], width), "");
    LLVMValueRef p = LLVMBuildGEP2(g->b, c->x.part, begin, &offset, 1, "");
    if (!a->a->bounds)
        return p;
    LLVMValueRef extent = tl_gen_splat(&g->gen, a->view->extent[row], width);
    LLVMValueRef ok = LLVMBuildICmp(g->b, LLVMIntULT, i, extent, "");
    if (a->ok)
        ok = LLVMBuildAnd(g->b, ok, tl_gen_splat(&g->gen, a->ok, width), "");
    LLVMValueRef zeros = tl_cpu_scratch_at(g, c->p->zeros);
    return LLVMBuildSelect(g->b, ok, p, tl_gen_splat(&g->gen, zeros, width), "");
}

/* Lists rows `from` .. to - 1 of what the load `a` reads from `begin` on. */
static void list_part(Chunk *c, const TlCpuAccess *a, LLVMValueRef begin, LLVMValueRef from,
                      LLVMValueRef to, LLVMValueRef list)
{
    TlCpuGen *g = c->x.g;
    int width = c->x.n->listed;
    LLVMValueRef each = tl_gen_int(&g->gen, width);
    from = LLVMBuildSub(g->b, from, LLVMBuildURem(g->b, from, each, ""), "");
    TlCpuLoop l;
    tl_cpu_loop_begin(g, &l, from, to, width, 0, NULL);
    LLVMValueRef s = LLVMBuildStore(g->b, addresses_of(c, a, begin, l.i, width),
                                    LLVMBuildInBoundsGEP2(g->b, g->ptr, list, &l.i, 1, ""));
    LLVMSetAlignment(s, 8);
    tl_cpu_loop_end(g, &l, NULL);
}

/* Lists the columns of A, iteration by iteration. */
static void list_columns(Chunk *c, LLVMValueRef list)
{
    TlCpuGen *g = c->x.g;
    int64_t k = c->p->a_rows->type->shape[0];
    TlCpuLoop l;
    tl_cpu_loop_begin(g, &l, tl_gen_int(&g->gen, 0), c->x.trips, 1, 0, NULL);
    tl_cpu_lower_trip(&c->x, tl_cpu_add(g, c->x.first, l.i));
    const TlCpuAccess *a = tl_cpu_access_of(g, c->p->a_load);
    LLVMValueRef at = tl_cpu_times(g, l.i, k);
    list_part(c, a, a->ptr, tl_gen_int(&g->gen, 0), tl_gen_int(&g->gen, k),
              LLVMBuildInBoundsGEP2(g->b, g->ptr, list, &at, 1, ""));
    tl_cpu_loop_end(g, &l, NULL);
}

/* Lists the rows of A that are multiplied, of chunk `n` of those that wait, or its columns. */
static void list_rows(Chunk *c, LLVMValueRef n)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef first = tl_cpu_times(g, n, c->x.rows);
    LLVMValueRef list =
        LLVMBuildInBoundsGEP2(g->b, g->ptr, tl_cpu_home_ptr(g, c->p->listed), &first, 1, "");
    if (c->p->a_transposed)
        list_columns(c, list);
    else
        list_part(c, c->a, c->x.a, c->x.from, c->x.to, list);
    c->x.a = list;
    c->x.a_listed = true;
}

/* ---- the store ---- */

/* Which positions from .. to - 1 of a tile's axis the store writes: those inside. */
static void seen_part(TlCpuGen *g, const TlOp *store, int dim, LLVMValueRef *from, LLVMValueRef *to)
{
    TlPlace p = tl_op_place(store);
    int i = tl_nest_steps_of(&p, dim);
    const TlValue *index = p.index[i].value;
    LLVMValueRef start = tl_gen_to_i64(&g->gen, index, tl_gen_scalar(&g->gen, index));
    LLVMValueRef extent = tl_gen_view(&g->gen, p.base)->extent[i];
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), width = tl_gen_int(&g->gen, p.axes[i].width);
    LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntSLT, start, extent, "");
    LLVMValueRef left = tl_cpu_parts_of(g, LLVMBuildSub(g->b, extent, start, ""), p.axes[i].step);
    left = tl_gen_pick(&g->gen, LLVMIntULT, left, width, left, width);
    *to = LLVMBuildSelect(g->b, inside, left, zero, "");
    LLVMValueRef skipped =
        tl_gen_pick(&g->gen, LLVMIntSLT, start, zero,
                    tl_cpu_parts_of(g, LLVMBuildNeg(g->b, start, ""), p.axes[i].step), zero);
    skipped = tl_cpu_smaller(g, skipped, width);
    *from = tl_cpu_smaller(g, skipped, *to);
}

/* How many of `all` positions are chosen, below a number; NULL: all are. */
static LLVMValueRef chosen_part(TlCpuGen *g, TlValue *below, LLVMValueRef all)
{
    if (!below)
        return all;
    LLVMValueRef n = tl_gen_to_i64(&g->gen, below, tl_gen_scalar(&g->gen, below));
    return tl_cpu_smaller(g, tl_cpu_larger(g, n, tl_gen_int(&g->gen, 0)), all);
}

static void set_bounds(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlType *acc = c->p->dot->out[0]->type;
    c->x.from = tl_gen_int(&g->gen, 0);
    c->x.to = tl_gen_int(&g->gen, acc->shape[0]);
    c->x.columns = tl_gen_int(&g->gen, c->x.acc_row);
    LLVMValueRef unused;
    if (c->p->store) {
        seen_part(g, c->p->store, c->p->store_turned, &c->x.from, &c->x.to);
        seen_part(g, c->p->store, !c->p->store_turned, &unused, &c->x.columns);
    }
    c->x.to = chosen_part(g, c->p->seen[0], c->x.to);
    c->x.columns = chosen_part(g, c->p->seen[1], c->x.columns);
    tl_cpu_divide_columns(&c->x);
}

/* Prepares the store: is all of the tile inside? */
static LLVMValueRef can_store(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    c->c = tl_cpu_prepare_access(g, c->p->store);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), can = LLVMConstInt(g->i1, 1, 0);
    for (uint32_t i = 0; i < c->c->a->place.naxes; i++) {
        if (c->c->a->place.axes[i].kind != TL_AXIS_SLICE)
            continue;
        LLVMValueRef width = tl_gen_int(&g->gen, c->c->a->place.axes[i].width);
        LLVMValueRef low = LLVMBuildICmp(g->b, LLVMIntEQ, c->c->lo[i], zero, ""),
                     high = LLVMBuildICmp(g->b, LLVMIntEQ, c->c->hi[i], width, "");
        can = LLVMBuildAnd(g->b, can, LLVMBuildAnd(g->b, low, high, ""), "");
    }
    return c->c->ok ? LLVMBuildAnd(g->b, can, c->c->ok, "") : can;
}

/* Where this chunk's sums go. */
static void set_out(Chunk *c, LLVMValueRef now)
{
    TlCpuGen *g = c->x.g;
    TlPlace place = c->c->a->place;
    c->x.out = LLVMBuildSelect(g->b, now, c->c->ptr, c->x.acc, "");
    c->x.out_row = LLVMBuildSelect(g->b, now, c->c->stride[tl_nest_slice_of(&place, 0)],
                                   tl_gen_int(&g->gen, c->x.acc_row), "");
    LLVMBuildStore(g->b, LLVMBuildZExt(g->b, now, g->i64, ""), tl_cpu_scratch_at(g, c->p->stored));
}

static void multiply(TlCpuMultiply *x)
{
    (x->p->tile ? tl_cpu_multiply_tiles : tl_cpu_multiply)(x);
}

/* Must those that wait be multiplied now? The chunk is the last that there is room for, or the last
 * of all, or the next one may be packed where this one is. filled: rows of the shared slot. */
static LLVMValueRef is_due(Chunk *c, LLVMValueRef n, LLVMValueRef filled)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef due =
        LLVMBuildICmp(g->b, LLVMIntEQ, n, tl_gen_int(&g->gen, TL_NEST_GATHERED), "");
    int64_t k = tl_in(c->p->dot, 1)->type->shape[0] / c->x.per;
    LLVMValueRef next = tl_cpu_times(g, c->n, k), one = tl_gen_int(&g->gen, 1);
    LLVMValueRef room = LLVMBuildSub(g->b, c->x.panel_rows, one, "");
    next = tl_cpu_add(g, filled, tl_cpu_smaller(g, next, room));
    LLVMValueRef crowded = LLVMBuildICmp(g->b, LLVMIntSGT, next, room, "");
    crowded = LLVMBuildAnd(g->b, crowded, c->in_last, "");
    due = LLVMBuildOr(g->b, LLVMBuildOr(g->b, due, c->is_last, ""), crowded, "");
    return c->direct ? LLVMBuildOr(g->b, due, LLVMBuildNot(g->b, c->direct, ""), "") : due;
}

static void multiply_gathered(Chunk *c, LLVMValueRef stores)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef waiting = tl_cpu_home_ptr(g, c->p->gathered), zero = tl_gen_int(&g->gen, 0);
    LLVMValueRef n = waiting_word(c, 0);
    if (c->p->a_rows)
        list_rows(c, n);
    c->x.gathered = word_at(g, waiting, TL_NEST_WAITING_WORDS);
    tl_cpu_gather_chunk(&c->x, n);
    c->x.ngathered = tl_cpu_add(g, n, tl_gen_int(&g->gen, 1));
    int64_t k = tl_in(c->p->dot, 1)->type->shape[0] / c->x.per;
    LLVMValueRef rows = LLVMBuildSelect(g->b, c->in_last, tl_cpu_times(g, c->x.trips, k), zero, "");
    LLVMValueRef filled = tl_cpu_add(g, c->filled, rows), due = is_due(c, c->x.ngathered, filled);
    LLVMBuildStore(g->b, LLVMBuildSelect(g->b, due, zero, c->x.ngathered, ""), waiting);
    LLVMBuildStore(g->b, LLVMBuildSelect(g->b, due, zero, filled, ""), word_at(g, waiting, 1));
    TlCpuBranch now = tl_cpu_branch(g, due, true, "due", "wait");
    if (stores)
        set_out(c, LLVMBuildAnd(g->b, stores, c->is_last, ""));
    multiply(&c->x);
    tl_cpu_join(g, now);
}

static void set_out_of_last(Chunk *c, LLVMValueRef stores)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef is_last =
        LLVMBuildICmp(g->b, LLVMIntSGE, tl_cpu_add(g, c->x.first, c->x.trips), c->n, "");
    if (stores)
        set_out(c, LLVMBuildAnd(g->b, stores, is_last, ""));
}

static void multiply_chunk(Chunk *c, LLVMValueRef stores)
{
    if (c->p->a_rows)
        list_rows(c, tl_gen_int(&c->x.g->gen, 0));
    set_out_of_last(c, stores);
    multiply(&c->x);
}

/* A chunk of few rows may read B as it is. */
static void multiply_few_or_many(Chunk *c, LLVMValueRef stores)
{
    TlCpuGen *g = c->x.g;
    provide_a(c);
    set_out_of_last(c, stores);
    TlCpuFork fork = tl_cpu_fork(g, c->reads_b);
    (c->x.n->few_rows.along ? tl_cpu_multiply_along : tl_cpu_multiply_few)(&c->x);
    tl_cpu_fork_else(g, &fork, NULL);
    provide_b(c);
    multiply(&c->x);
    tl_cpu_fork_end(g, &fork, NULL);
}

static TlCpuMultiply multiply_of(TlCpuGen *g, const TlNest *nest)
{
    const TlNestProduct *p = nest->product;
    TlType sum = {.kind = TL_TILE, .dtype = p->dtype};
    TlType part = {.kind = TL_TILE, .dtype = p->part[0]};
    return (TlCpuMultiply){.g = g,
                           .n = nest,
                           .p = p,
                           .dtype = p->dtype,
                           .elem = tl_gen_elem_type(&g->gen, &sum),
                           .part = tl_gen_elem_type(&g->gen, &part),
                           .per = p->per,
                           .width = nest->width,
                           .nv = nest->nv,
                           .halves = nest->halves,
                           .mr = nest->mr,
                           .panel = nest->panel,
                           .fetches = nest->fetches,
                           .rows = nest->form.extent[0],
                           .acc_row = nest->form.padded[1],
                           .acc = tl_cpu_home_ptr(g, nest->home)};
}

void tl_cpu_lone_product(TlCpuGen *g, const TlNest *nest)
{
    const TlNestProduct *p = nest->product;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    Chunk c = {.p = p, .x = multiply_of(g, nest)};
    set_bounds(&c);
    c.x.from_zero = p->from_zero;
    c.x.panel_rows = tl_gen_int(&g->gen, p->panel_rows);
    c.x.count = tl_gen_int(&g->gen, p->depth);
    c.x.a = tl_cpu_home_ptr(g, p->a);
    c.x.a_row = tl_gen_int(&g->gen, p->a_row * p->per);
    c.x.b = tl_cpu_home_ptr(g, p->b);
    tl_cpu_pack(&c.x, nest->pack[1], c.x.b, zero);
    tl_cpu_correct(&c.x);
    tl_cpu_pack(&c.x, nest->pack[0], c.x.a, zero);
    multiply(&c.x);
}

void tl_cpu_product(TlCpuGen *g, const TlNest *nest, LLVMValueRef lo, LLVMValueRef by,
                    LLVMValueRef n)
{
    const TlNestProduct *p = nest->product;
    Chunk c = {.p = p, .n = n, .x = multiply_of(g, nest)};
    c.x.lo = lo;
    c.x.by = by;
    set_bounds(&c);
    LLVMValueRef stores = p->stores ? can_store(&c) : NULL;
    find_few(&c);
    TlCpuLoop chunks;
    tl_cpu_loop_begin(g, &chunks, tl_gen_int(&g->gen, 0), n, 1, 0, NULL);
    c.x.first = chunks.i;
    if (nest->begins_at_zero)
        c.x.begins = LLVMBuildICmp(g->b, LLVMIntEQ, chunks.i, tl_gen_int(&g->gen, 0), "");
    if (p->a_load || p->b_load) {
        tl_cpu_lower_trip(&c.x, c.x.first);
        c.a = p->a_load ? tl_cpu_access_of(g, p->a_load) : NULL;
        c.b = p->b_load ? tl_cpu_access_of(g, p->b_load) : NULL;
    }
    set_trips(&c);
    if (nest->few_rows.to_ends)
        point_at_b(&c);
    if (p->a_transposed)
        c.x.a_step = c.a->stride[tl_nest_slice_of(&c.a->a->place, 1)];
    if (c.a && !p->a_transposed)
        point_at_a(&c);
    if (c.few) {
        multiply_few_or_many(&c, stores);
    } else {
        provide_b(&c);
        provide_a(&c);
        (p->ngathered ? multiply_gathered : multiply_chunk)(&c, stores);
    }
    chunks.by = c.x.trips;
    tl_cpu_loop_end(g, &chunks, NULL);
}
