/* What debuggers and profilers are told of kernels on the CPU: GDB's JIT interface, with -g, and
 * perf's map, by TILE_PERF. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/include/tile_jit.h"
#include "test/unit/ok.h"

/* As GDB's manual has it. */
typedef struct Entry {
    struct Entry *next, *previous;
    const char *object;
    uint64_t size;
} Entry;
extern struct {
    uint32_t version, action;
    Entry *relevant, *first;
} __jit_debug_descriptor;

static const char SOURCE[] = "kernel scale(const f32 x[N], f32 y[N], const i32 B = 4)\n"
                             "    grid(cdiv(N, B))\n"
                             "{\n"
                             "    i32 i = pid(0) * B;\n"
                             "    y[i +: B] = 2.0 * x[i +: B];\n"
                             "}\n";

static int entries(void)
{
    int n = 0;
    for (const Entry *e = __jit_debug_descriptor.first; e; e = e->next) {
        CHECK(e->previous == NULL || e->previous->next == e);
        n++;
    }
    return n;
}

/* The address of the first section of that name; 0: there is none, or it is nowhere. */
static uint64_t address_of(const Entry *e, const char *name, bool *out_found)
{
    Elf64_Ehdr h;
    Elf64_Shdr names, s;
    *out_found = false;
    if (!CHECK(e && e->size > sizeof h))
        return 0;
    memcpy(&h, e->object, sizeof h);
    memcpy(&names, e->object + h.e_shoff + h.e_shstrndx * sizeof names, sizeof names);
    for (uint32_t i = 0; i < h.e_shnum && !*out_found; i++) {
        memcpy(&s, e->object + h.e_shoff + i * sizeof s, sizeof s);
        *out_found = strcmp(e->object + names.sh_offset + s.sh_name, name) == 0;
    }
    return *out_found ? s.sh_addr : 0;
}

static void load(tile_device *device, bool debug, tile_module **module, tile_kernel **kernel)
{
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    o.debug = debug;
    o.cache = "off";
    OK(tile_module_load_source(device, "scale.tile", SOURCE, sizeof SOURCE - 1, &o, module));
    OK(tile_kernel_get(*module, "scale", NULL, kernel));
    OK(tile_kernel_prepare(*kernel));
}

static void the_list(tile_device *device)
{
    tile_module *plain, *one, *two;
    tile_kernel *kernel;
    bool found;
    int before = entries();
    load(device, false, &plain, &kernel);
    CHECK(entries() == before);
    load(device, true, &one, &kernel);
    int with_one = entries();
    CHECK(with_one > before);
    CHECK(address_of(__jit_debug_descriptor.first, ".text", &found) != 0 && found);
    CHECK(address_of(__jit_debug_descriptor.first, ".debug_line", &found) == 0 && found);
    load(device, true, &two, &kernel);
    CHECK(entries() > with_one);
    tile_module_free(one);
    CHECK(entries() > before && entries() <= with_one);
    tile_module_free(two);
    tile_module_free(plain);
    CHECK(entries() == before && __jit_debug_descriptor.action == 0);
}

static bool map_names(const char *path, const char *name)
{
    char line[512];
    bool found = false;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long address, size;
        char called[256];
        CHECK(sscanf(line, "%llx %llx %255s", &address, &size, called) == 3 && address && size);
        found = found || strncmp(called, name, strlen(name)) == 0;
    }
    if (f)
        fclose(f);
    return found;
}

static void the_map(tile_device *device)
{
    char path[64];
    tile_module *module;
    tile_kernel *kernel;
    snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
    unlink(path);
    unsetenv("TILE_PERF");
    load(device, false, &module, &kernel);
    tile_module_free(module);
    CHECK(access(path, F_OK) != 0);
    setenv("TILE_PERF", "map", 1);
    load(device, false, &module, &kernel);
    CHECK(map_names(path, "scale"));
    tile_module_free(module);
    unlink(path);
    unsetenv("TILE_PERF");
}

int main(void)
{
    tile_device *device;
    OK(tile_device_open("cpu", &device));
    the_list(device);
    the_map(device);
    tile_device_close(device);
    return unit_result();
}
