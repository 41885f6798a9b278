/* jit.c: modules from source: the compiler behind tile_kernel_get. With driver_ref.c the only file
 * of this package that knows the compiler, and a library of its own (libtile_jit), so that hosts of
 * prebuilt kernels link none. */
#define TILE_UNSTABLE
#include "runtime/jit.h"
#include "runtime/contract/form_text.h"
#include "runtime/ranges.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"
#include "runtime/tune_select.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The drivers of "ref" and "emu" are found by weak references (device.c). A program with the
 * compiler gets both. */
extern const tl_driver *(*const tl_jit_keeps[])(void);
const tl_driver *(*const tl_jit_keeps[])(void) = {tl_driver_ref, tl_driver_emu};

/* A source and how to compile it; everything is copied, and the files that it imports are those of
 * the moment when it was loaded. */
typedef struct source {
    char *name, *text;
    size_t size;
    char target[32];
    tl_tune_rows tuned;
    tilec_bound *bound;
    tile_jit_options options; /* its texts are copies */
} source;

/* ---- the compiler ---- */

static void hear(void *user, const char *rendered)
{
    tl_heard *h = user;
    size_t n = strlen(rendered);
    char *more = realloc(h->text, h->size + n + 1);
    if (h->diagnostic)
        h->diagnostic(h->user, rendered);
    if (!more)
        return;
    memcpy(more + h->size, rendered, n + 1);
    h->text = more;
    h->size += n;
}

tile_status tl_jit_status(tilec_status status, const tilec_output *output, const tl_heard *heard)
{
    const char *message = tilec_output_message(output);
    switch (status) {
    case TILEC_OK: return TILE_OK;
    case TILEC_ERRORS: return tl_fail(TILE_COMPILE, "%s", heard->text ? heard->text : message);
    case TILEC_USAGE:
    case TILEC_NO_VARIANT: return tl_fail(TILE_NOT_FOUND, "%s", message);
    case TILEC_IO: return tl_fail(TILE_IO, "%s", message);
    case TILEC_NO_MEMORY:
        return tl_fail(TILE_NO_MEMORY, "%s", *message ? message : "out of memory in the compiler");
    case TILEC_TOOL: return tl_fail(TILE_UNAVAILABLE, "%s", message);
    case TILEC_INTERNAL: break;
    }
    return tl_fail(TILE_INTERNAL, "internal error in the compiler: %s", message);
}

/* It takes values as text: those of numbers stand behind the list. */
tilec_const *tl_jit_consts(const tile_const *consts, size_t *out_n)
{
    typedef char digits[24];
    size_t n = 0;
    while (consts && consts[n].name)
        n++;
    tilec_const *list = calloc(n + 1, sizeof *list + sizeof(digits));
    digits *texts = (digits *)(void *)(list + n + 1);
    for (size_t i = 0; list && i < n; i++) {
        snprintf(texts[i], sizeof *texts, "%lld", (long long)consts[i].value);
        list[i] = (tilec_const){consts[i].name, consts[i].text ? consts[i].text : texts[i]};
    }
    *out_n = n;
    return list;
}

tilec_options tl_jit_compiler_options(const tile_jit_options *options, tl_heard *heard)
{
    return (tilec_options){.struct_size = sizeof(tilec_options),
                           .include_dirs = options->include_dirs,
                           .ninclude_dirs = options->ninclude_dirs,
                           .opt_level = options->opt_level,
                           .debug = options->debug,
                           .check = options->check,
                           .fp = options->fp,
                           .warps = options->warps,
                           .stages = options->stages,
                           .cache = options->cache,
                           .process = options->process,
                           .diagnostic = hear,
                           .user = heard};
}

tile_status tl_jit_take(const tile_jit_options *given, tile_jit_options *options)
{
    enum { SIZE_0_1 = offsetof(tile_jit_options, process) };
    char wrong[512];
    *options = (tile_jit_options)TILE_JIT_OPTIONS_INIT;
    tile_status status =
        given ? TL_TAKE(tile_jit_options, options, given, include_dirs) : TILE_OK;
    if (status != TILE_OK)
        return status;
    if (given && given->struct_size <= SIZE_0_1 && !options->opt_level)
        options->opt_level = TILE_NONE; /* in version 0.1, 0 was no default */
    tilec_options o = tl_jit_compiler_options(options, NULL);
    return tilec_options_check(&o, wrong, sizeof wrong) == TILEC_OK
               ? TILE_OK
               : tl_fail(TILE_BAD_ARGUMENT, "tile_jit_options: %s", wrong);
}

/* ---- compiling ---- */

static tilec_options compiler_options(const source *s, tl_heard *heard)
{
    tilec_options o = tl_jit_compiler_options(&s->options, heard);
    o.target = s->target;
    o.bound = s->bound;
    o.tuned = s->tuned.data;
    o.ntuned = s->tuned.len;
    return o;
}

static tile_status copy_image(const tilec_output *output, void **out_data, size_t *out_size)
{
    const void *data = tilec_output_data(output, out_size);
    *out_data = data ? malloc(*out_size) : NULL;
    if (!*out_data)
        return tl_fail(data ? TILE_NO_MEMORY : TILE_INTERNAL,
                       data ? "out of memory" : "the compiler gave no image");
    memcpy(*out_data, data, *out_size);
    return TILE_OK;
}

/* Warnings of a further form are known to the user. */
static tile_status make(void *user, const char *name, const tile_const *consts, const char *form,
                        void **out_data, size_t *out_size)
{
    const source *s = user;
    TL_INVARIANT(s->target[0] && name && out_data, "no kernel, or no target, to compile for");
    bool again = strcmp(form, TL_FORM_ALIGNED) != 0;
    tl_heard heard = {.diagnostic = again ? NULL : s->options.diagnostic, .user = s->options.user};
    tilec_options o = compiler_options(s, &heard);
    tilec_const *list = tl_jit_consts(consts, &o.nconsts);
    tilec_output *output = NULL;
    if (!list)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    o.kernel = name;
    o.consts = list;
    o.forms = form;
    bool range = tl_range_begin("compile", s->name);
    tilec_status compiled = tilec_compile_source(s->name, s->text, s->size, &o, &output);
    tl_range_end(range);
    tile_status status = tl_jit_status(compiled, output, &heard);
    if (status == TILE_OK)
        status = copy_image(output, out_data, out_size);
    TL_DEBUG_INVARIANT((status == TILE_OK) == (*out_data != NULL), "status %d", (int)status);
    tilec_output_free(output);
    free(heard.text);
    free(list);
    return status;
}

/* ---- sources ---- */

static void free_text(const char *text)
{
    free((char *)(uintptr_t)text);
}

static void free_source(void *user)
{
    source *s = user;
    tile_jit_options *o = &s->options;
    for (size_t i = 0; o->include_dirs && i < o->ninclude_dirs; i++)
        free_text(o->include_dirs[i]);
    free((void *)(uintptr_t)o->include_dirs);
    free_text(o->fp);
    free_text(o->cache);
    free_text(o->process);
    tl_tune_rows_free(&s->tuned);
    tilec_bound_free(s->bound);
    free(s->name);
    free(s->text);
    free(s);
}

/* false: out of memory. */
static bool copy_text(const char *text, const char **out)
{
    *out = text ? strdup(text) : NULL;
    return !text || *out;
}

static bool copy_options(const tile_jit_options *from, tile_jit_options *to)
{
    const char **dirs = calloc(from->ninclude_dirs + 1, sizeof *dirs);
    bool fine = dirs != NULL;
    *to = *from;
    to->include_dirs = dirs;
    for (size_t i = 0; fine && i < from->ninclude_dirs; i++)
        fine = copy_text(from->include_dirs[i], &dirs[i]);
    /* all three, so that none is the caller's */
    fine &= copy_text(from->fp, &to->fp);
    fine &= copy_text(from->cache, &to->cache);
    return copy_text(from->process, &to->process) && fine;
}

static source *copy_source(const char *name, const char *text, size_t size,
                           const tile_jit_options *options)
{
    source *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    bool fine = copy_options(options, &s->options);
    s->name = strdup(name);
    s->text = malloc(size + 1);
    s->size = size;
    if (!fine || !s->name || !s->text) {
        free_source(s);
        return NULL;
    }
    memcpy(s->text, text, size);
    s->text[size] = 0;
    return s;
}

/* Kernels are compiled when they are asked for, and some forms of them at a launch; they see what
 * is there now. */
static tile_status bind(source *s)
{
    tilec_options o = compiler_options(s, NULL);
    tilec_status status = tilec_bind(s->name, s->text, s->size, &o, &s->bound);
    if (status == TILEC_NO_MEMORY)
        return tl_fail(TILE_NO_MEMORY, "out of memory in the compiler");
    return status == TILEC_OK
               ? TILE_OK
               : tl_fail(TILE_INTERNAL, "internal error in the compiler: '%s' cannot be bound",
                         s->name);
}

/* Takes over `tuned`. */
static tile_status load_source(tile_device *device, const char *name, const char *text, size_t size,
                               const tile_jit_options *options, tl_tune_rows *tuned,
                               tile_module **out_module)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_status status = tile_device_get_info(device, &info);
    source *s = status == TILE_OK ? copy_source(name, text, size, options) : NULL;
    if (!s) {
        tl_tune_rows_free(tuned);
        return status != TILE_OK ? status : tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    snprintf(s->target, sizeof s->target, "%s", tilec_device_target(info.target));
    s->tuned = *tuned;
    status = bind(s);
    if (status != TILE_OK) {
        free_source(s);
        return status;
    }
    return tl_module_create_maker(device, (tl_maker){s, make, free_source}, out_module);
}

tile_status tile_module_load_source(tile_device *device, const char *name, const char *text,
                                    size_t size, const tile_jit_options *options,
                                    tile_module **out_module)
{
    if (!text || !out_module)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_module_load_source: an argument is NULL");
    tl_tune_rows none = {0};
    tile_jit_options o;
    tile_status status = tl_jit_take(options, &o);
    return status != TILE_OK ? status
                             : load_source(device, name ? name : "<source>", text, size, &o, &none,
                                           out_module);
}

/* ---- files ---- */

/* The whole file; NULL with *out_status set. */
static char *read_file(const char *path, size_t *out_size, tile_status *out_status)
{
    FILE *f = fopen(path, "rb");
    size_t size = 0, room = 1 << 14;
    if (!f) {
        *out_status = tl_fail(TILE_IO, "cannot read '%s': %s%s", path, strerror(errno),
                              strncmp(path, "std.", 4) ? "" : "; nor is it in the library");
        return NULL;
    }
    char *text = malloc(room);
    while (text) {
        size += fread(text + size, 1, room - size, f);
        if (size < room)
            break;
        char *more = realloc(text, room *= 2);
        if (!more)
            free(text);
        text = more;
    }
    if (!text) {
        *out_status = tl_fail(TILE_NO_MEMORY, "out of memory");
    } else if (ferror(f)) {
        *out_status = tl_fail(TILE_IO, "cannot read '%s': %s", path, strerror(errno));
        free(text);
        text = NULL;
    }
    fclose(f);
    *out_size = size;
    return text;
}

/* What is wrong with a file of tuning results is a warning: the kernels run without them. */
typedef struct tuned_request {
    const char *path;
    tile_device *device;
    const tile_jit_options *options;
    tl_tune_rows *out;
} tuned_request;

static tile_status read_tuned(void *user)
{
    const tuned_request *r = user;
    char why[512];
    tile_status status = tl_tune_beside(r->path, r->device, r->out, why, sizeof why);
    if (status == TILE_OK && *why && r->options->diagnostic)
        r->options->diagnostic(r->options->user, why);
    return status;
}

tile_status tile_module_load_file(tile_device *device, const char *path,
                                  const tile_jit_options *options, tile_module **out_module)
{
    TL_FP_SCOPE();
    tile_jit_options o;
    size_t size;
    if (!path || !out_module)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_module_load_file: an argument is NULL");
    tile_status status = tl_jit_take(options, &o); /* first: the file may be missing, too */
    if (status != TILE_OK)
        return status;
    const char *library = tilec_library_text(path, &size);
    char *read = library ? NULL : read_file(path, &size, &status);
    if (!library && !read)
        return status;
    tl_tune_rows tuned;
    status = tl_with_stack(read_tuned, &(tuned_request){path, device, &o, &tuned});
    if (status == TILE_OK)
        status = load_source(device, path, library ? library : read, size, &o, &tuned, out_module);
    free(read);
    return status;
}
