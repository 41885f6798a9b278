/* Reading the files of a compilation. */
#ifndef TL_SOURCE_H
#define TL_SOURCE_H
#include <stdbool.h>

#include "ir/support/arena.h"

/* The file's text, ended by a NUL, in the arena; "-" is standard input. NULL: it cannot be read,
 * and *out_error says why, or is NULL if there is no such file. */
const char *tl_source_read(TlArena *arena, const char *path, size_t *out_size,
                           const char **out_error);
/* Can it be read only once, or is it no file at all? A pipe, a device, a folder, "-". */
bool tl_source_is_stream(const char *path);

/* Does the name say that it is a text of tile IR? */
bool tl_source_is_tile_ir(const char *name);

/* A file that was looked for. text NULL: it could not be read, and error says why, or is NULL if
 * there was none. */
typedef struct TlFile {
    const char *path, *text, *error;
    size_t size;
} TlFile;

/* Files as they were when the key was made, which are not read again: what was hashed is what is
 * compiled, even if they change and change back. */
typedef struct TlFiles {
    TL_VEC(TlFile) known;
    bool fixed;  /* no other one exists, whatever the disk says */
    bool others; /* another one was read; set by any thread */
    /* NULL: what is not known is read from disk; else this reads it, called by any thread */
    const char *(*read)(void *user, TlArena *arena, const char *path, size_t *out_size,
                        const char **out_error);
    void *user;
} TlFiles;

/* As tl_source_read, which is called for what is not known. files may be NULL. */
const char *tl_files_read(TlFiles *files, TlArena *arena, const char *path, size_t *out_size,
                          const char **out_error);
#endif
