/* options.c: the values that options may have: the table, and the check of a tilec_options. */
#include "codegen/options.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "codegen/core_process.h"
#include "ir/form.h"
#include "ir/support/ascii.h"
#include "runtime/contract/grow.h"

static const TlOption OPTIONS[] = {
#define RANGE(field, option, low, high, unset)                                                     \
    {#field, option, offsetof(tilec_options, field), NULL, low, high, unset},
#define WORDS(field, option, ...)                                                                  \
    {#field, option, offsetof(tilec_options, field), (const char *const[]){__VA_ARGS__, NULL},     \
     0,      0,      0},
#include "codegen/options.def"
};
enum { NOPTIONS = sizeof OPTIONS / sizeof *OPTIONS };

const TlOption *tl_option_find(const char *option)
{
    for (int i = 0; i < NOPTIONS; i++)
        if (strcmp(OPTIONS[i].option, option) == 0)
            return &OPTIONS[i];
    return NULL;
}

/* In version 0.1, 0 of a number that may be 0 was no default; its struct ended with `forms`. */
static void translate_0_1(tilec_options *o)
{
    int *numbers[] = {&o->opt_level, &o->bisect};
    for (int i = 0; i < 2; i++)
        if (*numbers[i] == 0)
            *numbers[i] = TILEC_NONE;
}

bool tl_options_take(tilec_options *to, const tilec_options *from)
{
    enum { SIZE_0_1 = offsetof(tilec_options, bound) };
    static const tilec_options none = {.struct_size = sizeof none};
    *to = none;
    bool taken =
        !from || tl_struct_take(to, sizeof *to, from, TL_LEAST_SIZE(tilec_options, target));
    if (taken && from && from->struct_size > offsetof(tilec_options, bisect) &&
        from->struct_size <= SIZE_0_1)
        translate_0_1(to);
    to->target = to->target ? to->target : "cpu";
    to->emit = to->emit ? to->emit : "image";
    for (int i = 0; i < NOPTIONS; i++) {
        const TlOption *o = &OPTIONS[i];
        char *field = (char *)to + o->at;
        const char **word = (const char **)(void *)field;
        int *number = (int *)(void *)field;
        if (o->words)
            *word = *word ? *word : o->words[0];
        else
            *number = *number ? *number : o->unset;
    }
    return taken;
}

/* Receives the text of the error. */
typedef struct Text {
    char *text;
    size_t size, len;
} Text;

static void put(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(Text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool room = t->len < t->size;
    int n = vsnprintf(room ? t->text + t->len : NULL, room ? t->size - t->len : 0, format, args);
    va_end(args);
    t->len += n > 0 ? (size_t)n : 0;
}

static bool word_fits(const TlOption *o, const char *word, Text *t)
{
    for (int i = 0; o->words[i]; i++)
        if (strcmp(o->words[i], word) == 0)
            return true;
    put(t, "%s is '%s'; expected one of", o->field, word);
    for (int i = 0; o->words[i]; i++)
        put(t, "%s %s", i ? "," : "", o->words[i]);
    return false;
}

static bool number_fits(const TlOption *o, int value, Text *t)
{
    if (value == o->unset || (value >= o->low && value <= o->high) ||
        (value == TILEC_NONE && o->low == 0))
        return true;
    put(t, "%s is %d, but must be %d to %d", o->field, value, o->low, o->high);
    if (o->unset < o->low)
        put(t, ", or %d for the default", o->unset);
    return false;
}

static bool table_fits(const tilec_options *options, Text *t)
{
    for (int i = 0; i < NOPTIONS; i++) {
        const TlOption *o = &OPTIONS[i];
        const void *field = (const char *)options + o->at;
        if (o->words ? !word_fits(o, *(const char *const *)field, t)
                     : !number_fits(o, *(const int *)field, t))
            return false;
    }
    return true;
}

static bool forms_fit(const char *forms, Text *t)
{
    if (!forms || tl_forms_are_well_formed(forms))
        return true;
    put(t, "forms is '%s'; expected aligned, general, or promises like "
           "A=16,A.stride.0=8,near,grid; at most %d, with ; between them",
        forms, TL_MAX_FORMS);
    return false;
}

static bool prefix_fits(const char *prefix, Text *t)
{
    bool fits = !prefix || !*prefix || !tl_is_digit((unsigned char)*prefix);
    for (const char *p = prefix; fits && p && *p; p++)
        fits = *p == '_' || tl_is_alnum((unsigned char)*p);
    if (!fits)
        put(t, "prefix is '%s'; expected letters, digits and _, no digit first", prefix);
    return fits;
}

static bool process_fits(const char *process, Text *t)
{
    TlProcess parsed;
    if (!process || tl_process_parse(process, &parsed) != TL_PROCESS_WRONG)
        return true;
    put(t, "process is '%s'; expected off, on or an absolute path, with ,memory=MIB and "
           ",seconds=N behind it",
        process);
    return false;
}

static bool lists_fit(const tilec_options *o, Text *t)
{
    if (o->nconsts && !o->consts)
        put(t, "consts is NULL, nconsts is %zu", o->nconsts);
    else if (o->ninclude_dirs && !o->include_dirs)
        put(t, "include_dirs is NULL, ninclude_dirs is %zu", o->ninclude_dirs);
    else if (o->nwarnings && !o->warnings)
        put(t, "warnings is NULL, nwarnings is %zu", o->nwarnings);
    else if (o->ninclude_dirs > UINT32_MAX || o->nconsts > UINT32_MAX)
        put(t, "ninclude_dirs or nconsts is too large");
    for (size_t i = 0; !t->len && i < o->nconsts; i++)
        if (!o->consts[i].name || !o->consts[i].value)
            put(t, "consts[%zu] has no %s", i, o->consts[i].name ? "value" : "name");
    for (size_t i = 0; !t->len && i < o->ninclude_dirs; i++)
        if (!o->include_dirs[i])
            put(t, "include_dirs[%zu] is NULL", i);
    for (size_t i = 0; !t->len && i < o->nwarnings; i++)
        if (!o->warnings[i])
            put(t, "warnings[%zu] is NULL", i);
    return !t->len;
}

tilec_status tilec_options_check(const tilec_options *options, char *text, size_t size)
{
    Text t = {text, text ? size : 0, 0};
    put(&t, "%s", "");
    tilec_options o;
    if (!tl_options_take(&o, options)) {
        put(&t, "struct_size is %zu, expected %zu: begin with TILEC_OPTIONS_INIT",
            options->struct_size, sizeof *options);
        return TILEC_USAGE;
    }
    bool fit = table_fits(&o, &t) && lists_fit(&o, &t) && forms_fit(o.forms, &t) &&
               process_fits(o.process, &t) && prefix_fits(o.prefix, &t);
    return fit ? TILEC_OK : TILEC_USAGE;
}
