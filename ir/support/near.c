/* near.c: edit distance, for "did you mean". */
#include "ir/support/near.h"
#include "ir/support/guard.h"
#include <stdbool.h>
#include <string.h>

/* Edit distance, given up above `limit`. */
static uint32_t distance(const char *a, const char *b, uint32_t limit)
{
    TL_ASSERT(limit > 0, "a distance of 0");
    enum { MAX = 32 };
    size_t n = strlen(a), m = strlen(b);
    if (n >= MAX || m >= MAX || (n > m ? n - m : m - n) > limit)
        return limit + 1;
    uint32_t row[MAX + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = (uint32_t)j;
    for (size_t i = 1; i <= n; i++) {
        uint32_t diagonal = row[0];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            uint32_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

/* lgo, log: two letters that changed places. */
static bool is_swapped(const char *a, const char *b)
{
    size_t n = strlen(a), i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    return strlen(b) == n && i + 1 < n && a[i] == b[i + 1] && a[i + 1] == b[i] &&
           strcmp(a + i + 2, b + i + 2) == 0;
}

TlNear tl_near(const char *name)
{
    uint32_t score = (uint32_t)strlen(name) / 3 + 1;
    return (TlNear){.name = name, .score = score > 3 ? 3 : score};
}

void tl_near_try(TlNear *n, const char *candidate)
{
    if (!candidate || !candidate[0])
        return;
    uint32_t d = is_swapped(n->name, candidate) ? 1 : distance(n->name, candidate, n->score);
    if (d < n->score)
        n->score = d, n->best = candidate;
}
