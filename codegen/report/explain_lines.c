/* The report's part on what is computed in registers (explain.h): arithmetic by line of the
 * source, and how many words of tiles a thread holds there.
 *
 * A tile is held from its op to its last use; what a loop carries, throughout the loop; constants,
 * and tiles that products read from buffers themselves, never. The target's compiler adds
 * registers for addresses and fragments, and saves some where it computes a tile again. */
#include "codegen/report/explain.h"
#include "ir/layout/layout.h"
#include <string.h>

typedef TL_VEC(tilec_report_line) Lines;

/* ---- words ---- */

static uint32_t words_of(const TlType *t)
{
    enum { WORD = 4, POINTER = 8 };
    if (t->kind != TL_TILE || t->rank == 0 || !t->layout)
        return 0;
    uint32_t bytes = t->ptr ? POINTER : (uint32_t)tl_dtype_bytes(t->dtype);
    return ((uint32_t)tl_layout_registers(t->layout) * bytes + WORD - 1) / WORD;
}

static bool is_held(const TlValue *v)
{
    if (!v->def)
        return true;
    return v->def->opcode != TL_OP_CONST && v->def->opcode != TL_OP_IOTA &&
           !tl_attr_flag(v->def, TL_ATTR_LATE);
}

/* Adds a value to `change`: of what is held behind each position, against the one before it. */
static void add_value(const TlExplain *e, const TlValue *v, uint32_t from, int64_t *change)
{
    TL_ASSERT(v && v->type, "a value without a type");
    uint32_t words = is_held(v) ? words_of(v->type) : 0, to = from;
    const TlBlock *home = v->def ? v->def->block : v->block;
    for (const TlUse *u = v->uses; u && words; u = u->next) {
        uint32_t last = tl_position_of_use(&e->order, u->user, home).last;
        to = last > to ? last : to;
    }
    change[from] += words;
    change[to] -= words;
}

static bool is_inside_combine(const TlOp *op)
{
    const TlOp *outer = op->block->parent;
    return outer && (outer->opcode == TL_OP_REDUCE || outer->opcode == TL_OP_SCAN);
}

/* Words held behind each position. */
static int64_t *held_words(const TlExplain *e)
{
    uint32_t n = e->order.spans.len;
    int64_t *held = TL_NEW_ARRAY(e->scratch, int64_t, n + 2u);
    for (const TlOp *op = e->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlSpan span = tl_position_of(&e->order, op);
        for (uint32_t i = 0; i < op->nout; i++)
            add_value(e, op->out[i], span.last, held);
        for (uint32_t r = 0; r < op->nregions; r++)
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
                add_value(e, op->regions[r]->args[i], span.first, held);
    }
    for (uint32_t i = 1; i < n; i++)
        held[i] += held[i - 1];
    return held;
}

/* ---- operations ---- */

static bool is_special(const TlOp *op)
{
    return op->opcode == TL_OP_EXP2 || op->opcode == TL_OP_SQRT;
}

/* Floating-point operations for one element of the result; of the operand for reduce and scan. */
static int operations_of(const TlOp *op)
{
    bool combines = op->opcode == TL_OP_REDUCE || op->opcode == TL_OP_SCAN;
    return combines ? (int)op->nin : tl_elem_work(op->opcode)->flops;
}

static uint64_t flops_of(const TlOp *op)
{
    if (op->nout == 0 || operations_of(op) == 0)
        return 0;
    const TlType *t = op->nregions ? tl_in(op, 0)->type : op->out[0]->type;
    if (t->kind != TL_TILE || t->rank == 0 || t->ptr || tl_dtype_kind(t->dtype) != TL_KIND_F)
        return 0;
    return (uint64_t)operations_of(op) * (uint64_t)tl_type_elems(t);
}

/* ---- lines ---- */

static bool has_tiles(const TlOp *op)
{
    for (uint32_t i = 0; i < op->nout; i++)
        if (words_of(op->out[i]->type))
            return true;
    for (uint32_t i = 0; i < op->nin; i++)
        if (words_of(tl_in(op, i)->type))
            return true;
    return false;
}

static tilec_report_line *line_of(TlExplain *e, const TlOp *op, Lines *all)
{
    int loop = tl_explain_loop(e, op);
    uint32_t share = tl_explain_share(tl_explain_branch(op));
    tilec_report_position at = tl_explain_position(e, op->loc);
    for (uint32_t i = 0; i < all->len; i++) {
        tilec_report_line *l = &all->data[i];
        if (l->position.line == at.line && l->loop == loop && l->share == share &&
            strcmp(l->position.file, at.file) == 0)
            return l;
    }
    tl_vec_push(e->out, all,
                (tilec_report_line){.position = at,
                                    .loop = loop,
                                    .share = share,
                                    .order = tl_position_of(&e->order, op).first});
    return &all->data[all->len - 1];
}

static void add_line(TlExplain *e, const TlOp *op, const int64_t *held, Lines *all)
{
    tilec_report_line *l = line_of(e, op, all);
    uint64_t flops = flops_of(op);
    uint32_t words = (uint32_t)held[tl_position_of(&e->order, op).first];
    l->flops += flops;
    l->special += is_special(op) ? flops : 0;
    l->words = words > l->words ? words : l->words;
    e->k->words = words > e->k->words ? words : e->k->words;
}

void tl_explain_lines(TlExplain *e)
{
    Lines all = {0};
    const int64_t *held = held_words(e);
    for (const TlOp *op = e->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->loc.line && has_tiles(op) && !is_inside_combine(op) &&
            !(tl_op_info(op->opcode)->flags & F_TERM))
            add_line(e, op, held, &all);
    e->k->lines = all.data;
    e->k->nlines = all.len;
}
