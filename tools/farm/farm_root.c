/* farm_root.c: rank 0's second thread: who does what, and the file of results.
 *
 * If a rank dies, mpirun usually ends the job; what had come from it is in the file. Where mpirun
 * is told to go on, a rank that says nothing for long counts as dead, and what it was doing goes to
 * one that asks. */
#include <stdlib.h>
#include <string.h>

#include "ir/support/number.h"
#include "tools/farm/farm.h"

/* The list of one size for one kind of device. */
typedef struct Job {
    int point;
    tl_tune_device device;
    char sizes[256], best[512];
    double best_us;
    uint32_t nconfigs, next, out; /* next: the first that nobody has; out: ranks that work on it */
    uint32_t timed, rejected, kept;
    bool settling, settled, stopped; /* stopped: something was not done */
} Job;

typedef struct Rank {
    tl_tune_device device;
    double heard; /* when */
    bool here, gone, lost; /* said HELLO; said BYE; says nothing */
    FarmOrder order; /* what it is doing, if it is busy */
    size_t job;
    bool busy;
} Rank;

typedef struct Root {
    const Farm *farm;
    char *path; /* of the file */
    Job *jobs;
    size_t njobs;
    Rank *ranks;
    bool started;
    double silence; /* seconds: who says nothing for so long is lost */
    int status;
} Root;

static bool same_device(const tl_tune_device *a, const tl_tune_device *b)
{
    return strcmp(a->target, b->target) == 0 && strcmp(a->name, b->name) == 0 &&
           a->threads == b->threads;
}

/* ---- orders ---- */

static void answer(const Root *r, int rank, const FarmOrder *order, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    char *whole = malloc(sizeof *order + n);
    const FarmOrder next = {.what = FARM_NEXT};
    if (!whole) {
        r->farm->link->send(rank, FARM_TO_RANK, &next, sizeof next);
        return;
    }
    memcpy(whole, order, sizeof *order);
    if (n)
        memcpy(whole + sizeof *order, text, n);
    r->farm->link->send(rank, FARM_TO_RANK, whole, sizeof *order + n);
    free(whole);
}

/* The file as it is, with its text. */
static char *file_text(Root *r)
{
    tl_tune_file file;
    char why[512];
    tile_status status = tl_tune_read(r->path, &file, why, sizeof why);
    if (status != TILE_OK) {
        fprintf(stderr, "%s: %s; repair or remove it\n", r->path, why);
        r->status = EXIT_RUN;
        return NULL;
    }
    char *text = tl_tune_format(&file);
    tl_tune_file_free(&file);
    return text;
}

static Job *job_of(Root *r, const FarmMessage *m)
{
    for (size_t i = 0; i < r->njobs; i++)
        if (r->jobs[i].point == m->point && same_device(&r->jobs[i].device, &m->device))
            return &r->jobs[i];
    Job *more = realloc(r->jobs, (r->njobs + 1) * sizeof *more);
    if (!more)
        return NULL;
    r->jobs = more;
    Job *j = &more[r->njobs++];
    *j = (Job){.point = m->point, .device = m->device, .nconfigs = m->nconfigs};
    memcpy(j->sizes, m->sizes, sizeof j->sizes);
    return j;
}

/* A third of what would be each one's part, so that all are done at about the same time; few at a
 * time, as a rank that dies takes what it has not told with it. */
static uint32_t part_of(const Root *r, const Job *j)
{
    enum { LEAST_CONFIGS = 2, MOST_CONFIGS = 8 };
    uint32_t ranks = 0, left = j->nconfigs - j->next;
    for (int i = 0; i < r->farm->place.size; i++)
        ranks += same_device(&r->ranks[i].device, &j->device) && !r->ranks[i].lost;
    uint32_t part = left / (3 * (ranks ? ranks : 1));
    part = part < LEAST_CONFIGS ? LEAST_CONFIGS : part > MOST_CONFIGS ? MOST_CONFIGS : part;
    return part < left ? part : left;
}

/* What a lost rank was doing for the job; NULL: nothing. */
static Rank *left_behind(const Root *r, const Job *j)
{
    for (int i = 0; i < r->farm->place.size; i++)
        if (r->ranks[i].lost && r->ranks[i].busy && &r->jobs[r->ranks[i].job] == j)
            return &r->ranks[i];
    return NULL;
}

static FarmOrder next_order(Root *r, Job *j)
{
    Rank *lost = left_behind(r, j);
    FarmOrder order = {.what = FARM_NEXT};
    if (lost) {
        lost->busy = false;
        return lost->order;
    }
    if (j->next < j->nconfigs) {
        order = (FarmOrder){FARM_TRY, j->next, part_of(r, j)};
        j->next += order.count;
        j->out++;
    } else if (!j->out && !j->settling) {
        order.what = FARM_SETTLE;
        j->settling = true;
        j->out++;
    }
    return order;
}

static void give_order(Root *r, int rank, const FarmMessage *m)
{
    Job *j = r->status == EXIT_FINE ? job_of(r, m) : NULL;
    FarmOrder order = {.what = FARM_NEXT};
    if (j)
        order = next_order(r, j);
    char *text = order.what == FARM_SETTLE ? file_text(r) : NULL;
    r->ranks[rank].busy = order.what != FARM_NEXT;
    r->ranks[rank].order = order;
    r->ranks[rank].job = j ? (size_t)(j - r->jobs) : 0;
    answer(r, rank, &order, text);
    free(text);
}

/* ---- results ---- */

static void enter(Root *r, const char *text)
{
    tl_tune_file file = {0}, news = {0};
    char why[512] = "";
    if (!*text)
        return;
    int lock = tl_tune_lock(r->path);
    tile_status status = tl_tune_parse(text, strlen(text), &news, why, sizeof why);
    if (status == TILE_OK)
        status = tl_tune_read(r->path, &file, why, sizeof why);
    if (status != TILE_OK) {
        fprintf(stderr, "%s: %s; it is not overwritten\n", r->path, why);
        r->status = EXIT_RUN;
    } else if (tl_tune_merge(&file, &news) != TILE_OK ||
               tl_tune_write(r->path, &file) != TILE_OK) {
        fprintf(stderr, "%s\n", tile_last_error());
        r->status = EXIT_RUN;
    }
    tl_tune_unlock(lock);
    tl_tune_file_free(&file);
    tl_tune_file_free(&news);
}

static void say_job(const Root *r, const Job *j)
{
    tile_tune_result result = {.struct_size = sizeof result,
                               .best_us = j->best_us,
                               .total = j->nconfigs,
                               .timed = j->timed,
                               .rejected = j->rejected,
                               .kept = j->kept,
                               .complete = j->settled && !j->stopped};
    char name[256], threads[32] = "";
    if (j->device.threads)
        snprintf(threads, sizeof threads, ", threads: %d", j->device.threads);
    snprintf(name, sizeof name, "%s (%s%s)", j->device.target,
             *j->device.name ? j->device.name : "any", threads);
    memcpy(result.best, j->best, sizeof result.best);
    tune_say_result(r->farm->o, name, j->sizes, &result);
}

static void take_result(Root *r, int rank, const FarmMessage *m, const char *text)
{
    Job *j = job_of(r, m);
    enter(r, text);
    if (!j)
        return;
    j->out -= r->ranks[rank].busy; /* of a lost one, another has it now */
    r->ranks[rank].busy = false;
    j->stopped |= m->stopped || r->status != EXIT_FINE;
    if (j->settling) {
        j->settled = true;
    } else {
        j->timed += m->timed;
        j->rejected += m->rejected;
        j->kept += m->kept;
    }
    if (*m->best && (j->settling || !*j->best || m->best_us < j->best_us)) {
        memcpy(j->best, m->best, sizeof j->best);
        j->best_us = m->best_us;
    }
    if (!r->farm->o->json && m->timed + m->rejected && !j->settling)
        fprintf(stderr, "%s%s%s: %u of %u are known, %u more by rank %d\n", j->device.target,
                *j->sizes ? " " : "", j->sizes, j->timed + j->rejected + j->kept, j->nconfigs,
                m->timed + m->rejected, rank);
    if (j->settled)
        say_job(r, j);
}

/* ---- the loop ---- */

/* Everyone is told to start when all are there, so that the parts are right from the beginning. */
static void start_ranks(Root *r)
{
    const FarmOrder order = {.what = FARM_START};
    bool all = true;
    for (int i = 0; i < r->farm->place.size; i++)
        all &= r->ranks[i].here || r->ranks[i].lost;
    if (!all || r->started)
        return;
    char *text = file_text(r);
    for (int i = 0; i < r->farm->place.size; i++)
        if (!r->ranks[i].lost)
            answer(r, i, &order, text);
    r->started = true;
    free(text);
}

static void hello(Rank *rank, const FarmMessage *m)
{
    rank->device = m->device;
    rank->here = true;
}

static void take_message(Root *r, int rank, const FarmMessage *m, const char *text)
{
    r->ranks[rank].heard = tune_now();
    r->ranks[rank].lost = false;
    switch ((FarmSays)m->says) {
    case FARM_HELLO: hello(&r->ranks[rank], m); break;
    case FARM_ASKS: give_order(r, rank, m); break;
    case FARM_RESULT: take_result(r, rank, m, text); break;
    case FARM_BYE: r->ranks[rank].gone = true; break;
    case FARM_ALIVE: break;
    }
}

/* Is anyone still there? */
static bool look_around(Root *r, bool *out_all)
{
    bool any = false;
    *out_all = true;
    for (int i = 0; i < r->farm->place.size; i++) {
        Rank *rank = &r->ranks[i];
        bool lost = !rank->gone && tune_now() - rank->heard > r->silence;
        if (lost && !rank->lost)
            fprintf(stderr, "rank %d says nothing any more\n", i);
        rank->lost = lost;
        any |= !rank->gone && !lost;
        *out_all &= !lost;
    }
    return any;
}

/* Who is silent is seen only when every message has been read: writing the file may take long. */
static void serve(Root *r, bool *out_all)
{
    while (look_around(r, out_all)) {
        FarmMessage m;
        int rank;
        size_t size;
        char *data;
        double wait = 0.05;
        start_ranks(r);
        while ((data = r->farm->link->receive(FARM_TO_ROOT, wait, &rank, &size))) {
            wait = 1e-6;
            if (size >= sizeof m) {
                memcpy(&m, data, sizeof m);
                take_message(r, rank, &m, data + sizeof m);
            }
            free(data);
        }
    }
}

int farm_root(const Farm *farm, bool *out_all)
{
    Root r = {.farm = farm, .silence = 20};
    const char *silence = getenv("TILE_FARM_SILENCE");
    r.path = farm->o->output ? strdup(farm->o->output) : tl_tune_path(farm->o->input);
    r.ranks = calloc((size_t)farm->place.size, sizeof *r.ranks);
    if (silence && tl_number_read(silence, NULL) > 0)
        r.silence = tl_number_read(silence, NULL);
    if (!r.path || !r.ranks) {
        out_of_memory();
        farm->link->abandon(EXIT_RUN);
    } else {
        for (int i = 0; i < farm->place.size; i++)
            r.ranks[i].heard = tune_now();
        serve(&r, out_all);
    }
    for (size_t i = 0; i < r.njobs; i++)
        if (!r.jobs[i].settled)
            say_job(&r, &r.jobs[i]);
    fflush(stdout);
    free(r.jobs);
    free(r.ranks);
    free(r.path);
    return r.status;
}
