/* Uses of buffers (buffer_use.h). */
#include "passes/analysis/buffer_use.h"
#include "ir/plan/staged.h"
#include "passes/analysis/buffer_effects.h"
#include "passes/analysis/facts.h"

/* ---- slots ---- */

static bool is_const(const TlValue *v, int64_t number)
{
    TlWideInt n;
    return tl_const_int_value(v, &n) && n == number;
}

/* A constant that moves a slot on, and the slot that it moves; 0: none does. */
static int moved_by(const TlValue **v, int slots)
{
    const TlOp *op = (*v)->def;
    TlWideInt n;
    if (!op || op->opcode != TL_OP_ADD || !tl_const_int_value(tl_in(op, 1), &n) || n <= 0)
        return 0;
    *v = tl_in(op, 0);
    return (int)(n % slots);
}

/* slot >= slots - n ? slot - (slots - n) : slot + n, as pipeline_slots.c makes it. */
static bool wraps_around(const TlOp *select, int slots, TlBufSlot *out)
{
    const TlOp *over = tl_in(select, 0)->def, *again = tl_in(select, 1)->def;
    const TlValue *from = tl_in(select, 2);
    int n = moved_by(&from, slots), left = slots - n;
    if (!n || !over || over->opcode != TL_OP_GE || tl_in(over, 0) != from ||
        !is_const(tl_in(over, 1), left))
        return false;
    bool to_0 = n == 1 && is_const(tl_in(select, 1), 0);
    *out = (TlBufSlot){from, n};
    return to_0 || (again && again->opcode == TL_OP_SUB && tl_in(again, 0) == from &&
                    is_const(tl_in(again, 1), left));
}

/* A value that a loop carries from slots - 1 on, and that each iteration gives the slot which
 * counts from 0: the slot before that. */
static bool is_last(const TlValue *v, int slots, TlBufSlot *out)
{
    TlOp *loop = v->def ? NULL : v->block->parent;
    if (!loop || loop->opcode != TL_OP_FOR || v->index == 0 ||
        !is_const(tl_in(loop, v->index + 2), slots - 1))
        return false;
    const TlValue *slot = tl_in(v->block->last, v->index - 1);
    if (slot->def || slot->block != v->block || slot->index == 0 ||
        !is_const(tl_in(loop, slot->index + 2), 0))
        return false;
    const TlValue *next = tl_in(v->block->last, slot->index - 1);
    TlBufSlot by;
    *out = (TlBufSlot){slot, slots - 1};
    return next->def && next->def->opcode == TL_OP_SELECT &&
           wraps_around(next->def, slots, &by) && by.base == slot && by.ahead == 1;
}

static TlBufSlot slot_of(const TlValue *slot, int slots)
{
    TL_ASSERT(slots > 0, "a buffer of %d slots", slots);
    TlBufSlot s = {slot, 0};
    const TlOp *op = slot->def;
    if (is_last(slot, slots, &s) ||
        (op && op->opcode == TL_OP_SELECT && wraps_around(op, slots, &s)))
        return s;
    s = (TlBufSlot){slot, 0};
    if (!op || op->opcode != TL_OP_REM || !is_const(tl_in(op, 1), slots))
        return s;
    s.base = tl_in(op, 0);
    s.ahead = moved_by(&s.base, slots);
    return s;
}

int tl_op_ahead(const TlOp *op)
{
    if (op->opcode == TL_OP_PUT)
        return slot_of(tl_in(op, 1), tl_in(op, 0)->type->slots).ahead;
    if (op->opcode != TL_OP_COPY)
        return 0;
    TlPlace p = tl_op_place(op);
    return slot_of(p.slot, p.buf->type->slots).ahead;
}

/* ---- uses ---- */

static TlBufUse use_of(const TlOp *op, const TlValue *buf, const TlValue *slot)
{
    TL_ASSERT(buf->type->kind == TL_BUF,
              "%s uses value %u, which is no buffer", tl_op_info(op->opcode)->text, buf->id);
    TlWideInt number;
    TlBufUse u = {.buf = buf, .slot = -1, .writes = tl_effect_of(op).writes};
    u.from = (uint64_t)tl_attr_int(tl_buf_alloc(buf), TL_ATTR_SHARED, 0);
    u.to = u.from + tl_buf_bytes(buf->type);
    if (tl_const_int_value(slot, &number) && number >= 0)
        u.slot = (int64_t)number;
    u.of = slot_of(slot, buf->type->slots);
    return u;
}

uint32_t tl_buf_uses(const TlOp *op, TlBufUse *out)
{
    uint32_t n = 0;
    if (!(tl_op_info(op->opcode)->flags & (F_BUF_READ | F_BUF_WRITE)))
        return 0;
    if (op->opcode == TL_OP_COPY) {
        TlPlace p = tl_op_place(op);
        out[n++] = use_of(op, p.buf, p.slot);
        return n;
    }
    for (uint32_t i = 0; i < op->nin; i++)
        if (tl_in(op, i)->type->kind == TL_BUF)
            out[n++] = use_of(op, tl_in(op, i), tl_in(op, i + 1));
    return n;
}

bool tl_buf_uses_meet(const TlBufUse *a, const TlBufUse *b, bool same_trip)
{
    TL_ASSERT(a->from <= a->to && b->from <= b->to, "a buffer that ends before it begins");
    if (!(a->writes || b->writes))
        return false;
    if (a->buf != b->buf)
        return a->from < b->to && b->from < a->to;
    if (a->slot >= 0 && b->slot >= 0)
        return a->slot == b->slot;
    return !(same_trip && a->of.base == b->of.base && a->of.ahead != b->of.ahead);
}
