/* explain_page.c: fills in explain_page.html (embedded by the build): its two marks are replaced
 * by the title and the report. The page's own script draws everything, from the report alone. */
#include "tools/explain_page.h"

#include <string.h>

#include "ir/support/guard.h"

extern const unsigned char explain_template[]; /* embed_file.cmake */

static void put_escaped(TlSbuf *out, const char *text)
{
    for (; *text; text++) {
        const char *name = *text == '<'   ? "&lt;"
                           : *text == '&' ? "&amp;"
                           : *text == '"' ? "&quot;"
                                          : NULL;
        if (name)
            tl_sbuf_puts(out, name);
        else
            tl_sbuf_put(out, text, 1);
    }
}

/* The template up to a mark, which is there once; what follows it. */
static const char *put_until(TlSbuf *out, const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    TL_ASSERT(at, "no %s", mark);
    tl_sbuf_put(out, text, (size_t)(at - text));
    return at + strlen(mark);
}

void explain_page(TlSbuf *out, const char *title, const char *json, size_t size)
{
    const char *rest = put_until(out, (const char *)explain_template, "@TITLE@");
    put_escaped(out, title);
    rest = put_until(out, rest, "@REPORT@");
    tl_sbuf_put(out, json, size);
    tl_sbuf_puts(out, rest);
}
