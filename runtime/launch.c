/* launch.c: starting kernels: the choice between instances, and the order of programs on the
 * grid. */
#define TILE_UNSTABLE
#include "runtime/ranges.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"
#include <stdio.h>

/* Programs start on the dies in turn, so number n is on die n % dies. Each die gets a run of
 * neighbours; of those that are left over, the first dies have one more each. */
static int64_t among_dies(const tl_launch *l, int64_t linear)
{
    int64_t die = linear % l->dies, more = l->programs % l->dies;
    return die * (l->programs / l->dies) + (die < more ? die : more) + linear / l->dies;
}

/* Programs of an axis, or clusters of it. */
static int64_t length_of(const tl_launch *l, int axis)
{
    bool crossed = axis && l->cluster > 1 && axis == (int)l->kernel->cluster_axis;
    return crossed ? l->grid[axis] / l->cluster : l->grid[axis];
}

/* The position of the program that starts as number `linear`. Plain: the first axis is fastest.
 * Grouped by g: the first axis is cut into bands of g (the last may be narrower); within a band the
 * first axis is fastest, then the second; then comes the next band; the other axes are outermost.
 * So g programs of the first axis share what they read along the second. Clusters along another
 * axis than the first: the same order of clusters, whose programs start one after another. */
void tl_launch_pid(const tl_launch *l, int64_t linear, int32_t pid[TILE_MAX_GRID])
{
    TL_DEBUG_INVARIANT(linear >= 0 && linear < l->programs, "program %lld of %lld",
                       (long long)linear, (long long)l->programs);
    if (l->dies > 1)
        linear = among_dies(l, linear);
    int64_t crossed = l->cluster > 1 && l->kernel->cluster_axis ? l->cluster : 1,
            member = linear % crossed;
    linear /= crossed;
    int64_t n0 = length_of(l, 0), n1 = length_of(l, 1), rest = linear / n0, first = linear % n0,
            second = rest % n1;
    rest /= n1;
    if (l->group > 0) {
        int64_t plane = linear % (n0 * n1), band = plane / (l->group * n1), base = band * l->group;
        int64_t width = n0 - base < l->group ? n0 - base : l->group;
        int64_t within = plane - band * l->group * n1;
        first = base + within % width;
        second = within / width;
    }
    TL_DEBUG_INVARIANT(first < n0 && second < n1, "position %lld, %lld of a grid of %lld, %lld",
                       (long long)first, (long long)second, (long long)n0, (long long)n1);
    pid[0] = (int32_t)first;
    pid[1] = (int32_t)second;
    for (int i = 2; i < TILE_MAX_GRID; i++) {
        pid[i] = (int32_t)(rest % length_of(l, i));
        rest /= length_of(l, i);
    }
    if (crossed > 1) {
        int32_t *at = &pid[l->kernel->cluster_axis];
        *at = *at * l->cluster + (int32_t)member;
    }
}

void tl_launch_next_pid(const tl_launch *l, int64_t linear, int32_t pid[TILE_MAX_GRID])
{
    if (l->group > 0) {
        tl_launch_pid(l, linear, pid);
        return;
    }
    for (int i = 0; i < TILE_MAX_GRID; i++) {
        if (++pid[i] < l->grid[i])
            return;
        pid[i] = 0;
    }
}

int32_t tl_launch_run(const tl_launch *l, int64_t linear, int64_t end,
                      const int32_t pid[TILE_MAX_GRID])
{
    int64_t row = l->grid[0];
    if (l->group > 0 && pid[0] - pid[0] % l->group + l->group < row)
        row = pid[0] - pid[0] % l->group + l->group;
    row -= pid[0];
    return (int32_t)(row < end - linear ? row : end - linear);
}

static tile_status count_together(const tile_device *d, tl_code *code, int64_t *out_programs)
{
    *out_programs = 1;
    return d->driver->together ? d->driver->together(d->dev, code, out_programs) : TILE_OK;
}

static tile_status check_together(const tile_device *d, tl_code *code, const tl_launch *l)
{
    int64_t most;
    tile_status status = count_together(d, code, &most);
    if (status != TILE_OK || l->blocks <= most)
        return status;
    return tl_fail(
        TILE_NO_RESOURCE, "kernel '%s': %lld programs cannot run together on %s, only %lld",
        tl_image_text(l->image, l->kernel->name), (long long)l->blocks, d->name, (long long)most);
}

/* A kernel that does the whole grid with any number of programs starts as many as run at once, in
 * whole clusters. */
static tile_status choose_blocks(const tile_device *d, tl_code *code, tl_bound *bound)
{
    tl_launch *l = &bound->launch;
    int64_t most = l->programs;
    tile_status status = TILE_OK;
    if (l->blocks_slot >= 0 && d->driver->blocks)
        status = d->driver->blocks(d->dev, code, l->programs, &most);
    if (most % l->cluster)
        most = most < l->cluster ? l->cluster : most - most % l->cluster;
    l->blocks = most < l->programs ? most : l->programs;
    TL_INVARIANT(status != TILE_OK || l->blocks > 0, "%lld programs start", (long long)l->blocks);
    if (l->blocks_slot >= 0)
        bound->slots[l->blocks_slot] = (uint64_t)l->blocks;
    return status;
}

/* The form that was bound; NULL: there is none yet. */
static tl_instance *bound_form(tl_instance *first, const tl_bound *bound)
{
    if (bound->made)
        return bound->made->form;
    return bound->launch.kernel ? first + (bound->launch.kernel - first->kernel) : NULL;
}

static tile_status start(const tl_instance *instance, tile_stream *stream, tl_bound *bound)
{
    const tl_driver *driver = stream->device->driver;
    TL_INVARIANT(instance->kernel == bound->launch.kernel && instance->code,
                 "a launch of a kernel that is not loaded");
    tile_status status = choose_blocks(stream->device, instance->code, bound);
    if (status == TILE_OK && bound->launch.flags & TILE_LAUNCH_TOGETHER)
        status = check_together(stream->device, instance->code, &bound->launch);
    if (status != TILE_OK)
        return status;
    bound->launch.sequence = atomic_fetch_add_explicit(&stream->sequence, 1, memory_order_relaxed);
    bool range = tl_range_begin("", tl_image_text(instance->image, instance->kernel->name));
    status = driver->queue_launch(stream->queue, instance->code, &bound->launch);
    tl_range_end(range);
    return status;
}

static tile_status no_instance_fits(const tile_kernel *kernel, const char *first)
{
    if (kernel->ninstances == 1)
        return tl_fail(TILE_BAD_ARGUMENT, "%s", first);
    return tl_fail(TILE_BAD_ARGUMENT,
                   "kernel '%s': none of its %u variants takes these arguments; the first: %s",
                   kernel->name, kernel->ninstances, first);
}

/* What the search for an instance knows. */
typedef struct search {
    tile_kernel *kernel;
    const tile_arg *args;
    size_t nargs, naxes;
    const int64_t *grid;
    tl_bound *bound;
    tile_status *status;
    char text[1024]; /* why the first one, or the first whose `require` failed, does not fit */
    bool said_require;
    uint32_t found; /* its number */
} search;

static void begin(search *s, tile_kernel *kernel, const tile_arg *args, size_t nargs,
                  const tile_launch_options *o, tl_bound *bound, tile_status *status)
{
    s->kernel = kernel;
    s->args = args;
    s->nargs = nargs;
    s->grid = o->grid;
    s->naxes = o->naxes;
    s->bound = bound;
    s->status = status;
}

/* Does instance number i accept the arguments, or find nothing to run? */
static bool accepts(search *s, uint32_t i, bool *out)
{
    tl_bind_result r = tl_bind(s->kernel->module->device, s->kernel->instances[i], s->args,
                               s->nargs, s->grid, s->naxes, s->bound, s->status);
    *out = r == TL_BIND_OK;
    s->found = i;
    if (r == TL_BIND_OK || r == TL_BIND_EMPTY) {
        *s->status = TILE_OK;
        return true;
    }
    if (!s->text[0] || (r == TL_BIND_REQUIRE && !s->said_require))
        snprintf(s->text, sizeof s->text, "%s", tile_last_error());
    s->said_require |= r == TL_BIND_REQUIRE;
    return false;
}

/* The first instance that accepts the arguments; of tuned ones, the nearest. False with *s->status
 * OK: there is nothing to run. If none accepts them, the error is that of the first whose `require`
 * fails, or else of the first. */
static bool choose(search *s)
{
    tl_choice choice;
    tile_kernel *kernel = s->kernel;
    bool found = false;
    s->text[0] = 0;
    s->said_require = false;
    bool tuned = kernel->tuned &&
                 tl_choose_begin(kernel, s->args, s->nargs, s->bound, &choice);
    for (bool more = true; more;) {
        more = tuned && tl_choose_next(kernel, &choice);
        for (uint32_t i = 0; i < kernel->ninstances; i++)
            if ((!tuned || tl_chosen(kernel->instances[i], &choice)) && accepts(s, i, &found))
                return found;
    }
    *s->status = no_instance_fits(kernel, s->text);
    return false;
}

/* Is what is put into the stream recorded as a graph? Then nothing may be loaded or waited for. */
static tile_status captures(const tile_stream *s, bool *out_captures)
{
    const tl_driver *driver = s->device->driver;
    *out_captures = false;
    return driver->queue_captures ? driver->queue_captures(s->queue, out_captures) : TILE_OK;
}

static tile_status no_form(const search *s)
{
    return tl_fail(TILE_BAD_ARGUMENT,
                   "kernel '%s': the image has no form for arguments that are aligned like these "
                   "(--forms)",
                   s->kernel->name);
}

/* Makes the form that is wished for, if it is not there, and binds the arguments to it. */
static tile_status make_form(search *s)
{
    tile_module *m = s->kernel->module;
    bool found = true;
    for (int tries = 0; !s->bound->launch.kernel && tries < 4; tries++) {
        if (!s->kernel->instances[s->found]->forms)
            return no_form(s);
        pthread_mutex_lock(&m->lock);
        tile_status status = tl_forms_make(s->kernel, s->found, &s->bound->wish);
        pthread_mutex_unlock(&m->lock);
        if (status != TILE_OK)
            return status;
        if (!accepts(s, s->found, &found) || !found)
            return *s->status;
    }
    TL_INVARIANT(s->bound->launch.kernel, "kernel '%s' has no general form", s->kernel->name);
    return TILE_OK;
}

/* The form to run, made and loaded. */
static tile_status prepare_form(search *s, tl_instance **out_form)
{
    tile_module *m = s->kernel->module;
    tile_status status = make_form(s);
    *out_form = status == TILE_OK ? bound_form(s->kernel->instances[s->found], s->bound) : NULL;
    if (status != TILE_OK || atomic_load_explicit(&(*out_form)->ready, memory_order_acquire))
        return status;
    pthread_mutex_lock(&m->lock);
    status = tl_instance_load(m->device, *out_form);
    pthread_mutex_unlock(&m->lock);
    return status;
}

static tile_status prepare(search *s, const tile_stream *stream, tl_instance **out_form)
{
    bool graph;
    tile_status status = captures(stream, &graph);
    if (status != TILE_OK || !graph)
        return status != TILE_OK ? status : prepare_form(s, out_form);
    return tl_fail(TILE_BAD_ARGUMENT,
                   "kernel '%s' is not loaded, and its stream is being captured into a graph: call "
                   "tile_kernel_prepare before the capture begins",
                   s->kernel->name);
}

/* TILE_SYNC=1 */
static tile_status synchronise(tile_stream *stream)
{
    bool graph;
    tile_status status = captures(stream, &graph);
    return status != TILE_OK || graph ? status : tl_stream_finish(stream);
}

static tile_status no_args(const tile_kernel *kernel)
{
    return tl_fail(TILE_BAD_ARGUMENT, "kernel '%s': the arguments are NULL", kernel->name);
}

/* A call with arguments. What it needs, 40 KB and what the kernel takes, a small stack lacks
 * (tl_with_stack). */
typedef struct request {
    tile_kernel *kernel;
    tile_stream *stream;
    const tile_arg *args;
    size_t nargs;
    const tile_launch_options *o;
    tl_instance *form; /* of form_inside */
    int64_t programs;
    const char *symbol;
} request;

/* The device is entered. */
static tile_status launch_inside(tile_kernel *kernel, tile_stream *stream, const tile_arg *args,
                                 size_t nargs, const tile_launch_options *o)
{
    tl_bound bound; /* neither is initialised as a whole: a launch has no time for zeros */
    search s;
    tile_status status = TILE_OK;
    tile_device *device = kernel->module->device;
    if (nargs > 0 && !args)
        return no_args(kernel);
    if (!stream)
        stream = device->default_stream;
    if (stream->device != device)
        return tl_fail(TILE_BAD_ARGUMENT, "kernel '%s' is of device %s, the stream of %s",
                       kernel->name, device->name, stream->device->name);
    begin(&s, kernel, args, nargs, o, &bound, &status);
    if (!choose(&s))
        return status;
    tl_instance *form = bound_form(kernel->instances[s.found], &bound);
    if (!form || !atomic_load_explicit(&form->ready, memory_order_acquire))
        status = prepare(&s, stream, &form);
    bound.launch.flags = o->flags;
    if (status == TILE_OK)
        status = start(form, stream, &bound);
    return status == TILE_OK && device->sync ? synchronise(stream) : status;
}

static tile_status launch_request(void *user)
{
    const request *r = user;
    return launch_inside(r->kernel, r->stream, r->args, r->nargs, r->o);
}

static tile_status launch(tile_kernel *kernel, tile_stream *stream, const tile_arg *args,
                          size_t nargs, const tile_launch_options *o)
{
    TL_FP_SCOPE();
    tile_device *d;
    tile_status status = tl_device_enter(kernel->module->device, &d);
    if (status != TILE_OK)
        return status;
    status = tl_with_stack(launch_request, &(request){.kernel = kernel,
                                                      .stream = stream,
                                                      .args = args,
                                                      .nargs = nargs,
                                                      .o = o});
    tl_device_leave(d);
    return status;
}

static const tile_launch_options NO_OPTIONS = TILE_LAUNCH_OPTIONS_INIT;

tile_status tile_launch(tile_kernel *kernel, tile_stream *stream, const tile_arg *args,
                        size_t nargs)
{
    if (!kernel)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch: the kernel is NULL");
    return launch(kernel, stream, args, nargs, &NO_OPTIONS);
}

tile_status tile_launch_grid(tile_kernel *kernel, tile_stream *stream, const tile_arg *args,
                             size_t nargs, const int64_t *grid, size_t naxes)
{
    if (!kernel || !grid)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_grid: the %s is NULL",
                       kernel ? "grid" : "kernel");
    return launch(
        kernel, stream, args, nargs,
        &(tile_launch_options){.struct_size = sizeof NO_OPTIONS, .grid = grid, .naxes = naxes});
}

/* given: NULL for none. *o has the defaults. */
static tile_status take_options(const tile_launch_options *given, tile_launch_options *o)
{
    enum { KNOWN = TILE_LAUNCH_TOGETHER | TILE_LAUNCH_OVERLAP };
    tile_status status = given ? TL_TAKE(tile_launch_options, o, given, grid) : TILE_OK;
    if (status != TILE_OK)
        return status;
    if (o->flags & ~(unsigned)KNOWN)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_with: options->flags is %#x", o->flags);
    if (!o->grid && o->naxes)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_with: options->grid is NULL, naxes %zu",
                       o->naxes);
    return TILE_OK;
}

tile_status tile_launch_with(tile_kernel *kernel, tile_stream *stream, const tile_arg *args,
                             size_t nargs, const tile_launch_options *options)
{
    tile_launch_options o = TILE_LAUNCH_OPTIONS_INIT;
    if (!kernel)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_with: the kernel is NULL");
    tile_status status = take_options(options, &o);
    return status == TILE_OK ? launch(kernel, stream, args, nargs, &o) : status;
}

/* The device is entered. The form that a launch would run, loaded; NULL: nothing would run. */
static tile_status form_inside(void *user)
{
    request *r = user;
    tl_bound bound;
    search s;
    tile_status status = TILE_OK;
    r->form = NULL;
    if (r->nargs > 0 && !r->args)
        return no_args(r->kernel);
    begin(&s, r->kernel, r->args, r->nargs, r->o, &bound, &status);
    return choose(&s) ? prepare_form(&s, &r->form) : status;
}

tile_status tile_launch_prepare(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                                const tile_launch_options *options)
{
    TL_FP_SCOPE();
    tile_device *d;
    tile_launch_options o = TILE_LAUNCH_OPTIONS_INIT;
    if (!kernel)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_prepare: the kernel is NULL");
    tile_status status = take_options(options, &o);
    if (status == TILE_OK)
        status = tl_device_enter(kernel->module->device, &d);
    if (status != TILE_OK)
        return status;
    request r = {.kernel = kernel, .args = args, .nargs = nargs, .o = &o};
    status = tl_with_stack(form_inside, &r);
    tl_device_leave(d);
    return status;
}

static tile_status room_inside(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                               int64_t *out_programs)
{
    request r = {.kernel = kernel, .args = args, .nargs = nargs, .o = &NO_OPTIONS};
    tile_status status = tl_with_stack(form_inside, &r);
    *out_programs = 0;
    if (status != TILE_OK || !r.form)
        return status;
    return count_together(kernel->module->device, r.form->code, out_programs);
}

tile_status tile_launch_room(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                             int64_t *out_programs)
{
    TL_FP_SCOPE();
    tile_device *d;
    int64_t programs = 0;
    if (!kernel || !out_programs)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_room: %s is NULL",
                       kernel ? "out_programs" : "the kernel");
    tile_status status = tl_device_enter(kernel->module->device, &d);
    if (status != TILE_OK)
        return status;
    status = room_inside(kernel, args, nargs, &programs);
    tl_device_leave(d);
    if (status == TILE_OK)
        *out_programs = programs;
    return status;
}

/* The device is entered. A form that is not made yet has no symbol. */
static tile_status plan_inside(void *user)
{
    request *r = user;
    tl_bound bound;
    search s;
    tile_status status = TILE_OK;
    if (r->nargs > 0 && !r->args)
        return no_args(r->kernel);
    begin(&s, r->kernel, r->args, r->nargs, r->o, &bound, &status);
    if (!choose(&s))
        return status;
    const tile_image_kernel *row = bound.launch.kernel;
    if (!row && !r->kernel->instances[s.found]->forms)
        return no_form(&s);
    r->programs = bound.launch.programs;
    r->symbol = row ? tl_image_text(bound.launch.image, row->symbol) : "";
    return TILE_OK;
}

tile_status tile_launch_plan(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                             const int64_t *grid, size_t naxes, int64_t *out_programs,
                             const char **out_symbol)
{
    TL_FP_SCOPE();
    tile_device *d;
    const tile_launch_options options = {
        .struct_size = sizeof NO_OPTIONS, .grid = grid, .naxes = grid ? naxes : 0};
    if (!kernel || !out_programs || !out_symbol)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_plan: %s is NULL",
                       kernel ? "what it gives" : "the kernel");
    tile_status status = tl_device_enter(kernel->module->device, &d);
    if (status != TILE_OK)
        return status;
    request r = {.kernel = kernel, .args = args, .nargs = nargs, .o = &options, .symbol = ""};
    status = tl_with_stack(plan_inside, &r);
    *out_programs = r.programs;
    *out_symbol = r.symbol;
    tl_device_leave(d);
    return status;
}
