/* tile-opt --run: kernels in the interpreter, on arguments that are made from the parameters alone,
 * so that two modules can be run on equal ones and compared: memory bit for bit (any NaN is any
 * other), what was printed, which assertions failed.
 *
 * Arrays get extent 37 on every axis, pointers 4096 elements, integer scalars 37; a line "// ARGS:"
 * of the text says otherwise. All memory, also what the kernel is to write, starts as pseudo-random
 * numbers; accesses outside are dropped by the interpreter's checks. */
#include "ir/interp/interp.h"
#include "ir/numeric.h"
#include "ir/support/number.h"
#include "tools/opt.h"
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_EXTENT = 37, DEFAULT_POINTEE = 4096, MAX_POLLS = 20000, SHOWN = 16 };

/* ---- the ARGS line ---- */

/* The word after "name=", up to a blank; NULL when the text does not say. */
static const char *said(const OptRun *run, const char *name, size_t *out_length)
{
    const char *line = strstr(run->text, "// ARGS:");
    if (!line || !name)
        return NULL;
    const char *end = line + strcspn(line, "\n");
    size_t n = strlen(name);
    for (const char *at = line + 8; at < end; at += strcspn(at, " \n")) {
        at += strspn(at, " ");
        if (strncmp(at, name, n) != 0 || at[n] != '=')
            continue;
        *out_length = strcspn(at + n + 1, " \n");
        return at + n + 1;
    }
    return NULL;
}

/* Numbers between commas, brackets ignored. */
static int said_numbers(const OptRun *run, const char *name, int64_t *out, int max)
{
    size_t length;
    const char *at = said(run, name, &length), *end = at ? at + length : NULL;
    int n = 0;
    while (at && at < end && n < max) {
        at += strspn(at, "[,");
        if (at >= end || *at == ']')
            break;
        char *after;
        out[n++] = strtoll(at, &after, 0);
        if (after == at)
            return n - 1;
        at = after;
    }
    return n;
}

typedef enum Fill { RANDOM, SPECIAL, EXACT } Fill;

static Fill fill_of(const OptRun *run)
{
    static const char *const NAMES[] = {
        [RANDOM] = "random", [SPECIAL] = "special", [EXACT] = "exact"};
    size_t length = run->fill ? strlen(run->fill) : 0;
    const char *fill = run->fill ? run->fill : said(run, "fill", &length);
    for (int f = EXACT; fill && f > RANDOM; f--)
        if (strlen(NAMES[f]) == length && memcmp(fill, NAMES[f], length) == 0)
            return (Fill)f;
    return RANDOM;
}

/* ---- numbers ---- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t float_bits(Fill fill, TlDtype d, uint64_t r)
{
    static const double specials[] = {
        0.0, -0.0, 1.0, -1.0, __builtin_inf(), -__builtin_inf(), __builtin_nan(""), 1e-42};
    if (fill == EXACT)
        return tl_bits_from_double(d, (double)(int64_t)(r % 17) - 8);
    if (r % 32 == 0)
        return tl_bits_from_double(d, specials[(r >> 8) % (fill == SPECIAL ? 8 : 4)]);
    return tl_bits_from_double(d, (double)(r >> 11) * 0x1p-50 - 4);
}

static uint64_t element(Fill fill, TlDtype d, uint64_t *state)
{
    uint64_t r = next_random(state);
    if (tl_is_float(d))
        return float_bits(fill, d, r);
    if (tl_is_bool(d))
        return r >> 7 & 1;
    if (r % 32 == 0 && fill != EXACT)
        return tl_bits_from_int(d, (int64_t)(r >> 3 | r << 61));
    int64_t small = (int64_t)(r >> 8) % 48;
    return tl_bits_from_int(d, tl_is_signed(d) && tl_dtype_bits(d) > 4 ? small - 8 : small);
}

/* ---- arguments ---- */

static void fill_memory(const OptRun *run, TlInterpArg *arg, TlDtype d, int64_t n, uint64_t seed)
{
    bool packed = tl_dtype_bits(d) < 8;
    Fill fill = fill_of(run);
    size_t bytes = (size_t)n * (size_t)tl_dtype_bytes(d) +
                   16; /* packed types: room enough whatever the rows */
    uint64_t state = seed;
    arg->address = tl_alloc(run->arena, bytes);
    arg->bytes = bytes - 16;
    for (int64_t i = 0; i < n; i++) {
        if (packed)
            ((uint8_t *)arg->address)[i] = (uint8_t)next_random(&state);
        else
            tl_elem_set(d, arg->address, i, element(fill, d, &state));
    }
}

static int64_t extent_of(const TlFn *fn, uint32_t param, int axis)
{
    if (!fn->info || param >= fn->info->params.len)
        return DEFAULT_EXTENT;
    const TlDim *dim = &fn->info->params.data[param].extent[axis];
    return dim->kind == TILE_DIM_CONST ? dim->value : DEFAULT_EXTENT;
}

static void make_view(const OptRun *run, const TlFn *fn, const TlValue *v, TlInterpArg *arg)
{
    int rank = v->type->rank;
    int64_t given[TL_MAX_VIEW_RANK], n = 1;
    int ngiven = said_numbers(run, v->name, given, TL_MAX_VIEW_RANK);
    for (int d = 0; d < rank; d++)
        arg->extent[d] = d < ngiven ? given[d] : extent_of(fn, v->index, d);
    for (int d = rank - 1; d >= 0; d--) {
        arg->stride[d] = n;
        n *= arg->extent[d];
        if (d == rank - 1 && tl_dtype_bits(v->type->dtype) < 8)
            n = (n + 1) / 2 * 2;
    }
    fill_memory(run, arg, v->type->dtype, n, v->index + 1);
}

static void make_arg(const OptRun *run, const TlFn *fn, const TlValue *v, TlInterpArg *arg)
{
    int64_t given = 0;
    uint64_t state = v->index + 100;
    TlDtype d = v->type->dtype;
    if (v->type->kind == TL_VIEW) {
        make_view(run, fn, v, arg);
        return;
    }
    bool is_given = said_numbers(run, v->name, &given, 1) == 1;
    if (v->type->ptr)
        fill_memory(run, arg, d, is_given ? given : DEFAULT_POINTEE, v->index + 1);
    else if (tl_is_float(d))
        arg->scalar = is_given ? tl_bits_from_int(d, given)
                               : float_bits(fill_of(run), d, next_random(&state) | 1);
    else
        arg->scalar = tl_bits_from_int(d, is_given ? given : tl_is_bool(d) ? 1 : DEFAULT_EXTENT);
}

/* ---- one run ---- */

typedef struct Outcome {
    TlInterpArg *args;
    TlSbuf events;
    int polls;
    bool ended;
} Outcome;

static void on_print(void *user, const int32_t *pid, const char *text, TlTileData value)
{
    Outcome *o = user;
    tl_sbuf_putf(&o->events, "(%d,%d,%d) %s", (int)pid[0], (int)pid[1], (int)pid[2], text);
    for (int64_t i = 0; i < tl_type_elems(value.type); i++) {
        uint64_t bits = tl_elem_get(value.type->dtype, value.data, i);
        if (tl_is_float(value.type->dtype))
            tl_sbuf_putf(&o->events, " %s",
                         TL_NUMBER("%.9g", tl_bits_to_double(value.type->dtype, bits)));
        else
            tl_sbuf_putf(&o->events, " %lld", (long long)tl_bits_to_int(value.type->dtype, bits));
    }
    tl_sbuf_puts(&o->events, "\n");
}

static void on_fail(void *user, const int32_t *pid, TlInterpFailKind kind, TlLoc loc,
                    const char *text)
{
    Outcome *o = user;
    (void)loc;
    if (kind != TL_FAIL_ASSERT && kind != TL_FAIL_ASYNC)
        return; /* a pass may remove a load, and with it what the load does wrong */
    tl_sbuf_putf(&o->events, "(%d,%d,%d) failed: %s\n", (int)pid[0], (int)pid[1], (int)pid[2],
                 text);
}

static bool on_stop(void *user)
{
    Outcome *o = user;
    return ++o->polls > MAX_POLLS;
}

static Outcome run_kernel(const OptRun *run, const TlFn *fn)
{
    Outcome o = {.args = TL_NEW_ARRAY(run->arena, TlInterpArg, fn->body->nargs), .ended = true};
    tl_sbuf_init(&o.events, run->arena);
    for (uint32_t i = 0; i < fn->body->nargs; i++)
        make_arg(run, fn, fn->body->args[i], &o.args[i]);
    int64_t grid[6] = {2, 2, 1, 1, 1, 1};
    said_numbers(run, "grid", grid, 6);
    int32_t npid[6], pid[6] = {0};
    int64_t programs = 1;
    for (int a = 0; a < 6; a++)
        programs *= npid[a] = (int32_t)grid[a];
    TlInterpOptions options = {.check = true, .hooks = {&o, on_print, on_fail, on_stop}};
    for (int64_t p = 0; p < programs && o.ended; p++) {
        int64_t rest = p;
        for (int a = 0; a < 6; rest /= npid[a++])
            pid[a] = (int32_t)(rest % npid[a]);
        TlArena scratch;
        tl_arena_init(&scratch, run->arena->alloc);
        o.ended = tl_interp_program(fn, o.args, pid, npid, &options, &scratch);
        tl_arena_free(&scratch);
    }
    return o;
}

/* ---- showing and comparing ---- */

static const char *param_name(const OptRun *run, const TlValue *v)
{
    return v->name ? v->name : tl_format(run->arena, "%u", v->index);
}

static bool is_memory(const TlValue *v)
{
    return v->type->kind == TL_VIEW || v->type->ptr;
}
static int64_t elements(const TlValue *v, const TlInterpArg *arg)
{
    return (int64_t)(arg->bytes / (uint64_t)tl_dtype_bytes(v->type->dtype));
}

static void put_element(TlSbuf *out, TlDtype d, uint64_t bits)
{
    if (tl_is_float(d))
        tl_sbuf_putf(out, "%s", TL_NUMBER("%.9g", tl_bits_to_double(d, bits)));
    else if (tl_is_signed(d))
        tl_sbuf_putf(out, "%lld", (long long)tl_bits_to_int(d, bits));
    else
        tl_sbuf_putf(out, "%llu", (unsigned long long)bits);
}

bool opt_run_show(OptRun *run, const TlModule *m)
{
    bool ok = true;
    for (uint32_t f = 0; f < m->fns.len; f++) {
        const TlFn *fn = m->fns.data[f];
        Outcome o = run_kernel(run, fn);
        tl_sbuf_putf(run->report, "// run @%s%s\n%s", fn->name, o.ended ? "" : ": does not end",
                     o.events.text);
        ok &= o.ended;
        for (uint32_t i = 0; i < fn->body->nargs; i++) {
            const TlValue *v = fn->body->args[i];
            if (!is_memory(v) || v->type->is_const)
                continue;
            int64_t n = elements(v, &o.args[i]);
            tl_sbuf_putf(run->report, "//   %s:", param_name(run, v));
            for (int64_t e = 0; e < n && e < SHOWN; e++) {
                tl_sbuf_puts(run->report, " ");
                put_element(run->report, v->type->dtype,
                            tl_elem_get(v->type->dtype, o.args[i].address, e));
            }
            tl_sbuf_puts(run->report, n > SHOWN ? " ...\n" : "\n");
        }
    }
    return ok;
}

static bool is_nan(TlDtype d, uint64_t bits)
{
    double x = tl_is_float(d) ? tl_bits_to_double(d, bits) : 0;
    return x != x;
}

/* Reports the first difference. */
static bool same_memory(OptRun *run, const TlFn *fn, uint32_t i, const TlInterpArg *a,
                        const TlInterpArg *b)
{
    const TlValue *v = fn->body->args[i];
    TlDtype d = v->type->dtype;
    if (!is_memory(v))
        return true;
    for (int64_t e = 0; e < elements(v, a); e++) {
        uint64_t x = tl_elem_get(d, a->address, e), y = tl_elem_get(d, b->address, e);
        if (x == y || (is_nan(d, x) && is_nan(d, y)))
            continue;
        tl_sbuf_putf(run->report, "@%s: %s[%lld] is ", fn->name, param_name(run, v), (long long)e);
        put_element(run->report, d, x);
        tl_sbuf_puts(run->report, ", was ");
        put_element(run->report, d, y);
        tl_sbuf_puts(run->report, "\n");
        return false;
    }
    return true;
}

static bool same_kernel(OptRun *run, const TlFn *fn, const TlFn *reference)
{
    Outcome a = run_kernel(run, fn), b = {0};
    if (a.ended)
        b = run_kernel(run, reference);
    if (!a.ended || !b.ended) {
        tl_sbuf_putf(run->report, "@%s does not end\n", fn->name);
        return false;
    }
    bool same = strcmp(a.events.text, b.events.text) == 0;
    if (!same)
        tl_sbuf_putf(run->report, "@%s: printed\n%swas\n%s", fn->name, a.events.text,
                     b.events.text);
    for (uint32_t i = 0; i < fn->body->nargs; i++)
        same &= same_memory(run, fn, i, &a.args[i], &b.args[i]);
    return same;
}

static const TlFn *find_kernel(const TlModule *m, const char *name)
{
    for (uint32_t i = 0; i < m->fns.len; i++)
        if (strcmp(m->fns.data[i]->name, name) == 0)
            return m->fns.data[i];
    return NULL;
}

bool opt_run_same(OptRun *run, const TlModule *m, const TlModule *reference)
{
    bool same = true;
    for (uint32_t i = 0; i < reference->fns.len; i++) {
        const TlFn *was = reference->fns.data[i], *fn = find_kernel(m, was->name);
        if (fn && fn->body->nargs == was->body->nargs) {
            same &= same_kernel(run, fn, was);
            continue;
        }
        tl_sbuf_putf(run->report, "@%s is missing or has other parameters\n", was->name);
        same = false;
    }
    return same;
}
