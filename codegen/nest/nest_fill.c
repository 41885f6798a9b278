/* Nests, and those that fill homes: with values, with copies, with what regions carry. */
#include "codegen/nest/nest.h"

/* ---- the list ---- */

TlNest *tl_nest_new(TlNests *plan, TlNestKind kind, TlOp *op, const TlType *type)
{
    TL_ASSERT(type->kind == TL_TILE, "a nest over a type of kind %d", (int)type->kind);
    TlNest *n = TL_NEW(plan->arena, TlNest);
    *n = (TlNest){.kind = kind, .op = op, .type = *type, .form = tl_nest_form(type)};
    n->lane = n->form.lane;
    n->width = n->tested = n->rows = n->parts = 1;
    n->from = n->home = n->last_axis = n->rows_dim = -1;
    n->end = INT64_MAX;
    n->nvalues = plan->check ? TL_NEST_MOST_VALUES + 1 : 0; /* checked code is made once */
    tl_map_init(&n->seen, plan->arena);
    if (!tl_map_get(&plan->first, (uint64_t)(uintptr_t)op, NULL))
        tl_map_put(&plan->first, (uint64_t)(uintptr_t)op, plan->all.len);
    tl_vec_push(plan->arena, &plan->all, n);
    return n;
}

void tl_nest_take_whole(TlNest *n, int lanes)
{
    n->width = n->tested = tl_nest_fit_width(n->form.padded[n->lane], lanes);
    n->end = 0;
}

TlNest *tl_nest_of(const TlNests *plan, const TlOp *op, uint32_t n)
{
    uint64_t first;
    if (!tl_map_get(&plan->first, (uint64_t)(uintptr_t)op, &first))
        return NULL;
    uint64_t i = first + n;
    return i < plan->all.len && plan->all.data[i]->op == op ? plan->all.data[i] : NULL;
}

/* ---- homes ---- */

/* Is v, at each number of an element, computed from elements with that number of homes? Values
 * that have been seen are. */
static bool is_by_number(const TlNests *plan, const TlValue *v, const TlType *like, bool own,
                         TlMap *seen)
{
    if (v->type->kind == TL_TILE && v->type->rank == 0)
        return true;
    if (!tl_same_shape(v->type, like) || v->type->ptr)
        return false;
    if (tl_map_get(seen, v->id, NULL))
        return true;
    tl_map_put(seen, v->id, 1);
    if (!own && plan->place[v->id].kind == TL_NEST_HOME)
        return true;
    const TlOp *op = v->def;
    if (!op || !(tl_op_info(op->opcode)->flags & F_ELEM))
        return op && (op->opcode == TL_OP_CONST ||
                      (op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0));
    for (uint32_t i = 0; i < op->nin; i++)
        if (!is_by_number(plan, tl_in(op, i), like, false, seen))
            return false;
    return true;
}

/* The type as one row when v's op makes all elements the same, so that one loop fills it, or when
 * its rows are short, so that vectors hold several. */
static TlType row_of(const TlNests *plan, const TlValue *v, const TlType *type, bool own)
{
    TL_ASSERT(type->kind == TL_TILE, "value %u is no tile", v->id);
    const TlOp *op = v->def;
    bool equal = op && (own || plan->place[v->id].kind != TL_NEST_HOME) &&
                 (op->opcode == TL_OP_CONST ||
                  (op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0));
    TlType row = tl_nest_row(type);
    TlMap seen = {.arena = plan->arena};
    bool rows = tl_nest_has_short_rows(&plan->m, type) && !plan->check &&
                is_by_number(plan, v, type, own, &seen);
    return rows || (equal && tl_nest_form(&row).elems == row.shape[0]) ? row : *type;
}

/* Is a home the transposition of another one that moves the lane dimension, and do blocks fit the
 * extents? */
static bool find_transpose(const TlNests *plan, TlNest *n)
{
    TlOp *op = n->value->def;
    if (!op || op->opcode != TL_OP_TRANS ||
        (plan->place[n->value->id].kind == TL_NEST_HOME && !n->own))
        return false;
    const TlValue *x = tl_in(op, 0);
    if (plan->place[x->id].kind != TL_NEST_HOME || x->type->ptr)
        return false;
    const int64_t *perm = tl_attr(op, TL_ATTR_PERM)->u.ints;
    TlNestForm from = tl_nest_form(x->type);
    int other = -1;
    for (int d = 0; d < from.rank; d++)
        if (perm[d] == from.lane)
            other = d;
    if (other < 0 || other == n->form.lane)
        return false;
    int w = tl_nest_fit_width(from.extent[from.lane], tl_nest_transpose_width(plan, n->type.dtype));
    w = tl_nest_fit_width(n->form.extent[n->form.lane], w);
    if (w < 4)
        return false;
    n->kind = TL_NEST_TRANSPOSE;
    n->from = plan->place[x->id].buffer;
    n->transposed = n->width = n->tested = w;
    n->transposed_dim = other;
    n->end = 0;
    return true;
}

/* Can vectors of v begin at any element along d, where all is inside, and twice? It is not computed
 * from what this nest writes over. */
static bool may_overlap(const TlNests *plan, const TlNest *n, const TlValue *v, bool own, int depth)
{
    enum { MOST_DEPTH = 16 };
    const TlOp *op = v->def;
    const TlNestPlace *place = &plan->place[v->id];
    int d = n->form.lane;
    if (v->type->rank == 0 || (!own && place->kind == TL_NEST_HOME))
        return v->type->rank == 0 ||
               (tl_nest_form(v->type).lane == d && place->buffer != n->home);
    if (!op || depth > MOST_DEPTH || v->type->ptr)
        return false;
    if (op->opcode == TL_OP_LOAD) {
        const TlNestAccess *a = tl_map_get_ptr(&plan->access, op);
        return !a->asks && !a->place.mask && a->has_interval && !tl_nest_pattern_along(a, d) &&
               tl_dtype_bits(a->place.base->type->dtype) >= 8 && tl_nest_is_contiguous_inside(a, d);
    }
    if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA)
        return true;
    if (op->opcode == TL_OP_BROADCAST)
        return tl_in(op, 0)->type->rank == 0;
    bool is_elementwise = tl_op_info(op->opcode)->flags & F_ELEM || op->opcode == TL_OP_CONVERT;
    for (uint32_t i = 0; is_elementwise && i < op->nin; i++)
        if (!may_overlap(plan, n, tl_in(op, i), false, depth + 1))
            return false;
    return is_elementwise;
}

/* Before it is split, so that n->end is not yet that of whole vectors. */
static bool overlaps(const TlNests *plan, const TlNest *n)
{
    int lane = n->form.lane;
    int64_t extent = n->form.rank ? n->form.extent[lane] : 0;
    return n->width > 1 && extent > n->width && extent % n->width && n->end != 0 &&
           (n->end < 0 || n->end >= extent) && !plan->buffers.data[n->home].small &&
           may_overlap(plan, n, n->value, n->own, 0);
}

/* Does it turn words of a home (tl_nest_turned_words)? Then all words of as many vectors of that
 * home are taken together, if registers hold these twice: vectors are read once, and log2(words)
 * shuffles make one of the result. Every few words of the same vectors, for each result anew, take
 * as many loads and shuffles as there are words. */
static void find_words(const TlNests *plan, TlNest *n)
{
    const TlOp *op = n->own ? n->value->def : NULL;
    if (!op || plan->place[n->value->id].way != TL_NEST_TURNS_WORDS || tl_nest_is_split(n) ||
        n->width <= 4)
        return;
    int words = tl_nest_turned_words(op), d = tl_nest_word_axis(op);
    if (d < 0 || (words & (words - 1)) || 2 * words > plan->m.nregs)
        return;
    n->words = words;
    n->words_dim = d;
}

bool tl_nest_takes_words(const TlNest *n)
{
    return n->words && !n->unrolled && !n->boxed && !n->keep;
}

/* All elements of v, converted to dtype, into a home. own: v's own, by its op. */
static void add_fill(TlNests *plan, TlOp *at, TlValue *v, TlDtype dtype, int32_t home, bool own)
{
    TL_ASSERT(home >= 0 && (uint32_t)home < plan->buffers.len, "value %u has no home", v->id);
    TlType type = *v->type;
    type.dtype = dtype;
    type = row_of(plan, v, &type, own);
    TlNest *n = tl_nest_new(plan, TL_NEST_FILL, at, &type);
    n->value = v;
    n->home = home;
    n->own = own;
    if (find_transpose(plan, n))
        return;
    int limit = (int)(2 * (uint64_t)plan->m.vector_bytes / tl_gen_elem_bytes(&type));
    int width = tl_nest_width(plan, v, TL_NEST_LANES, own, &n->limit);
    n->width = tl_nest_fit_width(n->form.padded[n->form.lane], width < limit ? width : limit);
    tl_nest_ask_value(plan, n, v, n->form.lane, own);
    bool may_overlap = overlaps(plan, n);
    tl_nest_split(plan, n, n->form.extent[n->form.lane], n->width);
    n->overlaps = may_overlap && n->split == TL_NEST_SPLIT;
    find_words(plan, n);
}

void tl_nest_copy(TlNests *plan, TlOp *at, const TlType *type, TlDtype from_dtype, int32_t from,
                  int32_t to, int lanes)
{
    TL_ASSERT(from >= 0 && to >= 0 && from != to, "a copy from buffer %d to %d", (int)from,
              (int)to);
    TlType row = tl_nest_row(type);
    bool rows = tl_nest_has_short_rows(&plan->m, type);
    TlNest *n = tl_nest_new(plan, TL_NEST_COPY, at, rows ? &row : type);
    n->from = from;
    n->from_dtype = from_dtype;
    n->home = to;
    tl_nest_take_whole(n, lanes < TL_NEST_LANES ? lanes : TL_NEST_LANES);
}

void tl_nest_materialise(TlNests *plan, TlOp *at, TlValue *v, TlDtype dtype, int32_t home)
{
    TlNestPlace place = plan->place[v->id];
    if (place.kind != TL_NEST_HOME || place.buffer != home)
        add_fill(plan, at, v, dtype, home, false);
}

void tl_nest_define(TlNests *plan, TlOp *op)
{
    TlValue *v = op->out[0];
    add_fill(plan, op, v, v->type->dtype, plan->place[v->id].buffer, true);
}

/* ---- what regions carry ---- */

static bool reads_home(const TlNests *plan, const TlValue *v)
{
    if (v->type->kind != TL_TILE || v->type->rank == 0)
        return false;
    if (plan->place[v->id].kind == TL_NEST_HOME)
        return true;
    for (uint32_t i = 0; v->def && i < v->def->nin; i++)
        if (reads_home(plan, tl_in(v->def, i)))
            return true;
    return false;
}

/* Is the value computed from one of the homes that this move overwrites? */
static bool is_endangered(const TlNests *plan, const TlValue *v, int32_t own, uint32_t n,
                          TlValue *const *to)
{
    TlNestPlace p = plan->place[v->id];
    if (p.kind != TL_NEST_HOME)
        return reads_home(plan, v);
    if (p.buffer == own)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (to[i]->type->rank && plan->place[to[i]->id].buffer == p.buffer)
            return true;
    return false;
}

void tl_nest_move(TlNests *plan, TlOp *op, uint32_t first, uint32_t n, TlValue *const *to)
{
    TL_ASSERT(first + n <= op->nin, "%s gives %u values of %u", tl_op_info(op->opcode)->text, n,
              op->nin);
    uint64_t extra = 0;
    bool has_room = tl_map_get(&plan->extra, (uint64_t)(uintptr_t)op, &extra);
    int32_t *temporary = TL_NEW_ARRAY(plan->arena, int32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        TlValue *v = tl_in(op, first + i);
        temporary[i] = -1;
        if (v->type->rank == 0)
            continue;
        int32_t room = has_room ? (int32_t)extra++ : -1;
        if (!has_room || !is_endangered(plan, v, plan->place[to[i]->id].buffer, n, to))
            continue;
        tl_nest_materialise(plan, op, v, v->type->dtype, room);
        temporary[i] = room;
    }
    for (uint32_t i = 0; i < n; i++) {
        TlValue *v = tl_in(op, first + i);
        if (v->type->rank == 0)
            continue;
        int32_t home = plan->place[to[i]->id].buffer;
        if (temporary[i] >= 0)
            tl_nest_copy(plan, op, v->type, v->type->dtype, temporary[i], home,
                         2 * plan->m.vector_bytes / (int)tl_gen_elem_bytes(v->type));
        else
            tl_nest_materialise(plan, op, v, v->type->dtype, home);
    }
}
