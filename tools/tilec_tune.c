/* tilec_tune.c: tilec tune: makes arguments as tilec run does, for each size, and has tile_tune
 * find the best configuration for each.
 *
 * On a terminal there is one line, which is rewritten; elsewhere one line per configuration. With
 * --json each is an object on standard output. SIGINT ends the run at the next launch; by then,
 * everything measured is in the file. */
#include "ir/support/number.h"
#include "runtime/tune_file.h"
#include "tools/page.h"
#include "tools/tilec_tune.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_INTERRUPTED = 128 + SIGINT };

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    interrupted = 1;
    signal(signal_number, SIG_DFL); /* the second one ends the program at once */
}

bool tune_interrupted(void)
{
    return interrupted != 0;
}

double tune_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int run_error(void)
{
    fprintf(stderr, "%s\n", tile_last_error());
    return EXIT_RUN;
}

/* ---- what it says ---- */

static void put_json(const char *name, const char *text, bool last)
{
    printf("\"%s\": ", name);
    if (!text)
        fputs("null", stdout);
    else {
        putchar('"');
        for (; *text; text++)
            if ((unsigned char)*text < 0x20)
                printf("\\u%04x", *text);
            else
                printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
        putchar('"');
    }
    fputs(last ? "}\n" : ", ", stdout);
}

static void put_number(const char *name, double value)
{
    printf("\"%s\": %s, ", name, TL_NUMBER("%.6g", value));
}

static void say_json(const Tune *t, const tile_tune_progress *p)
{
    printf("{\"event\": \"%s\", ", p->rejected ? "rejected" : p->step);
    put_json("device", t->device_name, false);
    if (t->rank)
        put_json("rank", t->rank, false);
    put_json("kernel", p->kernel, false);
    put_json("sizes", t->sizes, false);
    put_number("done", (double)p->done);
    put_number("total", (double)p->total);
    put_number("us", p->us);
    put_number("best_us", p->best_us);
    put_number("elapsed_s", p->elapsed);
    put_number("left_s", p->left < 0 ? -1 : p->left);
    put_json("best", p->best, false);
    put_json("rejected", p->rejected, false);
    put_json("config", p->config, true);
    fflush(stdout);
}

static void time_text(double us, char *text, size_t size)
{
    if (us < 1e3)
        snprintf(text, size, "%s us", TL_NUMBER("%.1f", us));
    else if (us < 1e6)
        snprintf(text, size, "%s ms", TL_NUMBER("%.2f", us / 1e3));
    else
        snprintf(text, size, "%s s", TL_NUMBER("%.2f", us / 1e6));
}

static void say_line(Tune *t, const tile_tune_progress *p)
{
    char best[64] = "", left[64] = "";
    if (p->elapsed - t->last < 0.1 && p->done < p->total)
        return;
    t->last = p->elapsed;
    if (p->best)
        time_text(p->best_us, best, sizeof best);
    if (p->left >= 0)
        snprintf(left, sizeof left, ", %s s left", TL_NUMBER("%.0f", ceil(p->left)));
    fprintf(stderr, "\r\033[K%zu of %zu%s%s%s%s%s", p->done, p->total, p->best ? ", best " : "",
            best, p->best ? ": " : "", p->best ? p->best : "", left);
    fflush(stderr);
    t->line_open = true;
}

/* A configuration's first time, or why it has none. */
static void say_plain(const Tune *t, const tile_tune_progress *p)
{
    char time[64];
    if (!p->config || strcmp(p->step, "time") == 0)
        return;
    time_text(p->us, time, sizeof time);
    if (t->rank)
        fprintf(stderr, "%s%s%s", t->rank, t->sizes, *t->sizes ? ": " : "");
    else
        fprintf(stderr, "%zu of %zu: ", p->done, p->total);
    fprintf(stderr, "%s: %s%s", p->config, p->rejected ? "rejected: " : "",
            p->rejected ? p->rejected : time);
    if (!t->rank && !p->rejected && p->left >= 0)
        fprintf(stderr, "; %s s left", TL_NUMBER("%.0f", ceil(p->left)));
    fputc('\n', stderr);
}

static int progress(void *user, const tile_tune_progress *p)
{
    Tune *t = user;
    if (t->o->json)
        say_json(t, p);
    else if (isatty(STDERR_FILENO) && !t->rank)
        say_line(t, p);
    else
        say_plain(t, p);
    return interrupted != 0;
}

void tune_say_result(const Options *o, const char *device, const char *sizes,
                     const tile_tune_result *r)
{
    char time[64];
    if (o->json) {
        printf("{\"event\": \"result\", ");
        put_json("device", device, false);
        put_json("sizes", sizes, false);
        put_number("total", (double)r->total);
        put_number("timed", (double)r->timed);
        put_number("rejected", (double)r->rejected);
        put_number("kept", (double)r->kept);
        put_number("complete", r->complete);
        put_number("best_us", r->best_us);
        put_number("standard_us", r->standard_us);
        put_json("best", *r->best ? r->best : NULL, true);
        return;
    }
    time_text(r->best_us, time, sizeof time);
    printf("%s%s%s: ", device, *sizes ? " " : "", sizes);
    if (*r->best)
        printf("%s, %s%s", r->best, o->model ? "by the model " : "", time);
    else
        printf("no configuration");
    if (r->standard_us > 0 && r->best_us > 0)
        printf(", %s of the default's speed", TL_NUMBER("%.2f", r->standard_us / r->best_us));
    printf(" (of %zu: %zu %s, %zu rejected, %zu known before)%s\n", r->total, r->timed,
           o->model ? "ranked" : "timed", r->rejected, r->kept,
           r->complete ? "" : "; not complete");
}

/* ---- arguments ---- */

static int open_devices(Tune *t)
{
    tile_status status = tile_device_open(t->device_name, &t->device);
    if (status == TILE_BAD_ARGUMENT)
        return usage_error("%s", tile_last_error());
    if (status == TILE_OK)
        status = tile_device_open("ref", &t->ref);
    return status == TILE_OK ? EXIT_FINE : run_error();
}

/* The parameters are those of any instance: here the interpreter's, which is made at once. */
static int make_arguments(Tune *t)
{
    tilec_options c = t->o->compile;
    tile_kernel *kernel = NULL;
    size_t size;
    c.target = "ref";
    c.emit = "image";
    c.one_kernel = 1;
    tilec_status compiled = tilec_compile_file(t->o->input, &c, &t->output);
    int status = report_compile(compiled, t->output);
    if (status != EXIT_FINE)
        return status;
    const void *image = tilec_output_data(t->output, &size);
    if (tile_module_load_image(t->ref, image, size, &t->module) != TILE_OK ||
        tile_kernel_get(t->module, tile_module_kernel_name(t->module, 0), NULL, &kernel) != TILE_OK)
        return run_error();
    status = run_args_make(t->o, kernel, image, &t->args);
    return status == EXIT_FINE ? run_args_upload(&t->args, t->device, &t->launch) : status;
}

static int make_constants(Tune *t)
{
    size_t n = t->o->compile.nconsts;
    t->consts = calloc(n + 1, sizeof *t->consts);
    if (!t->consts)
        return out_of_memory();
    for (size_t i = 0; i < n; i++)
        t->consts[i] = (tile_const){t->o->compile.consts[i].name, 0, t->o->compile.consts[i].value};
    return EXIT_FINE;
}

/* ---- one size on one device ---- */

static bool read_seconds(const char *text, double *out)
{
    char *end;
    *out = tl_number_read(text, &end);
    return end != text && !*end && *out >= 0 && isfinite(*out);
}

static int take_options(Tune *t)
{
    const tilec_options *c = &t->o->compile;
    tile_jit_options *jit = &t->jit;
    tile_tune_options *o = &t->options;
    *jit = (tile_jit_options){.struct_size = sizeof *jit,
                              .include_dirs = c->include_dirs,
                              .ninclude_dirs = c->ninclude_dirs,
                              .opt_level = c->opt_level,
                              .debug = c->debug,
                              .check = c->check,
                              .fp = c->fp,
                              .warps = c->warps,
                              .stages = c->stages};
    *o = (tile_tune_options){.struct_size = sizeof *o,
                             .jit = jit,
                             .consts = t->consts,
                             .file = t->o->output,
                             .progress = progress,
                             .user = t,
                             .again = t->o->again,
                             .model = t->o->model};
    if (t->o->budget && !read_seconds(t->o->budget, &o->budget))
        return usage_error("--budget takes a number of seconds, not '%s'", t->o->budget);
    if (t->o->tolerance && !read_seconds(t->o->tolerance, &o->tolerance))
        return usage_error("--tolerance takes a number of 0 or more, not '%s'", t->o->tolerance);
    return EXIT_FINE;
}

int tune_begin(Tune *t)
{
    int (*const steps[])(Tune *) = {open_devices, make_constants, take_options, make_arguments};
    int status = EXIT_FINE;
    t->args.empty = true;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == EXIT_FINE; i++)
        status = steps[i](t);
    return status;
}

void tune_end(Tune *t)
{
    run_args_free(&t->args);
    free(t->launch);
    free(t->consts);
    tile_module_free(t->module);
    tilec_output_free(t->output);
    tile_device_close(t->ref);
    tile_device_close(t->device);
}

const char *tune_kernel_name(const Tune *t)
{
    const char *kernel = t->o->compile.kernel;
    return kernel ? kernel : tile_module_kernel_name(t->module, 0);
}

static tile_status call(Tune *t, tile_tune_result *out_result)
{
    return tile_tune(t->device, t->o->input, tune_kernel_name(t), t->launch, t->args.nparams,
                     &t->options, out_result);
}

tile_status tune_kernel(Tune *t, tile_tune_result *out_result)
{
    t->options.look = 1;
    tile_status status = call(t, out_result);
    t->options.look = 0;
    if (status != TILE_OK || out_result->complete)
        return status;
    bool fill = t->args.empty && !t->options.model; /* the model reads no array */
    if (fill && run_args_fill(&t->args) != EXIT_FINE)
        return TILE_DRIVER; /* said; the text is still there */
    return call(t, out_result);
}

int tune_status(tile_status status)
{
    return status == TILE_OK          ? interrupted ? EXIT_INTERRUPTED : EXIT_FINE
           : status == TILE_COMPILE   ? EXIT_PROGRAM
           : status == TILE_NOT_FOUND ? EXIT_USAGE
                                      : EXIT_RUN;
}

static int tune_once(const Options *o, const char *device, const char *sizes)
{
    Tune t = {.o = o, .device_name = device, .sizes = sizes};
    tile_tune_result result = TILE_TUNE_RESULT_INIT;
    int status = tune_begin(&t);
    if (status == EXIT_FINE) {
        tile_status tuned = tune_kernel(&t, &result);
        if (t.line_open)
            fputs("\r\033[K", stderr);
        if (tuned != TILE_OK)
            fprintf(stderr, "%s\n", tile_last_error());
        else
            tune_say_result(o, device, sizes, &result);
        status = tune_status(tuned);
    }
    tune_end(&t);
    return status;
}

/* ---- all sizes ---- */

static int tune_sizes(const Options *with, const char *sizes, void *device)
{
    return tune_once(with, device, sizes);
}

static int tune_all_sizes(const Options *o, const char *device)
{
    return sizes_each(o, tune_sizes, (void *)(uintptr_t)device);
}

/* --target: the emulator of each GPU has the arguments, and nothing runs. */
static int model_targets(const Options *o)
{
    char name[64];
    int status = check_targets(o->target);
    for (const char *p = o->target; status == EXIT_FINE && *p;) {
        size_t n = strcspn(p, ",");
        snprintf(name, sizeof name, "%s%.*s", strncmp(p, "emu:", 4) == 0 ? "" : "emu:", (int)n, p);
        status = tune_all_sizes(o, name);
        p += n + (p[n] == ',');
    }
    return status;
}

/* ---- the page ---- */

/* Where results are kept; NULL: no memory. The caller frees it. */
static char *results_path(const Options *o)
{
    return o->output ? strdup(o->output) : tl_tune_path(o->input);
}

static int check_page(const Options *o)
{
    char *path = results_path(o);
    OutputName names[] = {{"the results", path}, {"--html", o->html}};
    int status = path ? check_output_names(o, NULL, names, 2) : out_of_memory();
    free(path);
    return status;
}

/* All that is known of the file's kernels, also from earlier runs. */
static int write_page(const Options *o)
{
    tl_tune_file file = {0};
    char why[512], *path = results_path(o), *text = NULL;
    tile_status read = path ? tl_tune_read(path, &file, why, sizeof why) : TILE_NO_MEMORY;
    if (read == TILE_OK)
        text = tl_tune_format(&file);
    int status = text              ? page_write(o->html, PAGE_TUNE, o->input, text, strlen(text))
                 : read == TILE_IO ? usage_error("%s: %s", path, why)
                                   : out_of_memory();
    tl_tune_file_free(&file);
    free(text);
    free(path);
    return status;
}

static int tune_devices(const Options *o)
{
    const char *device = o->device ? o->device : getenv("TILE_DEVICE");
    if (o->target && (!o->model || o->device))
        return usage_error("--target is for --model, without --device");
    if (o->model && !o->target)
        return usage_error("--model: name the GPUs with --target");
    if (o->farm && o->model)
        return usage_error("--farm times on devices; --model needs none");
    if (o->farm && o->html)
        return usage_error("--farm writes no page: give --html to a run without it, which times "
                           "nothing again");
    int status = sizes_check(o);
    if (status != EXIT_FINE)
        return status;
    signal(SIGINT, interrupt);
    if (o->farm) {
        signal(SIGTERM, interrupt); /* what mpirun sends when it is interrupted, or a rank dies */
        return command_tune_farm(o, device ? device : "cpu");
    }
    return o->target ? model_targets(o) : tune_all_sizes(o, device ? device : "cpu");
}

/* A run that was interrupted, or failed at one size, has results, too. */
int command_tune(const Options *o)
{
    int status = o->html ? check_page(o) : EXIT_FINE;
    if (status != EXIT_FINE)
        return status;
    status = tune_devices(o);
    if (!o->html || status == EXIT_USAGE || status == EXIT_PROGRAM)
        return status;
    int written = write_page(o);
    return status == EXIT_FINE ? written : status;
}
