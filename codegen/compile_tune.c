/* How a compilation uses `tune`: it lists the configurations for the caller, takes one chosen by
 * its text, or takes those that tuning found best.
 *
 * A kernel with tuning data becomes several instances: one for each configuration that is best for
 * some bucket of the data, with the list of these buckets, and last the instance without any
 * choice, for launches that all others reject. */
#include "codegen/compile_tune.h"

#include <string.h>

static const TlConstArg *const_args(TlJob *j)
{
    TlConstArg *consts = TL_NEW_ARRAY(&j->scratch, TlConstArg, j->o->nconsts + 1);
    for (size_t i = 0; i < j->o->nconsts; i++)
        consts[i] = (TlConstArg){j->o->consts[i].name, j->o->consts[i].value};
    return consts;
}

static TlInstantiate lower(TlJob *j, const char *name, const TlConfig *config,
                           const char **out_message)
{
    return tl_frontend_lower(j->program, name, const_args(j), (uint32_t)j->o->nconsts, config,
                             j->module, out_message);
}

/* ---- what tuning found ---- */

/* A configuration and for which buckets it is best. */
typedef struct Choice {
    const TlConfig *config;
    TL_VEC(const int32_t *) buckets;
} Choice;
typedef TL_VEC(Choice) Choices;

static bool is_for(const TlJob *j, const tilec_tuned *d, const char *kernel, const TlTuning *t)
{
    const char *target = j->o->target ? j->o->target : "cpu";
    return !strcmp(d->kernel, kernel) && (!d->target || !strcmp(d->target, target)) &&
           !strcmp(d->constants, t->constants);
}

/* How many keys a list of names has. */
static size_t count_keys(const char *keys)
{
    size_t n = *keys != 0;
    for (; *keys; keys++)
        n += *keys == ' ';
    return n;
}

/* The best one that can still be made. */
static const TlConfig *best_config(const TlTuning *t, const tilec_tuned *d)
{
    const TlConfig *found = NULL;
    for (size_t i = 0; i < d->nconfigs && !found; i++)
        found = tl_tuning_find(t, d->configs[i]);
    return found;
}

static void add_choice(TlJob *j, Choices *list, const TlConfig *config, const int32_t *bucket)
{
    uint32_t i = 0;
    while (i < list->len && list->data[i].config != config)
        i++;
    if (i == list->len)
        tl_vec_push(&j->scratch, list, (Choice){.config = config});
    tl_vec_push(&j->scratch, &list->data[i].buckets, bucket);
}

/* Has a configuration a value for the name? "BM=64 warps=4" has for BM. */
static bool has_name(const char *config, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = config; p; p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL)
        if (!strncmp(p, name, n) && p[n] == '=')
            return true;
    return false;
}

/* Does the caller fix something that tune would choose? */
static bool fixes_any(const TlJob *j, const char *config)
{
    bool fixes = (j->o->warps && has_name(config, "warps")) ||
                 (j->o->stages && has_name(config, "stages"));
    for (size_t i = 0; i < j->o->nconsts && !fixes; i++) {
        const char *dot = strrchr(j->o->consts[i].name, '.');
        fixes = has_name(config, dot ? dot + 1 : j->o->consts[i].name);
    }
    return fixes;
}

/* What is wrong with data for this kernel and these constants; NULL: nothing. `best`: what is used
 * of it. */
static const char *why_stale(const TlJob *j, const TlTuning *t, const tilec_tuned *d,
                             const TlConfig *best)
{
    if (strcmp(d->keys, t->keys) != 0 || d->nbucket != count_keys(t->keys))
        return "they are for other keys and are not used; run tilec tune again";
    if (!best && d->nconfigs && fixes_any(j, d->configs[0]))
        return t->nconfigs ? "no configuration with the values given was timed; none is used; run "
                             "tilec tune with these values"
                           : "tune lists no configuration with the values given; none is used";
    if (!best)
        return "tune lists none of their configurations any more; run tilec tune again";
    return strcmp(d->hash, t->hash) != 0
               ? "the kernel has changed since; they are used, but run tilec tune again"
               : NULL;
}

static void choose(TlJob *j, const char *kernel, Choices *out)
{
    TlTuning t;
    const char *stale = NULL;
    if (!j->o->ntuned || !tl_frontend_tuning(j->program, kernel, const_args(j),
                                             (uint32_t)j->o->nconsts, &t))
        return;
    for (size_t i = 0; i < j->o->ntuned; i++) {
        const tilec_tuned *d = &j->o->tuned[i];
        if (!is_for(j, d, kernel, &t))
            continue;
        bool same_keys = !strcmp(d->keys, t.keys) && d->nbucket == count_keys(t.keys);
        const TlConfig *best = same_keys ? best_config(&t, d) : NULL;
        const char *why = why_stale(j, &t, d, best);
        stale = why ? why : stale;
        if (best)
            add_choice(j, out, best, d->bucket);
    }
    if (stale)
        tl_frontend_stale_tuning(j->program, kernel, stale);
}

/* The instances made since there were `before`. */
static void mark(TlJob *j, uint32_t before, const Choice *c)
{
    for (uint32_t i = before; i < j->module->fns.len; i++) {
        TlKernelInfo *info = j->module->fns.data[i]->info;
        info->ntuned = c->buckets.len;
        for (uint32_t b = 0; b < c->buckets.len; b++)
            for (uint32_t k = 0; k < info->keys.len; k++)
                tl_vec_push(&j->module->arena, &info->buckets, c->buckets.data[b][k]);
    }
}

/* ---- the caller's questions ---- */

static TlInstantiate lower_config(TlJob *j, const char *name, const char **out_message)
{
    TlTuning t = {0};
    tl_frontend_tuning(j->program, name, const_args(j), (uint32_t)j->o->nconsts, &t);
    const TlConfig *config = tl_tuning_find(&t, j->o->config);
    if (config)
        return lower(j, name, config, out_message);
    *out_message = tl_format(&j->out->arena, "tune lists no configuration '%s'%s%s", j->o->config,
                             t.nconfigs ? "; the first is " : "",
                             t.nconfigs ? t.configs[0].text : "");
    return TL_INST_BAD_CONST;
}

TlInstantiate tl_job_instantiate(TlJob *j, const char *name, const char **out_message)
{
    Choices choices = {0};
    TlInstantiate r = TL_INST_OK;
    if (j->o->config)
        return lower_config(j, name, out_message);
    choose(j, name, &choices);
    for (uint32_t i = 0; i < choices.len && r == TL_INST_OK; i++) {
        uint32_t before = j->module->fns.len;
        r = lower(j, name, choices.data[i].config, out_message);
        if (r == TL_INST_OK)
            mark(j, before, &choices.data[i]);
    }
    return r == TL_INST_OK ? lower(j, name, NULL, out_message) : r;
}

void tl_job_list_tunings(TlJob *j)
{
    TlArena *arena = &j->out->arena;
    uint32_t n = tl_program_kernels(j->program);
    tilec_tuning *rows = TL_NEW_ARRAY(arena, tilec_tuning, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = tl_program_kernel_name(j->program, i);
        TlTuning t;
        if ((j->o->kernel && strcmp(j->o->kernel, name) != 0) ||
            !tl_frontend_tuning(j->program, name, const_args(j), (uint32_t)j->o->nconsts, &t))
            continue;
        const char **configs = TL_NEW_ARRAY(arena, const char *, t.nconfigs + 1);
        for (uint32_t k = 0; k < t.nconfigs; k++)
            configs[k] = tl_strndup(arena, t.configs[k].text, strlen(t.configs[k].text));
        if (t.standard)
            configs[t.nconfigs] = tl_strndup(arena, t.standard, strlen(t.standard));
        rows[j->out->ntunings++] =
            (tilec_tuning){.kernel = tl_strndup(arena, name, strlen(name)),
                           .hash = tl_strndup(arena, t.hash, strlen(t.hash)),
                           .constants = tl_strndup(arena, t.constants, strlen(t.constants)),
                           .keys = tl_strndup(arena, t.keys, strlen(t.keys)),
                           .nkeys = count_keys(t.keys),
                           .configs = configs,
                           .nconfigs = t.nconfigs};
    }
    j->out->tunings = rows;
}
