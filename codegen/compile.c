/* The compiler as a library: tilec.h on top of front end, passes and code generation. No other
 * file knows all of them.
 *
 * One compilation is one TlJob: a context with its own arenas, freed at the end; only the output
 * (plain bytes) survives. The whole job runs under one guard, so running out of memory, a broken
 * invariant or a fatal error in LLVM comes back as a status. */
#include "codegen/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/compile_tune.h"
#include "codegen/describe.h"
#include "codegen/header.h"
#include "codegen/job.h"
#include "codegen/options.h"
#include "codegen/target/llvm.h"
#include "codegen/target/worker.h"
#include "codegen/workaround/workaround.h"
#include "frontend/ast.h"
#include "frontend/frontend.h"
#include "passes/pass.h"

/* The column `of`. */
typedef enum StageOf { OF_ANY, OF_GPU, OF_CPU, OF_CODE, OF_PTX, OF_HSACO } StageOf;

static StageOf stage_of(TlStage stage)
{
    static const StageOf OF[] = {
#define STAGE(ID, name, of, emit) OF_##of,
#include "codegen/stage.def"
    };
    return OF[stage];
}

static bool has_stage(const TlTarget *t, bool emulate, TlStage stage)
{
    TlCode code = tl_target_code(t, emulate);
    switch (stage_of(stage)) {
    case OF_ANY: return true;
    case OF_GPU: return tl_target_is_gpu(t);
    case OF_CPU: return !tl_target_is_gpu(t) && code == TL_CODE_HOST;
    case OF_CODE: return code != TL_CODE_IR;
    case OF_PTX: return code == TL_CODE_PTX;
    case OF_HSACO: return code == TL_CODE_HSACO;
    }
    TL_UNREACHABLE("stage %d", (int)stage);
}

/* Which targets have the stage, behind the name of one that lacks it. */
static const char *who_has_stage(TlStage stage)
{
    switch (stage_of(stage)) {
    case OF_ANY: break;
    case OF_CODE: return ": it has no code";
    case OF_GPU: return ": targets of GPUs have it, as sm_90a and gfx942";
    case OF_CPU: return ": targets of CPUs have it, as cpu";
    case OF_PTX: return ": targets of NVIDIA's GPUs have it, as sm_90a";
    case OF_HSACO: return ": targets of AMD's GPUs have it, as gfx942";
    }
    return "";
}

enum { MOST_THREADS = 1024 /* of a block, on every GPU */ };

/* ---- files ---- */

static const char *read_file(void *user, TlArena *arena, const char *path, size_t *out_size,
                             const char **out_error)
{
    TlJob *j = user;
    const char *text = tl_files_read(j->files, arena, path, out_size, out_error);
    if (text)
        tl_sbuf_putf(&j->depends, "%s\n", path);
    return text;
}

/* ---- steps ---- */

tilec_status tl_job_fail(TlJob *j, tilec_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    j->out->message = tl_vformat(&j->out->arena, format, args);
    va_end(args);
    return status;
}

static const char *joined(TlArena *arena, const char *const *names)
{
    TlSbuf s;
    tl_sbuf_init(&s, arena);
    for (; *names; names++)
        tl_sbuf_putf(&s, "%s%s", s.len ? ", " : "", *names);
    return s.text ? s.text : "";
}

/* Is the stage a text that says what the front end has made? */
static bool is_of_tir(const TlJob *j)
{
    return j->stage == TL_STAGE_TIR || j->stage == TL_STAGE_HEADER || j->stage == TL_STAGE_JSON;
}

static bool is_of_llvm(const TlJob *j)
{
    return j->stage >= TL_STAGE_LLVM && !is_of_tir(j);
}

/* Emulated code is that of the GPU until it is lowered for the host. */
static bool llvm_has_target(const TlJob *j)
{
    bool gpu = tl_target_is_gpu(j->target);
    return tl_llvm_has(gpu ? j->target->family->triple : j->target->triple) &&
           (!j->emulate || tl_llvm_has(j->host->triple));
}

static tilec_status find_stage(TlJob *j)
{
    const char *name = j->o->target;
    j->target = tl_target_find(name, &j->emulate);
    j->host = j->emulate ? tl_target_host(name) : NULL;
    if (!j->target)
        return tl_job_fail(j, TILEC_USAGE, "unknown target '%s'; expected one of %s", j->o->target,
                           joined(&j->out->arena, tl_target_names()));
    const char *emit = j->o->emit;
    for (j->stage = 0; j->stage < TL_STAGE_COUNT; j->stage++)
        if (!strcmp(tilec_stages()[j->stage], emit))
            break;
    if (j->stage == TL_STAGE_COUNT)
        return tl_job_fail(j, TILEC_USAGE, "unknown stage '%s'; expected one of %s", emit,
                           joined(&j->out->arena, tilec_stages()));
    if (!has_stage(j->target, j->emulate, j->stage))
        return tl_job_fail(j, TILEC_USAGE, "target %s has no stage '%s'%s", j->o->target, emit,
                           who_has_stage(j->stage));
    int llvm = is_of_llvm(j) && !j->emulate ? tl_target_lacks_llvm(j->target) : 0;
    if (llvm)
        return tl_job_fail(j, TILEC_USAGE, "target %s needs LLVM %d, but this is %s", name, llvm,
                           tilec_version());
    if (is_of_llvm(j) && !llvm_has_target(j))
        return tl_job_fail(j, TILEC_TOOL, "target %s: this compiler was built without LLVM's code "
                           "for it; for Python, pip install 'tile[targets]' brings it", name);
    return TILEC_OK;
}

tilec_status tl_job_diagnosed(const TlJob *j)
{
    return j->ctx.diags.errors ? TILEC_ERRORS : TILEC_OK;
}

static void deliver_diagnostics(TlJob *j)
{
    TlDiags *d = &j->ctx.diags;
    const char *form = j->o->diagnostics;
    TlDiagFormat format = !strcmp(form, "json")    ? TL_DIAG_JSON
                          : !strcmp(form, "sarif") ? TL_DIAG_SARIF
                                                   : TL_DIAG_TEXT;
    if (d->rows.len && j->o->diagnostic) {
        TlSbuf s;
        tl_sbuf_init(&s, &j->scratch);
        tl_diags_render(d, format, j->o->color != 0, &s);
        if (s.len)
            j->o->diagnostic(j->o->user, s.text);
    }
}

static tilec_status choose_warnings(TlJob *j)
{
    TlDiags *d = &j->ctx.diags;
    d->werror = j->o->werror != 0;
    for (size_t i = 0; i < j->o->nwarnings; i++)
        if (!tl_diags_option(d, j->o->warnings[i]))
            return tl_job_fail(j, TILEC_USAGE, "-W%s: no warning has that name; expected one of: "
                                               "%s",
                               j->o->warnings[i], tl_warning_names(&j->out->arena));
    return TILEC_OK;
}

static TlFrontendOptions frontend_options(TlJob *j)
{
    return (TlFrontendOptions){.read = read_file,
                               .read_user = j,
                               .include_dirs = j->o->include_dirs,
                               .ninclude_dirs = (uint32_t)j->o->ninclude_dirs,
                               .debug = j->o->debug || j->o->check,
                               .check = j->o->check != 0,
                               .strict = strcmp(j->o->fp, "default"),
                               .target_kind = j->emulate ? "emu" : j->target->family->name,
                               .target_arch = j->target->arch,
                               .warps = j->o->warps,
                               .stages = j->o->stages};
}

static const char *kernel_names(TlJob *j)
{
    uint32_t n = tl_program_kernels(j->program);
    const char **names = TL_NEW_ARRAY(&j->scratch, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        names[i] = tl_program_kernel_name(j->program, i);
    return n ? joined(&j->out->arena, names) : "(none)";
}

/* ---- constants ---- */

/* "a: B, T; b: (none)" */
static const char *all_constants(TlJob *j)
{
    TlSbuf s;
    tl_sbuf_init(&s, &j->out->arena);
    for (uint32_t i = 0; i < tl_program_kernels(j->program); i++) {
        const char *kernel = tl_program_kernel_name(j->program, i),
                   *names = tl_program_const_names(j->program, kernel);
        tl_sbuf_putf(&s, "%s%s: %s", i ? "; " : "", kernel, *names ? names : "(none)");
    }
    return s.len ? s.text : "(none)";
}

static bool has_kernel(TlJob *j, const char *name)
{
    for (uint32_t i = 0; i < tl_program_kernels(j->program); i++)
        if (!strcmp(tl_program_kernel_name(j->program, i), name))
            return true;
    return false;
}

/* The name of a kernel, "kernel.N"; NULL where there is none, as in "N" and "o.field". */
static const char *kernel_in(TlJob *j, const char *constant)
{
    const char *dot = strchr(constant, '.');
    const char *first = dot ? tl_strndup(&j->scratch, constant, (size_t)(dot - constant)) : NULL;
    return first && (has_kernel(j, first) || !tl_program_has_options(j->program, first)) ? first
                                                                                         : NULL;
}

/* The kernel that a constant is for: the one named in it, the one asked for, or the only one; NULL:
 * all. */
static const char *kernel_meant(TlJob *j, const char *constant)
{
    const char *named = kernel_in(j, constant);
    if (named || j->o->kernel)
        return named ? named : j->o->kernel;
    return tl_program_kernels(j->program) == 1 ? tl_program_kernel_name(j->program, 0) : NULL;
}

static tilec_status no_such_constant(TlJob *j, const char *constant, const char *kernel)
{
    const char *name = kernel_in(j, constant) ? strchr(constant, '.') + 1 : constant;
    if (!kernel)
        return tl_job_fail(j, TILEC_USAGE, "no kernel has the constant '%s'; the constants are: "
                                           "%s", name,
                           all_constants(j));
    if (!has_kernel(j, kernel))
        return tl_job_fail(j, TILEC_USAGE, "no kernel '%s'; kernels are: %s", kernel,
                           kernel_names(j));
    const char *known = tl_program_const_names(j->program, kernel);
    return tl_job_fail(j, TILEC_USAGE, "kernel '%s' has no constant '%s'; %s%s", kernel, name,
                       *known ? "it has: " : "it has none", known);
}

/* Checks that a kernel takes each constant. Where there are errors, its kernel may not have been
 * read. */
static tilec_status check_constants(TlJob *j)
{
    if (j->ctx.diags.errors)
        return TILEC_OK;
    for (size_t i = 0; i < j->o->nconsts; i++) {
        const char *name = j->o->consts[i].name, *kernel = kernel_meant(j, name);
        if (!tl_program_has_const(j->program, kernel, name))
            return no_such_constant(j, name, kernel);
    }
    return TILEC_OK;
}

/* ---- kernels ---- */

static tilec_status lower_kernel(TlJob *j, const char *name, bool wanted)
{
    TL_ASSERT(name && j->program, "a kernel without a name");
    const char *message = NULL;
    TlSpanMark mark = tl_trace_begin(j->ctx.trace, "front end", name, "instantiate");
    TlInstantiate r = tl_job_instantiate(j, name, &message);
    tl_trace_end(j->ctx.trace, mark);
    switch (r) {
    case TL_INST_OK:
    case TL_INST_ERRORS: return TILEC_OK; /* errors are in the diagnostics */
    case TL_INST_NO_KERNEL:
        return tl_job_fail(j, TILEC_USAGE, "no kernel '%s'; kernels are: %s", name,
                           kernel_names(j));
    case TL_INST_BAD_CONST:
        return tl_job_fail(j, TILEC_USAGE, "kernel '%s': %s", name, message);
    case TL_INST_NO_VALUE:
    case TL_INST_NO_VARIANT:
        if (wanted)
            return tl_job_fail(j, r == TL_INST_NO_VALUE ? TILEC_USAGE : TILEC_NO_VARIANT,
                               "kernel '%s': %s", name, message);
        tl_frontend_leave_out(j->program, name, message);
        j->left_out++;
        return TILEC_OK;
    }
    TL_UNREACHABLE("instantiate status %d", (int)r);
}

/* The constants of a kernel that was asked for by name, or is the only one, must be complete. Of
 * several kernels, those that lack a value are left out, with a warning; at least one must be
 * left. */
static tilec_status lower_kernels(TlJob *j)
{
    uint32_t n = tl_program_kernels(j->program);
    if (j->o->one_kernel && !j->o->kernel && !n)
        return tl_job_fail(j, TILEC_USAGE,
                           "the file has no kernel: one is kernel name(parameters) "
                           "grid(n) { ... }");
    if (j->o->one_kernel && !j->o->kernel && n != 1)
        return tl_job_fail(j, TILEC_USAGE, "choose a kernel with --kernel; kernels are: %s",
                           kernel_names(j));
    tilec_status s = j->o->kernel && !has_kernel(j, j->o->kernel) ? TILEC_OK : check_constants(j);
    if (s || j->o->kernel)
        return s ? s : lower_kernel(j, j->o->kernel, true);
    if (!n && is_of_llvm(j) && j->stage != TL_STAGE_IMAGE) /* an image may be a check's */
        tl_frontend_no_kernel(j->program);
    for (uint32_t i = 0; i < n && !s; i++)
        s = lower_kernel(j, tl_program_kernel_name(j->program, i), n == 1);
    if (!s && n && j->left_out == n)
        s = tl_job_fail(j, TILEC_USAGE,
                        "no kernel has values for all its constants; they are: %s",
                        all_constants(j));
    return s;
}

/* The matrix instructions of real GPUs cannot compute in the ring; integer multiply-adds can. */
static bool is_ring(const TlJob *j)
{
    return !strcmp(j->o->fp, "ring");
}

static bool check_warps(TlJob *j, const TlFn *fn)
{
    uint32_t warps = (uint32_t)fn->info->warps, /* 0: chosen later */
             lanes = (uint32_t)j->target->lanes;
    if (warps & (warps - 1))
        tl_diag(&j->ctx.diags, fn->loc, TL_E0911, (int)warps);
    else if (warps * lanes > MOST_THREADS)
        tl_diag(&j->ctx.diags, fn->loc, TL_E0914, warps * lanes, (int)warps, lanes, MOST_THREADS,
                j->target->name);
    else
        return true;
    return false;
}

/* --warps and --stages override the kernels' clauses. */
static bool settle_launch(TlJob *j)
{
    bool gpu = tl_target_is_gpu(j->target), fine = true;
    for (uint32_t i = 0; i < j->module->fns.len; i++) {
        TlKernelInfo *info = j->module->fns.data[i]->info;
        if (!info && j->stage > TL_STAGE_STAGED) { /* hand-written IR */
            tl_diag(&j->ctx.diags, j->module->fns.data[i]->loc, TL_E0802,
                    j->module->fns.data[i]->name, "no launch facts (info {...}), so no code");
            fine = false;
        }
        if (!info)
            continue;
        info->warps = j->o->warps ? j->o->warps : info->warps;
        info->stages = j->o->stages ? j->o->stages : info->stages;
        if (gpu)
            fine = check_warps(j, j->module->fns.data[i]) && fine;
    }
    return fine;
}

/* The rows of pipeline.def, up to the stage asked for. */
static bool run_passes(TlJob *j)
{
    TL_ASSERT(j->module && j->target, "passes without a module");
    const tilec_options *o = j->o;
    if (!is_of_tir(j) && !settle_launch(j))
        return false;
    TlMachine machine = tl_target_machine(j->target);
    machine.warps = o->warps;
    machine.stress = o->stress_layouts;
    machine.stages = o->stages;
    machine.check = o->check != 0;
    machine.forms = o->forms;
    if (is_ring(j) && !j->emulate)
        machine.matrix = NULL;
    TlRunOptions r = {.machine = tl_target_is_gpu(j->target) ? &machine : NULL,
                      .print_after = o->print_after,
                      .dump_dir = o->dump_dir,
                      .stop_after = o->stop_after,
                      .around = tl_pipeline_around(),
                      .skip = o->skip,
                      .skip_too = tl_workaround_names(),
                      .override = o->override,
                      .bisect = tl_option_number(o->bisect),
                      .verify_each = o->verify_each != 0,
                      .time_passes = o->time_passes != 0,
                      .print = o->print,
                      .user = o->user,
                      .crash_dir = o->crash_dir};
    TlPipelineFacts f = {.pipeline = j->target->family->pipeline,
                         .ring = is_ring(j),
                         .strict = !strcmp(o->fp, "strict"),
                         .stress = o->stress_layouts != 0,
                         .only_tir = is_of_tir(j),
                         .passes = o->passes};
    return tl_run_passes(j->module, tl_pipeline(&j->scratch, &f), &r);
}

/* Does for a text of tile IR what lower_kernels does for a program. */
static tilec_status choose_kernel(TlJob *j)
{
    const char *name = j->o->kernel;
    uint32_t kept = 0;
    for (uint32_t i = 0; name && i < j->module->fns.len; i++)
        if (!strcmp(j->module->fns.data[i]->name, name))
            j->module->fns.data[kept++] = j->module->fns.data[i];
    if (name && !kept)
        return tl_job_fail(j, TILEC_USAGE, "no kernel '%s'", name);
    j->module->fns.len = name ? kept : j->module->fns.len;
    return TILEC_OK;
}

static tilec_status list_tunings(TlJob *j)
{
    tilec_status status = check_constants(j);
    if (!status && j->o->kernel && !has_kernel(j, j->o->kernel))
        status = tl_job_fail(j, TILEC_USAGE, "no kernel '%s'; kernels are: %s", j->o->kernel,
                             kernel_names(j));
    if (!status)
        tl_job_list_tunings(j);
    return status;
}

static tilec_status front(TlJob *j, uint32_t source, const char *name)
{
    if (tl_source_is_tile_ir(name)) { /* accepted wherever a source is; it skips the front end */
        j->module = tl_parse_module(&j->ctx, source);
        tilec_status read = tl_job_diagnosed(j);
        if (!read && j->o->nconsts)
            return tl_job_fail(j, TILEC_USAGE, "'%s': tile IR has no constants any more",
                               j->o->consts[0].name);
        return read || !j->module ? read : choose_kernel(j);
    }
    TlFrontendOptions fo = frontend_options(j);
    TlSbuf s;
    tl_sbuf_init(&s, &j->scratch);
    if (j->stage == TL_STAGE_AST) {
        tl_ast_print(&s, tl_parse(&j->ctx, source));
        tilec_status status = tl_job_diagnosed(j);
        return status ? status : tl_job_emit_text(j, &s);
    }
    j->program = tl_frontend_check(&j->ctx, source, &fo);
    tilec_status status = TILEC_OK;
    j->module = tl_module_new(&j->ctx);
    if (j->program && j->o->tunings)
        status = list_tunings(j);
    else if (j->program) /* after errors too: instances may have more */
        status = lower_kernels(j);
    tilec_status diags = tl_job_diagnosed(j);
    if (diags) /* they say it all: what would be asked of the caller next has time */
        j->out->message = "";
    return diags ? diags : status;
}

/* The caller's arguments are checked before anything uses them. */
static tilec_status check_call(TlJob *j, const char *name)
{
    char wrong[512];
    if (!name)
        return tl_job_fail(j, TILEC_USAGE, "the name, the path or the text to compile is NULL");
    if (tilec_options_check(j->o, wrong, sizeof wrong))
        return tl_job_fail(j, TILEC_USAGE, "%s", wrong);
    return find_stage(j);
}

/* A list of passes or a folder for dumps that is no good is the caller's fault, not the program's:
 * it is said as other wrong arguments are. */
static tilec_status failed_passes(TlJob *j)
{
    TlDiags *d = &j->ctx.diags;
    const TlDiag *last = d->rows.len ? &d->rows.data[d->rows.len - 1] : NULL;
    if (!last || (last->id != TL_E0803 && last->id != TL_E0804)) {
        tilec_status status = tl_job_diagnosed(j);
        return status ? status : tl_job_fail(j, TILEC_INTERNAL, "a pass failed");
    }
    d->rows.len--;
    d->errors--;
    return tl_job_fail(j, last->id == TL_E0803 ? TILEC_USAGE : TILEC_IO, "%s", last->text);
}

static tilec_status compile_text(TlJob *j, const char *name, const char *text, size_t size)
{
    text = tl_strndup(&j->ctx.perm, text, size); /* the front end needs a terminating NUL */
    uint32_t source =
        tl_diags_source(&j->ctx.diags, strcmp(name, "-") ? name : "<stdin>", text, size);
    tilec_status status = choose_warnings(j);
    TlSpanMark mark = tl_trace_begin(j->ctx.trace, "front end", NULL, "front end");
    if (!status)
        status = front(j, source, name);
    tl_trace_end(j->ctx.trace, mark);
    if (status || j->stage == TL_STAGE_AST || j->o->tunings)
        return status;
    if (!run_passes(j))
        return failed_passes(j);
    if (!is_of_tir(j))
        return tl_job_emit(j);
    TlSbuf s;
    tl_sbuf_init(&s, &j->scratch);
    if (j->stage == TL_STAGE_TIR)
        tl_print_module(&s, j->module);
    else if (j->stage == TL_STAGE_HEADER)
        tl_header_write(&s, &j->ctx, j->module, tl_image_name(&j->scratch, j->o, name),
                        j->o->prefix, name);
    else
        tl_describe(&s, j->module, name);
    return tl_job_emit_text(j, &s);
}

static tilec_status compile(TlJob *j, const char *name, const char *text, size_t size)
{
    tilec_status status = check_call(j, name);
    if (status)
        return status;
    tl_ctx_init(&j->ctx, j->scratch.alloc);
    j->has_ctx = true;
    if (j->o->time_trace)
        j->ctx.trace = tl_trace_main(&j->trace, "compile");
    TlSpanMark mark = tl_trace_begin(j->ctx.trace, "tilec", name, "compile");
    status = compile_text(j, name, text, size);
    tl_trace_end(j->ctx.trace, mark);
    return status;
}

/* Diagnostics are delivered once, in source order, whatever phase found them. */
static tilec_status finish_job(TlJob *j, tilec_status status)
{
    if (j->has_ctx)
        deliver_diagnostics(j);
    if (j->depends.len)
        j->out->depends = tl_strndup(&j->out->arena, j->depends.text, j->depends.len);
    if (j->ctx.trace) {
        TlSbuf events;
        tl_sbuf_init(&events, &j->scratch);
        tl_trace_events(&j->trace, j->o->time_trace, j->o->target, &events);
        tl_output_set_trace(j->out, events.text);
    }
    return status;
}

static tilec_status guarded(TlJob *j, const char *name, const char *text, size_t size)
{
    TlGuard g;
    if (TL_GUARD(&g)) {
        tl_sbuf_init(&j->depends, &j->scratch);
        tilec_status status = finish_job(j, compile(j, name, text, size));
        tl_guard_pop(&g);
        return status;
    }
    TlGuard again; /* the message itself needs memory */
    tilec_status status = tl_fault_is_memory(g.fault) ? TILEC_NO_MEMORY : TILEC_INTERNAL;
    if (TL_GUARD(&again)) {
        tl_job_fail(j, status, "%s%s%s", g.text, g.where ? " in " : "", g.where ? g.where : "");
        tl_guard_pop(&again);
    }
    return status;
}

/* ---- on a thread of its own ---- */

typedef struct Call {
    TlJob *job;
    const char *name, *text;
    size_t size;
    tilec_status status;
} Call;

static void run_call(void *call)
{
    Call *c = call;
    c->status = guarded(c->job, c->name, c->text, c->size);
}

static tilec_status run_on_worker(TlJob *j, const char *name, const char *text, size_t size)
{
    Call c = {j, name, text, size, TILEC_INTERNAL};
    TlWorker w;
    tl_worker_start(&w, run_call, &c);
    tl_worker_join(&w);
    return c.status;
}

tilec_status tl_compile(const char *name, const char *text, size_t size,
                        const tilec_options *options, TlFiles *files, tilec_output **out_output)
{
    if (name && strchr(options->target, ','))
        return tl_compile_fat(name, text, size, options, files, out_output);
    tilec_output *out = *out_output = tl_output_new(options);
    if (!out)
        return TILEC_NO_MEMORY;
    TlJob j = {.o = options, .out = out, .files = files};
    tl_arena_init(&j.scratch, out->arena.alloc);
    tl_trace_init(&j.trace, out->arena.alloc);
    tilec_status status = run_on_worker(&j, name, text, size);
    if (j.module)
        tl_module_free(j.module);
    if (j.has_ctx)
        tl_ctx_free(&j.ctx);
    tl_trace_free(&j.trace);
    tl_arena_free(&j.scratch);
    return status;
}
