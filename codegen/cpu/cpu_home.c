/* Homes of tiles in scratch memory: reading and writing elements at positions, and transposing
 * blocks of vectors in registers. */
#include "codegen/cpu/cpu.h"

/* ---- homes ---- */

LLVMValueRef tl_cpu_variable(TlCpuGen *g, uint64_t bytes)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b),
                      entry = LLVMGetEntryBasicBlock(g->function);
    LLVMPositionBuilderBefore(g->b, LLVMGetFirstInstruction(entry));
    LLVMValueRef v = LLVMBuildAlloca(g->b, LLVMArrayType2(g->i8, bytes), "");
    LLVMSetAlignment(v, 64);
    LLVMPositionBuilderAtEnd(g->b, here);
    return v;
}

LLVMValueRef tl_cpu_scratch_at(TlCpuGen *g, uint64_t offset)
{
    LLVMValueRef at = tl_gen_int(&g->gen, (int64_t)offset);
    return LLVMBuildInBoundsGEP2(g->b, g->i8, g->scratch, &at, 1, "");
}

LLVMValueRef tl_cpu_home_ptr(TlCpuGen *g, int32_t buffer)
{
    TL_ASSERT(buffer >= 0, "no home");
    const TlNestBuffer *b = &g->plan->buffers.data[buffer];
    if (b->small && !g->variable[buffer])
        g->variable[buffer] = tl_cpu_variable(g, b->bytes);
    if (g->variable[buffer])
        return g->variable[buffer];
    return tl_cpu_scratch_at(g, b->offset);
}

static LLVMValueRef home_offset(TlCpuGen *g, const TlNestForm *f, const TlCpuAt *at, bool skip_lane)
{
    LLVMValueRef sum = tl_gen_int(&g->gen, 0);
    for (int d = 0; d < f->rank; d++) {
        if ((skip_lane && d == at->lane) || f->extent[d] == 1)
            continue;
        sum = LLVMBuildAdd(
            g->b, sum, LLVMBuildMul(g->b, at->idx[d], tl_gen_int(&g->gen, f->stride[d]), ""), "");
    }
    return sum;
}

static unsigned home_align(const TlType *type, int width)
{
    uint64_t bytes = tl_gen_elem_bytes(type) * (uint64_t)width;
    return bytes > 64 ? 64 : (unsigned)bytes;
}

static LLVMValueRef load_at(TlCpuGen *g, const TlType *type, LLVMValueRef base, LLVMValueRef offset,
                            int width, bool shifted)
{
    LLVMValueRef p =
        LLVMBuildInBoundsGEP2(g->b, tl_gen_mem_type(&g->gen, type), base, &offset, 1, "");
    LLVMValueRef x = LLVMBuildLoad2(g->b, tl_gen_vec(tl_gen_mem_type(&g->gen, type), width), p, "");
    LLVMSetAlignment(x, home_align(type, shifted ? 1 : width));
    return tl_gen_from_mem(&g->gen, type, x);
}

/* ---- elements apart ---- */

/* Are elements a few apart, and all lanes those of a home? Then they are lanes of as many vectors
 * side by side. */
static bool are_few_apart(const TlNestForm *f, const TlCpuAt *at)
{
    int d = at->lane;
    return f->stride[d] <= TL_NEST_STRIDE && f->extent[d] % at->width == 0 && !at->shifted &&
           at->width <= TL_NEST_LANES;
}

static LLVMValueRef load_few_apart(TlCpuGen *g, const TlType *type, LLVMValueRef base,
                                   const TlNestForm *f, TlCpuAt *at)
{
    int w = at->width, n = (int)f->stride[at->lane], last = (w - 1) * n + 1 - w;
    LLVMValueRef first = home_offset(g, f, at, false), v[TL_NEST_STRIDE];
    for (int k = 0; k < n; k++) {
        LLVMValueRef by = tl_gen_int(&g->gen, tl_cpu_every_start(k, w, last));
        v[k] = load_at(g, type, base, LLVMBuildAdd(g->b, first, by, ""), w, true);
    }
    return tl_cpu_every(g, v, n, w, 0, last);
}

/* The lanes' elements are not adjacent: one load each. Lanes in the padding of the nest read the
 * last element. */
static LLVMValueRef load_strided(TlCpuGen *g, const TlType *type, LLVMValueRef base,
                                 const TlNestForm *f, TlCpuAt *at)
{
    TL_ASSERT(at->width > 1, "%d lanes apart", at->width);
    if (are_few_apart(f, at))
        return load_few_apart(g, type, base, f, at);
    LLVMValueRef rest = home_offset(g, f, at, true);
    LLVMValueRef x = LLVMGetPoison(tl_gen_vec(tl_gen_elem_type(&g->gen, type), at->width));
    for (int i = 0; i < at->width; i++) {
        LLVMValueRef k = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, i), "");
        LLVMValueRef last = tl_gen_int(&g->gen, f->extent[at->lane] - 1);
        k = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntULT, k, last, ""), k, last, "");
        k = LLVMBuildAdd(g->b, rest,
                         LLVMBuildMul(g->b, k, tl_gen_int(&g->gen, f->stride[at->lane]), ""), "");
        x = LLVMBuildInsertElement(g->b, x, load_at(g, type, base, k, 1, false),
                                   LLVMConstInt(g->i32, (unsigned)i, 0), "");
    }
    return x;
}

LLVMValueRef tl_cpu_home_load(TlCpuGen *g, const TlType *type, LLVMValueRef base,
                              const TlNestForm *f, TlCpuAt *at)
{
    if (at->width == 1)
        return load_at(g, type, base, home_offset(g, f, at, false), 1, false);
    if (f->extent[at->lane] == 1) { /* the same element in all lanes */
        TlCpuAt one = *at;
        one.width = 1;
        return tl_gen_splat(&g->gen, load_at(g, type, base, home_offset(g, f, &one, false), 1,
                                             false),
                            at->width);
    }
    if (f->stride[at->lane] == 1)
        return load_at(g, type, base, home_offset(g, f, at, false), at->width, at->shifted);
    return load_strided(g, type, base, f, at);
}

void tl_cpu_home_store(TlCpuGen *g, const TlType *type, LLVMValueRef base, const TlNestForm *f,
                       TlCpuAt *at, LLVMValueRef x)
{
    LLVMValueRef offset = home_offset(g, f, at, false);
    LLVMValueRef p =
        LLVMBuildInBoundsGEP2(g->b, tl_gen_mem_type(&g->gen, type), base, &offset, 1, "");
    LLVMSetAlignment(LLVMBuildStore(g->b, tl_gen_to_mem(&g->gen, type, x), p),
                     home_align(type, at->shifted ? 1 : at->width));
}

void tl_cpu_own_store(TlCpuGen *g, const TlValue *v, TlCpuAt *at, LLVMValueRef x)
{
    TlNestForm f = tl_nest_form(v->type);
    tl_cpu_home_store(g, v->type, tl_cpu_home_ptr(g, g->plan->place[v->id].buffer), &f, at, x);
}

/* ---- padding ---- */

/* Along its own lane dimension a tile tells itself, along another one the nest does. */
bool tl_cpu_may_be_padding(const TlNestForm *f, const TlCpuAt *at)
{
    const TlNest *n = at->row ? at->row->nest : NULL;
    const TlNestForm *nest = n && n->form.rank ? &n->form : NULL;
    bool is_full = nest && nest->padded[nest->lane] == nest->extent[nest->lane];
    return f->extent[at->lane] != f->padded[at->lane] || (at->lane != f->lane && !is_full);
}

LLVMValueRef tl_cpu_lane_mask(TlCpuGen *g, const TlNestForm *f, const TlCpuAt *at)
{
    int d = at->lane;
    if (at->width == 1 || !tl_cpu_may_be_padding(f, at))
        return NULL;
    LLVMValueRef j = tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, at->idx[d], g->i32, ""), at->width);
    j = LLVMBuildAdd(g->b, j, tl_gen_iota(&g->gen, g->i32, at->width), "");
    LLVMValueRef n =
        tl_gen_splat(&g->gen, LLVMConstInt(g->i32, (unsigned long long)f->extent[d], 0), at->width);
    return LLVMBuildICmp(g->b, LLVMIntSLT, j, n, "");
}

LLVMValueRef tl_cpu_lane_index(TlCpuGen *g, const TlCpuAt *at, int lane, int32_t n)
{
    LLVMValueRef i = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, lane), "");
    LLVMValueRef last = tl_gen_int(&g->gen, n - 1);
    return tl_gen_pick(&g->gen, LLVMIntULT, i, last, i, last);
}

/* ---- in registers ---- */

/* Hides a row, after the first round, from what looks through shuffles: LLVM would spend a third of
 * code generation on ways to do several rounds at once, of which there are none. */
static LLVMValueRef fence(TlCpuGen *g, LLVMValueRef row, int w, bool first)
{
    LLVMTypeRef type = LLVMTypeOf(row), floats = tl_gen_vec(g->f32, w);
    bool is_word = type == floats || type == tl_gen_vec(g->i32, w);
    if (first || !is_word || w * (int)sizeof(float) != g->m.vector_bytes)
        return row;
    LLVMValueRef x = LLVMBuildBitCast(g->b, row, floats, "");
    x = tl_gen_intrinsic(&g->gen, "llvm.arithmetic.fence", &floats, 1, &x, 1);
    return LLVMBuildBitCast(g->b, x, type, "");
}

/* In round s = w/2, ..., 1, rows i and i + s exchange blocks of s lanes: the right blocks of row i
 * for the left blocks of row i + s. */
void tl_cpu_transpose(TlCpuGen *g, LLVMValueRef *rows, int w)
{
    TL_ASSERT(w > 1 && w <= TL_NEST_TRANSPOSED && (w & (w - 1)) == 0, "a block of %d rows", w);
    LLVMValueRef lo[TL_NEST_TRANSPOSED], hi[TL_NEST_TRANSPOSED];
    for (int s = w / 2; s >= 1; s /= 2) {
        for (int j = 0; j < w; j++) {
            lo[j] = LLVMConstInt(g->i32, (unsigned)(j & s ? w + j - s : j), 0);
            hi[j] = LLVMConstInt(g->i32, (unsigned)(j & s ? w + j : j + s), 0);
        }
        LLVMValueRef mlo = LLVMConstVector(lo, (unsigned)w);
        LLVMValueRef mhi = LLVMConstVector(hi, (unsigned)w);
        for (int i = 0; i < w; i++) {
            if (i & s)
                continue;
            bool first = s == w / 2;
            LLVMValueRef a = fence(g, rows[i], w, first), b = fence(g, rows[i + s], w, first);
            rows[i] = LLVMBuildShuffleVector(g->b, a, b, mlo, "");
            rows[i + s] = LLVMBuildShuffleVector(g->b, a, b, mhi, "");
        }
    }
}
