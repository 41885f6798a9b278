/* Where a loop nest needs no tests: the positions at which all that it loads and stores is inside.
 *
 * Masks cost more than the work of many kernels, and most tiles are inside as a whole. So a nest
 * along its lane dimension is split in two: from 0 to an end that is computed before it, where
 * accesses are plain, and from there on, with tests. Along the other dimensions all loads must be
 * inside as a whole; else the end is 0. A nest that stores visits only those positions at which its
 * store is inside; along the lanes it begins with the first. */
#include "codegen/cpu/cpu.h"

enum { MOST_VALUES = 400 }; /* a nest that computes more is not built twice */

static void add_value(TlCpuGen *g, TlCpuInside *in, TlValue *v, int lane);

static bool has_interval(const TlCpuAccess *a)
{
    if (!a->view)
        return false;
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->place.axes[i].kind == TL_AXIS_SLICE && !a->lo[i])
            return false;
    return true;
}

static void narrow(TlCpuGen *g, LLVMValueRef *end, LLVMValueRef by)
{
    *end = *end ? tl_gen_pick(&g->gen, LLVMIntSLT, *end, by, *end, by) : by;
}

static void add_slices(TlCpuGen *g, TlCpuInside *in, const TlOp *op, int lane)
{
    TlCpuAccess *a = tl_map_get_ptr(&g->access, op);
    TL_ASSERT(a, "%s stands in a nest before it is lowered", tl_op_info(op->opcode)->text);
    in->differs |= !has_interval(a) || a->asks || !a->bounds;
    if (!has_interval(a) || a->asks)
        return;
    tl_vec_push(g->arena, &in->accesses, a);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    if (a->ok)
        narrow(g, &in->end, LLVMBuildSelect(g->b, a->ok, tl_gen_int(&g->gen, INT32_MAX), zero, ""));
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        if (a->place.axes[i].kind != TL_AXIS_SLICE)
            continue;
        LLVMValueRef begins = LLVMBuildICmp(g->b, LLVMIntEQ, a->lo[i], zero, ""), to = a->hi[i];
        if (a->dim[i] == lane)
            in->outside = in->outside ? tl_gen_pick(&g->gen, LLVMIntSGT, in->outside, to,
                                                    in->outside, to)
                                      : to;
        if (a->dim[i] != lane) {
            LLVMValueRef width = tl_gen_int(&g->gen, a->place.axes[i].width);
            begins = LLVMBuildAnd(g->b, begins, LLVMBuildICmp(g->b, LLVMIntEQ, to, width, ""), "");
            to = tl_gen_int(&g->gen, INT32_MAX);
        }
        narrow(g, &in->end, LLVMBuildSelect(g->b, begins, to, zero, ""));
    }
}

static void add_access(TlCpuGen *g, TlCpuInside *in, const TlOp *op, int lane)
{
    TlPlace p = tl_op_place(op);
    add_slices(g, in, op, lane);
    in->differs |= !p.axes;
    if (!p.axes)
        add_value(g, in, tl_in(op, 0), lane);
    for (uint32_t i = 0; i < p.naxes; i++)
        if (p.axes[i].kind == TL_AXIS_TILE) {
            in->differs = true;
            add_value(g, in, p.index[i].value, -1);
        }
    if (p.mask)
        add_value(g, in, p.mask, lane);
    if (p.other)
        add_value(g, in, p.other, lane);
}

void tl_cpu_inside_access(TlCpuGen *g, TlCpuInside *in, const TlOp *op, int lane)
{
    add_access(g, in, op, lane);
}

void tl_cpu_inside_store(TlCpuGen *g, TlCpuInside *in, const TlOp *op, int lane)
{
    TlCpuAccess *a = tl_map_get_ptr(&g->access, op);
    TL_ASSERT(a && !in->store && op->opcode == TL_OP_STORE, "a nest has one store");
    in->store = a;
    bool skips = has_interval(a) && !a->asks && !tl_attr_flag(op, TL_ATTR_UNCHECKED);
    for (uint32_t i = 0; skips && i < a->place.naxes; i++) {
        const TlAxis *axis = &a->place.axes[i];
        if (axis->kind == TL_AXIS_SLICE && a->dim[i] == lane)
            in->last = a->hi[i];
        if (axis->kind != TL_AXIS_SLICE || a->dim[i] == lane || axis->width == 1)
            continue;
        in->box.from[a->dim[i]] = a->lo[i];
        in->box.to[a->dim[i]] = a->hi[i];
        a->lo[i] = tl_gen_int(&g->gen, 0);
        a->hi[i] = tl_gen_int(&g->gen, axis->width);
    }
    add_access(g, in, op, lane);
}

/* Adds what the op's result is computed from. `lane`: the dimension of the result along which the
 * nest's lanes are; -1: none, or any element may be needed. */
static void add_operands(TlCpuGen *g, TlCpuInside *in, const TlOp *op, int lane)
{
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    TlValue *x = op->nin ? tl_in(op, 0) : NULL;
    switch (op->opcode) {
    case TL_OP_LOAD:
    case TL_OP_INSIDE: add_access(g, in, op, lane); return;
    case TL_OP_BROADCAST:
        add_value(g, in, x, lane >= 0 && x->type->rank && x->type->shape[lane] != 1 ? lane : -1);
        return;
    case TL_OP_EXPAND:
        add_value(g, in, x, lane == axis ? -1 : lane > axis ? lane - 1 : lane);
        return;
    case TL_OP_TRANS:
        add_value(g, in, x, lane < 0 ? -1 : (int)tl_attr(op, TL_ATTR_PERM)->u.ints[lane]);
        return;
    case TL_OP_CONVERT: add_value(g, in, x, lane); return;
    default: break;
    }
    bool same = tl_op_info(op->opcode)->flags & F_ELEM;
    in->differs |= !same && op->opcode != TL_OP_CONST && lane >= 0;
    for (uint32_t i = 0; i < op->nin; i++) add_value(g, in, tl_in(op, i), same ? lane : -1);
}

static void add_value(TlCpuGen *g, TlCpuInside *in, TlValue *v, int lane)
{
    uint64_t key = (uint64_t)v->id * (TL_MAX_RANK + 1) + (uint64_t)(lane + 1);
    in->differs |= lane >= 0 && v->type->rank && g->plan->place[v->id].kind == TL_NEST_HOME;
    if (v->type->kind != TL_TILE || v->type->rank == 0 || !v->def ||
        g->plan->place[v->id].kind != TL_NEST_VIRTUAL || tl_map_get(&in->seen, key, NULL))
        return;
    tl_map_put(&in->seen, key, 1);
    if (++in->nvalues <= MOST_VALUES)
        add_operands(g, in, v->def, lane);
}

void tl_cpu_inside_begin(TlCpuGen *g, TlCpuInside *in)
{
    *in = (TlCpuInside){.nvalues = g->options->check ? MOST_VALUES + 1 : 0};
    tl_map_init(&in->seen, g->arena);
}

void tl_cpu_inside_value(TlCpuGen *g, TlCpuInside *in, TlValue *v, int lane, bool own)
{
    if (own && v->def && in->nvalues <= MOST_VALUES)
        add_operands(g, in, v->def, lane);
    else
        add_value(g, in, v, lane);
}

LLVMValueRef tl_cpu_inside_end(TlCpuGen *g, TlCpuInside *in, int64_t extent, int width)
{
    TL_ASSERT(width > 0 && (width & (width - 1)) == 0, "%d lanes", width);
    if (!in->end || in->nvalues > MOST_VALUES)
        return NULL;
    LLVMValueRef end = in->end;
    narrow(g, &end, tl_gen_int(&g->gen, extent));
    return LLVMBuildAnd(g->b, end, tl_gen_int(&g->gen, -(int64_t)width), "");
}

void tl_cpu_inside_set(TlCpuInside *in, bool whole)
{
    for (uint32_t i = 0; i < in->accesses.len; i++) in->accesses.data[i]->whole = whole;
}
