/* Vectors over GF(2) packed into words: spans, for layouts and conversions. Private to ir/.
 *
 * A span keeps reduced vectors by their highest bit, each with the set of added vectors ("combo")
 * that it is the sum of; so a solution uses the earliest independent vectors. */
#ifndef TL_GF2_H
#define TL_GF2_H
#include <stdbool.h>
#include <stdint.h>

typedef struct TlSpan {
    uint64_t vec[64], combo[64];
    int rank;
} TlSpan;

/* The highest bit of v, not 0. */
static inline int tl_top_bit(uint64_t v)
{
    return 63 - __builtin_clzll(v);
}

/* v without what the span has of it: 0 when it is inside. *combo ^= the vectors taken. */
static inline uint64_t tl_span_reduce(const TlSpan *s, uint64_t v, uint64_t *combo)
{
    for (uint64_t rest = v; rest;) {
        int bit = tl_top_bit(rest);
        if (s->vec[bit]) {
            v ^= s->vec[bit];
            *combo ^= s->combo[bit];
        }
        rest = v & ((1ull << bit) - 1);
    }
    return v;
}

static inline bool tl_span_has(const TlSpan *s, uint64_t v)
{
    uint64_t combo = 0;
    return tl_span_reduce(s, v, &combo) == 0;
}

/* False when v was in the span. */
static inline bool tl_span_add(TlSpan *s, uint64_t v, uint64_t combo)
{
    v = tl_span_reduce(s, v, &combo);
    if (!v)
        return false;
    int top = tl_top_bit(v);
    s->vec[top] = v;
    s->combo[top] = combo;
    s->rank++;
    return true;
}

/* A basis with coordinates: bit i of tl_basis_coordinates(v) says whether v has v[i]. */
typedef struct TlBasis {
    uint64_t v[64];
    int n;
    TlSpan span;
} TlBasis;

/* False when v was in the span. */
static inline bool tl_basis_add(TlBasis *b, uint64_t v)
{
    if (!tl_span_add(&b->span, v, 1ull << b->n))
        return false;
    b->v[b->n++] = v;
    return true;
}

static inline uint64_t tl_basis_coordinates(const TlBasis *b, uint64_t v)
{
    uint64_t combo = 0;
    tl_span_reduce(&b->span, v, &combo);
    return combo;
}

static inline void tl_basis_add_all(TlBasis *b, const uint64_t *v, int n)
{
    for (int i = 0; i < n; i++)
        tl_basis_add(b, v[i]);
}
#endif
