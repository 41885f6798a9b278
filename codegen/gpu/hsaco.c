/* Our own linker of AMDGPU code objects: turns one relocatable object (ET_REL) into a shared
 * object (ET_DYN), as the loaders of HSA and HIP expect it, in memory and without lld.
 *
 *  1. Sections are copied in the order notes, symbols, constants | code | data, zeroed data |
 *     debug information. Each bar begins a new segment: in the file segments follow each other, in
 *     memory each lies a page further, so that no page has two protections.
 *  2. Global symbols go to .dynsym with a .hash of one bucket, and again to .symtab.
 *  3. Relocations are applied once every address is known; none is left for the loader. All our
 *     globals are internal, so nothing asks for a GOT.
 *
 * test/codegen/amdgcn compares it with ld.lld. */
#include "codegen/gpu/hsaco.h"

#include <elf.h>
#include <string.h>

#include "ir/support/guard.h"

enum {
    MACHINE_AMDGPU = 224,
    R_ABS32_LO = 1,
    R_ABS32_HI = 2,
    R_ABS64 = 3,
    R_REL32 = 4,
    R_REL64 = 5,
    R_ABS32 = 6,
    R_REL32_LO = 10,
    R_REL32_HI = 11,
    PAGE = 0x1000,
    NPHDR = 6
};

typedef enum Group { G_NOTE, G_CONST, G_CODE, G_DATA, G_ZERO, G_DEBUG, G_NONE } Group;

typedef struct Link {
    TlArena *arena;
    const char *in;
    size_t nin;
    const Elf64_Shdr *sections;
    uint32_t nsections;
    const char *section_names;
    const Elf64_Sym *symbols;
    uint32_t nsymbols;
    const char *symbol_names;

    char *out;
    size_t len, cap;
    uint64_t *address, *offset; /* of each input section in memory and in the file; */
    uint32_t *number;           /* its number in the output; 0: not there */
    TL_VEC(Elf64_Shdr) headers;
    TlSbuf names, strings; /* of sections, of symbols */
    Elf64_Sym *globals;
    uint32_t nglobals;
} Link;

/* ---- reading ---- */

static const void *slice(const Link *k, uint64_t offset, uint64_t size)
{
    TL_ASSERT(offset <= k->nin && size <= k->nin - offset, "code object ends early");
    return k->in + offset;
}

static void read_object(Link *k)
{
    const Elf64_Ehdr *h = slice(k, 0, sizeof *h);
    TL_ASSERT(!memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
                  h->e_type == ET_REL && h->e_machine == MACHINE_AMDGPU,
              "not a relocatable AMDGPU object");
    k->nsections = h->e_shnum;
    k->sections = slice(k, h->e_shoff, (uint64_t)h->e_shnum * sizeof *k->sections);
    const Elf64_Shdr *names = &k->sections[h->e_shstrndx];
    k->section_names = slice(k, names->sh_offset, names->sh_size);
    for (uint32_t i = 1; i < k->nsections; i++) {
        const Elf64_Shdr *s = &k->sections[i];
        if (s->sh_type != SHT_SYMTAB)
            continue;
        k->symbols = slice(k, s->sh_offset, s->sh_size);
        k->nsymbols = (uint32_t)(s->sh_size / sizeof *k->symbols);
        const Elf64_Shdr *strings = &k->sections[s->sh_link];
        k->symbol_names = slice(k, strings->sh_offset, strings->sh_size);
    }
    TL_ASSERT(k->symbols, "code object without symbols");
}

static const char *name_of(const Link *k, const Elf64_Shdr *s)
{
    return k->section_names + s->sh_name;
}

static Group group_of(const Link *k, const Elf64_Shdr *s)
{
    if (s->sh_size == 0)
        return G_NONE;
    if (!(s->sh_flags & SHF_ALLOC))
        return s->sh_type == SHT_PROGBITS && !strncmp(name_of(k, s), ".debug", 6) ? G_DEBUG
                                                                                  : G_NONE;
    if (s->sh_type == SHT_NOTE)
        return G_NOTE;
    if (s->sh_type == SHT_NOBITS)
        return G_ZERO;
    if (s->sh_type != SHT_PROGBITS)
        return G_NONE;
    return s->sh_flags & SHF_EXECINSTR ? G_CODE : s->sh_flags & SHF_WRITE ? G_DATA : G_CONST;
}

/* ---- writing ---- */

static size_t put(Link *k, const void *data, size_t size, size_t align)
{
    size_t at = (k->len + align - 1) / align * align;
    if (at + size > k->cap) {
        size_t cap = 2 * (at + size) + 4096;
        k->out = tl_grow(k->arena, k->out, k->len, cap);
        k->cap = cap;
    }
    if (data)
        memcpy(k->out + at, data, size);
    k->len = at + size;
    return at;
}

static uint32_t add_header(Link *k, const char *name, Elf64_Shdr h)
{
    h.sh_name = (uint32_t)k->names.len;
    tl_sbuf_put(&k->names, name, strlen(name) + 1);
    tl_vec_push(k->arena, &k->headers, h);
    return k->headers.len - 1;
}

/* A section of our own; `delta`: its address less its offset. */
static uint32_t add_table(Link *k, const char *name, uint32_t type, uint64_t flags, uint64_t delta,
                          const void *data, size_t size, uint64_t entry)
{
    size_t at = put(k, data, size, 8);
    return add_header(k, name,
                      (Elf64_Shdr){.sh_type = type,
                                   .sh_flags = flags,
                                   .sh_addr = flags & SHF_ALLOC ? at + delta : 0,
                                   .sh_offset = at,
                                   .sh_size = size,
                                   .sh_addralign = type == SHT_STRTAB ? 1 : 8,
                                   .sh_entsize = entry});
}

static void copy_group(Link *k, Group group, uint64_t delta)
{
    for (uint32_t i = 1; i < k->nsections; i++) {
        const Elf64_Shdr *s = &k->sections[i];
        if (group_of(k, s) != group)
            continue;
        uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
        k->offset[i] = put(k, slice(k, s->sh_offset, s->sh_size), s->sh_size, align);
        k->address[i] = group == G_DEBUG ? 0 : k->offset[i] + delta;
        Elf64_Shdr h = *s;
        h.sh_addr = k->address[i];
        h.sh_offset = k->offset[i];
        h.sh_link = h.sh_info = 0;
        k->number[i] = add_header(k, name_of(k, s), h);
    }
}

/* Zeroed data has addresses after `end` and no bytes in the file; returns its size. */
static uint64_t lay_out_zeroed(Link *k, uint64_t end)
{
    uint64_t at = end;
    for (uint32_t i = 1; i < k->nsections; i++) {
        const Elf64_Shdr *s = &k->sections[i];
        if (group_of(k, s) != G_ZERO)
            continue;
        uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
        k->address[i] = at = (at + align - 1) / align * align;
        at += s->sh_size;
        Elf64_Shdr h = *s;
        h.sh_addr = k->address[i];
        h.sh_offset = k->len;
        k->number[i] = add_header(k, name_of(k, s), h);
    }
    return at - end;
}

/* ---- symbols ---- */

static bool is_exported(const Elf64_Sym *s)
{
    return ELF64_ST_BIND(s->st_info) != STB_LOCAL && ELF64_ST_VISIBILITY(s->st_other) != STV_HIDDEN;
}

/* Collects the globals; entry 0 is empty. Their sections are set later. */
static void collect_globals(Link *k)
{
    k->globals = TL_NEW_ARRAY(k->arena, Elf64_Sym, k->nsymbols + 1);
    k->nglobals = 1;
    tl_sbuf_put(&k->strings, "", 1);
    for (uint32_t i = 1; i < k->nsymbols; i++) {
        const Elf64_Sym *s = &k->symbols[i];
        if (!is_exported(s))
            continue;
        const char *name = k->symbol_names + s->st_name;
        TL_ASSERT(s->st_shndx != SHN_UNDEF, "'%s' is undefined in a code object", name);
        k->globals[k->nglobals] = *s;
        k->globals[k->nglobals++].st_name = (uint32_t)k->strings.len;
        tl_sbuf_put(&k->strings, name, strlen(name) + 1);
    }
}

/* One bucket: a chain through all symbols. Kernels are few. */
static uint32_t *hash_table(Link *k, size_t *out_words)
{
    uint32_t *h = TL_NEW_ARRAY(k->arena, uint32_t, k->nglobals + 3);
    h[0] = 1;
    h[1] = k->nglobals;
    for (uint32_t i = 1; i < k->nglobals; i++) {
        h[3 + i] = h[2];
        h[2] = i;
    }
    *out_words = k->nglobals + 3;
    return h;
}

static void set_globals(Link *k)
{
    for (uint32_t i = 1; i < k->nglobals; i++) {
        Elf64_Sym *s = &k->globals[i];
        if (s->st_shndx >= SHN_LORESERVE)
            continue;
        s->st_value += k->address[s->st_shndx];
        s->st_shndx = (uint16_t)k->number[s->st_shndx];
    }
}

/* ---- relocations ---- */

static void relocate(Link *k, uint32_t section, const Elf64_Rela *r)
{
    const Elf64_Sym *s = &k->symbols[ELF64_R_SYM(r->r_info)];
    bool absolute = s->st_shndx == SHN_ABS, debug = !(k->sections[section].sh_flags & SHF_ALLOC);
    TL_ASSERT(absolute || s->st_shndx < k->nsections, "relocation against symbol of section %u",
              s->st_shndx);
    uint64_t at = k->address[section] + r->r_offset,
             value = s->st_value + (absolute ? 0 : k->address[s->st_shndx]) + (uint64_t)r->r_addend;
    uint32_t type = ELF64_R_TYPE(r->r_info), bytes = 4;
    switch (type) {
    case R_REL64: bytes = 8; /* fall through */
    case R_REL32:
    case R_REL32_LO: value -= at; break;
    case R_REL32_HI: value = (value - at) >> 32; break;
    case R_ABS64: bytes = 8; /* fall through */
    case R_ABS32:
    case R_ABS32_LO:
    case R_ABS32_HI:
        TL_ASSERT(absolute || debug, "an address in a code object's section %u", section);
        value = type == R_ABS32_HI ? value >> 32 : value;
        break;
    default: TL_UNREACHABLE("relocation of type %u in a code object", type);
    }
    TL_ASSERT(r->r_offset + bytes <= k->sections[section].sh_size, "relocation outside");
    memcpy(k->out + k->offset[section] + r->r_offset, &value, bytes);
}

static void relocate_all(Link *k)
{
    for (uint32_t i = 1; i < k->nsections; i++) {
        const Elf64_Shdr *s = &k->sections[i];
        if (s->sh_type != SHT_RELA || !k->number[s->sh_info])
            continue;
        const Elf64_Rela *rows = slice(k, s->sh_offset, s->sh_size);
        for (uint64_t n = 0; n < s->sh_size / sizeof *rows; n++)
            relocate(k, s->sh_info, &rows[n]);
    }
}

/* ---- the whole ---- */

/* A loaded segment of the file's bytes [begin, end). */
static Elf64_Phdr segment(uint32_t type, uint32_t flags, uint64_t begin, uint64_t end,
                          uint64_t delta, uint64_t align)
{
    return (Elf64_Phdr){.p_type = type,
                        .p_flags = flags,
                        .p_offset = begin,
                        .p_vaddr = begin + delta,
                        .p_paddr = begin + delta,
                        .p_filesz = end - begin,
                        .p_memsz = end - begin,
                        .p_align = align};
}

static void write_headers(Link *k, const Elf64_Phdr *segments)
{
    tl_sbuf_put(&k->names, ".shstrtab", 10);
    Elf64_Shdr names = {.sh_name = (uint32_t)k->names.len - 10,
                        .sh_type = SHT_STRTAB,
                        .sh_offset = put(k, k->names.text, k->names.len, 1),
                        .sh_size = k->names.len,
                        .sh_addralign = 1};
    tl_vec_push(k->arena, &k->headers, names);
    Elf64_Ehdr h;
    memcpy(&h, k->in, sizeof h); /* keeps the machine, its flags and the ABI's version */
    h.e_type = ET_DYN;
    h.e_phoff = sizeof h;
    h.e_phnum = NPHDR;
    h.e_phentsize = sizeof *segments;
    h.e_shoff = put(k, k->headers.data, sizeof *k->headers.data * k->headers.len, 8);
    h.e_shnum = (uint16_t)k->headers.len;
    h.e_shstrndx = (uint16_t)(k->headers.len - 1);
    memcpy(k->out, &h, sizeof h);
    memcpy(k->out + sizeof h, segments, NPHDR * sizeof *segments);
}

static void link_object(Link *k)
{
    const uint64_t code_delta = PAGE, data_delta = 2 * PAGE;
    Elf64_Phdr ph[NPHDR];
    put(k, NULL, sizeof(Elf64_Ehdr) + sizeof ph, 8);
    ph[0] = segment(PT_PHDR, PF_R, sizeof(Elf64_Ehdr), k->len, 0, 8);
    size_t begin = k->len, nwords;
    copy_group(k, G_NOTE, 0);
    ph[5] = segment(PT_NOTE, PF_R, (begin + 3) / 4 * 4, k->len, 0, 4);
    collect_globals(k);
    size_t nsymtab = sizeof *k->globals * k->nglobals;
    uint32_t *words = hash_table(k, &nwords);
    uint32_t symtab = add_table(k, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, k->globals, nsymtab,
                                sizeof *k->globals),
             hash = add_table(k, ".hash", SHT_HASH, SHF_ALLOC, 0, words, 4 * nwords, 4),
             strtab = add_table(k, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, k->strings.text,
                                k->strings.len, 0);
    k->headers.data[symtab].sh_link = strtab;
    k->headers.data[symtab].sh_info = 1;
    k->headers.data[hash].sh_link = symtab;
    copy_group(k, G_CONST, 0);
    ph[1] = segment(PT_LOAD, PF_R, 0, k->len, 0, PAGE);

    begin = put(k, NULL, 0, 256);
    copy_group(k, G_CODE, code_delta);
    ph[2] = segment(PT_LOAD, PF_R | PF_X, begin, k->len, code_delta, PAGE);

    begin = put(k, NULL, 0, 64);
    copy_group(k, G_DATA, data_delta);
    const Elf64_Shdr *t = k->headers.data;
    Elf64_Dyn dynamic[] = {{DT_SYMTAB, {t[symtab].sh_addr}}, {DT_SYMENT, {sizeof *k->globals}},
                           {DT_STRTAB, {t[strtab].sh_addr}}, {DT_STRSZ, {k->strings.len}},
                           {DT_HASH, {t[hash].sh_addr}},     {DT_NULL, {0}}};
    uint32_t dyn = add_table(k, ".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, data_delta, dynamic,
                             sizeof dynamic, sizeof *dynamic);
    k->headers.data[dyn].sh_link = strtab;
    ph[3] = segment(PT_LOAD, PF_R | PF_W, begin, k->len, data_delta, PAGE);
    ph[4] = segment(PT_DYNAMIC, PF_R | PF_W, k->headers.data[dyn].sh_offset, k->len, data_delta, 8);
    ph[3].p_memsz += lay_out_zeroed(k, k->len + data_delta);

    copy_group(k, G_DEBUG, 0);
    set_globals(k);
    memcpy(k->out + k->headers.data[symtab].sh_offset, k->globals, nsymtab);
    relocate_all(k);
    uint32_t again =
        add_table(k, ".symtab", SHT_SYMTAB, 0, 0, k->globals, nsymtab, sizeof *k->globals);
    k->headers.data[again].sh_info = 1;
    k->headers.data[again].sh_link =
        add_table(k, ".strtab", SHT_STRTAB, 0, 0, k->strings.text, k->strings.len, 0);
    write_headers(k, ph);
}

void *tl_hsaco_link(TlArena *arena, const void *object, size_t size, size_t *out_size)
{
    TL_ASSERT(object && size > 0, "an empty code object");
    Link k = {.arena = arena, .in = object, .nin = size};
    tl_sbuf_init(&k.names, arena);
    tl_sbuf_init(&k.strings, arena);
    read_object(&k);
    k.address = TL_NEW_ARRAY(arena, uint64_t, k.nsections);
    k.offset = TL_NEW_ARRAY(arena, uint64_t, k.nsections);
    k.number = TL_NEW_ARRAY(arena, uint32_t, k.nsections);
    add_header(&k, "", (Elf64_Shdr){.sh_type = SHT_NULL});
    link_object(&k);
    *out_size = k.len;
    return k.out;
}
