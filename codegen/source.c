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
enum { MOST = 17 << 20 };

static const char *read_stream(TlArena *arena, FILE *f, size_t *out_size)
{
    TlSbuf s;
    tl_sbuf_init(&s, arena);
    char block[1 << 14];
    for (size_t n; s.len <= MOST && (n = fread(block, 1, sizeof block, f)) > 0;)
        tl_sbuf_put(&s, block, n);
    tl_sbuf_put(&s, "", 0);
    *out_size = s.len;
    return s.text;
}

const char *tl_source_read(TlArena *arena, const char *path, size_t *out_size,
                           const char **out_error)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!f) {
        *out_error = errno == ENOENT ? NULL : tl_format(arena, "%s", strerror(errno));
        return NULL;
    }
    errno = 0;
    const char *text = read_stream(arena, f, out_size);
    bool bad = ferror(f);
    int error = errno;
    if (f != stdin)
        fclose(f);
    if (bad)
        *out_error = tl_format(arena, "%s", error ? strerror(error) : "read error");
    return bad ? NULL : text;
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
