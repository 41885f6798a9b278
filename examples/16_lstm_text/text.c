#include "text.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool append(uint8_t **to, size_t *n, const uint8_t *from, size_t more)
{
    uint8_t *grown = realloc(*to, *n + more + 1);
    if (!grown) return false;
    if (more) memcpy(grown + *n, from, more);
    *to = grown;
    *n += more;
    return true;
}

/* All bytes of a file; NULL: errno says why. */
static uint8_t *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    uint8_t *all = NULL, part[1 << 16];
    size_t got;
    bool good = f;
    *n = 0;
    while (good && (got = fread(part, 1, sizeof part, f)) > 0) good = append(&all, n, part, got);
    if (good && !all) good = append(&all, n, part, 0);
    if (f && ferror(f)) good = false;
    if (f) fclose(f);
    if (!good) free(all);
    return good ? all : NULL;
}

bool text_open(Text *t, char **files, int n)
{
    *t = (Text){0};
    for (int i = 0; i < n; i++) {
        size_t bytes, most;
        uint8_t *all = slurp(files[i], &bytes);
        most = all ? bytes - bytes / 10 : 0;
        bool good = all && append(&t->train, &t->trains, all, most) &&
                    append(&t->held, &t->helds, all + most, bytes - most);
        free(all);
        if (!good) {
            fprintf(stderr, "16_lstm_text: %s: %s\n", files[i], strerror(errno));
            return false;
        }
    }
    return true;
}

void text_close(Text *t)
{
    free(t->train), free(t->held);
}

/* Steele, Lea and Flood 2014: splitmix64. */
uint64_t text_random(uint64_t seed, uint64_t i)
{
    uint64_t z = (seed + 1) * 0xD1342543DE82EF95u + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

double text_uniform(uint64_t seed, uint64_t i)
{
    return (double)(text_random(seed, i) >> 11) * 0x1p-53;
}
