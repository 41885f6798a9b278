/* Scratch slots, through which the threads of a block exchange partial results in shared memory
 * (reduce_plan.h, scan_plan.h), numbered so that a thread's slots are adjacent and a warp's
 * accesses have no bank conflicts. Pure arithmetic, linear like layouts.
 *
 * A partial result is identified by a vector: its class (which part of the axis it covers) in the
 * low class_bits, its target (which of the results it is for) above. Every (class, target) gets a
 * slot. */
#ifndef TL_SHARED_SLOTS_H
#define TL_SHARED_SLOTS_H
#include "ir/layout/layout.h"
#include "ir/plan/layout_convert.h"

/* Columns of a linear map from (register, lane, warp) to vectors. */
typedef struct TlImages {
    int nreg, nlane, nwarp;
    uint64_t reg[TL_LAYOUT_MAX_BITS], lane[TL_MAX_LANE_BITS], warp[TL_MAX_WARP_BITS];
} TlImages;
/* The map of a layout's chunk: coordinate along the axis in the low bits (as many as the layout's
 * out_bits), above it the other axes, row-major. */
void tl_images_of(TlImages *x, const TlLayout *l, int axis);
/* Image i becomes map(image i). */
void tl_images_change(TlImages *x, uint64_t (*map)(const void *user, uint64_t v), const void *user);
/* The images of lanes and warps, low 32 bits. */
TlThreadMap tl_images_threads(const TlImages *x);
/* All bits that lanes and warps can change. */
uint64_t tl_images_moving(const TlImages *x);
/* What register number `reg` (without repetitions) contributes. */
uint64_t tl_images_reg(const TlImages *x, uint32_t reg);

typedef struct TlSharedSlots {
    int nreg;                /* of the images */
    int nround;              /* register bits above these, if they choose a round */
    int bits;                /* log2 of the slots */
    int class_at;            /* slot of class c is its target's ^ c << class_at */
    int vec_bits;            /* registers 0 .. (1 << vec_bits) - 1 are neighbours */
    int class_vec_bits;      /* so are this many classes; one of both is 0 */
    TlThreadMap write, read; /* slot of a thread: of its class and target; of class 0 */
    uint32_t write_reg[TL_LAYOUT_MAX_BITS], read_reg[TL_LAYOUT_MAX_BITS];
    uint32_t skip_lanes, skip_warps; /* writers: threads without these bits; the rest have copies */
    uint32_t last_lanes; /* of skip_lanes those that writers have instead: only they have a value */
} TlSharedSlots;
/* vec_bits: log2 of the most slots of an access; row_bits: of the slots that all banks hold. */
void tl_shared_slots_plan(TlSharedSlots *s, const TlImages *x, int class_bits, int vec_bits,
                          int row_bits);
/* Slot of register number `reg`, with repetitions above nreg bits, to be XORed with the thread's
 * and the class's; of_bits: write_reg or read_reg. */
uint32_t tl_shared_slot(const TlSharedSlots *s, const uint32_t *of_bits, uint32_t reg);
/* A round holds a part of the registers that `all` has and s was planned for: those of equal upper
 * bits. In it each still goes to its own class. */
void tl_shared_slots_in_rounds(TlSharedSlots *s, const TlImages *all, int class_bits);
/* What that adds to the slots that the round of registers `first` ... writes. */
uint32_t tl_shared_round_class(const TlSharedSlots *s, uint32_t first);
#endif
