/* tilec_compile.c: tilec [compile]: turns a file into one stage, a header, or a list of the files
 * read. */
#include "codegen/compile_library.h"
#include "codegen/target/target.h"
#include "ir/support/ascii.h"
#include "ir/support/near.h"
#include "tools/tilec_options.h"
#include "tools/tuned.h"
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

/* The input's name without folder and with another ending, in `text`; the last of a module's. */
static const char *beside(const char *input, const char *ending, char *text, size_t size)
{
    const char *slash = strrchr(input, '/'), *name = slash ? slash + 1 : input,
               *dot = strrchr(name, '.');
    if (tl_library_is_name(input))
        name = tl_library_own_name(input), dot = NULL;
    int length = dot && dot != name ? (int)(dot - name) : (int)strlen(name);
    snprintf(text, size, "%.*s%s", strcmp(input, "-") == 0 ? 1 : length,
             strcmp(input, "-") == 0 ? "a" : name, ending);
    return text;
}

/* ---- what a compilation writes ---- */

typedef struct Job {
    const Options *o;
    tilec_options compile;
    const char *stage, *path; /* path NULL: nothing is written */
    tilec_output *output, *header;
    Tuned tuned;
    char beside[4096], depfile[4096], name[256]; /* texts that paths and options point into */
    OutputName names[4];
    size_t nnames;
} Job;

/* What make is told to be made of the files read. */
static const char *make_target(const Job *j)
{
    return j->path && strcmp(j->path, "-") != 0 ? j->path : j->o->input;
}

static const char *depfile_of(Job *j)
{
    if (j->o->depfile)
        return j->o->depfile;
    const char *target = make_target(j), *slash = strrchr(target, '/'),
               *ending = strrchr(slash ? slash : target, '.');
    snprintf(j->depfile, sizeof j->depfile, "%.*s.d",
             ending ? (int)(ending - target) : (int)strlen(target), target);
    return j->depfile;
}

/* The image's name: --name, else that of the file it goes into. */
static const char *name_of(Job *j)
{
    bool is_file = j->path && strcmp(j->path, "-") != 0;
    const char *file = is_file ? j->path : j->o->header, *slash = file ? strrchr(file, '/') : NULL;
    if (j->o->name || !file || strcmp(file, "-") == 0)
        return j->o->name;
    file = slash ? slash + 1 : file;
    const char *dot = strrchr(file, '.');
    snprintf(j->name, sizeof j->name, "%.*s",
             dot && dot != file ? (int)(dot - file) : (int)strlen(file), file);
    return j->name;
}

static void name_outputs(Job *j)
{
    if (j->path)
        j->names[j->nnames++] = (OutputName){"-o", j->path};
    if (j->o->header)
        j->names[j->nnames++] = (OutputName){"--header", j->o->header};
    if (j->o->depends)
        j->names[j->nnames++] = (OutputName){"-MF", depfile_of(j)};
    if (j->o->time_trace)
        j->names[j->nnames++] = (OutputName){"--time-trace", j->o->time_trace};
}

static int compile_to(const Job *j, const char *stage, tilec_output **out_output)
{
    tilec_options c = j->compile;
    c.emit = stage;
    if (j->output)
        c.diagnostic = NULL; /* they have been shown */
    tilec_status compiled = tilec_compile_file(j->o->input, &c, out_output);
    return report_compile(compiled, *out_output);
}

/* "out: file file": blanks and # in names are escaped, as make wants it. */
static void put_name(FILE *f, const char *name, size_t length)
{
    for (const char *p = name; p < name + length; p++) {
        fputs(*p == ' ' || *p == '#' ? "\\" : *p == '$' ? "$" : "", f);
        fputc(*p, f);
    }
}

static void put_depends(FILE *f, const char *target, const char *depends, const char *tuned)
{
    fprintf(f, "%s:", target);
    for (const char *p = depends; *p; p += strcspn(p, "\n") + 1) {
        fputs(p == depends ? " " : " \\\n  ", f);
        put_name(f, p, strcspn(p, "\n"));
    }
    if (tuned) {
        fputs(" \\\n  ", f);
        put_name(f, tuned, strlen(tuned));
    }
    fputc('\n', f);
}

static int write_depends(Job *j, Outputs *outputs)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (f)
        put_depends(f, make_target(j), tilec_output_depends(j->output),
                    j->tuned.rows.file.len ? j->tuned.path : NULL);
    bool ok = f && fclose(f) == 0;
    int status = !ok ? out_of_memory()
                 : output_write(outputs, depfile_of(j), text, size) ? EXIT_FINE
                                                                      : EXIT_USAGE;
    free(text);
    return status;
}

static int write_output(Outputs *outputs, const char *path, const tilec_output *output)
{
    size_t size;
    const void *data = tilec_output_data(output, &size);
    return output_write(outputs, path, data, size) ? EXIT_FINE : EXIT_USAGE;
}

/* All of them or, when something goes wrong, none. */
static int write_all(Job *j)
{
    Outputs outputs = {.program = "tilec"};
    int status = EXIT_FINE;
    if (j->path)
        status = write_output(&outputs, j->path, j->output);
    if (status == EXIT_FINE && j->o->header)
        status = write_output(&outputs, j->o->header, j->header);
    if (status == EXIT_FINE && j->o->depends)
        status = write_depends(j, &outputs);
    if (status == EXIT_FINE && j->o->time_trace)
        status = write_trace(j->o, j->output, &outputs);
    if (status == EXIT_FINE && !output_commit(&outputs))
        status = EXIT_USAGE;
    output_drop(&outputs);
    return status;
}

static bool is_target(const char *name, size_t length)
{
    char text[64];
    bool emulate;
    snprintf(text, sizeof text, "%.*s", (int)length, name);
    return length < sizeof text && tl_target_find(text, &emulate);
}

static int unknown_target(const char *name, size_t length)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)length, name);
    static const struct {
        const char *name, *advice;
    } habits[] = {
#define TARGET_HABIT(name, advice) {name, advice},
#include "tools/habits.def"
    };
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (strlen(habits[i].name) == strlen(text) &&
            tl_same_letters(text, habits[i].name, strlen(text)))
            return usage_error("unknown target '%s': %s", text, habits[i].advice);
    TlNear near = tl_near(text);
    for (const char *const *t = tilec_targets(); *t; t++)
        tl_near_try(&near, *t);
    if (near.best)
        return usage_error("unknown target '%s'; did you mean '%s'? tilec targets lists them", text,
                           near.best);
    usage_error("unknown target '%.*s'; expected one of:", (int)length, name);
    for (const char *const *t = tilec_targets(); *t; t++)
        fprintf(stderr, " %s", *t);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

int check_targets(const char *list)
{
    int count = 0;
    for (const char *p = list; *p || count == 0; count++) {
        size_t n = strcspn(p, ",");
        if (!is_target(p, n))
            return unknown_target(p, n);
        p += n + (p[n] == ',');
    }
    return EXIT_FINE;
}

static int make_all(Job *j)
{
    int status = check_output_names(j->o, NULL, j->names, j->nnames);
    if (j->o->header && strcmp(j->o->input, "-") == 0)
        return usage_error(
            "standard input can be read only once: give a file to make a header, too");
    if (status == EXIT_FINE)
        status = compile_to(j, j->stage, &j->output);
    if (status == EXIT_FINE && j->o->header)
        status = compile_to(j, "header", &j->header);
    if (status == EXIT_FINE) /* again: now the imports are known */
        status = check_output_names(j->o, tilec_output_depends(j->output), j->names, j->nnames);
    return status == EXIT_FINE ? write_all(j) : status;
}

int command_compile(const Options *o)
{
    Job j = {.o = o, .compile = o->compile, .path = o->output};
    if (o->target) {
        int status = check_targets(o->target);
        if (status != EXIT_FINE)
            return status;
        j.compile.target = o->target;
    }
    j.stage = o->emit ? o->emit : o->output ? stage_of_file(o->output) : "image";
    const struct Ending *ending = by_stage(j.stage);
    if (o->emit && !j.path)
        j.path = ending && ending->binary
                     ? beside(o->input, ending->ending, j.beside, sizeof j.beside)
                     : "-";
    j.compile.name = name_of(&j);
    name_outputs(&j);
    int status = tuned_read(o, o->target, &j.compile, &j.tuned);
    if (status == EXIT_FINE)
        status = make_all(&j);
    tuned_free(&j.tuned);
    tilec_output_free(j.output);
    tilec_output_free(j.header);
    return status;
}

/* Each file; the status is that of the first that is wrong. */
int command_check(const Options *o)
{
    int first = EXIT_FINE;
    for (size_t i = 0; i < o->files.len; i++) {
        Options one = *o;
        one.input = o->files.data[i];
        int status = command_compile(&one);
        first = first == EXIT_FINE ? status : first;
    }
    return first;
}
