/* line_diff.c: a unified diff, by the method of Myers (1986): a shortest script of removed and
 * added lines. Step d of the search knows for each diagonal k = i - j how far d edits reach in text
 * a; the steps are kept, so that the way back can be read off. What has more than MOST_EDITS edits
 * is shown as one block that is replaced. */
#include "tools/line_diff.h"
#include <string.h>

enum { CONTEXT = 3, MOST_EDITS = 2000 };

typedef struct Line {
    const char *text;
    size_t len; /* with its line end */
} Line;
typedef struct Side {
    Line *lines;
    int n;
    bool *edited; /* by line: removed (a), added (b) */
} Side;

static Side split(TlArena *arena, const char *text, size_t size)
{
    Side s = {0};
    TL_VEC(Line) lines = {0};
    for (const char *end = text + size; text < end;) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop ? stop + 1 : end;
        tl_vec_push(arena, &lines, (Line){text, (size_t)(stop - text)});
        text = stop;
    }
    s.lines = lines.data;
    s.n = (int)lines.len;
    s.edited = TL_NEW_ARRAY(arena, bool, s.n + 1);
    return s;
}

static bool same(const Side *a, int i, const Side *b, int j)
{
    const Line *x = &a->lines[i], *y = &b->lines[j];
    return x->len == y->len && memcmp(x->text, y->text, x->len) == 0;
}

/* ---- the search ---- */

typedef struct Search {
    const Side *a, *b;
    int skip, na, nb; /* equal lines at the beginning; how many follow up to the equal end */
    int **reach;      /* of each step, by diagonal + step */
    int steps;
} Search;

/* Does step d come to diagonal k by an added line, from k + 1? */
static bool by_adding(const int *before, int d, int k)
{
    return k == -d || (k != d && before[k - 1 + d - 1] < before[k + 1 + d - 1]);
}

/* One step; true when it arrives at the end. */
static bool step(TlArena *arena, Search *s, int d)
{
    int *reach = s->reach[d] = TL_NEW_ARRAY(arena, int, 2 * d + 1);
    for (int k = -d; k <= d; k += 2) {
        int i = 0;
        if (d) {
            const int *before = s->reach[d - 1];
            i = by_adding(before, d, k) ? before[k + 1 + d - 1] : before[k - 1 + d - 1] + 1;
        }
        int j = i - k;
        while (i < s->na && j < s->nb && j >= 0 && same(s->a, s->skip + i, s->b, s->skip + j))
            i++, j++;
        reach[k + d] = i;
        if (i >= s->na && j >= s->nb)
            return true;
    }
    return false;
}

static void mark(Search *s, int d)
{
    int k = s->na - s->nb;
    for (; d > 0; d--) {
        const int *before = s->reach[d - 1];
        bool added = by_adding(before, d, k);
        k += added ? 1 : -1;
        int i = before[k + d - 1], j = i - k;
        if (added)
            s->b->edited[s->skip + j] = true;
        else
            s->a->edited[s->skip + i] = true;
    }
}

static void find_edits(TlArena *arena, Side *a, Side *b)
{
    int skip = 0, end = 0, d = 0;
    while (skip < a->n && skip < b->n && same(a, skip, b, skip))
        skip++;
    while (end < a->n - skip && end < b->n - skip && same(a, a->n - 1 - end, b, b->n - 1 - end))
        end++;
    Search s = {.a = a, .b = b, .skip = skip, .na = a->n - skip - end, .nb = b->n - skip - end};
    s.reach = TL_NEW_ARRAY(arena, int *, MOST_EDITS + 1);
    while (d <= MOST_EDITS && !step(arena, &s, d))
        d++;
    if (d <= MOST_EDITS) {
        mark(&s, d);
        return;
    }
    memset(a->edited + skip, true, (size_t)s.na);
    memset(b->edited + skip, true, (size_t)s.nb);
}

/* ---- printing ---- */

static void put_line(TlSbuf *out, char sign, const Line *line)
{
    tl_sbuf_put(out, &sign, 1);
    tl_sbuf_put(out, line->text, line->len);
    if (!line->len || line->text[line->len - 1] != '\n')
        tl_sbuf_puts(out, "\n\\ No newline at end of file\n");
}

/* The lines of a from i to i_end and of b from j on. */
static void put_hunk(TlSbuf *out, const Side *a, int i, int i_end, const Side *b, int j, int j_end)
{
    int na = i_end - i, nb = j_end - j;
    tl_sbuf_putf(out, "@@ -%d,%d +%d,%d @@\n", na ? i + 1 : i, na, nb ? j + 1 : j, nb);
    while (i < i_end || j < j_end) {
        if (i < i_end && a->edited[i])
            put_line(out, '-', &a->lines[i++]);
        else if (j < j_end && b->edited[j])
            put_line(out, '+', &b->lines[j++]);
        else
            put_line(out, ' ', &a->lines[i++]), j++;
    }
}

/* From an edit at (i, j) to the last one with at most 2 CONTEXT equal lines between. */
static void hunk_end(const Side *a, int *i, const Side *b, int *j)
{
    int x = *i, y = *j;
    for (int equal = 0; equal <= 2 * CONTEXT && (x < a->n || y < b->n);) {
        bool removed = x < a->n && a->edited[x], added = y < b->n && b->edited[y];
        x += removed || !added;
        y += !removed;
        equal = removed || added ? 0 : equal + 1;
        if (!equal) {
            *i = x;
            *j = y;
        }
    }
}

void line_diff(TlSbuf *out, const char *path, const char *a_text, size_t a_size, const char *b_text,
               size_t b_size)
{
    Side a = split(out->arena, a_text, a_size), b = split(out->arena, b_text, b_size);
    bool headed = false;
    find_edits(out->arena, &a, &b);
    for (int i = 0, j = 0; i < a.n || j < b.n;) {
        if (!(i < a.n && a.edited[i]) && !(j < b.n && b.edited[j])) {
            i++, j++;
            continue;
        }
        int before = i < CONTEXT ? i : CONTEXT, i_end = i, j_end = j;
        hunk_end(&a, &i_end, &b, &j_end);
        int after = a.n - i_end < CONTEXT ? a.n - i_end : CONTEXT;
        if (!headed)
            tl_sbuf_putf(out, "--- %s\n+++ %s (formatted)\n", path, path);
        headed = true;
        put_hunk(out, &a, i - before, i_end + after, &b, j - before, j_end + after);
        i = i_end + after;
        j = j_end + after;
    }
}
