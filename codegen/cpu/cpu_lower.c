/* Tile IR and its loop nests to LLVM IR for the host: kernels, parameters, control flow, and which
 * op is lowered where.
 *
 * Ops are lowered in program order. A tile op whose value is virtual emits nothing here (the nest
 * that needs it will ask for it); one with a home has a nest that fills it. Loop-carried scalars
 * are phis; loop-carried tiles stay in their homes, and nests at the end of each iteration move
 * what was not computed in place. */
#include <stddef.h>
#include <string.h>

#include "codegen/cpu/cpu.h"
#include "codegen/target/host_code.h"
#include "codegen/workaround/workaround.h"
#include "passes/analysis/facts.h"

/* ---- nests ---- */

/* The op's nests, from number n on, that fill homes. Returns the number of the next one. */
static uint32_t fill_homes(TlCpuGen *g, const TlOp *op, uint32_t n)
{
    for (const TlNest *x; (x = tl_nest_of(g->plan, op, n)) != NULL; n++) {
        if (x->kind != TL_NEST_FILL && x->kind != TL_NEST_TRANSPOSE && x->kind != TL_NEST_COPY)
            break;
        if (!x->if_idle)
            tl_cpu_fill(g, x);
    }
    return n;
}

/* Scalars that an op gives, its operands from number `first` on: what phis have from that block. */
static void add_scalars(TlCpuGen *g, TlOp *op, uint32_t first, uint32_t n, LLVMValueRef *phis,
                        LLVMBasicBlockRef from)
{
    TL_ASSERT(first + n <= op->nin, "%s gives %u values of %u", tl_op_info(op->opcode)->text, n,
              op->nin);
    for (uint32_t i = 0; i < n; i++) {
        if (!phis[i])
            continue;
        LLVMValueRef x = tl_gen_scalar(&g->gen, tl_in(op, first + i));
        LLVMAddIncoming(phis[i], &x, &from, 1);
    }
}

static LLVMValueRef *scalar_phis(TlCpuGen *g, uint32_t n, TlValue *const *values)
{
    LLVMValueRef *phis = TL_NEW_ARRAY(g->arena, LLVMValueRef, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (values[i]->type->rank)
            continue;
        TL_ASSERT(values[i]->type->kind == TL_TILE, "a view carried by a region");
        phis[i] = LLVMBuildPhi(g->b, tl_gen_elem_type(&g->gen, values[i]->type), "");
        g->scalar[values[i]->id] = phis[i];
    }
    return phis;
}

static void lower_op(TlCpuGen *g, TlOp *op);

/* ---- programs of which all is inside ---- */

/* The ops of the block that asks but the last one: those that are computed before any tile, or the
 * others. */
static void lower_part(TlCpuGen *g, bool early)
{
    const TlBlock *body = g->plan->asked_in;
    for (TlOp *op = body->first; op != body->last; op = op->next) {
        tl_gen_set_loc(&g->gen, op->loc);
        if ((op->nout == 1 && g->plan->early[op->out[0]->id]) == early)
            lower_op(g, op);
    }
}

static void lower_all(TlCpuGen *g)
{
    lower_part(g, true);
    lower_part(g, false);
}

/* Where programs of which everything is inside have code of their own. What is tested is a function
 * if the program would be long: it should not keep the loop over programs from computing before it
 * what is equal in all of them. */
static void lower_twice(TlCpuGen *g)
{
    lower_part(g, true);
    TlCpuWhole is = tl_cpu_ask_whole(g);
    TlCpuFork f = tl_cpu_fork(g, tl_cpu_may_frame(g, &is));
    TlGenView **views = tl_cpu_enter_frames(g, &is);
    unsigned from = tl_cpu_length(g);
    g->whole = true;
    lower_part(g, false);
    g->whole = false;
    tl_cpu_leave_frames(g, views);
    /* of rows that may lie apart, tests would occupy the registers that addresses need */
    bool is_long = (g->plan->rows_apart || tl_cpu_would_be_long(g, from)) && !g->l->di &&
                   g->plan->asked_in == g->fn->body;
    tl_cpu_fork_else(g, &f, NULL);
    if (is_long)
        tl_cpu_call_part(g, "tested", lower_all);
    else
        lower_part(g, false);
    tl_cpu_fork_end(g, &f, NULL);
    lower_op(g, g->plan->asked_in->last);
}

static void lower_body(TlCpuGen *g, TlBlock *body)
{
    if (g->plan->whole && g->plan->asked_in == body)
        lower_twice(g);
    else
        tl_cpu_lower_block(g, body, NULL);
}

/* ---- control flow ---- */

/* Whether there are iterations is asked before: a test of both in each iteration would be two. */
static void lower_for(TlCpuGen *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_FOR && op->nregions == 1 && op->nin == op->nout + 3,
              "for of %u operands, %u results", op->nin, op->nout);
    TlBlock *body = op->regions[0];
    LLVMValueRef lo = tl_gen_scalar(&g->gen, tl_in(op, 0)),
                 step = tl_gen_scalar(&g->gen, tl_in(op, 2));
    LLVMValueRef some,
        n = tl_gen_trips(&g->gen, op, lo, tl_gen_scalar(&g->gen, tl_in(op, 1)), step, &some);
    const TlNest *product = tl_nest_of(g->plan, op, fill_homes(g, op, 0));
    if (product) {
        if (product->begins_at_zero) {
            TlCpuBranch idle = tl_cpu_branch(g, some, false, "idle", "begins");
            tl_cpu_fill(g, tl_nest_of(g->plan, op, 0));
            tl_cpu_join(g, idle);
        }
        n = LLVMBuildSelect(g->b, some, n, tl_gen_int(&g->gen, 0), "");
        tl_cpu_product(g, product, lo, step, n);
        return;
    }
    uint32_t marks = g->marks.len;
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(g->b), head = tl_gen_block(&g->gen, "for"),
                      inside = tl_gen_block(&g->gen, "body"), exit = tl_gen_block(&g->gen, "end");
    LLVMBuildCondBr(g->b, some, head, exit);
    LLVMPositionBuilderAtEnd(g->b, head);
    LLVMValueRef i = LLVMBuildPhi(g->b, g->i64, "trip"), zero = tl_gen_int(&g->gen, 0);
    LLVMAddIncoming(i, &zero, &entry, 1);
    LLVMValueRef *phis = scalar_phis(g, op->nout, body->args + 1);
    add_scalars(g, op, 3, op->nout, phis, entry);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, i, n, ""), inside, exit);
    LLVMPositionBuilderAtEnd(g->b, inside);
    LLVMValueRef k = LLVMBuildIntCast2(g->b, i, LLVMTypeOf(lo), 0, "");
    g->scalar[body->args[0]->id] = LLVMBuildAdd(g->b, lo, LLVMBuildMul(g->b, k, step, ""), "");
    lower_body(g, body);
    fill_homes(g, body->last, 0);
    LLVMValueRef next = LLVMBuildAdd(g->b, i, tl_gen_int(&g->gen, 1), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    add_scalars(g, body->last, 0, op->nout, phis, latch);
    LLVMAddIncoming(i, &next, &latch, 1);
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, exit);
    g->marks.len = marks;
    LLVMValueRef *out = scalar_phis(g, op->nout, op->out);
    add_scalars(g, op, 3, op->nout, out, entry);
    for (uint32_t m = 0; m < op->nout; m++)
        if (out[m])
            LLVMAddIncoming(out[m], &phis[m], &head, 1);
}

static void lower_while(TlCpuGen *g, TlOp *op)
{
    TlBlock *before = op->regions[0], *after = op->regions[1];
    fill_homes(g, op, 0);
    uint32_t marks = g->marks.len;
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(g->b), head = tl_gen_block(&g->gen, "while"),
                      inside = tl_gen_block(&g->gen, "body"), exit = tl_gen_block(&g->gen, "end");
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, head);
    LLVMValueRef *phis = scalar_phis(g, before->nargs, before->args);
    add_scalars(g, op, 0, before->nargs, phis, entry);
    tl_cpu_lower_block(g, before, NULL);
    fill_homes(g, before->last, 0);
    for (uint32_t m = 0; m < op->nout; m++) {
        if (op->out[m]->type->rank)
            continue;
        LLVMValueRef x = tl_gen_scalar(&g->gen, tl_in(before->last, m + 1));
        g->scalar[op->out[m]->id] = g->scalar[after->args[m]->id] = x;
    }
    LLVMBuildCondBr(g->b, tl_gen_scalar(&g->gen, tl_in(before->last, 0)), inside, exit);
    LLVMPositionBuilderAtEnd(g->b, inside);
    tl_cpu_lower_block(g, after, NULL);
    fill_homes(g, after->last, 0);
    add_scalars(g, after->last, 0, before->nargs, phis, LLVMGetInsertBlock(g->b));
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, exit);
    g->marks.len = marks;
}

static void lower_if(TlCpuGen *g, TlOp *op)
{
    LLVMBasicBlockRef arms[2] = {tl_gen_block(&g->gen, "then"), tl_gen_block(&g->gen, "else")},
                      join = tl_gen_block(&g->gen, "join");
    LLVMBuildCondBr(g->b, tl_gen_scalar(&g->gen, tl_in(op, 0)), arms[0], arms[1]);
    LLVMPositionBuilderAtEnd(g->b, join);
    LLVMValueRef *phis = scalar_phis(g, op->nout, op->out);
    for (int r = 0; r < 2; r++) {
        TlBlock *b = op->regions[r];
        uint32_t marks = g->marks.len;
        LLVMPositionBuilderAtEnd(g->b, arms[r]);
        tl_cpu_lower_block(g, b, NULL);
        fill_homes(g, b->last, 0);
        add_scalars(g, b->last, 0, op->nout, phis, LLVMGetInsertBlock(g->b));
        LLVMBuildBr(g->b, join);
        g->marks.len = marks;
    }
    LLVMPositionBuilderAtEnd(g->b, join);
}

/* ---- debugging ---- */

typedef struct Dense {
    TlValue *v;
    LLVMValueRef base;
} Dense;

static void dense_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    Dense *d = user;
    LLVMValueRef n = tl_gen_int(&g->gen, 0);
    for (int k = 0; k < at->rank; k++)
        n = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, n, tl_gen_int(&g->gen, d->v->type->shape[k]), ""),
                         at->idx[k], "");
    LLVMValueRef p =
        LLVMBuildInBoundsGEP2(g->b, tl_gen_mem_type(&g->gen, d->v->type), d->base, &n, 1, "");
    LLVMBuildStore(g->b, tl_gen_to_mem(&g->gen, d->v->type, tl_cpu_eval(g, d->v, at)), p);
}

static void lower_print(TlCpuGen *g, TlOp *op)
{
    const TlNest *n = tl_nest_of(g->plan, op, 0);
    TlValue *v = n->value;
    Dense d = {.v = v};
    if (v->type->rank) {
        d.base = tl_cpu_home_ptr(g, n->home);
    } else {
        LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b),
                          first = LLVMGetEntryBasicBlock(g->function);
        LLVMPositionBuilderBefore(g->b, LLVMGetFirstInstruction(first));
        d.base = LLVMBuildAlloca(g->b, g->i64, "");
        LLVMPositionBuilderAtEnd(g->b, here);
    }
    tl_cpu_nest(g, n, dense_body, &d);
    LLVMTypeRef array = LLVMArrayType2(g->i32, TL_MAX_RANK);
    LLVMValueRef global = LLVMAddGlobal(g->l->module, array, "shape");
    LLVMValueRef all[TL_MAX_RANK];
    for (int i = 0; i < TL_MAX_RANK; i++)
        all[i] = LLVMConstInt(g->i32, i < v->type->rank ? (unsigned)v->type->shape[i] : 0, 0);
    LLVMSetInitializer(global, LLVMConstArray2(g->i32, all, TL_MAX_RANK));
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(global, 1);
    LLVMTypeRef params[6] = {g->ptr, g->ptr, g->ptr, g->i32, g->i32, g->ptr};
    LLVMValueRef args[6] = {g->ctx,
                            LLVMBuildGlobalStringPtr(g->b, tl_attr(op, TL_ATTR_TEXT)->u.s, "text"),
                            d.base,
                            LLVMConstInt(g->i32, (unsigned)v->type->dtype, 0),
                            LLVMConstInt(g->i32, v->type->rank, 0),
                            global};
    tl_cpu_service(g, TL_CPU_SERVICE(print), LLVMFunctionType(g->void_, params, 6, 0), args, 6);
}

static void assert_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    TlOp *op = user;
    const TlAttr *text = tl_attr(op, TL_ATTR_TEXT);
    LLVMValueRef c = tl_cpu_eval(g, tl_in(op, 0), at);
    tl_cpu_fail(g, LLVMBuildNot(g->b, c, ""), op->opcode == TL_OP_ASSERT ? 0 : 2, op->loc,
                text ? text->u.s : "");
}

/* ---- ops ---- */

/* The value of a scalar; of a tile, what fills its home. */
static void lower_pure(TlCpuGen *g, TlOp *op)
{
    TlValue *v = op->out[0];
    if (v->type->rank == 0) {
        TlCpuAt at;
        tl_cpu_at_init(g, &at, 0, 0, 1);
        g->scalar[v->id] = tl_cpu_eval_own(g, v, &at);
        return;
    }
    const TlNest *n = tl_nest_of(g->plan, op, 0);
    if (n && n->kind == TL_NEST_REDUCE)
        tl_cpu_reduce(g, n);
    else
        fill_homes(g, op, 0);
}

/* Its nest is that of what it reduces where it is done on the way. */
static void lower_reduce(TlCpuGen *g, TlOp *op)
{
    const TlNest *n = tl_nest_of(g->plan, op, 0);
    if (n)
        (n->kind == TL_NEST_REDUCE ? tl_cpu_reduce : tl_cpu_fill)(g, n);
}

static void lower_dot(TlCpuGen *g, TlOp *op)
{
    uint32_t n = fill_homes(g, op, 0);
    const TlNest *dot = tl_nest_of(g->plan, op, n);
    (dot->product ? tl_cpu_lone_product : tl_cpu_dot)(g, dot);
    fill_homes(g, op, n + 1);
}

/* The ops that can be computed at a position; the results of all others have homes. */
static LLVMValueRef (*const EVALUATORS[TL_OP_COUNT])(TlCpuGen *g, TlOp *op, TlCpuAt *at) = {
    [TL_OP_CONST] = tl_cpu_eval_const,         [TL_OP_IOTA] = tl_cpu_eval_iota,
    [TL_OP_BROADCAST] = tl_cpu_eval_broadcast, [TL_OP_EXPAND] = tl_cpu_eval_expand,
    [TL_OP_TRANS] = tl_cpu_eval_trans,         [TL_OP_CONVERT] = tl_cpu_eval_convert,
    [TL_OP_RESHAPE] = tl_cpu_eval_reshape,     [TL_OP_REGROUP] = tl_cpu_eval_reshape,
    [TL_OP_GATHER] = tl_cpu_eval_gather,       [TL_OP_LOAD] = tl_cpu_eval_load,
    [TL_OP_INSIDE] = tl_cpu_eval_inside,       [TL_OP_REDUCE] = tl_cpu_eval_reduce,
#define OP(...)
#define ELEM(ID, ...) [TL_OP_##ID] = tl_cpu_eval_elements,
#include "ir/ops.def"
};

/* The value of an op at a position. */
static LLVMValueRef eval_op(TlCpuGen *g, TlValue *v, TlCpuAt *at)
{
    TlOpcode opcode = v->def->opcode;
    TL_ASSERT(EVALUATORS[opcode], "cannot evaluate %s at a position", tl_op_info(opcode)->text);
    if (g->plan->place[v->id].way == TL_NEST_ADDS_QUADS)
        return tl_cpu_eval_added_quads(g, v->def, at);
    if (g->plan->place[v->id].way == TL_NEST_LOADS_WORDS)
        return tl_cpu_eval_words(g, v->def, at);
    return EVALUATORS[opcode](g, v->def, at);
}

static void lower_op(TlCpuGen *g, TlOp *op)
{
    const TlNest *n = tl_nest_of(g->plan, op, 0);
    uint32_t axis = (uint32_t)tl_attr_int(op, TL_ATTR_AXIS, 0);
    switch (op->opcode) {
    case TL_OP_FOR: lower_for(g, op); return;
    case TL_OP_WHILE: lower_while(g, op); return;
    case TL_OP_IF: lower_if(g, op); return;
    case TL_OP_YIELD:
    case TL_OP_CONDITION:
    case TL_OP_BARRIER: return;
    case TL_OP_RETURN: tl_cpu_end_kernel(g); return;
    case TL_OP_PID: g->scalar[op->out[0]->id] = tl_cpu_pid(g, axis); return;
    case TL_OP_NPID:
        g->scalar[op->out[0]->id] =
            tl_cpu_load_word(g, g->ctx, offsetof(tile_cpu_ctx, npid) + 4 * axis, g->i32);
        return;
    case TL_OP_REDUCE: lower_reduce(g, op); return;
    case TL_OP_SCAN: tl_cpu_reduce(g, n); return;
    case TL_OP_DOT: lower_dot(g, op); return;
    case TL_OP_HISTOGRAM: tl_cpu_histogram(g, n, tl_nest_of(g->plan, op, 1)); return;
    case TL_OP_VIEW:
    case TL_OP_SUB_VIEW: tl_gen_lower_view(&g->gen, op); return;
    case TL_OP_EXTENT:
    case TL_OP_STRIDE:
    case TL_OP_VIEW_PTR: g->scalar[op->out[0]->id] = tl_gen_of_view(&g->gen, op); return;
    case TL_OP_LOAD:
    case TL_OP_INSIDE:
        tl_cpu_prepare_access(g, op);
        lower_pure(g, op);
        return;
    case TL_OP_STORE:
        if (n)
            tl_cpu_store(g, n);
        else
            tl_cpu_prepare_access(g, op); /* a later one stores it, too */
        return;
    case TL_OP_ATOMIC_RMW:
    case TL_OP_ATOMIC_CAS:
    case TL_OP_ATOMIC_LOAD:
    case TL_OP_ATOMIC_STORE: tl_cpu_atomic(g, n); return;
    case TL_OP_PRINT: lower_print(g, op); return;
    case TL_OP_ASSUME:
        if (!g->options->check)
            return;
        /* fall through */
    case TL_OP_ASSERT: tl_cpu_nest(g, n, assert_body, op); return;
    case TL_OP_CONST:
    case TL_OP_IOTA:
    case TL_OP_BROADCAST:
    case TL_OP_EXPAND:
    case TL_OP_RESHAPE:
    case TL_OP_REGROUP:
    case TL_OP_TRANS:
    case TL_OP_GATHER:
    case TL_OP_CONVERT:
#define OP(...)
#define ELEM(ID, ...) case TL_OP_##ID:
#include "ir/ops.def"
        lower_pure(g, op);
        return;
    case TL_OP_ALLOC: /* not in the CPU's pipelines */
    case TL_OP_PUT:
    case TL_OP_GET:
    case TL_OP_READ:
    case TL_OP_COPY:
    case TL_OP_COMMIT:
    case TL_OP_WAIT:
    case TL_OP_READY:
    case TL_OP_DOT_ASYNC:
    case TL_OP_RESCALE:
    case TL_OP_AWAIT:
    case TL_OP_FENCE:
    case TL_OP_MBAR:
    case TL_OP_TENSOR:
    case TL_OP_TENSOR_END:
    case TL_OP_EXPECT:
    case TL_OP_BLOCK:
    case TL_OP_NBLOCKS:
    case TL_OP_ROLES:
    case TL_OP_ARRIVE:
    case TL_OP_MBAR_WAIT:
    case TL_OP_MBAR_END:
    case TL_OP_BULK_STORE:
    case TL_OP_STORE_WAIT:
    case TL_OP_MEET:
    case TL_OP_PING_PONG_WAIT:
    case TL_OP_PING_PONG_ARRIVE:
    case TL_OP_COUNT: break;
    }
    TL_UNREACHABLE("op %d", (int)op->opcode);
}

/* ---- kernels ---- */

static LLVMValueRef load_param(TlGen *gen, uint32_t n, tile_slot_kind kind)
{
    TlCpuGen *g = (TlCpuGen *)gen; /* gen is its first member */
    return tl_cpu_load_word(g, g->params, 8 * n, kind == TILE_SLOT_POINTER ? g->ptr : g->i64);
}

static LLVMValueRef fmod_service(TlGen *gen, LLVMValueRef a, LLVMValueRef b)
{
    TlCpuGen *g = (TlCpuGen *)gen;
    LLVMTypeRef t = LLVMTypeOf(a), params[2] = {t, t};
    LLVMValueRef args[2] = {a, b};
    unsigned service = t == g->f64 ? TL_CPU_SERVICE(fmod) : TL_CPU_SERVICE(fmodf);
    return tl_cpu_service(g, service, LLVMFunctionType(t, params, 2, 0), args, 2);
}

/* Arm's bfcvt keeps what our bits keep: subnormal numbers, and what a NaN carries, made quiet. */
static LLVMValueRef to_bf16(TlGen *g, LLVMValueRef x)
{
    int w = tl_gen_width_of(x);
    LLVMTypeRef type = tl_gen_vec(LLVMBFloatTypeInContext(g->l->context), w);
    return LLVMBuildBitCast(g->b, LLVMBuildFPTrunc(g->b, x, type, ""), tl_gen_vec(g->i16, w), "");
}

static TlCpuGen new_gen(TlLlvm *l, const TlCodegenOptions *options, TlArena *arena,
                        const TlNests *plan)
{
    const TlFn *fn = plan->fn;
    TlCpuGen g = {.options = options};
    tl_gen_init(&g.gen, l, fn, arena);
    g.load_slot = load_param;
    g.fmod = fmod_service;
    g.to_bf16 = tl_llvm_has_feature(l, "bf16") ? to_bf16 : NULL;
    g.kinds = tl_float_kinds(fn, arena);
    g.m = plan->m;
    g.plan = plan;
    g.variable = TL_NEW_ARRAY(arena, LLVMValueRef, g.plan->buffers.len + 1);
    g.lower_op = lower_op;
    g.eval_op = eval_op;
    tl_map_init(&g.access, arena);
    return g;
}

/* Programs that run abreast, where all of them are whole; else one by one, by the function
 * `single`. */
static void lower_abreast(TlCpuGen *g, const char *symbol, const TlSlots *slots,
                          LLVMValueRef single)
{
    LLVMValueRef all = LLVMConstInt(g->i1, 1, 0);
    tl_cpu_begin_abreast(g, symbol, slots);
    g->tests_lanes = g->plan->abreast->tests_lanes;
    for (int i = 0; i < g->nturns; i++) {
        tl_cpu_take_turn(g, i);
        lower_part(g, true);
        all = LLVMBuildAnd(g->b, all, tl_cpu_is_whole(g), "");
    }
    TlCpuFork f = tl_cpu_fork(g, all);
    g->whole = true;
    for (int i = 0; i < g->nturns; i++) {
        tl_cpu_take_turn(g, i);
        for (TlOp *op = g->fn->body->first; op->next; op = op->next)
            if (op->opcode != TL_OP_STORE && !(op->nout == 1 && g->plan->early[op->out[0]->id]))
                lower_op(g, op);
    }
    tl_cpu_store_abreast(g);
    g->whole = false;
    tl_cpu_fork_else(g, &f, NULL);
    tl_cpu_run_single(g, single);
    tl_cpu_fork_end(g, &f, NULL);
    tl_cpu_end_abreast(g);
}

/* One plan's programs as the function `symbol`, with the slots that are there already. */
static TlCpuGen lower_plan(TlLlvm *l, const TlCodegenOptions *options, TlArena *arena,
                           TlNests *plan, const char *symbol, const TlSlots *slots)
{
    const TlFn *fn = plan->fn;
    bool abreast = plan->abreast && !l->di; /* lines are of one program */
    const char *name = abreast ? tl_format(arena, "%s.single", symbol) : symbol;
    TlCpuGen g = new_gen(l, options, arena, plan);
    tl_cpu_begin_kernel(&g, name, slots);
    lower_body(&g, fn->body);
    TL_ASSERT(LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(g.b)) ||
                  fn->body->last->opcode == TL_OP_RETURN,
              "'%s' does not end", fn->name);
    if (!abreast)
        return g;
    TlCpuGen w = new_gen(l, options, arena, plan);
    lower_abreast(&w, tl_format(arena, "%s.abreast", symbol), &g.slots, g.function);
    tl_cpu_call_abreast(&w, symbol, g.function, w.function);
    w.body = g.body;
    return w;
}

/* The functions of a kernel's programs: of each by itself, of several at once, of both with rows
 * folded. */
typedef struct Bodies {
    LLVMValueRef of[6];
    int n;
} Bodies;

/* Those that another function has asked for besides; the next function reads them. */
static void take_new_slots(TlCpuGen *g, const TlCpuGen *from)
{
    for (uint32_t i = g->slots.len; i < from->slots.len; i++) {
        tl_vec_push(g->arena, &g->slots, from->slots.data[i]);
        tl_vec_push(g->arena, &g->slot, NULL);
    }
}

/* The same of a plan with the one for several programs at once. */
static TlCpuGen lower_several(TlLlvm *l, const TlCodegenOptions *options, TlArena *arena,
                              TlNests *plan, const char *symbol, const TlSlots *slots,
                              Bodies *bodies)
{
    const char *each = plan->wide ? tl_format(arena, "%s.each", symbol) : symbol;
    TlCpuGen g = lower_plan(l, options, arena, plan, each, slots);
    bodies->of[bodies->n++] = g.body;
    if (!plan->wide)
        return g;
    const char *several = tl_format(arena, "%s.several", symbol);
    TlCpuGen w = lower_plan(l, options, arena, plan->wide, several, &g.slots);
    bodies->of[bodies->n++] = w.body;
    tl_cpu_call_several(&g, symbol, g.function, w.function);
    take_new_slots(&g, &w);
    return g;
}

/* The function of the kernel, which asks the launch: of rows[0] and rows[1], where there are such,
 * the first one's rows are also what the other one's are. */
static void call_folds(TlCpuGen *g, TlArena *arena, const char *symbol, LLVMValueRef as_it_is,
                       const LLVMValueRef *rows)
{
    const TlNestFold *fold = &g->plan->fold, *apart = &g->plan->apart;
    LLVMValueRef one = rows[0];
    if (rows[0] && rows[1] && fold->row) {
        tl_cpu_call_folded(g, fold, tl_format(arena, "%s.whole", symbol), rows[1], rows[0]);
        one = NULL;
    } else if (rows[0] && rows[1]) {
        tl_cpu_call_folded(g, apart, tl_format(arena, "%s.others", symbol), as_it_is, rows[1]);
        as_it_is = g->function;
    }
    if (one)
        tl_cpu_call_folded(g, fold, symbol, as_it_is, one);
    else if (rows[1])
        tl_cpu_call_folded(g, apart, symbol, as_it_is, rows[0] ? g->function : rows[1]);
}

static TlKernelCode lower_kernel(TlLlvm *l, const TlCodegenOptions *options, TlArena *arena,
                                 const TlFn *fn, const char *symbol, Bodies *bodies)
{
    TlNestMachine m = tl_nest_machine(l);
    TlNests *plan = tl_nest_plan(fn, &m, options->check, arena);
    plan = plan->pieces ? plan->pieces : plan;
    const TlNestFold *folds[] = {&plan->fold, &plan->apart};
    LLVMValueRef rows, functions[2] = {NULL};
    bool asks = plan->fold.plan || plan->apart.plan;
    TlCpuGen g = lower_several(l, options, arena, plan,
                               asks ? tl_format(arena, "%s.rows", symbol) : symbol, NULL, bodies);
    rows = g.function;
    for (int k = 0; k < 2; k++) {
        if (!folds[k]->plan)
            continue;
        const char *name = tl_format(arena, "%s.%s", symbol, k ? "apart" : "folded");
        TlCpuGen w = lower_several(l, options, arena, folds[k]->plan, name, &g.slots, bodies);
        take_new_slots(&g, &w);
        functions[k] = w.function;
    }
    call_folds(&g, arena, symbol, rows, functions);
    TlKernelCode k = {.fn = fn,
                      .symbol = symbol,
                      .slots = g.slots,
                      .scratch_bytes = plan->scratch_bytes,
                      .zeroed_bytes = (uint32_t)plan->zeroed_bytes,
                      .flags = (options->check ? TILE_KERNEL_CHECKED : 0) |
                               (tl_fn_may_wait(fn) ? 0 : TILE_KERNEL_ANY_ORDER)};
    return k;
}

static bool is_supported(const TlFn *fn)
{
    TlDiags *diags = &fn->module->ctx->diags;
    if (tl_fn_level(fn) != TL_LEVEL_STAGED)
        return tl_gen_is_supported(diags, fn, "the CPU", false);
    tl_diag(diags, fn->loc, TL_E0700, "shared memory on the CPU");
    return false;
}

static const char PASSES[] =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,aggressive-instcombine,simplifycfg,"
    "loop-mssa(licm),early-cse,dce)";

/* Most instructions of a block: LLVM's selection of multiply-adds and its scheduler take time that
 * grows with the square of a block's length. Blocks are longer only in kernels with hundreds of
 * statements in a row. */
enum { BLOCK = 512 };

/* False, after an error, when a kernel is too long. */
static bool lower_kernels(TlLlvm *l, TlModule *m, const TlCodegenOptions *options, TlArena *arena,
                          TlKernelCodes *kernels)
{
    bool ok = true;
    if (options->debug)
        tl_gen_debug_open(l, m, false);
    for (uint32_t i = 0; i < m->fns.len; i++) {
        const TlFn *fn = m->fns.data[i];
        const char *symbol = tl_format(arena, "%s.%u", fn->name, i);
        TlSpanMark mark = tl_trace_begin(l->trace, "codegen", symbol, "lower to LLVM");
        Bodies bodies = {.n = 0};
        TlKernelCode k = lower_kernel(l, options, arena, fn, symbol, &bodies);
        tl_trace_end(l->trace, mark);
        tl_vec_push(arena, kernels, k);
        for (int c = 0; c < bodies.n; c++)
            ok &= tl_llvm_watch(l, &m->ctx->diags, fn->loc, fn->name, bodies.of[c],
                                tl_gen_loop_depth(fn), "loops and several kernels make it shorter");
    }
    tl_gen_debug_close(l);
    return ok;
}

/* NULL: diagnosed. */
static void *make_code(TlLlvm *l, TlModule *m, const TlCodegenOptions *options, TlEmit emit,
                       TlArena *arena, TlKernelCodes *kernels, size_t *out_size)
{
    tl_llvm_open(l, arena, "kernels", options->target->triple, options->target->cpu,
                 options->target->features, options->opt_level);
    l->trace = m->ctx->trace;
    if (emit == TL_EMIT_NEST || emit == TL_EMIT_LOOPS) {
        TlNestMachine machine = tl_nest_machine(l);
        TlSbuf text;
        tl_sbuf_init(&text, arena);
        (emit == TL_EMIT_NEST ? tl_nest_print : tl_nest_explain)(&text, m, &machine,
                                                                 options->check);
        *out_size = text.len;
        return text.text;
    }
    l->skip = options->skip;
    if (!lower_kernels(l, m, options, arena, kernels))
        return NULL;
    tl_llvm_verify(l);
    if (options->opt_level > 0)
        tl_llvm_run(l, l->quick ? TL_LLVM_QUICK_PASSES : PASSES);
    if (options->opt_level > 0 && !l->quick) {
        tl_cpu_look_up(l);
        tl_work_around(l, TL_FAMILY_CPU, TL_WHEN_FULL_EMIT);
    }
    tl_work_around(l, TL_FAMILY_CPU, TL_WHEN_EMIT);
    tl_host_complete(l, true);
    tl_llvm_part_blocks(l, BLOCK);
    return emit == TL_EMIT_LLVM ? (void *)tl_llvm_text(l, arena, out_size)
                                : tl_llvm_emit(l, arena, emit == TL_EMIT_OBJ, out_size);
}

void *tl_cpu_compile(TlModule *m, const TlCodegenOptions *options, TlEmit emit, TlArena *arena,
                     TlKernelCodes *kernels, size_t *out_size)
{
    TL_ASSERT(options->target && kernels && out_size, "nothing to compile for");
    TlLlvm l = {0};
    TlGuard g;
    void *volatile made = NULL;
    bool supported = true;
    for (uint32_t i = 0; i < m->fns.len; i++)
        supported &= is_supported(m->fns.data[i]);
    if (!supported)
        return NULL;
    if (TL_GUARD(&g)) {
        made = make_code(&l, m, options, emit, arena, kernels, out_size);
        tl_guard_pop(&g);
    }
    tl_llvm_abandon(&l, g.fault);
    if (g.fault)
        tl_fault(g.fault, "%s", g.text);
    void *code = made;
    if (!code)
        return NULL;
    if (emit == TL_EMIT_OBJ)
        tl_host_check_closed(code, *out_size, NULL);
    for (uint32_t i = 0; i < kernels->len; i++) {
        kernels->data[i].code = code;
        kernels->data[i].ncode = *out_size;
    }
    return code;
}
