/* PoCL: the kernels of plain.cl, on memory of the host. */
#define CL_TARGET_OPENCL_VERSION 120
#include "contender.h"
#include <CL/cl.h>

enum { ROW_LANES = 64, MAX_SOURCE = 1 << 16 };

static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_kernel kernel;
static cl_mem buffers[CONTENDER_INPUTS + 1];
static int nbuffers;
static size_t global_[2], local_[2];
static int rank;
static bool has_local;

static bool is_pocl(cl_platform_id p)
{
    char name[256] = "";
    clGetPlatformInfo(p, CL_PLATFORM_NAME, sizeof name, name, NULL);
    return strstr(name, "Portable Computing Language") != NULL;
}

static bool build(cl_device_id device)
{
    static char text[MAX_SOURCE];
    FILE *f = fopen(PLAIN_CL, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    const char *source = text;
    program = clCreateProgramWithSource(context, 1, &source, &n, NULL);
    return clBuildProgram(program, 1, &device, "-cl-fast-relaxed-math", NULL, NULL) == CL_SUCCESS ||
           refuse("PoCL does not compile plain.cl");
}

static bool open_device(void)
{
    if (program)
        return true;
    cl_platform_id platforms[8];
    cl_device_id device;
    cl_uint n = 0;
    if (clGetPlatformIDs(8, platforms, &n) != CL_SUCCESS)
        return refuse("no OpenCL platform");
    for (cl_uint i = 0; i < n && i < 8; i++)
        if (is_pocl(platforms[i]) &&
            clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, NULL) == CL_SUCCESS) {
            context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
            queue = clCreateCommandQueue(context, device, 0, NULL);
            return build(device);
        }
    return refuse("no PoCL");
}

static bool get(const char *name)
{
    if (!open_device())
        return false;
    for (int i = 0; i < nbuffers; i++) clReleaseMemObject(buffers[i]);
    nbuffers = 0;
    if (kernel)
        clReleaseKernel(kernel);
    kernel = clCreateKernel(program, name, NULL);
    return kernel ? true : refuse("not in plain.cl");
}

static void give(void *data, size_t floats_)
{
    int i = nbuffers++;
    buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, floats_ * 4,
                                data, NULL);
    clSetKernelArg(kernel, (cl_uint)i, sizeof buffers[i], &buffers[i]);
}

static void run(void)
{
    if (clEnqueueNDRangeKernel(queue, kernel, (cl_uint)rank, NULL, global_,
                               has_local ? local_ : NULL, 0, NULL, NULL) != CL_SUCCESS ||
        clFinish(queue) != CL_SUCCESS) {
        fprintf(stderr, "PoCL failed\n");
        exit(1);
    }
}

static bool over(int n, long x, long y)
{
    rank = n, has_local = false;
    global_[0] = (size_t)x, global_[1] = (size_t)y;
    return true;
}
static bool over_rows(void)
{
    cl_int n = (cl_int)arg[1];
    clSetKernelArg(kernel, (cl_uint)nbuffers, sizeof n, &n);
    rank = 1, has_local = true;
    global_[0] = (size_t)arg[0] * ROW_LANES, local_[0] = ROW_LANES;
    return true;
}

static bool prepare_add(void)
{
    size_t n = (size_t)arg[0];
    if (!get("add"))
        return false;
    give(floats(0, n, -1, 1), n), give(floats(1, n, -1, 1), n), give(result(n), n);
    return over(1, arg[0], 0);
}
static bool prepare_gelu(void)
{
    size_t n = (size_t)arg[0];
    if (!get("gelu"))
        return false;
    give(floats(0, n, -4, 4), n), give(result(n), n);
    return over(1, arg[0], 0);
}
static bool prepare_black_scholes(void)
{
    size_t n = (size_t)arg[0];
    if (!get("black_scholes"))
        return false;
    give(floats(0, n, 5, 30), n), give(floats(1, n, 1, 100), n);
    give(floats(2, n, 0.25f, 10), n), give(result(2 * n), 2 * n);
    return over(1, arg[0], 0);
}
static bool prepare_mandelbrot(void)
{
    size_t n = (size_t)(arg[0] * arg[1]);
    cl_int most = (cl_int)arg[2];
    if (!get("mandelbrot"))
        return false;
    give(int_result(n), n);
    clSetKernelArg(kernel, 1, sizeof most, &most);
    return over(2, arg[0], arg[1]);
}
static bool prepare_softmax(void)
{
    size_t n = (size_t)(arg[0] * arg[1]);
    if (!get("softmax"))
        return false;
    give(floats(0, n, -4, 4), n), give(result(n), n);
    return over_rows();
}
static bool prepare_layer_norm(void)
{
    size_t n = (size_t)(arg[0] * arg[1]), c = (size_t)arg[1];
    if (!get("layer_norm"))
        return false;
    give(floats(0, n, -4, 4), n), give(floats(1, c, 0.5f, 1.5f), c);
    give(floats(2, c, -1, 1), c), give(result(n), n);
    return over_rows();
}
static bool prepare_rms_norm(void)
{
    size_t n = (size_t)(arg[0] * arg[1]), c = (size_t)arg[1];
    if (!get("rms_norm"))
        return false;
    give(floats(0, n, -4, 4), n), give(floats(1, c, 0.5f, 1.5f), c), give(result(n), n);
    return over_rows();
}
static bool prepare_sums(void)
{
    size_t n = (size_t)(arg[0] * arg[1]), r = (size_t)arg[0];
    if (!get("sums"))
        return false;
    give(floats(0, n, -4, 4), n), give(result(r), r);
    return over_rows();
}
static bool prepare_transpose(void)
{
    size_t n = (size_t)(arg[0] * arg[1]);
    if (!get("transpose"))
        return false;
    give(floats(0, n, -1, 1), n), give(result(n), n);
    return over(2, arg[1], arg[0]);
}
static bool prepare_stencil(void)
{
    size_t n = (size_t)(arg[0] * arg[1]), m = (size_t)((arg[0] + 2) * (arg[1] + 2));
    if (!get("stencil"))
        return false;
    give(floats(0, m, -1, 1), m), give(result(n), n);
    return over(2, arg[1], arg[0]);
}

const Work works[] = {
    {"add", prepare_add, run},
    {"gelu", prepare_gelu, run},
    {"black_scholes", prepare_black_scholes, run},
    {"mandelbrot", prepare_mandelbrot, run},
    {"softmax", prepare_softmax, run},
    {"layer_norm", prepare_layer_norm, run},
    {"rms_norm", prepare_rms_norm, run},
    {"sums", prepare_sums, run},
    {"transpose", prepare_transpose, run},
    {"stencil", prepare_stencil, run},
};
const size_t nworks = sizeof works / sizeof *works;
