/* What ONNX Runtime asks of a library of custom operators, by its C API: types, kernels made for
 * nodes, and runs of them, in ONNX Runtime's own threads.
 *
 * A launch is cut into parts, which are the tasks of ONNX Runtime's pool (intra_op_num_threads);
 * Tile's own pool stays asleep. Kernels are compiled when a node first runs with shapes that need
 * them, and kept in Tile's cache. */
#include "tile_onnx.h"
#include <onnxruntime_c_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { API = 17 }; /* ONNX Runtime 1.17: its parallel loops */

static const OrtApi *ort;

static OrtStatus *fail(OrtErrorCode code, const char *operator, const char *text)
{
    char all[1024];
    snprintf(all, sizeof all, "tile::%s: %s", operator, text);
    return ort->CreateStatus(code, all);
}

/* ---- the device, and the modules that have been read ---- */

static struct {
    pthread_mutex_t lock;
    tile_device *device;
    int processors;
    int n;
    struct {
        const char *name;
        tile_module *module;
    } modules[8];
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* One thread of its own: parts run in ONNX Runtime's. */
static tile_status open_device(void)
{
    if (shared.device) return TILE_OK;
    tile_device_options options = TILE_DEVICE_OPTIONS_INIT;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    options.threads = 1;
    const tile_status status = tile_device_open_with("cpu", &options, &shared.device);
    if (status) return status;
    tile_device_get_info(shared.device, &info);
    shared.processors = info.processors > 0 ? info.processors : 1;
    return TILE_OK;
}

static tile_status find_module(const char *name, tile_module **out)
{
    pthread_mutex_lock(&shared.lock);
    tile_status status = open_device();
    int i = 0;
    while (i < shared.n && strcmp(shared.modules[i].name, name)) i++;
    if (!status && i == shared.n) {
        status = tile_module_load_file(shared.device, name, NULL, &shared.modules[i].module);
        if (!status) shared.modules[shared.n++].name = name;
    }
    if (!status) *out = shared.modules[i].module;
    pthread_mutex_unlock(&shared.lock);
    return status;
}

/* ---- a node ---- */

enum { MOST_TEXTS = 4 };

typedef struct Node {
    const Operator *operator;
    const OrtKernelInfo *info; /* while attributes are read */
    Settings settings;
    char texts[MOST_TEXTS][32];
    int ntexts;
} Node;

static int64_t integer_attribute(void *node, const char *name, int64_t otherwise)
{
    int64_t v;
    OrtStatus *status = ort->KernelInfoGetAttribute_int64(((Node *)node)->info, name, &v);
    if (!status) return v;
    ort->ReleaseStatus(status);
    return otherwise;
}

static float real_attribute(void *node, const char *name, float otherwise)
{
    float v;
    OrtStatus *status = ort->KernelInfoGetAttribute_float(((Node *)node)->info, name, &v);
    if (!status) return v;
    ort->ReleaseStatus(status);
    return otherwise;
}

/* Of a text that is too long only the beginning, which is the name of nothing. */
static const char *text_attribute(void *node, const char *name, const char *otherwise)
{
    Node *n = node;
    char *text = n->texts[n->ntexts];
    size_t size = sizeof n->texts[0];
    OrtStatus *status = ort->KernelInfoGetAttribute_string(n->info, name, text, &size);
    const bool there = !status || size > sizeof n->texts[0];
    if (status) ort->ReleaseStatus(status);
    if (!there) return otherwise;
    if (status) snprintf(text, sizeof n->texts[0], "(%zu characters)", size);
    n->ntexts++;
    return text;
}

/* ---- what is asked of an operator ---- */

/* The types of nodes: an operator is registered for each. */
static const struct Type {
    tile_dtype type;
    ONNXTensorElementDataType element;
} TYPES[] = {{TILE_F32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT},
             {TILE_F16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16},
             {TILE_BF16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16}};
enum { NTYPES = sizeof TYPES / sizeof *TYPES };

typedef struct Custom {
    OrtCustomOp base; /* first: ONNX Runtime gives it back */
    const Operator *operator;
    const struct Type *type;
} Custom;

static const Custom *custom_of(const OrtCustomOp *op)
{
    return (const Custom *)(const void *)op;
}

static const Operator *operator_of(const OrtCustomOp *op)
{
    return custom_of(op)->operator;
}

static const char *ORT_API_CALL get_name(const OrtCustomOp *op)
{
    return operator_of(op)->name;
}

static const char *ORT_API_CALL get_provider(const OrtCustomOp *op)
{
    (void)op;
    return NULL; /* the CPU's */
}

static size_t ORT_API_CALL get_input_count(const OrtCustomOp *op)
{
    return (size_t)operator_of(op)->most;
}

static size_t ORT_API_CALL get_output_count(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

static ONNXTensorElementDataType ORT_API_CALL get_input_type(const OrtCustomOp *op, size_t index)
{
    const char type = operator_of(op)->types[index];
    return type == 'u'   ? ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8
           : type == 'i' ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32
                         : custom_of(op)->type->element;
}

static ONNXTensorElementDataType ORT_API_CALL get_output_type(const OrtCustomOp *op, size_t index)
{
    (void)index;
    return custom_of(op)->type->element;
}

static OrtCustomOpInputOutputCharacteristic ORT_API_CALL
get_input_characteristic(const OrtCustomOp *op, size_t index)
{
    return (int)index < operator_of(op)->least ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
}

static OrtCustomOpInputOutputCharacteristic ORT_API_CALL
get_output_characteristic(const OrtCustomOp *op, size_t index)
{
    (void)op;
    (void)index;
    return INPUT_OUTPUT_REQUIRED;
}

static OrtMemType ORT_API_CALL get_memory(const OrtCustomOp *op, size_t index)
{
    (void)op;
    (void)index;
    return OrtMemTypeDefault;
}

static int ORT_API_CALL get_zero(const OrtCustomOp *op)
{
    (void)op;
    return 0;
}

static int ORT_API_CALL get_first_version(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

static int ORT_API_CALL get_last_version(const OrtCustomOp *op)
{
    (void)op;
    return INT32_MAX;
}

static OrtStatus *ORT_API_CALL create(const OrtCustomOp *op, const OrtApi *api,
                                      const OrtKernelInfo *info, void **out)
{
    (void)api;
    Node *n = calloc(1, sizeof *n);
    if (!n) return ort->CreateStatus(ORT_FAIL, "tile: no memory");
    *n = (Node){.operator = operator_of(op), .info = info};
    Fault why = {""};
    Attributes attributes = {n, integer_attribute, real_attribute, text_attribute};
    OrtStatus *status = NULL;
    n->settings.type = custom_of(op)->type->type;
    if (!n->operator->read(&attributes, &n->settings, &why))
        status = fail(ORT_INVALID_ARGUMENT, n->operator->name, why.text);
    n->info = NULL;
    if (status)
        free(n);
    else
        *out = n;
    return status;
}

static void ORT_API_CALL destroy(void *node)
{
    free(node);
}

/* ---- a run ---- */

static OrtStatus *read_shape(const OrtValue *value, Tensor *t, const char *operator)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    size_t rank = 0;
    OrtStatus *status = ort->GetTensorTypeAndShape(value, &info);
    if (!status) status = ort->GetDimensionsCount(info, &rank);
    if (!status && rank > TILE_MAX_RANK)
        status = fail(ORT_INVALID_ARGUMENT, operator, "an input has more than eight extents");
    if (!status) status = ort->GetDimensions(info, t->extent, rank);
    if (info) ort->ReleaseTensorTypeAndShapeInfo(info);
    t->rank = (int)rank;
    return status;
}

/* Inputs that the node does not have get the rank -1. */
static OrtStatus *read_inputs(const Node *n, OrtKernelContext *context, Tensor *in)
{
    size_t count = 0;
    OrtStatus *status = ort->KernelContext_GetInputCount(context, &count);
    for (int i = 0; i < MOST_INPUTS && !status; i++) {
        const OrtValue *value = NULL;
        in[i].rank = -1;
        if ((size_t)i < count) status = ort->KernelContext_GetInput(context, (size_t)i, &value);
        if (status || !value) continue;
        status = read_shape(value, &in[i], n->operator->name);
        /* Only GetTensorMutableData is as old as API; kernels read what is const in them. */
        if (!status)
            status = ort->GetTensorMutableData((OrtValue *)(uintptr_t)value, &in[i].data);
    }
    return status;
}

/* A launch in parts, and the first failure of one. */
typedef struct Parts {
    tile_kernel *kernel;
    const Launch *launch;
    uint32_t count;
    atomic_flag failed;
    tile_status status;
    char text[512];
} Parts;

static void run_part(void *user, size_t part)
{
    Parts *p = user;
    const Launch *l = p->launch;
    const tile_status status =
        tile_launch_part(p->kernel, l->args, l->nargs, (uint32_t)part, p->count);
    if (!status || atomic_flag_test_and_set(&p->failed)) return;
    p->status = status;
    snprintf(p->text, sizeof p->text, "%s", tile_last_error());
}

enum { BYTES_OF_PART = 1 << 15 }; /* less is not worth another thread */

static uint32_t parts_of(const Launch *l)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < l->nargs; i++) {
        const tile_arg *a = &l->args[i];
        int64_t elements = a->kind == TILE_ARG_VIEW && a->address;
        for (int r = 0; r < a->rank; r++) elements *= a->extent[r];
        bytes += elements * tile_dtype_bits((tile_dtype)a->dtype) / 8;
    }
    const int64_t parts = 1 + bytes / BYTES_OF_PART;
    return parts < shared.processors ? (uint32_t)parts : (uint32_t)shared.processors;
}

static OrtStatus *run(const Node *n, OrtKernelContext *context, const Launch *l)
{
    const char *name = n->operator->name;
    tile_module *module = NULL;
    Parts p = {.launch = l, .failed = ATOMIC_FLAG_INIT};
    if (find_module(l->module, &module) ||
        tile_kernel_get(module, l->kernel, l->consts, &p.kernel) ||
        tile_launch_prepare(p.kernel, l->args, l->nargs, NULL))
        return fail(ORT_FAIL, name, tile_last_error());
    p.count = parts_of(l);
    OrtStatus *status = NULL;
    if (p.count == 1)
        run_part(&p, 0);
    else
        status = ort->KernelContext_ParallelFor(context, run_part, p.count, 0, &p);
    return status || !p.status ? status : fail(ORT_FAIL, name, p.text);
}

static OrtStatus *ORT_API_CALL compute(void *node, OrtKernelContext *context)
{
    const Node *n = node;
    Tensor in[MOST_INPUTS] = {{.rank = 0}}, out = {.rank = 0};
    Fault why = {""};
    Launch launch = {.module = NULL};
    OrtValue *value = NULL;
    OrtStatus *status = read_inputs(n, context, in);
    if (!status && !n->operator->shape(&n->settings, in, &out, &why))
        status = fail(ORT_INVALID_ARGUMENT, n->operator->name, why.text);
    if (!status)
        status = ort->KernelContext_GetOutput(context, 0, out.extent, (size_t)out.rank, &value);
    if (!status) status = ort->GetTensorMutableData(value, &out.data);
    for (int i = 0; i < out.rank; i++)
        if (out.extent[i] == 0) return status;
    if (status) return status;
    n->operator->launch(&n->settings, in, &out, &launch);
    return run(n, context, &launch);
}

/* ---- what ONNX Runtime finds ---- */

enum { MOST_OPERATORS = 8 };
static Custom customs[MOST_OPERATORS * NTYPES];

static void fill_custom(Custom *c, const Operator *operator, const struct Type *type)
{
    c->operator = operator;
    c->type = type;
    c->base = (OrtCustomOp){
        .version = API,
        .GetName = get_name,
        .GetExecutionProviderType = get_provider,
        .GetInputType = get_input_type,
        .GetInputTypeCount = get_input_count,
        .GetOutputType = get_output_type,
        .GetOutputTypeCount = get_output_count,
        .KernelDestroy = destroy,
        .GetInputCharacteristic = get_input_characteristic,
        .GetOutputCharacteristic = get_output_characteristic,
        .GetInputMemoryType = get_memory,
        .GetVariadicInputMinArity = get_zero,
        .GetVariadicInputHomogeneity = get_zero,
        .GetVariadicOutputMinArity = get_zero,
        .GetVariadicOutputHomogeneity = get_zero,
        .CreateKernelV2 = create,
        .KernelComputeV2 = compute,
        .GetStartVersion = get_first_version,
        .GetEndVersion = get_last_version,
    };
}

/* The domain lives as long as the process, as sessions may. */
static OrtStatus *make_domain(OrtCustomOpDomain **out)
{
    static OrtCustomOpDomain *domain;
    OrtStatus *status = NULL;
    pthread_mutex_lock(&shared.lock);
    if (!domain) {
        status = ort->CreateCustomOpDomain("tile", &domain);
        for (int i = 0; i < OPERATORS_COUNT * NTYPES && !status; i++) {
            fill_custom(&customs[i], &OPERATORS[i / NTYPES], &TYPES[i % NTYPES]);
            status = ort->CustomOpDomain_Add(domain, &customs[i].base);
        }
    }
    *out = domain;
    pthread_mutex_unlock(&shared.lock);
    return status;
}

/* SessionOptions.register_custom_ops_library calls it. */
__attribute__((visibility("default"))) OrtStatus *ORT_API_CALL
RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base)
{
    ort = base->GetApi(API);
    if (!ort)
        return base->GetApi(1)->CreateStatus(ORT_FAIL, "tile: this needs ONNX Runtime 1.17");
    OrtCustomOpDomain *domain = NULL;
    OrtStatus *status = make_domain(&domain);
    return status ? status : ort->AddCustomOpDomain(options, domain);
}
