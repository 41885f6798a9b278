/* ggml: matrix times vector with weights in its blocks. It quantises the vector to q8_0 first, as
 * a part of each run, so its results are those of 8 bits. */
#include "contender.h"
#include "ggml-cpu.h"
#include "ggml.h"

static struct ggml_context *context;
static struct ggml_cgraph *graph;
static struct ggml_cplan plan;
static struct ggml_tensor *w;
static uint8_t *weights;

static int threads(void)
{
    const char *n = getenv("OMP_NUM_THREADS");
    return n && atoi(n) > 0 ? atoi(n) : 1;
}

/* The graph y = W x over memory of the arena: of arg[2] equal W in turn. */
static bool prepare(enum ggml_type type)
{
    struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    ggml_free(context);
    free(plan.work_data);
    context = ggml_init(params);
    if (!context)
        return refuse("no context");
    w = ggml_new_tensor_2d(context, type, arg[1], arg[0]);
    struct ggml_tensor *x = ggml_new_tensor_1d(context, GGML_TYPE_F32, arg[1]);
    struct ggml_tensor *y = ggml_mul_mat(context, w, x);
    weights = blocks(0, ggml_nbytes(w), (size_t)arg[2], ggml_type_size(type));
    w->data = weights;
    x->data = floats(1, (size_t)arg[1], -1, 1);
    y->data = result((size_t)arg[0]);
    graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, y);
    plan = ggml_graph_plan(graph, threads(), NULL);
    plan.work_data = malloc(plan.work_size);
    return plan.work_data || refuse("out of memory");
}
static bool prepare_q4_0(void)
{
    return prepare(GGML_TYPE_Q4_0);
}
static bool prepare_q8_0(void)
{
    return prepare(GGML_TYPE_Q8_0);
}

static void run(void)
{
    w->data = weights + ggml_nbytes(w) * turn_of(arg[2]);
    if (ggml_graph_compute(graph, &plan) != GGML_STATUS_SUCCESS) {
        fprintf(stderr, "ggml_graph_compute failed\n");
        exit(1);
    }
}

const Work works[] = {{"gemv_q4_0", prepare_q4_0, run}, {"gemv_q8_0", prepare_q8_0, run}};
const size_t nworks = sizeof works / sizeof *works;
