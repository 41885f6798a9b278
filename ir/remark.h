/* Remarks of passes on ops, for people (remarks.def): a list beside the function. */
#ifndef TL_REMARK_H
#define TL_REMARK_H
#include "ir/ir.h"

typedef enum TlRemarkId {
#define REMARK(ID, text) TL_REMARK_##ID,
#include "ir/remarks.def"
    TL_REMARK_COUNT
} TlRemarkId;

/* value: not 0. Replaces what was said by this id before. */
void tl_remark(TlFn *fn, const TlOp *op, TlRemarkId id, int64_t value);
int64_t tl_remark_of(const TlOp *op, TlRemarkId id); /* 0: none */
/* What was said of one is said of the other, too. */
void tl_remark_copy(TlFn *fn, const TlOp *from, const TlOp *to);
void tl_remark_print(TlSbuf *out, const TlOp *op); /* "  // chunks = 40"; nothing: none */
#endif
