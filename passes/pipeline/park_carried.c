/* park-tiles: what a loop carries waits in a buffer over the back edge, and is carried no more.
 *
 *     %r = for ..., %v (%i, %x) {          put %b, %zero, %v
 *       %s = f %x                          for ... (%i) {
 *       ...                                  %g = get %b, %zero
 *       %y = g %s                     =>     %s = f %g
 *       ...                                  ...
 *       yield %y                             %y = g %s
 *     }                                      put %b, %zero, %y
 *     store ..., %r                          ...
 *                                          }
 *                                          %h = get %b, %zero
 *                                          store ..., %h
 *
 * Between the last get and the put the buffer is free. There a tile of the body waits as its guest,
 * of the same type: what the body makes of one tile that it carries, for the next. */
#include "passes/analysis/alive.h"
#include "passes/layout/relayout.h"
#include "passes/pipeline/park_impl.h"

/* ---- homes ---- */

static bool is_free(const TlPark *p, const TlParkHome *h, uint32_t first, uint32_t last)
{
    if (first <= tl_park_at(p, h->last) || last >= tl_park_at(p, h->next))
        return false;
    for (uint32_t k = 0; k < h->guests.len; k++) {
        const TlParkGuest *g = &h->guests.data[k];
        if (tl_park_at(p, g->last) >= first && tl_park_at(p, g->put) <= last)
            return false;
    }
    return true;
}

TlParkHome *tl_park_home_for(TlPark *p, const TlParkCandidate *c)
{
    const TlOp *made = c->v->def;
    for (uint32_t i = 0; made && i < p->homes.len; i++) {
        TlParkHome *h = &p->homes.data[i];
        if (h->body != made->block || tl_in(h->next, 2)->type != c->v->type)
            continue;
        uint32_t first = tl_park_at(p, made), last = first, inside = 0;
        for (; inside < c->groups.len; inside++) {
            const TlOp *use = tl_park_around(h->body, c->groups.data[inside].first);
            if (!use)
                break;
            last = tl_park_at(p, use) > last ? tl_park_at(p, use) : last;
        }
        if (inside == c->groups.len && is_free(p, h, first, last))
            return h;
    }
    return NULL;
}

/* Gets for the groups; the last op of the body that is, or holds, one. They stay as they are: what
 * they got may be gone later. */
static const TlOp *get_all(TlPark *p, const TlParkCandidate *c, const TlBlock *body,
                           const TlOp *put)
{
    const TlOp *last = NULL;
    for (uint32_t i = 0; i < c->groups.len; i++) {
        const TlParkGroup *g = &c->groups.data[i];
        const TlOp *use = tl_park_around(body, g->first);
        bool later = !last || tl_park_at(p, use) > tl_park_at(p, last);
        const TlOp *got = tl_park_get(g, put, c->v);
        tl_map_put_ptr(&p->tried, got->out[0], got->out[0]);
        if (later)
            last = use;
    }
    return last;
}

void tl_park_as_guest(TlPark *p, const TlParkCandidate *c)
{
    TlBuilder b = tl_builder_after(c->v);
    TlParkGuest g = {.put = tl_park_put(p, &b, c->v, c->home->buf)};
    g.last = get_all(p, c, c->home->body, g.put);
    tl_vec_push(p->px->scratch, &c->home->guests, g);
    tl_park_erase_views(c->v);
    tl_map_put_ptr(&p->tried, c->v, c->v);
}

/* ---- what may wait so ---- */

/* What a loop carries as one of its results. */
typedef struct Carried {
    TlOp *loop;
    TlBlock *body;
    TlValue *init, *v, *next, *out; /* at first, in the body, for the next trip, behind the loop */
    TlParkUses uses, others, results; /* of v, next and out */
} Carried;

/* Products add to it: it is wanted in registers until the last of them is done. */
static bool is_of_products(const Carried *c)
{
    const TlOp *by = c->next->def;
    if (!by || by->opcode == TL_OP_DOT)
        return true;
    for (uint32_t i = 0; i < by->nin; i++)
        if (tl_in(by, i)->def && tl_in(by, i)->def->opcode == TL_OP_DOT)
            return true;
    return false;
}

static bool has_home_type(TlPark *p, const Carried *c)
{
    return !is_of_products(c) && tl_park_can_wait(p, c->v) && c->next->def &&
           c->next->def->block == c->body && c->init->type == c->v->type &&
           c->next->type == c->v->type && !tl_park_buffer(p, c->next) &&
           (!p->roles || tl_block_is_inside(c->loop->block, p->roles));
}

/* Does v wait while the fullest op is done? Else next is to. */
static bool waits_before(const TlPark *p, const Carried *c, const TlOp *full)
{
    return tl_park_life(p, c->v, &c->uses).last > tl_park_at(p, full);
}

/* Is next there while the fullest op is done, though nothing in the body wants it any more? */
static bool waits_behind(const TlPark *p, const Carried *c, const TlOp *full)
{
    if (tl_park_at(p, full) <= tl_park_at(p, c->next->def) || tl_park_is_taken(p, &c->others))
        return false;
    for (uint32_t i = 0; i < c->others.len; i++) {
        const TlOp *user = tl_park_around(c->body, c->others.data[i]->user);
        if (user != c->body->last && tl_park_at(p, user) > tl_park_at(p, full))
            return false;
    }
    return true;
}

/* Gets for the uses of v. False: some uses are none's, or next is made before them. */
static bool find_gets(const TlPark *p, const Carried *c, const TlOp *full, bool waits,
                      TlParkCandidate *found)
{
    if (!waits) {
        tl_park_add_group(p, found, &c->uses, c->body, NULL, NULL);
    } else {
        tl_park_add_group(p, found, &c->uses, c->body, NULL, full);
        tl_park_find_groups(p, found, &c->uses, c->body);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < found->groups.len; i++) {
        const TlOp *use = tl_park_around(c->body, found->groups.data[i].first);
        if (tl_park_at(p, use) > tl_park_at(p, c->next->def))
            return false;
        n += found->groups.data[i].uses.len;
    }
    return n == c->uses.len;
}

static bool is_made_near(const Carried *c)
{
    return c->init->def && c->init->def->block == c->loop->block;
}

/* From the first put to the last get. */
static TlSpan life_of_home(const TlPark *p, const Carried *c, const TlParkCandidate *found)
{
    TlSpan loop = tl_position_of(&p->order, c->loop);
    TlSpan s = {is_made_near(c) ? tl_position_of(&p->order, c->init->def).last : loop.first,
                found->after.first ? tl_park_at(p, found->after.first) : loop.last};
    return s;
}

static Carried carried_of(TlPark *p, TlOp *loop, uint32_t number)
{
    TlBlock *body = loop->regions[0];
    Carried c = {loop,
                 body,
                 tl_in(loop, number + 3),
                 body->args[number + 1],
                 tl_in(body->last, number),
                 loop->out[number],
                 {0},
                 {0},
                 {0}};
    tl_park_uses(p, &c.uses, c.v);
    tl_park_uses(p, &c.others, c.next);
    tl_park_uses(p, &c.results, c.out);
    return c;
}

/* Does it help at the fullest op? In the body (`full` there is, or holds, that op) if v or next
 * waits meanwhile; at the loop itself, which takes all that it carries. */
static bool helps(const TlPark *p, const Carried *c, const TlOp *full, bool waits)
{
    if (!full)
        return p->full == c->loop;
    return waits ? !tl_park_is_taken(p, &c->uses) : waits_behind(p, c, full);
}

bool tl_park_look_at_carried(TlPark *p, TlOp *loop, uint32_t number, TlParkCandidate *best)
{
    const TlOp *full = tl_park_around(loop->regions[0], p->full);
    Carried c = carried_of(p, loop, number);
    if ((!full && p->full != loop) || !has_home_type(p, &c))
        return false;
    bool waits = full && waits_before(p, &c, full);
    TlParkCandidate found = {.v = c.v,
                             .words = tl_words_of(c.v),
                             .cost = tl_park_runs(c.body),
                             .loop = loop,
                             .number = number};
    if (!helps(p, &c, full, waits) || !find_gets(p, &c, full, waits, &found))
        return false;
    found.after = tl_park_group(p, &c.results, loop->block, loop, NULL);
    if (found.after.uses.len != c.results.len ||
        (p->seldom && found.cost >= tl_park_runs(p->full->block)) ||
        !tl_park_fits(p, c.v, life_of_home(p, &c, &found)))
        return false;
    if (tl_park_is_better(p, &found, best))
        *best = found;
    return true;
}

/* ---- into effect ---- */

/* The loop carries it no more. */
static void drop(TlOp *loop, uint32_t number)
{
    TlBlock *body = loop->regions[0];
    tl_park_erase_views(body->args[number + 1]);
    tl_park_erase_views(loop->out[number]);
    tl_remove_operand(body->last, number);
    tl_block_remove_arg(body, number + 1);
    tl_remove_operand(loop, number + 3);
    tl_op_remove_result(loop, number);
}

void tl_park_carried(TlPark *p, const TlParkCandidate *found)
{
    Carried c = carried_of(p, found->loop, found->number);
    TlBuilder b = is_made_near(&c) ? tl_builder_after(c.init) : tl_builder_before(c.loop);
    const TlOp *put = tl_park_put(p, &b, c.init, NULL);
    TlParkHome h = {.buf = tl_in(put, 0), .body = c.body};
    h.last = get_all(p, found, c.body, put);
    b = tl_builder_after(c.next);
    h.next = tl_park_put(p, &b, c.next, h.buf);
    if (found->after.first) {
        const TlOp *got = tl_park_get(&found->after, put, c.out);
        tl_map_put_ptr(&p->tried, got->out[0], got->out[0]);
    }
    drop(c.loop, found->number);
    if (h.last)
        tl_vec_push(p->px->scratch, &p->homes, h);
}
