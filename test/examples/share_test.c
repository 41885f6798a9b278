/* share_test.c: 15_train_gpt/share.c by two ranks on stubs of the GPU's driver and of NCCL.
 *
 *     mpirun -n 2 share_test [LIBRARY] [short]    "short": the second rank gives fewer numbers
 *
 * Each rank prints "rank R on NAME: the sum is right", or what went wrong. */
#include "examples/15_train_gpt/ranks.h"
#include "examples/15_train_gpt/share.h"
#include <stdio.h>
#include <string.h>

enum { N = 1000 };

static float number(int rank, int i) { return (float)((rank + 1) * (i % 61)) / 8; }

/* Sums twice: the second sum is that of the first ones. */
static bool right(tile_buffer *b, bool shorter)
{
    float x[N], sum;
    for (int i = 0; i < N; i++) x[i] = number(ranks_me(), i);
    if (tile_buffer_upload(b, 0, x, sizeof x, NULL)) return false;
    for (int turn = 0; turn < 2; turn++)
        if (!share_sum(b, N - (shorter && ranks_me() == 1))) return false;
    if (tile_buffer_download(b, 0, x, sizeof x, NULL)) return false;
    for (int i = 0; i < N; i++) {
        sum = 0;
        for (int r = 0; r < ranks_count(); r++) sum += number(r, i);
        if (x[i] != sum * (float)ranks_count()) return printf("number %d is wrong\n", i), false;
    }
    return true;
}

/* Parts of the numbers from 64 on are summed beside the stream, and gathered. */
static bool parts_right(tile_buffer *b)
{
    enum { AT = 64, PART = 128 };
    float x[N];
    int n = PART * ranks_count();
    for (int i = 0; i < N; i++) x[i] = number(ranks_me(), i);
    if (tile_buffer_upload(b, 0, x, sizeof x, NULL) || !share_begin(b, AT, (size_t)n) ||
        !share_end() || !share_gather(b, TILE_F32, AT, (size_t)n) ||
        tile_buffer_download(b, 0, x, sizeof x, NULL))
        return false;
    for (int i = 0; i < N; i++) {
        float sum = i >= AT && i < AT + n ? 0 : number(ranks_me(), i);
        for (int r = 0; i >= AT && i < AT + n && r < ranks_count(); r++) sum += number(r, i);
        if (x[i] != sum) return printf("number %d of a part is wrong\n", i), false;
    }
    return true;
}

int main(int argc, char **argv)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_buffer *b = NULL;
    const char *library = argc > 1 && strcmp(argv[1], "default") ? argv[1] : NULL;
    bool good = true;
    ranks_open();
    good = share_device() && !tile_device_get_info(NULL, &info) &&
           !tile_buffer_alloc(NULL, N * sizeof(float), &b);
    good = good && share_open(library) && right(b, argc > 2) && (argc > 2 || parts_right(b));
    printf("rank %d on %s: %s\n", ranks_me(), info.name,
           good ? "the sum is right" : tile_last_error());
    fflush(stdout); /* once a rank has failed, mpirun may end the others */
    tile_buffer_free(b);
    share_close();
    ranks_close();
    return !good;
}
