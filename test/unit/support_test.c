/* Arenas, maps, interning, string builder, guards and diagnostics. */
#include "ir/support/arena.h"
#include "ir/support/diag.h"
#include "ir/support/guard.h"
#include "test/unit/unit.h"
#include <stdlib.h>

typedef struct Counting {
    size_t live;
    int calls, fail_at; /* the call that is refused; 0 = none */
} Counting;

static void *counting_alloc(void *user, void *ptr, size_t old_size, size_t new_size)
{
    Counting *c = user;
    if (new_size && ++c->calls == c->fail_at) return NULL;
    c->live += new_size - old_size;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void arena_gives_zeroed_aligned_blocks(void)
{
    Counting c = {0};
    TlArena a;
    tl_arena_init(&a, (TlAlloc){counting_alloc, &c});
    for (size_t size = 0; size < 100000; size = size * 2 + 1) {
        char *p = tl_alloc(&a, size);
        CHECK((uintptr_t)p % 16 == 0);
        bool zero = true;
        for (size_t i = 0; i < size; i++) zero &= p[i] == 0;
        CHECK(zero);
        memset(p, 0xab, size);
    }
    CHECK(c.live == a.total && a.total > 0);
    tl_arena_free(&a);
    CHECK_INT(c.live, 0);
    CHECK(tl_alloc(&a, 8)); /* usable again */
    tl_arena_free(&a);
}

static void arena_refusal_unwinds(void)
{
    Counting c = {.fail_at = 3};
    TlArena a;
    tl_arena_init(&a, (TlAlloc){counting_alloc, &c});
    TlGuard g;
    if (TL_GUARD(&g)) {
        for (int i = 0; i < 100; i++) tl_alloc(&a, 100000);
        tl_guard_pop(&g);
    }
    CHECK_INT(g.fault, TL_FAULT_MEMORY);
    CHECK(!tl_guard_current());
    tl_arena_free(&a);
    CHECK_INT(c.live, 0);
}

static void guards_nest(void)
{
    TlGuard outer, inner;
    if (TL_GUARD(&outer)) {
        if (TL_GUARD(&inner)) TL_ASSERT(1 == 2, "value %d", 7);
        CHECK_INT(inner.fault, TL_FAULT_INTERNAL);
        CHECK_STR(inner.text, "value 7");
        CHECK(tl_guard_current() == &outer);
        tl_guard_pop(&outer);
    }
    CHECK_INT(outer.fault, TL_FAULT_NONE);
}

static void vectors_grow(TlArena *a)
{
    TL_VEC(int) v = {0};
    for (int i = 0; i < 1000; i++) {
        tl_vec_push(a, &v, i);
        if (i % 7 == 0) tl_alloc(a, 24); /* so that not every growth is in place */
    }
    int bad = 0;
    for (int i = 0; i < 1000; i++) bad += v.data[i] != i;
    CHECK(bad == 0 && v.len == 1000);
}

static void maps_hold(TlArena *a)
{
    TlMap m;
    tl_map_init(&m, a);
    CHECK(!tl_map_get(&m, 5, NULL));
    for (uint64_t i = 0; i < 5000; i++) tl_map_put(&m, i * 64, i);
    tl_map_put(&m, 64, 77);
    uint64_t v = 0, bad = 0;
    for (uint64_t i = 0; i < 5000; i++)
        bad += !tl_map_get(&m, i * 64, &v) || v != (i == 1 ? 77 : i);
    CHECK(bad == 0 && m.len == 5000);
    CHECK(!tl_map_get(&m, 1, NULL));
    int x;
    tl_map_put_ptr(&m, &x, &v);
    CHECK(tl_map_get_ptr(&m, &x) == &v && !tl_map_get_ptr(&m, &v));
}

static void interning_is_identity(TlArena *a)
{
    TlIntern t;
    tl_intern_init(&t, a);
    const char *abc = tl_intern_str(&t, "abc");
    for (int i = 0; i < 1000; i++) tl_intern_str(&t, tl_format(a, "s%d", i));
    CHECK(tl_intern(&t, "abcd", 3) == abc);
    CHECK(tl_intern(&t, "ab\0c", 4) != tl_intern(&t, "ab", 2));
    CHECK(tl_intern_str(&t, "") == tl_intern(&t, "x", 0));
    CHECK_INT(t.len, 1000 + 4);
}

static void string_builder(TlArena *a)
{
    TlSbuf s;
    tl_sbuf_init(&s, a);
    for (int i = 0; i < 500; i++) tl_sbuf_putf(&s, "%d,", i % 10);
    tl_sbuf_puts(&s, "end");
    CHECK_INT(s.len, 1003);
    CHECK_INT(strlen(s.text), 1003);
    CHECK_STR(s.text + 996, "8,9,end");
}

static void diagnostics_are_sorted_and_shown(TlArena *a)
{
    const char text[] = "line one\n\tline two\n";
    TlDiags d;
    tl_diags_init(&d, a);
    uint32_t f = tl_diags_source(&d, "a.tile", text, sizeof text - 1);
    TlDiag *row = tl_diag(&d, (TlLoc){f, 2, 2, 4}, TL_E0801, "second");
    row->label = "here";
    tl_diag_note(&d, row, (TlLoc){f, 1, 1, 1}, "see %d", 1);
    tl_diag(&d, (TlLoc){f, 1, 6, 3}, TL_E0801, "first");
    tl_diag(&d, (TlLoc){f, 1, 6, 3}, TL_E0801, "first");
    TlSbuf s;
    tl_sbuf_init(&s, a);
    tl_diags_render(&d, TL_DIAG_TEXT, false, &s);
    CHECK_INT(d.errors, 2);
    CHECK_STR(s.text, "a.tile:1:6: error[E0801]: first\n"
                      "    1 | line one\n"
                      "      |      ^~~\n"
                      "a.tile:2:2: error[E0801]: second\n"
                      "    2 |     line two\n"
                      "      |     ^~~~ here\n"
                      "a.tile:1:1: note: see 1\n"
                      "    1 | line one\n"
                      "      | ^\n");
    for (uint32_t i = 0; i < 100; i++) tl_diag(&d, (TlLoc){f, i + 10, 1, 1}, TL_E0801, "more");
    CHECK_INT(d.errors, 102);
    CHECK_INT(d.rows.len, TL_DIAG_MAX);
}

int main(void)
{
    arena_gives_zeroed_aligned_blocks();
    arena_refusal_unwinds();
    guards_nest();
    TlArena a;
    tl_arena_init(&a, (TlAlloc){0});
    vectors_grow(&a);
    maps_hold(&a);
    interning_is_identity(&a);
    string_builder(&a);
    diagnostics_are_sorted_and_shown(&a);
    tl_arena_free(&a);
    return unit_result();
}
