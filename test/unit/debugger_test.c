/* What debuggers and profilers are told of kernels on the CPU: GDB's JIT interface, with -g, perf's
 * map and its dump, by TILE_PERF, and the lines of an object's code, from a damaged table, too. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/host/dwarf_lines.h"
#include "runtime/host/object.h"
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

/* ---- the dump: perf's format jitdump ---- */

typedef struct Seen {
    int codes, lines, of_line_5;
    bool is_whole;
} Seen;

static uint64_t word(const unsigned char *at, int bytes)
{
    uint64_t v = 0;
    memcpy(&v, at, (size_t)bytes);
    return v;
}

static void a_record(const unsigned char *r, Seen *seen)
{
    if (word(r, 4) == 2) {
        const unsigned char *e = r + 32;
        for (uint64_t n = word(r + 24, 8); n > 0; n--) {
            const char *file = (const char *)e + 16;
            size_t length = strlen(file);
            CHECK(length >= 10 && strcmp(file + length - 10, "scale.tile") == 0);
            seen->lines++;
            seen->of_line_5 += word(e + 8, 4) == 5;
            e += 16 + length + 1;
        }
        CHECK(e == r + word(r + 4, 4));
    } else if (CHECK_INT(word(r, 4), 0)) {
        const char *name = (const char *)r + 56;
        uint64_t bytes = word(r + 40, 8);
        CHECK(word(r + 16, 4) == (uint64_t)getpid() && strncmp(name, "scale", 5) == 0);
        CHECK_INT(word(r + 4, 4), 56 + strlen(name) + 1 + bytes);
        CHECK(memcmp(name + strlen(name) + 1, (const void *)(uintptr_t)word(r + 32, 8), bytes) ==
              0);
        seen->codes++;
    }
}

static Seen read_dump(const char *path)
{
    static unsigned char data[1 << 20];
    Seen seen = {0};
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(data, 1, sizeof data, f) : 0, at = 40;
    if (f)
        fclose(f);
    if (!CHECK(n > 40 && word(data, 4) == 0x4a695444 && word(data + 8, 4) == 40))
        return seen;
    while (at + 16 <= n && word(data + at + 4, 4) >= 16 && at + word(data + at + 4, 4) <= n) {
        a_record(data + at, &seen);
        at += word(data + at + 4, 4);
    }
    seen.is_whole = at == n;
    return seen;
}

static void the_dump(tile_device *device)
{
    char path[64];
    tile_module *plain, *module;
    tile_kernel *kernel;
    snprintf(path, sizeof path, "/tmp/jit-%ld.dump", (long)getpid());
    setenv("TILE_PERF", "dump", 1);
    load(device, false, &plain, &kernel);
    Seen seen = read_dump(path);
    CHECK(seen.is_whole && seen.codes > 0 && seen.lines == 0);
    load(device, true, &module, &kernel);
    Seen with = read_dump(path);
    CHECK(with.is_whole && with.codes > seen.codes && with.of_line_5 > 0);
    tile_module_free(plain);
    tile_module_free(module);
    unlink(path);
    unsetenv("TILE_PERF");
}

/* ---- lines ---- */

static uint32_t lines_of(const char *object, const uint64_t *address, uint32_t *out_of_line_5)
{
    tl_line *lines;
    uint32_t n = tl_dwarf_lines(object, address, &lines);
    *out_of_line_5 = 0;
    for (uint32_t i = 0; i < n; i++)
        *out_of_line_5 += lines[i].line == 5 && strcmp(lines[i].file, "scale.tile") == 0;
    free(lines);
    return n;
}

/* Each byte of the table as something else, and the table cut off at each: the rows may be wrong,
 * but nothing outside of the object is read (ASan says). */
static void damaged(char *object, const uint64_t *address, uint32_t table)
{
    Elf64_Shdr s = tl_object_section(object, table);
    char *header = object + tl_object_header(object).e_shoff + table * sizeof s, was;
    uint32_t of_line_5;
    for (uint64_t i = 0; i < s.sh_size; i++) {
        char *at = object + s.sh_offset + i;
        was = *at;
        for (int value = 0; value < 256; value++) {
            *at = (char)value;
            lines_of(object, address, &of_line_5);
        }
        *at = was;
        Elf64_Shdr cut = s;
        cut.sh_size = i;
        memcpy(header, &cut, sizeof cut);
        CHECK_INT(lines_of(object, address, &of_line_5), 0);
        memcpy(header, &s, sizeof s);
    }
}

static void the_lines(tile_device *device)
{
    tile_module *module;
    tile_kernel *kernel;
    load(device, true, &module, &kernel);
    const Entry *e = __jit_debug_descriptor.first;
    char *object = malloc(e->size);
    uint32_t n = CHECK(object != NULL) ? tl_object_header(e->object).e_shnum : 0, of_line_5;
    uint64_t *address = calloc(n + 1, sizeof *address);
    if (CHECK(n > 0 && address != NULL)) {
        memcpy(object, e->object, e->size);
        for (uint32_t i = 0; i < n; i++)
            address[i] = tl_object_section(object, i).sh_addr;
        CHECK(lines_of(object, address, &of_line_5) > of_line_5 && of_line_5 > 0);
        damaged(object, address, tl_object_find(object, ".debug_line"));
        CHECK(lines_of(object, address, &of_line_5) > of_line_5 && of_line_5 > 0);
    }
    free(object);
    free(address);
    tile_module_free(module);
}

int main(void)
{
    tile_device *device;
    OK(tile_device_open("cpu", &device));
    the_list(device);
    the_map(device);
    the_dump(device);
    the_lines(device);
    tile_device_close(device);
    return unit_result();
}
