/* Loops that compute each row of a tile from itself and rows further on, two trips at once.
 *
 *     for j: v = a * v + b * shift(v, 0, -1)
 *
 * Each trip loads and stores all rows of v's home, for a few ops; and the loop over rows, whose
 * length changes from trip to trip, ends with a branch that is seldom foreseen. A row of the next
 * trip is computed from rows of this one that are there once as many more are: so one loop goes
 * over the rows for both, with the rows between them in registers.
 *
 *     for j: w = a * v + b * shift(v, 0, -1)           row by row: w[i + 1] = a * v[i + 1] + ...
 *            v = a * w + b * shift(w, 0, -1)    =>                 v[i] = a * w[i] + b * w[i + 1]
 *
 *   1. check   a loop by 1 of known trips that carries one tile; its ops work element by element,
 *              or take rows further on
 *   2. price   what goes through memory beside what is computed
 *   3. pair    the function once more, with loops of half as many trips, of two bodies each. That
 *              is left out if the nest does not go down rows (nest_down.c) */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/picked.h"
#include "passes/simplify/loops.h"

enum {
    LEAST_TRIPS = 4,
    LEAST_ROWS = 16,   /* of the tile: some more are computed of each trip but the last */
    MOST_AHEAD = 4,    /* rows that a row of the next trip is computed from, beside its own */
    STORED = 2,        /* work of storing a vector, where a load or a sum is 1, */
    EXPANDED = 16,     /* and of an fma that the CPU does not have */
    HELD = 8,          /* registers: rows in them are one of so many */
    PART = 8,          /* so great a part of a trip must be saved */
    MOST_VISITED = 256 /* values from what is carried to what is yielded, and back */
};

/* ---- 1. check ---- */

static bool is_tile(const TlValue *v)
{
    return v->type->kind == TL_TILE && v->type->rank > 0;
}

/* Rows are along axis 0, lanes along axis 1. */
static bool has_rows(const TlType *t)
{
    return t->kind == TL_TILE && t->rank == 2 && !t->ptr && t->shape[0] >= LEAST_ROWS &&
           t->shape[1] > 1;
}

/* By how many rows a gather of such a tile lies before what it takes; 0: it is no such. */
static int64_t ahead_of(const TlOp *op)
{
    int64_t first;
    bool is = op->opcode == TL_OP_GATHER && tl_attr_int(op, TL_ATTR_AXIS, 0) == 0 &&
              tl_same_shape(tl_in(op, 0)->type, op->out[0]->type) &&
              tl_counts_from(tl_in(op, 1), 0, &first);
    return is && first > 0 && first <= MOST_AHEAD ? first : 0;
}

static bool may_repeat(const TlOp *op)
{
    uint32_t flags = tl_op_info(op->opcode)->flags;
    return op->nout == 1 && !op->nregions && tl_op_is_pure(op) &&
           (!is_tile(op->out[0]) || flags & (F_ELEM | F_VIEWLIKE) || op->opcode == TL_OP_CONST ||
            op->opcode == TL_OP_IOTA || op->opcode == TL_OP_GATHER);
}

typedef struct Way {
    const TlValue *from, *to;
    int64_t most; /* rows ahead */
    int loads;    /* of `from`, at different rows; bit k: k rows ahead */
    int left;
} Way;

/* Do all uses of v lead to what is yielded, by elements and by rows, which are taken once on each
 * way? A trip of two steps is one of two trips already. */
static bool leads_on(Way *w, const TlValue *v, bool moved)
{
    if (v == w->to)
        return true;
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlOp *op = u->user;
        int64_t ahead = ahead_of(op);
        bool rows = ahead && u == &op->in[0];
        if (--w->left < 0 || op->block != w->from->block || op->nout != 1 || (rows && moved) ||
            !(rows || tl_op_info(op->opcode)->flags & F_ELEM) ||
            !leads_on(w, op->out[0], moved || rows))
            return false;
        w->most = rows && ahead > w->most ? ahead : w->most;
        if (v == w->from)
            w->loads |= rows ? 1 << ahead : 1;
    }
    return v->uses != NULL;
}

/* ---- 2. price ---- */

static int64_t work_of(const TlNestMachine *m, const TlBlock *body, const TlType *t)
{
    int64_t work = 0;
    for (const TlOp *op = body->first; op; op = op->next)
        if (op->nout == 1 && tl_op_info(op->opcode)->flags & F_ELEM &&
            tl_same_shape(op->out[0]->type, t))
            work += op->opcode == TL_OP_FMA && !m->fma ? EXPANDED : tl_elem_work(op->opcode)->cpu;
    return work;
}

static bool pays(const TlNestMachine *m, const TlOp *loop)
{
    const TlBlock *body = loop->regions[0];
    TlWideInt trips;
    uint64_t step;
    if (loop->opcode != TL_OP_FOR || loop->nout != 1 || !has_rows(loop->out[0]->type) ||
        !tl_const_trips(loop, &trips) || trips < LEAST_TRIPS ||
        !tl_value_is_const(tl_in(loop, 2), &step) || step != 1)
        return false;
    for (const TlOp *op = body->first; op != body->last; op = op->next)
        if (!may_repeat(op))
            return false;
    Way w = {.from = body->args[1], .to = tl_in(body->last, 0), .left = MOST_VISITED};
    if (!w.to->def || w.to->def->block != body || !leads_on(&w, w.from, false) || !w.most ||
        HELD * w.most > m->nregs)
        return false;
    int64_t moved = STORED + __builtin_popcount((unsigned)w.loads);
    return PART * moved >= 2 * (moved + work_of(m, body, loop->out[0]->type));
}

/* ---- 3. pair ---- */

static TlOp *half_loop(TlBuilder *b, const TlOp *loop, TlWideInt trips, TlValue *init)
{
    const TlBlock *body = loop->regions[0];
    const TlType *iv = body->args[0]->type, *type = loop->out[0]->type;
    TlValue *in[] = {tl_const_int(b, iv, 0), tl_const_int(b, iv, (int64_t)(trips / 2)),
                     tl_const_int(b, iv, 1), init};
    TlOp *half = tl_op_like(b, loop, 4, in, 1, &type);
    half->regions[0]->warps = body->warps;
    tl_block_arg(half->regions[0], iv, body->args[0]->name);
    tl_block_arg(half->regions[0], type, body->args[1]->name);
    half->out[0]->name = loop->out[0]->name;
    return half;
}

/* If trips are odd, the first one comes before the loop. */
static void pair_trips(TlOp *loop, TlArena *scratch)
{
    TlWideInt trips;
    bool known = tl_const_trips(loop, &trips);
    TL_ASSERT(known, "a loop of unknown trips");
    const TlType *type = loop->regions[0]->args[0]->type;
    TlBuilder b = tl_builder_before(loop);
    TlValue *first = tl_in(loop, 0), *carried = tl_in(loop, 3), *one = tl_const_int(&b, type, 1);
    if (trips % 2) {
        tl_loop_copy_body(&b, loop, first, &carried, scratch);
        first = tl_binary(&b, TL_OP_ADD, first, one);
    }
    TlOp *half = half_loop(&b, loop, trips, carried);
    TlBlock *body = half->regions[0];
    TlBuilder inner = {.fn = body->fn, .block = body, .loc = loop->loc};
    TlValue *twice = tl_binary(&inner, TL_OP_ADD, body->args[0], body->args[0]),
            *iv = tl_binary(&inner, TL_OP_ADD, first, twice);
    carried = body->args[1];
    tl_loop_copy_body(&inner, loop, iv, &carried, scratch);
    tl_loop_copy_body(&inner, loop, tl_binary(&inner, TL_OP_ADD, iv, one), &carried, scratch);
    tl_yield(&inner, TL_OP_YIELD, 1, &carried);
    tl_replace_uses(loop->out[0], half->out[0]);
    tl_op_erase(loop);
}

TlFn *tl_nest_pair_trips(const TlFn *fn, const TlNestMachine *m, TlArena *arena)
{
    TL_VEC(const TlOp *) loops = {0};
    TlMap copy = {.arena = arena};
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR && pays(m, op))
            tl_vec_push(arena, &loops, op);
    if (!loops.len)
        return NULL;
    TlFn *made = tl_nest_copy_function(fn, &copy);
    for (uint32_t i = 0; i < loops.len; i++) {
        TlValue *result = tl_map_get_ptr(&copy, loops.data[i]->out[0]);
        pair_trips(result->def, arena);
    }
    tl_nest_drop_unused(made, arena);
    TlSbuf fault;
    tl_sbuf_init(&fault, arena);
    TL_ASSERT(tl_verify_fn(made, &fault), "'%s': %s", fn->name, fault.text ? fault.text : "");
    return made;
}
