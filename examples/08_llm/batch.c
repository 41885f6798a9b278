/* A page is free, or some sequences' (refs), or kept: full, with its tokens and the page before it
 * known, so that a prompt that begins with the same tokens finds it. What is kept by nobody else
 * goes when pages are needed, the one that was used least recently first, with all that continue
 * it. The pages of a sequence, but for the last ones, are always the kept ones of its tokens: a
 * page that becomes full and is there already is given back. So what follows a page that somebody
 * uses is never orphaned. */
#include "batch.h"
#include <stdlib.h>
#include <string.h>
#include <tile.h>

enum { NO_PAGE = -1 };

typedef struct Page {
    int refs, before; /* before: NO_PAGE for the first of a text */
    bool kept;
    uint64_t used;    /* when it was last used by a sequence */
    int token[PAGE];
} Page;

struct Batch {
    Model *model;
    bool all;
    Page *page;
    int pages;
    uint64_t steps;
    Sequence *active[MOST_ROWS];
    int nactive;
    Sequence *first, **last; /* that wait */
};

Batch *batch_new(Model *model, int pages, bool all)
{
    Batch *b = calloc(1, sizeof *b);
    Page *page = calloc((size_t)pages, sizeof *page);
    if (!b || !page) return free(b), free(page), NULL;
    *b = (Batch){.model = model, .all = all, .page = page, .pages = pages};
    b->last = &b->first;
    return b;
}

void batch_free(Batch *b)
{
    if (!b) return;
    for (int i = 0; i < b->nactive; i++) free(b->active[i]->pages);
    free(b->page), free(b);
}

/* ---- pages ---- */

static int pages_for(int tokens) { return (tokens + PAGE - 1) / PAGE; }

/* Forgets the page, and all that continue it. */
static void forget(Batch *b, int page)
{
    b->page[page].kept = false;
    for (int i = 0; i < b->pages; i++)
        if (b->page[i].kept && b->page[i].before == page) forget(b, i);
}

static int free_page(Batch *b)
{
    int best = NO_PAGE;
    for (int i = 0; i < b->pages; i++) {
        const Page *p = &b->page[i];
        if (p->refs) continue;
        if (!p->kept) return i;
        if (best == NO_PAGE || p->used < b->page[best].used) best = i;
    }
    if (best != NO_PAGE) forget(b, best);
    return best;
}

static int unused_pages(const Batch *b)
{
    int n = 0;
    for (int i = 0; i < b->pages; i++) n += !b->page[i].refs;
    return n;
}

/* Pages that the sequences at work may still ask for. */
static int owed_pages(const Batch *b)
{
    int n = 0;
    for (int i = 0; i < b->nactive; i++)
        n += pages_for(b->active[i]->most) - b->active[i]->npages;
    return n;
}

/* The kept page with these tokens that follows `before`. */
static int find_page(const Batch *b, int before, const int *token)
{
    for (int i = 0; i < b->pages; i++) {
        const Page *p = &b->page[i];
        if (p->kept && p->before == before && !memcmp(p->token, token, sizeof p->token)) return i;
    }
    return NO_PAGE;
}

static void release(Batch *b, int page)
{
    b->page[page].used = b->steps;
    b->page[page].refs--;
}

/* The sequence has filled its last page. */
static void keep_page(Batch *b, Sequence *s)
{
    int at = s->npages - 1, page = s->pages[at], before = at ? s->pages[at - 1] : NO_PAGE;
    const int *token = s->token + at * PAGE;
    int same = find_page(b, before, token);
    Page *p = &b->page[page];
    if (same == NO_PAGE) {
        p->kept = true, p->before = before;
        memcpy(p->token, token, sizeof p->token);
    } else {
        b->page[same].refs++;
        s->pages[at] = same;
        release(b, page);
    }
}

/* ---- sequences ---- */

bool batch_add(Batch *b, Sequence *s)
{
    if (pages_for(s->most) > b->pages || pages_for(s->most) > model_pages(b->model)) return false;
    s->done = s->reused = s->npages = 0;
    s->pages = NULL, s->after = NULL;
    *b->last = s;
    b->last = &s->after;
    return true;
}

/* The pages of the prompt's beginning that are there; the last token is computed in any case. */
static int find_prefix(const Batch *b, const Sequence *s, int *page)
{
    int n = 0, before = NO_PAGE;
    while (!b->all && (n + 1) * PAGE < s->given) {
        int next = find_page(b, before, s->token + n * PAGE);
        if (next == NO_PAGE) break;
        page[n++] = before = next;
    }
    return n;
}

/* Whether the sequence that waits first could begin. False, too: no memory. */
static bool begin(Batch *b, Sequence *s)
{
    int *pages = calloc((size_t)model_pages(b->model), sizeof *pages);
    if (!pages) return false;
    int n = find_prefix(b, s, pages), idle = 0;
    for (int i = 0; i < n; i++) idle += !b->page[pages[i]].refs;
    if (unused_pages(b) - idle - owed_pages(b) < pages_for(s->most) - n) return free(pages), false;
    for (int i = 0; i < n; i++) b->page[pages[i]].refs++;
    s->pages = pages, s->npages = n;
    s->done = s->reused = n * PAGE;
    b->active[b->nactive++] = s;
    return true;
}

static void begin_some(Batch *b)
{
    while (b->first && b->nactive < MOST_ROWS && begin(b, b->first)) {
        b->first = b->first->after;
        if (!b->first) b->last = &b->first;
    }
}

static void end(Batch *b, int i)
{
    Sequence *s = b->active[i];
    for (int p = 0; p < s->npages; p++) release(b, s->pages[p]);
    free(s->pages);
    s->pages = NULL, s->npages = 0;
    memmove(&b->active[i], &b->active[i + 1], (size_t)(--b->nactive - i) * sizeof *b->active);
}

void batch_drop(Batch *b, Sequence *s)
{
    for (int i = 0; i < b->nactive; i++)
        if (b->active[i] == s) {
            end(b, i);
            return;
        }
    for (Sequence **at = &b->first; *at; at = &(*at)->after)
        if (*at == s) {
            if (!(*at = s->after)) b->last = at;
            return;
        }
}

bool batch_has_work(const Batch *b)
{
    return b->nactive > 0 || b->first;
}

/* ---- a step ---- */

/* Rows of a sequence: tokens that are not in the cache, while there is room. */
static void collect(Batch *b, Sequence *s, Step *step)
{
    for (; s->done < s->known && step->rows < MOST_ROWS; s->done++) {
        if (s->done % PAGE == 0) {
            int page = s->pages[s->npages++] = free_page(b);
            b->page[page].refs = 1, b->page[page].kept = false;
        }
        bool wanted = s->done + 1 == s->known || (b->all && s->done < s->given);
        step->of[step->rows] = s;
        step->row[step->rows++] = (Row){s->token[s->done], s->done, s->pages, wanted,
                                        s->temperature, s->top_p, s->top_k, -1};
    }
}

/* What the step computed is in the cache: pages that it filled are kept. */
static void keep_pages(Batch *b, const Step *step)
{
    for (int i = 0; i < step->rows; i++) {
        Sequence *s = step->of[i];
        int page = step->row[i].place / PAGE;
        if (b->all || step->row[i].place % PAGE != PAGE - 1) continue;
        int last = s->npages;
        s->npages = page + 1; /* several pages of one prompt, in their order */
        keep_page(b, s);
        s->npages = last;
    }
}

bool batch_step(Batch *b, uint64_t seed, Step *step)
{
    step->rows = 0;
    begin_some(b);
    if (!b->nactive && b->first) return !tile_set_last_error(TILE_NO_MEMORY, "no memory");
    for (int prompts = 0; prompts < 2; prompts++) /* those that are read by people go first */
        for (int i = 0; i < b->nactive; i++)
            if ((b->active[i]->known - b->active[i]->done > 1) == prompts)
                collect(b, b->active[i], step);
    if (!step->rows) return true;
    b->steps++;
    if (!model_step(b->model, step->row, step->rows, seed)) return false;
    keep_pages(b, step);
    for (int i = 0; i < step->rows; i++) {
        Sequence *s = step->of[i];
        if (step->row[i].place + 1 != s->known || s->take(s, step->row[i].next)) continue;
        for (int k = 0; k < b->nactive; k++)
            if (b->active[k] == s) end(b, k);
    }
    return true;
}
