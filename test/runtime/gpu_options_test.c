/* Launches with options, and with tensor maps, on the drivers cuda and hip, over a stub of the
 * vendor's library (stub_gpu.h):
 *
 *     LD_LIBRARY_PATH=BUILD/stub gpu_options_test cuda|hip
 *
 * What the stub is asked for, drivers that lack the functions, each call failing in turn. Linked
 * with --wrap for dlsym. */
#include "runtime/driver.h"
#include "test/runtime/stub_gpu.h"
#include "test/unit/image_maker.h"
#include "test/unit/ok.h"
#include <dlfcn.h>

static StubState *stub;
static const char *kind;
static bool is_cuda;
static const char *hidden; /* a symbol that dlsym does not find */

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name)
{
    return hidden && strcmp(hidden, name) == 0 ? NULL : __real_dlsym(library, name);
}

static bool says(const char *const *words)
{
    const char *at = tile_last_error();
    for (; *words; words++) {
        at = strstr(at, *words);
        if (!at) {
            fprintf(stderr, "no '%s' in: %s\n", *words, tile_last_error());
            return false;
        }
    }
    return true;
}
#define SAYS(...) CHECK(says((const char *const[]){__VA_ARGS__, NULL}))

/* Nothing that the stub made is left. */
static void all_given_back(void)
{
    for (int i = STUB_MEMORY; i < STUB_KINDS; i++)
        CHECK_INT(stub->live[i], 0);
    CHECK_INT(stub->misuses, 0);
}

/* ---- the kernel: y[i] = x[i] * a, as the stub's "launch" ---- */

static void scale(void **params, unsigned grid, unsigned block)
{
    const float *x;
    float *y, a;
    int64_t n;
    memcpy(&x, params[0], sizeof x);
    memcpy(&n, params[1], sizeof n);
    memcpy(&y, params[3], sizeof y);
    memcpy(&a, params[6], sizeof a);
    for (int64_t i = 0; i < n && i < (int64_t)grid * block; i++)
        y[i] = x[i] * a;
}

static const char text[] = "the text of a module";
static const KernelSpec scale_spec = {
    .name = "scale",
    .params = {{"x", "f32 const view N"}, {"y", "f32 view N"}, {"a", "f32 scalar"}},
    .grid = {"N 128 cdiv"},
    .code = text,
    .ncode = sizeof text - 1,
    .threads = 128,
    .shared_bytes = 60000};
static ImageMaker maker;

/* ---- launches with options ---- */

static tile_status launch_with(tile_kernel *k, unsigned flags, const int64_t *grid)
{
    static float x[4] = {1, 2, 3, 4}, y[4];
    const tile_arg args[] = {tile_view(x, 4), tile_view(y, 4), tile_f32(2)};
    tile_launch_options o = TILE_LAUNCH_OPTIONS_INIT;
    o.flags = flags;
    o.grid = grid;
    o.naxes = grid != NULL;
    y[3] = 0;
    tile_status s = tile_launch_with(k, NULL, args, 3, &o);
    CHECK(s || y[3] == 8);
    return s;
}

static int64_t room_of(tile_kernel *k)
{
    static float x[4], y[4];
    int64_t n = -1;
    OK(tile_launch_room(k, (tile_arg[]){tile_view(x, 4), tile_view(y, 4), tile_f32(2)}, 3, &n));
    return n;
}

/* `waits`: the kernel's code does so. */
static tile_kernel *open_waiting(bool waits, tile_device **dev, tile_module **mod)
{
    KernelSpec spec = scale_spec;
    tile_kernel *k = NULL;
    spec.flags = waits ? TILE_KERNEL_WAITS : 0;
    OK(tile_device_open(kind, dev));
    make_image(&maker, is_cuda ? "sm_90a" : "gfx942", &spec, 1);
    OK(tile_module_load_image(*dev, maker.data, maker.size, mod));
    OK(tile_kernel_get(*mod, "scale", NULL, &k));
    return k;
}

static void together(void)
{
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    tile_kernel *k = open_waiting(true, &dev, &mod);
    int64_t most = room_of(k), more = most + 1;
    CHECK(most > 2 && most % stub->fit == 0);
    long before = stub->together;
    OK(launch_with(k, TILE_LAUNCH_TOGETHER, NULL));
    OK(launch_with(k, TILE_LAUNCH_TOGETHER | TILE_LAUNCH_OVERLAP, &most));
    CHECK_INT(stub->together - before, 2);
    CHECK_INT(stub->grid, most);
    CHECK_INT(launch_with(k, TILE_LAUNCH_TOGETHER, &more), TILE_NO_RESOURCE);
    SAYS("kernel 'scale'", "programs cannot run together on", "only");
    CHECK_INT(stub->together - before, 2);
    OK(launch_with(k, 0, &more));
    stub->fit = 0;
    CHECK_INT(launch_with(k, TILE_LAUNCH_TOGETHER, NULL), TILE_NO_RESOURCE);
    stub->fit = 2;
    tile_module_free(mod);
    tile_device_close(dev);
    all_given_back();
}

static void overlap(void)
{
    for (int waits = 0; waits < 2; waits++) {
        tile_device *dev = NULL;
        tile_module *mod = NULL;
        tile_kernel *k = open_waiting(waits, &dev, &mod);
        long early = stub->early, together = stub->together;
        OK(launch_with(k, TILE_LAUNCH_OVERLAP, NULL));
        CHECK_INT(stub->early - early, is_cuda && waits);
        OK(launch_with(k, 0, NULL));
        CHECK_INT(stub->early - early, is_cuda && waits);
        CHECK_INT(stub->together, together);
        tile_module_free(mod);
        tile_device_close(dev);
    }
}

/* Drivers without what the options need: overlap is a wish, together is not. */
static void old_drivers(void)
{
    static const char *const names[2][2] = {
        {"hipModuleLaunchCooperativeKernel", "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"},
        {"cuLaunchKernelEx", "cuOccupancyMaxActiveBlocksPerMultiprocessor"}};
    for (int i = 0; i < 2; i++) {
        tile_device *dev = NULL;
        tile_module *mod = NULL;
        hidden = names[is_cuda][i];
        tile_kernel *k = open_waiting(true, &dev, &mod);
        OK(launch_with(k, 0, NULL));
        OK(launch_with(k, TILE_LAUNCH_OVERLAP, NULL));
        CHECK_INT(launch_with(k, TILE_LAUNCH_TOGETHER, NULL), TILE_UNAVAILABLE);
        SAYS("lacks", hidden, "too old");
        hidden = NULL;
        tile_module_free(mod);
        tile_device_close(dev);
    }
}

/* Programs run as clusters where the grid has whole ones, the library can do it, and does. */
static void clusters(void)
{
    static const int64_t four = 4, three = 3;
    KernelSpec spec = scale_spec;
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    tile_kernel *k = NULL;
    spec.cluster = 2;
    for (int old = 0; old < 2; old++) {
        long before = stub->clusters, together = stub->together;
        hidden = old ? "cuLaunchKernelEx" : NULL;
        OK(tile_device_open(kind, &dev));
        make_image(&maker, is_cuda ? "sm_90a" : "gfx942", &spec, 1);
        OK(tile_module_load_image(dev, maker.data, maker.size, &mod));
        OK(tile_kernel_get(mod, "scale", NULL, &k));
        OK(launch_with(k, 0, &three));
        CHECK_INT(stub->clusters, before);
        OK(launch_with(k, 0, &four));
        CHECK_INT(stub->clusters - before, is_cuda && !old);
        CHECK(stub->clusters == before || stub->cluster == 2);
        stub->no_clusters = true;
        OK(launch_with(k, 0, &four));
        stub->no_clusters = false;
        CHECK_INT(stub->clusters - before, is_cuda && !old);
        if (!old)
            OK(launch_with(k, TILE_LAUNCH_TOGETHER, &four));
        CHECK_INT(stub->clusters - before, is_cuda && !old ? 2 : 0);
        CHECK_INT(stub->together - together, !old);
        tile_module_free(mod);
        tile_device_close(dev);
    }
    hidden = NULL;
    all_given_back();
}

/* A kernel that does the whole grid with any number of programs is told how many start: as many as
 * run at once; one for each processor where the library cannot say; never more than there are. */
enum { BLOCKS_SLOT = 7 };
static void parts(void **params, unsigned grid, unsigned block)
{
    int64_t n;
    memcpy(&n, params[BLOCKS_SLOT], sizeof n);
    CHECK_INT(n, grid);
    scale(params, 4, block);
}

static void as_many_as_run(void)
{
    static const tile_image_slot slot = {.kind = TILE_SLOT_BLOCKS};
    static const char *const names[] = {"hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
                                        "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
    for (int can_say = 0; can_say < 2; can_say++) {
        tile_device *dev = NULL;
        tile_module *mod = NULL;
        KernelSpec spec = scale_spec;
        tile_kernel *k = NULL;
        int64_t few = 2, many = 1 << 20;
        spec.maps = &slot;
        spec.nmaps = 1;
        hidden = can_say ? NULL : names[is_cuda];
        OK(tile_device_open(kind, &dev));
        make_image(&maker, is_cuda ? "sm_90a" : "gfx942", &spec, 1);
        OK(tile_module_load_image(dev, maker.data, maker.size, &mod));
        OK(tile_kernel_get(mod, "scale", NULL, &k));
        stub->functions[0].function = parts;
        tile_device_info info = TILE_DEVICE_INFO_INIT;
        OK(tile_device_get_info(dev, &info));
        for (int again = 0; again < 2; again++) {
            OK(launch_with(k, 0, &many));
            CHECK_INT(stub->grid, info.processors * (can_say ? stub->fit : 1));
            OK(launch_with(k, 0, &few));
            CHECK_INT(stub->grid, few);
        }
        stub->functions[0].function = scale;
        hidden = NULL;
        tile_module_free(mod);
        tile_device_close(dev);
    }
    all_given_back();
}

/* As many as run at once, in whole clusters. */
static void clusters_of_parts(void)
{
    static const tile_image_slot slot = {.kind = TILE_SLOT_BLOCKS};
    static const int64_t many = 5 << 10, ten = 10;
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    KernelSpec spec = scale_spec;
    tile_kernel *k = NULL;
    spec.maps = &slot;
    spec.nmaps = 1;
    spec.cluster = 5;
    OK(tile_device_open(kind, &dev));
    make_image(&maker, "sm_90a", &spec, 1);
    OK(tile_module_load_image(dev, maker.data, maker.size, &mod));
    OK(tile_kernel_get(mod, "scale", NULL, &k));
    stub->functions[0].function = parts;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    OK(tile_device_get_info(dev, &info));
    int run = info.processors * stub->fit;
    CHECK(run % 5 > 0);
    OK(launch_with(k, 0, &many));
    CHECK_INT(stub->grid, run - run % 5);
    CHECK_INT(stub->cluster, 5);
    OK(launch_with(k, 0, &ten));
    CHECK_INT(stub->grid, 10);
    stub->functions[0].function = scale;
    tile_module_free(mod);
    tile_device_close(dev);
    all_given_back();
}

static void wrong_options(void)
{
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    tile_kernel *k = open_waiting(true, &dev, &mod);
    int64_t n = -1;
    tile_launch_options small = TILE_LAUNCH_OPTIONS_INIT, axes = TILE_LAUNCH_OPTIONS_INIT;
    small.struct_size = 8;
    axes.naxes = 1;
    CHECK_INT(launch_with(k, 4, NULL), TILE_BAD_ARGUMENT);
    SAYS("flags is 0x4");
    CHECK_INT(tile_launch_with(k, NULL, NULL, 0, &small), TILE_BAD_ARGUMENT);
    SAYS("struct_size is 8");
    CHECK_INT(tile_launch_with(k, NULL, NULL, 0, &axes), TILE_BAD_ARGUMENT);
    SAYS("grid is NULL");
    CHECK_INT(tile_launch_with(NULL, NULL, NULL, 0, NULL), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch_with(k, NULL, NULL, 0, NULL), TILE_BAD_ARGUMENT); /* no arguments */
    CHECK_INT(tile_launch_room(k, NULL, 0, &n), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch_room(k, NULL, 3, &n), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch_room(k, NULL, 3, NULL), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch_room(NULL, NULL, 3, &n), TILE_BAD_ARGUMENT);
    CHECK_INT(n, -1);
    tile_module_free(mod);
    tile_device_close(dev);
}

static void each_call_of_options_fails(void)
{
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    tile_kernel *k = open_waiting(true, &dev, &mod);
    OK(tile_kernel_prepare(k));
    for (unsigned flags = TILE_LAUNCH_TOGETHER; flags <= TILE_LAUNCH_OVERLAP; flags++) {
        long before = stub->calls, calls;
        OK(launch_with(k, flags, NULL));
        calls = stub->calls - before;
        for (long n = 0; n < calls; n++) {
            stub->fail_at = n;
            stub->fail_code = 719;
            tile_status s = launch_with(k, flags, NULL);
            stub->fail_at = -1;
            if (s == TILE_OK)
                CHECK(strstr(stub->failed, "CtxSetCurrent") ||
                      strstr(stub->failed, "hipSetDevice"));
            else
                SAYS(stub->failed);
        }
    }
    tile_module_free(mod);
    tile_device_close(dev);
    all_given_back();
}

/* ---- tensor maps ---- */

enum { MAPS = 2, MAP_SLOT = 12 }; /* behind those of the views */
enum { THREADS = 32, OTHER_THREADS = 64 };
static StubMap seen[MAPS];
static bool has_maps; /* the form that takes them was launched */

static void boxes(void **params, unsigned grid, unsigned block)
{
    (void)grid;
    has_maps = block == THREADS;
    for (int i = 0; i < MAPS && has_maps; i++) {
        const StubMap *m;
        CHECK_INT((int64_t)((uintptr_t)params[MAP_SLOT + i] % 64), 0);
        memcpy(&m, params[MAP_SLOT + i], sizeof m);
        seen[i] = *m;
    }
}

static tile_kernel *open_boxes(tile_device **dev, tile_module **mod)
{
    static const tile_image_slot maps[MAPS] = {
        {TILE_SLOT_MAP, 0, 1 | 0 << 4 | 128 << 8, 64 | 128 << 16},
        {TILE_SLOT_MAP, 1, 0 | 2 << 4 | 64 << 8, 16 | 256 << 16}};
    KernelSpec rows[2] = {{.name = "scale",
                           .params = {{"x", "f16 const view M:s,N"},
                                      {"y", "f32 const view A:1,B:b,C:c"}},
                           .grid = {"1"},
                           .code = text,
                           .ncode = sizeof text - 1,
                           .threads = THREADS,
                           .maps = maps,
                           .nmaps = MAPS,
                           .tests = {{TILE_TEST_POINTER, 0, 0, 0, 15}}}};
    tile_kernel *k = NULL;
    rows[1] = rows[0];
    rows[1].nmaps = 0;
    rows[1].threads = OTHER_THREADS;
    rows[1].flags = TILE_KERNEL_OTHERWISE;
    rows[1].tests[0].mask = 0;
    make_image(&maker, "sm_90a", rows, 2);
    OK(tile_device_open(kind, dev));
    OK(tile_module_load_image(*dev, maker.data, maker.size, mod));
    OK(tile_kernel_get(*mod, "scale", NULL, &k));
    return k;
}

static tile_status launch_boxes(tile_kernel *k)
{
    static _Alignas(64) char memory[64]; /* nobody reads it */
    const int64_t ex[] = {1000, 72}, sx[] = {80, 1}, ey[] = {40, 3, 0}, sy[] = {1, 400, 44};
    return tile_launch(k, NULL,
                       (tile_arg[]){tile_view_strided((uint16_t *)memory, 2, ex, sx),
                                    tile_view_strided((float *)(memory + 32), 3, ey, sy)},
                       2);
}

#define IS(i, field, at, want) CHECK_INT((int64_t)seen[i].field[at], want)

static void library_makes_maps(void)
{
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    tile_kernel *k = open_boxes(&dev, &mod);
    stub->functions[0].function = boxes;
    OK(launch_boxes(k));
    CHECK_INT(seen[0].type, 1); /* of 16 bits */
    CHECK_INT(seen[0].swizzle, 3);
    CHECK_INT(seen[0].rank, 2);
    IS(0, extents, 0, 72), IS(0, extents, 1, 1000), IS(0, strides, 1, 160);
    IS(0, box, 0, 64), IS(0, box, 1, 128), IS(0, steps, 0, 1);
    CHECK_INT(seen[1].type, 2); /* of 32 bits */
    CHECK_INT(seen[1].swizzle, 2);
    CHECK_INT(seen[1].rank, 3);
    CHECK_INT((int64_t)(seen[1].address - seen[0].address), 32);
    IS(1, extents, 0, 40), IS(1, extents, 1, 1), IS(1, extents, 2, 3);
    IS(1, strides, 1, 176), IS(1, strides, 2, 1600);
    IS(1, box, 0, 16), IS(1, box, 1, 256), IS(1, box, 2, 1);
    tile_module_free(mod);
    tile_device_close(dev);
}

/* ---- maps of many views ---- */

/* x, rows along axis 1; y, rows along axis 0, boxes along axis 2 too. */
typedef struct RandomView {
    int rank, off; /* bytes that the address is off */
    int64_t extent[3], stride[3];
} RandomView;

static uint32_t number_below(uint32_t n)
{
    static uint64_t state = 18;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

/* Most views have a map; each rule is broken by some. */
static RandomView random_view(int rank, int row, int bytes)
{
    static const int64_t FAR[] = {INT64_C(1) << 36, (INT64_C(1) << 40) - 16, INT64_C(1) << 40};
    RandomView v = {.rank = rank, .off = 16 * (int)number_below(2)};
    int unit = 16 / bytes;
    for (int i = 0; i < rank; i++) {
        v.extent[i] = number_below(8) ? 1 + number_below(5000) : 0;
        v.stride[i] = i == row ? 1 : unit * (int64_t)number_below(1000);
    }
    int at = number_below((uint32_t)rank);
    switch (number_below(9)) {
    case 0: v.off += bytes; break;
    case 1: v.stride[at] += at == row ? 0 : 1; break;
    case 2: v.stride[at] *= at == row ? 1 : -1; break;
    case 3: v.stride[at] = at == row ? 1 : FAR[number_below(3)] / bytes; break;
    default: break;
    }
    return v;
}

/* By the rules of cuTensorMapEncodeTiled in cuda.h. False: it makes none. */
static bool model(const RandomView *v, const int *axes, int bytes, int row_box, int other_box,
                  StubMap *out)
{
    bool fine = v->off % 16 == 0;
    *out = (StubMap){.rank = (uint32_t)v->rank, .type = bytes == 2 ? 1 : 2};
    for (int i = 0; i < v->rank; i++) {
        int64_t stride = v->stride[axes[i]] * bytes, extent = v->extent[axes[i]];
        out->extents[i] = (uint64_t)(extent ? extent : 1); /* of an empty axis nothing is asked */
        out->strides[i] = i ? (uint64_t)stride : 0;
        fine &= i ? stride >= 0 && stride % 16 == 0 && stride < INT64_C(1) << 40 : stride == bytes;
        out->box[i] = 1;
    }
    out->box[0] = (uint32_t)row_box;
    out->box[1] = (uint32_t)other_box;
    return fine;
}

static int differences(const StubMap *a, const StubMap *b)
{
    int n = a->rank != b->rank || a->type != b->type;
    for (uint32_t i = 0; i < b->rank; i++)
        n += a->extents[i] != b->extents[i] || a->strides[i] != b->strides[i] ||
             a->box[i] != b->box[i];
    return n;
}

static void library_makes_maps_of_many_views(void)
{
    enum { LAUNCHES = 200, AT_LEAST = 40 };
    static _Alignas(64) char memory[64];
    static const int X_AXES[] = {1, 0}, Y_AXES[] = {0, 2, 1};
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    tile_kernel *k = open_boxes(&dev, &mod);
    int with = 0;
    stub->functions[0].function = boxes;
    for (int n = 0; n < LAUNCHES; n++) {
        RandomView x = random_view(2, 1, 2), y = random_view(3, 0, 4);
        StubMap want[MAPS];
        bool fine = model(&x, X_AXES, 2, 64, 128, &want[0]);
        fine &= model(&y, Y_AXES, 4, 16, 256, &want[1]);
        OK(tile_launch(k, NULL,
                       (tile_arg[]){tile_view_strided((uint16_t *)(memory + x.off), 2, x.extent,
                                                      x.stride),
                                    tile_view_strided((float *)(memory + y.off), 3, y.extent,
                                                      y.stride)},
                       2));
        CHECK_INT(has_maps, fine);
        for (int i = 0; i < MAPS && fine && has_maps; i++)
            CHECK_INT(differences(&seen[i], &want[i]), 0);
        with += fine;
    }
    CHECK(with > AT_LEAST && LAUNCHES - with > AT_LEAST);
    tile_module_free(mod);
    tile_device_close(dev);
}

/* A library that lacks the function, one that refuses. */
static void library_makes_no_maps(void)
{
    static const char NAME[] = "cuTensorMapEncodeTiled";
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    hidden = NAME;
    tile_kernel *k = open_boxes(&dev, &mod);
    long launches = stub->launches;
    CHECK_INT(launch_boxes(k), TILE_UNAVAILABLE);
    SAYS("kernel 'scale'", "lacks", NAME, "too old");
    hidden = NULL;
    tile_module_free(mod);
    tile_device_close(dev);
    k = open_boxes(&dev, &mod);
    stub->fail_symbol = NAME;
    stub->fail_code = STUB_INVALID_VALUE;
    CHECK_INT(launch_boxes(k), TILE_DRIVER);
    SAYS("kernel 'scale'", NAME);
    stub->fail_symbol = NULL;
    CHECK_INT(stub->launches, launches);
    OK(launch_boxes(k));
    CHECK_INT(stub->launches, launches + 1);
    tile_module_free(mod);
    tile_device_close(dev);
    all_given_back();
}

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1] : "cuda";
    is_cuda = strcmp(kind, "cuda") == 0;
    const char *name = is_cuda ? "libcuda.so.1" : "libamdhip64.so.6";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    void *p = library ? dlsym(library, "stub_state") : NULL;
    if (!p) {
        fprintf(stderr, "no stub %s: LD_LIBRARY_PATH needs its folder\n", name);
        return 1;
    }
    StubStateGetter state;
    memcpy(&state, &p, sizeof p);
    stub = state();
    stub->functions[0].name = "scale";
    stub->functions[0].function = scale;
    together();
    overlap();
    old_drivers();
    clusters();
    as_many_as_run();
    wrong_options();
    each_call_of_options_fails();
    if (is_cuda) {
        clusters_of_parts();
        library_makes_maps();
        library_makes_maps_of_many_views();
        library_makes_no_maps();
    }
    dlclose(library);
    return unit_result();
}
