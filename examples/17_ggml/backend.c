/* What ggml asks of a backend: one device, whose memory is ggml's own CPU memory, and graphs that
 * run node by node, in ggml's own threads: a graph of custom nodes, each of which runs a launch in
 * parts, goes to ggml's CPU backend. ggml's scheduler leaves to that what kernels.c does not
 * take. */
#include "tile_ggml.h"
#include <ggml-backend-impl.h>
#include <ggml-cpu.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Backend {
    Kernels *kernels; /* NULL: to be opened */
    ggml_backend_t cpu;
    int threads;     /* 0: as many as ggml takes by itself */
    atomic_flag failed;
    char why[512]; /* of the first part that failed */
} Backend;

/* ---- a backend ---- */

static const char *backend_name(ggml_backend_t backend)
{
    (void)backend;
    return "Tile";
}

static void backend_free(ggml_backend_t backend)
{
    Backend *b = backend->context;
    kernels_close(b->kernels);
    if (b->cpu) ggml_backend_free(b->cpu);
    free(b);
    free(backend);
}

/* Of a call of this thread. */
static enum ggml_status fail(const char *what)
{
    fprintf(stderr, "ggml-tile: %s: %s\n", what, tile_last_error());
    return GGML_STATUS_FAILED;
}

typedef struct Step {
    Backend *backend;
    int launch;
} Step;

/* In each of ggml's threads. */
static void run_step(struct ggml_tensor *node, int part, int parts, void *user)
{
    const Step *s = user;
    Backend *b = s->backend;
    (void)node;
    if (kernels_run(kernels_launch(b->kernels, s->launch), part, parts)) return;
    if (!atomic_flag_test_and_set(&b->failed))
        snprintf(b->why, sizeof b->why, "%s", tile_last_error());
}

/* ggml's CPU device, with its threads. */
static bool open_cpu(Backend *b)
{
    if (b->cpu) return true;
    ggml_backend_dev_t dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    b->cpu = dev ? ggml_backend_dev_init(dev, NULL) : NULL;
    void *found = dev ? ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(dev),
                                                          "ggml_backend_set_n_threads")
                      : NULL;
    ggml_backend_set_n_threads_t set;
    memcpy(&set, &found, sizeof set);
    if (b->cpu && found && b->threads) set(b->cpu, b->threads);
    return b->cpu;
}

static enum ggml_status run_steps(Backend *b, struct ggml_context *context, Step *steps, int n)
{
    struct ggml_cgraph *graph = ggml_new_graph_custom(context, (size_t)n, false);
    for (int i = 0; i < n; i++) {
        steps[i] = (Step){b, i};
        ggml_build_forward_expand(graph, ggml_custom_4d(context, GGML_TYPE_F32, 1, 1, 1, 1, NULL, 0,
                                                        run_step, GGML_N_TASKS_MAX, &steps[i]));
    }
    atomic_flag_clear(&b->failed);
    b->why[0] = 0;
    const enum ggml_status status = ggml_backend_graph_compute(b->cpu, graph);
    if (!b->why[0]) return status;
    fprintf(stderr, "ggml-tile: %s\n", b->why);
    return GGML_STATUS_FAILED;
}

/* All launches that have been added, one after the other. */
static enum ggml_status run_launches(Backend *b)
{
    const int n = kernels_count(b->kernels);
    if (n == 0) return GGML_STATUS_SUCCESS;
    const size_t nodes = (size_t)n,
                 size = nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false);
    struct ggml_context *context =
        ggml_init((struct ggml_init_params){.mem_size = size, .no_alloc = true});
    Step *steps = malloc(nodes * sizeof *steps);
    enum ggml_status status = GGML_STATUS_ALLOC_FAILED;
    if (context && steps) status = run_steps(b, context, steps, n);
    free(steps);
    ggml_free(context);
    return status;
}

static enum ggml_status backend_compute(ggml_backend_t backend, struct ggml_cgraph *graph)
{
    Backend *b = backend->context;
    if (!b->kernels) b->kernels = kernels_open();
    if (!b->kernels) return fail("no device");
    if (!open_cpu(b)) {
        fputs("ggml-tile: ggml has no CPU device\n", stderr);
        return GGML_STATUS_FAILED;
    }
    kernels_clear(b->kernels);
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        struct ggml_tensor *node = ggml_graph_node(graph, i);
        if (!(node->flags & GGML_TENSOR_FLAG_COMPUTE)) continue; /* only there for the order */
        if (!kernels_add(b->kernels, node)) return fail(ggml_op_desc(node));
    }
    return run_launches(b);
}

static void backend_set_threads(ggml_backend_t backend, int threads)
{
    Backend *b = backend->context;
    if (b->threads == threads) return;
    b->threads = threads;
    if (b->cpu) ggml_backend_free(b->cpu);
    b->cpu = NULL;
}

static const struct ggml_backend_i BACKEND = {
    .get_name = backend_name, .free = backend_free, .graph_compute = backend_compute};

static ggml_guid_t guid(void)
{
    static ggml_guid id = {0x74, 0x69, 0x6c, 0x65, 0x20, 0x6b, 0x65, 0x72,
                           0x6e, 0x65, 0x6c, 0x73, 0x20, 0x76, 0x30, 0x31};
    return &id;
}

/* ---- its device ---- */

static const char *device_name(ggml_backend_dev_t dev)
{
    (void)dev;
    return "Tile";
}

static const char *device_description(ggml_backend_dev_t dev)
{
    (void)dev;
    return "tile kernels, compiled for this CPU";
}

static void device_memory(ggml_backend_dev_t dev, size_t *free_bytes, size_t *total)
{
    (void)dev;
    *free_bytes = *total = 0; /* none of its own */
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t dev)
{
    (void)dev;
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

static void device_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props)
{
    *props = (struct ggml_backend_dev_props){
        .name = device_name(dev),
        .description = device_description(dev),
        .type = device_type(dev),
        .caps = {.buffer_from_host_ptr = true},
    };
}

static ggml_backend_t device_init(ggml_backend_dev_t dev, const char *params)
{
    (void)params;
    ggml_backend_t backend = malloc(sizeof *backend);
    Backend *b = calloc(1, sizeof *b);
    if (!backend || !b) {
        free(backend);
        free(b);
        return NULL;
    }
    *backend = (struct ggml_backend){guid(), BACKEND, dev, b};
    return backend;
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t dev)
{
    (void)dev;
    return ggml_backend_cpu_buffer_type();
}

static ggml_backend_buffer_t device_buffer_of(ggml_backend_dev_t dev, void *p, size_t size,
                                              size_t max_tensor_size)
{
    (void)dev;
    (void)max_tensor_size;
    return ggml_backend_cpu_buffer_from_ptr(p, size);
}

static bool device_takes(ggml_backend_dev_t dev, const struct ggml_tensor *node)
{
    (void)dev;
    return kernels_take(node);
}

static bool device_takes_memory(ggml_backend_dev_t dev, ggml_backend_buffer_type_t type)
{
    (void)dev;
    return ggml_backend_buft_is_host(type);
}

static struct ggml_backend_device device = {.iface = {
    .get_name = device_name,
    .get_description = device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = device_buffer_type,
    .buffer_from_host_ptr = device_buffer_of,
    .supports_op = device_takes,
    .supports_buft = device_takes_memory,
}};

/* ---- what ggml_backend_load finds ---- */

static const char *registry_name(ggml_backend_reg_t registry)
{
    (void)registry;
    return "Tile";
}

static size_t registry_count(ggml_backend_reg_t registry)
{
    (void)registry;
    return 1;
}

static ggml_backend_dev_t registry_device(ggml_backend_reg_t registry, size_t index)
{
    device.reg = registry;
    return index == 0 ? &device : NULL;
}

static void *registry_function(ggml_backend_reg_t registry, const char *name)
{
    (void)registry;
    void *found = NULL;
    ggml_backend_set_n_threads_t set = backend_set_threads;
    if (!strcmp(name, "ggml_backend_set_n_threads")) memcpy(&found, &set, sizeof found);
    return found;
}

static ggml_backend_reg_t registry(void)
{
    static struct ggml_backend_reg own = {
        GGML_BACKEND_API_VERSION,
        {registry_name, registry_count, registry_device, registry_function},
        NULL};
    return &own;
}

GGML_BACKEND_DL_IMPL(registry)
