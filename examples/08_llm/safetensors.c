/* model.safetensors: the length of a header in 8 bytes, the header in JSON, {"NAME": {"dtype":
 * "F32", "shape": [...], "data_offsets": [from, to]}, ...}, the numbers. Or several such files, and
 * model.safetensors.index.json, {"weight_map": {"NAME": "FILE", ...}}. */
#include "folder.h"
#include <stdlib.h>
#include <string.h>

static uint64_t little(const char *bytes, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
    return v;
}

/* ---- tensors ---- */

static bool read_shape(Tensor *t, const json_t *shape)
{
    if (!json_is_array(shape) || json_array_size(shape) > 4) return false;
    t->rank = (int)json_array_size(shape);
    for (int i = 0; i < t->rank; i++) {
        const json_t *n = json_array_get(shape, (size_t)i);
        if (!json_is_integer(n) || json_integer_value(n) < 0) return false;
        t->shape[i] = json_integer_value(n);
    }
    return true;
}

static bool read_tensor(Checkpoint *c, const char *name, const json_t *about, const char *data,
                        uint64_t size)
{
    const char *dtype = json_string_value(json_object_get(about, "dtype"));
    Tensor *t = more_tensors(c, 1);
    if (!t) return false;
    int format = 0;
    while (format < FORMATS && (!dtype || strcmp(dtype, format_info[format].name))) format++;
    if (format == FORMATS || format_info[format].elements > 1)
        return checkpoint_fail(c, "tensor '%s': unknown type '%s'", name, dtype ? dtype : "");
    *t = (Tensor){.format = (Format)format};
    if (!read_shape(t, json_object_get(about, "shape")))
        return checkpoint_fail(c, "tensor '%s': the shape is no list of up to 4 extents", name);
    const json_t *offsets = json_object_get(about, "data_offsets");
    json_int_t from = json_integer_value(json_array_get(offsets, 0));
    json_int_t to = json_integer_value(json_array_get(offsets, 1));
    if (json_array_size(offsets) != 2 || from < 0 || to < from || (uint64_t)to > size)
        return checkpoint_fail(c, "tensor '%s': bytes %lld to %lld are not within the %llu of data",
                               name, (long long)from, (long long)to, (unsigned long long)size);
    if (!tensor_bytes(t, &t->bytes) || t->bytes != (uint64_t)(to - from))
        return checkpoint_fail(c, "tensor '%s': %lld bytes do not hold its shape", name,
                               (long long)(to - from));
    t->data = (const unsigned char *)data + from;
    size_t length = strlen(name) + 1;
    if (!(t->name = malloc(length))) return checkpoint_fail(c, "no memory");
    memcpy(t->name, name, length);
    c->ntensors++;
    return true;
}

static bool read_part(Checkpoint *c, const char *folder, const char *name)
{
    char path[LONGEST_PATH], *file;
    size_t size;
    if (!folder_path(c, folder, name, path) || !keep_file(c, path, &file, &size)) return false;
    uint64_t length = size < 8 ? 0 : little(file, 8);
    if (size < 8 || length > size - 8)
        return checkpoint_fail(c, "a header of %llu bytes in a file of %zu",
                               (unsigned long long)length, size);
    json_error_t error;
    json_t *header = json_loadb(file + 8, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    bool good = json_is_object(header);
    if (!good) checkpoint_fail(c, "the header is no JSON object: %s", error.text);
    json_t *about;
    if (good) json_object_foreach(header, name, about) {
        if (good && strcmp(name, "__metadata__"))
            good = read_tensor(c, name, about, file + 8 + length, size - 8 - length);
    }
    json_decref(header);
    return good;
}

/* Whether one of the tensors from `from` on has the name. */
static bool has(const Checkpoint *c, size_t from, const char *name)
{
    size_t i = from;
    while (i < c->ntensors && strcmp(c->tensor[i].name, name)) i++;
    return i < c->ntensors;
}

/* One file of the map, when its first tensor is met: it has to have all that the map says, and
 * nothing that an earlier one has. */
static bool read_mapped(Checkpoint *c, const char *folder, const char *index, json_t *map,
                        const char *part)
{
    size_t from = c->ntensors;
    const char *name;
    json_t *file;
    if (strchr(part, '/'))
        return checkpoint_fail(c, "the file '%.100s' is in another folder", part);
    if (!read_part(c, folder, part)) return false;
    c->reading = index;
    json_object_foreach(map, name, file) {
        const char *where = json_string_value(file);
        if (where && !strcmp(where, part) && !has(c, from, name))
            return checkpoint_fail(c, "tensor '%.100s' is not in '%.100s'", name, part);
    }
    for (size_t i = 0; i < from; i++)
        if (has(c, from, c->tensor[i].name))
            return checkpoint_fail(c, "tensor '%s' is in two files", c->tensor[i].name);
    return true;
}

static bool read_parts(Checkpoint *c, const char *folder)
{
    char index[LONGEST_PATH];
    json_t *root = read_json(c, folder, "model.safetensors.index.json", index), *file;
    json_t *map = json_object_get(root, "weight_map"), *done = json_object();
    const char *name;
    bool good = root && done;
    if (good && !json_is_object(map)) good = checkpoint_fail(c, "no object 'weight_map'");
    if (good) json_object_foreach(map, name, file) {
        const char *part = json_string_value(file);
        if (!good || (part && json_object_get(done, part))) continue;
        if (!part) good = checkpoint_fail(c, "no file for the tensor '%.100s'", name);
        good = good && read_mapped(c, folder, index, map, part);
        if (good && json_object_set_new(done, part, json_true()))
            good = checkpoint_fail(c, "no memory");
    }
    json_decref(done), json_decref(root);
    return good;
}

bool read_safetensors(Checkpoint *c, const char *folder)
{
    bool whole = folder_has(folder, "model.safetensors");
    return !whole && folder_has(folder, "model.safetensors.index.json")
               ? read_parts(c, folder)
               : read_part(c, folder, "model.safetensors");
}
