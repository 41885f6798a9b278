/* What the files of the verifier share: verify.c walks a function and checks its structure, then
 * calls the rule of each op (column `rule` of ops.def; verify_rules.c). Rules may rely on:
 * operand, result and region counts as in the table, required attributes present, no others,
 * enumerations in range, no NULL anywhere. */
#ifndef TL_VERIFY_H
#define TL_VERIFY_H
#include "ir/text/text.h"

enum { TL_MAX_FAULTS = 20 };

typedef struct TlVerify {
    const TlFn *fn;
    TlArena scratch;
    TlVerifyReport report;
    void *user;
    uint32_t faults;
} TlVerify;

/* Reports "op: text"; op may be NULL. Returns false. */
bool tl_verify_fault(TlVerify *v, const TlOp *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const char *tl_verify_type(TlVerify *v, const TlType *t); /* its text */

typedef void (*TlCheckFn)(TlVerify *v, const TlOp *op);
TlCheckFn tl_verify_rule(TlOpcode opcode);
/* The laid-out level (verify_layout.c); runs when all else is right. */
void tl_verify_layouts(TlVerify *v);
#endif
