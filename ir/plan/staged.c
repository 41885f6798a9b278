/* Buffers of shared memory (staged.h). */
#include "ir/plan/staged.h"
#include "ir/plan/mma.h"

/* Bytes: a bulk copy wants 128; swizzles of 128 bytes repeat after 1024. */
enum { LEAST_ALIGNMENT = 128, MOST_ALIGNMENT = 1024 };

static uint32_t elem_bytes(const TlType *buf)
{
    TL_ASSERT(buf->kind == TL_BUF, "not a buffer");
    return (uint32_t)tl_dtype_bytes(buf->dtype);
}

/* Offset bits up to the last one that changes more than one bit of the coordinates. */
static int mixed_bits(const TlLayout *l)
{
    int n = 0;
    for (int b = 0; b < l->in_bits[0]; b++) {
        int ones = 0;
        for (int d = 0; d < l->nout; d++)
            ones += __builtin_popcount((uint32_t)l->basis[0][b][d]);
        if (ones > 1)
            n = b + 1;
    }
    return n;
}

uint32_t tl_buf_alignment(const TlType *buf)
{
    uint64_t atom = (uint64_t)elem_bytes(buf) << mixed_bits(buf->layout);
    if (atom > MOST_ALIGNMENT)
        return MOST_ALIGNMENT;
    return atom < LEAST_ALIGNMENT ? LEAST_ALIGNMENT : (uint32_t)atom;
}

static uint64_t chunk_bytes(const TlType *buf)
{
    return (uint64_t)elem_bytes(buf) << tl_layout_in_bits(buf->layout, TL_IN_OFFSET);
}

uint64_t tl_buf_slot_bytes(const TlType *buf)
{
    TL_ASSERT(buf->slots > 0, "a buffer of %d slots", (int)buf->slots);
    uint64_t bytes = chunk_bytes(buf), alignment = tl_buf_alignment(buf);
    for (int d = 0; d < buf->rank; d++)
        bytes *= (uint64_t)buf->layout->reps[d];
    bytes /= buf->halved ? 2 : 1;
    return (bytes + alignment - 1) / alignment * alignment;
}

const TlType *tl_buf_own(TlArena *arena, const TlType *buf)
{
    if (!buf->halved)
        return buf;
    TlType *own = TL_NEW(arena, TlType);
    TlLayout *l = TL_NEW(arena, TlLayout);
    *own = *buf;
    *l = *buf->layout;
    TL_ASSERT(l->reps[buf->halved - 1] % 2 == 0, "halves of %d chunks",
              (int)l->reps[buf->halved - 1]);
    l->reps[buf->halved - 1] /= 2;
    own->shape[buf->halved - 1] /= 2;
    own->layout = l;
    own->halved = 0;
    return own;
}

uint64_t tl_buf_bytes(const TlType *buf)
{
    return tl_buf_slot_bytes(buf) * (uint64_t)buf->slots;
}

uint64_t tl_buf_offset(const TlType *buf, const int32_t *coordinate)
{
    TL_ASSERT(buf->kind == TL_BUF, "a type of kind %d", (int)buf->kind);
    const TlLayout *l = buf->layout;
    int32_t inner[TL_LAYOUT_MAX_OUT];
    uint64_t chunk = 0;
    for (int d = 0; d < l->nout; d++) {
        inner[d] = coordinate[d] & (((int32_t)1 << l->out_bits[d]) - 1);
        chunk = chunk * (uint64_t)l->reps[d] + (uint64_t)(coordinate[d] >> l->out_bits[d]);
    }
    int64_t offset = tl_layout_solve(l, TL_IN_OFFSET, inner);
    TL_ASSERT(offset >= 0, "an element without a place");
    return chunk * chunk_bytes(buf) + (uint64_t)offset * elem_bytes(buf);
}

bool tl_copy_is_spread(const TlOp *op)
{
    bool is = op->opcode == TL_OP_COPY && tl_attr(op, TL_ATTR_ASYNC);
    while (is && op && !tl_mma_of(op) && op->opcode != TL_OP_COMMIT)
        op = op->next;
    return is && op && op->opcode == TL_OP_DOT;
}

TlOp *tl_buf_alloc(const TlValue *buf)
{
    TL_ASSERT(buf->def && buf->def->opcode == TL_OP_ALLOC, "a buffer that no alloc makes");
    return buf->def;
}
