/* place-layouts: chooses layouts so that conversions are few and cheap.
 *
 *     %x = load ... : tile<f32, 64, 64, #0>          %x = load ... : tile<f32, 64, 64, #0>
 *     %a = convert %x : tile<.., #1>                 %y = mul %x, %x : tile<f32, 64, 64, #0>
 *     %y = mul %a, %a : tile<f32, 64, 64, #1>   =>
 *     %b = convert %y : tile<.., #0>
 *     store ..., %b                                  store ..., %y
 *
 *  1. The graph (place_graph.c): converts go; each op, and each value that a loop or branch
 *     carries, is one thing that has one layout. The layouts in question are families: one op is
 *     given a layout that is good for it, and what follows from that by layout_rules.h, backward
 *     and forward, for all others that it reaches. Families come from memory ops (whose layout
 *     `coalesce` chose), dots (place_dot.c), scans, of which a thread could have neighbours, and
 *     reductions that could do without other warps.
 *  2. The choice (place_solve.c): a family for each, by cost. The cost model is layout_cost.c.
 *  3. Into effect: values get their layouts. An operand that must be laid out otherwise is the
 *     result of a convert, or is computed again in that layout when this is cheaper: constants,
 *     iota and index arithmetic nearly always, loads and reductions never. Both stand right after
 *     what they take, so one serves all users, and what comes into a loop is converted before it.
 *
 * That the bytes moved get few (above a widening cast, below a narrowing one or a reduction) and
 * that converts leave loops is nothing but cost. Last, what is not used any more is removed. */
#include "passes/layout/place_impl.h"

enum { MOST_CLONED = 64 }; /* values of a chain that is computed again: recursion */

/* ---- limits ---- */

/* Suggests what to do about a tile of too many registers. */
static const char *advice(const Placement *p, const TlType *t)
{
    enum { MOST_THREADS = 1024 }; /* of a block, on every GPU */
    int64_t now = (int64_t)1 << p->warp_bits, warps = now;
    while (tl_type_elems(t) >> p->lane_bits > warps * TL_MAX_TILE_REGISTERS)
        warps *= 2;
    if (warps == now || warps << p->lane_bits > MOST_THREADS)
        return "make the tile smaller";
    return tl_format(p->arena, "warps %lld is enough", (long long)warps);
}

/* Checks that every tile fits into the registers of a thread. */
static bool check_registers(Placement *p)
{
    for (uint32_t i = 0; i < p->values.len; i++) {
        const TlValue *v = p->values.data[i];
        int64_t registers = tl_layout_registers(v->type->layout);
        if (registers <= TL_MAX_TILE_REGISTERS)
            continue;
        TlLoc loc = v->def ? v->def->loc : v->block->parent->loc;
        const TlType *plain = tl_type_with_layout(p->ctx, v->type, NULL);
        tl_diag(&p->ctx->diags, loc, TL_E0901, tl_type_str(p->ctx, plain), (long long)registers,
                TL_MAX_TILE_REGISTERS, advice(p, plain));
        return false;
    }
    return true;
}

/* ---- into effect ---- */

static TlValue *provide(Placement *p, TlValue *v, const TlLayout *l, int depth);

static TlValue *compute_again(Placement *p, TlValue *v, const TlLayout *l, int depth)
{
    const TlOp *op = v->def;
    TlValue **in = TL_NEW_ARRAY(p->arena, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++) {
        bool ok;
        const TlLayout *want = tl_place_want(p, op, i, l, &ok);
        in[i] = want ? provide(p, tl_place_operand(p, op, i), want, depth + 1) : tl_in(op, i);
    }
    TlBuilder b = tl_builder_after(v);
    const TlType *type = tl_type_with_layout(p->ctx, v->type, l);
    TlOp *made = tl_op_like(&b, op, op->nin, in, 1, &type);
    made->out[0]->name = v->name;
    return made->out[0];
}

/* The value in layout l: itself, or one that is made once. */
static TlValue *provide(Placement *p, TlValue *v, const TlLayout *l, int depth)
{
    if (v->type->layout == l)
        return v;
    void *key = (void *)(uintptr_t)tl_place_key(v, l, 0);
    TlValue *made = tl_map_get_ptr(&p->made, key);
    if (made)
        return made;
    bool again;
    tl_place_demand(p, v, l, &again);
    if (again && depth < MOST_CLONED) {
        made = compute_again(p, v, l, depth);
    } else {
        TlBuilder b = tl_builder_after(v);
        made = tl_relayout(&b, v, l);
    }
    tl_map_put_ptr(&p->made, key, made);
    tl_map_put_ptr(&p->origin, made, v);
    return made;
}

static void fit_operands(Placement *p, TlOp *op)
{
    uint32_t var;
    bool known = tl_place_var_of_op(p, op, &var), ok;
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlLayout *want =
            known ? tl_place_want(p, op, i, tl_place_layout(p, var, p->vars.data[var].label), &ok)
                  : tl_wanted_layout(op, i);
        if (want && want != tl_in(op, i)->type->layout)
            tl_set_operand(op, i, provide(p, tl_in(op, i), want, 0));
    }
}

static void rewrite(Placement *p)
{
    for (uint32_t i = 0; i < p->values.len; i++) {
        TlValue *v = p->values.data[i];
        uint32_t var = p->var_of_value[v->id] - 1;
        tl_set_layout(v, tl_place_result(p, v, tl_place_layout(p, var, p->vars.data[var].label)));
    }
    for (uint32_t i = 0; i < p->ops.len; i++)
        fit_operands(p, p->ops.data[i]);
}

/* ---- the pass ---- */

static void measure_machine(Placement *p)
{
    const TlLayout *l = p->values.data[0]->type->layout;
    p->lane_bits = tl_layout_in_bits(l, TL_IN_LANE);
    p->warp_bits = tl_layout_in_bits(l, TL_IN_WARP);
}

TlPassResult tl_pass_place_layouts(TlFn *fn, TlPassCtx *px)
{
    if (tl_fn_level(fn) != TL_LEVEL_LAID_OUT)
        return TL_SAME;
    Placement *p = TL_NEW(px->scratch, Placement);
    p->fn = fn;
    p->ctx = px->ctx;
    TL_ASSERT(fn->body->warps > 0, "'%s' has no warps", fn->name);
    p->arena = px->scratch;
    tl_layout_cost_init(&p->cost, fn, px);
    tl_place_build(p);
    measure_machine(p);
    if (!check_registers(p))
        return TL_FAILED;
    tl_place_families(p);
    tl_place_solve(p);
    rewrite(p);
    tl_pass_dce(fn, px);
    return TL_CHANGED;
}
