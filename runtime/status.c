/* status.c: names of statuses, versions, numbers from the environment, and what each thread keeps,
 * like errno: its error text, and a broken invariant that could not be returned. */
#include "runtime/driver.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ERROR_BYTES = 8192, BROKEN_BYTES = 512 };
static _Thread_local char error_text[ERROR_BYTES];
static _Thread_local char broken_text[BROKEN_BYTES]; /* "": nothing is broken */

static const char *const names[] = {
    [TILE_OK] = "ok",
    [TILE_BAD_ARGUMENT] = "bad argument",
    [TILE_NO_RESOURCE] = "no resource",
    [TILE_NO_MEMORY] = "no memory",
    [TILE_DRIVER] = "driver error",
    [TILE_NOT_FOUND] = "not found",
    [TILE_COMPILE] = "compile error",
    [TILE_IO] = "input or output error",
    [TILE_FAILED] = "failed in a kernel",
    [TILE_BAD_IMAGE] = "bad image",
    [TILE_UNAVAILABLE] = "not available",
    [TILE_INTERNAL] = "internal error",
};
_Static_assert(sizeof names / sizeof *names == TILE_INTERNAL + 1, "every status has a name");

int tile_version(void)
{
    return TILE_VERSION;
}

const char *tile_status_name(tile_status status)
{
    unsigned i = (unsigned)status;
    return i < sizeof names / sizeof *names ? names[i] : "unknown status";
}

const char *tile_last_error(void)
{
    return error_text;
}

/* An argument may be the old text itself, so the new one is built separately. */
tile_status tl_fail(tile_status status, const char *format, ...)
{
    char text[ERROR_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n >= ERROR_BYTES)
        memcpy(text + sizeof text - 5, "\n...", 5);
    memcpy(error_text, text, strlen(text) + 1);
    return status;
}

tile_status tile_set_last_error(tile_status status, const char *text)
{
    return tl_fail(status, "%s", text ? text : "");
}

tile_status tl_take(const char *type, void *to, size_t size, const void *from, size_t least)
{
    if (to ? tl_struct_take(to, size, from, least) : tl_struct_size(from) >= least)
        return TILE_OK;
    return tl_fail(TILE_BAD_ARGUMENT, "%s: struct_size is %zu, expected %zu: begin with the _INIT "
                                      "macro", type, tl_struct_size(from), size);
}

tile_status tl_env_number(const char *name, int64_t least, int64_t most, int64_t *inout_n)
{
    const char *text = secure_getenv(name);
    if (!text || !*text)
        return TILE_OK;
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end || errno || n < least || n > most)
        return tl_fail(TILE_BAD_ARGUMENT,
                       "%s is '%s', but must be a number from %" PRId64 " to %" PRId64, name, text,
                       least, most);
    *inout_n = n;
    return TILE_OK;
}

void tl_broken(const char *function, const char *format, ...)
{
    char text[BROKEN_BYTES];
    size_t n = (size_t)snprintf(text, sizeof text, "internal error: %.100s: ", function);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, sizeof text - n, format, args);
    va_end(args);
#ifndef NDEBUG
    fprintf(stderr, "%s\n", text);
    abort();
#endif
    if (!broken_text[0])
        memcpy(broken_text, text, sizeof text);
}

tile_status tl_broken_status(void)
{
    if (!broken_text[0])
        return TILE_OK;
    tl_fail(TILE_INTERNAL, "%s", broken_text);
    broken_text[0] = 0;
    return TILE_INTERNAL;
}
