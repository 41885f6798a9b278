/* cpu_level.h: what the CPU can do, what a level has, what an image wants (cpu_level.def). Sets of
 * features are bits, one per row of the table. Everything here is thread-safe. */
#ifndef TL_CPU_LEVEL_H
#define TL_CPU_LEVEL_H
#include "runtime/driver.h"

/* What this process may use of its machine: the CPU has it and the operating system keeps it. */
uint64_t tl_cpu_machine(void);

/* The features of code on a device that is `level`, a row of the table, or with "" or "native" all
 * of `machine`'s. device: the device's name, for messages. TILE_BAD_ARGUMENT: no such level, with
 * the known ones. TILE_UNAVAILABLE: the machine is less than the level, or than the least one. */
tile_status tl_cpu_open(const char *device, const char *level, uint64_t machine,
                        uint64_t *out_features);

/* How many of `names` (tile_image_header.features) are not in `have`; `text`, of `size` bytes, gets
 * their list, shortened when it is long. Names of no row are lacking. */
uint32_t tl_cpu_lacks(const char *names, uint64_t have, char *text, size_t size);
uint32_t tl_cpu_count(const char *names);
#endif
