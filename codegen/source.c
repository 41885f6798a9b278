/* Reading the files of a compilation. */
#include "codegen/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool tl_source_is_stream(const char *path)
{
    struct stat st;
    return !strcmp(path, "-") || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

bool tl_source_is_tile_ir(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && !strcmp(name + n - 4, ".tir");
}

/* The front end rejects more than 16 MiB. */
enum { MOST_BYTES = 17 << 20 };

const char *tl_source_read(TlArena *arena, const char *path, size_t *out_size,
                           const char **out_error)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!f) {
        *out_error = errno == ENOENT ? NULL : tl_format(arena, "%s", strerror(errno));
        return NULL;
    }
    TlSbuf s;
    tl_sbuf_init(&s, arena);
    errno = 0;
    bool ok = tl_sbuf_read(&s, f, MOST_BYTES);
    int error = errno;
    if (f != stdin)
        fclose(f);
    if (!ok)
        *out_error = tl_format(arena, "%s", error ? strerror(error) : "read error");
    *out_size = s.len;
    return ok ? s.text : NULL;
}

const char *tl_files_read(TlFiles *files, TlArena *arena, const char *path, size_t *out_size,
                          const char **out_error)
{
    for (uint32_t i = 0; files && i < files->known.len; i++) {
        const TlFile *f = &files->known.data[i];
        if (strcmp(f->path, path) != 0)
            continue;
        *out_size = f->size;
        *out_error = f->error;
        return f->text;
    }
    if (files && files->fixed) {
        *out_error = NULL;
        return NULL;
    }
    if (files)
        __atomic_store_n(&files->others, true, __ATOMIC_RELAXED);
    if (files && files->read)
        return files->read(files->user, arena, path, out_size, out_error);
    return tl_source_read(arena, path, out_size, out_error);
}
