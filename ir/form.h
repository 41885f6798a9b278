/* Forms of a kernel: the same program, compiled under promises about a launch's arguments. A form
 * may be launched where its promises hold; the general form promises nothing.
 *
 * As a text, a form is "general", "aligned" (every promise that there is), or a list:
 *
 *     A=16             the address of view or pointer A is a multiple of 16 bytes
 *     A.extent.1=8     the extent of A's axis 1 is a multiple of 8
 *     A.stride.0=8     its stride on axis 0 is a multiple of 8 elements
 *     n=16             the integer n is (only where no parameter is a view)
 *     near             strides are below TL_LOCAL_STRIDE, of axes with one index below 2^32
 *                      bytes and 2^31 elements, and not negative
 *     grid             the grid is what the kernel's clause says
 *     pairs            programs run in the clusters of two that the kernel's clause asks for
 *
 * Multiples are powers of two. What "aligned" promises: addresses are multiples of 16 bytes, and so
 * are, in elements, the extent along the axis in which elements lie side by side and the strides of
 * all others. */
#ifndef TL_FORM_H
#define TL_FORM_H
#include "ir/kernel.h"
#include "runtime/contract/form_text.h"

enum { TL_PROMISED_BYTES = 16, TL_LOCAL_STRIDE = 1 << 22, TL_MAX_FORMS = 4 };

/* All that can be promised about a launch of the kernel, and is not known anyway. */
TlPromise tl_promise_all(const TlKernelInfo *k, TlArena *arena);
/* Could the text be a list of promises of some kernel? */
bool tl_promise_is_well_formed(const char *text);
/* Are these texts of forms, TL_MAX_FORMS at most, with ; between them? */
bool tl_forms_are_well_formed(const char *texts);
/* What a list says of a kernel, as far as "aligned" promises it too, and not more. Names that the
 * kernel lacks are passed over: a list is for all kernels of a file. */
TlPromise tl_promise_read(const TlKernelInfo *k, const char *text, TlArena *arena);
/* The text of the kernel's form. */
const char *tl_form_text(const TlKernelInfo *k, TlArena *arena);
#endif
