/* The core in a process of its own: tilec, started once and kept, compiles for this program
 * (core_process.c, tools/tilec_serve.c). If that process runs out of memory, crashes or never
 * ends, this program gets a status. */
#ifndef TL_CORE_PROCESS_H
#define TL_CORE_PROCESS_H
#include "codegen/compile.h"

typedef struct TlProcess {
    char program[4096]; /* tilec, absolute; "": the one that belongs to this library */
    uint32_t memory;    /* MiB, beside what the process has from the start; 0: no limit */
    uint32_t seconds;   /* that a compilation may take; 0: no limit */
} TlProcess;

/* What a setting says (tilec_options.process). wrong: it says nothing that is known. */
typedef enum TlProcessUse { TL_PROCESS_OFF, TL_PROCESS_ON, TL_PROCESS_WRONG } TlProcessUse;
TlProcessUse tl_process_parse(const char *setting, TlProcess *out);

/* Whether a compilation with these options goes to a process. `process` NULL: TILE_PROCESS says. */
TlProcessUse tl_process_wanted(const tilec_options *o, TlProcess *out);

/* As tl_compile, with options that tilec_options_check accepts, and all arguments there. */
tilec_status tl_process_compile(const TlProcess *p, const char *name, const char *text, size_t size,
                                const tilec_options *o, TlFiles *files, tilec_output **out_output);
#endif
