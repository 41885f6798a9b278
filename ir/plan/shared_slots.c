/* Numbering slots (shared_slots.h). Places get coordinates in a basis of the columns themselves:
 * registers first, so that they are never mixed with threads, then lanes, then warps:
 *
 *     slot = [ registers of a vector | lanes | warps | other registers | class ]     low to high
 *     slot = [ class | lanes | warps ]      one register, few lanes: a vector holds many classes
 *
 * Lanes that are no copies of each other count up from the vector's end: no conflicts. */
#include "ir/plan/shared_slots.h"
#include "ir/layout/gf2.h"
#include <string.h>

void tl_images_of(TlImages *x, const TlLayout *l, int axis)
{
    TL_ASSERT(axis < (int)l->nout, "axis %d of %d", axis, (int)l->nout);
    memset(x, 0, sizeof *x);
    for (int i = 0; i < l->nin; i++) {
        TlInDim in = l->in[i];
        uint64_t *to = in == TL_IN_REG ? x->reg : in == TL_IN_LANE ? x->lane : x->warp;
        int most = in == TL_IN_REG ? TL_LAYOUT_MAX_BITS : TL_MAX_LANE_BITS;
        *(in == TL_IN_REG ? &x->nreg : in == TL_IN_LANE ? &x->nlane : &x->nwarp) = l->in_bits[i];
        TL_ASSERT(in <= TL_IN_WARP && l->in_bits[i] <= most, "layout with too many bits");
        for (int b = 0; b < l->in_bits[i]; b++) {
            for (int d = 0; d < l->nout; d++)
                if (d != axis)
                    to[b] = to[b] << l->out_bits[d] | (uint64_t)l->basis[i][b][d];
            to[b] = to[b] << l->out_bits[axis] | (uint64_t)l->basis[i][b][axis];
        }
    }
}

void tl_images_change(TlImages *x, uint64_t (*map)(const void *user, uint64_t v), const void *user)
{
    for (int i = 0; i < x->nreg; i++)
        x->reg[i] = map(user, x->reg[i]);
    for (int i = 0; i < x->nlane; i++)
        x->lane[i] = map(user, x->lane[i]);
    for (int i = 0; i < x->nwarp; i++)
        x->warp[i] = map(user, x->warp[i]);
}

TlThreadMap tl_images_threads(const TlImages *x)
{
    TlThreadMap m = {{0}, {0}};
    for (int i = 0; i < x->nlane; i++)
        m.lane[i] = (uint32_t)x->lane[i];
    for (int i = 0; i < x->nwarp; i++)
        m.warp[i] = (uint32_t)x->warp[i];
    return m;
}

uint64_t tl_images_moving(const TlImages *x)
{
    uint64_t bits = 0;
    for (int i = 0; i < x->nlane; i++)
        bits |= x->lane[i];
    for (int i = 0; i < x->nwarp; i++)
        bits |= x->warp[i];
    return bits;
}

uint64_t tl_images_reg(const TlImages *x, uint32_t reg)
{
    uint64_t v = 0;
    for (int i = 0; i < x->nreg; i++)
        v ^= reg >> i & 1 ? x->reg[i] : 0;
    return v;
}

/* ---- numbering ---- */

typedef struct Numbering {
    TlSharedSlots *s;
    int class_bits, nregs, nlanes; /* of the basis */
    TlBasis places;
} Numbering;

static void choose_basis(Numbering *n, const TlImages *x)
{
    for (int i = 0; i < x->nreg; i++)
        tl_basis_add(&n->places, x->reg[i] >> n->class_bits);
    n->nregs = n->places.n;
    for (int i = 0; i < x->nlane; i++)
        tl_basis_add(&n->places, x->lane[i] >> n->class_bits);
    n->nlanes = n->places.n - n->nregs;
    for (int i = 0; i < x->nwarp; i++)
        tl_basis_add(&n->places, x->warp[i] >> n->class_bits);
}

static uint64_t place_of(const Numbering *n, uint64_t image)
{
    return tl_basis_coordinates(&n->places, image >> n->class_bits);
}

/* The number of low registers that are basis vectors of their own in class 0 and that nothing else
 * shares. */
static int vector_bits(const Numbering *n, const TlImages *x, int most)
{
    uint64_t class_mask = (1ull << n->class_bits) - 1, others = 0;
    int v = 0;
    while (v < x->nreg && v < most && place_of(n, x->reg[v]) == 1ull << v &&
           !(x->reg[v] & class_mask))
        v++;
    for (int i = v; i < x->nreg; i++)
        others |= place_of(n, x->reg[i]);
    for (int i = 0; i < x->nlane; i++)
        others |= place_of(n, x->lane[i]);
    for (int i = 0; i < x->nwarp; i++)
        others |= place_of(n, x->warp[i]);
    while (v > 0 && others & ((1ull << v) - 1))
        v--;
    return v;
}

/* Coordinates are in order of the basis: registers, lanes, warps. */
static uint32_t slot_of_place(const Numbering *n, uint64_t image)
{
    uint64_t place = place_of(n, image);
    int v = n->s->vec_bits, rest = n->nregs - v, threads = n->places.n - n->nregs;
    uint64_t vec = place & ((1ull << v) - 1), regs = place >> v & ((1ull << rest) - 1);
    uint64_t slot = vec | place >> n->nregs << v | regs << (v + threads);
    return (uint32_t)(n->s->class_at == 0 ? slot << n->class_bits : slot);
}

static uint32_t slot_of(const Numbering *n, uint64_t image)
{
    uint64_t class = image & ((1ull << n->class_bits) - 1);
    return slot_of_place(n, image) | (uint32_t)(class << n->s->class_at);
}

static void find_copies(TlSharedSlots *s, const TlImages *x)
{
    TlSpan span = {0};
    for (int i = 0; i < x->nreg; i++)
        tl_span_add(&span, x->reg[i], 0);
    for (int i = 0; i < x->nlane; i++)
        s->skip_lanes |= tl_span_add(&span, x->lane[i], 0) ? 0 : 1u << i;
    for (int i = 0; i < x->nwarp; i++)
        s->skip_warps |= tl_span_add(&span, x->warp[i], 0) ? 0 : 1u << i;
}

void tl_shared_slots_plan(TlSharedSlots *s, const TlImages *x, int class_bits, int vec_bits,
                          int row_bits)
{
    TL_ASSERT(class_bits >= 0 && vec_bits >= 0 && row_bits >= 0, "classes of 2^%d", class_bits);
    Numbering n = {.s = s, .class_bits = class_bits};
    memset(s, 0, sizeof *s);
    s->nreg = x->nreg;
    choose_basis(&n, x);
    s->bits = n.places.n + class_bits;
    TL_ASSERT(s->bits < 31, "2^%d slots", s->bits);
    s->vec_bits = vector_bits(&n, x, vec_bits);
    bool class_first = n.nregs == 0 && n.nlanes + class_bits <= row_bits;
    s->class_at = class_first ? 0 : n.places.n;
    if (class_first)
        s->class_vec_bits = class_bits < vec_bits ? class_bits : vec_bits;
    for (int i = 0; i < x->nreg; i++) {
        s->write_reg[i] = slot_of(&n, x->reg[i]);
        s->read_reg[i] = slot_of_place(&n, x->reg[i]);
    }
    for (int i = 0; i < x->nlane; i++) {
        s->write.lane[i] = slot_of(&n, x->lane[i]);
        s->read.lane[i] = slot_of_place(&n, x->lane[i]);
    }
    for (int i = 0; i < x->nwarp; i++) {
        s->write.warp[i] = slot_of(&n, x->warp[i]);
        s->read.warp[i] = slot_of_place(&n, x->warp[i]);
    }
    find_copies(s, x);
}

uint32_t tl_shared_slot(const TlSharedSlots *s, const uint32_t *of_bits, uint32_t reg)
{
    uint32_t slot = reg >> s->nreg << s->bits;
    for (int b = 0; b < s->nreg; b++)
        slot ^= reg >> b & 1 ? of_bits[b] : 0;
    return slot;
}

void tl_shared_slots_in_rounds(TlSharedSlots *s, const TlImages *all, int class_bits)
{
    TL_ASSERT(all->nreg >= s->nreg, "%d registers of %d", s->nreg, all->nreg);
    s->nround = all->nreg - s->nreg;
    for (int b = s->nreg; b < all->nreg; b++) {
        uint32_t class = (uint32_t)all->reg[b] & ((1u << class_bits) - 1);
        s->write_reg[b] = class << s->class_at;
    }
}

uint32_t tl_shared_round_class(const TlSharedSlots *s, uint32_t first)
{
    uint32_t slot = 0;
    for (int b = s->nreg; b < s->nreg + s->nround; b++)
        slot ^= first >> b & 1 ? s->write_reg[b] : 0;
    return slot;
}
