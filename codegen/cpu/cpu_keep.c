/* Homes whose rows stay for the next program (nest_keep.c): which of them this one has, by a tag
 * that says whose rows they are, and how they move to the front. */
#include <stddef.h>

#include "codegen/cpu/cpu.h"

/* Of a tag, i64 each: the launch, the program in it; programs that lie before it in the home. */
enum { LAUNCH, NUMBER, WORDS, TURN = WORDS };

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
    LLVMValueRef n = programs(g, 0), at_once = tl_gen_int(&g->gen, tl_nest_at_once(g->plan, 0)),
                 most = tl_gen_int(&g->gen, k->slots * tl_nest_at_once(g->plan, 0)),
                 own = LLVMBuildUDiv(g->b, pid(g, 0), at_once, "");
    return tl_gen_pick(&g->gen, LLVMIntULE, n, most, own, zero);
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

/* So many rows further on, in bytes. */
static int64_t bytes_of_rows(const TlNest *n, int64_t rows)
{
    return rows * n->form.stride[0] * (int64_t)tl_gen_elem_bytes(&n->type);
}

/* The last rows of the home's last program to its front, whole vectors from the first one on. */
static void move_rows(TlCpuGen *g, const TlNest *n, LLVMValueRef home)
{
    LLVMTypeRef vector = tl_gen_vec(g->i8, g->m.vector_bytes);
    TlCpuLoop l;
    tl_cpu_loop_known(g, &l, 0, bytes_of_rows(n, n->keep->rows), g->m.vector_bytes, 0, NULL);
    LLVMValueRef by = tl_gen_int(&g->gen, bytes_of_rows(n, n->keep->turns * n->keep->step)),
                 further = LLVMBuildAdd(g->b, l.i, by, ""),
                 from = LLVMBuildInBoundsGEP2(g->b, g->i8, home, &further, 1, ""),
                 to = LLVMBuildInBoundsGEP2(g->b, g->i8, home, &l.i, 1, "");
    LLVMValueRef x = LLVMBuildLoad2(g->b, vector, from, "");
    LLVMSetAlignment(x, (unsigned)g->m.vector_bytes);
    LLVMSetAlignment(LLVMBuildStore(g->b, x, to), (unsigned)g->m.vector_bytes);
    tl_cpu_loop_end(g, &l, NULL);
}

/* Where this program's rows begin in the home: behind what the program before has, if `has`; else,
 * and where the home ends, at its front. */
static LLVMValueRef take_turn(TlCpuGen *g, const TlNest *n, LLVMValueRef home, LLVMValueRef tag,
                              LLVMValueRef has)
{
    const TlNestKeep *k = n->keep;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), moving = has, turn = zero,
                 at = word_at(g, tag, TURN);
    if (k->turns > 1) {
        LLVMValueRef next = LLVMBuildAdd(g->b, LLVMBuildLoad2(g->b, g->i64, at, ""),
                                         tl_gen_int(&g->gen, 1), ""),
                     fits = LLVMBuildICmp(g->b, LLVMIntULT, next,
                                          tl_gen_int(&g->gen, k->turns), "");
        turn = LLVMBuildSelect(g->b, LLVMBuildAnd(g->b, has, fits, ""), next, zero, "");
        LLVMBuildStore(g->b, turn, at);
        moving = LLVMBuildAnd(g->b, has, LLVMBuildNot(g->b, fits, ""), "");
    }
    TlCpuBranch moves = tl_cpu_branch(g, moving, true, "move", "moved");
    move_rows(g, n, home);
    tl_cpu_join(g, moves);
    LLVMValueRef step = tl_gen_int(&g->gen, bytes_of_rows(n, k->step)),
                 by = LLVMBuildMul(g->b, turn, step, "");
    return LLVMBuildInBoundsGEP2(g->b, g->i8, home, &by, 1, "");
}

void tl_cpu_keep(TlCpuGen *g, const TlNest *n)
{
    const TlNestKeep *k = n->keep;
    if (!k)
        return;
    LLVMValueRef slot = slot_of(g, k),
                 home = part_of_slot(g, g->plan->buffers.data[n->home].offset, slot, k->bytes),
                 tag = part_of_slot(g, k->tags, slot, TL_NEST_TAG_BYTES),
                 has = take_tag(g, k, tag), zero = tl_gen_int(&g->gen, 0);
    g->variable[n->home] = take_turn(g, n, home, tag, has);
    g->kept = LLVMBuildSelect(g->b, has, tl_gen_int(&g->gen, k->rows), zero, "");
}
