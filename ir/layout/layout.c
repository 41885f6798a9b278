/* The algebra of linear layouts (layout.h).
 *
 * A layout is a matrix over GF(2): one column per bit of the inputs (in order: dimension by
 * dimension, bit 0 first), one row per bit of the flattened output (row-major: the last output
 * dimension holds the low bits). A column is packed into a uint64_t, so applying is XOR and solving
 * is elimination on words. The elimination (gf2.h) takes columns in order and remembers of which
 * earlier columns each reduced vector is the sum; so a solution uses the earliest independent
 * columns, and all free variables are 0.
 *
 * `l` is a layout, `d` an output dimension, `i` an input dimension by position, `b` a bit. */
#include "ir/layout/layout.h"
#include "ir/layout/gf2.h"
#include "ir/support/ascii.h"
#include "ir/support/guard.h"
#include <stdlib.h>
#include <string.h>

static const char *const in_names[TL_IN_COUNT] = {[TL_IN_REG] = "reg",
                                                  [TL_IN_LANE] = "lane",
                                                  [TL_IN_WARP] = "warp",
                                                  [TL_IN_CTA] = "cta",
                                                  [TL_IN_OFFSET] = "offset"};

/* ---- making ---- */

TlLayout *tl_layout_empty(TlArena *arena, int nout)
{
    TL_ASSERT(nout >= 0 && nout <= TL_LAYOUT_MAX_OUT, "layout with %d outputs", nout);
    TlLayout *l = TL_NEW(arena, TlLayout);
    l->nout = (uint8_t)nout;
    for (int d = 0; d < TL_LAYOUT_MAX_OUT; d++)
        l->reps[d] = 1;
    return l;
}

static TlLayout *copy(TlArena *arena, const TlLayout *l)
{
    TlLayout *c = TL_NEW(arena, TlLayout);
    *c = *l;
    return c;
}

/* The position of an input; if it is absent, it is added without bits. */
static int in_index(TlLayout *l, TlInDim dim)
{
    TL_ASSERT((unsigned)dim < TL_IN_COUNT, "layout input %d", (int)dim);
    int i = tl_layout_in_index(l, dim);
    if (i >= 0)
        return i;
    TL_ASSERT(l->nin < TL_LAYOUT_MAX_IN, "layout with more than %d inputs", TL_LAYOUT_MAX_IN);
    l->in[l->nin] = dim;
    return l->nin++;
}

static int32_t *add_column(TlLayout *l, int i)
{
    TL_ASSERT(l->in_bits[i] < TL_LAYOUT_MAX_BITS, "layout input of more than %d bits",
              TL_LAYOUT_MAX_BITS);
    return l->basis[i][l->in_bits[i]++];
}

TlLayout *tl_layout_make(TlArena *arena, int nout, const int *out_bits, int nin,
                         const TlInBases *ins)
{
    TlLayout *l = tl_layout_empty(arena, nout);
    uint32_t most[TL_LAYOUT_MAX_OUT] = {0};
    for (int k = 0; k < nin; k++) {
        TL_ASSERT(tl_layout_in_index(l, ins[k].dim) < 0, "layout input %s given twice",
                  in_names[ins[k].dim]);
        int i = in_index(l, ins[k].dim);
        for (int b = 0; b < ins[k].bits; b++) {
            int32_t *image = add_column(l, i);
            memcpy(image, ins[k].images + b * nout, sizeof *image * (size_t)nout);
            for (int d = 0; d < nout; d++) {
                TL_ASSERT(image[d] >= 0, "negative image");
                most[d] |= (uint32_t)image[d];
            }
        }
    }
    for (int d = 0; d < nout; d++) {
        int least = tl_ceil_log2(most[d] + 1);
        l->out_bits[d] = (uint8_t)(out_bits ? out_bits[d] : least);
        TL_ASSERT(least <= l->out_bits[d] && l->out_bits[d] <= TL_LAYOUT_MAX_BITS,
                  "image outside of output %d", d);
    }
    return l;
}

TlLayout *tl_layout_strided(TlArena *arena, int bits, int shift, TlInDim in, int nout, int out)
{
    TL_ASSERT(out >= 0 && out < nout && bits + shift <= TL_LAYOUT_MAX_BITS,
              "strided layout of %d bits", bits);
    TlLayout *l = tl_layout_empty(arena, nout);
    int i = in_index(l, in);
    for (int b = 0; b < bits; b++)
        add_column(l, i)[out] = (int32_t)1 << (b + shift);
    l->out_bits[out] = (uint8_t)(bits + shift);
    return l;
}

TlLayout *tl_layout_identity(TlArena *arena, int bits, TlInDim in, int nout, int out)
{
    return tl_layout_strided(arena, bits, 0, in, nout, out);
}

TlLayout *tl_layout_zeros(TlArena *arena, int bits, TlInDim in, int nout)
{
    TL_ASSERT(bits >= 0 && bits <= TL_LAYOUT_MAX_BITS, "a layout of %d bits", bits);
    TlLayout *l = tl_layout_empty(arena, nout);
    int i = in_index(l, in);
    for (int b = 0; b < bits; b++)
        add_column(l, i);
    return l;
}

/* ---- columns as words ---- */

static int out_shift(const TlLayout *l, int d)
{
    TL_ASSERT(d >= 0 && d < l->nout, "output %d of %d", d, (int)l->nout);
    int shift = 0;
    for (int k = d + 1; k < l->nout; k++)
        shift += l->out_bits[k];
    return shift;
}

static uint64_t pack(const TlLayout *l, const int32_t *image)
{
    uint64_t v = 0;
    for (int d = 0; d < l->nout; d++)
        v = v << l->out_bits[d] | (uint64_t)image[d];
    return v;
}

static void assert_single(const TlLayout *l)
{
    TL_ASSERT(tl_layout_total_out_bits(l) <= 64 && tl_layout_total_in_bits(l) <= 64,
              "layout of more than 64 bits");
    for (int d = 0; d < l->nout; d++)
        TL_ASSERT(l->reps[d] == 1, "algebra on a repeated layout");
}

static void span_of(TlSpan *s, const TlLayout *l)
{
    memset(s, 0, sizeof *s);
    int column = 0;
    for (int i = 0; i < l->nin; i++)
        for (int b = 0; b < l->in_bits[i]; b++)
            tl_span_add(s, pack(l, l->basis[i][b]), 1ull << column++);
}

/* ---- questions ---- */

int tl_layout_in_index(const TlLayout *l, TlInDim dim)
{
    for (int i = 0; i < l->nin; i++)
        if (l->in[i] == dim)
            return i;
    return -1;
}

int tl_layout_in_bits(const TlLayout *l, TlInDim dim)
{
    int i = tl_layout_in_index(l, dim);
    return i < 0 ? 0 : l->in_bits[i];
}

int tl_layout_total_in_bits(const TlLayout *l)
{
    int n = 0;
    for (int i = 0; i < l->nin; i++)
        n += l->in_bits[i];
    return n;
}

int tl_layout_total_out_bits(const TlLayout *l)
{
    int n = 0;
    for (int d = 0; d < l->nout; d++)
        n += l->out_bits[d];
    return n;
}

int32_t tl_layout_extent(const TlLayout *l, int out)
{
    TL_ASSERT(out >= 0 && out < l->nout, "output %d of %d", out, (int)l->nout);
    return l->reps[out] << l->out_bits[out];
}

int64_t tl_layout_registers(const TlLayout *l)
{
    int64_t n = (int64_t)1 << tl_layout_in_bits(l, TL_IN_REG);
    for (int d = 0; d < l->nout; d++)
        n *= l->reps[d];
    return n;
}

bool tl_layout_equal(const TlLayout *a, const TlLayout *b)
{
    if (a->nin != b->nin || a->nout != b->nout)
        return false;
    for (int d = 0; d < a->nout; d++)
        if (a->out_bits[d] != b->out_bits[d] || a->reps[d] != b->reps[d])
            return false;
    for (int i = 0; i < a->nin; i++) {
        if (a->in[i] != b->in[i] || a->in_bits[i] != b->in_bits[i])
            return false;
        for (int k = 0; k < a->in_bits[i]; k++)
            if (memcmp(a->basis[i][k], b->basis[i][k], sizeof(int32_t) * a->nout) != 0)
                return false;
    }
    return true;
}

void tl_layout_apply(const TlLayout *l, const uint32_t *in, int32_t *out)
{
    for (int d = 0; d < l->nout; d++)
        out[d] = 0;
    for (int i = 0; i < l->nin; i++)
        for (uint32_t set = in[i] & ((1u << l->in_bits[i]) - 1); set; set &= set - 1) {
            const int32_t *image = l->basis[i][__builtin_ctz(set)];
            for (int d = 0; d < l->nout; d++)
                out[d] ^= image[d];
        }
}

void tl_layout_apply_reg(const TlLayout *l, int64_t reg, const uint32_t *in, int32_t *out)
{
    TL_ASSERT(reg >= 0 && reg < tl_layout_registers(l), "register %lld", (long long)reg);
    uint32_t where[TL_LAYOUT_MAX_IN];
    memcpy(where, in, sizeof *in * l->nin);
    int i = tl_layout_in_index(l, TL_IN_REG), bits = tl_layout_in_bits(l, TL_IN_REG);
    if (i >= 0)
        where[i] = (uint32_t)(reg & ((1ll << bits) - 1));
    tl_layout_apply(l, where, out);
    reg >>= bits;
    for (int d = l->nout - 1; d >= 0; d--) { /* row-major over the repetitions */
        out[d] += (int32_t)(reg % l->reps[d]) << l->out_bits[d];
        reg /= l->reps[d];
    }
}

int64_t tl_layout_solve(const TlLayout *l, TlInDim in, const int32_t *out)
{
    TlSpan s = {0};
    int at = tl_layout_in_index(l, in);
    for (int b = 0; at >= 0 && b < l->in_bits[at]; b++)
        tl_span_add(&s, pack(l, l->basis[at][b]), 1ull << b);
    uint64_t x = 0;
    return tl_span_reduce(&s, pack(l, out), &x) ? -1 : (int64_t)x;
}

int tl_layout_rank(const TlLayout *l)
{
    TlSpan s;
    span_of(&s, l);
    return s.rank;
}

bool tl_layout_is_surjective(const TlLayout *l)
{
    return tl_layout_rank(l) == tl_layout_total_out_bits(l);
}
bool tl_layout_is_injective(const TlLayout *l)
{
    return tl_layout_rank(l) == tl_layout_total_in_bits(l);
}

void tl_layout_free_masks(const TlLayout *l, uint32_t *out_masks)
{
    TlSpan s = {0};
    for (int i = 0; i < l->nin; i++) {
        out_masks[i] = 0;
        for (int b = 0; b < l->in_bits[i]; b++)
            if (!tl_span_add(&s, pack(l, l->basis[i][b]), 0))
                out_masks[i] |= 1u << b;
    }
}

/* The number of bits 0, 1, ... of `in` that map to 1, 2, 4, ... of value(column), if no other
 * column disturbs those bits. */
static int counting_bits(const TlLayout *l, TlInDim in, int limit, int out)
{
    TL_ASSERT(limit >= 0, "%d bits at most", limit);
    int at = tl_layout_in_index(l, in), n = 0;
    if (at < 0)
        return 0;
    uint64_t unit = out < 0 ? 1 : 1ull << out_shift(l, out);
    while (n < l->in_bits[at] && n < limit && pack(l, l->basis[at][n]) == unit << n)
        n++;
    for (int i = 0; i < l->nin; i++) {
        for (int b = i == at ? n : 0; b < l->in_bits[i]; b++) {
            uint64_t v = out < 0 ? pack(l, l->basis[i][b]) : (uint64_t)l->basis[i][b][out];
            while (n > 0 && v & ((1ull << n) - 1))
                n--;
        }
    }
    return n;
}

int tl_layout_consecutive_bits(const TlLayout *l, TlInDim in)
{
    int limit = 0;
    for (int d = l->nout - 1; d >= 0; d--) { /* a repeated dimension is not one run with the next */
        limit += l->out_bits[d];
        if (l->reps[d] != 1)
            break;
    }
    return counting_bits(l, in, limit, -1);
}

int tl_layout_contiguous_bits(const TlLayout *l, TlInDim in, int out)
{
    TL_ASSERT(out >= 0 && out < l->nout, "output %d of %d", out, l->nout);
    return counting_bits(l, in, l->out_bits[out], out);
}

bool tl_layout_is_zero(const TlLayout *l, uint32_t in_mask, uint32_t out_mask)
{
    for (int i = 0; i < l->nin; i++) {
        if (!(in_mask >> l->in[i] & 1))
            continue;
        for (int b = 0; b < l->in_bits[i]; b++)
            for (int d = 0; d < l->nout; d++)
                if ((out_mask >> d & 1) && l->basis[i][b][d])
                    return false;
    }
    return true;
}

/* ---- product ---- */

TlLayout *tl_layout_product(TlArena *arena, const TlLayout *inner, const TlLayout *outer)
{
    TL_ASSERT(inner->nout == outer->nout, "product of layouts with %d and %d outputs", inner->nout,
              outer->nout);
    assert_single(inner);
    TlLayout *l = copy(arena, inner);
    for (int d = 0; d < l->nout; d++) {
        l->out_bits[d] = (uint8_t)(l->out_bits[d] + outer->out_bits[d]);
        l->reps[d] = outer->reps[d];
        TL_ASSERT(l->out_bits[d] <= TL_LAYOUT_MAX_BITS, "output %d of %d bits", d, l->out_bits[d]);
    }
    for (int i = 0; i < outer->nin; i++) {
        int at = in_index(l, outer->in[i]);
        for (int b = 0; b < outer->in_bits[i]; b++) {
            int32_t *image = add_column(l, at);
            for (int d = 0; d < l->nout; d++)
                image[d] = outer->basis[i][b][d] << inner->out_bits[d];
        }
    }
    return l;
}

/* ---- covering a tile, the canonical form ---- */

static void assert_permutation(const int *perm, int n)
{
    uint32_t seen = 0;
    for (int i = 0; i < n; i++) {
        TL_ASSERT(perm[i] >= 0 && perm[i] < n && !(seen >> perm[i] & 1), "not a permutation");
        seen |= 1u << perm[i];
    }
}

/* Clears what columns of l reach beyond 1 << bits along d: their data is then replicated. */
static void shrink_output(TlLayout *l, int d, int bits)
{
    TL_ASSERT(d < l->nout && bits <= l->out_bits[d], "output %d shrinks to %d bits", d, bits);
    l->out_bits[d] = (uint8_t)bits;
    for (int i = 0; i < l->nin; i++)
        for (int b = 0; b < l->in_bits[i]; b++)
            l->basis[i][b][d] &= ((int32_t)1 << bits) - 1;
}

TlLayout *tl_layout_cover(TlArena *arena, const TlLayout *l, const int32_t *shape, const int *order)
{
    assert_single(l);
    assert_permutation(order, l->nout);
    TlLayout *c = copy(arena, l);
    int reg = in_index(c, TL_IN_REG);
    for (int k = 0; k < l->nout; k++) {
        int d = order[k];
        TL_ASSERT(shape[d] > 0, "extent %d", (int)shape[d]);
        int need = tl_ceil_log2((uint32_t)shape[d]);
        if (need < c->out_bits[d]) {
            shrink_output(c, d, need);
            continue;
        }
        int32_t chunk = (int32_t)1 << c->out_bits[d], m = (shape[d] + chunk - 1) / chunk;
        for (; m % 2 == 0; m /= 2)
            add_column(c, reg)[d] = (int32_t)1 << c->out_bits[d]++;
        c->reps[d] = m;
    }
    return c;
}

static void drop_register(TlLayout *l, int i, int b)
{
    TL_ASSERT(b < l->in_bits[i], "register bit %d of %d", b, (int)l->in_bits[i]);
    int last = --l->in_bits[i];
    memmove(l->basis[i][b], l->basis[i][b + 1], sizeof l->basis[i][b] * (size_t)(last - b));
    memset(l->basis[i][last], 0, sizeof l->basis[i][last]);
}

void tl_layout_canonicalize(TlLayout *l)
{
    TlLayout from = *l;
    if (tl_layout_in_index(l, TL_IN_OFFSET) >= 0)
        return; /* of shared memory: it has no threads */
    memset(l->basis, 0, sizeof l->basis);
    memset(l->in_bits, 0, sizeof l->in_bits);
    l->nin = 0;
    for (int dim = 0; dim < TL_IN_COUNT; dim++) {
        int i = tl_layout_in_index(&from, (TlInDim)dim);
        if (i < 0 && dim > TL_IN_WARP)
            continue;
        int at = in_index(l, (TlInDim)dim);
        if (i < 0)
            continue;
        l->in_bits[at] = from.in_bits[i];
        memcpy(l->basis[at], from.basis[i], sizeof l->basis[at]);
    }
    TlSpan s = {0};
    for (int b = 0; b < l->in_bits[0];) {
        if (tl_span_add(&s, pack(l, l->basis[0][b]), 0))
            b++;
        else
            drop_register(l, 0, b);
    }
}

/* ---- text ---- */

static void print_sizes(TlSbuf *out, const TlLayout *l, bool reps)
{
    for (int d = 0; d < l->nout; d++)
        tl_sbuf_putf(out, "%s%d", d ? "x" : "", reps ? (int)l->reps[d] : 1 << l->out_bits[d]);
}

void tl_layout_print(TlSbuf *out, const TlLayout *l)
{
    for (int i = 0; i < l->nin; i++) {
        tl_sbuf_putf(out, "%s%s", i ? " " : "", in_names[l->in[i]]);
        for (int b = 0; b < l->in_bits[i]; b++) {
            tl_sbuf_puts(out, "(");
            for (int d = 0; d < l->nout; d++)
                tl_sbuf_putf(out, "%s%d", d ? "," : "", (int)l->basis[i][b][d]);
            tl_sbuf_puts(out, ")");
        }
    }
    tl_sbuf_puts(out, l->nin ? " -> " : "-> ");
    if (l->nout == 0)
        tl_sbuf_puts(out, "scalar");
    print_sizes(out, l, false);
    bool repeated = false;
    for (int d = 0; d < l->nout; d++)
        repeated |= l->reps[d] != 1;
    if (!repeated)
        return;
    tl_sbuf_puts(out, " * ");
    print_sizes(out, l, true);
}

typedef struct Text {
    const char *at;
    bool bad;
} Text;

static bool text_take(Text *t, const char *word)
{
    while (tl_is_space((unsigned char)*t->at))
        t->at++;
    size_t n = strlen(word);
    if (strncmp(t->at, word, n) != 0)
        return false;
    t->at += n;
    return true;
}

static int32_t text_number(Text *t)
{
    while (tl_is_space((unsigned char)*t->at))
        t->at++;
    if (!tl_is_digit((unsigned char)*t->at))
        return t->bad = true, 0;
    char *end;
    long v = strtol(t->at, &end, 10);
    if (v > 1 << TL_LAYOUT_MAX_BITS)
        t->bad = true;
    t->at = end;
    return t->bad ? 0 : (int32_t)v;
}

/* Numbers with `separator` between them, at most TL_LAYOUT_MAX_OUT. */
static int text_numbers(Text *t, const char *separator, int32_t *out)
{
    int n = 0;
    do {
        if (n == TL_LAYOUT_MAX_OUT)
            t->bad = true;
        if (t->bad)
            return 0;
        out[n++] = text_number(t);
    } while (text_take(t, separator));
    return n;
}

/* The first list of numbers sets nout; the others must have as many. */
static bool text_arity(TlLayout *l, int n, bool *known)
{
    if (!*known)
        l->nout = (uint8_t)n;
    *known = true;
    return l->nout == n;
}

static bool text_input(TlLayout *l, Text *t, TlInDim dim, bool *known)
{
    if (tl_layout_in_index(l, dim) >= 0 || l->nin == TL_LAYOUT_MAX_IN)
        return false;
    int i = in_index(l, dim);
    while (text_take(t, "(")) {
        if (l->in_bits[i] == TL_LAYOUT_MAX_BITS)
            return false;
        int32_t *image = add_column(l, i);
        int n = text_take(t, ")") ? 0 : text_numbers(t, ",", image);
        if (n && !text_take(t, ")"))
            return false;
        if (t->bad || !text_arity(l, n, known))
            return false;
        for (int d = 0; d < n; d++)
            while (image[d] >> l->out_bits[d])
                l->out_bits[d]++;
    }
    return true;
}

static bool text_sizes(TlLayout *l, Text *t, bool *known)
{
    if (text_take(t, "scalar"))
        return text_arity(l, 0, known);
    int32_t size[TL_LAYOUT_MAX_OUT];
    int n = text_numbers(t, "x", size);
    if (t->bad || !text_arity(l, n, known))
        return false;
    for (int d = 0; d < n; d++) {
        int bits = tl_ceil_log2((uint32_t)size[d]);
        if (size[d] < 1 || size[d] != (int32_t)1 << bits || bits < l->out_bits[d])
            return false;
        l->out_bits[d] = (uint8_t)bits;
    }
    if (!text_take(t, "*"))
        return true;
    if (text_numbers(t, "x", l->reps) != n || t->bad)
        return false;
    for (int d = 0; d < n; d++)
        if (l->reps[d] < 1 || (int64_t)l->reps[d] << l->out_bits[d] > INT32_MAX)
            return false;
    return true;
}

TlLayout *tl_layout_parse(TlArena *arena, const char *text)
{
    TlLayout *l = tl_layout_empty(arena, 0);
    Text t = {.at = text};
    bool known = false, found;
    do {
        found = false;
        for (int dim = 0; dim < TL_IN_COUNT && !found; dim++) {
            if (!text_take(&t, in_names[dim]))
                continue;
            found = true;
            if (!text_input(l, &t, (TlInDim)dim, &known))
                return NULL;
        }
    } while (found);
    if (text_take(&t, "->") && !text_sizes(l, &t, &known))
        return NULL;
    return text_take(&t, "") && *t.at == 0 ? l : NULL;
}
