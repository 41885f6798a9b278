/* ascii.h: classes of characters, the same in every locale. <ctype.h> follows the host's locale:
 * in some, bytes above 127 are letters, and i has a different capital. */
#ifndef TL_ASCII_H
#define TL_ASCII_H
#include <stdbool.h>
#include <stddef.h>

static inline bool tl_is_digit(int c) { return c >= '0' && c <= '9'; }
static inline bool tl_is_alpha(int c) { return (c | 32) >= 'a' && (c | 32) <= 'z' && c < 128; }
static inline bool tl_is_alnum(int c) { return tl_is_alpha(c) || tl_is_digit(c); }
static inline bool tl_is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static inline bool tl_is_xdigit(int c)
{
    return tl_is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f' && c < 128);
}

static inline int tl_to_upper(int c) { return c >= 'a' && c <= 'z' ? c - 32 : c; }
static inline int tl_to_lower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

/* Are two texts of n bytes equal but for the case of letters? */
static inline bool tl_same_letters(const char *a, const char *b, size_t n)
{
    size_t i = 0;
    while (i < n && tl_to_lower(a[i]) == tl_to_lower(b[i]))
        i++;
    return i == n;
}
#endif
