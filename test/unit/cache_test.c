/* The cache: the key knows every option; files that are damaged at any byte are misses; full and
 * missing folders cost nothing but time; once per key; the oldest entries go first. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "codegen/cache/store.h"
#include "codegen/options.h"
#include "ir/support/guard.h"
#include "test/unit/unit.h"

/* A check whose failure says more. */
#define CHECKF(cond, ...)                                                                          \
    (void)(CHECK(cond) || (fprintf(stderr, "    " __VA_ARGS__), fputc('\n', stderr)))

static const char SOURCE[] = "kernel twice(const f32 x[N], f32 y[N], const int B)\n"
                             "    grid(cdiv(N, B))\n"
                             "{\n"
                             "    int i = pid(0) * B;\n"
                             "    y[i +: B] = x[i +: B] * 2.0;\n"
                             "}\n";
static const tilec_const CONSTS[] = {{"B", "16"}, {"B", "32"}};

/* ---- the key ---- */

static void every_member_is_listed(void)
{
    static const struct {
        const char *name;
        size_t at, size;
    } members[] = {
#define MEMBER(member)                                                                             \
    {#member, offsetof(tilec_options, member), sizeof(((tilec_options *)0)->member)},
#define FREE(member)          MEMBER(member)
#define FOLDER(member)        MEMBER(member)
#define TEXT(member)          MEMBER(member)
#define NUMBER(member)        MEMBER(member)
#define LIST(member, count)   MEMBER(member) MEMBER(count)
#define CONSTS(member, count) MEMBER(member) MEMBER(count)
#define TUNED(member, count)  MEMBER(member) MEMBER(count)
#define WATCH(member, unset)  MEMBER(member)
#include "codegen/cache/key.def"
    };
    size_t end = 0;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        size_t align = members[i].size < 8 ? members[i].size : 8;
        CHECKF(members[i].at == (end + align - 1) / align * align,
               "before %s, something of "
               "tilec_options is missing in key.def",
               members[i].name);
        end = members[i].at + members[i].size;
    }
    CHECKF((end + 7) / 8 * 8 == sizeof(tilec_options), "the last members of tilec_options are "
                                                       "missing in key.def");
}

static char *key_of(TlArena *arena, const tilec_options *o)
{
    TlSbuf key;
    tl_sbuf_init(&key, arena);
    tl_key_begin(&key, o);
    return key.text;
}

/* Each option, set to something else, changes the key; what makes a compilation be watched, or none
 * of both, is said by the table. */
static void every_option_counts(void)
{
    static const char *const dirs[] = {"a", "b"}, *const other_dirs[] = {"a", "c"};
    TlArena arena;
    tl_arena_init(&arena, (TlAlloc){0});
    tilec_options o;
    tl_options_take(&o, NULL); /* complete, as keys have them */
    o.consts = CONSTS, o.nconsts = 1;
    o.include_dirs = o.warnings = dirs;
    o.ninclude_dirs = o.nwarnings = 2;
    const int32_t buckets[] = {3, 4, 5};
    const tilec_tuned tuned = {"cpu", "k", "1", "", "M N", buckets, 2, dirs, 2};
    tilec_tuned other;
    o.tuned = &tuned, o.ntuned = 1;
    char *key = key_of(&arena, &o);
    CHECK(tl_key_may(&o) && strcmp(key, key_of(&arena, &o)) == 0);
    tilec_options with;
    int changed = 0, watched = 0;
#define DIFFERS(change)                                                                            \
    with = o;                                                                                      \
    change;                                                                                        \
    changed += strcmp(key, key_of(&arena, &with)) != 0;                                            \
    CHECKF(strcmp(key, key_of(&arena, &with)) != 0, "the key does not know %s", #change)
#define FREE(member)
#define FOLDER(member)
#define TEXT(member)                                                                               \
    DIFFERS(with.member = "another");                                                              \
    DIFFERS(with.member = with.member ? NULL : "");
#define NUMBER(member) DIFFERS(with.member++);
#define LIST(member, count)                                                                        \
    DIFFERS(with.member = other_dirs);                                                             \
    DIFFERS(with.count--);
#define CONSTS(member, count)                                                                      \
    DIFFERS(with.member = CONSTS + 1);                                                             \
    DIFFERS(with.count++);
#define TUNED(member, count)                                                                       \
    DIFFERS(with.count = 0);                                                                       \
    DIFFERS_IN(other.target = NULL);                                                               \
    DIFFERS_IN(other.kernel = "l");                                                                \
    DIFFERS_IN(other.hash = "2");                                                                  \
    DIFFERS_IN(other.constants = "T=f16");                                                         \
    DIFFERS_IN(other.keys = "N M");                                                                \
    DIFFERS_IN(other.bucket = buckets + 1);                                                        \
    DIFFERS_IN(other.nbucket = 1);                                                                 \
    DIFFERS_IN(other.configs = other_dirs);                                                        \
    DIFFERS_IN(other.nconfigs = 1);
#define DIFFERS_IN(change) DIFFERS((other = tuned, change, with.tuned = &other))
#define WATCH(member, unset)                                                                       \
    with = o;                                                                                      \
    memset(&with.member, 1, sizeof with.member);                                                   \
    watched++;                                                                                     \
    CHECKF(!tl_key_may(&with), "%s does not keep the cache away", #member);
#include "codegen/cache/key.def"
    CHECK(changed > 20 && watched > 5);
    tl_arena_free(&arena);
}

static void values_cannot_run_together(void)
{
    TlArena arena;
    size_t size;
    tl_arena_init(&arena, (TlAlloc){0});
    tilec_options a = TILEC_OPTIONS_INIT, b = a;
    a.kernel = "x\nname 1:y";
    b.kernel = "x";
    b.name = "y";
    char *ka = key_of(&arena, &a), *kb = key_of(&arena, &b);
    CHECK(strcmp(ka, kb) != 0);
    const char *found = tl_key_find(ka, strlen(ka), "kernel", &size);
    CHECK(found && size == 10 && !memcmp(found, a.kernel, 10));
    CHECK(!tl_key_find(ka, strlen(ka), "name", &size)); /* it is in the kernel's value */
    found = tl_key_find(kb, strlen(kb), "name", &size);
    CHECK(found && size == 1 && *found == 'y');
    for (size_t n = 0; n < strlen(ka); n++) /* cut off anywhere */
        tl_key_find(ka, n, "nothing", &size);
    tl_arena_free(&arena);
}

static void hash_is_blake3(void)
{
    char digits[TL_HASH_DIGITS + 1];
    tl_hash_digits("", 0, digits);
    CHECK_STR(digits, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    tl_hash_digits("abc", 3, digits);
    CHECK_STR(digits, "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
}

/* ---- the store ---- */

static char folder[] = "/tmp/cache_test-XXXXXX";
static char scratch[256];

static TlStore open_store(const char *name)
{
    TlStore s;
    char why[512];
    snprintf(scratch, sizeof scratch, "%s/%s", folder, name);
    CHECKF(tl_store_open(&s, scratch, why, sizeof why), "%s", why);
    return s;
}

static TlPart part(const char *text)
{
    return (TlPart){text, strlen(text)};
}

static bool put(const TlStore *s, const char *key, const char *result)
{
    TlPart parts[] = {part(key), part(result), part("a.tile\n"), part("warning one"), part("two")};
    return tl_store_put(s, &(TlEntry){parts, 5});
}

static bool has(const TlStore *s, const char *key, const char *result)
{
    TlArena arena;
    TlEntry e;
    tl_arena_init(&arena, (TlAlloc){0});
    bool ok = tl_store_get(s, part(key), &arena, &e);
    if (ok)
        CHECK(e.nparts == 5 && !strcmp(e.parts[TL_PART_RESULT].data, result) &&
              !strcmp(e.parts[TL_PART_DIAGNOSTIC + 1].data, "two"));
    tl_arena_free(&arena);
    return ok;
}

static void note_path(void *user, const TlStored *stored)
{
    snprintf(user, 512, "%s", stored->path);
}

static void put_and_get(void)
{
    TlStore s = open_store("plain");
    CHECK(!has(&s, "key", "result"));
    CHECK(put(&s, "key", "result") && has(&s, "key", "result"));
    CHECK(!has(&s, "kez", "result") && !has(&s, "ke", "result") && !has(&s, "", "result"));
    CHECK(put(&s, "key", "another") && has(&s, "key", "another"));
    CHECK(put(&s, "", "of nothing") && has(&s, "", "of nothing"));
}

/* Whatever byte is wrong, whatever is missing or too much at the end: a miss, and then it is
 * written anew. */
static void damage(void)
{
    TlStore s = open_store("damage");
    char path[512] = "", *good;
    CHECK(put(&s, "key", "result"));
    tl_store_each(&s, note_path, path);
    FILE *f = fopen(path, "r+b");
    CHECK(f != NULL);
    if (!f)
        return;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    good = calloc(1, (size_t)size + 1);
    rewind(f);
    CHECK(good && fread(good, 1, (size_t)size, f) == (size_t)size);
    int wrong = 0;
    for (long at = 0; at < size; at++) {
        static const int masks[] = {1, 0x80, 0xff};
        for (int i = 0; i < 3; i++) {
            fseek(f, at, SEEK_SET);
            fputc(good[at] ^ masks[i], f);
            fflush(f);
            wrong += has(&s, "key", "result");
        }
        fseek(f, at, SEEK_SET);
        fputc(good[at], f);
        fflush(f);
    }
    CHECKF(wrong == 0, "%d damaged entries were taken", wrong);
    CHECK(has(&s, "key", "result"));
    fclose(f);
    for (long at = size - 1; at >= 0; at--) {
        CHECK(truncate(path, at) == 0);
        wrong += has(&s, "key", "result");
    }
    CHECKF(wrong == 0, "%d short entries were taken", wrong);
    CHECK(put(&s, "key", "result") && has(&s, "key", "result"));
    f = fopen(path, "ab");
    CHECK(f && fputc(0, f) == 0 && fclose(f) == 0);
    CHECK(!has(&s, "key", "result"));
    CHECK(put(&s, "key", "result") && put(&s, "kez", "other")); /* one under the other's name */
    char other[512] = "";
    TlStore alone = open_store("alone");
    CHECK(put(&alone, "kez", "other"));
    tl_store_each(&alone, note_path, other);
    CHECK(rename(other, path) == 0 && !has(&s, "key", "other"));
    free(good);
}

/* Files stop at 4 KiB: what is written beyond fails, as on a full disk. */
static void full_disk(void)
{
    static char large[1 << 16];
    TlStore s = open_store("full");
    struct rlimit old, small = {4096, 4096};
    memset(large, 'x', sizeof large - 1);
    CHECK(put(&s, "small", "result"));
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    bool written = put(&s, "key", large);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(!written && !has(&s, "key", large) && has(&s, "small", "result"));
    char left[512] = "";
    tl_store_prune(&s, 0);
    tl_store_each(&s, note_path, left);
    CHECK_STR(left, ""); /* nothing that was half written */
}

static void bad_folders(void)
{
    TlStore s;
    char why[512] = "";
    FILE *f = fopen(open_store("file").folder, "w");
    CHECK(f && fclose(f) == 0);
    CHECK(tl_store_open(&s, scratch, why, sizeof why)); /* it is a file, which nobody looked at */
    CHECK(!put(&s, "key", "result") && !has(&s, "key", "result"));
    CHECK(tl_store_lock(&s, part("key")) == -1);
    tl_store_prune(&s, 0);
    CHECK(!tl_store_open(&s, "off", why, sizeof why) && strstr(why, "off"));
    CHECK(unsetenv("TILE_CACHE") == 0 && setenv("XDG_CACHE_HOME", "relative", 1) == 0);
    CHECK(setenv("HOME", "also/relative", 1) == 0);
    CHECK(!tl_store_open(&s, NULL, why, sizeof why) && strstr(why, "HOME"));
    CHECK(setenv("HOME", folder, 1) == 0 && tl_store_open(&s, NULL, why, sizeof why));
    CHECK(strstr(s.folder, "/.cache/tile"));
    CHECK(put(&s, "key", "result") && has(&s, "key", "result"));
    CHECK(chmod(s.folder, 0777) == 0 && !tl_store_open(&s, NULL, why, sizeof why));
    CHECK(strstr(why, "others") && setenv("XDG_CACHE_HOME", folder, 1) == 0);
    CHECK(tl_store_open(&s, NULL, why, sizeof why) && !strstr(s.folder, ".cache"));
    CHECK(setenv("TILE_CACHE_SIZE", "12 apples", 1) == 0);
    CHECK(!tl_store_open(&s, NULL, why, sizeof why) && strstr(why, "12 apples"));
    CHECK(setenv("TILE_CACHE_SIZE", "3M", 1) == 0 && tl_store_open(&s, NULL, why, sizeof why));
    CHECK(s.most == 3 << 20);
    uint64_t n;
    CHECK(!tl_store_size("", &n) && !tl_store_size("-1", &n) && !tl_store_size("1MB", &n));
    CHECK(!tl_store_size("99999999999999999999", &n) && !tl_store_size("20000000000G", &n));
    unsetenv("TILE_CACHE_SIZE");
    setenv("TILE_CACHE", "off", 1);
}

/* ---- pruning ---- */

static void age(const TlStore *s, const char *key, int seconds)
{
    char digits[TL_HASH_DIGITS + 1], path[TL_STORE_PATH + 128];
    tl_hash_digits(key, strlen(key), digits);
    snprintf(path, sizeof path, "%s/%.2s/%s", s->folder, digits, digits + 2);
    struct timespec times[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static void oldest_go_first(void)
{
    TlStore s = open_store("prune");
    char key[16];
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "key %d", i);
        CHECK(put(&s, key, "result"));
        age(&s, key, 1000 * (i + 1));
    }
    CHECK(has(&s, "key 9", "result")); /* used now */
    TlPruned all = tl_store_prune(&s, UINT64_MAX);
    CHECK(all.removed == 0 && all.kept == 10 && all.bytes > 0);
    TlPruned half = tl_store_prune(&s, all.bytes / 2);
    CHECK(half.removed >= 5 && half.kept == 10 - half.removed && half.bytes <= all.bytes / 2);
    CHECK(has(&s, "key 0", "result") && has(&s, "key 9", "result") && !has(&s, "key 8", "result"));
    char stale[TL_STORE_PATH + 512] = "";
    tl_store_each(&s, note_path, stale);
    char *slash = strrchr(stale, '/'), partial[TL_STORE_PATH + 1024];
    snprintf(partial, sizeof partial, "%.*s/.%s-1-1", (int)(slash - stale), stale, slash + 1);
    FILE *f = fopen(partial, "w");
    CHECK(f && fclose(f) == 0);
    tl_store_prune(&s, UINT64_MAX);
    CHECK(access(partial, F_OK) == 0); /* somebody may be writing it */
    struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    CHECK(utimensat(AT_FDCWD, partial, old, 0) == 0);
    CHECK(tl_store_prune(&s, UINT64_MAX).removed == 1 && access(partial, F_OK) != 0);
}

/* A store that is much smaller than what is put into it stays about as small as it should. */
static void stays_small(void)
{
    static char large[1 << 14];
    TlStore s = open_store("small");
    char key[16];
    memset(large, 'x', sizeof large - 1);
    s.most = 10 * sizeof large;
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "key %d", i);
        CHECK(put(&s, key, large));
    }
    CHECK(has(&s, "key 99", large));
    TlPruned p = tl_store_prune(&s, UINT64_MAX);
    CHECKF(p.bytes <= s.most + 4 * sizeof large, "%d bytes are left", (int)p.bytes);
    s.most = 100;
    CHECK(!put(&s, "larger than all", large));
}

/* ---- compiling through it ---- */

typedef struct Caller {
    pthread_t thread;
    tilec_output *output;
    tilec_status status;
    char said[512];
} Caller;

static void note(void *user, const char *rendered)
{
    Caller *c = user;
    snprintf(c->said + strlen(c->said), sizeof c->said - strlen(c->said), "%s", rendered);
}

static void compile(Caller *c, const char *source, const char *cache)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    o.consts = CONSTS, o.nconsts = 1;
    o.cache = cache;
    o.diagnostic = note;
    o.user = c;
    c->said[0] = 0;
    c->status = tilec_compile_source("twice.tile", source, strlen(source), &o, &c->output);
}

static bool same(const Caller *a, const Caller *b)
{
    size_t m, n;
    const void *x = tilec_output_data(a->output, &m), *y = tilec_output_data(b->output, &n);
    return a->status == b->status && m == n && (!m || !memcmp(x, y, m)) &&
           !strcmp(tilec_output_depends(a->output), tilec_output_depends(b->output)) &&
           !strcmp(tilec_output_message(a->output), tilec_output_message(b->output)) &&
           !strcmp(a->said, b->said);
}

static size_t entries(const TlStore *s)
{
    return tl_store_prune(s, UINT64_MAX).kept;
}

static void results_are_the_same(void)
{
    static const char WARNS[] = "kernel w(const f32 x[N], f32 y[N], const int B)\n"
                                "    grid(cdiv(N, B))\n"
                                "{\n"
                                "    int unused = 3;\n"
                                "    y[pid(0) * B +: B] = x[pid(0) * B +: B];\n"
                                "}\n";
    TlStore s = open_store("compile");
    const char *sources[] = {SOURCE, WARNS, "kernel k(",
                             "kernel k(f32 x[N]) grid(N) { x[0] = y; }"};
    for (int i = 0; i < 4; i++) {
        Caller off = {0}, cold = {0}, warm = {0};
        size_t before = entries(&s);
        compile(&off, sources[i], "off");
        compile(&cold, sources[i], s.folder);
        CHECK(entries(&s) == before + (off.status == TILEC_OK));
        compile(&warm, sources[i], s.folder);
        CHECKF(same(&off, &cold) && same(&off, &warm), "source %d", i);
        CHECK((off.status == TILEC_OK) == (i < 2) && (i != 1 || strstr(warm.said, "unused")));
        tilec_output_free(off.output);
        tilec_output_free(cold.output);
        tilec_output_free(warm.output);
    }
}

static void *compile_there(void *caller)
{
    compile(caller, SOURCE, scratch);
    return NULL;
}

static void many_threads(void)
{
    enum { THREADS = 8 };
    Caller callers[THREADS] = {0};
    TlStore s = open_store("threads");
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&callers[i].thread, NULL, compile_there, &callers[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(callers[i].thread, NULL);
        CHECK(callers[i].status == TILEC_OK && same(&callers[0], &callers[i]));
    }
    CHECK(entries(&s) == 1);
    for (int i = 0; i < THREADS; i++)
        tilec_output_free(callers[i].output);
}

static void *lock_and_wait(void *store)
{
    int lock = tl_store_lock(store, part("key"));
    CHECK(lock >= 0);
    tl_store_unlock(lock);
    return NULL;
}

static void locks_exclude(void)
{
    TlStore s = open_store("locks");
    pthread_t waiting;
    int a = tl_store_lock(&s, part("key")), b = tl_store_lock(&s, part("another"));
    CHECK(a >= 0 && b >= 0 && a != b);
    CHECK(pthread_create(&waiting, NULL, lock_and_wait, &s) == 0);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    CHECK(pthread_tryjoin_np(waiting, NULL) != 0);
    tl_store_unlock(a);
    CHECK(pthread_join(waiting, NULL) == 0);
    tl_store_unlock(b);
    tl_store_unlock(-1);
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    every_member_is_listed();
    every_option_counts();
    values_cannot_run_together();
    hash_is_blake3();
    put_and_get();
    damage();
    full_disk();
    bad_folders();
    oldest_go_first();
    stays_small();
    results_are_the_same();
    many_threads();
    locks_exclude();
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
    return unit_result();
}
