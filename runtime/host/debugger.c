/* debugger.c: GDB's JIT interface.
 *
 * GDB stops in __jit_debug_register_code and reads the list at __jit_debug_descriptor: objects in
 * memory, as the compiler wrote them, whose section table says where each section lies. LLDB knows
 * the same interface. An object is told of only if it has line information (-g): the copy takes
 * memory, and nobody asks for it otherwise. */
#include "runtime/host/debugger.h"
#include "runtime/host/object.h"
#include <pthread.h>
#include <stdlib.h>

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

/* ---- the object ---- */

/* A section that was not loaded is none of the program's. */
static void place_sections(char *object, const uint64_t *address)
{
    Elf64_Ehdr h = tl_object_header(object);
    for (uint32_t i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s = tl_object_section(object, i);
        s.sh_addr = address[i];
        if (!address[i])
            s.sh_flags &= ~(uint64_t)SHF_ALLOC;
        memcpy(object + h.e_shoff + i * sizeof s, &s, sizeof s);
    }
}

tl_debugged *tl_debugger_add(const void *object, size_t size, const uint64_t *address)
{
    tl_debugged *d = tl_object_find(object, ".debug_line") ? calloc(1, sizeof *d + size) : NULL;
    if (!d)
        return NULL;
    memcpy(d->object, object, size);
    place_sections(d->object, address);
    d->entry.symfile_addr = d->object;
    d->entry.symfile_size = size;
    enter(&d->entry);
    return d;
}
