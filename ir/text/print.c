/* The text form of tile IR, written. One op per line:
 *
 *     files "softmax.tile"
 *     kernel @softmax(%x: view<const f32, 2>, %n: i32) @3:8 info { ... } {
 *       %c = const {value = 0} : i32 @5:12
 *       %sum = for %c, %n, %c {unroll = 4} : f32 @6:5 (%i: i32, %acc: f32) {
 *         yield %acc
 *       }
 *       return
 *     }
 *
 * results = op operands {attributes} : result types @position (region arguments) { region } ...
 * Values print by their hint when they have one (%x, then %x.1, %x.2), else by number in order of
 * definition, so that the text of a parsed text is equal. Layouts stand above, `layouts #0 "..."`,
 * types say `#0`. Positions are @line:col or @file:line:col with file an index into the `files`
 * line. parse.c reads the same; IR.md has the grammar. */
#include "ir/form.h"
#include "ir/layout/layout.h"
#include "ir/numeric.h"
#include "ir/remark.h"
#include "ir/support/ascii.h"
#include "ir/support/number.h"
#include "ir/text/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INDENT = 24 }; /* levels; deeper ladders stay at this margin */

struct TlPrinter {
    TlSbuf *out;
    const TlModule *module;
    TlPrintNote *note; /* NULL: there are none */
    void *user;
    uint32_t *file_index; /* by source: its place in the `files` line + 1; 0 = not used */
    uint32_t nsources;
    const char **names; /* by value id, of the current function */
    uint32_t nvalues;
    TlMap layouts; /* number of each layout in the text */
    TL_VEC(const TlLayout *) layout_list;
};
typedef struct TlPrinter Printer;

/* ---- small pieces ---- */

static void put_string(TlSbuf *out, const char *s)
{
    tl_sbuf_puts(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') tl_sbuf_putf(out, "\\%c", c);
        else if (c == '\n') tl_sbuf_puts(out, "\\n");
        else if (c == '\t') tl_sbuf_puts(out, "\\t");
        else if (c < 32 || c == 127) tl_sbuf_putf(out, "\\x%02x", c);
        else tl_sbuf_put(out, s, 1);
    }
    tl_sbuf_puts(out, "\"");
}

static bool is_ident(const char *s)
{
    if (!s || !(tl_is_alpha((unsigned char)*s) || *s == '_')) return false;
    for (; *s; s++)
        if (!tl_is_alnum((unsigned char)*s) && *s != '_') return false;
    return true;
}

static void put_loc(Printer *p, TlLoc loc)
{
    if (loc.line == 0 || loc.file >= p->nsources) return;
    uint32_t file = p->file_index[loc.file] - 1;
    if (file) tl_sbuf_putf(p->out, " @%u:%u:%u", file, loc.line, loc.col);
    else tl_sbuf_putf(p->out, " @%u:%u", loc.line, loc.col);
}

double tl_text_to_double(const char *text, size_t length)
{
    char buf[128];
    if (length >= sizeof buf) length = sizeof buf - 1;
    memcpy(buf, text, length);
    buf[length] = 0;
    return tl_number_read(buf, NULL);
}

/* The shortest decimal that reads back as the same bits; NaNs other than the usual one as bits. */
static void put_float(TlSbuf *out, TlDtype d, uint64_t bits)
{
    double x = tl_bits_to_double(d, bits);
    for (int digits = 1; digits <= 17; digits++) {
        char buf[64];
        tl_number_format(buf, sizeof buf, "%.*g", digits, x);
        if (tl_bits_from_double(d, tl_number_read(buf, NULL)) != bits) continue;
        tl_sbuf_puts(out, buf);
        if (!strpbrk(buf, ".eni")) tl_sbuf_puts(out, ".0");
        return;
    }
    tl_sbuf_putf(out, "bits 0x%llx", (unsigned long long)bits);
}

static void put_const(TlSbuf *out, const TlType *type, uint64_t bits)
{
    TL_ASSERT(type->kind == TL_TILE, "a constant of kind %d", (int)type->kind);
    TlDtype d = type->dtype;
    if (type->ptr) tl_sbuf_putf(out, "%llu", (unsigned long long)bits);
    else if (tl_is_bool(d)) tl_sbuf_puts(out, bits ? "true" : "false");
    else if (tl_is_float(d)) put_float(out, d, bits);
    else if (tl_is_signed(d)) tl_sbuf_putf(out, "%lld", (long long)tl_bits_to_int(d, bits));
    else tl_sbuf_putf(out, "%llu", (unsigned long long)bits);
}

/* ---- attributes ---- */

static void put_axes(TlSbuf *out, const TlAttr *a)
{
    tl_sbuf_puts(out, "[");
    for (uint32_t i = 0; i < a->n; i++) {
        const TlAxis *x = &a->u.axes[i];
        if (i) tl_sbuf_puts(out, ", ");
        if (x->kind == TL_AXIS_SCALAR) tl_sbuf_puts(out, "i");
        else if (x->kind == TL_AXIS_TILE) tl_sbuf_puts(out, "t");
        else if (x->step == 1) tl_sbuf_putf(out, "%d", (int)x->width);
        else tl_sbuf_putf(out, "%d:%d", (int)x->width, (int)x->step);
    }
    tl_sbuf_puts(out, "]");
}

static void put_ints(TlSbuf *out, const TlAttr *a)
{
    tl_sbuf_puts(out, "[");
    for (uint32_t i = 0; i < a->n; i++)
        tl_sbuf_putf(out, i ? ", %lld" : "%lld", (long long)a->u.ints[i]);
    tl_sbuf_puts(out, "]");
}

static void put_attr(TlSbuf *out, const TlOp *op, const TlAttr *a)
{
    TlAttrForm form = tl_attr_form(a->id);
    tl_sbuf_puts(out, tl_attr_name(a->id));
    if (form == TL_FORM_FLAG) return;
    tl_sbuf_puts(out, " = ");
    switch (form) {
    case TL_FORM_FLAG: break;
    case TL_FORM_INT: tl_sbuf_putf(out, "%lld", (long long)a->u.i); break;
    case TL_FORM_SPAN:
        tl_sbuf_putf(out, "%lld", (long long)a->u.i);
        if (a->n) tl_sbuf_putf(out, ":%u", a->n);
        break;
    case TL_FORM_STR: put_string(out, a->u.s); break;
    case TL_FORM_INTS: put_ints(out, a); break;
    case TL_FORM_AXES: put_axes(out, a); break;
    case TL_FORM_CONST:
        if (op->nout == 1) put_const(out, op->out[0]->type, a->u.bits);
        else tl_sbuf_putf(out, "bits 0x%llx", (unsigned long long)a->u.bits);
        break;
    case TL_FORM_COMBINE:
    case TL_FORM_RMW:
    case TL_FORM_ORDER:
    case TL_FORM_SCOPE:
    case TL_FORM_CACHE:
    case TL_FORM_EVICT:
    case TL_FORM_PRECISION:
    case TL_FORM_ROUND:
    case TL_FORM_APPROX:
    case TL_FORM_WAY: {
        const char *name = tl_enum_name(form, a->u.i);
        tl_sbuf_puts(out, name ? name : "?");
    }
    }
}

static void put_attrs(TlSbuf *out, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nattrs; i++) {
        tl_sbuf_puts(out, i ? ", " : " {");
        put_attr(out, op, &op->attrs[i]);
    }
    if (op->nattrs) tl_sbuf_puts(out, "}");
}

/* ---- values ---- */

typedef struct Namer {
    Printer *p;
    TlIntern strings;
    TlMap counts; /* hint to the number of values that have it */
    uint32_t next;
} Namer;

static void name_value(Namer *n, const TlValue *v)
{
    TlArena *arena = n->p->out->arena;
    if (v->id >= n->p->nvalues) return;
    const char **slot = &n->p->names[v->id];
    if (!is_ident(v->name)) {
        *slot = tl_format(arena, "%u", n->next++);
        return;
    }
    const char *name = tl_intern_str(&n->strings, v->name);
    uint64_t before = 0;
    tl_map_get(&n->counts, (uint64_t)(uintptr_t)name, &before);
    tl_map_put(&n->counts, (uint64_t)(uintptr_t)name, before + 1);
    *slot = before ? tl_format(arena, "%s.%u", name, (unsigned)before) : name;
}

static void name_values(Printer *p, const TlFn *fn)
{
    TlArena *arena = p->out->arena;
    p->nvalues = fn->nvalues;
    p->names = TL_NEW_ARRAY(arena, const char *, fn->nvalues);
    Namer n = {.p = p};
    tl_intern_init(&n.strings, arena);
    tl_map_init(&n.counts, arena);
    for (uint32_t i = 0; i < fn->body->nargs; i++) name_value(&n, fn->body->args[i]);
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        for (uint32_t i = 0; i < op->nout; i++) name_value(&n, op->out[i]);
        for (uint32_t r = 0; r < op->nregions; r++)
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
                name_value(&n, op->regions[r]->args[i]);
    }
}

void tl_print_value(const TlPrinter *p, TlSbuf *out, const TlValue *v)
{
    if (!v) tl_sbuf_puts(out, "%<null>");
    else if (v->id < p->nvalues && p->names[v->id]) tl_sbuf_putf(out, "%%%s", p->names[v->id]);
    else tl_sbuf_putf(out, "%%<%u>", v->id); /* of another function: the verifier reports it */
}

static void put_value(Printer *p, const TlValue *v)
{
    tl_print_value(p, p->out, v);
}

static void put_args(Printer *p, const TlBlock *b)
{
    tl_sbuf_puts(p->out, "(");
    for (uint32_t i = 0; i < b->nargs; i++) {
        if (i) tl_sbuf_puts(p->out, ", ");
        put_value(p, b->args[i]);
        tl_sbuf_puts(p->out, ": ");
        tl_type_print_numbered(p->out, b->args[i]->type, &p->layouts);
    }
    tl_sbuf_puts(p->out, ")");
}

/* ---- ops and blocks ---- */

static void put_op(Printer *p, const TlOp *op)
{
    TlSbuf *out = p->out;
    for (uint32_t i = 0; i < op->nout; i++) {
        if (i) tl_sbuf_puts(out, ", ");
        put_value(p, op->out[i]);
    }
    if (op->nout) tl_sbuf_puts(out, " = ");
    tl_sbuf_puts(out, tl_op_info(op->opcode)->text);
    for (uint32_t i = 0; i < op->nin; i++) {
        tl_sbuf_puts(out, i ? ", " : " ");
        put_value(p, op->in[i].value);
    }
    put_attrs(out, op);
    for (uint32_t i = 0; i < op->nout; i++) {
        tl_sbuf_puts(out, i ? ", " : " : ");
        tl_type_print_numbered(out, op->out[i]->type, &p->layouts);
    }
    put_loc(p, op->loc);
}

static void put_open(Printer *p, const TlBlock *b)
{
    if (b->parent) {
        tl_sbuf_puts(p->out, " ");
        put_args(p, b);
    }
    if (b->warps) tl_sbuf_putf(p->out, " warps %d", (int)b->warps);
    if (b->stages) tl_sbuf_putf(p->out, " stages %d", (int)b->stages);
    if (b->kept) tl_sbuf_puts(p->out, " kept");
    if (b->sparing) tl_sbuf_puts(p->out, " sparing");
    if (b->sparing == TL_SPARING_BEHIND_LOOPS) tl_sbuf_puts(p->out, " behind");
    tl_sbuf_puts(p->out, " {");
    if (b->parent && b == b->parent->regions[0]) tl_remark_print(p->out, b->parent);
    tl_sbuf_puts(p->out, "\n");
}

static void put_margin(Printer *p, int depth)
{
    for (int i = 0; i < depth && i < MAX_INDENT; i++) tl_sbuf_puts(p->out, "  ");
}

/* Each line of a note is a comment before the op; op NULL: at the beginning of a function. */
static void put_notes(Printer *p, const TlFn *fn, const TlOp *op, int depth)
{
    if (!p->note)
        return;
    TlSbuf lines;
    tl_sbuf_init(&lines, p->out->arena);
    p->note(p->user, p, fn, op, &lines);
    for (const char *line = lines.text; line && *line;) {
        size_t n = strcspn(line, "\n");
        put_margin(p, depth);
        tl_sbuf_putf(p->out, "// %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static const TlBlock *next_region(const TlBlock *b)
{
    const TlOp *op = b->parent;
    for (uint32_t r = 0; r + 1 < op->nregions; r++)
        if (op->regions[r] == b) return op->regions[r + 1];
    return NULL;
}

/* Without recursion: else-if ladders nest thousands deep. */
static void put_block(Printer *p, const TlBlock *root)
{
    const TlBlock *b = root;
    const TlOp *op = b->first;
    int depth = 1;
    put_open(p, b);
    put_notes(p, b->fn, NULL, depth);
    for (;;) {
        if (op) {
            put_notes(p, b->fn, op, depth);
            put_margin(p, depth);
            put_op(p, op);
            if (op->nregions == 0) {
                tl_remark_print(p->out, op);
                tl_sbuf_puts(p->out, "\n");
                op = op->next;
                continue;
            }
            b = op->regions[0];
        } else {
            put_margin(p, --depth);
            tl_sbuf_puts(p->out, "}");
            const TlBlock *next = b == root ? NULL : next_region(b);
            if (!next) {
                tl_sbuf_puts(p->out, "\n");
                if (b == root) return;
                op = b->parent->next;
                b = b->parent->block;
                continue;
            }
            b = next;
        }
        put_open(p, b);
        op = b->first;
        depth++;
    }
}

/* ---- launch facts ---- */

typedef struct HxInfo {
    const char *name;
    uint8_t pops, imm;
} HxInfo;
static const HxInfo hx[TILE_HX_COUNT] = {
    [TILE_HX_CONST] = {"const", 0, 1},   [TILE_HX_SYM] = {"sym", 0, 1},
    [TILE_HX_ARG] = {"arg", 0, 1},       [TILE_HX_SMS] = {"sms", 0, 0},
    [TILE_HX_ADD] = {"add", 2, 0},       [TILE_HX_SUB] = {"sub", 2, 0},
    [TILE_HX_MUL] = {"mul", 2, 0},       [TILE_HX_DIV] = {"div", 2, 0},
    [TILE_HX_REM] = {"rem", 2, 0},       [TILE_HX_CDIV] = {"cdiv", 2, 0},
    [TILE_HX_MIN] = {"min", 2, 0},       [TILE_HX_MAX] = {"max", 2, 0},
    [TILE_HX_NEG] = {"neg", 1, 0},       [TILE_HX_ABS] = {"abs", 1, 0},
    [TILE_HX_NOT] = {"not", 1, 0},       [TILE_HX_LT] = {"lt", 2, 0},
    [TILE_HX_LE] = {"le", 2, 0},         [TILE_HX_EQ] = {"eq", 2, 0},
    [TILE_HX_NE] = {"ne", 2, 0},         [TILE_HX_AND] = {"and", 2, 0},
    [TILE_HX_OR] = {"or", 2, 0},         [TILE_HX_BAND] = {"band", 2, 0},
    [TILE_HX_BOR] = {"bor", 2, 0},       [TILE_HX_BXOR] = {"bxor", 2, 0},
    [TILE_HX_SHL] = {"shl", 2, 0},       [TILE_HX_SHR] = {"shr", 2, 0},
    [TILE_HX_SELECT] = {"select", 3, 0}, [TILE_HX_I2F] = {"i2f", 1, 0},
    [TILE_HX_F2I] = {"f2i", 1, 0},       [TILE_HX_FADD] = {"fadd", 2, 0},
    [TILE_HX_FSUB] = {"fsub", 2, 0},     [TILE_HX_FMUL] = {"fmul", 2, 0},
    [TILE_HX_FDIV] = {"fdiv", 2, 0},     [TILE_HX_FNEG] = {"fneg", 1, 0},
    [TILE_HX_FMIN] = {"fmin", 2, 0},     [TILE_HX_FMAX] = {"fmax", 2, 0},
    [TILE_HX_FLT] = {"flt", 2, 0},       [TILE_HX_FLE] = {"fle", 2, 0},
    [TILE_HX_FEQ] = {"feq", 2, 0},       [TILE_HX_FNE] = {"fne", 2, 0},
};

const char *tl_hx_name(uint32_t op) { return op < TILE_HX_COUNT ? hx[op].name : NULL; }
bool tl_hx_has_imm(uint32_t op) { return op < TILE_HX_COUNT && hx[op].imm; }
int tl_hx_pops(uint32_t op) { return op < TILE_HX_COUNT ? hx[op].pops : 0; }

static void put_dim(TlSbuf *out, const TlDim *d)
{
    if (d->is_i64) tl_sbuf_puts(out, "i64 ");
    switch (d->kind) {
    case TILE_DIM_CONST: tl_sbuf_putf(out, "const %lld", (long long)d->value); break;
    case TILE_DIM_SYM: tl_sbuf_putf(out, "sym %lld", (long long)d->value); break;
    case TILE_DIM_EXPR: tl_sbuf_putf(out, "expr %lld", (long long)d->value); break;
    case TILE_DIM_DENSE: tl_sbuf_puts(out, "dense"); break;
    }
}

static void put_param(Printer *p, const TlParam *q)
{
    static const char *const kinds[] = {[TILE_PARAM_VIEW] = "view",
                                        [TILE_PARAM_POINTER] = "pointer",
                                        [TILE_PARAM_SCALAR] = "scalar"};
    tl_sbuf_puts(p->out, "    param ");
    put_string(p->out, q->name);
    tl_sbuf_putf(p->out, " %s %s%s", kinds[q->kind], q->is_const ? "const " : "",
                 tl_dtype_name(q->dtype));
    for (uint32_t i = 0; i < q->rank; i++) {
        tl_sbuf_puts(p->out, i ? ", " : " [");
        put_dim(p->out, &q->extent[i]);
        tl_sbuf_puts(p->out, " : ");
        put_dim(p->out, &q->stride[i]);
    }
    if (q->rank) tl_sbuf_puts(p->out, "]");
    if (q->of) {
        tl_sbuf_puts(p->out, " of ");
        put_string(p->out, q->of);
    }
    if (q->has_value) {
        tl_sbuf_puts(p->out, " = ");
        put_const(p->out, tl_type_scalar(p->module->ctx, q->dtype), q->value);
    }
    put_loc(p, q->loc);
    tl_sbuf_puts(p->out, "\n");
}

static void put_expr(Printer *p, const TlHostExpr *e)
{
    tl_sbuf_putf(p->out, "    expr %s ", e->is_float ? "float" : "int");
    put_string(p->out, e->text ? e->text : "");
    for (uint32_t i = 0; i < e->code.len; i++) {
        const tile_hx_ins *x = &e->code.data[i];
        tl_sbuf_puts(p->out, i ? ", " : " [");
        const char *name = tl_hx_name(x->op);
        tl_sbuf_puts(p->out, name ? name : "?");
        if (tl_hx_has_imm(x->op)) tl_sbuf_putf(p->out, " %lld", (long long)x->imm);
    }
    tl_sbuf_puts(p->out, e->code.len ? "]" : " []");
    put_loc(p, e->loc);
    tl_sbuf_puts(p->out, "\n");
}

static void put_indices(Printer *p, const char *word, const uint32_t *data, uint32_t n)
{
    if (n == 0) return;
    tl_sbuf_putf(p->out, "    %s ", word);
    for (uint32_t i = 0; i < n; i++) tl_sbuf_putf(p->out, i ? ", %u" : "%u", data[i]);
    tl_sbuf_puts(p->out, "\n");
}

static void put_number(Printer *p, const char *word, int32_t n)
{
    if (n) tl_sbuf_putf(p->out, "    %s %d\n", word, (int)n);
}

/* "tuned [4, 12, -1]" */
static void put_bucket(Printer *p, const TlKernelInfo *k, uint32_t i)
{
    tl_sbuf_puts(p->out, "    tuned [");
    for (uint32_t j = 0; j < k->keys.len; j++)
        tl_sbuf_putf(p->out, j ? ", %d" : "%d", (int)k->buckets.data[i * k->keys.len + j]);
    tl_sbuf_puts(p->out, "]\n");
}

/* "aligned", or what else is promised */
static void put_form(Printer *p, const TlKernelInfo *k)
{
    const char *form = tl_form_text(k, p->out->arena);
    tl_sbuf_puts(p->out, "    aligned");
    if (strcmp(form, TL_FORM_ALIGNED) != 0) {
        tl_sbuf_puts(p->out, " ");
        put_string(p->out, form);
    }
    tl_sbuf_puts(p->out, "\n");
}

static void put_info(Printer *p, const TlKernelInfo *k)
{
    TlSbuf *out = p->out;
    tl_sbuf_puts(out, " info {\n");
    if (k->doc) {
        tl_sbuf_puts(out, "    doc ");
        put_string(out, k->doc);
        tl_sbuf_puts(out, "\n");
    }
    for (uint32_t i = 0; i < k->params.len; i++) put_param(p, &k->params.data[i]);
    for (uint32_t i = 0; i < k->syms.len; i++) {
        const TlSym *s = &k->syms.data[i];
        tl_sbuf_puts(out, "    sym ");
        put_string(out, s->name);
        tl_sbuf_putf(out, " %s %u, %u\n", s->is_stride ? "stride" : "extent", s->param, s->axis);
    }
    for (uint32_t i = 0; i < k->exprs.len; i++) put_expr(p, &k->exprs.data[i]);
    for (uint32_t i = 0; i < k->consts.len; i++) {
        tl_sbuf_puts(out, "    const ");
        put_string(out, k->consts.data[i].name);
        tl_sbuf_puts(out, " ");
        put_string(out, k->consts.data[i].value);
        tl_sbuf_puts(out, "\n");
    }
    put_indices(p, "grid", k->grid.data, k->grid.len);
    if (k->group >= 0) tl_sbuf_putf(out, "    group %d\n", (int)k->group);
    put_indices(p, "require", k->requires_.data, k->requires_.len);
    put_indices(p, "assume", k->assumes.data, k->assumes.len);
    for (uint32_t i = 0; i < k->aliases.len; i++)
        tl_sbuf_putf(out, "    alias %u, %u\n", k->aliases.data[i].a, k->aliases.data[i].b);
    put_indices(p, "key", k->keys.data, k->keys.len);
    for (uint32_t i = 0; i < k->ntuned; i++) put_bucket(p, k, i);
    put_number(p, "warps", k->warps);
    put_number(p, "stages", k->stages);
    put_number(p, "maxreg", k->maxreg);
    if (k->cluster) tl_sbuf_putf(out, "    cluster %d, %d\n", k->cluster, k->cluster_axis);
    if (k->persistent) tl_sbuf_puts(out, "    persistent\n");
    if (k->aligned) put_form(p, k);
    tl_sbuf_puts(out, "  }");
}

/* ---- files and functions ---- */

static void use_file(Printer *p, TlLoc loc)
{
    if (loc.line && loc.file < p->nsources) p->file_index[loc.file] = 1;
}

static void use_files_of(Printer *p, const TlFn *fn)
{
    use_file(p, fn->loc);
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) use_file(p, op->loc);
    if (!fn->info) return;
    for (uint32_t i = 0; i < fn->info->params.len; i++) use_file(p, fn->info->params.data[i].loc);
    for (uint32_t i = 0; i < fn->info->exprs.len; i++) use_file(p, fn->info->exprs.data[i].loc);
}

static void use_layouts_of(Printer *p, TlValue *const *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const TlLayout *l = list[i]->type->layout;
        if (!l || tl_map_get(&p->layouts, (uint64_t)(uintptr_t)l, NULL))
            continue;
        tl_map_put(&p->layouts, (uint64_t)(uintptr_t)l, p->layout_list.len);
        tl_vec_push(p->out->arena, &p->layout_list, l);
    }
}

static void use_what_is_in(Printer *p, const TlFn *fn)
{
    use_files_of(p, fn);
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        use_layouts_of(p, op->out, op->nout);
        for (uint32_t r = 0; r < op->nregions; r++)
            use_layouts_of(p, op->regions[r]->args, op->regions[r]->nargs);
    }
}

static Printer printer_new(TlSbuf *out, const TlModule *m)
{
    Printer p = {.out = out, .module = m, .nsources = m->ctx->diags.sources.len};
    p.file_index = TL_NEW_ARRAY(out->arena, uint32_t, p.nsources);
    tl_map_init(&p.layouts, out->arena);
    return p;
}

static void put_files(Printer *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->nsources; i++) {
        if (!p->file_index[i]) continue;
        p->file_index[i] = ++n;
        tl_sbuf_puts(p->out, n == 1 ? "files " : ", ");
        put_string(p->out, p->module->ctx->diags.sources.data[i].path);
    }
    if (n) tl_sbuf_puts(p->out, "\n");
}

static void put_layouts(Printer *p)
{
    for (uint32_t i = 0; i < p->layout_list.len; i++) {
        tl_sbuf_putf(p->out, "%s#%u \"", i ? ",\n        " : "layouts ", i);
        tl_layout_print(p->out, p->layout_list.data[i]);
        tl_sbuf_puts(p->out, "\"");
    }
    if (p->layout_list.len)
        tl_sbuf_puts(p->out, "\n");
}

static void put_fn(Printer *p, const TlFn *fn)
{
    name_values(p, fn);
    tl_sbuf_puts(p->out, "kernel @");
    if (is_ident(fn->name)) tl_sbuf_puts(p->out, fn->name);
    else put_string(p->out, fn->name);
    put_args(p, fn->body);
    put_loc(p, fn->loc);
    if (fn->info) put_info(p, fn->info);
    if (fn->ring) tl_sbuf_puts(p->out, " fp ring");
    put_block(p, fn->body);
}

void tl_print_module(TlSbuf *out, const TlModule *m)
{
    tl_print_module_with(out, m, NULL, NULL);
}

void tl_print_module_with(TlSbuf *out, const TlModule *m, TlPrintNote *note, void *user)
{
    TL_ASSERT(m && m->ctx, "no module to print");
    Printer p = printer_new(out, m);
    p.note = note;
    p.user = user;
    for (uint32_t i = 0; i < m->fns.len; i++)
        use_what_is_in(&p, m->fns.data[i]);
    put_files(&p);
    put_layouts(&p);
    for (uint32_t i = 0; i < m->fns.len; i++) {
        if (i) tl_sbuf_puts(out, "\n");
        put_fn(&p, m->fns.data[i]);
    }
}
