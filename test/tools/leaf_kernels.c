/* leaf_kernels TARGET FORM OUT: one kernel per row of runtime/contract/leaf.def, in all the row's
 * variants (predicate known or not, hints, atomic operations, orders, scopes, shuffle masks),
 * brought through the expansion of the target; of products by warpgroups, all types and kinds of
 * operands. FORM: llvm, asm, obj; without the ways around LLVM, rel: an object before our linker
 * has seen it, and linked: after. Lit tests give the result to ptxas and to LLVM's readers: every
 * row is code that the target's tools accept.
 *
 * Kernels take (ptr p, i64 a, i64 b, ptr out, i64 debug); results go to out[]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/gpu/gpu.h"
#include "codegen/gpu/hsaco.h"
#include "codegen/leaf/leaf_expand.h"

enum { THREADS = 128 };

typedef struct Maker {
    TlLlvm l;
    TlArena *arena;
    TlKernelCodes kernels;
    LLVMValueRef f;
    uint64_t nresults;
    LLVMTypeRef i1, i32, i64, ptr;
    uint32_t pred_known, hints, op, order, scope, mask;
    int lanes;
} Maker;

static LLVMValueRef i32(const Maker *m, uint32_t v)
{
    return LLVMConstInt(m->i32, v, 0);
}

static void begin_kernel(Maker *m, const char *name)
{
    LLVMTypeRef params[5] = {m->ptr, m->i64, m->i64, m->ptr, m->i64};
    LLVMContextRef c = m->l.context;
    m->f = LLVMAddFunction(m->l.module, name,
                           LLVMFunctionType(LLVMVoidTypeInContext(c), params, 5, 0));
    LLVMPositionBuilderAtEnd(m->l.builder, LLVMAppendBasicBlockInContext(c, m->f, ""));
    m->nresults = 0;
}

static void end(Maker *m, const char *name)
{
    TlKernelCode k = {.symbol = name,
                      .warps = THREADS / 32,
                      .threads = THREADS,
                      .two_flows = strcmp(name, "k_registers") == 0};
    LLVMBuildRetVoid(m->l.builder);
    for (uint32_t i = 0; i < 5; i++)
        tl_vec_push(m->arena, &k.slots,
                    (tile_image_slot){.kind = i == 4 ? TILE_SLOT_DEBUG : TILE_SLOT_POINTER});
    tl_vec_push(m->arena, &m->kernels, k);
}

/* An operand of `letter`; n counts the operands of this letter before it. */
static LLVMValueRef operand(Maker *m, char letter, LLVMValueRef tid)
{
    LLVMBuilderRef b = m->l.builder;
    LLVMValueRef a = LLVMGetParam(m->f, 1), wide = LLVMBuildZExt(b, tid, m->i64, "");
    LLVMTypeRef type = tl_leaf_type(m->l.context, letter);
    switch (letter) {
    case 'b':
        return m->pred_known ? LLVMConstInt(m->i1, m->pred_known == 1, 0)
                             : LLVMBuildICmp(b, LLVMIntSLT, wide, a, "");
    case 'p': {
        LLVMValueRef at = LLVMBuildMul(b, wide, LLVMConstInt(m->i64, 16, 0), "");
        return LLVMBuildGEP2(b, LLVMInt8TypeInContext(m->l.context), LLVMGetParam(m->f, 0), &at, 1,
                             "");
    }
    case 'm': return LLVMBuildAddrSpaceCast(b, LLVMGetParam(m->f, 0), type, "");
    case '2':
    case '4':
    case '8':
    case 'x': {
        LLVMValueRef v = LLVMGetUndef(type);
        for (uint32_t i = 0; i < LLVMGetVectorSize(type); i++)
            v = LLVMBuildInsertElement(b, v, LLVMBuildAdd(b, tid, i32(m, i), ""), i32(m, i), "");
        return v;
    }
    default: return LLVMBuildIntCast2(b, a, type, 0, "");
    }
}

static void keep(Maker *m, LLVMValueRef x)
{
    LLVMBuilderRef b = m->l.builder;
    LLVMValueRef at = LLVMConstInt(m->i64, 64 * m->nresults++, 0);
    LLVMSetAlignment(LLVMBuildStore(b, x,
                                    LLVMBuildGEP2(b, LLVMInt8TypeInContext(m->l.context),
                                                  LLVMGetParam(m->f, 3), &at, 1, "")),
                     16);
}

static LLVMValueRef call(Maker *m, tl_leaf leaf, LLVMValueRef *args, unsigned n)
{
    LLVMValueRef f = tl_leaf_declare(&m->l, leaf);
    return LLVMBuildCall2(m->l.builder, LLVMGlobalGetValueType(f), f, args, n, "");
}

static bool is_copy(tl_leaf leaf)
{
    tl_leaf_family family = tl_leaf_info(leaf)->family;
    return family == TL_LEAF_FAMILY_CP_ASYNC || family == TL_LEAF_FAMILY_CP_ROW;
}

/* One call of the row with the maker's present variant. */
static void add_call(Maker *m, tl_leaf leaf)
{
    const char *letters = tl_leaf_info(leaf)->operands;
    tl_leaf_class c = tl_leaf_class_of(leaf);
    LLVMValueRef args[TL_LEAF_MAX_ARGS], tid = call(m, TL_LEAF_TID, NULL, 0);
    unsigned n = (unsigned)strlen(letters);
    for (unsigned i = 0; i < n; i++)
        args[i] = operand(m, letters[i], tid);
    if (c != TL_LEAF_CLASS_PURE)
        args[0] = i32(m, 7);
    if (c == TL_LEAF_CLASS_GLOBAL)
        args[3] = i32(m, m->hints);
    tl_leaf_family family = tl_leaf_info(leaf)->family;
    if (family == TL_LEAF_FAMILY_LDB || family == TL_LEAF_FAMILY_STB) {
        args[1] = LLVMGetParam(m->f, 0);
        args[6] = i32(m, m->hints ? 8200 : 0);
        if (m->hints)
            args[5] = i32(m, TL_RECORDS_ALL);
        args[7] = tid;
    }
    if (family == TL_LEAF_FAMILY_CP_ROW_NEAR) {
        args[1] = LLVMGetParam(m->f, 0);
        args[2] = i32(m, m->hints);
        args[6] = tid;
    }
    if (family == TL_LEAF_FAMILY_LDG || family == TL_LEAF_FAMILY_LDB)
        args[4] = i32(m, m->hints & 1 ? 0xff80ff80 : 0);
    if (c == TL_LEAF_CLASS_ATOMIC) {
        args[3] = i32(m, m->op);
        args[4] = i32(m, m->order);
        args[5] = i32(m, m->scope);
    }
    if (leaf == TL_LEAF_SHFL_XOR)
        args[2] = i32(m, m->mask);
    if (leaf == TL_LEAF_REDUX || leaf == TL_LEAF_REDUX_F32)
        args[2] = i32(m, m->pred_known ? TL_REDUX_MIN : TL_REDUX_MAX);
    if (leaf == TL_LEAF_SHFL_END)
        args[2] = i32(m, 16u << m->pred_known % 2);
    if (leaf == TL_LEAF_SHFL_SHIFT) { /* up, down; in halves */
        args[2] = i32(m, m->pred_known == 1 ? UINT32_MAX : 4u >> m->pred_known);
        args[3] = i32(m, m->pred_known == 2 ? 16 : 32);
    }
    if (leaf == TL_LEAF_CP_WAIT)
        args[1] = i32(m, 1 + m->pred_known);
    if (leaf == TL_LEAF_BULK_WAIT) {
        args[1] = i32(m, 1 + m->pred_known);
        args[2] = i32(m, m->pred_known & 1);
    }
    if (leaf == TL_LEAF_BARRIER_OF || leaf == TL_LEAF_TURN_TAKE || leaf == TL_LEAF_TURN_PASS) {
        args[1] = i32(m, 1);
        args[2] = i32(m, 64);
    }
    if (leaf == TL_LEAF_OF_F8 || leaf == TL_LEAF_TO_F8)
        args[leaf == TL_LEAF_OF_F8 ? 1 : 2] = i32(m, m->pred_known ? TL_F8E4M3 : TL_F8E5M2);
    if (leaf == TL_LEAF_F2I) { /* u8 and i16 toward zero, u32 to nearest */
        args[1] = i32(m, 8u << m->pred_known);
        args[2] = i32(m, m->pred_known);
    }
    if (leaf == TL_LEAF_REGISTERS) { /* fewer, then more */
        args[1] = i32(m, m->pred_known ? 40 + 96 * m->pred_known : 40);
        args[2] = i32(m, m->pred_known != 0);
    }
    if (leaf == TL_LEAF_TENSOR_ALLOC || leaf == TL_LEAF_TENSOR_FREE) {
        args[2] = i32(m, 32u << m->pred_known);
        args[3] = i32(m, 1);
    }
    if (leaf == TL_LEAF_TENSOR_COMMIT)
        args[2] = i32(m, 1);
    if (leaf == TL_LEAF_TENSOR_FENCE)
        args[1] = i32(m, m->pred_known & 1);
    if (leaf == TL_LEAF_TENSOR_MMA) { /* f16, tf32, e4m3 */
        static const uint32_t TYPES[] = {TL_F16, TL_F32, TL_F8E4M3};
        static const uint64_t UPPER = UINT64_C(0x4000404000010000);
        uint32_t type = TYPES[m->pred_known];
        args[1] = i32(m, 0x8400010 | (type == TL_F32 ? 0x900 : 0));
        args[2] = i32(m, TL_MMA_TYPES(type, type, TL_F32));
        args[3] = i32(m, 0);
        args[4] = args[6] = LLVMConstInt(m->i64, UPPER, 0);
        if (type == TL_F32) /* a in tensor memory */
            args[4] = LLVMConstInt(m->i64, 0, 0);
    }
    if (leaf == TL_LEAF_TENSOR_MMA_SCALED) { /* f8 and e8m0, pairs of f4 and f8e4m3 */
        static const uint32_t TYPES[] = {TL_MMA_SCALED_TYPES(TL_F8E4M3, TL_F8E4M3, TL_F32, TL_U8),
                                         TL_MMA_SCALED_TYPES(TL_F8E5M2, TL_F8E4M3, TL_F32, TL_U8),
                                         TL_MMA_SCALED_TYPES(TL_U8, TL_U8, TL_F32, TL_F8E4M3)};
        static const uint32_t OF[] = {0x8c00000, 0x8c00080, 0x8400480};
        args[1] = i32(m, OF[m->pred_known]);
        args[2] = i32(m, TYPES[m->pred_known]);
        args[3] = args[5] = LLVMConstInt(m->i64, UINT64_C(0x4000404000010000), 0);
    }
    if (leaf == TL_LEAF_TENSOR_SCALES)
        args[1] = LLVMConstInt(m->i64, UINT64_C(0x0000400800010000), 0);
    if (is_copy(leaf)) { /* inside: known or not, apart from pred; hints */
        uint32_t pred = m->pred_known;
        m->pred_known = m->hints % 3;
        args[5] = operand(m, 'b', tid);
        m->pred_known = pred;
        args[6] = i32(m, m->hints);
    }
    LLVMValueRef x = call(m, leaf, args, n);
    if (LLVMGetTypeKind(LLVMTypeOf(x)) != LLVMVoidTypeKind)
        keep(m, x);
}

static void add_atomics(Maker *m, tl_leaf leaf)
{
    for (m->op = TL_ATOM_ADD; m->op <= TL_ATOM_STORE; m->op++) {
        bool narrow = leaf == TL_LEAF_ATOM_8 || leaf == TL_LEAF_ATOM_16;
        if (narrow && m->op != TL_ATOM_LOAD && m->op != TL_ATOM_STORE && m->op != TL_ATOM_CAS)
            continue; /* as the row says */
        char *name = tl_format(m->arena, "k_%s_%u", tl_leaf_name(leaf), m->op);
        begin_kernel(m, name);
        for (m->order = 0; m->order < 4; m->order++)
            for (m->scope = 0; m->scope < 3; m->scope++)
                add_call(m, leaf);
        end(m, name);
    }
}

static void add_row(Maker *m, tl_leaf leaf)
{
    static const uint32_t HINTS[] = {0, 1, 2, 4, 8, 6};
    if (tl_leaf_class_of(leaf) == TL_LEAF_CLASS_ATOMIC) {
        add_atomics(m, leaf);
        return;
    }
    char *name = tl_format(m->arena, "k_%s", tl_leaf_name(leaf));
    bool shuffle = leaf == TL_LEAF_SHFL_XOR,
         hinted = tl_leaf_class_of(leaf) == TL_LEAF_CLASS_GLOBAL || is_copy(leaf);
    begin_kernel(m, name);
    for (m->pred_known = 0; m->pred_known < 3; m->pred_known++)
        for (uint32_t h = 0; h < (hinted ? 6u : 1u); h++) {
            m->hints = HINTS[h];
            for (m->mask = shuffle ? 1 : 0; m->mask < (shuffle ? (uint32_t)m->lanes : 1u);
                 m->mask++)
                add_call(m, leaf);
        }
    m->pred_known = 0;
    end(m, name);
}

/* One call per matrix instruction of the target; the leaves' own rows have no kernels. */
static void add_matrix(Maker *m, const TlMma *mma)
{
    tl_leaf leaf = tl_leaf_of_mma(m->arena, mma);
    LLVMValueRef args[TL_LEAF_MAX_ARGS], tid;
    char *name = tl_format(m->arena, "k_%s", mma->name);
    for (char *p = name; *p; p++)
        *p = *p == '.' ? '_' : *p;
    begin_kernel(m, name);
    tid = call(m, TL_LEAF_TID, NULL, 0);
    args[0] = i32(m, 7);
    args[1] = i32(m, tl_leaf_mma_kind(mma));
    args[2] = i32(m, (uint32_t)mma->k);
    args[3] = i32(m, TL_MMA_SCALED_TYPES((uint32_t)mma->type[0], (uint32_t)mma->type[1],
                                         (uint32_t)mma->type[2], (uint32_t)mma->type[TL_MMA_SA]));
    args[4] = i32(m, 0);
    for (unsigned i = 5; i < 10; i++)
        args[i] = i < 8 || mma->each ? operand(m, tl_leaf_info(leaf)->operands[i], tid) : NULL;
    args[10] = i32(m, 0); /* the first byte of each */
    keep(m, call(m, leaf, args, mma->each ? 11 : 8));
    end(m, name);
}

/* ---- products of warpgroups ---- */

static LLVMValueRef call_words(Maker *m, tl_leaf leaf, LLVMValueRef *args, unsigned n,
                               unsigned words)
{
    LLVMTypeRef types[TL_LEAF_MAX_ARGS];
    for (unsigned i = 1; i < n; i++) /* but the site */
        types[i - 1] = LLVMTypeOf(args[i]);
    LLVMTypeRef result =
        words ? LLVMStructTypeInContext(m->l.context, types + (n - 1 - words), words, 0)
              : LLVMVoidTypeInContext(m->l.context);
    LLVMValueRef f = tl_leaf_declare_words(&m->l, leaf, result, types, n - 1);
    return LLVMBuildCall2(m->l.builder, LLVMGlobalGetValueType(f), f, args, n, "");
}

static void take_words(const Maker *m, LLVMValueRef from, LLVMValueRef *words, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        words[i] = LLVMBuildExtractValue(m->l.builder, from, i, "");
}

/* One instruction onto acc[n / 2]; a: words of A, or NULL: there is a descriptor. */
static void multiply(Maker *m, const TlMma *mma, uint32_t n, uint32_t how, const LLVMValueRef *a,
                     LLVMValueRef *acc, LLVMValueRef tid)
{
    enum { WORDS_OF_A = 4 };
    static const uint64_t UPPER = UINT64_C(0x4000004000010000);
    const TlDtype *t = mma->type;
    LLVMValueRef args[TL_LEAF_MAX_ARGS] = {
        i32(m, 7),
        i32(m, n),
        i32(m, TL_MMA_TYPES((uint32_t)t[0], (uint32_t)t[1], (uint32_t)t[2])),
        i32(m, how | (a ? TL_WGMMA_A_WORDS : 0)),
        LLVMConstInt(m->i64, a ? 0 : UPPER, 0),
        a ? i32(m, 0) : tid,
        LLVMConstInt(m->i64, UPPER, 0),
        i32(m, 64)};
    unsigned count = 8;
    for (unsigned i = 0; a && i < WORDS_OF_A; i++)
        args[count++] = a[i];
    for (unsigned i = 0; i < n / 2; i++)
        args[count++] = acc[i];
    take_words(m, call_words(m, TL_LEAF_WGMMA, args, count, n / 2), acc, n / 2);
}

/* Two instructions in a group, and its end; all kinds of operands. */
static void add_product(Maker *m, const TlMma *mma, uint32_t n, uint32_t across, bool in_words)
{
    char *name =
        tl_format(m->arena, "k_wg%s_n%u_%u%s", mma->name, n, across, in_words ? "_rs" : "_ss");
    for (char *p = name; *p; p++)
        *p = *p == '.' ? '_' : *p;
    begin_kernel(m, name);
    LLVMValueRef tid = call(m, TL_LEAF_TID, NULL, 0), a[5] = {i32(m, 7)},
                 acc[2 + TL_LEAF_MOST_WORDS] = {i32(m, 7), i32(m, 0)};
    LLVMTypeRef f32 = LLVMFloatTypeInContext(m->l.context);
    for (unsigned i = 0; i < n / 2; i++) {
        LLVMValueRef x = LLVMBuildAdd(m->l.builder, tid, i32(m, i), "");
        acc[2 + i] = mma->type[TL_MMA_C] == TL_F32 ? LLVMBuildUIToFP(m->l.builder, x, f32, "") : x;
    }
    for (unsigned i = 1; i < 5; i++)
        a[i] = LLVMBuildMul(m->l.builder, tid, i32(m, i), "");
    if (in_words)
        take_words(m, call_words(m, TL_LEAF_WGMMA_FENCE, a, 5, 4), a + 1, 4);
    const LLVMValueRef *words = in_words ? a + 1 : NULL;
    multiply(m, mma, n, across | (in_words ? 0 : TL_WGMMA_FENCE), words, acc + 2, tid);
    multiply(m, mma, n, across | TL_WGMMA_COMMIT, words, acc + 2, tid);
    take_words(m, call_words(m, TL_LEAF_WGMMA_WAIT, acc, 2 + n / 2, n / 2), acc + 2, n / 2);
    for (unsigned i = 0; i < n / 2; i++)
        keep(m, acc[2 + i]);
    end(m, name);
}

/* The instructions that take 32 bytes of k; what has 16 bits, in all directions. */
static void add_products(Maker *m, const TlMma *mma)
{
    static const uint32_t COLUMNS[] = {8, 24, 32, 96, 256};
    int bytes = tl_dtype_bytes(mma->type[TL_MMA_A]);
    if (mma->m != 16 || mma->n != 8 || mma->k * bytes != 32 || mma->type[TL_MMA_A] == TL_F64)
        return;
    for (uint32_t n = 0; n < sizeof COLUMNS / sizeof *COLUMNS; n++)
        for (uint32_t across = 0; across < (bytes == 2 ? 4u : 1u); across++)
            for (int words = 0; words < 2; words++)
                if (!words || !(across & TL_WGMMA_A_ACROSS))
                    add_product(m, mma, COLUMNS[n], across, words);
}

/* Those that only whole kernels have: they take words. */
static bool is_of_kernels(tl_leaf leaf)
{
    return strchr(tl_leaf_info(leaf)->operands, 'w') != NULL;
}

static bool is_matrix(tl_leaf leaf)
{
    return tl_leaf_info(leaf)->family == TL_LEAF_FAMILY_MMA ||
           tl_leaf_info(leaf)->family == TL_LEAF_FAMILY_MMA_SCALED;
}

static void *emit(Maker *m, const TlCodegenOptions *o, const char *form, size_t *out_size)
{
    static const char *const FORMS[] = {"llvm", "asm", "obj"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(form, FORMS[i]))
            return tl_gpu_emit(&m->l, o, (TlEmit)(TL_EMIT_LLVM + i), m->arena, &m->kernels,
                               out_size);
    tl_gpu_middle(&m->l, o);
    tl_gpu_expand(&m->l, o, &m->kernels);
    void *object = tl_llvm_emit(&m->l, m->arena, true, out_size);
    return strcmp(form, "linked") ? object : tl_hsaco_link(m->arena, object, *out_size, out_size);
}

static int make(Maker *m, const char *target, const char *form, FILE *out)
{
    TlCodegenOptions o = {.opt_level = 3};
    o.target = tl_target_find(target, &o.emulate);
    if (!o.target || !tl_target_is_gpu(o.target))
        return 2;
    m->lanes = o.target->lanes;
    tl_llvm_open(&m->l, m->arena, "leaves", o.target->family->triple, o.target->cpu,
                 o.target->features, 3);
    m->i1 = LLVMInt1TypeInContext(m->l.context);
    m->i32 = LLVMInt32TypeInContext(m->l.context);
    m->i64 = LLVMInt64TypeInContext(m->l.context);
    m->ptr = LLVMPointerTypeInContext(m->l.context, 1);
    for (int leaf = 0; leaf < TL_LEAF_COUNT; leaf++)
        if (!is_matrix((tl_leaf)leaf) && !is_of_kernels((tl_leaf)leaf) &&
            tl_leaf_is_of(o.target, (tl_leaf)leaf))
            add_row(m, (tl_leaf)leaf);
    for (uint32_t i = 0; i < tl_mma_count(); i++)
        if (tl_mma_has(o.target->matrix, tl_mma_at(i))) {
            add_matrix(m, tl_mma_at(i));
            if (tl_leaf_is_of(o.target, TL_LEAF_WGMMA))
                add_products(m, tl_mma_at(i));
        }
    for (uint32_t i = 0; i < m->kernels.len; i++)
        tl_gpu_set_kernel(&m->l, o.target, &m->kernels.data[i]);
    size_t size;
    void *code = emit(m, &o, form, &size);
    tl_llvm_close(&m->l);
    return fwrite(code, 1, size, out) == size ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "leaf_kernels TARGET llvm|asm|obj|rel OUT\n");
        return 2;
    }
    FILE *out = strcmp(argv[3], "-") ? fopen(argv[3], "wb") : stdout;
    if (!out)
        return 1;
    TlArena arena;
    tl_arena_init(&arena, (TlAlloc){0});
    Maker m = {.arena = &arena};
    TlGuard g;
    int status = 1;
    if (TL_GUARD(&g)) {
        status = make(&m, argv[1], argv[2], out);
        tl_guard_pop(&g);
    } else {
        fprintf(stderr, "leaf_kernels: %s\n", g.text);
    }
    fclose(out);
    tl_arena_free(&arena);
    return status;
}
