/* tile_xla.h: kernels as custom calls of XLA, by its foreign function interface (FFI), for JAX and
 * for C++ programs over XLA.
 *
 * tile_xla_register gives a kernel a number. The handler tile_xla_call is registered under a name
 * of yours, for each platform (jax.ffi.register_ffi_target, XLA_FFI_Handler_Register), and called
 * with these attributes:
 *
 *     kernel    i64            the number
 *     places    array of i64   for each parameter of the kernel, in its order: k is operand k of
 *                              the call; with n operands, n + k is its result k, and -1 - k its
 *                              scalar k
 *     scalars   array of i64   the bits of scalars, in the low bytes; left out: there are none
 *     types     array of i64   their tile_dtype
 *
 * Buffers are dense and row-major. A parameter that the kernel changes in place is a result that
 * aliases an operand (input_output_aliases of jax.ffi.ffi_call).
 *
 * On devices of the host's memory the call returns when the kernel has run, and fails if a check of
 * the kernel does. On cuda and hip it is launched on XLA's own stream. Thread-safe. */
#ifndef TILE_XLA_H
#define TILE_XLA_H
#include "tile.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The kernel gets a number that means it in calls until it is unregistered; it, its module and its
 * device must live as long. Numbers begin at a random one in each process, so code that another
 * process has compiled and that a cache has kept is an error of the call, not another kernel.
 * TILE_NO_MEMORY. */
TILE_0_1 tile_status tile_xla_register(tile_kernel *kernel, int64_t *out_id);
TILE_0_1 void tile_xla_unregister(int64_t id); /* one that is unknown: nothing */

/* The handler: XLA_FFI_Error *(XLA_FFI_CallFrame *), of XLA's FFI 0.1 and later. */
TILE_0_1 void *tile_xla_call(void *call_frame);

#ifdef __cplusplus
}
#endif
#endif
