/* Calls of the dot-product instructions of CPUs (codegen/nest/dot_insn.h). */
#include "codegen/cpu/cpu_matmul.h"

#include <string.h>

/* Arm's are overloaded on sums and parts; x86's take bytes in words. */
static bool is_overloaded(const TlCpuDotInsn *insn)
{
    static const char ARM[] = "llvm.aarch64.";
    return !strncmp(insn->name, ARM, sizeof ARM - 1);
}

static LLVMTypeRef parts(TlGen *g, const TlCpuDotInsn *insn)
{
    LLVMTypeRef t = insn->form == TL_CPU_DOT_BF16    ? LLVMBFloatTypeInContext(g->l->context)
                    : insn->form == TL_CPU_DOT_WORDS ? g->i16
                                                     : g->i8;
    return LLVMVectorType(t, (unsigned)(insn->per * insn->lanes));
}

static LLVMValueRef call(TlGen *g, const TlCpuDotInsn *insn, LLVMTypeRef *types, unsigned ntypes,
                         LLVMValueRef *args, unsigned nargs)
{
    return tl_gen_intrinsic(g, insn->name, types, ntypes, args, nargs);
}

LLVMValueRef tl_cpu_dot_add(TlGen *g, const TlCpuDotInsn *insn, TlDtype b_type, LLVMValueRef a,
                            LLVMValueRef b, LLVMValueRef sum)
{
    TL_ASSERT(tl_gen_width_of(sum) == insn->lanes, "%d sums", tl_gen_width_of(sum));
    bool in_words = insn->form == TL_CPU_DOT_MIXED && !is_overloaded(insn),
         swap = insn->form == TL_CPU_DOT_MIXED && b_type == TL_U8; /* the first is unsigned */
    LLVMTypeRef part = in_words ? LLVMTypeOf(sum) : parts(g, insn),
                types[] = {LLVMTypeOf(sum), part};
    LLVMValueRef args[] = {sum, LLVMBuildBitCast(g->b, swap ? b : a, part, ""),
                           LLVMBuildBitCast(g->b, swap ? a : b, part, "")};
    if (insn->form == TL_CPU_DOT_WORDS)
        return LLVMBuildAdd(g->b, call(g, insn, NULL, 0, args + 1, 2), sum, "");
    return call(g, insn, types, is_overloaded(insn) ? 2 : 0, args, 3);
}

/* usmmla takes u8 first. */
bool tl_cpu_pairs_are_turned(const TlNestProduct *p)
{
    return p->insn->form == TL_CPU_DOT_MIXED && p->part[1] == TL_U8;
}

LLVMValueRef tl_cpu_dot_add_pairs(TlGen *g, const TlNestProduct *p, LLVMValueRef a, LLVMValueRef b,
                                  LLVMValueRef sum)
{
    TL_ASSERT(p->pairs && tl_gen_width_of(sum) == 4, "%d sums of pairs", tl_gen_width_of(sum));
    bool turned = tl_cpu_pairs_are_turned(p);
    LLVMTypeRef part = parts(g, p->insn), types[] = {LLVMTypeOf(sum), part};
    LLVMValueRef args[] = {sum, LLVMBuildBitCast(g->b, turned ? b : a, part, ""),
                           LLVMBuildBitCast(g->b, turned ? a : b, part, "")};
    unsigned overloads = p->insn->form == TL_CPU_DOT_BF16 ? 0 : 2;
    return tl_gen_intrinsic(g, p->pairs, types, overloads, args, 3);
}

LLVMValueRef tl_cpu_dot_add_ones(TlGen *g, const TlCpuDotInsn *insn, TlDtype b_type, LLVMValueRef b,
                                 LLVMValueRef sum)
{
    LLVMValueRef ones = tl_gen_splat(g, LLVMConstInt(g->i32, 0x01010101, 0), insn->lanes);
    return tl_cpu_dot_add(g, insn, b_type, ones, b, sum);
}

LLVMValueRef tl_cpu_dot_correction(TlGen *g, TlDtype a_type, LLVMValueRef sum_of_b)
{
    LLVMValueRef shift = tl_gen_splat(g, LLVMConstInt(g->i32, 7, 0), tl_gen_width_of(sum_of_b));
    LLVMValueRef more = LLVMBuildShl(g->b, sum_of_b, shift, "");
    /* (a - 128) b lacks 128 b; (a + 128) b has it too many */
    return a_type == TL_U8 ? more : LLVMBuildNeg(g->b, more, "");
}
