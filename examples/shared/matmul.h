/* Products in plain C: for speed in float, as the truth in double. */
#include <stdbool.h>
#include <stddef.h>

#define PLAIN(name, real)                                                                         \
    static __attribute__((noinline)) void name(size_t rows, size_t cols, size_t depth,            \
                                               const float *a, const float *b, real *c,           \
                                               bool relu)                                         \
    {                                                                                             \
        for (size_t i = 0; i < rows; i++, a += depth, c += cols) {                                \
            for (size_t j = 0; j < cols; j++) c[j] = 0;                                           \
            for (size_t l = 0; l < depth; l++)                                                    \
                for (size_t j = 0; j < cols; j++) c[j] += (real)a[l] * b[l * cols + j];           \
            for (size_t j = 0; relu && j < cols; j++) c[j] = c[j] > 0 ? c[j] : 0;                 \
        }                                                                                         \
    }
PLAIN(plain, float)
PLAIN(exact, double)
