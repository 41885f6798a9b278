/* Loads whose fill nobody sees: what they give where their predicate is false goes, through
 * arithmetic, to stores alone that do not happen there either. Their registers need no zeros.
 *
 *     x = ldg(a, p, fill 0)                      x = ldg(a, p, any fill)
 *     y = fadd x, 1.0                       =>   y = fadd x, 1.0
 *     stg(o, p & q, y)                           stg(o, p & q, y)
 *
 *  1. From each such load all uses are followed, through what has no effect and would take any
 *     value that memory may hold. No phi: a value would meet the predicate of another trip.
 *  2. A store ends it if its predicate says that of the load. Anything else sees the fill.
 *  3. All loads of kernels with barriers keep it: ptxas would put those behind the last one in
 *     front of all the arithmetic there, with up to twice the registers (118 for 64 in a layer norm
 *     of 4096).
 *
 * The emulator fills what was found with other bits. */
#include "codegen/leaf/leaves.h"

enum { STORED = 4, PRED = 2, HINTS = 3, MOST_DEPTH = 6, MOST_VALUES = 4000 };

typedef struct Unseen {
    TlLlvm *l;
    TlMap leaves; /* function to leaf */
} Unseen;

typedef struct Search {
    const Unseen *u;
    LLVMValueRef pred; /* of the load */
    TlMap met;
    TL_VEC(LLVMValueRef) open;
} Search;

/* ---- predicates ---- */

/* i1: are both parts there where x is? */
static bool is_both(LLVMValueRef x, LLVMValueRef part[2])
{
    if (!LLVMIsAInstruction(x))
        return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(x);
    bool both = opcode == LLVMAnd;
    if (opcode == LLVMSelect) {
        LLVMValueRef other = LLVMGetOperand(x, 2);
        both = LLVMIsAConstantInt(other) && LLVMConstIntGetZExtValue(other) == 0;
    }
    part[0] = both ? LLVMGetOperand(x, 0) : NULL;
    part[1] = both ? LLVMGetOperand(x, 1) : NULL;
    return both;
}

/* Is b true wherever a is? Not: nothing is known. */
static bool implies(LLVMValueRef a, LLVMValueRef b, int depth)
{
    LLVMValueRef part[2];
    if (a == b)
        return true;
    if (depth == 0)
        return false;
    if (is_both(b, part) && implies(a, part[0], depth - 1) && implies(a, part[1], depth - 1))
        return true;
    return is_both(a, part) && (implies(part[0], b, depth - 1) || implies(part[1], b, depth - 1));
}

/* ---- uses ---- */

/* The leaf that a call is of; TL_LEAF_COUNT: none, or one with words. */
static tl_leaf leaf_of(const Unseen *u, LLVMValueRef x)
{
    uint64_t leaf = TL_LEAF_COUNT;
    if (LLVMIsACallInst(x))
        tl_map_get(&u->leaves, (uint64_t)(uintptr_t)LLVMGetCalledValue(x), &leaf);
    return (tl_leaf)leaf;
}

/* Does x make a value of its operands, and nothing else, whatever these are? */
static bool is_pure(const Unseen *u, LLVMValueRef x)
{
    static const char *const CALLS[] = {"llvm.fma.",  "llvm.fabs.", "llvm.minnum.", "llvm.maxnum.",
                                        "llvm.smin.", "llvm.smax.", "llvm.umin.",   "llvm.umax.",
                                        "llvm.fshl.", "llvm.fshr.", "llvm.bswap.",  "llvm.ctpop."};
    if (LLVMIsABinaryOperator(x) || LLVMIsACastInst(x) || LLVMIsASelectInst(x) ||
        LLVMIsACmpInst(x) || LLVMIsAUnaryOperator(x) || LLVMIsAFreezeInst(x) ||
        LLVMIsAExtractElementInst(x) || LLVMIsAInsertElementInst(x) || LLVMIsAShuffleVectorInst(x))
        return true;
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (tl_llvm_is_call_of(x, CALLS[i]))
            return true;
    tl_leaf leaf = leaf_of(u, x);
    return leaf != TL_LEAF_COUNT && tl_leaf_class_of(leaf) == TL_LEAF_CLASS_PURE;
}

/* Is x a store that has the value as what it stores, and happens only where the load does? */
static bool is_store_of(const Search *s, LLVMValueRef x, LLVMValueRef value)
{
    tl_leaf leaf = leaf_of(s->u, x);
    if (leaf == TL_LEAF_COUNT || tl_leaf_info(leaf)->family != TL_LEAF_FAMILY_STG)
        return false;
    for (unsigned i = 0; i < STORED; i++)
        if (LLVMGetOperand(x, i) == value)
            return false;
    return implies(LLVMGetOperand(x, PRED), s->pred, MOST_DEPTH);
}

static void open(Search *s, LLVMValueRef x)
{
    uint64_t key = (uint64_t)(uintptr_t)x, once;
    if (tl_map_get(&s->met, key, &once))
        return;
    tl_map_put(&s->met, key, 1);
    tl_vec_push(s->u->l->arena, &s->open, x);
}

static bool sees_fill(const Unseen *unseen, LLVMValueRef load)
{
    Search s = {
        .u = unseen, .pred = LLVMGetOperand(load, PRED), .met = {.arena = unseen->l->arena}};
    open(&s, load);
    for (uint32_t i = 0; i < s.open.len; i++)
        for (LLVMUseRef u = LLVMGetFirstUse(s.open.data[i]); u; u = LLVMGetNextUse(u)) {
            LLVMValueRef user = LLVMGetUser(u);
            if (is_store_of(&s, user, s.open.data[i]))
                continue;
            if (!is_pure(unseen, user) || s.open.len >= MOST_VALUES)
                return true;
            open(&s, user);
        }
    return false;
}

static LLVMValueRef function_of(LLVMValueRef x)
{
    return LLVMGetBasicBlockParent(LLVMGetInstructionParent(x));
}

static bool has_barriers(const TlLlvm *l, LLVMValueRef function)
{
    LLVMValueRef f = LLVMGetNamedFunction(l->module, "tl.leaf.barrier");
    for (LLVMUseRef u = f ? LLVMGetFirstUse(f) : NULL; u; u = LLVMGetNextUse(u))
        if (function_of(LLVMGetUser(u)) == function)
            return true;
    return false;
}

static void mark(const Unseen *u, LLVMValueRef load)
{
    LLVMValueRef hints = LLVMGetOperand(load, HINTS);
    TL_ASSERT(LLVMIsAConstantInt(hints), "hints are a constant");
    uint64_t all = LLVMConstIntGetZExtValue(hints) | TL_HINT_ANY_FILL;
    if (!LLVMIsConstant(LLVMGetOperand(load, PRED)) && !has_barriers(u->l, function_of(load)) &&
        !sees_fill(u, load))
        LLVMSetOperand(load, HINTS, LLVMConstInt(LLVMTypeOf(hints), all, 0));
}

void tl_leaf_find_unseen(TlLlvm *l)
{
    TL_ASSERT(l->module, "no module");
    Unseen u = {.l = l};
    TL_VEC(LLVMValueRef) loads = {0};
    tl_map_init(&u.leaves, l->arena);
    for (int i = 0; i < TL_LEAF_COUNT; i++) {
        const char *name = tl_format(l->arena, "tl.leaf.%s", tl_leaf_name((tl_leaf)i));
        LLVMValueRef f = LLVMGetNamedFunction(l->module, name);
        if (!f)
            continue;
        tl_map_put(&u.leaves, (uint64_t)(uintptr_t)f, (uint64_t)i);
        if (tl_leaf_info((tl_leaf)i)->family == TL_LEAF_FAMILY_LDG)
            tl_vec_push(l->arena, &loads, f);
    }
    for (uint32_t i = 0; i < loads.len; i++)
        for (LLVMUseRef x = LLVMGetFirstUse(loads.data[i]); x; x = LLVMGetNextUse(x))
            mark(&u, LLVMGetUser(x));
}
