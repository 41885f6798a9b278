/* What the formatter's steps share. Each token knows the gap before it: the comments there, what
 * the author's line ends said, and what the steps decided.
 *
 * scan    tokens, comments, line ends
 * roles   what a token is where its spelling alone does not say it; spaces
 * breaks  where a line may go on in the next one, and at which cost
 * shape   statements and items: where lines start, how far they are indented
 * lines   lines too long are broken; the text is written */
#ifndef TL_FORMAT_IMPL_H
#define TL_FORMAT_IMPL_H
#include "frontend/format/format.h"
#include "frontend/parse.h"

typedef enum TlFmtRole {
    TL_FR_PLAIN,
    TL_FR_UNARY,   /* - + ! ~ before an operand */
    TL_FR_BINARY,  /* between two; an assignment too */
    TL_FR_POINTER, /* the * of a type */
    TL_FR_ANGLE,   /* < and > of tile<...> */
    TL_FR_CAST,    /* ( and ) of a cast */
    TL_FR_HEAD,    /* ( and ) behind if, for, while or a hint */
    TL_FR_BLOCK,   /* { and } of statements or fields */
    TL_FR_CHOICE   /* ? and : of a choice */
} TlFmtRole;

enum { TL_FMT_NONE = UINT32_MAX };

typedef struct TlFmtToken {
    uint32_t at, len;  /* in the source */
    uint32_t width;    /* in columns */
    uint32_t comments; /* the first comment of its gap, which ends at the next token's */
    uint32_t lead;     /* columns of the comments that stand before it in its line */
    uint32_t match;    /* of a bracket: the other one */
    uint32_t inside;   /* the innermost bracket that is open here */
    uint32_t flat;     /* the column behind it if the whole file were one line */
    uint32_t lines;    /* how many tokens up to it have a line end in their gap */
    uint32_t column;   /* behind it, as written */
    short kind;
    uint8_t role; /* a TlFmtRole */
    bool
        newline; /* in the source a line ends between it and what is before it, comments included */
    bool blank;  /* there, too: an empty line */
    bool broken; /* a line ends anywhere in its gap */
    bool spaced; /* a space separates it from the token before */
    bool keep;   /* a line ends here whether or not it is too long */
    bool line;   /* a statement, an item or a part of its head begins here */
    bool apart;  /* an empty line before it stays */
    bool wrap;   /* a line begins here, though no statement does */
    uint16_t indent, comment_indent; /* if `line`: levels, of itself and of comments before it */
    uint32_t cost;                   /* of beginning a line here; 0: never */
} TlFmtToken;

typedef struct TlFmtComment {
    uint32_t at, len;
    bool newline, blank; /* as of tokens */
    bool tall;           /* of more than one line */
} TlFmtComment;

typedef struct TlFmt {
    TlArena *arena;
    const char *text;
    size_t size;
    bool bom, crlf;
    TL_VEC(TlFmtToken) tokens; /* the last is the end of the file */
    TL_VEC(TlFmtComment) comments;
} TlFmt;

TlFmt tl_fmt_scan(TlCtx *ctx, uint32_t source);
void tl_fmt_roles(TlFmt *f);
void tl_fmt_breaks(TlFmt *f);
void tl_fmt_shape(TlFmt *f);
TlSbuf tl_fmt_lines(TlFmt *f);

bool tl_fmt_is_hint(const TlFmtToken *t);
bool tl_fmt_is_assignment(const TlFmtToken *t);
/* The parenthesis of an item's parameters, when it is a function or kernel; TL_FMT_NONE. */
uint32_t tl_fmt_params(const TlFmt *f, uint32_t item);
static inline uint32_t tl_fmt_comments_end(const TlFmt *f, uint32_t i)
{
    return i + 1 < f->tokens.len ? f->tokens.data[i + 1].comments : f->comments.len;
}
/* Columns of a text: characters of UTF-8. */
uint32_t tl_fmt_width(const char *text, size_t len);
#endif
