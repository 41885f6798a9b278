/* CPU lowering: shared by the cpu_*.c files. tile IR -> LLVM IR for the host, one function per kernel that runs one program.
 *
 * Every tile value has a place (cpu_place.c): a home in the worker's scratch memory, or none ("virtual": its elements are
 * computed where they are used, inside the loop nest of their root). Scalars are LLVM values. A loop nest runs over a
 * shape with one dimension in vectors of `width` lanes; evaluating a value at a position (At) gives one vector of lanes. */
#ifndef TL_CPU_H
#define TL_CPU_H
#include "codegen/codegen.h"
#include "codegen/llvm.h"
#include "ir/rewrite.h"

/* ---- where tiles live (cpu_place.c) ---- */
typedef enum CpuPlaceKind { CPU_SCALAR, CPU_VIRTUAL, CPU_HOME } CpuPlaceKind;
typedef struct CpuPlace {
    CpuPlaceKind kind;
    int32_t buffer;      /* HOME: index in plan->buffers */
} CpuPlace;
typedef struct CpuBuffer {
    uint64_t bytes, offset;
    uint32_t first, last; /* op positions between which it is needed, both included */
} CpuBuffer;
typedef struct CpuPlan {
    CpuPlace *place;      /* by value id */
    TL_VEC(CpuBuffer) buffers;
    TlMap extra;          /* op to the first of its extra buffers (dot: packed a, b; loop: temporaries; print) */
    uint64_t scratch_bytes;
} CpuPlan;
CpuPlan *cpu_plan(const TlFn *fn, TlArena *arena);

/* The form of a home: row-major; the lane dimension (the last of extent > 1) is padded so that whole vectors fit. */
typedef struct CpuForm {
    int rank, lane;       /* lane -1: rank 0 */
    int64_t extent[TL_MAX_RANK], padded[TL_MAX_RANK], stride[TL_MAX_RANK]; /* in elements */
    int64_t elems;        /* with padding */
} CpuForm;
CpuForm cpu_form(const TlType *type);
uint64_t cpu_elem_bytes(const TlType *type); /* bool 1, pointers 8 */

/* Which parameter a view or pointer comes from: its index, or -1 when it may be one of several. */
int cpu_base_param(const TlValue *v);
bool cpu_may_alias(const TlFn *fn, const TlValue *a, const TlValue *b);
bool cpu_is_renaming(const TlOp *op); /* reshape that only adds or drops axes of extent 1 */

/* ---- code generation ---- */
typedef struct CpuView {
    LLVMValueRef ptr, extent[TL_MAX_VIEW_RANK], stride[TL_MAX_VIEW_RANK]; /* i64, constants where known */
    int rank;
    TlDtype dtype;
} CpuView;

/* A memory op's uniform part, computed once where the op stands. */
typedef struct CpuAccess {
    TlPlace place;
    LLVMValueRef ptr;                      /* address of the element at all-zero lane positions (views) */
    LLVMValueRef ok;                       /* i1: scalar indices are inside; NULL = always */
    LLVMValueRef lo[TL_MAX_VIEW_RANK], hi[TL_MAX_VIEW_RANK]; /* i64: positions of a step-1 slice that are inside: [lo, hi) */
    LLVMValueRef start[TL_MAX_VIEW_RANK];  /* i64: start of a slice */
    LLVMValueRef stride[TL_MAX_VIEW_RANK]; /* i64: elements per position (stride * step) */
    int dim[TL_MAX_VIEW_RANK];             /* tile dimension of a slice or index tile, -1 for scalars */
    CpuView *view;
    int param;
    bool bounds;                           /* test bounds; false for unchecked without --check */
} CpuAccess;

typedef struct CpuGen {
    TlLlvm *l;
    LLVMContextRef c;
    LLVMBuilderRef b;
    const TlCodegenOptions *options;
    TlArena *arena;
    const TlFn *fn;
    CpuPlan *plan;
    LLVMValueRef function, ctx, params, scratch, services;
    LLVMValueRef *scalar;  /* by value id */
    CpuView **view;        /* by value id */
    TlMap access;          /* op to CpuAccess */
    TL_VEC(tile_image_slot) slots;
    LLVMValueRef *slot;    /* loaded values, same index */
    uint32_t nslot_cap;
    int vector_bytes;      /* of a register: 64, 32, 16 */
    int nregs;             /* vector registers */
    bool gathers, masks;   /* fast masked gathers (4 and 8 byte elements); fast masks for every element size */
    TlLoc loc;
    LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr, void_;
} CpuGen;

/* A position in a loop nest: one scalar index per dimension; in `lane`, lanes idx, idx + 1, ..., idx + width - 1. */
typedef struct CpuAt {
    LLVMValueRef idx[TL_MAX_RANK]; /* i64 */
    int rank, lane, width;         /* width 1: scalars */
    TlMap memo;                    /* value id to LLVMValueRef, valid at this position */
} CpuAt;

/* cpu_arith.c: arithmetic on scalars or vectors of one element type */
LLVMTypeRef cpu_elem_type(CpuGen *g, const TlType *type);      /* in registers: bool i1, bf16 i16, f8 i8 */
LLVMTypeRef cpu_mem_type(CpuGen *g, const TlType *type);       /* in memory: bool i8 */
LLVMTypeRef cpu_vec(LLVMTypeRef elem, int width);              /* elem itself for width 1 */
int cpu_width_of(LLVMValueRef v);
LLVMValueRef cpu_splat(CpuGen *g, LLVMValueRef scalar, int width);
LLVMValueRef cpu_const(CpuGen *g, const TlType *type, uint64_t bits, int width);
LLVMValueRef cpu_int(CpuGen *g, int64_t v);                    /* i64 */
LLVMValueRef cpu_iota(CpuGen *g, LLVMTypeRef elem, int width); /* 0, 1, ... */
LLVMValueRef cpu_intrinsic(CpuGen *g, const char *name, LLVMTypeRef *types, unsigned ntypes, LLVMValueRef *args, unsigned nargs);
/* The element operation of `op` (F_ELEM, not PTR_ADD) on evaluated operands; types from the op. */
LLVMValueRef cpu_elementwise(CpuGen *g, const TlOp *op, LLVMValueRef *in);
LLVMValueRef cpu_combine(CpuGen *g, TlCombine kind, TlDtype dtype, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef cpu_cast(CpuGen *g, TlDtype from, TlDtype to, LLVMValueRef x, int round, bool nosat);
LLVMValueRef cpu_to_mem(CpuGen *g, const TlType *type, LLVMValueRef x);
LLVMValueRef cpu_from_mem(CpuGen *g, const TlType *type, LLVMValueRef x);
bool cpu_op_is_scalar_only(const CpuGen *g, const TlOp *op); /* has no vector form here (fmod, ...) */

/* cpu_eval.c: values at positions, loop nests, homes */
typedef struct CpuLoop {
    LLVMBasicBlockRef entry, body;
    LLVMValueRef iv;
    int64_t step, end;
    bool single;
    uint32_t ncarry;
    LLVMValueRef carry[64];
} CpuLoop;
CpuLoop cpu_loop_begin(CpuGen *g, int64_t begin, int64_t end, int64_t step); /* end > begin, both constants */
LLVMValueRef cpu_loop_carry(CpuGen *g, CpuLoop *loop, LLVMValueRef init);    /* a phi; give its next value to cpu_loop_end */
void cpu_loop_end(CpuGen *g, CpuLoop *loop, LLVMValueRef *next);             /* next: ncarry values; replaced by the values after the loop */

void cpu_at_init(CpuGen *g, CpuAt *at, int rank, int lane, int width);
LLVMValueRef cpu_eval(CpuGen *g, TlValue *v, CpuAt *at);        /* vector of at->width lanes */
LLVMValueRef cpu_eval_op(CpuGen *g, TlValue *v, CpuAt *at);     /* the same from its op, whatever its place */
LLVMValueRef cpu_scalar(CpuGen *g, TlValue *v);                 /* rank 0 */
int cpu_chain_width(CpuGen *g, TlValue *v, int limit);          /* lanes that suit the virtual chain under v */
int cpu_fit_width(int64_t padded, int width);                   /* largest power of two <= width that divides padded */
/* Runs body for each position of `type`'s shape, lanes in its lane dimension (padding included when width > 1). */
typedef void (*CpuBody)(CpuGen *g, CpuAt *at, void *user);
void cpu_nest(CpuGen *g, const TlType *type, int width, CpuBody body, void *user);
LLVMValueRef cpu_home_ptr(CpuGen *g, int32_t buffer);
void cpu_define(CpuGen *g, TlValue *v);                          /* computes v from its op into its home */
void cpu_materialise(CpuGen *g, TlValue *v, int32_t buffer);     /* all elements of v into a home; nothing when that is v's own */
void cpu_materialise_as(CpuGen *g, TlValue *v, TlDtype dtype, int32_t buffer); /* converted to dtype on the way */
LLVMValueRef cpu_home_load(CpuGen *g, const TlType *type, LLVMValueRef base, const CpuForm *form, CpuAt *at);
void cpu_home_store(CpuGen *g, const TlType *type, LLVMValueRef base, const CpuForm *form, CpuAt *at, LLVMValueRef x);
/* Lanes of the position that are elements of the tile, not padding; NULL when all are. */
LLVMValueRef cpu_lane_mask(CpuGen *g, const CpuForm *form, const CpuAt *at);

/* cpu_access.c */
void cpu_prepare_access(CpuGen *g, TlOp *op);
LLVMValueRef cpu_eval_load(CpuGen *g, TlOp *op, CpuAt *at);
LLVMValueRef cpu_eval_inside(CpuGen *g, TlOp *op, CpuAt *at);
void cpu_lower_store(CpuGen *g, TlOp *op);
void cpu_lower_atomic(CpuGen *g, TlOp *op);
int cpu_access_width(CpuGen *g, TlOp *op, int limit);
CpuView *cpu_view(CpuGen *g, TlValue *v);
void cpu_lower_view(CpuGen *g, TlOp *op);
LLVMValueRef cpu_service(CpuGen *g, unsigned index, LLVMTypeRef type, LLVMValueRef *args, unsigned nargs);
void cpu_fail(CpuGen *g, LLVMValueRef failed, int kind, TlLoc loc, const char *text); /* when failed: report */
LLVMBasicBlockRef cpu_block(CpuGen *g, const char *name);

/* cpu_reduce.c, cpu_dot.c */
void cpu_lower_reduce(CpuGen *g, TlOp *op);
void cpu_lower_scan(CpuGen *g, TlOp *op);
void cpu_lower_dot(CpuGen *g, TlOp *op);

/* cpu_lower.c */
void cpu_lower_block(CpuGen *g, TlBlock *block); /* all ops but the terminator */
#endif
