/* tune_select.c: which results of a .tune.json are for a device. */
#define TILE_UNSTABLE
#include "runtime/tune_select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cpu_level.h"

/* ---- devices ---- */

/* The highest level that this machine has. */
static const char *machine_level(void)
{
    static const char *const levels[] = {
#define CPU_LEVEL(name, arch, triple, cpu, features) name,
#include "runtime/contract/cpu_level.def"
    };
    const char *found = "";
    uint64_t machine = tl_cpu_machine(), features;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (tl_cpu_open("cpu", levels[i], machine, &features) == TILE_OK)
            found = levels[i];
    return found;
}

/* As Linux calls it; "" where it does not. */
static void machine_name(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    *out = 0;
    while (f && !*out && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            const char *name = strchr(line, ':') + 1;
            name += strspn(name, " \t");
            snprintf(out, size, "%.*s", (int)strcspn(name, "\n"), name);
        }
    if (f)
        fclose(f);
}

void tl_tune_device_of_target(const char *target, tl_tune_device *out)
{
    *out = (tl_tune_device){0};
    if (strncmp(target, "emu:", 4) == 0) {
        snprintf(out->target, sizeof out->target, "%.*s", (int)strcspn(target + 4, "@"),
                 target + 4);
    } else if (strcmp(target, "cpu") == 0 || strcmp(target, "cpu:native") == 0) {
        snprintf(out->target, sizeof out->target, "cpu:%s", machine_level());
        machine_name(out->name, sizeof out->name);
    } else {
        snprintf(out->target, sizeof out->target, "%s", target);
        if (strncmp(target, "cpu:", 4) == 0)
            machine_name(out->name, sizeof out->name);
    }
}

tile_status tl_tune_device_of(tile_device *device, tl_tune_device *out)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_status status = tile_device_get_info(device, &info);
    if (status != TILE_OK)
        return status;
    tl_tune_device_of_target(info.target, out);
    bool is_cpu = strncmp(out->target, "cpu", 3) == 0, is_ref = strcmp(out->target, "ref") == 0;
    if (is_cpu)
        out->threads = info.processors;
    else if (!is_ref && !info.host_memory)
        snprintf(out->name, sizeof out->name, "%s", info.name);
    return TILE_OK;
}

/* ---- rows ---- */

bool tl_tune_serves(const char *have, const char *want)
{
    size_t n = strlen(have);
    return strncmp(have, want, n) == 0 &&
           (!want[n] || (want[n] == '-' && strncmp(want, "cpu:", 4) == 0));
}

/* How little a machine's times tell of the device: lower is better. */
typedef struct unlike {
    bool level, name;
    int threads, fewer;
} unlike;

static int log2_of(int n)
{
    int bits = 0;
    while (n > 1) {
        bits++;
        n /= 2;
    }
    return bits;
}

static unlike compare(const tl_tune_device *want, const tl_tune_device *have)
{
    int apart = log2_of(want->threads) - log2_of(have->threads);
    return (unlike){strcmp(want->target, have->target) != 0, strcmp(want->name, have->name) != 0,
                    want->threads ? (apart < 0 ? -apart : apart) : 0, -have->threads};
}

static bool is_better(const unlike *a, const unlike *b)
{
    if (a->level != b->level)
        return b->level;
    if (a->name != b->name)
        return b->name;
    return a->threads != b->threads ? a->threads < b->threads : a->fewer < b->fewer;
}

static bool same_subject(const tl_tune_result *a, const tl_tune_result *b)
{
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->constants, b->constants) == 0 &&
           strcmp(a->keys, b->keys) == 0;
}

static bool same_machine(const tl_tune_device *a, const tl_tune_device *b)
{
    return strcmp(a->target, b->target) == 0 && strcmp(a->name, b->name) == 0 &&
           a->threads == b->threads;
}

/* Is there no other machine whose results for the kernel suit better? */
static bool is_nearest(const tl_tune_file *file, const tl_tune_result *r,
                       const tl_tune_device *device)
{
    unlike mine = compare(device, &r->device);
    for (size_t i = 0; i < file->len; i++) {
        const tl_tune_result *o = &file->results[i];
        if (!same_subject(o, r) || !tl_tune_serves(o->device.target, device->target) ||
            same_machine(&o->device, &r->device))
            continue;
        unlike theirs = compare(device, &o->device);
        if (is_better(&theirs, &mine))
            return false;
        if (!is_better(&mine, &theirs) && strcmp(o->device.name, r->device.name) < 0)
            return false;
    }
    return true;
}

static int by_time(const void *a, const void *b)
{
    const tl_tune_time *const *x = a, *const *y = b;
    if ((*x)->us != (*y)->us)
        return (*x)->us < (*y)->us ? -1 : 1;
    return strcmp((*x)->config, (*y)->config);
}

/* The configurations that have a time: the choice first, then the faster ones. NULL: no memory. */
static const char **rank(const tl_tune_result *r, size_t *out_count)
{
    const tl_tune_time **order = calloc(r->ntimes + 1, sizeof *order);
    const char **configs = calloc(r->ntimes + 1, sizeof *configs);
    size_t n = 0, at = 0;
    if (order && configs) {
        for (size_t i = 0; i < r->ntimes; i++)
            if (!r->times[i].rejected)
                order[n++] = &r->times[i];
        qsort(order, n, sizeof *order, by_time);
        if (r->best)
            configs[at++] = r->best;
        for (size_t i = 0; i < n; i++)
            if (!r->best || strcmp(order[i]->config, r->best) != 0)
                configs[at++] = order[i]->config;
    } else {
        free(configs);
        configs = NULL;
    }
    free(order);
    *out_count = at;
    return configs;
}

static tile_status add_row(tl_tune_rows *rows, const tl_tune_result *r, const char *target)
{
    tilec_tuned *more = realloc(rows->data, (rows->len + 1) * sizeof *more);
    size_t n = 0;
    const char **configs = more ? rank(r, &n) : NULL;
    if (more)
        rows->data = more;
    if (!configs)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    more[rows->len++] = (tilec_tuned){.target = target,
                                      .kernel = r->kernel,
                                      .hash = r->hash,
                                      .constants = r->constants,
                                      .keys = r->keys,
                                      .bucket = r->bucket,
                                      .nbucket = r->nkeys,
                                      .configs = configs,
                                      .nconfigs = n};
    return TILE_OK;
}

tile_status tl_tune_select(tl_tune_rows *rows, const tl_tune_device *device, const char *target)
{
    tile_status status = TILE_OK;
    for (size_t i = 0; i < rows->file.len && status == TILE_OK; i++) {
        const tl_tune_result *r = &rows->file.results[i];
        if (r->best && tl_tune_serves(r->device.target, device->target) &&
            is_nearest(&rows->file, r, device))
            status = add_row(rows, r, target);
    }
    return status;
}

void tl_tune_rows_free(tl_tune_rows *rows)
{
    for (size_t i = 0; i < rows->len; i++)
        free((void *)(uintptr_t)rows->data[i].configs);
    free(rows->data);
    tl_tune_file_free(&rows->file);
    *rows = (tl_tune_rows){0};
}

bool tl_tune_may_read(const char *source, char *why, size_t size)
{
    size_t n;
    return !tilec_library_text(source, &n) || tilec_trusts_folder(".", why, size);
}

tile_status tl_tune_beside(const char *source, tile_device *device, tl_tune_rows *out, char *why,
                           size_t size)
{
    const char *setting = secure_getenv("TILE_TUNE");
    tl_tune_device like;
    char text[256] = "";
    *out = (tl_tune_rows){0};
    snprintf(why, size, "%s", "");
    if (setting && *setting && strcmp(setting, "off") != 0 && strcmp(setting, "on") != 0)
        return tl_fail(TILE_BAD_ARGUMENT, "TILE_TUNE is '%s'; expected on or off", setting);
    if (setting && strcmp(setting, "off") == 0)
        return TILE_OK;
    char *path = tl_tune_path(source);
    if (!path)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    tile_status status = tl_tune_read(path, &out->file, text, sizeof text);
    if (status == TILE_OK && out->file.len && !tl_tune_may_read(source, text, sizeof text)) {
        tl_tune_file_free(&out->file);
        status = TILE_IO;
    }
    if (status == TILE_IO) {
        snprintf(why, size, "%s: warning: the tuning results are not used: %s\n", path, text);
        status = TILE_OK;
    } else if (status != TILE_OK) {
        tl_fail(status, "%s: %s", path, text);
    }
    if (status == TILE_OK && out->file.len)
        status = tl_tune_device_of(device, &like);
    if (status == TILE_OK && out->file.len)
        status = tl_tune_select(out, &like, NULL);
    if (status != TILE_OK)
        tl_tune_rows_free(out);
    free(path);
    return status;
}
