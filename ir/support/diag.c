/* Diagnostics: rows are collected by tl_diag and put in order once per phase; diag_render.c
 * shows them. */
#include "ir/support/diag.h"
#include "ir/support/guard.h"
#include <string.h>

typedef struct DiagInfo {
    const char *code;
    TlSeverity severity;
    const char *text;
} DiagInfo;

static const DiagInfo infos[TL_DIAG_COUNT] = {
#define DIAG(id, severity, text) [TL_##id] = {#id, severity, text},
#define WARN(id, name, text) [TL_##id] = {name, TL_WARNING, text},
#include "ir/support/diags.def"
};

const char *tl_diag_code(TlDiagId id)
{
    TL_ASSERT((unsigned)id < TL_DIAG_COUNT, "diagnostic %d", (int)id);
    return infos[id].code;
}

const char *tl_diag_summary(TlDiagId id)
{
    TL_ASSERT((unsigned)id < TL_DIAG_COUNT, "diagnostic %d", (int)id);
    return infos[id].text;
}

void tl_diags_init(TlDiags *d, TlArena *arena)
{
    memset(d, 0, sizeof *d);
    d->arena = arena;
}

uint32_t tl_diags_source(TlDiags *d, const char *path, const char *text, size_t size)
{
    TL_ASSERT(path, "a source without a path");
    TlSource s = {.path = tl_strndup(d->arena, path, strlen(path)), .text = text, .size = size};
    tl_vec_push(d->arena, &d->sources, s);
    return d->sources.len - 1;
}

/* ---- warnings by name ---- */

static bool set_level(TlDiags *d, const char *name, TlWarningLevel level)
{
    bool known = false;
    for (int i = 0; i < TL_DIAG_COUNT; i++) {
        if (infos[i].severity != TL_WARNING || strcmp(infos[i].code, name) != 0)
            continue;
        d->level[i] = (uint8_t)level;
        known = true;
    }
    return known;
}

bool tl_diags_option(TlDiags *d, const char *option)
{
    if (strcmp(option, "all") == 0)
        return true;
    if (strcmp(option, "error") == 0)
        return d->werror = true;
    if (strncmp(option, "error=", 6) == 0)
        return set_level(d, option + 6, TL_WARNING_ERROR);
    if (strncmp(option, "no-", 3) == 0)
        return set_level(d, option + 3, TL_WARNING_OFF);
    return set_level(d, option, TL_WARNING_AS_ALL);
}

const char *tl_warning_names(TlArena *arena)
{
    const char *names = "";
    for (int i = 0; i < TL_DIAG_COUNT; i++) {
        bool again = infos[i].severity != TL_WARNING;
        for (int k = 0; k < i && !again; k++)
            again = infos[k].severity == TL_WARNING && strcmp(infos[k].code, infos[i].code) == 0;
        if (!again)
            names = tl_format(arena, "%s%s%s", names, *names ? ", " : "", infos[i].code);
    }
    return names;
}

/* ---- collecting ---- */

enum { MAX_WARNINGS = 100 };

static bool same_row(const TlDiag *a, const TlDiag *b)
{
    return a->id == b->id && a->loc.file == b->loc.file && a->loc.line == b->loc.line &&
           a->loc.col == b->loc.col && strcmp(a->text, b->text) == 0;
}

static bool already_there(const TlDiags *d, const TlDiag *row)
{
    for (uint32_t i = 0; i < d->rows.len; i++)
        if (same_row(&d->rows.data[i], row)) return true;
    return false;
}

static int compare(const TlDiag *a, const TlDiag *b)
{
    if (a->loc.file != b->loc.file) return a->loc.file < b->loc.file ? -1 : 1;
    if (a->loc.line != b->loc.line) return a->loc.line < b->loc.line ? -1 : 1;
    if (a->loc.col != b->loc.col) return a->loc.col < b->loc.col ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* The kept error that is last in the source. */
static TlDiag *last_error(TlDiags *d)
{
    TlDiag *last = NULL;
    for (uint32_t i = 0; i < d->rows.len; i++) {
        TlDiag *row = &d->rows.data[i];
        if (row->severity == TL_ERROR && (!last || compare(row, last) > 0)) last = row;
    }
    return last;
}

/* Errors that will not be shown should cost little: no text is made for them. */
static bool too_late(TlDiags *d, const TlDiag *row)
{
    if (row->severity == TL_WARNING) return d->warnings >= MAX_WARNINGS;
    if (row->severity != TL_ERROR || d->errors < TL_DIAG_MAX) return false;
    const TlDiag *last = last_error(d);
    return last && compare(row, last) > 0;
}

/* Room for the row: a new entry, or, since the errors nearest to the start of the source are kept,
 * the entry of a later one. */
static TlDiag *room_for(TlDiags *d, const TlDiag *row)
{
    bool full = row->severity == TL_ERROR && d->errors >= TL_DIAG_MAX;
    if (already_there(d, row)) return NULL;
    if (row->severity == TL_ERROR) d->errors++;
    if (row->severity == TL_WARNING) d->warnings++;
    if (full) return last_error(d);
    tl_vec_push(d->arena, &d->rows, *row);
    return &d->rows.data[d->rows.len - 1];
}

static TlDiag *unseen(TlDiags *d)
{
    if (!d->unseen) d->unseen = TL_NEW(d->arena, TlDiag);
    return d->unseen;
}

TlDiag *tl_diag(TlDiags *d, TlLoc loc, TlDiagId id, ...)
{
    TL_ASSERT((unsigned)id < TL_DIAG_COUNT, "diagnostic %d", (int)id);
    TlDiag row = {.id = id, .severity = infos[id].severity, .loc = loc};
    row.order = d->errors + d->warnings;
    if (row.severity == TL_WARNING && d->level[id] == TL_WARNING_OFF) return unseen(d);
    if (row.severity == TL_WARNING && (d->werror || d->level[id] == TL_WARNING_ERROR))
        row.severity = TL_ERROR;
    if (too_late(d, &row)) {
        *(row.severity == TL_ERROR ? &d->errors : &d->warnings) += 1;
        return unseen(d);
    }
    va_list args;
    va_start(args, id);
    row.text = tl_vformat(d->arena, infos[id].text, args);
    va_end(args);
    TlDiag *room = room_for(d, &row);
    if (!room) return unseen(d);
    *room = row;
    return room;
}

void tl_diag_note(TlDiags *d, TlDiag *row, TlLoc loc, const char *format, ...)
{
    TL_ASSERT(row, "a note of no diagnostic");
    if (row == d->unseen) return;
    TlDiag note = {.severity = TL_NOTE, .loc = loc, .order = row->notes.len};
    va_list args;
    va_start(args, format);
    note.text = tl_vformat(d->arena, format, args);
    va_end(args);
    tl_vec_push(d->arena, &row->notes, note);
}

/* ---- order ---- */

void tl_diags_sort(TlDiags *d)
{
    TlDiag *rows = d->rows.data;
    for (uint32_t i = 1; i < d->rows.len; i++) { /* few rows, mostly in order */
        TlDiag row = rows[i];
        uint32_t j = i;
        for (; j > 0 && compare(&row, &rows[j - 1]) < 0; j--) rows[j] = rows[j - 1];
        rows[j] = row;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->rows.len; i++)
        if (n == 0 || !same_row(&rows[i], &rows[n - 1])) rows[n++] = rows[i];
    d->rows.len = n;
}
