/* driver_emu.c: the "emu:TARGET" devices: a GPU of that kind, run by this process.
 *
 * A kernel is the GPU's code made for the host (codegen, leaf_emu.c): an ELF object whose
 * undefined names are the leaves, which the loader finds in emu_leaf.c. To the rest of the runtime
 * it is a host device. For a kernel that was compiled with checks, races and uninitialised reads
 * are watched.
 *
 * TILE_EMU_SCHEDULE=rr|reverse|ahead|random:SEED chooses the order in which threads run
 * (tile_device_configure: "schedule"). With TILE_THREADS=1 a schedule gives the same run every
 * time. TILE_EMU_PERTURB=SEED ("perturb") makes approximate instructions as wrong as they may be.
 * TILE_EMU_DROP_BARRIER=N leaves out the N-th synchronisation of each kernel (mutation; 0 is the
 * first): the emulator must then report what it ordered. An arrival that expects bytes has three
 * such numbers: left out, with 16 bytes more, with half the bytes. */
#include "runtime/contract/gpu_rows.h"
#include "runtime/cpu_level.h"
#include "runtime/host/elf.h"
#include "runtime/emu/emu.h"
#include "runtime/emu/emu_watch.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* PROCESSORS is what kernels see, whatever the host has, so that results do not depend on the host.
 * FRESH fills new memory. */
enum { PROCESSORS = 8, FRESH = 0xAB };

struct tl_dev {
    tl_life life;
    tl_pool *pool;
    tl_emu_crew crew;
    pthread_mutex_t lock; /* guards what follows */
    tl_emu_schedule schedule;
    uint64_t perturb; /* seed; 0: off */
    bool stats;
    int64_t drop;     /* number of a barrier in its kernel; -1: none */
    char *stats_text; /* of the last launch */
    char target[32];   /* "emu:sm_80", "emu:sm_80@x86-64-v3" */
    uint64_t features; /* of the host's CPU, for kernels */
};

struct tl_code {
    tl_elf *elf;
    tl_emu_kernel kernel;
};

/* ---- device ---- */

static tile_status read_schedule(tl_dev *dev, const char *text)
{
    tl_emu_schedule s;
    if (!tl_emu_schedule_parse(text, &s))
        return tl_fail(TILE_BAD_ARGUMENT,
                       "unknown schedule '%s'; expected one of rr, reverse, ahead, "
                       "random:SEED", text);
    pthread_mutex_lock(&dev->lock);
    dev->schedule = s;
    pthread_mutex_unlock(&dev->lock);
    return TILE_OK;
}

/* The compiler knows the targets' names, but an unknown one should fail here, not at the first
 * compilation. */
static tile_status check_target(const char *name, size_t length)
{
    char list[1024];
    size_t n = 0, count;
    const tl_gpu *known = tl_gpus(&count);
    for (size_t i = 0; i < count; i++) {
        if (strlen(known[i].name) == length && strncmp(known[i].name, name, length) == 0)
            return TILE_OK;
        n += (size_t)snprintf(list + n, sizeof list - n, "%semu:%s", i ? ", " : "", known[i].name);
        if (n >= sizeof list)
            n = sizeof list - 1;
    }
    if (!length)
        return tl_fail(TILE_BAD_ARGUMENT, "which GPU should be emulated? One of %s", list);
    return tl_fail(TILE_BAD_ARGUMENT, "unknown device 'emu:%s'; the emulator's are %s", name, list);
}

static tile_status read_drop(int64_t *out_drop)
{
    const char *text = secure_getenv("TILE_EMU_DROP_BARRIER");
    char *end;
    *out_drop = -1;
    if (!text || !*text)
        return TILE_OK;
    *out_drop = strtoll(text, &end, 10);
    if (end == text || *end || *out_drop < 0)
        return tl_fail(TILE_BAD_ARGUMENT, "TILE_EMU_DROP_BARRIER is '%s', but must be a "
                                          "number", text);
    return TILE_OK;
}

static tile_status read_perturb(tl_dev *dev, const char *text)
{
    char *end;
    uint64_t seed = strtoull(text, &end, 10);
    if (end == text || *end)
        return tl_fail(TILE_BAD_ARGUMENT, "perturb takes a number, not '%s'", text);
    pthread_mutex_lock(&dev->lock);
    dev->perturb = seed;
    pthread_mutex_unlock(&dev->lock);
    return TILE_OK;
}

/* The thread of a stream may have been there. */
static void forked(tl_life *life)
{
    pthread_mutex_init(&((tl_dev *)life)->lock, NULL);
}

static void emu_close(tl_dev *dev)
{
    tl_life_end(&dev->life);
    tl_emu_crew_close(&dev->crew);
    tl_pool_free(dev->pool);
    pthread_mutex_destroy(&dev->lock);
    free(dev->stats_text);
    free(dev);
}

static tile_status emu_open(const char *spec, const tile_device_options *options, tl_dev **out_dev)
{
    const char *schedule = secure_getenv("TILE_EMU_SCHEDULE");
    const char *perturb = secure_getenv("TILE_EMU_PERTURB");
    tl_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    pthread_mutex_init(&dev->lock, NULL);
    dev->life.forked = forked;
    tl_life_begin(&dev->life);
    snprintf(dev->target, sizeof dev->target, "emu:%s", spec);
    const char *level = strchr(spec, '@');
    tile_status status = check_target(spec, level ? (size_t)(level - spec) : strlen(spec));
    if (status == TILE_OK)
        status = tl_cpu_open(dev->target, level ? level + 1 : "", tl_cpu_machine(), &dev->features);
    if (status == TILE_OK)
        status = read_drop(&dev->drop);
    if (status == TILE_OK && schedule && *schedule)
        status = read_schedule(dev, schedule);
    if (status == TILE_OK && perturb && *perturb)
        status = read_perturb(dev, perturb);
    if (status == TILE_OK)
        status = tl_pool_create(options->threads, options->affinity, &dev->pool);
    if (status == TILE_OK)
        status = tl_emu_crew_open(dev->pool, &dev->crew);
    if (status == TILE_OK)
        *out_dev = dev;
    else
        emu_close(dev);
    return status;
}

static void emu_info(tl_dev *dev, tile_device_info *info)
{
    snprintf(info->name, sizeof info->name, "emulated %s (%d threads)", dev->target + 4,
             tl_pool_threads(dev->pool));
    snprintf(info->target, sizeof info->target, "%s", dev->target);
    info->processors = PROCESSORS;
    info->host_memory = 1;
    info->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t emu_cpu_features(tl_dev *dev)
{
    return dev->features;
}

static tile_status emu_configure(tl_dev *dev, const char *key, const char *value)
{
    if (strcmp(key, "schedule") == 0)
        return read_schedule(dev, value);
    if (strcmp(key, "perturb") == 0)
        return read_perturb(dev, value);
    if (strcmp(key, "stats") != 0)
        return tl_fail(TILE_BAD_ARGUMENT, "device %s has no setting '%s'", dev->target, key);
    pthread_mutex_lock(&dev->lock);
    dev->stats = strcmp(value, "1") == 0;
    pthread_mutex_unlock(&dev->lock);
    return TILE_OK;
}

static char *emu_stats(tl_dev *dev)
{
    pthread_mutex_lock(&dev->lock);
    char *text = dev->stats_text ? strdup(dev->stats_text) : NULL;
    pthread_mutex_unlock(&dev->lock);
    return text;
}

/* ---- memory ---- */

static tile_status emu_mem_alloc(tl_dev *dev, uint64_t bytes, void **out_address)
{
    tile_status status = tl_host_mem_alloc(dev, bytes, out_address);
    if (status != TILE_OK)
        return status;
    memset(*out_address, FRESH, bytes);
    status = tl_emu_memory_allocated(*out_address, bytes);
    if (status != TILE_OK)
        tl_host_mem_free(dev, *out_address);
    return status;
}

static void emu_mem_free(tl_dev *dev, void *address)
{
    if (address)
        tl_emu_memory_freed(address);
    tl_host_mem_free(dev, address);
}

static void emu_wrote(tl_dev *dev, const void *target, uint64_t bytes)
{
    (void)dev;
    tl_emu_memory_written(target, bytes);
}

/* ---- code ---- */

static void emu_code_unload(tl_dev *dev, tl_code *code)
{
    (void)dev;
    if (!code)
        return;
    tl_elf_free(code->elf);
    free(code);
}

static bool fits(const tile_image_kernel *k)
{
    _Static_assert((int)TL_EMU_MAX_THREADS <= (int)TL_EMU_STAMP_THREADS, "stamps name threads");
    return k->warps > 0 && k->threads > 0 && k->threads <= TL_EMU_MAX_THREADS &&
           k->threads % k->warps == 0 && k->shared_bytes <= 1 << 20;
}

static tile_status emu_code_load(tl_dev *dev, const void *image, const tile_image_kernel *kernel,
                                 tl_code **out_code)
{
    void *entry = NULL;
    if (!fits(kernel))
        return tl_fail(TILE_BAD_IMAGE, "kernel %s: no emulated GPU runs %u threads in %u warps",
                       tl_image_text(image, kernel->name), kernel->threads, kernel->warps);
    tl_code *code = calloc(1, sizeof *code);
    if (!code)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    tile_status status =
        tl_elf_load(tl_image_at(image, kernel->code), kernel->ncode, TL_ELF_HOST, tl_emu_known,
                    TL_EMU_KNOWN, tl_image_text(image, kernel->symbol), &code->elf, &entry);
    if (status != TILE_OK) {
        emu_code_unload(dev, code);
        return status;
    }
    TL_INVARIANT(entry, "the loader gave no entry");
    memcpy(&code->kernel.entry, &entry, sizeof entry); /* ISO C has no cast from data to function */
    code->kernel.threads = kernel->threads;
    code->kernel.lanes = kernel->threads / kernel->warps;
    code->kernel.shared_bytes = kernel->shared_bytes;
    /* unoptimised code keeps every value in the frame: frames grow with the code's size */
    code->kernel.stack_bytes = TL_FIBER_STACK + (size_t)kernel->ncode * 4;
    *out_code = code;
    return TILE_OK;
}

/* ---- running ---- */

static void keep_stats(tl_dev *dev, const tl_emu_job *job)
{
    char *text = job->stats ? tl_emu_stats_text(job->watch) : NULL;
    pthread_mutex_lock(&dev->lock);
    char *before = dev->stats_text;
    dev->stats_text = text;
    pthread_mutex_unlock(&dev->lock);
    free(before);
}

/* What threads, copies and products wait by for each other, and what gives and takes tensor memory.
 */
static bool orders_threads(uint32_t leaf)
{
    static const bool ORDERS[TL_LEAF_FAMILY_COUNT] = {
        [TL_LEAF_FAMILY_BARRIER] = true,        [TL_LEAF_FAMILY_MEET] = true,
        [TL_LEAF_FAMILY_CP_COMMIT] = true,      [TL_LEAF_FAMILY_CP_WAIT] = true,
        [TL_LEAF_FAMILY_WGMMA_FENCE] = true,    [TL_LEAF_FAMILY_WGMMA_WAIT] = true,
        [TL_LEAF_FAMILY_FENCE_ASYNC] = true,    [TL_LEAF_FAMILY_BULK_COMMIT] = true,
        [TL_LEAF_FAMILY_BULK_WAIT] = true,      [TL_LEAF_FAMILY_BULK_ALL] = true,
        [TL_LEAF_FAMILY_BULK_PAIR] = true,      [TL_LEAF_FAMILY_MBAR_EXPECT] = true,
        [TL_LEAF_FAMILY_MBAR_ARRIVE] = true,    [TL_LEAF_FAMILY_MBAR_WAIT] = true,
        [TL_LEAF_FAMILY_MBAR_ARRIVE_AT] = true, [TL_LEAF_FAMILY_TENSOR_ALLOC] = true,
        [TL_LEAF_FAMILY_TENSOR_FREE] = true,    [TL_LEAF_FAMILY_TENSOR_COMMIT] = true,
        [TL_LEAF_FAMILY_TENSOR_SCALES] = true,  [TL_LEAF_FAMILY_TENSOR_FENCE] = true};
    return leaf < TL_LEAF_COUNT && ORDERS[tl_leaf_info((tl_leaf)leaf)->family];
}

/* Fences of registers of one product, as many as it takes for its words, are one. */
static bool goes_on(const tl_launch *l, uint32_t site)
{
    const tile_image_site *s = tl_emu_site(l, site), *before = site ? s - 1 : NULL;
    return before && s->leaf == TL_LEAF_WGMMA_FENCE && before->leaf == s->leaf &&
           before->line == s->line && before->col == s->col;
}

/* What is done to such a leaf beside leaving it out: so many mutations from this one on. */
static int64_t more_ways(tl_leaf leaf, tl_emu_mutation *first)
{
    *first = leaf == TL_LEAF_BULK_WAIT ? TL_EMU_READ_ONLY : TL_EMU_MORE_BYTES;
    return leaf == TL_LEAF_MBAR_EXPECT ? 2 : leaf == TL_LEAF_BULK_WAIT;
}

/* The site and mutation of the kernel's n-th. If there is none, the error says how many there are.
 */
static tile_status find_mutation(const tl_launch *l, int64_t n, tl_emu_job *job)
{
    int64_t found = 0;
    TL_INVARIANT(n >= 0, "mutation number %lld", (long long)n);
    for (uint32_t i = 0; i < l->kernel->nsites; i++) {
        tl_leaf leaf = (tl_leaf)tl_emu_site(l, i)->leaf;
        tl_emu_mutation first;
        int64_t more = more_ways(leaf, &first),
                ways = !orders_threads(leaf) || goes_on(l, i) ? 0 : 1 + more;
        if (n < found + ways) {
            job->dropped = i;
            job->mutation = n == found ? TL_EMU_LEAVE_OUT
                                       : (tl_emu_mutation)((int64_t)first + n - found - 1);
            return TILE_OK;
        }
        found += ways;
    }
    return tl_fail(TILE_BAD_ARGUMENT, "kernel %s has %lld barriers: there is none to drop",
                   tl_image_text(l->image, l->kernel->name), (long long)found);
}

static tile_status emu_run(tl_dev *dev, tl_code *code, const tl_launch *launch, tl_sink *sink)
{
    tl_emu_job job = {
        .kernel = &code->kernel, .launch = launch, .sink = sink, .dropped = UINT32_MAX};
    tile_status status = TILE_OK;
    TL_INVARIANT(launch->blocks > 0 && code->kernel.lanes > 0 &&
                     code->kernel.threads % code->kernel.lanes == 0,
                 "%lld blocks of %u threads in warps of %u", (long long)launch->blocks,
                 code->kernel.threads, code->kernel.lanes);
    if (dev->drop >= 0)
        status = find_mutation(launch, dev->drop, &job);
    if (status != TILE_OK)
        return status;
    pthread_mutex_lock(&dev->lock);
    job.schedule = dev->schedule;
    job.perturb = dev->perturb;
    job.stats = dev->stats;
    pthread_mutex_unlock(&dev->lock);
    tl_emu_watch_options options = {.check = launch->kernel->flags & TILE_KERNEL_CHECKED,
                                    .stats = job.stats,
                                    .lanes = code->kernel.lanes,
                                    .shared_bytes = code->kernel.shared_bytes};
    status = tl_emu_watch_new(launch, &options, tl_emu_report_failure, &job, &job.watch);
    if (status != TILE_OK)
        return status;
    status = tl_emu_run(dev->pool, &dev->crew, &job);
    if (status == TILE_OK)
        status = tl_emu_watch_status(job.watch);
    if (status == TILE_OK && job.dropped != UINT32_MAX && !job.met)
        status = tl_fail(TILE_BAD_ARGUMENT, "no thread reached the barrier that is dropped");
    keep_stats(dev, &job);
    tl_emu_watch_free(job.watch);
    return status;
}

static tile_status emu_together(tl_dev *dev, tl_code *code, int64_t *out_programs)
{
    int64_t workers = tl_pool_threads(dev->pool);
    *out_programs = workers * tl_emu_resident(code->kernel.threads, (uint32_t)workers);
    return TILE_OK;
}

/* Few enough that each does several parts. */
static tile_status emu_blocks(tl_dev *dev, tl_code *code, int64_t programs, int64_t *out_blocks)
{
    (void)dev, (void)code;
    *out_blocks = (programs + 2) / 3;
    return TILE_OK;
}

static const tl_driver driver = {
    .kind = "emu",
    .open = emu_open,
    .close = emu_close,
    .info = emu_info,
    .cpu_features = emu_cpu_features,
    .configure = emu_configure,
    .stats = emu_stats,
    .mem_alloc = emu_mem_alloc,
    .mem_free = emu_mem_free,
    TL_HOST_QUEUE_FUNCTIONS,
    .code_load = emu_code_load,
    .code_unload = emu_code_unload,
    .run = emu_run,
    .together = emu_together,
    .blocks = emu_blocks,
    .wrote = emu_wrote,
};

const tl_driver *tl_driver_emu(void)
{
    return &driver;
}
