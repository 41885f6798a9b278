/* PTX for tl_mix_count: without ptxas, it gives a rough idea of the machine code. */
#include <stdlib.h>
#include <string.h>

#include "codegen/report/mix.h"
#include "ir/support/ascii.h"
#include "ir/support/guard.h"

static const struct {
    const char *prefix;
    uint8_t class_;
} TABLE[] = {
#define PTX_OP(prefix, class_) {prefix, TL_MIX_##class_},
#include "codegen/report/mix_class.def"
};

typedef struct Label {
    const char *name;
    size_t n;
    int32_t at;
} Label;

typedef struct Reader {
    TlArena *arena;
    TlInsns *out;
    TL_VEC(Label) labels, jumps; /* jumps: `at` is the instruction that jumps there */
} Reader;

/* ---- one statement ---- */

/* "add.f32" is arithmetic on floats, "add.s32" on integers. */
static bool is_of_floats(const char *op, size_t n)
{
    for (size_t i = 0; i + 2 < n; i++)
        if (op[i] == '.' && (op[i + 1] == 'f' || (op[i + 1] == 'b' && op[i + 2] == 'f')) &&
            strncmp(op + i, ".ftz", 4) != 0)
            return true;
    return false;
}

static TlMixClass class_of(const char *op, size_t n)
{
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++)
        if (strncmp(op, TABLE[i].prefix, strlen(TABLE[i].prefix)) == 0)
            return TABLE[i].class_ == TL_MIX_INTEGER && is_of_floats(op, n)
                       ? TL_MIX_FLOAT
                       : (TlMixClass)TABLE[i].class_;
    return TL_MIX_OTHER;
}

/* ".v4.b32": 16 bytes; "cp.async.cg.shared.global [x], [y], 16": 16; "ldmatrix.x4": 16. */
static uint8_t width_of(const char *op, size_t n, const char *end)
{
    int vector = 1, bits = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        if (op[i] != '.')
            continue;
        char kind = op[i + 1];
        if ((kind == 'v' || kind == 'x') && tl_is_digit((unsigned char)op[i + 2]))
            vector = op[i + 2] - '0';
        else if (strchr("bfsu", kind) && tl_is_digit((unsigned char)op[i + 2]))
            bits = (int)strtol(op + i + 2, NULL, 10);
    }
    if (strncmp(op, "ldmatrix", 8) == 0 || strncmp(op, "stmatrix", 8) == 0)
        return (uint8_t)(4 * vector);
    if (strncmp(op, "cp.async.bulk", 13) == 0)
        return 0;
    if (strncmp(op, "cp.async", 8) == 0) {
        for (const char *p = op + n; p + 2 < end; p++)
            if (*p == ']' && p[1] == ',' && p[2] == ' ' && tl_is_digit((unsigned char)p[3]))
                return (uint8_t)strtol(p + 3, NULL, 10);
    }
    return (uint8_t)(bits / 8 * vector);
}

static void set_flow(Reader *r, const char *op, size_t n, bool guarded, TlInsn *i)
{
    i->conditional = guarded;
    if (strncmp(op, "bra", 3) == 0 && (op[3] == ' ' || op[3] == '.' || op[3] == '\t')) {
        const char *to = op + n + strspn(op + n, " \t\n");
        i->flow = TL_FLOW_JUMP;
        tl_vec_push(r->arena, &r->jumps,
                    ((Label){to, strcspn(to, " ;\t\n"), (int32_t)r->out->len}));
    } else if (strncmp(op, "ret", 3) == 0 || strncmp(op, "exit", 4) == 0 ||
               strncmp(op, "trap", 4) == 0) {
        i->flow = TL_FLOW_END;
    }
}

static void read_instruction(Reader *r, const char *at, const char *end)
{
    TlInsn i = {0};
    bool guarded = *at == '@';
    if (guarded) {
        at += strcspn(at, " \t");
        at += strspn(at, " \t");
    }
    size_t n = strcspn(at, " \t;\n");
    TlMixClass c = class_of(at, n);
    i.class_ = (uint8_t)c;
    i.width = tl_mix_class(c)->widths ? width_of(at, n, end) : 0;
    set_flow(r, at, n, guarded, &i);
    tl_vec_push(r->arena, r->out, i);
}

/* ---- a kernel ---- */

static const char *skip_blank(const char *p)
{
    for (;;) {
        p += strspn(p, " \t\n\r{}");
        if (p[0] == '/' && p[1] == '/')
            p += strcspn(p, "\n");
        else
            return p;
    }
}

/* "$L__BB0_1:" */
static size_t label_at(const char *p)
{
    size_t n = 0;
    while (tl_is_alnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '$')
        n++;
    return n && p[n] == ':' ? n : 0;
}

/* Directives end with their line or with ';', instructions with ';'. */
static void read_body(Reader *r, const char *p, const char *end)
{
    for (p = skip_blank(p); p < end; p = skip_blank(p)) {
        size_t label = label_at(p);
        if (label) {
            tl_vec_push(r->arena, &r->labels, ((Label){p, label, (int32_t)r->out->len}));
            p += label + 1;
            continue;
        }
        size_t n = strcspn(p, *p == '.' ? ";\n" : ";");
        if (*p != '.')
            read_instruction(r, p, p + n);
        p += n + (p[n] != 0);
    }
}

static void settle_jumps(Reader *r)
{
    for (uint32_t j = 0; j < r->jumps.len; j++) {
        const Label *jump = &r->jumps.data[j];
        TlInsn *i = &r->out->data[jump->at];
        i->to = (int32_t)r->out->len;
        for (uint32_t l = 0; l < r->labels.len; l++)
            if (r->labels.data[l].n == jump->n &&
                strncmp(r->labels.data[l].name, jump->name, jump->n) == 0)
                i->to = r->labels.data[l].at;
    }
}

/* Where a function's braces close: on a line of its own. */
static const char *end_of(const char *body)
{
    const char *end = strstr(body, "\n}");
    return end ? end : body + strlen(body);
}

bool tl_mix_of_ptx(TlArena *arena, const char *text, const char *kernel, TlInsns *out)
{
    static const char ENTRY[] = ".entry ";
    size_t n = strlen(kernel);
    Reader r = {.arena = arena, .out = out};
    TL_ASSERT(n > 0, "a kernel without a name");
    for (const char *p = strstr(text, ENTRY); p; p = strstr(p, ENTRY)) {
        p += sizeof ENTRY - 1;
        if (strncmp(p, kernel, n) != 0 || (p[n] != '(' && p[n] != '\n'))
            continue;
        const char *body = strstr(p, "\n{");
        if (!body)
            return false;
        read_body(&r, body + 2, end_of(body + 2));
        settle_jumps(&r);
        return out->len > 0;
    }
    return false;
}
