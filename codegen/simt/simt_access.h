/* What loads, stores, copies and atomics of the SIMT lowering share: the place of an access,
 * register by register (simt_access.c). */
#ifndef TL_SIMT_ACCESS_H
#define TL_SIMT_ACCESS_H
#include "codegen/simt/simt.h"

/* Of a function: LLVM's NaryReassociate takes time by the square. */
enum { TL_SIMT_MOST_COUNTED = 64 };

typedef struct TlSimtTest { /* a coordinate, and whether it is inside of the view */
    TlSimtCoord at;
    LLVMValueRef inside;
} TlSimtTest;

typedef struct TlSimtAccess {
    TlOp *op;
    TlPlace place;
    const TlType *type;     /* of the accessed tile or scalar */
    const TlLayout *layout; /* NULL: scalar */
    TlType elem;            /* one element */
    int64_t nregs;
    int width; /* registers that move together */
    bool bounds;
    bool asks; /* --check: addresses are tested against the arrays of the launch */
    /* views */
    TlGenView *view;
    int dim[TL_MAX_VIEW_RANK]; /* tile dimension of a slice or (first) of an index tile; -1 */
    LLVMValueRef start[TL_MAX_VIEW_RANK], stride[TL_MAX_VIEW_RANK]; /* i64; slices: with the step */
    LLVMValueRef
        left[TL_MAX_VIEW_RANK]; /* i32: extent - start, where that decides (narrow); else NULL */
    bool is_near;               /* and 31 bits, also to those outside */
    LLVMValueRef base, records; /* simt_buffer.c; NULL: by addresses */
    bool is_low;                /* the base is below 2^48, or there are no records */
    bool is_local;              /* bytes from `uniform` to an element fit 32 bits */
    LLVMValueRef uniform;       /* address of the element at coordinates 0, but for `moved` */
    bool is_summed;             /* simt_sum.c; then `uniform` is what the block shares */
    uint32_t inner;             /* as TlAccessInfo has it */
    LLVMValueRef sum;           /* i32: elements that scalar inner axes add; NULL: none */
    LLVMValueRef row, bytes;    /* i64: elements, bytes that are not in `uniform`; NULL: none */
    LLVMValueRef moved;         /* i64: bytes that the loop has moved the tile by; NULL: none */
    uint32_t moving;            /* axes whose start changes in the loop; of copies only */
    uint32_t counted;           /* an axis on which a thread's number is start + coordinate; or 0 */
    uint32_t whole;             /* axes that one test of the whole tile decides (`whole`) */
    uint32_t inside, sure;      /* axes that need no test: now, ever */
    LLVMValueRef uniform_ok;    /* scalar indices are inside; NULL = always */
    TL_VEC(TlSimtTest) tests[TL_MAX_VIEW_RANK];
} TlSimtAccess;

void tl_simt_access_begin(TlSimt *g, TlOp *op, TlSimtAccess *a);
LLVMValueRef tl_simt_access_address(TlSimt *g, TlSimtAccess *a, int64_t r);
/* i1, NULL = true: inside of the view / inside of view and tile, and not masked off */
LLVMValueRef tl_simt_access_inside(TlSimt *g, TlSimtAccess *a, int64_t r);
/* i1: is the whole tile in bounds along the axes of `whole`? NULL: there are none. */
LLVMValueRef tl_simt_access_all_inside(TlSimt *g, const TlSimtAccess *a);
/* `moved` computed anew, in 64 bits. */
void tl_simt_access_move(TlSimt *g, TlSimtAccess *a);
LLVMValueRef tl_simt_access_pred(TlSimt *g, TlSimtAccess *a, int64_t r);
/* With checks, where a pointer is not proved good: `pred`, and the bytes at the address lie in the
 * array that it came from; what does not is reported. pred: NULL = true. */
LLVMValueRef tl_simt_access_ask(TlSimt *g, const TlSimtAccess *a, LLVMValueRef pred,
                                LLVMValueRef address, uint64_t bytes);
/* i1, NULL = true: does this thread write? */
LLVMValueRef tl_simt_access_owner(TlSimt *g, const TlSimtAccess *a);
/* Register r of an operand that is a scalar or has the access's layout. */
LLVMValueRef tl_simt_access_value(TlSimt *g, const TlSimtAccess *a, const TlValue *v, int64_t r);
/* With checks: reports elements that `unchecked` promised to be inside and are not. */
void tl_simt_access_promise(TlSimt *g, TlSimtAccess *a);
/* All registers of a load; what is outside or masked off gives 0, or what OTHER says. */
void tl_simt_load_registers(TlSimt *g, TlSimtAccess *a, LLVMValueRef *out);
/* The word that a load can be given for elements that are outside, 0 where nothing is said of them;
 * false: they are not one constant of which words are made. */
bool tl_simt_access_fill(const TlSimtAccess *a, uint32_t *out);
LLVMValueRef tl_simt_access_hints(TlSimt *g, const TlOp *op); /* the operand of leaves */
/* The number of its element along a counted axis, but for c.constant. */
LLVMValueRef tl_simt_access_count(TlSimt *g, const TlSimtAccess *a, uint32_t i, TlSimtCoord c);
/* The start times the stride, in elements. */
LLVMValueRef tl_simt_access_start_times(TlSimt *g, const TlSimtAccess *a, uint32_t i);
/* ---- by sums of 32 bits (simt_sum.c) ---- */
bool tl_simt_is_summed(const TlSimt *g, const TlSimtAccess *a, const TlAccessInfo *info);
/* Is the axis a slice with a start that is no constant? */
bool tl_simt_sum_counts(const TlSimtAccess *a, uint32_t i);
/* Starts are known, and what is counted. */
void tl_simt_sum_begin(TlSimt *g, TlSimtAccess *a, const TlAccessInfo *info);
LLVMValueRef tl_simt_sum_address(TlSimt *g, const TlSimtAccess *a, int64_t r);
/* ---- by a base and offsets of 32 bits (simt_buffer.c) ---- */
/* Before a load's or a store's registers: what hardware tests is not part of predicates then. */
void tl_simt_buffer_begin(TlSimt *g, TlSimtAccess *a);
/* The leaf's operands but for the site; x: fill or value. */
enum { TL_BUFFER_OPERANDS = 7 };
/* The same, without a test of bounds: of what is inside. False: it goes by addresses. */
bool tl_simt_buffer_inside(TlSimt *g, TlSimtAccess *a);
void tl_simt_buffer_operands(TlSimt *g, const TlSimtAccess *a, int64_t r, LLVMValueRef pred,
                             LLVMValueRef x, LLVMValueRef out[TL_BUFFER_OPERANDS]);
LLVMValueRef tl_simt_pred_or_true(TlSimt *g, LLVMValueRef pred);
#endif
