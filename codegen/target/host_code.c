/* Objects for host CPUs: the names of the features that they use, and the proof that they have no
 * undefined symbols. */
#include "codegen/target/host_code.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "ir/support/guard.h"

/* ---- features ---- */

static const char *architecture(const char *triple)
{
    return strncmp(triple, "aarch64", 7) ? "x86-64" : "aarch64";
}

const char *tl_host_features(TlArena *arena, const TlTarget *cpu)
{
    TlSbuf s;
    tl_sbuf_init(&s, arena);
    bool native = !*cpu->triple;
    const char *triple = native ? tl_llvm_host_triple(arena) : cpu->triple;
    tl_sbuf_putf(&s, "%s", architecture(triple));
    for (const char *p = native ? tl_llvm_host_features(arena) : cpu->features; *p;) {
        size_t n = strcspn(p, ",");
        tl_sbuf_putf(&s, " %.*s", (int)n - 1, p + 1); /* without its '+' */
        p += n + (p[n] == ',');
    }
    return s.text;
}

/* ---- no name is undefined ---- */

typedef struct Object {
    const char *data;
    size_t size;
    Elf64_Ehdr header;
} Object;

static Elf64_Shdr section(const Object *o, uint32_t i)
{
    Elf64_Shdr s;
    TL_ASSERT(i < o->header.e_shnum && o->header.e_shoff + (i + 1) * sizeof s <= o->size,
              "an object without section %u", i);
    memcpy(&s, o->data + o->header.e_shoff + i * sizeof s, sizeof s);
    TL_ASSERT(s.sh_type == SHT_NOBITS || s.sh_offset + s.sh_size <= o->size,
              "section %u of an object lies outside", i);
    return s;
}

/* Appends the undefined names of a symbol table that do not begin with `known`. */
static void list_undefined(const Object *o, const Elf64_Shdr *table, const char *known, char *names,
                           size_t size)
{
    Elf64_Shdr strings = section(o, table->sh_link);
    for (uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= table->sh_size;
         at += sizeof(Elf64_Sym)) {
        Elf64_Sym s;
        memcpy(&s, o->data + table->sh_offset + at, sizeof s);
        TL_ASSERT(s.st_name < strings.sh_size, "a symbol's name lies outside");
        const char *name = o->data + strings.sh_offset + s.st_name;
        size_t used = strlen(names);
        if (s.st_shndx == SHN_UNDEF && !(known && !strncmp(name, known, strlen(known))))
            snprintf(names + used, size - used, "%s%s", used ? ", " : "", name);
    }
}

void tl_host_check_closed(const void *object, size_t size, const char *known)
{
    char names[300] = "";
    Object o = {.data = object, .size = size};
    TL_ASSERT(size >= sizeof o.header, "an object of %zu bytes", size);
    memcpy(&o.header, object, sizeof o.header);
    for (uint32_t i = 0; i < o.header.e_shnum; i++) {
        Elf64_Shdr s = section(&o, i);
        if (s.sh_type == SHT_SYMTAB)
            list_undefined(&o, &s, known, names, sizeof names);
    }
    if (*names)
        tl_fault(TL_FAULT_INTERNAL, "undefined in the kernels' object: %s", names);
}

/* ---- data in an object ---- */

enum { END_BYTES = 64 };

void *tl_embed(const char *name, const char *triple, const void *data, size_t size,
               TlArena *arena, size_t *out_size)
{
    TL_ASSERT(size > 0 && data, "an empty image");
    TlLlvm l;
    const char *symbol = tl_format(arena, "tile_image_%s", name);
    char *padded = tl_alloc(arena, size + END_BYTES);
    memcpy(padded, data, size);
    tl_llvm_open(&l, arena, symbol, triple, "generic", "", 0);
    LLVMValueRef bytes =
        LLVMConstStringInContext(l.context, padded, (unsigned)(size + END_BYTES), 1);
    LLVMValueRef global = LLVMAddGlobal(l.module, LLVMTypeOf(bytes), symbol);
    LLVMSetInitializer(global, bytes);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetAlignment(global, 64);
    LLVMValueRef bytes_of = LLVMConstInt(LLVMInt64TypeInContext(l.context), size, 0);
    LLVMValueRef length = LLVMAddGlobal(l.module, LLVMTypeOf(bytes_of),
                                        tl_format(arena, "tile_size_%s", name));
    LLVMSetInitializer(length, bytes_of);
    LLVMSetGlobalConstant(length, 1);
    void *object = tl_llvm_emit(&l, arena, true, out_size);
    tl_llvm_close(&l);
    return object;
}
