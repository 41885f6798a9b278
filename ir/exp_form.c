/* The forms of exp on GPUs (exp_form.h). */
#include "ir/exp_form.h"

#include <string.h>

#include "ir/support/guard.h"

static const TlExpFormInfo FORMS[TL_EXP_FORM_COUNT] = {
#define EXP_FORM(ID, function, instructions, why)                                                  \
    [TL_EXP_FORM_##ID] = {function, instructions, why},
#include "ir/exp_form.def"
};

const TlExpFormInfo *tl_exp_form_info(TlExpForm form)
{
    TL_ASSERT(form > TL_EXP_FORM_NONE && form < TL_EXP_FORM_COUNT, "form %d of exp", (int)form);
    return &FORMS[form];
}

TlExpForm tl_exp_form_of(const char *function)
{
    for (int f = TL_EXP_FORM_NONE + 1; f < TL_EXP_FORM_COUNT; f++)
        if (!strcmp(FORMS[f].function, function))
            return (TlExpForm)f;
    return TL_EXP_FORM_NONE;
}
