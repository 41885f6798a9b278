/* The machine; the forms of tiles in memory; what follows from shapes alone: which reshapes only
 * rename axes, which broadcasts take vectors as they are, how many lanes divide an extent. */
#include "codegen/nest/nest.h"

#include <string.h>

#include "passes/analysis/picked.h"

/* ---- the machine ---- */

static bool is_amd(const TlLlvm *l)
{
    static const char NAME[] = "znver";
    const char *cpu = l->tune ? l->tune : l->cpu;
    return cpu && !strncmp(cpu, NAME, strlen(NAME));
}

/* Is the code for any of an architecture's? */
static bool is_generic(const TlLlvm *l)
{
    return !l->tune && (!l->cpu || !strncmp(l->cpu, "x86-64", strlen("x86-64")));
}

TlNestMachine tl_nest_machine(const TlLlvm *l)
{
    bool wide = tl_llvm_has_feature(l, "avx512f"), avx2 = tl_llvm_has_feature(l, "avx2"),
         sve = tl_llvm_has_feature(l, "sve"),
         mask_bits = tl_llvm_has_feature(l, "avx512bw") && tl_llvm_has_feature(l, "avx512vl");
    return (TlNestMachine){.l = l,
                           .vector_bytes = wide   ? 64
                                           : avx2 ? 32
                                                  : 16,
                           .nregs = wide || tl_llvm_has_feature(l, "neon") ? 32 : 16,
                           .gathers = avx2 || sve,
                           .one_by_one = is_amd(l),
                           .each_load = !sve && (is_amd(l) || is_generic(l)),
                           .each_store = !sve,
                           .masks = sve || mask_bits,
                           .mask_bits = mask_bits,
                           .fma = tl_llvm_has_feature(l, "fma") || tl_llvm_has_feature(l, "neon"),
                           .thirds = tl_llvm_has_feature(l, "neon"),
                           .two = wide || tl_llvm_has_feature(l, "neon")};
}

/* ---- vectors interleaved and taken apart ---- */

int tl_nest_zip_round(int n)
{
    int p = 2;
    while (n % p != 0 && p * p <= n)
        p++;
    return n % p == 0 ? p : n;
}

/* Shuffles of two vectors for all n. */
static int zip_shuffles(int n)
{
    int rounds = 0;
    for (int p, left = n; left > 1; left /= p) {
        p = tl_nest_zip_round(left);
        rounds += p - 1;
    }
    return n * rounds;
}

/* One by one, an element is loaded or stored, and put in its lane or taken from it. Else a shuffle
 * of two vectors is two of one, and a selection. */
bool tl_nest_zips(const TlNestMachine *m, int bytes, int n, int wanted)
{
    enum { EACH = 2, SLOW = 3 };
    int lanes = m->vector_bytes / bytes, all = zip_shuffles(n), alone = wanted * (n - 1),
        shuffles = (all < alone ? all : alone) * (m->two ? 1 : SLOW);
    return n + shuffles <= wanted * lanes * EACH;
}

/* ---- forms ---- */

static int64_t pad(int64_t n)
{
    if (n > 64)
        return (n + 31) / 32 * 32 - n <= n / 8 ? (n + 31) / 32 * 32 : (n + 15) / 16 * 16;
    if (n > 16)
        return (n + 15) / 16 * 16;
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

TlNestForm tl_nest_form(const TlType *type)
{
    TL_ASSERT(type->kind == TL_TILE && type->rank <= TL_MAX_RANK,
              "a type of kind %d", (int)type->kind);
    TlNestForm f = {.rank = type->rank, .lane = type->rank - 1, .elems = 1};
    while (f.lane > 0 && type->shape[f.lane] == 1)
        f.lane--;
    for (int d = type->rank - 1; d >= 0; d--) {
        f.extent[d] = type->shape[d];
        f.padded[d] = d == f.lane ? pad(type->shape[d]) : type->shape[d];
        f.stride[d] = f.elems;
        f.elems *= f.padded[d];
    }
    return f;
}

TlType tl_nest_row(const TlType *type)
{
    TlType row = *type;
    row.rank = 1;
    row.shape[0] = (int32_t)tl_nest_form(type).elems;
    return row;
}

bool tl_nest_has_short_rows(const TlNestMachine *m, const TlType *type)
{
    if (type->kind != TL_TILE || type->rank < 2 || type->ptr)
        return false;
    TlNestForm f = tl_nest_form(type);
    TlType row = tl_nest_row(type);
    return f.elems > f.padded[f.lane] &&
           f.extent[f.lane] * (int64_t)tl_gen_elem_bytes(type) < m->vector_bytes &&
           tl_nest_form(&row).elems == f.elems;
}

int tl_nest_fit_width(int64_t padded, int width)
{
    TL_ASSERT(padded > 0 && width > 0 && (width & (width - 1)) == 0,
              "%d lanes over %lld elements", width, (long long)padded);
    while (width > 1 && padded % width)
        width /= 2;
    return width;
}

int64_t tl_nest_readable(const TlType *type, int d)
{
    TL_ASSERT(d >= 0 && d < type->rank, "axis %d of %d", d, (int)type->rank);
    TlNestForm f = tl_nest_form(type);
    return f.lane == d ? f.padded[d] : f.extent[d];
}

/* ---- ops that move elements ---- */

bool tl_nest_is_renaming(const TlOp *op)
{
    const TlType *a = tl_in(op, 0)->type, *b = op->out[0]->type;
    int i = 0, j = 0;
    for (;;) {
        while (i < a->rank && a->shape[i] == 1)
            i++;
        while (j < b->rank && b->shape[j] == 1)
            j++;
        if (i == a->rank || j == b->rank)
            return i == a->rank && j == b->rank;
        if (a->shape[i++] != b->shape[j++])
            return false;
    }
}

bool tl_nest_keeps_lanes(const TlOp *broadcast)
{
    TL_ASSERT(broadcast->opcode == TL_OP_BROADCAST,
              "%s repeats nothing", tl_op_info(broadcast->opcode)->text);
    TlNestForm to = tl_nest_form(broadcast->out[0]->type);
    return tl_in(broadcast, 0)->type->shape[to.lane] == to.extent[to.lane];
}

int tl_nest_last_axis(const TlType *type)
{
    TL_ASSERT(type->kind == TL_TILE, "a type of kind %d", (int)type->kind);
    int d = type->rank - 1;
    while (d >= 0 && type->shape[d] == 1)
        d--;
    return d;
}

/* Of a reshape that adds or drops axes of extent 1. */
static int renamed_axis(const TlOp *op, int d)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    if (to->shape[d] == 1)
        return -1;
    int nth = 0, i = 0;
    for (int k = 0; k < d; k++)
        nth += to->shape[k] > 1;
    for (;; i++) {
        TL_ASSERT(i < from->rank, "axis %d of a reshape comes from nowhere", d);
        if (from->shape[i] > 1 && nth-- == 0)
            return i;
    }
}

int tl_nest_axis_under(const TlOp *op, int d)
{
    const TlType *from = tl_in(op, 0)->type;
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    if (d < 0 || from->rank == 0 || op->out[0]->type->rank == 0)
        return -1;
    if (op->opcode == TL_OP_EXPAND)
        return d == axis ? -1 : d > axis ? d - 1 : d;
    if (op->opcode == TL_OP_BROADCAST)
        return from->shape[d] == 1 ? -1 : d;
    return op->opcode == TL_OP_RESHAPE ? renamed_axis(op, d) : d;
}

static int next_axis(const TlType *t, int d)
{
    while (d < t->rank && t->shape[d] == 1)
        d++;
    return d;
}

int tl_nest_axis_reshaped(const TlOp *op, int d, int64_t *out_times, int64_t *out_parts)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    int i = next_axis(from, 0), j = next_axis(to, 0);
    *out_times = *out_parts = 1;
    while (i < from->rank && j < to->rank && j <= d) {
        int i2 = next_axis(from, i + 1), j2 = next_axis(to, j + 1);
        int64_t a = from->shape[i], b = to->shape[j], inner = 1;
        bool divides = a > b && j2 < to->rank && b * to->shape[j2] == a,
             joins = a < b && i2 < from->rank && a * from->shape[i2] == b;
        if (a != b && !divides && !joins)
            return -1;
        if (a != b)
            inner = divides ? to->shape[j2] : from->shape[i2];
        if (j == d) {
            *out_times = divides ? inner : 1;
            *out_parts = joins ? inner : 1;
            return i;
        }
        i = next_axis(from, joins ? i2 + 1 : i + 1);
        j = next_axis(to, divides ? j2 + 1 : j + 1);
    }
    return -1;
}

bool tl_nest_joins(const TlOp *op)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    int last = tl_nest_last_axis(from);
    if (last < 1 || to->rank < 1 || from->ptr)
        return false;
    int32_t n = from->shape[last];
    return n <= TL_NEST_JOINED && (n & (n - 1)) == 0 && from->shape[last - 1] % 2 == 0 &&
           to->shape[to->rank - 1] % (2 * n) == 0;
}

int tl_nest_join_width(const TlOp *op, int limit)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    TL_ASSERT(tl_nest_joins(op) && limit > 0, "%d lanes of no join", limit);
    int last = tl_nest_last_axis(from), n = from->shape[last], w = limit;
    if (limit > n)
        w = n * tl_nest_fit_width(from->shape[last - 1], limit / n);
    return tl_nest_fit_width(to->shape[to->rank - 1], w);
}

static bool has_gaps(const TlType *type)
{
    TlNestForm f = tl_nest_form(type);
    return !f.rank || f.padded[f.lane] != f.extent[f.lane];
}

bool tl_nest_is_for_row(const TlNests *plan, const TlOp *op)
{
    return tl_map_get(&plan->rows, (uint64_t)(uintptr_t)op, NULL);
}

bool tl_nest_may_read_home(const TlNests *plan, const TlOp *reshape)
{
    const TlType *from = tl_in(reshape, 0)->type, *to = reshape->out[0]->type;
    uint64_t bytes = tl_gen_elem_bytes(from) * (uint64_t)tl_type_elems(from);
    return reshape->opcode == TL_OP_RESHAPE && from->rank && to->rank && !from->ptr &&
           !has_gaps(from) && !has_gaps(to) &&
           (bytes > 2 * (uint64_t)plan->m.vector_bytes || tl_nest_is_for_row(plan, reshape));
}

int tl_nest_turned_words(const TlOp *op)
{
    enum { WORD = 4 };
    const TlOp *trans = op->opcode == TL_OP_RESHAPE ? tl_in(op, 0)->def : NULL;
    if (!trans || trans->opcode != TL_OP_TRANS || !tl_nest_joins(op))
        return 0;
    const TlType *from = tl_in(trans, 0)->type;
    const int64_t *perm = tl_attr(trans, TL_ATTR_PERM)->u.ints;
    int last = from->rank - 1;
    if (last < 2 || perm[last] != last || from->shape[last] != WORD ||
        tl_dtype_bytes(from->dtype) != 1 || has_gaps(from) || has_gaps(op->out[0]->type))
        return 0;
    int64_t words = 1;
    for (int d = (int)perm[last - 1] + 1; d < last; d++)
        words *= from->shape[d];
    return words > 1 && words <= TL_NEST_TURNED ? (int)words : 0;
}

int tl_nest_word_axis(const TlOp *op)
{
    int words = tl_nest_turned_words(op);
    const TlOp *trans = words ? tl_in(op, 0)->def : NULL;
    const TlType *from = trans ? tl_in(trans, 0)->type : NULL, *to = op->out[0]->type;
    const int64_t *perm = trans ? tl_attr(trans, TL_ATTR_PERM)->u.ints : NULL;
    int t = trans ? from->rank - 1 : 0, word = t - 1;
    int64_t after = 1, behind = 1; /* elements behind the axis of words, and behind the result's */
    if (!trans || from->shape[word] != words)
        return -1;
    for (; perm[t] != word; t--)
        after *= from->shape[perm[t]];
    int d = to->rank - 1;
    for (; d >= 0 && behind < after; d--)
        behind *= to->shape[d];
    while (d >= 0 && to->shape[d] == 1)
        d--;
    return d >= 0 && behind == after && to->shape[d] % words == 0 ? d : -1;
}

bool tl_nest_puts_rows(const TlNestMachine *m, const TlOp *op, int least)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    if (from->rank < 2 || to->rank < 1 || from->ptr || tl_dtype_bytes(from->dtype) != 1 ||
        tl_nest_is_renaming(op))
        return false;
    int32_t n = from->shape[from->rank - 1];
    return n >= least && n < m->vector_bytes && (n & (n - 1)) == 0 &&
           to->shape[to->rank - 1] % (2 * n) == 0;
}

/* Are only single elements along the last axis of v wanted? */
static bool is_only_picked(const TlValue *v, int depth)
{
    enum { MOST_DEPTH = 4 };
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlOp *op = u->user;
        int64_t at;
        bool is_elementwise = tl_op_info(op->opcode)->flags & F_ELEM;
        bool picks = op->opcode == TL_OP_REDUCE && tl_picked_from(op, &at) &&
                     tl_attr_int(op, TL_ATTR_AXIS, 0) == v->type->rank - 1;
        if (!picks &&
            (!is_elementwise || depth > MOST_DEPTH || !is_only_picked(op->out[0], depth + 1)))
            return false;
    }
    return v->uses;
}

bool tl_nest_parts(const TlOp *op)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    if (to->rank < 2 || from->rank < 1 || from->ptr || tl_nest_is_renaming(op))
        return false;
    int32_t n = to->shape[to->rank - 1];
    return n >= 2 && n <= TL_NEST_PARTED && to->shape[to->rank - 2] % 2 == 0 &&
           from->shape[from->rank - 1] % (2 * n) == 0 && is_only_picked(op->out[0], 0);
}

int tl_nest_part_width(const TlOp *op, int limit)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    TL_ASSERT(limit > 0 && to->rank >= 2, "%d lanes of no part", limit);
    int n = to->shape[to->rank - 1];
    int w = tl_nest_fit_width(from->shape[from->rank - 1] / n, limit);
    return tl_nest_fit_width(to->shape[to->rank - 2], w);
}

/* ---- histograms ---- */

enum { TABLES = 4, TABLES_BYTES = 36 << 10 }; /* so many tables, of so many bytes, at most */
enum { LINE = 64 / 4 };                       /* counts in a cache line */

/* As many as pay for being added up, and leave room in the first cache. */
TlNestTables tl_nest_tables(const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_HISTOGRAM, "%s counts nothing", tl_op_info(op->opcode)->text);
    TlNestForm f = tl_nest_form(op->out[0]->type);
    TlNestTables t = {.n = TABLES, .length = (f.padded[f.lane] + 1 + LINE - 1) / LINE * LINE};
    while (t.n > 1 && t.n * t.length * tl_dtype_bytes(op->out[0]->type->dtype) > TABLES_BYTES)
        t.n /= 2;
    if (tl_type_elems(tl_in(op, 0)->type) < 2 * tl_type_elems(op->out[0]->type))
        t.n = 1;
    return t;
}
