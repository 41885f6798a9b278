/* Nests as text: what has been decided about each of them and why. --emit=nest: tile IR in which
 * comments before each op say where its results live and which nests it has. --emit=loops, which
 * tilec explain shows: the same by lines of the source, of what is in memory or has a nest. */
#include "codegen/nest/nest.h"
#include "ir/remark.h"

#include <string.h>

typedef struct Print {
    TlSbuf *out;
    const TlPrinter *p; /* NULL: values are called by what the source calls them */
    const TlNests *plan;
} Print;

/* ---- pieces ---- */

static const char *kind_name(TlNestKind kind)
{
    static const char *const NAMES[TL_NEST_KINDS] = {
        [TL_NEST_FILL] = "fill",       [TL_NEST_TRANSPOSE] = "transpose",
        [TL_NEST_COPY] = "copy",       [TL_NEST_STORE] = "store",
        [TL_NEST_REDUCE] = "reduce",   [TL_NEST_SCAN] = "scan",
        [TL_NEST_PICK] = "pick",       [TL_NEST_COUNT] = "count",
        [TL_NEST_ADD] = "add tables",  [TL_NEST_ATOMIC] = "atomic",
        [TL_NEST_EACH] = "each",       [TL_NEST_DOT] = "dot",
        [TL_NEST_PRODUCT] = "product", [TL_NEST_PACK] = "pack"};
    return NAMES[kind];
}

static void put_value(Print *p, const TlValue *v)
{
    if (p->p)
        tl_print_value(p->p, p->out, v);
    else if (v->def && v->def->opcode == TL_OP_LOAD)
        tl_sbuf_putf(p->out, "a load of %s",
                     tl_in(v->def, 0)->name ? tl_in(v->def, 0)->name : "memory");
    else if (v->name)
        tl_sbuf_puts(p->out, v->name);
    else
        tl_sbuf_putf(p->out, "a value of %s", v->def ? tl_op_info(v->def->opcode)->text : "a loop");
}

static void put_home(Print *p, const char *before, int32_t home)
{
    if (home >= 0)
        tl_sbuf_putf(p->out, "%shome %d", before, (int)home);
}

static void put_flag(Print *p, bool is_set, const char *text)
{
    if (is_set)
        tl_sbuf_putf(p->out, ", %s", text);
}

static void put_number(Print *p, const char *name, int64_t n, int64_t usual)
{
    if (n != usual)
        tl_sbuf_putf(p->out, ", %s %lld", name, (long long)n);
}

static void put_access(Print *p, const TlNestAccess *a)
{
    put_value(p, a->op->nout ? a->op->out[0] : a->place.base);
}

/* ", name %a %b" */
static void put_accesses(Print *p, const char *name, TlNestAccess *const *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tl_sbuf_putf(p->out, i ? " " : ", %s ", name);
        put_access(p, list[i]);
    }
}

/* ---- nests ---- */

static void put_vector(Print *p, const TlNest *n)
{
    const TlNestForm *f = &n->form;
    tl_sbuf_puts(p->out, " over ");
    for (int d = 0; d < f->rank; d++)
        tl_sbuf_putf(p->out, d ? "x%lld" : "%lld", (long long)f->extent[d]);
    tl_sbuf_puts(p->out, f->rank ? "" : "one element");
    if (f->rank && f->padded[n->lane] != f->extent[n->lane])
        tl_sbuf_putf(p->out, " padded to %lld", (long long)f->padded[n->lane]);
    if (n->width > 1)
        tl_sbuf_putf(p->out, ", axis %d by %d lanes", n->lane, n->width);
    if (n->limit)
        tl_sbuf_putf(p->out, " (%s)", n->limit);
}

static void put_split(Print *p, const TlNest *n)
{
    static const char *const TEXTS[] = {[TL_NEST_PLAIN] = NULL,
                                        [TL_NEST_TESTED] = "tested",
                                        [TL_NEST_SPLIT] = "whole, then tested",
                                        [TL_NEST_ONE] = "one vector, whole or tested"};
    const char *text = TEXTS[n->split];
    put_flag(p, text, text);
    if (n->split >= TL_NEST_SPLIT && n->tested != n->width)
        tl_sbuf_putf(p->out, " by %d", n->tested);
    if (n->split >= TL_NEST_SPLIT)
        put_number(p, "whole up to", n->end, -1);
    if (n->unsplit)
        tl_sbuf_putf(p->out, " (%s)", n->unsplit);
    for (uint32_t i = 0; i < n->asks.len; i++) {
        const TlNestAsk *ask = &n->asks.data[i];
        tl_sbuf_puts(p->out, i ? " " : ", bounds of ");
        put_access(p, ask->access);
        if (ask->times != 1)
            tl_sbuf_putf(p->out, ask->times > 0 ? "*%d" : "/%d",
                         ask->times > 0 ? ask->times : -ask->times);
    }
    for (uint32_t i = 0, first = 1; n->boxed_axes >> i; i++)
        if (n->boxed_axes >> i & 1) {
            tl_sbuf_putf(p->out, first ? ", only inside along %d" : " %d", n->boxed->axis[i].dim);
            first = 0;
        }
    if (n->reach)
        tl_sbuf_putf(p->out, ", along %d from %lld to %lld and %lld more for each trip left",
                     n->reach->dim, (long long)n->reach->from, (long long)n->reach->to,
                     (long long)n->reach->more);
    for (uint32_t i = 0; i < n->down.len; i++) {
        tl_sbuf_puts(p->out, i ? " and " : ", down rows with ");
        put_value(p, n->down.data[i]->value);
        tl_sbuf_putf(p->out, " of %d in registers", n->down.data[i]->ahead);
    }
    put_flag(p, n->chosen[1], "only rows that are chosen");
    put_flag(p, n->chosen_row, n->has_row ? "only one row" : "only one row, if there is such");
    put_flag(p, n->last_axis >= 0, "ends with what is stored");
    if (!p->plan->check)
        put_number(p, "values", n->nvalues, 0);
}

static void put_store(Print *p, const TlNest *n)
{
    if (n->kind != TL_NEST_STORE)
        return;
    if (n->joined)
        tl_sbuf_putf(p->out, ", %d stores %s", n->joined->n,
                     n->joined->apart ? "together" : "interleaved");
    put_flag(p, n->stored_by, "may be done by the product");
    put_flag(p, n->streams, n->streams_wide ? "streams, by registers" : "streams");
    put_flag(p, n->streams_lines, "rows that begin with a line");
    if (n->unstreamed)
        tl_sbuf_putf(p->out, ", through the caches (%s)", n->unstreamed);
}

static void put_prefetch(Print *p, const TlNest *n)
{
    static const char *const fetches[] = {
        [TL_NEST_FETCH_PAGES] = "prefetches two pages on after",
        [TL_NEST_FETCH_LIGHT] = "prefetches a page on, if the array is large, after",
        [TL_NEST_FETCH_TRIP] = "prefetches for the next trip after",
        [TL_NEST_FETCH_TRIPS] = "prefetches for the trip after the next one after",
        [TL_NEST_FETCH_PART] = "prefetches the next parts of rows after",
    };
    put_accesses(p,
                 n->next_near ? "prefetches the next program's"
                              : "prefetches, if the array is large, the next program's",
                 n->next.data, n->next.len);
    put_flag(p, n->ahead, "and where it will store");
    put_accesses(p, fetches[n->fetch_from], n->fetch.data, n->fetch.len);
    put_flag(p, n->store && n->part, "prefetches the next parts of rows");
    put_accesses(p, "prefetches the next trip's", &n->trip, n->trip ? 1 : 0);
}

static void put_reduction(Print *p, const TlNest *n)
{
    if (!n->reduce)
        return;
    tl_sbuf_putf(p->out, ", along %d", n->axis);
    put_flag(p, n->along, "which the lanes are along");
    put_number(p, "rows", n->rows, 1);
    for (uint32_t i = 0; n->rows > 1 && i < n->shared.len; i++) {
        tl_sbuf_puts(p->out, i ? " " : " that share ");
        put_access(p, n->shared.data[i]);
    }
    put_number(p, "parts", n->parts, 1);
    put_flag(p, n->singles, "vectors that they leave one by one");
    put_flag(p, n->from_identity, "from the identity");
    put_flag(p, n->stops, "stops where nothing is inside");
    put_flag(p, n->asks_new, "NaN asked of the new element");
    if (n->fill) {
        tl_sbuf_puts(p->out, ", filling ");
        put_value(p, n->fill);
    }
}

static void put_kept(Print *p, const TlNest *n)
{
    const TlNestKeep *k = n->keep;
    if (k)
        tl_sbuf_putf(p->out, ", %lld rows from the program before along grid axis %d",
                     (long long)k->rows, k->axis);
    if (k && k->slots > 1)
        tl_sbuf_putf(p->out, " in one of %d homes", k->slots);
    if (k && k->turns > 1)
        tl_sbuf_putf(p->out, ", moved every %d programs", k->turns);
    if (n->unkept)
        tl_sbuf_putf(p->out, ", rows of the program before computed again (%s)", n->unkept);
}

static void put_few_rows(Print *p, const TlNestFew *f)
{
    if (!f->rows) {
        tl_sbuf_putf(p->out, ", B is packed for few rows, too (%s)", f->why);
        return;
    }
    tl_sbuf_putf(p->out, ", B is not packed for up to %d rows", f->rows);
    if (f->each)
        tl_sbuf_putf(p->out, " and 1/%d of k", f->each);
    tl_sbuf_putf(p->out, ": blocks of %d rows and %d %s", f->mr, f->nv,
                 f->along ? "columns" : "vectors");
    if (f->along)
        tl_sbuf_putf(p->out, ", of one row and %d, lanes along k", f->single);
    else if (f->single)
        tl_sbuf_putf(p->out, ", of one row and %d, down %d rows of B", f->single, f->deep);
    if (f->some)
        tl_sbuf_putf(p->out, ", for up to %d rows of %d first", f->some, f->great);
    if (f->past)
        tl_sbuf_puts(p->out, ", past columns into the next row");
    if (f->to_ends)
        tl_sbuf_puts(p->out, ", up to its ends");
    if (f->small_rows)
        tl_sbuf_putf(p->out, ", for up to %d where it stays in the first cache", f->small_rows);
}

static void put_insn(Print *p, const TlNestProduct *x)
{
    if (x->insn)
        tl_sbuf_putf(p->out, ", by %s", x->tile ? x->tile : x->insn->name);
    if (x->tile)
        tl_sbuf_putf(p->out, ", tiles %d deep, else by %s", x->tile_depth, x->insn->name);
    if (x->pairs)
        tl_sbuf_putf(p->out, ", pairs of rows by %s", x->pairs);
    if (x->untiled)
        tl_sbuf_putf(p->out, ", not by tiles (%s)", x->untiled);
}

static void put_product(Print *p, const TlNest *n)
{
    const TlNestProduct *x = n->product;
    if (n->kind == TL_NEST_DOT || n->kind == TL_NEST_PRODUCT)
        tl_sbuf_putf(p->out, ", blocks of %d rows and %d vectors", n->mr, n->nv);
    if (n->kind == TL_NEST_DOT && x) {
        tl_sbuf_putf(p->out, ", panels of %lld columns, %lld deep", (long long)n->panel,
                     (long long)x->depth);
        put_insn(p, x);
    }
    if (n->kind == TL_NEST_DOT && !x) {
        put_home(p, ", A in ", n->operand[0].home);
        tl_sbuf_puts(p->out, n->operand[0].transposed ? " transposed" : "");
        put_home(p, ", B in ", n->operand[1].home);
    }
    if (n->kind == TL_NEST_PACK) {
        tl_sbuf_putf(p->out, ", %s",
                     n->is_b ? "B by panels" : x->a_by_columns ? "A by columns" : "A by rows");
        put_flag(p, n->cuts, "up to the end of A");
        put_flag(p, n->below, "prefetches rows below");
    }
    put_number(p, "transposed by", n->transposed, 0);
    put_number(p, "words together", tl_nest_takes_words(n) ? n->words : 0, 0);
    if (n->kind != TL_NEST_PRODUCT)
        return;
    tl_sbuf_putf(p->out, ", panels of %lld columns", (long long)n->panel);
    put_flag(p, n->halves, "two rows share the last vector");
    put_flag(p, n->narrow, "the last ones narrow");
    put_flag(p, n->begins_at_zero, "begins at 0");
    tl_sbuf_putf(p->out, ", groups of %lld", (long long)n->group);
    tl_sbuf_putf(p->out, ", chunks of %lld trips, %lld deep", (long long)x->trips,
                 (long long)x->depth);
    put_insn(p, x);
    put_flag(p, x->a_load && !x->a_rows, x->a_may_end ? "A in memory, packed at its end"
                                                      : "A in memory");
    put_flag(p, x->a_moves, "or where its iterations do not follow each other");
    put_flag(p, x->a_by_columns, "A by columns");
    put_flag(p, x->a_packs, "packed where these are far apart");
    put_flag(p, x->a_rows, x->a_transposed ? "A's columns listed" : "A's rows listed");
    put_flag(p, x->cuts_listed, "up to the end of B");
    if (x->keeps_b)
        tl_sbuf_putf(p->out, ", keeps %u chunks of B", x->slots);
    put_number(p, "or of smaller ones", x->tagged, x->slots);
    put_flag(p, x->numbering, "numbered by where they are");
    put_number(p, "waits in loops around", x->ngathered, 0);
    put_flag(p, x->slides, "packs A for the loop around");
    put_flag(p, x->store_turned, "the store is turned");
    put_flag(p, x->seen[0], "rows that are chosen");
    put_flag(p, x->seen[1], "columns that are chosen");
    put_flag(p, x->stores, "stores the sums");
    put_number(p, "the last rows by", n->small_mr, n->mr);
    if (n->deepens && n->most_trips > x->trips)
        tl_sbuf_putf(p->out, ", %lld trips for up to %lld columns", (long long)n->most_trips,
                     (long long)n->few);
    put_flag(p, n->fetches, "rows of B asked for ahead");
    put_flag(p, n->narrow && n->narrow_fetches, "those of narrow panels, too");
    put_few_rows(p, &n->few_rows);
}

static void put_sliding(Print *p, const TlNest *n)
{
    for (uint32_t i = 0; i < n->spreads.len; i++) {
        const TlNestSpread *s = tl_map_get_ptr(&p->plan->spreads, n->spreads.data[i]);
        if (s->carried)
            tl_sbuf_putf(p->out, ", %d of %lld elements of one of these anew", s->carried,
                         (long long)s->span);
    }
    for (uint32_t i = 0; i < n->sliding.len; i++) {
        const TlNestSliding *s = n->sliding.data[i];
        for (uint32_t k = 0; k < s->taps.len; k++)
            tl_sbuf_putf(p->out, ", %s of %d neighbours in %d steps with the vector before",
                         tl_op_info(s->op->opcode)->text, s->taps.data[k]->n,
                         s->taps.data[k]->nsteps);
        put_flag(p, s->tested, "where they are tested, too");
    }
    for (uint32_t i = 0; i < n->sliding_rows.len; i++)
        for (uint32_t k = 0; k < n->sliding_rows.data[i]->taps.len; k++)
            tl_sbuf_putf(p->out, ", %s of %d rows in %d steps",
                         tl_op_info(n->sliding_rows.data[i]->op->opcode)->text,
                         n->sliding_rows.data[i]->taps.data[k]->n,
                         n->sliding_rows.data[i]->taps.data[k]->nsteps);
}

static void put_nest(Print *p, const TlNest *n)
{
    tl_sbuf_putf(p->out, "nest: %s ", kind_name(n->kind));
    if (n->value)
        put_value(p, n->value);
    put_home(p, n->value ? " from " : "from ", n->from);
    put_home(p, n->value || n->from >= 0 ? " into " : "into ", n->home);
    put_vector(p, n);
    put_split(p, n);
    put_flag(p, n->zero_rows, "zeros for rows outside");
    put_flag(p, n->forks_rows, "without these where all rows are inside");
    put_flag(p, n->by_row && !n->unrolled, "row by row");
    put_flag(p, n->begins, "tested before it, too");
    put_flag(p, n->overlaps, "the last vector overlaps where all is inside");
    if (n->spreads.len)
        tl_sbuf_putf(p->out, ", %u values computed before elements are repeated", n->spreads.len);
    put_sliding(p, n);
    put_flag(p, n->unrolled, "unrolled");
    put_flag(p, n->repeated, "without a loop where all is inside");
    if (n->columns && (p->plan->whole || n->sliding_rows.len))
        tl_sbuf_puts(p->out, n->columns == n ? ", down columns where all is inside"
                                             : ", only where not all is inside");
    put_kept(p, n);
    put_store(p, n);
    put_prefetch(p, n);
    put_reduction(p, n);
    put_number(p, "element", n->picked, 0);
    put_number(p, "tables", n->tables.n, 0);
    if (n->counted) {
        tl_sbuf_puts(p->out, ", counted where vectors of it lie: ");
        put_value(p, n->counted);
    }
    put_flag(p, n->groups, "floats side by side");
    put_product(p, n);
    tl_sbuf_puts(p->out, "\n");
}

/* ---- places ---- */

static const char *const OUTSIDE[] = {[TL_WAY_WRAP] = ", outside at the other end",
                                      [TL_WAY_REFLECT] = ", outside mirrored at the last element",
                                      [TL_WAY_SYMMETRIC] =
                                          ", outside mirrored behind the last element"};

/* Index tiles of a load that are taken as slices. */
static void put_slices(Print *p, const TlValue *v)
{
    const TlNestAccess *a = v->def ? tl_map_get_ptr(&p->plan->access, v->def) : NULL;
    for (uint32_t i = 0; a && a->loads && a->place.axes && i < a->place.naxes; i++)
        if (a->axis[i].affine.is)
            tl_sbuf_putf(p->out, ", axis %u as a %s%s", i,
                         a->axis[i].affine.period ? "pattern" : "slice",
                         a->axis[i].affine.mirrored        ? OUTSIDE[a->axis[i].affine.way]
                         : tl_nest_is_clamped(&a->axis[i]) ? " within its bounds"
                                                           : "");
}

static void put_place(Print *p, const TlValue *v)
{
    static const char *const WAYS[TL_NEST_WAYS] = {
        [TL_NEST_RENAMES] = "renames axes",
        [TL_NEST_INTERLEAVES] = "interleaves vectors",
        [TL_NEST_JOINS_HOME] = "joins axes of a home",
        [TL_NEST_TURNS_WORDS] = "every few words of a home",
        [TL_NEST_READS_HOME] = "reads the operand's home",
        [TL_NEST_PUTS_ROWS] = "rows one after the other",
        [TL_NEST_PARTS] = "every few elements of vectors",
        [TL_NEST_NUMBERS] = "by the element's number",
        [TL_NEST_GATHERS] = "lane by lane",
        [TL_NEST_EXCHANGES] = "exchanges lanes",
        [TL_NEST_TAKES_ROWS] = "vectors of other rows",
        [TL_NEST_SHUFFLES] = "lanes of two vectors",
        [TL_NEST_PERMUTES] = "lanes of one vector",
        [TL_NEST_SHIFTS] = "vectors that begin at any lane",
        [TL_NEST_SUMS_QUADS] = "four products of bytes a lane",
        [TL_NEST_ADDS_QUADS] = "added by the instruction",
        [TL_NEST_LOADS_WORDS] = "both bytes at once",
        [TL_NEST_PART_OF_WORDS] = "shifted out of words"};
    TlNestPlace x = p->plan->place[v->id];
    if (v->type->kind != TL_TILE || v->type->rank == 0)
        return;
    put_value(p, v);
    put_home(p, ": ", x.kind == TL_NEST_HOME ? x.buffer : -1);
    tl_sbuf_puts(p->out, x.kind == TL_NEST_VIRTUAL ? p->p ? ": virtual" : ": no home" : "");
    if (x.why)
        tl_sbuf_putf(p->out, " (%s)", x.why);
    put_flag(p, WAYS[x.way], WAYS[x.way]);
    put_flag(p, x.inside, "all inside");
    put_flag(p, v->def && tl_map_get_ptr(&p->plan->rare, v->def),
             "an arm only where a lane takes it");
    put_slices(p, v);
    const TlNestAccess *a = v->def ? tl_map_get_ptr(&p->plan->access, v->def) : NULL;
    bool is_lookup = a && tl_nest_lookup(p->plan, a).permute;
    put_flag(p, is_lookup, "looked up in registers");
    put_flag(p, a && !is_lookup && tl_nest_may_be_near(p->plan, a),
             "lanes of whole vectors where these are near");
    if (x.partner) {
        tl_sbuf_puts(p->out, " by ");
        put_value(p, x.partner);
    }
    tl_sbuf_puts(p->out, "\n");
}

static void put_frame(Print *p, const TlNestFrame *f)
{
    tl_sbuf_puts(p->out, "where the border is near, as many elements of ");
    put_value(p, f->base);
    tl_sbuf_puts(p->out, " are copied: ");
    for (int i = 0; i < f->rank; i++)
        tl_sbuf_putf(p->out, "%s%lld", i ? "x" : "", (long long)f->part[i]);
    tl_sbuf_putf(p->out, ", %lld vectors for %lld that are loaded\n", (long long)f->vectors,
                 (long long)f->loaded);
}

static void put_rows(TlSbuf *out, const TlNestFold *f)
{
    tl_sbuf_putf(out, "whole rows of %d elements, %s, are one axis", f->row,
                 f->apart ? "which may lie apart" : "one after the other");
    if (f->more)
        tl_sbuf_putf(out, " (of %lld ops; %lld more for the sake of columns)", (long long)f->work,
                     (long long)f->more);
    tl_sbuf_puts(out, "\n");
}

static void put_function(Print *p)
{
    const TlNests *plan = p->plan;
    const TlNestMachine *m = &plan->m;
    const char *gathers = !m->gathers ? "" : m->one_by_one ? ", slow gathers" : ", gathers";
    tl_sbuf_putf(p->out, "vectors of %d bytes, %d registers%s%s\n", m->vector_bytes, m->nregs,
                 gathers, m->masks ? ", masks" : "");
    tl_sbuf_putf(p->out, "scratch: %llu bytes", (unsigned long long)plan->scratch_bytes);
    put_number(p, "zeroed", (int64_t)plan->zeroed_bytes, 0);
    tl_sbuf_puts(p->out, "\n");
    for (uint32_t i = 0; i < plan->buffers.len; i++) {
        const TlNestBuffer *b = &plan->buffers.data[i];
        tl_sbuf_putf(p->out, "home %u: %llu bytes", i, (unsigned long long)b->bytes);
        if (b->small)
            tl_sbuf_puts(p->out, " in registers\n");
        else
            tl_sbuf_putf(p->out, " at %llu\n", (unsigned long long)b->offset);
    }
    if (plan->whole)
        tl_sbuf_puts(p->out, "programs of which all is inside have code of their own\n");
    else if (plan->unwhole)
        tl_sbuf_putf(p->out, "one code for all programs (%s)\n", plan->unwhole);
    for (uint32_t i = 0; i < plan->frames.len; i++)
        put_frame(p, &plan->frames.data[i]);
    if (!plan->frames.len && plan->unframed)
        tl_sbuf_putf(p->out, "those at the border test what they load (%s)\n", plan->unframed);
    if (plan->abreast)
        tl_sbuf_putf(p->out,
                     "%d of these%s abreast along grid axis 1 (of %d loads %d are different)%s\n",
                     plan->abreast->times,
                     plan->abreast->tests_lanes ? ", and those whose rows are inside," : "",
                     plan->abreast->loads, plan->abreast->distinct,
                     plan->abreast->first ? ", from the first whose rows are inside on" : "");
    if (plan->fold.row && !plan->fold.plan)
        put_rows(p->out, &plan->fold);
    if (plan->lead)
        tl_sbuf_putf(p->out,
                     "tiles with a halo have %lld columns more before, to begin with lines\n",
                     (long long)plan->lead);
    if (plan->paired)
        tl_sbuf_puts(p->out,
                     "two trips of a loop at once (rows go through memory half as often)\n");
    if (plan->uncut)
        tl_sbuf_putf(p->out, "all of a program at once (%s)\n", plan->uncut);
}

static void put_wide_title(const TlNests *plan, TlSbuf *out)
{
    static const char *const why[] = {
        [TL_NEST_WIDE_FULL] = "vectors are full",
        [TL_NEST_WIDE_HALO] = "columns are computed once",
        [TL_NEST_WIDE_LITTLE] = "each does little",
        [TL_NEST_WIDE_ENDS] = "rows have fewer ends",
        [TL_NEST_WIDE_PLACES] = "places are found once",
    };
    tl_sbuf_putf(out, "%d programs at once along grid axis %d (%s)\n", plan->wide->at_once,
                 plan->wide->at_once_axis, why[plan->why_wide]);
}

static void put_pieces_title(const TlNests *plan, TlSbuf *out)
{
    tl_sbuf_putf(out,
                 "pieces of %d elements, one after the other (loops carry more than registers "
                 "hold)\n",
                 plan->strip);
}

/* The nests of another function than the one that is printed. */
static void put_others(const TlNests *plan, TlSbuf *out)
{
    Print p = {out, NULL, plan};
    put_function(&p);
    for (uint32_t i = 0; i < plan->all.len; i++)
        put_nest(&p, plan->all.data[i]);
}

/* Those of several programs at once. */
static void put_wide(const TlNests *plan, TlSbuf *out)
{
    put_wide_title(plan, out);
    put_others(plan->wide, out);
    tl_sbuf_puts(out, "the other programs, one by one\n");
}

/* What a launch has whose rows are one axis. */
static void put_fold_title(const TlNests *plan, const TlNestFold *f, TlSbuf *out)
{
    tl_sbuf_puts(out, f->apart ? "other launches " : "launches ");
    if (f->views.len)
        tl_sbuf_putf(out, "whose rows of %d elements are %s ", f->row,
                     f->apart ? "those of" : "all of");
    for (uint32_t i = 0; i < f->views.len; i++)
        tl_sbuf_putf(out, "%s%s", i ? ", " : "",
                     plan->fn->info->params.data[f->views.data[i]->index].name);
    for (uint32_t i = 0; i < f->dense.len; i++)
        tl_sbuf_putf(out, "%s%s", i ? ", " : "whose elements lie side by side in ",
                     plan->fn->info->params.data[f->dense.data[i]->index].name);
    for (uint32_t axis = 0, n = 0; f->alone >> axis; axis++)
        if (f->alone >> axis & 1)
            tl_sbuf_putf(out, "%sone program along grid axis %u",
                         n++            ? " and "
                         : f->views.len ? ", with "
                                        : "with ",
                         axis);
    tl_sbuf_puts(out, "\n");
}

static void put_fold(const TlNests *plan, const TlNestFold *f, TlSbuf *out)
{
    put_fold_title(plan, f, out);
    if (f->plan->wide)
        put_wide(f->plan, out);
    put_others(f->plan, out);
}

typedef struct Notes {
    TlMap plans;         /* function to plan */
    const TlNests *plan; /* of the function that is printed; NULL: it runs in pieces */
} Notes;

static void note(void *user, const TlPrinter *printer, const TlFn *fn, const TlOp *op,
                 TlSbuf *lines)
{
    Notes *notes = user;
    if (!op)
        notes->plan = tl_map_get_ptr(&notes->plans, fn);
    if (!op && notes->plan->pieces) {
        put_pieces_title(notes->plan, lines);
        put_others(notes->plan->pieces, lines);
        notes->plan = NULL;
    }
    if (!notes->plan)
        return;
    Print p = {lines, printer, notes->plan};
    if (!op && notes->plan->fold.plan)
        put_fold(notes->plan, &notes->plan->fold, lines);
    if (!op && notes->plan->apart.plan)
        put_fold(notes->plan, &notes->plan->apart, lines);
    if (!op && (notes->plan->fold.plan || notes->plan->apart.plan))
        tl_sbuf_puts(lines, "all other launches\n");
    if (!op && notes->plan->wide)
        put_wide(notes->plan, lines);
    if (!op) {
        put_function(&p);
        return;
    }
    for (uint32_t i = 0; i < op->nout; i++)
        put_place(&p, op->out[i]);
    bool has_places = op->opcode != TL_OP_REDUCE && op->opcode != TL_OP_SCAN;
    for (uint32_t r = 0; has_places && r < op->nregions; r++)
        for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
            put_place(&p, op->regions[r]->args[i]);
    const TlNest *n;
    for (uint32_t i = 0; (n = tl_nest_of(notes->plan, op, i)) != NULL; i++)
        put_nest(&p, n);
}

void tl_nest_print(TlSbuf *out, const TlModule *m, const TlNestMachine *machine, bool check)
{
    Notes notes = {.plans = {.arena = out->arena}};
    TlModule planned = *m; /* with functions as the plans have them */
    memset(&planned.fns, 0, sizeof planned.fns);
    for (uint32_t i = 0; i < m->fns.len; i++) {
        const TlNests *plan = tl_nest_plan(m->fns.data[i], machine, check, out->arena);
        tl_map_put_ptr(&notes.plans, plan->fn, (void *)(uintptr_t)plan);
        tl_vec_push(out->arena, &planned.fns, (TlFn *)(uintptr_t)plan->fn);
    }
    tl_print_module_with(out, &planned, note, &notes);
}

/* ---- by lines of the source ---- */

/* Is there more to say of v than that it is computed where it is needed? */
static bool is_worth_a_word(const TlNests *plan, const TlValue *v)
{
    TlNestPlace x = plan->place[v->id];
    const TlNestAccess *a = v->def ? tl_map_get_ptr(&plan->access, v->def) : NULL;
    bool special = v->def && tl_map_get_ptr(&plan->rare, v->def);
    bool is_tile = v->type->kind == TL_TILE && v->type->rank > 0;
    for (uint32_t i = 0; a && a->loads && a->place.axes && i < a->place.naxes; i++)
        special |= a->axis[i].affine.is;
    special |= a && (tl_nest_may_be_near(plan, a) || tl_nest_lookup(plan, a).permute);
    return is_tile && (special || x.kind == TL_NEST_HOME || (x.way > TL_NEST_RENAMES));
}

/* The line of source that loc is in, once. */
static void put_line(TlSbuf *out, const TlDiags *diags, TlLoc loc, TlLoc *last)
{
    if (loc.file >= diags->sources.len || (loc.file == last->file && loc.line == last->line))
        return;
    const TlSource *s = &diags->sources.data[loc.file];
    const char *at = s->text, *end = s->text + s->size;
    for (uint32_t line = 1; at && line < loc.line; line++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    size_t n = 0;
    while (at && at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (at && at + n < end && at[n] != '\n' && at[n] != '\r')
        n++;
    tl_sbuf_putf(out, "  %4u | %.*s\n", loc.line, (int)n, at ? at : "");
    *last = loc;
}

typedef struct Lines {
    TlLoc last;
    size_t from; /* where the last text begins */
} Lines;

/* Begins a text about a line of the source. */
static size_t begin_text(Print *p, const TlOp *op, Lines *l)
{
    size_t before = p->out->len;
    put_line(p->out, &p->plan->fn->module->ctx->diags, op->loc, &l->last);
    if (p->out->len != before)
        l->from = p->out->len;
    size_t from = p->out->len;
    tl_sbuf_puts(p->out, "         ");
    return from;
}

/* What is said twice is said once. */
static void end_text(Print *p, Lines *l, size_t from)
{
    size_t n = p->out->len - from;
    if (from - l->from == n && memcmp(p->out->text + from, p->out->text + l->from, n) == 0)
        p->out->len = from;
    else
        l->from = from;
}

/* What passes say of an op; the number is the remark's. */
static const struct {
    TlRemarkId id;
    const char *text;
} SAID[] = {
    {TL_REMARK_ONE_PLACE,
     "while all lanes are at one place, %lld gathers are loads of one element each\n"},
    {TL_REMARK_BITS, "computed in fewer bits than %lld: its users cannot tell\n"},
    {TL_REMARK_TURNED,
     "goes along rows, of which each lane has one: blocks of %lld columns are loaded and stored by "
     "rows, and transposed\n"}};

static void put_remarks(Print *p, const TlOp *op, Lines *l)
{
    for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++) {
        int64_t n = tl_remark_of(op, SAID[i].id);
        if (!n)
            continue;
        size_t from = begin_text(p, op, l);
        tl_sbuf_putf(p->out, SAID[i].text, (long long)n);
        end_text(p, l, from);
    }
}

static void put_op(Print *p, const TlOp *op, Lines *l)
{
    const TlNest *n;
    put_remarks(p, op, l);
    for (uint32_t i = 0; i < op->nout; i++) {
        if (!is_worth_a_word(p->plan, op->out[i]))
            continue;
        size_t from = begin_text(p, op, l);
        put_place(p, op->out[i]);
        end_text(p, l, from);
    }
    for (uint32_t i = 0; (n = tl_nest_of(p->plan, op, i)) != NULL; i++) {
        size_t from = begin_text(p, op, l);
        put_nest(p, n);
        end_text(p, l, from);
    }
}

static void explain_loops(TlSbuf *out, const TlNests *plan)
{
    Print p = {out, NULL, plan};
    Lines lines = {{0}, 0};
    put_function(&p);
    tl_sbuf_puts(out, "\nloops over tiles\n");
    for (const TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL))
        put_op(&p, op, &lines);
}

/* With the loops of several programs at once, which come first. */
static void explain_all(TlSbuf *out, const TlNests *plan)
{
    if (plan->wide) {
        put_wide_title(plan, out);
        explain_loops(out, plan->wide);
        tl_sbuf_puts(out, "\nthe other programs, one by one\n");
    }
    if (plan->pieces)
        put_pieces_title(plan, out);
    explain_loops(out, plan->pieces ? plan->pieces : plan);
}

void tl_nest_explain(TlSbuf *out, const TlModule *m, const TlNestMachine *machine, bool check)
{
    for (uint32_t i = 0; i < m->fns.len; i++) {
        const TlFn *fn = m->fns.data[i];
        const TlNests *plan = tl_nest_plan(fn, machine, check, out->arena);
        tl_sbuf_putf(out, "%s%s\n\n", i ? "\n\n" : "", fn->name);
        const TlNestFold *folds[] = {&plan->fold, &plan->apart};
        for (int k = 0; k < 2; k++)
            if (folds[k]->plan) {
                put_fold_title(plan, folds[k], out);
                explain_all(out, folds[k]->plan);
                tl_sbuf_puts(out, "\n");
            }
        if (plan->fold.plan || plan->apart.plan)
            tl_sbuf_puts(out, "all other launches\n");
        explain_all(out, plan);
    }
}
