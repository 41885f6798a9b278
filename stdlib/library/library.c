/* library.c: the handle of libtilekernels, and the kernel that a call runs.
 *
 * 1. a thread keeps the kernels of its last calls, by all that the choice depends on: a call like
 *    one of those has its kernel.
 * 2. choose: the first row of choices.def that fits the call's sizes, or the fastest tile.
 * 3. if that kernel was asked for before, it is in the handle.
 * 4. load: the image of the kernel, the device's kind and the type becomes a module (once), and the
 *    instance with the constants of the form and of the row is looked up in it. Two threads may do
 *    the same at the same time: the first one's module stays. */
#include "stdlib/library/library.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/contract/grow.h"

#define ANY INT64_MAX
enum { REGISTER_BYTES = 64 }; /* of a CPU */
enum { MAX_FORMS = 8, MAX_CONSTS = 8, CONST_BYTES = 128, TYPES = TILE_F8E5M2FNUZ + 1 };

/* A row of choices.def: the first that fits, or of those with a block the fastest. */
typedef struct Choice {
    TlLibKernel kernel;
    TlLibKind kind;
    int64_t up_to[3];
    const char *constants; /* "BM=64 BN=32" */
    int block[3];          /* of a program; 0: any */
    int step[3];           /* larger sizes than a block are filled up to a multiple of these */
    double slowness[3];    /* 1 / speed: as they are, of A transposed, of B; infinite: not made */
    int run;               /* bytes that elements of the last size take together, at least */
} Choice;

#define IS_CPU(kind) (TL_LIB_##kind == TL_LIB_CPU)
static const Choice choices[] = {
#define CHOICE(kernel, kind, a, b, c, constants)                                                   \
    {TL_LIB_##kernel, TL_LIB_##kind, {a, b, c}, constants, {0}, {0}, {0}, 0},
#define TILE(kernel, kind, m, n, k, speed, speed_ta, speed_tb, to_m, to_n, to_k)                   \
    {TL_LIB_##kernel, TL_LIB_##kind, {to_m, to_n, to_k}, "BM=" #m " BN=" #n " BK=" #k,             \
     {m, n, k}, {IS_CPU(kind) ? 4 : m, n, k},                                                      \
     {1 / (speed), 1 / (speed_ta), 1 / (speed_tb)}, IS_CPU(kind) ? REGISTER_BYTES : 0},
#define ROWS(kernel, kind, m, k, speed)                                                            \
    {TL_LIB_##kernel, TL_LIB_##kind, {ANY, ANY, ANY}, "BM=" #m " BK=" #k,                          \
     {m, 1, k}, {m, 1, k}, {1 / (speed), 1 / (speed)}, 0},
#define HEADS(kernel, kind, d, m, n, speed)                                                        \
    {TL_LIB_##kernel, TL_LIB_##kind, {d, ANY, ANY}, "t.D=" #d " t.BM=" #m " t.BN=" #n,             \
     {d, m, n}, {d, m, n}, {1 / (speed), 1 / (speed)}, 0},
#include "stdlib/library/choices.def"
};
enum { CHOICES = sizeof choices / sizeof *choices };

static const struct {
    const char *name, *forms;
} kernels[] = {
#define KERNEL(name, file, module, kernel, forms) {kernel, forms},
#include "stdlib/library/kernels.def"
};

struct tile_kernels {
    uint64_t number; /* of the handle in this process, from 1: no other has had it */
    tile_device *device;
    TlLibKind kind;
    tile_device_info info;
    short rows[TL_LIB_KERNELS][2]; /* of choices: the kernel's for this kind, and their end */
    _Atomic(tile_module *) modules[TL_LIB_KERNELS][TYPES];
    _Atomic(tile_kernel *) prepared[CHOICES][MAX_FORMS][TYPES];
};

/* ---- errors ---- */

tile_status tl_lib_fail(tile_status status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tile_set_last_error(status, text);
}

tile_status tl_lib_take(const char *function, const char *type, void *to, size_t size,
                        const void *from, size_t least)
{
    if (!from || tl_struct_take(to, size, from, least))
        return TILE_OK;
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: struct_size of %s is %zu, expected %zu: begin with "
                                          "the _INIT macro", function, type, tl_struct_size(from),
                       size);
}

/* ---- the handle ---- */

static TlLibKind kind_of(const char *target)
{
    if (strcmp(target, "ref") == 0)
        return TL_LIB_REF;
    return strncmp(target, "cpu", 3) == 0 ? TL_LIB_CPU : TL_LIB_GPU;
}

/* Was anything built for the kind? */
static bool is_built(TlLibKind kind)
{
    switch (kind) {
    case TL_LIB_CPU: return *TL_LIB_CPU_TARGETS;
    case TL_LIB_REF: return true;
    case TL_LIB_GPU: return *TL_LIB_GPU_TARGETS;
    }
    return false;
}

/* A kernel's rows for a kind of device stand together. */
static void find_rows(tile_kernels *k)
{
    for (int i = CHOICES - 1; i >= 0; i--) {
        short *rows = k->rows[choices[i].kernel];
        if (choices[i].kind != k->kind)
            continue;
        rows[0] = (short)i;
        if (!rows[1])
            rows[1] = (short)(i + 1);
    }
}

tile_status tile_kernels_open(tile_device *device, tile_kernels **out_kernels)
{
    if (!out_kernels)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "tile_kernels_open: out_kernels is NULL");
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_status status = device ? TILE_OK : tile_default_device(&device);
    if (status == TILE_OK)
        status = tile_device_get_info(device, &info);
    if (status != TILE_OK)
        return status;
    if (!is_built(kind_of(info.target)))
        return tl_lib_fail(TILE_UNAVAILABLE, "tile_kernels_open: libtilekernels was built for cpu "
                                             "(%s), ref and GPUs (%s), not for %s",
                           TL_LIB_CPU_TARGETS, *TL_LIB_GPU_TARGETS ? TL_LIB_GPU_TARGETS : "none",
                           info.target);
    tile_kernels *k = calloc(1, sizeof *k);
    if (!k)
        return tl_lib_fail(TILE_NO_MEMORY, "out of memory");
    static _Atomic uint64_t handles;
    k->number = atomic_fetch_add(&handles, 1) + 1;
    k->device = device;
    k->kind = kind_of(info.target);
    k->info = info;
    find_rows(k);
    *out_kernels = k;
    return TILE_OK;
}

void tile_kernels_close(tile_kernels *k)
{
    for (int i = 0; k && i < TL_LIB_KERNELS; i++)
        for (int t = 0; t < TYPES; t++)
            tile_module_free(atomic_load(&k->modules[i][t]));
    free(k);
}

/* ---- the kernel of a call ---- */

static bool fits(const Choice *c, const TlLibCall *call)
{
    const int64_t *sizes = call->sizes;
    if (c->run > c->block[2] * tile_dtype_bits(call->type) / 8)
        return false;
    return sizes[0] <= c->up_to[0] && sizes[1] <= c->up_to[1] && sizes[2] <= c->up_to[2];
}

/* Rounded up; a division of integers takes as long as three of doubles. */
static double blocks_of(int64_t size, int block)
{
    return (double)(int64_t)((double)(size + block - 1) / block);
}

/* A size with what is computed beside it. */
static double filled(const Choice *c, const TlLibCall *call, int i)
{
    int64_t size = call->sizes[i];
    return size <= c->block[i] ? c->block[i] : blocks_of(size, c->step[i]) * c->step[i];
}

/* Of all pairs of queries and keys in these blocks, the part that causal attention computes: the
 * last of a block of queries sees as many keys as all of it. */
static double seen(const Choice *c, const TlLibCall *call)
{
    double m = filled(c, call, 1), n = filled(c, call, 2),
           keys = (double)call->sizes[2] - (double)call->sizes[1] + (m + c->block[1]) / 2;
    if (c->block[1] % c->block[2])
        keys += c->block[2] / 2.0;
    return keys < 0 ? 0 : keys < n ? keys / n : 1;
}

/* What a product, or attention, takes in these blocks: the multiplications of the processor that
 * does most of them, and a start of a program for each block along the first two sizes. */
static double cost_of(const Choice *c, const TlLibCall *call, int processors)
{
    const double start = 5000; /* as many multiplications take: 0.1 us */
    double blocks = blocks_of(call->sizes[0], c->block[0]) *
                    blocks_of(call->sizes[1], c->block[1]) * (double)call->batch;
    double all = filled(c, call, 0) * filled(c, call, 1) * filled(c, call, 2) *
                 (double)call->batch;
    if (call->causal)
        all *= seen(c, call);
    double part = processors > 1 ? ceil(blocks / processors) / blocks : 1;
    return part * (all * c->slowness[call->speed] + blocks * start);
}

/* The row for the call. -1: the kind of device has none. */
static int choose(const tile_kernels *k, const TlLibCall *call)
{
    int best = -1;
    double least = 0;
    for (int i = k->rows[call->kernel][0]; i < k->rows[call->kernel][1]; i++) {
        const Choice *c = &choices[i];
        if (!fits(c, call))
            continue;
        if (!c->block[0])
            return i;
        double cost = cost_of(c, call, k->info.processors);
        if (best < 0 || cost < least) {
            best = i;
            least = cost;
        }
    }
    return best;
}

static const TlLibImage *find_image(const TlLibImage *list, TlLibKernel kernel, TlLibKind kind,
                                    tile_dtype type)
{
    while (list->image &&
           (list->kernel != kernel || list->kind != kind || list->type != type))
        list++;
    return list->image ? list : NULL;
}

static tile_status load(tile_kernels *k, const TlLibImage *image, tile_module **out_module)
{
    _Atomic(tile_module *) *place = &k->modules[image->kernel][image->type];
    tile_module *module = atomic_load(place), *mine;
    if (!module) {
        tile_status status = tile_module_load_image(k->device, image->image, *image->size, &mine);
        if (status != TILE_OK)
            return status;
        if (atomic_compare_exchange_strong(place, &module, mine))
            module = mine;
        else
            tile_module_free(mine);
    }
    *out_module = module;
    return TILE_OK;
}

/* Adds "BM=64 BN=32" up to `end` to a list of constants. Their texts are in `text`, of which `used`
 * bytes are taken; both are large enough for every row of the tables. */
static void add_consts(const char *from, const char *end, tile_const *list, char *text,
                       size_t *used)
{
    size_t n = 0;
    while (list[n].name)
        n++;
    char *words = text + *used;
    size_t length = (size_t)(end - from);
    if (!length || *used + length + 1 > CONST_BYTES)
        return;
    memcpy(words, from, length);
    words[length] = 0;
    *used += length + 1;
    char *rest;
    for (char *word = strtok_r(words, " ", &rest); word && n + 1 < MAX_CONSTS;
         word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = 0;
        list[n++] = (tile_const){word, 0, equals + 1};
    }
}

/* Form number `form` of "a|b|c". */
static const char *form_of(const char *forms, int form, const char **out_end)
{
    while (form-- > 0)
        forms = strchr(forms, '|') + 1;
    *out_end = forms + strcspn(forms, "|");
    return forms;
}

static tile_status prepare(tile_kernels *k, const TlLibImage *image, int form, int choice,
                           tile_kernel **out_kernel)
{
    tile_const consts[MAX_CONSTS] = {{0}};
    char text[CONST_BYTES];
    size_t used = 0;
    const char *end, *from = form_of(kernels[image->kernel].forms, form, &end);
    add_consts(from, end, consts, text, &used);
    from = choices[choice].constants;
    add_consts(from, from + strlen(from), consts, text, &used);
    tile_module *module;
    tile_status status = load(k, image, &module);
    if (status == TILE_OK)
        status = tile_kernel_get(module, kernels[image->kernel].name, consts, out_kernel);
    if (status == TILE_OK)
        status = tile_kernel_prepare(*out_kernel);
    if (status == TILE_OK)
        atomic_store(&k->prepared[choice][form][image->type], *out_kernel);
    return status;
}

bool tl_lib_has_host_memory(const tile_kernels *k)
{
    return k->info.host_memory;
}

int tl_lib_processors(const tile_kernels *k)
{
    return k->info.processors;
}

bool tl_lib_fits(const tile_kernels *k, const TlLibCall *call)
{
    return choose(k, call) >= 0;
}

/* ---- calls of before ---- */

/* To estimate eight tiles takes 55 ns, a fifth of a small product. */
typedef struct Known {
    uint64_t handle; /* its number; 0: nothing is known */
    uint64_t what;   /* kernel, type, form and the like */
    int64_t sizes[3], batch;
    tile_kernel *kernel; /* prepared; the handle's, so as long as there may be calls */
} Known;

enum { KNOWN_BITS = 4 }; /* threads may have small stacks, of which theirs is a part */
static _Thread_local Known known[1 << KNOWN_BITS];

static uint64_t what_of(const TlLibCall *c)
{
    _Static_assert(TL_LIB_KERNELS <= 1 << 16 && TYPES <= 1 << 8 && MAX_FORMS <= 1 << 8, "fields");
    return (uint64_t)c->kernel << 32 | (uint64_t)c->type << 24 | (uint64_t)c->form << 16 |
           (uint64_t)c->speed << 1 | c->causal;
}

/* Where such a call is, if it is known. */
static Known *place_of(uint64_t handle, uint64_t what, const TlLibCall *c)
{
    /* odd numbers of 64 bits, of which the upper half of the products is well mixed */
    uint64_t mixed =
        (what ^ handle << 48) * 0x9e3779b97f4a7c15 + (uint64_t)c->sizes[0] * 0xbf58476d1ce4e5b9 +
        (uint64_t)c->sizes[1] * 0x94d049bb133111eb + (uint64_t)c->sizes[2] * 0xd6e8feb86659fd93 +
        (uint64_t)c->batch * 0xa0761d6478bd642f;
    return &known[mixed >> (64 - KNOWN_BITS)];
}

static bool is_known(const Known *n, uint64_t handle, uint64_t what, const TlLibCall *c)
{
    return n->handle == handle && n->what == what && n->sizes[0] == c->sizes[0] &&
           n->sizes[1] == c->sizes[1] && n->sizes[2] == c->sizes[2] && n->batch == c->batch;
}

static tile_status find_kernel(tile_kernels *k, const TlLibCall *call, tile_kernel **out_kernel)
{
    int choice = choose(k, call);
    if (choice >= 0 &&
        (*out_kernel = atomic_load(&k->prepared[choice][call->form][call->type])) != NULL)
        return TILE_OK;
    const TlLibImage *image = find_image(call->images, call->kernel, k->kind, call->type);
    if (choice < 0 || !image)
        return tl_lib_fail(TILE_UNAVAILABLE, "%s: this build of libtilekernels has no %s for %s",
                           call->function, tile_dtype_name(call->type), k->info.target);
    return prepare(k, image, call->form, choice, out_kernel);
}

tile_status tl_lib_kernel(tile_kernels *k, const TlLibCall *call, tile_kernel **out_kernel)
{
    uint64_t what = what_of(call);
    Known *at = place_of(k->number, what, call);
    if (is_known(at, k->number, what, call)) {
        *out_kernel = at->kernel;
        return TILE_OK;
    }
    tile_status status = find_kernel(k, call, out_kernel);
    if (status == TILE_OK)
        *at = (Known){.handle = k->number,
                      .what = what,
                      .batch = call->batch,
                      .sizes = {call->sizes[0], call->sizes[1], call->sizes[2]},
                      .kernel = *out_kernel};
    return status;
}

tile_status tl_lib_launch(tile_kernels *k, tile_stream *stream, const TlLibCall *call,
                          const tile_arg *args, size_t nargs)
{
    tile_kernel *kernel;
    tile_status status = tl_lib_kernel(k, call, &kernel);
    return status == TILE_OK ? tile_launch(kernel, stream, args, nargs) : status;
}

static int count_forms(const char *forms)
{
    int n = 1;
    for (; (forms = strchr(forms, '|')) != NULL; forms++)
        n++;
    return n;
}

/* Does the form have the row's constants? library.cmake says the same. */
static bool is_made(const Choice *c, const char *forms, int form)
{
    const char *end, *from = form_of(forms, form, &end);
    const char *ta = strstr(from, "TA=true"), *tb = strstr(from, "TB=true");
    int speed = ta && ta < end ? 1 : tb && tb < end ? 2 : 0;
    return !isinf(c->slowness[speed]);
}

tile_status tl_lib_prepare(tile_kernels *k, const TlLibImage *images)
{
    tile_status status = TILE_OK;
    tile_kernel *ignored;
    for (const TlLibImage *i = images; i->image; i++)
        for (int c = 0; c < CHOICES && i->kind == k->kind; c++)
            for (int f = count_forms(kernels[i->kernel].forms); f-- > 0 && status == TILE_OK;)
                if (choices[c].kernel == i->kernel && choices[c].kind == i->kind &&
                    is_made(&choices[c], kernels[i->kernel].forms, f))
                    status = prepare(k, i, f, c, &ignored);
    return status;
}
