/* A compilation in another process (core_process.h): what is sent, what comes back meanwhile, and
 * what the death of the process means. A process that died while idle is replaced silently. */
#include "codegen/core_process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codegen/process_server.h"
#include "codegen/process_wire.h"
#include "ir/support/guard.h"

/* One compilation. */
typedef struct Call {
    const TlProcess *process;
    const char *name, *text;
    size_t size;
    const tilec_options *o;
    TlFiles *files;
    tilec_output *out;
    TlServer *server;
    TlArena arena; /* of the request and the messages */
    uint64_t until;
    bool begun;
    tilec_status status;
} Call;

/* An output with nothing but a message. */
static tilec_status refuse(Call *c, tilec_status status, const char *text)
{
    tilec_output_free(c->out);
    c->out = tl_output_refusal(c->o, "%s", text, "");
    return c->out ? status : TILEC_NO_MEMORY;
}

/* ---- the request ---- */

static bool send_request(Call *c)
{
    TlSbuf s;
    char folder[4096];
    tl_sbuf_init(&s, &c->arena);
    tl_wire_text(&s, getcwd(folder, sizeof folder));
    tl_wire_number(&s, c->process->memory);
    tl_wire_text(&s, c->name);
    tl_wire_bytes(&s, c->text, c->size);
    tl_wire_number(&s, c->o->diagnostic != NULL);
    tl_wire_number(&s, c->o->print != NULL);
    tl_wire_options(&s, c->o);
    return tl_wire_send(c->server->fd, TL_WIRE_COMPILE, s.text, s.len);
}

/* ---- what comes back ---- */

static void send_file(Call *c, const char *path)
{
    TlSbuf s;
    size_t size = 0;
    const char *error = NULL, *text = tl_files_read(c->files, &c->arena, path, &size, &error);
    tl_sbuf_init(&s, &c->arena);
    tl_wire_bytes(&s, text, size);
    tl_wire_text(&s, error);
    tl_wire_send(c->server->fd, TL_WIRE_FILE, s.text,
                 s.len); /* else it has died, as will be seen */
}

static const char *copy(TlArena *arena, const char *text)
{
    return text ? tl_strndup(arena, text, strlen(text)) : NULL;
}

static void take_tunings(tilec_output *out, TlWire *w)
{
    out->ntunings = tl_wire_next_number(w);
    tilec_tuning *rows =
        out->ntunings ? TL_NEW_ARRAY(&out->arena, tilec_tuning, out->ntunings) : NULL;
    for (size_t i = 0; i < out->ntunings; i++) {
        tilec_tuning *t = &rows[i];
        t->kernel = copy(&out->arena, tl_wire_next_text(w));
        t->hash = copy(&out->arena, tl_wire_next_text(w));
        t->constants = copy(&out->arena, tl_wire_next_text(w));
        t->keys = copy(&out->arena, tl_wire_next_text(w));
        t->nkeys = tl_wire_next_number(w);
        t->nconfigs = tl_wire_next_number(w);
        const char **configs = TL_NEW_ARRAY(&out->arena, const char *, t->nconfigs + 1);
        for (size_t k = 0; k <= t->nconfigs; k++)
            configs[k] = copy(&out->arena, tl_wire_next_text(w));
        t->configs = configs;
    }
    out->tunings = rows;
}

static void take_output(Call *c, TlWire *w)
{
    c->status = (tilec_status)tl_wire_next_number(w);
    if (!tl_wire_next_number(w))
        return;
    c->out = tl_output_new(c->o);
    if (!c->out)
        tl_fault(TL_FAULT_MEMORY, "out of memory");
    size_t size;
    const void *data = tl_wire_next_bytes(w, &size);
    if (data)
        tl_output_set(c->out, data, size);
    c->out->message = copy(&c->out->arena, tl_wire_next_text(w));
    c->out->depends = copy(&c->out->arena, tl_wire_next_text(w));
    const char *events = tl_wire_next_text(w);
    if (events)
        tl_output_set_trace(c->out, events);
    take_tunings(c->out, w);
}

/* Until it is done, or gone. */
static TlWireEnd converse(Call *c)
{
    for (;;) {
        TlWire w;
        TlWireEnd end = tl_wire_receive(c->server->fd, c->until, &c->arena, &w);
        if (end != TL_WIRE_OK)
            return end;
        switch (w.kind) {
        case TL_WIRE_BEGUN: c->begun = true; break;
        case TL_WIRE_READ: send_file(c, w.data); break;
        case TL_WIRE_SAID: c->o->diagnostic(c->o->user, w.data); break;
        case TL_WIRE_PRINTED: c->o->print(c->o->user, w.data); break;
        case TL_WIRE_DONE: take_output(c, &w); return TL_WIRE_OK;
        case TL_WIRE_HELLO:
        case TL_WIRE_COMPILE:
        case TL_WIRE_FILE: TL_UNREACHABLE("a message of kind %d from the process", (int)w.kind);
        }
    }
}

/* ---- its end ---- */

static bool is_of_memory(const char *words)
{
    return strstr(words, "out of memory") || strstr(words, "bad_alloc");
}

static tilec_status explain_death(Call *c, TlWireEnd end)
{
    char words[300], text[400];
    if (end == TL_WIRE_LATE) {
        snprintf(text, sizeof text, "the compilation took more than %u s, which is its limit",
                 c->process->seconds);
        return refuse(c, TILEC_TOOL, text);
    }
    tl_server_last_words(c->server, words, sizeof words);
    if (!*words)
        return refuse(c, TILEC_TOOL,
                      "the process that compiled was killed, or ended without a word");
    snprintf(text, sizeof text, "the process that compiled has died: %s", words);
    return refuse(c, is_of_memory(words) ? TILEC_NO_MEMORY : TILEC_INTERNAL, text);
}

/* false: it died before it began. */
static bool try_once(Call *c)
{
    char why[512];
    c->server = tl_server_take(c->process, &c->status, why, sizeof why);
    if (!c->server) {
        c->status = refuse(c, c->status, why);
        return true;
    }
    TlWireEnd end = send_request(c) ? converse(c) : TL_WIRE_CLOSED;
    if (end == TL_WIRE_CLOSED && !c->begun)
        return false;
    if (end != TL_WIRE_OK)
        c->status = explain_death(c, end);
    else if (c->status != TILEC_NO_MEMORY && c->status != TILEC_INTERNAL) {
        tl_server_keep(c->server); /* else it ends by itself */
        c->server = NULL;
    }
    return true;
}

static void compile(Call *c)
{
    if (c->process->seconds)
        c->until = tl_wire_now() + c->process->seconds * UINT64_C(1000);
    for (int tries = 0; !try_once(c); tries++) {
        bool again = tries < 2;
        if (!again)
            c->status = explain_death(c, TL_WIRE_CLOSED);
        tl_server_drop(c->server);
        c->server = NULL;
        if (!again)
            break;
    }
}

tilec_status tl_process_compile(const TlProcess *p, const char *name, const char *text, size_t size,
                                const tilec_options *o, TlFiles *files, tilec_output **out_output)
{
    Call c = {.process = p, .name = name, .text = text, .size = size, .o = o, .files = files};
    TlGuard g;
    tl_arena_init(&c.arena, (TlAlloc){o->alloc, o->alloc_user});
    if (TL_GUARD(&g)) {
        compile(&c);
        tl_guard_pop(&g);
    } else {
        c.status =
            refuse(&c, tl_fault_is_memory(g.fault) ? TILEC_NO_MEMORY : TILEC_INTERNAL, g.text);
    }
    tl_server_drop(c.server);
    tl_arena_free(&c.arena);
    *out_output = c.out;
    return c.status;
}
