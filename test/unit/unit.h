/* unit.h: the whole test framework. A unit test is one C file with a main:
 *
 *     #include "test/unit/unit.h"
 *     int main(void)
 *     {
 *         CHECK(1 + 1 == 2);
 *         CHECK_INT(strlen("abc"), 3);
 *         CHECK_STR(name, "add");
 *         return unit_result();
 *     }
 *
 * A failed check is printed with its place and counted; the test goes on. CHECK yields the
 * condition, so `if (!CHECK(p)) return unit_result();` stops where going on makes no sense. A test
 * without a check fails. */
#ifndef TL_TEST_UNIT_H
#define TL_TEST_UNIT_H
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int unit_checks, unit_failures;

/* At most 50 failures are printed: a broken table should not bury its first row. */
static inline bool unit_check(bool ok, const char *file, int line, const char *text)
{
    unit_checks++;
    if (!ok && ++unit_failures <= 50)
        fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
    return ok;
}

static inline bool unit_check_int(int64_t got, int64_t want, const char *file, int line,
                                  const char *text)
{
    bool ok = unit_check(got == want, file, line, text);
    if (!ok && unit_failures <= 50)
        fprintf(stderr, "    got  %" PRId64 "\n    want %" PRId64 "\n", got, want);
    return ok;
}

static inline bool unit_check_str(const char *got, const char *want, const char *file, int line,
                                  const char *text)
{
    bool equal = got && want ? strcmp(got, want) == 0 : got == want;
    bool ok = unit_check(equal, file, line, text);
    if (!ok && unit_failures <= 50)
        fprintf(stderr, "    got  %s\n    want %s\n", got ? got : "(null)", want ? want : "(null)");
    return ok;
}

/* The exit status of a test: 0 when there were checks and all held. */
static inline int unit_result(void)
{
    if (unit_checks == 0)
        fprintf(stderr, "no check was made\n");
    fprintf(stderr, "%d checks, %d failed\n", unit_checks, unit_failures);
    return unit_checks == 0 || unit_failures != 0;
}

#define CHECK(cond) unit_check((cond), __FILE__, __LINE__, #cond)
#define CHECK_INT(got, want)                                                                       \
    unit_check_int((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, #got " == " #want)
#define CHECK_STR(got, want) unit_check_str((got), (want), __FILE__, __LINE__, #got " is " #want)
#endif
