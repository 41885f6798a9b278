/* A plugin: a kernel that was compiled ahead of time, on the default stream and on one of its own,
 * which it leaves as they are. */
#include "half.h"

int work(float *x, float *y, int n)
{
    static tile_stream *stream;
    int status = half(NULL, x, y, n);
    if (!status && !stream)
        status = tile_stream_create(NULL, &stream);
    if (!status)
        status = half(stream, y, y + n, n);
    return status ? status : tile_stream_synchronize(stream);
}
