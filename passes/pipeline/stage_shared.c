/* stage-shared: operands of dots that come from memory and must change threads go through a buffer
 * of shared memory in one layout that is good for both sides.
 *
 *     %x = load %A, ... : tile<u8, 64, 128, #0>       %x = load %A, ... : tile<u8, 64, 128, #0>
 *     %f = cast %x : tile<f16, 64, 128, #0>           %b = alloc : buf<u8, 64, 128, #3, 1>
 *     %t = trans %f : tile<f16, 128, 64, #1>     =>   put %b, %zero, %x
 *     %a = convert %t : tile<f16, 128, 64, #2>        %g = get %b, %zero : tile<u8, 64, 128, #4>
 *     %r = dot %a, ...                                %f = cast %g : tile<f16, 64, 128, #4>
 *                                                     %a = trans %f : tile<f16, 128, 64, #2>
 *                                                     %r = dot %a, ...
 *
 *  1. Converts that need shared memory, whose result goes into operand 0 or 1 of a dot (or
 *     anywhere, in a loop with a pipeline hint: what is staged there can be fetched ahead), and
 *     whose operand is a load, or comes from one through a chain of ops with one tile for operand:
 *     elementwise ones whose other operands are scalars, constants or only count, trans, reshape,
 *     and broadcasts within a thread (a byte of two elements). For a dot
 *     also converts by more shuffles than a way through shared memory would take. What is loaded
 *     is staged, as narrow as it is; the chain is done again behind the get, in the layouts that
 *     follow from the convert's backward. So a transposed operand costs nothing: it is another
 *     layout of the same buffer.
 *  2. All converts of one load share one buffer. Its layout is chosen for all
 *     (ir/plan/stage_layout.h): rows run along the axis in which the load's addresses count up.
 *     Where the gets want neighbours of the other axis in a word and neither ldmatrix nor another
 *     read transposes at less cost, a thread loads neighbouring rows. Where all buffers of a block
 *     and of those around it would leave nothing of the machine's shared memory, converts stay:
 *     they can go in several rounds. Those outside of loops stay first.
 *  3. alloc and put stand right after the load, gets before the first op that wants them, so that
 *     one barrier serves several. What the chain was before goes when nobody else wants it.
 *
 *  4. Converts that stay, and whose results take more registers than what they convert, go down
 *     past products to the first op that wants them: as fragments, the operands of all products of
 *     a block would be held together. Where registers are short (`kept`), products far from each
 *     other get what they share by a convert each.
 *
 * A load that has its operand's layout already is left alone. `pipeline` makes more slots and
 * asynchronous copies of what is found here. */
#include "ir/plan/layout_convert.h"
#include "ir/plan/shared_plan.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"
#include "passes/layout/relayout.h"

enum { MOST_CHAIN = 16 }; /* ops between a load and the convert, kept in an array */

/* A convert behind a load. chain[0] takes what is loaded, the last one's result is converted. */
typedef struct Way {
    TlOp *convert, *load, *chain[MOST_CHAIN];
    uint32_t operand[MOST_CHAIN], n;
    const TlLayout *get, *result[MOST_CHAIN]; /* of what is loaded, as it must be got; of the ops */
} Way;

typedef struct Staged { /* a load, as what it is put, and the buffer's type; one for each load */
    TlOp *load;
    const TlLayout *put;
    const TlType *buf;
    bool fits;
} Staged;

typedef struct Stager {
    TlFn *fn;
    TlCtx *ctx;
    TlPassCtx *px;
    const TlAxisInfo *axis;
    TL_VEC(Way) ways;
    TL_VEC(Staged) staged;
    TlMap converts;        /* of the ways */
    TlMap bytes, reserves; /* by block: of buffers; what must be left beside them */
} Stager;

/* ---- 1. what is staged ---- */

/* A tile of constants, or that only counts: which half of a byte an element is, as unpack asks. */
static bool is_pattern(const TlValue *v, int depth)
{
    enum { DEEPEST = 6 };
    const TlOp *op = v->def;
    if (!op || !tl_has_layout(v->type) || depth > DEEPEST)
        return false;
    if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA)
        return true;
    bool moves =
        op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_BROADCAST || op->opcode == TL_OP_CONVERT;
    if (!moves && (!(tl_op_info(op->opcode)->flags & F_ELEM) || op->nregions))
        return false;
    for (uint32_t i = 0; i < op->nin; i++)
        if (!is_pattern(tl_in(op, i), depth + 1))
            return false;
    return op->nin > 0;
}

/* Can the value be made in another layout at no cost, or nearly so? */
static bool is_made_anywhere(const TlValue *v)
{
    return !tl_has_layout(v->type) || is_pattern(v, 0);
}

/* An op of a chain: *out is the operand that leads on. */
static bool links(const TlOp *op, uint32_t *out)
{
    bool elementwise = tl_op_info(op->opcode)->flags & F_ELEM && op->nregions == 0;
    uint32_t n = 0;
    if (op->opcode == TL_OP_TRANS || op->opcode == TL_OP_RESHAPE ||
        (op->opcode == TL_OP_BROADCAST && tl_has_layout(tl_in(op, 0)->type))) {
        *out = 0;
        return true;
    }
    for (uint32_t i = 0; elementwise && i < op->nin; i++)
        if (!is_made_anywhere(tl_in(op, i))) {
            *out = i;
            n++;
        }
    return n == 1;
}

/* Does the value reach operand 0 or 1 of a dot, through a chain? */
static bool feeds_dot(const TlValue *v, int depth)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        uint32_t operand;
        if (u->user->opcode == TL_OP_DOT && u - u->user->in < 2)
            return true;
        if (depth < MOST_CHAIN && links(u->user, &operand) && feeds_dot(u->user->out[0], depth + 1))
            return true;
    }
    return false;
}

static bool trace(TlOp *convert, Way *w)
{
    TL_ASSERT(convert->opcode == TL_OP_CONVERT,
              "%s is no conversion", tl_op_info(convert->opcode)->text);
    *w = (Way){.convert = convert};
    TlOp *op = tl_in(convert, 0)->def, *up[MOST_CHAIN];
    uint32_t operand[MOST_CHAIN];
    for (; op && op->opcode != TL_OP_LOAD; op = tl_in(op, operand[w->n - 1])->def) {
        if (w->n == MOST_CHAIN || !links(op, &operand[w->n]))
            return false;
        up[w->n++] = op;
    }
    for (uint32_t i = 0; i < w->n; i++) {
        w->chain[i] = up[w->n - 1 - i];
        w->operand[i] = operand[w->n - 1 - i];
    }
    w->load = op;
    return op && tl_has_layout(op->out[0]->type) && !op->out[0]->type->ptr;
}

/* Could copies bring what is loaded to shared memory? */
static bool can_copy(Stager *s, const TlOp *load)
{
    enum { NARROWEST_COPY = 4 };
    if (!s->px->machine->copies || s->px->machine->copies_rows)
        return false;
    s->axis = tl_pass_axis_info(s->fn, s->px);
    TlAccessInfo info = tl_access_info(s->axis, load);
    const TlType *t = load->out[0]->type;
    return tl_access_vector(&info, load, t->layout) * tl_dtype_bytes(t->dtype) >= NARROWEST_COPY;
}

/* Do shuffles cost more than a way through shared memory, once in and once out if threads put the
 * tile there, out only if copies do? In slots of a scheduler (layout_cost.c). */
static bool shuffles_cost_more(Stager *s, const TlOp *load, const TlConvert *p)
{
    enum { RATE = 4, WORD = 4 };
    uint32_t words = (p->ndst * p->elem_bytes + WORD - 1) / WORD;
    return RATE * p->shuffles + p->selects > RATE * words * (can_copy(s, load) ? 1 : 2);
}

static bool needs_shared(Stager *s, const TlOp *convert, const TlOp *load, bool feeds)
{
    TL_ASSERT(convert->opcode == TL_OP_CONVERT,
              "%s is no conversion", tl_op_info(convert->opcode)->text);
    const TlValue *from = tl_in(convert, 0);
    const TlConvert *p = tl_convert_plan(s->px->scratch, from->type, from->type->layout,
                                         convert->out[0]->type->layout, 0, TL_CONVERT_KIND);
    return p->kind == TL_CONVERT_SHARED ||
           (p->kind == TL_CONVERT_SHUFFLE && feeds && shuffles_cost_more(s, load, p));
}

/* Can the pattern be made in the layout? A reshape may mix up the elements. */
static bool fits_pattern(const Stager *s, const TlValue *v, const TlLayout *l)
{
    const TlOp *op = v->def;
    if (!tl_has_layout(v->type) || v->type->layout == l)
        return true;
    if (!l || op->opcode == TL_OP_CONVERT)
        return l && fits_pattern(s, tl_in(op, 0), l);
    for (uint32_t i = 0; i < op->nin; i++)
        if (!fits_pattern(s, tl_in(op, i), tl_layout_for_operand(s->ctx, op, i, l)))
            return false;
    return true;
}

/* Does a thread have all that the broadcast repeats of an element? Else others get it, too, and
 * what they make of it differs. */
static bool repeats_in_registers(const TlOp *op, const TlLayout *l)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    for (int i = 0; i < l->nin; i++)
        for (int b = 0; b < l->in_bits[i] && l->in[i] != TL_IN_REG; b++)
            for (int d = 0; d < l->nout; d++)
                if (l->basis[i][b][d] && from->shape[d] < to->shape[d])
                    return false;
    return from->rank == to->rank;
}

/* Do the op's other operands fit its result's layout, and does that follow from the one that the
 * chain comes by? */
static bool fits_link(const Stager *s, const Way *w, uint32_t i, const TlLayout *from)
{
    const TlOp *op = w->chain[i];
    if (op->opcode == TL_OP_BROADCAST
            ? !repeats_in_registers(op, w->result[i])
            : tl_layout_for_result(s->ctx, op, w->operand[i], from) != w->result[i])
        return false;
    for (uint32_t k = 0; k < op->nin; k++)
        if (k != w->operand[i] &&
            !fits_pattern(s, tl_in(op, k), tl_layout_for_operand(s->ctx, op, k, w->result[i])))
            return false;
    return true;
}

/* The layout from which the chain leads to the convert's; NULL: a reshape mixes up the elements. */
static void find_get(const Stager *s, Way *w)
{
    const TlLayout *l = w->convert->out[0]->type->layout;
    for (uint32_t i = w->n; i-- > 0 && l;) {
        w->result[i] = l;
        l = tl_layout_for_operand(s->ctx, w->chain[i], w->operand[i], l);
    }
    w->get = l;
    for (uint32_t i = 0; i < w->n && w->get; i++)
        if (!fits_link(s, w, i, i ? w->result[i - 1] : l))
            w->get = NULL;
}

static void find_ways(Stager *s)
{
    for (TlOp *op = s->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        Way w;
        if (op->opcode != TL_OP_CONVERT || !op->out[0]->uses || !trace(op, &w))
            continue;
        bool feeds = feeds_dot(op->out[0], 0);
        if ((!feeds && !tl_is_in_hinted_loop(w.load)) || !needs_shared(s, op, w.load, feeds))
            continue;
        find_get(s, &w);
        if (w.get)
            tl_vec_push(s->px->scratch, &s->ways, w);
    }
}

/* ---- 2. the buffer ---- */

/* Along which neighbours in memory lie; when nothing is known, as neighbouring lanes do. */
static int row_axis(const Stager *s, const TlOp *load)
{
    TL_ASSERT(load->opcode == TL_OP_LOAD && load->out[0]->type->layout,
              "a load that is not laid out");
    const TlLayout *l = load->out[0]->type->layout;
    TlAccessInfo info = tl_access_info(s->axis, load);
    if (info.dim >= 0)
        return info.dim;
    int lane = tl_layout_in_index(l, TL_IN_LANE);
    for (int d = 0; d < l->nout; d++)
        if (l->in_bits[lane] && l->basis[lane][0][d])
            return d;
    return l->nout - 1;
}

/* Is the loaded value, and what is made from it, used in no other layout? */
static bool all_goes_through(const Stager *s, const TlValue *v, int depth)
{
    uint32_t operand;
    for (const TlUse *u = v->uses; u; u = u->next)
        if (!tl_map_get_ptr(&s->converts, u->user) &&
            (depth == MOST_CHAIN || !links(u->user, &operand) ||
             !all_goes_through(s, u->user->out[0], depth + 1)))
            return false;
    return true;
}

/* The axis along which a thread's neighbours lie; -1: it has one element. */
static int register_axis(const TlLayout *l)
{
    int reg = tl_layout_in_index(l, TL_IN_REG);
    for (int d = 0; d < l->nout && tl_layout_in_bits(l, TL_IN_REG); d++)
        if (l->basis[reg][0][d])
            return d;
    return -1;
}

/* Where a thread gets neighbours of an axis across the rows, it loads such too, as far as it loads
 * several rows: they are put in one piece then, and got as words without being taken apart. */
static const TlLayout *put_layout(const Stager *s, const Way *w)
{
    const TlLayout *l = w->load->out[0]->type->layout;
    int want = register_axis(w->get);
    if (s->px->machine->matrices || want < 0 || want == row_axis(s, w->load) ||
        tl_has_tile_operand(w->load) || !all_goes_through(s, w->load->out[0], 0))
        return l;
    return tl_layout_registers_first(s->ctx, l, want);
}

/* The load as it is put by `put`; *out_wavefronts: of all accesses to the buffer. */
static Staged staged_as(Stager *s, uint32_t first, const TlLayout *put, uint32_t *out_wavefronts)
{
    const Way *w = &s->ways.data[first];
    const TlType *t = w->load->out[0]->type;
    const TlMachine *machine = s->px->machine;
    const TlLayout *plain = w->load->out[0]->type->layout; /* in which copies may bring it */
    TL_VEC(const TlLayout *) gets = {0};
    for (uint32_t i = first; i < s->ways.len; i++)
        if (s->ways.data[i].load == w->load)
            tl_vec_push(s->px->scratch, &gets, s->ways.data[i].get);
    TlStagingUse use = {.type = t,
                        .put = put,
                        .gets = gets.data,
                        .ngets = (int)gets.len,
                        .row = row_axis(s, w->load),
                        .flags = (machine->copies && put == plain ? TL_STAGING_IMAGE : 0u) |
                                 (machine->matrix_8 ? TL_STAGING_LDMATRIX_8 : 0u) |
                                 (machine->matrices  ? TL_STAGING_LDMATRIX
                                  : machine->columns ? TL_STAGING_COLUMNS
                                                     : 0u)};
    const TlLayout *l = tl_staging_layout(s->ctx, s->px->scratch, &use);
    *out_wavefronts = tl_staging_total(s->px->scratch, &use, l).wavefronts;
    return (Staged){.load = w->load,
                    .put = put,
                    .buf = tl_type_buf(s->ctx, t->dtype, t->rank, t->shape, l, 1)};
}

/* A machine whose reads transpose need not transpose what it puts, unless that costs less. */
static Staged staged_of(Stager *s, uint32_t first)
{
    const Way *w = &s->ways.data[first];
    const TlLayout *plain = w->load->out[0]->type->layout, *turned = put_layout(s, w);
    uint32_t wavefronts, others;
    Staged made = staged_as(s, first, turned, &wavefronts);
    if (turned == plain || !s->px->machine->columns)
        return made;
    Staged other = staged_as(s, first, plain, &others);
    return others <= wavefronts ? other : made;
}

/* ---- do they fit? ---- */

/* The bytes of buffers around the block. */
static uint64_t outer_bytes(const Stager *s, const TlBlock *block)
{
    uint64_t all = 0, bytes;
    for (const TlOp *op = block->parent; op; op = op->block->parent)
        if (tl_map_get(&s->bytes, (uint64_t)(uintptr_t)op->block, &bytes))
            all += bytes;
    return all;
}

/* The greatest scratch of an op in the block, or in blocks in it, if all converts are staged. */
static uint64_t scratch_in(const Stager *s, const TlBlock *block)
{
    uint64_t most = 0;
    for (const TlOp *op = block->first; op; op = tl_walk_next(op, NULL)) {
        if (block->parent && !tl_block_is_inside(op->block, block->parent))
            break;
        bool goes = op->opcode == TL_OP_CONVERT && tl_map_get_ptr(&s->converts, op);
        uint64_t bytes = goes ? 0 : tl_op_shared_bytes(s->px->scratch, op);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* What must be left of the machine's memory beside the buffers of a block: when all of them fit,
 * what its ops need; when not, what the converts that stay may need. */
static uint64_t reserve_for(const Stager *s, const TlBlock *block)
{
    uint64_t all = outer_bytes(s, block), limit = s->px->machine->shared_bytes;
    for (uint32_t i = 0; i < s->staged.len; i++)
        if (s->staged.data[i].load->block == block)
            all += tl_buf_bytes(s->staged.data[i].buf);
    if (all + TL_SHARED_BUDGET <= limit || all > limit)
        return TL_SHARED_BUDGET;
    uint64_t scratch = scratch_in(s, block);
    return all + scratch <= limit ? scratch : TL_SHARED_BUDGET;
}

/* The most that blocks inside of the block's loops and branches have, with those around them. */
static uint64_t inner_bytes(const Stager *s, const TlBlock *block)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->staged.len; i++) {
        const TlBlock *b = s->staged.data[i].load->block;
        uint64_t sum = 0, bytes;
        for (; b && b != block; b = b->parent ? b->parent->block : NULL)
            if (tl_map_get(&s->bytes, (uint64_t)(uintptr_t)b, &bytes))
                sum += bytes;
        if (b && sum > most)
            most = sum;
    }
    return most;
}

static bool claim(Stager *s, const Staged *x)
{
    const TlBlock *block = x->load->block;
    uint64_t key = (uint64_t)(uintptr_t)block, mine = 0, reserve;
    if (!tl_map_get(&s->reserves, key, &reserve)) {
        reserve = reserve_for(s, block);
        tl_map_put(&s->reserves, key, reserve);
    }
    tl_map_get(&s->bytes, key, &mine);
    mine += tl_buf_bytes(x->buf);
    if (mine + outer_bytes(s, block) + inner_bytes(s, block) + reserve >
        s->px->machine->shared_bytes)
        return false;
    tl_map_put(&s->bytes, key, mine);
    return true;
}

static int depth_of(const TlBlock *block)
{
    int depth = 0;
    for (; block->parent; block = block->parent->block)
        depth++;
    return depth;
}

/* What loops load is first: it moves in each iteration. */
static void claim_all(Stager *s)
{
    int deepest = 0;
    for (uint32_t i = 0; i < s->staged.len; i++) {
        int depth = depth_of(s->staged.data[i].load->block);
        deepest = depth > deepest ? depth : deepest;
    }
    for (int depth = deepest; depth >= 0; depth--)
        for (uint32_t i = 0; i < s->staged.len; i++) {
            Staged *x = &s->staged.data[i];
            if (depth_of(x->load->block) == depth)
                x->fits = claim(s, x);
        }
}

/* ---- 3. into effect ---- */

static TlOp *put_after(Stager *s, const Staged *x)
{
    TlBuilder b = tl_builder_after(x->load->out[0]);
    tl_set_layout(x->load->out[0], x->put);
    TlValue *made = tl_op_new(&b, TL_OP_ALLOC, 0, NULL, 1, &x->buf, 0, 0, NULL)->out[0];
    TlValue *in[] = {made, tl_const_int(&b, tl_type_scalar(s->ctx, TL_I32), 0), x->load->out[0]};
    return tl_op_new(&b, TL_OP_PUT, 3, in, 0, NULL, 0, 0, NULL);
}

static bool uses(const TlOp *op, const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next)
        if (u->user == op || tl_block_is_inside(u->user->block, op))
            return true;
    return false;
}

/* Before the first op of the convert's block that wants its result: all puts come before all gets
 * then. */
static TlOp *where_to_get(const TlOp *convert)
{
    TlOp *op = convert->next;
    while (!uses(op, convert->out[0]))
        op = op->next;
    return op;
}

/* A pattern again, in a layout that fits it. */
static TlValue *pattern_in(Stager *s, TlBuilder *b, TlValue *v, const TlLayout *l)
{
    const TlOp *op = v->def;
    if (!tl_has_layout(v->type) || v->type->layout == l)
        return v;
    if (op->opcode == TL_OP_CONVERT)
        return pattern_in(s, b, tl_in(op, 0), l);
    const TlType *type = tl_type_with_layout(s->ctx, v->type, l);
    TlValue **in = TL_NEW_ARRAY(s->px->scratch, TlValue *, op->nin + 1);
    for (uint32_t i = 0; i < op->nin; i++)
        in[i] = pattern_in(s, b, tl_in(op, i), tl_layout_for_operand(s->ctx, op, i, l));
    return tl_op_like(b, op, op->nin, in, 1, &type)->out[0];
}

/* Repeats the op of a chain on x, its result laid out as `l`. */
static TlValue *link_again(Stager *s, TlBuilder *b, const TlOp *op, uint32_t operand, TlValue *x,
                           const TlLayout *l)
{
    TlValue **in = TL_NEW_ARRAY(s->px->scratch, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++)
        in[i] = i == operand
                    ? x
                    : pattern_in(s, b, tl_in(op, i), tl_layout_for_operand(s->ctx, op, i, l));
    const TlType *type = tl_type_with_layout(s->ctx, op->out[0]->type, l);
    b->loc = op->loc;
    TlOp *made = tl_op_like(b, op, op->nin, in, 1, &type);
    made->out[0]->name = op->out[0]->name;
    return made->out[0];
}

static void take_way(Stager *s, const Way *w, const TlOp *put)
{
    TlBuilder b = tl_builder_before(where_to_get(w->convert));
    const TlType *type = tl_type_with_layout(s->ctx, w->load->out[0]->type, w->get);
    TlValue *in[] = {tl_in(put, 0), tl_in(put, 1)};
    TlValue *x = tl_op_new(&b, TL_OP_GET, 2, in, 1, &type, 0, 0, NULL)->out[0];
    for (uint32_t i = 0; i < w->n; i++)
        x = link_again(s, &b, w->chain[i], w->operand[i], x, w->result[i]);
    TlValue *result = w->convert->out[0];
    TL_ASSERT(x->type == result->type, "a chain that ends as another tile");
    x->name = result->name ? result->name : x->name;
    tl_replace_uses(result, x);
    tl_op_erase(w->convert);
}

/* ---- 4. converts that stay ---- */

static bool grows(const TlOp *convert)
{
    return tl_layout_registers(convert->out[0]->type->layout) >
           tl_layout_registers(tl_in(convert, 0)->type->layout);
}

/* The only user, if it is in the same block and only looks at the value in another way. */
static TlOp *only_view(const TlOp *op)
{
    const TlUse *u = op->out[0]->uses;
    return u && !u->next && u->user->block == op->block && u->user->nin == 1 &&
                   tl_op_info(u->user->opcode)->flags & F_VIEWLIKE
               ? u->user
               : NULL;
}

static TlOp *last_view(TlOp *convert)
{
    TlOp *last = convert;
    for (TlOp *view = convert; view; view = only_view(view))
        last = view;
    return last;
}

static bool has_product_between(const TlOp *from, const TlOp *to)
{
    while (from != to && from->opcode != TL_OP_DOT)
        from = from->next;
    return from != to;
}

/* Before the op, and before gets and views of these that stand in front of it, but behind `floor`:
 * what is got is read behind nothing that changes shared memory. */
static TlOp *place_for(TlOp *user, const TlOp *floor)
{
    TlOp *op = user;
    while (op->prev && op->prev != floor &&
           (op->prev->opcode == TL_OP_GET || op->prev->opcode == TL_OP_CONST ||
            tl_op_info(op->prev->opcode)->flags & F_VIEWLIKE))
        op = op->prev;
    return op;
}

/* The convert and views of it, in order, before the op that wants them. */
static bool sink(TlOp *convert)
{
    TlOp *last = last_view(convert), *next;
    if (!last->out[0]->uses)
        return false;
    TlOp *place = place_for(where_to_get(last), last);
    if (!has_product_between(convert, place))
        return false;
    for (TlOp *op = convert; op; op = next) {
        next = op == last ? NULL : only_view(op);
        tl_op_move_before(op, place);
    }
    return true;
}

/* Is there a product or a loop between the value's first user and this one, in its block? */
static bool is_far(const TlOp *made, const TlOp *user)
{
    bool met = false, used = false;
    for (const TlOp *op = made->next; op != user; op = op->next) {
        met |= used && (op->opcode == TL_OP_DOT || tl_is_loop(op));
        used |= uses(op, made->out[0]);
    }
    return used && met;
}

/* The convert and views of it, up to the last, once more for the user. */
static void convert_again(const TlOp *convert, const TlOp *last, TlOp *user)
{
    TlBuilder b = tl_builder_before(place_for(user, last));
    TlValue *v = tl_in(convert, 0);
    for (const TlOp *op = convert;; op = only_view(op)) {
        b.loc = op->loc;
        v = tl_op_like(&b, op, 1, &v, 1, &op->out[0]->type)->out[0];
        if (op == last)
            break;
    }
    for (uint32_t i = 0; i < user->nin; i++)
        if (tl_in(user, i) == last->out[0])
            tl_set_operand(user, i, v);
}

/* Where operands are kept in shared memory as registers are short, what products far from each
 * other share is converted for each of them. */
static bool convert_for_each(TlOp *convert)
{
    const TlOp *last = last_view(convert);
    TlOp *far = NULL;
    bool changed = false;
    do {
        far = NULL;
        for (const TlUse *u = last->out[0]->uses; u && !far; u = u->next)
            if (u->user->block == convert->block && is_far(last, u->user))
                far = u->user;
        if (far)
            convert_again(convert, last, far);
        changed |= far != NULL;
    } while (far);
    return changed;
}

/* Those for one op keep their order. */
static bool sink_converts(Stager *s)
{
    TL_VEC(TlOp *) converts = {0};
    bool changed = false;
    for (TlOp *op = s->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_CONVERT && op->out[0]->uses && grows(op))
            tl_vec_push(s->px->scratch, &converts, op);
    for (uint32_t i = 0; i < converts.len; i++)
        if (s->fn->body->kept && feeds_dot(converts.data[i]->out[0], 0))
            changed |= convert_for_each(converts.data[i]);
    for (uint32_t i = 0; i < converts.len; i++)
        changed |= sink(converts.data[i]);
    return changed;
}

/* ---- the pass ---- */

static bool stage(Stager *s)
{
    TlArena *scratch = s->px->scratch;
    find_ways(s);
    s->axis = tl_pass_axis_info(s->fn, s->px);
    TlMap seen, puts; /* loads; put by load */
    bool changed = false;
    TlMap *maps[] = {&seen, &puts, &s->converts, &s->bytes, &s->reserves};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        tl_map_init(maps[i], scratch);
    for (uint32_t i = 0; i < s->ways.len; i++)
        tl_map_put_ptr(&s->converts, s->ways.data[i].convert, s->ways.data[i].convert);
    for (uint32_t i = 0; i < s->ways.len; i++) {
        const Way *w = &s->ways.data[i];
        if (!tl_map_get_ptr(&seen, w->load))
            tl_vec_push(scratch, &s->staged, staged_of(s, i));
        tl_map_put_ptr(&seen, w->load, w->load);
    }
    claim_all(s);
    for (uint32_t i = 0; i < s->staged.len; i++) {
        const Staged *x = &s->staged.data[i];
        if (x->fits)
            tl_map_put_ptr(&puts, x->load, put_after(s, x));
    }
    for (uint32_t i = 0; i < s->ways.len; i++) {
        const TlOp *put = tl_map_get_ptr(&puts, s->ways.data[i].load);
        if (put)
            take_way(s, &s->ways.data[i], put);
        changed |= put != NULL;
    }
    return changed;
}

TlPassResult tl_pass_stage_shared(TlFn *fn, TlPassCtx *px)
{
    Stager s = {.fn = fn, .ctx = px->ctx, .px = px};
    if (tl_fn_level(fn) != TL_LEVEL_LAID_OUT)
        return TL_SAME;
    bool staged = stage(&s), sunk = sink_converts(&s);
    if (staged)
        tl_pass_dce(fn, px);
    return staged || sunk ? TL_CHANGED : TL_SAME;
}
