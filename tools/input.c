/* input.c: a file's text, for sub-commands that work on it without compiling it. */
#include "tools/input.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 17 << 20 }; /* more than the front end takes, and it says so itself */

static bool read_stream(FILE *f, TlSbuf *out)
{
    char piece[1 << 14];
    size_t n;
    errno = 0;
    while (out->len < MOST_BYTES && (n = fread(piece, 1, sizeof piece, f)) > 0)
        tl_sbuf_put(out, piece, n);
    tl_sbuf_put(out, "", 0);
    return !ferror(f);
}

bool input_read(const char *path, TlSbuf *out)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : fopen(path, "rb");
    bool ok = f && read_stream(f, out);
    int error = errno;
    if (f && !standard)
        fclose(f);
    errno = error;
    return ok;
}
