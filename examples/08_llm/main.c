/* Text from a checkpoint: 08_llm [OPTION]... [MODEL [PROMPT]...]; usage() has the options. */
#define PROGRAM "08_llm"
#include "../shared/example.h"
#include "batch.h"
#include "chat.h"
#include "serve.h"
#include "team.h"
#include <errno.h>

typedef struct Options {
    int tokens, top_k;
    float temperature, top_p;
    uint64_t seed;
    const char *logits, *model;
    char **prompt;
    int prompts;
    bool words; /* only show the prompts' tokens */
    bool chat;  /* prompts are messages of a talk */
    const char *system;
    int port, longest, room; /* port: below 0: none; of a server: tokens of a text, of all texts */
} Options;

typedef struct Run {
    Options o;
    Checkpoint checkpoint;
    Chat chat;
    Model *model;
    Batch *batch;
    Sequence *sequence;         /* of each prompt */
    float *logits;              /* of all tokens of prompts, if they are asked for */
    double seconds[2];          /* of steps with tokens of prompts; of the others */
    int rows[2], steps[2];
} Run;

static int usage(void)
{
    fputs("usage: 08_llm [OPTION]... [MODEL [PROMPT]...]\n"
          "MODEL: a folder with config.json, model.safetensors, tokenizer.json, or a .gguf file\n"
          "  -n N   tokens to generate (40)      -t T  temperature (0: the most probable token)\n"
          "  -k K   of the K most probable (all) -p P  of those that come to probability P (1)\n"
          "  -s S   seed of random numbers (1)   -l F  logits of the prompts' tokens, to F.npy\n"
          "  -c     prompts are messages, in the file's chat template\n"
          "  -i I   with instructions before them, a system message (with -c)\n"
          "  -w     print the numbers of the prompts' tokens, and end\n"
          "  -S N   answer OpenAI's requests at http://127.0.0.1:N/v1 (0: any port) instead, with\n"
          "         -m N tokens in a text at most (4096), and -r N in all texts (16384)\n",
          stderr);
    return 2;
}

static bool options(int argc, char **argv, Options *o)
{
    static char *prompts[] = {"A tile is", "The compiler", "Nobody"};
    *o = (Options){40, 0, 0, 1, 1, NULL, MODEL_DIR "/q4_0.gguf", prompts, 3, false, false, NULL,
                   -1, 4096, 16384};
    const Option rows[] = {
        {'n', IS_INT, &o->tokens, 0, 1e6}, {'t', IS_FLOAT, &o->temperature, 0, 1e6},
        {'k', IS_INT, &o->top_k, 0, 1e6}, {'p', IS_FLOAT, &o->top_p, 0, 1e6},
        {'s', IS_SEED, &o->seed, 0, 1e6}, {'l', IS_TEXT, &o->logits, 0, 0},
        {'w', IS_FLAG, &o->words, 0, 0}, {'c', IS_FLAG, &o->chat, 0, 0},
        {'i', IS_TEXT, &o->system, 0, 0}, {'S', IS_INT, &o->port, 0, 65535},
        {'m', IS_INT, &o->longest, 1, 1 << 24}, {'r', IS_INT, &o->room, 1, 1 << 28}};
    if (!options_read(argc, argv, rows, sizeof rows / sizeof *rows)) return false;
    if (o->system && !o->chat) return false;
    if (o->port >= 0 && (o->chat || o->words || o->logits)) return false;
    if (optind < argc) o->model = argv[optind++];
    if (optind < argc && o->port >= 0) return false;
    if (optind < argc) o->prompt = argv + optind, o->prompts = argc - optind;
    return true;
}

/* ---- sequences ---- */

/* The tokens of a prompt; NULL: it has none, as was said. */
static int *encode(Run *r, const char *prompt, size_t *count)
{
    char text[200];
    char *wrapped = r->o.chat ? chat_wrap(&r->chat, &r->checkpoint, prompt) : NULL;
    if (r->o.chat && !wrapped) return fail("", r->checkpoint.error), NULL;
    const char *whole = wrapped ? wrapped : prompt;
    size_t length = strlen(whole);
    int *token = words_encode(r->checkpoint.words, whole, length, count);
    snprintf(text, sizeof text, "no token for byte %zu of the prompt '%.100s'", *count, whole);
    if (!token) fail("", *count < length ? text : "no memory");
    return free(wrapped), token;
}

static bool take(Sequence *s, int next);

static bool begin_sequence(Run *r, Sequence *s, const char *prompt)
{
    char text[200];
    size_t n;
    int *token = encode(r, prompt, &n);
    if (!token) return false;
    if (n == 0 || n > (size_t)r->checkpoint.config.context) {
        snprintf(text, sizeof text, "a prompt of %zu tokens: the model takes 1 to %d", n,
                 r->checkpoint.config.context);
        return free(token), fail("", text);
    }
    int given = (int)n, room = r->checkpoint.config.context - given;
    *s = (Sequence){.given = given, .known = given,
                    .most = given + (r->o.tokens < room ? r->o.tokens : room),
                    .temperature = r->o.temperature, .top_p = r->o.top_p, .top_k = r->o.top_k,
                    .take = take, .user = r};
    int *grown = realloc(token, ((size_t)s->most + 1) * sizeof *token);
    if (!grown) return free(token), fail("", "no memory");
    s->token = grown;
    return true;
}

static bool begin_all(Run *r)
{
    int n = r->o.prompts, longest = 0, given = 0;
    char error[400];
    if (n > MOST_ROWS) return fail("", "at most 64 prompts");
    if (!(r->sequence = calloc((size_t)n, sizeof *r->sequence))) return fail("", "no memory");
    for (int i = 0; i < n; i++) {
        if (!begin_sequence(r, &r->sequence[i], r->o.prompt[i])) return false;
        if (r->sequence[i].most > longest) longest = r->sequence[i].most;
        given += r->sequence[i].given;
    }
    int pages = n * ((longest + PAGE - 1) / PAGE);
    r->model = model_new(&r->checkpoint, longest, pages, error, sizeof error);
    if (!r->model) return fail("", error);
    if (!model_prepare(r->model, n) ||
        !model_prepare(r->model, given < MOST_ROWS ? given : MOST_ROWS))
        return fail("", tile_last_error());
    r->batch = batch_new(r->model, pages, r->o.logits);
    for (int i = 0; r->batch && i < n; i++)
        batch_add(r->batch, &r->sequence[i]);
    return r->batch || fail("", "no memory");
}

static void print_token(const Run *r, int token)
{
    size_t n;
    if (checkpoint_ends(&r->checkpoint, token) || token >= words_count(r->checkpoint.words)) return;
    const char *bytes = words_bytes(r->checkpoint.words, token, &n);
    fwrite(bytes, 1, n, stdout);
}

/* Logits of prompts go to their places, a row for each token of the first prompt, then the next. */
static bool keep_logits(Run *r, const Step *step)
{
    const Row *row = step->row;
    int rows = step->rows;
    size_t width = (size_t)model_tokens(r->model);
    float *logits = malloc(MOST_ROWS * width * sizeof *logits);
    int wanted = 0;
    for (int i = 0; i < rows; i++) wanted += row[i].wanted;
    bool good = logits && model_logits(r->model, logits, wanted);
    for (int i = 0, j = 0; good && i < rows; i++) {
        size_t at = (size_t)row[i].place;
        for (const Sequence *s = r->sequence; s < step->of[i]; s++) at += (size_t)s->given;
        if (row[i].wanted && row[i].place < step->of[i]->given)
            memcpy(r->logits + at * width, logits + (size_t)j * width, width * sizeof *logits);
        j += row[i].wanted;
    }
    return free(logits), good || fail("", tile_last_error());
}

/* What a step chose to follow all tokens of s. */
static bool take(Sequence *s, int next)
{
    const Run *r = s->user;
    if (s->known < s->most) {
        s->token[s->known++] = next;
        if (r->o.prompts == 1) print_token(r, next), fflush(stdout);
    }
    return !checkpoint_ends(&r->checkpoint, next) && s->known < s->most;
}

/* One step of all sequences. */
static bool step(Run *r)
{
    Step done;
    int phase = 1;
    double start = now();
    if (!batch_step(r->batch, r->o.seed * 1000003 + (uint64_t)(r->steps[0] + r->steps[1]), &done))
        return fail("", tile_last_error());
    for (int i = 0; i < done.rows; i++)
        phase = done.row[i].place < done.of[i]->given ? 0 : phase;
    r->seconds[phase] += now() - start, r->rows[phase] += done.rows, r->steps[phase]++;
    return !r->logits || keep_logits(r, &done);
}

/* ---- what people see ---- */

static bool write_logits(const Run *r)
{
    int rows = 0;
    for (int i = 0; i < r->o.prompts; i++) rows += r->sequence[i].given;
    size_t width = (size_t)model_tokens(r->model), count = (size_t)rows * width;
    char header[129];
    int n = snprintf(
        header, sizeof header,
        "\x93NUMPY\x01%c\x76%c{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %zu), }", 0, 0,
        rows, width);
    memset(header + n, ' ', (size_t)(127 - n));
    header[127] = '\n';
    FILE *f = fopen(r->o.logits, "wb");
    bool good = f && fwrite(header, 1, 128, f) == 128 &&
                fwrite(r->logits, sizeof *r->logits, count, f) == count;
    if (f && fclose(f)) good = false;
    return good || fail(r->o.logits, strerror(errno));
}

static void describe(const Run *r)
{
    const Config *g = &r->checkpoint.config;
    printf("%s: %d layers of width %d and %d, %d heads of %d that share %d of keys, %d tokens\n",
           r->o.model, g->layers, g->width, g->hidden, g->heads, g->head_size, g->kv_heads,
           model_tokens(r->model));
    if (g->experts)
        printf("%d experts, of which a token goes through %d\n", g->experts, g->experts_used);
    if (team_size() > 1)
        printf("%d ranks share the heads and the hidden columns of each layer\n", team_size());
}

static void print_text(const Run *r, int i)
{
    const Sequence *s = &r->sequence[i];
    printf("[%s]", r->o.prompt[i]);
    for (int t = s->given; t < s->known; t++) print_token(r, s->token[t]);
    putchar('\n');
}

static bool report(const Run *r)
{
    double copy = model_copy_speed(r->model), bytes = (double)model_bytes(r->model);
    if (copy == 0) return fail("", tile_last_error());
    printf("prompts: %d tokens in %.1f ms\n", r->rows[0], 1e3 * r->seconds[0]);
    if (!r->rows[1]) return true;
    double least = bytes / copy; /* seconds that a step takes to read its weights */
    printf(
        "generated: %d tokens in %d steps, %.0f tokens/s; memory allows %.0f: %.3g MB of weights "
        "a step, copies run at %.1f GB/s\n",
        r->rows[1], r->steps[1], r->rows[1] / r->seconds[1], r->rows[1] / (r->steps[1] * least),
        1e-6 * bytes, 1e-9 * copy);
    return true;
}

static bool show_words(Run *r)
{
    for (int i = 0; i < r->o.prompts; i++) {
        size_t n;
        int *token = encode(r, r->o.prompt[i], &n);
        if (!token) return false;
        for (size_t j = 0; j < n; j++) printf("%s%d", j ? " " : "", token[j]);
        putchar('\n');
        free(token);
    }
    return true;
}

static bool run(Run *r)
{
    if (!checkpoint_open(&r->checkpoint, r->o.model)) return fail("", r->checkpoint.error);
    if (r->o.chat && !chat_open(&r->chat, &r->checkpoint, r->o.model, r->o.system))
        return fail("", r->checkpoint.error);
    if (r->o.words) return show_words(r);
    if (r->o.port >= 0)
        return serve(&r->checkpoint, &(Serving){r->o.model, r->o.port, r->o.longest, r->o.room,
                                                r->o.seed});
    if (!begin_all(r)) return false;
    if (r->o.logits) {
        size_t tokens = 0;
        for (int i = 0; i < r->o.prompts; i++) tokens += (size_t)r->sequence[i].given;
        r->logits = calloc(tokens * (size_t)model_tokens(r->model), sizeof *r->logits);
        if (!r->logits) return fail("", "no memory");
    }
    describe(r);
    if (r->o.prompts == 1) printf("[%s]", r->o.prompt[0]), fflush(stdout);
    while (batch_has_work(r->batch))
        if (!step(r)) return false;
    if (r->o.prompts == 1) putchar('\n');
    for (int i = 0; r->o.prompts > 1 && i < r->o.prompts; i++) print_text(r, i);
    return (!r->o.logits || team_rank() > 0 || write_logits(r)) && report(r);
}

int main(int argc, char **argv)
{
    Run r = {0};
    if (!options(argc, argv, &r.o)) return usage();
    if (!team_open()) return fail("", tile_last_error()), 1;
    if (team_rank() > 0 && !freopen("/dev/null", "w", stdout)) /* the first one speaks */
        return fail("/dev/null", strerror(errno)), 1;
    bool good = run(&r);
    batch_free(r.batch);
    for (int i = 0; r.sequence && i < r.o.prompts; i++) free(r.sequence[i].token);
    model_free(r.model), chat_close(&r.chat), checkpoint_close(&r.checkpoint);
    free(r.sequence), free(r.logits);
    team_close();
    return !good;
}
