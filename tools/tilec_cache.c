/* tilec_cache.c: tilec cache: where the cache of compiled kernels is, what is in it, whether it is
 * intact, and how to make it smaller. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "codegen/cache/store.h"
#include "ir/support/guard.h"
#include "tools/tilec_options.h"

typedef struct Line {
    char *text;
    int64_t used;
} Line;

/* What a walk over the entries gathers. */
typedef struct Walk {
    TlArena *arena;
    TL_VEC(Line) lines;
    uint64_t entries, bytes, bad, removed;
    bool failed; /* a file cannot be removed */
    bool missed; /* there was no memory for an entry */
} Walk;

/* ---- ls ---- */

/* "gemm" of "kernel 4:gemm"; `otherwise` where the key has none. */
static const char *fact(const Walk *w, TlPart key, const char *name, const char *otherwise)
{
    size_t size;
    const char *value = tl_key_find(key.data, key.size, name, &size);
    return value ? tl_strndup(w->arena, value, size) : otherwise;
}

/* Names are anybody's: no line has control characters of theirs. */
static char *printable(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    return text;
}

static void list_key(Walk *w, TlPart key, const TlStored *stored)
{
    char when[32];
    struct tm local;
    time_t used = (time_t)stored->used;
    if (!localtime_r(&used, &local) || !strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local))
        strcpy(when, "-");
    char *text = tl_format(w->arena, "%s %9" PRIu64 "  %-8s %-8s %-16s %s", when, stored->bytes,
                           fact(w, key, "emit", "image"), fact(w, key, "target", "cpu"),
                           fact(w, key, "kernel", "(all)"), fact(w, key, "source", "?"));
    tl_vec_push(w->arena, &w->lines, (Line){printable(text), stored->used});
    w->entries++;
    w->bytes += stored->bytes;
}

/* Results are big: of each, only the line stays. */
static void list_entry(void *user, const TlStored *stored)
{
    TlArena arena;
    TlGuard g;
    TlEntry e;
    tl_arena_init(&arena, (TlAlloc){0});
    if (TL_GUARD(&g)) {
        if (!stored->partial && tl_store_read(stored->path, &arena, &e))
            list_key(user, e.parts[TL_PART_KEY], stored);
        tl_guard_pop(&g);
    } else {
        ((Walk *)user)->missed = true;
    }
    tl_arena_free(&arena);
}

static int newest_first(const void *a, const void *b)
{
    const Line *x = a, *y = b;
    return x->used != y->used ? (x->used < y->used) - (x->used > y->used)
                              : strcmp(x->text, y->text);
}

static void each(const TlStore *s, void (*f)(void *user, const TlStored *stored), Walk *w)
{
    w->missed = !tl_store_each(s, f, w) || w->missed;
}

static int list(const TlStore *s, Walk *w)
{
    each(s, list_entry, w);
    if (w->lines.len)
        qsort(w->lines.data, w->lines.len, sizeof *w->lines.data, newest_first);
    if (w->lines.len)
        printf("%-19s %9s  %-8s %-8s %-16s %s\n", "last used", "bytes", "stage", "target", "kernel",
               "source");
    for (uint32_t i = 0; i < w->lines.len; i++)
        puts(w->lines.data[i].text);
    printf("%" PRIu64 " entries, %" PRIu64 " bytes of at most %" PRIu64 ", in %s\n", w->entries,
           w->bytes, s->most, s->folder);
    return EXIT_FINE;
}

/* ---- verify, clear, prune ---- */

static void verify_entry(void *user, const TlStored *stored)
{
    Walk *w = user;
    TlArena arena;
    TlEntry e;
    TlGuard g;
    if (stored->partial)
        return;
    tl_arena_init(&arena, (TlAlloc){0});
    w->entries++;
    if (TL_GUARD(&g)) {
        if (!tl_store_read(stored->path, &arena, &e)) {
            w->bad++;
            printf("damaged: %s\n", stored->path);
        }
        tl_guard_pop(&g);
    } else {
        w->missed = true;
    }
    tl_arena_free(&arena);
}

static int verify(const TlStore *s, Walk *w)
{
    each(s, verify_entry, w);
    printf("%" PRIu64 " entries, %" PRIu64 " damaged\n", w->entries, w->bad);
    return w->bad ? EXIT_PROGRAM : EXIT_FINE;
}

static void remove_entry(void *user, const TlStored *stored)
{
    Walk *w = user;
    if (unlink(stored->path) == 0)
        w->removed++;
    else if (errno != ENOENT) /* another process makes room */
        w->failed = true;
}

static int clear(const TlStore *s, Walk *w)
{
    each(s, remove_entry, w);
    printf("removed %" PRIu64 " entries from %s\n", w->removed, s->folder);
    return w->failed ? usage_error("some files of '%s' cannot be removed", s->folder) : EXIT_FINE;
}

static int prune(const TlStore *s, Walk *w)
{
    TlPruned p = tl_store_prune(s, s->most);
    w->missed = p.missed;
    printf("removed %" PRIu64 " entries; %" PRIu64 " entries, %" PRIu64 " bytes are left\n",
           p.removed, p.kept, p.bytes);
    return EXIT_FINE;
}

static int show_folder(const TlStore *s, Walk *w)
{
    (void)w;
    puts(s->folder);
    return EXIT_FINE;
}

/* ---- the command ---- */

static const struct Action {
    const char *name;
    int (*run)(const TlStore *s, Walk *w);
} actions[] = {
    {"dir", show_folder}, {"ls", list}, {"verify", verify}, {"prune", prune}, {"clear", clear},
};
enum { NACTIONS = sizeof actions / sizeof *actions };

static int run(const struct Action *action, const char *size)
{
    TlStore s;
    TlArena arena;
    TlGuard g;
    char why[TL_STORE_PATH + 256];
    Walk w = {.arena = &arena};
    if (!tl_store_open(&s, NULL, why, sizeof why)) {
        printf("there is no cache: %s\n", why);
        return EXIT_FINE;
    }
    if (size && !tl_store_size(size, &s.most))
        return usage_error("--size takes a number of bytes, or one with K, M or G, not '%s'", size);
    volatile int status = EXIT_INTERNAL;
    tl_arena_init(&arena, (TlAlloc){0});
    if (TL_GUARD(&g)) {
        status = action->run(&s, &w);
        if (w.missed)
            status = out_of_memory();
        tl_guard_pop(&g);
    } else {
        fprintf(stderr, "tilec: %s\n", g.text);
    }
    tl_arena_free(&arena);
    return status;
}

int command_cache(int argc, char **argv)
{
    const char *size = NULL;
    if (argc == 0)
        return run(&actions[1], NULL); /* ls */
    if (!strcmp(argv[0], "prune") && argc >= 2) {
        bool glued = !strncmp(argv[1], "--size=", 7);
        size = glued ? argv[1] + 7 : argc == 3 && !strcmp(argv[1], "--size") ? argv[2] : NULL;
        if (!size || argc > 3 - glued)
            return usage_error("cache prune takes --size BYTES and nothing else");
    } else if (argc > 1) {
        return usage_error("cache %s takes no '%s'", argv[0], argv[1]);
    }
    for (int i = 0; i < NACTIONS; i++)
        if (!strcmp(argv[0], actions[i].name))
            return run(&actions[i], size);
    return usage_error("unknown action '%s'; expected one of: dir, ls, verify, prune, clear",
                       argv[0]);
}
