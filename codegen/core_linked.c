/* The core as a part of the program, or of the shared object that core_loaded.c loads. */
#include "codegen/cache/key.h"
#include "codegen/core.h"

const TlCore tl_core_entry = {tl_build_id, tl_compile, tl_worker_limit_stack};

void tl_core_find(void)
{
}

const TlCore *tl_core(char *why, size_t size, tilec_status *out_status)
{
    (void)why, (void)size, (void)out_status;
    return &tl_core_entry;
}
