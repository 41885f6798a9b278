/* Guards (guard.h): a stack of setjmp targets per thread. The stack's head is the only thread-local
 * state of the libraries; it lives as long as the call of a public entry point. */
#include "ir/support/guard.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local TlGuard *innermost;

void tl_guard_push(TlGuard *g)
{
    g->outer = innermost;
    g->fault = TL_FAULT_NONE;
    g->text[0] = 0;
    g->where = NULL;
    innermost = g;
}

void tl_guard_pop(TlGuard *g) { innermost = g->outer; }

TlGuard *tl_guard_current(void) { return innermost; }

void tl_fault(TlFault fault, const char *format, ...)
{
    TlGuard *g = innermost;
    if (!g) abort(); /* an entry point lacks its guard: there is nowhere to return to */
    va_list args;
    va_start(args, format);
    vsnprintf(g->text, sizeof g->text, format, args);
    va_end(args);
    g->fault = fault;
    innermost = g->outer;
    longjmp(g->env, 1);
}
