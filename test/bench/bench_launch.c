/* What a launch costs beside the driver's own work: tile_launch over the stub of the CUDA library
 * (test/runtime/stub_gpu.h), against calls of the same functions of the stub by hand. The stub does
 * next to nothing, so the difference is ours. LD_LIBRARY_PATH names the stub's folder.
 *
 *     LD_LIBRARY_PATH=BUILD/stub bench_launch */
#include "bench.h"
#include "test/runtime/stub_gpu.h"
#include "test/unit/image_maker.h"
#include <dlfcn.h>

enum { ROUNDS = 201, LAUNCHES = 2000, PARAMS = 16 };

typedef int (*CurrentFunction)(void **context);
typedef int (*LaunchFunction)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, void *stream,
                              void **params, void **extra);
static void *library;
static StubState *stub;

static void find(const char *name, void *out)
{
    void *p = dlsym(library, name);
    if (!p) {
        fprintf(stderr, "no %s: LD_LIBRARY_PATH wants the folder of the stub\n", name);
        exit(1);
    }
    memcpy(out, &p, sizeof p);
}

static ImageMaker maker;
static const char code[] = "code";
/* Vector add, a product, and one with constants asked of the arguments and a choice of two rows. */
static const KernelSpec add[] = {
    {.name = "k",
     .params = {{"x", "f32 const view N"}, {"y", "f32 const view N"}, {"z", "f32 view N"}},
     .grid = {"N 1024 cdiv"},
     .code = code,
     .ncode = sizeof code,
     .threads = 128}};
static const KernelSpec product[] = {
    {.name = "k",
     .params = {{"A", "f32 const view M,K"}, {"B", "f32 const view K,N"}, {"C", "f32 view M,N"}},
     .grid = {"M 64 cdiv", "N 64 cdiv"},
     .group = "8",
     .require = {"0 K <"},
     .code = code,
     .ncode = sizeof code,
     .threads = 128,
     .tests = {{TILE_TEST_POINTER, 0, 0, 0, 15},
               {TILE_TEST_STRIDE, 0, 0, 0, 3},
               {TILE_TEST_POINTER, 1, 0, 0, 15},
               {TILE_TEST_STRIDE, 1, 0, 0, 3}}},
    {.name = "k",
     .params = {{"A", "f32 const view M,K"}, {"B", "f32 const view K,N"}, {"C", "f32 view M,N"}},
     .grid = {"M 64 cdiv", "N 64 cdiv"},
     .flags = TILE_KERNEL_OTHERWISE,
     .code = code,
     .ncode = sizeof code,
     .threads = 128}};

static double ours(tile_kernel *k, tile_stream *stream, const tile_arg *args, size_t n)
{
    double start = now();
    for (int i = 0; i < LAUNCHES; i++)
        TRY(tile_launch(k, stream, args, n));
    return (now() - start) / LAUNCHES;
}

/* As a careful host would: is the context current, then the launch. */
static double theirs(CurrentFunction current, LaunchFunction launch)
{
    uint64_t words[PARAMS] = {0};
    void *params[PARAMS], *context;
    double start = now();
    for (int i = 0; i < LAUNCHES; i++) {
        for (int j = 0; j < PARAMS; j++)
            params[j] = &words[j];
        if (current(&context) ||
            launch(&stub->functions[0], 64, 1, 1, 128, 1, 1, 0, NULL, params, NULL))
            exit(1);
    }
    return (now() - start) / LAUNCHES;
}

static void row(const char *name, const KernelSpec *specs, uint32_t n, const tile_arg *args)
{
    tile_device *device;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_module *module;
    tile_kernel *k;
    tile_stream *stream;
    CurrentFunction current;
    LaunchFunction launch;
    double a[ROUNDS], b[ROUNDS];
    find("cuCtxGetCurrent", &current);
    find("cuLaunchKernel", &launch);
    TRY(tile_device_open("cuda", &device) || tile_device_get_info(device, &info));
    make_image(&maker, info.target, specs, n);
    TRY(tile_device_default_stream(device, &stream) ||
        tile_module_load_image(device, maker.data, maker.size, &module) ||
        tile_kernel_get(module, "k", NULL, &k) || tile_kernel_prepare(k));
    int (*set)(void *), (*retain)(void **, int);
    void *context;
    find("cuCtxSetCurrent", &set);
    find("cuDevicePrimaryCtxRetain", &retain);
    if (retain(&context, 10) ||
        set(context)) /* the host's context is current, as it is with CUDA's runtime */
        exit(1);
    long before = stub->launches;
    for (int i = 0; i < ROUNDS; i++) {
        a[i] = ours(k, stream, args, 3) * 1e9;
        b[i] = theirs(current, launch) * 1e9;
    }
    DEMAND(stub->launches - before == 2L * ROUNDS * LAUNCHES && stub->misuses == 0,
           "%s: %ld launches, %ld misuses", name, stub->launches - before, stub->misuses);
    DEMAND(stub->grid == 64, "%s: the last launch was of %u blocks", name, stub->grid);
    median(a, ROUNDS); /* sorts: the best round is the one that nobody disturbed */
    median(b, ROUNDS);
    double x = a[0], y = b[0];
    printf("| launch, %s | %.0f ns | the driver's calls alone %.0f ns | %.0f ns more |\n", name, x,
           y, x - y);
    tile_module_free(module);
    tile_device_close(device);
}

int main(void)
{
    StubStateGetter state;
    static float x[64 * 64], y[64 * 64], z[64 * 64];
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    find("stub_state", &state);
    stub = state();
    stub->functions[0].name = "k";
    row("3 views", add, 1,
        (tile_arg[]){tile_view(x, 4096), tile_view(y, 4096), tile_view(z, 4096)});
    row("3 matrices, 2 rows", product, 2,
        (tile_arg[]){tile_view(x, 64, 64), tile_view(y, 64, 64), tile_view(z, 64, 64)});
    return 0;
}
