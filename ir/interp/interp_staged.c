/* Buffers of shared memory and asynchronous copies.
 *
 * A buffer is its slots, each a dense tile; layouts say nothing here. A copy finds its elements
 * when it begins, makes its slot undefined, and moves them as late as it may: in the `wait` that
 * asks for its group. So a program that reads a slot too early, or writes the source of a copy that
 * is still on its way, does not get what it hopes for. What nobody may do while a copy is on its
 * way is reported: to read its slot, to write it, to begin another copy to it, to end. */
#include <string.h>

#include "ir/interp/interp_impl.h"

enum { POISON = 0xAB }; /* what undefined bytes hold */

static size_t slot_bytes(const TlType *buf)
{
    return tl_interp_elem_bytes(buf) * (size_t)tl_type_elems(buf);
}

void tl_eval_ALLOC(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y)
{
    (void)in, (void)op, (void)x;
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

void tl_eval_PUT(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y)
{
    (void)y;
    uint8_t *slot = find_slot(in, op, &x[0], &x[1]);
    if (!slot)
        return;
    check_arrived(in, op, slot);
    memcpy(slot, x[2].data, slot_bytes(x[0].type));
}

void tl_eval_GET(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y)
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
void tl_eval_READ(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y)
{
    (void)in, (void)op, (void)x, (void)y;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* A new entry at the end of the list; the memory of old entries is reused. */
static TlFlying *new_flying(TlInterp *in)
{
    if (in->nflying == in->flying.len)
        tl_vec_push(in->arena, &in->flying, (TlFlying){.op = NULL});
    return &in->flying.data[in->nflying++];
}

void tl_eval_COPY(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y)
{
    (void)y;
    TlAccess access;
    tl_access_find(in, op, "copy", true, false, &access);
    uint8_t *slot = find_slot(in, op, &x[op->nin - 2], &x[op->nin - 1]);
    if (!slot)
        return;
    check_arrived(in, op, slot);
    TlFlying *f = new_flying(in);
    *f = (TlFlying){.op = op,
                    .slot = slot,
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

void tl_eval_COMMIT(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y)
{
    (void)op, (void)x, (void)y;
    in->commits++;
}

/* Groups arrive in the order in which they were committed, so those that remain are at the end. */
void tl_eval_WAIT(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y)
{
    (void)x, (void)y;
    uint64_t pending = (uint64_t)tl_attr_int(op, TL_ATTR_PENDING, 0);
    uint32_t stay = 0;
    for (uint32_t i = 0; i < in->nflying; i++) {
        TlFlying *f = &in->flying.data[i];
        if (f->group + pending >= in->commits) {
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

void tl_interp_end_copies(TlInterp *in)
{
    if (in->nflying)
        tl_interp_fail(in, in->flying.data[0].op, TL_FAIL_ASYNC,
                       "a copy is still on its way at the end of the kernel");
    in->nflying = 0;
}
