/* Invariants of the runtime (runtime/invariant.h): one of each kind is broken on purpose. A release
 * build reports it and goes on. A debug build aborts, so there each has a process of its own. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/emu/emu.h"
#include "runtime/emu/emu_watch.h"
#include "runtime/runtime.h"
#include "test/unit/unit.h"

#ifdef NDEBUG
static void breaks(void (*f)(void), const char *text)
{
    (void)text;
    f();
    CHECK_INT(tl_broken_status(), TILE_OK); /* told once */
}
#else
/* f ends the process, after `text` on stderr. */
static void breaks(void (*f)(void), const char *text)
{
    int ends[2], status = 0;
    char said[4096];
    size_t n = 0;
    ssize_t more;
    if (!CHECK(pipe(ends) == 0))
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(ends[1], STDERR_FILENO);
        f();
        _exit(0);
    }
    close(ends[1]);
    while ((more = read(ends[0], said + n, sizeof said - 1 - n)) > 0)
        n += (size_t)more;
    said[n] = 0;
    close(ends[0]);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    if (!CHECK(strstr(said, text) != NULL))
        fprintf(stderr, "    said '%s', not '%s'\n", said, text);
}
#endif

/* ---- functions ---- */

static void one_that_returns_a_status(void)
{
    void *p = NULL;
    CHECK_INT(tl_host_mem_alloc(NULL, 8, &p), TILE_INTERNAL);
    CHECK_STR(tile_last_error(), "internal error: tl_host_mem_alloc: memory of no device");
}

static void one_that_returns_a_value(void)
{
    CHECK(tl_decode_float(TILE_I32, 1) == 0);
    CHECK(tl_decode_float(TILE_BOOL, 1) == 0); /* the first is the one that is kept */
    tl_fail(TILE_IO, "something else");
    CHECK_INT(tile_stream_synchronize(NULL), TILE_INTERNAL);
    CHECK_STR(tile_last_error(), "internal error: tl_decode_float: i32 is not decoded as a float");
    CHECK_INT(tile_stream_synchronize(NULL), TILE_OK);
}

static void one_that_returns_nothing(void)
{
    tl_fiber_stacks *stacks;
    char stack[16];
    if (!CHECK(tl_fiber_stacks_new(TL_FIBER_STACK, &stacks) == TILE_OK))
        return;
    tl_fiber_stack_give(stacks, stack);
    CHECK_INT(tl_broken_status(), TILE_INTERNAL);
    CHECK(strstr(tile_last_error(), "internal error: tl_fiber_stack_give: stack ") != NULL);
    tl_fiber_stacks_free(stacks);
}

/* Two values are left on the stack: no image with such code is ever accepted. */
static void one_between_launches(void)
{
    static const tile_hx_ins code[2] = {{TILE_HX_CONST, 0, 3}, {TILE_HX_CONST, 0, 4}};
    int64_t value = 0;
    CHECK_INT(tl_hostexpr_eval(code, 2, &(tl_hx_env){0}, &value), TL_HX_FINE);
}

/* ---- other threads ---- */

static void break_in_worker(void *user, int worker, int64_t begin, int64_t end)
{
    atomic_int *came = user;
    (void)begin;
    (void)end;
    if (worker == 0) { /* until the other has come, so that it does */
        while (!atomic_load(came))
            usleep(100);
        return;
    }
    atomic_store(came, 1);
    TL_INVARIANT_VOID(worker == 0, "worker %d", worker);
}

static void one_in_a_worker(void)
{
    tl_pool *pool;
    atomic_int came = 0;
    if (!CHECK(tl_pool_create(2, NULL, &pool) == TILE_OK))
        return;
    if (tl_pool_threads(pool) == 2) {
        CHECK_INT(tl_pool_run(pool, 2, TL_POOL_INCREASING, break_in_worker, &came), TILE_INTERNAL);
        CHECK_STR(tile_last_error(), "internal error: break_in_worker: worker 1");
        came = 0;
        CHECK_INT(tl_pool_run(pool, 2, TL_POOL_INCREASING, break_in_worker, &came), TILE_INTERNAL);
    }
    tl_pool_free(pool);
}

static tile_status break_in_stream(tl_dev *dev, tl_code *code, const tl_launch *launch,
                                   tl_sink *sink)
{
    (void)dev;
    (void)code;
    (void)sink;
    CHECK(tl_decode_int(TILE_F32, (uint64_t)launch->programs) == 0);
    return TILE_OK;
}

static void one_in_a_stream(void)
{
    static const tl_driver driver = {.kind = "test", .run = break_in_stream};
    static const tile_image_kernel kernel;
    tl_launch launch = {.kernel = &kernel, .programs = 1};
    tl_sink *sink;
    tl_queue *q;
    if (!CHECK(tl_sink_create(&sink) == TILE_OK))
        return;
    if (CHECK(tl_host_queue_create(&driver, NULL, sink, false, &q) == TILE_OK)) {
        CHECK_INT(tl_host_queue_launch(q, (tl_code *)(void *)sink, &launch), TILE_OK);
        CHECK_INT(tl_host_queue_synchronize(q), TILE_INTERNAL);
        CHECK_STR(tile_last_error(), "internal error: tl_decode_int: f32 is not decoded as an "
                                     "integer");
        CHECK_INT(tl_host_queue_synchronize(q), TILE_OK);
        tl_host_queue_free(q);
    }
    tl_sink_free(sink);
}

/* ---- the emulator ---- */

static struct image {
    tile_image_header header;
    tile_image_kernel kernel;
    tile_image_site sites[2];
} image;

static void act(tl_emu_block *b, void *const *mine)
{
    (void)b;
    (void)mine;
}

/* No GPU has warps of 128 lanes. */
static void meet(const uint64_t *params)
{
    (void)params;
    tl_emu_meet_warp(tl_emu_now, TL_LEAF_LDSM_1, 1, 0, NULL, act);
}

static void end_twice(const uint64_t *params)
{
    (void)params;
    tl_emu_now->warps[0].ended = tl_emu_now->lanes;
}

static tile_status emulate(tl_emu_entry entry, uint32_t lanes)
{
    tl_pool *pool;
    tl_emu_crew crew;
    tl_emu_kernel kernel = {entry, 128, lanes, 64, TL_FIBER_STACK};
    tl_launch launch = {.image = &image,
                        .kernel = &image.kernel,
                        .grid = {1, 1, 1, 1, 1, 1},
                        .ngrid = 1,
                        .programs = 1,
                        .blocks = 1};
    tl_emu_job job = {.kernel = &kernel, .launch = &launch, .dropped = UINT32_MAX};
    tl_emu_watch_options options = {.lanes = lanes, .shared_bytes = 64};
    image.kernel.nsites = 2;
    image.kernel.sites = (uint32_t)offsetof(struct image, sites);
    image.sites[1] = (tile_image_site){.line = 7, .col = 3};
    if (!CHECK(tl_pool_create(1, NULL, &pool) == TILE_OK && tl_sink_create(&job.sink) == TILE_OK &&
               tl_emu_crew_open(pool, &crew) == TILE_OK &&
               tl_emu_watch_new(&launch, &options, tl_emu_report_failure, &job, &job.watch) ==
                   TILE_OK))
        return TILE_NO_MEMORY;
    tile_status status = tl_emu_run(pool, &crew, &job);
    if (status == TILE_OK)
        status = tl_sink_deliver(job.sink, &(tile_callbacks){0});
    tl_emu_watch_free(job.watch);
    tl_emu_crew_close(&crew);
    tl_sink_free(job.sink);
    tl_pool_free(pool);
    return status;
}

static void one_in_a_thread(void)
{
    CHECK_INT(emulate(meet, 128), TILE_INTERNAL);
    CHECK_STR(tile_last_error(),
              "?:7:3: internal error: tl_emu_meet_warp: a warp of 128 lanes (program 0)");
}

static void one_of_the_counts(void)
{
    CHECK_INT(emulate(end_twice, 32), TILE_INTERNAL);
    CHECK(strstr(tile_last_error(), "thread_ended: ") != NULL);
}

static void one_of_the_shadow(void)
{
    tl_emu_shadow shadow = {0};
    tl_emu_order order = {.threads = 1, .tick = 1, .epoch = 1};
    tl_emu_stamp stamp = {.tick = 1};
    tl_emu_conflict conflict;
    tl_emu_shadow_enter(&shadow, &order, TL_EMU_WRITES, stamp, 0, 3, &conflict);
    CHECK_INT(tl_broken_status(), TILE_INTERNAL);
    CHECK_STR(tile_last_error(), "internal error: tl_emu_shadow_enter: an access of 3 bytes");
    tl_emu_shadow_free(&shadow);
}

/* What is wrong with us is told before what is wrong with a kernel, though it came first. */
static void ours_come_first(void)
{
    tl_sink *sink;
    tl_launch launch = {.ngrid = 1, .grid = {4, 1, 1, 1, 1, 1}, .programs = 4, .blocks = 4};
    if (!CHECK(tl_sink_create(&sink) == TILE_OK))
        return;
    tl_sink_fail(sink, &launch, 1, TL_RUN_ASSERT, "k.tile", 1, 2, "x > 0");
    tl_sink_fail(sink, &launch, 3, TL_RUN_INTERNAL, "k.tile", 3, 4, "f: lost");
    tl_sink_fail(sink, &launch, 0, TL_RUN_BOUNDS, "k.tile", 5, 6, "outside");
    CHECK_INT(tl_sink_deliver(sink, &(tile_callbacks){0}), TILE_INTERNAL);
    CHECK_STR(tile_last_error(), "k.tile:3:4: internal error: f: lost (program 3)");
    tl_sink_fail(sink, &launch, 1, TL_RUN_ASSERT, "k.tile", 1, 2, "x > 0");
    CHECK_INT(tl_sink_deliver(sink, &(tile_callbacks){0}), TILE_FAILED);
    tl_sink_free(sink);
}

int main(void)
{
    breaks(one_that_returns_a_status, "internal error: tl_host_mem_alloc: memory of no device");
    breaks(one_that_returns_a_value, "internal error: tl_decode_float: i32");
    breaks(one_that_returns_nothing, "internal error: tl_fiber_stack_give");
    breaks(one_in_a_worker, "internal error: break_in_worker: worker 1");
    breaks(one_in_a_stream, "internal error: tl_decode_int: f32");
    breaks(one_in_a_thread, "internal error: tl_emu_meet_warp: a warp of 128 lanes");
    breaks(one_of_the_counts, "internal error: thread_ended");
    breaks(one_of_the_shadow, "internal error: tl_emu_shadow_enter");
    breaks(one_between_launches, "internal error: tl_hostexpr_eval: 2 values are left");
    ours_come_first();
    return unit_result();
}
