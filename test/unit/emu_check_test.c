/* The emulator's watch, driven by hand: each detector finds a planted fault and says nothing of the
 * clean twin; the counters are compared with numbers computed by hand. */
#include "runtime/emu/emu_check.h"
#include "test/unit/unit.h"
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

/* ---- a launch without a compiler ---- */

enum { SITES = 12, PARAMS = 3, N = 1024, LANES = 32, SHARED = 4096 };

/* Sites: line 10 + number. */
static const uint32_t leaves[SITES] = {TL_LEAF_LDG_32,  TL_LEAF_STG_32,   TL_LEAF_LDS_32,
                                       TL_LEAF_STS_32,  TL_LEAF_ATOM_32,  TL_LEAF_BARRIER,
                                       TL_LEAF_LDG_128, TL_LEAF_SHFL_XOR, TL_LEAF_LDS_128,
                                       TL_LEAF_STS_64,  TL_LEAF_STG_128,  TL_LEAF_LDG_16};
enum { LDG, STG, LDS, STS, ATOM, BAR, LDG128, SHFL, LDS128, STS64, STG128, LDG16 };

static struct image {
    tile_image_header header;
    tile_image_kernel kernel;
    tile_image_param params[PARAMS];
    tile_image_site sites[SITES];
    uint32_t files[1];
    char texts[32];
} image;
static tile_arg args[PARAMS];
static tl_launch launch;
static _Alignas(128) uint32_t x[N], y[N], *fresh;

#define AT(field) (uint32_t) offsetof(struct image, field)

static void make_launch(void)
{
    memcpy(image.texts, "k\0x\0y\0f\0a.tile", 15);
    image.header.nfiles = 1;
    image.header.files = AT(files);
    image.files[0] = AT(texts) + 8;
    image.kernel.name = AT(texts);
    image.kernel.params = AT(params);
    image.kernel.nparams = PARAMS;
    image.kernel.sites = AT(sites);
    image.kernel.nsites = SITES;
    image.kernel.shared_bytes = SHARED;
    for (uint32_t i = 0; i < SITES; i++)
        image.sites[i] = (tile_image_site){leaves[i], 0, 10 + i, 1, 0, 0};
    uint32_t *memory[PARAMS] = {x, y, fresh};
    for (uint32_t i = 0; i < PARAMS; i++) {
        image.params[i] = (tile_image_param){.name = AT(texts) + 2 + 2 * i, .is_const = i == 0};
        args[i] = (tile_arg){.kind = TILE_ARG_VIEW, .address = memory[i], .bytes = sizeof x};
    }
    launch = (tl_launch){.image = &image,
                         .kernel = &image.kernel,
                         .grid = {8, 1, 1, 1, 1, 1},
                         .ngrid = 1,
                         .programs = 8,
                         .nargs = PARAMS,
                         .args = args};
}

/* ---- what is reported ---- */

static int reports;
static int64_t told_block;
static tl_fail_kind told_kind;
static uint32_t told_site;
static char told[600];

static void on_report(void *user, int64_t block, tl_fail_kind kind, uint32_t site, const char *text)
{
    (void)user;
    if (reports++ == 0) {
        told_block = block;
        told_kind = kind;
        told_site = site;
        snprintf(told, sizeof told, "%s", text);
    }
}

static tl_emu_watch *watch;
static tl_emu_block_watch *blocks[8];

static void begin(bool check, bool stats, uint32_t lanes, uint32_t nblocks, uint32_t threads)
{
    tl_emu_watch_options options = {check, stats, lanes, SHARED};
    reports = 0;
    told[0] = 0;
    CHECK_INT(tl_emu_watch_new(&launch, &options, on_report, NULL, &watch), TILE_OK);
    memset(blocks, 0, sizeof blocks);
    for (uint32_t i = 0; i < nblocks; i++)
        CHECK_INT(tl_emu_block_begin(watch, i, threads, &blocks[i]), TILE_OK);
}

static void end(void)
{
    for (int i = 0; i < 8; i++)
        tl_emu_block_end(blocks[i]);
    CHECK_INT(tl_emu_watch_status(watch), TILE_OK);
    tl_emu_watch_free(watch);
}

static void clean(int line)
{
    if (reports)
        fprintf(stderr, "line %d: reported: %s\n", line, told);
    CHECK_INT(reports, 0);
    end();
}
#define CLEAN() clean(__LINE__)

static void faulty(tl_fail_kind kind, int64_t block, uint32_t site, const char *text, int line)
{
    if (reports == 0 || told_kind != kind || told_block != block || told_site != site ||
        !strstr(told, text))
        fprintf(stderr, "line %d: %d reports, kind %d, block %d, site %u: %s\n", line, reports,
                told_kind, (int)told_block, told_site, told);
    CHECK(reports > 0);
    CHECK_INT(told_kind, kind);
    CHECK_INT(told_block, block);
    CHECK_INT(told_site, site);
    CHECK(strstr(told, text));
    end();
}
#define FAULTY(kind, block, site, text) faulty(kind, block, site, text, __LINE__)

/* ---- accesses ---- */

static bool access_at(uint32_t block, uint32_t thread, uint32_t site, uint64_t at)
{
    const tl_leaf_row *row = tl_leaf_info(leaves[site]);
    bool shared = row->family == TL_LEAF_FAMILY_LDS || row->family == TL_LEAF_FAMILY_STS,
         store = row->family == TL_LEAF_FAMILY_STG || row->family == TL_LEAF_FAMILY_STS;
    tl_emu_access a = {shared ? TL_EMU_SHARED : TL_EMU_GLOBAL,
                       store ? TL_EMU_STORE : TL_EMU_LOAD,
                       site,
                       thread,
                       at,
                       row->size / 8,
                       0,
                       0,
                       0};
    return tl_emu_block_access(blocks[block], &a);
}

static bool load(uint32_t block, uint32_t thread, const void *p)
{
    return access_at(block, thread, LDG, (uintptr_t)p);
}

static bool store(uint32_t block, uint32_t thread, void *p)
{
    return access_at(block, thread, STG, (uintptr_t)p);
}

static void barrier(uint32_t block)
{
    tl_emu_block_barrier(blocks[block]);
}

enum { RELAXED, ACQUIRE, RELEASE, ACQ_REL };
enum { BLOCK, DEVICE };

static void atomic(uint32_t block, uint32_t thread, tl_atom op, uint32_t order, uint32_t scope,
                   const void *p)
{
    tl_emu_access a = {TL_EMU_GLOBAL, TL_EMU_ATOMIC, ATOM, thread, (uintptr_t)p, 4, op,
                       order,         scope};
    if (tl_emu_block_access(blocks[block], &a))
        tl_emu_block_atomic_done(blocks[block], &a, op != TL_ATOM_LOAD);
}

/* ---- detectors ---- */

static void bounds(void)
{
    begin(false, false, LANES, 1, 32);
    CHECK(load(0, 0, &x[N - 1]));
    CHECK(store(0, 0, &y[0]));
    CHECK(access_at(0, 0, LDS, SHARED - 4));
    CHECK(access_at(0, 0, LDG128, (uintptr_t)&x[N - 4]));
    CLEAN();
    begin(false, false, LANES, 1, 32);
    CHECK(!access_at(0, 0, LDG128, (uintptr_t)x + 4));
    FAULTY(TL_RUN_MISALIGNED, 0, LDG128,
           "load of 16 bytes at offset 4 of 'x', whose address is 0 mod 16");
    begin(false, false, LANES, 1, 32);
    CHECK(!access_at(0, 0, LDS, SHARED));
    FAULTY(TL_RUN_BOUNDS, 0, LDS,
           "load of 4 bytes at offset 4096 of shared memory, which has 4096");
    begin(false, false, LANES, 1, 32);
    CHECK(!access_at(0, 0, STS64, UINT64_C(0xfffffff8)));
    FAULTY(TL_RUN_BOUNDS, 0, STS64, "offset 4294967288 of shared memory");
    begin(false, false, LANES, 1, 32);
    CHECK(!access_at(0, 0, STS64, 4));
    FAULTY(TL_RUN_MISALIGNED, 0, STS64, "store of 8 bytes at offset 4 of shared memory");
    begin(false, false, LANES, 1, 32);
    CHECK(!load(0, 0, (void *)8));
    FAULTY(TL_RUN_BOUNDS, 0, LDG, "load of 4 bytes at 0x8, which is in no argument");
    begin(false, false, LANES, 1, 32);
    CHECK(!store(0, 0, &x[3]));
    FAULTY(TL_RUN_BOUNDS, 0, STG, "store of 4 bytes at offset 12 of 'x', which is const");
    args[1].bytes = 40; /* the launch knows less than the array has */
    begin(false, false, LANES, 1, 32);
    CHECK(store(0, 0, &y[9]));
    CHECK(!store(0, 0, &y[10]));
    FAULTY(TL_RUN_BOUNDS, 0, STG, "store of 4 bytes at offset 40 of 'y', which has 40");
    begin(false, false, LANES, 1, 32);
    CHECK(!access_at(0, 0, STG128, (uintptr_t)&y[8]));
    FAULTY(TL_RUN_BOUNDS, 0, STG128, "store of 16 bytes at offset 32 of 'y', which has 40");
    args[1].bytes = sizeof y;
    image.sites[LDG].param = 1 + 1; /* y's */
    begin(true, false, LANES, 1, 32);
    CHECK(load(0, 0, &y[3]));
    CHECK(!load(0, 0, &x[3])); /* x's memory, but not what the site is for */
    FAULTY(TL_RUN_BOUNDS, 0, LDG, " of 'y', which has 4096");
    begin(false, false, LANES, 1, 32);
    CHECK(load(0, 0, &x[3])); /* without checks memory is memory */
    CHECK(!load(0, 0, (void *)8));
    FAULTY(TL_RUN_BOUNDS, 0, LDG, " of 'y', which has 4096");
    image.sites[LDG].param = 0;
    args[2].bytes = 2 * sizeof x; /* a promise that the allocation does not keep */
    begin(false, false, LANES, 1, 32);
    CHECK(!load(0, 0, fresh + N));
    FAULTY(TL_RUN_BOUNDS, 0, LDG, "offset 4096 of 'f', which has 4096");
    args[2].bytes = sizeof x;
}

static void unwritten_global(void)
{
    begin(true, false, LANES, 1, 32);
    CHECK(load(0, 0, &x[5])); /* not from the registry: written */
    CHECK(store(0, 0, &fresh[5]));
    CHECK(load(0, 0, &fresh[5]));
    tl_emu_memory_written(&fresh[6], 6);
    CHECK(load(0, 0, &fresh[6]));
    atomic(0, 0, TL_ATOM_STORE, RELAXED, DEVICE, &fresh[20]);
    CHECK(load(0, 0, &fresh[20]));
    CLEAN();
    begin(true, false, LANES, 1, 32);
    CHECK(load(0, 0, &fresh[7])); /* two of its bytes */
    FAULTY(TL_RUN_UNINIT, 0, LDG,
           "load of 4 bytes at f + 28, which nothing has written; the first is byte 2");
    begin(true, false, LANES, 1, 32);
    CHECK(access_at(0, 0, LDG128, (uintptr_t)&fresh[4]));
    FAULTY(TL_RUN_UNINIT, 0, LDG128,
           "load of 16 bytes at f + 16, which nothing has written; the first is byte 0");
    begin(true, false, LANES, 1, 32);
    atomic(0, 0, TL_ATOM_ADD, RELAXED, DEVICE, &fresh[9]);
    FAULTY(TL_RUN_UNINIT, 0, ATOM, "atomic of 4 bytes at f + 36");
    begin(false, false, LANES, 1, 32); /* unchecked: nothing is said, and all counts as written */
    CHECK(load(0, 0, &fresh[100]));
    CLEAN();
    begin(true, false, LANES, 1, 32);
    CHECK(load(0, 0, &fresh[101]));
    CLEAN();
    tl_emu_memory_freed(fresh);
    CHECK_INT(tl_emu_memory_allocated(fresh, sizeof x), TILE_OK);
    begin(true, false, LANES, 1, 32);
    CHECK(load(0, 0, &fresh[5])); /* nothing is left of the other at this address */
    FAULTY(TL_RUN_UNINIT, 0, LDG, "f + 20");
    tl_emu_memory_written(fresh, 2 * sizeof x);
}

static void unwritten_shared(void)
{
    begin(true, false, LANES, 2, 32);
    access_at(0, 0, STS, 64);
    access_at(0, 0, LDS, 64);
    access_at(0, 3, STS64, 72);
    access_at(0, 3, LDS, 76);
    CLEAN();
    begin(true, false, LANES, 2, 32);
    access_at(0, 0, STS, 64);
    access_at(1, 0, LDS, 64); /* each block has its own */
    FAULTY(TL_RUN_UNINIT, 1, LDS,
           "load of 4 bytes at offset 64 of shared memory, which nothing has written");
    begin(true, false, LANES, 1, 32);
    access_at(0, 0, STS64, 64);
    access_at(0, 0, STS, 76);
    access_at(0, 0, LDS128, 64);
    FAULTY(TL_RUN_UNINIT, 0, LDS128, "the first is byte 8");
}

static void shared_races(void)
{
    begin(true, false, LANES, 1, 64);
    for (uint32_t t = 0; t < 64; t++)
        access_at(0, t, STS, 4 * t);
    barrier(0);
    for (uint32_t t = 0; t < 64; t++)
        access_at(0, t, LDS, 4 * (63 - t));
    barrier(0);
    for (uint32_t t = 0; t < 64; t++)
        access_at(0, t, STS, 4 * (t ^ 1));
    for (uint32_t t = 0; t < 64; t++) /* its own, in the same epoch */
        access_at(0, t, LDS, 4 * (t ^ 1));
    CLEAN();
    begin(true, false, LANES, 1, 64); /* without the first barrier */
    access_at(0, 0, STS, 8);
    access_at(0, 1, LDS, 8);
    FAULTY(TL_RUN_RACE, 0, LDS,
           "this load (thread 1) and the store at a.tile:13:1 (this program, thread 0) touch byte "
           "8 of shared memory in no order");
    begin(true, false, LANES, 1, 64); /* without the second one */
    access_at(0, 0, STS, 8);
    barrier(0);
    access_at(0, 1, LDS, 8);
    access_at(0, 0, STS, 8);
    FAULTY(TL_RUN_RACE, 0, STS,
           "this store (thread 0) and the load at a.tile:12:1 (this program, thread 1)");
    begin(true, false, LANES, 1, 64); /* the last reader is the writer, another one is not */
    access_at(0, 0, STS, 8);
    barrier(0);
    access_at(0, 7, LDS, 8);
    access_at(0, 3, LDS, 8);
    access_at(0, 5, LDS, 8);
    access_at(0, 3, LDS, 8);
    access_at(0, 3, STS, 8);
    FAULTY(TL_RUN_RACE, 0, STS, "thread 5");
    begin(true, false, LANES, 1, 64); /* two writers */
    access_at(0, 0, STS, 8);
    access_at(0, 1, STS, 8);
    FAULTY(TL_RUN_RACE, 0, STS, "store");
}

/* Bytes count, not words or vectors. */
static void widths(void)
{
    char *p = (char *)y;
    begin(true, false, LANES, 1, 64);
    access_at(0, 0, STG128, (uintptr_t)p);
    access_at(0, 1, STG, (uintptr_t)p + 16);
    access_at(0, 2, STG, (uintptr_t)p + 20);
    access_at(0, 1, LDG16, (uintptr_t)p + 18);
    access_at(0, 0, LDG16, (uintptr_t)p + 14);
    access_at(0, 3, STG128, (uintptr_t)p + 32);
    barrier(0);
    access_at(0, 5, LDG128, (uintptr_t)p + 16 * 2);
    access_at(0, 6, LDG16, (uintptr_t)p + 16 * 2 + 6);
    CLEAN();
    begin(true, false, LANES, 1, 64); /* wide, then narrow inside of it */
    access_at(0, 0, STG128, (uintptr_t)p + 64);
    access_at(0, 1, LDG16, (uintptr_t)p + 78);
    FAULTY(TL_RUN_RACE, 0, LDG16,
           "store at a.tile:20:1 (this program, thread 0) touch byte 78 of 'y'");
    begin(true, false, LANES, 1, 64); /* narrow, then wide around it */
    access_at(0, 1, LDG16, (uintptr_t)p + 78);
    access_at(0, 0, STG128, (uintptr_t)p + 64);
    FAULTY(TL_RUN_RACE, 0, STG128, "touch byte 78 of 'y'");
    begin(true, false, LANES, 1, 64); /* a page was split after the write */
    access_at(0, 0, STG128, (uintptr_t)p + 128);
    access_at(0, 2, LDG16, (uintptr_t)p + 256);
    access_at(0, 1, LDG16, (uintptr_t)p + 142);
    FAULTY(TL_RUN_RACE, 0, LDG16, "touch byte 142 of 'y'");
}

/* A scattered store: of its elements that meet any may win, but not of two executions. */
static void scattered(void)
{
    image.sites[STG].flags = image.sites[STG128].flags = TILE_SITE_ANY_WINS;
    image.sites[STG128].line = image.sites[STG].line; /* of one op */
    begin(true, false, LANES, 1, 64);
    for (uint32_t t = 0; t < 64; t++) {
        store(0, t, &y[t / 2]);
        access_at(0, t, STG128, (uintptr_t)&y[t % 4 * 4]);
    }
    barrier(0);
    for (uint32_t t = 64; t-- > 0;)
        store(0, t, &y[t % 3]);
    CLEAN();
    begin(true, false, LANES, 1, 64);
    for (uint32_t t = 0; t < 64; t++)
        store(0, t, &y[t]);
    store(0, 0, &y[1]); /* the next execution, no barrier before it */
    FAULTY(TL_RUN_RACE, 0, STG,
           "this store (thread 0) and the store at a.tile:11:1 (this program, thread 1)");
    begin(true, false, LANES, 2, 64);
    store(0, 0, &y[1]);
    store(1, 0, &y[1]); /* of two programs */
    FAULTY(TL_RUN_RACE, 0, STG, "(program 1, thread 0)");
    image.sites[STG128].line = 10 + STG128;
    begin(true, false, LANES, 1, 64);
    store(0, 0, &y[1]);
    access_at(0, 1, STG128, (uintptr_t)&y[0]); /* of another op */
    FAULTY(TL_RUN_RACE, 0, STG128, "store");
    image.sites[STG].flags = image.sites[STG128].flags = 0;
}

static void blocks_without_order(void)
{
    begin(true, false, LANES, 3, 32);
    for (uint32_t b = 0; b < 3; b++)
        for (uint32_t t = 0; t < 32; t++) {
            load(b, t, &x[t]); /* all read it, none writes */
            load(b, t, &y[500]);
            store(b, t, &y[32 * b + t]);
        }
    CLEAN();
    begin(true, false, LANES, 2, 32);
    store(1, 4, &y[7]);
    store(0, 3, &y[7]); /* named after the lower block, whichever came first */
    FAULTY(TL_RUN_RACE, 0, STG,
           "this store (thread 3) and the store at a.tile:11:1 (program 1, thread 4) touch byte 28 "
           "of 'y' in no order");
    begin(true, false, LANES, 2, 32);
    store(0, 3, &y[7]);
    store(1, 4, &y[7]);
    FAULTY(TL_RUN_RACE, 0, STG,
           "this store (thread 3) and the store at a.tile:11:1 (program 1, thread 4) touch byte 28 "
           "of 'y' in no order");
    begin(true, false, LANES, 2, 32);
    store(0, 3, &y[7]);
    barrier(0);
    barrier(1);
    load(1, 3, &y[7]); /* barriers are a block's own */
    FAULTY(TL_RUN_RACE, 0, STG,
           "this store (thread 3) and the load at a.tile:10:1 (program 1, thread 3)");
    begin(true, false, LANES, 3, 32); /* two blocks have read, the later one writes */
    load(0, 0, &y[9]);
    load(1, 0, &y[9]);
    store(1, 0, &y[9]);
    FAULTY(TL_RUN_RACE, 0, LDG,
           "this load (thread 0) and the store at a.tile:11:1 (program 1, thread 0)");
    args[0].address = y + 512; /* a const view of the same memory */
    begin(true, false, LANES, 2, 32);
    load(0, 0, &y[600]);
    store(1, 0, &y[600]);
    FAULTY(TL_RUN_RACE, 0, LDG, "store");
    args[0].address = x;
}

/* What thread 0 stores in bulk is there when it has waited for that, for others after a barrier. */
static void bulk_stores(void)
{
    for (int waits = 0; waits < 2; waits++)
        for (int meets = 0; meets < 2; meets++) {
            begin(true, false, LANES, 1, 32);
            tl_emu_block_stores(blocks[0], STG128, 0, (uintptr_t)&y[8], 16);
            if (waits)
                tl_emu_block_stored(blocks[0], STG128, 0, (uintptr_t)&y[8], 16);
            if (meets)
                barrier(0);
            load(0, meets, &y[9]);
            if (waits)
                CLEAN();
            else
                FAULTY(TL_RUN_RACE, 0, LDG, "the store at a.tile:20:1 (this program, in bulk, and");
        }
    begin(true, false, LANES, 1, 32);
    tl_emu_block_stores(blocks[0], STG128, 0, (uintptr_t)&y[8], 16);
    tl_emu_block_stored(blocks[0], STG128, 0, (uintptr_t)&y[8], 16);
    load(0, 1, &y[9]);
    FAULTY(TL_RUN_RACE, 0, LDG, "the store at a.tile:20:1 (this program, thread 0)");
    for (int waits = 0; waits < 2; waits++) { /* of two that store to one place */
        begin(true, false, LANES, 1, 32);
        tl_emu_block_stores(blocks[0], STG128, 0, (uintptr_t)&y[8], 16);
        if (waits)
            tl_emu_block_stored(blocks[0], STG128, 0, (uintptr_t)&y[8], 16);
        tl_emu_block_stores(blocks[0], STG128, 0, (uintptr_t)&y[8], 4);
        if (waits)
            CLEAN();
        else
            FAULTY(TL_RUN_RACE, 0, STG128,
                   "this store (thread 0) and the store at a.tile:20:1 (this program, in bulk,");
    }
}

static void atomics(void)
{
    begin(true, false, LANES, 2, 32);
    for (uint32_t t = 0; t < 32; t++) {
        atomic(0, t, TL_ATOM_ADD, RELAXED, DEVICE, &y[0]);
        atomic(1, t, TL_ATOM_ADD, RELAXED, DEVICE, &y[0]);
        atomic(0, t, TL_ATOM_ADD, RELAXED, BLOCK, &y[1]);
        atomic(1, t, TL_ATOM_ADD, RELAXED, BLOCK, &y[2]);
    }
    atomic(0, 0, TL_ATOM_LOAD, RELAXED, DEVICE, &y[0]);
    load(0, 3, &y[5]);
    atomic(1, 0, TL_ATOM_LOAD, RELAXED, DEVICE, &y[5]); /* both only read */
    CLEAN();
    begin(true, false, LANES, 2, 32);
    atomic(0, 0, TL_ATOM_ADD, RELAXED, BLOCK, &y[0]);
    atomic(1, 5, TL_ATOM_ADD, RELAXED, DEVICE, &y[0]);
    FAULTY(TL_RUN_RACE, 0, ATOM,
           "this atomic (thread 0) and the atomic at a.tile:14:1 (program 1, thread 5)");
    begin(true, false, LANES, 2, 32);
    atomic(0, 0, TL_ATOM_ADD, RELAXED, DEVICE, &y[0]);
    load(1, 5, &y[0]);
    FAULTY(TL_RUN_RACE, 0, ATOM, "this atomic (thread 0) and the load");
    begin(true, false, LANES, 2, 32);
    atomic(0, 0, TL_ATOM_LOAD, RELAXED, DEVICE, &y[0]);
    store(1, 5, &y[0]);
    FAULTY(TL_RUN_RACE, 0, ATOM, "this atomic load (thread 0) and the store");
    begin(true, false, LANES, 1, 32); /* of one block, but one of them is no atomic */
    atomic(0, 0, TL_ATOM_ADD, RELAXED, DEVICE, &y[0]);
    store(0, 1, &y[0]);
    FAULTY(TL_RUN_RACE, 0, STG, "this store (thread 1) and the atomic");
}

/* Block 0 writes y[100], barrier, thread 0 releases a flag; block 1's thread 0 acquires, barrier,
 * thread 9 reads. */
static void hand_over(tl_atom store_op, uint32_t order_out, uint32_t scope, bool first,
                      uint32_t order_in, bool second)
{
    store(0, 5, &y[100]);
    if (first)
        barrier(0);
    atomic(0, 0, store_op, order_out, scope, &y[0]);
    atomic(1, 0, TL_ATOM_LOAD, order_in, scope, &y[0]);
    if (second)
        barrier(1);
    load(1, 9, &y[100]);
}
#define HAND_OVER(...)                                                                             \
    begin(true, false, LANES, 3, 32);                                                              \
    hand_over(__VA_ARGS__)
#define RACY()                                                                                     \
    FAULTY(TL_RUN_RACE, 0, STG,                                                                    \
           "this store (thread 5) and the load at a.tile:10:1 (program 1, thread 9) touch byte "   \
           "400 of 'y' in no order")

/* All that block `from` did before its last barrier happens before what `to` does now. */
static void hand_on(uint32_t from, uint32_t to)
{
    atomic(from, 0, TL_ATOM_STORE, RELEASE, DEVICE, &y[0]);
    atomic(to, 0, TL_ATOM_LOAD, ACQUIRE, DEVICE, &y[0]);
    barrier(to);
}

static void releases(void)
{
    HAND_OVER(TL_ATOM_STORE, RELEASE, DEVICE, true, ACQUIRE, true);
    CLEAN();
    HAND_OVER(TL_ATOM_ADD, ACQ_REL, DEVICE, true, ACQ_REL, true);
    CLEAN();
    HAND_OVER(TL_ATOM_STORE, RELAXED, DEVICE, true, ACQUIRE, true);
    RACY();
    HAND_OVER(TL_ATOM_STORE, RELEASE, DEVICE, true, RELAXED, true);
    RACY();
    HAND_OVER(TL_ATOM_STORE, RELEASE, DEVICE, false, ACQUIRE, true);
    RACY();
    HAND_OVER(TL_ATOM_STORE, RELEASE, DEVICE, true, ACQUIRE, false);
    RACY();
    begin(true, false, LANES, 3, 32); /* another thread's release covers what is its own */
    store(0, 5, &y[100]);
    atomic(0, 1, TL_ATOM_STORE, RELEASE, DEVICE, &y[1]);
    hand_on(0, 1);
    load(1, 9, &y[100]);
    RACY();
    begin(true, false, LANES, 2, 32); /* to and fro: clocks grow */
    for (uint32_t i = 0; i < 5; i++) {
        store(0, 5, &y[100]);
        barrier(0);
        hand_on(0, 1);
        load(1, 7, &y[100]);
        barrier(1);
        hand_on(1, 0);
    }
    CLEAN();
    begin(true, false, LANES, 3, 32); /* of three readers one is not ordered before the writer */
    load(2, 3, &y[100]);
    load(0, 5, &y[100]);
    barrier(0);
    hand_on(0, 1);
    load(1, 9, &y[100]);
    store(1, 9, &y[100]);
    FAULTY(TL_RUN_RACE, 1, STG, "the load at a.tile:10:1 (program 2, thread 3)");
    begin(true, false, LANES, 2, 32); /* what the releasing thread does after it */
    atomic(0, 0, TL_ATOM_STORE, RELEASE, DEVICE, &y[0]);
    store(0, 0, &y[100]);
    atomic(1, 0, TL_ATOM_LOAD, ACQUIRE, DEVICE, &y[0]);
    load(1, 0, &y[100]);
    FAULTY(TL_RUN_RACE, 0, STG, "load");
    begin(true, false, LANES, 2, 32); /* what it does itself before, without a barrier */
    store(0, 0, &y[100]);
    atomic(0, 0, TL_ATOM_STORE, RELEASE, DEVICE, &y[0]);
    atomic(1, 4, TL_ATOM_LOAD, ACQUIRE, DEVICE, &y[0]);
    load(1, 4, &y[100]);
    CLEAN();
    HAND_OVER(TL_ATOM_STORE, RELEASE, DEVICE, true, ACQUIRE, true);
    atomic(2, 3, TL_ATOM_ADD, RELAXED, DEVICE, &y[0]); /* goes on with block 0's release */
    atomic(1, 3, TL_ATOM_LOAD, ACQUIRE, DEVICE, &y[0]);
    load(1, 3, &y[100]);
    atomic(2, 3, TL_ATOM_STORE, RELAXED, DEVICE, &y[0]); /* ends it */
    atomic(2, 3, TL_ATOM_LOAD, ACQUIRE, DEVICE, &y[0]);
    load(2, 3, &y[100]);
    FAULTY(TL_RUN_RACE, 0, STG, "(program 2, thread 3)");
}

/* Through a third block; and a counter that every block adds to, the last one reads all
 * (split-K). */
static void chains(void)
{
    begin(true, false, LANES, 3, 32);
    store(0, 5, &y[100]);
    barrier(0);
    atomic(0, 0, TL_ATOM_STORE, RELEASE, DEVICE, &y[0]);
    atomic(1, 2, TL_ATOM_LOAD, ACQUIRE, DEVICE, &y[0]);
    barrier(1);
    atomic(1, 0, TL_ATOM_STORE, RELEASE, DEVICE, &y[1]);
    atomic(2, 0, TL_ATOM_LOAD, ACQUIRE, DEVICE, &y[1]);
    barrier(2);
    store(2, 7, &y[100]);
    CLEAN();
    for (int broken = 0; broken < 2; broken++) {
        begin(true, false, LANES, 8, 32);
        for (uint32_t b = 0; b < 8; b++) {
            for (uint32_t t = 0; t < 32; t++)
                store(b, t, &y[32 * b + t]);
            barrier(b);
            atomic(b, 0, TL_ATOM_ADD, broken && b == 4 ? ACQUIRE : ACQ_REL, DEVICE, &y[1000]);
        }
        barrier(7);
        for (uint32_t i = 0; i < 8 * 32; i++)
            load(7, i % 32, &y[i]);
        if (broken)
            FAULTY(TL_RUN_RACE, 4, STG, "(program 7,");
        else
            CLEAN();
    }
}

/* Blocks on host threads of their own: pages, places and clocks are shared. Sums of a column that
 * all blocks add to, and elements of their own. */
static void *one_block(void *arg)
{
    uint32_t b = *(const uint32_t *)arg;
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t t = 0; t < 32; t++) {
            store(b, t, &y[100 + 8 * t + b]); /* its neighbours are another block's */
            atomic(b, t, TL_ATOM_ADD, t % 2 ? ACQ_REL : RELAXED, DEVICE, &y[t]);
            load(b, t, &y[100 + 8 * t + b]);
            load(b, t, &fresh[t]);
        }
        barrier(b);
    }
    return NULL;
}

static void host_threads(void)
{
    pthread_t threads[8];
    uint32_t numbers[8];
    begin(true, true, LANES, 8, 32);
    for (uint32_t i = 0; i < 8; i++) {
        numbers[i] = i;
        CHECK_INT(pthread_create(&threads[i], NULL, one_block, &numbers[i]), 0);
    }
    for (uint32_t i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    CLEAN();
}

/* ---- counters ---- */

static bool has(const char *text, const char *line)
{
    bool found = text && strstr(text, line);
    if (!found)
        fprintf(stderr, "no line '%s' in:\n%s", line, text ? text : "(nothing)\n");
    return found;
}

static char *finish_stats(void)
{
    for (int i = 0; i < 8; i++)
        tl_emu_block_end(blocks[i]);
    memset(blocks, 0, sizeof blocks);
    return tl_emu_stats_text(watch);
}

static void global_counters(void)
{
    begin(false, true, 32, 1, 64);
    for (uint32_t t = 0; t < 64; t++) {                 /* thread after thread, as the core does */
        access_at(0, t, LDG128, (uintptr_t)x + 16 * t); /* 512 bytes, 16 sectors, 4 lines a warp */
        access_at(0, t, LDG128, (uintptr_t)x);          /* all the same: 1 sector, 1 line */
        access_at(0, t, STG, (uintptr_t)y + 32 * t);    /* a sector each: 32 for 4 */
        access_at(0, t, LDG16, (uintptr_t)x + 2 * t);   /* 64 bytes, 2 sectors, 1 line */
        if (t % 2)
            tl_emu_block_skip(blocks[0], LDG, t);
        else
            access_at(0, t, LDG, (uintptr_t)x + 4 * t); /* 16 of 4 bytes: 4 sectors for 2 */
        tl_emu_block_skip(blocks[0], STG128, t);
        tl_emu_block_count(blocks[0], SHFL, t, TL_LEAF_SHFL_XOR);
        tl_emu_block_count(blocks[0], BAR, t, TL_LEAF_BARRIER);
    }
    char *text = finish_stats();
    CHECK(has(text, "kernel k: 1 blocks of 64 threads, 4096 bytes of shared memory\n"));
    CHECK(has(
        text,
        "a.tile:16:1 ldg_128: 4 requests, 8.50 sectors/request (min 8.50), 2.50 lines/request\n"));
    CHECK(has(
        text,
        "a.tile:11:1 stg_32: 2 requests, 32.00 sectors/request (min 4.00), 8.00 lines/request\n"));
    CHECK(has(
        text,
        "a.tile:21:1 ldg_16: 2 requests, 2.00 sectors/request (min 2.00), 1.00 lines/request\n"));
    CHECK(has(
        text,
        "a.tile:10:1 ldg_32: 2 requests, 4.00 sectors/request (min 2.00), 1.00 lines/request\n"));
    CHECK(has(text, "a.tile:20:1 stg_128: 0 requests"));
    CHECK(has(text, "a.tile:17:1 shfl_xor: 2\n"));
    CHECK(has(text, "global loads: 8 requests, 46 sectors (min 42), 14 lines, 1312 bytes\n"));
    CHECK(has(text, "global stores: 2 requests, 64 sectors (min 8), 16 lines, 256 bytes\n"));
    CHECK(has(text, "global widths: 8-bit 0, 16-bit 64, 32-bit 96, 64-bit 0, 128-bit 128\n"));
    CHECK(has(text, "128-bit accesses: 44.4%\n"));
    CHECK(has(text, "barriers: 1\nshuffles: 2\n"));
    free(text);
    end();
}

static void shared_counters(uint32_t lanes, const char *const *lines)
{
    begin(false, true, lanes, 1, 64);
    for (uint32_t t = 0; t < 64; t++) {
        uint32_t lane = t % 32;
        access_at(0, t, STS, 4 * lane);            /* 1 wavefront a part */
        access_at(0, t, STS, 8 * lane);            /* every second bank: 2 */
        access_at(0, t, STS, 128 * lane % SHARED); /* one bank: 32 */
        access_at(0, t, LDS, 4);                   /* one word: 1 */
        access_at(0, t, STS64, 8 * lane);          /* halves of 16 lanes: 1 each */
        access_at(0, t, LDS128, 16 * lane);        /* quarters of 8: 1 each */
        access_at(0, t, LDS128, 64 * lane);        /* 8 lanes at 4 * 16 bytes: 4 in each bank */
    }
    char *text = finish_stats();
    for (int i = 0; lines[i]; i++)
        CHECK(has(text, lines[i]));
    free(text);
    end();
}

static void atomic_counters(void)
{
    begin(false, true, 32, 2, 32);
    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t t = 0; t < 32; t++)
            atomic(b, t, TL_ATOM_ADD, RELAXED, DEVICE, &y[t / 4]);
    char *text = finish_stats();
    CHECK(has(text, "a.tile:14:1 atom_32: 2 requests, 64 operations, 1.00 sectors/request (min "
                    "1.00), 4.00 at one address\n"));
    CHECK(has(text, "atomics: 2 requests, 64 operations, 2 sectors\n"));
    free(text);
    end();
}

/* A long loop of one thread before the others come: requests wait. */
static void waiting_requests(void)
{
    begin(false, true, 32, 1, 48); /* the second warp has 16 threads */
    for (uint32_t t = 48; t-- > 0;)
        for (uint32_t i = 0; i < 100; i++)
            access_at(0, t, LDG, (uintptr_t)&x[(t + i) % N]);
    for (uint32_t i = 0; i < 100; i++)
        for (uint32_t t = 0; t < 48; t++) {
            access_at(0, t, STG, (uintptr_t)&y[i < 50 ? 8 * t : t]);
            if (i == 7 && t < 20)
                access_at(0, t, LDG128, (uintptr_t)x); /* not all come: counted at the end */
        }
    char *text = finish_stats();
    CHECK(has(text, "ldg_32: 200 requests"));
    CHECK(has(text, " 19216 bytes"));
    CHECK(has(text, "ldg_128: 1 requests"));
    CHECK(has(text, "stg_32: 200 requests, 13.50 sectors/request (min 3.00)"));
    free(text);
    end();
}

int main(void)
{
    fresh = aligned_alloc(128, sizeof x);
    if (!CHECK(fresh && tl_emu_memory_allocated(fresh, sizeof x) == TILE_OK))
        return unit_result();
    make_launch();
    bounds();
    tl_emu_memory_freed(fresh);
    CHECK_INT(tl_emu_memory_allocated(fresh, sizeof x), TILE_OK);
    unwritten_global();
    unwritten_shared();
    shared_races();
    widths();
    scattered();
    blocks_without_order();
    bulk_stores();
    atomics();
    releases();
    chains();
    host_threads();
    global_counters();
    shared_counters(32,
                    (const char *const[]){
                        "a.tile:13:1 sts_32: 6 requests, 11.67 wavefronts/request (min 1.00)\n",
                        "a.tile:12:1 lds_32: 2 requests, 1.00 wavefronts/request (min 1.00)\n",
                        "a.tile:19:1 sts_64: 2 requests, 2.00 wavefronts/request (min 2.00)\n",
                        "a.tile:18:1 lds_128: 4 requests, 10.00 wavefronts/request (min 4.00)\n",
                        "bank conflicts: 88\n", NULL});
    shared_counters(
        64, (const char *const[]){
                "a.tile:13:1 sts_32: 3 requests, 23.33 wavefronts/request (min 2.00)\n",
                "a.tile:18:1 lds_128: 2 requests, 20.00 wavefronts/request (min 8.00)\n", NULL});
    atomic_counters();
    waiting_requests();
    tl_emu_memory_freed(fresh);
    free(fresh);
    return unit_result();
}
