/* Cutting by PCRE2. */
#include "cut.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, EACH = 5 };

struct Cut {
    pcre2_code *code[MOST];
    int n;
};

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
/* After GPT-4's: endings in capitals too, a sign before a word belongs to it, lines end a piece. */
#define GPT4(digits)                                                                               \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                           \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* GPT-4o's: words of capitals, or of one and small letters. */
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define ENDING "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define GPT4O                                                                                      \
    "[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "*" SMALL "+" ENDING \
    "|[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "+" SMALL "*" ENDING \
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* tokenizer.ggml.pre, and the expressions, as in the tokenizer.json of those models. */
static const struct {
    const char *name, *expression[EACH];
} known[] = {
    {"gpt-2", {GPT2}},
    {"phi-2", {GPT2}},
    {"mpt", {GPT2}},
    {"olmo", {GPT2}},
    {"jina-v2-code", {GPT2}},
    {"smollm", {"\\p{N}", GPT2}},
    {"starcoder", {"\\p{N}", GPT2}},
    {"refact", {"\\p{N}", GPT2}},
    {"command-r", {"\\p{N}", GPT2}},
    {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {"llama-bpe", {GPT4("\\p{N}{1,3}")}},
    {"llama3", {GPT4("\\p{N}{1,3}")}},
    {"llama-v3", {GPT4("\\p{N}{1,3}")}},
    {"deepseek-coder",
     {"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
      "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}"}},
    {"dbrx", {GPT4("\\p{N}{1,3}")}},
    {"smaug-bpe", {GPT4("\\p{N}{1,3}")}},
    {"qwen2", {GPT4("\\p{N}")}},
    {"qwen35",
     {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
      "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"stablelm2", {GPT4("\\p{N}")}},
    {"gpt-4o", {GPT4O}},
};

Cut *cut_new(void)
{
    return calloc(1, sizeof(Cut));
}

void cut_free(Cut *cut)
{
    for (int i = 0; cut && i < cut->n; i++) pcre2_code_free(cut->code[i]);
    free(cut);
}

bool cut_by(Cut *cut, const char *expression, size_t length)
{
    int error;
    size_t place;
    if (cut->n == MOST) return false;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)expression, length,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &error, &place, NULL);
    if (!code) return false;
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it, it is slower */
    cut->code[cut->n++] = code;
    return true;
}

bool cut_as_gpt2(Cut *cut)
{
    return cut_by(cut, GPT2, strlen(GPT2));
}

bool cut_by_name(Cut *cut, const char *name, size_t length)
{
    size_t i = 0, n = sizeof known / sizeof *known;
    while (i < n && (strlen(known[i].name) != length || memcmp(known[i].name, name, length))) i++;
    if (i == n) return false;
    for (int j = 0; j < EACH && known[i].expression[j]; j++)
        if (!cut_by(cut, known[i].expression[j], strlen(known[i].expression[j]))) return false;
    return true;
}

/* The expressions from `level` on. */
static bool cut_from(const Cut *cut, int level, const char *text, size_t length, cut_take *take,
                     void *data)
{
    if (length == 0) return true;
    if (level == cut->n) return take(data, text, length);
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(cut->code[level], NULL);
    size_t done = 0, from = 0;
    bool good = match;
    const pcre2_code *code = cut->code[level];
    while (good && pcre2_match(code, (PCRE2_SPTR)text, length, from, 0, match, NULL) > 0) {
        const size_t *at = pcre2_get_ovector_pointer(match);
        if (at[1] == at[0]) { /* nothing: look behind the next byte */
            from = at[1] + 1;
            if (from > length) break;
            continue;
        }
        good = cut_from(cut, level + 1, text + done, at[0] - done, take, data) &&
               cut_from(cut, level + 1, text + at[0], at[1] - at[0], take, data);
        done = from = at[1];
    }
    pcre2_match_data_free(match);
    return good && cut_from(cut, level + 1, text + done, length - done, take, data);
}

bool cut_pieces(const Cut *cut, const char *text, size_t length, cut_take *take, void *data)
{
    return cut_from(cut, 0, text, length, take, data);
}
