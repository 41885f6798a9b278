/* The table of what LLVM makes us do, and the code that runs it. */
#include "codegen/workaround/workaround.h"

#include <string.h>

static const struct Row {
    const char *name;
    unsigned families;
    TlWorkaroundWhen when;
    void (*each)(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function); /* one of these, or none */
    void (*all)(TlLlvm *l);
    unsigned since;
} ROWS[] = {
#define ON(FAMILY) (1u << TL_FAMILY_##FAMILY)
#define EACH(f)    f, NULL
#define ALL(f)     NULL, f
#define NONE       NULL, NULL
#define WORKAROUND(ID, name, families, when, run, since, ...)                                      \
    {name, families, TL_WHEN_##when, run, since},
#include "codegen/workaround/workarounds.def"
};

/* ---- AMD ---- */

int tl_amd_generation(const TlLlvm *l)
{
    TL_ASSERT(!strncmp(l->cpu, "gfx", 3) && strlen(l->cpu) >= 6, "a GPU called %s", l->cpu);
    const char *generic = strchr(l->cpu, '-'); /* else the last two are of a model and stepping */
    ptrdiff_t digits = generic ? generic - l->cpu - 3 : (ptrdiff_t)strlen(l->cpu) - 5;
    return digits == 1 ? l->cpu[3] - '0' : 10 * (l->cpu[3] - '0') + l->cpu[4] - '0';
}

LLVMValueRef tl_amd_hide(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x, const char *constraints)
{
    static const char *const MARKS[] = {"convergent", "memory", "nounwind", "willreturn"};
    LLVMValueRef call = tl_llvm_hide(b, x, constraints);
    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++)
        tl_llvm_mark_call(l, call, MARKS[i]);
    return call;
}

/* ---- the table ---- */

const char *tl_workaround_names(void)
{
    return ""
#define WORKAROUND(ID, name, ...) name ","
#include "codegen/workaround/workarounds.def"
        ;
}

bool tl_workaround_is_on(const TlLlvm *l, TlWorkaround w)
{
    const char *name = ROWS[w].name, *at = l->skip;
    for (size_t n; at && *at; at += n + (at[n] == ',')) {
        n = strcspn(at, ",");
        if (!strncmp(at, name, n) && !name[n])
            return false;
    }
    return tl_llvm_version() >= ROWS[w].since;
}

static void run_each(TlLlvm *l, const struct Row *row)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->context);
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            row->each(l, b, f);
    LLVMDisposeBuilder(b);
}

void tl_work_around(TlLlvm *l, TlFamilyId family, TlWorkaroundWhen when)
{
    TL_ASSERT(l->module && when != TL_WHEN_BY_CALL, "no module, or nothing that a table runs");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const struct Row *row = &ROWS[i];
        if (row->when != when || !(row->families >> family & 1) ||
            !tl_workaround_is_on(l, (TlWorkaround)i))
            continue;
        if (row->each)
            run_each(l, row);
        else
            row->all(l);
    }
}
