/* Buffers of shared memory and asynchronous copies.
 *
 * A buffer is its slots, each a dense tile; layouts play no part here. A copy finds its elements
 * when it begins, makes its slot undefined, and moves them as late as it may: in the `wait` for
 * its group. So a program that reads a slot too early, or writes the source of a copy in flight,
 * does not get what it hopes for. What nobody may do while a copy is in flight is reported:
 * reading or writing its slot, starting another copy to it, ending.
 *
 * A bulk store reads its slot in the `store_wait` for it, and its data are in memory at the end of
 * the program. */
#include <string.h>

#include "ir/interp/interp_impl.h"
#include "ir/interp/ring_float.h"
#include "ir/plan/async_dot.h"

enum {
    POISON = 0xAB, /* what undefined bytes hold */
    ASYNC_TEMP = 3 /* and one for each side: behind those of DOT */
};

static size_t slot_bytes(const TlType *buf)
{
    return tl_interp_elem_bytes(buf) * (size_t)tl_type_elems(buf);
}

TL_EVAL(ALLOC)
{
    memset(y[0].data, POISON, tl_interp_bytes(y[0].type));
}

/* The memory of a slot. NULL: there is no slot of this number, which is reported. */
static uint8_t *find_slot(TlInterp *in, const TlOp *op, const TlTileData *buf,
                          const TlTileData *number)
{
    int64_t n = tl_bits_to_int(TL_I32, tl_elem_get(TL_I32, number->data, 0));
    if (n >= 0 && n < buf->type->slots)
        return (uint8_t *)buf->data + (size_t)n * slot_bytes(buf->type);
    tl_interp_fail(in, op, TL_FAIL_BOUNDS, "%s: slot %lld of a buffer that has %d",
                   tl_op_info(op->opcode)->text, (long long)n, (int)buf->type->slots);
    return NULL;
}

static void check_arrived(TlInterp *in, const TlOp *op, const uint8_t *slot)
{
    for (uint32_t i = 0; i < in->nflying; i++) {
        if (in->flying.data[i].slot != slot)
            continue;
        tl_interp_fail(in, op, TL_FAIL_ASYNC, "%s: a copy to the slot (line %u) is on its way",
                       tl_op_info(op->opcode)->text, in->flying.data[i].op->loc.line);
        return;
    }
}

/* Nobody may write what a product still reads. */
static void check_read(TlInterp *in, const TlOp *op, const uint8_t *slot)
{
    for (uint32_t i = 0; i < in->products.len; i++) {
        const TlProduct *p = &in->products.data[i];
        if (p->slot[0] != slot && p->slot[1] != slot && p->slot[2] != slot && p->slot[3] != slot)
            continue;
        tl_interp_fail(in, op, TL_FAIL_ASYNC, "%s: a product of the slot (line %u) is on its way",
                       tl_op_info(op->opcode)->text, p->op->loc.line);
        return;
    }
}

/* Nor what is sent from a slot. */
static void check_sent(TlInterp *in, const TlOp *op, const uint8_t *slot)
{
    for (uint32_t i = 0; i < in->nsending; i++) {
        if (in->sending.data[i].slot != slot)
            continue;
        tl_interp_fail(in, op, TL_FAIL_ASYNC, "%s: the slot is being sent (line %u)",
                       tl_op_info(op->opcode)->text, in->sending.data[i].op->loc.line);
        return;
    }
}

TL_EVAL(PUT)
{
    uint8_t *slot = find_slot(in, op, &x[0], &x[1]);
    if (!slot)
        return;
    check_arrived(in, op, slot);
    check_read(in, op, slot);
    check_sent(in, op, slot);
    memcpy(slot, x[2].data, slot_bytes(x[0].type));
}

TL_EVAL(GET)
{
    const uint8_t *slot = find_slot(in, op, &x[0], &x[1]);
    if (slot)
        check_arrived(in, op, slot);
    if (slot)
        memcpy(y[0].data, slot, slot_bytes(x[0].type));
    else
        memset(y[0].data, POISON, slot_bytes(x[0].type));
}

/* The GET has already read everything. */
TL_EVAL(READ)
{
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* A new entry at the end of the list; the memory of old entries is reused. */
static TlFlying *new_flying(TlInterp *in)
{
    if (in->nflying == in->flying.len)
        tl_vec_push(in->arena, &in->flying, (TlFlying){.op = NULL});
    return &in->flying.data[in->nflying++];
}

/* Is a bulk copy masked off? */
static bool is_off(const TlOp *op, const TlTileData *x)
{
    enum { BEHIND = 5 }; /* mask, buffer, slot, barriers, slot */
    return tl_attr_flag(op, TL_ATTR_MASK) && !*(const uint8_t *)x[op->nin - BEHIND].data;
}

TL_EVAL(COPY)
{
    TlAccess access;
    tl_access_find(in, op, "copy", true, false, &access);
    uint32_t last = op->nin - 1, at = tl_is_bulk_copy(op) ? last - 2 : last;
    uint8_t *slot = find_slot(in, op, &x[at - 1], &x[at]);
    const uint8_t *bar = at < last ? find_slot(in, op, &x[last - 1], &x[last]) : NULL;
    if (!slot || (at < last && !bar))
        return;
    if (at < last && is_off(op, x))
        return;
    check_arrived(in, op, slot);
    check_read(in, op, slot);
    check_sent(in, op, slot);
    TlFlying *f = new_flying(in);
    *f = (TlFlying){.op = op,
                    .slot = slot,
                    .bar = bar,
                    .group = in->commits,
                    .n = access.n,
                    .bytes = access.bytes,
                    .from = f->from};
    uint64_t *from = tl_interp_reserve(in, &f->from, (size_t)access.n * sizeof *from);
    for (int64_t e = 0; e < access.n; e++)
        from[e] = access.ok[e] ? tl_access_at(&access, e).address : 0;
    memset(slot, POISON, (size_t)access.n * access.bytes);
}

static void arrive(const TlFlying *f)
{
    const uint64_t *from = f->from.data;
    for (int64_t e = 0; e < f->n; e++) {
        uint8_t *to = f->slot + (size_t)e * f->bytes;
        if (from[e])
            memcpy(to, (const void *)(uintptr_t)from[e], f->bytes);
        else
            memset(to, 0, f->bytes);
    }
}

TL_EVAL(COMMIT)
{
    in->commits++;
}

/* Groups arrive in the order in which they were committed, so those that remain are at the end. */
TL_EVAL(WAIT)
{
    uint64_t pending = (uint64_t)tl_attr_int(op, TL_ATTR_PENDING, 0);
    uint32_t stay = 0;
    for (uint32_t i = 0; i < in->nflying; i++) {
        TlFlying *f = &in->flying.data[i];
        if (f->bar || f->group + pending >= in->commits) {
            TlFlying free = in->flying.data[stay];
            in->flying.data[stay++] = *f;
            *f = free;
            continue;
        }
        in->work += (uint64_t)f->n * 4;
        arrive(f);
    }
    in->nflying = stay;
}

/* ---- barriers that count --------------------------------------------------------------------- */

/* What a slot of MBAR holds here. */
typedef struct Bar {
    uint16_t parity, arrived; /* of the phase that goes on; its arrivals, */
    uint32_t bytes;           /* and what they say is to come */
} Bar;

TL_EVAL(TENSOR)
{
    memset(y[0].data, 0, tl_interp_bytes(y[0].type));
}

/* What is on its way is told of at the kernel's end. */
TL_EVAL(TENSOR_END)
{
}

TL_EVAL(MBAR)
{
    memset(y[0].data, 0, tl_interp_bytes(y[0].type));
}

/* The mask is the last operand. */
static bool is_masked_off(const TlOp *op, const TlTileData *x)
{
    return tl_attr_flag(op, TL_ATTR_MASK) && !*(const uint8_t *)x[op->nin - 1].data;
}

/* So many arrive, and say that so many bytes are to come. */
static void arrive_with(TlInterp *in, const TlOp *op, const TlTileData *x, int64_t arrivals,
                        int64_t bytes)
{
    uint8_t *slot = find_slot(in, op, &x[0], &x[1]);
    Bar bar;
    if (!slot || is_masked_off(op, x))
        return;
    memcpy(&bar, slot, sizeof bar);
    bar.arrived = (uint16_t)(bar.arrived + arrivals);
    bar.bytes += (uint32_t)bytes;
    memcpy(slot, &bar, sizeof bar);
}

/* All warps at once, as a program is one thread here. */
TL_EVAL(ARRIVE)
{
    arrive_with(in, op, x, tl_attr_int(tl_in(op, 0)->def, TL_ATTR_ARRIVALS, 1), 0);
    if (tl_attr_flag(op, TL_ATTR_PRODUCTS))
        in->products.len = 0;
}

TL_EVAL(EXPECT)
{
    arrive_with(in, op, x, 1, tl_attr_int(op, TL_ATTR_BYTES, 0));
}

/* All copies that the barrier counts arrive: as much as is expected. */
static void arrive_at(TlInterp *in, const TlOp *op, const uint8_t *slot, uint32_t expected)
{
    uint32_t stay = 0, come = 0;
    for (uint32_t i = 0; i < in->nflying; i++) {
        TlFlying *f = &in->flying.data[i];
        if (f->bar == slot) {
            come += (uint32_t)(f->n * f->bytes);
            arrive(f);
            continue;
        }
        TlFlying free = in->flying.data[stay];
        in->flying.data[stay++] = *f;
        if (&in->flying.data[stay - 1] != f)
            *f = free;
    }
    in->nflying = stay;
    if (come != expected)
        tl_interp_fail(in, op, TL_FAIL_ASYNC, "mbar_wait: %u bytes are expected, %u come", expected,
                       come);
}

TL_EVAL(MBAR_WAIT)
{
    uint8_t *slot = find_slot(in, op, &x[0], &x[1]);
    int64_t parity = tl_bits_to_int(TL_I32, tl_elem_get(TL_I32, x[2].data, 0));
    int64_t arrivals = tl_attr_int(tl_in(op, 0)->def, TL_ATTR_ARRIVALS, 1);
    Bar bar;
    if (!slot || is_masked_off(op, x))
        return;
    memcpy(&bar, slot, sizeof bar);
    if (bar.arrived >= arrivals) {
        arrive_at(in, op, slot, bar.bytes);
        bar = (Bar){.parity = !bar.parity};
        memcpy(slot, &bar, sizeof bar);
    }
    if (bar.parity != parity)
        in->roles.stuck = 0;
    else if (!tl_interp_wait(in, op))
        tl_interp_fail(in, op, TL_FAIL_ASYNC,
                       "mbar_wait: nobody completes the phase of parity %lld",
                       (long long)parity);
}

TL_EVAL(MBAR_END)
{
    const uint8_t *bars = x[0].data;
    for (uint32_t i = 0; i < in->nflying; i++) {
        const TlFlying *f = &in->flying.data[i];
        if (f->bar >= bars && f->bar < bars + tl_interp_bytes(x[0].type))
            tl_interp_fail(in, op, TL_FAIL_ASYNC,
                           "mbar_end: a copy that the barrier counts (line %u) is on its way",
                           f->op->loc.line);
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

static TlSending *new_sending(TlInterp *in)
{
    if (in->nsending == in->sending.len)
        tl_vec_push(in->arena, &in->sending, (TlSending){.op = NULL});
    return &in->sending.data[in->nsending++];
}

TL_EVAL(BULK_STORE)
{
    TlAccess access;
    tl_access_find(in, op, "bulk_store", false, true, &access);
    const uint8_t *slot = find_slot(in, op, &x[op->nin - 2], &x[op->nin - 1]);
    if (!slot)
        return;
    check_arrived(in, op, slot);
    TlSending *s = new_sending(in);
    *s = (TlSending){.op = op,
                     .slot = slot,
                     .n = access.n,
                     .bytes = access.bytes,
                     .to = s->to,
                     .data = s->data};
    uint64_t *to = tl_interp_reserve(in, &s->to, (size_t)access.n * sizeof *to);
    for (int64_t e = 0; e < access.n; e++)
        to[e] = access.ok[e] ? tl_access_at(&access, e).address : 0;
}

static void write_sent(TlSending *s)
{
    const uint64_t *to = s->to.data;
    const uint8_t *from = s->data.data;
    for (int64_t e = 0; e < s->n; e++)
        if (to[e])
            memcpy((void *)(uintptr_t)to[e], from + (size_t)e * s->bytes, s->bytes);
    s->n = 0;
}

TL_EVAL(STORE_WAIT)
{
    const uint8_t *buf = x[0].data;
    for (uint32_t i = 0; i < in->nsending; i++) {
        TlSending *s = &in->sending.data[i];
        size_t bytes = (size_t)s->n * s->bytes;
        if (!s->slot || s->slot < buf || s->slot >= buf + tl_interp_bytes(x[0].type))
            continue;
        memcpy(tl_interp_reserve(in, &s->data, bytes), s->slot, bytes);
        s->slot = NULL;
        if (tl_attr_flag(op, TL_ATTR_WRITTEN))
            write_sent(s);
    }
}

static void end_sending(TlInterp *in)
{
    for (uint32_t i = 0; i < in->nsending; i++) {
        TlSending *s = &in->sending.data[i];
        if (!s->slot)
            write_sent(s);
        else
            tl_interp_fail(in, s->op, TL_FAIL_ASYNC,
                           "a slot is still being sent at the end of the kernel");
    }
    in->nsending = 0;
}

/* ---- products -------------------------------------------------------------------------------- */

TL_EVAL(READY)
{
    memcpy(y[0].data, x[0].data, tl_interp_bytes(x[0].type));
}

/* What a side holds, in the order of the matrix. */
static TlTileData matrix_of(TlInterp *in, const TlOp *op, int operand, const TlAsyncSide *s,
                            const TlTileData *x, TlProduct *p)
{
    TlCtx *ctx = in->fn->module->ctx;
    int32_t shape[2];
    TlDtype d = tl_async_side_shape(s, shape);
    TlTileData t = {.type = tl_type_tile(ctx, d, 2, shape), .data = x[0].data};
    if (!s->buf)
        return t;
    const uint8_t *from = find_slot(in, op, &x[0], &x[1]);
    size_t elem = tl_interp_elem_bytes(t.type);
    uint8_t *to = tl_interp_temp(in, ASYNC_TEMP + operand, tl_interp_bytes(t.type));
    t.data = to;
    p->slot[operand] = from;
    if (from)
        check_arrived(in, op, from);
    for (int32_t i = 0; from && i < shape[0]; i++)
        for (int32_t j = 0; j < shape[1]; j++) {
            int64_t at = s->flipped ? (int64_t)j * shape[0] + i : (int64_t)i * shape[1] + j;
            memcpy(to + (size_t)(i * shape[1] + j) * elem, from + (size_t)at * elem, elem);
        }
    return t;
}

/* The product is done at once; that nobody writes what it reads is checked until it is awaited. */
TL_EVAL(DOT_ASYNC)
{
    TlAsyncDot d = tl_async_dot(op);
    TlProduct p = {.op = op};
    TlTileData operands[TL_MMA_OPERANDS];
    uint32_t at = 0;
    for (int i = 0; i < TL_ASYNC_SIDES; i++) {
        if (!tl_async_has(&d.side[i]))
            continue;
        int to = i < TL_ASYNC_SCALES ? i : TL_MMA_SA + i - TL_ASYNC_SCALES;
        operands[to] = matrix_of(in, op, i, &d.side[i], &x[at], &p);
        at += d.side[i].buf ? 2 : 1;
    }
    operands[TL_MMA_C] = x[at];
    if (d.side[TL_ASYNC_SCALES].buf)
        tl_interp_scaled_dot(in, op, operands, y);
    else
        tl_eval_DOT(in, op, operands, y);
    tl_vec_push(in->arena, &in->products, p);
}

/* Of sums that are there: no product onto them is on its way. */
TL_EVAL(RESCALE)
{
    for (uint32_t i = 0; i < in->products.len; i++)
        if (in->products.data[i].op->out[0] == tl_in(op, 0))
            tl_interp_fail(in, op, TL_FAIL_ASYNC, "the sums are still on their way");
    TlDtype d = tl_op_dtype(op, x[0].type->dtype);
    tl_elem_fn(TL_OP_MUL, d)(y[0].data, x[0].data, x[1].data, tl_type_elems(y[0].type));
}

TL_EVAL(FENCE)
{
}

TL_EVAL(AWAIT)
{
    uint32_t pending = (uint32_t)tl_attr_int(op, TL_ATTR_PENDING, 0), n = in->products.len;
    for (uint32_t i = 0; i < op->nout; i++)
        memcpy(y[i].data, x[i].data, tl_interp_bytes(x[i].type));
    if (n > pending)
        memmove(in->products.data, in->products.data + (n - pending),
                pending * sizeof *in->products.data);
    in->products.len = n < pending ? n : pending;
}

void tl_interp_end_copies(TlInterp *in)
{
    if (in->nflying)
        tl_interp_fail(in, in->flying.data[0].op, TL_FAIL_ASYNC,
                       "a copy is still on its way at the end of the kernel");
    end_sending(in);
    if (in->products.len)
        tl_interp_fail(in, in->products.data[0].op, TL_FAIL_ASYNC,
                       "a product is still on its way at the end of the kernel");
    in->nflying = in->products.len = 0;
}
