/* The tables of targets and pipelines. */
#include "codegen/target.h"

#include <string.h>

#include "ir/support/guard.h"

static const TlTarget TARGETS[] = {
#define TARGET(name, kind, arch, triple, cpu, features, pipeline)                                  \
    {name, TL_TARGET_##kind, arch, triple, cpu, features, pipeline},
#include "codegen/target.def"
};

static const char *const NAMES[] = {
#define TARGET(name, kind, arch, triple, cpu, features, pipeline) name,
#include "codegen/target.def"
    NULL};

static const struct {
    const char *name, *passes;
} PIPELINES[] = {
#define PIPELINE(name, passes) {name, passes},
#include "codegen/pipeline.def"
};

const TlTarget *tl_target_find(const char *name)
{
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++)
        if (!strcmp(TARGETS[i].name, name))
            return &TARGETS[i];
    return NULL;
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
    return kind == TL_TARGET_CPU ? "cpu" : "ref";
}
