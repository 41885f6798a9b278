/* What LLVM goes by when it names the CPU and lists its features, so that machines can be told
 * apart. */
#include "codegen/cache/key.h"
#include "runtime/contract/cpu_state.h"

#if defined(__x86_64__)

#include <cpuid.h>

/* Leaves and the registers of each (bit 0: eax, ... bit 3: edx) that are the same on every core. */
static const struct Leaf {
    unsigned leaf, sub, registers;
} LEAVES[] = {
    {0, 0, 15},        /* vendor; the highest leaf */
    {1, 0, 1 | 4 | 8}, /* family, model, stepping, features; not ebx: the number of the core */
    {7, 0, 15},
    {7, 1, 15},
    {0xd, 1, 1},
    {0x14, 0, 2},
    {0x19, 0, 2},
    {0x24, 0, 2},
    {0x80000001, 0, 4 | 8},
    {0x80000008, 0, 2},
};

void tl_key_machine(TlSbuf *key)
{
    unsigned words[4 * (sizeof LEAVES / sizeof *LEAVES) + 2] = {0}, n = 0;
    for (size_t i = 0; i < sizeof LEAVES / sizeof *LEAVES; i++) {
        unsigned r[4] = {0};
        __get_cpuid_count(LEAVES[i].leaf, LEAVES[i].sub, &r[0], &r[1], &r[2], &r[3]);
        for (int k = 0; k < 4; k++)
            words[n++] = LEAVES[i].registers >> k & 1 ? r[k] : 0;
    }
    uint64_t state = tl_cpu_permitted(tl_key_saved_state());
    words[n++] = (unsigned)state;
    words[n++] = (unsigned)(state >> 32);
    tl_key_hash(key, "machine", words, sizeof words);
}

#else

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

/* The features that the kernel tells, and the lines of /proc/cpuinfo that name implementer and
 * part. */
void tl_key_machine(TlSbuf *key)
{
    TlSbuf words;
    char line[256];
    tl_sbuf_init(&words, key->arena);
    tl_sbuf_putf(&words, "%lx %lx\n", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && words.len < 1 << 16 && fgets(line, sizeof line, f))
        if (!strncmp(line, "CPU ", 4))
            tl_sbuf_puts(&words, line);
    if (f)
        fclose(f);
    tl_key_hash(key, "machine", words.text, words.len);
}

#endif
