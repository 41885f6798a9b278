/* Diagnostics: what is wrong with the user's program. Rows are in diags.def; texts are collected,
 * put in source order and rendered (text with caret lines, JSON, SARIF) when the phase ends.
 * At most TL_DIAG_MAX errors are kept, those nearest to the start of the source; the rest are
 * counted. */
#ifndef TL_DIAG_H
#define TL_DIAG_H
#include "ir/support/arena.h"

/* A position: file is an index into the source table, line and column count from 1, columns in
 * bytes. line 0: no position. len: bytes to underline, at least 1. */
typedef struct TlLoc {
    uint32_t file, line, col, len;
} TlLoc;

typedef struct TlSource {
    const char *path; /* as shown to the user */
    const char *text; /* NUL-terminated, size bytes; may hold NUL bytes */
    size_t size;
    TL_VEC(uint32_t) lines; /* where they begin; made when first wanted (tl_source_text) */
} TlSource;

typedef enum TlSeverity { TL_NOTE, TL_WARNING, TL_ERROR } TlSeverity;

typedef enum TlDiagId {
#define DIAG(id, severity, text) TL_##id,
#include "ir/support/diags.def"
    TL_DIAG_COUNT
} TlDiagId;

enum { TL_DIAG_MAX = 20 };

typedef struct TlDiag {
    TlDiagId id;
    TlSeverity severity;
    TlLoc loc;
    const char *text;
    const char *label; /* text after the caret line's underline; may be NULL */
    const char *fixit; /* replacement for the underlined text; may be NULL */
    uint32_t order;
    TL_VEC(struct TlDiag) notes;
} TlDiag;

typedef struct TlDiags {
    TlArena *arena;
    TL_VEC(TlSource) sources;
    TL_VEC(TlDiag) rows;
    uint32_t errors, warnings;
    TlDiag *unseen; /* what callers of tl_diag get for rows that are not kept */
    bool werror;    /* all warnings are errors, but for those of `level` */
    uint8_t level[TL_DIAG_COUNT]; /* of warnings: a TlWarningLevel */
} TlDiags;

typedef enum TlWarningLevel { TL_WARNING_AS_ALL, TL_WARNING_OFF, TL_WARNING_ERROR } TlWarningLevel;

void tl_diags_init(TlDiags *d, TlArena *arena);
/* What follows -W on a command line: "NAME", "no-NAME", "error", "error=NAME", "all"; later ones go
 * before earlier ones. False: no warning has that name. */
bool tl_diags_option(TlDiags *d, const char *option);
/* its index */
uint32_t tl_diags_source(TlDiags *d, const char *path, const char *text, size_t size);
/* Adds a row; the arguments fit the row's text. Returns the row, for label, fixit and notes (valid
 * until the next). */
TlDiag *tl_diag(TlDiags *d, TlLoc loc, TlDiagId id, ...);
void tl_diag_note(TlDiags *d, TlDiag *row, TlLoc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void tl_diags_sort(TlDiags *d); /* file, line, column, then order of arrival; duplicates removed */

typedef enum TlDiagFormat { TL_DIAG_TEXT, TL_DIAG_JSON, TL_DIAG_SARIF } TlDiagFormat;
/* sorts, then renders all */
void tl_diags_render(TlDiags *d, TlDiagFormat format, bool color, TlSbuf *out);
/* A text as a JSON string, quotes included; what is no UTF-8 becomes U+FFFD. */
void tl_put_json(TlSbuf *out, const char *text);
const char *tl_diag_code(TlDiagId id);    /* "E0231"; a warning's name */
const char *tl_diag_summary(TlDiagId id); /* the row's text, with its %s */
const char *tl_warning_names(TlArena *arena); /* "left-out, unused": each once */
#endif
