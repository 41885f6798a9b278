/* The typed C header of ahead-of-time kernels.
 *
 * There is one static inline function per kernel. It takes the stream, the parameters in order,
 * then the names of extents, then of strides, in order of first appearance; fills an array of
 * tile_arg; and calls tile_launch_embedded, which keeps one prepared kernel per device for the
 * image in the host object. Extents that are expressions of names are written in C, from their
 * launch-time code. KERNEL_launch takes the same from a struct KERNEL_args.
 *
 * Variants of `instantiate` share a function if their parameters have the same types. Otherwise
 * there is one function for each list of types, named after the constants that are types:
 * scale_f16, scale_f32. All launch by the kernel's name; the launch skips variants of other types.
 * If variants that share a function differ in constants, KERNEL_args has these as texts,
 * KERNEL_variant takes a list of them, and each variant has a function of its own, named after
 * their values: scale_B64, scale_B256.
 *
 * A name that C or C++ reserves, or that the function needs itself, gets trailing underscores
 * until it is free. */
#include "codegen/header.h"
#include "ir/numeric.h"
#include "ir/support/ascii.h"
#include "ir/support/number.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *tl_image_name(TlArena *arena, const tilec_options *o, const char *source)
{
    const char *slash = strrchr(source, '/'), *name = slash ? slash + 1 : source,
               *dot = strrchr(name, '.');
    char *s = o->name ? tl_strndup(arena, o->name, strlen(o->name))
                      : tl_strndup(arena, name,
                                   dot && dot > name ? (size_t)(dot - name) : strlen(name));
    for (char *p = s; *p; p++)
        if (!tl_is_alnum((unsigned char)*p))
            *p = '_';
    return tl_is_digit((unsigned char)*s) || !*s ? tl_format(arena, "_%s", s) : s;
}

static const char *upper(TlArena *arena, const char *text)
{
    char *s = tl_strndup(arena, text, strlen(text));
    for (char *p = s; *p; p++)
        *p = (char)tl_to_upper((unsigned char)*p);
    return s;
}

/* ---- names ---- */

static const char *const RESERVED[] = {
    /* C11, C23 */
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "volatile", "while", "alignas", "alignof", "bool", "constexpr",
    "false", "nullptr", "static_assert", "thread_local", "true", "typeof", "typeof_unqual",
    /* C++23 */
    "and", "and_eq", "asm", "bitand", "bitor", "catch", "char16_t", "char32_t", "char8_t",
    "class", "co_await", "co_return", "co_yield", "compl", "concept", "const_cast", "consteval",
    "constinit", "decltype", "delete", "dynamic_cast", "explicit", "export", "friend", "mutable",
    "namespace", "new", "noexcept", "not", "not_eq", "operator", "or", "or_eq", "private",
    "protected", "public", "reinterpret_cast", "requires", "static_cast", "template", "this",
    "throw", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq",
    /* words in launch functions, and names that are reserved for programs */
    "stream", "tile_args_", "tile_n_", "tile_variant_", "tile_arg", "tile_arg_pointer",
    "tile_arg_scalar", "tile_arg_view", "tile_const", "tile_dtype", "tile_launch_embedded",
    "tile_launch_embedded_variant", "tile_status", "tile_stream", "int8_t", "int16_t", "int32_t",
    "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "main", "memset", "NULL", "linux",
    "unix", "errno", "assert",
};
enum { NRESERVED = sizeof RESERVED / sizeof *RESERVED };

static bool is_reserved(const char *name)
{
    for (size_t i = 0; i < NRESERVED; i++)
        if (!strcmp(RESERVED[i], name))
            return true;
    return false;
}

static bool is_declared(const TlKernelInfo *info, const char *name)
{
    for (uint32_t i = 0; i < info->params.len; i++)
        if (!strcmp(info->params.data[i].name, name))
            return true;
    for (uint32_t i = 0; i < info->syms.len; i++)
        if (!strcmp(info->syms.data[i].name, name))
            return true;
    for (uint32_t i = 0; i < info->consts.len; i++)
        if (!strcmp(info->consts.data[i].name, name))
            return true;
    return false;
}

/* The C name of a parameter, extent, stride or constant. */
static const char *c_name(TlArena *arena, const TlKernelInfo *info, const char *name)
{
    char *c = tl_strndup(arena, name, strlen(name));
    for (char *dot = c; (dot = strchr(dot, '.')) != NULL;)
        *dot = '_';
    while (is_reserved(c) || (strcmp(c, name) != 0 && is_declared(info, c)))
        c = tl_format(arena, "%s_", c);
    return c;
}

/* Floats that C has not, and packed elements, are bits. */
static const char *c_type(TlDtype d)
{
    static const char *const OF_SIGNED[] = {
        [1] = "int8_t", [2] = "int16_t", [4] = "int32_t", [8] = "int64_t"};
    static const char *const BITS[] = {
        [1] = "uint8_t", [2] = "uint16_t", [4] = "uint32_t", [8] = "uint64_t"};
    if (d == TL_F32)
        return "float";
    if (d == TL_F64)
        return "double";
    bool is_signed = tl_is_signed(d) && !tl_is_packed(d);
    return (is_signed ? OF_SIGNED : BITS)[tl_dtype_bytes(d)];
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

/* NULL if the expression has no simple form in C. The launch computes it anyway, so the caller must
 * be told otherwise. */
static const char *c_expr(TlArena *arena, const TlKernelInfo *info, const TlHostExpr *e)
{
    const char *stack[TILE_HX_MAX_STACK + 1];
    int n = 0;
    for (uint32_t i = 0; i < e->code.len; i++) {
        tile_hx_ins ins = e->code.data[i];
        if (ins.op == TILE_HX_CONST && n < TILE_HX_MAX_STACK)
            stack[n++] = tl_format(arena, "INT64_C(%" PRId64 ")", ins.imm);
        else if (ins.op == TILE_HX_SYM && n < TILE_HX_MAX_STACK)
            stack[n++] = c_name(arena, info, info->syms.data[ins.imm].name);
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
        return c_name(arena, info, info->syms.data[d->value].name);
    return d->kind == TILE_DIM_EXPR ? c_expr(arena, info, &info->exprs.data[d->value]) : NULL;
}

/* ---- one launch function ---- */

typedef struct Variant {
    const TlFn *fn;
    const char *name;
} Variant;

/* Instances of one kernel whose parameters have the same types. */
typedef struct Group {
    const TlFn *fn, *plain; /* the first; the first that tuning did not choose */
    const char *name, *args, *launch, *variant;
    TL_VEC(const char *) consts; /* in which they differ */
    TL_VEC(Variant) variants;    /* one for each list of their values */
} Group;

typedef struct Header {
    TlSbuf *out;
    TlArena *arena;
    const char *image, *prefix;
    TL_VEC(Group) groups;
} Header;

/* ---- structs: parameters "s.f" that stand beside each other are one of C ---- */

/* The k-th word between dots; NULL: there are fewer. */
static const char *word_of(TlArena *arena, const char *text, uint32_t k)
{
    for (; k > 0 && text; k--)
        text = strchr(text, '.') ? strchr(text, '.') + 1 : NULL;
    return text ? tl_strndup(arena, text, strcspn(text, ".")) : NULL;
}

static const char *c_field(TlArena *arena, const char *name)
{
    while (is_reserved(name))
        name = tl_format(arena, "%s_", name);
    return name;
}

/* Do both stand in the same struct down to the k-th word of their names? */
static bool are_together(TlArena *arena, const TlParam *a, const TlParam *b, uint32_t k)
{
    for (uint32_t i = 0; i <= k; i++) {
        const char *x = word_of(arena, a->name, i), *y = word_of(arena, b->name, i);
        if (!x || !y || strcmp(x, y) != 0)
            return false;
    }
    return a->of && b->of;
}

/* Behind the parameters that are in one struct with params[i], down to the k-th word. */
static uint32_t end_of(const Header *h, const TlKernelInfo *info, uint32_t i, uint32_t k)
{
    uint32_t end = i + 1;
    while (end < info->params.len &&
           are_together(h->arena, &info->params.data[i], &info->params.data[end], k))
        end++;
    return end;
}

/* Is params[i] the first of its struct, or none of a struct's? */
static bool is_first(const Header *h, const TlKernelInfo *info, uint32_t i)
{
    return i == 0 || end_of(h, info, i - 1, 0) == i;
}

/* Of a parameter's default, which may be none: a constant of C and C++ for an assignment. */
static const char *c_value(TlArena *arena, const TlParam *p)
{
    bool is_float = p->dtype == TL_F32 || p->dtype == TL_F64; /* others are bits in C */
    double x = is_float ? tl_bits_to_double(p->dtype, p->value) : 0;
    if (!is_float && tl_is_signed(p->dtype) && !tl_is_float(p->dtype)) {
        long long n = tl_bits_to_int(p->dtype, p->value);
        return tl_format(arena, n == INT64_MIN ? "%lldLL - 1" : "%lld", n + (n == INT64_MIN));
    }
    if (!is_float)
        return tl_format(arena, "%lluu", (unsigned long long)p->value);
    if (isnan(x) || isinf(x)) /* of math.h */
        return isnan(x) ? "NAN" : x < 0 ? "-INFINITY" : "INFINITY";
    const char *text = p->dtype == TL_F32 ? TL_NUMBER("%.9g", x) : TL_NUMBER("%.17g", x);
    return tl_format(arena, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0",
                     p->dtype == TL_F32 ? "f" : "");
}

/* The struct of params [i, end), whose name is the k-th of `of`; those inside it first. Other
 * headers may have it, too. */
static void write_type(const Header *h, const TlKernelInfo *info, uint32_t i, uint32_t k)
{
    const TlParam *p = &info->params.data[i];
    const char *type = word_of(h->arena, p->of, k);
    uint32_t end = end_of(h, info, i, k);
    for (uint32_t at = i; at < end; at = end_of(h, info, at, k + 1))
        if (word_of(h->arena, info->params.data[at].of, k + 1))
            write_type(h, info, at, k + 1);
    TlSbuf fields, values;
    tl_sbuf_init(&fields, h->arena);
    tl_sbuf_init(&values, h->arena);
    for (uint32_t at = i; at < end; at = end_of(h, info, at, k + 1)) {
        const TlParam *f = &info->params.data[at];
        const char *inner = word_of(h->arena, f->of, k + 1),
                   *name = c_field(h->arena, word_of(h->arena, f->name, k + 1));
        if (inner) {
            tl_sbuf_putf(&fields, "    struct %s%s %s;\n", h->prefix, inner, name);
            tl_sbuf_putf(&values, "    s.%s = %s%s_defaults();\n", name, h->prefix, inner);
        } else {
            tl_sbuf_putf(&fields, "    %s %s;\n", c_type(f->dtype), name);
            tl_sbuf_putf(&values, "    s.%s = %s;\n", name, c_value(h->arena, f));
        }
    }
    const char *guard = tl_format(h->arena, "TILE_STRUCT_%s%s", h->prefix, type);
    unsigned id = (unsigned)tl_hash(values.text, values.len, tl_hash(fields.text, fields.len, 0));
    tl_sbuf_putf(h->out, "#ifndef %s\n#define %s 0x%08x\n", guard, guard, id);
    if (strstr(values.text, "INFINITY") || strstr(values.text, "NAN"))
        tl_sbuf_puts(h->out, "#include <math.h>\n");
    tl_sbuf_putf(h->out, "struct %s%s {\n%s};\n", h->prefix, type, fields.text);
    tl_sbuf_putf(h->out, "/* The defaults of its fields; 0 where there is none. */\n"
                         "static inline struct %s%s %s%s_defaults(void)\n{\n    struct %s%s s;\n",
                 h->prefix, type, h->prefix, type, h->prefix, type);
    tl_sbuf_putf(h->out, "%s    return s;\n}\n", values.text);
    tl_sbuf_putf(h->out, "#elif %s != 0x%08x\n", guard, id);
    tl_sbuf_putf(h->out, "#error another header has another struct %s%s: use --prefix\n",
                 h->prefix, type);
    tl_sbuf_puts(h->out, "#endif\n");
}

static void write_types(const Header *h, const TlKernelInfo *info)
{
    for (uint32_t i = 0; i < info->params.len; i++)
        if (info->params.data[i].of && is_first(h, info, i))
            write_type(h, info, i, 0);
}

/* The parameter or struct that a caller names. */
static const char *argument(const Header *h, const TlKernelInfo *info, uint32_t i)
{
    const TlParam *p = &info->params.data[i];
    return c_name(h->arena, info, p->of ? word_of(h->arena, p->name, 0) : p->name);
}

/* The value of a parameter: "x", "s.inner.n". */
static const char *value_in_c(const Header *h, const TlKernelInfo *info, uint32_t i)
{
    const TlParam *p = &info->params.data[i];
    const char *text = argument(h, info, i), *word;
    for (uint32_t k = 1; p->of && (word = word_of(h->arena, p->name, k)) != NULL; k++)
        text = tl_format(h->arena, "%s.%s", text, c_field(h->arena, word));
    return text;
}

/* "const uint16_t *A", "struct S s" */
static const char *declaration(const Header *h, const TlKernelInfo *info, uint32_t i)
{
    const TlParam *p = &info->params.data[i];
    bool memory = p->kind != TILE_PARAM_SCALAR;
    if (p->of)
        return tl_format(h->arena, "struct %s%s %s", h->prefix, word_of(h->arena, p->of, 0),
                         argument(h, info, i));
    return tl_format(h->arena, "%s%s %s%s", memory && p->is_const ? "const " : "", c_type(p->dtype),
                     memory ? "*" : "", c_name(h->arena, info, p->name));
}

/* A dtype as tile.h names it, "TILE_F32". */
static const char *dtype_name(const Header *h, TlDtype d)
{
    return tl_format(h->arena, "TILE_%s", upper(h->arena, tl_dtype_name(d)));
}

/* before: parameters in front of the stream */
static void write_signature(const Header *h, const TlKernelInfo *info, const char *name,
                            const char *before)
{
    tl_sbuf_putf(h->out, "static inline tile_status %s(%stile_stream *stream", name, before);
    for (uint32_t i = 0; i < info->params.len; i++)
        if (is_first(h, info, i))
            tl_sbuf_putf(h->out, ", %s", declaration(h, info, i));
    for (int strides = 0; strides < 2; strides++)
        for (uint32_t i = 0; i < info->syms.len; i++)
            if (info->syms.data[i].is_stride == (strides == 1))
                tl_sbuf_putf(h->out, ", int64_t %s",
                             c_name(h->arena, info, info->syms.data[i].name));
    tl_sbuf_puts(h->out, ")\n{\n");
}

static void write_view(const Header *h, const TlKernelInfo *info, const TlParam *p, uint32_t i)
{
    TlSbuf *out = h->out;
    TlArena *arena = h->arena;
    bool strided = false;
    tl_sbuf_putf(out, "    tile_args_[%u] = tile_arg_view(%s, %s, %d", i,
                 c_name(arena, info, p->name), dtype_name(h, p->dtype), (int)p->rank);
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

/* A backslash at the end of a line, or its trigraph, would join the next line to the comment. */
static size_t shown_of_line(const char *line, size_t n)
{
    for (;;) {
        if (n >= 3 && !strncmp(line + n - 3, "?\?/", 3))
            n -= 3;
        else if (n > 0 && strchr("\\ \t", line[n - 1]))
            n--;
        else
            return n;
    }
}

static void write_doc(const Header *h, const char *doc)
{
    while (doc && *doc) {
        size_t n = strcspn(doc, "\n"), shown = shown_of_line(doc, n);
        tl_sbuf_putf(h->out, "///%s%.*s\n", shown ? " " : "", (int)shown, doc);
        doc += n + (doc[n] == '\n');
    }
}

/* The names of all values after `stream`, each behind ", " and `of`. */
static void write_values(const Header *h, const TlKernelInfo *info, const char *of)
{
    for (uint32_t i = 0; i < info->params.len; i++)
        if (is_first(h, info, i))
            tl_sbuf_putf(h->out, ", %s%s", of, argument(h, info, i));
    for (int strides = 0; strides < 2; strides++)
        for (uint32_t i = 0; i < info->syms.len; i++)
            if (info->syms.data[i].is_stride == (strides == 1))
                tl_sbuf_putf(h->out, ", %s%s", of,
                             c_name(h->arena, info, info->syms.data[i].name));
}

/* With the constants that choose among variants, where there are some. */
static void write_launch(const Header *h, const Group *g)
{
    const TlKernelInfo *info = g->fn->info;
    TlSbuf *out = h->out;
    const char *end = g->consts.len ? "_variant" : "",
               *list = g->consts.len ? "tile_variant_, " : "";
    write_signature(h, info, g->consts.len ? g->variant : g->name,
                    g->consts.len ? "const tile_const *tile_variant_, " : "");
    tl_sbuf_putf(out, "    tile_arg tile_args_[%u];\n", info->params.len ? info->params.len : 1);
    for (uint32_t i = 0; i < info->params.len; i++) {
        const TlParam *p = &info->params.data[i];
        const char *name = value_in_c(h, info, i);
        if (p->kind == TILE_PARAM_VIEW)
            write_view(h, info, p, i);
        else if (p->kind == TILE_PARAM_POINTER)
            tl_sbuf_putf(out, "    tile_args_[%u] = tile_arg_pointer(%s, %s, 0);\n", i, name,
                         dtype_name(h, p->dtype));
        else
            tl_sbuf_putf(out,
                         "    tile_args_[%u] = tile_arg_scalar(%s, &%s, sizeof %s);\n", i,
                         dtype_name(h, p->dtype), name, name);
    }
    tl_sbuf_putf(out,
                 "    return tile_launch_embedded%s(tile_image_%s, \"%s\", %sstream, tile_args_, "
                 "%u);\n}\n",
                 end, h->image, g->fn->name, list, info->params.len);
}

/* By the first variant that fits. */
static void write_any_variant(const Header *h, const Group *g)
{
    if (!g->consts.len)
        return;
    write_signature(h, g->fn->info, g->name, "");
    tl_sbuf_putf(h->out, "    return %s(NULL, stream", g->variant);
    write_values(h, g->fn->info, "");
    tl_sbuf_puts(h->out, ");\n}\n");
}

static const char *value_of(const TlKernelInfo *info, const char *name)
{
    for (uint32_t i = 0; i < info->consts.len; i++)
        if (!strcmp(info->consts.data[i].name, name))
            return info->consts.data[i].value;
    return "";
}

/* "B = 64, CAUSAL = true" */
static const char *values_text(const Header *h, const Group *g, const TlKernelInfo *info)
{
    const char *text = "";
    for (uint32_t c = 0; c < g->consts.len; c++)
        text = tl_format(h->arena, "%s%s%s = %s", text, c ? ", " : "", g->consts.data[c],
                         value_of(info, g->consts.data[c]));
    return text;
}

/* The functions of single variants. */
static void write_each_variant(const Header *h, const Group *g)
{
    for (uint32_t i = 0; i < g->variants.len; i++) {
        const TlKernelInfo *info = g->variants.data[i].fn->info;
        tl_sbuf_putf(h->out, "/* %s with %s */\n", g->name, values_text(h, g, info));
        write_signature(h, g->fn->info, g->variants.data[i].name, "");
        tl_sbuf_putf(h->out, "    tile_const tile_variant_[%u];\n"
                             "    memset(tile_variant_, 0, sizeof tile_variant_);\n",
                     g->consts.len + 1);
        for (uint32_t c = 0; c < g->consts.len; c++)
            tl_sbuf_putf(h->out, "    tile_variant_[%u].name = \"%s\";\n"
                                 "    tile_variant_[%u].text = \"%s\";\n",
                         c, g->consts.data[c], c, value_of(info, g->consts.data[c]));
        tl_sbuf_putf(h->out, "    return %s(tile_variant_, stream", g->variant);
        write_values(h, g->fn->info, "");
        tl_sbuf_puts(h->out, ");\n}\n");
    }
}

/* ---- the same by a struct ---- */

static void write_members(const Header *h, const Group *g)
{
    const TlKernelInfo *info = g->fn->info;
    for (uint32_t i = 0; i < info->params.len; i++)
        if (is_first(h, info, i))
            tl_sbuf_putf(h->out, "    %s;\n", declaration(h, info, i));
    for (int strides = 0; strides < 2; strides++)
        for (uint32_t i = 0; i < info->syms.len; i++) {
            const TlSym *s = &info->syms.data[i];
            if (s->is_stride == (strides == 1))
                tl_sbuf_putf(h->out, "    int64_t %s; /* %s of %s, axis %u%s */\n",
                             c_name(h->arena, info, s->name), strides ? "stride" : "extent",
                             info->params.data[s->param].name, s->axis,
                             strides ? ", in elements" : "");
        }
    for (uint32_t i = 0; i < g->consts.len; i++)
        tl_sbuf_putf(h->out, "    const char *%s; /* the variant's, as a text; NULL: any */\n",
                     c_name(h->arena, info, g->consts.data[i]));
}

/* The constants that are given as a list. */
static void write_variant(const Header *h, const Group *g)
{
    uint32_t n = g->consts.len;
    tl_sbuf_putf(h->out, "    tile_const tile_variant_[%u];\n    int tile_n_ = 0;\n"
                         "    memset(tile_variant_, 0, sizeof tile_variant_);\n", n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = c_name(h->arena, g->fn->info, g->consts.data[i]);
        tl_sbuf_putf(h->out,
                     "    if (args->%s) {\n        tile_variant_[tile_n_].name = \"%s\";\n"
                     "        tile_variant_[tile_n_++].text = args->%s;\n    }\n",
                     name, g->consts.data[i], name);
    }
}

static void write_struct(const Header *h, const Group *g)
{
    const TlKernelInfo *info = g->fn->info;
    if (!info->params.len) /* C has no empty structs */
        return;
    tl_sbuf_putf(h->out, "\n/* The arguments of %s by name. */\ntypedef struct %s {\n", g->name,
                 g->args);
    write_members(h, g);
    tl_sbuf_putf(h->out,
                 "} %s;\nstatic inline tile_status %s(tile_stream *stream, const %s *args)\n{\n",
                 g->args, g->launch, g->args);
    if (g->consts.len)
        write_variant(h, g);
    tl_sbuf_putf(h->out, "    return %s(%sstream", g->consts.len ? g->variant : g->name,
                 g->consts.len ? "tile_variant_, " : "");
    write_values(h, info, "args->");
    tl_sbuf_puts(h->out, ");\n}\n");
}

/* ---- which functions there are ---- */

static bool same_types(const TlKernelInfo *a, const TlKernelInfo *b)
{
    if (a->params.len != b->params.len)
        return false;
    for (uint32_t i = 0; i < a->params.len; i++)
        if (a->params.data[i].dtype != b->params.data[i].dtype)
            return false;
    return true;
}

static bool is_taken(const Header *h, const char *name)
{
    for (uint32_t i = 0; i < h->groups.len; i++) {
        const Group *g = &h->groups.data[i];
        if (!strcmp(g->name, name) || (g->args && !strcmp(g->args, name)) ||
            (g->launch && !strcmp(g->launch, name)) ||
            (g->variant && !strcmp(g->variant, name)))
            return true;
        for (uint32_t v = 0; v < g->variants.len; v++)
            if (g->variants.data[v].name && !strcmp(g->variants.data[v].name, name))
                return true;
    }
    return false;
}

static const char *free_name(const Header *h, const char *name)
{
    while (is_reserved(name) || is_taken(h, name))
        name = tl_format(h->arena, "%s_", name);
    return name;
}

static Group *group_of(Header *h, const TlFn *fn)
{
    for (uint32_t k = 0; k < h->groups.len; k++)
        if (!strcmp(h->groups.data[k].fn->name, fn->name) &&
            same_types(h->groups.data[k].fn->info, fn->info))
            return &h->groups.data[k];
    return NULL;
}

/* Is the constant another one in one of the group's instances? What tuning chose is chosen by the
 * launch. */
static bool differs(Header *h, const TlModule *m, const Group *g, const TlConstBinding *c)
{
    for (uint32_t i = 0; i < m->fns.len; i++) {
        const TlFn *fn = m->fns.data[i];
        if (!fn->info->ntuned && group_of(h, fn) == g &&
            strcmp(value_of(fn->info, c->name), c->value) != 0)
            return true;
    }
    return false;
}

static bool same_values(const Group *g, const TlFn *a, const TlFn *b)
{
    for (uint32_t c = 0; c < g->consts.len; c++)
        if (strcmp(value_of(a->info, g->consts.data[c]), value_of(b->info, g->consts.data[c])) != 0)
            return false;
    return true;
}

/* The instances that differ in the group's constants. */
static void collect_variants(Header *h, const TlModule *m, Group *g)
{
    for (uint32_t i = 0; i < m->fns.len; i++) {
        const TlFn *fn = m->fns.data[i];
        bool known = fn->info->ntuned || group_of(h, fn) != g;
        for (uint32_t v = 0; v < g->variants.len; v++)
            known = known || same_values(g, g->variants.data[v].fn, fn);
        if (!known)
            tl_vec_push(h->arena, &g->variants, (Variant){.fn = fn});
    }
}

static void collect(Header *h, const TlModule *m)
{
    for (uint32_t i = 0; i < m->fns.len; i++) {
        const TlFn *fn = m->fns.data[i];
        Group *g = group_of(h, fn);
        if (!g)
            tl_vec_push(h->arena, &h->groups, ((Group){.fn = fn, .plain = fn, .name = ""}));
        else if (g->plain->info->ntuned)
            g->plain = fn;
    }
    for (uint32_t k = 0; k < h->groups.len; k++) {
        Group *g = &h->groups.data[k];
        for (uint32_t c = 0; c < g->plain->info->consts.len; c++)
            if (differs(h, m, g, &g->plain->info->consts.data[c]))
                tl_vec_push(h->arena, &g->consts, g->plain->info->consts.data[c].name);
        if (g->consts.len)
            collect_variants(h, m, g);
    }
}

/* Of group `at`: "_f16" where another group of its kernel has another type for that constant. */
static const char *suffix(const Header *h, uint32_t at)
{
    const TlFn *fn = h->groups.data[at].fn;
    const char *text = "";
    for (uint32_t c = 0; c < fn->info->consts.len; c++) {
        const TlConstBinding *b = &fn->info->consts.data[c];
        TlDtype d;
        bool differs = false;
        for (uint32_t k = 0; k < h->groups.len; k++)
            differs |= !strcmp(h->groups.data[k].fn->name, fn->name) &&
                       strcmp(value_of(h->groups.data[k].fn->info, b->name), b->value) != 0;
        if (differs && tl_dtype_parse(b->value, strlen(b->value), &d))
            text = tl_format(h->arena, "%s_%s", text, b->value);
    }
    return text;
}

static const char *group_name(const Header *h, uint32_t at, const char *ending)
{
    return free_name(h, tl_format(h->arena, "%s%s%s%s", h->prefix, h->groups.data[at].fn->name,
                                  suffix(h, at), ending));
}

/* "_B64_CAUSAL_true": of values that are no numbers a _ divides the constant's name; what is no
 * letter or digit is a _, and a minus an m. */
static const char *variant_suffix(const Header *h, const Group *g, const TlKernelInfo *info)
{
    const char *text = "";
    for (uint32_t c = 0; c < g->consts.len; c++) {
        const char *value = value_of(info, g->consts.data[c]);
        bool number = tl_is_digit((unsigned char)*value) || *value == '-';
        text = tl_format(h->arena, "%s_%s%s%s", text, g->consts.data[c], number ? "" : "_", value);
    }
    char *s = tl_strndup(h->arena, text, strlen(text));
    for (char *p = s; *p; p++)
        if (!tl_is_alnum((unsigned char)*p))
            *p = *p == '-' ? 'm' : '_';
    return s;
}

static void name_variants(Header *h, uint32_t at)
{
    Group *g = &h->groups.data[at];
    for (uint32_t v = 0; v < g->variants.len; v++)
        g->variants.data[v].name =
            group_name(h, at, variant_suffix(h, g, g->variants.data[v].fn->info));
}

/* Functions choose their names first, those of single variants last. */
static void name_all(Header *h)
{
    for (uint32_t i = 0; i < h->groups.len; i++)
        h->groups.data[i].name = group_name(h, i, "");
    for (uint32_t i = 0; i < h->groups.len; i++) {
        h->groups.data[i].args = group_name(h, i, "_args");
        h->groups.data[i].launch = group_name(h, i, "_launch");
        if (h->groups.data[i].consts.len)
            h->groups.data[i].variant = group_name(h, i, "_variant");
    }
    for (uint32_t i = 0; i < h->groups.len; i++)
        name_variants(h, i);
}

void tl_header_write(TlSbuf *out, TlCtx *ctx, const TlModule *m, const char *image,
                     const char *prefix, const char *source)
{
    Header h = {.out = out, .arena = &ctx->perm, .image = image, .prefix = prefix ? prefix : ""};
    const char *slash = strrchr(source, '/');
    const char *guard =
        tl_format(h.arena, "%sTILE_KERNELS_%s_H", h.prefix, upper(h.arena, image));
    tl_sbuf_putf(out,
                 "/* Made by tilec from %s. Link with the object of the same name and libtile.\n"
                 " * A NULL stream is the default stream of the default device. */\n",
                 slash ? slash + 1 : source);
    tl_sbuf_putf(out, "#ifndef %s\n#define %s\n#include <tile.h>\n\n", guard, guard);
    tl_sbuf_putf(out,
                 "#ifdef __cplusplus\nextern \"C\" {\n#endif\nextern const unsigned char "
                 "tile_image_%s[];\nextern const size_t tile_size_%s; /* its bytes */\n"
                 "#ifdef __cplusplus\n}\n#endif\n",
                 image, image);
    collect(&h, m);
    name_all(&h);
    for (uint32_t i = 0; i < h.groups.len; i++) {
        tl_sbuf_puts(out, "\n");
        write_types(&h, h.groups.data[i].fn->info);
        write_doc(&h, h.groups.data[i].fn->info->doc);
        write_launch(&h, &h.groups.data[i]);
        write_any_variant(&h, &h.groups.data[i]);
        write_each_variant(&h, &h.groups.data[i]);
        write_struct(&h, &h.groups.data[i]);
    }
    tl_sbuf_puts(out, "\n#endif\n");
}
