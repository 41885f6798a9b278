/* The report's part on instructions (explain.h): how many there are of each class, and which loop
 * of the kernel their main loop is. */
#include <math.h>

#include "codegen/report/explain.h"
#include "ir/plan/table_plan.h"

/* ---- rows ---- */

typedef TL_VEC(tilec_report_mix) Mixes;

static void add_class(TlExplain *e, const TlMix *m, TlMixClass c, Mixes *all)
{
    const TlMixClassInfo *info = tl_mix_class(c);
    if (!info->widths && m->all.of[c])
        tl_vec_push(
            e->out, all,
            ((tilec_report_mix){info->name, 0, m->all.of[c], m->trip.of[c], m->rest.of[c],
                                m->around.of[c]}));
    for (int w = 0; w < TL_MIX_WIDTHS && info->widths; w++)
        if (m->all.wide[c][w])
            tl_vec_push(e->out, all,
                        ((tilec_report_mix){info->name, tl_mix_width(w), m->all.wide[c][w],
                                            m->trip.wide[c][w], m->rest.wide[c][w],
                                            m->around.wide[c][w]}));
}

/* ---- the main loop ---- */

static bool holds_loop(const tilec_report_kernel *k, int loop)
{
    for (size_t i = 0; i < k->nloops; i++)
        if (k->loops[i].outer == loop)
            return true;
    return false;
}

static bool outweighs(const tilec_report_work *a, const tilec_report_work *b)
{
    if (a->macs != b->macs)
        return a->macs > b->macs;
    return a->flops != b->flops ? a->flops > b->flops : a->bytes > b->bytes;
}

/* Of the innermost loops the one that computes most. */
static int main_loop(const tilec_report_kernel *k)
{
    int best = -1;
    for (int i = 0; i < (int)k->nloops; i++)
        if (!holds_loop(k, i) && (best < 0 || outweighs(&k->loops[i].each, &k->loops[best].each)))
            best = i;
    return best;
}

/* Bytes that a block's loads and copies of an iteration take. */
static double bytes_of(const TlExplain *e, const TlMixCounts *m)
{
    double bytes = 0;
    for (int w = 0; w < TL_MIX_WIDTHS; w++)
        bytes +=
            (double)tl_mix_width(w) * (m->wide[TL_MIX_LOAD_GLOBAL][w] +
                                       m->wide[TL_MIX_STORE_GLOBAL][w] + m->wide[TL_MIX_COPY][w]);
    return bytes * e->k->warps * e->k->lanes;
}

/* Instructions of a warp for products, in an iteration of the report's loop. */
static double products_of(const TlExplain *e, int loop, bool *out_by_matrix)
{
    double matrix = 0, macs = 0;
    for (size_t i = 0; i < e->k->nexchanges; i++) {
        const tilec_report_exchange *x = &e->k->exchanges[i];
        if (x->loop == loop) {
            matrix += x->instructions;
            macs += (double)x->macs;
        }
    }
    *out_by_matrix = matrix > 0;
    return matrix > 0 ? matrix : macs / e->k->threads;
}

/* Of a loop that the lowering made: where bins count, the machine's reads of the table, and of
 * weights, tell. Rounds stay as they are. */
static double unrolled_made(const TlExplain *e, const TlMix *m, int loop)
{
    const TlOp *op = e->made.data[(size_t)loop - e->loops.len];
    TlTablePlan p = tl_table_plan(op);
    if (op->opcode != TL_OP_HISTOGRAM || p.adds)
        return 1;
    double bytes = 0, each = p.counted_at_once * (p.elem_bytes + p.weight_bytes);
    for (int w = 0; w < TL_MIX_WIDTHS; w++)
        bytes += (double)tl_mix_width(w) * m->trip.wide[TL_MIX_LOAD_SHARED][w];
    return each > 0 && bytes > each ? round(bytes / each) : 1;
}

/* The compiler's tools unroll loops, and the lowering makes loops of long products: so many
 * iterations of the report's loop are one of the machine's. */
static double unrolled(const TlExplain *e, const TlMix *m, int loop)
{
    bool by_matrix;
    if (e->k->loops[loop].made)
        return unrolled_made(e, m, loop);
    double products = products_of(e, loop, &by_matrix);
    double bytes = (double)e->k->loops[loop].each.bytes;
    double ratio = bytes > 0 ? bytes_of(e, &m->trip) / bytes : 0;
    if (ratio > 0.9 && fabs(ratio - round(ratio)) < 0.1 * ratio)
        return round(ratio);
    uint32_t have = m->trip.of[by_matrix ? TL_MIX_MATRIX : TL_MIX_FLOAT];
    return products > 0 && have ? have / products : 1;
}

/* Either both have a main loop, the report and the machine's code, and the same one, or neither: a
 * loop may be unrolled to the end, or be one that the lowering made. */
static void settle_loops(TlExplain *e, TlMix *m)
{
    bool by_matrix = false;
    if (e->k->main_loop >= 0)
        products_of(e, e->k->main_loop, &by_matrix);
    if (e->k->main_loop >= 0 && m->loops && (!by_matrix || m->trip.of[TL_MIX_MATRIX]))
        return;
    e->k->main_loop = -1;
    m->trip = m->around = (TlMixCounts){0};
    m->rest = m->all;
}

void tl_explain_mix(TlExplain *e, const TlInsns *code, const char *from)
{
    tilec_report_kernel *k = e->k;
    Mixes all = {0};
    TlMix m = {0};
    k->mix_from = tl_explain_keep(e, from);
    k->main_loop = main_loop(k);
    k->unrolled = 1;
    if (!code)
        return;
    tl_mix_count(e->scratch, code, &m);
    settle_loops(e, &m);
    for (int c = 0; c < TL_MIX_COUNT; c++)
        add_class(e, &m, (TlMixClass)c, &all);
    k->mix = all.data;
    k->nmix = all.len;
    if (k->main_loop >= 0)
        k->unrolled = unrolled(e, &m, k->main_loop);
}
