/* Targets: rows of target.def and pipeline.def. */
#ifndef TL_TARGET_H
#define TL_TARGET_H
#include <stddef.h>

typedef enum TlTargetKind { TL_TARGET_CPU, TL_TARGET_REF } TlTargetKind;

typedef struct TlTarget {
    const char *name;
    TlTargetKind kind;
    const char *arch, *triple, *cpu, *features, *pipeline;
} TlTarget;

const TlTarget *tl_target_find(const char *name);   /* NULL when unknown */
const char *const *tl_target_names(void);           /* NULL-terminated */
const char *tl_pipeline(const char *name);          /* comma-separated passes */
const char *tl_target_kind_name(TlTargetKind kind); /* target.kind of the language */
#endif
