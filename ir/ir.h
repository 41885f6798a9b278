/* Tile IR: SSA with structured regions, one block per region, no CFG.
 * Ops are arena nodes on doubly linked lists; values carry a dense id, analyses are arrays by id.
 * All edits go through rewrite.h, which keeps use lists right. See IR.md. */
#ifndef TL_IR_H
#define TL_IR_H
#include "ir/kernel.h"
#include "ir/type.h"

typedef enum TlOpcode {
#define OP(ID, text, nin, nout, nregions, rule, attrs, flags, layout, doc) TL_OP_##ID,
#include "ir/ops.def"
    TL_OP_COUNT
} TlOpcode;

enum {
    F_PURE = 1,      /* no effect; may be removed, moved, merged */
    F_ELEM = 2,      /* result element i depends on operands' element i only */
    F_COMM = 4,      /* operands 0 and 1 may be swapped */
    F_VIEWLIKE = 8,  /* result elements are those of operand 0, by other indices */
    F_READ = 16,     /* reads memory that others may write */
    F_WRITE = 32,    /* writes memory */
    F_ATOMIC = 64,   /* never moved, merged or removed; orders others by its ORDER */
    F_DEBUG = 128,   /* kept where it is, in order */
    F_REGION = 256,  /* meaning includes its regions: effects are the union of theirs */
    F_TERM = 512,    /* ends a block */
    F_BUF_READ = 1024,  /* reads a buffer of shared memory */
    F_BUF_WRITE = 2048, /* writes one */
    F_BASE = 4096       /* of pointers, or a view: it leads into what operand 0 leads into */
};

typedef enum TlAttrId {
#define ATTR(ID, text, form) TL_ATTR_##ID,
#include "ir/attrs.def"
    TL_ATTR_COUNT
} TlAttrId;

typedef enum TlAttrForm {
    TL_FORM_INT,
    TL_FORM_FLAG,
    TL_FORM_STR,
    TL_FORM_INTS,
    TL_FORM_CONST,
    TL_FORM_AXES,
    TL_FORM_COMBINE,
    TL_FORM_RMW,
    TL_FORM_ORDER,
    TL_FORM_SCOPE,
    TL_FORM_CACHE,
    TL_FORM_EVICT,
    TL_FORM_PRECISION,
    TL_FORM_ROUND,
    TL_FORM_APPROX,
    TL_FORM_WAY,
    TL_FORM_SPAN
} TlAttrForm;

typedef enum TlCombine {
#define COMBINE(ID, ...) TL_COMBINE_##ID,
#include "ir/enums.def"
} TlCombine;
/* What combining elements a second time changes; IF_0: nothing where they are 0. */
typedef enum TlAgain { TL_AGAIN_NOTHING, TL_AGAIN_NOTHING_IF_0, TL_AGAIN_MUCH } TlAgain;
typedef enum TlRmw {
#define RMW(ID, ...) TL_RMW_##ID,
#include "ir/enums.def"
} TlRmw;
typedef enum TlOrder {
#define ORDER(ID, text) TL_ORDER_##ID,
#include "ir/enums.def"
} TlOrder;
typedef enum TlScope {
#define SCOPE(ID, text) TL_SCOPE_##ID,
#include "ir/enums.def"
} TlScope;
typedef enum TlCache {
#define CACHE(ID, text) TL_CACHE_##ID,
#include "ir/enums.def"
} TlCache;
typedef enum TlEvict {
#define EVICT(ID, text) TL_EVICT_##ID,
#include "ir/enums.def"
} TlEvict;
typedef enum TlPrecision {
#define PRECISION(ID, text) TL_PRECISION_##ID,
#include "ir/enums.def"
} TlPrecision;
typedef enum TlRound {
#define ROUND(ID, text) TL_ROUND_##ID,
#include "ir/enums.def"
} TlRound;
typedef enum TlApprox {
#define APPROX(ID, text) TL_APPROX_##ID,
#include "ir/enums.def"
} TlApprox;

typedef enum TlWay {
#define WAY(ID, text) TL_WAY_##ID,
#include "ir/enums.def"
} TlWay;

/* How one axis of a view is indexed; the operand at the same position gives the start or index. */
typedef enum TlAxisKind {
    TL_AXIS_SCALAR, /* integer scalar: the axis is dropped */
    TL_AXIS_SLICE,  /* integer scalar start; elements start + step * 0..width-1 */
    TL_AXIS_TILE    /* integer tile of rank >= 1: gather or scatter */
} TlAxisKind;
typedef struct TlAxis {
    TlAxisKind kind;
    int32_t width, step; /* slices */
} TlAxis;

typedef struct TlAttr {
    TlAttrId id;
    uint32_t n;   /* INTS, AXES: length; SPAN: bytes, 0: not said */
    union {
        int64_t i;        /* INT, enumerations; FLAG: present = set; SPAN: offset */
        uint64_t bits;    /* CONST: the element's bits, zero-extended (f32 1.0 = 0x3f800000) */
        const char *s;    /* STR, interned */
        const int64_t *ints;
        const TlAxis *axes;
    } u;
} TlAttr;

typedef struct TlOp TlOp;
typedef struct TlBlock TlBlock;
typedef struct TlValue TlValue;
typedef struct TlFn TlFn;
typedef struct TlRemark TlRemark;

/* One operand: its index in the user and its links in the value's use list. */
typedef struct TlUse {
    TlValue *value;
    TlOp *user;
    struct TlUse *next, *prev;
} TlUse;

struct TlValue {
    const TlType *type;
    uint32_t id;      /* dense within the function */
    uint32_t index;   /* result or argument number */
    TlOp *def;        /* NULL for block arguments */
    TlBlock *block;   /* block arguments: their block */
    TlUse *uses;
    const char *name; /* hint for printing, may be NULL */
};

struct TlOp {
    TlOpcode opcode;
    TlLoc loc;
    TlBlock *block;
    TlOp *prev, *next;
    uint32_t nin, nout, nregions, nattrs;
    TlUse *in;
    TlValue **out;
    TlBlock **regions;
    TlAttr *attrs;
};

/* Where registers are short, what threads know of their place is computed again, not kept: for each
 * access in a loop; behind each loop. */
typedef enum TlSparing {
    TL_SPARING_NOT, TL_SPARING_IN_LOOPS, TL_SPARING_BEHIND_LOOPS
} TlSparing;

/* The block of a region. Warps belong to the region, never to the kernel; 0 = as the enclosing
 * one. Of a function's body: stages, at most so many in loops that state none; 0 = as the target
 * has them. Kept: operands that products take in all trips of a loop wait in shared memory. */
struct TlBlock {
    TlOp *parent; /* NULL for a function's body */
    TlFn *fn;
    uint32_t nargs;
    TlValue **args;
    TlOp *first, *last;
    int32_t warps, stages;
    bool kept;
    TlSparing sparing;
};

typedef struct TlModule {
    TlCtx *ctx;
    TlArena arena; /* all IR of the module */
    TL_VEC(TlFn *) fns;
    struct TlModule *next, *prev; /* on the context's list */
} TlModule;

struct TlFn {
    TlModule *module;
    const char *name;
    TlLoc loc;
    TlBlock *body;      /* its arguments are the kernel's run-time parameters, in order */
    TlKernelInfo *info; /* launch facts; NULL only in hand-written pass tests */
    uint32_t nvalues;   /* ids are below this */
    bool ring;          /* floats compute as integers of their width (ring_float.h) */
    TL_VEC(TlRemark) remarks; /* beside the program (remark.h) */
};

/* lives in its own arena, until tl_module_free or tl_ctx_free */
TlModule *tl_module_new(TlCtx *ctx);
void tl_module_free(TlModule *m);    /* NULL is fine */
TlFn *tl_fn_new(TlModule *m, const char *name, TlLoc loc);

/* ---- building (build.c) ---- */
typedef struct TlBuilder {
    TlFn *fn;
    TlBlock *block; /* ops are appended here, or before `before` */
    TlOp *before;
    TlLoc loc;
} TlBuilder;
TlBlock *tl_block_new(TlFn *fn, TlOp *parent);
TlValue *tl_block_arg(TlBlock *b, const TlType *type, const char *name); /* appends an argument */
/* The general form. Operands and result types are copied; attrs may be NULL. Regions are empty
 * blocks. */
TlOp *tl_op_new(TlBuilder *b, TlOpcode opcode, uint32_t nin, TlValue *const *in, uint32_t nout,
                const TlType *const *types, uint32_t nregions, uint32_t nattrs,
                const TlAttr *attrs);
/* Short forms; the result type follows from the operands. */
TlValue *tl_const_bits(TlBuilder *b, const TlType *type, uint64_t bits);
/* any integer, bool or float type */
TlValue *tl_const_int(TlBuilder *b, const TlType *type, int64_t v);
TlValue *tl_unary(TlBuilder *b, TlOpcode opcode, TlValue *x);
/* arithmetic, comparison, shift, ptr_add */
TlValue *tl_binary(TlBuilder *b, TlOpcode opcode, TlValue *x, TlValue *y);
TlValue *tl_select(TlBuilder *b, TlValue *c, TlValue *x, TlValue *y);
TlValue *tl_fma(TlBuilder *b, TlValue *x, TlValue *y, TlValue *z);
TlValue *tl_cast(TlBuilder *b, TlValue *x, TlDtype to); /* x itself when the type is the same */
/* x itself when equal; expands missing leading axes */
TlValue *tl_broadcast(TlBuilder *b, TlValue *x, int rank, const int32_t *shape);
TlOp *tl_yield(TlBuilder *b, TlOpcode terminator, uint32_t n, TlValue *const *values);

/* ---- facts (op.c) ---- */
typedef struct TlOpInfo {
    const char *text;
    int8_t nin, nout, nregions;
    uint32_t flags;
    const char *doc;
} TlOpInfo;
const TlOpInfo *tl_op_info(TlOpcode opcode);
/* The work columns of an ELEM row; zeros for other ops. */
typedef struct TlElemWork {
    int8_t gpu, cpu, flops;
    bool hashed; /* in the ring */
} TlElemWork;
const TlElemWork *tl_elem_work(TlOpcode opcode);
/* What operand i becomes: of a loop, an argument of region 0; of a terminator, the argument or the
 * result of the op around it that it is passed on as. NULL: it is nothing that is carried. */
TlValue *tl_flows_to(const TlOp *op, uint32_t i);
/* v, pointers or a view, leads into what this operand of its op leads into; NULL: there is none. */
TlValue *tl_leads_into(const TlValue *v);
/* Attribute sets, bit = TlAttrId. */
uint64_t tl_op_required_attrs(TlOpcode opcode);
uint64_t tl_op_optional_attrs(TlOpcode opcode);
bool tl_opcode_parse(const char *text, size_t length, TlOpcode *out);
const char *tl_attr_name(TlAttrId id);
TlAttrForm tl_attr_form(TlAttrId id);
const char *tl_enum_name(TlAttrForm family, int64_t value); /* NULL when out of range */
int64_t tl_enum_parse(TlAttrForm family, const char *text, size_t length); /* -1 when unknown */

const TlAttr *tl_attr(const TlOp *op, TlAttrId id); /* NULL when absent */
int64_t tl_attr_int(const TlOp *op, TlAttrId id, int64_t otherwise);
bool tl_attr_flag(const TlOp *op, TlAttrId id);
void tl_attr_set(TlFn *fn, TlOp *op, TlAttr attr);
/* A list of axes as bits; none when the op has no such attribute. */
uint32_t tl_attr_axis_bits(const TlOp *op, TlAttrId id);
void tl_attr_set_axis_bits(TlFn *fn, TlOp *op, TlAttrId id, uint32_t axes);
void tl_attr_remove(TlOp *op, TlAttrId id);

/* Which level of IR a function is at: laid out when a tile of rank 1 or more has a layout; then all
 * have. Staged when it is laid out and there is a buffer. */
typedef enum TlLevel { TL_LEVEL_TILE, TL_LEVEL_LAID_OUT, TL_LEVEL_STAGED } TlLevel;
TlLevel tl_fn_level(const TlFn *fn);

/* F_READ, F_WRITE, F_ATOMIC, F_DEBUG, F_BUF_* of the op and its regions */
uint32_t tl_op_effects(const TlOp *op);
static inline bool tl_op_is_pure(const TlOp *op)
{
    return tl_op_effects(op) == 0 && !(tl_op_info(op->opcode)->flags & F_TERM);
}
static inline TlValue *tl_in(const TlOp *op, uint32_t i) { return op->in[i].value; }

/* The op after `at` in text order, going into regions, while inside `root` (an op, not itself
 * returned; NULL: the whole function). NULL at the end. Nesting may be thousands deep (else-if
 * ladders): walk with this rather than by recursion. */
TlOp *tl_walk_next(const TlOp *at, const TlOp *root);
/* The region that follows this one in its op; NULL: it is the last. */
TlBlock *tl_region_after(const TlBlock *b);
static inline bool tl_is_loop(const TlOp *op)
{
    return op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE;
}
/* The region of ROLES in which the op is; -1: in none. */
int tl_op_role(const TlOp *op);

/* The parts of a memory op's operand list. */
typedef struct TlPlace {
    TlValue *base;          /* the view, or the pointer (tile) */
    const TlAxis *axes;     /* NULL for pointers */
    uint32_t naxes;
    const TlUse *index;     /* naxes operands */
    TlValue *value, *expected, *mask, *other; /* NULL when the op has none */
    TlValue *buf, *slot;    /* copy: where to */
    TlValue *bar, *bar_slot; /* bulk copy: the barrier that counts its bytes */
    int rank;               /* shape of the accessed tile */
    int32_t shape[TL_MAX_RANK];
    /* an index tile has rank >= 2: index tiles share one shape, which comes first */
    bool pointwise;
} TlPlace;
TlPlace tl_op_place(const TlOp *op);
/* A COPY that a barrier counts: begun by one thread, as boxes of a tensor map. */
bool tl_is_bulk_copy(const TlOp *op);
/* Does the op make a buffer in shared memory? */
bool tl_makes_buffer(const TlOp *op);
/* Is it what one thread does to begin bulk copies: waits until the slot is free, begins them, says
 * how many bytes come? */
bool tl_begins_bulk(const TlOp *op);
/* The tile's axis (the first one, of an index tile) that axis i of the view gives; -1: a scalar
 * index drops it. */
int tl_place_dim(const TlPlace *p, uint32_t i);
/* x for which (x combined with y) is y, to the bit, for every y: -0.0 for sums of floats; NaN for
 * their maxima and minima, as it loses to any number. kind: not USER. */
uint64_t tl_combine_identity(TlCombine kind, TlDtype d);
/* The op that combines two; TL_OP_COUNT: USER, which has none. */
TlOpcode tl_combine_opcode(TlCombine kind);
/* What the language says of no elements: the identity, but 0 and infinities of floats. */
uint64_t tl_combine_of_none(TlCombine kind, TlDtype d);
bool tl_combine_takes(TlCombine kind, TlDtype d);
bool tl_combine_is_offered(TlCombine kind, TlDtype d); /* by the language's functions */
bool tl_combine_is_wide(TlCombine kind); /* f16 and bf16 are combined in f32 */
TlAgain tl_combine_again(TlCombine kind);
/* What an atomic combines the element and its operand by; USER: it takes the operand. */
TlCombine tl_rmw_combine(TlRmw kind);
bool tl_rmw_takes(TlRmw kind, TlDtype d);
bool tl_atomic_moves(TlDtype d); /* atomic_load, atomic_store, atomic_cas take it */
/* Shape of view[axes] given the index operands; false when it is not legal (rank over TL_MAX_RANK,
 * mixed ranks). */
bool tl_place_shape(uint32_t naxes, const TlAxis *axes, TlValue *const *index, int *out_rank,
                    int32_t *out_shape);

/* ---- text form (print.c, parse.c) and verifier ---- */
void tl_print_module(TlSbuf *out, const TlModule *m);
/* The same with notes: what `note` writes for an op, line by line, is in comments before it; op
 * NULL: for the function, at its beginning. The text can be parsed all the same. */
typedef struct TlPrinter TlPrinter;
typedef void TlPrintNote(void *user, const TlPrinter *p, const TlFn *fn, const TlOp *op,
                         TlSbuf *lines);
void tl_print_module_with(TlSbuf *out, const TlModule *m, TlPrintNote *note, void *user);
void tl_print_value(const TlPrinter *p, TlSbuf *out, const TlValue *v); /* "%x.1" */
/* Parses a .tir text; on error gives diagnostics in ctx and returns NULL. The module is
 * verified. */
TlModule *tl_parse_module(TlCtx *ctx, uint32_t source);
/* True when valid; else the first faults are written to `out` (one line each, naming op and
 * rule). */
bool tl_verify_fn(const TlFn *fn, TlSbuf *out);
bool tl_verify_module(const TlModule *m, TlSbuf *out);
/* same context, own arena (through print and parse) */
TlModule *tl_module_clone(const TlModule *m);
#endif
