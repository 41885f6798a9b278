/* farm_worker.c: what every rank of the farm does: for each of the sizes, it asks rank 0 for
 * something to do, until nothing is left.
 *
 * It keeps the results that it knows in a file of its own, which tile_tune reads and writes as
 * ever, and sends rank 0 what has changed in it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/farm/farm.h"

typedef struct Worker {
    const Farm *farm;
    char folder[64], file[80];
    tl_tune_device device;
    int point; /* of the sizes, the one that is worked on */
    char name[32];
} Worker;

/* ---- messages ---- */

static void tell(const Worker *w, const FarmMessage *message, const char *text)
{
    size_t n = strlen(text);
    char *whole = malloc(sizeof *message + n);
    if (!whole)
        return;
    memcpy(whole, message, sizeof *message);
    memcpy(whole + sizeof *message, text, n);
    w->farm->link->send(0, FARM_TO_ROOT, whole, sizeof *message + n);
    free(whole);
}

static FarmMessage message_of(const Worker *w, FarmSays says, const Tune *t, uint32_t nconfigs)
{
    FarmMessage m = {.says = says, .point = w->point, .nconfigs = nconfigs, .device = w->device};
    if (t)
        snprintf(m.sizes, sizeof m.sizes, "%s", t->sizes);
    return m;
}

static bool write_file(const Worker *w, const char *text)
{
    FILE *f = fopen(w->file, "w");
    bool ok = f && fputs(text, f) >= 0;
    return f && fclose(f) == 0 && ok;
}

/* Waits for the answer; a text that came with it becomes the worker's file. False: said. */
static bool hear(const Worker *w, FarmOrder *out)
{
    int from;
    size_t size;
    char *data = w->farm->link->receive(FARM_TO_RANK, 0, &from, &size);
    bool fine = data && size >= sizeof *out;
    if (fine)
        memcpy(out, data, sizeof *out);
    if (fine && size > sizeof *out && !write_file(w, data + sizeof *out)) {
        usage_error("--farm: cannot write '%s'", w->file);
        fine = false;
    }
    free(data);
    return fine;
}

/* ---- one order ---- */

/* What the worker's file has that `old` has not, as text; to be freed. */
static char *news(const Worker *w, const tl_tune_file *old)
{
    char why[256];
    tl_tune_file now;
    if (tl_tune_read(w->file, &now, why, sizeof why) != TILE_OK)
        return NULL;
    tl_tune_keep_new(&now, old);
    char *text = now.len ? tl_tune_format(&now) : strdup("");
    tl_tune_file_free(&now);
    return text;
}

static int send_result(const Worker *w, const Tune *t, uint32_t nconfigs,
                       const tile_tune_result *result, const tl_tune_file *old)
{
    FarmMessage m = message_of(w, FARM_RESULT, t, nconfigs);
    char *text = news(w, old);
    m.timed = (uint32_t)result->timed;
    m.rejected = (uint32_t)result->rejected;
    m.kept = (uint32_t)result->kept;
    m.stopped = !result->complete;
    m.best_us = result->best_us;
    snprintf(m.best, sizeof m.best, "%s", result->best);
    tell(w, &m, text ? text : "");
    free(text);
    return text ? EXIT_FINE : usage_error("--farm: '%s' cannot be read", w->file);
}

static int obey(const Worker *w, Tune *t, const FarmOrder *order, const char *const *configs,
                uint32_t nconfigs)
{
    tile_tune_result result = TILE_TUNE_RESULT_INIT;
    tl_tune_file old;
    char why[256];
    const char **only = calloc(order->count + 1, sizeof *only);
    if (!only || tl_tune_read(w->file, &old, why, sizeof why) != TILE_OK) {
        free(only);
        return usage_error("--farm: '%s' cannot be read", w->file);
    }
    for (uint32_t i = 0; i < order->count && order->first + i < nconfigs; i++)
        only[i] = configs[order->first + i];
    t->options.only = order->what == FARM_TRY ? only : NULL;
    t->options.again = order->what == FARM_TRY && w->farm->o->again;
    tile_status tuned = tune_kernel(t, &result);
    int status = tune_status(tuned);
    if (tuned != TILE_OK)
        fprintf(stderr, "%s%s\n", w->name, tile_last_error());
    int sent = send_result(w, t, nconfigs, &result, &old);
    t->options.only = NULL;
    tl_tune_file_free(&old);
    free(only);
    return status == EXIT_FINE ? sent : status;
}

/* ---- one size ---- */

static tilec_output *list_configs(const Tune *t, const char *const **out, uint32_t *out_count)
{
    tilec_options c = t->o->compile;
    tilec_output *output = NULL;
    size_t n = 0;
    c.target = "ref";
    c.kernel = tune_kernel_name(t);
    c.tunings = 1;
    c.cache = "off";
    tilec_status status = tilec_compile_file(t->o->input, &c, &output);
    const tilec_tuning *rows = output ? tilec_output_tunings(output, &n) : NULL;
    *out_count = 0;
    *out = NULL;
    if (status == TILEC_OK && n == 1) {
        *out = rows->configs;
        *out_count = (uint32_t)rows->nconfigs;
    }
    return output;
}

static int ask_and_obey(const Worker *w, Tune *t, const char *const *configs, uint32_t nconfigs)
{
    const double budget = t->options.budget, start = tune_now();
    int status = EXIT_FINE;
    while (status == EXIT_FINE && !tune_interrupted()) {
        FarmOrder order;
        FarmMessage m = message_of(w, FARM_ASKS, t, nconfigs);
        t->options.budget = budget > 0 ? budget - (tune_now() - start) : 0;
        if (t->options.budget < 0)
            break;
        tell(w, &m, "");
        if (!hear(w, &order))
            return EXIT_RUN;
        if (order.what == FARM_NEXT)
            break;
        status = obey(w, t, &order, configs, nconfigs);
    }
    return status;
}

static int work_on_size(const Options *with, const char *sizes, void *user)
{
    Worker *w = user;
    Tune t = {.o = with, .device_name = w->farm->device, .sizes = sizes, .rank = w->name};
    const char *const *configs;
    uint32_t n = 0;
    int status = tune_begin(&t);
    t.options.file = w->file;
    tilec_output *output = status == EXIT_FINE ? list_configs(&t, &configs, &n) : NULL;
    if (status == EXIT_FINE && n == 0) { /* what is wrong, tile_tune says better */
        tile_tune_result result = TILE_TUNE_RESULT_INIT;
        status = tune_status(tune_kernel(&t, &result));
        fprintf(stderr, "%s\n", tile_last_error());
    } else if (status == EXIT_FINE) {
        status = ask_and_obey(w, &t, configs, n);
    }
    tilec_output_free(output);
    tune_end(&t);
    w->point++;
    return status;
}

/* ---- all of it ---- */

static int open_folder(Worker *w)
{
    const char *base = getenv("TMPDIR");
    snprintf(w->folder, sizeof w->folder, "%s/tile-farm-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(w->folder))
        return usage_error("--farm: cannot make a folder '%s'", w->folder);
    snprintf(w->file, sizeof w->file, "%s/r.json", w->folder);
    return EXIT_FINE;
}

static int know_device(Worker *w)
{
    tile_device *device = NULL;
    tile_status status = tile_device_open(w->farm->device, &device);
    if (status == TILE_OK)
        status = tl_tune_device_of(device, &w->device);
    tile_device_close(device);
    if (status != TILE_OK)
        fprintf(stderr, "%s%s\n", w->name, tile_last_error());
    return status == TILE_OK ? EXIT_FINE : EXIT_RUN;
}

int farm_work(const Farm *farm)
{
    Worker w = {.farm = farm};
    FarmOrder order;
    snprintf(w.name, sizeof w.name, "rank %d: ", farm->place.rank);
    int status = open_folder(&w);
    if (status == EXIT_FINE)
        status = know_device(&w);
    FarmMessage hello = message_of(&w, FARM_HELLO, NULL, 0);
    tell(&w, &hello, ""); /* also when something is wrong: the others wait for it */
    if (!hear(&w, &order) && status == EXIT_FINE)
        status = EXIT_RUN;
    if (status == EXIT_FINE)
        status = sizes_each(farm->o, work_on_size, &w);
    unlink(w.file);
    rmdir(w.folder);
    return status;
}

void farm_bye(const Farm *farm)
{
    const FarmMessage bye = {.says = FARM_BYE};
    farm->link->send(0, FARM_TO_ROOT, &bye, sizeof bye);
}
