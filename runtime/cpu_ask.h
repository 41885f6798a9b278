/* cpu_ask.h: the two questions that cpu_level.c puts to a CPU of x86-64. They have a file of their
 * own, so that a test can answer them (test/tools/amx_emulator.c). */
#ifndef TL_CPU_ASK_H
#define TL_CPU_ASK_H
#include <stdbool.h>
#include <stdint.h>

/* cpuid(leaf, sub): eax, ebx, ecx, edx. False: there is no such leaf. */
bool tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4]);
/* The register state that the operating system saves (XCR0); 0 if that is not known. */
uint64_t tl_cpu_saved_state(void);
#endif
