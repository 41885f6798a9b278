/* What stands behind tilec explain: occupancy, bank conflicts, what the targets' tools say, and the
 * report as data. */
#define TILE_UNSTABLE
#include "codegen/report/explain.h"
#include "codegen/target/notes.h"
#include "codegen/report/occupancy.h"
#include "codegen/report/usage.h"
#include "ir/plan/banks.h"
#include "test/unit/unit.h"
#include <stdlib.h>

/* ---- occupancy ---- */

static void check_occupancy(const char *target, uint32_t warps, int registers, uint32_t shared,
                            int blocks, TlLimit limit)
{
    TlOccupancy o;
    if (!CHECK(tl_occupancy(tl_target_find(target, NULL), warps, registers, shared, &o)))
        return;
    CHECK_INT(o.blocks, blocks);
    CHECK_INT(o.by[limit], blocks);
    CHECK_INT(o.warps, blocks * (int)warps);
}

/* By hand from the rows of gpu.def. */
static void check_occupancies(void)
{
    check_occupancy("sm_80", 4, 32, 0, 16, TL_LIMIT_WARPS); /* 64 warps / 4 */
    check_occupancy("sm_80", 1, 32, 0, 32, TL_LIMIT_BLOCKS);
    check_occupancy("sm_80", 4, 129, 0, 3, TL_LIMIT_REGISTERS); /* 512 / 136 = 3 of 4 schedulers */
    check_occupancy("sm_80", 4, 128, 0, 4, TL_LIMIT_REGISTERS);
    check_occupancy("sm_80", 4, 32, 54 * 1024, 2,
                    TL_LIMIT_SHARED); /* 55 KiB of 164 with the reserved one */
    check_occupancy("sm_80", 4, 32, 163 * 1024, 1, TL_LIMIT_SHARED);
    check_occupancy("sm_89", 4, 32, 0, 12, TL_LIMIT_WARPS);
    check_occupancy("sm_75", 4, 32, 0, 8, TL_LIMIT_WARPS);
    check_occupancy("sm_75", 1, 32, 0, 16, TL_LIMIT_BLOCKS);
    check_occupancy("sm_75", 4, 32, 32 * 1024, 2, TL_LIMIT_SHARED); /* none is reserved */
    check_occupancy("sm_86", 2, 32, 0, 16, TL_LIMIT_BLOCKS);
    check_occupancy("sm_120", 1, 32, 0, 24, TL_LIMIT_BLOCKS);
    check_occupancy("sm_100", 4, 32, 113 * 1024, 2, TL_LIMIT_SHARED);
    check_occupancy("gfx906", 4, 65, 0, 3, TL_LIMIT_REGISTERS); /* 256 / 68 */
    check_occupancy("gfx1030", 4, 97, 0, 9, TL_LIMIT_REGISTERS); /* 1024 / 112 */
    check_occupancy("sm_90a", 8, 168, 227 * 1024, 1, TL_LIMIT_SHARED);
    check_occupancy("gfx942", 4, 128, 0, 4, TL_LIMIT_REGISTERS); /* 512 / 128 waves of each SIMD */
    check_occupancy("gfx942", 1, 64, 0, 32, TL_LIMIT_WARPS);
    check_occupancy("gfx942", 2, 8, 0, 16, TL_LIMIT_BLOCKS);
    check_occupancy("gfx942", 4, 8, 33 * 1024, 1, TL_LIMIT_SHARED);
    check_occupancy("gfx1100", 4, 97, 0, 12, TL_LIMIT_REGISTERS); /* 1536 / 120 */
    check_occupancy("gfx1100", 4, -1, 64 * 1024, 2,
                    TL_LIMIT_SHARED); /* 128 KiB of the work-group processor */
    TlOccupancy o;
    CHECK(!tl_occupancy(tl_target_find("cpu", NULL), 4, 1, 0, &o));
    for (const char *const *t = tl_target_names(); *t; t++)
        if (tl_target_is_gpu(tl_target_find(*t, NULL)))
            CHECK(tl_occupancy(tl_target_find(*t, NULL), 4, 64, 1024, &o));
}

/* ---- roofs ---- */

/* Each GPU has a rate for what can limit a kernel, so that the same kernel has the same roofs. */
static void check_rates(void)
{
    size_t n;
    const tl_gpu *gpus = tl_gpus(&n);
    for (size_t i = 0; i < n; i++) {
        const tl_gpu *g = &gpus[i];
        unsigned lanes = (unsigned)g->lanes;
        CHECK(g->sms > 0 && g->ghz > 0 && g->memory > 0 && g->cache > 0 && g->fma > 0);
        CHECK(g->wavefronts > 0 && g->mma_share > 0 && g->mma_share <= 1);
        CHECK((*g->matrix != 0) == (g->matrix16 > 0));
        CHECK(tl_roof_of_instruction(g, TL_ROOF_SPECIAL, lanes) > 0);
        CHECK(tl_roof_of_instruction(g, tl_roof_of_issue(g), lanes) > 0);
        CHECK((g->shuffle > 0) == (g->vector == 0));
        CHECK((g->capability > 0) == (g->driver > 0));
        CHECK(g->shared_bytes <= (uint32_t)(g->all_shared - g->shared_reserved));
    }
    /* f32 add and multiply, 64 lanes of 128; sm_89 has as many as are issued */
    CHECK(tl_roof_of_instruction(tl_gpu_find("sm_80"), TL_ROOF_FLOAT, 32) == 0.5);
    CHECK(tl_roof_of_instruction(tl_gpu_find("sm_89"), TL_ROOF_FLOAT, 32) == 0);
    CHECK(!tl_gpu_find("sm_89a") && !tl_gpu_find("cpu"));
}

static int64_t extent_1000(const void *user, const char *param, uint32_t axis)
{
    return *(const bool *)user && strcmp(param, "x") == 0 && axis == 1 ? 1000 : -1;
}

static bool near_to(double a, double b)
{
    return a > b * 0.999999 && a < b * 1.000001;
}

/* A block reads 4096 bytes in each of ceil((1000 - 100) / 200) trips, and waits for them. By hand,
 * for sm_80: 108 multiprocessors, 1.41 GHz; a trip's bytes come from the second cache. */
static void check_launch_time(void)
{
    const tl_gpu *g = tl_gpu_find("sm_80");
    tilec_report_access access = {.param = "x", .bytes = 4096, .loop = 0, .share = 100};
    tilec_report_loop loop = {.trips = -1, .outer = -1, .param = "x", .axis = 1, .less = 100,
                              .step = 200, .each = {.bytes = 4096}};
    tilec_report_exchange dot = {.macs = 1, .share = 100, .loop = 0}; /* x is read by others, too */
    tilec_report_kernel k = {.warps = 4, .lanes = 32, .blocks = 2, .accesses = &access,
                             .loops = &loop, .exchanges = &dot, .naccesses = 1, .nloops = 1,
                             .nexchanges = 1, .main_loop = 0, .unrolled = 1, .assumed_trips = 32};
    tilec_report r = {.target = "sm_80", .kernels = &k, .nkernels = 1};
    bool known = true;
    tilec_report_launch launch = {5 * g->sms, 1e6, extent_1000, &known};
    double trip = 4096 / g->cache, exposed = (600 + trip) / 2 - trip, us = g->ghz * 1e3;
    double arrays = 1e6 / (g->memory * g->sms);
    double busy = 5 * 5 * trip > arrays ? 5 * 5 * trip : arrays;
    CHECK(near_to(tilec_report_time(&r, &k, &launch), (busy + 5 * 5 * exposed) / us));
    known = false; /* 32 trips are assumed */
    busy = 5 * 32 * trip;
    CHECK(near_to(tilec_report_time(&r, &k, &launch), (busy + 5 * 32 * exposed) / us));
    launch.programs = 1; /* the block has the multiprocessor for itself */
    CHECK(near_to(tilec_report_time(&r, &k, &launch), 32 * (trip + 600) / us));
    launch.bytes = 1e9; /* memory is the highest roof, and latencies remain */
    CHECK(near_to(tilec_report_time(&r, &k, &launch), (1000 * arrays + 32 * 600) / us));
    r.target = "cpu";
    CHECK(tilec_report_time(&r, &k, &launch) < 0);
}

/* ---- banks ---- */

/* Lane i goes to i * stride. */
static void check_banks(uint32_t stride, uint32_t bytes, int lanes, uint64_t wavefronts,
                        uint64_t least)
{
    uint32_t at[64];
    for (int i = 0; i < lanes; i++)
        at[i] = (uint32_t)i * stride;
    TlBanks b = tl_banks_count(at, lanes, ~(uint64_t)0, bytes);
    CHECK_INT(b.wavefronts, wavefronts);
    CHECK_INT(b.least, least);
}

static void check_all_banks(void)
{
    check_banks(4, 4, 32, 1, 1);
    check_banks(0, 4, 32, 1, 1);     /* one word for all */
    check_banks(2, 2, 32, 1, 1);     /* two lanes in a word */
    check_banks(8, 4, 32, 2, 1);     /* every other bank */
    check_banks(128, 4, 32, 32, 1);  /* one bank */
    check_banks(132, 4, 32, 1, 1);   /* a row and a word */
    check_banks(8, 8, 32, 2, 2);     /* halves of a warp */
    check_banks(16, 16, 32, 4, 4);   /* quarters */
    check_banks(128, 16, 32, 32, 4); /* eight rows in four banks */
    check_banks(4, 4, 64, 2, 2);
    uint32_t at[32] = {0};
    CHECK_INT(tl_banks_count(at, 32, 0, 4).wavefronts, 0);
    CHECK_INT(tl_banks_count(at, 32, 0xffff0000u, 8).least, 1); /* the second half only */
    TlThreadMap map = {.lane = {4, 8, 16, 32, 1024}};
    TlBanks b = tl_banks_of_map(&map, 1, 5, 0, 4);
    CHECK(b.wavefronts == 2 && b.least == 1); /* lanes 16 and up are in the banks of the others */
    b = tl_banks_of_map(&map, 1, 5, 16, 4);
    CHECK(b.wavefronts == 1 && b.least == 1); /* and stay away */
}

/* ---- tools ---- */

static void check_ptxas(void)
{
    static const char WORDS[] =
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'k_10' for 'sm_80'\n"
        "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 1 barriers, 8 bytes cumulative stack size\n"
        "ptxas info    : Compiling entry function 'k_1' for 'sm_80'\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 9 registers, 400 bytes cmem[0]\n";
    TlUsage u;
    CHECK(tl_usage_of_ptxas(WORDS, "k_10", &u));
    CHECK(u.registers == 255 && u.spilled == 8 && u.reloaded == 12 && u.private_bytes == 16);
    CHECK(tl_usage_of_ptxas(WORDS, "k_1", &u));
    CHECK(u.registers == 9 && u.spilled == 0 && u.reloaded == 0 && u.private_bytes == 0);
    CHECK(!tl_usage_of_ptxas(WORDS, "k", &u) && !tl_usage_of_ptxas("", "k_1", &u));
}

static const char SOURCE[] = "kernel add(const f32 x[N], f32 y[N]) grid(cdiv(N, 512))\n"
                             "{\n"
                             "    int i = pid(0) * 512;\n"
                             "    y[i +: 512] = x[i +: 512] + sum(x[i +: 512]);\n"
                             "}\n";

static tilec_output *compile(const char *target, const char *emit, int report)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *out = NULL;
    o.target = target;
    o.emit = emit;
    o.report = report;
    CHECK(tilec_compile_source("add.tile", SOURCE, strlen(SOURCE), &o, &out) == TILEC_OK);
    return out;
}

/* Assembly says the same, by kernel, in any order of kernels. */
static void check_notes_text(void)
{
    static const char TEXT[] = "; .vgpr_spill_count: 9\n"
                               "amdhsa.kernels:\n"
                               "  - .args:\n      - .name: k_1.kd\n"
                               "    .symbol:         k_10.kd\n"
                               "    .vgpr_count:     12\n"
                               "    .vgpr_spill_count: 70000\n"
                               "  - .agpr_count:     0\n"
                               "    .symbol:         'k_1.kd'\n"
                               "    .vgpr_spill_count: 3\n";
    CHECK_INT(tl_notes_in_text(TEXT, "k_10", ".vgpr_spill_count"), 70000);
    CHECK_INT(tl_notes_in_text(TEXT, "k_1", ".vgpr_spill_count"), 3);
    CHECK_INT(tl_notes_in_text(TEXT, "k_1", ".vgpr_count"), -1);
    CHECK_INT(tl_notes_in_text(TEXT, "k", ".vgpr_spill_count"), -1);
    CHECK_INT(tl_notes_in_text("", "k", ".vgpr_spill_count"), -1);
    size_t size;
    TlNotes notes;
    tilec_output *text = compile("gfx942", "asm", 0), *code = compile("gfx942", "hsaco", 0);
    const char *asm_ = tilec_output_data(text, &size);
    int registers = tl_notes_in_text(asm_, "add_0", ".vgpr_count");
    const char *object = tilec_output_data(code, &size);
    CHECK(tl_notes_of_object(object, size, "add_0", &notes) && notes.registers == registers);
    CHECK(registers > 0);
    tilec_output_free(text);
    tilec_output_free(code);
}

/* Notes that end early or are damaged give no facts, and nothing worse. */
static void check_hsaco(void)
{
    TlUsage u;
    size_t size;
    tilec_output *out = compile("gfx942", "hsaco", 0);
    const char *code = tilec_output_data(out, &size);
    CHECK(tl_usage_of_hsaco(code, size, "add_0", &u));
    CHECK(u.registers > 0 && u.scalars > 0 && u.spilled == 0 && u.private_bytes == 0);
    CHECK(!tl_usage_of_hsaco(code, size, "add", &u));
    for (size_t n = 0; n < size; n += 7) {
        char *less = malloc(n + 1); /* a block of its own, so that a sanitizer sees the end */
        memcpy(less, code, n);
        CHECK(!tl_usage_of_hsaco(less, n, "add_0", &u) || u.registers > 0);
        free(less);
    }
    char *bad = malloc(size);
    for (size_t i = 0; i < size && i < 4096; i++) {
        memcpy(bad, code, size);
        bad[i] = (char)(bad[i] ^ 0xff);
        tl_usage_of_hsaco(bad, size, "add_0", &u);
    }
    free(bad);
    tilec_output_free(out);
}

/* ---- the report ---- */

static void check_report(void)
{
    tilec_output *out = compile("gfx942", "image", 1);
    const tilec_report *r = tilec_output_report(out);
    if (!CHECK(r != NULL))
        return;
    CHECK_STR(r->target, "gfx942");
    CHECK_INT(r->nkernels, 2);
    const tilec_report_kernel *k = &r->kernels[0];
    CHECK_STR(k->name, "add");
    CHECK_STR(k->variant, "aligned");
    CHECK_STR(r->kernels[1].variant, "general");
    CHECK_STR(r->kernels[1].condition, "");
    CHECK(k->threads == 256 && k->lanes == 64 && k->warps == 4 && k->registers > 0);
    CHECK_INT(k->naccesses, 2);
    CHECK_STR(k->accesses[0].position.file, "add.tile");
    CHECK_STR(k->accesses[0].position.text, "    y[i +: 512] = x[i +: 512] + sum(x[i +: 512]);");
    CHECK(k->accesses[0].position.line == 4 && k->accesses[0].bytes == 2048);
    CHECK_INT(k->accesses[0].nmasks, 1);
    CHECK_STR(k->accesses[0].masks[0].what, "axis 0 (N)");
    CHECK_INT(k->nexchanges, 1);
    CHECK_STR(k->exchanges[0].op, "reduce");
    CHECK(k->exchanges[0].barriers == 1 && k->exchanges[0].wavefronts == k->exchanges[0].least);
    CHECK(k->nbuffers == 1 && k->buffers[0].bytes == k->shared_bytes && k->nloops == 0);
    tilec_output_free(out);
    out = compile("gfx942", "image", 0);
    CHECK(tilec_output_report(out) == NULL);
    tilec_output_free(out);
    out = compile("cpu", "image", 1);
    CHECK(tilec_output_report(out) == NULL && tilec_output_report(NULL) == NULL);
    tilec_output_free(out);
}

int main(void)
{
    check_occupancies();
    check_rates();
    check_launch_time();
    check_all_banks();
    check_ptxas();
    check_notes_text();
    check_hsaco();
    check_report();
    return unit_result();
}
