/* npy.c: reading and writing .npy.
 *
 * A file is "\x93NUMPY", a version (major, minor), the header's length (2 bytes in version 1, 4 in
 * version 2, little-endian), the header, and the elements. The header is a Python dictionary as
 * text with the keys descr, fortran_order and shape, in any order:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (128, 1000), }
 *
 * Plain element types only: no records, no objects, no complex numbers (their descr is passed on,
 * for the message). */
#include "ir/support/ascii.h"
#include "tools/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
enum { MAGIC_BYTES = 6, ALIGNMENT = 64 };

static bool __attribute__((format(printf, 2, 3))) fail(char *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, NPY_ERROR_BYTES, format, args);
    va_end(args);
    return false;
}

/* ---- the header ---- */

typedef struct Cursor {
    const char *at, *end;
} Cursor;

static void skip_blanks(Cursor *c)
{
    while (c->at < c->end && tl_is_space((unsigned char)*c->at))
        c->at++;
}

static bool take(Cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_word(Cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

/* 'text' or "text" */
static bool take_string(Cursor *c, char *text, size_t size)
{
    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    char quote = *c->at++;
    size_t n = 0;
    for (; c->at < c->end && *c->at != quote; c->at++)
        if (n + 1 < size)
            text[n++] = *c->at;
    text[n] = 0;
    return take(c, quote);
}

static bool take_number(Cursor *c, int64_t *out)
{
    skip_blanks(c);
    uint64_t v = 0;
    const char *begin = c->at;
    for (; c->at < c->end && tl_is_digit((unsigned char)*c->at); c->at++)
        if (v > (uint64_t)INT64_MAX / 10 - 1)
            return false;
        else
            v = 10 * v + (uint64_t)(*c->at - '0');
    if (c->at < c->end && *c->at == 'L') /* Python 2 wrote long integers */
        c->at++;
    *out = (int64_t)v;
    return c->at > begin;
}

static bool take_shape(Cursor *c, NpyArray *a)
{
    if (!take(c, '('))
        return false;
    a->rank = 0;
    while (!take(c, ')')) {
        if (a->rank == NPY_MAX_RANK || !take_number(c, &a->shape[a->rank]))
            return false;
        a->rank++;
        if (!take(c, ','))
            return take(c, ')');
    }
    return true;
}

static bool take_entry(Cursor *c, NpyArray *a, bool *seen)
{
    char key[32];
    if (!take_string(c, key, sizeof key) || !take(c, ':'))
        return false;
    if (strcmp(key, "descr") == 0)
        return seen[0] = take_string(c, a->descr, sizeof a->descr);
    if (strcmp(key, "shape") == 0)
        return seen[1] = take_shape(c, a);
    if (strcmp(key, "fortran_order") != 0)
        return false;
    a->fortran = take_word(c, "True");
    return seen[2] = a->fortran || take_word(c, "False");
}

static bool parse_header(Cursor c, NpyArray *a)
{
    bool seen[3] = {false};
    if (!take(&c, '{'))
        return false;
    while (!take(&c, '}')) {
        if (!take_entry(&c, a, seen))
            return false;
        if (!take(&c, ',')) {
            if (!take(&c, '}'))
                return false;
            break;
        }
    }
    return seen[0] && seen[1] && seen[2];
}

/* ---- the elements ---- */

/* "<f4": order, kind, bytes. Leaves the order little-endian; *out_swap when the file's is the
 * other. */
static bool parse_descr(NpyArray *a, bool *out_swap)
{
    char *end, order = a->descr[0];
    if (!strchr("<>|=", order ? order : ' ') || !tl_is_alpha((unsigned char)a->descr[1]))
        return false;
    unsigned long item = strtoul(a->descr + 2, &end, 10);
    if (*end || item == 0 || item > 32 || strchr("OVSU", a->descr[1]))
        return false;
    a->item = item;
    *out_swap = order == '>' && item > 1;
    a->descr[0] = item > 1 ? '<' : '|';
    return true;
}

static bool count_bytes(NpyArray *a)
{
    a->bytes = a->item;
    for (int i = 0; i < a->rank; i++)
        if (__builtin_mul_overflow(a->bytes, (uint64_t)a->shape[i], &a->bytes))
            return false;
    return true;
}

static void swap_elements(NpyArray *a)
{
    unsigned char *p = a->data;
    size_t part = a->descr[1] == 'c' ? a->item / 2 : a->item;
    for (uint64_t i = 0; i + part <= a->bytes; i += part)
        for (size_t j = 0; j < part / 2; j++) {
            unsigned char t = p[i + j];
            p[i + j] = p[i + part - 1 - j];
            p[i + part - 1 - j] = t;
        }
}

bool npy_parse(const void *file, size_t size, NpyArray *a, char *error)
{
    const unsigned char *f = file;
    memset(a, 0, sizeof *a);
    if (size < MAGIC_BYTES + 4 || memcmp(f, MAGIC, MAGIC_BYTES) != 0)
        return fail(error, "not a .npy file");
    size_t prefix = f[6] == 1 ? 10 : 12, length = f[8] | (size_t)f[9] << 8;
    if (f[6] < 1 || f[6] > 3)
        return fail(error, ".npy version %d is not known", f[6]);
    if (f[6] > 1 && size >= 12)
        length |= (size_t)f[10] << 16 | (size_t)f[11] << 24;
    if (size < prefix || length > size - prefix)
        return fail(error, "the file ends in its header");
    bool swap = false;
    Cursor c = {(const char *)f + prefix, (const char *)f + prefix + length};
    if (!parse_header(c, a))
        return fail(error, "its header is not one of .npy");
    if (!parse_descr(a, &swap))
        return fail(error, "its elements are '%s'", a->descr);
    if (!count_bytes(a) || a->bytes > size - prefix - length)
        return fail(error, "the file is shorter than its shape requires");
    a->data = aligned_alloc(ALIGNMENT, (a->bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    if (!a->data)
        return fail(error, "out of memory");
    memcpy(a->data, f + prefix + length, a->bytes);
    if (swap)
        swap_elements(a);
    return true;
}

/* ---- files ---- */

static char *read_all(FILE *f, size_t *out_size)
{
    size_t size = 0, room = 1 << 16;
    char *data = malloc(room);
    while (data) {
        size += fread(data + size, 1, room - size, f);
        if (size < room)
            break;
        room *= 2;
        char *more = realloc(data, room);
        if (!more)
            free(data);
        data = more;
    }
    *out_size = size;
    return data;
}

bool npy_load(const char *path, NpyArray *a, char *error)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return fail(error, "%s", strerror(errno));
    size_t size;
    char *data = read_all(f, &size);
    bool bad = ferror(f) != 0;
    fclose(f);
    if (!data || bad) {
        free(data);
        return fail(error, "%s", bad ? "it cannot be read" : "out of memory");
    }
    bool ok = npy_parse(data, size, a, error);
    free(data);
    return ok;
}

/* Version 1; the header is padded so that the elements begin at a multiple of 64, as NumPy does. */
void *npy_format(const NpyArray *a, size_t *out_size)
{
    char header[1024];
    size_t n =
        (size_t)snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (",
                         a->descr, a->fortran ? "True" : "False");
    for (int i = 0; i < a->rank; i++)
        n += (size_t)snprintf(header + n, sizeof header - n, "%s%" PRId64 "%s", i ? " " : "",
                              a->shape[i], i + 1 < a->rank || a->rank == 1 ? "," : "");
    n += (size_t)snprintf(header + n, sizeof header - n, "), }");
    while ((10 + n + 1) % 64 != 0)
        header[n++] = ' ';
    header[n++] = '\n';
    const unsigned char start[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)n, (unsigned char)(n >> 8)};
    char *file = malloc(sizeof start + n + a->bytes);
    if (!file)
        return NULL;
    memcpy(file, start, sizeof start);
    memcpy(file + sizeof start, header, n);
    if (a->bytes)
        memcpy(file + sizeof start + n, a->data, a->bytes);
    *out_size = sizeof start + n + a->bytes;
    return file;
}
