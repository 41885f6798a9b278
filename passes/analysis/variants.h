/* Forms of a kernel (ir/form.h): which are worth having, and what they ask of a launch. The passes
 * add-variants and settle-variants make and drop them. In a module the forms of one kernel are
 * consecutive, with the general one last. */
#ifndef TL_VARIANTS_H
#define TL_VARIANTS_H
#include "ir/form.h"
#include "ir/ir.h"

/* Does it rest on promises? */
bool tl_variant_is_aligned(const TlFn *fn);
/* Has the kernel an access that alignment may make better? */
bool tl_variant_may_profit(const TlFn *fn);
/* The same kernel with the same constants and the same configuration. */
bool tl_variant_of_one_kernel(const TlFn *a, const TlFn *b);
/* Leaves in the info of a form what it asks of the arguments. */
void tl_variant_settle(TlFn *fn, TlArena *scratch);
/* Is a form that is settled worth having beside others of its kernel: those before it, settled too,
 * and the general one? */
bool tl_variant_profits(const TlFn *fn, TlFn *const *others, uint32_t n);
/* What must hold of the arguments: the promises without which some access would be another one.
 * Appended to `out`; none for the general form. */
void tl_variant_tests(const TlFn *fn, TlArena *arena, TlTests *out);
#endif
