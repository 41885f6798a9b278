/* How many registers ptxas may take (ptxas_limit.h).
 *
 * Where only .reqntid stands, ptxas first orders the code as if there were all registers, and then
 * tries how few the code can be given: each step is one block more on a multiprocessor. It takes a
 * step although something is spilled, if by its own count that costs little: words that are needed
 * around an inner loop, but not in it. Stated a limit, it orders the code for that, and the
 * same code fits in the same step without spills: pool3d took 48 registers and 16 bytes of local
 * memory by itself, 48 and none with `.maxnreg 48`. So two kinds of kernels state one:
 *
 *   full     those that will have no more blocks than fit with all registers of a thread: by
 *            three quarters of the estimate, or by what tiles take at products, which is known
 *            better
 *   nested   those with loops in loops in loops, or with products in one loop and another loop
 *            around or beside it: the step above the estimate and a half of it. Less would be too
 *            little where the estimate is low; more would leave multiprocessors empty. Where loops
 *            without products are two deep, ptxas spilled in a few forms of the library, and stated
 *            so it spilled in others: those kernels state `maxreg`
 *
 * The limit is `.minnctapersm`: blocks that a multiprocessor must have room for. */
#include "codegen/gpu/ptxas_limit.h"

#include "ir/plan/mma.h"
#include "passes/analysis/alive.h"
#include "passes/analysis/registers.h"

enum {
    UNIT = 8,      /* registers are given in eights */
    LEAST = 32,    /* with which every number of blocks that there may be fits */
    DEEP = 3,      /* loops */
    NESTED = 40,   /* that kernels with so deep loops may have at least */
    SQUEEZED = 40, /* below, ptxas tries harder */
    BESIDE = 16    /* what is beside tiles at products, at least */
};

/* Words of a thread that hold tiles at the product where most do; 0: there is none. */
static int64_t words_at_products(TlArena *arena, const TlFn *fn)
{
    int64_t most = 0;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        bool product = op->opcode == TL_OP_DOT_ASYNC || (op->opcode == TL_OP_DOT && tl_mma_of(op));
        int64_t words = product ? tl_words_alive(fn, arena, op) : 0;
        most = words > most ? words : most;
    }
    return most;
}

/* Loops around an op, itself with them. */
static int depth_of(const TlOp *op)
{
    int depth = 0;
    for (; op; op = op->block->parent)
        depth += tl_is_loop(op);
    return depth;
}

static bool is_nested(const TlFn *fn)
{
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (tl_is_loop(op) && depth_of(op) >= DEEP)
            return true;
    return false;
}

/* Loops around or beside a product that is in a loop: what is for the others lives around it. */
static bool has_loops_beside(const TlFn *fn)
{
    int loops = 0, products = 0;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        loops += tl_is_loop(op);
        products += depth_of(op) && (op->opcode == TL_OP_DOT || op->opcode == TL_OP_DOT_ASYNC);
    }
    return loops > 1 && products;
}

static int64_t round_up(int64_t registers)
{
    return (registers + UNIT - 1) / UNIT * UNIT;
}

static int64_t file_of(const TlTarget *t)
{
    return (int64_t)t->file * t->schedulers * t->lanes;
}

/* Blocks that fit with so many registers of a thread, at least one. */
static int64_t blocks_with(const TlTarget *t, uint32_t threads, int64_t registers)
{
    int64_t fit = file_of(t) / (round_up(registers) * threads);
    return fit < 1 ? 1 : fit < t->blocks ? fit : t->blocks;
}

/* Registers that each thread of so many blocks may have. */
static int64_t registers_of(const TlTarget *t, uint32_t threads, int64_t blocks)
{
    int64_t n = file_of(t) / (blocks * threads) / UNIT * UNIT;
    return n < t->registers ? n : t->registers;
}

/* What ptxas takes of what a kernel needs where it may choose: the step below, if that is near. */
static int64_t squeezed(const TlTarget *t, uint32_t threads, int64_t need)
{
    int64_t blocks = blocks_with(t, threads, need) + 1, below = registers_of(t, threads, blocks),
            more = below < SQUEEZED ? 50 : 25; /* hundredths */
    return blocks <= t->blocks && below >= LEAST && 100 * need <= (100 + more) * below ? below
                                                                                       : need;
}

/* The blocks to state, and why; 0: ptxas chooses. */
static void state_blocks(TlPtxasLimit *out, const TlTarget *t, const TlFn *fn, uint32_t threads,
                         const TlRegisterNeed *need, TlArena *scratch)
{
    int64_t words = words_at_products(scratch, fn), sure = need->registers - need->registers / 4,
            fit = blocks_with(t, threads, t->registers + 1), nested = (int64_t)need->taken * 3 / 2;
    sure = words && words + BESIDE > sure ? words + BESIDE : sure;
    nested = nested < NESTED ? NESTED : nested > t->registers ? t->registers + 1 : nested;
    if (blocks_with(t, threads, sure) <= fit) {
        out->blocks = (uint32_t)fit;
        out->why = "no more blocks fit with what a thread needs for sure";
    } else if (is_nested(fn) || has_loops_beside(fn)) {
        out->blocks = (uint32_t)blocks_with(t, threads, nested);
        out->why = "to make room for more blocks, ptxas would spill what inner loops do not use";
    }
}

TlPtxasLimit tl_ptxas_limit(const TlTarget *t, const TlFn *fn, uint32_t threads, TlArena *scratch)
{
    TL_ASSERT(threads > 0 && threads <= 1024 && t->file, "a block of %u threads", threads);
    TlRegisterNeed need =
        tl_registers_needed(fn, tl_axis_info(fn, scratch), TL_ALLOCATOR_PTXAS, scratch);
    TlPtxasLimit out = {.most = t->registers};
    if (fn->info && fn->info->maxreg) {
        out.most = fn->info->maxreg < t->registers ? (int)fn->info->maxreg : t->registers;
        out.why = "the kernel's maxreg";
    } else {
        state_blocks(&out, t, fn, threads, &need, scratch);
    }
    out.stated = out.why != NULL;
    if (out.blocks)
        out.most = (int)registers_of(t, threads, out.blocks);
    int64_t n = out.stated ? need.taken : squeezed(t, threads, need.taken);
    out.expected = (int)(n < out.most || need.registers > t->registers ? n : out.most);
    return out;
}
