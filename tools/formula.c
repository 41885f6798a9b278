/* formula.c: formulas of sizes, read from left to right. */
#include "ir/support/ascii.h"
#include "ir/support/number.h"
#include "tools/formula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 50 };

typedef struct Reader {
    const char *text, *at, *sizes;
    char *why;
    size_t size;
    int depth;
    bool wrong;
} Reader;

static double fail(Reader *r, const char *what)
{
    if (!r->wrong)
        snprintf(r->why, r->size, "%s at '%s'", what, r->at);
    r->wrong = true;
    return 0;
}

static char next(Reader *r)
{
    while (tl_is_space((unsigned char)*r->at))
        r->at++;
    return *r->at;
}

/* "M" in "M=16 N=4096" */
static double value_of_name(Reader *r)
{
    size_t n = 0;
    while (tl_is_alnum((unsigned char)r->at[n]) || r->at[n] == '_')
        n++;
    for (const char *p = r->sizes; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strncmp(p, r->at, n) == 0 && p[n] == '=') {
            r->at += n;
            return tl_number_read(p + n + 1, NULL);
        }
    return fail(r, "a name that --sizes does not give");
}

static double sum(Reader *r);

static double factor(Reader *r)
{
    char c = next(r), *end;
    if (tl_is_alpha((unsigned char)c) || c == '_')
        return value_of_name(r);
    if (c == '(' || c == '-') {
        if (++r->depth > DEEPEST)
            return fail(r, "too deep");
        r->at++;
        double v = c == '-' ? -factor(r) : sum(r);
        r->depth--;
        if (c == '(' && next(r) != ')')
            return fail(r, "expected ')'");
        r->at += c == '(';
        return v;
    }
    double v = tl_is_digit((unsigned char)c) || c == '.' ? tl_number_read(r->at, &end) : 0;
    if (!tl_is_digit((unsigned char)c) && c != '.')
        return fail(r, "expected a number or a name");
    r->at = end;
    return v;
}

static double product(Reader *r)
{
    double v = factor(r);
    for (char c; !r->wrong && ((c = next(r)) == '*' || c == '/');) {
        r->at++;
        double w = factor(r);
        v = c == '*' ? v * w : v / w;
    }
    return v;
}

static double sum(Reader *r)
{
    double v = product(r);
    for (char c; !r->wrong && ((c = next(r)) == '+' || c == '-');) {
        r->at++;
        double w = product(r);
        v = c == '+' ? v + w : v - w;
    }
    return v;
}

bool formula_value(const char *text, const char *sizes, double *out, char *why, size_t size)
{
    Reader r = {.text = text, .at = text, .sizes = sizes, .why = why, .size = size};
    *out = sum(&r);
    if (!r.wrong && next(&r))
        fail(&r, "expected an operator");
    return !r.wrong;
}
