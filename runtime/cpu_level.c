/* cpu_level.c: the features of CPUs: read from the machine, compared with levels and images. */
#include "runtime/cpu_level.h"
#include "runtime/contract/cpu_state.h"
#include "runtime/cpu_ask.h"
#include <stdio.h>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

enum arch { X86_64, AARCH64 };
#if defined(__aarch64__)
static const enum arch here = AARCH64;
#else
static const enum arch here = X86_64;
#endif

typedef struct feature {
    enum arch arch;
    const char *name;
    uint32_t leaf, sub;
    int reg, bit;
    uint64_t state;
} feature;

static const feature features[] = {
#define CPU_FEATURE(arch, name, leaf, sub, reg, bit, state)                                        \
    {arch, name, leaf, sub, reg, bit, state},
#include "runtime/contract/cpu_level.def"
};
enum { NFEATURES = sizeof features / sizeof *features };
_Static_assert(NFEATURES <= 64, "a set of features is 64 bits");

static const struct level {
    const char *name;
    enum arch arch;
    const char *features; /* "+sse3,+ssse3" */
} levels[] = {
#define CPU_LEVEL(name, arch, triple, cpu, list) {name, arch, list},
#include "runtime/contract/cpu_level.def"
};
enum { NLEVELS = sizeof levels / sizeof *levels };
_Static_assert(NLEVELS > 0, "\"native\" is at least the first level");

static const char known[] = "native"
#define CPU_LEVEL(name, arch, triple, cpu, list) ", " name
#include "runtime/contract/cpu_level.def"
    ;

/* The bit that stands for the architecture itself. */
static uint64_t bit_of_arch(enum arch arch)
{
    for (uint32_t i = 0; i < NFEATURES; i++)
        if (features[i].arch == arch && features[i].leaf == 0)
            return UINT64_C(1) << i;
    TL_INVARIANT_OR(0, false, "cpu_level.def has no row of architecture %d itself", (int)arch);
}

/* ---- the machine ---- */

#if defined(__x86_64__)
/* cpuid is slow in virtual machines: one call serves all rows of a leaf, which are adjacent. */
static uint64_t read_machine(void)
{
    uint64_t have = 0, state = tl_cpu_permitted(tl_cpu_saved_state());
    const feature *last = NULL;
    uint32_t r[4] = {0};
    for (uint32_t i = 0; i < NFEATURES; i++) {
        const feature *f = &features[i];
        if (f->arch != here || f->leaf == 0)
            continue;
        if (!last || last->leaf != f->leaf || last->sub != f->sub)
            if (!tl_cpu_ask(f->leaf, f->sub, r))
                memset(r, 0, sizeof r);
        last = f;
        if ((r[f->reg] >> f->bit & 1) && (state & f->state) == f->state)
            have |= UINT64_C(1) << i;
    }
    return have;
}
#else
static uint64_t read_machine(void)
{
    uint64_t have = 0;
#if defined(__aarch64__)
    for (uint32_t i = 0; i < NFEATURES; i++)
        if (features[i].arch == here && features[i].leaf &&
            getauxval(features[i].leaf) >> features[i].bit & 1)
            have |= UINT64_C(1) << i;
#endif
    return have;
}
#endif

/* ---- lists of names ---- */

static uint32_t length_of_name(const char *p)
{
    return (uint32_t)strcspn(p, " ,");
}

/* The bit of the feature; 0 if there is none of that name. */
static uint64_t bit_of(const char *name, uint32_t length)
{
    for (uint32_t i = 0; i < NFEATURES; i++)
        if (strlen(features[i].name) == length && strncmp(features[i].name, name, length) == 0)
            return UINT64_C(1) << i;
    return 0;
}

uint32_t tl_cpu_lacks(const char *names, uint64_t have, char *text, size_t size)
{
    uint32_t lacking = 0;
    TL_INVARIANT_OR(UINT32_MAX, names && size > 0, "no room for a list of features");
    text[0] = 0;
    for (const char *p = names; *p;) {
        uint32_t n = length_of_name(p);
        if (n && !(bit_of(p, n) & have)) {
            size_t at = strlen(text);
            snprintf(text + at, size - at, "%s%.*s", lacking ? ", " : "", (int)n, p);
            lacking++;
        }
        p += n + (p[n] != 0);
    }
    return lacking;
}

uint32_t tl_cpu_count(const char *names)
{
    char none[1];
    return tl_cpu_lacks(names, 0, none, sizeof none);
}

uint64_t tl_cpu_machine(void)
{
    return bit_of_arch(here) | read_machine();
}

/* ---- levels ---- */

/* The names without their '+', which no feature's name begins with. */
static uint64_t features_of(const struct level *l)
{
    uint64_t set = bit_of_arch(l->arch);
    for (const char *p = l->features; *p;) {
        uint32_t n = length_of_name(p);
        uint64_t bit = bit_of(p + 1, n - 1);
        TL_INVARIANT_OR(UINT64_MAX, *p == '+' && bit, "level %s has no feature '%.*s'", l->name,
                        (int)n, p);
        set |= bit;
        p += n + (p[n] != 0);
    }
    return set;
}

static const char *name_of_arch(uint64_t set)
{
    for (uint32_t i = 0; i < NFEATURES; i++)
        if (features[i].leaf == 0 && set >> i & 1)
            return features[i].name;
    return "unknown";
}

static void list_names(uint64_t set, char *text, size_t size)
{
    text[0] = 0;
    for (uint32_t i = 0; i < NFEATURES; i++) {
        size_t at = strlen(text);
        if (set >> i & 1)
            snprintf(text + at, size - at, "%s%s", at ? ", " : "", features[i].name);
    }
}

static tile_status too_little(const char *device, const struct level *l, uint64_t machine)
{
    char text[300];
    uint64_t lacks = features_of(l) & ~machine;
    if (lacks & bit_of_arch(l->arch))
        return tl_fail(TILE_UNAVAILABLE, "device '%s' is not available: this machine is %s, not %s",
                       device, name_of_arch(machine), name_of_arch(features_of(l)));
    list_names(lacks, text, sizeof text);
    return tl_fail(TILE_UNAVAILABLE,
                   "device '%s' is not available: this CPU is below %s: it lacks %s", device,
                   l->name, text);
}

/* NULL: no such level. native: the first level of the machine's architecture. */
static const struct level *find_level(const char *name, bool native, uint64_t machine)
{
    for (uint32_t i = 0; i < NLEVELS; i++)
        if (native ? (bit_of_arch(levels[i].arch) & machine) != 0
                   : strcmp(levels[i].name, name) == 0)
            return &levels[i];
    return NULL;
}

tile_status tl_cpu_open(const char *device, const char *level, uint64_t machine,
                        uint64_t *out_features)
{
    bool native = !*level || strcmp(level, "native") == 0;
    const struct level *l = find_level(level, native, machine);
    if (!l)
        return tl_fail(TILE_BAD_ARGUMENT, "device '%s': unknown CPU level '%s'; expected one of %s",
                       device, level, known);
    uint64_t wanted = features_of(l);
    if (wanted & ~machine)
        return too_little(device, l, machine);
    *out_features = native ? machine : wanted;
    return TILE_OK;
}
