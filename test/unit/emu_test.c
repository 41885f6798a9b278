/* The virtual GPU, without a compiler: kernels are C functions that call the leaves. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/emu/emu.h"
#include "runtime/runtime.h"
#include "test/unit/unit.h"

typedef uint32_t v2 __attribute__((vector_size(8)));
typedef uint32_t v4 __attribute__((vector_size(16)));
uint32_t tl_emu_tid(void);
uint32_t tl_emu_ctaid(void);
uint32_t tl_emu_cluster_size(void);
uint32_t tl_emu_cluster_rank(void);
void tl_emu_barrier(uint32_t site);
void tl_emu_meet(uint32_t site);
void tl_emu_mbar_init(uint32_t site, uint32_t pred, uint32_t offset, uint32_t count);
void tl_emu_mbar_end(uint32_t site, uint32_t pred, uint32_t offset);
void tl_emu_mbar_arrive_at(uint32_t site, uint32_t pred, uint32_t offset, uint32_t rank);
void tl_emu_mbar_wait(uint32_t site, uint32_t offset, uint32_t parity);
uint32_t tl_emu_shfl_idx(uint32_t site, uint32_t value, uint32_t lane);
uint32_t tl_emu_shfl_xor(uint32_t site, uint32_t value, uint32_t mask);
uint32_t tl_emu_ldg_8(uint32_t site, uint64_t at, uint32_t pred, uint32_t hints, uint32_t fill);
uint32_t tl_emu_ldg_32(uint32_t site, uint64_t at, uint32_t pred, uint32_t hints, uint32_t fill);
v2 tl_emu_ldg_64(uint32_t site, uint64_t at, uint32_t pred, uint32_t hints, uint32_t fill);
v4 tl_emu_ldg_128(uint32_t site, uint64_t at, uint32_t pred, uint32_t hints, uint32_t fill);
void tl_emu_stg_8(uint32_t site, uint64_t at, uint32_t pred, uint32_t hints, uint32_t value);
void tl_emu_stg_32(uint32_t site, uint64_t at, uint32_t pred, uint32_t hints, uint32_t value);
void tl_emu_stg_64(uint32_t site, uint64_t at, uint32_t pred, uint32_t hints, v2 value);
void tl_emu_stg_128(uint32_t site, uint64_t at, uint32_t pred, uint32_t hints, v4 value);
uint32_t tl_emu_lds_32(uint32_t site, uint32_t offset);
void tl_emu_sts_32(uint32_t site, uint32_t offset, uint32_t pred, uint32_t value);
uint32_t tl_emu_atom_32(uint32_t site, uint64_t at, uint32_t pred, uint32_t op, uint32_t order,
                        uint32_t scope, uint32_t value, uint32_t expected);
uint64_t tl_emu_atom_64(uint32_t site, uint64_t at, uint32_t pred, uint32_t op, uint32_t order,
                        uint32_t scope, uint64_t value, uint64_t expected);
void tl_emu_registers(uint32_t site, uint32_t n, uint32_t more);
void tl_emu_fail(uint32_t site, uint32_t failed, uint32_t kind, uint32_t text);
void tl_emu_print(uint32_t site, uint32_t pred, uint32_t text, uint32_t dtype, uint32_t reg,
                  uint32_t index, uint64_t bits);

/* ---- fibers ---- */

enum { FIBERS = 100, ROUNDS = 50 };
static tl_fiber fibers[FIBERS], host;
static uint64_t sums[FIBERS];

static void fiber_main(void *user)
{
    uint32_t me = *(uint32_t *)user;
    volatile double kept = me; /* lives across switches, in a register or in the frame */
    uint64_t sum = 0;
    tl_fiber_started(&fibers[me]);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        sum += (uint64_t)kept + i;
        tl_fiber_switch(&fibers[me], me + 1 < FIBERS ? &fibers[me + 1] : &host);
    }
    sums[me] = sum;
    tl_fiber_leave(&fibers[me], me + 1 < FIBERS ? &fibers[me + 1] : &host);
}

static void fibers_keep_what_they_hold(void)
{
    static uint32_t numbers[FIBERS];
    tl_fiber_stacks *stacks;
    if (!CHECK(tl_fiber_stacks_new(TL_FIBER_STACK, &stacks) == TILE_OK))
        return;
    for (uint32_t i = 0; i < FIBERS; i++) {
        void *stack = tl_fiber_stack_take(stacks);
        if (!CHECK(stack != NULL))
            return;
        numbers[i] = i;
        tl_fiber_prepare(&fibers[i], stacks, stack, fiber_main, &numbers[i]);
    }
    for (uint32_t i = 0; i <= ROUNDS; i++)
        tl_fiber_switch(&host, &fibers[0]);
    for (uint32_t i = 0; i < FIBERS; i++)
        CHECK_INT(sums[i], i * ROUNDS + ROUNDS * (ROUNDS - 1) / 2);
    tl_fiber_stacks_free(stacks);
    tl_fiber_stacks_free(NULL);
}

static uint32_t overflow(uint32_t depth)
{
    volatile uint32_t frame[64];
    frame[depth % 64] = depth;
    return depth ? overflow(depth - 1) + frame[depth % 64] : 0;
}

static void overflowing_main(void *user)
{
    (void)user;
    tl_fiber_started(&fibers[0]);
    overflow(TL_FIBER_STACK);
    _exit(0);
}

/* An overflow stops the process instead of changing another fiber's stack. */
static void stacks_are_guarded(void)
{
#ifdef __SANITIZE_THREAD__ /* it would not survive to tell */
    return;
#endif
    pid_t child = fork();
    if (child == 0) {
        tl_fiber_stacks *stacks;
        fclose(stderr); /* a sanitizer would tell */
        if (tl_fiber_stacks_new(TL_FIBER_STACK, &stacks) == TILE_OK) {
            tl_fiber_stack_take(stacks);
            tl_fiber_prepare(&fibers[0], stacks, tl_fiber_stack_take(stacks), overflowing_main,
                             NULL);
            tl_fiber_switch(&host, &fibers[0]);
        }
        _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

/* ---- a launch ---- */

enum { SITES = 8, WORDS = 1024, LINE = 10 };
/* Sites: line 10 + number. */
static struct image {
    tile_image_header header;
    tile_image_kernel kernel;
    tile_image_param params[1];
    tile_image_site sites[SITES];
    uint32_t files[1], texts[4];
    char strings[48];
} image;
static _Alignas(128) uint32_t memory[WORDS];
static char said[4096]; /* prints, a line each; then the failure */
static int32_t cluster = 1; /* programs of one */

#define AT(field) (uint32_t) offsetof(struct image, field)

static void make_image(void)
{
    memcpy(image.strings, "k\0k.tile\0value\0004,2\0went wrong\0m", 32);
    image.header.nfiles = 1;
    image.header.files = AT(files);
    image.files[0] = AT(strings) + 2;
    image.kernel.name = AT(strings);
    image.kernel.nparams = 1;
    image.kernel.params = AT(params);
    image.params[0].name = AT(strings) + 30;
    image.kernel.nsites = SITES;
    image.kernel.sites = AT(sites);
    image.kernel.ntexts = 4;
    image.kernel.texts = AT(texts);
    image.texts[0] = AT(strings) + 9;  /* value */
    image.texts[1] = AT(strings) + 15; /* 4,2 */
    image.texts[2] = AT(strings) + 19; /* went wrong */
    image.texts[3] = AT(strings) + 1;  /* "" */
    for (uint32_t i = 0; i < SITES; i++)
        image.sites[i] = (tile_image_site){.line = LINE + i, .col = 1};
}

static void on_text(void *user, const char *text)
{
    (void)user;
    size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", text);
}

static tl_pool *pool;
static tl_emu_crew crew;

/* Runs `programs` blocks; what was printed and reported is in `said`. */
static tile_status run(tl_emu_entry entry, uint32_t threads, uint32_t lanes, int64_t programs,
                       const char *schedule)
{
    tile_callbacks callbacks = TILE_CALLBACKS_INIT;
    tl_emu_kernel kernel = {entry, threads, lanes, 4096, TL_FIBER_STACK};
    tile_arg arg = {.kind = TILE_ARG_VIEW, .address = memory, .bytes = sizeof memory};
    uint64_t slots[1] = {(uint64_t)(uintptr_t)memory};
    tl_launch launch = {.image = &image,
                        .kernel = &image.kernel,
                        .grid = {(int32_t)programs, 1, 1, 1, 1, 1},
                        .ngrid = 1,
                        .programs = programs,
                        .blocks = programs,
                        .cluster = cluster,
                        .nargs = 1,
                        .nslots = 1,
                        .args = &arg,
                        .slots = slots};
    tl_emu_job job = {.kernel = &kernel, .launch = &launch, .dropped = UINT32_MAX};
    tl_emu_watch_options options = {.check = true, .lanes = lanes, .shared_bytes = 4096};
    callbacks.print = callbacks.failure = on_text;
    said[0] = 0;
    CHECK(tl_emu_schedule_parse(schedule, &job.schedule));
    if (!CHECK(tl_sink_create(&job.sink) == TILE_OK &&
               tl_emu_watch_new(&launch, &options, tl_emu_report_failure, &job, &job.watch) ==
                   TILE_OK))
        return TILE_NO_MEMORY;
    tile_status status = tl_emu_run(pool, &crew, &job);
    if (status == TILE_OK)
        status = tl_sink_deliver(job.sink, &callbacks);
    tl_emu_watch_free(job.watch);
    tl_sink_free(job.sink);
    return status;
}

static const char *const schedules[] = {"rr", "reverse", "ahead", "random:1", "random:77"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

static void fails(tl_emu_entry entry, const char *first, const char *second)
{
    for (int i = 0; i < SCHEDULES; i++) {
        CHECK_INT(run(entry, 64, 32, 2, schedules[i]), TILE_FAILED);
        if (!CHECK(strstr(said, first) && strstr(said, second)))
            fprintf(stderr, "    under %s: %s    wants '%s' and '%s'\n", schedules[i], said, first,
                    second);
    }
}

/* ---- registers ---- */

/* Three groups of four warps, 168 registers for each thread. */
enum { GROUPS = 3, THREADS_OF_GROUPS = 128 * GROUPS };
static uint32_t few, many; /* of the last group, of the others */

static void share_registers(const uint64_t *params)
{
    (void)params;
    bool last = tl_emu_tid() / 128 == GROUPS - 1;
    tl_emu_registers(last ? 3 : 4, last ? few : many, !last);
}

static void registers_say(uint32_t give, uint32_t take, const char *want)
{
    few = give;
    many = take;
    for (int i = 0; i < SCHEDULES; i++) {
        tile_status status = run(share_registers, THREADS_OF_GROUPS, 32, 1, schedules[i]);
        CHECK_INT(status, want ? TILE_FAILED : TILE_OK);
        if (want && !CHECK(strstr(said, want) != NULL))
            fprintf(stderr, "    under %s: %s    wants '%s'\n", schedules[i], said, want);
    }
}

/* Together no more than there were; each a multiple of 8 from 24 to 256, in the direction said. */
static void registers(void)
{
    registers_say(24, 240, NULL);
    registers_say(168, 168, NULL);
    registers_say(40, 232, NULL);
    registers_say(32, 240, "k.tile:14:1: deadlock: nobody gives back the registers");
    registers_say(24, 248, "k.tile:14:1: deadlock: nobody gives back the registers");
    registers_say(16, 240, "16 registers are not fewer than the 168");
    registers_say(28, 240, "28 registers are not fewer than the 168");
    registers_say(24, 264, "264 registers are not more than the 168");
    registers_say(24, 160, "160 registers are not more than the 168");
    registers_say(176, 168, "176 registers are not fewer than the 168");
}

/* ---- collectives ---- */

/* Thread t of block c: 1000 c + the sum of its warp's thread numbers, by a butterfly. */
static void butterfly(const uint64_t *params)
{
    uint32_t t = tl_emu_tid(), sum = t;
    for (uint32_t mask = 1; mask < 32; mask *= 2)
        sum += tl_emu_shfl_xor(1, sum, mask);
    sum += 1000 * tl_emu_ctaid();
    tl_emu_stg_32(2, params[0] + 4 * (tl_emu_ctaid() * 128 + t), 1, 0, sum);
}

/* Each thread gets what the next but three has put into shared memory, and the value of a lane. */
static void exchange(const uint64_t *params)
{
    uint32_t t = tl_emu_tid(), at = tl_emu_ctaid() * 128 + t, sum = 0;
    for (uint32_t round = 0; round < 3; round++) {
        tl_emu_sts_32(0, 4 * t, 1, 10 * t + round);
        tl_emu_barrier(1);
        sum += tl_emu_lds_32(2, 4 * ((t + 3) % 128));
        tl_emu_barrier(3);
    }
    sum += tl_emu_shfl_idx(4, t, (t + 1) % 32);
    tl_emu_stg_32(5, params[0] + 4 * at, 1, 0, sum);
}

static void collectives(void)
{
    for (int s = 0; s < SCHEDULES; s++) {
        int wrong = 0;
        memset(memory, 0, sizeof memory);
        CHECK_INT(run(butterfly, 128, 32, 8, schedules[s]), TILE_OK);
        for (uint32_t i = 0; i < WORDS; i++)
            wrong += memory[i] != 1000 * (i / 128) + 32 * (i % 128 / 32 * 32) + 496;
        CHECK_INT(run(exchange, 128, 32, 8, schedules[s]), TILE_OK);
        for (uint32_t i = 0; i < WORDS; i++) {
            uint32_t t = i % 128;
            wrong += memory[i] != 30 * ((t + 3) % 128) + 3 + (t / 32 * 32 + (t + 1) % 32);
        }
        CHECK_INT(wrong, 0);
    }
    memset(memory, 0, sizeof memory);
    CHECK_INT(run(butterfly, 64, 64, 1, "rr"), TILE_OK); /* a wave of 64: two halves */
    CHECK_INT(memory[0], 496);
    CHECK_INT(memory[40], 32 * 32 + 496);
    CHECK_INT(run(butterfly, 0 + 32, 1, 1, "rr"), TILE_FAILED); /* a warp of 1 has no neighbour */
    CHECK(strstr(said, "lane 1 of a warp of 1") != NULL);
}

/* ---- clusters ---- */

/* Each program has a barrier at which all 64 threads of all of its cluster arrive, once a phase. */
static void begin_meeting(void)
{
    tl_emu_mbar_init(0, tl_emu_tid() == 0, 64, 64 * tl_emu_cluster_size());
    tl_emu_meet(1);
}

static void end_meeting(void)
{
    tl_emu_meet(2);
    tl_emu_mbar_end(3, tl_emu_tid() == 0, 64);
}

static void arrive_everywhere(void)
{
    for (uint32_t i = 0; i < tl_emu_cluster_size(); i++)
        tl_emu_mbar_arrive_at(4, 1, 64, i);
}

/* Thread t of a block: the phases that it has seen, its place in the cluster, its program. */
static void phases(const uint64_t *params)
{
    uint32_t at = tl_emu_ctaid() * 64 + tl_emu_tid();
    begin_meeting();
    for (uint32_t i = 0; i < 5; i++) {
        arrive_everywhere();
        tl_emu_mbar_wait(5, 64, i & 1);
    }
    end_meeting();
    tl_emu_stg_32(6, params[0] + 4 * at, 1, 0,
                  500 + 10 * tl_emu_cluster_rank() + tl_emu_cluster_size());
}

static void arrives_nowhere(const uint64_t *params)
{
    (void)params;
    begin_meeting();
    tl_emu_mbar_arrive_at(4, 1, 64, 2);
}

static void arrives_at_what_is_not_there(const uint64_t *params)
{
    (void)params;
    tl_emu_mbar_init(0, tl_emu_tid() == 0, 64, 2);
    tl_emu_barrier(1);
    tl_emu_mbar_arrive_at(4, tl_emu_tid() == 0, 64, 1 - tl_emu_cluster_rank());
}

static void ends_too_early(const uint64_t *params)
{
    (void)params;
    begin_meeting();
    arrive_everywhere();
    tl_emu_mbar_wait(5, 64, 0);
}

static void ends_barrier_too_early(const uint64_t *params)
{
    ends_too_early(params);
    tl_emu_mbar_end(3, tl_emu_tid() == 0, 64);
    tl_emu_meet(2);
}

static void does_not_come(const uint64_t *params)
{
    (void)params;
    if (tl_emu_cluster_rank() == 0)
        tl_emu_meet(1);
}

static void comes_elsewhere(const uint64_t *params)
{
    (void)params;
    tl_emu_meet(tl_emu_cluster_rank() ? 1 : 2);
}

static void waits_for_nobody(const uint64_t *params)
{
    (void)params;
    begin_meeting();
    tl_emu_mbar_wait(5, 64, 0);
}

static void clusters(void)
{
    for (int s = 0; s < SCHEDULES; s++)
        for (cluster = 1; cluster <= 8; cluster *= 2) {
            memset(memory, 0, sizeof memory);
            CHECK_INT(run(phases, 64, 32, 16, schedules[s]), TILE_OK);
            for (int32_t i = 0; i < WORDS; i++)
                CHECK_INT((int)memory[i], 500 + 10 * (i / 64 % cluster) + cluster);
        }
    cluster = 2;
    fails(arrives_nowhere, "k.tile:14:1", "program 2 of a cluster of 2");
    fails(arrives_at_what_is_not_there, "k.tile:14:1", "another program");
    fails(ends_too_early, "k.tile:14:1: asynchronous copy: ", " program ");
    fails(ends_barrier_too_early, "k.tile:1", " program ");
    fails(does_not_come, "k.tile:11:1: non-convergent collective", "has ended");
    fails(comes_elsewhere, "non-convergent collective",
          "another program of the cluster is in meet");
    fails(waits_for_nobody, "k.tile:15:1: deadlock", "nobody completes this phase");
    cluster = 1;
}

/* ---- what breaks the rules ---- */

static void two_shuffles(const uint64_t *params)
{
    (void)params;
    if (tl_emu_tid() % 32 < 7)
        tl_emu_shfl_xor(1, 0, 1);
    else
        tl_emu_shfl_xor(2, 0, 1);
}

static void two_masks(const uint64_t *params)
{
    (void)params;
    tl_emu_shfl_xor(1, 0, tl_emu_tid() == 40 ? 4 : 2);
}

static void two_barriers(const uint64_t *params)
{
    (void)params;
    tl_emu_barrier(tl_emu_tid() < 32 ? 3 : 4);
}

static void shuffle_or_barrier(const uint64_t *params)
{
    (void)params;
    if (tl_emu_tid() == 33)
        tl_emu_barrier(5);
    else
        tl_emu_shfl_idx(6, 0, 0);
}

static void ends_before_barrier(const uint64_t *params)
{
    (void)params;
    if (tl_emu_tid() != 50)
        tl_emu_barrier(3);
}

static void ends_before_shuffle(const uint64_t *params)
{
    (void)params;
    if (tl_emu_tid() != 50)
        tl_emu_shfl_idx(3, 0, 0);
}

static void waits_for_ever(const uint64_t *params)
{
    (void)params;
    tl_emu_block *b = tl_emu_now;
    b->current->waits = true;
    b->current->leaf = TL_LEAF_BARRIER;
    b->current->site = tl_emu_tid() < 10 ? 2 : 3;
    tl_emu_set_remove(&b->ready, b->current->position);
    tl_emu_switch_away(b);
}

static void broken_rules(void)
{
    fails(two_shuffles, "non-convergent collective", "k.tile:11:1");
    fails(two_shuffles, "non-convergent collective", "k.tile:12:1");
    fails(two_masks, "k.tile:11:1: non-convergent collective: thread", " with 4");
    fails(two_barriers, "k.tile:13:1", "k.tile:14:1");
    fails(shuffle_or_barrier, "shfl_idx", "barrier");
    fails(ends_before_barrier, "k.tile:13:1: non-convergent collective",
          "waits for threads that have ended");
    fails(ends_before_shuffle, "k.tile:13:1: non-convergent collective",
          "waits for threads that have ended");
    fails(waits_for_ever,
          "deadlock: nothing can run: thread 0 waits in barrier at k.tile:12:1; "
          "thread 10 waits in barrier at k.tile:13:1 (program 0)",
          "");
}

static void touches_outside(const uint64_t *params)
{
    uint32_t t = tl_emu_tid();
    uint32_t x = tl_emu_ldg_32(0, params[0] + 4 * WORDS, t == 3, 0, 0);
    tl_emu_stg_32(1, params[0] + 4 * (tl_emu_ctaid() * 64 + t), t < 32, 0, x + 5);
}

static void touches_askew(const uint64_t *params)
{
    tl_emu_ldg_64(3, params[0] + 4, tl_emu_tid() == 9, 0, 0);
}

static void touches_beyond_shared(const uint64_t *params)
{
    (void)params;
    tl_emu_sts_32(4, 4096, tl_emu_tid() == 9, 0);
}

static void asserts(const uint64_t *params)
{
    (void)params;
    tl_emu_fail(6, tl_emu_ctaid() == 1 && tl_emu_tid() == 5, TL_RUN_ASSERT, 2);
}

static void bad_memory(void)
{
    fails(touches_outside, "k.tile:10:1: out of bounds", "(program 0)");
    CHECK(memory[0] == 5 && memory[3] == 5); /* the load gave 0, the run went on */
    fails(touches_askew, "k.tile:13:1: misaligned access", "");
    fails(touches_beyond_shared, "k.tile:14:1: out of bounds", "");
    fails(asserts, "k.tile:16:1: assertion failed: went wrong (program 1)", "");
}

/* ---- schedules ---- */

static uint32_t log_of[256], nlog;

static void logs(const uint64_t *params)
{
    (void)params;
    log_of[nlog++ % 256] = tl_emu_tid();
    tl_emu_shfl_idx(0, 0, 0);
    log_of[nlog++ % 256] = tl_emu_tid();
}

static uint64_t logged(const char *schedule)
{
    uint64_t hash = 7;
    nlog = 0;
    CHECK_INT(run(logs, 128, 32, 1, schedule), TILE_OK);
    CHECK_INT(nlog, 256);
    for (uint32_t i = 0; i < nlog; i++)
        hash = hash * 1099511628211u + log_of[i];
    return hash;
}

static void schedules_differ(void)
{
    tl_emu_schedule s;
    CHECK(!tl_emu_schedule_parse("", &s) && !tl_emu_schedule_parse("random:", &s) &&
          !tl_emu_schedule_parse("random:1x", &s) && !tl_emu_schedule_parse("rrr", &s));
    uint64_t rr = logged("rr");
    for (uint32_t i = 0; i < 32; i++)
        CHECK_INT(log_of[i], i);
    CHECK_INT(log_of[32], 31); /* who came last goes on */
    CHECK_INT(log_of[33], 32);
    uint64_t reverse = logged("reverse");
    CHECK_INT(log_of[0], 127);
    CHECK_INT(log_of[31], 96);
    uint64_t ahead = logged("ahead");
    for (uint32_t i = 0; i < 64; i++) /* warp 0 has ended before warp 1 begins */
        CHECK(log_of[i] < 32);
    uint64_t one = logged("random:1"), two = logged("random:2");
    CHECK(one == logged("random:1"));
    CHECK(rr != reverse && rr != ahead && rr != one && one != two && ahead != one);
}

/* ---- waiting for other blocks ---- */

enum { ACQUIRE = 1, RELEASE = 2, DEVICE = 1 }; /* ir/enums.def */

static uint64_t atomically(uint64_t at, tl_atom op, uint32_t order, uint32_t value)
{
    return tl_emu_atom_32(7, at, 1, op, order, DEVICE, value, 0);
}

/* Each block waits for the one before it. */
static void chain(const uint64_t *params)
{
    uint32_t c = tl_emu_ctaid();
    if (tl_emu_tid() == 0) {
        while (c > 0 && atomically(params[0] + 4 * (c - 1), TL_ATOM_LOAD, ACQUIRE, 0) == 0) {
        }
        atomically(params[0] + 4 * c, TL_ATOM_STORE, RELEASE, 1);
    }
    tl_emu_barrier(0);
}

/* All blocks meet, three times: they must all be there at the same time. */
static void grid_barrier(const uint64_t *params)
{
    for (uint32_t round = 1; round <= 3; round++) {
        if (tl_emu_tid() == 0) {
            atomically(params[0], TL_ATOM_ADD, 3, 1);
            while (atomically(params[0], TL_ATOM_LOAD, ACQUIRE, 0) < 8 * round) {
            }
        }
        tl_emu_barrier(0);
    }
}

static void blocks_wait(void)
{
    for (int s = 0; s < SCHEDULES; s++) {
        memset(memory, 0, sizeof memory);
        CHECK_INT(run(chain, 64, 32, 100, schedules[s]), TILE_OK);
        CHECK_INT(memory[99], 1);
        memset(memory, 0, sizeof memory);
        CHECK_INT(run(grid_barrier, 64, 32, 8, schedules[s]), TILE_OK);
        CHECK_INT(memory[0], 24);
    }
}

/* ---- atomics, vectors, prints ---- */

static void each_atomic(const uint64_t *params)
{
    static const struct {
        tl_atom op;
        uint32_t start, value, expected, result;
    } rows[] = {
        {TL_ATOM_ADD, 5, 7, 0, 12},
        {TL_ATOM_MIN_S, 5, UINT32_MAX, 0, UINT32_MAX},
        {TL_ATOM_MIN_U, 5, UINT32_MAX, 0, 5},
        {TL_ATOM_MAX_S, 5, UINT32_MAX, 0, 5},
        {TL_ATOM_MAX_U, 5, UINT32_MAX, 0, UINT32_MAX},
        {TL_ATOM_AND, 12, 10, 0, 8},
        {TL_ATOM_OR, 12, 10, 0, 14},
        {TL_ATOM_XOR, 12, 10, 0, 6},
        {TL_ATOM_XCHG, 12, 10, 0, 10},
        {TL_ATOM_CAS, 12, 10, 12, 10},
        {TL_ATOM_CAS, 12, 10, 11, 12},
        {TL_ATOM_LOAD, 12, 10, 0, 12},
        {TL_ATOM_STORE, 12, 10, 0, 10},
        {TL_ATOM_FADD, 0x3f800000, 0x40000000, 0, 0x40400000}, /* 1 + 2 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memory[0] = rows[i].start;
        uint32_t old =
            tl_emu_atom_32(0, params[0], 1, rows[i].op, 0, DEVICE, rows[i].value, rows[i].expected);
        CHECK(rows[i].op == TL_ATOM_STORE || old == rows[i].start);
        CHECK_INT(memory[0], rows[i].result);
        uint64_t wide = rows[i].start;
        if (rows[i].op == TL_ATOM_FADD)
            continue;
        memcpy(memory, &wide, sizeof wide);
        /* of 64 bits, the all-ones word of 32 is large and positive */
        uint64_t value = rows[i].value == UINT32_MAX ? UINT64_MAX : rows[i].value;
        tl_emu_atom_64(0, params[0], 1, rows[i].op, 0, DEVICE, value, rows[i].expected);
        memcpy(&wide, memory, sizeof wide);
        CHECK(wide == (rows[i].result == UINT32_MAX ? UINT64_MAX : rows[i].result));
    }
    CHECK_INT(tl_emu_atom_32(0, params[0], 0, TL_ATOM_ADD, 0, DEVICE, 1, 0), 0);
    double one = 1, two;
    uint64_t bits;
    memcpy(memory, &one, sizeof one);
    memcpy(&bits, &one, sizeof bits);
    tl_emu_atom_64(0, params[0], 1, TL_ATOM_FADD, 0, DEVICE, bits, 0);
    memcpy(&two, memory, sizeof two);
    CHECK(two == 2);
}

static void vectors(const uint64_t *params)
{
    for (uint32_t i = 0; i < 8; i++)
        memory[i] = 100 + i;
    v4 four = tl_emu_ldg_128(0, params[0] + 16, 1, 0, 0);
    v2 two = tl_emu_ldg_64(0, params[0] + 8, 1, 0, 0);
    tl_emu_stg_128(1, params[0] + 64, 1, 0, four + four);
    tl_emu_stg_64(1, params[0] + 80, 1, 0, two + two);
    tl_emu_stg_8(1, params[0] + 89, 1, 0, 0x1ff & 0xff);
    CHECK_INT(tl_emu_ldg_8(0, params[0] + 89, 1, 0, 0), 0xff);
    CHECK_INT(memory[16], 208);
    CHECK_INT(memory[19], 214);
    CHECK_INT(memory[20], 204);
    CHECK_INT(memory[21], 206);
    CHECK_INT(tl_emu_ldg_32(0, params[0], 0, 0, 7), 7); /* predicated off */
}

/* Two prints of 4 x 2 elements in a loop; thread t has elements t and t + 4 of the first 4
 * lanes. */
static void prints(const uint64_t *params)
{
    uint32_t t = tl_emu_tid();
    (void)params;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t reg = 0; reg < 2; reg++)
            tl_emu_print(2, t < 4, 0, TILE_I32, reg, t + 4 * reg, 10 * round + t + 4 * reg);
        tl_emu_print(3, t == 9, 2, TILE_F32, 0, 0, 0x3f000000);
    }
}

static void prints_incomplete(const uint64_t *params)
{
    (void)params;
    tl_emu_print(2, tl_emu_tid() < 7, 0, TILE_I32, 0, tl_emu_tid(), 0);
}

static void what_kernels_say(void)
{
    CHECK_INT(run(each_atomic, 1, 1, 1, "rr"), TILE_OK);
    CHECK_INT(run(vectors, 1, 1, 1, "rr"), TILE_OK);
    for (int s = 0; s < SCHEDULES; s++) {
        CHECK_INT(run(prints, 64, 32, 2, schedules[s]), TILE_OK);
        const char *once = "value = [[0, 1], [2, 3], [4, 5], [6, 7]]\nwent wrong = 0.5\n"
                           "value = [[10, 11], [12, 13], [14, 15], [16, 17]]\nwent wrong = 0.5\n";
        CHECK(strlen(said) == 2 * strlen(once) && strncmp(said, once, strlen(once)) == 0);
        CHECK_STR(said + strlen(once), once);
    }
    fails(prints_incomplete, "print: 7 of 8 elements", "");
}

static void all_of_it(int threads)
{
    if (!CHECK(tl_pool_create(threads, NULL, &pool) == TILE_OK &&
               tl_emu_crew_open(pool, &crew) == TILE_OK))
        return;
    collectives();
    clusters();
    registers();
    broken_rules();
    bad_memory();
    blocks_wait();
    what_kernels_say();
    if (threads == 1)
        schedules_differ();
    tl_emu_crew_close(&crew);
    tl_pool_free(pool);
}

int main(void)
{
    fibers_keep_what_they_hold();
    stacks_are_guarded();
    make_image();
    all_of_it(1);
    all_of_it(3);
    return unit_result();
}
