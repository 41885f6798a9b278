/* PTX of a module's functions. Each function is an LLVM module of its own, so they are compiled in
 * parallel (an aligned kernel and its general form cost about the same), and the driver, which
 * compiles PTX when it loads it, gets only the form that is launched.
 *
 * Functions are lowered one after another, because tile IR and its context belong to one thread; a
 * worker does what LLVM does with each (nine tenths of the time). */
#include <string.h>

#include "codegen/gen/gen.h"
#include "codegen/gpu/gpu.h"
#include "codegen/target/worker.h"

typedef struct Part { /* one function; its worker owns this until it is joined */
    const TlCodegenOptions *options;
    TlArena arena;
    TlLlvm l;
    TlWorker worker;
    bool has_llvm, runs;
    char *text;
    size_t size;
    TlFault fault;
    char message[sizeof((TlGuard *)0)->text];
} Part;

typedef struct Ptx {
    const TlCodegenOptions *options;
    TlArena *arena;
    TlKernelCodes *kernels;
    Part *parts;
    uint32_t nparts, nbegun, njoined, most; /* parts begin and are joined in order */
    bool failed;                            /* diagnosed */
} Ptx;

/* What stands on the line that begins with `word`, which is replaced: a target newer than LLVM. */
static void replace_line(TlSbuf *s, const char **rest, const char *word, const char *by)
{
    const char *at = strstr(*rest, word);
    TL_ASSERT(at && at[-1] == '\n', "PTX without %s", word);
    tl_sbuf_put(s, *rest, (size_t)(at - *rest));
    tl_sbuf_putf(s, "%s%s", word, by);
    *rest = at + strcspn(at, "\n");
}

char *tl_ptx_say_target(TlArena *arena, const TlTarget *target, char *text_of_llvm, size_t *size)
{
    TlSbuf s;
    const char *text = text_of_llvm;
    if (!*target->ptx)
        return text_of_llvm;
    tl_sbuf_init(&s, arena);
    replace_line(&s, &text, ".version ", target->ptx);
    replace_line(&s, &text, ".target ", target->name);
    tl_sbuf_puts(&s, text);
    *size = s.len;
    return s.text;
}

static void emit(void *part)
{
    Part *p = part;
    TlGuard g;
    if (TL_GUARD(&g)) {
        TlTraceLane *trace = p->l.trace;
        TlSpanMark mark = tl_trace_begin(trace, "codegen", NULL, "PTX");
        p->text = tl_gpu_emit(&p->l, p->options, TL_EMIT_ASM, &p->arena, NULL, &p->size);
        tl_trace_end(trace, mark);
        p->has_llvm = false;
        tl_llvm_close(&p->l);
        tl_guard_pop(&g);
    } else { /* the LLVM context is lost */
        p->has_llvm = false;
        p->fault = g.fault;
        memcpy(p->message, g.text, sizeof g.text);
    }
}

static void join_oldest(Ptx *x)
{
    Part *p = &x->parts[x->njoined++];
    if (p->runs)
        tl_worker_join(&p->worker);
    p->runs = false;
}

/* The last one is done by this thread. */
static void begin_part(Ptx *x, uint32_t i)
{
    Part *p = &x->parts[i];
    while (i - x->njoined >= x->most)
        join_oldest(x);
    p->runs = x->most > 1 && i + 1 < x->nparts;
    if (p->runs)
        p->l.trace = tl_trace_lane(p->l.trace, x->kernels->data[x->kernels->len - 1].symbol);
    if (p->runs)
        tl_worker_start(&p->worker, emit, p);
    else
        emit(p);
}

static void compile(Ptx *x, TlModule *m)
{
    for (uint32_t i = 0; i < x->nparts; i++) {
        Part *p = &x->parts[x->nbegun++];
        const TlTarget *target = x->options->target;
        p->options = x->options;
        tl_arena_init(&p->arena, x->arena->alloc);
        p->has_llvm = true;
        tl_llvm_open(&p->l, &p->arena, "kernels", target->family->triple, target->cpu,
                     target->features, x->options->opt_level);
        p->l.trace = m->ctx->trace;
        p->l.gpu = target->name;
        p->l.skip = x->options->skip;
        tl_gpu_debug_open(&p->l, m, x->options);
        bool lowered = tl_gpu_lower(&p->l, m->fns.data[i], i, x->options, x->arena, x->kernels);
        tl_gen_debug_close(&p->l);
        if (lowered)
            begin_part(x, i);
        else
            x->failed = true;
    }
    while (x->njoined < x->nbegun)
        join_oldest(x);
}

/* Joins the texts of all kernels, and keeps that of each. */
static char *collect(Ptx *x, size_t *out_size)
{
    const char **texts = TL_NEW_ARRAY(x->arena, const char *, x->nparts + 1);
    for (uint32_t i = 0; i < x->nparts; i++) {
        const Part *p = &x->parts[i];
        TlKernelCode *k = &x->kernels->data[x->kernels->len - x->nparts + i];
        k->code = texts[i] = tl_strndup(x->arena, p->text, p->size);
        k->ncode = p->size + 1; /* PTX ends with a NUL in the image */
    }
    return tl_ptx_join(x->arena, texts, x->nparts, out_size);
}

/* The state of a function in which LLVM failed is lost. */
static void close_all(Ptx *x, TlFault fault)
{
    while (x->njoined < x->nbegun)
        join_oldest(x);
    if (tl_fault_is_llvm(fault) && x->nbegun)
        x->parts[x->nbegun - 1].has_llvm = false;
    for (uint32_t i = 0; i < x->nbegun; i++) {
        if (x->parts[i].has_llvm)
            tl_llvm_close(&x->parts[i].l);
        tl_arena_free(&x->parts[i].arena);
    }
}

void *tl_ptx_compile(TlModule *m, const TlCodegenOptions *options, TlArena *arena,
                     TlKernelCodes *kernels, size_t *out_size)
{
    Ptx *x = TL_NEW(arena, Ptx);
    *x = (Ptx){.options = options, .arena = arena, .kernels = kernels, .nparts = m->fns.len};
    x->parts = TL_NEW_ARRAY(arena, Part, m->fns.len);
    x->most = tl_worker_most(arena->alloc.fn);
    TlGuard g;
    char *volatile text = NULL;
    if (TL_GUARD(&g)) {
        compile(x, m);
        for (uint32_t i = 0; i < x->nparts; i++)
            if (x->parts[i].fault)
                tl_fault(x->parts[i].fault, "%s", x->parts[i].message);
        if (!x->failed)
            text = collect(x, out_size);
        tl_guard_pop(&g);
    }
    close_all(x, g.fault);
    if (g.fault) /* popped */
        tl_fault(g.fault, "%s", g.text);
    return text;
}
