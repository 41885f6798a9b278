/* By libevent's evhttp and jansson. One thread: between the events of the network, while there is
 * work, a step of the model. What steps choose is kept in the answers, and sent behind the step. */
#define PROGRAM "08_llm"
#include "serve.h"
#include "../shared/example.h"
#include "batch.h"
#include "chat.h"
#include "team.h"
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>

enum { MOST_BODY = 8 << 20, MOST_STOPS = 4 };

typedef struct Server {
    Checkpoint *checkpoint;
    Chat chat;
    bool talks;          /* there is a chat template */
    char *name;          /* of the model */
    int longest;         /* tokens of a text */
    uint64_t seed, steps, answers;
    Model *model;
    Batch *batch;
    struct Answer *first;
    struct event_base *base;
    struct event *work;
    bool failed;
} Server;

/* What a request asks for. */
typedef struct Asked {
    const json_t *messages, *prompt, *stop;
    json_int_t most; /* tokens to generate; 0: not said */
    double temperature, top_p;
    json_int_t top_k;
    bool stream, usage;
} Asked;

typedef struct Answer {
    Server *server;
    struct evhttp_request *request;
    struct Answer *after;
    Sequence sequence;
    bool chat, stream, usage, begun; /* begun: something was sent */
    char id[40];
    char *text;                      /* bytes of what was generated */
    size_t length, room, sent;
    char *stop[MOST_STOPS];
    size_t longest_stop;
    const char *finish;              /* why it has ended; NULL: it has not */
} Answer;

/* ---- replies ---- */

static void reply(struct evhttp_request *request, int status, json_t *body)
{
    struct evbuffer *out = evbuffer_new();
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                      "application/json");
    if (out && text) evbuffer_add(out, text, strlen(text));
    evhttp_send_reply(request, text ? status : 500, NULL, out);
    free(text);
    if (out) evbuffer_free(out);
}

static void refuse(struct evhttp_request *request, int status, const char *why)
{
    reply(request, status,
          json_pack("{s:{s:s+, s:s, s:n, s:n}}", "error", "message", why, "", "type",
                    status < 500 ? "invalid_request_error" : "server_error", "param", "code"));
}

/* ---- text ---- */

/* The bytes of the character that begins here; 0: it is cut off at the end; -1: it is none. */
static int character(const unsigned char *s, size_t n)
{
    int size = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? -1 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3
               : s[0] < 0xF5 ? 4 : -1;
    for (int i = 1; i < size; i++) {
        if ((size_t)i == n) return 0;
        unsigned char low = i > 1 ? 0x80 : s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
        unsigned char high = i > 1 ? 0xBF : s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
        if (s[i] < low || s[i] > high) return -1;
    }
    return size;
}

/* As JSON wants it: what is no character becomes U+FFFD. *used: bytes up to a character that is cut
 * off, unless all have to go. NULL: no memory. */
static char *clean(const char *text, size_t length, bool all, size_t *used)
{
    char *out = malloc(3 * length + 1), *at = out;
    size_t i = 0;
    while (out && i < length) {
        int n = character((const unsigned char *)text + i, length - i);
        if (n == 0 && !all) break;
        if (n > 0) memcpy(at, text + i, (size_t)n), at += n;
        else memcpy(at, "\xEF\xBF\xBD", 3), at += 3;
        i += n > 0 ? (size_t)n : 1;
    }
    if (out) *at = 0;
    if (used) *used = i;
    return out;
}

/* ---- answers ---- */

static void answer_free(Answer *a)
{
    for (Answer **at = &a->server->first; *at; at = &(*at)->after)
        if (*at == a) {
            *at = a->after;
            break;
        }
    for (int i = 0; i < MOST_STOPS; i++) free(a->stop[i]);
    free(a->sequence.token), free(a->text), free(a);
}

/* The client has gone. What evhttp has taken off the connection is this program's to free. */
static void on_close(struct evhttp_connection *connection, void *user)
{
    (void)connection;
    Answer *a = user;
    if (!evhttp_request_get_connection(a->request)) evhttp_request_free(a->request);
    batch_drop(a->server->batch, &a->sequence);
    answer_free(a);
}

static void listen_to_close(Answer *a, void (*call)(struct evhttp_connection *, void *))
{
    evhttp_connection_set_closecb(evhttp_request_get_connection(a->request), call, a);
}

/* The rest of the text from a word on that ends it is no part of it. */
static bool is_stopped(Answer *a, size_t added)
{
    size_t back = added + a->longest_stop, from = a->length > back ? a->length - back : 0;
    for (size_t i = from; i < a->length; i++)
        for (int k = 0; k < MOST_STOPS && a->stop[k]; k++) {
            size_t n = strlen(a->stop[k]);
            if (n > a->length - i || memcmp(a->text + i, a->stop[k], n)) continue;
            a->length = i;
            return true;
        }
    return false;
}

static bool append(Answer *a, const char *bytes, size_t n)
{
    if (a->length + n > a->room) {
        size_t room = 2 * a->room + n + 64;
        char *text = realloc(a->text, room);
        if (!text) return false;
        a->text = text, a->room = room;
    }
    memcpy(a->text + a->length, bytes, n);
    a->length += n;
    return true;
}

/* Called by a step. */
static bool take(Sequence *s, int next)
{
    Answer *a = s->user;
    const Checkpoint *c = a->server->checkpoint;
    size_t n = 0;
    bool ends = checkpoint_ends(c, next);
    const char *bytes = "";
    if (!ends) s->token[s->known++] = next;
    if (!ends && next < words_count(c->words)) bytes = words_bytes(c->words, next, &n);
    if (ends || !append(a, bytes, n) || is_stopped(a, n)) a->finish = "stop";
    else if (s->known == s->most) a->finish = "length";
    return !a->finish;
}

static json_t *usage_of(const Answer *a)
{
    const Sequence *s = &a->sequence;
    return json_pack("{s:i, s:i, s:i, s:{s:i}}", "prompt_tokens", s->given, "completion_tokens",
                     s->known - s->given, "total_tokens", s->known, "prompt_tokens_details",
                     "cached_tokens", s->reused);
}

/* What all replies of a kind have; chunk: a part of one. */
static json_t *frame(const Answer *a, json_t *choices, bool chunk)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:o}", "id", a->id, "object",
                     !a->chat ? "text_completion" : chunk ? "chat.completion.chunk"
                                                          : "chat.completion",
                     "created", (json_int_t)time(NULL), "model", a->server->name, "choices",
                     choices);
}

static json_t *whole_choice(const Answer *a, const char *text)
{
    if (!a->chat)
        return json_pack("[{s:i, s:s, s:n, s:s?}]", "index", 0, "text", text, "logprobs",
                         "finish_reason", a->finish);
    return json_pack("[{s:i, s:{s:s, s:s}, s:n, s:s?}]", "index", 0, "message", "role", "assistant",
                     "content", text, "logprobs", "finish_reason", a->finish);
}

static json_t *part_choice(const Answer *a, const char *text)
{
    const char *finish = text ? NULL : a->finish;
    if (!a->chat)
        return json_pack("[{s:i, s:s, s:n, s:s?}]", "index", 0, "text", text ? text : "",
                         "logprobs", "finish_reason", finish);
    json_t *delta = !text ? json_object()
                    : a->begun ? json_pack("{s:s}", "content", text)
                               : json_pack("{s:s, s:s}", "role", "assistant", "content", text);
    return json_pack("[{s:i, s:o, s:n, s:s?}]", "index", 0, "delta", delta, "logprobs",
                     "finish_reason", finish);
}

static void send_event(const Answer *a, json_t *body)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct evbuffer *out = evbuffer_new();
    json_decref(body);
    if (out) evbuffer_add_printf(out, "data: %s\n\n", text ? text : "[DONE]");
    if (out) evhttp_send_reply_chunk(a->request, out), evbuffer_free(out);
    free(text);
}

static void begin_events(Answer *a)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(a->request);
    evhttp_add_header(headers, "Content-Type", "text/event-stream");
    evhttp_add_header(headers, "Cache-Control", "no-cache");
    evhttp_send_reply_start(a->request, 200, "OK");
}

/* Text that may be the beginning of a word that ends it, and the bytes of a character that has not
 * come to its end, wait. */
static void send_more(Answer *a)
{
    size_t hold = a->finish || !a->longest_stop ? 0 : a->longest_stop - 1, used = 0;
    size_t end = a->length > hold ? a->length - hold : 0;
    if (end <= a->sent && a->begun) return;
    if (!a->begun) begin_events(a);
    size_t n = end > a->sent ? end - a->sent : 0;
    char *text = clean(n ? a->text + a->sent : "", n, a->finish, &used);
    if (text && (used || !a->begun)) send_event(a, frame(a, part_choice(a, text), true));
    a->begun = true;
    a->sent += used;
    free(text);
}

static void finish(Answer *a)
{
    listen_to_close(a, NULL);
    if (a->stream) {
        send_event(a, frame(a, part_choice(a, NULL), true));
        if (a->usage) {
            json_t *last = frame(a, json_array(), true);
            json_object_set_new(last, "usage", usage_of(a));
            send_event(a, last);
        }
        send_event(a, NULL);
        evhttp_send_reply_end(a->request);
    } else {
        char *text = clean(a->length ? a->text : "", a->length, true, NULL);
        json_t *body = text ? frame(a, whole_choice(a, text), false) : NULL;
        json_object_set_new(body, "usage", usage_of(a));
        reply(a->request, 200, body);
        free(text);
    }
    answer_free(a);
}

/* One step, and what it has given to the clients. */
static void on_work(evutil_socket_t none, short what, void *user)
{
    (void)none, (void)what;
    Server *s = user;
    Step step;
    static const struct timeval now_ = {0, 0};
    if (!batch_step(s->batch, s->seed * 1000003 + s->steps++, &step)) {
        s->failed = true;
        event_base_loopbreak(s->base);
        return;
    }
    for (Answer *a = s->first, *after; a; a = after) {
        after = a->after;
        if (a->stream && (a->finish || a->length > a->sent)) send_more(a);
        if (a->finish) finish(a);
    }
    if (batch_has_work(s->batch)) event_add(s->work, &now_);
}

/* ---- requests ---- */

static bool wrong(char *why, const char *name, const char *wanted)
{
    snprintf(why, 200, "'%.60s' is not %s", name, wanted);
    return false;
}

static bool take_integer(const json_t *v, const char *name, json_int_t least, json_int_t *out,
                         char *why)
{
    *out = json_integer_value(v);
    return (json_is_integer(v) && *out >= least) || wrong(why, name, "a whole number in its range");
}

static bool take_real(const json_t *v, const char *name, double most, double *out, char *why)
{
    *out = json_number_value(v);
    return (json_is_number(v) && *out >= 0 && *out <= most) ||
           wrong(why, name, "a number in its range");
}

static bool take_truth(const json_t *v, const char *name, bool *out, char *why)
{
    *out = json_is_true(v);
    return json_is_boolean(v) || wrong(why, name, "true or false");
}

/* What is not done here, and the values that ask for nothing; those without are never asked for. */
static const struct {
    const char *name, *values;
} neutral[] = {{"n", "|1|"}, {"best_of", "|1|"}, {"presence_penalty", "|0|0.0|"},
               {"frequency_penalty", "|0|0.0|"}, {"logprobs", "|false|"}, {"echo", "|false|"},
               {"logit_bias", "|{}|"}, {"tools", "|[]|"},
               {"response_format", "|{\"type\":\"text\"}|"}, {"user", NULL},
               {"metadata", NULL}, {"store", NULL}, {"service_tier", NULL},
               {"safety_identifier", NULL}, {"prompt_cache_key", NULL}};

static bool take_other(const json_t *v, const char *name, char *why)
{
    size_t i = 0, rows = sizeof neutral / sizeof *neutral;
    while (i < rows && strcmp(neutral[i].name, name)) i++;
    if (i == rows) return snprintf(why, 200, "'%.60s' is not known here", name), false;
    if (!neutral[i].values) return true;
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY), word[80];
    snprintf(word, sizeof word, "|%.70s|", text ? text : "");
    free(text);
    return strstr(neutral[i].values, word) || wrong(why, name, "done here with this value");
}

static bool take_field(Asked *a, bool chat, const char *name, const json_t *v, char *why)
{
    if (json_is_null(v) || !strcmp(name, "model")) return true;
    if (chat && !strcmp(name, "messages"))
        return (a->messages = v, json_array_size(v)) || wrong(why, name, "a list of messages");
    if (!chat && !strcmp(name, "prompt")) {
        a->prompt = json_array_size(v) == 1 ? json_array_get(v, 0) : v;
        return json_is_string(a->prompt) || wrong(why, name, "a text");
    }
    if (!strcmp(name, "max_tokens") || !strcmp(name, "max_completion_tokens"))
        return take_integer(v, name, 1, &a->most, why);
    if (!strcmp(name, "temperature")) return take_real(v, name, 100, &a->temperature, why);
    if (!strcmp(name, "top_p")) return take_real(v, name, 1, &a->top_p, why);
    if (!strcmp(name, "top_k")) return take_integer(v, name, 0, &a->top_k, why);
    if (!strcmp(name, "stream")) return take_truth(v, name, &a->stream, why);
    if (!strcmp(name, "stop")) return a->stop = v, true;
    if (!strcmp(name, "stream_options")) {
        const json_t *usage = json_object_get(v, "include_usage");
        return !usage || take_truth(usage, "include_usage", &a->usage, why);
    }
    return take_other(v, name, why);
}

static bool take_stops(Answer *a, const json_t *stop, char *why)
{
    size_t n = json_is_array(stop) ? json_array_size(stop) : stop ? 1 : 0;
    if (n > MOST_STOPS) return wrong(why, "stop", "a text, or up to four");
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_is_array(stop) ? json_array_get(stop, i) : stop);
        if (!text || !*text) return wrong(why, "stop", "a text, or up to four");
        if (!(a->stop[i] = strdup(text))) return snprintf(why, 200, "no memory"), false;
        if (strlen(text) > a->longest_stop) a->longest_stop = strlen(text);
    }
    return true;
}

/* A message's content: a text, or parts that are texts. The caller frees it. */
static char *content_of(const json_t *v)
{
    if (json_is_string(v)) return strdup(json_string_value(v));
    size_t i, length = 0;
    char *all = json_is_array(v) ? strdup("") : NULL;
    json_t *part;
    json_array_foreach((json_t *)(uintptr_t)v, i, part) {
        const char *text = json_string_value(json_object_get(part, "text"));
        size_t n = text ? strlen(text) : 0;
        char *more = text ? realloc(all, length + n + 1) : NULL;
        if (!more) return free(all), NULL;
        memcpy(more + length, text, n + 1);
        all = more, length += n;
    }
    return all;
}

/* The messages in the model's template. */
static char *wrap(Server *s, const json_t *messages, char *why)
{
    size_t n = json_array_size(messages), i;
    Message *message = calloc(n, sizeof *message);
    char **text = calloc(n, sizeof *text), *whole = NULL;
    bool good = message && text;
    json_t *m;
    if (!good) snprintf(why, 200, "no memory");
    json_array_foreach((json_t *)(uintptr_t)messages, i, m) {
        const char *role = json_string_value(json_object_get(m, "role"));
        if (!good) break;
        text[i] = content_of(json_object_get(m, "content"));
        good = role && text[i];
        message[i] = (Message){role, text[i]};
        if (!good) wrong(why, "messages", "a list of messages with a role and a text each");
    }
    if (good && !s->talks) good = false, snprintf(why, 200, "the model has no chat template");
    if (good && !(whole = chat_wrap_all(&s->chat, s->checkpoint, message, n)))
        snprintf(why, 200, "%.199s", s->checkpoint->error);
    for (i = 0; text && i < n; i++) free(text[i]);
    return free(text), free(message), whole;
}

/* The tokens of what was asked; NULL: there are none, as `why` says. */
static int *tokens_of(Server *s, const Asked *asked, size_t *n, char *why)
{
    Words *words = s->checkpoint->words;
    const char *prompt = json_string_value(asked->prompt);
    char *wrapped = asked->messages ? wrap(s, asked->messages, why) : NULL;
    const char *text = asked->messages ? wrapped : prompt;
    if (!asked->messages && !prompt) wrong(why, "prompt or messages", "there");
    if (!text) return NULL;
    int before = asked->messages || !s->talks ? -1 : words_begin(words, s->chat.begin);
    int *token = words_encode(words, text, strlen(text), n);
    if (!asked->messages && s->talks) words_begin(words, before);
    if (!token) snprintf(why, 200, "no token for byte %zu of the prompt", *n);
    if (token && *n == 0) snprintf(why, 200, "the prompt is empty"), free(token), token = NULL;
    return free(wrapped), token;
}

static bool fill(Answer *a, const Asked *asked, char *why)
{
    Server *s = a->server;
    size_t n = 0;
    int *token = tokens_of(s, asked, &n, why);
    if (!token) return false;
    a->sequence.token = token;
    if (n >= (size_t)s->longest) {
        snprintf(why, 200, "the prompt has %zu tokens, and a text at most %d", n, s->longest);
        return false;
    }
    json_int_t room = s->longest - (json_int_t)n;
    int most = (int)(asked->most && asked->most < room ? asked->most : room) + (int)n;
    int *grown = realloc(token, ((size_t)most + 1) * sizeof *token);
    if (!grown) return snprintf(why, 200, "no memory"), false;
    a->stream = asked->stream, a->usage = asked->usage;
    a->sequence = (Sequence){.token = grown, .given = (int)n, .known = (int)n, .most = most,
                             .temperature = (float)asked->temperature,
                             .top_p = (float)asked->top_p,
                             .top_k = (int)(asked->top_k < 1 << 30 ? asked->top_k : 0),
                             .take = take, .user = a};
    return take_stops(a, asked->stop, why) ||
           (snprintf(why, 200, "'stop' is not a text, or up to four"), false);
}

static bool read_fields(Asked *asked, bool chat, const json_t *body, char *why)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)body, name, v)
        if (!take_field(asked, chat, name, v, why)) return false;
    return true;
}

static void begin_answer(Server *s, struct evhttp_request *request, bool chat, const json_t *body)
{
    char why[200] = "";
    static const struct timeval now_ = {0, 0};
    Asked asked = {.temperature = 1, .top_p = 1};
    Answer *a = calloc(1, sizeof *a);
    if (!a) {
        refuse(request, 500, "no memory");
        return;
    }
    *a = (Answer){.server = s, .request = request, .chat = chat};
    snprintf(a->id, sizeof a->id, "%s-%llu", chat ? "chatcmpl" : "cmpl",
             (unsigned long long)++s->answers);
    bool good = read_fields(&asked, chat, body, why) && fill(a, &asked, why);
    if (good && !batch_add(s->batch, &a->sequence))
        good = false, snprintf(why, sizeof why, "there is no room for a text of %d tokens",
                               a->sequence.most);
    if (!good) {
        answer_free(a);
        refuse(request, 400, why);
        return;
    }
    Answer **last = &s->first;
    while (*last) last = &(*last)->after;
    *last = a;
    listen_to_close(a, on_close);
    event_add(s->work, &now_);
}

/* A page in a browser may send other types of content without asking. */
static bool is_json(struct evhttp_request *request)
{
    const char *type =
        evhttp_find_header(evhttp_request_get_input_headers(request), "Content-Type");
    return type && !strncmp(type, "application/json", 16);
}

static void on_post(Server *s, struct evhttp_request *request, bool chat)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(request);
    size_t n = evbuffer_get_length(in);
    const char *bytes = n ? (const char *)evbuffer_pullup(in, -1) : "";
    json_error_t error;
    json_t *body = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &error);
    if (!is_json(request)) refuse(request, 415, "the content has to be application/json");
    else if (json_is_object(body)) begin_answer(s, request, chat, body);
    else refuse(request, 400, body ? "the content is no object" : error.text);
    json_decref(body);
}

static json_t *list_models(const Server *s)
{
    return json_pack("{s:s, s:[{s:s, s:s, s:i, s:s}]}", "object", "list", "data", "id", s->name,
                     "object", "model", "created", 0, "owned_by", "tile");
}

static void on_request(struct evhttp_request *request, void *user)
{
    Server *s = user;
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
    bool post = evhttp_request_get_command(request) == EVHTTP_REQ_POST;
    bool models = path && !strcmp(path, "/v1/models");
    bool chat = path && !strcmp(path, "/v1/chat/completions");
    bool text = path && !strcmp(path, "/v1/completions");
    if (!models && !chat && !text) refuse(request, 404, "there is no such path");
    else if (post == models) refuse(request, 405, "this path has another method");
    else if (models) reply(request, 200, list_models(s));
    else on_post(s, request, chat);
}

/* ---- the server ---- */

static void on_signal(evutil_socket_t signal, short what, void *base)
{
    (void)signal, (void)what;
    event_base_loopbreak(base);
}

/* The port that is listened at; 0: none. */
static int listen_at(Server *s, struct evhttp *http, int port)
{
    struct sockaddr_in at = {0};
    socklen_t size = sizeof at;
    evhttp_set_max_headers_size(http, 1 << 16);
    evhttp_set_max_body_size(http, MOST_BODY);
    evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
    evhttp_set_gencb(http, on_request, s);
    struct evhttp_bound_socket *bound =
        evhttp_bind_socket_with_handle(http, "127.0.0.1", (uint16_t)port);
    if (!bound || getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&at, &size))
        return fail("127.0.0.1", strerror(errno)), 0;
    return ntohs(at.sin_port);
}

static bool load(Server *s, const Serving *o)
{
    char error[400];
    static const int rows[] = {1, 4, 16, MOST_ROWS};
    const char *slash = strrchr(o->model, '/');
    const char *name = slash && slash[1] ? slash + 1 : o->model;
    int context = s->checkpoint->config.context;
    s->longest = o->longest < context ? o->longest : context;
    int room = o->room > s->longest ? o->room : s->longest, pages = (room + PAGE - 1) / PAGE;
    if (team_size() > 1) return fail("", "a server has one rank");
    if (!(s->name = clean(name, strlen(name), true, NULL))) return fail("", "no memory");
    s->talks = chat_open(&s->chat, s->checkpoint, o->model, NULL);
    s->model = model_new(s->checkpoint, s->longest, pages, error, sizeof error);
    if (!s->model) return fail("", error);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!model_prepare(s->model, rows[i])) return fail("", tile_last_error());
    return (s->batch = batch_new(s->model, pages, false)) || fail("", "no memory");
}

static bool run(Server *s, struct evhttp *http, int port)
{
    struct event *interrupt = evsignal_new(s->base, SIGINT, on_signal, s->base),
                 *terminate = evsignal_new(s->base, SIGTERM, on_signal, s->base);
    s->work = event_new(s->base, -1, 0, on_work, s);
    bool good = interrupt && terminate && s->work && !event_add(interrupt, NULL) &&
                !event_add(terminate, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (good && (port = listen_at(s, http, port))) {
        printf("%s at http://127.0.0.1:%d/v1\n", s->name, port);
        fflush(stdout);
        event_base_dispatch(s->base);
    }
    while (s->first) { /* clients that are not answered */
        listen_to_close(s->first, NULL);
        batch_drop(s->batch, &s->first->sequence);
        answer_free(s->first);
    }
    if (s->failed) fail("", tile_last_error());
    if (s->work) event_free(s->work);
    if (interrupt) event_free(interrupt);
    if (terminate) event_free(terminate);
    return good && port && !s->failed;
}

bool serve(Checkpoint *checkpoint, const Serving *o)
{
    Server s = {.checkpoint = checkpoint, .seed = o->seed, .base = event_base_new()};
    struct evhttp *http = s.base ? evhttp_new(s.base) : NULL;
    bool good = http || fail("", "no memory");
    good = good && load(&s, o) && run(&s, http, o->port);
    if (http) evhttp_free(http);
    if (s.base) event_base_free(s.base);
    batch_free(s.batch), model_free(s.model), chat_close(&s.chat), free(s.name);
    return good;
}
