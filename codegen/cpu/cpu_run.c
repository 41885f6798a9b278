/* The function of a kernel, its loops over the programs of a run, and the services that it calls.
 *
 * What is equal for all programs is computed before the loop, or LLVM moves it there. For a
 * program of thousands of instructions these are hundreds of addresses and tests, and saving them
 * does not pay: each would occupy a register, or a place on the stack, throughout the code, and
 * LLVM spends time on each of them at each block. So a long program is a function of its own,
 * which the loop calls. */
#include <stddef.h>
#include <string.h>

#include "codegen/cpu/cpu.h"

/* A program of more instructions is long. */
enum { LONG = 2048 };

/* A caller has set it. LLVM would otherwise look whether it may be undefined, at each choice that
 * depends on it, through all of the code before. */
LLVMValueRef tl_cpu_load_word(TlCpuGen *g, LLVMValueRef base, uint64_t offset, LLVMTypeRef type)
{
    LLVMValueRef o = tl_gen_int(&g->gen, (int64_t)offset);
    LLVMValueRef address = LLVMBuildInBoundsGEP2(g->b, g->i8, base, &o, 1, "");
    LLVMValueRef word = LLVMBuildLoad2(g->b, type, address, "");
    tl_llvm_set_metadata(g->l, word, "noundef", NULL, 0);
    return word;
}

LLVMValueRef tl_cpu_service(TlCpuGen *g, unsigned service, LLVMTypeRef type, LLVMValueRef *args,
                            unsigned nargs)
{
    TL_ASSERT(nargs > 0 && args, "service %u without arguments", service);
    LLVMValueRef offset = tl_gen_int(&g->gen, service);
    LLVMValueRef p = LLVMBuildInBoundsGEP2(g->b, g->ptr, g->services, &offset, 1, "");
    return LLVMBuildCall2(g->b, type, LLVMBuildLoad2(g->b, g->ptr, p, ""), args, nargs, "");
}

static void attribute(TlCpuGen *g, const char *name, const char *value)
{
    tl_llvm_set_text_attribute(g->l, g->function, LLVMAttributeFunctionIndex, name, value);
}

static void enum_attribute(TlCpuGen *g, unsigned index, const char *name)
{
    tl_llvm_set_attribute(g->l, g->function, index, name, 0);
}

static void begin_function(TlCpuGen *g, const char *symbol)
{
    TL_ASSERT(symbol && *symbol, "a kernel without a symbol");
    LLVMTypeRef params[2] = {g->ptr, g->ptr};
    g->function = LLVMAddFunction(g->l->module, symbol, LLVMFunctionType(g->void_, params, 2, 0));
    enum_attribute(g, LLVMAttributeFunctionIndex, "nounwind");
    enum_attribute(g, 1, "noalias");
    enum_attribute(g, 2, "noalias");
    enum_attribute(g, 2, "readonly");
    attribute(g, "target-cpu", g->l->cpu);
    attribute(g, "target-features", g->l->features);
    if (g->l->tune)
        attribute(g, "tune-cpu", g->l->tune);
    attribute(g, "no-builtins", "true");
    if (g->m.vector_bytes == 64)
        attribute(g, "prefer-vector-width", "512");
    LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->c, g->function, "entry"));
    g->ctx = LLVMGetParam(g->function, 0);
    g->params = LLVMGetParam(g->function, 1);
}

enum { PID = offsetof(tile_cpu_ctx, pid), PID1 = PID + sizeof(int32_t) };

/* A block of a loop over programs, which counts from `first` up. The services read the number from
 * the context. */
static LLVMBasicBlockRef begin_counting(TlCpuGen *g, const char *name, LLVMValueRef first,
                                        int64_t field, LLVMValueRef *out_pid)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), block = tl_gen_block(&g->gen, name);
    LLVMBuildBr(g->b, block);
    LLVMPositionBuilderAtEnd(g->b, block);
    *out_pid = LLVMBuildPhi(g->b, g->i32, "pid");
    LLVMAddIncoming(*out_pid, &first, &from, 1);
    LLVMValueRef at = tl_gen_int(&g->gen, field);
    LLVMBuildStore(g->b, *out_pid, LLVMBuildInBoundsGEP2(g->b, g->i8, g->ctx, &at, 1, ""));
    return block;
}

/* What is built from here on runs once for each program. */
static void begin_loop(TlCpuGen *g)
{
    LLVMValueRef first = tl_cpu_load_word(g, g->ctx, PID, g->i32),
                 count = tl_cpu_load_word(g, g->ctx, offsetof(tile_cpu_ctx, count), g->i32),
                 first1 = tl_cpu_load_word(g, g->ctx, PID1, g->i32),
                 rows = tl_cpu_load_word(g, g->ctx, offsetof(tile_cpu_ctx, rows), g->i32);
    g->pid_end = LLVMBuildAdd(g->b, first, count, "");
    g->pid1_end = LLVMBuildAdd(g->b, first1, rows, "");
    g->row = begin_counting(g, "row", first1, PID1, &g->pid1);
    g->program = begin_counting(g, "program", first, PID, &g->pid);
}

LLVMValueRef tl_cpu_pid(TlCpuGen *g, uint32_t axis)
{
    if (axis > 1)
        return tl_cpu_load_word(g, g->ctx, PID + sizeof(int32_t) * axis, g->i32);
    return axis ? g->pid1 : g->pid;
}

/* The end of what a block of a loop begins. */
static void end_counting_by(TlCpuGen *g, LLVMBasicBlockRef block, LLVMValueRef pid,
                            LLVMValueRef end, LLVMValueRef by)
{
    LLVMBasicBlockRef done = tl_gen_block(&g->gen, "done"), here = LLVMGetInsertBlock(g->b);
    LLVMValueRef next = LLVMBuildAdd(g->b, pid, by, "");
    LLVMAddIncoming(pid, &next, &here, 1);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, next, end, ""), done, block);
    LLVMPositionBuilderAtEnd(g->b, done);
}

static void end_counting(TlCpuGen *g, LLVMBasicBlockRef block, LLVMValueRef pid, LLVMValueRef end,
                         int by)
{
    end_counting_by(g, block, pid, end, LLVMConstInt(g->i32, (unsigned)by, 0));
}

static void read_context(TlCpuGen *g)
{
    g->services = tl_cpu_load_word(g, g->ctx, offsetof(tile_cpu_ctx, services), g->ptr);
    g->scratch = tl_cpu_load_word(g, g->ctx, offsetof(tile_cpu_ctx, scratch), g->ptr);
    g->cache_bytes = tl_cpu_load_word(g, g->ctx, offsetof(tile_cpu_ctx, cache_bytes), g->i64);
}

/* Slots that another function of the kernel has. */
static void take_slots(TlCpuGen *g, const TlSlots *slots)
{
    for (uint32_t i = 0; i < slots->len; i++) {
        tl_vec_push(g->arena, &g->slots, slots->data[i]);
        LLVMValueRef x = g->load_slot(&g->gen, i, (tile_slot_kind)slots->data[i].kind);
        tl_vec_push(g->arena, &g->slot, x);
    }
}

void tl_cpu_begin_kernel(TlCpuGen *g, const char *symbol, const TlSlots *slots)
{
    begin_function(g, symbol);
    tl_gen_debug_begin(&g->gen);
    read_context(g);
    if (slots)
        take_slots(g, slots);
    tl_gen_params(&g->gen);
    begin_loop(g);
}

unsigned tl_cpu_length(const TlCpuGen *g)
{
    unsigned n = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(g->function); b;
         b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
            n++;
    return n;
}

static void only_first(LLVMValueRef pid)
{
    TL_ASSERT(LLVMCountIncoming(pid) == 1, "a program that ends twice");
    LLVMReplaceAllUsesWith(pid, LLVMGetIncomingValue(pid, 0));
    LLVMInstructionEraseFromParent(pid);
}

/* What was built becomes a function that ends with its first program; the builder stands in the
 * loop of a new function, which calls it. */
static void call_program(TlCpuGen *g)
{
    LLVMValueRef program = g->function, args[2];
    size_t n;
    const char *symbol = tl_format(g->arena, "%s", LLVMGetValueName2(program, &n));
    const char *name = tl_format(g->arena, "%s.program", symbol);
    LLVMBuildRetVoid(g->b);
    LLVMSetValueName2(program, name, strlen(name));
    LLVMSetLinkage(program, LLVMInternalLinkage);
    only_first(g->pid);
    only_first(g->pid1);

    begin_function(g, symbol);
    begin_loop(g);
    args[0] = g->ctx;
    args[1] = g->params;
    LLVMBuildCall2(g->b, LLVMGlobalGetValueType(program), program, args, 2, "");
}

/* Slots of the parameter table that are known are read in this function, too. */
static void read_slots_again(TlCpuGen *g)
{
    for (uint32_t i = 0; i < g->slots.len; i++)
        g->slot.data[i] = g->load_slot(&g->gen, i, (tile_slot_kind)g->slots.data[i].kind);
}

void tl_cpu_call_part(TlCpuGen *g, const char *name, void (*build)(TlCpuGen *g))
{
    TlCpuGen outer = *g;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    size_t n;
    const char *symbol = tl_format(g->arena, "%s.%s", LLVMGetValueName2(g->function, &n), name);
    TL_ASSERT(!g->l->di, "lines of a part of '%s'", g->fn->name);
    begin_function(g, symbol);
    LLVMSetLinkage(g->function, LLVMInternalLinkage);
    read_context(g);
    read_slots_again(g);
    tl_gen_params(&g->gen);
    g->program = LLVMGetInsertBlock(g->b);
    g->pid = tl_cpu_load_word(g, g->ctx, PID, g->i32);
    g->pid1 = tl_cpu_load_word(g, g->ctx, PID1, g->i32);
    LLVMValueRef count = tl_cpu_load_word(g, g->ctx, offsetof(tile_cpu_ctx, count), g->i32);
    g->pid_end = LLVMBuildAdd(g->b, g->pid, count, "");
    g->variable = TL_NEW_ARRAY(g->arena, LLVMValueRef, g->plan->buffers.len + 1);
    build(g);
    LLVMBuildRetVoid(g->b);
    LLVMValueRef part = g->function, args[2] = {outer.ctx, outer.params};
    *g = outer;
    LLVMPositionBuilderAtEnd(g->b, here);
    LLVMBuildCall2(g->b, LLVMGlobalGetValueType(part), part, args, 2, "");
}

bool tl_cpu_would_be_long(const TlCpuGen *g, unsigned from)
{
    enum { TESTED = 5, WHOLE = 4 }; /* what is tested is longer, as these are */
    unsigned n = tl_cpu_length(g);
    return n + (n - from) * TESTED / WHOLE > LONG;
}

void tl_cpu_end_kernel(TlCpuGen *g)
{
    g->body = g->function;
    tl_gen_debug_end(&g->gen); /* the loop over programs is of no line */
    if (tl_cpu_length(g) > LONG)
        call_program(g);
    int by = tl_nest_at_once(g->plan, 0);
    if (g->plan->alone & 1) /* no loop, before which what is seldom needed would be computed */
        g->pid_end = LLVMBuildAdd(g->b, g->pid, LLVMConstInt(g->i32, (unsigned)by, 0), "");
    end_counting(g, g->program, g->pid, g->pid_end, by);
    end_counting(g, g->row, g->pid1, g->pid1_end, tl_nest_at_once(g->plan, 1));
    tl_cpu_stream_end(g);
    LLVMBuildRetVoid(g->b);
}

/* ---- several programs at once ---- */

static LLVMValueRef field_at(TlCpuGen *g, int64_t field)
{
    LLVMValueRef at = tl_gen_int(&g->gen, field);
    return LLVMBuildInBoundsGEP2(g->b, g->i8, g->ctx, &at, 1, "");
}

/* Along both axes, from `first` on. */
typedef struct Programs {
    LLVMValueRef first[2], count[2];
} Programs;

static const int64_t COUNTS[] = {offsetof(tile_cpu_ctx, count), offsetof(tile_cpu_ctx, rows)};

static Programs programs_of_run(TlCpuGen *g)
{
    Programs p;
    for (int axis = 0; axis < 2; axis++) {
        p.first[axis] = tl_cpu_load_word(g, g->ctx, PID + sizeof(int32_t) * (uint64_t)axis, g->i32);
        p.count[axis] = tl_cpu_load_word(g, g->ctx, (uint64_t)COUNTS[axis], g->i32);
    }
    return p;
}

static void set_counts(TlCpuGen *g, const Programs *p)
{
    for (int axis = 0; axis < 2; axis++)
        LLVMBuildStore(g->b, p->count[axis], field_at(g, COUNTS[axis]));
}

/* `programs` runs these, unless there are none along the axis. */
static void call_programs(TlCpuGen *g, LLVMValueRef programs, Programs p, int axis)
{
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0), args[2] = {g->ctx, g->params},
                 any = LLVMBuildICmp(g->b, LLVMIntNE, p.count[axis], zero, "");
    LLVMBasicBlockRef some = tl_gen_block(&g->gen, "some"), next = tl_gen_block(&g->gen, "next");
    LLVMBuildCondBr(g->b, any, some, next);
    LLVMPositionBuilderAtEnd(g->b, some);
    LLVMBuildStore(g->b, p.first[0], field_at(g, PID));
    LLVMBuildStore(g->b, p.first[1], field_at(g, PID1));
    set_counts(g, &p);
    LLVMBuildCall2(g->b, LLVMGlobalGetValueType(programs), programs, args, 2, "");
    LLVMBuildBr(g->b, next);
    LLVMPositionBuilderAtEnd(g->b, next);
}

/* ---- rows of the grid abreast ---- */

void tl_cpu_begin_abreast(TlCpuGen *g, const char *symbol, const TlSlots *slots)
{
    size_t n = g->fn->nvalues + 1;
    begin_function(g, symbol);
    LLVMSetLinkage(g->function, LLVMInternalLinkage);
    read_context(g);
    take_slots(g, slots);
    tl_gen_params(&g->gen);
    LLVMValueRef first = tl_cpu_load_word(g, g->ctx, PID, g->i32),
                 first1 = tl_cpu_load_word(g, g->ctx, PID1, g->i32),
                 count = tl_cpu_load_word(g, g->ctx, offsetof(tile_cpu_ctx, count), g->i32);
    g->pid_end = LLVMBuildAdd(g->b, first, count, "");
    g->program = begin_counting(g, "program", first, PID, &g->pid);
    g->nturns = g->plan->abreast->times;
    g->turns = TL_NEW_ARRAY(g->arena, TlCpuTurn, (size_t)g->nturns);
    for (int i = 0; i < g->nturns; i++) {
        TlCpuTurn *t = &g->turns[i];
        t->scalar = TL_NEW_ARRAY(g->arena, LLVMValueRef, n);
        t->view = TL_NEW_ARRAY(g->arena, TlGenView *, n);
        memcpy(t->scalar, g->scalar, sizeof *t->scalar * n);
        memcpy(t->view, g->view, sizeof(TlGenView *) * n);
        tl_map_init(&t->access, g->arena);
        t->pid1 = LLVMBuildAdd(g->b, first1, LLVMConstInt(g->i32, (unsigned)i, 0), "");
    }
    tl_cpu_take_turn(g, 0);
}

void tl_cpu_take_turn(TlCpuGen *g, int turn)
{
    TL_ASSERT(turn < g->nturns, "program %d of %d", turn, g->nturns);
    const TlCpuTurn *t = &g->turns[turn];
    g->turns[g->turn].access = g->access; /* which may have grown */
    g->turn = turn;
    g->scalar = t->scalar;
    g->view = t->view;
    g->access = t->access;
    g->pid1 = t->pid1;
}

void tl_cpu_run_single(TlCpuGen *g, LLVMValueRef single)
{
    LLVMValueRef count = field_at(g, offsetof(tile_cpu_ctx, count)),
                 was = LLVMBuildLoad2(g->b, g->i32, count, ""), args[2] = {g->ctx, g->params};
    LLVMBuildStore(g->b, LLVMConstInt(g->i32, (unsigned)g->plan->at_once, 0), count);
    LLVMBuildStore(g->b, LLVMConstInt(g->i32, (unsigned)g->nturns, 0),
                   field_at(g, offsetof(tile_cpu_ctx, rows)));
    LLVMBuildStore(g->b, g->turns[0].pid1, field_at(g, PID1));
    LLVMBuildCall2(g->b, LLVMGlobalGetValueType(single), single, args, 2, "");
    LLVMBuildStore(g->b, was, count);
}

void tl_cpu_end_abreast(TlCpuGen *g)
{
    end_counting(g, g->program, g->pid, g->pid_end, g->plan->at_once);
    tl_cpu_stream_end(g);
    LLVMBuildRetVoid(g->b);
}

/* Of those that run, the first ones of the grid, which load what is before the arrays. */
static LLVMValueRef programs_before(TlCpuGen *g, const Programs *p)
{
    LLVMValueRef first = LLVMConstInt(g->i32, (unsigned)g->plan->abreast->first, 0),
                 zero = LLVMConstInt(g->i32, 0, 0),
                 few = tl_gen_pick(&g->gen, LLVMIntULT, p->count[1], first, p->count[1], first),
                 is = LLVMBuildICmp(g->b, LLVMIntEQ, p->first[1], zero, "");
    return LLVMBuildSelect(g->b, is, few, zero, "");
}

void tl_cpu_call_abreast(TlCpuGen *g, const char *symbol, LLVMValueRef single, LLVMValueRef abreast)
{
    LLVMSetLinkage(single, LLVMInternalLinkage);
    begin_function(g, symbol);
    Programs p = programs_of_run(g), rest = p;
    LLVMValueRef times = LLVMConstInt(g->i32, (unsigned)g->plan->abreast->times, 0), row,
                 begin = p.first[1], count = p.count[1], args[2] = {g->ctx, g->params};
    if (g->plan->abreast->first) {
        Programs before = p;
        before.count[1] = programs_before(g, &p);
        call_programs(g, single, before, 1);
        begin = LLVMBuildAdd(g->b, begin, before.count[1], "");
        count = LLVMBuildSub(g->b, count, before.count[1], "");
    }
    LLVMValueRef left = LLVMBuildURem(g->b, count, times, ""),
                 whole = LLVMBuildSub(g->b, count, left, ""),
                 end = LLVMBuildAdd(g->b, begin, whole, ""),
                 any = LLVMBuildICmp(g->b, LLVMIntNE, end, begin, "");
    LLVMBasicBlockRef some = tl_gen_block(&g->gen, "some"), next = tl_gen_block(&g->gen, "rest");
    LLVMBuildCondBr(g->b, any, some, next);
    LLVMPositionBuilderAtEnd(g->b, some);
    set_counts(g, &p);
    LLVMBasicBlockRef block = begin_counting(g, "rows", begin, PID1, &row);
    LLVMBuildStore(g->b, p.first[0], field_at(g, PID));
    LLVMBuildCall2(g->b, LLVMGlobalGetValueType(abreast), abreast, args, 2, "");
    end_counting(g, block, row, end, g->plan->abreast->times);
    LLVMBuildBr(g->b, next);
    LLVMPositionBuilderAtEnd(g->b, next);
    rest.first[1] = end;
    rest.count[1] = left;
    call_programs(g, single, rest, 1);
    set_counts(g, &p);
    LLVMBuildRetVoid(g->b);
}

/* i1: is nothing of what is stored beyond the `count` programs that end there? And are they enough
 * for the vectors of several? */
static LLVMValueRef covers_stored(TlCpuGen *g, LLVMValueRef count, LLVMValueRef end)
{
    const TlNests *plan = g->plan;
    if (!plan->wide_stored.len)
        return LLVMConstInt(g->i1, 0, 0);
    LLVMValueRef least = LLVMConstInt(g->i32, (uint64_t)plan->wide_least, 0),
                 covers = LLVMBuildICmp(g->b, LLVMIntUGE, count, least, ""),
                 step = tl_gen_int(&g->gen, plan->wide_step),
                 to = LLVMBuildMul(g->b, LLVMBuildZExt(g->b, end, g->i64, ""), step, "");
    read_slots_again(g);
    tl_gen_params(&g->gen);
    for (uint32_t i = 0; i < plan->wide_stored.len; i++) {
        const TlGenView *v = g->view[plan->wide_stored.data[i]->id];
        LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntSLE, v->extent[v->rank - 1], to, "");
        covers = LLVMBuildAnd(g->b, covers, inside, "");
    }
    return covers;
}

/* Of `count` programs, those that run so many at once: with `more`, beyond the last one. */
static LLVMValueRef programs_that_fit(TlCpuGen *g, LLVMValueRef count, LLVMValueRef more)
{
    unsigned times = (unsigned)g->plan->wide->at_once;
    LLVMValueRef n = LLVMConstInt(g->i32, times, 0),
                 all_but_one = LLVMConstInt(g->i32, times - 1, 0),
                 zero = LLVMConstInt(g->i32, 0, 0),
                 up = LLVMBuildSelect(g->b, more, all_but_one, zero, ""),
                 rounded = LLVMBuildAdd(g->b, count, up, "");
    return LLVMBuildMul(g->b, LLVMBuildUDiv(g->b, rounded, n, ""), n, "");
}

/* Begins a loop over rows, where some programs of each are left that run one by one: as rows lie in
 * memory, so are they run; else all of them are one. *out_by: rows at a time. */
static LLVMBasicBlockRef begin_rows(TlCpuGen *g, const Programs *p, LLVMValueRef n,
                                    LLVMValueRef left, Programs *part, LLVMValueRef *out_by)
{
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0), one = LLVMConstInt(g->i32, 1, 0),
                 some = LLVMBuildICmp(g->b, LLVMIntNE, n, zero, ""),
                 others = LLVMBuildICmp(g->b, LLVMIntNE, left, zero, ""),
                 both = LLVMBuildAnd(g->b, some, others, "");
    *out_by = part->count[1] = LLVMBuildSelect(g->b, both, one, p->count[1], "");
    return begin_counting(g, "rows", p->first[1], PID1, &part->first[1]);
}

void tl_cpu_call_several(TlCpuGen *g, const char *symbol, LLVMValueRef each, LLVMValueRef several)
{
    const TlNests *plan = g->plan;
    TL_ASSERT(plan->wide && plan->wide->at_once > 1, "'%s' runs one by one", symbol);
    int axis = plan->wide->at_once_axis;
    LLVMSetLinkage(each, LLVMInternalLinkage);
    LLVMSetLinkage(several, LLVMInternalLinkage);
    begin_function(g, symbol);
    Programs p = programs_of_run(g), part = p;
    LLVMValueRef times = LLVMConstInt(g->i32, (unsigned)plan->wide->at_once, 0),
                 most = LLVMConstInt(g->i32, (uint64_t)plan->wide_most, 0),
                 zero = LLVMConstInt(g->i32, 0, 0), count = p.count[axis],
                 end = LLVMBuildAdd(g->b, p.first[axis], count, ""),
                 fit = programs_that_fit(g, count, covers_stored(g, count, end)),
                 known = LLVMBuildICmp(g->b, LLVMIntULT, end, most, ""),
                 n = LLVMBuildSelect(g->b, known, fit, zero, ""),
                 left = tl_gen_pick(&g->gen, LLVMIntULE, n, count, LLVMBuildSub(g->b, count, n, ""),
                                    zero);
    bool by_rows = axis == 0 && !plan->wide->abreast &&
                   (plan->why_wide == TL_NEST_WIDE_ENDS || plan->why_wide == TL_NEST_WIDE_PLACES);
    LLVMValueRef by = NULL;
    LLVMBasicBlockRef rows = by_rows ? begin_rows(g, &p, n, left, &part, &by) : NULL;
    part.count[axis] = n;
    call_programs(g, several, part, axis);
    part.first[axis] = LLVMBuildAdd(g->b, p.first[axis], n, "");
    if (plan->wide_again) {
        LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, n, zero, ""),
                     any = LLVMBuildICmp(g->b, LLVMIntNE, left, zero, ""),
                     again = LLVMBuildAnd(g->b, some, any, "");
        Programs last = part;
        last.first[axis] = LLVMBuildSub(g->b, end, times, "");
        last.count[axis] = LLVMBuildSelect(g->b, again, times, zero, "");
        left = LLVMBuildSelect(g->b, again, zero, left, "");
        call_programs(g, several, last, axis);
    }
    part.count[axis] = left;
    call_programs(g, each, part, axis);
    if (by_rows)
        end_counting_by(g, rows, part.first[1], LLVMBuildAdd(g->b, p.first[1], p.count[1], ""), by);
    set_counts(g, &p);
    LLVMBuildRetVoid(g->b);
}

/* ---- whole rows as one axis ---- */

/* i1: are the view's rows of so many elements, and one after the other, or maybe apart? */
static LLVMValueRef has_whole_rows(TlCpuGen *g, const TlGenView *v, int64_t row, bool apart)
{
    int last = v->rank - 1;
    LLVMValueRef n = tl_gen_int(&g->gen, row),
                 has = LLVMBuildICmp(g->b, LLVMIntEQ, v->extent[last], n, "");
    for (int d = apart ? 0 : last; d-- > 0;) {
        LLVMValueRef whole = LLVMBuildMul(g->b, v->extent[d + 1], v->stride[d + 1], ""),
                     is = LLVMBuildICmp(g->b, LLVMIntEQ, v->stride[d], whole, "");
        has = LLVMBuildAnd(g->b, has, is, "");
    }
    return has;
}

static LLVMValueRef may_run_folded(TlCpuGen *g, const TlNestFold *f)
{
    LLVMValueRef may = LLVMConstInt(g->i1, 1, 0), one = LLVMConstInt(g->i32, 1, 0);
    for (uint32_t axis = 0; f->alone >> axis; axis++) {
        if (!(f->alone >> axis & 1))
            continue;
        uint64_t at = offsetof(tile_cpu_ctx, npid) + sizeof(int32_t) * axis;
        LLVMValueRef programs = tl_cpu_load_word(g, g->ctx, at, g->i32);
        may = LLVMBuildAnd(g->b, may, LLVMBuildICmp(g->b, LLVMIntEQ, programs, one, ""), "");
    }
    read_slots_again(g);
    tl_gen_params(&g->gen);
    for (uint32_t i = 0; i < f->views.len; i++) {
        const TlGenView *v = g->view[f->views.data[i]->id];
        may = LLVMBuildAnd(g->b, may, has_whole_rows(g, v, f->row, f->apart), "");
    }
    for (uint32_t i = 0; i < f->dense.len; i++) {
        const TlGenView *v = g->view[f->dense.data[i]->id];
        LLVMValueRef by = v->stride[v->rank - 1],
                     is = LLVMBuildICmp(g->b, LLVMIntEQ, by, tl_gen_int(&g->gen, 1), "");
        may = LLVMBuildAnd(g->b, may, is, "");
    }
    return may;
}

void tl_cpu_call_folded(TlCpuGen *g, const TlNestFold *fold, const char *symbol,
                        LLVMValueRef as_it_is, LLVMValueRef folded)
{
    LLVMValueRef codes[2] = {folded, as_it_is}, args[2];
    begin_function(g, symbol);
    LLVMValueRef may = may_run_folded(g, fold);
    LLVMBasicBlockRef blocks[2] = {tl_gen_block(&g->gen, "folded"), tl_gen_block(&g->gen, "rows")};
    args[0] = g->ctx;
    args[1] = g->params;
    LLVMBuildCondBr(g->b, may, blocks[0], blocks[1]);
    for (int i = 0; i < 2; i++) {
        LLVMSetLinkage(codes[i], LLVMInternalLinkage);
        LLVMPositionBuilderAtEnd(g->b, blocks[i]);
        LLVMBuildCall2(g->b, LLVMGlobalGetValueType(codes[i]), codes[i], args, 2, "");
        LLVMBuildRetVoid(g->b);
    }
}
