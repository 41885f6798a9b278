/* comm_nccl.c: the ranks are GPUs, and the work is done by NCCL or RCCL, which have the same
 * functions; the library is loaded with dlopen, and none of its headers is used.
 *
 * On GPUs a group's operations go into their streams between NCCL's own group calls, each with its
 * device as the thread's. An all_to_all is a group of sends and receives; in place, by way of a
 * buffer that the communicator keeps.
 *
 * A library that the caller names may also work on memory of the host (as the tests' does). Then
 * the calls are made at the operations' place in the stream, a group for what follows each other
 * in one stream. */
#include "runtime/collectives/comm.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tl_nccl_id {
    char bytes[128];
} tl_nccl_id;

enum { OLDEST = 21000 /* 2.10: means, bf16 */, CODE_IN_PROGRESS = 7 };

typedef struct Nccl {
    struct Nccl *next;
    char name[256];
#define NCCL(field, symbol, parameters) int(*field) parameters;
#include "runtime/collectives/nccl_syms.def"
    const char *(*text)(int code);
    const char *(*last)(void *comm); /* NULL before 2.13 */
} Nccl;

typedef struct Member {
    const Nccl *nccl;
    void *comm;          /* NULL: aborted */
    bool host;           /* the device's memory is */
    tile_buffer *buffer; /* for all_to_all in place; `pending`: one of the group has it */
    bool pending;
    pthread_mutex_t lock;
} Member;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Nccl *libraries;

/* ---- libraries ---- */

static tile_status find_symbol(void *library, const char *name, const char *symbol, bool required,
                               void *to)
{
    void *found = dlsym(library, symbol);
    memcpy(to, &found, sizeof found);
    return found || !required ? TILE_OK
                              : tl_comm_fail(TILE_UNAVAILABLE, "%s has no %s", name, symbol);
}

static tile_status find_symbols(void *library, Nccl *n)
{
    tile_status status = TILE_OK;
#define NCCL(field, symbol, parameters)                                                            \
    if (status == TILE_OK)                                                                         \
        status = find_symbol(library, n->name, #symbol, true, &n->field);
#include "runtime/collectives/nccl_syms.def"
    if (status == TILE_OK)
        status = find_symbol(library, n->name, "ncclGetErrorString", true, &n->text);
    if (status == TILE_OK)
        status = find_symbol(library, n->name, "ncclGetLastError", false, &n->last);
    return status;
}

static tile_status check_version(const Nccl *n)
{
    int version = 0, code = n->version(&version);
    if (code)
        return tl_comm_fail(TILE_UNAVAILABLE, "%s: ncclGetVersion: %s", n->name, n->text(code));
    return version >= OLDEST ? TILE_OK
                             : tl_comm_fail(TILE_UNAVAILABLE,
                                            "%s has version %d, but %d or newer is "
                                            "required",
                                            n->name, version, OLDEST);
}

/* It stays loaded: NCCL has threads. */
static tile_status open_library(const char *name, Nccl **out)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return tl_comm_fail(TILE_UNAVAILABLE, "nccl: %s", dlerror());
    Nccl *n = calloc(1, sizeof *n);
    if (!n)
        return tl_comm_fail(TILE_NO_MEMORY, "out of memory");
    snprintf(n->name, sizeof n->name, "%s", name);
    tile_status status = find_symbols(library, n);
    if (status == TILE_OK)
        status = check_version(n);
    if (status != TILE_OK) {
        free(n);
        return status;
    }
    n->next = libraries;
    *out = libraries = n;
    return TILE_OK;
}

tile_status tl_nccl_load(tile_device *device, const char *library, void **out_nccl)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_status status = tile_device_get_info(device, &info);
    if (status != TILE_OK)
        return status;
    if (!library)
        library = strncmp(info.target, "gfx", 3) == 0 ? "librccl.so.1" : "libnccl.so.2";
    pthread_mutex_lock(&lock);
    Nccl *n = libraries;
    while (n && strcmp(n->name, library) != 0)
        n = n->next;
    status = n ? TILE_OK : open_library(library, &n);
    pthread_mutex_unlock(&lock);
    *out_nccl = n;
    return status;
}

static tile_status failed(const Nccl *n, void *comm, const char *function, int code)
{
    const char *more = n->last ? n->last(comm) : NULL;
    return tl_comm_fail(TILE_DRIVER, "%s: %s: %s%s%s", n->name, function, n->text(code),
                        more && *more ? ": " : "", more ? more : "");
}

tile_status tl_nccl_key(void *nccl, tl_comm_key *key)
{
    const Nccl *n = nccl;
    tl_nccl_id id = {{0}};
    int code = n->id(&id);
    memcpy(key->nccl, &id, sizeof id);
    return code ? failed(n, NULL, "ncclGetUniqueId", code) : TILE_OK;
}

/* ---- communicators ---- */

typedef struct Join {
    tile_comm *comm;
    tl_nccl_id id;
} Join;

static tile_status join_on_device(void *user, void *native)
{
    const Join *j = user;
    Member *m = j->comm->state;
    (void)native;
    int code = m->nccl->join(&m->comm, j->comm->ranks, j->id, j->comm->rank);
    return code ? failed(m->nccl, NULL, "ncclCommInitRank", code) : TILE_OK;
}

static void close_member(tile_comm *c)
{
    Member *m = c->state;
    if (m->comm)
        m->nccl->leave(m->comm);
    tile_buffer_free(m->buffer);
    pthread_mutex_destroy(&m->lock);
    free(m);
    c->state = NULL;
}

static tile_status new_member(tile_comm *c, const Nccl *nccl)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_status status = tile_device_get_info(c->device, &info);
    Member *m = status == TILE_OK ? calloc(1, sizeof *m) : NULL;
    if (!m)
        return status == TILE_OK ? tl_comm_fail(TILE_NO_MEMORY, "out of memory") : status;
    pthread_mutex_init(&m->lock, NULL);
    m->nccl = nccl;
    m->host = info.host_memory;
    c->state = m;
    return TILE_OK;
}

tile_status tl_nccl_join(tile_comm *const *comms, int n, void *nccl, const tl_comm_key *key)
{
    const Nccl *lib = nccl;
    Join j;
    tile_status status = TILE_OK;
    memcpy(&j.id, key->nccl, sizeof j.id);
    for (int i = 0; status == TILE_OK && i < n; i++)
        status = new_member(comms[i], lib);
    if (status == TILE_OK && n > 1)
        lib->group_start();
    for (int i = 0; status == TILE_OK && i < n; i++) {
        j.comm = comms[i];
        status = tile_stream_call(j.comm->device, NULL, join_on_device, &j, NULL, 0);
    }
    int code = n > 1 ? lib->group_end() : 0;
    if (status == TILE_OK && code)
        status = failed(lib, NULL, "ncclGroupEnd", code);
    if (status == TILE_OK)
        return TILE_OK;
    char text[1024];
    snprintf(text, sizeof text, "%s", tile_last_error());
    for (int i = 0; i < n; i++)
        if (comms[i]->state)
            close_member(comms[i]);
    return tile_set_last_error(status, text);
}

static tile_status poll_member(tile_comm *c)
{
    Member *m = c->state;
    int code = 0, result = 0;
    pthread_mutex_lock(&m->lock);
    if (m->comm)
        result = m->nccl->error(m->comm, &code);
    pthread_mutex_unlock(&m->lock);
    if (code == CODE_IN_PROGRESS)
        code = 0;
    if (!result && !code)
        return TILE_OK;
    failed(m->nccl, m->comm, result ? "ncclCommGetAsyncError" : "an operation",
           result ? result : code);
    return tl_comm_broke(c, TILE_DRIVER, "%.500s", tile_last_error());
}

/* Ends its kernels, too. Once. */
static void abort_member(tile_comm *c)
{
    Member *m = c->state;
    pthread_mutex_lock(&m->lock);
    void *comm = m->comm;
    m->comm = NULL;
    pthread_mutex_unlock(&m->lock);
    if (comm)
        m->nccl->abort(comm);
}

/* ---- operations ---- */

/* -1: NCCL does not know it; then it moves bytes. */
static int type_of(tile_dtype dtype)
{
    static const struct {
        tile_dtype dtype;
        int type;
    } types[] = {{TILE_I8, 0},  {TILE_U8, 1},  {TILE_I32, 2}, {TILE_U32, 3}, {TILE_I64, 4},
                 {TILE_U64, 5}, {TILE_F16, 6}, {TILE_F32, 7}, {TILE_F64, 8}, {TILE_BF16, 9}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == dtype)
            return types[i].type;
    return -1;
}

static int reduction_of(tile_comm_reduction reduction)
{
    switch (reduction) {
    case TILE_COMM_SUM: return 0;
    case TILE_COMM_PROD: return 1;
    case TILE_COMM_MAX: return 2;
    case TILE_COMM_MIN: return 3;
    case TILE_COMM_AVG: return 4;
    }
    return 0;
}

/* Part r of `from` to rank r, and part r of `to` from there. */
static int exchange(const tl_comm_op *op, const char *from, char *to, size_t n, int type,
                    void *stream)
{
    const Member *m = op->comm->state;
    size_t share = op->count * op->size;
    int code = m->nccl->group_start();
    for (int r = 0; !code && r < op->comm->ranks; r++) {
        code = m->nccl->send(from + (size_t)r * share, n, type, r, m->comm, stream);
        if (!code)
            code = m->nccl->recv(to + (size_t)r * share, n, type, r, m->comm, stream);
    }
    int end = m->nccl->group_end();
    return code ? code : end;
}

static int put(const tl_comm_op *op, void *stream)
{
    const Member *m = op->comm->state;
    const Nccl *n = m->nccl;
    int known = type_of(op->dtype), type = known < 0 ? 0 : known;
    int reduction = reduction_of(op->reduction);
    size_t count = known < 0 ? op->count * op->size : op->count;
    switch (op->kind) {
    case TL_ALL_REDUCE:
        return n->all_reduce(op->send, op->recv, count, type, reduction, m->comm, stream);
    case TL_REDUCE:
        return n->reduce(op->send, op->recv, count, type, reduction, op->peer, m->comm, stream);
    case TL_REDUCE_SCATTER:
        return n->reduce_scatter(op->send, op->recv, count, type, reduction, m->comm, stream);
    case TL_ALL_GATHER: return n->all_gather(op->send, op->recv, count, type, m->comm, stream);
    case TL_BROADCAST:
        return n->broadcast(op->send, op->recv, count, type, op->peer, m->comm, stream);
    case TL_ALL_TO_ALL:
        return exchange(op, op->send, op->state ? op->state : op->recv, count, type, stream);
    case TL_SEND: return n->send(op->send, count, type, op->peer, m->comm, stream);
    case TL_RECV: return n->recv(op->recv, count, type, op->peer, m->comm, stream);
    }
    return 0;
}

static const char *function_of(tl_comm_kind kind)
{
    static const char *const names[] = {[TL_ALL_REDUCE] = "ncclAllReduce",
                                        [TL_REDUCE] = "ncclReduce",
                                        [TL_REDUCE_SCATTER] = "ncclReduceScatter",
                                        [TL_ALL_GATHER] = "ncclAllGather",
                                        [TL_BROADCAST] = "ncclBroadcast",
                                        [TL_ALL_TO_ALL] = "ncclSend and ncclRecv",
                                        [TL_SEND] = "ncclSend",
                                        [TL_RECV] = "ncclRecv"};
    return names[kind];
}

static tile_status put_on_device(void *user, void *native)
{
    tl_comm_op *op = user;
    Member *m = op->comm->state;
    if (!m->comm)
        return tl_comm_broke(op->comm, TILE_FAILED, "rank %d was aborted", op->comm->rank);
    int code = op->count ? put(op, native) : 0;
    if (!code)
        return TILE_OK;
    failed(m->nccl, m->comm, function_of(op->kind), code);
    return tl_comm_broke(op->comm, TILE_DRIVER, "%.500s", tile_last_error());
}

static void give_buffer(tl_comm_op *op)
{
    Member *m = op->comm->state;
    if (op->state && m)
        m->pending = false;
    op->state = NULL;
}

/* From the buffer to where it was to go: this rank sends all to itself. */
static tile_status bring_back(void *user, void *native)
{
    const tl_comm_op *op = user;
    Member *m = op->comm->state;
    size_t bytes = op->count * op->size * (size_t)op->comm->ranks;
    if (!op->state || !bytes || !m->comm)
        return TILE_OK;
    int code = m->nccl->group_start();
    if (!code)
        code = m->nccl->send(op->state, bytes, 0, op->comm->rank, m->comm, native);
    if (!code)
        code = m->nccl->recv(op->recv, bytes, 0, op->comm->rank, m->comm, native);
    int end = m->nccl->group_end();
    if (!code && !end)
        return TILE_OK;
    failed(m->nccl, m->comm, function_of(op->kind), code ? code : end);
    return tl_comm_broke(op->comm, TILE_DRIVER, "%.500s", tile_last_error());
}

/* The buffer of an all_to_all in place; it grows, and what used it before is waited for. */
static tile_status prepare(tl_comm_op *op)
{
    Member *m = op->comm->state;
    uint64_t bytes = (uint64_t)op->count * op->size * (uint64_t)op->comm->ranks;
    if (op->kind != TL_ALL_TO_ALL || op->send != op->recv || !bytes)
        return TILE_OK;
    if (m->pending)
        return tl_comm_fail(TILE_UNAVAILABLE, "nccl: a group has one tile_comm_all_to_all in place "
                                              "of a communicator, not two");
    if (!m->buffer || tile_buffer_bytes(m->buffer) < bytes) {
        tile_status status = m->buffer ? tile_device_synchronize(op->comm->device) : TILE_OK;
        tile_buffer_free(m->buffer);
        m->buffer = NULL;
        if (status == TILE_OK)
            status = tile_buffer_alloc(op->comm->device, bytes, &m->buffer);
        if (status != TILE_OK)
            return status;
    }
    op->state = tile_buffer_ptr(m->buffer);
    m->pending = true;
    return TILE_OK;
}

/* ---- groups ---- */

typedef tile_status Put(void *op, void *native);

static tile_status put_all(tl_comm_op *const *ops, size_t n, Put *put_one)
{
    tile_status first = TILE_OK;
    for (size_t i = 0; i < n; i++) {
        tile_status status =
            tile_stream_call(ops[i]->comm->device, ops[i]->stream, put_one, ops[i], NULL, 0);
        first = first == TILE_OK ? status : first;
    }
    return first;
}

/* All that failed is each communicator's failure: which of them NCCL has started is not known. */
static tile_status break_all(tl_comm_op *const *ops, size_t n, tile_status status)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", tile_last_error());
    for (size_t i = 0; i < n; i++)
        tl_comm_broke(ops[i]->comm, status, "%.500s", text);
    return tile_set_last_error(status, text);
}

static tile_status flush_gpu(tl_comm_op *const *ops, size_t n)
{
    const Member *m = ops[0]->comm->state;
    char text[1024];
    int code = m->nccl->group_start();
    tile_status status =
        code ? failed(m->nccl, NULL, "ncclGroupStart", code) : put_all(ops, n, put_on_device);
    snprintf(text, sizeof text, "%s", status == TILE_OK ? "" : tile_last_error());
    code = code ? 0 : m->nccl->group_end();
    if (status != TILE_OK)
        tile_set_last_error(status, text);
    else if (code)
        status = failed(m->nccl, m->comm, "ncclGroupEnd", code);
    if (status == TILE_OK)
        status = put_all(ops, n, bring_back);
    return status == TILE_OK ? TILE_OK : break_all(ops, n, status);
}

static void end_op(tl_comm_op *op)
{
    give_buffer(op);
    atomic_store(&op->ended, true);
    tl_comm_end(op);
}

/* What follows each other in one stream of a host device. */
typedef struct Row {
    size_t n;
    tl_comm_op *op[];
} Row;

static tile_status put_row(void *user, void *native)
{
    Row *row = user;
    const Member *m = row->op[0]->comm->state;
    tile_status status = TILE_OK;
    int code = m->nccl->group_start();
    for (size_t i = 0; status == TILE_OK && i < row->n; i++)
        status = put_on_device(row->op[i], native);
    int end = m->nccl->group_end();
    if (status == TILE_OK && (code || end))
        status = tl_comm_broke(row->op[0]->comm, TILE_DRIVER, "%s: the group: %s", m->nccl->name,
                               m->nccl->text(code ? code : end));
    for (size_t i = 0; status == TILE_OK && i < row->n; i++)
        status = bring_back(row->op[i], native);
    for (size_t i = 0; i < row->n; i++)
        end_op(row->op[i]);
    free(row);
    return status;
}

static tile_status flush_row(tl_comm_op *const *ops, size_t n)
{
    Row *row = malloc(sizeof *row + n * sizeof(tl_comm_op *));
    tile_status status = TILE_NO_MEMORY;
    if (row) {
        row->n = n;
        memcpy(row->op, ops, n * sizeof *ops);
        status = tile_stream_call(ops[0]->comm->device, ops[0]->stream, put_row, row, NULL, 0);
    } else {
        tl_comm_fail(status, "out of memory");
    }
    if (status == TILE_OK || atomic_load(&ops[0]->ended))
        return status;
    free(row); /* the stream has not taken it */
    status = break_all(ops, n, status);
    for (size_t i = 0; i < n; i++)
        end_op(ops[i]);
    return status;
}

static tile_status flush_rows(tl_comm_op *const *ops, size_t n)
{
    tile_status first = TILE_OK;
    for (size_t from = 0, to; from < n; from = to) {
        to = from + 1;
        while (to < n && ops[to]->stream == ops[from]->stream && ops[to]->comm == ops[from]->comm)
            to++;
        tile_status status = flush_row(ops + from, to - from);
        first = first == TILE_OK ? status : first;
    }
    return first;
}

static tile_status flush(tl_comm_op *const *ops, size_t n)
{
    const Member *m = ops[0]->comm->state;
    if (m->host)
        return flush_rows(ops, n);
    tile_status status = flush_gpu(ops, n);
    for (size_t i = 0; i < n; i++)
        end_op(ops[i]);
    return status;
}

const tl_comm_backend tl_comm_nccl = {.name = "nccl",
                                      .prepare = prepare,
                                      .drop = give_buffer,
                                      .flush = flush,
                                      .poll = poll_member,
                                      .abort = abort_member,
                                      .close = close_member};
