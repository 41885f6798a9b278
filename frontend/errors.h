/* What diagnostics mean, with examples: `tilec error`. */
#ifndef TL_ERRORS_H
#define TL_ERRORS_H
#include "ir/support/diag.h"

/* Appends what the id ("E0303") or a warning's name ("unused") means, for people at a terminal.
 * False: nothing is called so. */
bool tl_errors_explain(TlSbuf *out, const char *name);
/* The name of the i-th, and its message in one line; NULL: there is none. */
const char *tl_errors_at(uint32_t i, TlSbuf *out_summary);
/* All of them, as a page of Markdown. */
void tl_errors_page(TlSbuf *out);
#endif
