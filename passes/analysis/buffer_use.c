/* Uses of buffers (buffer_use.h). */
#include "passes/analysis/buffer_use.h"
#include "ir/plan/staged.h"
#include "passes/analysis/facts.h"

static TlBufUse use_of(const TlOp *op, const TlValue *buf, const TlValue *slot)
{
    TL_ASSERT(buf->type->kind == TL_BUF,
              "%s uses value %u, which is no buffer", tl_op_info(op->opcode)->text, buf->id);
    bool reads = op->opcode == TL_OP_GET || op->opcode == TL_OP_DOT_ASYNC ||
                 op->opcode == TL_OP_SEND;
    TlWideInt number;
    TlBufUse u = {.buf = buf, .slot = -1, .writes = !reads};
    u.from = (uint64_t)tl_attr_int(tl_buf_alloc(buf), TL_ATTR_SHARED, 0);
    u.to = u.from + tl_buf_bytes(buf->type);
    if (tl_const_int_value(slot, &number) && number >= 0)
        u.slot = (int64_t)number;
    u.ahead = tl_attr_int(op, TL_ATTR_AHEAD, reads ? 0 : -1);
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
    return !(same_trip && a->ahead >= 0 && b->ahead >= 0 && a->ahead != b->ahead);
}
