/* emu_fiber.c: contexts for the emulator's threads.
 *
 * A switch saves the registers that a called function must keep on the stack that it leaves, stores
 * the stack pointer, loads the other one and pops: some 8 ns, against 160 for swapcontext, which
 * asks the kernel for the signal mask. Floating-point modes are the host thread's, for all.
 *
 * Stacks come from large mappings that are never returned before the end. Only pages that were
 * touched take memory. Each stack lies above a page that may not be touched, so an overflow stops
 * the process where it happens. All stacks begin at the same distance from a page's start, so their
 * hot ends would share few sets of the cache: the tops are shifted by a stack's number.
 *
 * A new context looks like one that has switched away: its saved return address is a piece of
 * assembly that passes a saved register on as the argument of the function in another. */
#include "runtime/emu/emu_fiber.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define HAVE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#elif __has_feature(thread_sanitizer)
#define HAVE_TSAN 1
#endif
#endif
#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef HAVE_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* ---- the switch ---- */

/* Saves the caller's registers, puts the stack pointer into *save and goes on at `sp`. */
void tl_fiber_swap(void **save, void *sp);
void tl_fiber_boot(void);

#if defined(__x86_64__)
/* clang-format off */
__asm__(".text\n"
        ".globl tl_fiber_swap\n.hidden tl_fiber_swap\n.type tl_fiber_swap,@function\n"
        ".p2align 4\n"
        "tl_fiber_swap:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size tl_fiber_swap,.-tl_fiber_swap\n"
        ".globl tl_fiber_boot\n.hidden tl_fiber_boot\n.type tl_fiber_boot,@function\n"
        "tl_fiber_boot:\n" /* rbx: main, r12: user */
        "  xorl %ebp, %ebp\n"
        "  movq %r12, %rdi\n"
        "  call *%rbx\n"
        "  ud2\n"
        ".size tl_fiber_boot,.-tl_fiber_boot\n");
/* clang-format on */

/* What the switch pops: r15 r14 r13 r12 rbx rbp, then the return address. The stack pointer is a
 * multiple of 16 in boot, as before every call. */
static void *first_frame(uint64_t *top, void (*main)(void *user), void *user)
{
    uint64_t *sp = top - 9;
    memset(sp, 0, 9 * sizeof *sp);
    sp[3] = (uint64_t)(uintptr_t)user;
    sp[4] = (uint64_t)(uintptr_t)main;
    sp[6] = (uint64_t)(uintptr_t)tl_fiber_boot;
    return sp;
}

#elif defined(__aarch64__)
/* clang-format off */
__asm__(".text\n"
        ".globl tl_fiber_swap\n.hidden tl_fiber_swap\n.type tl_fiber_swap,%function\n"
        ".p2align 4\n"
        "tl_fiber_swap:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size tl_fiber_swap,.-tl_fiber_swap\n"
        ".globl tl_fiber_boot\n.hidden tl_fiber_boot\n.type tl_fiber_boot,%function\n"
        "tl_fiber_boot:\n" /* x19: main, x20: user */
        "  mov x0, x20\n"
        "  blr x19\n"
        "  brk #1\n"
        ".size tl_fiber_boot,.-tl_fiber_boot\n");
/* clang-format on */

static void *first_frame(uint64_t *top, void (*main)(void *user), void *user)
{
    uint64_t *sp = top - 20;
    memset(sp, 0, 20 * sizeof *sp);
    sp[0] = (uint64_t)(uintptr_t)main;
    sp[1] = (uint64_t)(uintptr_t)user;
    sp[11] = (uint64_t)(uintptr_t)tl_fiber_boot;
    return sp;
}

#else
#error "the emulator's context switch is not written for this processor"
#endif

/* ---- contexts ---- */

/* Sanitizers keep a shadow of each context's stack, so they must be told. Inlined, because a call
 * must not begin in one context and end in another. */
static inline __attribute__((always_inline)) void switch_begins(tl_fiber *from, tl_fiber *to,
                                                                bool ends)
{
    to->from = ends ? NULL : from;
#if defined(HAVE_ASAN)
    __sanitizer_start_switch_fiber(ends ? NULL : &from->fake, to->bottom, to->bytes);
#elif defined(HAVE_TSAN)
    from->context = __tsan_get_current_fiber(); /* the worker may run on another host thread now */
    to->ended = ends ? from->context : NULL;
    if (ends)
        from->context = NULL;
    __tsan_switch_to_fiber(to->context, 0);
#endif
}

static inline __attribute__((always_inline)) void switch_ended(tl_fiber *self)
{
#if defined(HAVE_ASAN)
    /* also reports the stack that was left; so the host thread's own stack becomes known */
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(self->fake, &bottom, &bytes);
    if (self->from) {
        self->from->bottom = bottom;
        self->from->bytes = bytes;
    }
#elif defined(HAVE_TSAN)
    if (self->ended)
        __tsan_destroy_fiber(self->ended);
    self->ended = NULL;
#else
    (void)self;
#endif
}

static void stack_is_fresh(void *stack, size_t bytes)
{
#if defined(HAVE_ASAN)
    __asan_unpoison_memory_region(stack, bytes);
#else
    (void)stack;
    (void)bytes;
#endif
}

void tl_fiber_drop(tl_fiber *f)
{
#if defined(HAVE_TSAN)
    if (f->context)
        __tsan_destroy_fiber(f->context);
#endif
    f->context = NULL;
}

void tl_fiber_started(tl_fiber *self)
{
    switch_ended(self);
}

void tl_fiber_switch(tl_fiber *from, tl_fiber *to)
{
    switch_begins(from, to, false);
    tl_fiber_swap(&from->sp, to->sp);
    switch_ended(from);
}

void tl_fiber_leave(tl_fiber *from, tl_fiber *to)
{
    switch_begins(from, to, true);
    tl_fiber_swap(&from->sp, to->sp);
    __builtin_unreachable();
}

/* ---- stacks ---- */

enum { STACKS_PER_SLAB = 32, COLOURS = 15, COLOUR_BYTES = 272 };

typedef struct slab {
    struct slab *next;
    char *base;
} slab;

struct tl_fiber_stacks {
    size_t page, bytes; /* of a stack, without its guard */
    slab *slabs;
    void **spare; /* unused stacks, the last one on top */
    size_t nspare, nstacks;
};

tile_status tl_fiber_stacks_new(size_t bytes, tl_fiber_stacks **out_stacks)
{
    TL_INVARIANT(bytes > 0 && out_stacks, "stacks of %zu bytes", bytes);
    tl_fiber_stacks *s = calloc(1, sizeof *s);
    if (!s)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    s->page = (size_t)sysconf(_SC_PAGESIZE);
    s->bytes = (bytes + s->page - 1) / s->page * s->page;
    *out_stacks = s;
    return TILE_OK;
}

static size_t slab_bytes(const tl_fiber_stacks *s)
{
    return STACKS_PER_SLAB * (s->page + s->bytes);
}

void tl_fiber_stacks_free(tl_fiber_stacks *s)
{
    if (!s)
        return;
    for (slab *at = s->slabs; at;) {
        slab *next = at->next;
        stack_is_fresh(at->base, slab_bytes(s));
        munmap(at->base, slab_bytes(s));
        free(at);
        at = next;
    }
    free(s->spare);
    free(s);
}

size_t tl_fiber_stack_bytes(const tl_fiber_stacks *s)
{
    return s->bytes;
}

static bool open_stacks(const tl_fiber_stacks *s, char *base)
{
    for (int i = 0; i < STACKS_PER_SLAB; i++)
        if (mprotect(base + (size_t)i * (s->page + s->bytes) + s->page, s->bytes,
                     PROT_READ | PROT_WRITE) != 0)
            return false;
    return true;
}

/* One more mapping of stacks; false: no memory. */
static bool add_slab(tl_fiber_stacks *s)
{
    void **spare = realloc(s->spare, (s->nstacks + STACKS_PER_SLAB) * sizeof *spare);
    slab *new = calloc(1, sizeof *new);
    if (spare)
        s->spare = spare;
    void *base = spare && new ? mmap(NULL, slab_bytes(s), PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                              : MAP_FAILED;
    if (base == MAP_FAILED || !open_stacks(s, base)) {
        if (base != MAP_FAILED)
            munmap(base, slab_bytes(s));
        free(new);
        return false;
    }
    new->base = base;
    new->next = s->slabs;
    s->slabs = new;
    for (int i = STACKS_PER_SLAB - 1; i >= 0; i--)
        s->spare[s->nspare++] = new->base + (size_t)i *(s->page + s->bytes) + s->page;
    s->nstacks += STACKS_PER_SLAB;
    return true;
}

void *tl_fiber_stack_take(tl_fiber_stacks *s)
{
    if (s->nspare == 0 && !add_slab(s))
        return NULL;
    TL_INVARIANT_OR(NULL, s->nspare > 0 && s->nspare <= s->nstacks, "%zu spare stacks of %zu",
                    s->nspare, s->nstacks);
    return s->spare[--s->nspare];
}

void tl_fiber_stack_give(tl_fiber_stacks *s, void *stack)
{
    TL_INVARIANT_VOID(stack && s->nspare < s->nstacks, "stack %p is given back to %zu of %zu",
                      stack, s->nspare, s->nstacks);
    s->spare[s->nspare++] = stack;
}

void tl_fiber_prepare(tl_fiber *f, const tl_fiber_stacks *stacks, void *stack,
                      void (*main)(void *user), void *user)
{
    size_t colour = (uintptr_t)stack / (stacks->page + stacks->bytes) % COLOURS;
    char *top = (char *)stack + stacks->bytes - colour * COLOUR_BYTES;
    _Static_assert(COLOUR_BYTES % 16 == 0 && COLOURS * COLOUR_BYTES < TL_FIBER_STACK / 8,
                   "tops are aligned, and leave most of the stack");
    TL_INVARIANT_VOID((uintptr_t)top % 16 == 0, "a stack's top at %p", (void *)top);
    stack_is_fresh(stack, stacks->bytes);
    *f = (tl_fiber){.bottom = stack, .bytes = stacks->bytes};
    f->sp = first_frame((uint64_t *)(void *)top, main, user);
#ifdef HAVE_TSAN
    f->context = __tsan_create_fiber(0);
#endif
}
