/* Layouts of tiles: interning, derived layouts (checked by enumeration where they must keep
 * elements in place), the text form, and the verifier's rules, each with what fits and what not. */
#include "ir/plan/layout_rules.h"
#include "test/unit/unit.h"

static TlCtx ctx;

static const TlLayout *lay(const char *text)
{
    TlLayout *l = tl_layout_parse(&ctx.perm, text);
    if (!CHECK(l != NULL))
        fprintf(stderr, "    %s\n", text);
    return tl_layout_intern(&ctx, l ? l : tl_layout_empty(&ctx.perm, 1));
}

static const char *show(const TlLayout *l)
{
    TlSbuf s;
    if (!l)
        return "none";
    tl_sbuf_init(&s, &ctx.perm);
    tl_layout_print(&s, l);
    return s.text;
}

/* ---- interning ---- */

static void equal_layouts_are_one_pointer(void)
{
    const TlLayout *l = lay("reg(0,1) lane(0,2)(1,0) warp(2,0)");
    CHECK(l == lay("warp(2,0) reg(0,1) lane(0,2)(1,0) -> 4x4"));
    CHECK(l != lay("reg(0,1) lane(0,2)(1,0) warp(2,0) -> 4x8"));
    CHECK(l != lay("reg(0,1) lane(0,2)(1,0) warp(2,0) -> 4x4 * 1x3"));
    CHECK_STR(show(lay("lane(1)")), "reg lane(1) warp -> 2");
    /* registers that hold what others hold go, lanes and warps stay */
    CHECK_STR(show(lay("reg(0)(1)(2)(3) lane(0)(1) warp(3)")), "reg(1)(2) lane(0)(1) warp(3) -> 4");
    for (int i = 1; i < 500; i++)
        lay(tl_format(&ctx.perm, "reg(%d) lane(%d)", i, 2 * i));
    CHECK(lay("reg(77) lane(154)") == lay("lane(154) reg(77)"));
}

static void types_carry_layouts(void)
{
    int32_t shape[] = {4, 4};
    const TlLayout *l = lay("reg(0,1) lane(0,2)(1,0) warp(2,0)");
    const TlType *t = tl_type_tile(&ctx, TL_F32, 2, shape), *laid = tl_type_with_layout(&ctx, t, l);
    CHECK(laid != t && laid->layout == l && tl_type_with_layout(&ctx, laid, NULL) == t);
    CHECK(tl_type_with_layout(&ctx, t, l) == laid);
    CHECK(tl_type_with_dtype(&ctx, laid, TL_I8)->layout == l);
    CHECK(tl_type_with_shape(&ctx, laid, 1, (int32_t[]){16})->layout == NULL);
    CHECK_STR(tl_type_str(&ctx, laid),
              "tile<f32, 4, 4, \"reg(0,1) lane(0,2)(1,0) warp(2,0) -> 4x4\">");
}

/* ---- derived layouts ---- */

static const TlType *shape_of(const char *text)
{
    int32_t shape[TL_MAX_RANK];
    int rank = 0;
    for (const char *c = text; *c;) {
        int n = 0;
        for (; *c >= '0' && *c <= '9'; c++)
            n = 10 * n + *c - '0';
        shape[rank++] = n;
        c += *c != 0;
    }
    return tl_type_tile(&ctx, TL_F32, rank, shape);
}

static void chosen_outputs(void)
{
    const TlLayout *l = lay("reg(0,1)(8,0) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(0,8) -> 16x16 * 3x1");
    const TlLayout *row = tl_layout_restricted(&ctx, l, 1), *col = tl_layout_restricted(&ctx, l, 2);
    CHECK_STR(show(row), "reg(8) lane(0)(0)(1)(2)(4) warp(0) -> 16 * 3");
    CHECK_STR(show(col), "reg(1) lane(2)(4)(0)(0)(0) warp(8) -> 16");
    CHECK(tl_layout_restricted(&ctx, l, 3) == l);
    const TlLayout *wide = tl_layout_expanded(&ctx, row, 1);
    CHECK_STR(show(wide), "reg(8,0) lane(0,0)(0,0)(1,0)(2,0)(4,0) warp(0,0) -> 16x1 * 3x1");
    CHECK(wide == tl_layout_collapsed(&ctx, l, 2) && tl_layout_restricted(&ctx, wide, 1) == row);
    CHECK(tl_layout_expanded(&ctx, col, 0) == tl_layout_collapsed(&ctx, l, 1));
    const TlLayout *t = tl_layout_permuted(&ctx, l, (int64_t[]){1, 0});
    CHECK_STR(show(t), "reg(1,0)(0,8) lane(2,0)(4,0)(0,1)(0,2)(0,4) warp(8,0) -> 16x16 * 1x3");
    CHECK(tl_layout_permuted(&ctx, t, (int64_t[]){1, 0}) == l);
    CHECK_STR(show(tl_layout_replicated(&ctx, shape_of("3x4"), 5, 2)),
              "reg lane(0,0)(0,0)(0,0)(0,0)(0,0) warp(0,0)(0,0) -> 1x1 * 3x4");
}

static const struct {
    const char *layout, *from, *to, *want;
} reshapes[] = {
    {"reg(0,1) lane(0,2)(1,0) warp(2,0)", "4x4", "16", "reg(1) lane(2)(4) warp(8) -> 16"},
    {"reg(1) lane(2)(4) warp(8)", "16", "2x8", "reg(0,1) lane(0,2)(0,4) warp(1,0) -> 2x8"},
    {"reg(0,1) lane(0,2)(1,1)", "2x4", "2x2x2", "reg(0,0,1) lane(0,1,0)(1,0,1) warp -> 2x2x2"},
    {"reg(0,1) lane(0,2)(1,0)", "2x4", "1x8x1", "reg(0,1,0) lane(0,2,0)(0,4,0) warp -> 1x8x1"},
    /* a group of one axis each is copied, whatever its extent */
    {"reg(1,0)(0,1) lane(2,0) -> 4x2 * 1x3", "3x6", "3x2x3", "none"},
    {"reg(1,0) lane(2,0) -> 4x1 * 1x6", "3x6", "3x2x3",
     "reg(1,0,0) lane(2,0,0) warp -> 4x1x1 * 1x2x3"},
    {"reg(1,0)(0,1) lane(2,0)(0,2) -> 4x4 * 1x3", "3x12", "3x3x4",
     "reg(1,0,0)(0,0,1) lane(2,0,0)(0,0,2) warp -> 4x1x4 * 1x3x1"},
    /* repetitions above, chunks below */
    {"reg(1) lane(2)(4) -> 8 * 3", "24", "3x8", "reg(0,1) lane(0,2)(0,4) warp -> 1x8 * 3x1"},
    {"reg(1) lane(2)(4) -> 8 * 3", "24", "6x4", "reg(0,1) lane(0,2)(1,0) warp -> 2x4 * 3x1"},
    {"reg(1) lane(2) -> 4 * 6", "24", "2x12", "reg(0,1) lane(0,2) warp -> 1x4 * 2x3"},
    {"reg(1) lane(2) -> 4 * 6", "24", "12x2", "reg(0,1) lane(1,0) warp -> 2x2 * 6x1"},
    {"reg(1) lane(2)(4) -> 8 * 3", "24", "2x12", "none"},
    {"reg(0,1) lane(0,2) -> 1x4 * 2x3", "2x12", "24", "reg(1) lane(2) warp -> 4 * 6"},
    {"reg(0,1) lane(1,0) -> 2x2 * 1x6", "2x12", "24", "none"},
    /* the first axis of a group may be padded */
    {"reg(1,0) lane(0,1)(0,2)(2,0)(4,0)", "5x4", "20", "reg(4) lane(1)(2)(8)(16) warp -> 32"},
    {"lane(1)(2)(4)(8)(16)", "20", "5x4", "reg lane(0,1)(0,2)(1,0)(2,0)(4,0) warp -> 8x4"},
    {"lane(1)(2)(4)(8)(16)", "20", "4x5", "none"},
    {"reg(1) lane(2)(4)", "6", "6", "reg(1) lane(2)(4) warp -> 8"},
};

/* The first element of a and of b, with the same row-major number, on the same thread and register
 * coordinates. */
static int64_t element_number_of(const TlType *t, const int32_t *x)
{
    int64_t n = 0;
    for (int d = 0; d < t->rank; d++) {
        if (x[d] >= t->shape[d])
            return -1;
        n = n * t->shape[d] + x[d];
    }
    return n;
}

/* Both layouts put the same row-major numbers on the same thread. */
static bool same_elements(const TlLayout *a, const TlType *ta, const TlLayout *b, const TlType *tb)
{
    int lanes = 1 << tl_layout_in_bits(a, TL_IN_LANE),
        warps = 1 << tl_layout_in_bits(a, TL_IN_WARP);
    for (int thread = 0; thread < lanes * warps; thread++) {
        uint32_t in[3] = {0, (uint32_t)(thread % lanes), (uint32_t)(thread / lanes)};
        int32_t x[TL_LAYOUT_MAX_OUT];
        int64_t sum_a = 0, sum_b = 0, square_a = 0, square_b = 0;
        for (int64_t r = 0; r < tl_layout_registers(a); r++) {
            tl_layout_apply_reg(a, r, in, x);
            int64_t n = element_number_of(ta, x);
            if (n >= 0)
                sum_a += n + 1, square_a += n * n;
        }
        for (int64_t r = 0; r < tl_layout_registers(b); r++) {
            tl_layout_apply_reg(b, r, in, x);
            int64_t n = element_number_of(tb, x);
            if (n >= 0)
                sum_b += n + 1, square_b += n * n;
        }
        if (sum_a != sum_b || square_a != square_b)
            return false;
    }
    return true;
}

static void reshapes_keep_elements(void)
{
    for (size_t i = 0; i < sizeof reshapes / sizeof *reshapes; i++) {
        const TlType *from = shape_of(reshapes[i].from), *to = shape_of(reshapes[i].to);
        const TlLayout *l = lay(reshapes[i].layout), *r = tl_layout_reshaped(&ctx, l, from, to);
        CHECK_STR(show(r), reshapes[i].want);
        if (!r)
            continue;
        if (!CHECK(same_elements(l, from, r, to)))
            fprintf(stderr, "    %s\n", reshapes[i].layout);
        CHECK(tl_layout_reshaped(&ctx, r, to, from) == l);
    }
}

static void registers_by_coordinate(void)
{
    const TlLayout *l = lay("reg(0,1)(8,0) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp -> 16x8 * 3x5");
    int found = 0;
    for (int64_t r = 0; r < tl_layout_registers(l); r++) {
        int32_t x[2];
        tl_layout_apply_reg(l, r, (uint32_t[]){0, 0, 0}, x);
        found += tl_layout_register_at(l, x) == r;
    }
    CHECK_INT(found, 4 * 15);
    CHECK_INT(tl_layout_register_at(l, (int32_t[]){0, 2}), -1); /* lane 1 has it */
    CHECK_INT(tl_layout_register_at(l, (int32_t[]){48, 0}), -1);
    CHECK_INT(tl_layout_register_at(l, (int32_t[]){0, -1}), -1);
}

/* ---- the verifier ---- */

/* A: 8x8 over 2 registers, 4 lanes... of 8, 4 warps; the others derive from it. */
#define LAYOUTS                                                                                    \
    "layouts #0 \"reg(0,1) lane(0,2)(0,4)(1,0) warp(2,0)(4,0)\",\n"                                \
    " #1 \"lane(0)(0)(1) warp(2)(4) -> 8\",\n"        /* rows of #0 */                             \
    " #2 \"reg(1) lane(2)(4)(0) warp(0)(0) -> 8\",\n" /* columns of #0 */                          \
    " #3 \"lane(0,0)(0,0)(1,0) warp(2,0)(4,0) -> 8x1\",\n"                                         \
    " #4 \"reg(1,0) lane(2,0)(4,0)(0,1) warp(0,2)(0,4)\",\n"             /* #0 transposed */       \
    " #5 \"reg(1) lane(2)(4)(8) warp(16)(32)\",\n"                       /* #0 as 64 */            \
    " #6 \"reg(0,0,1) lane(0,0,2)(0,0,4)(0,1,0) warp(1,0,0)(2,0,0)\",\n" /* 4x2x8 */               \
    " #7 \"reg(1) lane(2)(4)(0) warp(0)(0) -> 8 * 3\",\n"                                          \
    " #8 \"reg(0,1,0) lane(0,2,0)(0,4,0)(1,0,0) warp(2,0,0)(4,0,0) -> 8x8x1 * 1x1x5\"\n"

#define BUF                                                                                        \
    "%b = alloc : buf<f32, 8, \"offset(1)(2)(4)\", 2> %q = broadcast %p : tile<ptr<f32>, 8, #1> "

static const struct {
    const char *body, *fault; /* NULL: fits */
} rows[] = {
    /* layouts by themselves */
    {"%x = iota : tile<i32, 8, #1>", NULL},
    {"%x = iota : tile<i32, 8, #0>", "the layout is of another rank"},
    {"%x = iota : tile<i32, 9, #1>", "does not hold all elements"},
    {"%x = iota : tile<i32, 5, #1>", NULL},
    {"%x = iota : tile<i32, 24, #7>", NULL},
    {"%x = iota : tile<i32, 17, #7>", NULL},
    {"%x = iota : tile<i32, 16, #7>", "a repetition without elements"},
    {"%x = iota : tile<i32, 8, \"lane(1)(2)(0) warp(0)(0) -> 8\">", "no thread has some"},
    {"%x = iota : tile<i32, 8, \"offset(1)(2)(4) lane(0)(0)(0) warp(0)(0)\">",
     "over reg, lane and warp only"},
    {"%x = iota : tile<i32, 8, \"lane(1)(2) warp(4)(0)\">", "4 lanes, others have 8"},
    {"%x = iota : tile<i32, 8, \"lane(1)(2)(4) warp(0)\">", "2 warps, the block has 4"},
    {"%x = iota : tile<i32, 8>", "has no layout, as other tiles have"},
    {"%x = const {value = 0} : tile<i32, \"reg\">", "has a layout"},
    {"%x = alloc : buf<f32, 6, \"offset(2)(1) -> 4 * 2\", 3>", NULL},
    {"%x = alloc : buf<f32, 4, \"reg(1)(2)\", 1>", "laid out over offset only"},
    {"%x = alloc : buf<f32, 8, \"offset(1)(2)\", 1>", "does not hold all elements"},
    {"%x = alloc : buf<f32, 4, \"offset(1) -> 4\", 1>", "some of the elements have no place"},
    {"%x = alloc : buf<f32, 4, \"offset(1)(2)(1)\", 1>", "some of the elements have several"},
    {BUF "%t = copy %q, %b, %n : token<f32, 8, #1>", NULL},
    {BUF "%t = copy %q, %b, %n : token<f32, 8, \"lane(1)(2)(4)(0) warp(0)(0)\">",
     "16 lanes, others have 8"},
    {BUF "%t = copy %q, %b, %n : token<f32, 8, \"lane(1)(2)(0) warp(0)(0) -> 8\">",
     "no thread has some of the elements"},
    {BUF "%t = copy %q, %b, %n : token<f32, 8, \"reg(1) lane(2)(4)(0) warp(0)(0)\">",
     "operand 0 is laid out as"},
    {BUF "%t = get %b, %n : tile<f32, 8, \"reg(1) lane(2)(4)(0) warp(0)(0)\">", NULL},
    /* elementwise */
    {"%x = add %a, %a : tile<f32, 8, 8, #0>", NULL},
    {"%b = convert %a : tile<f32, 8, 8, #4> %x = add %a, %b : tile<f32, 8, 8, #0>",
     "operand 1 is tile"},
    {"%x = cast %a : tile<i32, 8, 8, #4>", "operand 0 is laid out as"},
    {"%c = lt %a, %a : tile<bool, 8, 8, #0> %x = select %c, %a, %a : tile<f32, 8, 8, #0>", NULL},
    {"%x = select %s, %a, %a : tile<f32, 8, 8, #0>", NULL},
    {"%c = const {value = true} : tile<bool, 8, 8, #4> %x = select %c, %a, %a : tile<f32, 8, 8, "
     "#0>",
     "operand 0 is laid out as"},
    /* convert */
    {"%x = convert %a : tile<f32, 8, 8, #4>", NULL},
    {"%x = convert %a : tile<f32, 8, 8>", "takes"},
    /* broadcast, expand */
    {"%r = iota : tile<i32, 8, #1> %e = expand %r {axis = 1} : tile<i32, 8, 1, #3> "
     "%x = broadcast %e : tile<i32, 8, 8, #0>",
     NULL},
    {"%x = broadcast %f : tile<f32, 8, 8, #4>", NULL},
    {"%r = iota : tile<i32, 8, #2> %x = expand %r {axis = 1} : tile<i32, 8, 1, #3>",
     "operand 0 is laid out as"},
    {"%e = const {value = 1} : tile<i32, 8, 1, #3> %x = broadcast %e : tile<i32, 8, 8, #4>",
     "operand 0 is laid out as reg lane(0,0)(0,0)(1,0) warp(2,0)(4,0) -> 8x1, not reg(1,0) "
     "lane(2,0)(4,0)(0,0)"},
    {"%x = expand %f {axis = 0} : tile<f32, 1, \"lane(0)(0)(0) warp(0)(0) -> 1\">", NULL},
    /* trans */
    {"%x = trans %a {perm = [1, 0]} : tile<f32, 8, 8, #4>", NULL},
    {"%x = trans %a {perm = [1, 0]} : tile<f32, 8, 8, #0>", "operand 0 is laid out as"},
    {"%c = const {value = 1} : tile<i32, 8, 8, 5, #8> "
     "%x = trans %c {perm = [2, 0, 1]} : tile<i32, 5, 8, 8, "
     "\"reg(0,0,1) lane(0,0,2)(0,0,4)(0,1,0) warp(0,2,0)(0,4,0) -> 1x8x8 * 5x1x1\">",
     NULL},
    /* reshape */
    {"%x = reshape %a : tile<f32, 64, #5>", NULL},
    {"%x = reshape %a : tile<f32, 4, 2, 8, #6>", NULL},
    {"%x = reshape %a : tile<f32, 64, \"lane(1)(2)(4) warp(8)(16) reg(32)\">", "do not fit"},
    {"%o = const {value = 1} : tile<i32, 1, \"lane(0)(0)(0) warp(0)(0) -> 1\"> %x = reshape %o : "
     "i32",
     NULL},
    {"%o = const {value = 1} : tile<i32, 1, \"lane(0)(0)(1) warp(0)(0) -> 2\"> %x = reshape %o : "
     "i32",
     "operand 0 is laid out as"},
    /* reduce, scan */
    {"%x = reduce %a {axis = 1, kind = add} : tile<f32, 8, #1>", NULL},
    {"%x = reduce %a {axis = 0, kind = add} : tile<f32, 8, #2>", NULL},
    {"%x = reduce %a {axis = 0, kind = add} : tile<f32, 8, #1>", "result 0 is laid out as"},
    {"%r = reduce %a {axis = 0, kind = add} : tile<f32, 8, #2> %x = reduce %r {axis = 0, kind = "
     "add} : f32",
     NULL},
    {"%b = convert %a : tile<f32, 8, 8, #4> %x, %y = reduce %a, %b {axis = 0, kind = user} : "
     "tile<f32, 8, #2>, "
     "tile<f32, 8, #2> (%p1: f32, %p2: f32, %p3: f32, %p4: f32) { yield %p1, %p2 }",
     "operand 1 is laid out as"},
    {"%x = scan %a {axis = 1, kind = add} : tile<f32, 8, 8, #0>", NULL},
    {"%x = scan %a {axis = 1, kind = add} : tile<f32, 8, 8, #4>", "result 0 is tile"},
    /* dot */
    {"%b = convert %a : tile<f32, 8, 8, #4> %x = dot %b, %a, %a : tile<f32, 8, 8, #0>", NULL},
    {"%b = convert %a : tile<f32, 8, 8, #4> %x = dot %a, %a, %b : tile<f32, 8, 8, #0>",
     "not tile<f32, 8, 8, "},
    /* memory: views */
    {"%x = load %v, %n, %n {axes = [8, 8]} : tile<f32, 8, 8, #0>", NULL},
    {"%i = iota : tile<i32, 8, #1> %j = iota : tile<i32, 8, #2> "
     "%x = load %v, %i, %j {axes = [t, t]} : tile<f32, 8, 8, #0>",
     NULL},
    {"%i = iota : tile<i32, 8, #1> %x = load %v, %i, %n {axes = [t, 8]} : tile<f32, 8, 8, #0>",
     NULL},
    {"%i = iota : tile<i32, 8, #1> %x = load %v, %n, %i {axes = [8, t]} : tile<f32, 8, 8, #0>",
     "operand 2 is laid out as"},
    {"%i = iota : tile<i32, 8, #1> %x = load %v, %n, %i {axes = [i, t]} : tile<f32, 8, #1>", NULL},
    {"%i = const {value = 0} : tile<i32, 8, 8, #0> %x = load %v, %i, %i {axes = [t, t]} : "
     "tile<f32, 8, 8, #0>",
     NULL},
    {"%i = const {value = 0} : tile<i32, 8, 8, #0> %x = load %v, %i, %i {axes = [t, t]} : "
     "tile<f32, 8, 8, #4>",
     "operand 1 is laid out as"},
    {"%i = const {value = 0} : tile<i32, 8, 8, #0> %x = load %v, %i, %n {axes = [t, 5]} : "
     "tile<f32, 8, 8, 5, #8>",
     NULL},
    {"%m = const {value = true} : tile<bool, 8, 8, #0> %x = load %v, %n, %n, %m, %a {axes = [8, "
     "8], mask, other} : "
     "tile<f32, 8, 8, #0>",
     NULL},
    {"%m = const {value = true} : tile<bool, 8, 8, #4> %x = load %v, %n, %n, %m {axes = [8, 8], "
     "mask} : tile<f32, 8, 8, #0>",
     "operand 3 is laid out as"},
    {"%x = load %v, %n, %n, %a {axes = [8, 8], other} : tile<f32, 8, 8, #4>",
     "operand 3 is laid out as"},
    {"%x = inside %v, %n, %n {axes = [8, 8]} : tile<bool, 8, 8, #4>", NULL},
    {"store %v, %n, %n, %a {axes = [8, 8]}", NULL},
    {"%i = iota : tile<i32, 8, #1> store %v, %i, %n, %a {axes = [t, 8]}", NULL},
    {"%i = iota : tile<i32, 8, #2> store %v, %i, %n, %a {axes = [t, 8]}",
     "operand 1 is laid out as"},
    {"store %v, %n, %n, %a, %s {axes = [8, 8], mask}", NULL},
    {"%m = const {value = true} : tile<bool, 8, 8, #4> store %v, %n, %n, %a, %m {axes = [8, 8], "
     "mask}",
     "operand 4 is laid out as"},
    {"store %v, %n, %n, %f {axes = [i, i]}", NULL},
    /* memory: pointers */
    {"%q = broadcast %p : tile<ptr<f32>, 8, 8, #0> %x = load %q : tile<f32, 8, 8, #0>", NULL},
    {"%q = broadcast %p : tile<ptr<f32>, 8, 8, #4> %x = load %q : tile<f32, 8, 8, #0>",
     "operand 0 is laid out as"},
    {"%q = broadcast %p : tile<ptr<f32>, 8, 8, #4> store %q, %a", "operand 0 is laid out as"},
    {"%q = broadcast %p : tile<ptr<f32>, 8, 8, #0> %o = const {value = 1} : tile<i64, 8, 8, #4> "
     "%x = ptr_add %q, %o : tile<ptr<f32>, 8, 8, #0>",
     "operand 1 is laid out as"},
    {"%q = broadcast %p : tile<ptr<f32>, 8, 8, #0> "
     "%x = atomic_rmw %q, %a {rmw = add, order = relaxed, scope = device} : tile<f32, 8, 8, #0>",
     NULL},
    {"%q = broadcast %p : tile<ptr<f32>, 8, 8, #0> "
     "%x = atomic_rmw %q, %a {rmw = add, order = relaxed, scope = device} : tile<f32, 8, 8, #4>",
     "operand 0 is laid out as"},
    {"%q = broadcast %p : tile<ptr<f32>, 8, 8, #4> atomic_store %q, %a {order = relaxed, scope = "
     "device}",
     "operand 0 is laid out as"},
    /* control */
    {"%x = for %n, %n, %n, %a : tile<f32, 8, 8, #0> (%i: i32, %c: tile<f32, 8, 8, #0>) { yield %c "
     "}",
     NULL},
    {"%x = for %n, %n, %n, %a : tile<f32, 8, 8, #0> (%i: i32, %c: tile<f32, 8, 8, #4>) { yield %c "
     "}",
     "region argument 1"},
    {"%x = for %n, %n, %n, %a : tile<f32, 8, 8, #0> (%i: i32, %c: tile<f32, 8, 8, #0>) { "
     "%d = convert %c : tile<f32, 8, 8, #4> yield %d }",
     "yielded value 0"},
    {"%x = if %s : tile<f32, 8, 8, #0> () { yield %a } () { %b = convert %a : tile<f32, 8, 8, #4> "
     "yield %b }",
     "yielded value 0"},
    {"if %s () { %b = convert %a : tile<f32, 8, 8, \"reg(0,1)(2,0)(4,0) lane(0,2)(0,4)(1,0)\"> "
     "yield } () { yield }",
     "1 warps, the block has 4"},
    {"if %s () warps 2 { %b = const {value = 1} : tile<i32, 2, \"lane(0)(0)(0) warp(1)\"> yield } "
     "() { yield }",
     NULL},
    {"if %s () warps 2 { %b = const {value = 1} : tile<i32, 8, #1> yield } () { yield }",
     "4 warps, the block has 2"},
    {"print %a {text = \"a\"} barrier", NULL},
    /* text */
    {"%x = iota : tile<i32, 8, #9>", "layout #9 is not in a layouts line"},
    {"%x = iota : tile<i32, 8, \"reg(1\">", "not a layout"},
    {"%x = iota : tile<i32, 8, \"reg(1) -> 16777216 * 3\", 8>", "'>' expected"},
    {"%x = iota : tile<i32, 8, #x>", "number expected"},
};

static TlModule *parse(const char *text)
{
    ctx.diags.errors = ctx.diags.rows.len = 0;
    return tl_parse_module(&ctx, tl_diags_source(&ctx.diags, "t.tir", text, strlen(text)));
}

static const char *text_of(const TlModule *m)
{
    TlSbuf s;
    tl_sbuf_init(&s, &ctx.perm);
    tl_print_module(&s, m);
    return s.text;
}

static void check_row(const char *text, const char *fault)
{
    TlModule *m = parse(text);
    const char *said = ctx.diags.rows.len ? ctx.diags.rows.data[0].text : "nothing";
    bool fine = fault ? !m && strstr(said, fault) : m != NULL;
    if (!CHECK(fine))
        fprintf(stderr, "    %s\n    want %s\n    got  %s\n", text, fault ? fault : "nothing",
                said);
    if (!m)
        return;
    CHECK(tl_fn_level(m->fns.data[0]) >= TL_LEVEL_LAID_OUT);
    TlModule *again = tl_module_clone(m);
    CHECK_STR(text_of(again), text_of(m));
    tl_module_free(again);
    tl_module_free(m);
}

static void rules(void)
{
    static const char head[] =
        "kernel @k(%v: view<f32, 2>, %p: ptr<f32>, %n: i32, %f: f32, %s: bool) warps 4 {\n"
        "%a = load %v, %n, %n {axes = [8, 8]} : tile<f32, 8, 8, #0>\n";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(tl_format(&ctx.perm, LAYOUTS "%s%s\nreturn\n}\n", head, rows[i].body),
                  rows[i].fault);
    check_row("layouts #1 \"reg(1)\"\n", "layout #0 is expected here");
    check_row("kernel @k() { %a = iota : tile<i32, 2, \"lane(1)\"> %b = iota : tile<i32, 2, "
              "\"lane(1) warp(0)\"> "
              "return }",
              "2 warps, others have 1");
    ctx.diags.errors = ctx.diags.rows.len = 0;
    TlModule *m = parse("kernel @k() { %a = iota : tile<i32, 2> return }");
    CHECK(m && tl_fn_level(m->fns.data[0]) == TL_LEVEL_TILE);
    m = parse(
        "kernel @k(%c: bool) { %a = iota : tile<i32, 2, \"lane(1)\"> "
        "if %c () { %b = alloc : buf<i32, 2, \"offset(1)\", 1> yield } () { yield } return }");
    CHECK(m && tl_fn_level(m->fns.data[0]) == TL_LEVEL_STAGED);
}

/* ---- both directions of the rules ---- */

static const TlOp *last_op(TlModule *m)
{
    return m->fns.data[0]->body->last->prev;
}

static void directions(void)
{
    TlModule *m = parse("kernel @k(%v: view<f32, 2>, %n: i32) { %a = iota : tile<i32, 8> "
                        "%x = load %v, %a, %n {axes = [t, 4]} : tile<f32, 8, 4> return }");
    if (!CHECK(m))
        return;
    const TlOp *load = last_op(m);
    const TlLayout *l = lay("reg(0,1) lane(0,2)(1,0) warp(2,0)(4,0)");
    CHECK(tl_layout_for_operand(&ctx, load, 0, l) == NULL); /* a view */
    CHECK_STR(show(tl_layout_for_operand(&ctx, load, 1, l)), "reg lane(0)(1) warp(2)(4) -> 8");
    CHECK(tl_layout_for_operand(&ctx, load, 2, l) == NULL); /* a scalar */
    CHECK(tl_layout_for_result(&ctx, load, 1, lay("lane(1)(2) warp(4)")) == NULL);
    CHECK(tl_op_layout(load) == NULL);
    m = parse("kernel @k(%v: view<f32, 2>) { %a = iota : tile<i32, 8> %x = expand %a {axis = 1} : "
              "tile<i32, 8, 1> "
              "%y = broadcast %x : tile<i32, 8, 4> %z = trans %y {perm = [1, 0]} : tile<i32, 4, 8> "
              "%r = reduce %z {axis = 0, kind = add} : tile<i32, 8> %q = reshape %r : tile<i32, 2, "
              "4> return }");
    if (!CHECK(m))
        return;
    const TlOp *reshape = last_op(m), *reduce = reshape->prev, *trans = reduce->prev,
               *broadcast = trans->prev, *expand = broadcast->prev;
    const TlLayout *down = lay("lane(1)(2) warp(4)");
    CHECK_STR(show(tl_layout_for_result(&ctx, expand, 0, down)),
              "reg lane(1,0)(2,0) warp(4,0) -> 8x1");
    CHECK(tl_layout_for_result(&ctx, broadcast, 0, down) == NULL);
    CHECK_STR(show(tl_layout_for_operand(&ctx, broadcast, 0, l)),
              "reg lane(0,0)(1,0) warp(2,0)(4,0) -> 8x1");
    CHECK_STR(show(tl_layout_for_result(&ctx, trans, 0, l)),
              "reg(1,0) lane(2,0)(0,1) warp(0,2)(0,4) -> 4x8");
    CHECK(tl_layout_for_operand(&ctx, trans, 0, tl_layout_for_result(&ctx, trans, 0, l)) == l);
    CHECK(tl_layout_for_operand(&ctx, reduce, 0, down) == NULL);
    CHECK_STR(show(tl_layout_for_result(&ctx, reduce, 0, l)), "reg(1) lane(2)(0) warp(0)(0) -> 4");
    CHECK_STR(show(tl_layout_for_result(&ctx, reshape, 0, down)),
              "reg lane(0,1)(0,2) warp(1,0) -> 2x4");
    CHECK(tl_layout_for_operand(&ctx, reshape, 0, tl_layout_for_result(&ctx, reshape, 0, down)) ==
          down);
}

/* ---- damaged text ---- */

static uint64_t random_state = 3;
static uint32_t below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

/* A digit, bracket or word of layouts instead of one or two characters: refused, or prints back. */
static void damaged_text(void)
{
    static const char *const pieces[] = {"0",  "1",  "7", "999", "16777216", "(",    ")",
                                         ",",  "\"", "#", "reg", "lane",     "warp", "offset",
                                         "->", "*",  "x", " ",   "-",        "(0,1)"};
    int fine = 0;
    for (int i = 0; i < 3000; i++) {
        TlCtx own;
        tl_ctx_init(&own, (TlAlloc){0});
        const char *body = rows[below(sizeof rows / sizeof *rows)].body;
        const char *text = tl_format(
            &own.perm,
            LAYOUTS
            "kernel @k(%%v: view<f32, 2>, %%p: ptr<f32>, %%n: i32, %%f: f32, %%s: bool) warps 4 {\n"
            "%%a = load %%v, %%n, %%n {axes = [8, 8]} : tile<f32, 8, 8, #0>\n%s\nreturn\n}\n",
            body);
        size_t size = strlen(text), at = below((uint32_t)size - 2);
        const char *broken = tl_format(&own.perm, "%.*s%s%s", (int)at, text, pieces[below(20)],
                                       text + at + below(3));
        TlModule *m =
            tl_parse_module(&own, tl_diags_source(&own.diags, "d", broken, strlen(broken)));
        CHECK(m || own.diags.errors);
        fine += m != NULL;
        if (m)
            CHECK_STR(text_of(tl_module_clone(m)), text_of(m));
        tl_ctx_free(&own);
    }
    CHECK(fine > 30);
}

static void run(void)
{
    equal_layouts_are_one_pointer();
    types_carry_layouts();
    chosen_outputs();
    reshapes_keep_elements();
    registers_by_coordinate();
    rules();
    directions();
    damaged_text();
}

int main(void)
{
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlGuard g;
    if (TL_GUARD(&g)) {
        run();
        tl_guard_pop(&g);
    } else {
        CHECK(!"fault");
        fprintf(stderr, "    %s\n", g.text);
    }
    tl_ctx_free(&ctx);
    return unit_result();
}
