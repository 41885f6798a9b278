/* dwarf_lines.h: which line each address of a loaded object's code is of (dwarf_lines.c). */
#ifndef TL_DWARF_LINES_H
#define TL_DWARF_LINES_H
#include <stddef.h>
#include <stdint.h>

typedef struct tl_line {
    uint64_t address; /* the code from here to the next row's address ... */
    uint32_t line;    /* ... is of this line; 0: of none */
    uint32_t column;
    const char *directory; /* "": none, or the file's path is whole; both live in the object */
    const char *file;
} tl_line;

/* The rows of a relocatable object's line table (DWARF 2 to 4; our compiler writes 4), in the order
 * of the table, for an object whose section i was loaded to address[i] (0: it was not). Allocated
 * with malloc. Where the table ends or is damaged, so do the rows. 0 rows and NULL: no table,
 * another version, or no memory. */
uint32_t tl_dwarf_lines(const char *object, const uint64_t *address, tl_line **out_lines);
#endif
