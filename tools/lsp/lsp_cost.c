/* lsp_cost.c: what lines become on a target (tilec lsp --target T), as inlay hints: how threads
 * access memory, which matrix instructions run, how many words of tiles a thread holds. From the
 * report of tilec explain, for each kernel's first variant; registers are not allocated. */
#define TILE_UNSTABLE
#include "tools/lsp/lsp.h"

#include <string.h>

/* ---- the report ---- */

static void ignore(void *user, const char *text)
{
    (void)user;
    (void)text;
}

/* Of the document as it is; NULL: it has errors, or constants without values. */
static const tilec_report *report_of(Server *s, Document *d)
{
    const tilec_options o = {.struct_size = sizeof o,
                             .target = s->target,
                             .emit = "llvm", /* nothing after it changes what is shown */
                             .consts = s->consts,
                             .nconsts = s->nconsts,
                             .include_dirs = s->include_dirs,
                             .ninclude_dirs = s->ninclude_dirs,
                             .report = 1,
                             .diagnostic = ignore};
    if (!d->cost)
        tilec_compile_source(d->path, d->text, d->size, &o, &d->cost);
    return tilec_output_report(d->cost);
}

/* ---- labels ---- */

/* The hint of one line: pieces, each of them once. */
typedef struct Hint {
    TlSbuf text;
    uint32_t words;
} Hint;

static void add_piece(Hint *h, const char *piece)
{
    if (h->text.text && strstr(h->text.text, piece))
        return;
    tl_sbuf_putf(&h->text, "%s%s", h->text.len ? ", " : "", piece);
}

static void add_access(Hint *h, TlArena *arena, const tilec_report_access *a)
{
    const char *more = a->sectors > a->least ? tl_format(arena, " in %u sectors, not %u",
                                                         a->sectors, a->least)
                                             : "";
    add_piece(h, tl_format(arena, "%s %s %u B%s", a->op, a->param, a->width, more));
}

static void add_exchange(Hint *h, TlArena *arena, const tilec_report_exchange *x)
{
    bool converts = strcmp(x->op, "convert") == 0;
    if (x->macs || converts)
        add_piece(h, tl_format(arena, "%s%s", converts ? "convert by " : "", x->way));
    if (x->wavefronts > x->least)
        add_piece(h, tl_format(arena, "%u bank conflicts", x->wavefronts - x->least));
}

/* ---- lines ---- */

typedef struct Lines {
    Document *d;
    json_t *list;
    Hint *hints; /* by line, from 1 */
    uint32_t n;
} Lines;

static Hint *hint_at(const Lines *l, const tilec_report_position *p)
{
    bool here = p->line > 0 && p->line <= l->n && strcmp(p->file, l->d->path) == 0;
    return here ? &l->hints[p->line] : NULL;
}

static void add_kernel(Lines *l, const tilec_report_kernel *k)
{
    TlArena *arena = &l->d->ctx.perm;
    Hint *h;
    for (size_t i = 0; i < k->naccesses; i++)
        if ((h = hint_at(l, &k->accesses[i].position)))
            add_access(h, arena, &k->accesses[i]);
    for (size_t i = 0; i < k->nexchanges; i++)
        if ((h = hint_at(l, &k->exchanges[i].position)))
            add_exchange(h, arena, &k->exchanges[i]);
    for (size_t i = 0; i < k->nlines; i++)
        if ((h = hint_at(l, &k->lines[i].position)) && k->lines[i].words > h->words)
            h->words = k->lines[i].words;
}

static void put_hint(Lines *l, uint32_t line)
{
    const double end = 1e9; /* of the line */
    Document *d = l->d;
    Hint *h = &l->hints[line];
    if (h->words)
        add_piece(h, tl_format(&d->ctx.perm, "%u words", h->words));
    if (!h->text.len)
        return;
    json_t *one = json_object();
    size_t at = lsp_offset(d->text, d->size, (double)line - 1, end);
    json_object_set_new(one, "position", lsp_position(d->text, d->size, at));
    json_object_set_new(one, "label", json_string(h->text.text));
    json_object_set_new(one, "paddingLeft", json_true());
    json_array_append_new(l->list, one);
}

static uint32_t lines_of(const Document *d)
{
    uint32_t n = 1;
    for (size_t i = 0; i < d->size; i++)
        n += d->text[i] == '\n';
    return n;
}

void lsp_add_costs(Server *s, Document *d, double first, double last, json_t *list)
{
    const tilec_report *r = s->target && d->checked ? report_of(s, d) : NULL;
    Lines l = {.d = d, .list = list, .n = lines_of(d)};
    if (!r)
        return;
    l.hints = TL_NEW_ARRAY(&d->ctx.perm, Hint, l.n + 1);
    for (uint32_t i = 0; i <= l.n; i++)
        tl_sbuf_init(&l.hints[i].text, &d->ctx.perm);
    for (size_t i = 0; i < r->nkernels; i++)
        if (i == 0 || strcmp(r->kernels[i].name, r->kernels[i - 1].name) != 0)
            add_kernel(&l, &r->kernels[i]);
    for (uint32_t i = 1; i <= l.n; i++)
        if ((double)i - 1 >= first && (double)i - 1 <= last)
            put_hint(&l, i);
}
