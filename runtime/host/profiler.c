/* profiler.c: what perf reads of code that no file holds, by TILE_PERF.
 *
 * map: /tmp/perf-PID.map, a line "address size name" for each function. `perf report` reads it.
 *
 * dump: /tmp/jit-PID.dump, the code itself and its lines, in perf's format jitdump. `perf inject
 * --jit` makes objects of it, which `perf annotate` shows by line. perf finds the file because the
 * program maps a page of it as code, and orders it among its samples by CLOCK_MONOTONIC (`perf
 * record -k mono`). */
#include "runtime/host/profiler.h"
#include "runtime/host/dwarf_lines.h"
#include "runtime/host/object.h"
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAGIC = 0x4a695444, VERSION = 1, CODE_LOAD = 0, DEBUG_INFO = 2 };

typedef struct function {
    uint64_t address, bytes;
    const char *name;
} function;

typedef struct file_header {
    uint32_t magic, version, bytes, machine, unused, pid;
    uint64_t time, flags;
} file_header;

typedef struct record {
    uint32_t id, bytes;
    uint64_t time;
} record;

typedef struct code_load {
    record head;
    uint32_t pid, tid;
    uint64_t loaded_at, address, bytes, index; /* then the name and the code */
} code_load;

typedef struct debug_info {
    record head;
    uint64_t address, n; /* then n entries */
} debug_info;

typedef struct debug_entry {
    uint64_t address;
    uint32_t line, column; /* then the file's name */
} debug_entry;

/* ---- the functions of an object ---- */

/* Function number *index or a later one of the symbol table; false: there is none. */
static bool next_function(const char *object, const uint64_t *address, uint64_t *index,
                          function *out)
{
    Elf64_Shdr table = tl_object_section(object, tl_object_find_type(object, SHT_SYMTAB));
    Elf64_Shdr names = tl_object_section(object, table.sh_link);
    uint32_t nsections = tl_object_header(object).e_shnum;
    for (uint64_t n = table.sh_size / sizeof(Elf64_Sym); *index < n;) {
        Elf64_Sym s;
        memcpy(&s, object + table.sh_offset + (*index)++ * sizeof s, sizeof s);
        if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx >= nsections || !address[s.st_shndx])
            continue;
        Elf64_Shdr code = tl_object_section(object, s.st_shndx);
        if (code.sh_type != SHT_PROGBITS || s.st_value > code.sh_size ||
            s.st_size > code.sh_size - s.st_value)
            continue;
        *out = (function){address[s.st_shndx] + s.st_value, s.st_size,
                          object + names.sh_offset + s.st_name};
        return true;
    }
    return false;
}

/* ---- the map ---- */

static int create(const char *form, int flags)
{
    char path[64];
    snprintf(path, sizeof path, form, (long)getpid());
    return open(path, O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
}

static void add_to_map(const char *object, const uint64_t *address)
{
    int map = create("/tmp/perf-%ld.map", O_WRONLY | O_APPEND);
    function f;
    bool fine = map >= 0;
    for (uint64_t i = 0; fine && next_function(object, address, &i, &f);) {
        char line[512];
        int n =
            snprintf(line, sizeof line, "%" PRIx64 " %" PRIx64 " %s\n", f.address, f.bytes, f.name);
        fine = n >= (int)sizeof line || write(map, line, (size_t)n) == n;
    }
    if (map >= 0)
        close(map);
}

/* ---- the dump ---- */

static struct {
    pthread_mutex_t lock;
    pid_t pid;  /* whose file it is: a child begins its own */
    FILE *file; /* NULL: it cannot be written */
    uint64_t index;
} dump = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool put(const void *data, size_t bytes)
{
    return fwrite(data, 1, bytes, dump.file) == bytes;
}

static void end_dump(void)
{
    if (dump.file)
        fclose(dump.file);
    dump.file = NULL;
}

/* The page that perf sees stays mapped until the process ends. */
static bool begin_dump(uint32_t machine)
{
    file_header h = {MAGIC, VERSION, sizeof h, machine, 0, (uint32_t)getpid(), now(), 0};
    int fd = create("/tmp/jit-%ld.dump", O_RDWR | O_TRUNC);
    dump.pid = getpid();
    dump.index = 0;
    dump.file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (fd >= 0 && !dump.file)
        close(fd);
    return dump.file && put(&h, sizeof h) && fflush(dump.file) == 0 &&
           mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) !=
               MAP_FAILED;
}

static bool is_dump_open(uint32_t machine)
{
    if (dump.pid == getpid())
        return dump.file;
    end_dump();
    return begin_dump(machine);
}

static bool is_of(const function *f, const tl_line *l)
{
    return l->line != 0 && l->address >= f->address && l->address - f->address < f->bytes;
}

static const char *slash(const tl_line *l)
{
    return l->directory[0] ? "/" : "";
}

static size_t entry_bytes(const tl_line *l)
{
    return sizeof(debug_entry) + strlen(l->directory) + strlen(slash(l)) + strlen(l->file) + 1;
}

/* Before the code of the function, as perf wants it. */
static bool put_lines(const function *f, const tl_line *lines, uint32_t n)
{
    debug_info info = {{DEBUG_INFO, sizeof info, now()}, f->address, 0};
    for (uint32_t i = 0; i < n; i++)
        if (is_of(f, &lines[i])) {
            info.n++;
            info.head.bytes += (uint32_t)entry_bytes(&lines[i]);
        }
    bool fine = info.n == 0 || put(&info, sizeof info);
    for (uint32_t i = 0; fine && i < n; i++) {
        const tl_line *l = &lines[i];
        debug_entry e = {l->address, l->line, l->column};
        if (is_of(f, l))
            fine = put(&e, sizeof e) && put(l->directory, strlen(l->directory)) &&
                   put(slash(l), strlen(slash(l))) && put(l->file, strlen(l->file) + 1);
    }
    return fine;
}

static bool put_code(const function *f)
{
    size_t name = strlen(f->name) + 1;
    code_load c = {.head = {CODE_LOAD, (uint32_t)(sizeof c + name + f->bytes), now()},
                   .pid = (uint32_t)getpid(),
                   .tid = (uint32_t)syscall(SYS_gettid),
                   .loaded_at = f->address,
                   .address = f->address,
                   .bytes = f->bytes,
                   .index = dump.index++};
    return put(&c, sizeof c) && put(f->name, name) &&
           put((const void *)(uintptr_t)f->address, f->bytes);
}

static void add_to_dump(const char *object, const uint64_t *address)
{
    function f;
    tl_line *lines = NULL;
    uint32_t n = tl_dwarf_lines(object, address, &lines);
    pthread_mutex_lock(&dump.lock);
    bool fine = is_dump_open(tl_object_header(object).e_machine);
    for (uint64_t i = 0; fine && next_function(object, address, &i, &f);)
        fine = put_lines(&f, lines, n) && put_code(&f);
    if (!fine || fflush(dump.file) != 0) /* half a record: perf reads what is before it */
        end_dump();
    pthread_mutex_unlock(&dump.lock);
    free(lines);
}

void tl_profiler_add(const char *object, const uint64_t *address)
{
    const char *wanted = secure_getenv("TILE_PERF");
    if (!wanted || !tl_object_find_type(object, SHT_SYMTAB))
        return;
    if (strcmp(wanted, "map") == 0)
        add_to_map(object, address);
    else if (strcmp(wanted, "dump") == 0)
        add_to_dump(object, address);
}
