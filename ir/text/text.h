/* Shared by the printer and the parser of the text form, and by the verifier's reports. Private to
 * ir/. */
#ifndef TL_TEXT_H
#define TL_TEXT_H
#include "ir/ir.h"

/* Launch-time expressions: the name of an instruction, and whether it has an operand. */
const char *tl_hx_name(uint32_t op); /* NULL when out of range */
bool tl_hx_has_imm(uint32_t op);
int tl_hx_pops(uint32_t op); /* words taken from the stack; each instruction pushes one */

/* Decimal text to the nearest double and back, whatever the host's locale. */
double tl_text_to_double(const char *text, size_t length);

/* One fault of the verifier. op is NULL for faults of the function itself. */
typedef void (*TlVerifyReport)(void *user, const TlFn *fn, const TlOp *op, const char *text);
bool tl_verify_with(const TlFn *fn, TlVerifyReport report, void *user);
#endif
