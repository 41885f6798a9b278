/* tile-opt: the tables of passes and ops, as text and as the Markdown that stands in PASSES.md and
 * IR.md. */
#include "passes/pass.h"
#include "tools/opt.h"

void opt_list_passes(TlSbuf *out, bool markdown)
{
    if (markdown)
        tl_sbuf_puts(out, "| pass | what it does |\n| --- | --- |\n");
    for (uint32_t i = 0; i < tl_pass_count(); i++) {
        const TlPassInfo *p = tl_pass_at(i);
        tl_sbuf_putf(out, markdown ? "| `%s` | %s |\n" : "%-14s %s\n", p->name, p->doc);
    }
}

static void put_count(TlSbuf *out, int n, bool markdown)
{
    if (markdown)
        tl_sbuf_puts(out, " |");
    if (n < 0)
        tl_sbuf_puts(out, " n");
    else
        tl_sbuf_putf(out, " %d", n);
}

static void put_attrs(TlSbuf *out, TlOpcode opcode)
{
    for (uint32_t set = 0; set < 2; set++)
        for (int a = 0; a < TL_ATTR_COUNT; a++)
            if ((set ? tl_op_optional_attrs(opcode) : tl_op_required_attrs(opcode)) >> a & 1)
                tl_sbuf_putf(out, " %s%s", tl_attr_name((TlAttrId)a), set ? "?" : "");
}

typedef struct FlagName {
    uint32_t flag;
    const char *text;
} FlagName;
static const FlagName flag_names[] = {{F_PURE, "pure"},
                                      {F_READ, "read"},
                                      {F_WRITE, "write"},
                                      {F_ATOMIC, "atomic"},
                                      {F_DEBUG, "debug"},
                                      {F_REGION, "region"},
                                      {F_TERM, "terminator"},
                                      {F_BUF_READ, "buffer read"},
                                      {F_BUF_WRITE, "buffer write"}};

static void put_effects(TlSbuf *out, const TlOpInfo *op)
{
    for (size_t i = 0; i < sizeof flag_names / sizeof *flag_names; i++)
        if (op->flags & flag_names[i].flag)
            tl_sbuf_putf(out, " %s", flag_names[i].text);
}

static void put_cell(TlSbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            tl_sbuf_puts(out, "\\");
        tl_sbuf_put(out, text, 1);
    }
}

static void put_op_row(TlSbuf *out, TlOpcode opcode)
{
    const TlOpInfo *op = tl_op_info(opcode);
    tl_sbuf_putf(out, "| `%s`", op->text);
    put_count(out, op->nin, true);
    put_count(out, op->nout, true);
    put_count(out, op->nregions, true);
    tl_sbuf_puts(out, " |");
    put_attrs(out, opcode);
    tl_sbuf_puts(out, " |");
    put_effects(out, op);
    tl_sbuf_puts(out, " | ");
    put_cell(out, op->doc);
    tl_sbuf_puts(out, " |\n");
}

void opt_list_ops(TlSbuf *out, bool markdown)
{
    if (markdown)
        tl_sbuf_puts(out, "| op | in | out | regions | attributes | effect | meaning |\n| --- | "
                          "--- | --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < TL_OP_COUNT; i++) {
        const TlOpInfo *op = tl_op_info((TlOpcode)i);
        if (markdown)
            put_op_row(out, (TlOpcode)i);
        else
            tl_sbuf_putf(out, "%-13s %s\n", op->text, op->doc);
    }
}
