/* tune_merge.c: results of several runs in one file. */
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"
#include "runtime/tune_file.h"

static double best_time(const tl_tune_result *r)
{
    const tl_tune_time *t = r->best ? tl_tune_time_of(r, r->best) : NULL;
    return t && !t->rejected ? t->us : 0;
}

static bool same_work(const tl_tune_result *a, const tl_tune_result *b)
{
    return strcmp(a->hash, b->hash) == 0 && strcmp(a->how, b->how) == 0;
}

static void swap_texts(char **a, char **b)
{
    char *keep = *a;
    *a = *b;
    *b = keep;
}

static bool add_times(tl_tune_result *r, tl_tune_result *from)
{
    for (size_t i = 0; i < from->ntimes; i++) {
        tl_tune_time *theirs = &from->times[i], *mine = tl_tune_time_of(r, theirs->config);
        mine = mine ? mine : tl_tune_add_time(r, theirs->config);
        if (!mine)
            return false;
        mine->us = theirs->us;
        swap_texts(&mine->rejected, &theirs->rejected);
    }
    return true;
}

/* What was compared side by side is the choice; of others, the fastest. */
static bool merge_one(tl_tune_result *r, tl_tune_result *from)
{
    if (!same_work(r, from)) {
        tl_tune_result keep = *r;
        *r = *from;
        *from = keep;
        return true;
    }
    double theirs = best_time(from);
    if (!add_times(r, from))
        return false;
    double mine = best_time(r);
    if (theirs > 0 && (!from->open || mine <= 0 || theirs < mine))
        swap_texts(&r->best, &from->best);
    if (best_time(r) <= 0) {
        free(r->best);
        r->best = NULL;
    }
    r->open = from->open;
    swap_texts(&r->tool, &from->tool);
    swap_texts(&r->standard, &from->standard);
    memcpy(r->sizes, from->sizes, sizeof r->sizes);
    return true;
}

tile_status tl_tune_merge(tl_tune_file *file, tl_tune_file *from)
{
    for (size_t i = 0; i < from->len; i++) {
        tl_tune_result *theirs = &from->results[i], *mine = tl_tune_find(file, theirs);
        bool ok = true;
        if (mine) {
            ok = merge_one(mine, theirs);
        } else {
            mine = tl_tune_add(file);
            ok = mine != NULL;
            if (ok) {
                *mine = *theirs;
                *theirs = (tl_tune_result){0};
            }
        }
        if (!ok)
            return tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    return TILE_OK;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_result(const tl_tune_result *a, const tl_tune_result *b)
{
    if (!same_work(a, b) || !same_text(a->best, b->best) || a->open != b->open ||
        a->ntimes != b->ntimes)
        return false;
    for (size_t i = 0; i < a->ntimes; i++) {
        const tl_tune_time *x = &a->times[i], *y = tl_tune_time_of(b, x->config);
        if (!y || x->us != y->us || !same_text(x->rejected, y->rejected))
            return false;
    }
    return true;
}

void tl_tune_keep_new(tl_tune_file *file, const tl_tune_file *old)
{
    size_t n = 0;
    for (size_t i = 0; i < file->len; i++) {
        tl_tune_result *r = &file->results[i];
        const tl_tune_result *before = tl_tune_find(old, r);
        if (before && same_result(before, r))
            tl_tune_result_free(r);
        else
            file->results[n++] = *r;
    }
    file->len = n;
}
