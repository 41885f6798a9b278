/* launch_bind.c: checks the arguments of a launch against an instance's parameters.
 *
 *  1. each argument is of the parameter's kind, element type and rank; extents are in range,
 *     addresses aligned to their elements
 *  2. each name of an extent or stride gets its value where it first appears
 *  3. every extent, then every stride, is as declared; strides of axes with at most one element
 *     may be anything, and are replaced by the declared ones so that nothing later sees them
 *  4. `require`, with checks also `assume`, hold; parameters do not certainly overlap, unless
 *     alias allows it
 *  5. the grid is evaluated
 *  6. the parameter block of the form that runs is filled (choose.c says which form that is)
 *
 * Messages name the kernel, the parameter, what was expected and what came. Nothing is allocated.
 */
#include "ir/support/number.h"
#include "runtime/runtime.h"
#include <inttypes.h>
#include <stdio.h>

typedef struct bind {
    const tile_device *device;
    const void *image;
    const tile_image_kernel *k;
    const tile_image_param *params;
    const char *name;
    bool checked;
    tl_bound *out;
} bind;

/* Only arguments can be wrong here: the text says how, and the status is BAD_ARGUMENT. */
#define FAIL(...) ((void)tl_fail(TILE_BAD_ARGUMENT, __VA_ARGS__), false)

static const char *param_name(const bind *b, uint32_t i)
{
    return tl_image_text(b->image, b->params[i].name);
}

static const tile_image_dim *dim_of(const bind *b, uint32_t param, uint32_t axis, bool stride)
{
    const tile_image_dim *dims = tl_image_at(b->image, b->params[param].dims);
    TL_DEBUG_INVARIANT(b->params[param].kind == TILE_PARAM_VIEW && axis < b->params[param].rank,
                       "axis %u of parameter %u", axis, param);
    return &dims[2 * axis + stride];
}

static const tile_image_expr *expr_of(const bind *b, int64_t index)
{
    TL_DEBUG_INVARIANT(index >= 0 && index < b->k->nexprs, "expression %lld", (long long)index);
    return (const tile_image_expr *)tl_image_at(b->image, b->k->exprs) + index;
}

static const tile_image_sym *sym_of(const bind *b, int64_t index)
{
    TL_DEBUG_INVARIANT(index >= 0 && index < b->k->nsyms, "name %lld", (long long)index);
    return (const tile_image_sym *)tl_image_at(b->image, b->k->syms) + index;
}

/* ---- 1: kinds, types, ranks, ranges ---- */

static const char *kind_name(int32_t kind)
{
    return kind == TILE_ARG_VIEW ? "a view" : kind == TILE_ARG_POINTER ? "a pointer" : "a scalar";
}

/* Does the caller's element type, as far as it is known, agree with `wanted`? */
static bool dtype_fits(int32_t given, tile_dtype wanted, bool scalar)
{
    if (given == TILE_ANY || given == (int32_t)wanted)
        return true;
    int bits = tile_dtype_bits(wanted);
    return !scalar &&
           ((given == TILE_ANY_BYTE && bits <= 8) || (given == TILE_ANY_WORD && bits == 16));
}

static const char *given_name(int32_t dtype)
{
    return dtype == TILE_ANY_BYTE   ? "bytes (uint8_t)"
           : dtype == TILE_ANY_WORD ? "16-bit words (uint16_t)"
                                    : tile_dtype_name((tile_dtype)dtype);
}

static bool check_kind(bind *b, uint32_t i, const tile_arg *arg)
{
    uint32_t kind = b->params[i].kind;
    bool scalar = kind == TILE_PARAM_SCALAR;
    bool fits =
        (uint32_t)arg->kind == kind || (kind == TILE_PARAM_POINTER && arg->kind == TILE_ARG_VIEW);
    if (!fits)
        return FAIL("kernel '%s': parameter '%s' expects %s, got %s", b->name, param_name(b, i),
                    kind_name((int32_t)kind), kind_name(arg->kind));
    if (!dtype_fits(arg->dtype, (tile_dtype)b->params[i].dtype, scalar))
        return FAIL("kernel '%s': parameter '%s' expects %s %s, got "
                    "%s",
                    b->name, param_name(b, i), scalar ? "a scalar of type" : "elements of type",
                    tile_dtype_name((tile_dtype)b->params[i].dtype), given_name(arg->dtype));
    return true;
}

/* Compiled code relies on elements that are aligned to their size. */
static bool check_alignment(bind *b, uint32_t i, const tile_arg *arg)
{
    tile_dtype dtype = (tile_dtype)b->params[i].dtype;
    uintptr_t bytes = (uintptr_t)(tile_dtype_bits(dtype) + 7) / 8;
    if (!((uintptr_t)arg->address & (bytes - 1))) /* a power of two; a division takes long */
        return true;
    return FAIL("kernel '%s': parameter '%s': the address %p is not aligned to an element of type "
                "%s: it must be a multiple of %u",
                b->name, param_name(b, i), arg->address, tile_dtype_name(dtype), (unsigned)bytes);
}

/* With a size it is a view of a buffer: see tile_arg_in_buffer. */
static bool no_address(bind *b, uint32_t i, const tile_arg *arg)
{
    if (!arg->bytes)
        return FAIL("kernel '%s': parameter '%s': the address is NULL", b->name, param_name(b, i));
    return FAIL("kernel '%s': parameter '%s': where the view begins, its buffer of %" PRIu64
                " bytes has no element of type %s",
                b->name, param_name(b, i), arg->bytes,
                tile_dtype_name((tile_dtype)b->params[i].dtype));
}

static bool check_view(bind *b, uint32_t i, const tile_arg *arg)
{
    uint32_t rank = b->params[i].rank;
    if (arg->rank < 0 || (uint32_t)arg->rank != rank)
        return FAIL("kernel '%s': parameter '%s' expects a view of %u ax%s, got %d", b->name,
                    param_name(b, i), rank, rank == 1 ? "is" : "es", arg->rank);
    int64_t total = 1;
    for (uint32_t axis = 0; axis < rank; axis++) {
        int64_t n = arg->extent[axis];
        if (n < 0)
            return FAIL("kernel '%s': parameter '%s': extent of axis %u is %" PRId64
                        ", less than 0",
                        b->name, param_name(b, i), axis, n);
        if (n > INT32_MAX && !dim_of(b, i, axis, false)->is_i64)
            return FAIL("kernel '%s': parameter '%s': extent of axis %u is %" PRId64
                        ", the maximum is %d (declare it i64 for more)",
                        b->name, param_name(b, i), axis, n, INT32_MAX);
        total *= n > 0;
    }
    if (total && !arg->address)
        return no_address(b, i, arg);
    return !total || check_alignment(b, i, arg);
}

/* Products of extents and strides saturate; views too large for memory are found later. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* The elements of a row, including the padding of packed elements to whole bytes. */
static int64_t padded(int64_t n, int32_t dtype)
{
    return tl_is_packed_dtype((tile_dtype)dtype) && n % 2 && n < INT64_MAX ? n + 1 : n;
}

/* For a view without strides: dense, row-major; rows of packed elements begin on a byte. */
static void dense_strides(tile_arg *a)
{
    int64_t stride = 1;
    for (int axis = a->rank - 1; axis >= 0; axis--) {
        a->stride[axis] = stride;
        stride = times(stride, a->extent[axis] > 0 ? a->extent[axis] : 1);
        if (axis == a->rank - 1)
            stride = padded(stride, a->dtype);
    }
}

static bool take_argument(bind *b, uint32_t i, const tile_arg *arg)
{
    if (!check_kind(b, i, arg))
        return false;
    bool view = b->params[i].kind == TILE_PARAM_VIEW;
    if (view && !check_view(b, i, arg))
        return false;
    if (b->params[i].kind == TILE_PARAM_POINTER && !check_alignment(b, i, arg))
        return false;
    tile_arg *a = &b->out->args[i];
    memcpy(a, arg, view ? sizeof *a : offsetof(tile_arg, extent));
    a->kind = (int32_t)b->params[i].kind;
    a->dtype = (int32_t)b->params[i].dtype;
    if (view && !arg->strided)
        dense_strides(a);
    a->strided = view;
    return true;
}

/* ---- 2: names ---- */

/* The value of name `s` at one extent or stride; false if that does not determine it (the stride of
 * an axis with at most one element). */
static bool sym_at(const bind *b, uint32_t s, uint32_t param, uint32_t axis, bool stride,
                   int64_t *out)
{
    const tile_image_dim *d = dim_of(b, param, axis, stride);
    const tile_arg *a = &b->out->args[param];
    if (d->kind != TILE_DIM_SYM || d->value != s || (stride && a->extent[axis] <= 1))
        return false;
    *out = stride ? a->stride[axis] : a->extent[axis];
    return true;
}

/* The names that are `missing`, for their first places do not determine them: the other places are
 * tried in order, once. */
static void find_elsewhere(bind *b, bool *missing, uint32_t n)
{
    for (uint32_t p = 0; n && p < b->k->nparams; p++) {
        uint32_t ndims = b->params[p].kind == TILE_PARAM_VIEW ? 2 * b->params[p].rank : 0;
        for (uint32_t i = 0; n && i < ndims; i++) { /* an axis's extent, then its stride */
            const tile_image_dim *d = dim_of(b, p, i / 2, i % 2);
            if (d->kind == TILE_DIM_SYM && missing[d->value] &&
                sym_at(b, (uint32_t)d->value, p, i / 2, i % 2, &b->out->syms[d->value])) {
                missing[d->value] = false;
                n--;
            }
        }
    }
}

static void find_names(bind *b)
{
    bool missing[TL_MAX_SYMS];
    uint32_t n = 0;
    for (uint32_t s = 0; s < b->k->nsyms; s++) {
        const tile_image_sym *sym = sym_of(b, s);
        const tile_arg *a = &b->out->args[sym->param];
        b->out->syms[s] = sym->is_stride ? a->stride[sym->axis] : a->extent[sym->axis];
        missing[s] = sym->is_stride && a->extent[sym->axis] <= 1;
        n += missing[s];
    }
    find_elsewhere(b, missing, n);
}

/* ---- expressions ---- */

static bool evaluate(bind *b, const tile_image_expr *e, int64_t *out)
{
    tl_hx_env env = {b->out->syms, b->out->args, b->device->processors};
    tl_hx_result r = tl_hostexpr_eval(tl_image_at(b->image, e->code), e->ncode, &env, out);
    if (r == TL_HX_FINE)
        return true;
    return FAIL("kernel '%s': '%s' %s", b->name, tl_image_text(b->image, e->text),
                r == TL_HX_DIV_ZERO ? "divides by zero" : "does not fit in 64 bits");
}

/* Does the text contain the word, and not only as part of another one? */
static bool has_word(const char *text, const char *word)
{
    static const char *const letters =
        "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strlen(word);
    for (const char *at = strstr(text, word); n && at; at = strstr(at + 1, word))
        if ((at == text || !strchr(letters, at[-1])) && (!at[n] || !strchr(letters, at[n])))
            return true;
    return false;
}

/* Adds the kernel's constants, which are plain values in the code. Returns the new end of the
 * text. */
static size_t describe_constants(const bind *b, const tile_image_expr *e, char *text, size_t size,
                                 size_t n, uint32_t *shown)
{
    const tile_image_const *consts = tl_image_at(b->image, b->k->consts);
    const char *source = tl_image_text(b->image, e->text);
    for (uint32_t i = 0; i < b->k->nconsts && *shown < 8 && n + 96 < size; i++) {
        const char *name = tl_image_text(b->image, consts[i].name);
        if (has_word(source, name))
            n += (size_t)snprintf(text + n, size - n, "%s%.40s = %.40s", (*shown)++ ? ", " : " (",
                                  name, tl_image_text(b->image, consts[i].value));
    }
    return n;
}

/* " (N = 17, n = 3, B = 16)": what the names in an expression stand for. */
static void describe_names(const bind *b, const tile_image_expr *e, char *text, size_t size)
{
    const tile_hx_ins *code = tl_image_at(b->image, e->code);
    size_t n = 0;
    uint32_t shown = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < e->ncode && shown < 8 && n + 96 < size; i++) {
        bool repeated = code[i].op != TILE_HX_SYM && code[i].op != TILE_HX_ARG;
        for (uint32_t j = 0; j < i && !repeated; j++)
            repeated = code[j].op == code[i].op && code[j].imm == code[i].imm;
        if (repeated)
            continue;
        n += (size_t)snprintf(text + n, size - n, "%s", shown++ ? ", " : " (");
        if (code[i].op == TILE_HX_SYM) {
            n += (size_t)snprintf(text + n, size - n, "%.40s = %" PRId64,
                                  tl_image_text(b->image, sym_of(b, code[i].imm)->name),
                                  b->out->syms[code[i].imm]);
            continue;
        }
        const tile_arg *a = &b->out->args[code[i].imm];
        tile_dtype t = (tile_dtype)a->dtype;
        n += (size_t)snprintf(text + n, size - n, "%.40s = ", param_name(b, (uint32_t)code[i].imm));
        if (tl_is_float_dtype(t))
            n += (size_t)snprintf(text + n, size - n, "%s",
                                  TL_NUMBER("%g", tl_decode_float(t, a->scalar)));
        else
            n += (size_t)snprintf(text + n, size - n, "%" PRId64, tl_decode_int(t, a->scalar));
    }
    n = describe_constants(b, e, text, size, n, &shown);
    if (shown && n < size)
        snprintf(text + n, size - n, ")");
}

/* ---- 3: extents and strides ---- */

/* name: the extent as declared, "N" or "K / 4", or "". source: ", as in parameter 'a'" if another
 * parameter determines the value. */
static void describe_dim(const bind *b, uint32_t param, uint32_t axis, bool stride,
                         const tile_image_dim *d, char *name, char *source, size_t size)
{
    name[0] = source[0] = 0;
    if (d->kind == TILE_DIM_EXPR)
        snprintf(name, size, " %.80s", tl_image_text(b->image, expr_of(b, d->value)->text));
    if (d->kind != TILE_DIM_SYM)
        return;
    const tile_image_sym *s = sym_of(b, d->value);
    snprintf(name, size, " %.80s", tl_image_text(b->image, s->name));
    if (s->param == param && s->axis != axis)
        snprintf(source, size, ", as axis %u has", s->axis);
    else if (s->param == param && (s->is_stride != 0) != stride)
        snprintf(source, size, ", as its %s is", s->is_stride ? "stride" : "extent");
    else if (s->param != param)
        snprintf(source, size, ", as in parameter '%.80s'", param_name(b, s->param));
}

static bool wrong_dim(bind *b, uint32_t param, uint32_t axis, bool stride, int64_t want,
                      int64_t got)
{
    char name[128], source[128];
    const tile_image_dim *d = dim_of(b, param, axis, stride);
    describe_dim(b, param, axis, stride, d, name, source, sizeof name);
    bool dense = stride && d->kind == TILE_DIM_DENSE;
    return FAIL("kernel '%s': parameter '%s': %s%s (axis %u) must be "
                "%" PRId64 "%s, got %" PRId64 "%s",
                b->name, param_name(b, param), stride ? "stride" : "extent", name, axis, want,
                source, got, dense ? "; others need a stride in the declaration: x[N : s]" : "");
}

/* The value that the declaration requires of an extent or stride. dense: the value of
 * TILE_DIM_DENSE here. */
static bool demanded(bind *b, const tile_image_dim *d, int64_t dense, int64_t *out)
{
    switch ((tile_dim_kind)d->kind) {
    case TILE_DIM_CONST: *out = d->value; return true;
    case TILE_DIM_SYM: *out = b->out->syms[d->value]; return true;
    case TILE_DIM_EXPR: return evaluate(b, expr_of(b, d->value), out);
    case TILE_DIM_DENSE: *out = dense; return true;
    }
    return false;
}

static bool check_extents(bind *b, uint32_t param)
{
    for (uint32_t axis = 0; axis < b->params[param].rank; axis++) {
        int64_t want, got = b->out->args[param].extent[axis];
        if (!demanded(b, dim_of(b, param, axis, false), 0, &want))
            return false;
        if (want != got)
            return wrong_dim(b, param, axis, false, want, got);
    }
    return true;
}

static bool is_empty(const tile_arg *a)
{
    for (int axis = 0; axis < a->rank; axis++)
        if (a->extent[axis] == 0)
            return true;
    return false;
}

static bool check_strides(bind *b, uint32_t param)
{
    tile_arg *a = &b->out->args[param];
    bool empty = is_empty(a);
    int64_t dense = 1;
    for (int axis = a->rank - 1; axis >= 0; axis--) {
        int64_t want;
        if (!demanded(b, dim_of(b, param, (uint32_t)axis, true), dense, &want))
            return false;
        if (want != a->stride[axis] && a->extent[axis] > 1 && !empty)
            return wrong_dim(b, param, (uint32_t)axis, true, want, a->stride[axis]);
        a->stride[axis] = want;
        dense = times(want, a->extent[axis]);
        if (axis == a->rank - 1)
            dense = padded(dense, a->dtype);
    }
    return true;
}

/* ---- memory behind parameters ---- */

bool tl_view_bytes(const tile_arg *a, uint64_t *out)
{
    int64_t last = 0;
    bool overflow = false, negative = false;
    for (int axis = 0; axis < a->rank; axis++) {
        int64_t span;
        overflow |= __builtin_mul_overflow(a->extent[axis] - 1, a->stride[axis], &span) ||
                    __builtin_add_overflow(last, span, &last);
        negative |= a->stride[axis] < 0 && a->extent[axis] > 1;
    }
    if (overflow || last > INT64_MAX / 8 - 1)
        return false;
    int bits = tile_dtype_bits((tile_dtype)a->dtype);
    uint64_t bytes =
        bits == 4 ? (uint64_t)last / 2 + 1 : ((uint64_t)last + 1) * (uint64_t)(bits / 8);
    *out = is_empty(a) ? 0 : negative ? UINT64_MAX : bytes;
    return true;
}

static bool view_bytes(bind *b, uint32_t param, uint64_t *out)
{
    return tl_view_bytes(&b->out->args[param], out) ||
           FAIL("kernel '%s': parameter '%s' is larger than memory", b->name, param_name(b, param));
}

static bool measure(bind *b, uint32_t param)
{
    tile_arg *a = &b->out->args[param];
    uint64_t need = 0, given = a->bytes;
    bool view = a->kind == TILE_ARG_VIEW;
    b->out->spans[param] = 0;
    if (a->kind == TILE_ARG_SCALAR)
        return true;
    if (view && !view_bytes(b, param, &need))
        return false;
    b->out->spans[param] = need;
    if (!given && b->checked && a->address)
        given = tl_buffer_bytes_at((tile_device *)b->device, a->address);
    if (given && need != UINT64_MAX && need > given)
        return FAIL("kernel '%s': parameter '%s' needs %" PRIu64 " bytes of memory, got %" PRIu64,
                    b->name, param_name(b, param), need, given);
    a->bytes = given && given != UINT64_MAX ? given : view ? need : UINT64_MAX;
    return true;
}

static bool may_alias(const bind *b, uint32_t x, uint32_t y)
{
    const tile_image_alias *a = tl_image_at(b->image, b->k->aliases);
    for (uint32_t i = 0; i < b->k->naliases; i++)
        if ((a[i].a == x && a[i].b == y) || (a[i].a == y && a[i].b == x))
            return true;
    return false;
}

/* A pointer says nothing of the memory that it is for; with checks on, that is the element that it
 * points to. */
static bool overlap(const bind *b, uint32_t i, uint32_t j)
{
    const tile_arg *x = &b->out->args[i], *y = &b->out->args[j];
    if (x->kind == TILE_ARG_SCALAR || y->kind == TILE_ARG_SCALAR || !x->address || !y->address)
        return false;
    if (x->kind == TILE_ARG_VIEW && y->kind == TILE_ARG_VIEW)
        return tl_views_overlap(x, y);
    return b->checked && x->address == y->address && !is_empty(x) && !is_empty(y);
}

/* Most pairs are settled here. Spans of pointers and scalars are 0. */
static bool may_meet(const bind *b, uint32_t i, uint32_t j)
{
    uintptr_t p = (uintptr_t)b->out->args[i].address, q = (uintptr_t)b->out->args[j].address;
    const uint64_t *spans = b->out->spans;
    return q - p < spans[i] || p - q < spans[j] || (b->checked && p == q) ||
           (spans[i] == UINT64_MAX || spans[j] == UINT64_MAX);
}

static bool check_pair(bind *b, uint32_t x, uint32_t y)
{
    if (may_alias(b, x, y) || !overlap(b, x, y))
        return true;
    return FAIL("kernel '%s': parameters '%s' and '%s' overlap, which requires alias(%s, %s)",
                b->name, param_name(b, x), param_name(b, y), param_name(b, x), param_name(b, y));
}

/* Each that may be written, with every other one. */
static bool check_aliases(bind *b)
{
    uint32_t n = b->k->nparams;
    for (uint32_t i = 0; i < n; i++) {
        if (b->params[i].is_const || b->params[i].kind == TILE_PARAM_SCALAR)
            continue;
        for (uint32_t j = 0; j < n; j++) {
            bool seen = j < i && !b->params[j].is_const;
            if (j == i || seen || !may_meet(b, i, j))
                continue;
            if (!check_pair(b, i < j ? i : j, i < j ? j : i))
                return false;
        }
    }
    return true;
}

/* ---- 4: require, assume ---- */

/* `failed`: status for "does not hold". */
static tl_bind_result check_clause(bind *b, const char *word, uint32_t index, tl_bind_result failed)
{
    const tile_image_expr *e = expr_of(b, index);
    int64_t value;
    if (!evaluate(b, e, &value))
        return TL_BIND_ERROR;
    double as_float;
    memcpy(&as_float, &value, sizeof as_float);
    if (e->is_float ? as_float != 0 : value != 0)
        return TL_BIND_OK;
    char names[512];
    describe_names(b, e, names, sizeof names);
    (void)FAIL("kernel '%s': %s(%s) does not hold%s", b->name, word,
               tl_image_text(b->image, e->text), names);
    return failed;
}

static tl_bind_result check_clauses(bind *b)
{
    const uint32_t *requires = tl_image_at(b->image, b->k->requires_off);
    const uint32_t *assumes = tl_image_at(b->image, b->k->assumes);
    tl_bind_result r = TL_BIND_OK;
    for (uint32_t i = 0; i < b->k->nrequires && r == TL_BIND_OK; i++)
        r = check_clause(b, "require", requires[i], TL_BIND_REQUIRE);
    for (uint32_t i = 0; b->checked && i < b->k->nassumes && r == TL_BIND_OK; i++)
        r = check_clause(b, "assume", assumes[i], TL_BIND_ERROR);
    return r;
}

/* ---- 5: the grid ---- */

static bool grid_values(bind *b, const int64_t *grid, size_t naxes, int64_t *values)
{
    tl_launch *l = &b->out->launch;
    l->ngrid = grid ? (uint32_t)naxes : b->k->ngrid;
    if (l->ngrid == 0 || (grid && naxes > TILE_MAX_GRID))
        return FAIL("kernel '%s' has %s: a grid has 1 to %d axes", b->name,
                    grid ? "a grid of that many axes" : "no grid clause, and the launch gave none",
                    TILE_MAX_GRID);
    for (uint32_t i = 0; i < l->ngrid; i++) {
        if (grid)
            values[i] = grid[i];
        else if (!evaluate(b, expr_of(b, b->k->grid[i]), &values[i]))
            return false;
        if (values[i] < 0)
            return FAIL("kernel '%s': axis %u of the grid is %" PRId64 ", but must be 0 or more",
                        b->name, i, values[i]);
    }
    return true;
}

static tl_bind_result too_many_programs(bind *b, const int64_t *values, double programs)
{
    char text[256];
    size_t n = 0;
    for (uint32_t i = 0; i < b->out->launch.ngrid; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%" PRId64, i ? ", " : "", values[i]);
    (void)FAIL("kernel '%s': the grid (%s) has %s programs, the maximum is %d", b->name, text,
               TL_NUMBER("%.0f", programs), INT32_MAX);
    return TL_BIND_ERROR;
}

static bool set_group(bind *b)
{
    tl_launch *l = &b->out->launch;
    int64_t group = 0;
    if (b->k->group > 0 && l->ngrid >= 2 && !evaluate(b, expr_of(b, b->k->group - 1), &group))
        return false;
    l->group = group > 0 && group < l->grid[0] ? (int32_t)group : 0;
    return true;
}

static tl_bind_result set_grid(bind *b, const int64_t *grid, size_t naxes)
{
    tl_launch *l = &b->out->launch;
    int64_t values[TILE_MAX_GRID];
    double programs = 1;
    b->out->own_grid = !grid;
    if (!grid_values(b, grid, naxes, values))
        return TL_BIND_ERROR;
    for (uint32_t i = 0; i < l->ngrid; i++)
        programs *= (double)values[i];
    if (programs > INT32_MAX)
        return too_many_programs(b, values, programs);
    if (programs == 0)
        return TL_BIND_EMPTY;
    for (uint32_t i = 0; i < TILE_MAX_GRID; i++)
        l->grid[i] = i < l->ngrid ? (int32_t)values[i] : 1;
    l->programs = (int64_t)programs;
    TL_DEBUG_INVARIANT(l->programs > 0 && l->programs <= INT32_MAX, "%lld programs",
                       (long long)l->programs);
    return set_group(b) ? TL_BIND_OK : TL_BIND_ERROR;
}

/* ---- 6: the parameter block ---- */

/* TILE_SLOT_BY_NPID; an empty grid divides nothing. */
static uint64_t divisor(int64_t n)
{
    uint64_t s = 31, d = n > 0 ? (uint64_t)n : 1;
    while ((uint64_t)1 << (s - 31) < d)
        s++;
    return (((uint64_t)1 << s) + d - 1) / d | s << 32;
}

static uint64_t map_value(const tile_image_slot *s, tl_bound *b)
{
    TL_DEBUG_INVARIANT(b->nmaps < TL_MAX_MAPS, "%u tensor maps", b->nmaps);
    tl_tensor_map *m = &b->maps[b->nmaps++];
    tl_tensor_map_of(s, &b->args[s->param], m);
    return (uint64_t)(uintptr_t)m;
}

static uint64_t slot_value(const tile_image_slot *s, tl_bound *b)
{
    const tile_arg *a = &b->args[s->kind <= TILE_SLOT_BYTES ? s->param : 0];
    switch ((tile_slot_kind)s->kind) {
    case TILE_SLOT_POINTER: return (uint64_t)(uintptr_t)a->address;
    case TILE_SLOT_SCALAR: return a->scalar;
    case TILE_SLOT_EXTENT: return (uint64_t)a->extent[s->axis];
    case TILE_SLOT_STRIDE: return (uint64_t)a->stride[s->axis];
    case TILE_SLOT_BYTES: return a->bytes;
    case TILE_SLOT_NPID: return (uint64_t)b->launch.grid[s->axis];
    case TILE_SLOT_MINUS_NPID: return -(uint64_t)b->launch.grid[s->axis];
    case TILE_SLOT_BY_NPID: return divisor(b->launch.grid[s->axis]);
    case TILE_SLOT_GROUP: return (uint64_t)b->launch.group;
    case TILE_SLOT_DIES:
        return (uint64_t)b->launch.programs / s->param | (uint64_t)b->launch.programs % s->param
                                                             << 32;
    case TILE_SLOT_MAP: return map_value(s, b);
    case TILE_SLOT_BLOCKS: return (uint64_t)b->launch.programs; /* or fewer, when it starts */
    case TILE_SLOT_DEBUG: break;                                /* filled in by the driver */
    }
    return 0;
}

int32_t tl_cluster_of(const tl_launch *l, const tile_image_kernel *k)
{
    int32_t n = (int32_t)k->cluster, axis = (int32_t)k->cluster_axis;
    bool whole = n > 1 && l->grid[axis] % n == 0 && (axis || l->group % n == 0);
    return whole ? n : 1;
}

void tl_bind_slots(tl_bound *b)
{
    tl_launch *l = &b->launch;
    const tile_image_kernel *k = b->form->kernel;
    const tile_image_slot *s = tl_image_at(b->form->image, k->slots);
    TL_DEBUG_INVARIANT(k->nslots <= TL_MAX_SLOTS, "%u slots", k->nslots);
    l->image = b->form->image;
    l->kernel = k;
    l->nslots = k->nslots;
    l->cluster = tl_cluster_of(l, k);
    l->dies = 0;
    l->blocks_slot = -1;
    b->nmaps = 0;
    for (uint32_t i = 0; i < l->nslots; i++) {
        b->slots[i] = slot_value(&s[i], b);
        if (s[i].kind == TILE_SLOT_DIES)
            l->dies = (int32_t)s[i].param;
        if (s[i].kind == TILE_SLOT_BLOCKS)
            l->blocks_slot = (int32_t)i;
    }
    l->maps = b->maps;
    l->nmaps = b->nmaps;
}

static bool take_arguments(bind *b, const tile_arg *args, size_t nargs)
{
    if (nargs != b->k->nparams)
        return FAIL("kernel '%s' takes %u argument%s, got %zu", b->name, b->k->nparams,
                    b->k->nparams == 1 ? "" : "s", nargs);
    for (uint32_t i = 0; i < b->k->nparams; i++)
        if (!take_argument(b, i, &args[i]))
            return false;
    find_names(b);
    return true;
}

static bool bind_arguments(bind *b, const tile_arg *args, size_t nargs)
{
    if (!take_arguments(b, args, nargs))
        return false;
    for (uint32_t i = 0; i < b->k->nparams; i++)
        if (b->params[i].kind == TILE_PARAM_VIEW && !check_extents(b, i))
            return false;
    for (uint32_t i = 0; i < b->k->nparams; i++)
        if (b->params[i].kind == TILE_PARAM_VIEW && !check_strides(b, i))
            return false;
    for (uint32_t i = 0; i < b->k->nparams; i++)
        if (!measure(b, i))
            return false;
    return true;
}

/* What the grid, the form and the start do not set. */
static void begin_launch(bind *b)
{
    tl_launch *l = &b->out->launch;
    l->programs = l->blocks = 0;
    l->sequence = 0;
    l->flags = 0;
    l->part = (tl_part){0};
    l->nargs = b->k->nparams;
    l->args = b->out->args;
    l->slots = b->out->slots;
}

static bind bind_of(const tile_device *device, const tl_instance *instance, tl_bound *out)
{
    const tile_image_kernel *k = instance->kernel;
    return (bind){device,
                  instance->image,
                  k,
                  tl_image_at(instance->image, k->params),
                  tl_image_text(instance->image, k->name),
                  (k->flags & TILE_KERNEL_CHECKED) != 0,
                  out};
}

bool tl_bind_names(const tile_device *device, const tl_instance *instance, const tile_arg *args,
                   size_t nargs, tl_bound *out)
{
    bind b = bind_of(device, instance, out);
    return take_arguments(&b, args, nargs);
}

tl_bind_result tl_bind(const tile_device *device, const tl_instance *instance, const tile_arg *args,
                       size_t nargs, const int64_t *grid, size_t naxes, tl_bound *out)
{
    bind b = bind_of(device, instance, out);
    if (!bind_arguments(&b, args, nargs))
        return TL_BIND_ERROR;
    tl_bind_result r = check_clauses(&b);
    if (r == TL_BIND_OK && !check_aliases(&b))
        r = TL_BIND_ERROR;
    begin_launch(&b);
    return r == TL_BIND_OK ? set_grid(&b, grid, naxes) : r;
}
