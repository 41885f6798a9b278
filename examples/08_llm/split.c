/* gpt-oss's folders have the experts of a layer in two tensors: gate_up_proj, whose rows are those
 * of the gate and of what it lets through by turns, and down_proj. They are numbers, [experts,
 * columns, rows], or blocks of 32 of mxfp4: NAME_blocks [experts, rows, blocks, 16], two
 * neighbours in a byte, and NAME_scales [experts, rows, blocks]. Here they become what other
 * families have, [experts, rows, columns], and ggml's blocks. */
#include "checkpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OF_BLOCK = 32, HALF = 16 };

/* Some rows of each expert: every `step`th from `first` on. */
typedef struct Pick {
    const char *from, *to; /* names behind those of the layer */
    int first, step;
} Pick;
static const Pick picks[] = {{"gate_up_proj", "gate_proj", 0, 2},
                             {"gate_up_proj", "up_proj", 1, 2},
                             {"down_proj", "down_proj", 0, 1}};

/* A layer's tensor, as more_tensors may move what checkpoint_find gives. */
static bool find(Checkpoint *c, int layer, const char *name, const char *end, Tensor *out)
{
    char text[100];
    snprintf(text, sizeof text, "model.layers.%d.%s%s", layer, name, end);
    const Tensor *t = checkpoint_find(c, text);
    if (t) *out = *t;
    return t;
}

/* A tensor of the layer, of bytes that are to be filled in. */
static unsigned char *add(Checkpoint *c, int layer, const char *name, const char *end, Tensor like)
{
    char text[100];
    int length = snprintf(text, sizeof text, "model.layers.%d.%s%s", layer, name, end);
    Tensor *t = more_tensors(c, 1);
    if (!t) return NULL;
    *t = like;
    t->used = false;
    if (!tensor_bytes(t, &t->bytes) || !(t->name = malloc((size_t)length + 1)))
        return checkpoint_fail(c, "no memory"), NULL;
    memcpy(t->name, text, (size_t)length + 1);
    char *bytes = keep_bytes(c, t->bytes);
    t->data = (const unsigned char *)bytes;
    if (!bytes) return free(t->name), NULL;
    c->ntensors++;
    return (unsigned char *)bytes;
}

static bool wrong_shape(Checkpoint *c, int layer, const char *name)
{
    return checkpoint_fail(c, "model.layers.%d.mlp.experts.%s: wrong shape or type", layer, name);
}

/* Neighbours share a byte there, halves of the block here. */
static void put_block(unsigned char *out, unsigned char scale, const unsigned char *in)
{
    unsigned char element[OF_BLOCK];
    for (int i = 0; i < HALF; i++) element[2 * i] = in[i] & 15, element[2 * i + 1] = in[i] >> 4;
    *out++ = scale;
    for (int i = 0; i < HALF; i++) out[i] = (unsigned char)(element[i] | element[HALF + i] << 4);
}

static bool pick_blocks(Checkpoint *c, int layer, const Pick *p, Tensor blocks, Tensor scales)
{
    const int64_t *e = blocks.shape;
    if (blocks.format != RAW || scales.format != RAW || blocks.rank != 4 || scales.rank != 3 ||
        e[3] != HALF || memcmp(e, scales.shape, 3 * sizeof *e) || e[1] % p->step)
        return wrong_shape(c, layer, p->from);
    const int64_t rows = e[1] / p->step;
    char name[60];
    snprintf(name, sizeof name, "mlp.experts.%s", p->to);
    unsigned char *out = add(c, layer, name, ".weight",
                             (Tensor){.format = MXFP4, .rank = 3,
                                      .shape = {e[0], rows, e[2] * OF_BLOCK}});
    for (int64_t i = 0; out && i < e[0] * rows; i++)
        for (int64_t l = 0; l < e[2]; l++, out += HALF + 1) {
            const int64_t at = (i * p->step + p->first) * e[2] + l;
            put_block(out, scales.data[at], blocks.data + at * HALF);
        }
    return out;
}

static bool pick_numbers(Checkpoint *c, int layer, const Pick *p, Tensor t)
{
    const int64_t *e = t.shape, size = format_info[t.format].bytes;
    if (t.format > BF16 || t.rank != 3 || e[2] % p->step) return wrong_shape(c, layer, p->from);
    const int64_t rows = e[2] / p->step;
    char name[60];
    snprintf(name, sizeof name, "mlp.experts.%s", p->to);
    unsigned char *out = add(c, layer, name, ".weight",
                             (Tensor){.format = t.format, .rank = 3, .shape = {e[0], rows, e[1]}});
    for (int64_t i = 0; out && i < e[0] * rows; i++)
        for (int64_t k = 0; k < e[1]; k++, out += size)
            memcpy(out, t.data + (((i / rows) * e[1] + k) * e[2] + i % rows * p->step + p->first) *
                            size, (size_t)size);
    return out;
}

static bool pick_bias(Checkpoint *c, int layer, const Pick *p)
{
    Tensor t;
    char from[60], name[60];
    snprintf(from, sizeof from, "mlp.experts.%s", p->from);
    snprintf(name, sizeof name, "mlp.experts.%s", p->to);
    if (!find(c, layer, from, "_bias", &t)) return true; /* missed later, by its name */
    const int64_t *e = t.shape, size = format_info[t.format].bytes;
    if (t.format > BF16 || t.rank != 2 || e[1] % p->step) return wrong_shape(c, layer, p->from);
    const int64_t rows = e[1] / p->step;
    unsigned char *out = add(c, layer, name, ".bias",
                             (Tensor){.format = t.format, .rank = 2, .shape = {e[0], rows}});
    for (int64_t i = 0; out && i < e[0] * rows; i++, out += size)
        memcpy(out, t.data + (i * p->step + p->first) * size, (size_t)size);
    return out;
}

static bool pick(Checkpoint *c, int layer, const Pick *p)
{
    Tensor t, scales;
    char from[60];
    snprintf(from, sizeof from, "mlp.experts.%s", p->from);
    bool blocks = find(c, layer, from, "_blocks", &t) && find(c, layer, from, "_scales", &scales);
    if (!blocks && !find(c, layer, from, "", &t))
        return checkpoint_fail(c, "model.layers.%d.%s: neither numbers nor blocks and scales are "
                               "in the file", layer, from);
    return (blocks ? pick_blocks(c, layer, p, t, scales) : pick_numbers(c, layer, p, t)) &&
           pick_bias(c, layer, p);
}

/* It has no ".weight" behind its name. */
static bool pick_sinks(Checkpoint *c, int layer)
{
    Tensor t;
    unsigned char *out = NULL;
    if (!find(c, layer, "self_attn.sinks", "", &t)) return true;
    if ((out = add(c, layer, "self_attn.sinks", ".weight", t))) memcpy(out, t.data, t.bytes);
    return out;
}

bool split_experts(Checkpoint *c)
{
    for (int layer = 0; layer < c->config.layers && layer < MOST_LAYERS; layer++) {
        for (size_t i = 0; i < sizeof picks / sizeof *picks; i++)
            if (!pick(c, layer, &picks[i])) return false;
        if (!pick_sinks(c, layer)) return false;
    }
    return true;
}
