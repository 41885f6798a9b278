/* The least time that each part of a multiprocessor needs for a kernel: from the report's facts and
 * the rates of the hardware (runtime/contract/gpu.def). */
#ifndef TL_ROOF_H
#define TL_ROOF_H
#include <stdbool.h>
#ifndef TILE_UNSTABLE
#define TILE_UNSTABLE
#endif
#include "codegen/include/tilec.h"
#include "runtime/contract/gpu_rows.h"

typedef enum TlRoof {
#define ROOF(ID, ...) TL_ROOF_##ID,
#include "codegen/report/roof.def"
    TL_ROOF_COUNT
} TlRoof;

/* What an exchange of the report keeps busy. */
typedef enum TlExchangeKind {
#define KIND(ID, ...) TL_EXCHANGE_##ID,
#include "codegen/report/roof.def"
    TL_EXCHANGE_COUNT
} TlExchangeKind;

const char *tl_exchange_kind_name(TlExchangeKind kind);
const char *tl_exchange_kind_words(TlExchangeKind kind);
const char *tl_roof_name(TlRoof roof);
const char *tl_roof_advice(TlRoof roof);

/* Multiply-adds in a cycle with operands of so many bits: of matrix instructions, if it has any. */
double tl_rates_matrix(const tl_gpu *rates, int bits);

/* How often a block does what is in each loop of the report (trips, times those of the loops around
 * it), and what is outside of all. */
typedef struct TlRuns {
    const double *loops;
    double outside;
} TlRuns;

/* Cycles of a multiprocessor for one block, roof by roof; 0 where nothing is known. */
void tl_roofs(const tilec_report_kernel *k, const tl_gpu *rates, TlRuns runs,
              double out[TL_ROOF_COUNT]);
TlRoof tl_roof_highest(const double roofs[TL_ROOF_COUNT]);
/* The roof in cycles for one instruction of a warp that counts in it; 0: no such unit. */
double tl_roof_of_instruction(const tl_gpu *gpu, TlRoof roof, unsigned lanes);
/* The roof that each instruction counts in: of the issue slots, or of the vector units. */
TlRoof tl_roof_of_issue(const tl_gpu *gpu);
#endif
