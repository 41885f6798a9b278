/* tune_read.c: reads .tune.json. Nothing in a file is trusted: anything wrong is reported, and
 * then nothing of the file is used. Unknown members are skipped, so that later versions may add
 * some. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/support/ascii.h"
#include "ir/support/number.h"
#include "runtime/runtime.h"
#include "runtime/tune_file.h"

enum { MOST_BYTES = 16 << 20 }; /* of a file: far more than a tuning run writes */

/* What jansson compares files with; CMakeLists.txt says why. No file is read by jansson. */
FILE *tl_tune_stdin;

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

static const json_t *member(const json_t *object, const char *name)
{
    return json_object_get(object, name);
}

static bool take_text(reader *r, const json_t *object, const char *name, char **out)
{
    const json_t *item = member(object, name);
    if (!json_is_string(item))
        return wrong(r, "result %zu: '%s' is not a text", r->index, name);
    *out = strdup(json_string_value(item));
    return *out || no_memory(r);
}

static bool take_short(reader *r, const json_t *object, const char *name, char *out, size_t size)
{
    const json_t *item = member(object, name);
    if (!json_is_string(item) || strlen(json_string_value(item)) >= size)
        return wrong(r, "result %zu: '%s' is not a text of fewer than %zu characters", r->index,
                     name, size);
    snprintf(out, size, "%s", json_string_value(item));
    return true;
}

static bool take_number(reader *r, const json_t *item, const char *name, double low, double high,
                        double *out)
{
    double number = json_number_value(item);
    if (!json_is_number(item) || !(number >= low && number <= high) || number != floor(number))
        return wrong(r, "result %zu: '%s' is not a whole number from %s to %s", r->index, name,
                     TL_NUMBER("%.0f", low), TL_NUMBER("%.0f", high));
    *out = number;
    return true;
}

static bool take_device(reader *r, const json_t *object, tl_tune_device *out)
{
    const json_t *device = member(object, "device");
    double threads;
    if (!json_is_object(device))
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
static bool take_keys(reader *r, const json_t *object, tl_tune_result *out)
{
    const json_t *bucket = member(object, "bucket"), *sizes = member(object, "sizes");
    out->nkeys = count_words(out->keys);
    if (out->nkeys > TILE_IMAGE_MAX_KEYS || !json_is_array(bucket) || !json_is_array(sizes) ||
        json_array_size(bucket) != out->nkeys || json_array_size(sizes) != out->nkeys)
        return wrong(r, "result %zu: 'bucket' and 'sizes' are not lists of one number for each key",
                     r->index);
    for (size_t i = 0; i < out->nkeys; i++) {
        double b, n;
        if (!take_number(r, json_array_get(bucket, i), "bucket", -1, 63, &b) ||
            !take_number(r, json_array_get(sizes, i), "sizes", -9e15, 9e15, &n))
            return false;
        out->bucket[i] = (int32_t)b;
        out->sizes[i] = (int64_t)n;
    }
    return true;
}

static bool take_time(reader *r, const char *config, const json_t *item, tl_tune_result *out)
{
    bool number = json_is_number(item) && json_number_value(item) >= 0;
    if (!number && !json_is_string(item))
        return wrong(r, "result %zu: the time of '%s' is neither a number nor a reason", r->index,
                     config);
    tl_tune_time *t = tl_tune_add_time(out, config);
    if (!t)
        return no_memory(r);
    t->us = json_number_value(item);
    t->rejected = number ? NULL : strdup(json_string_value(item));
    return number || t->rejected || no_memory(r);
}

static bool take_times(reader *r, const json_t *object, tl_tune_result *out)
{
    json_t *times = json_object_get(object, "times"), *item;
    const json_t *best = member(object, "best");
    const char *config;
    if (member(object, "default") && !take_text(r, object, "default", &out->standard))
        return false;
    if (!json_is_object(times))
        return wrong(r, "result %zu: 'times' is not an object", r->index);
    json_object_foreach(times, config, item) if (!take_time(r, config, item, out)) return false;
    if (!best)
        return true;
    if (!take_text(r, object, "best", &out->best))
        return false;
    const tl_tune_time *t = tl_tune_time_of(out, out->best);
    return (t && !t->rejected) || wrong(r, "result %zu: 'best' has no time", r->index);
}

static bool take_result(reader *r, const json_t *object, tl_tune_file *file)
{
    if (!json_is_object(object))
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
    out->open = json_is_false(member(object, "settled"));
    const tl_tune_file before = {file->results, file->len - 1};
    return !tl_tune_find(&before, out) ||
           wrong(r, "result %zu is of a size that an earlier one has", r->index);
}

/* ---- the whole ---- */

static bool take_all(reader *r, const json_t *root, tl_tune_file *file)
{
    const json_t *format = member(root, "format"), *version = member(root, "version"),
                 *results = member(root, "results");
    double number;
    if (!json_is_object(root) || !json_is_string(format) ||
        strcmp(json_string_value(format), "tile-tune") != 0)
        return wrong(r, "it is not a file of tuning results (\"format\": \"tile-tune\")");
    if (!json_is_number(version))
        return wrong(r, "it has no version");
    number = json_number_value(version);
    if (number != TL_TUNE_VERSION)
        return wrong(r, "it is of version %s, this program reads version %d",
                     TL_NUMBER("%g", number), TL_TUNE_VERSION);
    if (!json_is_array(results))
        return wrong(r, "'results' is not a list");
    while (r->index < json_array_size(results)) {
        const json_t *item = json_array_get(results, r->index++);
        if (!take_result(r, item, file))
            return false;
    }
    return true;
}

static void refuse(reader *r, const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);
    if (code == json_error_out_of_memory)
        no_memory(r);
    else if (code == json_error_duplicate_key)
        wrong(r, "line %d: an object has two members of one name", error->line);
    else
        wrong(r, "line %d: it is not JSON", error->line);
}

/* An older version wrote times as the host's locale has them: "B=32": 71,746. Within an object of
 * JSON a name follows each comma, so one before a digit is a decimal comma. Has there been one? */
static bool mend_commas(char *text, size_t length)
{
    enum { MOST_DEPTH = 64 };
    bool in_object[MOST_DEPTH] = {false}, in_text = false, mended = false;
    size_t depth = 0;
    for (size_t i = 0; i + 1 < length && depth < MOST_DEPTH; i++) {
        char c = text[i];
        if (in_text)
            i += c == '\\';
        if (c == '"')
            in_text = !in_text;
        if (in_text)
            continue;
        if (c == '{' || c == '[')
            in_object[depth++] = c == '{';
        else if ((c == '}' || c == ']') && depth)
            depth--;
        else if (c == ',' && depth && in_object[depth - 1] && tl_is_digit(text[i + 1])) {
            text[i] = '.';
            mended = true;
        }
    }
    return mended;
}

static json_t *load(const char *text, size_t length, json_error_t *error)
{
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, error);
    char *copy = root ? NULL : malloc(length + 1);
    if (!copy)
        return root;
    memcpy(copy, text, length);
    if (mend_commas(copy, length))
        root = json_loadb(copy, length, JSON_REJECT_DUPLICATES, error);
    free(copy);
    return root;
}

tile_status tl_tune_parse(const char *text, size_t length, tl_tune_file *out, char *why,
                          size_t size)
{
    reader r = {.why = why, .size = size};
    json_error_t error;
    *out = (tl_tune_file){0};
    locale_t before = tl_locale_enter(); /* jansson knows points of one byte alone */
    json_t *root = load(text, length, &error);
    tl_locale_leave(before);
    if (root)
        take_all(&r, root, out);
    else
        refuse(&r, &error);
    json_decref(root);
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
