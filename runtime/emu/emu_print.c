/* emu_print.c: printed values, put together from their elements.
 *
 * Threads come to a print at different times, and to the next one before others have come to this.
 * All print the same things in the same order, so the number of prints that a thread has begun
 * says which one an element belongs to. A value is delivered when it and all before it are
 * complete: in program order, whatever the schedule. */
#include "runtime/debug_records.h"
#include "runtime/emu/emu.h"
#include <stdlib.h>

struct tl_emu_printed {
    tl_printed value; /* label NULL: no element has arrived */
    uint32_t come;
    char *data;
    uint32_t site;
};

static bool begin_print(tl_emu_block *b, tl_emu_printed *p, uint32_t site, uint32_t text,
                        uint32_t dtype)
{
    p->value = tl_printed_of(b->job->launch, text, dtype);
    p->site = site;
    p->data = calloc(p->value.n, p->value.bytes);
    return p->data != NULL;
}

/* The entry of print `number`; NULL: out of memory. */
static tl_emu_printed *find(tl_emu_block *b, uint64_t number)
{
    TL_EMU_INVARIANT(b, UINT32_MAX, number >= b->prints.base,
                     "an element of print %llu has come, which was delivered",
                     (unsigned long long)number);
    uint64_t i = number - b->prints.base;
    if (i >= b->prints.room) {
        uint64_t room = i < 4 ? 8 : i * 2;
        tl_emu_printed *data = realloc(b->prints.data, room * sizeof *data);
        if (!data)
            return NULL;
        b->prints.data = data;
        b->prints.room = room;
    }
    for (; b->prints.len <= i; b->prints.len++)
        b->prints.data[b->prints.len] = (tl_emu_printed){.site = UINT32_MAX};
    return &b->prints.data[i];
}

static void deliver(tl_emu_block *b)
{
    uint64_t done = 0;
    for (; done < b->prints.len; done++) {
        tl_emu_printed *p = &b->prints.data[done];
        const tl_printed *v = &p->value;
        if (!v->label || p->come < v->n)
            break;
        tl_sink_print(b->job->sink, b->job->launch, b->linear, v->label, v->dtype, v->rank,
                      v->shape, p->data);
        free(p->data);
    }
    TL_EMU_INVARIANT(b, UINT32_MAX, done <= b->prints.len && b->prints.len <= b->prints.room,
                     "%llu prints of %llu", (unsigned long long)done,
                     (unsigned long long)b->prints.len);
    b->prints.len -= done;
    b->prints.base += done;
    if (done)
        memmove(b->prints.data, b->prints.data + done, b->prints.len * sizeof *b->prints.data);
}

void tl_emu_print_element(tl_emu_block *b, uint32_t site, uint32_t text, uint32_t dtype,
                          uint32_t index, uint64_t bits)
{
    tl_emu_printed *p = find(b, b->current->prints - 1);
    if (!p || (!p->value.label && !begin_print(b, p, site, text, dtype))) {
        b->job->no_memory = true;
        tl_emu_break(b);
    }
    if (index < p->value.n) /* little-endian hosts */
        memcpy(p->data + (size_t)index * p->value.bytes, &bits, p->value.bytes);
    if (++p->come >= p->value.n)
        deliver(b);
}

void tl_emu_print_end(tl_emu_block *b)
{
    for (uint64_t i = 0; i < b->prints.len; i++) {
        tl_emu_printed *p = &b->prints.data[i];
        if (b->event != TL_EMU_BROKEN)
            tl_emu_say(b, TL_RUN_DIVERGENCE, p->site, "print: %u of %u elements have come", p->come,
                       p->value.n);
        free(p->data);
    }
    b->prints.base = b->prints.len = 0;
}
