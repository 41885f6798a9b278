/* Forms of a kernel (form.h): what they promise, as data and as text. */
#include "ir/form.h"

#include <stdlib.h>
#include <string.h>

/* As many elements as there are promised bytes, and a power of two. u4 and i4, which are widened
 * where they are loaded, count as bytes: in 16 bytes at once, gemm_u4 takes twice the vector
 * instructions on gfx942, as each warp widens what it multiplies. */
static int64_t promised_elements(TlDtype dtype)
{
    int64_t n = TL_PROMISED_BYTES / tl_dtype_bytes(dtype) * (dtype == TL_F4E2M1 ? 2 : 1);
    TL_ASSERT(n > 0, "an element of %d bytes", tl_dtype_bytes(dtype));
    return n & -n;
}

/* The axis along which a view can be read in wide pieces: its stride is the constant 1; else
 * the last one. */
static int axis_of_runs(const TlParam *p)
{
    for (int d = p->rank - 1; d >= 0; d--)
        if (p->stride[d].kind == TILE_DIM_CONST && p->stride[d].value == 1)
            return d;
    return p->rank - 1;
}

/* ---- all promises ---- */

static void push(TlPromise *out, TlArena *arena, tile_test_kind kind, uint32_t param, int axis,
                 int64_t unit)
{
    TL_ASSERT(unit > 0 && (unit & (unit - 1)) == 0, "multiples of %lld", (long long)unit);
    if (unit > 1)
        tl_vec_push(arena, &out->units,
                    ((tile_image_test){(uint32_t)kind, param, (uint32_t)axis, 0,
                                       (uint64_t)unit - 1}));
}

static void promise_view(const TlParam *p, uint32_t index, TlArena *arena, TlPromise *out)
{
    int64_t unit = promised_elements(p->dtype);
    int runs = axis_of_runs(p);
    if (runs >= 0 && p->extent[runs].kind != TILE_DIM_CONST)
        push(out, arena, TILE_TEST_EXTENT, index, runs, unit);
    for (int d = 0; d < p->rank; d++)
        if (d != runs && (p->stride[d].kind == TILE_DIM_SYM || p->stride[d].kind == TILE_DIM_EXPR))
            push(out, arena, TILE_TEST_STRIDE, index, d, unit);
}

static bool has_views(const TlKernelInfo *k)
{
    for (uint32_t i = 0; i < k->params.len; i++)
        if (k->params.data[i].kind == TILE_PARAM_VIEW)
            return true;
    return false;
}

TlPromise tl_promise_all(const TlKernelInfo *k, TlArena *arena)
{
    TlPromise all = {.near = true, .grid = true, .pairs = k->cluster == 2};
    bool scalars = !has_views(k);
    for (uint32_t i = 0; i < k->params.len; i++) {
        const TlParam *p = &k->params.data[i];
        if (p->kind != TILE_PARAM_SCALAR)
            push(&all, arena, TILE_TEST_POINTER, i, 0, TL_PROMISED_BYTES);
        else if (scalars && tl_is_int(p->dtype))
            push(&all, arena, TILE_TEST_SCALAR, i, 0, TL_PROMISED_BYTES);
        if (p->kind == TILE_PARAM_VIEW)
            promise_view(p, i, arena, &all);
    }
    return all;
}

/* ---- as text ---- */

/* "A.extent.1=8", or a word. */
typedef struct Item {
    const char *name; /* of the parameter, or the word */
    size_t name_len;
    tile_test_kind kind; /* of a view's part; else POINTER */
    uint32_t axis;
    uint64_t unit; /* 0: a word */
} Item;

static bool number(const char **at, uint64_t *out)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    *out = strtoull(*at, &end, 10);
    *at = end;
    return true;
}

static bool part(const char **at, Item *out)
{
    static const struct { const char *word; tile_test_kind kind; } parts[] = {
        {TL_FORM_EXTENT, TILE_TEST_EXTENT}, {TL_FORM_STRIDE, TILE_TEST_STRIDE}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t n = strlen(parts[i].word);
        uint64_t axis;
        if (strncmp(*at, parts[i].word, n) != 0)
            continue;
        *at += n;
        if (!number(at, &axis) || axis >= TILE_IMAGE_MAX_RANK)
            return false;
        out->kind = parts[i].kind;
        out->axis = (uint32_t)axis;
    }
    return true;
}

/* The item at *at, which then stands behind it and its comma. False: there is none. */
static bool item(const char **at, Item *out)
{
    *out = (Item){.name = *at, .name_len = strcspn(*at, ".=,;"), .kind = TILE_TEST_POINTER};
    *at += out->name_len;
    if (out->name_len == 0 || !part(at, out))
        return false;
    bool word = (**at == 0 || **at == ',') && out->kind == TILE_TEST_POINTER;
    if (!word) {
        if (*(*at)++ != '=' || !number(at, &out->unit) || out->unit == 0 ||
            out->unit & (out->unit - 1))
            return false;
    }
    if (**at == ',')
        return *++*at != 0;
    return **at == 0;
}

static bool is_word(const Item *i, const char *word)
{
    return strlen(word) == i->name_len && memcmp(word, i->name, i->name_len) == 0;
}

bool tl_promise_is_well_formed(const char *text)
{
    Item i;
    const char *at = text;
    while (*at)
        if (!item(&at, &i) || (!i.unit && !is_word(&i, TL_FORM_NEAR) &&
                               !is_word(&i, TL_FORM_GRID) && !is_word(&i, TL_FORM_PAIRS)))
            return false;
    return at != text;
}

bool tl_forms_are_well_formed(const char *texts)
{
    uint32_t n = 0;
    for (const char *at = texts;; at++) {
        char one[1024];
        size_t size = strcspn(at, ";");
        if (++n > TL_MAX_FORMS || size >= sizeof one)
            return false;
        memcpy(one, at, size);
        one[size] = 0;
        if (strcmp(one, TL_FORM_ALIGNED) && strcmp(one, TL_FORM_GENERAL) &&
            !tl_promise_is_well_formed(one))
            return false;
        at += size;
        if (!*at)
            return true;
    }
}

static bool is_about(const Item *i, const TlKernelInfo *k, const tile_image_test *t)
{
    bool whole = t->kind == TILE_TEST_POINTER || t->kind == TILE_TEST_SCALAR;
    return i->unit && is_word(i, k->params.data[t->param].name) &&
           (whole ? i->kind == TILE_TEST_POINTER
                  : i->kind == (tile_test_kind)t->kind && i->axis == t->axis);
}

static uint64_t mask_of(const TlKernelInfo *k, const char *text, const tile_image_test *t)
{
    Item i;
    uint64_t mask = 0;
    for (const char *at = text; *at && item(&at, &i);)
        if (is_about(&i, k, t))
            mask = t->mask & (i.unit - 1);
    return mask;
}

TlPromise tl_promise_read(const TlKernelInfo *k, const char *text, TlArena *arena)
{
    TlPromise all = tl_promise_all(k, arena), out = {.near = false};
    TL_ASSERT(tl_promise_is_well_formed(text), "promises '%s'", text);
    Item i;
    for (const char *at = text; *at && item(&at, &i);) {
        out.near |= !i.unit && is_word(&i, TL_FORM_NEAR);
        out.grid |= !i.unit && is_word(&i, TL_FORM_GRID);
        out.pairs |= !i.unit && is_word(&i, TL_FORM_PAIRS) && all.pairs;
    }
    for (uint32_t n = 0; n < all.units.len; n++) {
        tile_image_test t = all.units.data[n];
        t.mask = mask_of(k, text, &t);
        if (t.mask)
            tl_vec_push(arena, &out.units, t);
    }
    return out;
}

static bool same_promise(const TlPromise *a, const TlPromise *b)
{
    return a->near == b->near && a->grid == b->grid && a->pairs == b->pairs &&
           a->units.len == b->units.len &&
           (a->units.len == 0 ||
            memcmp(a->units.data, b->units.data, a->units.len * sizeof *a->units.data) == 0);
}

static void write_promise(const TlKernelInfo *k, tl_form_out *out)
{
    for (uint32_t i = 0; i < k->promise.units.len; i++) {
        const tile_image_test *t = &k->promise.units.data[i];
        tl_form_put_unit(out, k->params.data[t->param].name, t, t->mask + 1);
    }
    tl_form_end(out, k->promise.near, k->promise.grid, k->promise.pairs);
}

const char *tl_form_text(const TlKernelInfo *k, TlArena *arena)
{
    TlPromise all = tl_promise_all(k, arena);
    if (!k->aligned)
        return TL_FORM_GENERAL;
    if (same_promise(&all, &k->promise))
        return TL_FORM_ALIGNED;
    tl_form_out size = {0}, out = {0};
    write_promise(k, &size);
    out.room = size.len + 1;
    out.text = tl_alloc(arena, out.room);
    write_promise(k, &out);
    return out.text;
}
