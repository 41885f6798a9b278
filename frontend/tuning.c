/* Configurations of a kernel: the combinations of values that its tune clauses list.
 *
 * A combination has one value for each name of all tune clauses of the kernel, in the order in
 * which they are written; the last name varies fastest. It is a configuration if every `where`
 * holds. The set of a name that already has a value (from the caller, or from a variant of
 * `instantiate`) is that value alone. On the host, warps, stages and the like change nothing: they
 * are no part of a configuration, and combinations that differ only in them are one.
 *
 * The hash says whether two kernels are the same but for their tuning: it is taken of the kernel's
 * tree as text, without comments, `tune` and `key`, and of everything of the user's modules that it
 * can reach by name. Tile IR does not serve, as there is none before a configuration is chosen. */
#include "frontend/sema.h"
#include "ir/support/ascii.h"

#include <string.h>

enum { MOST_COMBINATIONS = 1 << 16 };

/* A constant, or one of the knobs, which are numbers. */
struct TlTuned {
    TlName name;
    TlVal val;
};

typedef struct Search {
    TlSema *s;
    TlDef *def;
    const TlBoundConst *fixed;
    TL_VEC(const TlTuneItem *) items;
    struct TlTuned *chosen; /* of the first nchosen items */
    uint32_t nchosen, most, tried;
    TlMap texts; /* configurations found, by interned text */
    TlConfigs *out;
} Search;

/* ---- knobs ---- */

int32_t tl_knob_most(const char *name)
{
    for (int i = 0; i < TL_KNOBS; i++)
        if (!strcmp(tl_knobs[i].name, name))
            return tl_knobs[i].most;
    return 0;
}

static TlVal knob_val(int64_t n)
{
    return tl_val_const(TL_I32, (uint32_t)n);
}

void tl_knob_bind(TlSema *s, int knob, TlLoc loc, int64_t n)
{
    const TlItem *item = s->frame->def->item;
    for (uint32_t i = 0; i < item->locals.len; i++) {
        const TlLocal *l = item->locals.data[i];
        if (l->depth || strcmp(l->name, tl_knobs[knob].name) != 0)
            continue;
        tl_var_bind(s, l, loc, tl_ty_value(tl_type_scalar(s->ctx, TL_I32)), knob_val(n), true);
        return;
    }
}

/* What the caller says of a knob; 0: nothing. */
static int32_t fixed_knob(const TlSema *s, const char *name)
{
    return !strcmp(name, "warps")    ? s->options->warps
           : !strcmp(name, "stages") ? s->options->stages
                                     : 0;
}

int32_t tl_config_knob(const TlConfig *config, const char *name)
{
    for (uint32_t i = 0; config && i < config->nvalues; i++)
        if (tl_knob_most(name) && !strcmp(config->values[i].name, name) &&
            config->values[i].val.kind == TL_VAL_CONST)
            return (int32_t)config->values[i].val.u.bits;
    return 0;
}

const TlVal *tl_config_value(const TlConfig *config, TlName name)
{
    for (uint32_t i = 0; config && i < config->nvalues; i++)
        if (config->values[i].name == name)
            return &config->values[i].val;
    return NULL;
}

/* ---- one combination ---- */

static const TlVal *chosen_value(const Search *f, TlName name)
{
    for (uint32_t i = 0; i < f->nchosen; i++)
        if (f->chosen[i].name == name)
            return &f->chosen[i].val;
    return NULL;
}

static const TlVal *fixed_value(const Search *f, TlName name)
{
    for (uint32_t i = 0, at = 0; i < f->def->item->params.len; i++) {
        const TlParamDecl *p = &f->def->item->params.data[i];
        if (!tl_is_const_form(p))
            continue;
        if (p->name == name && f->fixed[at].bound)
            return &f->fixed[at].val;
        at++;
    }
    return NULL;
}

/* The value of a constant as far as it is known here. */
static TlVal value_here(const Search *f, const TlParamDecl *p)
{
    TlSema *s = f->s;
    const TlVal *known = fixed_value(f, p->name);
    known = known ? known : chosen_value(f, p->name);
    if (known)
        return *known;
    if (p->init && !tl_tunes(f->def->item, p->name))
        return tl_const_param_eval(s, f->def, p, p->init);
    return tl_unknown(TL_DTYPE_COUNT);
}

/* Gives the constants and knobs values for the expressions of the clauses; nothing else has one. */
static void bind(const Search *f)
{
    TlSema *s = f->s;
    const TlItem *item = f->def->item;
    s->frame->vars = tl_head_vars_new(s, f->def);
    for (uint32_t i = 0; i < item->params.len; i++) {
        const TlParamDecl *p = &item->params.data[i];
        if (!tl_is_const_form(p))
            continue;
        TlVal v = value_here(f, p);
        tl_head_param_bind(s, item, p, v);
    }
    for (int i = 0; i < TL_KNOBS; i++) {
        TlName name = tl_intern_name(s, tl_knobs[i].name);
        const TlVal *v = chosen_value(f, name);
        if (!tl_const_param(item, name))
            tl_knob_bind(s, i, item->loc, v ? (int64_t)v->u.bits : 1);
    }
}

static bool where_holds(const Search *f)
{
    const TlItem *item = f->def->item;
    bool holds = true;
    TlVar **vars = f->s->frame->vars;
    bind(f);
    for (uint32_t i = 0; i < item->clauses.len && holds; i++) {
        const TlClause *c = &item->clauses.data[i];
        TlVal v;
        if (c->kind != TL_CL_TUNE || !c->where)
            continue;
        bool varies = tl_eval_cond(f->s, c->where, &v);
        if (varies) /* for this configuration, if not for the one that is compiled */
            tl_err(f->s, c->where->loc, TL_E0406, "the condition of tune");
        holds = !varies && !tl_is_bad(&v) && v.u.bits;
    }
    f->s->frame->vars = vars;
    return holds;
}

bool tl_tune_on_host(const TlSema *s)
{
    return !strcmp(s->options->target_kind, "cpu") || !strcmp(s->options->target_kind, "ref");
}

/* What is chosen, without what changes nothing. The text, "BM=64 T=f32 warps=4", is what a
 * configuration is called everywhere. */
static TlConfig config_of(const Search *f)
{
    struct TlTuned *values = TL_NEW_ARRAY(f->s->arena, struct TlTuned, f->nchosen + 1);
    uint32_t n = 0;
    TlSbuf text;
    tl_sbuf_init(&text, f->s->arena);
    tl_sbuf_puts(&text, "");
    for (uint32_t i = 0; i < f->nchosen; i++) {
        const struct TlTuned *v = &f->chosen[i];
        bool is_knob = tl_knob_most(v->name) && !tl_const_param(f->def->item, v->name);
        if (is_knob && tl_tune_on_host(f->s))
            continue;
        tl_sbuf_putf(&text, "%s%s=%s", n ? " " : "", v->name, tl_const_param_text(f->s, &v->val));
        values[n++] = *v;
    }
    return (TlConfig){tl_intern_str(&f->s->ctx->strings, text.text), n, values};
}

static void take(Search *f)
{
    if (!where_holds(f))
        return;
    TlConfig config = config_of(f);
    if (tl_map_get_ptr(&f->texts, config.text))
        return;
    tl_map_put_ptr(&f->texts, config.text, config.text);
    tl_vec_push(f->s->arena, f->out, config);
}

/* Is `text` what the configuration is called, or was where it had knobs, too? */
static bool is_called(const TlConfig *config, const char *text, bool without_knobs)
{
    const char *own = config->text;
    while (*text) {
        size_t n = strcspn(text, " "), m = strcspn(own, " "), name = strcspn(text, "=");
        char knob[16] = "";
        if (n == m && !strncmp(text, own, n)) {
            own += m + (own[m] == ' ');
        } else {
            if (name < sizeof knob)
                memcpy(knob, text, name);
            if (!without_knobs || !tl_knob_most(knob))
                return false;
        }
        text += n + (text[n] == ' ');
    }
    return !*own;
}

const TlConfig *tl_tuning_find(const TlTuning *t, const char *text)
{
    for (uint32_t i = 0; i < t->nconfigs; i++)
        if (is_called(&t->configs[i], text, t->without_knobs))
            return &t->configs[i];
    return NULL;
}

/* ---- all of them ---- */

typedef TL_VEC(TlVal) Values;

static TlVal listed_value(const Search *f, const TlParamDecl *p, const TlTuneItem *item,
                          const TlExpr *e)
{
    TlSema *s = f->s;
    TlVal v = tl_eval(s, e);
    int64_t n = 0;
    bool unknown = false;
    if (p)
        return tl_const_param_value(s, f->def, p, &v, e->loc);
    return tl_int_of(s, &v, e->loc, item->name, &n, &unknown) && !unknown ? knob_val(n) : tl_bad();
}

/* The values of a name, which see those of the names before it. */
static void list_values(const Search *f, const TlTuneItem *item, Values *out)
{
    TlSema *s = f->s;
    const TlParamDecl *p = tl_const_param(f->def->item, item->name);
    const TlVal *fixed = p ? fixed_value(f, item->name) : NULL;
    int32_t knob = p ? 0 : fixed_knob(s, item->name);
    if (fixed || knob) {
        tl_vec_push(s->arena, out, fixed ? *fixed : knob_val(knob));
        return;
    }
    TlVar **vars = s->frame->vars;
    bind(f);
    for (uint32_t i = 0; i < item->values.len; i++) {
        TlVal v = listed_value(f, p, item, item->values.data[i]);
        if (!tl_is_bad(&v))
            tl_vec_push(s->arena, out, v);
    }
    s->frame->vars = vars;
}

static void search(Search *f)
{
    if (f->out->len >= f->most || f->tried > MOST_COMBINATIONS)
        return;
    if (f->nchosen == f->items.len) {
        f->tried++;
        take(f);
        return;
    }
    const TlTuneItem *item = f->items.data[f->nchosen];
    Values values = {0};
    list_values(f, item, &values);
    for (uint32_t i = 0; i < values.len; i++) {
        f->chosen[f->nchosen++] = (struct TlTuned){item->name, values.data[i]};
        search(f);
        f->nchosen--;
    }
}

static TlLoc tune_loc(const TlItem *item)
{
    for (uint32_t i = 0; i < item->clauses.len; i++)
        if (item->clauses.data[i].kind == TL_CL_TUNE)
            return item->clauses.data[i].loc;
    return item->loc;
}

void tl_tune_configs(TlSema *s, TlDef *def, const TlBoundConst *fixed, uint32_t most,
                     TlConfigs *out)
{
    TL_ASSERT(def->item->kind == TL_IT_KERNEL && fixed, "configurations of no kernel");
    Search f = {.s = s, .def = def, .fixed = fixed, .most = most, .out = out};
    tl_map_init(&f.texts, s->arena);
    for (uint32_t i = 0; i < def->item->clauses.len; i++) {
        const TlClause *c = &def->item->clauses.data[i];
        for (uint32_t k = 0; c->kind == TL_CL_TUNE && k < c->tunes.len; k++)
            tl_vec_push(s->arena, &f.items, &c->tunes.data[k]);
    }
    f.chosen = TL_NEW_ARRAY(s->arena, struct TlTuned, f.items.len + 1);
    if (f.items.len)
        search(&f);
    if (f.tried > MOST_COMBINATIONS)
        tl_err(s, tune_loc(def->item), TL_E0604, "tune",
               tl_format(s->arena, "it lists more than %d combinations", MOST_COMBINATIONS));
}

const TlConfig *tl_tune_default(TlSema *s, TlDef *def, const TlBoundConst *fixed)
{
    const TlItem *item = def->item;
    TlBoundConst *with = TL_NEW_ARRAY(s->arena, TlBoundConst, item->params.len + 1);
    TlConfigs found = {0};
    TlVar **vars = s->frame->vars;
    s->frame->vars = tl_head_vars_new(s, def);
    for (uint32_t i = 0, at = 0; i < item->params.len; i++) {
        const TlParamDecl *p = &item->params.data[i];
        if (!tl_is_const_form(p))
            continue;
        with[at] = fixed[at];
        if (!with[at].bound && p->init) {
            with[at].val = tl_const_param_eval(s, def, p, p->init);
            with[at].bound = !tl_is_bad(&with[at].val);
        }
        TlVal v = with[at].bound ? with[at].val : tl_unknown(TL_DTYPE_COUNT);
        tl_head_param_bind(s, item, p, v);
        at++;
    }
    s->frame->vars = vars;
    tl_tune_configs(s, def, with, 1, &found);
    if (!found.len)
        tl_tune_configs(s, def, fixed, 1, &found);
    return found.len ? &found.data[0] : NULL;
}

const char *tl_tune_constants(TlSema *s, TlDef *def, const TlBoundConst *fixed)
{
    Search f = {.s = s, .def = def, .fixed = fixed};
    TlSbuf text;
    tl_sbuf_init(&text, s->arena);
    tl_sbuf_puts(&text, "");
    TlVar **vars = s->frame->vars;
    s->frame->vars = tl_head_vars_new(s, def);
    for (uint32_t i = 0; i < def->item->params.len; i++) {
        const TlParamDecl *p = &def->item->params.data[i];
        if (!tl_is_const_form(p))
            continue;
        TlVal v = value_here(&f, p);
        tl_head_param_bind(s, def->item, p, v);
        if (!tl_is_bad(&v) && !tl_tunes(def->item, p->name))
            tl_sbuf_putf(&text, "%s%s=%s", text.len ? " " : "", p->name,
                         tl_const_param_text(s, &v));
    }
    s->frame->vars = vars;
    return text.text;
}

/* ---- what a kernel is, but for its tuning ---- */

typedef struct Hash {
    TlSema *s;
    uint64_t value; /* FNV-1a */
    TlMap seen;     /* TlDef */
} Hash;

static void hash_def(Hash *h, const TlDef *def);

static bool is_letter(char c)
{
    return tl_is_alnum((unsigned char)c) || c == '_';
}

/* What the library holds comes with the compiler; the module that is compiled may be one of it. */
static bool is_hashed(const Hash *h, const TlMod *m)
{
    return m == h->s->prog->root || strncmp(m->path, "std.", 4) != 0;
}

/* The definitions that a text names, `name` and `module.name`. A local variable of such a name only
 * makes the hash depend on more. */
static void hash_named(Hash *h, const TlMod *mod, const char *text)
{
    const TlMod *within = NULL; /* after "module." */
    while (*text) {
        size_t n = 0;
        while (is_letter(text[n]))
            n++;
        if (!n) {
            within = *text++ == '.' ? within : NULL;
            continue;
        }
        TlName name = tl_intern_name(h->s, tl_strndup(h->s->arena, text, n));
        const TlDef *def = tl_mod_find(within ? within : mod, name);
        within = NULL;
        if (def && def->item->kind == TL_IT_IMPORT)
            within = def->import;
        else if (def)
            hash_def(h, def);
        text += n;
    }
}

static void hash_def(Hash *h, const TlDef *def)
{
    if (!is_hashed(h, def->mod) || tl_map_get_ptr(&h->seen, def))
        return;
    tl_map_put_ptr(&h->seen, def, def);
    TlItem item = *def->item;
    item.doc = NULL;
    item.clauses.len = 0;
    TlClause *kept = TL_NEW_ARRAY(h->s->arena, TlClause, def->item->clauses.len + 1);
    for (uint32_t i = 0; i < def->item->clauses.len; i++)
        if (def->item->clauses.data[i].kind != TL_CL_TUNE &&
            def->item->clauses.data[i].kind != TL_CL_KEY)
            kept[item.clauses.len++] = def->item->clauses.data[i];
    item.clauses.data = kept;
    TlSbuf text;
    tl_sbuf_init(&text, h->s->arena);
    tl_ast_print_item(&text, &item);
    for (size_t i = 0; i < text.len; i++)
        h->value = (h->value ^ (unsigned char)text.text[i]) * UINT64_C(0x100000001b3);
    hash_named(h, def->mod, text.text);
}

const char *tl_tune_hash(TlSema *s, const TlDef *def)
{
    Hash h = {.s = s, .value = UINT64_C(0xcbf29ce484222325)};
    tl_map_init(&h.seen, s->arena);
    hash_def(&h, def);
    return tl_format(s->arena, "%016llx", (unsigned long long)h.value);
}
