#include "settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last * of a row stands for anything, and "llama." for the family's name. */
static bool is_called(const Settings *s, const char *row, const char *name)
{
    size_t n = strlen(row), family = s->family ? strlen(s->family) : 0;
    if (family && !strncmp(row, "llama.", 6))
        return !strncmp(name, s->family, family) && !strcmp(name + family, row + 5);
    return row[n - 1] == '*' ? !strncmp(name, row, n - 1) : !strcmp(name, row);
}

static const Setting *row_of(const Settings *s, const char *name)
{
    int family = s->c->config.family; /* 0: not known so far */
    for (const Setting *row = s->table; row->name; row++)
        if ((!row->families || row->families & OF(family)) && is_called(s, row->name, name))
            return row;
    return NULL;
}

/* What the row is called in this file. */
static const char *name_of(const Settings *s, const Setting *row, char *text, size_t size)
{
    bool other = s->family && !strncmp(row->name, "llama.", 6);
    snprintf(text, size, "%s%s", other ? s->family : "", row->name + (other ? 5 : 0));
    return text;
}

/* The value as people write it. */
static const char *shown(Value v, char *text, size_t size)
{
    if (v.kind == TRUTH) snprintf(text, size, "%s", v.number ? "true" : "false");
    else if (v.kind == NUMBER) snprintf(text, size, "%.15g", v.number);
    else if (v.kind == TEXT) snprintf(text, size, "%.*s", (int)(v.length & 127), v.text);
    else snprintf(text, size, v.kind == LIST ? "a list" : "nothing");
    return text;
}

static bool refuse(Settings *s, const Setting *row, Value v, const char *wanted)
{
    char text[140], name[140];
    return checkpoint_fail(s->c, "'%s' is %s, not %s", name_of(s, row, name, sizeof name),
                           shown(v, text, sizeof text), wanted);
}

/* Whether the word is one of those in the text. */
static bool among(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at++)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return n > 0;
    return false;
}

static bool contradict(Settings *s, const Setting *a, const Setting *b)
{
    char one[140], two[140];
    return checkpoint_fail(s->c, "'%s' and '%s' contradict each other",
                           name_of(s, a, one, sizeof one), name_of(s, b, two, sizeof two));
}

/* Puts a value into its place, where another name may have put one. */
static bool put(Settings *s, const Setting *row, const void *value, size_t size)
{
    char *place = (char *)&s->c->config + row->at;
    for (const Setting *r = s->table; r->name; r++)
        if (s->seen[r - s->table] && r->at == row->at && memcmp(place, value, size))
            return contradict(s, r, row);
    memcpy(place, value, size);
    s->seen[row - s->table] = true;
    return true;
}

/* A whole number that is at least `least`; -1 of a token may be written as 2^32 - 1. */
static bool whole(Value v, int least, int *out)
{
    if (least == -1 && v.number == UINT32_MAX) v.number = -1;
    bool fits = v.kind == NUMBER && v.number >= least && v.number <= INT32_MAX;
    *out = fits ? (int)v.number : 0;
    return fits && v.number == *out;
}

static bool take_end(Settings *s, const Setting *row, Value v)
{
    Config *g = &s->c->config;
    int token;
    if (!whole(v, -1, &token)) return refuse(s, row, v, "the number of a token");
    for (int i = 0; i < g->ends; i++)
        if (g->end[i] == token) return true;
    if (token == -1) return true; /* none */
    if (g->ends == MOST_ENDS)
        return checkpoint_fail(s->c, "'%s': more than %d tokens end a text", row->name, MOST_ENDS);
    g->end[g->ends++] = token;
    return true;
}

static bool take_whole(Settings *s, const Setting *row, Value v, int least)
{
    int n = 0;
    if (v.kind != NOTHING && !whole(v, least, &n))
        return refuse(s, row, v, "a whole number from 0 to 2147483647");
    return put(s, row, &n, sizeof n);
}

static bool take_choice(Settings *s, const Setting *row, Value v)
{
    char text[140], words[200] = "one of:";
    shown(v, text, sizeof text);
    for (const Choice *c = row->choices; c->word; c++) {
        if (v.kind == TEXT && !strcmp(c->word, text)) return put(s, row, &c->value, sizeof(int));
        size_t n = strlen(words);
        snprintf(words + n, sizeof words - n, " %s", c->word);
    }
    return refuse(s, row, v, words);
}

/* What a layer sees, the next one of the list. */
static bool take_each(Settings *s, const Setting *row, Value v)
{
    Sights *sights = (Sights *)(void *)((char *)&s->c->config + row->at);
    char text[140];
    shown(v, text, sizeof text);
    for (const Choice *c = row->choices; c->word; c++) {
        if (v.kind != TEXT || strcmp(c->word, text) || sights->count == MOST_LAYERS) continue;
        sights->kind[sights->count++] = (unsigned char)c->value;
        return true;
    }
    return refuse(s, row, v, "one of the kinds of layers that are known here");
}

/* The next number of a list. */
static bool take_number(Settings *s, const Setting *row, Value v)
{
    Factors *f = (Factors *)(void *)((char *)&s->c->config + row->at);
    if (v.kind != NUMBER || !(v.number > 0) || f->count == MOST_PAIRS)
        return refuse(s, row, v, "one of up to 256 positive numbers");
    f->of[f->count++] = v.number;
    return true;
}

static bool take_one(Settings *s, const Setting *row, Value v)
{
    char text[140];
    int flag = v.number != 0;
    switch (row->take) {
    case SIZE: return take_whole(s, row, v, 0);
    case TOKEN: return take_whole(s, row, v, -1);
    case ENDS: return take_end(s, row, v);
    case REAL:
    case CAP: /* nothing has the number 0 */
        return v.kind == NUMBER || v.kind == NOTHING ? put(s, row, &v.number, sizeof v.number)
                                                     : refuse(s, row, v, "a number");
    case FLAG:
        return v.kind == TRUTH ? put(s, row, &flag, sizeof flag)
                               : refuse(s, row, v, "true or false");
    case CHOICE: return take_choice(s, row, v);
    case NUMBERS: return take_number(s, row, v);
    case EACH: return take_each(s, row, v);
    case ONLY:
        return among(row->words, shown(v, text, sizeof text)) ||
               refuse(s, row, v, row->words);
    case KNOWN: return true;
    }
    return false;
}

bool setting_take(Settings *s, const char *name, Value v)
{
    char text[140];
    const Setting *row = row_of(s, name);
    bool list = row && v.kind == LIST && row->take != KNOWN;
    if (v.kind == NOTHING && (!row || (row->take != SIZE && row->take != CAP)))
        return true;
    if (!row)
        return checkpoint_fail(s->c, "the setting '%s', %s, is not known here, and may change what "
                               "the model computes", name, shown(v, text, sizeof text));
    if (!list) return take_one(s, row, v);
    if (v.count == 0 && row->take == ONLY && among(row->words, "[]")) return true;
    if (v.count == 0 && row->take != ENDS) return refuse(s, row, v, "of one or more values");
    if (v.count > 1000) return checkpoint_fail(s->c, "'%s' is a list of %zu", name, v.count);
    for (size_t i = 0; i < v.count; i++)
        if (!take_one(s, row, v.element(v.list, i))) return false;
    return true;
}
