/* Structured control: for, while and if push frames, and terminators leave them. Also the ops that
 * talk to the host: print, assert, assume. */
#include <string.h>

#include "ir/interp/interp_impl.h"

void tl_frame_push(TlInterp *in, const TlOp *owner, const TlBlock *block)
{
    TL_ASSERT(block && block->first,
              "%s enters an empty block", owner ? tl_op_info(owner->opcode)->text : "a kernel");
    TlFrame frame;
    memset(&frame, 0, sizeof frame);
    frame.owner = owner;
    frame.block = block;
    frame.next = block->first;
    tl_vec_push(in->arena, &in->frames, frame);
}

void tl_frame_pop(TlInterp *in)
{
    TL_ASSERT(in->frames.len > 0, "no frame is open");
    in->frames.len--;
}

static void copy_to(TlInterp *in, const TlValue *to, const void *data)
{
    size_t bytes = tl_interp_bytes(to->type);
    memcpy(tl_interp_reserve(in, tl_interp_slot(in, to), bytes), data, bytes);
}

static void swap_slots(TlSlot *a, TlSlot *b)
{
    TlSlot old = *a;
    *a = *b;
    *b = old;
}

/* The value goes out of scope with its block, so its memory may be taken over. */
static bool may_move(const TlUse *from, uint32_t i, const TlBlock *block)
{
    const TlValue *v = from[i].value;
    if (!v->def || v->def->block != block)
        return false;
    for (uint32_t j = 0; j < i; j++)
        if (from[j].value == v)
            return false;
    return true;
}

static void copy_next(TlInterp *in, const TlValue *to, const TlValue *from)
{
    TlSlot *slot = tl_interp_slot(in, to);
    size_t bytes = tl_interp_bytes(to->type);
    if (slot->spare_size < bytes) {
        slot->spare_size = bytes;
        slot->spare = tl_alloc(in->arena, bytes);
    }
    memcpy(slot->spare, tl_interp_data(in, from), bytes);
}

static void take_spare(TlSlot *slot)
{
    TlSlot old = *slot;
    *slot = (TlSlot){old.spare, old.data, old.spare_size, old.size};
}

/* to[0..n) = from[0..n), all at once: a source may also be a target (a loop that swaps its carried
 * values). First, whatever must be copied goes to the targets' spare memory; then the names
 * change. */
static void assign(TlInterp *in, TlValue *const *to, const TlUse *from, uint32_t n,
                   const TlBlock *leaving)
{
    for (uint32_t i = 0; i < n; i++)
        if (to[i] != from[i].value && !may_move(from, i, leaving))
            copy_next(in, to[i], from[i].value);
    for (uint32_t i = 0; i < n; i++) {
        if (to[i] == from[i].value)
            continue;
        if (!may_move(from, i, leaving))
            take_spare(tl_interp_slot(in, to[i]));
    }
    for (uint32_t i = 0; i < n; i++)
        if (to[i] != from[i].value && may_move(from, i, leaving))
            swap_slots(tl_interp_slot(in, to[i]), tl_interp_slot(in, from[i].value));
}

/* ---- for ------------------------------------------------------------------------------------- */

static TlWide integer(const TlTileData *t)
{
    uint64_t bits = tl_elem_get(t->type->dtype, t->data, 0);
    return t->type->dtype == TL_U64 ? (TlWide)bits : (TlWide)tl_bits_to_int(t->type->dtype, bits);
}

static TlUWide trip_count(TlWide lo, TlWide hi, TlWide step)
{
    if (step > 0 && lo < hi)
        return (TlUWide)((hi - lo + step - 1) / step);
    if (step < 0 && lo > hi)
        return (TlUWide)((lo - hi - step - 1) / -step);
    return 0;
}

static void set_iv(TlInterp *in, const TlFrame *frame)
{
    const TlValue *iv = frame->block->args[0];
    void *data = tl_interp_reserve(in, tl_interp_slot(in, iv), tl_interp_bytes(iv->type));
    tl_elem_set(iv->type->dtype, data, 0, frame->iv);
}

TL_EVAL(FOR)
{
    TlUWide trips = trip_count(integer(&x[0]), integer(&x[1]), integer(&x[2]));
    if (trips == 0) {
        for (uint32_t i = 0; i < op->nout; i++)
            memcpy(y[i].data, x[i + 3].data, tl_interp_bytes(y[i].type));
        return;
    }
    const TlBlock *body = op->regions[0];
    for (uint32_t i = 0; i < op->nout; i++)
        copy_to(in, body->args[i + 1], x[i + 3].data);
    tl_frame_push(in, op, body);
    TlFrame *frame = tl_frame_top(in);
    frame->iv = (uint64_t)integer(&x[0]);
    frame->step = (uint64_t)integer(&x[2]);
    frame->left = trips - 1;
    set_iv(in, frame);
}

static void next_trip(TlInterp *in, TlFrame *frame, const TlOp *yield)
{
    const TlOp *loop = frame->owner;
    TlValue **carried = frame->block->args + 1;
    assign(in, carried, yield->in, yield->nin, frame->block);
    if (frame->left == 0) {
        for (uint32_t i = 0; i < loop->nout; i++)
            swap_slots(tl_interp_slot(in, loop->out[i]), tl_interp_slot(in, carried[i]));
        tl_frame_pop(in);
        return;
    }
    frame->left--;
    frame->iv += frame->step;
    set_iv(in, frame);
    frame->next = frame->block->first;
}

/* ---- while, if ------------------------------------------------------------------------------- */

static void enter(TlFrame *frame, const TlBlock *block)
{
    frame->block = block;
    frame->next = block->first;
}

TL_EVAL(WHILE)
{
    for (uint32_t i = 0; i < op->nin; i++)
        copy_to(in, op->regions[0]->args[i], x[i].data);
    tl_frame_push(in, op, op->regions[0]);
}

TL_EVAL(CONDITION)
{
    TL_ASSERT(in->frames.len > 0, "a condition outside of a loop");
    TlFrame *frame = tl_frame_top(in);
    bool go_on = *(const uint8_t *)x[0].data != 0;
    TlValue **to = go_on ? frame->owner->regions[1]->args : frame->owner->out;
    assign(in, to, op->in + 1, op->nin - 1, frame->block);
    if (go_on)
        enter(frame, frame->owner->regions[1]);
    else
        tl_frame_pop(in);
}

TL_EVAL(IF)
{
    tl_frame_push(in, op, op->regions[*(const uint8_t *)x[0].data ? 0 : 1]);
}

/* ---- roles ---- */

static void go_to(TlInterp *in, int role)
{
    in->roles.frames[in->roles.now] = in->frames;
    in->roles.now = role;
    in->frames = in->roles.frames[role];
}

TL_EVAL(ROLES)
{
    in->roles.is_open = true;
    in->roles.outer = in->frames;
    for (int r = 0; r < 2; r++) {
        in->roles.is_over[r] = false;
        in->frames = (TlFrames){0};
        tl_frame_push(in, op, op->regions[r]);
        in->roles.frames[r] = in->frames;
    }
    in->roles.now = 1; /* whose frames these are */
    in->roles.stuck = 0;
}

bool tl_interp_wait(TlInterp *in, const TlOp *op)
{
    int other = 1 - in->roles.now;
    if (!in->roles.is_open || in->roles.is_over[other] || in->roles.stuck++)
        return false;
    tl_frame_top(in)->next = op;
    go_to(in, other);
    return true;
}

static void end_role(TlInterp *in)
{
    int now = in->roles.now, other = 1 - now;
    in->roles.is_over[now] = true;
    in->roles.stuck = 0;
    if (!in->roles.is_over[other]) {
        go_to(in, other);
        return;
    }
    in->roles.is_open = false;
    in->frames = in->roles.outer;
}

TL_EVAL(YIELD)
{
    TlFrame *frame = tl_frame_top(in);
    const TlOp *owner = frame->owner;
    TL_ASSERT(owner, "yield outside of a region");
    if (owner->opcode == TL_OP_ROLES) {
        end_role(in);
    } else if (owner->opcode == TL_OP_FOR) {
        next_trip(in, frame, op);
    } else if (owner->opcode == TL_OP_WHILE) {
        assign(in, owner->regions[0]->args, op->in, op->nin, frame->block);
        enter(frame, owner->regions[0]);
    } else if (owner->opcode == TL_OP_IF) {
        assign(in, owner->out, op->in, op->nin, frame->block);
        tl_frame_pop(in);
    } else {
        tl_combine_next(in, op); /* reduce, scan */
    }
}

TL_EVAL(RETURN)
{
    tl_interp_end_copies(in);
    in->frames.len = 0;
}

/* ---- print, assert, assume ------------------------------------------------------------------- */

TL_EVAL(PRINT)
{
    const TlInterpHooks *hooks = &in->options->hooks;
    if (!hooks->print)
        return;
    TlTileData shown = x[0];
    TlType as_u64 = *x[0].type;
    if (as_u64.ptr) { /* pointers are shown as addresses */
        int64_t n = tl_type_elems(&as_u64);
        uint64_t *address = tl_interp_temp(in, 0, (size_t)n * 8);
        for (int64_t i = 0; i < n; i++)
            address[i] = ((const TlInterpPtr *)x[0].data)[i].address;
        as_u64.ptr = false;
        as_u64.dtype = TL_U64;
        shown = (TlTileData){&as_u64, address};
    }
    hooks->print(hooks->user, in->pid, tl_attr(op, TL_ATTR_TEXT)->u.s, shown);
}

static bool all_true(const TlTileData *t)
{
    return !memchr(t->data, 0, (size_t)tl_type_elems(t->type));
}

TL_EVAL(ASSERT)
{
    if (!all_true(&x[0]))
        tl_interp_fail(in, op, TL_FAIL_ASSERT, "%s", tl_attr(op, TL_ATTR_TEXT)->u.s);
}

/* A program is a cluster by itself here. */
TL_EVAL(MEET)
{
}

/* There is one warpgroup here. */
TL_EVAL(PING_PONG_WAIT)
{
}

TL_EVAL(PING_PONG_ARRIVE)
{
}

/* A program is one thread of control here, so its accesses are already in order. */
TL_EVAL(BARRIER)
{
}

TL_EVAL(ASSUME)
{
    if (in->options->check && !all_true(&x[0]))
        tl_interp_fail(in, op, TL_FAIL_ASSUME, "an assumption does not hold");
}
