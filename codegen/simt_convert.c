/* Not yet. */
#include "codegen/simt.h"

void tl_simt_convert(TlSimt *g, TlOp *op)
{
    (void)g;
    TL_UNREACHABLE("no lowering of %s", tl_op_info(op->opcode)->text);
}
