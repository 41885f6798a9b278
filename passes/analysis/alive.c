/* Registers that are taken at a product (alive.h). */
#include "passes/analysis/alive.h"
#include "ir/plan/late.h"
#include "ir/plan/mma.h"
#include "ir/rewrite.h"
#include "passes/analysis/shared_life.h"

/* Is the result in the registers of the operand, or in none? */
static bool is_no_copy(TlOpcode opcode)
{
    return tl_op_info(opcode)->flags & F_VIEWLIKE || opcode == TL_OP_CONST;
}

/* A tile of a buffer that only products by matrix instructions take, none of them in a loop or
 * branch inside: read when they need it. */
static bool is_read_in_parts(const TlValue *v)
{
    const TlOp *get = tl_get_of(v);
    for (const TlUse *u = v->uses; get && u; u = u->next)
        if (u->user->block != get->block ||
            (!tl_mma_of(u->user) && u->user->opcode != TL_OP_READ &&
             !(u->user->opcode == TL_OP_TRANS && is_read_in_parts(u->user->out[0]))))
            return false;
    return get != NULL;
}

/* A tile, or the sums of products that are on their way. */
static bool is_in_registers(const TlValue *v)
{
    return v->type->kind == TL_TILE ||
           (v->type->kind == TL_TOKEN && !(v->def && v->def->opcode == TL_OP_COPY));
}

int64_t tl_words_of(const TlValue *v)
{
    const TlType *t = v->type;
    if (!is_in_registers(v) || t->rank == 0 || !t->layout || is_read_in_parts(v) ||
        (v->def && is_no_copy(v->def->opcode)))
        return 0;
    int64_t bits = t->ptr ? 64 : tl_dtype_bits(t->dtype);
    return (tl_layout_registers(t->layout) * bits + 31) / 32;
}

int64_t tl_words_loaded(const TlAxisInfo *axis, const TlOp *load)
{
    enum { WORD = 4 };
    TL_ASSERT(load->opcode == TL_OP_LOAD, "%s is no load", tl_op_info(load->opcode)->text);
    const TlType *t = load->out[0]->type;
    int64_t registers = t->layout ? tl_layout_registers(t->layout) : 1,
            bytes = t->ptr ? 8 : tl_dtype_bytes(t->dtype);
    TlAccessInfo info = tl_access_info(axis, load);
    if (!t->layout || tl_access_vector(&info, load, t->layout) * bytes >= WORD)
        return (registers * bytes + WORD - 1) / WORD;
    return registers / tl_access_vector(&info, load, t->layout);
}

typedef struct Alive {
    TlPositions order;
    const TlOp *dot;
    const TlValue *sums; /* what it adds to */
    uint32_t at;         /* of the product */
    int64_t words;
} Alive;

/* The position of the last use of what is there from `last` on, through views of it, as seen from
 * `home`. */
static uint32_t last_use(const Alive *a, const TlValue *v, const TlBlock *home, uint32_t last)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        uint32_t used = u->user->block == home ? tl_position_of(&a->order, u->user).first
                                               : tl_position_of_use(&a->order, u->user, home).last;
        last = used > last ? used : last;
        if (tl_op_info(u->user->opcode)->flags & F_VIEWLIKE)
            last = last_use(a, u->user->out[0], home, last);
    }
    return last;
}

/* `made`: the position from which on the value is there. What is outside of a loop around the
 * product, and used in that loop, is alive in all of it. The accumulator becomes the result. */
static void add_if_alive(Alive *a, const TlValue *v, uint32_t made)
{
    if (made >= a->at || v == a->sums)
        return;
    bool lives = last_use(a, v, v->def ? v->def->block : v->block, made) >= a->at;
    a->words += lives ? tl_words_of(v) : 0;
}

static void add_arguments(Alive *a, const TlOp *op)
{
    for (uint32_t r = 0; r < op->nregions; r++)
        for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
            if (a->dot->block == op->regions[r] || tl_block_is_inside(a->dot->block, op))
                add_if_alive(a, op->regions[r]->args[i], tl_position_of(&a->order, op).first);
}

int64_t tl_words_alive(const TlFn *fn, TlArena *arena, const TlOp *dot)
{
    bool async = dot->opcode == TL_OP_DOT_ASYNC;
    TL_ASSERT(async || dot->opcode == TL_OP_DOT,
              "%s is no product", tl_op_info(dot->opcode)->text);
    Alive a = {.dot = dot,
               .sums = tl_in(dot, async ? dot->nin - 1 : TL_MMA_C),
               .words = tl_words_of(dot->out[0])};
    tl_positions_init(&a.order, fn, arena);
    a.at = tl_position_of(&a.order, dot).first;
    for (const TlOp *op = fn->body->first; op && op != dot; op = tl_walk_next(op, NULL)) {
        add_arguments(&a, op);
        for (uint32_t i = 0; i < op->nout; i++)
            add_if_alive(&a, op->out[i], tl_position_of(&a.order, op).last);
    }
    return a.words;
}

int64_t tl_registers_of_thread(int registers, int warps)
{
    enum { SCHEDULERS = 4, FILE = 256 };
    TL_ASSERT(warps > 0, "%d warps", warps);
    int each = (warps + SCHEDULERS - 1) / SCHEDULERS;
    return registers > FILE ? registers / each : registers;
}
