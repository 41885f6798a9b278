/* lsp_server.c: tilec lsp: the loop of a language server. One thread takes message after message.
 * Before it answers one it takes in all that have arrived: so a request that was cancelled
 * meanwhile is not worked on, and a text that changes with each key is checked when typing
 * pauses, or when an answer needs it. */
#include "codegen/include/tilec.h"
#include "codegen/target/worker.h"
#include "tools/lsp/lsp.h"
#include "tools/tilec_options.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Queue {
    cJSON **data;
    size_t len, cap;
} Queue;

/* ---- documents ---- */

static const char *text_of(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
}

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *n = cJSON_GetObjectItem(object, name);
    return cJSON_IsNumber(n) ? n->valuedouble : 0;
}

static Document *document_of(Server *s, const cJSON *params)
{
    return lsp_document(s, text_of(cJSON_GetObjectItem(params, "textDocument"), "uri"));
}

static void opened(Server *s, const cJSON *params)
{
    const cJSON *d = cJSON_GetObjectItem(params, "textDocument");
    const char *uri = text_of(d, "uri"), *text = text_of(d, "text");
    if (uri && text)
        lsp_open(s, uri, text, number_of(d, "version"));
}

/* Others may import the document. */
static void make_dirty(Server *s)
{
    for (Document *d = s->documents; d; d = d->next)
        d->dirty = true;
}

/* The whole text, as was agreed on, or parts of it. */
static void change(Document *d, const cJSON *one)
{
    const cJSON *range = cJSON_GetObjectItem(one, "range");
    const cJSON *start = cJSON_GetObjectItem(range, "start"),
                *end = cJSON_GetObjectItem(range, "end");
    const char *text = text_of(one, "text");
    if (!text || !range) {
        if (text)
            lsp_set_text(d, text);
        return;
    }
    size_t from =
        lsp_offset(d->text, d->size, number_of(start, "line"), number_of(start, "character"));
    size_t to = lsp_offset(d->text, d->size, number_of(end, "line"), number_of(end, "character"));
    to = to < from ? from : to;
    char *joined = malloc(from + strlen(text) + (d->size - to) + 1);
    if (!joined)
        return;
    sprintf(joined, "%.*s%s%s", (int)from, d->text, text, d->text + to);
    lsp_set_text(d, joined);
    free(joined);
}

static void changed(Server *s, const cJSON *params)
{
    Document *d = document_of(s, params);
    const cJSON *one;
    if (!d)
        return;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(params, "contentChanges")) change(d, one);
    d->version = number_of(cJSON_GetObjectItem(params, "textDocument"), "version");
    make_dirty(s);
}

static void saved(Server *s, const cJSON *params)
{
    (void)params;
    make_dirty(s);
}

static void closed(Server *s, const cJSON *params)
{
    Document *d = document_of(s, params);
    if (!d)
        return;
    cJSON *none = cJSON_CreateObject();
    cJSON_AddStringToObject(none, "uri", d->uri);
    cJSON_AddItemToObject(none, "diagnostics", cJSON_CreateArray());
    lsp_notify(s, "textDocument/publishDiagnostics", none);
    lsp_close(s, d->uri);
    make_dirty(s);
}

static void nothing(Server *s, const cJSON *params)
{
    (void)s;
    (void)params;
}

static void exits(Server *s, const cJSON *params)
{
    (void)params;
    s->exiting = true;
}

/* ---- life ---- */

static cJSON *initialize(Server *s, const cJSON *params)
{
    (void)params;
    enum { FULL = 1 };
    cJSON *result = cJSON_CreateObject(), *c = cJSON_AddObjectToObject(result, "capabilities");
    cJSON *sync = cJSON_AddObjectToObject(c, "textDocumentSync");
    cJSON_AddBoolToObject(sync, "openClose", true);
    cJSON_AddNumberToObject(sync, "change", FULL);
    cJSON_AddBoolToObject(sync, "save", true);
    cJSON_AddStringToObject(c, "positionEncoding", "utf-16");
    static const char *const providers[] = {"hoverProvider",          "definitionProvider",
                                            "referencesProvider",     "documentHighlightProvider",
                                            "documentSymbolProvider", "documentFormattingProvider",
                                            "codeActionProvider",     "inlayHintProvider"};
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        cJSON_AddBoolToObject(c, providers[i], true);
    static const char *const points[] = {"."};
    cJSON *completion = cJSON_AddObjectToObject(c, "completionProvider");
    cJSON_AddItemToObject(completion, "triggerCharacters", cJSON_CreateStringArray(points, 1));
    cJSON *info = cJSON_AddObjectToObject(result, "serverInfo");
    cJSON_AddStringToObject(info, "name", "tilec");
    cJSON_AddStringToObject(info, "version", tilec_version());
    s->initialized = true;
    return result;
}

static cJSON *shut_down(Server *s, const cJSON *params)
{
    (void)params;
    s->shut_down = true;
    return NULL;
}

/* ---- dispatch ---- */

typedef struct Notification {
    const char *method;
    void (*run)(Server *s, const cJSON *params);
} Notification;
typedef struct Request {
    const char *method;
    cJSON *(*run)(Server *s, const cJSON *params);             /* of the server */
    cJSON *(*of)(Server *s, Document *d, const cJSON *params); /* of an open document */
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
};
enum {
    NNOTIFICATIONS = sizeof notifications / sizeof *notifications,
    NREQUESTS = sizeof requests / sizeof *requests
};

static void notified(Server *s, const char *method, const cJSON *params)
{
    for (int i = 0; i < NNOTIFICATIONS; i++)
        if (strcmp(notifications[i].method, method) == 0)
            notifications[i].run(s, params);
}

static void answer(Server *s, const cJSON *id, const Request *r, const cJSON *params)
{
    if (r->run) {
        lsp_reply(s, id, r->run(s, params));
        return;
    }
    Document *d = document_of(s, params);
    TlGuard guard;
    cJSON *volatile result = NULL;
    if (!d) {
        lsp_fail(s, id, LSP_INVALID_PARAMS, "the document is not open");
        return;
    }
    if (TL_GUARD(&guard)) {
        result = r->of(s, d, params);
        tl_guard_pop(&guard);
        lsp_reply(s, id, result);
        return;
    }
    lsp_fail(s, id, LSP_INTERNAL_ERROR, guard.text);
}

static void requested(Server *s, const cJSON *id, const char *method, const cJSON *params)
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

static void handle(Server *s, const cJSON *message)
{
    const cJSON *id = cJSON_GetObjectItem(message, "id");
    const char *method = text_of(message, "method");
    const cJSON *params = cJSON_GetObjectItem(message, "params");
    if (method && id)
        requested(s, id, method, params);
    else if (method && (s->initialized || strcmp(method, "exit") == 0))
        notified(s, method, params);
    else if (!method && !cJSON_GetObjectItem(message, "result") &&
             !cJSON_GetObjectItem(message, "error"))
        lsp_fail(s, id, LSP_INVALID_REQUEST, "neither a request nor an answer");
}

/* ---- the queue ---- */

static bool push(Queue *q, cJSON *message)
{
    if (q->len == q->cap) {
        size_t cap = q->cap ? 2 * q->cap : 16;
        cJSON **more = realloc(q->data, cap * sizeof *more);
        if (!more)
            return false;
        q->data = more;
        q->cap = cap;
    }
    q->data[q->len++] = message;
    return true;
}

static cJSON *pop(Queue *q)
{
    cJSON *first = q->len ? q->data[0] : NULL;
    if (q->len)
        memmove(q->data, q->data + 1, --q->len * sizeof *q->data);
    return first;
}

/* A request that waits and is not wanted any more is answered so. */
static void cancel(Server *s, Queue *q, const cJSON *message)
{
    const char *method = text_of(message, "method");
    const cJSON *id = cJSON_GetObjectItem(cJSON_GetObjectItem(message, "params"), "id");
    if (!method || strcmp(method, "$/cancelRequest") != 0 || !id)
        return;
    for (size_t i = 0; i < q->len; i++) {
        const cJSON *other = cJSON_GetObjectItem(q->data[i], "id");
        if (!other || !text_of(q->data[i], "method") || !cJSON_Compare(other, id, true))
            continue;
        lsp_fail(s, id, LSP_CANCELLED, "cancelled");
        cJSON_Delete(q->data[i]);
        memmove(q->data + i, q->data + i + 1, (--q->len - i) * sizeof *q->data);
        return;
    }
}

static void take(Server *s, Queue *q, char *text)
{
    cJSON *message = cJSON_Parse(text);
    free(text);
    if (!cJSON_IsObject(message)) {
        lsp_fail(s, NULL, message ? LSP_INVALID_REQUEST : LSP_PARSE_ERROR,
                 message ? "a message is an object" : "this is no JSON");
        cJSON_Delete(message);
        return;
    }
    cancel(s, q, message);
    if (!push(q, message))
        cJSON_Delete(message);
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
        cJSON *message = pop(q);
        handle(s, message);
        cJSON_Delete(message);
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
        cJSON_Delete(pop(&v.queue));
    free(v.queue.data);
    while (v.server.documents)
        lsp_close(&v.server, v.server.documents->uri);
    lsp_remove_library(&v.server);
    return v.server.shut_down ? EXIT_FINE : EXIT_PROGRAM;
}
