/* A network that reads digits, trained in f32, run with integers: 12_int8 [EPOCHS [OUT.png]]. */
#define PROGRAM "12_int8"
#include "../shared/picture.h"
#include "digits.h"
#include "network.h"

enum { TRAIN = 12288, TEST = 2048, ALL = TRAIN + TEST, BATCH = 128, CALIBRATION = 1024 };
enum { MIN_MAX, PERCENTILE, KL, WAYS };

typedef struct Run {
    Network net;
    Buffers buffers;
    float *x;           /* [ALL][PIXELS], on the host; on the device: */
    tile_buffer *pictures, *labels;
    int32_t label[ALL], right[2][TEST]; /* right: with f32, with the fewest bits */
    float logits[2][TEST * CLASSES];    /* with f32, with integers */
} Run;

static const float *picture(const Run *r, int i)
{
    return (float *)tile_buffer_ptr(r->pictures) + (size_t)i * PIXELS;
}

static const int32_t *labels(const Run *r, int i)
{
    return (int32_t *)tile_buffer_ptr(r->labels) + i;
}

static bool draw_digits(Run *r)
{
    uint64_t state = 88172645463325252u, bytes = (uint64_t)ALL * PIXELS * 4;
    if (!(r->x = malloc(bytes))) return fail("", "no memory");
    for (int i = 0; i < ALL; i++) {
        r->label[i] = (int32_t)(uniform(&state) * CLASSES);
        digits_draw(r->label[i], r->x + (size_t)i * PIXELS, &state);
    }
    return (zeros(&r->buffers, &r->pictures, bytes, 1) &&
            zeros(&r->buffers, &r->labels, ALL, 4) &&
            !tile_buffer_upload(r->pictures, 0, r->x, bytes, NULL) &&
            !tile_buffer_upload(r->labels, 0, r->label, sizeof r->label, NULL)) ||
           fail("", tile_last_error());
}

static bool train(Run *r, int epochs)
{
    double start = now();
    for (int e = 0; e < epochs; e++) {
        double mean = 0, loss;
        for (int i = 0; i < TRAIN; i += BATCH) {
            if (!network_train(&r->net, picture(r, i), labels(r, i), BATCH, &loss)) return false;
            mean += loss * BATCH / TRAIN;
        }
        if ((e + 1) % 5 == 0 || e + 1 == epochs)
            printf("epoch %2d: cross entropy %.4f, %.2f s\n", e + 1, mean, now() - start);
    }
    return true;
}

/* ---- calibration ---- */

/* The least magnitude with that part of all counted ones at or below it. */
static float percentile(const int32_t *bins, float greatest, double part)
{
    double all = 0, below = 0;
    for (int i = 0; i < BINS; i++) all += bins[i];
    for (int i = 0; i < BINS; i++)
        if ((below += bins[i]) >= part * all) return greatest * (float)(i + 1) / BINS;
    return greatest;
}

/* How much is lost, as a Kullback-Leibler divergence, if the first n bins become `levels` levels
 * and what lies above is cut off (Migacz 2017). */
static double divergence(const int32_t *bins, int n, int levels)
{
    double cut = 0, all = 0, loss = 0;
    for (int i = 0; i < BINS; i++) all += bins[i], cut += i >= n ? bins[i] : 0;
    for (int l = 0; l < levels; l++) {
        int from = l * n / levels, to = (l + 1) * n / levels, filled = 0;
        double sum = 0;
        for (int i = from; i < to; i++) sum += bins[i], filled += bins[i] > 0;
        for (int i = from; i < to; i++) {
            double p = (bins[i] + (i == n - 1 ? cut : 0)) / all;
            double q = bins[i] > 0 ? sum / filled / (all - cut) : 1e-9;
            if (p > 0) loss += p * log(p / q);
        }
    }
    return loss;
}

static float by_divergence(const int32_t *bins, float greatest, int levels)
{
    int best = BINS;
    double least = divergence(bins, BINS, levels);
    for (int n = levels; n < BINS; n++) {
        double d = divergence(bins, n, levels);
        if (d < least) least = d, best = n;
    }
    return greatest * (float)best / BINS;
}

/* The greatest magnitude that the integers of each layer's input are to hold. */
static bool calibrate(Run *r, int way, int bits, float most[LAYERS])
{
    static int32_t bins[BINS];
    if (!network_run(&r->net, picture(r, 0), CALIBRATION)) return false;
    for (int i = 0; i < LAYERS; i++) {
        if (!network_spread(&r->net, i, picture(r, 0), CALIBRATION, &most[i], bins)) return false;
        if (way == PERCENTILE) most[i] = percentile(bins, most[i], 0.995);
        if (way == KL) most[i] = by_divergence(bins, most[i], 1 << (bits - 1));
    }
    return true;
}

/* ---- what it costs ---- */

static bool download_logits(Run *r, int which)
{
    return !tile_buffer_download(r->net.layer[LAYERS - 1].y, 0, r->logits[which],
                                 sizeof r->logits[which], NULL);
}

/* Runs the test's digits some times: how many are right, and the least time. */
static bool test(Run *r, bool (*run)(Network *, const float *, int), int which, int *right,
                 double *us)
{
    *us = INFINITY;
    for (int i = 0; i < 3; i++) {
        double start = now();
        if (!run(&r->net, picture(r, TRAIN), TEST) || tile_stream_synchronize(NULL)) return false;
        *us = fmin(*us, 1e6 * (now() - start) / TEST);
    }
    return network_count(&r->net, labels(r, TRAIN), TEST, right, r->right[which]) &&
           download_logits(r, which);
}

/* The integer network in plain C: the greatest difference of logits, relative to their greatest. */
static bool differs(Run *r, double *out)
{
    enum { ROWS = 32, MOST = PIXELS };
    static float a[MOST], y[MOST], scale[MOST], bias[MOST];
    static int8_t w[MOST * MOST];
    double worst = 0, size = 0;
    for (int m = 0; m < ROWS; m++) {
        memcpy(a, r->x + (size_t)(TRAIN + m) * PIXELS, sizeof a);
        for (int i = 0; i < LAYERS; i++) {
            Layer *l = &r->net.layer[i];
            uint64_t out_bytes = 4 * (uint64_t)l->out;
            if (tile_buffer_download(l->qw, 0, w, tile_buffer_bytes(l->qw), NULL) ||
                tile_buffer_download(l->scale, 0, scale, out_bytes, NULL) ||
                tile_buffer_download(l->b, 0, bias, out_bytes, NULL))
                return false;
            for (int o = 0; o < l->out; o++) {
                int32_t sum = 0;
                for (int k = 0; k < l->in; k++) {
                    float q = fminf(fmaxf(rintf(a[k] * l->inverse_x), -r->net.limit), r->net.limit);
                    sum += (int32_t)q * w[k * l->out + o];
                }
                y[o] = (float)sum * scale[o] + bias[o];
                if (i < LAYERS - 1) y[o] = fmaxf(y[o], 0);
            }
            memcpy(a, y, out_bytes);
        }
        for (int o = 0; o < CLASSES; o++) {
            worst = fmax(worst, fabs(a[o] - r->logits[1][m * CLASSES + o]));
            size = fmax(size, fabs(a[o]));
        }
    }
    *out = worst / size;
    return true;
}

static double logit_error(const Run *r)
{
    double error = 0, size = 0;
    for (int i = 0; i < TEST * CLASSES; i++) {
        double d = (double)r->logits[1][i] - r->logits[0][i];
        error += d * d, size += (double)r->logits[0][i] * r->logits[0][i];
    }
    return sqrt(error / size);
}

static bool evaluate(Run *r, bool *good)
{
    static const char *const name[WAYS] = {"greatest", "99.5%", "KL"};
    const double numbers = PIXELS * 96 + 96 * 48 + 48 * CLASSES;
    static const int bits[] = {8, 5, 4};
    int before, after;
    double us, other;
    if (!test(r, network_run, 0, &before, &us)) return false;
    printf("numbers   range by  right    errors of logits  weights   a digit\n"
           "f32                 %5.2f %%  %12s  %8.0f B  %.2f us\n", 100.0 * before / TEST, "",
           4 * numbers, us);
    *good = before > 0.95 * TEST;
    for (int b = 0; b < 3; b++)
        for (int way = 0; way < WAYS; way++) {
            float most[LAYERS];
            if (!calibrate(r, way, bits[b], most) || !network_quantise(&r->net, bits[b], most) ||
                !test(r, network_run_int8, 1, &after, &us) || !differs(r, &other))
                return false;
            printf("%d bits    %-8s  %5.2f %%  %10.2f %%    %8.0f B  %.2f us\n", bits[b], name[way],
                   100.0 * after / TEST, 100 * logit_error(r), numbers * bits[b] / 8, us);
            *good &= other < 1e-5 && (b > 0 || after > before - TEST / 200);
            if (!(other < 1e-5)) printf("in plain C the logits are others, by %.1e\n", other);
        }
    return true;
}

/* Test digits, those in front that the last network gets wrong. Frames: green where f32 and it are
 * right, red where only f32 is, grey where f32 is wrong too. */
static bool save(const Run *r, const char *out)
{
    enum { ACROSS = 24, DOWN = 8, CELL = SIDE + 4, SCALE = 2, W = ACROSS * CELL * SCALE,
           H = DOWN * CELL * SCALE };
    static const uint8_t frame[3][3] = {{40, 160, 70}, {230, 50, 40}, {130, 130, 130}};
    int shown[ACROSS * DOWN], n = 0;
    for (int good = 0; good <= 1; good++)
        for (int i = 0; i < TEST && n < ACROSS * DOWN; i++)
            if (r->right[1][i] == good && (good || n < 3 * ACROSS)) shown[n++] = i;
    uint8_t *pixels = malloc((size_t)W * H * 3);
    if (!pixels) return fail("", "no memory");
    for (int p = 0; p < W * H; p++) {
        int y = p / W / SCALE, x = p % W / SCALE, cell = y / CELL * ACROSS + x / CELL;
        int i = cell < n ? shown[cell] : 0, v = y % CELL - 2, u = x % CELL - 2;
        const uint8_t *f = frame[!r->right[0][i] ? 2 : !r->right[1][i]];
        bool edge = v < 0 || u < 0 || v >= SIDE || u >= SIDE;
        float ink = edge ? 0 : r->x[(size_t)(TRAIN + i) * PIXELS + (size_t)(v * SIDE + u)];
        int grey = (int)(15 * fminf(1, fmaxf(0, 0.9f - 0.7f * ink))) * 17;
        for (int c = 0; c < 3; c++) pixels[p * 3 + c] = edge ? f[c] : (uint8_t)grey;
    }
    bool good = picture_write(out, W, H, PNG_FORMAT_RGB, pixels);
    if (good)
        printf("%s: digits, first those that 4 bits get wrong: red where f32 is right\n", out);
    return free(pixels), good;
}

int main(int argc, char **argv)
{
    int epochs = argc > 1 ? atoi(argv[1]) : 15;
    const char *out = argc > 2 ? argv[2] : "int8.png";
    if (argc > 3 || epochs < 1 || epochs > 1000)
        return fputs("usage: 12_int8 [EPOCHS [OUT.png]]\n", stderr), 2;
    Run *r = calloc(1, sizeof *r);
    bool learned = false;
    bool good = r || fail("", "no memory");
    if (good) good = draw_digits(r);
    if (good && !(network_open(&r->net, TEST) && train(r, epochs) && evaluate(r, &learned)))
        good = fail("", tile_last_error());
    if (good) good = save(r, out);
    if (r) network_close(&r->net), buffers_free(&r->buffers), free(r->x);
    return free(r), !good || !learned;
}
