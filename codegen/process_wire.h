/* The messages that a program and the process that compiles for it (core_process.c,
 * tools/tilec_serve.c) exchange over a socket: each is a kind and a payload of numbers and texts.
 * Both come from one build, so neither has to know another version's format. */
#ifndef TL_PROCESS_WIRE_H
#define TL_PROCESS_WIRE_H
#include "codegen/compile.h"

typedef enum TlWireKind {
    TL_WIRE_HELLO,   /* to the host, first: the build id; why it cannot compile, or "" */
    TL_WIRE_COMPILE, /* to the process: folder, MiB of memory, source, options */
    TL_WIRE_BEGUN,   /* to the host: it has arrived */
    TL_WIRE_READ,    /* to the host: a path */
    TL_WIRE_FILE,    /* to the process: its text, and why it cannot be read */
    TL_WIRE_SAID,    /* to the host: a diagnostic */
    TL_WIRE_PRINTED, /* to the host: a text for `print` */
    TL_WIRE_DONE     /* to the host: status and output */
} TlWireKind;

/* A message that has arrived, and how far it is read. */
typedef struct TlWire {
    TlWireKind kind;
    const char *data;
    size_t size, at;
} TlWire;

/* Appending to a payload; text NULL and data NULL arrive as NULL. */
void tl_wire_number(TlSbuf *s, uint64_t number);
void tl_wire_text(TlSbuf *s, const char *text);
void tl_wire_bytes(TlSbuf *s, const void *data, size_t size);
void tl_wire_options(TlSbuf *s, const tilec_options *o);

/* The next of a payload; texts stay in the message, which is in an arena. A fault where there is
 * none. */
uint64_t tl_wire_next_number(TlWire *w);
const char *tl_wire_next_text(TlWire *w);
const void *tl_wire_next_bytes(TlWire *w, size_t *out_size);
/* All but the callbacks and the allocator, which stay as they are. */
void tl_wire_next_options(TlWire *w, TlArena *arena, tilec_options *o);

/* false: nobody is there. No signal comes of it. */
bool tl_wire_send(int fd, TlWireKind kind, const char *data, size_t size);

typedef enum TlWireEnd { TL_WIRE_OK, TL_WIRE_CLOSED, TL_WIRE_LATE } TlWireEnd;
/* The next message; its data are in the arena. until: of tl_wire_now, 0: however long it takes. */
TlWireEnd tl_wire_receive(int fd, uint64_t until, TlArena *arena, TlWire *out);
uint64_t tl_wire_now(void); /* milliseconds */
#endif
