#include "check.h"
#include "../shared/slope.h"
#include "steps.h"

/* A small model in f32; odd extents, two layers. */
static const Config tiny = {2, 24, 3, 20, 13, 3, F32, 1};
static const char *const names[ROLES] = {"embedding", "head", "qkv", "out", "up", "down",
                                         "last norm", "norm", "hidden norm"};
enum { ROWS = 3, LENGTH = 13 };

/* The mean loss of the batch, summed in f64. */
static bool mean_loss(Model *m, double *out)
{
    float loss[ROWS * LENGTH];
    if (!model_forward(m, ROWS, LENGTH) || !model_loss(m, ROWS, LENGTH) ||
        tile_buffer_download(m->loss, 0, loss, sizeof loss, NULL))
        return false;
    *out = 0;
    for (int i = 0; i < ROWS * LENGTH; i++) *out += (double)loss[i] / (ROWS * LENGTH);
    return true;
}

typedef struct Of {
    Steps *steps;
    const Tensor *tensor;
} Of;

static bool loss_with(void *user, const float *w, double *out)
{
    const Of *of = user;
    return steps_set(of->steps, of->tensor, w) && mean_loss(of->steps->model, out);
}

static bool check_all(Steps *s, double worst[ROLES])
{
    Model *m = s->model;
    float *all = calloc(4 * m->size, sizeof *all), *w = all, *g = all + m->size;
    bool good = all && !tile_buffer_download(m->grads, 0, g, m->size * 4, NULL) &&
                !tile_buffer_download(m->weights, 0, w, m->size * 4, NULL);
    for (int i = 0; good && i < m->tensors; i++) {
        const Tensor *t = &m->tensor[i];
        Of of = {s, t};
        Slope slope = {.n = (size_t)t->rows * (size_t)t->cols, .w = w + t->at, .g = g + t->at,
                       .way = all + 2 * m->size, .moved = all + 3 * m->size,
                       .columns = t->role == EMBEDDING ? (size_t)t->cols : 0, .elements = 24,
                       .step = 0.002f, .seed = 5 + t->at, .loss = loss_with, .user = &of};
        good = slope_check(&slope, &worst[t->role]) && steps_set(s, t, w + t->at);
    }
    return free(all), good;
}

/* Weights so great that everything bends, and norms that are not 1. */
static bool great_weights(Steps *s)
{
    Model *m = s->model;
    float *w = malloc(m->size * sizeof *w);
    bool good = w && !tile_buffer_download(m->weights, 0, w, m->size * 4, NULL);
    for (int i = 0; good && i < m->tensors; i++) {
        const Tensor *t = &m->tensor[i];
        for (size_t k = 0; k < (size_t)t->rows * (size_t)t->cols; k++)
            w[t->at + k] = t->rows == 1 ? 0.75f + 0.5f * (float)uniform_at(9, t->at + k)
                                        : w[t->at + k] * (t->role == EMBEDDING ? 10 : 2.5f);
        good = steps_set(s, t, w + t->at);
    }
    return free(w), good;
}

bool check_gradients(bool *good)
{
    Model m;
    Steps s = {0};
    uint8_t x[ROWS * (LENGTH + 1)];
    double worst[ROLES] = {0}, loss;
    for (int i = 0; i < ROWS * (LENGTH + 1); i++)
        x[i] = (uint8_t)('a' + random_at(1, (uint64_t)i) % 8);
    bool fine = model_open(&m, tiny) && steps_open(&s, &m, 3) && great_weights(&s) &&
                model_load(&m, x, ROWS, LENGTH) && mean_loss(&m, &loss) &&
                model_backward(&m, ROWS, LENGTH, ROWS * LENGTH, NULL) && check_all(&s, worst);
    *good = fine;
    for (int i = 0; fine && i < ROLES; i++) {
        printf("%-12s derivatives differ from differences by %.1e of the greatest\n", names[i],
               worst[i]);
        *good &= worst[i] < 2e-3;
    }
    steps_close(&s), model_close(&m);
    return fine;
}
