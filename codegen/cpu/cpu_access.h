/* What the files of memory accesses share: where a position lies and whether it is inside
 * (cpu_access.c), what loads are made of (cpu_element.c), loads at the bounds of index tiles
 * (cpu_border.c), and which load an access is (cpu_load.c). */
#ifndef TL_CPU_ACCESS_H
#define TL_CPU_ACCESS_H
#include "codegen/cpu/cpu.h"

/* ---- arithmetic ---- */

static inline LLVMValueRef tl_cpu_i32(TlCpuGen *g, uint64_t v)
{
    return LLVMConstInt(g->i32, v, 0);
}

static inline LLVMValueRef tl_cpu_mul(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildMul(g->b, a, b, "");
}

/* Conditions, of which NULL is true. */
static inline LLVMValueRef tl_cpu_both(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b)
{
    return !a ? b : !b ? a : LLVMBuildAnd(g->b, a, b, "");
}

/* ---- cpu_access.c: where a position is ---- */

/* Where a pattern's start is below this, and not below 0, no number of it wraps. */
LLVMValueRef tl_cpu_pattern_end(TlCpuGen *g, const TlNestAffine *f);
/* The numbers of axis i's index tile at the position. */
LLVMValueRef tl_cpu_index_tile(TlCpuGen *g, const TlCpuAccess *a, int i, const TlCpuAt *at);
/* Position j of a slice; NULL: all are inside. */
LLVMValueRef tl_cpu_interval_inside(TlCpuGen *g, const TlCpuAccess *a, int i, LLVMValueRef j);
/* Is everything inside at this position, as the nest has asked? */
bool tl_cpu_is_inside(const TlCpuAccess *a, const TlCpuAt *at);
/* Lanes from .. to - 1, numbers of i64 that may be outside of 0 .. width. */
LLVMValueRef tl_cpu_lane_range(TlCpuGen *g, LLVMValueRef from, LLVMValueRef to, int width);
/* Has the program asked about all of its axes, and all is inside? */
bool tl_cpu_is_asked_whole(const TlCpuGen *g, const TlNestAccess *a);
/* Where the lanes are inside, may the row be outside, which then reads as zeros? */
bool tl_cpu_has_zero_rows(const TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at);
/* along_lanes: along these the position is inside, and bounds leave it where it is. A position of
 * one lane has these along no dimension: the nest's may be along another one. */
TlCpuSpot tl_cpu_view_spot(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at, bool along_lanes);

/* Elements from where an axis of rows that may lie apart begins to its position j. */
LLVMValueRef tl_cpu_rows_offset(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at,
                                LLVMValueRef j);

/* ---- cpu_element.c: what loads are made of ---- */

/* What is read outside. */
LLVMValueRef tl_cpu_outside(TlCpuGen *g, const TlCpuAccess *a, const TlType *type, TlCpuAt *at);
/* The address of zeros: of one element, of a row. */
LLVMValueRef tl_cpu_zeros(TlCpuGen *g);
LLVMValueRef tl_cpu_zero_row(TlCpuGen *g);
/* The spot's address, or where it is outside, of zeros. */
LLVMValueRef tl_cpu_spot_or_zeros(TlCpuGen *g, const TlCpuAccess *a, const TlCpuSpot *s);
LLVMValueRef tl_cpu_plain_load(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                               LLVMValueRef p, int width);
LLVMValueRef tl_cpu_masked_load(TlCpuGen *g, const TlType *elem, LLVMValueRef p, LLVMValueRef mask,
                                LLVMValueRef other, int width, bool apart);
/* i1: is the mask false in all lanes? */
LLVMValueRef tl_cpu_in_no_lane(TlCpuGen *g, LLVMValueRef mask);
LLVMValueRef tl_cpu_load_element(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuSpot *s, TlCpuAt *at);
/* A gather of the lanes that are inside. */
LLVMValueRef tl_cpu_load_apart(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at);

/* ---- cpu_border.c: patterns, and what the bounds of index tiles change ---- */

/* Where bounds of an index tile may change something. */
LLVMValueRef tl_cpu_load_bounded(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at);
/* A pattern, all inside. NULL: it is no such position. */
LLVMValueRef tl_cpu_load_pattern(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at);
/* A pattern at the bounds of its index tile. NULL: it is none, or there is no instruction. */
LLVMValueRef tl_cpu_load_pattern_border(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at);
/* What a spread value reads: elements side by side, from the position on. */
LLVMValueRef tl_cpu_load_window(TlCpuGen *g, TlOp *op, TlCpuAccess *a, const TlCpuAt *at);

/* ---- cpu_lookup.c: gathers from arrays of few elements ---- */

/* NULL: the access is none. */
LLVMValueRef tl_cpu_load_looked_up(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                   const TlCpuSpot *s, LLVMValueRef mask, LLVMValueRef other,
                                   int width);

/* ---- cpu_load.c, cpu_store.c: elements apart by a number of the launch ---- */

/* So few have vectors with gaps, as an image's channels and parts of complex numbers are apart. */
enum { TL_CPU_LEAST_APART = 2, TL_CPU_MOST_APART = 4 };

/* ---- cpu_rows.c: rows of a few elements that may lie apart, as one axis ---- */

LLVMValueRef tl_cpu_load_rows(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem, TlCpuSpot *s,
                              LLVMValueRef other, const TlCpuAt *at);
void tl_cpu_store_rows(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem, TlCpuSpot *s,
                       const TlCpuAt *at, LLVMValueRef x, LLVMValueRef mask);

/* ---- cpu_near.c: gathers whose lanes are near each other ---- */

/* Begins a fork of which one side has such lanes; the other one is to be built. False: the access
 * is no such gather. */
bool tl_cpu_fork_near(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem, const TlCpuSpot *s,
                      LLVMValueRef mask, int width, TlCpuFork *out_fork);
#endif
