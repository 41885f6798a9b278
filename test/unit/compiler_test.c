/* The compiler as a library (tilec.h). */
#define TILE_UNSTABLE
#include "codegen/include/tilec.h"
#include <stdio.h>
#include <string.h>
#include "runtime/include/tile.h"
#include "runtime/contract/tile_image.h"
#include "test/unit/unit.h"

static const char KERNEL[] = "kernel k(f32 x[N]) { x[0 +: 32] = 1; }";

/* The text is `size` bytes: what follows in memory is not read. */
static void text_needs_no_end_mark(void)
{
    char text[sizeof KERNEL + 8];
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *out;
    memset(text, ')', sizeof text);
    memcpy(text, KERNEL, sizeof KERNEL - 1);
    CHECK(tilec_compile_source("k.tile", text, sizeof KERNEL - 1, &o, &out) == TILEC_OK);
    tilec_output_free(out);
}

static bool same_code(const tilec_options *a, const tilec_options *b)
{
    tilec_output *x, *y;
    size_t n, m;
    CHECK(tilec_compile_source("k.tile", KERNEL, sizeof KERNEL - 1, a, &x) == TILEC_OK);
    CHECK(tilec_compile_source("k.tile", KERNEL, sizeof KERNEL - 1, b, &y) == TILEC_OK);
    const void *p = tilec_output_data(x, &n), *q = tilec_output_data(y, &m);
    bool same = p && q && n == m && memcmp(p, q, n) == 0;
    tilec_output_free(x);
    tilec_output_free(y);
    return same;
}

/* 0 is the default of every member, and what 0 would say is TILEC_NONE. */
static void zeros_are_defaults(void)
{
    const tilec_options init = TILEC_OPTIONS_INIT,
                        zero = {.struct_size = sizeof zero},
                        all = {.struct_size = sizeof all, .target = "cpu", .emit = "image",
                               .opt_level = 3, .fp = "default", .diagnostics = "text",
                               .bisect = -1},
                        text = {.struct_size = sizeof text, .emit = "asm"},
                        plain = {.struct_size = sizeof plain, .emit = "asm",
                                 .opt_level = TILEC_NONE},
                        passes = {.struct_size = sizeof passes, .target = "sm_80",
                                  .emit = "laidout"},
                        none = {.struct_size = sizeof none, .target = "sm_80",
                                .emit = "laidout", .bisect = TILEC_NONE};
    CHECK(same_code(&init, &zero) && same_code(&zero, &all) && same_code(&zero, NULL));
    CHECK(!same_code(&text, &plain) && !same_code(&passes, &none));
}

/* Every kind of target gives an image that says which it is for. */
static void images_name_their_target(void)
{
    static const char *const TARGETS[] = {"cpu", "ref", "sm_80", "gfx942", "emu:sm_80"};
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++) {
        tilec_options o = TILEC_OPTIONS_INIT;
        tilec_output *out;
        size_t size;
        o.target = TARGETS[i];
        CHECK(tilec_compile_source("k.tile", KERNEL, sizeof KERNEL - 1, &o, &out) == TILEC_OK);
        const char *image = tilec_output_data(out, &size);
        const tile_image_header *h = (const void *)image;
        CHECK(image && !strcmp(image + h->target, TARGETS[i]));
        const tile_image_kernel *k = (const void *)(image + h->kernels);
        if (!strcmp(TARGETS[i], "sm_80"))
            CHECK(k->threads == 128 && !image[k->code + k->ncode - 1] &&
                  strstr(image + k->code, image + k->symbol));
        tilec_output_free(out);
    }
}

static tile_status load(const char *device, const void *image, size_t size)
{
    tile_device *d;
    tile_module *m = NULL;
    CHECK_INT(tile_device_open(device, &d), TILE_OK);
    tile_status status = tile_module_load_image(d, image, size, &m);
    tile_module_free(m);
    tile_device_close(d);
    return status;
}

/* A list of targets: each device finds its own image; a device without one is told of the first. */
static void several_targets_in_one_image(void)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *out;
    size_t size;
    o.target = "sm_80,ref,cpu";
    CHECK_INT(tilec_compile_source("k.tile", KERNEL, sizeof KERNEL - 1, &o, &out), TILEC_OK);
    const void *image = tilec_output_data(out, &size);
    CHECK_INT(load("cpu", image, size), TILE_OK);
    CHECK_INT(load("ref", image, size), TILE_OK);
    CHECK_INT(load("emu:gfx942", image, size), TILE_BAD_IMAGE);
    CHECK(strstr(tile_last_error(), "made for target 'sm_80', the device needs 'emu:gfx942'") !=
          NULL);
    CHECK_INT(load("cpu", image, size - 64), TILE_BAD_IMAGE); /* the last one is cut off */
    tilec_output_free(out);
    o.target = "sm_80,nothing";
    CHECK_INT(tilec_compile_source("k.tile", KERNEL, sizeof KERNEL - 1, &o, &out), TILEC_USAGE);
    CHECK(strstr(tilec_output_message(out), "'nothing'") != NULL);
    tilec_output_free(out);
}

/* ---- constants and kernels that are left out ---- */

static const char TWO[] =
    "kernel fine(f32 x[N], const int BT = 16) grid(1) require(N <= BT) { x[0 +: BT] = 1; }\n"
    "kernel other(f32 x[N], const int B) grid(1) require(N <= B) { x[0 +: B] = 2; }\n";

typedef struct Said {
    char text[4096];
    int calls;
} Said;

static void take(void *user, const char *rendered)
{
    Said *s = user;
    s->calls++;
    snprintf(s->text, sizeof s->text, "%s", rendered);
}

/* The status of compiling TWO for ref; *out_kernels: how many the image has, *said: the
 * diagnostics, then the output's message. */
static tilec_status compile_two(const tilec_const *consts, size_t n, const char *const *warnings,
                                size_t nwarnings, unsigned *out_kernels, Said *said)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *out;
    memset(said, 0, sizeof *said);
    o.target = "ref";
    o.consts = consts, o.nconsts = n;
    o.warnings = warnings, o.nwarnings = nwarnings;
    o.diagnostic = take, o.user = said;
    tilec_status status = tilec_compile_source("two.tile", TWO, sizeof TWO - 1, &o, &out);
    const tile_image_header *h = tilec_output_data(out, NULL);
    *out_kernels = h ? h->nkernels : 0;
    size_t used = strlen(said->text);
    snprintf(said->text + used, sizeof said->text - used, "%s", tilec_output_message(out));
    tilec_output_free(out);
    return status;
}

static void constants_find_their_kernels(void)
{
    const tilec_const plain = {"B", "16"}, one = {"other.B", "16"}, unknown = {"C", "1"},
                      elsewhere = {"fine.B", "16"}, nobody = {"none.B", "16"}, bad = {"B", "x"};
    unsigned kernels;
    Said said;
    CHECK(compile_two(&plain, 1, NULL, 0, &kernels, &said) == TILEC_OK);
    CHECK(kernels == 2 && !said.calls);
    CHECK(compile_two(&one, 1, NULL, 0, &kernels, &said) == TILEC_OK);
    CHECK(kernels == 2 && !said.calls);
    CHECK(compile_two(&unknown, 1, NULL, 0, &kernels, &said) == TILEC_USAGE);
    CHECK(strstr(said.text, "'C'; the constants are: fine: BT; other: B"));
    CHECK(compile_two(&elsewhere, 1, NULL, 0, &kernels, &said) == TILEC_USAGE);
    CHECK(compile_two(&nobody, 1, NULL, 0, &kernels, &said) == TILEC_USAGE);
    CHECK(compile_two(&bad, 1, NULL, 0, &kernels, &said) == TILEC_USAGE);
    CHECK(strstr(said.text, "'other'"));
}

static void kernels_without_values_are_left_out(void)
{
    static const char *const OFF[] = {"no-left-out"}, *const ERROR[] = {"error=left-out"},
                             *const UNKNOWN[] = {"no-such"};
    unsigned kernels;
    Said said;
    CHECK(compile_two(NULL, 0, NULL, 0, &kernels, &said) == TILEC_OK && kernels == 1);
    CHECK(said.calls == 1 && strstr(said.text, "two.tile:2:8: warning[left-out]: kernel 'other'"));
    CHECK(compile_two(NULL, 0, OFF, 1, &kernels, &said) == TILEC_OK && kernels == 1 && !said.calls);
    CHECK(compile_two(NULL, 0, ERROR, 1, &kernels, &said) == TILEC_ERRORS && !kernels);
    CHECK(strstr(said.text, "error[left-out]"));
    CHECK(compile_two(NULL, 0, UNKNOWN, 1, &kernels, &said) == TILEC_USAGE);
}

/* ---- which kernels' programs may start in any order ---- */

static const char ORDERS[] =
    "kernel adds(i32 x[N]) grid(4) { atomic_add(x[0], 1); atomic_store(x[1], 2); }\n"
    "kernel takes(i32 x[N]) grid(4) { x[1] = atomic_add(x[0], 1); }\n"
    "kernel spins(i32 x[N]) grid(4) {\n"
    "  if (pid(0) > 0) { while (atomic_load(x[0], order = acquire) < pid(0)) {} }\n"
    "  atomic_add(x[0], 1, order = release);\n"
    "}\n"
    "kernel plain(i32 x[N]) grid(4) { x[pid(0)] = x[pid(0) + 4]; }\n";

static void kernels_that_wait_are_in_order(void)
{
    static const bool any_order[] = {true, false, false, true};
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *out;
    o.target = "cpu";
    if (CHECK_INT(tilec_compile_source("o.tile", ORDERS, sizeof ORDERS - 1, &o, &out), TILEC_OK)) {
        const tile_image_header *h = tilec_output_data(out, NULL);
        const tile_image_kernel *k = (const void *)((const char *)h + h->kernels);
        CHECK_INT(h->nkernels, 4);
        for (uint32_t i = 0; i < h->nkernels && i < 4; i++)
            CHECK_INT((k[i].flags & TILE_KERNEL_ANY_ORDER) != 0, any_order[i]);
    }
    tilec_output_free(out);
}

/* A device whose own code this LLVM cannot make has its generation's, if that can be made. */
static void devices_run_generic_code(void)
{
    bool old = strstr(tilec_version(), "LLVM 19") != NULL;
    static const char *const SAME[] = {"gfx1152",     "gfx942",   "gfx11-generic", "sm_80",
                                       "emu:gfx1153", "cpu",      "ref",           "gfx1250",
                                       "gfx950",      "nonesuch", "cpu:x86-64-v3"};
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++)
        CHECK(!strcmp(tilec_device_target(SAME[i]), SAME[i]));
    CHECK(!strcmp(tilec_device_target("gfx1153"), old ? "gfx11-generic" : "gfx1153"));
}

int main(void)
{
    devices_run_generic_code();
    zeros_are_defaults();
    kernels_that_wait_are_in_order();
    several_targets_in_one_image();
    text_needs_no_end_mark();
    images_name_their_target();
    constants_find_their_kernels();
    kernels_without_values_are_left_out();
    return unit_result();
}
