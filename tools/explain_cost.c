/* explain_cost.c: what kernels cost, as text: their instructions by class, what limits them,
 * avoidable costs, and how their forms compare. The figures are the report's. */
#include "ir/support/number.h"
#include "tools/explain_cost.h"

#include <stdio.h>
#include <string.h>

enum { HEAD = 16 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char MATRIX[] = "matrix instructions";

/* ---- instructions ---- */

typedef struct Sum {
    uint32_t all, trip, matrix, matrix_trip;
} Sum;

static Sum sum_of(const tilec_report_kernel *k)
{
    Sum s = {0};
    for (size_t i = 0; i < k->nmix; i++) {
        bool matrix = strcmp(k->mix[i].name, MATRIX) == 0;
        s.all += k->mix[i].all;
        s.trip += k->mix[i].trip;
        s.matrix += matrix ? k->mix[i].all : 0;
        s.matrix_trip += matrix ? k->mix[i].trip : 0;
    }
    return s;
}

static void show_count(const char *name, uint32_t all, uint32_t trip, const Sum *s)
{
    printf("         %-28s %8u", name, all);
    if (s->trip)
        printf(" %8u", trip);
    if (s->trip && s->matrix_trip)
        printf(" %s", TL_NUMBER("%10.2f", (double)trip / s->matrix_trip));
    putchar('\n');
}

void explain_mix(const tilec_report_kernel *k)
{
    Sum s = sum_of(k);
    if (!k->nmix)
        return;
    printf("\ninstructions of a warp                %8s%s%s   (%s)\n", "all",
           s.trip ? "     trip" : "", s.trip && s.matrix_trip ? " per matrix" : "", k->mix_from);
    for (size_t i = 0; i < k->nmix; i++) {
        const tilec_report_mix *m = &k->mix[i];
        char name[64];
        snprintf(name, sizeof name, m->width ? "%s, %u B" : "%s", m->name, m->width);
        show_count(name, m->all, m->trip, &s);
    }
    show_count("all", s.all, s.trip, &s);
    if (s.trip && k->main_loop >= 0 && k->loops[k->main_loop].position.line)
        printf("           trip: the shortest way round the loop at line %u",
               k->loops[k->main_loop].position.line);
    if (s.trip && k->main_loop >= 0 && k->unrolled != 1)
        printf(", %s of its trips", TL_NUMBER("%g", k->unrolled));
    if (s.trip)
        putchar('\n');
}

/* ---- roofs ---- */

/* Of a loop that the lowering made there are none of a trip: the operation's figures are of it as a
 * whole. */
static bool has_trips(const tilec_report_kernel *k)
{
    return k->main_loop >= 0 && !k->loops[k->main_loop].made;
}

static double of_kernel(const tilec_report_kernel *k, const tilec_report_roof *r)
{
    return has_trips(k) ? r->trip : r->program;
}

static void show_limits(const tilec_report_kernel *k)
{
    const tilec_report_roof *r = k->roofs;
    printf("  limited by %s", r[0].name);
    if (k->nroofs > 1 && of_kernel(k, &r[1]) > 0)
        printf("; next %s, at %s%% of it", r[1].name,
               TL_NUMBER("%.0f", 100 * of_kernel(k, &r[1]) / of_kernel(k, &r[0])));
    printf("\n  to move it: %s\n", r[0].advice);
    if (k->intensity > 0)
        printf("  intensity: %s operations a byte of the second cache; the ridge is at %s\n",
               TL_NUMBER("%.1f", k->intensity), TL_NUMBER("%.0f", k->ridge));
}

void explain_roofs(const tilec_report_kernel *k)
{
    if (!k->nroofs)
        return;
    bool trips = has_trips(k);
    printf("\nat least, cycles of a multiprocessor      %s  program\n", trips ? "trip" : "    ");
    for (size_t i = 0; i < k->nroofs; i++) {
        const tilec_report_roof *r = &k->roofs[i];
        printf("         %-28s", r->name);
        if (trips)
            printf(" %s", TL_NUMBER("%8.0f", r->trip));
        printf(" %s\n", TL_NUMBER("%8.0f", r->program));
    }
    show_limits(k);
}

/* ---- hints ---- */

void explain_hints(const tilec_report_kernel *k, const char *input)
{
    if (!k->nhints)
        return;
    printf("\nhints, what costs most first\n");
    for (size_t i = 0; i < k->nhints; i++) {
        const tilec_report_hint *h = &k->hints[i];
        bool other = strcmp(h->position.file, input) != 0;
        if (h->position.line)
            printf("  %s%s%4u: ", other ? base_name(h->position.file) : "", other ? ":" : "",
                   h->position.line);
        else
            printf("        ");
        printf("%s\n", h->text);
        if (*h->help)
            printf("        %s\n", h->help);
    }
}

/* ---- forms ---- */

static const tilec_report_kernel *first_form(const tilec_report *r,
                                             const tilec_report_kernel *last)
{
    const tilec_report_kernel *k = last;
    while (k > r->kernels && strcmp(k[-1].name, last->name) == 0)
        k--;
    return k;
}

/* The conditions in one line, lines with commas between. */
static void show_condition(const char *text)
{
    for (const char *p = *text ? text : "otherwise"; *p; p++)
        if (*p == '\n')
            printf("; ");
        else
            putchar(*p);
}

void explain_forms(const tilec_report *r, const tilec_report_kernel *last)
{
    const tilec_report_kernel *k = first_form(r, last);
    size_t n = (size_t)(last - k) + 1;
    double best = k->cycles;
    for (size_t i = 1; i < n; i++)
        best = k[i].cycles > 0 && k[i].cycles < best ? k[i].cycles : best;
    if (n < 2)
        return;
    printf("\n\n%s for %s: of %zu forms, the first whose conditions hold runs\n", k->name,
           r->target, n);
    for (size_t i = 0; i < n; i++) {
        Sum s = sum_of(&k[i]);
        printf("  %-12s", k[i].variant);
        if (best > 0)
            printf(" %s times the best", TL_NUMBER("%6.2f", k[i].cycles / best));
        if (s.all)
            printf(", %u instructions%s", s.trip ? s.trip : s.all, s.trip ? " a trip" : "");
        printf("\n  %-12s ", "");
        show_condition(k[i].condition);
        putchar('\n');
    }
}
