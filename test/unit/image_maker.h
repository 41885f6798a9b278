/* image_maker.h: kernel images for tests of the runtime, from a few strings. The compiler's writer
 * is not used: what the runtime reads is checked against the contract (tile_image.h), not against
 * the other side's habits.
 *
 *     KernelSpec spec = {.name = "gemm", .params = {{"A", "f32 const view M,K"}, {"n", "i32
 *                        scalar"}, {"p", "f32 pointer"}}, .grid = {"M 64 cdiv", "K"},
 *                        .require = {"M n <=;M <= n"}, .consts = {"BM=64"}};
 *
 * A view's axes are EXTENT[:STRIDE] with commas between; each is a number, a name, or {expression}.
 * Expressions are postfix; after ';' comes the text for messages. Names are extents, strides and
 * scalar parameters. */
#ifndef TL_TEST_IMAGE_MAKER_H
#define TL_TEST_IMAGE_MAKER_H
#include "runtime/include/tile.h"
#include "runtime/contract/tile_image.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SPEC_PARAMS = 8,
    SPEC_EXPRS = 6,
    SPEC_TESTS = 8,
    SPEC_TEXTS = 8,
    MAKER_BYTES = 1 << 18,
    MAKER_KERNELS = 8
};

typedef struct ParamSpec {
    const char *name, *form;
} ParamSpec;
typedef struct KernelSpec {
    const char *name;
    ParamSpec params[SPEC_PARAMS];
    const char *grid[TILE_MAX_GRID], *group, *require[SPEC_EXPRS], *assume[SPEC_EXPRS],
        *consts[SPEC_EXPRS];
    uint32_t flags, aliases[2][2], naliases;
    const void *code;
    size_t ncode;
    uint64_t scratch_bytes;
    uint32_t warps, threads, shared_bytes, cluster, cluster_axis;
    bool gpu; /* slots of the launch after those of the parameters; a site and texts */
    bool divides; /* last, a slot of what divides by the programs of axis 0 */
    const tile_image_slot *maps; /* behind them, slots of tensor maps */
    uint32_t nmaps;
    const char *texts[SPEC_TEXTS]; /* none: "a text" */
    tile_image_test tests[SPEC_TESTS]; /* up to the first with mask 0; the next kernel stands in */
} KernelSpec;

typedef struct ImageMaker {
    _Alignas(64) unsigned char data[MAKER_BYTES];
    uint32_t size;
    const KernelSpec *spec; /* the kernel that is being written */
    const void *code;       /* of the one before; kernels with the same code share it */
    uint32_t code_at;
    tile_image_sym syms[32];
    tile_image_expr exprs[64];
    const char *sym_names[32];
    uint32_t nsyms, nexprs;
    bool naming; /* first round over the parameters: names only */
} ImageMaker;

static inline uint32_t maker_put(ImageMaker *m, const void *bytes, size_t size, uint32_t align)
{
    m->size = (m->size + align - 1) / align * align;
    uint32_t at = m->size;
    if (size)
        memcpy(m->data + at, bytes, size);
    m->size += (uint32_t)size;
    return at;
}

static inline uint32_t maker_text(ImageMaker *m, const char *text)
{
    return maker_put(m, text, strlen(text) + 1, 1);
}

static inline uint32_t maker_dtype(const char *text)
{
    for (int t = 0; t <= TILE_F4E2M1; t++)
        if (strcmp(tile_dtype_name((tile_dtype)t), text) == 0)
            return (uint32_t)t;
    abort();
}

static inline int maker_param(const ImageMaker *m, const char *name)
{
    for (int i = 0; i < SPEC_PARAMS && m->spec->params[i].name; i++)
        if (strcmp(m->spec->params[i].name, name) == 0)
            return i;
    return -1;
}

static inline int maker_sym(const ImageMaker *m, const char *name)
{
    for (uint32_t i = 0; i < m->nsyms; i++)
        if (strcmp(m->sym_names[i], name) == 0)
            return (int)i;
    return -1;
}

static inline tile_hx_ins maker_ins(const ImageMaker *m, const char *word)
{
    static const struct {
        const char *word;
        tile_hx_op op;
    } ops[] = {
        {"+", TILE_HX_ADD},     {"-", TILE_HX_SUB},     {"*", TILE_HX_MUL},
        {"/", TILE_HX_DIV},     {"%", TILE_HX_REM},     {"cdiv", TILE_HX_CDIV},
        {"min", TILE_HX_MIN},   {"max", TILE_HX_MAX},   {"neg", TILE_HX_NEG},
        {"abs", TILE_HX_ABS},   {"!", TILE_HX_NOT},     {"<", TILE_HX_LT},
        {"<=", TILE_HX_LE},     {"==", TILE_HX_EQ},     {"!=", TILE_HX_NE},
        {"&&", TILE_HX_AND},    {"||", TILE_HX_OR},     {"&", TILE_HX_BAND},
        {"|", TILE_HX_BOR},     {"^", TILE_HX_BXOR},    {"<<", TILE_HX_SHL},
        {">>", TILE_HX_SHR},    {"?:", TILE_HX_SELECT}, {"i2f", TILE_HX_I2F},
        {"f2i", TILE_HX_F2I},   {"f+", TILE_HX_FADD},   {"f-", TILE_HX_FSUB},
        {"f*", TILE_HX_FMUL},   {"f/", TILE_HX_FDIV},   {"fneg", TILE_HX_FNEG},
        {"fmin", TILE_HX_FMIN}, {"fmax", TILE_HX_FMAX}, {"f<", TILE_HX_FLT},
        {"f<=", TILE_HX_FLE},   {"f==", TILE_HX_FEQ},   {"f!=", TILE_HX_FNE},
        {"sms", TILE_HX_SMS},
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].word, word) == 0)
            return (tile_hx_ins){.op = ops[i].op};
    if (isdigit((unsigned char)*word) || (*word == '-' && word[1])) {
        if (!strchr(word, '.'))
            return (tile_hx_ins){.op = TILE_HX_CONST, .imm = strtoll(word, NULL, 10)};
        double d = strtod(word, NULL);
        tile_hx_ins ins = {.op = TILE_HX_CONST};
        memcpy(&ins.imm, &d, sizeof d);
        return ins;
    }
    if (m && maker_sym(m, word) >= 0)
        return (tile_hx_ins){.op = TILE_HX_SYM, .imm = maker_sym(m, word)};
    if (m && maker_param(m, word) >= 0)
        return (tile_hx_ins){.op = TILE_HX_ARG, .imm = maker_param(m, word)};
    abort();
}

/* Postfix words up to ';', '}' or the end; the number of instructions. */
static inline uint32_t maker_code(const ImageMaker *m, const char *text, tile_hx_ins *code)
{
    uint32_t n = 0;
    while (*text && *text != ';' && *text != '}') {
        char word[32];
        size_t length = strcspn(text, " ;}");
        if (length) {
            memcpy(word, text, length);
            word[length] = 0;
            code[n++] = maker_ins(m, word);
        }
        text += length + (text[length] == ' ');
    }
    return n;
}

static inline uint32_t maker_expr(ImageMaker *m, const char *text)
{
    tile_hx_ins code[64];
    const char *shown = strchr(text, ';');
    char plain[128];
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(text, ";}"), text);
    tile_image_expr e = {.ncode = maker_code(m, text, code)};
    e.code = maker_put(m, code, e.ncode * sizeof *code, 8);
    e.text = maker_text(m, shown ? shown + 1 : plain);
    m->exprs[m->nexprs] = e;
    return m->nexprs++;
}

/* One extent or stride; returns what follows it. */
static inline const char *maker_dim(ImageMaker *m, const char *text, uint32_t param, uint32_t axis,
                                    bool stride, tile_image_dim *out)
{
    char word[64];
    size_t n = *text == '{' ? strcspn(text, "}") + 1 : strcspn(text, ",:");
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    *out = (tile_image_dim){.kind = TILE_DIM_CONST, .is_i64 = word[0] == '!'};
    const char *name = word + out->is_i64;
    if (*name == '{') {
        out->kind = TILE_DIM_EXPR;
        out->value = m->naming ? 0 : maker_expr(m, name + 1);
    } else if (isdigit((unsigned char)*name)) {
        out->value = strtoll(name, NULL, 10);
    } else {
        out->kind = TILE_DIM_SYM;
        out->value = maker_sym(m, name);
        if (out->value < 0) {
            char *copy = (char *)m->data + MAKER_BYTES -
                         64 * (m->nsyms + 1); /* names live at the far end while building */
            snprintf(copy, 64, "%s", name);
            m->sym_names[m->nsyms] = copy;
            m->syms[m->nsyms] = (tile_image_sym){.param = param, .axis = axis, .is_stride = stride};
            out->value = m->nsyms++;
        }
    }
    return text + n;
}

static inline tile_image_param maker_one_param(ImageMaker *m, uint32_t index)
{
    char dtype[16], word[16];
    int used = 0;
    const char *form = m->spec->params[index].form;
    tile_image_param p = {.name = maker_text(m, m->spec->params[index].name)};
    if (sscanf(form, "%15s %n", dtype, &used) != 1)
        abort();
    p.dtype = maker_dtype(dtype);
    form += used;
    if (strncmp(form, "const ", 6) == 0) {
        p.is_const = 1;
        form += 6;
    }
    if (sscanf(form, "%15s %n", word, &used) != 1)
        abort();
    p.kind = word[0] == 'v'   ? TILE_PARAM_VIEW
             : word[0] == 'p' ? TILE_PARAM_POINTER
                              : TILE_PARAM_SCALAR;
    tile_image_dim dims[2 * TILE_IMAGE_MAX_RANK];
    for (form += used; p.kind == TILE_PARAM_VIEW && *form; p.rank++) {
        dims[2 * p.rank + 1] = (tile_image_dim){.kind = TILE_DIM_DENSE};
        form = maker_dim(m, form, index, p.rank, false, &dims[2 * p.rank]);
        if (*form == ':')
            form = maker_dim(m, form + 1, index, p.rank, true, &dims[2 * p.rank + 1]);
        form += *form == ',';
    }
    p.dims = maker_put(m, dims, 2 * p.rank * sizeof *dims, 8);
    return p;
}

/* Slots: for each parameter its address or value, then extents and strides of each axis; with
 * checks on, its bytes. */
static inline uint32_t maker_slots(const KernelSpec *spec, const tile_image_param *params,
                                   uint32_t n, tile_image_slot *slots)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        slots[count++] = (tile_image_slot){
            .kind = params[i].kind == TILE_PARAM_SCALAR ? TILE_SLOT_SCALAR : TILE_SLOT_POINTER,
            .param = i};
        for (uint32_t axis = 0; params[i].kind == TILE_PARAM_VIEW && axis < params[i].rank;
             axis++) {
            slots[count++] = (tile_image_slot){.kind = TILE_SLOT_EXTENT, .param = i, .axis = axis};
            slots[count++] = (tile_image_slot){.kind = TILE_SLOT_STRIDE, .param = i, .axis = axis};
        }
        if ((spec->flags & TILE_KERNEL_CHECKED) && params[i].kind != TILE_PARAM_SCALAR)
            slots[count++] = (tile_image_slot){.kind = TILE_SLOT_BYTES, .param = i};
    }
    if (spec->gpu) {
        slots[count++] = (tile_image_slot){.kind = TILE_SLOT_NPID, .axis = 1};
        slots[count++] = (tile_image_slot){.kind = TILE_SLOT_GROUP};
        slots[count++] = (tile_image_slot){.kind = TILE_SLOT_DEBUG};
    }
    if (spec->divides)
        slots[count++] = (tile_image_slot){.kind = TILE_SLOT_BY_NPID, .axis = 0};
    for (uint32_t i = 0; i < spec->nmaps; i++)
        slots[count++] = spec->maps[i];
    return count;
}

static inline uint32_t maker_list(ImageMaker *m, const char *const *texts, uint32_t *out_count)
{
    uint32_t index[SPEC_EXPRS];
    for (*out_count = 0; *out_count < SPEC_EXPRS && texts[*out_count]; ++*out_count)
        index[*out_count] = maker_expr(m, texts[*out_count]);
    return maker_put(m, index, *out_count * sizeof *index, 4);
}

static inline uint32_t maker_consts(ImageMaker *m, uint32_t *out_count)
{
    tile_image_const consts[SPEC_EXPRS];
    for (*out_count = 0; *out_count < SPEC_EXPRS && m->spec->consts[*out_count]; ++*out_count) {
        char name[64];
        const char *text = m->spec->consts[*out_count], *equals = strchr(text, '=');
        snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        consts[*out_count] = (tile_image_const){maker_text(m, name), maker_text(m, equals + 1)};
    }
    return maker_put(m, consts, *out_count * sizeof *consts, 4);
}

static inline tile_image_kernel maker_kernel(ImageMaker *m, const KernelSpec *spec)
{
    tile_image_param params[SPEC_PARAMS];
    tile_image_slot slots[256];
    tile_image_kernel k = {.name = maker_text(m, spec->name),
                           .flags = spec->flags,
                           .warps = spec->warps,
                           .threads = spec->threads,
                           .shared_bytes = spec->shared_bytes,
                           .cluster = spec->cluster,
                           .cluster_axis = spec->cluster_axis,
                           .scratch_bytes = spec->scratch_bytes};
    m->spec = spec;
    m->nsyms = m->nexprs = 0;
    k.symbol = k.name;
    m->naming = true;
    for (uint32_t i = 0; i < SPEC_PARAMS && spec->params[i].name; i++)
        maker_one_param(m, i);
    m->naming = false;
    for (; k.nparams < SPEC_PARAMS && spec->params[k.nparams].name; k.nparams++)
        params[k.nparams] = maker_one_param(m, k.nparams);
    k.params = maker_put(m, params, k.nparams * sizeof *params, 4);
    k.nslots = maker_slots(spec, params, k.nparams, slots);
    k.slots = maker_put(m, slots, k.nslots * sizeof *slots, 4);
    for (; k.ngrid < TILE_MAX_GRID && spec->grid[k.ngrid]; k.ngrid++)
        k.grid[k.ngrid] = maker_expr(m, spec->grid[k.ngrid]);
    k.group = spec->group ? maker_expr(m, spec->group) + 1 : 0;
    k.requires_off = maker_list(m, spec->require, &k.nrequires);
    k.assumes = maker_list(m, spec->assume, &k.nassumes);
    k.consts = maker_consts(m, &k.nconsts);
    k.naliases = spec->naliases;
    k.aliases = maker_put(m, spec->aliases, spec->naliases * sizeof(tile_image_alias), 4);
    for (uint32_t i = 0; i < m->nsyms; i++)
        m->syms[i].name = maker_text(m, m->sym_names[i]);
    k.nsyms = m->nsyms;
    k.syms = maker_put(m, m->syms, m->nsyms * sizeof *m->syms, 4);
    k.nexprs = m->nexprs;
    k.exprs = maker_put(m, m->exprs, m->nexprs * sizeof *m->exprs, 4);
    if (spec->gpu) {
        tile_image_site site = {.leaf = 2, .file = 0, .line = 3, .col = 4};
        uint32_t texts[SPEC_TEXTS];
        for (k.ntexts = 0; k.ntexts < SPEC_TEXTS && spec->texts[k.ntexts]; k.ntexts++)
            texts[k.ntexts] = maker_text(m, spec->texts[k.ntexts]);
        if (k.ntexts == 0)
            texts[k.ntexts++] = maker_text(m, "a text");
        k.nsites = 2;
        k.sites = maker_put(m, (tile_image_site[]){site, site}, 2 * sizeof site, 4);
        k.texts = maker_put(m, texts, k.ntexts * sizeof *texts, 4);
    }
    while (k.ntests < SPEC_TESTS && spec->tests[k.ntests].mask)
        k.ntests++;
    k.tests = maker_put(m, spec->tests, k.ntests * sizeof *spec->tests, 8);
    k.ncode = (uint32_t)spec->ncode;
    if (!spec->code || spec->code != m->code)
        m->code_at = maker_put(m, spec->code, spec->ncode, 1);
    m->code = spec->code;
    k.code = m->code_at;
    return k;
}

static inline void maker_checksum(ImageMaker *m)
{
    tile_image_header *h = (tile_image_header *)(void *)m->data;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = h->header_bytes; i < h->total_bytes; i++)
        sum = (sum ^ m->data[i]) * UINT64_C(0x100000001b3);
    h->checksum = sum;
}

/* The image of n kernels for a target; m->data, m->size. */
static inline void make_image(ImageMaker *m, const char *target, const KernelSpec *specs,
                              uint32_t n)
{
    tile_image_kernel kernels[MAKER_KERNELS];
    memset(m, 0, sizeof *m);
    m->size = sizeof(tile_image_header);
    tile_image_header h = {.magic = TILE_IMAGE_MAGIC,
                           .version = TILE_IMAGE_VERSION,
                           .header_bytes = sizeof h,
                           .nkernels = n,
                           .nfiles = 1};
    h.target = maker_text(m, target);
    uint32_t file = maker_text(m, "test.tile");
    h.files = maker_put(m, &file, sizeof file, 4);
    for (uint32_t i = 0; i < n; i++) {
        kernels[i] = maker_kernel(m, &specs[i]);
        kernels[i].otherwise = kernels[i].ntests ? i + 2 : 0;
    }
    h.kernels = maker_put(m, kernels, n * sizeof *kernels, 8);
    maker_put(m, NULL, 0, 64);
    h.total_bytes = m->size;
    memcpy(m->data, &h, sizeof h);
    maker_checksum(m);
}
#endif
