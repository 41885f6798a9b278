/* The kernels of a module as JSON (describe.h). */
#include "codegen/describe.h"
#include "ir/numeric.h"
#include "ir/support/diag.h"
#include "ir/support/number.h"

static void put_text(TlSbuf *out, const char *text)
{
    if (text)
        tl_put_json(out, text);
    else
        tl_sbuf_puts(out, "null");
}

static void put_member(TlSbuf *out, const char *name, const char *text)
{
    tl_sbuf_putf(out, "\"%s\": ", name);
    put_text(out, text);
}

/* ---- parameters ---- */

static void put_dim(TlSbuf *out, const TlKernelInfo *k, const TlDim *d)
{
    switch (d->kind) {
    case TILE_DIM_CONST: tl_sbuf_putf(out, "\"%lld\"", (long long)d->value); return;
    case TILE_DIM_SYM: put_text(out, k->syms.data[d->value].name); return;
    case TILE_DIM_EXPR: put_text(out, k->exprs.data[d->value].text); return;
    case TILE_DIM_DENSE: put_text(out, NULL); return;
    }
}

static void put_dims(TlSbuf *out, const char *name, const TlKernelInfo *k, uint32_t n,
                     const TlDim *dims)
{
    tl_sbuf_putf(out, "\"%s\": [", name);
    for (uint32_t i = 0; i < n; i++) {
        tl_sbuf_puts(out, i ? ", " : "");
        put_dim(out, k, &dims[i]);
    }
    tl_sbuf_puts(out, "]");
}

static void put_default(TlSbuf *out, const TlParam *p)
{
    char number[40];
    if (tl_is_float(p->dtype))
        tl_number_format(number, sizeof number, "%.17g", tl_bits_to_double(p->dtype, p->value));
    else if (tl_is_bool(p->dtype))
        snprintf(number, sizeof number, "%s", p->value ? "true" : "false");
    else if (tl_is_signed(p->dtype))
        snprintf(number, sizeof number, "%lld", (long long)tl_bits_to_int(p->dtype, p->value));
    else
        snprintf(number, sizeof number, "%llu", (unsigned long long)p->value);
    tl_sbuf_puts(out, ", ");
    put_member(out, "default", number);
}

static void put_param(TlSbuf *out, const TlKernelInfo *k, const TlParam *p)
{
    static const char *const kinds[] = {[TILE_PARAM_VIEW] = "view",
                                        [TILE_PARAM_POINTER] = "pointer",
                                        [TILE_PARAM_SCALAR] = "scalar"};
    tl_sbuf_puts(out, "\n      {");
    put_member(out, "name", p->name);
    tl_sbuf_putf(out, ", \"kind\": \"%s\", \"type\": \"%s\"", kinds[p->kind],
                 tl_dtype_name(p->dtype));
    if (p->kind != TILE_PARAM_SCALAR)
        tl_sbuf_putf(out, ", \"const\": %s", p->is_const ? "true" : "false");
    if (p->kind == TILE_PARAM_VIEW) {
        tl_sbuf_puts(out, ",\n       ");
        put_dims(out, "extents", k, p->rank, p->extent);
        tl_sbuf_puts(out, ", ");
        put_dims(out, "strides", k, p->rank, p->stride);
    }
    if (p->of) {
        tl_sbuf_puts(out, ", ");
        put_member(out, "struct", p->of);
    }
    if (p->has_value)
        put_default(out, p);
    tl_sbuf_puts(out, "}");
}

static void put_names(TlSbuf *out, const TlKernelInfo *k, bool strides)
{
    bool any = false;
    tl_sbuf_putf(out, "\"%s\": [", strides ? "strides" : "extents");
    for (uint32_t i = 0; i < k->syms.len; i++)
        if (k->syms.data[i].is_stride == strides) {
            tl_sbuf_puts(out, any ? ", " : "");
            tl_put_json(out, k->syms.data[i].name);
            any = true;
        }
    tl_sbuf_puts(out, "]");
}

/* ---- clauses ---- */

static void put_exprs(TlSbuf *out, const char *name, const TlKernelInfo *k, uint32_t n,
                      const uint32_t *exprs)
{
    tl_sbuf_putf(out, "\"%s\": [", name);
    for (uint32_t i = 0; i < n; i++) {
        tl_sbuf_puts(out, i ? ", " : "");
        put_text(out, k->exprs.data[exprs[i]].text);
    }
    tl_sbuf_puts(out, "]");
}

static void put_clauses(TlSbuf *out, const TlKernelInfo *k)
{
    put_exprs(out, "grid", k, k->grid.len, k->grid.data);
    tl_sbuf_puts(out, ", ");
    put_member(out, "group", k->group >= 0 ? k->exprs.data[k->group].text : NULL);
    tl_sbuf_puts(out, ",\n     ");
    put_exprs(out, "require", k, k->requires_.len, k->requires_.data);
    tl_sbuf_puts(out, ", ");
    put_exprs(out, "assume", k, k->assumes.len, k->assumes.data);
    tl_sbuf_puts(out, ", ");
    put_exprs(out, "key", k, k->keys.len, k->keys.data);
    tl_sbuf_puts(out, ",\n     \"alias\": [");
    for (uint32_t i = 0; i < k->aliases.len; i++) {
        const tile_image_alias *a = &k->aliases.data[i];
        tl_sbuf_puts(out, i ? ", [" : "[");
        tl_put_json(out, k->params.data[a->a].name);
        tl_sbuf_puts(out, ", ");
        tl_put_json(out, k->params.data[a->b].name);
        tl_sbuf_puts(out, "]");
    }
    tl_sbuf_putf(out, "], \"warps\": %d, \"stages\": %d, \"maxreg\": %d,\n     ", k->warps,
                 k->stages, k->maxreg);
    tl_sbuf_putf(out, "\"cluster\": %d, \"cluster_axis\": %d, \"persistent\": %s", k->cluster,
                 k->cluster_axis, k->persistent ? "true" : "false");
}

static void put_kernel(TlSbuf *out, const TlFn *fn)
{
    const TlKernelInfo *k = fn->info;
    tl_sbuf_puts(out, "\n    {");
    put_member(out, "name", fn->name);
    tl_sbuf_puts(out, ", ");
    put_member(out, "doc", k->doc);
    tl_sbuf_putf(out, ", \"line\": %u, \"column\": %u,\n     \"constants\": [", fn->loc.line,
                 fn->loc.col);
    for (uint32_t i = 0; i < k->consts.len; i++) {
        tl_sbuf_puts(out, i ? ", {" : "{");
        put_member(out, "name", k->consts.data[i].name);
        tl_sbuf_puts(out, ", ");
        put_member(out, "value", k->consts.data[i].value);
        tl_sbuf_puts(out, "}");
    }
    tl_sbuf_puts(out, "],\n     \"parameters\": [");
    for (uint32_t i = 0; i < k->params.len; i++) {
        tl_sbuf_puts(out, i ? "," : "");
        put_param(out, k, &k->params.data[i]);
    }
    tl_sbuf_puts(out, "],\n     ");
    put_names(out, k, false);
    tl_sbuf_puts(out, ", ");
    put_names(out, k, true);
    tl_sbuf_puts(out, ",\n     ");
    put_clauses(out, k);
    tl_sbuf_puts(out, "}");
}

void tl_describe(TlSbuf *out, const TlModule *m, const char *source)
{
    bool any = false;
    tl_sbuf_puts(out, "{\"version\": 1, ");
    put_member(out, "source", source);
    tl_sbuf_puts(out, ",\n  \"kernels\": [");
    for (uint32_t i = 0; i < m->fns.len; i++) {
        if (!m->fns.data[i]->info) /* hand-written IR */
            continue;
        tl_sbuf_puts(out, any ? "," : "");
        put_kernel(out, m->fns.data[i]);
        any = true;
    }
    tl_sbuf_puts(out, "]}\n");
}
