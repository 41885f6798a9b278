/* launcher.c: calls of kernels from Python that differ from an earlier one in addresses and numbers
 * only. A plan is the arguments of such a call and a pattern for each value; a call whose values
 * fit all patterns launches a copy of them with its own addresses and numbers. What fits no plan,
 * and so every error, is the affair of calls.py, from which plans are learnt.
 *
 * A module of CPython's stable ABI, 3.9 and newer. It links nothing: configure() gets the functions
 * of the library that the package has loaded. Python's lock protects plans; a launch runs without
 * it, on arguments of its own. */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <string.h>
#include <tile.h>

enum {
    PLANS = 64,        /* of a kernel; then they begin anew */
    ON_STACK = 16,     /* arguments of a call; more are allocated */
    WRITEABLE = 0x400, /* of an ndarray's flags */
};

/* ---- what is known of others ---- */

/* The beginning of NumPy's PyArrayObject_fields, the same in its versions 1 and 2.
 * fields_are_known compares it with what an array says of itself. */
typedef struct ndarray {
    PyObject_HEAD
    void *data;
    int rank;
    Py_ssize_t *extents, *strides; /* in bytes */
    PyObject *base, *dtype;
    int flags;
} ndarray;

/* DLTensor and DLPackExchangeAPI of DLPack 1.3. */
typedef struct dl_tensor {
    void *data;
    int32_t device_type, device, rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *extents, *strides; /* in elements */
    uint64_t byte_offset;
} dl_tensor;

typedef int dl_tensor_of(void *object, dl_tensor *out);

typedef struct dl_exchange {
    uint32_t major, minor;
    void *older, *allocate, *managed_of, *object_of;
    dl_tensor_of *tensor_of;
    void *current_stream;
} dl_exchange;

static struct {
    tile_status (*launch)(tile_kernel *, tile_stream *, const tile_arg *, size_t);
    tile_status (*synchronize)(tile_stream *);
    PyObject *ndarray;                      /* the type whose fields are known; NULL: none is */
    PyObject *used, *requires_grad, *level; /* names of attributes */
} known;

/* After a call failed for a value: 0, no plan fits it, and calls.py says what is wrong; -1: the
 * exception is none of a value (KeyboardInterrupt). */
static int unfit(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    return 0;
}

/* ---- patterns: 1 if a value fits, with its address or its bits; 0; -1 with an exception ---- */

typedef enum how {
    DEFAULTED, /* the bits are the plan's */
    NUMBER,    /* of Python: `number` and `bits` say as what */
    CONVERTED, /* `reader` gives the bits */
    NDARRAY,   /* of the dtype `same` */
    TENSOR,    /* of torch; same: (is_grad_enabled, Tensor.is_neg, forward_ad) */
    READ,      /* `reader` gives (what is to equal `same`, the address) */
    HOWS,
} how;

typedef struct pattern {
    how how;
    int bits, number;                         /* number: i, u, f, or b for a bool */
    PyObject *type, *same, *reader, *written; /* written: told what the kernel writes to */
    int flags;
    dl_tensor tensor; /* all but extents and strides */
    int64_t extents[TILE_MAX_RANK], strides[TILE_MAX_RANK];
    dl_tensor_of *tensor_of;
} pattern;

static int fit_whole(const pattern *p, PyObject *value, uint64_t *out)
{
    int overflow;
    long long x = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || (x == -1 && PyErr_Occurred()))
        return unfit();
    long long most = p->bits == 64 ? INT64_MAX : (1LL << (p->bits - 1)) - 1;
    *out = (uint64_t)x & (UINT64_MAX >> (64 - p->bits));
    return -most - 1 <= x && x <= most;
}

static int fit_unsigned(const pattern *p, PyObject *value, uint64_t *out)
{
    *out = PyLong_AsUnsignedLongLong(value);
    if (*out == UINT64_MAX && PyErr_Occurred())
        return unfit();
    return *out <= UINT64_MAX >> (64 - p->bits);
}

static int fit_float(const pattern *p, PyObject *value, uint64_t *out)
{
    double x = PyFloat_AsDouble(value);
    float rounded = (float)x;
    if (x == -1 && PyErr_Occurred())
        return unfit();
    *out = 0;
    memcpy(out, p->bits == 64 ? (void *)&x : (void *)&rounded, (size_t)p->bits / 8);
    return 1;
}

static int fit_number(const pattern *p, PyObject *value, uint64_t *out)
{
    switch (p->number) {
    case 'i': return fit_whole(p, value, out);
    case 'u': return fit_unsigned(p, value, out);
    case 'f': return fit_float(p, value, out);
    }
    *out = value == Py_True;
    return 1;
}

static int fit_converted(const pattern *p, PyObject *value, uint64_t *out)
{
    PyObject *bits = PyObject_CallFunctionObjArgs(p->reader, value, NULL);
    if (!bits)
        return unfit();
    *out = PyLong_AsUnsignedLongLong(bits);
    Py_DECREF(bits);
    return PyErr_Occurred() ? unfit() : 1;
}

static int fit_array(const pattern *p, PyObject *value, uint64_t *out)
{
    const ndarray *a = (const ndarray *)value;
    size_t size = (size_t)p->tensor.rank * sizeof(int64_t);
    *out = (uintptr_t)a->data;
    return a->dtype == p->same && a->rank == p->tensor.rank && (a->flags & WRITEABLE) == p->flags &&
           !memcmp(a->extents, p->extents, size) && !memcmp(a->strides, p->strides, size);
}

/* Is `value`, an answer to a question, true? It is given back. */
static int answer(PyObject *value)
{
    int is_true = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return is_true;
}

/* Gradients, a lazy sign and tangents are what tile.h knows nothing of: 1 if there are none. */
static int is_plain(const pattern *p, PyObject *value)
{
    PyObject *grad_enabled = PyTuple_GetItem(p->same, 0), *is_neg = PyTuple_GetItem(p->same, 1);
    int wrong = answer(PyObject_GetAttr(value, known.requires_grad));
    if (wrong > 0)
        wrong = answer(PyObject_CallFunctionObjArgs(grad_enabled, NULL));
    if (!wrong)
        wrong = answer(PyObject_CallFunctionObjArgs(is_neg, value, NULL));
    if (wrong)
        return wrong < 0 ? unfit() : 0;
    PyObject *level = PyObject_GetAttr(PyTuple_GetItem(p->same, 2), known.level);
    long depth = level ? PyLong_AsLong(level) : -1;
    Py_XDECREF(level);
    return PyErr_Occurred() ? unfit() : depth < 0;
}

static int fit_tensor(const pattern *p, PyObject *value, uint64_t *out)
{
    int plain = is_plain(p, value);
    if (plain <= 0)
        return plain;
    dl_tensor t = {0};
    const dl_tensor *is = &p->tensor;
    if (p->tensor_of(value, &t))
        return unfit();
    size_t size = (size_t)is->rank * sizeof(int64_t);
    *out = (uintptr_t)t.data + t.byte_offset;
    return t.rank == is->rank && t.code == is->code && t.bits == is->bits && t.lanes == is->lanes &&
           t.device_type == is->device_type && t.device == is->device &&
           (!size || (t.strides && !memcmp(t.extents, p->extents, size) &&
                      !memcmp(t.strides, p->strides, size)));
}

static int fit_read(const pattern *p, PyObject *value, uint64_t *out)
{
    PyObject *pair = PyObject_CallFunctionObjArgs(p->reader, value, NULL);
    if (!pair)
        return unfit();
    PyObject *key = PyTuple_GetItem(pair, 0), *address = key ? PyTuple_GetItem(pair, 1) : NULL;
    int fits = address ? PyObject_RichCompareBool(key, p->same, Py_EQ) : -1;
    if (fits > 0)
        *out = PyLong_AsUnsignedLongLong(address);
    Py_DECREF(pair);
    return PyErr_Occurred() ? unfit() : fits;
}

static int fit(const pattern *p, PyObject *value, uint64_t *out)
{
    if ((PyObject *)Py_TYPE(value) != p->type)
        return 0;
    switch (p->how) {
    case DEFAULTED: return 1;
    case NUMBER: return fit_number(p, value, out);
    case CONVERTED: return fit_converted(p, value, out);
    case NDARRAY: return fit_array(p, value, out);
    case TENSOR: return fit_tensor(p, value, out);
    case READ: return fit_read(p, value, out);
    case HOWS: break;
    }
    return 0;
}

/* ---- learning a pattern from a value that fits it: as fit() ---- */

static int learn_array(pattern *p, PyObject *value)
{
    const ndarray *a = (const ndarray *)value;
    if (p->type != known.ndarray || a->rank > TILE_MAX_RANK)
        return 0;
    p->tensor.rank = a->rank;
    p->flags = a->flags & WRITEABLE;
    memcpy(p->extents, a->extents, (size_t)a->rank * sizeof *p->extents);
    memcpy(p->strides, a->strides, (size_t)a->rank * sizeof *p->strides);
    return 1;
}

/* How tensors of a type are read; NULL: its package is older than DLPack 1.3, or newer than 1. */
static dl_tensor_of *exchange_of(PyObject *type)
{
    PyObject *capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    const dl_exchange *x = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    dl_tensor_of *found = x && x->major == 1 ? x->tensor_of : NULL;
    Py_XDECREF(capsule);
    PyErr_Clear();
    return found;
}

static int learn_tensor(pattern *p, PyObject *value)
{
    p->tensor_of = exchange_of(p->type);
    if (!p->tensor_of)
        return 0;
    if (p->tensor_of(value, &p->tensor))
        return unfit();
    const dl_tensor *t = &p->tensor;
    if (t->rank > TILE_MAX_RANK || (t->rank && !t->strides))
        return 0;
    memcpy(p->extents, t->extents, (size_t)t->rank * sizeof *p->extents);
    memcpy(p->strides, t->strides, (size_t)t->rank * sizeof *p->strides);
    return 1;
}

static int learn(pattern *p, PyObject *value)
{
    if ((PyObject *)Py_TYPE(value) != p->type)
        return 0;
    switch (p->how) {
    case NDARRAY: return learn_array(p, value);
    case TENSOR: return learn_tensor(p, value);
    case DEFAULTED:
    case NUMBER:
    case CONVERTED:
    case READ: return 1;
    case HOWS: break;
    }
    return 0;
}

/* ---- plans ---- */

/* Of a list whose links do not change: who has a plan has those behind it. */
typedef struct plan {
    struct plan *next;
    Py_ssize_t uses; /* by the kernel or the plan in front, and by calls under way */
    Py_ssize_t count;
    tile_arg *args;
    pattern patterns[];
} plan;

static void free_plan(plan *p)
{
    for (Py_ssize_t i = 0; i < p->count; i++) {
        Py_XDECREF(p->patterns[i].type);
        Py_XDECREF(p->patterns[i].same);
        Py_XDECREF(p->patterns[i].reader);
        Py_XDECREF(p->patterns[i].written);
    }
    PyMem_Free(p->args);
    PyMem_Free(p);
}

static void leave_plan(plan *p)
{
    while (p && !--p->uses) {
        plan *next = p->next;
        free_plan(p);
        p = next;
    }
}

static plan *new_plan(const tile_arg *args, Py_ssize_t count)
{
    plan *p = PyMem_Calloc(1, sizeof *p + (size_t)count * sizeof *p->patterns);
    if (!p)
        return NULL;
    p->uses = 1;
    p->args = PyMem_Malloc((size_t)(count + 1) * sizeof *p->args);
    if (!p->args) {
        PyMem_Free(p);
        return NULL;
    }
    p->count = count;
    memcpy(p->args, args, (size_t)count * sizeof *args);
    return p;
}

static PyObject *or_null(PyObject *object)
{
    if (object == Py_None)
        return NULL;
    Py_INCREF(object);
    return object;
}

/* From (how, type, same, reader, written, number, bits). */
static int take_pattern(pattern *p, PyObject *parts, PyObject *value)
{
    int kind;
    PyObject *type, *same, *reader, *written;
    if (!PyTuple_Check(parts)) {
        PyErr_SetString(PyExc_TypeError, "a pattern is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(parts, "iOOOOCi", &kind, &type, &same, &reader, &written, &p->number,
                          &p->bits))
        return -1;
    p->how = kind >= 0 && kind < HOWS ? (how)kind : HOWS;
    p->type = or_null(type);
    p->same = or_null(same);
    p->reader = or_null(reader);
    p->written = or_null(written);
    return learn(p, value);
}

static int fit_plan(const plan *p, PyObject *values, uint64_t *words)
{
    for (Py_ssize_t i = 0; i < p->count; i++) {
        words[i] = p->args[i].scalar; /* of what has its default */
        int fits = fit(&p->patterns[i], PyTuple_GetItem(values, i), &words[i]);
        if (fits <= 0)
            return fits;
    }
    return 1;
}

static int tell_what_is_written(const plan *p, PyObject *values)
{
    for (Py_ssize_t i = 0; i < p->count; i++) {
        PyObject *written = p->patterns[i].written, *value = PyTuple_GetItem(values, i);
        PyObject *said = written ? PyObject_CallFunctionObjArgs(written, value, NULL) : Py_None;
        if (!said)
            return -1;
        if (written)
            Py_DECREF(said);
    }
    return 1;
}

static void fill(const plan *p, const uint64_t *words, tile_arg *args)
{
    memcpy(args, p->args, (size_t)p->count * sizeof *args);
    for (Py_ssize_t i = 0; i < p->count; i++) {
        if (args[i].kind == TILE_ARG_SCALAR)
            args[i].scalar = words[i];
        else
            args[i].address = (void *)(uintptr_t)words[i];
    }
}

/* ---- calls ---- */

typedef struct launcher {
    PyObject_HEAD
    tile_kernel *kernel;
    tile_stream *stream; /* of calls that wait; NULL: there are none */
    Py_ssize_t count;
    plan *plans;
    int nplans;
    PyObject *acquire, *release; /* the stream's lock */
    PyObject *outbox;            /* of the device; used: it may have something to raise */
    PyObject *running;           /* a dictionary, empty for the most part */
    PyObject *settle;            /* (status of the launch, of the wait): says and raises */
} launcher;

typedef struct call {
    uint64_t word[ON_STACK], *words;
    tile_arg arg[ON_STACK], *args;
    void *memory;
} call;

static bool make_room(call *c, Py_ssize_t count)
{
    c->words = c->word;
    c->args = c->arg;
    c->memory = NULL;
    if (count <= ON_STACK)
        return true;
    c->memory = PyMem_Malloc((size_t)count * (sizeof *c->args + sizeof *c->words));
    c->args = c->memory;
    c->words = c->memory ? (uint64_t *)(c->args + count) : NULL;
    if (!c->memory)
        PyErr_NoMemory();
    return c->memory;
}

/* Finds the plan that the values fit: 1, with the arguments; 0; -1 with an exception. Python code
 * may run, which may change the kernel's plans. */
static int find(launcher *l, PyObject *values, call *c)
{
    int fits = 0;
    plan *first = l->plans;
    if (!first)
        return 0;
    first->uses++;
    for (plan *p = first; p && !fits; p = p->next) {
        fits = fit_plan(p, values, c->words);
        if (fits > 0)
            fits = tell_what_is_written(p, values);
        if (fits > 0)
            fill(p, c->words, c->args);
    }
    leave_plan(first);
    return fits;
}

/* find(), with room for the arguments that the caller frees. */
static int prepare(launcher *l, PyObject *values, call *c)
{
    c->memory = NULL;
    if (!PyTuple_Check(values) || PyTuple_Size(values) != l->count)
        return 0;
    return make_room(c, l->count) ? find(l, values, c) : -1;
}

static bool is_quiet(const launcher *l)
{
    PyObject *used = PyObject_GetAttr(l->outbox, known.used);
    bool quiet = used == Py_False && !PyDict_Size(l->running);
    Py_XDECREF(used);
    PyErr_Clear(); /* without it, it is not quiet */
    return quiet;
}

/* In a thread that has the stream's lock. */
static bool launch_and_wait(launcher *l, const tile_arg *args)
{
    PyThreadState *thread = PyEval_SaveThread();
    tile_status done = TILE_OK;
    tile_status launched = known.launch(l->kernel, l->stream, args, (size_t)l->count);
    if (launched == TILE_OK)
        done = known.synchronize(l->stream);
    PyEval_RestoreThread(thread);
    if (launched == TILE_OK && done == TILE_OK && is_quiet(l))
        return true;
    PyObject *settled = PyObject_CallFunction(l->settle, "ii", (int)launched, (int)done);
    Py_XDECREF(settled);
    return settled;
}

static bool take_lock(const launcher *l)
{
    PyObject *taken = PyObject_CallFunctionObjArgs(l->acquire, NULL);
    Py_XDECREF(taken);
    return taken;
}

/* Whatever exception is under way goes on. */
static void give_lock(const launcher *l)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *given = PyObject_CallFunctionObjArgs(l->release, NULL);
    if (!given)
        PyErr_WriteUnraisable(l->release);
    Py_XDECREF(given);
    PyErr_Restore(type, value, trace);
}

static bool launch_locked(launcher *l, const tile_arg *args)
{
    if (!take_lock(l))
        return false;
    bool launched = launch_and_wait(l, args);
    give_lock(l);
    return launched;
}

static PyObject *launcher_call(PyObject *self, PyObject *values)
{
    launcher *l = (launcher *)self;
    call c;
    int found = l->stream ? prepare(l, values, &c) : 0;
    bool launched = found > 0 && launch_locked(l, c.args);
    if (l->stream)
        PyMem_Free(c.memory);
    return found < 0 || (found && !launched) ? NULL : PyBool_FromLong(launched);
}

static PyObject *launcher_start(PyObject *self, PyObject *args)
{
    launcher *l = (launcher *)self;
    PyObject *values;
    unsigned long long stream;
    if (!PyArg_ParseTuple(args, "OK", &values, &stream))
        return NULL;
    call c;
    int found = prepare(l, values, &c), status = -1;
    if (found > 0) {
        PyThreadState *thread = PyEval_SaveThread();
        status =
            known.launch(l->kernel, (tile_stream *)(uintptr_t)stream, c.args, (size_t)l->count);
        PyEval_RestoreThread(thread);
    }
    PyMem_Free(c.memory);
    return found < 0 ? NULL : PyLong_FromLong(status);
}

static void forget(launcher *l)
{
    plan *plans = l->plans;
    l->plans = NULL;
    l->nplans = 0;
    leave_plan(plans);
}

/* 1: learnt; 0: a value is of no kind that is quick; -1. */
static int learn_plan(launcher *l, plan *p, PyObject *values, PyObject *patterns)
{
    int learnt = 1;
    for (Py_ssize_t i = 0; i < l->count && learnt > 0; i++)
        learnt =
            take_pattern(&p->patterns[i], PyTuple_GetItem(patterns, i), PyTuple_GetItem(values, i));
    if (learnt <= 0)
        return learnt;
    if (l->nplans == PLANS)
        forget(l);
    p->next = l->plans;
    p->uses++;
    l->plans = p;
    l->nplans++;
    return 1;
}

static PyObject *launcher_learn(PyObject *self, PyObject *args)
{
    launcher *l = (launcher *)self;
    unsigned long long address;
    PyObject *values, *patterns;
    if (!PyArg_ParseTuple(args, "KOO", &address, &values, &patterns))
        return NULL;
    if (!address || !PyTuple_Check(values) || !PyTuple_Check(patterns) ||
        PyTuple_Size(values) != l->count || PyTuple_Size(patterns) != l->count) {
        PyErr_SetString(PyExc_TypeError,
                        "learn: arguments, and tuples of the values and of patterns");
        return NULL;
    }
    plan *p = new_plan((const tile_arg *)(uintptr_t)address, l->count);
    if (!p)
        return PyErr_NoMemory();
    int learnt = learn_plan(l, p, values, patterns);
    leave_plan(p);
    return learnt < 0 ? NULL : PyBool_FromLong(learnt);
}

/* ---- the type ---- */

static int visit_plan(plan *p, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < p->count; i++) {
        Py_VISIT(p->patterns[i].type);
        Py_VISIT(p->patterns[i].same);
        Py_VISIT(p->patterns[i].reader);
        Py_VISIT(p->patterns[i].written);
    }
    return 0;
}

static int launcher_traverse(PyObject *self, visitproc visit, void *arg)
{
    launcher *l = (launcher *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(l->acquire);
    Py_VISIT(l->release);
    Py_VISIT(l->outbox);
    Py_VISIT(l->running);
    Py_VISIT(l->settle);
    for (plan *p = l->plans; p; p = p->next) {
        int visited = visit_plan(p, visit, arg);
        if (visited)
            return visited;
    }
    return 0;
}

static int launcher_clear(PyObject *self)
{
    launcher *l = (launcher *)self;
    forget(l);
    Py_CLEAR(l->acquire);
    Py_CLEAR(l->release);
    Py_CLEAR(l->outbox);
    Py_CLEAR(l->running);
    Py_CLEAR(l->settle);
    return 0;
}

static void launcher_free(PyObject *self)
{
    PyObject *type = (PyObject *)Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    launcher_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *launcher_new(PyTypeObject *type, PyObject *args, PyObject *more)
{
    unsigned long long kernel, stream;
    Py_ssize_t count;
    PyObject *acquire, *release, *outbox, *running, *settle;
    (void)more;
    if (!PyArg_ParseTuple(args, "KnKOOOO!O", &kernel, &count, &stream, &acquire, &release, &outbox,
                          &PyDict_Type, &running, &settle))
        return NULL;
    launcher *l = (launcher *)PyType_GenericAlloc(type, 0);
    if (!l)
        return NULL;
    l->kernel = (tile_kernel *)(uintptr_t)kernel;
    l->stream = (tile_stream *)(uintptr_t)stream;
    l->count = count;
    l->acquire = or_null(acquire);
    l->release = or_null(release);
    l->outbox = or_null(outbox);
    l->running = or_null(running);
    l->settle = or_null(settle);
    return (PyObject *)l;
}

static PyMethodDef launcher_methods[] = {
    {"call", launcher_call, METH_O,
     "call(values): launches and waits, if a plan fits the tuple; else False."},
    {"start", launcher_start, METH_VARARGS,
     "start(values, stream): launches; the status, or -1 if no plan fits."},
    {"learn", launcher_learn, METH_VARARGS,
     "learn(address of the tile_args, values, patterns): a plan, if all values can be quick."},
    {0},
};

static PyType_Slot launcher_slots[] = {
    {Py_tp_new, launcher_new},
    {Py_tp_dealloc, launcher_free},
    {Py_tp_traverse, launcher_traverse},
    {Py_tp_clear, launcher_clear},
    {Py_tp_methods, launcher_methods},
    {0},
};

static PyType_Spec launcher_spec = {
    .name = "tile_launcher.Launcher",
    .basicsize = sizeof(launcher),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = launcher_slots,
};

/* ---- the module ---- */

static PyObject *configure(PyObject *self, PyObject *args)
{
    unsigned long long launch, synchronize;
    (void)self;
    if (!PyArg_ParseTuple(args, "KK", &launch, &synchronize))
        return NULL;
    memcpy(&known.launch, &launch, sizeof known.launch);
    memcpy(&known.synchronize, &synchronize, sizeof known.synchronize);
    Py_RETURN_NONE;
}

static PyObject *fields_are_known(PyObject *self, PyObject *args)
{
    PyObject *array, *dtype;
    unsigned long long address;
    Py_ssize_t extents[2], strides[2];
    int writeable;
    (void)self;
    if (!PyArg_ParseTuple(args, "OKO(nn)(nn)p", &array, &address, &dtype, &extents[0], &extents[1],
                          &strides[0], &strides[1], &writeable))
        return NULL;
    const ndarray *a = (const ndarray *)array;
    bool equal = sizeof(Py_ssize_t) == sizeof(int64_t) && (uintptr_t)a->data == address &&
                 a->rank == 2 && a->dtype == dtype;
    /* only now are extents and strides likely to be addresses */
    equal = equal && !memcmp(a->extents, extents, sizeof extents) &&
            !memcmp(a->strides, strides, sizeof strides) && !(a->flags & WRITEABLE) == !writeable;
    known.ndarray = equal ? (PyObject *)Py_TYPE(array) : NULL;
    Py_XINCREF(known.ndarray); /* for ever */
    return PyBool_FromLong(equal);
}

static PyObject *has_exchange(PyObject *self, PyObject *type)
{
    (void)self;
    return PyBool_FromLong(exchange_of(type) != NULL);
}

static PyMethodDef functions[] = {
    {"configure", configure, METH_VARARGS,
     "configure(tile_launch, tile_stream_synchronize): their addresses."},
    {"fields_are_known", fields_are_known, METH_VARARGS,
     "fields_are_known(array, address, dtype, shape, strides, writeable), of an array of rank 2."},
    {"has_exchange", has_exchange, METH_O, "Has the type DLPack's exchange API?"},
    {0},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tile_launcher",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_tile_launcher(void)
{
    PyObject *module = PyModule_Create(&definition);
    PyObject *type = module ? PyType_FromSpec(&launcher_spec) : NULL;
    known.used = PyUnicode_InternFromString("used");
    known.requires_grad = PyUnicode_InternFromString("requires_grad");
    known.level = PyUnicode_InternFromString("_current_level");
    if (type && known.used && known.requires_grad && known.level &&
        !PyModule_AddObject(module, "Launcher", type))
        return module;
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}
