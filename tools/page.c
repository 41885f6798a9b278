/* page.c: fills in a page's template. The title, the report, and the style and script that all
 * pages share (page_base.css, page_base.js) replace marks. The page's own script draws everything,
 * from the report alone. */
#include "tools/page.h"

#include <string.h>

#include "ir/support/arena.h"
#include "ir/support/guard.h"
#include "tools/output.h"
#include "tools/tilec_options.h"

/* embed_file.cmake */
extern const unsigned char explain_template[], tune_template[], page_style[], page_script[];

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

/* In JSON a "<" is in a string; as it is, it could end the script that the report stands in. */
static void put_report(TlSbuf *out, const char *json, size_t size)
{
    for (const char *end = json + size, *p = json; p < end;) {
        const char *at = memchr(p, '<', (size_t)(end - p));
        tl_sbuf_put(out, p, (size_t)((at ? at : end) - p));
        if (at)
            tl_sbuf_puts(out, "\\u003c");
        p = at ? at + 1 : end;
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

static void put_page(TlSbuf *out, Page page, const char *title, const char *json, size_t size)
{
    static const unsigned char *const TEMPLATES[] = {[PAGE_EXPLAIN] = explain_template,
                                                     [PAGE_TUNE] = tune_template};
    const char *rest = put_until(out, (const char *)TEMPLATES[page], "@TITLE@");
    put_escaped(out, title);
    rest = put_until(out, rest, "@STYLE@");
    tl_sbuf_puts(out, (const char *)page_style);
    rest = put_until(out, rest, "@REPORT@");
    put_report(out, json, size);
    rest = put_until(out, rest, "@SCRIPT@");
    tl_sbuf_puts(out, (const char *)page_script);
    tl_sbuf_puts(out, rest);
}

int page_write(const char *path, Page page, const char *title, const char *json, size_t size)
{
    TlArena arena;
    TlSbuf text;
    Outputs outputs = {.program = "tilec"};
    tl_arena_init(&arena, (TlAlloc){0});
    tl_sbuf_init(&text, &arena);
    put_page(&text, page, title, json, size);
    bool ok = output_write(&outputs, path, text.text, text.len) && output_commit(&outputs);
    output_drop(&outputs);
    tl_arena_free(&arena);
    return ok ? EXIT_FINE : EXIT_USAGE;
}
