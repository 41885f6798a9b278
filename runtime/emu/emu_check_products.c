/* emu_check_products.c: products in flight (emu_watch.h): which bytes of shared memory they may
 * still read, and whether what threads wrote there was made visible to them.
 *
 * A cell is 4 bytes of shared memory. It knows how many products may read it, and one of them; who
 * wrote it last, and how many fences that thread had passed then: with no more fences since, a
 * product that reads it may see its old contents. */
#include <stdlib.h>

#include "runtime/emu/emu_watch.h"

enum { CELL = 4 };

struct tl_emu_cell {
    uint32_t readers, reader; /* reader: a site */
    uint32_t writer, fences;  /* writer: a thread + 1; 0: nobody */
};

void tl_emu_products_free(tl_emu_products *p)
{
    free(p->cells);
    free(p->fences);
    *p = (tl_emu_products){0};
}

bool tl_emu_products_make(tl_emu_products *p, uint32_t shared_bytes, uint32_t threads)
{
    p->cells = calloc(shared_bytes / CELL + 1, sizeof *p->cells);
    p->fences = calloc(threads, sizeof *p->fences);
    return p->cells && p->fences;
}

void tl_emu_products_wrote(tl_emu_products *p, const tl_emu_access *a)
{
    for (uint64_t at = a->at / CELL; p->cells && at * CELL < a->at + a->bytes; at++) {
        p->cells[at].writer = a->thread + 1;
        p->cells[at].fences = p->fences[a->thread];
    }
}

void tl_emu_products_forget(tl_emu_products *p, const tl_emu_access *a)
{
    for (uint64_t at = a->at / CELL; p->cells && at * CELL < a->at + a->bytes; at++)
        p->cells[at].writer = 0;
}

void tl_emu_products_fence(tl_emu_products *p, uint32_t thread)
{
    if (p->fences)
        p->fences[thread]++;
}

bool tl_emu_products_meet(const tl_emu_products *p, const tl_emu_access *a, uint32_t *out_site)
{
    for (uint64_t at = a->at / CELL; p->n && at * CELL < a->at + a->bytes; at++)
        if (p->cells[at].readers) {
            *out_site = p->cells[at].reader;
            return true;
        }
    return false;
}

bool tl_emu_products_unseen(const tl_emu_products *p, const tl_emu_access *a, uint32_t *out_writer)
{
    for (uint64_t at = a->at / CELL; p->cells && at * CELL < a->at + a->bytes; at++) {
        uint32_t writer = p->cells[at].writer;
        if (!writer || p->fences[writer - 1] > p->cells[at].fences)
            continue;
        *out_writer = writer - 1;
        return true;
    }
    return false;
}

void tl_emu_products_read(tl_emu_products *p, const tl_emu_access *a, bool ends)
{
    for (uint64_t at = a->at / CELL; p->cells && at * CELL < a->at + a->bytes; at++) {
        TL_INVARIANT_VOID(!ends || p->cells[at].readers > 0, "a product ends that never began");
        p->cells[at].readers += ends ? -1u : 1u;
        p->cells[at].reader = a->site;
    }
    if (p->cells)
        p->n += ends ? -1u : 1u;
}
