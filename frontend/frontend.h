/* The front end: .tile text to tile IR. */
#ifndef TL_FRONTEND_H
#define TL_FRONTEND_H
#include "ir/ir.h"

typedef struct TlUnit TlUnit;
typedef struct TlFacts TlFacts; /* name_facts.h */

/* As on the command line: "BM" "64", "T" "f16", "epi" "relu", "CAUSAL" "true". "gemm.BM" is for the
 * kernel gemm alone and goes before "BM"; the last of several of one name counts. */
typedef struct TlConstArg {
    const char *name, *value;
} TlConstArg;

/* Reads a file for import; returns NULL when it does not exist. Memory from the arena. */
typedef const char *(*TlReadFn)(void *user, TlArena *arena, const char *path, size_t *out_size,
                                const char **out_error);

typedef struct TlFrontendOptions {
    TlReadFn read; /* NULL: no files can be imported; stdlib is embedded and always there */
    void *read_user;
    const char *const *include_dirs;
    uint32_t ninclude_dirs;
    bool debug;    /* -g or --check: keep asserts */
    bool check;
    bool strict;   /* --fp=strict */
    const char *target_kind; /* "cpu", "cuda", "hip", "ref" */
    const char *target_arch; /* "sm_90a", ... or "" */
    int32_t warps, stages;   /* which the caller has fixed; 0: not */
    TlFacts *facts;          /* where facts about names are collected; NULL: nowhere */
} TlFrontendOptions;

typedef struct TlProgram TlProgram; /* a checked unit with its imports; lives in ctx->perm */

/* Parses `source` and what it imports, so that options->read is called for every path at which an
 * imported file is looked for. false: an error, in ctx->diags. */
bool tl_frontend_imports(TlCtx *ctx, uint32_t source, const TlFrontendOptions *options);

/* Parses and checks `source` and what it imports. Errors go to ctx->diags. NULL only when nothing
 * could be read. */
TlProgram *tl_frontend_check(TlCtx *ctx, uint32_t source, const TlFrontendOptions *options);

uint32_t tl_program_kernels(const TlProgram *p);
const char *tl_program_kernel_name(const TlProgram *p, uint32_t i);
/* The name of a kernel's i-th parameter, constants included; NULL: there is none. */
const char *tl_program_param(const TlProgram *p, uint32_t kernel, uint32_t i, bool *out_is_const);

/* Has a kernel options of that name, `const S name`? */
bool tl_program_has_options(const TlProgram *p, const char *name);
/* Does the kernel, or with NULL any kernel, take the constant given as `name` ("BM", "gemm.BM",
 * "o.field")? */
bool tl_program_has_const(const TlProgram *p, const char *kernel, const char *name);

/* One combination of the values that a kernel's tune clauses list. */
typedef struct TlConfig {
    const char *text; /* "BM=64 T=f16 warps=4" */
    uint32_t nvalues;
    const struct TlTuned *values;
} TlConfig;
/* What a configuration, which may be NULL, says of "warps", "stages", "cluster" or "maxreg"; 0:
 * nothing. */
int32_t tl_config_knob(const TlConfig *config, const char *name);

/* What there is to tune in a kernel, with the constants given. */
typedef struct TlTuning {
    const TlConfig *configs; /* in the order in which tune lists them */
    uint32_t nconfigs;
    const char *constants;   /* "T=f16 epi=relu": those that tune does not list */
    const char *keys;        /* "M N K": what the choice depends on */
    const char *hash;        /* of the kernel and what it uses, without tune and key */
    const char *standard;    /* the one that is compiled without results; NULL: it is not listed */
    bool without_knobs;      /* the host: warps and the like are no part of configurations */
} TlTuning;
/* The configuration of that text, in which there may be knobs even if they are no part of it; NULL:
 * none. */
const TlConfig *tl_tuning_find(const TlTuning *t, const char *text);
/* False: there is no such kernel, it has no tune clause, or there were errors. */
bool tl_frontend_tuning(TlProgram *p, const char *kernel, const TlConstArg *consts,
                        uint32_t nconsts, TlTuning *out);
/* A warning at the kernel's name about data on how to tune it. */
void tl_frontend_stale_tuning(TlProgram *p, const char *kernel, const char *why);

typedef enum TlInstantiate {
    TL_INST_OK,
    TL_INST_ERRORS,
    TL_INST_NO_KERNEL,
    TL_INST_BAD_CONST, /* an unreadable value */
    TL_INST_NO_VALUE,  /* a constant with neither value nor default */
    TL_INST_NO_VARIANT
} TlInstantiate;
/* Lowers a kernel's instances to IR, one function per variant of `instantiate` that agrees with the
 * constants given (one when there is no such clause), appended to `out`; none unless OK or ERRORS.
 * Constants that the kernel lacks are passed over. A constant that neither the caller nor the
 * variant gives has the value of `config`; with NULL, its default, or if it has none and tune lists
 * it, that of the first configuration. BAD_CONST, NO_VALUE, NO_VARIANT: what is wrong, a part of a
 * sentence, in *out_message. */
TlInstantiate tl_frontend_lower(TlProgram *p, const char *kernel, const TlConstArg *consts,
                                uint32_t nconsts, const TlConfig *config, TlModule *out,
                                const char **out_message);
/* The kernel is not part of the output: a warning at its name. */
void tl_frontend_leave_out(TlProgram *p, const char *kernel, const char *why);
/* Warns that there is none to compile. */
void tl_frontend_no_kernel(TlProgram *p);

/* "BM, BN, epi": a kernel's compile-time parameters, for usage messages */
const char *tl_program_const_names(const TlProgram *p, const char *kernel);
#endif
