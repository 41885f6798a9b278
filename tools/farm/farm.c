/* farm.c: tilec tune --farm: configurations are shared among the ranks of an MPI job.
 *
 * Every rank makes the arguments for itself and times on a device of its own. Rank 0 also has a
 * thread that hands out parts of the list, a few configurations at a time, so that a slow rank gets
 * fewer, and enters what comes back in the file at once. Ranks whose devices are of one kind share
 * a list; when it is used up, the one that came last compares the best ones. */
#include "tools/farm/farm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/host/processors.h"

static const FarmLink *load(void)
{
    void *library = dlopen(TL_FARM_FILE, RTLD_NOW | RTLD_LOCAL);
    const FarmLink *link = library ? dlsym(library, FARM_LINK_SYMBOL) : NULL;
    if (!link)
        usage_error("--farm: MPI cannot be used: %s (" TL_FARM_FILE " is built where MPI is found; "
                    "Debian: libopenmpi-dev, openmpi-bin)",
                    dlerror());
    else if (link->version != FARM_LINK_VERSION)
        usage_error("--farm: " TL_FARM_FILE " is of another version of tilec");
    else
        return link;
    return NULL; /* the library stays loaded: MPI may have threads */
}

/* ---- this rank's device ---- */

typedef struct Seat {
    char device[64]; /* as asked for */
    tl_processors allowed;
} Seat;

/* Its number among those of this machine that ask for the same, and how many these are. */
static int number_of_seat(const Seat *all, int n, int mine, bool same_processors, int *out_count)
{
    int number = 0;
    *out_count = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(all[i].device, all[mine].device) != 0 ||
            (same_processors && memcmp(&all[i].allowed, &all[mine].allowed,
                                       sizeof all[i].allowed) != 0))
            continue;
        number += i < mine;
        ++*out_count;
    }
    return number;
}

/* Of the processors that `count` ranks may use, part `number`; at least one. */
static void take_processors(const tl_processors *allowed, int number, int count)
{
    cpu_set_t mine[TL_MAX_PROCESSORS / CPU_SETSIZE];
    int n = tl_processors_count(allowed), from = number * n / count,
        to = (number + 1) * n / count, at = 0;
    to = to > from ? to : from + 1;
    memset(mine, 0, sizeof mine);
    for (int i = 0; i < TL_MAX_PROCESSORS; i++)
        if (tl_processors_has(allowed, i)) {
            if (at >= from && at < to)
                CPU_SET_S(i, sizeof mine, mine);
            at++;
        }
    sched_setaffinity(0, sizeof mine, mine);
}

/* "cuda" and "hip" are the one of the rank's number on its machine; on "cpu" it gets its share of
 * the processors, unless mpirun has seen to that. */
static int take_seat(Farm *farm, const char *device)
{
    Seat *all = calloc((size_t)farm->place.nhere + 1, sizeof *all), *mine;
    int count, number;
    if (!all)
        return out_of_memory();
    mine = &all[farm->place.nhere];
    snprintf(mine->device, sizeof mine->device, "%s", device);
    tl_processors_allowed(&mine->allowed);
    farm->link->share(mine, all, sizeof *mine);
    snprintf(farm->device, sizeof farm->device, "%s", device);
    if (strcmp(device, "cuda") == 0 || strcmp(device, "hip") == 0) {
        number = number_of_seat(all, farm->place.nhere, farm->place.here, false, &count);
        snprintf(farm->device, sizeof farm->device, "%s:%d", device, number);
    } else if (strncmp(device, "cpu", 3) == 0) {
        number = number_of_seat(all, farm->place.nhere, farm->place.here, true, &count);
        take_processors(&mine->allowed, number, count);
    }
    free(all);
    return EXIT_FINE;
}

/* ---- all parts ---- */

typedef struct Part {
    const Farm *farm;
    int status;
    bool all; /* the root's: it has heard of everyone to the end */
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done; /* no sign of life is needed any more */
} Part;

static void *run_root(void *user)
{
    Part *part = user;
    part->status = farm_root(part->farm, &part->all);
    return NULL;
}

/* Tells rank 0 every second that this rank lives, also while it compiles for long. */
static void *run_pulse(void *user)
{
    Part *part = user;
    const FarmMessage alive = {.says = FARM_ALIVE};
    pthread_mutex_lock(&part->lock);
    while (!part->done) {
        struct timespec next;
        clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_sec++;
        if (pthread_cond_timedwait(&part->over, &part->lock, &next) != 0 && !part->done)
            part->farm->link->send(0, FARM_TO_ROOT, &alive, sizeof alive);
    }
    pthread_mutex_unlock(&part->lock);
    return NULL;
}

static void stop_pulse(Part *part, pthread_t thread)
{
    pthread_mutex_lock(&part->lock);
    part->done = true;
    pthread_cond_signal(&part->over);
    pthread_mutex_unlock(&part->lock);
    pthread_join(thread, NULL);
}

static int run(Farm *farm)
{
    Part part = {.farm = farm, .all = true};
    pthread_t root, pulse;
    pthread_condattr_t steady;
    bool is_root = farm->place.rank == 0;
    pthread_mutex_init(&part.lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&part.over, &steady);
    pthread_condattr_destroy(&steady);
    if ((is_root && pthread_create(&root, NULL, run_root, &part) != 0) ||
        pthread_create(&pulse, NULL, run_pulse, &part) != 0) {
        usage_error("--farm: no thread can be had");
        farm->link->abandon(EXIT_RUN);
    }
    int status = farm_work(farm);
    stop_pulse(&part, pulse); /* BYE is a rank's last word */
    farm_bye(farm);
    if (is_root)
        pthread_join(root, NULL);
    status = status == EXIT_FINE ? part.status : status;
    pthread_cond_destroy(&part.over);
    pthread_mutex_destroy(&part.lock);
    if (!part.all)
        farm->link->abandon(status == EXIT_FINE ? EXIT_RUN : status);
    return status;
}

int command_tune_farm(const Options *o, const char *device)
{
    static char lines[BUFSIZ]; /* glibc's own would be one byte, as nothing was buffered before */
    char why[256];
    Farm farm = {.o = o, .link = load()};
    if (!farm.link)
        return EXIT_USAGE;
    if (!farm.link->join(&farm.place, why, sizeof why))
        return usage_error("--farm: %s", why);
    setvbuf(stderr, lines, _IOLBF, sizeof lines); /* mpirun mixes what the ranks write */
    int status = take_seat(&farm, device);
    if (status == EXIT_FINE)
        status = run(&farm);
    else
        farm.link->abandon(status);
    farm.link->leave();
    return status;
}
