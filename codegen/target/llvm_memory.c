/* Running out of memory in LLVM: a fault, where LLVM by itself would end the process.
 *
 * LLVM is C++ without exceptions. Where operator new finds nothing, C++ calls the new-handler of
 * the process; where the containers of LLVM find nothing, LLVM calls its own handler. Both of ours
 * unwind to the guard of the compilation, and what LLVM had in hand is lost.
 *
 * What LLVM makes once in a process (registered passes, tables), it makes behind locks, which a
 * fault leaves locked: who came after would wait forever. So that is done ahead (llvm.c), for each
 * family of targets, and where it runs out of memory LLVM is not used again. */
#include <stdatomic.h>

#include "codegen/target/llvm.h"

/* These have no C API: std::set_new_handler and llvm::install_bad_alloc_error_handler. */
typedef void NewHandler(void);
typedef void BadAllocHandler(void *user, const char *reason, bool gen_crash_diag);
NewHandler *set_new_handler(NewHandler *handler) __asm__("_ZSt15set_new_handlerPFvvE");
void install_bad_alloc_handler(BadAllocHandler *handler, void *user) __asm__(
    "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");

static NewHandler *_Atomic host_handler;

static void on_new_failed(void)
{
    if (tl_guard_current())
        tl_fault(TL_FAULT_LLVM_MEMORY, "out of memory in LLVM");
    NewHandler *host = host_handler; /* no compilation of ours runs: as it would be without us */
    if (host)
        host();
    else
        set_new_handler(NULL); /* operator new tries again, and throws */
}

static void on_bad_alloc(void *user, const char *reason, bool gen_crash_diag)
{
    (void)user, (void)reason, (void)gen_crash_diag;
    if (tl_guard_current())
        tl_fault(TL_FAULT_LLVM_MEMORY, "out of memory in LLVM");
    /* else LLVM goes on to end the host */
}

void tl_llvm_watch_containers(void)
{
    install_bad_alloc_handler(on_bad_alloc, NULL);
}

void tl_llvm_watch_memory(void)
{
    NewHandler *other = set_new_handler(on_new_failed); /* each time: the host may set its own */
    if (other != on_new_failed)
        host_handler = other;
}
