/* The least time that each part of a multiprocessor needs for a kernel: from the report's facts and
 * the rates of the hardware (units.def, runtime/tune/model.def). */
#ifndef TL_ROOF_H
#define TL_ROOF_H
#include <stdbool.h>
#ifndef TILE_UNSTABLE
#define TILE_UNSTABLE
#endif
#include "codegen/include/tilec.h"

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

/* A row of model.def. */
typedef struct TlRates {
    const char *target;
    int sms;
    double ghz, memory, cache, matrix8, matrix16, matrix32, matrix64, fma, slots;
} TlRates;
const TlRates *tl_rates_find(const char *target); /* NULL: nothing is known of it */
/* Multiply-adds in a cycle with operands of so many bits: of matrix instructions, if it has any. */
double tl_rates_matrix(const TlRates *rates, int bits);

/* How often a block does what is in each loop of the report (trips, times those of the loops around
 * it), and what is outside of all. */
typedef struct TlRuns {
    const double *loops;
    double outside;
} TlRuns;

/* Cycles of a multiprocessor for one block, roof by roof; 0 where nothing is known. */
void tl_roofs(const tilec_report_kernel *k, const TlRates *rates, TlRuns runs,
              double out[TL_ROOF_COUNT]);
TlRoof tl_roof_highest(const double roofs[TL_ROOF_COUNT]);
/* The roof in cycles for one instruction of a warp that counts in it; 0: no such unit. */
double tl_roof_of_instruction(const char *target, TlRoof roof, unsigned lanes);
/* The roof that each instruction counts in: of the issue slots, or of the vector units. */
TlRoof tl_roof_of_issue(const char *target);
/* The row SLOWER of a target; 1: there is none, and the texts are not set. */
double tl_roof_share(const char *target, const char **out_what, const char **out_help);
#endif
