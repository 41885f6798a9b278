/* tilec_compile.c: tilec [compile]: from a file to one stage of it, a header, a list of files
 * read. */
#include "tools/tilec_options.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What an output file's ending says, and what the stage is called on disk. binary: not for a
 * terminal. */
static const struct Ending {
    const char *ending, *stage;
    bool binary;
} endings[] = {
    {".o", "obj", true},       {".tir", "tir", false},   {".ll", "llvm", false},
    {".s", "asm", false},      {".ptx", "ptx", false},   {".cubin", "cubin", true},
    {".hsaco", "hsaco", true}, {".json", "json", false}, {".img", "image", true},
    {".h", "header", false},
};
enum { NENDINGS = sizeof endings / sizeof *endings };

static const struct Ending *by_stage(const char *stage)
{
    for (int i = 0; i < NENDINGS; i++)
        if (strcmp(endings[i].stage, stage) == 0)
            return &endings[i];
    return NULL;
}

static const char *stage_of_file(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < NENDINGS; i++)
        if (strcmp(endings[i].ending, dot) == 0)
            return endings[i].stage;
    return "obj";
}

static int write_file(const char *path, const void *data, size_t size)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdout : fopen(path, "wb");
    bool ok = f && (size == 0 || fwrite(data, 1, size, f) == size);
    if (f && (standard ? fflush(f) : fclose(f)) != 0)
        ok = false;
    return ok ? EXIT_FINE : usage_error("cannot write '%s': %s", path, strerror(errno));
}

/* The input's name without folder and with another ending, in `text`. */
static const char *beside(const char *input, const char *ending, char *text, size_t size)
{
    const char *slash = strrchr(input, '/'), *name = slash ? slash + 1 : input,
               *dot = strrchr(name, '.');
    int length = dot && dot != name ? (int)(dot - name) : (int)strlen(name);
    snprintf(text, size, "%.*s%s", strcmp(input, "-") == 0 ? 1 : length,
             strcmp(input, "-") == 0 ? "a" : name, ending);
    return text;
}

/* "out: file file": blanks and # in names are escaped, as make wants it. */
static int write_depends(const Options *o, const char *target, const tilec_output *output)
{
    char path[4096];
    const char *ending = strrchr(target, '.');
    snprintf(path, sizeof path, "%.*s.d", ending ? (int)(ending - target) : (int)strlen(target),
             target);
    FILE *f = fopen(o->depfile ? o->depfile : path, "w");
    if (!f)
        return usage_error("cannot write '%s': %s", o->depfile ? o->depfile : path,
                           strerror(errno));
    fprintf(f, "%s:", target);
    for (const char *p = tilec_output_depends(output); *p; p++) {
        if (p == tilec_output_depends(output))
            fputc(' ', f);
        if (*p == '\n') {
            fputs(p[1] ? " \\\n  " : "", f);
            continue;
        }
        fputs(*p == ' ' || *p == '#' ? "\\" : *p == '$' ? "$" : "", f);
        fputc(*p, f);
    }
    fputc('\n', f);
    return fclose(f) == 0 ? EXIT_FINE
                          : usage_error("cannot write '%s'", o->depfile ? o->depfile : path);
}

/* One compilation to `stage`; written to `path` unless that is NULL. */
static int compile_to(const Options *o, const char *stage, const char *path, bool depends)
{
    tilec_options c = o->compile;
    tilec_output *output = NULL;
    size_t size = 0;
    c.emit = stage;
    tilec_status compiled = tilec_compile_file(o->input, &c, &output);
    int status = report_compile(compiled, output);
    const void *data = status == EXIT_FINE ? tilec_output_data(output, &size) : NULL;
    if (status == EXIT_FINE && path)
        status = write_file(path, data, size);
    if (status == EXIT_FINE && depends)
        status = write_depends(o, path ? path : o->input, output);
    tilec_output_free(output);
    return status;
}

/* "emu:NAME", too; that NAME is a GPU is for the compiler to say. */
static bool is_target(const char *name, size_t length)
{
    if (length > 4 && strncmp(name, "emu:", 4) == 0) {
        name += 4;
        length -= 4;
    }
    for (const char *const *t = tilec_targets(); *t; t++)
        if (strlen(*t) == length && strncmp(*t, name, length) == 0)
            return true;
    return false;
}

int check_targets(const char *list)
{
    int count = 0;
    for (const char *p = list; *p || count == 0; count++) {
        size_t n = strcspn(p, ",");
        if (!is_target(p, n)) {
            usage_error("unknown target '%.*s'; known are:", (int)n, p);
            for (const char *const *t = tilec_targets(); *t; t++)
                fprintf(stderr, " %s", *t);
            fputc('\n', stderr);
            return EXIT_USAGE;
        }
        p += n + (p[n] == ',');
    }
    return EXIT_FINE;
}

int command_compile(const Options *options)
{
    Options o = *options;
    char name[4096];
    if (o.target) {
        int status = check_targets(o.target);
        if (status != EXIT_FINE)
            return status;
        o.compile.target = o.target;
    }
    const char *stage = o.emit ? o.emit : o.output ? stage_of_file(o.output) : "image";
    const struct Ending *ending = by_stage(stage);
    const char *path = o.output;
    if (o.emit && !path)
        path = ending && ending->binary ? beside(o.input, ending->ending, name, sizeof name) : "-";
    int status = compile_to(&o, stage, path, o.depends);
    return status == EXIT_FINE && o.header ? compile_to(&o, "header", o.header, false) : status;
}
