/* sizes.c: --sizes M=16,1024: PARAM=VALUE for each combination of values. */
#include "tools/sizes.h"

#include <stdlib.h>
#include <string.h>

/* "M=512,1024": the n-th value of a list; false: there are fewer. */
static bool nth_value(const char *list, size_t n, char *text, size_t size)
{
    const char *p = strchr(list, '=') + 1;
    for (; n > 0; n--) {
        p += strcspn(p, ",");
        if (!*p++)
            return false;
    }
    snprintf(text, size, "%.*s", (int)strcspn(p, ","), p);
    return true;
}

static bool is_name_char(char c)
{
    return c && strchr("_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", c);
}

int sizes_check(const Options *o)
{
    char text[32];
    long long value;
    if (o->sizes.len > SIZES_MOST)
        return usage_error("--sizes: at most %d names", SIZES_MOST);
    for (size_t i = 0; i < o->sizes.len; i++) {
        const char *list = o->sizes.data[i];
        size_t name = 0;
        while (is_name_char(list[name]))
            name++;
        if (!name || list[name] != '=')
            return usage_error("--sizes takes NAME=N[,N...], not '%s'", list);
        for (size_t n = 0; nth_value(list, n, text, sizeof text); n++)
            if (!parse_int(text, 0, INT64_MAX, &value))
                return usage_error("--sizes %s: '%s' is not a number of 0 or more", list, text);
    }
    return EXIT_FINE;
}

/* "A=normal(1)[M,K]" with the values of M and K; NULL: no memory. */
static char *substitute(const char *item, const Options *o, const size_t *at)
{
    char *out = NULL, value[32];
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);
    const char *p = strchr(item, '=') + 1;
    if (!f)
        return NULL;
    fprintf(f, "%.*s", (int)(p - item), item);
    while (*p) {
        size_t n = 0, i = 0;
        while (is_name_char(p[n]))
            n++;
        while (n && i < o->sizes.len &&
               (strncmp(o->sizes.data[i], p, n) != 0 || o->sizes.data[i][n] != '='))
            i++;
        if (n && i < o->sizes.len && nth_value(o->sizes.data[i], at[i], value, sizeof value))
            fputs(value, f);
        else
            fprintf(f, "%.*s", (int)(n ? n : 1), p);
        p += n ? n : 1;
    }
    if (fclose(f) != 0) {
        free(out);
        return NULL;
    }
    return out;
}

static void describe_sizes(const Options *o, const size_t *at, char *text, size_t size)
{
    size_t n = 0;
    char value[32];
    text[0] = 0;
    for (size_t i = 0; i < o->sizes.len && n + 64 < size; i++) {
        nth_value(o->sizes.data[i], at[i], value, sizeof value);
        n += (size_t)snprintf(text + n, size - n, "%s%.*s=%s", i ? " " : "",
                              (int)(strchr(o->sizes.data[i], '=') - o->sizes.data[i]),
                              o->sizes.data[i], value);
    }
}

/* One combination: the arguments with its values. */
static int with_sizes(const Options *o, const size_t *at, SizesRun *run, void *user)
{
    Options with = *o;
    char text[1024];
    int status = EXIT_FINE;
    with.items.data = calloc(o->items.len + 1, sizeof *with.items.data);
    if (!with.items.data)
        return out_of_memory();
    for (size_t i = 0; i < o->items.len && status == EXIT_FINE; i++) {
        with.items.data[i] = substitute(o->items.data[i], o, at);
        if (!with.items.data[i])
            status = out_of_memory();
    }
    describe_sizes(o, at, text, sizeof text);
    if (status == EXIT_FINE)
        status = run(&with, text, user);
    for (size_t i = 0; i < o->items.len; i++)
        free((char *)(uintptr_t)with.items.data[i]);
    free(with.items.data);
    return status;
}

int sizes_each(const Options *o, SizesRun *run, void *user)
{
    size_t at[SIZES_MOST] = {0};
    char text[32];
    int status = EXIT_FINE;
    while (status == EXIT_FINE) {
        status = with_sizes(o, at, run, user);
        size_t i = o->sizes.len;
        while (i > 0 && !nth_value(o->sizes.data[i - 1], ++at[i - 1], text, sizeof text))
            at[--i] = 0;
        if (i == 0)
            break;
    }
    return status;
}
