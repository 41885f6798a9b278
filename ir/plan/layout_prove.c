/* The proof of a conversion's plan by enumeration (layout_convert.h): the plan is carried out with
 * element numbers for values, by every register of every thread. */
#include "ir/plan/layout_convert.h"
#include <string.h>

enum { NOTHING = -1 };

typedef struct Proof {
    TlArena *arena;
    const TlConvert *c;
    const TlType *type;
    const TlLayout *src, *dst;
    uint32_t lanes, warps;
} Proof;

static void coordinate(const TlLayout *l, int64_t reg, uint32_t lane, uint32_t warp, int32_t *out)
{
    uint32_t in[TL_LAYOUT_MAX_IN] = {0};
    int i = tl_layout_in_index(l, TL_IN_LANE), j = tl_layout_in_index(l, TL_IN_WARP);
    if (i >= 0)
        in[i] = lane;
    if (j >= 0)
        in[j] = warp;
    tl_layout_apply_reg(l, reg, in, out);
}

/* Elements as small numbers, for comparison: the row-major number inside of the tile; other
 * elements get distinct numbers below NOTHING. */
static int64_t id_of(const Proof *p, const TlLayout *l, int64_t reg, uint32_t lane, uint32_t warp)
{
    int32_t x[TL_LAYOUT_MAX_OUT];
    int64_t number = 0, box = 0;
    bool inside = true;
    coordinate(l, reg, lane, warp, x);
    for (int d = 0; d < l->nout; d++) {
        number = number * p->type->shape[d] + x[d];
        box = box * tl_layout_extent(l, d) + x[d];
        inside &= x[d] < p->type->shape[d];
    }
    return inside ? number : -2 - box;
}

static const char *wrong(const Proof *p, const char *what, int64_t reg, uint32_t lane,
                         uint32_t warp)
{
    return tl_format(p->arena, "%s: register %lld of lane %u, warp %u", what, (long long)reg, lane,
                     warp);
}

static const char *check_result(const Proof *p, int64_t got, int64_t reg, uint32_t lane,
                                uint32_t warp)
{
    int64_t want = id_of(p, p->dst, reg, lane, warp);
    return want < 0 || got == want ? NULL : wrong(p, "another element", reg, lane, warp);
}

/* ---- registers and lanes ---- */

static int64_t through_lanes(const Proof *p, uint32_t r, uint32_t lane, uint32_t warp)
{
    const TlConvert *c = p->c;
    if (c->kind == TL_CONVERT_NONE)
        return r < c->nsrc ? id_of(p, p->src, r, lane, warp) : NOTHING;
    const TlConvertReg *u = &c->regs[r ^ tl_thread_map(&c->to_reg, lane, warp)];
    if (u->src < 0)
        return NOTHING;
    uint32_t giver = u->lane ^ tl_thread_map(&c->from_lane, lane, warp);
    if (c->kind == TL_CONVERT_RENAME || u->stays)
        giver = lane;
    uint32_t reg = (uint32_t)u->src;
    if (c->kind == TL_CONVERT_SHUFFLE)
        reg ^= tl_thread_map(&c->from_reg, giver, warp);
    return giver < p->lanes && reg < c->nsrc ? id_of(p, p->src, reg, giver, warp) : NOTHING;
}

static const char *prove_lanes(const Proof *p)
{
    for (uint32_t warp = 0; warp < p->warps; warp++)
        for (uint32_t lane = 0; lane < p->lanes; lane++)
            for (uint32_t r = 0; r < p->c->ndst; r++) {
                const char *fault = check_result(p, through_lanes(p, r, lane, warp), r, lane, warp);
                if (fault)
                    return fault;
            }
    return NULL;
}

/* ---- shared memory ---- */

/* What has been written where in shared memory, and in which round. */
typedef struct Cell {
    int64_t id;
    uint32_t round; /* + 1; 0: never */
} Cell;

static const char *write_access(const Proof *p, const TlConvertAccess *a, uint32_t round,
                                uint32_t lane, uint32_t warp, Cell *cells)
{
    const TlConvertSide *w = &p->c->write;
    if ((a->round ^ tl_thread_map(&w->round, lane, warp)) != round)
        return NULL;
    uint32_t at = a->offset ^ tl_thread_map(&w->offset, lane, warp);
    if (at % w->vec_bytes || at + w->vec_bytes > p->c->bytes)
        return wrong(p, "a write is not aligned or outside", a->regs[0], lane, warp);
    for (uint32_t i = 0; i < 1u << w->vec_bits; i++) {
        Cell *cell = &cells[at / p->c->elem_bytes + i];
        if (cell->round == round + 1)
            return wrong(p, "two writes to one place", a->regs[i], lane, warp);
        int64_t id = a->regs[i] < 0 ? NOTHING : id_of(p, p->src, a->regs[i], lane, warp);
        *cell = (Cell){id, round + 1};
    }
    return NULL;
}

static bool is_past(const Proof *p, int64_t reg, uint32_t lane, uint32_t warp)
{
    int32_t x[TL_LAYOUT_MAX_OUT];
    coordinate(p->dst, reg, lane, warp, x);
    for (int d = 0; d < p->dst->nout; d++)
        if (x[d] >= tl_layout_extent(p->src, d))
            return true;
    return false;
}

static const char *read_access(const Proof *p, const TlConvertAccess *a, uint32_t round,
                               uint32_t lane, uint32_t warp, const Cell *cells, uint8_t *done)
{
    const TlConvertSide *r = &p->c->read;
    uint32_t at = a->offset ^ tl_thread_map(&r->offset, lane, warp), first = 0;
    while (a->regs[first] < 0)
        first++;
    bool mine = (a->round ^ tl_thread_map(&r->round, lane, warp)) == round;
    if ((a->guarded && is_past(p, a->regs[first], lane, warp)) || (!mine && !p->c->all_written))
        at = p->c->fallback[round];
    if (at % r->vec_bytes || at + r->vec_bytes > p->c->bytes)
        return wrong(p, "a read is not aligned or outside", a->regs[first], lane, warp);
    for (uint32_t i = 0; i < 1u << r->vec_bits; i++) {
        const Cell *cell = &cells[at / p->c->elem_bytes + i];
        if (cell->round != round + 1)
            return wrong(p, "a read of what was not written", a->regs[i], lane, warp);
        if (a->regs[i] < 0 || !mine)
            continue;
        const char *fault = check_result(p, cell->id, a->regs[i], lane, warp);
        if (fault)
            return fault;
        done[a->regs[i] * p->lanes * p->warps + warp * p->lanes + lane] = 1;
    }
    return NULL;
}

static const char *run_writes(const Proof *p, uint32_t round, Cell *cells)
{
    const TlConvertSide *w = &p->c->write;
    const char *fault = NULL;
    for (uint32_t i = 0; i < w->naccesses && !fault; i++) {
        if (!tl_convert_in_round(w, &w->accesses[i], round))
            continue;
        for (uint32_t thread = 0; thread < p->lanes * p->warps && !fault; thread++) {
            uint32_t lane = thread % p->lanes, warp = thread / p->lanes;
            if (!(lane & w->skip_lanes) && !(warp & w->skip_warps))
                fault = write_access(p, &w->accesses[i], round, lane, warp, cells);
        }
    }
    return fault;
}

static const char *run_reads(const Proof *p, uint32_t round, const Cell *cells, uint8_t *done)
{
    const TlConvertSide *r = &p->c->read;
    const char *fault = NULL;
    for (uint32_t i = 0; i < r->naccesses && !fault; i++) {
        if (!tl_convert_in_round(r, &r->accesses[i], round))
            continue;
        for (uint32_t thread = 0; thread < p->lanes * p->warps && !fault; thread++)
            fault = read_access(p, &r->accesses[i], round, thread % p->lanes, thread / p->lanes,
                                cells, done);
    }
    return fault;
}

/* A register that a thread reads in no round must be padding. */
static const char *check_done(const Proof *p, const uint8_t *done)
{
    uint32_t threads = p->lanes * p->warps;
    for (uint32_t r = 0; r < p->c->ndst; r++)
        for (uint32_t thread = 0; thread < threads; thread++)
            if (!done[r * threads + thread] &&
                id_of(p, p->dst, r, thread % p->lanes, thread / p->lanes) >= 0)
                return wrong(p, "never read", r, thread % p->lanes, thread / p->lanes);
    return NULL;
}

static const char *prove_shared(const Proof *p)
{
    Cell *cells = TL_NEW_ARRAY(p->arena, Cell, p->c->bytes / p->c->elem_bytes + 16);
    uint8_t *done = TL_NEW_ARRAY(p->arena, uint8_t, p->c->ndst * p->lanes * p->warps);
    const char *fault = NULL;
    for (uint32_t round = 0; round < p->c->nrounds && !fault; round++) {
        if (p->c->fallback[round] == TL_NOT_FILLED)
            continue;
        fault = run_writes(p, round, cells);
        if (!fault)
            fault = run_reads(p, round, cells, done);
    }
    return fault ? fault : check_done(p, done);
}

const char *tl_convert_prove(TlArena *arena, const TlConvert *c, const TlType *type,
                             const TlLayout *src, const TlLayout *dst)
{
    TL_ASSERT(c->lane_bits <= TL_MAX_LANE_BITS && c->warp_bits <= TL_MAX_WARP_BITS,
              "a block of 2^%d lanes, 2^%d warps", c->lane_bits, c->warp_bits);
    Proof p = {arena, c, type, src, dst, 1u << c->lane_bits, 1u << c->warp_bits};
    return c->kind == TL_CONVERT_SHARED ? prove_shared(&p) : prove_lanes(&p);
}
