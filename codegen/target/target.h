/* Targets: rows of target.def and pipeline.def. */
#ifndef TL_TARGET_H
#define TL_TARGET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/contract/leaf.h"

typedef enum TlTargetKind {
    TL_TARGET_CPU,
    TL_TARGET_REF,
    TL_TARGET_NVPTX,
    TL_TARGET_AMDGPU
} TlTargetKind;

typedef struct TlTarget {
    const char *name;
    TlTargetKind kind;
    const char *arch, *triple, *cpu, *features, *pipeline;
    int lanes;
    uint32_t shared_bytes;
    const char *matrix;
    bool copies; /* cp.async, ldmatrix */
    int registers;
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
const char *const *tl_target_names(void);           /* NULL-terminated */
const char *tl_pipeline(const char *name);          /* comma-separated passes */
const char *tl_target_kind_name(TlTargetKind kind); /* target.kind of the language */
bool tl_target_is_gpu(const TlTarget *t);
bool tl_target_has_proof(const TlTarget *t, tl_leaf leaf); /* proven.def */
#endif
