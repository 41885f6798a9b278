/* comm_local.c: the ranks of one process, on devices whose memory is the host's.
 *
 * The communicators of one id share a room. Operation number k of each rank meet in it: `start`
 * lays down the arrays, the last one makes the meeting ready, and in `finish` all ranks' threads
 * take pieces of the work until none is left, then wait for those that others still do. A piece
 * reads all ranks' arrays and writes all results of its elements, through memory of its own, which
 * is what makes operations in place right, and each sum is made once, in the order of the ranks.
 *
 * A meeting that is ready is always done, as other ranks' threads may be in its arrays. One that
 * is not, when a rank is aborted or the operations differ, fails for all who have come and who
 * will. */
#include "runtime/collectives/comm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* PIECE: bytes of each rank's arrays; both small, as callers may have little stack. */
enum { PIECE = 1 << 13, MOST_RANKS = 256 };

typedef struct Meeting {
    struct Meeting *next;
    uint64_t number;
    int from, to; /* of a send; -1: all ranks */
    int needed, here, left;
    tl_comm_op **op; /* by rank, of a send: sender, receiver */
    bool ready, differs;
    size_t pieces, taken, done; /* guarded by the room's lock */
} Meeting;

typedef struct Room {
    struct Room *next;
    uint64_t number;
    int ranks, members; /* members: who have not been freed */
    bool *taken;        /* ranks that have joined */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Meeting *meetings;
    bool failed;
    char error[512];
} Room;

static pthread_mutex_t rooms_lock = PTHREAD_MUTEX_INITIALIZER;
static Room *rooms;
static uint64_t last_number;

/* ---- rooms ---- */

tile_status tl_local_key(tl_comm_key *key)
{
    key->creator = (int32_t)getpid();
    pthread_mutex_lock(&rooms_lock);
    key->number = ++last_number;
    pthread_mutex_unlock(&rooms_lock);
    return TILE_OK;
}

static void free_room(Room *room)
{
    Room **at = &rooms;
    while (*at && *at != room)
        at = &(*at)->next;
    if (*at)
        *at = room->next;
    for (Meeting *m = room->meetings, *next; m; m = next) {
        next = m->next;
        free(m->op);
        free(m);
    }
    pthread_cond_destroy(&room->changed);
    pthread_mutex_destroy(&room->lock);
    free(room->taken);
    free(room);
}

static Room *find_room(uint64_t number, int ranks)
{
    for (Room *r = rooms; r; r = r->next)
        if (r->number == number)
            return r;
    Room *r = calloc(1, sizeof *r);
    bool *taken = calloc((size_t)ranks, sizeof *taken);
    if (!r || !taken) {
        free(r);
        free(taken);
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->number = number;
    r->ranks = ranks;
    r->taken = taken;
    r->next = rooms;
    return rooms = r;
}

tile_status tl_local_join(tile_comm *c, const tl_comm_key *key)
{
    tile_status status = TILE_OK;
    if (key->creator != (int32_t)getpid())
        return tl_comm_fail(TILE_BAD_ARGUMENT,
                            "tile_comm_create: the id is of process %d, and local "
                            "communicators are of one process",
                            (int)key->creator);
    if (c->ranks > MOST_RANKS)
        return tl_comm_fail(TILE_BAD_ARGUMENT, "tile_comm_create: %d ranks; a process has up to %d",
                            c->ranks, MOST_RANKS);
    pthread_mutex_lock(&rooms_lock);
    Room *room = find_room(key->number, c->ranks);
    if (!room)
        status = tl_comm_fail(TILE_NO_MEMORY, "out of memory");
    else if (room->ranks != c->ranks)
        status = tl_comm_fail(TILE_BAD_ARGUMENT,
                              "tile_comm_create: %d ranks, but another rank of "
                              "this id has said %d",
                              c->ranks, room->ranks);
    else if (room->taken[c->rank])
        status = tl_comm_fail(TILE_BAD_ARGUMENT, "tile_comm_create: rank %d of this id is taken",
                              c->rank);
    if (status == TILE_OK) {
        room->taken[c->rank] = true;
        room->members++;
        c->state = room;
    }
    pthread_mutex_unlock(&rooms_lock);
    return status;
}

static void fail_room(Room *room, const char *error)
{
    pthread_mutex_lock(&room->lock);
    if (!room->failed)
        snprintf(room->error, sizeof room->error, "%s", error);
    room->failed = true;
    pthread_cond_broadcast(&room->changed);
    pthread_mutex_unlock(&room->lock);
}

static void abort_room(tile_comm *c)
{
    char error[sizeof c->error];
    pthread_mutex_lock(&c->lock);
    memcpy(error, c->error, sizeof error);
    pthread_mutex_unlock(&c->lock);
    fail_room(c->state, error);
}

static void leave_room(tile_comm *c)
{
    Room *room = c->state;
    char error[64];
    snprintf(error, sizeof error, "rank %d has left", c->rank);
    fail_room(room, error); /* who waits for it now waits for ever */
    pthread_mutex_lock(&rooms_lock);
    if (--room->members == 0)
        free_room(room);
    pthread_mutex_unlock(&rooms_lock);
}

/* ---- the work ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Pieces of one array. */
static size_t pieces_of(const tl_comm_op *op)
{
    size_t part = PIECE / op->size;
    return (op->count + part - 1) / part;
}

/* How often all of op->count is gone through: once for each independent part of the work. */
static size_t rounds_of(const tl_comm_op *op)
{
    size_t n = (size_t)op->comm->ranks;
    switch (op->kind) {
    case TL_REDUCE_SCATTER:
    case TL_ALL_GATHER: return n;
    case TL_ALL_TO_ALL: return n * n;
    case TL_ALL_REDUCE:
    case TL_REDUCE:
    case TL_BROADCAST:
    case TL_SEND:
    case TL_RECV: return 1;
    }
    return 1;
}

static void put(char *to, const void *from, size_t bytes)
{
    if (to && to != from)
        memcpy(to, from, bytes);
}

/* The reduction of elements from byte `at` of all ranks' send, to `room`. */
static void reduce(const Meeting *m, size_t at, size_t bytes, void *room)
{
    const tl_comm_op *op = m->op[0];
    const void *from[MOST_RANKS];
    for (int r = 0; r < m->needed; r++)
        from[r] = m->op[r]->send + at;
    tl_comm_combine(op->dtype, op->reduction, from, m->needed, room, bytes / op->size);
}

/* Both ways between ranks a and b, a <= b. */
static void exchange(const Meeting *m, size_t a, size_t b, size_t at, size_t bytes)
{
    _Alignas(16) char one[PIECE], other[PIECE];
    size_t share = m->op[0]->count * m->op[0]->size;
    if (a > b)
        return;
    memcpy(one, m->op[a]->send + b * share + at, bytes);
    memcpy(other, m->op[b]->send + a * share + at, bytes);
    memcpy(m->op[b]->recv + a * share + at, one, bytes);
    memcpy(m->op[a]->recv + b * share + at, other, bytes);
}

/* Bytes from `at` on of round `round`. */
static void do_piece(const Meeting *m, size_t round, size_t at, size_t bytes)
{
    _Alignas(16) char room[PIECE];
    const tl_comm_op *op = m->op[0];
    size_t share = op->count * op->size, n = (size_t)m->needed;
    switch (op->kind) {
    case TL_ALL_REDUCE:
        reduce(m, at, bytes, room);
        for (size_t r = 0; r < n; r++)
            put(m->op[r]->recv + at, room, bytes);
        break;
    case TL_REDUCE:
        reduce(m, at, bytes, room);
        put(m->op[op->peer]->recv + at, room, bytes);
        break;
    case TL_REDUCE_SCATTER:
        reduce(m, round * share + at, bytes, room);
        put(m->op[round]->recv + at, room, bytes);
        break;
    case TL_ALL_GATHER:
        for (size_t r = 0; r < n; r++)
            put(m->op[r]->recv + round * share + at, m->op[round]->send + at, bytes);
        break;
    case TL_BROADCAST:
        for (size_t r = 0; r < n; r++)
            put(m->op[r]->recv + at, m->op[op->peer]->send + at, bytes);
        break;
    case TL_ALL_TO_ALL: exchange(m, round / n, round % n, at, bytes); break;
    case TL_SEND:
    case TL_RECV: put(m->op[1]->recv + at, m->op[0]->send + at, bytes); break;
    }
}

static void do_number(const Meeting *m, size_t number)
{
    const tl_comm_op *op = m->op[0];
    size_t pieces = pieces_of(op), part = PIECE / op->size;
    size_t from = number % pieces * part, n = least(part, op->count - from);
    do_piece(m, number / pieces, from * op->size, n * op->size);
}

/* ---- meetings ---- */

static bool is_pair(const tl_comm_op *op)
{
    return op->kind == TL_SEND || op->kind == TL_RECV;
}

/* Makes it if this is the first to come; the room's lock is held. */
static Meeting *find_meeting(Room *room, const tl_comm_op *op)
{
    int me = op->comm->rank, from = -1, to = -1;
    if (is_pair(op)) {
        from = op->kind == TL_SEND ? me : op->peer;
        to = op->kind == TL_SEND ? op->peer : me;
    }
    for (Meeting *m = room->meetings; m; m = m->next)
        if (m->number == op->number && m->from == from && m->to == to)
            return m;
    Meeting *m = calloc(1, sizeof *m);
    int needed = is_pair(op) ? 2 : room->ranks;
    tl_comm_op **ops = calloc((size_t)needed, sizeof *ops);
    if (!m || !ops) {
        free(m);
        free(ops);
        return NULL;
    }
    *m = (Meeting){.next = room->meetings,
                   .number = op->number,
                   .from = from,
                   .to = to,
                   .needed = needed,
                   .op = ops};
    return room->meetings = m;
}

static void describe(const tl_comm_op *op, char *text, size_t size)
{
    snprintf(text, size, "rank %d calls %s of %zu %s", op->comm->rank, tl_comm_kind_name(op->kind),
             op->count, tile_dtype_name(op->dtype));
}

/* All that the ranks have to agree on. */
static bool agree(const tl_comm_op *a, const tl_comm_op *b)
{
    return a->count == b->count && a->dtype == b->dtype &&
           (is_pair(a) ||
            (a->kind == b->kind && a->reduction == b->reduction && a->peer == b->peer));
}

/* The room's lock is held. */
static void come(Room *room, Meeting *m, tl_comm_op *op)
{
    for (int i = 0; i < m->needed && !m->differs; i++)
        if (m->op[i] && !agree(m->op[i], op)) {
            char one[200], other[200];
            describe(m->op[i], one, sizeof one);
            describe(op, other, sizeof other);
            bool same = strstr(one, " calls ") &&
                        strcmp(strstr(one, " calls "), strstr(other, " calls ")) == 0;
            m->differs = true;
            if (!room->failed)
                snprintf(room->error, sizeof room->error, "%s, but %s%s", one, other,
                         same ? ", with another root or reduction" : "");
            room->failed = true;
        }
    m->op[is_pair(op) ? op->kind == TL_RECV : op->comm->rank] = op;
    op->state = m;
    if (++m->here == m->needed && !m->differs) {
        m->ready = true;
        m->pieces = op->count ? pieces_of(op) * rounds_of(op) : 0;
    }
    pthread_cond_broadcast(&room->changed);
}

static tile_status start_op(tl_comm_op *op)
{
    Room *room = op->comm->state;
    pthread_mutex_lock(&room->lock);
    Meeting *m = room->failed ? NULL : find_meeting(room, op);
    if (m)
        come(room, m, op);
    bool no_memory = !m && !room->failed;
    pthread_mutex_unlock(&room->lock);
    if (!no_memory)
        return TILE_OK; /* a failure is for `finish` to say */
    fail_room(room, "out of memory");
    return tl_comm_broke(op->comm, TILE_NO_MEMORY, "out of memory");
}

/* Takes part until all is done; the room's lock is held outside of the pieces. */
static void work(Room *room, Meeting *m)
{
    while (m->taken < m->pieces) {
        size_t number = m->taken++;
        pthread_mutex_unlock(&room->lock);
        do_number(m, number);
        pthread_mutex_lock(&room->lock);
        if (++m->done == m->pieces)
            pthread_cond_broadcast(&room->changed);
    }
    while (m->done < m->pieces)
        pthread_cond_wait(&room->changed, &room->lock);
}

/* The last one frees it. */
static void part_from(Room *room, Meeting *m)
{
    if (++m->left < m->needed)
        return;
    Meeting **at = &room->meetings;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    free(m->op);
    free(m);
}

static tile_status finish_op(tl_comm_op *op)
{
    Room *room = op->comm->state;
    Meeting *m = op->state;
    char error[sizeof room->error] = "";
    pthread_mutex_lock(&room->lock);
    while (m && !m->ready && !room->failed)
        pthread_cond_wait(&room->changed, &room->lock);
    if (m && m->ready) {
        work(room, m);
        part_from(room, m);
    } else {
        if (m) /* nobody may look at the operation any more */
            m->op[is_pair(op) ? op->kind == TL_RECV : op->comm->rank] = NULL;
        memcpy(error, room->error, sizeof error);
    }
    pthread_mutex_unlock(&room->lock);
    return *error ? tl_comm_broke(op->comm, TILE_FAILED, "tile_comm_%s: %s",
                                  tl_comm_kind_name(op->kind), error)
                  : TILE_OK;
}

const tl_comm_backend tl_comm_local = {.name = "local",
                                       .start = start_op,
                                       .finish = finish_op,
                                       .abort = abort_room,
                                       .close = leave_room};
