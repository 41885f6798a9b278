/* The files of the cache; store.h describes their format. */
#include "codegen/cache/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ir/support/guard.h"

enum {
    VERSION = 1,
    MOST_PARTS = 1 << 10, /* of an entry; more is a damaged file */
    NAME = TL_HASH_DIGITS,
    NAME_MOST = 2 + NAME + 2 * 24, /* of an entry that is being written */
    MEASURE = 4096,                /* bytes that a byte of "added" stands for */
    SHARDS = 256,
    STALE = 3600,   /* seconds after which nobody goes on writing a file */
    TOUCH = 60,     /* seconds after which a use is noted again */
    PATIENCE = 120, /* seconds */
    MODE = 0600,
    NEW_FILE = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
    /* what is in the place of a file of ours may be a link or a pipe */
    OUR_FILE = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
};
static const char TAG[] = "CACHEDIR.TAG";
static const uint64_t SIZE = (uint64_t)1 << 30;

typedef struct Header {
    char magic[8];
    uint32_t version, nparts;
    unsigned char hash[TL_HASH_BYTES]; /* of the file, with zeros here */
} Header;
static const char MAGIC[8] = "tilecach";

/* ---- where it is ---- */

static bool set_folder(TlStore *s, const char *a, const char *b)
{
    int n = snprintf(s->folder, sizeof s->folder, "%s%s", a, b);
    return n > 0 && (size_t)n < sizeof s->folder - NAME_MOST - 4;
}

/* What is relative means the current folder of now. */
static bool set_said(TlStore *s, const char *said)
{
    char here[TL_STORE_PATH];
    if (*said == '/')
        return set_folder(s, said, "");
    if (!getcwd(here, sizeof here - 1))
        return false;
    return set_folder(s, strcat(here, "/"), said);
}

static const char *env(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

/* By the rules of the XDG base directories: a relative path does not count. */
static bool default_folder(TlStore *s)
{
    const char *cache = env("XDG_CACHE_HOME"), *home = env("HOME");
    if (cache && *cache == '/')
        return set_folder(s, cache, "/tile");
    return home && *home == '/' && set_folder(s, home, "/.cache/tile");
}

/* A place that no option has named must be the user's own (trust.h), whenever it is used: what was
 * not there yet may have been made by another meanwhile. */
static TlTrust trust(const TlStore *s)
{
    char real[TL_TRUST_PATH];
    return s->wary ? tl_trust_folder(s->folder, real, NULL, 0) : TL_TRUST_OWN;
}

static bool is_ours(TlStore *s, char *why, size_t size)
{
    char real[TL_TRUST_PATH];
    s->wary = true;
    return tl_trust_folder(s->folder, real, why, size) != TL_TRUST_NO && set_folder(s, real, "");
}

bool tl_store_size(const char *text, uint64_t *out)
{
    static const char UNITS[] = "KMG";
    char *end;
    if (*text < '0' || *text > '9') /* strtoull also takes spaces and signs */
        return false;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(UNITS, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - UNITS + 1) : 0;
    if (errno || (unit ? end[1] : *end) || n > UINT64_MAX >> shift)
        return false;
    *out = (uint64_t)n << shift;
    return true;
}

bool tl_store_open(TlStore *s, const char *setting, char *why, size_t size)
{
    const char *said = setting ? setting : env("TILE_CACHE"), *most = env("TILE_CACHE_SIZE");
    *s = (TlStore){.most = SIZE};
    if (most && !tl_store_size(most, &s->most))
        snprintf(why, size,
                 "TILE_CACHE_SIZE is '%s'; expected a number of bytes, or one with K, M "
                 "or G",
                 most);
    else if (said && !strcmp(said, "off"))
        snprintf(why, size, "it is off%s", setting ? "" : " (TILE_CACHE)");
    else if (said && !set_said(s, said))
        snprintf(why, size, "the name of its folder is too long, or the current folder is gone");
    else if (!said && !default_folder(s))
        snprintf(why, size, "neither XDG_CACHE_HOME nor HOME is an absolute path");
    else
        return setting || is_ours(s, why, size);
    return false;
}

/* ---- names ---- */

typedef struct Path {
    char text[TL_STORE_PATH + NAME_MOST];
} Path;

static Path inside(const TlStore *s, const char *name)
{
    Path p;
    snprintf(p.text, sizeof p.text, "%s/%s", s->folder, name);
    return p;
}

static Path path_of(const TlStore *s, TlPart key)
{
    Path p;
    char digits[NAME + 1];
    tl_hash_digits(key.data, key.size, digits);
    snprintf(p.text, sizeof p.text, "%s/%.2s/%s", s->folder, digits, digits + 2);
    return p;
}

static bool is_digits(const char *text, size_t n)
{
    return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

/* ---- folders ---- */

/* Makes the folders on the way to a path in the cache, for this user alone. */
static bool make_folders(const TlStore *s, const char *path)
{
    if (trust(s) == TL_TRUST_NO)
        return false;
    char part[TL_STORE_PATH + NAME_MOST];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0700) && errno != EEXIST)
            return false;
    }
    return trust(s) == TL_TRUST_OWN;
}

/* ---- reading ---- */

static bool read_whole(int f, char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(f, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* The size that an entry's first bytes tell; 0: it is none. Who believes a file's size asks for as
 * much memory as anybody wants. */
static uint64_t told_size(int f)
{
    Header h;
    uint64_t sizes[MOST_PARTS], size = sizeof h;
    if (!read_whole(f, (char *)&h, sizeof h) || memcmp(h.magic, MAGIC, sizeof MAGIC) ||
        h.version != VERSION || h.nparts > MOST_PARTS || h.nparts < TL_PART_DIAGNOSTIC ||
        !read_whole(f, (char *)sizes, h.nparts * sizeof *sizes))
        return 0;
    size += h.nparts * sizeof *sizes;
    for (uint32_t i = 0; i < h.nparts; i++) {
        if (sizes[i] >= INT64_MAX - size)
            return 0;
        size += sizes[i] + 1;
    }
    return size;
}

/* Opens a regular file of ours, and nothing else. */
static int open_ours(const char *path, int flags, struct stat *st)
{
    int f = open(path, flags | OUR_FILE, MODE);
    if (f >= 0 && (fstat(f, st) || !S_ISREG(st->st_mode))) {
        close(f);
        f = -1;
    }
    return f;
}

/* Is it a file of the size that it tells? */
static bool is_entry(const char *path, struct stat *st)
{
    int f = open_ours(path, O_RDONLY, st);
    if (f < 0)
        return false;
    bool ok = st->st_size > 0 && told_size(f) == (uint64_t)st->st_size;
    close(f);
    return ok;
}

static void hash_entry(char *data, size_t size, unsigned char out[TL_HASH_BYTES])
{
    Header *h = (Header *)data;
    memset(h->hash, 0, sizeof h->hash);
    tl_hash_bytes(data, size, out);
}

/* The parts of an entry's bytes, in place. */
static bool split(char *data, size_t size, TlArena *arena, TlEntry *out)
{
    Header h;
    unsigned char hash[TL_HASH_BYTES];
    memcpy(&h, data, sizeof h);
    if (memcmp(h.magic, MAGIC, sizeof MAGIC) || h.version != VERSION || h.nparts > MOST_PARTS ||
        h.nparts < TL_PART_DIAGNOSTIC || size - sizeof h < h.nparts * sizeof(uint64_t))
        return false;
    hash_entry(data, size, hash);
    if (memcmp(hash, h.hash, sizeof hash))
        return false;
    size_t at = sizeof h + h.nparts * sizeof(uint64_t);
    *out = (TlEntry){TL_NEW_ARRAY(arena, TlPart, h.nparts), h.nparts};
    for (uint32_t i = 0; i < h.nparts; i++) {
        uint64_t n;
        memcpy(&n, data + sizeof h + i * sizeof n, sizeof n);
        if (n >= size - at || data[at + n])
            return false;
        out->parts[i] = (TlPart){data + at, n};
        at += n + 1;
    }
    return at == size;
}

/* Nothing is open while memory is asked for: a fault would leave it open. */
static bool read_entry(const char *path, TlArena *arena, struct stat *st, TlEntry *out)
{
    struct stat now;
    if (!is_entry(path, st))
        return false;
    size_t size = (size_t)st->st_size;
    char *data = tl_alloc(arena, size);
    int f = open_ours(path, O_RDONLY, &now);
    if (f < 0)
        return false;
    bool whole = now.st_size == st->st_size && read_whole(f, data, size);
    close(f);
    return whole && split(data, size, arena, out);
}

bool tl_store_read(const char *path, TlArena *arena, TlEntry *out)
{
    struct stat st;
    char digits[NAME + 1];
    size_t length = strlen(path);
    if (length < NAME + 1 || !read_entry(path, arena, &st, out))
        return false;
    const char *name = path + length - NAME - 1; /* "ab/cdef..." */
    tl_hash_digits(out->parts[TL_PART_KEY].data, out->parts[TL_PART_KEY].size, digits);
    return !memcmp(name, digits, 2) && name[2] == '/' && !strcmp(name + 3, digits + 2);
}

bool tl_store_get(const TlStore *s, TlPart key, TlArena *arena, TlEntry *out)
{
    Path path = path_of(s, key);
    struct stat st;
    if (trust(s) != TL_TRUST_OWN || !read_entry(path.text, arena, &st, out) ||
        (s->wary && !tl_trust_file(&st)) || out->parts[TL_PART_KEY].size != key.size ||
        memcmp(out->parts[TL_PART_KEY].data, key.data, key.size) != 0)
        return false;
    int64_t age = time(NULL) - st.st_mtim.tv_sec; /* negative: the clock was set back */
    if (age > TOUCH || age < -TOUCH)
        utimensat(AT_FDCWD, path.text, NULL, AT_SYMLINK_NOFOLLOW);
    return true;
}

/* ---- writing ---- */

/* Would a limit of the process stop the file, and a signal the process? */
static bool may_write(uint64_t size)
{
    struct rlimit limit;
    struct sigaction on_limit;
    return getrlimit(RLIMIT_FSIZE, &limit) || size <= limit.rlim_cur ||
           (sigaction(SIGXFSZ, NULL, &on_limit) == 0 && on_limit.sa_handler == SIG_IGN);
}

static bool write_whole(int f, const void *data, size_t size)
{
    for (const char *p = data; size > 0;) {
        ssize_t n = write(f, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

/* Is it a cache? Files of other folders are nobody's business, whatever their names. */
static bool has_tag(const TlStore *s)
{
    struct stat st;
    return lstat(inside(s, TAG).text, &st) == 0;
}

/* The tag is complete or empty; that it is there counts. */
static bool write_tag(const TlStore *s)
{
    static const char TEXT[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                               "# The cache of tilec. For information about cache directory tags "
                               "see https://bford.info/cachedir/\n";
    if (has_tag(s))
        return true;
    int f = may_write(sizeof TEXT) ? open(inside(s, TAG).text, NEW_FILE, MODE) : -1;
    if (f < 0)
        return errno == EEXIST && has_tag(s);
    bool ok = write_whole(f, TEXT, sizeof TEXT - 1);
    return close(f) == 0 && ok;
}

static size_t size_of(const TlEntry *e)
{
    size_t size = sizeof(Header) + e->nparts * sizeof(uint64_t);
    for (uint32_t i = 0; i < e->nparts; i++)
        size += e->parts[i].size + 1;
    return size;
}

/* The entry's bytes; NULL: no memory. */
static char *join(const TlEntry *e, size_t size)
{
    char *data = malloc(size), *to = data;
    if (!data)
        return NULL;
    Header h = {.version = VERSION, .nparts = e->nparts};
    memcpy(h.magic, MAGIC, sizeof MAGIC);
    to = mempcpy(to, &h, sizeof h);
    for (uint32_t i = 0; i < e->nparts; i++) {
        uint64_t n = e->parts[i].size;
        to = mempcpy(to, &n, sizeof n);
    }
    for (uint32_t i = 0; i < e->nparts; i++) {
        if (e->parts[i].size)
            to = mempcpy(to, e->parts[i].data, e->parts[i].size);
        *to++ = 0;
    }
    unsigned char hash[TL_HASH_BYTES];
    hash_entry(data, size, hash);
    memcpy(((Header *)data)->hash, hash, sizeof hash);
    return data;
}

/* Beside its place, then renamed. The name beside is drawn: what a killed process left is no
 * obstacle for one with the same number. */
static bool write_file(const char *path, const char *data, size_t size)
{
    char beside[TL_STORE_PATH + NAME_MOST];
    const char *slash = strrchr(path, '/');
    TL_ASSERT(slash, "'%s' is in no folder", path);
    int n = snprintf(beside, sizeof beside, "%.*s/.%s-XXXXXX", (int)(slash - path), path,
                     slash + 1);
    if (n < 0 || (size_t)n >= sizeof beside || !may_write(size))
        return false;
    int f = mkostemp(beside, O_CLOEXEC);
    if (f < 0)
        return false;
    bool ok = write_whole(f, data, size);
    ok = close(f) == 0 && ok && rename(beside, path) == 0;
    if (!ok)
        unlink(beside);
    return ok;
}

/* ---- locks ---- */

/* A lock of a byte of one file: the kernel drops it with the file's last use, however the process
 * ends; it keeps threads apart, too, since each opens the file for itself. */
int tl_store_lock(const TlStore *s, TlPart key)
{
    Path path = inside(s, "lock");
    unsigned char hash[TL_HASH_BYTES];
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int64_t where;
    if (!make_folders(s, path.text))
        return -1;
    struct stat st;
    int f = open_ours(path.text, O_RDWR | O_CREAT, &st);
    tl_hash_bytes(key.data, key.size, hash);
    memcpy(&where, hash, sizeof where);
    byte.l_start = where & INT64_MAX >> 2;
    for (int64_t waited = 0, pause = 1; f >= 0; waited += pause) {
        if (fcntl(f, F_OFD_SETLK, &byte) == 0)
            return f;
        if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || waited > PATIENCE * 1000)
            break;
        pause = waited < 100 ? 1 : 10;
        nanosleep(&(struct timespec){.tv_nsec = pause * 1000000}, NULL);
    }
    if (f >= 0)
        close(f);
    return -1;
}

/* A child of the process may have the file open, too: closing it is not enough. */
void tl_store_unlock(int lock)
{
    if (lock < 0)
        return;
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(lock, F_OFD_SETLK, &all);
    close(lock);
}

/* ---- all entries ---- */

/* false: no memory. */
static bool each_of(const TlStore *s, const char *shard,
                    void (*f)(void *user, const TlStored *stored), void *user)
{
    Path folder = inside(s, shard);
    int at = open(folder.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = at >= 0 ? fdopendir(at) : NULL;
    bool ok = d || at < 0 || errno != ENOMEM;
    if (!d && at >= 0)
        close(at);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[sizeof(Path) + 256];
        struct stat st;
        bool partial = e->d_name[0] == '.' && strlen(e->d_name) > NAME - 2 &&
                       strspn(e->d_name + 1, "0123456789abcdef") == NAME - 2;
        if (!partial && !is_digits(e->d_name, NAME - 2))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder.text, e->d_name);
        if (lstat(path, &st) || !S_ISREG(st.st_mode))
            continue;
        f(user, &(TlStored){path, (uint64_t)st.st_blocks * 512, st.st_mtim.tv_sec, partial});
    }
    if (d)
        closedir(d);
    return ok;
}

bool tl_store_each(const TlStore *s, void (*f)(void *user, const TlStored *stored), void *user)
{
    bool ok = true;
    for (unsigned i = 0; i < SHARDS && has_tag(s); i++) {
        char shard[4];
        snprintf(shard, sizeof shard, "%02x", i);
        ok = each_of(s, shard, f, user) && ok;
    }
    return ok;
}

typedef struct Old {
    char *path;
    uint64_t bytes;
    int64_t used;
    bool stale;
} Old;

typedef struct All {
    Old *data;
    size_t len, cap;
    int64_t now;
    bool missed; /* there was no memory for one: it stays until the next time */
} All;

static void list_one(void *user, const TlStored *stored)
{
    All *all = user;
    if (all->len == all->cap) {
        size_t cap = all->cap ? 2 * all->cap : 256;
        Old *more = realloc(all->data, cap * sizeof *more);
        all->missed = all->missed || !more;
        if (!more)
            return;
        all->data = more;
        all->cap = cap;
    }
    /* what the future used goes first: else it would stay until then, and what is new would not */
    bool future = stored->used - all->now > STALE;
    bool stale = stored->partial && (future || all->now - stored->used > STALE);
    char *path = strdup(stored->path);
    all->missed = all->missed || !path;
    if (path)
        all->data[all->len++] = (Old){path, stored->bytes, future ? 0 : stored->used, stale};
}

/* Stale files first, then by the time of their last use. */
static int by_age(const void *a, const void *b)
{
    const Old *x = a, *y = b;
    if (x->stale != y->stale)
        return y->stale - x->stale;
    return (x->used > y->used) - (x->used < y->used);
}

static bool is_gone(const char *path)
{
    return unlink(path) == 0 || errno == ENOENT; /* another process makes room, too */
}

/* If there is more than `most`, removes until `enough` is left. */
static TlPruned prune(const TlStore *s, uint64_t most, uint64_t enough)
{
    TlPruned p = {0};
    All all = {.now = time(NULL)};
    struct stat st;
    int added = open_ours(inside(s, "added").text, O_WRONLY, &st);
    if (added >= 0) {
        if (ftruncate(added, 0)) {
            /* measured again sooner than needed */
        }
        close(added);
    }
    p.missed = !tl_store_each(s, list_one, &all) || all.missed;
    for (size_t i = 0; i < all.len; i++)
        p.bytes += all.data[i].bytes;
    if (all.len)
        qsort(all.data, all.len, sizeof *all.data, by_age);
    if (p.bytes <= most)
        enough = most;
    for (size_t i = 0; i < all.len; i++) {
        const Old *o = &all.data[i];
        if ((o->stale || p.bytes > enough) && is_gone(o->path)) {
            p.removed++;
            p.bytes -= o->bytes;
        } else {
            p.kept++;
        }
        free(o->path);
    }
    free(all.data);
    return p;
}

TlPruned tl_store_prune(const TlStore *s, uint64_t most)
{
    return prune(s, most, most);
}

/* ---- adding ---- */

/* A tenth more, or every result that follows would measure the folder again. */
static void make_room(const TlStore *s)
{
    prune(s, s->most, s->most - s->most / 10);
}

/* The folder is measured when more than a sixteenth of its size has been added since. */
static void count(const TlStore *s, size_t size)
{
    static const char DOTS[256] = {0};
    Path path = inside(s, "added");
    struct stat st;
    int f = open_ours(path.text, O_WRONLY | O_CREAT | O_APPEND, &st);
    if (f < 0) { /* without it, nobody would notice that there is too much */
        unlink(path.text);
        make_room(s);
        return;
    }
    bool may = may_write((uint64_t)st.st_size + size);
    for (size_t n = (size + MEASURE - 1) / MEASURE; may && n > 0;) {
        size_t some = n < sizeof DOTS ? n : sizeof DOTS;
        if (!write_whole(f, DOTS, some))
            break;
        n -= some;
    }
    bool full = fstat(f, &st) == 0 && (uint64_t)st.st_size > s->most / 16 / MEASURE;
    close(f);
    if (full)
        make_room(s);
}

bool tl_store_put(const TlStore *s, const TlEntry *entry)
{
    TL_ASSERT(entry->nparts >= TL_PART_DIAGNOSTIC, "an entry of %u parts", entry->nparts);
    size_t size = size_of(entry);
    if (entry->nparts > MOST_PARTS || size > s->most)
        return false;
    Path path = path_of(s, entry->parts[TL_PART_KEY]);
    if (!make_folders(s, path.text))
        return false;
    char *data = write_tag(s) ? join(entry, size) : NULL;
    bool ok = data && write_file(path.text, data, size);
    free(data);
    if (ok)
        count(s, size);
    return ok;
}
