/* Types: the table of element types and the interning of tile, pointer and view types in a
 * context. */
#include "ir/ir.h"
#include "ir/layout/layout.h"
#include <string.h>

/* ---- element types ---- */

typedef struct DtypeInfo {
    const char *name, *numpy;
    int bits;
    TlDtypeKind kind;
} DtypeInfo;

static const DtypeInfo dtypes[TL_DTYPE_COUNT] = {
#define DTYPE(ID, text, bits, kind, numpy, ...) [TL_##ID] = {text, numpy, bits, TL_KIND_##kind},
#include "ir/types.def"
};

static const DtypeInfo *info(TlDtype d)
{
    TL_ASSERT((unsigned)d < TL_DTYPE_COUNT, "element type %d", (int)d);
    return &dtypes[d];
}

const char *tl_dtype_name(TlDtype d) { return info(d)->name; }
int tl_dtype_bits(TlDtype d) { return info(d)->bits; }
int tl_dtype_bytes(TlDtype d) { return info(d)->bits < 8 ? 1 : info(d)->bits / 8; }

TlDtype tl_bits_dtype(TlDtype d)
{
    switch (tl_dtype_bits(d)) {
    case 16: return TL_U16;
    case 32: return TL_U32;
    case 64: return TL_U64;
    default: return TL_U8;
    }
}
TlDtypeKind tl_dtype_kind(TlDtype d) { return info(d)->kind; }
const char *tl_dtype_numpy(TlDtype d) { return info(d)->numpy; }

static bool same_text(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

bool tl_dtype_parse(const char *text, size_t length, TlDtype *out)
{
    for (int d = 0; d < TL_DTYPE_COUNT; d++) {
        if (!same_text(dtypes[d].name, text, length)) continue;
        *out = (TlDtype)d;
        return true;
    }
    if (same_text("int", text, length)) return *out = TL_I32, true;
    if (same_text("float", text, length)) return *out = TL_F32, true;
    return false;
}

/* ---- contexts ---- */

void tl_ctx_init(TlCtx *ctx, TlAlloc alloc)
{
    memset(ctx, 0, sizeof *ctx);
    tl_arena_init(&ctx->perm, alloc);
    tl_intern_init(&ctx->strings, &ctx->perm);
    tl_map_init(&ctx->types, &ctx->perm);
    tl_map_init(&ctx->layouts, &ctx->perm);
    tl_map_init(&ctx->convert_costs, &ctx->perm);
    tl_map_init(&ctx->convert_bytes, &ctx->perm);
    tl_diags_init(&ctx->diags, &ctx->perm);
}

void tl_ctx_free(TlCtx *ctx)
{
    while (ctx->modules) tl_module_free(ctx->modules);
    tl_arena_free(&ctx->perm);
    memset(ctx, 0, sizeof *ctx);
}

/* ---- interning ---- */

static uint64_t type_hash(const TlType *t)
{
    uint64_t key[7 + TL_MAX_RANK] = {t->kind,
                                     t->dtype,
                                     t->ptr,
                                     t->is_const,
                                     t->rank,
                                     (uintptr_t)t->layout,
                                     (uint64_t)t->slots | (uint64_t)t->halved << 32};
    for (int i = 0; i < t->rank && i < TL_MAX_RANK; i++) key[7 + i] = (uint64_t)t->shape[i];
    return tl_hash(key, sizeof key, 1);
}

static bool type_equal(const TlType *a, const TlType *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->ptr == b->ptr &&
           a->is_const == b->is_const && a->rank == b->rank && a->slots == b->slots &&
           a->halved == b->halved && a->layout == b->layout &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

/* The map has one entry per key: a type whose hash is taken goes to the next key. */
static const TlType *type_intern(TlCtx *ctx, const TlType *t)
{
    uint64_t key = type_hash(t), val;
    for (; tl_map_get(&ctx->types, key, &val); key++) {
        const TlType *old = (const TlType *)(uintptr_t)val;
        if (type_equal(old, t)) return old;
    }
    TlType *copy = TL_NEW(&ctx->perm, TlType);
    *copy = *t;
    tl_map_put(&ctx->types, key, (uint64_t)(uintptr_t)copy);
    return copy;
}

static const TlType *tile(TlCtx *ctx, TlType t, int rank, const int32_t *shape)
{
    TL_ASSERT(rank >= 0 && rank <= TL_MAX_RANK, "tile of rank %d", rank);
    t.rank = (uint8_t)rank;
    memset(t.shape, 0, sizeof t.shape);
    for (int i = 0; i < rank; i++) {
        TL_ASSERT(shape[i] > 0, "tile extent %d", (int)shape[i]);
        t.shape[i] = shape[i];
    }
    return type_intern(ctx, &t);
}

const TlType *tl_type_tile(TlCtx *ctx, TlDtype dtype, int rank, const int32_t *shape)
{
    return tile(ctx, (TlType){.kind = TL_TILE, .dtype = dtype}, rank, shape);
}

const TlType *tl_type_scalar(TlCtx *ctx, TlDtype dtype)
{
    return tl_type_tile(ctx, dtype, 0, NULL);
}

const TlType *tl_type_ptr(TlCtx *ctx, TlDtype dtype, bool is_const, int rank, const int32_t *shape)
{
    return tile(ctx, (TlType){.kind = TL_TILE, .dtype = dtype, .ptr = true, .is_const = is_const},
                rank, shape);
}

const TlType *tl_type_view(TlCtx *ctx, TlDtype dtype, bool is_const, int rank)
{
    TL_ASSERT(rank >= 0 && rank <= TL_MAX_VIEW_RANK, "view of rank %d", rank);
    TlType t = {.kind = TL_VIEW, .dtype = dtype, .is_const = is_const, .rank = (uint8_t)rank};
    return type_intern(ctx, &t);
}

const TlType *tl_type_buf(TlCtx *ctx, TlDtype dtype, int rank, const int32_t *shape,
                          const TlLayout *layout, int32_t slots)
{
    TL_ASSERT(layout && slots > 0, "a buffer of %d slots", (int)slots);
    TL_ASSERT(rank > 0 && rank <= TL_MAX_RANK, "a buffer of rank %d", rank);
    TlType t = {.kind = TL_BUF, .dtype = dtype, .slots = slots};
    t.layout = tl_layout_intern(ctx, layout);
    return tile(ctx, t, rank, shape);
}

const TlType *tl_type_halved(TlCtx *ctx, const TlType *buf, int axis)
{
    TL_ASSERT(buf->kind == TL_BUF && axis < buf->rank, "halves along axis %d", axis);
    TlType t = *buf;
    t.halved = (uint8_t)(axis + 1);
    return type_intern(ctx, &t);
}

static const TlType *on_its_way(TlCtx *ctx, TlTypeKind kind, TlDtype dtype, int rank,
                                const int32_t *shape, const TlLayout *layout)
{
    TL_ASSERT(layout, "a token without layout");
    TL_ASSERT(rank > 0 && rank <= TL_MAX_RANK, "a token of rank %d", rank);
    TlType t = {.kind = kind, .dtype = dtype};
    t.layout = tl_layout_intern(ctx, layout);
    return tile(ctx, t, rank, shape);
}

const TlType *tl_type_token(TlCtx *ctx, TlDtype dtype, int rank, const int32_t *shape,
                            const TlLayout *layout)
{
    return on_its_way(ctx, TL_TOKEN, dtype, rank, shape, layout);
}

const TlType *tl_type_tensor(TlCtx *ctx, TlDtype dtype, int rank, const int32_t *shape,
                             const TlLayout *layout)
{
    return on_its_way(ctx, TL_TENSOR, dtype, rank, shape, layout);
}

bool tl_is_sums(const TlType *t)
{
    return t->kind == TL_TOKEN || t->kind == TL_TENSOR;
}

const TlType *tl_type_with_dtype(TlCtx *ctx, const TlType *like, TlDtype dtype)
{
    TL_ASSERT(like->kind == TL_TILE, "a view has no element to change");
    TlType t = {.kind = TL_TILE, .dtype = dtype, .layout = like->layout};
    return tile(ctx, t, like->rank, like->shape);
}

const TlType *tl_type_with_shape(TlCtx *ctx, const TlType *like, int rank, const int32_t *shape)
{
    TL_ASSERT(like->kind == TL_TILE, "a view has no shape to change");
    TL_ASSERT(rank >= 0 && rank <= TL_MAX_RANK, "a tile of rank %d", rank);
    TlType t = *like;
    t.layout = NULL; /* a layout fits one shape */
    return tile(ctx, t, rank, shape);
}

const TlType *tl_type_with_layout(TlCtx *ctx, const TlType *like, const TlLayout *layout)
{
    TL_ASSERT(like->kind == TL_TILE, "a view has no layout");
    TlType t = *like;
    t.layout = layout;
    return type_intern(ctx, &t);
}

static uint64_t layout_hash(const TlLayout *l)
{
    uint64_t h = tl_hash(l->reps, sizeof l->reps, l->nout);
    h = tl_hash(l->out_bits, l->nout, h);
    for (int i = 0; i < l->nin; i++) {
        h = tl_hash(&l->in_bits[i], 1, h ^ (uint64_t)l->in[i]);
        h = tl_hash(l->basis[i], sizeof l->basis[i][0] * l->in_bits[i], h);
    }
    return h;
}

const TlLayout *tl_layout_intern(TlCtx *ctx, const TlLayout *l)
{
    TL_ASSERT(l->nout <= TL_LAYOUT_MAX_OUT && l->nin <= TL_LAYOUT_MAX_IN,
              "a layout from %d to %d dimensions", (int)l->nin, (int)l->nout);
    TlLayout c = *l;
    uint64_t val;
    tl_layout_canonicalize(&c);
    uint64_t key = layout_hash(&c);
    for (; tl_map_get(&ctx->layouts, key, &val); key++) {
        const TlLayout *old = (const TlLayout *)(uintptr_t)val;
        if (tl_layout_equal(old, &c))
            return old;
    }
    TlLayout *copy = TL_NEW(&ctx->perm, TlLayout);
    *copy = c;
    tl_map_put(&ctx->layouts, key, (uint64_t)(uintptr_t)copy);
    return copy;
}

int64_t tl_type_elems(const TlType *t)
{
    int64_t n = 1;
    for (int i = 0; t->kind != TL_VIEW && i < t->rank; i++) n *= t->shape[i];
    return n;
}

bool tl_same_shape(const TlType *a, const TlType *b)
{
    return a->kind == TL_TILE && b->kind == TL_TILE && a->rank == b->rank &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

/* ---- text ---- */

static void print_element(TlSbuf *out, const TlType *t)
{
    if (t->ptr)
        tl_sbuf_putf(out, "ptr<%s%s>", t->is_const ? "const " : "", tl_dtype_name(t->dtype));
    else tl_sbuf_puts(out, tl_dtype_name(t->dtype));
}

static void print_layout(TlSbuf *out, const TlLayout *l, const TlMap *numbers)
{
    uint64_t number;
    if (numbers && tl_map_get(numbers, (uint64_t)(uintptr_t)l, &number)) {
        tl_sbuf_putf(out, ", #%u", (unsigned)number);
        return;
    }
    tl_sbuf_puts(out, ", \"");
    tl_layout_print(out, l);
    tl_sbuf_puts(out, "\"");
}

void tl_type_print_numbered(TlSbuf *out, const TlType *t, const TlMap *layouts)
{
    if (t->kind == TL_VIEW) {
        const char *constant = t->is_const ? "const " : "";
        tl_sbuf_putf(out, "view<%s%s, %d>", constant, tl_dtype_name(t->dtype), t->rank);
        return;
    }
    if (t->kind == TL_TILE && t->rank == 0) {
        print_element(out, t);
        return;
    }
    static const char *const NAMES[] = {
        [TL_TILE] = "tile<", [TL_BUF] = "buf<", [TL_TOKEN] = "token<", [TL_TENSOR] = "tensor<"};
    tl_sbuf_puts(out, NAMES[t->kind]);
    print_element(out, t);
    for (int i = 0; i < t->rank; i++)
        tl_sbuf_putf(out, ", %d", (int)t->shape[i]);
    if (t->layout)
        print_layout(out, t->layout, layouts);
    if (t->kind == TL_BUF)
        tl_sbuf_putf(out, ", %d", (int)t->slots);
    if (t->halved)
        tl_sbuf_putf(out, ", half %d", t->halved - 1);
    tl_sbuf_puts(out, ">");
}

void tl_type_print(TlSbuf *out, const TlType *t) { tl_type_print_numbered(out, t, NULL); }

const char *tl_type_str(TlCtx *ctx, const TlType *t)
{
    TlSbuf s;
    tl_sbuf_init(&s, &ctx->perm);
    tl_type_print(&s, t);
    return tl_intern(&ctx->strings, s.text, s.len);
}
