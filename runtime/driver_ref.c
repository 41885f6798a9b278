/* The "ref" device: kernels run by the reference interpreter, on this process's memory. The code of
 * a ref image is tile IR as text; it is parsed when a kernel is loaded, into a context of its own.
 * Programs run one after the other in the calling thread, in the order in which they start, so
 * results are the same on every run, atomics included. This is the oracle: made to be right and
 * simple, not fast. Together with jit.c this is the only file of the runtime that knows the
 * compiler's packages; it is a library of its own (tile_ref). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp.h"
#include "runtime/driver.h"

_Static_assert((int)TL_RUN_ASSERT == (int)TL_FAIL_ASSERT &&
                   (int)TL_RUN_BOUNDS == (int)TL_FAIL_BOUNDS &&
                   (int)TL_RUN_ASSUME == (int)TL_FAIL_ASSUME &&
                   (int)TL_RUN_UNINIT == (int)TL_FAIL_UNINIT,
               "kinds of failure go through as they are");
_Static_assert((int)TILE_BOOL == (int)TL_BOOL && (int)TILE_F32 == (int)TL_F32 &&
                   (int)TILE_F4E2M1 == (int)TL_F4E2M1,
               "element types go through as they are");

/* Memory of this device's own: its bytes, and for each byte whether anything was written to it. */
typedef struct Block {
    struct Block *next;
    char *data; /* what the host sees; the shadow follows the bytes */
    uint64_t bytes;
    uint8_t *shadow;
} Block;

struct tl_dev {
    pthread_mutex_t lock; /* guards the list */
    Block *blocks;
};

struct tl_code {
    TlCtx ctx;
    TlModule *module;
    const TlFn *fn;
};

/* ---- device ---------------------------------------------------------------------------------- */

static tile_status ref_open(const char *spec, tl_dev **out_dev)
{
    if (*spec)
        return tl_fail(TILE_BAD_ARGUMENT, "device ref takes no '%s'", spec);
    tl_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    pthread_mutex_init(&dev->lock, NULL);
    *out_dev = dev;
    return TILE_OK;
}

static void ref_close(tl_dev *dev)
{
    pthread_mutex_destroy(&dev->lock);
    free(dev);
}

static void ref_info(tl_dev *dev, tile_device_info *info)
{
    (void)dev;
    strcpy(info->name, "reference interpreter");
    strcpy(info->target, "ref");
    info->processors = 1;
    info->host_memory = 1;
    info->memory_bytes = 0;
}

/* ---- memory -----------------------------------------------------------------------------------
 * As host.c does it, with a shadow: a kernel built with --check that reads what neither a copy, a
 * fill nor a kernel has written is told so. Copies and fills count as soon as they are asked for. */

static tile_status ref_mem_alloc(tl_dev *dev, uint64_t bytes, void **out_address)
{
    Block *b = calloc(1, sizeof *b);
    void *data = NULL;
    if (!b)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    tile_status status = tl_host_mem_alloc(dev, bytes > UINT64_MAX / 2 ? bytes : 2 * bytes, &data);
    if (status != TILE_OK) {
        free(b);
        return status;
    }
    *b = (Block){NULL, data, bytes, (uint8_t *)data + bytes};
    memset(b->shadow, 0, bytes);
    pthread_mutex_lock(&dev->lock);
    b->next = dev->blocks;
    dev->blocks = b;
    pthread_mutex_unlock(&dev->lock);
    *out_address = data;
    return TILE_OK;
}

static void ref_mem_free(tl_dev *dev, void *address)
{
    pthread_mutex_lock(&dev->lock);
    Block **at = &dev->blocks;
    while (*at && (*at)->data != address)
        at = &(*at)->next;
    Block *b = *at;
    if (b)
        *at = b->next;
    pthread_mutex_unlock(&dev->lock);
    tl_host_mem_free(dev, address);
    free(b);
}

/* The block that holds an address; NULL where memory is not ours: all of that counts as written. */
static Block *block_of(tl_dev *dev, const void *address)
{
    uintptr_t at = (uintptr_t)address;
    pthread_mutex_lock(&dev->lock);
    Block *b = dev->blocks;
    while (b && !(at >= (uintptr_t)b->data && at - (uintptr_t)b->data < b->bytes))
        b = b->next;
    pthread_mutex_unlock(&dev->lock);
    return b;
}

static uint8_t *shadow_of(tl_dev *dev, const void *address)
{
    Block *b = block_of(dev, address);
    return b ? b->shadow + ((const char *)address - b->data) : NULL;
}

static tile_status ref_queue_copy(tl_queue *queue, void *target, const void *source, uint64_t bytes,
                                  tl_copy_kind kind)
{
    uint8_t *shadow = kind == TL_COPY_UP ? shadow_of(tl_host_queue_dev(queue), target) : NULL;
    if (shadow)
        memset(shadow, 1, bytes);
    return tl_host_queue_copy(queue, target, source, bytes, kind);
}

static tile_status ref_queue_fill(tl_queue *queue, void *target, int value, uint64_t bytes)
{
    uint8_t *shadow = shadow_of(tl_host_queue_dev(queue), target);
    if (shadow)
        memset(shadow, 1, bytes);
    return tl_host_queue_fill(queue, target, value, bytes);
}

/* ---- code ------------------------------------------------------------------------------------ */

static tile_status fault_status(const TlGuard *g)
{
    if (g->fault == TL_FAULT_MEMORY)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    return tl_fail(TILE_INTERNAL, "internal error in the interpreter: %s", g->text);
}

static const TlFn *find_fn(const TlModule *m, const char *symbol)
{
    for (uint32_t i = 0; i < m->fns.len; i++)
        if (strcmp(m->fns.data[i]->name, symbol) == 0)
            return m->fns.data[i];
    return m->fns.len == 1 ? m->fns.data[0] : NULL;
}

static tile_status parse(tl_code *code, const char *text, size_t size, const char *symbol,
                         uint32_t nparams)
{
    uint32_t source = tl_diags_source(&code->ctx.diags, symbol, text, size);
    code->module = tl_parse_module(&code->ctx, source);
    if (!code->module) {
        const char *why =
            code->ctx.diags.rows.len ? code->ctx.diags.rows.data[0].text : "it does not parse";
        return tl_fail(TILE_BAD_IMAGE,
                       "kernel %s: the image's code is not tile IR of this version: %s", symbol,
                       why);
    }
    code->fn = find_fn(code->module, symbol);
    if (!code->fn || code->fn->body->nargs != nparams)
        return tl_fail(TILE_BAD_IMAGE, "kernel %s: the image's code does not have it", symbol);
    return TILE_OK;
}

static void ref_code_unload(tl_dev *dev, tl_code *code)
{
    (void)dev;
    if (!code)
        return;
    tl_module_free(code->module);
    tl_ctx_free(&code->ctx);
    free(code);
}

/* The text may end with a NUL or not: the parser wants one, so it gets a copy. */
static tile_status guarded_parse(tl_code *code, const void *image, const tile_image_kernel *kernel)
{
    TlGuard g;
    if (TL_GUARD(&g)) {
        tl_ctx_init(&code->ctx, (TlAlloc){NULL, NULL});
        const char *bytes = tl_image_text(image, kernel->code);
        size_t size = kernel->ncode;
        if (size && bytes[size - 1] == 0)
            size--;
        char *text = tl_strndup(&code->ctx.perm, bytes, size);
        tile_status status =
            parse(code, text, size, tl_image_text(image, kernel->symbol), kernel->nparams);
        tl_guard_pop(&g);
        return status;
    }
    return fault_status(&g);
}

static tile_status ref_code_load(tl_dev *dev, const void *image, const tile_image_kernel *kernel,
                                 tl_code **out_code)
{
    tl_code *code = calloc(1, sizeof *code);
    if (!code)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    tile_status status = guarded_parse(code, image, kernel);
    if (status == TILE_OK)
        *out_code = code;
    else
        ref_code_unload(dev, code);
    return status;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct Run {
    const tl_code *code;
    const tl_launch *launch;
    tl_sink *sink;
    int64_t linear; /* the program that runs */
} Run;

static void on_print(void *user, const int32_t *pid, const char *text, TlTileData value)
{
    const Run *run = user;
    (void)pid;
    tl_sink_print(run->sink, run->launch, run->linear, text, (tile_dtype)value.type->dtype,
                  value.type->rank, value.type->shape, value.data);
}

static void on_fail(void *user, const int32_t *pid, TlInterpFailKind kind, TlLoc loc,
                    const char *text)
{
    const Run *run = user;
    (void)pid;
    const TlDiags *diags = &run->code->ctx.diags;
    const char *path =
        loc.line && loc.file < diags->sources.len ? diags->sources.data[loc.file].path : "";
    tl_sink_fail(run->sink, run->launch, run->linear, (tl_fail_kind)kind, path, loc.line, loc.col,
                 text);
}

/* Without --check nobody notes what is written: then everything of the argument's block may be. */
static uint8_t *argument_shadow(tl_dev *dev, const tl_launch *launch, const void *address)
{
    if (launch->kernel->flags & TILE_KERNEL_CHECKED)
        return shadow_of(dev, address);
    Block *b = block_of(dev, address);
    if (b)
        memset(b->shadow, 1, b->bytes);
    return NULL;
}

static void bind_args(tl_dev *dev, const tl_launch *launch, TlInterpArg *to)
{
    for (uint32_t i = 0; i < launch->nargs; i++) {
        const tile_arg *from = &launch->args[i];
        memset(&to[i], 0, sizeof to[i]);
        to[i].address = from->address;
        to[i].bytes = from->bytes;
        to[i].scalar = from->scalar;
        to[i].shadow = argument_shadow(dev, launch, from->address);
        memcpy(to[i].extent, from->extent, sizeof to[i].extent);
        memcpy(to[i].stride, from->stride, sizeof to[i].stride);
    }
}

static void run_programs(Run *run, const TlInterpArg *args, TlArena *scratch)
{
    bool check = run->launch->kernel->flags & TILE_KERNEL_CHECKED;
    TlInterpOptions options = {check, {run, on_print, on_fail, NULL}};
    for (run->linear = 0; run->linear < run->launch->programs; run->linear++) {
        int32_t pid[TILE_MAX_GRID];
        tl_launch_pid(run->launch, run->linear, pid);
        tl_interp_program(run->code->fn, args, pid, run->launch->grid, &options, scratch);
        tl_arena_free(scratch);
    }
}

static tile_status ref_run(tl_dev *dev, tl_code *code, const tl_launch *launch, tl_sink *sink)
{
    TlInterpArg args[TL_MAX_PARAMS];
    Run run = {code, launch, sink, 0};
    TlArena scratch;
    TlGuard g;
    bind_args(dev, launch, args);
    tl_arena_init(&scratch, (TlAlloc){NULL, NULL});
    if (TL_GUARD(&g)) {
        run_programs(&run, args, &scratch);
        tl_guard_pop(&g);
        return TILE_OK;
    }
    tl_arena_free(&scratch);
    return fault_status(&g);
}

static const tl_driver driver = {
    .kind = "ref",
    .open = ref_open,
    .close = ref_close,
    .info = ref_info,
    .mem_alloc = ref_mem_alloc,
    .mem_free = ref_mem_free,
    .queue_copy = ref_queue_copy,
    .queue_fill = ref_queue_fill,
    TL_HOST_QUEUE_FUNCTIONS,
    .code_load = ref_code_load,
    .code_unload = ref_code_unload,
    .run = ref_run,
};

const tl_driver *tl_driver_ref(void)
{
    return &driver;
}
