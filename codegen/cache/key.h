/* The key of the cache: everything that the result of a compilation depends on, as text. Two
 * compilations with the same key give the same bytes.
 *
 * A line of a key is "NAME LENGTH:VALUE", or "NAME -" for an absent value; values may hold any
 * characters. In order: the cache's version, the compiler's build, the machine (its CPU decides
 * what the target `cpu` means), the options (key.def), for stage `cubin` the ptxas on PATH, the
 * source by name and hash, and, in the same way, each file that an import could mean, whether it
 * exists or not. */
#ifndef TL_CACHE_KEY_H
#define TL_CACHE_KEY_H
#include <stdbool.h>

#ifndef TILE_UNSTABLE
#define TILE_UNSTABLE
#endif
#include "codegen/include/tilec.h"
#include "ir/support/arena.h"

/* What identifies this build of the compiler: a hash of its code and of LLVM's version, made by
 * tools/cmake/build_id.cmake. */
extern const char tl_build_id[];

enum { TL_HASH_BYTES = 32, TL_HASH_DIGITS = 2 * TL_HASH_BYTES };

/* BLAKE3 of the bytes. */
void tl_hash_bytes(const void *data, size_t size, unsigned char out[TL_HASH_BYTES]);
/* The same as hexadecimal digits. */
void tl_hash_digits(const void *data, size_t size, char out[TL_HASH_DIGITS + 1]);

/* value NULL: there is none. */
void tl_key_text(TlSbuf *key, const char *name, const char *value);
/* A value of many bytes, by its hash. */
void tl_key_hash(TlSbuf *key, const char *name, const void *data, size_t size);

/* Does a compilation with these options give nothing but a result? */
bool tl_key_may(const tilec_options *options);
/* All but the source and what it imports. false: there is no key, since the tool is not known that
 * would be started. */
bool tl_key_begin(TlSbuf *key, const tilec_options *options);
/* The value of the first line of that name, of *out_size bytes; NULL: there is none. */
const char *tl_key_find(const char *key, size_t size, const char *name, size_t *out_size);

/* machine.c: adds to the key what tells CPUs apart for LLVM. */
void tl_key_machine(TlSbuf *key);
/* saved_state.c: of x86-64, the registers that the system saves (XCR0): without theirs, features do
 * not count. */
uint64_t tl_key_saved_state(void);
#endif
