/* hostexpr.c: launch-time expressions (tile_image.h): postfix code over a stack of 64-bit words.
 *
 * Validation walks the code once and knows the depth at each step, because there are no jumps;
 * evaluation then needs no checks of its own. Integers are i64; overflow is reported, not wrapped:
 * a grid or a requirement that is wrong by 2^64 helps nobody. Both sides of && and || and all of
 * ?: are evaluated, so a division by zero is reported only if its value is used: a fault travels
 * with its value. */
#include "runtime/runtime.h"
#include <math.h>

bool tl_hostexpr_valid(const tile_hx_ins *code, uint32_t n, uint32_t nsyms, uint32_t nargs)
{
    int depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = code[i].op;
        if (op >= TILE_HX_COUNT || depth < (int)tile_hx_operands(op))
            return false;
        if (op == TILE_HX_SYM && (code[i].imm < 0 || code[i].imm >= nsyms))
            return false;
        if (op == TILE_HX_ARG && (code[i].imm < 0 || code[i].imm >= nargs))
            return false;
        depth += 1 - (int)tile_hx_operands(op);
        if (depth > TILE_HX_MAX_STACK)
            return false;
    }
    return depth == 1;
}

/* One value: its bits, and the fault that occurred in computing it. */
typedef struct word {
    int64_t i;
    tl_hx_result fault;
} word;

static double as_double(int64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static int64_t of_double(double d)
{
    int64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static int64_t saturate(double d)
{
    if (isnan(d))
        return 0;
    if (d >= 9223372036854775808.0)
        return INT64_MAX;
    return d < -9223372036854775808.0 ? INT64_MIN : (int64_t)d;
}

static int64_t scalar_word(const tile_arg *arg)
{
    tile_dtype dtype = (tile_dtype)arg->dtype;
    if (tl_is_float_dtype(dtype))
        return of_double(tl_decode_float(dtype, arg->scalar));
    return tl_decode_int(dtype, arg->scalar);
}

static word checked(bool overflow, int64_t value)
{
    return (word){value, overflow ? TL_HX_OVERFLOW : TL_HX_FINE};
}

static word divide(uint32_t op, int64_t a, int64_t b)
{
    if (b == 0)
        return (word){0, TL_HX_DIV_ZERO};
    if (a == INT64_MIN && b == -1)
        return op == TILE_HX_REM ? (word){0, TL_HX_FINE} : (word){a, TL_HX_OVERFLOW};
    if (op == TILE_HX_REM)
        return (word){a % b, TL_HX_FINE};
    int64_t q = a / b;
    bool up = op == TILE_HX_CDIV && a % b != 0 && (a % b < 0) == (b < 0);
    return (word){q + up, TL_HX_FINE};
}

/* a op b, where the result may not fit in 64 bits; op is ADD, SUB or MUL. */
static word arithmetic(uint32_t op, int64_t a, int64_t b)
{
    int64_t r = 0;
    bool overflow = op == TILE_HX_ADD   ? __builtin_add_overflow(a, b, &r)
                    : op == TILE_HX_SUB ? __builtin_sub_overflow(a, b, &r)
                                        : __builtin_mul_overflow(a, b, &r);
    return checked(overflow, r);
}

/* Of one operand, or two. */
static word computed(tile_hx_op op, int64_t a, int64_t b)
{
    double x = as_double(a), y = as_double(b);
    switch (op) {
    case TILE_HX_ADD:
    case TILE_HX_SUB:
    case TILE_HX_MUL: return arithmetic(op, a, b);
    case TILE_HX_DIV:
    case TILE_HX_REM:
    case TILE_HX_CDIV: return divide(op, a, b);
    case TILE_HX_MIN: return checked(false, a < b ? a : b);
    case TILE_HX_MAX: return checked(false, a > b ? a : b);
    case TILE_HX_NEG: return arithmetic(TILE_HX_SUB, 0, a);
    case TILE_HX_ABS: return a < 0 ? arithmetic(TILE_HX_SUB, 0, a) : checked(false, a);
    case TILE_HX_NOT: return checked(false, !a);
    case TILE_HX_LT: return checked(false, a < b);
    case TILE_HX_LE: return checked(false, a <= b);
    case TILE_HX_EQ: return checked(false, a == b);
    case TILE_HX_NE: return checked(false, a != b);
    case TILE_HX_BAND: return checked(false, a & b);
    case TILE_HX_BOR: return checked(false, a | b);
    case TILE_HX_BXOR: return checked(false, a ^ b);
    case TILE_HX_SHL: return checked(false, (int64_t)((uint64_t)a << (b & 63)));
    case TILE_HX_SHR: return checked(false, a >> (b & 63));
    case TILE_HX_I2F: return checked(false, of_double((double)a));
    case TILE_HX_F2I: return checked(false, saturate(x));
    case TILE_HX_FADD: return checked(false, of_double(x + y));
    case TILE_HX_FSUB: return checked(false, of_double(x - y));
    case TILE_HX_FMUL: return checked(false, of_double(x * y));
    case TILE_HX_FDIV: return checked(false, of_double(x / y));
    case TILE_HX_FNEG: return checked(false, of_double(-x));
    case TILE_HX_FMIN: return checked(false, of_double(fmin(x, y)));
    case TILE_HX_FMAX: return checked(false, of_double(fmax(x, y)));
    case TILE_HX_FLT: return checked(false, x < y);
    case TILE_HX_FLE: return checked(false, x <= y);
    case TILE_HX_FEQ: return checked(false, x == y);
    case TILE_HX_FNE: return checked(false, x != y);
    case TILE_HX_CONST: /* leaf */
    case TILE_HX_SYM:
    case TILE_HX_ARG:
    case TILE_HX_SMS:
    case TILE_HX_AND: /* logical */
    case TILE_HX_OR:
    case TILE_HX_SELECT:
    case TILE_HX_COUNT: break;
    }
    return checked(false, 0);
}

static word leaf(const tile_hx_ins *ins, const tl_hx_env *env)
{
    if (ins->op == TILE_HX_SYM)
        return checked(false, env->syms[ins->imm]);
    if (ins->op == TILE_HX_ARG)
        return checked(false, scalar_word(&env->args[ins->imm]));
    return checked(false, ins->op == TILE_HX_SMS ? env->processors : ins->imm);
}

/* &&, || and ?: pass on a fault only of operands whose value is used. */
static word logical(uint32_t op, const word *w)
{
    if (w[0].fault)
        return w[0];
    if (op == TILE_HX_SELECT)
        return w[0].i ? w[1] : w[2];
    bool decided = op == TILE_HX_AND ? !w[0].i : w[0].i != 0;
    if (decided)
        return checked(false, op == TILE_HX_OR);
    return w[1].fault ? w[1] : checked(false, w[1].i != 0);
}

static word apply(tile_hx_op op, const word *w)
{
    if (op == TILE_HX_AND || op == TILE_HX_OR || op == TILE_HX_SELECT)
        return logical(op, w);
    bool two = tile_hx_operands(op) == 2;
    if (w[0].fault)
        return w[0];
    return two && w[1].fault ? w[1] : computed(op, w[0].i, two ? w[1].i : 0);
}

tl_hx_result tl_hostexpr_eval(const tile_hx_ins *code, uint32_t n, const tl_hx_env *env,
                              int64_t *out_word)
{
    static const word NONE;
    word stack[TILE_HX_MAX_STACK]; /* gcc warns unless the first ones are set */
    stack[0] = stack[1] = stack[2] = NONE;
    int depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = code[i].op;
        uint32_t operands = tile_hx_operands(op);
        depth -= (int)operands;
        TL_DEBUG_INVARIANT(op < TILE_HX_COUNT && depth >= 0 && depth < TILE_HX_MAX_STACK,
                           "operator %u at depth %d", op, depth);
        stack[depth] = operands ? apply((tile_hx_op)op, stack + depth) : leaf(&code[i], env);
        depth++;
    }
    TL_DEBUG_INVARIANT(depth == 1, "%d values are left", depth);
    *out_word = stack[0].i;
    return stack[0].fault;
}
