/* Types of tile IR. Interned in a TlCtx: equal types are equal pointers. Immutable. */
#ifndef TL_TYPE_H
#define TL_TYPE_H
#include "ir/support/arena.h"
#include "ir/support/diag.h"
#include "ir/support/guard.h"

typedef enum TlDtype {
#define DTYPE(ID, ...) TL_##ID,
#include "ir/types.def"
    TL_DTYPE_COUNT
} TlDtype;

typedef enum TlDtypeKind { TL_KIND_B, TL_KIND_I, TL_KIND_U, TL_KIND_F } TlDtypeKind;

enum { TL_MAX_RANK = 5, TL_MAX_VIEW_RANK = 8, TL_MAX_ELEMS = 1 << 20, TL_MAX_BUF_SLOTS = 64 };

typedef enum TlTypeKind {
    TL_TILE, /* elements dtype, or pointers to dtype when ptr; rank 0 is a scalar */
    TL_VIEW, /* run-time extents and strides over memory of dtype; rank, no shape */
    TL_BUF,  /* shared memory for `slots` tiles; its layout says which element is at which offset */
    TL_TOKEN, /* a tile on its way: to a buffer, its layout says which thread copies what; or, of a
               * product, to registers */
    TL_TENSOR /* a product's tile in tensor memory, whole or on its way there; its layout is that of
               * the tile when threads read it */
} TlTypeKind;

typedef struct TlLayout TlLayout; /* layout.h */

typedef struct TlType {
    TlTypeKind kind;
    TlDtype dtype;
    bool ptr;      /* tile of pointers to dtype */
    bool is_const; /* pointee or view may not be written */
    uint8_t rank;
    int32_t shape[TL_MAX_RANK]; /* all but views: extents, outermost first; unused ones are 0 */
    int32_t slots;              /* buffers */
    /* buffers: 1 + the axis along which two programs, a pair, have half of each tile each, at the
     * same place; 0: each has all of it */
    uint8_t halved;
    const TlLayout *layout;     /* tiles at the laid-out level, NULL before; buffers, tokens */
} TlType;

/* Shared by everything that is compiled together. Not thread-safe: one per compilation. */
typedef struct TlCtx {
    TlArena perm;      /* types, strings; lives as long as the context */
    TlIntern strings;
    TlMap types;       /* content hash to TlType (chained) */
    TlMap layouts;     /* content hash to TlLayout (chained) */
    /* of conversions planned before, by hash of type and layouts */
    TlMap convert_costs, convert_bytes;
    TlDiags diags;
    struct TlModule *modules; /* all that live, so that an unwound phase leaks none */
    struct TlTraceLane *trace; /* --time-trace: of the context's thread (trace.h); NULL */
} TlCtx;
void tl_ctx_init(TlCtx *ctx, TlAlloc alloc);
void tl_ctx_free(TlCtx *ctx); /* and its modules */

const TlType *tl_type_tile(TlCtx *ctx, TlDtype dtype, int rank, const int32_t *shape);
const TlType *tl_type_scalar(TlCtx *ctx, TlDtype dtype);
const TlType *tl_type_ptr(TlCtx *ctx, TlDtype dtype, bool is_const, int rank, const int32_t *shape);
const TlType *tl_type_view(TlCtx *ctx, TlDtype dtype, bool is_const, int rank);
/* layout: from OFFSET, in elements; it is interned. See ir/plan/staged.h. */
const TlType *tl_type_buf(TlCtx *ctx, TlDtype dtype, int rank, const int32_t *shape,
                          const TlLayout *layout, int32_t slots);
/* The buffer's tiles are a pair's, which have half of them each along the axis; -1: of this program
 * alone. */
const TlType *tl_type_halved(TlCtx *ctx, const TlType *buf, int axis);
const TlType *tl_type_token(TlCtx *ctx, TlDtype dtype, int rank, const int32_t *shape,
                            const TlLayout *layout);
const TlType *tl_type_tensor(TlCtx *ctx, TlDtype dtype, int rank, const int32_t *shape,
                             const TlLayout *layout);
/* The product's tile before threads have it: a token, or in tensor memory. */
bool tl_is_sums(const TlType *t);
/* `like` with another element (dtype, not a pointer) or another shape */
const TlType *tl_type_with_dtype(TlCtx *ctx, const TlType *like, TlDtype dtype);
const TlType *tl_type_with_shape(TlCtx *ctx, const TlType *like, int rank, const int32_t *shape);
/* The tile with another layout, which is interned; NULL: with none. with_dtype keeps the layout,
 * with_shape drops it. */
const TlType *tl_type_with_layout(TlCtx *ctx, const TlType *like, const TlLayout *layout);
/* Equal layouts, in their canonical form (tl_layout_canonicalize), are one pointer. */
const TlLayout *tl_layout_intern(TlCtx *ctx, const TlLayout *l);

const char *tl_dtype_name(TlDtype d);
int tl_dtype_bits(TlDtype d);
/* of one element in memory and in tiles: packed types count 1 in tiles */
int tl_dtype_bytes(TlDtype d);
/* The unsigned integer of its size; u8 where that is less than a byte. */
TlDtype tl_bits_dtype(TlDtype d);
TlDtypeKind tl_dtype_kind(TlDtype d);
const char *tl_dtype_numpy(TlDtype d);
bool tl_dtype_parse(const char *text, size_t length, TlDtype *out); /* also int, float */
static inline bool tl_is_float(TlDtype d) { return tl_dtype_kind(d) == TL_KIND_F; }
static inline bool tl_is_signed(TlDtype d) { return tl_dtype_kind(d) == TL_KIND_I; }
static inline bool tl_is_int(TlDtype d)
{
    return tl_dtype_kind(d) == TL_KIND_I || tl_dtype_kind(d) == TL_KIND_U;
}
static inline bool tl_is_bool(TlDtype d) { return d == TL_BOOL; }
static inline bool tl_is_packed(TlDtype d) { return tl_dtype_bits(d) < 8; }
/* Of 32 or 64 bits: what all atomics take. */
static inline bool tl_is_word(TlDtype d) { return tl_dtype_bits(d) >= 32; }
/* f8 and f4: tables of numeric.h describe them to all code, there is none of their own. */
static inline bool tl_is_small_float(TlDtype d) { return tl_is_float(d) && tl_dtype_bits(d) <= 8; }
static inline bool tl_is_f8(TlDtype d) { return tl_is_float(d) && tl_dtype_bits(d) == 8; }
/* Of the encodings of gfx942: no infinities, no -0, one NaN, 0x80. */
bool tl_is_fnuz(TlDtype d);
/* May a dot have operands of both? */
static inline bool tl_is_f8_pair(TlDtype a, TlDtype b)
{
    return tl_is_f8(a) && tl_is_f8(b) && tl_is_fnuz(a) == tl_is_fnuz(b);
}

int64_t tl_type_elems(const TlType *t); /* product of the shape, 1 for scalars */
static inline bool tl_is_scalar(const TlType *t) { return t->kind == TL_TILE && t->rank == 0; }
bool tl_same_shape(const TlType *a, const TlType *b);
/* "f32", "tile<f32, 16, 32>", "ptr<const f32>", "tile<ptr<f32>, 16>", "view<const f32, 2>"; with a
 * layout "tile<f32, 16, "reg(1)(2) lane(4)(8) warp -> 16">"; "buf<f32, 4, "offset(1)(2) -> 4",
 * 3>", of which a pair has halves along axis 1 "..., 3, half 1>". */
void tl_type_print(TlSbuf *out, const TlType *t);
/* The same with layouts as "#n", n being the layout's value in the map. */
void tl_type_print_numbered(TlSbuf *out, const TlType *t, const TlMap *layouts);
const char *tl_type_str(TlCtx *ctx, const TlType *t);
#endif
