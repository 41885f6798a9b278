/* elf.c: puts a relocatable object (what the compiler's back end writes) into memory, ready to run.
 *
 *  1. the header, the section table and the symbol table are checked; everything after works on
 *     copies or on ranges known to lie inside the object, read with memcpy as nothing need be
 *     aligned
 *  2. allocated sections are laid out in one mapping, in three groups of pages: code, constants,
 *     data. A table of addresses (GOT) for relocations that ask for one ends the constants. Stubs,
 *     one per undefined function that the caller knows, end the code: a call reaches 2 GiB
 *     (aarch64: 128 MiB), the function may be anywhere
 *  3. contents are copied, relocations applied, then the groups get their protection: never
 *     writable and executable
 *
 * An undefined symbol that the caller's table does not have is an error: there is no dynamic
 * linking. Native kernels are closed; the emulator's call its leaves. Unwind tables are left
 * out. Debuggers (debugger.c) and profilers (profiler.c) are told. */
#include "runtime/host/elf.h"
#include "runtime/host/debugger.h"
#include "runtime/host/profiler.h"
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef R_X86_64_GOTPCRELX
enum { R_X86_64_GOTPCRELX = 41, R_X86_64_REX_GOTPCRELX = 42 };
#endif

enum { STUB_BYTES = 16 };
typedef enum group { GROUP_CODE, GROUP_CONST, GROUP_DATA, GROUPS } group;

struct tl_elf {
    char *base;
    size_t size;
    tl_debugged *debugged;
};

typedef struct loader {
    const char *object;
    size_t size;
    int machine;
    Elf64_Shdr *sections;
    uint32_t nsections;
    Elf64_Sym *symbols;
    uint32_t nsymbols;
    const char *strings; /* of the symbols; strings_size bytes, the last one 0 */
    uint64_t strings_size;
    uint64_t *offset; /* of each section in the mapping; NOWHERE when not loaded */
    uint32_t *got;   /* of each symbol: 1 + its entry in the GOT; 0 = none */
    uint32_t ngot;
    const tl_elf_symbol *known;
    size_t nknown;
    uint32_t *stub; /* of each symbol: 1 + its stub; 0 = none */
    uint32_t nstubs;
    uint64_t stub_offset;
    uint64_t got_offset, begin[GROUPS + 1];
    char *base;
} loader;

#define NOWHERE  UINT64_MAX
#define BAD(...) tl_fail(TILE_BAD_IMAGE, "kernel object: " __VA_ARGS__)

static bool inside(const loader *l, uint64_t offset, uint64_t bytes)
{
    return offset <= l->size && bytes <= l->size - offset;
}

/* ---- 1: tables ---- */

static tile_status read_header(loader *l, Elf64_Ehdr *h)
{
    if (l->size < sizeof *h)
        return BAD("it is too short");
    memcpy(h, l->object, sizeof *h);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_ident[EI_DATA] != ELFDATA2LSB)
        return BAD("not a little-endian 64-bit ELF file");
    if (h->e_type != ET_REL)
        return BAD("not a relocatable file");
    if (h->e_machine != l->machine)
        return BAD("made for machine %d, expected %d", h->e_machine, l->machine);
    if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0)
        return BAD("no section table");
    if (!inside(l, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
        return BAD("the section table lies outside");
    return TILE_OK;
}

static tile_status out_of_memory(void)
{
    return tl_fail(TILE_NO_MEMORY, "out of memory for a kernel object");
}

static tile_status read_sections(loader *l)
{
    Elf64_Ehdr h;
    tile_status status = read_header(l, &h);
    if (status != TILE_OK)
        return status;
    l->nsections = h.e_shnum;
    l->sections = calloc(l->nsections, sizeof *l->sections);
    l->offset = calloc(l->nsections, sizeof *l->offset);
    if (!l->sections || !l->offset)
        return out_of_memory();
    memcpy(l->sections, l->object + h.e_shoff, l->nsections * sizeof *l->sections);
    for (uint32_t i = 0; i < l->nsections; i++) {
        const Elf64_Shdr *s = &l->sections[i];
        l->offset[i] = NOWHERE;
        if (s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS &&
            !inside(l, s->sh_offset, s->sh_size))
            return BAD("section %u lies outside", i);
        if (s->sh_addralign & (s->sh_addralign - 1) || s->sh_addralign > 65536)
            return BAD("section %u has a strange alignment", i);
        if (s->sh_size > UINT32_MAX)
            return BAD("section %u is too large", i);
    }
    return TILE_OK;
}

static tile_status read_symbols(loader *l)
{
    uint32_t i = 0;
    while (i < l->nsections && l->sections[i].sh_type != SHT_SYMTAB)
        i++;
    if (i == l->nsections)
        return BAD("no symbol table");
    const Elf64_Shdr *table = &l->sections[i];
    if (table->sh_link >= l->nsections || l->sections[table->sh_link].sh_type != SHT_STRTAB)
        return BAD("the symbols have no names");
    const Elf64_Shdr *names = &l->sections[table->sh_link];
    l->strings = l->object + names->sh_offset;
    l->strings_size = names->sh_size;
    if (l->strings_size == 0 || l->strings[l->strings_size - 1] != 0)
        return BAD("the symbols' names do not end");
    l->nsymbols = (uint32_t)(table->sh_size / sizeof(Elf64_Sym));
    l->symbols = calloc(l->nsymbols + 1, sizeof *l->symbols);
    l->got = calloc(l->nsymbols + 1, sizeof *l->got);
    l->stub = calloc(l->nsymbols + 1, sizeof *l->stub);
    if (!l->symbols || !l->got || !l->stub)
        return out_of_memory();
    if (l->nsymbols)
        memcpy(l->symbols, l->object + table->sh_offset, l->nsymbols * sizeof *l->symbols);
    for (i = 0; i < l->nsymbols; i++)
        if (l->symbols[i].st_name >= l->strings_size)
            return BAD("a symbol's name lies outside");
    return TILE_OK;
}

/* ---- relocations, as a sequence ---- */

static bool is_relocation_table(const loader *l, uint32_t i)
{
    const Elf64_Shdr *s = &l->sections[i];
    return (s->sh_type == SHT_RELA || s->sh_type == SHT_REL) && s->sh_info < l->nsections &&
           l->offset[s->sh_info] != NOWHERE;
}

static Elf64_Rela relocation(const loader *l, const Elf64_Shdr *table, uint64_t i)
{
    Elf64_Rela r = {0};
    TL_INVARIANT_OR(r, i < table->sh_size / sizeof r, "relocation %llu", (unsigned long long)i);
    memcpy(&r, l->object + table->sh_offset + i * sizeof r, sizeof r);
    return r;
}

static bool wants_got(int machine, uint32_t type)
{
    if (machine == TL_ELF_AARCH64)
        return type == R_AARCH64_ADR_GOT_PAGE || type == R_AARCH64_LD64_GOT_LO12_NC;
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX ||
           type == R_X86_64_REX_GOTPCRELX;
}

/* ---- 2: layout ---- */

static bool is_loaded(const Elf64_Shdr *s)
{
    return (s->sh_flags & SHF_ALLOC) && s->sh_size > 0 && s->sh_type != SHT_NOTE;
}

static group group_of(const Elf64_Shdr *s)
{
    if (s->sh_flags & SHF_EXECINSTR)
        return GROUP_CODE;
    return s->sh_flags & SHF_WRITE ? GROUP_DATA : GROUP_CONST;
}

static const char *section_name(const loader *l, const Elf64_Shdr *s)
{
    Elf64_Ehdr h;
    memcpy(&h, l->object, sizeof h);
    if (h.e_shstrndx >= l->nsections || l->sections[h.e_shstrndx].sh_type != SHT_STRTAB)
        return "";
    const Elf64_Shdr *names = &l->sections[h.e_shstrndx];
    if (s->sh_name >= names->sh_size || l->object[names->sh_offset + names->sh_size - 1] != 0)
        return "";
    return l->object + names->sh_offset + s->sh_name;
}

static tile_status choose_sections(loader *l)
{
    for (uint32_t i = 0; i < l->nsections; i++) {
        const Elf64_Shdr *s = &l->sections[i];
        if (!is_loaded(s) || strcmp(section_name(l, s), ".eh_frame") == 0)
            continue;
        if (s->sh_type != SHT_PROGBITS && s->sh_type != SHT_NOBITS)
            return BAD("section %u is of a kind that kernels do not have (%u)", i, s->sh_type);
        if (s->sh_flags & SHF_TLS || (s->sh_flags & SHF_WRITE && s->sh_flags & SHF_EXECINSTR))
            return BAD("section %u is thread-local, or both code and data", i);
        l->offset[i] = 0;
    }
    return TILE_OK;
}

static const tl_elf_symbol *known_symbol(const loader *l, uint64_t index)
{
    TL_INVARIANT_OR(NULL, index < l->nsymbols, "symbol %llu", (unsigned long long)index);
    const Elf64_Sym *s = &l->symbols[index];
    for (size_t i = 0; index && s->st_shndx == SHN_UNDEF && i < l->nknown; i++)
        if (strcmp(l->known[i].name, l->strings + s->st_name) == 0)
            return &l->known[i];
    return NULL;
}

/* Gives an entry in the GOT, or a stub, to each symbol that needs one; also checks the shape of the
 * tables. */
static tile_status scan_relocations(loader *l)
{
    for (uint32_t i = 0; i < l->nsections; i++) {
        const Elf64_Shdr *table = &l->sections[i];
        if (!is_relocation_table(l, i))
            continue;
        if (table->sh_type == SHT_REL || table->sh_entsize != sizeof(Elf64_Rela) ||
            table->sh_size % sizeof(Elf64_Rela) != 0)
            return BAD("section %u holds relocations of another form", i);
        for (uint64_t j = 0; j < table->sh_size / sizeof(Elf64_Rela); j++) {
            Elf64_Rela r = relocation(l, table, j);
            uint64_t symbol = ELF64_R_SYM(r.r_info);
            if (symbol >= l->nsymbols)
                return BAD("a relocation names a symbol that is not there");
            if (wants_got(l->machine, ELF64_R_TYPE(r.r_info)) && !l->got[symbol])
                l->got[symbol] = ++l->ngot;
            if (!l->stub[symbol] && known_symbol(l, symbol))
                l->stub[symbol] = ++l->nstubs;
        }
    }
    return TILE_OK;
}

static uint64_t align_to(uint64_t x, uint64_t alignment)
{
    return alignment ? (x + alignment - 1) / alignment * alignment : x;
}

static tile_status lay_out(loader *l)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = 0;
    TL_INVARIANT(page > 0 && (page & (page - 1)) == 0, "pages of %llu bytes",
                 (unsigned long long)page);
    for (int g = 0; g < GROUPS; g++) {
        l->begin[g] = at = align_to(at, page);
        for (uint32_t i = 0; i < l->nsections; i++) {
            const Elf64_Shdr *s = &l->sections[i];
            if (l->offset[i] == NOWHERE || group_of(s) != (group)g)
                continue;
            if (s->sh_addralign > page)
                return BAD("section %u needs an alignment beyond a page", i);
            l->offset[i] = at = align_to(at, s->sh_addralign);
            at += s->sh_size;
        }
        if (g == GROUP_CODE) {
            l->stub_offset = at = align_to(at, STUB_BYTES);
            at += (uint64_t)l->nstubs * STUB_BYTES;
        }
        if (g == GROUP_CONST) {
            l->got_offset = at = align_to(at, 8);
            at += (uint64_t)l->ngot * 8;
        }
    }
    l->begin[GROUPS] = align_to(at, page);
    if (l->begin[GROUPS] == 0)
        return BAD("nothing to load");
    return l->begin[GROUPS] > INT32_MAX ? BAD("it is larger than 2 GiB") : TILE_OK;
}

/* Prefers low addresses, where 32-bit absolute relocations fit too. */
static tile_status map(loader *l)
{
    void *p = MAP_FAILED;
#ifdef MAP_32BIT
    p = mmap(NULL, l->begin[GROUPS], PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
#endif
    if (p == MAP_FAILED)
        p = mmap(NULL, l->begin[GROUPS], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                 0);
    if (p == MAP_FAILED)
        return out_of_memory();
    l->base = p;
    for (uint32_t i = 0; i < l->nsections; i++)
        TL_INVARIANT(l->offset[i] == NOWHERE ||
                         l->offset[i] + l->sections[i].sh_size <= l->begin[GROUPS],
                     "section %u lies outside the mapping", i);
    for (uint32_t i = 0; i < l->nsections; i++)
        if (l->offset[i] != NOWHERE && l->sections[i].sh_type != SHT_NOBITS)
            memcpy(l->base + l->offset[i], l->object + l->sections[i].sh_offset,
                   l->sections[i].sh_size);
    return TILE_OK;
}

/* ---- 3: relocation ---- */

static tile_status symbol_address(const loader *l, uint64_t index, uint64_t *out)
{
    const Elf64_Sym *s = &l->symbols[index];
    if (index == 0) {
        *out = 0;
        return TILE_OK;
    }
    if (s->st_shndx == SHN_ABS) {
        *out = s->st_value;
        return TILE_OK;
    }
    if (l->stub[index]) {
        *out = (uint64_t)(uintptr_t)l->base + l->stub_offset +
               STUB_BYTES * (uint64_t)(l->stub[index] - 1);
        return TILE_OK;
    }
    if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_COMMON)
        return BAD("'%s' is undefined", l->strings + s->st_name);
    if (s->st_shndx >= l->nsections || l->offset[s->st_shndx] == NOWHERE ||
        s->st_value > l->sections[s->st_shndx].sh_size)
        return BAD("'%s' is not in any loaded section", l->strings + s->st_name);
    *out = (uint64_t)(uintptr_t)l->base + l->offset[s->st_shndx] + s->st_value;
    return TILE_OK;
}

static uint64_t got_address(const loader *l, uint64_t symbol)
{
    TL_INVARIANT_OR(0, l->got[symbol] <= l->ngot, "entry %u of %u", l->got[symbol], l->ngot);
    return (uint64_t)(uintptr_t)l->base + l->got_offset + 8 * (uint64_t)(l->got[symbol] - 1);
}

static tile_status fill_got(const loader *l)
{
    for (uint32_t i = 0; i < l->nsymbols; i++) {
        uint64_t address;
        if (!l->got[i])
            continue;
        tile_status status = symbol_address(l, i, &address);
        if (status != TILE_OK)
            return status;
        memcpy(l->base + l->got_offset + 8 * (uint64_t)(l->got[i] - 1), &address, 8);
    }
    return TILE_OK;
}

/* A jump to the address that is stored at its end. */
static void write_stub(int machine, char *at, uint64_t address)
{
    static const unsigned char x86_64[8] = {0xff, 0x25, 0x02, 0, 0, 0, 0x0f, 0x0b}; /* ud2 */
    static const uint32_t aarch64[2] = {0x58000050, 0xd61f0200}; /* ldr x16, .+8; br x16 */
    memcpy(at, machine == TL_ELF_AARCH64 ? (const void *)aarch64 : x86_64, 8);
    memcpy(at + 8, &address, 8);
}

static void fill_stubs(const loader *l)
{
    for (uint32_t i = 0; i < l->nsymbols; i++)
        TL_INVARIANT_VOID(!l->stub[i] || (l->stub[i] <= l->nstubs && known_symbol(l, i)),
                          "stub %u of %u", l->stub[i], l->nstubs);
    for (uint32_t i = 0; i < l->nsymbols; i++)
        if (l->stub[i])
            write_stub(l->machine, l->base + l->stub_offset + STUB_BYTES * (l->stub[i] - 1),
                       (uint64_t)(uintptr_t)known_symbol(l, i)->address);
}

typedef enum fit { FITS, TOO_FAR, UNKNOWN } fit;

static fit put_bytes(char *at, uint64_t value, size_t bytes, bool fits)
{
    if (!fits)
        return TOO_FAR;
    memcpy(at, &value, bytes);
    return FITS;
}

static bool fits_i32(uint64_t v)
{
    return (int64_t)v == (int32_t)v;
}

/* s: symbol, a: addend, p: the address that is relocated, g: the GOT entry's address. */
static fit relocate_x86_64(uint32_t type, char *at, uint64_t s, uint64_t a, uint64_t p, uint64_t g)
{
    switch (type) {
    case R_X86_64_NONE: return FITS;
    case R_X86_64_64: return put_bytes(at, s + a, 8, true);
    case R_X86_64_PC64: return put_bytes(at, s + a - p, 8, true);
    case R_X86_64_PC32:
    case R_X86_64_PLT32: return put_bytes(at, s + a - p, 4, fits_i32(s + a - p));
    case R_X86_64_32: return put_bytes(at, s + a, 4, s + a <= UINT32_MAX);
    case R_X86_64_32S: return put_bytes(at, s + a, 4, fits_i32(s + a));
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: return put_bytes(at, g + a - p, 4, fits_i32(g + a - p));
    default: return UNKNOWN;
    }
}

/* Replaces `width` bits at `shift` of an instruction by the low bits of value. */
static fit put_field(char *at, uint64_t value, int shift, int width, bool fits)
{
    TL_INVARIANT_OR(UNKNOWN, width > 0 && shift + width <= 32, "bits %d to %d of a word", shift,
                    shift + width);
    uint32_t word, mask = (uint32_t)(((UINT64_C(1) << width) - 1) << shift);
    memcpy(&word, at, 4);
    word = (word & ~mask) | ((uint32_t)(value << shift) & mask);
    return put_bytes(at, word, 4, fits);
}

static bool fits_signed(int64_t v, int bits)
{
    return v >= -(INT64_C(1) << (bits - 1)) && v < INT64_C(1) << (bits - 1);
}

/* ADR and ADRP: 21 bits, the low two in a field of their own. */
static fit put_adr(char *at, int64_t v)
{
    put_field(at, (uint64_t)v & 3, 29, 2, true);
    return put_field(at, (uint64_t)(v >> 2), 5, 19, fits_signed(v, 21));
}

static fit put_branch(char *at, int64_t distance, int shift, int width)
{
    return put_field(at, (uint64_t)(distance >> 2), shift, width,
                     distance % 4 == 0 && fits_signed(distance, width + 2));
}

/* A load or store of 1 << scale bytes: the low 12 bits of the address, divided. */
static fit put_offset(char *at, uint64_t address, int scale)
{
    uint64_t low = address & 0xfff;
    return put_field(at, low >> scale, 10, 12, (low & ((1u << scale) - 1)) == 0);
}

static int64_t pages_between(uint64_t to, uint64_t from)
{
    return (int64_t)((to & ~UINT64_C(0xfff)) - (from & ~UINT64_C(0xfff))) / 4096;
}

static fit relocate_aarch64(uint32_t type, char *at, uint64_t s, uint64_t a, uint64_t p, uint64_t g)
{
    int64_t distance = (int64_t)(s + a - p);
    switch (type) {
    case R_AARCH64_NONE: return FITS;
    case R_AARCH64_ABS64: return put_bytes(at, s + a, 8, true);
    case R_AARCH64_ABS32: return put_bytes(at, s + a, 4, fits_i32(s + a) || s + a <= UINT32_MAX);
    case R_AARCH64_PREL64: return put_bytes(at, (uint64_t)distance, 8, true);
    case R_AARCH64_PREL32: return put_bytes(at, (uint64_t)distance, 4, fits_signed(distance, 32));
    case R_AARCH64_ADR_PREL_LO21: return put_adr(at, distance);
    case R_AARCH64_ADR_PREL_PG_HI21:
    case R_AARCH64_ADR_PREL_PG_HI21_NC: return put_adr(at, pages_between(s + a, p));
    case R_AARCH64_ADR_GOT_PAGE: return put_adr(at, pages_between(g + a, p));
    case R_AARCH64_LD64_GOT_LO12_NC: return put_offset(at, g + a, 3);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return put_offset(at, s + a, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC: return put_offset(at, s + a, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC: return put_offset(at, s + a, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC: return put_offset(at, s + a, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC: return put_offset(at, s + a, 4);
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: return put_branch(at, distance, 0, 26);
    case R_AARCH64_CONDBR19:
    case R_AARCH64_LD_PREL_LO19: return put_branch(at, distance, 5, 19);
    case R_AARCH64_TSTBR14: return put_branch(at, distance, 5, 14);
    default: return UNKNOWN;
    }
}

static size_t width_of(int machine, uint32_t type)
{
    if (machine == TL_ELF_AARCH64)
        return type == R_AARCH64_NONE                                ? 0
               : type == R_AARCH64_ABS64 || type == R_AARCH64_PREL64 ? 8
                                                                     : 4;
    return type == R_X86_64_NONE ? 0 : type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
}

static tile_status apply(const loader *l, uint32_t section, Elf64_Rela r)
{
    uint64_t symbol = ELF64_R_SYM(r.r_info), s;
    uint32_t type = (uint32_t)ELF64_R_TYPE(r.r_info);
    const Elf64_Shdr *target = &l->sections[section];
    size_t width = width_of(l->machine, type);
    if (r.r_offset > target->sh_size || width > target->sh_size - r.r_offset ||
        target->sh_type == SHT_NOBITS)
        return BAD("a relocation lies outside its section");
    tile_status status = symbol_address(l, symbol, &s);
    if (status != TILE_OK)
        return status;
    char *at = l->base + l->offset[section] + r.r_offset;
    uint64_t p = (uint64_t)(uintptr_t)at, g = l->got[symbol] ? got_address(l, symbol) : 0;
    fit f = l->machine == TL_ELF_AARCH64 ? relocate_aarch64(type, at, s, (uint64_t)r.r_addend, p, g)
                                         : relocate_x86_64(type, at, s, (uint64_t)r.r_addend, p, g);
    if (f == FITS)
        return TILE_OK;
    return BAD("relocation of type %u against '%s' %s", type,
               l->strings + l->symbols[symbol].st_name,
               f == TOO_FAR ? "does not reach" : "is not known");
}

static tile_status apply_all(const loader *l)
{
    fill_stubs(l);
    tile_status status = fill_got(l);
    for (uint32_t i = 0; i < l->nsections && status == TILE_OK; i++) {
        const Elf64_Shdr *table = &l->sections[i];
        if (!is_relocation_table(l, i))
            continue;
        for (uint64_t j = 0; j < table->sh_size / sizeof(Elf64_Rela) && status == TILE_OK; j++)
            status = apply(l, table->sh_info, relocation(l, table, j));
    }
    return status;
}

static tile_status protect(const loader *l)
{
    static const int modes[GROUPS] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
    for (int g = 0; g < GROUPS; g++) {
        uint64_t bytes = l->begin[g + 1] - l->begin[g];
        TL_INVARIANT(l->begin[g] <= l->begin[g + 1], "group %d of pages ends before it begins", g);
        if (bytes && mprotect(l->base + l->begin[g], bytes, modes[g]) != 0)
            return tl_fail(TILE_NO_RESOURCE,
                           "kernel code may not be made executable on this system");
    }
    __builtin___clear_cache(l->base, l->base + l->begin[GROUP_CONST]);
    return TILE_OK;
}

static tile_status find(const loader *l, const char *name, void **out_address)
{
    for (uint32_t i = 1; i < l->nsymbols; i++) {
        if (l->symbols[i].st_shndx == SHN_UNDEF ||
            strcmp(l->strings + l->symbols[i].st_name, name) != 0)
            continue;
        uint64_t address;
        tile_status status = symbol_address(l, i, &address);
        *out_address = (void *)(uintptr_t)address;
        return status;
    }
    return BAD("it has no '%s'", name);
}

static tile_status load(loader *l, const char *symbol, void **out_address)
{
    tile_status (*const steps[])(loader *) = {read_sections,    read_symbols, choose_sections,
                                              scan_relocations, lay_out,      map};
    tile_status status = TILE_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == TILE_OK; i++)
        status = steps[i](l);
    if (status == TILE_OK)
        status = apply_all(l);
    if (status == TILE_OK)
        status = find(l, symbol, out_address);
    return status == TILE_OK ? protect(l) : status;
}

/* Offsets become addresses: only debuggers and profilers read them from here on. */
static tl_debugged *tell_others(const loader *l)
{
    for (uint32_t i = 0; i < l->nsections; i++)
        l->offset[i] =
            l->offset[i] == NOWHERE ? 0 : (uint64_t)(uintptr_t)l->base + l->offset[i];
    if (l->machine != TL_ELF_HOST)
        return NULL;
    tl_profiler_add(l->object, l->offset);
    return tl_debugger_add(l->object, l->size, l->offset);
}

tile_status tl_elf_load(const void *object, size_t size, int machine, const tl_elf_symbol *known,
                        size_t nknown, const char *symbol, tl_elf **out_elf, void **out_address)
{
    TL_INVARIANT(object && symbol && out_elf, "no object to load");
    loader l = {
        .object = object, .size = size, .machine = machine, .known = known, .nknown = nknown};
    tl_elf *elf = calloc(1, sizeof *elf);
    tile_status status = elf ? load(&l, symbol, out_address) : out_of_memory();
    if (status == TILE_OK)
        elf->debugged = tell_others(&l);
    free(l.sections);
    free(l.offset);
    free(l.symbols);
    free(l.got);
    free(l.stub);
    if (status != TILE_OK) {
        if (l.base)
            munmap(l.base, l.begin[GROUPS]);
        free(elf);
        return status;
    }
    elf->base = l.base;
    elf->size = l.begin[GROUPS];
    *out_elf = elf;
    return TILE_OK;
}

void tl_elf_free(tl_elf *elf)
{
    if (!elf)
        return;
    tl_debugger_remove(elf->debugged);
    munmap(elf->base, elf->size);
    free(elf);
}
