/* emu_leaf.c: what kernels call: one C function tl_emu_NAME per row of leaf.def.
 *
 * Operands as leaf_emu.c passes them: i1, i8 and i16 as uint32_t, zero-extended; vectors as GCC's
 * of the same size, which has the same convention as LLVM's; pointers as uint64_t. Memory is the
 * process's own; shared memory the block's buffer. Nothing is touched that the watch has not let
 * through. Atomics are stronger than asked for (sequentially consistent): missing orders are for
 * the watch to find. */
#include "runtime/debug_records.h"
#include "runtime/emu/emu.h"
#include <math.h>

typedef uint32_t v2 __attribute__((vector_size(8)));
typedef uint32_t v4 __attribute__((vector_size(16)));

/* No header has these prototypes: only code that the compiler generated calls them. */
#define LEAF(ID, name, ...) extern void leaf_##ID(void) __asm__("tl_emu_" name);
#include "runtime/contract/leaf.def"

_Static_assert(sizeof(v2) == 8 && sizeof(v4) == 16, "vectors are passed as LLVM's are");

const tl_elf_symbol tl_emu_known[TL_EMU_KNOWN] = {
#define LEAF(ID, name, ...) {"tl_emu_" name, leaf_##ID},
#include "runtime/contract/leaf.def"
    {"tl_emu_host_fma", (void (*)(void))fma}, /* host CPUs without the instruction */
};

/* ---- ids, collectives ---- */

uint32_t tl_emu_tid(void)
{
    return tl_emu_now->current->index;
}

uint32_t tl_emu_ctaid(void)
{
    return (uint32_t)tl_emu_now->linear;
}

uint32_t tl_emu_cluster_size(void)
{
    return tl_emu_now->cluster->size;
}

uint32_t tl_emu_cluster_rank(void)
{
    return tl_emu_now->rank;
}

void tl_emu_barrier(uint32_t site)
{
    tl_emu_block *b = tl_emu_enter(site, TL_LEAF_BARRIER);
    if (b)
        tl_emu_meet_barrier(b, site);
}

void tl_emu_meet(uint32_t site)
{
    tl_emu_block *b = tl_emu_enter(site, TL_LEAF_MEET);
    if (b)
        tl_emu_meet_cluster(b, site);
}

static void meet_some(tl_leaf leaf, uint32_t site, uint32_t number, uint32_t threads)
{
    tl_emu_block *b = tl_emu_enter(site, leaf);
    if (b)
        tl_emu_meet_some(b, leaf, site, number, threads);
}

void tl_emu_barrier_of(uint32_t site, uint32_t number, uint32_t threads)
{
    meet_some(TL_LEAF_BARRIER_OF, site, number, threads);
}

void tl_emu_turn_take(uint32_t site, uint32_t number, uint32_t threads)
{
    meet_some(TL_LEAF_TURN_TAKE, site, number, threads);
}

void tl_emu_turn_pass(uint32_t site, uint32_t number, uint32_t threads)
{
    meet_some(TL_LEAF_TURN_PASS, site, number, threads);
}

uint32_t tl_emu_shfl_idx(uint32_t site, uint32_t value, uint32_t lane)
{
    tl_emu_block *b = tl_emu_now;
    tl_emu_count(b, site, TL_LEAF_SHFL_IDX);
    return tl_emu_meet_shuffle(b, TL_LEAF_SHFL_IDX, site, value, lane, 0);
}

uint32_t tl_emu_shfl_xor(uint32_t site, uint32_t value, uint32_t mask)
{
    tl_emu_block *b = tl_emu_now;
    tl_emu_count(b, site, TL_LEAF_SHFL_XOR);
    return tl_emu_meet_shuffle(b, TL_LEAF_SHFL_XOR, site, value,
                               b->current->index % b->lanes ^ mask, mask);
}

uint32_t tl_emu_shfl_end(uint32_t site, uint32_t value, uint32_t n)
{
    tl_emu_block *b = tl_emu_now;
    uint32_t lane = b->current->index % b->lanes, group = lane & ~(n - 1);
    tl_emu_count(b, site, TL_LEAF_SHFL_END);
    value = tl_emu_meet_shuffle(b, TL_LEAF_SHFL_END, site, value, group ? group - 1 : lane, n);
    return group ? value : 0;
}

v2 tl_emu_shfl_shift(uint32_t site, uint32_t value, uint32_t n, uint32_t lanes)
{
    tl_emu_block *b = tl_emu_now;
    uint32_t lane = b->current->index % b->lanes, from = lane - n;
    bool there = from < b->lanes && from / lanes == lane / lanes;
    tl_emu_count(b, site, TL_LEAF_SHFL_SHIFT);
    value = tl_emu_meet_shuffle(b, TL_LEAF_SHFL_SHIFT, site, value, there ? from : lane,
                                n * (2 * b->lanes) + lanes);
    return (v2){value, there};
}

static uint32_t combine(tl_redux how, uint32_t a, uint32_t b)
{
    switch (how) {
    case TL_REDUX_ADD: return a + b;
    case TL_REDUX_MIN: return (int32_t)a < (int32_t)b ? a : b;
    case TL_REDUX_MAX: return (int32_t)a > (int32_t)b ? a : b;
    case TL_REDUX_UMIN: return a < b ? a : b;
    case TL_REDUX_UMAX: return a > b ? a : b;
    case TL_REDUX_AND: return a & b;
    case TL_REDUX_OR: return a | b;
    case TL_REDUX_XOR: return a ^ b;
    }
    return 0;
}

static uint32_t combine_floats(tl_redux how, uint32_t a, uint32_t b)
{
    float x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    if (x != x || y != y)
        return x != x ? b : a;
    return (how == TL_REDUX_MIN) == (x < y) ? a : b;
}

typedef struct redux {
    uint32_t value, how;
} redux;

static void redux_of(void *const *mine, uint32_t lanes,
                     uint32_t (*combine_two)(tl_redux how, uint32_t a, uint32_t b))
{
    redux *const *lane = (redux *const *)mine;
    uint32_t all = lane[0]->value;
    for (uint32_t i = 1; i < lanes; i++)
        all = combine_two((tl_redux)lane[i]->how, all, lane[i]->value);
    for (uint32_t i = 0; i < lanes; i++)
        lane[i]->value = all;
}

static void redux_words(tl_emu_block *b, void *const *mine)
{
    redux_of(mine, b->lanes, combine);
}

static void redux_floats(tl_emu_block *b, void *const *mine)
{
    redux_of(mine, b->lanes, combine_floats);
}

uint32_t tl_emu_redux(uint32_t site, uint32_t value, uint32_t how)
{
    redux mine = {value, how};
    tl_emu_count(tl_emu_now, site, TL_LEAF_REDUX);
    tl_emu_meet_warp(tl_emu_now, TL_LEAF_REDUX, site, how, &mine, redux_words);
    return mine.value;
}

uint32_t tl_emu_redux_f32(uint32_t site, uint32_t value, uint32_t how)
{
    redux mine = {value, how};
    tl_emu_count(tl_emu_now, site, TL_LEAF_REDUX_F32);
    tl_emu_meet_warp(tl_emu_now, TL_LEAF_REDUX_F32, site, how, &mine, redux_floats);
    return mine.value;
}

/* ---- memory ---- */

/* May the current thread touch these bytes? */
static inline bool may(tl_emu_space space, tl_emu_kind kind, uint32_t site, uint64_t at,
                       uint32_t bytes, uint32_t pred)
{
    tl_emu_block *b = tl_emu_now;
    TL_EMU_INVARIANT(b, site, !b->current->waits, "a thread that waits touches memory");
    if (b->random)
        tl_emu_step(b);
    if (!pred) {
        tl_emu_block_skip(b->watch, site, b->current->index);
        return false;
    }
    return tl_emu_block_access(b->watch, &(tl_emu_access){.space = space,
                                                          .kind = kind,
                                                          .site = site,
                                                          .at = at,
                                                          .bytes = bytes,
                                                          .thread = b->current->index});
}

static inline void *global(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

static inline void *shared(uint32_t offset)
{
    return tl_emu_now->shared + offset;
}

enum { UNSEEN = 0x7FF1ABAB }; /* a NaN in f32, f64 and the upper f16 */

#define LOADS(bits, memory_type, type)                                                             \
    type tl_emu_ldg_##bits(uint32_t site, uint64_t at, uint32_t pred, uint32_t hints,              \
                           uint32_t fill)                                                          \
    {                                                                                              \
        uint32_t word = hints & TL_HINT_ANY_FILL ? UNSEEN : fill;                                  \
        uint32_t words[4] = {word, word, word, word};                                              \
        memory_type v;                                                                             \
        memcpy(&v, words, sizeof v);                                                               \
        if (may(TL_EMU_GLOBAL, TL_EMU_LOAD, site, at, sizeof v, pred))                             \
            memcpy(&v, global(at), sizeof v);                                                      \
        return v;                                                                                  \
    }                                                                                              \
    type tl_emu_lds_##bits(uint32_t site, uint32_t offset)                                         \
    {                                                                                              \
        memory_type v = {0};                                                                       \
        if (may(TL_EMU_SHARED, TL_EMU_LOAD, site, offset, sizeof v, 1))                            \
            memcpy(&v, shared(offset), sizeof v);                                                  \
        return v;                                                                                  \
    }

enum { GROUP = 16, PIECE = 8 }; /* lanes that transpose together; bytes that each brings */

typedef struct column { /* of one lane */
    uint32_t bytes;     /* of an element */
    char brought[PIECE], got[PIECE];
} column;

/* Lane by lane: element e of its column is in row e, of which each lane has brought some. */
static void transpose(tl_emu_block *b, void *const *mine)
{
    column *const *lanes = (column *const *)mine;
    uint32_t bytes = lanes[0]->bytes, n = PIECE / bytes;
    TL_EMU_INVARIANT(b, b->current->site, b->lanes % GROUP == 0, "%u lanes", b->lanes);
    for (uint32_t lane = 0; lane < b->lanes; lane++)
        for (uint32_t e = 0, at = lane % GROUP; e < n; e++) {
            const column *from = lanes[lane - at + e * (GROUP / n) + at / n];
            memcpy(lanes[lane]->got + e * bytes, from->brought + at % n * bytes, bytes);
        }
}

static v2 load_column(tl_leaf leaf, uint32_t site, uint32_t offset)
{
    column c = {.bytes = tl_leaf_info(leaf)->size / 8};
    v2 got;
    if (may(TL_EMU_SHARED, TL_EMU_LOAD, site, offset, PIECE, 1))
        memcpy(c.brought, shared(offset), PIECE);
    tl_emu_meet_warp(tl_emu_now, leaf, site, 0, &c, transpose);
    memcpy(&got, c.got, sizeof got);
    return got;
}

v2 tl_emu_lds_t_8(uint32_t site, uint32_t offset)
{
    return load_column(TL_LEAF_LDS_T_8, site, offset);
}

v2 tl_emu_lds_t_16(uint32_t site, uint32_t offset)
{
    return load_column(TL_LEAF_LDS_T_16, site, offset);
}

/* ---- copies that are a row of a warp ---- */

static void meet_alone(tl_emu_block *b, void *const *mine)
{
    (void)b, (void)mine;
}

/* That all lanes say the same of where the row begins is what meeting compares. */
static void copy_to_row(uint32_t site, uint32_t pred, uint32_t slot, uint32_t offset, uint64_t at,
                        uint32_t inside, uint32_t hints)
{
    enum { BYTES = 16 };
    tl_emu_block *b = tl_emu_now;
    uint32_t lane = b->current->index % b->lanes;
    tl_emu_meet_warp(b, TL_LEAF_CP_ROW, site, slot + offset, NULL, meet_alone);
    tl_emu_cp_async_16(site, pred, slot, offset + BYTES * lane, at, inside, hints);
}

void tl_emu_cp_row(uint32_t site, uint32_t pred, uint32_t slot, uint32_t offset, uint64_t at,
                   uint32_t inside, uint32_t hints)
{
    copy_to_row(site, pred, slot, offset, at, inside, hints);
}

void tl_emu_cp_row_near(uint32_t site, uint64_t base, uint32_t hints, uint32_t slot,
                        uint32_t offset, uint32_t far, uint32_t near)
{
    copy_to_row(site, 1, slot, offset, base + far + near, 1, hints);
}

#define STORES(bits, memory_type, type)                                                            \
    void tl_emu_stg_##bits(uint32_t site, uint64_t at, uint32_t pred, uint32_t hints, type value)  \
    {                                                                                              \
        memory_type v = (memory_type)value;                                                        \
        (void)hints;                                                                               \
        if (may(TL_EMU_GLOBAL, TL_EMU_STORE, site, at, sizeof v, pred))                            \
            memcpy(global(at), &v, sizeof v);                                                      \
    }                                                                                              \
    void tl_emu_sts_##bits(uint32_t site, uint32_t offset, uint32_t pred, type value)              \
    {                                                                                              \
        memory_type v = (memory_type)value;                                                        \
        if (may(TL_EMU_SHARED, TL_EMU_STORE, site, offset, sizeof v, pred))                        \
            memcpy(shared(offset), &v, sizeof v);                                                  \
    }

/* Is the access there, as far as the hardware's test goes? */
static bool is_there(uint32_t site, uint32_t pred, uint32_t records, uint32_t far, uint32_t offset,
                     uint32_t bytes)
{
    tl_emu_block *b = tl_emu_now;
    TL_EMU_INVARIANT(b, site, far == 0 || records == TL_RECORDS_ALL, "far %u of %u records", far,
                     records);
    TL_EMU_INVARIANT(b, site, records <= TL_RECORDS_ALL, "%u records", records);
    return pred && (uint64_t)offset + bytes <= records;
}

#define BUFFERS(bits, memory_type, type)                                                           \
    type tl_emu_ldb_##bits(uint32_t site, uint64_t base, uint32_t pred, uint32_t hints,            \
                           uint32_t fill, uint32_t records, uint32_t far, uint32_t offset)         \
    {                                                                                              \
        pred = is_there(site, pred, records, far, offset, sizeof(memory_type));                    \
        return tl_emu_ldg_##bits(site, base + far + offset, pred, hints, fill);                    \
    }                                                                                              \
    void tl_emu_stb_##bits(uint32_t site, uint64_t base, uint32_t pred, uint32_t hints,            \
                           type value, uint32_t records, uint32_t far, uint32_t offset)            \
    {                                                                                              \
        pred = is_there(site, pred, records, far, offset, sizeof(memory_type));                    \
        tl_emu_stg_##bits(site, base + far + offset, pred, hints, value);                          \
    }

LOADS(8, uint8_t, uint32_t)
LOADS(16, uint16_t, uint32_t)
LOADS(32, uint32_t, uint32_t)
LOADS(64, v2, v2)
LOADS(128, v4, v4)
STORES(8, uint8_t, uint32_t)
STORES(16, uint16_t, uint32_t)
STORES(32, uint32_t, uint32_t)
STORES(64, v2, v2)
STORES(128, v4, v4)
BUFFERS(8, uint8_t, uint32_t)
BUFFERS(16, uint16_t, uint32_t)
BUFFERS(32, uint32_t, uint32_t)
BUFFERS(64, v2, v2)
BUFFERS(128, v4, v4)

/* ---- atomics ---- */

static uint32_t fadd_32(uint32_t a, uint32_t b)
{
    float x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x += y;
    memcpy(&a, &x, sizeof a);
    return a;
}

/* Narrow atomics are LOAD, STORE and CAS only. */
static uint16_t fadd_16(uint16_t a, uint16_t b)
{
    (void)b;
    return a;
}
static uint8_t fadd_8(uint8_t a, uint8_t b)
{
    (void)b;
    return a;
}

static uint64_t fadd_64(uint64_t a, uint64_t b)
{
    double x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x += y;
    memcpy(&a, &x, sizeof a);
    return a;
}

/* The word after the operation. */
#define OPERATION(bits)                                                                            \
    static uint##bits##_t operation_##bits(uint32_t op, uint##bits##_t old, uint##bits##_t value,  \
                                           uint##bits##_t expected)                                \
    {                                                                                              \
        switch ((tl_atom)op) {                                                                     \
        case TL_ATOM_ADD: return old + value;                                                      \
        case TL_ATOM_MIN_S: return (int##bits##_t)value < (int##bits##_t)old ? value : old;        \
        case TL_ATOM_MIN_U: return value < old ? value : old;                                      \
        case TL_ATOM_MAX_S: return (int##bits##_t)value > (int##bits##_t)old ? value : old;        \
        case TL_ATOM_MAX_U: return value > old ? value : old;                                      \
        case TL_ATOM_AND: return old & value;                                                      \
        case TL_ATOM_OR: return old | value;                                                       \
        case TL_ATOM_XOR: return old ^ value;                                                      \
        case TL_ATOM_XCHG:                                                                         \
        case TL_ATOM_STORE: return value;                                                          \
        case TL_ATOM_CAS: return old == expected ? value : old;                                    \
        case TL_ATOM_FADD: return fadd_##bits(old, value);                                         \
        case TL_ATOM_LOAD: break;                                                                  \
        }                                                                                          \
        return old;                                                                                \
    }

/* Repeats until no other thread interfered. A load and a failing compare write nothing. */
#define ATOMIC(bits, word)                                                                         \
    OPERATION(bits)                                                                                \
    static uint##bits##_t perform_##bits(uint##bits##_t *at, uint32_t op, uint##bits##_t value,    \
                                         uint##bits##_t expected, bool *out_wrote)                 \
    {                                                                                              \
        uint##bits##_t old = __atomic_load_n(at, __ATOMIC_SEQ_CST);                                \
        for (;;) {                                                                                 \
            *out_wrote = op != TL_ATOM_LOAD && (op != TL_ATOM_CAS || old == expected);             \
            if (!*out_wrote ||                                                                     \
                __atomic_compare_exchange_n(at, &old, operation_##bits(op, old, value, expected),  \
                                            false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))            \
                return old;                                                                        \
        }                                                                                          \
    }                                                                                              \
    word tl_emu_atom_##bits(uint32_t site, uint64_t at, uint32_t pred, uint32_t op,                \
                            uint32_t order, uint32_t scope, word value_word, word expected_word)   \
    {                                                                                              \
        uint##bits##_t value = (uint##bits##_t)value_word,                                         \
                       expected = (uint##bits##_t)expected_word;                                   \
        tl_emu_access a = {.space = TL_EMU_GLOBAL,                                                 \
                           .kind = TL_EMU_ATOMIC,                                                  \
                           .site = site,                                                           \
                           .at = at,                                                               \
                           .bytes = sizeof value,                                                  \
                           .atom = op,                                                             \
                           .order = order,                                                         \
                           .scope = scope};                                                        \
        bool wrote;                                                                                \
        if (!begin_atomic(&a, pred))                                                               \
            return 0;                                                                              \
        uint##bits##_t old = perform_##bits(global(at), op, value, expected, &wrote);              \
        end_atomic(&a, wrote, wrote &&operation_##bits(op, old, value, expected) != old);          \
        return old;                                                                                \
    }

static bool begin_atomic(tl_emu_access *a, uint32_t pred)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    a->thread = b->current->index;
    TL_EMU_INVARIANT(b, a->site, a->atom <= TL_ATOM_STORE, "atomic operation %u", a->atom);
    if (!pred) {
        tl_emu_block_skip(b->watch, a->site, a->thread);
        return false;
    }
    return tl_emu_block_access(b->watch, a);
}

/* An atomic that changes nothing may be part of a spin loop: other threads go first. Every
 * TURN_EVERY atomics they do so anyway. */
static void end_atomic(const tl_emu_access *a, bool wrote, bool changed)
{
    enum { TURN_EVERY = 256 };
    tl_emu_block *b = tl_emu_now;
    tl_emu_block_atomic_done(b->watch, a, wrote);
    if (!changed || ++b->atomics % TURN_EVERY == 0)
        tl_emu_spin(b);
}

/* Threads of a block take turns, so nothing comes between. */
void tl_emu_adds(uint32_t site, uint32_t offset, uint32_t pred, uint32_t value)
{
    uint32_t sum;
    tl_emu_access a = {.space = TL_EMU_SHARED,
                       .kind = TL_EMU_ATOMIC,
                       .site = site,
                       .at = offset,
                       .bytes = sizeof sum,
                       .atom = TL_ATOM_ADD};
    if (!begin_atomic(&a, pred))
        return;
    memcpy(&sum, shared(offset), sizeof sum);
    sum += value;
    memcpy(shared(offset), &sum, sizeof sum);
}

/* `word`: the type in which the value is passed */
ATOMIC(8, uint32_t)
ATOMIC(16, uint32_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

/* ---- what kernels say ---- */

void tl_emu_fail(uint32_t site, uint32_t failed, uint32_t kind, uint32_t text)
{
    tl_emu_block *b = tl_emu_now;
    const tl_launch *l = b->job->launch;
    const uint32_t *texts = (const void *)tl_image_text(l->image, l->kernel->texts);
    if (failed)
        tl_emu_report_failure(b->job, b->linear, (tl_fail_kind)kind, site,
                              text < l->kernel->ntexts ? tl_image_text(l->image, texts[text])
                                                       : NULL);
}

void tl_emu_outside(uint32_t site, uint32_t failed, uint32_t text, uint32_t param, uint64_t address,
                    uint32_t bytes)
{
    tl_emu_block *b = tl_emu_now;
    char outside[300];
    if (!failed)
        return;
    tl_say_outside(b->job->launch, text, param, address, bytes, outside, sizeof outside);
    tl_emu_report_failure(b->job, b->linear, TL_RUN_BOUNDS, site, outside);
}

void tl_emu_print(uint32_t site, uint32_t pred, uint32_t text, uint32_t dtype, uint32_t reg,
                  uint32_t index, uint64_t bits)
{
    tl_emu_block *b = tl_emu_now;
    if (reg == 0)
        b->current->prints++;
    if (pred)
        tl_emu_print_element(b, site, text, dtype, index, bits);
}
