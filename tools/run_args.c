/* run_args.c: arrays and scalars for `tilec run`.
 *
 * The generators' random numbers are those of std.random, so that a kernel can make the same:
 * Philox-4x32-10 with key SEED and counter the row-major index; uniform = (word 0 >> 8) * 2^-24;
 * normal by Box-Muller of words 0 and 1, in double precision, then rounded to the element type.
 * nan[...] is what a kernel must overwrite: NaN for floats, bytes 0xAA for integers. uninit[...] is
 * device memory that nothing has written; here it has only a place to fetch it to. */
#define TILE_UNSTABLE
#include "tools/run_args.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/numeric.h"
#include "ir/support/ascii.h"
#include "ir/support/number.h"
#include "runtime/contract/tile_image.h"
#include "tools/npy.h"

_Static_assert((int)MAX_ARRAY_RANK == (int)NPY_MAX_RANK, "ranks");

static bool is_packed(tile_dtype t)
{
    return tile_dtype_bits(t) == 4;
}

static bool is_float(tile_dtype t)
{
    return tl_is_float((TlDtype)t);
}

/* ---- random numbers ---- */

static void philox(uint64_t seed, uint64_t index, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c[4] = {(uint32_t)index, (uint32_t)(index >> 32), 0, 0};
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xD2511F53u * c[0], q = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t next[4] = {(uint32_t)(q >> 32) ^ c[1] ^ k0, (uint32_t)q,
                                  (uint32_t)(p >> 32) ^ c[3] ^ k1, (uint32_t)p};
        memcpy(c, next, sizeof c);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}

static double uniform(uint64_t seed, uint64_t index)
{
    uint32_t w[4];
    philox(seed, index, w);
    return (w[0] >> 8) * 0x1p-24;
}

static double normal(uint64_t seed, uint64_t index)
{
    uint32_t w[4];
    philox(seed, index, w);
    double u = ((w[0] >> 8) + 1) * 0x1p-24, v = (w[1] >> 8) * 0x1p-24;
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

/* ---- texts ---- */

/* An integer of any of the types, or false. */
static bool read_integer(const char *text, bool *out_negative, uint64_t *out)
{
    char *end;
    const char *digits = *text == '-' || *text == '+' ? text + 1 : text;
    *out_negative = *text == '-';
    if (!tl_is_digit((unsigned char)*digits))
        return false;
    errno = 0;
    *out = strtoull(digits, &end, 0);
    return *end == 0 && errno == 0;
}

static bool fits(tile_dtype t, bool negative, uint64_t magnitude)
{
    int bits = tile_dtype_bits(t);
    bool is_signed = tl_is_signed((TlDtype)t);
    if (!is_signed)
        return (!negative || magnitude == 0) && (bits == 64 || magnitude >> bits == 0);
    uint64_t limit = UINT64_C(1) << (bits - 1);
    return negative ? magnitude <= limit : magnitude < limit;
}

/* One element's bits from a number as text. */
static bool read_element(tile_dtype t, const char *text, uint64_t *out)
{
    bool negative;
    uint64_t magnitude;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *out = text[0] == 't';
        return t == TILE_BOOL;
    }
    if (is_float(t)) {
        char *end;
        double v = tl_number_read(text, &end);
        *out = t == TILE_F32 ? tl_bits_from_double(TL_F32, (double)tl_number_read_f32(text, NULL))
                             : tl_bits_from_double((TlDtype)t, v);
        return end != text && *end == 0;
    }
    if (!read_integer(text, &negative, &magnitude))
        return false;
    if (t == TILE_BOOL) {
        *out = magnitude;
        return magnitude <= 1 && !negative;
    }
    *out = tl_bits_from_uint((TlDtype)t, negative ? 0 - magnitude : magnitude);
    return fits(t, negative, magnitude);
}

/* ---- arrays ---- */

static int allocate(RunArg *a)
{
    if (a->bytes > (uint64_t)PTRDIFF_MAX - 64)
        return usage_error("%s=%s: larger than memory", a->param.name, a->value);
    a->data = aligned_alloc(64, (a->bytes + 64) / 64 * 64);
    return a->data ? EXIT_FINE : usage_error("%s=%s: out of memory", a->param.name, a->value);
}

/* The element type of a file: the parameter's where the file's form is the one it is kept in. */
static bool dtype_of_descr(tile_dtype wanted, const char *descr, tile_dtype *out)
{
    if (strcmp(tl_dtype_numpy((TlDtype)wanted), descr) == 0) {
        *out = wanted;
        return true;
    }
    for (int t = 0; t < TL_DTYPE_COUNT; t++)
        if (strcmp(tl_dtype_numpy((TlDtype)t), descr) == 0) {
            *out = (tile_dtype)t;
            return true;
        }
    return false;
}

static int load_array(RunArg *a)
{
    char error[NPY_ERROR_BYTES];
    NpyArray n;
    if (!npy_load(a->value + 1, &n, error))
        return usage_error("%s=%s: %s", a->param.name, a->value, error);
    a->data = n.data;
    a->bytes = n.bytes;
    a->rank = n.rank;
    a->fortran = n.fortran;
    memcpy(a->shape, n.shape, sizeof a->shape);
    memcpy(a->descr, n.descr, sizeof a->descr);
    if (!dtype_of_descr(a->param.dtype, n.descr, &a->dtype)) {
        fprintf(stderr, "tilec: parameter '%s' expects elements of type %s, the file has '%s'\n",
                a->param.name, tile_dtype_name(a->param.dtype), n.descr);
        return EXIT_RUN;
    }
    if (is_packed(a->dtype) && n.rank > 0)
        a->last_elements = 2 * n.shape[n.rank - 1];
    return EXIT_FINE;
}

/* "[128,1000]" after the generator; elements, also of packed types. */
static bool read_shape(const char *text, RunArg *a)
{
    if (*text++ != '[')
        return false;
    for (a->rank = 0; *text != ']'; a->rank++) {
        char *end;
        errno = 0;
        if (a->rank == MAX_ARRAY_RANK || !tl_is_digit((unsigned char)*text))
            return false;
        a->shape[a->rank] = strtoll(text, &end, 10);
        if (errno || (*end != ',' && *end != ']'))
            return false;
        text = *end == ',' ? end + 1 : end;
        text += strspn(text, " ");
    }
    return text[1] == 0;
}

/* Lays out what `shape` says in elements; packed types: rows begin on a byte. */
static bool measure(RunArg *a)
{
    uint64_t bytes = is_packed(a->dtype) ? 1 : (uint64_t)tile_dtype_bits(a->dtype) / 8;
    if (is_packed(a->dtype) && a->rank > 0) {
        a->last_elements = a->shape[a->rank - 1];
        a->shape[a->rank - 1] = (a->last_elements + 1) / 2;
    }
    for (int i = 0; i < a->rank; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)a->shape[i], &bytes))
            bytes = UINT64_MAX / 2;
    a->bytes = bytes;
    return true;
}

typedef enum Maker {
    MAKE_ZEROS,
    MAKE_FULL,
    MAKE_IOTA,
    MAKE_UNIFORM,
    MAKE_NORMAL,
    MAKE_NAN,
    MAKE_UNINIT
} Maker;
static const struct MakerRow {
    const char *name;
    bool takes_value;
} makers[] = {{"zeros", false},  {"full", true},   {"iota", false},
              {"uniform", true}, {"normal", true}, {"nan", false},  {"uninit", false}};

static uint64_t made_element(Maker m, tile_dtype t, uint64_t value, uint64_t index)
{
    switch (m) {
    case MAKE_ZEROS: return 0;
    case MAKE_FULL: return value;
    case MAKE_IOTA: return tl_bits_from_uint((TlDtype)t, index);
    case MAKE_UNIFORM: return tl_bits_from_double((TlDtype)t, uniform(value, index));
    case MAKE_NORMAL: return tl_bits_from_double((TlDtype)t, normal(value, index));
    case MAKE_UNINIT:
    case MAKE_NAN: return tl_bits_from_double((TlDtype)t, (double)NAN);
    }
    return 0;
}

/* Element i of the whole array, row-major; packed ones two to a byte, the low half first. */
static void set_element(RunArg *a, uint64_t i, uint64_t bits)
{
    if (!is_packed(a->dtype)) {
        memcpy((char *)a->data + i * (uint64_t)(tile_dtype_bits(a->dtype) / 8), &bits,
               (size_t)tile_dtype_bits(a->dtype) / 8);
        return;
    }
    uint64_t row = a->rank ? (uint64_t)a->last_elements : 1,
             row_bytes = a->rank ? (uint64_t)a->shape[a->rank - 1] : 1;
    uint8_t *byte = (uint8_t *)a->data + i / row * row_bytes + i % row / 2;
    *byte = (uint8_t)(i % row % 2 ? (*byte & 0x0f) | bits << 4 : (*byte & 0xf0) | (bits & 15));
}

static uint64_t count_elements(const RunArg *a)
{
    if (!is_packed(a->dtype))
        return a->bytes / (uint64_t)(tile_dtype_bits(a->dtype) / 8);
    uint64_t row_bytes = a->rank ? (uint64_t)a->shape[a->rank - 1] : 1;
    return row_bytes ? a->bytes / row_bytes * (a->rank ? (uint64_t)a->last_elements : 1) : 0;
}

static void fill(RunArg *a)
{
    Maker m = (Maker)a->maker;
    if (a->uninit)
        m = MAKE_NAN; /* never seen, but the host's memory holds something */
    memset(a->data, m == MAKE_NAN && !is_float(a->dtype) ? (a->dtype == TILE_BOOL ? 1 : 0xAA) : 0,
           a->bytes);
    if (m == MAKE_ZEROS || (m == MAKE_NAN && (!is_float(a->dtype) || is_packed(a->dtype))))
        return;
    uint64_t n = count_elements(a);
    for (uint64_t i = 0; i < n; i++)
        set_element(a, i, made_element(m, a->dtype, a->maker_value, i));
}

/* The value between parentheses: a number of the element type for full, a seed for the random
 * ones. */
static int read_value(const RunArg *a, Maker m, const char *text, uint64_t *out)
{
    bool negative;
    if (m == MAKE_FULL)
        return read_element(a->dtype, text, out)
                   ? EXIT_FINE
                   : usage_error("%s=%s: '%s' is not a value of type "
                                 "%s", a->param.name, a->value, text,
                                 tile_dtype_name(a->dtype));
    return read_integer(text, &negative, out) && !negative
               ? EXIT_FINE
               : usage_error("%s=%s: a seed is a whole number", a->param.name, a->value);
}

/* Where the value looks like a made array, what is wrong with it; the whole list otherwise. */
static int no_array(const RunArg *a)
{
    size_t open = strcspn(a->value, "["), length = strcspn(a->value + open, "]");
    const char *inside = a->value + open + 1;
    if (a->value[open] && length > 1 && inside[strspn(inside, " 0123456789,]")])
        return usage_error("%s=%s: dimensions are numbers, as in normal(1)[128,1000], not '%.*s'",
                           a->param.name, a->value, (int)length - 1, inside);
    return usage_error("%s=%s: '%s' is an array of %s; give @FILE.npy, &OTHER, or one of "
                       "zeros[DIMS], full(V)[DIMS], iota[DIMS], "
                       "uniform(SEED)[DIMS], normal(SEED)[DIMS], nan[DIMS], uninit[DIMS]%s",
                       a->param.name, a->value, a->param.name, tile_dtype_name(a->param.dtype),
                       a->param.dtype == TILE_U64 ? ", addresses(A,B+BYTES)" : "");
}

static int make_array(RunArg *a, bool empty)
{
    char inside[64] = "";
    const char *open = a->value + strcspn(a->value, "(["), *shape = open;
    if (*open == '(') {
        size_t n = strcspn(open, ")");
        if (!open[n] || n - 1 >= sizeof inside)
            return no_array(a);
        memcpy(inside, open + 1, n - 1);
        shape = open + n + 1;
    }
    size_t m = 0, count = sizeof makers / sizeof *makers, length = (size_t)(open - a->value);
    while (m < count &&
           (strlen(makers[m].name) != length || strncmp(makers[m].name, a->value, length) != 0))
        m++;
    if (m == count || makers[m].takes_value != (*open == '(') || !read_shape(shape, a))
        return no_array(a);
    uint64_t value = 0;
    a->dtype = a->param.dtype;
    snprintf(a->descr, sizeof a->descr, "%s", tl_dtype_numpy((TlDtype)a->dtype));
    if ((m == MAKE_UNIFORM || m == MAKE_NORMAL) && !is_float(a->dtype))
        return usage_error("%s=%s: random numbers are floats, '%s' is of %s", a->param.name,
                           a->value, a->param.name, tile_dtype_name(a->dtype));
    int status = makers[m].takes_value ? read_value(a, (Maker)m, inside, &value) : EXIT_FINE;
    if (status == EXIT_FINE && measure(a))
        status = allocate(a);
    a->uninit = m == MAKE_UNINIT;
    a->maker = (int)m;
    a->maker_value = value;
    if (status == EXIT_FINE && !empty)
        fill(a);
    return status;
}

/* ---- all arguments ---- */

int run_args_find(const RunArgs *args, const char *name)
{
    for (size_t i = 0; i < args->len; i++)
        if (strcmp(args->data[i].param.name, name) == 0)
            return (int)i;
    return -1;
}

/* "x (const f32, 2 axes)" */
static void print_param(const tile_param_info *p)
{
    bool array = p->kind != TILE_ARG_SCALAR;
    fprintf(stderr, "%s (%s%s", p->name, array && p->is_const ? "const " : "",
            tile_dtype_name(p->dtype));
    if (p->kind == TILE_ARG_VIEW)
        fprintf(stderr, p->rank == 1 ? ", %d axis" : ", %d axes", p->rank);
    else if (array)
        fputs(", a pointer", stderr);
    fputs(p->has_default ? ", has a default)" : ")", stderr);
}

static void list_params(const RunArgs *args)
{
    fprintf(stderr, "tilec: the kernel's parameters are: ");
    for (size_t i = 0; i < args->len; i++) {
        fputs(i ? ", " : "", stderr);
        print_param(&args->data[i].param);
    }
    fputc('\n', stderr);
}

/* What stands for a parameter, to be copied and changed: zeros[128,128]. */
static void missing(const RunArg *a)
{
    char example[16 + 4 * TILE_MAX_RANK] = "1";
    int rank = a->param.kind == TILE_ARG_VIEW ? a->param.rank : 1;
    if (a->param.kind != TILE_ARG_SCALAR) {
        strcpy(example, "zeros[128");
        for (int i = 1; i < rank; i++)
            strcat(example, ",128");
        strcat(example, "]");
    }
    usage_error("parameter '%s' is missing: write %s=%s, for instance; tilec help run has all "
                "forms", a->param.name, a->param.name, example);
}

static const char table_word[] = "addresses(";

/* Does an addresses(...) name this array? */
static bool in_a_table(const Options *o, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < o->items.len; i++) {
        const char *value = strchr(o->items.data[i], '=') + 1;
        if (strncmp(value, table_word, strlen(table_word)) != 0)
            continue;
        for (const char *at = strchr(value, '('); at; at = strchr(at + 1, ','))
            if (strncmp(at + 1, name, n) == 0 && strchr(",)+", at[1 + n]))
                return true;
    }
    return false;
}

/* NAME=@FILE for an array that only tables name: an argument behind those of the parameters. */
static int add_beside(RunArgs *args, const char *name, const char *value)
{
    RunArg *a = &args->data[args->len];
    if (*value != '@')
        return usage_error("%s=%s: an array that is no parameter's comes from a file, %s=@x.npy",
                           name, value, name);
    a->beside = malloc(strlen(name) + 1);
    if (!a->beside)
        return out_of_memory();
    strcpy(a->beside, name);
    a->param = (tile_param_info)TILE_PARAM_INFO_INIT;
    a->param.name = a->beside;
    a->param.dtype = TILE_U8; /* any: the file's is taken */
    return args->len++, EXIT_FINE;
}

/* Finds each PARAM=VALUE's parameter. */
static int assign_values(const Options *o, RunArgs *args)
{
    for (size_t i = 0; i < o->items.len; i++) {
        char name[256];
        const char *item = o->items.data[i], *equals = strchr(item, '=');
        snprintf(name, sizeof name, "%.*s", (int)(equals - item), item);
        int at = run_args_find(args, name);
        if (at < 0 && in_a_table(o, name)) {
            if (add_beside(args, name, equals + 1) != EXIT_FINE)
                return EXIT_USAGE;
            at = (int)args->len - 1;
        }
        if (at < 0 || args->data[at].value) {
            usage_error(at < 0 ? "the kernel has no parameter '%s'"
                               : "parameter '%s' is given twice",
                        name);
            list_params(args);
            return EXIT_USAGE;
        }
        args->data[at].value = equals + 1;
    }
    for (size_t i = 0; i < args->len; i++)
        if (!args->data[i].value && !args->data[i].param.has_default) {
            missing(&args->data[i]);
            list_params(args);
            return EXIT_USAGE;
        }
    return EXIT_FINE;
}

/* ---- addresses(A, B+16): a table of pointers ---- */

static bool is_table(const RunArg *a)
{
    return a->value && strncmp(a->value, table_word, strlen(table_word)) == 0;
}

static int no_address(const RunArgs *args, const RunArg *a, const char *name)
{
    usage_error("%s=%s: '%s' is not an array with an address (NAME or NAME+BYTES)", a->param.name,
                a->value, name);
    list_params(args);
    return EXIT_USAGE;
}

/* "B+16" */
static int read_address(const RunArgs *args, const RunArg *a, char *word, RunAddress *out)
{
    bool negative;
    char *plus = strchr(word, '+');
    if (plus)
        *plus = 0;
    int at = run_args_find(args, word);
    const RunArg *array = at >= 0 ? &args->data[at] : NULL;
    if (!array || array->param.kind == TILE_ARG_SCALAR || is_table(array))
        return no_address(args, a, word);
    if (plus && (!read_integer(plus + 1, &negative, &out->offset) || negative))
        return no_address(args, a, plus + 1);
    out->array = array->same_as ? array->same_as : array;
    return EXIT_FINE;
}

static int resolve_table(const RunArgs *args, RunArg *a)
{
    const char *at = strchr(a->value, '(') + 1;
    size_t n = 1, length = strlen(at);
    if (a->param.kind == TILE_ARG_SCALAR || a->param.dtype != TILE_U64)
        return usage_error("%s=%s: addresses are u64, '%s' is of type %s", a->param.name, a->value,
                           a->param.name, tile_dtype_name(a->param.dtype));
    if (length < 2 || at[length - 1] != ')')
        return no_array(a);
    for (const char *p = at; *p; p++)
        n += *p == ',';
    a->dtype = TILE_U64;
    a->rank = 1;
    a->shape[0] = (int64_t)n;
    snprintf(a->descr, sizeof a->descr, "%s", tl_dtype_numpy(TL_U64));
    a->addresses = calloc(n, sizeof *a->addresses);
    if (!a->addresses)
        return usage_error("%s=%s: out of memory", a->param.name, a->value);
    int status = measure(a) ? allocate(a) : EXIT_USAGE;
    for (size_t i = 0; i < n && status == EXIT_FINE; i++) {
        char word[256];
        size_t len = strcspn(at, ",)");
        snprintf(word, sizeof word, "%.*s", (int)len, at);
        status = read_address(args, a, word, &a->addresses[i]);
        at += len + 1;
    }
    return status;
}

/* Where the device sees an array. */
static void *address_of(const RunArg *a)
{
    const RunArg *owner = a->same_as ? a->same_as : a;
    return owner->buffer ? tile_buffer_ptr(owner->buffer) : owner->data;
}

/* Once all arrays are where the device sees them. */
static void fill_addresses(RunArg *a)
{
    for (int64_t i = 0; i < a->shape[0]; i++) {
        const RunAddress *e = &a->addresses[i];
        uint64_t address = (uint64_t)(uintptr_t)address_of(e->array) + e->offset;
        memcpy((char *)a->data + i * (int64_t)sizeof address, &address, sizeof address);
    }
}

/* ---- one argument ---- */

static int make_one(RunArg *a, bool empty)
{
    if (a->param.kind == TILE_ARG_SCALAR) {
        a->dtype = a->param.dtype;
        a->scalar = a->param.value;
        if (!a->value)
            return EXIT_FINE;
        return read_element(a->dtype, a->value, &a->scalar)
                   ? EXIT_FINE
                   : usage_error("%s=%s: '%s' is a scalar of type %s", a->param.name, a->value,
                                 a->param.name, tile_dtype_name(a->dtype));
    }
    if (*a->value == '@')
        return load_array(a);
    return *a->value == '&' || is_table(a) ? EXIT_FINE : make_array(a, empty);
}

/* PARAM=&OTHER, where OTHER is itself no reference. */
static int resolve_reference(RunArgs *args, RunArg *a)
{
    int at = run_args_find(args, a->value + 1);
    const RunArg *other = at >= 0 ? &args->data[at] : NULL;
    if (!other || other->param.kind == TILE_ARG_SCALAR || *other->value == '&' || is_table(other)) {
        usage_error("%s=%s: no array of that name", a->param.name, a->value);
        list_params(args);
        return EXIT_USAGE;
    }
    RunArg keep = *a;
    *a = *other;
    a->param = keep.param;
    a->value = keep.value;
    a->same_as = other;
    return EXIT_FINE;
}

/* ---- odd extents of packed arrays ---- */

static const tile_image_kernel *find_kernel(const void *image, const char *name)
{
    const tile_image_header *h = image;
    const tile_image_kernel *k = (const void *)((const char *)image + h->kernels);
    uint32_t i = 0;
    while (i + 1 < h->nkernels && strcmp((const char *)image + k[i].name, name) != 0)
        i++;
    return &k[i];
}

static const tile_image_dim *find_dim(const void *image, const tile_image_kernel *k, size_t param,
                                      int axis)
{
    const tile_image_param *p = (const void *)((const char *)image + k->params);
    return (const tile_image_dim *)(const void *)((const char *)image + p[param].dims) + 2 * axis;
}

/* A file of packed elements says only bytes, so the last extent is even, unless its name is fixed
 * elsewhere to one less (or the parameter demands that number). */
static void settle_packed(const void *image, const char *kernel, RunArgs *args)
{
    const tile_image_kernel *k = find_kernel(image, kernel);
    for (size_t i = 0; i < args->nparams; i++) {
        RunArg *a = &args->data[i];
        if (a->param.kind != TILE_ARG_VIEW || !is_packed(a->dtype) || *a->value != '@' ||
            a->rank < 1 || a->rank != a->param.rank)
            continue;
        const tile_image_dim *mine = find_dim(image, k, i, a->rank - 1);
        int64_t odd = a->last_elements - 1;
        if (mine->kind == TILE_DIM_CONST && mine->value == odd)
            a->last_elements = odd;
        for (size_t j = 0; j < args->nparams && mine->kind == TILE_DIM_SYM; j++) {
            const RunArg *b = &args->data[j];
            for (int axis = 0; j != i && b->param.kind == TILE_ARG_VIEW &&
                               b->rank == b->param.rank && axis < b->rank;
                 axis++) {
                const tile_image_dim *other = find_dim(image, k, j, axis);
                bool counts_bytes = is_packed(b->dtype) && axis == b->rank - 1;
                if (other->kind == TILE_DIM_SYM && other->value == mine->value && !counts_bytes &&
                    b->shape[axis] == odd)
                    a->last_elements = odd;
            }
        }
    }
}

int run_args_make(const Options *o, const tile_kernel *kernel, const void *image, RunArgs *args)
{
    size_t len = tile_kernel_param_count(kernel);
    args->data = calloc(len + o->items.len + 1, sizeof *args->data);
    if (!args->data)
        return out_of_memory();
    args->len = args->nparams = len;
    for (size_t i = 0; i < args->len; i++) {
        args->data[i].param = (tile_param_info)TILE_PARAM_INFO_INIT;
        tile_kernel_param(kernel, i, &args->data[i].param);
    }
    int status = assign_values(o, args);
    for (size_t i = 0; i < args->len && status == EXIT_FINE; i++)
        status = make_one(&args->data[i], args->empty);
    for (size_t i = 0; i < args->len && status == EXIT_FINE; i++)
        if (args->data[i].param.kind != TILE_ARG_SCALAR && *args->data[i].value == '&')
            status = resolve_reference(args, &args->data[i]);
    for (size_t i = 0; i < args->len && status == EXIT_FINE; i++)
        if (is_table(&args->data[i]))
            status = resolve_table(args, &args->data[i]);
    if (status == EXIT_FINE)
        settle_packed(image, tile_kernel_name(kernel), args);
    return status;
}

void run_args_free(RunArgs *args)
{
    for (size_t i = 0; i < args->len; i++)
        if (!args->data[i].same_as) {
            tile_buffer_free(args->data[i].buffer);
            free(args->data[i].data);
            free(args->data[i].addresses);
            free(args->data[i].beside);
        }
    free(args->data);
}

/* ---- use ---- */

/* Strides in elements of the array as it lies in memory. */
static void strides_of(const RunArg *a, int64_t *stride)
{
    int64_t step = 1;
    for (int i = 0; i < a->rank && i < TILE_MAX_RANK; i++) {
        int axis = a->fortran ? i : a->rank - 1 - i;
        stride[axis] = step;
        step *= a->shape[axis];
        if (i == 0 && is_packed(a->dtype))
            step *= 2; /* the last axis counts bytes */
    }
}

static tile_arg launch_arg(const RunArg *a)
{
    void *address = address_of(a);
    if (a->param.kind == TILE_ARG_SCALAR)
        return tile_bits(a->dtype, a->scalar);
    if (a->param.kind == TILE_ARG_POINTER)
        return tile_arg_pointer(address, a->dtype, a->bytes);
    int64_t extent[TILE_MAX_RANK] = {0}, stride[TILE_MAX_RANK] = {0};
    if (a->rank <= TILE_MAX_RANK)
        strides_of(a, stride);
    for (int i = 0; i < a->rank && i < TILE_MAX_RANK; i++)
        extent[i] = is_packed(a->dtype) && i == a->rank - 1 ? a->last_elements : a->shape[i];
    tile_arg arg = tile_arg_view_strided(address, a->dtype, a->rank, extent, stride);
    arg.bytes = a->bytes;
    return arg;
}

static int run_error(void)
{
    fprintf(stderr, "%s\n", tile_last_error());
    return EXIT_RUN;
}

/* Devices on this process's memory take the arrays as they are; emulated GPUs get buffers, so that
 * addresses are aligned as on a GPU and counters are the same on every run. uninit[...] is a buffer
 * everywhere: only of those a device may know what was written; so are arrays that
 * no parameter has, whose sizes it would not know. */
static bool wants_buffer(const tile_device_info *info, const RunArg *a)
{
    return !info->host_memory || a->uninit || a->beside || strncmp(info->target, "emu:", 4) == 0;
}

static bool upload(const RunArg *a)
{
    return tile_buffer_upload(a->buffer, 0, a->data, a->bytes, NULL) == TILE_OK;
}

/* Is it an array whose elements run_args_fill makes? */
static bool is_empty(const RunArgs *args, const RunArg *a)
{
    return args->empty && a->param.kind != TILE_ARG_SCALAR && !a->same_as && !a->addresses &&
           *a->value != '@';
}

int run_args_upload(RunArgs *args, tile_device *device, tile_arg **out_launch)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    if (tile_device_get_info(device, &info) != TILE_OK)
        return run_error();
    *out_launch = calloc(args->len + 1, sizeof **out_launch);
    if (!*out_launch)
        return out_of_memory();
    for (size_t i = 0; i < args->len; i++) {
        RunArg *a = &args->data[i];
        if (a->param.kind == TILE_ARG_SCALAR || a->same_as || !wants_buffer(&info, a))
            continue;
        if (tile_buffer_alloc(device, a->bytes, &a->buffer) != TILE_OK)
            return run_error();
        if (!is_empty(args, a) && !a->uninit && !a->addresses && !upload(a))
            return run_error();
    }
    for (size_t i = 0; i < args->len; i++) {
        RunArg *a = &args->data[i];
        if (a->addresses) {
            fill_addresses(a);
            if (a->buffer && !upload(a))
                return run_error();
        }
        (*out_launch)[i] = launch_arg(a);
    }
    return EXIT_FINE;
}

int run_args_fill(RunArgs *args)
{
    for (size_t i = 0; i < args->len; i++) {
        RunArg *a = &args->data[i];
        if (!is_empty(args, a))
            continue;
        fill(a);
        if (a->buffer && !a->uninit && !upload(a))
            return run_error();
    }
    args->empty = false;
    return EXIT_FINE;
}

int run_args_fetch(RunArgs *args)
{
    for (size_t i = 0; i < args->len; i++) {
        RunArg *a = &args->data[i];
        if (a->buffer && tile_buffer_download(a->buffer, 0, a->data, a->bytes, NULL) != TILE_OK)
            return run_error();
    }
    return EXIT_FINE;
}

int run_arg_save(const RunArg *a, const char *path, Outputs *outputs)
{
    NpyArray n = {.fortran = a->fortran, .rank = a->rank, .bytes = a->bytes, .data = a->data};
    size_t size;
    memcpy(n.shape, a->shape, sizeof n.shape);
    memcpy(n.descr, a->descr, sizeof n.descr);
    void *file = npy_format(&n, &size);
    if (!file)
        return out_of_memory();
    bool ok = output_write(outputs, path, file, size);
    free(file);
    return ok ? EXIT_FINE : EXIT_USAGE;
}

/* One byte per packed element, row-major: as the printer wants it. NULL when out of memory. */
static void *plain_elements(const RunArg *a, int64_t *shape)
{
    uint64_t n = count_elements(a),
             size = is_packed(a->dtype) ? 1 : (uint64_t)tile_dtype_bits(a->dtype) / 8;
    uint64_t row = a->rank && is_packed(a->dtype) ? (uint64_t)a->last_elements : 1;
    uint64_t row_bytes = a->rank ? (uint64_t)a->shape[a->rank - 1] : 1;
    char *plain = calloc(n + 1, size);
    for (int i = 0; i < a->rank; i++)
        shape[i] = is_packed(a->dtype) && i == a->rank - 1 ? a->last_elements : a->shape[i];
    for (uint64_t i = 0; plain && i < n; i++) {
        uint64_t at = i, rest = i;
        if (is_packed(a->dtype)) {
            uint8_t byte = ((const uint8_t *)a->data)[i / row * row_bytes + i % row / 2];
            plain[i] = (char)(i % row % 2 ? byte >> 4 : byte & 15);
            continue;
        }
        /* the row-major index, axis by axis from the last, to the place in memory */
        if (a->fortran) {
            uint64_t total = n;
            at = 0;
            for (int axis = a->rank - 1; axis >= 0; axis--) {
                total /= (uint64_t)shape[axis];
                at += rest % (uint64_t)shape[axis] * total;
                rest /= (uint64_t)shape[axis];
            }
        }
        memcpy(plain + i * size, (const char *)a->data + at * size, size);
    }
    return plain;
}

int run_arg_print(const RunArg *a, FILE *out)
{
    int64_t shape[MAX_ARRAY_RANK] = {0};
    void *plain = plain_elements(a, shape);
    size_t n = plain ? tile_format_array(NULL, 0, a->dtype, a->rank, shape, plain) : 0;
    char *text = plain ? malloc(n + 1) : NULL;
    if (text) {
        tile_format_array(text, n + 1, a->dtype, a->rank, shape, plain);
        fprintf(out, "%s = %s\n", a->param.name, text);
    }
    free(text);
    free(plain);
    return text ? EXIT_FINE : out_of_memory();
}
