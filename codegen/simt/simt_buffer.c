/* Accesses of a view by a base that the whole block shares and 32-bit offsets (leaves LDB, STB),
 * if the target has them and the tile is small enough.
 *
 * The base is the tile's first element. The hardware tests bounds that one number can express: if
 * only one axis of the tile is not scalar, this number is how many bytes of the view are left from
 * the tile's start, or 0 if a scalar index is outside. Other tests and masks form the predicate.
 * What registers add to the thread's offset is then the same for all threads, and is kept apart.
 *
 * A resource has 48 bits for the base, and others above them: the leaf is told where it fits. */
#include "codegen/simt/simt_access.h"
#include "passes/analysis/facts.h"

/* ---- records ---- */

/* The axis that is not scalar, where bytes from the base say what is inside; -1: there is none. */
static int ruled_axis(const TlSimtAccess *a, int64_t *out_pitch)
{
    int axis = -1;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        if (a->place.axes[i].kind == TL_AXIS_SCALAR)
            continue;
        if (axis >= 0)
            return -1;
        axis = (int)i;
    }
    if (axis < 0 || !a->bounds || a->sure >> axis & 1 || !a->left[axis] ||
        !LLVMIsAConstantInt(a->view->stride[axis]))
        return -1;
    const TlAxis *slice = &a->place.axes[axis];
    int64_t pitch = LLVMConstIntGetSExtValue(a->view->stride[axis]) *
                    (int64_t)tl_gen_elem_bytes(&a->elem);
    *out_pitch = pitch;
    bool fits = pitch > 0 && slice->step > 0 &&
                (TlWideInt)slice->width * slice->step * pitch <= (TlWideInt)TL_RECORDS_ALL;
    return fits ? axis : -1;
}

/* x, at most `most`, and at least 0 if it may be less. Not as the minimum of a maximum: of those
 * LLVM makes an instruction of vector registers on AMD, whatever its operands are. */
static LLVMValueRef between(TlSimt *g, LLVMValueRef x, uint32_t most, bool is_natural)
{
    LLVMValueRef zero = tl_simt_i32(g, 0), end = tl_simt_i32(g, most);
    LLVMValueRef small = LLVMBuildICmp(g->b, LLVMIntULT, x, end, "");
    LLVMValueRef low = LLVMBuildSelect(g->b, small, x, end, "");
    return is_natural
               ? low
               : LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSGT, x, zero, ""), low, zero, "");
}

static void find_records(TlSimt *g, TlSimtAccess *a)
{
    int64_t pitch = 0;
    int axis = ruled_axis(a, &pitch);
    a->records = tl_simt_i32(g, TL_RECORDS_ALL);
    if (axis >= 0) {
        const TlAxis *slice = &a->place.axes[axis];
        const TlValue *start = a->place.index[axis].value;
        LLVMValueRef left = between(g, a->left[axis], (uint32_t)(slice->width * slice->step),
                                    tl_axis_starts_inside(g->axis, start, a->place.base,
                                                          (uint32_t)axis));
        a->records = LLVMBuildMul(g->b, left, tl_simt_i32(g, (uint32_t)pitch), "");
        a->sure |= 1u << axis;
    }
    if (a->uniform_ok)
        a->records = LLVMBuildSelect(g->b, a->uniform_ok, a->records, tl_simt_i32(g, 0), "");
    a->uniform_ok = NULL;
}

static LLVMValueRef hints_of(TlSimt *g, const TlSimtAccess *a)
{
    LLVMValueRef low = tl_simt_i32(g, a->is_low ? TL_HINT_LOW_BASE : 0);
    return LLVMBuildOr(g->b, tl_simt_access_hints(g, a->op), low, "");
}

/* False: it has none. */
static bool find_base(TlSimt *g, TlSimtAccess *a)
{
    if (g->options->check || !a->view || !a->layout || !a->is_near)
        return false;
    a->base = a->uniform;
    if (a->moved)
        a->base = LLVMBuildGEP2(g->b, g->i8, a->base, &a->moved, 1, "");
    return true;
}

bool tl_simt_buffer_inside(TlSimt *g, TlSimtAccess *a)
{
    a->records = tl_simt_i32(g, TL_RECORDS_ALL);
    a->is_low = !a->moved && tl_access_info(g->axis, a->op).low_base;
    return find_base(g, a);
}

void tl_simt_buffer_begin(TlSimt *g, TlSimtAccess *a)
{
    uint32_t fill;
    if (!(g->options->target->can & TL_CAN_BUFFER) || !find_base(g, a))
        return;
    if (tl_simt_access_fill(a, &fill)) {
        a->is_low = !a->moved && tl_access_info(g->axis, a->op).low_base;
        find_records(g, a);
    } else { /* the predicate selects what is loaded */
        a->records = tl_simt_i32(g, TL_RECORDS_ALL);
    }
}

/* ---- offsets ---- */

static LLVMValueRef add_to(TlSimt *g, LLVMValueRef sum, LLVMValueRef x)
{
    return LLVMBuildAdd(g->b, sum, x, "");
}

/* Bytes from the base: those that differ between threads, and the others. */
static void offset_of(TlSimt *g, const TlSimtAccess *a, int64_t r, LLVMValueRef *out_far,
                      LLVMValueRef *out_offset)
{
    LLVMValueRef far = tl_simt_i32(g, 0), offset = tl_simt_i32(g, 0),
                 bytes = tl_simt_i32(g, (uint32_t)tl_gen_elem_bytes(&a->elem));
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        if (a->place.axes[i].kind != TL_AXIS_SLICE)
            continue;
        TlSimtCoord c = tl_simt_split_coord(g, a->layout, r, a->dim[i]);
        LLVMValueRef pitch = LLVMBuildTrunc(g->b, a->stride[i], g->i32, "");
        pitch = LLVMBuildMul(g->b, pitch, bytes, "");
        offset = add_to(g, offset, LLVMBuildMul(g->b, c.thread, pitch, ""));
        far = add_to(g, far,
                     LLVMBuildMul(g->b, tl_simt_i32(g, (uint32_t)c.constant), pitch, ""));
    }
    bool tested = a->records != tl_simt_i32(g, TL_RECORDS_ALL);
    *out_offset = tested ? add_to(g, offset, far) : offset;
    *out_far = tested ? tl_simt_i32(g, 0) : far;
}

void tl_simt_buffer_operands(TlSimt *g, const TlSimtAccess *a, int64_t r, LLVMValueRef pred,
                             LLVMValueRef x, LLVMValueRef out[TL_BUFFER_OPERANDS])
{
    TL_ASSERT(a->base && a->records, "an access by addresses");
    out[0] = a->base;
    out[1] = tl_simt_pred_or_true(g, pred);
    out[2] = hints_of(g, a);
    out[3] = x;
    out[4] = a->records;
    offset_of(g, a, r, &out[5], &out[6]);
}
