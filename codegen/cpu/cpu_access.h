/* Positions in memory, shared by loads, stores (cpu_access.c) and atomics (cpu_atomic.c). */
#ifndef TL_CPU_ACCESS_H
#define TL_CPU_ACCESS_H
#include "codegen/cpu/cpu.h"

typedef struct TlCpuSpot {
    LLVMValueRef ptr;     /* of the element or of lane 0; apart: a vector, one for each lane */
    LLVMValueRef uniform; /* i1: condition on all lanes together; NULL: true */
    LLVMValueRef mask;    /* vector of i1: condition on each lane; NULL: true */
    LLVMValueRef full;    /* i1: all lanes are inside; NULL: unknown, or not contiguous */
    bool apart;           /* the lanes' elements are not adjacent in memory */
} TlCpuSpot;

TlCpuAccess *tl_cpu_access_of(TlCpuGen *g, TlOp *op);
TlCpuSpot tl_cpu_spot_at(TlCpuGen *g, TlCpuAccess *a, TlCpuAt *at);
/* The condition for accessing the element. With --check, code that reports a violation. */
LLVMValueRef tl_cpu_element_ok(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuSpot *s);
TlType tl_cpu_elem_of(const TlType *type);
/* What is built next runs only if `cond` holds. Returns the block to continue in: join_at. */
LLVMBasicBlockRef tl_cpu_branch_if(TlCpuGen *g, LLVMValueRef cond);
void tl_cpu_join_at(TlCpuGen *g, LLVMBasicBlockRef join);
#endif
