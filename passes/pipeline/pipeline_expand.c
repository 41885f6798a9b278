/* A schedule put into effect (pipeline.c).
 *
 *  1. The prologue, in the loop's own order: for n = most .. 1 what would begin n iterations before
 *     the first, if it is for iteration 0 or a later one; copies of one n are one group.
 *  2. The start of the body: wait for the oldest group, copies, commit, puts of what came, loads.
 *     Where accesses need bounds and one scalar test can say that all of it is inside
 *     (pipeline_inside.c), they stand there twice, in the arms of an if: without tests, which is
 *     what nearly all iterations do, and with.
 *  3. The rest of the body stays, with what was fetched for it in place of the loads. What its
 *     first product gets from shared memory, it gets before fetches for later iterations begin.
 *  4. The loop is made again, with the new carried values. After it, nothing is in flight: wait for
 *     all.
 */
#include "ir/remark.h"
#include "passes/analysis/facts.h"
#include "passes/layout/relayout.h"
#include "passes/pipeline/pipeline_impl.h"

/* ---- fetches ---- */

static void put_at(TlExpand *x, const TlFetch *f, TlMoment m)
{
    TL_ASSERT(f->how == TL_FETCH_PUT, "a fetch that puts nothing");
    TlValue *in[] = {tl_pipeline_buffer(x, f), tl_pipeline_slot_at(x, f, m),
                     tl_pipeline_value(x, f->load->out[0], m)};
    TlBuilder *b = m.in_loop ? &x->start : &x->before;
    b->loc = f->put->loc;
    tl_pipeline_say_ahead(x, tl_op_new(b, TL_OP_PUT, 3, in, 0, NULL, 0, 0, NULL), m);
}

typedef TL_VEC(TlAccess) Accesses;

static void begin_access(TlExpand *x, TlBuilder *b, const TlAccess *a, bool inside, TlValue **out)
{
    TlOp *op = tl_pipeline_begin(x, b, a, inside);
    if (op->opcode == TL_OP_COPY)
        tl_pipeline_say_ahead(x, op, a->m);
    else
        *out = op->out[0];
}

/* One arm of the if around accesses: begins them, yields what loads give. */
static void fill_arm(TlExpand *x, TlBlock *arm, const Accesses *all, bool inside)
{
    TlBuilder b = {.fn = x->fn, .block = arm, .loc = x->loop->loc};
    TlValue **results = TL_NEW_ARRAY(x->arena, TlValue *, all->len);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->len; i++) {
        begin_access(x, &b, &all->data[i], inside, &results[n]);
        n += results[n] != NULL;
    }
    tl_yield(&b, TL_OP_YIELD, n, results);
}

/* if all of it is inside { without tests } else { with tests } */
static void begin_asking(TlExpand *x, const Accesses *all)
{
    TL_ASSERT(all->len > 0, "nobody asks");
    const TlFetch **fetches = TL_NEW_ARRAY(x->arena, const TlFetch *, all->len);
    const TlType **types = TL_NEW_ARRAY(x->arena, const TlType *, all->len);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->len; i++) {
        fetches[i] = all->data[i].f;
        if (fetches[i]->how > TL_FETCH_COPY)
            types[n++] = fetches[i]->load->out[0]->type;
    }
    TlValue *test = tl_pipeline_inside(x, all->len, fetches);
    x->start.loc = fetches[0]->load->loc;
    TlOp *branch = tl_op_new(&x->start, TL_OP_IF, 1, &test, n, types, 2, 0, NULL);
    fill_arm(x, branch->regions[0], all, true);
    fill_arm(x, branch->regions[1], all, false);
    n = 0;
    for (uint32_t i = 0; i < all->len; i++)
        if (fetches[i]->how > TL_FETCH_COPY)
            tl_pipeline_remember(x, fetches[i]->load->out[0], all->data[i].m, branch->out[n++]);
}

/* What the accesses need is there; some may have been begun for others of them. */
static void begin_all(TlExpand *x, bool in_loop, const Accesses *all)
{
    Accesses asking = {0};
    for (uint32_t i = 0; i < all->len; i++) {
        const TlAccess *a = &all->data[i];
        TlValue *v = a->f->load->out[0], *loaded = NULL;
        if (tl_pipeline_is_known(x, v, a->m))
            continue;
        if (in_loop && a->f->asks) {
            tl_vec_push(x->arena, &asking, *a);
            continue;
        }
        begin_access(x, in_loop ? &x->start : &x->before, a, false, &loaded);
        if (loaded)
            tl_pipeline_remember(x, v, a->m, loaded);
    }
    if (asking.len)
        begin_asking(x, &asking);
}

static void begin_copies(TlExpand *x, bool in_loop, int t)
{
    Accesses all = {0};
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        TlMoment m = tl_pipeline_moment(in_loop, t, f->ahead);
        if (f->how != TL_FETCH_COPY || m.n < 0)
            continue;
        TlAccess a = tl_pipeline_access(x, f, m);
        a.in[a.n++] = tl_pipeline_buffer(x, f);
        a.in[a.n++] = tl_pipeline_slot_at(x, f, m);
        tl_vec_push(x->arena, &all, a);
    }
    begin_all(x, in_loop, &all);
    if (all.len)
        tl_op_new(in_loop ? &x->start : &x->before, TL_OP_COMMIT, 0, NULL, 0, NULL, 0, 0, NULL);
}

/* Values in registers: puts come first, to free the registers. */
static void begin_loads(TlExpand *x, bool in_loop, int t)
{
    Accesses all = {0};
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        TlMoment m = tl_pipeline_moment(in_loop, t, f->put_ahead);
        if (f->how == TL_FETCH_PUT && m.n >= 0)
            put_at(x, f, m);
    }
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        TlMoment m = tl_pipeline_moment(in_loop, t, f->ahead);
        if (f->how > TL_FETCH_COPY && m.n >= 0 && !tl_pipeline_is_known(x, f->load->out[0], m))
            tl_vec_push(x->arena, &all, tl_pipeline_access(x, f, m));
    }
    begin_all(x, in_loop, &all);
}

/* ---- products ---- */

/* Is what an iteration reads of the buffer still there in the next one? */
static bool stays(const TlExpand *x, const TlValue *buf)
{
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        int ahead = f->how == TL_FETCH_PUT ? f->put_ahead : f->ahead;
        if (f->put && tl_in(f->put, 0) == buf)
            return f->slots > ahead + 1;
    }
    for (const TlUse *u = buf->uses; u; u = u->next)
        if (u->user->opcode != TL_OP_DOT_ASYNC && u->user->opcode != TL_OP_GET &&
            tl_block_is_inside(u->user->block, x->loop))
            return false;
    return true;
}

/* Does the next iteration change the operand while a product of this one still reads it: a slot
 * that is filled again, or a tile of this iteration, whose registers, or whose columns of tensor
 * memory, the next one's go to? */
static bool changes(const TlExpand *x, const TlValue *v)
{
    if (v->type->kind == TL_BUF)
        return !stays(x, v);
    return (v->type->kind == TL_TILE || v->type->kind == TL_TENSOR) && v->type->rank &&
           tl_block_is_inside(v->def ? v->def->block : v->block, x->loop);
}

/* Products of this iteration go on while the next one begins. */
static void let_products_go_on(TlExpand *x)
{
    TlOp *await = tl_loop_await(x->loop);
    int64_t n = 0;
    if (!await)
        return;
    for (TlOp *op = x->body->first; op; op = op->next) {
        if (op->opcode != TL_OP_DOT_ASYNC)
            continue;
        n++;
        for (uint32_t i = 0; i + 1 < op->nin; i++) /* the last one, the sums, is awaited */
            if (changes(x, tl_in(op, i)))
                return;
    }
    tl_attr_set(x->fn, await, (TlAttr){.id = TL_ATTR_PENDING, .u.i = n});
}

/* ---- the parts ---- */

static int oldest_copy(const TlSchedule *s)
{
    int least = 0;
    for (uint32_t i = 0; i < s->fetches.len; i++)
        if (s->fetches.data[i].how == TL_FETCH_COPY && (!least || s->fetches.data[i].ahead < least))
            least = s->fetches.data[i].ahead;
    return least;
}

static void wait_for(TlBuilder *b, int pending)
{
    TL_ASSERT(pending >= 0, "%d groups pending", pending);
    TlAttr attr = {.id = TL_ATTR_PENDING, .u.i = pending};
    tl_op_new(b, TL_OP_WAIT, 0, NULL, 0, NULL, 0, 1, &attr);
}

static void fill_body(TlExpand *x)
{
    int oldest = oldest_copy(x->s);
    if (oldest)
        wait_for(&x->start, oldest - 1);
    if (x->s->by_producer)
        tl_pipeline_begin_bulk(x, true, 0);
    tl_pipeline_await_bulk(x);
    if (!x->s->by_producer)
        tl_pipeline_begin_bulk(x, true, 0);
    tl_pipeline_arrive_empty(x);
    begin_copies(x, true, 0);
    begin_loads(x, true, 0);
}

static void yield_carried(TlExpand *x)
{
    for (uint32_t i = 0; i < x->carried.len; i++) {
        TlCarried c = x->carried.data[i];
        tl_add_operand(x->fn, x->body->last,
                       c.next ? c.next : tl_pipeline_value(x, c.of, c.moment));
    }
}

/* This iteration's part takes what was fetched. Nothing of the old body changes before all that is
 * made of it is there. */
static void use_fetched(TlExpand *x)
{
    uint32_t n = x->s->fetches.len;
    TlValue **now = TL_NEW_ARRAY(x->arena, TlValue *, n);
    for (uint32_t i = 0; i < n; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        if (f->put)
            tl_pipeline_redirect_gets(x, f);
        if (f->how > TL_FETCH_COPY)
            now[i] = tl_pipeline_value(x, f->load->out[0], (TlMoment){true, 0});
    }
    yield_carried(x);
    for (uint32_t i = 0; i < n; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        if (f->put)
            tl_op_erase(f->put);
        if (now[i])
            tl_replace_uses(f->load->out[0], now[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        tl_op_erase(x->s->fetches.data[i].load);
}

/* Where fetches for later iterations begin, behind what is put for this one; NULL: nowhere. */
static TlOp *first_fetch(TlBlock *body)
{
    TlOp *found = NULL;
    for (TlOp *op = body->first; op && op->opcode != TL_OP_GET && op->opcode != TL_OP_DOT_ASYNC;
         op = op->next)
        if (op->opcode == TL_OP_PUT)
            found = NULL;
        else if (!found && (op->opcode == TL_OP_COPY || op->opcode == TL_OP_EXPECT ||
                            (op->opcode == TL_OP_MBAR_WAIT && tl_attr_flag(op, TL_ATTR_ONE)) ||
                            op->opcode == TL_OP_LOAD || op->opcode == TL_OP_IF))
            found = op;
    return found;
}

/* Everything that it takes is known before the body, or is in shared memory. */
static bool is_there(const TlOp *product)
{
    for (uint32_t i = 0; i < product->nin; i++) {
        const TlOp *def = tl_in(product, i)->def;
        if (def && def->block == product->block && def->opcode != TL_OP_CONST &&
            !(def->opcode == TL_OP_DOT_ASYNC && is_there(def)))
            return false;
    }
    return true;
}

/* A get of a slot that is known before the body or a constant; a constant; what a moved get is
 * transposed to. */
static bool may_come_first(const TlOp *op)
{
    const TlOp *def = op->nin ? tl_in(op, op->nin - 1)->def : NULL;
    if (op->opcode == TL_OP_CONST)
        return op->out[0]->type->rank == 0;
    if (op->opcode == TL_OP_GET)
        return !def || def->block != op->block || def->opcode == TL_OP_CONST;
    if (op->opcode == TL_OP_DOT_ASYNC)
        return is_there(op);
    return op->opcode == TL_OP_TRANS && def && def->opcode == TL_OP_GET && may_come_first(def);
}

/* A get, or a transposed one, of what threads copied, each a part of it. */
static bool gets_copied(const TlOp *op)
{
    if (op->opcode == TL_OP_TRANS && tl_in(op, 0)->def)
        return gets_copied(tl_in(op, 0)->def);
    bool copied = op->opcode == TL_OP_CONST;
    for (const TlUse *u = op->opcode == TL_OP_GET ? tl_in(op, 0)->uses : NULL; u; u = u->next)
        copied |= u->user->opcode == TL_OP_COPY && !tl_is_bulk_copy(u->user);
    return copied;
}

/* What the first product of the iteration gets, it gets before fetches begin: these take a while,
 * in which its first fragments come; and a barrier before the gets, at which some machines wait for
 * all loads, does not wait for these. What threads copied comes before what bulk copies brought: a
 * barrier is for the former alone, and what is read late is not read before a barrier. */
static void get_first(TlBlock *body)
{
    TlOp *fetch = first_fetch(body), *next;
    for (int bulk = 0; bulk < 2; bulk++)
        for (TlOp *op = fetch;
             op && op->opcode != TL_OP_DOT && op->opcode != TL_OP_PUT && op->opcode != TL_OP_AWAIT;
             op = next) {
            next = op->next;
            if (may_come_first(op) && (bulk || gets_copied(op)))
                tl_op_move_before(op, fetch);
        }
}

static bool is_of(const TlOp *op, const TlBlock *body)
{
    return op && op->block == body;
}

/* The only operand that is no constant, of an elementwise op; NULL: there is none, or several. */
static TlValue *computed_from(const TlOp *op)
{
    TlValue *from = NULL;
    if (!(tl_op_info(op->opcode)->flags & F_ELEM) || op->nregions || op->nout != 1)
        return NULL;
    for (uint32_t i = 0; i < op->nin; i++) {
        if (tl_is_const_op(tl_in(op, i)))
            continue;
        if (from)
            return NULL;
        from = tl_in(op, i);
    }
    return from;
}

/* Is what is put computed from nothing but a value that the loop carries? */
static bool is_carried(const TlOp *put)
{
    const TlValue *v = tl_in(put, 2);
    while (v && is_of(v->def, put->block))
        v = computed_from(v->def);
    return v && v->block == put->block && tl_is_const_op(tl_in(put, 1));
}

static void move_constants(const TlOp *op, TlBlock *body)
{
    for (uint32_t i = 0; i < op->nin; i++)
        if (tl_is_const_op(tl_in(op, i)) && is_of(tl_in(op, i)->def, body))
            tl_op_move_before(tl_in(op, i)->def, body->first);
}

/* The put, its buffer, and what computes what is put. */
static void move_put(TlOp *put, TlOp *place)
{
    TlBlock *body = put->block;
    TlOp *alloc = tl_in(put, 0)->def;
    if (is_of(alloc, body))
        tl_op_move_before(alloc, place);
    tl_op_move_before(put, place);
    move_constants(put, body);
    for (TlOp *op = tl_in(put, 2)->def, *before = put; is_of(op, body);
         op = computed_from(op)->def) {
        tl_op_move_before(op, before);
        move_constants(op, body);
        before = op;
    }
}

/* What is put of this iteration is computed and put before what is loaded for the next one takes
 * registers (widen-once). */
static void put_first(TlBlock *body)
{
    TlOp *load = body->first, *next;
    while (load && load->opcode != TL_OP_LOAD && load->opcode != TL_OP_IF)
        load = load->next;
    for (TlOp *op = load; op && op->opcode != TL_OP_GET && op->opcode != TL_OP_DOT; op = next) {
        next = op->next;
        if (op->opcode == TL_OP_PUT && is_carried(op))
            move_put(op, load);
    }
}

/* The loop, with the new carried values. */
static TlOp *remake_loop(TlExpand *x)
{
    TL_ASSERT(x->body->last->nin == x->loop->nout + x->carried.len,
              "%u values for %u that are carried", x->body->last->nin, x->loop->nout);
    TlValue **inits = TL_NEW_ARRAY(x->arena, TlValue *, x->carried.len);
    for (uint32_t i = 0; i < x->carried.len; i++)
        inits[i] = x->carried.data[i].init;
    return tl_op_extend(x->arena, x->loop, x->carried.len, inits);
}

void tl_pipeline_expand(TlFn *fn, TlPassCtx *px, const TlSchedule *s)
{
    TL_ASSERT(s->loop->opcode == TL_OP_FOR && s->fetches.len > 0, "a schedule of %u fetches",
              s->fetches.len);
    TlBlock *body = s->loop->regions[0];
    TlExpand x = {.fn = fn,
                  .ctx = px->ctx,
                  .arena = px->scratch,
                  .s = s,
                  .loop = s->loop,
                  .body = body,
                  .home = tl_builder_before(s->by_producer ? fn->body->first : s->loop),
                  .before = tl_builder_before(s->loop),
                  .start = tl_builder_before(body->first)};
    TlMap *maps[] = {&x.values, &x.tests, &x.limits, &x.buffers, &x.slots, &x.later, &x.constants};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        tl_map_init(maps[i], px->scratch);
    for (int t = -s->most; t < 0; t++) {
        tl_pipeline_begin_bulk(&x, false, t);
        begin_copies(&x, false, t);
        begin_loads(&x, false, t);
    }
    let_products_go_on(&x);
    fill_body(&x);
    use_fetched(&x);
    if (px->machine->reads_early)
        put_first(body);
    if (!s->by_producer)
        get_first(body);
    TlOp *loop = remake_loop(&x);
    tl_attr_remove(loop, TL_ATTR_PIPELINE);
    tl_remark(fn, loop, TL_REMARK_STAGES, s->stages);
    tl_pipeline_end_bulk(&x, loop);
    if (oldest_copy(s)) {
        TlBuilder after = tl_builder_after(loop->out[0]);
        wait_for(&after, 0);
    }
}
