/* debug_records.c: the records of a launch's debug buffer (leaf.h) become failures and prints.
 *
 * Threads write records in any order, each its own in program order. A thread passes a print by
 * writing the elements that it owns, registers upwards, so where the register does not rise it has
 * come to that print again. All threads pass a print equally often: the n-th passage of one belongs
 * to the n-th of another.
 *
 *  1. records are sorted by block, site, thread; passages are numbered
 *  2. they are sorted by block, site, passage: each run is one printed value
 *  3. values of a block are ordered as thread 0 wrote of them: it owns the first element of each
 *  4. complete values are given to the sink */
#include "runtime/debug_records.h"
#include "runtime/runtime.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* One printed element. */
typedef struct element {
    const tl_debug_record *r;
    uint32_t number, passage;
} element;

/* Elements [begin, end) are one value; rank: its place among those of its block. */
typedef struct value {
    uint32_t begin, end, rank;
} value;

typedef struct prints {
    element *elements;
    value *values;
    uint32_t nelements, nvalues;
} prints;

/* The kernel's text number `text`; "" if there is none. */
static const char *launch_text(const tl_launch *l, uint32_t text)
{
    const uint32_t *texts = tl_image_at(l->image, l->kernel->texts);
    return text < l->kernel->ntexts ? tl_image_text(l->image, texts[text]) : "";
}

/* A shape is a list of extents, "128,64"; "" for a scalar. */
tl_printed tl_printed_of(const tl_launch *l, uint32_t text, uint32_t dtype)
{
    enum { MAX_ELEMENTS = 1 << 24 };
    int bits = tile_dtype_bits((tile_dtype)dtype);
    TL_INVARIANT_OR((tl_printed){.label = ""}, bits > 0, "a print of element type %u", dtype);
    tl_printed p = {.label = launch_text(l, text),
                    .dtype = (tile_dtype)dtype,
                    .bytes = bits < 8 ? 1 : (uint32_t)bits / 8};
    const char *shape = launch_text(l, text + 1);
    uint64_t n = 1;
    for (char *end; *shape && p.rank < TILE_IMAGE_MAX_RANK; shape = *end ? end + 1 : end) {
        unsigned long extent = strtoul(shape, &end, 10);
        p.shape[p.rank++] = (int32_t)extent;
        n = extent <= MAX_ELEMENTS && n * extent <= MAX_ELEMENTS ? n * extent : 0;
    }
    p.n = (uint32_t)n;
    return p;
}

void tl_say_outside(const tl_launch *l, uint32_t verb, uint32_t param, uint64_t address,
                    uint32_t bytes, char *text, size_t size)
{
    const tile_image_param *params = tl_image_at(l->image, l->kernel->params);
    int n = snprintf(text, size, "%s of %u byte%s at ", launch_text(l, verb), bytes,
                     bytes == 1 ? "" : "s");
    size_t at = n > 0 && (size_t)n < size ? (size_t)n : 0;
    if (param == 0 || param > l->nargs)
        snprintf(text + at, size - at, "%#" PRIx64 ", which is in no argument", address);
    else
        snprintf(text + at, size - at, "offset %" PRId64 " of '%.100s', which has %" PRIu64,
                 (int64_t)(address - (uintptr_t)l->args[param - 1].address),
                 tl_image_text(l->image, params[param - 1].name), l->args[param - 1].bytes);
}

static void deliver_failure(tl_sink *sink, const tl_launch *l, const tl_debug_record *r)
{
    char outside[300];
    const tile_image_site *sites = tl_image_at(l->image, l->kernel->sites);
    const tile_image_site *s = r->site < l->kernel->nsites ? &sites[r->site] : NULL;
    const char *text = r->text < l->kernel->ntexts ? launch_text(l, r->text) : NULL;
    if (r->what == TL_RUN_BOUNDS && r->reg > 0) {
        tl_say_outside(l, r->text, r->index, r->bits, r->reg, outside, sizeof outside);
        text = outside;
    }
    tl_sink_fail(sink, l, r->block, (tl_fail_kind)r->what,
                 s ? tl_image_path(l->image, s->file) : NULL, s ? s->line : 0, s ? s->col : 0,
                 text);
}

/* ---- 1, 2, 3: the order of prints ---- */

static int compare(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_thread(const void *a, const void *b)
{
    const element *x = a, *y = b;
    int c = compare(x->r->block, y->r->block);
    c = c ? c : compare(x->r->site, y->r->site);
    c = c ? c : compare(x->r->thread, y->r->thread);
    return c ? c : compare(x->number, y->number);
}

static int by_passage(const void *a, const void *b)
{
    const element *x = a, *y = b;
    int c = compare(x->r->block, y->r->block);
    c = c ? c : compare(x->r->site, y->r->site);
    c = c ? c : compare(x->passage, y->passage);
    c = c ? c : compare(x->r->thread, y->r->thread);
    return c ? c : compare(x->number, y->number);
}

static int by_rank(const void *a, const void *b)
{
    const value *x = a, *y = b;
    return compare(x->rank, y->rank);
}

static bool same_print(const element *a, const element *b)
{
    return a->r->block == b->r->block && a->r->site == b->r->site;
}

static void number_passages(prints *p)
{
    element *e = p->elements;
    qsort(e, p->nelements, sizeof *e, by_thread);
    for (uint32_t i = 1; i < p->nelements; i++)
        if (same_print(&e[i], &e[i - 1]) && e[i].r->thread == e[i - 1].r->thread)
            e[i].passage = e[i - 1].passage + (e[i].r->reg <= e[i - 1].r->reg);
}

/* Records of different blocks may be mixed; the sink puts programs in order. */
static void find_values(prints *p)
{
    element *e = p->elements;
    qsort(e, p->nelements, sizeof *e, by_passage);
    for (uint32_t i = 0; i < p->nelements; i++) {
        bool begins = i == 0 || !same_print(&e[i], &e[i - 1]) || e[i].passage != e[i - 1].passage;
        if (begins) /* ranked by the first record of the lowest thread */
            p->values[p->nvalues++] = (value){.begin = i, .rank = e[i].number};
        p->values[p->nvalues - 1].end = i + 1;
    }
    TL_INVARIANT_VOID(p->nvalues <= p->nelements && !p->nelements == !p->nvalues,
                      "%u values of %u elements", p->nvalues, p->nelements);
    qsort(p->values, p->nvalues, sizeof *p->values, by_rank);
}

/* ---- 4: values ---- */

/* False: elements are missing. */
static bool deliver_value(tl_sink *sink, const tl_launch *l, const element *e, uint32_t n,
                          tile_status *status)
{
    const tl_debug_record *first = e[0].r;
    TL_INVARIANT_OR(false, n > 0 && same_print(&e[0], &e[n - 1]), "a value of %u elements", n);
    tl_printed p = tl_printed_of(l, first->text, first->what);
    if (p.n != n)
        return false;
    TL_INVARIANT_OR(false, p.bytes <= sizeof first->bits, "elements of %u bytes", p.bytes);
    char *data = malloc((size_t)n * p.bytes);
    if (!data) {
        *status = tl_fail(TILE_NO_MEMORY, "out of memory");
        return true;
    }
    for (uint32_t i = 0; i < n; i++)
        if (e[i].r->index < n)
            memcpy(data + (size_t)e[i].r->index * p.bytes, &e[i].r->bits, p.bytes);
    tl_sink_print(sink, l, first->block, p.label, p.dtype, p.rank, p.shape, data);
    free(data);
    return true;
}

tile_status tl_debug_deliver(tl_sink *sink, const tl_launch *l, const tl_debug_record *records,
                             uint32_t n, uint32_t missing)
{
    TL_INVARIANT(sink && l && (records || !n), "%u records that are not there", n);
    tile_status status = TILE_OK;
    uint64_t incomplete = 0;
    prints p = {calloc(n + (size_t)1, sizeof *p.elements), calloc(n + (size_t)1, sizeof *p.values),
                0, 0};
    if (!p.elements || !p.values)
        status = tl_fail(TILE_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; i < n && status == TILE_OK; i++) {
        if (records[i].kind == TL_DEBUG_FAIL)
            deliver_failure(sink, l, &records[i]);
        else if (records[i].block < (uint64_t)l->programs)
            p.elements[p.nelements++] = (element){.r = &records[i], .number = i};
    }
    if (status == TILE_OK) {
        number_passages(&p);
        find_values(&p);
    }
    for (uint32_t i = 0; i < p.nvalues && status == TILE_OK; i++)
        incomplete += !deliver_value(sink, l, p.elements + p.values[i].begin,
                                     p.values[i].end - p.values[i].begin, &status);
    if (incomplete || missing)
        tl_sink_drop(sink, incomplete ? incomplete : 1);
    free(p.elements);
    free(p.values);
    return status;
}
