/* Kernels in two forms: as they are, and as if their views and pointers were aligned
 * (TlKernelInfo.aligned; tl_axis_info says what is assumed). The aligned form is launched only with
 * arguments for which that is so. The passes add-variants and settle-variants make and drop it. */
#ifndef TL_VARIANTS_H
#define TL_VARIANTS_H
#include "ir/ir.h"

bool tl_variant_is_aligned(const TlFn *fn);
/* Has the kernel an access that alignment may make better? */
bool tl_variant_may_profit(const TlFn *fn);
/* Did it, compared with the general form? Then what the aligned form asks of the arguments is in
 * its info. */
bool tl_variant_profits(TlFn *aligned, const TlFn *general, TlArena *scratch);
/* What must hold of the arguments: of the parameters without whose alignment some access would be
 * another one. Appended to `out`; none for a kernel that is not aligned. */
void tl_variant_tests(const TlFn *fn, TlArena *arena, TlTests *out);
#endif
