#include "check.h"
#include "../shared/slope.h"
#include "lstm.h"

/* Odd extents; bytes of a few kinds. */
enum { WIDTH = 11, ROWS = 3, LENGTH = 7 };
static const char *const names[TENSORS] = {"input", "state", "scores"};

static bool mean_loss(Lstm *m, Memory *s, double *out)
{
    return lstm_forward(m, s, ROWS, LENGTH) && lstm_loss(m, ROWS, LENGTH, out);
}

typedef struct Of {
    Lstm *net;
    Memory *memory;
    Tensor tensor;
} Of;

static bool loss_with(void *user, const float *w, double *out)
{
    const Of *of = user;
    size_t bytes = of->net->size[of->tensor] * 4;
    return !tile_buffer_upload(of->net->tensor[WEIGHTS][of->tensor], 0, w, bytes, NULL) &&
           mean_loss(of->net, of->memory, out);
}

static bool check_all(Lstm *m, Memory *memory, double worst[TENSORS])
{
    size_t most = m->size[INPUT];
    float *w = malloc(4 * most * sizeof *w), *g = w + most;
    bool good = w;
    for (int t = 0; good && t < TENSORS; t++) {
        Of of = {m, memory, (Tensor)t};
        size_t n = m->size[t];
        Slope slope = {.n = n, .w = w, .g = g, .way = w + 2 * most, .moved = w + 3 * most,
                       .columns = t == INPUT ? 4 * WIDTH : 0, .elements = 16, .step = 0.005f,
                       .seed = 5 + (uint64_t)t, .loss = loss_with, .user = &of};
        good = !tile_buffer_download(m->tensor[WEIGHTS][t], 0, w, n * 4, NULL) &&
               !tile_buffer_download(m->tensor[GRADIENTS][t], 0, g, n * 4, NULL) &&
               slope_check(&slope, &worst[t]) &&
               !tile_buffer_upload(m->tensor[WEIGHTS][t], 0, w, n * 4, NULL);
    }
    return free(w), good;
}

bool check_gradients(bool *good)
{
    Lstm m;
    Memory s = {.h = NULL};
    uint8_t x[ROWS * (LENGTH + 1)];
    double worst[TENSORS] = {0}, loss;
    for (int i = 0; i < ROWS * (LENGTH + 1); i++)
        x[i] = (uint8_t)('a' + random_at(1, (uint64_t)i) % 8);
    bool fine = lstm_open(&m, WIDTH, ROWS, LENGTH, 3) && lstm_remember(&m, &s) &&
                lstm_load(&m, x, ROWS, LENGTH) && mean_loss(&m, &s, &loss) &&
                lstm_go_on(&m, &s, ROWS, LENGTH) && /* with something in memory */
                mean_loss(&m, &s, &loss) && lstm_backward(&m, &s, ROWS, LENGTH) &&
                check_all(&m, &s, worst);
    *good = fine;
    for (int t = 0; fine && t < TENSORS; t++) {
        printf("%-7s derivatives differ from differences by %.1e of the greatest\n", names[t],
               worst[t]);
        *good &= worst[t] < 2e-3;
    }
    lstm_forget(&s), lstm_close(&m);
    return fine;
}
