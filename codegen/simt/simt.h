/* SIMT lowering: laid-out tile IR to LLVM IR of one thread, the same for NVIDIA, AMD and the
 * emulator. Shared by the simt_*.c files.
 *
 * A kernel becomes a function with one argument per slot of its parameter table: pointers are
 * `ptr addrspace(1)`, all else i64. A scalar is one LLVM value, equal in all threads of the block.
 * A tile is an array of LLVM scalars, one per register of its layout (tl_layout_registers),
 * numbered as tl_layout_apply_reg numbers them; element types as in registers (tl_gen_elem_type:
 * bool i1, bf16 i16, f8 i8). Registers of padding (coordinates outside of the tile) hold anything
 * that is not poison; nothing may depend on them. Threads whose free lane or warp bits
 * (tl_layout_free_masks) are not 0 hold copies.
 *
 * What LLVM IR cannot say is a call of `tl.leaf.NAME` (runtime/contract/leaf.def); leaves.h expands
 * them after LLVM's middle end. All branches are uniform in the block. Barriers come from
 * tl_simt_barrier only. */
#ifndef TL_SIMT_H
#define TL_SIMT_H
#include "codegen/gen/codegen.h"
#include "codegen/gen/gen.h"
#include "ir/layout/layout.h"
#include "passes/analysis/axis_info.h"
#include "runtime/contract/leaf.h"

/* A thread's numbers, and what follows from them. */
typedef struct TlSimtThread {
    LLVMValueRef tid, lane, warp; /* i32 */
    LLVMBasicBlockRef block;      /* ends in a branch; what follows stands before it */
    TlMap *parts;                 /* layout to what it gives in this thread (simt_layout.c) */
} TlSimtThread;

typedef struct TlSimt {
    TL_GEN_BASE; /* ptr is `ptr addrspace(1)` here */
    const TlCodegenOptions *options;
    TlKernelCode *code; /* sites and texts grow here */
    TlAxisInfo *axis;
    LLVMValueRef **regs;       /* by value id: tiles */
    struct TlSimtRead **reads; /* by value id: tiles that GETs give, not all read yet; else NULL */
    uint32_t counted;            /* accesses on which each thread counts (simt_access.c) */
    struct TlSimtSpread *spread; /* copies that the next product begins; NULL: none */
    bool keeps_offsets;    /* over loops, where they are many (kept_offsets.h) */
    uint32_t crossed_axis; /* of the grid, along which clusters go, where it is not the first */
    int lane_bits, warp_bits;
    TlSimtThread thread;
    LLVMValueRef first_warp; /* thread.warp of the prologue */
    enum TlSimtRole { TL_SIMT_ALL, TL_SIMT_PRODUCER, TL_SIMT_CONSUMERS } role; /* of the flow */
    struct TlSimtTensor *tensor;  /* tensor memory; NULL: none (simt_tensor.c) */
    LLVMValueRef uniform_warp;    /* tl_simt_uniform_warp; NULL: not made yet */
    bool one_warp;                /* what is built is for the first warp alone */
    LLVMBasicBlockRef prologue;   /* ends in a branch; what every op may use stands before it */
    TlLoc loc;                    /* of the op being lowered: sites get it */
    int param;                    /* whose memory it accesses, -1: not known; likewise */
    TL_VEC(const TlOp *) assembled; /* ASM ops whose texts have been tried; alike ones once */
    bool failed;                  /* the program is wrong; said so */
} TlSimt;

/* ---- simt_lower.c ---- */
/* The values of a tile's registers; asserts that it has been lowered. */
LLVMValueRef *tl_simt_regs(TlSimt *g, const TlValue *v);
/* Room for them, to be filled by the caller. */
LLVMValueRef *tl_simt_define(TlSimt *g, const TlValue *v);
/* Evaluates a REDUCE's or SCAN's user region on scalars: n values a, n values b to n results. */
void tl_simt_user_combine(TlSimt *g, const TlOp *op, uint32_t n, LLVMValueRef *a, LLVMValueRef *b,
                          LLVMValueRef *out);

/* ---- simt_carry.c: what loops and branches carry ---- */
typedef struct TlSimtCarried {
    LLVMValueRef *phi;
    int64_t n;    /* phis */
    int together; /* registers of one phi */
} TlSimtCarried;
/* Of a tile or scalar: how many values, the values. */
int64_t tl_simt_count(const TlValue *v);
LLVMValueRef *tl_simt_values(TlSimt *g, const TlValue *v);
void tl_simt_set_values(TlSimt *g, const TlValue *v, LLVMValueRef *x);
/* Phis for the values, at the end of the block that is built, which has nothing but phis. */
TlSimtCarried *tl_simt_carry(TlSimt *g, uint32_t n, TlValue *const *values);
/* Operands first, first + 1, ... of `term` come into them from that block. */
void tl_simt_carry_from(TlSimt *g, const TlOp *term, uint32_t first, uint32_t n,
                        TlSimtCarried *carried, LLVMBasicBlockRef from);
/* From here on they are the values. */
void tl_simt_take_carried(TlSimt *g, uint32_t n, const TlSimtCarried *carried,
                          TlValue *const *values);

/* ---- simt_leaf.c ---- */
/* Calls a leaf; the site is added in front where the row has one (args do not include it). */
LLVMValueRef tl_simt_leaf(TlSimt *g, tl_leaf leaf, unsigned nargs, LLVMValueRef *args);
/* Of a leaf that takes words, the last `words` of the arguments, and gives them back, as a struct;
 * 0: void. */
enum { TL_SIMT_MOST_ARGS = 16 + TL_LEAF_MOST_WORDS };
LLVMValueRef tl_simt_leaf_words(TlSimt *g, tl_leaf leaf, unsigned nargs, LLVMValueRef *args,
                                unsigned words);
void tl_simt_barrier(TlSimt *g);
/* TAKE_TURN, PASS_TURN. */
void tl_simt_turn(TlSimt *g, const TlOp *op);
LLVMValueRef tl_simt_i32(TlSimt *g, uint32_t v);
/* One register's value as i32 words (1 or 2; smaller types are zero-extended into one), and
 * back. */
int tl_simt_to_words(TlSimt *g, const TlType *type, LLVMValueRef x, LLVMValueRef words[2]);
LLVMValueRef tl_simt_from_words(TlSimt *g, const TlType *type, LLVMValueRef *words);
/* The value that another lane of the warp has: any element type. mask constant; lane any i32. */
LLVMValueRef tl_simt_shuffle_xor(TlSimt *g, const TlType *type, LLVMValueRef x, uint32_t mask);
/* TL_LEAF_SHFL_END, TL_LEAF_SHFL_SHIFT (n < 0: of lanes behind; *there: i1). */
LLVMValueRef tl_simt_shuffle_end(TlSimt *g, const TlType *type, LLVMValueRef x, uint32_t n);
LLVMValueRef tl_simt_shuffle_shift(TlSimt *g, const TlType *type, LLVMValueRef x, int n,
                                   uint32_t lanes, LLVMValueRef *there);
LLVMValueRef tl_simt_shuffle_idx(TlSimt *g, const TlType *type, LLVMValueRef x, LLVMValueRef lane);
/* n values of `type` (n * element bytes a power of two; at most 32 values) as one value of the type
 * that leaves take for so many bytes, and back. */
LLVMTypeRef tl_simt_wide_type(TlSimt *g, const TlType *type, int n);
LLVMValueRef tl_simt_pack(TlSimt *g, const TlType *type, int n, LLVMValueRef *x);
void tl_simt_unpack(TlSimt *g, const TlType *type, LLVMValueRef wide, int n, LLVMValueRef *out);
/* The leaf of a family of loads, stores or atomics for so many bytes. */
tl_leaf tl_simt_sized(tl_leaf_family family, uint64_t bytes);
/* n registers (n * element bytes a power of two, at most 16) at consecutive addresses of shared
 * memory, `offset` an i32, aligned to the whole access. bool is one byte, 4-bit types one byte.
 * pred NULL: always. */
void tl_simt_shared_store(TlSimt *g, const TlType *type, LLVMValueRef offset, LLVMValueRef pred,
                          int n, LLVMValueRef *x);
void tl_simt_shared_load(TlSimt *g, const TlType *type, LLVMValueRef offset, int n,
                         LLVMValueRef *out);

/* ---- simt_layout.c: where a register's element is ---- */
/* The warp's number, by a shuffle: only so NVIDIA's compiler sees that all threads of a warp have
 * the same, and keeps what follows from it in uniform registers. In the prologue. */
LLVMValueRef tl_simt_uniform_warp(TlSimt *g);
LLVMValueRef tl_simt_is_first_warp(TlSimt *g); /* i1 */
/* i32 coordinate along `dim` of register `reg` in this thread. */
LLVMValueRef tl_simt_coord(TlSimt *g, const TlLayout *l, int64_t reg, int dim);
/* The same as two summands: one that depends on the thread and a constant, chosen so that most
 * registers share the first. */
typedef struct TlSimtCoord {
    LLVMValueRef thread;
    int32_t constant;
    uint32_t bits; /* that `thread` may have */
} TlSimtCoord;
TlSimtCoord tl_simt_split_coord(TlSimt *g, const TlLayout *l, int64_t reg, int dim);
/* The XOR over the set bits of lane and warp: one i32. */
LLVMValueRef tl_simt_thread_xor(TlSimt *g, int lane_bits, const uint32_t *lane, int warp_bits,
                                const uint32_t *warp);
/* i1: is the register's element one of the tile? NULL: always. */
LLVMValueRef tl_simt_is_inside(TlSimt *g, const TlType *type, int64_t reg);
/* i1: does this thread hold the copy that counts (free lane and warp bits 0)? NULL: every
 * thread. */
LLVMValueRef tl_simt_is_owner(TlSimt *g, const TlLayout *l);
/* a && b, where NULL means true. */
LLVMValueRef tl_simt_both(TlSimt *g, LLVMValueRef a, LLVMValueRef b);
/* The register of `of` that holds the element of register `reg` of `l` in every thread, both
 * layouts related by layout_rules.h; dims[d]: l's output that of's output d is, -1: coordinate
 * 0. */
int64_t tl_simt_match(TlSimt *g, const TlLayout *of, const TlLayout *l, int64_t reg,
                      const int *dims);

/* ---- simt_access.c, simt_atomic.c: global memory ---- */
void tl_simt_load(TlSimt *g, TlOp *op);
void tl_simt_store(TlSimt *g, TlOp *op);
void tl_simt_inside(TlSimt *g, TlOp *op);
void tl_simt_atomic(TlSimt *g, TlOp *op);

/* ---- simt_convert.c, simt_reduce.c, simt_scan.c, simt_dot.c, simt_table.c ---- */
void tl_simt_convert(TlSimt *g, TlOp *op);
void tl_simt_reduce(TlSimt *g, TlOp *op);
void tl_simt_scan(TlSimt *g, TlOp *op);
void tl_simt_gather(TlSimt *g, TlOp *op);
void tl_simt_histogram(TlSimt *g, TlOp *op);
void tl_simt_regroup(TlSimt *g, TlOp *op);
void tl_simt_dot(TlSimt *g, TlOp *op);
void tl_simt_mma(TlSimt *g, TlOp *op); /* simt_mma.c: a DOT with `mma` */
/* simt_bulk.c: barriers that count, bulk copies */
void tl_simt_mbar(TlSimt *g, TlOp *op);
void tl_simt_arrive(TlSimt *g, TlOp *op);
void tl_simt_mbar_wait(TlSimt *g, const TlOp *op);
void tl_simt_mbar_end(TlSimt *g, TlOp *op);
void tl_simt_begin_bulk(TlSimt *g, TlOp *op); /* expect, bulk copies, phases of one */
void tl_simt_bulk_store(TlSimt *g, const TlOp *op);
void tl_simt_store_wait(TlSimt *g, const TlOp *op);
/* simt_async_dot.c: products by warpgroups */
void tl_simt_ready(TlSimt *g, TlOp *op);
void tl_simt_dot_async(TlSimt *g, TlOp *op);
void tl_simt_await(TlSimt *g, TlOp *op);
void tl_simt_fence(TlSimt *g);
/* simt_tensor.c: products by one thread, into tensor memory */
void tl_simt_tensor(TlSimt *g, const TlOp *op);
void tl_simt_tensor_end(TlSimt *g, const TlOp *op);
bool tl_simt_tensor_is_pair(const TlSimt *g); /* are products those of pairs? */
LLVMValueRef tl_simt_is_first_of_pair(TlSimt *g);
void tl_simt_tensor_ready(TlSimt *g, TlOp *op);
void tl_simt_tensor_dot(TlSimt *g, TlOp *op);
void tl_simt_tensor_await(TlSimt *g, TlOp *op);
void tl_simt_tensor_rescale(TlSimt *g, TlOp *op);
/* Behind a loop that other warps pass by: sums that it gives are there if it has had trips (i1). */
void tl_simt_tensor_passed(TlSimt *g, const TlOp *loop, LLVMValueRef trips);
/* The barrier counts an arrival when all products that have begun are done. */
void tl_simt_tensor_arrive(TlSimt *g, LLVMValueRef bar);
/* MBAR_WAIT of the warp alone that begins products. */
void tl_simt_tensor_wait(TlSimt *g, LLVMValueRef *args);
/* What its first step wants of operands that are not read yet. */
void tl_simt_mma_read_first(TlSimt *g, const TlOp *op);
/* ---- simt_staged.c: buffers of shared memory ---- */
void tl_simt_put(TlSimt *g, TlOp *op);
void tl_simt_get(TlSimt *g, TlOp *op);
void tl_simt_read_late(TlSimt *g, TlOp *op); /* read */
/* The register's access is in the code from here on; -1: those of all registers. False: it was. */
bool tl_simt_read(TlSimt *g, const TlValue *v, int64_t reg);
bool tl_simt_is_unread(TlSimt *g, const TlValue *v, int64_t reg);
/* True: a TRANS of what is to be read, and will be with it. `dims` as tl_simt_match has them. */
bool tl_simt_trans_later(TlSimt *g, const TlOp *op, const int *dims);
void tl_simt_copy(TlSimt *g, TlOp *op);
/* Of copies that are spread: `done` of `of` parts are in the code from here on. */
void tl_simt_begin_spread(TlSimt *g, uint32_t done, uint32_t of);
void tl_simt_wait(TlSimt *g, TlOp *op); /* commit, wait */
/* simt_leaf.c: ops on f32 by leaves, as TlGen.own */
LLVMValueRef tl_simt_own(TlGen *gen, const TlOp *op, LLVMValueRef *in);
/* simt_cast.c: lowers a cast of a tile from or to f8 or f4, or from 4 bits to f16; false: it is
 * none that is done two at a time */
bool tl_simt_cast_small(TlSimt *g, const TlOp *op);
bool tl_simt_spread_exp2(TlSimt *g, const TlOp *op); /* simt_exp2.c */
/* a difference in f16 of tiles that were integers of at most 8 bits; false: it is none */
bool tl_simt_subtract_small(TlSimt *g, const TlOp *op);
/* integers of 4 bits in f16, or differences and products of such: they lie in pairs */
bool tl_simt_is_of_nibbles(const TlValue *v);
/* f32 to bf16 by a leaf, as TlGen.to_bf16 */
LLVMValueRef tl_simt_to_bf16(TlGen *gen, LLVMValueRef x);
/* f32 to an integer of 8, 16 or 32 bits by a leaf, as TlGen.to_int */
LLVMValueRef tl_simt_to_int(TlGen *gen, LLVMValueRef x, TlDtype to);
/* simt_fmod.c: the remainder of two floats, as TlGen.fmod */
LLVMValueRef tl_simt_fmod(TlGen *gen, LLVMValueRef x, LLVMValueRef y);
void tl_simt_asm(TlSimt *g, TlOp *op); /* simt_asm.c */
/* ---- simt_debug.c ---- */
void tl_simt_print(TlSimt *g, TlOp *op);
void tl_simt_assert(TlSimt *g, TlOp *op); /* assert, assume */
/* Threads whose i1 `failed` holds report; kind as tile_cpu_services.fail has it. */
void tl_simt_fail(TlSimt *g, LLVMValueRef failed, uint32_t kind, const char *text);
/* An access that lies outside of the array of a parameter, -1: of any. verb: load, store or
 * atomic. */
void tl_simt_outside(TlSimt *g, LLVMValueRef failed, const char *verb, int param,
                     LLVMValueRef address, uint64_t bytes);

/* Lowers a laid-out function into l's module as `symbol`; fills in slots, sites, texts, warps,
 * threads and shared_bytes of `code`. User errors are diagnosed: false. */
bool tl_simt_lower(TlLlvm *l, const TlCodegenOptions *options, TlArena *arena, const TlFn *fn,
                   const char *symbol, TlKernelCode *code);
#endif
