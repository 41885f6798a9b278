/* dwarf_lines.c: the line table of an object, as rows (DWARF 4, section 6.2).
 *
 * The object is as the compiler wrote it, not relocated. In its line table only the operand of
 * DW_LNE_set_address is an address; it is the loaded address of the section that the relocation at
 * its place names. The table comes from an image in a file, so nothing in it is believed: each read
 * is within the section, and what is not ends the table. */
#include "runtime/host/dwarf_lines.h"
#include "runtime/host/object.h"
#include <stdlib.h>

enum {
    LNS_COPY = 1,
    LNS_ADVANCE_PC,
    LNS_ADVANCE_LINE,
    LNS_SET_FILE,
    LNS_SET_COLUMN,
    LNS_NEGATE_STMT,
    LNS_SET_BASIC_BLOCK,
    LNS_CONST_ADD_PC,
    LNS_FIXED_ADVANCE_PC,
    LNE_END_SEQUENCE = 1,
    LNE_SET_ADDRESS = 2,
    MOST_NAMES = 64,
};

/* Bytes that are read one after the other; `bad` once one would lie outside. */
typedef struct bytes {
    const unsigned char *at, *end;
    bool bad;
} bytes;

typedef struct table {
    const char *object;
    const uint64_t *address; /* of sections */
    Elf64_Shdr section, relocations;
    const char *directory[MOST_NAMES + 1], *file[MOST_NAMES + 1];
    uint32_t directory_of[MOST_NAMES + 1];
    uint32_t ndirectories, nfiles; /* both count from 1 */
    tl_line *lines;
    uint32_t n, room;
} table;

typedef struct registers {
    uint64_t address;
    uint32_t file, line, column;
} registers;

static uint64_t fixed(bytes *b, size_t n)
{
    uint64_t value = 0;
    b->bad = b->bad || (size_t)(b->end - b->at) < n;
    if (b->bad)
        return 0;
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)b->at[i] << 8 * i;
    b->at += n;
    return value;
}

static uint64_t uleb(bytes *b)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint64_t byte = fixed(b, 1);
        b->bad = b->bad || shift > 63;
        if (b->bad)
            return 0;
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static int64_t sleb(bytes *b)
{
    uint64_t value = 0, byte = 0x80;
    unsigned shift = 0;
    for (; byte & 0x80; shift += 7) {
        byte = fixed(b, 1);
        b->bad = b->bad || shift > 63;
        if (b->bad)
            return 0;
        value |= (byte & 0x7f) << shift;
    }
    return (int64_t)(byte & 0x40 && shift < 64 ? value | ~(uint64_t)0 << shift : value);
}

static const char *text(bytes *b)
{
    const unsigned char *from = b->at;
    size_t room = (size_t)(b->end - b->at);
    const unsigned char *zero = b->bad || room == 0 ? NULL : memchr(from, 0, room);
    b->bad = b->bad || !zero;
    if (b->bad)
        return "";
    b->at = zero + 1;
    return (const char *)from;
}

/* What the relocation at that offset of the section makes of it: an address. 0: nothing. */
static uint64_t relocated(const table *t, uint64_t offset)
{
    if (!t->relocations.sh_size)
        return 0;
    Elf64_Shdr symbols = tl_object_section(t->object, t->relocations.sh_link);
    uint64_t n = t->relocations.sh_size / sizeof(Elf64_Rela);
    for (uint64_t i = 0; i < n; i++) {
        Elf64_Rela r;
        Elf64_Sym s;
        memcpy(&r, t->object + t->relocations.sh_offset + i * sizeof r, sizeof r);
        if (r.r_offset != offset)
            continue;
        if (ELF64_R_SYM(r.r_info) >= symbols.sh_size / sizeof s)
            return 0;
        memcpy(&s, t->object + symbols.sh_offset + ELF64_R_SYM(r.r_info) * sizeof s, sizeof s);
        uint64_t base =
            s.st_shndx < tl_object_header(t->object).e_shnum ? t->address[s.st_shndx] : 0;
        return base ? base + s.st_value + (uint64_t)r.r_addend : 0;
    }
    return 0;
}

static bool emit(table *t, const registers *r)
{
    if (t->n == t->room) {
        uint32_t room = t->room ? 2 * t->room : 64;
        tl_line *more = realloc(t->lines, room * sizeof *more);
        if (!more)
            return false;
        t->lines = more;
        t->room = room;
    }
    bool known = r->file >= 1 && r->file <= t->nfiles;
    uint32_t d = known ? t->directory_of[r->file] : 0;
    t->lines[t->n++] = (tl_line){r->address, known ? r->line : 0, r->column,
                                 d >= 1 && d <= t->ndirectories ? t->directory[d] : "",
                                 known ? t->file[r->file] : ""};
    return true;
}

static void read_names(table *t, bytes *b)
{
    t->ndirectories = t->nfiles = 0;
    for (const char *name = text(b); *name; name = text(b))
        if (t->ndirectories < MOST_NAMES)
            t->directory[++t->ndirectories] = name;
    for (const char *name = text(b); *name; name = text(b)) {
        uint64_t directory = uleb(b);
        uleb(b); /* time */
        uleb(b); /* length */
        if (t->nfiles == MOST_NAMES)
            continue;
        t->file[++t->nfiles] = name;
        t->directory_of[t->nfiles] =
            directory <= MOST_NAMES && name[0] != '/' ? (uint32_t)directory : 0;
    }
}

typedef struct dialect {
    uint32_t minimum, range, opcodes;
    int32_t base;
    unsigned char arguments[256]; /* of standard opcodes */
} dialect;

static const registers FIRST = {.file = 1, .line = 1};

/* One opcode; false: there is no memory. */
static bool step(table *t, const dialect *d, bytes *b, registers *r)
{
    uint32_t op = (uint32_t)fixed(b, 1), special = (255 - d->opcodes) / d->range * d->minimum;
    if (b->bad)
        return true;
    if (op >= d->opcodes) {
        r->address += (op - d->opcodes) / d->range * d->minimum;
        r->line += (uint32_t)(d->base + (int32_t)((op - d->opcodes) % d->range));
        return emit(t, r);
    }
    switch (op) {
    case 0: {
        uint64_t bytes_of = uleb(b);
        const unsigned char *from = b->at;
        uint64_t which = fixed(b, 1);
        b->bad = b->bad || bytes_of == 0 || bytes_of > (uint64_t)(b->end - from);
        if (b->bad)
            return true;
        if (which == LNE_SET_ADDRESS)
            r->address =
                relocated(t, (uint64_t)((const char *)b->at - (t->object + t->section.sh_offset)));
        bool fine = which != LNE_END_SEQUENCE ||
                    emit(t, &(registers){r->address, 0, 0, 0}); /* what follows is of no line */
        if (which == LNE_END_SEQUENCE)
            *r = FIRST;
        b->at = from + bytes_of;
        return fine;
    }
    case LNS_COPY: return emit(t, r);
    case LNS_ADVANCE_PC: r->address += uleb(b) * d->minimum; return true;
    case LNS_ADVANCE_LINE: r->line += (uint32_t)sleb(b); return true;
    case LNS_SET_FILE: r->file = (uint32_t)uleb(b); return true;
    case LNS_SET_COLUMN: r->column = (uint32_t)uleb(b); return true;
    case LNS_CONST_ADD_PC: r->address += special; return true;
    case LNS_FIXED_ADVANCE_PC: r->address += fixed(b, 2); return true;
    }
    for (uint32_t i = 0; i < d->arguments[op]; i++) /* any other: as the table says */
        uleb(b);
    return true;
}

/* One unit of the table; false: the table ends. */
static bool read_unit(table *t, bytes *all)
{
    uint64_t length = fixed(all, 4);
    if (all->bad || length > (uint64_t)(all->end - all->at)) /* 64-bit DWARF, too */
        return false;
    bytes b = {all->at, all->at + length, false};
    all->at = b.end;
    uint64_t version = fixed(&b, 2), header = fixed(&b, 4);
    if (b.bad || version < 2 || version > 4 || header > (uint64_t)(b.end - b.at))
        return false;
    const unsigned char *program = b.at + header;
    dialect d = {.minimum = (uint32_t)fixed(&b, 1)};
    if (version == 4)
        fixed(&b, 1); /* operations of an instruction: 1 but on VLIW */
    fixed(&b, 1);     /* is_stmt at first */
    d.base = (int8_t)fixed(&b, 1);
    d.range = (uint32_t)fixed(&b, 1);
    d.opcodes = (uint32_t)fixed(&b, 1);
    if (b.bad || !d.range || !d.opcodes)
        return false;
    for (uint32_t i = 1; i < d.opcodes; i++)
        d.arguments[i] = (unsigned char)fixed(&b, 1);
    read_names(t, &b);
    if (b.bad || b.at > program)
        return false;
    b.at = program;
    registers r = FIRST;
    while (!b.bad && b.at < b.end)
        if (!step(t, &d, &b, &r))
            return false;
    return !b.bad;
}

uint32_t tl_dwarf_lines(const char *object, const uint64_t *address, tl_line **out_lines)
{
    table t = {.object = object, .address = address};
    uint32_t found = tl_object_find(object, ".debug_line");
    uint32_t rela = tl_object_find(object, ".rela.debug_line");
    *out_lines = NULL;
    if (!found || tl_object_section(object, found).sh_type != SHT_PROGBITS)
        return 0;
    t.section = tl_object_section(object, found);
    Elf64_Shdr r = rela ? tl_object_section(object, rela) : (Elf64_Shdr){0};
    uint32_t nsections = tl_object_header(object).e_shnum;
    if (r.sh_type == SHT_RELA && r.sh_link < nsections &&
        tl_object_section(object, r.sh_link).sh_type == SHT_SYMTAB)
        t.relocations = r;
    const unsigned char *from = (const unsigned char *)object + t.section.sh_offset;
    bytes all = {from, from + t.section.sh_size, false};
    while (all.at < all.end && read_unit(&t, &all))
        ;
    *out_lines = t.lines;
    return t.n;
}
