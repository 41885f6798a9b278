/* What is equal in all programs of a cluster (cluster.h): everything that depends neither on the
 * programs' index along the cluster's axis nor on memory. Memory may differ at another time, and a
 * program's neighbours do not follow what it decides by itself. The index divided by the size of
 * the cluster, or by a multiple of it, is the same in a cluster.
 *
 * A program that does several parts of the grid (persistent) begins with the part of its own
 * number and goes on by the number of programs, which is a multiple of the cluster's size: the
 * parts of a cluster follow each other, and each program has equally many. */
#include "passes/analysis/cluster.h"
#include "ir/plan/bulk.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/pair.h"

typedef struct Search {
    const TlFn *fn;
    TlArena *arena;
    TlMap seen; /* values, by id */
    TL_VEC(const TlValue *) work;
    bool differs;
} Search;

/* The number that an expression of launches always is; 0: it may be others. */
static int64_t always(const TlKernelInfo *info, int64_t expr)
{
    const TlHostExpr *e = expr < 0 ? NULL : &info->exprs.data[expr];
    return e && e->code.len == 1 && e->code.data[0].op == TILE_HX_CONST ? e->code.data[0].imm : 0;
}

const char *tl_cluster_never(const TlFn *fn)
{
    const TlKernelInfo *info = fn->info;
    uint32_t axis = info ? (uint32_t)info->cluster_axis : 0;
    if (!info || info->cluster < 2)
        return NULL;
    if (axis < info->grid.len && always(info, info->grid.data[axis]) % info->cluster)
        return "the extent of that axis of the grid is no multiple of its size";
    if (!axis && always(info, info->group) % info->cluster)
        return "group is no multiple of its size";
    return NULL;
}

int32_t tl_cluster_size(const TlFn *fn)
{
    bool asks = fn->info && fn->info->cluster > 1;
    return asks && !tl_cluster_never(fn) ? fn->info->cluster : 1;
}

const char *tl_share_fault_text(TlShareFault fault)
{
    static const char *const texts[] = {
        [TL_SHARE_PLACE] = "where it is depends on pid along the cluster's axis, or on memory",
        [TL_SHARE_TRIPS] = "loops or branches around it depend on pid along the cluster's axis, or "
                           "on memory",
        [TL_SHARE_PARTS] = "the tile has no such number of equal parts"};
    _Static_assert(sizeof texts / sizeof *texts == TL_SHARE_COUNT, "a text for each");
    TL_ASSERT(fault > TL_SHARE_NONE && fault < TL_SHARE_COUNT, "fault %d", (int)fault);
    return texts[fault];
}

static void see(Search *s, const TlValue *v)
{
    if (tl_map_get(&s->seen, v->id, NULL))
        return;
    tl_map_put(&s->seen, v->id, 1);
    tl_vec_push(s->arena, &s->work, v);
}

enum { LO, HI, STEP, CARRIED }; /* operands of loops */

/* What a loop carries: from what it begins with and what an iteration makes. How often it goes
 * round matters behind it; see_ways sees that of loops around the op. */
static void see_carried(Search *s, const TlOp *loop, uint32_t i)
{
    see(s, tl_in(loop, CARRIED + i));
    see(s, tl_in(loop->regions[0]->last, i));
}

static bool is_by(const TlValue *v, TlOpcode opcode)
{
    return v->def && v->def->opcode == opcode;
}

/* Over parts of the grid? */
static bool is_of_parts(const TlOp *loop)
{
    return is_by(tl_in(loop, LO), TL_OP_BLOCK) && is_by(tl_in(loop, STEP), TL_OP_NBLOCKS);
}

static void see_trips(Search *s, const TlOp *loop)
{
    if (!is_of_parts(loop))
        see(s, tl_in(loop, LO));
    see(s, tl_in(loop, HI));
    see(s, tl_in(loop, STEP));
}

static void see_either(Search *s, const TlOp *branch, uint32_t i)
{
    see(s, tl_in(branch, 0));
    for (int r = 0; r < 2; r++)
        see(s, tl_in(branch->regions[r]->last, i));
}

static void see_argument(Search *s, const TlValue *v)
{
    const TlOp *loop = v->block->parent;
    if (!loop)
        return; /* of the kernel */
    if (loop->opcode != TL_OP_FOR) {
        s->differs = true;
    } else if (v->index) {
        see_carried(s, loop, v->index - 1);
    } else {
        see(s, tl_in(loop, LO));
        see(s, tl_in(loop, STEP));
    }
}

/* The index along the cluster's axis. */
static bool is_index(const Search *s, const TlOp *op)
{
    return op && op->opcode == TL_OP_PID &&
           tl_attr_int(op, TL_ATTR_AXIS, 0) == (int64_t)s->fn->info->cluster_axis;
}

/* The index of the part that a loop over parts is at. */
static bool is_of_part(const TlOp *op)
{
    const TlValue *t = op->opcode == TL_OP_PID && op->nin ? tl_in(op, 0) : NULL;
    return t && !t->def && t->index == 0 && t->block->parent &&
           t->block->parent->opcode == TL_OP_FOR && is_of_parts(t->block->parent);
}

static bool is_of_cluster(const Search *s, const TlOp *op)
{
    TlWideInt n;
    bool divides = op->opcode == TL_OP_DIV, shifts = op->opcode == TL_OP_SHR;
    const TlOp *index = divides || shifts ? tl_in(op, 0)->def : NULL;
    if (!is_index(s, index) || (index->nin && !is_of_part(index)) ||
        !tl_const_int_value(tl_in(op, 1), &n) || n < 0 || (shifts && n > 30))
        return false;
    return (divides ? n : (TlWideInt)1 << n) % s->fn->info->cluster == 0 && (shifts || n > 0);
}

static void see_op(Search *s, const TlOp *op)
{
    bool own = is_index(s, op) || op->opcode == TL_OP_BLOCK;
    if (is_of_cluster(s, op) || (!own && is_of_part(op)))
        return;
    s->differs |= own || op->nregions || !tl_op_is_pure(op);
    for (uint32_t i = 0; i < op->nin; i++)
        see(s, tl_in(op, i));
}

static void see_parts(Search *s, const TlValue *v)
{
    const TlOp *op = v->def;
    if (!op)
        see_argument(s, v);
    else if (op->opcode == TL_OP_IF)
        see_either(s, op, v->index);
    else if (op->opcode != TL_OP_FOR)
        see_op(s, op);
    else {
        see_trips(s, op);
        see_carried(s, op, v->index);
    }
}

static bool is_equal(Search *s)
{
    while (s->work.len && !s->differs)
        see_parts(s, s->work.data[--s->work.len]);
    return !s->differs;
}

/* All loops and branches around the op go the same way; so does its mask, which says whether there
 * is such an iteration. */
static void see_ways(Search *s, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    if (p.mask)
        see(s, p.mask);
    for (const TlOp *outer = op->block->parent; outer; outer = outer->block->parent) {
        if (outer->opcode == TL_OP_FOR)
            see_trips(s, outer);
        else if (outer->opcode == TL_OP_IF)
            see(s, tl_in(outer, 0));
        else
            s->differs |= outer->opcode != TL_OP_ROLES;
    }
}

static void see_place(Search *s, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    see(s, p.base);
    for (uint32_t i = 0; i < p.naxes; i++)
        see(s, p.index[i].value);
}

/* The boxes of a copy by a cluster. */
static bool has_parts(TlArena *arena, const TlOp *op, const TlType *buf, int32_t programs)
{
    TlBulk bulk;
    return tl_bulk_plan_parts(arena, op, buf, programs, &bulk) &&
           bulk.boxes.len % (uint32_t)programs == 0;
}

TlShareFault tl_share_fault(const TlFn *fn, TlArena *arena, const TlOp *op, const TlType *buf)
{
    Search ways = {.fn = fn, .arena = arena}, place = ways;
    tl_map_init(&ways.seen, arena);
    tl_map_init(&place.seen, arena);
    see_place(&place, op);
    if (!is_equal(&place))
        return TL_SHARE_PLACE;
    see_ways(&ways, op);
    if (!is_equal(&ways))
        return TL_SHARE_TRIPS;
    if (!buf)
        return TL_SHARE_NONE;
    return has_parts(arena, op, buf, tl_cluster_size(fn)) ? TL_SHARE_NONE : TL_SHARE_PARTS;
}

/* ---- pairs ---- */

const char *tl_pair_fault_text(TlPairFault fault)
{
    static const char *const texts[] = {
        [TL_PAIR_CLUSTER] = "clusters have not two programs",
        [TL_PAIR_FORM] = "programs of this form may be launched alone",
        [TL_PAIR_PRODUCTS] = "not all products are into 128 rows of tensor memory, without scales",
        [TL_PAIR_LOOP] = "others than bulk copies and products touch what products read",
        [TL_PAIR_A] = "both programs have the same rows of A",
        [TL_PAIR_B] = "the columns of B depend on pid along the cluster's axis, or on memory",
        [TL_PAIR_TRIPS] = "loops or branches around the product depend on pid along the cluster's "
                          "axis, or on memory",
        [TL_PAIR_HALVES] = "half of B is no image of boxes that the instruction reads",
        [TL_PAIR_COST] = "half of B is less than what it costs that both programs meet"};
    _Static_assert(sizeof texts / sizeof *texts == TL_PAIR_COUNT, "a text for each");
    TL_ASSERT(fault > TL_PAIR_NONE && fault < TL_PAIR_COUNT, "fault %d", (int)fault);
    return texts[fault];
}
