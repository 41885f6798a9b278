/* Structs of the public headers that begin with a struct_size and grow at their end.
 *
 * A program that was built with an older header passes a shorter struct: what it lacks has its
 * default. One that was built with a newer header passes a longer one: what this library does not
 * know is left alone. A size that holds no member at all was never set. */
#ifndef TL_GROW_H
#define TL_GROW_H
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The smallest struct_size: up to the first member after it. */
#define TL_LEAST_SIZE(type, first) (offsetof(type, first) + sizeof(((type *)0)->first))

static inline size_t tl_struct_size(const void *s)
{
    size_t size;
    memcpy(&size, s, sizeof size);
    return size;
}

/* Copies the members that a caller's struct has over *to, which holds the defaults, and has `size`
 * bytes. false: the caller's struct_size is below `least`, and *to is as before. */
static inline bool tl_struct_take(void *to, size_t size, const void *from, size_t least)
{
    size_t given = tl_struct_size(from);
    if (given < least)
        return false;
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &size, sizeof size);
    return true;
}

/* Copies the members of *from that the caller's struct has room for. Its struct_size, which stays,
 * must have been checked. */
static inline void tl_struct_give(void *to, const void *from, size_t size)
{
    size_t given = tl_struct_size(to), first = sizeof given;
    memcpy((char *)to + first, (const char *)from + first, (given < size ? given : size) - first);
}
#endif
