/* The instructions of compiled kernels by class, and the loops that they make: of NVIDIA's machine
 * code, of AMD's, of PTX where there is no ptxas. The classes are in mix_class.def. */
#ifndef TL_MIX_H
#define TL_MIX_H
#include "codegen/target/target.h"
#include "ir/support/arena.h"

typedef enum TlMixClass {
#define MIX_CLASS(ID, ...) TL_MIX_##ID,
#include "codegen/report/mix_class.def"
    TL_MIX_COUNT
} TlMixClass;

typedef struct TlMixClassInfo {
    const char *name;
    bool widths; /* counted by bytes of a thread too */
} TlMixClassInfo;
const TlMixClassInfo *tl_mix_class(TlMixClass c);

typedef enum TlInsnFlow {
    TL_FLOW_ON,
    TL_FLOW_JUMP, /* to `to`; with `conditional` also on */
    TL_FLOW_END
} TlInsnFlow;

typedef struct TlInsn {
    uint8_t class_; /* TlMixClass */
    uint8_t width;  /* bytes of a thread; 0: not told */
    uint8_t flow;   /* TlInsnFlow */
    bool conditional;
    int32_t to; /* index of an instruction; beyond all of them: unknown */
} TlInsn;
typedef TL_VEC(TlInsn) TlInsns;

/* The instructions of one kernel in the order of its text. False: there is no such kernel, or the
 * code is not what the function reads. */
bool tl_mix_of_cubin(TlArena *arena, const void *cubin, size_t size, const char *kernel,
                     TlInsns *out);
bool tl_mix_of_hsaco(TlArena *arena, const TlTarget *target, const void *code, size_t size,
                     const char *kernel, TlInsns *out);
bool tl_mix_of_ptx(TlArena *arena, const char *text, const char *kernel, TlInsns *out);

/* Bytes of a thread as 1, 2, 4, 8, 12, 16; and what is none of them, first. */
enum { TL_MIX_WIDTHS = 7 };
typedef struct TlMixCounts {
    uint32_t all, of[TL_MIX_COUNT];
    uint32_t wide[TL_MIX_COUNT][TL_MIX_WIDTHS];
} TlMixCounts;
uint32_t tl_mix_width(int index);

/* The main loop is the innermost one with the most matrix instructions, else with the most
 * arithmetic on floats, else with the most instructions. `trip`: the shortest way round it. `rest`:
 * the shortest way to it and from it to the end; without a loop, all. `around`: of that way what
 * stands in the innermost loop around the main one, and is not in `rest`. */
typedef struct TlMix {
    TlMixCounts all, trip, rest, around;
    bool loops;
} TlMix;
void tl_mix_count(TlArena *scratch, const TlInsns *code, TlMix *out);
#endif
