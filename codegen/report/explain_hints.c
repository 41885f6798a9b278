/* The report's hints (hints.h), from the rows of the report. Costs are cycles of a multiprocessor
 * per program, with the trip counts that explain_roof.c assumes: good enough to order hints, no
 * more. */
#include "codegen/report/hints.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/report/roof.h"
#include "passes/analysis/variants.h"

enum { ANY = TL_ROOF_COUNT, CHOICE };
#define TL_ROOF_ANY ANY
#define TL_ROOF_CHOICE CHOICE

static const struct {
    const char *name;
    int roof; /* TlRoof; ANY; CHOICE */
    const char *help;
} HINTS[] = {
#define HINT(ID, name, roof, help) [TL_HINT_##ID] = {name, TL_ROOF_##roof, help},
#include "codegen/report/hint.def"
};

/* "load of A f16, B f16": a subject is added where it is not there. */
static void add_subject(TlHints *h, uint32_t row, const char *subject)
{
    const char *so_far = h->subjects.data[row];
    if (!strstr(so_far, subject))
        h->subjects.data[row] = tl_format(h->e->scratch, "%s, %s", so_far, subject);
}

void tl_explain_hint(TlHints *h, TlHintId id, tilec_report_position at, double cycles,
                     TlHintText words)
{
    TL_ASSERT((unsigned)id < TL_HINT_COUNT, "hint %d", (int)id);
    for (uint32_t i = 0; i < h->rows.len; i++) {
        tilec_report_hint *r = &h->rows.data[i];
        if (h->ids.data[i] == id && r->position.line == at.line &&
            strcmp(r->text, words.text) == 0) {
            r->cycles += cycles;
            add_subject(h, i, words.subject);
            return;
        }
    }
    tl_vec_push(h->e->out, &h->rows,
                ((tilec_report_hint){at, HINTS[id].name, words.text,
                                     words.help ? words.help : HINTS[id].help, cycles}));
    tl_vec_push(h->e->scratch, &h->subjects, words.subject);
    tl_vec_push(h->e->scratch, &h->ids, id);
}

double tl_hint_runs(const TlHints *h, int loop, uint32_t share)
{
    return tl_roof_runs(h->e->k, NULL, loop) * share / 100;
}

/* Instructions of each of the block's warps, so many in a run. */
static double issued(const TlHints *h, double instructions, int loop, uint32_t share)
{
    return instructions * tl_roof_warps(h->e->k) * h->issue * tl_hint_runs(h, loop, share);
}

/* "A f16" */
static const char *access_name(const TlHints *h, const tilec_report_access *a)
{
    return tl_format(h->e->scratch, "%s %s", a->param, a->type);
}

/* ---- registers, occupancy ---- */

static tilec_report_position fullest_line(const tilec_report_kernel *k)
{
    for (size_t i = 0; i < k->nlines; i++)
        if (k->lines[i].words == k->words)
            return k->lines[i].position;
    return (tilec_report_position){"", "", 0, 0};
}

static void find_spills(TlHints *h)
{
    const tilec_report_kernel *k = h->e->k;
    const char *name = tl_mix_class(TL_MIX_SPILL)->name;
    for (size_t i = 0; i < k->nmix; i++) {
        const tilec_report_mix *m = &k->mix[i];
        if (strcmp(m->name, name) != 0 || k->spilled < 1)
            continue;
        double n = tl_roof_executed(k, NULL, m);
        const char *text = tl_format(h->e->out,
                                     "registers spill: %u accesses of local memory, %u "
                                     "of them in a trip of the main loop",
                                     m->all, m->trip);
        tl_explain_hint(h, TL_HINT_SPILLS, fullest_line(k), n * k->warps,
                        (TlHintText){"", text, NULL});
    }
}

static void find_occupancy(TlHints *h)
{
    const tilec_report_kernel *k = h->e->k;
    const tilec_report_position nowhere = {"", "", 0, 0};
    const char *fit =
        tl_format(h->e->out, "a block does not fit on a multiprocessor: %s", k->limit);
    const char *few = tl_format(h->e->out,
                                "%d of %d warps, because of %s: too few to hide the "
                                "latency of memory",
                                k->resident_warps, k->most_warps, k->limit);
    if (k->blocks == 0)
        tl_explain_hint(h, TL_HINT_FIT, nowhere, k->cycles + 1, (TlHintText){"", fit, NULL});
    if (k->blocks > 0 && !tl_roof_loops(k))
        tl_explain_hint(h, TL_HINT_OCCUPANCY, nowhere, tl_roof_exposed(k->blocks, h->busy),
                        (TlHintText){"", few, NULL});
}

/* ---- global memory ---- */

static void find_sectors(TlHints *h, const tilec_report_access *a)
{
    enum { SECTOR = 32, LINE = 128 };
    bool near = a->run >= SECTOR; /* the first cache gives a line in a cycle, and keeps the rest */
    double rate = near ? LINE : tl_gpu_find(h->target)->cache;
    double more = (double)(a->sectors - a->least) * SECTOR * a->requests * tl_roof_warps(h->e->k);
    const char *text = tl_format(h->e->out, "%u sectors for each request, where its bytes fill %u",
                                 a->sectors, a->least);
    if (a->sectors > a->least * (near ? 2 : 1))
        tl_explain_hint(h, TL_HINT_SECTORS, a->position,
                        more / rate * tl_hint_runs(h, a->loop, a->share),
                        (TlHintText){access_name(h, a), text, NULL});
}

/* Has the kernel a form for aligned arguments, and is this the other one? */
static bool is_general(const TlExplain *e)
{
    TlTests tests = {0};
    tl_variant_tests(e->fn, e->scratch, &tests);
    return tests.len == 0;
}

/* Each access of 16 bytes would take the place of several, and of the addresses and tests that they
 * have. */
static void find_narrow(TlHints *h, const tilec_report_access *a)
{
    enum { WIDEST = 16, EACH = 3 };
    double more = a->requests * (1 - (double)a->width / WIDEST) * EACH;
    const char *text = tl_format(h->e->out, "a thread takes %u byte%s at once: %s", a->width,
                                 a->width == 1 ? "" : "s", a->narrow);
    if (*a->narrow && a->width < WIDEST)
        tl_explain_hint(h, is_general(h->e) ? TL_HINT_UNALIGNED : TL_HINT_NARROW, a->position,
                        issued(h, more, a->loop, a->share),
                        (TlHintText){access_name(h, a), text, NULL});
}

/* Tests, and what loads instead of an element outside. */
static void find_masks(TlHints *h, const tilec_report_access *a)
{
    enum { EACH = 2 };
    const tilec_report_mask *m = a->nmasks ? &a->masks[a->nmasks - 1] : NULL;
    if (!m || !*m->help)
        return;
    tl_explain_hint(
        h, TL_HINT_MASK, a->position,
        issued(h, (double)(EACH * a->nmasks) * a->requests, a->loop, a->share),
        (TlHintText){access_name(h, a),
                     tl_format(h->e->out, "each access is tested along %s: %s", m->what, m->why),
                     m->help});
}

static void find_accesses(TlHints *h)
{
    for (size_t i = 0; i < h->e->k->naccesses; i++) {
        find_sectors(h, &h->e->k->accesses[i]);
        find_narrow(h, &h->e->k->accesses[i]);
        find_masks(h, &h->e->k->accesses[i]);
    }
}

/* ---- shared memory ---- */

static void find_banks(TlHints *h, const tilec_report_exchange *x)
{
    uint32_t more = x->wavefronts - x->least;
    const char *text = tl_format(h->e->out, "bank conflicts: %u wavefronts, where %u would do",
                                 x->wavefronts, x->least);
    if (more)
        tl_explain_hint(h, TL_HINT_BANKS, x->position,
                        more * tl_roof_warps(h->e->k) * tl_hint_runs(h, x->loop, x->share),
                        (TlHintText){x->op, text, NULL});
}

/* The load whose elements a put brings to shared memory; NULL: they are computed. */
static const tilec_report_access *load_of(const tilec_report_kernel *k,
                                          const tilec_report_exchange *x)
{
    const char *param = x->buffer >= 0 ? k->buffers[x->buffer].param : "";
    for (size_t i = 0; i < k->naccesses && *param; i++)
        if (k->accesses[i].loop == x->loop && strcmp(k->accesses[i].op, "load") == 0 &&
            strcmp(k->accesses[i].param, param) == 0)
            return &k->accesses[i];
    return NULL;
}

static void find_no_copy(TlHints *h, const tilec_report_exchange *x)
{
    unsigned can = h->e->target->can, least = can & TL_CAN_COPY_ROW ? 16 : 4; /* bytes */
    const tilec_report_access *a = load_of(h->e->k, x);
    if (!(can & TL_CAN_COPY) || strcmp(x->op, "put") != 0 || x->loop < 0 || !a ||
        (!h->e->k->loops[x->loop].stages && a->width >= least))
        return;
    const char *why =
                   a->width < least ? tl_format(h->e->out, "it takes %u bytes at least", least)
                   : can & TL_CAN_FILL
                       ? "elements are computed with, or placed otherwise, on the way"
                       : "elements, of it or of what the loop puts besides, are computed with, or "
                         "placed otherwise, on the way",
               *copy = can & TL_CAN_FILL ? "cp.async" : "a copy to LDS";
    tl_explain_hint(
        h, TL_HINT_NO_COPY, a->position, issued(h, a->requests + x->wavefronts, x->loop, x->share),
        (TlHintText){
            access_name(h, a),
            tl_format(h->e->out, "to shared memory by way of registers, not by %s: %s", copy, why),
            NULL});
}

static bool feeds_product(const tilec_report_kernel *k, int loop)
{
    for (size_t i = 0; i < k->nexchanges; i++)
        if (k->exchanges[i].loop == loop && k->exchanges[i].instructions)
            return true;
    return false;
}

static void find_no_ldmatrix(TlHints *h, const tilec_report_exchange *x)
{
    if (!(h->e->target->can & TL_CAN_LDMATRIX) || strcmp(x->op, "get") != 0 ||
        strstr(x->way, "ldmatrix") || x->buffer < 0 || !feeds_product(h->e->k, x->loop))
        return;
    const char *param = h->e->k->buffers[x->buffer].param;
    tl_explain_hint(h, TL_HINT_NO_LDMATRIX, x->position,
                    issued(h, 0.75 * x->wavefronts, x->loop, x->share),
                    (TlHintText){*param ? param : "an operand",
                                 "read from shared memory by single words, not by ldmatrix", NULL});
}

static void find_exchanges(TlHints *h)
{
    const tilec_report_kernel *k = h->e->k;
    for (size_t i = 0; i < k->nexchanges; i++) {
        find_banks(h, &k->exchanges[i]);
        find_no_copy(h, &k->exchanges[i]);
        find_no_ldmatrix(h, &k->exchanges[i]);
    }
}

/* ---- loops ---- */

/* The highest roof of one iteration. */
static double busy_of(const TlHints *h, int loop)
{
    double roofs[TL_ROOF_COUNT];
    tl_roofs_of_trip(h->e->k, tl_gpu_find(h->target), loop, roofs);
    return roofs[tl_roof_highest(roofs)];
}

static void find_loops(TlHints *h)
{
    const tilec_report_kernel *k = h->e->k;
    for (size_t i = 0; i < k->nloops; i++) {
        const tilec_report_loop *l = &k->loops[i];
        if (l->stages || !l->each.bytes)
            continue;
        const char *text = tl_format(h->e->out,
                                     "each trip waits for its loads, and %d block%s hide%s "
                                     "too little of that: %.*s",
                                     k->blocks, k->blocks == 1 ? "" : "s",
                                     k->blocks == 1 ? "s" : "", (int)strcspn(l->how, ";"), l->how);
        tl_explain_hint(h, TL_HINT_PIPELINE, l->position,
                        tl_roof_exposed(k->blocks, busy_of(h, (int)i)) *
                            tl_roof_runs(k, NULL, (int)i),
                        (TlHintText){"", text, NULL});
    }
}

/* ---- matrix instructions ---- */

static void find_matrix_rate(TlHints *h)
{
    const tilec_report_kernel *k = h->e->k;
    double share = tl_gpu_find(h->target)->mma_share;
    for (size_t i = 0; i < k->nexchanges && share < 1; i++)
        if (k->exchanges[i].instructions && k->exchanges[i].loop == k->main_loop &&
            strcmp(k->exchanges[i].op, "dot") == 0 && k->exchanges[i].matrix_bits < 64) {
            const char *what = tl_format(h->e->out,
                                         "its matrix instructions are mma.sync, which reaches "
                                         "about %d%% of the tensor cores' rate",
                                         (int)(100 * share + 0.5));
            TlHintText text = {"", what, k->exchanges[i].why};
            tl_explain_hint(h, TL_HINT_MATRIX, k->exchanges[i].position,
                            (1 - share) * h->roofs[TL_ROOF_MATRIX], text);
            return;
        }
}

/* ---- all ---- */

static int by_cycles(const void *a, const void *b)
{
    const tilec_report_hint *x = a, *y = b;
    if (x->cycles != y->cycles)
        return x->cycles < y->cycles ? 1 : -1;
    return (x->position.line > y->position.line) - (x->position.line < y->position.line);
}

/* One instruction of PTX, of which ptxas makes many? */
static bool is_uncounted(const TlHints *h, TlHintId id)
{
    bool division = id == TL_HINT_DIVIDE || id == TL_HINT_INT_DIVIDE || id == TL_HINT_WIDE_DIVIDE;
    return division && strncmp(h->e->k->mix_from, "PTX", 3) == 0;
}

/* Is what the hint is about near what limits the program? Of sectors, memory is that too. */
static bool matters(const TlHints *h, uint32_t row)
{
    enum { NEAR = 70 };
    TlHintId id = h->ids.data[row];
    int roof = HINTS[id].roof;
    double cycles = roof >= ANY             ? h->busy
                    : roof == TL_ROOF_ISSUE ? h->roofs[tl_roof_of_issue(tl_gpu_find(h->target))]
                                            : h->roofs[roof];
    if (roof == TL_ROOF_CACHE && h->roofs[TL_ROOF_MEMORY] > cycles)
        cycles = h->roofs[TL_ROOF_MEMORY];
    if (is_uncounted(h, id))
        cycles += h->rows.data[row].cycles;
    return 100 * cycles >= NEAR * h->busy;
}

/* Keeps what costs a twentieth of the program or more, and what was chosen; no long list. */
static void keep_hints(TlHints *h)
{
    enum { MOST_HINTS = 8, SHARE = 20 };
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->rows.len; i++) {
        tilec_report_hint *r = &h->rows.data[i];
        bool cheap = r->cycles * SHARE < h->e->k->cycles;
        if ((cheap && HINTS[h->ids.data[i]].roof != CHOICE) || !matters(h, i))
            continue;
        if (*h->subjects.data[i])
            r->text = tl_format(h->e->out, "%s: %s", h->subjects.data[i], r->text);
        h->rows.data[n++] = *r;
    }
    if (n)
        qsort(h->rows.data, n, sizeof *h->rows.data, by_cycles);
    h->e->k->hints = h->rows.data;
    h->e->k->nhints = n < MOST_HINTS ? n : MOST_HINTS;
}

void tl_explain_hints(TlExplain *e)
{
    static void (*const find[])(TlHints *) = {find_spills,    find_occupancy, find_accesses,
                                              find_exchanges, find_loops,     find_matrix_rate,
                                              tl_hints_of_ops};
    TlHints h = {.e = e, .target = e->target->name};
    const tl_gpu *r = tl_gpu_find(h.target);
    if (!r)
        return;
    tl_roofs(e->k, r, NULL, h.roofs);
    h.busy = h.roofs[tl_roof_highest(h.roofs)];
    h.issue = tl_roof_of_instruction(r, tl_roof_of_issue(r), e->k->lanes);
    for (size_t i = 0; i < sizeof find / sizeof *find; i++)
        find[i](&h);
    keep_hints(&h);
}
