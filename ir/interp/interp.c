/* The reference interpreter: one program of a kernel, op by op on whole tiles.
 *
 * Values live in slots by value id: dense arrays in row-major order, allocated when first computed
 * and used again in every iteration, so a loop of any length needs no more memory than its body.
 * Regions run in frames on an explicit stack: an op with regions pushes a frame, the terminator of
 * the region decides what comes next. Nothing here recurses, so nesting is bounded by memory only,
 * and a frame could one day wait for another.
 *
 * Dispatch is a table made from ops.def; an op without an evaluator does not link. The same
 * evaluators fold constants. */
#include <stdio.h>
#include <string.h>

#include "ir/interp/interp_impl.h"

static TlEvaluator *const evaluators[TL_OP_COUNT] = {
#define OP(ID, ...) [TL_OP_##ID] = tl_eval_##ID,
#include "ir/ops.def"
};

TlEvaluator *tl_interp_evaluator(TlOpcode opcode)
{
    TL_ASSERT((unsigned)opcode < TL_OP_COUNT, "opcode %d", (int)opcode);
    return evaluators[opcode];
}

/* ---- storage --------------------------------------------------------------------------------- */

size_t tl_interp_elem_bytes(const TlType *t)
{
    return t->ptr ? sizeof(TlInterpPtr) : (size_t)tl_dtype_bytes(t->dtype);
}

size_t tl_interp_bytes(const TlType *t)
{
    size_t bytes = tl_interp_elem_bytes(t) * (size_t)tl_type_elems(t);
    switch (t->kind) {
    case TL_TILE: return bytes;
    case TL_VIEW: return sizeof(TlInterpView);
    case TL_BUF: return bytes * (size_t)t->slots;
    case TL_TOKEN:
    case TL_TENSOR: return bytes;
    }
    TL_UNREACHABLE("type kind %d", (int)t->kind);
}

void *tl_interp_reserve(TlInterp *in, TlSlot *slot, size_t bytes)
{
    if (slot->size < bytes) {
        slot->size = bytes;
        slot->data = tl_alloc(in->arena, bytes);
    }
    return slot->data;
}

void *tl_interp_data(TlInterp *in, const TlValue *v)
{
    void *data = in->slots[v->id].data;
    TL_ASSERT(data, "value %u is used before it is computed", v->id);
    return data;
}

TlTileData tl_interp_lanes(TlType *storage, const TlType *scalar, int64_t n, void *data)
{
    TL_ASSERT(n > 0 && scalar->rank == 0, "%lld lanes", (long long)n);
    *storage = *scalar;
    storage->rank = 1;
    storage->shape[0] = (int32_t)n;
    return (TlTileData){storage, data};
}

void tl_interp_fail(TlInterp *in, const TlOp *op, TlInterpFailKind kind, const char *format, ...)
{
    const TlInterpHooks *hooks = &in->options->hooks;
    if (!hooks->fail)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hooks->fail(hooks->user, in->pid, kind, op->loc, text);
}

/* ---- arguments and program facts ------------------------------------------------------------- */

static void bind_argument(TlInterp *in, const TlValue *v)
{
    const TlInterpArg *arg = &in->args[v->index];
    void *data = tl_interp_reserve(in, tl_interp_slot(in, v), tl_interp_bytes(v->type));
    TlInterpPtr origin = {(uint64_t)(uintptr_t)arg->address, (int32_t)v->index, 0};
    if (v->type->kind == TL_VIEW) {
        TlInterpView *view = data;
        view->origin = origin;
        view->row = 0;
        memcpy(view->extent, arg->extent, sizeof view->extent);
        memcpy(view->stride, arg->stride, sizeof view->stride);
    } else if (v->type->ptr) {
        memcpy(data, &origin, sizeof origin);
    } else {
        tl_elem_set(v->type->dtype, data, 0, arg->scalar);
    }
}

static void program_fact(const int32_t *facts, int32_t otherwise, const TlOp *op, TlTileData *y)
{
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, 0);
    tl_elem_set(TL_I32, y[0].data, 0,
                (uint32_t)(axis >= 0 && axis < TILE_MAX_GRID ? facts[axis] : otherwise));
}
/* Of the program that is number n, the first axis fastest. */
static void place_of(const TlInterp *in, int64_t n, int32_t *out)
{
    for (int i = 0; i < TILE_MAX_GRID; i++) {
        int32_t extent = in->npid[i] > 0 ? in->npid[i] : 1;
        out[i] = (int32_t)(n % extent);
        n /= extent;
    }
}
TL_EVAL(PID)
{
    int32_t place[TILE_MAX_GRID];
    if (op->nin)
        place_of(in, (int32_t)tl_elem_get(TL_I32, x[0].data, 0), place);
    program_fact(op->nin ? place : in->pid, 0, op, y);
}
/* As many start as the grid has. */
static int64_t program_number(const TlInterp *in, bool last)
{
    int64_t n = 0, all = 1;
    for (int i = 0; i < TILE_MAX_GRID; i++) {
        int32_t extent = in->npid[i] > 0 ? in->npid[i] : 1;
        n += all * in->pid[i];
        all *= extent;
    }
    return last ? all : n;
}
TL_EVAL(BLOCK)
{
    tl_elem_set(TL_I32, y[0].data, 0, (uint32_t)program_number(in, false));
}
TL_EVAL(NBLOCKS)
{
    tl_elem_set(TL_I32, y[0].data, 0, (uint32_t)program_number(in, true));
}
TL_EVAL(NPID)
{
    program_fact(in->npid, 1, op, y);
}

/* ---- running --------------------------------------------------------------------------------- */

static void run_op(TlInterp *in, const TlOp *op)
{
    uint32_t need = op->nin + op->nout;
    while (in->operands.len < need)
        tl_vec_push(in->arena, &in->operands, (TlTileData){NULL, NULL});
    TlTileData *x = in->operands.data, *y = x + op->nin;
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlValue *v = op->in[i].value;
        x[i] = (TlTileData){v->type, tl_interp_data(in, v)};
    }
    for (uint32_t i = 0; i < op->nout; i++) {
        size_t bytes = tl_interp_bytes(op->out[i]->type);
        y[i] = (TlTileData){op->out[i]->type,
                            tl_interp_reserve(in, tl_interp_slot(in, op->out[i]), bytes)};
        in->work += bytes;
    }
    in->work += 64;
    evaluators[op->opcode](in, op, x, y);
}

static bool must_stop(TlInterp *in)
{
    enum { POLL = 1 << 20 }; /* about a millisecond of work each */
    const TlInterpHooks *hooks = &in->options->hooks;
    if (in->work < POLL || !hooks->stop)
        return false;
    in->work = 0;
    return hooks->stop(hooks->user);
}

bool tl_interp_program(const TlFn *fn, const TlInterpArg *args, const int32_t pid[6],
                       const int32_t npid[6], const TlInterpOptions *options, TlArena *scratch)
{
    TL_ASSERT(fn->body && options && scratch, "'%s' cannot run", fn->name);
    TlInterp in = {
        .fn = fn, .args = args, .pid = pid, .npid = npid, .options = options, .arena = scratch};
    in.slots = TL_NEW_ARRAY(scratch, TlSlot, fn->nvalues ? fn->nvalues : 1);
    for (uint32_t i = 0; i < fn->body->nargs; i++)
        bind_argument(&in, fn->body->args[i]);
    tl_frame_push(&in, NULL, fn->body);
    while (in.frames.len) {
        TlFrame *frame = tl_frame_top(&in);
        const TlOp *op = frame->next;
        TL_ASSERT(op, "a block of %s ends without terminator", fn->name);
        frame->next = op->next;
        run_op(&in, op);
        if (must_stop(&in))
            return false;
    }
    return true;
}

/* ---- folding --------------------------------------------------------------------------------- */

static bool is_plain(const TlType *t)
{
    return t->kind == TL_TILE && !t->ptr;
}

static bool can_fold(const TlOp *op)
{
    uint32_t flags = tl_op_info(op->opcode)->flags;
    if (!(flags & F_PURE) || op->nregions || op->opcode == TL_OP_PID || op->opcode == TL_OP_NPID ||
        op->opcode == TL_OP_BLOCK || op->opcode == TL_OP_NBLOCKS)
        return false;
    if (tl_attr_int(op, TL_ATTR_ROUND, TL_ROUND_NEAREST) == TL_ROUND_STOCHASTIC)
        return false;
    for (uint32_t i = 0; i < op->nin; i++)
        if (!is_plain(op->in[i].value->type))
            return false;
    for (uint32_t i = 0; i < op->nout; i++)
        if (!is_plain(op->out[i]->type))
            return false;
    return true;
}

bool tl_interp_eval(const TlOp *op, const TlTileData *in, TlTileData *out, TlArena *arena)
{
    if (!can_fold(op))
        return false;
    TlInterp self = {.arena = arena};
    for (uint32_t i = 0; i < op->nout; i++)
        out[i] = (TlTileData){op->out[i]->type, tl_alloc(arena, tl_interp_bytes(op->out[i]->type))};
    evaluators[op->opcode](&self, op, in, out);
    return true;
}
