/* Products in loops, which nest_product.c finds: what the files that lower them share
 * (cpu_matmul.c, cpu_pack.c, cpu_multiply.c). */
#ifndef TL_CPU_MATMUL_H
#define TL_CPU_MATMUL_H
#include "codegen/cpu/cpu.h"

/* B that is read is asked for so many rows ahead, or bytes along k, into this cache. */
enum { TL_CPU_FAR_ROWS = 32, TL_CPU_FAR_BYTES = 1536, TL_CPU_SECOND_CACHE = 2 };

/* ---- numbers of the run ---- */

static inline LLVMValueRef tl_cpu_add(TlCpuGen *g, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildAdd(g->b, x, y, "");
}

static inline LLVMValueRef tl_cpu_times(TlCpuGen *g, LLVMValueRef x, int64_t n)
{
    return LLVMBuildMul(g->b, x, tl_gen_int(&g->gen, n), "");
}

static inline LLVMValueRef tl_cpu_parts_of(TlCpuGen *g, LLVMValueRef n, int64_t part)
{
    return LLVMBuildUDiv(g->b, tl_cpu_add(g, n, tl_gen_int(&g->gen, part - 1)),
                         tl_gen_int(&g->gen, part), "");
}

/* ---- a chunk of a product: cpu_matmul.c ---- */

/* Elements are packed elements, as large as a sum: one, or several parts along k. */
typedef struct TlCpuMultiply {
    TlCpuGen *g;
    const TlNest *n;
    const TlNestProduct *p;
    TlDtype dtype;          /* of the sums */
    LLVMTypeRef elem, part; /* a packed element; a part of it */
    int per, width, nv, mr;
    bool halves;                    /* two rows share the last vector of their panel */
    int64_t panel;                  /* columns of a panel */
    bool fetches;                   /* rows of B are asked for ahead */
    LLVMValueRef panel_rows;        /* that it has room for, and one more */
    LLVMValueRef panels;            /* how many are multiplied */
    LLVMValueRef narrow, narrows;   /* column where narrow panels begin, how many; NULL: none */
    int64_t rows, acc_row;          /* acc's rows, their stride */
    LLVMValueRef acc, a, a_row, b;  /* addresses; a_row: of a's rows, or columns, in parts */
    LLVMValueRef a_step;            /* from an element of a listed column to the next; NULL: 1 */
    bool a_listed;                  /* a is a list of the addresses of its rows, or columns */
    LLVMValueRef count;             /* elements along k in this chunk */
    LLVMValueRef from, to, columns; /* rows from .. to - 1, columns 0 .. columns - 1 */
    LLVMValueRef out, out_row;      /* where sums go, row stride; NULL: to acc, aligned */
    LLVMValueRef last;              /* +0 or -0, added to each sum at the end; NULL: nothing is */
    LLVMValueRef gathered, ngathered; /* chunks that are multiplied together; NULL: this one only */
    LLVMValueRef skipped;             /* columns of B before the first panel; NULL: none */
    LLVMValueRef b_row;               /* row of B's panels where the chunk begins; NULL: 0 */
    LLVMValueRef lo, by;              /* k of the loop's first iteration, from one to the next */
    LLVMValueRef first, trips;        /* the chunk's first iteration, how many it has */
    bool reads_b;                     /* B is not packed */
    LLVMValueRef reads_now;           /* i1, so it is in this chunk; NULL: in none */
    int deep;                         /* one row of A: rows of B at a time; 0: one by one */
    LLVMValueRef some;                /* i1, B is not packed and rows are more than few; NULL: no */
    bool from_zero;                   /* acc is not read: sums begin at 0 */
    LLVMValueRef begins;              /* i1: so it is in this chunk; NULL: in none */
    /* B, read up to its ends: the chunk's first row, elements from row to row, or from column to
     * column along k, columns that are inside, k below which others are asked for; of a panel,
     * where its vectors are, which lanes. */
    LLVMValueRef b_from, b_down, b_inside, b_asks;
    LLVMValueRef b_deep; /* rows of a panel that is inside that are taken several at a time */
    LLVMValueRef b_at[TL_NEST_PANEL], b_lanes[TL_NEST_PANEL];
    int whole;      /* so many of the panel's vectors are inside, at least */
    bool ends_half; /* of the last one, half is computed */
} TlCpuMultiply;

static inline LLVMValueRef tl_cpu_elem_at(const TlCpuMultiply *x, LLVMValueRef base,
                                          LLVMValueRef offset)
{
    return LLVMBuildInBoundsGEP2(x->g->b, x->elem, base, &offset, 1, "");
}

static inline LLVMValueRef tl_cpu_part_at(const TlCpuMultiply *x, LLVMValueRef base,
                                          LLVMValueRef offset)
{
    return LLVMBuildInBoundsGEP2(x->g->b, x->part, base, &offset, 1, "");
}

/* cpu_pack.c: packs an operand of an iteration that begins at `k` of the chunk: rows of B, or
 * columns of A. */
void tl_cpu_pack(TlCpuMultiply *x, const TlNest *pack, LLVMValueRef to, LLVMValueRef k);
LLVMValueRef tl_cpu_packed_columns(TlCpuMultiply *x); /* of B */
/* i1: so much of B that what is read later is asked for ahead. */
LLVMValueRef tl_cpu_is_far(TlCpuGen *g, const TlCpuAccess *a);
/* Lowers the ops from which the operands of an iteration are computed. */
void tl_cpu_lower_trip(const TlCpuMultiply *x, LLVMValueRef trip);
/* Packed elements of B as they are in the iteration that was lowered, all of it inside: x->nv
 * vectors of its row k from a column on; if it is transposed, one vector of each of as many rows as
 * that has lanes. */
void tl_cpu_read_b(TlCpuMultiply *x, LLVMValueRef k, LLVMValueRef column, LLVMValueRef *out);
/* Likewise a vector of each of n columns, along k. */
void tl_cpu_read_along(TlCpuMultiply *x, LLVMValueRef k, const LLVMValueRef *column, int n,
                       LLVMValueRef *out);

/* cpu_dot_insn.c. Where A is flipped: the correction of a sum is that of the sum of all that A's
 * elements are multiplied by, the elements of B. */
LLVMValueRef tl_cpu_dot_add_ones(TlGen *g, const TlCpuDotInsn *insn, TlDtype b_type, LLVMValueRef b,
                                 LLVMValueRef sum);
LLVMValueRef tl_cpu_dot_correction(TlGen *g, TlDtype a_type, LLVMValueRef sum_of_b);
/* The same of two rows and two columns by p->pairs. Are its sums turned, those of the first column
 * in the first half? */
bool tl_cpu_pairs_are_turned(const TlNestProduct *p);
LLVMValueRef tl_cpu_dot_add_pairs(TlGen *g, const TlNestProduct *p, LLVMValueRef a, LLVMValueRef b,
                                  LLVMValueRef sum);
/* sum + the products of a and b, vectors of `lanes` elements as large as a sum; b_type: of B's
 * elements in the program. */
LLVMValueRef tl_cpu_dot_add(TlGen *g, const TlCpuDotInsn *insn, TlDtype b_type, LLVMValueRef a,
                            LLVMValueRef b, LLVMValueRef sum);

/* ---- cpu_multiply.c ---- */

/* acc + a * b of packed elements. */
LLVMValueRef tl_cpu_multiply_add(TlCpuMultiply *x, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef acc);
/* Where the chunk's part of panel number n of B begins. */
LLVMValueRef tl_cpu_panel_of_chunk(TlCpuMultiply *x, LLVMValueRef n);
/* Number n of the chunks that are multiplied together. */
TlCpuMultiply tl_cpu_gathered_chunk(const TlCpuMultiply *x, LLVMValueRef n);
/* panels, narrow, narrows: of `columns` */
void tl_cpu_divide_columns(TlCpuMultiply *x);
/* After B has been packed: what is to be added to sums, as A's signs are flipped. */
void tl_cpu_correct(TlCpuMultiply *x);
/* Says in scratch memory, as number `n` of those that are gathered, what the chunk is. */
void tl_cpu_gather_chunk(TlCpuMultiply *x, LLVMValueRef n);
/* Rows from .. to - 1 of A times all panels of B, added to acc. */
void tl_cpu_multiply(TlCpuMultiply *x);
/* cpu_tiles.c: the same, by tiles of AMX. */
void tl_cpu_multiply_tiles(TlCpuMultiply *x);
/* Likewise few rows, and B as it is, of which all iterations of the chunk are inside. */
void tl_cpu_multiply_few(const TlCpuMultiply *x);
/* Blocks of mr rows take those up to here, blocks of half as many what is left. */
LLVMValueRef tl_cpu_whole_blocks(const TlCpuMultiply *x, int mr);
/* cpu_along.c: the same, where the lanes of sums lie along k. */
void tl_cpu_multiply_along(const TlCpuMultiply *x);
#endif
