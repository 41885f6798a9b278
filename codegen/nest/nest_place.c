/* Where tiles live on the CPU.
 *
 * A tile value is virtual when its elements can be computed inside the loop nest of the one op
 * that needs them (its root), at the same element position; then it costs no memory. Everything
 * else has a home in the worker's scratch memory.
 *
 *   1. number     ops in program order; a region op spans the positions of its body
 *   2. cost       of recomputing a value from stable leaves (constants, iota, homes): cheap ones
 *                 are virtual everywhere, though in a loop around their uses they must be cheaper,
 *                 and what reads constant memory only where all uses are element for element
 *   3. decide     backwards over each block: virtual if all uses lead to one root in the same
 *                 block through elementwise ops, and, for loads, if nothing between the load and
 *                 the root may write what it reads. A transposition goes without a home where a
 *                 product packs it; a loop that turns out to be no product is decided again. What
 *                 a broadcast repeats needs no home if it is little work, few times. Rows taken
 *                 from a home are read there, not copied to another one first
 *   4. fuse       a reduction over a home (or elementwise over it) is done while the home is
 *                 filled
 *   5. homes      loop-carried tiles share one home with the loop's result; the value a loop
 *                 yields takes that home when the old value is dead by then or is only read
 *                 element for element while the new one is written, or further on
 *   6. intervals  from the first write to the last read of each home; reads of outer values in a
 *                 loop count until its end
 *   7. products   buffers of loops that sum products (cpu_matmul.c)
 *   8. offsets    first fit, once strips are found (nest_strips.c); homes of a vector or two are
 *                 variables, which LLVM keeps in registers */
#include <stdlib.h>
#include <string.h>

#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/picked.h"

/* Work for an element of 32 bits, where a sum is 1 (op_cost): less than which is done again, in a
 * loop too; how often, and with how much behind it. */
enum { CHEAP = 6, CHEAP_IN_LOOP = 3, FEW_TIMES = 2, FEW_WORK = 8, COSTLY = 1000, NEVER = -1 };
enum { MOST_WALKED = 64, MANY_WALKED = 4096 }; /* values that one question visits: time */

/* Positions of an op and of the last one inside of it. */
typedef struct Span {
    uint32_t pos, end;
} Span;

typedef struct Placer {
    const TlFn *fn;
    TlArena *arena;
    TlNests *plan;
    TlMap span; /* op to Span */
    uint32_t n;
    int *cost;      /* by value id */
    int *work;      /* by value id: the same with loads as cheap as reading a home */
    bool *reads;    /* by value id: from memory, when it is computed again */
    uint32_t *last; /* by value id: position of the last read */
    uint32_t *stamp, stamps; /* by value id: values share operands, so each walk visits one once */
    TlOp **writer; /* by position: the first op of the block from there on that may write memory */
    bool products;  /* loops may be products */
    TlMap no_product; /* loops that are none, as some value in them has a home */
} Placer;

/* ---- aliasing ---- */

static bool same_place(const TlOp *a, const TlOp *b)
{
    TL_ASSERT(a->opcode == TL_OP_LOAD || b->opcode == TL_OP_LOAD,
              "%s and %s load nothing", tl_op_info(a->opcode)->text, tl_op_info(b->opcode)->text);
    TlPlace p = tl_op_place(a), q = tl_op_place(b);
    if (p.base != q.base || p.naxes != q.naxes || !p.axes || !q.axes)
        return p.base == q.base && !p.axes && !q.axes && p.rank == 0;
    for (uint32_t i = 0; i < p.naxes; i++) {
        if (p.index[i].value != q.index[i].value || p.axes[i].kind != q.axes[i].kind)
            return false;
        if (p.axes[i].kind == TL_AXIS_TILE || p.axes[i].width != q.axes[i].width ||
            p.axes[i].step != q.axes[i].step)
            return false;
    }
    return true;
}

/* ---- 1. number ---- */

static Span *span_of(const Placer *p, const TlOp *op)
{
    return tl_map_get_ptr(&p->span, op);
}

static uint32_t pos_of(const Placer *p, const TlOp *op)
{
    return span_of(p, op)->pos;
}

static void number(Placer *p, const TlBlock *block)
{
    for (TlOp *op = block->first; op; op = op->next) {
        Span *s = TL_NEW(p->arena, Span);
        tl_map_put_ptr(&p->span, op, s);
        s->pos = ++p->n;
        for (uint32_t r = 0; r < op->nregions; r++)
            number(p, op->regions[r]);
        s->end = op->nregions ? ++p->n : p->n;
    }
}

/* Fills p->writer for a block; does the block write? */
static bool find_writers(Placer *p, const TlBlock *block)
{
    TlOp *writer = NULL;
    for (TlOp *op = block->last; op; op = op->prev) {
        bool writes = !op->nregions && tl_op_effects(op) & (F_WRITE | F_ATOMIC);
        for (uint32_t r = 0; r < op->nregions; r++)
            writes |= find_writers(p, op->regions[r]);
        if (writes)
            writer = op;
        p->writer[pos_of(p, op)] = writer;
    }
    return writer != NULL;
}

static TlOp *next_writer(Placer *p, const TlOp *op)
{
    return op->next ? p->writer[pos_of(p, op->next)] : NULL;
}

/* ---- 2. cost ---- */

static bool lane_moves(const TlOp *trans)
{
    const TlAttr *perm = tl_attr(trans, TL_ATTR_PERM);
    TlNestForm from = tl_nest_form(tl_in(trans, 0)->type), to = tl_nest_form(trans->out[0]->type);
    return tl_type_elems(trans->out[0]->type) > 1 && perm->u.ints[to.lane] != from.lane;
}

/* Does a reshape keep vectors together? Then it is an index computed, once for each of them. */
static bool keeps_vectors(const Placer *p, const TlOp *op)
{
    if (tl_nest_is_for_row(p->plan, op))
        return false;
    if (tl_nest_is_renaming(op) || tl_nest_joins(op) || (!p->plan->check && tl_nest_parts(op)) ||
        tl_nest_feeds_quads(p->plan, op))
        return true;
    const TlType *a = tl_in(op, 0)->type, *b = op->out[0]->type;
    int32_t lanes = p->plan->m.vector_bytes / (int)sizeof(float);
    return a->rank && b->rank && !a->ptr && a->shape[tl_nest_form(a).lane] % lanes == 0 &&
           b->shape[tl_nest_form(b).lane] % lanes == 0;
}

/* Reading constant memory again costs what reading a copy of it would, where elements lie side by
 * side and need no conversion, or are bytes, which a copy holds as they are. */
static bool may_read_again(const TlFn *fn, const TlOp *load)
{
    TlPlace p = tl_op_place(load);
    TlNestForm f = tl_nest_form(load->out[0]->type);
    TlDtype dtype = load->out[0]->type->dtype;
    if (!p.axes || p.mask || p.base->def || !tl_is_constant_memory(p.base) ||
        (tl_dtype_bytes(dtype) < 4 && dtype != TL_U8 && dtype != TL_I8))
        return false;
    int lane = tl_nest_slice_of(&p, f.lane);
    for (uint32_t i = 0; i < p.naxes; i++)
        if (p.axes[i].kind == TL_AXIS_TILE)
            return false;
    return lane >= 0 && tl_nest_is_dense(fn, &p, lane);
}

/* Does an op that picks an element of each row find those of a vector side by side, or every few
 * elements apart in vectors that are (split)? */
static bool picks_vectors(const Placer *p, const TlOp *op)
{
    int64_t at;
    const TlValue *from = op->out[0]->type->rank ? tl_picked_from(op, &at) : NULL;
    if (!from || p->plan->check)
        return false;
    if (tl_nest_form(from->type).lane != tl_attr_int(op, TL_ATTR_AXIS, 0))
        return true;
    while (from->def && from->def->nin == 1 && tl_op_info(from->def->opcode)->flags & F_ELEM)
        from = tl_in(from->def, 0);
    return from->def && from->def->opcode == TL_OP_RESHAPE && tl_nest_parts(from->def);
}

/* The work of computing an element of the op's result where it is needed; NEVER: it has a home. */
static int op_cost(const Placer *p, const TlOp *op)
{
    uint32_t flags = tl_op_info(op->opcode)->flags;
    if (flags & F_ELEM)
        return tl_elem_work(op->opcode)->cpu;
    if (op->opcode == TL_OP_RESHAPE && !p->plan->check && tl_nest_turned_words(op) &&
        tl_nest_is_for_quads(p->plan, op))
        return NEVER; /* each word is turned once */
    if (op->opcode == TL_OP_RESHAPE)
        return keeps_vectors(p, op) ? 0 : NEVER;
    if (op->opcode == TL_OP_LOAD)
        return may_read_again(p->fn, op) ? 1 : COSTLY;
    if (op->opcode == TL_OP_INSIDE)
        return 3;
    TlNestQuads quads;
    if (op->opcode == TL_OP_GATHER || tl_nest_quads(p->plan, op, &quads))
        return CHEAP + 1;
    if (op->opcode == TL_OP_REDUCE)
        return picks_vectors(p, op) ? 1 : NEVER;
    bool renames = (flags & F_VIEWLIKE) || op->opcode == TL_OP_CONVERT;
    return renames || op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA ? 0 : NEVER;
}

static bool can_be_virtual(const Placer *p, const TlOp *op)
{
    return op->nout == 1 && op_cost(p, op) != NEVER;
}

static void find_costs(Placer *p)
{
    for (TlOp *op = p->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        int cost = op->nout == 1 ? op_cost(p, op) : NEVER;
        if (cost == NEVER)
            continue;
        int work = op->opcode == TL_OP_LOAD ? 1 : cost;
        bool reads = op->opcode == TL_OP_LOAD;
        for (uint32_t i = 0; i < op->nin; i++) {
            const TlType *t = tl_in(op, i)->type;
            if (t->kind != TL_TILE || t->rank == 0)
                continue;
            cost += p->cost[tl_in(op, i)->id];
            work += p->work[tl_in(op, i)->id];
            reads |= p->reads[tl_in(op, i)->id];
        }
        p->cost[op->out[0]->id] = cost < COSTLY ? cost : COSTLY;
        p->work[op->out[0]->id] = work < COSTLY ? work : COSTLY;
        p->reads[op->out[0]->id] = reads;
    }
}

/* Is v read in a loop that its definition stands outside of? */
static bool is_read_in_loop(const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next)
        for (const TlBlock *b = u->user->block; b != v->def->block; b = b->parent->block)
            if (b->parent->opcode == TL_OP_FOR || b->parent->opcode == TL_OP_WHILE)
                return true;
    return false;
}

/* ---- 3. decide ---- */

static bool writes_what(Placer *p, const TlOp *op, const TlOp *load, bool in_place_ok)
{
    uint32_t effects = tl_op_effects(op);
    if (effects & F_ATOMIC)
        return true;
    if (!(effects & F_WRITE))
        return false;
    if (op->opcode != TL_OP_STORE) { /* a region: look at each store in it */
        for (uint32_t r = 0; r < op->nregions; r++)
            for (TlOp *inner = op->regions[r]->first; inner; inner = inner->next)
                if (writes_what(p, inner, load, false))
                    return true;
        return op->nregions == 0;
    }
    if (!tl_may_alias(p->fn, tl_in(op, 0), tl_in(load, 0)))
        return false;
    return !(in_place_ok && same_place(op, load));
}

/* Is `v` reached from `from` through virtual ops of any kind? True, too, after *left values. */
static bool may_reach(const Placer *p, const TlValue *from, const TlValue *v, int *left)
{
    if (from == v || --*left < 0)
        return true;
    if (from->type->kind != TL_TILE || from->type->rank == 0 || !from->def ||
        p->plan->place[from->id].kind == TL_NEST_HOME)
        return false;
    for (uint32_t i = 0; i < from->def->nin; i++)
        if (may_reach(p, tl_in(from->def, i), v, left))
            return true;
    return false;
}

static bool reaches_by_elements(Placer *p, TlValue *from, const TlValue *v, bool ahead)
{
    if (from == v || from->type->rank == 0 || !from->def || p->stamp[from->id] == p->stamps)
        return true;
    p->stamp[from->id] = p->stamps;
    if (p->plan->place[from->id].kind != TL_NEST_VIRTUAL)
        return true; /* a home of its own: read before */
    bool elementwise = tl_op_info(from->def->opcode)->flags & F_ELEM ||
                       (ahead && tl_nest_rows_ahead(p->plan, from->def) >= 0);
    for (uint32_t i = 0; i < from->def->nin; i++) {
        TlValue *x = tl_in(from->def, i);
        if (x->type->kind != TL_TILE || x->type->rank == 0)
            continue;
        int left = MOST_WALKED;
        if (!elementwise && may_reach(p, x, v, &left))
            return false;
        if (!reaches_by_elements(p, x, v, ahead))
            return false;
    }
    return true;
}

/* Is `v` reached from `from` only through elementwise virtual ops, or those and, if `ahead`, ones
 * that take rows further on? Nests go up, so these rows are as they were. */
static bool only_elementwise(Placer *p, TlValue *from, const TlValue *v, bool ahead)
{
    p->stamps++;
    return reaches_by_elements(p, from, v, ahead);
}

/* Of stores that are interleaved, which write a vector of all of them when all are computed: is the
 * load of what one of them writes, lane by lane? */
static bool is_in_place(Placer *p, const TlNestJoined *j, const TlOp *load)
{
    bool same = false;
    for (int k = 0; k < j->n; k++) {
        same |= same_place(j->store[k]->op, load);
        if (!only_elementwise(p, j->store[k]->place.value, load->out[0], false))
            return false;
    }
    return same;
}

static bool is_one_of(const TlNestJoined *j, const TlOp *store)
{
    for (int k = 0; j && k < j->n; k++)
        if (j->store[k]->op == store)
            return true;
    return false;
}

static bool load_may_wait(Placer *p, TlOp *load, TlOp *root)
{
    if (tl_is_constant_memory(tl_in(load, 0)))
        return true;
    const TlNestJoined *j = tl_nest_joined(p->plan, root);
    j = j && !j->apart ? j : NULL;
    uint32_t end = pos_of(p, root);
    for (TlOp *op = next_writer(p, load); op && pos_of(p, op) < end; op = next_writer(p, op))
        if (!is_one_of(j, op) && writes_what(p, op, load, false))
            return false;
    if (root->nregions && (root->opcode == TL_OP_FOR || root->opcode == TL_OP_WHILE))
        return true; /* inits come first */
    if (j)
        return !writes_what(p, root, load, false) || is_in_place(p, j, load);
    bool in_place = root->opcode == TL_OP_STORE && same_place(root, load) &&
                    only_elementwise(p, tl_op_place(root).value, load->out[0], false);
    return !writes_what(p, root, load, in_place);
}

static bool only_feeds_dot(const TlValue *v)
{
    return v->uses && !v->uses->next && v->uses->user->opcode == TL_OP_DOT &&
           v->uses != &v->uses->user->in[2] && v->uses->user->block == v->def->block;
}

/* Does the loop around do nothing but to sum this product, or does an instruction sum it? Then its
 * operands are packed. */
static bool is_in_product(const Placer *p, TlOp *dot)
{
    const TlOp *loop = dot->block->parent;
    if (!p->products || dot->opcode != TL_OP_DOT)
        return false;
    bool sums = loop && loop->opcode == TL_OP_FOR &&
                !tl_map_get(&p->no_product, (uint64_t)(uintptr_t)loop, NULL) &&
                tl_nest_only_dot(p->fn, NULL, loop) == dot;
    return sums || tl_nest_is_lone_product(p->plan, dot);
}

/* Is a transposition done while a product packs its operand, block by block? */
static bool is_packed(const Placer *p, const TlValue *v)
{
    return v->type->rank == 2 && only_feeds_dot(v) && is_in_product(p, v->uses->user);
}

/* Is computing again what a broadcast repeats, in the nest of a reduction or a store, less than
 * filling a home and reading it? What goes to all lanes is computed once for each vector. */
static bool may_repeat(const Placer *p, const TlOp *broadcast)
{
    TlOp *root = p->plan->root[broadcast->out[0]->id];
    const TlValue *x = tl_in(broadcast, 0);
    if (root && is_in_product(p, root)) /* packed once, and without a home it is a product */
        return p->work[x->id] <= (tl_nest_keeps_lanes(broadcast) ? FEW_WORK : 2 * FEW_WORK);
    int64_t lanes = p->plan->m.vector_bytes / (int)sizeof(float),
            times = tl_type_elems(broadcast->out[0]->type) / tl_type_elems(x->type);
    if (root && tl_nest_repeats_rows(broadcast, root))
        return true;
    return root && (root->opcode == TL_OP_REDUCE || root->opcode == TL_OP_STORE) &&
           p->work[x->id] <= FEW_WORK &&
           times <= (tl_nest_keeps_lanes(broadcast) ? FEW_TIMES : FEW_TIMES * lanes);
}

/* Is computing what a gather moves, vector by vector, less than filling a home and reading it? */
static bool may_move(const Placer *p, const TlOp *gather)
{
    const TlNestMove *m = tl_nest_move_of(p->plan, gather, tl_nest_form(gather->out[0]->type).lane);
    const TlOp *root = p->plan->root[gather->out[0]->id];
    return m && root &&
           (m->period || root->opcode == TL_OP_STORE || root->opcode == TL_OP_REDUCE) &&
           !p->plan->check && p->work[tl_in(gather, 0)->id] <= (m->rows ? FEW_WORK : FEW_WORK / 2);
}

/* Do elements follow from their places alone? */
static bool is_by_place(const TlValue *v, int depth)
{
    enum { MOST_DEPTH = 8 };
    const TlOp *op = v->def;
    if (!op || depth > MOST_DEPTH)
        return false;
    if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA)
        return true;
    bool is = tl_op_info(op->opcode)->flags & (F_ELEM | F_VIEWLIKE);
    for (uint32_t i = 0; is && i < op->nin; i++)
        is = is_by_place(tl_in(op, i), depth + 1);
    return is;
}

/* Does what a broadcast repeats along a short last axis stay in one place of it? So it is with each
 * operand of `interleave`: it is one of the vectors that are interleaved, computed once. */
static bool is_interleaved(const Placer *p, const TlOp *broadcast)
{
    const TlValue *x = tl_in(broadcast, 0), *v = broadcast->out[0];
    int last = v->type->rank - 1;
    if (p->plan->check || last < 1 || x->type->rank != v->type->rank || x->type->shape[last] != 1 ||
        tl_type_elems(x->type) * v->type->shape[last] != tl_type_elems(v->type))
        return false;
    while (v->uses && !v->uses->next && v->uses->user->opcode == TL_OP_SELECT &&
           v->uses != &v->uses->user->in[0] && is_by_place(tl_in(v->uses->user, 0), 0))
        v = v->uses->user->out[0];
    const TlOp *op = v->uses && !v->uses->next ? v->uses->user : NULL;
    return op && op->opcode == TL_OP_RESHAPE && v != broadcast->out[0] && tl_nest_joins(op);
}

/* Are the bytes that a cast widens for sums of four products the same for rows that are computed
 * together? */
static bool repeats_rows(const Placer *p, const TlOp *cast)
{
    const TlOp *op = cast;
    while (op->opcode == TL_OP_CAST || op->opcode == TL_OP_EXPAND)
        op = op->out[0]->uses->user;
    const TlOp *root = p->plan->root[op->out[0]->id];
    return op->opcode == TL_OP_BROADCAST && root && tl_nest_repeats_rows(op, root);
}

/* Half of each byte: one instruction, less than what a home of them takes. */
static bool is_half_byte(const TlOp *op)
{
    uint64_t bits;
    return (op->opcode == TL_OP_AND || op->opcode == TL_OP_SHR) &&
           tl_value_is_const(tl_in(op, 1), &bits) && tl_dtype_bytes(op->out[0]->type->dtype) == 1;
}

/* Are the elements of v rows of a home as they lie there, or halves of their bytes? */
static bool are_rows_of_home(const Placer *p, const TlValue *v)
{
    enum { MOST_DEPTH = 5 };
    for (int depth = 0; v->def && depth < MOST_DEPTH; depth++) {
        const TlOp *op = v->def;
        if (op->opcode == TL_OP_RESHAPE && op_cost(p, op) == NEVER)
            return true;
        const TlNestMove *m =
            op->opcode == TL_OP_GATHER
                ? tl_nest_move_of(p->plan, op, tl_nest_form(op->out[0]->type).lane)
                : NULL;
        bool renames = op->opcode == TL_OP_EXPAND ||
                       (op->opcode == TL_OP_RESHAPE && tl_nest_is_renaming(op));
        if (!renames && !is_half_byte(op) && (!m || !m->rows))
            return false;
        v = tl_in(op, 0);
    }
    return false;
}

/* Is v, in the nest of a value of a block, computed from memory? */
static bool reads_in(const Placer *p, const TlValue *v, const TlBlock *block)
{
    if (!v->def || !p->reads[v->id])
        return false;
    if (v->def->block != block)
        return p->cost[v->id] <= CHEAP; /* else it has a home */
    bool reads = v->def->opcode == TL_OP_LOAD;
    for (uint32_t i = 0; i < v->def->nin && !reads; i++)
        reads = reads_in(p, tl_in(v->def, i), block);
    return reads;
}

/* May a nest that fills a home carry from row to row what a gather takes? */
static bool goes_down(const Placer *p, const TlOp *gather)
{
    const TlOp *root = p->plan->root[gather->out[0]->id];
    return tl_nest_may_go_down(p->plan, gather, root) && !reads_in(p, root->out[0], root->block);
}

/* Does this use evaluate the operand more than once per element, or in another order than the
 * root's? */
static bool use_needs_home(const Placer *p, const TlUse *use)
{
    const TlOp *op = use->user;
    if (op->opcode == TL_OP_BROADCAST)
        return tl_type_elems(use->value->type) < tl_type_elems(op->out[0]->type) &&
               !tl_nest_feeds_quads(p->plan, op) && !may_repeat(p, op) && !is_interleaved(p, op);
    if (tl_nest_widens_for_quads(p->plan, op))
        return !repeats_rows(p, op) && /* bytes are repeated, not what they become */
               !are_rows_of_home(p, use->value);
    if (op->opcode == TL_OP_TRANS)
        return !is_packed(p, op->out[0]);
    if (op->opcode == TL_OP_RESHAPE)
        return !keeps_vectors(p, op);
    if (op->opcode == TL_OP_SCAN)
        return p->work[use->value->id] > FEW_WORK; /* its code is made three times */
    if (op->opcode == TL_OP_YIELD)
        return op->block->parent->opcode != TL_OP_IF;
    if (op->opcode == TL_OP_PRINT || op->opcode == TL_OP_CONDITION)
        return true;
    uint32_t k = (uint32_t)(use - op->in);
    if (op->opcode == TL_OP_GATHER)
        return k == 0 && !may_move(p, op) && !goes_down(p, op);
    if (tl_attr(op, TL_ATTR_AXES) && k >= 1 && k <= tl_attr(op, TL_ATTR_AXES)->n)
        return true; /* index tiles */
    return false;
}

/* Do all uses of v stand beside it and take it element for element, or row for row? */
static bool is_read_by_elements(const Placer *p, const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        TlOpcode o = u->user->opcode;
        if (u->user->block != v->def->block)
            return false;
        bool parts = o == TL_OP_RESHAPE && !p->plan->check &&
                     (tl_nest_parts(u->user) || tl_nest_puts_rows_apart(p->plan, u->user));
        if (o == TL_OP_EXPAND || o == TL_OP_BROADCAST || parts) {
            if ((o == TL_OP_BROADCAST && !tl_nest_keeps_lanes(u->user)) ||
                !is_read_by_elements(p, u->user->out[0]))
                return false;
            continue;
        }
        bool plain = o == TL_OP_CONVERT || o == TL_OP_REDUCE || o == TL_OP_STORE ||
                     (tl_op_info(o)->flags & F_ELEM);
        if (!plain || use_needs_home(p, u))
            return false;
    }
    return true;
}

/* Is v but the index of loads that seldom compute it: a slice, or a pattern? */
static bool is_known_index(const Placer *p, const TlValue *v, int depth)
{
    enum { MOST_DEPTH = 8 };
    if (!v->uses || !v->def || !can_be_virtual(p, v->def) || depth > MOST_DEPTH ||
        (!tl_is_int(v->type->dtype) && v->type->dtype != TL_BOOL) || v->type->rank != 1)
        return false;
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlOp *op = u->user;
        const TlNestAccess *a = op->opcode == TL_OP_LOAD ? tl_map_get_ptr(&p->plan->access, op)
                                                         : NULL;
        bool known = false;
        for (uint32_t i = 0; a && i < a->place.naxes; i++)
            known |= a->place.index[i].value == v && a->axis[i].affine.is;
        if (!known && !(tl_op_info(op->opcode)->flags & F_ELEM &&
                        is_known_index(p, op->out[0], depth + 1)))
            return false;
    }
    return true;
}

/* Is v computed at each use? */
static bool is_cheap(const Placer *p, const TlValue *v)
{
    if (!v->def || !can_be_virtual(p, v->def) || p->cost[v->id] > CHEAP)
        return false;
    if (p->reads[v->id] && !is_read_by_elements(p, v))
        return false;
    return p->cost[v->id] <= CHEAP_IN_LOOP || !is_read_in_loop(v);
}

static TlOp *root_of_use(Placer *p, const TlUse *use)
{
    TlOp *op = use->user;
    if (op->nout == 1 && op->out[0]->type->kind == TL_TILE && op->out[0]->type->rank > 0 &&
        p->plan->place[op->out[0]->id].kind == TL_NEST_VIRTUAL)
        return p->plan->root[op->out[0]->id];
    const TlNestJoined *j = tl_nest_joined(p->plan, op);
    return j ? j->store[j->n - 1]->op : op;
}

/* The one op in whose loop nest v can be computed, or NULL: *why. */
static TlOp *find_root(Placer *p, TlValue *v, const char **why)
{
    TlOp *root = NULL;
    for (TlUse *u = v->uses; u; u = u->next) {
        TlOp *r = NULL;
        if (u->user->block != v->def->block)
            *why = "used in another block";
        else if (use_needs_home(p, u))
            *why = "used several times, or in another order";
        else if (!(r = root_of_use(p, u)) || (root && r != root))
            *why = "used by several nests";
        if (!r || (root && r != root))
            return NULL;
        root = r;
    }
    return root;
}

/* Is v the next value of something a loop carries? Then it is computed in place rather than at the
 * end. */
static bool is_carried(const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        TlOpcode o = u->user->opcode;
        if (o == TL_OP_CONDITION ||
            (o == TL_OP_YIELD && u->user->block->parent->opcode != TL_OP_IF))
            return true;
    }
    return false;
}

/* Why a value has a home that its nest fills several short rows at a time. */
static const char SHORT[] = "short rows are computed as one";

/* May v be computed from elements of homes with the same number, if loads have homes? Values that
 * have been visited may. */
static bool may_be_by_number(Placer *p, const TlValue *v, const TlType *like)
{
    const TlOp *op = v->def;
    if (v->type->kind == TL_TILE && v->type->rank == 0)
        return true;
    if (!tl_same_shape(v->type, like) || v->type->ptr)
        return false;
    if (p->stamp[v->id] == p->stamps)
        return true;
    p->stamp[v->id] = p->stamps;
    if (!op || op->opcode == TL_OP_CONST || op->opcode == TL_OP_LOAD)
        return true;
    if (op->opcode == TL_OP_BROADCAST)
        return tl_in(op, 0)->type->rank == 0;
    if (!(tl_op_info(op->opcode)->flags & F_ELEM))
        return false;
    for (uint32_t i = 0; i < op->nin; i++)
        if (!may_be_by_number(p, tl_in(op, i), like))
            return false;
    return true;
}

/* Is v an operand of a value with such a home? */
static bool feeds_short(Placer *p, const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlValue *out = u->user->nout == 1 ? u->user->out[0] : NULL;
        if (!out || !tl_same_shape(v->type, out->type) || p->stamp[out->id] == p->stamps)
            continue;
        p->stamp[out->id] = p->stamps;
        const TlNestPlace *place = &p->plan->place[out->id];
        if (place->why == SHORT || (place->kind == TL_NEST_VIRTUAL && feeds_short(p, out)))
            return true;
    }
    return false;
}

/* Short rows: is filling a home with several at a time, and storing from it, less than computing
 * each by itself? So it is with loads that such a nest reads. */
static bool is_short(Placer *p, const TlValue *v, const TlOp *root)
{
    enum { SHORT_WORK = 24 };
    if (p->plan->check || !tl_nest_has_short_rows(&p->plan->m, v->type))
        return false;
    p->stamps++;
    if (v->def->opcode == TL_OP_LOAD)
        return feeds_short(p, v);
    return root && root->opcode == TL_OP_STORE && tl_op_place(root).value == v &&
           p->work[v->id] >= SHORT_WORK && may_be_by_number(p, v, v->type);
}

/* Will v have a home, where a use of it needs one? */
static bool gets_home(const Placer *p, const TlValue *v)
{
    return !v->def || (!(is_cheap(p, v) && !(p->cost[v->id] && is_carried(v))) &&
                       !is_known_index(p, v, 0));
}

static bool is_of_region(const TlValue *v)
{
    return v->def && v->def->nregions;
}

/* Is a reshape but another look at its operand's home? */
static bool reads_home(const Placer *p, const TlOp *op)
{
    return op->opcode == TL_OP_RESHAPE && !p->plan->check && !keeps_vectors(p, op) &&
           tl_nest_may_read_home(p->plan, op) && gets_home(p, tl_in(op, 0));
}

/* Does an op that several nests need, or a loop, but repeat what will have a home? */
static bool repeats_home(const Placer *p, const TlOp *op)
{
    return op->opcode == TL_OP_BROADCAST && !p->plan->check && tl_in(op, 0)->type->rank &&
           gets_home(p, tl_in(op, 0));
}

static void decide(Placer *p, TlValue *v)
{
    TlNestPlace *place = &p->plan->place[v->id];
    if (v->type->kind != TL_TILE)
        return;
    if (v->type->rank == 0) {
        place->kind = TL_NEST_SCALAR;
        return;
    }
    TlOp *op = v->def;
    place->kind = TL_NEST_HOME;
    place->why = "has a nest of its own";
    p->plan->root[v->id] = NULL;
    if (reads_home(p, op)) {
        place->kind = TL_NEST_VIRTUAL;
        place->why = "its operand has a home";
        return;
    }
    if (!can_be_virtual(p, op))
        return;
    place->why = "a transposition moves lanes";
    if (op->opcode == TL_OP_TRANS && (p->cost[v->id] > 0 || is_of_region(tl_in(op, 0))) &&
        lane_moves(op) && !only_feeds_dot(v))
        return;
    place->why = SHORT;
    if (op->opcode == TL_OP_LOAD && is_short(p, v, NULL))
        return;
    bool cheap = is_cheap(p, v) && !(p->cost[v->id] && is_carried(v));
    if (cheap || is_known_index(p, v, 0)) {
        const char *unused;
        place->kind = TL_NEST_VIRTUAL;
        place->why = cheap ? "cheap" : "an index that is seldom computed";
        if (op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_BROADCAST || p->reads[v->id])
            p->plan->root[v->id] =
                find_root(p, v, &unused); /* so that its operand may be virtual */
        return;
    }
    TlOp *root = find_root(p, v, &place->why);
    if (v->uses && !root) {
        bool widens = tl_nest_widens_for_quads(p->plan, op) || tl_nest_feeds_quads(p->plan, op);
        if (!widens && !repeats_home(p, op))
            return;
        place->kind = TL_NEST_VIRTUAL;
        place->why = widens ? "bytes are widened for sums of four" : "its operand has a home";
        return;
    }
    place->why = "its memory may be written before it is used";
    if (op->opcode == TL_OP_LOAD && root && !load_may_wait(p, op, root))
        return;
    place->why = SHORT;
    if (is_short(p, v, root))
        return;
    place->kind = TL_NEST_VIRTUAL;
    place->why = root ? "computed in one nest" : "not used";
    p->plan->root[v->id] = root;
}

/* Would it be a product, had not some value in it got a home? */
static bool has_lost_product(const Placer *p, const TlOp *loop)
{
    return p->products && tl_nest_only_dot(p->fn, NULL, loop) &&
           !tl_nest_only_dot(p->fn, p->plan, loop);
}

static void decide_block(Placer *p, const TlBlock *block)
{
    for (TlOp *op = block->last; op; op = op->prev) {
        for (uint32_t i = 0; i < op->nout; i++)
            decide(p, op->out[i]);
        for (uint32_t r = 0; r < op->nregions; r++) {
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++) {
                TlValue *a = op->regions[r]->args[i];
                p->plan->place[a->id].kind = a->type->rank ? TL_NEST_HOME : TL_NEST_SCALAR;
                p->plan->place[a->id].why = "carried";
            }
            decide_block(p, op->regions[r]);
        }
        if (op->opcode == TL_OP_FOR && has_lost_product(p, op)) {
            tl_map_put(&p->no_product, (uint64_t)(uintptr_t)op, 1);
            decide_block(p, op->regions[0]); /* nobody packs its transpositions */
        }
    }
}

/* Is a gather with a home no more than whole vectors of other rows of a home? That one is read as
 * well at each use, as long as it holds the same. */
static bool is_rows_of_home(const Placer *p, const TlOp *op)
{
    if (op->opcode != TL_OP_GATHER || p->plan->place[op->out[0]->id].kind != TL_NEST_HOME)
        return false;
    const TlValue *x = tl_in(op, 0), *index = tl_in(op, 1), *v = op->out[0];
    const TlNestMove *m = tl_nest_move_of(p->plan, op, tl_nest_form(v->type).lane);
    bool stays = x->def && x->def->block == op->block &&
                 p->plan->place[x->id].kind == TL_NEST_HOME &&
                 p->plan->place[index->id].kind == TL_NEST_VIRTUAL &&
                 p->cost[index->id] <= CHEAP && !p->reads[index->id];
    for (const TlUse *u = v->uses; u && stays; u = u->next)
        stays = u->user->block == op->block && u->user->opcode != TL_OP_YIELD &&
                u->user->opcode != TL_OP_CONDITION && u->user->opcode != TL_OP_DOT &&
                u->user->nregions == 0;
    return m && m->rows && stays && !p->plan->check && !is_read_in_loop(v);
}

static void read_homes(Placer *p)
{
    for (TlOp *op = p->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (!is_rows_of_home(p, op))
            continue;
        TlNestPlace *place = &p->plan->place[op->out[0]->id];
        place->kind = TL_NEST_VIRTUAL;
        place->why = "rows of a home";
    }
}

/* ---- 4. fuse ---- */

/* Can x be computed at the positions of v's nest, when that runs? It may use v element for
 * element, and what was there before v. A value reached both ways, by elements and otherwise, is
 * visited for each: stamps are even for the one and odd for the other, which asks for more. */
static bool is_ready(Placer *p, const TlValue *x, const TlValue *v, bool elementwise, bool *uses_v)
{
    if (x == v) {
        *uses_v = true;
        return elementwise;
    }
    uint32_t seen = p->stamps - elementwise;
    if (p->stamp[x->id] >= seen)
        return true;
    p->stamp[x->id] = seen;
    bool before = !x->def || pos_of(p, x->def) < pos_of(p, v->def);
    if (x->type->kind != TL_TILE || x->type->rank == 0 ||
        p->plan->place[x->id].kind == TL_NEST_HOME)
        return before;
    if (x->def->opcode == TL_OP_LOAD)
        return before && may_read_again(p->fn, x->def);
    if (x->def->opcode == TL_OP_INSIDE && !before)
        return false;
    bool same = elementwise && (tl_op_info(x->def->opcode)->flags & F_ELEM);
    for (uint32_t i = 0; i < x->def->nin; i++)
        if (!is_ready(p, tl_in(x->def, i), v, same, uses_v))
            return false;
    return true;
}

static bool can_fuse(Placer *p, const TlOp *reduce, const TlValue *v)
{
    if (reduce->opcode != TL_OP_REDUCE || reduce->nin != 1 ||
        tl_attr_int(reduce, TL_ATTR_KIND, TL_COMBINE_USER) == TL_COMBINE_USER)
        return false;
    bool uses_v = false;
    int64_t at;
    TlNestQuads quads;
    if (tl_picked_from(reduce, &at) || tl_nest_quads(p->plan, reduce, &quads))
        return false;
    const TlValue *x = tl_in(reduce, 0);
    p->stamps += 2;
    return tl_same_shape(x->type, v->type) && is_ready(p, x, v, true, &uses_v) && uses_v;
}

typedef TL_VEC(TlOp *) Reductions;

/* The reductions of v's block that v reaches through values without a home. */
static void find_reductions(Placer *p, const TlValue *v, const TlBlock *block, Reductions *out)
{
    if (p->stamp[v->id] == p->stamps)
        return;
    p->stamp[v->id] = p->stamps;
    for (TlUse *u = v->uses; u; u = u->next) {
        const TlOp *op = u->user;
        if (op->block == block && op->opcode == TL_OP_REDUCE)
            tl_vec_push(p->arena, out, u->user);
        else if (op->nout == 1 && op->out[0]->type->rank &&
                 p->plan->place[op->out[0]->id].kind != TL_NEST_HOME)
            find_reductions(p, op->out[0], block, out);
    }
}

/* The first of them in the program that can be done while v's home is filled. */
static TlOp *fusion_of(Placer *p, const TlValue *v)
{
    Reductions all = {0};
    TlOp *best = NULL;
    p->stamps++;
    find_reductions(p, v, v->def->block, &all);
    for (uint32_t i = 0; i < all.len; i++) {
        TlOp *r = all.data[i];
        if ((!best || pos_of(p, r) < pos_of(p, best)) &&
            !tl_map_get(&p->plan->fused, (uint64_t)(uintptr_t)r, NULL) && can_fuse(p, r, v))
            best = r;
    }
    return best;
}

static void find_fusions(Placer *p)
{
    for (TlOp *op = p->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        bool by_itself = op->opcode == TL_OP_TRANS || op->opcode == TL_OP_REDUCE;
        if (!can_be_virtual(p, op) || by_itself ||
            p->plan->place[op->out[0]->id].kind != TL_NEST_HOME)
            continue;
        TlOp *r = fusion_of(p, op->out[0]);
        if (!r)
            continue;
        tl_map_put_ptr(&p->plan->fused, op, r);
        tl_map_put_ptr(&p->plan->fused, r, op);
    }
}

/* ---- 6. intervals: the last read of each home ---- */

static uint32_t read_position(Placer *p, const TlValue *v, const TlOp *reader)
{
    const TlBlock *home = v->def ? v->def->block : v->block;
    const TlOp *op = reader;
    while (op->block != home && op->block->parent)
        op = op->block->parent;
    return op == reader ? pos_of(p, op) : span_of(p, op)->end;
}

static void note_reads(Placer *p, TlValue *v, const TlOp *reader)
{
    if (v->type->kind != TL_TILE || v->type->rank == 0 || p->stamp[v->id] == p->stamps)
        return;
    p->stamp[v->id] = p->stamps;
    if (p->plan->place[v->id].kind == TL_NEST_HOME) {
        uint32_t at = read_position(p, v, reader);
        if (at > p->last[v->id])
            p->last[v->id] = at;
        return;
    }
    for (uint32_t i = 0; v->def && i < v->def->nin; i++)
        note_reads(p, tl_in(v->def, i), reader);
}

static void find_reads(Placer *p)
{
    for (TlOp *op = p->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->nout == 1 && p->plan->place[op->out[0]->id].kind == TL_NEST_VIRTUAL)
            continue;
        const TlNestJoined *j = tl_nest_joined(p->plan, op);
        p->stamps++;
        for (uint32_t i = 0; i < op->nin; i++) /* what is stored later is read then */
            note_reads(p, tl_in(op, i), j ? j->store[j->n - 1]->op : op);
    }
}

/* ---- 5. homes ---- */

static int32_t new_buffer(Placer *p, uint64_t bytes, uint32_t first, uint32_t last)
{
    TL_ASSERT(bytes > 0 && first <= last,
              "a home of %llu bytes from %u to %u", (unsigned long long)bytes, first, last);
    tl_vec_push(p->arena, &p->plan->buffers,
                (TlNestBuffer){.bytes = (bytes + 63) / 64 * 64, .first = first, .last = last});
    return (int32_t)p->plan->buffers.len - 1;
}

/* Has a home only whole vectors, no more than one nest without a loop goes over, and no padding,
 * which may be read before it is written? */
static bool is_small(const Placer *p, const TlType *type)
{
    TlNestForm f = tl_nest_form(type);
    uint64_t bytes = (uint64_t)f.elems * tl_gen_elem_bytes(type);
    return f.rank && f.elems == f.extent[f.lane] && f.padded[f.lane] == f.extent[f.lane] &&
           bytes <= 2 * (uint64_t)p->plan->m.vector_bytes;
}

static int32_t home_buffer(Placer *p, const TlType *type, uint32_t first, uint32_t last)
{
    uint64_t bytes = (uint64_t)tl_nest_form(type).elems * tl_gen_elem_bytes(type);
    int32_t b = new_buffer(p, bytes, first, last);
    TlNestForm f = tl_nest_form(type);
    TlNestBuffer *new = &p->plan->buffers.data[b];
    new->small = is_small(p, type);
    new->plain = f.rank && f.padded[f.lane] == f.extent[f.lane];
    new->short_rows = tl_nest_has_short_rows(&p->plan->m, type);
    return b;
}

static void use_buffer(Placer *p, const TlValue *v, int32_t buffer, uint32_t def)
{
    TL_ASSERT(buffer >= 0, "value %u has no home", v->id);
    p->plan->place[v->id].buffer = buffer;
    TlNestBuffer *b = &p->plan->buffers.data[buffer];
    if (def < b->first)
        b->first = def;
    if (def > b->last)
        b->last = def;
    if (p->last[v->id] > b->last)
        b->last = p->last[v->id];
}

/* May the value the loop yields be written over the carried one? */
static bool can_take_over(Placer *p, const TlValue *y, const TlValue *a, const TlOp *loop)
{
    if (!y->def || y->def->block != loop->regions[0] || p->plan->place[y->id].kind != TL_NEST_HOME)
        return false;
    if (p->plan->place[y->id].buffer >= 0 || y->type != a->type)
        return false;
    uint32_t at = pos_of(p, y->def), last = p->last[a->id];
    if (last > at || y->def->nregions)
        return false;
    uint32_t yields = 0;
    for (TlUse *u = y->uses; u; u = u->next)
        yields += u->user->opcode == TL_OP_YIELD && u->user->block == y->def->block;
    if (yields != 1)
        return false;
    if (last < at)
        return true;
    TlOp *op = y->def;
    uint32_t flags = tl_op_info(op->opcode)->flags;
    if (!(flags & F_ELEM) && op->opcode != TL_OP_DOT)
        return false;
    for (uint32_t i = 0; i < op->nin; i++) {
        bool acc = op->opcode != TL_OP_DOT || i == 2;
        TlValue *x = tl_in(op, i);
        if (x->type->rank == 0)
            continue;
        if (acc && !only_elementwise(p, x, a, op->opcode != TL_OP_DOT))
            return false;
        int left = MANY_WALKED;
        if (!acc && may_reach(p, x, a, &left)) /* what is packed must not come from a's home */
            return false;
    }
    return true;
}

/* Does the loop around carry a result on from trip to trip, whatever else reads it in between? */
static bool is_carried_on(const TlOp *loop, uint32_t result)
{
    const TlOp *outer = loop->block->parent;
    const TlValue *begin = tl_in(loop, 3 + result);
    bool is = outer && outer->opcode == TL_OP_FOR && !begin->def && begin->block == loop->block &&
              begin->index > 0 && !begin->uses->next;
    const TlOp *end = is ? outer->regions[0]->last : NULL;
    uint32_t yields = 0;
    for (const TlUse *u = loop->out[result]->uses; u; u = u->next)
        yields += tl_op_info(u->user->opcode)->flags & F_TERM ? 1 : 0;
    return is && yields == 1 && tl_in(end, begin->index - 1) == loop->out[result];
}

static void place_for(Placer *p, TlOp *op)
{
    TlBlock *body = op->regions[0];
    uint32_t first = pos_of(p, op), last = span_of(p, op)->end;
    for (uint32_t k = 0; k < op->nout; k++) {
        TlValue *a = body->args[k + 1], *r = op->out[k], *y = tl_in(body->last, k);
        if (r->type->rank == 0)
            continue;
        int32_t b = is_carried_on(op, k) /* then one home will do */
                        ? p->plan->place[tl_in(op, 3 + k)->id].buffer
                        : home_buffer(p, r->type, first, last);
        if (can_take_over(p, y, a, op))
            use_buffer(p, y, b, first);
        use_buffer(p, a, b, first);
        use_buffer(p, r, b, first);
    }
}

/* Values that `while` passes on unchanged keep the carried home; others get one of their own. */
static void place_while(Placer *p, TlOp *op)
{
    TlBlock *before = op->regions[0], *after = op->regions[1];
    uint32_t first = pos_of(p, op), last = span_of(p, op)->end;
    for (uint32_t k = 0; k < before->nargs; k++)
        if (before->args[k]->type->rank)
            use_buffer(p, before->args[k], home_buffer(p, before->args[k]->type, first, last),
                       first);
    TlMap taken = {.arena = p->arena};
    for (uint32_t m = 0; m < op->nout; m++) {
        TlValue *passed = tl_in(before->last, m + 1);
        if (passed->type->rank == 0)
            continue;
        int32_t b;
        if (passed->block == before && !passed->def && !tl_map_get(&taken, passed->id, NULL)) {
            tl_map_put(&taken, passed->id, 1);
            b = p->plan->place[passed->id].buffer;
        } else {
            b = home_buffer(p, passed->type, first, last);
        }
        use_buffer(p, after->args[m], b, first);
        use_buffer(p, op->out[m], b, first);
    }
}

static void place_extra(Placer *p, TlOp *op)
{
    uint32_t at = pos_of(p, op);
    int32_t first = (int32_t)p->plan->buffers.len;
    if (op->opcode == TL_OP_DOT) {
        for (int i = 0; i < 2; i++) {
            TlNestForm f = tl_nest_form(tl_in(op, (uint32_t)i)->type);
            uint64_t bytes = tl_dtype_bits(op->out[0]->type->dtype) == 64 ? 8 : 4;
            new_buffer(p, (uint64_t)f.elems * bytes, at, at);
        }
        new_buffer(p, (uint64_t)tl_nest_form(op->out[0]->type).elems * 4, at,
                   at); /* f16 results accumulate in f32 */
    } else if (op->opcode == TL_OP_PRINT && tl_in(op, 0)->type->rank) {
        new_buffer(
            p, (uint64_t)tl_type_elems(tl_in(op, 0)->type) * tl_gen_elem_bytes(tl_in(op, 0)->type),
            at, at);
    } else if (op->opcode == TL_OP_HISTOGRAM) {
        TlNestTables t = tl_nest_tables(op);
        uint64_t bytes = (uint64_t)tl_dtype_bytes(op->out[0]->type->dtype);
        new_buffer(p, (uint64_t)(t.n * t.length) * bytes + TL_NEST_COUNTED_BYTES, at, at);
    } else if ((op->opcode == TL_OP_YIELD || op->opcode == TL_OP_CONDITION) &&
               op->block->parent->opcode != TL_OP_IF) {
        for (uint32_t i = 0; i < op->nin; i++) /* room for a parallel copy */
            if (tl_in(op, i)->type->rank)
                home_buffer(p, tl_in(op, i)->type, at, at);
    } else {
        return;
    }
    tl_map_put(&p->plan->extra, (uint64_t)(uintptr_t)op, (uint64_t)first);
}

static void place_homes(Placer *p)
{
    for (TlOp *op = p->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode == TL_OP_FOR)
            place_for(p, op);
        if (op->opcode == TL_OP_WHILE)
            place_while(p, op);
        const TlOp *with = op->opcode == TL_OP_REDUCE ? tl_map_get_ptr(&p->plan->fused, op) : NULL;
        uint32_t at = pos_of(p, with ? with : op);
        for (uint32_t i = 0; i < op->nout; i++) {
            TlValue *v = op->out[i];
            TlNestPlace *place = &p->plan->place[v->id];
            if (v->type->kind == TL_TILE && place->kind == TL_NEST_HOME && place->buffer < 0)
                use_buffer(p, v, home_buffer(p, v->type, at, at), at);
        }
        place_extra(p, op);
    }
}

/* ---- 7. products in loops, and by themselves ---- */

/* A product by itself: in a loop that is none, or in no loop. */
static void place_lone_product(Placer *p, TlOp *dot)
{
    const TlOp *loop = dot->block->parent;
    if (loop && tl_map_get_ptr(&p->plan->products, loop))
        return;
    TlNestProduct *x = tl_nest_lone_product(p->plan, dot, p->arena);
    if (!x)
        return;
    uint32_t at = pos_of(p, dot);
    x->a = new_buffer(p, x->a_bytes, at, at);
    x->b = new_buffer(p, x->b_bytes, at, at);
    tl_map_put_ptr(&p->plan->products, dot, x);
}

static void place_products(Placer *p)
{
    TlOp *first_op = p->products ? p->fn->body->first : NULL;
    for (TlOp *op = first_op; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode == TL_OP_DOT)
            place_lone_product(p, op);
        TlNestProduct *x =
            op->opcode == TL_OP_FOR ? tl_nest_product(p->fn, p->plan, op, p->arena) : NULL;
        if (!x)
            continue;
        /* What stays from program to program shares its room with nothing. */
        Span here = *span_of(p, op), b = x->keeps_b ? (Span){0, UINT32_MAX} : here;
        Span of_a = x->slides ? *span_of(p, x->slides) : here;
        x->a = x->a_bytes ? new_buffer(p, x->a_bytes, of_a.pos, of_a.end) : -1;
        x->b = new_buffer(p, x->b_bytes * x->slots, b.pos, b.end);
        Span around = x->ngathered ? *span_of(p, x->around[x->ngathered - 1]) : here;
        uint64_t chunks = 1;
        uint64_t words = TL_NEST_WAITING_WORDS + TL_NEST_GATHERED * TL_NEST_CHUNK_WORDS;
        if (x->ngathered) {
            chunks = TL_NEST_GATHERED;
            x->gathered = new_buffer(p, words * sizeof(int64_t), around.pos, around.end);
        }
        x->tags = p->plan->zeroed_bytes;
        p->plan->zeroed_bytes += x->keeps_b ? x->tagged * TL_NEST_TAG_BYTES : 0;
        x->stored = p->plan->zeroed_bytes;
        p->plan->zeroed_bytes += x->stores ? 64 : 0;
        if (x->a_rows) {
            int64_t rows = tl_in(x->dot, 0)->type->shape[0], listed = rows, length = x->depth;
            if (x->a_transposed)
                listed = x->depth, length = rows * x->column_step;
            uint64_t bytes = (uint64_t)listed * sizeof(int64_t);
            x->listed = new_buffer(p, chunks * bytes, around.pos, around.end);
            x->zeros = p->plan->zeroed_bytes;
            p->plan->zeroed_bytes += (uint64_t)(length * tl_dtype_bytes(x->dtype) + 63) / 64 * 64;
        }
        tl_map_put_ptr(&p->plan->products, op, x);
    }
}

/* ---- 8. offsets ---- */

static int by_offset(const void *a, const void *b)
{
    uint64_t x = (*(const TlNestBuffer *const *)a)->offset,
             y = (*(const TlNestBuffer *const *)b)->offset;
    return (x > y) - (x < y);
}

/* `others`: room for k buffers */
static uint64_t first_fit(const TlNests *plan, uint32_t k, const TlNestBuffer **others)
{
    const TlNestBuffer *b = &plan->buffers.data[k];
    uint64_t at = plan->zeroed_bytes;
    uint32_t n = 0;
    for (uint32_t i = 0; i < k; i++) {
        const TlNestBuffer *o = &plan->buffers.data[i];
        if (!o->small && o->first <= b->last && b->first <= o->last)
            others[n++] = o;
    }
    qsort(others, n, sizeof(TlNestBuffer *), by_offset);
    for (uint32_t i = 0; i < n && others[i]->offset < at + b->bytes; i++)
        if (at < others[i]->offset + others[i]->bytes)
            at = others[i]->offset + others[i]->bytes;
    return at;
}

void tl_nest_assign_offsets(TlNests *plan)
{
    const TlNestBuffer **others =
        TL_NEW_ARRAY(plan->arena, const TlNestBuffer *, plan->buffers.len + 1);
    plan->scratch_bytes = plan->zeroed_bytes;
    for (uint32_t k = 0; k < plan->buffers.len; k++) {
        TlNestBuffer *b = &plan->buffers.data[k];
        if (b->small)
            continue;
        b->offset = first_fit(plan, k, others);
        if (b->offset + b->bytes > plan->scratch_bytes)
            plan->scratch_bytes = b->offset + b->bytes;
    }
}

void tl_nest_place(TlNests *plan)
{
    const TlFn *fn = plan->fn;
    TlArena *arena = plan->arena;
    Placer p = {.fn = fn, .arena = arena, .plan = plan, .products = !plan->check};
    uint32_t n = fn->nvalues + 1;
    tl_map_init(&p.span, arena);
    tl_map_init(&p.no_product, arena);
    p.plan->place = TL_NEW_ARRAY(arena, TlNestPlace, n);
    for (uint32_t i = 0; i < n; i++)
        p.plan->place[i].buffer = -1;
    p.cost = TL_NEW_ARRAY(arena, int, n);
    p.work = TL_NEW_ARRAY(arena, int, n);
    p.reads = TL_NEW_ARRAY(arena, bool, n);
    plan->root = TL_NEW_ARRAY(arena, TlOp *, n);
    p.last = TL_NEW_ARRAY(arena, uint32_t, n);
    p.stamp = TL_NEW_ARRAY(arena, uint32_t, n);
    number(&p, fn->body);
    p.writer = TL_NEW_ARRAY(arena, TlOp *, p.n + 2);
    find_writers(&p, fn->body);
    find_costs(&p);
    decide_block(&p, fn->body);
    read_homes(&p);
    find_fusions(&p);
    find_reads(&p);
    place_homes(&p);
    place_products(&p);
}
