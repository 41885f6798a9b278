/* Reductions and scans.
 *
 * The operands are first copied with the axis in front: row k holds every element of index k, and a
 * combiner works on whole rows at once. A reduction (associative and commutative) folds the upper
 * half of the rows onto the lower half until one is left; a scan (associative) walks the rows, from
 * the last one when reversed, so that `a` is what was met before. What a scan begins with is a row
 * more, in front of the others; an exclusive one gives the rows without the last. A user's combiner
 * of plain arithmetic runs with its scalars widened to vectors, one evaluator call per op and row.
 * One with control flow or anything else runs as it is, in frames, one scalar pair at a time. f16
 * and bf16 sums and products are kept in f32 and rounded once per result. */
#include <string.h>

#include "ir/interp/interp_impl.h"
#include "ir/plan/reduce_plan.h"

typedef struct Rows {
    int64_t extent, lanes; /* rows, elements of a row */
    int64_t outer, inner;  /* lanes = outer * inner, around the axis */
} Rows;

static Rows rows_of(const TlType *t, int64_t axis)
{
    Rows r = {t->shape[axis], 0, 1, 1};
    for (int64_t d = 0; d < t->rank; d++) {
        if (d < axis)
            r.outer *= t->shape[d];
        if (d > axis)
            r.inner *= t->shape[d];
    }
    r.lanes = r.outer * r.inner;
    return r;
}

static void axis_first(void *to, const void *from, size_t bytes, Rows r)
{
    int32_t shape[3] = {(int32_t)r.extent, (int32_t)r.outer, (int32_t)r.inner};
    int64_t stride[3] = {r.inner, r.inner * r.extent, 1};
    tl_elem_copy(to, from, bytes, 3, shape, stride);
}

static void axis_back(void *to, const void *from, size_t bytes, Rows r)
{
    int32_t shape[3] = {(int32_t)r.outer, (int32_t)r.extent, (int32_t)r.inner};
    int64_t stride[3] = {r.inner, r.lanes, 1};
    tl_elem_copy(to, from, bytes, 3, shape, stride);
}

/* ---- combining rows -------------------------------------------------------------------------- */

static const TlBlock *combiner(const TlOp *op)
{
    return tl_attr_int(op, TL_ATTR_KIND, 0) == TL_COMBINE_USER ? op->regions[0] : NULL;
}

static bool is_plain_arithmetic(const TlBlock *block)
{
    for (const TlOp *op = block->first; op; op = op->next) {
        if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_YIELD)
            continue;
        if (!(tl_op_info(op->opcode)->flags & F_ELEM) || op->nregions)
            return false;
    }
    return true;
}

/* A value of the combiner in n lanes; a value from outside is the same in each of them. */
static TlTileData lane_operand(TlInterp *in, const TlBlock *block, const TlValue *v, int64_t n,
                               int temp, TlType *type)
{
    const TlBlock *home = v->def ? v->def->block : v->block;
    void *data = tl_interp_data(in, v);
    if (home != block) {
        size_t bytes = tl_interp_elem_bytes(v->type);
        void *copies = tl_interp_temp(in, temp, bytes * (size_t)n);
        tl_elem_fill(copies, data, bytes, n);
        data = copies;
    }
    return tl_interp_lanes(type, v->type, n, data);
}

enum { FIRST_LANE_TEMP = TL_INTERP_TEMPS - 4, MAX_ELEM_OPERANDS = 3 };

static void run_lanes(TlInterp *in, const TlBlock *block, const TlOp *op, int64_t n)
{
    TlType types[MAX_ELEM_OPERANDS + 1];
    TlTileData x[MAX_ELEM_OPERANDS], y;
    TL_ASSERT(op->nin <= MAX_ELEM_OPERANDS && op->nout == 1, "%s in a combiner",
              tl_op_info(op->opcode)->text);
    for (uint32_t i = 0; i < op->nin; i++)
        x[i] = lane_operand(in, block, op->in[i].value, n, FIRST_LANE_TEMP + 1 + (int)i, &types[i]);
    const TlType *t = op->out[0]->type;
    void *data =
        tl_interp_reserve(in, tl_interp_slot(in, op->out[0]), tl_interp_elem_bytes(t) * (size_t)n);
    y = tl_interp_lanes(&types[MAX_ELEM_OPERANDS], t, n, data);
    tl_interp_evaluator(op->opcode)(in, op, x, &y);
    in->work += 64 + (uint64_t)n;
}

/* y[i] = combine(a[i], b[i]) for n lanes of `count` tiles; y may be a. The block's arguments only
 * borrow a and b. */
static void combine_user(TlInterp *in, const TlBlock *block, uint32_t count, void *const *y,
                         void *const *a, void *const *b, int64_t n)
{
    for (uint32_t i = 0; i < count; i++) {
        TlSlot *sa = tl_interp_slot(in, block->args[i]),
               *sb = tl_interp_slot(in, block->args[count + i]);
        sa->data = a[i], sa->size = 0;
        sb->data = b[i], sb->size = 0;
    }
    const TlOp *op = block->first;
    for (; op->opcode != TL_OP_YIELD; op = op->next)
        run_lanes(in, block, op, n);
    for (uint32_t i = 0; i < count;
         i++) { /* through a second buffer: a yield may be another's argument */
        TlSlot *sb = tl_interp_slot(in, block->args[count + i]);
        TlType type;
        size_t bytes = tl_interp_elem_bytes(block->args[i]->type) * (size_t)n;
        TlTileData r = lane_operand(in, block, op->in[i].value, n, FIRST_LANE_TEMP, &type);
        if (sb->spare_size < bytes) {
            sb->spare = tl_alloc(in->arena, bytes);
            sb->spare_size = bytes;
        }
        memcpy(sb->spare, r.data, bytes);
    }
    for (uint32_t i = 0; i < count; i++)
        memcpy(y[i], tl_interp_slot(in, block->args[count + i])->spare,
               tl_interp_elem_bytes(block->args[i]->type) * (size_t)n);
}

/* What one reduce or scan works on. */
typedef struct Work {
    const TlOp *op;
    const TlBlock *block; /* the user's combiner or NULL */
    TlElemFn fn;          /* otherwise */
    uint32_t count;
    Rows rows; /* with that of what it begins with */
    bool begins, reverse, exclusive;
    void *data[TL_INTERP_TEMPS]; /* operand i, axis first */
    size_t bytes[TL_INTERP_TEMPS];
} Work;

static void combine_rows(TlInterp *in, const Work *w, int64_t to, int64_t a, int64_t b,
                         int64_t nrows)
{
    void *py[TL_INTERP_TEMPS], *pa[TL_INTERP_TEMPS], *pb[TL_INTERP_TEMPS];
    for (uint32_t i = 0; i < w->count; i++) {
        size_t row = w->bytes[i] * (size_t)w->rows.lanes;
        py[i] = (char *)w->data[i] + (size_t)to * row;
        pa[i] = (char *)w->data[i] + (size_t)a * row;
        pb[i] = (char *)w->data[i] + (size_t)b * row;
    }
    int64_t n = nrows * w->rows.lanes;
    if (w->block)
        combine_user(in, w->block, w->count, py, pa, pb, n);
    else
        w->fn(py[0], pa[0], pb[0], n);
}

/* ---- the two ops ----------------------------------------------------------------------------- */

/* Memory for operand i that the combiner does not overwrite; with a combiner, it is at its
 * argument. */
static void *work_buffer(TlInterp *in, const Work *w, uint32_t i, size_t bytes)
{
    if (!w->block)
        return tl_interp_temp(in, (int)i, bytes);
    TlSlot *slot = tl_interp_slot(in, w->block->args[i]);
    if (slot->spare_size < bytes) {
        slot->spare = tl_alloc(in->arena, bytes);
        slot->spare_size = bytes;
    }
    return slot->spare;
}

static Work work_of(const TlOp *op)
{
    Work w = {.op = op,
              .block = combiner(op),
              .count = op->nout,
              .rows = rows_of(tl_in(op, 0)->type, tl_attr_int(op, TL_ATTR_AXIS, 0)),
              .begins = op->nin > op->nout,
              .reverse = op->opcode == TL_OP_SCAN && tl_attr_flag(op, TL_ATTR_REVERSE),
              .exclusive = tl_attr_flag(op, TL_ATTR_EXCLUSIVE)};
    w.rows.extent += w.begins;
    return w;
}

/* The rows of the tiles in operand i's data, as many as the tiles have; `out`: of the results. */
static void *tile_rows(const Work *w, uint32_t i, bool out)
{
    bool skips = w->begins && (w->reverse == (out && w->exclusive));
    return (char *)w->data[i] + (skips ? w->bytes[i] * (size_t)w->rows.lanes : 0);
}

static Rows of_tile(const Work *w)
{
    Rows r = w->rows;
    r.extent -= w->begins;
    return r;
}

/* The row that a scan begins with. */
static void put_beginning(TlInterp *in, const Work *w, uint32_t i, const void *scalar, TlDtype d,
                          TlDtype wide)
{
    void *cast = tl_interp_temp(in, FIRST_LANE_TEMP, w->bytes[i]);
    tl_elem_cast(wide, cast, d, scalar, 1, TL_ROUND_NEAREST, false);
    int64_t at = w->reverse ? (w->rows.extent - 1) * w->rows.lanes : 0;
    tl_elem_fill((char *)w->data[i] + w->bytes[i] * (size_t)at, cast, w->bytes[i], w->rows.lanes);
}

static void begin_reduction(TlInterp *in, const TlOp *op, const TlTileData *x, Work *w)
{
    *w = work_of(op);
    TL_ASSERT(w->count <= FIRST_LANE_TEMP, "%u operands of a reduction", w->count);
    for (uint32_t i = 0; i < w->count; i++) {
        int64_t n = tl_type_elems(x[i].type), all = w->rows.extent * w->rows.lanes;
        TlDtype d = tl_op_dtype(op, x[i].type->dtype),
                wide = w->block ? d : tl_combine_work_type(op, d);
        w->bytes[i] = (size_t)tl_dtype_bytes(wide);
        w->data[i] = work_buffer(in, w, i, w->bytes[i] * (size_t)all);
        const void *from = x[i].data;
        if (wide != d) {
            void *cast = tl_interp_temp(in, FIRST_LANE_TEMP, w->bytes[i] * (size_t)n);
            tl_elem_cast(wide, cast, d, from, n, TL_ROUND_NEAREST, false);
            from = cast;
        }
        axis_first(tile_rows(w, i, false), from, w->bytes[i], of_tile(w));
        if (w->begins)
            put_beginning(in, w, i, x[w->count + i].data, d, wide);
    }
    if (w->block)
        return;
    TlDtype d = tl_combine_work_type(op, tl_op_dtype(op, x[0].type->dtype));
    w->fn = tl_combine_fn((TlCombine)tl_attr_int(op, TL_ATTR_KIND, 0), d);
    TL_ASSERT(w->fn && w->count == 1, "%s of %s has no meaning", tl_op_info(op->opcode)->text,
              tl_dtype_name(d));
}

static void finish_reduction(TlInterp *in, const Work *w, TlTileData *y)
{
    bool scan = w->op->opcode == TL_OP_SCAN;
    for (uint32_t i = 0; i < w->count; i++) {
        TlDtype d = tl_op_dtype(w->op, y[i].type->dtype);
        TlDtype wide = w->block ? d : tl_combine_work_type(w->op, d);
        int64_t n = tl_type_elems(y[i].type);
        const void *from = tile_rows(w, i, true);
        if (scan) {
            void *back = wide == d ? y[i].data
                                   : tl_interp_temp(in, FIRST_LANE_TEMP, w->bytes[i] * (size_t)n);
            axis_back(back, from, w->bytes[i], of_tile(w));
            from = back;
        }
        if (from != y[i].data)
            tl_elem_cast(d, y[i].data, wide, from, n, TL_ROUND_NEAREST, false);
    }
}

static void reduce_rows(TlInterp *in, const Work *w)
{
    for (int64_t n = w->rows.extent; n > 1; n = (n + 1) / 2)
        combine_rows(in, w, 0, 0, (n + 1) / 2, n / 2);
}

static void scan_rows(TlInterp *in, const Work *w)
{
    int64_t last = w->rows.extent - 1;
    for (int64_t k = 1; k <= last; k++)
        combine_rows(in, w, w->reverse ? last - k : k, w->reverse ? last - k + 1 : k - 1,
                     w->reverse ? last - k : k, 1);
}

/* ---- combiners with control flow: a state machine over (row, lane) --------------------------- */

/* The element of row k in the order of the scan. */
static char *element(const Work *w, const TlCombineState *s, uint32_t i, int64_t k)
{
    int64_t row = w->reverse ? s->extent - 1 - k : k;
    return (char *)w->data[i] + (size_t)(row * s->lanes + s->lane) * w->bytes[i];
}

static int64_t row_before(const Work *w, const TlCombineState *s)
{
    return w->op->opcode == TL_OP_SCAN ? s->k - 1 : 0;
}

static void set_scalar(TlInterp *in, const TlValue *v, const void *data, size_t bytes)
{
    memcpy(tl_interp_reserve(in, tl_interp_slot(in, v), 16), data, bytes);
}

static void start_pair(TlInterp *in, const Work *w, TlFrame *frame)
{
    TlCombineState *s = &frame->combine;
    for (uint32_t i = 0; i < w->count; i++) {
        set_scalar(in, w->block->args[i], element(w, s, i, row_before(w, s)), w->bytes[i]);
        set_scalar(in, w->block->args[w->count + i], element(w, s, i, s->k), w->bytes[i]);
    }
    frame->next = w->block->first;
}

/* The Work of an op in progress, rebuilt from the op and its buffers. */
static Work resume(TlInterp *in, const TlOp *op)
{
    Work w = work_of(op);
    for (uint32_t i = 0; i < w.count; i++) {
        w.data[i] = tl_interp_slot(in, w.block->args[i])->spare;
        w.bytes[i] = (size_t)tl_dtype_bytes(tl_in(op, i)->type->dtype);
    }
    return w;
}

void tl_combine_next(TlInterp *in, const TlOp *yield)
{
    TlFrame *frame = tl_frame_top(in);
    Work w = resume(in, frame->owner);
    TlCombineState *s = &frame->combine;
    int64_t to = w.op->opcode == TL_OP_SCAN ? s->k : 0;
    for (uint32_t i = 0; i < w.count; i++)
        memcpy(element(&w, s, i, to), tl_interp_data(in, tl_in(yield, i)), w.bytes[i]);
    if (++s->lane == s->lanes) {
        s->lane = 0;
        s->k++;
    }
    if (s->k < s->extent) {
        start_pair(in, &w, frame);
        return;
    }
    TlTileData y[TL_INTERP_TEMPS];
    for (uint32_t i = 0; i < w.count; i++)
        y[i] = (TlTileData){w.op->out[i]->type, tl_interp_data(in, w.op->out[i])};
    finish_reduction(in, &w, y);
    tl_frame_pop(in);
}

static void step_by_step(TlInterp *in, const Work *w)
{
    tl_frame_push(in, w->op, w->block);
    TlFrame *frame = tl_frame_top(in);
    frame->combine = (TlCombineState){.extent = w->rows.extent, .lanes = w->rows.lanes, .k = 1};
    start_pair(in, w, frame);
}

/* ---- the evaluators -------------------------------------------------------------------------- */

static void run(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y)
{
    Work w;
    begin_reduction(in, op, x, &w);
    if (w.rows.extent > 1) {
        if (w.block && !is_plain_arithmetic(w.block)) {
            step_by_step(in, &w);
            return; /* tl_combine_next finishes */
        }
        if (op->opcode == TL_OP_SCAN)
            scan_rows(in, &w);
        else
            reduce_rows(in, &w);
    }
    finish_reduction(in, &w, y);
}

TL_EVAL(REDUCE)
{
    run(in, op, x, y);
}
TL_EVAL(SCAN)
{
    run(in, op, x, y);
}
