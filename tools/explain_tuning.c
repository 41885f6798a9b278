/* explain_tuning.c: what tuning has found, as tilec explain shows it: how configurations ranked,
 * and why others were rejected. With --config, of that one only. */
#include <stdlib.h>
#include <string.h>

#include "ir/support/number.h"
#include "tools/tilec_options.h"
#include "tools/tuned.h"

enum { MOST_RANKED = 10 }; /* configurations that the text lists */

static int by_time(const void *a, const void *b)
{
    const tl_tune_time *const *x = a, *const *y = b;
    if (!(*x)->rejected != !(*y)->rejected)
        return (*x)->rejected ? 1 : -1;
    if ((*x)->rejected)
        return strcmp((*x)->rejected, (*y)->rejected);
    return (*x)->us < (*y)->us ? -1 : (*x)->us > (*y)->us;
}

static void show_head(const tl_tune_result *r)
{
    const char *key = r->keys;
    printf("tuning of %s for %s", r->kernel, r->device.target);
    if (*r->device.name)
        printf(" (%s%s", r->device.name, r->device.threads ? "" : ")");
    if (*r->device.name && r->device.threads)
        printf(", %d threads)", r->device.threads);
    printf("%s%s", *r->constants ? ", " : "", r->constants);
    for (size_t i = 0; i < r->nkeys; i++) {
        int n = (int)strcspn(key, " ");
        printf(", %.*s = %lld", n, key, (long long)r->sizes[i]);
        key += n + (key[n] == ' ');
    }
    fputs(strcmp(r->how, "model") == 0 ? "; by the model, not timed" : "", stdout);
    puts(r->open ? "; the best ones were not compared yet" : "");
}

static bool is_one(const tl_tune_time *t, const char *config)
{
    return config && strcmp(t->config, config) == 0;
}

/* What the choice gains over what is compiled where there are no results. */
static void show_gain(const tl_tune_result *r)
{
    const tl_tune_time *best = r->best ? tl_tune_time_of(r, r->best) : NULL,
                       *standard = r->standard ? tl_tune_time_of(r, r->standard) : NULL;
    if (best && standard && !standard->rejected && best->us > 0)
        printf("  %s of the default's speed\n", TL_NUMBER("%.2f", standard->us / best->us));
}

static void show_ranked(const tl_tune_result *r, const tl_tune_time *t, size_t rank)
{
    printf("  %4zu %s us  %s%s%s\n", rank, TL_NUMBER("%12.5g", t->us), t->config,
           is_one(t, r->best) ? "   chosen" : "", is_one(t, r->standard) ? "   default" : "");
}

/* Those of one reason are one line. */
static void show_rejected(const tl_tune_time **sorted, size_t n)
{
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && strcmp(sorted[i]->rejected, sorted[next]->rejected) == 0;)
            next++;
        printf("  rejected: %s\n           %s", sorted[i]->rejected, sorted[i]->config);
        if (next - i > 1)
            printf(" and %zu more", next - i - 1);
        putchar('\n');
    }
}

static void show_result(const tl_tune_result *r, const char *config)
{
    const tl_tune_time **sorted = calloc(r->ntimes + 1, sizeof *sorted);
    size_t ranked = 0;
    if (!sorted)
        return;
    for (size_t i = 0; i < r->ntimes; i++) {
        sorted[i] = &r->times[i];
        ranked += !r->times[i].rejected;
    }
    qsort(sorted, r->ntimes, sizeof *sorted, by_time);
    show_head(r);
    if (!config)
        show_gain(r);
    for (size_t i = 0; i < ranked; i++)
        if (config ? is_one(sorted[i], config)
                   : i < MOST_RANKED || is_one(sorted[i], r->best) ||
                         is_one(sorted[i], r->standard))
            show_ranked(r, sorted[i], i + 1);
    if (ranked > MOST_RANKED && !config)
        printf("       of %zu that can run\n", ranked);
    const tl_tune_time *one = config ? tl_tune_time_of(r, config) : NULL;
    if (!config)
        show_rejected(sorted + ranked, r->ntimes - ranked);
    else if (!one)
        printf("  '%s' was not tried\n", config);
    else if (one->rejected)
        show_rejected(&one, 1);
    free(sorted);
}

int explain_tuning(const Options *o, const char *target, bool *shown)
{
    tilec_options unused = o->compile;
    tl_tune_device device;
    Tuned tuned;
    int status = tuned_read(o, target, &unused, &tuned);
    tl_tune_device_of_target(target, &device);
    for (size_t i = 0; status == EXIT_FINE && i < tuned.rows.file.len; i++) {
        const tl_tune_result *r = &tuned.rows.file.results[i];
        if (!tl_tune_serves(r->device.target, device.target) ||
            (o->compile.kernel && strcmp(o->compile.kernel, r->kernel) != 0))
            continue;
        if (*shown)
            putchar('\n');
        show_result(r, o->compile.config);
        *shown = true;
    }
    tuned_free(&tuned);
    return status;
}
