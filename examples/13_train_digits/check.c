#include "check.h"
#include "digits.h"

typedef struct Check {
    Network *net;
    const tile_buffer *pictures, *labels;
    int64_t count;
    float *w, *g, *moved; /* [size] */
} Check;

/* The mean loss of the first batch, added up in double. */
static bool mean_loss(Check *c, const float *w, double *mean)
{
    int32_t order[BATCH];
    float loss[BATCH];
    for (int i = 0; i < BATCH; i++)
        order[i] = i;
    if (tile_buffer_upload(c->net->state[MASTER], 0, w, (uint64_t)c->net->size * 4, NULL) ||
        !network_narrow(c->net) ||
        !network_forward(c->net, c->pictures, c->labels, c->count, order, BATCH, true) ||
        tile_buffer_download(c->net->loss, 0, loss, sizeof loss, NULL))
        return false;
    *mean = 0;
    for (int i = 0; i < BATCH; i++)
        *mean += loss[i] / (double)BATCH;
    return true;
}

/* Half along the gradient, where the loss changes most, half by chance, of length 1 each. */
static void choose(const Check *c, const Tensor *t, double *way, uint64_t *seed)
{
    double along = 1e-30, chance = 1e-30;
    for (int64_t i = 0; i < t->count; i++) {
        double g = c->g[t->at + i], r = way[i] = normal(seed);
        along += g * g, chance += r * r;
    }
    for (int64_t i = 0; i < t->count; i++)
        way[i] = c->g[t->at + i] / sqrt(along) + way[i] / sqrt(chance);
}

static bool check_tensor(Check *c, const Tensor *t, double *way, uint64_t *seed, bool *good)
{
    double says = 0, step = 2e-3, loss[2];
    choose(c, t, way, seed);
    for (int64_t i = 0; i < t->count; i++)
        says += c->g[t->at + i] * way[i];
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < c->net->size; i++)
            c->moved[i] = c->w[i];
        for (int64_t i = 0; i < t->count; i++)
            c->moved[t->at + i] += (float)((k ? step : -step) * way[i]);
        if (!mean_loss(c, c->moved, &loss[k]))
            return false;
    }
    double is = (loss[1] - loss[0]) / (2 * step), error = fabs(says - is) / fabs(is);
    printf("%-10s %6lld numbers: derivative %9.6f, difference %9.6f, off by %.2f %%\n", t->name,
           (long long)t->count, says, is, 100 * error);
    if (!(error < 0.02))
        *good = false;
    return true;
}

bool check_gradients(Network *n, const tile_buffer *pictures, const tile_buffer *labels,
                     int64_t count, bool *good)
{
    size_t size = (size_t)n->size;
    uint64_t bytes = size * 4, seed = 1234567;
    Check c = {n, pictures, labels, count, malloc(bytes), malloc(bytes), malloc(bytes)};
    double *way = malloc(size * sizeof *way), loss;
    bool done = c.w && c.g && c.moved && way &&
                !tile_buffer_download(n->state[MASTER], 0, c.w, bytes, NULL) &&
                mean_loss(&c, c.w, &loss) && network_backward(n, BATCH) &&
                !tile_buffer_download(n->state[GRADS], 0, c.g, bytes, NULL);
    *good = true;
    for (int i = 0; done && i < TENSORS; i++)
        done = check_tensor(&c, &n->tensor[i], way, &seed, good);
    return free(c.w), free(c.g), free(c.moved), free(way), done;
}
