/* object.h: parts of a relocatable object whose tables elf.c has checked. */
#ifndef TL_OBJECT_H
#define TL_OBJECT_H
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline Elf64_Ehdr tl_object_header(const char *object)
{
    Elf64_Ehdr h;
    memcpy(&h, object, sizeof h);
    return h;
}

/* Section i. */
static inline Elf64_Shdr tl_object_section(const char *object, uint32_t i)
{
    Elf64_Shdr s;
    memcpy(&s, object + tl_object_header(object).e_shoff + i * sizeof s, sizeof s);
    return s;
}

/* The number of the section of that name; 0: none. */
static inline uint32_t tl_object_find(const char *object, const char *name)
{
    Elf64_Ehdr h = tl_object_header(object);
    size_t bytes = strlen(name) + 1;
    if (h.e_shstrndx >= h.e_shnum)
        return 0;
    Elf64_Shdr names = tl_object_section(object, h.e_shstrndx);
    if (names.sh_type != SHT_STRTAB)
        return 0;
    for (uint32_t i = 1; i < h.e_shnum; i++) {
        uint64_t at = tl_object_section(object, i).sh_name;
        if (names.sh_size >= bytes && at <= names.sh_size - bytes &&
            memcmp(object + names.sh_offset + at, name, bytes) == 0)
            return i;
    }
    return 0;
}

/* The first section of that type; 0: none. */
static inline uint32_t tl_object_find_type(const char *object, uint32_t type)
{
    uint32_t i = 1, n = tl_object_header(object).e_shnum;
    while (i < n && tl_object_section(object, i).sh_type != type)
        i++;
    return i < n ? i : 0;
}
#endif
