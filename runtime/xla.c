/* xla.c: kernels as custom calls of XLA (tile_xla.h).
 *
 * XLA hands a handler a frame: operands and results as buffers, and attributes by name. One handler
 * serves all kernels: an attribute says which, by a number in the table below, and another says
 * which buffer or scalar each parameter is. XLA may call from several threads. */
#include "runtime/include/tile_xla.h"
#include "runtime/runtime.h"
#include "runtime/xla_ffi.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- which kernel ---- */

static struct {
    pthread_mutex_t lock;
    int64_t first; /* the number of row 0 */
    size_t n, room;
    tile_kernel **kernels; /* NULL: unregistered */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool make_room(void)
{
    size_t room = table.room ? 2 * table.room : 16;
    tile_kernel **kernels = realloc(table.kernels, room * sizeof(tile_kernel *));
    if (!kernels)
        return false;
    if (!table.room) {
        if (getrandom(&table.first, sizeof table.first, 0) < 0)
            table.first = (int64_t)(uintptr_t)kernels;
        table.first &= INT64_MAX >> 16; /* so that no number wraps */
    }
    table.kernels = kernels;
    table.room = room;
    return true;
}

tile_status tile_xla_register(tile_kernel *kernel, int64_t *out_id)
{
    if (!kernel || !out_id)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_xla_register: %s is NULL",
                       kernel ? "out_id" : "kernel");
    pthread_mutex_lock(&table.lock);
    bool fits = table.n < table.room || make_room();
    if (fits) {
        *out_id = table.first + (int64_t)table.n;
        table.kernels[table.n++] = kernel;
    }
    pthread_mutex_unlock(&table.lock);
    return fits ? TILE_OK : tl_fail(TILE_NO_MEMORY, "tile_xla_register: out of memory");
}

/* The row of a number. Locked. NULL: none. */
static tile_kernel **row_of(int64_t id)
{
    bool known = id >= table.first && (uint64_t)(id - table.first) < table.n;
    return known ? &table.kernels[id - table.first] : NULL;
}

void tile_xla_unregister(int64_t id)
{
    pthread_mutex_lock(&table.lock);
    tile_kernel **row = row_of(id);
    if (row)
        *row = NULL;
    pthread_mutex_unlock(&table.lock);
}

static tile_kernel *kernel_of(int64_t id)
{
    pthread_mutex_lock(&table.lock);
    tile_kernel **row = row_of(id);
    tile_kernel *kernel = row ? *row : NULL;
    pthread_mutex_unlock(&table.lock);
    return kernel;
}

/* ---- attributes ---- */

static const void *attribute(const xla_frame *f, const char *name, int32_t type)
{
    for (int64_t i = 0; i < f->attributes.size; i++) {
        const xla_text *t = f->attributes.names[i];
        if (f->attributes.types[i] == type && t->size == strlen(name) &&
            memcmp(t->data, name, t->size) == 0)
            return f->attributes.items[i];
    }
    return NULL;
}

typedef struct numbers {
    const int64_t *data;
    size_t n;
} numbers;

static numbers numbers_of(const xla_frame *f, const char *name)
{
    const xla_array *a = attribute(f, name, XLA_ARRAY);
    bool fine = a && a->type == XLA_S64;
    return (numbers){fine ? a->data : NULL, fine ? a->size : 0};
}

/* ---- the call ---- */

static const int8_t DTYPE[XLA_TYPES] = {
    [XLA_PRED] = TILE_BOOL + 1,
    [XLA_S8] = TILE_I8 + 1,
    [XLA_S16] = TILE_I16 + 1,
    [XLA_S32] = TILE_I32 + 1,
    [XLA_S64] = TILE_I64 + 1,
    [XLA_U8] = TILE_U8 + 1,
    [XLA_U16] = TILE_U16 + 1,
    [XLA_U32] = TILE_U32 + 1,
    [XLA_U64] = TILE_U64 + 1,
    [XLA_F16] = TILE_F16 + 1,
    [XLA_F32] = TILE_F32 + 1,
    [XLA_F64] = TILE_F64 + 1,
    [XLA_BF16] = TILE_BF16 + 1,
    [XLA_F8E5M2] = TILE_F8E5M2 + 1,
    [XLA_F8E4M3FN] = TILE_F8E4M3 + 1,
    [XLA_F8E5M2FNUZ] = TILE_F8E5M2FNUZ + 1,
    [XLA_F8E4M3FNUZ] = TILE_F8E4M3FNUZ + 1,
};

static tile_status view_of(const xla_list *list, int64_t i, tile_arg *out)
{
    const xla_buffer *b = list->types[i] == XLA_BUFFER ? list->items[i] : NULL;
    int32_t type = b && b->type >= 0 && b->type < XLA_TYPES ? DTYPE[b->type] : 0;
    if (!type || b->rank > TILE_MAX_RANK)
        return tl_fail(TILE_BAD_ARGUMENT, "XLA's buffer %lld: its type or rank has no counterpart",
                       (long long)i);
    *out = (tile_arg){
        .kind = TILE_ARG_VIEW, .dtype = type - 1, .rank = (int32_t)b->rank, .address = b->data};
    for (int64_t axis = 0; axis < b->rank; axis++)
        out->extent[axis] = b->dims[axis];
    return TILE_OK;
}

static tile_status argument(const xla_frame *f, int64_t place, numbers scalars, numbers types,
                            tile_arg *out)
{
    uint64_t k = place < 0 ? (uint64_t)(-1 - place) : (uint64_t)place;
    uint64_t operands = (uint64_t)f->operands.size, results = (uint64_t)f->results.size;
    if (place < 0 && k < scalars.n && k < types.n) {
        *out = tile_arg_scalar((tile_dtype)types.data[k], &scalars.data[k],
                               (size_t)(tile_dtype_bits((tile_dtype)types.data[k]) + 7) / 8);
        return TILE_OK;
    }
    if (place >= 0 && k < operands + results)
        return k < operands ? view_of(&f->operands, (int64_t)k, out)
                            : view_of(&f->results, (int64_t)(k - operands), out);
    return tl_fail(TILE_BAD_ARGUMENT, "XLA's call has no place %lld", (long long)place);
}

static tile_status launch(const xla_frame *f, tile_kernel *kernel, const tile_arg *args, size_t n)
{
    static pthread_mutex_t lock =
        PTHREAD_MUTEX_INITIALIZER; /* a stream takes one launch at a time */
    tile_device *device = kernel->module->device;
    tile_stream *stream = NULL;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_status status = tile_device_get_info(device, &info);
    if (status != TILE_OK)
        return status;
    if (info.host_memory) {
        pthread_mutex_lock(&lock);
        status = tile_launch(kernel, NULL, args, n);
        if (status == TILE_OK)
            status = tile_device_default_stream(device, &stream);
        if (status == TILE_OK)
            status = tile_stream_synchronize(stream);
        pthread_mutex_unlock(&lock);
        return status;
    }
    xla_stream_args s = {.struct_size = sizeof s, .context = f->context};
    if (f->api->stream_get(&s))
        return tl_fail(TILE_UNAVAILABLE, "XLA has no stream for the kernel");
    status = tile_stream_wrap(device, s.stream, &stream);
    if (status != TILE_OK)
        return status;
    status = tile_launch(kernel, stream, args, n);
    tile_stream_free(stream);
    return status;
}

static tile_status call(const xla_frame *f)
{
    const xla_scalar *id = attribute(f, "kernel", XLA_SCALAR);
    numbers places = numbers_of(f, "places"), scalars = numbers_of(f, "scalars"),
            types = numbers_of(f, "types");
    int64_t number = 0;
    if (!id || id->type != XLA_S64)
        return tl_fail(TILE_BAD_ARGUMENT, "XLA's call lacks the attribute 'kernel', an i64");
    memcpy(&number, id->value, sizeof number);
    tile_kernel *kernel = kernel_of(number);
    if (!kernel)
        return tl_fail(TILE_NOT_FOUND,
                       "this process has registered no kernel %lld: the call was "
                       "compiled by another one",
                       (long long)number);
    tile_arg *args = calloc(places.n + 1, sizeof *args);
    tile_status status = args ? TILE_OK : tl_fail(TILE_NO_MEMORY, "out of memory for a call");
    for (size_t i = 0; status == TILE_OK && i < places.n; i++)
        status = argument(f, places.data[i], scalars, types, &args[i]);
    if (status == TILE_OK)
        status = launch(f, kernel, args, places.n);
    free(args);
    return status;
}

static xla_code code_of(tile_status status)
{
    return status == TILE_BAD_ARGUMENT ? XLA_INVALID_ARGUMENT
           : status == TILE_NOT_FOUND  ? XLA_NOT_FOUND
           : status == TILE_NO_MEMORY  ? XLA_RESOURCE_EXHAUSTED
                                       : XLA_INTERNAL;
}

/* XLA asks a handler first for which version of the interface it is. */
static bool answers(const xla_frame *f)
{
    for (xla_extension *e = f->extensions; e; e = e->next)
        if (e->type == XLA_METADATA) {
            xla_metadata *m = ((xla_metadata_extension *)e)->metadata;
            m->version.major = 0;
            m->version.minor = 1;
            return true;
        }
    return false;
}

void *tile_xla_call(void *call_frame)
{
    const xla_frame *f = call_frame;
    if (answers(f) || f->stage != XLA_EXECUTE)
        return NULL;
    tile_status status = call(f);
    xla_error_args e = {sizeof e, NULL, tile_last_error(), code_of(status)};
    return status == TILE_OK ? NULL : f->api->error_create(&e);
}
