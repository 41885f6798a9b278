/* What LLVM moves behind a loop, though it has more operands than results.
 *
 *     before:  a, b, c, d = ...                       before:  a, b, c, d = ...
 *     loop:    ...                             =>              x = a + b + c + d
 *     last:    store(a + b + c + d)                   loop:    ...
 *                                                     last:    store(x)
 *
 * InstCombine moves an instruction whose users are all in the block that the function ends with
 * to that block, and then its operands: "always profitable or neutral". Of a scan that a loop
 * follows, all partial results then live throughout the loop, 128 registers where 48 are enough.
 *
 *  1. What may come back: instructions of the last block that only compute, from what is there
 *     before a loop, by what comes back with it.
 *  2. Which of them do: those with which the fewest words live from before the loop to the last
 *     block, by a minimum cut; of equal choices, the one that moves the fewest. Few words less are
 *     not worth it: ptxas and LLVM find other orders themselves.
 *  3. Each stands at the end of the block where the last of its operands is. */
#include "codegen/workaround/workaround.h"
#include "passes/layout/min_cut.h"

/* MOST: instructions; a block that long is made quickly. LEAST: words that it must save. */
enum { MOST = 1 << 14, LEAST = 8 };

#define NEVER ((int64_t)1 << 40)

typedef struct Raise {
    TlArena *arena;
    TlLoops loops;
    LLVMBasicBlockRef last; /* block of the function */
    TlMap finished;         /* block to its number: of two that dominate the last, the first has the
                             * greater one */
    uint64_t last_header; /* of the header of the loop that comes last */
    TL_VEC(LLVMValueRef) moves; /* may be moved, in their order */
    TlMap place;                /* of each: its place there, and one */
    TL_VEC(LLVMValueRef) from;  /* operands of these that are not among them */
    TlMap from_place;           /* likewise */
} Raise;

static uint64_t key_of(const void *x)
{
    return (uint64_t)(uintptr_t)x;
}

static uint64_t get(const TlMap *m, const void *x)
{
    uint64_t n = 0;
    return tl_map_get(m, key_of(x), &n) ? n : 0;
}

/* ---- the order of blocks ---- */

/* Numbers from 1 on, as a depth-first walk leaves the blocks. */
static void number_blocks(Raise *r, LLVMValueRef function)
{
    typedef struct Step {
        LLVMBasicBlockRef block;
        unsigned next; /* successor */
    } Step;
    TL_VEC(Step) path = {0};
    TlMap seen;
    uint64_t n = 0;
    tl_map_init(&seen, r->arena);
    tl_map_init(&r->finished, r->arena);
    LLVMBasicBlockRef to = LLVMGetEntryBasicBlock(function);
    for (;;) {
        if (to && !get(&seen, to)) {
            tl_map_put(&seen, key_of(to), 1);
            tl_vec_push(r->arena, &path, (Step){to, 0});
        }
        if (!path.len)
            return;
        Step *s = &path.data[path.len - 1];
        LLVMValueRef end = LLVMGetBasicBlockTerminator(s->block);
        bool more = s->next < LLVMGetNumSuccessors(end);
        to = more ? LLVMGetSuccessor(end, s->next++) : NULL;
        if (more)
            continue;
        tl_map_put(&r->finished, key_of(s->block), ++n);
        path.len--;
    }
}

/* The block that the function ends with; NULL: there are several, or it is in a loop. */
static LLVMBasicBlockRef last_of(const Raise *r, LLVMValueRef function)
{
    LLVMBasicBlockRef last = NULL, b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        if (!LLVMIsAReturnInst(LLVMGetBasicBlockTerminator(b)))
            continue;
        if (last)
            return NULL;
        last = b;
    }
    return last && tl_loop_around(&r->loops, last) == TL_NO_LOOP ? last : NULL;
}

/* Of loops within loops, the walk leaves the headers before the last block, too. */
static uint64_t last_header(const Raise *r)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < r->loops.loops.len; i++) {
        const TlLoop *loop = &r->loops.loops.data[i];
        uint64_t at = get(&r->finished, loop->header);
        least = loop->outer == TL_NO_LOOP && at && at < least ? at : least;
    }
    return least;
}

/* Is it there before a loop that comes before the last block? */
static bool is_before_loop(const Raise *r, LLVMValueRef x)
{
    LLVMBasicBlockRef b = LLVMGetInstructionParent(x);
    return tl_loop_around(&r->loops, b) == TL_NO_LOOP && get(&r->finished, b) > r->last_header;
}

/* ---- 1: what may come back ---- */

static bool may_move(const Raise *r, LLVMValueRef x)
{
    if (!tl_llvm_only_computes(x))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(x); i++) {
        LLVMValueRef o = LLVMGetOperand(x, (unsigned)i);
        if (LLVMIsAInstruction(o) && !get(&r->place, o) && !is_before_loop(r, o))
            return false;
    }
    return true;
}

static void add_operands(Raise *r, LLVMValueRef x)
{
    for (int i = 0; i < LLVMGetNumOperands(x); i++) {
        LLVMValueRef o = LLVMGetOperand(x, (unsigned)i);
        if (!LLVMIsAInstruction(o) || get(&r->place, o) || get(&r->from_place, o))
            continue;
        tl_vec_push(r->arena, &r->from, o);
        tl_map_put(&r->from_place, key_of(o), r->from.len);
    }
}

static void find(Raise *r)
{
    tl_map_init(&r->place, r->arena);
    tl_map_init(&r->from_place, r->arena);
    for (LLVMValueRef x = LLVMGetFirstInstruction(r->last); x; x = LLVMGetNextInstruction(x)) {
        if (!may_move(r, x))
            continue;
        add_operands(r, x);
        tl_vec_push(r->arena, &r->moves, x);
        tl_map_put(&r->place, key_of(x), r->moves.len);
    }
}

/* ---- 2: which do ---- */

/* Does it live in a loop for the user, or up to the last block? What a phi takes, it takes from the
 * block before. */
static bool is_used_late(const Raise *r, LLVMValueRef x, LLVMValueRef user)
{
    LLVMBasicBlockRef b = LLVMGetInstructionParent(user);
    if (LLVMIsAPHINode(user) || b == LLVMGetInstructionParent(x))
        return false;
    return b == r->last || tl_loop_around(&r->loops, b) != TL_NO_LOOP;
}

/* Does it live on, whatever is moved? */
static bool lives_on(const Raise *r, LLVMValueRef x)
{
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
        if (!get(&r->place, LLVMGetUser(u)) && is_used_late(r, x, LLVMGetUser(u)))
            return true;
    return false;
}

/* What asm gives may be several values at once. */
static unsigned words_of(LLVMTypeRef t)
{
    unsigned words = 0;
    if (LLVMGetTypeKind(t) != LLVMStructTypeKind)
        return tl_amd_words_of(t);
    for (unsigned n = 0; n < LLVMCountStructElementTypes(t); n++)
        words += words_of(LLVMStructGetTypeAtIndex(t, n));
    return words;
}

static void never(TlCut *c, uint32_t before, uint32_t after)
{
    int64_t cost[2][2] = {{0, NEVER}, {0, 0}};
    tl_cut_two(c, before, after, cost);
}

/* Thing `life` is in state 1 if x lives on to the last block; it is if a user stays there. */
static void add_life(const Raise *r, TlCut *c, LLVMValueRef x, uint32_t life)
{
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u)) {
        uint64_t user = get(&r->place, LLVMGetUser(u));
        if (user)
            never(c, life, (uint32_t)user - 1);
        else if (LLVMGetInstructionParent(LLVMGetUser(u)) == r->last)
            tl_cut_one(c, life, NEVER, 0);
    }
}

/* state[i]: 1 if moves[i] stays. */
static bool *choose(const Raise *r)
{
    uint32_t n = r->moves.len, all = 2 * n + r->from.len;
    TlCut *c = tl_cut_new(r->arena, all);
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef x = r->moves.data[i];
        int64_t lives[2][2] = {{0, words_of(LLVMTypeOf(x))}, {0, 0}};
        tl_cut_two(c, i, n + i, lives);
        add_life(r, c, x, n + i);
        for (int k = 0; k < LLVMGetNumOperands(x); k++) {
            uint64_t o = get(&r->place, LLVMGetOperand(x, (unsigned)k));
            if (o)
                never(c, i, (uint32_t)o - 1);
        }
    }
    for (uint32_t i = 0; i < r->from.len; i++) {
        LLVMValueRef x = r->from.data[i];
        tl_cut_one(c, 2 * n + i, 0, lives_on(r, x) ? 0 : words_of(LLVMTypeOf(x)));
        add_life(r, c, x, 2 * n + i);
    }
    bool *stays = TL_NEW_ARRAY(r->arena, bool, all + 1);
    tl_cut_solve(c, stays);
    return stays;
}

/* Does the last block use it, if moves stay as `stays` says (NULL: all of them)? */
static bool is_needed(const Raise *r, LLVMValueRef x, const bool *stays)
{
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u)) {
        uint64_t user = get(&r->place, LLVMGetUser(u));
        if (user ? !stays || stays[user - 1] : LLVMGetInstructionParent(LLVMGetUser(u)) == r->last)
            return true;
    }
    return false;
}

/* Words that live from before a loop to the last block, but for those that do in any case. */
static int64_t live_words(const Raise *r, const bool *stays)
{
    int64_t words = 0;
    for (uint32_t i = 0; i < r->from.len; i++) {
        LLVMValueRef x = r->from.data[i];
        words += is_needed(r, x, stays) && !lives_on(r, x) ? words_of(LLVMTypeOf(x)) : 0;
    }
    for (uint32_t i = 0; stays && i < r->moves.len; i++) {
        LLVMValueRef x = r->moves.data[i];
        words += !stays[i] && is_needed(r, x, stays) ? words_of(LLVMTypeOf(x)) : 0;
    }
    return words;
}

/* ---- 3 ---- */

static LLVMBasicBlockRef home_of(const Raise *r, LLVMValueRef x, LLVMBasicBlockRef first)
{
    LLVMBasicBlockRef home = first;
    for (int i = 0; i < LLVMGetNumOperands(x); i++) {
        LLVMValueRef o = LLVMGetOperand(x, (unsigned)i);
        LLVMBasicBlockRef b = LLVMIsAInstruction(o) ? LLVMGetInstructionParent(o) : first;
        home = get(&r->finished, b) < get(&r->finished, home) ? b : home;
    }
    return home;
}

static void move(const Raise *r, LLVMBuilderRef b, LLVMValueRef x, LLVMBasicBlockRef first)
{
    LLVMBasicBlockRef home = home_of(r, x, first);
    TL_ASSERT(home != r->last, "an operand of what is moved stays");
    LLVMInstructionRemoveFromParent(x);
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(home));
    LLVMInsertIntoBuilder(b, x);
}

void tl_raise_sunk(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    Raise r = {.arena = l->arena};
    tl_loops_find(r.arena, function, &r.loops);
    r.last = last_of(&r, function);
    if (!r.loops.loops.len || !r.last)
        return;
    number_blocks(&r, function);
    r.last_header = last_header(&r);
    find(&r);
    if (!r.moves.len || r.moves.len > MOST)
        return;
    const bool *stays = choose(&r);
    if (live_words(&r, NULL) - live_words(&r, stays) < LEAST)
        return;
    for (uint32_t i = 0; i < r.moves.len; i++)
        if (!stays[i])
            move(&r, b, r.moves.data[i], LLVMGetEntryBasicBlock(function));
}
