/* What every lowering to LLVM IR shares: the builder with its types, and arithmetic on scalars or
 * vectors of one element type. */
#ifndef TL_GEN_H
#define TL_GEN_H
#include "codegen/gen/image.h"
#include "codegen/target/llvm.h"
#include "ir/ir.h"
#include "ir/plan/bulk.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/float_kinds.h"

typedef struct TlGen TlGen;

typedef struct TlGenView {
    LLVMValueRef ptr;
    /* i64, constants where known */
    LLVMValueRef extent[TL_MAX_VIEW_RANK], stride[TL_MAX_VIEW_RANK];
    int rank;
    TlDtype dtype;
} TlGenView;

typedef TL_VEC(LLVMValueRef) TlLlvmValues;

/* clang-format off */
#define TL_GEN_FIELDS                                                                              \
    TlLlvm *l;                                                                                     \
    LLVMContextRef c;                                                                              \
    LLVMBuilderRef b;                                                                              \
    LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr, void_;                                  \
    const TlFn *fn;                                                                                \
    TlArena *arena;                                                                                \
    LLVMValueRef function;                                                                         \
    LLVMValueRef *scalar; /* by value id: rank 0 */                                                \
    TlGenView **view;     /* by value id */                                                        \
    TlSlots slots;        /* the parameter table, in order of first use */                         \
    TlLlvmValues slot;    /* their values */                                                       \
    LLVMMetadataRef subprogram; /* gen_debug.c */                                                  \
    /* the value of a new slot, word n of the parameters */                                        \
    LLVMValueRef (*load_slot)(TlGen *g, uint32_t n, tile_slot_kind kind);                          \
    /* an op on f32 by the target's own instruction; NULL: it has none, or better not */           \
    LLVMValueRef (*own)(TlGen *g, const TlOp *op, LLVMValueRef *in);                               \
    LLVMValueRef (*to_bf16)(TlGen *g, LLVMValueRef x); /* the same for f32 to bf16 */              \
    LLVMValueRef (*to_int)(TlGen *g, LLVMValueRef x, TlDtype to); /* and to integers of bytes */   \
    LLVMValueRef (*fmod)(TlGen *g, LLVMValueRef a, LLVMValueRef b); /* scalars, f32 or f64 */      \
    const TlFloatKinds *kinds; /* by value id; NULL: nothing is known */                           \
    /* where scalar instructions of 32 bits compute addresses: what is known of numbers, so that   \
     * upper halves that are 0 are seen; NULL elsewhere */                                         \
    const TlAxisInfo *halved;                                                                      \
    bool halves, /* f16 has instructions of its own, two at a time */                              \
        words    /* one instruction makes f16 of two f32 */
/* clang-format on */
struct TlGen {
    TL_GEN_FIELDS;
};
/* A lowering's own struct starts with this, so that g->b and &g->gen are the same builder. */
#define TL_GEN_BASE                                                                                \
    union {                                                                                        \
        TlGen gen;                                                                                 \
        struct {                                                                                   \
            TL_GEN_FIELDS;                                                                         \
        };                                                                                         \
    }

/* fn NULL: for instructions of no tile IR. */
void tl_gen_init(TlGen *g, TlLlvm *l, const TlFn *fn, TlArena *arena);

/* gen_param.c: parameters, views */
LLVMValueRef tl_gen_slot(TlGen *g, tile_slot_kind kind, uint32_t param, uint32_t axis);
/* The address of a tensor map of view `param`. */
LLVMValueRef tl_gen_map_slot(TlGen *g, uint32_t param, const TlBulk *bulk);
void tl_gen_params(TlGen *g); /* gives every parameter of the function its value */
TlGenView *tl_gen_view(TlGen *g, const TlValue *v);
void tl_gen_lower_view(TlGen *g, TlOp *op);            /* view, sub_view */
LLVMValueRef tl_gen_of_view(TlGen *g, const TlOp *op); /* extent, stride, view_ptr */
LLVMValueRef tl_gen_scalar(TlGen *g, const TlValue *v);
LLVMValueRef tl_gen_to_i64(TlGen *g, const TlValue *v, LLVMValueRef x); /* by v's signedness */
/* Address of the element `offset` elements from base; scalars or vectors. */
LLVMValueRef tl_gen_address(TlGen *g, TlDtype d, LLVMValueRef base, LLVMValueRef offset);
/* a <p> b ? x : y on integers */
LLVMValueRef tl_gen_pick(TlGen *g, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b,
                         LLVMValueRef x, LLVMValueRef y);

/* gen_debug.c: line information, with -g. open and close frame a module; begin (before the first
 * instruction, after tl_gen_init) and end (when g->function is the final one) frame a kernel. */
void tl_gen_debug_open(TlLlvm *l, const TlModule *m, bool directives_only);
void tl_gen_debug_close(TlLlvm *l);
void tl_gen_debug_begin(TlGen *g);
void tl_gen_debug_end(TlGen *g);
/* What the builder makes from now on comes from loc; without a line: as before. Returns where it
 * came from until now (NULL: nowhere). */
LLVMMetadataRef tl_gen_set_loc(TlGen *g, TlLoc loc);

/* gen_flow.c: what control flow is on every device */
LLVMBasicBlockRef tl_gen_block(TlGen *g, const char *name);
/* *some, i1: are there iterations? The result is how many there are then. */
LLVMValueRef tl_gen_trips(TlGen *g, const TlOp *loop, LLVMValueRef lo, LLVMValueRef hi,
                          LLVMValueRef step, LLVMValueRef *some);
/* The same, or 0. */
LLVMValueRef tl_gen_trip_count(TlGen *g, const TlOp *loop, LLVMValueRef lo, LLVMValueRef hi,
                               LLVMValueRef step);
/* How deep the loops of a function are nested; 0: there are none. */
unsigned tl_gen_loop_depth(const TlFn *fn);

/* False, and diagnostics, when the function has an op that no lowering for `device` ("the CPU")
 * has. */
bool tl_gen_is_supported(TlDiags *diags, const TlFn *fn, const char *device, bool has_asm);

uint64_t tl_gen_elem_bytes(const TlType *type); /* bool 1, pointers 8 */
LLVMTypeRef tl_gen_elem_type(TlGen *g,
                             const TlType *type); /* in registers: bool i1, bf16 i16, f8 i8 */
LLVMTypeRef tl_gen_mem_type(TlGen *g, const TlType *type); /* in memory: bool i8 */
LLVMTypeRef tl_gen_vec(LLVMTypeRef elem, int width);       /* elem itself for width 1 */
int tl_gen_width_of(LLVMValueRef v);
LLVMValueRef tl_gen_splat(TlGen *g, LLVMValueRef scalar, int width);
LLVMValueRef tl_gen_const(TlGen *g, const TlType *type, uint64_t bits, int width);
LLVMValueRef tl_gen_int(TlGen *g, int64_t v);                    /* i64 */
LLVMValueRef tl_gen_iota(TlGen *g, LLVMTypeRef elem, int width); /* 0, 1, ... */
LLVMValueRef tl_gen_intrinsic(TlGen *g, const char *name, LLVMTypeRef *types, unsigned ntypes,
                              LLVMValueRef *args, unsigned nargs);
/* The element operation of `op` (F_ELEM, not PTR_ADD) on evaluated operands; types from the op. */
LLVMValueRef tl_gen_elementwise(TlGen *g, const TlOp *op, LLVMValueRef *in);
/* The same on values of its type that are not the op's operands: of floats, what these may be. */
LLVMValueRef tl_gen_again(TlGen *g, const TlOp *op, LLVMValueRef *in, TlFloatKinds of_a,
                          TlFloatKinds of_b);
LLVMValueRef tl_gen_combine(TlGen *g, TlCombine kind, TlDtype dtype, LLVMValueRef a,
                            LLVMValueRef b);
/* a * b + c as dots have it: of floats rounded once, of integers wrapping */
LLVMValueRef tl_gen_multiply_add(TlGen *g, TlDtype dtype, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef c);
LLVMValueRef tl_gen_cast(TlGen *g, TlDtype from, TlDtype to, LLVMValueRef x, int round, bool nosat);
LLVMValueRef tl_gen_to_mem(TlGen *g, const TlType *type, LLVMValueRef x);
LLVMValueRef tl_gen_from_mem(TlGen *g, const TlType *type, LLVMValueRef x);
bool tl_gen_op_is_scalar_only(const TlFn *fn,
                              const TlOp *op); /* has no vector form here (fmod, ...) */

/* ---- gen_exp2.c: 2^x by arithmetic ---- */
LLVMValueRef tl_gen_exp2(TlGen *g, LLVMValueRef x);
/* Of x from TL_EXP2_LEAST to TL_EXP2_MOST, where it is 0 and infinity: what is below 2^-126 may be
 * less. Not of NaN. */
enum { TL_EXP2_LEAST = -127, TL_EXP2_MOST = 128 };
LLVMValueRef tl_gen_exp2_flushed(TlGen *g, LLVMValueRef x);
#endif
