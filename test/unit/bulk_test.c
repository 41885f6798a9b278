/* Bulk copies: the boxes of a plan (ir/plan/bulk.h) bring each element to where the buffer's layout
 * has it, by the formula of the documents (PTX ISA, "Swizzling modes"), which comes from no plan;
 * what is no box is none. Tensor maps (runtime/tensor_map.h): what is made of views, and of which
 * views none is made. */
#include "ir/plan/bulk.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "ir/text/text.h"
#include "runtime/tensor_map.h"
#include "test/unit/unit.h"

enum { PIECE = 16, WIDE = 32, MOST_BOX = 256 };

static TlCtx ctx;
static TlArena arena;

/* ---- plans ---- */

/* A load of a function, and a buffer for what it loads: rows of `span` bytes along axis `row` of
 * the tile, in chunks of 2^bits. */
typedef struct Case {
    const char *view, *load; /* "f16, 3"; operands and axes of the load */
    TlDtype dtype;
    int32_t shape[2], bits[2];
    int row, span;
    const char *axes; /* of the plan, innermost first: "201"; NULL: none is made */
} Case;

static TlModule *parse(const char *text)
{
    TlModule *m = tl_parse_module(&ctx, tl_diags_source(&ctx.diags, "t.tir", text, strlen(text)));
    if (!CHECK(m != NULL) && ctx.diags.rows.len)
        fprintf(stderr, "    %s\n    %s\n", text, ctx.diags.rows.data[0].text);
    return m;
}

static const TlOp *load_of(const TlModule *m)
{
    const TlOp *op = m->fns.data[0]->body->first;
    while (op && op->opcode != TL_OP_LOAD)
        op = tl_walk_next(op, NULL);
    return op;
}

static int piece = PIECE; /* that the swizzle moves as one */

static const TlType *buffer_of(const Case *c)
{
    TlLayout l =
        *tl_staging_image(&arena, 2, c->bits, tl_dtype_bytes(c->dtype), c->row, c->span, piece);
    for (int d = 0; d < 2; d++)
        l.reps[d] = c->shape[d] >> c->bits[d];
    return tl_type_buf(&ctx, c->dtype, 2, c->shape, tl_layout_intern(&ctx, &l), 3);
}

/* Where the instruction puts an element of the tile that a box brings; -1: none does. */
static int64_t place_of(const Case *c, const TlBulk *b, int32_t r, int32_t col)
{
    int elem = tl_dtype_bytes(c->dtype);
    int64_t found = -1;
    for (uint32_t i = 0; i < b->boxes.len; i++) {
        const TlBulkBox *x = &b->boxes.data[i];
        if (r < x->row || r >= x->row + b->rows || col < x->column || col >= x->column + b->columns)
            continue;
        CHECK_INT(found, -1); /* one box only */
        int64_t at = x->offset + ((int64_t)(r - x->row) * b->columns + col - x->column) * elem;
        found = at ^ (at >> 7 & (c->span / piece - 1)) * piece;
    }
    return found;
}

static void check_elements(const Case *c, const TlType *buf, const TlBulk *b)
{
    int wrong = 0;
    for (int32_t r = 0; r < c->shape[1 - c->row]; r++)
        for (int32_t col = 0; col < c->shape[c->row]; col++) {
            int32_t at[TL_LAYOUT_MAX_OUT] = {0};
            at[c->row] = col;
            at[1 - c->row] = r;
            wrong += place_of(c, b, r, col) != (int64_t)tl_buf_offset(buf, at);
        }
    CHECK_INT(wrong, 0);
}

/* What the instruction asks of its operands. */
static void check_boxes(const Case *c, const TlBulk *b)
{
    int elem = tl_dtype_bytes(c->dtype);
    CHECK(b->rows >= 1 && b->rows <= MOST_BOX && b->columns >= 1 && b->columns <= MOST_BOX);
    CHECK_INT(b->columns * elem, c->span);
    CHECK_INT(b->bytes, (int64_t)c->shape[0] * c->shape[1] * elem);
    CHECK_INT((int64_t)b->boxes.len * b->rows * c->span, b->bytes);
    for (uint32_t i = 0; i < b->boxes.len; i++)
        CHECK_INT(b->boxes.data[i].offset % (8 * (uint32_t)c->span), 0);
}

static void check_axes(const Case *c, const TlBulk *b)
{
    char text[TL_BULK_MAX_RANK + 1] = "";
    for (int i = 0; i < b->rank; i++)
        text[i] = (char)('0' + b->axes[i]);
    CHECK_STR(text, c->axes);
    CHECK_INT(b->row, b->axes[0]);
    tile_image_slot s = tl_bulk_slot(b, 3);
    CHECK_INT(s.kind, TILE_SLOT_MAP);
    CHECK_INT(s.param, 3);
    CHECK_INT(s.axis,
              b->row + 16 * b->other + 256 * (uint32_t)c->span + (piece == WIDE ? 1u << 16 : 0));
    CHECK_INT(s.box, (uint32_t)b->columns + 65536 * (uint32_t)b->rows);
}

static void check_case(const Case *c)
{
    TlSbuf text;
    TlBulk b;
    tl_sbuf_init(&text, &arena);
    tl_sbuf_putf(&text,
                 "kernel @k(%%A: view<%s>, %%i: i32, %%w: i64, %%u: u32) {\n"
                 "  %%x = load %s : tile<%s, %d, %d>\n  return\n}\n",
                 c->view, c->load, tl_dtype_name(c->dtype), c->shape[0], c->shape[1]);
    TlModule *m = parse(text.text);
    if (!m)
        return;
    const TlType *buf = buffer_of(c);
    bool made = tl_bulk_plan(&arena, load_of(m), buf, &b);
    if (made != (c->axes != NULL))
        fprintf(stderr, "    %s\n", text.text);
    if (CHECK_INT(made, c->axes != NULL) && made) {
        check_elements(c, buf, &b);
        check_boxes(c, &b);
        check_axes(c, &b);
    }
    tl_module_free(m);
}

#define PLAIN "%A, %i, %i {axes = [64, 64]}"

static const Case cases[] = {
    /* every size of an element, every row, along either axis */
    {"f16, 2", PLAIN, TL_F16, {64, 64}, {6, 6}, 1, 128, "10"},
    {"f16, 2", PLAIN, TL_F16, {64, 64}, {6, 6}, 0, 128, "01"},
    {"f16, 2", PLAIN, TL_F16, {64, 64}, {6, 6}, 1, 64, "10"},
    {"f16, 2", PLAIN, TL_F16, {64, 64}, {6, 6}, 0, 32, "01"},
    {"u8, 2", PLAIN, TL_U8, {64, 64}, {6, 6}, 1, 64, "10"},
    {"f8e4m3, 2", PLAIN, TL_F8E4M3, {64, 64}, {6, 6}, 0, 32, "01"},
    {"f32, 2", PLAIN, TL_F32, {64, 64}, {6, 6}, 1, 128, "10"},
    {"f32, 2", PLAIN, TL_F32, {64, 64}, {6, 6}, 0, 64, "01"},
    {"f64, 2", PLAIN, TL_F64, {64, 64}, {6, 6}, 1, 128, "10"},
    {"i64, 2", PLAIN, TL_I64, {64, 64}, {6, 6}, 0, 32, "01"},
    /* more rows than a box has; tiles of several chunks, along either axis */
    {"f16, 2", "%A, %i, %i {axes = [512, 32]}", TL_F16, {512, 32}, {9, 5}, 1, 64, "10"},
    {"u8, 2", "%A, %i, %i {axes = [128, 1024]}", TL_U8, {128, 1024}, {7, 10}, 0, 128, "01"},
    {"f16, 2", "%A, %i, %i {axes = [96, 64]}", TL_F16, {96, 64}, {5, 6}, 1, 128, "10"},
    {"f16, 2", "%A, %i, %i {axes = [64, 48]}", TL_F16, {64, 48}, {6, 4}, 0, 128, "01"},
    {"f16, 2", "%A, %i, %i {axes = [8, 256]}", TL_F16, {8, 256}, {3, 8}, 1, 128, "10"},
    /* views of more axes than the tile has; the axes that come first lie outermost */
    {"f16, 3", "%A, %i, %i, %i {axes = [i, 64, 64]}", TL_F16, {64, 64}, {6, 6}, 1, 128, "210"},
    {"f16, 3", "%A, %i, %i, %i {axes = [i, 64, 64]}", TL_F16, {64, 64}, {6, 6}, 0, 128, "120"},
    {"f16, 3", "%A, %i, %i, %i {axes = [64, i, 64]}", TL_F16, {64, 64}, {6, 6}, 1, 128, "210"},
    {"f16, 4",
     "%A, %i, %i, %i, %i {axes = [64, i, i, 64]}",
     TL_F16,
     {64, 64},
     {6, 6},
     0,
     64,
     "0321"},
    {"f16, 5",
     "%A, %i, %i, %i, %i, %i {axes = [i, 64, i, i, 64]}",
     TL_F16,
     {64, 64},
     {6, 6},
     1,
     32,
     "43210"},
    /* what is no box: strides, indices that no coordinate can be, too many axes, other layouts */
    {"f16, 2", "%A, %i, %i {axes = [64:2, 64]}", TL_F16, {64, 64}, {6, 6}, 1, 128, NULL},
    {"f16, 2", "%A, %i, %i {axes = [64, 64:2]}", TL_F16, {64, 64}, {6, 6}, 1, 128, NULL},
    {"f16, 2", "%A, %w, %i {axes = [64, 64]}", TL_F16, {64, 64}, {6, 6}, 1, 128, NULL},
    {"f16, 3", "%A, %w, %i, %i {axes = [i, 64, 64]}", TL_F16, {64, 64}, {6, 6}, 1, 128, NULL},
    {"f16, 2", "%A, %u, %i {axes = [64, 64]}", TL_F16, {64, 64}, {6, 6}, 1, 128, NULL},
    {"f16, 6",
     "%A, %i, %i, %i, %i, %i, %i {axes = [i, i, i, i, 64, 64]}",
     TL_F16,
     {64, 64},
     {6, 6},
     1,
     128,
     NULL},
    {"f16, 2", "%A, %i, %i {axes = [64, 8]}", TL_F16, {64, 8}, {6, 3}, 1, 16, NULL},
    /* a pattern of 8 rows of which there are not 8 */
    {"f16, 2", "%A, %i, %i {axes = [4, 64]}", TL_F16, {4, 64}, {2, 6}, 1, 128, NULL},
    {"f16, 2", "%A, %i, %i {axes = [12, 64]}", TL_F16, {12, 64}, {2, 6}, 1, 128, NULL},
};

/* What is no view of the kernel's own has no map. */
static void check_bases(void)
{
    static const char *const TEXTS[] = {
        "kernel @k(%A: view<f16, 2>, %i: i32, %l: i64) {\n"
        "  %s = sub_view %A, %l, %l, %l, %l : view<f16, 2>\n"
        "  %x = load %s, %i, %i {axes = [64, 64]} : tile<f16, 64, 64>\n  return\n}\n",
        "kernel @k(%p: ptr<f16>, %i: i32, %l: i64) {\n"
        "  %s = view %p, %l, %l, %l, %l : view<f16, 2>\n"
        "  %x = load %s, %i, %i {axes = [64, 64]} : tile<f16, 64, 64>\n  return\n}\n",
        "kernel @k(%p: ptr<f16>) {\n"
        "  %q = broadcast %p : tile<ptr<f16>, 64, 64>\n"
        "  %x = load %q : tile<f16, 64, 64>\n  return\n}\n",
    };
    const TlType *buf = buffer_of(&cases[0]);
    TlBulk b;
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        TlModule *m = parse(TEXTS[i]);
        CHECK(m && !tl_bulk_plan(&arena, load_of(m), buf, &b));
        tl_module_free(m);
    }
}

/* A buffer whose rows are not swizzled, or swizzled otherwise. */
static void check_layouts(void)
{
    static const char *const TEXTS[] = {
        "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,0)(2,0)(4,0)(8,0)(16,0)(32,0)",
        "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,16)(2,8)(4,32)(8,0)(16,0)(32,0)",
        "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,0)(8,0)(16,0)(32,0)",
    };
    static const int32_t SHAPE[2] = {64, 64};
    TlModule *m = parse("kernel @k(%A: view<f16, 2>, %i: i32) {\n"
                        "  %x = load %A, %i, %i {axes = [64, 64]} : tile<f16, 64, 64>\n"
                        "  return\n}\n");
    for (size_t i = 0; m && i < sizeof TEXTS / sizeof *TEXTS; i++) {
        const TlLayout *l = tl_layout_intern(&ctx, tl_layout_parse(&ctx.perm, TEXTS[i]));
        TlBulk b;
        CHECK(!tl_bulk_plan(&arena, load_of(m), tl_type_buf(&ctx, TL_F16, 2, SHAPE, l, 1), &b));
    }
    tl_module_free(m);
}

/* Programs of a cluster begin as many boxes each, where rows allow that: of whole patterns. */
static void check_parts(void)
{
    static const struct {
        int shape[2], bits[2];
        int32_t parts;
        int boxes, rows; /* 0: there are no such parts */
    } RULES[] = {{{64, 64}, {6, 6}, 1, 1, 64},   {{64, 64}, {6, 6}, 2, 2, 32},
                 {{64, 64}, {6, 6}, 8, 8, 8},    {{64, 256}, {6, 8}, 4, 4, 64},
                 {{64, 128}, {6, 7}, 4, 4, 32},  {{512, 64}, {9, 6}, 2, 2, 256},
                 {{32, 64}, {5, 6}, 8, 4, 8},    {{64, 64}, {6, 6}, 3, 8, 8},
                 {{96, 64}, {5, 6}, 3, 3, 32}};
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
        Case c = {"f16, 2", NULL, TL_F16, {RULES[i].shape[0], RULES[i].shape[1]},
                  {RULES[i].bits[0], RULES[i].bits[1]}, 1, 128, "10"};
        TlModule *m = parse(tl_format(&arena,
                                      "kernel @k(%%A: view<f16, 2>, %%i: i32) {\n"
                                      "  %%x = load %%A, %%i, %%i {axes = [%d, %d]} : "
                                      "tile<f16, %d, %d>\n  return\n}\n",
                                      c.shape[0], c.shape[1], c.shape[0], c.shape[1]));
        const TlType *buf = buffer_of(&c);
        TlBulk b;
        if (m && CHECK(tl_bulk_plan_parts(&arena, load_of(m), buf, RULES[i].parts, &b))) {
            CHECK_INT(b.boxes.len, RULES[i].boxes);
            CHECK_INT(b.rows, RULES[i].rows);
            check_elements(&c, buf, &b);
            check_boxes(&c, &b);
        }
        tl_module_free(m);
    }
}

/* ---- tensor maps ---- */

static _Alignas(64) char memory[64];

typedef struct View {
    int rank, dtype;
    int64_t extent[5], stride[5];
    int off; /* bytes that the address is off */
    uint32_t row, other;
    bool fine;
} View;

static const View views[] = {
    {2, TILE_F16, {100, 64}, {64, 1}, 0, 1, 0, true},
    {2, TILE_F16, {100, 64}, {64, 1}, 16, 1, 0, true},
    {2, TILE_F16, {100, 64}, {64, 1}, 8, 1, 0, false}, /* the address */
    {2, TILE_F16, {100, 64}, {68, 1}, 0, 1, 0, false}, /* rows of 136 bytes */
    {2, TILE_F16, {100, 60}, {64, 1}, 0, 1, 0, true},  /* an extent that is any */
    {2, TILE_U8, {100, 64}, {72, 1}, 0, 1, 0, false},
    {2, TILE_F64, {100, 64}, {66, 1}, 0, 1, 0, true},
    {2, TILE_F32, {100, 64}, {66, 1}, 0, 1, 0, false},
    {2, TILE_F16, {100, 64}, {-64, 1}, 0, 1, 0, false},
    {2, TILE_F16, {100, 64}, {64, -1}, 0, 1, 0, false},
    {2, TILE_F16, {100, 64}, {64, 2}, 0, 1, 0, false},
    {2, TILE_F16, {100, 64}, {64, 1}, 0, 0, 1, false}, /* axis 0 is not the one that counts up */
    {2, TILE_F16, {100, 64}, {1, 104}, 0, 0, 1, true},
    {2, TILE_F16, {100, 64}, {0, 1}, 0, 1, 0, true},                 /* a row for all */
    {2, TILE_F16, {100, 64}, {INT64_C(1) << 39, 1}, 0, 1, 0, false}, /* 2^40 bytes */
    {2, TILE_F16, {100, 64}, {(INT64_C(1) << 39) - 8, 1}, 0, 1, 0, true},
    {2, TILE_F16, {100, 64}, {INT64_MIN, 1}, 0, 1, 0, false},
    {2, TILE_F64, {100, 64}, {INT64_C(1) << 61, 1}, 0, 1, 0, false}, /* 2^64 */
    {2, TILE_F16, {0, 64}, {64, 1}, 0, 1, 0, true},
    {2, TILE_F16, {100, 0}, {64, 1}, 0, 1, 0, true},
    {3, TILE_F16, {5, 100, 64}, {6400, 64, 1}, 0, 2, 1, true},
    {3, TILE_F16, {5, 100, 64}, {6401, 64, 1}, 0, 2, 1, false},
    {5, TILE_BF16, {2, 3, 4, 5, 64}, {3840, 1280, 320, 64, 1}, 0, 4, 1, true},
};

static tile_arg arg_of(const View *v)
{
    tile_arg a = {.kind = TILE_ARG_VIEW,
                  .dtype = v->dtype,
                  .rank = v->rank,
                  .strided = true,
                  .address = memory + v->off};
    memcpy(a.extent, v->extent, sizeof v->extent);
    memcpy(a.stride, v->stride, sizeof v->stride);
    return a;
}

static tile_image_slot slot_of(const View *v)
{
    return (tile_image_slot){
        .kind = TILE_SLOT_MAP, .axis = v->row | v->other << 4 | 128 << 8, .box = 32 | 40 << 16};
}

/* Its axes: the row's, then the others from the last one on. */
static void check_map(const View *v, const tl_tensor_map *m)
{
    int elem = tile_dtype_bits((tile_dtype)v->dtype) / 8, at = 0;
    CHECK_INT((int64_t)m->address, (int64_t)(uintptr_t)(memory + v->off));
    CHECK_INT(m->rank, v->rank);
    CHECK_INT(m->bytes, elem);
    CHECK_INT(m->span, 128);
    CHECK_INT(m->piece, PIECE);
    for (int i = v->rank; i >= 0; i--) {
        int axis = i == v->rank ? (int)v->row : i;
        if (i == (int)v->row)
            continue;
        CHECK_INT((int64_t)m->extent[at], v->extent[axis] ? v->extent[axis] : 1);
        CHECK_INT((int64_t)m->stride[at], v->stride[axis] * elem);
        CHECK_INT(m->box[at], axis == (int)v->row ? 32 : axis == (int)v->other ? 40 : 1);
        at++;
    }
}

static void check_views(void)
{
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        const View *v = &views[i];
        tile_arg arg = arg_of(v);
        tile_image_slot slot = slot_of(v);
        tl_tensor_map m;
        bool fine = tl_tensor_map_of(&slot, &arg, &m);
        if (fine != v->fine)
            fprintf(stderr, "    view %d\n", (int)i);
        if (CHECK_INT(fine, v->fine) && fine)
            check_map(v, &m);
    }
    tile_image_slot wide = slot_of(&views[0]);
    wide.axis |= TILE_MAP_WIDE;
    tile_arg first = arg_of(&views[0]);
    tl_tensor_map of_wide;
    CHECK(tl_tensor_map_of(&wide, &first, &of_wide) && of_wide.piece == WIDE &&
          of_wide.span == 128);
    tile_arg null = arg_of(&views[0]);
    tile_image_slot slot = slot_of(&views[0]);
    tl_tensor_map m;
    null.address = NULL;
    CHECK(!tl_tensor_map_of(&slot, &null, &m));
    tile_arg huge = arg_of(&views[0]);
    huge.extent[0] = INT64_C(1) << 40; /* more than a coordinate reaches */
    CHECK(tl_tensor_map_of(&slot, &huge, &m));
    CHECK_INT((int64_t)m.extent[1], INT64_C(1) << 32);
}

int main(void)
{
    tl_ctx_init(&ctx, (TlAlloc){0});
    tl_arena_init(&arena, (TlAlloc){0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    piece = WIDE;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].span == 128)
            check_case(&cases[i]);
    piece = PIECE;
    check_bases();
    check_layouts();
    check_parts();
    check_views();
    tl_arena_free(&arena);
    tl_ctx_free(&ctx);
    return unit_result();
}
