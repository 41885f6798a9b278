/* The loader of kernel objects, on objects made here: what they compute, where relocations point,
 * what is refused. */
#include "runtime/host/elf.h"
#include "test/unit/unit.h"
#include <elf.h>
#include <stdlib.h>

/* ---- an object ---- */

enum { TEXT = 1, RODATA, DATA, BSS, RELA_TEXT, RELA_DATA, SYMTAB, STRTAB, SHSTRTAB, SECTIONS };
enum { SYM_F = 1, SYM_G, SYM_CONST, SYM_VALUE, SYM_TABLE, SYM_ZERO, SYM_MISSING, SYMBOLS };
static const char strings[] = "\0f\0g\0const\0value\0table\0zero\0missing";
static const uint32_t string_at[SYMBOLS] = {0, 1, 3, 5, 11, 17, 23, 28};

typedef struct Object {
    _Alignas(16) unsigned char bytes[4096];
    size_t size;
    Elf64_Shdr *sections;
    Elf64_Sym *symbols;
    Elf64_Rela *text_rela;
} Object;

typedef struct Content {
    const void *text;
    size_t text_size;
    const Elf64_Rela *rela;
    size_t nrela;
    int machine;
    uint64_t pointer_type; /* of the address of f in table */
} Content;

static uint64_t add(Object *o, const void *data, size_t size)
{
    o->size = (o->size + 15) / 16 * 16;
    uint64_t at = o->size;
    memcpy(o->bytes + at, data, size);
    o->size += size;
    return at;
}

static void section(Object *o, Elf64_Shdr *s, uint32_t type, uint64_t flags, const void *data,
                    size_t size)
{
    s->sh_type = type;
    s->sh_flags = flags;
    s->sh_addralign = 8;
    s->sh_size = size;
    if (type != SHT_NOBITS)
        s->sh_offset = add(o, data, size);
}

static void make_object(Object *o, const Content *c)
{
    static const int32_t constant[2] = {7, 8};
    static const int64_t data[2] = {30, 0};
    static const char names[] = "\0.text\0.eh_frame";
    const Elf64_Rela data_rela[1] = {
        {.r_offset = 8, .r_info = ELF64_R_INFO(SYM_F, c->pointer_type), .r_addend = 0}};
    Elf64_Shdr s[SECTIONS] = {{0}};
    Elf64_Sym y[SYMBOLS] = {{0}};
    memset(o, 0, sizeof *o);
    o->size = sizeof(Elf64_Ehdr);
    section(o, &s[TEXT], SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, c->text, c->text_size);
    section(o, &s[RODATA], SHT_PROGBITS, SHF_ALLOC, constant, sizeof constant);
    section(o, &s[DATA], SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, data, sizeof data);
    section(o, &s[BSS], SHT_NOBITS, SHF_ALLOC | SHF_WRITE, NULL, 100);
    section(o, &s[RELA_TEXT], SHT_RELA, 0, c->rela, c->nrela * sizeof *c->rela);
    section(o, &s[RELA_DATA], SHT_RELA, 0, data_rela, sizeof data_rela);
    static const uint16_t home[SYMBOLS] = {0, TEXT, TEXT, RODATA, DATA, DATA, BSS, SHN_UNDEF};
    static const uint64_t value[SYMBOLS] = {0, 0, 32, 0, 0, 8, 16, 0};
    for (int i = 0; i < SYMBOLS; i++)
        y[i] = (Elf64_Sym){.st_name = string_at[i], .st_shndx = home[i], .st_value = value[i]};
    section(o, &s[SYMTAB], SHT_SYMTAB, 0, y, sizeof y);
    section(o, &s[STRTAB], SHT_STRTAB, 0, strings, sizeof strings);
    section(o, &s[SHSTRTAB], SHT_STRTAB, 0, names, sizeof names);
    s[RELA_TEXT].sh_info = TEXT;
    s[RELA_DATA].sh_info = DATA;
    s[RELA_TEXT].sh_entsize = s[RELA_DATA].sh_entsize = sizeof(Elf64_Rela);
    s[RELA_TEXT].sh_link = s[RELA_DATA].sh_link = SYMTAB;
    s[SYMTAB].sh_link = STRTAB;
    s[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
    s[TEXT].sh_name = 1;
    Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
                    .e_type = ET_REL,
                    .e_machine = (uint16_t)c->machine,
                    .e_version = 1,
                    .e_ehsize = sizeof h,
                    .e_shentsize = sizeof(Elf64_Shdr),
                    .e_shnum = SECTIONS,
                    .e_shstrndx = SHSTRTAB};
    h.e_shoff = add(o, s, sizeof s);
    memcpy(o->bytes, &h, sizeof h);
    o->sections = (Elf64_Shdr *)(void *)(o->bytes + h.e_shoff);
    o->symbols = (Elf64_Sym *)(void *)(o->bytes + s[SYMTAB].sh_offset);
    o->text_rela = (Elf64_Rela *)(void *)(o->bytes + s[RELA_TEXT].sh_offset);
}

/* ---- x86-64: f() = const[0] + value + 1000, by each kind of reference ---- */

static const unsigned char x86_text[] = {
    0x8b, 0x05, 0,    0,    0,    0,       /* mov eax, [rip + const] */
    0x48, 0x8b, 0x0d, 0,    0,    0,    0, /* mov rcx, [rip + GOT of value] */
    0x03, 0x01,                            /* add eax, [rcx] */
    0x50,                                  /* push rax */
    0xe8, 0,    0,    0,    0,             /* call g */
    0x58,                                  /* pop rax */
    0x01, 0xc8,                            /* add eax, ecx */
    0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xb9, 0xe8, 0x03, 0, 0, /* g: mov ecx, 1000 */
    0xc3,
};
static const Elf64_Rela x86_rela[] = {
    {.r_offset = 2, .r_info = ELF64_R_INFO(SYM_CONST, R_X86_64_PC32), .r_addend = -4},
    {.r_offset = 9, .r_info = ELF64_R_INFO(SYM_VALUE, 42 /* REX_GOTPCRELX */), .r_addend = -4},
    {.r_offset = 17, .r_info = ELF64_R_INFO(SYM_G, R_X86_64_PLT32), .r_addend = -4},
};
static const Content x86 = {x86_text, sizeof x86_text, x86_rela, 3, TL_ELF_X86_64, R_X86_64_64};

static tile_status load(const Object *o, int machine, const char *symbol, tl_elf **elf,
                        void **address)
{
    *elf = NULL;
    *address = NULL;
    return tl_elf_load(o->bytes, o->size, machine, NULL, 0, symbol, elf, address);
}

static void runs(void)
{
    Object o;
    tl_elf *elf;
    void *f, *table;
    make_object(&o, &x86);
    CHECK_INT(load(&o, TL_ELF_X86_64, "f", &elf, &f), TILE_OK);
#if defined(__x86_64__)
    int (*call)(void);
    memcpy(&call, &f, sizeof f);
    CHECK_INT(call(), 1037);
#endif
    tl_elf_free(elf);
    CHECK_INT(load(&o, TL_ELF_X86_64, "table", &elf, &table), TILE_OK);
    void *held = NULL;
    if (table) {
        memcpy(&held, table, sizeof held);
        *(char *)table = 1; /* data may be written */
    }
    CHECK(held != NULL && ((unsigned char *)held)[0] == 0x8b);
    tl_elf_free(elf);
    CHECK_INT(load(&o, TL_ELF_X86_64, "zero", &elf, &table), TILE_OK);
    CHECK(table && *(char *)table == 0);
    tl_elf_free(elf);
    tl_elf_free(NULL);
}

/* ---- aarch64: the words after relocation lead where they should ---- */

static const uint32_t arm_text[] = {
    0x90000000,             /* adrp x0, const */
    0x91000000,             /* add x0, x0, :lo12:const */
    0xb9400001,             /* ldr w1, [x0, :lo12:const + 4] */
    0x90000002,             /* adrp x2, :got:value */
    0xf9400042,             /* ldr x2, [x2, :got_lo12:value] */
    0x94000000,             /* bl g */
    0x14000000,             /* b g */
    0xd65f03c0, 0x52807d00, /* g */
    0xd65f03c0,
};
static const Elf64_Rela arm_rela[] = {
    {.r_offset = 0, .r_info = ELF64_R_INFO(SYM_CONST, R_AARCH64_ADR_PREL_PG_HI21)},
    {.r_offset = 4, .r_info = ELF64_R_INFO(SYM_CONST, R_AARCH64_ADD_ABS_LO12_NC)},
    {.r_offset = 8, .r_info = ELF64_R_INFO(SYM_CONST, R_AARCH64_LDST32_ABS_LO12_NC), .r_addend = 4},
    {.r_offset = 12, .r_info = ELF64_R_INFO(SYM_VALUE, R_AARCH64_ADR_GOT_PAGE)},
    {.r_offset = 16, .r_info = ELF64_R_INFO(SYM_VALUE, R_AARCH64_LD64_GOT_LO12_NC)},
    {.r_offset = 20, .r_info = ELF64_R_INFO(SYM_G, R_AARCH64_CALL26)},
    {.r_offset = 24, .r_info = ELF64_R_INFO(SYM_G, R_AARCH64_JUMP26)},
};
static const Content arm = {arm_text, sizeof arm_text, arm_rela,
                            7,        TL_ELF_AARCH64,  R_AARCH64_ABS64};

static int64_t sign_extend(uint32_t v, int bits)
{
    return (int64_t)((uint64_t)v << (64 - bits)) >> (64 - bits);
}

static uint64_t adrp_target(uint64_t pc, uint32_t word)
{
    uint32_t immediate = (word >> 29 & 3) | (word >> 5 & 0x7ffff) << 2;
    return (pc & ~UINT64_C(0xfff)) + (uint64_t)(sign_extend(immediate, 21) * 4096);
}

static void aarch64_words(void)
{
    Object o;
    tl_elf *elf;
    void *f;
    make_object(&o, &arm);
    if (!CHECK(load(&o, TL_ELF_AARCH64, "f", &elf, &f) == TILE_OK))
        return;
    uint32_t w[10];
    memcpy(w, f, sizeof w);
    uint64_t pc = (uint64_t)(uintptr_t)f;
    uint64_t constant = adrp_target(pc, w[0]) + (w[1] >> 10 & 0xfff);
    CHECK_INT(*(int32_t *)(uintptr_t)constant, 7);
    CHECK_INT(*(int32_t *)(uintptr_t)(adrp_target(pc, w[0]) + 4 * (w[2] >> 10 & 0xfff)), 8);
    uint64_t entry =
        *(uint64_t *)(uintptr_t)(adrp_target(pc + 12, w[3]) + 8 * (w[4] >> 10 & 0xfff));
    CHECK_INT(*(int64_t *)(uintptr_t)entry, 30);
    CHECK_INT(20 + 4 * sign_extend(w[5] & 0x3ffffff, 26), 32);
    CHECK_INT(24 + 4 * sign_extend(w[6] & 0x3ffffff, 26), 32);
    CHECK((w[0] & 0x9f00001f) == 0x90000000 && (w[5] >> 26) == 0x25 &&
          (w[4] & 0x3ff) == 0x42); /* the rest of the words stays */
    tl_elf_free(elf);
}

/* ---- names that are defined outside ---- */

static int outside_calls;

static void outside(void)
{
    outside_calls++;
}

static const tl_elf_symbol known[] = {{"other", NULL}, {"missing", outside}};

/* The call of g goes to a function of ours, however far it is; so does a pointer to it. */
static void undefined_function(void)
{
    Object o;
    tl_elf *elf;
    void *f;
    make_object(&o, &x86);
    o.text_rela[2].r_info = ELF64_R_INFO(SYM_MISSING, R_X86_64_PLT32);
    if (!CHECK(tl_elf_load(o.bytes, o.size, TL_ELF_X86_64, known, 2, "f", &elf, &f) == TILE_OK))
        return;
#if defined(__x86_64__)
    void (*call)(void);
    memcpy(&call, &f, sizeof f);
    call();
    CHECK_INT(outside_calls, 1);
#endif
    tl_elf_free(elf);
    CHECK_INT(tl_elf_load(o.bytes, o.size, TL_ELF_X86_64, known, 1, "f", &elf, &f), TILE_BAD_IMAGE);
    CHECK(strstr(tile_last_error(), "'missing' is undefined") != NULL);
}

static void undefined_function_aarch64(void)
{
    Object o;
    tl_elf *elf;
    void *f;
    make_object(&o, &arm);
    o.text_rela[5].r_info = ELF64_R_INFO(SYM_MISSING, R_AARCH64_CALL26);
    o.text_rela[3].r_info = ELF64_R_INFO(SYM_MISSING, R_AARCH64_ADR_GOT_PAGE);
    o.text_rela[4].r_info = ELF64_R_INFO(SYM_MISSING, R_AARCH64_LD64_GOT_LO12_NC);
    if (!CHECK(tl_elf_load(o.bytes, o.size, TL_ELF_AARCH64, known, 2, "f", &elf, &f) == TILE_OK))
        return;
    uint32_t w[10], stub[2];
    memcpy(w, f, sizeof w);
    uint64_t pc = (uint64_t)(uintptr_t)f;
    uint64_t at = pc + 20 + (uint64_t)(4 * sign_extend(w[5] & 0x3ffffff, 26)), address;
    memcpy(stub, (void *)(uintptr_t)at, sizeof stub);
    memcpy(&address, (void *)(uintptr_t)(at + 8), sizeof address);
    CHECK(stub[0] == 0x58000050 && stub[1] == 0xd61f0200); /* ldr x16, .+8; br x16 */
    CHECK(address == (uint64_t)(uintptr_t)outside);
    uint64_t entry =
        *(uint64_t *)(uintptr_t)(adrp_target(pc + 12, w[3]) + 8 * (w[4] >> 10 & 0xfff));
    CHECK(entry == at); /* one address, however it is taken */
    tl_elf_free(elf);
}

/* ---- what is refused, with what text ---- */

static void refused(const Object *o, const char *symbol, const char *text)
{
    tl_elf *elf;
    void *f;
    CHECK_INT(load(o, TL_ELF_X86_64, symbol, &elf, &f), TILE_BAD_IMAGE);
    if (!CHECK(strstr(tile_last_error(), text) != NULL))
        fprintf(stderr, "    no '%s' in: %s\n", text, tile_last_error());
}

static void refusals(void)
{
    Object o;
    make_object(&o, &x86);
    refused(&o, "nobody", "no 'nobody'");
    refused(&o, "missing", "no 'missing'");
    o.text_rela[0].r_info = ELF64_R_INFO(SYM_MISSING, R_X86_64_PC32);
    refused(&o, "f", "'missing' is undefined");
    make_object(&o, &x86);
    o.text_rela[0].r_info = ELF64_R_INFO(SYM_CONST, 200);
    refused(&o, "f", "type 200");
    make_object(&o, &x86);
    o.text_rela[0].r_addend = INT64_C(1) << 40;
    refused(&o, "f", "does not reach");
    make_object(&o, &x86);
    o.text_rela[0].r_offset = sizeof x86_text - 3;
    refused(&o, "f", "outside its section");
    make_object(&o, &x86);
    o.text_rela[0].r_info = ELF64_R_INFO(SYMBOLS, R_X86_64_PC32);
    refused(&o, "f", "not there");
    make_object(&o, &x86);
    o.symbols[SYM_CONST].st_value = 9;
    refused(&o, "f", "'const'");
    make_object(&o, &x86);
    o.sections[RODATA].sh_flags |= SHF_TLS;
    refused(&o, "f", "thread-local");
    make_object(&o, &x86);
    o.sections[TEXT].sh_flags |= SHF_WRITE;
    refused(&o, "f", "both code and data");
    make_object(&o, &x86);
    o.sections[DATA].sh_offset = 1 << 20;
    refused(&o, "f", "outside");
    make_object(&o, &arm);
    refused(&o, "f", "machine");
}

/* Any byte of it changed, any length: an answer, never a crash. */
static void damaged(const Content *c)
{
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    Object o;
    tl_elf *elf;
    void *f;
    make_object(&o, c);
    for (size_t size = 0; size < o.size; size++) {
        unsigned char *exact = malloc(size + 1); /* so that a sanitizer sees what is read beyond */
        if (!CHECK(exact != NULL))
            return;
        memcpy(exact, o.bytes, size);
        elf = NULL;
        CHECK_INT(tl_elf_load(exact, size, c->machine, NULL, 0, "f", &elf, &f), TILE_BAD_IMAGE);
        free(exact);
    }
    int loaded = 0, bad = 0;
    for (size_t at = 0; at < o.size; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            unsigned char keep = o.bytes[at];
            o.bytes[at] = values[v];
            tile_status status = load(&o, c->machine, "f", &elf, &f);
            status == TILE_OK ? loaded++ : bad++;
            tl_elf_free(elf);
            o.bytes[at] = keep;
        }
    CHECK(loaded > 100 && bad > 100);
}

int main(void)
{
    runs();
    aarch64_words();
    undefined_function();
    undefined_function_aarch64();
    refusals();
    damaged(&x86);
    damaged(&arm);
    return unit_result();
}
