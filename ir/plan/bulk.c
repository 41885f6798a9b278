/* Boxes of bulk copies (bulk.h). */
#include "ir/plan/bulk.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"

/* Bytes of a box's row that tensor maps swizzle; rows after which swizzles repeat. */
enum { MOST_SPAN = 128, LEAST_SPAN = 32, PATTERN = 8 };

/* The axis of the view that gives axis d of the tile; -1: none alone. */
static int axis_of(const TlPlace *p, int d)
{
    int found = -1;
    for (uint32_t i = 0; i < p->naxes; i++)
        if (tl_place_dim(p, i) == d)
            found = found < 0 ? (int)i : -2;
    return found;
}

/* Coordinates are signed, of 32 bits. */
static bool is_box(const TlPlace *p)
{
    for (uint32_t i = 0; i < p->naxes; i++) {
        const TlType *t = p->index[i].value->type;
        bool fits = p->axes[i].kind == TL_AXIS_SCALAR ||
                    (p->axes[i].kind == TL_AXIS_SLICE && p->axes[i].step == 1);
        if (!fits || !tl_is_scalar(t) ||
            tl_dtype_bits(t->dtype) > (tl_is_signed(t->dtype) ? 32 : 16))
            return false;
    }
    return true;
}

/* The buffer's axis along which rows run, their bytes and the swizzle's pieces; -1: it is no image
 * that boxes make. */
static int find_image(TlArena *arena, const TlType *buf, TlBulk *out)
{
    for (int row = 0; row < 2; row++) {
        if (buf->layout->reps[row] != 1)
            continue;
        out->piece = TL_STAGING_PIECE;
        for (out->span = MOST_SPAN; out->span >= LEAST_SPAN; out->span /= 2)
            if (tl_staging_is_image(arena, buf, row, out->span, out->piece))
                return row;
        out->piece = TL_STAGING_WIDE_PIECE;
        out->span = MOST_SPAN;
        if (tl_staging_is_image(arena, buf, row, out->span, out->piece))
            return row;
    }
    return -1;
}

/* Innermost first: the row's axis, then the others from the last one on. */
static void order_axes(TlBulk *b, uint32_t row)
{
    int n = 0;
    b->axes[n++] = row;
    for (int i = b->rank - 1; i >= 0; i--)
        if ((uint32_t)i != row)
            b->axes[n++] = (uint32_t)i;
}

/* Into `parts` of equally many boxes, if that is possible. */
static void cut(TlArena *arena, TlBulk *b, const TlType *buf, int row, int32_t parts)
{
    int elem = tl_dtype_bytes(buf->dtype);
    int32_t all = buf->shape[1 - row], chunk = (int32_t)1 << buf->layout->out_bits[1 - row];
    b->columns = b->span / elem;
    b->rows = chunk < TL_BULK_MAX_ROWS ? chunk : TL_BULK_MAX_ROWS;
    while (b->rows > PATTERN && buf->shape[row] / b->columns * (all / b->rows) % parts)
        b->rows /= 2;
    for (int32_t c = 0; c < buf->shape[row]; c += b->columns)
        for (int32_t r = 0; r < all; r += b->rows) {
            int32_t at[TL_LAYOUT_MAX_OUT] = {0};
            at[row] = c;
            at[1 - row] = r;
            TlBulkBox box = {r, c, (uint32_t)tl_buf_offset(buf, at)};
            tl_vec_push(arena, &b->boxes, box);
            b->bytes += (uint32_t)(b->rows * b->columns * elem);
        }
}

static bool is_param(const TlValue *v)
{
    return v->type->kind == TL_VIEW && !v->def && !v->block->parent;
}

const TlValue *tl_bulk_param(const TlPlace *p)
{
    const TlOp *view = p->base->def, *of = NULL;
    if (view && view->opcode == TL_OP_VIEW && tl_attr_flag(view, TL_ATTR_PACKED))
        of = tl_in(view, 0)->def;
    const TlValue *v = of && of->opcode == TL_OP_VIEW_PTR ? tl_in(of, 0) : p->base;
    return is_param(v) ? v : NULL;
}

static TlBulkFault fault_of(const TlPlace *p, const TlType *buf)
{
    if (!tl_bulk_param(p) || !p->axes)
        return TL_BULK_VIEW;
    if (p->rank != 2 || p->base->type->rank > TL_BULK_MAX_RANK)
        return TL_BULK_AXES;
    if (!is_box(p))
        return TL_BULK_INDEX;
    return tl_dtype_bits(buf->dtype) < 8 || tl_is_bool(buf->dtype) ? TL_BULK_BITS : TL_BULK_NONE;
}

static TlBulkFault find_boxes(TlArena *arena, const TlPlace *p, const TlType *buf, int32_t parts,
                              TlBulk *out)
{
    if (buf->halved) {
        out->half = buf->shape[buf->halved - 1] / 2;
        out->halved = (uint32_t)(axis_of(p, buf->halved - 1) + 1);
        buf = tl_buf_own(arena, buf);
    }
    int row = find_image(arena, buf, out);
    int row_axis = row < 0 ? -1 : axis_of(p, row), other = row < 0 ? -1 : axis_of(p, 1 - row);
    if (row_axis < 0 || other < 0)
        return TL_BULK_IMAGE;
    out->row = (uint32_t)row_axis;
    out->other = (uint32_t)other;
    order_axes(out, out->row);
    cut(arena, out, buf, row, parts);
    return out->rows % PATTERN ? TL_BULK_IMAGE : TL_BULK_NONE;
}

bool tl_bulk_plan(TlArena *arena, const TlOp *op, const TlType *buf, TlBulk *out)
{
    int32_t parts = (int32_t)tl_attr_int(op, TL_ATTR_CLUSTER, 1);
    return tl_bulk_plan_parts(arena, op, buf, parts, out);
}

bool tl_bulk_plan_parts(TlArena *arena, const TlOp *op, const TlType *buf, int32_t parts,
                        TlBulk *out)
{
    TlPlace p = tl_op_place(op);
    *out = (TlBulk){.rank = p.base->type->rank, .fault = fault_of(&p, buf)};
    if (out->fault == TL_BULK_NONE)
        out->fault = find_boxes(arena, &p, buf, parts, out);
    return out->fault == TL_BULK_NONE;
}

tile_image_slot tl_bulk_slot(const TlBulk *b, uint32_t param)
{
    return (tile_image_slot){.kind = TILE_SLOT_MAP,
                             .param = param,
                             .axis = b->row | b->other << 4 | (uint32_t)b->span << 8 |
                                     (b->piece == TL_STAGING_WIDE_PIECE ? TILE_MAP_WIDE : 0),
                             .box = (uint32_t)b->columns | (uint32_t)b->rows << 16};
}
