#include "jinja.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- values ---- */

typedef enum Kind { MISSING, NOTHING, TRUTH, NUMBER, TEXT, LIST, MAP } Kind;

typedef struct Value {
    Kind kind;
    long n; /* a truth, a number; the bytes of a text */
    union {
        const char *text;
        struct Items *items;
    };
} Value;

typedef struct Items { /* of a list; of a map, with keys */
    size_t count, room;
    Value *key, *value;
} Items;

typedef struct Variable {
    const char *name;
    size_t length;
    Value value;
} Variable;

enum { DEEPEST = 100, MOST_STEPS = 1000000, MOST_BYTES = 1 << 26, MOST_VARIABLES = 256 };

typedef struct Jinja {
    const char *at, *end;
    const char *start;
    bool live;      /* what is read is done, too */
    bool line;      /* a line begins here */
    bool bad;
    char *error;
    int depth;
    long steps;
    size_t bytes;   /* of memory */
    void **memory;
    size_t blocks, blocks_room;
    char *out;
    size_t size, room;
    Variable variable[MOST_VARIABLES];
    size_t variables, scope; /* the first variable of the innermost scope */
} Jinja;

static const Value missing = {.kind = MISSING};

static Value fail(Jinja *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

static Value fail(Jinja *j, const char *format, ...)
{
    va_list list;
    if (j->bad) return missing;
    va_start(list, format);
    vsnprintf(j->error, 200, format, list);
    va_end(list);
    j->bad = true;
    return missing;
}

/* Memory that stays until the template is through. */
static void *keep(Jinja *j, size_t size)
{
    if (j->blocks == j->blocks_room) {
        size_t room = j->blocks_room ? 2 * j->blocks_room : 64;
        void **more = realloc(j->memory, room * sizeof *more);
        if (!more) return fail(j, "no memory"), NULL;
        j->memory = more, j->blocks_room = room;
    }
    void *p = size < MOST_BYTES - j->bytes ? calloc(1, size + 1) : NULL;
    if (!p) return fail(j, "no memory"), NULL;
    j->bytes += size;
    return j->memory[j->blocks++] = p;
}

static Value truth(bool v) { return (Value){.kind = TRUTH, .n = v}; }
static Value number(long v) { return (Value){.kind = NUMBER, .n = v}; }

static Value text_of(Jinja *j, const char *bytes, size_t length)
{
    char *copy = keep(j, length);
    if (copy) memcpy(copy, bytes, length);
    return copy ? (Value){.kind = TEXT, .n = (long)length, .text = copy} : missing;
}

static Value string(Jinja *j, const char *text) { return text_of(j, text, strlen(text)); }

static Value items_of(Jinja *j, Kind kind)
{
    Items *items = keep(j, sizeof *items);
    return items ? (Value){.kind = kind, .items = items} : missing;
}

static void add(Jinja *j, Value to, Value key, Value value)
{
    if (to.kind != LIST && to.kind != MAP) return;
    Items *i = to.items;
    if (i->count == i->room) {
        size_t room = i->room ? 2 * i->room : 8;
        Value *k = keep(j, room * sizeof *k), *v = keep(j, room * sizeof *v);
        if (!k || !v) return;
        if (i->count) memcpy(k, i->key, i->count * sizeof *k);
        if (i->count) memcpy(v, i->value, i->count * sizeof *v);
        i->key = k, i->value = v, i->room = room;
    }
    i->key[i->count] = key, i->value[i->count++] = value;
}

static bool is(Value v, const char *text)
{
    return v.kind == TEXT && (size_t)v.n == strlen(text) && !memcmp(v.text, text, (size_t)v.n);
}

static bool true_of(Value v)
{
    return v.kind == TRUTH || v.kind == NUMBER || v.kind == TEXT ? v.n != 0
           : v.kind == LIST || v.kind == MAP                     ? v.items->count > 0 : false;
}

static bool equal(Value a, Value b)
{
    bool numbers = (a.kind == TRUTH || a.kind == NUMBER) && (b.kind == TRUTH || b.kind == NUMBER);
    if (numbers) return a.n == b.n;
    if (a.kind != b.kind) return false;
    if (a.kind == TEXT) return a.n == b.n && !memcmp(a.text, b.text, (size_t)a.n);
    if (a.kind != LIST && a.kind != MAP) return true;
    if (a.items->count != b.items->count) return false;
    for (size_t i = 0; i < a.items->count && a.items != b.items; i++)
        if (!equal(a.items->value[i], b.items->value[i]) ||
            (a.kind == MAP && !equal(a.items->key[i], b.items->key[i])))
            return false;
    return true;
}

static Value *member(Value map, Value key)
{
    for (size_t i = 0; map.kind == MAP && i < map.items->count; i++)
        if (equal(map.items->key[i], key)) return &map.items->value[i];
    return NULL;
}

/* What is printed of a value. */
static Value shown(Jinja *j, Value v)
{
    char digits[32];
    if (v.kind == TEXT) return v;
    if (v.kind == MISSING) return string(j, "");
    if (v.kind == NOTHING) return string(j, "None");
    if (v.kind == TRUTH) return string(j, v.n ? "True" : "False");
    snprintf(digits, sizeof digits, "%ld", v.n);
    return v.kind == NUMBER ? string(j, digits)
                            : fail(j, "it prints a list, which is not known here");
}

static Value joined(Jinja *j, Value a, Value b)
{
    char *both = j->bad ? NULL : keep(j, (size_t)(a.n + b.n));
    if (!both) return missing;
    memcpy(both, a.text, (size_t)a.n);
    memcpy(both + a.n, b.text, (size_t)b.n);
    return (Value){.kind = TEXT, .n = a.n + b.n, .text = both};
}

static void print(Jinja *j, const char *bytes, size_t length)
{
    if (!j->live || j->bad || !length) return;
    if (j->size + length + 1 > j->room) {
        size_t room = 2 * (j->size + length) + 256;
        char *more = room < MOST_BYTES ? realloc(j->out, room) : NULL;
        if (!more) { fail(j, "no memory"); return; }
        j->out = more, j->room = room;
    }
    memcpy(j->out + j->size, bytes, length);
    j->size += length;
}

/* ---- variables ---- */

static Variable *variable(Jinja *j, const char *name, size_t length, size_t from)
{
    for (size_t i = j->variables; i-- > from;)
        if (j->variable[i].length == length && !memcmp(j->variable[i].name, name, length))
            return &j->variable[i];
    return NULL;
}

static void set(Jinja *j, const char *name, size_t length, Value value)
{
    Variable *v = variable(j, name, length, j->scope);
    if (!j->live) return;
    if (!v && j->variables == MOST_VARIABLES) { fail(j, "more than 256 variables"); return; }
    if (!v) v = &j->variable[j->variables++];
    *v = (Variable){name, length, value};
}

/* ---- words of expressions ---- */

static void blanks(Jinja *j)
{
    while (j->at < j->end && isspace((unsigned char)*j->at)) j->at++;
}

static bool letter(const Jinja *j, const char *at)
{
    return at < j->end && (isalnum((unsigned char)*at) || *at == '_');
}

/* A sign, or a word that stands alone: it is taken. */
static bool take(Jinja *j, const char *what)
{
    size_t n = strlen(what);
    blanks(j);
    if (j->bad || (size_t)(j->end - j->at) < n || memcmp(j->at, what, n)) return false;
    if (letter(j, j->at) && letter(j, j->at + n)) return false;
    j->at += n;
    return true;
}

static void need(Jinja *j, const char *what)
{
    if (take(j, what) || j->bad) return;
    int line = 1;
    for (const char *at = j->start; at < j->at; at++) line += *at == '\n';
    fail(j, "line %d: '%s' is missing before '%.*s'", line, what,
         (int)(j->end - j->at < 20 ? j->end - j->at : 20), j->at);
}

static bool name(Jinja *j, const char **word, size_t *length)
{
    blanks(j);
    *word = j->at;
    if (j->bad || !letter(j, j->at) || isdigit((unsigned char)*j->at)) return false;
    while (letter(j, j->at)) j->at++;
    *length = (size_t)(j->at - *word);
    return true;
}

static bool called(const char *word, size_t length, const char *text)
{
    return strlen(text) == length && !memcmp(word, text, length);
}

static Value expression(Jinja *j);
static Value unary(Jinja *j);

static Value literal(Jinja *j)
{
    char quote = *j->at++;
    const char *from = j->at;
    while (j->at < j->end && *j->at != quote) j->at += *j->at == '\\' && j->at + 1 < j->end ? 2 : 1;
    if (j->at >= j->end) return fail(j, "a text does not end");
    char *copy = keep(j, (size_t)(j->at - from)), *to = copy;
    for (; copy && from < j->at; from++) {
        if (*from != '\\') { *to++ = *from; continue; }
        static const char letters[] = "nrt\\'\"", bytes[] = "\n\r\t\\'\"";
        const char *which = strchr(letters, *++from);
        if (!which) return fail(j, "'\\%c' in a text is not known here", *from);
        *to++ = bytes[which - letters];
    }
    j->at++;
    return copy ? (Value){.kind = TEXT, .n = to - copy, .text = copy} : missing;
}

static Value list(Jinja *j, const char *close)
{
    Value v = items_of(j, LIST);
    while (!j->bad && !take(j, close)) {
        add(j, v, missing, expression(j));
        if (!take(j, ",")) { need(j, close); break; }
    }
    return v;
}

static Value map(Jinja *j)
{
    Value v = items_of(j, MAP);
    while (!j->bad && !take(j, "}")) {
        Value key = expression(j);
        need(j, ":");
        add(j, v, key, expression(j));
        if (!take(j, ",")) { need(j, "}"); break; }
    }
    return v;
}

/* ---- calls ---- */

typedef struct Arguments {
    Value list, named;
} Arguments;

static Arguments arguments(Jinja *j)
{
    Arguments a = {items_of(j, LIST), items_of(j, MAP)};
    while (!j->bad && !take(j, ")")) {
        const char *back = j->at, *word;
        size_t length;
        bool named = name(j, &word, &length) && take(j, "=") && *j->at != '=';
        if (!named) j->at = back;
        Value v = expression(j);
        if (named) add(j, a.named, text_of(j, word, length), v);
        else add(j, a.list, missing, v);
        if (!take(j, ",")) { need(j, ")"); break; }
    }
    return a;
}

static Value argument(Arguments a, size_t i)
{
    return a.list.kind == LIST && i < a.list.items->count ? a.list.items->value[i] : missing;
}

static Value strip(Jinja *j, Value v, Value chars, bool left, bool right)
{
    const char *from = v.text, *end = v.text + v.n;
    bool all = chars.kind != TEXT;
    const char *set = all ? " \t\n\r\v\f" : chars.text;
    while (left && from < end && *from && strchr(set, *from)) from++;
    while (right && end > from && end[-1] && strchr(set, end[-1])) end--;
    return text_of(j, from, (size_t)(end - from));
}

static Value in_case(Jinja *j, Value v, const char *way)
{
    char *copy = keep(j, (size_t)v.n);
    bool inside = false;
    for (long i = 0; copy && i < v.n; i++) {
        unsigned char c = (unsigned char)v.text[i];
        bool up = *way == 'u' || (*way != 'l' && !inside);
        if (c >= 0x80) return fail(j, "letters that are not ASCII in '%s' are not known here", way);
        copy[i] = (char)(up ? toupper(c) : tolower(c));
        inside = *way == 'c' || isalpha(c);
    }
    return copy ? (Value){.kind = TEXT, .n = v.n, .text = copy} : missing;
}

static const char *found(Value in, Value what, long from)
{
    for (long i = from; i + what.n <= in.n; i++)
        if (!memcmp(in.text + i, what.text, (size_t)what.n)) return in.text + i;
    return NULL;
}

static Value replaced(Jinja *j, Value v, Value old, Value other)
{
    Value out = string(j, "");
    if (old.kind != TEXT || other.kind != TEXT || !old.n)
        return fail(j, "'replace' takes two texts here");
    long at = 0;
    for (const char *next; !j->bad && (next = found(v, old, at)); at = next - v.text + old.n) {
        Value before = text_of(j, v.text + at, (size_t)(next - v.text - at));
        out = joined(j, out, joined(j, before, other));
    }
    return j->bad ? missing : joined(j, out, text_of(j, v.text + at, (size_t)(v.n - at)));
}

static Value split(Jinja *j, Value v, Value by)
{
    Value out = items_of(j, LIST);
    if (by.kind != TEXT || !by.n) return fail(j, "'split' takes a text here");
    long at = 0;
    for (const char *next; !j->bad && (next = found(v, by, at)); at = next - v.text + by.n)
        add(j, out, missing, text_of(j, v.text + at, (size_t)(next - v.text - at)));
    add(j, out, missing, text_of(j, v.text + at, (size_t)(v.n - at)));
    return out;
}

static bool fits(Value whole, Value part, bool at_end)
{
    return part.kind == TEXT && part.n <= whole.n &&
           !memcmp(whole.text + (at_end ? whole.n - part.n : 0), part.text, (size_t)part.n);
}

static Value pairs_of(Jinja *j, Value v)
{
    Value out = items_of(j, LIST);
    for (size_t i = 0; i < v.items->count; i++) {
        Value pair = items_of(j, LIST);
        add(j, pair, missing, v.items->key[i]);
        add(j, pair, missing, v.items->value[i]);
        add(j, out, missing, pair);
    }
    return out;
}

static Value method(Jinja *j, Value of, const char *word, size_t length, Arguments a)
{
    Value first = argument(a, 0);
#define IS(text) called(word, length, text)
    if (!j->live || j->bad) return missing;
    if (of.kind == TEXT && IS("strip")) return strip(j, of, first, true, true);
    if (of.kind == TEXT && IS("lstrip")) return strip(j, of, first, true, false);
    if (of.kind == TEXT && IS("rstrip")) return strip(j, of, first, false, true);
    if (of.kind == TEXT && IS("startswith")) return truth(fits(of, first, false));
    if (of.kind == TEXT && IS("endswith")) return truth(fits(of, first, true));
    if (of.kind == TEXT && IS("split")) return split(j, of, first);
    if (of.kind == TEXT && IS("replace")) return replaced(j, of, first, argument(a, 1));
    if (of.kind == TEXT && IS("upper")) return in_case(j, of, "upper");
    if (of.kind == TEXT && IS("lower")) return in_case(j, of, "lower");
    if (of.kind == TEXT && IS("title")) return in_case(j, of, "title");
    if (of.kind == TEXT && IS("capitalize")) return in_case(j, of, "capitalize");
    if (of.kind == MAP && IS("items")) return pairs_of(j, of);
    if (of.kind == MAP && IS("get")) {
        Value *v = member(of, first);
        Value other = argument(a, 1);
        return v ? *v : other.kind == MISSING ? (Value){.kind = NOTHING} : other;
    }
    return fail(j, "'.%.*s()' is not known here", (int)(length & 63), word);
}

static Value range(Jinja *j, Arguments a)
{
    size_t n = a.list.kind == LIST ? a.list.items->count : 0;
    long from = n > 1 ? argument(a, 0).n : 0, to = argument(a, n > 1).n;
    long by = n > 2 ? argument(a, 2).n : 1;
    Value out = items_of(j, LIST);
    if (!by || labs(to - from) > 100000) return fail(j, "a range of that size");
    for (long i = from; !j->bad && (by > 0 ? i < to : i > to); i += by)
        add(j, out, missing, number(i));
    return out;
}

static Value function(Jinja *j, const char *word, size_t length, Arguments a)
{
    Value first = argument(a, 0);
    char day[100];
    time_t now = time(NULL);
    struct tm tm;
    if (!j->live || j->bad) return missing;
    if (IS("raise_exception"))
        return fail(j, "it refuses: %.*s", first.kind == TEXT ? (int)(first.n & 127) : 0,
                    first.kind == TEXT ? first.text : "");
    if (IS("namespace") || IS("dict")) return a.named;
    if (IS("range")) return range(j, a);
    if (IS("strftime_now") && first.kind == TEXT && localtime_r(&now, &tm))
        return text_of(j, day, strftime(day, sizeof day, first.text, &tm));
    return fail(j, "'%.*s()' is not known here", (int)(length & 63), word);
}

/* ---- filters and tests ---- */

static Value length_of(Jinja *j, Value v)
{
    long n = 0;
    if (v.kind == LIST || v.kind == MAP) return number((long)v.items->count);
    if (v.kind != TEXT) return fail(j, "the length of a value that has none");
    for (long i = 0; i < v.n; i++) n += ((unsigned char)v.text[i] & 0xC0) != 0x80;
    return number(n);
}

static Value join(Jinja *j, Value v, Value by)
{
    Value out = string(j, "");
    if (v.kind != LIST) return fail(j, "'join' takes a list here");
    for (size_t i = 0; !j->bad && i < v.items->count; i++) {
        if (i && by.kind == TEXT) out = joined(j, out, by);
        Value next = shown(j, v.items->value[i]);
        out = j->bad ? missing : joined(j, out, next);
    }
    return out;
}

/* The members of a list whose attribute is, or is not, equal to a value. */
static Value select_by(Jinja *j, Value v, Arguments a, bool wanted)
{
    Value out = items_of(j, LIST), way = argument(a, 1);
    if (v.kind != LIST || (way.kind != MISSING && !is(way, "equalto") && !is(way, "==")))
        return fail(j, "'selectattr' of that kind is not known here");
    for (size_t i = 0; i < v.items->count; i++) {
        Value *of = member(v.items->value[i], argument(a, 0));
        bool fits_it = way.kind == MISSING ? of && true_of(*of) : of && equal(*of, argument(a, 2));
        if (fits_it == wanted) add(j, out, missing, v.items->value[i]);
    }
    return out;
}

static Value filter(Jinja *j, Value v, const char *word, size_t length, Arguments a)
{
    Value first = argument(a, 0);
    if (!j->live || j->bad) return missing;
    if (IS("trim")) return v.kind == TEXT ? strip(j, v, first, true, true) : shown(j, v);
    if (IS("length") || IS("count")) return length_of(j, v);
    if (IS("string")) return shown(j, v);
    if (IS("safe") || (IS("list") && v.kind == LIST)) return v;
    if (IS("default") || IS("d"))
        return v.kind == MISSING || (true_of(argument(a, 1)) && !true_of(v)) ? first : v;
    if (v.kind == TEXT && IS("upper")) return in_case(j, v, "upper");
    if (v.kind == TEXT && IS("lower")) return in_case(j, v, "lower");
    if (v.kind == TEXT && IS("title")) return in_case(j, v, "title");
    if (v.kind == TEXT && IS("capitalize")) return in_case(j, v, "capitalize");
    if (v.kind == TEXT && IS("replace")) return replaced(j, v, first, argument(a, 1));
    if (v.kind == LIST && IS("first")) return v.items->count ? v.items->value[0] : missing;
    if (v.kind == LIST && IS("last"))
        return v.items->count ? v.items->value[v.items->count - 1] : missing;
    if (v.kind == MAP && IS("items")) return pairs_of(j, v);
    if (IS("join")) return join(j, v, first);
    if (IS("selectattr")) return select_by(j, v, a, true);
    if (IS("rejectattr")) return select_by(j, v, a, false);
    return fail(j, "the filter '%.*s' is not known here", (int)(length & 63), word);
}

static Value test(Jinja *j, Value v, const char *word, size_t length)
{
    if (!j->live || j->bad) return missing;
    if (IS("defined")) return truth(v.kind != MISSING);
    if (IS("undefined")) return truth(v.kind == MISSING);
    if (IS("none")) return truth(v.kind == NOTHING);
    if (IS("string")) return truth(v.kind == TEXT);
    if (IS("mapping")) return truth(v.kind == MAP);
    if (IS("sequence") || IS("iterable"))
        return truth(v.kind == LIST || v.kind == MAP || v.kind == TEXT);
    if (IS("number")) return truth(v.kind == NUMBER || v.kind == TRUTH);
    if (IS("boolean")) return truth(v.kind == TRUTH);
    if (IS("true")) return truth(v.kind == TRUTH && v.n);
    if (IS("false")) return truth(v.kind == TRUTH && !v.n);
    return fail(j, "the test '%.*s' is not known here", (int)(length & 63), word);
#undef IS
}

/* ---- expressions ---- */

static Value attribute(Jinja *j, Value of, Value key)
{
    if (!j->live || j->bad) return missing;
    if (of.kind == MISSING) return fail(j, "it takes a part of something that is not defined");
    Value *v = member(of, key);
    if (v) return *v;
    if (of.kind == LIST && key.kind == NUMBER) {
        long i = key.n < 0 ? key.n + (long)of.items->count : key.n;
        return i >= 0 && i < (long)of.items->count ? of.items->value[i] : missing;
    }
    return of.kind == TEXT && key.kind == NUMBER ? fail(j, "a letter of a text is not known here")
                                                 : missing;
}

static long bound(Value v, long other, long count)
{
    long i = v.kind == NUMBER ? v.n : other;
    i = i < 0 ? i + count : i;
    return i < 0 ? 0 : i > count ? count : i;
}

/* of[from:to:step] */
static Value slice(Jinja *j, Value of, Value from, Value to, Value step)
{
    if (!j->live || j->bad) return missing;
    bool back = step.kind == NUMBER && step.n == -1 && from.kind == MISSING && to.kind == MISSING;
    if (of.kind == TEXT && step.kind == MISSING) {
        for (long i = 0; i < of.n; i++)
            if ((unsigned char)of.text[i] >= 0x80) return fail(j, "a slice of a text is not ASCII");
        long a = bound(from, 0, of.n), b = bound(to, of.n, of.n);
        return text_of(j, of.text + a, (size_t)(a < b ? b - a : 0));
    }
    if (of.kind != LIST || (step.kind != MISSING && !back))
        return fail(j, "a slice of that kind is not known here");
    Value out = items_of(j, LIST);
    long n = (long)of.items->count, a = bound(from, 0, n), b = bound(to, n, n);
    for (long i = a; i < b; i++) add(j, out, missing, of.items->value[back ? n - 1 - i : i]);
    return out;
}

static Value part_of(Jinja *j, Value of)
{
    Value part[3] = {missing, missing, missing};
    int colons = 0;
    while (!j->bad && !take(j, "]")) {
        if (take(j, ":")) colons++;
        else part[colons] = expression(j);
        if (colons > 2) return fail(j, "a slice of too many parts");
    }
    return colons ? slice(j, of, part[0], part[1], part[2]) : attribute(j, of, part[0]);
}

static Value primary(Jinja *j)
{
    const char *word;
    size_t length;
    blanks(j);
    if (j->at >= j->end) return fail(j, "an expression does not end");
    if (*j->at == '\'' || *j->at == '"') {
        Value v = literal(j), next;
        for (blanks(j); !j->bad && j->at < j->end && (*j->at == '\'' || *j->at == '"'); blanks(j)) {
            next = literal(j);
            v = j->bad ? missing : joined(j, v, next);
        }
        return v;
    }
    if (isdigit((unsigned char)*j->at)) {
        long n = 0;
        for (; j->at < j->end && isdigit((unsigned char)*j->at) && n < 100000000; j->at++)
            n = 10 * n + *j->at - '0';
        bool other = *j->at == '.' || isdigit((unsigned char)*j->at);
        return other ? fail(j, "a number of that kind is not known here") : number(n);
    }
    if (take(j, "[")) return list(j, "]");
    if (take(j, "{")) return map(j);
    if (take(j, "(")) {
        Value v = expression(j);
        if (take(j, ",")) return fail(j, "a tuple is not known here");
        return need(j, ")"), v;
    }
    if (!name(j, &word, &length))
        return fail(j, "'%.*s' is not known here",
                    (int)(j->end - j->at < 12 ? j->end - j->at : 12), j->at);
    Variable *v = variable(j, word, length, 0);
    if (!v && take(j, "(")) return function(j, word, length, arguments(j));
    bool there = called(word, length, "strftime_now") || called(word, length, "raise_exception") ||
                 called(word, length, "namespace") || called(word, length, "range");
    return v ? v->value : there ? truth(true) : missing; /* of a function: that it is defined */
}

/* Parts, calls, filters and tests behind a value. */
static Value postfix(Jinja *j, Value v)
{
    const char *word;
    size_t length;
    while (!j->bad) {
        if (take(j, ".")) {
            if (!name(j, &word, &length)) return fail(j, "a name is missing behind '.'");
            v = take(j, "(") ? method(j, v, word, length, arguments(j))
                             : attribute(j, v, text_of(j, word, length));
        } else if (take(j, "[")) {
            v = part_of(j, v);
        } else if (j->at < j->end && *j->at == '|') {
            j->at++;
            if (!name(j, &word, &length)) return fail(j, "a name is missing behind '|'");
            Arguments none = {missing, missing};
            v = filter(j, v, word, length, take(j, "(") ? arguments(j) : none);
        } else if (take(j, "is")) {
            bool not = take(j, "not");
            if (!name(j, &word, &length)) return fail(j, "a name is missing behind 'is'");
            v = test(j, v, word, length);
            if (not) v = truth(!v.n);
        } else {
            return v;
        }
    }
    return missing;
}

static Value unary(Jinja *j)
{
    if (++j->depth > DEEPEST || ++j->steps > MOST_STEPS)
        return fail(j, "it is too deep, or too long");
    Value v;
    blanks(j);
    if (take(j, "-")) {
        v = unary(j);
        v = v.kind == NUMBER || !j->live ? number(-v.n) : fail(j, "'-' of what is no number");
    } else {
        v = primary(j);
        v = postfix(j, v);
    }
    return j->depth--, v;
}

static Value calculate(Jinja *j, char sign, Value a, Value b)
{
    if (!j->live || j->bad) return missing;
    if (sign == '~') {
        a = shown(j, a), b = shown(j, b);
        return j->bad ? missing : joined(j, a, b);
    }
    if (sign == '+' && a.kind == TEXT && b.kind == TEXT) return joined(j, a, b);
    if (sign == '+' && a.kind == LIST && b.kind == LIST) {
        Value out = items_of(j, LIST);
        for (size_t i = 0; i < a.items->count; i++) add(j, out, missing, a.items->value[i]);
        for (size_t i = 0; i < b.items->count; i++) add(j, out, missing, b.items->value[i]);
        return out;
    }
    if (a.kind != NUMBER || b.kind != NUMBER)
        return fail(j, "'%c' of what does not go together", sign);
    if ((sign == '/' || sign == '%') && (b.n <= 0 || a.n < 0))
        return fail(j, "'%c' by that number", sign);
    if (labs(a.n) > 1000000000 || labs(b.n) > 1000000000) return fail(j, "a number is too large");
    return number(sign == '+' ? a.n + b.n : sign == '-' ? a.n - b.n : sign == '*' ? a.n * b.n
                  : sign == '/' ? a.n / b.n : a.n % b.n);
}

/* Signs of one level, the left one first: 0: products, 1: '~', 2: sums. */
static Value level(Jinja *j, int which)
{
    Value v = which ? level(j, which - 1) : unary(j);
    while (!j->bad) {
        blanks(j);
        char sign = j->at < j->end ? *j->at : 0, next = j->at + 1 < j->end ? j->at[1] : 0;
        bool ends = next == '}' && (sign == '%' || sign == '-'); /* of the tag */
        ends = ends || (sign == '-' && next == '%');
        const char *signs[] = {"*/%", "~", "+-"};
        if (!sign || ends || !strchr(signs[which], sign)) return v;
        if (sign == '+' && next == '%') return v;
        j->at++;
        if (sign == '/' && !take(j, "/")) return fail(j, "'/' is not known here");
        if (sign == '*' && next == '*') return fail(j, "'**' is not known here");
        Value other = which ? level(j, which - 1) : unary(j);
        v = calculate(j, sign, v, other);
    }
    return missing;
}

static bool contains(Jinja *j, Value in, Value what)
{
    if (in.kind == TEXT && what.kind == TEXT) return found(in, what, 0) != NULL;
    if (in.kind == MAP) return member(in, what) != NULL;
    if (in.kind != LIST) { fail(j, "'in' of what has no parts"); return false; }
    for (size_t i = 0; i < in.items->count; i++)
        if (equal(in.items->value[i], what)) return true;
    return false;
}

static Value compare(Jinja *j)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">", "not in", "in"};
    Value v = level(j, 2);
    int times = 0;
    for (int i = 0; !j->bad && i < 8; i++) {
        const char *back = j->at;
        bool here = i == 6 ? take(j, "not") && take(j, "in") : take(j, signs[i]);
        if (!here) { j->at = back; continue; }
        if (times++) return fail(j, "a chain of comparisons is not known here");
        Value b = level(j, 2);
        if (!j->live || j->bad) { v = missing, i = -1; continue; }
        if (i >= 2 && i <= 5 && (v.kind != NUMBER || b.kind != NUMBER))
            return fail(j, "'%s' of what is no number", signs[i]);
        bool r = i == 0 ? equal(v, b) : i == 1 ? !equal(v, b) : i == 2 ? v.n <= b.n
                 : i == 3 ? v.n >= b.n : i == 4 ? v.n < b.n : i == 5 ? v.n > b.n
                 : contains(j, b, v) == (i == 7);
        v = truth(r), i = -1;
    }
    return v;
}

static Value negation(Jinja *j)
{
    if (!take(j, "not")) return compare(j);
    if (++j->depth > DEEPEST) return fail(j, "it is too deep");
    Value v = negation(j);
    return j->depth--, truth(!true_of(v));
}

/* What is behind a word that decides already is only read. */
static Value both(Jinja *j, bool all)
{
    Value v = all ? negation(j) : both(j, true);
    while (!j->bad && take(j, all ? "and" : "or")) {
        bool live = j->live, decides = true_of(v) != all;
        j->live = live && !decides;
        Value other = all ? negation(j) : both(j, true);
        j->live = live;
        if (!decides) v = other;
    }
    return v;
}

static Value expression(Jinja *j)
{
    if (++j->depth > DEEPEST || ++j->steps > MOST_STEPS)
        return fail(j, "it is too deep, or too long");
    const char *start = j->at;
    bool live = j->live;
    j->live = false; /* whether it is taken is only known behind it */
    both(j, false);
    Value v = missing, condition = truth(true);
    const char *behind = j->at;
    bool conditional = take(j, "if");
    j->live = live;
    if (conditional) {
        condition = both(j, false);
        const char *rest = j->at;
        bool other = take(j, "else");
        j->live = live && !true_of(condition);
        v = other ? expression(j) : missing;
        behind = other ? j->at : rest;
    }
    j->live = live && true_of(condition);
    if (j->live && !j->bad) {
        const char *end = behind;
        j->at = start;
        v = both(j, false);
        behind = end;
    }
    j->live = live, j->at = behind, j->depth--;
    return v;
}

/* ---- blocks ---- */

/* Behind a tag: with '-' all blanks go, behind a statement or a comment one line's end. */
static void end_tag(Jinja *j, const char *close)
{
    bool minus = take(j, "-"), plus = !minus && *close != '}' && take(j, "+");
    need(j, close);
    j->line = false;
    if (minus)
        while (j->at < j->end && isspace((unsigned char)*j->at)) j->line = *j->at++ == '\n';
    else if (*close != '}' && !plus && j->at < j->end && *j->at == '\n')
        j->at++, j->line = true;
}

/* The text up to the next tag. False: there is none. */
static bool next_tag(Jinja *j)
{
    const char *from = j->at, *at = from;
    while (at + 1 < j->end && !(*at == '{' && strchr("{%#", at[1]))) at++;
    bool tag = at + 1 < j->end;
    const char *end = tag ? at : j->end;
    j->at = end;
    char mode = tag && at + 2 < j->end ? at[2] : 0;
    if (tag && mode == '-') {
        while (end > from && isspace((unsigned char)end[-1])) end--;
    } else if (tag && at[1] != '{' && mode != '+') {
        const char *begin = end;
        while (begin > from && begin[-1] != '\n' && isspace((unsigned char)begin[-1])) begin--;
        if (begin > from ? begin[-1] == '\n' : j->line) end = begin;
    }
    print(j, from, (size_t)(end - from));
    if (!tag) return false;
    j->at += 2 + (mode == '-' || mode == '+');
    return true;
}

static const char *block(Jinja *j, const char *const *stops);

static void run_if(Jinja *j)
{
    static const char *const stops[] = {"elif", "else", "endif", NULL};
    bool live = j->live, done = false;
    Value condition = expression(j);
    for (const char *stop = "if"; !j->bad;) {
        end_tag(j, "%}");
        j->live = live && !done && true_of(condition);
        done = done || j->live;
        stop = block(j, stops);
        j->live = live && !done;
        if (!stop) break;
        if (!strcmp(stop, "endif")) break;
        condition = !strcmp(stop, "elif") ? expression(j) : truth(true);
    }
    j->live = live;
    end_tag(j, "%}");
}

static Value loop_of(Jinja *j, Value items, size_t i)
{
    size_t n = items.items->count;
    Value loop = items_of(j, MAP);
    const struct {
        const char *name;
        Value value;
    } rows[] = {{"index", number((long)i + 1)}, {"index0", number((long)i)},
                {"first", truth(i == 0)}, {"last", truth(i + 1 == n)},
                {"length", number((long)n)}, {"revindex", number((long)(n - i))},
                {"revindex0", number((long)(n - i) - 1)},
                {"previtem", i ? items.items->value[i - 1] : missing},
                {"nextitem", i + 1 < n ? items.items->value[i + 1] : missing}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        if (rows[r].value.kind != MISSING) add(j, loop, string(j, rows[r].name), rows[r].value);
    return loop;
}

typedef struct Target {
    const char *name[2];
    size_t length[2];
    int names;
} Target;

static void bind(Jinja *j, const Target *t, Value v)
{
    bool pair = v.kind == LIST && v.items->count == 2;
    if (t->names == 2 && !pair) { fail(j, "two names for what is no pair"); return; }
    for (int i = 0; i < t->names; i++)
        set(j, t->name[i], t->length[i], t->names == 2 ? v.items->value[i] : v);
}

/* The members that the condition at j->at lets through. */
static Value chosen(Jinja *j, const Target *t, Value items)
{
    Value out = items_of(j, LIST);
    const char *start = j->at;
    size_t scope = j->scope, variables = j->variables;
    for (size_t i = 0; !j->bad && j->live && i < items.items->count; i++) {
        j->scope = variables, j->at = start;
        bind(j, t, items.items->value[i]);
        if (true_of(expression(j))) add(j, out, missing, items.items->value[i]);
        j->scope = scope, j->variables = variables;
    }
    bool live = j->live;
    j->at = start, j->live = false;
    expression(j);
    j->live = live;
    return out;
}

static void run_for(Jinja *j)
{
    static const char *const stops[] = {"else", "endfor", NULL};
    Target t = {.names = 1};
    if (!name(j, &t.name[0], &t.length[0])) { fail(j, "a name is missing behind 'for'"); return; }
    if (take(j, ",") && name(j, &t.name[1], &t.length[1])) t.names = 2;
    need(j, "in");
    Value items = both(j, false); /* an 'if' behind it chooses */
    bool live = j->live;
    if (live && items.kind == MAP) {
        Value keys = items_of(j, LIST);
        for (size_t i = 0; i < items.items->count; i++) add(j, keys, missing, items.items->key[i]);
        items = keys;
    }
    if (live && !j->bad && items.kind != LIST) { fail(j, "a loop over what is no list"); return; }
    if (take(j, "if")) {
        if (items.kind != LIST) items = items_of(j, LIST);
        if (!j->bad) items = chosen(j, &t, items);
    }
    end_tag(j, "%}");
    const char *body = j->at, *stop = NULL;
    bool line = j->line;
    size_t scope = j->scope, variables = j->variables, n = live && !j->bad ? items.items->count : 0;
    for (size_t i = 0; !j->bad && i < (n ? n : 1); i++) {
        j->live = live && n > 0;
        j->at = body, j->line = line, j->scope = variables;
        if (n) {
            bind(j, &t, items.items->value[i]);
            set(j, "loop", 4, loop_of(j, items, i));
        }
        stop = block(j, stops);
        j->scope = scope, j->variables = variables;
        if (++j->steps > MOST_STEPS) fail(j, "it is too long");
    }
    if (stop && !strcmp(stop, "else")) {
        j->live = live && !n;
        end_tag(j, "%}");
        block(j, stops + 1);
    }
    j->live = live;
    end_tag(j, "%}");
}

static void run_set(Jinja *j)
{
    static const char *const stops[] = {"endset", NULL};
    const char *word, *part;
    size_t length, part_length = 0;
    if (!name(j, &word, &length)) { fail(j, "a name is missing behind 'set'"); return; }
    bool inside = take(j, ".") && name(j, &part, &part_length);
    if (!take(j, "=")) { /* what is printed up to the end */
        size_t from = j->size;
        end_tag(j, "%}");
        block(j, stops);
        Value v = text_of(j, j->out ? j->out + from : "", j->size - from);
        if (j->live && !j->bad) set(j, word, length, v);
        j->size = from;
        end_tag(j, "%}");
        return;
    }
    Value v = expression(j);
    if (take(j, ",")) fail(j, "two values at once are not known here");
    if (j->live && !j->bad && !inside) set(j, word, length, v);
    if (j->live && !j->bad && inside) {
        Variable *of = variable(j, word, length, 0);
        Value key = text_of(j, part, part_length), *old = of ? member(of->value, key) : NULL;
        if (!of || of->value.kind != MAP) fail(j, "it sets a part of what is no namespace");
        else if (old) *old = v;
        else add(j, of->value, key, v);
    }
    end_tag(j, "%}");
}

/* A function of the template's own is read, and not known when it is called. */
static void run_macro(Jinja *j)
{
    static const char *const stops[] = {"endmacro", NULL};
    bool live = j->live;
    const char *word;
    size_t length;
    j->live = false;
    if (!name(j, &word, &length)) fail(j, "a name is missing behind 'macro'");
    need(j, "(");
    arguments(j);
    end_tag(j, "%}");
    block(j, stops);
    end_tag(j, "%}");
    j->live = live;
}

static void run_tag(Jinja *j, const char *word, size_t length)
{
    if (called(word, length, "if")) run_if(j);
    else if (called(word, length, "for")) run_for(j);
    else if (called(word, length, "set")) run_set(j);
    else if (called(word, length, "macro")) run_macro(j);
    else if (called(word, length, "generation") || called(word, length, "endgeneration"))
        end_tag(j, "%}"); /* what a model learns */
    else if (!j->live && (called(word, length, "break") || called(word, length, "continue")))
        end_tag(j, "%}");
    else fail(j, "the statement '%.*s' is not known here", (int)(length & 63), word);
}

/* Up to a statement that is called one of the stops, behind its name; NULL: to the end. */
static const char *block(Jinja *j, const char *const *stops)
{
    const char *word, *stop = NULL;
    size_t length;
    if (++j->depth > DEEPEST) fail(j, "it is too deep");
    while (!j->bad && !stop && next_tag(j)) {
        char kind = j->at[-1] == '-' || j->at[-1] == '+' ? j->at[-2] : j->at[-1];
        if (kind == '#') {
            while (j->at + 1 < j->end && !(j->at[0] == '#' && j->at[1] == '}')) j->at++;
            if (j->at[-1] == '-') j->at--;
            end_tag(j, "#}");
        } else if (kind == '{') {
            Value v = shown(j, expression(j));
            if (v.kind == TEXT) print(j, v.text, (size_t)v.n);
            end_tag(j, "}}");
        } else if (!name(j, &word, &length)) {
            fail(j, "a statement has no name");
        } else {
            for (const char *const *s = stops; *s && !stop; s++)
                if (called(word, length, *s)) stop = *s;
            if (!stop) run_tag(j, word, length);
        }
    }
    if (!j->bad && !stop && *stops) fail(j, "'%s' is missing at the end", *stops);
    return j->depth--, stop;
}

static void add_message(Jinja *j, Value messages, const char *role, const char *text)
{
    Value m = items_of(j, MAP);
    add(j, m, string(j, "role"), string(j, role));
    add(j, m, string(j, "content"), string(j, text));
    add(j, messages, missing, m);
}

static void define(Jinja *j, const char *word, Value v) { set(j, word, strlen(word), v); }

/* What templates find there. */
static void define_all(Jinja *j, const Talk *talk)
{
    const Value nothing = {.kind = NOTHING}, yes = truth(true), no = truth(false);
    Value messages = items_of(j, LIST);
    for (size_t i = 0; i < talk->messages; i++)
        add_message(j, messages, talk->message[i].role, talk->message[i].text);
    const struct {
        const char *name;
        Value value;
    } rows[] = {{"true", yes}, {"True", yes}, {"false", no}, {"False", no}, {"none", nothing},
                {"None", nothing}, {"messages", messages}, {"tools", nothing},
                {"documents", nothing}, {"add_generation_prompt", yes}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) define(j, rows[i].name, rows[i].value);
    if (talk->first) define(j, "bos_token", string(j, talk->first));
    if (talk->end) define(j, "eos_token", string(j, talk->end));
}

char *jinja_render(const char *text, const Talk *talk, char error[200])
{
    static const char *const none[] = {NULL};
    size_t n = strlen(text);
    if (n && text[n - 1] == '\n') n--; /* the last line's end does not count */
    Jinja *j = calloc(1, sizeof *j);
    if (!j) return snprintf(error, 200, "no memory"), NULL;
    *j = (Jinja){.start = text, .at = text, .end = text + n, .live = true, .line = true,
                 .error = error};
    define_all(j, talk);
    block(j, none);
    char *out = j->bad ? NULL : realloc(j->out, j->size + 1);
    if (out) out[j->size] = 0;
    else free(j->out);
    if (!out && !j->bad) snprintf(error, 200, "no memory");
    for (size_t i = 0; i < j->blocks; i++) free(j->memory[i]);
    return free(j->memory), free(j), out;
}
