/* Vectors interleaved, and taken apart again, in registers.
 *
 *     a0 a1 a2 a3   b0 b1 b2 b3     <=>     a0 b0 a1 b1   a2 b2 a3 b3
 *
 * Of n vectors, a shuffle of two makes n - 1 for each vector. In rounds, one for each prime factor
 * of n, it is less: what a round makes of neighbours is what all vectors are made of in the next
 * one. So 4 vectors take 8 shuffles in two orders, not 12 in 12 orders, and 9 take 36, not 72. LLVM
 * merges equal rounds of vectors that are taken one by one. */
#include "codegen/cpu/cpu.h"

static LLVMValueRef lane(TlCpuGen *g, int i)
{
    return LLVMConstInt(g->i32, (unsigned)i, 0);
}

LLVMValueRef tl_cpu_interleave(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b, int w)
{
    LLVMValueRef index[2 * TL_NEST_LANES];
    if (w == 1) {
        LLVMValueRef r = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(a), 2));
        r = LLVMBuildInsertElement(g->b, r, a, lane(g, 0), "");
        return LLVMBuildInsertElement(g->b, r, b, lane(g, 1), "");
    }
    for (int i = 0; i < 2 * w; i++)
        index[i] = lane(g, i / 2 + i % 2 * w);
    LLVMValueRef mask = LLVMConstVector(index, 2 * (unsigned)w);
    return LLVMBuildShuffleVector(g->b, a, b, mask, "");
}

/* ---- taken apart ---- */

int tl_cpu_every_start(int k, int w, int last)
{
    return k * w < last ? k * w : last;
}

/* Elements first, first + n, ... of n vectors of w lanes; vector k begins start[k] elements behind
 * where it would, below 0: so many before that. */
static LLVMValueRef every_of(TlCpuGen *g, const LLVMValueRef *v, const int *start, int n, int w,
                             int first)
{
    LLVMValueRef index[TL_NEST_LANES], r = v[0], none = LLVMGetUndef(g->i32);
    for (int k = 1; k < n; k++) {
        for (int i = 0; i < w; i++) {
            int from = first + i * n, at = from - k * w - start[k], to = from - start[0];
            if (from < k * w)
                index[i] = k > 1 ? lane(g, i) : to < w ? lane(g, to) : none;
            else
                index[i] = from < (k + 1) * w && at < w ? lane(g, w + at) : none;
        }
        r = LLVMBuildShuffleVector(g->b, r, v[k], LLVMConstVector(index, (unsigned)w), "");
    }
    return r;
}

LLVMValueRef tl_cpu_every(TlCpuGen *g, const LLVMValueRef *v, int n, int w, int first, int last)
{
    TL_ASSERT(w > 1 && w <= TL_NEST_LANES && n > 1 && n <= TL_NEST_STRIDE && first < n,
              "%d lanes by %d", w, n);
    LLVMValueRef x[TL_NEST_STRIDE];
    int start[TL_NEST_STRIDE];
    for (int k = 0; k < n; k++) {
        x[k] = v[k];
        start[k] = tl_cpu_every_start(k, w, last) - k * w;
    }
    for (int p; n > 1; n /= p, first /= p) {
        p = tl_nest_zip_round(n);
        for (int k = 0; k < n / p; k++) {
            x[k] = every_of(g, &x[k * p], &start[k * p], p, w, first % p);
            start[k] = 0;
        }
    }
    return x[0];
}

/* ---- interleaved ---- */

LLVMValueRef tl_cpu_with_gaps(TlCpuGen *g, LLVMValueRef x, LLVMValueRef between, int gap, int m)
{
    LLVMValueRef index[TL_NEST_LANES];
    int w = tl_gen_width_of(x);
    for (int i = 0; i < w; i++) {
        int at = m * w + i;
        index[i] = lane(g, at % gap ? w : at / gap);
    }
    return LLVMBuildShuffleVector(g->b, x, between, LLVMConstVector(index, (unsigned)w), "");
}

/* Vector m of those that n interleaved vectors of w lanes are. */
static LLVMValueRef interleaved(TlCpuGen *g, const LLVMValueRef *v, int n, int m, int w)
{
    LLVMValueRef r = v[0], index[TL_NEST_LANES];
    for (int k = 1; k < n; k++) {
        for (int i = 0; i < w; i++) {
            int at = m * w + i, of = at % n, from = at / n;
            from = of == k ? w + from : k > 1 ? i : from;
            index[i] = of > k ? LLVMGetUndef(g->i32) : lane(g, from);
        }
        r = LLVMBuildShuffleVector(g->b, r, v[k], LLVMConstVector(index, (unsigned)w), "");
    }
    return r;
}

void tl_cpu_zip(TlCpuGen *g, LLVMValueRef *v, int n, int w)
{
    TL_ASSERT(w > 1 && n <= TL_NEST_STRIDE, "%d vectors of %d lanes", n, w);
    LLVMValueRef part[TL_NEST_STRIDE][TL_NEST_STRIDE], x[TL_NEST_STRIDE] = {v[0]};
    if (n == 1)
        return;
    int p = tl_nest_zip_round(n), m = n / p;
    for (int r = 0; r < p; r++) {
        for (int i = 0; i < m; i++)
            part[r][i] = v[r + p * i];
        tl_cpu_zip(g, part[r], m, w);
    }
    for (int i = 0; i < n; i++) {
        for (int r = 0; r < p; r++)
            x[r] = part[r][i / p];
        v[i] = interleaved(g, x, p, i % p, w);
    }
}
