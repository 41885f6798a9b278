/* number.h: numbers as text, the same in every locale: a decimal point and plain digits, as in C
 * source. strtod and printf's %e %f %g follow the host's locale, which may have a decimal comma;
 * nothing else in libraries and tools may call them (test/tools/check_style.py). The C locale is
 * in effect for this thread while a number is read or written. It is a constant of the C library,
 * so this cannot fail. */
#ifndef TL_NUMBER_H
#define TL_NUMBER_H
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The C locale in this thread; the one before, for tl_locale_leave. Others' code that reads numbers
 * (jansson) is called between the two. */
static inline locale_t tl_locale_enter(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return c ? uselocale(c) : uselocale((locale_t)0);
}

static inline void tl_locale_leave(locale_t before)
{
    uselocale(before);
}

/* As strtod. */
static inline double tl_number_read(const char *text, char **out_end)
{
    locale_t before = tl_locale_enter();
    double x = strtod(text, out_end);
    tl_locale_leave(before);
    return x;
}

/* As strtof: rounded once. */
static inline float tl_number_read_f32(const char *text, char **out_end)
{
    locale_t before = tl_locale_enter();
    float x = strtof(text, out_end);
    tl_locale_leave(before);
    return x;
}

/* As snprintf, for a format of numbers; `text`. */
__attribute__((format(printf, 3, 4), unused)) static const char *
tl_number_format(char *text, size_t size, const char *format, ...)
{
    locale_t before = tl_locale_enter();
    va_list args;
    va_start(args, format);
    vsnprintf(text, size, format, args);
    va_end(args);
    tl_locale_leave(before);
    return text;
}

/* One number as an argument for %s, to the end of the block: printf("%s ms\n", TL_NUMBER("%.2f",
 * ms)). Long enough for any double without an exponent. */
enum { TL_NUMBER_BYTES = 352 };
#define TL_NUMBER(...) tl_number_format((char[TL_NUMBER_BYTES]){0}, TL_NUMBER_BYTES, __VA_ARGS__)
#endif
