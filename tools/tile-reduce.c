/* tile-reduce: makes a .tir text smaller while a command still says, by exit status 0, that it is
 * interesting.
 *
 *     tile-reduce crash-cse.tir -o small.tir -- sh -c '! tile-opt --passes=cse --quiet "$1"' sh
 *
 * The command gets the path of each candidate as its last argument. What is tried, in rounds until
 * a round changes nothing: kernels go; launch facts and positions go; unused values go (the dce
 * pass); then edit by edit over all ops: an op goes, its results become an operand or zero; an op
 * with regions becomes one of them; hints, masks and others go; constants become zero. Edits of a
 * kind are tried in groups, all first, then halves, and so on, so that long texts shrink fast. A
 * candidate that is not valid IR is not tried. */
#include "passes/pass.h"
#include "tools/output.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
enum { EXIT_PROGRAM = 1, EXIT_USAGE = 2, EXIT_INTERNAL = 70 };

/* ---- edits: each is done to one op, and says whether it could ---- */

static bool is_plain(const TlType *t)
{
    return t->kind == TL_TILE && !t->ptr;
}

/* What may stand for a result: an operand of its type, or zero. */
static TlValue *substitute(TlOp *op, uint32_t i)
{
    const TlType *type = op->out[i]->type;
    for (uint32_t k = 0; k < op->nin; k++)
        if (tl_in(op, k)->type == type)
            return tl_in(op, k);
    TlBuilder b = tl_builder_before(op);
    return is_plain(type) ? tl_const_bits(&b, type, 0) : NULL;
}

static bool edit_erase(TlOp *op)
{
    if (op->opcode == TL_OP_CONST)
        return false;
    for (uint32_t i = 0; i < op->nout; i++) {
        if (!op->out[i]->uses)
            continue;
        TlValue *v = substitute(op, i);
        if (!v)
            return false;
        tl_replace_uses(op->out[i], v);
    }
    tl_op_erase(op);
    return true;
}

/* The region's ops take the op's place; `from`: the end's operand for result 0. */
static bool inline_region(TlOp *op, TlBlock *region, uint32_t from)
{
    TlOp *end = region->last;
    tl_block_move_ops(region, op->block, op);
    for (uint32_t i = 0; i < op->nout; i++)
        tl_replace_uses(op->out[i], tl_in(end, from + i));
    tl_op_erase(end);
    tl_op_erase(op);
    return true;
}

static bool edit_inline(TlOp *op)
{
    if (op->opcode == TL_OP_IF)
        return inline_region(op, op->regions[0], 0);
    if (op->opcode != TL_OP_FOR && op->opcode != TL_OP_WHILE)
        return false;
    TlBlock *region = op->regions[0];
    bool is_for = op->opcode == TL_OP_FOR;
    for (uint32_t i = 0; i < region->nargs; i++)
        tl_replace_uses(region->args[i], tl_in(op, is_for && i ? i + 2 : i));
    return inline_region(op, region, is_for ? 0 : 1);
}

static bool edit_inline_else(TlOp *op)
{
    return op->opcode == TL_OP_IF && inline_region(op, op->regions[1], 0);
}

static bool edit_hints(TlOp *op)
{
    static const TlAttrId hints[] = {TL_ATTR_UNROLL,   TL_ATTR_PIPELINE, TL_ATTR_SPECIALIZE,
                                     TL_ATTR_CACHE,    TL_ATTR_EVICT,    TL_ATTR_PRECISION,
                                     TL_ATTR_UNCHECKED};
    bool any = false;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        any |= tl_attr(op, hints[i]) != NULL;
        tl_attr_remove(op, hints[i]);
    }
    return any;
}

static bool edit_other(TlOp *op)
{
    if (!tl_attr_flag(op, TL_ATTR_OTHER))
        return false;
    tl_remove_operand(op, op->nin - 1);
    tl_attr_remove(op, TL_ATTR_OTHER);
    return true;
}

static bool edit_mask(TlOp *op)
{
    if (!tl_attr_flag(op, TL_ATTR_MASK))
        return false;
    tl_remove_operand(op, op->nin - 1 - tl_attr_flag(op, TL_ATTR_OTHER));
    tl_attr_remove(op, TL_ATTR_MASK);
    return true;
}

static bool edit_zero(TlOp *op)
{
    if (op->opcode != TL_OP_CONST || tl_attr(op, TL_ATTR_VALUE)->u.bits == 0)
        return false;
    tl_attr_set(op->block->fn, op, (TlAttr){.id = TL_ATTR_VALUE});
    return true;
}

static bool (*const edits[])(TlOp *op) = {edit_erase, edit_inline, edit_inline_else, edit_hints,
                                          edit_other, edit_mask,   edit_zero};
enum { EDITS = sizeof edits / sizeof *edits };

/* ---- steps over a module: op edits first, then those of the whole ---- */

enum { STEP_KERNEL = EDITS, STEP_INFO, STEP_DCE, STEP_POSITIONS, STEPS };

typedef struct Ops {
    TlArena *arena;
    TL_VEC(TlOp *) list;
} Ops;

static void list_ops(Ops *ops, TlModule *m)
{
    for (uint32_t f = 0; f < m->fns.len; f++)
        for (TlOp *op = m->fns.data[f]->body->first; op; op = tl_walk_next(op, NULL))
            if (!(tl_op_info(op->opcode)->flags & F_TERM))
                tl_vec_push(ops->arena, &ops->list, op);
}

/* How many spots a step has. */
static uint32_t count_spots(TlModule *m, int step)
{
    if (step == STEP_KERNEL)
        return m->fns.len;
    if (step >= EDITS)
        return 1;
    Ops ops = {.arena = &m->arena};
    list_ops(&ops, m);
    return ops.list.len;
}

/* The last op first, so that what is inside an op is edited before the op goes. */
static bool edit_ops(TlModule *m, int step, uint32_t first, uint32_t n)
{
    Ops ops = {.arena = &m->arena};
    list_ops(&ops, m);
    bool any = false;
    for (uint32_t i = first; i < first + n && i < ops.list.len; i++)
        any |= edits[step](ops.list.data[ops.list.len - 1 - i]);
    return any;
}

static bool drop_kernels(TlModule *m, uint32_t first, uint32_t n)
{
    uint32_t kept = 0;
    if (n >= m->fns.len)
        return false;
    for (uint32_t i = 0; i < m->fns.len; i++)
        if (i < first || i >= first + n)
            m->fns.data[kept++] = m->fns.data[i];
    bool any = kept < m->fns.len;
    m->fns.len = kept;
    return any;
}

static bool drop_infos(TlModule *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->fns.len; i++) {
        any |= m->fns.data[i]->info != NULL;
        m->fns.data[i]->info = NULL;
    }
    return any;
}

static bool run_dce(TlModule *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->fns.len; i++)
        any |= tl_pass_dce(m->fns.data[i], &(TlPassCtx){.ctx = m->ctx, .scratch = &m->arena}) ==
               TL_CHANGED;
    return any;
}

static bool drop_positions(TlModule *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->fns.len; i++) {
        TlFn *fn = m->fns.data[i];
        any |= fn->loc.line != 0;
        fn->loc = (TlLoc){0};
        for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
            any |= op->loc.line != 0;
            op->loc = (TlLoc){0};
        }
    }
    return any;
}

static bool apply(TlModule *m, int step, uint32_t first, uint32_t n)
{
    return step == STEP_KERNEL      ? drop_kernels(m, first, n)
           : step == STEP_INFO      ? drop_infos(m)
           : step == STEP_DCE       ? run_dce(m)
           : step == STEP_POSITIONS ? drop_positions(m)
                                    : edit_ops(m, step, first, n);
}

/* ---- candidates ---- */

typedef struct Reducer {
    TlArena arena;
    const char *input, *output, *candidate;
    char **command; /* with room for the candidate */
    const char *best;
    uint32_t tried, taken;
    bool cannot_write; /* a candidate: that has been said */
} Reducer;

static TlModule *parse(TlCtx *ctx, const char *text)
{
    return tl_parse_module(ctx, tl_diags_source(&ctx->diags, "candidate", text, strlen(text)));
}

/* One candidate, made in a context of its own: a step applied to the best text so far. */
typedef struct Try {
    Reducer *r;
    int step;
    uint32_t first, n, spots;
    const char *text; /* the candidate's, or NULL */
} Try;

static void make_candidate(Try *t, TlCtx *ctx)
{
    TlModule *m = parse(ctx, t->r->best);
    if (!m)
        return;
    t->spots = count_spots(m, t->step);
    TlSbuf s;
    tl_sbuf_init(&s, &t->r->arena);
    if (t->n == 0 || !apply(m, t->step, t->first, t->n) || !tl_verify_module(m, &s))
        return;
    s.len = 0;
    s.text[0] = 0;
    tl_print_module(&s, m);
    if (strcmp(s.text, t->r->best) != 0)
        t->text = s.text;
}

static void in_context(Try *t)
{
    TlCtx ctx;
    TlGuard g;
    tl_ctx_init(&ctx, (TlAlloc){0});
    if (TL_GUARD(&g)) {
        make_candidate(t, &ctx);
        tl_guard_pop(&g);
    }
    tl_ctx_free(&ctx);
}

static bool write_file(const char *path, const char *text)
{
    Outputs out = {.program = "tile-reduce"};
    bool ok = output_write(&out, path, text, strlen(text)) && output_commit(&out);
    output_drop(&out);
    return ok;
}

static bool is_interesting(Reducer *r, const char *text)
{
    r->tried++;
    r->cannot_write |= !write_file(r->candidate, text);
    if (r->cannot_write)
        return false;
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&quiet, 1, 2);
    pid_t pid;
    int error = posix_spawnp(&pid, r->command[0], &quiet, NULL, r->command, environ), status = 1;
    posix_spawn_file_actions_destroy(&quiet);
    if (error)
        fprintf(stderr, "tile-reduce: cannot run %s: %s\n", r->command[0], strerror(error));
    else if (waitpid(pid, &status, 0) < 0)
        return false;
    return !error && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* One kind of step in groups of `size`; true when something was taken. */
static bool reduce_groups(Reducer *r, int step, uint32_t size)
{
    bool any = false;
    for (uint32_t first = 0;;) {
        Try t = {.r = r, .step = step, .first = first, .n = size};
        in_context(&t);
        if (t.text && is_interesting(r, t.text)) {
            r->best = t.text;
            r->taken++;
            any = true;
            if (!write_file(r->output, r->best))
                return false;
            if (step < EDITS && edits[step] == edit_erase)
                continue; /* the spots after it moved up */
        }
        first += size;
        if (first >= t.spots)
            return any;
    }
}

static bool reduce_step(Reducer *r, int step)
{
    Try count = {.r = r, .step = step};
    in_context(&count);
    bool any = false;
    for (uint32_t size = count.spots ? count.spots : 1; size > 0; size /= 2)
        any |= reduce_groups(r, step, size);
    return any;
}

static int reduce(Reducer *r)
{
    if (!is_interesting(r, r->best)) {
        if (r->cannot_write)
            return EXIT_USAGE;
        fprintf(stderr, "tile-reduce: the command does not find %s interesting\n", r->input);
        return EXIT_PROGRAM;
    }
    if (!write_file(r->output, r->best))
        return EXIT_USAGE;
    static const int order[] = {STEP_KERNEL, STEP_INFO, STEP_DCE, 0, 1, 2,
                                STEP_DCE,    3,         4,        5, 6, STEP_POSITIONS};
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < sizeof order / sizeof *order; i++)
            any |= reduce_step(r, order[i]);
    }
    fprintf(stderr, "tile-reduce: %u candidates, %u taken, %zu bytes left in %s\n", r->tried,
            r->taken, strlen(r->best), r->output);
    return 0;
}

/* ---- the command line ---- */

static int usage(void)
{
    fprintf(stderr, "tile-reduce FILE.tir [-o OUT.tir] -- COMMAND [ARGUMENTS]\n"
                    "makes FILE smaller while COMMAND ARGUMENTS CANDIDATE exits with 0 (default "
                    "output: reduced.tir)\n");
    return EXIT_USAGE;
}

static bool read_input(Reducer *r)
{
    TlSbuf s;
    tl_sbuf_init(&s, &r->arena);
    FILE *f = fopen(r->input, "rb");
    bool ok = f && tl_sbuf_read(&s, f, SIZE_MAX);
    if (!ok)
        fprintf(stderr, "tile-reduce: cannot read %s: %s\n", r->input, strerror(errno));
    if (f)
        fclose(f);
    r->best = s.text;
    return ok;
}

static int run(Reducer *r, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            r->output = argv[++i];
        else if (argv[i][0] == '-' || r->input)
            return usage();
        else
            r->input = argv[i];
    }
    if (!r->input || i + 1 >= argc)
        return usage();
    if (!r->output)
        r->output = "reduced.tir";
    if (output_same(r->input, r->output)) {
        fprintf(stderr, "tile-reduce: '%s' is read and written\n", r->output);
        return EXIT_USAGE;
    }
    r->candidate = tl_format(&r->arena, "%s.try", r->output);
    int n = argc - i - 1;
    r->command = TL_NEW_ARRAY(&r->arena, char *, n + 2);
    memcpy(r->command, argv + i + 1, sizeof *argv * (size_t)n);
    r->command[n] = (char *)r->candidate;
    if (!read_input(r))
        return EXIT_PROGRAM;
    int status = reduce(r);
    remove(r->candidate);
    return status;
}

int main(int argc, char **argv)
{
    static Reducer r;
    output_begin();
    tl_arena_init(&r.arena, (TlAlloc){0});
    TlGuard g;
    int status = EXIT_INTERNAL;
    if (TL_GUARD(&g)) {
        status = run(&r, argc, argv);
        tl_guard_pop(&g);
    } else {
        fprintf(stderr, "tile-reduce: internal error: %s\n", g.text);
    }
    tl_arena_free(&r.arena);
    return status;
}
