/* frontend.h: checking a program, choosing a kernel's instances by its constants, lowering them. */
#include "frontend/sema.h"
#include "ir/support/number.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- check ---- */

static void check_assert(TlSema *s, const TlItem *item, TlMod *mod)
{
    TlStmt st = {.kind = TL_ST_ASSERT, .loc = item->loc};
    TlFrame frame = {.mod = mod};
    st.args.data = item->args.data, st.args.len = item->args.len, st.args.cap = item->args.cap;
    s->frame = &frame;
    tl_stmt(s, &st);
    s->frame = NULL;
}

static void check_const(TlSema *s, TlDef *def)
{
    TlFrame frame = {.mod = def->mod};
    TlExpr name = {
        .kind = TL_EX_NAME, .loc = def->item->loc, .begin = def->item->loc, .end = def->item->loc};
    name.u.name = def->item->name;
    s->frame = &frame;
    tl_eval(s, &name);
    s->frame = NULL;
}

static void check_def(TlSema *s, TlDef *def)
{
    TlFrame frame = {.mod = def->mod};
    TlTy ty;
    s->steps = 0;
    s->exhausted = false;
    switch (def->item->kind) {
    case TL_IT_IMPORT: return;
    case TL_IT_CONST: check_const(s, def); return;
    case TL_IT_STRUCT:
        s->frame = &frame;
        ty = tl_struct_ty(s, def);
        tl_check_defaults(s, &ty);
        s->frame = NULL;
        return;
    case TL_IT_FUNCTION: tl_check_function(s, def); return;
    case TL_IT_KERNEL: tl_check_kernel(s, def); return;
    case TL_IT_ASSERT: check_assert(s, def->item, def->mod); return;
    }
}

/* Checks every item of the user's modules; functions before kernels, so that an error in a function
 * alone is reported without a chain of calls. The IR goes to a module that is dropped. After many
 * more errors than are shown, functions are skipped: a chain of calls that is too deep would be
 * walked from each of its ends. */
static void check_all(TlProgram *p)
{
    TlSema s;
    uint64_t made = 0;
    tl_sema_init(&s, p);
    s.abstract = true;
    for (int kernels = 0; kernels < 2; kernels++)
        for (uint32_t i = 0; i < p->modules.len; i++) {
            TlMod *m = p->modules.data[i];
            if (m != p->root && !strncmp(m->path, "std.", 4))
                continue;
            for (uint32_t k = 0; k < m->defs.len; k++) {
                if ((m->defs.data[k]->item->kind == TL_IT_KERNEL) != kernels)
                    continue;
                if (p->ctx->diags.errors > 10 * TL_DIAG_MAX)
                    continue;
                if (made > TL_MAX_OPS)
                    continue; /* enough: the instances are checked later */
                TlModule *scratch = tl_module_new(p->ctx);
                TlFn *fn = tl_fn_new(scratch, "check", m->defs.data[k]->item->loc);
                s.b = (TlBuilder){.fn = fn, .block = fn->body};
                s.trail.len = 0;
                check_def(&s, m->defs.data[k]);
                made += fn->nvalues;
                tl_module_free(scratch);
            }
        }
}

/* The modules of a program, parsed. */
static TlProgram *open_program(TlCtx *ctx, uint32_t source, const TlFrontendOptions *options)
{
    TL_ASSERT(source < ctx->diags.sources.len, "source %u", source);
    TlProgram *p = TL_NEW(&ctx->perm, TlProgram);
    p->ctx = ctx;
    tl_map_init(&p->seen, &ctx->perm);
    tl_map_init(&p->by_path, &ctx->perm);
    if (options)
        p->options = *options;
    if (!p->options.target_kind)
        p->options.target_kind = "cpu";
    if (!p->options.target_arch)
        p->options.target_arch = "";
    TlSpanMark mark = tl_trace_begin(ctx->trace, "front end", NULL, "modules");
    p->root = tl_module_open(p, source, ctx->diags.sources.data[source].path);
    tl_trace_end(ctx->trace, mark);
    tl_options_expand(p);
    return p;
}

bool tl_frontend_imports(TlCtx *ctx, uint32_t source, const TlFrontendOptions *options)
{
    open_program(ctx, source, options);
    return !ctx->diags.errors;
}

TlProgram *tl_frontend_check(TlCtx *ctx, uint32_t source, const TlFrontendOptions *options)
{
    TlProgram *p = open_program(ctx, source, options);
    for (uint32_t i = 0; i < p->root->defs.len; i++)
        if (p->root->defs.data[i]->item->kind == TL_IT_KERNEL)
            tl_vec_push(&ctx->perm, &p->kernels, p->root->defs.data[i]);
    TlSpanMark mark = tl_trace_begin(ctx->trace, "front end", NULL, "check");
    check_all(p);
    tl_warn_no_grid(p);
    tl_warn_type_words(p);
    /* What would read a name may be in error. The library's modules import what constants name. */
    if (!ctx->diags.errors && strncmp(p->root->path, "std.", 4)) {
        tl_warn_unused(p);
        tl_lint_text(p);
    }
    tl_trace_end(ctx->trace, mark);
    tl_diags_sort(&ctx->diags);
    return p;
}

/* ---- questions ---- */

uint32_t tl_program_kernels(const TlProgram *p)
{
    return p->kernels.len;
}
const char *tl_program_kernel_name(const TlProgram *p, uint32_t i)
{
    return i < p->kernels.len ? p->kernels.data[i]->item->name : NULL;
}

static TlDef *find_kernel(const TlProgram *p, const char *name)
{
    TlDef *def = tl_mod_find(p->root, tl_intern_str(&p->ctx->strings, name));
    return def && def->item->kind == TL_IT_KERNEL ? def : NULL;
}

static bool takes_const(const TlDef *def, const char *name)
{
    for (uint32_t i = 0; i < def->item->params.len; i++) {
        const TlParamDecl *p = &def->item->params.data[i];
        if (tl_is_const_form(p) && !strcmp(p->name, name))
            return true;
    }
    return false;
}

/* The name after "kernel." in a constant's name; the whole name if it is for every kernel, "o.f" of
 * this one's options too; NULL if it is for another kernel. */
static const char *name_for(const char *given, const TlDef *def)
{
    const char *dot = strchr(given, '.'), *kernel = def->item->name;
    if (!dot || takes_const(def, given))
        return given;
    size_t n = (size_t)(dot - given);
    return strlen(kernel) == n && !strncmp(given, kernel, n) ? dot + 1 : NULL;
}

bool tl_program_has_const(const TlProgram *p, const char *kernel, const char *name)
{
    for (uint32_t i = 0; i < p->kernels.len; i++) {
        const TlDef *def = p->kernels.data[i];
        const char *mine = name_for(name, def);
        if ((!kernel || !strcmp(kernel, def->item->name)) && mine && takes_const(def, mine))
            return true;
    }
    return false;
}

bool tl_program_has_options(const TlProgram *p, const char *name)
{
    for (uint32_t i = 0; i < p->kernels.len; i++) {
        const TlItem *item = p->kernels.data[i]->item;
        for (uint32_t k = 0; k < item->params.len; k++)
            if (item->params.data[k].form == TL_PF_OPTIONS &&
                !strcmp(item->params.data[k].name, name))
                return true;
    }
    return false;
}

const char *tl_program_const_names(const TlProgram *p, const char *kernel)
{
    TL_ASSERT(kernel, "a kernel without a name");
    TlDef *def = find_kernel(p, kernel);
    TlSbuf out;
    tl_sbuf_init(&out, &p->ctx->perm);
    tl_sbuf_puts(&out, "");
    for (uint32_t i = 0; def && i < def->item->params.len; i++) {
        const TlParamDecl *param = &def->item->params.data[i];
        if (tl_is_const_form(param))
            tl_sbuf_putf(&out, "%s%s", out.len ? ", " : "", param->name);
    }
    return out.text;
}

const char *tl_program_param(const TlProgram *p, uint32_t kernel, uint32_t i, bool *out_is_const)
{
    if (kernel >= p->kernels.len || i >= p->kernels.data[kernel]->item->params.len)
        return NULL;
    const TlParamDecl *param = &p->kernels.data[kernel]->item->params.data[i];
    *out_is_const = tl_is_const_form(param);
    return param->name;
}

/* ---- constants as texts ---- */

static bool parse_int(const char *text, TlDtype d, TlVal *out)
{
    char *end;
    errno = 0;
    bool negative = text[0] == '-';
    unsigned long long u = strtoull(text + negative, &end, 0);
    if (errno || !text[negative] || text[negative] == '-' || text[negative] == '+' || *end)
        return false;
    TlInt i = negative ? -(TlInt)u : (TlInt)u;
    if (!tl_int_fits(d, i))
        return false;
    *out = tl_val_int(i);
    return true;
}

static bool parse_number(const char *text, TlDtype d, TlVal *out)
{
    if (d == TL_BOOL) {
        bool yes = !strcmp(text, "true") || !strcmp(text, "1"),
             no = !strcmp(text, "false") || !strcmp(text, "0");
        *out = tl_val_bool(yes);
        return yes || no;
    }
    if (tl_is_int(d))
        return parse_int(text, d, out);
    char *end;
    double x = tl_number_read(text, &end);
    *out = tl_val_float(x);
    return *text && !*end;
}

static bool parse_type(TlSema *s, const char *text, TlVal *out)
{
    TlDtype d;
    if (!tl_dtype_parse(text, strlen(text), &d))
        return false;
    TlTy *ty = TL_NEW(s->arena, TlTy);
    *ty = tl_ty_value(tl_type_scalar(s->ctx, d));
    *out = tl_val_type(ty);
    return true;
}

/* name or module.name */
static bool parse_fn(TlSema *s, TlMod *m, const char *text, TlVal *out)
{
    const char *dot = strchr(text, '.');
    if (dot) {
        TlDef *import =
            tl_mod_find(m, tl_intern_name(s, tl_strndup(s->arena, text, (size_t)(dot - text))));
        m = import && import->item->kind == TL_IT_IMPORT ? import->import : NULL;
        text = dot + 1;
    }
    TlDef *def = m ? tl_mod_find(m, tl_intern_name(s, text)) : NULL;
    if (def && def->item->kind == TL_IT_FUNCTION) {
        *out = tl_val_fn(def, NULL);
        return true;
    }
    const TlBuiltin *b = dot || def ? NULL : tl_builtin_find(text);
    *out = tl_val_builtin(b, false);
    return b != NULL;
}

/* ---- instances ---- */

typedef struct Lower {
    TlSema s;
    const TlConfig *config; /* NULL: none was chosen */
    const TlProgram *program;
    TlDef *def;
    const TlConstArg *given;
    uint32_t ngiven;
    const char *message;
    bool no_value; /* the subject of `message` */
} Lower;

static const char *given_text(const Lower *l, const char *name)
{
    const char *plain = NULL;
    for (uint32_t i = l->ngiven; i-- > 0;) {
        const char *given = l->given[i].name, *mine = name_for(given, l->def);
        if (!mine || strcmp(mine, name) != 0)
            continue;
        if (mine != given)
            return l->given[i].value;
        plain = plain ? plain : l->given[i].value;
    }
    return plain;
}

/* What the text of a constant was to be. */
static const char *wanted_of(const Lower *l, const TlParamDecl *p, const TlTy *ty)
{
    if (p->form == TL_PF_CONST_TYPE)
        return "a type";
    if (p->form == TL_PF_CONST_FN)
        return "a function";
    if (ty->kind != TL_TY_VALUE || ty->type->rank || ty->type->ptr)
        return "a value of its type";
    return tl_format(l->s.arena, "a value of type %s", tl_dtype_name(ty->type->dtype));
}

static bool parse_const(Lower *l, const TlParamDecl *p, const char *text, TlVal *out)
{
    TlSema *s = &l->s;
    TlTy ty = {0};
    bool ok;
    if (p->form == TL_PF_CONST_TYPE)
        ok = parse_type(s, text, out);
    else if (p->form == TL_PF_CONST_FN)
        ok = parse_fn(s, l->def->mod, text, out);
    else {
        ty = tl_type_resolve(s, p->type);
        ok = ty.kind == TL_TY_VALUE && !ty.type->rank && !ty.type->ptr &&
             parse_number(text, ty.type->dtype, out);
        if (ok)
            *out = tl_convert(s, out, &ty, p->loc);
        ok = ok && out->kind == TL_VAL_CONST;
    }
    if (!ok)
        l->message = tl_format(s->arena, "constant '%s': '%s' is not %s", p->name, text,
                               wanted_of(l, p, &ty));
    return ok;
}

static const TlExpr *variant_value(const TlVariant *v, TlName name)
{
    for (uint32_t i = 0; v && i < v->bindings.len; i++)
        if (v->bindings.data[i].name == name)
            return v->bindings.data[i].value;
    return NULL;
}

typedef enum Bound { BOUND, DISAGREES, BAD } Bound;

/* The constants that the caller or the variant gives. */
static TlBoundConst *given_consts(Lower *l, const TlVariant *variant)
{
    TlSema *s = &l->s;
    const TlItem *item = l->def->item;
    TlBoundConst *out = TL_NEW_ARRAY(s->arena, TlBoundConst, item->params.len + 1);
    TlVar **vars = s->frame->vars;
    s->frame->vars = tl_head_vars_new(s, l->def);
    for (uint32_t i = 0, at = 0; i < item->params.len; i++) {
        const TlParamDecl *p = &item->params.data[i];
        if (!tl_is_const_form(p))
            continue;
        const char *text = given_text(l, p->name);
        const TlExpr *e = variant_value(variant, p->name);
        TlVal v = tl_unknown(TL_DTYPE_COUNT);
        if (e)
            v = tl_const_param_eval(s, l->def, p, e);
        else if (text && !parse_const(l, p, text, &v))
            v = tl_bad();
        out[at++] = (TlBoundConst){.name = p->name, .val = v, .bound = !tl_is_bad(&v)};
        tl_head_param_bind(s, item, p, v);
    }
    s->frame->vars = vars;
    return out;
}

/* What tuning says of constants that have no other value. Without a choice, only those without a
 * default need it. */
static const TlConfig *config_for(Lower *l, const TlVariant *variant)
{
    const TlItem *item = l->def->item;
    bool wanted = false;
    for (uint32_t i = 0; i < item->params.len; i++) {
        const TlParamDecl *p = &item->params.data[i];
        wanted |= tl_is_const_form(p) && !p->init && tl_tunes(item, p->name) &&
                  !given_text(l, p->name) && !variant_value(variant, p->name);
    }
    if (l->config || !wanted)
        return l->config;
    return tl_tune_default(&l->s, l->def, given_consts(l, variant));
}

/* A constant that nobody gives: what a choice was made for, its default, or that of the first
 * configuration. */
static bool unbound_value(Lower *l, const TlConfig *config, const TlParamDecl *p, TlVal *out)
{
    const TlVal *tuned = tl_config_value(config, p->name);
    if (!tuned || (p->init && !l->config))
        return false;
    *out = *tuned;
    return true;
}

static void no_value(Lower *l, const TlParamDecl *p)
{
    const TlItem *item = l->def->item;
    const char *names = tl_program_const_names(l->program, item->name);
    bool dotted = strchr(p->name, '.'); /* a field of options */
    l->message =
        tl_tunes(item, p->name)
            ? tl_format(l->s.arena, "the constant '%s' has no value, and no configuration of tune "
                                    "has the values given",
                        p->name)
            : tl_format(l->s.arena,
                        "the constant '%s' has no value and no default: give it one by --const "
                        "%s=VALUE, in C by {\"%s\", VALUE}%s%s%s; constants are: %s",
                        p->name, p->name, p->name, dotted ? "" : ", in Python by ",
                        dotted ? "" : p->name, dotted ? "" : "=VALUE", names);
    l->no_value = true;
}

/* The values of an instance's constants: given, by the variant, by tuning or by default, each
 * seeing those before it. */
static Bound bind_consts(Lower *l, const TlVariant *variant, TlBoundConst *out)
{
    TlSema *s = &l->s;
    const TlItem *item = l->def->item;
    const TlConfig *config = tl_tunes(item, NULL) ? config_for(l, variant) : NULL;
    uint32_t at = 0;
    Bound result = BOUND;
    l->message = NULL;
    for (uint32_t i = 0; i < item->params.len && result == BOUND; i++) {
        const TlParamDecl *p = &item->params.data[i];
        if (!tl_is_const_form(p))
            continue;
        const char *text = given_text(l, p->name);
        const TlExpr *e = variant_value(variant, p->name);
        TlVal v = tl_bad(), want;
        if (text && !parse_const(l, p, text, &v))
            return BAD;
        bool tuned = !text && !e && unbound_value(l, config, p, &v);
        if (!tuned && (e || (!text && p->init))) {
            want = tl_const_param_eval(s, l->def, p, e ? e : p->init);
            if (tl_is_bad(&want))
                return BAD;
            if (text && !tl_same_val(&v, &want))
                result = DISAGREES;
            v = want;
        } else if (!text && !tuned) {
            no_value(l, p);
            result = BAD;
        }
        out[at].name = p->name;
        out[at].given_by = text    ? "the caller (--const)"
                           : e     ? "instantiate"
                           : tuned ? "tune"
                                   : "its default";
        out[at++].val = v;
        tl_head_param_bind(s, item, p, v);
    }
    return result;
}

/* Where the constants of a kernel are evaluated: outside of any function. */
typedef struct Place {
    TlFrame frame;
    TlModule *scratch;
} Place;

static void enter(Lower *l, Place *place)
{
    TlSema *s = &l->s;
    place->frame = (TlFrame){
        .def = l->def,
        .mod = l->def->mod,
        .item = l->def->item,
        .vars = tl_head_vars_new(s, l->def),
        .depth = 1};
    place->scratch = tl_module_new(s->ctx);
    TlFn *fn = tl_fn_new(place->scratch, "constants", l->def->item->loc);
    s->frame = &place->frame;
    s->steps = 0;
    s->exhausted = false;
    s->b = (TlBuilder){.fn = fn, .block = fn->body};
}

/* Options come before what a configuration says: codegen/compile.c. */
static void set_knobs(const TlConfig *config, TlKernelInfo *info)
{
    int32_t warps = tl_config_knob(config, "warps"), stages = tl_config_knob(config, "stages"),
            maxreg = tl_config_knob(config, "maxreg"), cluster = tl_config_knob(config, "cluster");
    info->warps = warps ? warps : info->warps;
    info->stages = stages ? stages : info->stages;
    info->maxreg = maxreg ? maxreg : info->maxreg;
    info->cluster = cluster ? cluster : info->cluster;
}

/* Lowers one instance; BOUND when there is one. */
static Bound lower_variant(Lower *l, const TlVariant *variant, TlModule *out)
{
    TlSema *s = &l->s;
    TlBoundConst *consts = TL_NEW_ARRAY(s->arena, TlBoundConst, l->def->item->params.len + 1);
    Place place;
    enter(l, &place);
    Bound b = bind_consts(l, variant, consts);
    tl_module_free(place.scratch);
    if (b == BOUND) {
        TlFn *fn = tl_kernel_walk(s, l->def, consts, out);
        s->made += fn->nvalues;
        set_knobs(l->config, fn->info);
    }
    s->frame = NULL;
    return b;
}

static const TlClause *instantiate_clause(const TlItem *item)
{
    for (uint32_t i = 0; i < item->clauses.len; i++)
        if (item->clauses.data[i].kind == TL_CL_INSTANTIATE && item->clauses.data[i].variants.len)
            return &item->clauses.data[i];
    return NULL;
}

TlInstantiate tl_frontend_lower(TlProgram *p, const char *kernel, const TlConstArg *consts,
                                uint32_t nconsts, const TlConfig *config, TlModule *out,
                                const char **out_message)
{
    TL_ASSERT(p && kernel && out && out_message, "no kernel to lower");
    Lower l = {.program = p,
               .def = find_kernel(p, kernel),
               .given = consts,
               .ngiven = nconsts,
               .config = config};
    uint32_t made = 0;
    if (out_message)
        *out_message = NULL;
    if (!l.def)
        return TL_INST_NO_KERNEL;
    if (l.def->item->broken || p->ctx->diags.errors >= TL_DIAG_MAX) /* more would not be shown */
        return TL_INST_ERRORS;
    tl_sema_init(&l.s, p);
    Bound b = BOUND;
    uint32_t before = out->fns.len;
    const TlClause *variants = instantiate_clause(l.def->item);
    for (uint32_t i = 0; i < (variants ? variants->variants.len : 1) && b != BAD; i++) {
        b = lower_variant(&l, variants ? &variants->variants.data[i] : NULL, out);
        made += b == BOUND;
    }
    tl_diags_sort(&p->ctx->diags);
    if (b == BAD && !l.message && !l.s.quiet_errors && !p->ctx->diags.errors)
        l.message = "a constant has no value";
    if (out_message)
        *out_message = l.message;
    if (l.message) {
        out->fns.len = before;
        return l.no_value ? TL_INST_NO_VALUE : TL_INST_BAD_CONST;
    }
    if (l.s.quiet_errors || b == BAD)
        return TL_INST_ERRORS;
    if (!made && out_message)
        *out_message = "no variant of its instantiate clause agrees with the constants given";
    return made ? TL_INST_OK : TL_INST_NO_VARIANT;
}

void tl_frontend_no_kernel(TlProgram *p)
{
    TlLoc start = {.file = p->root->unit->source, .line = 1, .col = 1};
    tl_diag(&p->ctx->diags, start, TL_W0622)->label =
        "one is kernel name(parameters) grid(n) { ... }";
}

void tl_frontend_leave_out(TlProgram *p, const char *kernel, const char *why)
{
    TL_ASSERT(kernel && why, "a kernel is left out without a reason");
    const TlDef *def = find_kernel(p, kernel);
    if (def)
        tl_diag(&p->ctx->diags, def->item->loc, TL_W0601, kernel, why);
}

/* "M N K" */
static const char *key_names(Lower *l)
{
    const TlItem *item = l->def->item;
    TlSbuf text;
    tl_sbuf_init(&text, l->s.arena);
    tl_sbuf_puts(&text, "");
    for (uint32_t i = 0; i < item->clauses.len; i++)
        for (uint32_t k = 0; item->clauses.data[i].kind == TL_CL_KEY &&
                             k < item->clauses.data[i].args.len; k++) {
            const TlExpr *e = item->clauses.data[i].args.data[k].value;
            TlName name = tl_dotted_name(&l->s, e);
            if (name)
                tl_sbuf_putf(&text, "%s%s", text.len ? " " : "", name);
        }
    return text.text;
}

bool tl_frontend_tuning(TlProgram *p, const char *kernel, const TlConstArg *consts,
                        uint32_t nconsts, TlTuning *out)
{
    TL_ASSERT(p && kernel && out, "no kernel to tune");
    Lower l = {.program = p, .def = find_kernel(p, kernel), .given = consts, .ngiven = nconsts};
    TlConfigs configs = {0};
    Place place;
    if (!l.def || l.def->item->broken || !tl_tunes(l.def->item, NULL) || p->ctx->diags.errors)
        return false;
    tl_sema_init(&l.s, p);
    enter(&l, &place);
    TlBoundConst *given = given_consts(&l, NULL);
    tl_tune_configs(&l.s, l.def, given, UINT32_MAX, &configs);
    if (configs.len == 1 && !*configs.data[0].text) /* knobs on the host: there is no choice */
        configs.len = 0;
    const TlConfig *standard = tl_tune_default(&l.s, l.def, given);
    *out = (TlTuning){.configs = configs.data,
                      .nconfigs = configs.len,
                      .constants = tl_tune_constants(&l.s, l.def, given),
                      .keys = key_names(&l),
                      .hash = tl_tune_hash(&l.s, l.def),
                      .without_knobs = tl_tune_on_host(&l.s)};
    const TlConfig *listed = standard ? tl_tuning_find(out, standard->text) : NULL;
    out->standard = listed ? listed->text : NULL;
    tl_module_free(place.scratch);
    l.s.frame = NULL;
    return !p->ctx->diags.errors;
}

void tl_frontend_stale_tuning(TlProgram *p, const char *kernel, const char *why)
{
    const TlDef *def = find_kernel(p, kernel);
    TL_ASSERT(def && why, "data about no kernel");
    tl_diag(&p->ctx->diags, def->item->loc, TL_W0612, kernel, why);
}
