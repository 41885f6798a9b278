/* formula.h: numbers of operations and bytes as formulas of sizes: "2*M*N*K" (formula.c). */
#ifndef TL_FORMULA_H
#define TL_FORMULA_H
#include <stdbool.h>
#include <stddef.h>

/* The value of + - * / ( ), numbers and names; sizes: "M=16 N=4096". false: what is wrong is in
 * why[size]. */
bool formula_value(const char *text, const char *sizes, double *out, char *why, size_t size);
#endif
