/* The "ref" device: kernels run by the reference interpreter, on this process's memory. The code of
 * a ref image is tile IR as text; it is parsed when a kernel is loaded, into a context of its own.
 * Programs run one after the other in the calling thread, in the order in which they start, so
 * results are the same on every run, atomics included. This is the oracle: made to be right and
 * simple, not fast.
 *
 * Device memory has a shadow: one byte per byte, 0 until something writes it. Copies, fills and the
 * stores of checked kernels mark what they write; a checked kernel that reads what is not marked
 * fails (the interpreter does both). A kernel that is not checked marks nothing as it goes, so the
 * buffers it may write count as written as a whole from there on. Memory that is not from
 * tile_buffer_alloc has no shadow, and neither has what the host writes through a buffer's address.
 *
 * Together with jit.c this is the only file of the runtime that knows the compiler's packages; it
 * is a library of its own (tile_ref). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "runtime/driver.h"
#include "runtime/life.h"

_Static_assert((int)TL_RUN_ASSERT == (int)TL_FAIL_ASSERT &&
                   (int)TL_RUN_BOUNDS == (int)TL_FAIL_BOUNDS &&
                   (int)TL_RUN_ASSUME == (int)TL_FAIL_ASSUME &&
                   (int)TL_RUN_UNINIT == (int)TL_FAIL_UNINIT &&
                   (int)TL_RUN_ASYNC == (int)TL_FAIL_ASYNC,
               "kinds of failure go through as they are");
_Static_assert((int)TILE_MAX_RANK == (int)TL_MAX_VIEW_RANK,
               "extents and strides go through as they are");
_Static_assert((int)TILE_BOOL == (int)TL_BOOL && (int)TILE_F32 == (int)TL_F32 &&
                   (int)TILE_F4E2M1 == (int)TL_F4E2M1,
               "element types go through as they are");

typedef struct Block Block;
struct Block {
    Block *next;
    char *address;
    uint64_t bytes;
    uint8_t *shadow;
    bool whole; /* an unchecked kernel may have written it: all of it counts as written */
};

/* Streams have threads of their own, so the list has a lock. Shadows have none: accesses to a
 * byte's shadow are ordered as accesses to the byte are. */
struct tl_dev {
    tl_life life;
    pthread_mutex_t lock;
    Block *blocks;
};

struct tl_code {
    TlCtx ctx;
    TlModule *module;
    const TlFn *fn;
};

/* ---- device ---------------------------------------------------------------------------------- */

/* The thread of a stream may have been looking a block up. */
static void forked(tl_life *life)
{
    pthread_mutex_init(&((tl_dev *)life)->lock, NULL);
}

static tile_status ref_open(const char *spec, const tile_device_options *options, tl_dev **out_dev)
{
    (void)options;
    if (*spec)
        return tl_fail(TILE_BAD_ARGUMENT, "device ref takes no '%s'", spec);
    tl_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    pthread_mutex_init(&dev->lock, NULL);
    dev->life.forked = forked;
    tl_life_begin(&dev->life);
    *out_dev = dev;
    return TILE_OK;
}

static void ref_close(tl_dev *dev)
{
    TL_INVARIANT_VOID(!dev->blocks, "device ref is closed while memory of it is in use");
    tl_life_end(&dev->life);
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

/* ---- memory ---------------------------------------------------------------------------------- */

enum { FRESH = 0xAB }; /* fills new memory, so that results are the same on every run */

static tile_status ref_mem_alloc(tl_dev *dev, uint64_t bytes, void **out_address)
{
    tile_status status = tl_host_mem_alloc(dev, bytes, out_address);
    if (status != TILE_OK)
        return status;
    Block *b = calloc(1, sizeof *b);
    uint8_t *shadow = calloc(bytes ? bytes : 1, 1);
    if (!b || !shadow) {
        free(b);
        free(shadow);
        tl_host_mem_free(dev, *out_address);
        return tl_fail(TILE_NO_MEMORY, "out of memory: the shadow of a buffer of %llu bytes",
                       (unsigned long long)bytes);
    }
    memset(*out_address, FRESH, bytes);
    b->address = *out_address;
    b->bytes = bytes;
    b->shadow = shadow;
    pthread_mutex_lock(&dev->lock);
    b->next = dev->blocks;
    dev->blocks = b;
    pthread_mutex_unlock(&dev->lock);
    return TILE_OK;
}

static void ref_mem_free(tl_dev *dev, void *address)
{
    pthread_mutex_lock(&dev->lock);
    Block **at = &dev->blocks;
    while (*at && (*at)->address != address)
        at = &(*at)->next;
    Block *b = *at;
    if (b)
        *at = b->next;
    pthread_mutex_unlock(&dev->lock);
    TL_INVARIANT_VOID(b, "memory at %p is freed that was not allocated", address);
    if (b)
        free(b->shadow);
    free(b);
    tl_host_mem_free(dev, address);
}

/* The block that has the byte at `address`; the lock is held. */
static Block *find_block(tl_dev *dev, const void *address)
{
    uintptr_t at = (uintptr_t)address;
    for (Block *b = dev->blocks; b; b = b->next)
        if (at >= (uintptr_t)b->address && at - (uintptr_t)b->address < b->bytes)
            return b;
    return NULL;
}

/* The shadow of the byte at `address` and how many bytes of the block begin there; NULL: not
 * tracked. A block in use is not freed, so both remain valid without the lock. */
static uint8_t *find_shadow(tl_dev *dev, const void *address, uint64_t *out_left)
{
    pthread_mutex_lock(&dev->lock);
    const Block *b = find_block(dev, address);
    uint64_t offset = b ? (uintptr_t)address - (uintptr_t)b->address : 0;
    uint8_t *shadow = b && !b->whole ? b->shadow + offset : NULL;
    *out_left = b ? b->bytes - offset : UINT64_MAX;
    pthread_mutex_unlock(&dev->lock);
    return shadow;
}

static void ref_wrote(tl_dev *dev, const void *target, uint64_t bytes)
{
    uint64_t left;
    uint8_t *shadow = find_shadow(dev, target, &left);
    if (shadow)
        memset(shadow, 1, bytes < left ? bytes : left);
}

static void give_up_on(tl_dev *dev, const void *address)
{
    pthread_mutex_lock(&dev->lock);
    Block *b = find_block(dev, address);
    if (b)
        b->whole = true;
    pthread_mutex_unlock(&dev->lock);
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
        return tl_fail(TILE_BAD_IMAGE, "kernel %s: it is missing in the image's code", symbol);
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

/* The parser needs a NUL at the end, which the image's text may lack: it gets a copy. */
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

static void bind_args(const tl_launch *launch, TlInterpArg *to)
{
    TL_INVARIANT_VOID(launch->nargs <= TL_MAX_PARAMS, "%u arguments", launch->nargs);
    for (uint32_t i = 0; i < launch->nargs; i++) {
        const tile_arg *from = &launch->args[i];
        memset(&to[i], 0, sizeof to[i]);
        to[i].address = from->address;
        to[i].bytes = from->bytes;
        to[i].scalar = from->scalar;
        memcpy(to[i].extent, from->extent, sizeof to[i].extent);
        memcpy(to[i].stride, from->stride, sizeof to[i].stride);
    }
}

static bool is_checked(const tl_launch *launch)
{
    return launch->kernel->flags & TILE_KERNEL_CHECKED;
}

/* Binds the shadows of a checked kernel's arguments. If the host claims more bytes than the block
 * has, the bytes past its end do not exist: neither they nor their shadow may be touched. */
static void bind_shadows(tl_dev *dev, const tl_launch *launch, TlInterpArg *to)
{
    const tile_image_param *params =
        (const void *)tl_image_text(launch->image, launch->kernel->params);
    for (uint32_t i = 0; i < launch->nargs; i++) {
        uint64_t left;
        if (launch->args[i].kind == TILE_ARG_SCALAR)
            continue;
        if (!is_checked(launch)) {
            if (!params[i].is_const)
                give_up_on(dev, to[i].address);
            continue;
        }
        to[i].shadow = find_shadow(dev, to[i].address, &left);
        if (to[i].bytes > left)
            to[i].bytes = left;
    }
}

static void run_programs(Run *run, const TlInterpArg *args, TlArena *scratch)
{
    bool check = is_checked(run->launch);
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
    TL_INVARIANT(code->fn && launch->programs > 0, "no kernel, or no program, to run");
    bind_args(launch, args);
    bind_shadows(dev, launch, args);
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
    TL_HOST_QUEUE_FUNCTIONS,
    .code_load = ref_code_load,
    .code_unload = ref_code_unload,
    .run = ref_run,
    .wrote = ref_wrote,
};

const tl_driver *tl_driver_ref(void)
{
    return &driver;
}
