/* settings.h: what a file says about a model, by name. A table for each kind of file has a row for
 * each name: where the value goes and which values are taken. A name that is in no row is refused,
 * as it may change what the model computes; so are values that nothing here does, and two names
 * for one thing that contradict each other. */
#ifndef LLM_SETTINGS_H
#define LLM_SETTINGS_H
#include "checkpoint.h"
#include <stddef.h>

/* A value as any file may have it. */
typedef enum Kind { NOTHING, TRUTH, NUMBER, TEXT, LIST } Kind;

typedef struct Value {
    Kind kind;
    double number; /* TRUTH: 0 or 1 */
    const char *text;
    size_t length;
    const void *list;
    size_t count;
    struct Value (*element)(const void *list, size_t i);
} Value;

typedef enum Take {
    SIZE,     /* int: a whole number, or a list of equal ones; 0 for null */
    TOKEN,    /* int: the number of a token; -1: none */
    ENDS,     /* of a token, or a list of tokens: each ends a text */
    REAL,     /* double */
    CAP,      /* the same; 0 for null */
    FLAG,     /* int: 0 or 1 */
    CHOICE,   /* int: what the word means; a list of equal words */
    NUMBERS,  /* Factors: the numbers of a list */
    EACH,     /* Sights: what the word means for each layer, of a list */
    ONLY,     /* the model computes something else with values that are not among the words */
    KNOWN,    /* other code reads it, or it changes nothing that is computed here */
} Take;

typedef struct Choice {
    const char *word; /* NULL: the end */
    int value;
} Choice;

typedef struct Setting {
    const char *name; /* NULL: the end; a last * stands for anything */
    Take take;
    size_t at; /* in Config */
    const Choice *choices;
    const char *words;
    unsigned families; /* that have it, bits; 0: all. A row of some stands before one of all */
} Setting;

/* Rows of a table. */
#define SETTING(name, take, member) SETTING_OF(0, name, take, member)
#define CHOOSE(name, member, choices) CHOOSE_OF(0, name, CHOICE, member, choices)
#define MUST_BE(name, words) MUST_BE_OF(0, name, words)
#define ELSEWHERE(name) HARMLESS_OF(0, name) /* where it is read */
#define HARMLESS(name) HARMLESS_OF(0, name)
#define NO_MORE {0, KNOWN, 0, 0, 0, 0}
/* Of some families. */
#define SETTING_OF(families, name, take, member)                                                   \
    {name, take, offsetof(Config, member), 0, 0, families}
#define CHOOSE_OF(families, name, take, member, choices)                                           \
    {name, take, offsetof(Config, member), choices, 0, families}
#define MUST_BE_OF(families, name, words) {name, ONLY, 0, 0, words, families}
#define HARMLESS_OF(families, name) {name, KNOWN, 0, 0, 0, families}

enum { MOST_SETTINGS = 200 };

typedef struct Settings {
    Checkpoint *c;
    const Setting *table;
    const char *family; /* what stands in the file for "llama" in "llama.NAME"; NULL: no matter */
    bool seen[MOST_SETTINGS]; /* by row */
} Settings;

/* False: the value is refused, as c->error says. */
bool setting_take(Settings *s, const char *name, Value value);

/* Fills rope_factor, rope_size and attention_scale by what is said of positions. */
bool positions_scale(Checkpoint *c);
#endif
