#include "text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool append(uint8_t **to, size_t *n, const uint8_t *from, size_t more)
{
    uint8_t *grown = realloc(*to, *n + more);
    if (!grown) return false;
    memcpy(grown + *n, from, more);
    *to = grown;
    *n += more;
    return true;
}

static bool read_file(Text *t, const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t part[1 << 16];
    size_t before = t->trains, got;
    bool good = f;
    while (good && (got = fread(part, 1, sizeof part, f)) > 0)
        good = append(&t->train, &t->trains, part, got);
    good = good && !ferror(f);
    if (f) fclose(f);
    size_t held = (t->trains - before) / 10;
    t->trains -= held;
    return good && (!held || append(&t->held, &t->helds, t->train + t->trains, held));
}

bool text_open(Text *t, char **files, int n, const char **wrong)
{
    *t = (Text){0};
    for (int i = 0; i < n; i++)
        if (!read_file(t, files[i])) return *wrong = files[i], false;
    return true;
}

void text_close(Text *t)
{
    free(t->train), free(t->held);
}

void text_sort(const int32_t *byte, int n, int32_t *order, int32_t offsets[BYTES + 1])
{
    int32_t next[BYTES];
    memset(offsets, 0, (BYTES + 1) * sizeof *offsets);
    for (int i = 0; i < n; i++) offsets[byte[i] + 1]++;
    for (int b = 0; b < BYTES; b++) next[b] = offsets[b], offsets[b + 1] += offsets[b];
    for (int i = 0; i < n; i++) order[next[byte[i]]++] = i;
}
