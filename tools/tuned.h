/* tuned.h: the tuning results that a compilation uses (tuned.c). */
#ifndef TL_TUNED_H
#define TL_TUNED_H
#include "runtime/tune_select.h"
#include "tools/tilec_options.h"

typedef struct Tuned {
    char *path; /* of the file; NULL: none is used */
    char *targets; /* names that rows point to */
    tl_tune_rows rows;
} Tuned;

/* The results for the targets of a list, from --tune FILE or the file beside the source. They are
 * entered in *compile, and live until tuned_free, also after an error. Returns an exit status; said
 * on stderr. A file with something wrong in it is only warned of. */
int tuned_read(const Options *o, const char *targets, tilec_options *compile, Tuned *out);
/* The same for a device. */
int tuned_read_device(const Options *o, tile_device *device, tilec_options *compile, Tuned *out);
void tuned_free(Tuned *tuned);
#endif
