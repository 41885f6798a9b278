/* Byte pairs (Sennrich et al. 2016, as in GPT-2 and SentencePiece): a piece of a text begins as
 * small tokens, and of all neighbours the pair that comes first, by a list of merges or by the
 * scores of what they become, becomes one token, until no pair does. */
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
    bool eats; /* blanks behind it */
} Token;

typedef struct Pair {
    int part[2]; /* the key of the map, by its bytes */
    int whole;
} Pair;

struct Words {
    Alphabet alphabet;
    Cut *cut;
    Token *token;
    Pair **pair;
    float *score; /* NULL: there are merges */
    int *special;
    size_t ntokens, tokens_room, npairs, pairs_room, nspecials, specials_room;
    Map by_bytes, by_pair;
    int byte[256]; /* tokens <0x00> to <0xFF>; -1: there is none */
    int begin;
    Blank blank;
    bool whole;
};

Words *words_new(Alphabet alphabet)
{
    Words *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->alphabet = alphabet;
    w->begin = -1;
    for (int i = 0; i < 256; i++) w->byte[i] = -1;
    w->cut = cut_new();
    return w->cut ? w : (words_free(w), NULL);
}

void words_free(Words *w)
{
    if (!w) return;
    for (size_t i = 0; i < w->ntokens; i++) free(w->token[i].bytes);
    for (size_t i = 0; i < w->npairs; i++) free(w->pair[i]);
    free(w->token), free(w->pair), free(w->by_bytes.entry), free(w->by_pair.entry);
    free(w->score), free(w->special), cut_free(w->cut), free(w);
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

/* The byte of the letter at text, of *size bytes in UTF-8; -1: it is not in the alphabet. */
static int letter(const char *text, size_t length, size_t *size)
{
    unsigned c = (unsigned char)*text;
    bool two = c >= 0xC2 && c < 0xE0 && length > 1; /* below 0x800 there are two */
    *size = two ? 2 : 1;
    if (c >= 0x80 && !two) return -1;
    return byte_of(two ? (c & 0x1F) << 6 | ((unsigned char)text[1] & 0x3F) : c);
}

static bool in_alphabet(const char *text, size_t length)
{
    size_t size;
    for (size_t i = 0; i < length; i += size)
        if (letter(text + i, length - i, &size) < 0) return false;
    return true;
}

/* The bytes that a token's letters stand for. What is not in the alphabet stays as it is. */
static size_t bytes_of_letters(const char *text, size_t length, char *bytes)
{
    size_t n = 0, size;
    for (size_t i = 0; i < length; i += size) {
        int byte = letter(text + i, length - i, &size);
        if (byte < 0) byte = (unsigned char)text[i], size = 1;
        bytes[n++] = (char)byte;
    }
    return n;
}

/* The same for characters, where only blanks are written as others. */
static size_t bytes_of_characters(const char *text, size_t length, char *bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        bool blank = length - i >= 3 && !memcmp(text + i, "\xE2\x96\x81", 3);
        bytes[n++] = blank ? ' ' : text[i];
        i += blank ? 2 : 0;
    }
    return n;
}

static size_t decode(const Words *w, const char *text, size_t length, char *bytes)
{
    return w->alphabet == BYTES ? bytes_of_letters(text, length, bytes)
                                : bytes_of_characters(text, length, bytes);
}

/* <0x0A>: 10; -1: it is no such token. */
static int named_byte(const char *text, size_t length)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *high = length == 6 ? memchr(digits, text[3], 16) : NULL;
    const char *low = length == 6 ? memchr(digits, text[4], 16) : NULL;
    if (!high || !low || memcmp(text, "<0x", 3) || text[5] != '>') return -1;
    return (int)(16 * (high - digits) + (low - digits));
}

bool words_add(Words *w, const char *text, size_t length)
{
    if (!grow((void **)&w->token, w->ntokens, &w->tokens_room, sizeof *w->token)) return false;
    Token t = {malloc(length + 1), 0, false};
    if (!t.bytes) return false;
    int id = (int)w->ntokens, byte = w->alphabet == CHARACTERS ? named_byte(text, length) : -1;
    t.length = decode(w, text, length, t.bytes);
    if (byte >= 0) {
        t.bytes[0] = (char)byte, t.length = 1;
        w->byte[byte] = id;
    }
    w->token[w->ntokens++] = t;
    if (w->alphabet == BYTES && !in_alphabet(text, length)) return true; /* no text becomes it */
    return byte >= 0 || map_add(&w->by_bytes, t.bytes, t.length, id);
}

bool words_scores(Words *w, const char *scores)
{
    w->score = malloc((w->ntokens + 1) * sizeof *w->score);
    if (w->score) memcpy(w->score, scores, w->ntokens * sizeof *w->score);
    return w->score;
}

bool words_merge(Words *w, const char *text, size_t length)
{
    const char *space = memchr(text, ' ', length);
    char *bytes = malloc(length + 1);
    Pair *p = malloc(sizeof *p);
    bool known = false;
    if (space && bytes && p) {
        size_t first = decode(w, text, (size_t)(space - text), bytes);
        size_t all =
            first + decode(w, space + 1, length - 1 - (size_t)(space - text), bytes + first);
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

bool words_special(Words *w, int token, bool eats)
{
    if (!grow((void **)&w->special, w->nspecials, &w->specials_room, sizeof *w->special))
        return false;
    if (w->token[token].length) w->special[w->nspecials++] = token;
    w->token[token].eats = eats;
    return true;
}

int words_begin(Words *w, int token)
{
    int before = w->begin;
    w->begin = token;
    return before;
}

void words_blank(Words *w, Blank blank)
{
    w->blank = blank;
}

void words_whole(Words *w)
{
    w->whole = true;
}

Cut *words_cut(Words *w)
{
    return w->cut;
}

int words_count(const Words *w)
{
    return (int)w->ntokens;
}

int words_find(const Words *w, const char *bytes, size_t length)
{
    int i = (int)w->ntokens - 1;
    while (i >= 0 && (w->token[i].length != length || memcmp(w->token[i].bytes, bytes, length)))
        i--;
    return i;
}

const char *words_bytes(const Words *w, int token, size_t *length)
{
    *length = w->token[token].length;
    return w->token[token].bytes;
}

/* ---- from text ---- */

/* A part of the piece that is one token; id -1: a character without one. */
typedef struct Part {
    const char *text;
    size_t length;
    int id, whole; /* whole: what it and the next one become; -1: they stay two */
    double order;  /* of that merge: the least goes first */
} Part;

typedef struct Encoder {
    const Words *words;
    const char *bad; /* a byte that has no token */
    int *token;
    size_t n, room;
    Part *part;
    size_t parts_room;
} Encoder;

static bool emit(Encoder *e, int id)
{
    if (!grow((void **)&e->token, e->n, &e->room, sizeof *e->token)) return false;
    e->token[e->n++] = id;
    return true;
}

/* Bytes of the character that begins at text. */
static size_t character(const char *text, size_t length)
{
    unsigned char c = (unsigned char)*text;
    size_t n = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    return n < length ? n : length;
}

/* How part i would merge with the next one. */
static void consider(const Words *w, Part *part, size_t i, size_t n)
{
    Part *p = &part[i];
    p->whole = -1;
    if (i + 1 >= n) return;
    if (w->score) {
        p->whole = map_get(&w->by_bytes, p->text, p->length + p[1].length);
        p->order = p->whole < 0 ? 0 : -(double)w->score[p->whole];
    } else {
        int pair[2] = {p->id, p[1].id}, rank = map_get(&w->by_pair, (char *)pair, sizeof pair);
        p->whole = rank < 0 ? -1 : w->pair[rank]->whole;
        p->order = rank;
    }
}

/* Merges in place; returns how many parts are left. */
static size_t merge(const Words *w, Part *part, size_t n)
{
    for (size_t i = 0; i < n; i++) consider(w, part, i, n);
    for (;;) {
        size_t best = n;
        for (size_t i = 0; i + 1 < n; i++)
            if (part[i].whole >= 0 && (best == n || part[i].order < part[best].order)) best = i;
        if (best == n) return n;
        part[best].id = part[best].whole;
        part[best].length += part[best + 1].length;
        memmove(&part[best + 1], &part[best + 2], (n - best - 2) * sizeof *part);
        n--;
        consider(w, part, best, n);
        if (best > 0) consider(w, part, best - 1, n);
    }
}

/* A part without a token of its own becomes those of its bytes. */
static bool emit_part(Encoder *e, const Part *p)
{
    if (p->id >= 0) return emit(e, p->id);
    for (size_t i = 0; i < p->length; i++) {
        int id = e->words->byte[(unsigned char)p->text[i]];
        if (id < 0) return e->bad = p->text + i, false;
        if (!emit(e, id)) return false;
    }
    return true;
}

static bool encode_piece(void *data, const char *text, size_t length)
{
    Encoder *e = data;
    const Words *w = e->words;
    int whole = w->whole ? map_get(&w->by_bytes, text, length) : -1;
    if (whole >= 0) return emit(e, whole);
    size_t n = 0;
    for (size_t at = 0; at < length; n++) {
        if (!grow((void **)&e->part, n, &e->parts_room, sizeof *e->part)) return false;
        size_t l = w->alphabet == BYTES ? 1 : character(text + at, length - at);
        e->part[n] = (Part){text + at, l, map_get(&w->by_bytes, text + at, l), -1, 0};
        at += l;
    }
    n = merge(w, e->part, n);
    for (size_t i = 0; i < n; i++)
        if (!emit_part(e, &e->part[i])) return false;
    return true;
}

/* What lies between special tokens; of characters, it may begin with a blank. */
static bool encode_between(Encoder *e, const char *text, size_t length, bool first)
{
    const Words *w = e->words;
    if (length == 0) return true;
    if (w->alphabet == BYTES || w->blank == NOWHERE || (w->blank == AT_THE_START && !first) ||
        (w->blank != BEFORE_EACH && *text == ' '))
        return cut_pieces(w->cut, text, length, encode_piece, e);
    char *more = malloc(length + 1);
    if (!more) return false;
    more[0] = ' ';
    memcpy(more + 1, text, length);
    bool good = cut_pieces(w->cut, more, length + 1, encode_piece, e);
    if (e->bad) e->bad = e->bad == more ? text : text + (e->bad - more - 1);
    return free(more), good;
}

/* The longest special token that begins here; -1: none does. */
static int special_at(const Words *w, const char *text, size_t length)
{
    int best = -1;
    for (size_t i = 0; i < w->nspecials; i++) {
        const Token *t = &w->token[w->special[i]];
        if (t->length <= length && !memcmp(t->bytes, text, t->length) &&
            (best < 0 || t->length > w->token[best].length))
            best = w->special[i];
    }
    return best;
}

/* The bytes of the blanks, Unicode's too, that a text begins with. */
static size_t blanks(const char *text, size_t length)
{
    static const char *const wide[] = {
        "\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
        "\xe2\x81\x9f", "\xe3\x80\x80"}; /* and U+2000 to U+200A */
    size_t at = 0, n = 1;
    for (; n && at < length; at += n) {
        const unsigned char *c = (const unsigned char *)text + at;
        size_t left = length - at;
        n = *c == ' ' || (*c >= '\t' && *c <= '\r') ? 1 : 0;
        if (left >= 3 && c[0] == 0xE2 && c[1] == 0x80 && c[2] >= 0x80 && c[2] <= 0x8A) n = 3;
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
            if (left >= strlen(wide[i]) && !memcmp(c, wide[i], strlen(wide[i])))
                n = strlen(wide[i]);
    }
    return at;
}

static bool encode_all(Encoder *e, const char *text, size_t length)
{
    size_t done = 0;
    if (e->words->begin >= 0 && !emit(e, e->words->begin)) return false;
    for (size_t at = 0; at < length;) {
        int id = special_at(e->words, text + at, length - at);
        if (id < 0) at++;
        else {
            if (!encode_between(e, text + done, at - done, done == 0) || !emit(e, id)) return false;
            at += e->words->token[id].length;
            done = at += e->words->token[id].eats ? blanks(text + at, length - at) : 0;
        }
    }
    return encode_between(e, text + done, length - done, done == 0);
}

int *words_encode(const Words *w, const char *text, size_t length, size_t *count)
{
    Encoder e = {.words = w};
    bool good = encode_all(&e, text, length);
    if (good && !e.token) good = grow((void **)&e.token, 0, &e.room, sizeof *e.token); /* "" */
    *count = good ? e.n : e.bad ? (size_t)(e.bad - text) : length;
    free(e.part);
    return good ? e.token : (free(e.token), NULL);
}
