/* AMD's machine code for tl_mix_count: LLVM's disassembler says what the bytes of a linked code
 * object are. */
#include <elf.h>
#include <llvm-c/Disassembler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/report/mix.h"
#include "ir/support/guard.h"

static const struct {
    const char *prefix;
    uint8_t class_;
} TABLE[] = {
#define AMD_OP(prefix, class_) {prefix, TL_MIX_##class_},
#include "codegen/report/mix_class.def"
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends_in(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);
    return n >= m && strcmp(text + n - m, with) == 0;
}

/* Words that names of accesses end in, or have between them: "ds_read2st64_b32" is two of 4. */
static const struct {
    const char *word;
    uint8_t bytes;
} SIZES[] = {
    {"_dwordx4", 16}, {"_dwordx3", 12}, {"_dwordx2", 8}, {"_dword", 4}, {"_b128", 16}, {"_b96", 12},
    {"_b64", 8},      {"_b32", 4},      {"_b16", 2},     {"_b8", 1},    {"short", 2},  {"byte", 1},
    {"_u16", 2},      {"_i16", 2},      {"_u8", 1},      {"_i8", 1},    {"_d16", 2},
};

static uint8_t width_of(const char *name)
{
    bool two = begins(name, "ds_") && (strstr(name, "read2") || strstr(name, "write2") ||
                                       strstr(name, "load_2") || strstr(name, "store_2"));
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        if (strstr(name, SIZES[i].word))
            return (uint8_t)(SIZES[i].bytes << two);
    return 0;
}

static TlMixClass class_of(const char *name, const char *operands)
{
    if (ends_in(name, "_dpp") || strstr(operands, " row_") || strstr(operands, " quad_perm:"))
        return TL_MIX_SHUFFLE; /* registers of other lanes as operands */
    if (begins(name, "buffer_load_") && strstr(operands, " lds"))
        return TL_MIX_COPY;
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++)
        if (begins(name, TABLE[i].prefix))
            return (TlMixClass)TABLE[i].class_;
    return TL_MIX_OTHER;
}

/* ---- one instruction ---- */

typedef struct Line {
    char name[64], operands[192];
} Line;

/* "\tv_add_f32_e32 v0, v1, v2" */
static void split(const char *text, Line *out)
{
    text += strspn(text, " \t");
    size_t n = strcspn(text, " \t");
    snprintf(out->name, sizeof out->name, "%.*s", (int)n, text);
    snprintf(out->operands, sizeof out->operands, "%s", text + n);
}

/* A branch counts words from the next instruction, in 16 bits. */
static void set_flow(const Line *l, uint64_t next, TlInsn *out, uint64_t *out_target)
{
    bool always = begins(l->name, "s_branch");
    out->flow = TL_FLOW_ON;
    if (always || begins(l->name, "s_cbranch_")) {
        out->flow = TL_FLOW_JUMP;
        out->conditional = !always;
        *out_target = next + (uint64_t)((int64_t)(int16_t)strtol(l->operands, NULL, 0) * 4);
    } else if (begins(l->name, "s_endpgm") || begins(l->name, "s_setpc_")) {
        out->flow = TL_FLOW_END;
    }
}

static TlInsn decode(const char *text, uint64_t next, uint64_t *out_target)
{
    Line l;
    TlInsn out = {0};
    split(text, &l);
    TlMixClass c = class_of(l.name, l.operands);
    out.class_ = (uint8_t)c;
    out.width = tl_mix_class(c)->widths ? width_of(l.name) : 0;
    set_flow(&l, next, &out, out_target);
    return out;
}

/* ---- a kernel ---- */

typedef struct Text {
    const uint8_t *bytes;
    uint64_t size;
} Text;

/* Addresses of jumps become numbers of instructions. */
static void settle_jumps(TlInsns *code, const uint64_t *targets, const int32_t *index_at,
                         uint64_t words)
{
    for (uint32_t i = 0; i < code->len; i++)
        if (code->data[i].flow == TL_FLOW_JUMP)
            code->data[i].to =
                targets[i] / 4 < words ? index_at[targets[i] / 4] : (int32_t)code->len;
}

static bool disassemble(TlArena *arena, LLVMDisasmContextRef d, Text t, TlInsns *out)
{
    enum { WORD = 4, LONGEST = 512 };
    uint64_t words = t.size / WORD + 1;
    uint64_t *targets = TL_NEW_ARRAY(arena, uint64_t, words);
    int32_t *index_at = TL_NEW_ARRAY(arena, int32_t, words);
    for (uint64_t at = 0; at < t.size;) {
        char text[LONGEST];
        size_t n = LLVMDisasmInstruction(d, (uint8_t *)(uintptr_t)(t.bytes + at), t.size - at, at,
                                         text, sizeof text);
        if (n == 0)
            return false;
        index_at[at / WORD] = (int32_t)out->len;
        TlInsn i = decode(text, at + n, &targets[out->len]);
        tl_vec_push(arena, out, i);
        at += n;
    }
    settle_jumps(out, targets, index_at, words);
    return true;
}

/* The bytes of a function of a linked code object. */
static Text text_of(const void *code, size_t size, const char *kernel)
{
    const uint8_t *bytes = code;
    const Elf64_Ehdr *e = code;
    const Elf64_Shdr *s = (const void *)(bytes + e->e_shoff);
    TL_ASSERT(size >= sizeof *e && e->e_shoff < size, "a code object of %zu bytes", size);
    for (int i = 0; i < e->e_shnum; i++) {
        if (s[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *sym = (const void *)(bytes + s[i].sh_offset);
        const char *names = (const char *)bytes + s[s[i].sh_link].sh_offset;
        for (uint64_t k = 0; k < s[i].sh_size / sizeof *sym; k++) {
            bool is_code =
                ELF64_ST_TYPE(sym[k].st_info) == STT_FUNC && sym[k].st_shndx < e->e_shnum;
            if (!is_code || strcmp(names + sym[k].st_name, kernel) != 0)
                continue;
            const Elf64_Shdr *in = &s[sym[k].st_shndx];
            return (Text){bytes + in->sh_offset + (sym[k].st_value - in->sh_addr), sym[k].st_size};
        }
    }
    return (Text){0};
}

bool tl_mix_of_hsaco(TlArena *arena, const TlTarget *target, const void *code, size_t size,
                     const char *kernel, TlInsns *out)
{
    Text t = text_of(code, size, kernel);
    if (!t.bytes || !t.size)
        return false;
    LLVMDisasmContextRef d = LLVMCreateDisasmCPUFeatures(target->family->triple, target->cpu,
                                                         target->features, NULL, 0, NULL, NULL);
    if (!d)
        return false;
    bool ok = disassemble(arena, d, t, out);
    LLVMDisasmDispose(d);
    return ok;
}
