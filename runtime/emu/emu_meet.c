/* emu_meet.c: collectives: threads wait until all that must take part have come.
 *
 * The rule is stricter than the hardware's: all lanes of a warp, and all threads of a block for a
 * barrier, must come to the same call (site) with the same constants, and none may have ended.
 * Code that breaks it may work on one GPU and hang or give rubbish on another, so it is an error
 * at once, under every schedule; the report names both places. The site is given before LLVM's
 * middle end runs, so a call that was duplicated into two branches is still one.
 *
 * A warp gathers its lanes (tl_emu_warp); a barrier then gathers warps. The last to come does the
 * work for all and goes on without a switch. */
#include "runtime/emu/emu.h"
#include <stdio.h>

enum { TEXT_BYTES = 512 };

static const char *leaf_name(tl_leaf leaf)
{
    return (unsigned)leaf < TL_LEAF_COUNT ? tl_leaf_info(leaf)->name : "?";
}

/* ---- reports ---- */

/* "barrier at k.tile:3:5" */
static void describe(const tl_emu_block *b, tl_leaf leaf, uint32_t site, char *text, size_t size)
{
    tl_emu_position at = tl_emu_site_position(b->job->launch, site);
    snprintf(text, size, "%s at %s:%u:%u", leaf_name(leaf), at.path, at.line, at.col);
}

/* `t` has arrived at a collective while others wait at another one. */
static _Noreturn void diverged(tl_emu_block *b, const tl_emu_thread *t, const tl_emu_thread *other)
{
    char position[TEXT_BYTES / 2];
    describe(b, other->leaf, other->site, position, sizeof position);
    if (t->site == other->site)
        tl_emu_complain(b, TL_RUN_DIVERGENCE, t->site,
                        "thread %u is in %s with %u, thread %u with %u", t->index,
                        leaf_name(t->leaf), t->constant, other->index, other->constant);
    tl_emu_complain(b, TL_RUN_DIVERGENCE, t->site, "thread %u is in %s here, thread %u in %s",
                    t->index, leaf_name(t->leaf), other->index, position);
}

static _Noreturn void other_ended(tl_emu_block *b, const tl_emu_thread *t)
{
    tl_emu_complain(b, TL_RUN_DIVERGENCE, t->site,
                    "thread %u is in %s here, which waits for threads that have ended", t->index,
                    leaf_name(t->leaf));
}

/* Of the warp that the thread was of, a lane may wait, or at a barrier one of another warp. */
void tl_emu_meet_without(tl_emu_block *b, const tl_emu_thread *t)
{
    const tl_emu_warp *w = &b->warps[t->index / b->lanes];
    if (w->arrived)
        other_ended(b, &b->threads[w->first]);
    if (b->warps_waiting)
        other_ended(b, &b->threads[b->first_warp * b->lanes]);
}

void tl_emu_meet_ended(tl_emu_block *b, uint32_t site)
{
    for (uint32_t i = 0; i < TL_EMU_BARRIERS; i++)
        if (b->passing[i])
            tl_emu_say(b, TL_RUN_DIVERGENCE, site,
                       "a program has ended with a turn that nobody took");
    if (b->cluster->arrived)
        tl_emu_say(b, TL_RUN_DIVERGENCE, b->cluster->site,
                   "a program has ended, for which others of the cluster wait here");
    b->cluster->broken |= b->cluster->arrived > 0;
}

void tl_emu_report_deadlock(tl_emu_block *b)
{
    char text[TEXT_BYTES];
    size_t n = 0;
    uint32_t first = 0, said = UINT32_MAX;
    for (uint32_t i = 0; i < b->nthreads && n < sizeof text; i++) {
        const tl_emu_thread *t = &b->threads[i];
        uint32_t before = 0;
        while (before < i && !(b->threads[before].waits && b->threads[before].site == t->site))
            before++;
        if (!t->waits || before < i)
            continue;
        char position[TEXT_BYTES / 2];
        describe(b, t->leaf, t->site, position, sizeof position);
        if (said == UINT32_MAX)
            first = t->site;
        n += (size_t)snprintf(text + n, sizeof text - n, "%sthread %u waits in %s",
                              said == UINT32_MAX ? "nothing can run: " : "; ", i, position);
        said = i;
    }
    tl_emu_say(b, TL_RUN_DEADLOCK, first, "%s", text);
}

/* ---- warps ---- */

/* The current thread arrives at a collective. True: it is the last lane of its warp to do so. */
static bool arrive(tl_emu_block *b, tl_leaf leaf, uint32_t site, uint32_t constant)
{
    tl_emu_thread *t = b->current;
    tl_emu_warp *w = &b->warps[t->index / b->lanes];
    t->waits = true;
    t->leaf = leaf;
    t->site = site;
    t->constant = constant;
    if (w->ended)
        other_ended(b, t);
    if (w->arrived == 0)
        w->first = t->index;
    const tl_emu_thread *other = &b->threads[w->first];
    if (other->site != site || other->constant != constant || other->leaf != leaf)
        diverged(b, t, other);
    if (++w->arrived < b->lanes)
        return false;
    TL_EMU_INVARIANT(b, site, w->arrived == b->lanes, "%u lanes of %u have come", w->arrived,
                     b->lanes);
    w->arrived = 0;
    return true;
}

/* Lets the current thread wait until it is ready again. */
static void wait_here(tl_emu_block *b)
{
    TL_EMU_INVARIANT(b, b->current->site, b->current->waits, "a thread waits for nothing");
    tl_emu_set_remove(&b->ready, b->current->position);
    tl_emu_switch_away(b);
}

static void wake(tl_emu_block *b, tl_emu_thread *t)
{
    TL_EMU_INVARIANT(b, t->site, t->waits, "thread %u is woken, but does not wait", t->index);
    t->waits = false;
    tl_emu_set_add(&b->ready, t->position);
}

static void shuffle_warp(tl_emu_block *b, tl_emu_thread *lanes)
{
    for (uint32_t i = 0; i < b->lanes; i++) {
        TL_EMU_INVARIANT(b, lanes[i].site, lanes[i].lane < b->lanes, "lane %u of %u", lanes[i].lane,
                         b->lanes);
        lanes[i].result = lanes[lanes[i].lane].value;
        wake(b, &lanes[i]);
    }
}

uint32_t tl_emu_meet_shuffle(tl_emu_block *b, tl_leaf leaf, uint32_t site, uint32_t value,
                             uint32_t lane, uint32_t constant)
{
    tl_emu_thread *t = b->current;
    t->value = value;
    t->lane = lane;
    if (lane >= b->lanes) {
        tl_emu_say(b, TL_RUN_BOUNDS, site, "%s from lane %u of a warp of %u", leaf_name(leaf), lane,
                   b->lanes);
        t->lane = 0;
    }
    if (arrive(b, leaf, site, constant)) {
        shuffle_warp(b, t - t->index % b->lanes);
        tl_emu_step(b);
    } else {
        wait_here(b);
    }
    return t->result;
}

void tl_emu_meet_warp(tl_emu_block *b, tl_leaf leaf, uint32_t site, uint32_t constant, void *mine,
                      void (*act)(tl_emu_block *b, void *const *mine))
{
    tl_emu_thread *t = b->current, *lanes = t - t->index % b->lanes;
    enum { MOST_LANES = 64 }; /* of a warp, on any GPU */
    void *all[MOST_LANES];
    TL_EMU_INVARIANT(b, site, b->lanes <= MOST_LANES, "a warp of %u lanes", b->lanes);
    t->mine = mine;
    if (!arrive(b, leaf, site, constant)) {
        wait_here(b);
        return;
    }
    for (uint32_t i = 0; i < b->lanes; i++)
        all[i] = lanes[i].mine;
    act(b, all);
    for (uint32_t i = 0; i < b->lanes; i++)
        wake(b, &lanes[i]);
    tl_emu_step(b);
}

/* ---- the block ---- */

/* A whole warp has arrived at a barrier. True: it was the last one. */
static bool warp_arrives(tl_emu_block *b)
{
    tl_emu_thread *t = b->current;
    if (b->ended)
        other_ended(b, t);
    if (b->warps_waiting == 0)
        b->first_warp = t->index / b->lanes;
    const tl_emu_thread *other = &b->threads[b->first_warp * b->lanes];
    if (other->site != t->site)
        diverged(b, t, other);
    if (++b->warps_waiting < b->nwarps)
        return false;
    TL_EMU_INVARIANT(b, t->site, b->warps_waiting == b->nwarps, "%u warps of %u are at a barrier",
                     b->warps_waiting, b->nwarps);
    b->warps_waiting = 0;
    return true;
}

void tl_emu_meet_barrier(tl_emu_block *b, uint32_t site)
{
    if (!arrive(b, TL_LEAF_BARRIER, site, 0) || !warp_arrives(b)) {
        wait_here(b);
        return;
    }
    tl_emu_block_barrier(b->watch);
    for (uint32_t i = 0; i < b->nthreads; i++)
        wake(b, &b->threads[i]);
    tl_emu_step(b);
}

/* Blocks of the cluster that have ended, or wait elsewhere, never come. */
static void check_meeting(tl_emu_block *b, uint32_t site)
{
    tl_emu_cluster *c = b->cluster;
    char position[TEXT_BYTES / 2];
    if (c->arrived == 0)
        c->site = site;
    if (c->running < c->size)
        tl_emu_complain(b, TL_RUN_DIVERGENCE, site, "another program of the cluster has ended");
    if (c->site == site)
        return;
    describe(b, TL_LEAF_MEET, c->site, position, sizeof position);
    tl_emu_complain(b, TL_RUN_DIVERGENCE, site, "another program of the cluster is in %s",
                    position);
}

void tl_emu_meet_cluster(tl_emu_block *b, uint32_t site)
{
    tl_emu_cluster *c = b->cluster;
    if (!arrive(b, TL_LEAF_MEET, site, 0) || !warp_arrives(b)) {
        wait_here(b);
        return;
    }
    check_meeting(b, site);
    b->at_meeting = true;
    if (++c->arrived < c->size) {
        wait_here(b);
        return;
    }
    c->arrived = 0;
    c->changes++;
    for (uint32_t n = 0; n < c->size; n++) {
        tl_emu_block *m = c->blocks[n];
        tl_emu_block_barrier(m->watch);
        m->at_meeting = false;
        m->met++;
        for (uint32_t i = 0; i < m->nthreads; i++)
            wake(m, &m->threads[i]);
    }
    tl_emu_step(b);
}

/* A warp that is still counted for the last meeting comes again: on a GPU, it is counted as another
 * one. */
static void check_first_coming(tl_emu_block *b, tl_leaf leaf, uint32_t site, uint32_t number)
{
    if (b->at_number[number] >> b->current->index / b->lanes & 1)
        tl_emu_complain(b, TL_RUN_DIVERGENCE, site,
                        "a warp is in %s %u here for the second time, others for none",
                        leaf_name(leaf), number);
}

/* All have come: those that wait go on. */
static void part_some(tl_emu_block *b, uint32_t number)
{
    uint64_t waiting = b->at_number[number] & ~b->passing[number];
    for (uint32_t w = 0; w < b->nwarps; w++)
        for (uint32_t i = 0; waiting >> w & 1 && i < b->lanes; i++)
            wake(b, &b->threads[w * b->lanes + i]);
    b->at_number[number] = b->passing[number] = 0;
}

/* The lanes of a warp that passes by go on when all of them have come. */
static void pass_by(tl_emu_block *b)
{
    uint32_t first = b->current->index - b->current->index % b->lanes;
    for (uint32_t i = 0; i < b->lanes; i++)
        wake(b, &b->threads[first + i]);
}

void tl_emu_meet_some(tl_emu_block *b, tl_leaf leaf, uint32_t site, uint32_t number,
                      uint32_t threads)
{
    uint32_t warp = b->current->index / b->lanes;
    bool waits = leaf != TL_LEAF_TURN_PASS;
    TL_EMU_INVARIANT(b, site, number < TL_EMU_BARRIERS && warp < 64 && threads % b->lanes == 0,
                     "barrier %u of %u threads", number, threads);
    if (!arrive(b, leaf, site, number)) {
        wait_here(b);
        return;
    }
    check_first_coming(b, leaf, site, number);
    b->at_number[number] |= UINT64_C(1) << warp;
    b->passing[number] |= (uint64_t)!waits << warp;
    bool last = (uint32_t)__builtin_popcountll(b->at_number[number]) == threads / b->lanes;
    if (last && leaf == TL_LEAF_BARRIER_OF)
        tl_emu_block_barrier(b->watch);
    if (last)
        part_some(b, number);
    if (!waits)
        pass_by(b);
    if (!last && waits)
        wait_here(b);
    else
        tl_emu_step(b);
}
