/* tune_model.c: what the compiler's report tells of configurations for GPUs. */
#include "runtime/tune/tune.h"

tile_status tl_tune_model_all(tl_tuner *t)
{
    return tl_fail(TILE_UNAVAILABLE, "%s: there is no model yet", t->device->name);
}
