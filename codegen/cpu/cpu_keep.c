/* Homes whose rows stay for the next program (nest_keep.c): which of them this one has, by a tag
 * that says whose rows they are, and how they move to the front. */
#include <stddef.h>

#include "codegen/cpu/cpu.h"

enum { LAUNCH, NUMBER, WORDS }; /* of a tag, i64 each: the launch, the program in it */

static LLVMValueRef word_at(TlCpuGen *g, LLVMValueRef base, int64_t i)
{
    LLVMValueRef at = tl_gen_int(&g->gen, i);
    return LLVMBuildInBoundsGEP2(g->b, g->i64, base, &at, 1, "");
}

/* As i64: how many programs there are along an axis of the grid; which one of these this is. */
static LLVMValueRef programs(TlCpuGen *g, int axis)
{
    uint64_t offset = offsetof(tile_cpu_ctx, npid) + sizeof(int32_t) * (uint64_t)axis;
    LLVMValueRef n = tl_cpu_load_word(g, g->ctx, offset, g->i32);
    return LLVMBuildZExt(g->b, n, g->i64, "");
}

static LLVMValueRef pid(TlCpuGen *g, int axis)
{
    return LLVMBuildZExt(g->b, tl_cpu_pid(g, (uint32_t)axis), g->i64, "");
}

/* The home of this program and of those before it along the axis. Where more programs run between
 * them than there are homes, all have one, which then is in the first cache. */
static LLVMValueRef slot_of(TlCpuGen *g, const TlNestKeep *k)
{
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    if (k->slots == 1)
        return zero;
    LLVMValueRef n = programs(g, 0);
    return tl_gen_pick(&g->gen, LLVMIntULE, n, tl_gen_int(&g->gen, k->slots), pid(g, 0), zero);
}

static LLVMValueRef part_of_slot(TlCpuGen *g, uint64_t offset, LLVMValueRef slot, uint64_t bytes)
{
    LLVMValueRef by = LLVMBuildMul(g->b, slot, tl_gen_int(&g->gen, (int64_t)bytes), "");
    return LLVMBuildInBoundsGEP2(g->b, g->i8, tl_cpu_scratch_at(g, offset), &by, 1, "");
}

/* The number of the program in the launch, from 1 on. */
static LLVMValueRef program_number(TlCpuGen *g)
{
    LLVMValueRef n = tl_gen_int(&g->gen, 0);
    for (int axis = TILE_MAX_GRID - 1; axis >= 0; axis--) {
        LLVMValueRef all = programs(g, axis);
        n = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, n, all, ""), pid(g, axis), "");
    }
    return LLVMBuildAdd(g->b, n, tl_gen_int(&g->gen, 1), "");
}

/* i1: is the tag that of the program before along the axis? It becomes this program's. */
static LLVMValueRef take_tag(TlCpuGen *g, const TlNestKeep *k, LLVMValueRef tag)
{
    LLVMValueRef launch = tl_cpu_load_word(g, g->ctx, offsetof(tile_cpu_ctx, launch), g->i64),
                 one = tl_gen_int(&g->gen, 1), here = pid(g, k->axis), number = program_number(g),
                 between = k->axis ? programs(g, 0) : one;
    LLVMValueRef word[WORDS] = {[LAUNCH] = launch, [NUMBER] = number},
                 want[WORDS] = {[LAUNCH] = launch,
                                [NUMBER] = LLVMBuildSub(g->b, number, between, "")};
    LLVMValueRef first = LLVMBuildSub(g->b, here, one, ""), /* wraps where there is none before */
        is = LLVMBuildICmp(g->b, LLVMIntULT, first, tl_gen_int(&g->gen, k->most - 1), "");
    for (int i = 0; i < WORDS; i++) {
        LLVMValueRef at = word_at(g, tag, i), was = LLVMBuildLoad2(g->b, g->i64, at, "");
        is = LLVMBuildAnd(g->b, is, LLVMBuildICmp(g->b, LLVMIntEQ, was, want[i], ""), "");
        LLVMBuildStore(g->b, word[i], at);
    }
    return is;
}

/* The last rows of the home to its front, whole vectors from the first one on. */
static void move_rows(TlCpuGen *g, const TlNest *n, LLVMValueRef home)
{
    int64_t row = n->form.stride[0] * (int64_t)tl_gen_elem_bytes(&n->type);
    LLVMTypeRef vector = tl_gen_vec(g->i8, g->m.vector_bytes);
    TlCpuLoop l;
    tl_cpu_loop_known(g, &l, 0, n->keep->rows * row, g->m.vector_bytes, 0, NULL);
    LLVMValueRef further = LLVMBuildAdd(g->b, l.i, tl_gen_int(&g->gen, n->keep->step * row), ""),
                 from = LLVMBuildInBoundsGEP2(g->b, g->i8, home, &further, 1, ""),
                 to = LLVMBuildInBoundsGEP2(g->b, g->i8, home, &l.i, 1, "");
    LLVMValueRef x = LLVMBuildLoad2(g->b, vector, from, "");
    LLVMSetAlignment(x, (unsigned)g->m.vector_bytes);
    LLVMSetAlignment(LLVMBuildStore(g->b, x, to), (unsigned)g->m.vector_bytes);
    tl_cpu_loop_end(g, &l, NULL);
}

void tl_cpu_keep(TlCpuGen *g, const TlNest *n)
{
    const TlNestKeep *k = n->keep;
    if (!k)
        return;
    LLVMValueRef slot = slot_of(g, k);
    LLVMValueRef home = part_of_slot(g, g->plan->buffers.data[n->home].offset, slot, k->bytes);
    g->variable[n->home] = home;
    LLVMValueRef has = take_tag(g, k, part_of_slot(g, k->tags, slot, TL_NEST_TAG_BYTES));
    TlCpuBranch moves = tl_cpu_branch(g, has, true, "move", "moved");
    move_rows(g, n, home);
    g->kept = tl_cpu_join_value(g, moves, tl_gen_int(&g->gen, k->rows), tl_gen_int(&g->gen, 0));
}
