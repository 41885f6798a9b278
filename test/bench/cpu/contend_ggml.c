/* ggml: products with weights in its blocks. It quantises the other matrix to 8 bits first, as a
 * part of each run, so its results are those of 8 bits. Weights are packed before the clock runs,
 * as llama.cpp packs them when it loads a model, if ggml has a packing for them on this CPU. */
#include "contender.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

enum { MOST_TURNS = 8 };

static struct Product {
    struct ggml_cgraph *graph;
    ggml_backend_buffer_t packed; /* the weights; NULL: as they are */
} product[MOST_TURNS];
static long turns;
static struct ggml_context *context;
static struct ggml_cplan plan;

static int threads(void)
{
    const char *n = getenv("OMP_NUM_THREADS");
    return n && atoi(n) > 0 ? atoi(n) : 1;
}

static void quiet(enum ggml_log_level level, const char *text, void *data)
{
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

static void forget(void)
{
    ggml_log_set(quiet, NULL);
    for (int i = 0; i < MOST_TURNS; i++) {
        ggml_backend_buffer_free(product[i].packed);
        product[i] = (struct Product){0};
    }
    ggml_free(context);
    free(plan.work_data);
    plan.work_data = NULL;
}

/* The first packing that takes this product, as llama.cpp chooses. */
static ggml_backend_buffer_t pack(struct ggml_tensor *y, const uint8_t *weights)
{
    struct ggml_tensor *w = y->src[0];
    ggml_backend_reg_t cpu = ggml_backend_cpu_reg();
    ggml_backend_dev_t device = ggml_backend_reg_dev_get(cpu, 0);
    ggml_backend_dev_get_extra_bufts_t list = (ggml_backend_dev_get_extra_bufts_t)
        ggml_backend_reg_get_proc_address(cpu, "ggml_backend_dev_get_extra_bufts");
    for (ggml_backend_buffer_type_t *type = list ? list(device) : NULL; type && *type; type++) {
        ggml_backend_buffer_t b =
            ggml_backend_buft_alloc_buffer(*type, ggml_backend_buft_get_alloc_size(*type, w));
        w->buffer = b;
        bool takes = b && ggml_backend_dev_supports_op(device, y);
        w->buffer = NULL;
        if (takes && ggml_backend_tensor_alloc(b, w, ggml_backend_buffer_get_base(b)) ==
                         GGML_STATUS_SUCCESS) {
            ggml_backend_tensor_set(w, weights, 0, ggml_nbytes(w));
            return b;
        }
        ggml_backend_buffer_free(b);
    }
    return NULL;
}

/* Y = X W^T, m by n by k; the weights are input `which`, `times` equal ones in turn. */
static bool prepare(enum ggml_type type, long m, long n, long k, int which, long times)
{
    struct ggml_init_params params = {.mem_size = 4 << 20, .no_alloc = true};
    forget();
    context = ggml_init(params);
    if (!context)
        return refuse("no context");
    turns = times < MOST_TURNS ? times : MOST_TURNS;
    size_t bytes = ggml_row_size(type, k) * (size_t)n;
    uint8_t *weights = blocks(which, bytes, (size_t)turns, ggml_type_size(type));
    float *x = floats(1 - which, (size_t)(m * k), -1, 1), *y = result((size_t)(m * n));
    for (long i = 0; i < turns; i++) {
        struct ggml_tensor *w = ggml_new_tensor_2d(context, type, k, n);
        struct ggml_tensor *of = ggml_new_tensor_2d(context, GGML_TYPE_F32, k, m);
        struct ggml_tensor *is = ggml_mul_mat(context, w, of);
        uint8_t *plain = weights + (size_t)i * bytes;
        of->data = x;
        is->data = y;
        if (!(product[i].packed = pack(is, plain)))
            w->data = plain;
        product[i].graph = ggml_new_graph(context);
        ggml_build_forward_expand(product[i].graph, is);
    }
    plan = ggml_graph_plan(product[0].graph, threads(), NULL);
    plan.work_data = malloc(plan.work_size + 1);
    return plan.work_data || refuse("out of memory");
}

static bool gemv_q4_0(void)
{
    return prepare(GGML_TYPE_Q4_0, 1, arg[0], arg[1], 0, arg[2]);
}
static bool gemv_q8_0(void)
{
    return prepare(GGML_TYPE_Q8_0, 1, arg[0], arg[1], 0, arg[2]);
}
static bool gemm_q4_0(void)
{
    return prepare(GGML_TYPE_Q4_0, arg[0], arg[1], arg[2], 1, 1);
}
static bool gemm_q8_0(void)
{
    return prepare(GGML_TYPE_Q8_0, arg[0], arg[1], arg[2], 1, 1);
}

static bool gemm_q4_k(void)
{
    return prepare(GGML_TYPE_Q4_K, arg[0], arg[1], arg[2], 1, 1);
}

static void run(void)
{
    if (ggml_graph_compute(product[turn_of(turns)].graph, &plan) != GGML_STATUS_SUCCESS) {
        fprintf(stderr, "ggml_graph_compute failed\n");
        exit(1);
    }
}

const Work works[] = {
    {"gemv_q4_0", gemv_q4_0, run},
    {"gemv_q8_0", gemv_q8_0, run},
    {"lib_gemm_q4_0", gemm_q4_0, run},
    {"lib_gemm_q8_0", gemm_q8_0, run},
    {"lib_gemm_q4_0_i8", gemm_q4_0, run},
    {"lib_gemm_q8_0_i8", gemm_q8_0, run},
    {"lib_gemm_q4_k_i8", gemm_q4_k, run},
};
const size_t nworks = sizeof works / sizeof *works;
