/* choose.c: which of a kernel's instances was found best for launches of about this size.
 *
 * The bucket of a launch is a small number for each key of the kernel: ceil(log2(value)). Each
 * tuned instance lists buckets. The one with the nearest bucket is taken: the sum of the
 * differences decides; of buckets that are equally near, the smaller, number by number. So the same
 * sizes always run the same code. If that instance does not accept the launch, the next nearest
 * bucket is tried, and last the instances without any. */
#include "runtime/runtime.h"

int32_t tl_bucket(int64_t value)
{
    if (value < 1)
        return -1;
    return value == 1 ? 0 : 64 - __builtin_clzll((unsigned long long)value - 1);
}

/* The keys' buckets for these arguments. False: the arguments are wrong, which tl_bind will say, or
 * a key cannot be computed. */
static bool find_bucket(const tl_instance *in, const tile_device *device, const tl_bound *bound,
                        int32_t *out)
{
    const tile_image_expr *exprs = tl_image_at(in->image, in->kernel->exprs);
    const uint32_t *keys = tl_image_at(in->image, in->kernel->keys);
    tl_hx_env env = {bound->syms, bound->args, device->processors};
    for (uint32_t i = 0; i < in->kernel->nkeys; i++) {
        const tile_image_expr *e = &exprs[keys[i]];
        int64_t value;
        if (tl_hostexpr_eval(tl_image_at(in->image, e->code), e->ncode, &env, &value) != TL_HX_FINE)
            return false;
        out[i] = tl_bucket(value);
    }
    return true;
}

static int64_t distance(const int32_t *a, const int32_t *b, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] < b[i] ? (int64_t)b[i] - a[i] : (int64_t)a[i] - b[i];
    return sum;
}

static int compare(const int32_t *a, const int32_t *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

bool tl_nearer(const int32_t *want, const int32_t *a, const int32_t *b, uint32_t n)
{
    int64_t da = distance(want, a, n), db = distance(want, b, n);
    return da != db ? da < db : compare(a, b, n) < 0;
}

static const int32_t *bucket_of(const tl_instance *in, uint32_t i)
{
    return (const int32_t *)tl_image_at(in->image, in->kernel->tuned) +
           (size_t)i * in->kernel->nkeys;
}

bool tl_choose_begin(const tile_kernel *kernel, const tile_arg *args, size_t nargs,
                     tl_bound *scratch, tl_choice *out)
{
    const tl_instance *first = kernel->instances[0];
    const tile_device *device = kernel->module->device;
    *out = (tl_choice){.nkeys = first->kernel->nkeys};
    return kernel->tuned && tl_bind_names(device, first, args, nargs, scratch) &&
           find_bucket(first, device, scratch, out->want);
}

bool tl_choose_next(const tile_kernel *kernel, tl_choice *c)
{
    const int32_t *nearest = NULL;
    for (uint32_t i = 0; i < kernel->ninstances; i++) {
        const tl_instance *in = kernel->instances[i];
        for (uint32_t k = 0; in->kernel->nkeys == c->nkeys && k < in->kernel->ntuned; k++) {
            const int32_t *b = bucket_of(in, k);
            bool later = !c->bucket || tl_nearer(c->want, c->bucket, b, c->nkeys);
            if (later && (!nearest || tl_nearer(c->want, b, nearest, c->nkeys)))
                nearest = b;
        }
    }
    c->bucket = nearest;
    return nearest != NULL;
}

bool tl_chosen(const tl_instance *in, const tl_choice *c)
{
    if (!c->bucket)
        return in->kernel->ntuned == 0;
    for (uint32_t k = 0; in->kernel->nkeys == c->nkeys && k < in->kernel->ntuned; k++)
        if (compare(bucket_of(in, k), c->bucket, c->nkeys) == 0)
            return true;
    return false;
}
