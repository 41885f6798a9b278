/* Atomics, really atomic on the host's memory: other programs of the launch may run on other
 * threads. Every one is a compare-and-swap loop around the arithmetic of interp_elem.c,
 * sequentially consistent, which honours every order and scope that can be asked for. A release
 * then covers all earlier effects of the program, since a program is one thread. */
#include <string.h>

#include "ir/interp/interp_impl.h"

static void *host(TlInterpPtr p)
{
    return (void *)(uintptr_t)p.address;
}

static uint64_t atomic_get(void *p, size_t bytes)
{
    switch (bytes) {
    case 1: return __atomic_load_n((uint8_t *)p, __ATOMIC_SEQ_CST);
    case 2: return __atomic_load_n((uint16_t *)p, __ATOMIC_SEQ_CST);
    case 4: return __atomic_load_n((uint32_t *)p, __ATOMIC_SEQ_CST);
    default: return __atomic_load_n((uint64_t *)p, __ATOMIC_SEQ_CST);
    }
}

static void atomic_put(void *p, size_t bytes, uint64_t v)
{
    switch (bytes) {
    case 1: __atomic_store_n((uint8_t *)p, (uint8_t)v, __ATOMIC_SEQ_CST); return;
    case 2: __atomic_store_n((uint16_t *)p, (uint16_t)v, __ATOMIC_SEQ_CST); return;
    case 4: __atomic_store_n((uint32_t *)p, (uint32_t)v, __ATOMIC_SEQ_CST); return;
    default: __atomic_store_n((uint64_t *)p, v, __ATOMIC_SEQ_CST); return;
    }
}

#define SWAP(T)                                                                                    \
    {                                                                                              \
        T want = (T)*expected;                                                                     \
        bool done = __atomic_compare_exchange_n((T *)p, &want, (T)v, false, __ATOMIC_SEQ_CST,      \
                                                __ATOMIC_SEQ_CST);                                 \
        *expected = want;                                                                          \
        return done;                                                                               \
    }

/* True when *p was *expected and is now v; else *expected is what was there. */
static bool atomic_swap(void *p, size_t bytes, uint64_t *expected, uint64_t v)
{
    switch (bytes) {
    case 1: SWAP(uint8_t)
    case 2: SWAP(uint16_t)
    case 4: SWAP(uint32_t)
    default: SWAP(uint64_t)
    }
}

static TlElemFn rmw_fn(TlRmw kind, TlDtype d)
{
    TlCombine combine = tl_rmw_combine(kind);
    if (combine == TL_COMBINE_USER)
        return NULL;
    TlElemFn fn = tl_combine_fn(combine, d);
    TL_ASSERT(fn, "atomic_%s of %s has no meaning", tl_enum_name(TL_FORM_RMW, kind),
              tl_dtype_name(d));
    return fn;
}

static uint64_t rmw(void *p, TlDtype d, TlElemFn fn, uint64_t operand)
{
    size_t bytes = (size_t)tl_dtype_bytes(d);
    uint64_t old = atomic_get(p, bytes), want[1], arg[1] = {operand};
    do {
        uint64_t before[1] = {0};
        tl_elem_set(d, before, 0, old);
        want[0] = operand;
        if (fn)
            fn(want, before, arg, 1);
    } while (!atomic_swap(p, bytes, &old, tl_elem_get(d, want, 0)));
    return old;
}

TL_EVAL(ATOMIC_RMW)
{
    TlAccess access;
    tl_access_find(in, op, "atomic", true, true, &access);
    TlElemFn fn = rmw_fn((TlRmw)tl_attr_int(op, TL_ATTR_RMW, 0), tl_op_dtype(op, access.dtype));
    for (int64_t e = 0; e < access.n; e++) {
        uint64_t old = 0, v[1] = {0};
        memcpy(v, tl_access_operand(in, access.place.value, access.bytes, e), access.bytes);
        if (access.ok[e])
            old = rmw(host(tl_access_at(&access, e)), access.dtype, fn,
                      tl_elem_get(access.dtype, v, 0));
        tl_elem_set(access.dtype, y[0].data, e, old);
    }
}

TL_EVAL(ATOMIC_CAS)
{
    TlAccess access;
    tl_access_find(in, op, "atomic", true, true, &access);
    for (int64_t e = 0; e < access.n; e++) {
        uint64_t expected = tl_elem_get(
            access.dtype, tl_access_operand(in, access.place.expected, access.bytes, e), 0);
        uint64_t v = tl_elem_get(access.dtype,
                                 tl_access_operand(in, access.place.value, access.bytes, e), 0);
        if (access.ok[e])
            atomic_swap(host(tl_access_at(&access, e)), access.bytes, &expected,
                        v); /* expected: now what was there */
        tl_elem_set(access.dtype, y[0].data, e, access.ok[e] ? expected : 0);
    }
}

TL_EVAL(ATOMIC_LOAD)
{
    TlAccess access;
    tl_access_find(in, op, "atomic load", true, false, &access);
    for (int64_t e = 0; e < access.n; e++) {
        uint64_t v = access.ok[e] ? atomic_get(host(tl_access_at(&access, e)), access.bytes) : 0;
        tl_elem_set(access.dtype, y[0].data, e, v);
    }
}

TL_EVAL(ATOMIC_STORE)
{
    TlAccess access;
    tl_access_find(in, op, "atomic store", false, true, &access);
    for (int64_t e = 0; e < access.n; e++) {
        const void *value = tl_access_operand(in, access.place.value, access.bytes, e);
        if (access.ok[e])
            atomic_put(host(tl_access_at(&access, e)), access.bytes,
                       tl_elem_get(access.dtype, value, 0));
    }
}
