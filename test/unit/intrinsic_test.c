/* intrinsic.def beside the LLVM that is linked: each row names an intrinsic that LLVM has, with
 * these overloads and this type. A wrong row is a crash elsewhere, or code for other operands. */
#include "test/unit/unit.h"
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h> /* LLVM_VERSION_MAJOR */

/* As LLVM 19 has it, if it does, as LLVM 22 has it. */
typedef struct Row {
    const char *name, *overloads, *type;
} Row;

static const Row ROWS[][2] = {
#define INTRINSIC(name, overloads, type) {{name, overloads, type}, {name, overloads, type}},
#define CHANGED(name, overloads, type, change, newer, newer_overloads, newer_type)                 \
    {{name, overloads, type}, {newer, newer_overloads, newer_type}},
#define NEWER(name, overloads, type) {{NULL}, {name, overloads, type}},
#include "codegen/target/intrinsic.def"
};

enum { NROWS = sizeof ROWS / sizeof *ROWS, MOST_TYPES = 8 };

/* A module that declares a function with these parameters. */
static LLVMModuleRef module_of(LLVMContextRef c, const char *parameters, LLVMTypeRef *out_type)
{
    char text[256], *error = NULL;
    int n = snprintf(text, sizeof text, "declare void @parameters(%s)\n", parameters);
    LLVMModuleRef module = NULL;
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(text, (size_t)n, "intrinsic.def");
    if (!CHECK(!LLVMParseIRInContext(c, buffer, &module, &error))) {
        fprintf(stderr, "    %s: %s\n", parameters, error);
        LLVMDisposeMessage(error);
        return NULL;
    }
    *out_type = LLVMGlobalGetValueType(LLVMGetNamedFunction(module, "parameters"));
    return module;
}

static void row_is_right(LLVMContextRef c, const Row *row)
{
    LLVMTypeRef parameters, types[MOST_TYPES];
    unsigned id = LLVMLookupIntrinsicID(row->name, strlen(row->name));
    LLVMModuleRef module = module_of(c, row->overloads, &parameters);
    if (!module)
        return;
    unsigned n = LLVMCountParamTypes(parameters);
    for (unsigned i = 0; i < MOST_TYPES; i++) /* LLVM reads on where a row has too few */
        types[i] = LLVMInt128TypeInContext(c);
    LLVMGetParamTypes(parameters, types);
    bool known = id != 0, overloaded = known && LLVMIntrinsicIsOverloaded(id);
    if (!CHECK(known && overloaded == (n > 0))) {
        fprintf(stderr, "    %s: %s\n", row->name, !known ? "unknown" : n ? "none" : "overloaded");
        LLVMDisposeModule(module);
        return;
    }
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(module, id, types, n);
    char *type = LLVMPrintTypeToString(LLVMGlobalGetValueType(f)), *why = NULL;
    if (!CHECK_STR(type, row->type))
        fprintf(stderr, "    %s\n", row->name);
    if (!CHECK(!LLVMVerifyModule(module, LLVMReturnStatusAction, &why)))
        fprintf(stderr, "    %s: %s\n", row->name, why);
    LLVMDisposeMessage(why);
    LLVMDisposeMessage(type);
    LLVMDisposeModule(module);
}

static const char *name_of(int i)
{
    return ROWS[i][0].name ? ROWS[i][0].name : ROWS[i][1].name;
}

int main(void)
{
    LLVMContextRef c = LLVMContextCreate();
    for (int i = 0; i < NROWS; i++) {
        const Row *row = &ROWS[i][LLVM_VERSION_MAJOR > 19];
        if (row->name)
            row_is_right(c, row);
        if (i && !CHECK(strcmp(name_of(i - 1), name_of(i)) < 0))
            fprintf(stderr, "    %s is not in its place\n", name_of(i));
    }
    LLVMContextDispose(c);
    return unit_result();
}
