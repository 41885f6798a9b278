/* Checks the consistency of a plan. Code generation relies on these rules: it would emit wrong
 * code for a plan that breaks one, and it decides nothing that could repair it. */
#include "codegen/nest/nest.h"

#include <string.h>

/* ---- homes ---- */

static const char *check_buffers(const TlNests *plan)
{
    for (uint32_t i = 0; i < plan->buffers.len; i++) {
        const TlNestBuffer *b = &plan->buffers.data[i];
        if (b->small && b->bytes > TL_NEST_STRIP * (uint64_t)plan->m.vector_bytes)
            return "a home in registers is too large";
        if (b->small)
            continue;
        if (b->offset < plan->zeroed_bytes || b->offset + b->bytes > plan->scratch_bytes)
            return "a home lies outside of scratch memory";
        for (uint32_t j = 0; j < i; j++) {
            const TlNestBuffer *c = &plan->buffers.data[j];
            bool meet = b->first <= c->last && c->first <= b->last;
            if (!c->small && meet && b->offset < c->offset + c->bytes &&
                c->offset < b->offset + b->bytes)
                return "homes that are needed at the same time overlap";
        }
    }
    return NULL;
}

static bool is_home(const TlNests *plan, int32_t home, uint64_t bytes)
{
    return home >= 0 && (uint32_t)home < plan->buffers.len &&
           plan->buffers.data[home].bytes >= bytes;
}

static const char *check_place(const TlNests *plan, const TlValue *v)
{
    TlNestPlace x = plan->place[v->id];
    if (v->type->kind != TL_TILE)
        return NULL;
    if (v->type->rank == 0)
        return x.kind == TL_NEST_SCALAR ? NULL : "a scalar has a place";
    if (x.kind == TL_NEST_SCALAR)
        return "a tile has no place";
    if (x.kind == TL_NEST_VIRTUAL)
        return v->def ? NULL : "a carried tile is virtual";
    uint64_t bytes = (uint64_t)tl_nest_form(v->type).elems * tl_gen_elem_bytes(v->type);
    return is_home(plan, x.buffer, bytes) ? NULL : "a tile does not fit its home";
}

/* ---- nests ---- */

static bool is_power(int n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static const char *check_vector(const TlNest *n)
{
    if (!is_power(n->width) || n->width > TL_NEST_LANES)
        return "lanes are no power of two";
    if (!is_power(n->tested) || n->tested > n->width)
        return "more lanes where elements are tested than where they are not";
    if (n->width == 1)
        return NULL;
    if (n->lane < 0)
        return "one element in several lanes";
    int64_t room = n->kind == TL_NEST_PACK && n->is_b && n->lane == 1 ? n->width
                   : n->kind == TL_NEST_TRANSPOSE                     ? n->form.extent[n->lane]
                                                                      : n->form.padded[n->lane];
    return room % n->width ? "lanes do not divide the extent" : NULL;
}

/* What stays is in memory, and all that its nest fills. */
static const char *check_keep(const TlNests *plan, const TlNest *n)
{
    const TlNestKeep *k = n->keep;
    if (!k)
        return NULL;
    if (n->kind != TL_NEST_FILL || n->unrolled || n->lane < 1 || plan->buffers.data[n->home].small)
        return "rows are kept of what is no home of rows in memory";
    if (k->rows < 1 || k->step < 1 || k->rows + k->step != n->form.extent[0])
        return "rows that are kept and those that are computed are not all rows";
    int64_t last = (k->turns - 1) * k->step * n->form.stride[0] + n->form.elems;
    if (k->turns < 1 || k->bytes < (uint64_t)last * tl_gen_elem_bytes(&n->type) ||
        plan->buffers.data[n->home].bytes < k->bytes * (uint64_t)k->slots)
        return "homes that are kept do not fit";
    return k->tags + (uint64_t)k->slots * TL_NEST_TAG_BYTES > plan->zeroed_bytes
               ? "tags of homes are not 0 at first"
               : NULL;
}

/* What is left out where all is inside is computed by the store, row by row. */
static const char *check_columns(const TlNests *plan, const TlNest *n)
{
    const TlNest *s = n->columns;
    if (!s)
        return NULL;
    if ((!plan->whole && !s->sliding_rows.len) || s->kind != TL_NEST_STORE || s->columns != s ||
        s->joined || s->unrolled)
        return "columns of what does not go down any";
    if (s->rows_dim < 0 || s->rows_dim == s->lane || s->form.extent[s->rows_dim] < 2 ||
        s->form.extent[s->lane] % s->width || (s->column_width && s->width % s->column_width))
        return "columns without rows of whole vectors";
    if (n == s)
        return NULL;
    bool is_home = n->kind == TL_NEST_FILL && n->own && plan->place[n->value->id].columns == s;
    return is_home && !n->keep && n->lane == s->lane ? NULL : "columns of what is no home of rows";
}

static const char *check_split(const TlNest *n)
{
    if (tl_nest_is_split(n) && !n->asks.len)
        return "split, and nothing to test";
    if (tl_nest_is_split(n) && n->nvalues > TL_NEST_MOST_VALUES)
        return "split, and too long for it";
    if (n->split == TL_NEST_ONE && (n->width != n->form.padded[n->lane] || n->end >= 0))
        return "not one vector";
    if (tl_nest_is_split(n) && n->end >= 0 &&
        (n->end > n->form.extent[n->lane] || n->end % n->width))
        return "the end of what is inside is within a vector";
    for (uint32_t i = 0; i < n->asks.len; i++)
        if (!n->asks.data[i].access->has_interval || n->asks.data[i].access->asks)
            return "asks of an access that has no interval";
    if (n->forks_rows && (!n->zero_rows || n->form.elems != n->form.padded[n->form.lane]))
        return "rows that may be outside have code of their own, and there are none, or several";
    if (n->overlaps && (n->kind != TL_NEST_FILL || n->split != TL_NEST_SPLIT || n->unrolled ||
                        n->form.extent[n->lane] <= n->width))
        return "the last vector overlaps, and there is no other";
    if (n->boxed_axes && (!n->boxed || !n->boxed->has_interval))
        return "skips what is outside of nothing";
    if (n->kind == TL_NEST_FILL && n->boxed && (n->unrolled || n->keep || n->columns))
        return "fills what is wanted, and other rows";
    if (n->reach && (n->kind != TL_NEST_FILL || n->unrolled || n->keep || n->columns || n->boxed ||
                     n->reach->dim == n->lane || n->reach->more <= 0))
        return "fills what later trips need, and other rows";
    if (n->down.len && (n->kind != TL_NEST_FILL || !n->own || n->split != TL_NEST_PLAIN ||
                        n->unrolled || n->keep || n->columns || n->boxed || n->chosen[1] ||
                        n->chosen_row || n->form.rank != 2 || n->lane != 1))
        return "goes down rows that are tested, or none";
    if ((n->chosen[1] || n->chosen_row) &&
        (n->kind != TL_NEST_FILL || n->unrolled || n->keep || n->columns || n->boxed || n->reach ||
         n->lane == 0 || n->form.rank != 2))
        return "fills what is chosen, and other rows";
    for (uint32_t i = 0; n->kind != TL_NEST_PACK && n->boxed_axes >> i; i++)
        if (n->boxed_axes >> i & 1 && n->boxed->axis[i].dim == n->lane)
            return "skips lanes";
    return NULL;
}

static const char *check_repeated(const TlNests *plan, const TlNest *n)
{
    bool may = plan->whole && n->split == TL_NEST_SPLIT && !n->unrolled;
    return n->repeated && !may ? "made without a loop, but not where all is inside" : NULL;
}

static const char *check_store(const TlNests *plan, const TlNest *n)
{
    if ((n->kind == TL_NEST_STORE) != (n->store != NULL))
        return "a store without its access";
    if (n->unrolled && (n->streams || n->next.len))
        return "streams or prefetches rows, and has none";
    if (n->streams && (n->kind != TL_NEST_STORE || !tl_nest_is_split(n) || !plan->streams))
        return "streams without whole vectors";
    bool interleaved = n->joined && !n->joined->apart;
    if (n->streams &&
        (n->width * tl_gen_elem_bytes(&n->type) % TL_NEST_STREAM_BYTES || n->store->place.mask ||
         !(interleaved || tl_nest_is_contiguous(n->store, n->form.lane))))
        return "streams what does not lie side by side";
    return n->streams_wide && !n->streams ? "streams by registers, but not at all" : NULL;
}

static const char *check_prefetch(const TlNest *n)
{
    for (uint32_t i = 0; i < n->next.len; i++) {
        const TlNestAccess *a = n->next.data[i];
        if (!a->loads || a->place.rank != n->type.rank ||
            memcmp(a->place.shape, n->type.shape, n->type.rank * sizeof *n->type.shape) != 0)
            return "asks for a row of another shape";
    }
    if (n->ahead && (!n->next.len || !n->store))
        return "asks for what it does not store";
    for (uint32_t i = 0; i < n->fetch.len; i++)
        if (!n->fetch.data[i]->loads)
            return "asks further on after no load";
    return NULL;
}

static const char *check_reduction(const TlNest *n)
{
    bool is_reduction = n->kind == TL_NEST_REDUCE || n->kind == TL_NEST_SCAN;
    if (is_reduction != (n->reduce != NULL))
        return "a reduction of nothing";
    if (!is_reduction)
        return NULL;
    if (n->axis < 0 || n->axis >= n->form.rank)
        return "a reduction along no axis";
    if (n->along && (n->axis != n->form.lane || n->width < 2))
        return "along lanes that are elsewhere";
    if (!n->on_vectors && n->width > 1)
        return "a combiner of scalars on vectors";
    if (!is_power(n->rows) || !is_power(n->parts) ||
        (uint32_t)(n->rows * n->parts) * n->reduce->nout > TL_NEST_SUMS)
        return "too many partial results";
    if (n->rows > 1 && (n->rows_dim < 0 || n->rows > n->form.extent[n->rows_dim]))
        return "more rows together than there are";
    if (n->rows > TL_NEST_ROWS || n->reduce->nout > TL_NEST_SUMS)
        return "more rows or values than a reduction has room for";
    if (n->singles && (n->parts < 2 || !tl_nest_is_split(n)))
        return "vectors are left by no steps";
    if (n->parts > 1 && !n->from_identity)
        return "partial results that begin with nothing";
    return n->stops && n->split != TL_NEST_SPLIT ? "stops at an end that it does not know" : NULL;
}

static const char *check_words(const TlNest *n)
{
    if (!tl_nest_takes_words(n))
        return NULL;
    int d = n->words_dim;
    if (n->kind != TL_NEST_FILL || !n->own || tl_nest_is_split(n))
        return "words of what is no home of its own";
    if (!is_power(n->words) || n->words > TL_NEST_TURNED)
        return "more words together than there is room for";
    bool fits = d >= 0 && d != n->form.lane && n->form.extent[d] % n->words == 0;
    return fits ? NULL : "words along no axis of so many";
}

static const char *check_homes(const TlNests *plan, const TlNest *n)
{
    static const bool FILLS[TL_NEST_KINDS] = {
        [TL_NEST_FILL] = true, [TL_NEST_TRANSPOSE] = true, [TL_NEST_COPY] = true,
        [TL_NEST_ADD] = true,  [TL_NEST_DOT] = true,       [TL_NEST_PRODUCT] = true};
    uint64_t bytes = (uint64_t)n->form.elems * tl_gen_elem_bytes(&n->type);
    if (!FILLS[n->kind])
        return NULL;
    if (n->kind == TL_NEST_COPY || n->kind == TL_NEST_TRANSPOSE)
        if (n->from < 0 || n->from == n->home)
            return "a copy of itself";
    if (n->kind == TL_NEST_FILL && n->own &&
        (plan->place[n->value->id].kind != TL_NEST_HOME ||
         plan->place[n->value->id].buffer != n->home))
        return "a value is computed into a home that is not its own";
    return is_home(plan, n->home, bytes) ? NULL : "a nest does not fit its home";
}

static const char *check_product(const TlNest *n)
{
    if (n->kind != TL_NEST_DOT && n->kind != TL_NEST_PRODUCT)
        return NULL;
    bool tiles = n->product && n->product->tile;
    if (n->mr < 1 || n->nv < 1 || (!tiles && n->mr * n->nv > TL_NEST_ACCUMULATORS) ||
        (tiles && (n->mr > TL_NEST_TILES * TL_CPU_TILE_ROWS || n->nv > TL_NEST_TILES)))
        return "a block of sums is larger than the registers";
    if (tiles && (n->width * 4 != TL_CPU_TILE_BYTES || n->narrow || n->halves))
        return "panels that are no tiles";
    if (n->kind == TL_NEST_DOT && !n->product)
        return NULL;
    if (n->panel != (int64_t)n->nv * n->width || n->form.padded[1] % n->panel)
        return "panels do not divide the columns";
    if (n->halves && (n->panel != n->form.padded[1] || n->mr % 2 || n->small_mr % 2 ||
                      n->form.extent[1] > n->panel - n->width / 2))
        return "rows that share a vector have more columns than it";
    if (!n->pack[1] || (!n->pack[0] && !n->product->a_load))
        return "an operand is not packed";
    const TlNestFew *f = &n->few_rows;
    int lanes = f->along ? 1 : n->width, columns = f->nv * lanes;
    int single = f->single ? f->single * lanes : columns;
    int sums = f->mr + (n->product && n->product->flips); /* and those of B, where A is flipped */
    if (f->rows && (sums * f->nv > TL_NEST_ACCUMULATORS || n->form.padded[1] % columns ||
                    n->form.padded[1] % single))
        return "a block of few rows is too large, or does not divide the columns";
    if (f->some && (f->great != n->mr || f->great * f->nv > TL_NEST_ACCUMULATORS))
        return "a block of some rows is too large, or is none of packed B";
    return n->pack[1]->width > 1 && n->pack[1]->lane == 1 && n->panel % n->pack[1]->width
               ? "vectors of B go on from panel to panel"
               : NULL;
}

/* Of each state: how many neighbours it is of. */
static const char *check_taps(const TlNestTaps *t, int most, bool once)
{
    int of[TL_NEST_TAP_STEPS + 1] = {1};
    if (t->n < 2 || t->n > TL_NEST_TAPS || t->nsteps < 1 || t->nsteps > TL_NEST_TAP_STEPS)
        return "no neighbours, or too many";
    for (int k = 0; k < t->nsteps; k++) {
        const TlNestTapStep *s = &t->step[k];
        if (s->of < 0 || s->of > k || s->with < 0 || s->with > k || s->by < 1 || s->by > most)
            return "a step of states that are not there";
        if (once ? s->by != of[s->with] : s->by > of[s->with])
            return "a step leaves neighbours out, or adds them twice";
        of[k + 1] = s->by + of[s->of];
    }
    for (int k = 0; k < t->n; k++)
        if (!t->tap[k])
            return "neighbours with gaps";
    return of[t->nsteps] == t->n ? NULL : "steps of more or fewer neighbours";
}

static const char *check_sliding(const TlNests *plan, const TlNest *n)
{
    const char *fault = NULL;
    uint32_t states = 0, carried = 0;
    for (uint32_t i = 0; i < n->spreads.len; i++) {
        const TlNestSpread *s = tl_map_get_ptr(&plan->spreads, n->spreads.data[i]);
        carried += s->carried != 0;
        if (s->carried && (n->width / s->like->period * s->like->step != s->carried ||
                           s->span > 2 * s->carried || s->span < s->carried))
            return "elements of the vector before that it does not have";
    }
    states += carried;
    if ((n->sliding.len || carried) && (n->split != TL_NEST_SPLIT || n->overlaps || n->unrolled ||
                                        n->columns || n->joined || plan->abreast || n->width < 2))
        return "slides along no row of whole vectors";
    for (uint32_t i = 0; i < n->sliding.len; i++)
        for (uint32_t k = 0; !fault && k < n->sliding.data[i]->taps.len; k++) {
            const TlNestTaps *t = n->sliding.data[i]->taps.data[k];
            fault = check_taps(t, n->width, n->sliding.data[i]->op->opcode == TL_OP_ADD);
            states += (uint32_t)t->nsteps;
        }
    if (n->sliding_rows.len && (n->columns != n || n->sliding.len || carried))
        return "slides down what is no column";
    for (uint32_t i = 0; i < n->sliding_rows.len; i++)
        for (uint32_t k = 0; !fault && k < n->sliding_rows.data[i]->taps.len; k++)
            fault = check_taps(n->sliding_rows.data[i]->taps.data[k], TL_NEST_TAPS,
                               n->sliding_rows.data[i]->op->opcode == TL_OP_ADD);
    return fault ? fault : states > TL_NEST_SUMS ? "more is carried than there is room for" : NULL;
}

static const char *check_nest(const TlNests *plan, const TlNest *n)
{
    const char *fault = check_vector(n);
    fault = fault ? fault : check_split(n);
    fault = fault ? fault : check_keep(plan, n);
    fault = fault ? fault : check_columns(plan, n);
    fault = fault ? fault : check_repeated(plan, n);
    fault = fault ? fault : check_store(plan, n);
    fault = fault ? fault : check_prefetch(n);
    fault = fault ? fault : check_words(n);
    fault = fault ? fault : check_sliding(plan, n);
    fault = fault ? fault : check_reduction(n);
    fault = fault ? fault : check_homes(plan, n);
    return fault ? fault : check_product(n);
}

/* ---- the plan ---- */

/* Is there a nest that computes a home which an op's result has? */
static bool is_filled(const TlNests *plan, const TlOp *op)
{
    const TlOp *at = op->opcode == TL_OP_REDUCE ? tl_map_get_ptr(&plan->fused, op) : NULL;
    const TlBlock *b = op->block;
    bool in_product = b->parent && tl_map_get_ptr(&plan->products, b->parent) != NULL;
    return op->nregions > (op->opcode == TL_OP_REDUCE || op->opcode == TL_OP_SCAN) ||
           tl_nest_of(plan, at ? at : op, 0) || (in_product && op->opcode == TL_OP_DOT);
}

static const char *check_op(const TlNests *plan, const TlOp *op)
{
    const char *fault = NULL;
    for (uint32_t i = 0; i < op->nout && !fault; i++) {
        const TlValue *v = op->out[i];
        fault = check_place(plan, v);
        if (!fault && v->type->kind == TL_TILE && v->type->rank &&
            plan->place[v->id].kind == TL_NEST_HOME && !is_filled(plan, op))
            fault = "nothing fills a home";
    }
    const TlNest *n;
    for (uint32_t i = 0; !fault && (n = tl_nest_of(plan, op, i)) != NULL; i++)
        fault = check_nest(plan, n);
    return fault;
}

/* Programs abreast have one nest, which has code without tests, and go by no home. */
static const char *check_abreast(const TlNests *plan)
{
    const TlNestAbreast *a = plan->abreast;
    if (!a)
        return NULL;
    const TlNest *n = plan->all.len == 1 ? plan->all.data[0] : NULL;
    if (!plan->whole || a->times < 2 || a->distinct >= a->loads || plan->buffers.len)
        return "programs abreast that share nothing, or have homes";
    if (!n || n->kind != TL_NEST_STORE || n->joined || n->unrolled || n->next.len || n->width < 2 ||
        n->form.extent[n->lane] % n->width)
        return "programs abreast of more than a nest of whole vectors";
    return a->tests_lanes && n->split != TL_NEST_SPLIT ? "programs abreast that cannot test" : NULL;
}

static const char *check_frames(const TlNests *plan)
{
    for (uint32_t i = 0; i < plan->frames.len; i++) {
        const TlNestFrame *f = &plan->frames.data[i];
        if (!plan->whole || f->offset < plan->zeroed_bytes ||
            f->offset + f->bytes > plan->scratch_bytes)
            return "a copy of a part of an array without room";
        if (f->extent[f->rank - 1] % f->width || f->part[f->rank - 1] > f->extent[f->rank - 1])
            return "a copy of a part of an array without whole vectors";
    }
    return NULL;
}

bool tl_nest_verify(const TlNests *plan, TlSbuf *out)
{
    const char *fault = check_buffers(plan);
    fault = fault ? fault : check_frames(plan);
    fault = fault ? fault : check_abreast(plan);
    const TlOp *op = NULL;
    for (const TlOp *x = plan->fn->body->first; x && !fault; x = tl_walk_next(x, NULL)) {
        fault = check_op(plan, x);
        op = x;
    }
    if (fault && op)
        tl_sbuf_putf(out, "%s, number %u: ", tl_op_info(op->opcode)->text,
                     op->nout ? op->out[0]->id : 0);
    if (fault)
        tl_sbuf_puts(out, fault);
    return !fault;
}
