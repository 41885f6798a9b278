/* The values of number and string literals. Everything that looks like a number comes here. What C
 * would read differently (octal, suffixes), or what has no value, is an error at the literal; the
 * compilation goes on with a likely value. */
#include "frontend/parse.h"
#include "ir/support/number.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the literal is, for diagnostics. */
typedef struct Literal {
    TlParser *p;
    const unsigned char *begin, *end;
    bool bad; /* one error for one literal */
} Literal;

static TlDiag *complain(Literal *l, TlDiagId id, const char *text)
{
    TlLoc loc = tl_loc_at(l->p, &l->p->token_start, l->begin, (size_t)(l->end - l->begin));
    if (l->bad)
        return NULL;
    l->bad = true;
    return tl_diag(&l->p->ctx->diags, loc, id, text);
}

static int digit_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* The digits from `s` on, separators checked; *out_digits counts them. Values over 64 bits
 * saturate. */
static const unsigned char *digits(Literal *l, const unsigned char *s, unsigned base,
                                   uint64_t *out_value, uint32_t *out_digits, bool *out_overflow)
{
    TL_ASSERT(base == 2 || base == 10 || base == 16, "digits of base %u", base);
    bool after_digit = false;
    *out_value = 0;
    *out_digits = 0;
    *out_overflow = false;
    for (; s < l->end; s++) {
        unsigned d = (unsigned)digit_value(*s);
        if (*s == '_') {
            if (!after_digit || s + 1 == l->end || (unsigned)digit_value(s[1]) >= base)
                complain(l, TL_E0012, NULL);
            after_digit = false;
            continue;
        }
        if (d >= base)
            break;
        after_digit = true;
        ++*out_digits;
        if (*out_value > (UINT64_MAX - d) / base)
            *out_overflow = true;
        *out_value = *out_overflow ? UINT64_MAX : *out_value * base + d;
    }
    return s;
}

/* What strtod reads is what the language allows once separators are gone. */
static double real_value(Literal *l, const unsigned char *end)
{
    size_t n = 0;
    char *text = tl_strndup(&l->p->ctx->perm, (const char *)l->begin, (size_t)(end - l->begin));
    for (const char *s = text; *s; s++)
        if (*s != '_')
            text[n++] = *s;
    text[n] = 0;
    double x = tl_number_read(text, NULL);
    if (isinf(x))
        complain(l, TL_E0011, NULL);
    return x;
}

static bool has_digit(const unsigned char *s, const unsigned char *end, unsigned base)
{
    return s < end && (unsigned)digit_value(*s) < base;
}

/* Reports anything that follows the digits. */
static void check_tail(Literal *l, const unsigned char *s)
{
    TlDiag *d;
    if (s >= l->end)
        return;
    d = complain(l, TL_E0008, tl_strndup(&l->p->ctx->perm, (const char *)s, (size_t)(l->end - s)));
    if (d)
        d->fixit = tl_strndup(&l->p->ctx->perm, (const char *)l->begin, (size_t)(s - l->begin));
}

/* An exponent `e` or `p` with its digits; NULL when there is none. */
static const unsigned char *exponent(Literal *l, const unsigned char *s, char letter)
{
    TL_ASSERT(letter == 'e' || letter == 'p', "exponent after '%c'", letter);
    if (s >= l->end || (*s | 32) != letter)
        return NULL;
    s++;
    if (s < l->end && (*s == '+' || *s == '-'))
        s++;
    if (!has_digit(s, l->end, 10))
        return NULL;
    while (has_digit(s, l->end, 10))
        s++;
    return s;
}

static TlNumber read_decimal(Literal *l)
{
    TlNumber n = {0};
    uint64_t fraction;
    uint32_t ndigits, nfraction = 0;
    bool overflow, ignored;
    const unsigned char *s = digits(l, l->begin, 10, &n.integer, &ndigits, &overflow), *after;
    if (s < l->end && *s == '.') {
        n.is_float = true;
        s = digits(l, s + 1, 10, &fraction, &nfraction, &ignored);
    }
    after = exponent(l, s, 'e');
    if (after) {
        n.is_float = true;
        s = after;
    }
    check_tail(l, s);
    if (ndigits > 1 && l->begin[0] == '0')
        complain(l, TL_E0009, NULL);
    if (n.is_float)
        n.number = real_value(l, s);
    else if (overflow)
        complain(l, TL_E0010, NULL);
    return n;
}

static TlNumber read_hex(Literal *l)
{
    TlNumber n = {0};
    uint64_t fraction;
    uint32_t ndigits, nfraction = 0;
    bool overflow, ignored;
    const unsigned char *s = digits(l, l->begin + 2, 16, &n.integer, &ndigits, &overflow), *after;
    if (s < l->end && *s == '.') {
        n.is_float = true;
        s = digits(l, s + 1, 16, &fraction, &nfraction, &ignored);
    }
    after = exponent(l, s, 'p');
    if (n.is_float && !after)
        complain(l, TL_E0014, NULL);
    if (after) {
        n.is_float = true;
        s = after;
    }
    if (ndigits + nfraction == 0)
        complain(l, TL_E0013, NULL);
    check_tail(l, s);
    if (n.is_float)
        n.number = l->bad ? 0 : real_value(l, s);
    else if (overflow)
        complain(l, TL_E0010, NULL);
    return n;
}

static TlNumber read_binary(Literal *l)
{
    TlNumber n = {0};
    uint32_t ndigits;
    bool overflow;
    const unsigned char *s = digits(l, l->begin + 2, 2, &n.integer, &ndigits, &overflow);
    if (ndigits == 0 || has_digit(s, l->end, 10))
        complain(l, TL_E0013, NULL);
    check_tail(l, s);
    if (overflow)
        complain(l, TL_E0010, NULL);
    return n;
}

TlNumber tl_lex_number(TlParser *p, const unsigned char *begin, const unsigned char *end)
{
    TL_ASSERT(begin < end, "an empty number");
    Literal l = {p, begin, end, false};
    if (begin[0] == '0' && (begin[1] | 32) == 'x')
        return read_hex(&l);
    if (begin[0] == '0' && (begin[1] | 32) == 'b')
        return read_binary(&l);
    return read_decimal(&l);
}

/* ---- strings ---- */

/* The value of the escape after a backslash at *s, which is advanced past it; -1 if there is no
 * such escape. */
static int escape(const unsigned char **s, const unsigned char *end)
{
    static const char names[] = "nrtabfv\\\"'", values[] = "\n\r\t\a\b\f\v\\\"'";
    const unsigned char c = *(*s)++;
    const char *at = c ? strchr(names, c) : NULL;
    int x;
    if (at)
        return (unsigned char)values[at - names];
    if (c != 'x' || end - *s < 2 || digit_value((*s)[0]) > 15 || digit_value((*s)[1]) > 15)
        return -1;
    x = digit_value((*s)[0]) * 16 + digit_value((*s)[1]);
    *s += 2;
    return x ? x : -1; /* texts are C strings: a NUL would end them */
}

const char *tl_lex_string(TlParser *p, const unsigned char *begin, const unsigned char *end)
{
    TL_ASSERT(begin + 2 <= end, "a text without quotes");
    char *out = tl_alloc(&p->ctx->perm, (size_t)(end - begin));
    size_t n = 0;
    const unsigned char *s = begin + 1;
    end--;
    while (s < end) {
        const unsigned char *at = s;
        int c = *s++;
        if (c == 0) {
            tl_diag(&p->ctx->diags, tl_loc_at(p, &p->token_start, at, 1), TL_E0003);
            continue;
        }
        if (c == '\\')
            c = escape(&s, end);
        if (c < 0) {
            size_t len = (size_t)(s - at);
            tl_diag(&p->ctx->diags, tl_loc_at(p, &p->token_start, at, len), TL_E0007,
                    tl_strndup(&p->ctx->perm, (const char *)at, len));
            continue;
        }
        out[n++] = (char)c;
    }
    return out;
}
