/* Where the workers of a pool run, and how many there are: the orders on machines that this one is
 * not (folders with the files of Linux), lists, quotas of control groups; and on this machine: pins
 * hold, and launches of two processes and of many threads end. */
#include "runtime/host/processors.h"
#include "runtime/include/tile_jit.h"
#include "test/unit/unit.h"
#include <errno.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAYS(word)                                                                                 \
    do {                                                                                           \
        if (!CHECK(strstr(tile_last_error(), (word)) != NULL))                                     \
            fprintf(stderr, "    no '%s' in: %s\n", (word), tile_last_error());                    \
    } while (0)

/* ---- folders that look like a machine ---- */

static char root[64];

static void open_root(void)
{
    snprintf(root, sizeof root, "/tmp/affinity_test.XXXXXX");
    CHECK(mkdtemp(root) != NULL);
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s;
    (void)type;
    (void)at;
    return remove(path);
}

static void close_root(void)
{
    CHECK_INT(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void put_file(const char *text, const char *format, ...)
{
    char path[512];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", root);
    va_list args;
    va_start(args, format);
    vsnprintf(path + n, sizeof path - n, format, args);
    va_end(args);
    for (char *slash = path + n; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    if (!CHECK(f != NULL))
        return;
    fprintf(f, "%s\n", text);
    CHECK_INT(fclose(f), 0);
}

/* ---- orders ---- */

enum { PACKAGES, NODES, CACHES, CORES, THREADS, LEVELS }; /* each: so many in one above */
enum { HAS_NODES = 1, HAS_CACHES = 2, HAS_TOPOLOGY = 4, HAS_ALL = 7 };
enum { MAX_CPUS = 32, TEXT_BYTES = 200 };

/* Numbers count along the levels, that which changes fastest first. */
typedef struct Machine {
    int size[LEVELS], fastest[LEVELS];
    int files; /* HAS_ */
} Machine;

/* Firmware numbers the second threads of cores after all first ones, or beside them; some goes
 * round the nodes. */
#define FIRST_THREADS_FIRST                                                                        \
    {                                                                                              \
        CORES, CACHES, NODES, PACKAGES, THREADS                                                    \
    }
#define THREADS_TOGETHER                                                                           \
    {                                                                                              \
        THREADS, CORES, CACHES, NODES, PACKAGES                                                    \
    }
#define ROUND_THE_NODES                                                                            \
    {                                                                                              \
        NODES, PACKAGES, CORES, CACHES, THREADS                                                    \
    }

static int cpus_of(const Machine *m)
{
    int n = 1;
    for (int level = 0; level < LEVELS; level++)
        n *= m->size[level];
    return n;
}

static bool are_together(const Machine *m, int a, int b, int level)
{
    for (int i = 0; i < LEVELS; i++) {
        int at = m->fastest[i], size = m->size[at];
        if (at <= level && a % size != b % size)
            return false;
        a /= size;
        b /= size;
    }
    return true;
}

/* The members of a processor's group, as "0,1,4,5". */
static const char *group(const Machine *m, int p, int level)
{
    static char text[TEXT_BYTES];
    int n = 0;
    for (int i = 0; i < cpus_of(m); i++)
        if (are_together(m, i, p, level))
            n += snprintf(text + n, sizeof text - (size_t)n, n ? ",%d" : "%d", i);
    return text;
}

static void put_machine(const Machine *m)
{
    static const char cpu[] = "/sys/devices/system/cpu/cpu%d/%s";
    int nodes = 0;
    for (int p = 0; p < cpus_of(m); p++) {
        if (m->files & HAS_TOPOLOGY) {
            put_file(group(m, p, PACKAGES), cpu, p, "topology/core_siblings_list");
            put_file(group(m, p, CORES), cpu, p, "topology/thread_siblings_list");
        }
        if (m->files & HAS_CACHES) {
            put_file(group(m, p, CORES), cpu, p, "cache/index0/shared_cpu_list");
            put_file(group(m, p, CACHES), cpu, p, "cache/index1/shared_cpu_list");
        }
        if ((m->files & HAS_NODES) && atoi(group(m, p, NODES)) == p)
            put_file(group(m, p, NODES), "/sys/devices/system/node/node%d/cpulist", nodes++);
    }
    char online[16];
    snprintf(online, sizeof online, "0-%d", nodes); /* the last has memory only */
    if (m->files & HAS_NODES) {
        put_file("", "/sys/devices/system/node/node%d/cpulist", nodes);
        put_file(online, "/sys/devices/system/node/online");
    }
}

/* The set of the numbers in "0 1 8". */
static tl_processors set_of(const char *text)
{
    tl_processors set = {0};
    char *end;
    for (long p = strtol(text, &end, 10); end != text; p = strtol(text, &end, 10)) {
        CPU_SET_S((size_t)p, sizeof set.part, set.part);
        text = end;
    }
    return set;
}

/* What TILE_AFFINITY=said means to a process that may use `allowed`: "0 8". */
static const char *places(const char *said, const char *allowed)
{
    static char text[TEXT_BYTES];
    tl_processors set = set_of(allowed);
    int *place, n, length = 0;
    tile_status status = tl_affinity_places(root, "TILE_AFFINITY", said, &set, &place, &n);
    if (status != TILE_OK)
        return tile_status_name(status);
    *text = 0;
    for (int i = 0; i < n; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, i ? " %d" : "%d", place[i]);
    free(place);
    return text;
}

static void orders(void)
{
    static const struct {
        Machine machine;
        const char *allowed, *compact, *spread;
    } rows[] = {
        {{{2, 1, 1, 2, 2}, FIRST_THREADS_FIRST, HAS_ALL},
         "0 1 2 3 4 5 6 7",
         "0 4 1 5 2 6 3 7",
         "0 2 1 3 4 6 5 7"},
        {{{2, 1, 1, 2, 2}, THREADS_TOGETHER, HAS_ALL},
         "0 1 2 3 4 5 6 7",
         "0 1 2 3 4 5 6 7",
         "0 4 2 6 1 5 3 7"},
        /* nodes of a package, caches of a node */
        {{{1, 2, 2, 2, 1}, FIRST_THREADS_FIRST, HAS_ALL},
         "0 1 2 3 4 5 6 7",
         "0 1 2 3 4 5 6 7",
         "0 4 2 6 1 5 3 7"},
        {{{1, 2, 2, 2, 1}, ROUND_THE_NODES, HAS_ALL},
         "0 1 2 3 4 5 6 7",
         "0 2 4 6 1 3 5 7",
         "0 1 4 5 2 3 6 7"},
        {{{2, 2, 1, 2, 1}, FIRST_THREADS_FIRST, HAS_ALL},
         "0 1 2 3 4 5 6 7",
         "0 1 2 3 4 5 6 7",
         "0 4 2 6 1 5 3 7"},
        /* a part of the machine: the first processor of core 0 is missing, and all of core 2 */
        {{{2, 1, 1, 2, 2}, FIRST_THREADS_FIRST, HAS_ALL}, "1 3 4 5 7", "4 1 5 3 7", "4 3 1 7 5"},
        {{{2, 1, 1, 2, 2}, FIRST_THREADS_FIRST, HAS_ALL}, "6", "6", "6"},
        /* files are missing */
        {{{2, 1, 1, 2, 2}, FIRST_THREADS_FIRST, 0},
         "0 1 3 4 5 6 7",
         "0 1 3 4 5 6 7",
         "0 1 3 4 5 6 7"},
        {{{1, 2, 2, 2, 1}, ROUND_THE_NODES, HAS_NODES},
         "0 1 2 3 4 5 6 7",
         "0 2 4 6 1 3 5 7",
         "0 1 2 3 4 5 6 7"},
        {{{1, 2, 2, 2, 1}, ROUND_THE_NODES, HAS_CACHES},
         "0 1 2 3 4 5 6 7",
         "0 2 1 3 4 6 5 7",
         "0 1 4 5 2 3 6 7"},
        {{{2, 1, 2, 1, 2}, FIRST_THREADS_FIRST, HAS_TOPOLOGY},
         "0 1 2 3 4 5 6 7",
         "0 4 1 5 2 6 3 7",
         "0 2 1 3 4 6 5 7"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_root();
        put_machine(&rows[i].machine);
        bool fine = CHECK_STR(places("compact", rows[i].allowed), rows[i].compact);
        if (!CHECK_STR(places("spread", rows[i].allowed), rows[i].spread) || !fine)
            fprintf(stderr, "    row %zu\n", i);
        close_root();
    }
}

/* ---- words and lists ---- */

static void words(void)
{
    static const struct {
        const char *said, *allowed, *places, *text;
    } rows[] = {
        {NULL, "0 1", "", NULL},
        {"", "0 1", "", NULL},
        {"none", "0 1", "", NULL},
        {"compact", "0 1", "0 1", NULL},
        {"1", "0 1", "1", NULL},
        {"0-3,8", "0 1 2 3 4 8", "0 1 2 3 8", NULL},
        {"8,3-1", "1 2 3 8", "bad argument", "TILE_AFFINITY is '8,3-1', but must be none, "},
        {"8,1-3", "1 2 3 8", "8 1 2 3", NULL},
        {"1-8:3,2", "1 2 4 7 8", "1 4 7 2", NULL},
        {"0,0-1,1", "0 1", "0 1", NULL},
        {"8191", "8191", "8191", NULL},
        {"8192", "8191", "bad argument", "'8192', but this process may run on processors 8191 o"},
        {"2", "0 1 3 4 5 7", "bad argument",
         "'2', but this process may run on processors 0-1,3-5,7"},
        {"7,0", "0 1", "bad argument", "'7,0', but this process may run on processors 0-1 only"},
        {"0-2", "0 1", "bad argument", "'0-2', but this process may run on processors 0-1 only"},
        {"0-99999999999999999999", "0 1", "bad argument", "processors 0-1 only"},
        {"abc", "0 1", "bad argument", "'abc', but must be none, compact, spread or a list of "},
        {"Compact", "0 1", "bad argument", "'Compact', but must be none"},
        {"compact,1", "0 1", "bad argument", "must be none"},
        {" ", "0 1", "bad argument", "must be none"},
        {",", "0 1", "bad argument", "must be none"},
        {"0,", "0 1", "bad argument", "must be none"},
        {",0", "0 1", "bad argument", "must be none"},
        {"0,,1", "0 1", "bad argument", "must be none"},
        {"0 1", "0 1", "bad argument", "must be none"},
        {"0, 1", "0 1", "bad argument", "must be none"},
        {"0-", "0 1", "bad argument", "must be none"},
        {"-1", "0 1", "bad argument", "must be none"},
        {"0-1:0", "0 1", "bad argument", "must be none"},
        {"0-1:", "0 1", "bad argument", "must be none"},
        {"0x1", "0 1", "bad argument", "must be none"},
        {"9,0-", "0 1", "bad argument", "must be none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!CHECK_STR(places(rows[i].said, rows[i].allowed), rows[i].places))
            fprintf(stderr, "    row %zu: '%s'\n", i, rows[i].said);
        if (rows[i].text)
            SAYS(rows[i].text);
    }
    /* a set that is too long to be said in full */
    char many[8 * 200] = "";
    for (int p = 1000, n = 0; p < 1400; p += 2)
        n += snprintf(many + n, sizeof many - (size_t)n, "%d ", p);
    CHECK_STR(places("0", many), "bad argument");
    SAYS(",1002,");
    SAYS("... only");
}

/* ---- quotas ---- */

#define CPU2 "/sys/fs/cgroup"
#define CPU1 "/sys/fs/cgroup/cpu,cpuacct"
#define MOUNTS1(part)                                                                              \
    "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n"                                                        \
    "31 25 0:28 / /sys/fs/cgroup/cpuset rw,nosuid shared:7 - cgroup cgroup rw,cpuset\n"            \
    "32 25 0:29 " part " " CPU1 " rw,nosuid shared:8 master:1 - cgroup cgroup rw,cpu,cpuacct\n"
#define MOUNTS2(part) "31 25 0:28 " part " " CPU2 " rw,nosuid shared:7 - cgroup2 cgroup2 rw\n"

static void quotas(void)
{
    static const struct {
        const char *mounts, *groups;
        const char *files[3][2]; /* path, text */
        int most, want;
    } rows[] = {
        {NULL, NULL, {{0}}, 64, 64},
        {MOUNTS2("/"), NULL, {{CPU2 "/cpu.max", "200000 100000"}}, 64, 64},
        {MOUNTS2("/"), "0::/", {{CPU2 "/cpu.max", "200000 100000"}}, 64, 2},
        {MOUNTS2("/"), "0::/", {{CPU2 "/cpu.max", "200000 100000"}}, 1, 1},
        {MOUNTS2("/"), "0::/", {{CPU2 "/cpu.max", "150000 100000"}}, 64, 2},
        {MOUNTS2("/"), "0::/", {{CPU2 "/cpu.max", "1000 100000"}}, 64, 1},
        {MOUNTS2("/"), "0::/", {{CPU2 "/cpu.max", "max 100000"}}, 64, 64},
        {MOUNTS2("/"), "0::/", {{CPU2 "/cpu.max", ""}}, 64, 64},
        {MOUNTS2("/"), "0::/", {{CPU2 "/cpu.max", "100000 0"}}, 64, 64},
        /* of a group around this one; the least counts */
        {MOUNTS2("/"), "0::/a/b", {{CPU2 "/a/cpu.max", "300000 100000"}}, 64, 3},
        {MOUNTS2("/"),
         "0::/a/b",
         {{CPU2 "/a/cpu.max", "300000 100000"}, {CPU2 "/a/b/cpu.max", "500000 100000"}},
         64,
         3},
        {MOUNTS2("/"), "0::/a/b", {{CPU2 "/a/b/cpu.max", "max 100000"}}, 64, 64},
        {MOUNTS2("/"), "0::/a/b", {{CPU2 "/a/bc/cpu.max", "100000 100000"}}, 64, 64},
        {MOUNTS2("/"),
         "1:name=systemd:/b\n0::/a\n",
         {{CPU2 "/b/cpu.max", "100000 100000"}},
         64,
         64},
        /* the mount shows a part */
        {MOUNTS2("/pod"), "0::/pod/c", {{CPU2 "/c/cpu.max", "400000 100000"}}, 64, 4},
        {MOUNTS2("/pod"), "0::/pod", {{CPU2 "/cpu.max", "400000 100000"}}, 64, 4},
        {MOUNTS2("/pod"), "0::/pods/c", {{CPU2 "/cpu.max", "400000 100000"}}, 64, 4},
        {MOUNTS2("/"), "0::/../x", {{CPU2 "/cpu.max", "400000 100000"}}, 64, 4},
        /* version 1, also beside an empty version 2 */
        {MOUNTS1("/"),
         "3:cpuset:/z\n4:cpu,cpuacct:/a\n",
         {{CPU1 "/a/cpu.cfs_quota_us", "250000"}, {CPU1 "/a/cpu.cfs_period_us", "100000"}},
         64,
         3},
        {MOUNTS1("/"),
         "4:cpu,cpuacct:/a\n",
         {{CPU1 "/a/cpu.cfs_quota_us", "-1"}, {CPU1 "/a/cpu.cfs_period_us", "100000"}},
         64,
         64},
        {MOUNTS1("/docker/1") MOUNTS2("/"),
         "4:cpuacct,cpu:/docker/1\n0::/\n",
         {{CPU1 "/cpu.cfs_quota_us", "200000"}, {CPU1 "/cpu.cfs_period_us", "100000"}},
         64,
         2},
        {MOUNTS1("/"),
         "4:cpuset:/a\n0::/a\n",
         {{CPU1 "/a/cpu.cfs_quota_us", "200000"}, {CPU1 "/a/cpu.cfs_period_us", "100000"}},
         64,
         64},
        {"nonsense\n31 25 - cgroup2\n - cgroup2 x rw\n", "nonsense\n0:\n", {{0}}, 64, 64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_root();
        if (rows[i].mounts)
            put_file(rows[i].mounts, "/proc/self/mountinfo");
        if (rows[i].groups)
            put_file(rows[i].groups, "/proc/self/cgroup");
        for (int k = 0; k < 3 && rows[i].files[k][0]; k++)
            put_file(rows[i].files[k][1], "%s", rows[i].files[k][0]);
        if (!CHECK_INT(tl_processors_quota(root, rows[i].most), rows[i].want))
            fprintf(stderr, "    row %zu\n", i);
        close_root();
    }
}

/* ---- this machine: workers ---- */

enum { MAX_WORKERS = 8 };

typedef struct Meeting {
    int threads;
    atomic_int came;
    tl_processors may[MAX_WORKERS];
    int runs_on[MAX_WORKERS];
} Meeting;

/* Each range waits for the others, so each has a worker of its own. */
static void meet(void *user, int worker, int64_t begin, int64_t end)
{
    Meeting *m = user;
    (void)begin;
    (void)end;
    tl_processors_allowed(&m->may[worker]);
    m->came++;
    while (m->came < m->threads)
        sched_yield();
    m->runs_on[worker] = sched_getcpu();
}

static bool gather(const char *affinity, int threads, Meeting *out)
{
    tl_pool *pool;
    *out = (Meeting){.threads = threads};
    setenv("TILE_AFFINITY", affinity, 1);
    bool fine = CHECK_INT(tl_pool_create(threads, NULL, &pool), TILE_OK);
    unsetenv("TILE_AFFINITY");
    if (!fine)
        return false;
    fine = CHECK_INT(tl_pool_threads(pool), threads);
    if (fine)
        CHECK_INT(tl_pool_run(pool, threads, TL_POOL_INCREASING, meet, out), TILE_OK);
    tl_pool_free(pool);
    return fine;
}

/* The numbers of those that this thread may use. */
static int processors_here(int *out_numbers, int most)
{
    tl_processors set;
    int n = 0;
    tl_processors_allowed(&set);
    for (int p = 0; p < TL_MAX_PROCESSORS && n < most; p++)
        if (tl_processors_has(&set, p))
            out_numbers[n++] = p;
    return n;
}

static void check_worker(const Meeting *m, int worker, int processor)
{
    CHECK_INT(tl_processors_count(&m->may[worker]), 1);
    CHECK(tl_processors_has(&m->may[worker], processor));
    CHECK_INT(m->runs_on[worker], processor);
}

static void pins_hold(void)
{
    static const char *const orders[] = {"compact", "spread"};
    int here[MAX_WORKERS], n = processors_here(here, MAX_WORKERS);
    tl_processors before, after;
    char list[32];
    Meeting m;
    tl_processors_allowed(&before);
    if (gather("none", 3, &m))
        CHECK(memcmp(&m.may[1], &before, sizeof before) == 0 &&
              memcmp(&m.may[2], &before, sizeof before) == 0);
    /* the first place is the caller's, and places go round */
    int a = here[0], b = here[n - 1];
    snprintf(list, sizeof list, "%d,%d", b, a);
    if (gather(list, 5, &m))
        for (int w = 1; w < 5; w++)
            check_worker(&m, w, w % 2 ? a : b);
    CHECK(memcmp(&m.may[0], &before, sizeof before) == 0);
    for (int i = 0; i < 2; i++)
        if (gather(orders[i], n, &m)) {
            tl_processors used = {0};
            for (int w = 1; w < n; w++) {
                check_worker(&m, w, m.runs_on[w]);
                CPU_SET_S((size_t)m.runs_on[w], sizeof used.part, used.part);
            }
            CHECK_INT(tl_processors_count(&used), n - 1);
        }
    tl_processors_allowed(&after);
    CHECK(memcmp(&after, &before, sizeof before) == 0);
}

static int default_threads(void)
{
    tl_pool *pool;
    if (!CHECK_INT(tl_pool_create(0, NULL, &pool), TILE_OK))
        return 0;
    int threads = tl_pool_threads(pool);
    tl_pool_free(pool);
    return threads;
}

/* Without TILE_THREADS: a thread for each processor that may be used. */
static void default_counts(void)
{
    int here[MAX_WORKERS], n = processors_here(here, MAX_WORKERS);
    tl_processors before, one = {0};
    char number[16];
    tile_device *d;
    unsetenv("TILE_THREADS");
    tl_processors_allowed(&before);
    CHECK_INT(default_threads(), tl_processors_quota("", tl_processors_count(&before)));
    snprintf(number, sizeof number, "%d", here[n - 1]);
    setenv("TILE_AFFINITY", number, 1);
    CHECK_INT(default_threads(), 1);
    CPU_SET_S((size_t)here[0], sizeof one.part, one.part);
    CHECK_INT(sched_setaffinity(0, sizeof one.part, one.part), 0);
    if (n > 1) {
        CHECK_INT(tile_device_open("cpu", &d), TILE_BAD_ARGUMENT);
        SAYS("TILE_AFFINITY is");
        CHECK_INT(tile_device_open("emu:sm_80", &d), TILE_BAD_ARGUMENT);
        SAYS("TILE_AFFINITY is");
    }
    unsetenv("TILE_AFFINITY");
    CHECK_INT(default_threads(), 1);
    CHECK_INT(sched_setaffinity(0, sizeof before.part, before.part), 0);
}

/* ---- pins that fail ---- */

static int child_status(pid_t child)
{
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* As in a container whose filter forbids it; false: there are no such filters here. */
static bool forbid_pins(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void pins_fail(void)
{
    CHECK_INT(tl_affinity_pin(pthread_self(), TL_MAX_PROCESSORS - 1), TILE_UNAVAILABLE);
    SAYS("a worker cannot be pinned to processor 8191: Invalid argument");
    pid_t child = fork();
    if (child == 0) {
        tile_device *d;
        unit_failures = 0;
        if (!forbid_pins())
            _exit(0);
        setenv("TILE_THREADS", "3", 1);
        CHECK_INT(tile_device_open("cpu", &d), TILE_OK);
        setenv("TILE_AFFINITY", "compact", 1);
        CHECK_INT(tile_device_open("cpu", &d), TILE_UNAVAILABLE);
        SAYS("Operation not permitted");
        CHECK_INT(tile_device_open("emu:sm_80", &d), TILE_UNAVAILABLE);
        _exit(unit_failures != 0);
    }
    CHECK_INT(child_status(child), 0);
}

/* ---- this machine: launches ---- */

enum { N = 3000, LAUNCHES = 50, USERS = 4 };

/* In `count` each program waits for the one before it; those of `add` have nothing to do with each
 * other, so that the last to start need not be the last to end. */
static const char source[] =
    "kernel count(i32 flag[N], i32 y[N], i32 step) grid(N)\n"
    "{\n"
    "    int p = pid(0);\n"
    "    i32 before = 0;\n"
    "    if (p > 0) {\n"
    "        while (atomic_load(flag[p - 1], order = acquire) != step) {}\n"
    "        before = y[p - 1];\n"
    "    }\n"
    "    y[p] = before + step;\n"
    "    atomic_store(flag[p], step, order = release);\n"
    "}\n"
    "kernel add(i32 z[N], i32 step) grid(N)\n"
    "{\n"
    "    for (int i : range(0, 64))\n"
    "        atomic_add(z[pid(0)], step);\n"
    "}\n";

typedef struct User {
    tile_kernel *count, *add;
    bool right;
} User;

static bool launch_both(const User *u, int32_t step, int32_t *flag, int32_t *y, int32_t *z)
{
    const tile_arg count[] = {tile_view(flag, N), tile_view(y, N), tile_i32(step)},
                   add[] = {tile_view(z, N), tile_i32(step)};
    bool right = tile_launch(u->count, NULL, count, 3) == TILE_OK;
    for (int i = 0; i < N; i++)
        right &= y[i] == step * (i + 1);
    right &= tile_launch(u->add, NULL, add, 2) == TILE_OK;
    for (int i = 0; i < N; i++)
        right &= z[i] == 64 * step * (step + 1) / 2;
    return right;
}

static void *launch_often(void *arg)
{
    User *u = arg;
    int32_t *memory = calloc(3 * N, sizeof *memory);
    u->right = memory != NULL;
    for (int32_t step = 1; step <= LAUNCHES && u->right; step++)
        u->right = launch_both(u, step, memory, memory + N, memory + 2 * N);
    free(memory);
    return NULL;
}

/* A program with several threads that launch; the status of its process. */
static int program(void)
{
    tile_module *module = NULL;
    tile_kernel *count = NULL, *add = NULL;
    pthread_t threads[USERS];
    User users[USERS];
    unit_failures = 0; /* those of the other process */
    if (!CHECK_INT(
            tile_module_load_source(NULL, "k.tile", source, sizeof source - 1, NULL, &module),
            TILE_OK))
        fprintf(stderr, "    %s\n", tile_last_error());
    CHECK_INT(tile_kernel_get(module, "count", NULL, &count), TILE_OK);
    CHECK_INT(tile_kernel_get(module, "add", NULL, &add), TILE_OK);
    for (int i = 0; i < USERS; i++) {
        users[i] = (User){count, add, false};
        if (!CHECK_INT(pthread_create(&threads[i], NULL, launch_often, &users[i]), 0))
            return 1;
    }
    for (int i = 0; i < USERS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(users[i].right);
    }
    tile_module_free(module);
    return unit_failures != 0;
}

/* Two programs whose workers are pinned to the same processors. */
static void two_programs(const char *affinity)
{
    pid_t children[2];
    setenv("TILE_AFFINITY", affinity, 1);
    setenv("TILE_THREADS", "3", 1);
    for (int i = 0; i < 2; i++)
        if ((children[i] = fork()) == 0)
            _exit(program());
    for (int i = 0; i < 2; i++)
        CHECK_INT(child_status(children[i]), 0);
    unsetenv("TILE_AFFINITY");
}

/* Where a container forbids it, nothing can be pinned. */
static bool may_pin(void)
{
    tl_processors set;
    tl_processors_allowed(&set);
    return sched_setaffinity(0, sizeof set.part, set.part) == 0;
}

int main(void)
{
    unsetenv("TILE_DEVICE");
    orders();
    words();
    quotas();
    if (!may_pin())
        return unit_failures ? unit_result() : 77;
    two_programs("none");
    two_programs("compact");
    pins_fail();
    pins_hold();
    default_counts();
    return unit_result();
}
