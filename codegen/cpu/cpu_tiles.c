/* Multiplies packed panels of B by AMX's tiles, for cpu_multiply.c. Of the eight tile registers
 * four are a block of sums, 32 rows by 32 columns, two are of A, 16 rows by 64 bytes along k, two
 * of B, 16 packed rows by 16 columns: what lies so in packed A, or in A's memory, and in a panel.
 *
 * All sizes of tiles are set at once, by an instruction, which clears them: for blocks that have
 * all rows, then for the rows that are left. Tiles have sizes only here, where nothing is called:
 * no exit is without the instruction that gives them back, so that no thread carries their 8 KB
 * from one switch to the next. */
#include "codegen/cpu/cpu_matmul.h"

enum {
    ROWS = TL_CPU_TILE_ROWS,
    SUM_BYTES = 4,
    COLUMNS = TL_CPU_TILE_BYTES / SUM_BYTES,
    SUMS = 0, /* numbers of tile registers: sums, row by row */
    OF_A = SUMS + TL_NEST_TILES * TL_NEST_TILES,
    OF_B = OF_A + TL_NEST_TILES,
    TILES = OF_B + TL_NEST_TILES,
    /* What sets sizes: its kind, for each tile the bytes of a row, two bytes each, and the rows. */
    SIZES_BYTES = 64,
    SIZES_KIND = 1,
    SIZES_ROW = 16,
    SIZES_ROWS = 48,
};

typedef struct Tiles {
    TlCpuMultiply *x;
    LLVMValueRef sizes;       /* memory */
    LLVMValueRef depth;       /* packed elements along k of a tile */
    LLVMValueRef first, last; /* panels first .. last - 1 */
    int down, across;         /* tiles of a block */
} Tiles;

static LLVMValueRef tile(const Tiles *t, int n)
{
    TL_ASSERT(n >= 0 && n < TILES, "tile register %d", n);
    return LLVMConstInt(t->x->g->gen.i8, (unsigned)n, 0);
}

static void call(const Tiles *t, const char *name, LLVMValueRef *args, unsigned n)
{
    tl_gen_intrinsic(&t->x->g->gen, name, NULL, 0, args, n);
}

/* Loads or stores tile n at p, of which rows are so many bytes apart. */
static void access_tile(const Tiles *t, const char *name, int n, LLVMValueRef p, LLVMValueRef row)
{
    LLVMValueRef args[] = {tile(t, n), p, row};
    call(t, name, args, 3);
}

static void load(const Tiles *t, int n, LLVMValueRef p, LLVMValueRef row)
{
    access_tile(t, "llvm.x86.tileloadd64", n, p, row);
}

/* ---- sizes ---- */

static void set_size(const Tiles *t, int at, LLVMValueRef size, LLVMTypeRef type)
{
    TlCpuGen *g = t->x->g;
    LLVMValueRef offset = tl_gen_int(&g->gen, at);
    LLVMValueRef p = LLVMBuildInBoundsGEP2(g->b, g->i8, t->sizes, &offset, 1, "");
    LLVMSetAlignment(LLVMBuildStore(g->b, LLVMBuildTrunc(g->b, size, type, ""), p), 1);
}

/* Tile n has so many rows, of so many bytes. */
static void set_tile(const Tiles *t, int n, LLVMValueRef rows, LLVMValueRef bytes)
{
    set_size(t, SIZES_ROW + 2 * n, bytes, t->x->g->i16);
    set_size(t, SIZES_ROWS + n, rows, t->x->g->i8);
}

/* From now on the upper tiles of sums have `upper` rows, the lower ones `lower`. */
static void set_sizes(const Tiles *t, LLVMValueRef upper, LLVMValueRef lower)
{
    TlCpuGen *g = t->x->g;
    LLVMValueRef rows[TL_NEST_TILES] = {upper, lower}, sizes = t->sizes;
    LLVMValueRef whole = tl_gen_int(&g->gen, TL_CPU_TILE_BYTES);
    for (int i = 0; i < TL_NEST_TILES; i++) {
        for (int j = 0; j < TL_NEST_TILES; j++)
            set_tile(t, SUMS + TL_NEST_TILES * i + j, rows[i], whole);
        set_tile(t, OF_A + i, rows[i], tl_cpu_times(g, t->depth, SUM_BYTES));
        set_tile(t, OF_B + i, t->depth, whole);
    }
    call(t, "llvm.x86.ldtilecfg", &sizes, 1);
}

/* ---- blocks of sums ---- */

static LLVMValueRef bytes_of(const Tiles *t, LLVMValueRef sums)
{
    return tl_cpu_times(t->x->g, sums, SUM_BYTES);
}

/* Does it with all sums of the block at p, of which rows are so many sums apart. */
static void access_sums(const Tiles *t, const char *name, LLVMValueRef p, LLVMValueRef row)
{
    TlCpuGen *g = t->x->g;
    for (int i = 0; i < t->down; i++)
        for (int j = 0; j < t->across; j++) {
            LLVMValueRef at = tl_cpu_add(g, tl_cpu_times(g, row, (int64_t)i * ROWS),
                                         tl_gen_int(&g->gen, (int64_t)j * COLUMNS));
            access_tile(t, name, SUMS + TL_NEST_TILES * i + j, tl_cpu_elem_at(t->x, p, at),
                        bytes_of(t, row));
        }
}

static void begin_sums(const Tiles *t, LLVMValueRef p)
{
    if (!t->x->from_zero) {
        access_sums(t, "llvm.x86.tileloadd64", p, tl_gen_int(&t->x->g->gen, t->x->acc_row));
        return;
    }
    for (int i = 0; i < t->down; i++)
        for (int j = 0; j < t->across; j++) {
            LLVMValueRef n = tile(t, SUMS + TL_NEST_TILES * i + j);
            call(t, "llvm.x86.tilezero", &n, 1);
        }
}

/* Sums += A's tiles at `a` times B's at `b`: a tile is loaded when the first product wants it. */
static void multiply_tiles(const Tiles *t, LLVMValueRef a, LLVMValueRef b)
{
    TlCpuMultiply *x = t->x;
    TlCpuGen *g = x->g;
    LLVMValueRef row = tl_cpu_times(g, x->a_row, tl_dtype_bytes(x->p->part[0])),
                 below = tl_cpu_times(g, x->a_row, ROWS);
    for (int i = 0; i < t->down; i++) {
        load(t, OF_A + i, i ? tl_cpu_part_at(x, a, below) : a, row);
        for (int j = 0; j < t->across; j++) {
            LLVMValueRef n[] = {tile(t, SUMS + TL_NEST_TILES * i + j), tile(t, OF_A + i),
                                tile(t, OF_B + j)};
            if (!i)
                load(t, OF_B + j, tl_cpu_elem_at(x, b, tl_gen_int(&g->gen, (int64_t)j * COLUMNS)),
                     bytes_of(t, tl_gen_int(&g->gen, x->panel)));
            call(t, x->p->tile, n, 3);
        }
    }
}

/* Sums += the chunk's part of the block. */
static void add_chunk(const Tiles *t, LLVMValueRef m, LLVMValueRef panel)
{
    TlCpuMultiply *x = t->x;
    TlCpuGen *g = x->g;
    LLVMValueRef a = tl_cpu_part_at(x, x->a, LLVMBuildMul(g->b, m, x->a_row, "")),
                 b = tl_cpu_panel_of_chunk(x, panel);
    TlCpuLoop l;
    tl_cpu_loop_begin(g, &l, tl_gen_int(&g->gen, 0), x->count, 1, 0, NULL);
    l.by = t->depth;
    multiply_tiles(t, tl_cpu_part_at(x, a, tl_cpu_times(g, l.i, x->per)),
                   tl_cpu_elem_at(x, b, tl_cpu_times(g, l.i, x->panel)));
    tl_cpu_loop_end(g, &l, NULL);
}

static void add_gathered(const Tiles *t, LLVMValueRef m, LLVMValueRef panel)
{
    TlCpuLoop l;
    tl_cpu_loop_begin(t->x->g, &l, tl_gen_int(&t->x->g->gen, 0), t->x->ngathered, 1, 0, NULL);
    TlCpuMultiply x = tl_cpu_gathered_chunk(t->x, l.i);
    Tiles of_chunk = *t;
    of_chunk.x = &x;
    add_chunk(&of_chunk, m, panel);
    tl_cpu_loop_end(t->x->g, &l, NULL);
}

/* Where the block is, in sums of rows that are so far apart. */
static LLVMValueRef block_at(const Tiles *t, LLVMValueRef base, LLVMValueRef row, LLVMValueRef m,
                             LLVMValueRef panel)
{
    TlCpuGen *g = t->x->g;
    LLVMValueRef at =
        tl_cpu_add(g, LLVMBuildMul(g->b, m, row, ""), tl_cpu_times(g, panel, t->x->panel));
    return tl_cpu_elem_at(t->x, base, at);
}

static void block(const Tiles *t, LLVMValueRef m, LLVMValueRef panel)
{
    TlCpuMultiply *x = t->x;
    LLVMValueRef acc_row = tl_gen_int(&x->g->gen, x->acc_row);
    LLVMValueRef base = x->out ? x->out : x->acc, row = x->out ? x->out_row : acc_row;
    begin_sums(t, block_at(t, x->acc, acc_row, m, panel));
    if (x->gathered)
        add_gathered(t, m, panel);
    else
        add_chunk(t, m, panel);
    access_sums(t, "llvm.x86.tilestored64", block_at(t, base, row, m, panel), row);
}

/* ---- rows ---- */

/* Rows from .. to - 1, so many tiles of them at a time, times the panels. */
static void multiply_rows(Tiles *t, LLVMValueRef from, LLVMValueRef to, int down)
{
    TlCpuGen *g = t->x->g;
    TlCpuLoop rows, panels;
    t->down = down;
    tl_cpu_loop_begin(g, &rows, from, to, (int64_t)down * ROWS, 0, NULL);
    tl_cpu_loop_begin(g, &panels, t->first, t->last, 1, 0, NULL);
    block(t, rows.i, panels.i);
    tl_cpu_loop_end(g, &panels, NULL);
    tl_cpu_loop_end(g, &rows, NULL);
}

/* Blocks that have all rows; panels as many at a time as stay in the second cache. */
static void multiply_whole(Tiles *t, LLVMValueRef from, LLVMValueRef to)
{
    TlCpuMultiply *x = t->x;
    TlCpuGen *g = x->g;
    LLVMValueRef rows = tl_gen_int(&g->gen, ROWS), zero = tl_gen_int(&g->gen, 0);
    TlCpuBranch some =
        tl_cpu_branch(g, LLVMBuildICmp(g->b, LLVMIntSGT, to, from, ""), true, "whole", "left");
    TlCpuLoop groups;
    set_sizes(t, rows, rows);
    tl_cpu_loop_begin(g, &groups, zero, x->panels, x->n->group, 0, NULL);
    t->first = groups.i;
    t->last =
        tl_cpu_smaller(g, x->panels, tl_cpu_add(g, groups.i, tl_gen_int(&g->gen, x->n->group)));
    multiply_rows(t, from, to, TL_NEST_TILES);
    tl_cpu_loop_end(g, &groups, NULL);
    tl_cpu_join(g, some);
}

/* The rows that are left, at most one block, of one tile or two. */
static void multiply_left(Tiles *t, LLVMValueRef from, LLVMValueRef to)
{
    TlCpuGen *g = t->x->g;
    LLVMValueRef rows = tl_gen_int(&g->gen, ROWS), left = LLVMBuildSub(g->b, to, from, "");
    TlCpuBranch some =
        tl_cpu_branch(g, LLVMBuildICmp(g->b, LLVMIntSGT, to, from, ""), true, "left", "done");
    LLVMValueRef two = LLVMBuildICmp(g->b, LLVMIntSGT, left, rows, ""),
                 lower = LLVMBuildSub(g->b, left, rows, "");
    set_sizes(t, tl_cpu_smaller(g, left, rows), LLVMBuildSelect(g->b, two, lower, rows, ""));
    t->first = tl_gen_int(&g->gen, 0);
    t->last = t->x->panels;
    TlCpuFork fork = tl_cpu_fork(g, two);
    multiply_rows(t, from, to, 2);
    tl_cpu_fork_else(g, &fork, NULL);
    multiply_rows(t, from, to, 1);
    tl_cpu_fork_end(g, &fork, NULL);
    tl_cpu_join(g, some);
}

/* Tiles are the deeper where a chunk is a whole number of the greatest: gathered chunks, which have
 * one size of tiles, may not all be. */
static LLVMValueRef depth_of(TlCpuMultiply *x)
{
    TlCpuGen *g = x->g;
    LLVMValueRef most = tl_gen_int(&g->gen, COLUMNS), known = tl_gen_int(&g->gen, x->p->tile_depth);
    if (x->gathered || x->p->tile_depth == COLUMNS)
        return known;
    LLVMValueRef left = LLVMBuildURem(g->b, x->count, most, "");
    return LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, left, tl_gen_int(&g->gen, 0), ""),
                           most, known, "");
}

void tl_cpu_multiply_tiles(TlCpuMultiply *x)
{
    TlCpuGen *g = x->g;
    TL_ASSERT(!x->last && !x->a_listed && !x->narrow, "what tiles do not do");
    Tiles t = {
        .x = x, .sizes = tl_cpu_variable(g, SIZES_BYTES), .depth = depth_of(x), .across = x->nv};
    LLVMValueRef block = tl_gen_int(&g->gen, x->n->mr),
                 rows = LLVMBuildSub(g->b, x->to, x->from, "");
    LLVMValueRef whole = LLVMBuildUDiv(g->b, rows, block, "");
    LLVMValueRef turn = tl_cpu_add(g, x->from, LLVMBuildMul(g->b, whole, block, ""));
    LLVMTypeRef all = LLVMVectorType(g->i8, SIZES_BYTES);
    LLVMBuildStore(g->b, LLVMConstNull(all), t.sizes);
    set_size(&t, 0, tl_gen_int(&g->gen, SIZES_KIND), g->i8);
    multiply_whole(&t, x->from, turn);
    multiply_left(&t, turn, x->to);
    call(&t, "llvm.x86.tilerelease", NULL, 0);
}
