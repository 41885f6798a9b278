/* Diagnostics as the user sees them: text with the source line, JSON, SARIF 2.1.0. The text form
 * is
 *
 *     attn.tile:14:11: error[E0231]: dot: inner sizes differ, 64 and 32
 *        14 |     acc = dot(q, k, acc);
 *           |           ^~~ q is tile<f16, 128, 64>, k is tile<f16, 32, 128>
 *
 * Columns count bytes; a caret stands under what the terminal shows. So the line is walked
 * character by character: tabs become blanks up to the next stop, wide characters take two
 * cells, combining ones none, and what would move the cursor or turn the text around (control
 * characters, bidirectional marks, bytes that are no UTF-8) becomes `?`. Of a very long line,
 * only the part around the place is shown. */
#include "ir/support/diag.h"
#include <string.h>

static const char *const severity_names[] = {
    [TL_NOTE] = "note", [TL_WARNING] = "warning", [TL_ERROR] = "error"};

/* ---- source lines ---- */

typedef struct Line {
    const char *text;
    size_t length; /* without its line end */
} Line;

static const TlSource *source_of(const TlDiags *d, TlLoc loc)
{
    return loc.line && loc.file < d->sources.len ? &d->sources.data[loc.file] : NULL;
}

/* The line of a position; false when the text is not known. */
static bool source_line(const TlDiags *d, TlLoc loc, Line *out_line)
{
    const TlSource *s = source_of(d, loc);
    if (!s || !s->text || s->size == 0)
        return false;
    const char *line = s->text, *end = s->text + s->size;
    for (uint32_t i = 1; i < loc.line; i++) {
        line = memchr(line, '\n', (size_t)(end - line));
        if (!line++)
            return false;
    }
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    if (!stop)
        stop = end;
    if (stop > line && stop[-1] == '\r')
        stop--;
    *out_line = (Line){line, (size_t)(stop - line)};
    return true;
}

/* ---- characters ---- */

/* Reads one character of UTF-8; returns its length in bytes, 0 if it is not valid. */
static size_t decode(const char *text, size_t length, uint32_t *out_code)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0x80   ? 1
               : s[0] < 0xC2 ? 0
               : s[0] < 0xE0 ? 2
               : s[0] < 0xF0 ? 3
               : s[0] < 0xF5 ? 4
                             : 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (n == 0 || n > length)
        return 0;
    uint32_t code = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3F);
    }
    if (code < least[n] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return 0;
    *out_code = code;
    return n;
}

typedef struct Range {
    uint32_t first, last;
} Range;
/* the blocks that occur in comments and strings, not the whole of Unicode */
static const Range wide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
                             {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                             {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                             {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
static const Range zero[] = {
    {0x0300, 0x036F}, {0x200B, 0x200D}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
static const Range hidden[] = {{0, 0x1F},        {0x7F, 0x9F},     {0x200E, 0x200F},
                               {0x2028, 0x202E}, {0x2066, 0x2069}, {0xFEFF, 0xFEFF}};

static bool in_ranges(uint32_t code, const Range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}
#define IN(code, ranges) in_ranges((code), (ranges), sizeof(ranges) / sizeof *(ranges))

/* How one character of a line is shown: as `shown` or as itself, over so many cells. */
typedef struct Cell {
    size_t bytes, width;
    const char *shown; /* NULL: as it is */
} Cell;

enum { TAB = 4 };

static Cell cell_at(const char *text, size_t length, size_t column)
{
    static const char blanks[TAB + 1] = "    ";
    uint32_t code = 0;
    size_t n = decode(text, length, &code);
    if (n && code == '\t')
        return (Cell){1, TAB - column % TAB, blanks + column % TAB};
    if (n == 0 || IN(code, hidden))
        return (Cell){n ? n : 1, 1, "?"};
    return (Cell){n, IN(code, zero) ? 0 : IN(code, wide) ? 2 : 1, NULL};
}

/* ---- text ---- */

typedef struct Style {
    const char *bold, *severity[3], *caret, *reset;
} Style;
static const Style plain = {"", {"", "", ""}, "", ""};
static const Style colored = {
    "\033[1m", {"\033[1;36m", "\033[1;35m", "\033[1;31m"}, "\033[1;32m", "\033[0m"};

static void put_times(TlSbuf *out, char c, size_t n)
{
    while (n--)
        tl_sbuf_put(out, &c, 1);
}

/* Text of unknown origin, on one line: whatever could move the cursor becomes `?`. */
static void put_safe(TlSbuf *out, const char *text)
{
    for (size_t length = strlen(text); length;) {
        Cell c = cell_at(text, length, 0);
        if (c.shown)
            tl_sbuf_puts(out, c.shown);
        else
            tl_sbuf_put(out, text, c.bytes);
        text += c.bytes;
        length -= c.bytes;
    }
}

/* The part of a line that is shown, and the bytes in it that are underlined. */
typedef struct Window {
    size_t begin, end, mark, mark_end;
} Window;

static bool inside_character(const Line *line, size_t at)
{
    return at < line->length && ((unsigned char)line->text[at] & 0xC0) == 0x80;
}

static Window window_of(const Line *line, TlLoc loc)
{
    enum { BEFORE = 100, AFTER = 100 };
    size_t col = loc.col ? loc.col - 1 : 0, len = loc.len ? loc.len : 1;
    Window w;
    w.mark = col < line->length ? col : line->length;
    w.mark_end = len < line->length - w.mark ? w.mark + len : line->length;
    w.begin = line->length > BEFORE + AFTER && w.mark > BEFORE ? w.mark - BEFORE : 0;
    w.end = line->length - w.begin > BEFORE + AFTER ? w.begin + BEFORE + AFTER : line->length;
    for (int i = 0; i < 3 && inside_character(line, w.begin); i++)
        w.begin++;
    for (int i = 0; i < 3 && inside_character(line, w.end); i++)
        w.end++;
    if (w.mark_end > w.end)
        w.mark_end = w.end;
    return w;
}

/* Writes the line itself; returns the first and last cell of the underline. */
static void put_line(TlSbuf *out, const Line *line, const Window *w, size_t *out_caret,
                     size_t *out_cells)
{
    size_t column = 0, i = w->begin;
    *out_caret = *out_cells = 0;
    if (w->begin) {
        tl_sbuf_puts(out, "...");
        column = 3;
    }
    while (i < w->end) {
        Cell c = cell_at(line->text + i, line->length - i, column);
        if (c.shown)
            tl_sbuf_puts(out, c.shown);
        else
            tl_sbuf_put(out, line->text + i, c.bytes);
        if (i < w->mark)
            *out_caret = column + c.width;
        if (i >= w->mark && i < w->mark_end)
            *out_cells += c.width;
        column += c.width;
        i += c.bytes;
    }
    if (w->mark == w->begin)
        *out_caret = w->begin ? 3 : 0;
    if (w->end < line->length)
        tl_sbuf_puts(out, "...");
    tl_sbuf_puts(out, "\n");
}

static void render_snippet(TlSbuf *out, const TlDiags *d, const TlDiag *row, const Style *style)
{
    Line line;
    size_t caret, cells;
    if (!source_line(d, row->loc, &line))
        return;
    Window w = window_of(&line, row->loc);
    tl_sbuf_putf(out, "%5u | ", row->loc.line);
    put_line(out, &line, &w, &caret, &cells);
    tl_sbuf_puts(out, "      | ");
    put_times(out, ' ', caret);
    tl_sbuf_putf(out, "%s^", style->caret);
    if (cells)
        put_times(out, '~', cells - 1);
    if (row->label) {
        tl_sbuf_puts(out, " ");
        put_safe(out, row->label);
    }
    tl_sbuf_putf(out, "%s\n", style->reset);
    if (!row->fixit)
        return;
    tl_sbuf_puts(out, "      | ");
    put_times(out, ' ', caret);
    put_safe(out, row->fixit);
    tl_sbuf_puts(out, "\n");
}

static void render_row(TlSbuf *out, const TlDiags *d, const TlDiag *row, const Style *style)
{
    const TlSource *s = source_of(d, row->loc);
    tl_sbuf_puts(out, style->bold);
    if (s) {
        put_safe(out, s->path);
        tl_sbuf_putf(out, ":%u:%u: ", row->loc.line, row->loc.col);
    }
    tl_sbuf_putf(out, "%s%s", style->severity[row->severity], severity_names[row->severity]);
    if (row->severity != TL_NOTE)
        tl_sbuf_putf(out, "[%s]", tl_diag_code(row->id));
    tl_sbuf_putf(out, ":%s%s ", style->reset, style->bold);
    put_safe(out, row->text);
    tl_sbuf_putf(out, "%s\n", style->reset);
    render_snippet(out, d, row, style);
    for (uint32_t i = 0; i < row->notes.len; i++)
        render_row(out, d, (const TlDiag *)row->notes.data + i, style);
}

static void render_text(TlSbuf *out, const TlDiags *d, const Style *style)
{
    for (uint32_t i = 0; i < d->rows.len; i++)
        render_row(out, d, &d->rows.data[i], style);
    if (d->errors > TL_DIAG_MAX)
        tl_sbuf_putf(out, "%u more error%s not shown\n", d->errors - TL_DIAG_MAX,
                     d->errors - TL_DIAG_MAX == 1 ? " is" : "s are");
}

/* ---- JSON ---- */

/* A JSON string; bytes that are not UTF-8 become U+FFFD. */
static void put_json(TlSbuf *out, const char *text, size_t length)
{
    tl_sbuf_puts(out, "\"");
    while (length) {
        uint32_t code = 0;
        size_t n = decode(text, length, &code);
        if (n == 0)
            tl_sbuf_puts(out, "\\uFFFD");
        else if (code == '"' || code == '\\')
            tl_sbuf_putf(out, "\\%c", (int)code);
        else if (code < ' ' || code == 0x7F)
            tl_sbuf_putf(out, "\\u%04X", code);
        else
            tl_sbuf_put(out, text, n);
        text += n ? n : 1;
        length -= n ? n : 1;
    }
    tl_sbuf_puts(out, "\"");
}

void tl_put_json(TlSbuf *out, const char *text)
{
    put_json(out, text, strlen(text));
}

static void json_row(TlSbuf *out, const TlDiags *d, const TlDiag *row)
{
    const TlSource *s = source_of(d, row->loc);
    tl_sbuf_puts(out, "{");
    if (row->severity != TL_NOTE)
        tl_sbuf_putf(out, "\"id\": \"%s\", ", tl_diag_code(row->id));
    tl_sbuf_putf(out, "\"severity\": \"%s\", \"message\": ", severity_names[row->severity]);
    tl_put_json(out, row->text);
    if (s) {
        tl_sbuf_puts(out, ", \"file\": ");
        tl_put_json(out, s->path);
        tl_sbuf_putf(out, ", \"line\": %u, \"column\": %u, \"length\": %u", row->loc.line,
                     row->loc.col, row->loc.len ? row->loc.len : 1);
    }
    if (row->label) {
        tl_sbuf_puts(out, ", \"label\": ");
        tl_put_json(out, row->label);
    }
    if (row->fixit) {
        tl_sbuf_puts(out, ", \"fixit\": ");
        tl_put_json(out, row->fixit);
    }
    for (uint32_t i = 0; i < row->notes.len; i++) {
        tl_sbuf_puts(out, i ? ",\n     " : ", \"notes\": [\n     ");
        json_row(out, d, (const TlDiag *)row->notes.data + i);
    }
    tl_sbuf_puts(out, row->notes.len ? "]}" : "}");
}

static void render_json(TlSbuf *out, const TlDiags *d)
{
    tl_sbuf_puts(out, "{\"version\": 1, \"diagnostics\": [");
    for (uint32_t i = 0; i < d->rows.len; i++) {
        tl_sbuf_puts(out, i ? ",\n  " : "\n  ");
        json_row(out, d, &d->rows.data[i]);
    }
    tl_sbuf_putf(out, "],\n \"errors\": %u, \"warnings\": %u}\n", d->errors, d->warnings);
}

/* ---- SARIF ---- */

static void put_uri(TlSbuf *out, const char *path)
{
    tl_sbuf_puts(out, "\"");
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;
        bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    strchr("-._~/", c);
        if (safe)
            tl_sbuf_put(out, path, 1);
        else
            tl_sbuf_putf(out, "%%%02X", c);
    }
    tl_sbuf_puts(out, "\"");
}

/* Characters in the first `bytes` of a line: SARIF counts code points. */
static uint32_t code_points(const Line *line, size_t bytes)
{
    uint32_t n = 0;
    for (size_t i = 0; i < bytes && i < line->length; n++) {
        uint32_t code;
        size_t len = decode(line->text + i, line->length - i, &code);
        i += len ? len : 1;
    }
    return n + (uint32_t)(bytes > line->length ? bytes - line->length : 0);
}

static void sarif_region(TlSbuf *out, const TlDiags *d, TlLoc loc)
{
    Line line = {"", 0};
    uint32_t col = loc.col ? loc.col : 1, len = loc.len ? loc.len : 1;
    source_line(d, loc, &line);
    tl_sbuf_putf(out, "{\"startLine\": %u, \"startColumn\": %u, \"endColumn\": %u}", loc.line,
                 code_points(&line, col - 1) + 1, code_points(&line, col - 1 + len) + 1);
}

static void sarif_artifact(TlSbuf *out, const TlSource *s)
{
    tl_sbuf_puts(out, "\"artifactLocation\": {\"uri\": ");
    put_uri(out, s->path);
    tl_sbuf_puts(out, "}");
}

/* A location, with its text when it belongs to a note. */
static void sarif_location(TlSbuf *out, const TlDiags *d, const TlDiag *row, bool with_message)
{
    const TlSource *s = source_of(d, row->loc);
    tl_sbuf_puts(out, "{");
    if (s) {
        tl_sbuf_puts(out, "\"physicalLocation\": {");
        sarif_artifact(out, s);
        tl_sbuf_puts(out, ", \"region\": ");
        sarif_region(out, d, row->loc);
        tl_sbuf_puts(out, "}");
    }
    if (with_message) {
        tl_sbuf_putf(out, "%s\"message\": {\"text\": ", s ? ", " : "");
        tl_put_json(out, row->text);
        tl_sbuf_puts(out, "}");
    }
    tl_sbuf_puts(out, "}");
}

static void sarif_fix(TlSbuf *out, const TlDiags *d, const TlDiag *row)
{
    tl_sbuf_puts(out, ",\n    \"fixes\": [{\"artifactChanges\": [{");
    sarif_artifact(out, source_of(d, row->loc));
    tl_sbuf_puts(out, ", \"replacements\": [{\"deletedRegion\": ");
    sarif_region(out, d, row->loc);
    tl_sbuf_puts(out, ", \"insertedContent\": {\"text\": ");
    tl_put_json(out, row->fixit);
    tl_sbuf_puts(out, "}}]}]}]");
}

static void sarif_result(TlSbuf *out, const TlDiags *d, const TlDiag *row)
{
    tl_sbuf_putf(out, "   {\"ruleId\": \"%s\", \"level\": \"%s\", \"message\": {\"text\": ",
                 tl_diag_code(row->id), severity_names[row->severity]);
    tl_put_json(out,
                  row->label ? tl_format(d->arena, "%s (%s)", row->text, row->label) : row->text);
    tl_sbuf_puts(out, "}");
    if (source_of(d, row->loc)) {
        tl_sbuf_puts(out, ",\n    \"locations\": [");
        sarif_location(out, d, row, false);
        tl_sbuf_puts(out, "]");
    }
    for (uint32_t i = 0; i < row->notes.len; i++) {
        tl_sbuf_puts(out, i ? ",\n      " : ",\n    \"relatedLocations\": [\n      ");
        sarif_location(out, d, (const TlDiag *)row->notes.data + i, true);
    }
    if (row->notes.len)
        tl_sbuf_puts(out, "]");
    if (row->fixit && source_of(d, row->loc))
        sarif_fix(out, d, row);
    tl_sbuf_puts(out, "}");
}

static bool seen_before(const TlDiags *d, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (d->rows.data[j].id == d->rows.data[i].id)
            return true;
    return false;
}

static void render_sarif(TlSbuf *out, const TlDiags *d)
{
    bool first = true;
    tl_sbuf_puts(
        out,
        "{\"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\", \"version\": \"2.1.0\",\n"
        " \"runs\": [{\"tool\": {\"driver\": {\"name\": \"tilec\", \"rules\": [");
    for (uint32_t i = 0; i < d->rows.len; i++) {
        if (seen_before(d, i))
            continue;
        tl_sbuf_putf(out,
                     "%s\n   {\"id\": \"%s\", \"shortDescription\": {\"text\": ", first ? "" : ",",
                     tl_diag_code(d->rows.data[i].id));
        tl_put_json(out, tl_diag_summary(d->rows.data[i].id));
        tl_sbuf_puts(out, "}}");
        first = false;
    }
    tl_sbuf_puts(out, "]}},\n  \"columnKind\": \"unicodeCodePoints\",\n  \"results\": [");
    for (uint32_t i = 0; i < d->rows.len; i++) {
        tl_sbuf_puts(out, i ? ",\n" : "\n");
        sarif_result(out, d, &d->rows.data[i]);
    }
    tl_sbuf_puts(out, "]}]}\n");
}

void tl_diags_render(TlDiags *d, TlDiagFormat format, bool color, TlSbuf *out)
{
    tl_diags_sort(d);
    switch (format) {
    case TL_DIAG_TEXT: render_text(out, d, color ? &colored : &plain); break;
    case TL_DIAG_JSON: render_json(out, d); break;
    case TL_DIAG_SARIF: render_sarif(out, d); break;
    }
}
