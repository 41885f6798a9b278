/* Rows of a few elements that lie apart, as one axis (nest_fold.c): how far apart they are, only
 * the launch knows. A vector is put together of pieces, each of which is loaded row by row from
 * where the row's lanes would be in it, and stored so.
 *
 *     rows of 3       a a a - b b b - c c c - d d d        (- is between rows)
 *     pieces of 4     a a a b   b b c c   c d d d
 *     of the first    a a a .   from row a on
 *                     . . . b   from 3 elements before row b on
 *
 * Nothing between rows is read or written: lanes are masked, or parts are loaded as they are.
 * Vectors take turns that begin with a row, so that it is known where in them rows begin; at the
 * border, where that is not so, lanes are gathered and scattered. */
#include "codegen/cpu/cpu_access.h"

/* Of a vector: which row each lane is in, counted from where its turn begins; how far apart rows
 * are. */
typedef struct Rows {
    int64_t row;        /* elements */
    int64_t column;     /* of lane 0, counted from where its turn begins */
    LLVMValueRef first; /* the address of lane 0 */
    LLVMValueRef pitch; /* elements from a row to the next */
    TlCpuNear *near, own;
    LLVMTypeRef elem;
    TlDtype dtype;
    unsigned align;
    int width, piece;
} Rows;

static int64_t row_of(const Rows *r, int lane)
{
    return (r->column + lane) / r->row;
}

/* Elements from where a turn begins to the position's first lane; -1: not known. */
static int64_t column_at(const TlCpuAt *at)
{
    LLVMValueRef j = at->idx[at->lane];
    if (LLVMIsAConstantInt(j))
        return LLVMConstIntGetSExtValue(j);
    return at->turn == j ? at->behind : -1;
}

/* Sets where a row begins from which on the others are found: what this turn's vectors before have
 * found, or this vector's first row. */
static void find_near(TlCpuGen *g, Rows *r, const TlCpuAccess *a, TlCpuRow *row)
{
    bool keeps = row && row->turn_in == (int64_t)g->conditional;
    for (uint32_t i = 0; keeps && i < row->near.len; i++)
        if (row->near.data[i].access == a && row->near.data[i].row <= r->column / r->row) {
            r->near = &row->near.data[i];
            return;
        }
    LLVMValueRef by = tl_gen_int(&g->gen, -(r->column % r->row)),
                 p = tl_gen_address(&g->gen, r->dtype, r->first, by);
    p = tl_llvm_copy(g->l, g->b, p, "=r,0");
    r->own = (TlCpuNear){a, p, r->column / r->row};
    r->near = &r->own;
    if (keeps) {
        tl_vec_push(g->arena, &row->near, r->own);
        r->near = &row->near.data[row->near.len - 1];
    }
}

static void rows_at(TlCpuGen *g, Rows *r, const TlCpuAccess *a, const TlType *elem,
                    const TlCpuSpot *s, const TlCpuAt *at)
{
    int bytes = (int)tl_gen_elem_bytes(elem);
    *r = (Rows){.row = a->a->row,
                .column = column_at(at),
                .first = s->ptr,
                .pitch = a->pitch,
                .elem = tl_gen_mem_type(&g->gen, elem),
                .dtype = elem->dtype,
                .align = (unsigned)bytes,
                .width = at->width,
                .piece = TL_NEST_PIECE_BYTES / bytes};
    r->piece = r->piece < r->width ? r->piece : r->width;
    find_near(g, r, a, at->row);
}

/* Where lane `lane` would be, were all lanes in this row, which is no row before one that was asked
 * for. LLVM would keep each row's distance from the first in a register of its own, of which there
 * are too few. */
static LLVMValueRef address(TlCpuGen *g, Rows *r, int64_t row, int lane)
{
    enum { FOUR = 4 };
    for (; row >= r->near->row + FOUR; r->near->row += FOUR) {
        LLVMValueRef four = tl_cpu_mul(g, r->pitch, tl_gen_int(&g->gen, FOUR));
        r->near->first = tl_gen_address(&g->gen, r->dtype, r->near->first, four);
        r->near->first = tl_llvm_copy(g->l, g->b, r->near->first, "=r,0");
    }
    LLVMValueRef by = tl_cpu_mul(g, r->pitch, tl_gen_int(&g->gen, row - r->near->row)),
                 p = tl_gen_address(&g->gen, r->dtype, r->near->first, by);
    return tl_gen_address(&g->gen, r->dtype, p,
                          tl_gen_int(&g->gen, r->column + lane - row * r->row));
}

/* Lanes of a piece from `from` up to `end`, which are in one row. */
static int end_of_row(const Rows *r, int from, int end)
{
    int to = from + 1;
    while (to < end && row_of(r, to) == row_of(r, from))
        to++;
    return to;
}

static LLVMValueRef lanes_of(TlCpuGen *g, LLVMValueRef x, int from, int n)
{
    LLVMValueRef index[TL_NEST_LANES];
    if (tl_gen_width_of(x) == n)
        return x;
    if (n == 1)
        return LLVMBuildExtractElement(g->b, x, tl_cpu_i32(g, (uint64_t)from), "");
    for (int i = 0; i < n; i++)
        index[i] = tl_cpu_i32(g, (uint64_t)(from + i));
    return LLVMBuildShuffleVector(g->b, x, x, LLVMConstVector(index, (unsigned)n), "");
}

/* x, of which lanes `to` on are those of v. */
static LLVMValueRef with_lanes(TlCpuGen *g, LLVMValueRef x, LLVMValueRef v, int to)
{
    LLVMValueRef index[TL_NEST_LANES];
    int w = tl_gen_width_of(x), n = tl_gen_width_of(v);
    if (n == w)
        return v;
    if (n == 1)
        return LLVMBuildInsertElement(g->b, x, v, tl_cpu_i32(g, (uint64_t)to), "");
    for (int i = 0; i < w; i++)
        index[i] = i < n ? tl_cpu_i32(g, (uint64_t)i) : LLVMGetUndef(g->i32);
    v = LLVMBuildShuffleVector(g->b, v, v, LLVMConstVector(index, (unsigned)w), "");
    for (int i = 0; i < w; i++)
        index[i] = tl_cpu_i32(g, (uint64_t)(i >= to && i < to + n ? w + i - to : i));
    return LLVMBuildShuffleVector(g->b, x, v, LLVMConstVector(index, (unsigned)w), "");
}

static LLVMValueRef in_lanes(TlCpuGen *g, int width, int from, int to)
{
    LLVMValueRef is[TL_NEST_LANES];
    for (int i = 0; i < width; i++)
        is[i] = LLVMConstInt(g->i1, i >= from && i < to, 0);
    return LLVMConstVector(is, (unsigned)width);
}

/* The same, computed where the function begins: there are few of so few lanes, and LLVM would make
 * a constant again for each use. */
static LLVMValueRef held_lanes(TlCpuGen *g, int width, int from, int to)
{
    enum { FEW = 4, ROOM = 8 };
    LLVMValueRef is = in_lanes(g, ROOM, from, to), index[ROOM];
    if (width != FEW || to - from < 2 || !tl_llvm_has_feature(g->l, "avx512vl"))
        return in_lanes(g, width, from, to);
    for (uint32_t i = 0; i < g->masks.len; i++) {
        const TlCpuMask *m = &g->masks.data[i];
        if (m->function == g->function && m->width == width && m->from == from && m->to == to)
            return m->mask;
    }
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMValueRef end = LLVMGetBasicBlockTerminator(LLVMGetEntryBasicBlock(g->function));
    TL_ASSERT(end, "a function that does not begin");
    LLVMPositionBuilderBefore(g->b, end);
    is = tl_llvm_copy(g->l, g->b, is, "=k,0");
    for (int i = 0; i < width; i++)
        index[i] = tl_cpu_i32(g, (uint64_t)i);
    is = LLVMBuildShuffleVector(g->b, is, is, LLVMConstVector(index, (unsigned)width), "");
    LLVMPositionBuilderAtEnd(g->b, here);
    tl_vec_push(g->arena, &g->masks, (TlCpuMask){g->function, is, width, from, to});
    return is;
}

/* The part of a mask for a piece's lanes in one row; NULL: all. */
static LLVMValueRef part_of_mask(TlCpuGen *g, const Rows *r, LLVMValueRef mask, int piece, int from,
                                 int to)
{
    bool all = from == piece && to == piece + r->piece;
    LLVMValueRef part = mask ? lanes_of(g, mask, piece, r->piece) : NULL,
                 own = all ? NULL : held_lanes(g, r->piece, from - piece, to - piece);
    return tl_cpu_both(g, part, own);
}

/* Most lanes, a power of two, of those that are left. */
static int chunk_of(int n)
{
    int most = 1;
    while (2 * most <= n)
        most *= 2;
    return most;
}

static LLVMValueRef load_lanes(TlCpuGen *g, const Rows *r, LLVMValueRef p, int n)
{
    LLVMValueRef x = LLVMBuildLoad2(g->b, tl_gen_vec(r->elem, n), p, "");
    LLVMSetAlignment(x, r->align);
    return x;
}

/* A piece's lanes from .. to - 1, which are in one row, into x. */
static LLVMValueRef load_row(TlCpuGen *g, Rows *r, LLVMValueRef x, LLVMValueRef mask, int piece,
                             int from, int to)
{
    int64_t row = row_of(r, from);
    bool half = !mask && 2 * (to - from) == r->piece && (from - piece) % (to - from) == 0;
    LLVMValueRef part = half ? NULL : part_of_mask(g, r, mask, piece, from, to);
    if (part && (g->m.masks || mask))
        return tl_llvm_masked(g->gen.l, g->b, TL_MASKED_LOAD, address(g, r, row, piece), r->align,
                              part, x);
    for (int n; from < to; from += n) {
        n = chunk_of(to - from);
        x = with_lanes(g, x, load_lanes(g, r, address(g, r, row, from), n), from - piece);
    }
    return x;
}

/* Vectors one behind the other, of which there is a power of two. */
static LLVMValueRef joined(TlCpuGen *g, LLVMValueRef *v, int n)
{
    LLVMValueRef index[TL_NEST_LANES];
    for (; n > 1; n /= 2) {
        int w = 2 * tl_gen_width_of(v[0]);
        for (int i = 0; i < w; i++)
            index[i] = tl_cpu_i32(g, (uint64_t)i);
        for (int k = 0; k < n / 2; k++)
            v[k] = LLVMBuildShuffleVector(g->b, v[2 * k], v[2 * k + 1],
                                          LLVMConstVector(index, (unsigned)w), "");
    }
    return v[0];
}

static LLVMValueRef load_pieces(TlCpuGen *g, Rows *r, const TlType *elem, LLVMValueRef mask,
                                LLVMValueRef other)
{
    LLVMValueRef v[TL_NEST_LANES];
    other = mask ? tl_gen_to_mem(&g->gen, elem, other) : NULL;
    int n = 0;
    for (int piece = 0; piece < r->width; piece += r->piece) {
        LLVMValueRef x = other ? lanes_of(g, other, piece, r->piece)
                               : LLVMGetPoison(tl_gen_vec(r->elem, r->piece));
        for (int from = piece, to; from < piece + r->piece; from = to) {
            to = end_of_row(r, from, piece + r->piece);
            x = load_row(g, r, x, mask, piece, from, to);
        }
        v[n++] = x;
    }
    return tl_gen_from_mem(&g->gen, elem, joined(g, v, n));
}

static bool is_all(LLVMValueRef mask)
{
    return mask == LLVMConstAllOnes(LLVMTypeOf(mask));
}

/* Addresses of all lanes, which are anywhere in their rows. */
static LLVMValueRef addresses(TlCpuGen *g, const TlCpuAccess *a, const TlCpuSpot *s,
                              const TlCpuAt *at)
{
    int w = at->width;
    LLVMValueRef j = at->idx[at->lane],
                 all = LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, j, w),
                                    tl_gen_iota(&g->gen, g->i64, w), ""),
                 own = tl_gen_splat(&g->gen, tl_cpu_rows_offset(g, a, at, j), w),
                 by = LLVMBuildSub(g->b, tl_cpu_rows_offset(g, a, at, all), own, "");
    return tl_gen_address(&g->gen, a->view->dtype, s->ptr, by);
}

LLVMValueRef tl_cpu_load_rows(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem, TlCpuSpot *s,
                              LLVMValueRef other, const TlCpuAt *at)
{
    LLVMValueRef mask = tl_cpu_lanes_inside(g, s, at->width);
    Rows r;
    if (column_at(at) < 0 || (!is_all(mask) && !g->m.masks))
        return tl_cpu_masked_load(g, elem, addresses(g, a, s, at), mask, other, at->width, true);
    rows_at(g, &r, a, elem, s, at);
    if (!is_all(mask))
        return load_pieces(g, &r, elem, mask, other);
    return load_pieces(g, &r, elem, NULL, NULL);
}

/* ---- stores ---- */

static void store_row(TlCpuGen *g, Rows *r, LLVMValueRef x, LLVMValueRef mask, int piece, int from,
                      int to)
{
    int64_t row = row_of(r, from);
    LLVMValueRef part = part_of_mask(g, r, mask, piece, from, to);
    if (part && (g->m.masks || mask)) {
        tl_llvm_masked(g->gen.l, g->b, TL_MASKED_STORE, address(g, r, row, piece), r->align, part,
                       lanes_of(g, x, piece, r->piece));
        return;
    }
    for (int n; from < to; from += n) {
        n = chunk_of(to - from);
        LLVMSetAlignment(LLVMBuildStore(g->b, lanes_of(g, x, from, n), address(g, r, row, from)),
                         r->align);
    }
}

static void store_pieces(TlCpuGen *g, Rows *r, LLVMValueRef x, LLVMValueRef mask)
{
    for (int piece = 0; piece < r->width; piece += r->piece)
        for (int from = piece, to; from < piece + r->piece; from = to) {
            to = end_of_row(r, from, piece + r->piece);
            store_row(g, r, x, mask, piece, from, to);
        }
}

/* What was only loaded is stored in pieces, so that these are not put together. */
static void store_dense(TlCpuGen *g, const Rows *r, LLVMValueRef x, bool loaded)
{
    int n = loaded ? r->piece : r->width;
    for (int from = 0; from < r->width; from += n) {
        LLVMValueRef p = tl_gen_address(&g->gen, r->dtype, r->first, tl_gen_int(&g->gen, from));
        LLVMSetAlignment(LLVMBuildStore(g->b, lanes_of(g, x, from, n), p), r->align);
    }
}

void tl_cpu_store_rows(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem, TlCpuSpot *s,
                       const TlCpuAt *at, LLVMValueRef x, LLVMValueRef mask)
{
    Rows r;
    x = tl_gen_to_mem(&g->gen, elem, x);
    if (column_at(at) < 0 || (!is_all(mask) && !g->m.masks)) {
        tl_llvm_masked(g->gen.l, g->b, TL_MASKED_SCATTER, addresses(g, a, s, at),
                       tl_gen_elem_bytes(elem), mask, x);
        return;
    }
    rows_at(g, &r, a, elem, s, at);
    if (!is_all(mask)) {
        store_pieces(g, &r, x, mask);
        return;
    }
    const TlOp *def = a->a->place.value->def;
    if (at->row->dense)
        store_dense(g, &r, x, def && def->opcode == TL_OP_LOAD);
    else
        store_pieces(g, &r, x, NULL);
}
