/* launch.c: starting kernels, and the order of programs on the grid. */
#define TILE_UNSTABLE
#include "runtime/ranges.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"
#include <string.h>

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
    if (linear == 0) { /* divisions take longer than a small kernel */
        memset(pid, 0, TILE_MAX_GRID * sizeof *pid);
        return;
    }
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

int32_t tl_launch_rows(const tl_launch *l, int64_t linear, int64_t end,
                       const int32_t pid[TILE_MAX_GRID], int32_t count)
{
    if (l->group > 0 || count < l->grid[0] || count >= end - linear)
        return 1;
    int64_t rows = (end - linear) / count, left = l->grid[1] - pid[1];
    return (int32_t)(rows < left ? rows : left);
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
static tile_status choose_blocks(const tile_device *d, tl_code *code, tl_launch *l)
{
    int64_t most = l->programs;
    tile_status status = TILE_OK;
    if (l->blocks_slot >= 0 && d->driver->blocks)
        status = d->driver->blocks(d->dev, code, l->programs, &most);
    if (l->cluster > 1 && most % l->cluster)
        most = most < l->cluster ? l->cluster : most - most % l->cluster;
    l->blocks = most < l->programs ? most : l->programs;
    TL_INVARIANT(status != TILE_OK || l->blocks > 0, "%lld programs start", (long long)l->blocks);
    if (l->blocks_slot >= 0)
        ((uint64_t *)(uintptr_t)l->slots)[l->blocks_slot] = (uint64_t)l->blocks;
    return status;
}

static tile_status start(tile_stream *stream, const tl_instance *form, tl_launch *l)
{
    const tl_driver *driver = stream->device->driver;
    TL_INVARIANT(form->kernel == l->kernel && form->code,
                 "a launch of a kernel that is not loaded");
    tile_status status = choose_blocks(stream->device, form->code, l);
    if (status == TILE_OK && l->flags & TILE_LAUNCH_TOGETHER)
        status = check_together(stream->device, form->code, l);
    if (status != TILE_OK)
        return status;
    l->sequence = atomic_fetch_add_explicit(&stream->sequence, 1, memory_order_relaxed);
    bool range = tl_range_begin("", tl_image_text(form->image, form->kernel->name));
    status = driver->queue_launch(stream->queue, form->code, l);
    tl_range_end(range);
    return status;
}

/* Is what is put into the stream recorded as a graph? Then nothing may be loaded or waited for. */
static tile_status captures(const tile_stream *s, bool *out_captures)
{
    const tl_driver *driver = s->device->driver;
    *out_captures = false;
    return driver->queue_captures ? driver->queue_captures(s->queue, out_captures) : TILE_OK;
}

static tile_status prepare(tile_kernel *kernel, const tile_stream *stream, tl_bound *bound)
{
    bool graph;
    tile_status status = captures(stream, &graph);
    if (status != TILE_OK || !graph)
        return status != TILE_OK ? status : tl_load_chosen(kernel, bound);
    return tl_fail(TILE_BAD_ARGUMENT,
                   "kernel '%s' is not loaded, and its stream is being captured into a graph: call "
                   "tile_kernel_prepare before the capture begins",
                   kernel->name);
}

/* TILE_SYNC=1 */
static tile_status synchronise(tile_stream *stream)
{
    bool graph;
    tile_status status = captures(stream, &graph);
    return status != TILE_OK || graph ? status : tl_stream_finish(stream);
}

/* ---- the calls with arguments ---- */

typedef struct request {
    tl_question q;
    tile_stream *stream;
    unsigned flags;
    tl_part part; /* none: the stream's */
    int64_t programs; /* what the call gives, if anything */
    const char *symbol;
} request;

/* Makes the call on the kernel's device. What it needs, 40 KB and what the kernel takes, a small
 * stack lacks (tl_with_stack). */
static tile_status with_device(tile_status (*call)(void *user), request *r)
{
    TL_FP_SCOPE();
    tile_device *d;
    tile_status status = tl_device_enter(r->q.kernel->module->device, &d);
    if (status != TILE_OK)
        return status;
    status = tl_with_stack(call, r);
    tl_device_leave(d);
    return status;
}

/* `bound` is not initialised as a whole: a launch has no time for zeros. */
static tile_status choose(const tl_question *q, tl_bound *bound)
{
    if (q->nargs > 0 && !q->args)
        return tl_fail(TILE_BAD_ARGUMENT, "kernel '%s': the arguments are NULL", q->kernel->name);
    return tl_choose(q, bound);
}

/* Binds the arguments, if the launch is not like the last one, and starts it. */
static tile_status bind_and_start(const request *r, tile_stream *stream, tl_part part,
                                  tl_again *again)
{
    const tl_instance *form;
    tl_bound bound;
    tl_launch *l = tl_again_launch(again, &r->q, &form);
    tile_status status = l ? TILE_OK : choose(&r->q, &bound);
    bool none = part.index && !stream->device->driver->runs_parts;
    if (status != TILE_OK || none || (!l && !bound.launch.programs))
        return status;
    if (!l) {
        if (!bound.form || !atomic_load_explicit(&bound.form->ready, memory_order_acquire))
            status = prepare(r->q.kernel, stream, &bound);
        if (status != TILE_OK)
            return status;
        tl_again_keep(again, &r->q, &bound);
        l = &bound.launch;
        form = bound.form;
    }
    l->flags = r->flags;
    l->part = part;
    return start(stream, form, l);
}

static tile_status launch(void *user)
{
    const request *r = user;
    tile_kernel *kernel = r->q.kernel;
    tile_device *device = kernel->module->device;
    tile_stream *stream = r->stream ? r->stream : device->default_stream;
    if (stream->device != device)
        return tl_fail(TILE_BAD_ARGUMENT, "kernel '%s' is of device %s, the stream of %s",
                       kernel->name, device->name, stream->device->name);
    tl_part part = r->part.count ? r->part : stream->part;
    if (part.count && r->flags & TILE_LAUNCH_TOGETHER)
        return tl_fail(TILE_BAD_ARGUMENT, "kernel '%s': the programs of a part of the grid do not "
                                          "run together", kernel->name);
    tl_again *again = tl_again_take(kernel);
    tile_status status = bind_and_start(r, stream, part, again);
    tl_again_give(kernel, again);
    return status == TILE_OK && device->sync ? synchronise(stream) : status;
}

tile_status tile_launch(tile_kernel *kernel, tile_stream *stream, const tile_arg *args,
                        size_t nargs)
{
    if (!kernel)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch: the kernel is NULL");
    return with_device(launch, &(request){.q = {kernel, args, nargs, 0, NULL}, .stream = stream});
}

tile_status tile_launch_grid(tile_kernel *kernel, tile_stream *stream, const tile_arg *args,
                             size_t nargs, const int64_t *grid, size_t naxes)
{
    if (!kernel || !grid)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_grid: the %s is NULL",
                       kernel ? "grid" : "kernel");
    return with_device(launch,
                       &(request){.q = {kernel, args, nargs, naxes, grid}, .stream = stream});
}

tile_status tile_launch_part(tile_kernel *kernel, const tile_arg *args, size_t nargs, uint32_t part,
                             uint32_t parts)
{
    if (!kernel)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_part: the kernel is NULL");
    if (part >= parts)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_part: part %u of %u", part, parts);
    return with_device(launch,
                       &(request){.q = {kernel, args, nargs, 0, NULL}, .part = {part, parts}});
}

/* given: NULL for none. */
static tile_status take_options(const tile_launch_options *given, request *r)
{
    enum { KNOWN = TILE_LAUNCH_TOGETHER | TILE_LAUNCH_OVERLAP };
    tile_launch_options o = TILE_LAUNCH_OPTIONS_INIT;
    tile_status status = given ? TL_TAKE(tile_launch_options, &o, given, grid) : TILE_OK;
    if (status != TILE_OK)
        return status;
    if (o.flags & ~(unsigned)KNOWN)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_with: options->flags is %#x", o.flags);
    if (!o.grid && o.naxes)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_with: options->grid is NULL, naxes %zu",
                       o.naxes);
    r->q.grid = o.grid;
    r->q.naxes = o.naxes;
    r->flags = o.flags;
    return TILE_OK;
}

tile_status tile_launch_with(tile_kernel *kernel, tile_stream *stream, const tile_arg *args,
                             size_t nargs, const tile_launch_options *options)
{
    request r = {.q = {kernel, args, nargs, 0, NULL}, .stream = stream};
    if (!kernel)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_with: the kernel is NULL");
    tile_status status = take_options(options, &r);
    return status == TILE_OK ? with_device(launch, &r) : status;
}

static tile_status load(const request *r, tl_bound *bound)
{
    tile_status status = choose(&r->q, bound);
    return status == TILE_OK && bound->launch.programs ? tl_load_chosen(r->q.kernel, bound)
                                                       : status;
}

static tile_status prepare_form(void *user)
{
    tl_bound bound;
    return load(user, &bound);
}

tile_status tile_launch_prepare(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                                const tile_launch_options *options)
{
    request r = {.q = {kernel, args, nargs, 0, NULL}};
    if (!kernel)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_prepare: the kernel is NULL");
    tile_status status = take_options(options, &r);
    return status == TILE_OK ? with_device(prepare_form, &r) : status;
}

static tile_status count_room(void *user)
{
    request *r = user;
    tl_bound bound;
    tile_status status = load(r, &bound);
    if (status != TILE_OK || !bound.launch.programs)
        return status;
    return count_together(r->q.kernel->module->device, bound.form->code, &r->programs);
}

tile_status tile_launch_room(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                             int64_t *out_programs)
{
    request r = {.q = {kernel, args, nargs, 0, NULL}};
    if (!kernel || !out_programs)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_room: %s is NULL",
                       kernel ? "out_programs" : "the kernel");
    tile_status status = with_device(count_room, &r);
    if (status == TILE_OK)
        *out_programs = r.programs;
    return status;
}

/* A form that is not made yet has no symbol. */
static tile_status plan(void *user)
{
    request *r = user;
    tl_bound bound;
    tile_status status = choose(&r->q, &bound);
    if (status != TILE_OK || !bound.launch.programs)
        return status;
    status = tl_check_forms(r->q.kernel, &bound);
    if (status != TILE_OK)
        return status;
    r->programs = bound.launch.programs;
    if (bound.form)
        r->symbol = tl_image_text(bound.form->image, bound.form->kernel->symbol);
    return TILE_OK;
}

tile_status tile_launch_plan(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                             const int64_t *grid, size_t naxes, int64_t *out_programs,
                             const char **out_symbol)
{
    request r = {.q = {kernel, args, nargs, grid ? naxes : 0, grid}, .symbol = ""};
    if (!kernel || !out_programs || !out_symbol)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_plan: %s is NULL",
                       kernel ? "what it gives" : "the kernel");
    tile_status status = with_device(plan, &r);
    *out_programs = r.programs;
    *out_symbol = r.symbol;
    return status;
}
