/* The tables of families, targets and pipelines. */
#include "codegen/target/target.h"

#include <string.h>

#include "ir/support/guard.h"
#include "passes/pass.h"

static const TlFamily FAMILIES[] = {
#define FAMILY(ID, name, triple, pipeline, code, by_llvm, scalar_base, lines, classes, file,       \
               version, convention, middle)                                                        \
    {TL_FAMILY_##ID,       name,          triple,      TL_PIPELINE_##pipeline,                     \
     TL_CODE_##code,       by_llvm,       scalar_base, TL_LINES_##lines,                           \
     classes,              file,          version,     convention,                                 \
     middle},
#include "codegen/target/family.def"
};

static const TlTarget TARGETS[] = {
#define HOST(of_name, of_family, of_triple, of_cpu, of_features)                                   \
    {.name = of_name,                                                                              \
     .family = &FAMILIES[TL_FAMILY_##of_family],                                                   \
     .arch = "",                                                                                   \
     .triple = of_triple,                                                                          \
     .cpu = of_cpu,                                                                                \
     .features = of_features,                                                                      \
     .ptx = "",                                                                                    \
     .matrix = "",                                                                                 \
     .dies = 1},
#include "codegen/target/target.def"
#define IS(column, value) .column = value,
#define GPU_AS(ID, of_name, of_family, ...)                                                        \
    {.name = of_name,                                                                              \
     .family = &FAMILIES[TL_FAMILY_##of_family],                                                   \
     .arch = of_name,                                                                              \
     .triple = "",                                                                                 \
     __VA_ARGS__},
#include "runtime/contract/gpu.def"
};

static const char *const NAMES[] = {
#define HOST(name, ...) name,
#include "codegen/target/target.def"
#define GPU_AS(ID, of_name, ...) of_name,
#include "runtime/contract/gpu.def"
    NULL};

/* Each row of gpu.def has each column, once: as members of a struct of its own. */
#define IS(column, value)           char column;
#define GPU_AS(ID, of_name, of_family, ...) struct row_of_##ID { __VA_ARGS__ };
#include "runtime/contract/gpu.def"
#define HAS(row, type, column) +sizeof((struct row *)0)->column
enum {
#define GPU_AS(ID, ...) COLUMNS_OF_##ID = 0 TL_GPU_COLUMNS(HAS, row_of_##ID),
#include "runtime/contract/gpu.def"
};
#undef HAS

static const TlTarget *find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++)
        if (strlen(TARGETS[i].name) == length && !strncmp(TARGETS[i].name, name, length))
            return &TARGETS[i];
    return NULL;
}

bool tl_target_is_gpu(const TlTarget *t)
{
    return t->lanes > 0;
}

/* The row of CPU level `name`. */
static const TlTarget *find_level(const char *name)
{
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++)
        if (!strncmp(TARGETS[i].name, "cpu:", 4) && !strcmp(TARGETS[i].name + 4, name))
            return &TARGETS[i];
    return NULL;
}

const TlTarget *tl_target_find(const char *name, bool *out_emulate)
{
    if (out_emulate)
        *out_emulate = false;
    if (!out_emulate || strncmp(name, "emu:", 4) != 0)
        return find(name, strlen(name));
    size_t n = strcspn(name + 4, "@");
    const TlTarget *t = find(name + 4, n);
    if (!t || !tl_target_is_gpu(t) || !tl_target_host(name))
        return NULL;
    *out_emulate = true;
    return t;
}

const TlTarget *tl_target_host(const char *name)
{
    const char *level = strchr(name, '@');
    return level ? find_level(level + 1) : find("cpu", 3);
}

const char *tl_target_object_triple(const char *list)
{
    for (const char *p = list ? list : ""; *p;) {
        size_t n = strcspn(p, ",");
        const TlTarget *t = find(p, n);
        if (t && t->family->code == TL_CODE_HOST)
            return t->triple;
        p += n + (p[n] == ',');
    }
    return "";
}

const char *const *tl_target_names(void)
{
    return NAMES;
}

int tl_target_llvm(const TlTarget *t)
{
    TL_ASSERT(t->cpu, "target %s", t->name);
#define NEWER(cpu_name, version, like)                                                             \
    if (!strcmp(t->cpu, #cpu_name))                                                                \
        return version;
#define GPU_AS(...)
#include "runtime/contract/gpu.def"
    return 19;
}

/* ---- pipelines ---- */

enum {
    ALL = 1 << TL_PIPELINE_REF | 1 << TL_PIPELINE_CPU | 1 << TL_PIPELINE_GPU,
    CODE = 1 << TL_PIPELINE_CPU | 1 << TL_PIPELINE_GPU,
    CPU = 1 << TL_PIPELINE_CPU,
    GPU = 1 << TL_PIPELINE_GPU
};

typedef struct Step {
    const char *pass;
    unsigned targets; /* of 1 << TlPipeline */
    enum { ALWAYS, RING, FUSING, STRESS } when;
    enum { TIR, OPT } from;
    bool around;
} Step;

static const Step STEPS[] = {
#define STEP(pass, targets, when, from)   {pass, targets, when, from, false},
#define AROUND(pass, targets, when, from) {pass, targets, when, from, true},
#include "codegen/target/pipeline.def"
};

static bool is_wanted(const Step *s, const TlPipelineFacts *f)
{
    bool when[] = {[ALWAYS] = true, [RING] = f->ring, [FUSING] = !f->strict, [STRESS] = f->stress};
    return (s->targets >> f->pipeline & 1) && when[s->when] && (s->from == TIR || !f->only_tir);
}

static void add_pass(TlSbuf *s, const char *text)
{
    tl_sbuf_putf(s, "%s%s", s->len && *text ? "," : "", text);
}

const char *tl_pipeline(TlArena *arena, const TlPipelineFacts *f)
{
    TlSbuf s;
    bool placed = f->only_tir || !f->passes;
    tl_sbuf_init(&s, arena);
    tl_sbuf_puts(&s, "");
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        if (!placed && !STEPS[i].around) {
            add_pass(&s, f->passes);
            placed = true;
        }
        if (is_wanted(&STEPS[i], f) && (STEPS[i].around || !f->passes))
            add_pass(&s, STEPS[i].pass);
    }
    return s.text;
}

const char *tl_pipeline_around(void)
{
    static const char around[] = ""
#define STEP(pass, targets, when, from)
#define AROUND(pass, targets, when, from) pass ","
#include "codegen/target/pipeline.def"
        ;
    return around;
}

/* ---- facts ---- */

TlCode tl_target_code(const TlTarget *t, bool emulate)
{
    return emulate ? TL_CODE_HOST : t->family->code;
}

/* Instructions of a warp that all schedulers begin while shared memory moves 128 bytes; 0: no
 * GPU. */
static int slots_of_wavefront(const TlTarget *t)
{
    const tl_gpu *g = tl_gpu_find(t->name);
    if (!g)
        return 0;
    double lanes = g->vector > 0 ? g->vector : g->schedulers * g->lanes;
    return (int)(lanes / g->lanes / g->wavefronts);
}

/* Multiply-adds of operands of 16 bits, by matrix instructions if it has any; 0: no GPU. */
static int products_of(const TlTarget *t)
{
    const tl_gpu *g = tl_gpu_find(t->name);
    return !g ? 0 : (int)(g->matrix16 > 0 ? g->matrix16 : g->fma);
}

/* Likewise, where mma.sync does not reach what the matrix units do. */
static int most_products_of(const TlTarget *t)
{
    const tl_gpu *g = tl_gpu_find(t->name);
    return !g ? 0 : (int)(products_of(t) / g->mma_share);
}

static int special_of(const TlTarget *t)
{
    const tl_gpu *g = tl_gpu_find(t->name);
    return !g ? 0 : (int)g->special;
}

TlMachine tl_target_machine(const TlTarget *t)
{
    return (TlMachine){.name = t->name,
                       .lanes = t->lanes,
                       .shared_bytes = t->shared_bytes,
                       .matrix = t->matrix,
                       .copies = (t->can & TL_CAN_COPY) != 0,
                       .matrix_8 = (t->can & TL_CAN_MATRIX_8) != 0,
                       .copies_rows = (t->can & TL_CAN_COPY_ROW) != 0,
                       .fills = (t->can & TL_CAN_FILL) != 0,
                       .matrices = t->can & TL_CAN_COPY && t->can & TL_CAN_LDMATRIX,
                       .columns = (t->can & TL_CAN_COLUMNS) != 0,
                       .warpgroups = (t->can & (TL_CAN_WARPGROUP | TL_CAN_TENSOR)) != 0,
                       .tensor = (t->can & TL_CAN_TENSOR) != 0,
                       .tensor_i8 = (t->can & TL_CAN_TENSOR_I8) != 0,
                       .tensor_scaled = (t->can & TL_CAN_TENSOR_SCALED) != 0,
                       .bulk = (t->can & TL_CAN_BULK) != 0,
                       .multicast = (t->can & TL_CAN_MULTICAST) != 0,
                       .roles = (t->can & TL_CAN_REGISTERS) != 0,
                       .registers = t->registers,
                       .file = t->file,
                       .schedulers = t->schedulers,
                       .wavefront = slots_of_wavefront(t),
                       .products = products_of(t),
                       .most_products = most_products_of(t),
                       .special = special_of(t),
                       .pairs = (t->can & TL_CAN_PAIRS) != 0,
                       .reads_early = t->family->by_llvm};
}

bool tl_target_has_proof(const TlTarget *t, tl_leaf leaf)
{
    (void)t, (void)leaf;
#define PROVEN(name, ID)                                                                           \
    if (leaf == TL_LEAF_##ID && !strcmp(t->name, name))                                            \
        return true;
#include "codegen/target/proven.def"
    return false;
}
