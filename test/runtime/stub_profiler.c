/* A profiler as the runtime sees one: what NVTX_INJECTION64_PATH names, or ROCTx (STUB_ROCTX).
 * Each call is a line of the file that STUB_RANGES names. STUB_PROFILER: "core" knows no domains,
 * "refuses" does not want to be used. Nothing of the runtime is used here. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STUB_EXPORT __attribute__((visibility("default")))

static void say(const char *what, const char *text)
{
    const char *path = getenv("STUB_RANGES");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f)
        return;
    fprintf(f, "%s%s%s\n", what, *text ? " " : "", text);
    fclose(f);
}

#ifndef STUB_ROCTX /* ---- NVTX ---- */

typedef struct StubEvent {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    uint64_t payload;
    int32_t messageType;
    const char *message;
} StubEvent;
typedef void (*StubFunction)(void);
typedef struct StubCallbacks {
    size_t struct_size;
    int (*GetModuleFunctionTable)(int module, StubFunction ***table, unsigned *size);
} StubCallbacks;
typedef struct StubVersion {
    size_t struct_size;
    uint32_t version, reserved0;
    void (*SetInjectionNvtxVersion)(uint32_t version);
} StubVersion;

static char the_domain;

static void initialize(const void *reserved)
{
    say("initialize", reserved ? "wrong" : "");
}
static void *create(const char *name)
{
    say("domain", name);
    return &the_domain;
}
static int push_in(void *domain, const StubEvent *e)
{
    int fine = domain == &the_domain && e->version == 3 && e->size == 48 && e->messageType == 1;
    say(fine ? "begin" : "wrong", e->message);
    return 0;
}
static int pop_in(void *domain)
{
    say(domain == &the_domain ? "end" : "wrong", "");
    return 0;
}
static int push(const char *message)
{
    say("core begin", message);
    return 0;
}
static int pop(void)
{
    say("core end", "");
    return 0;
}

STUB_EXPORT int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t));
STUB_EXPORT int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t))
{
    const char *mode = getenv("STUB_PROFILER");
    const StubCallbacks *callbacks = get_export(1);
    const StubVersion *version = get_export(3);
    StubFunction **core = NULL, **core2 = NULL;
    unsigned ncore = 0, ncore2 = 0;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks || get_export(2) ||
        !callbacks->GetModuleFunctionTable(1, &core, &ncore) ||
        !callbacks->GetModuleFunctionTable(5, &core2, &ncore2) ||
        callbacks->GetModuleFunctionTable(7, NULL, NULL) || ncore != 16 || ncore2 != 16)
        return say("wrong", "tables"), 0;
    if (!version || version->version != 3)
        return say("wrong", "version"), 0;
    version->SetInjectionNvtxVersion(3);
    *core[9] = (StubFunction)push;
    *core[11] = (StubFunction)pop;
    if (!mode || strcmp(mode, "core") != 0) {
        *core2[4] = (StubFunction)push_in;
        *core2[5] = (StubFunction)pop_in;
        *core2[12] = (StubFunction)create;
        *core2[15] = (StubFunction)initialize;
    }
    return !mode || strcmp(mode, "refuses") != 0;
}

#else /* ---- ROCTx ---- */

STUB_EXPORT int roctxRangePushA(const char *message);
STUB_EXPORT int roctxRangePushA(const char *message)
{
    say("roctx begin", message);
    return 0;
}
STUB_EXPORT int roctxRangePop(void);
STUB_EXPORT int roctxRangePop(void)
{
    say("roctx end", "");
    return 0;
}
#endif
