/* Loads on the CPU: a vector (plain, masked, every few elements), a gather by fields, or elements
 * one by one. Which of them an access is, is decided here. */
#include "codegen/cpu/cpu_access.h"

/* The address of a row, or where that is outside, of zeros. */
static LLVMValueRef row_or_zeros(TlCpuGen *g, LLVMValueRef p, LLVMValueRef inside)
{
    return inside ? LLVMBuildSelect(g->b, inside, p, tl_cpu_zero_row(g), "") : p;
}

/* ---- vectors ---- */

LLVMValueRef tl_cpu_pointer_run(TlCpuGen *g, const TlType *elem, LLVMValueRef ptrs, int width,
                                LLVMValueRef *out_first)
{
    TL_ASSERT(width > 1, "a run of %d pointers", width);
    LLVMValueRef first = LLVMBuildExtractElement(g->b, ptrs, tl_cpu_i32(g, 0), "");
    LLVMValueRef run = tl_gen_address(&g->gen, elem->dtype, tl_gen_splat(&g->gen, first, width),
                                      tl_gen_iota(&g->gen, g->i64, width));
    LLVMValueRef same = LLVMBuildICmp(g->b, LLVMIntEQ, ptrs, run, "");
    LLVMTypeRef bits = LLVMIntTypeInContext(LLVMGetTypeContext(g->i64), (unsigned)width);
    *out_first = first;
    return LLVMBuildICmp(g->b, LLVMIntEQ, LLVMBuildBitCast(g->b, same, bits, ""),
                         LLVMConstAllOnes(bits), "");
}

LLVMValueRef tl_cpu_launch_stride(const TlCpuAccess *a, int lane)
{
    int i = a->view && !a->a->place.pointwise ? tl_nest_steps_of(&a->a->place, lane) : -1;
    return i < 0 || LLVMIsConstant(a->stride[i]) ? NULL : a->stride[i];
}

void tl_cpu_stride_addresses(TlCpuGen *g, TlDtype of_memory, LLVMValueRef first,
                             LLVMValueRef stride, int n, LLVMValueRef *out)
{
    enum { FOUR = 4 };
    bool is_known = LLVMIsConstant(stride);
    LLVMValueRef four = tl_cpu_mul(g, tl_gen_int(&g->gen, FOUR), stride);
    for (int k = 0; k < n; k++) {
        LLVMValueRef by = tl_cpu_mul(g, tl_gen_int(&g->gen, k % FOUR), stride);
        if (k > 0 && k % FOUR == 0)
            first = tl_gen_address(&g->gen, of_memory, first, four);
        if (k % FOUR == 0 && !is_known) /* LLVM would keep each lane's distance from the first in a
                                         * register of its own, of which there are too few */
            first = tl_llvm_copy(g->l, g->b, first, "=r,0");
        out[k] = tl_gen_address(&g->gen, of_memory, first, by);
    }
}

/* Elements at equal distances from `first` on, one by one. of_memory: what the distance counts. */
static LLVMValueRef load_each(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                              TlDtype of_memory, LLVMValueRef first, LLVMValueRef stride, int width)
{
    LLVMTypeRef type = tl_gen_mem_type(&g->gen, elem);
    LLVMValueRef r = LLVMGetPoison(tl_gen_vec(type, width)), p[TL_NEST_LANES];
    tl_cpu_stride_addresses(g, of_memory, first, stride, width, p);
    for (int k = 0; k < width; k++) {
        LLVMValueRef x = LLVMBuildLoad2(g->b, type, p[k], "");
        LLVMSetAlignment(x, (unsigned)tl_dtype_bytes(of_memory));
        if (a->a->constant)
            tl_llvm_set_metadata(g->l, x, "invariant.load", NULL, 0);
        r = LLVMBuildInsertElement(g->b, r, x, tl_cpu_i32(g, (uint64_t)k), "");
    }
    return tl_gen_from_mem(&g->gen, elem, r);
}

static LLVMValueRef load_contiguous(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                    TlCpuSpot *s, LLVMValueRef other, int width)
{
    if (!s->mask && !s->uniform)
        return tl_cpu_plain_load(g, a, elem, s->ptr, width);
    LLVMValueRef mask = tl_cpu_lanes_inside(g, s, width);
    /* CPUs take a microsecond where no lane is wanted and memory is not there */
    LLVMValueRef there = row_or_zeros(g, s->ptr, s->row);
    if (!s->full || !a->a->forks)
        return tl_cpu_masked_load(g, elem, there, mask, other, width, false);
    LLVMValueRef all = s->uniform ? LLVMBuildAnd(g->b, s->full, s->uniform, "") : s->full;
    TlCpuFork f = tl_cpu_fork(g, all);
    tl_cpu_fork_else(g, &f, tl_cpu_plain_load(g, a, elem, s->ptr, width));
    return tl_cpu_fork_end(g, &f, tl_cpu_masked_load(g, elem, there, mask, other, width, false));
}

/* Loads of a nest that take every `stride`th element of one row, by groups: of those whose first
 * elements are in the same `stride`. The one with the most members is loaded, and those of the
 * groups beside it are its lanes, one lane further on.
 *
 *     x[i - 1 +: B : 2]   x[i +: B : 2]   x[i + 1 +: B : 2]   x[i + 2 +: B : 2]
 *     group -1            group 0         group 0             group 1
 *
 * All of a nest's loads are inside, as a whole. */
typedef struct Together {
    int before, behind;       /* elements from this one's first to the group's first, to its last */
    const TlCpuAccess *first; /* the load of the group's first element */
    int lanes;                /* this one's are so many lanes of the group's further on: -1, 0, 1 */
    bool beside;              /* there are such groups */
} Together;

enum { MOST_TOGETHER = 64 };
typedef struct Groups {
    const TlNestAccess *load[MOST_TOGETHER]; /* the one in question first */
    int64_t from[MOST_TOGETHER];             /* first elements, counted from a group's first */
    int n, stride;
} Groups;

static int64_t group_of(const Groups *s, int64_t from)
{
    int64_t rest = (from % s->stride + s->stride) % s->stride;
    return (from - rest) / s->stride;
}

/* Is it read at the nest's own lanes, and nowhere else? */
static bool is_at_lanes(const TlNest *n, const TlNestAccess *a, int lane)
{
    bool is = true;
    for (uint32_t i = 0; i < n->asks.len; i++)
        if (n->asks.data[i].access == a)
            is &= n->asks.data[i].lane == lane && n->asks.data[i].times == 1;
    return is;
}

static Groups find_groups(const TlCpuAccess *a, const TlCpuAt *at, int stride)
{
    const TlNest *n = at->row && is_at_lanes(at->row->nest, a->a, at->lane) ? at->row->nest : NULL;
    Groups s = {.load = {a->a}, .from = {tl_nest_number(a->a, at->lane)}, .n = 1, .stride = stride};
    int64_t by;
    for (uint32_t i = 0; n && i < n->asks.len && s.n < MOST_TOGETHER; i++)
        if (n->asks.data[i].access != a->a && is_at_lanes(n, n->asks.data[i].access, at->lane) &&
            tl_nest_distance(n, a->a, n->asks.data[i].access, at->lane, &by)) {
            s.load[s.n] = n->asks.data[i].access;
            s.from[s.n++] = s.from[0] + by;
        }
    return s;
}

/* Sets t to what of a group its members take; how many members has it? */
static int take_group(TlCpuGen *g, const Groups *s, int64_t group, Together *t)
{
    int n = 0, most = 0;
    int64_t start = group * s->stride, least = 0;
    for (int i = 0; i < s->n; i++) {
        if (group_of(s, s->from[i]) != group)
            continue;
        int64_t at = s->from[i] - start;
        if (n == 0 || at < least) {
            least = at;
            t->first = tl_cpu_access_of(g, s->load[i]->op);
        }
        most = n == 0 || at > most ? (int)at : most;
        n++;
    }
    int own = (int)(s->from[0] - s->stride * group_of(s, s->from[0]));
    t->before = own - (int)least;
    t->behind = most - own;
    return n;
}

static Together taken_together(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at, int stride)
{
    Groups s = find_groups(a, at, stride);
    /* AVX-512 takes every second byte, the first one included, by one instruction */
    if (g->m.masks && stride == 2 && tl_dtype_bits(a->a->place.base->type->dtype) == 8)
        return (Together){.first = a};
    int64_t own = group_of(&s, s.from[0]);
    Together t = {0}, x = {0};
    bool beside = false;
    int most = take_group(g, &s, own, &t);
    for (int by = -1; by <= 1; by += 2) {
        int n = take_group(g, &s, own + by, &x);
        beside |= n > 0;
        bool is_main = n > most || (n == most && by < 0);
        if (n && is_main && x.before >= 0 && x.behind >= 0) {
            most = n;
            t = x;
            t.lanes = -by;
        }
    }
    t.beside = beside;
    return t;
}

/* The same where all of what lies between is wanted, too: LLVM makes the loads of one group, which
 * are the same, one instruction (ld3) for all that is taken of them. Of every second, shuffles are
 * as fast; of every fourth, faster. */
static bool takes_thirds(const TlCpuGen *g, const TlType *elem, int width, int stride, Together t)
{
    int bits = width * tl_dtype_bits(elem->dtype);
    return g->m.thirds && stride == 3 && t.before >= 0 && t.before < stride &&
           t.before + t.behind + 1 >= stride && !elem->ptr && elem->dtype != TL_BOOL &&
           tl_dtype_bits(elem->dtype) >= 8 && (bits == 64 || bits % 128 == 0) &&
           width * stride <= TL_NEST_LANES;
}

static LLVMValueRef load_thirds(TlCpuGen *g, const TlType *elem, LLVMValueRef p, int width,
                                int stride, Together t)
{
    LLVMValueRef all = tl_cpu_plain_load(g, t.first, elem, p, width * stride), index[TL_NEST_LANES];
    for (int i = 0; i < width; i++)
        index[i] = tl_cpu_i32(g, (uint64_t)(t.before + i * stride));
    return LLVMBuildShuffleVector(g->b, all, all, LLVMConstVector(index, (unsigned)width), "");
}

/* Every `stride`th element, from t.before elements behind p on: of so many vectors, none of which
 * ends behind the last element that is wanted: memory may end there. */
static LLVMValueRef load_every(TlCpuGen *g, const TlType *elem, LLVMValueRef p, int width,
                               int stride, Together t)
{
    TL_ASSERT(width > 1 && stride > 1 && stride <= TL_NEST_STRIDE, "%d lanes by %d", width, stride);
    LLVMValueRef v[TL_NEST_STRIDE];
    if (takes_thirds(g, elem, width, stride, t))
        return load_thirds(g, elem, p, width, stride, t);
    int last = (width - 1) * stride + 1 + t.before + t.behind - width;
    for (int k = 0; k < stride; k++) {
        LLVMValueRef by = tl_gen_int(&g->gen, tl_cpu_every_start(k, width, last));
        v[k] =
            tl_cpu_plain_load(g, t.first, elem, tl_gen_address(&g->gen, elem->dtype, p, by), width);
    }
    return tl_cpu_every(g, v, stride, width, t.before, last);
}

/* Elements at equal distances that only the launch knows, all inside: few apart, of so many
 * vectors; else gathered from `ptrs`, or one by one where that takes longer, or `ptrs` is NULL. */
static LLVMValueRef load_all_apart(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                   LLVMValueRef first, LLVMValueRef ptrs, LLVMValueRef stride,
                                   int width)
{
    TlCpuFork f[TL_CPU_MOST_APART + 1];
    for (int by = TL_CPU_LEAST_APART; by <= TL_CPU_MOST_APART; by++) {
        f[by] = tl_cpu_fork(g, LLVMBuildICmp(g->b, LLVMIntEQ, stride, tl_gen_int(&g->gen, by), ""));
        Together t = {.first = a};
        tl_cpu_fork_else(g, &f[by], load_every(g, elem, first, width, by, t));
    }
    LLVMValueRef x =
        ptrs && !g->m.each_load
            ? tl_cpu_masked_load(g, elem, ptrs, LLVMConstAllOnes(tl_gen_vec(g->i1, width)),
                                 tl_gen_const(&g->gen, elem, 0, width), width, true)
            : load_each(g, a, elem, elem->dtype, first, stride, width);
    for (int by = TL_CPU_MOST_APART; by >= TL_CPU_LEAST_APART; by--)
        x = tl_cpu_fork_end(g, &f[by], x);
    return x;
}

/* Lanes whose distance only the launch knows: side by side, all of one element, or apart. */
static LLVMValueRef load_by_stride(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                   LLVMValueRef ptrs, LLVMValueRef stride, LLVMValueRef mask,
                                   LLVMValueRef other, int width)
{
    LLVMValueRef first = LLVMBuildExtractElement(g->b, ptrs, tl_cpu_i32(g, 0), ""),
                 dense = LLVMBuildICmp(g->b, LLVMIntEQ, stride, tl_gen_int(&g->gen, 1), ""),
                 same = LLVMBuildICmp(g->b, LLVMIntEQ, stride, tl_gen_int(&g->gen, 0), "");
    TlCpuFork f = tl_cpu_fork(g, dense);
    tl_cpu_fork_else(g, &f, tl_cpu_masked_load(g, elem, first, mask, other, width, false));
    TlCpuFork one = tl_cpu_fork(g, same);
    LLVMValueRef any = LLVMBuildNot(g->b, tl_cpu_in_no_lane(g, mask), ""),
                 x = tl_cpu_plain_load(g, a, elem, row_or_zeros(g, first, any), 1);
    x = LLVMBuildSelect(g->b, mask, tl_gen_splat(&g->gen, x, width), other, "");
    tl_cpu_fork_else(g, &one, x);
    bool all =
        mask == LLVMConstAllOnes(LLVMTypeOf(mask)) && !elem->ptr && tl_dtype_bits(elem->dtype) >= 8;
    x = all ? load_all_apart(g, a, elem, first, ptrs, stride, width)
            : tl_cpu_masked_load(g, elem, ptrs, mask, other, width, true);
    return tl_cpu_fork_end(g, &f, tl_cpu_fork_end(g, &one, x));
}

/* i1: is one element of the position inside, by lane `lane`? */
static LLVMValueRef is_lane_inside(TlCpuGen *g, TlCpuAccess *a, const TlCpuAt *at, int lane)
{
    TlCpuAt one = *at;
    one.width = 1;
    one.idx[at->lane] = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, lane), "");
    LLVMValueRef ok = tl_cpu_view_spot(g, a, &one, false).uniform;
    return ok ? ok : LLVMConstInt(g->i1, 1, 0);
}

/* ---- element by element ---- */

/* i1: is element 0 of all axes that index tiles go along inside, and what all lanes share? */
static LLVMValueRef has_first(TlCpuGen *g, const TlCpuAccess *a, const TlCpuSpot *s)
{
    LLVMValueRef all = s->uniform;
    for (uint32_t i = 0; i < a->a->place.naxes; i++)
        if (a->a->place.axes[i].kind == TL_AXIS_TILE)
            all = tl_cpu_both(
                g, all,
                LLVMBuildICmp(g->b, LLVMIntSGT, a->view->extent[i], tl_gen_int(&g->gen, 0), ""));
    return all;
}

/* The only index tile of a place, if that lies in memory, where its lanes are read; -1: there is
 * none. */
static int listed_axis(const TlCpuGen *g, const TlCpuAccess *a)
{
    int axis = -1;
    for (uint32_t i = 0; i < a->a->place.naxes; i++) {
        if (a->a->place.axes[i].kind == TL_AXIS_SCALAR)
            continue;
        if (a->a->place.axes[i].kind != TL_AXIS_TILE || axis >= 0)
            return -1;
        axis = (int)i;
    }
    TlNestPlace x = {.kind = TL_NEST_VIRTUAL};
    if (axis >= 0 && a->a->place.index[axis].value->type->rank == a->a->place.rank)
        x = g->plan->place[a->a->place.index[axis].value->id];
    bool lies = x.kind == TL_NEST_HOME && !g->plan->buffers.data[x.buffer].small;
    return lies && !a->a->place.mask ? axis : -1;
}

/* Elements from the base to lane k's. */
static LLVMValueRef lane_offset(TlCpuGen *g, const TlCpuAccess *a, LLVMValueRef lanes, int listed,
                                const TlCpuAt *at, int k)
{
    TlCpuAt one = *at;
    if (listed < 0)
        return LLVMBuildExtractElement(g->b, lanes, tl_cpu_i32(g, (uint64_t)k), "");
    tl_map_init(&one.memo, g->arena);
    one.width = 1;
    one.idx[at->lane] = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, k), "");
    LLVMValueRef j = tl_cpu_index_tile(g, a, listed, &one), extent = a->view->extent[listed];
    if (a->a->bounds)
        j = tl_gen_pick(&g->gen, LLVMIntULT, j, extent, j, tl_gen_int(&g->gen, 0));
    return tl_cpu_mul(g, j, a->stride[listed]);
}

/* A gather as loads of its elements, where their places are in memory, or are those of another one,
 * too. Lanes that are masked off read element 0. NULL: those may have no such element, or a gather
 * is as fast. */
static LLVMValueRef load_one_by_one(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                    TlCpuSpot *s, LLVMValueRef mask, LLVMValueRef other,
                                    const TlCpuAt *at)
{
    bool once = !at->row || !tl_nest_is_split(at->row->nest) || at->whole,
         all = mask == LLVMConstAllOnes(LLVMTypeOf(mask));
    int listed = listed_axis(g, a);
    if (!g->m.one_by_one || !once || !s->lanes || a->a->place.mask || (!all && !s->by_tiles) ||
        (listed < 0 && !a->a->shares_places))
        return NULL;
    LLVMValueRef base = s->base, lanes = s->lanes;
    if (!all) {
        base = LLVMBuildSelect(g->b, has_first(g, a, s), base, tl_cpu_zeros(g), "");
        lanes = LLVMBuildSelect(g->b, mask, lanes, LLVMConstNull(LLVMTypeOf(lanes)), "");
    }
    LLVMValueRef r = LLVMGetPoison(tl_gen_vec(tl_gen_mem_type(&g->gen, elem), at->width));
    for (int k = 0; k < at->width; k++) {
        LLVMValueRef by = lane_offset(g, a, lanes, listed, at, k),
                     p = tl_gen_address(&g->gen, elem->dtype, base, by),
                     x = tl_cpu_plain_load(g, a, elem, p, 1);
        r = LLVMBuildInsertElement(g->b, r, tl_gen_to_mem(&g->gen, elem, x),
                                   tl_cpu_i32(g, (uint64_t)k), "");
    }
    r = tl_gen_from_mem(&g->gen, elem, r);
    return all ? r : LLVMBuildSelect(g->b, mask, r, other, "");
}

/* A gather of rows of which several fields are gathered. Lanes that are masked off read the first
 * row. NULL: there may be no such row, or it is the only field. */
static LLVMValueRef load_field(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem, TlCpuSpot *s,
                               LLVMValueRef mask, LLVMValueRef other, const TlCpuAt *at)
{
    TlNestFields f = {0, 1};
    if (g->m.gathers && s->lanes && s->by_tiles && !a->a->place.mask && !a->a->asks &&
        at->width % TL_NEST_FIELDS == 0)
        f = tl_nest_fields(g->plan, a->a);
    if (f.n < TL_NEST_FIELDS - 1)
        return NULL;
    LLVMValueRef by = LLVMBuildSub(g->b, a->shift, tl_gen_int(&g->gen, f.own), ""),
                 row = tl_gen_address(&g->gen, elem->dtype, a->origin, s->offset),
                 first = tl_gen_address(&g->gen, elem->dtype, row, by),
                 base = LLVMBuildSelect(g->b, has_first(g, a, s), first, tl_cpu_zero_row(g), ""),
                 lanes =
                     LLVMBuildSelect(g->b, mask, s->lanes, LLVMConstNull(LLVMTypeOf(s->lanes)), "");
    LLVMValueRef x = tl_cpu_load_field(g, elem, f, base, lanes, at->width);
    return LLVMBuildSelect(g->b, mask, x, other, "");
}

/* A lane's element, where all are inside. */
static LLVMValueRef load_lane(TlCpuGen *g, const TlType *elem, const TlCpuAccess *a,
                              const TlCpuAt *at, int lane)
{
    TlCpuAt one = *at;
    one.width = 1;
    one.idx[at->lane] = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, lane), "");
    TlCpuSpot s = tl_cpu_view_spot(g, a, &one, false);
    return tl_cpu_plain_load(
        g, a, elem, tl_cpu_has_zero_rows(g, a, at) ? tl_cpu_spot_or_zeros(g, a, &s) : s.ptr, 1);
}

/* The lanes of x one further on, or back, and what comes in there: lanes that follow each other, of
 * x and a vector of that alone. */
static LLVMValueRef next_lanes(TlCpuGen *g, LLVMValueRef x, LLVMValueRef one, int by)
{
    int w = tl_gen_width_of(x), from = by > 0 ? 1 : w - 1;
    LLVMValueRef lane[TL_NEST_LANES], in = tl_gen_splat(&g->gen, one, w);
    for (int i = 0; i < w; i++)
        lane[i] = tl_cpu_i32(g, (uint64_t)(from + i));
    return LLVMBuildShuffleVector(g->b, by > 0 ? x : in, by > 0 ? in : x,
                                  LLVMConstVector(lane, (unsigned)w), "");
}

/* What elements of a register of 64 bytes are moved as: where they are floats, LLVM takes lanes
 * that follow each other by numbers (vpermt2ps), where they are integers by valignd, which needs
 * none and leaves more ports to multiply-adds. */
static TlType moved_as(const TlCpuGen *g, TlType elem, int width)
{
    enum { ALIGNS = 64 };
    int bytes = (int)tl_gen_elem_bytes(&elem);
    bool floats = !elem.ptr && (elem.dtype == TL_F32 || elem.dtype == TL_F64);
    if (floats && g->m.masks && g->m.vector_bytes == ALIGNS && width * bytes % ALIGNS == 0)
        elem.dtype = elem.dtype == TL_F32 ? TL_I32 : TL_I64;
    return elem;
}

/* Elements of rows of `stride`, which are widened: words from the rows' beginnings on, of which the
 * one with the element is shifted. LLVM widens a word's low bits by one instruction. */
static LLVMValueRef load_part(TlCpuGen *g, const TlType *elem, const TlCpuAccess *a,
                              const TlCpuAt *at, int stride, TlNestPart part)
{
    int words = stride / part.n, bits = tl_dtype_bits(elem->dtype), w = at->width;
    LLVMTypeRef word = LLVMIntTypeInContext(LLVMGetTypeContext(g->i64), (unsigned)(part.n * bits));
    LLVMValueRef v[TL_NEST_STRIDE];
    TlCpuAt first = *at;
    first.width = 1;
    LLVMValueRef own = tl_cpu_view_spot(g, a, &first, false).ptr;
    for (int k = 0; k < words; k++) {
        LLVMValueRef by = tl_gen_int(&g->gen, k * w * part.n - part.at),
                     p = tl_gen_address(&g->gen, elem->dtype, own, by);
        v[k] = LLVMBuildBitCast(g->b, tl_cpu_plain_load(g, a, elem, p, w * part.n),
                                tl_gen_vec(word, w), "");
    }
    LLVMValueRef x = v[0];
    if (words > 1)
        x = tl_cpu_every(g, v, words, w, part.at / part.n, words * w);
    LLVMValueRef by = LLVMConstInt(word, (unsigned)(part.at % part.n * bits), 0);
    x = LLVMBuildLShr(g->b, x, tl_gen_splat(&g->gen, by, w), "");
    return LLVMBuildTrunc(g->b, x, tl_gen_vec(tl_gen_mem_type(&g->gen, elem), w), "");
}

/* Is the element inside that comes after this vector's last, as all of the tile is? */
static bool is_followed(const TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at)
{
    TlNestForm form = tl_nest_form(a->a->op->out[0]->type);
    LLVMValueRef i = at->idx[at->lane];
    bool all = !a->a->bounds || (g->whole && !g->tests_lanes && tl_cpu_is_inside(a, at) &&
                                 tl_nest_asked(g->plan, a->a->op));
    if (!all || at->shifted || !LLVMIsAConstantInt(i))
        return false;
    int64_t next = LLVMConstIntGetSExtValue(i) + at->width;
    return next > 0 && next < form.extent[at->lane];
}

/* Every few elements, where all are inside. What the tile's last vector is made of ends with what
 * is wanted; all else lies side by side, so that in an aligned tile no load crosses lines. */
static LLVMValueRef load_strided_inside(TlCpuGen *g, const TlType *elem, const TlCpuAccess *a,
                                        const TlCpuAt *at, int stride)
{
    TlNestPart part = tl_nest_part(g->plan, a->a->op, at->lane);
    if (part.n > 1 && !tl_cpu_has_zero_rows(g, a, at))
        return load_part(g, elem, a, at, stride, part);
    Together t = {.first = a};
    if (tl_cpu_is_inside(a, at) && a->a->bounds)
        t = taken_together(g, a, at, stride);
    if (is_followed(g, a, at) && t.behind < stride)
        t.behind = stride;
    TlCpuAt first = *at;
    first.width = 1;
    TlCpuSpot s = tl_cpu_view_spot(g, t.first, &first, false);
    TlType as = t.beside ? moved_as(g, *elem, at->width) : *elem;
    LLVMValueRef p = tl_cpu_has_zero_rows(g, a, at) ? tl_cpu_spot_or_zeros(g, t.first, &s) : s.ptr,
                 x = load_every(g, &as, p, at->width, stride, t);
    if (t.lanes)
        x = next_lanes(g, x, load_lane(g, &as, a, at, t.lanes > 0 ? at->width - 1 : 0), t.lanes);
    if (as.dtype == elem->dtype)
        return x;
    return LLVMBuildBitCast(g->b, x, tl_gen_vec(tl_gen_elem_type(&g->gen, elem), at->width), "");
}

/* Every few elements, of which some are inside: vectors that lie side by side, in which only those
 * are read; NULL: the CPU has no such loads, or they are too many. */
static LLVMValueRef load_strided_masked(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at,
                                        int stride)
{
    enum { MOST_VECTORS = 4 };
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    if (!g->m.masks || stride > MOST_VECTORS || !a->view || a->a->asks || elem.ptr ||
        tl_dtype_bits(elem.dtype) < 8)
        return NULL;
    TlNestForm form = tl_nest_form(op->out[0]->type);
    TlCpuAt first = *at;
    first.width = 1;
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    LLVMValueRef other = tl_cpu_outside(g, a, &elem, at),
                 zero = tl_gen_const(&g->gen, &elem, 0, at->width),
                 mask = tl_cpu_both(g, tl_cpu_lanes_inside(g, &s, at->width),
                                    tl_cpu_lane_mask(g, &form, at)),
                 p = row_or_zeros(g, tl_cpu_view_spot(g, a, &first, false).ptr, s.uniform),
                 v[TL_NEST_STRIDE];
    for (int k = 0; k < stride; k++) {
        LLVMValueRef by = tl_gen_int(&g->gen, k * at->width),
                     from = tl_gen_address(&g->gen, elem.dtype, p, by);
        v[k] = tl_cpu_masked_load(
            g, &elem, from, tl_cpu_with_gaps(g, mask, LLVMConstNull(LLVMTypeOf(mask)), stride, k),
            zero, at->width, false);
    }
    LLVMValueRef x = tl_cpu_every(g, v, stride, at->width, 0, stride * at->width);
    return LLVMIsNull(other) ? x : LLVMBuildSelect(g->b, mask, x, other, "");
}

/* A position at which every few elements are taken: all are inside, or each is asked. */
static LLVMValueRef load_strided(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at, int stride)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlNestForm form = tl_nest_form(op->out[0]->type);
    int64_t n = form.extent[at->lane];
    bool is_padded = n % at->width != 0 || tl_cpu_may_be_padding(&form, at);
    if (tl_cpu_is_inside(a, at) || (!a->a->bounds && !is_padded))
        return load_strided_inside(g, &elem, a, at, stride);
    LLVMValueRef end = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, at->width), ""),
                 extent = tl_gen_int(&g->gen, n), all = NULL;
    if (is_padded) /* which is not asked of where all of the tile is inside */
        all = LLVMBuildICmp(g->b, LLVMIntULE, end, extent, "");
    if (a->a->bounds) {
        all = tl_cpu_both(g, all, is_lane_inside(g, a, at, 0));
        all = tl_cpu_both(g, all, is_lane_inside(g, a, at, at->width - 1));
    }
    TlCpuFork f = tl_cpu_fork(g, all);
    tl_cpu_fork_else(g, &f, load_strided_inside(g, &elem, a, at, stride));
    LLVMValueRef x = load_strided_masked(g, op, a, at, stride);
    return tl_cpu_fork_end(g, &f, x ? x : tl_cpu_load_apart(g, op, a, at));
}

/* The same of bytes or words, which may be side by side, too. */
static LLVMValueRef load_short_apart(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                     LLVMValueRef first, LLVMValueRef stride, int width)
{
    TlCpuFork f =
        tl_cpu_fork(g, LLVMBuildICmp(g->b, LLVMIntEQ, stride, tl_gen_int(&g->gen, 1), ""));
    tl_cpu_fork_else(g, &f, tl_cpu_plain_load(g, a, elem, first, width));
    return tl_cpu_fork_end(g, &f, load_all_apart(g, a, elem, first, NULL, stride, width));
}

/* Bytes or words at equal distances, all inside: one by one, as no instruction gathers them. NULL:
 * they are not such. elem: of what lies at their addresses. */
static LLVMValueRef load_short_ones(TlCpuGen *g, TlType elem, TlCpuAccess *a, TlCpuAt *at)
{
    TlDtype of_memory = a->a->place.base->type->dtype;
    int axis = a->view && at->width > 1 ? tl_nest_slice_of(&a->a->place, at->lane) : -1;
    if (axis < 0 || tl_gen_elem_bytes(&elem) >= 4 || !tl_cpu_is_inside(a, at) ||
        tl_cpu_has_zero_rows(g, a, at) || a->a->place.mask || tl_dtype_bits(elem.dtype) < 8 ||
        tl_nest_is_contiguous_inside(a->a, at->lane))
        return NULL;
    TlCpuAt one = *at;
    one.width = 1;
    TlCpuSpot s = tl_cpu_view_spot(g, a, &one, false);
    if (s.uniform) /* an index tile says which row it is, and that may be outside */
        return NULL;
    LLVMValueRef stride = tl_cpu_launch_stride(a, at->lane);
    if (stride && elem.dtype == of_memory)
        return load_short_apart(g, a, &elem, s.ptr, stride, at->width);
    return load_each(g, a, &elem, of_memory, s.ptr, a->stride[axis], at->width);
}

LLVMValueRef tl_cpu_eval_words(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TlOp *low = tl_nest_low_byte(g->plan, op);
    TL_ASSERT(low, "%s joins no bytes", tl_op_info(op->opcode)->text);
    LLVMValueRef r =
        load_short_ones(g, tl_cpu_elem_of(op->out[0]->type), tl_cpu_access_of(g, low), at);
    return r ? r : tl_cpu_eval_elements(g, op, at);
}

/* Lanes of a view that lie apart. */
static LLVMValueRef load_lanes_apart(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                     TlCpuSpot *s, LLVMValueRef mask, LLVMValueRef other,
                                     const TlCpuAt *at)
{
    LLVMValueRef x = load_field(g, a, elem, s, mask, other, at),
                 by = tl_cpu_launch_stride(a, at->lane);
    x = x ? x : load_one_by_one(g, a, elem, s, mask, other, at);
    if (!x && by)
        return load_by_stride(g, a, elem, s->ptr, by, mask, other, at->width);
    return x ? x : tl_cpu_masked_load(g, elem, s->ptr, mask, other, at->width, true);
}

LLVMValueRef tl_cpu_eval_load(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    if (at->spread)
        return tl_cpu_load_window(g, op, a, at);
    LLVMValueRef pattern = tl_cpu_load_pattern(g, op, a, at);
    pattern = pattern ? pattern : tl_cpu_load_pattern_border(g, op, a, at);
    if (pattern)
        return pattern;
    int stride = at->width > 1 ? tl_nest_stride(a->a, at->lane) : 1;
    if (stride > 1)
        return load_strided(g, op, a, at, stride);
    LLVMValueRef short_ones = load_short_ones(g, tl_cpu_elem_of(op->out[0]->type), a, at);
    if (short_ones)
        return short_ones;
    if (at->width > 1 && !tl_cpu_is_inside(a, at) && !tl_nest_is_contiguous(a->a, at->lane) &&
        tl_nest_is_contiguous_inside(a->a, at->lane))
        return tl_cpu_load_bounded(g, op, a, at);
    TlNestForm form = tl_nest_form(op->out[0]->type);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    if (at->width == 1)
        return tl_cpu_load_element(g, op, a, &s, at);
    if (tl_cpu_has_zero_rows(g, a, at) && !s.apart && !a->a->row) {
        s.ptr = tl_cpu_spot_or_zeros(g, a, &s);
        s.uniform = NULL;
    }
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    LLVMValueRef other = tl_cpu_outside(g, a, &elem, at);
    if (a->a->row)
        return tl_cpu_load_rows(g, a, &elem, &s, other, at);
    if (!s.apart)
        tl_cpu_fetch_later(g, at->fetch, a, s.ptr, at->width * (int64_t)tl_gen_elem_bytes(&elem));
    if (!s.apart)
        return load_contiguous(g, a, &elem, &s, other, at->width);
    LLVMValueRef mask = tl_cpu_lanes_inside(g, &s, at->width);
    mask = tl_cpu_both(g, mask, tl_cpu_lane_mask(g, &form, at));
    if (a->view) {
        TlCpuFork f;
        LLVMValueRef looked_up = tl_cpu_load_looked_up(g, a, &elem, &s, mask, other, at->width);
        if (looked_up)
            return looked_up;
        bool near = tl_cpu_fork_near(g, a, &elem, &s, mask, at->width, &f);
        LLVMValueRef x = load_lanes_apart(g, a, &elem, &s, mask, other, at);
        return near ? tl_cpu_fork_end(g, &f, x) : x;
    }
    LLVMValueRef first, run = tl_cpu_pointer_run(g, &elem, s.ptr, at->width, &first);
    TlCpuFork f = tl_cpu_fork(g, run);
    tl_cpu_fork_else(g, &f, tl_cpu_masked_load(g, &elem, first, mask, other, at->width, false));
    return tl_cpu_fork_end(g, &f,
                           tl_cpu_masked_load(g, &elem, s.ptr, mask, other, at->width, true));
}
