/* tilec_tune.h: one tuning: a kernel, the arguments of a size, a device. Also for the farm. */
#ifndef TL_TILEC_TUNE_H
#define TL_TILEC_TUNE_H
#include "runtime/include/tile_jit.h"
#include "tools/run_args.h"
#include "tools/sizes.h"

typedef struct Tune {
    const Options *o;
    const char *device_name, *sizes; /* sizes: "M=512 N=1024" of this run, or "" */
    const char *rank;                /* of a farm: what its lines begin with; NULL: there is none */
    tile_device *device, *ref;
    tile_module *module; /* on ref: only to know the parameters */
    tilec_output *output;
    RunArgs args;
    tile_arg *launch;
    tile_const *consts;
    tile_jit_options jit;
    tile_tune_options options;
    bool line_open; /* the last line on the terminal has no end yet */
    double last;    /* when a line was written */
} Tune;

/* Opens the device and makes everything but the elements of arrays. Returns an exit status; said on
 * stderr. tune_end is needed also after an error. */
int tune_begin(Tune *t);
void tune_end(Tune *t);
/* Looks whether there is anything to do; if so, fills the arrays and does it. */
tile_status tune_kernel(Tune *t, tile_tune_result *out_result);
const char *tune_kernel_name(const Tune *t);
/* The exit status. */
int tune_status(tile_status status);
void tune_say_result(const Options *o, const char *device, const char *sizes,
                     const tile_tune_result *r);
/* Has a signal asked to stop? */
bool tune_interrupted(void);
double tune_now(void); /* seconds */

/* farm/farm.c: among the ranks of an MPI job. */
int command_tune_farm(const Options *o, const char *device);
#endif
