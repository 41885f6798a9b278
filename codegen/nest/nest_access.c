/* Accesses to memory, before the run: which axis of a view gives which dimension of the tile, and
 * where elements lie side by side. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

int tl_nest_slice_of(const TlPlace *p, int dim)
{
    for (uint32_t i = 0; i < p->naxes; i++)
        if (tl_place_dim(p, i) == dim)
            return p->axes[i].kind == TL_AXIS_SLICE && p->axes[i].step == 1 ? (int)i : -1;
    return -1;
}

bool tl_nest_is_dense(const TlFn *fn, const TlPlace *p, int axis)
{
    const TlOp *view = p->base->def;
    if (view && view->opcode == TL_OP_VIEW) {
        uint64_t bits;
        const TlValue *stride = tl_in(view, 1 + p->naxes + (uint32_t)axis);
        return tl_value_is_const(stride, &bits) && bits == 1;
    }
    if (!fn->info || view)
        return false;
    const TlParam *param = &fn->info->params.data[p->base->index];
    const TlDim *d = &param->stride[axis];
    bool last = axis + 1 == param->rank;
    return (d->kind == TILE_DIM_DENSE && last) || (d->kind == TILE_DIM_CONST && d->value == 1);
}
