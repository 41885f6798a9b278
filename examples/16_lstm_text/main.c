/* Trains a recurrent network on text files, then lets it write: 16_lstm_text [OPTION]... [FILE]...;
 * usage() has the options. */
#define PROGRAM "16_lstm_text"
#include "../shared/curve.h"
#include "../shared/example.h"
#include "check.h"
#include "lstm.h"
#include <errno.h>

enum { POINTS = 60, HELD_CHUNKS = 16 };

typedef struct Options {
    int width, rows, length, steps, sample;
    bool check;
    float rate, temperature;
    uint64_t seed;
    const char *curve, *prompt;
} Options;

typedef struct Run {
    Options o;
    Text text;
    Lstm net;
    Memory learns, other; /* of the training text; of held-out text, and of what is written */
    Point point[POINTS + 2];
    int points;
    double began, sum; /* the losses since the last point */
    int chunks;
} Run;

static int usage(void)
{
    fputs("usage: 16_lstm_text [OPTION]... [FILE]...    (without files: its own sources)\n"
          "  -d N  width of the state (192)     -b N  places of the text at a time (16)\n"
          "  -c N  steps of a chunk (48)        -n N  chunks to learn from (1200)\n"
          "  -r R  rate (0.004)                 -s S  seed (1)\n"
          "  -o F  the curve, F.svg             -p P  prompt\n"
          "  -m N  bytes of text at the end (300)   -T T  their temperature (0.6)\n"
          "  -g    only check the derivatives of a small network\n",
          stderr);
    return 2;
}

static bool options(int argc, char **argv, Options *o)
{
    *o = (Options){192, 16, 48, 1200, 300, false, 4e-3f, 0.6f, 1, NULL, "The "};
    const Option rows[] = {
        {'d', IS_INT, &o->width, 1, 4096}, {'b', IS_INT, &o->rows, 1, 4096},
        {'c', IS_INT, &o->length, 1, 4096}, {'n', IS_INT, &o->steps, 1, 1e7},
        {'r', IS_FLOAT, &o->rate, 0, 1}, {'s', IS_SEED, &o->seed, 0, 1e9},
        {'o', IS_TEXT, &o->curve, 0, 0}, {'p', IS_TEXT, &o->prompt, 0, 0},
        {'m', IS_INT, &o->sample, 0, 1e6}, {'T', IS_FLOAT, &o->temperature, 1e-3, 100},
        {'g', IS_FLAG, &o->check, 0, 0}};
    return options_read(argc, argv, rows, sizeof rows / sizeof *rows);
}

/* ---- learning ---- */

/* The chunk number i of a text that is read from `rows` places at once, from each on as far as to
 * the next; then from the beginning again, of which the network does not know. */
static bool load_chunk(Run *r, const uint8_t *text, size_t n, int i)
{
    int rows = r->o.rows, length = r->o.length;
    size_t part = n / (size_t)rows, chunks = (part - 1) / (size_t)length;
    uint8_t *x = malloc((size_t)rows * ((size_t)length + 1));
    for (int b = 0; x && b < rows; b++)
        memcpy(x + (size_t)b * ((size_t)length + 1),
               text + (size_t)b * part + (size_t)i % chunks * (size_t)length, (size_t)length + 1);
    bool good = x && lstm_load(&r->net, x, rows, length);
    return free(x), good;
}

static bool train_chunk(Run *r, int step)
{
    const Options *o = &r->o;
    double loss;
    float rate = o->rate * (float)(0.55 + 0.45 * cos(3.141592653589793 * step / o->steps));
    if (!load_chunk(r, r->text.train, r->text.trains, step) ||
        !lstm_forward(&r->net, &r->learns, o->rows, o->length) ||
        !lstm_loss(&r->net, o->rows, o->length, &loss) ||
        !lstm_backward(&r->net, &r->learns, o->rows, o->length) ||
        !lstm_go_on(&r->net, &r->learns, o->rows, o->length))
        return false;
    r->sum += loss, r->chunks++;
    return lstm_step(&r->net, rate);
}

static bool clear(const Run *r, Memory *s)
{
    uint64_t bytes = (uint64_t)r->o.rows * (uint64_t)r->o.width * 4;
    return !(tile_buffer_fill(s->h, 0, 0, bytes, NULL) ||
             tile_buffer_fill(s->c, 0, 0, bytes, NULL));
}

/* Bits a byte of some held-out text, which the network reads from its beginning. */
static bool held_out(Run *r, double *bits)
{
    const Options *o = &r->o;
    size_t part = r->text.helds / (size_t)o->rows, chunks = (part - 1) / (size_t)o->length;
    int n = chunks < HELD_CHUNKS ? (int)chunks : HELD_CHUNKS;
    double sum = 0, loss = 0;
    bool good = clear(r, &r->other);
    for (int i = 0; good && i < n; i++, sum += loss)
        good = load_chunk(r, r->text.held, r->text.helds, i) &&
               lstm_forward(&r->net, &r->other, o->rows, o->length) &&
               lstm_loss(&r->net, o->rows, o->length, &loss) &&
               lstm_go_on(&r->net, &r->other, o->rows, o->length);
    *bits = sum / n / log(2);
    return good;
}

static bool add_point(Run *r, int step)
{
    Point *p = &r->point[r->points++];
    *p = (Point){step, r->sum / r->chunks / log(2), -1};
    r->sum = r->chunks = 0;
    if (!held_out(r, &p->held)) return false;
    printf("chunk %5d: %.4f bits a byte, held out %.4f; %.0f s\n", step, p->train, p->held,
           now() - r->began);
    return fflush(stdout), true;
}

static bool train(Run *r)
{
    int every = r->o.steps / POINTS + 1;
    r->began = now();
    for (int step = 1; step <= r->o.steps; step++)
        if (!train_chunk(r, step - 1) ||
            ((step % every == 0 || step == r->o.steps) && !add_point(r, step)))
            return false;
    return true;
}

/* ---- writing ---- */

/* By chance, in proportion to e^(score / temperature). */
static int choose(const float *score, float temperature, double chance)
{
    double weight[BYTES], most = -INFINITY, sum = 0;
    for (int i = 0; i < BYTES; i++) most = fmax(most, score[i]);
    for (int i = 0; i < BYTES; i++) sum += weight[i] = exp((score[i] - most) / temperature);
    int i = 0;
    for (chance *= sum; i < BYTES - 1 && (chance -= weight[i]) >= 0; i++) {}
    return i;
}

/* The network reads a byte and remembers. */
static bool read_byte(Run *r, int byte, float score[BYTES])
{
    const uint8_t x[2] = {(uint8_t)byte, 0};
    return lstm_load(&r->net, x, 1, 1) && lstm_forward(&r->net, &r->other, 1, 1) &&
           lstm_go_on(&r->net, &r->other, 1, 1) &&
           !tile_buffer_download(r->net.logits, 0, score, BYTES * sizeof *score, NULL);
}

static bool write_text(Run *r)
{
    float score[BYTES];
    const char *prompt = *r->o.prompt ? r->o.prompt : "\n";
    bool good = clear(r, &r->other);
    for (const char *p = prompt; good && *p; p++) good = read_byte(r, (uint8_t)*p, score);
    printf("[%s]", r->o.prompt);
    for (int i = 0; good && i < r->o.sample; i++) {
        int next = choose(score, r->o.temperature, uniform_at(r->o.seed + 99, (uint64_t)i));
        putchar(next == '\n' || (next >= ' ' && next != 127) ? next : '?');
        good = read_byte(r, next, score);
    }
    putchar('\n');
    return good;
}

/* ---- all of it ---- */

static bool draw(const Run *r)
{
    char title[200];
    snprintf(title, sizeof title, "bits a byte; held out at the end: %.3f",
             r->point[r->points - 1].held);
    if (curve_write(r->o.curve, r->point, r->points, title)) return true;
    return fail(r->o.curve, strerror(errno));
}

static bool run(Run *r, char **files, int n)
{
    static char *own[] = {SOURCES "/README.md", SOURCES "/main.c", SOURCES "/lstm.c",
                          SOURCES "/check.c"};
    const Options *o = &r->o;
    const char *wrong;
    if (!text_open(&r->text, n ? files : own, n ? n : 4, &wrong))
        return fail(wrong, strerror(errno));
    if (r->text.helds / (size_t)o->rows <= (size_t)o->length)
        return fail("", "there is less held-out text than a chunk");
    if (!lstm_open(&r->net, o->width, o->rows, o->length, o->seed) ||
        !lstm_remember(&r->net, &r->learns) || !lstm_remember(&r->net, &r->other))
        return fail("", tile_last_error());
    printf("a state of %d numbers, %zu weights; %zu bytes to learn from, %zu held out\n", o->width,
           r->net.size[INPUT] + r->net.size[STATE] + r->net.size[SCORES], r->text.trains,
           r->text.helds);
    if (!train(r) || (o->sample && !write_text(r))) return fail("", tile_last_error());
    return !o->curve || draw(r);
}

int main(int argc, char **argv)
{
    static Run r;
    bool good, right = true;
    if (!options(argc, argv, &r.o)) return usage();
    if (r.o.check)
        good = check_gradients(&right) || fail("", tile_last_error());
    else
        good = run(&r, argv + optind, argc - optind);
    lstm_forget(&r.learns), lstm_forget(&r.other), lstm_close(&r.net), text_close(&r.text);
    return !good || !right;
}
