/* The text form of tile IR, read (print.c writes it; IR.md has the grammar). A cursor over the
 * text, one function per construct, tables of op.c for everything that has a name. The first error
 * ends the parse with a diagnostic; regions are kept on the blocks' parent pointers, so depth costs
 * no C stack. What parses is then verified. */
#include "ir/form.h"
#include "ir/layout/layout.h"
#include "ir/numeric.h"
#include "ir/support/ascii.h"
#include "ir/text/text.h"
#include <math.h>
#include <string.h>

enum { MAX_NESTING = 20000 };

typedef struct Parser {
    TlCtx *ctx;
    uint32_t source;
    const char *text, *cur, *end;
    TlModule *module;
    TlFn *fn;
    TlMap values;    /* interned name to value, of the current function */
    TlMap positions; /* op to its offset in the text, for the verifier's faults */
    TL_VEC(uint32_t) files; /* the `files` line: index to source */
    TL_VEC(const TlLayout *) layouts; /* the `layouts` line */
    /* where a CONST literal is; it is read once the result type is known */
    const char *const_at;
    const char *form; /* of the info block: what is promised; NULL: everything */
    bool failed;
} Parser;

/* ---- errors ---- */

static TlLoc loc_at(const Parser *p, const char *at)
{
    TlLoc loc = {.file = p->source, .line = 1, .col = 1, .len = 1};
    for (const char *c = p->text; c < at; c++) {
        loc.col++;
        if (*c == '\n') loc.line++, loc.col = 1;
    }
    return loc;
}

static bool fail_at(Parser *p, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool fail_at(Parser *p, const char *at, const char *format, ...)
{
    if (p->failed) return false;
    p->failed = true;
    va_list args;
    va_start(args, format);
    tl_diag(&p->ctx->diags, loc_at(p, at), TL_E0801, tl_vformat(&p->ctx->perm, format, args));
    va_end(args);
    return false;
}

/* ---- characters and words ---- */

static bool is_word(char c) { return tl_is_alnum((unsigned char)c) || c == '_'; }

static void skip_space(Parser *p)
{
    for (;;) {
        while (p->cur < p->end && tl_is_space((unsigned char)*p->cur)) p->cur++;
        if (p->end - p->cur < 2 || p->cur[0] != '/' || p->cur[1] != '/') return;
        while (p->cur < p->end && *p->cur != '\n') p->cur++;
    }
}

static char peek(Parser *p)
{
    skip_space(p);
    return p->cur < p->end ? *p->cur : 0;
}

static bool take(Parser *p, char c)
{
    if (peek(p) != c || p->cur == p->end) return false;
    p->cur++;
    return true;
}

static bool expect(Parser *p, char c)
{
    return take(p, c) || fail_at(p, p->cur, "'%c' expected", c);
}

/* The identifier at the cursor; length 0 when there is none. */
static size_t word_length(Parser *p)
{
    skip_space(p);
    const char *c = p->cur;
    if (c == p->end || tl_is_digit((unsigned char)*c)) return 0;
    while (c < p->end && is_word(*c)) c++;
    return (size_t)(c - p->cur);
}

static bool take_word(Parser *p, const char *word)
{
    size_t n = word_length(p);
    if (n != strlen(word) || memcmp(p->cur, word, n) != 0) return false;
    p->cur += n;
    return true;
}

static bool string(Parser *p, const char **out)
{
    skip_space(p);
    const char *start = p->cur;
    if (!expect(p, '"')) return false;
    TlSbuf s;
    tl_sbuf_init(&s, &p->module->arena);
    for (; p->cur < p->end && *p->cur != '"' && *p->cur != '\n'; p->cur++) {
        char c = *p->cur;
        if (c == '\\' && p->cur + 1 < p->end) {
            c = *++p->cur;
            if (c == 'n') c = '\n';
            else if (c == 't') c = '\t';
            else if (c == 'x' && p->end - p->cur > 2 && tl_is_xdigit((unsigned char)p->cur[1]) &&
                     tl_is_xdigit((unsigned char)p->cur[2])) {
                char hex[5] = {'0', 'x', p->cur[1], p->cur[2], 0};
                c = (char)(int)tl_text_to_double(hex, 4);
                p->cur += 2;
            } else if (c != '"' && c != '\\')
                return fail_at(p, p->cur, "unknown escape in a string");
        }
        if (c == 0) return fail_at(p, p->cur, "NUL in a string");
        tl_sbuf_put(&s, &c, 1);
    }
    if (p->cur == p->end || *p->cur != '"') return fail_at(p, start, "string without an end");
    p->cur++;
    *out = tl_intern(&p->ctx->strings, s.text, s.len);
    return true;
}

/* ---- numbers ---- */

static bool magnitude(Parser *p, uint64_t *out)
{
    skip_space(p);
    const char *start = p->cur;
    unsigned base = 10;
    if (p->end - p->cur > 2 && p->cur[0] == '0' && p->cur[1] == 'x') base = 16, p->cur += 2;
    uint64_t v = 0;
    const char *digits = p->cur;
    for (; p->cur < p->end && tl_is_xdigit((unsigned char)*p->cur); p->cur++) {
        char c = *p->cur;
        unsigned d =
            tl_is_digit((unsigned char)c) ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
        if (d >= base) break;
        if (v > (UINT64_MAX - d) / base)
            return fail_at(p, start, "the number does not fit into 64 bits");
        v = v * base + d;
    }
    if (p->cur == digits) return fail_at(p, start, "number expected");
    *out = v;
    return true;
}

static bool integer(Parser *p, int64_t *out)
{
    skip_space(p);
    const char *start = p->cur;
    bool negative = take(p, '-');
    uint64_t v = 0;
    if (!magnitude(p, &v)) return false;
    if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return fail_at(p, start, "the number does not fit into i64");
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static bool integer_in(Parser *p, int64_t low, int64_t high, int64_t *out)
{
    skip_space(p);
    const char *start = p->cur;
    if (!integer(p, out)) return false;
    if (*out >= low && *out <= high) return true;
    return fail_at(p, start, "%lld is not in %lld..%lld", (long long)*out, (long long)low,
                   (long long)high);
}

static bool u32(Parser *p, uint32_t *out)
{
    int64_t v = 0;
    if (!integer_in(p, 0, UINT32_MAX, &v)) return false;
    *out = (uint32_t)v;
    return true;
}

static bool i32(Parser *p, int32_t *out)
{
    int64_t v = 0;
    if (!integer_in(p, INT32_MIN, INT32_MAX, &v)) return false;
    *out = (int32_t)v;
    return true;
}

/* ---- positions: @line:col or @file:line:col ---- */

static bool position(Parser *p, TlLoc *out)
{
    *out = (TlLoc){0};
    if (peek(p) != '@' || p->end - p->cur < 2 || !tl_is_digit((unsigned char)p->cur[1]))
        return true;
    const char *start = p->cur++;
    uint32_t n[3] = {0};
    int count = 0;
    do {
        if (!u32(p, &n[count])) return false;
    } while (++count < 3 && p->cur < p->end && *p->cur == ':' && p->cur++);
    if (count < 2) return fail_at(p, start, "a position is @line:column or @file:line:column");
    uint32_t file = count == 3 ? n[0] : 0;
    if (file >= p->files.len) return fail_at(p, start, "file %u is not in a files line", file);
    *out =
        (TlLoc){.file = p->files.data[file], .line = n[count - 2], .col = n[count - 1], .len = 1};
    return true;
}

/* ---- types ---- */

static bool dtype(Parser *p, TlDtype *out)
{
    size_t n = word_length(p);
    if (n == 0 || !tl_dtype_parse(p->cur, n, out))
        return fail_at(p, p->cur, "element type expected");
    p->cur += n;
    return true;
}

static bool const_dtype(Parser *p, bool *is_const, TlDtype *d)
{
    *is_const = take_word(p, "const");
    return dtype(p, d);
}

/* dtype or ptr<[const] dtype> */
static bool element(Parser *p, TlType *t)
{
    if (!take_word(p, "ptr")) return dtype(p, &t->dtype);
    t->ptr = true;
    return expect(p, '<') && const_dtype(p, &t->is_const, &t->dtype) && expect(p, '>');
}

/* "reg(0,1) lane(0,2)(1,0) -> 2x4" */
static const TlLayout *layout_text(Parser *p)
{
    skip_space(p);
    const char *start = p->cur, *text = NULL;
    if (!string(p, &text))
        return NULL;
    const TlLayout *l = tl_layout_parse(&p->module->arena, text);
    if (l && tl_layout_total_in_bits(l) <= 62 && tl_layout_total_out_bits(l) <= 62)
        return tl_layout_intern(p->ctx, l);
    fail_at(p, start, "not a layout");
    return NULL;
}

/* A number of the layouts line, or the text itself. */
static const TlLayout *layout(Parser *p)
{
    skip_space(p);
    const char *start = p->cur;
    uint32_t n = 0;
    if (!take(p, '#'))
        return layout_text(p);
    if (!u32(p, &n))
        return NULL;
    if (n < p->layouts.len)
        return p->layouts.data[n];
    fail_at(p, start, "layout #%u is not in a layouts line", n);
    return NULL;
}

/* <element, extents... [, layout]: up to whatever follows them */
static bool tile_body(Parser *p, const char *start, TlType *t)
{
    int64_t elems = 1;
    if (!expect(p, '<') || !element(p, t)) return false;
    while (take(p, ',')) {
        int64_t n = 0;
        if (peek(p) == '#' || peek(p) == '"') return (t->layout = layout(p)) != NULL;
        if (t->rank == TL_MAX_RANK)
            return fail_at(p, start, "a tile has at most %d axes", TL_MAX_RANK);
        if (!integer_in(p, 1, TL_MAX_ELEMS, &n)) return false;
        elems *= n;
        if (elems > TL_MAX_ELEMS) return fail_at(p, start, "a tile has at most 2^20 elements");
        t->shape[t->rank++] = (int32_t)n;
    }
    return true;
}

static const TlType *tile_type(Parser *p, const char *start)
{
    TlType t = {0};
    if (!tile_body(p, start, &t) || !expect(p, '>')) return NULL;
    const TlType *tile = t.ptr ? tl_type_ptr(p->ctx, t.dtype, t.is_const, t.rank, t.shape)
                               : tl_type_tile(p->ctx, t.dtype, t.rank, t.shape);
    return t.layout ? tl_type_with_layout(p->ctx, tile, t.layout) : tile;
}

static bool want_half(Parser *p)
{
    return take_word(p, "half") || fail_at(p, p->cur, "'half' expected");
}

/* buf<f16, 128, 64, layout, slots>, buf<f16, 64, 256, layout, slots, half 1> */
static const TlType *buf_type(Parser *p, const char *start)
{
    TlType t = {0};
    int64_t slots = 0, axis = -1;
    if (!tile_body(p, start, &t)) return NULL;
    if (t.ptr || t.rank == 0 || !t.layout)
        return fail_at(p, start,
                       "a buffer has an element type, extents, a layout and a number of slots"),
               NULL;
    if (!expect(p, ',') || !integer_in(p, 1, TL_MAX_BUF_SLOTS, &slots))
        return NULL;
    if (take(p, ',') && (!want_half(p) || !integer_in(p, 0, t.rank - 1, &axis)))
        return NULL;
    if (!expect(p, '>'))
        return NULL;
    const TlType *buf = tl_type_buf(p->ctx, t.dtype, t.rank, t.shape, t.layout, (int32_t)slots);
    return tl_type_halved(p->ctx, buf, (int)axis);
}

/* token<f16, 128, 64, layout>, tensor<...> */
static const TlType *token_type(Parser *p, const char *start, bool in_tensor)
{
    TlType t = {0};
    if (!tile_body(p, start, &t) || !expect(p, '>')) return NULL;
    if (t.ptr || t.rank == 0 || !t.layout)
        return fail_at(p, start, "a token has an element type, extents and a layout"), NULL;
    return in_tensor ? tl_type_tensor(p->ctx, t.dtype, t.rank, t.shape, t.layout)
                     : tl_type_token(p->ctx, t.dtype, t.rank, t.shape, t.layout);
}

static const TlType *view_type(Parser *p)
{
    bool is_const;
    TlDtype d;
    int64_t rank = 0;
    if (!expect(p, '<') || !const_dtype(p, &is_const, &d) || !expect(p, ',') ||
        !integer_in(p, 0, TL_MAX_VIEW_RANK, &rank) || !expect(p, '>'))
        return NULL;
    return tl_type_view(p->ctx, d, is_const, (int)rank);
}

static const TlType *type(Parser *p)
{
    skip_space(p);
    const char *start = p->cur;
    if (take_word(p, "tile")) return tile_type(p, start);
    if (take_word(p, "view")) return view_type(p);
    if (take_word(p, "buf")) return buf_type(p, start);
    if (take_word(p, "token")) return token_type(p, start, false);
    if (take_word(p, "tensor")) return token_type(p, start, true);
    TlType t = {0};
    if (!element(p, &t)) return NULL;
    return t.ptr ? tl_type_ptr(p->ctx, t.dtype, t.is_const, 0, NULL)
                 : tl_type_scalar(p->ctx, t.dtype);
}

/* ---- values ---- */

static const char *value_name(Parser *p)
{
    if (!expect(p, '%')) return NULL;
    const char *c = p->cur;
    while (c < p->end && (is_word(*c) || *c == '.')) c++;
    size_t n = (size_t)(c - p->cur);
    if (n == 0) return fail_at(p, p->cur, "name expected after '%%'"), NULL;
    const char *name = tl_intern(&p->ctx->strings, p->cur, n);
    p->cur = c;
    return name;
}

/* The hint in a printed name: %x.3 was made from x, %12 has none. */
static const char *name_hint(Parser *p, const char *name)
{
    if (tl_is_digit((unsigned char)*name) || *name == '.') return NULL;
    return tl_intern(&p->ctx->strings, name, strcspn(name, "."));
}

static bool define(Parser *p, const char *at, const char *name, TlValue *v)
{
    if (tl_map_get_ptr(&p->values, name)) return fail_at(p, at, "%%%s is defined twice", name);
    v->name = name_hint(p, name);
    tl_map_put_ptr(&p->values, name, v);
    return true;
}

static TlValue *value(Parser *p)
{
    skip_space(p);
    const char *at = p->cur, *name = value_name(p);
    if (!name) return NULL;
    TlValue *v = tl_map_get_ptr(&p->values, name);
    if (!v) fail_at(p, at, "%%%s is not defined above", name);
    return v;
}

/* (%a: type, ...) */
static bool arguments(Parser *p, TlBlock *b)
{
    if (!expect(p, '(')) return false;
    if (take(p, ')')) return true;
    do {
        skip_space(p);
        const char *at = p->cur, *name = value_name(p);
        if (!name || !expect(p, ':')) return false;
        const TlType *t = type(p);
        if (!t || !define(p, at, name, tl_block_arg(b, t, NULL))) return false;
    } while (take(p, ','));
    return expect(p, ')');
}

/* ---- attributes ---- */

static bool one_axis(Parser *p, TlAxis *out)
{
    *out = (TlAxis){.kind = TL_AXIS_SLICE, .step = 1};
    if (take_word(p, "i")) return *out = (TlAxis){.kind = TL_AXIS_SCALAR}, true;
    if (take_word(p, "t")) return *out = (TlAxis){.kind = TL_AXIS_TILE}, true;
    return i32(p, &out->width) && (!take(p, ':') || i32(p, &out->step));
}

static bool axes(Parser *p, TlAttr *a)
{
    TlAxis *list = TL_NEW_ARRAY(&p->module->arena, TlAxis, TL_MAX_VIEW_RANK);
    a->u.axes = list;
    if (!expect(p, '[')) return false;
    if (take(p, ']')) return true;
    do {
        if (a->n == TL_MAX_VIEW_RANK)
            return fail_at(p, p->cur, "a view has at most %d axes", TL_MAX_VIEW_RANK);
        if (!one_axis(p, &list[a->n++])) return false;
    } while (take(p, ','));
    return expect(p, ']');
}

static bool ints(Parser *p, TlAttr *a)
{
    TL_VEC(int64_t) list = {0};
    if (!expect(p, '[')) return false;
    if (!take(p, ']')) {
        do {
            int64_t n = 0;
            if (!integer(p, &n)) return false;
            tl_vec_push(&p->module->arena, &list, n);
        } while (take(p, ','));
        if (!expect(p, ']')) return false;
    }
    a->n = list.len;
    a->u.ints = list.data;
    return true;
}

static bool span(Parser *p, TlAttr *a)
{
    int64_t bytes = 0;
    if (!integer(p, &a->u.i) || !take(p, ':')) return !p->failed;
    const char *at = p->cur;
    if (!integer(p, &bytes)) return false;
    a->n = (uint32_t)bytes;
    return (bytes > 0 && bytes <= UINT32_MAX) || fail_at(p, at, "bytes of %s", tl_attr_name(a->id));
}

static bool enumeration(Parser *p, TlAttr *a)
{
    size_t n = word_length(p);
    a->u.i = tl_enum_parse(tl_attr_form(a->id), p->cur, n);
    if (n == 0 || a->u.i < 0) return fail_at(p, p->cur, "not a value of %s", tl_attr_name(a->id));
    p->cur += n;
    return true;
}

static bool is_literal(char c) { return is_word(c) || c == '.' || c == '+' || c == '-'; }

/* Skips a literal and remembers where it is. */
static bool skip_const(Parser *p)
{
    skip_space(p);
    p->const_at = p->cur;
    if (take_word(p, "bits")) skip_space(p);
    const char *start = p->cur;
    while (p->cur < p->end && is_literal(*p->cur)) p->cur++;
    return p->cur > start || fail_at(p, start, "number expected");
}

static bool attr_value(Parser *p, TlAttr *a)
{
    switch (tl_attr_form(a->id)) {
    case TL_FORM_FLAG: return true;
    case TL_FORM_INT: return integer(p, &a->u.i);
    case TL_FORM_STR: return string(p, &a->u.s);
    case TL_FORM_INTS: return ints(p, a);
    case TL_FORM_AXES: return axes(p, a);
    case TL_FORM_CONST: return skip_const(p);
    case TL_FORM_COMBINE:
    case TL_FORM_RMW:
    case TL_FORM_ORDER:
    case TL_FORM_SCOPE:
    case TL_FORM_CACHE:
    case TL_FORM_EVICT: case TL_FORM_PRECISION: case TL_FORM_ROUND: case TL_FORM_APPROX:
    case TL_FORM_WAY: return enumeration(p, a);
    case TL_FORM_SPAN: return span(p, a);
    }
    TL_UNREACHABLE("attribute form %d", (int)tl_attr_form(a->id));
}

static bool attr_id(Parser *p, TlAttrId *out)
{
    size_t n = word_length(p);
    for (int i = 0; i < TL_ATTR_COUNT && n; i++) {
        const char *name = tl_attr_name((TlAttrId)i);
        if (strlen(name) != n || memcmp(name, p->cur, n) != 0) continue;
        *out = (TlAttrId)i;
        return true;
    }
    return fail_at(p, p->cur, "attribute expected");
}

typedef struct OpText {
    const char *at;
    TlOpcode opcode;
    TlLoc loc;
    TL_VEC(const char *) names;
    TL_VEC(TlValue *) in;
    TL_VEC(const TlType *) types;
    uint32_t nattrs;
    TlAttr attrs[TL_ATTR_COUNT];
} OpText;

static bool attributes(Parser *p, OpText *t)
{
    if (!take(p, '{') || take(p, '}')) return !p->failed;
    do {
        TlAttr a = {0};
        skip_space(p);
        const char *at = p->cur;
        if (!attr_id(p, &a.id)) return false;
        p->cur += strlen(tl_attr_name(a.id));
        for (uint32_t i = 0; i < t->nattrs; i++)
            if (t->attrs[i].id == a.id)
                return fail_at(p, at, "%s is given twice", tl_attr_name(a.id));
        if (tl_attr_form(a.id) == TL_FORM_FLAG) a.u.i = 1;
        else if (!expect(p, '=')) return false;
        if (!attr_value(p, &a)) return false;
        t->attrs[t->nattrs++] = a;
    } while (take(p, ','));
    return expect(p, '}');
}

/* ---- literals of constants ---- */

static bool float_literal(Parser *p, TlDtype d, uint64_t *out)
{
    const char *start = p->cur;
    while (p->cur < p->end && is_literal(*p->cur)) p->cur++;
    size_t n = (size_t)(p->cur - start);
    const char *digits = start + (*start == '-');
    bool special = n >= 3 && (memcmp(digits, "inf", 3) == 0 || memcmp(digits, "nan", 3) == 0) &&
                   digits + 3 == p->cur;
    for (const char *c = start; c < p->cur && !special; c++)
        if (!tl_is_xdigit((unsigned char)*c) && !strchr(".+-xp", *c))
            return fail_at(p, start, "float expected");
    if (!special && !tl_is_digit((unsigned char)*digits))
        return fail_at(p, start, "float expected");
    *out = tl_bits_from_double(d, tl_text_to_double(start, n));
    return true;
}

static bool integer_literal(Parser *p, TlDtype d, uint64_t *out)
{
    const char *start = p->cur;
    int width = tl_dtype_bits(d);
    bool negative = take(p, '-');
    uint64_t v = 0;
    if (!magnitude(p, &v)) return false;
    uint64_t limit =
        tl_is_signed(d) ? (1ull << (width - 1)) - !negative : UINT64_MAX >> (64 - width);
    if (v > limit || (negative && v && !tl_is_signed(d)))
        return fail_at(p, start, "the number does not fit into %s", tl_dtype_name(d));
    *out = (negative ? 0 - v : v) & (UINT64_MAX >> (64 - width));
    return true;
}

static bool const_literal(Parser *p, const TlType *t, uint64_t *out)
{
    const char *start = p->cur;
    int width = t->ptr ? 64 : tl_dtype_bits(t->dtype);
    if (take_word(p, "bits")) {
        if (!magnitude(p, out)) return false;
        return width == 64 || *out >> width == 0 ||
               fail_at(p, start, "more bits than %s has", tl_dtype_name(t->dtype));
    }
    if (t->ptr) return magnitude(p, out);
    if (tl_is_bool(t->dtype)) {
        *out = take_word(p, "true");
        return *out || take_word(p, "false") || fail_at(p, start, "true or false expected");
    }
    return tl_is_float(t->dtype) ? float_literal(p, t->dtype, out)
                                 : integer_literal(p, t->dtype, out);
}

static bool read_const(Parser *p, OpText *t)
{
    const char *after = p->cur;
    for (uint32_t i = 0; i < t->nattrs; i++) {
        if (tl_attr_form(t->attrs[i].id) != TL_FORM_CONST) continue;
        if (t->types.len != 1 || t->types.data[0]->kind != TL_TILE)
            return fail_at(p, t->at, "a constant has one result, a tile or scalar");
        p->cur = p->const_at;
        if (!const_literal(p, t->types.data[0], &t->attrs[i].u.bits)) return false;
        if (p->cur < p->end && is_literal(*p->cur))
            return fail_at(p, p->cur, "not a constant of this type");
    }
    p->cur = after;
    return true;
}

/* ---- ops ---- */

static bool result_names(Parser *p, OpText *t)
{
    if (peek(p) != '%') return true;
    do {
        const char *name = value_name(p);
        if (!name) return false;
        tl_vec_push(&p->module->arena, &t->names, name);
    } while (take(p, ','));
    return expect(p, '=');
}

/* After an op that takes and gives nothing, a name begins the next op. */
static bool operands(Parser *p, OpText *t)
{
    const TlOpInfo *info = tl_op_info(t->opcode);
    if (peek(p) != '%' || (info->nin == 0 && info->nout == 0)) return true;
    do {
        TlValue *v = value(p);
        if (!v) return false;
        tl_vec_push(&p->module->arena, &t->in, v);
    } while (take(p, ','));
    return true;
}

static bool result_types(Parser *p, OpText *t)
{
    if (t->names.len == 0) return true;
    if (!expect(p, ':')) return false;
    do {
        const TlType *ty = type(p);
        if (!ty) return false;
        tl_vec_push(&p->module->arena, &t->types, ty);
    } while (take(p, ','));
    return t->types.len == t->names.len ||
           fail_at(p, t->at, "%u results, %u types", t->names.len, t->types.len);
}

static bool opcode(Parser *p, TlOpcode *out)
{
    size_t n = word_length(p);
    if (n == 0) return fail_at(p, p->cur, "operation expected");
    if (!tl_opcode_parse(p->cur, n, out))
        return fail_at(p, p->cur, "unknown operation '%.*s'", (int)n, p->cur);
    p->cur += n;
    return true;
}

/* The op without its regions, appended to b; NULL on error. */
static TlOp *op_head(Parser *p, TlBlock *b)
{
    OpText t = {0};
    if (!result_names(p, &t)) return NULL;
    skip_space(p);
    t.at = p->cur;
    if (!opcode(p, &t.opcode) || !operands(p, &t) || !attributes(p, &t) || !result_types(p, &t) ||
        !read_const(p, &t) || !position(p, &t.loc))
        return NULL;
    int regions = tl_op_info(t.opcode)->nregions;
    if (regions < 0) regions = peek(p) == '(';
    TlBuilder at = {.fn = p->fn, .block = b, .loc = t.loc};
    TlOp *op = tl_op_new(&at, t.opcode, t.in.len, t.in.data, t.types.len, t.types.data,
                         (uint32_t)regions, t.nattrs, t.attrs);
    tl_map_put(&p->positions, (uint64_t)(uintptr_t)op, (uint64_t)(t.at - p->text));
    for (uint32_t i = 0; i < op->nout; i++)
        if (!define(p, t.at, t.names.data[i], op->out[i])) return NULL;
    return op;
}

/* ---- blocks ---- */

static bool open_block(Parser *p, TlBlock *b)
{
    if (b->parent && !arguments(p, b)) return false;
    if (take_word(p, "warps") && !i32(p, &b->warps)) return false;
    if (!b->parent && take_word(p, "stages") && !i32(p, &b->stages)) return false;
    b->kept = !b->parent && take_word(p, "kept");
    if (!b->parent && take_word(p, "sparing"))
        b->sparing = take_word(p, "behind") ? TL_SPARING_BEHIND_LOOPS : TL_SPARING_IN_LOOPS;
    return expect(p, '{');
}

static bool body(Parser *p, TlBlock *root)
{
    TlBlock *b = root;
    int depth = 1;
    if (!open_block(p, b)) return false;
    for (;;) {
        if (!take(p, '}')) {
            if (peek(p) == 0) return fail_at(p, p->cur, "'}' expected");
            TlOp *op = op_head(p, b);
            if (!op) return false;
            if (op->nregions == 0) continue;
            if (++depth > MAX_NESTING)
                return fail_at(p, p->cur, "more than %d regions in one another", MAX_NESTING);
            b = op->regions[0];
        } else {
            if (b == root) return true;
            TlBlock *next = tl_region_after(b);
            if (!next) {
                b = b->parent->block;
                depth--;
                continue;
            }
            b = next;
        }
        if (!open_block(p, b)) return false;
    }
}

/* ---- launch facts ---- */

static bool dim(Parser *p, TlDim *d)
{
    d->is_i64 = take_word(p, "i64");
    if (take_word(p, "dense")) d->kind = TILE_DIM_DENSE;
    else if (take_word(p, "const")) d->kind = TILE_DIM_CONST;
    else if (take_word(p, "sym")) d->kind = TILE_DIM_SYM;
    else if (take_word(p, "expr")) d->kind = TILE_DIM_EXPR;
    else return fail_at(p, p->cur, "const, sym, expr or dense expected");
    return d->kind == TILE_DIM_DENSE || integer(p, &d->value);
}

static bool param_dims(Parser *p, TlParam *q)
{
    do {
        if (q->rank == TL_MAX_VIEW_RANK)
            return fail_at(p, p->cur, "a view has at most %d axes", TL_MAX_VIEW_RANK);
        if (!dim(p, &q->extent[q->rank]) || !expect(p, ':') || !dim(p, &q->stride[q->rank]))
            return false;
        q->rank++;
    } while (take(p, ','));
    return expect(p, ']');
}

static bool info_param(Parser *p, TlKernelInfo *k)
{
    TlParam q = {0};
    if (!string(p, &q.name)) return false;
    if (take_word(p, "view")) q.kind = TILE_PARAM_VIEW;
    else if (take_word(p, "pointer")) q.kind = TILE_PARAM_POINTER;
    else if (take_word(p, "scalar")) q.kind = TILE_PARAM_SCALAR;
    else return fail_at(p, p->cur, "view, pointer or scalar expected");
    if (!const_dtype(p, &q.is_const, &q.dtype)) return false;
    if (take(p, '[') && !param_dims(p, &q)) return false;
    if (take_word(p, "of") && !string(p, &q.of)) return false;
    q.has_value = take(p, '=');
    if (q.has_value && !const_literal(p, tl_type_scalar(p->ctx, q.dtype), &q.value)) return false;
    if (!position(p, &q.loc)) return false;
    tl_vec_push(&p->module->arena, &k->params, q);
    return true;
}

static bool info_sym(Parser *p, TlKernelInfo *k)
{
    TlSym s = {0};
    if (!string(p, &s.name)) return false;
    s.is_stride = take_word(p, "stride");
    if (!s.is_stride && !take_word(p, "extent"))
        return fail_at(p, p->cur, "extent or stride expected");
    if (!u32(p, &s.param) || !expect(p, ',') || !u32(p, &s.axis)) return false;
    tl_vec_push(&p->module->arena, &k->syms, s);
    return true;
}

static bool hx_ins(Parser *p, tile_hx_ins *out)
{
    size_t n = word_length(p);
    for (uint32_t i = 0; i < TILE_HX_COUNT; i++) {
        const char *name = tl_hx_name(i);
        if (strlen(name) != n || memcmp(name, p->cur, n) != 0) continue;
        p->cur += n;
        out->op = i;
        return !tl_hx_has_imm(i) || integer(p, &out->imm);
    }
    return fail_at(p, p->cur, "launch-time instruction expected");
}

static bool info_expr(Parser *p, TlKernelInfo *k)
{
    TlHostExpr e = {0};
    e.is_float = take_word(p, "float");
    if (!e.is_float && !take_word(p, "int")) return fail_at(p, p->cur, "int or float expected");
    if (!string(p, &e.text) || !expect(p, '[')) return false;
    if (!take(p, ']')) {
        do {
            tile_hx_ins x = {0};
            if (!hx_ins(p, &x)) return false;
            tl_vec_push(&p->module->arena, &e.code, x);
        } while (take(p, ','));
        if (!expect(p, ']')) return false;
    }
    if (!position(p, &e.loc)) return false;
    tl_vec_push(&p->module->arena, &k->exprs, e);
    return true;
}

static bool info_const(Parser *p, TlKernelInfo *k)
{
    TlConstBinding c = {0};
    if (!string(p, &c.name) || !string(p, &c.value)) return false;
    tl_vec_push(&p->module->arena, &k->consts, c);
    return true;
}

static bool info_alias(Parser *p, TlKernelInfo *k)
{
    tile_image_alias a = {0};
    if (!u32(p, &a.a) || !expect(p, ',') || !u32(p, &a.b)) return false;
    tl_vec_push(&p->module->arena, &k->aliases, a);
    return true;
}

#define INDEX_LIST(name, field)                              \
    static bool name(Parser *p, TlKernelInfo *k)             \
    {                                                        \
        do {                                                 \
            uint32_t i = 0;                                  \
            if (!u32(p, &i)) return false;                   \
            tl_vec_push(&p->module->arena, &k->field, i);    \
        } while (take(p, ','));                              \
        return true;                                         \
    }
INDEX_LIST(info_grid, grid)
INDEX_LIST(info_require, requires_)
INDEX_LIST(info_assume, assumes)
INDEX_LIST(info_key, keys)

static bool info_tuned(Parser *p, TlKernelInfo *k)
{
    if (!expect(p, '[')) return false;
    for (uint32_t i = 0; i < k->keys.len; i++) {
        int32_t bucket = 0;
        if ((i && !expect(p, ',')) || !i32(p, &bucket)) return false;
        tl_vec_push(&p->module->arena, &k->buckets, bucket);
    }
    k->ntuned++;
    return expect(p, ']');
}

static bool info_doc(Parser *p, TlKernelInfo *k) { return string(p, &k->doc); }
static bool info_group(Parser *p, TlKernelInfo *k) { return i32(p, &k->group); }
static bool info_warps(Parser *p, TlKernelInfo *k) { return i32(p, &k->warps); }
static bool info_stages(Parser *p, TlKernelInfo *k) { return i32(p, &k->stages); }
static bool info_maxreg(Parser *p, TlKernelInfo *k) { return i32(p, &k->maxreg); }
static bool info_persistent(Parser *p, TlKernelInfo *k)
{
    (void)p;
    return k->persistent = true;
}

static bool info_cluster(Parser *p, TlKernelInfo *k)
{
    const char *at = p->cur;
    if (!i32(p, &k->cluster) || !expect(p, ',') || !i32(p, &k->cluster_axis)) return false;
    return (k->cluster >= 1 && k->cluster <= TL_MAX_CLUSTER && k->cluster_axis >= 0 &&
            k->cluster_axis < TILE_MAX_GRID) ||
           fail_at(p, at, "a size of a cluster and an axis of the grid expected");
}

/* What is promised is resolved behind the block, when all parameters are known. */
static bool info_aligned(Parser *p, TlKernelInfo *k)
{
    p->form = NULL;
    k->aligned = true;
    skip_space(p);
    const char *at = p->cur;
    if (at == p->end || *at != '"') return true;
    return string(p, &p->form) &&
           (tl_promise_is_well_formed(p->form) || fail_at(p, at, "promises expected"));
}

static void resolve_form(const Parser *p, TlKernelInfo *k)
{
    TlArena *arena = &p->module->arena;
    if (!k->aligned) return;
    k->promise = p->form ? tl_promise_read(k, p->form, arena) : tl_promise_all(k, arena);
}

static const struct {
    const char *word;
    bool (*parse)(Parser *p, TlKernelInfo *k);
} info_lines[] = {
    {"doc", info_doc},       {"param", info_param},     {"sym", info_sym},
    {"expr", info_expr},     {"const", info_const},     {"grid", info_grid},
    {"group", info_group},   {"require", info_require}, {"assume", info_assume},
    {"alias", info_alias},   {"warps", info_warps},     {"stages", info_stages},
    {"maxreg", info_maxreg}, {"aligned", info_aligned}, {"key", info_key},
    {"tuned", info_tuned},   {"persistent", info_persistent},
    {"cluster", info_cluster},
};

static bool info_line(Parser *p, TlKernelInfo *k)
{
    for (size_t i = 0; i < sizeof info_lines / sizeof *info_lines; i++)
        if (take_word(p, info_lines[i].word)) return info_lines[i].parse(p, k);
    return fail_at(p, p->cur, "line of an info block expected");
}

static bool info(Parser *p)
{
    if (!take_word(p, "info")) return true;
    TlKernelInfo *k = TL_NEW(&p->module->arena, TlKernelInfo);
    k->group = -1;
    if (!expect(p, '{')) return false;
    while (!take(p, '}'))
        if (!info_line(p, k)) return false;
    resolve_form(p, k);
    p->fn->info = k;
    return true;
}

/* ---- files and functions ---- */

/* A known path keeps its source, so that a text made in this context finds the user's lines. */
static uint32_t source_of(Parser *p, const char *path)
{
    TlDiags *d = &p->ctx->diags;
    for (uint32_t i = 0; i < d->sources.len; i++)
        if (strcmp(d->sources.data[i].path, path) == 0) return i;
    return tl_diags_source(d, path, "", 0);
}

static bool files(Parser *p)
{
    p->files.len = 0;
    do {
        const char *path;
        if (!string(p, &path)) return false;
        tl_vec_push(&p->module->arena, &p->files, source_of(p, path));
    } while (take(p, ','));
    return true;
}

/* layouts #0 "...", #1 "...", numbered from 0 on */
static bool layouts(Parser *p)
{
    p->layouts.len = 0;
    do {
        skip_space(p);
        const char *start = p->cur;
        uint32_t n = 0;
        if (!expect(p, '#') || !u32(p, &n))
            return false;
        if (n != p->layouts.len)
            return fail_at(p, start, "layout #%u is expected here", p->layouts.len);
        const TlLayout *l = layout_text(p);
        if (!l)
            return false;
        tl_vec_push(&p->module->arena, &p->layouts, l);
    } while (take(p, ','));
    return true;
}

static bool kernel_name(Parser *p, const char **out)
{
    if (!expect(p, '@')) return false;
    if (peek(p) == '"') return string(p, out);
    size_t n = word_length(p);
    if (n == 0) return fail_at(p, p->cur, "name of the kernel expected");
    *out = tl_intern(&p->ctx->strings, p->cur, n);
    p->cur += n;
    return true;
}

static bool float_mode(Parser *p)
{
    if (!take_word(p, "fp")) return true;
    p->fn->ring = take_word(p, "ring");
    return p->fn->ring || fail_at(p, p->cur, "'ring' expected");
}

static bool kernel(Parser *p)
{
    const char *name;
    if (!kernel_name(p, &name)) return false;
    p->fn = tl_fn_new(p->module, name, (TlLoc){0});
    tl_map_init(&p->values, &p->module->arena);
    return arguments(p, p->fn->body) && position(p, &p->fn->loc) && info(p) && float_mode(p) &&
           body(p, p->fn->body);
}

static bool module(Parser *p)
{
    while (peek(p)) {
        if (take_word(p, "files")) {
            if (!files(p)) return false;
        } else if (take_word(p, "layouts")) {
            if (!layouts(p)) return false;
        } else if (take_word(p, "kernel")) {
            if (!kernel(p)) return false;
        } else {
            return fail_at(p, p->cur, "'kernel', 'files' or 'layouts' expected");
        }
    }
    return p->cur == p->end || fail_at(p, p->cur, "NUL in the text");
}

static void report_fault(void *user, const TlFn *fn, const TlOp *op, const char *text)
{
    Parser *p = user;
    uint64_t offset = 0;
    if (op) tl_map_get(&p->positions, (uint64_t)(uintptr_t)op, &offset);
    p->failed = true;
    tl_diag(&p->ctx->diags, op ? loc_at(p, p->text + offset) : (TlLoc){0}, TL_E0802, fn->name,
            text);
}

static TlModule *parse_text(TlCtx *ctx, uint32_t source, const char *text, size_t size)
{
    Parser p = {.ctx = ctx, .source = source, .text = text, .cur = text, .end = text + size};
    p.module = tl_module_new(ctx);
    tl_map_init(&p.positions, &p.module->arena);
    bool ok = module(&p);
    for (uint32_t i = 0; ok && i < p.module->fns.len; i++)
        tl_verify_with(p.module->fns.data[i], report_fault, &p);
    if (!p.failed) return p.module;
    tl_module_free(p.module);
    return NULL;
}

TlModule *tl_parse_module(TlCtx *ctx, uint32_t source)
{
    TL_ASSERT(source < ctx->diags.sources.len, "source %u", source);
    TlSource s = ctx->diags.sources.data[source];
    return parse_text(ctx, source, s.text, s.size);
}

static TlModule *clone_through(const TlModule *m, TlArena *scratch)
{
    TlSbuf text;
    tl_sbuf_init(&text, scratch);
    tl_print_module(&text, m);
    TlModule *copy = parse_text(m->ctx, 0, text.text, text.len);
    TL_ASSERT(copy, "a module does not parse back");
    return copy;
}

TlModule *tl_module_clone(const TlModule *m)
{
    TlArena scratch;
    TlModule *volatile copy = NULL;
    tl_arena_init(&scratch, m->ctx->perm.alloc);
    TlGuard g;
    if (TL_GUARD(&g)) {
        copy = clone_through(m, &scratch);
        tl_guard_pop(&g);
    }
    tl_arena_free(&scratch);
    if (g.fault) tl_fault(g.fault, "%s", g.text);
    return copy;
}
