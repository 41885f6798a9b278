/* The files of the cache: one file for each result, named by the hash of its key.
 *
 *     FOLDER/CACHEDIR.TAG        tells backup programs to leave the folder out; without it, nothing
 *                                in the folder is an entry
 *     FOLDER/lock                byte ranges of it are locked, by key, while something is compiled
 *     FOLDER/added               one byte for each 4 KiB added since the folder was measured
 *     FOLDER/ab/cdef....         an entry: its name is the key's hash, 64 hexadecimal digits
 *     FOLDER/ab/.NAME-XXXXXX     an entry that is being written
 *
 * An entry is a header, the sizes of its parts, and the parts, each followed by a NUL: the key,
 * the result, the list of files read, and the diagnostics, one part for each call of the callback.
 * The header has a hash of everything else. An entry is trusted only if that hash and the whole
 * key match.
 *
 * Nothing here fails a compilation: an entry that cannot be read is a miss, and one that cannot be
 * written is dropped. The store is thread-safe and safe beside other processes: entries appear by
 * rename and disappear by unlink. A process that is killed leaves no lock behind, and at most one
 * file that nobody will read. */
#ifndef TL_CACHE_STORE_H
#define TL_CACHE_STORE_H
#include "codegen/cache/key.h"
#include "codegen/cache/trust.h"

enum { TL_STORE_PATH = 4096, TL_PART_KEY = 0, TL_PART_RESULT, TL_PART_DEPENDS, TL_PART_DIAGNOSTIC };

typedef struct TlStore {
    char folder[TL_STORE_PATH];
    uint64_t most; /* bytes of all entries */
    bool wary;     /* no option has named the folder: it must be the user's own */
} TlStore;

typedef struct TlPart {
    const char *data;
    size_t size;
} TlPart;

/* parts[TL_PART_DIAGNOSTIC] and those that follow are diagnostics. */
typedef struct TlEntry {
    TlPart *parts;
    uint32_t nparts;
} TlEntry;

/* Where the cache is. setting: a folder, "off", or NULL for what TILE_CACHE says, else
 * $XDG_CACHE_HOME/tile, else ~/.cache/tile. Its size is TILE_CACHE_SIZE, 1 GiB where that is not
 * set. The folder need not exist; a relative one is made absolute. false: there is no cache, and
 * why[size] says why: it is off, there is no home, the folder, which no setting names, is not the
 * user's own (trust.h), TILE_CACHE_SIZE is no size. */
bool tl_store_open(TlStore *s, const char *setting, char *why, size_t size);

/* The entry of that key; its parts are in the arena, each ended by a NUL. */
bool tl_store_get(const TlStore *s, TlPart key, TlArena *arena, TlEntry *out);
/* Adds or replaces one; makes room if there is more than `most` then. false: it could not be
 * written. */
bool tl_store_put(const TlStore *s, const TlEntry *entry);

/* Waits until nobody else, of this process or another, holds the key, which is to be released by
 * tl_store_unlock. -1: there can be no lock here, or somebody has held it for two minutes. */
int tl_store_lock(const TlStore *s, TlPart key);
void tl_store_unlock(int lock);

/* "500M": a number of bytes, or one with K, M or G. false: it is none. */
bool tl_store_size(const char *text, uint64_t *out);

/* ---- for tilec cache ---- */

typedef struct TlStored {
    const char *path; /* valid during the call */
    uint64_t bytes;   /* as the file system counts them */
    int64_t used;     /* when it was last written or read, in seconds since 1970 */
    bool partial;     /* it was being written */
} TlStored;

/* Calls f for each entry, in no particular order. false: some are left out, for want of memory. */
bool tl_store_each(const TlStore *s, void (*f)(void *user, const TlStored *stored), void *user);
/* Is the file a whole entry under its name? Its parts go to the arena. */
bool tl_store_read(const char *path, TlArena *arena, TlEntry *out);
typedef struct TlPruned {
    uint64_t removed, kept, bytes; /* files, files, bytes of those kept */
    bool missed;                   /* there are more, for which there was no memory */
} TlPruned;
/* Removes the entries that were used longest ago until at most `most` bytes are left, and files
 * that were being written more than an hour ago. */
TlPruned tl_store_prune(const TlStore *s, uint64_t most);
#endif
