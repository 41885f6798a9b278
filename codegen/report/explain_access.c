/* The report's part on global memory (explain.h): what each access moves, and why it is tested. */
#include "codegen/report/explain.h"
#include "ir/layout/layout.h"
#include "ir/plan/bulk.h"
#include "passes/pipeline/bulk_stores.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/staged.h"
#include "ir/remark.h"
#include "passes/analysis/facts.h"
#include "passes/layout/layout_cost.h"
#include "passes/simplify/bounds.h"

enum { SECTOR = 32, WIDEST = 16 };

typedef TL_VEC(tilec_report_mask) Masks;
typedef TL_VEC(tilec_report_access) Accesses;

/* ---- masks ---- */

typedef struct Words {
    const char *why, *help;
} Words;

static const Words BOUNDS[] = {
#define BOUND(ID, why, help) [TL_BOUND_##ID] = {why, help},
#include "codegen/report/explain.def"
};
_Static_assert(sizeof BOUNDS / sizeof *BOUNDS == TL_BOUND_COUNT, "words for each TlBound");

/* An access is tested along its axes, or along none; but for those that are inside for sure, for
 * `left_out`, and for what LLVM
 * folds. */
static void explain_bounds(const TlExplain *e, const TlOp *op, const TlPlace *p, uint32_t left_out,
                           Masks *masks)
{
    static const char CHECKED[] = "--check tests what is unchecked too";
    bool unchecked = tl_attr_flag(op, TL_ATTR_UNCHECKED);
    if (!e->is_checked)
        left_out |= tl_bounds_sure_axes(e->fn, e->axis, op);
    for (uint32_t i = 0; i < p->naxes && (!unchecked || e->is_checked); i++) {
        TlBound b = tl_bounds_of_axis(e->fn, e->axis, op, i);
        if (left_out >> i & 1 || tl_bounds_is_constant(e->axis, op, i))
            continue;
        const char *what = tl_format(e->out, "axis %u (%s)", i, tl_explain_extent(e, p->base, i));
        Words w = unchecked ? (Words){CHECKED, ""} : BOUNDS[b];
        tl_vec_push(e->out, masks, (tilec_report_mask){what, w.why, w.help});
    }
    if (e->is_checked && !tl_is_view_of_launch(p->base))
        tl_vec_push(e->out, masks,
                    (tilec_report_mask){"address", "--check tests that it is in its array", ""});
}

/* Coordinates that the layout has, but not the tile. */
static void explain_padding(const TlExplain *e, const TlPlace *p, const TlLayout *l, Masks *masks)
{
    TL_ASSERT(!l || l->nout == p->rank, "a layout of rank %d for a tile of rank %d",
              l ? (int)l->nout : 0, (int)p->rank);
    for (int d = 0; l && d < p->rank; d++) {
        int32_t held = tl_layout_extent(l, d);
        if (held == p->shape[d])
            continue;
        const char *what = tl_format(e->out, "axis %d of the tile", d);
        const char *why =
            tl_format(e->out, "its %d elements are held as %d", (int)p->shape[d], (int)held);
        tl_vec_push(e->out, masks, (tilec_report_mask){what, why, "a tile that fills its layout"});
    }
}

static void explain_masks(const TlExplain *e, const TlOp *op, const TlPlace *p, const TlLayout *l,
                          uint32_t left_out, tilec_report_access *a)
{
    Masks masks = {0};
    explain_bounds(e, op, p, left_out, &masks);
    explain_padding(e, p, l, &masks);
    if (p->mask)
        tl_vec_push(e->out, &masks, (tilec_report_mask){"mask", "given by the program", ""});
    a->masks = masks.data;
    a->nmasks = masks.len;
}

/* ---- widths ---- */

static const char *const NARROW_WORDS[] = {
#define NARROW(ID, why) [TL_NARROW_##ID] = why,
#include "codegen/report/explain.def"
};
_Static_assert(sizeof NARROW_WORDS / sizeof *NARROW_WORDS == TL_NARROW_COUNT,
               "words for each TlNarrow");

/* Lanes of a warp, or warps, that hold different elements. */
static uint32_t distinct(const TlLayout *l, TlInDim in)
{
    uint32_t copies[TL_LAYOUT_MAX_IN];
    tl_layout_free_masks(l, copies);
    return 1u << (tl_layout_in_bits(l, in) - __builtin_popcount(copies[tl_layout_in_index(l, in)]));
}

static const char *narrow_text(const TlExplain *e, const TlOp *op, const TlAccessInfo *info,
                               const TlLayout *l, int vector)
{
    TL_ASSERT(info->why < TL_NARROW_COUNT && vector > 0, "reason %d", (int)info->why);
    if (tl_op_info(op->opcode)->flags & F_ATOMIC)
        return "atomics go one by one";
    if (vector >= info->width)
        return NARROW_WORDS[info->why];
    TlPlace p = tl_op_place(op);
    int64_t threads = (int64_t)distinct(l, TL_IN_LANE) * distinct(l, TL_IN_WARP), n = 1;
    for (int d = 0; d < p.rank; d++)
        n *= p.shape[d];
    if (n < threads * info->width)
        return tl_format(e->out, "the tile has %lld elements for %lld threads", (long long)n,
                         (long long)threads);
    return "neighbours are in other threads, as required by the ops around it";
}

static void explain_tile(const TlExplain *e, const TlOp *op, const TlLayout *l, uint32_t bytes,
                         tilec_report_access *a)
{
    TlAccessInfo info = tl_access_info(e->axis, op);
    TlAccessCount n = tl_layout_access_count(&info, op, l);
    if (tl_op_info(op->opcode)->flags & F_ATOMIC) {
        n.accesses *= n.vector;
        n.vector = 1;
    }
    a->width = bytes * (uint32_t)n.vector;
    a->requests = (uint32_t)n.accesses;
    a->run = info.dim >= 0 ? bytes * (uint64_t)tl_op_place(op).shape[info.dim] : bytes;
    a->sectors = (uint32_t)n.sectors;
    a->least = (distinct(l, TL_IN_LANE) * a->width + SECTOR - 1) / SECTOR;
    if (a->width < WIDEST)
        a->narrow = narrow_text(e, op, &info, l, n.vector);
}

/* Of the whole block: a request is a box that this program of a cluster begins, an access its row;
 * the hardware knows the bounds. */
static void explain_boxes(const TlExplain *e, const TlOp *op, tilec_report_access *a)
{
    TlBulk b;
    uint32_t parts = (uint32_t)tl_attr_int(op, TL_ATTR_CLUSTER, 1);
    bool known = tl_bulk_plan(e->scratch, op, tl_op_place(op).buf->type, &b);
    TL_ASSERT(known, "a bulk copy that no box makes");
    a->width = (uint32_t)b.span;
    a->bytes /= tl_op_place(op).buf->type->halved ? 2 : parts;
    a->requests = b.boxes.len / parts;
    a->sectors = a->least = (uint32_t)(b.rows * b.span) / SECTOR;
    a->narrow = "";
}

/* ---- accesses ---- */

static const char *const THREADS_WORDS[] = {
#define THREADS(ID, why) [TL_THREADS_##ID] = why,
#include "codegen/report/explain.def"
};
_Static_assert(sizeof THREADS_WORDS / sizeof *THREADS_WORDS == TL_THREADS_COUNT,
               "words for each TlThreadsStore");

const char *tl_explain_param(const TlExplain *e, const TlValue *base)
{
    int param = tl_base_param(base);
    const TlKernelInfo *info = e->fn->info;
    if (param < 0 || !info || (uint32_t)param >= info->params.len)
        return "";
    return tl_explain_keep(e, info->params.data[param].name);
}

static tilec_report_access explain_access(TlExplain *e, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    const TlLayout *l = p.rank ? tl_op_layout(op) : NULL;
    TlDtype d = p.base->type->dtype;
    uint32_t bytes = (uint32_t)tl_dtype_bytes(d);
    tilec_report_access a = {.position = tl_explain_position(e, op->loc),
                             .op = tl_op_info(op->opcode)->text,
                             .param = tl_explain_param(e, p.base),
                             .type = tl_dtype_name(d),
                             .branch = tl_explain_branch(op),
                             .loops = tl_explain_loops(op),
                             .bytes = bytes,
                             .width = bytes,
                             .run = bytes,
                             .requests = 1,
                             .sectors = 1,
                             .least = 1,
                             .narrow = "",
                             .by_threads = THREADS_WORDS[tl_remark_of(op, TL_REMARK_BY_THREADS)],
                             .loop = tl_explain_loop(e, op),
                             .order = tl_position_of(&e->order, op).first,
                             .ahead = tl_explain_ahead(op),
                             .buffer = p.buf ? tl_explain_buffer(e, tl_buf_alloc(p.buf)) : -1};
    a.share = tl_explain_share(a.branch);
    for (int i = 0; i < p.rank; i++)
        a.bytes *= (uint64_t)p.shape[i];
    if (l)
        explain_tile(e, op, l, bytes, &a);
    if (tl_is_bulk_copy(op) || op->opcode == TL_OP_BULK_STORE)
        explain_boxes(e, op, &a);
    else
        explain_masks(e, op, &p, l, 0, &a);
    return a;
}

/* ---- copies in two ways ---- */

/* The code of a copy exists twice if one test of its whole tile can decide. */
static void add_access(TlExplain *e, const TlOp *op, Accesses *all)
{
    tilec_report_access a = explain_access(e, op);
    TlAccessInfo info = tl_access_info(e->axis, op);
    uint32_t whole_along = tl_copy_whole_axes(op, &info, e->is_checked);
    if (whole_along) {
        TlPlace p = tl_op_place(op);
        const char *inside = *a.branch ? tl_format(e->out, "%s, whole", a.branch) : "whole";
        tilec_report_access whole = a;
        explain_masks(e, op, &p, tl_op_layout(op), whole_along, &whole);
        whole.branch = inside;
        tl_vec_push(e->out, all, whole);
        a.branch = *a.branch ? tl_format(e->out, "%s, part", a.branch) : "part";
        a.share = tl_explain_share(a.branch);
    }
    tl_vec_push(e->out, all, a);
}

void tl_explain_accesses(TlExplain *e)
{
    Accesses all = {0};
    for (const TlOp *op = e->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (tl_op_info(op->opcode)->flags & (F_READ | F_WRITE))
            add_access(e, op, &all);
    e->k->accesses = all.data;
    e->k->naccesses = all.len;
}
