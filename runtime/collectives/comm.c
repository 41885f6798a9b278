/* comm.c: communicators, arguments, groups (comm.h).
 *
 * An operation lives from its call until its `finish` has run, and is owned by the caller, until
 * the group has been put into the streams, and by the stream. */
#include "runtime/collectives/comm.h"
#include "runtime/contract/grow.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tl_comm_backend *const backends[] = {&tl_comm_local, &tl_comm_mpi, &tl_comm_nccl};
enum { BACKENDS = sizeof backends / sizeof *backends };
static const char magic[8] = "tilecom";

/* ---- errors ---- */

tile_status tl_comm_fail(tile_status status, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return tile_set_last_error(status, text);
}

tile_status tl_comm_broke(tile_comm *c, tile_status status, const char *format, ...)
{
    char text[sizeof c->error];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    pthread_mutex_lock(&c->lock);
    if (c->status == TILE_OK) {
        c->status = status;
        memcpy(c->error, text, sizeof text);
    }
    pthread_mutex_unlock(&c->lock);
    return tile_set_last_error(status, text);
}

/* The failure that was kept, with its text. */
static tile_status kept_failure(tile_comm *c)
{
    char text[sizeof c->error];
    pthread_mutex_lock(&c->lock);
    tile_status status = c->status;
    memcpy(text, c->error, sizeof text);
    pthread_mutex_unlock(&c->lock);
    return status == TILE_OK ? TILE_OK : tile_set_last_error(status, text);
}

bool tl_comm_is_broken(tile_comm *c)
{
    pthread_mutex_lock(&c->lock);
    bool broken = c->status != TILE_OK;
    pthread_mutex_unlock(&c->lock);
    return broken;
}

static tile_status is_null(const char *function, const char *what)
{
    return tl_comm_fail(TILE_BAD_ARGUMENT, "%s: %s is NULL", function, what);
}

/* ---- communicators ---- */

/* The options as this library knows them. */
static tile_status take_options(const char *function, const tile_comm_options *from,
                                tile_comm_options *out)
{
    *out = (tile_comm_options){.struct_size = sizeof *out};
    if (from && !tl_struct_take(out, sizeof *out, from, TL_LEAST_SIZE(tile_comm_options, backend)))
        return tl_comm_fail(TILE_BAD_ARGUMENT,
                            "%s: tile_comm_options: struct_size is %zu, expected "
                            "%zu: begin with the _INIT macro",
                            function, tl_struct_size(from), sizeof *out);
    for (int i = 0; out->backend && i < BACKENDS; i++)
        if (strcmp(out->backend, backends[i]->name) == 0)
            return TILE_OK;
    return !out->backend
               ? TILE_OK
               : tl_comm_fail(TILE_BAD_ARGUMENT, "%s: no backend '%s': local, mpi or nccl",
                              function, out->backend);
}

static tile_status is_on_host(tile_device *device, bool *out_host)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_status status = tile_device_get_info(device, &info);
    *out_host = info.host_memory;
    return status;
}

static const tl_comm_backend *backend_named(const char *name)
{
    for (int i = 0; i < BACKENDS; i++)
        if (strncmp(name, backends[i]->name, sizeof((tl_comm_key *)0)->backend) == 0)
            return backends[i];
    return NULL;
}

/* The backend that the options name or the device suggests; it must reach the device's memory. */
static tile_status choose_backend(const char *function, tile_device *device,
                                  const tile_comm_options *o, const char *on_host,
                                  const tl_comm_backend **out)
{
    bool host;
    tile_status status = is_on_host(device, &host);
    if (status != TILE_OK)
        return status;
    const tl_comm_backend *b = backend_named(o->backend ? o->backend : host ? on_host : "nccl");
    if (!host && b != &tl_comm_nccl)
        return tl_comm_fail(TILE_UNAVAILABLE,
                            "%s: %s is for devices whose memory is the host's; a "
                            "GPU has nccl",
                            function, b->name);
    if (host && b == &tl_comm_nccl && !o->library)
        return tl_comm_fail(TILE_UNAVAILABLE,
                            "%s: nccl is for GPUs; cpu, ref and emu have local and "
                            "mpi",
                            function);
    return *out = b, TILE_OK;
}

static void free_comm(tile_comm *c)
{
    tile_buffer_free(c->keeps);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c->sends);
    free(c->recvs);
    free(c);
}

/* Without a backend's state. */
static tile_status new_comm(const tl_comm_backend *backend, tile_device *device, int ranks,
                            int rank, tile_comm **out_comm)
{
    tile_comm *c = calloc(1, sizeof *c);
    if (!c)
        return tl_comm_fail(TILE_NO_MEMORY, "out of memory");
    c->backend = backend;
    c->rank = rank;
    c->ranks = ranks;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->sends = calloc((size_t)ranks, sizeof *c->sends);
    c->recvs = calloc((size_t)ranks, sizeof *c->recvs);
    tile_status status =
        c->sends && c->recvs ? TILE_OK : tl_comm_fail(TILE_NO_MEMORY, "out of memory");
    if (status == TILE_OK)
        status = device ? (c->device = device, TILE_OK) : tile_default_device(&c->device);
    if (status == TILE_OK)
        status = tile_buffer_alloc(c->device, 0, &c->keeps);
    if (status == TILE_OK)
        *out_comm = c;
    else
        free_comm(c);
    return status;
}

void tile_comm_free(tile_comm *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    while (c->running > 0)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    c->backend->close(c);
    free_comm(c);
}

tile_status tile_comm_abort(tile_comm *c)
{
    if (!c)
        return is_null("tile_comm_abort", "comm");
    tl_comm_broke(c, TILE_FAILED, "rank %d was aborted", c->rank);
    c->backend->abort(c);
    return TILE_OK;
}

tile_status tile_comm_status(tile_comm *c)
{
    if (!c)
        return is_null("tile_comm_status", "comm");
    tile_status status = kept_failure(c);
    return status == TILE_OK && c->backend->poll ? c->backend->poll(c) : status;
}

int tile_comm_rank(const tile_comm *c)
{
    return c ? c->rank : -1;
}
int tile_comm_size(const tile_comm *c)
{
    return c ? c->ranks : 0;
}
const char *tile_comm_backend(const tile_comm *c)
{
    return c ? c->backend->name : NULL;
}

/* ---- ids, and who joins ---- */

static tile_status make_key(const tl_comm_backend *b, tile_device *device, const char *library,
                            tl_comm_key *key)
{
    void *nccl;
    memset(key, 0, sizeof *key);
    memcpy(key->magic, magic, sizeof magic);
    memcpy(key->backend, b->name, strlen(b->name));
    if (b == &tl_comm_local)
        return tl_local_key(key);
    if (b == &tl_comm_mpi)
        return tl_mpi_key(key);
    tile_status status = tl_nccl_load(device, library, &nccl);
    return status == TILE_OK ? tl_nccl_key(nccl, key) : status;
}

static tile_status join(tile_comm *c, const char *library, const tl_comm_key *key)
{
    void *nccl;
    if (c->backend == &tl_comm_local)
        return tl_local_join(c, key);
    if (c->backend == &tl_comm_mpi)
        return tl_mpi_join(c, key);
    tile_status status = tl_nccl_load(c->device, library, &nccl);
    return status == TILE_OK ? tl_nccl_join(&c, 1, nccl, key) : status;
}

static tile_status create(const tl_comm_backend *b, tile_device *device, const char *library,
                          const tl_comm_key *key, int ranks, int rank, tile_comm **out_comm)
{
    tile_comm *c;
    tile_status status = new_comm(b, device, ranks, rank, &c);
    if (status != TILE_OK)
        return status;
    status = join(c, library, key);
    if (status == TILE_OK)
        *out_comm = c;
    else
        free_comm(c);
    return status;
}

tile_status tile_comm_id_create(tile_device *device, const tile_comm_options *options,
                                tile_comm_id *out_id)
{
    static const char function[] = "tile_comm_id_create";
    tile_comm_options o;
    const tl_comm_backend *b;
    tl_comm_key key;
    if (!out_id)
        return is_null(function, "out_id");
    tile_status status = take_options(function, options, &o);
    if (status == TILE_OK)
        status = choose_backend(function, device, &o, "local", &b);
    if (status == TILE_OK)
        status = make_key(b, device, o.library, &key);
    if (status != TILE_OK)
        return status;
    memset(out_id, 0, sizeof *out_id);
    memcpy(out_id, &key, sizeof key);
    return TILE_OK;
}

static _Thread_local struct {
    int depth;
    tl_comm_op *first, **last;
    tile_status status; /* of the first call that failed */
    char error[512];
} group;

static tile_status not_in_group(const char *function)
{
    return group.depth == 0
               ? TILE_OK
               : tl_comm_fail(TILE_BAD_ARGUMENT, "%s: a group is open in this thread", function);
}

tile_status tile_comm_create(tile_device *device, const tile_comm_options *options,
                             const tile_comm_id *id, int ranks, int rank, tile_comm **out_comm)
{
    static const char function[] = "tile_comm_create";
    tile_comm_options o;
    const tl_comm_backend *b;
    tl_comm_key key;
    if (!id || !out_comm)
        return is_null(function, id ? "out_comm" : "id");
    tile_status status = take_options(function, options, &o);
    if (status == TILE_OK)
        status = not_in_group(function);
    if (status != TILE_OK)
        return status;
    if (ranks < 1 || rank < 0 || rank >= ranks)
        return tl_comm_fail(TILE_BAD_ARGUMENT, "%s: rank %d of %d", function, rank, ranks);
    memcpy(&key, id, sizeof key);
    if (memcmp(key.magic, magic, sizeof magic) != 0 || !(b = backend_named(key.backend)))
        return tl_comm_fail(TILE_BAD_ARGUMENT, "%s: the id was not made by tile_comm_id_create",
                            function);
    o.backend = b->name;
    status = choose_backend(function, device, &o, "local", &b);
    return status == TILE_OK ? create(b, device, o.library, &key, ranks, rank, out_comm) : status;
}

static void free_all(tile_comm **comms, int n)
{
    for (int i = 0; i < n; i++)
        if (comms[i] && comms[i]->state)
            tile_comm_free(comms[i]);
        else if (comms[i])
            free_comm(comms[i]);
}

static tile_status join_all(const tl_comm_backend *b, tile_comm **comms, int n, const char *library)
{
    tl_comm_key key;
    void *nccl;
    tile_status status = make_key(b, comms[0]->device, library, &key);
    if (status == TILE_OK && b == &tl_comm_nccl) {
        status = tl_nccl_load(comms[0]->device, library, &nccl);
        return status == TILE_OK ? tl_nccl_join(comms, n, nccl, &key) : status;
    }
    for (int i = 0; status == TILE_OK && i < n; i++)
        status = join(comms[i], library, &key);
    return status;
}

tile_status tile_comm_create_all(tile_device *const *devices, int ranks,
                                 const tile_comm_options *options, tile_comm **out_comms)
{
    static const char function[] = "tile_comm_create_all";
    tile_comm_options o;
    const tl_comm_backend *b = NULL, *first = NULL;
    if (!devices || !out_comms)
        return is_null(function, devices ? "out_comms" : "devices");
    tile_status status = take_options(function, options, &o);
    if (status == TILE_OK)
        status = not_in_group(function);
    if (status == TILE_OK && ranks < 1)
        status = tl_comm_fail(TILE_BAD_ARGUMENT, "%s: %d ranks", function, ranks);
    for (int i = 0; status == TILE_OK && i < ranks; i++, first = b) {
        status = choose_backend(function, devices[i], &o, "local", &b);
        if (status == TILE_OK && (b == &tl_comm_mpi || (first && b != first)))
            status = tl_comm_fail(TILE_BAD_ARGUMENT, "%s: %s", function,
                                  b == &tl_comm_mpi ? "ranks of mpi are processes"
                                                    : "GPUs and host devices in one communicator");
    }
    if (status != TILE_OK)
        return status;
    tile_comm **comms = calloc((size_t)ranks, sizeof *comms);
    if (!comms)
        return tl_comm_fail(TILE_NO_MEMORY, "out of memory");
    for (int i = 0; status == TILE_OK && i < ranks; i++)
        status = new_comm(b, devices[i], ranks, i, &comms[i]);
    if (status == TILE_OK)
        status = join_all(b, comms, ranks, o.library);
    if (status == TILE_OK)
        memcpy(out_comms, comms, (size_t)ranks * sizeof *comms);
    else
        free_all(comms, ranks);
    free(comms);
    return status;
}

/* ---- the world ---- */

tile_status tile_comm_world_place(tile_comm_place *out_place)
{
    tile_comm_place place = {sizeof place, 0, 1, 0, 1};
    if (!out_place)
        return is_null("tile_comm_world_place", "out_place");
    if (tl_struct_size(out_place) < TL_LEAST_SIZE(tile_comm_place, rank))
        return tl_comm_fail(TILE_BAD_ARGUMENT,
                            "tile_comm_place: struct_size is %zu, expected %zu: "
                            "begin with the _INIT macro",
                            tl_struct_size(out_place), sizeof place);
    tile_status status = tl_mpi_place(&place);
    if (status == TILE_OK)
        tl_struct_give(out_place, &place, sizeof place);
    return status;
}

/* What the ranks tell each other before they join: whether they can, and rank 0's key. */
typedef struct Readiness {
    int32_t status;
    char error[500];
    tl_comm_key key;
} Readiness;

/* Does an operation that belongs to no stream, in the calling thread. */
static tile_status run_op(tl_comm_op *op)
{
    op->number = op->comm->numbers++;
    tile_status status = op->comm->backend->prepare(op);
    if (status != TILE_OK)
        return status;
    status = op->comm->backend->start(op);
    tile_status end = op->comm->backend->finish(op);
    if (op->comm->backend->drop)
        op->comm->backend->drop(op);
    return status == TILE_OK ? end : status;
}

static tile_status agree(tile_comm *host, Readiness *mine)
{
    Readiness *all = calloc((size_t)host->ranks, sizeof *all);
    if (!all)
        return tl_comm_fail(TILE_NO_MEMORY, "out of memory");
    tl_comm_op op = {.comm = host,
                     .kind = TL_ALL_GATHER,
                     .dtype = TILE_I8,
                     .size = 1,
                     .send = (char *)mine,
                     .recv = (char *)all,
                     .count = sizeof *mine};
    tile_status status = run_op(&op);
    for (int i = 0; status == TILE_OK && i < host->ranks; i++)
        if (all[i].status)
            status = tl_comm_fail((tile_status)all[i].status, "rank %d: %s", i, all[i].error);
    mine->key = all[0].key;
    free(all);
    return status;
}

static tile_status create_nccl_world(tile_device *device, tile_comm *host, const char *library,
                                     tile_comm **out_comm)
{
    Readiness mine = {0};
    void *nccl;
    tile_status status = tl_nccl_load(device, library, &nccl);
    if (status == TILE_OK && host->rank == 0)
        status = make_key(&tl_comm_nccl, device, library, &mine.key);
    mine.status = (int32_t)status;
    snprintf(mine.error, sizeof mine.error, "%s", status == TILE_OK ? "" : tile_last_error());
    status = agree(host, &mine);
    return status == TILE_OK ? create(&tl_comm_nccl, device, library, &mine.key, host->ranks,
                                      host->rank, out_comm)
                             : status;
}

/* A communicator of the host's memory for all processes of the job. */
static tile_status create_host_world(tile_device *device, const tile_comm_place *place,
                                     const tl_comm_backend *b, tile_comm **out_comm)
{
    tl_comm_key key;
    tile_status status = make_key(&tl_comm_local, device, NULL, &key);
    if (status == TILE_OK && b == &tl_comm_mpi)
        status = tl_mpi_world_key(&key);
    return status == TILE_OK ? create(b, device, NULL, &key, place->ranks, place->rank, out_comm)
                             : status;
}

tile_status tile_comm_create_world(tile_device *device, const tile_comm_options *options,
                                   tile_comm **out_comm)
{
    static const char function[] = "tile_comm_create_world";
    tile_comm_options o;
    tile_comm_place place = {sizeof place, 0, 1, 0, 1};
    const tl_comm_backend *b;
    tile_comm *host;
    if (!out_comm)
        return is_null(function, "out_comm");
    tile_status status = take_options(function, options, &o);
    if (status == TILE_OK)
        status = not_in_group(function);
    if (status == TILE_OK)
        status = tl_mpi_place(&place);
    const tl_comm_backend *hosts = place.ranks > 1 ? &tl_comm_mpi : &tl_comm_local;
    if (status == TILE_OK)
        status = choose_backend(function, device, &o, hosts->name, &b);
    if (status == TILE_OK && b == &tl_comm_local && place.ranks > 1)
        status = tl_comm_fail(TILE_BAD_ARGUMENT, "%s: local is one process, the job has %d",
                              function, place.ranks);
    if (status != TILE_OK || b != &tl_comm_nccl)
        return status == TILE_OK ? create_host_world(device, &place, b, out_comm) : status;
    status = create_host_world(device, &place, hosts, &host);
    if (status == TILE_OK) {
        status = create_nccl_world(device, host, o.library, out_comm);
        tile_comm_free(host);
    }
    return status;
}

/* ---- operations in streams ---- */

static const struct {
    const char *name;
    bool reduces, send_parts, recv_parts;
} kinds[] = {
    [TL_ALL_REDUCE] = {"all_reduce", true, false, false},
    [TL_REDUCE] = {"reduce", true, false, false},
    [TL_REDUCE_SCATTER] = {"reduce_scatter", true, true, false},
    [TL_ALL_GATHER] = {"all_gather", false, false, true},
    [TL_BROADCAST] = {"broadcast", false, false, false},
    [TL_ALL_TO_ALL] = {"all_to_all", false, true, true},
    [TL_SEND] = {"send", false, false, false},
    [TL_RECV] = {"recv", false, false, false},
};

const char *tl_comm_kind_name(tl_comm_kind kind)
{
    return kinds[kind].name;
}

static void disown(tl_comm_op *op)
{
    if (atomic_fetch_sub(&op->owners, 1) > 1)
        return;
    if (op->comm->backend->drop)
        op->comm->backend->drop(op);
    tile_comm *c = op->comm;
    free(op);
    pthread_mutex_lock(&c->lock);
    c->running--;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void tl_comm_end(tl_comm_op *op)
{
    disown(op);
}

static tile_status start_in_stream(void *user, void *native)
{
    tl_comm_op *op = user;
    (void)native;
    atomic_store(&op->started, true);
    return op->comm->backend->start(op);
}

static tile_status finish_in_stream(void *user, void *native)
{
    tl_comm_op *op = user;
    (void)native;
    tile_status status = op->comm->backend->finish(op);
    atomic_store(&op->ended, true);
    disown(op);
    return status;
}

static tile_status put_in(tl_comm_op *op, bool end)
{
    return end ? tile_stream_call(op->comm->device, op->stream, finish_in_stream, op, op->recv,
                                  op->written)
               : tile_stream_call(op->comm->device, op->stream, start_in_stream, op, NULL, 0);
}

/* The stream has not taken the end (its device was closed): it never comes. If the start is in, the
 * backend may look at the operation, which is then left to it. */
static void give_up(tl_comm_op *op, bool started)
{
    if (started)
        atomic_fetch_add(&op->owners, 1);
    disown(op);
    if (!started)
        return;
    pthread_mutex_lock(&op->comm->lock);
    op->comm->running--;
    pthread_mutex_unlock(&op->comm->lock);
}

/* All starts, then all ends. A call that fails here has run in the thread of this one, or the
 * stream has not taken it. In both cases the communicator has failed. */
static tile_status flush_host(tl_comm_op *const *ops, size_t n)
{
    tile_status first = TILE_OK;
    for (int end = 0; end < 2; end++)
        for (size_t i = 0; i < n; i++) {
            tl_comm_op *op = ops[i];
            tile_status status = put_in(op, end);
            if (status == TILE_OK)
                continue;
            if (first == TILE_OK)
                first = status;
            tl_comm_broke(op->comm, status, "%.500s", tile_last_error());
            op->comm->backend->abort(op->comm);
            if (end && !atomic_load(&op->ended))
                give_up(op, atomic_load(&op->started));
        }
    return first;
}

/* Before anything of the group starts: whatever is wrong is the end's status. */
static tile_status prepare(tl_comm_op *const *ops, size_t n)
{
    tile_status status = TILE_OK;
    for (size_t i = 0; status == TILE_OK && i < n; i++) {
        tl_comm_op *op = ops[i];
        tile_comm *c = op->comm;
        uint64_t *number = op->kind == TL_SEND   ? &c->sends[op->peer]
                           : op->kind == TL_RECV ? &c->recvs[op->peer]
                                                 : &c->numbers;
        op->number = (*number)++;
        status = c->backend->prepare ? c->backend->prepare(op) : TILE_OK;
    }
    return status;
}

/* Each backend's, in the order of the calls. some: room for n. */
static tile_status flush(tl_comm_op **ops, tl_comm_op **some, size_t n)
{
    tile_status first = prepare(ops, n);
    if (first != TILE_OK) { /* the others will wait for this: it cannot be taken back */
        char text[512];
        snprintf(text, sizeof text, "%s", tile_last_error());
        for (size_t i = 0; i < n; i++) {
            tl_comm_broke(ops[i]->comm, first, "%s", text);
            ops[i]->comm->backend->abort(ops[i]->comm);
            disown(ops[i]);
        }
        return tile_set_last_error(first, text);
    }
    for (int b = 0; b < BACKENDS; b++) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            if (ops[i]->comm->backend == backends[b])
                some[count++] = ops[i];
        tile_status status = !count               ? TILE_OK
                             : backends[b]->flush ? backends[b]->flush(some, count)
                                                  : flush_host(some, count);
        first = first == TILE_OK ? status : first;
    }
    return first;
}

/* ---- groups ---- */

tile_status tile_comm_group_begin(void)
{
    if (group.depth++ == 0) {
        group.first = NULL;
        group.last = &group.first;
        group.status = TILE_OK;
    }
    return TILE_OK;
}

static void forget_group(void)
{
    for (tl_comm_op *op = group.first, *next; op; op = next) {
        next = op->next;
        disown(op);
        disown(op);
    }
}

static tile_status end_group(void)
{
    size_t n = 0;
    for (tl_comm_op *op = group.first; op; op = op->next)
        n++;
    if (group.status == TILE_OK && n == 0)
        return TILE_OK;
    tl_comm_op **ops = group.status == TILE_OK ? malloc(2 * n * sizeof *ops) : NULL;
    if (!ops) {
        forget_group();
        return group.status == TILE_OK ? tl_comm_fail(TILE_NO_MEMORY, "out of memory")
                                       : tile_set_last_error(group.status, group.error);
    }
    n = 0;
    for (tl_comm_op *op = group.first; op; op = op->next)
        ops[n++] = op;
    tile_status status = flush(ops, ops + n, n);
    char text[512];
    snprintf(text, sizeof text, "%s", status == TILE_OK ? "" : tile_last_error());
    for (size_t i = 0; i < n; i++)
        disown(ops[i]);
    free(ops);
    return status == TILE_OK ? TILE_OK : tile_set_last_error(status, text);
}

tile_status tile_comm_group_end(void)
{
    if (group.depth == 0)
        return tl_comm_fail(TILE_BAD_ARGUMENT, "tile_comm_group_end: no group is open in this "
                                               "thread");
    return --group.depth ? TILE_OK : end_group();
}

/* ---- arguments ---- */

typedef struct Array {
    char *address;
    uint64_t count, bytes;
    tile_dtype dtype;
    size_t size;
} Array;

/* Are there gaps, or another order than row-major? */
static bool is_dense(const tile_arg *a)
{
    int64_t dense = 1;
    for (int i = a->rank - 1; a->strided && i >= 0; i--) {
        if (a->extent[i] > 1 && a->stride[i] != dense)
            return false;
        dense *= a->extent[i];
    }
    return true;
}

/* False: an extent is negative, or there are too many elements. */
static bool count_elements(const tile_arg *a, size_t size, uint64_t *out_count)
{
    uint64_t count = 1;
    for (int i = 0; i < a->rank; i++)
        if (a->extent[i] == 0)
            return *out_count = 0, true;
    for (int i = 0; i < a->rank; i++) {
        if (a->extent[i] < 0 || (uint64_t)a->extent[i] > INT64_MAX / size / count)
            return false;
        count *= (uint64_t)a->extent[i];
    }
    return *out_count = count, true;
}

static tile_status take_array(const char *kind, const char *name, const tile_arg *a, Array *out)
{
    int bits = tile_dtype_bits((tile_dtype)a->dtype);
    if (a->kind != TILE_ARG_VIEW || a->rank < 0 || a->rank > TILE_MAX_RANK)
        return tl_comm_fail(TILE_BAD_ARGUMENT, "tile_comm_%s: %s is no view", kind, name);
    if (bits < 8)
        return tl_comm_fail(TILE_BAD_ARGUMENT,
                            "tile_comm_%s: the type of %s is %s: name one of at "
                            "least 8 bits (tile_view_typed, tile_buffer_view)",
                            kind, name, bits ? tile_dtype_name((tile_dtype)a->dtype) : "not known");
    *out = (Array){.address = a->address, .dtype = (tile_dtype)a->dtype, .size = (size_t)bits / 8};
    if (!count_elements(a, out->size, &out->count))
        return tl_comm_fail(TILE_BAD_ARGUMENT, "tile_comm_%s: an extent of %s is wrong", kind,
                            name);
    out->bytes = out->count * out->size;
    if (!is_dense(a))
        return tl_comm_fail(TILE_BAD_ARGUMENT,
                            "tile_comm_%s: %s has gaps or is not row-major: only "
                            "dense arrays are taken",
                            kind, name);
    if (out->count && (!a->address || (a->bytes && out->bytes > a->bytes)))
        return tl_comm_fail(TILE_BAD_ARGUMENT, "tile_comm_%s: %s has %llu bytes, but %s", kind,
                            name, (unsigned long long)out->bytes,
                            a->address ? "its memory has fewer"
                                       : "no memory, or lies outside of "
                                         "its buffer");
    if (out->count && (uintptr_t)a->address % out->size)
        return tl_comm_fail(TILE_BAD_ARGUMENT,
                            "tile_comm_%s: the address of %s is not a multiple of "
                            "%zu",
                            kind, name, out->size);
    return TILE_OK;
}

/* What a call asks for; NULL views are not looked at. */
typedef struct Call {
    tile_comm *comm;
    tl_comm_kind kind;
    const tile_arg *send, *recv;
    tile_comm_reduction reduction;
    int peer;
    tile_stream *stream;
} Call;

/* How many bytes into the longer array the shorter one is when in place. */
static uint64_t place_of(const Call *c, uint64_t share)
{
    return kinds[c->kind].send_parts != kinds[c->kind].recv_parts ? (uint64_t)c->comm->rank * share
                                                                  : 0;
}

static tile_status check_overlap(const Call *c, const Array *send, const Array *recv)
{
    uintptr_t s = (uintptr_t)send->address, r = (uintptr_t)recv->address;
    uint64_t share = send->bytes < recv->bytes ? send->bytes : recv->bytes;
    bool apart = s + send->bytes <= r || r + recv->bytes <= s;
    bool in_place = send->bytes <= recv->bytes && !kinds[c->kind].send_parts
                        ? s == r + place_of(c, share)
                        : r == s + place_of(c, share);
    if (share == 0 || apart || in_place)
        return TILE_OK;
    return tl_comm_fail(TILE_BAD_ARGUMENT,
                        "tile_comm_%s: send and recv overlap, and it is not in "
                        "place",
                        kinds[c->kind].name);
}

/* The counts of both arrays, where both are there. */
static tile_status check_pair(const Call *c, const Array *send, const Array *recv)
{
    const char *kind = kinds[c->kind].name;
    uint64_t n = (uint64_t)c->comm->ranks;
    if (send->dtype != recv->dtype)
        return tl_comm_fail(TILE_BAD_ARGUMENT, "tile_comm_%s: send is of %s, recv of %s", kind,
                            tile_dtype_name(send->dtype), tile_dtype_name(recv->dtype));
    uint64_t want = kinds[c->kind].recv_parts == kinds[c->kind].send_parts ? send->count
                    : kinds[c->kind].recv_parts                            ? send->count * n
                                                                           : send->count / n;
    if (recv->count != want || (kinds[c->kind].send_parts && send->count % n))
        return tl_comm_fail(TILE_BAD_ARGUMENT,
                            "tile_comm_%s: send has %llu elements and recv %llu, "
                            "for %d ranks",
                            kind, (unsigned long long)send->count, (unsigned long long)recv->count,
                            c->comm->ranks);
    return check_overlap(c, send, recv);
}

static tile_status nothing(void *user, void *native)
{
    (void)user;
    (void)native;
    return TILE_OK;
}

static tile_status check_call(const Call *c, Array *send, Array *recv)
{
    const char *kind = c->comm ? kinds[c->kind].name : "";
    bool pair = c->kind == TL_SEND || c->kind == TL_RECV;
    if (!c->comm)
        return tl_comm_fail(TILE_BAD_ARGUMENT, "tile_comm_%s: comm is NULL", kinds[c->kind].name);
    tile_status status = kept_failure(c->comm);
    if (status != TILE_OK)
        return status;
    if (c->peer < 0 || c->peer >= c->comm->ranks || (pair && c->peer == c->comm->rank))
        return tl_comm_fail(TILE_BAD_ARGUMENT, "tile_comm_%s: %s rank %d of %d", kind,
                            pair && c->peer == c->comm->rank ? "to itself:" : "no", c->peer,
                            c->comm->ranks);
    if (c->send)
        status = take_array(kind, pair ? "data" : "send", c->send, send);
    if (status == TILE_OK && c->recv)
        status = take_array(kind, pair ? "data" : "recv", c->recv, recv);
    if (status == TILE_OK && c->send && c->recv)
        status = check_pair(c, send, recv);
    if (status == TILE_OK) /* is the stream one of the device, and is that open? */
        status = tile_stream_call(c->comm->device, c->stream, nothing, NULL, NULL, 0);
    if (status != TILE_OK || !kinds[c->kind].reduces)
        return status;
    if ((unsigned)c->reduction > TILE_COMM_AVG)
        return tl_comm_fail(TILE_BAD_ARGUMENT, "tile_comm_%s: no reduction %d", kind,
                            (int)c->reduction);
    return tl_comm_reduces(send->dtype)
               ? TILE_OK
               : tl_comm_fail(TILE_BAD_ARGUMENT,
                              "tile_comm_%s: %s cannot be reduced; f32 f16 bf16 "
                              "f64 i8 u8 i32 u32 i64 u64 can",
                              kind, tile_dtype_name(send->dtype));
}

static tile_status add_op(const Call *c, const Array *send, const Array *recv)
{
    const Array *a = c->send ? send : recv;
    tl_comm_op *op = calloc(1, sizeof *op);
    if (!op)
        return tl_comm_fail(TILE_NO_MEMORY, "out of memory");
    uint64_t parts = kinds[c->kind].send_parts ? (uint64_t)c->comm->ranks : 1;
    *op = (tl_comm_op){.comm = c->comm,
                       .stream = c->stream,
                       .kind = c->kind,
                       .dtype = a->dtype,
                       .reduction = c->reduction,
                       .peer = c->peer,
                       .count = a->count / parts,
                       .size = a->size,
                       .send = c->send ? send->address : NULL,
                       .recv = c->recv ? recv->address : NULL,
                       .written = c->recv ? recv->bytes : 0};
    atomic_init(&op->owners, 2);
    pthread_mutex_lock(&c->comm->lock);
    c->comm->running++;
    pthread_mutex_unlock(&c->comm->lock);
    *group.last = op;
    group.last = &op->next;
    return TILE_OK;
}

static tile_status call(Call c)
{
    Array send = {0}, recv = {0};
    tile_comm_group_begin();
    tile_status status = check_call(&c, &send, &recv);
    if (status == TILE_OK)
        status = add_op(&c, &send, &recv);
    if (status != TILE_OK && group.status == TILE_OK) {
        group.status = status;
        snprintf(group.error, sizeof group.error, "%s", tile_last_error());
    }
    tile_status end = tile_comm_group_end();
    return status == TILE_OK ? end : status;
}

tile_status tile_comm_all_reduce(tile_comm *comm, tile_arg send, tile_arg recv,
                                 tile_comm_reduction reduction, tile_stream *stream)
{
    return call((Call){comm, TL_ALL_REDUCE, &send, &recv, reduction, 0, stream});
}

tile_status tile_comm_reduce(tile_comm *comm, tile_arg send, tile_arg recv,
                             tile_comm_reduction reduction, int root, tile_stream *stream)
{
    bool mine = comm && comm->rank == root;
    return call((Call){comm, TL_REDUCE, &send, mine ? &recv : NULL, reduction, root, stream});
}

tile_status tile_comm_reduce_scatter(tile_comm *comm, tile_arg send, tile_arg recv,
                                     tile_comm_reduction reduction, tile_stream *stream)
{
    return call((Call){comm, TL_REDUCE_SCATTER, &send, &recv, reduction, 0, stream});
}

tile_status tile_comm_all_gather(tile_comm *comm, tile_arg send, tile_arg recv, tile_stream *stream)
{
    return call((Call){comm, TL_ALL_GATHER, &send, &recv, TILE_COMM_SUM, 0, stream});
}

tile_status tile_comm_broadcast(tile_comm *comm, tile_arg send, tile_arg recv, int root,
                                tile_stream *stream)
{
    bool mine = comm && comm->rank == root;
    return call(
        (Call){comm, TL_BROADCAST, mine ? &send : NULL, &recv, TILE_COMM_SUM, root, stream});
}

tile_status tile_comm_all_to_all(tile_comm *comm, tile_arg send, tile_arg recv, tile_stream *stream)
{
    return call((Call){comm, TL_ALL_TO_ALL, &send, &recv, TILE_COMM_SUM, 0, stream});
}

tile_status tile_comm_send(tile_comm *comm, tile_arg data, int to, tile_stream *stream)
{
    return call((Call){comm, TL_SEND, &data, NULL, TILE_COMM_SUM, to, stream});
}

tile_status tile_comm_recv(tile_comm *comm, tile_arg data, int from, tile_stream *stream)
{
    return call((Call){comm, TL_RECV, NULL, &data, TILE_COMM_SUM, from, stream});
}
