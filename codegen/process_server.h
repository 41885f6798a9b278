/* Processes that compile: started, kept, given back (process_server.c). */
#ifndef TL_PROCESS_SERVER_H
#define TL_PROCESS_SERVER_H
#include "codegen/core_process.h"

typedef struct TlServer {
    struct TlServer *next;
    int fd;   /* a socket */
    int said; /* a file with what it wrote to standard error; -1: none */
    char program[4096];
} TlServer;

/* One that is idle, or a new one. NULL: there can be none; why[size] says why, and *out_status
 * is TILEC_TOOL or TILEC_NO_MEMORY. Thread-safe, as all here. */
TlServer *tl_server_take(const TlProcess *p, tilec_status *out_status, char *why, size_t size);
/* It is idle again. */
void tl_server_keep(TlServer *s);
/* It is of no use any more: it ends, whatever it does. */
void tl_server_drop(TlServer *s);
/* The end of what it wrote to standard error, on one line. */
void tl_server_last_words(const TlServer *s, char *text, size_t size);

/* process_find.c: the path of this library's tilec. false: it is not found. */
bool tl_process_find(char *out, size_t size);
#endif
