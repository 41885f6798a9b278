/* Registers and spills, from the output of ptxas and the notes of AMD code objects (usage.h). */
#include "codegen/report/usage.h"

#include "codegen/target/notes.h"

#include <stdlib.h>
#include <string.h>

/* ---- ptxas ---- */

/* The number before `what` in the text up to `end`; 0 if there is none. */
static int number_before(const char *text, const char *end, const char *what)
{
    const char *at = strstr(text, what);
    if (!at || at >= end)
        return 0;
    while (at > text && at[-1] == ' ')
        at--;
    while (at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return (int)strtol(at, NULL, 10);
}

bool tl_usage_of_ptxas(const char *words, const char *kernel, TlUsage *out)
{
    static const char HEAD[] = "Compiling entry function '";
    size_t n = strlen(kernel);
    for (const char *at = strstr(words, HEAD), *next; at; at = next) {
        at += strlen(HEAD);
        next = strstr(at, HEAD);
        const char *end = next ? next : at + strlen(at);
        if (strncmp(at, kernel, n) != 0 || at[n] != '\'')
            continue;
        *out = (TlUsage){.accumulators = -1,
                         .scalars = -1,
                         .spilled_scalars = -1,
                         .registers = number_before(at, end, " registers"),
                         .spilled = number_before(at, end, " bytes spill stores"),
                         .reloaded = number_before(at, end, " bytes spill loads"),
                         .private_bytes = number_before(at, end, " bytes stack frame")};
        return out->registers > 0;
    }
    return false;
}

/* ---- AMD ---- */

bool tl_usage_of_hsaco(const void *code, size_t size, const char *kernel, TlUsage *out)
{
    TlNotes n;
    if (!tl_notes_of_object(code, size, kernel, &n))
        return false;
    *out = (TlUsage){.registers = n.registers,
                     .accumulators = n.accumulators,
                     .scalars = n.scalars,
                     .spilled = n.spilled,
                     .reloaded = -1,
                     .spilled_scalars = n.spilled_scalars,
                     .private_bytes = n.private_bytes};
    return true;
}
