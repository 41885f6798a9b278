/* tilec_options.process as a text: "off", "on" or the path of a tilec, and its limits. */
#include <stdlib.h>
#include <string.h>

#include "codegen/compile_bound.h"
#include "codegen/core_process.h"

/* Takes ",NAME=NUMBER" off the end of text[*length]. */
static bool take_limit(const char *text, size_t *length, const char *name, uint32_t *out)
{
    size_t n = strlen(name), digits = 0;
    uint64_t value = 0, unit = 1;
    while (digits < *length && digits < 9 && text[*length - 1 - digits] >= '0' &&
           text[*length - 1 - digits] <= '9') {
        value += unit * (uint64_t)(text[*length - 1 - digits] - '0');
        unit *= 10;
        digits++;
    }
    size_t all = n + digits;
    if (!digits || !value || *length < all || memcmp(text + *length - all, name, n) != 0)
        return false;
    *out = (uint32_t)value;
    *length -= all;
    return true;
}

TlProcessUse tl_process_parse(const char *setting, TlProcess *out)
{
    *out = (TlProcess){0};
    size_t length = strlen(setting);
    while (take_limit(setting, &length, ",memory=", &out->memory) ||
           take_limit(setting, &length, ",seconds=", &out->seconds))
        continue;
    if (length == 3 && !strcmp(setting, "off"))
        return TL_PROCESS_OFF;
    if (length == 2 && !memcmp(setting, "on", 2))
        return TL_PROCESS_ON;
    if (*setting != '/' || length >= sizeof out->program)
        return TL_PROCESS_WRONG;
    memcpy(out->program, setting, length);
    return TL_PROCESS_ON;
}

TlProcessUse tl_process_wanted(const tilec_options *o, TlProcess *out)
{
    const char *setting = o->process ? o->process
                          : o->bound ? o->bound->process
                                     : secure_getenv("TILE_PROCESS");
    TlProcessUse use = setting && *setting ? tl_process_parse(setting, out) : TL_PROCESS_OFF;
    return use == TL_PROCESS_ON && o->report ? TL_PROCESS_OFF : use;
}
