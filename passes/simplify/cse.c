/* cse: equal pure ops become one.
 *
 *     %a = add %x, %y                  %a = add %x, %y
 *     for ... {                        for ... {
 *       %b = add %y, %x          =>      use %a
 *       use %b
 *     }
 *
 * One walk in program order. Ops that were seen and whose block is not yet left are in a hash table
 * by (op, operands, result types, attributes); whatever stands there dominates the op at hand,
 * because regions are scopes. On leaving a block its entries are taken out again. Operands 0 and 1
 * of a commutative op are compared in either order. Also merged: loads of kernel parameters that
 * nobody writes during the launch (const, and no alias clause names them). Ops with regions are
 * left alone. */
#include "passes/analysis/facts.h"
#include "passes/pass.h"

typedef struct Entry {
    TlOp *op;
    uint64_t hash;
    struct Entry *chain; /* the next in the bucket, seen earlier */
} Entry;

/* A block that the walk is in, and how many ops had been seen before it. */
typedef struct Scope {
    const TlBlock *block;
    uint32_t seen;
} Scope;

typedef struct Cse {
    TlArena *arena;
    Entry **buckets;
    uint32_t mask;
    TL_VEC(Entry *) seen; /* in order */
    TL_VEC(Scope) open;
} Cse;

static bool is_candidate(const TlOp *op)
{
    if (op->nregions)
        return false;
    uint32_t flags = tl_op_info(op->opcode)->flags;
    return (flags & F_PURE) || (op->opcode == TL_OP_LOAD && tl_is_constant_memory(tl_in(op, 0)));
}

static bool swaps(const TlOp *op)
{
    return (tl_op_info(op->opcode)->flags & F_COMM) && tl_in(op, 0)->id > tl_in(op, 1)->id;
}

/* Operand i in canonical order. */
static const TlValue *operand(const TlOp *op, uint32_t i, bool swapped)
{
    TL_ASSERT(i < op->nin && (!swapped || op->nin == 2),
              "operand %u of %s", i, tl_op_info(op->opcode)->text);
    return tl_in(op, swapped && i < 2 ? 1 - i : i);
}

static uint64_t attr_hash(const TlAttr *a, uint64_t h)
{
    TlAttrForm form = tl_attr_form(a->id);
    if (form == TL_FORM_INTS)
        return tl_hash(a->u.ints, sizeof *a->u.ints * a->n, h + a->id);
    if (form == TL_FORM_AXES)
        return tl_hash(a->u.axes, sizeof *a->u.axes * a->n, h + a->id);
    return tl_hash(&a->u.bits, sizeof a->u.bits, h + a->id);
}

static uint64_t op_hash(const TlOp *op)
{
    bool swapped = swaps(op);
    uint64_t h = tl_hash(&op->opcode, sizeof op->opcode, op->nin);
    for (uint32_t i = 0; i < op->nin; i++)
        h = tl_hash(&operand(op, i, swapped)->id, sizeof(uint32_t), h);
    uint64_t sum = 0; /* attributes in any order */
    for (uint32_t i = 0; i < op->nattrs; i++)
        sum += attr_hash(&op->attrs[i], 1);
    return h ^ sum;
}

static bool equal(const TlOp *a, const TlOp *b)
{
    if (a->opcode != b->opcode || a->nin != b->nin || a->nout != b->nout || a->nattrs != b->nattrs)
        return false;
    bool sa = swaps(a), sb = swaps(b);
    for (uint32_t i = 0; i < a->nin; i++)
        if (operand(a, i, sa) != operand(b, i, sb))
            return false;
    for (uint32_t i = 0; i < a->nout; i++)
        if (a->out[i]->type != b->out[i]->type)
            return false;
    for (uint32_t i = 0; i < a->nattrs; i++) {
        const TlAttr *other = tl_attr(b, a->attrs[i].id);
        if (!other || !tl_attr_equal(&a->attrs[i], other))
            return false;
    }
    return true;
}

static TlOp *find(const Cse *c, const TlOp *op, uint64_t hash)
{
    for (Entry *e = c->buckets[hash & c->mask]; e; e = e->chain)
        if (e->hash == hash && equal(e->op, op))
            return e->op;
    return NULL;
}

static void remember(Cse *c, TlOp *op, uint64_t hash)
{
    Entry *e = TL_NEW(c->arena, Entry);
    *e = (Entry){op, hash, c->buckets[hash & c->mask]};
    c->buckets[hash & c->mask] = e;
    tl_vec_push(c->arena, &c->seen, e);
}

static void forget(Cse *c, uint32_t kept)
{
    TL_ASSERT(kept <= c->seen.len, "%u of %u ops kept", kept, c->seen.len);
    while (c->seen.len > kept) {
        Entry *e = c->seen.data[--c->seen.len];
        c->buckets[e->hash & c->mask] = e->chain;
    }
}

/* The walk comes to a block: one that is open, a region of an op in the innermost open block, or a
 * region after one that is done. Blocks that do not enclose it are left, and their ops
 * forgotten. */
static void come_to(Cse *c, const TlBlock *b)
{
    const TlBlock *outer = b->parent ? b->parent->block : NULL;
    while (c->open.len) {
        const Scope *top = &c->open.data[c->open.len - 1];
        if (top->block == b)
            return;
        if (top->block == outer)
            break;
        forget(c, top->seen);
        c->open.len--;
    }
    tl_vec_push(c->arena, &c->open, (Scope){b, c->seen.len});
}

static bool merge(Cse *c, TlOp *op)
{
    TL_ASSERT(is_candidate(op), "%s is no candidate", tl_op_info(op->opcode)->text);
    uint64_t hash = op_hash(op);
    TlOp *old = find(c, op, hash);
    TL_ASSERT(!old || old->nout == op->nout,
              "%s merged into an op of %u results", tl_op_info(op->opcode)->text, old->nout);
    if (!old) {
        remember(c, op, hash);
        return false;
    }
    for (uint32_t i = 0; i < op->nout; i++) {
        if (!old->out[i]->name)
            old->out[i]->name = op->out[i]->name;
        tl_replace_uses(op->out[i], old->out[i]);
    }
    tl_op_erase(op);
    return true;
}

TlPassResult tl_pass_cse(TlFn *fn, TlPassCtx *px)
{
    Cse c = {.arena = px->scratch, .mask = 63};
    while (c.mask < fn->nvalues)
        c.mask = 2 * c.mask + 1;
    c.buckets = TL_NEW_ARRAY(c.arena, Entry *, (size_t)c.mask + 1);
    TlPassResult result = TL_SAME;
    const TlBlock *block = NULL;
    for (TlOp *op = fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        if (op->block != block)
            come_to(&c, op->block);
        block = op->block;
        if (is_candidate(op) && merge(&c, op))
            result = TL_CHANGED;
    }
    return result;
}
