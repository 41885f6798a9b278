/* Asynchronous copies from memory to LDS on AMD GPUs (leaves CP_ASYNC, CP_ROW, CP_COMMIT,
 * CP_WAIT).
 *
 * gfx1250 has instructions in which each lane gives both of its addresses. gfx950's fill LDS from
 * where m0 says, lane by lane. Where the leaf copies zeros, they come from a constant in memory, so
 * that nothing branches.
 *
 * Waits. The hardware knows no groups: a wait is for all but the latest n copies of the wave,
 * instruction by instruction. How many there are behind the group that is waited for is counted in
 * the function, back from the wait on all ways:
 *
 *     copy; copy; commit                        copy; copy
 *     loop: copy; copy; commit            =>    loop: copy; copy
 *           wait 1 (group)                            wait 2 (instructions)
 *
 *  1. The (n + 1)th commit back closes the group that must be done; what stands behind it may be on
 *     its way. The way with the fewest copies counts: a smaller number waits for more.
 *  2. A copy that only some threads begin counts if all copies of the function ask the same
 *     question before its loops: a wave in which it is false for all has nothing on its way.
 *
 * What reads or writes LDS otherwise is said to be apart from what copies write: what they have
 * written is touched behind a wait and a barrier only, which keep their places. */
#include "codegen/leaf/leaf_expand.h"

#include <string.h>

enum { PRED = 1, SLOT, OFFSET, FROM, INSIDE, MOST_PENDING = 63 };

/* ---- counting ---- */

typedef enum Event { COPY, COMMIT, WAIT, OTHER } Event;

typedef struct Counter {
    TlLlvm *l;
    TlMap leaves;       /* function to leaf */
    LLVMValueRef asked; /* what all copies that not every thread begins ask; NULL: they differ */
    bool any;
} Counter;

/* A place to count on from: a block's end. */
typedef struct Way {
    LLVMBasicBlockRef block;
    uint32_t commits;
} Way;

static Event event_of(const Counter *c, LLVMValueRef x)
{
    uint64_t leaf = TL_LEAF_COUNT;
    if (!LLVMIsACallInst(x) ||
        !tl_map_get(&c->leaves, (uint64_t)(uintptr_t)LLVMGetCalledValue(x), &leaf))
        return OTHER;
    tl_leaf_family family = tl_leaf_info((tl_leaf)leaf)->family;
    return family == TL_LEAF_FAMILY_CP_COMMIT ? COMMIT
           : family == TL_LEAF_FAMILY_CP_WAIT ? WAIT
                                              : COPY;
}

static bool is_constant_or_first(LLVMValueRef x)
{
    if (!LLVMIsAInstruction(x))
        return true;
    LLVMBasicBlockRef b = LLVMGetInstructionParent(x);
    return b == LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(b));
}

/* NULL: all threads begin the copy. */
static LLVMValueRef pred_of(LLVMValueRef copy)
{
    LLVMValueRef pred = LLVMGetOperand(copy, PRED);
    bool is_bit = LLVMTypeOf(pred) == LLVMInt1TypeInContext(LLVMGetTypeContext(LLVMTypeOf(pred)));
    return is_bit && !tl_leaf_is_true(pred) ? pred : NULL;
}

static void ask(Counter *c, LLVMValueRef copy)
{
    LLVMValueRef pred = pred_of(copy);
    bool is_first = !c->any;
    c->any = true;
    if (!is_first && c->asked != pred)
        c->asked = NULL;
    else if (is_first && pred && is_constant_or_first(pred))
        c->asked = pred;
}

static uint32_t count_of(const Counter *c, LLVMValueRef copy)
{
    LLVMValueRef pred = pred_of(copy);
    return !pred || pred == c->asked;
}

/* Back from x, which may be NULL, to its block's beginning. True: the way ends there, as `last`
 * commits were met. */
static bool count_back(const Counter *c, LLVMValueRef x, uint32_t last, Way *w, uint32_t *count)
{
    for (; x; x = LLVMGetPreviousInstruction(x))
        switch (event_of(c, x)) {
        case COPY: *count += count_of(c, x); break;
        case COMMIT:
            if (++w->commits == last)
                return true;
            break;
        case WAIT:
        case OTHER: break;
        }
    return false;
}

typedef struct Search {
    const Counter *c;
    TlMap best; /* block and commits to the fewest copies, plus 1 */
    TL_VEC(Way) todo;
} Search;

static uint64_t key_of(Way w)
{
    enum { MOST_COMMITS = 64 };
    TL_ASSERT(w.commits < MOST_COMMITS, "%u commits", w.commits);
    return (uint64_t)(uintptr_t)w.block * MOST_COMMITS + w.commits;
}

/* The blocks that may come before. */
static void go_back(Search *s, Way w, uint32_t count)
{
    LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(w.block));
    for (; u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        uint64_t known;
        if (!LLVMIsATerminatorInst(user))
            continue;
        Way from = {LLVMGetInstructionParent(user), w.commits};
        if (tl_map_get(&s->best, key_of(from), &known) && known <= count)
            continue;
        tl_map_put(&s->best, key_of(from), count);
        tl_vec_push(s->c->l->arena, &s->todo, from);
    }
}

/* Copies that may be on their way where all but the latest n groups are done. */
static uint32_t pending_of(const Counter *c, LLVMValueRef wait, uint32_t n)
{
    Search s = {.c = c};
    uint32_t least = MOST_PENDING, count = 0;
    Way w = {LLVMGetInstructionParent(wait), 0};
    LLVMValueRef x = LLVMGetPreviousInstruction(wait);
    tl_map_init(&s.best, c->l->arena);
    for (;;) {
        if (count_back(c, x, n + 1, &w, &count))
            least = count < least ? count : least;
        else if (count < least)
            go_back(&s, w, count);
        if (!s.todo.len)
            return least;
        uint64_t known = 0;
        w = s.todo.data[--s.todo.len];
        tl_map_get(&s.best, key_of(w), &known);
        count = (uint32_t)known;
        x = LLVMGetLastInstruction(w.block);
    }
}

static void count_in(Counter *c, LLVMValueRef function)
{
    TL_VEC(LLVMValueRef) waits = {0};
    LLVMBasicBlockRef b;
    c->any = false;
    c->asked = NULL;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x)) {
            Event e = event_of(c, x);
            if (e == WAIT)
                tl_vec_push(c->l->arena, &waits, x);
            if (e == COPY)
                ask(c, x);
        }
    uint32_t *pending = TL_NEW_ARRAY(c->l->arena, uint32_t, waits.len + 1);
    for (uint32_t i = 0; i < waits.len; i++) {
        LLVMValueRef n = LLVMGetOperand(waits.data[i], 1);
        TL_ASSERT(LLVMIsAConstantInt(n), "a wait for groups whose number is not known");
        pending[i] = pending_of(c, waits.data[i], (uint32_t)LLVMConstIntGetZExtValue(n));
    }
    LLVMTypeRef i32 = LLVMInt32TypeInContext(c->l->context);
    for (uint32_t i = 0; i < waits.len; i++)
        LLVMSetOperand(waits.data[i], 1, LLVMConstInt(i32, pending[i], 0));
}

void tl_amd_count_copies(TlLlvm *l)
{
    Counter c = {.l = l};
    tl_map_init(&c.leaves, l->arena);
    for (uint32_t leaf = 0; leaf < TL_LEAF_COUNT; leaf++) {
        tl_leaf_family family = tl_leaf_info((tl_leaf)leaf)->family;
        bool counts = family == TL_LEAF_FAMILY_CP_ASYNC || family == TL_LEAF_FAMILY_CP_ROW ||
                      family == TL_LEAF_FAMILY_CP_ROW_NEAR || family == TL_LEAF_FAMILY_CP_COMMIT ||
                      family == TL_LEAF_FAMILY_CP_WAIT;
        if (!counts)
            continue;
        LLVMValueRef f = LLVMGetNamedFunction(
            l->module, tl_format(l->arena, "tl.leaf.%s", tl_leaf_name((tl_leaf)leaf)));
        if (f)
            tl_map_put(&c.leaves, (uint64_t)(uintptr_t)f, leaf);
    }
    LLVMValueRef f = LLVMGetFirstFunction(l->module);
    for (; f && c.leaves.len; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            count_in(&c, f);
}

/* ---- instructions ---- */

/* The instruction for a leaf, and what it takes behind the two addresses. */
typedef struct Insn {
    const char *name;
    uint32_t args[3];
    unsigned nargs;
} Insn;

static Insn insn_of(const TlLeafCall *call)
{
    enum { ROW_BYTES = 16 };
    unsigned bytes = tl_leaf_info(call->leaf)->size;
    if (call->leaf == TL_LEAF_CP_ROW)
        return (Insn){"llvm.amdgcn.global.load.lds", {ROW_BYTES, 0, 0}, 3};
    const char *name = bytes == 16  ? "llvm.amdgcn.global.load.async.to.lds.b128"
                       : bytes == 8 ? "llvm.amdgcn.global.load.async.to.lds.b64"
                                    : "llvm.amdgcn.global.load.async.to.lds.b32";
    return (Insn){name, {0, 0}, 2};
}

static void begin_copy(TlLeafCall *call, LLVMValueRef from, LLVMValueRef to)
{
    Insn x = insn_of(call);
    LLVMValueRef args[5] = {from, to};
    for (unsigned i = 0; i < x.nargs; i++)
        args[2 + i] = tl_leaf_i32(call, x.args[i]);
    tl_leaf_intrinsic(call, x.name, NULL, 0, args, 2 + x.nargs);
}

static void begin_copy_where(TlLeafCall *call, LLVMValueRef pred, LLVMValueRef from,
                             LLVMValueRef to)
{
    Insn x = insn_of(call);
    LLVMValueRef args[3] = {from, to, pred};
    const char *name = tl_format(call->l->arena, "tl.begin.%s", tl_leaf_name(call->leaf));
    bool is_new;
    tl_leaf_helper(call, name, call->void_, args, 3, &is_new);
    if (!is_new)
        return;
    const char *given = "", *types = "";
    for (unsigned i = 0; i < x.nargs; i++) {
        given = tl_format(call->l->arena, "%s, i32 %u", given, x.args[i]);
        types = tl_format(call->l->arena, "%s, i32", types);
    }
    tl_sbuf_putf(call->prelude,
                 "define void @%s(ptr addrspace(1) %%from, ptr addrspace(3) %%to, i1 %%pred) "
                 "alwaysinline {\n"
                 "  br i1 %%pred, label %%do, label %%end\n"
                 "do:\n"
                 "  call void @%s(ptr addrspace(1) %%from, ptr addrspace(3) %%to%s)\n"
                 "  br label %%end\n"
                 "end:\n"
                 "  ret void\n"
                 "}\n"
                 "declare void @%s(ptr addrspace(1), ptr addrspace(3)%s)\n",
                 name, x.name, given, x.name, types);
}

/* site, pred, slot, offset, address, inside, hints */
void tl_amd_begin_copy(TlLeafCall *call)
{
    LLVMValueRef *x = call->args, from = x[FROM],
                 at = LLVMBuildAdd(call->b, x[OFFSET], x[SLOT], "");
    if (tl_leaf_is_false(x[PRED]))
        return;
    if (!tl_leaf_is_true(x[INSIDE]))
        from = LLVMBuildSelect(call->b, x[INSIDE], from, tl_amd_filled(call, 0), "");
    LLVMValueRef to = tl_leaf_shared(call, at);
    if (tl_leaf_is_true(x[PRED]))
        begin_copy(call, from, to);
    else
        begin_copy_where(call, x[PRED], from, to);
}

/* site, copies that may be on their way (tl_amd_count_copies) */
void tl_amd_await_copies(TlLeafCall *call)
{
    enum { OTHERS = 0x0f70, HIGH = 14 }; /* other counters at most; where vmcnt's bit 4 is */
    uint32_t n = tl_leaf_constant(call, 1);
    if (n == MOST_PENDING)
        return; /* there are never more */
    LLVMValueRef async = LLVMConstInt(call->i16, n, 0),
                 loads = tl_leaf_i32(call, OTHERS | (n & 15) | n >> 4 << HIGH);
    if (tl_amd_generation(call->l) >= 12)
        tl_leaf_intrinsic(call, "llvm.amdgcn.s.wait.asynccnt", NULL, 0, &async, 1);
    else
        tl_leaf_intrinsic(call, "llvm.amdgcn.s.waitcnt", NULL, 0, &loads, 1);
}

/* ---- two parts of LDS ---- */

typedef enum Part { COPIED, TOUCHED, NEITHER } Part;

static Part part_of(LLVMValueRef x)
{
    LLVMValueRef address = NULL;
    switch (LLVMGetInstructionOpcode(x)) {
    case LLVMLoad:
    case LLVMAtomicRMW: address = LLVMGetOperand(x, 0); break;
    case LLVMStore: address = LLVMGetOperand(x, 1); break;
    default: break;
    }
    if (address)
        return LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == 3 ? TOUCHED : NEITHER;
    return tl_llvm_is_call_of(x, "llvm.amdgcn.global.load.async.to.lds") ||
                   tl_llvm_is_call_of(x, "llvm.amdgcn.global.load.lds") ||
                   tl_llvm_is_call_of(x, "llvm.amdgcn.raw.ptr.buffer.load.lds")
               ? COPIED
           : tl_llvm_is_call_of(x, "llvm.amdgcn.ds.read.tr") ? TOUCHED
                                                             : NEITHER;
}

static LLVMMetadataRef list_of(LLVMContextRef c, const char *name, LLVMMetadataRef domain)
{
    LLVMMetadataRef x[2] = {LLVMMDStringInContext2(c, name, strlen(name)), domain};
    return LLVMMDNodeInContext2(c, x, domain ? 2 : 1);
}

static void set_part(TlLlvm *l, LLVMValueRef access, Part is)
{
    static const char *const NAMES[] = {[COPIED] = "tl.copied", [TOUCHED] = "tl.touched"};
    LLVMMetadataRef domain = list_of(l->context, "tl.shared", NULL),
                    mine = list_of(l->context, NAMES[is], domain),
                    other = list_of(l->context, NAMES[is == COPIED ? TOUCHED : COPIED], domain);
    tl_llvm_set_metadata(l, access, "alias.scope", &mine, 1);
    tl_llvm_set_metadata(l, access, "noalias", &other, 1);
}

void tl_amd_set_copies_apart(TlLlvm *l)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f)) {
        TL_VEC(LLVMValueRef) accesses = {0};
        bool any = false;
        LLVMBasicBlockRef b;
        for (b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x)) {
                any |= part_of(x) == COPIED;
                if (part_of(x) != NEITHER)
                    tl_vec_push(l->arena, &accesses, x);
            }
        for (uint32_t i = 0; any && i < accesses.len; i++)
            set_part(l, accesses.data[i], part_of(accesses.data[i]));
    }
}
