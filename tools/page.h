/* page.h: the pages for a browser that tilec writes (page.c). */
#ifndef TL_PAGE_H
#define TL_PAGE_H
#include <stddef.h>

typedef enum Page {
    PAGE_EXPLAIN, /* explain_page.html: a document of explain_json.h */
    PAGE_TUNE,    /* tune_page.html: results of tuning, as their file has them */
} Page;

/* Writes the page of a report, which is JSON, to a file; "-" is standard output. It refers to
 * nothing outside of itself. Returns an exit status; said on stderr. */
int page_write(const char *path, Page page, const char *title, const char *json, size_t size);
#endif
