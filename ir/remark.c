/* Remarks on ops (remark.h). */
#include "ir/remark.h"

struct TlRemark {
    const TlOp *op;
    TlRemarkId id;
    int64_t value;
};

static TlRemark *find(const TlFn *fn, const TlOp *op, TlRemarkId id)
{
    for (uint32_t i = 0; i < fn->remarks.len; i++)
        if (fn->remarks.data[i].op == op && fn->remarks.data[i].id == id)
            return &fn->remarks.data[i];
    return NULL;
}

void tl_remark(TlFn *fn, const TlOp *op, TlRemarkId id, int64_t value)
{
    TL_ASSERT(value != 0, "nothing to say of %s", tl_op_info(op->opcode)->text);
    TlRemark *old = find(fn, op, id);
    if (old)
        old->value = value;
    else
        tl_vec_push(&fn->module->arena, &fn->remarks, (TlRemark){op, id, value});
}

int64_t tl_remark_of(const TlOp *op, TlRemarkId id)
{
    const TlRemark *r = find(op->block->fn, op, id);
    return r ? r->value : 0;
}

void tl_remark_copy(TlFn *fn, const TlOp *from, const TlOp *to)
{
    for (uint32_t i = 0, n = fn->remarks.len; i < n; i++)
        if (fn->remarks.data[i].op == from)
            tl_remark(fn, to, fn->remarks.data[i].id, fn->remarks.data[i].value);
}

void tl_remark_print(TlSbuf *out, const TlOp *op)
{
    static const char *const texts[] = {
#define REMARK(ID, text) text,
#include "ir/remarks.def"
    };
    const char *before = "  // ";
    for (int id = 0; id < TL_REMARK_COUNT; id++) {
        int64_t value = tl_remark_of(op, (TlRemarkId)id);
        if (value)
            tl_sbuf_putf(out, "%s%s = %lld", before, texts[id], (long long)value);
        before = value ? ", " : before;
    }
}
