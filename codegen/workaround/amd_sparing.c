/* Code without scratch memory, where LLVM's first code has some.
 *
 *   1 all kernels are compiled; the notes say how many registers LLVM has spilled. Where more words
 *     live at once than CDNA's two files of registers can have after any order of the code, that is
 *     done in a sparing way from the first
 *   2 each way of sparing registers is tried on the kernels with spills, until none has any; not
 *     where it would do what an earlier one did, and none where there are so many that no order of
 *     the code would save them. The second way, which most often is enough, is tried with the
 *     other kernels beside these, and the first, where there are few
 *   3 all are compiled once more, each in the way that spilled least, if no try has compiled all
 *     of them with as few spills, or nearly
 *
 * The ways: offsets and addresses computed in the loop that uses them (amd_offsets.c), as many as
 * were spilled, or as many as possible; with LLVM's scheduler told how many waves fit if a
 * thread has all registers: it would aim for more waves, and give up blocks in which it cannot
 * have them (on CDNA that is one wave, which LLVM knows); and with blocks in parts, long or short,
 * that it schedules one by one (amd_part.c), which costs a register or two less; and by the other
 * scheduler that LLVM has, which makes blocks of a tile's elements one after the other, and hides
 * less of memory's latency. */
#include "codegen/target/notes.h"
#include "codegen/workaround/workaround.h"

static const struct Way {
    bool all, waves;
    unsigned part; /* instructions; 0: blocks stay whole */
    bool other;    /* scheduler */
} WAYS[] = {{false, false, 0, false}, {true, false, 0, false},  {true, true, 0, false},
            {true, true, 512, false}, {true, true, 128, false}, {true, true, 0, true}};
enum { NONE = -1, AS_MANY, ALL, NWAYS = sizeof WAYS / sizeof *WAYS };

/* What is known of a kernel: the way that spilled least, and how much. */
typedef struct Least {
    int way, begin;         /* begin: its first code's */
    unsigned spills, first; /* first: of the first code */
    unsigned alive;         /* words at once, in program order */
    bool has_more;          /* the first way has left offsets that another one would compute */
} Least;

/* Code of all kernels, made in one way, and what all spill; NULL: some had no part in it. */
typedef struct Tried {
    void *code;
    size_t size;
    unsigned spills;
} Tried;

typedef struct Sparing {
    TlLlvm *l;
    TlArena *arena;
    const TlTarget *target;
    const TlKernelCodes *kernels;
    bool object;
    Least *least; /* by kernel */
    Tried tried[NWAYS];
} Sparing;

/* ---- what was spilled ---- */

/* Registers of a kernel; -1: the code's notes do not say. */
static int spills_of(const Sparing *s, uint32_t kernel, const char *code, size_t size)
{
    const char *symbol = s->kernels->data[kernel].symbol;
    TlNotes notes;
    if (!s->object)
        return tl_notes_in_text(code, symbol, ".vgpr_spill_count");
    return tl_notes_of_object(code, size, symbol, &notes) ? notes.spilled : -1;
}

/* ---- ways ---- */

/* Of a thread, 32 bits each: the warps of a scheduler share both files. */
static uint32_t registers_of(const TlTarget *target, const TlKernelCode *k)
{
    enum { SCHEDULERS = 4 };
    uint32_t all = (uint32_t)target->registers, warps = k->threads / (uint32_t)target->lanes,
             each = (warps + SCHEDULERS - 1) / SCHEDULERS;
    return all > target->family->file && each > 1 ? all / each : all;
}

/* CDNA's waves are known to LLVM. */
static bool tells_waves(const Sparing *s)
{
    return tl_amd_generation(s->l) >= 10;
}

/* The least of RDNA's register files, of 1024, has room for so many. */
static void set_waves(const Sparing *s, LLVMValueRef f)
{
    static const char WAVES[] = "amdgpu-waves-per-eu", FOUR[] = "4,4";
    if (tells_waves(s))
        tl_llvm_set_text_attribute(s->l, f, LLVMAttributeFunctionIndex, WAVES, FOUR);
}

static void set_other_scheduler(const Sparing *s, LLVMValueRef f)
{
    static const char NAME[] = "+si-scheduler";
    const char *known = s->l->features;
    const char *all = known && *known ? tl_format(s->arena, "%s,%s", known, NAME) : NAME;
    tl_llvm_set_text_attribute(s->l, f, LLVMAttributeFunctionIndex, "target-features", all);
}

static void apply(const Sparing *s, uint32_t kernel, int way)
{
    const TlKernelCode *k = &s->kernels->data[kernel];
    LLVMValueRef f = LLVMGetNamedFunction(s->l->module, k->symbol);
    Least *least = &s->least[kernel];
    if (way == NONE)
        return;
    bool more =
        tl_amd_offsets(s->l, f, registers_of(s->target, k), least->first, WAYS[way].all);
    if (!WAYS[way].all)
        least->has_more = more;
    if (WAYS[way].waves)
        set_waves(s, f);
    if (WAYS[way].part)
        tl_amd_part_long(s->l, f, WAYS[way].part);
    if (WAYS[way].other)
        set_other_scheduler(s, f);
}

static unsigned alive_of(const Sparing *s, uint32_t kernel)
{
    TlAmdLive live;
    const char *symbol = s->kernels->data[kernel].symbol;
    tl_amd_find_live(s->arena, LLVMGetNamedFunction(s->l->module, symbol), &live);
    return live.most;
}

/* A sixteenth more: the words are counted in program order, and LLVM's order may need fewer. No
 * kernel of the library has so many. Of one file LLVM's order may need half. */
static int first_way(const Sparing *s, uint32_t kernel, unsigned alive)
{
    enum { MORE = 16 };
    unsigned all = registers_of(s->target, &s->kernels->data[kernel]);
    return all > (unsigned)s->target->family->file && alive > all + all / MORE ? ALL : NONE;
}

/* Would the first way, which spares as many registers as were spilled, leave some? So it has been
 * where many were, of far too many words. */
static bool passes_over_first(const Sparing *s, uint32_t kernel)
{
    enum { MANY = 24, FAR = 5, OF = 2 };
    const Least *least = &s->least[kernel];
    unsigned all = registers_of(s->target, &s->kernels->data[kernel]);
    return least->first > MANY && least->alive > all + all * OF / FAR;
}

static void start_from(const Sparing *s, LLVMModuleRef module)
{
    LLVMDisposeModule(s->l->module);
    s->l->module = LLVMCloneModule(module);
}

/* Has the kernel spills, not too many, and does this way something that none before it has done?
 * Blocks in parts and the other scheduler save a few registers. */
static bool is_worth(const Sparing *s, uint32_t kernel, int way)
{
    enum { FEW = 32 };
    const Least *least = &s->least[kernel];
    if (!least->spills || way <= least->begin || least->first >= (unsigned)s->target->family->file)
        return false;
    if (way == AS_MANY)
        return !passes_over_first(s, kernel);
    if (WAYS[way].part || WAYS[way].other)
        return least->spills <= FEW;
    return WAYS[way].waves ? tells_waves(s) : least->has_more || passes_over_first(s, kernel);
}

/* What it spills now. */
static unsigned look_at(Sparing *s, uint32_t kernel, int way, const void *code, size_t size)
{
    Least *least = &s->least[kernel];
    int spills = spills_of(s, kernel, code, size);
    TL_ASSERT(spills >= 0, "no notes of %s", s->kernels->data[kernel].symbol);
    if ((unsigned)spills < least->spills) {
        least->way = way;
        least->spills = (unsigned)spills;
    }
    return (unsigned)spills;
}

/* The kernels that it may help; alone, or, of ways that often are the last, with the others as they
 * were best, so that they need not be compiled once more. */
static void try_way(Sparing *s, LLVMModuleRef module, int way)
{
    size_t size;
    unsigned spills = 0;
    uint32_t n = s->kernels->len, tried = 0;
    bool *worth = TL_NEW_ARRAY(s->arena, bool, n + 1);
    for (uint32_t i = 0; i < n; i++)
        tried += worth[i] = is_worth(s, i, way);
    if (!tried)
        return;
    bool whole = way == ALL || (way == AS_MANY && 2 * tried >= n);
    start_from(s, module);
    for (uint32_t i = 0; i < n; i++)
        if (worth[i] || whole)
            apply(s, i, worth[i] ? way : s->least[i].way);
        else
            LLVMDeleteFunction(LLVMGetNamedFunction(s->l->module, s->kernels->data[i].symbol));
    void *code = tl_llvm_emit(s->l, s->arena, s->object, &size);
    for (uint32_t i = 0; i < n; i++)
        spills += worth[i] ? look_at(s, i, way, code, size) : s->least[i].spills;
    if (whole || tried == n)
        s->tried[way] = (Tried){code, size, spills};
}

/* Code in which all kernels spill as little as they can, each in its own way, or a sixteenth more;
 * NULL: none of the tries made such. */
static const Tried *best_of_all(const Sparing *s)
{
    unsigned least = 0;
    const Tried *best = NULL;
    for (uint32_t i = 0; i < s->kernels->len; i++)
        least += s->least[i].spills;
    for (int way = 0; way < NWAYS; way++)
        if (s->tried[way].code && (!best || s->tried[way].spills < best->spills))
            best = &s->tried[way];
    return best && best->spills <= least + least / 16 ? best : NULL;
}

static bool has_spills(const Sparing *s)
{
    for (uint32_t i = 0; i < s->kernels->len; i++)
        if (s->least[i].spills)
            return true;
    return false;
}

static bool has_ways(const Sparing *s)
{
    for (uint32_t i = 0; i < s->kernels->len; i++)
        if (s->least[i].way != s->least[i].begin)
            return true;
    return false;
}

void *tl_amd_emit_sparing(TlLlvm *l, const TlTarget *target, const TlKernelCodes *kernels,
                          bool object, TlArena *arena, size_t *out_size)
{
    Sparing s = {l, arena, target, kernels, object, TL_NEW_ARRAY(arena, Least, kernels->len + 1),
                 {{NULL, 0, 0}}};
    LLVMModuleRef module = LLVMCloneModule(l->module);
    for (uint32_t i = 0; i < kernels->len; i++) {
        unsigned alive = alive_of(&s, i);
        int way = first_way(&s, i, alive);
        s.least[i] = (Least){.way = way, .begin = way, .alive = alive};
        apply(&s, i, way);
    }
    void *code = tl_llvm_emit(l, arena, object, out_size);
    for (uint32_t i = 0; i < kernels->len; i++) {
        int spills = spills_of(&s, i, code, *out_size);
        TL_ASSERT(spills >= 0, "no notes of %s", kernels->data[i].symbol);
        s.least[i].first = s.least[i].spills = (unsigned)spills;
    }
    for (int way = 0; way < NWAYS && has_spills(&s); way++)
        try_way(&s, module, way);
    const Tried *best = has_ways(&s) ? best_of_all(&s) : NULL;
    if (best) {
        code = best->code;
        *out_size = best->size;
    } else if (has_ways(&s)) {
        start_from(&s, module);
        for (uint32_t i = 0; i < kernels->len; i++)
            apply(&s, i, s.least[i].way);
        code = tl_llvm_emit(l, arena, object, out_size);
    }
    LLVMDisposeModule(module);
    return code;
}
