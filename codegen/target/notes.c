/* The notes of AMD code (notes.h).
 *
 * In objects they are MessagePack: a map whose "amdhsa.kernels" is an array of maps, one for each
 * kernel. Other entries are skipped. In assembly they are the same as YAML, one key per line, with
 * those of a kernel in alphabetical order. */
#include "codegen/target/notes.h"

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ir/support/guard.h"

/* ---- MessagePack ---- */

typedef struct Pack {
    const uint8_t *at, *end;
    bool bad;
} Pack;

typedef enum PackKind { PACK_OTHER, PACK_NUMBER, PACK_TEXT, PACK_ARRAY, PACK_MAP } PackKind;

typedef struct PackItem {
    PackKind kind;
    uint64_t n;       /* the number; bytes of a text; items of an array; pairs of a map */
    const char *text; /* not ended */
} PackItem;

static uint64_t take(Pack *p, int bytes)
{
    TL_ASSERT(bytes > 0 && bytes <= 8, "%d bytes", bytes);
    uint64_t n = 0;
    if (p->end - p->at < bytes) {
        p->bad = true;
        p->at = p->end;
        return 0;
    }
    for (int i = 0; i < bytes; i++)
        n = n << 8 | *p->at++;
    return n;
}

static PackItem text_of(Pack *p, uint64_t n)
{
    PackItem x = {PACK_TEXT, n, (const char *)p->at};
    if ((uint64_t)(p->end - p->at) < n) {
        p->bad = true;
        n = (uint64_t)(p->end - p->at);
    }
    p->at += n;
    return x;
}

/* Forms whose first byte is 0xc0 to 0xdf. */
static PackItem long_form(Pack *p, uint8_t first)
{
    if (first >= 0xcc && first <= 0xcf) /* uint 8 .. 64 */
        return (PackItem){PACK_NUMBER, take(p, 1 << (first - 0xcc)), NULL};
    if (first >= 0xd0 && first <= 0xd3) /* int 8 .. 64 */
        return (PackItem){PACK_OTHER, take(p, 1 << (first - 0xd0)), NULL};
    if (first >= 0xd9 && first <= 0xdb) /* str 8 .. 32 */
        return text_of(p, take(p, 1 << (first - 0xd9)));
    if (first == 0xdc || first == 0xdd)
        return (PackItem){PACK_ARRAY, take(p, 2 << (first - 0xdc)), NULL};
    if (first == 0xde || first == 0xdf)
        return (PackItem){PACK_MAP, take(p, 2 << (first - 0xde)), NULL};
    if (first != 0xc0 && first != 0xc2 && first != 0xc3) /* nil, false, true */
        p->bad = true;
    return (PackItem){PACK_OTHER, 0, NULL};
}

static PackItem next_item(Pack *p)
{
    uint8_t first = (uint8_t)take(p, 1);
    if (p->bad)
        return (PackItem){PACK_OTHER, 0, NULL};
    if (first < 0x80)
        return (PackItem){PACK_NUMBER, first, NULL};
    if (first < 0x90)
        return (PackItem){PACK_MAP, first & 15, NULL};
    if (first < 0xa0)
        return (PackItem){PACK_ARRAY, first & 15, NULL};
    if (first < 0xc0)
        return text_of(p, first & 31);
    return first < 0xe0 ? long_form(p, first) : (PackItem){PACK_OTHER, 0, NULL};
}

static void skip_item(Pack *p)
{
    for (uint64_t left = 1; left && !p->bad; left--) {
        PackItem x = next_item(p);
        left += x.kind == PACK_ARRAY ? x.n : x.kind == PACK_MAP ? 2 * x.n : 0;
    }
}

static bool is_text(const PackItem *x, const char *text)
{
    return x->kind == PACK_TEXT && x->n == strlen(text) && !memcmp(x->text, text, x->n);
}

/* ---- kernels ---- */

static void read_fact(const PackItem *key, const PackItem *value, TlNotes *u)
{
    const struct {
        const char *key;
        int *to;
    } facts[] = {{".vgpr_count", &u->registers},
                 {".agpr_count", &u->accumulators},
                 {".sgpr_count", &u->scalars},
                 {".vgpr_spill_count", &u->spilled},
                 {".sgpr_spill_count", &u->spilled_scalars},
                 {".private_segment_fixed_size", &u->private_bytes}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (value->kind == PACK_NUMBER && is_text(key, facts[i].key))
            *facts[i].to = (int)value->n;
}

/* Reads one kernel's map of n pairs; true if it is the kernel that is looked for. */
static bool read_kernel(Pack *p, uint64_t n, const char *kernel, TlNotes *u)
{
    bool same = false;
    *u = (TlNotes){0};
    for (; n && !p->bad; n--) {
        PackItem key = next_item(p);
        Pack ahead = *p;
        PackItem value = next_item(&ahead);
        same |= is_text(&key, ".name") && is_text(&value, kernel);
        read_fact(&key, &value, u);
        skip_item(p);
    }
    return same;
}

static bool read_notes(Pack p, const char *kernel, TlNotes *out)
{
    PackItem top = next_item(&p);
    for (uint64_t n = top.kind == PACK_MAP ? top.n : 0; n && !p.bad; n--) {
        PackItem key = next_item(&p);
        if (!is_text(&key, "amdhsa.kernels")) {
            skip_item(&p);
            continue;
        }
        PackItem list = next_item(&p);
        for (uint64_t i = 0; list.kind == PACK_ARRAY && i < list.n && !p.bad; i++) {
            PackItem one = next_item(&p);
            if (one.kind != PACK_MAP)
                return false;
            if (read_kernel(&p, one.n, kernel, out))
                return true;
        }
    }
    return false;
}

bool tl_notes_of_object(const void *code, size_t size, const char *kernel, TlNotes *out)
{
    const uint8_t *bytes = code;
    Elf64_Ehdr head;
    if (size < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    for (uint64_t i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr s;
        Elf64_Nhdr note;
        uint64_t at = head.e_shoff + i * sizeof s;
        if (at > size || size - at < sizeof s)
            return false;
        memcpy(&s, bytes + at, sizeof s);
        if (s.sh_type != SHT_NOTE || s.sh_offset > size || size - s.sh_offset < s.sh_size ||
            s.sh_size < sizeof note)
            continue;
        memcpy(&note, bytes + s.sh_offset, sizeof note);
        uint64_t from = sizeof note + (note.n_namesz + 3ull) / 4 * 4;
        if (from > s.sh_size || s.sh_size - from < note.n_descsz)
            continue;
        const uint8_t *desc = bytes + s.sh_offset + from;
        if (read_notes((Pack){desc, desc + note.n_descsz, false}, kernel, out))
            return true;
    }
    return false;
}

/* ---- text ---- */

/* Where the value of `key` is in the line; NULL: the line has another key. */
static const char *value_in(const char *line, const char *key)
{
    line += strspn(line, " -");
    size_t n = strlen(key);
    if (strncmp(line, key, n) != 0 || line[n] != ':')
        return NULL;
    return line + n + 1 + strspn(line + n + 1, " '");
}

int tl_notes_in_text(const char *text, const char *kernel, const char *key)
{
    size_t n = strlen(kernel);
    bool mine = false;
    const char *value;
    for (const char *line = strstr(text, "amdhsa.kernels:"); line && *line;) {
        if ((value = value_in(line, ".symbol")))
            mine = strncmp(value, kernel, n) == 0 && strncmp(value + n, ".kd", 3) == 0;
        else if (mine && (value = value_in(line, key)))
            return (int)strtol(value, NULL, 10);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return -1;
}
