/* tile_xla.h: calls as XLA makes them, by frames made here; test/python/jax_op_test.py has XLA
 * itself. */
#include "runtime/include/tile_jit.h"
#include "runtime/include/tile_xla.h"
#include "runtime/xla_ffi.h"
#include "test/unit/ok.h"

static const char SOURCE[] = "kernel scale(const f32 x[M, N], f32 y[M, N], f32 by, i64 more)\n"
                             "    grid(M)\n"
                             "{\n"
                             "    assert(by < 100, \"by is large\");\n"
                             "    y[pid(0), 0 +: 4] = x[pid(0), 0 +: 4] * by + (f32)more;\n"
                             "}\n";

static char last[1024];
static int32_t last_code;

static void *create(xla_error_args *args)
{
    snprintf(last, sizeof last, "%s", args->message);
    last_code = args->code;
    return last;
}

enum { OPERANDS = 1, RESULTS = 1, ATTRIBUTES = 4 };

/* A call with everything that a kernel of two views and two scalars wants. */
typedef struct Call {
    float x[3][4], y[3][4];
    int64_t dims[2], id, places[4], scalars[2], types[2];
    xla_buffer operand, result;
    xla_scalar kernel;
    xla_array place, scalar, type;
    xla_text name[ATTRIBUTES];
    int32_t buffer_types[1], kinds[ATTRIBUTES];
    void *operands[1], *results[1], *attributes[ATTRIBUTES];
    xla_text *names[ATTRIBUTES];
    xla_api api;
    xla_frame frame;
} Call;

static void make(Call *c, int64_t id)
{
    static const char *const NAMES[ATTRIBUTES] = {"kernel", "places", "scalars", "types"};
    float by = 2.5f;
    *c = (Call){.dims = {3, 4}, .id = id, .places = {0, 1, -1, -2}, .scalars = {0, -7}};
    memcpy(&c->scalars[0], &by, sizeof by);
    c->types[0] = TILE_F32;
    c->types[1] = TILE_I64;
    for (int i = 0; i < 12; i++)
        (&c->x[0][0])[i] = (float)i;
    c->operand = (xla_buffer){sizeof(xla_buffer), NULL, XLA_F32, c->x, 2, c->dims};
    c->result = (xla_buffer){sizeof(xla_buffer), NULL, XLA_F32, c->y, 2, c->dims};
    c->kernel = (xla_scalar){XLA_S64, &c->id};
    c->place = (xla_array){XLA_S64, 4, c->places};
    c->scalar = (xla_array){XLA_S64, 2, c->scalars};
    c->type = (xla_array){XLA_S64, 2, c->types};
    c->buffer_types[0] = XLA_BUFFER;
    c->operands[0] = &c->operand;
    c->results[0] = &c->result;
    void *const attributes[ATTRIBUTES] = {&c->kernel, &c->place, &c->scalar, &c->type};
    for (int i = 0; i < ATTRIBUTES; i++) {
        c->name[i] = (xla_text){NAMES[i], strlen(NAMES[i])};
        c->names[i] = &c->name[i];
        c->kinds[i] = i ? XLA_ARRAY : XLA_SCALAR;
        c->attributes[i] = attributes[i];
    }
    c->api = (xla_api){.struct_size = sizeof c->api, .error_create = create};
    c->frame =
        (xla_frame){.struct_size = sizeof c->frame,
                    .api = &c->api,
                    .stage = XLA_EXECUTE,
                    .operands = {sizeof(xla_list), NULL, OPERANDS, c->buffer_types, c->operands},
                    .results = {sizeof(xla_list), NULL, RESULTS, c->buffer_types, c->results},
                    .attributes = {sizeof(xla_attributes), NULL, ATTRIBUTES, c->kinds, c->names,
                                   c->attributes}};
}

static bool fails(Call *c, const char *text, int32_t code)
{
    last[0] = 0;
    bool fine = CHECK(tile_xla_call(&c->frame) == last) && CHECK(strstr(last, text) != NULL) &&
                CHECK_INT(last_code, code);
    if (!fine)
        fprintf(stderr, "    said: %s\n", last);
    return fine;
}

static void values(int64_t id)
{
    Call c;
    make(&c, id);
    CHECK(tile_xla_call(&c.frame) == NULL);
    for (int i = 0; i < 12; i++)
        CHECK((&c.y[0][0])[i] == (float)i * 2.5f - 7);
    make(&c, id); /* nothing is done before the stage of execution */
    c.frame.stage = XLA_EXECUTE - 1;
    CHECK(tile_xla_call(&c.frame) == NULL && c.y[2][3] == 0);
    make(&c, id);
    c.dims[0] = 0;
    CHECK(tile_xla_call(&c.frame) == NULL);
}

static void metadata(int64_t id)
{
    Call c;
    make(&c, id);
    xla_metadata m = {.struct_size = sizeof m, .version = {.major = -1, .minor = -1}};
    xla_metadata_extension e = {{sizeof e, XLA_METADATA, NULL}, &m};
    xla_extension other = {sizeof other, 99, &e.base};
    c.frame.extensions = &other;
    CHECK(tile_xla_call(&c.frame) == NULL && m.version.major == 0 && m.version.minor == 1);
    CHECK(c.y[2][3] == 0);
}

static void refused(int64_t id)
{
    Call c;
    float large = 100;
    make(&c, id + 1);
    fails(&c, "has registered no kernel", XLA_NOT_FOUND);
    make(&c, id - 1);
    fails(&c, "has registered no kernel", XLA_NOT_FOUND);
    make(&c, id);
    c.kernel.type = XLA_S32;
    fails(&c, "lacks the attribute 'kernel'", XLA_INVALID_ARGUMENT);
    make(&c, id);
    c.place.size = 3;
    fails(&c, "scale", XLA_INVALID_ARGUMENT);
    for (int k = 0; k < 2; k++) {
        make(&c, id);
        c.places[2] = k ? 2 : -3;
        fails(&c, "has no place", XLA_INVALID_ARGUMENT);
    }
    make(&c, id);
    c.operand.type = XLA_S32;
    fails(&c, "'x'", XLA_INVALID_ARGUMENT);
    make(&c, id);
    c.operand.type = 15; /* complex */
    fails(&c, "type or rank", XLA_INVALID_ARGUMENT);
    make(&c, id);
    c.operand.rank = 9;
    fails(&c, "type or rank", XLA_INVALID_ARGUMENT);
    make(&c, id);
    c.types[0] = 77;
    fails(&c, "type", XLA_INVALID_ARGUMENT);
    make(&c, id);
    memcpy(&c.scalars[0], &large, sizeof large);
    fails(&c, "by is large", XLA_INTERNAL);
    CHECK(tile_xla_register(NULL, &id) == TILE_BAD_ARGUMENT);
}

int main(void)
{
    tile_device *device;
    tile_module *module;
    tile_kernel *kernel;
    int64_t id = 0, many = 0;
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    o.check = 1;
    o.cache = "off";
    OK(tile_device_open("cpu", &device));
    OK(tile_module_load_source(device, "scale.tile", SOURCE, sizeof SOURCE - 1, &o, &module));
    OK(tile_kernel_get(module, "scale", NULL, &kernel));
    CHECK(tile_xla_register(kernel, NULL) == TILE_BAD_ARGUMENT);
    OK(tile_xla_register(kernel, &id));
    values(id);
    metadata(id);
    refused(id);
    for (int i = 0; i < 100; i++)
        OK(tile_xla_register(kernel, &many));
    values(id);
    values(many);
    Call c;
    tile_xla_unregister(many);
    tile_xla_unregister(many + 1000);
    make(&c, many);
    fails(&c, "has registered no kernel", XLA_NOT_FOUND);
    values(id);
    tile_module_free(module);
    tile_device_close(device);
    return unit_result();
}
