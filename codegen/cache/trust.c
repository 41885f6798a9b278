/* Who owns a folder or a program (trust.h). The environment is read through secure_getenv alone,
 * which returns nothing when a program has more rights than its caller. */
#include "codegen/cache/trust.h"
#include "codegen/cache/private_group.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

_Static_assert(TL_TRUST_PATH >= PATH_MAX, "realpath writes so much");

static TlTrust refuse(char *why, size_t size, const char *path, const char *text)
{
    if (why)
        snprintf(why, size, "'%s' %s", path, text);
    return TL_TRUST_NO;
}

static bool is_users(const struct stat *st)
{
    return st->st_uid == geteuid() || st->st_uid == 0;
}

/* A list of access beside the mode may let anybody in, whose mask is what the mode shows then. */
static bool has_list(const char *path)
{
    return lgetxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

/* May somebody else write to what is at the path? With umask 002, which Ubuntu gives people, their
 * folders may be written by their own group, in which nobody else is. */
static bool others_write(const char *path, const struct stat *st)
{
    if (st->st_mode & 002)
        return true;
    return (st->st_mode & 020) && (st->st_uid != geteuid() || has_list(path) ||
                                   !tl_private_group(st->st_uid, st->st_gid));
}

/* parent: something in it is meant, not the folder itself. */
static const char *fault_of(const char *path, bool parent)
{
    struct stat st;
    if (lstat(path, &st))
        return "cannot be looked at";
    if (!S_ISDIR(st.st_mode))
        return "is no folder";
    if (!is_users(&st))
        return "belongs to another user";
    if (!(parent && (st.st_mode & S_ISVTX)) && others_write(path, &st))
        return "can be written by others";
    return NULL;
}

bool tl_trust_file(const struct stat *st)
{
    return is_users(st) && !(st->st_mode & 022);
}

/* Cuts off the last name; false: there is only the root. */
static bool cut(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || !path[1])
        return false;
    slash[slash == path] = 0;
    return true;
}

/* The real path of what exists of a path: its first *out_known characters. */
static bool resolve(const char *path, char *real, size_t *out_known)
{
    char known[TL_TRUST_PATH];
    struct stat st;
    snprintf(known, sizeof known, "%s", path);
    for (size_t n = strlen(known); n > 1 && known[n - 1] == '/';)
        known[--n] = 0;
    while (!realpath(known, real))
        if (errno != ENOENT || lstat(known, &st) == 0 /* a link to nowhere */ || !cut(known))
            return false;
    *out_known = strlen(known);
    return true;
}

/* Names that lead elsewhere once they exist. */
static bool has_dots(const char *rest)
{
    for (const char *p = rest; (p = strstr(p, "/.")); p += 2)
        if (!p[2] || p[2] == '/' || (p[2] == '.' && (!p[3] || p[3] == '/')))
            return true;
    return false;
}

TlTrust tl_trust_folder(const char *path, char *real, char *why, size_t size)
{
    char above[TL_TRUST_PATH];
    size_t known, length = strlen(path);
    if (*path != '/' || length >= TL_TRUST_PATH || !resolve(path, real, &known))
        return refuse(why, size, path, "cannot be found");
    const char *rest = path + known + strspn(path + known, "/");
    bool parent = *rest != 0;
    snprintf(above, sizeof above, "%s", real);
    do {
        const char *fault = fault_of(above, parent);
        if (fault)
            return refuse(why, size, above, fault);
        parent = true;
    } while (cut(above));
    if (!*rest)
        return TL_TRUST_OWN;
    size_t n = strlen(real);
    if (has_dots(path + known) ||
        (size_t)snprintf(real + n, TL_TRUST_PATH - n, "%s%s", n > 1 ? "/" : "", rest) >=
            TL_TRUST_PATH - n)
        return refuse(why, size, path, "cannot be found");
    return TL_TRUST_ABSENT;
}

bool tl_trust_temporary(char out_template[TL_TRUST_PATH])
{
    const char *said = secure_getenv("TMPDIR");
    const char *const folders[] = {said && *said == '/' ? said : "/tmp", "/tmp"};
    for (int i = 0; i < 2; i++) {
        char name[TL_TRUST_PATH];
        int n = snprintf(name, sizeof name, "%s/tilec-XXXXXX", folders[i]);
        if (n > 0 && (size_t)n < sizeof name - 64 && euidaccess(folders[i], W_OK | X_OK) == 0 &&
            tl_trust_folder(name, out_template, NULL, 0) == TL_TRUST_ABSENT)
            return true;
    }
    return false;
}

/* ---- ptxas ---- */

static bool is_program(const char *path, struct stat *st)
{
    return stat(path, st) == 0 && S_ISREG(st->st_mode) && access(path, X_OK) == 0;
}

/* A program may be a link to one that is elsewhere: that one counts, and its folder. */
static bool is_own_program(const char *path, char *real, char *why, size_t size)
{
    char folder[TL_TRUST_PATH], unused[TL_TRUST_PATH];
    struct stat st;
    if (!realpath(path, real) || !is_program(real, &st))
        return false;
    snprintf(folder, sizeof folder, "%s", path);
    if (!cut(folder) || tl_trust_folder(folder, unused, why, size) != TL_TRUST_OWN)
        return false;
    snprintf(folder, sizeof folder, "%s", real);
    if (!cut(folder) || tl_trust_folder(folder, unused, why, size) != TL_TRUST_OWN)
        return false;
    if (!tl_trust_file(&st))
        refuse(why, size, real, "belongs to another user, or others can write it");
    return tl_trust_file(&st);
}

bool tl_trust_ptxas(char out_path[TL_TRUST_PATH], char *why, size_t size)
{
    const char *said = secure_getenv("TILE_PTXAS"), *path = secure_getenv("PATH");
    char refused[TL_TRUST_PATH + 64] = "";
    struct stat st;
    if (said && *said == '/' && is_program(said, &st)) {
        snprintf(out_path, TL_TRUST_PATH, "%s", said);
        return true;
    }
    if (said && *said) {
        snprintf(why, size, "TILE_PTXAS is '%s', but must be the absolute path of a program", said);
        return false;
    }
    for (const char *p = path ? path : ""; *p; p += *p == ':') {
        char file[TL_TRUST_PATH];
        int n = (int)strcspn(p, ":"), length = snprintf(file, sizeof file, "%.*s/ptxas", n, p);
        bool absolute = *p == '/' && length < TL_TRUST_PATH;
        p += n;
        if (absolute && is_program(file, &st) &&
            is_own_program(file, out_path, refused, sizeof refused))
            return true;
    }
    snprintf(why, size, "no ptxas on PATH%s%s%s", *refused ? " that can be trusted: " : "", refused,
             *refused ? " (TILE_PTXAS=FILE names one to use anyway)" : "");
    return false;
}
