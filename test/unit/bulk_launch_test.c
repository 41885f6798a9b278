/* Launches of a kernel whose operands come by bulk copies, on emu:sm_90a: compiled when launched,
 * and from an image with two forms. Views of which a tensor map can be made and views of which none
 * can (rows, addresses, directions), empty and tiny ones; one after another, and many on their way
 * at once, with tensor maps of their own. */
#define TILE_UNSTABLE
#include "codegen/include/tilec.h"
#include "runtime/include/tile_jit.h"
#include "runtime/runtime.h"
#include "test/unit/unit.h"
#include <stdlib.h>

#define OK(call) CHECK_INT(call, TILE_OK)

static const char source[] =
    "kernel gemm(const i8 A[M : lda, K], const i8 B[N : ldb, K], i32 C[M, N])\n"
    "    grid(cdiv(M, 64), cdiv(N, 32)) warps(4)\n"
    "{\n"
    "    int m = pid(0) * 64, n = pid(1) * 32;\n"
    "    tile<i32, 64, 32> acc = 0;\n"
    "    for (int k : range(0, K, 64)) pipeline\n"
    "        acc = dot(A[m +: 64, k +: 64], trans(B[n +: 32, k +: 64]), acc);\n"
    "    C[m +: 64, n +: 32] = acc;\n"
    "}\n";

typedef struct Case {
    int64_t m, n, k, lda, ldb;
    int off; /* bytes that A is off */
} Case;

static const Case cases[] = {
    {80, 72, 160, 160, 160, 0},  {80, 72, 150, 160, 160, 0},  {80, 72, 160, 168, 160, 0},
    {80, 72, 160, 160, 164, 0},  {80, 72, 160, 160, 160, 8},  {80, 72, 160, 160, 160, 1},
    {80, 72, 160, -160, 160, 0}, {80, 72, 160, 160, -176, 0}, {80, 72, 160, 0, 160, 0},
    {80, 72, 0, 160, 160, 0},    {80, 0, 160, 160, 160, 0},   {0, 72, 160, 160, 160, 0},
    {1, 1, 1, 16, 16, 0},        {1, 1, 16, 16, 16, 0},       {64, 32, 64, 64, 64, 0},
    {65, 33, 65, 80, 80, 0},     {3, 5, 64, 4096, 64, 16},    {200, 40, 208, 208, 224, 0},
};
enum { CASES = sizeof cases / sizeof *cases, ROOM = 1 << 16, PATTERN = 7 };

/* Inputs for all; what each case writes. */
static _Alignas(64) int8_t a[ROOM], b[ROOM];
static _Alignas(64) int32_t c[CASES][ROOM / 4];

static int8_t *start(int8_t *memory, int64_t rows, int64_t ld)
{
    return memory + (ld < 0 ? -ld * (rows - 1) : 0);
}

static void arguments(const Case *x, int32_t *out, tile_arg args[3])
{
    const int64_t ea[] = {x->m, x->k}, sa[] = {x->lda, 1}, eb[] = {x->n, x->k}, sb[] = {x->ldb, 1};
    args[0] = tile_view_strided((const int8_t *)start(a, x->m, x->lda) + x->off, 2, ea, sa);
    args[1] = tile_view_strided((const int8_t *)start(b, x->n, x->ldb), 2, eb, sb);
    args[2] = tile_view(out, x->m, x->n);
}

static void check(const Case *x, const int32_t *got, const char *how)
{
    const int8_t *pa = start(a, x->m, x->lda) + x->off, *pb = start(b, x->n, x->ldb);
    int wrong = 0;
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++) {
            int32_t sum = 0;
            for (int64_t k = 0; k < x->k; k++)
                sum += pa[i * x->lda + k] * pb[j * x->ldb + k];
            wrong += got[i * x->n + j] != sum;
        }
    for (int64_t i = x->m * x->n; i < ROOM / 4; i++)
        wrong += got[i] != PATTERN; /* nothing behind it */
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    case %d, %s\n", (int)(x - cases), how);
}

static void clear(void)
{
    for (int i = 0; i < ROOM; i++) {
        a[i] = (int8_t)(i * 37 % 17 - 8);
        b[i] = (int8_t)(i * 61 % 13 - 6);
    }
    for (int i = 0; i < CASES; i++)
        for (int j = 0; j < ROOM / 4; j++)
            c[i][j] = PATTERN;
}

/* ---- launches ---- */

static void in_turn(tile_kernel *k, const char *how)
{
    clear();
    for (int i = 0; i < CASES; i++) {
        tile_arg args[3];
        arguments(&cases[i], c[i], args);
        OK(tile_launch(k, NULL, args, 3));
        OK(tile_stream_synchronize(NULL));
        check(&cases[i], c[i], how);
    }
}

/* All on their way before the first is waited for, arguments gone. */
static void at_once(tile_kernel *k, tile_device *device, const char *how)
{
    tile_stream *s[2];
    tile_arg args[3];
    clear();
    for (int i = 0; i < 2; i++)
        OK(tile_stream_create(device, &s[i]));
    for (int i = 0; i < CASES; i++) {
        arguments(&cases[i], c[i], args);
        OK(tile_launch(k, s[i % 2], args, 3));
        memset(args, 0xff, sizeof args);
    }
    for (int i = 0; i < 2; i++) {
        OK(tile_stream_synchronize(s[i]));
        tile_stream_free(s[i]);
    }
    for (int i = 0; i < CASES; i++)
        check(&cases[i], c[i], how);
}

static void launch_all(tile_module *m, tile_device *device, const char *how)
{
    tile_kernel *k = NULL;
    if (CHECK_INT(tile_kernel_get(m, "gemm", NULL, &k), TILE_OK)) {
        in_turn(k, how);
        at_once(k, device, how);
    }
    tile_module_free(m);
}

/* ---- the two ways to get it ---- */

static uint32_t maps_of(const void *image, const tile_image_kernel *row)
{
    const tile_image_slot *s = tl_image_at(image, row->slots);
    uint32_t n = 0;
    for (uint32_t i = 0; i < row->nslots; i++)
        n += s[i].kind == TILE_SLOT_MAP;
    return n;
}

static void ahead_of_time(tile_device *device)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *output = NULL;
    tile_module *m = NULL;
    size_t size;
    o.target = "emu:sm_90a";
    o.cache = "off";
    OK((int)tilec_compile_source("gemm.tile", source, sizeof source - 1, &o, &output));
    const void *image = tilec_output_data(output, &size);
    if (!CHECK(image != NULL)) {
        fprintf(stderr, "    %s\n", tilec_output_message(output));
        return;
    }
    /* what is tested: the first form has a map for each operand, the one in its place none */
    const tile_image_kernel *rows = tl_image_kernels(image);
    CHECK_INT(maps_of(image, &rows[0]), 2);
    CHECK_INT(rows[0].otherwise, 2);
    CHECK_INT(maps_of(image, &rows[1]), 0);
    OK(tile_module_load_image(device, image, size, &m));
    launch_all(m, device, "image");
    tilec_output_free(output);
}

static void when_launched(tile_device *device)
{
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    tile_module *m = NULL;
    o.cache = "off";
    OK(tile_module_load_source(device, "gemm.tile", source, sizeof source - 1, &o, &m));
    launch_all(m, device, "source");
}

int main(void)
{
    tile_device *device = NULL;
    if (!CHECK_INT(tile_device_open("emu:sm_90a", &device), TILE_OK))
        return unit_result();
    ahead_of_time(device);
    when_launched(device);
    tile_device_close(device);
    return unit_result();
}
