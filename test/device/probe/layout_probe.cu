/* layout_probe: are the layouts that the code generator takes for granted those of the hardware?
 *
 *     nvcc -std=c++17 -O2 -gencode=arch=compute_90a,code=sm_90a layout_probe.cu -o layout_probe && ./layout_probe
 *
 * On compute capability 9.0, in about a second:
 *   1. wgmma: for f16, tf32, e4m3 and s8, operands in shared memory under every swizzle and, for f16, either
 *      major order, A also from registers. Shared memory is filled by the host with the image that the
 *      descriptor is said to describe, the registers by the fragment formula; the product is compared with one by
 *      hand. Values are small integers, so equality is exact.
 *   2. bulk tensor copies: what a box of each swizzle looks like in shared memory.
 *   3. mma.sync m16n8k16, ldmatrix, stmatrix: which lane holds which element.
 * One line for each check, the last line counts. Exit 1 when one failed. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <vector>

#define TRY(call)                                                                                      \
    do {                                                                                               \
        cudaError_t e_ = (call);                                                                       \
        if (e_ != cudaSuccess) {                                                                       \
            printf("FAIL %s at line %d: %s\n", #call, __LINE__, cudaGetErrorString(e_));               \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (0)

typedef std::vector<uint8_t> Bytes;
static int checks, failures;

static void report(int errors, const char *text)
{
    checks++;
    failures += errors != 0;
    printf("%s %s: %d wrong\n", errors ? "FAIL" : "ok  ", text, errors);
}

template <class T> static T *to_device(const std::vector<T> &v)
{
    T *p;
    TRY(cudaMalloc(&p, v.size() * sizeof(T)));
    TRY(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

template <class T> static std::vector<T> from_device(const T *p, size_t n)
{
    std::vector<T> v(n);
    TRY(cudaDeviceSynchronize());
    TRY(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

/* Swizzle b (0 none, 1 32 bytes, 2 64, 3 128): bits 7 and up of the address are XORed onto bits 4 and up. */
static uint32_t swizzled(uint32_t at, int b)
{
    return at ^ (((at >> 7) & ((1u << b) - 1)) << 4);
}
static const char *const swizzle_names[] = {"none", "32B", "64B", "128B"};
static int span_of(int b) /* bytes of a row of the pattern */
{
    return b ? 16 << b : 16;
}

/* ================================ wgmma m64n128 ================================ */

enum { M = 64, N = 128, STEPS = 4, A_BYTES = 32768, SHARED_BYTES = 65536 };
enum Type { F16, TF32, E4M3, S8, TYPES };
static const char *const type_names[] = {"f16", "tf32", "e4m3", "s8"};
static const int type_bytes[] = {2, 4, 1, 1};
/* K of the whole product: four instructions of 32 bytes along k. */
static int k_of(Type t)
{
    return 128 / type_bytes[t];
}

/* What a descriptor says beside the address: leading and stride byte offsets, swizzle mode. step: where the
 * operand of the n-th instruction starts. */
struct Operand {
    uint32_t lbo, sbo, mode;
    uint32_t step[STEPS];
};

__device__ uint64_t descriptor(uint32_t at, const Operand &o)
{
    return (uint64_t)((at & 0x3FFFF) >> 4) | (uint64_t)((o.lbo & 0x3FFFF) >> 4) << 16 |
           (uint64_t)((o.sbo & 0x3FFFF) >> 4) << 32 | (uint64_t)o.mode << 62;
}

#define D64                                                                                            \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"  \
    "%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,"     \
    "%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
#define D8(c, d, i)                                                                                    \
    c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define ALL64(c, d)                                                                                    \
    D8(c, d, 0), D8(c, d, 8), D8(c, d, 16), D8(c, d, 24), D8(c, d, 32), D8(c, d, 40), D8(c, d, 48),    \
        D8(c, d, 56)
#define A4(r) "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
#define FROM_SHARED(text, tail, c, d, a, b, ...)                                                       \
    asm volatile("wgmma.mma_async.sync.aligned.m64n128" text " " D64 ", %64, %65, 1" tail ";"          \
                 : ALL64(c, d)                                                                         \
                 : "l"(a), "l"(b), ##__VA_ARGS__)
#define FROM_REGISTERS(text, tail, d, r, b, ...)                                                       \
    asm volatile("wgmma.mma_async.sync.aligned.m64n128" text " " D64                                   \
                 ", {%64,%65,%66,%67}, %68, 1" tail ";"                                                \
                 : ALL64("+f", d)                                                                      \
                 : A4(r), "l"(b), ##__VA_ARGS__)

/* One instruction. a_mn, b_mn: the operand lies with m or n innermost. */
template <Type T, bool A_REGISTERS, int A_MN, int B_MN>
__device__ void multiply(float *d, int *di, const uint32_t *r, uint64_t a, uint64_t b)
{
    if constexpr (T == F16 && A_REGISTERS)
        FROM_REGISTERS("k16.f32.f16.f16", ", 1, 1, %69", d, r, b, "n"(B_MN));
    else if constexpr (T == F16)
        FROM_SHARED("k16.f32.f16.f16", ", 1, 1, %66, %67", "+f", d, a, b, "n"(A_MN), "n"(B_MN));
    else if constexpr (T == TF32 && A_REGISTERS)
        FROM_REGISTERS("k8.f32.tf32.tf32", ", 1, 1", d, r, b);
    else if constexpr (T == TF32)
        FROM_SHARED("k8.f32.tf32.tf32", ", 1, 1", "+f", d, a, b);
    else if constexpr (T == E4M3 && A_REGISTERS)
        FROM_REGISTERS("k32.f32.e4m3.e4m3", ", 1, 1", d, r, b);
    else if constexpr (T == E4M3)
        FROM_SHARED("k32.f32.e4m3.e4m3", ", 1, 1", "+f", d, a, b);
    else
        FROM_SHARED("k32.s32.s8.s8", "", "+r", di, a, b);
}

/* A's fragment: register q of a thread holds row + 8 (q & 1), and along k the second half of the instruction's
 * k for q & 2. A is row-major in a_rows. */
template <Type T>
__device__ void load_fragments(const uint8_t *a_rows, uint32_t (*r)[4])
{
    constexpr int bytes = T == F16 ? 2 : T == TF32 ? 4 : 1, per_step = 32 / bytes, k = 128 / bytes;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int step = 0; step < STEPS; step++)
        for (int q = 0; q < 4; q++) {
            int row = 16 * warp + (lane >> 2) + 8 * (q & 1);
            int column = step * per_step + (lane & 3) * (4 / bytes) + per_step / 2 * (q >> 1);
            memcpy(&r[step][q], a_rows + ((size_t)row * k + column) * bytes, 4);
        }
}

template <Type T, bool A_REGISTERS, int A_MN, int B_MN>
__global__ void __launch_bounds__(128, 1)
    product(const uint8_t *a_image, const uint8_t *b_image, Operand oa, Operand ob,
            const uint8_t *a_rows, float *out)
{
    extern __shared__ __align__(1024) uint8_t shared[];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int i = threadIdx.x; i < A_BYTES; i += 128) {
        shared[i] = a_image[i];
        shared[A_BYTES + i] = b_image[i];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    uint32_t a = (uint32_t)__cvta_generic_to_shared(shared), b = a + A_BYTES, r[STEPS][4];
    float d[64];
    int di[64];
    for (int i = 0; i < 64; i++)
        d[i] = 0, di[i] = 0;
    load_fragments<T>(a_rows, r);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int step = 0; step < STEPS; step++)
        multiply<T, A_REGISTERS, A_MN, B_MN>(d, di, r[step], descriptor(a + oa.step[step], oa),
                                            descriptor(b + ob.step[step], ob));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 64; i++) { /* the accumulator's fragment */
        int row = 16 * warp + (lane >> 2) + 8 * ((i >> 1) & 1);
        int column = 8 * (i >> 2) + 2 * (lane & 3) + (i & 1);
        out[row * N + column] = T == S8 ? (float)di[i] : d[i];
    }
}

typedef void (*Product)(const uint8_t *, const uint8_t *, Operand, Operand, const uint8_t *, float *);
static Product product_of(Type t, bool registers, int a_mn, int b_mn)
{
    switch (t) {
    case TF32: return registers ? product<TF32, true, 0, 0> : product<TF32, false, 0, 0>;
    case E4M3: return registers ? product<E4M3, true, 0, 0> : product<E4M3, false, 0, 0>;
    case F16:
        if (registers)
            return b_mn ? product<F16, true, 0, 1> : product<F16, true, 0, 0>;
        if (a_mn)
            return b_mn ? product<F16, false, 1, 1> : product<F16, false, 1, 0>;
        return b_mn ? product<F16, false, 0, 1> : product<F16, false, 0, 0>;
    default: return product<S8, false, 0, 0>;
    }
}

/* rows x k small integers, row-major. */
struct Matrix {
    Type type;
    int rows, k;
    Bytes bytes;
    std::vector<float> values;

    Matrix(Type t, int rows_, uint32_t seed) : type(t), rows(rows_), k(k_of(t))
    {
        int es = type_bytes[t];
        bytes.resize((size_t)rows * k * es);
        for (int i = 0; i < rows * k; i++) {
            seed = seed * 1664525u + 1013904223u;
            int v = (int)((seed >> 24) % 9) - 4;
            values.push_back((float)v);
            uint8_t *p = &bytes[(size_t)i * es];
            half h = __float2half((float)v);
            float f = (float)v;
            __nv_fp8_e4m3 e((float)v);
            int8_t s = (int8_t)v;
            memcpy(p, t == F16 ? (void *)&h : t == TF32 ? (void *)&f : t == E4M3 ? (void *)&e : (void *)&s, es);
        }
    }
};

/* The image in shared memory that a descriptor with swizzle b is said to describe, and that descriptor. */
static Operand place(const Matrix &m, int b, bool mn_major, Bytes &image)
{
    Operand o = {};
    int es = type_bytes[m.type], span = span_of(b), per_span = span / es, per_step = 32 / es;
    image.assign(A_BYTES, 0);
    o.mode = b ? 4 - b : 0;
    if (!mn_major) { /* panels of `span` bytes along k, rows below each other; 8 rows are a core matrix */
        uint32_t panel = m.rows * span;
        o.sbo = b ? 8 * span : 128;
        o.lbo = b ? 16 : 128 * (m.rows / 8);
        for (int row = 0; row < m.rows; row++)
            for (int k = 0; k < m.k; k++) {
                uint32_t in_panel = row * span + k % per_span * es;
                uint32_t at = b ? k / per_span * panel + swizzled(in_panel, b)
                                : row % 8 * 16 + row / 8 * o.sbo + k / per_span * o.lbo + k % per_span * es;
                memcpy(&image[at], &m.bytes[((size_t)row * m.k + k) * es], es);
            }
        for (int s = 0; s < STEPS; s++)
            o.step[s] = b ? s * per_step / per_span * panel + s * per_step % per_span * es : s * 2 * o.lbo;
        return o;
    }
    /* atoms of 8 k by `span` bytes of rows */
    o.sbo = b ? 8 * span : 128 * (m.k / 8);
    o.lbo = b ? 8 * span * (m.k / 8) : 128;
    for (int row = 0; row < m.rows; row++)
        for (int k = 0; k < m.k; k++) {
            uint32_t in_atom = k % 8 * span + row % per_span * es;
            uint32_t at = b ? row / per_span * o.lbo + k / 8 * o.sbo + swizzled(in_atom, b)
                            : row / per_span * o.sbo + k / 8 * o.lbo + in_atom;
            memcpy(&image[at], &m.bytes[((size_t)row * m.k + k) * es], es);
        }
    for (int s = 0; s < STEPS; s++)
        o.step[s] = s * 2 * (b ? o.sbo : o.lbo);
    return o;
}

static int wrong_products(const Matrix &a, const Matrix &b, const float *out)
{
    int wrong = 0;
    std::vector<float> got = from_device(out, M * N);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < a.k; k++)
                sum += a.values[i * a.k + k] * b.values[j * b.k + k];
            wrong += got[i * N + j] != sum;
        }
    return wrong;
}

static void check_product(const Matrix &a, const Matrix &b, bool registers, int a_mn, int a_swizzle,
                          int b_mn, int b_swizzle, float *out)
{
    Bytes a_image, b_image;
    Operand oa = place(a, a_swizzle, a_mn, a_image), ob = place(b, b_swizzle, b_mn, b_image);
    uint8_t *da = to_device(a_image), *db = to_device(b_image), *rows = to_device(a.bytes);
    Product f = product_of(a.type, registers, a_mn, b_mn);
    TRY(cudaFuncSetAttribute((const void *)f, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
    TRY(cudaMemset(out, 0xff, M * N * 4));
    f<<<1, 128, SHARED_BYTES>>>(da, db, oa, ob, rows, out);
    TRY(cudaGetLastError());
    char text[160];
    snprintf(text, sizeof text, "wgmma %s, A in %s %s-major %s, B %s-major %s, offsets A %u/%u B %u/%u",
             type_names[a.type], registers ? "registers" : "shared", a_mn ? "m" : "k",
             swizzle_names[a_swizzle], b_mn ? "n" : "k", swizzle_names[b_swizzle], oa.lbo, oa.sbo, ob.lbo,
             ob.sbo);
    report(wrong_products(a, b, out), text);
    cudaFree(da), cudaFree(db), cudaFree(rows);
}

static void check_products(void)
{
    float *out;
    TRY(cudaMalloc(&out, M * N * 4));
    for (int t = 0; t < TYPES; t++) {
        Matrix a((Type)t, M, 1 + t), b((Type)t, N, 77 + t);
        int orders = t == F16 ? 2 : 1;
        for (int a_mn = 0; a_mn < orders; a_mn++)
            for (int as = 0; as < 4; as++)
                for (int b_mn = 0; b_mn < orders; b_mn++)
                    for (int bs = 0; bs < 4; bs++) {
                        check_product(a, b, false, a_mn, as, b_mn, bs, out);
                        if (t != S8 && a_mn == 0 && as == 3)
                            check_product(a, b, true, a_mn, as, b_mn, bs, out);
                    }
    }
    cudaFree(out);
}

/* ================================ bulk tensor copies ================================ */

__global__ void copy_box(const __grid_constant__ CUtensorMap map, int bytes, uint8_t *out)
{
    extern __shared__ __align__(1024) uint8_t shared[];
    __shared__ __align__(8) uint64_t barrier;
    uint32_t at = (uint32_t)__cvta_generic_to_shared(shared), b = (uint32_t)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(b)
                     : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(at),
                     "l"(&map), "r"(0), "r"(0), "r"(b)
                     : "memory");
    }
    __syncthreads();
    uint32_t done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(b)
                     : "memory");
    for (int i = threadIdx.x; i < bytes; i += blockDim.x)
        out[i] = shared[i];
}

typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                           const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                           CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static void check_copy(Encode encode, int b)
{
    enum { ROWS = 64 };
    int span = span_of(b), columns = span / 2, wrong = 0;
    std::vector<uint16_t> values(ROWS * columns);
    for (size_t i = 0; i < values.size(); i++)
        values[i] = (uint16_t)(i * 7 + 3);
    uint16_t *global = to_device(values);
    uint8_t *out = to_device(Bytes(ROWS * span));
    CUtensorMap map;
    cuuint64_t extents[2] = {(cuuint64_t)columns, ROWS}, strides[1] = {(cuuint64_t)span};
    cuuint32_t box[2] = {(cuuint32_t)columns, ROWS}, steps[2] = {1, 1};
    CUresult r = encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, global, extents, strides, box, steps,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)b, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (r == CUDA_SUCCESS) {
        copy_box<<<1, 128, ROWS * span>>>(map, ROWS * span, out);
        TRY(cudaGetLastError());
        Bytes image = from_device(out, ROWS * span);
        for (int row = 0; row < ROWS; row++)
            for (int c = 0; c < columns; c++)
                wrong += memcmp(&image[swizzled(row * span + 2 * c, b)], &values[row * columns + c], 2) != 0;
    } else {
        wrong = -(int)r;
    }
    char text[80];
    snprintf(text, sizeof text, "bulk copy, swizzle %s", swizzle_names[b]);
    report(wrong, text);
    cudaFree(global), cudaFree(out);
}

static void check_copies(void)
{
    void *p = nullptr;
    cudaDriverEntryPointQueryResult found;
    TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &p, 12000, cudaEnableDefault, &found));
    for (int b = 1; b < 4; b++)
        check_copy((Encode)p, b);
}

/* ================================ mma.sync, ldmatrix, stmatrix ================================ */

__global__ void fragments(const half *a_rows, const half *b_rows, float *out, uint32_t *loaded, uint16_t *stored)
{
    __shared__ __align__(128) half s[16 * 16];
    __shared__ __align__(128) uint16_t t[16 * 16];
    int lane = threadIdx.x;
    uint32_t a[4], b[2];
    float d[4] = {0, 0, 0, 0};
    for (int i = lane; i < 256; i += 32)
        s[i] = a_rows[i];
    __syncwarp();
    uint32_t from = (uint32_t)__cvta_generic_to_shared(&s[(lane & 15) * 16 + (lane >> 4) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(from));
    for (int q = 0; q < 4; q++)
        loaded[lane * 4 + q] = a[q];
    for (int q = 0; q < 2; q++) /* b_rows is [n][k] */
        memcpy(&b[q], &b_rows[(lane >> 2) * 16 + (lane & 3) * 2 + 8 * q], 4);
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; i++)
        out[((lane >> 2) + 8 * (i >> 1)) * 8 + 2 * (lane & 3) + (i & 1)] = d[i];
    uint32_t to = (uint32_t)__cvta_generic_to_shared(&t[(lane & 15) * 16 + (lane >> 4) * 8]);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a[0]), "r"(a[1]),
                 "r"(a[2]), "r"(a[3])
                 : "memory");
    __syncwarp();
    for (int i = lane; i < 256; i += 32)
        stored[i] = t[i];
}

static void check_fragments(void)
{
    std::vector<half> a(256), b(128);
    int products = 0, loads = 0, stores = 0;
    for (int i = 0; i < 256; i++)
        a[i] = __float2half((float)(i % 7 - 3));
    for (int i = 0; i < 128; i++)
        b[i] = __float2half((float)(i % 5 - 2));
    half *da = to_device(a), *db = to_device(b);
    float *out = to_device(std::vector<float>(128));
    uint32_t *loaded = to_device(std::vector<uint32_t>(128));
    uint16_t *stored = to_device(std::vector<uint16_t>(256));
    fragments<<<1, 32>>>(da, db, out, loaded, stored);
    TRY(cudaGetLastError());
    std::vector<float> d = from_device(out, 128);
    std::vector<uint32_t> l = from_device(loaded, 128);
    std::vector<uint16_t> s = from_device(stored, 256);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float sum = 0;
            for (int k = 0; k < 16; k++)
                sum += __half2float(a[i * 16 + k]) * __half2float(b[j * 16 + k]);
            products += sum != d[i * 8 + j];
        }
    for (int lane = 0; lane < 32; lane++)
        for (int q = 0; q < 4; q++) {
            int row = (lane >> 2) + 8 * (q & 1), k = 2 * (lane & 3) + 8 * (q >> 1);
            loads += memcmp(&l[lane * 4 + q], &a[row * 16 + k], 4) != 0;
        }
    for (int i = 0; i < 256; i++)
        stores += memcmp(&s[i], &a[i], 2) != 0;
    report(products, "mma.sync m16n8k16");
    report(loads, "ldmatrix x4");
    report(stores, "stmatrix x4");
    cudaFree(da), cudaFree(db), cudaFree(out), cudaFree(loaded), cudaFree(stored);
}

int main()
{
    check_products();
    check_copies();
    check_fragments();
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0;
}
