/* The report's sums (explain.h): what a block moves and computes, loop by loop, added up from the
 * report's rows. */
#include "codegen/report/explain.h"

static tilec_report_work *place(TlExplain *e, int loop)
{
    TL_ASSERT(loop < (int)e->k->nloops, "loop %d of %zu", loop, e->k->nloops);
    return loop < 0 ? &e->k->outside : &e->loop_rows[loop].each;
}

/* Whole sectors: of an access that takes more than `least` of them, so many times its bytes. */
static uint64_t moved(const tilec_report_access *a)
{
    return a->least ? a->bytes * a->sectors / a->least : a->bytes;
}

void tl_explain_work(TlExplain *e)
{
    const tilec_report_kernel *k = e->k;
    for (size_t i = 0; i < k->naccesses; i++) {
        const tilec_report_access *a = &k->accesses[i];
        place(e, a->loop)->bytes += moved(a) * a->share / 100;
    }
    for (size_t i = 0; i < k->nexchanges; i++) {
        const tilec_report_exchange *x = &k->exchanges[i];
        tilec_report_work *w = place(e, x->loop);
        uint64_t macs = x->macs * x->share / 100;
        w->flops += 2 * macs;
        w->macs += x->matrix_bits ? macs : 0;
    }
    for (size_t i = 0; i < k->nlines; i++)
        place(e, k->lines[i].loop)->flops += k->lines[i].flops * k->lines[i].share / 100;
}
