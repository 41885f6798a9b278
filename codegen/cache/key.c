/* The key of the cache, but for the source (compile_cached.c). */
#include "codegen/cache/key.h"
#include "codegen/cache/trust.h"

#include <inttypes.h>
#include <llvm-c/blake3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A new number makes all entries of older ones misses. */
#define VERSION "1"

/* ---- hashes ---- */

_Static_assert(TL_HASH_BYTES == LLVM_BLAKE3_OUT_LEN, "of BLAKE3");

void tl_hash_bytes(const void *data, size_t size, unsigned char out[TL_HASH_BYTES])
{
    llvm_blake3_hasher h;
    llvm_blake3_hasher_init(&h);
    llvm_blake3_hasher_update(&h, data, size);
    llvm_blake3_hasher_finalize(&h, out, TL_HASH_BYTES);
}

void tl_hash_digits(const void *data, size_t size, char out[TL_HASH_DIGITS + 1])
{
    unsigned char hash[TL_HASH_BYTES];
    tl_hash_bytes(data, size, hash);
    for (int i = 0; i < TL_HASH_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

/* ---- lines ---- */

void tl_key_text(TlSbuf *key, const char *name, const char *value)
{
    if (value)
        tl_sbuf_putf(key, "%s %zu:%s\n", name, strlen(value), value);
    else
        tl_sbuf_putf(key, "%s -\n", name);
}

void tl_key_hash(TlSbuf *key, const char *name, const void *data, size_t size)
{
    char digits[TL_HASH_DIGITS + 1];
    tl_hash_digits(data, size, digits);
    tl_key_text(key, name, digits);
}

static void put_number(TlSbuf *key, const char *name, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    tl_key_text(key, name, digits);
}

const char *tl_key_find(const char *key, size_t size, const char *name, size_t *out_size)
{
    const char *end = key + size;
    size_t length = strlen(name);
    for (const char *p = key; p < end;) {
        const char *space = memchr(p, ' ', (size_t)(end - p)), *colon;
        if (!space)
            return NULL;
        if (space + 1 < end && space[1] == '-') {
            p = space + 3; /* " -\n" */
            continue;
        }
        colon = memchr(space, ':', (size_t)(end - space));
        size_t n = colon ? strtoull(space + 1, NULL, 10) : 0;
        if (!colon || n >= (size_t)(end - colon))
            return NULL;
        if ((size_t)(space - p) == length && !memcmp(p, name, length)) {
            *out_size = n;
            return colon + 1;
        }
        p = colon + 1 + n + 1;
    }
    return NULL;
}

/* ---- options ---- */

static void put_list(TlSbuf *key, const char *name, const char *const *texts, size_t n)
{
    put_number(key, name, n);
    for (size_t i = 0; i < n; i++)
        tl_key_text(key, "item", texts[i]);
}

static void put_consts(TlSbuf *key, const char *name, const tilec_const *consts, size_t n)
{
    put_number(key, name, n);
    for (size_t i = 0; i < n; i++) {
        tl_key_text(key, "const", consts[i].name);
        tl_key_text(key, "value", consts[i].value);
    }
}

static void put_tuned(TlSbuf *key, const char *name, const tilec_tuned *rows, size_t n)
{
    put_number(key, name, n);
    for (size_t i = 0; i < n; i++) {
        const tilec_tuned *r = &rows[i];
        const char *const texts[] = {r->target, r->kernel, r->hash, r->constants, r->keys};
        put_list(key, "tuned", texts, sizeof texts / sizeof *texts);
        put_number(key, "bucket", r->nbucket);
        for (size_t k = 0; k < r->nbucket; k++)
            put_number(key, "item", (uint64_t)r->bucket[k]);
        put_list(key, "configs", r->configs, r->nconfigs);
    }
}

bool tl_key_may(const tilec_options *o)
{
    bool may = true;
#define FREE(member)
#define FOLDER(member)
#define TEXT(member)
#define NUMBER(member)
#define LIST(member, count)
#define CONSTS(member, count)
#define TUNED(member, count)
#define WATCH(member, unset) may = may && o->member == (unset);
#include "codegen/cache/key.def"
    return may;
}

static void put_options(TlSbuf *key, const tilec_options *o)
{
#define FREE(member)
#define FOLDER(member)
#define TEXT(member)          tl_key_text(key, #member, o->member);
#define NUMBER(member)        put_number(key, #member, (uint64_t)o->member);
#define LIST(member, count)   put_list(key, #member, o->member, o->count);
#define CONSTS(member, count) put_consts(key, #member, o->member, o->count);
#define TUNED(member, count)  put_tuned(key, #member, o->member, o->count);
#define WATCH(member, unset)
#include "codegen/cache/key.def"
}

/* ---- tools ---- */

/* The ptxas that a compilation would start: its path, size and times. false: there is none. */
static bool put_ptxas(TlSbuf *key)
{
    char file[TL_TRUST_PATH], why[1];
    struct stat s;
    if (!tl_trust_ptxas(file, why, sizeof why) || stat(file, &s))
        return false;
    tl_key_text(key, "ptxas", file);
    put_number(key, "size", (uint64_t)s.st_size);
    put_number(key, "seconds", (uint64_t)s.st_mtim.tv_sec);
    put_number(key, "nanoseconds", (uint64_t)s.st_mtim.tv_nsec);
    put_number(key, "changed", (uint64_t)s.st_ctim.tv_sec);
    put_number(key, "changed_nanoseconds", (uint64_t)s.st_ctim.tv_nsec);
    return true;
}

bool tl_key_begin(TlSbuf *key, const tilec_options *o)
{
    tl_key_text(key, "tile-cache", VERSION);
    tl_key_text(key, "build", tl_build_id);
    tl_key_machine(key);
    put_options(key, o);
    return !o->emit || strcmp(o->emit, "cubin") || put_ptxas(key);
}
