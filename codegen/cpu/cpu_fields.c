/* Gathers of what lies side by side: the fields of rows that an index tile lists.
 *
 *     at(box, k, 0)   at(box, k, 1)   at(box, k, 2)
 *
 * Each lane's row is one load of four words, for all fields together, and the rows are transposed
 * in registers: a third of the loads, and no lane is put into its vector by itself. */
#include "codegen/cpu/cpu.h"

enum { ROW = TL_NEST_FIELDS }; /* words that are loaded at a time */

static LLVMValueRef shuffle(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b, const int *lane, int n)
{
    LLVMValueRef mask[TL_NEST_LANES];
    for (int i = 0; i < n; i++)
        mask[i] = LLVMConstInt(g->i32, (unsigned)lane[i], 0);
    return LLVMBuildShuffleVector(g->b, a, b, LLVMConstVector(mask, (unsigned)n), "");
}

/* The fields of one row, from p on; behind the last one is what nobody asks for. */
static LLVMValueRef load_row(TlCpuGen *g, LLVMTypeRef word, LLVMValueRef p, int fields)
{
    LLVMTypeRef row = tl_gen_vec(word, ROW);
    if (fields == ROW) {
        LLVMValueRef x = LLVMBuildLoad2(g->b, row, p, "");
        LLVMSetAlignment(x, 4);
        return x;
    }
    LLVMValueRef is[ROW];
    for (int i = 0; i < ROW; i++)
        is[i] = LLVMConstInt(g->i1, i < fields, 0);
    return tl_llvm_masked(g->gen.l, g->b, TL_MASKED_LOAD, p, 4, LLVMConstVector(is, ROW),
                          LLVMConstNull(row));
}

/* One vector of n rows. */
static LLVMValueRef join(TlCpuGen *g, const LLVMValueRef *rows, int n, int step)
{
    int lane[TL_NEST_LANES];
    if (n == 1)
        return rows[0];
    for (int i = 0; i < n * ROW; i++)
        lane[i] = i;
    return shuffle(g, join(g, rows, n / 2, step), join(g, rows + n / 2 * step, n / 2, step), lane,
                   n * ROW);
}

/* Of each four words of a and b, numbers `from` and `from + 1`, those of a and b in turn; or by
 * pairs. */
static LLVMValueRef zip(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b, int from, bool pairs, int w)
{
    int lane[TL_NEST_LANES];
    for (int i = 0; i < w; i += ROW)
        for (int k = 0; k < ROW; k++)
            lane[i + k] = i + from + (pairs ? k % 2 : k / 2) + ((pairs ? k / 2 : k % 2) ? w : 0);
    return shuffle(g, a, b, lane, w);
}

/* Field number `field` of w rows. Vector i has rows i, i + 4, ... */
static LLVMValueRef transposed(TlCpuGen *g, const LLVMValueRef *rows, int field, int w)
{
    LLVMValueRef v[ROW];
    for (int i = 0; i < ROW; i++)
        v[i] = join(g, rows + i, w / ROW, ROW);
    int half = field & 2;
    LLVMValueRef a = zip(g, v[0], v[1], half, false, w), b = zip(g, v[2], v[3], half, false, w);
    return zip(g, a, b, 2 * (field & 1), true, w);
}

LLVMValueRef tl_cpu_load_field(TlCpuGen *g, const TlType *elem, TlNestFields f, LLVMValueRef first,
                               LLVMValueRef lanes, int width)
{
    TL_ASSERT(width % ROW == 0 && f.n <= ROW && f.own < f.n, "field %d of %d in %d lanes", f.own,
              f.n, width);
    LLVMTypeRef word = tl_gen_mem_type(&g->gen, elem);
    LLVMValueRef rows[TL_NEST_LANES];
    for (int k = 0; k < width; k++) {
        LLVMValueRef by =
            LLVMBuildExtractElement(g->b, lanes, LLVMConstInt(g->i32, (unsigned)k, 0), "");
        rows[k] = load_row(g, word, tl_gen_address(&g->gen, elem->dtype, first, by), f.n);
    }
    return tl_gen_from_mem(&g->gen, elem, transposed(g, rows, f.own, width));
}
