/* explain_page.h: the page of tilec explain --html (explain_page.c). */
#ifndef TL_EXPLAIN_PAGE_H
#define TL_EXPLAIN_PAGE_H
#include "ir/support/arena.h"

/* The page for a document of explain_json.h, which has no "<" in it. It refers to nothing outside
 * of itself. */
void explain_page(TlSbuf *out, const char *title, const char *json, size_t size);
#endif
