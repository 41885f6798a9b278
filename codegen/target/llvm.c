/* LLVM through its C API. Set-up of LLVM's targets is process-wide and done once;
 * everything else belongs to one TlLlvm. The triple, data layout and target machine are set
 * before any pass runs. */
#include "codegen/target/llvm.h"
#include "codegen/target/worker.h"
#include "runtime/contract/cpu_state.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

static void on_fatal(const char *reason)
{
    if (tl_guard_current())
        tl_fault(TL_FAULT_LLVM, "LLVM: %s", reason);
    /* else no compilation of ours is running: LLVM goes on to end the host, as it would without
     * us */
}

static void initialise(void)
{
    tl_llvm_watch_containers();
#ifdef __aarch64__
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
#else
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
#endif
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    tl_llvm_initialise_more();
    LLVMInstallFatalErrorHandler(on_fatal);
}

/* Ends with what LLVM said, which it frees. NULL: there was no memory to say it. */
static _Noreturn void fail(TlFault fault, const char *where, char *text)
{
    char copy[400];
    if (!text)
        tl_fault(TL_FAULT_LLVM_MEMORY, "out of memory in LLVM");
    strncpy(copy, text, sizeof copy - 1);
    copy[sizeof copy - 1] = 0;
    LLVMDisposeMessage(text);
    tl_fault(fault, "%s: %s", where, copy);
}

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    (void)user;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    fail(TL_FAULT_LLVM, "LLVM", LLVMGetDiagInfoDescription(info));
}

/* LLVM gives no text where strdup found no memory. */
static char *take(TlArena *arena, char *message)
{
    if (!message)
        tl_fault(TL_FAULT_LLVM_MEMORY, "out of memory in LLVM");
    char *copy = tl_strndup(arena, message, strlen(message));
    LLVMDisposeMessage(message);
    return copy;
}

const char *tl_llvm_host_triple(TlArena *arena)
{
    return take(arena, LLVMGetDefaultTargetTriple());
}

/* Is "+name" in the list? */
static bool has_feature(const char *features, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = features; (p = strstr(p, name)); p += n)
        if (p > features && p[-1] == '+' && (p[n] == ',' || !p[n]))
            return true;
    return false;
}

static const struct {
    const char *name;
    uint32_t leaf;
    int bit;
    uint64_t state;
} ROWS[] = {
#define CPU_FEATURE(arch, name, leaf, sub, reg, bit, state) {name, leaf, bit, state},
#include "runtime/contract/cpu_level.def"
};
enum { NROWS = sizeof ROWS / sizeof *ROWS };

#if defined(__aarch64__)
/* LLVM 19 knows few of the names that Linux has for features; asked directly, compiler and runtime
 * see the same. */
static uint64_t rows_of_host(TlArena *arena)
{
    uint64_t rows = 0;
    (void)arena;
    for (int i = 0; i < NROWS; i++) {
        bool is_arm = ROWS[i].leaf == AT_HWCAP || ROWS[i].leaf == AT_HWCAP2;
        if (is_arm && getauxval(ROWS[i].leaf) >> ROWS[i].bit & 1)
            rows |= UINT64_C(1) << i;
    }
    return rows;
}
#else
static uint64_t rows_of_host(TlArena *arena)
{
    const char *all = take(arena, LLVMGetHostCPUFeatures());
    uint64_t rows = 0, refused = TL_CPU_ASKED_STATE; /* LLVM does not ask; nor do we, without AMX */
    if (has_feature(all, "amx-tile"))
        refused &= ~tl_cpu_permitted(TL_CPU_ASKED_STATE);
    /* LLVM 19 goes by what the CPU has, though the system may not keep it */
    refused |= TL_CPU_APX_STATE & ~tl_cpu_kept_state();
    for (int i = 0; i < NROWS; i++)
        if (!(ROWS[i].state & refused) && has_feature(all, tl_llvm_host_name(ROWS[i].name)))
            rows |= UINT64_C(1) << i;
    return rows;
}
#endif

const char *tl_llvm_host_features(TlArena *arena)
{
    uint64_t rows = rows_of_host(arena);
    TlSbuf s;
    tl_sbuf_init(&s, arena);
    tl_sbuf_put(&s, "", 0);
    for (int i = 0; i < NROWS; i++)
        if (rows >> i & 1)
            tl_sbuf_putf(&s, "%s+%s", s.len ? "," : "", ROWS[i].name);
    return s.text;
}

static LLVMTargetMachineRef make_machine(const TlLlvm *l, const char *triple, int opt_level)
{
    LLVMTargetRef target;
    char *error = NULL;
    if (LLVMGetTargetFromTriple(triple, &target, &error))
        fail(TL_FAULT_LLVM, "LLVM", error);
    static const LLVMCodeGenOptLevel LEVELS[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess,
                                                 LLVMCodeGenLevelDefault, LLVMCodeGenLevelDefault};
    /* ptxas optimises; LLVM's own passes before selection change nothing of what it makes */
    if (!strncmp(triple, "nvptx", 5) && opt_level > 1)
        opt_level = 1;
    LLVMTargetMachineOptionsRef o = LLVMCreateTargetMachineOptions();
    LLVMTargetMachineOptionsSetCPU(o, l->cpu);
    LLVMTargetMachineOptionsSetFeatures(o, l->features);
    LLVMTargetMachineOptionsSetCodeGenOptLevel(o, LEVELS[opt_level < 0   ? 0
                                                         : opt_level > 3 ? 3
                                                                         : opt_level]);
    LLVMTargetMachineOptionsSetRelocMode(o, LLVMRelocPIC);
    LLVMTargetMachineOptionsSetCodeModel(o, LLVMCodeModelDefault);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachineWithOptions(target, triple, o);
    LLVMDisposeTargetMachineOptions(o);
    TL_ASSERT(machine, "no target machine for %s", triple);
    return machine;
}

static void set_machine(TlLlvm *l, const char *triple, const char *cpu, const char *features,
                        int opt_level)
{
    bool native = !*cpu;
    if (!*triple)
        triple = tl_llvm_host_triple(l->arena);
    /* by name a CPU has features that no row has; only its timing is taken from it */
    l->cpu = !native ? cpu : strncmp(triple, "x86_64", 6) ? "generic" : "x86-64";
    l->tune = native ? take(l->arena, LLVMGetHostCPUName()) : NULL;
    l->features =
        native ? tl_llvm_host_features(l->arena) : tl_llvm_features(l->arena, cpu, features);
    l->machine = make_machine(l, triple, opt_level);
    LLVMTargetDataRef data = LLVMCreateTargetDataLayout(l->machine);
    LLVMSetModuleDataLayout(l->module, data);
    LLVMDisposeTargetData(data);
    LLVMSetTarget(l->module, triple);
}

static void open(TlLlvm *l, TlArena *arena, const char *name, const char *triple, const char *cpu,
                 const char *features, int opt_level)
{
    l->arena = arena;
    l->context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(l->context, on_diagnostic, NULL);
    l->module = LLVMModuleCreateWithNameInContext(name, l->context);
    l->builder = LLVMCreateBuilderInContext(l->context);
    set_machine(l, triple, cpu, features, opt_level);
}

/* ---- once in a process ---- */

static void run_pipeline(TlLlvm *l, const char *passes);

/* A function that returns, and one that calls it: LLVM 22 makes what instruction selection keeps
 * when it selects, and what passes do when they run: their timers, and of the first call a table of
 * libraries' functions. */
static void add_nothing(TlLlvm *l)
{
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(l->context), NULL, 0, 0);
    LLVMValueRef nothing = NULL;
    for (int i = 0; i < 2; i++) {
        LLVMValueRef f = LLVMAddFunction(l->module, i ? "once" : "nothing", type);
        LLVMPositionBuilderAtEnd(l->builder, LLVMAppendBasicBlockInContext(l->context, f, ""));
        if (nothing)
            LLVMBuildCall2(l->builder, type, nothing, NULL, 0, "");
        LLVMBuildRetVoid(l->builder);
        nothing = f;
    }
    run_pipeline(l, "function(instcombine<no-verify-fixpoint>)");
}

/* Compiles next to nothing, so that LLVM makes what it keeps for this family of targets. */
static void warm_up(TlArena *arena, const char *triple, const char *cpu, const char *features)
{
    TlLlvm l = {0};
    char *error = NULL;
    LLVMMemoryBufferRef code;
    open(&l, arena, "", triple, cpu, features, 3);
    if (tl_llvm_version() >= 22)
        add_nothing(&l);
    if (LLVMTargetMachineEmitToMemoryBuffer(l.machine, l.module, LLVMAssemblyFile, &error, &code))
        fail(TL_FAULT_LLVM, "LLVM", error);
    LLVMDisposeMemoryBuffer(code);
    tl_llvm_close(&l);
}

static TlLlvmFamily family_of(const char *triple)
{
    return !strncmp(triple, "nvptx", 5)    ? TL_LLVM_NVPTX
           : !strncmp(triple, "amdgcn", 6) ? TL_LLVM_AMD
                                           : TL_LLVM_HOST;
}

TlLlvmFamily tl_llvm_family(const TlLlvm *l)
{
    return family_of(LLVMGetTarget(l->module));
}

/* false: LLVM ran out of memory there, and may wait for itself if it is used again. */
static bool set_up(TlArena *arena, const char *triple, const char *cpu, const char *features)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool done[TL_LLVM_FAMILIES], is_initialised, lost;
    TlGuard g;
    pthread_mutex_lock(&lock);
    if (!lost && !done[family_of(triple)]) {
        lost = true; /* until the end is reached */
        if (TL_GUARD(&g)) {
            if (!is_initialised)
                initialise();
            is_initialised = true;
            warm_up(arena, triple, cpu, features);
            done[family_of(triple)] = true;
            lost = false;
            tl_guard_pop(&g);
        }
    }
    bool ok = !lost;
    pthread_mutex_unlock(&lock);
    return ok;
}

void tl_llvm_open(TlLlvm *l, TlArena *arena, const char *name, const char *triple, const char *cpu,
                  const char *features, int opt_level)
{
    memset(l, 0, sizeof *l);
    tl_llvm_watch_memory();
    if (!set_up(arena, triple, cpu, features))
        tl_fault(TL_FAULT_MEMORY, "out of memory: LLVM found none when it was set up, and cannot "
                                  "be used in this process any more");
    open(l, arena, name, triple, cpu, features, opt_level);
}

void tl_llvm_retarget(TlLlvm *l, const char *triple, const char *cpu, const char *features)
{
    LLVMDisposeTargetMachine(l->machine);
    l->machine = NULL;
    set_machine(l, triple, cpu, features, 0);
}

static unsigned length_of(LLVMBasicBlockRef block)
{
    unsigned n = 0;
    for (LLVMValueRef x = LLVMGetFirstInstruction(block); x; x = LLVMGetNextInstruction(x))
        n++;
    return n;
}

/* Is it of a variable, which LLVM's first pass makes a value? */
static bool loads_variable(LLVMValueRef load)
{
    LLVMValueRef p = LLVMGetOperand(load, 0);
    while (LLVMIsAGetElementPtrInst(p))
        p = LLVMGetOperand(p, 0);
    return LLVMIsAAllocaInst(p) != NULL;
}

/* The length of a function, its loads from memory, and how deep its loops are nested. */
typedef struct Size {
    unsigned instructions, blocks, loads, depth;
} Size;

static Size size_of(LLVMValueRef function)
{
    Size size = {0};
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b), size.blocks++)
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x)) {
            size.instructions++;
            size.loads += LLVMIsALoadInst(x) && !loads_variable(x);
        }
    return size;
}

static const char *triple_of(const TlLlvm *l)
{
    return take(l->arena, LLVMGetTargetMachineTriple(l->machine));
}

/* Functions up to this length are optimised at leisure; without loops, up to so many instructions:
 * ptxas optimises what LLVM does not, but for addresses in loops. */
static Size most(const TlLlvm *l, bool has_loops)
{
    static const Size MOST[TL_LLVM_FAMILIES] = {
        [TL_LLVM_NVPTX] = {1 << 17, 1 << 12, UINT_MAX, UINT_MAX},
        [TL_LLVM_AMD] = {1 << 15, 1 << 11, UINT_MAX, 32},
        [TL_LLVM_HOST] = {1 << 16, 1 << 13, 1 << 11, UINT_MAX},
    };
    enum { STRAIGHT = 1 << 15 };
    Size size = MOST[tl_llvm_family(l)];
    if (!has_loops)
        size.instructions = STRAIGHT;
    return size;
}

void tl_llvm_be_quick(TlLlvm *l)
{
    if (l->quick)
        return;
    const char *triple = triple_of(l);
    LLVMDisposeTargetMachine(l->machine);
    l->machine = NULL;
    l->machine = make_machine(l, triple, 0);
    /* GlobalISel, which LLVM takes for aarch64 then, has one type for f16 and bf16 in LLVM 19: it
     * makes bfcvt of both. Without it code is shorter (0.86), and made in 0.6 of the time. */
    LLVMSetTargetMachineGlobalISel(l->machine, 0);
    l->quick = true;
}

/* Instructions of a function that take some ten seconds, at worst, without optimisation. */
enum { MOST_QUICK = 1 << 18 };

bool tl_llvm_watch(TlLlvm *l, TlDiags *diags, TlLoc loc, const char *name, LLVMValueRef function,
                   unsigned depth, const char *hint)
{
    Size size = size_of(function), limit = most(l, depth > 0);
    if (size.instructions > MOST_QUICK) {
        tl_diag(diags, loc, TL_E0913, name, size.instructions, MOST_QUICK, hint);
        return false;
    }
    if (size.instructions > limit.instructions || size.blocks > limit.blocks ||
        size.loads > limit.loads)
        tl_diag(diags, loc, TL_W0901, name,
                tl_format(l->arena, "becomes %u instructions with %u loads in %u blocks",
                          size.instructions, size.loads, size.blocks),
                hint);
    else if (depth > limit.depth)
        tl_diag(diags, loc, TL_W0901, name, tl_format(l->arena, "has loops nested %u deep", depth),
                tl_format(l->arena, "up to %u are optimised", limit.depth));
    else
        return true;
    tl_llvm_be_quick(l);
    return true;
}

void tl_llvm_close(TlLlvm *l)
{
    if (l->di)
        LLVMDisposeDIBuilder(l->di);
    if (l->builder)
        LLVMDisposeBuilder(l->builder);
    if (l->module)
        LLVMDisposeModule(l->module);
    if (l->machine)
        LLVMDisposeTargetMachine(l->machine);
    if (l->context)
        LLVMContextDispose(l->context);
    memset(l, 0, sizeof *l);
}

void tl_llvm_abandon(TlLlvm *l, TlFault fault)
{
    if (!tl_fault_is_llvm(fault))
        tl_llvm_close(l);
}

void tl_llvm_link_text(TlLlvm *l, const char *text, size_t size)
{
    char *error = NULL;
    size_t n;
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, size, "prelude");
    LLVMModuleRef prelude;
    if (!buffer)
        fail(TL_FAULT_LLVM_MEMORY, "LLVM", NULL);
    if (LLVMParseIRInContext(l->context, buffer, &prelude, &error))
        fail(TL_FAULT_INTERNAL, "prelude", error);
    LLVMSetModuleDataLayout(prelude, LLVMGetModuleDataLayout(l->module));
    LLVMSetTarget(prelude, LLVMGetTarget(l->module));
    LLVMLinkModules2(l->module, prelude); /* takes it; trouble goes to on_diagnostic */
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && !strncmp(LLVMGetValueName2(f, &n), "tl.", 3))
            LLVMSetLinkage(f, LLVMInternalLinkage);
}

void tl_llvm_verify(TlLlvm *l)
{
    char *error = NULL;
    if (LLVMVerifyModule(l->module, LLVMReturnStatusAction, &error))
        fail(TL_FAULT_INTERNAL, "invalid LLVM IR", error);
    LLVMDisposeMessage(error);
}

/* A run of passes, on a stack of its own: LLVM keeps a list of objects that lie there (TimerGroup),
 * for all threads, so the stack of a run that ended by a fault has to stay. */
typedef struct Run {
    TlLlvm *l;
    const char *passes;
    TlGuard guard;
    TlWorker worker;
} Run;

static void run_passes(TlLlvm *l, const char *passes)
{
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(l->module, passes, l->machine, o);
    LLVMDisposePassBuilderOptions(o);
    if (error) {
        char *text = LLVMGetErrorMessage(error); /* of operator new: never NULL */
        char copy[400];
        strncpy(copy, text, sizeof copy - 1);
        copy[sizeof copy - 1] = 0;
        LLVMDisposeErrorMessage(text);
        tl_fault(TL_FAULT_INTERNAL, "LLVM passes: %s", copy);
    }
}

static void run_guarded(void *run)
{
    Run *r = run;
    if (TL_GUARD(&r->guard)) {
        run_passes(r->l, r->passes);
        tl_guard_pop(&r->guard);
    }
    r->worker.keeps_stack = tl_fault_is_llvm(r->guard.fault);
}

static void run_pipeline(TlLlvm *l, const char *passes)
{
    TlSpanMark mark = tl_trace_begin(l->trace, "LLVM", NULL, "%s", passes);
    Run r = {.l = l, .passes = passes};
    tl_worker_start(&r.worker, run_guarded, &r);
    if (!r.worker.is_thread)
        tl_fault(TL_FAULT_MEMORY, "out of memory: there is no room for a stack");
    tl_worker_join(&r.worker);
    if (r.guard.fault)
        tl_fault(r.guard.fault, "%s", r.guard.text);
    tl_trace_end(l->trace, mark);
}

/* The length of the first pass of a list, with what stands in its brackets. */
static size_t pass_length(const char *passes)
{
    size_t n = 0;
    for (int depth = 0; passes[n] && (depth || passes[n] != ','); n++)
        depth += (passes[n] == '(' || passes[n] == '<') - (passes[n] == ')' || passes[n] == '>');
    return n;
}

/* Each pass of the pipeline by itself, so that each has its time. What function(...) holds is run
 * over all functions before what follows it: such passes look at one function only, so the code
 * stays the same. */
static void run_each(TlLlvm *l, const char *passes)
{
    static const char FUNCTION[] = "function(";
    size_t head = sizeof FUNCTION - 1;
    for (size_t n; *passes; passes += n + (passes[n] == ',')) {
        n = pass_length(passes);
        char *pass = tl_strndup(l->arena, passes, n);
        if (strncmp(pass, FUNCTION, head) != 0) {
            run_pipeline(l, pass);
            continue;
        }
        pass[n - 1] = 0; /* its bracket */
        for (char *inner = pass + head; *inner;) {
            size_t k = pass_length(inner);
            run_pipeline(l, tl_format(l->arena, "function(%.*s)", (int)k, inner));
            inner += k + (inner[k] == ',');
        }
    }
}

void tl_llvm_run(TlLlvm *l, const char *passes)
{
    TlSpanMark mark = tl_trace_begin(l->trace, "LLVM", NULL, "LLVM passes");
    (l->trace ? run_each : run_pipeline)(l, passes);
    tl_trace_end(l->trace, mark);
}

/* ---- inline asm by itself ---- */

typedef struct Complaint {
    TlArena *arena;
    const char *text; /* NULL: none */
} Complaint;

static void on_complaint(LLVMDiagnosticInfoRef info, void *user)
{
    Complaint *c = user;
    if (LLVMGetDiagInfoSeverity(info) == LLVMDSError && !c->text)
        c->text = take(c->arena, LLVMGetDiagInfoDescription(info));
}

/* A scalar type, in another context. */
static LLVMTypeRef type_in(LLVMContextRef c, LLVMTypeRef t)
{
    switch (LLVMGetTypeKind(t)) {
    case LLVMFloatTypeKind: return LLVMFloatTypeInContext(c);
    case LLVMDoubleTypeKind: return LLVMDoubleTypeInContext(c);
    default: return LLVMIntTypeInContext(c, LLVMGetIntTypeWidth(t));
    }
}

/* A function with the asm alone, on any operands. */
static LLVMModuleRef asm_module(const TlLlvm *l, LLVMContextRef c, const char *text,
                                size_t text_size, const char *constraints,
                                size_t constraints_size, LLVMTypeRef type)
{
    LLVMModuleRef m = LLVMModuleCreateWithNameInContext("asm", c);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(c);
    unsigned n = LLVMCountParamTypes(type);
    LLVMTypeRef *types = TL_NEW_ARRAY(l->arena, LLVMTypeRef, n + 1);
    LLVMValueRef *args = TL_NEW_ARRAY(l->arena, LLVMValueRef, n + 1);
    LLVMGetParamTypes(type, types);
    for (unsigned i = 0; i < n; i++) {
        types[i] = type_in(c, types[i]);
        args[i] = LLVMGetPoison(types[i]);
    }
    LLVMSetTarget(m, LLVMGetTarget(l->module));
    LLVMSetModuleDataLayout(m, LLVMGetModuleDataLayout(l->module));
    LLVMTypeRef copy = LLVMFunctionType(type_in(c, LLVMGetReturnType(type)), types, n, 0),
                none = LLVMFunctionType(LLVMVoidTypeInContext(c), NULL, 0, 0);
    LLVMValueRef f = LLVMAddFunction(m, "f", none),
                 code = LLVMGetInlineAsm(copy, text, text_size, constraints, constraints_size, 1, 0,
                                         LLVMInlineAsmDialectATT, 0);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(c, f, ""));
    LLVMBuildCall2(b, copy, code, args, n, "");
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
    return m;
}

const char *tl_llvm_asm_error(const TlLlvm *l, const char *text, size_t text_size,
                              const char *constraints, size_t constraints_size, LLVMTypeRef type)
{
    Complaint complaint = {l->arena, NULL};
    char *error = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    LLVMContextRef c = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(c, on_complaint, &complaint);
    LLVMModuleRef m =
        asm_module(l, c, text, text_size, constraints, constraints_size, type);
    if (LLVMTargetMachineEmitToMemoryBuffer(l->machine, m, LLVMObjectFile, &error, &buffer))
        complaint.text = take(l->arena, error);
    else
        LLVMDisposeMemoryBuffer(buffer);
    LLVMDisposeModule(m);
    LLVMContextDispose(c);
    return complaint.text;
}

/* ---- blocks ---- */

/* Branches to one block go to another. */
static void retarget(LLVMBasicBlockRef from, LLVMBasicBlockRef to)
{
    for (LLVMUseRef use; (use = LLVMGetFirstUse(LLVMBasicBlockAsValue(from)));) {
        LLVMValueRef branch = LLVMGetUser(use);
        for (unsigned i = 0; i < LLVMGetNumSuccessors(branch); i++)
            if (LLVMGetSuccessor(branch, i) == from)
                LLVMSetSuccessor(branch, i, to);
    }
}

/* How many of a block's first instructions may not be parted: phis, and an entry block's frame. */
static unsigned head_of(LLVMBasicBlockRef block)
{
    unsigned head = 0, n = 0;
    for (LLVMValueRef x = LLVMGetFirstInstruction(block); x; x = LLVMGetNextInstruction(x), n++)
        if (LLVMIsAPHINode(x) || LLVMIsAAllocaInst(x))
            head = n + 1;
    return head;
}

LLVMBasicBlockRef tl_llvm_part(TlLlvm *l, LLVMBasicBlockRef block, unsigned n)
{
    LLVMBasicBlockRef first = LLVMInsertBasicBlockInContext(l->context, block, "");
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(l->context);
    retarget(block, first);
    LLVMPositionBuilderAtEnd(builder, first);
    while (n--) {
        LLVMValueRef x = LLVMGetFirstInstruction(block);
        LLVMInstructionRemoveFromParent(x);
        LLVMInsertIntoBuilder(builder, x);
    }
    LLVMBuildBr(builder, block);
    LLVMDisposeBuilder(builder);
    return first;
}

/* CodeGenPrepare appends a block to the only one before it, unless its address is taken. */
static void keep(LLVMValueRef function, LLVMBasicBlockRef block)
{
    LLVMBlockAddress(function, block);
}

void tl_llvm_part_blocks(TlLlvm *l, unsigned most)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
            unsigned length = length_of(b), head = length > most ? head_of(b) : 0, parts = 0;
            for (unsigned n = head > most ? head : most; length > n; length -= n, n = most) {
                LLVMBasicBlockRef first = tl_llvm_part(l, b, n);
                if (parts++)
                    keep(f, first);
            }
            if (parts)
                keep(f, b);
        }
}

void *tl_llvm_emit(TlLlvm *l, TlArena *arena, bool object, size_t *out_size)
{
    char *error = NULL;
    LLVMMemoryBufferRef buffer;
    TlSpanMark mark = tl_trace_begin(l->trace, "LLVM", NULL, "LLVM code generation");
    if (LLVMTargetMachineEmitToMemoryBuffer(
            l->machine, l->module, object ? LLVMObjectFile : LLVMAssemblyFile, &error, &buffer))
        fail(TL_FAULT_LLVM, "LLVM", error);
    if (!buffer)
        fail(TL_FAULT_LLVM_MEMORY, "LLVM", NULL);
    *out_size = LLVMGetBufferSize(buffer);
    void *bytes = tl_strndup(arena, LLVMGetBufferStart(buffer), *out_size);
    LLVMDisposeMemoryBuffer(buffer);
    tl_trace_end(l->trace, mark);
    return bytes;
}

char *tl_llvm_text(TlLlvm *l, TlArena *arena, size_t *out_size)
{
    char *text = take(arena, LLVMPrintModuleToString(l->module));
    *out_size = strlen(text);
    return text;
}

bool tl_llvm_has_feature(const TlLlvm *l, const char *feature)
{
    return has_feature(l->features, feature);
}

/* ---- attributes ---- */

static LLVMAttributeRef make_attribute(TlLlvm *l, const char *name, uint64_t value)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    TL_ASSERT(kind, "LLVM has no attribute '%s'", name);
    return LLVMCreateEnumAttribute(l->context, kind, value);
}

void tl_llvm_set_attribute(TlLlvm *l, LLVMValueRef f, unsigned index, const char *name,
                           uint64_t value)
{
    LLVMAddAttributeAtIndex(f, index, make_attribute(l, name, value));
}

void tl_llvm_set_byval(TlLlvm *l, LLVMValueRef f, unsigned param, unsigned bytes, unsigned align)
{
    static const char BYVAL[] = "byval";
    unsigned kind = LLVMGetEnumAttributeKindForName(BYVAL, sizeof BYVAL - 1);
    LLVMTypeRef type = LLVMArrayType2(LLVMInt8TypeInContext(l->context), bytes);
    LLVMAddAttributeAtIndex(f, param + 1, LLVMCreateTypeAttribute(l->context, kind, type));
    tl_llvm_set_attribute(l, f, param + 1, "align", align);
}

static unsigned range_kind(void)
{
    static const char RANGE[] = "range";
    return LLVMGetEnumAttributeKindForName(RANGE, sizeof RANGE - 1);
}

void tl_llvm_set_range(TlLlvm *l, LLVMValueRef f, unsigned param, uint64_t end)
{
    unsigned bits = LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetParam(f, param)));
    LLVMAddAttributeAtIndex(f, param + 1,
                            LLVMCreateConstantRangeAttribute(l->context, range_kind(), bits,
                                                             &(uint64_t){0}, &end));
}

bool tl_llvm_has_range(LLVMValueRef f, unsigned param)
{
    return LLVMGetEnumAttributeAtIndex(f, param + 1, range_kind()) != NULL;
}

void tl_llvm_set_text_attribute(TlLlvm *l, LLVMValueRef f, unsigned index, const char *name,
                                const char *value)
{
    TL_ASSERT(name && value, "an attribute without a name or text");
    LLVMAddAttributeAtIndex(f, index,
                            LLVMCreateStringAttribute(l->context, name, (unsigned)strlen(name),
                                                      value, (unsigned)strlen(value)));
}

void tl_llvm_set_metadata(TlLlvm *l, LLVMValueRef x, const char *kind, LLVMMetadataRef *operands,
                          unsigned n)
{
    TL_ASSERT(LLVMIsAInstruction(x), "'%s' of what is no instruction", kind);
    unsigned id = LLVMGetMDKindIDInContext(l->context, kind, (unsigned)strlen(kind));
    LLVMMetadataRef node = LLVMMDNodeInContext2(l->context, operands, n);
    LLVMSetMetadata(x, id, LLVMMetadataAsValue(l->context, node));
}

/* ---- instructions ---- */

void tl_llvm_mark_call(TlLlvm *l, LLVMValueRef call, const char *attribute)
{
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, make_attribute(l, attribute, 0));
}

LLVMValueRef tl_llvm_hide(LLVMBuilderRef b, LLVMValueRef x, const char *constraints)
{
    LLVMTypeRef t = LLVMTypeOf(x), type = LLVMFunctionType(t, &t, 1, 0);
    LLVMValueRef none = LLVMGetInlineAsm(type, "", 0, constraints, strlen(constraints), 0, 0,
                                         LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(b, type, none, &x, 1, "");
}

LLVMValueRef tl_llvm_copy(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x, const char *constraints)
{
    LLVMValueRef call = tl_llvm_hide(b, x, constraints);
    tl_llvm_mark_call(l, call, "memory"); /* none */
    return call;
}

bool tl_llvm_only_computes(LLVMValueRef x)
{
    switch (LLVMGetInstructionOpcode(x)) {
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem: return false;
    case LLVMICmp:
    case LLVMFCmp:
    case LLVMSelect:
    case LLVMGetElementPtr:
    case LLVMExtractValue:
    case LLVMExtractElement:
    case LLVMInsertElement:
    case LLVMShuffleVector:
    case LLVMFNeg: return true;
    default: return LLVMIsABinaryOperator(x) || LLVMIsACastInst(x);
    }
}

bool tl_llvm_is_call_of(LLVMValueRef x, const char *name)
{
    size_t n;
    return LLVMIsACallInst(x) && LLVMIsAFunction(LLVMGetCalledValue(x)) &&
           !strncmp(LLVMGetValueName2(LLVMGetCalledValue(x), &n), name, strlen(name));
}
