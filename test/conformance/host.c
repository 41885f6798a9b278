/* The conformance rows' main job from C: loads a kernel from source, launches it on arrays of .npy
 * files, writes what the kernel wrote. Uses nothing but the public headers, as a user's program
 * would; run.py compares the results.
 *
 *     conformance_host DEVICE FILE.tile KERNEL NAME=VALUE... -- ARG...
 *
 * A NAME=VALUE is a constant. An ARG, one per parameter in order, is TYPE:FILE.npy (a view; memory
 * of the device, and what is in it after the launch goes to FILE.npy.out) or f32=NUMBER or
 * i32=NUMBER. Arrays are little-endian and row-major. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/include/tile.h"
#include "runtime/include/tile_jit.h"

enum { MAX_ARGS = 16, MAX_CONSTS = 16, MAX_PATH_BYTES = 1024 };

typedef struct Array {
    char *file;            /* whole .npy file */
    size_t header, bytes;  /* data begins at file + header */
    int rank;
    int64_t shape[TILE_MAX_RANK];
    const char *path;
    tile_buffer *memory;
} Array;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void must(tile_status status, const char *what)
{
    if (status != TILE_OK)
        die(what, tile_last_error());
}

static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        die(path, "cannot be read");
    long n = ftell(f);
    rewind(f);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (!text || fread(text, 1, (size_t)n, f) != (size_t)n)
        die(path, "cannot be read");
    fclose(f);
    text[n] = 0;
    *size = (size_t)n;
    return text;
}

/* Version 1: magic, version, u16 length of the header, a Python dictionary with 'shape': (a, b,
 * c). */
static Array read_npy(const char *path)
{
    Array a = {0};
    size_t size;
    a.path = path;
    a.file = read_file(path, &size);
    if (size < 10 || memcmp(a.file, "\x93NUMPY\x01", 7))
        die(path, "not a .npy file of version 1");
    a.header = 10 + (unsigned char)a.file[8] + 256u * (unsigned char)a.file[9];
    if (a.header > size || strstr(a.file + 10, "'fortran_order': True"))
        die(path, "not row-major");
    a.bytes = size - a.header;
    const char *p = strstr(a.file + 10, "'shape': (");
    if (!p)
        die(path, "no shape");
    for (p += 10; *p != ')' && a.rank < TILE_MAX_RANK; a.rank++) {
        char *end;
        a.shape[a.rank] = strtoll(p, &end, 10);
        for (p = end; *p == ',' || *p == ' ';)
            p++;
    }
    return a;
}

static void write_back(const Array *a)
{
    char path[MAX_PATH_BYTES];
    snprintf(path, sizeof path, "%s.out", a->path);
    must(tile_buffer_download(a->memory, 0, a->file + a->header, a->bytes, NULL), "download");
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(a->file, 1, a->header + a->bytes, f) != a->header + a->bytes || fclose(f))
        die(path, "cannot be written");
}

static tile_dtype dtype_named(const char *name, size_t length)
{
    for (int d = TILE_BOOL; d <= TILE_F64; d++)
        if (strlen(tile_dtype_name((tile_dtype)d)) == length &&
            !strncmp(tile_dtype_name((tile_dtype)d), name, length))
            return (tile_dtype)d;
    die(name, "unknown element type");
    return TILE_ANY;
}

/* "f16:x.npy", "f32=0.5" or "i32=7" */
static tile_arg read_arg(char *word, tile_device *device, Array *array)
{
    if (!strncmp(word, "f32=", 4))
        return tile_f32(strtof(word + 4, NULL));
    if (!strncmp(word, "i32=", 4))
        return tile_i32((int32_t)strtol(word + 4, NULL, 10));
    char *colon = strchr(word, ':');
    if (!colon)
        die(word, "not TYPE:FILE.npy, f32=NUMBER or i32=NUMBER");
    *array = read_npy(colon + 1);
    must(tile_buffer_alloc(device, array->bytes, &array->memory), "alloc");
    must(tile_buffer_upload(array->memory, 0, array->file + array->header, array->bytes, NULL),
         "upload");
    const int64_t *n = array->shape;
    tile_dtype dtype = dtype_named(word, (size_t)(colon - word));
    return tile_arg_view(tile_buffer_ptr(array->memory), dtype, array->rank, n[0], n[1], n[2], n[3],
                         n[4], n[5], n[6], n[7]);
}

static tile_const read_const(char *word)
{
    char *equal = strchr(word, '='), *end;
    if (!equal)
        die(word, "not NAME=VALUE");
    *equal = 0;
    tile_const c = {word, strtoll(equal + 1, &end, 10), NULL};
    if (*end)
        c.text = equal + 1;
    return c;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        die(argv[0], "DEVICE FILE.tile KERNEL NAME=VALUE... -- ARG...");
    tile_const consts[MAX_CONSTS + 1] = {{0}};
    int at = 4, nconsts = 0, nargs = 0;
    for (; at < argc && strcmp(argv[at], "--") && nconsts < MAX_CONSTS; at++)
        consts[nconsts++] = read_const(argv[at]);

    tile_device *device;
    tile_module *module;
    tile_kernel *kernel;
    must(tile_device_open(argv[1], &device), argv[1]);
    must(tile_set_default_device(device), "default device");
    must(tile_module_load_file(device, argv[2], NULL, &module), argv[2]);
    must(tile_kernel_get(module, argv[3], consts, &kernel), argv[3]);

    Array arrays[MAX_ARGS] = {{0}};
    tile_arg args[MAX_ARGS];
    for (at++; at < argc && nargs < MAX_ARGS; at++, nargs++)
        args[nargs] = read_arg(argv[at], device, &arrays[nargs]);
    must(tile_launch_prepare(kernel, args, (size_t)nargs, NULL), "prepare"); /* their form */
    must(tile_launch(kernel, NULL, args, (size_t)nargs), "launch");
    must(tile_stream_synchronize(NULL), "synchronize");

    for (int i = 0; i < nargs; i++) {
        if (arrays[i].memory)
            write_back(&arrays[i]);
        tile_buffer_free(arrays[i].memory);
        free(arrays[i].file);
    }
    tile_module_free(module);
    tile_set_default_device(NULL);
    tile_device_close(device);
    return 0;
}
