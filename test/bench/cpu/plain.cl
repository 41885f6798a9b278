// The same works in OpenCL C, for PoCL: a work-item per element, a work-group per row.
kernel void add(global const float *a, global const float *b, global float *y)
{
    size_t i = get_global_id(0);
    y[i] = a[i] + b[i];
}

kernel void gelu(global const float *a, global float *y)
{
    size_t i = get_global_id(0);
    y[i] = 0.5f * a[i] * (1 + erf(a[i] * 0.70710678f));
}

float normal(float x) { return 0.5f * erfc(-x * 0.70710678f); }

kernel void black_scholes(global const float *s, global const float *k, global const float *t,
                          global float *y)
{
    size_t i = get_global_id(0), n = get_global_size(0);
    float root = sqrt(t[i]);
    float d1 = (log(s[i] / k[i]) + (0.02f + 0.5f * 0.3f * 0.3f) * t[i]) / (0.3f * root);
    float d2 = d1 - 0.3f * root, worth = k[i] * exp(-0.02f * t[i]);
    y[i] = s[i] * normal(d1) - worth * normal(d2);
    y[n + i] = worth * normal(-d2) - s[i] * normal(-d1);
}

kernel void mandelbrot(global int *y, int most)
{
    int i = get_global_id(0), j = get_global_id(1);
    int w = get_global_size(0), h = get_global_size(1);
    float cx = -2 + 3 * (float)i / (float)w, cy = -1 + 2 * (float)j / (float)h;
    float zx = cx, zy = cy;
    int n = 0;
    for (; n < most && zx * zx + zy * zy <= 4; n++) {
        float t = zx * zx - zy * zy + cx;
        zy = 2 * zx * zy + cy;
        zx = t;
    }
    y[j * w + i] = n;
}

#define LANES 64
float sum_of(local float *part, float x)
{
    int l = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    part[l] = x;
    for (int s = LANES / 2; s > 0; s /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s) part[l] += part[l + s];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return part[0];
}
float max_of(local float *part, float x)
{
    int l = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    part[l] = x;
    for (int s = LANES / 2; s > 0; s /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s) part[l] = max(part[l], part[l + s]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return part[0];
}

kernel void softmax(global const float *a, global float *y, int n)
{
    local float part[LANES];
    int l = get_local_id(0);
    a += get_group_id(0) * n, y += get_group_id(0) * n;
    float most = -INFINITY, sum = 0;
    for (int i = l; i < n; i += LANES) most = max(most, a[i]);
    most = max_of(part, most);
    for (int i = l; i < n; i += LANES) sum += y[i] = exp(a[i] - most);
    sum = sum_of(part, sum);
    for (int i = l; i < n; i += LANES) y[i] /= sum;
}

kernel void layer_norm(global const float *a, global const float *w, global const float *b,
                       global float *y, int n)
{
    local float part[LANES];
    int l = get_local_id(0);
    a += get_group_id(0) * n, y += get_group_id(0) * n;
    float sum = 0, square = 0;
    for (int i = l; i < n; i += LANES) sum += a[i];
    float mean = sum_of(part, sum) / n;
    for (int i = l; i < n; i += LANES) square += (a[i] - mean) * (a[i] - mean);
    float scale = rsqrt(sum_of(part, square) / n + 1e-5f);
    for (int i = l; i < n; i += LANES) y[i] = (a[i] - mean) * scale * w[i] + b[i];
}

kernel void rms_norm(global const float *a, global const float *w, global float *y, int n)
{
    local float part[LANES];
    int l = get_local_id(0);
    a += get_group_id(0) * n, y += get_group_id(0) * n;
    float square = 0;
    for (int i = l; i < n; i += LANES) square += a[i] * a[i];
    float scale = rsqrt(sum_of(part, square) / n + 1e-5f);
    for (int i = l; i < n; i += LANES) y[i] = a[i] * scale * w[i];
}

kernel void sums(global const float *a, global float *y, int n)
{
    local float part[LANES];
    int l = get_local_id(0);
    float sum = 0;
    for (int i = l; i < n; i += LANES) sum += a[get_group_id(0) * n + i];
    sum = sum_of(part, sum);
    if (l == 0) y[get_group_id(0)] = sum;
}

kernel void transpose(global const float *x, global float *y)
{
    int i = get_global_id(0), j = get_global_id(1);
    y[i * get_global_size(1) + j] = x[j * get_global_size(0) + i];
}

kernel void stencil(global const float *x, global float *y)
{
    int i = get_global_id(0), j = get_global_id(1), w = get_global_size(0), p = w + 2;
    global const float *at = x + (j + 1) * p + i + 1;
    y[j * w + i] = 0.5f * at[0] + 0.125f * (at[-1] + at[1] + at[-p] + at[p]);
}
