/* tilec_error.c: tilec error: what diagnostics mean. */
#include "frontend/errors.h"
#include "ir/support/guard.h"
#include "tools/tilec_options.h"
#include <string.h>

static int explain(TlSbuf *text, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--markdown") == 0)
            tl_errors_page(text);
        else if (!tl_errors_explain(text, argv[i]))
            return usage_error(
                "no diagnostic is called '%s'; names are as in error[E0303], warning[unused]",
                argv[i]);
        if (i + 1 < argc)
            tl_sbuf_puts(text, "\n");
    }
    return EXIT_FINE;
}

int command_error(int argc, char **argv)
{
    if (argc == 0)
        return usage_error(
            "error takes the name in brackets of error[E0303] or warning[unused]");
    TlArena arena;
    TlSbuf text;
    TlGuard guard;
    int status = EXIT_INTERNAL;
    tl_arena_init(&arena, (TlAlloc){0});
    if (TL_GUARD(&guard)) {
        tl_sbuf_init(&text, &arena);
        status = explain(&text, argc, argv);
        if (status == EXIT_FINE)
            fwrite(text.text, 1, text.len, stdout);
        tl_guard_pop(&guard);
    } else {
        fprintf(stderr, "tilec: %s\n", guard.text);
    }
    tl_arena_free(&arena);
    return status;
}
