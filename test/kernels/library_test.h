/* library_test.h: a test of libtilekernels on a device: the library, and what runs the parts of a
 * test file. */
#ifndef TL_TEST_LIBRARY_H
#define TL_TEST_LIBRARY_H
#include "test/kernels/arrays.h"
#include "test/unit/ok.h"

static tile_kernels *library;
static bool brief; /* devices other than cpu are slow */

/* The next of a fixed sequence of numbers in [-2, 2), exact in every type of floats. */
static inline double next(void)
{
    static unsigned state = 7;
    state = state * 1103515245 + 12345;
    return (double)((int)(state >> 16) % 64 - 32) / 16;
}

static inline void *numbers(tile_dtype type, int64_t n)
{
    void *p = aligned_alloc(64, ((size_t)n * 8 + 64) / 64 * 64);
    for (int64_t i = 0; p && i < n; i++)
        put(p, type, i, next());
    return p;
}

/* The call is refused, with that text in its error. */
#define WRONG(call, text)                                                                          \
    do {                                                                                           \
        CHECK_INT(call, TILE_BAD_ARGUMENT);                                                        \
        if (!CHECK(strstr(tile_last_error(), text)))                                               \
            fprintf(stderr, "    %s\n", tile_last_error());                                        \
    } while (0)

/* A call with arguments as they should be, which are declared last, but for one change. */
#define WRONG_BUT(change, call, text, ...)                                                         \
    do {                                                                                           \
        __VA_ARGS__;                                                                               \
        change;                                                                                    \
        WRONG(call, text);                                                                         \
    } while (0)

/* Runs each of the types that the library was built for, with that of its products, then the rest,
 * on the device that the program's argument names. */
static inline int run_on_device(int argc, char **argv, void (*each)(tile_dtype, tile_dtype),
                                void (*rest)(void))
{
    static const tile_dtype types[][2] = {
#define TYPE(type, result) {TILE_##type, TILE_##result},
        TEST_TYPES
#undef TYPE
    };
    tile_device *device = NULL;
    OK(tile_device_open(argc > 1 ? argv[1] : "cpu", &device));
    OK(tile_set_default_device(device));
    OK(tile_kernels_open(device, &library));
    if (!library)
        return unit_result();
    brief = argc > 1 && strcmp(argv[1], "cpu") != 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        each(types[i][0], types[i][1]);
    rest();
    tile_kernels_close(library);
    tile_device_close(device);
    return unit_result();
}

static inline bool is_float_below_64(tile_dtype type)
{
    return type == TILE_F32 || type == TILE_F16 || type == TILE_BF16;
}

/* Rounded once to the type, but for `bound`. */
static inline bool is_near(tile_dtype type, double got, double want, double bound)
{
    return fabs(got - want) <= rounding(type) * fabs(want) + bound || got == want;
}
#endif
