/* comm_messages.c: the ranks are processes that send each other bytes (comm_link.h, MPI).
 *
 * An operation is a row of steps; in each, messages go both ways, and when all of the step have
 * come, something is computed. `start` posts the first step, `finish` does the rest. Its tag keeps
 * an operation's messages apart from those of others, so that any number may be under way, in any
 * order. With n ranks and arrays of b bytes, each rank sends
 *
 *     all_reduce, small     b to each of the others, and all compute
 *     all_reduce            in pieces: part r of a piece to rank r, which reduces it and sends the
 *                           result to all: 2 b (n - 1) / n
 *     reduce_scatter        part r to rank r
 *     reduce                b to the root
 *     all_gather, small broadcast, all_to_all, send   what is to be sent, directly
 *     broadcast             part r to rank r, then an all_gather of the parts
 *
 * Sums are in the order of the ranks in all of them. What needs room has it from `prepare` on, at
 * most ROOM bytes, or one element of each rank. */
#include "runtime/collectives/comm.h"
#include "runtime/collectives/comm_link.h"
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOM = 1 << 20, SMALL = 16 << 10, SPINS = 200 };

typedef struct Steps {
    tl_link_message *message;
    size_t messages, most;
    size_t step, piece, pieces; /* piece: elements of each */
    bool small;
    char *room;
    const void **from; /* one array of each rank */
    const char *why;   /* something failed in `start` */
    char error[300];
} Steps;

typedef struct Group {
    const tl_comm_link *link;
    tl_link_comm comm;
    atomic_bool aborted;
} Group;

/* ---- the library with MPI ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const tl_comm_link *loaded;
static uint64_t last_number, last_world;

static void *open_library(void)
{
    char path[4096];
    Dl_info info;
    void *library = NULL;
    if (dladdr(&loaded, &info) && info.dli_fname && strrchr(info.dli_fname, '/')) {
        int folder = (int)(strrchr(info.dli_fname, '/') - info.dli_fname);
        snprintf(path, sizeof path, "%.*s/%s", folder, info.dli_fname, TL_COMM_MPI_FILE);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library ? library : dlopen(TL_COMM_MPI_FILE, RTLD_NOW | RTLD_LOCAL);
}

/* It stays loaded: MPI may have threads. */
static tile_status load(tl_link_place *out_place)
{
    pthread_mutex_lock(&lock);
    void *library = loaded ? NULL : open_library();
    const tl_comm_link *link = loaded    ? loaded
                               : library ? dlsym(library, TL_COMM_LINK_SYMBOL)
                                         : NULL;
    const char *why = link ? NULL : dlerror();
    tile_status status = TILE_OK;
    if (!link)
        status = tl_comm_fail(TILE_UNAVAILABLE,
                              "MPI cannot be used: %s (" TL_COMM_MPI_FILE
                              " is built where MPI is found; Debian: libopenmpi-dev)",
                              why ? why : "");
    else if (link->version != TL_COMM_LINK_VERSION)
        status = tl_comm_fail(TILE_UNAVAILABLE, "MPI cannot be used: " TL_COMM_MPI_FILE " is of "
                                                "another version");
    else if ((why = link->begin(out_place)))
        status = tl_comm_fail(TILE_UNAVAILABLE, "MPI cannot be used: %s", why);
    else
        loaded = link;
    pthread_mutex_unlock(&lock);
    return status;
}

/* Has a launcher of MPI started this process? */
static bool in_job(void)
{
    static const char *const words[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK",
                                        "MPI_LOCALNRANKS"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (secure_getenv(words[i]))
            return true;
    return false;
}

tile_status tl_mpi_place(tile_comm_place *place)
{
    tl_link_place p;
    tile_status status = in_job() ? load(&p) : TILE_OK;
    if (status == TILE_OK && in_job()) {
        place->rank = p.rank;
        place->ranks = p.ranks;
        place->local_rank = p.local_rank;
        place->local_ranks = p.local_ranks;
    }
    return status;
}

tile_status tl_mpi_key(tl_comm_key *key)
{
    tl_link_place p;
    tile_status status = load(&p);
    key->creator = p.rank;
    pthread_mutex_lock(&lock);
    key->number = 2 * last_number++;
    pthread_mutex_unlock(&lock);
    return status;
}

/* The same in all processes, which make their worlds in the same order. */
tile_status tl_mpi_world_key(tl_comm_key *key)
{
    pthread_mutex_lock(&lock);
    key->creator = 0;
    key->number = 2 * last_world++ + 1;
    pthread_mutex_unlock(&lock);
    return TILE_OK;
}

tile_status tl_mpi_join(tile_comm *c, const tl_comm_key *key)
{
    tl_link_place p;
    tile_status status = load(&p);
    Group *g = status == TILE_OK ? calloc(1, sizeof *g) : NULL;
    if (!g)
        return status == TILE_OK ? tl_comm_fail(TILE_NO_MEMORY, "out of memory") : status;
    g->link = loaded;
    const char *why = g->link->join(key->creator, key->number, c->ranks, c->rank, &g->comm);
    if (why) {
        free(g);
        return tl_comm_fail(TILE_DRIVER, "tile_comm_create: %s", why);
    }
    c->state = g;
    return TILE_OK;
}

/* ---- messages ---- */

static bool is_pair(const tl_comm_op *op)
{
    return op->kind == TL_SEND || op->kind == TL_RECV;
}

/* Collectives have the even tags. */
static int tag_of(const tl_comm_op *op)
{
    return (int)(op->number % (TL_LINK_TAGS / 4)) * 2 + is_pair(op);
}

static void post(tl_comm_op *op, int peer, const void *data, size_t bytes, bool receives)
{
    Steps *s = op->state;
    const Group *g = op->comm->state;
    for (size_t at = 0; at < bytes && !s->why; at += TL_LINK_BYTES) {
        size_t n = bytes - at < TL_LINK_BYTES ? bytes - at : TL_LINK_BYTES;
        tl_link_message *m = &s->message[s->messages++];
        *m = (tl_link_message){.bytes = n, .receives = receives};
        const char *why = g->link->post(g->comm, peer, tag_of(op), (char *)(uintptr_t)data + at, m);
        if (why) {
            snprintf(s->error, sizeof s->error, "%s", why);
            s->why = s->error;
        }
    }
}

static void give(tl_comm_op *op, int to, const void *data, size_t bytes)
{
    post(op, to, data, bytes, false);
}

static void take(tl_comm_op *op, int from, void *data, size_t bytes)
{
    post(op, from, data, bytes, true);
}

/* Asks MPI now and then, ever less often, and leaves the core to others meanwhile. */
static void wait_all(tl_comm_op *op)
{
    Steps *s = op->state;
    Group *g = op->comm->state;
    long spins = 0;
    for (size_t i = 0; i < s->messages && !s->why;) {
        tl_link_message *m = &s->message[i];
        const char *why = m->done ? NULL : g->link->test(m);
        if (!why && atomic_load(&g->aborted) && !m->done)
            why = "it was aborted";
        if (why) {
            snprintf(s->error, sizeof s->error, "%s", why);
            s->why = s->error;
        } else if (m->done) {
            i++;
        } else if (++spins < SPINS) {
            sched_yield();
        } else {
            long us = spins < 2 * SPINS ? 20 : 200;
            nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
        }
    }
    for (size_t i = 0; i < s->messages && s->why; i++)
        g->link->cancel(&s->message[i]);
    s->messages = 0;
}

/* ---- sections ---- */

typedef struct Range {
    size_t at, n; /* in elements */
} Range;

/* Part `r` of `n` elements for `ranks` ranks, as even as can be. */
static Range part(size_t n, int ranks, int r)
{
    size_t each = n / (size_t)ranks, more = n % (size_t)ranks, i = (size_t)r;
    return (Range){i * each + (i < more ? i : more), each + (i < more)};
}

/* The piece with this number, of `count` elements. */
static Range piece(const tl_comm_op *op, size_t number)
{
    const Steps *s = op->state;
    size_t at = number * s->piece, left = op->count - at;
    return (Range){at, left < s->piece ? left : s->piece};
}

/* The reduction of what lies in the room from every rank but this one, and of `mine`, to `to`,
 * which may be `mine`: of `bytes` bytes as all. */
static void reduce(tl_comm_op *op, const char *mine, char *to, size_t bytes)
{
    Steps *s = op->state;
    int n = op->comm->ranks;
    for (int r = 0; r < n; r++)
        s->from[r] = s->room + (size_t)r * bytes;
    s->from[op->comm->rank] = mine;
    tl_comm_combine(op->dtype, op->reduction, s->from, n, to, bytes / op->size);
}

/* ---- the steps of each operation: post, and what follows when all have come ---- */

/* False from each: there is no such step. */
typedef bool Step(tl_comm_op *op, size_t step);

static bool all_reduce_small(tl_comm_op *op, size_t step)
{
    Steps *s = op->state;
    size_t bytes = op->count * op->size;
    for (int r = 0; !step && r < op->comm->ranks; r++)
        if (r != op->comm->rank) {
            take(op, r, s->room + (size_t)r * bytes, bytes);
            give(op, r, op->send, bytes);
        }
    return !step;
}

/* Even steps send parts to be reduced, odd ones the results. */
static bool all_reduce_large(tl_comm_op *op, size_t step)
{
    Steps *s = op->state;
    int me = op->comm->rank, ranks = op->comm->ranks;
    if (step >= 2 * s->pieces)
        return false;
    Range p = piece(op, step / 2), mine = part(p.n, ranks, me);
    for (int r = 0; r < ranks; r++) {
        Range its = part(p.n, ranks, r);
        size_t at = (p.at + its.at) * op->size;
        if (r == me)
            continue;
        if (step % 2 == 0) {
            take(op, r, s->room + (size_t)r * mine.n * op->size, mine.n * op->size);
            give(op, r, op->send + at, its.n * op->size);
        } else {
            take(op, r, op->recv + at, its.n * op->size);
            give(op, r, op->recv + (p.at + mine.at) * op->size, mine.n * op->size);
        }
    }
    return true;
}

static void after_all_reduce(tl_comm_op *op, size_t step)
{
    Steps *s = op->state;
    int me = op->comm->rank;
    Range p = s->small ? (Range){0, op->count} : piece(op, step / 2);
    Range mine = s->small ? p : part(p.n, op->comm->ranks, me);
    size_t at = (s->small ? 0 : p.at + mine.at) * op->size, bytes = mine.n * op->size;
    if ((!s->small && step % 2) || !bytes)
        return;
    reduce(op, op->send + at, op->recv + at, bytes);
}

static bool all_reduce(tl_comm_op *op, size_t step)
{
    return ((Steps *)op->state)->small ? all_reduce_small(op, step) : all_reduce_large(op, step);
}

static bool root_reduce(tl_comm_op *op, size_t step)
{
    Steps *s = op->state;
    if (step >= s->pieces)
        return false;
    Range p = piece(op, step);
    for (int r = 0; op->comm->rank == op->peer && r < op->comm->ranks; r++)
        if (r != op->peer)
            take(op, r, s->room + (size_t)r * p.n * op->size, p.n * op->size);
    if (op->comm->rank != op->peer)
        give(op, op->peer, op->send + p.at * op->size, p.n * op->size);
    return true;
}

static void after_reduce(tl_comm_op *op, size_t step)
{
    Range p = piece(op, step);
    size_t at = p.at * op->size;
    if (op->comm->rank == op->peer)
        reduce(op, op->send + at, op->recv + at, p.n * op->size);
}

static bool reduce_scatter(tl_comm_op *op, size_t step)
{
    Steps *s = op->state;
    if (step >= s->pieces)
        return false;
    Range p = piece(op, step);
    for (int r = 0; r < op->comm->ranks; r++)
        if (r != op->comm->rank) {
            take(op, r, s->room + (size_t)r * p.n * op->size, p.n * op->size);
            give(op, r, op->send + ((size_t)r * op->count + p.at) * op->size, p.n * op->size);
        }
    return true;
}

static void after_reduce_scatter(tl_comm_op *op, size_t step)
{
    Range p = piece(op, step);
    const char *mine = op->send + ((size_t)op->comm->rank * op->count + p.at) * op->size;
    reduce(op, mine, op->recv + p.at * op->size, p.n * op->size);
}

static bool all_gather(tl_comm_op *op, size_t step)
{
    size_t share = op->count * op->size, me = (size_t)op->comm->rank;
    for (int r = 0; !step && r < op->comm->ranks; r++)
        if (r != op->comm->rank) {
            take(op, r, op->recv + (size_t)r * share, share);
            give(op, r, op->send, share);
        }
    if (!step && share && op->recv + me * share != op->send)
        memcpy(op->recv + me * share, op->send, share);
    return !step;
}

/* Small, or two ranks: from the root to all. */
static bool broadcast(tl_comm_op *op, size_t step)
{
    const Steps *s = op->state;
    int ranks = op->comm->ranks, me = op->comm->rank;
    bool root = me == op->peer;
    const char *data = root ? op->send : op->recv;
    Range mine = s->small ? (Range){0, op->count} : part(op->count, ranks, me);
    if (step > 1 || (step && s->small))
        return false;
    for (int r = 0; r < ranks; r++) {
        Range its = s->small ? mine : part(op->count, ranks, r);
        if (r != me && step == 0 && root)
            give(op, r, data + its.at * op->size, its.n * op->size);
        /* the root has all, and has given each its part */
        if (r != me && step == 1) {
            if (!root)
                take(op, r, op->recv + its.at * op->size, its.n * op->size);
            if (r != op->peer)
                give(op, r, data + mine.at * op->size, mine.n * op->size);
        }
    }
    if (step == 0 && !root)
        take(op, op->peer, op->recv + mine.at * op->size, mine.n * op->size);
    if (step == 0 && root && op->send != op->recv && op->count)
        memcpy(op->recv, op->send, op->count * op->size);
    return true;
}

/* In place what comes goes through the room, in pieces. */
static bool all_to_all(tl_comm_op *op, size_t step)
{
    Steps *s = op->state;
    bool in_place = op->send == op->recv;
    if (step >= (in_place ? s->pieces : 1))
        return false;
    Range p = in_place ? piece(op, step) : (Range){0, op->count};
    size_t share = op->count * op->size, bytes = p.n * op->size, me = (size_t)op->comm->rank;
    for (int r = 0; r < op->comm->ranks; r++) {
        size_t at = (size_t)r * share + p.at * op->size;
        if (r == op->comm->rank)
            continue;
        take(op, r, in_place ? s->room + (size_t)r * bytes : op->recv + at, bytes);
        give(op, r, op->send + at, bytes);
    }
    if (!in_place && share)
        memcpy(op->recv + me * share, op->send + me * share, share);
    return true;
}

static void after_all_to_all(tl_comm_op *op, size_t step)
{
    Steps *s = op->state;
    if (op->send != op->recv)
        return;
    Range p = piece(op, step);
    for (int r = 0; r < op->comm->ranks; r++)
        if (r != op->comm->rank)
            memcpy(op->recv + ((size_t)r * op->count + p.at) * op->size,
                   s->room + (size_t)r * p.n * op->size, p.n * op->size);
}

static bool pair(tl_comm_op *op, size_t step)
{
    if (!step && op->kind == TL_SEND)
        give(op, op->peer, op->send, op->count * op->size);
    else if (!step)
        take(op, op->peer, op->recv, op->count * op->size);
    return !step;
}

static const struct {
    Step *step;
    void (*after)(tl_comm_op *op, size_t step);
} plans[] = {
    [TL_ALL_REDUCE] = {all_reduce, after_all_reduce},
    [TL_REDUCE] = {root_reduce, after_reduce},
    [TL_REDUCE_SCATTER] = {reduce_scatter, after_reduce_scatter},
    [TL_ALL_GATHER] = {all_gather, NULL},
    [TL_BROADCAST] = {broadcast, NULL},
    [TL_ALL_TO_ALL] = {all_to_all, after_all_to_all},
    [TL_SEND] = {pair, NULL},
    [TL_RECV] = {pair, NULL},
};

/* ---- an operation ---- */

static bool wants_room(const tl_comm_op *op)
{
    return op->kind == TL_ALL_REDUCE || op->kind == TL_REDUCE || op->kind == TL_REDUCE_SCATTER ||
           (op->kind == TL_ALL_TO_ALL && op->send == op->recv);
}

static void drop(tl_comm_op *op)
{
    Steps *s = op->state;
    if (!s)
        return;
    free(s->message);
    free(s->room);
    free(s->from);
    free(s);
    op->state = NULL;
}

static tile_status prepare(tl_comm_op *op)
{
    size_t n = (size_t)op->comm->ranks, bytes = op->count * op->size;
    Steps *s = op->state = calloc(1, sizeof *s);
    if (!s)
        return tl_comm_fail(TILE_NO_MEMORY, "out of memory");
    s->small = op->kind == TL_BROADCAST ? n == 2 || bytes <= SMALL : bytes * n <= SMALL;
    /* elements of each rank in the room; parts of an all_reduce's piece are of one rank */
    size_t each = ROOM / n / op->size ? ROOM / n / op->size : 1;
    s->piece = op->kind == TL_ALL_REDUCE ? each * n : each;
    s->pieces = (op->count + s->piece - 1) / s->piece;
    size_t part_n = op->kind == TL_ALL_REDUCE && !s->small ? (op->count + n - 1) / n : op->count;
    size_t room = n * op->size * (part_n < each ? part_n : each);
    s->most = 2 * n * (bytes / TL_LINK_BYTES + 1);
    s->message = calloc(s->most, sizeof *s->message);
    s->from = calloc(n, sizeof *s->from);
    s->room = wants_room(op) ? malloc(room ? room : 1) : NULL;
    return s->message && s->from && (s->room || !wants_room(op))
               ? TILE_OK
               : tl_comm_fail(TILE_NO_MEMORY, "out of memory: tile_comm_%s wants %zu bytes",
                              tl_comm_kind_name(op->kind), room);
}

static bool begin_step(tl_comm_op *op)
{
    Steps *s = op->state;
    return op->count && plans[op->kind].step(op, s->step);
}

static tile_status start_op(tl_comm_op *op)
{
    Steps *s = op->state;
    if (!tl_comm_is_broken(op->comm))
        begin_step(op);
    else
        s->why = atomic_load(&((Group *)op->comm->state)->aborted)
                     ? "it was aborted"
                     : "the communicator has failed before";
    return TILE_OK;
}

static tile_status finish_op(tl_comm_op *op)
{
    Steps *s = op->state;
    while (op->count) {
        wait_all(op);
        if (s->why)
            break;
        if (plans[op->kind].after)
            plans[op->kind].after(op, s->step);
        s->step++;
        if (!begin_step(op))
            break;
    }
    return s->why ? tl_comm_broke(op->comm, TILE_DRIVER, "tile_comm_%s: %s",
                                  tl_comm_kind_name(op->kind), s->why)
                  : TILE_OK;
}

static void abort_group(tile_comm *c)
{
    Group *g = c->state;
    atomic_store(&g->aborted, true);
}

static void leave(tile_comm *c)
{
    Group *g = c->state;
    g->link->leave(g->comm);
    free(g);
}

const tl_comm_backend tl_comm_mpi = {.name = "mpi",
                                     .prepare = prepare,
                                     .start = start_op,
                                     .finish = finish_op,
                                     .drop = drop,
                                     .abort = abort_group,
                                     .close = leave};
