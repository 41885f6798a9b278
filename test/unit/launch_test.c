/* What tile_launch checks and what reaches a driver, over a driver of our own that only notes
 * it. */
#include "runtime/runtime.h"
#include "test/unit/image_maker.h"
#include "test/unit/unit.h"

/* ---- the driver "emu", which runs nothing ---- */

static struct {
    int runs, loads;
    bool talk; /* runs say something */
    tl_launch launch;
    const tile_image_kernel *code; /* the one that was loaded */
    tile_arg args[SPEC_PARAMS];
    uint64_t slots[256];
} seen;

static tile_status note_open(const char *spec, const tile_device_options *options, tl_dev **out)
{
    (void)options;
    *out = (tl_dev *)(uintptr_t)16;
    return strcmp(spec, "broken") == 0 ? tl_fail(TILE_DRIVER, "broken") : TILE_OK;
}
static void note_close(tl_dev *dev)
{
    (void)dev;
}
static void note_info(tl_dev *dev, tile_device_info *info)
{
    (void)dev;
    strcpy(info->target, "fake");
    info->processors = 7;
}
static tile_status note_load(tl_dev *dev, const void *image, const tile_image_kernel *kernel,
                             tl_code **out)
{
    (void)dev, (void)image;
    seen.loads++;
    *out = (tl_code *)(uintptr_t)kernel;
    return TILE_OK;
}
static void note_unload(tl_dev *dev, tl_code *code)
{
    (void)dev, (void)code;
}
static tile_status note_run(tl_dev *dev, tl_code *code, const tl_launch *launch, tl_sink *sink)
{
    (void)dev;
    seen.code = (const tile_image_kernel *)(const void *)code;
    seen.runs++;
    for (int64_t i = launch->programs; seen.talk && i-- > 0;) { /* last program first */
        const int32_t number = (int32_t)i;
        tl_sink_print(sink, launch, i, "a", TILE_I32, 0, NULL, &number);
        tl_sink_print(sink, launch, i, "b", TILE_I32, 0, NULL, &number);
        tl_sink_fail(sink, launch, i, TL_RUN_BOUNDS, "f.tile", 3, 4, i % 2 ? "odd" : NULL);
    }
    seen.launch = *launch;
    memcpy(seen.args, launch->args, launch->nargs * sizeof *launch->args);
    memcpy(seen.slots, launch->slots, launch->nslots * sizeof *launch->slots);
    return TILE_OK;
}
const tl_driver *tl_driver_emu(void)
{
    static const tl_driver driver = {.kind = "emu",
                                     .open = note_open,
                                     .close = note_close,
                                     .info = note_info,
                                     TL_HOST_DRIVER_FUNCTIONS,
                                     .code_load = note_load,
                                     .code_unload = note_unload,
                                     .run = note_run};
    return &driver;
}

static ImageMaker maker;
static tile_device *dev;
static tile_module *mod;
static float memory[1 << 16];

static tile_kernel *get(const KernelSpec *specs, uint32_t n, const tile_const *consts)
{
    tile_kernel *k = NULL;
    tile_module_free(mod);
    mod = NULL;
    make_image(&maker, "fake", specs, n);
    if (tile_module_load_image(dev, maker.data, maker.size, &mod) != TILE_OK ||
        tile_kernel_get(mod, specs[0].name, consts, &k) != TILE_OK)
        fprintf(stderr, "%s\n", tile_last_error());
    return k;
}

/* Every word is in the last error's text, in this order. */
static bool says(const char *const *words)
{
    const char *at = tile_last_error();
    for (; *words; words++) {
        at = strstr(at, *words);
        if (!at) {
            fprintf(stderr, "no '%s' in: %s\n", *words, tile_last_error());
            return false;
        }
        at += strlen(*words);
    }
    return true;
}
#define SAYS(...) CHECK(says((const char *const[]){__VA_ARGS__, NULL}))
#define REFUSED(k, n, ...)                                                                         \
    do {                                                                                           \
        int before_ = seen.runs;                                                                   \
        tile_status s_ = tile_launch((k), NULL, (tile_arg[]){__VA_ARGS__}, (n));                   \
        CHECK_INT(s_, TILE_BAD_ARGUMENT);                                                          \
        CHECK_INT(seen.runs, before_);                                                             \
    } while (0)
#define ACCEPTED(k, n, ...)                                                                        \
    do {                                                                                           \
        int before_ = seen.runs;                                                                   \
        tile_status s_ = tile_launch((k), NULL, (tile_arg[]){__VA_ARGS__}, (n));                   \
        if (!CHECK(s_ == TILE_OK && seen.runs == before_ + 1))                                     \
            fprintf(stderr, "    %s\n", tile_last_error());                                        \
    } while (0)

/* ---- extents ---- */

static void extents(void)
{
    const KernelSpec gemm = {
        .name = "gemm",
        .params = {{"A", "f32 const view M,K"}, {"B", "f32 const view K,N"}, {"C", "f32 view M,N"}},
        .grid = {"M 64 cdiv;cdiv(M, 64)", "N 64 cdiv"}};
    tile_kernel *k = get(&gemm, 1, NULL);
    float *p = memory, *c = memory + (1 << 15);
    ACCEPTED(k, 3, tile_view(p, 65, 30), tile_view(p, 30, 129), tile_view(c, 65, 129));
    CHECK_INT(seen.launch.ngrid, 2);
    CHECK_INT(seen.launch.grid[0], 2);
    CHECK_INT(seen.launch.grid[1], 3);
    CHECK_INT(seen.launch.grid[2], 1);
    CHECK_INT(seen.launch.programs, 6);
    CHECK_INT(seen.args[1].stride[0], 129);
    CHECK_INT(seen.args[1].stride[1], 1);
    CHECK_INT(seen.args[1].bytes, 30 * 129 * 4);
    CHECK_INT(seen.slots[0], (uintptr_t)p);
    CHECK_INT(seen.slots[1], 65);
    CHECK_INT(seen.slots[2], 30);
    CHECK_INT(seen.slots[3], 30);
    REFUSED(k, 3, tile_view(p, 65, 30), tile_view(p, 31, 129), tile_view(c, 65, 129));
    SAYS("'gemm'", "'B'", "K", "30", "'A'", "31");
    REFUSED(k, 2, tile_view(p, 65, 30), tile_view(p, 31, 129));
    SAYS("'gemm'", "3 arguments", "got 2");
    REFUSED(k, 3, tile_view(p, 65, 30), tile_view(p, 30), tile_view(c, 65, 129));
    SAYS("'B'", "2 axes", "got 1");
    REFUSED(k, 3, tile_view((double *)p, 65, 30), tile_view(p, 30, 129), tile_view(c, 65, 129));
    SAYS("'gemm'", "'A'", "f32", "f64");
    ACCEPTED(k, 3, tile_view((void *)p, 65, 30), tile_view(p, 30, 129), tile_view(c, 65, 129));
    REFUSED(k, 3, tile_ptr(p), tile_view(p, 30, 129), tile_view(c, 65, 129));
    SAYS("'A'", "a view", "a pointer");
    REFUSED(k, 3, tile_view(p, -1, 30), tile_view(p, 30, 129), tile_view(c, 65, 129));
    SAYS("'A'", "-1");
    REFUSED(k, 3, tile_view(p, INT64_C(1) << 31, 1), tile_view(p, 1, 1),
            tile_view(p, INT64_C(1) << 31, 1));
    SAYS("'A'", "2147483648", "2147483647");
    REFUSED(k, 3, tile_view((float *)NULL, 65, 30), tile_view(p, 30, 129), tile_view(c, 65, 129));
    SAYS("'A'", "NULL");
}

/* ---- element types by the C types of pointers and arrays ---- */

/* A kernel with one view of that type. */
static tile_kernel *get_typed(const char *dtype)
{
    char form[32];
    snprintf(form, sizeof form, "%s view N", dtype);
    const KernelSpec spec = {.name = "typed", .params = {{"x", form}}, .grid = {"1"}};
    return get(&spec, 1, NULL);
}

/* Are views of 8 elements at `x`, whose C type says `dtype`, taken for parameters of exactly these
 * types? */
static void fits(tile_dtype dtype, const char *const *wanted)
{
    static _Alignas(8) char x[64];
    for (int t = 0; t <= TILE_F4E2M1; t++) {
        bool fine = false;
        for (const char *const *w = wanted; *w; w++)
            fine |= strcmp(*w, tile_dtype_name((tile_dtype)t)) == 0;
        tile_kernel *k = get_typed(tile_dtype_name((tile_dtype)t));
        tile_status s = tile_launch(k, NULL, (tile_arg[]){tile_view_typed(dtype, x, 8)}, 1);
        if (!CHECK_INT(s, fine ? TILE_OK : TILE_BAD_ARGUMENT))
            fprintf(stderr, "    %d for %s\n", (int)dtype, tile_dtype_name((tile_dtype)t));
    }
}
#define FITS(p, ...) fits(TILE_DTYPE_OF(p), (const char *const[]){__VA_ARGS__, NULL})
#define ALL_TYPES                                                                                  \
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",     \
        "f8e4m3", "f8e5m2", "i4", "u4", "f4e2m1"

static void element_types(void)
{
    static float f[4], f3[2][2][2], f4[2][2][2][2];
    static double d[2][4];
    static const double cd[2][4];
    static int8_t i8[4];
    static int16_t i16[4];
    static int32_t i32[4];
    static int64_t i64[2][2];
    static uint8_t u8[4];
    static uint16_t u16[2][4];
    static const uint32_t u32[4];
    static uint64_t u64[4];
    static long long ll[4];
    static bool b[4];
    struct half {
        uint16_t bits;
    } h[4] = {{0}};
    void *unknown = f;
    char *bytes = unknown;
    FITS(f, "f32");
    FITS(f3, "f32");
    FITS(f3[1], "f32");
    FITS(d, "f64");
    FITS(&d[0][0], "f64");
    FITS(cd, "f64");
    FITS(i8, "i8");
    FITS(i16, "i16");
    FITS(i32, "i32");
    FITS(i64, "i64");
    FITS(ll, "i64");
    FITS(u8, "i8", "u8", "bool", "f8e4m3", "f8e5m2", "i4", "u4", "f4e2m1");
    FITS(u16, "i16", "u16", "f16", "bf16");
    FITS(u32, "u32");
    FITS(u64, "u64");
    FITS(b, "bool");
    FITS(f4, ALL_TYPES);
    FITS(h, ALL_TYPES);
    FITS(unknown, ALL_TYPES);
    FITS((const void *)unknown, ALL_TYPES);
    FITS(bytes, ALL_TYPES);
#ifdef TILE_HAS_C_F16
    tile_c_f16 c_f16[2][2];
    FITS(c_f16, "f16");
#endif
#ifdef TILE_HAS_C_BF16
    tile_c_bf16 c_bf16[2];
    FITS(c_bf16, "bf16");
#endif
}

static void element_type_messages(void)
{
    static double d[1000][777];
    static uint16_t words[4];
    const KernelSpec spec = {.name = "softmax",
                             .params = {{"x", "f32 view M,N"}, {"n", "u16 scalar"}},
                             .grid = {"1"}};
    tile_kernel *k = get(&spec, 1, NULL);
    REFUSED(k, 2, tile_view(d, 1000, 777), tile_u16(1));
    SAYS("'softmax'", "'x'", "f32", "f64");
    REFUSED(k, 2, tile_view(words, 2, 2), tile_u16(1));
    SAYS("'softmax'", "'x'", "f32", "16-bit words");
    REFUSED(k, 2, tile_view((uint8_t *)words, 2, 2), tile_u16(1));
    SAYS("'softmax'", "'x'", "f32", "bytes");
    tile_arg scalar = tile_u16(1);
    scalar.dtype = TILE_ANY_WORD; /* of elements only */
    REFUSED(k, 2, tile_view(memory, 2, 2), scalar);
    SAYS("'n'", "u16");
    ACCEPTED(k, 2, tile_view(memory, 2, 2), tile_u16(1));
}

static void alignment(void)
{
    const KernelSpec spec = {.name = "k",
                             .params = {{"x", "f32 view N"}, {"h", "bf16 view N"},
                                        {"p", "f64 const pointer"}, {"q", "i4 view N"}},
                             .grid = {"1"}};
    static _Alignas(16) char raw[256];
    tile_kernel *k = get(&spec, 1, NULL);
    void *odd = raw + 129, *even = raw + 66, *four = raw + 36, *eight = raw + 8;
    ACCEPTED(k, 4, tile_view(four, 2), tile_view(even, 2), tile_ptr(eight), tile_view(odd, 2));
    REFUSED(k, 4, tile_view(even, 2), tile_view(even, 2), tile_ptr(eight), tile_view(odd, 2));
    SAYS("'k'", "'x'", "not aligned", "f32", "multiple of 4");
    REFUSED(k, 4, tile_view(four, 2), tile_view(odd, 2), tile_ptr(eight), tile_view(odd, 2));
    SAYS("'h'", "bf16", "multiple of 2");
    REFUSED(k, 4, tile_view(four, 2), tile_view(even, 2), tile_ptr(four), tile_view(odd, 2));
    SAYS("'p'", "f64", "multiple of 8");
    ACCEPTED(k, 4, tile_view(odd, 0), tile_view(odd, 0), tile_ptr(eight), tile_view(odd, 0));
}

/* Extents near 2^63 are refused, not computed with. */
static void largest_extents(void)
{
    const KernelSpec spec = {.name = "k",
                             .params = {{"q", "u4 view !M,!N"}, {"x", "f32 view !M,!N"}},
                             .grid = {"1"}};
    tile_kernel *k = get(&spec, 1, NULL);
    static const int64_t most[] = {INT64_MAX, INT64_MAX - 1, INT64_C(1) << 62};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        REFUSED(k, 2, tile_view((void *)memory, 1, most[i]), tile_view(memory, 1, most[i]));
        SAYS("larger than memory");
        REFUSED(k, 2, tile_view((void *)memory, most[i], 3), tile_view(memory, most[i], 3));
    }
}

static void special_extents(void)
{
    const KernelSpec square = {.name = "square",
                               .params = {{"Amat", "f32 view N,N"}, {"tab", "i32 view 3,14"}},
                               .grid = {"1"}};
    tile_kernel *k = get(&square, 1, NULL);
    int32_t t[64];
    ACCEPTED(k, 2, tile_view(memory, 14, 14), tile_view(t, 3, 14));
    REFUSED(k, 2, tile_view(memory, 14, 15), tile_view(t, 3, 14));
    SAYS("'square'", "'Amat'", "N", "14", "15");
    REFUSED(k, 2, tile_view(memory, 14, 14), tile_view(t, 3, 15));
    SAYS("'tab'", "14", "15");
    const KernelSpec quant = {.name = "quant",
                              .params = {{"S", "f32 const view N,{K 4 /;K / 4}"},
                                         {"X", "f32 const view N,K"},
                                         {"o", "i32 view {N 1 +}"}},
                              .grid = {"1"}};
    k = get(&quant, 1, NULL);
    ACCEPTED(k, 3, tile_view(memory, 3, 4), tile_view(memory, 3, 16), tile_view(t, 4));
    REFUSED(k, 3, tile_view(memory, 3, 5), tile_view(memory, 3, 16), tile_view(t, 4));
    SAYS("'quant'", "'S'", "K / 4", "4", "5");
    REFUSED(k, 3, tile_view(memory, 3, 4), tile_view(memory, 3, 16), tile_view(t, 5));
    SAYS("'o'", "must be 4", "got 5");
    const KernelSpec wide = {
        .name = "wide", .params = {{"x", "u8 view !N"}}, .grid = {"N 1000000 cdiv"}};
    k = get(&wide, 1, NULL);
    ACCEPTED(k, 1, tile_view((uint8_t *)memory, INT64_C(5000000000)));
    CHECK_INT(seen.launch.programs, 5000);
}

static void strides(void)
{
    const KernelSpec any = {.name = "any",
                            .params = {{"A", "f32 const view M:1,N:ld"},
                                       {"B", "f32 const view M:ld2,N"},
                                       {"C", "f32 const view M:ld2,N"}},
                            .grid = {"ld", "ld2"}};
    tile_kernel *k = get(&any, 1, NULL);
    float *p = memory;
    const int64_t e[2] = {4, 5}, f[2] = {1, 4}, g[2] = {9, 1}, bad[2] = {8, 1}, one[2] = {1, 5};
    ACCEPTED(k, 3, tile_view_strided(p, 2, e, f), tile_view_strided(p, 2, e, g),
             tile_view_strided(p, 2, e, g));
    CHECK_INT(seen.launch.grid[0], 4);
    CHECK_INT(seen.launch.grid[1], 9);
    REFUSED(k, 3, tile_view(p, 4, 5), tile_view(p, 4, 5), tile_view(p, 4, 5));
    SAYS("'A'", "stride", "axis 0", "1", "5");
    REFUSED(k, 3, tile_view_strided(p, 2, e, f), tile_view_strided(p, 2, e, g),
            tile_view_strided(p, 2, e, bad));
    SAYS("'C'", "stride ld2", "9", "'B'", "8");
    /* one row: its stride is anybody's, here and as the source of the name */
    ACCEPTED(k, 3, tile_view_strided(p, 2, one, f), tile_view_strided(p, 2, one, g),
             tile_view_strided(p, 2, one, bad));
    CHECK_INT(seen.args[1].stride[0], seen.args[2].stride[0]);
    const KernelSpec dense = {.name = "dense", .params = {{"A", "f32 view M,N,K"}}, .grid = {"1"}};
    k = get(&dense, 1, NULL);
    const int64_t e3[3] = {3, 4, 1}, s3[3] = {4, 1, 77}, empty[3] = {3, 0, 2}, wild[3] = {5, 5, 5};
    ACCEPTED(k, 1, tile_view_strided(p, 3, e3, s3));
    CHECK_INT(seen.args[0].stride[2], 1);
    ACCEPTED(k, 1, tile_view_strided(p, 3, empty, wild));
    REFUSED(k, 1, tile_view_strided(p, 3, e3, wild));
    SAYS("'A'", "stride");
}

static void packed(void)
{
    const KernelSpec spec = {.name = "q", .params = {{"w", "u4 const view N,K"}}, .grid = {"1"}};
    tile_kernel *k = get(&spec, 1, NULL);
    const int64_t e[2] = {3, 7}, tight[2] = {7, 1}, padded[2] = {8, 1};
    ACCEPTED(k, 1, tile_view((uint8_t *)memory, 3, 7));
    CHECK_INT(seen.args[0].stride[0], 8);
    CHECK_INT(seen.args[0].bytes, 2 * 4 + 4);
    ACCEPTED(k, 1, tile_view_strided((uint8_t *)memory, 2, e, padded));
    REFUSED(k, 1, tile_view_strided((uint8_t *)memory, 2, e, tight));
    SAYS("'w'", "stride", "8", "7");
}

/* ---- scalars, require, grid ---- */

static void scalars(void)
{
    const KernelSpec spec = {
        .name = "k",
        .params = {{"n", "i32 scalar"}, {"s", "f32 scalar"}, {"b", "i8 scalar"}},
        .grid = {"n 3 +"},
        .require = {"s 0.5 f<;s < 0.5", "b n <"}};
    tile_kernel *k = get(&spec, 1, NULL);
    ACCEPTED(k, 3, tile_i32(-1), tile_f32(0.25f), tile_i8(-100));
    CHECK_INT(seen.launch.grid[0], 2);
    float back;
    memcpy(&back, &seen.slots[1], sizeof back);
    CHECK(back == 0.25f);
    REFUSED(k, 3, tile_i32(-1), tile_f32(0.75f), tile_i8(-100));
    SAYS("'k'", "require(s < 0.5)", "s = 0.75");
    REFUSED(k, 3, tile_i64(-1), tile_f32(0.25f), tile_i8(-100));
    SAYS("'n'", "i32", "i64");
    REFUSED(k, 3, tile_view(memory, 3), tile_f32(0.25f), tile_i8(-100));
    SAYS("'n'", "a scalar", "a view");
    REFUSED(k, 3, tile_i32(-4), tile_f32(0.25f), tile_i8(-100));
    SAYS("'k'", "axis 0 of the grid", "-1");
    int runs = seen.runs;
    CHECK_INT(tile_launch(k, NULL, (tile_arg[]){tile_i32(-3), tile_f32(0), tile_i8(-5)}, 3),
              TILE_OK); /* empty */
    CHECK_INT(seen.runs, runs);
}

static void grids(void)
{
    const KernelSpec tall = {
        .name = "tall", .params = {{"n", "i32 scalar"}}, .grid = {"n", "1", "n"}, .group = "n"};
    tile_kernel *k = get(&tall, 1, NULL);
    REFUSED(k, 1, tile_i32(65536));
    SAYS("'tall'", "65536, 1, 65536", "4294967296");
    ACCEPTED(k, 1, tile_i32(46340));
    REFUSED(k, 1, tile_i32(46341));
    const int64_t grid[2] = {4, 3}, none[1] = {0}, negative[1] = {-1};
    const tile_arg n = tile_i32(5);
    CHECK_INT(tile_launch_grid(k, NULL, &n, 1, grid, 2), TILE_OK);
    CHECK_INT(seen.launch.ngrid, 2);
    CHECK_INT(seen.launch.programs, 12);
    int runs = seen.runs;
    CHECK_INT(tile_launch_grid(k, NULL, &n, 1, none, 1), TILE_OK);
    CHECK_INT(seen.runs, runs);
    CHECK_INT(tile_launch_grid(k, NULL, &n, 1, negative, 1), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch_grid(k, NULL, &n, 1, grid, 0), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch_grid(k, NULL, &n, 1, grid, 7), TILE_BAD_ARGUMENT);
    const KernelSpec wrong = {
        .name = "wrong", .params = {{"n", "i32 scalar"}}, .grid = {"100 n /;100 / n"}};
    k = get(&wrong, 1, NULL);
    REFUSED(k, 1, tile_i32(0));
    SAYS("'wrong'", "100 / n", "divides by zero");
    const KernelSpec bare = {.name = "bare"};
    k = get(&bare, 1, NULL);
    CHECK_INT(tile_launch(k, NULL, NULL, 0), TILE_BAD_ARGUMENT);
    SAYS("'bare'", "no grid");
    CHECK_INT(tile_launch_grid(k, NULL, NULL, 0, grid, 2), TILE_OK);
}

/* Every program comes once, whatever the grid, and those of a die are neighbours. */
static void die_order(void)
{
    for (int32_t n = 1; n <= 70; n++)
        for (int32_t dies = 1; dies <= 8; dies += dies < 4 ? 1 : 4) {
            tl_launch l = {
                .grid = {n, 1, 1, 1, 1, 1}, .ngrid = 1, .programs = n, .dies = dies};
            int32_t pid[TILE_MAX_GRID], before[8], taken[70] = {0};
            for (int32_t i = 0; i < n; i++) {
                tl_launch_pid(&l, i, pid);
                taken[pid[0]]++;
                CHECK(i < dies ? (i == 0) == (pid[0] == 0) : pid[0] == before[i % dies] + 1);
                before[i % dies] = pid[0];
            }
            for (int32_t i = 0; i < n; i++)
                CHECK_INT(taken[i], 1);
        }
}

/* The programs of a run differ in the first axis only, and it is as long as can be. */
static void check_run(const tl_launch *l, int64_t linear)
{
    int32_t pid[TILE_MAX_GRID], at[TILE_MAX_GRID];
    tl_launch_pid(l, linear, pid);
    int32_t n = tl_launch_run(l, linear, l->programs, pid);
    for (int32_t i = 0; i <= n && linear + i < l->programs; i++) {
        tl_launch_pid(l, linear + i, at);
        bool follows = at[0] == pid[0] + i && memcmp(at + 1, pid + 1, sizeof at - sizeof *at) == 0;
        CHECK(follows == (i < n));
    }
    CHECK_INT(tl_launch_run(l, linear, linear + 1, pid), 1);
}

/* Several runs at once are whole rows, and as many as there are. */
static void check_rows(const tl_launch *l, int64_t linear)
{
    int32_t pid[TILE_MAX_GRID], at[TILE_MAX_GRID];
    tl_launch_pid(l, linear, pid);
    int32_t n = tl_launch_run(l, linear, l->programs, pid),
            rows = tl_launch_rows(l, linear, l->programs, pid, n);
    for (int32_t i = 0; i < n * rows; i++) {
        tl_launch_pid(l, linear + i, at);
        CHECK(at[0] == pid[0] + i % n && at[1] == pid[1] + i / n &&
              memcmp(at + 2, pid + 2, sizeof at - 2 * sizeof *at) == 0);
    }
    bool begins = l->group == 0 && pid[0] == 0;
    CHECK_INT(rows, begins ? l->grid[1] - pid[1] : 1);
    CHECK_INT(tl_launch_rows(l, linear, linear + n, pid, n), 1);
    if (rows > 1)
        CHECK_INT(tl_launch_rows(l, linear, linear + 2 * n + 1, pid, n), 2);
}

/* Every place of the grid comes once, in the order that the grouping says. */
static void grid_order(void)
{
    tl_launch l = {.grid = {5, 3, 2, 1, 1, 1}, .ngrid = 3, .programs = 30};
    int32_t pid[TILE_MAX_GRID];
    for (int32_t group = 0; group <= 5; group++) {
        bool taken[5][3][2] = {{{false}}};
        int count = 0;
        l.group = group == 5 ? 0 : group;
        for (int64_t i = 0; i < 30; i++) {
            tl_launch_pid(&l, i, pid);
            if (CHECK(pid[0] >= 0 && pid[0] < 5 && pid[1] >= 0 && pid[1] < 3 && pid[2] >= 0 &&
                      pid[2] < 2))
                count += !taken[pid[0]][pid[1]][pid[2]];
            taken[pid[0]][pid[1]][pid[2]] = true;
            int32_t next[TILE_MAX_GRID];
            memcpy(next, pid, sizeof next);
            tl_launch_next_pid(&l, (i + 1) % 30, next);
            tl_launch_pid(&l, (i + 1) % 30, pid);
            CHECK(memcmp(next, pid, sizeof pid) == 0);
        }
        CHECK_INT(count, 30);
        for (int64_t i = 0; i < 30; i++) {
            check_run(&l, i);
            check_rows(&l, i);
        }
    }
    static const int8_t grouped_by_2[15][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2},
                                               {1, 2}, {2, 0}, {3, 0}, {2, 1}, {3, 1},
                                               {2, 2}, {3, 2}, {4, 0}, {4, 1}, {4, 2}};
    l.group = 2;
    for (int64_t i = 0; i < 30; i++) {
        tl_launch_pid(&l, i, pid);
        CHECK(pid[0] == grouped_by_2[i % 15][0] && pid[1] == grouped_by_2[i % 15][1] &&
              pid[2] == i / 15);
    }
    l.group = 0;
    tl_launch_pid(&l, 7, pid);
    CHECK(pid[0] == 2 && pid[1] == 1 && pid[2] == 0);
}

/* Clusters start one after another, in the order of the grid that they make; the programs of one
 * differ in the cluster's axis alone. */
static void check_clusters(int32_t size, uint32_t axis, int32_t group)
{
    tile_image_kernel kernel = {.cluster = (uint32_t)size, .cluster_axis = axis};
    tl_launch l = {.kernel = &kernel, .cluster = size, .grid = {4, 4, 4, 1, 1, 1}, .ngrid = 3,
                   .group = group, .programs = 64}, of = l;
    int32_t pid[TILE_MAX_GRID], cluster[TILE_MAX_GRID];
    of.cluster = 1;
    of.grid[axis] /= size;
    of.programs /= size;
    for (int64_t i = 0; i < 64; i++) {
        tl_launch_pid(&l, i, pid);
        tl_launch_pid(&of, i / size, cluster);
        if (axis == 0) /* its order is that of programs, in bands, too */
            tl_launch_pid(&l, i / size * size, cluster);
        else
            cluster[axis] *= size;
        cluster[axis] += (int32_t)(i % size);
        CHECK(memcmp(pid, cluster, sizeof pid) == 0);
    }
}

static void cluster_order(void)
{
    for (int32_t size = 2; size <= 4; size += 2)
        for (uint32_t axis = 0; axis < 3; axis++)
            for (int32_t group = 0; group < 4; group += size)
                check_clusters(size, axis, group);
    check_clusters(2, 1, 3);
}

/* A launch has whole clusters, or none. */
static void whole_clusters(void)
{
    KernelSpec spec = {.name = "k", .grid = {"8", "6"}, .group = "2", .cluster = 2};
    CHECK_INT(tile_launch(get(&spec, 1, NULL), NULL, NULL, 0), TILE_OK);
    CHECK_INT(seen.launch.cluster, 2);
    spec.group = "3"; /* neighbours in the order of starting are in two bands */
    CHECK_INT(tile_launch(get(&spec, 1, NULL), NULL, NULL, 0), TILE_OK);
    CHECK_INT(seen.launch.cluster, 1);
    spec.cluster_axis = 1;
    CHECK_INT(tile_launch(get(&spec, 1, NULL), NULL, NULL, 0), TILE_OK);
    CHECK_INT(seen.launch.cluster, 2);
    spec.cluster = 4; /* 6 is no multiple */
    CHECK_INT(tile_launch(get(&spec, 1, NULL), NULL, NULL, 0), TILE_OK);
    CHECK_INT(seen.launch.cluster, 1);
    spec.cluster_axis = 2;
    CHECK_INT(tile_launch(get(&spec, 1, NULL), NULL, NULL, 0), TILE_OK);
    CHECK_INT(seen.launch.cluster, 1);
}

/* ---- checks, aliases, memory ---- */

static void checked(void)
{
    KernelSpec spec = {
        .name = "k",
        .params = {{"x", "f32 const view N"}, {"y", "f32 view N"}, {"p", "f32 pointer"}},
        .grid = {"1"},
        .assume = {"N 16 % 0 ==;N % 16 == 0"},
        .flags = TILE_KERNEL_CHECKED};
    tile_kernel *k = get(&spec, 1, NULL);
    float *p = memory;
    ACCEPTED(k, 3, tile_view(p, 16), tile_view(p + 16, 16), tile_ptr_sized(p + 100, 40));
    CHECK_INT(seen.args[2].bytes, 40);
    REFUSED(k, 3, tile_view(p, 17), tile_view(p + 17, 17), tile_ptr(p + 100));
    SAYS("'k'", "assume(N % 16 == 0)", "N = 17");
    REFUSED(k, 3, tile_view(p, 16), tile_view(p + 15, 16), tile_ptr(p + 100));
    SAYS("'x'", "'y'", "overlap", "alias(x, y)");
    ACCEPTED(k, 3, tile_view(p, 16), tile_view(p + 16, 16), tile_ptr(p + 100));
    CHECK(seen.args[2].bytes == UINT64_MAX);
    tile_arg small = tile_view(p, 16);
    small.bytes = 60;
    REFUSED(k, 3, small, tile_view(p + 16, 16), tile_ptr(p + 100));
    SAYS("'x'", "64 bytes", "60");
    spec.aliases[0][1] = 1;
    spec.naliases = 1;
    k = get(&spec, 1, NULL);
    ACCEPTED(k, 3, tile_view(p, 16), tile_view(p, 16), tile_ptr(p + 100));
    tile_buffer *b = NULL;
    CHECK_INT(tile_buffer_alloc(dev, 100, &b), TILE_OK);
    ACCEPTED(k, 3, tile_view(p, 16), tile_view(p, 16), tile_ptr((char *)tile_buffer_ptr(b) + 32));
    CHECK_INT(seen.args[2].bytes, 68);
    REFUSED(k, 3, tile_view(tile_buffer_ptr(b), 32), tile_view(p, 32), tile_ptr(p + 100));
    SAYS("'x'", "128 bytes", "100");
    tile_buffer_free(b);
    spec.flags = 0;
    k = get(&spec, 1, NULL);
    ACCEPTED(k, 3, tile_view(p, 17), tile_view(p + 3, 17), tile_ptr(p));
}

/* ---- views with common elements ---- */

/* Bytes that the elements of a view lie in, as marks; `at` is where its address is. */
static void mark(const tile_arg *a, int axis, int64_t element, char *at, char marks[1024])
{
    if (axis < a->rank) {
        for (int64_t i = 0; i < a->extent[axis]; i++)
            mark(a, axis + 1, element + i * a->stride[axis], at, marks);
        return;
    }
    int bits = tile_dtype_bits((tile_dtype)a->dtype);
    if (bits == 4)
        at[element / 2] = 1;
    else
        memset(at + element * bits / 8, 1, (size_t)bits / 8);
}

static uint64_t below(uint64_t *state, uint64_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (*state >> 33) % n;
}

static tile_arg random_view(uint64_t *r, bool nested)
{
    static const tile_dtype dtypes[] = {TILE_F32, TILE_F32, TILE_F32, TILE_I32, TILE_F16, TILE_U8};
    tile_arg a = {.kind = TILE_ARG_VIEW, .rank = 1 + (int)below(r, 3), .strided = 1};
    a.dtype = (int32_t)dtypes[below(r, 6)];
    int bytes = tile_dtype_bits((tile_dtype)a.dtype) / 8;
    a.address = (char *)memory + 512 + bytes * (int64_t)below(r, 40);
    int64_t stride = 1;
    for (int axis = a.rank - 1; axis >= 0; axis--) {
        a.extent[axis] = below(r, 16) ? 1 + (int64_t)below(r, 4) : 0;
        a.stride[axis] = nested ? stride : (int64_t)below(r, 12) - 4;
        stride *= 4;
    }
    return a;
}

/* What is found has a common element; slices of one array are all found. */
static void common_elements(void)
{
    uint64_t r = 1;
    int found = 0;
    for (int n = 0; n < 20000; n++) {
        bool nested = n % 2 == 0, meet = false;
        tile_arg x = random_view(&r, nested), y = random_view(&r, nested);
        char marks[2][1024] = {{0}};
        mark(&x, 0, 0, marks[0] + ((char *)x.address - (char *)memory), marks[0]);
        mark(&y, 0, 0, marks[1] + ((char *)y.address - (char *)memory), marks[1]);
        for (int i = 0; i < 1024; i++) meet |= marks[0][i] && marks[1][i];
        bool says = tl_views_overlap(&x, &y);
        CHECK(meet || !says);
        CHECK(tl_views_overlap(&y, &x) == says);
        if (nested && x.rank == y.rank && x.dtype == y.dtype)
            CHECK(meet == says);
        found += says;
    }
    CHECK(found > 1000);
}

/* Without checks: what certainly overlaps is refused, naming both. */
static void overlaps(void)
{
    KernelSpec spec = {.name = "k",
                       .params = {{"a", "f32 const view M:s,N:t"},
                                  {"b", "f32 const view M:s,N:t"},
                                  {"c", "f32 view M:s,N:t"},
                                  {"p", "f32 pointer"}},
                       .grid = {"1"}};
    tile_kernel *k = get(&spec, 1, NULL);
    float *m = memory;
    const tile_arg pointer = tile_ptr(m); /* says nothing of what it is for */
    const int64_t e[] = {8, 8}, row[] = {32, 1}, column[] = {1, 32}, back[] = {-32, 1};
#define AT(i, s) tile_view_strided(m + (i), 2, e, s)
    ACCEPTED(k, 4, AT(0, row), AT(0, row), AT(8, row), pointer); /* halves of rows */
    REFUSED(k, 4, AT(0, row), AT(16, row), AT(0, row), pointer);
    SAYS("'k'", "'a'", "'c'", "overlap", "alias(a, c)");
    REFUSED(k, 4, AT(0, row), AT(16, row), AT(23, row), pointer);
    SAYS("'b'", "'c'", "alias(b, c)");
    REFUSED(k, 4, AT(1024, row), AT(0, row), AT(7 * 32 + 7, row), pointer); /* one element */
    SAYS("'b'", "'c'");
    ACCEPTED(k, 4, AT(1024, row), AT(0, row), AT(7 * 32 + 8, row), pointer);
    ACCEPTED(k, 4, AT(0, column), AT(0, column), AT(8, column), pointer);
    REFUSED(k, 4, AT(0, column), AT(0, column), AT(6 * 32 + 2, column), pointer);
    REFUSED(k, 4, AT(1024, back), AT(4096, back), AT(1024 - 7 * 32, back), pointer);
    ACCEPTED(k, 4, AT(1024, back), AT(4096, back), AT(1024 - 8 * 32, back), pointer);
#undef AT
    spec.params[2].form = "f32 const view M:s,N:t";
    k = get(&spec, 1, NULL);
    ACCEPTED(k, 4, tile_view(m, 4, 4), tile_view(m, 4, 4), tile_view(m + 3, 4, 4), pointer);
}

/* ---- views of buffers ---- */

static void buffers(void)
{
    const KernelSpec spec = {.name = "k",
                             .params = {{"x", "f32 const view M:ld,N"}, {"y", "f32 const view P"}},
                             .grid = {"1"}};
    tile_kernel *k = get(&spec, 1, NULL);
    tile_buffer *b = NULL;
    CHECK_INT(tile_buffer_alloc(dev, 402, &b), TILE_OK); /* 100 elements, and half of one */
    char *p = tile_buffer_ptr(b);
    const tile_arg nothing = tile_f32_view(NULL, 0);
    CHECK_INT(tile_launch(k, NULL, TILE_ARGS(tile_f32_view(b, 4, 25), nothing)), TILE_OK);
    CHECK(seen.args[0].address == p && seen.args[0].extent[1] == 25 && !seen.args[1].address);
    ACCEPTED(k, 2, tile_buffer_view_at(b, 1, TILE_F32, 3, 33),
             tile_buffer_view_at(b, 99, TILE_F32, 1));
    CHECK(seen.args[0].address == p + 4 && seen.args[1].address == p + 396);
    ACCEPTED(k, 2, tile_f32_view(NULL, 0, 7), tile_buffer_view_at(b, 100, TILE_F32, 0));
    const int64_t extent[] = {3, 4}, stride[] = {-25, 1};
    ACCEPTED(k, 2, tile_buffer_view_strided(b, 60, TILE_F32, 2, extent, stride), nothing);
    CHECK(seen.args[0].address == p + 240 && seen.args[0].stride[0] == -25);

    REFUSED(k, 2, tile_f32_view(b, 101, 1), nothing);
    SAYS("'k'", "'x'", "404 bytes", "got 402");
    REFUSED(k, 2, tile_buffer_view_at(b, 2, TILE_F32, 9, 11), nothing);
    SAYS("'x'", "396 bytes", "got 394");
    REFUSED(k, 2, nothing, nothing);
    SAYS("'x'", "2 axes");
    for (int i = 0; i < 4; i++) {
        const int64_t at[] = {100, -1, INT64_MAX, INT64_MIN};
        REFUSED(k, 2, tile_buffer_view_at(b, at[i], TILE_F32, 1, 1), nothing);
        SAYS("'x'", "buffer of 402 bytes", "f32");
    }
    REFUSED(k, 2, tile_f32_view(NULL, 1, 1), nothing);
    SAYS("'x'", "NULL");
    REFUSED(k, 2, tile_buffer_view(b, TILE_F64, 1, 1), nothing);
    SAYS("'x'", "f32", "f64");
    ACCEPTED(k, 2, tile_buffer_view_at(b, 8, TILE_ANY, 1, 1), nothing);
    CHECK(seen.args[0].address == p + 8);
    REFUSED(k, 2, tile_buffer_view_at(b, 6, TILE_ANY, 1, 1), nothing);
    SAYS("'x'", "aligned");

    const tile_arg typed[] = {tile_bool_view(b, 1), tile_i8_view(b, 1),   tile_i16_view(b, 1),
                              tile_i32_view(b, 1),  tile_i64_view(b, 1),  tile_u8_view(b, 1),
                              tile_u16_view(b, 1),  tile_u32_view(b, 1),  tile_u64_view(b, 1),
                              tile_f16_view(b, 1),  tile_bf16_view(b, 1), tile_f32_view(b, 1),
                              tile_f64_view(b, 1)};
    for (int i = 0; i < 13; i++) CHECK_INT(typed[i].dtype, (int)TILE_BOOL + i);
    CHECK(tile_buffer_view_at(b, 3, TILE_ANY_WORD, 1).address == p + 6);
    CHECK(tile_buffer_view_at(b, 803, TILE_I4, 1).address == NULL);
    CHECK(tile_buffer_view_at(b, 802, TILE_I4, 1).address == p + 401);
    CHECK(tile_buffer_view_at(b, 804, TILE_I4, 1).address == NULL);
    CHECK(tile_arg_in_buffer(tile_ptr((float *)0), b, 2).address == p + 8);
    tile_buffer_free(b);
}

/* The whole buffer is a view's memory, but no part of the view: neighbours do not overlap. */
static void checked_buffers(void)
{
    const KernelSpec spec = {.name = "k",
                             .params = {{"x", "f32 const view N"}, {"y", "f32 view N"}},
                             .grid = {"1"},
                             .flags = TILE_KERNEL_CHECKED};
    tile_kernel *k = get(&spec, 1, NULL);
    tile_buffer *b = NULL;
    CHECK_INT(tile_buffer_alloc(dev, 400, &b), TILE_OK);
    ACCEPTED(k, 2, tile_f32_view(b, 16), tile_buffer_view_at(b, 16, TILE_F32, 16));
    CHECK_INT(seen.args[0].bytes, 400);
    ACCEPTED(k, 2, tile_f32_view(b, 0), tile_f32_view(b, 0));
    REFUSED(k, 2, tile_f32_view(b, 16), tile_buffer_view_at(b, 15, TILE_F32, 16));
    SAYS("'x'", "'y'", "overlap");
    tile_buffer_free(b);
}

/* ---- variants and constants ---- */

static void variants(void)
{
    const KernelSpec specs[] = {
        {.name = "k",
         .params = {{"x", "f32 view N"}},
         .grid = {"11"},
         .require = {"N 8 <=;8 >= N"},
         .consts = {"B=8", "T=f32"}},
        {.name = "k",
         .params = {{"x", "f32 view N"}},
         .grid = {"12"},
         .require = {"N 128 <=;128 >= N"},
         .consts = {"B=128", "T=f32"}},
        {.name = "k",
         .params = {{"x", "f64 view N"}},
         .grid = {"13"},
         .consts = {"B=128", "T=f64", "E=1e-5"}},
        {.name = "other", .grid = {"1"}},
    };
    tile_kernel *k = get(specs, 4, NULL), *again = NULL;
    ACCEPTED(k, 1, tile_view(memory, 8));
    CHECK_INT(seen.launch.grid[0], 11);
    ACCEPTED(k, 1, tile_view(memory, 9));
    CHECK_INT(seen.launch.grid[0], 12);
    ACCEPTED(k, 1, tile_view((double *)memory, 9));
    CHECK_INT(seen.launch.grid[0], 13);
    REFUSED(k, 1, tile_view(memory, 129));
    SAYS("'k'", "3 variants", "8 >= N");
    CHECK_INT(tile_kernel_get(mod, "k", NULL, &again), TILE_OK);
    CHECK(again == k);
    CHECK_INT(tile_kernel_get(mod, "k", (tile_const[]){{"B", 128, 0}, {0}}, &again), TILE_OK);
    CHECK(again != k);
    ACCEPTED(again, 1, tile_view(memory, 8));
    CHECK_INT(seen.launch.grid[0], 12);
    CHECK_INT(tile_kernel_get(mod, "k", (tile_const[]){{"E", 0, "0.00001"}, {"T", 0, "f64"}, {0}},
                              &again),
              TILE_OK);
    ACCEPTED(again, 1, tile_view((double *)memory, 8));
    CHECK_INT(seen.launch.grid[0], 13);
    CHECK_INT(tile_kernel_get(mod, "k", (tile_const[]){{"Z", 1, 0}, {0}}, &again), TILE_NOT_FOUND);
    SAYS("'k'", "'Z'", "B=8", "T=f32");
    CHECK_INT(tile_kernel_get(mod, "k", (tile_const[]){{"B", 64, 0}, {0}}, &again), TILE_NOT_FOUND);
    SAYS("'k'", "no variant");
    CHECK_INT(tile_kernel_get(mod, "nobody", NULL, &again), TILE_NOT_FOUND);
    SAYS("'nobody'", "k", "other");
    CHECK_INT(tile_module_kernel_count(mod), 4);
    CHECK_STR(tile_module_kernel_name(mod, 3), "other");
    CHECK(tile_module_kernel_name(mod, 4) == NULL);
    tile_param_info info = TILE_PARAM_INFO_INIT;
    CHECK_INT(tile_kernel_param(k, 0, &info), TILE_OK);
    CHECK_STR(info.name, "x");
    CHECK(info.kind == TILE_ARG_VIEW && info.dtype == TILE_F32 && info.rank == 1 && !info.is_const);
    CHECK_INT(tile_kernel_param(k, 1, &info), TILE_BAD_ARGUMENT);
}

/* ---- what kernels say comes in the order of launches and programs ---- */

static char said[256];
static void on_print(void *user, const char *text)
{
    (void)user;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s;", text);
}

static void order_of_messages(void)
{
    const KernelSpec spec = {.name = "k", .params = {{"n", "i32 scalar"}}, .grid = {"n"}};
    tile_kernel *k = get(&spec, 1, NULL);
    tile_callbacks callbacks = TILE_CALLBACKS_INIT;
    callbacks.print = on_print;
    CHECK_INT(tile_device_set_callbacks(dev, &callbacks), TILE_OK);
    seen.talk = true;
    ACCEPTED(k, 1, tile_i32(3));
    ACCEPTED(k, 1, tile_i32(1));
    seen.talk = false;
    CHECK_INT(tile_device_synchronize(dev), TILE_FAILED);
    CHECK_STR(tile_last_error(), "f.tile:3:4: out of bounds (program 0)");
    CHECK_STR(said, "a = 0;b = 0;a = 1;b = 1;a = 2;b = 2;a = 0;b = 0;");
    CHECK_INT(tile_device_synchronize(dev), TILE_OK);
}

/* Slots that are of the launch, not of a parameter: programs along axis 1, group, debug buffer. */
static void launch_slots(void)
{
    const KernelSpec spec = {.name = "k",
                             .params = {{"n", "i32 scalar"}},
                             .grid = {"n", "n 2 *"},
                             .group = "8",
                             .gpu = true};
    tile_kernel *k = get(&spec, 1, NULL);
    ACCEPTED(k, 1, tile_i32(9));
    CHECK_INT(seen.launch.nslots, 4);
    CHECK_INT(seen.slots[1], 18);
    CHECK_INT(seen.slots[2], 8);
    CHECK_INT(seen.slots[3], 0);
    const KernelSpec plain = {.name = "k", .grid = {"3"}, .gpu = true};
    k = get(&plain, 1, NULL);
    CHECK_INT(tile_launch(k, NULL, NULL, 0), TILE_OK);
    CHECK_INT(seen.slots[0], 1);
    CHECK_INT(seen.slots[1], 0);
}

/* The same arguments again, of which a kernel keeps what they are; others in between. */
static void arguments_again(void)
{
    const KernelSpec scale = {
        .name = "scale",
        .params = {{"x", "f32 const view M,N"}, {"y", "f32 view M,N"}, {"a", "i32 scalar"}},
        .grid = {"M 4 cdiv"}};
    tile_kernel *k = get(&scale, 1, NULL);
    float *p = memory, *c = memory + (1 << 15);
    uint64_t slots[16], sequence = 0;
    for (int round = 0; round < 5; round++) {
        ACCEPTED(k, 3, tile_view(p, 9, 5), tile_view(c, 9, 5), tile_i32(2));
        CHECK_INT(seen.launch.grid[0], 3);
        CHECK_INT(seen.args[0].stride[0], 5);
        CHECK_INT(seen.args[1].bytes, 9 * 5 * 4);
        CHECK(seen.launch.nslots <= 16 && (!round || seen.launch.sequence == sequence + 1));
        CHECK(!round || memcmp(slots, seen.slots, seen.launch.nslots * sizeof *slots) == 0);
        memcpy(slots, seen.slots, sizeof slots);
        sequence = seen.launch.sequence;
    }
    ACCEPTED(k, 3, tile_view(p, 9, 5), tile_view(c, 9, 5), tile_i32(3));
    CHECK(memcmp(slots, seen.slots, seen.launch.nslots * sizeof *slots) != 0);
    ACCEPTED(k, 3, tile_view(p, 13, 5), tile_view(c, 13, 5), tile_i32(2));
    CHECK_INT(seen.launch.grid[0], 4);
    REFUSED(k, 3, tile_view(p, 9, 5), tile_view(c, 9, 6), tile_i32(2));
    REFUSED(k, 3, tile_view(p, 9, 5), tile_view(p + 1, 9, 5), tile_i32(2));
    REFUSED(k, 2, tile_view(p, 9, 5), tile_view(c, 9, 5));
    for (int round = 0; round < 3; round++) {
        ACCEPTED(k, 3, tile_view(p, 9, 5), tile_view(c, 9, 5), tile_i32(2));
        CHECK_INT(seen.launch.grid[0], 3);
        CHECK(memcmp(slots, seen.slots, seen.launch.nslots * sizeof *slots) == 0);
    }
    tile_arg args[] = {tile_view(p, 9, 5), tile_view(c, 9, 5), tile_i32(2)};
    CHECK_INT(tile_launch_grid(k, NULL, args, 3, (int64_t[]){7}, 1), TILE_OK);
    CHECK_INT(seen.launch.grid[0], 7);
    ACCEPTED(k, 3, args[0], args[1], args[2]);
    CHECK_INT(seen.launch.grid[0], 3);
    for (int round = 0; round < 3; round++) /* there is nothing to run, and nothing to keep */
        CHECK_INT(tile_launch(k, NULL,
                              (tile_arg[]){tile_view(p, 0, 5), tile_view(c, 0, 5), tile_i32(2)}, 3),
                  TILE_OK);
    ACCEPTED(k, 3, args[0], args[1], args[2]);
}

/* x / n by the slot's words, as on a GPU. */
static uint32_t over(uint64_t slot, uint32_t x)
{
    return (uint32_t)((uint64_t)x * (uint32_t)slot >> (slot >> 32));
}

/* What programs divide by the extent of an axis with: for small extents, those around powers of two
 * and others, and for numbers around their multiples. */
static void launch_divisors(void)
{
    enum { SLOT = 1, SMALL = 70, POWERS = 31 * 3, OTHERS = 60, MOST = INT32_MAX };
    const KernelSpec spec = {
        .name = "k", .params = {{"n", "i32 scalar"}}, .grid = {"n"}, .divides = true};
    tile_kernel *k = get(&spec, 1, NULL);
    for (uint32_t i = 1; i < SMALL + POWERS + OTHERS; i++) {
        uint32_t j = i - SMALL, n = i * 0x9e3779b1u >> 1;
        if (i < SMALL + POWERS)
            n = i < SMALL ? i : (1u << j / 3) + j % 3 - 1;
        if (n == 0 || n > MOST)
            continue;
        ACCEPTED(k, 1, tile_i32((int32_t)n));
        uint32_t wrong = 0, last = MOST / n * n;
        const uint32_t x[] = {0, 1, n - 1, n, n + 1, last - 1, last, MOST - 1, MOST, MOST / 2};
        for (size_t at = 0; at < sizeof x / sizeof *x; at++)
            wrong += x[at] <= MOST && over(seen.slots[SLOT], x[at]) != x[at] / n;
        CHECK_INT(wrong, 0);
    }
}

/* ---- images ---- */

static tile_status load_damaged(size_t at, unsigned char value, bool fix_checksum)
{
    unsigned char keep = maker.data[at];
    tile_module *m = NULL;
    maker.data[at] = value;
    uint64_t sum = ((tile_image_header *)(void *)maker.data)->checksum;
    if (fix_checksum)
        maker_checksum(&maker);
    tile_status status = tile_module_load_image(dev, maker.data, maker.size, &m);
    tile_module_free(m);
    maker.data[at] = keep;
    ((tile_image_header *)(void *)maker.data)->checksum = sum;
    return status;
}

/* Any byte changed: refused by the checksum. With the checksum made to fit: loaded or refused,
 * never a crash. */
static void damaged_images(void)
{
    const KernelSpec spec = {.name = "k",
                             .params = {{"x", "f32 view {N 2 *},N:s"}, {"n", "i32 scalar"}},
                             .grid = {"N n cdiv", "sms"},
                             .group = "8",
                             .require = {"N n <="},
                             .assume = {"n 1 &"},
                             .consts = {"B=8"},
                             .naliases = 1,
                             .gpu = true};
    tile_module *m = NULL;
    make_image(&maker, "fake", &spec, 1);
    CHECK_INT(tile_module_load_image(dev, maker.data, maker.size, &m), TILE_OK);
    tile_module_free(m);
    for (size_t size = 0; size < maker.size; size += 7) {
        CHECK_INT(tile_module_load_image(dev, maker.data, size, &m), TILE_BAD_IMAGE);
        ((tile_image_header *)(void *)maker.data)->total_bytes = size;
        CHECK_INT(tile_module_load_image(dev, maker.data, size, &m), TILE_BAD_IMAGE);
        ((tile_image_header *)(void *)maker.data)->total_bytes = maker.size;
    }
    int loaded = 0, refused = 0;
    KernelSpec rows[2] = {spec, spec};
    rows[0].tests[0] = (tile_image_test){TILE_TEST_EXTENT, 0, 1, 0, 3};
    rows[1].flags = TILE_KERNEL_OTHERWISE;
    make_image(&maker, "fake", rows, 2);
    CHECK_INT(tile_module_load_image(dev, maker.data, maker.size, &m), TILE_OK);
    tile_module_free(m);
    for (size_t at = sizeof(tile_image_header); at < maker.size; at++) {
        CHECK_INT(load_damaged(at, maker.data[at] ^ 1, false), TILE_BAD_IMAGE);
        for (int v = 0; v < 4; v++) {
            static const unsigned char values[4] = {0, 1, 0x7f, 0xff};
            load_damaged(at, values[v], true) == TILE_OK ? loaded++ : refused++;
        }
    }
    CHECK(loaded > 100 && refused > 100);
    make_image(&maker, "cpu", &spec, 1);
    CHECK_INT(tile_module_load_image(dev, maker.data, maker.size, &m), TILE_BAD_IMAGE);
    SAYS("'cpu'", "'fake'");
}

/* Tests of a row, and the row that takes its place: what does not fit is refused. */
static void rows_with_tests(void)
{
    const KernelSpec plain = {.name = "k", .params = {{"x", "f32 view N"}, {"n", "f32 scalar"}}};
    static const struct {
        tile_image_test test;
        uint32_t flags;
        bool fine;
    } cases[] = {
        {{TILE_TEST_POINTER, 0, 0, 0, 15}, TILE_KERNEL_OTHERWISE, true},
        {{TILE_TEST_SPAN, 0, 0, 0, 15}, TILE_KERNEL_OTHERWISE, true},
        {{TILE_TEST_STRIDE, 0, 0, 0, 15}, TILE_KERNEL_OTHERWISE, true},
        {{TILE_TEST_STRIDE, 0, 0, 0, 15}, 0, false}, /* the other row is one of its own */
        {{TILE_TEST_STRIDE, 0, 1, 0, 15}, TILE_KERNEL_OTHERWISE, false},
        {{TILE_TEST_EXTENT, 1, 0, 0, 15}, TILE_KERNEL_OTHERWISE, false},
        {{TILE_TEST_POINTER, 1, 0, 0, 15}, TILE_KERNEL_OTHERWISE, false},
        {{TILE_TEST_POINTER, 2, 0, 0, 15}, TILE_KERNEL_OTHERWISE, false},
        {{TILE_TEST_SCALAR, 1, 0, 0, 15}, TILE_KERNEL_OTHERWISE, false}, /* a float */
        {{TILE_TEST_COUNT, 0, 0, 0, 15}, TILE_KERNEL_OTHERWISE, false},
    };
    tile_module *m = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        KernelSpec rows[2] = {plain, plain};
        rows[0].tests[0] = cases[i].test;
        rows[1].flags = cases[i].flags;
        make_image(&maker, "fake", rows, 2);
        bool loads = tile_module_load_image(dev, maker.data, maker.size, &m) == TILE_OK;
        if (!CHECK(loads == cases[i].fine))
            fprintf(stderr, "    case %zu\n", i);
        if (loads)
            tile_module_free(m);
    }
    KernelSpec last = plain; /* there is no row after it */
    last.tests[0] = cases[0].test;
    make_image(&maker, "fake", &last, 1);
    CHECK_INT(tile_module_load_image(dev, maker.data, maker.size, &m), TILE_BAD_IMAGE);
}

static const tile_image_kernel *rows_of(const void *image)
{
    const tile_image_header *h = image;
    return (const tile_image_kernel *)(const void *)((const char *)image + h->kernels);
}

/* Slots of tensor maps: what no driver takes is refused, each field of a map once. */
static void rows_with_maps(void)
{
    enum { FINE_AXIS = 1 | 0 << 4 | 128 << 8, FINE_BOX = 64 | 128 << 16 };
    static const struct {
        uint32_t param, axis, box;
        bool fine;
    } cases[] = {
        {0, FINE_AXIS, FINE_BOX, true},
        {0, 0 | 1 << 4 | 64 << 8, 32 | 256 << 16, true},
        {0, 1 | 32 << 8, 16 | 8 << 16, true},
        {0, 2 | 128 << 8, FINE_BOX, false}, /* of 2 axes */
        {0, 1 | 2 << 4 | 128 << 8, FINE_BOX, false},
        {0, 1 | 1 << 4 | 128 << 8, FINE_BOX, false}, /* one axis twice */
        {0, 1 | 16 << 8, 8 | 8 << 16, false},        /* rows of 16 bytes */
        {0, 1 | 256 << 8, 128 | 8 << 16, false},
        {0, 1 | 640u << 8, FINE_BOX, false}, /* 128, in the low bits */
        {0, FINE_AXIS | TILE_MAP_WIDE, FINE_BOX, true},
        {0, 1 | 64 << 8 | TILE_MAP_WIDE, 32 | 128 << 16, false}, /* too short for wide pieces */
        {0, FINE_AXIS, 0 | 128 << 16, false},
        {0, FINE_AXIS, 65 | 128 << 16, false}, /* wider than a row, */
        {0, FINE_AXIS, 32 | 128 << 16, false}, /* and less wide */
        {0, FINE_AXIS, 64 | 0 << 16, false},
        {0, FINE_AXIS, 64 | 257 << 16, false},
        {1, FINE_AXIS, FINE_BOX, false},        /* a pointer */
        {2, FINE_AXIS, FINE_BOX, false},        /* 6 axes */
        {3, FINE_AXIS, 256 | 128 << 16, false}, /* elements of 4 bits */
        {4, FINE_AXIS, FINE_BOX, false},        /* no parameter */
    };
    KernelSpec rows[2] = {{.name = "k",
                           .params = {{"x", "f16 view M,N"},
                                      {"p", "f16 pointer"},
                                      {"y", "f16 view A,B,C,D,E,F"},
                                      {"z", "u4 view M,N"}},
                           .grid = {"1"}}};
    tile_module *m = NULL;
    tile_image_slot maps[TL_MAX_MAPS + 1];
    rows[1] = rows[0];
    rows[1].flags = TILE_KERNEL_OTHERWISE;
    rows[0].tests[0] = (tile_image_test){TILE_TEST_POINTER, 0, 0, 0, 15};
    rows[0].maps = maps;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t n = 1; n <= TL_MAX_MAPS + 1; n += TL_MAX_MAPS) {
            for (uint32_t j = 0; j < n; j++)
                maps[j] = (tile_image_slot){TILE_SLOT_MAP, cases[i].param, cases[i].axis,
                                            cases[i].box};
            rows[0].nmaps = n;
            make_image(&maker, "fake", rows, 2);
            bool loads = tile_module_load_image(dev, maker.data, maker.size, &m) == TILE_OK;
            if (!CHECK(loads == (cases[i].fine && n == 1)))
                fprintf(stderr, "    case %zu, %u maps\n", i, n);
            if (loads)
                tile_module_free(m);
        }
    /* without tests there is no other row for views of which no map can be made */
    rows[0].nmaps = 1;
    maps[0] = (tile_image_slot){TILE_SLOT_MAP, 0, FINE_AXIS, FINE_BOX};
    rows[0].tests[0].mask = 0;
    make_image(&maker, "fake", rows, 1);
    CHECK_INT(tile_module_load_image(dev, maker.data, maker.size, &m), TILE_BAD_IMAGE);
    SAYS("tensor maps");
}

/* Views that a tensor map can be made of run the row that has one; others, for which its tests hold
 * too, the other one. */
static void choice_by_maps(void)
{
    enum { BOX = 64 | 128 << 16, ALONG_1 = 1 | 128 << 8 };
    static const tile_image_slot maps[] = {{TILE_SLOT_MAP, 0, ALONG_1, BOX},
                                           {TILE_SLOT_MAP, 1, ALONG_1, BOX}};
    KernelSpec rows[2] = {{.name = "k",
                           .params = {{"x", "f16 view M:s,N:t"}, {"y", "f16 view M:u,N"}},
                           .grid = {"1"}}};
    rows[1] = rows[0];
    rows[1].flags = TILE_KERNEL_OTHERWISE;
    rows[0].tests[0] = (tile_image_test){TILE_TEST_POINTER, 0, 0, 0, 15};
    rows[0].maps = maps;
    rows[0].nmaps = 2;
    uint16_t *p = (uint16_t *)(void *)memory;
    tile_kernel *k = get(&rows[0], 2, NULL);
    const int64_t e[2] = {4, 8}, wide[2] = {16, 1}, odd[2] = {9, 1}, back[2] = {-8, 1},
                  apart[2] = {32, 2}, one[2] = {1, 8};
#define RUNS(row, x, y)                                                                            \
    do {                                                                                           \
        ACCEPTED(k, 2, (x), (y));                                                                  \
        CHECK(seen.launch.kernel - rows_of(seen.launch.image) == (row));                           \
        CHECK_INT(seen.launch.nmaps, (row) ? 0 : 2);                                               \
    } while (0)
    RUNS(0, tile_view(p, 4, 8), tile_view(p + 64, 4, 8));
    RUNS(0, tile_view_strided(p, 2, e, wide), tile_view(p + 64, 4, 8));
    RUNS(1, tile_view_strided(p, 2, e, odd), tile_view(p + 64, 4, 8));
    RUNS(1, tile_view_strided(p, 2, e, back), tile_view(p + 64, 4, 8));
    RUNS(1, tile_view_strided(p, 2, e, apart), tile_view(p + 64, 4, 8));
    RUNS(1, tile_view(p, 4, 8), tile_view(p + 60, 4, 8)); /* the tests do not see this one */
    RUNS(1, tile_view(p, 4, 8), tile_view_strided(p + 64, 2, e, odd));
    RUNS(1, tile_view_strided(p, 2, one, odd), tile_view(p + 64, 1, 8)); /* walked or not */
    RUNS(0, tile_view(p, 0, 8), tile_view(p + 64, 0, 8));
#undef RUNS
}

/* A row that tests for whole clusters runs where there are some; else the other one does. */
static void rows_of_pairs(void)
{
    const KernelSpec specs[] = {
        {.name = "k",
         .params = {{"x", "f32 view N"}},
         .grid = {"N"},
         .cluster = 2,
         .tests = {{TILE_TEST_CLUSTER, 0, 0, 0, 1}}},
        {.name = "k",
         .params = {{"x", "f32 view N"}},
         .grid = {"N"},
         .cluster = 2,
         .flags = TILE_KERNEL_OTHERWISE},
    };
    tile_kernel *k = get(specs, 2, NULL);
    const int64_t own[1] = {7};
    tile_arg x = tile_view(memory, 8);
    CHECK_INT(tile_launch(k, NULL, &x, 1), TILE_OK);
    CHECK(seen.launch.kernel - rows_of(seen.launch.image) == 0 && seen.launch.cluster == 2);
    x = tile_view(memory, 7);
    CHECK_INT(tile_launch(k, NULL, &x, 1), TILE_OK);
    CHECK(seen.launch.kernel - rows_of(seen.launch.image) == 1 && seen.launch.cluster == 1);
    x = tile_view(memory, 8);
    CHECK_INT(tile_launch_grid(k, NULL, &x, 1, own, 1), TILE_OK);
    CHECK(seen.launch.kernel - rows_of(seen.launch.image) == 1 && seen.launch.cluster == 1);
}

/* The row with tests runs where they hold, the other one where one does not; each with slots of its
 * own. */
static void choice_of_rows(void)
{
    const KernelSpec specs[] = {
        {.name = "before", .grid = {"1"}},
        {.name = "k",
         .params = {{"x", "f32 view M:s,N"}, {"p", "f32 pointer"}, {"n", "i16 scalar"}},
         .grid = {"1"},
         .require = {"M 100 <;M < 100"},
         .tests = {{TILE_TEST_POINTER, 0, 0, 0, 15},
                   {TILE_TEST_EXTENT, 0, 1, 0, 3},
                   {TILE_TEST_STRIDE, 0, 0, 0, 3},
                   {TILE_TEST_SPAN, 0, 0, 0, ~UINT64_C(0x1fff)},
                   {TILE_TEST_POINTER, 1, 0, 0, 7},
                   {TILE_TEST_SCALAR, 2, 0, 0, UINT64_C(1) << 63 | 1},
                   {TILE_TEST_GRID, 0, 0, 0, 1}}},
        {.name = "k",
         .params = {{"x", "f32 view M:s,N"}, {"p", "f32 pointer"}, {"n", "i16 scalar"}},
         .grid = {"1"},
         .flags = TILE_KERNEL_OTHERWISE,
         .gpu = true},
        {.name = "k", .grid = {"1"}},
    };
    tile_kernel *k = get(&specs[0], 4, NULL);
    float *p = memory;
    const int64_t e[2] = {4, 8}, odd[2] = {9, 1}, back[2] = {-8, 1}, one[2] = {1, 8};
    CHECK_INT(tile_kernel_get(mod, "k", NULL, &k), TILE_OK);
    seen.loads = 0;
    CHECK_INT(tile_kernel_prepare(k), TILE_OK);
    CHECK_INT(seen.loads, 3); /* both rows, and the other variant */
    CHECK_INT(tile_kernel_prepare(k), TILE_OK);
    CHECK_INT(seen.loads, 3);
    CHECK_INT(tile_module_kernel_count(mod), 3);
    CHECK_STR(tile_module_kernel_name(mod, 2), "k");
    CHECK(tile_module_kernel_name(mod, 3) == NULL);
#define RUNS(row, nslots_, x, p, n)                                                                \
    do {                                                                                           \
        ACCEPTED(k, 3, (x), (p), (n));                                                             \
        CHECK(seen.launch.kernel - rows_of(seen.launch.image) == (row));                           \
        CHECK(seen.code == seen.launch.kernel);                                                    \
        CHECK_INT(seen.launch.nslots, (nslots_));                                                  \
    } while (0)
    RUNS(1, 7, tile_view(p, 4, 8), tile_ptr(p), tile_i16(2));
    RUNS(2, 10, tile_view(p + 1, 4, 8), tile_ptr(p), tile_i16(2)); /* address */
    RUNS(2, 10, tile_view(p, 4, 9), tile_ptr(p), tile_i16(2));     /* extent */
    RUNS(2, 10, tile_view_strided(p, 2, e, odd), tile_ptr(p), tile_i16(2));
    RUNS(1, 7, tile_view(p, 32, 32), tile_ptr(p), tile_i16(2)); /* a span of 4096 bytes */
    RUNS(2, 10, tile_view(p, 72, 32), tile_ptr(p), tile_i16(2));
    RUNS(2, 10, tile_view_strided(p, 2, e, back), tile_ptr(p), tile_i16(2));
    RUNS(1, 7, tile_view_strided(p, 2, one, back), tile_ptr(p), tile_i16(2)); /* nobody walks it */
    RUNS(1, 7, tile_view(p, 0, 8), tile_ptr(p), tile_i16(2));
    RUNS(2, 10, tile_view(p, 4, 8), tile_ptr(p + 1), tile_i16(2));
    RUNS(2, 10, tile_view(p, 4, 8), tile_ptr(p), tile_i16(3));
    RUNS(2, 10, tile_view(p, 4, 8), tile_ptr(p), tile_i16(-2)); /* its sign reaches bit 63 */
    CHECK_INT(seen.slots[7], 1);
    CHECK_INT(seen.slots[6], 0xfffe);
    tile_arg own[] = {tile_view(p, 4, 8), tile_ptr(p), tile_i16(2)};
    CHECK_INT(tile_launch_grid(k, NULL, own, 3, (int64_t[]){1}, 1), TILE_OK);
    CHECK(seen.launch.kernel - rows_of(seen.launch.image) == 2);
    REFUSED(k, 3, tile_view(p, 100, 8), tile_ptr(p), tile_i16(2));
    SAYS("'k'", "2 variants", "M < 100");
#undef RUNS
}

int main(void)
{
    CHECK_INT(tile_device_open("emu:broken", &dev), TILE_DRIVER);
    CHECK_INT(tile_device_open("emu:note", &dev), TILE_OK);
    extents();
    element_types();
    element_type_messages();
    alignment();
    largest_extents();
    special_extents();
    strides();
    packed();
    scalars();
    grids();
    grid_order();
    cluster_order();
    whole_clusters();
    rows_of_pairs();
    die_order();
    checked();
    common_elements();
    overlaps();
    buffers();
    checked_buffers();
    variants();
    order_of_messages();
    launch_slots();
    arguments_again();
    launch_divisors();
    damaged_images();
    rows_with_tests();
    rows_with_maps();
    choice_of_rows();
    choice_by_maps();
    tile_module_free(mod);
    tile_device_close(dev);
    return unit_result();
}
