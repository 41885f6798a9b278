/* output.h: files that a program writes (output.c). Programs only: it keeps the list of temporary
 * files that a signal has to remove. */
#ifndef TL_OUTPUT_H
#define TL_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What the functions below say of the files of a run. Errors go to stderr as "PROGRAM: text". */
typedef struct Output {
    const char *path; /* as the user wrote it; "-": standard output */
    char *final;      /* where it will be, behind symbolic links; NULL: it was written at once */
    char *temporary;  /* beside it, complete, until output_commit */
} Output;

typedef struct Outputs {
    const char *program; /* for messages */
    Output *data;
    size_t len;
} Outputs;

/* First thing in main: descriptors 0 to 2 are open from here on, so that no file becomes standard
 * output, and a file that grows too large is an error, not a signal. */
void output_begin(void);

/* Writes the bytes beside `path`; true only if all of them arrived. A path that names no regular
 * file (a terminal, a pipe, /dev/null, /dev/stdout) is written at once. */
bool output_write(Outputs *o, const char *path, const void *data, size_t size);
/* Gives all that was written its name. Without this call output_drop leaves nothing behind. */
bool output_commit(Outputs *o);
/* Removes what was not committed and frees the list. */
void output_drop(Outputs *o);

/* Has one of the functions above said that there was no memory? */
bool output_lacked_memory(void);

/* Do two paths name one regular file, existing (links included) or not yet? "-" is only "-". */
bool output_same(const char *a, const char *b);

/* Last thing in main: `status`, or 2 when what was printed did not reach standard output, which is
 * then said. */
int output_end(const char *program, int status);
#endif
