/* tilec_run.c: tilec run: compiles a kernel for a device, makes its arguments, launches it, shows
 * what came out.
 *
 * With --schedules the emulator runs the kernel once per schedule, each time from the same inputs;
 * the arrays must be the same afterwards, bit for bit.
 *
 * What is wrong with the program is 1, with the command line 2, with the launch or the run 3. */
#define TILE_UNSTABLE
#include "ir/support/number.h"
#include "runtime/host/processors.h"
#include "runtime/include/tile.h"
#include "tools/run_args.h"
#include "tools/tuned.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Run {
    const Options *o;
    const char *name; /* of the device; NULL: what TILE_DEVICE says, else cpu */
    tile_device *device;
    tile_device_info info;
    tilec_output *output;
    tile_module *module;
    tile_kernel *kernel;
    RunArgs args;
    tile_arg *launch;
    double compile_ms;
    char **counted;           /* where the device's counts go; NULL: --stats prints them */
    void **inputs, **outputs; /* of each array: as made; as the first schedule left it */
} Run;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int run_error(void)
{
    fprintf(stderr, "%s\n", tile_last_error());
    return EXIT_RUN;
}

static void print_line(void *user, const char *text)
{
    fprintf(user, "%s\n", text);
}

static int open_device(Run *r)
{
    tile_status status = tile_device_open(r->name, &r->device);
    if (status == TILE_BAD_ARGUMENT)
        return usage_error("%s", tile_last_error());
    if (status != TILE_OK)
        return run_error();
    tile_callbacks callbacks = TILE_CALLBACKS_INIT;
    callbacks.print = print_line;
    callbacks.user = stdout;
    r->info = (tile_device_info)TILE_DEVICE_INFO_INIT;
    tile_device_set_callbacks(r->device, &callbacks);
    if (r->o->stats || r->counted)
        tile_device_configure(r->device, "stats", "1"); /* others count nothing */
    if (r->o->perturb && tile_device_configure(r->device, "perturb", r->o->perturb) != TILE_OK)
        return usage_error("--perturb: %s", tile_last_error());
    return tile_device_get_info(r->device, &r->info) == TILE_OK ? EXIT_FINE : run_error();
}

static int compile(Run *r)
{
    tilec_options c = r->o->compile;
    size_t size;
    c.target = tilec_device_target(r->info.target);
    c.emit = "image";
    c.one_kernel = 1;
    Tuned tuned;
    int status = tuned_read_device(r->o, r->device, &c, &tuned);
    double start = now_ms();
    if (status == EXIT_FINE) {
        tilec_status compiled = tilec_compile_file(r->o->input, &c, &r->output);
        status = report_compile(compiled, r->output);
    }
    tuned_free(&tuned);
    r->compile_ms = now_ms() - start;
    if (status != EXIT_FINE)
        return status;
    const void *image = tilec_output_data(r->output, &size);
    return tile_module_load_image(r->device, image, size, &r->module) == TILE_OK ? EXIT_FINE
                                                                                 : run_error();
}

/* The one kernel of the image; several instances of one name are its variants. */
static int choose_kernel(Run *r)
{
    const char *name = tile_module_kernel_name(r->module, 0);
    if (!name)
        return usage_error("'%s' has no kernel", r->o->input);
    for (size_t i = 1; i < tile_module_kernel_count(r->module); i++)
        if (strcmp(tile_module_kernel_name(r->module, i), name) != 0)
            return usage_error("'%s' has several kernels (%s, %s, ...): choose with --kernel",
                               r->o->input, name, tile_module_kernel_name(r->module, i));
    return tile_kernel_get(r->module, name, NULL, &r->kernel) == TILE_OK ? EXIT_FINE : run_error();
}

static int upload_arrays(Run *r)
{
    return run_args_upload(&r->args, r->device, &r->launch);
}

static int fetch_arrays(Run *r)
{
    return run_args_fetch(&r->args);
}

static int read_grid(const char *text, int64_t *grid, size_t *out_axes)
{
    *out_axes = 0;
    for (const char *p = text; p;) {
        char word[32];
        size_t n = strcspn(p, ",");
        long long v;
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        if (*out_axes == 6 || n >= sizeof word || !parse_int(word, 0, INT32_MAX, &v))
            return usage_error("--grid takes one to six numbers, X[,Y[,Z...]], not '%s'", text);
        grid[(*out_axes)++] = v;
        p = p[n] ? p + n + 1 : NULL;
    }
    return EXIT_FINE;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The caller frees it; NULL: nothing was counted. */
static char *counters_of(tile_device *device)
{
    size_t size = tile_device_counters(device, NULL, 0) + 1;
    char *text = size > 1 ? malloc(size) : NULL;
    if (text)
        tile_device_counters(device, text, size);
    return text;
}

/* Launches; each launch is waited for, so that its time can be told. */
static int launch_all(Run *r, const int64_t *grid, size_t naxes, size_t repeat, double *times)
{
    for (size_t i = 0; i < repeat; i++) {
        double start = now_ms();
        tile_status status =
            grid ? tile_launch_grid(r->kernel, NULL, r->launch, r->args.nparams, grid, naxes)
                 : tile_launch(r->kernel, NULL, r->launch, r->args.nparams);
        if (status == TILE_OK)
            status = tile_device_synchronize(r->device);
        times[i] = now_ms() - start;
        if (status != TILE_OK)
            return run_error();
    }
    qsort(times, repeat, sizeof *times, by_time);
    if (r->o->repeat || r->o->stats)
        fprintf(stderr, "compiled in %s ms; %zu launch%s, best %s ms, median %s ms\n",
                TL_NUMBER("%.1f", r->compile_ms), repeat, repeat == 1 ? "" : "es",
                TL_NUMBER("%.4f", times[0]), TL_NUMBER("%.4f", times[repeat / 2]));
    char *counted = r->o->stats || r->counted ? counters_of(r->device) : NULL;
    if (r->counted) {
        *r->counted = counted;
        return EXIT_FINE;
    }
    if (counted)
        fputs(counted, stderr);
    free(counted);
    return EXIT_FINE;
}

static int launch(Run *r)
{
    int64_t grid[6];
    size_t naxes = 0;
    long long repeat = 1;
    if (r->o->repeat && !parse_int(r->o->repeat, 1, 1000000, &repeat))
        return usage_error("--repeat takes a number of 1 or more, not '%s'", r->o->repeat);
    if (r->o->grid && read_grid(r->o->grid, grid, &naxes) != EXIT_FINE)
        return EXIT_USAGE;
    const tile_launch_options options = {
        .struct_size = sizeof options, .grid = r->o->grid ? grid : NULL, .naxes = naxes};
    if (tile_launch_prepare(r->kernel, r->launch, r->args.nparams, &options) != TILE_OK)
        return run_error();
    double *times = calloc((size_t)repeat, sizeof *times);
    int status = times ? launch_all(r, r->o->grid ? grid : NULL, naxes, (size_t)repeat, times)
                       : out_of_memory();
    free(times);
    return status;
}

static int run_once(Run *r)
{
    int (*const actions[])(Run *) = {upload_arrays, launch, fetch_arrays};
    int status = EXIT_FINE;
    for (size_t i = 0; i < sizeof actions / sizeof *actions && status == EXIT_FINE; i++)
        status = actions[i](r);
    return status;
}

/* ---- schedules ---- */

static void free_copies(const Run *r, void **copies)
{
    for (size_t i = 0; copies && i < r->args.len; i++)
        free(copies[i]);
    free(copies);
}

/* Copies of all arrays as they are now; NULL: no memory. */
static void **copy_arrays(const Run *r)
{
    void **copies = calloc(r->args.len + 1, sizeof *copies);
    for (size_t i = 0; copies && i < r->args.len; i++) {
        const RunArg *a = &r->args.data[i];
        if (a->param.kind == TILE_ARG_SCALAR || a->same_as)
            continue;
        copies[i] = malloc(a->bytes ? a->bytes : 1);
        if (!copies[i]) {
            free_copies(r, copies);
            return NULL;
        }
        memcpy(copies[i], a->data, a->bytes);
    }
    return copies;
}

/* The next run begins as the first did. */
static void restore_arrays(Run *r)
{
    free(r->launch);
    r->launch = NULL;
    for (size_t i = 0; i < r->args.len; i++) {
        RunArg *a = &r->args.data[i];
        tile_buffer_free(a->buffer);
        a->buffer = NULL;
        if (r->inputs[i])
            memcpy(a->data, r->inputs[i], a->bytes);
    }
}

static int compare_arrays(const Run *r, const char *first, const char *schedule)
{
    for (size_t i = 0; i < r->args.len; i++) {
        const RunArg *a = &r->args.data[i];
        const unsigned char *x = r->outputs[i], *y = a->data;
        uint64_t at = 0;
        if (!x || a->addresses || memcmp(x, y, a->bytes) == 0) /* other buffers, other addresses */
            continue;
        while (x[at] == y[at])
            at++;
        int bits = tile_dtype_bits(a->dtype);
        fprintf(stderr,
                "%s: '%s' is not the same under the schedules %s and %s, from element %llu on\n",
                r->o->input, a->param.name, first, schedule,
                (unsigned long long)(at / (bits < 8 ? 1 : (uint64_t)bits / 8)));
        return EXIT_RUN;
    }
    return EXIT_FINE;
}

static int run_schedule(Run *r, const char *schedule, const char *first)
{
    if (tile_device_configure(r->device, "schedule", schedule) != TILE_OK)
        return usage_error("--schedules: %s", tile_last_error());
    int status = run_once(r);
    if (status == EXIT_RUN)
        fprintf(stderr, "%s: this was under the schedule %s\n", r->o->input, schedule);
    if (status != EXIT_FINE)
        return status;
    if (r->outputs)
        return compare_arrays(r, first, schedule);
    r->outputs = copy_arrays(r);
    return r->outputs ? EXIT_FINE : out_of_memory();
}

static int run_schedules(Run *r)
{
    const char *list = r->o->schedules;
    char first[32] = "", word[32];
    int status = EXIT_FINE;
    if (strcmp(list, "all") == 0)
        list = "rr,reverse,ahead,random:1";
    r->inputs = copy_arrays(r);
    if (!r->inputs)
        return out_of_memory();
    while (*list && status == EXIT_FINE) {
        size_t n = strcspn(list, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, list);
        if (*first)
            restore_arrays(r);
        else
            memcpy(first, word, sizeof first);
        status = run_schedule(r, word, first);
        list += list[n] ? n + 1 : n;
    }
    return status;
}

/* The array that --print PARAM or --save PARAM=FILE names; NULL when there is none, which has been
 * said. */
static const RunArg *named_array(const Run *r, const char *option, const char *text, size_t length)
{
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    int at = run_args_find(&r->args, name);
    if (at >= 0 && r->args.data[at].param.kind != TILE_ARG_SCALAR)
        return &r->args.data[at];
    usage_error("%s %s: the kernel has no array '%s'; its parameters are:", option, text, name);
    for (size_t i = 0; i < r->args.len; i++)
        fprintf(stderr, " %s", r->args.data[i].param.name);
    fputc('\n', stderr);
    return NULL;
}

static const char *saved_file(const char *save)
{
    return save + strcspn(save, "=") + 1;
}

static int check_saved_files(const Run *r)
{
    size_t n = r->o->saves.len;
    OutputName *names = calloc(n + 2, sizeof *names);
    if (!names)
        return out_of_memory();
    for (size_t i = 0; i < n; i++)
        names[i] = (OutputName){"--save", saved_file(r->o->saves.data[i])};
    if (r->o->time_trace)
        names[n++] = (OutputName){"--time-trace", r->o->time_trace};
    int status = check_output_names(r->o, tilec_output_depends(r->output), names, n);
    free(names);
    return status;
}

/* Before the run, so that a misspelt name costs nothing. */
static int check_outputs(const Run *r)
{
    for (size_t i = 0; i < r->o->prints.len; i++)
        if (!named_array(r, "--print", r->o->prints.data[i], strlen(r->o->prints.data[i])))
            return EXIT_USAGE;
    for (size_t i = 0; i < r->o->saves.len; i++) {
        const char *text = r->o->saves.data[i];
        if (!strchr(text, '='))
            return usage_error("--save takes PARAM=FILE.npy, not '%s'", text);
        if (!named_array(r, "--save", text, strcspn(text, "=")))
            return EXIT_USAGE;
    }
    return check_saved_files(r);
}

static int save(const Run *r, Outputs *outputs)
{
    int status = EXIT_FINE;
    for (size_t i = 0; i < r->o->saves.len && status == EXIT_FINE; i++) {
        const char *text = r->o->saves.data[i];
        const RunArg *a = named_array(r, "--save", text, strcspn(text, "="));
        status = a ? run_arg_save(a, saved_file(text), outputs) : EXIT_USAGE;
    }
    if (status == EXIT_FINE && r->o->time_trace)
        status = write_trace(r->o, r->output, outputs);
    return status == EXIT_FINE && !output_commit(outputs) ? EXIT_USAGE : status;
}

static int show(const Run *r)
{
    int status = EXIT_FINE;
    for (size_t i = 0; i < r->o->prints.len && status == EXIT_FINE; i++) {
        const RunArg *a =
            named_array(r, "--print", r->o->prints.data[i], strlen(r->o->prints.data[i]));
        status = a ? run_arg_print(a, stdout) : EXIT_USAGE;
    }
    Outputs outputs = {.program = "tilec"};
    if (status == EXIT_FINE)
        status = save(r, &outputs);
    output_drop(&outputs);
    return status;
}

static int make_arguments(Run *r)
{
    return run_args_make(r->o, r->kernel, tilec_output_data(r->output, NULL), &r->args);
}

/* Compiled for the device, with arguments. */
static int set_up(Run *r)
{
    int (*const steps[])(Run *) = {open_device, compile, choose_kernel, make_arguments};
    int status = EXIT_FINE;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == EXIT_FINE; i++)
        status = steps[i](r);
    return status;
}

static void clean_up(Run *r)
{
    free_copies(r, r->inputs);
    free_copies(r, r->outputs);
    run_args_free(&r->args);
    free(r->launch);
    tile_module_free(r->module);
    tilec_output_free(r->output);
    tile_device_close(r->device);
}

int command_run(Options *o)
{
    Run r = {.o = o, .name = o->device};
    int status = set_up(&r);
    if (status == EXIT_FINE)
        status = check_outputs(&r);
    if (status == EXIT_FINE)
        status = o->schedules ? run_schedules(&r) : run_once(&r);
    if (status == EXIT_FINE)
        status = show(&r);
    clean_up(&r);
    return status;
}

static int note_shapes(const Run *r, RunCounted *out)
{
    out->shapes = calloc(r->args.len + 1, sizeof *out->shapes);
    if (!out->shapes)
        return out_of_memory();
    for (size_t i = 0; i < r->args.len; i++) {
        const RunArg *a = &r->args.data[i];
        RunShape *s = &out->shapes[out->nshapes];
        const int most = sizeof s->extent / sizeof *s->extent;
        if (a->param.kind == TILE_ARG_SCALAR || a->rank < 1 || a->rank > most)
            continue;
        snprintf(s->name, sizeof s->name, "%s", a->param.name);
        s->rank = a->rank;
        memcpy(s->extent, a->shape, (size_t)a->rank * sizeof *s->extent);
        if (tile_dtype_bits(a->dtype) < 8)
            s->extent[a->rank - 1] = a->last_elements;
        out->nshapes++;
    }
    return EXIT_FINE;
}

/* Of this machine: a device's may be those of the GPU that is emulated. */
static int own_processors(void)
{
    tl_processors allowed;
    tl_processors_allowed(&allowed);
    return tl_processors_quota("", tl_processors_count(&allowed));
}

/* What a launch would be. Arrays have addresses by now, but no elements. */
static int plan(const Run *r, RunCounted *out)
{
    int64_t grid[6];
    size_t naxes = 0;
    const char *symbol = "";
    if (r->o->grid && read_grid(r->o->grid, grid, &naxes) != EXIT_FINE)
        return EXIT_USAGE;
    if (tile_launch_plan(r->kernel, r->launch, r->args.nparams, r->o->grid ? grid : NULL, naxes,
                         &out->programs, &symbol) != TILE_OK)
        return run_error();
    snprintf(out->symbol, sizeof out->symbol, "%s", symbol);
    out->processors = own_processors();
    for (size_t i = 0; i < r->args.len; i++)
        if (r->args.data[i].param.kind != TILE_ARG_SCALAR && !r->args.data[i].same_as)
            out->bytes += (double)r->args.data[i].bytes;
    return EXIT_FINE;
}

static int fill_and_launch(Run *r)
{
    int status = run_args_fill(&r->args);
    if (status == EXIT_FINE)
        status = launch(r);
    return status == EXIT_FINE ? fetch_arrays(r) : status;
}

int run_counted(const Options *o, const char *device, RunWanted *wanted, void *user,
                RunCounted *out)
{
    *out = (RunCounted){0};
    Run r = {.o = o, .name = device, .counted = &out->text, .args.empty = true};
    int status = set_up(&r);
    if (status == EXIT_FINE)
        status = note_shapes(&r, out);
    if (status == EXIT_FINE)
        status = upload_arrays(&r);
    if (status == EXIT_FINE)
        status = plan(&r, out);
    if (status == EXIT_FINE && wanted(user, out))
        status = fill_and_launch(&r);
    clean_up(&r);
    return status;
}

void run_counted_free(RunCounted *counted)
{
    free(counted->text);
    free(counted->shapes);
    *counted = (RunCounted){0};
}
