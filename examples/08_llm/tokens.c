/* Byte pairs (Sennrich et al. 2016, as in GPT-2): a text is cut into words, each word begins as
 * tokens of one byte, and of all neighbours the pair that comes first in the list of merges becomes
 * one token, until no pair is in the list. */
#include "tokens.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- a map from bytes to numbers from 0 ---- */

typedef struct Entry {
    const char *key; /* NULL: free */
    size_t length;
    int value;
} Entry;

typedef struct Map {
    Entry *entry;
    size_t size, used; /* the size is a power of two */
} Map;

static Entry *map_place(const Map *map, const char *key, size_t length)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)key[i]) * 1099511628211u;
    size_t at = (size_t)(hash ^ hash >> 32) & (map->size - 1);
    while (map->entry[at].key && (map->entry[at].length != length ||
                                  memcmp(map->entry[at].key, key, length)))
        at = (at + 1) & (map->size - 1);
    return &map->entry[at];
}

static int map_get(const Map *map, const char *key, size_t length)
{
    const Entry *e = map->size ? map_place(map, key, length) : NULL;
    return e && e->key ? e->value : -1;
}

/* The first value of a key stays. The key's memory is the caller's. */
static bool map_add(Map *map, const char *key, size_t length, int value)
{
    if (2 * map->used >= map->size) {
        Map larger = {NULL, map->size ? 2 * map->size : 1024, map->used};
        if (!(larger.entry = calloc(larger.size, sizeof *larger.entry))) return false;
        for (size_t i = 0; i < map->size; i++)
            if (map->entry[i].key)
                *map_place(&larger, map->entry[i].key, map->entry[i].length) = map->entry[i];
        free(map->entry);
        *map = larger;
    }
    Entry *e = map_place(map, key, length);
    if (e->key) return true;
    *e = (Entry){key, length, value};
    map->used++;
    return true;
}

/* ---- the vocabulary ---- */

typedef struct Token {
    char *bytes;
    size_t length;
} Token;

typedef struct Pair {
    int part[2]; /* the key of the map, by its bytes */
    int whole;
} Pair;

struct Words {
    Token *token;
    Pair **pair;
    size_t ntokens, tokens_room, npairs, pairs_room;
    Map by_bytes, by_pair;
};

Words *words_new(void)
{
    return calloc(1, sizeof(Words));
}

void words_free(Words *w)
{
    if (!w) return;
    for (size_t i = 0; i < w->ntokens; i++) free(w->token[i].bytes);
    for (size_t i = 0; i < w->npairs; i++) free(w->pair[i]);
    free(w->token), free(w->pair), free(w->by_bytes.entry), free(w->by_pair.entry), free(w);
}

/* Room for one more of `size` bytes. */
static bool grow(void **array, size_t used, size_t *room, size_t size)
{
    if (used < *room) return true;
    size_t more = *room ? 2 * *room : 256;
    void *larger = realloc(*array, more * size);
    if (!larger) return false;
    *array = larger;
    *room = more;
    return true;
}

/* Bytes that GPT-2's alphabet shows as they are; the others are, in order, 256, 257, ... */
static bool shown(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/* The byte of a letter of the alphabet; -1: no letter of it. */
static int byte_of(unsigned letter)
{
    if (letter < 256) return shown((int)letter) ? (int)letter : -1;
    int hidden = 256;
    for (int byte = 0; byte < 256; byte++)
        if (!shown(byte) && hidden++ == (int)letter) return byte;
    return -1;
}

/* The bytes that a token's text stands for. What is not in the alphabet stays as it is. */
static size_t decode(const char *text, size_t length, char *bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned c = (unsigned char)text[i];
        bool two = c >= 0xC2 && c < 0xE0 && i + 1 < length; /* UTF-8: below 0x800 there are two */
        int byte = byte_of(two ? (c & 0x1F) << 6 | ((unsigned char)text[i + 1] & 0x3F) : c);
        if (byte < 0 || (c >= 0x80 && !two)) byte = (int)c;
        else i += two;
        bytes[n++] = (char)byte;
    }
    return n;
}

bool words_add(Words *w, const char *text, size_t length)
{
    if (!grow((void **)&w->token, w->ntokens, &w->tokens_room, sizeof *w->token)) return false;
    Token t = {malloc(length + 1), 0};
    if (!t.bytes) return false;
    t.length = decode(text, length, t.bytes);
    w->token[w->ntokens++] = t;
    return map_add(&w->by_bytes, t.bytes, t.length, (int)w->ntokens - 1);
}

bool words_merge(Words *w, const char *text, size_t length)
{
    const char *space = memchr(text, ' ', length);
    char *bytes = malloc(length + 1);
    Pair *p = malloc(sizeof *p);
    bool known = false;
    if (space && bytes && p) {
        size_t first = decode(text, (size_t)(space - text), bytes);
        size_t all = first + decode(space + 1, length - 1 - (size_t)(space - text), bytes + first);
        p->part[0] = map_get(&w->by_bytes, bytes, first);
        p->part[1] = map_get(&w->by_bytes, bytes + first, all - first);
        p->whole = map_get(&w->by_bytes, bytes, all);
        known = p->part[0] >= 0 && p->part[1] >= 0 && p->whole >= 0 &&
                grow((void **)&w->pair, w->npairs, &w->pairs_room, sizeof *w->pair);
    }
    free(bytes);
    if (!known) return free(p), false;
    w->pair[w->npairs++] = p;
    return map_add(&w->by_pair, (char *)p->part, sizeof p->part, (int)w->npairs - 1);
}

int words_count(const Words *w)
{
    return (int)w->ntokens;
}

const char *words_bytes(const Words *w, int token, size_t *length)
{
    *length = w->token[token].length;
    return w->token[token].bytes;
}

/* ---- from text ---- */

enum { SPACE, LETTER, DIGIT, OTHER };

static int class_of(char c)
{
    unsigned char u = (unsigned char)c;
    if (u == ' ' || (u >= '\t' && u <= '\r')) return SPACE;
    if (u >= '0' && u <= '9') return DIGIT;
    return u >= 0x80 || ((u | 32) >= 'a' && (u | 32) <= 'z') ? LETTER : OTHER;
}

/* The length of the first word, by GPT-2's rule; bytes from 0x80 on count as letters: an ending as
 * in "it's"; a blank, or none, with all that is of one class; blanks but for the last one before
 * something. */
static size_t word_length(const char *text, size_t n)
{
    static const char *const ending[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        size_t l = strlen(ending[i]);
        if (n >= l && !memcmp(text, ending[i], l)) return l;
    }
    size_t at = text[0] == ' ' && n > 1 && class_of(text[1]) != SPACE;
    int class = class_of(text[at]);
    while (at < n && class_of(text[at]) == class) at++;
    return class == SPACE && at < n && at > 1 ? at - 1 : at;
}

/* Merges the tokens of one word in place; returns how many are left. */
static size_t merge(const Words *w, int *token, size_t n)
{
    for (;;) {
        int first = -1;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            int rank = map_get(&w->by_pair, (char *)&token[i], 2 * sizeof *token);
            if (rank >= 0 && (first < 0 || rank < first)) first = rank, at = i;
        }
        if (first < 0) return n;
        token[at] = w->pair[first]->whole;
        memmove(&token[at + 1], &token[at + 2], (n - at - 2) * sizeof *token);
        n--;
    }
}

int *words_encode(const Words *w, const char *text, size_t length, size_t *count)
{
    int *token = malloc((length + 1) * sizeof *token);
    size_t n = 0;
    *count = length;
    for (size_t at = 0; token && at < length;) {
        size_t word = word_length(text + at, length - at);
        for (size_t i = 0; i < word; i++) {
            int id = map_get(&w->by_bytes, text + at + i, 1);
            if (id < 0) return *count = at + i, free(token), NULL;
            token[n + i] = id;
        }
        n += merge(w, token + n, word);
        at += word;
    }
    if (token) *count = n;
    return token;
}
