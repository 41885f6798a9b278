/* Rows for the next program, fetched while this one computes.
 *
 * A kernel that goes over its rows several times, as softmax and the norms do, reads memory in its
 * first nest and then computes on what it keeps: memory waits, and after that the cores do. So the
 * nest that follows the one which read a row asks for the same row of the next program, as many
 * bytes further as the row moves when pid(0) grows by one, and the nest that stores asks for the
 * line that the next program will store. Asking for an address never faults, so the last program
 * needs no care. A reduction or a histogram that computes much asks for what it will read itself
 * (streams). */
#include "codegen/cpu/cpu.h"

#include <string.h>

/* Bytes of a row. The loads of shorter rows are begun before the row before is done, by the CPU
 * itself; longer ones would push each other out of the second cache. Measured: rows of 512 and
 * 4096 bytes and of 128 KiB are up to a fifth slower with fetches, of 16 KiB as much faster. Where
 * a nest computes as much as an exponential the CPU does not see that far: softmax's rows of 4000
 * bytes are a twentieth faster from the last cache and a fifth from memory. */
enum { LEAST_ROW = 8 << 10, LEAST_COMPUTED_ROW = 2 << 10, MOST_ROW = 64 << 10 };
enum { MOST_VALUES = 32, MANY_VALUES = 16 };

/* How much v grows when pid(0) grows by 1, as an i64; *out is NULL if it does not. False: not by
 * the same amount in all programs, or it takes too long to find out. */
static bool growth(TlCpuGen *g, const TlValue *v, int *seen, LLVMValueRef *out)
{
    const TlOp *op = v->def;
    LLVMValueRef by[3] = {NULL};
    *out = NULL;
    if (!op)
        return true;
    if (op->opcode == TL_OP_PID) {
        *out = tl_attr_int(op, TL_ATTR_AXIS, 0) == 0 ? tl_gen_int(&g->gen, 1) : NULL;
        return true;
    }
    if (++*seen > MOST_VALUES || op->nregions)
        return false;
    bool none = true;
    for (uint32_t i = 0; i < op->nin; i++) {
        LLVMValueRef x;
        if (!growth(g, tl_in(op, i), seen, &x))
            return false;
        none &= !x;
        if (i < 3)
            by[i] = x;
    }
    if (none)
        return true;
    if (v->type->kind != TL_TILE || v->type->rank || !tl_is_int(v->type->dtype))
        return false;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    LLVMValueRef a = by[0] ? by[0] : zero, b = by[1] ? by[1] : zero;
    switch (op->opcode) {
    case TL_OP_CAST: *out = a; return true;
    case TL_OP_ADD: *out = LLVMBuildAdd(g->b, a, b, ""); return true;
    case TL_OP_SUB: *out = LLVMBuildSub(g->b, a, b, ""); return true;
    case TL_OP_MUL: {
        if (by[0] && by[1])
            return false;
        const TlValue *factor = tl_in(op, by[0] ? 1 : 0);
        LLVMValueRef f = tl_gen_to_i64(&g->gen, factor, tl_gen_scalar(&g->gen, factor));
        *out = LLVMBuildMul(g->b, by[0] ? a : b, f, "");
        return true;
    }
    default: return false;
    }
}

/* Elements from a program's place to the next program's; NULL: none, or unknown. */
static LLVMValueRef distance(TlCpuGen *g, const TlCpuAccess *a)
{
    LLVMValueRef sum = NULL;
    int seen = 0;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        LLVMValueRef by;
        if (a->place.axes[i].kind == TL_AXIS_TILE ||
            !growth(g, a->place.index[i].value, &seen, &by))
            return NULL;
        if (!by)
            continue;
        by = LLVMBuildMul(g->b, by, a->view->stride[i], "");
        sum = sum ? LLVMBuildAdd(g->b, sum, by, "") : by;
    }
    return sum;
}

static int64_t row_bytes(const TlCpuAccess *a)
{
    TlType t = {.kind = TL_TILE, .rank = (uint8_t)a->place.rank};
    memcpy(t.shape, a->place.shape, sizeof t.shape);
    if (!a->view || t.rank == 0)
        return 0;
    TlNestForm f = tl_nest_form(&t);
    return tl_cpu_is_contiguous(a, f.lane)
               ? f.extent[f.lane] * tl_dtype_bytes(a->place.base->type->dtype)
               : 0;
}

void tl_cpu_prefetch_note(TlCpuGen *g, const TlCpuInside *in)
{
    if (g->prefetched)
        g->next.len = 0;
    g->prefetched = false;
    for (uint32_t i = 0; i < in->accesses.len; i++)
        in->accesses.data[i]->was_read = true;
    for (uint32_t i = 0; i < in->accesses.len && !g->nested; i++) {
        TlCpuAccess *a = in->accesses.data[i];
        int64_t bytes = a->loads ? row_bytes(a) : 0;
        if (bytes < LEAST_COMPUTED_ROW || bytes > MOST_ROW)
            continue;
        a->distance = distance(g, a);
        if (a->distance)
            tl_vec_push(g->arena, &g->next, a);
    }
}

void tl_cpu_prefetch_line(TlCpuGen *g, LLVMValueRef p, bool writes, unsigned locality)
{
    enum { DATA = 1 };
    TL_ASSERT(locality <= 3, "prefetch with locality %u", locality);
    LLVMValueRef args[4] = {p, LLVMConstInt(g->i32, writes, 0), LLVMConstInt(g->i32, locality, 0),
                            LLVMConstInt(g->i32, DATA, 0)};
    tl_gen_intrinsic(&g->gen, "llvm.prefetch", &g->ptr, 1, args, 4);
}

/* Where the next program will be when it is at this position. */
static LLVMValueRef next_address(TlCpuGen *g, TlCpuAccess *a, const TlCpuAt *at)
{
    LLVMValueRef p = tl_cpu_access_address(g, a, at);
    return tl_gen_address(&g->gen, a->view->dtype, p, a->distance);
}

static bool has_shape(const TlCpuAccess *a, const TlType *t)
{
    return a->place.rank == t->rank &&
           !memcmp(a->place.shape, t->shape, t->rank * sizeof *t->shape);
}

/* The next of those that a nest of so many values asks for. */
static TlCpuAccess *next_load(TlCpuGen *g, const TlType *type, uint32_t nvalues, uint32_t *i)
{
    int64_t least = nvalues >= MANY_VALUES ? LEAST_COMPUTED_ROW : LEAST_ROW;
    for (; *i < g->next.len && !g->nested; (*i)++)
        if (has_shape(g->next.data[*i], type) && row_bytes(g->next.data[*i]) >= least)
            return g->next.data[(*i)++];
    return NULL;
}

void tl_cpu_prefetch_store(TlCpuGen *g, const TlType *type, const TlCpuAt *first,
                           TlCpuAccess *store, uint32_t nvalues)
{
    uint32_t i = 0;
    TlCpuAccess *load = next_load(g, type, nvalues, &i);
    store->ahead = NULL;
    if (!load || !tl_cpu_is_contiguous(store, first->lane))
        return;
    if (!store->distance)
        store->distance = distance(g, store);
    if (!store->distance)
        return;
    store->ahead = next_address(g, store, first);
    if (store->streams) /* no line of that row will be in a cache: ask again for what is read */
        store->ahead = LLVMBuildSelect(g->b, store->streams, next_address(g, load, first),
                                       store->ahead, "");
}

void tl_cpu_prefetch(TlCpuGen *g, const TlType *type, const TlCpuAt *at, const TlCpuAccess *store,
                     uint32_t nvalues)
{
    enum { LOCALITY = 2 };
    uint32_t i = 0;
    for (TlCpuAccess *load; (load = next_load(g, type, nvalues, &i));) {
        tl_cpu_prefetch_line(g, next_address(g, load, at), false, LOCALITY);
        g->prefetched = true;
    }
    if (!store || !store->ahead)
        return;
    LLVMValueRef p = tl_gen_address(&g->gen, store->view->dtype, store->ahead, at->idx[at->lane]);
    tl_cpu_prefetch_line(g, p, true, LOCALITY);
}

/* ---- streams ----
 * Where a nest computes much for each vector that it reads, the loads that the CPU itself begins
 * ahead are of a few lines, and what it fetches ends with a page. Measured on rows of blocks q8_0:
 * 1.8 times as fast with fetches a page ahead, 1.3 times with a quarter of a page; on Zen 4 two
 * pages are 1.03 to 1.08 times as fast as one or four.
 *
 * A nest that computes little waits for memory only. It asks for what lies a page further on, for
 * the second cache, but not where the array may be in a cache. Where more is computed, lines in the
 * second cache are too far: blocks q8_0 take 1.4 times as long. */
enum { LINE = 64, AHEAD = 8192, LEAST_VALUES = 12, LIGHT_AHEAD = 4096, PARTS_OF_CACHE = 2 };

/* Does v depend on which program it is? A loop's index does where its first value does. */
static bool is_by_program(const TlValue *v, int *seen)
{
    const TlOp *op = v->def;
    if (!op && v->block && v->block->parent && v->block->parent->opcode == TL_OP_FOR &&
        v->index == 0)
        return is_by_program(tl_in(v->block->parent, 0), seen);
    if (!op || ++*seen > MOST_VALUES)
        return false;
    if (op->opcode == TL_OP_PID)
        return true;
    for (uint32_t i = 0; i < op->nin; i++)
        if (is_by_program(tl_in(op, i), seen))
            return true;
    return false;
}

/* Do other programs read other places? */
static bool reads_its_own(const TlCpuAccess *a)
{
    int seen = 0;
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->place.axes[i].kind != TL_AXIS_TILE &&
            is_by_program(a->place.index[i].value, &seen))
            return true;
    return false;
}

void tl_cpu_prefetch_streams(TlCpuGen *g, const TlCpuInside *in, int64_t first, uint32_t values)
{
    g->later_light = values < LEAST_VALUES;
    for (uint32_t i = 0; i < in->accesses.len; i++) {
        TlCpuAccess *a = in->accesses.data[i];
        a->fetches = a->loads && a->view && !a->was_read &&
                     first * tl_dtype_bytes(a->place.base->type->dtype) % LINE == 0 &&
                     reads_its_own(a);
    }
}

/* Is what it loads from so large that most of it is in memory? */
static LLVMValueRef is_large(TlCpuGen *g, const TlCpuAccess *a)
{
    LLVMValueRef n =
        tl_gen_int(&g->gen, PARTS_OF_CACHE * tl_dtype_bytes(a->place.base->type->dtype));
    for (int i = 0; i < a->view->rank; i++)
        n = LLVMBuildMul(g->b, n, a->view->extent[i], "");
    return LLVMBuildICmp(g->b, LLVMIntUGT, n, g->cache_bytes, "");
}

void tl_cpu_prefetch_later(TlCpuGen *g, TlCpuAccess *a, LLVMValueRef p, int64_t bytes)
{
    TL_ASSERT(bytes > 0, "%lld bytes", (long long)bytes);
    int64_t ahead = g->later_light ? LIGHT_AHEAD : AHEAD;
    if (a->fetches && g->later_light) {
        LLVMValueRef large = is_large(g, a);
        g->later_large = g->later_large ? LLVMBuildOr(g->b, g->later_large, large, "") : large;
    }
    for (int64_t at = 0; at < bytes && a->fetches; at += LINE)
        tl_vec_push(g->arena, &g->later,
                    tl_gen_address(&g->gen, TL_U8, p, tl_gen_int(&g->gen, ahead + at)));
    a->fetches = false;
}

void tl_cpu_prefetch_now(TlCpuGen *g, const TlCpuInside *in)
{
    for (uint32_t i = 0; i < in->accesses.len; i++)
        in->accesses.data[i]->fetches = false;
    enum { FIRST_CACHE = 3, SECOND_CACHE = 2 };
    LLVMBasicBlockRef on = g->later_large ? tl_gen_block(&g->gen, "on") : NULL;
    if (on) {
        LLVMBasicBlockRef ask = tl_gen_block(&g->gen, "ask");
        LLVMBuildCondBr(g->b, g->later_large, ask, on);
        LLVMPositionBuilderAtEnd(g->b, ask);
    }
    for (uint32_t i = 0; i < g->later.len; i++)
        tl_cpu_prefetch_line(g, g->later.data[i], false, on ? SECOND_CACHE : FIRST_CACHE);
    if (on) {
        LLVMBuildBr(g->b, on);
        LLVMPositionBuilderAtEnd(g->b, on);
    }
    g->later.len = 0;
    g->later_large = NULL;
}
