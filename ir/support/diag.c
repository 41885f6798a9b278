/* Diagnostics: rows are collected by tl_diag, sorted and rendered once per phase. The text form is
 *
 *     attn.tile:14:11: error[E0231]: dot: inner sizes differ, 64 and 32
 *        14 |     acc = dot(q, k, acc);
 *           |           ^~~ q is tile<f16, 128, 64>, k is tile<f16, 32, 128>
 */
#include "ir/support/diag.h"
#include "ir/support/guard.h"
#include <stdio.h>
#include <string.h>

typedef struct DiagInfo {
    const char *code;
    TlSeverity severity;
    const char *text;
} DiagInfo;

static const DiagInfo infos[TL_DIAG_COUNT] = {
#define DIAG(id, severity, text) [TL_##id] = {#id, severity, text},
#include "ir/support/diags.def"
};

const char *tl_diag_code(TlDiagId id)
{
    TL_ASSERT((unsigned)id < TL_DIAG_COUNT, "diagnostic %d", (int)id);
    return infos[id].code;
}

void tl_diags_init(TlDiags *d, TlArena *arena)
{
    memset(d, 0, sizeof *d);
    d->arena = arena;
}

uint32_t tl_diags_source(TlDiags *d, const char *path, const char *text, size_t size)
{
    TlSource s = {.path = tl_strndup(d->arena, path, strlen(path)), .text = text, .size = size};
    tl_vec_push(d->arena, &d->sources, s);
    return d->sources.len - 1;
}

/* ---- collecting ---- */

static bool same_row(const TlDiag *a, const TlDiag *b)
{
    return a->id == b->id && a->loc.file == b->loc.file && a->loc.line == b->loc.line && a->loc.col == b->loc.col &&
           strcmp(a->text, b->text) == 0;
}

static bool already_there(const TlDiags *d, const TlDiag *row)
{
    for (uint32_t i = 0; i < d->rows.len; i++)
        if (same_row(&d->rows.data[i], row)) return true;
    return false;
}

/* Counts the row; true when it is to be kept. */
static bool admit(TlDiags *d, const TlDiag *row)
{
    if (already_there(d, row)) return false;
    if (row->severity == TL_ERROR) return d->errors++ < TL_DIAG_MAX;
    if (row->severity == TL_WARNING) d->warnings++;
    return true;
}

TlDiag *tl_diag(TlDiags *d, TlLoc loc, TlDiagId id, ...)
{
    TL_ASSERT((unsigned)id < TL_DIAG_COUNT, "diagnostic %d", (int)id);
    TlDiag row = {.id = id, .severity = infos[id].severity, .loc = loc, .order = d->rows.len};
    if (row.severity == TL_WARNING && d->werror) row.severity = TL_ERROR;
    va_list args;
    va_start(args, id);
    row.text = tl_vformat(d->arena, infos[id].text, args);
    va_end(args);
    if (!admit(d, &row)) { /* the caller may still add notes: to a row that nobody shows */
        TlDiag *unseen = TL_NEW(d->arena, TlDiag);
        *unseen = row;
        return unseen;
    }
    tl_vec_push(d->arena, &d->rows, row);
    return &d->rows.data[d->rows.len - 1];
}

void tl_diag_note(TlDiags *d, TlDiag *row, TlLoc loc, const char *format, ...)
{
    TlDiag note = {.severity = TL_NOTE, .loc = loc, .order = row->notes.len};
    va_list args;
    va_start(args, format);
    note.text = tl_vformat(d->arena, format, args);
    va_end(args);
    tl_vec_push(d->arena, &row->notes, note);
}

/* ---- order ---- */

static int compare(const TlDiag *a, const TlDiag *b)
{
    if (a->loc.file != b->loc.file) return a->loc.file < b->loc.file ? -1 : 1;
    if (a->loc.line != b->loc.line) return a->loc.line < b->loc.line ? -1 : 1;
    if (a->loc.col != b->loc.col) return a->loc.col < b->loc.col ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

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

/* ---- text ---- */

typedef struct Style {
    const char *bold, *severity[3], *caret, *reset;
} Style;
static const Style plain = {"", {"", "", ""}, "", ""};
static const Style colored = {"\033[1m", {"\033[1;36m", "\033[1;35m", "\033[1;31m"}, "\033[1;32m", "\033[0m"};
static const char *const severity_names[] = {[TL_NOTE] = "note", [TL_WARNING] = "warning", [TL_ERROR] = "error"};

/* The line of a position, without its end; false when the text is not known. */
static bool source_line(const TlDiags *d, TlLoc loc, const char **out_line, size_t *out_length)
{
    if (loc.line == 0 || loc.file >= d->sources.len) return false;
    const TlSource *s = &d->sources.data[loc.file];
    if (!s->text || s->size == 0) return false;
    const char *line = s->text, *end = s->text + s->size;
    for (uint32_t i = 1; i < loc.line; i++) {
        line = memchr(line, '\n', (size_t)(end - line));
        if (!line++) return false;
    }
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    if (!stop) stop = end;
    if (stop > line && stop[-1] == '\r') stop--;
    *out_line = line;
    *out_length = (size_t)(stop - line);
    return true;
}

static void put_printable(TlSbuf *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (((unsigned char)c < 32 && c != '\t') || c == 127) c = '?';
        tl_sbuf_put(out, &c, 1);
    }
}

/* The source line and the underline below it. Tabs are repeated so that the caret stands under its text. */
static void render_snippet(TlSbuf *out, const TlDiags *d, const TlDiag *row, const Style *style)
{
    const char *line;
    size_t length;
    if (!source_line(d, row->loc, &line, &length)) return;
    tl_sbuf_putf(out, "%5u | ", row->loc.line);
    put_printable(out, line, length);
    tl_sbuf_puts(out, "\n      | ");
    size_t col = row->loc.col ? row->loc.col - 1 : 0;
    if (col > length) col = length;
    for (size_t i = 0; i < col; i++) tl_sbuf_put(out, line[i] == '\t' ? "\t" : " ", 1);
    tl_sbuf_putf(out, "%s^", style->caret);
    size_t len = row->loc.len ? row->loc.len : 1;
    if (len > length - col) len = length - col; /* a range over several lines ends with the first */
    for (size_t i = 1; i < len; i++) tl_sbuf_put(out, "~", 1);
    if (row->label) tl_sbuf_putf(out, " %s", row->label);
    tl_sbuf_putf(out, "%s\n", style->reset);
    if (row->fixit) {
        tl_sbuf_puts(out, "      | ");
        for (size_t i = 0; i < col; i++) tl_sbuf_put(out, line[i] == '\t' ? "\t" : " ", 1);
        tl_sbuf_putf(out, "%s\n", row->fixit);
    }
}

static void render_row(TlSbuf *out, const TlDiags *d, const TlDiag *row, const Style *style)
{
    tl_sbuf_puts(out, style->bold);
    if (row->loc.file < d->sources.len && row->loc.line) {
        tl_sbuf_putf(out, "%s:%u:%u: ", d->sources.data[row->loc.file].path, row->loc.line, row->loc.col);
    }
    tl_sbuf_putf(out, "%s%s", style->severity[row->severity], severity_names[row->severity]);
    if (row->severity != TL_NOTE) tl_sbuf_putf(out, "[%s]", tl_diag_code(row->id));
    tl_sbuf_putf(out, ":%s%s %s%s\n", style->reset, style->bold, row->text, style->reset);
    render_snippet(out, d, row, style);
    for (uint32_t i = 0; i < row->notes.len; i++)
        render_row(out, d, (const TlDiag *)row->notes.data + i, style);
}

static void render_text(TlSbuf *out, const TlDiags *d, const Style *style)
{
    for (uint32_t i = 0; i < d->rows.len; i++) render_row(out, d, &d->rows.data[i], style);
    if (d->errors > TL_DIAG_MAX)
        tl_sbuf_putf(out, "%u more errors are not shown\n", d->errors - TL_DIAG_MAX);
}

void tl_diags_render(TlDiags *d, TlDiagFormat format, bool color, TlSbuf *out)
{
    (void)format;
    tl_diags_sort(d);
    render_text(out, d, color ? &colored : &plain);
}
