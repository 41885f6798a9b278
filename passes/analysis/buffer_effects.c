/* Effects on buffers (buffer_effects.h). */
#include "passes/analysis/buffer_effects.h"

enum { AT_ONCE = TL_OP_COUNT, BULK_COPY };
enum { THREADS = false, ASYNC = true, OWN = false, ALL = true };
#define TL_OP_AT_ONCE AT_ONCE
#define TL_OP_BULK_COPY BULK_COPY

static const struct {
    int op, done;
    bool is_async, seen_by_all;
} rows[] = {
#define EFFECT(OP, proxy, done, seen) {TL_OP_##OP, TL_OP_##done, proxy, seen},
#include "passes/analysis/buffer_effects.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

TlEffect tl_effect_of(const TlOp *op)
{
    int opcode = tl_is_bulk_copy(op) ? BULK_COPY : (int)op->opcode;
    bool writes = tl_op_info(op->opcode)->flags & F_BUF_WRITE;
    for (int i = 0; i < ROWS; i++)
        if (rows[i].op == opcode)
            return (TlEffect){writes, rows[i].is_async, rows[i].seen_by_all,
                              (TlOpcode)rows[i].done};
    return (TlEffect){.done = TL_OP_COUNT};
}

bool tl_goes_on(const TlOp *op)
{
    return tl_effect_of(op).done != TL_OP_COUNT;
}

bool tl_is_wait(const TlOp *op)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].done == (int)op->opcode)
            return true;
    return false;
}
