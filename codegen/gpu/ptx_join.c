/* Joins the PTX of several modules into one text. What LLVM writes for a module is, line by line:
 *
 *   head    comments, .version, .target, .address_size, declarations
 *   body    functions, from the first `.visible .entry`
 *   files   with -g: a section, then numbered .file directives, to which .loc in the body refers
 *
 *  1. the head of the first module, then of each other module the lines that no head before had;
 *  2. the bodies, one after another, each behind the rest of its head, with .loc renumbered;
 *  3. the files of all modules, each once. */
#include <stdlib.h>
#include <string.h>

#include "codegen/gpu/gpu.h"

static const char ENTRY[] = ".visible .entry", FILE_[] = "\t.file\t", LOC[] = "\t.loc\t",
                  SECTION[] = "\t.section\t.debug_loc\t{\t}\n";

typedef struct Line { /* with its end */
    const char *at;
    size_t n;
} Line;

typedef TL_VEC(Line) Lines;

typedef struct Join {
    TlArena *arena;
    TlSbuf text;
    Lines head;                /* of all modules so far */
    Lines files;               /* the text after the number, which is the index + 1 */
    TL_VEC(uint32_t) renumber; /* of the current module: its number - 1 to ours */
} Join;

static bool next_line(const char **text, Line *out)
{
    size_t n = strcspn(*text, "\n");
    *out = (Line){*text, n + ((*text)[n] == '\n')};
    *text += out->n;
    return out->n > 0;
}

static bool starts_with(Line l, const char *word)
{
    size_t n = strlen(word);
    return l.n >= n && memcmp(l.at, word, n) == 0;
}

/* Returns the number of lines if it is not among them. */
static uint32_t find(const Lines *lines, Line l)
{
    uint32_t i = 0;
    while (i < lines->len && (lines->data[i].n != l.n || memcmp(lines->data[i].at, l.at, l.n) != 0))
        i++;
    return i;
}

/* A directive of the form WORD NUMBER REST: the number; *out_rest: the rest. */
static uint32_t number_after(Line l, const char *word, Line *out_rest)
{
    char *end;
    unsigned long n = strtoul(l.at + strlen(word), &end, 10);
    *out_rest = (Line){end, l.n - (size_t)(end - l.at)};
    return (uint32_t)n;
}

static void collect_files(Join *j, const char *text)
{
    j->renumber.len = 0;
    for (Line l, rest; next_line(&text, &l);) {
        if (!starts_with(l, FILE_))
            continue;
        uint32_t number = number_after(l, FILE_, &rest), i = find(&j->files, rest);
        TL_ASSERT(number == j->renumber.len + 1, "files of PTX in another order");
        if (i == j->files.len)
            tl_vec_push(j->arena, &j->files, rest);
        tl_vec_push(j->arena, &j->renumber, i + 1);
    }
}

static void put_body(Join *j, Line l)
{
    Line rest;
    if (starts_with(l, FILE_) || starts_with(l, SECTION))
        return;
    if (!starts_with(l, LOC)) {
        tl_sbuf_put(&j->text, l.at, l.n);
        return;
    }
    uint32_t number = number_after(l, LOC, &rest);
    TL_ASSERT(number > 0 && number <= j->renumber.len, "PTX without file %u", number);
    tl_sbuf_putf(&j->text, "%s%u", LOC, j->renumber.data[number - 1]);
    tl_sbuf_put(&j->text, rest.at, rest.n);
}

static void add_module(Join *j, const char *text)
{
    bool first = j->head.len == 0, in_body = false;
    collect_files(j, text);
    for (Line l; next_line(&text, &l);) {
        in_body |= starts_with(l, ENTRY);
        if (in_body) {
            put_body(j, l);
        } else if (first || find(&j->head, l) == j->head.len) {
            tl_vec_push(j->arena, &j->head, l);
            tl_sbuf_put(&j->text, l.at, l.n);
        }
    }
    TL_ASSERT(in_body, "PTX without a kernel");
}

char *tl_ptx_join(TlArena *arena, const char *const *texts, uint32_t n, size_t *out_size)
{
    Join j = {.arena = arena};
    tl_sbuf_init(&j.text, arena);
    for (uint32_t i = 0; i < n; i++)
        add_module(&j, texts[i]);
    if (j.files.len)
        tl_sbuf_puts(&j.text, SECTION);
    for (uint32_t i = 0; i < j.files.len; i++) {
        tl_sbuf_putf(&j.text, "%s%u", FILE_, i + 1);
        tl_sbuf_put(&j.text, j.files.data[i].at, j.files.data[i].n);
    }
    *out_size = j.text.len;
    return j.text.text;
}
