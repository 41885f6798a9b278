/* The verifier of loop nests: a plan of each kind of nest is consistent; a plan that breaks a rule
 * is refused, by that rule. */
#include <stdlib.h>

#include "codegen/nest/nest.h"
#include "codegen/target/worker.h"
#include "test/unit/unit.h"

/* A store of what a loop sums, by rows; a reduction, a scan, a product. */
static const char TEXT[] =
    "kernel @k(%a: view<const f32, 2>, %b: view<const f32, 2>, %c: view<f32, 2>, %s: view<f32, 1>) "
    "info {\n"
    "    param \"a\" view const f32 [sym 0 : dense, sym 1 : dense]\n"
    "    param \"b\" view const f32 [sym 1 : dense, sym 2 : dense]\n"
    "    param \"c\" view f32 [sym 0 : dense, sym 2 : dense]\n"
    "    param \"s\" view f32 [sym 0 : dense]\n"
    "    sym \"M\" extent 0, 0\n"
    "    sym \"K\" extent 0, 1\n"
    "    sym \"N\" extent 1, 1\n"
    "  } {\n"
    "  %m = pid {axis = 0} : i32\n"
    "  %zero = const {value = 0} : i32\n"
    "  %step = const {value = 32} : i32\n"
    "  %end = const {value = 256} : i32\n"
    "  %none = const {value = 0.0} : tile<f32, 64, 64>\n"
    "  %sum = for %zero, %end, %step, %none : tile<f32, 64, 64>"
    " (%k: i32, %acc: tile<f32, 64, 64>) {\n"
    "    %x = load %a, %m, %k {axes = [64, 32]} : tile<f32, 64, 32>\n"
    "    %y = load %b, %k, %zero {axes = [32, 64]} : tile<f32, 32, 64>\n"
    "    %d = dot %x, %y, %acc : tile<f32, 64, 64>\n"
    "    yield %d\n"
    "  }\n"
    "  store %c, %m, %zero, %sum {axes = [64, 64]}\n"
    "  %v = load %a, %m, %zero {axes = [8, 256]} : tile<f32, 8, 256>\n"
    "  %e = exp2 %v : tile<f32, 8, 256>\n"
    "  %t = reduce %e {axis = 1, kind = add} : tile<f32, 8>\n"
    "  store %s, %m, %t {axes = [8]}\n"
    "  %p = scan %e {axis = 1, kind = add} : tile<f32, 8, 256>\n"
    "  store %c, %m, %zero, %p {axes = [8, 256]}\n"
    "  return\n"
    "}\n";

typedef struct Case {
    const char *fault;
    void (*breaks)(TlNests *plan);
} Case;

static TlNest *find(TlNests *plan, TlNestKind kind, uint32_t number)
{
    for (uint32_t i = 0; i < plan->all.len; i++)
        if (plan->all.data[i]->kind == kind && !number--)
            return plan->all.data[i];
    fprintf(stderr, "no nest of kind %d\n", (int)kind);
    exit(1);
}

static TlNest *wide_store(TlNests *p) { return find(p, TL_NEST_STORE, 2); }

static void lanes(TlNests *p) { wide_store(p)->width = 12; }
static void repeated(TlNests *p) { wide_store(p)->repeated = true; }
static void tested(TlNests *p) { wide_store(p)->tested = 64; }
static void extent(TlNests *p) { find(p, TL_NEST_STORE, 1)->width = 16; }
static void nothing(TlNests *p) { wide_store(p)->asks.len = 0; }
static void one(TlNests *p) { wide_store(p)->split = TL_NEST_ONE; }
static void within(TlNests *p) { wide_store(p)->end = 5; }
static void values(TlNests *p) { wide_store(p)->nvalues = 1000; }
static void box(TlNests *p) { wide_store(p)->boxed_axes = 2; }
static void access_(TlNests *p) { wide_store(p)->store = NULL; }
static void streams(TlNests *p) { find(p, TL_NEST_FILL, 0)->streams = true; }
static void wide(TlNests *p) { find(p, TL_NEST_STORE, 0)->streams_wide = true; }
static void ahead(TlNests *p) { wide_store(p)->ahead = true; }
static void rows(TlNests *p) { find(p, TL_NEST_REDUCE, 0)->rows = 16; }
static void parts(TlNests *p) { find(p, TL_NEST_REDUCE, 0)->parts = 128; }
static void axis(TlNests *p) { find(p, TL_NEST_SCAN, 0)->axis = 0; }
static void scalars(TlNests *p) { find(p, TL_NEST_SCAN, 0)->on_vectors = false; }
static void identity(TlNests *p)
{
    TlNest *n = find(p, TL_NEST_REDUCE, 0);
    n->parts = 2;
    n->from_identity = false;
}
static void home(TlNests *p) { find(p, TL_NEST_FILL, 0)->home = (int32_t)p->buffers.len; }
static void block(TlNests *p) { find(p, TL_NEST_PRODUCT, 0)->mr = 100; }
static void panel(TlNests *p) { find(p, TL_NEST_PRODUCT, 0)->panel = 48; }
static void halves(TlNests *p) { find(p, TL_NEST_PRODUCT, 0)->halves = true; }
static void pack(TlNests *p) { find(p, TL_NEST_PRODUCT, 0)->pack[1] = NULL; }
static void over(TlNests *p)
{
    for (uint32_t i = 0; i < p->buffers.len; i++)
        p->buffers.data[i].offset = p->zeroed_bytes;
}
static void outside(TlNests *p) { p->scratch_bytes = 64; }
static void nowhere(TlNests *p)
{
    p->place[find(p, TL_NEST_SCAN, 0)->op->out[0]->id].buffer = -1;
}
static void carried(TlNests *p)
{
    TlOp *loop = find(p, TL_NEST_PRODUCT, 0)->op;
    p->place[loop->out[0]->id].kind = TL_NEST_SCALAR;
}
static void unfilled(TlNests *p)
{
    tl_map_put(&p->first, (uint64_t)(uintptr_t)find(p, TL_NEST_SCAN, 0)->op, p->all.len);
}

static const Case CASES[] = {
    {"lanes are no power of two", lanes},
    {"more lanes where elements are tested than where they are not", tested},
    {"lanes do not divide the extent", extent},
    {"split, and nothing to test", nothing},
    {"not one vector", one},
    {"the end of what is inside is within a vector", within},
    {"split, and too long for it", values},
    {"skips lanes", box},
    {"a store without its access", access_},
    {"made without a loop, but not where all is inside", repeated},
    {"streams without whole vectors", streams},
    {"streams by registers, but not at all", wide},
    {"asks for what it does not store", ahead},
    {"more rows together than there are", rows},
    {"too many partial results", parts},
    {"along lanes that are elsewhere", axis},
    {"a combiner of scalars on vectors", scalars},
    {"partial results that begin with nothing", identity},
    {"a nest does not fit its home", home},
    {"a block of sums is larger than the registers", block},
    {"panels do not divide the columns", panel},
    {"rows that share a vector have more columns than it", halves},
    {"an operand is not packed", pack},
    {"homes that are needed at the same time overlap", over},
    {"a home lies outside of scratch memory", outside},
    {"a tile does not fit its home", nowhere},
    {"a tile has no place", carried},
    {"nothing fills a home", unfilled},
};

static TlNests *plan_of(const TlFn *fn, TlArena *arena)
{
    static const TlLlvm l = {.features = "+avx2,+fma"};
    TlNestMachine m = tl_nest_machine(&l);
    return tl_nest_plan(fn, &m, false, arena);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = text ? strlen(text) : 0, m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static void check_case(const Case *c, const TlFn *fn, TlArena *arena)
{
    TlNests *plan = plan_of(fn, arena);
    TlSbuf fault;
    tl_sbuf_init(&fault, arena);
    CHECK(tl_nest_verify(plan, &fault) && !fault.len);
    c->breaks(plan);
    CHECK(!tl_nest_verify(plan, &fault));
    if (!CHECK(ends_with(fault.text, c->fault)))
        fprintf(stderr, "    got  %s\n    want %s\n", fault.text ? fault.text : "", c->fault);
}

int main(void)
{
    TlArena arena;
    TlCtx ctx;
    tl_arena_init(&arena, (TlAlloc){tl_libc_alloc, NULL});
    tl_ctx_init(&ctx, (TlAlloc){tl_libc_alloc, NULL});
    TlModule *m =
        tl_parse_module(&ctx, tl_diags_source(&ctx.diags, "k.tir", TEXT, sizeof TEXT - 1));
    if (!CHECK(m != NULL)) {
        TlSbuf s;
        tl_sbuf_init(&s, &arena);
        tl_diags_render(&ctx.diags, TL_DIAG_TEXT, false, &s);
        fprintf(stderr, "%s\n", s.text);
        return unit_result();
    }
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        check_case(&CASES[i], m->fns.data[0], &arena);
    tl_ctx_free(&ctx);
    tl_arena_free(&arena);
    return unit_result();
}
