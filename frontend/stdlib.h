/* The library in .tile, embedded when the compiler is built. */
#ifndef TL_STDLIB_H
#define TL_STDLIB_H
#include <stddef.h>

/* The text of "std.math", NUL-terminated, or NULL. It is static: no copy is needed. */
const char *tl_stdlib_find(const char *module_name, size_t *out_size);
const char *tl_stdlib_name(size_t i); /* the names in order, then NULL */
#endif
