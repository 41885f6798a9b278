/* What 08_llm does, by llama.cpp: llama_host MODEL THREADS TOKENS LOGITS PROMPT.
 * Writes the logits of the prompt's tokens to LOGITS, rows of f32 without a header, and prints the
 * tokens, the text that follows greedily, and the time that it took. */
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 4096 };

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const char *what)
{
    fprintf(stderr, "llama_host: %s\n", what);
    return 1;
}

static void quiet(enum ggml_log_level level, const char *text, void *data)
{
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

/* All tokens in one batch, the logits of each asked for. */
static int prompt_step(struct llama_context *c, const llama_token *token, int n)
{
    struct llama_batch b = llama_batch_init(n, 0, 1);
    b.n_tokens = n;
    for (int i = 0; i < n; i++) {
        b.token[i] = token[i], b.pos[i] = i, b.logits[i] = 1;
        b.n_seq_id[i] = 1, b.seq_id[i][0] = 0;
    }
    int status = llama_decode(c, b);
    llama_batch_free(b);
    return status;
}

static llama_token most_probable(const float *logits, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++) best = logits[i] > logits[best] ? i : best;
    return best;
}

int main(int argc, char **argv)
{
    if (argc != 6) return fail("usage: llama_host MODEL THREADS TOKENS LOGITS PROMPT");
    int threads = atoi(argv[2]), tokens = atoi(argv[3]);
    static llama_token token[MOST];
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model *m = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!m) return fail("the model does not load");
    const struct llama_vocab *v = llama_model_get_vocab(m);
    int width = llama_vocab_n_tokens(v);
    int n = llama_tokenize(v, argv[5], (int)strlen(argv[5]), token, MOST, false, false);
    if (n < 1) return fail("no tokens");
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = (uint32_t)(n + tokens), p.n_batch = p.n_ubatch = (uint32_t)n;
    p.n_threads = p.n_threads_batch = threads;
    p.type_k = p.type_v = GGML_TYPE_F32; /* as ours; with f16, logits differ by 5e-4 */
    p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    struct llama_context *c = llama_init_from_model(m, p);
    if (!c) return fail("no context");
    double start = now();
    if (prompt_step(c, token, n)) return fail("the prompt failed");
    double prompt = now() - start;
    FILE *f = fopen(argv[4], "wb");
    for (int i = 0; f && i < n; i++)
        fwrite(llama_get_logits_ith(c, i), sizeof(float), (size_t)width, f);
    if (!f || fclose(f)) return fail("the logits cannot be written");
    printf("tokens:");
    for (int i = 0; i < n; i++) printf(" %d", token[i]);
    printf("\ntext: ");
    llama_token next = most_probable(llama_get_logits_ith(c, n - 1), width);
    int made = 0;
    start = now();
    for (; made < tokens - 1; made++) {
        char piece[256];
        int length = llama_token_to_piece(v, next, piece, sizeof piece, 0, true);
        if (length > 0) fwrite(piece, 1, (size_t)length, stdout);
        if (llama_decode(c, llama_batch_get_one(&next, 1))) return fail("a step failed");
        next = most_probable(llama_get_logits_ith(c, -1), width);
    }
    double generated = now() - start;
    printf("\nprompt: %d tokens in %.3f ms\n", n, 1e3 * prompt);
    if (made) printf("generated: %d tokens, %.2f tokens/s\n", made, made / generated);
    llama_free(c), llama_model_free(m);
    return 0;
}
