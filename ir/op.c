/* Facts about every op: the tables of ops.def, attrs.def and enums.def, attributes, effects, and
 * places of memory ops. */
#include "ir/ir.h"
#include "ir/numeric.h"
#include <string.h>

/* ---- tables ---- */

_Static_assert(TL_ATTR_COUNT <= 64, "attribute sets are 64 bits");
#define OP(ID, text, nin, nout, nregions, rule, attrs, flags, layout, doc) [TL_OP_##ID] = attrs,
#define A(ID) (1ull << TL_ATTR_##ID)
#define O(ID) 0ull
static const uint64_t required[TL_OP_COUNT] = {
#include "ir/ops.def"
};
#undef A
#undef O
#define OP(ID, text, nin, nout, nregions, rule, attrs, flags, layout, doc) [TL_OP_##ID] = attrs,
#define A(ID) 0ull
#define O(ID) (1ull << TL_ATTR_##ID)
static const uint64_t optional[TL_OP_COUNT] = {
#include "ir/ops.def"
};
#undef A
#undef O

uint64_t tl_op_required_attrs(TlOpcode opcode)
{
    return required[opcode];
}

uint64_t tl_op_optional_attrs(TlOpcode opcode)
{
    return optional[opcode];
}

static const TlOpInfo ops[TL_OP_COUNT] = {
#define OP(ID, text, nin, nout, nregions, rule, attrs, flags, layout, doc)                         \
    [TL_OP_##ID] = {text,                                                                          \
                    nin,                                                                           \
                    nout,                                                                          \
                    nregions,                                                                      \
                    flags,                                                                         \
                    doc},
#include "ir/ops.def"
};

static const TlElemWork works[TL_OP_COUNT] = {
#define OP(...)
#define ELEM(ID, text, nin, rule, attrs, flags, gpu, cpu, flops, ring, doc)                        \
    [TL_OP_##ID] = {gpu, cpu, flops, RING_##ring},
#define RING_INTS false
#define RING_HASH true
#include "ir/ops.def"
};

/* Ops that carry values through regions: where these begin; -1: nowhere. */
static const struct {
    bool carries;
    int8_t inits, args;
} flows[TL_OP_COUNT] = {
#define OP(...)
#define REGION(ID, text, nin, nregions, inits, args, rule, attrs, doc)                             \
    [TL_OP_##ID] = {true, inits, args},
#include "ir/ops.def"
};

static const char *const attr_names[TL_ATTR_COUNT] = {
#define ATTR(ID, text, form) [TL_ATTR_##ID] = text,
#include "ir/attrs.def"
};

static const TlAttrForm attr_forms[TL_ATTR_COUNT] = {
#define ATTR(ID, text, form) [TL_ATTR_##ID] = TL_FORM_##form,
#include "ir/attrs.def"
};

static const char *const combine_names[] = {
#define COMBINE(ID, text, ...) text,
#include "ir/enums.def"
    NULL};
static const char *const rmw_names[] = {
#define RMW(ID, text, ...) text,
#include "ir/enums.def"
    NULL};
static const char *const order_names[] = {
#define ORDER(ID, text) text,
#include "ir/enums.def"
    NULL};
static const char *const scope_names[] = {
#define SCOPE(ID, text) text,
#include "ir/enums.def"
    NULL};
static const char *const cache_names[] = {
#define CACHE(ID, text) text,
#include "ir/enums.def"
    NULL};
static const char *const evict_names[] = {
#define EVICT(ID, text) text,
#include "ir/enums.def"
    NULL};
static const char *const precision_names[] = {
#define PRECISION(ID, text) text,
#include "ir/enums.def"
    NULL};
static const char *const approx_names[] = {
#define APPROX(ID, text) text,
#include "ir/enums.def"
    NULL};
static const char *const round_names[] = {
#define ROUND(ID, text) text,
#include "ir/enums.def"
    NULL};
static const char *const way_names[] = {
#define WAY(ID, text) text,
#include "ir/enums.def"
    NULL};

static const char *const *family_names(TlAttrForm family)
{
    switch (family) {
    case TL_FORM_COMBINE: return combine_names;
    case TL_FORM_RMW: return rmw_names;
    case TL_FORM_ORDER: return order_names;
    case TL_FORM_SCOPE: return scope_names;
    case TL_FORM_CACHE: return cache_names;
    case TL_FORM_EVICT: return evict_names;
    case TL_FORM_PRECISION: return precision_names;
    case TL_FORM_ROUND: return round_names;
    case TL_FORM_APPROX: return approx_names;
    case TL_FORM_WAY: return way_names;
    case TL_FORM_INT: case TL_FORM_FLAG: case TL_FORM_STR: case TL_FORM_INTS:
    case TL_FORM_CONST: case TL_FORM_AXES: case TL_FORM_SPAN: break;
    }
    return NULL;
}

const TlElemWork *tl_elem_work(TlOpcode opcode)
{
    return &works[opcode];
}

TlValue *tl_flows_to(const TlOp *op, uint32_t i)
{
    TL_ASSERT(i < op->nin, "operand %u of %s", i, ops[op->opcode].text);
    const TlOp *parent = op->block->parent;
    int inits = flows[op->opcode].inits;
    if (flows[op->opcode].carries)
        return inits < 0 || i < (uint32_t)inits
                   ? NULL
                   : op->regions[0]->args[i - (uint32_t)inits + (uint32_t)flows[op->opcode].args];
    if (op->opcode == TL_OP_CONDITION)
        return i ? parent->regions[1]->args[i - 1] : NULL;
    if (op->opcode != TL_OP_YIELD || !flows[parent->opcode].carries)
        return NULL;
    int args = flows[parent->opcode].args;
    return args < 0 ? parent->out[i] : parent->regions[0]->args[i + (uint32_t)args];
}

TlValue *tl_leads_into(const TlValue *v)
{
    bool leads = v->def && ops[v->def->opcode].flags & (F_BASE | F_VIEWLIKE);
    return leads ? tl_in(v->def, 0) : NULL;
}

const TlOpInfo *tl_op_info(TlOpcode opcode)
{
    TL_ASSERT((unsigned)opcode < TL_OP_COUNT, "opcode %d", (int)opcode);
    return &ops[opcode];
}

static bool same_text(const char *name, const char *text, size_t length)
{
    return strncmp(name, text, length) == 0 && name[length] == 0;
}

bool tl_opcode_parse(const char *text, size_t length, TlOpcode *out)
{
    for (int i = 0; i < TL_OP_COUNT; i++) {
        if (!same_text(ops[i].text, text, length)) continue;
        *out = (TlOpcode)i;
        return true;
    }
    return false;
}

const char *tl_attr_name(TlAttrId id)
{
    TL_ASSERT((unsigned)id < TL_ATTR_COUNT, "attribute %d", (int)id);
    return attr_names[id];
}

TlAttrForm tl_attr_form(TlAttrId id)
{
    TL_ASSERT((unsigned)id < TL_ATTR_COUNT, "attribute %d", (int)id);
    return attr_forms[id];
}

const char *tl_enum_name(TlAttrForm family, int64_t value)
{
    const char *const *names = family_names(family);
    if (!names || value < 0) return NULL;
    for (int64_t i = 0; names[i]; i++)
        if (i == value) return names[i];
    return NULL;
}

int64_t tl_enum_parse(TlAttrForm family, const char *text, size_t length)
{
    const char *const *names = family_names(family);
    for (int64_t i = 0; names && names[i]; i++)
        if (same_text(names[i], text, length)) return i;
    return -1;
}

/* ---- attributes of one op: a short array, at most one of each id ---- */

const TlAttr *tl_attr(const TlOp *op, TlAttrId id)
{
    for (uint32_t i = 0; i < op->nattrs; i++)
        if (op->attrs[i].id == id) return &op->attrs[i];
    return NULL;
}

int64_t tl_attr_int(const TlOp *op, TlAttrId id, int64_t otherwise)
{
    const TlAttr *a = tl_attr(op, id);
    return a ? a->u.i : otherwise;
}

bool tl_attr_flag(const TlOp *op, TlAttrId id) { return tl_attr(op, id) != NULL; }

void tl_attr_set(TlFn *fn, TlOp *op, TlAttr attr)
{
    TL_ASSERT(fn && (unsigned)attr.id < TL_ATTR_COUNT, "attribute %d", (int)attr.id);
    for (uint32_t i = 0; i < op->nattrs; i++) {
        if (op->attrs[i].id != attr.id) continue;
        op->attrs[i] = attr;
        return;
    }
    TlAttr *attrs = TL_NEW_ARRAY(&fn->module->arena, TlAttr, op->nattrs + 1);
    if (op->nattrs) memcpy(attrs, op->attrs, sizeof *attrs * op->nattrs);
    attrs[op->nattrs++] = attr;
    op->attrs = attrs;
}

uint32_t tl_attr_axis_bits(const TlOp *op, TlAttrId id)
{
    const TlAttr *list = tl_attr(op, id);
    uint32_t axes = 0;
    for (uint32_t i = 0; list && i < list->n; i++)
        axes |= 1u << list->u.ints[i];
    return axes;
}

void tl_attr_set_axis_bits(TlFn *fn, TlOp *op, TlAttrId id, uint32_t axes)
{
    int64_t *list = TL_NEW_ARRAY(&fn->module->arena, int64_t, TL_MAX_VIEW_RANK);
    TlAttr attr = {.id = id, .u.ints = list};
    for (int i = 0; i < TL_MAX_VIEW_RANK; i++)
        if (axes >> i & 1) list[attr.n++] = i;
    tl_attr_set(fn, op, attr);
}

void tl_attr_remove(TlOp *op, TlAttrId id)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->nattrs; i++)
        if (op->attrs[i].id != id) op->attrs[n++] = op->attrs[i];
    op->nattrs = n;
}

/* ---- walking and effects ---- */

/* The first op in the regions from number r on. */
static TlOp *first_inside(const TlOp *op, uint32_t r)
{
    for (; r < op->nregions; r++)
        if (op->regions[r]->first) return op->regions[r]->first;
    return NULL;
}

TlOp *tl_walk_next(const TlOp *at, const TlOp *root)
{
    TlOp *next = first_inside(at, 0);
    while (!next && at != root) {
        if (at->next) return at->next;
        const TlBlock *b = at->block;
        at = b->parent;
        if (!at) return NULL;
        uint32_t r = 0;
        while (at->regions[r] != b) r++;
        next = first_inside(at, r + 1);
    }
    return next;
}

TlBlock *tl_region_after(const TlBlock *b)
{
    const TlOp *op = b->parent;
    for (uint32_t r = 0; r + 1 < op->nregions; r++)
        if (op->regions[r] == b)
            return op->regions[r + 1];
    return NULL;
}

int tl_op_role(const TlOp *op)
{
    const TlBlock *b = op->block;
    while (b->parent && b->parent->opcode != TL_OP_ROLES)
        b = b->parent->block;
    return !b->parent ? -1 : b == b->parent->regions[1];
}

static TlLevel level_of(TlValue *const *list, uint32_t n)
{
    TlLevel level = TL_LEVEL_TILE;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i]->type->kind == TL_BUF)
            return TL_LEVEL_STAGED;
        if (list[i]->type->layout)
            level = TL_LEVEL_LAID_OUT;
    }
    return level;
}

TlLevel tl_fn_level(const TlFn *fn)
{
    TL_ASSERT(fn->body, "'%s' has no body", fn->name);
    TlLevel level = TL_LEVEL_TILE;
    for (const TlOp *op = fn->body->first; op && level != TL_LEVEL_STAGED;
         op = tl_walk_next(op, NULL)) {
        TlLevel of_op = level_of(op->out, op->nout);
        for (uint32_t r = 0; r < op->nregions && of_op == TL_LEVEL_TILE; r++)
            of_op = level_of(op->regions[r]->args, op->regions[r]->nargs);
        if (of_op > level)
            level = of_op;
    }
    return level;
}

uint32_t tl_op_effects(const TlOp *op)
{
    const uint32_t wanted = F_READ | F_WRITE | F_ATOMIC | F_DEBUG | F_BUF_READ | F_BUF_WRITE;
    uint32_t flags = 0;
    for (const TlOp *o = op; o; o = tl_walk_next(o, op))
        flags |= tl_op_info(o->opcode)->flags & wanted;
    return flags;
}

/* ---- places ---- */

/* Pointwise: all index tiles have the same shape, which comes first; no slice precedes the last
 * tile. */
static bool pointwise_shape(uint32_t naxes, const TlAxis *axes, TlValue *const *index, int *rank,
                            int32_t *shape)
{
    const TlType *tile = NULL;
    bool slice_seen = false;
    for (uint32_t i = 0; i < naxes; i++) {
        if (axes[i].kind == TL_AXIS_SLICE) slice_seen = true;
        if (axes[i].kind != TL_AXIS_TILE) continue;
        if (slice_seen || (tile && !tl_same_shape(tile, index[i]->type))) return false;
        tile = index[i]->type;
    }
    memcpy(shape, tile->shape, sizeof *shape * tile->rank);
    *rank = tile->rank;
    for (uint32_t i = 0; i < naxes; i++) {
        if (axes[i].kind != TL_AXIS_SLICE) continue;
        if (*rank == TL_MAX_RANK) return false;
        shape[(*rank)++] = axes[i].width;
    }
    return true;
}

bool tl_place_shape(uint32_t naxes, const TlAxis *axes, TlValue *const *index, int *out_rank,
                    int32_t *out_shape)
{
    bool pointwise = false;
    for (uint32_t i = 0; i < naxes; i++) {
        const TlType *t = index[i]->type;
        if (t->kind != TL_TILE || t->ptr || (axes[i].kind == TL_AXIS_TILE) != (t->rank > 0))
            return false;
        pointwise |= t->rank > 1;
    }
    if (pointwise) return pointwise_shape(naxes, axes, index, out_rank, out_shape);
    *out_rank = 0;
    for (uint32_t i = 0; i < naxes; i++) {
        if (axes[i].kind == TL_AXIS_SCALAR) continue;
        if (*out_rank == TL_MAX_RANK) return false;
        out_shape[(*out_rank)++] =
            axes[i].kind == TL_AXIS_SLICE ? axes[i].width : index[i]->type->shape[0];
    }
    return true;
}

/* Which operands follow the place. */
typedef struct PlaceOperands {
    bool expected, value, slot;
} PlaceOperands;

static const PlaceOperands PLACE_OPERANDS[TL_OP_COUNT] = {
    [TL_OP_STORE] = {.value = true},        [TL_OP_ATOMIC_RMW] = {.value = true},
    [TL_OP_ATOMIC_STORE] = {.value = true}, [TL_OP_ATOMIC_CAS] = {.expected = true, .value = true},
    [TL_OP_BULK_STORE] = {.slot = true},    [TL_OP_COPY] = {.slot = true}};

static TlValue *take(const TlOp *op, uint32_t *at, bool present)
{
    if (!present) return NULL;
    TL_ASSERT(*at < op->nin, "%s: operand %u is missing", tl_op_info(op->opcode)->text, *at);
    return op->in[(*at)++].value;
}

bool tl_makes_buffer(const TlOp *op)
{
    return op->opcode == TL_OP_ALLOC || op->opcode == TL_OP_MBAR || op->opcode == TL_OP_TENSOR;
}

bool tl_is_bulk_copy(const TlOp *op)
{
    enum { OPERANDS = 5 }; /* view or pointer, buffer, slot, barriers, slot */
    return op->opcode == TL_OP_COPY && op->nin >= OPERANDS &&
           tl_in(op, op->nin - 2)->type->kind == TL_BUF &&
           tl_in(op, op->nin - 4)->type->kind == TL_BUF;
}

bool tl_begins_bulk(const TlOp *op)
{
    bool phase = op->opcode == TL_OP_MBAR_WAIT && tl_attr_flag(op, TL_ATTR_ONE);
    return phase || op->opcode == TL_OP_EXPECT || tl_is_bulk_copy(op);
}

TlPlace tl_op_place(const TlOp *op)
{
    TlPlace p = {0};
    TL_ASSERT(op->nin > 0, "%s has no place", tl_op_info(op->opcode)->text);
    uint32_t at = 0;
    p.base = take(op, &at, true);
    const TlAttr *axes = tl_attr(op, TL_ATTR_AXES);
    if (axes) {
        TL_ASSERT(axes->n <= TL_MAX_VIEW_RANK && axes->n < op->nin, "%s: %u axes, %u operands",
                  tl_op_info(op->opcode)->text, axes->n, op->nin);
        p.axes = axes->u.axes;
        p.naxes = axes->n;
        p.index = op->in + 1;
        at += axes->n;
    }
    PlaceOperands follow = PLACE_OPERANDS[op->opcode];
    bool is_bulk = tl_is_bulk_copy(op);
    p.expected = take(op, &at, follow.expected);
    p.value = take(op, &at, follow.value);
    p.mask = take(op, &at, tl_attr_flag(op, TL_ATTR_MASK));
    p.other = take(op, &at, tl_attr_flag(op, TL_ATTR_OTHER));
    p.buf = take(op, &at, follow.slot);
    p.slot = take(op, &at, follow.slot);
    p.bar = take(op, &at, is_bulk);
    p.bar_slot = take(op, &at, is_bulk);
    TL_ASSERT(at == op->nin, "%s: %u operands, %u expected", tl_op_info(op->opcode)->text, op->nin,
              at);
    if (!axes) {
        p.rank = p.base->type->rank;
        memcpy(p.shape, p.base->type->shape, sizeof p.shape);
        return p;
    }
    TlValue *index[TL_MAX_VIEW_RANK];
    for (uint32_t i = 0; i < p.naxes; i++) {
        index[i] = p.index[i].value;
        p.pointwise |= index[i]->type->rank > 1;
    }
    bool legal = tl_place_shape(p.naxes, p.axes, index, &p.rank, p.shape);
    TL_ASSERT(legal, "%s: illegal axes", tl_op_info(op->opcode)->text);
    return p;
}

int tl_place_dim(const TlPlace *p, uint32_t i)
{
    TL_ASSERT(i < p->naxes, "axis %u of %u", i, p->naxes);
    int d = 0, tile_rank = 0;
    for (uint32_t k = 0; k < p->naxes && p->pointwise; k++)
        if (p->axes[k].kind == TL_AXIS_TILE)
            tile_rank = p->index[k].value->type->rank;
    if (p->axes[i].kind == TL_AXIS_SCALAR)
        return -1;
    if (p->pointwise && p->axes[i].kind == TL_AXIS_TILE)
        return 0;
    for (uint32_t k = 0; k < i; k++)
        d += p->axes[k].kind == TL_AXIS_SLICE || (p->axes[k].kind == TL_AXIS_TILE && !p->pointwise);
    return d + tile_rank;
}

/* ---- kinds of reductions ---- */

enum { WORK_OWN = false, WORK_WIDE = true };
typedef enum Takes { TAKES_ANY, TAKES_NUMBERS, TAKES_BITS, TAKES_INTS, TAKES_BOOLS } Takes;

static const struct Combine {
    TlOpcode opcode;
    Takes on, language;
    bool wide;
    TlAgain again;
} combines[] = {
#define COMBINE(ID, text, opcode, on, language, work, again)                                       \
    {TL_OP_##opcode, TAKES_##on, TAKES_##language, WORK_##work, TL_AGAIN_##again},
#include "ir/enums.def"
};

static const struct Combine *combine_of(TlCombine kind)
{
    TL_ASSERT((size_t)kind < sizeof combines / sizeof *combines, "combiner %d", (int)kind);
    return &combines[kind];
}

/* Else it is only stored. */
static bool has_arithmetic(TlDtype d)
{
    return (tl_is_int(d) && tl_dtype_bits(d) >= 8) || (tl_is_float(d) && tl_dtype_bits(d) >= 16);
}

static bool takes(Takes what, TlDtype d)
{
    switch (what) {
    case TAKES_ANY: return true;
    case TAKES_NUMBERS: return has_arithmetic(d);
    case TAKES_BITS: return tl_is_bool(d) || (tl_is_int(d) && has_arithmetic(d));
    case TAKES_INTS: return tl_is_int(d) && has_arithmetic(d);
    case TAKES_BOOLS: return tl_is_bool(d);
    }
    TL_UNREACHABLE("a set of element types %d", (int)what);
}

TlOpcode tl_combine_opcode(TlCombine kind) { return combine_of(kind)->opcode; }
bool tl_combine_takes(TlCombine kind, TlDtype d) { return takes(combine_of(kind)->on, d); }
bool tl_combine_is_wide(TlCombine kind) { return combine_of(kind)->wide; }
TlAgain tl_combine_again(TlCombine kind) { return combine_of(kind)->again; }

bool tl_combine_is_offered(TlCombine kind, TlDtype d)
{
    return (tl_is_bool(d) || has_arithmetic(d)) && takes(combine_of(kind)->language, d);
}

/* ---- atomics ---- */

typedef enum RmwFloats { FLOATS_NONE, FLOATS_WORDS, FLOATS_ALL } RmwFloats;

static const struct Rmw {
    TlCombine combine;
    RmwFloats floats;
} rmws[] = {
#define RMW(ID, text, combine, floats) {TL_COMBINE_##combine, FLOATS_##floats},
#include "ir/enums.def"
};

static const struct Rmw *rmw_of(TlRmw kind)
{
    TL_ASSERT((size_t)kind < sizeof rmws / sizeof *rmws, "atomic %d", (int)kind);
    return &rmws[kind];
}

TlCombine tl_rmw_combine(TlRmw kind)
{
    return rmw_of(kind)->combine;
}

bool tl_rmw_takes(TlRmw kind, TlDtype d)
{
    TlCombine combine = rmw_of(kind)->combine;
    if (!tl_is_float(d))
        return tl_is_bool(d) ? takes(combine_of(combine)->on, d) : has_arithmetic(d);
    switch (rmw_of(kind)->floats) {
    case FLOATS_NONE: return false;
    case FLOATS_WORDS: return tl_is_word(d);
    case FLOATS_ALL: return has_arithmetic(d);
    }
    TL_UNREACHABLE("a set of floats of atomic %d", (int)kind);
}

bool tl_atomic_moves(TlDtype d)
{
    return tl_is_float(d) ? tl_is_word(d) : tl_is_bool(d) || has_arithmetic(d);
}

/* ---- neutral elements ---- */

uint64_t tl_combine_identity(TlCombine kind, TlDtype d)
{
    bool is_float = tl_is_float(d);
    switch (kind) {
    case TL_COMBINE_ADD: return is_float ? tl_bits_from_double(d, -0.0) : 0;
    case TL_COMBINE_MUL: return tl_dtype_one_bits(d);
    case TL_COMBINE_MAX:
        return is_float ? tl_bits_from_double(d, __builtin_nan("")) : tl_dtype_min_bits(d);
    case TL_COMBINE_MIN:
        return is_float ? tl_bits_from_double(d, __builtin_nan("")) : tl_dtype_max_bits(d);
    case TL_COMBINE_AND:
        return tl_is_signed(d) ? tl_bits_from_int(d, -1) : tl_dtype_max_bits(d);
    case TL_COMBINE_OR:
    case TL_COMBINE_XOR: return 0;
    case TL_COMBINE_USER: break;
    }
    TL_UNREACHABLE("combiner %d has no identity", (int)kind);
}

uint64_t tl_combine_of_none(TlCombine kind, TlDtype d)
{
    if (!tl_is_float(d))
        return tl_combine_identity(kind, d);
    switch (kind) {
    case TL_COMBINE_ADD: return 0;
    case TL_COMBINE_MAX: return tl_dtype_min_bits(d);
    case TL_COMBINE_MIN: return tl_dtype_max_bits(d);
    case TL_COMBINE_MUL:
    case TL_COMBINE_AND:
    case TL_COMBINE_OR:
    case TL_COMBINE_XOR:
    case TL_COMBINE_USER: break;
    }
    return tl_combine_identity(kind, d);
}
