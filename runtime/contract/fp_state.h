/* fp_state.h: the floating-point state in which everything here computes: round to nearest,
 * subnormals kept, exceptions masked. A host may call in any state; it finds its own again, with
 * its exception flags, when the call returns. Kernels and folded constants then depend on nothing
 * but the program.
 *
 * Entries of the libraries say TL_FP_SCOPE(); at their top, threads of ours tl_fp_enter() when they
 * begin: a new thread has the state of the one that started it. Both together cost some 7 ns. */
#ifndef TL_FP_STATE_H
#define TL_FP_STATE_H
#include <stdint.h>

#if defined __x86_64__
typedef struct tl_fp_state {
    uint32_t mxcsr;
    uint16_t control; /* of the x87; its flags stay as they are: nothing here computes with it */
} tl_fp_state;

enum { TL_FP_FLAGS = 0x3f, TL_FP_MXCSR = 0x1f80, TL_FP_X87 = 0x37f };

/* Sets the default state; what it was before. */
static inline tl_fp_state tl_fp_enter(void)
{
    tl_fp_state s;
    const uint32_t mxcsr = TL_FP_MXCSR;
    const uint16_t control = TL_FP_X87;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(s.mxcsr), "=m"(s.control));
    if ((s.mxcsr & ~(uint32_t)TL_FP_FLAGS) != TL_FP_MXCSR)
        __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
    if (s.control != TL_FP_X87)
        __asm__ volatile("fldcw %0" : : "m"(control) : "memory");
    return s;
}

/* Loading is cheaper than looking whether anything has changed. */
static inline void tl_fp_leave(const tl_fp_state *s)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(s->mxcsr) : "memory");
    if (s->control != TL_FP_X87)
        __asm__ volatile("fldcw %0" : : "m"(s->control) : "memory");
}

#elif defined __aarch64__
typedef struct tl_fp_state {
    uint64_t control, status;
} tl_fp_state;

static inline tl_fp_state tl_fp_enter(void)
{
    tl_fp_state s;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(s.control), "=r"(s.status));
    if (s.control)
        __asm__ volatile("msr fpcr, xzr" : : : "memory");
    return s;
}

static inline void tl_fp_leave(const tl_fp_state *s)
{
    tl_fp_state now;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(now.control), "=r"(now.status)
                     : : "memory");
    if (now.control != s->control)
        __asm__ volatile("msr fpcr, %0" : : "r"(s->control) : "memory");
    if (now.status != s->status)
        __asm__ volatile("msr fpsr, %0" : : "r"(s->status) : "memory");
}

#else
#include <fenv.h>
typedef fenv_t tl_fp_state;

static inline tl_fp_state tl_fp_enter(void)
{
    tl_fp_state s;
    fegetenv(&s);
    fesetenv(FE_DFL_ENV);
    return s;
}

static inline void tl_fp_leave(const tl_fp_state *s)
{
    fesetenv(s);
}
#endif

/* The default state to the end of the block, however it is left. */
#define TL_FP_SCOPE() \
    const tl_fp_state tl_fp_host_ __attribute__((cleanup(tl_fp_leave), unused)) = tl_fp_enter()
#endif
