/* Reads of memory that nothing has written, on ref, through tile.h: what counts as written, what is
 * reported, and where. */
#include "runtime/include/tile.h"
#include "runtime/include/tile_jit.h"
#include "test/unit/unit.h"

enum { N = 8, BYTES = N * 4 };

static const char source[] = "kernel copy(const i32 x[N : step], i32 y[M]) grid(1) alias(x, y)\n"
                             "{\n"
                             "    y[0 +: 8] = x[0 +: 8];\n" /* line 3 */
                             "}\n"
                             "kernel put(i32 x[N], i32 from, i32 to) grid(1)\n"
                             "{\n"
                             "    for (int i = from; i < to; i += 1)\n"
                             "        x[i] = i;\n"
                             "}\n"
                             "kernel count(i32 x[N]) grid(1)\n"
                             "{\n"
                             "    atomic_add(x[0 +: 8], 1);\n" /* line 12 */
                             "}\n"
                             "kernel set(i32 x[N]) grid(1)\n"
                             "{\n"
                             "    atomic_store(x[2], 5);\n"
                             "}\n"
                             "kernel at(const i32 *p, i32 i, i32 y[M]) grid(1)\n"
                             "{\n"
                             "    y[0] = load(p + i);\n" /* line 20 */
                             "}\n"
                             "kernel nibbles(const i4 x[N], i32 y[N]) grid(1)\n"
                             "{\n"
                             "    y[0 +: 8] = cast(x[0 +: 8], i32);\n" /* line 24 */
                             "}\n";

static tile_device *dev;
static tile_module *checked, *plain;
static char failure[512];
static int32_t host[N], other[N];

static void on_failure(void *user, const char *text)
{
    (void)user;
    snprintf(failure, sizeof failure, "%s", text);
}

static tile_status run_on(tile_module *mod, const char *name, tile_stream *stream,
                          const tile_arg *args, size_t nargs)
{
    tile_kernel *k = NULL;
    failure[0] = 0;
    tile_status s = tile_kernel_get(mod, name, NULL, &k);
    if (s == TILE_OK)
        s = tile_launch(k, stream, args, nargs);
    if (s == TILE_OK)
        s = tile_stream_synchronize(stream);
    if (s != TILE_OK && s != TILE_FAILED)
        fprintf(stderr, "%s: %s\n", name, tile_last_error());
    return s;
}
#define RUN(name, ...)                                                                             \
    run_on(checked, name, NULL, (tile_arg[]){__VA_ARGS__},                                         \
           sizeof((tile_arg[]){__VA_ARGS__}) / sizeof(tile_arg))
#define PLAIN(name, ...)                                                                           \
    run_on(plain, name, NULL, (tile_arg[]){__VA_ARGS__},                                           \
           sizeof((tile_arg[]){__VA_ARGS__}) / sizeof(tile_arg))
#define FAILS(call, place, what)                                                                   \
    do {                                                                                           \
        tile_status status_ = (call);                                                              \
        CHECK_INT(status_, TILE_FAILED);                                                           \
        if (!CHECK(strstr(failure, place) && strstr(failure, "uninitialised") &&                   \
                   strstr(failure, what)))                                                         \
            fprintf(stderr, "    not '%s', '%s': %s\n", place, what, failure);                     \
    } while (0)
#define OK(call)                                                                                   \
    do {                                                                                           \
        tile_status status_ = (call);                                                              \
        CHECK_INT(status_, TILE_OK);                                                               \
    } while (0)

static tile_buffer *fresh(uint64_t bytes)
{
    tile_buffer *b = NULL;
    OK(tile_buffer_alloc(dev, bytes, &b));
    return b;
}

static tile_arg view(tile_buffer *b, int64_t first, int64_t n)
{
    return tile_view_typed(TILE_I32, (int32_t *)tile_buffer_ptr(b) + first, n);
}

static tile_arg host_view(void)
{
    return tile_view(host, N);
}

static void copies_and_fills(void)
{
    tile_buffer *b = fresh(BYTES);
    FAILS(RUN("copy", view(b, 0, N), host_view()), "u.tile:3:", "x + 0,");
    OK(tile_buffer_upload(b, 0, host, 12, NULL));
    FAILS(RUN("copy", view(b, 0, N), host_view()), "u.tile:3:", "x + 12,");
    OK(RUN("copy", view(b, 0, 3), host_view())); /* what is outside of the view is not read */
    OK(tile_buffer_upload(b, 16, host, 4, NULL));
    OK(tile_buffer_fill(b, 20, 0, 11, NULL));
    FAILS(RUN("copy", view(b, 0, N), host_view()), "u.tile:3:", "x + 12,");
    OK(tile_buffer_fill(b, 12, 7, 4, NULL));
    FAILS(RUN("copy", view(b, 0, N), host_view()), "u.tile:3:", "x + 28,"); /* three of its bytes */
    OK(tile_buffer_fill(b, 31, 7, 1, NULL));
    OK(RUN("copy", view(b, 0, N), host_view()));
    CHECK_INT(host[3], 0x07070707);
    OK(tile_buffer_download(b, 0, host, BYTES, NULL));
    tile_buffer_free(b);
}

static void kernels_write(void)
{
    tile_buffer *b = fresh(BYTES), *c = fresh(BYTES);
    OK(RUN("put", view(b, 0, N), tile_i32(0), tile_i32(7)));
    FAILS(RUN("copy", view(b, 0, N), host_view()), "u.tile:3:", "x + 28,");
    OK(RUN("put", view(b, 0, N), tile_i32(7), tile_i32(8)));
    OK(RUN("copy", view(b, 0, N), view(c, 0, N)));
    OK(RUN("copy", view(c, 0, N), view(b, 0, N)));
    tile_buffer_free(c);
    c = fresh(BYTES);
    FAILS(RUN("count", view(c, 0, N)), "u.tile:12:", "atomic");
    OK(RUN("count", view(c, 0, N))); /* reported once: the atomic has written it */
    tile_buffer_free(c);
    c = fresh(BYTES);
    OK(RUN("set", view(c, 0, N)));
    OK(RUN("copy", view(c, 2, 1), host_view()));
    FAILS(RUN("copy", view(c, 2, 2), host_view()), "u.tile:3:", "x + 4,");
    tile_buffer_free(b);
    tile_buffer_free(c);
}

/* Parts of a buffer, pointers into it, the same buffer twice, host memory, nothing at all. */
static void places(void)
{
    tile_buffer *b = fresh(BYTES);
    int32_t *p = tile_buffer_ptr(b);
    OK(RUN("put", view(b, 4, 2), tile_i32(0), tile_i32(2))); /* elements 4 and 5 */
    OK(RUN("copy", view(b, 4, 2), host_view()));
    FAILS(RUN("copy", view(b, 3, 2), host_view()), "u.tile:3:", "x + 0,");
    OK(RUN("at", tile_ptr(p), tile_i32(5), host_view()));
    OK(RUN("at", tile_ptr(p + 4), tile_i32(1), host_view()));
    FAILS(RUN("at", tile_ptr(p + 4), tile_i32(2), host_view()), "u.tile:20:", "p + 8,");
    FAILS(RUN("at", tile_ptr(p), tile_i32(3), host_view()), "u.tile:20:", "p + 12,");
    OK(RUN("at", tile_ptr(other), tile_i32(3), host_view()));
    tile_arg strided = view(b, 4, 2);
    strided.strided = 1;
    strided.stride[0] = 3;
    FAILS(RUN("copy", strided, host_view()), "u.tile:3:", "x + 12,");
    FAILS(RUN("copy", view(b, 0, 2), view(b, 6, 2)), "u.tile:3:", "x + 0,");
    tile_arg liar = tile_ptr_sized(p + 4, 4096);
    CHECK_INT(RUN("at", liar, tile_i32(100), host_view()), TILE_FAILED);
    CHECK(strstr(failure, "out of bounds") && strstr(failure, "its 16 bytes"));
    tile_buffer *none = fresh(0);
    OK(tile_buffer_upload(none, 0, host, 0, NULL));
    OK(RUN("copy", view(none, 0, 0), host_view()));
    tile_buffer_free(none);
    tile_buffer_free(b);
}

static void unchecked(void)
{
    tile_buffer *b = fresh(BYTES);
    OK(PLAIN("copy", view(b, 0, N), host_view())); /* reads what is there; const: writes nothing */
    CHECK_INT((uint32_t)host[0], 0xABABABAB);
    FAILS(RUN("copy", view(b, 0, N), host_view()), "u.tile:3:", "x + 0,");
    OK(PLAIN("put", view(b, 0, N), tile_i32(0), tile_i32(1)));
    OK(RUN("copy", view(b, 0, N), host_view()));
    tile_buffer_free(b);
    b = fresh(BYTES); /* likely at the same address: nothing is left of the other */
    FAILS(RUN("copy", view(b, 0, N), host_view()), "u.tile:3:", "x + 0,");
    tile_buffer_free(b);
}

static void packed(void)
{
    tile_buffer *b = fresh(4);
    const tile_arg x = tile_view_typed(TILE_I4, tile_buffer_ptr(b), N);
    OK(tile_buffer_fill(b, 0, 0x21, 3, NULL));
    FAILS(RUN("nibbles", x, host_view()), "u.tile:24:", "x + 3,");
    OK(tile_buffer_fill(b, 3, 0x43, 1, NULL));
    OK(RUN("nibbles", x, host_view()));
    CHECK(host[0] == 1 && host[6] == 3 && host[7] == 4);
    tile_buffer_free(b);
}

/* A stream with a thread of its own: marks are made in its order. */
static void streams(void)
{
    tile_stream *s = NULL;
    tile_buffer *b = fresh(BYTES);
    tile_arg args[] = {view(b, 0, N), host_view()};
    OK(tile_stream_create(dev, &s));
    FAILS(run_on(checked, "copy", s, args, 2), "u.tile:3:", "x + 0,");
    tile_kernel *k = NULL;
    failure[0] = 0;
    OK(tile_kernel_get(checked, "copy", NULL, &k));
    OK(tile_launch(k, s, args, 2));
    /* comes after the read, however early it is asked for */
    OK(tile_buffer_fill(b, 0, 1, BYTES, s));
    FAILS(tile_stream_synchronize(s), "u.tile:3:", "x + 0,");
    OK(run_on(checked, "copy", s, args, 2));
    CHECK_INT(host[7], 0x01010101);
    tile_stream_free(s);
    tile_buffer_free(b);
}

int main(void)
{
    tile_callbacks callbacks = TILE_CALLBACKS_INIT;
    tile_jit_options options = TILE_JIT_OPTIONS_INIT;
    callbacks.failure = on_failure;
    if (!CHECK(tile_device_open("ref", &dev) == TILE_OK))
        return unit_result();
    OK(tile_set_default_device(dev));
    OK(tile_device_set_callbacks(dev, &callbacks));
    size_t size = sizeof source - 1;
    OK(tile_module_load_source(dev, "u.tile", source, size, &options, &plain));
    options.check = 1;
    OK(tile_module_load_source(dev, "u.tile", source, size, &options, &checked));
    copies_and_fills();
    kernels_write();
    places();
    unchecked();
    packed();
    streams();
    tile_module_free(plain);
    tile_module_free(checked);
    tile_set_default_device(NULL);
    tile_device_close(dev);
    return unit_result();
}
