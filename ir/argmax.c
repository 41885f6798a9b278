/* The combiner of argmax and argmin (argmax.h). */
#include "ir/argmax.h"

enum { ARGS = 4 };

/* An op, and its operands: 0 to 3 are the arguments a, i, b, j; ARGS + n is the result of row n.
 * The last two rows are what the region yields. */
typedef struct Row {
    TlOpcode opcode;
    uint8_t nin, in[3];
} Row;

/* clang-format off */
static const Row INTEGERS[] = {
    {TL_OP_GT,     2, {0, 2}},     /*  4 better; argmin: LT */
    {TL_OP_EQ,     2, {0, 2}},     /*  5 same */
    {TL_OP_LT,     2, {1, 3}},     /*  6 first */
    {TL_OP_AND,    2, {5, 6}},
    {TL_OP_OR,     2, {4, 7}},
    {TL_OP_SELECT, 3, {8, 0, 2}},
    {TL_OP_SELECT, 3, {8, 1, 3}},
};
static const Row FLOATS[] = {
    {TL_OP_GT,     2, {0, 2}},     /*  4 better; argmin: LT */
    {TL_OP_EQ,     2, {0, 2}},     /*  5 same */
    {TL_OP_LT,     2, {1, 3}},     /*  6 first */
    {TL_OP_NE,     2, {0, 0}},     /*  7 a is NaN */
    {TL_OP_NE,     2, {2, 2}},     /*  8 b is NaN */
    {TL_OP_NOT,    1, {7}},
    {TL_OP_AND,    2, {8, 9}},     /* 10 b alone is NaN */
    {TL_OP_OR,     2, {4, 10}},    /* 11 better */
    {TL_OP_AND,    2, {7, 8}},
    {TL_OP_OR,     2, {5, 12}},    /* 13 same */
    {TL_OP_AND,    2, {13, 6}},
    {TL_OP_OR,     2, {11, 14}},
    {TL_OP_SELECT, 3, {15, 0, 2}},
    {TL_OP_SELECT, 3, {15, 1, 3}},
};
/* clang-format on */

enum {
    INTEGER_ROWS = sizeof INTEGERS / sizeof *INTEGERS,
    FLOAT_ROWS = sizeof FLOATS / sizeof *FLOATS,
    MOST_ROWS = FLOAT_ROWS
};

static const Row *rows_of(TlDtype d)
{
    return tl_is_float(d) ? FLOATS : INTEGERS;
}

uint32_t tl_argmax_ops(TlDtype d)
{
    return tl_is_float(d) ? FLOAT_ROWS : INTEGER_ROWS;
}

static TlOpcode opcode_of(const Row *r, bool greatest)
{
    return r->opcode == TL_OP_GT && !greatest ? TL_OP_LT : r->opcode;
}

void tl_argmax_fill(TlBuilder *b, const TlBlock *region, bool greatest)
{
    TL_ASSERT(region->nargs == ARGS, "a combiner of %u arguments", region->nargs);
    TlDtype d = region->args[0]->type->dtype;
    const Row *rows = rows_of(d);
    TlValue *v[ARGS + MOST_ROWS];
    uint32_t n = tl_argmax_ops(d);
    for (uint32_t i = 0; i < ARGS; i++)
        v[i] = region->args[i];
    for (uint32_t i = 0; i < n; i++) {
        const Row *r = &rows[i];
        TlOpcode opcode = opcode_of(r, greatest);
        v[ARGS + i] = r->nin == 1   ? tl_unary(b, opcode, v[r->in[0]])
                      : r->nin == 2 ? tl_binary(b, opcode, v[r->in[0]], v[r->in[1]])
                                    : tl_select(b, v[r->in[0]], v[r->in[1]], v[r->in[2]]);
    }
    tl_yield(b, TL_OP_YIELD, 2, &v[ARGS + n - 2]);
}

static bool is_row(const TlOp *op, const Row *r, bool greatest, TlValue *const *v)
{
    if (op->opcode != opcode_of(r, greatest) || op->nin != r->nin)
        return false;
    for (uint32_t i = 0; i < r->nin; i++)
        if (tl_in(op, i) != v[r->in[i]])
            return false;
    return true;
}

bool tl_is_argmax(const TlOp *op, bool *out_greatest)
{
    if (op->opcode != TL_OP_REDUCE || op->nin != 2 || op->nregions != 1 ||
        tl_attr_int(op, TL_ATTR_KIND, -1) != TL_COMBINE_USER ||
        tl_in(op, 1)->type->dtype != TL_I32)
        return false;
    const TlBlock *region = op->regions[0];
    TlDtype d = tl_in(op, 0)->type->dtype;
    const Row *rows = rows_of(d);
    const TlOp *at = region->first;
    TlValue *v[ARGS + MOST_ROWS];
    uint32_t n = tl_argmax_ops(d);
    for (uint32_t i = 0; i < ARGS; i++)
        v[i] = region->args[i];
    *out_greatest = at->opcode == TL_OP_GT;
    for (uint32_t i = 0; i < n; i++, at = at->next) {
        if (!is_row(at, &rows[i], *out_greatest, v))
            return false;
        v[ARGS + i] = at->out[0];
    }
    return at->opcode == TL_OP_YIELD && tl_in(at, 0) == v[ARGS + n - 2] &&
           tl_in(at, 1) == v[ARGS + n - 1];
}
