/* tuned.c: which tuning results a compilation uses: --tune FILE, else the file beside the source.
 * --tune off, or TILE_TUNE=off, is none. */
#include "tools/tuned.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds and reads the file; none is no error, unless it was asked for by name. */
static int read_file(const Options *o, Tuned *out)
{
    const char *setting = o->tune ? o->tune : getenv("TILE_TUNE");
    char why[512];
    *out = (Tuned){0};
    if ((setting && strcmp(setting, "off") == 0) || strcmp(o->input, "-") == 0)
        return EXIT_FINE;
    out->path = o->tune ? strdup(o->tune) : tl_tune_path(o->input);
    if (!out->path)
        return out_of_memory();
    if (o->tune && access(o->tune, F_OK) != 0)
        return usage_error("--tune: there is no file '%s'", o->tune);
    tile_status status = tl_tune_read(out->path, &out->rows.file, why, sizeof why);
    if (status == TILE_NO_MEMORY)
        return usage_error("%s: %s", out->path, why);
    if (status == TILE_OK && !o->tune && out->rows.file.len &&
        !tl_tune_may_read(o->input, why, sizeof why)) {
        tl_tune_file_free(&out->rows.file);
        status = TILE_IO;
    }
    if (status != TILE_OK)
        fprintf(stderr, "%s: warning: the tuning results are not used: %s\n", out->path, why);
    return EXIT_FINE;
}

static void enter(const Tuned *t, tilec_options *compile)
{
    compile->tuned = t->rows.data;
    compile->ntuned = t->rows.len;
}

int tuned_read(const Options *o, const char *targets, tilec_options *compile, Tuned *out)
{
    int status = read_file(o, out);
    out->targets = strdup(targets ? targets : "cpu");
    if (!out->targets)
        return out_of_memory();
    char *rest = NULL;
    for (char *name = strtok_r(out->targets, ",", &rest); name && status == EXIT_FINE;
         name = strtok_r(NULL, ",", &rest)) {
        tl_tune_device device;
        tl_tune_device_of_target(name, &device);
        device.name[0] = 0; /* the program may run elsewhere */
        if (tl_tune_select(&out->rows, &device, name) != TILE_OK)
            status = usage_error("%s", tile_last_error());
    }
    enter(out, compile);
    return status;
}

int tuned_read_device(const Options *o, tile_device *device, tilec_options *compile, Tuned *out)
{
    tl_tune_device like;
    int status = read_file(o, out);
    if (status == EXIT_FINE && out->rows.file.len &&
        (tl_tune_device_of(device, &like) != TILE_OK ||
         tl_tune_select(&out->rows, &like, NULL) != TILE_OK))
        status = usage_error("%s", tile_last_error());
    enter(out, compile);
    return status;
}

void tuned_free(Tuned *tuned)
{
    tl_tune_rows_free(&tuned->rows);
    free(tuned->targets);
    free(tuned->path);
}
