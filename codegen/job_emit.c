/* From a module that has been through its passes to what was asked for: IR text, code, an image. */
#include <string.h>

#include "codegen/gen/codegen.h"
#include "codegen/gpu/cubin.h"
#include "codegen/header.h"
#include "codegen/job.h"
#include "codegen/options.h"
#include "codegen/report/explain.h"
#include "codegen/report/usage.h"
#include "codegen/target/host_code.h"
#include "ir/form.h"
#include "passes/analysis/shared_life.h"

static void set_data(TlJob *j, const void *data, size_t size)
{
    tl_output_set(j->out, data, size);
}

tilec_status tl_job_emit_text(TlJob *j, TlSbuf *s)
{
    set_data(j, s->text ? s->text : "", s->len);
    return TILEC_OK;
}

/* The image, or for `obj` a host object that carries it under the name that the header uses. */
static tilec_status set_image(TlJob *j, const TlKernelCodes *kernels)
{
    size_t size;
    TlSpanMark mark = tl_trace_begin(j->ctx.trace, "codegen", NULL, "image");
    const TlTarget *cpu = j->host ? j->host : j->target;
    bool host = tl_target_code(j->target, j->emulate) == TL_CODE_HOST;
    void *image = tl_image_write(&j->scratch, &j->ctx, j->o->target,
                                 host ? tl_host_features(&j->scratch, cpu) : NULL, kernels, &size);
    if (j->stage == TL_STAGE_OBJ) {
        const char *name = tl_image_name(&j->scratch, j->o, j->ctx.diags.sources.data[0].path);
        image =
            tl_embed(name, tl_target_object_triple(j->o->target), image, size, &j->scratch, &size);
    }
    set_data(j, image, size);
    tl_trace_end(j->ctx.trace, mark);
    return TILEC_OK;
}

/* ref: the image carries each instance as tile IR text. */
static tilec_status emit_ref(TlJob *j)
{
    TlKernelCodes kernels = {0};
    for (uint32_t i = 0; i < j->module->fns.len; i++) {
        const TlFn *fn = j->module->fns.data[i];
        TlModule one = {.ctx = &j->ctx};
        tl_vec_push(&j->scratch, &one.fns, (TlFn *)fn);
        TlSbuf s;
        tl_sbuf_init(&s, &j->scratch);
        tl_print_module(&s, &one);
        tl_vec_push(&j->scratch, &kernels,
                    (TlKernelCode){.fn = fn,
                                   .symbol = fn->name,
                                   .code = s.text,
                                   .ncode = s.len + 1,
                                   .flags = j->o->check ? TILE_KERNEL_CHECKED : 0});
    }
    return set_image(j, &kernels);
}

static TlEmit form_of(TlStage stage)
{
    static const TlEmit FORMS[] = {
#define STAGE(ID, name, of, emit) TL_EMIT_##emit,
#include "codegen/stage.def"
    };
    return FORMS[stage];
}

/* What ptxas rejects is the program's fault if it is in the text of an asm. The text is there once
 * for each register of the tile, but is reported once. */
static bool say_asm_errors(TlJob *j, const char *ptx, const char *words)
{
    TlLoc loc, last = {0};
    const char *said, *line;
    while (tl_cubin_asm_error(&j->scratch, ptx, &words, &loc, &said, &line)) {
        if (!memcmp(&loc, &last, sizeof loc))
            continue;
        TlDiag *row = tl_diag(&j->ctx.diags, loc, TL_E0912, j->target->name, said);
        row->label = tl_strndup(j->ctx.diags.arena, line, strlen(line));
        last = loc;
    }
    return j->ctx.diags.errors > 0;
}

static tilec_status emit_cubin(TlJob *j, const char *ptx, size_t size)
{
    TL_ASSERT(ptx && j->target->family->code == TL_CODE_PTX, "%s has no cubin", j->target->name);
    const char *error;
    TlSpanMark mark = tl_trace_begin(j->ctx.trace, "codegen", NULL, "ptxas");
    void *cubin =
        tl_cubin(&j->scratch, ptx, size, j->target->arch, j->o->debug != 0, &size, NULL, &error);
    tl_trace_end(j->ctx.trace, mark);
    if (!cubin && say_asm_errors(j, ptx, error))
        return tl_job_diagnosed(j);
    if (!cubin)
        return tl_job_fail(j, TILEC_TOOL, "%s", error);
    set_data(j, cubin, size);
    return TILEC_OK;
}

/* Reports on code that the target's tools can read: PTX or a linked code object. */
static void report(TlJob *j, TlEmit form, const TlKernelCodes *kernels, const void *code,
                   size_t size)
{
    TlCode of = tl_target_code(j->target, j->emulate);
    bool readable =
        (of == TL_CODE_PTX && form != TL_EMIT_LLVM) || (of == TL_CODE_HSACO && form == TL_EMIT_OBJ);
    j->out->report = tl_explain(&j->ctx, j->target, kernels, readable ? code : NULL, size,
                                &j->out->arena, &j->scratch);
}

/* Warns of kernels whose registers LLVM has spilled, as the notes of the code say. */
static void watch_spills(TlJob *j, const TlKernelCodes *kernels, const void *code, size_t size)
{
    for (uint32_t i = 0; i < kernels->len; i++) {
        const TlKernelCode *k = &kernels->data[i];
        TlUsage u = TL_USAGE_UNKNOWN;
        if (k->quick || !tl_usage_of_hsaco(code, size, k->symbol, &u) || u.spilled <= 0)
            continue;
        tl_diag(&j->ctx.diags, k->fn->loc, TL_W0902, k->fn->name,
                tl_form_text(k->fn->info, &j->scratch), u.spilled, j->target->name);
    }
}

static bool has_tile_without_layout(const TlFn *fn)
{
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        for (uint32_t i = 0; i < op->nout; i++)
            if (op->out[i]->type->kind == TL_TILE && op->out[i]->type->rank > 0 &&
                !op->out[i]->type->layout)
                return true;
    return false;
}

static bool has_unplaced_bytes(TlJob *j, const TlFn *fn)
{
    TlPositions order;
    tl_positions_init(&order, fn, &j->scratch);
    TlSharedLives lives = tl_shared_lives(&order, fn, &j->scratch);
    for (uint32_t i = 0; i < lives.len; i++)
        if (!tl_attr(lives.data[i].op, TL_ATTR_SHARED))
            return true;
    return false;
}

/* Is the pass one of those that --stop-after leaves out? */
static bool is_behind_stop(TlJob *j, const char *pass)
{
    const char *stop = j->o->stop_after;
    TlPipelineFacts f = {.pipeline = j->target->family->pipeline, .passes = j->o->passes};
    const char *all = tl_pipeline(&j->scratch, &f), *from = stop ? strstr(all, stop) : NULL;
    return from && strstr(from + strlen(stop), pass);
}

/* A pass that has not run, and without which a GPU has no right code; NULL: there is none. */
static const char *missing_pass(TlJob *j, const TlFn *fn)
{
    if (!fn->body->warps || has_tile_without_layout(fn))
        return "coalesce";
    if (has_unplaced_bytes(j, fn))
        return "allocate-shared";
    return is_behind_stop(j, "synchronize") ? "synchronize" : NULL;
}

/* The passes may have been told to stop before a kernel is one. */
static tilec_status check_passes(TlJob *j)
{
    for (uint32_t i = 0; tl_target_is_gpu(j->target) && i < j->module->fns.len; i++) {
        const TlFn *fn = j->module->fns.data[i];
        const char *pass = missing_pass(j, fn);
        if (pass)
            return tl_job_fail(j, TILEC_USAGE,
                               "kernel '%s' has no code for %s: '%s' has not run; "
                               "--emit=opt shows what the passes have made",
                               fn->name, j->o->target, pass);
    }
    return TILEC_OK;
}

static tilec_status emit_code(TlJob *j)
{
    tilec_status ready = check_passes(j);
    if (ready)
        return ready;
    TlEmit form = form_of(j->stage);
    TlCodegenOptions co = {.target = j->target,
                           .opt_level = tl_option_number(j->o->opt_level),
                           .check = j->o->check != 0,
                           .strict = !strcmp(j->o->fp, "strict"),
                           .debug = j->o->debug != 0,
                           .emulate = j->emulate,
                           .host = j->host,
                           .skip = j->o->skip};
    TlKernelCodes kernels = {0};
    size_t size = 0;
    TlSpanMark mark = tl_trace_begin(j->ctx.trace, "codegen", NULL, "code");
    void *code = (tl_target_is_gpu(j->target) ? tl_gpu_compile : tl_cpu_compile)(
        j->module, &co, form, &j->scratch, &kernels, &size);
    tl_trace_end(j->ctx.trace, mark);
    if (code && form == TL_EMIT_OBJ && tl_target_code(j->target, j->emulate) == TL_CODE_HSACO)
        watch_spills(j, &kernels, code, size);
    if (!code || j->ctx.diags.errors) /* a warning may be an error, by -Werror */
        return tl_job_diagnosed(j);
    if (j->o->report && tl_target_is_gpu(j->target))
        report(j, form, &kernels, code, size);
    if (form == TL_EMIT_OBJ && j->stage != TL_STAGE_HSACO)
        return set_image(j, &kernels);
    if (j->stage == TL_STAGE_CUBIN)
        return emit_cubin(j, code, size);
    set_data(j, code, size);
    return TILEC_OK;
}

tilec_status tl_job_emit(TlJob *j)
{
    TL_ASSERT(j->module && j->target, "no module to emit");
    if (j->stage >= TL_STAGE_OPT && j->stage <= TL_STAGE_STAGED) {
        TlSbuf s;
        tl_sbuf_init(&s, &j->scratch);
        tl_print_module(&s, j->module);
        return tl_job_emit_text(j, &s);
    }
    return tl_target_code(j->target, j->emulate) == TL_CODE_IR ? emit_ref(j) : emit_code(j);
}
