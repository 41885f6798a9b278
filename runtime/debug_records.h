/* debug_records.h: prints and failed asserts, put together from single elements, for devices whose
 * threads report element by element. */
#ifndef TL_DEBUG_RECORDS_H
#define TL_DEBUG_RECORDS_H
#include "runtime/driver.h"
#include "runtime/contract/leaf.h"


/* A value that is printed: its label and shape are texts `text` and `text` + 1 of the kernel. */
typedef struct tl_printed {
    const char *label;
    tile_dtype dtype;
    uint32_t rank, bytes, n; /* bytes: of an element; n: elements, 0 when absurdly many */
    int32_t shape[TILE_IMAGE_MAX_RANK];
} tl_printed;
tl_printed tl_printed_of(const tl_launch *launch, uint32_t text, uint32_t dtype);

/* What is said of an access of `bytes` at `address` that is not in the array of parameter number
 * param - 1 (0: of any): "load of 4 bytes at offset 44 of 'x', which has 44". verb: a text of the
 * kernel. */
void tl_say_outside(const tl_launch *launch, uint32_t verb, uint32_t param, uint64_t address,
                    uint32_t bytes, char *text, size_t size);

/* Hands the records of one launch to the sink: the lowest block's failure, prints in program order.
 * `missing`: so many more did not fit. */
tile_status tl_debug_deliver(tl_sink *sink, const tl_launch *launch, const tl_debug_record *records,
                             uint32_t n, uint32_t missing);
#endif
