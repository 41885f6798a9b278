/* Types, building, rewriting, the text form and the verifier. */
#include "ir/rewrite.h"
#include "ir/plan/staged.h"
#include "test/unit/shared_layouts.h"
#include "test/unit/unit.h"
#include <stdlib.h>

static TlCtx ctx;

static const TlType *tile1(TlDtype d, int32_t n) { return tl_type_tile(&ctx, d, 1, &n); }

static const char *text_of(const TlModule *m)
{
    TlSbuf s;
    tl_sbuf_init(&s, &ctx.perm);
    tl_print_module(&s, m);
    return s.text;
}

static TlModule *parse(const char *text)
{
    return tl_parse_module(&ctx, tl_diags_source(&ctx.diags, "t.tir", text, strlen(text)));
}

static const char *faults_of(const TlModule *m)
{
    TlSbuf s;
    tl_sbuf_init(&s, &ctx.perm);
    tl_verify_module(m, &s);
    return s.text;
}

static void types_are_interned(void)
{
    int32_t shape[] = {16, 32};
    const TlType *t = tl_type_tile(&ctx, TL_F16, 2, shape);
    CHECK(t == tl_type_tile(&ctx, TL_F16, 2, (int32_t[]){16, 32}));
    CHECK(t != tl_type_tile(&ctx, TL_F16, 2, (int32_t[]){32, 16}));
    CHECK(tl_type_with_dtype(&ctx, t, TL_F32) == tl_type_tile(&ctx, TL_F32, 2, shape));
    CHECK(tl_type_with_shape(&ctx, t, 0, NULL) == tl_type_scalar(&ctx, TL_F16));
    CHECK_STR(tl_type_str(&ctx, t), "tile<f16, 16, 32>");
    CHECK_STR(tl_type_str(&ctx, tl_type_ptr(&ctx, TL_F32, true, 0, NULL)), "ptr<const f32>");
    CHECK_STR(tl_type_str(&ctx, tl_type_ptr(&ctx, TL_U8, false, 2, shape)),
              "tile<ptr<u8>, 16, 32>");
    CHECK_STR(tl_type_str(&ctx, tl_type_view(&ctx, TL_I4, true, 8)), "view<const i4, 8>");
    TlLayout *l = tl_layout_parse(&ctx.perm, "offset(0,1)(1,0) -> 2x2");
    const TlType *buf = tl_type_buf(&ctx, TL_F16, 2, (int32_t[]){2, 2}, l, 3);
    CHECK(buf == tl_type_buf(&ctx, TL_F16, 2, (int32_t[]){2, 2}, l, 3));
    CHECK(buf != tl_type_buf(&ctx, TL_F16, 2, (int32_t[]){2, 2}, l, 2));
    CHECK(tl_type_halved(&ctx, buf, 1) != buf);
    CHECK(tl_type_halved(&ctx, tl_type_halved(&ctx, buf, 1), -1) == buf);
    CHECK_STR(tl_type_str(&ctx, buf), "buf<f16, 2, 2, \"offset(0,1)(1,0) -> 2x2\", 3>");
    for (int32_t i = 1; i < 2000; i++) tile1(TL_F32, i);
    CHECK(tile1(TL_F32, 77) == tile1(TL_F32, 77) && tile1(TL_F32, 77)->shape[0] == 77);
    TlDtype d;
    CHECK(tl_dtype_parse("float", 5, &d) && d == TL_F32);
    CHECK(!tl_dtype_parse("f3", 2, &d));
    CHECK_INT(tl_dtype_bytes(TL_I4), 1);
}

/* Bytes and places of buffers: swizzles begin where their pattern does, repetitions are chunks. */
static void buffers_have_places(void)
{
    TlLayout *l = nvmma_layout(&ctx.perm, 7, 6, 16, 128);
    const TlType *b = tl_type_buf(&ctx, TL_F16, 2, (int32_t[]){128, 64}, l, 3);
    CHECK_INT(tl_buf_alignment(b), 1024);
    CHECK_INT(tl_buf_slot_bytes(b), 16384);
    CHECK_INT(tl_buf_bytes(b), 3 * 16384);
    CHECK_INT(tl_buf_offset(b, (int32_t[]){0, 8}), 16);
    CHECK_INT(tl_buf_offset(b, (int32_t[]){1, 0}), 128 + 16);
    CHECK_INT(tl_buf_offset(b, (int32_t[]){9, 9}), 1024 + 128 + 2);
    l = nvmma_layout(&ctx.perm, 3, 4, 16, 32);
    CHECK_INT(tl_buf_alignment(tl_type_buf(&ctx, TL_F16, 2, (int32_t[]){8, 16}, l, 1)), 256);
    l = tl_layout_parse(&ctx.perm, "offset(0,1)(1,0) -> 2x2 * 3x5");
    b = tl_type_buf(&ctx, TL_I8, 2, (int32_t[]){5, 10}, l, 2);
    CHECK_INT(tl_buf_alignment(b), 128);
    CHECK_INT(tl_buf_slot_bytes(b), 128); /* 60 */
    CHECK_INT(tl_buf_offset(b, (int32_t[]){5, 8}), 14 * 4 + 2);
}

static void tables_agree(void)
{
    for (int i = 0; i < TL_OP_COUNT; i++) {
        const TlOpInfo *info = tl_op_info((TlOpcode)i);
        TlOpcode back;
        CHECK(tl_opcode_parse(info->text, strlen(info->text), &back) && (int)back == i);
        CHECK((tl_op_required_attrs((TlOpcode)i) & tl_op_optional_attrs((TlOpcode)i)) == 0);
    }
    TlOpcode none;
    CHECK(!tl_opcode_parse("adds", 4, &none) && !tl_opcode_parse("ad", 2, &none));
    CHECK_INT(tl_enum_parse(TL_FORM_ORDER, "acq_rel", 7), TL_ORDER_ACQ_REL);
    CHECK_INT(tl_enum_parse(TL_FORM_ORDER, "acq", 3), -1);
    CHECK_STR(tl_enum_name(TL_FORM_RMW, TL_RMW_XCHG), "xchg");
    CHECK(!tl_enum_name(TL_FORM_RMW, 99) && !tl_enum_name(TL_FORM_RMW, -1) &&
          !tl_enum_name(TL_FORM_INT, 0));
}

/* kernel @k(%x, %n): a loop that sums and an if. */
static TlModule *build(TlFn **out_fn)
{
    TlModule *m = tl_module_new(&ctx);
    TlFn *fn = tl_fn_new(m, "k", (TlLoc){0});
    TlValue *p = tl_block_arg(fn->body, tl_type_ptr(&ctx, TL_F32, false, 0, NULL), "x");
    TlValue *n = tl_block_arg(fn->body, tl_type_scalar(&ctx, TL_I32), "n");
    TlBuilder b = tl_builder_end(fn->body);
    TlValue *zero = tl_const_int(&b, n->type, 0), *one = tl_const_int(&b, n->type, 1);
    TlValue *init = tl_const_bits(&b, tile1(TL_F32, 8), 0x3f000000);
    const TlType *t = init->type;
    TlOp *loop = tl_op_new(&b, TL_OP_FOR, 4, (TlValue *[]){zero, n, one, init}, 1, &t, 1, 0, NULL);
    TlBuilder in = {.fn = fn, .block = loop->regions[0]};
    TlValue *iv = tl_block_arg(in.block, n->type, "i"), *acc = tl_block_arg(in.block, t, "acc");
    TlValue *f = tl_broadcast(&in, tl_cast(&in, iv, TL_F32), 1, t->shape);
    TlValue *sum = tl_binary(&in, TL_OP_ADD, acc, f);
    sum->name = "acc";
    tl_yield(&in, TL_OP_YIELD, 1, &sum);
    TlOp *iota =
        tl_op_new(&b, TL_OP_IOTA, 0, NULL, 1, (const TlType *[]){tile1(TL_I32, 8)}, 0, 0, NULL);
    TlValue *ps = tl_binary(&b, TL_OP_PTR_ADD, tl_broadcast(&b, p, 1, t->shape), iota->out[0]);
    tl_op_new(&b, TL_OP_STORE, 2, (TlValue *[]){ps, loop->out[0]}, 0, NULL, 0, 0, NULL);
    tl_yield(&b, TL_OP_RETURN, 0, NULL);
    *out_fn = fn;
    return m;
}

static const char built_text[] =
    "kernel @k(%x: ptr<f32>, %n: i32) {\n"
    "  %0 = const {value = 0} : i32\n"
    "  %1 = const {value = 1} : i32\n"
    "  %2 = const {value = 0.5} : tile<f32, 8>\n"
    "  %3 = for %0, %n, %1, %2 : tile<f32, 8> (%i: i32, %acc: tile<f32, 8>) {\n"
    "    %4 = cast %i : f32\n"
    "    %5 = broadcast %4 : tile<f32, 8>\n"
    "    %acc.1 = add %acc, %5 : tile<f32, 8>\n"
    "    yield %acc.1\n"
    "  }\n"
    "  %6 = iota : tile<i32, 8>\n"
    "  %7 = broadcast %x : tile<ptr<f32>, 8>\n"
    "  %8 = ptr_add %7, %6 : tile<ptr<f32>, 8>\n"
    "  store %8, %3\n"
    "  return\n"
    "}\n";

static void built_ir_prints_and_parses(void)
{
    TlFn *fn;
    TlModule *m = build(&fn);
    CHECK_STR(faults_of(m), "");
    CHECK_STR(text_of(m), built_text);
    TlModule *again = parse(built_text);
    if (!CHECK(again)) return;
    CHECK_STR(text_of(again), built_text);
    TlModule *copy = tl_module_clone(again);
    CHECK_STR(text_of(copy), built_text);
    tl_module_free(copy);
    tl_module_free(again);
    tl_module_free(m);
}

static void edits_keep_use_lists(void)
{
    TlFn *fn;
    TlModule *m = build(&fn);
    TlOp *zero = fn->body->first, *one = zero->next, *init = one->next, *loop = init->next;
    CHECK_INT(tl_use_count(zero->out[0]), 1);
    tl_replace_uses(zero->out[0], one->out[0]);
    CHECK_INT(tl_use_count(one->out[0]), 2);
    tl_op_erase(zero);
    CHECK_STR(faults_of(m), "");
    TlMap map;
    tl_map_init(&map, &m->arena);
    TlBuilder b = tl_builder_before(loop->next);
    TlOp *copy = tl_op_clone(&b, loop, &map);
    CHECK(copy->regions[0]->first->in[0].value == copy->regions[0]->args[0]);
    CHECK(tl_block_is_inside(copy->regions[0], copy) &&
          !tl_block_is_inside(copy->regions[0], loop));
    CHECK_STR(faults_of(m), "");
    tl_replace_uses(loop->out[0], copy->out[0]);
    tl_op_erase(loop);
    CHECK_STR(faults_of(m), "");
    /* a carried value more, then less */
    tl_add_operand(fn, copy, one->out[0]);
    tl_block_arg(copy->regions[0], one->out[0]->type, "extra");
    CHECK(strstr(faults_of(m), "for: 1 results, 2 expected"));
    tl_block_remove_arg(copy->regions[0], 2);
    tl_remove_operand(copy, 4);
    CHECK_STR(faults_of(m), "");
    tl_remove_operand(copy, 0);
    CHECK(strstr(faults_of(m), "for: 0 results") ||
          strstr(faults_of(m), "for: 1 results, 0 expected"));
    uint64_t bits;
    CHECK(tl_value_is_const(init->out[0], &bits) && bits == 0x3f000000);
    CHECK(!tl_value_is_const(copy->out[0], &bits));
    CHECK(!tl_op_is_pure(fn->body->last->prev) && tl_op_is_pure(copy));
    tl_module_free(m);
}

static void short_forms_infer_types(void)
{
    TlModule *m = tl_module_new(&ctx);
    TlFn *fn = tl_fn_new(m, "s", (TlLoc){0});
    TlBuilder b = tl_builder_end(fn->body);
    const TlType *f32 = tl_type_scalar(&ctx, TL_F32);
    TlValue *two = tl_const_int(&b, f32, 2),
            *half = tl_const_int(&b, tl_type_scalar(&ctx, TL_F16), -1);
    CHECK_INT(two->def->attrs[0].u.bits, 0x40000000);
    CHECK_INT(half->def->attrs[0].u.bits, 0xbc00);
    TlValue *v = tl_broadcast(&b, two, 1, (int32_t[]){4});
    CHECK(tl_broadcast(&b, v, 1, (int32_t[]){4}) == v && tl_cast(&b, v, TL_F32) == v);
    TlValue *t = tl_broadcast(&b, v, 3, (int32_t[]){2, 3, 4});
    CHECK_STR(tl_type_str(&ctx, t->type), "tile<f32, 2, 3, 4>");
    CHECK(t->def->in[0].value->def->opcode == TL_OP_EXPAND);
    uint64_t bits = 0;
    CHECK(tl_value_is_const(t, &bits) && bits == 0x40000000);
    TlValue *c = tl_binary(&b, TL_OP_LE, t, t);
    CHECK_STR(tl_type_str(&ctx, c->type), "tile<bool, 2, 3, 4>");
    TlValue *s = tl_select(&b, c, t, tl_unary(&b, TL_OP_SQRT, t));
    CHECK(tl_fma(&b, s, s, t)->type == t->type);
    tl_yield(&b, TL_OP_RETURN, 0, NULL);
    CHECK_STR(faults_of(m), "");
    tl_module_free(m);
}

/* if %c : (a, b) { a = neg; yield a, a } { yield x, x }: results and ops are taken away. */
static void blocks_and_results_can_be_emptied(void)
{
    TlModule *m = parse(
        "kernel @e(%x: f32, %c: bool) {\n"
        "  %a, %b = if %c : f32, f32 () {\n    %n = neg %x : f32\n    yield %n, %x\n  } () {\n"
        "    yield %x, %x\n  }\n  print %b {text = \"b\"}\n  return\n}\n");
    if (!CHECK(m)) return;
    TlFn *fn = m->fns.data[0];
    TlOp *branch = fn->body->first;
    tl_remove_operand(branch->regions[0]->last, 0);
    tl_remove_operand(branch->regions[1]->last, 0);
    tl_op_remove_result(branch, 0);
    CHECK_STR(faults_of(m), "");
    TlOp *neg = branch->regions[0]->first;
    tl_op_move_before(neg, branch);
    tl_op_move_before(neg, neg);
    CHECK(neg == fn->body->first && neg->block == fn->body);
    TlValue *x = branch->regions[0]->last->in[0].value;
    tl_op_erase(branch->regions[0]->last);
    tl_block_move_ops(branch->regions[0], fn->body, branch); /* nothing left to move */
    tl_replace_uses(branch->out[0], x);
    tl_replace_uses(x, x);
    tl_op_erase(branch);
    CHECK_STR(faults_of(m), "");
    CHECK_STR(text_of(m), "kernel @e(%x: f32, %c: bool) {\n  %n = neg %x : f32\n  print %x {text = "
                          "\"b\"}\n  return\n}\n");
    TlAttr text = {.id = TL_ATTR_TEXT, .u.s = "other"};
    tl_attr_set(fn, neg->next, text);
    CHECK_STR(tl_attr(neg->next, TL_ATTR_TEXT)->u.s, "other");
    tl_attr_remove(neg->next, TL_ATTR_TEXT);
    CHECK(strstr(faults_of(m), "print: needs text"));
    tl_module_free(m);
}

static void clones_have_their_own_regions(void)
{
    TlModule *m = parse("kernel @e(%c: bool) {\n  if %c () {\n    if %c () { yield } () { yield "
                        "}\n    yield\n  } () {\n"
                        "    yield\n  }\n  return\n}\n");
    if (!CHECK(m)) return;
    TlOp *branch = m->fns.data[0]->body->first;
    TlBuilder b = tl_builder_before(branch);
    TlMap map;
    tl_map_init(&map, &m->arena);
    TlOp *copy = tl_op_clone(&b, branch, &map);
    CHECK(copy->regions[0]->first != branch->regions[0]->first && copy->next == branch);
    tl_op_erase(branch);
    int ops = 0;
    for (TlOp *op = m->fns.data[0]->body->first; op; op = tl_walk_next(op, NULL)) ops++;
    CHECK_INT(ops, 7);
    ops = 0;
    for (TlOp *op = tl_walk_next(copy, copy); op; op = tl_walk_next(op, copy)) ops++;
    CHECK_INT(ops, 5);
    CHECK_STR(faults_of(m), "");
    tl_module_free(m);
}

static void verifier_sees_broken_links(void)
{
    TlFn *fn;
    TlModule *m = build(&fn);
    TlOp *zero = fn->body->first;
    TlUse *use = zero->out[0]->uses;
    zero->out[0]->uses = NULL;
    CHECK(strstr(faults_of(m), "use list"));
    zero->out[0]->uses = use;
    use->next = use;
    CHECK(strstr(faults_of(m), "use list"));
    use->next = NULL;
    zero->out[0]->id = fn->nvalues;
    CHECK(strstr(faults_of(m), "value id"));
    zero->out[0]->id = 2;
    CHECK_STR(faults_of(m), "");
    zero->next->prev = NULL;
    CHECK(strstr(faults_of(m), "wrong link"));
    zero->next->prev = zero;
    tl_op_move_before(zero, fn->body->last);
    tl_op_move_before(fn->body->last, zero);
    CHECK(strstr(faults_of(m), "terminator") || strstr(faults_of(m), "end of its block"));
    tl_op_move_before(zero, fn->body->first);
    CHECK_STR(faults_of(m), "");
    tl_op_move_before(zero, fn->body->last);
    CHECK(strstr(faults_of(m), "for: operand 0 is not defined above"));
    tl_module_free(m);
}

static void constants_round_trip(void)
{
    static const TlDtype floats[] = {TL_F16,    TL_BF16,   TL_F32,        TL_F64,       TL_F8E4M3,
                                     TL_F8E5M2, TL_F4E2M1, TL_F8E4M3FNUZ, TL_F8E5M2FNUZ};
    TlModule *m = tl_module_new(&ctx);
    TlFn *fn = tl_fn_new(m, "c", (TlLoc){0});
    TlBuilder b = tl_builder_end(fn->body);
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        for (int j = 0; j < 300; j++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint64_t bits =
                j < 256 && tl_dtype_bits(floats[i]) <= 8 ? (uint64_t)j : seed ^ seed >> 29;
            tl_const_bits(&b, tl_type_scalar(&ctx, floats[i]),
                          bits & UINT64_MAX >> (64 - tl_dtype_bits(floats[i])));
        }
    tl_const_bits(&b, tl_type_scalar(&ctx, TL_F32), 0x7fc00001);
    tl_const_bits(&b, tl_type_scalar(&ctx, TL_F32), 0x80000000);
    tl_const_int(&b, tl_type_scalar(&ctx, TL_I64), INT64_MIN);
    tl_const_int(&b, tl_type_scalar(&ctx, TL_U64), -1);
    tl_const_int(&b, tl_type_scalar(&ctx, TL_I4), -8);
    tl_const_int(&b, tl_type_scalar(&ctx, TL_BOOL), 5);
    tl_yield(&b, TL_OP_RETURN, 0, NULL);
    CHECK_STR(faults_of(m), "");
    TlModule *copy = tl_module_clone(m);
    int bad = 0;
    for (TlOp *x = fn->body->first, *y = copy->fns.data[0]->body->first; x && y;
         x = x->next, y = y->next)
        if (x->opcode == TL_OP_CONST) bad += x->attrs[0].u.bits != y->attrs[0].u.bits;
    CHECK_INT(bad, 0);
    CHECK_STR(text_of(copy), text_of(m));
    tl_module_free(copy);
    tl_module_free(m);
}

static const char everything[] =
    "files \"a.tile\", \"dir/b \\\"q\\\".tile\"\n"
    "kernel @all(%A: view<const f16, 2>, %p: ptr<i32>, %s: f32) @3:8 info {\n"
    "    doc \"two\\nlines\\x01\"\n"
    "    param \"A\" view const f16 [sym 0 : sym 2, i64 sym 1 : const 1] @1:3:20\n"
    "    param \"p\" pointer i32 @3:40\n"
    "    param \"s\" scalar f32\n"
    "    sym \"M\" extent 0, 0\n"
    "    sym \"K\" extent 0, 1\n"
    "    sym \"lda\" stride 0, 0\n"
    "    expr int \"cdiv(M, 128)\" [sym 0, const 128, cdiv] @4:10\n"
    "    expr float \"s * 2\" [arg 2, const 4611686018427387904, fmul]\n"
    "    const \"BM\" \"128\"\n"
    "    grid 0, 0\n"
    "    group 0\n"
    "    require 0\n"
    "    assume 0\n"
    "    alias 0, 1\n"
    "    warps 4\n"
    "    stages 3\n"
    "    maxreg 64\n"
    "    aligned\n"
    "  } warps 4 {\n"
    "  %c = const {value = true} : bool @5:3\n"
    "  %i = pid {axis = 0} : i32 @1:6:3\n"
    "  %t = load %A, %i, %i {axes = [i, 16:2], cache = stream, evict = first} : tile<f16, 16>\n"
    "  %t.1 = load %A, %i, %i, %c, %x {axes = [64, 8], mask, other, unchecked} : tile<f16, 64, 8>\n"
    "  return\n"
    "}\n";

static void launch_facts_and_positions_round_trip(void)
{
    TlModule *bad = parse(everything);
    CHECK(!bad); /* %x is not defined */
    char text[sizeof everything + 100];
    const char *load = strstr(everything, "  %t.1 = load");
    snprintf(text, sizeof text, "%.*s  %%x = const {value = 1.5} : f16\n%s",
             (int)(load - everything), everything, load);
    TlModule *m = parse(text);
    if (!CHECK(m)) {
        TlSbuf s;
        tl_sbuf_init(&s, &ctx.perm);
        tl_diags_render(&ctx.diags, TL_DIAG_TEXT, false, &s);
        fputs(s.text, stderr);
        return;
    }
    CHECK_STR(text_of(m), text);
    TlFn *fn = m->fns.data[0];
    CHECK_INT(fn->info->params.data[0].stride[0].value, 2);
    CHECK_INT(fn->body->first->next->loc.line, 6);
    CHECK_STR(ctx.diags.sources.data[fn->body->first->next->loc.file].path, "dir/b \"q\".tile");
    TlPlace p = tl_op_place(fn->body->last->prev);
    CHECK(p.rank == 2 && p.shape[0] == 64 && p.shape[1] == 8 && p.mask && p.other && !p.value &&
          p.naxes == 2);
    tl_module_free(m);
}

static void places(void)
{
    TlModule *m = parse("kernel @g(%A: view<f32, 3>) {\n"
                        "  %i = iota : tile<i32, 4>\n"
                        "  %j = iota : tile<i64, 5>\n"
                        "  %s = const {value = -3} : i8\n"
                        "  %q = broadcast %s : tile<i8, 2, 3>\n"
                        "  %a = load %A, %i, %s, %j {axes = [t, 7, t]} : tile<f32, 4, 7, 5>\n"
                        "  %b = load %A, %q, %s, %s {axes = [t, i, 9]} : tile<f32, 2, 3, 9>\n"
                        "  %c = load %A, %s, %s, %s {axes = [i, i, i]} : f32\n"
                        "  return\n}\n");
    if (!CHECK(m)) return;
    TlOp *c = m->fns.data[0]->body->last->prev;
    CHECK(tl_op_place(c).rank == 0 && !tl_op_place(c).pointwise);
    CHECK(tl_op_place(c->prev).pointwise);
    CHECK(tl_op_place(c->prev->prev).rank == 3 && !tl_op_place(c->prev->prev).pointwise);
    tl_module_free(m);
}

/* A matrix in shared memory as warpgroups read it; their sums. */
#define IMAGE "\"offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)(16,0)(32,0)\""
#define TALL  "\"offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)(16,0)(32,0)(64,0)\""
/* Sums in tensor memory. */
#define ROWS                                                                                       \
    "\"reg(0,1)(0,2)(0,4)(0,8)(0,16)(0,32) lane(1,0)(2,0)(4,0)(8,0)(16,0) warp(32,0)(64,0)\""
#define SUMS  "\"reg(0,1)(8,0)(0,8)(0,16)(0,32) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(16,0)(32,0)\""

static const char every_op[] =
    "files \"a.tile\"\n"
    "kernel @all(%A: view<f32, 2>, %p: ptr<i32>, %s: f32, %n: i32) @3:8 info {\n"
    "    param \"A\" view f32 [sym 0 : dense, i64 sym 1 : const 1] @3:20\n"
    "    param \"p\" pointer i32 @3:40\n"
    "    param \"s\" scalar f32\n"
    "    param \"n\" scalar i32\n"
    "    sym \"M\" extent 0, 0\n"
    "    sym \"K\" extent 0, 1\n"
    "    expr int \"cdiv(M, 128)\" [sym 0, const 128, cdiv] @4:10\n"
    "    const \"BM\" \"128\"\n"
    "    grid 0, 0\n"
    "    group 0\n"
    "    warps 4\n"
    "} {\n"
    "  %c = const {value = true} : bool @5:3\n"
    "  %i = pid {axis = 0} : i32\n"
    "  %x = const {value = 1.5} : f32\n"
    "  %l = cast %i : i64\n"
    "  %t = load %A, %i, %i {axes = [i, 16:2], cache = stream, evict = first} : tile<f32, 16>\n"
    "  %t.1 = load %A, %i, %i, %c, %x {axes = [8, 8], mask, other, unchecked} : tile<f32, 8, 8>\n"
    "  %d = dot %t.1, %t.1, %t.1 : tile<f32, 8, 8>\n"
    "  %o = iota : tile<i32, 8>\n"
    "  %g = load %A, %o, %o {axes = [t, t]} : tile<f32, 8, 8>\n"
    "  %in = inside %A, %o, %l {axes = [t, 3]} : tile<bool, 8, 3>\n"
    "  %r = reduce %g {axis = 1, kind = add} : tile<f32, 8>\n"
    "  %u, %w = reduce %g, %d {axis = 0, kind = user} : tile<f32, 8>, tile<f32, 8> (%a: f32, %b: "
    "f32, %e: f32, %f: f32) {\n"
    "    %m = mul %a, %e : f32\n"
    "    %k = lt %m, %f : bool\n"
    "    %y = if %k : f32 () { yield %m } () { yield %b }\n"
    "    yield %y, %f\n"
    "  }\n"
    "  %q = for %i, %n, %n, %r {unroll = 2} : tile<f32, 8> (%iv: i32, %acc: tile<f32, 8>) {\n"
    "    %z = while %iv : i32 (%h: i32) {\n"
    "      %v = lt %h, %n : bool\n"
    "      condition %v, %h\n"
    "    } (%h2: i32) {\n"
    "      %h3 = add %h2, %iv : i32\n"
    "      yield %h3\n"
    "    }\n"
    "    %s2 = add %acc, %r : tile<f32, 8>\n"
    "    yield %s2\n"
    "  }\n"
    "  %e8 = expand %q {axis = 1} : tile<f32, 8, 1>\n"
    "  %bb = broadcast %e8 : tile<f32, 8, 8>\n"
    "  store %A, %i, %i, %bb, %c {axes = [8, 8], mask}\n"
    "  %old = atomic_rmw %p, %n {rmw = add, order = relaxed, scope = device} : i32\n"
    "  %ca = atomic_cas %p, %n, %old {order = acq_rel, scope = system} : i32\n"
    "  %sv = sub_view %A, %l, %l, %l, %l : view<f32, 2>\n"
    "  %ptr = view_ptr %sv : ptr<f32>\n"
    "  %ex = extent %sv {axis = 1} : i64\n"
    "  %vw = view %ptr, %ex, %l : view<f32, 1>\n"
    "  print %x {text = \"x\"}\n"
    "  assert %c {text = \"no\"}\n"
    "  assume %c\n"
    "  %fm = fma %x, %x, %s : f32\n"
    "  %sel = select %c, %t, %t : tile<f32, 16>\n"
    "  %bc = bitcast %t : tile<i32, 16>\n"
    "  %np = npid {axis = 5} : i32\n"
    "  %rs = reshape %t : tile<f32, 2, 8>\n"
    "  %tr = trans %rs {perm = [1, 0]} : tile<f32, 8, 2>\n"
    "  %ix = broadcast %n : tile<i32, 3, 2>\n"
    "  %sc = scan %tr {axis = 1, kind = max, reverse} : tile<f32, 8, 2>\n"
    "  %as = asm %x, %n {text = \"add {0}, {1}\"} : f32\n"
    "  %ga = gather %tr, %ix {axis = 0} : tile<f32, 3, 2>\n"
    "  %hi = histogram %ix : tile<i32, 9>\n"
    "  %pa = ptr_add %p, %l : ptr<i32>\n"
    "  %ad = address %p : u64\n"
    "  %po = pointer %ad : ptr<i32>\n"
    "  %st = stride %A {axis = 0} : i64\n"
    "  %al = atomic_load %pa {order = acquire, scope = block} : i32\n"
    "  atomic_store %pa, %al, %c {order = release, scope = system, mask}\n"
    "  if %c () {\n"
    "    yield\n"
    "  } () {\n"
    "    yield\n"
    "  }\n"
    "  %rg = regroup %tr : tile<f32, 4, 4>\n"
    "  %cv = convert %tr : tile<f32, 8, 2>\n"
    "  barrier\n"
    " %add = add %n, %n : i32\n"
    " %sub = sub %n, %n : i32\n"
    " %mul = mul %n, %n : i32\n"
    " %div = div %n, %n : i32\n"
    " %rem = rem %n, %n : i32\n"
    " %min = min %n, %n : i32\n"
    " %max = max %n, %n : i32\n"
    " %mn = min_nan %x, %x : f32\n"
    " %mx = max_nan %x, %x : f32\n"
    " %and = and %c, %c : bool\n"
    " %or = or %c, %c : bool\n"
    " %xor = xor %c, %c : bool\n"
    " %shl = shl %n, %n : i32\n"
    " %shr = shr %n, %n : i32\n"
    " %mulhi = mulhi %n, %n : i32\n"
    " %neg = neg %x : f32\n"
    " %not = not %n : i32\n"
    " %abs = abs %x : f32\n"
    " %sqrt = sqrt %x : f32\n"
    " %exp2 = exp2 %x : f32\n"
    " %floor = floor %x : f32\n"
    " %ceil = ceil %x : f32\n"
    " %trunc = trunc %x : f32\n"
    " %rint = rint %x : f32\n"
    " %round = round %x : f32\n"
    " %pop = popcount %n : i32\n"
    " %clz = clz %n : i32\n"
    " %ctz = ctz %n : i32\n"
    " %eq = eq %t, %t : tile<bool, 16>\n"
    " %ne = ne %t, %t : tile<bool, 16>\n"
    " %lt = lt %t, %t : tile<bool, 16>\n"
    " %le = le %t, %t : tile<bool, 16>\n"
    " %gt = gt %t, %t : tile<bool, 16>\n"
    " %ge = ge %t, %t : tile<bool, 16>\n"
    "  return\n"
    "}\n"
    "kernel @staged(%A: view<f32, 1>, %n: i32) {\n"
    "  %b = alloc {shared = 128} : buf<f32, 6, \"offset(1) -> 2 * 3\", 2>\n"
    "  %t = copy %A, %n, %b, %n {axes = [6]} : token<f32, 6, \"lane(1)(2)(4)\">\n"
    "  commit\n"
    "  wait {pending = 0}\n"
    "  %x = get %b, %n {late} : tile<f32, 6, \"lane(1)(2)(4)\">\n"
    "  read %x\n"
    "  put %b, %n, %x\n"
    "  return\n"
    "}\n";

/* Those that warpgroups and bulk copies bring. */
static const char flow_ops[] =
    "files \"x.tile\"\n"
    "kernel @flows(%A: view<const f16, 2>, %C: view<f16, 2>, %n: i32, %c: bool) warps 4 {\n"
    "  %f = mbar {arrivals = 1, shared = 32768} : buf<u64, 1, \"offset -> 1\", 2>\n"
    "  %a = alloc {shared = 0} : buf<f16, 64, 64, " IMAGE ", 2>\n"
    "  %z = const {value = 0.0} : tile<f32, 64, 64, " SUMS ">\n"
    "  roles () {\n"
    "    %t = copy %A, %n, %n, %c, %a, %n, %f, %n {axes = [64, 64], mask} : token<f16, 64, "
    "64, \"reg(0,1)(0,2)(0,4)(16,0)(32,0) lane(0,8)(0,16)(0,32)(1,0)(2,0) warp(4,0)(8,0)\">\n"
    "    expect %f, %n, %c {bytes = 8192, mask}\n"
    "    yield\n"
    "  } () {\n"
    "    mbar_wait %f, %n, %n\n"
    "    fence\n"
    "    %r = ready %z : token<f32, 64, 64, " SUMS ">\n"
    "    %d = dot_async %a, %n, %a, %n, %r {mma = \"mma.m16n8k16.f16\"} : token<f32, 64, 64, " SUMS
    ">\n"
    "    %s = await %d {pending = 0} : tile<f32, 64, 64, " SUMS ">\n"
    "    arrive %f, %n, %c {mask}\n"
    "    ping_pong_wait {one}\n"
    "    ping_pong_arrive\n"
    "    bulk_store %C, %n, %n, %a, %n {axes = [64, 64]}\n"
    "    store_wait %a {written}\n"
    "    yield\n"
    "  }\n"
    "  meet\n"
    "  return\n"
    "}\n"
    "kernel @carries(%n: i32) warps 4 {\n"
    "  %a = alloc {shared = 0} : buf<f16, 64, 64, " IMAGE ", 2>\n"
    "  %z = const {value = 0.0} : tile<f32, 64, 64, " SUMS ">\n"
    "  %r = ready %z : token<f32, 64, 64, " SUMS ">\n"
    "  %l = for %n, %n, %n, %r : token<f32, 64, 64, " SUMS
    "> (%i: i32, %c: token<f32, 64, 64, " SUMS ">) {\n"
    "    %d = dot_async %a, %n, %a, %n, %c {mma = \"mma.m16n8k16.f16\"} : token<f32, 64, 64, " SUMS
    ">\n"
    "    await {pending = 1}\n"
    "    yield %d\n"
    "  }\n"
    "  %s = await %l {pending = 0} : tile<f32, 64, 64, " SUMS ">\n"
    "  return\n"
    "}\n"
    "kernel @ends() {\n"
    "  %bl = block : i32\n"
    "  %nb = nblocks : i32\n"
    "  %f = mbar {arrivals = 1, shared = 0} : buf<u64, 1, \"offset -> 1\", 1>\n"
    "  mbar_end %f\n"
    "  %m = tensor {columns = 64, shared = 64} : buf<u64, 1, \"offset -> 1\", 5>\n"
    "  tensor_end %m\n"
    "  return\n"
    "}\n"
    "kernel @tensors(%n: i32) warps 4 {\n"
    "  %a = alloc {shared = 0} : buf<f16, 128, 64, " TALL ", 2>\n"
    "  %b = alloc {shared = 32768} : buf<f16, 64, 64, " IMAGE ", 1>\n"
    "  %m = tensor {columns = 64, shared = 49152} : buf<u64, 1, \"offset -> 1\", 5>\n"
    "  %z = const {value = 0.0} : tile<f32, 128, 64, " ROWS ">\n"
    "  %r = ready %z {column = 0} : tensor<f32, 128, 64, " ROWS ">\n"
    "  %t = rescale %r, %z : tensor<f32, 128, 64, " ROWS ">\n"
    "  %d = dot_async %a, %n, %b, %n, %t {mma = \"tcgen05.f16\"} : tensor<f32, 128, 64, " ROWS
    ">\n"
    "  %s = await %d {pending = 0} : tile<f32, 128, 64, " ROWS ">\n"
    "  tensor_end %m\n"
    "  return\n"
    "}\n";

static const char sums_ops[] =
    "kernel @sums(%x: f32, %n: i32) {\n"
    "  %t = broadcast %x : tile<f32, 8, 2>\n"
    "  %i = broadcast %n : tile<i32, 8, 2>\n"
    "  %s = scan %t, %x {axis = 0, kind = add, exclusive} : tile<f32, 8, 2>\n"
    "  %r = scan %i, %n {axis = 1, kind = max, reverse} : tile<i32, 8, 2>\n"
    "  %h = histogram %i, %s : tile<f32, 9>\n"
    "  %a = add_sat %i, %r : tile<i32, 8, 2>\n"
    "  %b = sub_sat %a, %i : tile<i32, 8, 2>\n"
    "  %e = cast %i : tile<i64, 8, 2>\n"
    "  %p = border %b, %e {way = reflect} : tile<i64, 8, 2>\n"
    "  return\n"
    "}\n";

static void every_op_has_a_valid_text(void)
{
    static const char *const TEXTS[] = {every_op, flow_ops, sums_ops};
    bool seen[TL_OP_COUNT] = {0};
    for (int t = 0; t < 3; t++) {
        TlModule *m = parse(TEXTS[t]);
        for (uint32_t i = 0; !m && i < ctx.diags.rows.len; i++)
            fprintf(stderr, "    %s\n", ctx.diags.rows.data[i].text);
        if (!CHECK(m))
            return;
        for (uint32_t i = 0; i < m->fns.len; i++)
            for (const TlOp *op = m->fns.data[i]->body->first; op; op = tl_walk_next(op, NULL))
                seen[op->opcode] = true;
        TlModule *copy = tl_module_clone(m);
        CHECK_STR(text_of(copy), text_of(m));
        tl_module_free(m);
        tl_module_free(copy);
    }
    for (int i = 0; i < TL_OP_COUNT; i++)
        if (!CHECK(seen[i])) fprintf(stderr, "    %s\n", tl_op_info((TlOpcode)i)->text);
}

/* A buffer and a tile that fits it. */
#define BUF                                                                                        \
    "%b = alloc : buf<f32, 4, \"offset(1)(2)\", 2> %u = broadcast %f : tile<f32, 4, "              \
    "\"lane(1)(2)\"> "
#define TOKEN "token<f32, 4, \"lane(1)(2)\">"
/* A buffer of matrices as warpgroups read them, sums and a token of them; barriers that count. */
#define OF(dtype) "<" dtype ", 64, 64, " SUMS "> "
#define SUM                                                                                        \
    "%a = alloc : buf<f16, 64, 64, " IMAGE ", 2> %z = const {value = 0.0} : tile" OF("f32")        \
    "%r = ready %z : token" OF("f32")
#define SCALED                                                                                     \
    "%a = broadcast %f : tile<f32, 4, 4> %g = broadcast %f : tile<f32, 4, 32> "                    \
    "%q = cast %g : tile<f8e4m3, 4, 32> %w = trans %q {perm = [1, 0]} : tile<f8e4m3, 32, 4> "      \
    "%i1 = broadcast %n : tile<i32, 4, 1> %s1 = cast %i1 : tile<u8, 4, 1> "                        \
    "%i2 = broadcast %n : tile<i32, 4, 2> %s2 = cast %i2 : tile<u8, 4, 2> "
#define F16  " {mma = \"mma.m16n8k16.f16\"} : token" OF("f32")
#define BARS "%m = mbar {arrivals = 1} : buf<u64, 1, \"offset -> 1\", 2> "

/* Each row is the body of a kernel over %v: view<f32, 2>, %cv: const view, %p: ptr<f32>, %n: i32,
 * %f: f32, %c: bool, %t: tile. */
static const struct {
    const char *body, *fault;
} wrong[] = {
    {"%x = add %n, %f : i32", "add: operand 1 is f32, not i32"},
    {"%x = add %n, %n : i64", "add: operand 0 is i32, not i64"},
    {"%x = add %n : i32", "1 operands, 2 expected"},
    {"%x = add %c, %c : bool", "not numbers"},
    {"%x, %y = add %n, %n : i32, i32", "2 results"},
    {"%x = sqrt %n : i32", "not floats"},
    {"%x = exp2 %n : i32", "exp2 of i32"},
    {"%x = popcount %f : f32", "not integers"},
    {"%h = cast %f : f16 %x = fma %h, %h, %h : f16", "not f32 or f64"},
    {"%x = and %f, %f : f32", "not integers or bool"},
    {"%x = lt %n, %n : i32", "lt: the result is i32"},
    {"%x = select %n, %f, %f : f32", "the condition is i32"},
    {"%x = select %c, %f, %n : f32", "operand 2"},
    {"%x = cast %t : f32", "takes tile<f32, 8> to f32"},
    {"%x = cast %f {nosat} : f16", "nosat"},
    {"%x = cast %f {round = stochastic} : f16", "no seed"},
    {"%x = cast %f {axis = 1} : f16", "takes no axis"},
    {"%x = bitcast %f : f16", "differ in size"},
    {"%x = const {value = 300} : i32 %y = pid {axis = 6} : i32", "axis = 6"},
    {"%x = pid : i32", "needs axis"},
    {"%x = iota : tile<f32, 4>", "not an integer vector"},
    {"%x = broadcast %t : tile<f32, 16>", "does not fit"},
    {"%x = broadcast %t : tile<f32, 8, 8>", "does not fit"},
    {"%x = expand %t {axis = 2} : tile<f32, 8, 1>", "at axis 2"},
    {"%x = reshape %t : tile<f32, 2, 3>", "other elements"},
    {"%x = trans %t {perm = [1]} : tile<f32, 8>", "perm"},
    {"%x = reduce %t {axis = 1, kind = add} : f32", "axis 1"},
    {"%x = reduce %t {axis = 0, kind = and} : f32", "not on f32"},
    {"%x = reduce %t {axis = 0, kind = add} : tile<f32, 8>", "result 0"},
    {"%x = reduce %t {axis = 0, kind = user} : f32", "0 regions"},
    {"%x = reduce %t {axis = 0, kind = user} : f32 (%a: f32) { yield %a }",
     "1 arguments, 2 expected"},
    {"%x = reduce %t {axis = 0, kind = user} : f32 (%a: f32, %b: f32) { print %a {text = \"\"} "
     "yield %a }",
     "effects"},
    {"%x = reduce %t {axis = 0, kind = user} : f32 (%a: f32, %b: f32) { %s = broadcast %a : "
     "tile<f32, 2> yield %a }",
     "only scalars"},
    {"%x = scan %t {axis = 0, kind = add} : f32", "result 0 is f32"},
    {"%x = scan %t, %n {axis = 0, kind = add} : tile<f32, 8>", "it begins with i32"},
    {"%x = scan %t, %t {axis = 0, kind = add} : tile<f32, 8>", "it begins with tile<f32, 8>"},
    {"%x = scan %t {axis = 0, kind = add, exclusive} : tile<f32, 8>", "without a scalar"},
    {"%x = scan %t, %f, %f {axis = 0, kind = add} : tile<f32, 8>", "3 operands, 1 results"},
    {"%x = reduce %t, %f {axis = 0, kind = add} : f32", "2 operands, 1 results"},
    {"%x = add_sat %t, %t : tile<f32, 8>", "tile<f32, 8>"},
    {"%x = border %t, %t {way = wrap} : tile<i64, 8>", "maps tile<f32, 8>"},
    {"%x = border %n, %n {way = wrap} : i64", "extents are i32"},
    {"%x = asm %c {text = \"\"} : f32", "operand 0 is bool"},
    {"%x = asm %f {text = \"\"} : bool", "the result is bool"},
    {"%x = asm %t {text = \"\"} : f32", "operand 0 is tile<f32, 8>, the result f32"},
    {"%x = gather %t, %n {axis = 0} : f32", "index i32 along axis 0 of tile<f32, 8>"},
    {"%i = iota : tile<i32, 4> %x = gather %t, %i {axis = 1} : tile<f32, 4>", "axis 1 of"},
    {"%x = gather %t, %t {axis = 0} : tile<f32, 8>", "index tile<f32, 8> along"},
    {"%i = iota : tile<i32, 4> %x = gather %t, %i {axis = 0} : tile<f32, 8>", "gives tile<f32, 8>"},
    {"%u = broadcast %f : tile<f32, 4, 2> %i = broadcast %n : tile<i32, 3, 4> %x = gather %u, %i "
     "{axis = 1} : tile<f32, 3, 4>",
     "index tile<i32, 3, 4> along axis 1"},
    {"%x = histogram %t : tile<i32, 4>", "operand 0 is tile<f32, 8>"},
    {"%i = iota : tile<i32, 4> %x = histogram %i : tile<i64, 4>", "the result is tile<i64, 4>"},
    {"%i = iota : tile<i32, 4> %x = histogram %i, %t : tile<f32, 4>", "the weights are"},
    {"%i = iota : tile<i32, 8> %x = histogram %i, %t : tile<i32, 4>", "not a vector of f32"},
    {"%x = dot %t, %t, %t : tile<f32, 8>", "by"},
    {"%x = ptr_add %p, %f : ptr<f32>", "an offset of f32"},
    {"%x = view %p, %n : view<f32, 1>", "2 operands, 3 expected"},
    {"%x = extent %v {axis = 2} : i64", "axis 2"},
    {"%x = view_ptr %cv : ptr<f32>", "ptr<f32> of view<const f32, 2>"},
    {"%x = load %v, %n {axes = [i, 4]} : tile<f32, 4>", "2 operands, 3 expected"},
    {"%x = load %v, %n, %n {axes = [i]} : tile<f32, 4>", "3 operands, 2 expected"},
    {"%x = load %v, %n {axes = [i]} : f32", "1 axes"},
    {"%x = load %v, %n, %f {axes = [i, 4]} : tile<f32, 4>", "index 1 is f32"},
    {"%x = load %v, %n, %n {axes = [i, t]} : tile<f32, 4>", "which its axis is not"},
    {"%x = load %v, %n, %n {axes = [i, 4:0]} : tile<f32, 4>", "step 0"},
    {"%x = load %v, %n, %n {axes = [i, 0]} : tile<f32, 4>", "width 0"},
    {"%x = load %v, %n, %n {axes = [1024, 2048]} : tile<f32, 4>", "2^20"},
    {"%x = load %v, %n, %n {axes = [i, 4]} : tile<f32, 5>", "the result is tile<f32, 5>"},
    {"%x = load %f : f32", "not a pointer"},
    {"%i = iota : tile<i32, 4> %q = broadcast %n : tile<i32, 2, 2> %x = load %v, %i, %q {axes = "
     "[t, t]} : f32",
     "do not form a tile"},
    {"store %cv, %n, %n, %f {axes = [i, i]}", "may not be written"},
    {"store %v, %n, %n, %f {axes = [i, 8]}", "the value is f32"},
    {"store %p, %f, %n {mask}", "the mask is i32"},
    {"%x = atomic_rmw %p, %f {rmw = and, order = relaxed, scope = device} : f32", "not on f32"},
    {"assert %n {text = \"t\"}", "not bool"},
    {"%x = for %n, %n : i32 (%i: i32) { yield %i }", "lo, hi and step"},
    {"for %n, %n, %f (%i: i32) { yield }", "operand 2 is f32"},
    {"for %n, %n, %n (%i: i64) { yield }", "region argument 0"},
    {"%x = for %n, %n, %n, %f : f32 (%i: i32, %a: f32) { yield %i }", "yielded value 0 is i32"},
    {"%x = for %n, %n, %n, %f : f32 (%i: i32, %a: f32) { yield }", "gives 0 values"},
    {"for %n, %n, %n {unroll = -2} (%i: i32) { yield }", "unroll = -2"},
    {"if %n () { yield } () { yield }", "operand 0 is i32"},
    {"%x = if %c : f32 () { yield %f } () { yield %n }", "yielded value 0 is i32"},
    {"if %c () { return } () { yield }", "not yield"},
    {"if %c () { %z = neg %f : f32 yield } () { print %z {text = \"\"} yield }",
     "not defined above"},
    {"while () { yield } () { yield }", "ends in yield, not condition"},
    {"while () { condition %n } () { yield }", "operand 0 is i32"},
    {"if %c () { } () { yield }", "empty block"},
    {"if %c () { yield yield } () { yield }", "not at the end"},
    {"yield", "not at the end"},
    {"%x = neg %c : bool", "not numbers"},
    {"%x = shl %f, %f : f32", "not integers"},
    {"%x = min_nan %n, %n : i32", "not floats"},
    {"%x = eq %p, %p : bool", "not numbers or bool"},
    {"%x = eq %n, %f : bool", "operand 1 is f32"},
    {"%x = select %c, %v, %v : view<f32, 2>", "the result is a view"},
    {"%x = cast %p : i64", "takes ptr<f32> to i64"},
    {"%x = cast %n {round = zero} : i8", "round is for casts to floats"},
    {"%x = bitcast %c : u8", "bool has no bits"},
    {"%x = const {value = 0} : view<f32, 1>", "a constant has one result"},
    {"%x = npid {axis = 0} : i64", "the result is i64"},
    {"%x = reshape %t : tile<i32, 8>", "takes tile<f32, 8>"},
    {"%x = scan %f {axis = 0, kind = add} : f32", "operand 0 is f32"},
    {"%x, %y = reduce %t, %t {axis = 0, kind = add} : f32, f32", "several operands"},
    {"%x = reduce %t {axis = 0, kind = add} : f32 (%a: f32, %b: f32) { yield %a }", "1 regions"},
    {"%x = reduce %t {axis = 0, kind = user} : f32 (%a: f32, %b: i32) { yield %a }",
     "region argument 1 is i32"},
    {"%x = reduce %t {axis = 0, kind = user} : f32 (%a: f32, %b: f32) { yield %n }",
     "yielded value 0"},
    {"%x = reduce %t {axis = 0, kind = user} : f32 (%a: f32, %b: f32) { %z = reduce %t {axis = 0, "
     "kind = add} : f32 "
     "yield %a }",
     "has a reduce"},
    {"%x, %y = reduce %t {axis = 0, kind = add} : f32, f32", "1 operands, 2 results"},
    {"%a = broadcast %f : tile<f32, 4, 4> %x = dot %a, %a, %a {precision = tf32} : tile<f32, 4, 4> "
     "%y = dot %a, %a, %t : tile<f32, 8>",
     "onto tile<f32, 8>"},
    {"%h = cast %f : f16 %a = broadcast %h : tile<f16, 4, 4> %x = dot %a, %a, %a {precision = "
     "tf32} : tile<f16, 4, 4>",
     "precision is for f32"},
    {SCALED "%x = dot %q, %w, %a, %s1 : tile<f32, 4, 4>", "4 operands"},
    {SCALED "%x = dot %q, %w, %a, %s1, %s2 : tile<f32, 4, 4>", "no scales of 4 rows of 32"},
    {SCALED "%x = dot %q, %w, %a, %s2, %s2 : tile<f32, 4, 4>", "no scales of 4 rows of 32"},
    {SCALED "%x = dot %a, %a, %a, %s1, %s1 : tile<f32, 4, 4>", "with scales"},
    {SCALED "%x = dot %q, %w, %a, %s1, %s1 {mma = \"mma.m16n8k32.e4m3\"} : tile<f32, 4, 4>",
     "and 5 operands"},
    {SCALED "%x = dot %q, %w, %a, %s1, %s1 {mma = \"mma.mx.m16n8k32.e5m2\"} : tile<f32, 4, 4>",
     "operand 0 is"},
    {"%a = broadcast %n : tile<i32, 4, 4> %b = cast %a : tile<u32, 4, 4> %x = dot %a, %b, %a : "
     "tile<i32, 4, 4>",
     "by"},
    {"%x = ptr_add %n, %n : i32", "not pointers"},
    {"%x = address %p : i64", "address: takes ptr<f32> to i64"},
    {"%x = address %n : u64", "address: takes i32 to u64"},
    {"%x = pointer %n : ptr<f32>", "pointer: takes i32 to ptr<f32>"},
    {"%u = address %p : u64 %x = pointer %u : ptr<i4>", "pointer: takes u64 to ptr<i4>"},
    {"%u = address %p : u64 %x = pointer %u : tile<ptr<f32>, 4>",
     "pointer: takes u64 to tile<ptr<f32>, 4>"},
    {"%x = ptr_add %p, %n : ptr<const f32>", "result 0"},
    {"%x = view %p : ptr<f32>", "not a view"},
    {"%x = view %p : view<i32, 0>", "view<i32, 0> of ptr<f32>"},
    {"%x = view %p, %n, %n : view<f32, 1>", "operand 1 is i32, not i64"},
    {"%x = sub_view %p : ptr<f32>", "not a view"},
    {"%x = sub_view %v, %n : view<f32, 2>", "2 operands, 5 expected"},
    {"%x = stride %v {axis = 0} : i32", "the result is i32, not i64"},
    {"%x = extent %n {axis = 0} : i64", "not a view"},
    {"%x = inside %v, %n, %n {axes = [i, 4]} : tile<bool, 5>", "the result is tile<bool, 5>"},
    {"%x = inside %v, %n, %n : bool", "needs axes"},
    {"%x = load %p, %n {other} : f32", "other is i32"},
    {"%x = load : f32", "0 operands, 1 expected"},
    {"%x = load %v : f32", "not a pointer"},
    {"%x = atomic_rmw %cv, %n, %n, %f {axes = [i, i], rmw = add, order = relaxed, scope = device} "
     ": f32",
     "may not be written"},
    {"%x = atomic_cas %p, %n, %f {order = relaxed, scope = device} : f32",
     "what is expected is i32"},
    {"%x = atomic_load %p {order = relaxed, scope = device} : i32", "the result is i32"},
    {"%h = cast %f : f16 %q = view_ptr %v : ptr<f32> %x = atomic_store %q, %h {order = relaxed, "
     "scope = device} : f32",
     "1 results, 0 expected"},
    {"%h = cast %f : f16 atomic_store %p, %h {order = relaxed, scope = device}",
     "the value is f16"},
    {"print %v {text = \"\"}", "a view cannot be shown"},
    {"assert %c", "needs text"},
    {"for %f, %f, %f (%i: f32) { yield }", "the bounds are f32"},
    {"%x = for %n, %n, %n : i32 (%i: i32) { yield }", "1 results, 0 expected"},
    {"%x = for %n, %n, %n, %v : view<f32, 2> (%i: i32, %w: view<f32, 2>) { yield %w }",
     "result 0 is a view"},
    {"for %n, %n, %n {pipeline = -1} (%i: i32) { yield }", "pipeline = -1"},
    {"for %n, %n, %n (%i: i32) { condition %c }", "ends in condition"},
    {"condition %c", "not at the end"},
    {"while %n () { condition %c } () { yield }", "0 arguments, 1 expected"},
    {"while () { condition } () { yield }", "gives 0 values, 1 expected"},
    {"%x = convert %t : tile<f16, 8>", "takes tile<f32, 8> to tile<f16, 8>"},
    {"%x = convert %t : tile<f32, 2, 4>", "takes tile<f32, 8> to tile<f32, 2, 4>"},
    {"%x = convert %p : ptr<const f32>", "takes ptr<f32> to ptr<const f32>"},
    {"%x = alloc : tile<f32, 8>", "tile<f32, 8> is not a buffer"},
    {"%x = alloc : buf<f32, 4, 2>", "a buffer has an element type, extents, a layout"},
    {"%x = alloc : buf<f32, 4, \"offset(1)(2)\">", "',' expected"},
    {"%x = alloc : buf<f32, 4, \"offset(1)(2)\", 0>", "0 is not in 1..64"},
    {"%x = alloc : buf<ptr<f32>, 4, \"offset(1)(2)\", 1>", "a buffer has an element type"},
    {"%x = alloc : token<f32, 4>", "a token has an element type, extents and a layout"},
    {"%x = alloc : buf<f32, 4, \"offset(1)(2)\", 1> %y = broadcast %f : tile<f32, 4>",
     "has no layout, as other tiles have"},
    {BUF "put %b, %n, %t", "tile<f32, 8> does not fit buf<f32, 4"},
    {BUF "put %b, %f, %u", "operand 1 is f32, not i32"},
    {BUF "put %u, %n, %u", "is not a buffer"},
    {BUF "%x = get %b, %n : tile<f16, 4, \"lane(1)(2)\">", "does not fit buf<f32, 4"},
    {BUF "%x = get %b, %n : f32", "f32 does not fit buf"},
    {BUF "%x = copy %v, %n, %n, %b {axes = [i, 4]} : " TOKEN, "4 operands, 5 expected"},
    {BUF "%x = copy %v, %n, %n, %b, %n {axes = [i, 8]} : " TOKEN, "is not what is at the place"},
    {BUF "%x = copy %v, %n, %n, %b, %n {axes = [i, 4]} : tile<f32, 4, \"lane(1)(2)\">",
     "does not fit buf"},
    {BUF "%x = copy %v, %n, %n, %b, %f {axes = [i, 4]} : " TOKEN, "operand 4 is f32, not i32"},
    {BUF "%x = copy %v, %n, %n, %f, %b, %n {axes = [i, 4], mask} : " TOKEN, "the mask is f32"},
    {BUF "%x = copy %v, %n, %n, %b, %n {axes = [i, 4], other} : " TOKEN, "takes no other"},
    {"%q = alloc : buf<bool, 4, \"offset(1)(2)\", 1> %z = view_ptr %v : ptr<f32> %x = copy %z, %q, "
     "%n : token<bool, 4, \"lane(1)(2)\">",
     "is not what is at the place"},
    {BUF "%x = if %c : buf<f32, 4, \"offset(1)(2)\", 2> () { yield %b } () { yield %b }",
     "result 0 is a buf<f32, 4"},
    {BUF "print %b {text = \"\"}", "cannot be shown"},
    {SUM "%x = ready %z : token" OF("f16"), "is no token of tile<f32, 64, 64"},
    {SUM "%x = ready %z : tile" OF("f32"), "is no token of"},
    {SUM "%x = ready %r : token" OF("f32"), "is no token of"},
    {SUM "%x = dot_async %n, %a, %n, %r" F16, "operand 0 is no matrix"},
    {SUM "%x = dot_async %a, %n, %n, %r" F16, "operand 2 is no matrix"},
    {SUM "%x = dot_async %a, %n, %t, %r" F16, "operand 2 is no matrix"},
    {SUM "%x = dot_async %a, %n, %a" F16, "operand 2 is no matrix"},
    {SUM "%x = dot_async %a, %f, %a, %n, %r" F16, "operand 1 is f32, not i32"},
    {SUM "%x = dot_async %a, %n, %a, %n" F16, "4 operands, not 5"},
    {SUM "%x = dot_async %a, %n, %a, %n, %r, %r" F16, "6 operands, not 5"},
    {SUM "%x = dot_async %a, %n, %a, %n, %r {mma = \"mma.m16n8k16.f16\"} : token" OF("f16"),
     "the result, number 0"},
    {SUM "%x = dot_async %a, %n, %a, %n, %z {mma = \"mma.m16n8k16.f16\"} : tile" OF("f32"),
     "64 x 64 by 64 x 64 onto tile"},
    {SUM "%x = dot_async %a, %n, %a, %n, %r : token" OF("f32"), "needs mma"},
    {SUM "%x = dot_async %a, %n, %a, %n, %r {mma = \"mma.m16n8k16.bf16\"} : token" OF("f32"),
     "operand 0 is not what the instruction takes"},
    {SUM "%x = dot_async %a, %n, %a, %n, %r {mma = \"wgmma\"} : token" OF("f32"),
     "operand 0 is not what the instruction takes"},
    {SUM "%q = alloc : buf<f16, 32, 64, \"offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)"
         "(8,0)(16,0)\", 1> %x = dot_async %a, %n, %q, %n, %r" F16,
     "64 x 64 by 32 x 64 onto token"},
    {SUM "%q = alloc : buf<f16, 64, 64, \"offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,0)(2,0)(4,0)"
         "(8,0)(16,0)(32,0)\", 1> %x = dot_async %a, %n, %q, %n, %r" F16,
     "no warpgroup does it"},
    {SUM "%w = cast %z : tile" OF("f16") "%x = dot_async %a, %n, %w, %r" F16,
     "no warpgroup does it"},
    {SUM "%x = await %r : tile" OF("f32"), "needs pending"},
    {SUM "%x = await %r {pending = -1} : tile" OF("f32"), "pending = -1"},
    {SUM "%x = await %r {pending = 65} : tile" OF("f32"), "pending = 65"},
    {SUM "await %r {pending = 0}", "1 tokens, 0 tiles"},
    {SUM "%x = await %r {pending = 0} : token" OF("f32"), "is no token of"},
    {SUM "%x = await %z {pending = 0} : tile" OF("f32"), "is no token of"},
    {SUM "%x = await %r {pending = 0} : tile" OF("f16"), "is no token of"},
    {SUM "%x = if %c : token" OF("f32") "() { yield %r } () { yield %r }", "result 0 is a token"},
    {SUM "print %r {text = \"\"}", "cannot be shown"},
    {SUM "%x = rescale %r, %z : token" OF("f32"), "is not in tensor memory"},
    {SUM "%x = rescale %z, %z : token" OF("f32"), "the result, number 0"},
    {SUM "%x = ready %z {column = 512} : token" OF("f32"), "column = 512"},
    {SUM "%x = dot_async %a, %n, %a, %n, %r {mma = \"tcgen05.f16\"} : token" OF("f32"), "onto"},
    {"%m = tensor {columns = 48} : buf<u64, 1, \"offset -> 1\", 5>", "columns = 48"},
    {"%m = tensor {columns = 16} : buf<u64, 1, \"offset -> 1\", 5>", "columns = 16"},
    {"%m = tensor {columns = 1024} : buf<u64, 1, \"offset -> 1\", 5>", "columns = 1024"},
    {"%m = tensor {columns = 64} : buf<u64, 1, \"offset -> 1\", 2>", "2 slots"},
    {"%m = tensor {columns = 64} : buf<u32, 1, \"offset -> 1\", 5>", "no buffer of barriers"},
    {BARS "tensor_end %m", "of no tensor"},
    {"%m = mbar {arrivals = 0} : buf<u64, 1, \"offset -> 1\", 2>", "arrivals = 0"},
    {"%m = mbar {arrivals = 1025} : buf<u64, 1, \"offset -> 1\", 2>", "arrivals = 1025"},
    {"%m = mbar {arrivals = 1, cluster = 9} : buf<u64, 1, \"offset -> 1\", 2>", "cluster = 9"},
    {"%m = mbar {arrivals = 1, cluster = 0} : buf<u64, 1, \"offset -> 1\", 2>", "cluster = 0"},
    {"%m = mbar : buf<u64, 1, \"offset -> 1\", 2>", "needs arrivals"},
    {"%m = mbar {arrivals = 1} : buf<u32, 1, \"offset -> 1\", 2>", "is no buffer of barriers"},
    {"%m = mbar {arrivals = 1} : buf<u64, 2, \"offset(1)\", 2>", "is no buffer of barriers"},
    {BUF "arrive %b, %n", "is no buffer of barriers"},
    {BARS "arrive %m", "1 operands"},
    {BARS "arrive %m, %f", "operand 1 is f32, not i32"},
    {BARS "arrive %m, %n, %n {mask}", "operand 2 is i32, not bool"},
    {BARS "arrive %m, %n, %c", "3 operands"},
    {BARS "expect %m, %n {bytes = -1}", "bytes = -1"},
    {BARS "expect %m, %n", "needs bytes"},
    {BUF "expect %b, %n {bytes = 16}", "is no buffer of barriers"},
    {BARS "expect %m, %n {bytes = 16, mask}", "2 operands"},
    {BARS "expect %m, %n, %f {bytes = 16, mask}", "operand 2 is f32, not bool"},
    {BARS "mbar_wait %m, %n", "2 operands"},
    {BARS "mbar_wait %m, %n, %f", "operand 2 is f32, not i32"},
    {BARS "mbar_wait %m, %n, %n, %c {mask}", "a mask, but all threads wait"},
    {BARS "mbar_wait %m, %n, %n, %n {mask, one}", "operand 3 is i32, not bool"},
    {BUF "mbar_end %b", "is no buffer of barriers"},
    {"roles () { yield } () { yield } %y = neg %f : f32", "not the last op of the kernel"},
    {"if %c () { roles () { yield } () { yield } yield } () { yield }",
     "not the last op of the kernel"},
    {"roles () { yield %n } () { yield }", "gives 1 values"},
    {BUF BARS "%x = copy %v, %n, %n, %b, %n, %b, %n {axes = [i, 4]} : " TOKEN,
     "bulk: a barrier and its slot"},
    {BUF BARS "%x = copy %v, %n, %n, %b, %n, %m, %n {axes = [i, 4], async = 16} : " TOKEN,
     "bulk: a barrier and its slot"},
    {BUF BARS "%x = copy %v, %n, %n, %b, %n, %m, %n {axes = [i, 4], cluster = 9} : " TOKEN,
     "cluster = 9"},
    {BUF "%x = copy %v, %n, %n, %b, %n {axes = [i, 4], cluster = 2} : " TOKEN,
     "cluster without bulk"},
    {"ping_pong_wait", "not among the kernel's warps of roles"},
    {"roles () { ping_pong_arrive yield } () { yield }", "not among the kernel's warps of roles"},
    {"roles () { yield } () { yield } meet meet", "not the last op of the kernel"},
    {"meet %n", "'=' expected"},
    {"wait", "needs pending"},
    {"wait {pending = -1}", "pending = -1"},
    {"barrier %n", "'=' expected"},
    {"if %c () warps -1 { yield } () { yield }", "warps -1"},
    {"if %c (%a: i32) { yield } () { yield }", "1 arguments, 0 expected"},
};

/* Info blocks of kernel @w(%v: view<f32, 1>, %n: i32); V and N are its right parameters. */
#define V "param \"v\" view f32 [sym 0 : dense] "
#define N "param \"n\" scalar i32 "
static const struct {
    const char *info, *fault;
} wrong_info[] = {
    {"", "2 arguments, 0 parameters"},
    {N V, "parameter n is not what argument 0 says"},
    {"param \"v\" view const f32 [sym 0 : dense] " N, "parameter v is not"},
    {"param \"v\" view f32 " N, "parameter v is not"},
    {"param \"v\" pointer f32 " N, "parameter v is not"},
    {V N, "index 0 is out of range"},
    {"param \"v\" view f32 [dense : dense] " N, "wrong kind of dimension"},
    {"param \"v\" view f32 [const 4 : expr 3] " N, "index 3 is out of range"},
    {V N "sym \"M\" extent 0, 1", "sym M is of no axis"},
    {V N "sym \"M\" extent 2, 0", "sym M is of no axis"},
    {V N "sym \"M\" extent 0, 0 expr int \"e\" []", "expr 0 does not leave one word"},
    {V N "sym \"M\" extent 0, 0 expr int \"e\" [sym 0, sym 0]", "expr 0 does not leave one word"},
    {V N "sym \"M\" extent 0, 0 expr int \"e\" [add]", "expr 0 does not leave one word"},
    {V N "sym \"M\" extent 0, 0 expr int \"e\" [sym 1]", "sym 1 is out of range"},
    {V N "sym \"M\" extent 0, 0 expr int \"e\" [arg -1]", "arg -1 is out of range"},
    {V N "sym \"M\" extent 0, 0 grid 0", "grid: index 0"},
    {V N "sym \"M\" extent 0, 0 require 0", "require: index 0"},
    {V N "sym \"M\" extent 0, 0 assume 0", "assume: index 0"},
    {V N "sym \"M\" extent 0, 0 group 0", "group: index 0"},
    {V N "sym \"M\" extent 0, 0 expr int \"e\" [sym 0] grid 0, 0, 0, 0, 0, 0, 0",
     "a grid of 7 axes"},
    {V N "sym \"M\" extent 0, 0 alias 0, 2", "alias of a parameter"},
    {V N "sym 4", "'\"' expected"},
    {V N "sym \"M\" width 0, 0", "extent or stride expected"},
    {V N "expr bool \"\" []", "int or float expected"},
    {V N "expr int \"\" [plus]", "instruction expected"},
    {V N "blocks 3", "line of an info block expected"},
    {"param \"v\" matrix f32", "view, pointer or scalar expected"},
    {"param \"v\" view f32 [3 : dense]", "const, sym, expr or dense expected"},
    {"param \"v\" view f99", "element type expected"},
    {V N "doc \"a\\q\"", "unknown escape"},
    {V N "doc \"a", "string without an end"},
    {V N "warps 99999999999", "is not in"},
};

/* True when the text is refused with a diagnostic that holds `fault`. */
static bool refused_with(const char *text, const char *fault)
{
    ctx.diags.errors = ctx.diags.rows.len = 0;
    TlModule *m = parse(text);
    for (uint32_t r = 0; r < ctx.diags.rows.len; r++)
        if (!m && strstr(ctx.diags.rows.data[r].text, fault)) return true;
    fprintf(stderr, "    %s\n    want %s\n    got  %s\n", text, fault,
            m ? "nothing" : ctx.diags.rows.data[0].text);
    return false;
}

static void wrong_ir_is_refused(void)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(refused_with(
            tl_format(
                &ctx.perm,
                "kernel @w(%%v: view<f32, 2>, %%cv: view<const f32, 2>, %%p: ptr<f32>, %%n: i32, "
                "%%f: f32, %%c: bool) {\n%%t = broadcast %%f : tile<f32, 8>\n%s\nreturn\n}\n",
                wrong[i].body),
            wrong[i].fault));
    ctx.diags.errors = ctx.diags.rows.len = 0;
}

static void wrong_launch_facts_are_refused(void)
{
    for (size_t i = 0; i < sizeof wrong_info / sizeof *wrong_info; i++)
        CHECK(refused_with(
            tl_format(&ctx.perm, "kernel @w(%%v: view<f32, 1>, %%n: i32) info { %s } { return }\n",
                      wrong_info[i].info),
            wrong_info[i].fault));
    CHECK(refused_with("kernel @w(%t: tile<f32, 4>) { return }", "argument 0 is a tile"));
    CHECK(refused_with("kernel @w() @3:4 { return }", "file 0 is not in a files line"));
    CHECK(refused_with("files \"a\" kernel @w() @3 { return }", "a position is"));
    CHECK(refused_with("kernel { return }", "'@' expected"));
    CHECK(refused_with("kernel @4 { return }", "name of the kernel"));
    CHECK(refused_with("kernels @a() { return }", "'kernel', 'files' or 'layouts'"));
    ctx.diags.errors = ctx.diags.rows.len = 0;
}

static void broken_text_is_refused(void)
{
    char text[sizeof everything];
    /* every prefix, every byte replaced */
    for (size_t cut = 0; cut + 1 < sizeof everything; cut++) {
        tl_module_free(tl_parse_module(&ctx, tl_diags_source(&ctx.diags, "t", everything, cut)));
        memcpy(text, everything, sizeof text);
        text[cut] = "\0%{(\"9"[cut % 6];
        tl_module_free(
            tl_parse_module(&ctx, tl_diags_source(&ctx.diags, "t", text, sizeof text - 1)));
        ctx.diags.sources.len = ctx.diags.errors = ctx.diags.rows.len = 0;
    }
    CHECK(!parse("kernel @k() {"));
    CHECK(!parse("kernel @k() { %x = const {value = 128} : i8 return }"));
    CHECK(!parse("kernel @k() { %x = const {value = 1} : tile<i8, 1048577> return }"));
    CHECK(!parse("kernel @k() { %x = const {value = 99999999999999999999} : u64 return }"));
    CHECK(!parse("kernel @k() { %x = const {value = 1, value = 1} : u64 return }"));
    CHECK(
        !parse("kernel @k() { %x = const {value = 1} : u64 %x = const {value = 1} : u64 return }"));
    TlModule *empty = parse("// nothing\n");
    CHECK(empty && empty->fns.len == 0);
    tl_module_free(empty);
}

static uint64_t random_state = 7;
static uint32_t below(size_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

static bool in_word(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_'; }

/* The word around position `at`, its start and length. */
static size_t word_at(const char *text, size_t at, size_t size, size_t *start)
{
    size_t end = at;
    while (at > 0 && in_word(text[at - 1])) at--;
    while (end < size && in_word(text[end])) end++;
    *start = at;
    return end - at;
}

/* A copy of every_op with one word replaced by another word of it, or by a byte. */
static const char *mutated(TlArena *a)
{
    size_t size = sizeof every_op - 1, from, to;
    size_t nfrom = word_at(every_op, below(size), size, &from),
           nto = word_at(every_op, below(size), size, &to);
    TlSbuf s;
    tl_sbuf_init(&s, a);
    tl_sbuf_put(&s, every_op, to);
    if (below(4)) tl_sbuf_put(&s, every_op + from, nfrom);
    else tl_sbuf_putf(&s, "%c", (char)(32 + below(95)));
    tl_sbuf_puts(&s, every_op + to + nto);
    return s.text;
}

static void mutated_text_is_refused_or_prints_back(void)
{
    int valid = 0, silent = 0, different = 0;
    for (int i = 0; i < 4000; i++) {
        TlCtx c;
        tl_ctx_init(&c, (TlAlloc){0});
        const char *text = mutated(&c.perm);
        TlModule *m = tl_parse_module(&c, tl_diags_source(&c.diags, "m.tir", text, strlen(text)));
        silent += !m && !c.diags.errors;
        if (m) {
            TlSbuf one, two;
            tl_sbuf_init(&one, &c.perm);
            tl_sbuf_init(&two, &c.perm);
            tl_print_module(&one, m);
            tl_print_module(&two, tl_module_clone(m));
            different += strcmp(one.text, two.text) != 0;
            valid++;
        }
        tl_ctx_free(&c);
    }
    CHECK(valid > 50 && valid < 2000);
    CHECK_INT(silent, 0);
    CHECK_INT(different, 0);
}

static void deep_nesting(void)
{
    enum { DEPTH = 5000 };
    TlSbuf s;
    tl_sbuf_init(&s, &ctx.perm);
    tl_sbuf_puts(&s, "kernel @d(%c: bool) {\n");
    for (int i = 0; i < DEPTH; i++) tl_sbuf_puts(&s, "if %c () { yield } () {\n");
    for (int i = 0; i < DEPTH; i++) tl_sbuf_puts(&s, "yield }\n");
    tl_sbuf_puts(&s, "return }\n");
    TlModule *m = parse(s.text);
    if (!CHECK(m)) return;
    TlModule *copy = tl_module_clone(m);
    CHECK_STR(text_of(copy), text_of(m));
    tl_module_free(copy);
    tl_op_erase(m->fns.data[0]->body->first);
    CHECK_STR(faults_of(m), "");
    tl_module_free(m);
}

typedef struct Refusing {
    size_t live;
    int calls, fail_at;
} Refusing;

static void *refusing_alloc(void *user, void *ptr, size_t old_size, size_t new_size)
{
    Refusing *r = user;
    if (new_size && ++r->calls == r->fail_at) return NULL;
    r->live += new_size - old_size;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void parse_and_clone(TlCtx *c)
{
    for (int32_t i = 1; i <= 200; i++) tl_type_tile(c, TL_F32, 1, &i);
    TlModule *m =
        tl_parse_module(c, tl_diags_source(&c->diags, "t.tir", built_text, sizeof built_text - 1));
    TlModule *copy = tl_module_clone(m);
    CHECK(copy->fns.len == 1);
}

/* True when nothing was refused. */
static bool attempt(int fail_at)
{
    Refusing r = {.fail_at = fail_at};
    TlCtx c;
    TlGuard g;
    if (TL_GUARD(&g)) {
        tl_ctx_init(&c, (TlAlloc){refusing_alloc, &r});
        parse_and_clone(&c);
        tl_guard_pop(&g);
    }
    CHECK(g.fault == TL_FAULT_NONE || g.fault == TL_FAULT_MEMORY);
    tl_ctx_free(&c);
    CHECK_INT(r.live, 0);
    return g.fault == TL_FAULT_NONE;
}

/* Every allocation of parse, verify, clone and print refused in turn: memory comes back whole. */
static void refused_memory_leaks_nothing(void)
{
    int n = 1;
    while (n < 1000 && !attempt(n)) n++;
    CHECK(n > 5 && n < 1000);
}

int main(void)
{
    tl_ctx_init(&ctx, (TlAlloc){0});
    types_are_interned();
    buffers_have_places();
    tables_agree();
    built_ir_prints_and_parses();
    edits_keep_use_lists();
    short_forms_infer_types();
    blocks_and_results_can_be_emptied();
    clones_have_their_own_regions();
    verifier_sees_broken_links();
    constants_round_trip();
    launch_facts_and_positions_round_trip();
    places();
    every_op_has_a_valid_text();
    wrong_ir_is_refused();
    wrong_launch_facts_are_refused();
    broken_text_is_refused();
    mutated_text_is_refused_or_prints_back();
    deep_nesting();
    refused_memory_leaks_nothing();
    tl_ctx_free(&ctx);
    return unit_result();
}
