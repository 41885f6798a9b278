/* PTX to machine code by NVIDIA's assembler, if the machine has it (cubin.c). */
#ifndef TL_CUBIN_H
#define TL_CUBIN_H
#include "ir/support/arena.h"
#include "ir/support/diag.h"

/* Runs `ptxas -arch=arch` on a text. NULL: *out_error says why: no ptxas on PATH, it refused (with
 * its words), it took longer than TILE_PTXAS_SECONDS (60), a file could not be written. `lines`:
 * with line information. out_words: NULL, or where what ptxas -v says goes. Memory is in
 * `arena`. */
void *tl_cubin(TlArena *arena, const char *ptx, size_t size, const char *arch, bool lines,
               size_t *out_size, const char **out_words, const char **out_error);

/* The next thing that ptxas says of an asm in the text, from *words on, which moves on: where the
 * asm stands, and in `arena` what ptxas says and the line that it is about. False: nothing more. */
bool tl_cubin_asm_error(TlArena *arena, const char *ptx, const char **words, TlLoc *out_loc,
                        const char **out_said, const char **out_line);
#endif
