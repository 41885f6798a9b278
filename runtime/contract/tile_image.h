/* The kernel image, version 19: the contract between compiler and runtime. One flat little-endian
 * block, offsets in bytes from its start, readable in place. Strings are offsets of NUL-terminated
 * text. The compiler writes it (codegen/gen/image.c); the runtime validates it once
 * (runtime/image_check.c) and then reads it. Several images, one per target and each a multiple of
 * 64 bytes, may follow one another. Needs only libc; may be included anywhere. */
#ifndef TILE_IMAGE_H
#define TILE_IMAGE_H
#include <stdint.h>

#define TILE_IMAGE_MAGIC "TILEIMG1"
enum {
    TILE_IMAGE_VERSION = 19, TILE_MAX_GRID = 6, TILE_IMAGE_MAX_RANK = 8,
    TL_MAX_CLUSTER = 8, /* programs; bytes of shared memory that one may have: */
    TL_CLUSTER_SHARED = 200 << 10,
    TILE_IMAGE_MAX_PARAMS = 128,
    TILE_IMAGE_MAX_SYMS = 256, TILE_IMAGE_MAX_KEYS = 8
};

/* Launch-time expressions: postfix code over a stack of 64-bit words; integers are i64, floats are
 * double bits. */
typedef enum tile_hx_op {
#define HX(ID, operands, meaning) TILE_HX_##ID,
#include "runtime/contract/hx.def"
    TILE_HX_COUNT
} tile_hx_op;

/* How many operands an operator takes; each leaves one value. */
static inline uint32_t tile_hx_operands(uint32_t op)
{
    static const uint8_t OPERANDS[TILE_HX_COUNT] = {
#define HX(ID, operands, meaning) operands,
#include "runtime/contract/hx.def"
    };
    return OPERANDS[op];
}

typedef struct tile_hx_ins { uint32_t op, pad; int64_t imm; } tile_hx_ins;
enum { TILE_HX_MAX_STACK = 32 };

/* An expression: code, and the text and position in the source, for messages. Division by zero: the
 * launch fails. */
typedef struct tile_image_expr {
    uint32_t code, ncode, text, is_float, file, line;
} tile_image_expr;

typedef enum tile_dim_kind {
    TILE_DIM_CONST,  /* value: the number demanded */
    TILE_DIM_SYM,    /* value: symbol index */
    TILE_DIM_EXPR,   /* value: expression index; demanded */
    TILE_DIM_DENSE   /* strides only: extent * stride of the next axis, 1 for the last */
} tile_dim_kind;
typedef struct tile_image_dim { uint32_t kind, is_i64; int64_t value; } tile_image_dim;

typedef enum tile_param_kind {
    TILE_PARAM_VIEW, TILE_PARAM_POINTER, TILE_PARAM_SCALAR
} tile_param_kind;
typedef struct tile_image_param {
    uint32_t name, kind, dtype, is_const, rank;
    uint32_t dims; /* views: 2 * rank tile_image_dim, extent and stride of each axis in turn */
    uint32_t value; /* scalars with a default: a u64 with its bits; else 0. No launch uses it */
} tile_image_param;

/* A name for a run-time extent or stride; its value is taken where it appears first, and demanded
 * elsewhere. */
typedef struct tile_image_sym { uint32_t name, param, axis, is_stride; } tile_image_sym;

/* The parameter table: what the runtime puts into each 8-byte slot of the kernel's parameter
 * block. */
typedef enum tile_slot_kind {
    TILE_SLOT_POINTER, /* address of param */
    TILE_SLOT_SCALAR,  /* value of param, in the low bytes */
    TILE_SLOT_EXTENT,  /* i64 extent of param's axis */
    TILE_SLOT_STRIDE,  /* i64 stride in elements of param's axis */
    TILE_SLOT_BYTES,   /* bytes of memory behind param's address (--check) */
    /* i64 number of programs on an axis (GPU kernels, which know only their linear index) */
    TILE_SLOT_NPID,
    /* what divides by it, n: x / n is x m, of 64 bits, shifted right by s, for x below 2^31; m is
     * the low word, 2^s / n rounded up, and s the high one, log2(n) rounded up and 31 more
     * (Granlund and Montgomery 1994) */
    TILE_SLOT_BY_NPID,
    TILE_SLOT_GROUP, /* i64 group of the launch, 0 = none */
    TILE_SLOT_DEBUG, /* address of the debug buffer, 0 = none */
    /* programs start on `param` dies in turn, and neighbours are to share one: the number of all
     * programs divided by param; the remainder is the high word. There is one at most */
    TILE_SLOT_DIES,
    /* a tensor map of param, a view: 128 bytes instead of 8. Its axes: `axis & 15`, along which
     * elements lie side by side, then all others, the last one first. Its box: box & 0xffff
     * elements (of packed ones their bytes) along the first, box >> 16 along axis `axis >> 4 & 15`,
     * 1 along others. Rows of `axis >> 8 & 255` bytes in shared memory, 128, 64 or 32, whose
     * 16-byte pieces are XORed by the row; with TILE_MAP_WIDE rows of 128, whose 32-byte pieces
     * are */
    TILE_SLOT_MAP,
    /* i64 number of programs that start: a kernel that has this slot does the whole grid with any
     * number. There is one at most */
    TILE_SLOT_BLOCKS,
    /* i64 number of programs on an axis, times -1: what is left of x / n is x + (x / n) (-n), a
     * product and sum in one */
    TILE_SLOT_MINUS_NPID
} tile_slot_kind;
typedef struct tile_image_slot { uint32_t kind, param, axis, box; } tile_image_slot;
enum { TILE_MAP_WIDE = 1 << 16 };
enum { TL_MAP_BYTES = 128, TL_MAP_ALIGNMENT = 64, TL_MAX_MAPS = 16 /* of a kernel */ };

/* A compile-time constant this instance was made with, as text: B = "128", T = "f16", epi =
 * "relu". */
typedef struct tile_image_const { uint32_t name, value; } tile_image_const;
typedef struct tile_image_alias { uint32_t a, b; } tile_image_alias; /* parameter indices */

/* GPU and emulator: where each leaf call stands (runtime/contract/leaf.def); the site operand is
 * its index here. */
/* param + 1 of an access, 0 = not known */
typedef struct tile_image_site { uint32_t leaf, file, line, col, flags, param; } tile_image_site;
/* a store: elements of one execution may meet, one of the values wins */
enum { TILE_SITE_ANY_WINS = 1 };

/* What a row made for special arguments asks of them. The row can be used when for every test
 * (value & mask) == 0; else the row's `otherwise` is asked. Values are 64 bits wide. */
typedef enum tile_test_kind {
    TILE_TEST_POINTER, /* address of param, a view or pointer */
    TILE_TEST_EXTENT,  /* extent of a view's axis */
    TILE_TEST_STRIDE,  /* stride in elements of a view's axis, dense ones too */
    TILE_TEST_SPAN,    /* bytes from a view's first element to the end of its last one: 0 when an
                          extent is; all bits set when it does not fit or an axis of more than one
                          element has a negative stride */
    TILE_TEST_SCALAR,  /* integer parameter, sign- or zero-extended as its type says */
    TILE_TEST_GRID,    /* 0: the grid is what the kernel's clause says; 1: the launch gave it */
    TILE_TEST_CLUSTER, /* 0: the grid has whole clusters, or the row asks for none; 1: it has not */
    TILE_TEST_COUNT
} tile_test_kind;
typedef struct tile_image_test { uint32_t kind, param, axis, pad; uint64_t mask; } tile_image_test;

typedef struct tile_image_kernel {
    uint32_t name, symbol;              /* symbol: entry in the code */
    uint32_t nparams, params, nsyms, syms, nslots, slots, nconsts, consts, nexprs, exprs, naliases,
        aliases;
    /* expression indices; ngrid 0: the launch must give the grid */
    uint32_t ngrid, grid[TILE_MAX_GRID];
    uint32_t group;                     /* expression index + 1; 0 = none */
    uint32_t nrequires, requires_off;   /* u32 expression indices, checked at every launch */
    uint32_t nassumes, assumes;         /* likewise, with checks on only */
    uint32_t code, ncode;               /* cpu: ELF object; ref: tile IR text */
    uint32_t warps, threads, shared_bytes, flags;
    uint64_t scratch_bytes;             /* cpu: per worker, 64-byte aligned */
    uint32_t doc;
    uint32_t nsites, sites, ntexts, texts; /* tile_image_site; u32 string offsets */
    uint32_t ntests, tests;             /* tile_image_test */
    /* with tests: index + 1 of the same kernel's next form, a later row; 0: the image has none,
     * and another image may have it */
    uint32_t otherwise;
    /* cpu: at the beginning of a worker's scratch, 0 before its first launch */
    uint32_t zeroed_bytes;
    /* tuning: u32 expression indices; the bucket of a launch is the ceil(log2(value)) of each, and
     * -1 for values below 1. This row was found best for each of `ntuned` buckets, i32[nkeys] each.
     * Of the rows that accept a launch, one with the nearest bucket is taken */
    uint32_t nkeys, keys, ntuned, tuned;
    /* GPUs: so many programs that follow each other along an axis of the grid may run as a cluster:
     * they bring parts of what all of them read to each other. 0: each for itself */
    uint32_t cluster, cluster_axis;
} tile_image_kernel;
enum {
    TILE_KERNEL_CHECKED = 1, /* built with --check */
    /* reached through `otherwise` of one other row only: not listed, not looked up */
    TILE_KERNEL_OTHERWISE = 2,
    /* cpu: no program waits for another, so they may start in any order */
    TILE_KERNEL_ANY_ORDER = 4,
    /* GPUs: it begins by waiting for the kernel before it in the stream, so it may start early */
    TILE_KERNEL_WAITS = 8,
    /* GPUs: its programs run in clusters or not at all: it tests for them */
    TILE_KERNEL_PAIRS = 16
};

typedef struct tile_image_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t total_bytes, checksum;     /* FNV-1a of everything after the header */
    uint32_t target;                    /* "cpu", "cpu:x86-64-v3", "ref", "sm_80", ... */
    uint32_t nkernels, kernels;
    uint32_t nfiles, files;             /* u32 string offsets: source paths for messages */
    /* cpu, emu: what the code uses of the CPU, "x86-64 sse3 ssse3" (rows of
     * runtime/contract/cpu_level.def); else 0 */
    uint32_t features;
} tile_image_header;

/* ---- the cpu kernel's calling convention ---- */
struct tile_cpu_ctx;
/* Services for kernel code: nothing in a kernel object is undefined, calls go through this
 * table. */
typedef struct tile_cpu_services {
    /* data: n elements of dtype, row-major, as in tiles (one byte per packed element) */
    void (*print)(const struct tile_cpu_ctx *ctx, const char *text, const void *data,
                  uint32_t dtype, uint32_t rank, const int32_t *shape);
    /* kind: 0 assertion, 1 out of bounds, 2 assumption */
    void (*fail)(const struct tile_cpu_ctx *ctx, uint32_t kind, uint32_t file, uint32_t line,
                 uint32_t col, const char *text);
    /* --check: is [addr, addr + bytes) inside memory of parameter `param` (-1: of any)? Reports
     * when not and returns 0. */
    int32_t (*check)(const struct tile_cpu_ctx *ctx, const void *addr, uint64_t bytes,
                     int32_t param, uint32_t file, uint32_t line, uint32_t col);
    double (*fmod)(double, double);
    float (*fmodf)(float, float);
    void (*memcpy)(void *, const void *, uint64_t);
    void (*memset)(void *, int32_t, uint64_t);
    /* rounded once; for CPUs that have no instruction for it */
    double (*fma)(double, double, double);
} tile_cpu_services;
typedef struct tile_cpu_ctx {
    const tile_cpu_services *services;
    void *scratch;          /* scratch_bytes, 64-byte aligned, this worker's own */
    int32_t pid[TILE_MAX_GRID], npid[TILE_MAX_GRID];
    void *user;             /* the runtime's */
    uint64_t launch; /* not 0; another number for each launch that has the same scratch memory */
    uint64_t cache_bytes; /* stores to arrays as large may pass by the caches */
    int32_t count; /* programs of this call along the first axis, and */
    int32_t rows;  /* along the second one; both at least 1 */
} tile_cpu_ctx;
/* Runs the programs pid[0], pid[0] + 1, ..., pid[0] + count - 1 of the first axis, in this order,
 * and, if rows > 1, the same of the second axis' pid[1] + 1, ..., pid[1] + rows - 1: pid[0] is 0
 * then, and count is npid[0]. Counts pid[0] and pid[1] up. params: one 8-byte word per slot. */
typedef void (*tile_cpu_kernel)(tile_cpu_ctx *ctx, const uint64_t *params);
#endif
