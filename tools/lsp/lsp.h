/* lsp.h: what the parts of the language server share (README.md). */
#ifndef TL_LSP_H
#define TL_LSP_H
#include "codegen/include/tilec.h"
#include "frontend/name_facts.h"
#include <jansson.h>
#include <stdio.h>

/* Error codes of JSON-RPC and of the protocol. */
enum {
    LSP_PARSE_ERROR = -32700,
    LSP_INVALID_REQUEST = -32600,
    LSP_METHOD_NOT_FOUND = -32601,
    LSP_INVALID_PARAMS = -32602,
    LSP_INTERNAL_ERROR = -32603,
    LSP_NOT_INITIALIZED = -32002,
    LSP_CANCELLED = -32800,
    LSP_REQUEST_FAILED = -32803
};

/* An open document, and what its last check found. */
typedef struct Document {
    struct Document *next;
    char *uri, *path; /* path: as the front end knows it */
    char *text;
    size_t size;
    double version;
    bool dirty;   /* it, or what it imports, changed since the last check */
    bool news;    /* the client does not know what the last check said */
    bool checked; /* what follows holds */
    TlCtx ctx;
    uint32_t source;
    TlProgram *program;
    TlFacts facts;
    tilec_output *cost; /* the document compiled for the server's target; NULL: not yet */
} Document;

typedef struct Server {
    FILE *out;
    Document *documents;
    const char **include_dirs;
    size_t ninclude_dirs;
    const char *target; /* whose costs are shown; NULL: none */
    const tilec_const *consts;
    size_t nconsts;
    bool initialized, shut_down, exiting, broken; /* broken: output is not read any more */
    const char *refusal; /* why the request being worked on is refused; NULL: it is not */
    char *library; /* folder with the library's modules as files; NULL: none made yet */
} Server;

/* ---- lsp_rpc.c: messages ---- */
typedef struct Reader {
    int fd;
    char *data;
    size_t len, cap;
    bool ended;
} Reader;
/* The next message's text, to be freed; NULL: there is none yet (with wait: the input ended).
 * A header that is none is passed over. */
char *lsp_read(Reader *r, bool wait);
void lsp_send(Server *s, json_t *message); /* takes it */
void lsp_reply(Server *s, const json_t *id, json_t *result);
void lsp_fail(Server *s, const json_t *id, int code, const char *text);
void lsp_notify(Server *s, const char *method, json_t *params);

/* ---- lsp_text.c: places and names of texts ---- */
/* Lines and UTF-16 units from 0, to a byte of the text, and back; what lies outside is moved to the
 * nearest place inside. */
size_t lsp_offset(const char *text, size_t size, double line, double character);
void lsp_place(const char *text, size_t size, size_t offset, uint32_t *line, uint32_t *character);
/* A position of the compiler: line from 1, column in bytes from 1. */
TlLoc lsp_loc(const char *text, size_t offset);
size_t lsp_loc_offset(const char *text, size_t size, TlLoc loc);
/* Members of objects. Bytes of a text that are no UTF-8 are replaced. */
void lsp_put_text(json_t *object, const char *name, const char *text);
void lsp_put_number(json_t *object, const char *name, double number); /* a whole one */
void lsp_put_true(json_t *object, const char *name);
json_t *lsp_put_object(json_t *object, const char *name);  /* a new one; NULL: no memory */
double lsp_number(const json_t *object, const char *name); /* 0: there is none */
json_t *lsp_position(const char *text, size_t size, size_t offset);
json_t *lsp_range(const char *text, size_t size, size_t from, size_t to);
json_t *lsp_loc_range(const char *text, size_t size, TlLoc loc);
char *lsp_uri_path(const char *uri); /* of a file: URI; others as they are. To be freed */
char *lsp_path_uri(const char *path);
bool lsp_is_word(char c);

/* ---- lsp_check.c ---- */
Document *lsp_document(Server *s, const char *uri);
/* A document whose text was taken over; NULL: no memory. */
Document *lsp_open(Server *s, const char *uri, const char *text, double version);
void lsp_close(Server *s, const char *uri);
void lsp_set_text(Document *d, const char *text);
void lsp_check(Server *s, Document *d);   /* unless that was done */
void lsp_publish(Server *s, Document *d); /* unless the client knows */
json_t *lsp_code_actions(Server *s, Document *d, const json_t *params);
/* The URI of a source of the document's program, to be freed; the library's come as files. */
char *lsp_source_uri(Server *s, Document *d, uint32_t source);
void lsp_remove_library(Server *s);

/* ---- lsp_scan.c ---- */
typedef enum LspTokenKind {
    LSP_END,
    LSP_WORD,
    LSP_NUMBER,
    LSP_STRING,
    LSP_COMMENT,
    LSP_SIGN /* one character */
} LspTokenKind;
typedef struct LspToken {
    LspTokenKind kind;
    size_t from, to; /* bytes */
} LspToken;
/* The token at a byte or behind the blanks there. */
LspToken lsp_token(const char *text, size_t size, size_t at);
bool lsp_token_is(const char *text, LspToken t, const char *word);

/* ---- lsp_names.c: what the parts that answer share ---- */
/* The name or operator at the parameters' position, after a check; NULL. */
const TlFact *lsp_fact_at(Server *s, Document *d, const json_t *params);
const TlItem *lsp_item_at(const Document *d, size_t offset);
json_t *lsp_location(Server *s, Document *d, TlLoc loc); /* NULL: it has no file */
bool lsp_same_place(TlLoc a, TlLoc b);
int lsp_symbol_kind(TlItemKind kind);

/* ---- one request each: answers; NULL: there is none ---- */
json_t *lsp_hover(Server *s, Document *d, const json_t *params);
json_t *lsp_definition(Server *s, Document *d, const json_t *params);
json_t *lsp_references(Server *s, Document *d, const json_t *params);
json_t *lsp_highlight(Server *s, Document *d, const json_t *params);
json_t *lsp_symbols(Server *s, Document *d, const json_t *params);
json_t *lsp_folds(Server *s, Document *d, const json_t *params);
json_t *lsp_workspace_symbols(Server *s, const json_t *params);
json_t *lsp_signature(Server *s, Document *d, const json_t *params);
json_t *lsp_can_rename(Server *s, Document *d, const json_t *params);
json_t *lsp_rename(Server *s, Document *d, const json_t *params);
json_t *lsp_token_legend(void);
json_t *lsp_tokens(Server *s, Document *d, const json_t *params); /* all, or those of a range */
json_t *lsp_inlays(Server *s, Document *d, const json_t *params);
/* lsp_cost.c: hints on what the lines become on the target. */
void lsp_add_costs(Server *s, Document *d, double first, double last, json_t *list);
json_t *lsp_complete(Server *s, Document *d, const json_t *params);
json_t *lsp_format(Server *s, Document *d, const json_t *params);
/* The byte that the parameters' position names. */
size_t lsp_params_offset(const Document *d, const json_t *params);
/* The text of a documentation comment and a head of code as Markdown. */
json_t *lsp_markdown(const char *code, const char *text);
#endif
