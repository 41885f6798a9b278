/* The report of compiled kernels (explain.h): variants, registers, shared memory, occupancy,
 * loops. */
#include "codegen/report/explain.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/gpu/cubin.h"
#include "codegen/gpu/ptxas_limit.h"
#include "codegen/report/occupancy.h"
#include "codegen/report/usage.h"
#include "ir/exp_form.h"
#include "ir/plan/mma.h"
#include "ir/plan/table_plan.h"
#include "ir/remark.h"
#include "passes/analysis/buffer_use.h"
#include "passes/analysis/cluster.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/kept_offsets.h"
#include "passes/analysis/pair.h"
#include "passes/analysis/producer.h"
#include "passes/analysis/registers.h"
#include "passes/analysis/variants.h"
#include "passes/simplify/bounds.h"

/* ---- words ---- */

const char *tl_explain_keep(const TlExplain *e, const char *text)
{
    return text ? tl_strndup(e->out, text, strlen(text)) : "";
}

static void note_source(TlExplain *e, uint32_t file)
{
    for (uint32_t i = 0; i < e->sources.len; i++)
        if (e->sources.data[i] == file)
            return;
    tl_vec_push(e->scratch, &e->sources, file);
}

tilec_report_position tl_explain_position(TlExplain *e, TlLoc loc)
{
    tilec_report_position p = {"", "", loc.line, loc.col};
    if (loc.line == 0 || loc.file >= e->ctx->diags.sources.len)
        return p;
    note_source(e, loc.file);
    const TlSource *s = &e->ctx->diags.sources.data[loc.file];
    const char *at = s->text, *end = s->text + s->size;
    for (uint32_t line = 1; at && line < loc.line; line++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    p.file = tl_explain_keep(e, s->path);
    if (at) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        p.text = tl_strndup(e->out, at, (size_t)((stop ? stop : end) - at));
    }
    return p;
}

uint32_t tl_explain_loops(const TlOp *op)
{
    uint32_t n = 0;
    for (const TlOp *outer = op->block->parent; outer; outer = outer->block->parent)
        n += tl_is_loop(outer);
    return n;
}

const char *tl_explain_branch(const TlOp *op)
{
    for (const TlBlock *b = op->block; b->parent; b = b->parent->block) {
        if (b->parent->opcode == TL_OP_IF)
            return b == b->parent->regions[0] ? "then" : "else";
        if (tl_is_loop(b->parent))
            break;
    }
    return "";
}

uint32_t tl_explain_share(const char *branch)
{
    if (strstr(branch, "part"))
        return 0;
    return strncmp(branch, "then", 4) == 0 || strncmp(branch, "else", 4) == 0 ? 50 : 100;
}

static const char *extent_of_param(const TlExplain *e, const TlDim *d)
{
    const TlKernelInfo *info = e->fn->info;
    switch (d->kind) {
    case TILE_DIM_CONST: return tl_format(e->out, "%lld", (long long)d->value);
    case TILE_DIM_SYM: return tl_explain_keep(e, info->syms.data[d->value].name);
    case TILE_DIM_EXPR: return tl_explain_keep(e, info->exprs.data[d->value].text);
    case TILE_DIM_DENSE: break;
    }
    return "its extent";
}

const char *tl_explain_extent(const TlExplain *e, const TlValue *view, uint32_t axis)
{
    TL_ASSERT(view->type->kind == TL_VIEW && axis < view->type->rank, "axis %u of value %u", axis,
              view->id);
    const TlKernelInfo *info = e->fn->info;
    if (view->def || !info || view->index >= info->params.len)
        return "its extent";
    return extent_of_param(e, &info->params.data[view->index].extent[axis]);
}

/* ---- what the aligned variant asks ---- */

/* A stride as text; for a dense axis, the extents of the axes after it. */
static const char *stride_text(const TlExplain *e, const TlParam *p, uint32_t axis)
{
    if (p->stride[axis].kind != TILE_DIM_DENSE)
        return extent_of_param(e, &p->stride[axis]);
    TlSbuf s;
    tl_sbuf_init(&s, e->scratch);
    for (uint32_t d = axis + 1; d < p->rank; d++)
        tl_sbuf_putf(&s, "%s%s", s.len ? " * " : "", extent_of_param(e, &p->extent[d]));
    return s.text ? s.text : "1";
}

/* The subject of a test; NULL: it is no number. */
static const char *test_subject(const TlExplain *e, const tile_image_test *t)
{
    const TlKernelInfo *info = e->fn->info;
    const TlParam *p = t->param < info->params.len ? &info->params.data[t->param] : NULL;
    switch ((tile_test_kind)t->kind) {
    case TILE_TEST_POINTER: return tl_format(e->scratch, "&%s", p->name);
    case TILE_TEST_EXTENT: return extent_of_param(e, &p->extent[t->axis]);
    case TILE_TEST_STRIDE: return stride_text(e, p, t->axis);
    case TILE_TEST_SCALAR: return p->name;
    case TILE_TEST_GRID:
    case TILE_TEST_CLUSTER:
    case TILE_TEST_SPAN:
    case TILE_TEST_COUNT: break;
    }
    return NULL;
}

/* Is it in the list of names? */
static bool is_listed(const TlSbuf *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = names->text ? strstr(names->text, name) : NULL; at;
         at = strstr(at + 1, name))
        if ((at == names->text || at[-1] == ' ') && (at[n] == ',' || at[n] == 0))
            return true;
    return false;
}

/* The tests from `first` on that have its mask, in one line: values & mask are 0. */
static void put_tests(const TlExplain *e, const TlTests *tests, uint32_t first, TlSbuf *s)
{
    uint64_t mask = tests->data[first].mask;
    TlSbuf names;
    tl_sbuf_init(&names, e->scratch);
    for (uint32_t i = first; i < tests->len; i++) {
        const char *name = test_subject(e, &tests->data[i]);
        if (name && tests->data[i].mask == mask && !is_listed(&names, name))
            tl_sbuf_putf(&names, "%s%s", names.len ? ", " : "", name);
    }
    bool low = (mask & (mask + 1)) == 0;
    if (names.len)
        tl_sbuf_putf(s, "%s%s: %s %llu", s->len ? "\n" : "", names.text,
                     low ? "multiples of" : "below",
                     low ? (unsigned long long)mask + 1 : ~(unsigned long long)mask + 1);
}

static const char *condition_of(const TlExplain *e)
{
    TlTests tests = {0};
    TlSbuf s;
    tl_sbuf_init(&s, e->out);
    tl_variant_tests(e->fn, e->scratch, &tests);
    for (uint32_t i = 0; i < tests.len; i++) {
        bool first = true;
        for (uint32_t k = 0; k < i; k++)
            first &= tests.data[k].mask != tests.data[i].mask;
        if (tests.data[i].kind == TILE_TEST_GRID)
            tl_sbuf_putf(&s, "%sthe grid: the kernel's own", s.len ? "\n" : "");
        else if (tests.data[i].kind == TILE_TEST_CLUSTER)
            tl_sbuf_putf(&s, "%sthe grid: of whole clusters", s.len ? "\n" : "");
        else if (first)
            put_tests(e, &tests, i, &s);
    }
    return s.text ? s.text : "";
}

/* Why programs bring nothing to each other: of the first bulk copy, or of there being none. */
static const char *why_alone(const TlExplain *e)
{
    for (const TlOp *op = e->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (!tl_is_bulk_copy(op))
            continue;
        if (tl_attr(op, TL_ATTR_CLUSTER) || tl_attr_flag(op, TL_ATTR_PAIR))
            return "a block has more than 200 KiB of shared memory";
        if (!(e->target->can & TL_CAN_MULTICAST))
            return tl_format(e->out, "%s groups no programs into clusters", e->target->name);
        TlShareFault fault = tl_share_fault(e->fn, e->scratch, op, tl_op_place(op).buf->type);
        TL_ASSERT(fault, "'%s' could share what it does not", e->fn->name);
        return tl_format(e->out, "each program brings its own: %s", tl_share_fault_text(fault));
    }
    return "there are no bulk copies";
}

static void explain_cluster(const TlExplain *e, const TlKernelCode *code)
{
    const char *never = tl_cluster_never(e->fn);
    bool asks = never || tl_cluster_size(e->fn) > 1;
    e->k->cluster = code->cluster ? code->cluster : asks;
    e->k->cluster_why = never ? never : asks && !code->cluster ? why_alone(e) : "";
}

static void explain_names(TlExplain *e, const TlKernelCode *code)
{
    const TlKernelInfo *info = e->fn->info;
    tilec_report_kernel *k = e->k;
    bool aligned = info && info->aligned;
    k->name = tl_explain_keep(e, e->fn->name);
    k->symbol = tl_explain_keep(e, code->symbol);
    k->variant = info ? tl_form_text(info, e->out) : TL_FORM_GENERAL;
    k->condition = aligned ? condition_of(e) : "";
    uint32_t n = info ? info->consts.len : 0;
    tilec_const *consts = TL_NEW_ARRAY(e->out, tilec_const, n + 1);
    for (uint32_t i = 0; i < n; i++)
        consts[i] = (tilec_const){tl_explain_keep(e, info->consts.data[i].name),
                                  tl_explain_keep(e, info->consts.data[i].value)};
    k->consts = consts;
    k->nconsts = n;
    k->warps = code->warps;
    k->working_warps = e->fn->body->warps ? (uint32_t)e->fn->body->warps : 1;
    k->warps_why = info && info->warps_why ? tl_explain_keep(e, info->warps_why) : "";
    k->sparing_why = info && info->sparing_why ? tl_explain_keep(e, info->sparing_why) : "";
    explain_cluster(e, code);
    k->lanes = (uint32_t)e->target->lanes;
    k->dies = 1;
    for (uint32_t i = 0; i < code->slots.len; i++)
        if (code->slots.data[i].kind == TILE_SLOT_DIES)
            k->dies = code->slots.data[i].param;
    k->threads = code->threads;
    k->shared_bytes = code->shared_bytes;
    k->shared_most = e->target->shared_bytes;
}

/* ---- what a launch gives ---- */

static tilec_report_param explain_param(const TlExplain *e, const TlParam *p)
{
    const char **extents = TL_NEW_ARRAY(e->out, const char *, p->rank + 1u);
    for (uint32_t i = 0; i < p->rank; i++)
        extents[i] = extent_of_param(e, &p->extent[i]);
    return (tilec_report_param){tl_explain_keep(e, p->name), tl_dtype_name(p->dtype), extents,
                                p->rank};
}

static const char *const *expression_texts(const TlExplain *e, const uint32_t *exprs, uint32_t n)
{
    const char **texts = TL_NEW_ARRAY(e->out, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        texts[i] = tl_explain_keep(e, e->fn->info->exprs.data[exprs[i]].text);
    return texts;
}

static void explain_params(TlExplain *e)
{
    const TlKernelInfo *info = e->fn->info;
    tilec_report_kernel *k = e->k;
    if (!info)
        return;
    tilec_report_param *params = TL_NEW_ARRAY(e->out, tilec_report_param, info->params.len + 1);
    for (uint32_t i = 0; i < info->params.len; i++)
        params[i] = explain_param(e, &info->params.data[i]);
    k->params = params;
    k->nparams = info->params.len;
    k->grid = expression_texts(e, info->grid.data, info->grid.len);
    k->ngrid = info->grid.len;
    k->requires_ = expression_texts(e, info->requires_.data, info->requires_.len);
    k->nrequires = info->requires_.len;
}

/* ---- registers, occupancy ---- */

/* What the target's tools report about the kernels of the code. */
typedef struct Tools {
    const TlTarget *target;
    TlCode form;
    const char *words; /* of ptxas; NULL */
    const void *code, *cubin;
    size_t size, ncubin;
    const char *none; /* the reason if nothing is known */
} Tools;

static bool ask_ptxas(const Tools *t, const char *kernel, TlUsage *out)
{
    return t->words && tl_usage_of_ptxas(t->words, kernel, out);
}

static bool ask_hsaco(const Tools *t, const char *kernel, TlUsage *out)
{
    return t->code && tl_usage_of_hsaco(t->code, t->size, kernel, out);
}

/* Instructions of ptxas's code, or those of the text that there is without it. */
static const char *read_ptx(const Tools *t, const char *kernel, TlArena *arena, TlInsns *out)
{
    if (t->cubin && tl_mix_of_cubin(arena, t->cubin, t->ncubin, kernel, out))
        return "SASS, by ptxas";
    bool ok = t->code && tl_mix_of_ptx(arena, tl_strndup(arena, t->code, t->size), kernel, out);
    return ok ? tl_format(arena, "PTX, as there is no SASS: %s", t->none) : NULL;
}

static const char *read_hsaco(const Tools *t, const char *kernel, TlArena *arena, TlInsns *out)
{
    bool ok = t->code && tl_mix_of_hsaco(arena, t->target, t->code, t->size, kernel, out);
    return ok ? "code object" : NULL;
}

/* The source of figures for each form of code; instructions: where from, NULL: nowhere. */
static const struct {
    const char *name;
    bool (*ask)(const Tools *t, const char *kernel, TlUsage *out);
    const char *(*read)(const Tools *t, const char *kernel, TlArena *arena, TlInsns *out);
} WITNESSES[] = {[TL_CODE_PTX] = {"ptxas", ask_ptxas, read_ptx},
                 [TL_CODE_HSACO] = {"code object", ask_hsaco, read_hsaco}};

static Tools ask_tools(const TlTarget *target, const void *code, size_t size, TlArena *scratch)
{
    Tools t = {.target = target,
               .form = target->family->code,
               .code = code,
               .size = size,
               .none = "code for the emulator"};
    if (!code || t.form != TL_CODE_PTX)
        return t;
    const char *error;
    t.cubin = tl_cubin(scratch, code, size, target->arch, false, &t.ncubin, &t.words, &error);
    if (!t.cubin) {
        t.words = NULL;
        const char *advice = strstr(error, ": stage"), *end = advice ? advice : strchr(error, '\n');
        t.none = tl_strndup(scratch, error, end ? (size_t)(end - error) : strlen(error));
    }
    return t;
}

static void explain_registers(TlExplain *e, const Tools *t)
{
    tilec_report_kernel *k = e->k;
    TlUsage u = TL_USAGE_UNKNOWN, told;
    k->registers_from = tl_explain_keep(e, t->none);
    if (WITNESSES[t->form].ask(t, k->symbol, &told)) {
        u = told;
        k->registers_from = WITNESSES[t->form].name;
    }
    k->registers = u.registers;
    k->accumulators = u.accumulators;
    k->scalars = u.scalars;
    k->spilled = u.spilled;
    k->reloaded = u.reloaded;
    k->spilled_scalars = u.spilled_scalars;
    k->private_bytes = u.private_bytes;
    if (t->form == TL_CODE_PTX) {
        TlPtxasLimit limit = tl_ptxas_limit(e->target, e->fn, k->threads, e->scratch);
        k->registers_estimated = limit.expected;
        k->registers_limit = limit.stated ? limit.most : 0;
        k->registers_limit_why = limit.stated ? limit.why : "";
        k->offsets_not_kept = (uint32_t)tl_offsets_not_kept(e->fn, e->axis);
    } else {
        k->registers_limit_why = "";
        TlAllocator by = tl_allocator_of(e->target->family->by_llvm, e->target->lanes);
        k->registers_estimated = tl_registers_needed(e->fn, e->axis, by, e->scratch).taken;
    }
}

static void explain_instructions(TlExplain *e, const Tools *t)
{
    TlInsns code = {0};
    const char *from = WITNESSES[t->form].read(t, e->k->symbol, e->scratch, &code);
    tl_explain_mix(e, from ? &code : NULL, from ? from : t->none);
}

static void explain_occupancy(TlExplain *e)
{
    tilec_report_kernel *k = e->k;
    TlOccupancy o;
    k->blocks = -1;
    k->limit = "";
    if (!tl_occupancy(e->target, k->warps, k->registers, k->shared_bytes, &o))
        return;
    k->blocks = o.blocks;
    k->resident_warps = o.warps;
    k->most_warps = o.most_warps;
    k->by_registers = o.by[TL_LIMIT_REGISTERS];
    k->by_shared = o.by[TL_LIMIT_SHARED];
    k->by_warps = o.by[TL_LIMIT_WARPS];
    k->by_blocks = o.by[TL_LIMIT_BLOCKS];
    TlSbuf limits;
    tl_sbuf_init(&limits, e->out);
    for (int i = 0; i < TL_LIMIT_COUNT; i++)
        if (o.by[i] == o.blocks)
            tl_sbuf_putf(&limits, "%s%s", limits.len ? ", " : "", tl_limit_name((TlLimit)i));
    k->limit = limits.text;
}

/* ---- shared memory ---- */

static const char *buffer_name(const TlExplain *e, const TlOp *op)
{
    TL_ASSERT(op->nout <= 1 || op->nregions, "%s is no buffer", tl_op_info(op->opcode)->text);
    const char *text = tl_op_info(op->opcode)->text;
    if (!tl_makes_buffer(op))
        return text;
    int slots = (int)op->out[0]->type->slots;
    text = op->opcode == TL_OP_ALLOC ? "buffer" : "barriers";
    return slots == 1 ? text : tl_format(e->out, "%s of %d slots", text, slots);
}

/* An alloc's own position is where it was made; what it is for shows where it is read. */
static TlLoc buffer_loc(const TlOp *op)
{
    if (op->opcode == TL_OP_ALLOC)
        for (const TlUse *u = op->out[0]->uses; u; u = u->next)
            if (u->user->opcode != TL_OP_GET)
                return u->user->loc;
    return op->loc;
}

/* Where a value that is put into a buffer was before: an op's operand, what a loop begins with,
 * what an if yields. NULL: a parameter's value. */
static const TlValue *value_before(const TlValue *v)
{
    const TlOp *op = v->def, *loop = v->def ? NULL : v->block->parent;
    if (loop)
        return loop->opcode == TL_OP_FOR && v->index > 0 ? tl_in(loop, v->index + 2) : NULL;
    if (!op || op->nin == 0)
        return NULL;
    return op->opcode == TL_OP_IF ? tl_in(op->regions[0]->last, v->index) : tl_in(op, 0);
}

const TlOp *tl_explain_load_of(const TlOp *put)
{
    enum { MOST_OPS = 16 }; /* between the load and the put */
    const TlValue *v = tl_in(put, 2);
    for (int i = 0; i < MOST_OPS && v; i++, v = value_before(v))
        if (v->def && v->def->opcode == TL_OP_LOAD)
            return v->def;
    return NULL;
}

/* The parameter whose elements are put or copied into a buffer; "" if they are computed. */
static const char *buffer_param(const TlExplain *e, const TlValue *buf)
{
    const TlUse *u = buf->uses;
    while (u && u->user->opcode != TL_OP_COPY && u->user->opcode != TL_OP_PUT)
        u = u->next;
    if (u && u->user->opcode == TL_OP_COPY)
        return tl_explain_param(e, tl_op_place(u->user).base);
    const TlOp *load = u ? tl_explain_load_of(u->user) : NULL;
    return load ? tl_explain_param(e, tl_op_place(load).base) : "";
}

static tilec_report_buffer explain_buffer(TlExplain *e, const TlSharedLife *life)
{
    bool is_alloc = life->op->opcode == TL_OP_ALLOC;
    return (tilec_report_buffer){
        .position = tl_explain_position(e, buffer_loc(life->op)),
        .op = buffer_name(e, life->op),
        .param = is_alloc ? buffer_param(e, life->op->out[0]) : "",
        .offset = (uint64_t)tl_attr_int(life->op, TL_ATTR_SHARED, 0),
        .bytes = life->bytes,
        .slots = tl_makes_buffer(life->op) ? (uint32_t)life->op->out[0]->type->slots : 1,
        .first = life->first,
        .last = life->last,
    };
}

int tl_explain_buffer(const TlExplain *e, const TlOp *op)
{
    uint64_t at;
    return tl_map_get(&e->buffers, (uint64_t)(uintptr_t)op, &at) ? (int)at : -1;
}

static void explain_buffers(TlExplain *e)
{
    TlSharedLives lives = tl_shared_lives(&e->order, e->fn, e->scratch);
    tilec_report_buffer *all = TL_NEW_ARRAY(e->out, tilec_report_buffer, lives.len + 1);
    tl_map_init(&e->buffers, e->scratch);
    for (uint32_t i = 0; i < lives.len; i++) {
        all[i] = explain_buffer(e, &lives.data[i]);
        tl_map_put(&e->buffers, (uint64_t)(uintptr_t)lives.data[i].op, i);
    }
    e->k->buffers = all;
    e->k->nbuffers = lives.len;
}

/* ---- loops ---- */

static bool holds(const TlOp *loop, bool (*is)(const TlOp *op))
{
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
        if (is(op))
            return true;
    return false;
}

static bool is_wait_for_bytes(const TlOp *op)
{
    return op->opcode == TL_OP_MBAR_WAIT && !tl_attr_flag(op, TL_ATTR_ONE);
}

static bool is_turn(const TlOp *op)
{
    return op->opcode == TL_OP_PING_PONG_WAIT;
}

/* Of two loops with their own warps (specialize), the one that computes. */
static bool is_consumer(const TlOp *loop)
{
    return tl_op_role(loop) == 1 && holds(loop, is_wait_for_bytes);
}

static void say_fault(TlSbuf *s, TlProducerFault fault)
{
    tl_sbuf_putf(s, "; no warp of its own begins them: %s", tl_producer_fault_text(fault));
}

static bool is_of_pair(const TlOp *op)
{
    return op->opcode == TL_OP_DOT_ASYNC && tl_attr_flag(op, TL_ATTR_PAIR);
}

/* Powers of two by sums and products, or why there are none. */
static void say_exp2(TlSbuf *s, const TlOp *loop)
{
    long long threads = tl_remark_of(loop, TL_REMARK_EXP2_THREADS) - 1,
              spread = tl_remark_of(loop, TL_REMARK_EXP2_SPREAD) - 1,
              products = tl_remark_of(loop, TL_REMARK_EXP2_PRODUCTS) - 1;
    int64_t n = 0;
    for (const TlOp *op = loop->regions[0]->first; op; op = op->next)
        n = op->opcode == TL_OP_EXP2 && tl_attr(op, TL_ATTR_SPREAD)
                ? tl_attr_int(op, TL_ATTR_SPREAD, 0)
                : n;
    if (threads < 0)
        return;
    if (n)
        tl_sbuf_putf(s,
                     "; %d of %d powers of two by sums and products: threads take about %lld "
                     "cycles for %lld, products beside them %lld",
                     (int)n, TL_SPREAD_PAIRS, spread, threads, products);
    else
        tl_sbuf_putf(s,
                     "; all powers of two by special functions: threads take about %lld "
                     "cycles, products beside them %lld",
                     threads, products);
}

static void say_pair(TlSbuf *s, const TlOp *loop)
{
    if (holds(loop, is_of_pair))
        tl_sbuf_puts(s, "; products are those of a pair of programs, each with half of B");
    if (tl_remark_of(loop, TL_REMARK_NO_PAIR))
        tl_sbuf_putf(s, "; no products of pairs: %s",
                     tl_pair_fault_text((TlPairFault)tl_remark_of(loop, TL_REMARK_NO_PAIR)));
}

/* How many iterations ahead of its use something is put or copied, and the number of slots. */
static void say_fetches(TlSbuf *s, const TlOp *loop)
{
    int copies = 0, bulk = 0, ahead = 0, slots = 0;
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop)) {
        if (op->opcode != TL_OP_COPY && op->opcode != TL_OP_PUT)
            continue;
        TlValue *buf = op->opcode == TL_OP_COPY ? tl_op_place(op).buf : tl_in(op, 0);
        int n = tl_op_ahead(op);
        copies += op->opcode == TL_OP_COPY;
        bulk += tl_is_bulk_copy(op);
        ahead = n > ahead ? n : ahead;
        slots = buf->type->slots > slots ? buf->type->slots : slots;
    }
    if (copies && bulk == copies && !ahead)
        tl_sbuf_putf(s, "; bulk copies by a warp of its own into %d slots", slots);
    else if (copies)
        tl_sbuf_putf(s, "; %s copies %d trip%s ahead into %d slots",
                     bulk == copies ? "bulk"
                     : bulk         ? "bulk and other asynchronous"
                                    : "asynchronous",
                     ahead, ahead == 1 ? "" : "s", slots);
    else if (is_consumer(loop))
        tl_sbuf_putf(s, "; reads what other warps bring by bulk copies%s",
                     holds(loop, is_turn) ? "; warpgroups take turns" : "");
    else if (slots > 1)
        tl_sbuf_putf(s, "; loads into registers, %d slots of shared memory", slots);
    else
        tl_sbuf_puts(s, "; loads into registers a trip ahead");
    if (tl_remark_of(loop, TL_REMARK_ONE_FLOW))
        say_fault(s, (TlProducerFault)tl_remark_of(loop, TL_REMARK_ONE_FLOW));
    say_pair(s, loop);
    if (tl_attr_flag(loop, TL_ATTR_ONE_WARP))
        tl_sbuf_puts(s, "; one warp goes round, the others wait behind it");
    int64_t leading = tl_remark_of(loop, TL_REMARK_LEADING);
    if (leading)
        tl_sbuf_putf(s, "; %lld product%s of a trip begun a trip ahead, while threads compute",
                     (long long)leading, leading == 1 ? "" : "s");
    say_exp2(s, loop);
}

static bool is_load(const TlOp *op)
{
    return op->opcode == TL_OP_LOAD;
}

static bool is_dot(const TlOp *op)
{
    return op->opcode == TL_OP_DOT;
}

static bool is_multiply_add(const TlOp *op)
{
    return op->opcode == TL_OP_DOT && !tl_mma_of(op);
}

static bool is_copy(const TlOp *op)
{
    return op->opcode == TL_OP_COPY;
}

/* Why a loop has fewer stages than it, or its kernel, asks for. */
static void say_stages_asked(TlSbuf *s, const TlKernelInfo *info, const TlOp *loop, int64_t stages)
{
    enum { MOST_BY_LOADS = 3 }; /* stages, where no copy is asynchronous */
    int64_t hint = tl_attr_int(loop, TL_ATTR_PIPELINE, 0), asked = hint > 0 ? hint
                                                                   : info   ? info->stages
                                                                            : 0;
    if (asked <= stages)
        return;
    bool by_loads = !holds(loop, is_copy) && stages == MOST_BY_LOADS;
    tl_sbuf_putf(s, "; %lld are asked, but %s", (long long)asked,
                 by_loads ? "registers keep what is on its way for one trip only"
                          : "more do not fit in shared memory, or there are no more trips");
}

/* Has choose-warps found that so few fit? */
static bool is_chosen(const TlFn *fn, const TlOp *loop, int64_t stages)
{
    return fn->info && fn->info->stages_why && fn->body->stages == stages &&
           tl_attr_int(loop, TL_ATTR_PIPELINE, 0) == 0;
}

static void say_stages_chosen(TlSbuf *s, const TlFn *fn, const TlOp *loop, int64_t stages)
{
    if (is_chosen(fn, loop, stages))
        tl_sbuf_putf(s, "; chosen, as %s", fn->info->stages_why);
}

static void say_pipeline(TlSbuf *s, const TlFn *fn, const TlOp *loop)
{
    const TlKernelInfo *info = fn->info;
    int64_t stages = tl_remark_of(loop, TL_REMARK_STAGES);
    if (stages) {
        tl_sbuf_putf(s, "pipelined, %lld stages", (long long)stages);
        say_fetches(s, loop);
        say_stages_asked(s, info, loop, stages);
        say_stages_chosen(s, fn, loop, stages);
        return;
    }
    tl_sbuf_puts(s, "not pipelined: ");
    if (loop->opcode == TL_OP_WHILE)
        tl_sbuf_puts(s, "only loops over a range are");
    else if (holds(loop, tl_is_loop))
        tl_sbuf_puts(s, "it holds another loop");
    else if (!holds(loop, is_load))
        tl_sbuf_puts(s, "it loads nothing");
    else if (is_chosen(fn, loop, 1))
        tl_sbuf_putf(s, "one stage is chosen, as %s", fn->info->stages_why);
    else if (tl_remark_of(loop, TL_REMARK_CHUNKS))
        tl_sbuf_puts(s, "it needs few registers, so other warps can work while one waits");
    else if (!tl_attr(loop, TL_ATTR_PIPELINE))
        tl_sbuf_puts(s, "it has no `pipeline` hint, and no dot with staged operands");
    else if (holds(loop, is_multiply_add))
        tl_sbuf_puts(s, "its dots are multiply-adds, which need the registers for themselves");
    else
        tl_sbuf_puts(s, "one stage, or no load that can be begun earlier and fits");
}

/* What chunk-rows has made of a tile. */
static void say_chunks(TlSbuf *s, const TlOp *loop)
{
    TlWideInt step;
    int64_t extent = tl_remark_of(loop, TL_REMARK_CHUNKS);
    if (!extent || !tl_const_int_value(tl_in(loop, 2), &step))
        return;
    tl_sbuf_putf(s, "%d elements at a time of the %lld of an axis, which registers do not hold; ",
                 abs((int)step), (long long)extent);
}

/* What cut-carried has made of a tile. */
static void say_carried(TlSbuf *s, const TlOp *loop)
{
    int64_t parts = tl_remark_of(loop, TL_REMARK_CARRIED);
    if (parts)
        tl_sbuf_putf(s, "carries what would take most registers in %lld parts; ", (long long)parts);
}

static const char *loop_text(const TlExplain *e, const TlOp *loop)
{
    TL_ASSERT(tl_is_loop(loop), "%s is no loop", tl_op_info(loop->opcode)->text);
    TlSbuf s;
    tl_sbuf_init(&s, e->out);
    say_chunks(&s, loop);
    say_carried(&s, loop);
    say_pipeline(&s, e->fn, loop);
    int64_t unroll = tl_attr_int(loop, TL_ATTR_UNROLL, -2);
    if (unroll > 1)
        tl_sbuf_putf(&s, "; unrolled by %lld", (long long)unroll);
    else if (unroll >= 0)
        tl_sbuf_puts(&s, "; not unrolled, though asked: too many trips, or not known");
    if (e->fn->body->kept && e->fn->info->kept_why && tl_is_innermost(loop) && holds(loop, is_dot))
        tl_sbuf_putf(&s, "; operands that its trips share are kept in shared memory, as %s",
                     e->fn->info->kept_why);
    if (tl_bounds_is_peeled(e->fn, e->axis, loop))
        tl_sbuf_puts(&s, "; its last trip is peeled off");
    return s.text;
}

/* ---- loops that the lowering makes ---- */

/* Of a table that goes through shared memory in several rounds, and of bins that each count the
 * values of a round. They stand behind the loops of the source, so that these keep their
 * numbers. */
typedef TL_VEC(tilec_report_loop) LoopRows;

static int made_loop(TlExplain *e, const TlOp *op, tilec_report_loop row, LoopRows *all)
{
    TL_ASSERT(row.trips > 0 && row.outer < (int)all->len, "a loop of %lld trips",
              (long long)row.trips);
    row.position = tl_explain_position(e, op->loc);
    row.first = tl_position_of(&e->order, op).first;
    row.last = tl_position_of(&e->order, op).last;
    row.loops = row.outer < 0 ? 0 : all->data[row.outer].loops + 1;
    row.made = 1;
    tl_vec_push(e->out, all, row);
    tl_vec_push(e->scratch, &e->made, op);
    return (int)all->len - 1;
}

static void explain_made(TlExplain *e, const TlOp *op, LoopRows *all)
{
    if (op->opcode != TL_OP_GATHER && op->opcode != TL_OP_REGROUP && op->opcode != TL_OP_HISTOGRAM)
        return;
    TlTablePlan p = tl_table_plan(op);
    int outer = tl_explain_loop(e, op);
    if (p.nrounds > 1)
        outer = made_loop(e, op,
                          (tilec_report_loop){.trips = p.nrounds,
                                              .outer = outer,
                                              .how = "made for the operation: rounds of a table "
                                                     "that shared memory does not hold at once"},
                          all);
    if (op->opcode != TL_OP_HISTOGRAM || p.adds)
        return;
    uint64_t compared = (uint64_t)p.counted_at_once * (uint64_t)op->out[0]->type->shape[0];
    made_loop(e, op,
              (tilec_report_loop){.trips = (p.count + p.counted_at_once - 1) / p.counted_at_once,
                                  .outer = outer,
                                  .each.flops = compared,
                                  .how = "made for the operation: each bin counts the values"},
              all);
}

static void explain_loops(TlExplain *e)
{
    LoopRows all = {0};
    e->loops.len = e->made.len = 0;
    for (const TlOp *op = e->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlWideInt trips;
        if (!tl_is_loop(op))
            continue;
        if (op->opcode == TL_OP_WHILE || !tl_const_trips(op, &trips) || trips > INT64_MAX)
            trips = -1;
        tilec_report_loop row = {.position = tl_explain_position(e, op->loc),
                                 .loops = tl_explain_loops(op),
                                 .trips = (int64_t)trips,
                                 .how = loop_text(e, op),
                                 .outer = tl_explain_loop(e, op),
                                 .first = tl_position_of(&e->order, op).first,
                                 .last = tl_position_of(&e->order, op).last,
                                 .stages = (uint32_t)tl_remark_of(op, TL_REMARK_STAGES)};
        tl_explain_trips(e, op, &row);
        tl_vec_push(e->out, &all, row);
        tl_vec_push(e->scratch, &e->loops, op);
    }
    for (const TlOp *op = e->fn->body->first; op; op = tl_walk_next(op, NULL))
        explain_made(e, op, &all);
    e->k->loops = e->loop_rows = all.data;
    e->k->nloops = all.len;
}

/* ---- the report ---- */

static void explain_kernel(TlExplain *e, const TlKernelCode *code, const Tools *tools)
{
    e->fn = code->fn;
    e->axis = tl_axis_info(e->fn, e->scratch);
    e->is_checked = code->flags & TILE_KERNEL_CHECKED;
    tl_positions_init(&e->order, e->fn, e->scratch);
    e->k->length = e->order.spans.len;
    explain_names(e, code);
    explain_params(e);
    explain_registers(e, tools);
    explain_occupancy(e);
    explain_buffers(e);
    explain_loops(e);
    tl_explain_accesses(e);
    tl_explain_exchanges(e);
    tl_explain_waits(e);
    tl_explain_lines(e);
    tl_explain_work(e);
    explain_instructions(e, tools);
    tl_explain_roofs(e);
    tl_explain_hints(e);
}

/* ---- messages, sources ---- */

static void explain_messages(TlExplain *e, tilec_report *r)
{
    TlDiags *d = &e->ctx->diags;
    tl_diags_sort(d);
    tilec_report_message *all = TL_NEW_ARRAY(e->out, tilec_report_message, d->rows.len + 1);
    for (uint32_t i = 0; i < d->rows.len; i++) {
        const TlDiag *row = &d->rows.data[i];
        all[i] = (tilec_report_message){tl_explain_position(e, row->loc),
                                        row->severity == TL_WARNING ? "warning" : "note",
                                        tl_diag_code(row->id), tl_explain_keep(e, row->text)};
    }
    r->messages = all;
    r->nmessages = d->rows.len;
}

static int by_index(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void explain_sources(TlExplain *e, tilec_report *r)
{
    tilec_report_source *all = TL_NEW_ARRAY(e->out, tilec_report_source, e->sources.len + 1);
    if (e->sources.len)
        qsort(e->sources.data, e->sources.len, sizeof *e->sources.data, by_index);
    for (uint32_t i = 0; i < e->sources.len; i++) {
        const TlSource *s = &e->ctx->diags.sources.data[e->sources.data[i]];
        all[i] = (tilec_report_source){tl_explain_keep(e, s->path),
                                       tl_strndup(e->out, s->text ? s->text : "", s->size)};
    }
    r->sources = all;
    r->nsources = e->sources.len;
}

const tilec_report *tl_explain(TlCtx *ctx, const TlTarget *target, const TlKernelCodes *kernels,
                               const void *code, size_t size, TlArena *out, TlArena *scratch)
{
    TL_ASSERT(target, "nothing to explain the kernels for");
    TlExplain e = {.ctx = ctx, .target = target, .out = out, .scratch = scratch};
    tilec_report *report = TL_NEW(out, tilec_report);
    tilec_report_kernel *all = TL_NEW_ARRAY(out, tilec_report_kernel, kernels->len + 1);
    Tools tools = ask_tools(target, code, size, scratch);
    for (uint32_t i = 0; i < kernels->len; i++) {
        e.k = &all[i];
        explain_kernel(&e, &kernels->data[i], &tools);
    }
    report->target = tl_explain_keep(&e, target->name);
    report->kernels = all;
    report->nkernels = kernels->len;
    explain_messages(&e, report);
    explain_sources(&e, report);
    return report;
}
