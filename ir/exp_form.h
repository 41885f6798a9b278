/* The forms of exp on GPUs (exp_form.def): the frontend chooses one, and remarks it (TL_REMARK_EXP)
 * at its exp2; the report says which, and why. And of how many pairs of registers an exp2 says how
 * many are computed by sums and products (TL_ATTR_SPREAD). */
#ifndef TL_EXP_FORM_H
#define TL_EXP_FORM_H

enum { TL_SPREAD_PAIRS = 16 };

typedef enum TlExpForm {
    TL_EXP_FORM_NONE,
#define EXP_FORM(ID, ...) TL_EXP_FORM_##ID,
#include "ir/exp_form.def"
    TL_EXP_FORM_COUNT
} TlExpForm;

typedef struct TlExpFormInfo {
    const char *function; /* of std.math */
    int instructions;     /* of a thread for an element, about */
    const char *why;
} TlExpFormInfo;

const TlExpFormInfo *tl_exp_form_info(TlExpForm form);
TlExpForm tl_exp_form_of(const char *function); /* NONE: it is no form of exp */
#endif
