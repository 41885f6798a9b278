/* ptxas as a subprocess: a temporary folder holds the text, the result and the assembler's
 * messages. Everything in it is gone when tl_cubin returns, whatever happened. Arena memory, whose
 * allocation may unwind, is asked for only before the folder exists and after it is gone. */
#include "codegen/gpu/cubin.h"
#include "codegen/cache/trust.h"
#include "codegen/gen/codegen.h"
#include "ir/support/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { DEFAULT_SECONDS = 60, MAX_LOG = 4000, MAX_WORDS = 1 << 20 };

typedef struct Place {
    char *folder, *ptx, *cubin, *log;
} Place;

typedef struct Options {
    const char *program; /* its absolute path */
    const char *arch; /* -arch=sm_80 */
    bool lines, words;
} Options;

static bool write_text(const char *path, const char *text, size_t size)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(text, 1, size, f) == size;
    if (f && fclose(f) != 0)
        ok = false;
    return ok;
}

/* Starts ptxas with its words in the log; 0 or an errno. A process group of its own, so that
 * nothing that it starts outlives the time limit. */
static int start(const Place *p, const Options *o, pid_t *out_pid)
{
    char *argv[8] = {"ptxas", (char *)o->arch, p->ptx, "-o", p->cubin};
    int argc = 5;
    if (o->lines)
        argv[argc++] = "-lineinfo";
    if (o->words)
        argv[argc++] = "-v";
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, 1, p->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&files, 1, 2);
        error = posix_spawn(out_pid, o->program, &files, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static int64_t milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000 + t.tv_nsec / 1000000;
}

static int64_t limit(void)
{
    const char *said = secure_getenv("TILE_PTXAS_SECONDS");
    long seconds = said ? strtol(said, NULL, 10) : 0;
    return 1000 * (int64_t)(seconds > 0 && seconds < 3600 ? seconds : DEFAULT_SECONDS);
}

/* False: it was stopped. If the host reaps its children elsewhere, the status is 0, and whether
 * there is a result decides. */
static bool wait_for(pid_t pid, int *out_status)
{
    int64_t end = milliseconds() + limit();
    *out_status = 0;
    for (long pause = 1;; pause = pause < 10 ? pause + 1 : 10) {
        pid_t r = waitpid(pid, out_status, WNOHANG);
        if (r == pid || (r < 0 && errno != EINTR))
            return true;
        if (milliseconds() > end) {
            kill(-pid, SIGKILL);
            waitpid(pid, out_status, 0);
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause * 1000000}, NULL);
    }
}

/* Runs it. Opens the files of the result and of the log; NULL: there is none. */
static const char *assemble(const Place *p, const char *ptx, size_t size, const Options *o,
                            FILE **out_cubin, FILE **out_log)
{
    pid_t pid;
    int status, error;
    if (!write_text(p->ptx, ptx, size))
        return "cannot write a temporary file for ptxas";
    error = start(p, o, &pid);
    if (error)
        return "cannot start ptxas";
    if (!wait_for(pid, &status))
        return "ptxas took too long and was stopped (TILE_PTXAS_SECONDS)";
    *out_log = fopen(p->log, "rb");
    *out_cubin = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? fopen(p->cubin, "rb") : NULL;
    return *out_cubin ? NULL : "ptxas failed";
}

static void *read_all(TlArena *arena, FILE *f, size_t most, size_t *out_size)
{
    TlSbuf s;
    tl_sbuf_init(&s, arena);
    bool ok = tl_sbuf_read(&s, f, most);
    *out_size = s.len;
    return ok ? s.text : NULL;
}

/* ---- asm ---- */

/* Line `number` of a text, from 1; NULL: it has fewer. */
static const char *line_of(const char *text, unsigned long number)
{
    for (; text && number > 1; number--) {
        text = strchr(text, '\n');
        text += text != NULL;
    }
    return text;
}

static const char *line_before(const char *text, const char *line)
{
    if (line == text)
        return NULL;
    for (line--; line > text && line[-1] != '\n';)
        line--;
    return line;
}

/* The numbers at the beginning of the asm that contains the line; NULL: the line is in no asm. */
static const char *asm_around(const char *text, const char *line)
{
    static const char MARK[] = TL_PTX_ASM;
    for (; line; line = line_before(text, line)) {
        const char *word = line + strspn(line, "\t ");
        if (!strncmp(word, "// end inline asm", 17) || !strncmp(word, "// begin inline asm", 19))
            return NULL;
        if (!strncmp(word, MARK, sizeof MARK - 1))
            return word + sizeof MARK - 1;
    }
    return NULL;
}

/* "ptxas /tmp/k.ptx, line 39; error   : Not a name of any known instruction: 'foo'" */
bool tl_cubin_asm_error(TlArena *arena, const char *ptx, const char **words, TlLoc *out_loc,
                        const char **out_said, const char **out_line)
{
    static const char LINE[] = ", line ", ERROR[] = "; error";
    for (const char *at = *words; (at = strstr(at, LINE));) {
        char *end;
        const char *line = line_of(ptx, strtoul(at + sizeof LINE - 1, &end, 10));
        *words = at = end + strcspn(end, "\n");
        const char *mark = line && !strncmp(end, ERROR, sizeof ERROR - 1) ? asm_around(ptx, line)
                                                                         : NULL;
        TlLoc loc;
        if (!mark || sscanf(mark, "%u:%u:%u:%u", &loc.file, &loc.line, &loc.col, &loc.len) != 4)
            continue;
        const char *said = end + sizeof ERROR - 1 + strspn(end + sizeof ERROR - 1, " :");
        line += strspn(line, "\t ");
        *out_loc = loc;
        *out_said = tl_strndup(arena, said, (size_t)(at - said));
        *out_line = tl_strndup(arena, line, strcspn(line, "\n"));
        return true;
    }
    return false;
}

void *tl_cubin(TlArena *arena, const char *ptx, size_t size, const char *arch, bool lines,
               size_t *out_size, const char **out_words, const char **out_error)
{
    TL_ASSERT(ptx && size > 0 && arch && out_size, "no text for ptxas");
    char program[TL_TRUST_PATH], folder[TL_TRUST_PATH], why[TL_TRUST_PATH + 256];
    Place p = {.folder = folder};
    Options o = {program, tl_format(arena, "-arch=%s", arch), lines, out_words != NULL};
    if (out_words)
        *out_words = "";
    if (!tl_trust_ptxas(program, why, sizeof why)) {
        *out_error = tl_format(arena, "%s: stage 'cubin' needs NVIDIA's assembler (CUDA toolkit)",
                               why);
        return NULL;
    }
    if (!tl_trust_temporary(folder)) {
        *out_error = "neither TMPDIR nor /tmp is a folder that is safe for ptxas's files";
        return NULL;
    }
    if (!mkdtemp(p.folder)) {
        *out_error = "cannot make a temporary folder for ptxas";
        return NULL;
    }
    char names[3][4352];
    snprintf(names[0], sizeof names[0], "%s/k.ptx", p.folder);
    snprintf(names[1], sizeof names[1], "%s/k.cubin", p.folder);
    snprintf(names[2], sizeof names[2], "%s/log", p.folder);
    p.ptx = names[0];
    p.cubin = names[1];
    p.log = names[2];
    FILE *cubin = NULL, *log = NULL;
    *out_error = assemble(&p, ptx, size, &o, &cubin, &log);
    for (int i = 0; i < 3; i++)
        unlink(names[i]);
    rmdir(p.folder);
    void *code = cubin ? read_all(arena, cubin, SIZE_MAX, out_size) : NULL;
    size_t nlog = 0;
    const char *words = log ? read_all(arena, log, o.words ? MAX_WORDS : MAX_LOG, &nlog) : NULL;
    if (out_words && words)
        *out_words = words;
    if (cubin && !code)
        *out_error = "what ptxas wrote cannot be read";
    if (*out_error && words && nlog)
        *out_error = tl_format(arena, "%s: %s", *out_error, words);
    if (cubin)
        fclose(cubin);
    if (log)
        fclose(log);
    return code;
}
