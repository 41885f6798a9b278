/* Control flow in LLVM IR that is the same on every device, and the error for what no lowering
 * supports yet. */
#include <stdio.h>

#include "codegen/gen/gen.h"
#include "ir/plan/mma.h"

LLVMBasicBlockRef tl_gen_block(TlGen *g, const char *name)
{
    return LLVMAppendBasicBlockInContext(g->c, g->function, name);
}

/* Iterations of lo, lo + step, ... as unsigned 64-bit arithmetic, which no bounds of 64 bits
 * overflow. */
LLVMValueRef tl_gen_trips(TlGen *g, const TlOp *op, LLVMValueRef lo, LLVMValueRef hi,
                          LLVMValueRef step, LLVMValueRef *some)
{
    TL_ASSERT(op->opcode == TL_OP_FOR && LLVMTypeOf(lo) == LLVMTypeOf(hi),
              "%s has no trips", tl_op_info(op->opcode)->text);
    bool s = tl_is_signed(tl_in(op, 0)->type->dtype);
    LLVMValueRef zero = tl_gen_int(g, 0), one = tl_gen_int(g, 1);
    lo = LLVMBuildIntCast2(g->b, lo, g->i64, s, "");
    hi = LLVMBuildIntCast2(g->b, hi, g->i64, s, "");
    step = LLVMBuildIntCast2(g->b, step, g->i64, s, "");
    LLVMValueRef down =
        s ? LLVMBuildICmp(g->b, LLVMIntSLT, step, zero, "") : LLVMConstInt(g->i1, 0, 0);
    LLVMValueRef from = LLVMBuildSelect(g->b, down, hi, lo, ""),
                 to = LLVMBuildSelect(g->b, down, lo, hi, "");
    LLVMValueRef size = LLVMBuildSelect(g->b, down, LLVMBuildNeg(g->b, step, ""), step, "");
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntEQ, size, zero, "");
    LLVMValueRef more = LLVMBuildICmp(g->b, s ? LLVMIntSLT : LLVMIntULT, from, to, "");
    LLVMValueRef span = LLVMBuildSub(g->b, LLVMBuildSub(g->b, to, from, ""), one, "");
    *some = LLVMBuildAnd(g->b, more, LLVMBuildNot(g->b, none, ""), "");
    return LLVMBuildAdd(
        g->b, LLVMBuildUDiv(g->b, span, LLVMBuildSelect(g->b, none, one, size, ""), ""), one, "");
}

LLVMValueRef tl_gen_trip_count(TlGen *g, const TlOp *op, LLVMValueRef lo, LLVMValueRef hi,
                               LLVMValueRef step)
{
    LLVMValueRef some, n = tl_gen_trips(g, op, lo, hi, step, &some);
    return LLVMBuildSelect(g->b, some, n, tl_gen_int(g, 0), "");
}

unsigned tl_gen_loop_depth(const TlFn *fn)
{
    unsigned depth = 0, deepest = 0;
    for (const TlOp *op = fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        if (next && next->block->parent == op) {
            depth += tl_is_loop(op);
            deepest = depth > deepest ? depth : deepest;
            continue;
        }
        while (next && op->block->parent != next->block->parent) {
            op = op->block->parent;
            depth -= tl_is_loop(op);
        }
    }
    return deepest;
}

/* ---- what the lowerings lack is the user's to know, with its place ---- */

/* Loads from views have become loads of bytes (pass unpack), products have scales only where they
 * are by matrix instructions (scale-dots, accelerate-dot), and the front end allows asm for GPUs
 * only: IR that reaches this point was written by hand, or passes were skipped. */
bool tl_gen_is_supported(TlDiags *diags, const TlFn *fn, const char *device, bool has_asm)
{
    bool ok = true; /* what an earlier form was told is not counted again */
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        char text[100];
        bool memory = tl_op_info(op->opcode)->flags & (F_READ | F_WRITE);
        bool packed = memory && tl_dtype_bits(tl_in(op, 0)->type->dtype) < 8;
        bool scaled = op->opcode == TL_OP_DOT && op->nin > TL_MMA_SA && !tl_mma_of(op);
        if (!packed && !scaled && (has_asm || op->opcode != TL_OP_ASM))
            continue;
        snprintf(text, sizeof text, "%s on %s",
                 packed   ? "this access to 4-bit elements"
                 : scaled ? "a product with scales"
                          : "asm",
                 device);
        tl_diag(diags, op->loc, TL_E0700, text);
        ok = false;
    }
    return ok;
}
