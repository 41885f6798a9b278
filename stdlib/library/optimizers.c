/* optimizers.c: tile_sgd and tile_adam, steps of training over a list of tensors. */
#include "stdlib/library/library.h"

#include "runtime/contract/grow.h"

/* Kernels read and write whole vectors of tensors. */
enum { ALIGNMENT = 16 };

/* A table of the addresses of G tensors. */
typedef struct Table {
    const char *name;
    const void *const *addresses;
} Table;

typedef struct Tensors {
    const char *function;
    tile_dtype type;
    int64_t count;
    const int64_t *lengths;
    bool host; /* tables can be looked into */
} Tensors;

static tile_status check_table(const Tensors *t, const Table *table)
{
    if (!t->count)
        return TILE_OK;
    if (!table->addresses)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is NULL", t->function, table->name);
    for (int64_t i = 0; t->host && i < t->count; i++) {
        uintptr_t address = (uintptr_t)table->addresses[i];
        if (t->lengths[i] > 0 && (!address || address % ALIGNMENT))
            return tl_lib_fail(TILE_BAD_ARGUMENT,
                               "%s: %s[%lld] is %p, but must be an address that 16 divides",
                               t->function, table->name, (long long)i, table->addresses[i]);
    }
    return TILE_OK;
}

static tile_status check(const tile_kernels *k, Tensors *t, const Table *tables, int n)
{
    if (!k)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", t->function);
    t->host = tl_lib_has_host_memory(k);
    tile_status status = tl_lib_check_float(t->function, t->type);
    if (status == TILE_OK)
        status = tl_lib_check_extent(t->function, "count", t->count);
    if (status == TILE_OK && t->count && !t->lengths)
        status = tl_lib_fail(TILE_BAD_ARGUMENT, "%s: lengths is NULL", t->function);
    for (int64_t i = 0; status == TILE_OK && t->host && i < t->count; i++)
        if (t->lengths[i] < 0)
            status = tl_lib_wrong(t->function, "an element of lengths", t->lengths[i], "0 or more");
    for (int i = 0; i < n && status == TILE_OK; i++)
        status = check_table(t, &tables[i]);
    return status;
}

/* The addresses of all tensors, or an array of none. */
static tile_arg table_of(const Tensors *t, const void *addresses)
{
    return tile_arg_view(addresses, TILE_U64, 1, addresses ? t->count : 0, 0, 0, 0, 0, 0, 0, 0);
}

static tile_arg lengths_of(const Tensors *t)
{
    return tile_arg_view(t->lengths, TILE_I64, 1, t->count, 0, 0, 0, 0, 0, 0, 0);
}

static tile_arg none(tile_dtype type)
{
    return tile_arg_view(NULL, type, 1, 0, 0, 0, 0, 0, 0, 0, 0);
}

static tile_status launch(tile_kernels *k, tile_stream *stream, const Tensors *t,
                          TlLibKernel kernel, int form, const tile_arg *args, size_t nargs)
{
    TlLibCall call = {.function = t->function, .images = tl_lib_optimizers_images,
                      .kernel = kernel, .type = t->type, .form = form};
    return t->count ? tl_lib_launch(k, stream, &call, args, nargs) : TILE_OK;
}

/* A number that is there, or what stands for 0. */
static float or_else(double x, double otherwise)
{
    return (float)(x != 0 ? x : otherwise);
}

tile_status tile_sgd(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t count,
                     const int64_t *lengths, void *const *W, const void *const *dW,
                     float *const *momenta, double rate, const tile_sgd_options *options)
{
    Tensors t = {"tile_sgd", type, count, lengths, false};
    tile_sgd_options o = TILE_SGD_OPTIONS_INIT;
    tile_status status = tl_lib_take(t.function, "tile_sgd_options", &o, sizeof o, options,
                                     TL_LEAST_SIZE(tile_sgd_options, momentum));
    const Table tables[] = {{"W", (const void *const *)W}, {"dW", dW},
                            {"momenta", (const void *const *)momenta}};
    if (status == TILE_OK)
        status = check(kernels, &t, tables, o.momentum != 0 ? 3 : 2);
    if (status == TILE_OK && o.nesterov && o.momentum == 0)
        status = tl_lib_fail(TILE_BAD_ARGUMENT, "tile_sgd: options->nesterov is set without "
                                                "options->momentum");
    if (status != TILE_OK)
        return status;
    int form = o.momentum == 0 ? 0 : o.nesterov ? 2 : 1;
    const tile_arg args[] = {
        table_of(&t, W), table_of(&t, dW), table_of(&t, form ? momenta : NULL), none(TILE_U64),
        lengths_of(&t), none(TILE_F32), /* master; factor */
        tile_f32(or_else(o.gradient_scale, 1)), tile_f32((float)rate), tile_f32((float)o.momentum),
        tile_f32((float)o.decay), tile_u64(0)};
    return launch(kernels, stream, &t, TL_LIB_sgd, form, args, sizeof args / sizeof *args);
}

tile_status tile_adam(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t count,
                      const int64_t *lengths, void *const *W, const void *const *dW,
                      float *const *means, float *const *squares, int64_t step, double rate,
                      const tile_adam_options *options)
{
    Tensors t = {"tile_adam", type, count, lengths, false};
    tile_adam_options o = TILE_ADAM_OPTIONS_INIT;
    tile_status status = tl_lib_take(t.function, "tile_adam_options", &o, sizeof o, options,
                                     TL_LEAST_SIZE(tile_adam_options, beta1));
    const Table tables[] = {{"W", (const void *const *)W}, {"dW", dW},
                            {"means", (const void *const *)means},
                            {"squares", (const void *const *)squares},
                            {"options->master", (const void *const *)o.master}};
    if (status == TILE_OK)
        status = check(kernels, &t, tables, o.master ? 5 : 4);
    if (status == TILE_OK && (step < 1 || step > INT32_MAX))
        status = tl_lib_wrong(t.function, "step", step, "from 1 to 2147483647");
    if (status == TILE_OK && !(o.beta1 >= 0 && o.beta1 < 1 && o.beta2 >= 0 && o.beta2 < 1))
        status = tl_lib_fail(TILE_BAD_ARGUMENT, "tile_adam: options->beta1 is %g and beta2 %g, but "
                                                "must be from 0 to less than 1", o.beta1, o.beta2);
    if (status != TILE_OK)
        return status;
    const tile_arg args[] = {
        table_of(&t, W), table_of(&t, dW), table_of(&t, means), table_of(&t, squares),
        table_of(&t, o.master), lengths_of(&t), none(TILE_F32), none(TILE_I32), /* factor, steps */
        tile_f32(or_else(o.gradient_scale, 1)), tile_i32((int32_t)step), tile_f32((float)rate),
        tile_f32(or_else(o.beta1, 0.9)), tile_f32(or_else(o.beta2, 0.999)),
        tile_f32(or_else(o.eps, 1e-8)), tile_f32((float)o.decay), tile_u64(0)};
    return launch(kernels, stream, &t, TL_LIB_adam, 2 * !!o.coupled + !!o.master, args,
                  sizeof args / sizeof *args);
}
