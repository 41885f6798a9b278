/* The tables of targets and pipelines. */
#include "codegen/target/target.h"

#include <string.h>

#include "ir/support/guard.h"

static const TlTarget TARGETS[] = {
#define TARGET(name, kind, arch, triple, cpu, features, pipeline, lanes, shared, matrix, copies,   \
               registers)                                                                          \
    {name,  TL_TARGET_##kind, arch,   triple, cpu,      features, pipeline,                        \
     lanes, shared,           matrix, copies, registers},
#include "codegen/target/target.def"
};

static const char *const NAMES[] = {
#define TARGET(name, kind, arch, triple, cpu, features, pipeline, lanes, shared, matrix, copies,   \
               registers)                                                                          \
    name,
#include "codegen/target/target.def"
    NULL};

static const struct {
    const char *name, *passes;
} PIPELINES[] = {
#define PIPELINE(name, passes) {name, passes},
#include "codegen/target/pipeline.def"
};

static const TlTarget *find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++)
        if (strlen(TARGETS[i].name) == length && !strncmp(TARGETS[i].name, name, length))
            return &TARGETS[i];
    return NULL;
}

bool tl_target_is_gpu(const TlTarget *t)
{
    return t->lanes > 0;
}

/* The row of CPU level `name`. */
static const TlTarget *find_level(const char *name)
{
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++)
        if (!strncmp(TARGETS[i].name, "cpu:", 4) && !strcmp(TARGETS[i].name + 4, name))
            return &TARGETS[i];
    return NULL;
}

const TlTarget *tl_target_find(const char *name, bool *out_emulate)
{
    if (out_emulate)
        *out_emulate = false;
    if (!out_emulate || strncmp(name, "emu:", 4) != 0)
        return find(name, strlen(name));
    size_t n = strcspn(name + 4, "@");
    const TlTarget *t = find(name + 4, n);
    if (!t || !tl_target_is_gpu(t) || !tl_target_host(name))
        return NULL;
    *out_emulate = true;
    return t;
}

const TlTarget *tl_target_host(const char *name)
{
    const char *level = strchr(name, '@');
    return level ? find_level(level + 1) : find("cpu", 3);
}

const char *tl_target_object_triple(const char *list)
{
    for (const char *p = list ? list : ""; *p;) {
        size_t n = strcspn(p, ",");
        const TlTarget *t = find(p, n);
        if (t && t->kind == TL_TARGET_CPU)
            return t->triple;
        p += n + (p[n] == ',');
    }
    return "";
}

const char *const *tl_target_names(void)
{
    return NAMES;
}

const char *tl_pipeline(const char *name)
{
    for (size_t i = 0; i < sizeof PIPELINES / sizeof *PIPELINES; i++)
        if (!strcmp(PIPELINES[i].name, name))
            return PIPELINES[i].passes;
    TL_UNREACHABLE("no pipeline '%s'", name);
}

const char *tl_target_kind_name(TlTargetKind kind)
{
    switch (kind) {
    case TL_TARGET_CPU: return "cpu";
    case TL_TARGET_REF: return "ref";
    case TL_TARGET_NVPTX: return "cuda";
    case TL_TARGET_AMDGPU: return "hip";
    }
    TL_UNREACHABLE("target kind %d", (int)kind);
}

bool tl_target_has_proof(const TlTarget *t, tl_leaf leaf)
{
    (void)t, (void)leaf;
#define PROVEN(name, ID)                                                                           \
    if (leaf == TL_LEAF_##ID && !strcmp(t->name, name))                                            \
        return true;
#include "codegen/target/proven.def"
    return false;
}
