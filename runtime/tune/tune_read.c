/* tune_read.c: reads .tune.json. Nothing in a file is trusted: what is not as it should be is said,
 * and nothing of the file is used. Members that are not known are passed over, so that a later
 * version may have more of them. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"
#include "runtime/tune_file.h"

enum { MOST_BYTES = 16 << 20 };

typedef struct reader {
    char *why;
    size_t size, index; /* of the result, for messages */
    tile_status status;
} reader;

static bool wrong(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (r->status == TILE_OK)
        vsnprintf(r->why, r->size, format, args);
    r->status = r->status == TILE_OK ? TILE_IO : r->status;
    va_end(args);
    return false;
}

static bool no_memory(reader *r)
{
    wrong(r, "out of memory");
    r->status = TILE_NO_MEMORY;
    return false;
}

/* ---- members ---- */

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool take_text(reader *r, const cJSON *object, const char *name, char **out)
{
    const cJSON *item = member(object, name);
    if (!cJSON_IsString(item))
        return wrong(r, "result %zu: '%s' is not a text", r->index, name);
    *out = strdup(item->valuestring);
    return *out || no_memory(r);
}

static bool take_short(reader *r, const cJSON *object, const char *name, char *out, size_t size)
{
    const cJSON *item = member(object, name);
    if (!cJSON_IsString(item) || strlen(item->valuestring) >= size)
        return wrong(r, "result %zu: '%s' is not a text of fewer than %zu characters", r->index,
                     name, size);
    snprintf(out, size, "%s", item->valuestring);
    return true;
}

static bool take_number(reader *r, const cJSON *item, const char *name, double low, double high,
                        double *out)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= low && item->valuedouble <= high) ||
        item->valuedouble != floor(item->valuedouble))
        return wrong(r, "result %zu: '%s' is not a whole number from %.0f to %.0f", r->index, name,
                     low, high);
    *out = item->valuedouble;
    return true;
}

static bool take_device(reader *r, const cJSON *object, tl_tune_device *out)
{
    const cJSON *device = member(object, "device");
    double threads;
    if (!cJSON_IsObject(device))
        return wrong(r, "result %zu: 'device' is not an object", r->index);
    if (!take_short(r, device, "target", out->target, sizeof out->target) ||
        !take_short(r, device, "name", out->name, sizeof out->name) ||
        !take_number(r, member(device, "threads"), "threads", 0, 1 << 20, &threads))
        return false;
    out->threads = (int)threads;
    return true;
}

static size_t count_words(const char *text)
{
    size_t n = *text != 0;
    for (; *text; text++)
        n += *text == ' ';
    return n;
}

/* One number for each key. */
static bool take_keys(reader *r, const cJSON *object, tl_tune_result *out)
{
    const cJSON *bucket = member(object, "bucket"), *sizes = member(object, "sizes");
    out->nkeys = count_words(out->keys);
    if (out->nkeys > TILE_IMAGE_MAX_KEYS || !cJSON_IsArray(bucket) || !cJSON_IsArray(sizes) ||
        (size_t)cJSON_GetArraySize(bucket) != out->nkeys ||
        (size_t)cJSON_GetArraySize(sizes) != out->nkeys)
        return wrong(r, "result %zu: 'bucket' and 'sizes' are not lists of one number for each key",
                     r->index);
    for (size_t i = 0; i < out->nkeys; i++) {
        double b, n;
        if (!take_number(r, cJSON_GetArrayItem(bucket, (int)i), "bucket", -1, 63, &b) ||
            !take_number(r, cJSON_GetArrayItem(sizes, (int)i), "sizes", -9e15, 9e15, &n))
            return false;
        out->bucket[i] = (int32_t)b;
        out->sizes[i] = (int64_t)n;
    }
    return true;
}

static bool take_time(reader *r, const cJSON *item, tl_tune_result *out)
{
    bool number = cJSON_IsNumber(item) && item->valuedouble >= 0 && isfinite(item->valuedouble);
    if (!number && !cJSON_IsString(item))
        return wrong(r, "result %zu: the time of '%s' is neither a number nor a reason", r->index,
                     item->string);
    if (tl_tune_time_of(out, item->string))
        return wrong(r, "result %zu: '%s' has two times", r->index, item->string);
    tl_tune_time *t = tl_tune_add_time(out, item->string);
    if (!t)
        return no_memory(r);
    t->us = number ? item->valuedouble : 0;
    t->rejected = number ? NULL : strdup(item->valuestring);
    return number || t->rejected || no_memory(r);
}

static bool take_times(reader *r, const cJSON *object, tl_tune_result *out)
{
    const cJSON *times = member(object, "times"), *item, *best = member(object, "best");
    if (!cJSON_IsObject(times))
        return wrong(r, "result %zu: 'times' is not an object", r->index);
    cJSON_ArrayForEach(item, times)
        if (!take_time(r, item, out))
            return false;
    if (!best)
        return true;
    if (!take_text(r, object, "best", &out->best))
        return false;
    const tl_tune_time *t = tl_tune_time_of(out, out->best);
    return (t && !t->rejected) || wrong(r, "result %zu: 'best' has no time", r->index);
}

static bool take_result(reader *r, const cJSON *object, tl_tune_file *file)
{
    if (!cJSON_IsObject(object))
        return wrong(r, "result %zu is not an object", r->index);
    tl_tune_result *out = tl_tune_add(file);
    if (!out)
        return no_memory(r);
    if (!take_text(r, object, "kernel", &out->kernel) ||
        !take_text(r, object, "constants", &out->constants) ||
        !take_text(r, object, "hash", &out->hash) || !take_text(r, object, "keys", &out->keys) ||
        !take_text(r, object, "how", &out->how) || !take_text(r, object, "tool", &out->tool) ||
        !take_device(r, object, &out->device) || !take_keys(r, object, out) ||
        !take_times(r, object, out))
        return false;
    out->open = cJSON_IsFalse(member(object, "settled"));
    const tl_tune_file before = {file->results, file->len - 1};
    return !tl_tune_find(&before, out) ||
           wrong(r, "result %zu is of a size that an earlier one has", r->index);
}

/* ---- the whole ---- */

static bool take_all(reader *r, const cJSON *root, tl_tune_file *file)
{
    const cJSON *format = member(root, "format"), *version = member(root, "version"),
                *results = member(root, "results"), *item;
    double number;
    if (!cJSON_IsObject(root) || !cJSON_IsString(format) ||
        strcmp(format->valuestring, "tile-tune") != 0)
        return wrong(r, "it is not a file of tuning results (\"format\": \"tile-tune\")");
    if (!cJSON_IsNumber(version))
        return wrong(r, "it has no version");
    number = version->valuedouble;
    if (number != TL_TUNE_VERSION)
        return wrong(r, "it is of version %g, this program reads version %d", number,
                     TL_TUNE_VERSION);
    if (!cJSON_IsArray(results))
        return wrong(r, "'results' is not a list");
    cJSON_ArrayForEach(item, results)
    {
        r->index++;
        if (!take_result(r, item, file))
            return false;
    }
    return true;
}

/* cJSON notes the place of an error in a variable of its own: one thread at a time. */
static cJSON *parse_json(const char *text, size_t length, const char **out_end)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    cJSON *root = cJSON_ParseWithLengthOpts(text, length, out_end, 0);
    pthread_mutex_unlock(&lock);
    return root;
}

static int line_of(const char *text, size_t length, const char *at)
{
    int line = 1;
    for (const char *p = text; at && p < at && p < text + length; p++)
        line += *p == '\n';
    return line;
}

static bool only_space(const char *p, const char *end)
{
    while (p < end && strchr(" \t\r\n", *p) && *p)
        p++;
    return p == end;
}

tile_status tl_tune_parse(const char *text, size_t length, tl_tune_file *out, char *why,
                          size_t size)
{
    reader r = {.why = why, .size = size};
    const char *end = NULL;
    *out = (tl_tune_file){0};
    if (memchr(text, 0, length)) {
        wrong(&r, "it contains a byte of value 0");
        return r.status;
    }
    cJSON *root = parse_json(text, length, &end);
    if (!root || !only_space(end, text + length))
        wrong(&r, "line %d: it is not JSON", line_of(text, length, end));
    else
        take_all(&r, root, out);
    cJSON_Delete(root);
    if (r.status != TILE_OK)
        tl_tune_file_free(out);
    return r.status;
}

/* The whole file; NULL with `why` set, or unset when there is no file. */
static char *read_file(const char *path, size_t *out_length, reader *r)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        if (errno != ENOENT && errno != ENOTDIR)
            wrong(r, "%s", strerror(errno));
        return NULL;
    }
    size_t room = 1 << 14, n = 0;
    char *text = malloc(room);
    while (text) {
        n += fread(text + n, 1, room - n, f);
        if (n < room || room > MOST_BYTES)
            break;
        char *more = realloc(text, room *= 2);
        if (!more)
            free(text);
        text = more;
    }
    if (!text)
        no_memory(r);
    else if (ferror(f))
        wrong(r, "%s", strerror(errno ? errno : EIO));
    else if (n > MOST_BYTES)
        wrong(r, "it is larger than 16 MiB");
    fclose(f);
    if (r->status != TILE_OK) {
        free(text);
        return NULL;
    }
    *out_length = n;
    return text;
}

tile_status tl_tune_read(const char *path, tl_tune_file *out, char *why, size_t size)
{
    reader r = {.why = why, .size = size};
    size_t length = 0;
    *out = (tl_tune_file){0};
    char *text = read_file(path, &length, &r);
    if (!text)
        return r.status;
    tile_status status = tl_tune_parse(text, length, out, why, size);
    free(text);
    return status;
}
