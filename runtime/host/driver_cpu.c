/* driver_cpu.c: native kernels on this machine's cores.
 *
 * A kernel is an ELF object whose entry runs a row of programs (tile_image.h: the calling
 * convention). Programs are spread over the pool in ranges, increasing ones where a program may
 * wait for another. Each worker has its own scratch, allocated when the kernel is prepared; a
 * launch allocates nothing. A launch of a part of the grid runs in its caller's thread, which takes
 * scratch from a list, and adds to it where it is empty. What kernel code cannot do itself goes
 * through the services table. */
#include "runtime/cpu_level.h"
#include "runtime/host/elf.h"
#include "runtime/runtime.h"
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SCRATCH_ALIGNMENT = 64 };

struct tl_dev {
    tl_pool *pool;
    uint64_t features; /* of the CPU, for kernels */
    int64_t cache_bytes;
    char target[32];   /* "cpu", "cpu:x86-64-v3" */
};

/* Scratch of threads that run parts; its memory is behind it. */
typedef struct spare {
    _Alignas(SCRATCH_ALIGNMENT) struct spare *next;
} spare;

struct tl_code {
    tl_elf *elf;
    tile_cpu_kernel entry;
    uint64_t scratch_bytes; /* of one worker, rounded up */
    uint32_t zeroed_bytes;
    char *scratch;          /* of all workers */
    pthread_mutex_t lock;   /* guards the list */
    spare *spares;
    _Atomic uint64_t launches;
};

/* A launch while the pool runs it. */
typedef struct job {
    const tl_code *code;
    const tl_launch *launch;
    tl_sink *sink;
    uint64_t cache_bytes;
    uint64_t number; /* of the launch, counted per kernel instance */
} job;

/* What the context of running programs points to. */
typedef struct run {
    const job *job;
    int64_t linear; /* of its first program, */
    int32_t first, row; /* whose numbers on the first two axes these are */
} run;

static int64_t linear_of(const tile_cpu_ctx *ctx)
{
    const run *r = ctx->user;
    return r->linear + (int64_t)(ctx->pid[1] - r->row) * ctx->count + (ctx->pid[0] - r->first);
}

/* ---- services ---- */

static void serve_print(const tile_cpu_ctx *ctx, const char *text, const void *data, uint32_t dtype,
                        uint32_t rank, const int32_t *shape)
{
    const run *p = ctx->user;
    tl_sink_print(p->job->sink, p->job->launch, linear_of(ctx), text, (tile_dtype)dtype, rank,
                  shape, data);
}

static void serve_fail(const tile_cpu_ctx *ctx, uint32_t kind, uint32_t file, uint32_t line,
                       uint32_t col, const char *text)
{
    const run *p = ctx->user;
    const char *stop = secure_getenv("TILE_BREAK");
    tl_sink_fail(p->job->sink, p->job->launch, linear_of(ctx), (tl_fail_kind)kind,
                 tl_image_path(p->job->launch->image, file), line, col, text);
    if (stop && strcmp(stop, "1") == 0)
        raise(SIGTRAP); /* a debugger shows the kernel's line */
}

/* Is [at, at + bytes) inside the memory of argument a? Unknown sizes hold everything. */
static bool holds(const tile_arg *a, uintptr_t at, uint64_t bytes)
{
    uintptr_t begin = (uintptr_t)a->address;
    if (a->kind == TILE_ARG_SCALAR || !begin)
        return false;
    if (a->bytes == UINT64_MAX)
        return true;
    return at >= begin && at - begin <= a->bytes && bytes <= a->bytes - (at - begin);
}

static void report_bounds(const tile_cpu_ctx *ctx, uintptr_t at, uint64_t bytes, int32_t param,
                          uint32_t file, uint32_t line, uint32_t col)
{
    const tl_launch *l = ((const run *)ctx->user)->job->launch;
    const tile_image_param *params = tl_image_at(l->image, l->kernel->params);
    char text[256];
    if (param < 0 || (uint32_t)param >= l->nargs)
        snprintf(text, sizeof text, "%" PRIu64 " bytes at %#" PRIxPTR " are in no argument", bytes,
                 at);
    else
        snprintf(text, sizeof text,
                 "%" PRIu64 " bytes at offset %" PRId64 " of '%.100s', which has %" PRIu64, bytes,
                 (int64_t)(at - (uintptr_t)l->args[param].address),
                 tl_image_text(l->image, params[param].name), l->args[param].bytes);
    serve_fail(ctx, TL_RUN_BOUNDS, file, line, col, text);
}

static int32_t serve_check(const tile_cpu_ctx *ctx, const void *addr, uint64_t bytes, int32_t param,
                           uint32_t file, uint32_t line, uint32_t col)
{
    const tl_launch *l = ((const run *)ctx->user)->job->launch;
    uintptr_t at = (uintptr_t)addr;
    bool fine = false;
    for (uint32_t i = 0; i < l->nargs && !fine; i++)
        fine = (param < 0 || (uint32_t)param == i) && holds(&l->args[i], at, bytes);
    if (!fine)
        report_bounds(ctx, at, bytes, param, file, line, col);
    return fine;
}

static void serve_memcpy(void *target, const void *source, uint64_t bytes)
{
    memcpy(target, source, bytes);
}

static void serve_memset(void *target, int32_t value, uint64_t bytes)
{
    memset(target, value, bytes);
}

static const tile_cpu_services services = {
    .print = serve_print,
    .fail = serve_fail,
    .check = serve_check,
    .fmod = fmod,
    .fmodf = fmodf,
    .memcpy = serve_memcpy,
    .memset = serve_memset,
    .fma = fma,
};

/* ---- running ---- */

static void run_programs(const job *j, char *scratch, int64_t begin, int64_t end)
{
    run p = {.job = j, .linear = begin};
    TL_DEBUG_INVARIANT(begin >= 0 && begin < end && end <= j->launch->programs,
                       "programs %lld to %lld of %lld", (long long)begin, (long long)end,
                       (long long)j->launch->programs);
    tile_cpu_ctx ctx = {.services = &services,
                        .user = &p,
                        .launch = j->number,
                        .scratch = scratch,
                        .cache_bytes = j->cache_bytes};
    TL_DEBUG_INVARIANT((uintptr_t)ctx.scratch % SCRATCH_ALIGNMENT == 0, "scratch at %p",
                       (void *)ctx.scratch);
    _Static_assert(sizeof ctx.npid == sizeof j->launch->grid, "a program is told the whole grid");
    memcpy(ctx.npid, j->launch->grid, sizeof ctx.npid);
    tl_launch_pid(j->launch, begin, ctx.pid);
    for (;;) {
        p.first = ctx.pid[0];
        p.row = ctx.pid[1];
        ctx.count = tl_launch_run(j->launch, p.linear, end, ctx.pid);
        ctx.rows = tl_launch_rows(j->launch, p.linear, end, ctx.pid, ctx.count);
        j->code->entry(&ctx, j->launch->slots);
        ctx.pid[0] = p.first + ctx.count - 1;
        ctx.pid[1] = p.row + ctx.rows - 1;
        p.linear += (int64_t)ctx.count * ctx.rows;
        if (p.linear >= end)
            return;
        tl_launch_next_pid(j->launch, p.linear, ctx.pid);
    }
}

static void run_range(void *user, int worker, int64_t begin, int64_t end)
{
    const job *j = user;
    char *scratch = j->code->scratch;
    run_programs(j, scratch ? scratch + (uint64_t)worker * j->code->scratch_bytes : NULL, begin,
                 end);
}

/* ---- parts ---- */

static spare *take_spare(tl_code *code)
{
    pthread_mutex_lock(&code->lock);
    spare *s = code->spares;
    if (s)
        code->spares = s->next;
    pthread_mutex_unlock(&code->lock);
    if (s)
        return s;
    s = aligned_alloc(SCRATCH_ALIGNMENT, sizeof *s + code->scratch_bytes);
    if (s)
        memset(s + 1, 0, code->zeroed_bytes);
    return s;
}

static void put_spare(tl_code *code, spare *s)
{
    pthread_mutex_lock(&code->lock);
    s->next = code->spares;
    code->spares = s;
    pthread_mutex_unlock(&code->lock);
}

static void free_spares(tl_code *code)
{
    while (code->spares) {
        spare *next = code->spares->next;
        free(code->spares);
        code->spares = next;
    }
}

/* Number `index` begins there; sizes differ by one at most. */
static int64_t begin_of(const tl_launch *l, uint32_t index)
{
    int64_t count = l->part.count, more = l->programs % count;
    return l->programs / count * index + (index < more ? index : more);
}

static tile_status run_part(tl_code *code, const job *j)
{
    uint32_t index = j->launch->part.index;
    int64_t begin = begin_of(j->launch, index), end = begin_of(j->launch, index + 1);
    if (begin == end)
        return TILE_OK;
    spare *s = code->scratch_bytes ? take_spare(code) : NULL;
    if (code->scratch_bytes && !s)
        return tl_fail(TILE_NO_MEMORY, "out of memory for a thread's scratch of %" PRIu64 " bytes",
                       code->scratch_bytes);
    run_programs(j, s ? (char *)(s + 1) : NULL, begin, end);
    if (s)
        put_spare(code, s);
    return TILE_OK;
}

static tile_status cpu_run(tl_dev *dev, tl_code *code, const tl_launch *launch, tl_sink *sink)
{
    job j = {code, launch, sink, (uint64_t)dev->cache_bytes, ++code->launches};
    if (launch->part.count)
        return run_part(code, &j);
    bool waits = !(launch->kernel->flags & TILE_KERNEL_ANY_ORDER);
    return tl_pool_run(dev->pool, launch->programs, waits ? TL_POOL_INCREASING : TL_POOL_SHARES,
                       run_range, &j);
}

/* Of so few programs each is a range, which each thread takes one of. */
static tile_status cpu_together(tl_dev *dev, tl_code *code, int64_t *out_programs)
{
    (void)code;
    *out_programs = tl_pool_threads(dev->pool);
    return TILE_OK;
}

/* ---- code ---- */

static void cpu_code_unload(tl_dev *dev, tl_code *code)
{
    (void)dev;
    tl_elf_free(code->elf);
    free(code->scratch);
    free_spares(code);
    pthread_mutex_destroy(&code->lock);
    free(code);
}

static tile_status cpu_code_load(tl_dev *dev, const void *image, const tile_image_kernel *kernel,
                                 tl_code **out_code)
{
    void *entry = NULL;
    tl_code *code = calloc(1, sizeof *code);
    if (!code)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    pthread_mutex_init(&code->lock, NULL);
    tile_status status =
        tl_elf_load(tl_image_at(image, kernel->code), kernel->ncode, TL_ELF_HOST, NULL, 0,
                    tl_image_text(image, kernel->symbol), &code->elf, &entry);
    if (status != TILE_OK) {
        cpu_code_unload(dev, code);
        return status;
    }
    TL_INVARIANT(entry, "the loader gave no entry");
    memcpy(&code->entry, &entry, sizeof entry); /* ISO C has no cast from data to function */
    code->scratch_bytes = kernel->scratch_bytes;
    code->zeroed_bytes = kernel->zeroed_bytes;
    *out_code = code;
    return TILE_OK;
}

static tile_status cpu_code_prepare(tl_dev *dev, tl_code *code)
{
    uint64_t threads = (uint64_t)tl_pool_threads(dev->pool), bytes = code->scratch_bytes;
    TL_INVARIANT(!code->scratch && code->zeroed_bytes <= bytes,
                 "code is prepared twice, or zeroes more scratch than it has");
    if (bytes == 0)
        return TILE_OK;
    if (bytes > PTRDIFF_MAX / 2 / threads - SCRATCH_ALIGNMENT)
        return tl_fail(TILE_NO_MEMORY,
                       "a kernel needs %" PRIu64 " bytes of scratch for each worker", bytes);
    code->scratch_bytes = (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    code->scratch = aligned_alloc(SCRATCH_ALIGNMENT, code->scratch_bytes * threads);
    if (!code->scratch)
        return tl_fail(TILE_NO_MEMORY,
                       "out of memory for %" PRIu64 " workers' scratch of %" PRIu64 " bytes",
                       threads, bytes);
    for (uint64_t i = 0; i < threads; i++)
        memset(code->scratch + i * code->scratch_bytes, 0, code->zeroed_bytes);
    return TILE_OK;
}

/* ---- device ---- */

/* Bytes of the last level of cache that a core has. sysconf may tell the sum of all such caches of
 * the machine; the kernel tells the size of one. Where nobody does: what servers have at least.
 * A virtual machine is told of all the cache that it shares with others: of 260 MiB for 2 of 52
 * cores, arrays of 32 MiB were not found again. So at most twice what processors mostly have. */
static tile_status last_cache(int64_t *out_bytes)
{
    enum { MOST_PER_PROCESSOR = 8 << 20 };
    int64_t bytes = sysconf(_SC_LEVEL3_CACHE_SIZE), kibibytes;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
    if (f && fscanf(f, "%" SCNd64 "K", &kibibytes) == 1 && kibibytes > 0 && kibibytes < 1 << 30)
        bytes = kibibytes << 10;
    if (f)
        fclose(f);
    int64_t share = sysconf(_SC_NPROCESSORS_ONLN) * (int64_t)MOST_PER_PROCESSOR;
    bytes = bytes > 0 ? bytes : 32 << 20;
    *out_bytes = share > 0 && share < bytes ? share : bytes;
    return tl_env_number("TILE_CACHE_BYTES", 0, INT64_MAX, out_bytes);
}

static tile_status cpu_open(const char *spec, const tile_device_options *options, tl_dev **out_dev)
{
    tl_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    snprintf(dev->target, sizeof dev->target, "cpu%s%s", *spec ? ":" : "", spec);
    tile_status status = tl_cpu_open(dev->target, spec, tl_cpu_machine(), &dev->features);
    if (status == TILE_OK)
        status = last_cache(&dev->cache_bytes);
    if (status == TILE_OK)
        status = tl_pool_create(options->threads, options->affinity, &dev->pool);
    if (status != TILE_OK) {
        free(dev);
        return status;
    }
    *out_dev = dev;
    return TILE_OK;
}

static void cpu_close(tl_dev *dev)
{
    tl_pool_free(dev->pool);
    free(dev);
}

static void cpu_info(tl_dev *dev, tile_device_info *info)
{
    const int threads = tl_pool_threads(dev->pool);
    snprintf(info->name, sizeof info->name, "%s (%d thread%s)", dev->target, threads,
             threads == 1 ? "" : "s");
    snprintf(info->target, sizeof info->target, "%s", dev->target);
    info->processors = threads;
    info->host_memory = 1;
    info->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Images of any level: the image itself lists the features that it needs. */
static uint32_t cpu_accepts(tl_dev *dev, const char *target)
{
    (void)dev;
    return strcmp(target, "cpu") == 0 || strncmp(target, "cpu:", 4) == 0;
}

static uint64_t cpu_features(tl_dev *dev)
{
    return dev->features;
}

const tl_driver *tl_driver_cpu(void)
{
    static const tl_driver driver = {
        .kind = "cpu",
        .open = cpu_open,
        .close = cpu_close,
        .info = cpu_info,
        .accepts = cpu_accepts,
        .cpu_features = cpu_features,
        TL_HOST_DRIVER_FUNCTIONS,
        .code_load = cpu_code_load,
        .code_prepare = cpu_code_prepare,
        .code_unload = cpu_code_unload,
        .runs_parts = true,
        .run = cpu_run,
        .together = cpu_together,
    };
    return &driver;
}
