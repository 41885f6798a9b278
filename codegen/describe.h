/* The kernels of a module as JSON (--emit=json). */
#ifndef TL_DESCRIBE_H
#define TL_DESCRIBE_H
#include "ir/ir.h"

/* For generators of bindings and build systems: what a launch of each instance takes and demands.
 *
 *   {"version": 1, "source": "k.tile", "kernels": [
 *     {"name": "k", "doc": ..., "line": 3, "column": 8,
 *      "constants": [{"name": "B", "value": "64"}],
 *      "parameters": [
 *        {"name": "x", "kind": "view", "type": "f32", "const": true, "extents": ["M", "(B)"],
 *         "strides": ["ld", null]},
 *        {"name": "p", "kind": "pointer", "type": "i32", "const": false},
 *        {"name": "s.left", "kind": "scalar", "type": "i32", "struct": "span", "default": "3"}],
 *      "extents": ["M"], "strides": ["ld"],
 *      "grid": ["cdiv(M, B)"], "group": null, "require": [...], "assume": [...], "key": [...],
 *      "alias": [["x", "y"]], "warps": 8, "stages": 3, "maxreg": 0, "cluster": 1,
 *      "cluster_axis": 0, "persistent": false}]}
 *
 * Parameters are in the order of a launch; `extents` and `strides` of a kernel are the names that
 * follow them in C. Expressions are as in the source. A stride null is dense; numbers 0 are not
 * said. */
void tl_describe(TlSbuf *out, const TlModule *m, const char *source);
#endif
