/* The kernel image: one flat block. Sections are appended in the order they are needed; every
 * reference is an offset from the start, so nothing has to be patched but the header. */
#include "codegen/gen/image.h"

#include <string.h>

#include "passes/analysis/variants.h"

typedef struct Writer {
    TlArena *arena;
    char *data;
    size_t len, cap;
    TlMap strings; /* interned text to offset */
    TlIntern intern;
    TlMap blocks; /* code pointer to offset */
} Writer;

static uint32_t put(Writer *w, const void *data, size_t size, size_t align)
{
    TL_ASSERT((align & (align - 1)) == 0 && (data || !size),
              "%zu bytes at multiples of %zu", size, align);
    size_t at = (w->len + align - 1) / align * align;
    if (at + size > w->cap) {
        size_t cap = (at + size) * 2 + 4096;
        w->data = tl_grow(w->arena, w->data, w->len, cap);
        w->cap = cap;
    }
    TL_ASSERT(at + size < UINT32_MAX, "image over 4 GiB");
    if (size)
        memcpy(w->data + at, data, size);
    w->len = at + size;
    return (uint32_t)at;
}

/* A vector's elements, at multiples of `align`. */
#define PUT(w, vec, align) put(w, (vec).data, sizeof *(vec).data *(vec).len, align)

static uint32_t put_string(Writer *w, const char *text)
{
    const char *key = tl_intern_str(&w->intern, text ? text : "");
    uint64_t at;
    if (tl_map_get(&w->strings, (uint64_t)(uintptr_t)key, &at))
        return (uint32_t)at;
    at = put(w, key, strlen(key) + 1, 1);
    tl_map_put(&w->strings, (uint64_t)(uintptr_t)key, at);
    return (uint32_t)at;
}

static tile_image_dim image_dim(const TlDim *d)
{
    return (tile_image_dim){.kind = (uint32_t)d->kind, .is_i64 = d->is_i64, .value = d->value};
}

static uint32_t put_params(Writer *w, const TlKernelInfo *info)
{
    uint32_t n = info->params.len;
    tile_image_param *rows = TL_NEW_ARRAY(w->arena, tile_image_param, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const TlParam *p = &info->params.data[i];
        tile_image_dim dims[2 * TL_MAX_VIEW_RANK];
        for (int a = 0; a < p->rank; a++) {
            dims[2 * a] = image_dim(&p->extent[a]);
            dims[2 * a + 1] = image_dim(&p->stride[a]);
        }
        rows[i] = (tile_image_param){.name = put_string(w, p->name),
                                     .kind = (uint32_t)p->kind,
                                     .dtype = (uint32_t)p->dtype,
                                     .is_const = p->is_const,
                                     .rank = p->rank};
        rows[i].dims = put(w, dims, sizeof *dims * 2 * p->rank, 8);
        if (p->has_value)
            rows[i].value = put(w, &p->value, sizeof p->value, 8);
    }
    return put(w, rows, sizeof *rows * n, 8);
}

static uint32_t put_syms(Writer *w, const TlKernelInfo *info)
{
    tile_image_sym *rows = TL_NEW_ARRAY(w->arena, tile_image_sym, info->syms.len + 1);
    for (uint32_t i = 0; i < info->syms.len; i++) {
        const TlSym *s = &info->syms.data[i];
        rows[i] = (tile_image_sym){put_string(w, s->name), s->param, s->axis, s->is_stride};
    }
    return put(w, rows, sizeof *rows * info->syms.len, 8);
}

static uint32_t put_exprs(Writer *w, const TlKernelInfo *info)
{
    tile_image_expr *rows = TL_NEW_ARRAY(w->arena, tile_image_expr, info->exprs.len + 1);
    for (uint32_t i = 0; i < info->exprs.len; i++) {
        const TlHostExpr *e = &info->exprs.data[i];
        rows[i] = (tile_image_expr){.code = PUT(w, e->code, 8),
                                    .ncode = e->code.len,
                                    .text = put_string(w, e->text),
                                    .is_float = e->is_float,
                                    .file = e->loc.file,
                                    .line = e->loc.line};
    }
    return put(w, rows, sizeof *rows * info->exprs.len, 8);
}

static uint32_t put_consts(Writer *w, const TlKernelInfo *info)
{
    tile_image_const *rows = TL_NEW_ARRAY(w->arena, tile_image_const, info->consts.len + 1);
    for (uint32_t i = 0; i < info->consts.len; i++) {
        const TlConstBinding *c = &info->consts.data[i];
        rows[i] = (tile_image_const){put_string(w, c->name), put_string(w, c->value)};
    }
    return put(w, rows, sizeof *rows * info->consts.len, 8);
}

static uint32_t put_texts(Writer *w, const TlKernelCode *k)
{
    uint32_t *rows = TL_NEW_ARRAY(w->arena, uint32_t, k->texts.len + 1);
    for (uint32_t i = 0; i < k->texts.len; i++)
        rows[i] = put_string(w, k->texts.data[i]);
    return put(w, rows, sizeof *rows * k->texts.len, 4);
}

static uint32_t put_code(Writer *w, const TlKernelCode *k)
{
    TL_ASSERT(k->code && k->ncode, "kernel '%s' has no code", k->symbol);
    uint64_t at;
    if (tl_map_get(&w->blocks, (uint64_t)(uintptr_t)k->code, &at))
        return (uint32_t)at;
    at = put(w, k->code, k->ncode, 64);
    tl_map_put(&w->blocks, (uint64_t)(uintptr_t)k->code, at);
    return (uint32_t)at;
}

/* The tests of a form; the kernel's next one, if there is one, is in the next row. */
static void put_tests(Writer *w, const TlKernelCodes *kernels, uint32_t index, tile_image_kernel *r)
{
    const TlKernelCode *k = &kernels->data[index];
    TlTests tests = {0};
    tl_variant_tests(k->fn, w->arena, &tests);
    if (tests.len == 0)
        return;
    r->ntests = tests.len;
    r->tests = PUT(w, tests, 8);
    if (index + 1 < kernels->len && tl_variant_of_one_kernel(k->fn, k[1].fn))
        r->otherwise = index + 2;
}

static tile_image_kernel image_kernel(Writer *w, const TlKernelCode *k)
{
    TL_ASSERT(k->symbol && k->fn, "a kernel without a symbol");
    const TlKernelInfo *info = k->fn->info;
    TL_ASSERT(info, "kernel '%s' has no launch facts", k->fn->name);
    TL_ASSERT(info->grid.len <= TILE_MAX_GRID, "grid of %u axes", info->grid.len);
    tile_image_kernel r = {.name = put_string(w, k->fn->name),
                           .symbol = put_string(w, k->symbol),
                           .nparams = info->params.len,
                           .params = put_params(w, info),
                           .nsyms = info->syms.len,
                           .syms = put_syms(w, info),
                           .nslots = k->slots.len,
                           .slots = PUT(w, k->slots, 8),
                           .nconsts = info->consts.len,
                           .consts = put_consts(w, info),
                           .nexprs = info->exprs.len,
                           .exprs = put_exprs(w, info),
                           .naliases = info->aliases.len,
                           .aliases = PUT(w, info->aliases, 8),
                           .ngrid = info->grid.len,
                           .group = info->group < 0 ? 0 : (uint32_t)info->group + 1,
                           .nrequires = info->requires_.len,
                           .requires_off = PUT(w, info->requires_, 8),
                           .nassumes = info->assumes.len,
                           .assumes = PUT(w, info->assumes, 8),
                           .code = put_code(w, k),
                           .ncode = (uint32_t)k->ncode,
                           .warps = k->warps,
                           .threads = k->threads,
                           .shared_bytes = k->shared_bytes,
                           .flags = k->flags,
                           .scratch_bytes = k->scratch_bytes,
                           .zeroed_bytes = k->zeroed_bytes,
                           .doc = put_string(w, info->doc),
                           .nsites = k->sites.len,
                           .sites = PUT(w, k->sites, 4),
                           .ntexts = k->texts.len,
                           .texts = put_texts(w, k),
                           .nkeys = info->keys.len,
                           .keys = PUT(w, info->keys, 4),
                           .ntuned = info->ntuned,
                           .tuned = PUT(w, info->buckets, 4),
                           .cluster = k->cluster,
                           .cluster_axis = k->cluster ? (uint32_t)info->cluster_axis : 0};
    for (uint32_t i = 0; i < info->grid.len; i++)
        r.grid[i] = info->grid.data[i];
    return r;
}

static uint64_t fnv1a(const void *data, size_t size)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return h;
}

void *tl_image_write(TlArena *arena, TlCtx *ctx, const char *target, const char *features,
                     const TlKernelCodes *kernels, size_t *out_size)
{
    TL_ASSERT(kernels->len <= 65536 && out_size, "%u kernels", kernels->len);
    Writer w = {.arena = arena};
    tl_map_init(&w.strings, arena);
    tl_map_init(&w.blocks, arena);
    tl_intern_init(&w.intern, arena);
    tile_image_header h = {
        .magic = TILE_IMAGE_MAGIC, .version = TILE_IMAGE_VERSION, .header_bytes = sizeof h};
    put(&w, &h, sizeof h, 8);
    put_string(&w, "");
    h.target = put_string(&w, target);
    h.features = features ? put_string(&w, features) : 0;
    tile_image_kernel *rows = TL_NEW_ARRAY(arena, tile_image_kernel, kernels->len + 1);
    for (uint32_t i = 0; i < kernels->len; i++) {
        rows[i] = image_kernel(&w, &kernels->data[i]);
        put_tests(&w, kernels, i, &rows[i]);
        if (i > 0 && rows[i - 1].otherwise == i + 1)
            rows[i].flags |= TILE_KERNEL_OTHERWISE;
        TL_ASSERT(rows[i].otherwise <= kernels->len, "row %u", rows[i].otherwise);
    }
    h.nkernels = kernels->len;
    h.kernels = put(&w, rows, sizeof *rows * kernels->len, 8);
    h.nfiles = ctx->diags.sources.len;
    uint32_t *files = TL_NEW_ARRAY(arena, uint32_t, h.nfiles + 1);
    for (uint32_t i = 0; i < h.nfiles; i++)
        files[i] = put_string(&w, ctx->diags.sources.data[i].path);
    h.files = put(&w, files, sizeof *files * h.nfiles, 4);
    put(&w, "", 0, 64);
    h.total_bytes = w.len;
    h.checksum = fnv1a(w.data + sizeof h, w.len - sizeof h);
    memcpy(w.data, &h, sizeof h);
    *out_size = w.len;
    return w.data;
}
