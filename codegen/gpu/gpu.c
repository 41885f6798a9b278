/* GPU targets: laid-out tile IR to the code of one module.
 *
 *   1 every function is lowered to one thread's code (simt.h), with the kernel's calling convention
 *   2 LLVM's middle end, with the GPU's triple, data layout and machine: what --emit=llvm shows,
 *     the same whether a GPU or the emulator is to run it
 *   3 leaves are expanded (leaves.h) for the GPU or for the emulator on this host
 *   4 emission: PTX text; an object linked to hsaco; a host object
 *
 * Kernels are called F_0, F_1, ... (PTX knows no dot in names). Shared memory is dynamic: a launch
 * gives tile_image_kernel.shared_bytes. */
#include <stdlib.h>
#include <string.h>

#include "codegen/gen/gen.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/hsaco.h"
#include "codegen/gpu/ptxas_limit.h"
#include "codegen/leaf/leaf_expand.h"
#include "codegen/simt/simt.h"
#include "codegen/target/host_code.h"

static void attribute(TlLlvm *l, LLVMValueRef f, const char *name, const char *value)
{
    tl_llvm_set_text_attribute(l, f, LLVMAttributeFunctionIndex, name, value);
}

static void read_maps_in_place(TlLlvm *l, LLVMValueRef f, const TlKernelCode *k)
{
    uint32_t *params = TL_NEW_ARRAY(l->arena, uint32_t, k->slots.len + 1), n = 0;
    for (uint32_t i = 0; i < k->slots.len; i++)
        if (k->slots.data[i].kind == TILE_SLOT_MAP)
            params[n++] = i + 1;
    tl_llvm_read_in_place(l, f, params, n);
}

/* The limit of registers per thread, as the target's tools count them; 0: none. CDNA has two files
 * of 256, vectors and accumulators, and the tools limit each of them separately. With fewer than
 * LEAST_REGISTERS registers in a file, not every instruction can be generated. */
static uint32_t most_registers(const TlTarget *target, const TlKernelCode *k)
{
    enum { LEAST_REGISTERS = 32 };
    uint32_t most = (uint32_t)target->registers, file = target->family->file,
             n = k->fn && k->fn->info ? (uint32_t)k->fn->info->maxreg : 0;
    if (n == 0)
        return 0;
    n = n < most ? n : most;
    n /= most > file ? most / file : 1;
    return n > LEAST_REGISTERS ? n : LEAST_REGISTERS;
}

static void set_nvptx_kernel(TlLlvm *l, LLVMValueRef f, const TlTarget *target,
                             const TlKernelCode *k)
{
    uint32_t maxreg = most_registers(target, k), blocks = 0;
    if (k->fn && !maxreg)
        blocks = tl_ptxas_limit(target, k->fn, k->threads, l->arena).blocks;
    TL_ASSERT(k->threads > 0 && k->threads <= 1024, "a block of %u threads", k->threads);
    /* No joining of accesses: they are wide. */
    tl_llvm_set_attribute(l, f, LLVMAttributeFunctionIndex, "noimplicitfloat", 0);
    tl_llvm_limit_kernel(l, f, TL_KERNEL_THREADS, k->threads);
    if (maxreg)
        tl_llvm_limit_kernel(l, f, TL_KERNEL_REGISTERS, maxreg);
    if (k->two_flows) /* or ptxas does not know how many registers there are */
        tl_llvm_limit_kernel(l, f, TL_KERNEL_BLOCKS, 1);
    else if (blocks)
        tl_llvm_limit_kernel(l, f, TL_KERNEL_BLOCKS, blocks);
}

static void set_amdgpu_kernel(TlLlvm *l, LLVMValueRef f, const TlTarget *target,
                              const TlKernelCode *k)
{
    uint32_t maxreg = most_registers(target, k), threads = k->threads;
    TL_ASSERT(threads > 0 && threads <= 1024, "a block of %u threads", threads);
    if (maxreg)
        attribute(l, f, "amdgpu-num-vgpr", tl_format(l->arena, "%u", maxreg));
    LLVMSetVisibility(f, LLVMProtectedVisibility);
    attribute(l, f, "amdgpu-flat-work-group-size", tl_format(l->arena, "%u,%u", threads, threads));
    attribute(l, f, "uniform-work-group-size", "true");
    attribute(l, f, "amdgpu-unsafe-fp-atomics", "true"); /* device memory is coarse-grained */
    attribute(l, f, "amdgpu-ieee", "false"); /* or operands of min and max are made quiet first */
}

/* The functions of a family: one row for each FAMILY_GPU. */
static const struct {
    void (*set_kernel)(TlLlvm *l, LLVMValueRef f, const TlTarget *target, const TlKernelCode *k);
    void (*expand)(TlLlvm *l);
} FUNCTIONS[TL_FAMILY_COUNT] = {
#define FAMILY_GPU(ID, ident) [TL_FAMILY_##ID] = {set_##ident##_kernel, tl_leaf_expand_##ident},
#include "codegen/target/family.def"
};

void tl_gpu_set_kernel(TlLlvm *l, const TlTarget *target, const TlKernelCode *k)
{
    LLVMValueRef f = LLVMGetNamedFunction(l->module, k->symbol);
    TL_ASSERT(f, "kernel '%s' was not made", k->symbol);
    for (uint32_t i = 0; i < k->slots.len; i++)
        if (k->slots.data[i].kind == TILE_SLOT_DEBUG)
            tl_leaf_mark_debug(l, f, i);
    read_maps_in_place(l, f, k);
    LLVMSetFunctionCallConv(f, target->family->convention);
    FUNCTIONS[target->family->id].set_kernel(l, f, target, k);
}

/* A launch may allow the kernel to start before the one ahead of it in the stream has ended
 * (TILE_LAUNCH_OVERLAP): then it waits for that end here, where it has accessed nothing yet, and
 * the next kernel may start likewise. In other launches both do nothing. */
static void wait_for_kernel_before(TlLlvm *l, LLVMValueRef f)
{
    static const char TEXT[] = "griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;",
                      MEMORY[] = "~{memory}";
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(l->context), NULL, 0, 0);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(f)));
    LLVMBuildCall2(b, type,
                   LLVMGetInlineAsm(type, TEXT, sizeof TEXT - 1, MEMORY, sizeof MEMORY - 1, 1, 0,
                                    LLVMInlineAsmDialectATT, 0),
                   NULL, 0, "");
    LLVMDisposeBuilder(b);
}

static bool starts_early(const TlCodegenOptions *options)
{
    return options->target->can & TL_CAN_OVERLAP && !options->emulate;
}

static void let_start_early(TlLlvm *l, const TlTarget *target)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && LLVMGetFunctionCallConv(f) == target->family->convention)
            wait_for_kernel_before(l, f);
}

bool tl_gpu_lower(TlLlvm *l, const TlFn *fn, uint32_t number, const TlCodegenOptions *options,
                  TlArena *arena, TlKernelCodes *kernels)
{
    TL_ASSERT(fn->body->warps > 0, "'%s' is not laid out", fn->name);
    TlKernelCode k = {.fn = fn,
                      .symbol = tl_format(arena, "%s_%u", fn->name, number),
                      .flags = options->check ? TILE_KERNEL_CHECKED : 0};
    TlTraceLane *trace = fn->module->ctx->trace;
    TlSpanMark mark = tl_trace_begin(trace, "codegen", k.symbol, "lower to LLVM");
    bool ok = tl_simt_lower(l, options, arena, fn, k.symbol, &k);
    tl_trace_end(trace, mark);
    if (!ok)
        return false;
    tl_gpu_set_kernel(l, options->target, &k);
    if (starts_early(options))
        k.flags |= TILE_KERNEL_WAITS;
    tl_vec_push(arena, kernels, k);
    return tl_llvm_watch(l, &fn->module->ctx->diags, fn->loc, fn->name,
                         LLVMGetNamedFunction(l->module, k.symbol), tl_gen_loop_depth(fn),
                         "loops, more warps or smaller tiles make it shorter");
}

void tl_gpu_debug_open(TlLlvm *l, const TlModule *m, const TlCodegenOptions *options)
{
    if (options->debug)
        tl_gen_debug_open(l, m, options->target->family->lines == TL_LINES_DIRECTIVES);
}

static bool lower(TlLlvm *l, TlModule *m, const TlCodegenOptions *options, TlArena *arena,
                  TlKernelCodes *kernels)
{
    bool ok = true;
    tl_gpu_debug_open(l, m, options);
    for (uint32_t i = 0; i < m->fns.len; i++)
        ok = tl_gpu_lower(l, m->fns.data[i], i, options, arena, kernels) && ok;
    tl_gen_debug_close(l);
    return ok;
}

/* Sets the version of the code object in the module: code of a generic name needs the first that
 * knows such. */
static void set_module(TlLlvm *l, const TlTarget *target)
{
    enum { GENERIC = 600 };
    static const char VERSION[] = "amdhsa_code_object_version";
    unsigned version = *tl_gpu_members(target->name) ? GENERIC : target->family->version;
    if (version)
        LLVMAddModuleFlag(
            l->module, LLVMModuleFlagBehaviorError, VERSION, strlen(VERSION),
            LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(l->context), version, 0)));
}

void tl_gpu_expand(TlLlvm *l, const TlCodegenOptions *options, TlKernelCodes *kernels)
{
    TlSpanMark mark = tl_trace_begin(l->trace, "codegen", NULL, "expand leaves");
    if (!(options->target->can & TL_CAN_BUFFER)) /* whose loads fill for nothing */
        tl_leaf_find_unseen(l);
    if (options->emulate) {
        tl_leaf_expand_emu(l, options->host ? options->host : tl_target_host(""));
        for (uint32_t i = 0; i < kernels->len; i++)
            kernels->data[i].symbol = tl_format(l->arena, "%s.entry", kernels->data[i].symbol);
    } else {
        FUNCTIONS[options->target->family->id].expand(l);
        if (starts_early(options))
            let_start_early(l, options->target);
    }
    tl_trace_end(l->trace, mark);
#ifndef NDEBUG /* valid IR is not expected to become invalid */
    tl_llvm_verify(l);
#endif
}

/* Where a thread could have both files of registers, LLVM keeps results of matrix instructions in
 * the one of accumulators, from which everything else must move them. So a kernel whose values fit
 * in as many registers as one file has gets no more; then two blocks fit on a compute unit, too. */
static void limit_to_file(TlLlvm *l, const TlTarget *target, LLVMValueRef f, unsigned words)
{
    enum { OTHERS = 40 };                          /* addresses, and what LLVM's order takes more */
    static const char LIMIT[] = "amdgpu-num-vgpr"; /* of each of the two files */
    unsigned file = target->family->file;
    if ((unsigned)target->registers > file && words + OTHERS <= file &&
        !LLVMGetStringAttributeAtIndex(f, LLVMAttributeFunctionIndex, LIMIT, sizeof LIMIT - 1))
        attribute(l, f, LIMIT, tl_format(l->arena, "%u", file / 2));
}

/* Kernels whose values LLVM's register allocator would place for very long get quick code. */
static void watch_registers(TlLlvm *l, const TlTarget *target, const TlKernelCodes *kernels)
{
    unsigned file = target->family->file, words;
    for (uint32_t i = 0; i < kernels->len; i++) {
        const TlKernelCode *k = &kernels->data[i];
        LLVMValueRef f = LLVMGetNamedFunction(l->module, k->symbol);
        bool crowded = !l->quick && tl_amd_is_crowded(l, f, file, &words);
        if (!l->quick)
            limit_to_file(l, target, f, words);
        if (!crowded)
            continue;
        tl_diag(&k->fn->module->ctx->diags, k->fn->loc, TL_W0901, k->fn->name,
                tl_format(l->arena, "keeps about %u words at once in %u registers", words, file),
                "more warps or smaller tiles take fewer of each thread");
        tl_llvm_be_quick(l);
    }
}

static void *emit_code(TlLlvm *l, const TlCodegenOptions *options, TlEmit emit, TlArena *arena,
                       const TlKernelCodes *kernels, size_t *out_size)
{
    TlCode form = tl_target_code(options->target, options->emulate);
    bool object = emit == TL_EMIT_OBJ && form != TL_CODE_PTX;
    bool sparing = options->opt_level > 0 && !options->emulate && !l->quick &&
                   options->target->family->by_llvm &&
                   tl_workaround_is_on(l, TL_WORKAROUND_AMD_SPARING);
    void *code = sparing ? tl_amd_emit_sparing(l, options->target, kernels, object, arena, out_size)
                         : tl_llvm_emit(l, arena, object, out_size);
    if (form == TL_CODE_PTX)
        code = tl_ptx_say_target(arena, options->target, code, out_size);
    if (object && form == TL_CODE_HSACO) {
        TlSpanMark mark = tl_trace_begin(l->trace, "codegen", NULL, "link");
        code = tl_hsaco_link(arena, code, *out_size, out_size);
        tl_trace_end(l->trace, mark);
    }
    if (object && form == TL_CODE_HOST)
        tl_host_check_closed(code, *out_size, "tl_emu_");
    return code;
}

void tl_gpu_middle(TlLlvm *l, const TlCodegenOptions *options)
{
    TL_ASSERT(tl_target_is_gpu(options->target), "%s is no GPU", options->target->name);
    set_module(l, options->target);
    tl_llvm_verify(l);
    if (options->opt_level > 0)
        tl_llvm_run(l, l->quick ? TL_LLVM_QUICK_PASSES : options->target->family->middle);
}

void *tl_gpu_emit(TlLlvm *l, const TlCodegenOptions *options, TlEmit emit, TlArena *arena,
                  TlKernelCodes *kernels, size_t *out_size)
{
    tl_gpu_middle(l, options);
    if (emit == TL_EMIT_LLVM)
        return tl_llvm_text(l, arena, out_size);
    tl_gpu_expand(l, options, kernels);
    if (options->opt_level > 0 && !options->emulate && options->target->family->by_llvm)
        watch_registers(l, options->target, kernels);
    if (options->opt_level > 0 && !options->emulate && !l->quick)
        tl_work_around(l, options->target->family->id, TL_WHEN_FULL_EMIT);
    return emit_code(l, options, emit, arena, kernels, out_size);
}

void *tl_gpu_compile(TlModule *m, const TlCodegenOptions *options, TlEmit emit, TlArena *arena,
                     TlKernelCodes *kernels, size_t *out_size)
{
    TL_ASSERT(tl_target_is_gpu(options->target) && kernels && out_size, "%s is no GPU",
              options->target->name);
    TlLlvm l = {0};
    TlGuard g;
    void *volatile code = NULL;
    bool ptx = tl_target_code(options->target, options->emulate) == TL_CODE_PTX;
    if (ptx && emit != TL_EMIT_LLVM && m->fns.len > 0)
        return tl_ptx_compile(m, options, arena, kernels, out_size);
    if (TL_GUARD(&g)) {
        tl_llvm_open(&l, arena, "kernels", options->target->family->triple,
                     tl_target_cpu(options->target), options->target->features, options->opt_level);
        l.trace = m->ctx->trace;
        l.gpu = options->target->name;
        l.skip = options->skip;
        if (lower(&l, m, options, arena, kernels))
            code = tl_gpu_emit(&l, options, emit, arena, kernels, out_size);
        tl_guard_pop(&g);
    }
    bool quick = l.quick || options->opt_level == 0;
    tl_llvm_abandon(&l, g.fault);
    if (g.fault)
        tl_fault(g.fault, "%s", g.text);
    for (uint32_t i = 0; i < kernels->len; i++) {
        kernels->data[i].quick = quick;
        kernels->data[i].code = code;
        kernels->data[i].ncode = *out_size;
    }
    return code;
}
