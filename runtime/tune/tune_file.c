/* tune_file.c: .tune.json in memory, and its text. tune_read.c reads it.
 *
 * Each result is written on lines of its own, with one configuration per line, and everything is
 * sorted: two machines that add results to one file change different lines. */
#include "ir/support/number.h"
#include "runtime/tune_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/runtime.h"

/* ---- in memory ---- */

char *tl_tune_path(const char *source)
{
    static const char ending[] = ".tune.json";
    const char *slash = strrchr(source, '/'), *name = slash ? slash + 1 : source,
               *dot = strrchr(name, '.');
    bool library = !strncmp(source, "std.", 4) && (!dot || strcmp(dot, ".tile"));
    size_t n = dot && dot != name && !library ? (size_t)(dot - source) : strlen(source);
    char *path = malloc(n + sizeof ending);
    if (path) {
        memcpy(path, source, n);
        memcpy(path + n, ending, sizeof ending);
    }
    return path;
}

void tl_tune_clear(tl_tune_result *r)
{
    for (size_t i = 0; i < r->ntimes; i++) {
        free(r->times[i].config);
        free(r->times[i].rejected);
    }
    free(r->times);
    free(r->best);
    free(r->standard);
    r->times = NULL;
    r->best = NULL;
    r->standard = NULL;
    r->open = false;
    r->ntimes = 0;
}

void tl_tune_result_free(tl_tune_result *r)
{
    char *texts[] = {r->kernel, r->constants, r->keys, r->hash, r->how, r->tool};
    tl_tune_clear(r);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        free(texts[k]);
}

void tl_tune_file_free(tl_tune_file *file)
{
    for (size_t i = 0; i < file->len; i++)
        tl_tune_result_free(&file->results[i]);
    free(file->results);
    *file = (tl_tune_file){0};
}

tl_tune_result *tl_tune_add(tl_tune_file *file)
{
    tl_tune_result *more = realloc(file->results, (file->len + 1) * sizeof *more);
    if (!more)
        return NULL;
    file->results = more;
    more[file->len] = (tl_tune_result){0};
    return &more[file->len++];
}

tl_tune_time *tl_tune_add_time(tl_tune_result *r, const char *config)
{
    tl_tune_time *more = realloc(r->times, (r->ntimes + 1) * sizeof *more);
    if (!more)
        return NULL;
    r->times = more;
    more[r->ntimes] = (tl_tune_time){.config = strdup(config)};
    return more[r->ntimes].config ? &more[r->ntimes++] : NULL;
}

tl_tune_time *tl_tune_time_of(const tl_tune_result *r, const char *config)
{
    for (size_t i = 0; i < r->ntimes; i++)
        if (strcmp(r->times[i].config, config) == 0)
            return &r->times[i];
    return NULL;
}

static int compare_devices(const tl_tune_device *a, const tl_tune_device *b)
{
    int order = strcmp(a->target, b->target);
    order = order ? order : strcmp(a->name, b->name);
    return order ? order : a->threads < b->threads ? -1 : a->threads > b->threads;
}

static int compare_results(const void *x, const void *y)
{
    const tl_tune_result *a = x, *b = y;
    int order = strcmp(a->kernel, b->kernel);
    order = order ? order : strcmp(a->constants, b->constants);
    order = order ? order : compare_devices(&a->device, &b->device);
    order = order ? order : strcmp(a->keys, b->keys);
    for (size_t i = 0; !order && i < a->nkeys && i < b->nkeys; i++)
        order = a->bucket[i] < b->bucket[i] ? -1 : a->bucket[i] > b->bucket[i];
    return order;
}

static int compare_times(const void *a, const void *b)
{
    const tl_tune_time *x = a, *y = b;
    int order = strverscmp(x->config, y->config); /* BM=64 before BM=128 */
    return order ? order : strcmp(x->config, y->config);
}

tl_tune_result *tl_tune_find(const tl_tune_file *file, const tl_tune_result *like)
{
    for (size_t i = 0; i < file->len; i++)
        if (compare_results(&file->results[i], like) == 0)
            return &file->results[i];
    return NULL;
}

/* ---- as text ---- */

/* Bytes of the UTF-8 character; 0: there is none. Reasons name files, whose names are any bytes. */
static int utf8_length(const unsigned char *p)
{
    int n = *p < 0x80 ? 1 : *p < 0xC2 ? 0 : *p < 0xE0 ? 2 : *p < 0xF0 ? 3 : *p < 0xF5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool is_long = (*p == 0xE0 && p[1] < 0xA0) || (*p == 0xF0 && p[1] < 0x90);
    bool is_none = (*p == 0xED && p[1] >= 0xA0) || (*p == 0xF4 && p[1] >= 0x90);
    return is_long || is_none ? 0 : n;
}

static void put_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (const unsigned char *p = (const unsigned char *)(text ? text : ""); *p;) {
        int n = utf8_length(p);
        if (*p == '"' || *p == '\\')
            fprintf(f, "\\%c", *p);
        else if (*p < 0x20)
            fprintf(f, "\\u%04x", *p);
        else if (n)
            fprintf(f, "%.*s", n, (const char *)p);
        else
            fputs("\\ufffd", f);
        p += n ? n : 1;
    }
    fputc('"', f);
}

static void put_member(FILE *f, const char *name, const char *text)
{
    fprintf(f, "      \"%s\": ", name);
    put_string(f, text);
    fputs(",\n", f);
}

static void put_times(FILE *f, const tl_tune_result *r)
{
    fputs("      \"times\": {", f);
    for (size_t i = 0; i < r->ntimes; i++) {
        const tl_tune_time *t = &r->times[i];
        fputs(i ? ",\n        " : "\n        ", f);
        put_string(f, t->config);
        fputs(": ", f);
        if (t->rejected)
            put_string(f, t->rejected);
        else
            fprintf(f, "%s", TL_NUMBER("%.5g", t->us));
    }
    fputs(r->ntimes ? "\n      }\n" : "}\n", f);
}

static void put_result(FILE *f, const tl_tune_result *r)
{
    put_member(f, "kernel", r->kernel);
    put_member(f, "constants", r->constants);
    put_member(f, "hash", r->hash);
    fputs("      \"device\": {\"target\": ", f);
    put_string(f, r->device.target);
    fputs(", \"name\": ", f);
    put_string(f, r->device.name);
    fprintf(f, ", \"threads\": %d},\n", r->device.threads);
    put_member(f, "keys", r->keys);
    fputs("      \"bucket\": [", f);
    for (size_t i = 0; i < r->nkeys; i++)
        fprintf(f, "%s%d", i ? ", " : "", (int)r->bucket[i]);
    fputs("],\n      \"sizes\": [", f);
    for (size_t i = 0; i < r->nkeys; i++)
        fprintf(f, "%s%" PRId64, i ? ", " : "", r->sizes[i]);
    fputs("],\n", f);
    if (r->best)
        put_member(f, "best", r->best);
    if (r->standard)
        put_member(f, "default", r->standard);
    put_member(f, "how", r->how);
    if (r->open)
        fputs("      \"settled\": false,\n", f);
    put_member(f, "tool", r->tool);
    put_times(f, r);
}

char *tl_tune_format(tl_tune_file *file)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    if (file->len)
        qsort(file->results, file->len, sizeof *file->results, compare_results);
    fprintf(f, "{\n  \"format\": \"tile-tune\",\n  \"version\": %d,\n  \"results\": [",
            TL_TUNE_VERSION);
    for (size_t i = 0; i < file->len; i++) {
        tl_tune_result *r = &file->results[i];
        if (r->ntimes)
            qsort(r->times, r->ntimes, sizeof *r->times, compare_times);
        fputs(i ? ",\n    {\n" : "\n    {\n", f);
        put_result(f, r);
        fputs("    }", f);
    }
    fputs(file->len ? "\n  ]\n}\n" : "]\n}\n", f);
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad) {
        free(text);
        return NULL;
    }
    return text;
}

static bool write_text(int fd, const char *text)
{
    size_t left = strlen(text);
    while (left) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        left -= (size_t)n;
    }
    return fsync(fd) == 0 || errno == EINVAL || errno == EROFS;
}

/* Beside its place, so that the rename is within one file system. */
static tile_status replace(const char *path, char *temporary, const char *text)
{
    int fd = mkstemp(temporary);
    bool ok = fd >= 0 && fchmod(fd, 0644) == 0 && write_text(fd, text);
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok && rename(temporary, path) != 0) {
        ok = false;
        error = errno;
    }
    if (!ok && fd >= 0)
        unlink(temporary);
    return ok ? TILE_OK : tl_fail(TILE_IO, "cannot write '%s': %s", path, strerror(error));
}

/* Of the folder: the file itself is replaced by each write, and a file beside it would stay. */
int tl_tune_lock(const char *path)
{
    char *real = realpath(path, NULL), *name = strdup(real ? real : path),
         *slash = name ? strrchr(name, '/') : NULL;
    if (slash)
        slash[slash == name] = 0;
    int lock = open(slash ? name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (lock >= 0 && flock(lock, LOCK_EX) != 0)
        if (errno != EINTR) {
            close(lock);
            lock = -1;
        }
    free(real);
    free(name);
    return lock;
}

void tl_tune_unlock(int lock)
{
    if (lock >= 0) {
        flock(lock, LOCK_UN); /* a process that was forked meanwhile has it, too */
        close(lock);
    }
}

tile_status tl_tune_write(const char *path, tl_tune_file *file)
{
    char *text = tl_tune_format(file), *real = realpath(path, NULL), *temporary = NULL;
    tile_status status = TILE_NO_MEMORY;
    const char *place = real ? real : path; /* the file behind a link is replaced, not the link */
    size_t n = strlen(place) + sizeof ".XXXXXX";
    temporary = malloc(n);
    if (text && temporary) {
        snprintf(temporary, n, "%s.XXXXXX", place);
        status = replace(place, temporary, text);
    } else {
        tl_fail(status, "out of memory");
    }
    free(text);
    free(real);
    free(temporary);
    return status;
}
