/* Names that users give: targets, stages, the compiler's version. */
#define TILE_UNSTABLE
#include "codegen/compile.h"
#include "codegen/target/target.h"
#include "runtime/contract/gpu_rows.h"

#include <string.h>

const char *const *tilec_targets(void)
{
    return tl_target_names();
}

const char *const *tilec_stages(void)
{
    static const char *const NAMES[] = {
#define STAGE(ID, name, of, emit) name,
#include "codegen/stage.def"
        NULL};
    return NAMES;
}

int tl_target_lacks_llvm(const TlTarget *t)
{
    int wanted = tl_target_llvm(t);
    return wanted > TL_LLVM_MAJOR ? wanted : 0;
}

const char *tl_target_cpu(const TlTarget *t)
{
    if (!tl_target_lacks_llvm(t))
        return t->cpu;
#define NEWER(cpu_name, version, like)                                                             \
    if (!strcmp(t->cpu, #cpu_name))                                                                \
        return #like;
#define GPU_AS(...)
#include "runtime/contract/gpu.def"
    return t->cpu;
}

const char *tilec_device_target(const char *target)
{
    bool emulate;
    const TlTarget *own = target ? tl_target_find(target, &emulate) : NULL;
    if (!own || emulate || !*own->cpu || !tl_target_lacks_llvm(own))
        return target;
    for (const char *const *name = tl_target_names(); *name; name++) {
        const TlTarget *t =
            tl_gpu_is_member(own->name, *name) ? tl_target_find(*name, &emulate) : NULL;
        if (t && !tl_target_lacks_llvm(t))
            return *name;
    }
    return target;
}

const char *tilec_version(void)
{
    return "tilec 0.1.0 (LLVM " TL_LLVM_VERSION ")";
}
