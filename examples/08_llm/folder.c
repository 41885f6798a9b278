/* config.json, as transformers 4 and 5 write it, and the files beside it. */
#include "folder.h"
#include "settings.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool folder_path(Checkpoint *c, const char *folder, const char *name, char path[LONGEST_PATH])
{
    int n = snprintf(path, LONGEST_PATH, "%s/%s", folder, name);
    c->reading = n < LONGEST_PATH ? path : folder;
    return n < LONGEST_PATH || checkpoint_fail(c, "the path is too long");
}

bool folder_has(const char *folder, const char *name)
{
    char path[LONGEST_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

json_t *read_json(Checkpoint *c, const char *folder, const char *name, char path[LONGEST_PATH])
{
    json_error_t error;
    if (!folder_path(c, folder, name, path)) return NULL;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(root)) return root;
    checkpoint_fail(c, "line %d: %s", error.line, root ? "no JSON object" : error.text);
    return json_decref(root), NULL;
}

/* ---- settings ---- */

/* clang-format off */
static const Choice families[] = {
    {"llama", LLAMA}, {"mistral", MISTRAL}, {"qwen2", QWEN2}, {"qwen3", QWEN3},
    {"gemma2", GEMMA2}, {"gemma3_text", GEMMA3}, {"phi3", PHI3}, {"mixtral", MIXTRAL},
    {"qwen3_moe", QWEN3_MOE}, {"gpt_oss", GPT_OSS}, {0}};
static const Choice sights[] = {
    {"full_attention", EVERYTHING}, {"sliding_attention", A_WINDOW}, {0}};
static const Choice scalings[] = {
    {"default", UNSCALED}, {"linear", LINEAR}, {"llama3", LLAMA3}, {"yarn", YARN},
    {"longrope", LONGROPE}, {"su", LONGROPE}, {0}};
static const Choice activations[] = {
    {"silu", SILU}, {"swish", SILU}, {"gelu", GELU},
    {"gelu_python", GELU}, {"gelu_new", GELU_TANH}, {"gelu_fast", GELU_TANH},
    {"gelu_pytorch_tanh", GELU_TANH}, {"quick_gelu", GELU_QUICK}, {"relu", RELU},
    {"relu2", RELU_SQUARED}, {0}};

#define POSITIONS(families, object)                                                                \
    CHOOSE_OF(families, object ".rope_type", CHOICE, rope.kind, scalings),                         \
    CHOOSE_OF(families, object ".type", CHOICE, rope.kind, scalings),                              \
    SETTING_OF(families, object ".rope_theta", REAL, rope.base),                                   \
    SETTING_OF(families, object ".factor", REAL, rope.factor),                                     \
    SETTING_OF(families, object ".original_max_position_embeddings", SIZE, rope.original),         \
    SETTING_OF(families, object ".low_freq_factor", REAL, rope.low),                               \
    SETTING_OF(families, object ".high_freq_factor", REAL, rope.high),                             \
    SETTING_OF(families, object ".attention_factor", REAL, rope.attention),                        \
    SETTING_OF(families, object ".beta_fast", REAL, rope.fast),                                    \
    SETTING_OF(families, object ".beta_slow", REAL, rope.slow),                                    \
    SETTING_OF(families, object ".mscale", REAL, rope.mscale),                                     \
    SETTING_OF(families, object ".mscale_all_dim", REAL, rope.mscale_all),                         \
    SETTING_OF(families, object ".truncate", FLAG, rope.truncate),                                 \
    SETTING_OF(families, object ".short_factor", NUMBERS, rope.near),                              \
    SETTING_OF(families, object ".long_factor", NUMBERS, rope.far),                                \
    MUST_BE_OF(families, object ".partial_rotary_factor", "1")

static const Setting settings[] = {
    CHOOSE("model_type", family, families),
    CHOOSE_OF(OF_SIGHTS, "layer_types", EACH, sees, sights),
    SETTING_OF(OF(GEMMA3), "sliding_window_pattern", SIZE, pattern),
    SETTING_OF(OF(GEMMA3), "_sliding_window_pattern", SIZE, pattern),
    SETTING_OF(GEMMAS, "query_pre_attn_scalar", REAL, query_scalar),
    SETTING_OF(GEMMAS, "attn_logit_softcapping", CAP, attention_cap),
    SETTING_OF(GEMMAS, "final_logit_softcapping", CAP, logit_cap),
    CHOOSE_OF(GEMMAS, "hidden_activation", CHOICE, activation, activations),
    HARMLESS_OF(GEMMAS, "hidden_act"), /* transformers takes the other one */
    MUST_BE_OF(GEMMAS, "use_bidirectional_attention", "false"),
    HARMLESS_OF(GEMMAS, "cache_implementation"),
    SETTING_OF(OF_EXPERTS, "num_local_experts", SIZE, experts),
    SETTING_OF(OF_EXPERTS, "num_experts", SIZE, experts),
    SETTING_OF(OF_EXPERTS, "num_experts_per_tok", SIZE, experts_used),
    SETTING_OF(OF(GPT_OSS), "experts_per_token", SIZE, experts_used),
    SETTING_OF(OF(GPT_OSS), "initial_context_length", SIZE, rope.original),
    SETTING_OF(OF(GPT_OSS), "swiglu_limit", REAL, gate_limit),
    SETTING_OF(OF(GPT_OSS), "swiglu_alpha", REAL, gate_slope),
    MUST_BE_OF(OF(GPT_OSS), "hidden_act", "silu"), /* of which the gate is another form */
    MUST_BE_OF(OF(GPT_OSS), "attention_bias", "true"),
    MUST_BE_OF(OF(GPT_OSS), "quantization_config.quant_method", "mxfp4"),
    HARMLESS_OF(OF(GPT_OSS), "quantization_config.*"), /* tensors say it, by their names */
    SETTING_OF(OF(QWEN3_MOE), "moe_intermediate_size", SIZE, expert_hidden),
    SETTING_OF(OF(QWEN3_MOE), "norm_topk_prob", FLAG, whole_share),
    MUST_BE_OF(OF(QWEN3_MOE), "decoder_sparse_step", "1"),
    MUST_BE_OF(OF(QWEN3_MOE), "mlp_only_layers", "[]"),
    MUST_BE_OF(OF_EXPERTS, "mlp_bias", "false"),
    HARMLESS_OF(OF_EXPERTS, "output_router_logits"), /* for training */
    HARMLESS_OF(OF_EXPERTS, "router_aux_loss_coef"),
    HARMLESS_OF(OF_EXPERTS, "router_jitter_noise"),
    HARMLESS_OF(OF(PHI3), "auto_map.*"), /* the same in Python */
    SETTING_OF(OF(PHI3), "partial_rotary_factor", REAL, turned_share),
    SETTING_OF(OF(PHI3), "rope_scaling.partial_rotary_factor", REAL, turned_share),
    SETTING_OF(OF(PHI3), "rope_parameters.partial_rotary_factor", REAL, turned_share),
    MUST_BE_OF(OF(PHI3), "full_attn_mod", "1"),
    MUST_BE_OF(OF(PHI3), "interpolate_factor", "1"),
    MUST_BE_OF(OF(PHI3), "lm_head_bias", "false"),
    HARMLESS_OF(OF(PHI3), "embd_pdrop"),
    HARMLESS_OF(OF(PHI3), "resid_pdrop"),
    SETTING("num_hidden_layers", SIZE, layers),
    SETTING("hidden_size", SIZE, width),
    SETTING("intermediate_size", SIZE, hidden),
    SETTING("num_attention_heads", SIZE, heads),
    SETTING("num_key_value_heads", SIZE, kv_heads),
    SETTING("head_dim", SIZE, head_size),
    SETTING("max_position_embeddings", SIZE, context),
    SETTING("vocab_size", SIZE, vocabulary),
    SETTING("sliding_window", SIZE, window),
    MUST_BE("use_sliding_window", "false"),
    HARMLESS("max_window_layers"), /* without a window */
    CHOOSE("layer_types", sight, sights),
    SETTING("rms_norm_eps", REAL, norm_eps),
    CHOOSE("hidden_act", activation, activations),
    SETTING("attention_bias", FLAG, attention_bias),
    SETTING("mlp_bias", FLAG, mlp_bias),
    SETTING("tie_word_embeddings", FLAG, tied),
    SETTING("eos_token_id", ENDS, ends),
    SETTING("rope_theta", REAL, rope.base),
    SETTING("original_max_position_embeddings", SIZE, rope.original),
    POSITIONS(0, "rope_scaling"),
    POSITIONS(0, "rope_parameters"),
    POSITIONS(OF(GEMMA3), "rope_parameters.full_attention"),
    SETTING_OF(OF(GEMMA3), "rope_parameters.sliding_attention.rope_theta", REAL, local_base),
    MUST_BE_OF(OF(GEMMA3), "rope_parameters.sliding_attention.rope_type", "default"),
    SETTING_OF(OF(GEMMA3), "rope_local_base_freq", REAL, local_base),
    MUST_BE("partial_rotary_factor", "1"),
    MUST_BE("rope_interleaved", "false"),
    MUST_BE("is_encoder_decoder", "false"),
    MUST_BE("add_cross_attention", "false"),
    MUST_BE("tie_encoder_decoder", "false"),

    /* what the model is called, and who made it with what */
    HARMLESS("architectures"), HARMLESS("transformers_version"), HARMLESS("torch_dtype"),
    HARMLESS("dtype"), HARMLESS("_name_or_path"), HARMLESS("name_or_path"),
    HARMLESS("_commit_hash"), HARMLESS("unsloth_*"), HARMLESS("is_llama_config"),
    /* for training, and for how it is computed */
    HARMLESS("initializer_range"), HARMLESS("attention_dropout"), HARMLESS("use_cache"),
    HARMLESS("pretraining_tp"), HARMLESS("gradient_checkpointing"),
    HARMLESS("chunk_size_feed_forward"), HARMLESS("torchscript"), HARMLESS("use_bfloat16"),
    HARMLESS("tf_legacy_loss"), HARMLESS("attn_implementation"),
    HARMLESS("_attn_implementation*"), HARMLESS("max_sequence_length"),
    HARMLESS("is_decoder"),
    /* other tokens, which the tokenizer puts where they belong */
    HARMLESS("bos_token_id"), HARMLESS("pad_token_id"), HARMLESS("unk_token_id"),
    HARMLESS("sep_token_id"), HARMLESS("decoder_start_token_id"),
    HARMLESS("tokenizer_class"), HARMLESS("prefix"),
    /* other outputs, and other tasks */
    HARMLESS("output_attentions"), HARMLESS("output_hidden_states"), HARMLESS("return_dict*"),
    HARMLESS("output_scores"), HARMLESS("id2label.*"), HARMLESS("label2id.*"),
    HARMLESS("num_labels"), HARMLESS("problem_type"), HARMLESS("finetuning_task"),
    HARMLESS("task_specific_params.*"), HARMLESS("remove_invalid_values"),
    /* how to choose tokens: the options say that here */
    HARMLESS("max_length"), HARMLESS("min_length"), HARMLESS("do_sample"),
    HARMLESS("early_stopping"), HARMLESS("num_beams"), HARMLESS("num_beam_groups"),
    HARMLESS("diversity_penalty"), HARMLESS("temperature"), HARMLESS("top_k"),
    HARMLESS("top_p"), HARMLESS("typical_p"), HARMLESS("repetition_penalty"),
    HARMLESS("length_penalty"), HARMLESS("no_repeat_ngram_size"),
    HARMLESS("encoder_no_repeat_ngram_size"), HARMLESS("num_return_sequences"),
    NO_MORE,
};
/* clang-format on */
_Static_assert(sizeof settings / sizeof *settings <= MOST_SETTINGS, "room for all rows");

static Value value_of(const json_t *j);

static Value element(const void *list, size_t i)
{
    return value_of(json_array_get(list, i));
}

static Value value_of(const json_t *j)
{
    switch (json_typeof(j)) {
    case JSON_TRUE: return (Value){.kind = TRUTH, .number = 1};
    case JSON_FALSE: return (Value){.kind = TRUTH};
    case JSON_INTEGER:
    case JSON_REAL: return (Value){.kind = NUMBER, .number = json_number_value(j)};
    case JSON_STRING:
        return (Value){.kind = TEXT, .text = json_string_value(j),
                       .length = json_string_length(j)};
    case JSON_ARRAY:
    case JSON_OBJECT: /* only in a list */
        return (Value){.kind = LIST, .list = j, .count = json_array_size(j), .element = element};
    case JSON_NULL: break;
    }
    return (Value){.kind = NOTHING};
}

/* All settings of an object; those of an object in it are called OBJECT.NAME. */
static bool take_all(Settings *s, const json_t *object, const char *prefix)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        char name[100];
        snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (!(json_is_object(value) ? take_all(s, value, name)
                                    : setting_take(s, name, value_of(value))))
            return false;
    }
    return true;
}

static bool read_config(Checkpoint *c, const char *folder)
{
    char path[LONGEST_PATH];
    json_t *root = read_json(c, folder, "config.json", path);
    if (!root) return false;
    Settings s = {.c = c, .table = settings};
    const json_t *family = json_object_get(root, "model_type");
    c->config.norm_eps = 1e-6;
    bool good = family ? setting_take(&s, "model_type", value_of(family)) &&
                             take_all(&s, root, "") /* others have settings of their own */
                       : checkpoint_fail(c, "no 'model_type'");
    json_decref(root);
    return good;
}

/* generation_config.json, where there is one, may know more tokens that end a text. */
static bool read_ends(Checkpoint *c, const char *folder)
{
    char path[LONGEST_PATH];
    if (!folder_has(folder, "generation_config.json")) return true;
    json_t *root = read_json(c, folder, "generation_config.json", path);
    Settings s = {.c = c, .table = settings};
    const json_t *ends = json_object_get(root, "eos_token_id");
    bool good = root && (!ends || setting_take(&s, "eos_token_id", value_of(ends)));
    json_decref(root);
    return good;
}

bool read_folder(Checkpoint *c, const char *folder)
{
    if (!(read_config(c, folder) && read_ends(c, folder) && read_tokenizer(c, folder) &&
          read_safetensors(c, folder)))
        return false;
    c->reading = folder; /* the names of files are gone */
    return !(architecture[c->config.family].features & SPLIT_EXPERTS) || split_experts(c);
}
