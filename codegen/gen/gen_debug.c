/* Line information: where in the .tile files each instruction comes from. A module has one compile
 * unit (opened only with -g), a kernel one subprogram; what was inlined from another file gets a
 * scope with that file. All calls do nothing while l->di is NULL.
 *
 * PTX gets directives only (.loc, .file): a unit with line tables would make ptxas compile for a
 * debugger, without optimisation. */
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "codegen/gen/gen.h"

enum { DIRECTIVES_ONLY = 3 }; /* LLVM's DebugDirectivesOnly, which llvm-c does not name */

static void module_flag(TlLlvm *l, const char *name, unsigned value)
{
    LLVMValueRef v = LLVMConstInt(LLVMInt32TypeInContext(l->context), value, 0);
    LLVMAddModuleFlag(l->module, LLVMModuleFlagBehaviorWarning, name, strlen(name),
                      LLVMValueAsMetadata(v));
}

void tl_gen_debug_open(TlLlvm *l, const TlModule *m, bool directives_only)
{
    TL_ASSERT(!l->di, "line information is open");
    static const char PRODUCER[] = "tilec";
    const char *path = m->ctx->diags.sources.data[0].path;
    l->di = LLVMCreateDIBuilder(l->module);
    l->debug_sources = m->ctx;
    LLVMMetadataRef file = LLVMDIBuilderCreateFile(l->di, path, strlen(path), "", 0);
    LLVMDIBuilderCreateCompileUnit(
        l->di, LLVMDWARFSourceLanguageC, file, PRODUCER, strlen(PRODUCER), 1, "", 0, 0, "", 0,
        directives_only ? (LLVMDWARFEmissionKind)DIRECTIVES_ONLY : LLVMDWARFEmissionLineTablesOnly,
        0, 0, 0, "", 0, "", 0);
    module_flag(l, "Debug Info Version", LLVMDebugMetadataVersion());
    module_flag(l, "Dwarf Version", directives_only ? 2 : 4);
}

void tl_gen_debug_close(TlLlvm *l)
{
    if (!l->di)
        return;
    LLVMDIBuilderFinalize(l->di);
    LLVMDisposeDIBuilder(l->di);
    l->di = NULL;
}

static LLVMMetadataRef file_of(TlGen *g, TlLoc loc)
{
    const TlCtx *ctx = g->l->debug_sources;
    const char *path = ctx->diags.sources.data[loc.file].path;
    return LLVMDIBuilderCreateFile(g->l->di, path, strlen(path), "", 0);
}

void tl_gen_debug_begin(TlGen *g)
{
    LLVMDIBuilderRef di = g->l->di;
    if (!di)
        return;
    const char *name = g->fn->name;
    LLVMMetadataRef file = file_of(g, g->fn->loc),
                    type = LLVMDIBuilderCreateSubroutineType(di, file, NULL, 0, LLVMDIFlagZero);
    g->subprogram = LLVMDIBuilderCreateFunction(di, file, name, strlen(name), name, strlen(name),
                                                file, g->fn->loc.line, type, 0, 1, g->fn->loc.line,
                                                LLVMDIFlagZero, 1);
    tl_gen_set_loc(g, g->fn->loc);
}

void tl_gen_debug_end(TlGen *g)
{
    if (!g->l->di)
        return;
    LLVMSetSubprogram(g->function, g->subprogram);
    LLVMSetCurrentDebugLocation2(g->b, NULL);
}

LLVMMetadataRef tl_gen_set_loc(TlGen *g, TlLoc loc)
{
    LLVMMetadataRef before = LLVMGetCurrentDebugLocation2(g->b);
    if (!g->l->di || !loc.line)
        return before;
    LLVMMetadataRef scope = g->subprogram;
    if (loc.file != g->fn->loc.file)
        scope = LLVMDIBuilderCreateLexicalBlockFile(g->l->di, scope, file_of(g, loc), 0);
    LLVMSetCurrentDebugLocation2(
        g->b, LLVMDIBuilderCreateDebugLocation(g->c, loc.line, loc.col, scope, NULL));
    return before;
}
