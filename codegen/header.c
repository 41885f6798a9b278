/* The typed C header of ahead-of-time kernels.
 *
 * One static inline function per kernel: stream, parameters in order, then the names of extents,
 * then of strides, in order of first appearance. It fills an array of tile_arg and calls
 * tile_launch_embedded, which keeps one prepared kernel per device for the image in the host
 * object. Extents that are expressions of names are written out in C from their launch-time
 * code. */
#include "codegen/header.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

const char *tl_stem(TlArena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
               *dot = strchr(name, '.');
    char *s = tl_strndup(arena, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
    for (char *p = s; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    return isdigit((unsigned char)*s) || !*s ? tl_format(arena, "_%s", s) : s;
}

static const char *c_type(TlDtype d)
{
    switch (d) {
    case TL_BOOL: return "uint8_t";
    case TL_I8: return "int8_t";
    case TL_I16: return "int16_t";
    case TL_I32: return "int32_t";
    case TL_I64: return "int64_t";
    case TL_U8: return "uint8_t";
    case TL_U16: return "uint16_t";
    case TL_U32: return "uint32_t";
    case TL_U64: return "uint64_t";
    case TL_F16:
    case TL_BF16: return "uint16_t"; /* bits */
    case TL_F32: return "float";
    case TL_F64: return "double";
    case TL_F8E4M3:
    case TL_F8E5M2:
    case TL_I4:
    case TL_U4:
    case TL_F4E2M1: return "uint8_t"; /* bits */
    case TL_DTYPE_COUNT: break;
    }
    TL_UNREACHABLE("element type %d", (int)d);
}

static const char *upper(TlArena *arena, const char *text)
{
    char *s = tl_strndup(arena, text, strlen(text));
    for (char *p = s; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    return s;
}

/* ---- launch-time expressions in C ---- */

static const char *infix(unsigned op)
{
    static const char *const TEXT[TILE_HX_COUNT] = {
        [TILE_HX_ADD] = "+", [TILE_HX_SUB] = "-",  [TILE_HX_MUL] = "*",  [TILE_HX_DIV] = "/",
        [TILE_HX_REM] = "%", [TILE_HX_LT] = "<",   [TILE_HX_LE] = "<=",  [TILE_HX_EQ] = "==",
        [TILE_HX_NE] = "!=", [TILE_HX_AND] = "&&", [TILE_HX_OR] = "||",  [TILE_HX_BAND] = "&",
        [TILE_HX_BOR] = "|", [TILE_HX_BXOR] = "^", [TILE_HX_SHL] = "<<", [TILE_HX_SHR] = ">>"};
    return op < TILE_HX_COUNT ? TEXT[op] : NULL;
}

/* NULL when the expression uses what C cannot say simply; the launch computes it anyway, so the
 * caller must be told otherwise. */
static const char *c_expr(TlArena *arena, const TlKernelInfo *info, const TlHostExpr *e)
{
    const char *stack[TILE_HX_MAX_STACK + 1];
    int n = 0;
    for (uint32_t i = 0; i < e->code.len; i++) {
        tile_hx_ins ins = e->code.data[i];
        if (ins.op == TILE_HX_CONST && n < TILE_HX_MAX_STACK)
            stack[n++] = tl_format(arena, "INT64_C(%" PRId64 ")", ins.imm);
        else if (ins.op == TILE_HX_SYM && n < TILE_HX_MAX_STACK)
            stack[n++] = info->syms.data[ins.imm].name;
        else if (ins.op == TILE_HX_CDIV && n >= 2) {
            stack[n - 2] =
                tl_format(arena, "((%s + %s - 1) / %s)", stack[n - 2], stack[n - 1], stack[n - 1]);
            n--;
        } else if (infix(ins.op) && n >= 2) {
            stack[n - 2] =
                tl_format(arena, "(%s %s %s)", stack[n - 2], infix(ins.op), stack[n - 1]);
            n--;
        } else {
            return NULL;
        }
    }
    return n == 1 ? stack[0] : NULL;
}

static const char *c_dim(TlArena *arena, const TlKernelInfo *info, const TlDim *d)
{
    if (d->kind == TILE_DIM_CONST)
        return tl_format(arena, "%" PRId64, d->value);
    if (d->kind == TILE_DIM_SYM)
        return info->syms.data[d->value].name;
    return d->kind == TILE_DIM_EXPR ? c_expr(arena, info, &info->exprs.data[d->value]) : NULL;
}

/* ---- one launch function ---- */

static void write_signature(TlSbuf *out, const TlKernelInfo *info, const char *name)
{
    tl_sbuf_putf(out, "static inline tile_status %s(tile_stream *stream", name);
    for (uint32_t i = 0; i < info->params.len; i++) {
        const TlParam *p = &info->params.data[i];
        bool memory = p->kind != TILE_PARAM_SCALAR;
        tl_sbuf_putf(out, ", %s%s %s%s", memory && p->is_const ? "const " : "", c_type(p->dtype),
                     memory ? "*" : "", p->name);
    }
    for (int strides = 0; strides < 2; strides++)
        for (uint32_t i = 0; i < info->syms.len; i++)
            if (info->syms.data[i].is_stride == (strides == 1))
                tl_sbuf_putf(out, ", int64_t %s", info->syms.data[i].name);
    tl_sbuf_puts(out, ")\n{\n");
}

static void write_view(TlSbuf *out, TlArena *arena, const TlKernelInfo *info, const TlParam *p,
                       uint32_t i)
{
    bool strided = false;
    tl_sbuf_putf(out, "    tile_args_[%u] = tile_arg_view(%s, (tile_dtype)%d, %d", i, p->name,
                 (int)p->dtype, (int)p->rank);
    for (int a = 0; a < TL_MAX_VIEW_RANK; a++) {
        const char *e = a < p->rank ? c_dim(arena, info, &p->extent[a]) : "0";
        tl_sbuf_putf(out, ", %s", e ? e : "-1");
        if (a < p->rank && p->stride[a].kind != TILE_DIM_DENSE)
            strided = true;
    }
    tl_sbuf_puts(out, ");\n");
    if (!strided)
        return;
    tl_sbuf_putf(out, "    tile_args_[%u].strided = 1;\n", i);
    for (int a = p->rank - 1; a >= 0; a--) {
        const char *s = c_dim(arena, info, &p->stride[a]);
        tl_sbuf_putf(out, "    tile_args_[%u].stride[%d] = ", i, a);
        if (s)
            tl_sbuf_putf(out, "%s;\n", s);
        else if (a + 1 == p->rank)
            tl_sbuf_puts(out, "1;\n");
        else
            tl_sbuf_putf(out, "tile_args_[%u].extent[%d] * tile_args_[%u].stride[%d];\n", i, a + 1,
                         i, a + 1);
    }
}

static void write_kernel(TlSbuf *out, TlArena *arena, const TlFn *fn, const char *stem)
{
    const TlKernelInfo *info = fn->info;
    tl_sbuf_puts(out, "\n");
    if (info->doc && *info->doc) {
        tl_sbuf_puts(out, "/// ");
        for (const char *p = info->doc; *p; p++) {
            if (*p == '\n' && !p[1])
                break;
            tl_sbuf_put(out, p, 1);
            if (*p == '\n')
                tl_sbuf_puts(out, "/// ");
        }
        tl_sbuf_puts(out, "\n");
    }
    write_signature(out, info, fn->name);
    tl_sbuf_putf(out, "    tile_arg tile_args_[%u];\n", info->params.len ? info->params.len : 1);
    for (uint32_t i = 0; i < info->params.len; i++) {
        const TlParam *p = &info->params.data[i];
        if (p->kind == TILE_PARAM_VIEW)
            write_view(out, arena, info, p, i);
        else if (p->kind == TILE_PARAM_POINTER)
            tl_sbuf_putf(out, "    tile_args_[%u] = tile_arg_pointer(%s, (tile_dtype)%d, 0);\n", i,
                         p->name, (int)p->dtype);
        else
            tl_sbuf_putf(out,
                         "    tile_args_[%u] = tile_arg_scalar((tile_dtype)%d, &%s, sizeof %s);\n",
                         i, (int)p->dtype, p->name, p->name);
    }
    tl_sbuf_putf(
        out, "    return tile_launch_embedded(tile_image_%s, \"%s\", stream, tile_args_, %u);\n}\n",
        stem, fn->name, info->params.len);
}

void tl_header_write(TlSbuf *out, TlCtx *ctx, const TlModule *m, const char *stem,
                     const char *source)
{
    TlArena *arena = &ctx->perm;
    const char *slash = strrchr(source, '/'), *guard = upper(arena, stem);
    tl_sbuf_putf(out,
                 "/* Made by tilec from %s. Link with the object of the same run and libtile.\n"
                 " * A NULL stream is the default stream of the default device. */\n",
                 slash ? slash + 1 : source);
    tl_sbuf_putf(out, "#ifndef TILE_KERNELS_%s_H\n#define TILE_KERNELS_%s_H\n#include <tile.h>\n\n",
                 guard, guard);
    tl_sbuf_putf(out,
                 "#ifdef __cplusplus\nextern \"C\" {\n#endif\nextern const unsigned char "
                 "tile_image_%s[];\n#ifdef __cplusplus\n}\n#endif\n",
                 stem);
    for (uint32_t i = 0; i < m->fns.len; i++) {
        bool again = false;
        for (uint32_t j = 0; j < i; j++)
            again |= !strcmp(m->fns.data[i]->name, m->fns.data[j]->name);
        if (!again)
            write_kernel(out, arena, m->fns.data[i], stem);
    }
    tl_sbuf_puts(out, "\n#endif\n");
}
