/* lsp_server.c: tilec lsp: the loop of a language server. One thread handles message after
 * message. Before it answers one, it reads all that have arrived, so that a request cancelled
 * meanwhile is not worked on, and a text that changes with each key is checked when typing pauses
 * or when an answer needs it. */
#include "codegen/include/tilec.h"
#include "codegen/target/worker.h"
#include "tools/lsp/lsp.h"
#include "tools/tilec_options.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Queue {
    json_t **data;
    size_t len, cap;
} Queue;

/* ---- documents ---- */

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static Document *document_of(Server *s, const json_t *params)
{
    return lsp_document(s, text_of(json_object_get(params, "textDocument"), "uri"));
}

static void opened(Server *s, const json_t *params)
{
    const json_t *d = json_object_get(params, "textDocument");
    const char *uri = text_of(d, "uri"), *text = text_of(d, "text");
    if (uri && text)
        lsp_open(s, uri, text, lsp_number(d, "version"));
}

/* Others may import the document. */
static void make_dirty(Server *s)
{
    for (Document *d = s->documents; d; d = d->next)
        d->dirty = true;
}

/* The whole text, as was agreed on, or parts of it. */
static void change(Document *d, const json_t *one)
{
    const json_t *range = json_object_get(one, "range");
    const json_t *start = json_object_get(range, "start"), *end = json_object_get(range, "end");
    const char *text = text_of(one, "text");
    if (!text || !range) {
        if (text)
            lsp_set_text(d, text);
        return;
    }
    size_t from =
        lsp_offset(d->text, d->size, lsp_number(start, "line"), lsp_number(start, "character"));
    size_t to = lsp_offset(d->text, d->size, lsp_number(end, "line"), lsp_number(end, "character"));
    to = to < from ? from : to;
    char *joined = malloc(from + strlen(text) + (d->size - to) + 1);
    if (!joined)
        return;
    sprintf(joined, "%.*s%s%s", (int)from, d->text, text, d->text + to);
    lsp_set_text(d, joined);
    free(joined);
}

static void changed(Server *s, const json_t *params)
{
    Document *d = document_of(s, params);
    const json_t *changes = json_object_get(params, "contentChanges");
    if (!d)
        return;
    for (size_t i = 0; i < json_array_size(changes); i++)
        change(d, json_array_get(changes, i));
    d->version = lsp_number(json_object_get(params, "textDocument"), "version");
    make_dirty(s);
}

static void saved(Server *s, const json_t *params)
{
    (void)params;
    make_dirty(s);
}

static void closed(Server *s, const json_t *params)
{
    Document *d = document_of(s, params);
    if (!d)
        return;
    json_t *none = json_object();
    lsp_put_text(none, "uri", d->uri);
    json_object_set_new(none, "diagnostics", json_array());
    lsp_notify(s, "textDocument/publishDiagnostics", none);
    lsp_close(s, d->uri);
    make_dirty(s);
}

static void nothing(Server *s, const json_t *params)
{
    (void)s;
    (void)params;
}

static void exits(Server *s, const json_t *params)
{
    (void)params;
    s->exiting = true;
}

/* ---- life ---- */

static json_t *initialize(Server *s, const json_t *params)
{
    (void)params;
    enum { INCREMENTAL = 2 };
    json_t *result = json_object(), *c = lsp_put_object(result, "capabilities");
    json_t *sync = lsp_put_object(c, "textDocumentSync");
    lsp_put_true(sync, "openClose");
    lsp_put_number(sync, "change", INCREMENTAL);
    lsp_put_true(sync, "save");
    lsp_put_text(c, "positionEncoding", "utf-16");
    static const char *const providers[] = {"hoverProvider",          "definitionProvider",
                                            "referencesProvider",     "documentHighlightProvider",
                                            "documentSymbolProvider", "documentFormattingProvider",
                                            "codeActionProvider",     "inlayHintProvider",
                                            "foldingRangeProvider",   "workspaceSymbolProvider"};
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        lsp_put_true(c, providers[i]);
    json_t *completion = lsp_put_object(c, "completionProvider");
    json_object_set_new(completion, "triggerCharacters", json_pack("[s]", "."));
    json_t *signature = lsp_put_object(c, "signatureHelpProvider");
    json_object_set_new(signature, "triggerCharacters", json_pack("[ss]", "(", ","));
    lsp_put_true(lsp_put_object(c, "renameProvider"), "prepareProvider");
    json_t *tokens = lsp_put_object(c, "semanticTokensProvider");
    json_object_set_new(tokens, "legend", lsp_token_legend());
    lsp_put_true(tokens, "full");
    lsp_put_true(tokens, "range");
    json_t *info = lsp_put_object(result, "serverInfo");
    lsp_put_text(info, "name", "tilec");
    lsp_put_text(info, "version", tilec_version());
    s->initialized = true;
    return result;
}

static json_t *shut_down(Server *s, const json_t *params)
{
    (void)params;
    s->shut_down = true;
    return NULL;
}

/* ---- dispatch ---- */

typedef struct Notification {
    const char *method;
    void (*run)(Server *s, const json_t *params);
} Notification;
typedef struct Request {
    const char *method;
    json_t *(*run)(Server *s, const json_t *params);             /* of the server */
    json_t *(*of)(Server *s, Document *d, const json_t *params); /* of an open document */
} Request;

static const Notification notifications[] = {
    {"textDocument/didOpen", opened},
    {"textDocument/didChange", changed},
    {"textDocument/didClose", closed},
    {"textDocument/didSave", saved},
    {"workspace/didChangeWatchedFiles", saved},
    {"initialized", nothing},
    {"$/cancelRequest", nothing}, /* see cancel() */
    {"exit", exits},
};
static const Request requests[] = {
    {"initialize", initialize, NULL},
    {"shutdown", shut_down, NULL},
    {"textDocument/hover", NULL, lsp_hover},
    {"textDocument/definition", NULL, lsp_definition},
    {"textDocument/references", NULL, lsp_references},
    {"textDocument/documentHighlight", NULL, lsp_highlight},
    {"textDocument/documentSymbol", NULL, lsp_symbols},
    {"textDocument/completion", NULL, lsp_complete},
    {"textDocument/formatting", NULL, lsp_format},
    {"textDocument/inlayHint", NULL, lsp_inlays},
    {"textDocument/codeAction", NULL, lsp_code_actions},
    {"textDocument/foldingRange", NULL, lsp_folds},
    {"textDocument/signatureHelp", NULL, lsp_signature},
    {"textDocument/prepareRename", NULL, lsp_can_rename},
    {"textDocument/rename", NULL, lsp_rename},
    {"textDocument/semanticTokens/full", NULL, lsp_tokens},
    {"textDocument/semanticTokens/range", NULL, lsp_tokens},
    {"workspace/symbol", lsp_workspace_symbols, NULL},
};
enum {
    NNOTIFICATIONS = sizeof notifications / sizeof *notifications,
    NREQUESTS = sizeof requests / sizeof *requests
};

static void notified(Server *s, const char *method, const json_t *params)
{
    for (int i = 0; i < NNOTIFICATIONS; i++)
        if (strcmp(notifications[i].method, method) == 0)
            notifications[i].run(s, params);
}

static void answer(Server *s, const json_t *id, const Request *r, const json_t *params)
{
    if (r->run) {
        lsp_reply(s, id, r->run(s, params));
        return;
    }
    Document *d = document_of(s, params);
    TlGuard guard;
    json_t *volatile result = NULL;
    if (!d) {
        lsp_fail(s, id, LSP_INVALID_PARAMS, "the document is not open");
        return;
    }
    s->refusal = NULL;
    if (TL_GUARD(&guard)) {
        result = r->of(s, d, params);
        tl_guard_pop(&guard);
        if (s->refusal)
            lsp_fail(s, id, LSP_REQUEST_FAILED, s->refusal);
        else
            lsp_reply(s, id, result);
        return;
    }
    lsp_fail(s, id, LSP_INTERNAL_ERROR, guard.text);
}

static void requested(Server *s, const json_t *id, const char *method, const json_t *params)
{
    bool first = strcmp(method, "initialize") == 0;
    if (s->shut_down || (first && s->initialized)) {
        lsp_fail(s, id, LSP_INVALID_REQUEST,
                 first && !s->shut_down ? "initialize was called before"
                                        : "the server was shut down");
        return;
    }
    if (!s->initialized && !first) {
        lsp_fail(s, id, LSP_NOT_INITIALIZED, "initialize comes first");
        return;
    }
    for (int i = 0; i < NREQUESTS; i++)
        if (strcmp(requests[i].method, method) == 0) {
            answer(s, id, &requests[i], params);
            return;
        }
    lsp_fail(s, id, LSP_METHOD_NOT_FOUND, method);
}

static void handle(Server *s, const json_t *message)
{
    const json_t *id = json_object_get(message, "id");
    const char *method = text_of(message, "method");
    const json_t *params = json_object_get(message, "params");
    if (method && id)
        requested(s, id, method, params);
    else if (method && (s->initialized || strcmp(method, "exit") == 0))
        notified(s, method, params);
    else if (!method && !json_object_get(message, "result") && !json_object_get(message, "error"))
        lsp_fail(s, id, LSP_INVALID_REQUEST, "neither a request nor an answer");
}

/* ---- the queue ---- */

static bool push(Queue *q, json_t *message)
{
    if (q->len == q->cap) {
        size_t cap = q->cap ? 2 * q->cap : 16;
        json_t **more = realloc(q->data, cap * sizeof *more);
        if (!more)
            return false;
        q->data = more;
        q->cap = cap;
    }
    q->data[q->len++] = message;
    return true;
}

static json_t *pop(Queue *q)
{
    json_t *first = q->len ? q->data[0] : NULL;
    if (q->len)
        memmove(q->data, q->data + 1, --q->len * sizeof *q->data);
    return first;
}

/* A request that waits and is not wanted any more is answered so. */
static void cancel(Server *s, Queue *q, const json_t *message)
{
    const char *method = text_of(message, "method");
    const json_t *id = json_object_get(json_object_get(message, "params"), "id");
    if (!method || strcmp(method, "$/cancelRequest") != 0 || !id)
        return;
    for (size_t i = 0; i < q->len; i++) {
        const json_t *other = json_object_get(q->data[i], "id");
        if (!other || !text_of(q->data[i], "method") || !json_equal(other, id))
            continue;
        lsp_fail(s, id, LSP_CANCELLED, "cancelled");
        json_decref(q->data[i]);
        memmove(q->data + i, q->data + i + 1, (--q->len - i) * sizeof *q->data);
        return;
    }
}

static void take(Server *s, Queue *q, char *text)
{
    json_t *message = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    free(text);
    if (!json_is_object(message)) {
        lsp_fail(s, NULL, message ? LSP_INVALID_REQUEST : LSP_PARSE_ERROR,
                 message ? "a message is an object" : "this is no JSON");
        json_decref(message);
        return;
    }
    cancel(s, q, message);
    if (!push(q, message))
        json_decref(message);
}

/* ---- the loop ---- */

static void publish_changed(Server *s)
{
    for (Document *d = s->documents; d; d = d->next)
        lsp_publish(s, d);
}

typedef struct Serve {
    Server server;
    Queue queue;
} Serve;

/* Until the client says exit, or is gone. */
static void serve(void *arg)
{
    Serve *v = arg;
    Server *s = &v->server;
    Queue *q = &v->queue;
    Reader r = {.fd = STDIN_FILENO};
    while (!s->exiting && !s->broken) {
        char *text;
        while ((text = lsp_read(&r, false)))
            take(s, q, text);
        if (!q->len) {
            publish_changed(s);
            text = lsp_read(&r, true);
            if (!text)
                break;
            take(s, q, text);
            continue;
        }
        json_t *message = pop(q);
        handle(s, message);
        json_decref(message);
    }
    free(r.data);
}

int command_lsp(const Options *o)
{
    Serve v = {.server = {.out = stdout,
                          .include_dirs = o->includes.data,
                          .ninclude_dirs = o->includes.len,
                          .target = o->target,
                          .consts = o->compile.consts,
                          .nconsts = o->compile.nconsts}};
    const char *many = o->target ? strchr(o->target, ',') : NULL;
    if (many)
        return usage_error("lsp shows one target, not '%s'", o->target);
    if (o->target && check_targets(o->target) != EXIT_FINE)
        return EXIT_USAGE;
    TlWorker w; /* for its stack: one thread works, this one waits */
    tl_worker_start(&w, serve, &v);
    tl_worker_join(&w);
    while (v.queue.len)
        json_decref(pop(&v.queue));
    free(v.queue.data);
    while (v.server.documents)
        lsp_close(&v.server, v.server.documents->uri);
    lsp_remove_library(&v.server);
    return v.server.shut_down ? EXIT_FINE : EXIT_PROGRAM;
}
