/* FAIL, OUTSIDE and PRINT on a real GPU: they write records to the debug buffer
 * (runtime/contract/leaf.h), whose address is the argument for slot TILE_SLOT_DEBUG. Without the
 * slot, or with address 0, they do nothing. */
#include "codegen/leaf/leaf_expand.h"

#include <string.h>

static const char MARK[] = "tl-debug";

static const char BEGIN[] =
    "define void @tl.debug(ptr addrspace(1) %buffer, i1 %pred, i32 %kind, i32 %block, i32 %thread, "
    "i32 %site, i32 %text, i32 %what, i32 %reg, i32 %index, i64 %bits) alwaysinline {\n"
    "  %there = icmp ne ptr addrspace(1) %buffer, null\n"
    "  %go = and i1 %pred, %there\n"
    "  br i1 %go, label %take, label %end\n"
    "take:\n"
    "  %count = getelementptr i8, ptr addrspace(1) %buffer, i64 4\n"
    "  %n = atomicrmw add ptr addrspace(1) %count, i32 1 monotonic\n"
    "  %capacity = load i32, ptr addrspace(1) %buffer\n"
    "  %fits = icmp ult i32 %n, %capacity\n"
    "  br i1 %fits, label %write, label %end\n"
    "write:\n"
    "  %n64 = zext i32 %n to i64\n"
    "  %o = mul i64 %n64, 40\n"
    "  %o16 = add i64 %o, 16\n"
    "  %r = getelementptr i8, ptr addrspace(1) %buffer, i64 %o16\n";
/* The words of a record, in their order. */
static const char *const WORDS[] = {"i32 %kind", "i32 %block", "i32 %thread",
                                    "i32 %site", "i32 %text",  "i32 %what",
                                    "i32 %reg",  "i32 %index", "i64 %bits"};
static const char END[] = "  br label %end\n"
                          "end:\n"
                          "  ret void\n"
                          "}\n";
_Static_assert(sizeof(tl_debug_header) == 16 && sizeof(tl_debug_record) == 40,
               "the text above writes these");

void tl_leaf_mark_debug(TlLlvm *l, LLVMValueRef kernel, unsigned index)
{
    TL_ASSERT(kernel && index < LLVMCountParams(kernel), "parameter %u is no debug buffer", index);
    tl_llvm_set_text_attribute(l, kernel, index + 1, MARK, "");
}

static LLVMValueRef debug_buffer(LLVMValueRef kernel)
{
    unsigned n = LLVMCountParams(kernel);
    for (unsigned i = 0; i < n; i++)
        if (LLVMGetStringAttributeAtIndex(kernel, i + 1, MARK, (unsigned)strlen(MARK)))
            return LLVMGetParam(kernel, i);
    return NULL;
}

/* What a record holds in addition to its thread and site. */
typedef struct Said {
    uint32_t kind;
    LLVMValueRef text, what, reg, index, bits;
} Said;

/* FAIL: site, failed, kind, text; OUTSIDE: site, failed, text, param, address, bytes; PRINT: site,
 * pred, text, dtype, register, index, bits */
static Said said_by(TlLeafCall *call)
{
    LLVMValueRef *a = call->args, zero = tl_leaf_i32(call, 0),
                 none = LLVMConstInt(call->i64, 0, 0);
    if (call->leaf == TL_LEAF_PRINT)
        return (Said){TL_DEBUG_PRINT, a[2], a[3], a[4], a[5], a[6]};
    if (call->leaf == TL_LEAF_FAIL)
        return (Said){TL_DEBUG_FAIL, a[3], a[2], zero, zero, none};
    LLVMValueRef bounds = tl_leaf_i32(call, 1), /* TL_RUN_BOUNDS */
        address = LLVMBuildPtrToInt(call->b, a[4], call->i64, "");
    return (Said){TL_DEBUG_FAIL, a[2], bounds, a[5], a[3], address};
}

void tl_leaf_debug(TlLeafCall *call, LLVMValueRef block, LLVMValueRef thread)
{
    TL_ASSERT(block && thread, "a record of nobody");
    LLVMValueRef buffer = debug_buffer(call->function);
    if (!buffer || tl_leaf_is_false(call->args[1]))
        return;
    if (LLVMGetTypeKind(LLVMTypeOf(buffer)) == LLVMIntegerTypeKind)
        buffer = LLVMBuildIntToPtr(call->b, buffer, LLVMPointerTypeInContext(call->c, 1), "");
    bool is_new;
    Said s = said_by(call);
    LLVMValueRef args[] = {buffer,        call->args[1], tl_leaf_i32(call, s.kind), block,
                           thread,        call->args[0], s.text,                    s.what,
                           s.reg,         s.index,       s.bits};
    tl_leaf_helper(call, "tl.debug", call->void_, args, sizeof args / sizeof *args, &is_new);
    if (!is_new)
        return;
    tl_sbuf_puts(call->prelude, BEGIN);
    for (unsigned i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        tl_sbuf_putf(call->prelude,
                     "  %%r%u = getelementptr i8, ptr addrspace(1) %%r, i64 %u\n"
                     "  store %s, ptr addrspace(1) %%r%u\n",
                     i, 4 * i, WORDS[i], i);
    tl_sbuf_puts(call->prelude, END);
}
