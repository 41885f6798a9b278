/* affinity.c: TILE_AFFINITY: the processors to which the workers of a pool are pinned.
 *
 *   none      nowhere: the system moves them (the default)
 *   compact   each beside the one before it: the processors of a core, the cores of a cache ...
 *   spread    each as far as possible from those before it; second processors of cores come last
 *   0-3,8     these, in this order (0-8:2 is 0,2,4,6,8)
 *
 * Both orders come from a tree: package, NUMA node, last cache, core, processor. At each level a
 * processor is in a group, which is known by the number of its first processor.
 *
 *   compact   sorted by groups, from the package down
 *   spread    sorted by ranks, from the processor up: so the package changes fastest, and the
 *             second processor of a core follows the first ones of all cores. The rank of a group
 *             counts the groups before it in the group above.
 *
 * Where Linux does not tell (in some containers), a level has one group; with none told, both are
 * the order of numbers. */
#include "ir/support/ascii.h"
#include "runtime/host/processors.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { PACKAGE, NODE, CACHE, CORE, PROCESSOR, LEVELS };
enum { LINE_BYTES = 4096 };

typedef struct spot {
    int group[LEVELS], rank[LEVELS];
} spot;

/* ---- lists: "0-3,8,16-30:2" ---- */

typedef struct range {
    int first, last, step;
} range;

static bool take_number(const char **at, int *out_n)
{
    char *end;
    if (!tl_is_digit((unsigned char)**at))
        return false;
    long n = strtol(*at, &end, 10);
    *out_n = n < TL_MAX_PROCESSORS ? (int)n : TL_MAX_PROCESSORS;
    *at = end;
    return true;
}

static bool take_char(const char **at, char c)
{
    bool is_there = **at == c;
    *at += is_there;
    return is_there;
}

/* The next range of a list; false: there is none. *at is then at the list's end, or at what does
 * not belong into a list. */
static bool take_range(const char **at, const char *list, range *out)
{
    const char *p = *at;
    if ((p != list && !take_char(&p, ',')) || !take_number(&p, &out->first))
        return false;
    out->last = out->first;
    out->step = 1;
    if (take_char(&p, '-') && (!take_number(&p, &out->last) || out->last < out->first))
        return false;
    if (take_char(&p, ':') && (!take_number(&p, &out->step) || out->step < 1))
        return false;
    *at = p;
    return true;
}

/* ---- the machine ---- */

/* *group becomes the number that a list in a file of the processor begins with; false, and it
 * stays: there is none. */
static bool read_group(const char *root, int processor, const char *file, int *group)
{
    char line[LINE_BYTES];
    range r;
    const char *at = line;
    if (!tl_processors_read(root, line, sizeof line, "sys/devices/system/cpu/cpu%d/%s", processor,
                            file) ||
        !take_range(&at, line, &r))
        return false;
    *group = r.first;
    return true;
}

static void read_last_cache(const char *root, int processor, int *group)
{
    char file[48];
    int i = 0;
    do
        snprintf(file, sizeof file, "cache/index%d/shared_cpu_list", i++);
    while (read_group(root, processor, file, group));
}

static void put_in_node(spot *spots, int n, int node, const char *list)
{
    range r;
    for (const char *at = list; take_range(&at, list, &r);)
        for (int i = 0; i < n; i++) {
            int p = spots[i].group[PROCESSOR];
            if (p >= r.first && p <= r.last && (p - r.first) % r.step == 0)
                spots[i].group[NODE] = node;
        }
}

static void find_nodes(const char *root, spot *spots, int n)
{
    char nodes[LINE_BYTES], list[LINE_BYTES];
    range r;
    if (!tl_processors_read(root, nodes, sizeof nodes, "sys/devices/system/node/online"))
        return;
    for (const char *at = nodes; take_range(&at, nodes, &r);)
        for (int node = r.first; node <= r.last; node += r.step)
            if (tl_processors_read(root, list, sizeof list,
                                   "sys/devices/system/node/node%d/cpulist", node))
                put_in_node(spots, n, node, list);
}

static void find_groups(const char *root, spot *spots, int n)
{
    find_nodes(root, spots, n);
    for (spot *s = spots; s < spots + n; s++) {
        int p = s->group[PROCESSOR];
        read_group(root, p, "topology/core_siblings_list", &s->group[PACKAGE]);
        read_last_cache(root, p, &s->group[CACHE]);
        read_group(root, p, "topology/thread_siblings_list", &s->group[CORE]);
    }
}

/* ---- orders ---- */

static int by_groups(const void *a, const void *b)
{
    const spot *x = a, *y = b;
    for (int level = 0; level < LEVELS; level++)
        if (x->group[level] != y->group[level])
            return x->group[level] < y->group[level] ? -1 : 1;
    return 0;
}

static int by_ranks(const void *a, const void *b)
{
    const spot *x = a, *y = b;
    for (int level = LEVELS - 1; level >= 0; level--)
        if (x->rank[level] != y->rank[level])
            return x->rank[level] < y->rank[level] ? -1 : 1;
    return 0;
}

/* Spots sorted by groups: groups that have others above them are different ones. */
static void rank_groups(spot *spots, int n)
{
    for (int i = 1; i < n; i++) {
        const spot *before = &spots[i - 1];
        int level = 0;
        for (; before->group[level] == spots[i].group[level]; level++)
            spots[i].rank[level] = before->rank[level];
        spots[i].rank[level] = before->rank[level] + 1;
    }
}

static tile_status find_order(const char *root, bool spread, const tl_processors *allowed,
                              int *place, int n)
{
    spot *spots = calloc((size_t)n, sizeof *spots);
    if (!spots)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    for (int p = 0, i = 0; p < TL_MAX_PROCESSORS; p++)
        if (tl_processors_has(allowed, p))
            spots[i++].group[PROCESSOR] = p;
    find_groups(root, spots, n);
    qsort(spots, (size_t)n, sizeof *spots, by_groups);
    rank_groups(spots, n);
    if (spread)
        qsort(spots, (size_t)n, sizeof *spots, by_ranks);
    for (int i = 0; i < n; i++)
        place[i] = spots[i].group[PROCESSOR];
    free(spots);
    return TILE_OK;
}

/* ---- the variable ---- */

/* "0-3,8" */
static void say_set(const tl_processors *set, char *text, size_t size)
{
    size_t n = 0;
    *text = 0;
    for (int p = 0; p < TL_MAX_PROCESSORS && n < size; p++) {
        int first = p;
        if (!tl_processors_has(set, p))
            continue;
        while (tl_processors_has(set, p + 1))
            p++;
        n += (size_t)snprintf(text + n, size - n, first < p ? "%s%d-%d" : "%s%d", n ? "," : "",
                              first, p);
    }
    if (n >= size)
        memcpy(text + size - 4, "...", 4);
}

static tile_status read_list(const char *name, const char *text, const tl_processors *allowed,
                             int *place, int *n)
{
    tl_processors left = *allowed;
    char may[200];
    const char *at = text;
    bool is_outside = false;
    for (range r; take_range(&at, text, &r);)
        for (int p = r.first; p <= r.last; p += r.step) {
            is_outside |= !tl_processors_has(allowed, p);
            if (tl_processors_has(&left, p))
                place[(*n)++] = p;
            CPU_CLR_S(p, sizeof left.part, left.part);
        }
    if (*at)
        return tl_fail(TILE_BAD_ARGUMENT,
                       "%s is '%s', but must be none, compact, spread or a list of processors "
                       "such as 0-3,8",
                       name, text);
    say_set(allowed, may, sizeof may);
    return is_outside ? tl_fail(TILE_BAD_ARGUMENT,
                                "%s is '%s', but this process may run on processors %s only", name,
                                text, may)
                      : TILE_OK;
}

tile_status tl_affinity_places(const char *root, const char *name, const char *text,
                               const tl_processors *allowed, int **out_place, int *out_n)
{
    int n = tl_processors_count(allowed), listed = 0;
    *out_place = NULL;
    *out_n = 0;
    if (!text || !*text || strcmp(text, "none") == 0)
        return TILE_OK;
    int *place = malloc((size_t)n * sizeof *place);
    if (!place)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    bool spread = strcmp(text, "spread") == 0, is_list = !spread && strcmp(text, "compact") != 0;
    tile_status status = is_list ? read_list(name, text, allowed, place, &listed)
                                 : find_order(root, spread, allowed, place, n);
    if (status != TILE_OK) {
        free(place);
        return status;
    }
    *out_place = place;
    *out_n = is_list ? listed : n;
    return TILE_OK;
}

tile_status tl_affinity_pin(pthread_t thread, int processor)
{
    tl_processors set = {0};
    CPU_SET_S(processor, sizeof set.part, set.part);
    int error = pthread_setaffinity_np(thread, sizeof set.part, set.part);
    return error ? tl_fail(TILE_UNAVAILABLE,
                           "a worker cannot be pinned to processor %d: %s",
                           processor, strerror(error))
                 : TILE_OK;
}
