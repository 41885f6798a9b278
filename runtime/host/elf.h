/* elf.h: our own loader of relocatable objects (elf.c). */
#ifndef TL_ELF_H
#define TL_ELF_H
#include "runtime/driver.h"

typedef struct tl_elf tl_elf;

enum { TL_ELF_X86_64 = 62, TL_ELF_AARCH64 = 183 };
#if defined(__aarch64__)
enum { TL_ELF_HOST = TL_ELF_AARCH64 };
#else
enum { TL_ELF_HOST = TL_ELF_X86_64 };
#endif

/* What an undefined name means: a function outside the object, at any distance. */
typedef struct tl_elf_symbol {
    const char *name;
    void (*address)(void);
} tl_elf_symbol;

/* Loads a relocatable object of `machine` and finds the function or datum `symbol` in it. `object`
 * may go afterwards. known: what undefined names are looked up in, nknown rows (NULL, 0: none).
 * TILE_BAD_IMAGE: malformed, of another machine, with something undefined that is not known, or
 * with a relocation that we do not know. */
tile_status tl_elf_load(const void *object, size_t size, int machine, const tl_elf_symbol *known,
                        size_t nknown, const char *symbol, tl_elf **out_elf, void **out_address);
void tl_elf_free(tl_elf *elf); /* accepts NULL */
#endif
