/* ranges.c: ranges for profilers, by the protocols that their vendors have published; neither
 * headers nor libraries of theirs are needed.
 *
 * NVTX 3 (Nsight Systems, Nsight Compute): the profiler names a library in NVTX_INJECTION64_PATH.
 * Each user of NVTX loads it and calls its InitializeInjectionNvtx2 with a function that gives it
 * tables; in these it enters what it wants to have called. Ours are in a domain "tile", where it
 * knows domains.
 *
 * ROCTx (rocprofv3): functions of a library, which the profiler, or the program, has loaded. */
#include "runtime/ranges.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

atomic_bool tl_ranges_on;

/* ---- NVTX ---- */

typedef void (*function)(void);

/* Tables by number; of each, how many functions it has. Number 0 of a table is none. */
enum { TABLE_CORE = 1, TABLE_CORE2 = 5, TABLES = 7, MOST_FUNCTIONS = 16 };
static const unsigned sizes[TABLES] = {0, 16, 9, 15, 7, 16, 7};
enum { CORE_PUSH = 9, CORE_POP = 11 };
enum { CORE2_PUSH = 4, CORE2_POP = 5, CORE2_CREATE = 12, CORE2_INITIALIZE = 15 };

static function functions[TABLES][MOST_FUNCTIONS];
static function *places[TABLES][MOST_FUNCTIONS + 1]; /* what the profiler sees: where they are */

static int get_table(int table, function ***out_places, unsigned *out_size)
{
    if (table <= 0 || table >= TABLES)
        return 0;
    if (out_places)
        *out_places = places[table];
    if (out_size)
        *out_size = sizes[table];
    return 1;
}

static void set_version(uint32_t version)
{
    (void)version;
}

static const void *get_export(uint32_t number)
{
    enum { CALLBACKS = 1, VERSION_INFO = 3, NVTX_3 = 3 };
    static const struct {
        size_t struct_size;
        int (*get_table)(int table, function ***out_places, unsigned *out_size);
    } callbacks = {sizeof callbacks, get_table};
    static const struct {
        size_t struct_size;
        uint32_t version, reserved;
        void (*set_version)(uint32_t version);
    } version_info = {sizeof version_info, NVTX_3, 0, set_version};
    return number == CALLBACKS      ? (const void *)&callbacks
           : number == VERSION_INFO ? (const void *)&version_info
                                    : NULL;
}

/* nvtxEventAttributes_t */
typedef struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} attributes;
_Static_assert(sizeof(attributes) == 48, "as in nvToolsExt.h");

typedef int nvtx_push(const char *message);
typedef int nvtx_pop(void);
typedef int nvtx_push_in(void *domain, const attributes *a);
typedef int nvtx_pop_in(void *domain);
typedef void *nvtx_create(const char *name);
typedef void nvtx_initialize(const void *reserved);

static void *domain;

static void make_domain(void)
{
    const function *f = functions[TABLE_CORE2];
    if (f[CORE2_INITIALIZE])
        ((nvtx_initialize *)f[CORE2_INITIALIZE])(NULL);
    if (f[CORE2_CREATE] && f[CORE2_PUSH] && f[CORE2_POP])
        domain = ((nvtx_create *)f[CORE2_CREATE])("tile");
}

/* Loads the profiler's library. It stays: the profiler has threads of its own. */
static bool find_nvtx(void)
{
    typedef int initialize(const void *(*)(uint32_t));
    const char *path = secure_getenv("NVTX_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    void *p = library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
    initialize *f;
    memcpy(&f, &p, sizeof f); /* ISO C has no cast from data to function */
    for (int table = 1; table < TABLES; table++)
        for (unsigned i = 1; i < sizes[table]; i++)
            places[table][i] = &functions[table][i];
    if (!p || !f(get_export))
        return false;
    make_domain();
    return domain || (functions[TABLE_CORE][CORE_PUSH] && functions[TABLE_CORE][CORE_POP]);
}

static void push_nvtx(const char *message)
{
    enum { NVTX_3 = 3, MESSAGE_ASCII = 1 };
    const attributes a = {
        .version = NVTX_3, .size = sizeof a, .message_type = MESSAGE_ASCII, .message = message};
    if (domain)
        ((nvtx_push_in *)functions[TABLE_CORE2][CORE2_PUSH])(domain, &a);
    else
        ((nvtx_push *)functions[TABLE_CORE][CORE_PUSH])(message);
}

static void pop_nvtx(void)
{
    if (domain)
        ((nvtx_pop_in *)functions[TABLE_CORE2][CORE2_POP])(domain);
    else
        ((nvtx_pop *)functions[TABLE_CORE][CORE_POP])();
}

/* ---- ROCTx ---- */

static int (*roctx_push)(const char *message);
static int (*roctx_pop)(void);

static bool find_roctx(void)
{
    static const char *const names[] = {"librocprofiler-sdk-roctx.so.1",
                                        "librocprofiler-sdk-roctx.so", "libroctx64.so.4",
                                        "libroctx64.so", NULL};
    void *library = NULL;
    for (const char *const *name = names; *name && !library; name++)
        library = dlopen(*name, RTLD_LAZY | RTLD_NOLOAD);
    void *push = library ? dlsym(library, "roctxRangePushA") : NULL;
    void *pop = library ? dlsym(library, "roctxRangePop") : NULL;
    memcpy(&roctx_push, &push, sizeof push);
    memcpy(&roctx_pop, &pop, sizeof pop);
    return push && pop;
}

/* ---- both ---- */

static bool to_nvtx, to_roctx;

static void find(void)
{
    to_nvtx = find_nvtx();
    to_roctx = find_roctx();
    atomic_store_explicit(&tl_ranges_on, to_nvtx || to_roctx, memory_order_release);
}

void tl_ranges_find(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
}

void tl_range_push(const char *what, const char *name)
{
    char message[256];
    snprintf(message, sizeof message, "%s%s%s", what, *what ? " " : "", name);
    if (to_nvtx)
        push_nvtx(message);
    if (to_roctx)
        roctx_push(message);
}

void tl_range_pop(void)
{
    if (to_roctx)
        roctx_pop();
    if (to_nvtx)
        pop_nvtx();
}
