/* Running out of memory in LLVM: a fault, where LLVM itself would end the process.
 *
 * LLVM is C++ without exceptions. When operator new fails, C++ calls the new-handler of the
 * process; when LLVM's containers fail, LLVM calls its own handler. Both of ours unwind to the
 * guard of the compilation, and what LLVM was building is lost.
 *
 * What LLVM makes once in a process (registered passes, tables), it makes under locks, which a
 * fault would leave locked, so that later callers would wait forever. So all of that is made ahead
 * (llvm.c), for each family of targets; if it runs out of memory there, LLVM is not used again.
 * Some functions allocate under a lock at any time (LOCKED): they get memory that is reserved for
 * them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unwind.h>

#include "codegen/target/llvm.h"

/* These have no C API: std::set_new_handler and llvm::install_bad_alloc_error_handler. */
typedef void NewHandler(void);
typedef void BadAllocHandler(void *user, const char *reason, bool gen_crash_diag);
NewHandler *set_new_handler(NewHandler *handler) __asm__("_ZSt15set_new_handlerPFvvE");
void install_bad_alloc_handler(BadAllocHandler *handler, void *user) __asm__(
    "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");

static NewHandler *_Atomic host_handler;

/* The functions of LLVM 19 and 22 for the targets that we have, which allocate behind a lock, or
 * while they initialise a static variable: of those that call pthread_mutex_lock or
 * __cxa_guard_acquire. NULL: not in this LLVM. They take at most some 100 KB. LLVM 22's own for
 * annotations are not seen from outside: their callers stand here. */
#define WEAK(name, symbol) extern char name[] __asm__(symbol) __attribute__((weak))
WEAK(find_one_annotation,
     "_ZN4llvm21findOneNVVMAnnotationEPKNS_11GlobalValueERKNSt7__cxx1112basic_stringIcSt11char_"
     "traitsIcESaIcEEERj");
WEAK(find_all_annotations,
     "_ZN4llvm21findAllNVVMAnnotationEPKNS_11GlobalValueERKNSt7__cxx1112basic_stringIcSt11char_"
     "traitsIcESaIcEEERSt6vectorIjSaIjEE");
WEAK(is_texture, "_ZN4llvm9isTextureERKNS_5ValueE");
WEAK(is_surface, "_ZN4llvm9isSurfaceERKNS_5ValueE");
WEAK(is_sampler, "_ZN4llvm9isSamplerERKNS_5ValueE");
WEAK(is_managed, "_ZN4llvm9isManagedERKNS_5ValueE");
WEAK(is_image, "_ZN4llvm7isImageERKNS_5ValueE");
WEAK(value_type_list, "_ZN4llvm6SDNode16getValueTypeListENS_3EVTE");
WEAK(library_functions, "_ZNK4llvm21TargetLibraryInfoImpl10getLibFuncENS_9StringRefERNS_7LibFuncE");
WEAK(managed_static, "_ZNK4llvm17ManagedStaticBase21RegisterManagedStaticEPFPvvEPFvS1_E");
WEAK(x86_unfold_table, "_ZN4llvm17lookupUnfoldTableEj");
WEAK(x86_broadcast_table, "_ZN4llvm30lookupBroadcastFoldTableBySizeEjj");
static const char *const LOCKED[] = {find_one_annotation,
                                     find_all_annotations,
                                     is_texture,
                                     is_surface,
                                     is_sampler,
                                     is_managed,
                                     is_image,
                                     value_type_list,
                                     library_functions,
                                     x86_unfold_table,
                                     x86_broadcast_table,
                                     managed_static};

/* What they get: one piece for each thread that runs out of memory there. */
enum { RESERVES = 4, RESERVE_BYTES = 256 << 10 };
static void *_Atomic reserve[RESERVES];

static bool fill_reserves(void)
{
    for (int i = 0; i < RESERVES; i++) {
        void *none = NULL, *piece = reserve[i] ? NULL : malloc(RESERVE_BYTES);
        if (!reserve[i] && !piece)
            return false;
        if (piece && !atomic_compare_exchange_strong(&reserve[i], &none, piece))
            free(piece);
    }
    return true;
}

static bool free_reserve(void)
{
    for (int i = 0; i < RESERVES; i++) {
        void *piece = atomic_exchange(&reserve[i], NULL);
        free(piece);
        if (piece)
            return true;
    }
    return false;
}

static _Unwind_Reason_Code find_locked(struct _Unwind_Context *frame, void *found)
{
    const char *function = (const char *)_Unwind_GetRegionStart(frame);
    for (size_t i = 0; i < sizeof LOCKED / sizeof *LOCKED; i++)
        *(bool *)found |= function && function == LOCKED[i];
    return *(bool *)found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static bool is_behind_lock(void)
{
    bool found = false;
    _Unwind_Backtrace(find_locked, &found);
    return found;
}

static void on_new_failed(void)
{
    if (tl_guard_current()) {
        if (is_behind_lock() && free_reserve())
            return; /* operator new tries again */
        tl_fault(TL_FAULT_LLVM_MEMORY, "out of memory in LLVM");
    }
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
    if (!fill_reserves())
        tl_fault(TL_FAULT_MEMORY, "out of memory");
    NewHandler *other = set_new_handler(on_new_failed); /* each time: the host may set its own */
    if (other != on_new_failed)
        host_handler = other;
}
