#include "kernels.h"

static const struct {
    const char *name;
    tile_dtype dtype;
    int size;
} types[TYPES] = {
    [F32] = {"f32", TILE_F32, 4}, [BF16] = {"bf16", TILE_BF16, 2}, [F16] = {"f16", TILE_F16, 2}};

const char *type_name(Type type) { return types[type].name; }
tile_dtype type_dtype(Type type) { return types[type].dtype; }
int type_size(Type type) { return types[type].size; }

#define GEMM "std.kernels.gemm"
#define ATTENTION "std.kernels.attention"
#define NORMS "std.kernels.norms"
#define LAYERS "std.kernels.layers"
#define LOSSES "std.kernels.losses"
#define OPTIMIZERS "std.kernels.optimizers"

bool kernels_open(Kernels *k, Type type, int width, int head)
{
    const char *t = types[type].name;
    const bool master = type != F32;
#define OF_T {"T", 0, t}
#define ROW OF_T, {"W", 0, t}, {"BN", width, 0}
#define HEADS OF_T, {"t.D", head, 0}, {"o.causal", 1, 0}
#define TILES {"BM", 64, 0}, {"BN", 64, 0}
    const KernelRow rows[KERNELS] = {
        [EMBED] = {LAYERS, "embedding", {OF_T}},
        [EMBED_BACK] = {LAYERS, "embedding_backward_sorted", {OF_T}},
        [FIRST_NORM] = {NORMS, "rms_norm", {ROW}},
        [ADD_NORM] = {NORMS, "rms_norm", {ROW, {"RESIDUAL", 1, 0}}},
        [NORM_BACK] = {NORMS, "rms_norm_backward", {ROW}},
        [ADD_NORM_BACK] = {NORMS, "rms_norm_backward", {ROW, {"RESIDUAL", 1, 0}}},
        [SUM_PARTS] = {NORMS, "sum_parts", {{0}}},
        [PRODUCT] = {GEMM, "gemm", {OF_T, TILES}},
        [PRODUCT_BACK] = {GEMM, "gemm", {OF_T, TILES, {"TB", 1, 0}}},
        [PRODUCT_WEIGHTS] = {GEMM, "gemm", {OF_T, TILES, {"O", 0, "f32"}, {"TA", 1, 0}}},
        [ROPE_TABLES] = {LAYERS, "rope_tables", {{0}}},
        [ROPE] = {LAYERS, "rope", {OF_T, {"D", head, 0}}},
        [ROPE_BACK] = {LAYERS, "rope", {OF_T, {"D", head, 0}, {"BACKWARD", 1, 0}}},
        [ATTEND] = {ATTENTION, "attention", {HEADS}},
        [ATTEND_BACK_SUMS] = {ATTENTION, "attention_backward_delta", {OF_T, {"DV", head, 0}}},
        [ATTEND_BACK_Q] = {ATTENTION, "attention_backward_dq", {HEADS}},
        [ATTEND_BACK_KV] = {ATTENTION, "attention_backward_dkdv", {HEADS}},
        [GATE] = {LAYERS, "gated", {OF_T}},
        [GATE_BACK] = {LAYERS, "gated_backward", {OF_T}},
        [LOSS] = {LOSSES, "cross_entropy", {OF_T, {"BV", 256, 0}}},
        [LOSS_BACK] = {LOSSES, "cross_entropy_backward", {OF_T, {"BV", 256, 0}}},
        [SPREAD] = {LAYERS, "embedding", {{"T", 0, "f32"}, {"B", 1, 0}}},
        [SQUARES] = {OPTIMIZERS, "sum_squares", {{"U", 0, "f32"}}},
        [CONTROL] = {OPTIMIZERS, "step_control", {{0}}},
        [ADAM] = {OPTIMIZERS, "adam", {OF_T, {"U", 0, "f32"}, {"o.master", master, 0},
                                       {"o.control", 1, 0}}},
        [ACCUMULATE] = {OPTIMIZERS, "accumulate", {{"U", 0, "f32"}}},
        [ACCUMULATE_FIRST] = {OPTIMIZERS, "accumulate", {{"U", 0, "f32"}, {"FIRST", 1, 0}}},
        [SAMPLE] = {"std.kernels.sampling", "sample_top_k_top_p", {OF_T, {"BV", 256, 0}}},
    };
    return kernels_get(&k->modules, rows, KERNELS, k->kernel);
}
