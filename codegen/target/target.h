/* Targets: rows of target.def, runtime/contract/gpu.def, family.def and pipeline.def. Other files
 * ask for the fact that they need, never for the target's family, so a new target is one row. */
#ifndef TL_TARGET_H
#define TL_TARGET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/support/arena.h"
#include "runtime/contract/gpu_rows.h"

/* What an image carries. */
typedef enum TlCode {
    TL_CODE_IR,   /* text of tile IR */
    TL_CODE_HOST, /* an object for a host CPU */
    TL_CODE_PTX,  /* text; with a NUL in the image */
    TL_CODE_HSACO
} TlCode;

typedef enum TlPipeline { TL_PIPELINE_REF, TL_PIPELINE_CPU, TL_PIPELINE_GPU } TlPipeline;
typedef enum TlDebugLines { TL_LINES_TABLES, TL_LINES_DIRECTIVES } TlDebugLines;

typedef enum TlFamilyId {
#define FAMILY(ID, ...) TL_FAMILY_##ID,
#include "codegen/target/family.def"
    TL_FAMILY_COUNT
} TlFamilyId;

/* A row of family.def, which says what the fields mean. */
typedef struct TlFamily {
    TlFamilyId id; /* to choose a function of FAMILY_GPU */
    const char *name, *triple;
    TlPipeline pipeline;
    TlCode code;
    bool by_llvm, scalar_base;
    TlDebugLines lines;
    const char *classes;
    uint32_t file, version, convention;
    const char *middle;
} TlFamily;

/* A row of target.def or of gpu.def, with its columns; of these a host has cpu and features, and
 * dies is 1. */
typedef struct TlTarget {
    const char *name;
    const TlFamily *family;
    const char *arch;   /* target.arch of the language */
    const char *triple; /* of a host; a GPU's is its family's */
#define COLUMN(row, type, column) type column;
    TL_GPU_COLUMNS(COLUMN, )
#undef COLUMN
} TlTarget;

/* NULL when unknown. With out_emulate, "emu:NAME" and "emu:NAME@LEVEL" find a GPU's row too and set
 * it. */
const TlTarget *tl_target_find(const char *name, bool *out_emulate);
/* The CPU that emulated code is made for: the row of "cpu:LEVEL", of "cpu" where `name` says
 * none. */
const TlTarget *tl_target_host(const char *name);
/* The machine that an object with images for `list` (comma-separated, NULL: "cpu") is linked on:
 * the triple of its first CPU target; "": this machine. */
const char *tl_target_object_triple(const char *list);
const char *const *tl_target_names(void); /* NULL-terminated */
/* The LLVM that makes machine code for it: 19, or a later one that NEWER of gpu.def says. */
int tl_target_llvm(const TlTarget *t);
/* The same where this compiler's LLVM is older; else 0. */
int tl_target_lacks_llvm(const TlTarget *t);
bool tl_target_is_gpu(const TlTarget *t);
TlCode tl_target_code(const TlTarget *t, bool emulate);
/* What the passes of a GPU must know of it; warps, stages and stress stay 0. */
struct TlMachine tl_target_machine(const TlTarget *t);

/* What decides which rows of pipeline.def run. */
typedef struct TlPipelineFacts {
    TlPipeline pipeline;
    bool ring, strict, stress;
    bool only_tir;      /* only what the stage tir shows */
    const char *passes; /* --passes; NULL: the target's */
} TlPipelineFacts;
const char *tl_pipeline(TlArena *arena, const TlPipelineFacts *facts); /* comma-separated passes */
const char *tl_pipeline_around(void); /* the AROUND rows of pipeline.def: "ring,add-variants," */

bool tl_target_has_proof(const TlTarget *t, tl_leaf leaf); /* proven.def */
#endif
