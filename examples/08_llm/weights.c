/* The tensors of a model by their roles: what each kind of file calls them, their shapes, what a
 * rank has of them. */
#include "weights.h"
#include "../shared/example.h"
#include "team.h"

/* ---- roles ---- */

enum { ONE, WIDTH, QUERIES, KEYS, HIDDEN, TOKENS, OF_A_HEAD, OF_EACH_EXPERT, OF_HEADS, EXTENTS };

enum { UNBIASED, ATTENTION, MLP };

/* Names of a layer's tensors have "model.layers.I." or "blk.I." before them. What a naming leaves
 * out is called as in Llama's folders, or as in GGUF. Matrices of one name are rows of one tensor,
 * in the order of the roles. A * stands for the number of an expert. */
static const struct {
    const char *name[NAMINGS];
    int rows, cols; /* of EXTENTS */
    int bias;
    unsigned needs; /* features of families that have it; 0: all have */
} roles[ROLES] = {
    [EMBEDDING] = {{"model.embed_tokens", [AS_GGUF] = "token_embd"}, TOKENS, WIDTH, 0, 0},
    [LAST_NORM] = {{"model.norm", [AS_GGUF] = "output_norm"}, ONE, WIDTH, 0, 0},
    [HEAD] = {{"lm_head", [AS_GGUF] = "output"}, TOKENS, WIDTH, 0, 0},
    [NORM] = {{"input_layernorm", [AS_GGUF] = "attn_norm"}, ONE, WIDTH, 0, 0},
    [QUERY] = {{"self_attn.q_proj", [AS_PHI] = "self_attn.qkv_proj", [AS_GGUF] = "attn_q",
                [AS_PHI_IN_GGUF] = "attn_qkv"}, QUERIES, WIDTH, ATTENTION, 0},
    [KEY] = {{"self_attn.k_proj", [AS_PHI] = "self_attn.qkv_proj", [AS_GGUF] = "attn_k",
              [AS_PHI_IN_GGUF] = "attn_qkv"}, KEYS, WIDTH, ATTENTION, 0},
    [VALUE] = {{"self_attn.v_proj", [AS_PHI] = "self_attn.qkv_proj", [AS_GGUF] = "attn_v",
                [AS_PHI_IN_GGUF] = "attn_qkv"}, KEYS, WIDTH, ATTENTION, 0},
    [QUERY_NORM] = {{"self_attn.q_norm", [AS_GGUF] = "attn_q_norm"}, ONE, OF_A_HEAD, 0, HEAD_NORMS},
    [KEY_NORM] = {{"self_attn.k_norm", [AS_GGUF] = "attn_k_norm"}, ONE, OF_A_HEAD, 0, HEAD_NORMS},
    [SINKS] = {{"self_attn.sinks", [AS_GGUF] = "attn_sinks"}, ONE, OF_HEADS, 0, HEAD_SINKS},
    [OUT] = {{"self_attn.o_proj", [AS_GGUF] = "attn_output"}, WIDTH, QUERIES, ATTENTION, 0},
    [OUT_NORM] = {{"post_attention_layernorm", [AS_GGUF] = "post_attention_norm"}, ONE, WIDTH, 0,
                  NORMS_AFTER},
    [HIDDEN_NORM] = {{"post_attention_layernorm", [AS_GEMMA] = "pre_feedforward_layernorm",
                      [AS_GGUF] = "ffn_norm", [AS_OSS_IN_GGUF] = "post_attention_norm"},
                     ONE, WIDTH, 0, 0},
    [ROUTER] = {{"mlp.gate", [AS_MIXTRAL] = "block_sparse_moe.gate", [AS_GPT_OSS] = "mlp.router",
                 [AS_GGUF] = "ffn_gate_inp"}, OF_EACH_EXPERT, WIDTH, MLP, EXPERTS},
    [GATE] = {{"mlp.gate_proj", [AS_PHI] = "mlp.gate_up_proj", [AS_GGUF] = "ffn_gate",
               [AS_PHI_IN_GGUF] = "ffn_up", [AS_MIXTRAL] = "block_sparse_moe.experts.*.w1",
               [AS_QWEN_MOE] = "mlp.experts.*.gate_proj", [AS_GPT_OSS] = "mlp.experts.gate_proj",
               [AS_MOE_IN_GGUF] = "ffn_gate_exps", [AS_OSS_IN_GGUF] = "ffn_gate_exps"},
              HIDDEN, WIDTH, MLP, 0},
    [UP] = {{"mlp.up_proj", [AS_PHI] = "mlp.gate_up_proj", [AS_GGUF] = "ffn_up",
             [AS_MIXTRAL] = "block_sparse_moe.experts.*.w3",
             [AS_QWEN_MOE] = "mlp.experts.*.up_proj", [AS_GPT_OSS] = "mlp.experts.up_proj",
             [AS_MOE_IN_GGUF] = "ffn_up_exps", [AS_OSS_IN_GGUF] = "ffn_up_exps"},
            HIDDEN, WIDTH, MLP, 0},
    [DOWN] = {{"mlp.down_proj", [AS_GGUF] = "ffn_down",
               [AS_MIXTRAL] = "block_sparse_moe.experts.*.w2",
               [AS_QWEN_MOE] = "mlp.experts.*.down_proj", [AS_GPT_OSS] = "mlp.experts.down_proj",
               [AS_MOE_IN_GGUF] = "ffn_down_exps", [AS_OSS_IN_GGUF] = "ffn_down_exps"},
              WIDTH, HIDDEN, MLP, 0},
    [DOWN_NORM] = {{"post_feedforward_layernorm", [AS_GGUF] = "post_ffw_norm"}, ONE, WIDTH, 0,
                   NORMS_AFTER},
};

bool role_is_vector(Role role) { return roles[role].rows == ONE; }

Matrix *weights_of(const Weights *w, Role role, int layer)
{
    return &w->matrix[role < LAYERED ? (int)role : (int)role + layer * (ROLES - LAYERED)];
}

bool weights_have(const Weights *w, Role role)
{
    return !(roles[role].needs & ~w->config.features);
}

/* ---- loading ---- */

typedef struct Loader {
    Weights *w;
    Checkpoint *c;
    char *error;
    size_t size;
    int extent[EXTENTS]; /* of the whole model */
    Part part[EXTENTS];  /* this rank's */
} Loader;

static bool load_fail(Loader *l, const char *name, const char *text)
{
    snprintf(l->error, l->size, "%s%s%s", name, *name ? ": " : "", text);
    return false;
}

static bool upload(Loader *l, const char *name, const void *data, uint64_t bytes, tile_buffer **out)
{
    return !(tile_buffer_alloc(NULL, bytes, out) ||
             tile_buffer_upload(*out, 0, data, bytes, NULL)) ||
           load_fail(l, name, tile_last_error());
}

static bool has_shape(const Tensor *t, int rows, int cols)
{
    return rows == 1 && t->rank == 1 ? t->shape[0] == cols
                                     : t->rank == 2 && t->shape[0] == rows && t->shape[1] == cols;
}

static bool shape_fail(Loader *l, const char *name, int rows, int cols)
{
    char text[120];
    snprintf(text, sizeof text, "has not the shape [%d, %d] that the sizes of the model imply",
             rows, cols);
    return load_fail(l, name, text);
}

/* Matrices of a tensor, or one of a tensor for each expert: the same rows and columns of all. */
typedef struct Place {
    const Tensor *t;
    int matrix, rows; /* the matrix in the tensor, of so many rows */
    Part part, cols;
} Place;

/* Puts this rank's rows of a matrix, or its columns of them, in whole blocks, behind `at` bytes. */
static bool put_part(Loader *l, Place p, tile_buffer *out, uint64_t at)
{
    const FormatInfo *f = &format_info[p.t->format];
    size_t line = (size_t)p.t->shape[p.t->rank - 1] / (size_t)f->elements * (size_t)f->bytes;
    size_t begin = (size_t)(p.cols.first / f->elements * f->bytes);
    size_t bytes = (size_t)(p.cols.count / f->elements * f->bytes), n = (size_t)p.part.count;
    const unsigned char *from =
        p.t->data + ((size_t)p.matrix * (size_t)p.rows + (size_t)p.part.first) * line;
    if (bytes == line)
        return !tile_buffer_upload(out, at, from, n * line, NULL) ||
               load_fail(l, p.t->name, tile_last_error());
    if (p.cols.first % f->elements || p.cols.count % f->elements)
        return load_fail(l, p.t->name, "so many ranks would cut blocks of its rows");
    unsigned char *part = malloc(n * bytes + 1);
    if (!part) return load_fail(l, p.t->name, "no memory");
    for (size_t i = 0; i < n; i++) memcpy(part + i * bytes, from + i * line + begin, bytes);
    bool good = !tile_buffer_upload(out, at, part, n * bytes, NULL) ||
                load_fail(l, p.t->name, tile_last_error());
    return free(part), good;
}

/* The scales of an I8 matrix's rows, NAME_scale [rows, 1], in f32. */
static bool put_scale(Loader *l, Place p, tile_buffer *out, uint64_t at)
{
    char scale[180];
    snprintf(scale, sizeof scale, "%s_scale", p.t->name);
    const Tensor *t = checkpoint_find(l->c, scale);
    if (!t || t->format != F32 || !has_shape(t, p.rows, 1))
        return load_fail(l, scale, "of I8 weights there have to be scales of their rows, in F32");
    return !tile_buffer_upload(out, at, t->data + 4 * (size_t)p.part.first,
                               4 * (uint64_t)p.part.count, NULL) ||
           load_fail(l, scale, tile_last_error());
}

static float float_of(Format format, const unsigned char *bytes)
{
    uint32_t half = bytes[0] | (uint32_t)bytes[1] << 8, bits = half << 16;
    float v;
    if (format == F32) return memcpy(&v, bytes, sizeof v), v;
    if (format == F16) { /* exponents 15 and 127 mean 1; 31: infinity or NaN */
        bits = (half & 0x7FFF) << 13;
        memcpy(&v, &bits, sizeof v);
        v *= 0x1p112f;
        memcpy(&bits, &v, sizeof v);
        bits |= (half & 0x8000) << 16 | ((half & 0x7C00) == 0x7C00 ? 0x7F800000 : 0);
    }
    return memcpy(&v, &bits, sizeof v), v;
}

/* A norm's weights or a bias become f32 here, and `more` is added: they are few. */
static bool load_vector(Loader *l, const Tensor *t, int count, Part part, float more,
                        tile_buffer **out)
{
    if (!has_shape(t, 1, count)) return shape_fail(l, t->name, 1, count);
    if (t->format > BF16) return load_fail(l, t->name, "a norm's weights or a bias are no floats");
    float *v = malloc((size_t)part.count * sizeof *v);
    if (!v) return load_fail(l, t->name, "no memory");
    for (int i = 0; i < part.count; i++)
        v[i] = more +
               float_of(t->format, t->data + (part.first + i) * format_info[t->format].bytes);
    bool good = upload(l, t->name, v, (uint64_t)part.count * sizeof *v, out);
    return free(v), good;
}

/* Ranks that have parts of the columns have addends of the results: what is not from weights, a
 * bias and what went past the layer, is in the first rank's. */
static bool counts_once(int role)
{
    return (role != OUT && role != DOWN) || team_rank() == 0;
}

static const char *stem_of(const Loader *l, Role role)
{
    bool gguf = l->c->gguf, experts = l->w->config.features & EXPERTS;
    Naming naming = architecture[l->w->config.family].naming[gguf];
    if (naming == AS_GGUF && experts) naming = AS_MOE_IN_GGUF;
    const char *own = roles[role].name[naming];
    return own ? own : roles[role].name[gguf ? AS_GGUF : AS_LLAMA];
}

/* The name of a tensor of a role, that of an expert where each has one, or of its bias. */
static const char *expert_name(const Loader *l, Role role, int layer, int expert, const char *what,
                               char name[160])
{
    const char *stem = stem_of(l, role), *star = strchr(stem, '*');
    char before[32] = "", number[16] = "";
    if (role >= LAYERED)
        snprintf(before, sizeof before, l->c->gguf ? "blk.%d." : "model.layers.%d.", layer);
    if (star) snprintf(number, sizeof number, "%d", expert);
    snprintf(name, 160, "%s%.*s%s%s.%s", before, star ? (int)(star - stem) : 0, stem, number,
             star ? star + 1 : stem, what);
    return name;
}

static const char *name_of(const Loader *l, Role role, int layer, const char *what, char name[160])
{
    return expert_name(l, role, layer, 0, what, name);
}

/* The rows of the role's tensor, in which this rank's are *part. */
static int rows_of(const Loader *l, Role role, Part *part)
{
    int rows = 0;
    *part = l->part[roles[role].rows];
    for (Role r = LAYERED; r < ROLES; r++) {
        bool shared = r != role && !role_is_vector(r) && weights_have(l->w, r) &&
                      !strcmp(stem_of(l, r), stem_of(l, role));
        if (r == role || shared) rows += l->extent[roles[r].rows];
        if (shared && r < role) part->first += l->extent[roles[r].rows];
    }
    return role < LAYERED ? l->extent[roles[role].rows] : rows;
}

/* GGUF has a bias where there is one. transformers' settings say where biases are; the one behind
 * attention is often left out. */
static bool load_bias(Loader *l, Role role, int layer, Matrix *w)
{
    const Config *g = &l->w->config;
    bool always = architecture[g->family].features & QKV_BIASES;
    int said = roles[role].bias == ATTENTION ? g->attention_bias
               : roles[role].bias == MLP     ? g->mlp_bias : 0;
    if (roles[role].bias == UNBIASED || !(said || l->c->gguf)) return true;
    char name[160];
    const Tensor *t = checkpoint_find(l->c, name_of(l, role, layer, "bias", name));
    if (!t && said && role != OUT && always)
        return load_fail(l, name, "is not in the file, but 'model_type' is qwen2");
    if (!t && said && role != OUT)
        return load_fail(l, name, roles[role].bias == MLP
                                      ? "is not in the file, but 'mlp_bias' is true"
                                      : "is not in the file, but 'attention_bias' is true");
    if (!t || !counts_once(role)) return true;
    Part part;
    int rows = rows_of(l, role, &part);
    return load_vector(l, t, rows, part, 0, &w->bias);
}

/* Those of all experts of a layer: they are of few bits, their biases are not. */
static bool load_expert_bias(Loader *l, Role role, int layer, Matrix *w)
{
    char name[160];
    if (!(l->w->config.features & ALL_BIASES)) return true;
    const Tensor *t = checkpoint_find(l->c, name_of(l, role, layer, "bias", name));
    Part part;
    int rows = rows_of(l, role, &part);
    if (!t) return load_fail(l, name, "is not in the file");
    if (t->rank != 2 || t->shape[0] != w->experts || t->shape[1] != rows)
        return shape_fail(l, name, w->experts, rows);
    if (t->format > BF16) return load_fail(l, name, "a bias is no floats");
    if (!counts_once(role)) return true;
    size_t count = (size_t)w->experts * (size_t)part.count, at = 0;
    float *v = malloc(count * sizeof *v);
    if (!v) return load_fail(l, name, "no memory");
    for (int e = 0; e < w->experts; e++)
        for (int i = 0; i < part.count; i++)
            v[at++] = float_of(t->format, t->data + ((int64_t)e * rows + part.first + i) *
                                                        format_info[t->format].bytes);
    bool good = upload(l, name, v, count * sizeof *v, &w->bias);
    return free(v), good;
}

static bool same_tensor(const Tensor *a, const Tensor *b)
{
    return a->format == b->format && a->bytes == b->bytes && !memcmp(a->data, b->data, a->bytes);
}

/* The head may be the embedding: if settings say so, or, in GGUF, if there is none. */
static bool load_tied(Loader *l, const Tensor *head, bool *tied)
{
    char name[160];
    const Tensor *e = checkpoint_find(l->c, name_of(l, EMBEDDING, 0, "weight", name));
    *tied = !head && (l->w->config.tied || l->c->gguf);
    if (!head && !*tied)
        return load_fail(l, "lm_head.weight",
                         "is not in the file, but 'tie_word_embeddings' is not true");
    if (head && l->w->config.tied && !same_tensor(head, e))
        return load_fail(l, "lm_head.weight",
                         "is not the embedding, but 'tie_word_embeddings' is true");
    if (*tied) *weights_of(l->w, HEAD, 0) = *weights_of(l->w, EMBEDDING, 0);
    return true;
}

static bool load_norm(Loader *l, Role role, const Tensor *t, Matrix *w)
{
    int count = l->extent[roles[role].cols];
    bool less = !l->c->gguf && architecture[l->w->config.family].features & NORMS_LESS_ONE;
    Part part = l->part[roles[role].cols];
    *w = (Matrix){.rows = 1, .cols = part.count};
    return load_vector(l, t, count, part, less, &w->data);
}

/* Where the matrix of an expert is: in a tensor of its own, or in one of all. */
static bool find_matrix(Loader *l, Role role, int layer, int expert, Place *p)
{
    char name[160];
    int experts = weights_of(l->w, role, layer)->experts, cols = l->extent[roles[role].cols];
    bool stacked = experts && !strchr(stem_of(l, role), '*');
    p->t = checkpoint_find(l->c, expert_name(l, role, layer, expert, "weight", name));
    p->matrix = stacked ? expert : 0;
    p->rows = rows_of(l, role, &p->part);
    p->cols = l->part[roles[role].cols];
    if (!p->t) return load_fail(l, name, "is not in the file");
    bool good = stacked ? p->t->rank == 3 && p->t->shape[0] == experts &&
                              p->t->shape[1] == p->rows && p->t->shape[2] == cols
                        : has_shape(p->t, p->rows, cols);
    return good || shape_fail(l, name, p->rows, cols);
}

/* All matrices of a role in a layer. */
static bool load_matrices(Loader *l, Role role, int layer, Matrix *w)
{
    Place p;
    int count = w->experts ? w->experts : 1;
    if (!find_matrix(l, role, layer, 0, &p)) return false;
    if (p.t->format == RAW) return load_fail(l, p.t->name, "is of U8");
    w->format = p.t->format, w->rows = p.part.count, w->cols = p.cols.count;
    const FormatInfo *f = &format_info[w->format];
    uint64_t bytes = (uint64_t)w->rows * (uint64_t)(w->cols / f->elements * f->bytes);
    if (tile_buffer_alloc(NULL, bytes * (uint64_t)count, &w->data) ||
        (w->format == I8 && tile_buffer_alloc(NULL, 4 * (uint64_t)w->rows * (uint64_t)count,
                                              &w->scale)))
        return load_fail(l, p.t->name, tile_last_error());
    for (int i = 0; i < count; i++) {
        if (!find_matrix(l, role, layer, i, &p)) return false;
        if (p.t->format != w->format)
            return load_fail(l, p.t->name, "is of another type than the other experts");
        if (!put_part(l, p, w->data, bytes * (uint64_t)i)) return false;
        if (w->scale && !put_scale(l, p, w->scale, 4 * (uint64_t)w->rows * (uint64_t)i))
            return false;
    }
    int used = w->experts ? l->w->config.experts_used : 1;
    if (role != EMBEDDING) l->w->bytes += bytes * (uint64_t)used;
    return true;
}

static bool load(Loader *l, Role role, int layer)
{
    char name[160];
    const Tensor *t = checkpoint_find(l->c, name_of(l, role, layer, "weight", name));
    Matrix *w = weights_of(l->w, role, layer);
    bool tied = false, after = l->w->config.features & NORMS_AFTER;
    if (role == HEAD && !load_tied(l, t, &tied)) return false;
    if (tied) return true;
    if (!t) return load_fail(l, name, "is not in the file");
    if (role_is_vector(role)) return load_norm(l, role, t, w);
    bool hidden = role == GATE || role == UP || role == DOWN;
    *w = (Matrix){.add = (role == OUT || role == DOWN) && !after && counts_once(role),
                  .experts = hidden ? l->w->config.experts : 0};
    return load_matrices(l, role, layer, w) &&
           (w->experts ? load_expert_bias(l, role, layer, w) : load_bias(l, role, layer, w));
}

/* The blocks of the second product's rows: so many columns of the hidden layer stay together. */
static int hidden_unit(Loader *l)
{
    char name[160];
    int unit = 1;
    for (int layer = 0; layer < l->w->config.layers; layer++) {
        const Tensor *t = checkpoint_find(l->c, name_of(l, DOWN, layer, "weight", name));
        if (t && format_info[t->format].elements > unit) unit = format_info[t->format].elements;
    }
    return l->w->config.hidden % unit ? 1 : unit;
}

/* Heads of keys, with their queries, and columns of the hidden layers go to one rank each. */
static bool divide(Loader *l)
{
    Config *g = &l->w->config;
    int group = g->heads / g->kv_heads, size = g->head_size, unit = hidden_unit(l);
    Part keys = team_part(g->kv_heads), hidden = team_part(g->hidden / unit);
    const int extent[EXTENTS] = {1, g->width, g->heads * size, g->kv_heads * size, g->hidden,
                                 g->vocabulary, size, g->experts, g->heads};
    memcpy(l->extent, extent, sizeof extent);
    for (int i = 0; i < EXTENTS; i++) l->part[i] = (Part){0, extent[i]};
    if (team_size() > g->kv_heads || team_size() > g->hidden / unit)
        return load_fail(l, "", "more ranks than heads of keys, or than blocks of hidden columns");
    l->part[QUERIES] = (Part){keys.first * group * size, keys.count * group * size};
    l->part[OF_HEADS] = (Part){keys.first * group, keys.count * group};
    l->part[KEYS] = (Part){keys.first * size, keys.count * size};
    l->part[HIDDEN] = (Part){hidden.first * unit, hidden.count * unit};
    g->heads = keys.count * group, g->kv_heads = keys.count, g->hidden = hidden.count * unit;
    return true;
}

static bool load_all(Loader *l)
{
    Weights *w = l->w;
    const Matrix *head, *embedding;
    w->matrix = calloc((size_t)(LAYERED + w->config.layers * (ROLES - LAYERED)), sizeof *w->matrix);
    if (!w->matrix) return load_fail(l, "", "no memory");
    if (!divide(l)) return false;
    for (int role = 0; role < LAYERED; role++)
        if (!load(l, (Role)role, 0)) return false;
    head = weights_of(w, HEAD, 0), embedding = weights_of(w, EMBEDDING, 0);
    if (head->data == embedding->data) w->bytes += tile_buffer_bytes(head->data);
    for (int layer = 0; layer < w->config.layers; layer++)
        for (int role = LAYERED; role < ROLES; role++)
            if (weights_have(w, (Role)role) && !load(l, (Role)role, layer)) return false;
    const char *unused = checkpoint_unused(l->c);
    return !unused || load_fail(l, unused, "is in the file, but no part of this model");
}

bool weights_load(Weights *w, Checkpoint *checkpoint, char *error, size_t size)
{
    Loader l = {.w = w, .c = checkpoint, .error = error, .size = size};
    *w = (Weights){.config = checkpoint->config};
    return load_all(&l);
}

void weights_free(Weights *w)
{
    int matrices = w->matrix ? LAYERED + w->config.layers * (ROLES - LAYERED) : 0;
    for (int i = 0; i < matrices; i++) {
        if (i == HEAD && w->matrix[HEAD].data == w->matrix[EMBEDDING].data) continue;
        tile_buffer_free(w->matrix[i].data), tile_buffer_free(w->matrix[i].scale);
        tile_buffer_free(w->matrix[i].bias);
    }
    free(w->matrix);
}
