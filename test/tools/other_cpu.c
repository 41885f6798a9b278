/* other_cpu.c: the only program of the machine that other_cpu.py emulates. It runs images on arrays
 * of .npy files, as `tilec run` runs kernels, and sends what they wrote to the host. It is /init of
 * the Linux of a PC in Bochs; or QEMU runs `other_cpu FILE` on a CPU of another kind, and what is
 * sent goes to that file.
 *
 * Each line of the file `jobs` is one run: NAME DEVICE IMAGE N, then N times PARAM=FILE.npy (where
 * to save), then the arguments PARAM=VALUE of `tilec run`, with tabs between. Each run is a process
 * of its own, so that a signal ends a run and not the machine.
 *
 * What is sent is a sequence of records: "\n=> KIND SIZE NAME\n" and SIZE bytes. Kinds: `file`
 * (NAME is its path), `fault` (NAME is an instruction that the emulated CPU gets wrong), `ended`
 * (NAME is that of a run; the bytes are its exit status or "signal N", a newline and what it said),
 * and at last `end`. */
#define TILE_UNSTABLE
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif

#include "runtime/include/tile.h"
#include "tools/run_args.h"

enum { PORT = 0xe9 }; /* what is written to it comes out of Bochs' standard output */
enum { MAX_WORDS = 128, RUN_SECONDS = 1200, SAID_BYTES = 2000 };

static const char said_file[] = "said";

typedef struct Job {
    const char *name, *device, *image;
    Texts saves, items;
    const char *words[MAX_WORDS]; /* what the lists are parts of */
} Job;

int out_of_memory(void)
{
    fputs("out of memory\n", stderr);
    return EXIT_INTERNAL;
}

int usage_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

/* The whole file's bytes and a zero, to be freed; NULL when it cannot be read. */
static char *read_file(const char *path, size_t *out_size)
{
    struct stat s;
    FILE *f = fopen(path, "rb");
    /* files of /proc have no size */
    size_t room = f && fstat(fileno(f), &s) == 0 && s.st_size ? (size_t)s.st_size : 1 << 16;
    char *data = f ? malloc(room + 1) : NULL;
    *out_size = data ? fread(data, 1, room, f) : 0;
    if (data)
        data[*out_size] = 0;
    if (f)
        fclose(f);
    return data;
}

/* ---- the way out ---- */

static FILE *sent; /* NULL: there is the port */

#ifdef __x86_64__
static bool open_port(void)
{
    return ioperm(PORT, 1, 1) == 0;
}
static void send_byte(unsigned char byte)
{
    outb(byte, PORT);
}
#else
static bool open_port(void)
{
    return false;
}
static void send_byte(unsigned char byte)
{
    (void)byte;
}
#endif

static void send_bytes(const void *data, size_t size)
{
    for (size_t i = 0; !sent && i < size; i++)
        send_byte(((const unsigned char *)data)[i]);
    if (sent && (fwrite(data, 1, size, sent) != size || fflush(sent) != 0))
        exit(usage_error("other_cpu: what is sent cannot be written"));
}

static void send_record(const char *kind, const char *name, const void *data, size_t size)
{
    char head[512];
    int n = snprintf(head, sizeof head, "\n=> %s %zu %s\n", kind, size, name);
    send_bytes(head, (size_t)n);
    send_bytes(data, size);
}

static void send_file(const char *path)
{
    size_t size;
    char *data = read_file(path, &size);
    if (data)
        send_record("file", path, data, size);
    free(data);
}

/* ---- faults of Bochs ---- */

#ifdef __x86_64__
/* 2049 lies between two numbers of f16, 2048 and 2050; 2048 is the even one. */
__attribute__((target("f16c"))) static bool tie_is_even(void)
{
    unsigned got;
    __asm__("vcvtps2ph $0, %1, %%xmm0\n\tvmovd %%xmm0, %0" : "=r"(got) : "x"(2049.0f) : "xmm0");
    return (got & 0xffff) == 0x6800;
}

__attribute__((target("avx512f"))) static bool large_is_in_range(void)
{
    uint64_t got;
    __asm__("vcvttsd2usi %1, %0" : "=r"(got) : "x"(0x1p63));
    return got == UINT64_C(1) << 63;
}

__attribute__((target("avx512f"))) static bool shifts_by_15(void)
{
    unsigned got = 1;
    __asm__("kmovw %0, %%k1\n\tkshiftlw $15, %%k1, %%k1\n\tkmovw %%k1, %0" : "+r"(got) : : "k1");
    return got == 0x8000;
}

__attribute__((target("avx512f"))) static bool takes_index_zmm16(void)
{
    const float from[] = {7}, *p = from;
    float got;
    __asm__("vpxord %%zmm16, %%zmm16, %%zmm16\n\tkxnorw %%k1, %%k1, %%k1\n\t"
            "vgatherqps (%1, %%zmm16, 4), %%ymm1 %{%%k1%}\n\tvmovss %%xmm1, %0"
            : "=m"(got)
            : "r"(p)
            : "xmm1", "xmm16", "k1", "memory");
    return got == 7;
}

/* A displacement of 1 byte counts bytes, not words. */
__attribute__((target("avx512bw,avx512vl"))) static bool inserts_byte_from_memory(void)
{
    static const unsigned char from[80] = {[5] = 7, [20] = 9, [10] = 11, [40] = 13};
    unsigned got;
    __asm__("vpxord %%xmm16, %%xmm16, %%xmm16\n\tvpinsrb $1, 5(%1), %%xmm16, %%xmm16\n\t"
            "vmovd %%xmm16, %0"
            : "=r"(got)
            : "r"(from)
            : "xmm16", "memory");
    return got == 0x700;
}

__attribute__((target("avx512bw,avx512vl"))) static bool extracts_to_memory(void)
{
    unsigned char to[160] = {0};
    __asm__("vpternlogd $255, %%xmm16, %%xmm16, %%xmm16\n\tvpextrw $0, %%xmm16, 32(%0)\n\t"
            "vpextrb $1, %%xmm16, 5(%0)"
            :
            : "r"(to)
            : "xmm16", "memory");
    return to[32] == 255 && to[33] == 255 && to[5] == 255;
}

static const struct Probe {
    const char *instruction;
    bool needs_avx512;
    bool (*right)(void);
} probes[] = {{"vcvtps2ph", false, tie_is_even},
              {"vcvttsd2usi", true, large_is_in_range},
              {"kshiftlw", true, shifts_by_15},
              {"vgatherqps", true, takes_index_zmm16},
              {"vpinsrb", true, inserts_byte_from_memory},
              {"vpextrw", true, extracts_to_memory}};

/* An instruction that is not known ends only the process that tries it. */
static void send_faults(void)
{
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        int status = 0;
        if (!__builtin_cpu_supports("f16c") ||
            (probes[i].needs_avx512 && !__builtin_cpu_supports("avx512f")))
            continue;
        pid_t child = fork();
        if (child == 0)
            _exit(probes[i].right() ? EXIT_FINE : EXIT_PROGRAM);
        waitpid(child, &status, 0);
        if (status != 0)
            send_record("fault", probes[i].instruction, "", 0);
    }
}

#else
static void send_faults(void) {}
#endif

/* ---- one run ---- */

static int save_arrays(const RunArgs *args, const Texts *saves)
{
    Outputs outputs = {.program = "other_cpu"};
    for (size_t i = 0; i < saves->len; i++) {
        char name[256];
        const char *text = saves->data[i];
        size_t length = strcspn(text, "=");
        snprintf(name, sizeof name, "%.*s", (int)length, text);
        int at = run_args_find(args, name);
        if (at < 0)
            return usage_error("no array '%s'", name);
        int status = run_arg_save(&args->data[at], text + length + 1, &outputs);
        if (status != EXIT_FINE)
            return status;
    }
    return output_commit(&outputs) ? EXIT_FINE : EXIT_USAGE;
}

static int launch(tile_device *device, tile_kernel *kernel, RunArgs *args)
{
    tile_arg *values = NULL;
    int status = run_args_upload(args, device, &values);
    if (status == EXIT_FINE && (tile_launch(kernel, NULL, values, args->nparams) != TILE_OK ||
                                tile_device_synchronize(device) != TILE_OK)) {
        usage_error("%s", tile_last_error());
        status = EXIT_RUN;
    }
    free(values);
    return status == EXIT_FINE ? run_args_fetch(args) : status;
}

/* Frees nothing: the process ends. */
static int run(const Job *job)
{
    size_t size;
    tile_device *device;
    tile_module *module;
    tile_kernel *kernel;
    RunArgs args = {0};
    Options o = {.items = job->items};
    const char *image = read_file(job->image, &size);
    if (!image)
        return usage_error("%s cannot be read", job->image);
    if (tile_device_open(job->device, &device) != TILE_OK ||
        tile_module_load_image(device, image, size, &module) != TILE_OK ||
        tile_kernel_get(module, tile_module_kernel_name(module, 0), NULL, &kernel) != TILE_OK) {
        usage_error("%s", tile_last_error());
        return EXIT_RUN;
    }
    int status = run_args_make(&o, kernel, image, &args);
    if (status == EXIT_FINE)
        status = launch(device, kernel, &args);
    return status == EXIT_FINE ? save_arrays(&args, &job->saves) : status;
}

/* ---- all runs ---- */

/* The bytes of an instruction that the CPU does not know tell which one it is. */
static void say_instruction(int number, siginfo_t *info, void *context)
{
    enum { BYTES = 12 };
    (void)context;
    dprintf(STDERR_FILENO, "no instruction of this CPU:");
    for (int i = 0; i < BYTES; i++)
        dprintf(STDERR_FILENO, " %02x", ((const unsigned char *)info->si_addr)[i]);
    dprintf(STDERR_FILENO, "\n");
    signal(number, SIG_DFL); /* and once more */
}

static void run_alone(const Job *job)
{
    struct sigaction action = {.sa_sigaction = say_instruction, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    int fd = open(said_file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    alarm(RUN_SECONDS);
    exit(run(job));
}

static void send_end(const char *name, int status)
{
    size_t size;
    char text[SAID_BYTES], *said = read_file(said_file, &size);
    bool killed = WIFSIGNALED(status);
    snprintf(text, sizeof text, "%s%d\n%s", killed ? "signal " : "",
             killed ? WTERMSIG(status) : WEXITSTATUS(status), said ? said : "");
    send_record("ended", name, text, strlen(text));
    free(said);
    unlink(said_file);
}

static void run_and_send(const Job *job)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        run_alone(job);
    waitpid(child, &status, 0);
    for (size_t i = 0; i < job->saves.len; i++) {
        const char *path = job->saves.data[i] + strcspn(job->saves.data[i], "=") + 1;
        send_file(path);
        unlink(path);
    }
    send_end(job->name, status);
}

/* False: no line of a job. */
static bool read_job(char *line, Job *job)
{
    enum { FIXED = 4 };
    size_t n = 0;
    for (char *word = strtok(line, "\t"); word && n < MAX_WORDS; word = strtok(NULL, "\t"))
        job->words[n++] = word;
    size_t saves = n < FIXED ? n : strtoul(job->words[FIXED - 1], NULL, 10);
    if (n == MAX_WORDS || FIXED + saves > n)
        return false;
    job->name = job->words[0];
    job->device = job->words[1];
    job->image = job->words[2];
    job->saves = (Texts){job->words + FIXED, saves};
    job->items = (Texts){job->words + FIXED + saves, n - FIXED - saves};
    return true;
}

static void run_all(void)
{
    size_t size;
    Job job;
    char *jobs = read_file("jobs", &size), *rest = jobs;
    for (char *line; jobs && (line = strsep(&rest, "\n"));)
        if (read_job(line, &job))
            run_and_send(&job);
    free(jobs);
    send_record("end", "", "", 0);
}

static int be_init(void)
{
    if (getpid() != 1 || !open_port())
        return usage_error("other_cpu: this is the init of an emulated machine; or name a file");
    mkdir("proc", 0755);
    mount("proc", "proc", "proc", 0, NULL);
    send_file("proc/cpuinfo");
    send_faults();
    run_all();
    reboot(RB_POWER_OFF);
    return EXIT_PROGRAM;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return be_init();
    sent = fopen(argv[1], "wb");
    if (!sent)
        return usage_error("other_cpu: '%s' cannot be written", argv[1]);
    run_all();
    return fclose(sent) == 0 ? EXIT_FINE : EXIT_USAGE;
}
