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

/* Warps that run the report's loops: all but those that do nothing but begin copies. */
uint32_t tl_roof_warps(const tilec_report_kernel *k);

/* How often a block of the launch does what is in a loop (-1: outside of all): iterations, times
 * those of the loops around it; `assumed_trips` where they are not known. launch NULL: of any. */
double tl_roof_runs(const tilec_report_kernel *k, const tilec_report_launch *launch, int loop);
/* Instructions of a row, in a program: those of loops as often as these run. */
double tl_roof_executed(const tilec_report_kernel *k, const tilec_report_launch *launch,
                        const tilec_report_mix *mix);
bool tl_roof_loops(const tilec_report_kernel *k); /* has it loops of its own? */
/* Are iterations not known? */
bool tl_roof_assumes(const tilec_report_kernel *k, const tilec_report_launch *launch);

/* Cycles of a multiprocessor for one block, roof by roof; 0 where nothing is known. */
void tl_roofs(const tilec_report_kernel *k, const tl_gpu *rates, const tilec_report_launch *launch,
              double out[TL_ROOF_COUNT]);
/* The same for one iteration of a loop, without the loops inside. */
void tl_roofs_of_trip(const tilec_report_kernel *k, const tl_gpu *rates, int loop,
                      double out[TL_ROOF_COUNT]);
/* Of what `busy` cycles of a block leave of a memory access's latency, the part that other blocks
 * do not hide, if so many are on the multiprocessor at once. */
double tl_roof_exposed(double blocks, double busy);
/* All that of a block whose roofs take `busy` cycles. */
double tl_roof_latency(const tilec_report_kernel *k, const tl_gpu *rates,
                       const tilec_report_launch *launch, double blocks, double busy);

/* A launch on the whole GPU, in microseconds. */
typedef struct TlLaunchTime {
    double us[TL_ROOF_COUNT]; /* the least, roof by roof; of memory: all arrays once */
    double expected;          /* the highest of these, and latencies that nothing hides */
    double at_once;           /* programs on all multiprocessors; 0: not known */
    double in_use;            /* of the multiprocessors' time; 1 if programs fill them evenly */
} TlLaunchTime;
void tl_launch_time(const tilec_report_kernel *k, const tl_gpu *rates,
                    const tilec_report_launch *launch, TlLaunchTime *out);
TlRoof tl_roof_highest(const double roofs[TL_ROOF_COUNT]);
/* The roof in cycles for one instruction of a warp that counts in it; 0: no such unit. */
double tl_roof_of_instruction(const tl_gpu *gpu, TlRoof roof, unsigned lanes);
/* The roof that each instruction counts in: of the issue slots, or of the vector units. */
TlRoof tl_roof_of_issue(const tl_gpu *gpu);
#endif
