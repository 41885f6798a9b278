/* Whether others could have written a folder or a program that an environment variable, or a
 * default, names.
 *
 * A folder counts as the user's own if it and all folders above it belong to the user (the
 * effective one) or to root, and nobody else may write to them (the user's group may, if it is the
 * user's alone: private_group.h). A folder above it may be writable by all if it is sticky, as /tmp
 * is: there, nobody can replace what belongs to others. Links are followed first. What the user
 * names in an option is used without this check. */
#ifndef TL_TRUST_H
#define TL_TRUST_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { TL_TRUST_PATH = 4096 };

typedef enum TlTrust {
    TL_TRUST_NO,     /* it is not the user's own; `why` says why */
    TL_TRUST_ABSENT, /* it is not there, and only the user could make it, or in a sticky folder
                      * anybody: ask again when it has been made */
    TL_TRUST_OWN
} TlTrust;

/* path: absolute. real[TL_TRUST_PATH] gets the path without links; why[size] may be NULL. */
TlTrust tl_trust_folder(const char *path, char *real, char *why, size_t size);
/* Does a file in such a folder belong to the user or root, and can nobody else write to it? */
bool tl_trust_file(const struct stat *st);

/* The folder for temporary files: TMPDIR, else /tmp, with a name that mkdtemp takes at the end.
 * false: neither is safe to use. */
bool tl_trust_temporary(char out_template[TL_TRUST_PATH]);
/* The ptxas to start, by its absolute path: TILE_PTXAS, which is used as it is; else the first one
 * in a folder of PATH that is the user's own. false: there is none, and why[size] says so. */
bool tl_trust_ptxas(char out_path[TL_TRUST_PATH], char *why, size_t size);
#endif
