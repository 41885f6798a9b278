/* Forms of kernels: their texts (ir/form.h), and which of them launches ask a maker for
 * (runtime/forms.c). */
#define TILE_UNSTABLE
#include "ir/form.h"
#include "codegen/include/tilec.h"
#include "ir/ir.h"
#include "runtime/runtime.h"
#include "test/unit/unit.h"
#include <stdlib.h>

#define OK(call) CHECK_INT(call, TILE_OK)

/* ---- texts ---- */

static const char kernel_text[] =
    "files \"f.tile\"\n"
    "kernel @k(%%A: view<const f16, 2>, %%p: ptr<f32>) @1:8 info {\n"
    "    param \"A\" view const f16 [sym 0 : sym 2, sym 1 : const 1] @1:21\n"
    "    param \"p\" pointer f32 @1:38\n"
    "    sym \"M\" extent 0, 0\n    sym \"K\" extent 0, 1\n    sym \"lda\" stride 0, 0\n"
    "    aligned%s\n  } {\n  return @2:1\n}\n";

/* What is printed of a kernel whose info says `aligned` with this behind it. */
static void form_is(const char *said, const char *want)
{
    TlCtx ctx;
    char text[2048];
    snprintf(text, sizeof text, kernel_text, said);
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlModule *m = tl_parse_module(&ctx, tl_diags_source(&ctx.diags, "f.tir", text, strlen(text)));
    if (CHECK(m))
        CHECK_STR(tl_form_text(m->fns.data[0]->info, &m->arena), want);
    tl_ctx_free(&ctx);
}

static void texts(void)
{
    form_is("", "aligned");
    form_is(" \"A=16,A.extent.1=8,A.stride.0=8,p=16,near,grid\"", "aligned");
    form_is(" \"p=4,A.stride.0=2,near\"", "A.stride.0=2,p=4,near");
    form_is(" \"A=64,A.extent.1=1024\"", "A=16,A.extent.1=8"); /* not more than `aligned` */
    form_is(" \"A.extent.0=8,B=16,A=16\"", "A=16");            /* others are passed over */
    form_is(" \"A=1\"", "general");
}

static void well_formed(void)
{
    static const char *const good[] = {"A=16", "A.extent.1=8,near", "grid", "near,grid,x=1",
                                       "near,grid,pairs"};
    static const char *const bad[] = {"", ",", "A", "A=", "A=3", "A=0", "A=16,", "A.extent=8",
                                      "A.extent.9=8", "A.width.0=8", "A=16;B=16", "=16",
                                      "near=x", "A.extent.1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!CHECK(tl_promise_is_well_formed(good[i])))
            fprintf(stderr, "    %s\n", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!CHECK(!tl_promise_is_well_formed(bad[i])))
            fprintf(stderr, "    %s\n", bad[i]);
    CHECK(tl_forms_are_well_formed("aligned;A=16;general"));
    CHECK(!tl_forms_are_well_formed("aligned;general;"));
    CHECK(!tl_forms_are_well_formed("aligned;A=2;A=4;A=8;general"));
}

/* ---- launches ---- */

static const char source[] =
    "kernel twice(const f32 x[R : ld, C], f32 y[R, C], const int B = 16)\n"
    "    grid(cdiv(C, B), cdiv(R, 4))\n"
    "{\n"
    "    int r = pid(1) * 4, c = pid(0) * B;\n"
    "    y[r +: 4, c +: B] = 2 * x[r +: 4, c +: B];\n"
    "}\n";

typedef struct Log {
    char forms[16][128];
    int n;
} Log;

static tile_status make(void *user, const char *name, const tile_const *consts, const char *form,
                        void **out_data, size_t *out_size)
{
    Log *log = user;
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *output = NULL;
    (void)consts;
    snprintf(log->forms[log->n++ % 16], 128, "%s", form);
    o.target = "emu:sm_80";
    o.kernel = name;
    o.forms = form;
    o.cache = "off";
    tilec_status status = tilec_compile_source("f.tile", source, sizeof source - 1, &o, &output);
    const void *data = tilec_output_data(output, out_size);
    *out_data = data ? malloc(*out_size) : NULL;
    if (*out_data)
        memcpy(*out_data, data, *out_size);
    else
        tl_fail(TILE_COMPILE, "%s", tilec_output_message(output));
    tilec_output_free(output);
    return status == TILEC_OK && *out_data ? TILE_OK : TILE_COMPILE;
}

typedef struct Fixture {
    Log log;
    tile_device *device;
    tile_module *module;
    tile_kernel *kernel;
} Fixture;

static void begin_kernel(Fixture *f)
{
    memset(f, 0, sizeof *f);
    OK(tile_device_open("emu:sm_80", &f->device));
    OK(tl_module_create_maker(f->device, (tl_maker){&f->log, make, NULL}, &f->module));
    OK(tile_kernel_get(f->module, "twice", NULL, &f->kernel));
}

static void end(Fixture *f)
{
    tile_module_free(f->module);
    tile_device_close(f->device);
}

enum { ROOM = 4096 };
static _Alignas(64) float x[ROOM], y[ROOM];

/* x is `shift` elements behind an aligned address. */
static void arguments(tile_arg args[2], int64_t rows, int64_t columns, int64_t ld, int shift)
{
    args[0] = tile_view_strided((const float *)x + shift, 2, ((int64_t[]){rows, columns}),
                                ((int64_t[]){ld, 1}));
    args[1] = tile_view(y, rows, columns);
}

static void twice(Fixture *f, int64_t rows, int64_t columns, int64_t ld, int shift,
                  const int64_t *grid)
{
    tile_arg args[2];
    int wrong = 0;
    for (int i = 0; i < ROOM; i++)
        x[i] = (float)i, y[i] = -1;
    arguments(args, rows, columns, ld, shift);
    OK(grid ? tile_launch_grid(f->kernel, NULL, args, 2, grid, 2)
            : tile_launch(f->kernel, NULL, args, 2));
    OK(tile_device_synchronize(f->device));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            wrong += y[r * columns + c] != (float)(2 * (r * ld + c + shift));
    CHECK_INT(wrong, 0);
}

static void made(const Fixture *f, int n, const char *last)
{
    CHECK_INT(f->log.n, n);
    CHECK_STR(f->log.forms[f->log.n - 1], last);
}

static void each_when_first_asked_for(void)
{
    static const char halves[] = "x=8,x.extent.1=4,x.stride.0=4,y=16,y.extent.1=4,near,grid";
    static const char pairs[] = "x=16,x.extent.1=2,x.stride.0=4,y=16,y.extent.1=2,near,grid";
    Fixture f;
    begin_kernel(&f);
    made(&f, 1, "aligned");
    twice(&f, 5, 32, 32, 0, NULL);
    made(&f, 1, "aligned");
    twice(&f, 5, 32, 32, 2, NULL); /* begins at a multiple of 8 bytes */
    made(&f, 2, halves);
    twice(&f, 3, 28, 36, 2, NULL);
    made(&f, 2, halves);
    twice(&f, 3, 26, 36, 0, NULL);
    made(&f, 3, pairs);
    twice(&f, 3, 30, 32, 0, NULL);
    made(&f, 3, pairs);
    twice(&f, 3, 27, 27, 1, NULL); /* the third wish: the general form */
    made(&f, 4, "general");
    twice(&f, 3, 25, 27, 1, NULL);
    twice(&f, 5, 32, 64, 2, NULL); /* what there is goes on to be used */
    twice(&f, 1, 1, 1, 3, NULL);
    twice(&f, 0, 0, 1, 3, NULL);
    made(&f, 4, "general");
    end(&f);
}

/* A form that turns out to need less serves more launches. */
static void a_form_that_needs_little(void)
{
    Fixture f;
    begin_kernel(&f);
    twice(&f, 5, 31, 32, 0, NULL); /* rows begin well, but end anywhere: element by element */
    made(&f, 2, "x=16,x.stride.0=4,y=16,near,grid");
    twice(&f, 5, 32, 32, 2, NULL);
    made(&f, 3, "x=8,x.extent.1=4,x.stride.0=4,y=16,y.extent.1=4,near,grid");
    twice(&f, 5, 27, 27, 1, NULL);
    made(&f, 3, "x=8,x.extent.1=4,x.stride.0=4,y=16,y.extent.1=4,near,grid");
    end(&f);
}

/* A launch's own grid is no promise of the clause's. */
static void own_grid(void)
{
    Fixture f;
    begin_kernel(&f);
    twice(&f, 8, 32, 32, 0, (int64_t[]){2, 3});
    made(&f, 2, "x=16,x.extent.1=4,x.stride.0=4,y=16,y.extent.1=4,near");
    end(&f);
}

static void none_after_prepare(void)
{
    Fixture f;
    tile_arg args[2];
    begin_kernel(&f);
    OK(tile_kernel_prepare(f.kernel));
    made(&f, 2, "general");
    twice(&f, 5, 31, 32, 0, NULL);
    twice(&f, 5, 31, 31, 1, NULL);
    OK(tile_kernel_prepare(f.kernel));
    made(&f, 2, "general");
    arguments(args, 5, 31, 32, 0);
    OK(tile_launch_prepare(f.kernel, args, 2, NULL));
    made(&f, 2, "general");
    end(&f);
}

/* Asks what would run, and makes nothing. */
static void planned(void)
{
    Fixture f;
    tile_arg args[2];
    int64_t programs = -1;
    const char *symbol = NULL;
    begin_kernel(&f);
    arguments(args, 5, 32, 32, 0);
    OK(tile_launch_plan(f.kernel, args, 2, NULL, 0, &programs, &symbol));
    CHECK_INT(programs, 4);
    CHECK(strstr(symbol, "twice"));
    arguments(args, 5, 31, 31, 1);
    OK(tile_launch_plan(f.kernel, args, 2, NULL, 0, &programs, &symbol));
    CHECK_INT(programs, 4);
    CHECK_STR(symbol, "");
    made(&f, 1, "aligned");
    end(&f);
}

static void prepared_for_arguments(void)
{
    Fixture f;
    tile_arg args[2];
    tile_launch_options o = TILE_LAUNCH_OPTIONS_INIT;
    begin_kernel(&f);
    arguments(args, 5, 31, 31, 1);
    OK(tile_launch_prepare(f.kernel, args, 2, &o));
    made(&f, 2, "y=16,near,grid");
    twice(&f, 5, 31, 31, 1, NULL);
    made(&f, 2, "y=16,near,grid");
    arguments(args, 0, 0, 1, 0);
    OK(tile_launch_prepare(f.kernel, args, 2, NULL)); /* nothing would run */
    o.struct_size = 1;
    CHECK_INT(tile_launch_prepare(f.kernel, args, 2, &o), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch_prepare(f.kernel, NULL, 2, NULL), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch_prepare(f.kernel, args, 1, NULL), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch_prepare(NULL, args, 2, NULL), TILE_BAD_ARGUMENT);
    made(&f, 2, "y=16,near,grid");
    end(&f);
}

/* An image from a file that lacks a form for some arguments says so. */
static void nothing_fits(void)
{
    Log log = {.n = 0};
    void *data = NULL;
    size_t size = 0;
    int64_t programs = -1;
    const char *symbol = NULL;
    Fixture f = {.log = log};
    tile_arg args[2];
    OK(tile_device_open("emu:sm_80", &f.device));
    OK(make(&log, "twice", NULL, "aligned", &data, &size));
    OK(tile_module_load_image(f.device, data, size, &f.module));
    OK(tile_kernel_get(f.module, "twice", NULL, &f.kernel));
    OK(tile_kernel_prepare(f.kernel));
    twice(&f, 5, 32, 32, 0, NULL);
    arguments(args, 5, 31, 31, 1);
    CHECK_INT(tile_launch(f.kernel, NULL, args, 2), TILE_BAD_ARGUMENT);
    CHECK(strstr(tile_last_error(), "'twice': the image has no form for arguments"));
    CHECK_INT(tile_launch_plan(f.kernel, args, 2, NULL, 0, &programs, &symbol), TILE_BAD_ARGUMENT);
    CHECK(strstr(tile_last_error(), "'twice': the image has no form for arguments"));
    CHECK_INT(programs, 0);
    free(data);
    end(&f);
}

int main(void)
{
    texts();
    well_formed();
    each_when_first_asked_for();
    a_form_that_needs_little();
    own_grid();
    none_after_prepare();
    planned();
    prepared_for_arguments();
    nothing_fits();
    return unit_result();
}
