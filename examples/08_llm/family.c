#include "family.h"

/* clang-format off */
const Architecture architecture[FAMILIES] = {
    [LLAMA] = {
        .name = {"llama", "llama"}, .features = NEIGHBOURS,
        .naming = {AS_LLAMA, AS_GGUF}, .activation = SILU, .base = {1e4, 1e4}, .whole_share = {true, true}},
    [MISTRAL] = { /* GGUF has llama */
        .name = {"mistral", 0}, .naming = {AS_LLAMA, AS_GGUF}, .activation = SILU, .window = {4096, 0}, .base = {1e4, 1e4}},
    [QWEN2] = {
        .name = {"qwen2", "qwen2"}, .features = QKV_BIASES | UNUSED_WINDOW, .naming = {AS_LLAMA, AS_GGUF}, .activation = SILU,
        .base = {1e4, 1e4}},
    [QWEN3] = {
        .name = {"qwen3", "qwen3"}, .features = HEAD_NORMS | UNUSED_WINDOW, .naming = {AS_LLAMA, AS_GGUF}, .activation = SILU,
        .head_size = 128, .base = {1e4, 1e4}},
    [GEMMA2] = {
        .name = {"gemma2", "gemma2"}, .features = NORMS_AFTER | NORMS_LESS_ONE | WIDE_EMBEDDING,
        .naming = {AS_GEMMA, AS_GGUF}, .activation = GELU_TANH, .tied = true, .head_size = 256,
        .window = {4096, 4096}, .pattern = 2, .wide_layers = 46, .base = {1e4, 1e4},
        .query_scalar = 256, .attention_cap = 50, .logit_cap = 30},
    [GEMMA3] = {
        .name = {"gemma3_text", "gemma3"},
        .features = HEAD_NORMS | NORMS_AFTER | NORMS_LESS_ONE | WIDE_EMBEDDING,
        .naming = {AS_GEMMA, AS_GGUF}, .activation = GELU_TANH, .tied = true, .head_size = 256,
        .window = {4096, 0}, .pattern = 6, .wide_layers = 62, .base = {1e6, 1e4},
        .local_base = 1e4, .query_scalar = 256},
    [PHI3] = {
        .name = {"phi3", "phi3"}, .features = EATS_BLANKS | LONG_FACTORS, .naming = {AS_PHI, AS_PHI_IN_GGUF},
        .activation = SILU, .base = {1e4, 1e4}},
    [MIXTRAL] = { /* GGUF has llama, with experts */
        .name = {"mixtral", 0}, .features = EXPERTS, .naming = {AS_MIXTRAL, AS_GGUF},
        .activation = SILU, .base = {1e6, 1e4}, .whole_share = {true, true}},
    [QWEN3_MOE] = {
        .name = {"qwen3_moe", "qwen3moe"}, .features = EXPERTS | HEAD_NORMS | UNUSED_WINDOW,
        .naming = {AS_QWEN_MOE, AS_GGUF}, .activation = SILU, .base = {1e4, 1e4},
        .whole_share = {false, true}},
    [GPT_OSS] = {
        .name = {"gpt_oss", "gpt-oss"},
        .features = EXPERTS | ALL_BIASES | HEAD_SINKS | CLAMPED | SPLIT_EXPERTS,
        .naming = {AS_GPT_OSS, AS_OSS_IN_GGUF}, .activation = SILU, .head_size = 64,
        .window = {128, 0}, .pattern = 2, .base = {150000, 1e4}, .whole_share = {true, true}},
};
/* clang-format on */
