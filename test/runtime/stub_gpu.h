/* stub_gpu.h: a driver library that fakes a GPU: memory is the host's, streams do things at once, a
 * launch calls the C function that the test registered under the kernel's symbol. It counts calls,
 * fails the one that it is told to, and knows what was made and not given back.
 *
 * stub_cuda.c and stub_hip.c give it the vendors' names and are built as shared libraries, which
 * the runtime finds by LD_LIBRARY_PATH as it would find the real ones. A test finds the same copy
 * by dlopen and dlsym("stub_state"). */
#ifndef TL_TEST_STUB_GPU_H
#define TL_TEST_STUB_GPU_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In their own words: nothing of the runtime is used here. Equal in both vendors' libraries. */
enum {
    STUB_INVALID_VALUE = 1,
    STUB_OUT_OF_MEMORY = 2,
    STUB_NOT_INITIALIZED = 3,
    STUB_NO_DEVICE = 100,
    STUB_INVALID_DEVICE = 101,
    STUB_INVALID_CONTEXT = 201,
    STUB_INVALID_HANDLE = 400,
    STUB_NOT_FOUND = 500,
};

typedef enum StubKind {
    STUB_FREE,
    STUB_MEMORY,
    STUB_STREAM,
    STUB_EVENT,
    STUB_MODULE,
    STUB_CONTEXT,
    STUB_KINDS
} StubKind;

/* params: the addresses of the kernel's parameters, as the launch gave them. */
typedef void (*StubFunction)(void **params, unsigned grid, unsigned block);

/* What a tensor map was made of: the map begins with the address of one. */
typedef struct StubMap {
    int type, interleave, swizzle, promotion, fill;
    uint32_t rank, box[5], steps[5];
    uint64_t address, extents[5], strides[5]; /* strides[0]: not said */
} StubMap;

enum { STUB_FUNCTIONS = 8, STUB_DEVICES = 4, STUB_LOG = 4096 };
typedef struct StubState {
    /* what the test says */
    int devices, version, capability; /* 90 */
    const char *arch;                 /* "gfx942:sramecc+" */
    long fail_at;                     /* this call from now fails: 0 is the next; -1: none */
    int fail_code;
    const char *fail_symbol; /* all calls of this one fail, too; NULL: none */
    struct {
        const char *name;
        StubFunction function;
    } functions[STUB_FUNCTIONS];
    /* what it has seen */
    long calls;
    const char *failed; /* the last call that was made to fail */
    long live[STUB_KINDS];
    bool capturing;         /* streams say that they are being captured */
    long copies_within, copies_between;
    long launches, misuses; /* misuses: handles that are none, calls without a context */
    unsigned grid, block, shared;
    long together; /* cooperative launches */
    long early;    /* launches that may start before the one ahead has ended */
    long clusters; /* launches with a cluster's size, the last one: */
    unsigned cluster;
    bool no_clusters; /* they are refused */
    int fit;       /* blocks on a processor, as the occupancy functions say */
    void *stream;
    int function_shared; /* cuFuncSetAttribute */
    size_t image_bytes;  /* of the text of the last module */
    /* Forgets what was made, gives its memory back: for after a call that undoes has failed. */
    void (*reset)(void);
} StubState;
typedef StubState *(*StubStateGetter)(void);

#define STUB_EXPORT __attribute__((visibility("default")))
STUB_EXPORT StubState *stub_state(void);

#ifdef STUB_IMPLEMENTATION
static StubState stub = {.devices = 2,
                         .version = STUB_VERSION,
                         .capability = 90,
                         .arch = "gfx942:sramecc+:xnack-",
                         .fail_at = -1,
                         .fail_code = 999,
                         .fit = 2};

/* What a handle leads to; memory has one before its bytes. */
typedef struct StubThing {
    StubKind kind;
    int device;
    bool recorded;
    struct StubThing *prev, *next;
} StubThing;
static StubThing stub_things = {.prev = &stub_things, .next = &stub_things};

static void stub_add(StubThing *t, StubKind kind)
{
    t->kind = kind;
    t->prev = &stub_things;
    t->next = stub_things.next;
    t->prev->next = t->next->prev = t;
    stub.live[kind]++;
}

static void stub_remove(StubThing *t)
{
    stub.live[t->kind]--;
    t->kind = STUB_FREE;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    free(t);
}

static void stub_remove_all(void)
{
    while (stub_things.next != &stub_things)
        stub_remove(stub_things.next);
}

static int stub_make(StubKind kind, void **out)
{
    StubThing *t = calloc(1, sizeof *t);
    if (!t)
        return STUB_OUT_OF_MEMORY;
    stub_add(t, kind);
    *out = t;
    return 0;
}

static int stub_misuse(const char *what)
{
    fprintf(stderr, "stub: %s\n", what);
    stub.misuses++;
    return STUB_INVALID_HANDLE;
}

static int stub_is(const void *handle, StubKind kind)
{
    const StubThing *t = handle;
    return t && t->kind == kind ? 0 : stub_misuse("a handle that is none of its kind");
}

static int stub_destroy(void *handle, StubKind kind)
{
    int code = stub_is(handle, kind);
    if (code == 0)
        stub_remove(handle);
    return code;
}

/* The result of the call `symbol`, if it is to fail. */
static int stub_call(const char *symbol)
{
    stub.calls++;
    bool fails = stub.fail_at == 0 || (stub.fail_symbol && strcmp(stub.fail_symbol, symbol) == 0);
    if (stub.fail_at >= 0)
        stub.fail_at--;
    if (!fails)
        return 0;
    stub.failed = symbol;
    return stub.fail_code;
}

/* Every function of the library begins with this. It holds the lock to its end, so threads may
 * call. */
static pthread_mutex_t stub_mutex = PTHREAD_MUTEX_INITIALIZER;
static inline int stub_lock(void)
{
    return pthread_mutex_lock(&stub_mutex);
}
static inline void stub_unlock(const int *locked)
{
    (void)locked;
    pthread_mutex_unlock(&stub_mutex);
}
#define STUB_CALL()                                                                                \
    __attribute__((cleanup(stub_unlock))) const int locked_ = stub_lock();                         \
    int code_ = stub_call(__func__);                                                               \
    if (code_)                                                                                     \
    return code_

/* ---- memory: a header before what the caller gets ---- */

enum { STUB_ALIGNMENT = 256 };
static int stub_mem_alloc(void **out, size_t bytes)
{
    if (bytes == 0)
        return STUB_INVALID_VALUE;
    if (bytes > (size_t)1 << 40)
        return STUB_OUT_OF_MEMORY;
    size_t rounded = (bytes + STUB_ALIGNMENT - 1) / STUB_ALIGNMENT * STUB_ALIGNMENT;
    char *p = aligned_alloc(STUB_ALIGNMENT, STUB_ALIGNMENT + rounded);
    if (!p)
        return STUB_OUT_OF_MEMORY;
    memset(p, 0xAB, STUB_ALIGNMENT + rounded);
    stub_add((StubThing *)(void *)p, STUB_MEMORY);
    *out = p + STUB_ALIGNMENT;
    return 0;
}

static int stub_mem_free(void *address)
{
    return address ? stub_destroy((char *)address - STUB_ALIGNMENT, STUB_MEMORY) : 0;
}

/* ---- modules ---- */

static int stub_module_function(void **out, void *module, const char *name)
{
    int code = stub_is(module, STUB_MODULE);
    for (int i = 0; code == 0 && i < STUB_FUNCTIONS; i++)
        if (stub.functions[i].name && strcmp(stub.functions[i].name, name) == 0) {
            *out = &stub.functions[i];
            return 0;
        }
    return code ? code : STUB_NOT_FOUND;
}

static int stub_launch(void *function, unsigned grid, unsigned block, unsigned shared, void *stream,
                       void **params)
{
    ptrdiff_t i = ((char *)function - (char *)stub.functions) / (ptrdiff_t)sizeof *stub.functions;
    if (i < 0 || i >= STUB_FUNCTIONS)
        return stub_misuse("a launch of no function");
    if (grid == 0 || block == 0 || block > 1024)
        return STUB_INVALID_VALUE;
    stub.launches++;
    stub.grid = grid;
    stub.block = block;
    stub.shared = shared;
    stub.stream = stream;
    if (stub.functions[i].function)
        stub.functions[i].function(params, grid, block);
    return 0;
}

/* ---- streams and events ---- */

static int stub_is_stream(void *stream)
{
    return stream ? stub_is(stream, STUB_STREAM) : 0;
}

static int stub_event_record(void *event, void *stream)
{
    int code = stub_is(event, STUB_EVENT);
    if (code == 0)
        code = stub_is_stream(stream);
    if (code == 0)
        ((StubThing *)event)->recorded = true;
    return code;
}

static int stub_event_elapsed(float *milliseconds, void *from, void *to)
{
    int code = stub_is(from, STUB_EVENT);
    if (code == 0)
        code = stub_is(to, STUB_EVENT);
    if (code == 0 && !(((StubThing *)from)->recorded && ((StubThing *)to)->recorded))
        code = STUB_INVALID_HANDLE;
    *milliseconds = 0.25f;
    return code;
}
#endif
#endif
