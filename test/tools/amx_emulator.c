/* AMX for CPUs that have none: linked into a second tilec (test/CMakeLists.txt), it catches SIGILL,
 * reads the instruction as the CPU would, and does what Intel's manual says of it, on tiles of the
 * thread in memory. The linker's --wrap gives it the questions that compiler and runtime put to the
 * machine, and it answers that there are tiles: neither knows of it.
 *
 * It is stricter than a CPU needs to be. It ends the process, with status 99, when an instruction
 * would fault, when a system call or the end of a thread or of the process finds tiles that were
 * not given back, and when the data of tiles were not asked for.
 *
 * TILE_AMX=refuse  Linux does not permit tiles
 * TILE_AMX=say     at the end, to stderr: how many of each instruction were executed */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "runtime/contract/cpu_state.h"
#include "runtime/cpu_ask.h"

enum { TILES = 8, ROWS = 16, BYTES = 64, WORDS = BYTES / 4, FAULT = 99 };

typedef struct State {
    bool set; /* sizes */
    uint8_t rows[TILES];
    uint16_t bytes[TILES]; /* of a row */
    uint8_t data[TILES][ROWS][BYTES];
} State;

static _Thread_local State state;
static atomic_bool asked;

/* ---- what is counted ---- */

enum { LDTILECFG, TILERELEASE, TILEZERO, TILELOADD, TILESTORED, TDP_I8, TDPBF16PS, INSNS };
static const char *const INSN_NAMES[INSNS] = {"ldtilecfg",  "tilerelease", "tilezero", "tileloadd",
                                              "tilestored", "tdpb..d",     "tdpbf16ps"};
static atomic_ulong counts[INSNS];

static _Noreturn void fault(const char *what)
{
    static const char BEGIN[] = "amx_emulator: ";
    (void)!write(2, BEGIN, sizeof BEGIN - 1);
    (void)!write(2, what, strlen(what));
    (void)!write(2, "\n", 1);
    _exit(FAULT);
}

static void want(bool holds, const char *what)
{
    if (!holds)
        fault(what);
}

/* ---- instructions ---- */

static void set_sizes(const uint8_t *p)
{
    enum { KIND = 1, FIRST_ROW = 16, FIRST_ROWS = 48 };
    want(atomic_load(&asked), "tiles without permission");
    want(p[0] == KIND && p[1] == 0, "ldtilecfg: kind or first row");
    for (int i = 2; i < FIRST_ROW; i++)
        want(!p[i], "ldtilecfg: reserved bytes");
    memset(&state, 0, sizeof state);
    for (int i = 0; i < ROWS; i++) {
        uint16_t bytes = (uint16_t)(p[FIRST_ROW + 2 * i] | p[FIRST_ROW + 2 * i + 1] << 8);
        uint8_t rows = p[FIRST_ROWS + i];
        want(rows <= ROWS && bytes <= BYTES && !rows == !bytes, "ldtilecfg: a tile's size");
        want(i < TILES || !rows, "ldtilecfg: more than 8 tiles");
        if (i < TILES) {
            state.rows[i] = rows;
            state.bytes[i] = bytes;
        }
    }
    state.set = true;
}

static void want_tile(int n)
{
    want(state.set && n < TILES && state.rows[n], "a tile without a size");
}

static void load(int n, const uint8_t *p, int64_t stride)
{
    want_tile(n);
    memset(state.data[n], 0, sizeof state.data[n]);
    for (int i = 0; i < state.rows[n]; i++)
        memcpy(state.data[n][i], p + i * stride, state.bytes[n]);
}

static void store(int n, uint8_t *p, int64_t stride)
{
    want_tile(n);
    for (int i = 0; i < state.rows[n]; i++)
        memcpy(p + i * stride, state.data[n][i], state.bytes[n]);
}

static void want_product(int c, int a, int b)
{
    want_tile(c), want_tile(a), want_tile(b);
    want(c != a && c != b && a != b, "a product of a tile and itself");
    want(state.rows[c] == state.rows[a] && state.bytes[c] == state.bytes[b] &&
             state.bytes[a] == 4 * state.rows[b] && state.bytes[c] % 4 == 0,
         "tiles whose sizes do not fit");
}

static int part(uint8_t byte, bool is_signed)
{
    return is_signed ? (int8_t)byte : byte;
}

static void multiply_bytes(int c, int a, int b, bool a_signed, bool b_signed)
{
    want_product(c, a, b);
    for (int m = 0; m < state.rows[c]; m++)
        for (int n = 0; n < state.bytes[c] / 4; n++) {
            uint32_t sum;
            memcpy(&sum, &state.data[c][m][4 * n], sizeof sum);
            for (int k = 0; k < state.bytes[a]; k++)
                sum += (uint32_t)(part(state.data[a][m][k], a_signed) *
                                  part(state.data[b][k / 4][4 * n + k % 4], b_signed));
            memcpy(&state.data[c][m][4 * n], &sum, sizeof sum);
        }
}

static float bf16(const uint8_t *p)
{
    uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 24;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Even and odd elements are summed apart, by fused multiply-adds, and both sums added at the end;
 * subnormal numbers are zeros everywhere. */
__attribute__((target("fma"))) static void multiply_bf16(int c, int a, int b)
{
    enum { ZEROS_OF_SUBNORMALS = 0x8040 };
    want_product(c, a, b);
    unsigned before = _mm_getcsr();
    _mm_setcsr(_MM_MASK_MASK | ZEROS_OF_SUBNORMALS);
    for (int m = 0; m < state.rows[c]; m++)
        for (int n = 0; n < state.bytes[c] / 4; n++) {
            volatile float sum[2] = {0, 0}, all; /* or the loop would move before the state */
            memcpy((void *)&all, &state.data[c][m][4 * n], sizeof all);
            for (int k = 0; k < state.bytes[a] / 2; k++)
                sum[k % 2] =
                    __builtin_fmaf(bf16(&state.data[a][m][2 * k]),
                                   bf16(&state.data[b][k / 2][4 * n + 2 * (k % 2)]), sum[k % 2]);
            all += sum[0] + sum[1];
            memcpy(&state.data[c][m][4 * n], (const void *)&all, sizeof all);
        }
    _mm_setcsr(before);
}

/* ---- reading an instruction ---- */

typedef struct Insn {
    const uint8_t *at; /* behind what was read */
    int prefix, map, opcode, v, mod, reg, rm;
    bool wide, r, x, b;
} Insn;

enum { NONE, P66, PF3, PF2 }; /* prefixes, as VEX writes them */

static int64_t register_of(const ucontext_t *u, int n)
{
    static const int ORDER[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
    return u->uc_mcontext.gregs[ORDER[n]];
}

static int64_t displacement(Insn *i, int bytes)
{
    int32_t far;
    int64_t near = (int8_t)*i->at;
    memcpy(&far, i->at, sizeof far);
    i->at += bytes;
    return bytes == 4 ? far : near;
}

/* The operand in memory; *stride: the index, times its scale, which tiles take as what lies between
 * rows. */
static uint8_t *address(Insn *i, const ucontext_t *u, int64_t *stride)
{
    int base = i->rm;
    bool has_sib = i->rm == 4;
    *stride = 0;
    if (has_sib) {
        int sib = *i->at++, index = (sib >> 3 & 7) | i->x << 3;
        base = sib & 7;
        if (index != 4)
            *stride = register_of(u, index) * (1 << (sib >> 6));
    }
    if (i->mod == 0 && base == 5) {
        int64_t by = displacement(i, 4);
        return (uint8_t *)(has_sib ? by : (int64_t)i->at + by);
    }
    int64_t p = register_of(u, base | i->b << 3);
    if (i->mod)
        p += displacement(i, i->mod == 1 ? 1 : 4);
    return (uint8_t *)p;
}

static bool read_insn(Insn *i, const uint8_t *p)
{
    enum { VEX3 = 0xc4 };
    if (p[0] != VEX3)
        return false;
    *i = (Insn){.at = p + 5,
                .r = !(p[1] & 0x80),
                .x = !(p[1] & 0x40),
                .b = !(p[1] & 0x20),
                .map = p[1] & 31,
                .wide = p[2] >> 7,
                .v = ~(p[2] >> 3) & 15,
                .prefix = p[2] & 3,
                .opcode = p[3],
                .mod = p[4] >> 6,
                .reg = p[4] >> 3 & 7,
                .rm = p[4] & 7};
    return i->map == 2 && !i->wide && !(p[2] & 4);
}

/* ---- running it ---- */

static int run_config(Insn *i, const ucontext_t *u)
{
    int64_t index;
    if (i->prefix == NONE && i->mod == 3 && i->reg == 0 && i->rm == 0) {
        memset(&state, 0, sizeof state);
        return TILERELEASE;
    }
    if (i->prefix == NONE && i->mod != 3 && i->reg == 0) {
        uint8_t *p = address(i, u, &index);
        set_sizes(p + index);
        return LDTILECFG;
    }
    if (i->prefix == PF2 && i->mod == 3 && i->rm == 0) {
        want_tile(i->reg);
        memset(state.data[i->reg], 0, sizeof state.data[i->reg]);
        return TILEZERO;
    }
    return INSNS;
}

static int run_access(Insn *i, const ucontext_t *u)
{
    int64_t stride;
    if (i->prefix == NONE || i->mod == 3 || i->rm != 4)
        return INSNS;
    uint8_t *p = address(i, u, &stride);
    if (i->prefix == PF3)
        store(i->reg, p, stride);
    else
        load(i->reg, p, stride);
    return i->prefix == PF3 ? TILESTORED : TILELOADD;
}

static int run_bytes(const Insn *i)
{
    multiply_bytes(i->reg, i->rm, i->v, i->prefix == PF2 || i->prefix == PF3,
                   i->prefix == PF2 || i->prefix == P66);
    return TDP_I8;
}

/* Which one it was; INSNS: none of ours. */
static int run(Insn *i, const ucontext_t *u)
{
    enum { CONFIG = 0x49, ACCESS = 0x4b, BF16 = 0x5c, INT8 = 0x5e };
    if (i->opcode == CONFIG)
        return run_config(i, u);
    if (i->opcode == ACCESS)
        return run_access(i, u);
    if (i->opcode == INT8 && i->mod == 3)
        return run_bytes(i);
    if (i->opcode != BF16 || i->prefix != PF3 || i->mod != 3)
        return INSNS;
    multiply_bf16(i->reg, i->rm, i->v);
    return TDPBF16PS;
}

static void on_illegal(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number, (void)info;
    ucontext_t *u = context;
    Insn i;
    const uint8_t *at = (const uint8_t *)u->uc_mcontext.gregs[REG_RIP];
    int which = read_insn(&i, at) ? run(&i, u) : INSNS;
    if (which == INSNS) {
        signal(SIGILL, SIG_DFL); /* again, and then it ends the process */
        return;
    }
    atomic_fetch_add(&counts[which], 1);
    u->uc_mcontext.gregs[REG_RIP] = (long long)(uintptr_t)i.at;
}

/* ---- begin and end ---- */

static const char *mode(void)
{
    const char *mode = getenv("TILE_AMX");
    return mode ? mode : "";
}

static void at_end(void)
{
    want(!state.set, "the process ends with tiles");
    for (int i = 0; i < INSNS && strcmp(mode(), "say") == 0; i++)
        fprintf(stderr, "%s%s %lu%s", i ? ", " : "amx: ", INSN_NAMES[i], atomic_load(&counts[i]),
                i + 1 < INSNS ? "" : "\n");
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction act = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&act.sa_mask);
    sigaction(SIGILL, &act, NULL);
    atexit(at_end);
}

/* ---- what the machine answers; names are the linker's ---- */

bool __real_tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4]);
bool __wrap_tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4]);
uint64_t __real_tl_cpu_saved_state(void);
uint64_t __wrap_tl_cpu_saved_state(void);
uint64_t __real_tl_key_saved_state(void);
uint64_t __wrap_tl_key_saved_state(void);
char *LLVMCreateMessage(const char *text);
void LLVMDisposeMessage(char *text);
char *__real_LLVMGetHostCPUFeatures(void);
char *__wrap_LLVMGetHostCPUFeatures(void);
char *__wrap_LLVMGetHostCPUName(void);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __real_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);

bool __wrap_tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
    enum { LEAF = 7, EDX = 3, BF16 = 1 << 22, TILE = 1 << 24, INT8 = 1 << 25 };
    bool has = __real_tl_cpu_ask(leaf, sub, out);
    if (has && leaf == LEAF && sub == 0)
        out[EDX] |= BF16 | TILE | INT8;
    return has;
}

/* Sizes of tiles and their data. */
static const uint64_t saved = TL_CPU_ASKED_STATE | TL_CPU_ASKED_STATE >> 1;

uint64_t __wrap_tl_cpu_saved_state(void)
{
    return __real_tl_cpu_saved_state() | saved;
}

uint64_t __wrap_tl_key_saved_state(void)
{
    return __real_tl_key_saved_state() | saved;
}

char *__wrap_LLVMGetHostCPUFeatures(void)
{
    char *all = __real_LLVMGetHostCPUFeatures(), text[8192];
    snprintf(text, sizeof text, "%s,+amx-bf16,+amx-tile,+amx-int8", all);
    LLVMDisposeMessage(all);
    return LLVMCreateMessage(text);
}

char *__wrap_LLVMGetHostCPUName(void)
{
    return LLVMCreateMessage("sapphirerapids");
}

long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number != SYS_arch_prctl || a[0] != TL_CPU_ASK_FOR_STATE) {
        want(!state.set, "a system call with tiles");
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    want(a[1] == TL_CPU_TILE_DATA, "another state is asked for");
    bool refuses = strcmp(mode(), "refuse") == 0;
    atomic_store(&asked, !refuses);
    return refuses ? -1 : 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    want(!state.set, "a thread waits with tiles");
    return __real_pthread_cond_wait(c, m);
}
