/* Loads and stores by a base and a 32-bit offset (leaves LDB, STB) on AMD GPUs: buffer
 * instructions, whose resource holds the base and the number of bytes. The hardware reads 0 beyond
 * them and drops stores there; where the predicate is false, the offset is set beyond the end.
 *
 * Where nothing is tested but the predicate, views that start a constant further share a resource:
 * the constant is in the instruction. A resource has 48 bits for the base; LLVM clears those above,
 * but for a base that is known to have none (LOW). */
#include "codegen/leaf/leaf_expand.h"

#include <string.h>

/* LDB: site, base, pred, hints, fill, records, far, offset; STB has the value for the fill. */
enum { BASE = 1, PRED, HINTS, FILL, VALUE = FILL, RECORDS, FAR, OFFSET };

/* Word 3 of a resource: a format that is valid (untyped instructions do not use it); raw bounds
 * since gfx10 (OOB_SELECT 3, resource level 1). And the cache policy of what is used once, as LLVM
 * has it for nontemporal accesses. */
static const struct Generation { /* the first that the name begins with */
    const char *cpu;
    uint32_t word3, load_once, store_once;
} GENERATIONS[] = {
    {"gfx942", 0x00027000, 2, 2}, /* nt */
    {"gfx950", 0x00027000, 2, 2},
    {"gfx9-4", 0x00027000, 2, 2},
    {"gfx9", 0x00027000, 3, 3},   /* glc slc */
    {"gfx10", 0x31014000, 2, 3},  /* slc; glc slc */
    {"gfx11", 0x31004000, 6, 7},  /* slc dlc; glc slc dlc */
    {"gfx12", 0x31004000, 1, 1},  /* th:TH_LOAD_NT, th:TH_STORE_NT */
};

static const struct Generation *generation(const TlLlvm *l)
{
    for (size_t i = 0; i < sizeof GENERATIONS / sizeof *GENERATIONS; i++)
        if (!strncmp(l->cpu, GENERATIONS[i].cpu, strlen(GENERATIONS[i].cpu)))
            return &GENERATIONS[i];
    TL_UNREACHABLE("buffers of %s", l->cpu);
}

/* Bytes in an instruction, at most; what every access is within, with these, and an offset that
 * none has. */
enum { IN_INSTRUCTION = 4095 };
static const uint32_t OUTSIDE = TL_RECORDS_ALL + IN_INSTRUCTION + 1;

/* Of intrinsics that make resources, where bits above 48 are not to be cleared. */
static const char LOW[] = "tile-low";

static bool is_number(LLVMValueRef x, uint64_t n)
{
    return LLVMIsAConstantInt(x) && LLVMConstIntGetZExtValue(x) == n;
}

/* Is all there, or nothing, by a condition of the block? */
static bool is_all_or_none(LLVMValueRef records)
{
    return LLVMIsASelectInst(records) && is_number(LLVMGetOperand(records, 1), TL_RECORDS_ALL) &&
           is_number(LLVMGetOperand(records, 2), 0);
}

static bool tests_offsets(const TlLeafCall *call)
{
    LLVMValueRef records = call->args[RECORDS];
    return !is_number(records, TL_RECORDS_ALL) && !is_all_or_none(records);
}

/* Of a power of two or 0 LLVM would make a shift of the condition, in vector registers. */
static LLVMValueRef records_of(TlLeafCall *call)
{
    LLVMValueRef records = call->args[RECORDS], all = tl_leaf_i32(call, OUTSIDE);
    if (tests_offsets(call))
        return records;
    return is_all_or_none(records) ? LLVMBuildSelect(call->b, LLVMGetOperand(records, 0), all,
                                                     LLVMGetOperand(records, 2), "")
                                   : all;
}

static LLVMValueRef resource(TlLeafCall *call, LLVMValueRef base, LLVMValueRef records,
                             uint32_t hints)
{
    LLVMTypeRef from = LLVMTypeOf(base);
    LLVMValueRef args[4] = {base, LLVMConstInt(LLVMInt16TypeInContext(call->c), 0, 0), records,
                            tl_leaf_i32(call, generation(call->l)->word3)},
                 x = tl_leaf_intrinsic(call, "llvm.amdgcn.make.buffer.rsrc", &from, 1, args, 4);
    if (hints & TL_HINT_LOW_BASE)
        LLVMAddCallSiteAttribute(x, LLVMAttributeFunctionIndex,
                                 LLVMCreateStringAttribute(call->c, LOW, sizeof LOW - 1, "", 0));
    return x;
}

/* x is another value plus a constant; NULL: it is not. */
static LLVMValueRef plus_constant(LLVMValueRef x, uint64_t *out_constant)
{
    LLVMOpcode opcode = LLVMIsAInstruction(x) ? LLVMGetInstructionOpcode(x) : LLVMRet;
    bool sum = opcode == LLVMAdd || (opcode == LLVMOr && LLVMGetIsDisjoint(x));
    if (!sum || !LLVMIsAConstantInt(LLVMGetOperand(x, 1)))
        return NULL;
    *out_constant = LLVMConstIntGetZExtValue(LLVMGetOperand(x, 1));
    return LLVMGetOperand(x, 0);
}

static LLVMValueRef without_constant(LLVMValueRef x, uint32_t *out_constant)
{
    uint64_t n = 0;
    LLVMValueRef rest = plus_constant(x, &n);
    bool fits = rest && n < TL_RECORDS_ALL / 2;
    *out_constant = fits ? (uint32_t)n : 0;
    return fits ? rest : x;
}

/* The base without bytes that are added last, and fit in an instruction with `constant`, which they
 * are added to. */
static LLVMValueRef unmoved(TlLeafCall *call, LLVMValueRef base, uint32_t *constant)
{
    if (!LLVMIsAGetElementPtrInst(base) || LLVMGetNumOperands(base) != 2)
        return base;
    uint64_t n = 0;
    LLVMValueRef index = LLVMGetOperand(base, 1), x = plus_constant(index, &n);
    bool alone = LLVMIsAConstantInt(index);
    if (alone)
        n = LLVMConstIntGetZExtValue(index);
    if ((!x && !alone) || n > IN_INSTRUCTION)
        return base;
    LLVMTypeRef element = LLVMGetGEPSourceElementType(base);
    n *= LLVMABISizeOfType(LLVMGetModuleDataLayout(call->l->module), element);
    if (*constant + n > IN_INSTRUCTION)
        return base;
    *constant += (uint32_t)n;
    base = LLVMGetOperand(base, 0);
    return alone ? base : LLVMBuildGEP2(call->b, element, base, &x, 1, "");
}

/* The resource, and the vector register's and the scalar register's part of the offset. A constant
 * is in the instruction as far as it fits, and else in the scalar register, unless bounds count
 * from there. */
typedef struct Place {
    LLVMValueRef resource, vector, scalar;
} Place;

static Place place_of(TlLeafCall *call)
{
    uint32_t constant;
    LLVMValueRef far = call->args[FAR], base = call->args[BASE],
                 x = without_constant(call->args[OFFSET], &constant);
    if (!tl_leaf_is_true(call->args[PRED]))
        x = LLVMBuildSelect(call->b, call->args[PRED], x, tl_leaf_i32(call, OUTSIDE), "");
    if (LLVMIsAConstantInt(far)) {
        uint32_t more = (uint32_t)LLVMConstIntGetZExtValue(far);
        constant += more & IN_INSTRUCTION;
        far = tl_leaf_i32(call, more & ~(uint32_t)IN_INSTRUCTION);
    }
    base = tests_offsets(call) ? base : unmoved(call, base, &constant);
    x = constant ? LLVMBuildAdd(call->b, x, tl_leaf_i32(call, constant), "") : x;
    LLVMValueRef made = resource(call, base, records_of(call), tl_leaf_constant(call, HINTS));
    return (Place){made, x, far};
}

static bool is_once(uint32_t hints)
{
    hints &= ~(uint32_t)TL_HINT_LOW_BASE;
    return (hints & 3) == TL_CACHE_STREAM || hints >> 2 == TL_EVICT_FIRST;
}

/* i1, NULL = true: is there something to load? */
static LLVMValueRef is_there(TlLeafCall *call)
{
    LLVMValueRef pred = call->args[PRED], records = call->args[RECORDS];
    LLVMValueRef inside = NULL;
    if (!LLVMIsAConstantInt(records))
        inside = LLVMBuildICmp(call->b, LLVMIntULT, call->args[OFFSET], records, "");
    if (tl_leaf_is_true(pred))
        return inside;
    return inside ? LLVMBuildAnd(call->b, pred, inside, "") : pred;
}

LLVMValueRef tl_amd_load_buffer(TlLeafCall *call)
{
    if (tl_leaf_is_false(call->args[PRED]))
        return tl_leaf_fill(call, call->result);
    Place p = place_of(call);
    uint32_t policy = is_once(tl_leaf_constant(call, HINTS)) ? generation(call->l)->load_once : 0;
    LLVMValueRef args[4] = {p.resource, p.vector, p.scalar, tl_leaf_i32(call, policy)},
                 x = tl_leaf_intrinsic(call, "llvm.amdgcn.raw.ptr.buffer.load", &call->result, 1,
                                       args, 4),
                 there = tl_leaf_constant(call, FILL) ? is_there(call) : NULL;
    return there ? LLVMBuildSelect(call->b, there, x, tl_leaf_fill(call, call->result), "") : x;
}

void tl_amd_store_buffer(TlLeafCall *call)
{
    LLVMValueRef x = call->args[VALUE];
    LLVMTypeRef type = LLVMTypeOf(x);
    if (tl_leaf_is_false(call->args[PRED]))
        return;
    Place p = place_of(call);
    uint32_t policy = is_once(tl_leaf_constant(call, HINTS)) ? generation(call->l)->store_once : 0;
    LLVMValueRef args[5] = {x, p.resource, p.vector, p.scalar, tl_leaf_i32(call, policy)};
    tl_leaf_intrinsic(call, "llvm.amdgcn.raw.ptr.buffer.store", &type, 1, args, 5);
}

/* What is constant is in the scalar register: in the instruction it would count for LDS, too. */
void tl_amd_copy_buffer(TlLeafCall *call)
{
    enum { ROW_BASE = 1, ROW_HINTS, SLOT, ROW, ROW_FAR, NEAR, ROW_BYTES = 16 };
    uint32_t constant, hints = tl_leaf_constant(call, ROW_HINTS);
    LLVMValueRef *x = call->args, zero = tl_leaf_i32(call, 0),
                 vector = without_constant(x[NEAR], &constant),
                 scalar = LLVMBuildAdd(call->b, x[ROW_FAR], tl_leaf_i32(call, constant), ""),
                 to = tl_leaf_shared(call, LLVMBuildAdd(call->b, x[ROW], x[SLOT], "")),
                 from = resource(call, x[ROW_BASE], tl_leaf_i32(call, OUTSIDE), hints),
                 policy = tl_leaf_i32(call, is_once(hints) ? generation(call->l)->load_once : 0),
                 args[7] = {from, to, tl_leaf_i32(call, ROW_BYTES), vector, scalar, zero, policy};
    tl_leaf_intrinsic(call, "llvm.amdgcn.raw.ptr.buffer.load.lds", NULL, 0, args, 7);
}

/* ---- what must be the same in all threads of a wave ---- */

static LLVMValueRef first_lane(TlLlvm *l, LLVMValueRef x)
{
    LLVMBuilderRef b = l->builder;
    LLVMTypeRef i32 = LLVMInt32TypeInContext(l->context), i64 = LLVMInt64TypeInContext(l->context),
                type = LLVMTypeOf(x), pair = LLVMVectorType(i32, 2);
    bool wide = type != i32;
    LLVMValueRef words[2] = {x, NULL};
    if (wide) {
        x = LLVMBuildBitCast(b, LLVMBuildPtrToInt(b, x, i64, ""), pair, "");
        for (unsigned i = 0; i < 2; i++)
            words[i] = LLVMBuildExtractElement(b, x, LLVMConstInt(i32, i, 0), "");
    }
    for (int i = 0; i <= wide; i++)
        words[i] = tl_llvm_intrinsic(l, b, "llvm.amdgcn.readfirstlane", &i32, 1, &words[i], 1);
    if (!wide)
        return words[0];
    x = LLVMGetPoison(pair);
    for (unsigned i = 0; i < 2; i++)
        x = LLVMBuildInsertElement(b, x, words[i], LLVMConstInt(i32, i, 0), "");
    return LLVMBuildIntToPtr(b, LLVMBuildBitCast(b, x, i64, ""), type, "");
}

/* Is it one of two constants? LLVM may make it of its condition in vector registers, though that
 * is equal in all lanes: of a comparison of 64 bits, as but for equality scalar instructions have
 * none, or where lanes use it, too. */
static bool is_choice(LLVMValueRef x)
{
    return LLVMIsASelectInst(x) && LLVMIsConstant(LLVMGetOperand(x, 1)) &&
           LLVMIsConstant(LLVMGetOperand(x, 2));
}

static void fix_operand(TlLlvm *l, const TlMap *varies, LLVMValueRef user, unsigned i)
{
    LLVMValueRef x = LLVMGetOperand(user, i);
    if (LLVMIsAZExtInst(x)) { /* the length, where LLVM takes it as 64 bits */
        fix_operand(l, varies, x, 0);
        return;
    }
    if (!tl_map_get(varies, (uint64_t)(uintptr_t)x, NULL) && !is_choice(x) &&
        !tl_amd_is_clamped(l, x))
        return;
    LLVMPositionBuilderBefore(l->builder, user);
    LLVMSetOperand(user, i, first_lane(l, x));
}

/* The resource's words, with all of the base. */
static void put_together(TlLlvm *l, LLVMValueRef made)
{
    LLVMBuilderRef b = l->builder;
    LLVMTypeRef i32 = LLVMInt32TypeInContext(l->context);
    LLVMPositionBuilderBefore(b, made);
    LLVMValueRef base = LLVMBuildPtrToInt(b, LLVMGetOperand(made, 0),
                                          LLVMInt64TypeInContext(l->context), ""),
                 halves = LLVMBuildBitCast(b, base, LLVMVectorType(i32, 2), ""),
                 x = LLVMGetPoison(LLVMVectorType(i32, 4));
    for (unsigned i = 0; i < 4; i++) {
        LLVMValueRef at = LLVMConstInt(i32, i, 0);
        LLVMValueRef word = i < 2 ? LLVMBuildExtractElement(b, halves, at, "")
                                  : LLVMBuildIntCast2(b, LLVMGetOperand(made, i), i32, false, "");
        x = LLVMBuildInsertElement(b, x, word, at, "");
    }
    x = LLVMBuildBitCast(b, x, LLVMIntTypeInContext(l->context, 128), "");
    LLVMReplaceAllUsesWith(made, LLVMBuildIntToPtr(b, x, LLVMTypeOf(made), ""));
    LLVMInstructionEraseFromParent(made);
}

static void fix_resource(TlLlvm *l, const TlMap *varies, LLVMValueRef made)
{
    fix_operand(l, varies, made, 0);
    fix_operand(l, varies, made, 2);
    if (LLVMGetCallSiteStringAttribute(made, LLVMAttributeFunctionIndex, LOW, sizeof LOW - 1))
        put_together(l, made);
}

/* The operands that leaf.def says are equal in a warp, where LLVM may not see it: it would make
 * loops over the lanes. */
static void fix_function(TlLlvm *l, LLVMValueRef function)
{
    TlMap varies;
    tl_amd_find_varying(l->arena, function, &varies);
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b), next; x; x = next) {
            next = LLVMGetNextInstruction(x);
            if (tl_llvm_is_call_of(x, "llvm.amdgcn.make.buffer.rsrc")) {
                fix_resource(l, &varies, x);
                continue;
            }
            if (tl_llvm_is_call_of(x, "llvm.amdgcn.raw.ptr.buffer.load.lds"))
                fix_operand(l, &varies, x, 4);
            else if (tl_llvm_is_call_of(x, "llvm.amdgcn.raw.ptr.buffer.load"))
                fix_operand(l, &varies, x, 2);
            if (tl_llvm_is_call_of(x, "llvm.amdgcn.raw.ptr.buffer.store"))
                fix_operand(l, &varies, x, 3);
        }
}

void tl_amd_buffer_scalars(TlLlvm *l)
{
    LLVMValueRef f = LLVMGetFirstFunction(l->module);
    for (; f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            fix_function(l, f);
}
