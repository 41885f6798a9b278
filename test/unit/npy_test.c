/* .npy files: what is read, what is written, what is refused. The reader is a tool's file, taken in
 * here. */
#include "test/unit/unit.h"
#include "tools/npy.c"
#include <unistd.h>

static char error[NPY_ERROR_BYTES];

/* A file of version `major` with that header text and n bytes of data. */
static size_t make_file(char *out, int major, const char *header, const void *data, size_t n)
{
    size_t h = strlen(header), prefix = major == 1 ? 10 : 12;
    const char start[12] = {'\x93',         'N', 'U', 'M', 'P', 'Y', (char)major, 0, (char)h,
                            (char)(h >> 8), 0,   0};
    memcpy(out, start, prefix);
    memcpy(out + prefix, header, h);
    if (n)
        memcpy(out + prefix + h, data, n);
    return prefix + h + n;
}

static bool parse(int major, const char *header, const void *data, size_t n, NpyArray *a)
{
    char file[1024];
    size_t size = make_file(file, major, header, data, n);
    char *exact = malloc(size);
    memcpy(exact, file, size);
    bool ok = npy_parse(exact, size, a, error);
    free(exact);
    return ok;
}

static void good(void)
{
    const float f[6] = {1, 2, 3, 4, 5, 6};
    NpyArray a;
    CHECK(parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }    \n", f, sizeof f,
                &a));
    CHECK(a.rank == 2 && a.shape[0] == 2 && a.shape[1] == 3 && !a.fortran && a.item == 4 &&
          a.bytes == 24);
    CHECK_STR(a.descr, "<f4");
    CHECK(memcmp(a.data, f, sizeof f) == 0);
    free(a.data);
    CHECK(parse(2, "{\"shape\":(6L,),\"fortran_order\":True,\"descr\":\"<f4\"}", f, sizeof f, &a));
    CHECK(a.rank == 1 && a.shape[0] == 6 && a.fortran);
    free(a.data);
    CHECK(parse(1, "{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\1", 1, &a));
    CHECK(a.rank == 0 && a.bytes == 1);
    free(a.data);
    CHECK(parse(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 5)}", NULL, 0, &a));
    CHECK(a.bytes == 0 && a.shape[0] == 0);
    free(a.data);
    const unsigned char big[4] = {1, 2, 3, 4};
    CHECK(parse(1, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", big, 4, &a));
    CHECK_STR(a.descr, "<u2");
    CHECK(((unsigned char *)a.data)[0] == 2 && ((unsigned char *)a.data)[3] == 3);
    free(a.data);
    CHECK(parse(1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "12345678", 8, &a));
    CHECK_STR(a.descr, "<c8");
    free(a.data);
}

static void bad(void)
{
    static const char *const headers[] = {
        "",
        "{",
        "{}",
        "[1]",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'shape': (1,)}",
        "{'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1",
        "{'descr': '<f4",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f0', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
    };
    NpyArray a;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (!CHECK(!parse(1, headers[i], "12345678", 8, &a)))
            fprintf(stderr, "    accepted: %s\n", headers[i]);
    CHECK(!parse(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "1234", 4, &a));
    CHECK(!npy_parse("\x93NUMPY\1", 7, &a, error));
    CHECK(!npy_parse("PK\3\4aaaaaaaaaaaaaaa", 16, &a, error));
    CHECK(!npy_parse("\x93NUMPY\1\0\xff\xff{}", 12, &a, error));
    CHECK(!npy_load("no/such/file.npy", &a, error));
    CHECK(strstr(error, "No such file") != NULL);
    char file[256];
    size_t size = make_file(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
                            "12345678", 8);
    for (size_t n = 0; n < size; n++) {
        char *exact = malloc(n + 1);
        memcpy(exact, file, n);
        CHECK(!npy_parse(exact, n, &a, error));
        free(exact);
    }
}

static void round_trip(void)
{
    double data[6] = {1, 2, 3, 4, 5, 6};
    NpyArray a = {.descr = "<f8",
                  .item = 8,
                  .fortran = true,
                  .rank = 3,
                  .shape = {1, 2, 3},
                  .bytes = sizeof data,
                  .data = data},
             b;
    for (a.rank = 0; a.rank <= 3; a.rank++) {
        a.bytes = a.rank == 3 ? 48 : a.rank == 2 ? 16 : 8;
        size_t size;
        void *file = npy_format(&a, &size);
        if (!CHECK(file && npy_parse(file, size, &b, error)))
            continue;
        free(file);
        CHECK(b.rank == a.rank && b.bytes == a.bytes && b.fortran &&
              memcmp(a.data, b.data, a.bytes) == 0);
        CHECK(memcmp(a.shape, b.shape, sizeof *a.shape * (size_t)a.rank) == 0);
        CHECK_STR(b.descr, "<f8");
        free(b.data);
    }
    CHECK(!npy_load("/no/such/folder/x.npy", &b, error));
}

int main(void)
{
    good();
    bad();
    round_trip();
    return unit_result();
}
