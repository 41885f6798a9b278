/* explain_json.c: the compiler's report as JSON, driven by tables: a row for each field of each
 * struct of tilec.h. Names are those of the C fields; a position's fields become members of the
 * object that has it. */
#ifndef TILE_UNSTABLE
#define TILE_UNSTABLE
#endif
#include "tools/explain_json.h"

#include <stddef.h>
#include <string.h>

#include "codegen/report/roof.h"
#include "ir/support/diag.h"
#include "ir/support/number.h"

typedef enum Form { TEXT, INT, U32, I64, U64, SIZE, REAL, PLACE, STRUCT, ROWS, TEXTS } Form;

typedef struct Field {
    const char *name;
    Form form;
    size_t at;    /* of the field; ROWS, TEXTS: of the pointer */
    size_t count; /* ROWS, TEXTS: of the number of rows */
    size_t size;  /* ROWS: of one */
    const struct Field *fields; /* STRUCT, ROWS; the last one has no name */
} Field;

/* clang-format off */
#define FIELD(type, name, form)         {#name, form, offsetof(type, name), 0, 0, NULL}
#define POSITION(type)                  {"position", PLACE, offsetof(type, position), 0, 0, NULL}
#define LIST(type, name, n, of, fields) {#name, ROWS, offsetof(type, name), offsetof(type, n), sizeof(of), fields}
#define NAMES(type, name, n)            {#name, TEXTS, offsetof(type, name), offsetof(type, n), 0, NULL}
#define END                             {NULL, TEXT, 0, 0, 0, NULL}

static const Field CONSTS[] = {
#define F(name, form) FIELD(tilec_const, name, form)
    F(name, TEXT), F(value, TEXT), END
#undef F
};

static const Field BUFFERS[] = {
#define F(name, form) FIELD(tilec_report_buffer, name, form)
    POSITION(tilec_report_buffer), F(op, TEXT), F(param, TEXT), F(offset, U64), F(bytes, U64), F(slots, U32), F(first, U32), F(last, U32), END
#undef F
};

static const Field MASKS[] = {
#define F(name, form) FIELD(tilec_report_mask, name, form)
    F(what, TEXT), F(why, TEXT), F(help, TEXT), END
#undef F
};

static const Field ACCESSES[] = {
#define F(name, form) FIELD(tilec_report_access, name, form)
    POSITION(tilec_report_access), F(op, TEXT), F(param, TEXT), F(type, TEXT), F(branch, TEXT), F(loops, U32), F(bytes, U64),
    F(width, U32), F(requests, U32), F(sectors, U32), F(least, U32), F(run, U64), F(narrow, TEXT), F(by_threads, TEXT), F(loop, INT),
    LIST(tilec_report_access, masks, nmasks, tilec_report_mask, MASKS), F(order, U32), F(share, U32), F(ahead, U32), F(buffer, INT), END
#undef F
};

static const Field EXCHANGES[] = {
#define F(name, form) FIELD(tilec_report_exchange, name, form)
    POSITION(tilec_report_exchange), F(op, TEXT), F(way, TEXT), F(why, TEXT), F(branch, TEXT), F(loops, U32), F(bytes, U64),
    F(shuffles, U32), F(barriers, U32), F(wavefronts, U32), F(least, U32), F(loop, INT), F(macs, U64), F(matrix_bits, INT),
    F(instructions, U32), F(order, U32), F(share, U32), F(ahead, U32), F(buffer, INT), F(kind, TEXT), END
#undef F
};

static const Field WAITS[] = {
#define F(name, form) FIELD(tilec_report_wait, name, form)
    POSITION(tilec_report_wait), F(order, U32), F(pending, U32), F(loop, INT), END
#undef F
};

static const Field LINES[] = {
#define F(name, form) FIELD(tilec_report_line, name, form)
    POSITION(tilec_report_line), F(loop, INT), F(share, U32), F(flops, U64), F(special, U64), F(words, U32), F(order, U32), END
#undef F
};

static const Field WORK[] = {
#define F(name, form) FIELD(tilec_report_work, name, form)
    F(bytes, U64), F(flops, U64), F(macs, U64), END
#undef F
};

static const Field LOOPS[] = {
#define F(name, form) FIELD(tilec_report_loop, name, form)
    POSITION(tilec_report_loop), F(loops, U32), F(trips, I64), F(how, TEXT), F(outer, INT), F(param, TEXT), F(axis, U32), F(less, I64),
    F(step, I64), F(first, U32), F(last, U32), F(stages, U32), {"each", STRUCT, offsetof(tilec_report_loop, each), 0, 0, WORK}, F(made, U32), END
#undef F
};

static const Field MIX[] = {
#define F(name, form) FIELD(tilec_report_mix, name, form)
    F(name, TEXT), F(width, U32), F(all, U32), F(trip, U32), F(rest, U32), F(around, U32), END
#undef F
};

static const Field ROOFS[] = {
#define F(name, form) FIELD(tilec_report_roof, name, form)
    F(name, TEXT), F(trip, REAL), F(program, REAL), F(advice, TEXT), END
#undef F
};

static const Field HINTS[] = {
#define F(name, form) FIELD(tilec_report_hint, name, form)
    POSITION(tilec_report_hint), F(id, TEXT), F(text, TEXT), F(help, TEXT), F(cycles, REAL), END
#undef F
};

static const Field PARAMS[] = {
#define F(name, form) FIELD(tilec_report_param, name, form)
    F(name, TEXT), F(type, TEXT), NAMES(tilec_report_param, extents, nextents), END
#undef F
};

#define K tilec_report_kernel
static const Field KERNEL[] = {
#define F(name, form) FIELD(K, name, form)
    F(name, TEXT), F(variant, TEXT), F(symbol, TEXT), F(condition, TEXT), LIST(K, consts, nconsts, tilec_const, CONSTS),
    F(warps, U32), F(lanes, U32), F(threads, U32), F(warps_why, TEXT), F(sparing_why, TEXT), F(cluster, U32), F(cluster_why, TEXT),
    F(dies, U32),
    F(registers, INT), F(accumulators, INT), F(scalars, INT), F(spilled, INT), F(reloaded, INT), F(spilled_scalars, INT),
    F(private_bytes, INT), F(registers_from, TEXT), F(shared_bytes, U32), F(shared_most, U32),
    F(blocks, INT), F(resident_warps, INT), F(most_warps, INT), F(by_registers, INT), F(by_shared, INT), F(by_warps, INT),
    F(by_blocks, INT), F(limit, TEXT),
    LIST(K, buffers, nbuffers, tilec_report_buffer, BUFFERS), LIST(K, accesses, naccesses, tilec_report_access, ACCESSES),
    LIST(K, exchanges, nexchanges, tilec_report_exchange, EXCHANGES), LIST(K, loops, nloops, tilec_report_loop, LOOPS),
    LIST(K, waits, nwaits, tilec_report_wait, WAITS), LIST(K, lines, nlines, tilec_report_line, LINES),
    LIST(K, params, nparams, tilec_report_param, PARAMS), NAMES(K, grid, ngrid),
    {"requires", TEXTS, offsetof(K, requires_), offsetof(K, nrequires), 0, NULL},
    {"outside", STRUCT, offsetof(K, outside), 0, 0, WORK},
    LIST(K, mix, nmix, tilec_report_mix, MIX), F(mix_from, TEXT), LIST(K, roofs, nroofs, tilec_report_roof, ROOFS),
    LIST(K, hints, nhints, tilec_report_hint, HINTS), F(main_loop, INT), F(unrolled, REAL), F(assumed_trips, U32), F(cycles, REAL),
    F(intensity, REAL), F(ridge, REAL), F(length, U32), F(words, U32), F(registers_estimated, INT),
    F(registers_limit, INT), F(registers_limit_why, TEXT), F(offsets_not_kept, U32), END
#undef F
};
#undef K

static const Field MESSAGES[] = {
#define F(name, form) FIELD(tilec_report_message, name, form)
    POSITION(tilec_report_message), F(severity, TEXT), F(id, TEXT), F(text, TEXT), END
#undef F
};

static const Field REPORT[] = {
    FIELD(tilec_report, target, TEXT), LIST(tilec_report, kernels, nkernels, tilec_report_kernel, KERNEL),
    LIST(tilec_report, messages, nmessages, tilec_report_message, MESSAGES), END
};
/* clang-format on */

/* ---- values ---- */

static void put_text(TlSbuf *out, const char *text)
{
    tl_put_json(out, text ? text : "");
}

static void put_position(ExplainJson *j, const tilec_report_position *p)
{
    tl_sbuf_puts(j->out, "\"file\": ");
    put_text(j->out, p->file);
    tl_sbuf_putf(j->out, ", \"line\": %u, \"col\": %u", p->line, p->col);
}

static void put_fields(ExplainJson *j, const void *row, const Field *fields);

static void put_texts(ExplainJson *j, const char *const *texts, size_t n)
{
    tl_sbuf_puts(j->out, "[");
    for (size_t i = 0; i < n; i++) {
        tl_sbuf_puts(j->out, i ? ", " : "");
        put_text(j->out, texts[i]);
    }
    tl_sbuf_puts(j->out, "]");
}

static void put_rows(ExplainJson *j, const char *rows, size_t n, const Field *f)
{
    tl_sbuf_puts(j->out, "[");
    for (size_t i = 0; i < n; i++) {
        tl_sbuf_puts(j->out, i ? ", " : "");
        put_fields(j, rows + i * f->size, f->fields);
    }
    tl_sbuf_puts(j->out, "]");
}

/* Numbers without loss. */
static void put_field(ExplainJson *j, const char *row, const Field *f)
{
    const char *at = row + f->at;
    const void *const *list = (const void *const *)(const void *)at;
    size_t n = f->form == ROWS || f->form == TEXTS
                   ? *(const size_t *)(const void *)(row + f->count)
                   : 0;
    if (f->form != PLACE)
        tl_sbuf_putf(j->out, "\"%s\": ", f->name);
    switch (f->form) {
    case PLACE: put_position(j, (const tilec_report_position *)(const void *)at); return;
    case TEXT: put_text(j->out, *list); return;
    case TEXTS: put_texts(j, *list, n); return;
    case ROWS: put_rows(j, *list, n, f); return;
    case STRUCT: put_fields(j, at, f->fields); return;
    case INT: tl_sbuf_putf(j->out, "%d", *(const int *)(const void *)at); return;
    case U32: tl_sbuf_putf(j->out, "%u", *(const uint32_t *)(const void *)at); return;
    case I64: tl_sbuf_putf(j->out, "%lld", (long long)*(const int64_t *)(const void *)at); return;
    case U64:
    case SIZE:
        tl_sbuf_putf(j->out, "%llu", (unsigned long long)*(const uint64_t *)(const void *)at);
        return;
    case REAL: tl_sbuf_putf(j->out, "%s", TL_NUMBER("%.10g", *(const double *)(const void *)at));
    }
}

static void put_fields(ExplainJson *j, const void *row, const Field *fields)
{
    tl_sbuf_puts(j->out, "{");
    for (const Field *f = fields; f->name; f++) {
        tl_sbuf_puts(j->out, f == fields ? "" : ", ");
        put_field(j, row, f);
    }
    tl_sbuf_puts(j->out, "}");
}

/* ---- rates ---- */

/* What the tuning model takes the target for. */
static void put_rates(ExplainJson *j, const char *target)
{
    const tl_gpu *r = tl_gpu_find(target);
    if (!r) {
        tl_sbuf_puts(j->out, "null");
        return;
    }
    tl_sbuf_putf(j->out,
                 "{\"sms\": %d, \"ghz\": %s, \"memory\": %s, \"cache\": %s, "
                 "\"matrix\": {\"8\": %s, \"16\": %s, \"32\": %s, \"64\": %s}, "
                 "\"fma\": %s, \"slots\": %d}",
                 r->sms, TL_NUMBER("%g", r->ghz), TL_NUMBER("%g", r->memory),
                 TL_NUMBER("%g", r->cache), TL_NUMBER("%g", r->matrix8),
                 TL_NUMBER("%g", r->matrix16), TL_NUMBER("%g", r->matrix32),
                 TL_NUMBER("%g", r->matrix64), TL_NUMBER("%g", r->fma),
                 r->schedulers);
}

/* ---- the document ---- */

void explain_json_begin(ExplainJson *j, TlArena *arena, TlSbuf *out, const char *input,
                        const char *grid)
{
    *j = (ExplainJson){.out = out, .arena = arena};
    tl_sbuf_init(&j->sources, arena);
    tl_sbuf_puts(out, "{\"version\": 1, \"tilec\": ");
    put_text(out, tilec_version());
    tl_sbuf_puts(out, ", \"input\": ");
    put_text(out, input);
    tl_sbuf_puts(out, ", \"grid\": ");
    put_text(out, grid);
    tl_sbuf_puts(out, ", \"kinds\": {");
    for (int i = 0; i < TL_EXCHANGE_COUNT; i++) {
        tl_sbuf_puts(out, i ? ", " : "");
        put_text(out, tl_exchange_kind_name((TlExchangeKind)i));
        tl_sbuf_puts(out, ": ");
        put_text(out, tl_exchange_kind_words((TlExchangeKind)i));
    }
    tl_sbuf_puts(out, "}, \"targets\": [");
}

static bool is_new(ExplainJson *j, const char *path)
{
    for (uint32_t i = 0; i < j->paths.len; i++)
        if (strcmp(j->paths.data[i], path) == 0)
            return false;
    tl_vec_push(j->arena, &j->paths, tl_strndup(j->arena, path, strlen(path)));
    return true;
}

static void add_sources(ExplainJson *j, const tilec_report *report)
{
    for (size_t i = 0; i < report->nsources; i++) {
        const tilec_report_source *s = &report->sources[i];
        if (!is_new(j, s->path))
            continue;
        tl_sbuf_puts(&j->sources, j->paths.len > 1 ? ",\n {\"path\": " : "\n {\"path\": ");
        put_text(&j->sources, s->path);
        tl_sbuf_puts(&j->sources, ", \"text\": ");
        put_text(&j->sources, s->text);
        tl_sbuf_puts(&j->sources, "}");
    }
}

/* {"text": ..., "shapes": {"A": [128, 64]}} */
static void put_counted(ExplainJson *j, const RunCounted *counted)
{
    tl_sbuf_puts(j->out, "{\"text\": ");
    put_text(j->out, counted->text);
    tl_sbuf_puts(j->out, ", \"shapes\": {");
    for (size_t i = 0; i < counted->nshapes; i++) {
        const RunShape *s = &counted->shapes[i];
        tl_sbuf_puts(j->out, i ? ", " : "");
        put_text(j->out, s->name);
        for (int d = 0; d < s->rank; d++)
            tl_sbuf_putf(j->out, "%s%lld", d ? ", " : ": [", (long long)s->extent[d]);
        tl_sbuf_puts(j->out, "]");
    }
    tl_sbuf_puts(j->out, "}}");
}

void explain_json_target(ExplainJson *j, const tilec_report *report, const RunCounted *counted,
                         const ExplainLaunch *launch)
{
    const Field *f = REPORT;
    tl_sbuf_puts(j->out, j->ntargets++ ? ",\n {" : "\n {");
    for (; f->name; f++) {
        put_field(j, (const char *)report, f);
        tl_sbuf_puts(j->out, ", ");
    }
    tl_sbuf_puts(j->out, "\"rates\": ");
    put_rates(j, report->target);
    tl_sbuf_puts(j->out, ", \"counted\": ");
    if (counted->shapes)
        put_counted(j, counted);
    else
        tl_sbuf_puts(j->out, "null");
    tl_sbuf_puts(j->out, ", \"launch\": ");
    explain_launch_json(j->out, launch);
    tl_sbuf_puts(j->out, "}");
    add_sources(j, report);
}

void explain_json_end(ExplainJson *j)
{
    tl_sbuf_puts(j->out, "],\n\"sources\": [");
    if (j->sources.text)
        tl_sbuf_put(j->out, j->sources.text, j->sources.len);
    tl_sbuf_puts(j->out, "]}\n");
}
