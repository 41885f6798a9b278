/* NVIDIA's machine code for tl_mix_count, without a disassembler. A cubin is an ELF file with a
 * section for each kernel; an instruction is 16 bytes, and its low 9 bits give the operation
 * (sass.def). The bits for widths and branches were found with ptxas: test/tools/sassmix_probe.py.
 */
#include <elf.h>
#include <string.h>

#include "codegen/report/mix.h"
#include "ir/support/guard.h"

enum { OPERATIONS = 512, MACHINE_CUDA = 190, BYTES = 16, ALWAYS = 7, NEVER = 15 };

static const struct {
    const char *name;
    uint8_t class_;
} TABLE[OPERATIONS] = {
#define SASS(name, code, class_) [code] = {name, TL_MIX_##class_},
#include "codegen/report/sass.def"
};

typedef struct Word {
    uint64_t low, high;
    const char *name;
} Word;

static bool is(const Word *w, const char *name)
{
    return strcmp(w->name, name) == 0;
}

/* Bytes of a thread: loads, stores and copies have them in three bits, matrices in two. What copies
 * boxes or blocks does not say how many. */
static uint8_t width_of(const Word *w, TlMixClass c)
{
    static const uint8_t sizes[8] = {1, 1, 2, 2, 4, 8, 16, 16};
    if (!tl_mix_class(c)->widths || !strncmp(w->name, "UTMA", 4) || !strncmp(w->name, "UBLK", 4))
        return 0;
    if (is(w, "LDSM") || is(w, "STSM"))
        return (uint8_t)(4 << (w->high >> 8 & 3));
    return sizes[w->high >> 9 & 7];
}

/* Instructions from the next one to a relative branch's target. */
static int64_t jump_of(const Word *w, int sm)
{
    uint64_t words = w->low >> 34 | (w->high & 0x3ffff) << 30;
    int bits = 48;
    if (sm >= 90) {
        words = words << 8 | (w->low >> 16 & 0xff);
        bits = 56;
    }
    int64_t n = (int64_t)(words << (64 - bits)) >> (64 - bits);
    return n * 4 / BYTES;
}

static void set_flow(const Word *w, int sm, int64_t index, TlInsn *out)
{
    static const char *const ends[] = {"EXIT", "RET", "BRX", "BRXU", "JMP", "JMX", "JMXU", "KILL"};
    out->conditional = (w->low >> 12 & 15) != ALWAYS;
    /* a call comes back; ptxas for sm_80 leaves loops by calls too */
    if (is(w, "BRA") || is(w, "CALL")) {
        out->flow = TL_FLOW_JUMP;
        out->to = (int32_t)(index + 1 + jump_of(w, sm));
        out->conditional |=
            is(w, "CALL") || (w->high >> 23 & 15) != ALWAYS || (w->low >> 9 & 7) != 4;
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (is(w, ends[i]))
            out->flow = TL_FLOW_END;
}

static TlInsn decode(const uint8_t *at, int sm, int64_t index, const char **out_name)
{
    Word w;
    TlInsn out = {.class_ = TL_MIX_OTHER};
    memcpy(&w.low, at, 8);
    memcpy(&w.high, at + 8, 8);
    w.name = TABLE[w.low & (OPERATIONS - 1)].name;
    *out_name = w.name ? w.name : "";
    if (!w.name)
        return out;
    out.class_ = TABLE[w.low & (OPERATIONS - 1)].class_;
    if ((w.low >> 12 & 15) == NEVER) { /* never runs */
        out.class_ = TL_MIX_IDLE;
        *out_name = "NOP";
        return out;
    }
    out.width = width_of(&w, (TlMixClass)out.class_);
    set_flow(&w, sm, index, &out);
    return out;
}

/* Behind the last instruction of the program: a branch to itself, and no-ops. */
static void drop_padding(TlInsns *code, const char *last, const char *before_last)
{
    TL_ASSERT(last && before_last, "no names");
    bool ends = strcmp(before_last, "EXIT") == 0 || strcmp(before_last, "RET") == 0 ||
                strcmp(before_last, "BRA") == 0;
    if (code->len > 1 && strcmp(last, "BRA") == 0 && ends)
        code->len--;
}

static void decode_all(TlArena *arena, const uint8_t *text, uint64_t size, int sm, TlInsns *out)
{
    const char *name = "", *last = "", *before_last = "";
    uint32_t keep = 0;
    for (uint64_t at = 0; at + BYTES <= size; at += BYTES) {
        TlInsn i = decode(text + at, sm, (int64_t)(at / BYTES), &name);
        tl_vec_push(arena, out, i);
        if (strcmp(name, "NOP") == 0)
            continue;
        keep = out->len;
        before_last = last;
        last = name;
    }
    out->len = keep;
    drop_padding(out, last, before_last);
}

bool tl_mix_of_cubin(TlArena *arena, const void *cubin, size_t size, const char *kernel,
                     TlInsns *out)
{
    static const char TEXT[] = ".text.";
    const uint8_t *bytes = cubin;
    const Elf64_Ehdr *e = cubin;
    if (size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 ||
        e->e_machine != MACHINE_CUDA || e->e_shoff > size ||
        e->e_shnum > (size - e->e_shoff) / sizeof(Elf64_Shdr) || e->e_shstrndx >= e->e_shnum)
        return false;
    const Elf64_Shdr *s = (const void *)(bytes + e->e_shoff);
    const char *names = (const char *)bytes + s[e->e_shstrndx].sh_offset;
    int sm = (int)(e->e_ident[EI_ABIVERSION] >= 8 ? e->e_flags >> 8 & 0xff : e->e_flags & 0xff);
    for (int i = 0; i < e->e_shnum; i++) {
        const char *name = names + s[i].sh_name;
        if (strncmp(name, TEXT, sizeof TEXT - 1) == 0 &&
            strcmp(name + sizeof TEXT - 1, kernel) == 0 && s[i].sh_offset <= size &&
            s[i].sh_size <= size - s[i].sh_offset) {
            decode_all(arena, bytes + s[i].sh_offset, s[i].sh_size, sm, out);
            return out->len > 0;
        }
    }
    return false;
}
