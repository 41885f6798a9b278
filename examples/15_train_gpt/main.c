/* Trains a decoder of bytes on text files: 15_train_gpt [OPTION]... [FILE]...; usage() has the
 * options. */
#define PROGRAM "15_train_gpt"
#include "../shared/curve.h"
#include "../shared/example.h"
#include "check.h"
#include "ranks.h"
#include "share.h"
#include "steps.h"
#include <errno.h>

enum { POINTS = 60, WINDOWS = 96, MOST_WINDOWS = 4096 };

typedef struct Options {
    Config model;
    bool check;
    int batch, parts, steps, sample; /* batch: sequences of a step */
    float rate, decay, temperature;
    uint64_t seed;
    const char *curve, *prompt, *library;
} Options;

typedef struct Run {
    Options o;
    Text text;
    Model model;
    Steps steps;
    Point point[POINTS + 2];
    int points;
    const char *why; /* it failed, where tile_last_error() does not say so */
    double began, sum, bytes; /* since the last point: the losses, in nats, of so many bytes */
} Run;

static int usage(void)
{
    fputs("usage: 15_train_gpt [OPTION]... [FILE]...    (without files: its own sources)\n"
          "  -t TYPE  f32, bf16, f16 (f32)       -l N  layers (2)         -d N  width (128)\n"
          "  -h N  heads (4)                     -f N  hidden width (256) -c N  context (128)\n"
          "  -b N  sequences of a step (8)       -a N  parts of a rank's share (1)\n"
          "  -n N  steps (300)                   -r R  rate (0.003)       -w R  decay (0.1)\n"
          "  -s S  seed (1)                      -o F  the curve, F.svg   -p P  prompt\n"
          "  -m N  bytes of text at the end (300)  -T T  their temperature (0.8)\n"
          "  -L F  what adds up the ranks' gradients: a library, mpi (on GPUs NCCL or RCCL)\n"
          "  -g    only check the derivatives of a small model\n"
          "With mpirun -n N, N processes share each step's sequences.\n",
          stderr);
    return 2;
}

/* ---- options ---- */

static bool set_type(Config *c, const char *name)
{
    for (int t = 0; t < TYPES; t++)
        if (strcmp(name, type_name((Type)t)) == 0) return c->type = (Type)t, true;
    return false;
}

static bool options(int argc, char **argv, Options *o)
{
    const char *type = "f32";
    Config *c = &o->model;
    *o = (Options){.model = {2, 128, 4, 256, 128, 0, F32, 1}, .batch = 8, .parts = 1, .steps = 300,
                   .sample = 300, .rate = 3e-3f, .decay = 0.1f, .temperature = 0.8f, .seed = 1,
                   .prompt = "A tile is "};
    const Option rows[] = {
        {'t', IS_TEXT, &type, 0, 0}, {'l', IS_INT, &c->layers, 1, 40},
        {'d', IS_INT, &c->width, 8, 4096}, {'h', IS_INT, &c->heads, 1, 256},
        {'f', IS_INT, &c->hidden, 1, 16384}, {'c', IS_INT, &c->context, 2, 4096},
        {'b', IS_INT, &o->batch, 1, 65536}, {'a', IS_INT, &o->parts, 1, 65536},
        {'n', IS_INT, &o->steps, 1, 1e7}, {'r', IS_FLOAT, &o->rate, 0, 1},
        {'w', IS_FLOAT, &o->decay, 0, 10}, {'s', IS_SEED, &o->seed, 0, 1e9},
        {'o', IS_TEXT, &o->curve, 0, 0}, {'p', IS_TEXT, &o->prompt, 0, 0},
        {'m', IS_INT, &o->sample, 0, 1e6}, {'T', IS_FLOAT, &o->temperature, 0, 100},
        {'L', IS_TEXT, &o->library, 0, 0}, {'g', IS_FLAG, &o->check, 0, 0}};
    return options_read(argc, argv, rows, sizeof rows / sizeof *rows) && set_type(c, type);
}

static bool sizes(Options *o)
{
    Config *c = &o->model;
    int shares = ranks_count() * o->parts;
    if (c->width % c->heads || c->width / c->heads % 2 || c->width / c->heads > 256)
        return fail("", "the width has to be a multiple of the heads, whose sizes are even, up to "
                    "256");
    if (o->batch % shares)
        return fail("", "the sequences of a step have to be a multiple of ranks times parts");
    c->batch = o->batch / shares;
    c->ranks = ranks_count();
    return true;
}

/* ---- training ---- */

static bool load_sequences(Run *r, int step, int part)
{
    const Config *c = &r->o.model;
    size_t width = (size_t)c->context + 1, most = r->text.trains - width;
    uint8_t *x = malloc((size_t)c->batch * width);
    uint64_t first = (uint64_t)step * (uint64_t)r->o.batch +
                     (uint64_t)((ranks_me() * r->o.parts + part) * c->batch);
    for (int i = 0; x && i < c->batch; i++)
        memcpy(x + (size_t)i * width,
               r->text.train + random_at(r->o.seed, first + (uint64_t)i) % (most + 1), width);
    bool good = x && model_load(&r->model, x, c->batch, c->context);
    return free(x), good;
}

/* The losses of the tokens [from, length) of each sequence, summed. */
static bool sum_losses(Model *m, int rows, int length, int from, double *sum)
{
    size_t n = (size_t)rows * (size_t)length;
    float *loss = malloc(n * sizeof *loss);
    bool good = loss && !tile_buffer_download(m->loss, 0, loss, n * sizeof *loss, NULL);
    for (size_t i = 0; good && i < n; i++)
        if ((int)(i % (size_t)length) >= from) *sum += loss[i];
    return free(loss), good;
}

/* Rises for a while, then falls to a tenth along a cosine. */
static float rate_of(const Options *o, int step)
{
    int warm = o->steps / 20 + 1;
    if (step < warm) return o->rate * (float)(step + 1) / (float)warm;
    double x = (double)(step - warm) / (o->steps - warm + 1);
    return o->rate * (float)(0.55 + 0.45 * cos(3.141592653589793 * x));
}

/* Sums over the ranks begin while the layers before are still on their way back. */
static bool begin_bucket(const Model *m, const Bucket *b)
{
    return share_begin(m->grads, b->at, b->n);
}

static bool train_step(Run *r, int step)
{
    const Config *c = &r->o.model;
    Ready *ready = r->o.parts == 1 ? begin_bucket : NULL;
    double all = (double)r->o.batch * c->context;
    for (int part = 0; part < r->o.parts; part++) {
        if (!load_sequences(r, step, part) || !model_forward(&r->model, c->batch, c->context) ||
            !model_loss(&r->model, c->batch, c->context) ||
            !sum_losses(&r->model, c->batch, c->context, 0, &r->sum) ||
            !model_backward(&r->model, c->batch, c->context, all, ready) ||
            (r->o.parts > 1 && !steps_accumulate(&r->steps, part == 0)))
            return false;
        r->bytes += (double)c->batch * c->context;
    }
    return steps_step(&r->steps, r->o.parts > 1, rate_of(&r->o, step), r->o.decay);
}

/* Bits a byte of held-out text, in windows of a context, at most so many: of each the second half,
 * so that each byte has half a context or more before it. */
static bool held_out(Run *r, int most, double *bits)
{
    const Config *c = &r->o.model;
    size_t width = (size_t)c->context + 1, half = (size_t)c->context / 2;
    size_t there = r->text.helds < width ? 0 : (r->text.helds - width) / half + 1;
    size_t n = there < (size_t)most ? there : (size_t)most;
    double sum[2] = {0};
    uint8_t *x = malloc((size_t)c->batch * width);
    bool good = x;
    for (size_t i = 0; good && i < n; i += (size_t)c->batch) {
        int rows = (int)(n - i < (size_t)c->batch ? n - i : (size_t)c->batch);
        if ((int)(i / (size_t)c->batch % (size_t)ranks_count()) != ranks_me()) continue;
        for (int k = 0; k < rows; k++) {
            size_t window = (i + (size_t)k) * there / n;
            memcpy(x + (size_t)k * width, r->text.held + window * half, width);
        }
        good = model_load(&r->model, x, rows, c->context) &&
               model_forward(&r->model, rows, c->context) &&
               model_loss(&r->model, rows, c->context) &&
               sum_losses(&r->model, rows, c->context, (int)half, &sum[0]);
        sum[1] += (double)rows * (double)(c->context - (int)half);
    }
    free(x);
    ranks_sum_doubles(sum, 2);
    *bits = sum[1] > 0 ? sum[0] / sum[1] / log(2) : -1;
    return good;
}

static bool add_point(Run *r, int step, bool last)
{
    Point *p = &r->point[r->points++];
    double sum[2] = {r->sum, r->bytes};
    float norm, scale;
    int taken;
    ranks_sum_doubles(sum, 2);
    r->sum = r->bytes = 0;
    *p = (Point){step, sum[0] / sum[1] / log(2), -1};
    if (!held_out(r, last ? MOST_WINDOWS : WINDOWS, &p->held) ||
        !steps_state(&r->steps, &taken, &norm, &scale))
        return false;
    float first = norm;
    ranks_give(&first, sizeof first);
    if (!ranks_all(first == norm || isnan(norm)))
        return r->why = "the ranks' weights are not the same any more", false;
    if (ranks_me() == 0)
        printf("step %5d: %.4f bits a byte, held out %.4f; norm %.3f, scale %g, %.0f s\n", taken,
               p->train, p->held, (double)norm, (double)scale, now() - r->began);
    return fflush(stdout), true;
}

static bool train(Run *r)
{
    int every = r->o.steps / POINTS + 1;
    r->began = now();
    for (int step = 1; step <= r->o.steps; step++) {
        bool last = step == r->o.steps;
        if (!train_step(r, step - 1)) return false;
        if ((step % every == 0 || last) && !add_point(r, step, last)) return false;
    }
    return true;
}

/* ---- text ---- */

typedef struct Choice {
    Buffers buffers;
    tile_buffer *temperature, *k, *top_p, *token, *kept;
} Choice;

static bool choose(Run *r, const Choice *c, int length, uint64_t seed, int *next)
{
    Model *m = &r->model;
    int32_t token;
    tile_arg last =
        tile_buffer_view_at(m->logits, (length - 1) * BYTES, type_dtype(m->config.type), 1, BYTES);
    if (!RUN(&m->kernels, SAMPLE, last, tile_f32_view(c->temperature, 1), tile_i32_view(c->k, 1),
             tile_f32_view(c->top_p, 1), tile_i32_view(c->token, 1), tile_i32_view(c->kept, 1),
             tile_u64(seed)) ||
        tile_buffer_download(c->token, 0, &token, sizeof token, NULL))
        return false;
    return *next = token, true;
}

/* The model goes over its last bytes again for each new one: it keeps no keys and values. */
static bool write_text(Run *r, const Choice *c)
{
    int context = r->o.model.context, n = 0;
    uint8_t *x = calloc((size_t)context + 2, 1);
    if (!x) return fail("", "no memory");
    for (const char *p = r->o.prompt; *p && n < context; p++) x[n++] = (uint8_t)*p;
    if (n == 0) x[n++] = '\n';
    printf("[%.*s]", n, (char *)x);
    bool good = true;
    for (int i = 0, next = 0; good && i < r->o.sample; i++) {
        if (n == context) memmove(x, x + context / 2, (size_t)(n -= context / 2));
        x[n] = 0; /* its label: of no use */
        good = model_load(&r->model, x, 1, n) && model_forward(&r->model, 1, n) &&
               choose(r, c, n, r->o.seed * 1000003 + (uint64_t)i, &next);
        x[n++] = (uint8_t)next;
        if (good) putchar(next == '\n' || (next >= ' ' && next != 127) ? next : '?');
    }
    putchar('\n');
    return free(x), good;
}

static bool sample(Run *r)
{
    Choice c = {.buffers = {.n = 0}};
    Buffers *b = &c.buffers;
    const float top_p = 1;
    bool good = zeros(b, &c.temperature, 1, 4) && zeros(b, &c.k, 1, 4) &&
                zeros(b, &c.top_p, 1, 4) && zeros(b, &c.token, 1, 4) && zeros(b, &c.kept, 1, 4) &&
                !tile_buffer_upload(c.temperature, 0, &r->o.temperature, 4, NULL) &&
                !tile_buffer_upload(c.top_p, 0, &top_p, 4, NULL) && write_text(r, &c);
    buffers_free(b);
    return good;
}

/* ---- all of it ---- */

static bool draw(const Run *r)
{
    char title[200];
    const Point *p = &r->point[r->points - 1];
    snprintf(title, sizeof title, "bits a byte; held out at the end: %.3f", p->held);
    if (curve_write(r->o.curve, r->point, r->points, title)) return true;
    return fail(r->o.curve, strerror(errno));
}

static void describe(const Run *r)
{
    const Config *c = &r->o.model;
    size_t weights = 0;
    for (int i = 0; i < r->model.tensors; i++)
        weights += (size_t)r->model.tensor[i].rows * (size_t)r->model.tensor[i].cols;
    printf("%d layers of width %d and %d, %d heads, %zu weights in %s; %zu bytes to learn from, "
           "%zu held out; %d ranks\n",
           c->layers, c->width, c->hidden, c->heads, weights, type_name(c->type), r->text.trains,
           r->text.helds, ranks_count());
}

static bool run(Run *r, char **files, int n)
{
    static char *own[] = {SOURCES "/README.md", SOURCES "/main.c", SOURCES "/model.c",
                          SOURCES "/steps.c"};
    if (!sizes(&r->o)) return false;
    const char *wrong;
    if (!ranks_all(text_open(&r->text, n ? files : own, n ? n : 4, &wrong) ||
                   fail(wrong, strerror(errno))))
        return false;
    if (r->text.trains <= (size_t)r->o.model.context)
        return fail("", "there is less text than a context");
    if (!share_open(r->o.library)) return fail("", tile_last_error());
    if (!model_open(&r->model, r->o.model) || !steps_open(&r->steps, &r->model, r->o.seed))
        return fail("", tile_last_error());
    if (ranks_me() == 0) describe(r);
    if (!train(r))
        return fail("", r->why ? r->why : tile_last_error());
    if (ranks_me() != 0) return true;
    if (r->o.sample && !sample(r)) return fail("", tile_last_error());
    return !r->o.curve || draw(r);
}

int main(int argc, char **argv)
{
    static Run r;
    bool good = true, right = true;
    ranks_open();
    if (!options(argc, argv, &r.o)) return ranks_me() == 0 ? usage() : 2;
    if (!share_device()) return fail("", tile_last_error()), 1;
    if (r.o.check)
        good = check_gradients(&right) || fail("", tile_last_error());
    else
        good = run(&r, argv + optind, argc - optind);
    steps_close(&r.steps), model_close(&r.model), text_close(&r.text);
    if (good) share_close(), ranks_close(); /* else mpirun ends the others */
    return !good || !right;
}
