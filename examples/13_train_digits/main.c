/* A convolutional network learns to read digits: 13_train_digits [f32|bf16|f16|check [EPOCHS
 * [DIGITS [OUT]]]]. Writes OUT.svg, how it went, and OUT.png, digits that it reads wrong. */
#define PROGRAM "13_train_digits"
#include "../shared/example.h"
#include "check.h"
#include "digits.h"
#include "pictures.h"

enum { HELD = 2048, MOST = 65536, EVERY = 16, POINTS = 4096, SHOWN = 64 };

typedef struct Run {
    Network net;
    int train, all, epochs; /* digits, HELD of them held out, at the end; epochs */
    uint8_t *pixels;        /* [all][PIXELS] */
    int32_t *label, *order; /* [all] */
    int32_t digit[HELD];    /* what was read */
    Buffers buffers;
    tile_buffer *pictures, *labels;
    Point point[POINTS];
    int points, steps;
} Run;

static bool draw_digits(Run *r)
{
    uint64_t seed = 88172645463325252u, n = (uint64_t)r->all;
    r->pixels = malloc(n * PIXELS), r->label = malloc(n * 4), r->order = malloc(n * 4);
    if (!r->pixels || !r->label || !r->order)
        return fail("", "no memory");
    for (int i = 0; i < r->all; i++) {
        r->order[i] = i;
        r->label[i] = (int32_t)(uniform(&seed) * CLASSES);
        digits_draw(r->label[i], r->pixels + (size_t)i * PIXELS, &seed);
    }
    return (zeros(&r->buffers, &r->pictures, n, PIXELS) && zeros(&r->buffers, &r->labels, n, 4) &&
            !tile_buffer_upload(r->pictures, 0, r->pixels, n * PIXELS, NULL) &&
            !tile_buffer_upload(r->labels, 0, r->label, n * 4, NULL)) ||
           fail("", tile_last_error());
}

static void shuffle(int32_t *order, int n, uint64_t *seed)
{
    for (int i = n - 1; i > 0; i--) {
        int k = (int)(uniform(seed) * (i + 1));
        int32_t was = order[i];
        order[i] = order[k], order[k] = was;
    }
}

static Point *add_point(Run *r, double epoch)
{
    if (r->points < POINTS)
        r->points++;
    Point *p = &r->point[r->points - 1];
    *p = (Point){epoch, -1, -1, -1};
    return p;
}

/* The sum of losses since the last call. */
static bool take_total(Run *r, double *total)
{
    float sum;
    if (tile_buffer_download(r->net.total, 0, &sum, 4, NULL))
        return false;
    *total = sum;
    return !tile_buffer_fill(r->net.total, 0, 0, 4, NULL);
}

/* Up in the first twentieth of all steps, then down to 0, as half a wave. */
static float rate(const Run *r, int step)
{
    double all = (double)r->epochs * (r->train / BATCH), t = (step + 1) / all;
    return (float)(t < 0.05 ? 3e-3 * t / 0.05 : 1.5e-3 * (1 + cos(3.14159265 * (t - 0.05) / 0.95)));
}

static bool train_epoch(Run *r, int epoch, uint64_t *seed, double *mean)
{
    int batches = r->train / BATCH;
    double total, sum = 0;
    shuffle(r->order, r->train, seed);
    for (int b = 0, since = 0; b < batches; b++) {
        if (!network_forward(&r->net, r->pictures, r->labels, r->all, r->order + b * BATCH, BATCH,
                             true) ||
            !network_backward(&r->net, BATCH) || !network_step(&r->net, rate(r, r->steps++)))
            return false;
        if (++since < EVERY && b + 1 < batches)
            continue;
        if (!take_total(r, &total))
            return false;
        add_point(r, epoch + (b + 1) / (double)batches)->loss = total / (since * BATCH);
        sum += total, since = 0;
    }
    *mean = sum / (batches * BATCH);
    return true;
}

/* The digits that were held out: their mean loss, and the percentage that is right. */
static bool test(Run *r, double *loss, double *right)
{
    int good = 0;
    for (int i = 0; i < HELD; i += BATCH)
        if (!network_forward(&r->net, r->pictures, r->labels, r->all, r->order + r->train + i,
                             BATCH, false) ||
            !network_read(&r->net, r->digit + i, BATCH))
            return false;
    for (int i = 0; i < HELD; i++)
        good += r->digit[i] == r->label[r->train + i];
    *right = 100.0 * good / HELD;
    bool done = take_total(r, loss);
    *loss /= HELD;
    return done;
}

static bool train(Run *r, double *right)
{
    uint64_t seed = 2463534242u;
    double start = now();
    for (int e = 0; e < r->epochs; e++) {
        double loss, held;
        int32_t steps;
        float scale;
        if (!train_epoch(r, e, &seed, &loss) || !test(r, &held, right) ||
            tile_buffer_download(r->net.steps, 0, &steps, 4, NULL) ||
            tile_buffer_download(r->net.scale, 0, &scale, 4, NULL))
            return false;
        Point *p = add_point(r, e + 1);
        p->held = held, p->right = *right;
        printf("epoch %2d: loss %.4f, held out %.4f, right %.2f %%; %d steps, %d left out, "
               "scale %g; %.1f s\n",
               e + 1, loss, held, *right, steps, r->steps - steps, (double)scale, now() - start);
        fflush(stdout);
    }
    return true;
}

static bool save(const Run *r, const char *out)
{
    const uint8_t *shown[SHOWN];
    char path[1024], title[96];
    int n = 0;
    for (int i = 0; i < HELD && n < SHOWN; i++)
        if (r->digit[i] != r->label[r->train + i]) {
            shown[n++] = r->pixels + (size_t)(r->train + i) * PIXELS;
            if (n <= 16)
                printf("%s%d as %d", n > 1 ? ", " : "read wrong: ", r->label[r->train + i],
                       r->digit[i]);
        }
    puts(n ? "" : "none is read wrong");
    snprintf(path, sizeof path, "%s.svg", out);
    snprintf(title, sizeof title, "%d drawn digits, numbers of %s", r->train,
             type_names[r->net.type]);
    if (!pictures_curves(path, r->point, r->points, title))
        return false;
    printf("%s: how it went\n", path);
    snprintf(path, sizeof path, "%s.png", out);
    if (n && !pictures_digits(path, shown, n))
        return false;
    if (n)
        printf("%s: digits that are read wrong\n", path);
    return true;
}

static bool work(Run *r, bool check, Type type, const char *out, bool *learned)
{
    double right = 0;
    if (!draw_digits(r))
        return false;
    if (!network_open(&r->net, type, 362436069u))
        return fail("", tile_last_error());
    if (check)
        return check_gradients(&r->net, r->pictures, r->labels, r->all, learned) ||
               fail("", tile_last_error());
    if (!train(r, &right))
        return fail("", tile_last_error());
    *learned = right > 90;
    return save(r, out);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "bf16", *out = argc > 4 ? argv[4] : "digits";
    bool check = !strcmp(what, "check"), learned = false;
    int epochs = argc > 2 ? atoi(argv[2]) : 4, digits = argc > 3 ? atoi(argv[3]) : 20480;
    Type type = F32;
    while (!check && type < TYPES && strcmp(what, type_names[type]))
        type++;
    if (argc > 5 || type == TYPES || epochs < 1 || epochs > 100 || digits < BATCH || digits > MOST)
        return fputs("usage: 13_train_digits [f32|bf16|f16|check [EPOCHS [DIGITS [OUT]]]]\n",
                     stderr),
               2;
    Run *r = calloc(1, sizeof *r);
    if (!r)
        return !fail("", "no memory");
    r->train = digits / BATCH * BATCH, r->all = r->train + HELD, r->epochs = epochs;
    bool good = work(r, check, type, out, &learned);
    network_close(&r->net), buffers_free(&r->buffers);
    free(r->pixels), free(r->label), free(r->order), free(r);
    return !good || !learned;
}
