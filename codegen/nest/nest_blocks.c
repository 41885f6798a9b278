/* Matrix products: blocks of sums in registers, panels, how operands are packed. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum {
    MAX_ROWS = 12,         /* of any block */
    NARROW_ROWS = 8,       /* of a block in a narrow panel */
    SMALL_ROWS = 4,        /* of a block of rows that are left */
    WIDE_PANEL = 16,       /* columns; where they are more, the last may be in narrow panels */
    GROUP_BYTES = 1 << 17, /* of panels that stay in the second cache while all rows are read */
    FIRST_CACHE = 1 << 15, /* bytes; panels that are larger are asked for ahead */
    FEW_ROWS_VECTORS = 5,  /* of a block of four rows, at least, if these divide the columns */
    FEW_COLUMNS = 16,      /* so few that reading A takes longer than multiplying */
    FEW_ALONG = 16,        /* rows whose sums lie along k, */
    MORE_ALONG = 64,       /* in 32 registers, where A is not flipped, so that it is not packed */
    ALONG_EACH = 10,       /* elements of k that take as long as adding up a row's lanes */
    TILES_FEWER = 4,       /* where tiles multiply packed B, rows that do not pack it are fewer */
    FEW_RUN = 1 << 12,     /* bytes of a row, of which the first cache holds those of a block */
    FEW_DEPTH = 64,        /* packed rows of B that several blocks find in the first cache */
    SMALL_B_ROWS = 128,    /* for which B is not packed, if all of it stays in the first cache */
    FEW_TILE_ROWS = 16,    /* of a tile that is for few rows, which has code of its own for them */
    SOME_ROWS = 512,       /* for more, packing takes less than 0.03 of the time */
};

/* ---- one product ---- */

/* The operand of a transposition that swaps the last two axes: other strides have that effect. */
static TlValue *under_transposition(TlValue *v)
{
    if (!v->def || v->def->opcode != TL_OP_TRANS)
        return NULL;
    const int64_t *perm = tl_attr(v->def, TL_ATTR_PERM)->u.ints;
    int r = v->type->rank;
    return perm[r - 1] == r - 2 && perm[r - 2] == r - 1 ? tl_in(v->def, 0) : NULL;
}

/* Where operand v is, in this type: in a home, or filled into `pack`. */
static TlNestOperand find_operand(TlNests *plan, TlOp *dot, TlValue *v, TlDtype dtype, int32_t pack,
                                  bool any_strides)
{
    TlNestPlace place = plan->place[v->id];
    if (place.kind == TL_NEST_HOME && v->type->dtype == dtype)
        return (TlNestOperand){place.buffer, false};
    TlValue *x = place.kind == TL_NEST_VIRTUAL ? under_transposition(v) : NULL;
    if (any_strides && x && plan->place[x->id].kind == TL_NEST_HOME && x->type->dtype == dtype)
        return (TlNestOperand){plan->place[x->id].buffer, true};
    tl_nest_materialise(plan, dot, v, dtype, pack);
    return (TlNestOperand){pack, false};
}

/* The accumulators, one row of b and one broadcast element must fit in registers. All blocks have
 * the same number of rows, the one with the least total cost; a block costs its rows plus one for
 * the loads of b. */
static void choose_block(const TlNests *plan, TlNest *n, int64_t m, int64_t columns)
{
    int64_t vectors = columns / n->width, best = INT64_MAX;
    int most = plan->m.nregs >= 32 ? 4 : 2, budget = plan->m.nregs >= 32 ? 24 : 12;
    n->nv = (int)(vectors < most ? vectors : most);
    int rows = budget / n->nv < MAX_ROWS ? budget / n->nv : MAX_ROWS;
    for (int mr = m < rows ? (int)m : rows; mr > 0; mr--) {
        int64_t cost = (m + mr - 1) / mr * (mr + 1);
        if (cost < best) {
            best = cost;
            n->mr = mr;
        }
    }
    n->panel = (int64_t)n->nv * n->width;
}

void tl_nest_build_dot(TlNests *plan, TlOp *dot, int32_t pack)
{
    const TlType *out = dot->out[0]->type;
    TlDtype d = out->dtype, wide = d == TL_F64 || tl_is_int(d) ? d : TL_F32;
    int32_t own = plan->place[dot->out[0]->id].buffer, home = d == wide ? own : pack + 2;
    TlNestOperand a = find_operand(plan, dot, tl_in(dot, 0), wide, pack, true);
    TlNestOperand b = find_operand(plan, dot, tl_in(dot, 1), wide, pack + 1, false);
    tl_nest_materialise(plan, dot, tl_in(dot, 2), wide, home);
    TlType sums = *out;
    sums.dtype = wide;
    TlNest *n = tl_nest_new(plan, TL_NEST_DOT, dot, &sums);
    int r = n->form.rank;
    n->home = home;
    n->operand[0] = a;
    n->operand[1] = b;
    n->lane = r - 1;
    tl_nest_take_whole(n, plan->m.vector_bytes / tl_dtype_bytes(wide));
    choose_block(plan, n, n->form.extent[r - 2], n->form.padded[r - 1]);
    if (wide != d)
        tl_nest_copy(plan, dot, out, wide, home, own, plan->m.vector_bytes / 4);
}

/* ---- the packing of operands ---- */

/* How many lanes pack v along its columns: a divisor of n. */
static int pack_width(const TlNests *plan, TlNest *x, int64_t n)
{
    bool transposed;
    const TlNestProduct *p = x->product;
    int most = 2 * plan->m.vector_bytes / tl_dtype_bytes(x->is_b ? p->dtype : p->part[0]);
    most = most < TL_NEST_LANES ? most : TL_NEST_LANES;
    int w = most, dense = tl_nest_dense_dim(plan->fn, x->value);
    TlOp *load = tl_nest_load_under(x->value, &transposed);
    if (load ? transposed && dense != 1 : dense == 0)
        w = 1;
    else if (!load || !transposed)
        w = tl_nest_width(plan, x->value, TL_NEST_LANES, false, &x->limit);
    return tl_nest_fit_width(n, w < most ? w : most);
}

/* How many rows (of pairs) and columns a block has, if v's columns are contiguous in memory and its
 * rows are not. 0: v is not read down its columns. */
static int pack_transposes(const TlNests *plan, TlNest *x, int64_t panel)
{
    bool transposed;
    const TlNestProduct *p = x->product;
    TlValue *v = x->value;
    if (tl_nest_dense_dim(plan->fn, v) != 0 || (!x->is_b && p->a_by_columns))
        return 0;
    int w = tl_nest_transpose_width(plan, x->is_b ? p->dtype : p->part[0]);
    int rows = tl_nest_fit_width(v->type->shape[0], x->is_b ? w * p->per : w);
    if (!tl_nest_load_under(v, &transposed))
        rows = tl_nest_width(plan, v, rows, false, &x->limit);
    w = rows / (x->is_b ? p->per : 1);
    w = w ? tl_nest_fit_width(v->type->shape[1], w) : 0;
    w = w && x->is_b ? tl_nest_fit_width(panel, w) : w;
    return w >= 4 ? w : 0;
}

/* Rows of B are packed up to A's end where A is read in memory, which is B's end, too: so they are
 * inside. */
static void cut(TlNests *plan, TlNest *x)
{
    const TlNestProduct *p = x->product;
    bool transposed;
    x->cuts = p->a_load && !p->a_transposed && !p->a_is_whole && p->per == 1;
    if (!x->cuts)
        return;
    TlOp *load = tl_nest_load_under(x->value, &transposed);
    TL_ASSERT(load, "A's end is not B's");
    x->boxed = tl_map_get_ptr(&plan->access, load);
    x->boxed_axes = 1u << tl_nest_slice_of(&x->boxed->place, transposed ? 1 : 0);
}

static void split_pack(TlNests *plan, TlNest *x, const TlNest *of)
{
    int width = x->width;
    tl_nest_ask_value(plan, x, x->value, x->lane, false);
    tl_nest_split(plan, x, x->form.extent[x->lane], width);
    if (x->split == TL_NEST_ONE)
        x->split = TL_NEST_SPLIT;
    x->width = width;
    x->tested = x->transposed ? width : tl_nest_tested_width(plan, width);
    if (x->is_b && x->lane == 1 && of->narrow) /* no vector goes on from a panel to a narrow one */
        x->tested = tl_nest_fit_width(of->width, x->tested);
}

static TlNest *build_pack(TlNests *plan, TlNest *of, bool is_b)
{
    const TlNestProduct *p = of->product;
    TlValue *v = tl_in(p->dot, is_b ? 1 : 0);
    TlNest *x = tl_nest_new(plan, TL_NEST_PACK, of->op, v->type);
    bool transposed;
    x->product = p;
    x->value = v;
    x->is_b = is_b;
    x->home = is_b ? p->b : p->a;
    x->transposed = pack_transposes(plan, x, of->panel);
    bool down = !is_b && p->a_by_columns;
    x->lane = x->transposed || down ? 0 : 1;
    if (x->transposed)
        x->width = is_b ? x->transposed * p->per : x->transposed;
    else if (down)
        x->width = tl_nest_fit_width(v->type->shape[0],
                                     plan->m.vector_bytes / tl_dtype_bytes(p->part[0]));
    else if (is_b)
        x->width = pack_width(plan, x, of->panel);
    else
        x->width = x->form.lane == 1 ? pack_width(plan, x, v->type->shape[1]) : 1;
    if (is_b && !x->transposed) {
        x->below = tl_nest_load_under(v, &transposed);
        x->below = transposed ? NULL : x->below;
        cut(plan, x);
    }
    if (down && p->a_packs)
        x->below = p->a_load;
    split_pack(plan, x, of);
    return x;
}

/* ---- a loop ---- */

/* Do two rows of a block share the last vector of the only panel? Half of it is padding, and their
 * elements of A lie side by side, so that one instruction reads both. */
static bool shares_last_vectors(const TlNest *n, int64_t columns)
{
    const TlNestProduct *p = n->product;
    int64_t padding = columns - n->form.extent[1];
    return p->a_by_columns && p->per == 1 && n->width >= 4 && n->mr % 2 == 0 &&
           n->small_mr % 2 == 0 && n->panel == columns && padding >= n->width / 2;
}

/* Of AMX's eight tiles, four are sums: as many are loaded, of A and B, as are multiplied. */
static void choose_tiles(TlNest *n, int64_t vectors)
{
    n->nv = vectors % TL_NEST_TILES ? 1 : TL_NEST_TILES;
    n->mr = n->small_mr = TL_NEST_TILES * TL_CPU_TILE_ROWS;
    n->panel = (int64_t)n->nv * n->width;
}

/* The accumulators, one row of b and one broadcast element must fit in registers; panels must
 * divide the columns. */
static void choose_panels(const TlNests *plan, TlNest *n, int64_t columns, int64_t rows)
{
    int64_t vectors = columns / n->width;
    bool many = plan->m.nregs >= 32;
    if (n->product->tile) {
        choose_tiles(n, vectors);
        return;
    }
    n->nv = many ? 4 : 2;
    while (vectors % n->nv)
        n->nv--;
    n->mr = (many ? 24 : 12) / n->nv;
    if (n->mr > MAX_ROWS)
        n->mr = MAX_ROWS;
    if (n->mr > rows)
        n->mr = (int)rows;
    n->small_mr = n->mr < SMALL_ROWS ? n->mr : SMALL_ROWS;
    n->panel = (int64_t)n->nv * n->width;
    n->halves = shares_last_vectors(n, columns);
}

void tl_nest_build_lone_product(TlNests *plan, const TlNestProduct *p)
{
    const TlType *type = p->dot->out[0]->type;
    int32_t home = plan->place[p->dot->out[0]->id].buffer;
    if (!p->from_zero)
        tl_nest_materialise(plan, p->dot, tl_in(p->dot, 2), p->dtype, home);
    TlNest *n = tl_nest_new(plan, TL_NEST_DOT, p->dot, type);
    n->product = p;
    n->home = home;
    n->lane = 1;
    tl_nest_take_whole(n, plan->m.vector_bytes / tl_dtype_bytes(p->dtype));
    choose_panels(plan, n, n->form.padded[1], type->shape[0]);
    n->group = n->form.padded[1] / n->panel;
    n->pack[1] = build_pack(plan, n, true);
    n->pack[0] = build_pack(plan, n, false);
}

/* Are rows of panels of so many columns asked for before they are read? Chunks of few rows are too
 * short for that. */
static bool does_fetch(const TlNestProduct *p, int64_t columns)
{
    return !p->tile && columns * p->depth * tl_dtype_bytes(p->dtype) > FIRST_CACHE &&
           tl_in(p->dot, 1)->type->shape[0] > TL_NEST_AHEAD;
}

/* Where columns are few, chunks are as deep as B's buffer has room for, so that A is read in long
 * runs; but not if A is packed, for want of room. */
static void choose_depth(TlNest *n, int64_t columns)
{
    const TlNestProduct *p = n->product;
    int64_t deeper = columns / FEW_COLUMNS;
    n->few = FEW_COLUMNS;
    n->most_trips = p->trips * (deeper > 1 ? deeper : 1);
    n->deepens = p->a_load && p->per == 1 && !p->a_is_whole && !p->a_rows;
}

/* ---- few rows ---- */

/* Does v rise as the loop's own k does, or stay? */
static bool rises(const TlValue *v, const TlOp *loop, int depth)
{
    const TlOp *op = v->def;
    TlWideInt n;
    if (v == loop->regions[0]->args[0] || tl_is_invariant(v, loop))
        return true;
    if (!op || depth > 8)
        return false;
    if (op->opcode == TL_OP_ADD)
        return rises(tl_in(op, 0), loop, depth + 1) && rises(tl_in(op, 1), loop, depth + 1);
    bool scales = op->opcode == TL_OP_MUL || op->opcode == TL_OP_DIV || op->opcode == TL_OP_SHL ||
                  op->opcode == TL_OP_SHR;
    return scales && tl_const_int_value(tl_in(op, 1), &n) && n > 0 &&
           rises(tl_in(op, 0), loop, depth + 1);
}

/* If what an operand reads is inside in two iterations, is it so in those between? */
static bool is_inside_between(const TlNest *pack, const TlOp *loop)
{
    for (uint32_t i = 0; i < pack->asks.len; i++) {
        const TlPlace *p = &pack->asks.data[i].access->place;
        for (uint32_t j = 0; j < p->naxes; j++)
            if (p->axes[j].kind == TL_AXIS_TILE || !rises(p->index[j].value, loop, 0))
                return false;
    }
    return true;
}

/* Is something that an iteration reads brought into memory first? */
static bool fills_homes(const TlNests *plan, const TlOp *loop)
{
    for (const TlOp *op = loop->regions[0]->first; op; op = op->next)
        for (uint32_t i = 0; i < op->nout && op->opcode != TL_OP_DOT; i++)
            if (plan->place[op->out[i]->id].kind == TL_NEST_HOME)
                return true;
    return false;
}

/* Why B cannot be read as it is multiplied; NULL: it can. */
static const char *must_pack(const TlNests *plan, const TlNest *n)
{
    const TlNestProduct *p = n->product;
    const TlNest *b = n->pack[1];
    const int32_t *shape = b->value->type->shape;
    TlWideInt step;
    if (!p->store || p->store_turned)
        return "no store says which rows are seen";
    if (p->ngathered || p->a_rows || p->a_by_columns)
        return "A is listed or goes by columns, or chunks wait";
    if (!tl_const_int_value(tl_in(p->loop, 2), &step) || step <= 0)
        return "a step of the run";
    if (b->split == TL_NEST_TESTED)
        return b->unsplit ? b->unsplit : "B is tested";
    if (fills_homes(plan, p->loop))
        return "an operand has a home";
    if (shape[1] != n->form.padded[1])
        return "columns of padding";
    int rows = b->transposed ? b->transposed * p->per : p->per;
    bool fits = b->transposed ? b->transposed == n->width : b->width >= n->width;
    if (!fits || shape[0] % rows)
        return "vectors of B are not those of the sums";
    return is_inside_between(b, p->loop) ? NULL : "it is not known where B ends";
}

/* May few rows be multiplied by B up to its ends? Its rows are inside where A's columns are, the
 * lanes past its end are masked. */
static bool reads_to_ends(const TlNests *plan, TlNest *n)
{
    const TlNestProduct *p = n->product;
    const TlOp *load = p->b_load;
    bool transposed, along = n->few_rows.along;
    if (!plan->m.masks || !load || !p->a_load || p->a_is_whole || p->per != 1 ||
        n->form.extent[0] > FEW_TILE_ROWS || load->out[0]->type->dtype != p->part[1] ||
        tl_nest_load_under(tl_in(p->dot, 1), &transposed) != load || (!along && transposed))
        return false;
    TlPlace place = tl_op_place(load);
    n->few_rows.axis[0] = tl_nest_slice_of(&place, transposed ? 1 : 0);
    n->few_rows.axis[1] = tl_nest_slice_of(&place, transposed ? 0 : 1);
    for (int i = 0; i < 2; i++)
        if (n->few_rows.axis[i] < 0 || place.axes[n->few_rows.axis[i]].step != 1)
            return false;
    return tl_nest_is_dense(plan->fn, &place, n->few_rows.axis[along ? 0 : 1]);
}

/* Both operands lie along k: nothing is transposed if the lanes of sums do, too. Then columns past
 * the last one are that one again, if B is a load. */
static void go_along(const TlNests *plan, TlNest *n)
{
    TlNestFew *f = &n->few_rows;
    const TlNestProduct *p = n->product;
    bool many = plan->m.nregs >= 32, transposed;
    f->along = true;
    f->mr = 4;
    f->nv = tl_nest_fit_width(n->width, many ? 4 : 2);
    f->single = tl_nest_fit_width(n->width, 8);
    f->rows = !p->b_load ? f->mr : many && !p->flips ? MORE_ALONG : FEW_ALONG;
    f->each = ALONG_EACH;
    int64_t run = tl_in(p->dot, 1)->type->shape[0] * tl_dtype_bytes(p->part[0]);
    f->trips = p->a_bytes ? p->trips : run < FEW_RUN ? FEW_RUN / run : 1;
    const TlOp *load = tl_nest_load_under(tl_in(p->dot, 1), &transposed);
    f->ends = load ? tl_map_get_ptr(&plan->access, load) : NULL;
    f->ends_axis = load ? tl_nest_slice_of(&f->ends->place, transposed ? 0 : 1) : -1;
    if (f->ends_axis < 0)
        f->ends = NULL;
    f->to_ends = f->ends && reads_to_ends(plan, n);
}

/* One row waits for memory only, the less the more of it is asked for at once. A block has up to
 * eight vectors of columns, and takes each of them down several rows of B, whose lines lie in pages
 * of their own: 24 GB/s where four vectors row by row have 16. */
static void choose_single_row(const TlNests *plan, TlNest *n)
{
    enum { VECTORS = 8 };
    TlNestFew *f = &n->few_rows;
    int64_t k = tl_in(n->product->dot, 1)->type->shape[0];
    f->single = VECTORS;
    while (n->form.padded[1] % ((int64_t)f->single * n->width))
        f->single--;
    f->deep = tl_nest_fit_width(k, plan->m.nregs / 4);
}

/* Is it rows and columns of a view, one after the other? */
static bool has_plain_rows(const TlOp *load)
{
    TlPlace p = tl_op_place(load);
    int k = tl_nest_slice_of(&p, 0), n = tl_nest_slice_of(&p, 1);
    return k >= 0 && n >= 0 && p.axes[k].step == 1 && p.axes[n].step == 1;
}

/* What packing takes is a part of multiplying that is the smaller the more rows there are: 0.07 of
 * 256. So some rows read B where it lies, too, by blocks as great as those of packed B. */
static void choose_some_rows(TlNest *n)
{
    TlNestFew *f = &n->few_rows;
    if (f->single && !f->to_ends && n->mr > f->mr && f->nv <= n->nv) {
        f->some = SOME_ROWS;
        f->great = n->mr;
    }
}

/* Packing stores each vector of B and loads it again for each block of rows. Where rows are few, B
 * is read, transposed and computed for each block instead; how often that pays has been measured.
 * One form of block, and half of it, is code enough for few rows: rows that are not there cost less
 * than memory does. */
static void choose_few_blocks(const TlNests *plan, TlNest *n)
{
    TlNestFew *f = &n->few_rows;
    const TlNest *b = n->pack[1];
    if (b->transposed && !plan->fn->ring) {
        go_along(plan, n);
        return;
    }
    /* B that is only read is read again for other rows from the first cache */
    bool reads = !b->transposed && n->product->b_load && n->product->per == 1;
    bool more = reads && plan->m.nregs >= 32;
    f->mr = b->transposed || more ? 4 : 2;
    f->nv = b->transposed ? 1 : more ? n->nv : 2 * n->nv; /* what is turned takes registers, too */
    if (more && !n->product->flips && f->nv < FEW_ROWS_VECTORS)
        f->nv = FEW_ROWS_VECTORS;
    while (n->form.padded[1] % ((int64_t)f->nv * n->width))
        f->nv--;
    if (reads && tl_dtype_bytes(b->value->type->dtype) == tl_dtype_bytes(n->product->dtype))
        choose_single_row(plan, n);
    f->past = reads && has_plain_rows(n->product->b_load);
    f->to_ends = f->past && reads_to_ends(plan, n);
    f->past &= !f->to_ends;
    f->small_rows = f->to_ends ? SMALL_B_ROWS : 0;
    bool again = b->transposed && n->product->b_load && !n->product->flips;
    f->rows = f->mr * (more ? 8 : again ? 4 : !b->transposed || n->product->flips ? 2 : 1);
    int64_t k = tl_in(n->product->dot, 1)->type->shape[0] / n->product->per;
    f->trips = n->product->a_bytes ? n->product->trips
               : b->transposed     ? INT32_MAX
               : k < FEW_DEPTH     ? FEW_DEPTH / k
                                   : 1;
    choose_some_rows(n);
}

/* After packing, tiles multiply in an eighth of the time, so that packing pays sooner; how much
 * sooner has not been measured. A block at least reads B once. */
static void choose_few_rows(const TlNests *plan, TlNest *n)
{
    TlNestFew *f = &n->few_rows;
    f->why = must_pack(plan, n);
    if (f->why)
        return;
    choose_few_blocks(plan, n);
    if (n->product->tile)
        f->rows = f->rows / TILES_FEWER > f->mr ? f->rows / TILES_FEWER : f->mr;
}

/* Are the columns that the program stores, or chooses, known before the run? */
static bool knows_columns(const TlNests *plan, const TlNestProduct *p)
{
    if (!p->store)
        return !p->seen[1];
    const TlNestAccess *a = tl_map_get_ptr(&plan->access, p->store);
    int64_t extent;
    TlWideInt start;
    int i = tl_nest_slice_of(&a->place, !p->store_turned);
    return i >= 0 && tl_nest_extent(plan->fn, a->place.base, (uint32_t)i, &extent) &&
           tl_const_int_value(a->place.index[i].value, &start);
}

/* Where the loop's sums begin at 0, its first chunk has no need of zeros in memory: where rows are
 * few, of which fewer may be seen, these take a tenth of the time. */
static bool skips_zeros(TlNests *plan, const TlNestProduct *p)
{
    uint64_t bits;
    TlNest *fill = tl_nest_of(plan, p->loop, 0);
    if (!fill || fill->kind != TL_NEST_FILL || p->tile ||
        p->dot->out[0]->type->shape[0] > FEW_TILE_ROWS ||
        !tl_value_is_const(tl_in(p->loop, 3), &bits) || bits)
        return false;
    fill->if_idle = true;
    return true;
}

void tl_nest_build_product(TlNests *plan, const TlNestProduct *p)
{
    const TlType *type = p->dot->out[0]->type;
    bool begins_at_zero = skips_zeros(plan, p);
    TlNest *n = tl_nest_new(plan, TL_NEST_PRODUCT, p->loop, type);
    int64_t columns = n->form.padded[1];
    n->end = 0;
    n->product = p;
    n->begins_at_zero = begins_at_zero;
    n->home = plan->place[p->loop->out[0]->id].buffer;
    n->width = n->tested =
        tl_nest_fit_width(columns, plan->m.vector_bytes / tl_dtype_bytes(p->dtype));
    choose_panels(plan, n, columns, type->shape[0]);
    n->narrow = n->panel > WIDE_PANEL && !p->tile && !knows_columns(plan, p);
    n->narrow_mr = type->shape[0] < NARROW_ROWS ? type->shape[0] : NARROW_ROWS;
    n->fetches = does_fetch(p, n->panel);
    if (n->fetches && 2 * n->small_mr <= n->mr) /* a small block waits as long for the panel */
        n->small_mr = n->mr;
    n->narrow_fetches = does_fetch(p, n->width);
    choose_depth(n, columns);
    int64_t bytes =
        n->panel * p->depth * tl_dtype_bytes(p->dtype) * (p->ngathered ? TL_NEST_GATHERED : 1);
    n->group = bytes < GROUP_BYTES ? GROUP_BYTES / bytes : 1;
    if (p->a_rows)
        n->listed = tl_nest_fit_width(p->a_rows->type->shape[0], plan->m.vector_bytes / 8);
    n->pack[1] = build_pack(plan, n, true);
    n->pack[0] = p->a_bytes ? build_pack(plan, n, false) : NULL;
    choose_few_rows(plan, n);
}
