/* output.c: an output file is complete or not there.
 *
 * 1. The bytes go to a temporary file in the folder where the final file will be: behind symbolic
 *    links, so that a link stays a link.
 * 2. When everything that the run makes is written, rename() puts each file in its final place. A
 *    full disk, a signal or a kill before that leaves the old file, or none.
 * 3. SIGINT, SIGTERM and SIGHUP remove the temporary files on the way out. Their names are listed
 *    before the files exist, so the handler misses none. */
#include "tools/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TEMPORARIES = 64, MAX_LINKS = 40, NAME_BYTES = 32, FAILED = 2 };

/* Files to be removed by a signal. A slot is free when NULL; the handler reads it at any time. */
static char *volatile temporaries[MAX_TEMPORARIES];

void output_begin(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR); /* writing to 1 still fails */
    signal(SIGXFSZ, SIG_IGN);
}

/* ---- which file ---- */

/* The final that a path leads to behind symbolic links, which need not exist. NULL: no memory, or
 * links without an end. */
static char *final_of(const char *path)
{
    char *final = strdup(path), target[PATH_MAX];
    for (int links = 0; final; links++) {
        ssize_t n = readlink(final, target, sizeof target - 1);
        if (n < 0)
            return final; /* no link */
        target[n] = 0;
        char *slash = strrchr(final, '/'), *next = NULL;
        if (links == MAX_LINKS)
            errno = ELOOP;
        else if (target[0] == '/' || !slash)
            next = strdup(target);
        else if ((next = malloc((size_t)(slash - final) + strlen(target) + 2)))
            sprintf(next, "%.*s/%s", (int)(slash - final), final, target);
        free(final);
        final = next;
    }
    return NULL;
}

/* The folder's status and the name in it. */
static bool folder_of(const char *path, struct stat *out_folder, char *name, size_t size)
{
    char *final = final_of(path), *copy = final ? strdup(final) : NULL;
    bool ok = false;
    if (copy) {
        snprintf(name, size, "%s", basename(copy));
        strcpy(copy, final);
        ok = stat(dirname(copy), out_folder) == 0;
    }
    free(copy);
    free(final);
    return ok;
}

bool output_same(const char *a, const char *b)
{
    struct stat sa, sb;
    char na[PATH_MAX], nb[PATH_MAX];
    if (!strcmp(a, "-") || !strcmp(b, "-"))
        return !strcmp(a, b);
    bool there_a = stat(a, &sa) == 0, there_b = stat(b, &sb) == 0;
    if (there_a != there_b)
        return false;
    if (there_a)
        return S_ISREG(sa.st_mode) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
    return folder_of(a, &sa, na, sizeof na) && folder_of(b, &sb, nb, sizeof nb) &&
           sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino && !strcmp(na, nb);
}

/* The standard stream that a path names: "-", or /dev/stdout, wherever that leads. */
static FILE *standard_stream(const char *path)
{
    struct stat file, stream;
    if (strcmp(path, "-") == 0)
        return stdout;
    if (stat(path, &file) != 0)
        return NULL;
    FILE *const streams[] = {stdout, stderr};
    for (int i = 0; i < 2; i++)
        if (fstat(i + 1, &stream) == 0 && stream.st_dev == file.st_dev &&
            stream.st_ino == file.st_ino)
            return streams[i];
    return NULL;
}

/* ---- signals ---- */

static void remove_temporaries(int signal_number)
{
    for (int i = 0; i < MAX_TEMPORARIES; i++) {
        const char *path = temporaries[i];
        if (path)
            unlink(path);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void watch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old;
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            signal(signals[i], remove_temporaries);
    }
}

static bool list_temporary(char *path)
{
    for (int i = 0; i < MAX_TEMPORARIES; i++)
        if (!temporaries[i]) {
            temporaries[i] = path;
            return true;
        }
    errno = EMFILE;
    return false;
}

static void forget_temporary(const char *path)
{
    for (int i = 0; i < MAX_TEMPORARIES; i++)
        if (temporaries[i] == path)
            temporaries[i] = NULL;
}

/* ---- writing ---- */

static bool lacked_memory;

bool output_lacked_memory(void)
{
    return lacked_memory;
}

static bool say(const Outputs *o, const char *path)
{
    lacked_memory = lacked_memory || errno == ENOMEM;
    fprintf(stderr, "%s: cannot write '%s': %s\n", o->program, path,
            errno ? strerror(errno) : "unknown error");
    return false;
}

static bool put(FILE *f, const void *data, size_t size)
{
    return (size == 0 || fwrite(data, 1, size, f) == size) && fflush(f) == 0;
}

static bool write_now(const Outputs *o, const char *path, FILE *standard, const void *data,
                      size_t size)
{
    errno = 0;
    FILE *f = standard ? standard : fopen(path, "wb");
    bool ok = f && put(f, data, size);
    int error = errno;
    if (f && !standard && fclose(f) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (standard && !ok)
        clearerr(standard); /* it is said here, once */
    errno = error;
    return ok ? true : say(o, path);
}

/* A name beside the final: ".tile-PID-N". */
static char *name_beside(const char *final, int n)
{
    const char *slash = strrchr(final, '/');
    size_t folder = slash ? (size_t)(slash - final) + 1 : 0;
    char *name = malloc(folder + NAME_BYTES);
    if (name) {
        memcpy(name, final, folder);
        snprintf(name + folder, NAME_BYTES, ".tile-%ld-%d", (long)getpid(), n);
    }
    return name;
}

/* A new file beside the final, listed for the handler. An old file's mode is kept; one that may not
 * be written is not replaced either. */
static int open_beside(Output *out)
{
    struct stat old;
    bool there = stat(out->final, &old) == 0;
    if (there && access(out->final, W_OK) != 0)
        return -1;
    for (int n = 0; n < 1000; n++) {
        out->temporary = name_beside(out->final, n);
        if (!out->temporary || !list_temporary(out->temporary))
            return -1;
        int fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 && there)
            (void)!fchmod(fd, old.st_mode & 0777);
        if (fd >= 0)
            return fd;
        forget_temporary(out->temporary);
        free(out->temporary);
        out->temporary = NULL;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

static bool write_beside(Output *out, const void *data, size_t size)
{
    out->final = final_of(out->path);
    int fd = out->final ? open_beside(out) : -1;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!f) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    bool ok = put(f, data, size);
    int error = errno;
    ok = fclose(f) == 0 && ok;
    errno = error ? error : errno;
    return ok;
}

static Output *add(Outputs *o, const char *path)
{
    Output *more = realloc(o->data, (o->len + 1) * sizeof *more);
    if (!more)
        return NULL;
    o->data = more;
    more[o->len] = (Output){.path = path};
    return &more[o->len++];
}

bool output_write(Outputs *o, const char *path, const void *data, size_t size)
{
    struct stat s;
    FILE *standard = standard_stream(path);
    if (standard || (stat(path, &s) == 0 && !S_ISREG(s.st_mode)))
        return write_now(o, path, standard, data, size);
    watch_signals();
    errno = 0;
    Output *out = add(o, path);
    return out && write_beside(out, data, size) ? true : say(o, path);
}

bool output_commit(Outputs *o)
{
    for (size_t i = 0; i < o->len; i++) {
        Output *out = &o->data[i];
        if (!out->temporary)
            continue;
        if (rename(out->temporary, out->final) != 0)
            return say(o, out->path);
        forget_temporary(out->temporary);
        free(out->temporary);
        out->temporary = NULL;
    }
    return true;
}

void output_drop(Outputs *o)
{
    for (size_t i = 0; i < o->len; i++) {
        Output *out = &o->data[i];
        if (out->temporary) {
            unlink(out->temporary);
            forget_temporary(out->temporary);
        }
        free(out->temporary);
        free(out->final);
    }
    free(o->data);
    o->data = NULL;
    o->len = 0;
}

int output_end(const char *program, int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "%s: cannot write to standard output: %s\n", program,
            errno ? strerror(errno) : "an earlier write failed");
    return status ? status : FAILED;
}
