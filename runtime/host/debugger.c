/* debugger.c: GDB's JIT interface, and perf's map of names.
 *
 * GDB stops in __jit_debug_register_code and reads the list at __jit_debug_descriptor: objects in
 * memory, as the compiler wrote them, whose section table says where each section lies. LLDB knows
 * the same interface. An object is told of only if it has line information (-g): the copy takes
 * memory, and nobody asks for it otherwise.
 *
 * perf reads names from /tmp/perf-PID.map, a line "address size name" for each function. */
#include "runtime/host/debugger.h"
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- GDB's interface: its manual, "JIT Compilation Interface" ---- */

struct jit_code_entry {
    struct jit_code_entry *next_entry, *prev_entry;
    const char *symfile_addr;
    uint64_t symfile_size;
};

struct jit_descriptor {
    uint32_t version;
    uint32_t action_flag; /* 0 nothing, 1 register, 2 unregister */
    struct jit_code_entry *relevant_entry, *first_entry;
};

/* GDB looks them up by these names. LLVM's JIT has them, too: weak, so that both can be linked
 * into one program. */
#define SEEN __attribute__((weak, used, visibility("default")))
void __jit_debug_register_code(void);
extern struct jit_descriptor __jit_debug_descriptor;

SEEN __attribute__((noinline)) void __jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory");
}

SEEN struct jit_descriptor __jit_debug_descriptor = {1, 0, NULL, NULL};

struct tl_debugged {
    struct jit_code_entry entry;
    char object[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void tell(uint32_t action, struct jit_code_entry *entry)
{
    __jit_debug_descriptor.action_flag = action;
    __jit_debug_descriptor.relevant_entry = entry;
    __jit_debug_register_code();
    __jit_debug_descriptor.action_flag = 0;
    __jit_debug_descriptor.relevant_entry = NULL;
}

static void enter(struct jit_code_entry *entry)
{
    pthread_mutex_lock(&lock);
    entry->next_entry = __jit_debug_descriptor.first_entry;
    if (entry->next_entry)
        entry->next_entry->prev_entry = entry;
    __jit_debug_descriptor.first_entry = entry;
    tell(1, entry);
    pthread_mutex_unlock(&lock);
}

void tl_debugger_remove(tl_debugged *debugged)
{
    if (!debugged)
        return;
    struct jit_code_entry *entry = &debugged->entry;
    pthread_mutex_lock(&lock);
    if (entry->prev_entry)
        entry->prev_entry->next_entry = entry->next_entry;
    else
        __jit_debug_descriptor.first_entry = entry->next_entry;
    if (entry->next_entry)
        entry->next_entry->prev_entry = entry->prev_entry;
    tell(2, entry);
    pthread_mutex_unlock(&lock);
    free(debugged);
}

/* ---- the object: elf.c has checked its tables ---- */

static Elf64_Ehdr header(const char *object)
{
    Elf64_Ehdr h;
    memcpy(&h, object, sizeof h);
    return h;
}

static Elf64_Shdr section(const char *object, uint32_t i)
{
    Elf64_Shdr s;
    memcpy(&s, object + header(object).e_shoff + i * sizeof s, sizeof s);
    return s;
}

static bool has_lines(const char *object)
{
    Elf64_Ehdr h = header(object);
    if (h.e_shstrndx >= h.e_shnum)
        return false;
    Elf64_Shdr names = section(object, h.e_shstrndx);
    if (names.sh_type != SHT_STRTAB)
        return false;
    static const char NAME[] = ".debug_line";
    for (uint32_t i = 0; i < h.e_shnum; i++) {
        uint64_t at = section(object, i).sh_name;
        if (names.sh_size >= sizeof NAME && at <= names.sh_size - sizeof NAME &&
            memcmp(object + names.sh_offset + at, NAME, sizeof NAME) == 0)
            return true;
    }
    return false;
}

/* A section that was not loaded is none of the program's. */
static void place_sections(char *object, const uint64_t *address)
{
    Elf64_Ehdr h = header(object);
    for (uint32_t i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s = section(object, i);
        s.sh_addr = address[i];
        if (!address[i])
            s.sh_flags &= ~(uint64_t)SHF_ALLOC;
        memcpy(object + h.e_shoff + i * sizeof s, &s, sizeof s);
    }
}

/* ---- perf's map ---- */

static int open_map(void)
{
    char path[64];
    const char *wanted = secure_getenv("TILE_PERF");
    if (!wanted || strcmp(wanted, "map") != 0)
        return -1;
    snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* What cannot be written is not there: a profile without names is no failure of the program. */
static void put_names(int map, const char *object, const Elf64_Shdr *table, const uint64_t *address,
                      uint32_t nsections)
{
    Elf64_Shdr names = section(object, table->sh_link);
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym s;
        char line[512];
        memcpy(&s, object + table->sh_offset + i * sizeof s, sizeof s);
        if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx >= nsections ||
            !address[s.st_shndx])
            continue;
        int n = snprintf(line, sizeof line, "%" PRIx64 " %" PRIx64 " %s\n",
                         address[s.st_shndx] + s.st_value, (uint64_t)s.st_size,
                         object + names.sh_offset + s.st_name);
        if (n < (int)sizeof line && write(map, line, (size_t)n) != n)
            return;
    }
}

static void name_functions(const char *object, const uint64_t *address)
{
    uint32_t n = header(object).e_shnum;
    int map = open_map();
    if (map < 0)
        return;
    uint32_t i = 0;
    while (section(object, i).sh_type != SHT_SYMTAB) /* elf.c has found one */
        i++;
    Elf64_Shdr table = section(object, i);
    put_names(map, object, &table, address, n);
    close(map);
}

tl_debugged *tl_debugger_add(const void *object, size_t size, const uint64_t *address)
{
    name_functions(object, address);
    tl_debugged *d = has_lines(object) ? calloc(1, sizeof *d + size) : NULL;
    if (!d)
        return NULL;
    memcpy(d->object, object, size);
    place_sections(d->object, address);
    d->entry.symfile_addr = d->object;
    d->entry.symfile_size = size;
    enter(&d->entry);
    return d;
}
