/* processors.c: how many threads of this process can run at once.
 *
 * Two things limit it: the processors on which the system lets it run (taskset, cpusets), and the
 * time that its control groups leave it (`docker run --cpus=2`). A group may have a quota of so
 * much time in each period, and so may each group around it:
 *     version 2: the file cpu.max, "200000 100000" or "max 100000"
 *     version 1: the files cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us
 * /proc/self/mountinfo tells where hierarchies of groups are mounted, and /proc/self/cgroup the
 * group of this process in each. In a container the mount may show only a part of the hierarchy,
 * and the group of the process may lie outside of it; then the mount's own group is what there
 * is. */
#include "runtime/host/processors.h"
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_BYTES = 8192 };

void tl_processors_allowed(tl_processors *out_set)
{
    memset(out_set, 0, sizeof *out_set);
    if (sched_getaffinity(0, sizeof out_set->part, out_set->part) == 0 &&
        tl_processors_count(out_set) > 0)
        return;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i == 0 || (i < n && i < TL_MAX_PROCESSORS); i++)
        CPU_SET_S(i, sizeof out_set->part, out_set->part);
}

int tl_processors_count(const tl_processors *set)
{
    return CPU_COUNT_S(sizeof set->part, set->part);
}

bool tl_processors_has(const tl_processors *set, int processor)
{
    return processor >= 0 && CPU_ISSET_S(processor, sizeof set->part, set->part);
}

/* A line without its end; what does not fit is left out. */
static bool next_line(FILE *f, char *line, size_t size)
{
    if (!fgets(line, (int)size, f))
        return false;
    size_t n = strcspn(line, "\n");
    for (int c = line[n]; c != '\n' && c != EOF;)
        c = getc(f);
    line[n] = 0;
    return true;
}

bool tl_processors_read(const char *root, char *line, size_t size, const char *path, ...)
{
    char name[PATH_MAX];
    va_list args;
    size_t n = (size_t)snprintf(name, sizeof name, "%s/", root);
    if (n >= sizeof name)
        return false;
    va_start(args, path);
    int more = vsnprintf(name + n, sizeof name - n, path, args);
    va_end(args);
    FILE *f = more >= 0 && (size_t)more < sizeof name - n ? fopen(name, "re") : NULL;
    bool read = f && next_line(f, line, size);
    if (f)
        fclose(f);
    return read;
}

/* ---- control groups ---- */

/* A mounted hierarchy that can limit processor time. */
typedef struct hierarchy {
    bool is_v2;
    char part[PATH_MAX]; /* the group at the mount point */
    char mount[PATH_MAX];
} hierarchy;

/* Is `word` one of the words of a list with commas? */
static bool lists(const char *list, const char *word)
{
    for (size_t n = strlen(word); list; list = strchr(list, ','), list += list != NULL)
        if (strncmp(list, word, n) == 0 && (list[n] == ',' || list[n] == 0))
            return true;
    return false;
}

/* "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu" */
static bool read_hierarchy(const char *line, hierarchy *h)
{
    char kind[16], options[256];
    _Static_assert(PATH_MAX >= 4096, "the fields below have 4095 characters");
    const char *rest = strstr(line, " - ");
    if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", h->part, h->mount) != 2 ||
        sscanf(rest, " - %15s %*s %255s", kind, options) != 2)
        return false;
    h->is_v2 = strcmp(kind, "cgroup2") == 0;
    return h->is_v2 || (strcmp(kind, "cgroup") == 0 && lists(options, "cpu"));
}

/* "4:cpu,cpuacct:/a/b", of version 2 "0::/a/b": the group of this process in the hierarchy; NULL
 * when the line is about another one. */
static const char *group_of(char *line, const hierarchy *h)
{
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : 0;
    if (!path)
        return NULL;
    *path++ = 0;
    controllers++;
    return (h->is_v2 ? *controllers == 0 : lists(controllers, "cpu")) ? path : NULL;
}

/* Processors for whose time the group at `path` has a quota, rounded up; INT_MAX without. */
static int quota_of(const char *root, const hierarchy *h, const char *path)
{
    char line[64], second[64];
    int64_t quota = -1, period = 0;
    if (h->is_v2) {
        if (tl_processors_read(root, line, sizeof line, "%s/cpu.max", path) &&
            sscanf(line, "%" SCNd64 " %" SCNd64, &quota, &period) != 2)
            quota = -1; /* "max" */
    } else if (tl_processors_read(root, line, sizeof line, "%s/cpu.cfs_quota_us", path) &&
               tl_processors_read(root, second, sizeof second, "%s/cpu.cfs_period_us", path)) {
        quota = strtoll(line, NULL, 10);
        period = strtoll(second, NULL, 10);
    }
    if (quota <= 0 || period <= 0)
        return INT_MAX;
    int64_t n = quota / period + (quota % period != 0);
    return n < INT_MAX ? (int)n : INT_MAX;
}

/* The least quota from the process's group up to the mount point. */
static int quota_in(const char *root, const hierarchy *h, const char *group)
{
    char path[2 * PATH_MAX];
    size_t part = strcmp(h->part, "/") == 0 ? 0 : strlen(h->part), mount = strlen(h->mount);
    bool is_inside = strncmp(group, h->part, part) == 0 && group[part] == '/';
    snprintf(path, sizeof path, "%s%s", h->mount, is_inside ? group + part : "");
    for (int least = INT_MAX;;) {
        int quota = quota_of(root, h, path);
        least = quota < least ? quota : least;
        char *end = strrchr(path + mount, '/');
        if (!end)
            return least;
        *end = 0;
    }
}

static FILE *open_process_file(const char *root, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/proc/self/%s", root, name);
    return n >= 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
}

static int quota_of_process(const char *root, const hierarchy *h)
{
    char line[LINE_BYTES];
    int quota = INT_MAX;
    FILE *f = open_process_file(root, "cgroup");
    while (f && quota == INT_MAX && next_line(f, line, sizeof line)) {
        const char *group = group_of(line, h);
        if (group)
            quota = quota_in(root, h, group);
    }
    if (f)
        fclose(f);
    return quota;
}

int tl_processors_quota(const char *root, int most)
{
    char line[LINE_BYTES];
    hierarchy h;
    FILE *f = open_process_file(root, "mountinfo");
    while (f && next_line(f, line, sizeof line))
        if (read_hierarchy(line, &h)) {
            int quota = quota_of_process(root, &h);
            most = quota < most ? quota : most;
        }
    if (f)
        fclose(f);
    return most < 1 ? 1 : most;
}
