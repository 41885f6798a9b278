/* device.c: opening devices by name; the default device.
 *
 * The default device is the only state that belongs to the process, because a NULL stream must
 * mean something. It has its own lock, is opened at first use and kept until the process ends. */
#define TILE_UNSTABLE
#include "runtime/contract/gpu_rows.h"
#include "runtime/ranges.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"
#include <stdio.h>
#include <stdlib.h>

#pragma weak tl_driver_ref
#pragma weak tl_driver_emu

typedef const tl_driver *(*driver_getter)(void);
typedef struct kind_row {
    const char *kind;
    bool takes_spec; /* "kind:spec" is allowed */
} kind_row;
static const kind_row kinds[] = {
    {"cpu", true}, {"ref", false}, {"emu", true}, {"cuda", true}, {"hip", true}};

/* In the order of `kinds`. Not a constant table, because the linker decides whether a weak function
 * has an address. */
static driver_getter getter(size_t i)
{
    driver_getter const getters[] = {tl_driver_cpu, tl_driver_ref, tl_driver_emu, tl_driver_cuda,
                                     tl_driver_hip};
    _Static_assert(sizeof getters / sizeof *getters == sizeof kinds / sizeof *kinds,
                   "one getter for each kind");
    return getters[i];
}

static struct {
    pthread_mutex_t lock;
    tile_device *chosen, *opened;
} defaults = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Splits "kind:spec"; the driver, or NULL with *out_status set. */
static const tl_driver *find_driver(const char *name, const char **out_spec,
                                    tile_status *out_status)
{
    size_t length = strcspn(name, ":");
    *out_spec = name[length] ? name + length + 1 : "";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].kind) != length || strncmp(kinds[i].kind, name, length) != 0)
            continue;
        if (name[length] && !kinds[i].takes_spec)
            break;
        if (getter(i))
            return getter(i)();
        *out_status =
            tl_fail(TILE_UNAVAILABLE, "device '%s' is not available: this build has no %s driver",
                    name, kinds[i].kind);
        return NULL;
    }
    bool is_gpu = tl_gpu_find(name);
    *out_status = tl_fail(
        TILE_BAD_ARGUMENT,
        "unknown device '%s'%s%s%s; devices are cpu[:LEVEL], ref, emu:TARGET, cuda[:N], hip[:N]",
        name, is_gpu ? ", a GPU's name: emu:" : "", is_gpu ? name : "",
        is_gpu ? " emulates it" : "");
    return NULL;
}

static tile_status open_parts(tile_device *d, const char *spec, const tile_device_options *options)
{
    tile_status status = d->driver->open(spec, options, &d->dev);
    if (status != TILE_OK)
        return status;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    d->driver->info(d->dev, &info);
    TL_INVARIANT(info.target[0] && info.processors > 0, "device %s has target '%s', %d processors",
                 d->name, info.target, info.processors);
    memcpy(d->target, info.target, sizeof d->target);
    d->processors = info.processors;
    return tl_stream_open(d, true, &d->default_stream);
}

/* For a device that was never handed out, or whose last owner has dropped it. */
static void destroy(tile_device *d)
{
    tl_life_end(&d->life);
    if (d->is_lost) /* nothing of it can be relied on */
        return;
    tl_stream_close(d->default_stream);
    TL_INVARIANT_VOID(!d->streams && !d->buffers,
                      "device %s is destroyed while a handle uses it", d->name);
    tl_buffers_trim(d);
    if (d->dev)
        d->driver->close(d->dev);
    pthread_cond_destroy(&d->left);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static tile_status read_switch(const char *variable, bool *out_on)
{
    const char *text = secure_getenv(variable);
    *out_on = text && strcmp(text, "1") == 0;
    if (!text || !*text || *out_on || strcmp(text, "0") == 0)
        return TILE_OK;
    return tl_fail(TILE_BAD_ARGUMENT, "%s is '%s', but must be 0 or 1", variable, text);
}

/* ---- forks ---- */

static bool has_users(uint_fast64_t users)
{
    return users >= TL_DEVICE_USER;
}

/* Calls that are inside go on; others wait before they enter. */
static void hold(tl_life *life)
{
    tile_device *d = (tile_device *)life; /* its first member */
    d->users_at_fork = atomic_fetch_or(&d->users, TL_DEVICE_FORKING);
}

static void let_go(tl_life *life)
{
    tile_device *d = (tile_device *)life;
    atomic_fetch_and(&d->users, ~(uint_fast64_t)TL_DEVICE_FORKING);
}

/* In the child. A device in which another thread was at that moment may be in any state, with locks
 * held, and drivers of GPUs survive no fork: these are closed there. Others go on. */
static void forked(tl_life *life)
{
    tile_device *d = (tile_device *)life;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->left, NULL);
    bool is_host = d->driver->run != NULL;
    d->users = d->users_at_fork;
    if (is_host && !has_users(d->users))
        return;
    d->users |= TL_DEVICE_CLOSED;
    d->is_lost = true;
    if (defaults.chosen == d)
        defaults.chosen = NULL;
    if (defaults.opened == d)
        defaults.opened = NULL;
}

static void defaults_forked(tl_life *life)
{
    (void)life;
    pthread_mutex_init(&defaults.lock, NULL);
}

static void watch_defaults(void)
{
    static tl_life life = {.forked = defaults_forked};
    tl_life_begin(&life);
}

/* ---- opening ---- */

/* Those of a device whose program has given none. */
static tile_callbacks own_callbacks(const tile_device *d)
{
    tile_callbacks none = TILE_CALLBACKS_INIT;
    return d->prints ? tl_sink_to_stderr() : none;
}

static tile_status open_here(const char *name, const tile_device_options *options,
                             tile_device **out_device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *spec;
    tile_status status = TILE_OK;
    bool sync = false, prints = false, stops = false; /* stops: driver_cpu.c */
    pthread_once(&once, watch_defaults);
    const tl_driver *driver = find_driver(name, &spec, &status);
    if (driver)
        status = read_switch("TILE_SYNC", &sync);
    if (status == TILE_OK)
        status = read_switch("TILE_PRINT", &prints);
    if (status == TILE_OK)
        status = read_switch("TILE_BREAK", &stops);
    if (status != TILE_OK)
        return status;
    tile_device *d = calloc(1, sizeof *d);
    if (!d)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    d->driver = driver;
    d->sync = sync;
    d->prints = prints;
    d->callbacks = own_callbacks(d);
    d->owners = 1;
    d->life = (tl_life){.hold = hold, .let_go = let_go, .forked = forked};
    snprintf(d->name, sizeof d->name, "%s", name);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->left, NULL);
    tl_life_begin(&d->life);
    status = open_parts(d, spec, options);
    if (status != TILE_OK) {
        destroy(d);
        return status;
    }
    tl_ranges_find();
    *out_device = d;
    return TILE_OK;
}

typedef struct opening {
    const char *name;
    const tile_device_options *options; /* whole */
    tile_device *device;
} opening;

static tile_status open_request(void *user)
{
    opening *o = user;
    return open_here(o->name, o->options, &o->device);
}

/* given: NULL for none. */
static tile_status open_device(const char *name, const tile_device_options *given,
                               tile_device **out_device)
{
    TL_FP_SCOPE(); /* libraries of drivers may change the state when they are loaded */
    tile_device_options options = TILE_DEVICE_OPTIONS_INIT;
    opening o = {.name = name, .options = &options};
    tile_status status =
        given ? TL_TAKE(tile_device_options, &options, given, affinity) : TILE_OK;
    if (status == TILE_OK)
        status = tl_with_stack(open_request, &o);
    if (status == TILE_OK)
        *out_device = o.device;
    return status;
}

static const char *default_name(void)
{
    const char *said = secure_getenv("TILE_DEVICE");
    return said && *said ? said : "cpu";
}

/* The first device opened under the default's name becomes the default: a host that opens one
 * device and passes NULL streams means that device. */
tile_status tile_device_open_with(const char *name, const tile_device_options *options,
                                  tile_device **out_device)
{
    if (!out_device)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_device_open: out_device is NULL");
    tile_status status = open_device(name && *name ? name : default_name(), options, out_device);
    if (status == TILE_OK && strcmp((*out_device)->name, default_name()) == 0) {
        pthread_mutex_lock(&defaults.lock);
        if (!defaults.opened)
            defaults.opened = *out_device;
        pthread_mutex_unlock(&defaults.lock);
    }
    return status;
}

tile_status tile_device_open(const char *name, tile_device **out_device)
{
    return tile_device_open_with(name, NULL, out_device);
}

/* ---- closing ---- */

void tl_device_keep(tile_device *d)
{
    uint_fast64_t before = atomic_fetch_add_explicit(&d->owners, 1, memory_order_relaxed);
    TL_INVARIANT_VOID(before > 0, "device %s is kept after its last owner has gone", d->name);
}

void tl_device_drop(tile_device *d)
{
    uint_fast64_t before = atomic_fetch_sub_explicit(&d->owners, 1, memory_order_acq_rel);
    TL_INVARIANT_VOID(before > 0, "device %s is dropped by more than have kept it", d->name);
    if (before == 1)
        destroy(d);
}

static void forget_default(const tile_device *d)
{
    pthread_mutex_lock(&defaults.lock);
    if (defaults.chosen == d)
        defaults.chosen = NULL;
    if (defaults.opened == d)
        defaults.opened = NULL;
    pthread_mutex_unlock(&defaults.lock);
}

/* In this order: new calls are refused, running calls return, and all work in the streams is done.
 * The driver's device is closed with the last handle. */
void tile_device_close(tile_device *d)
{
    if (!d)
        return;
    forget_default(d);
    atomic_fetch_or(&d->users, TL_DEVICE_CLOSED);
    if (!d->is_lost) {
        pthread_mutex_lock(&d->lock);
        while (has_users(atomic_load(&d->users)))
            pthread_cond_wait(&d->left, &d->lock);
        pthread_mutex_unlock(&d->lock);
        tl_streams_drain(d);
        tl_embedded_free(d);
    }
    tl_device_drop(d);
}

/* Counts a call in, once no fork is under way; what `users` was. */
static uint_fast64_t count_in(tile_device *d)
{
    uint_fast64_t before = atomic_fetch_add(&d->users, TL_DEVICE_USER);
    while ((before & TL_DEVICE_FORKING) && !tl_life_is_forking()) {
        tl_device_leave(d);
        tl_life_wait();
        before = atomic_fetch_add(&d->users, TL_DEVICE_USER);
    }
    return before;
}

bool tl_device_enter_to_free(tile_device *d)
{
    if (!d->is_lost)
        count_in(d);
    return !d->is_lost;
}

static tile_status enter(tile_device *d)
{
    uint_fast64_t before = count_in(d);
    if (!(before & TL_DEVICE_CLOSED))
        return TILE_OK;
    tile_status status =
        d->is_lost ? tl_fail(TILE_UNAVAILABLE,
                             "device %s was in use, or is a GPU's, when this process was forked: "
                             "open it again here", d->name)
                   : tl_fail(TILE_BAD_ARGUMENT, "device %s has been closed", d->name);
    tl_device_leave(d);
    return status;
}

/* The last call to leave a closed device must not touch it once the lock is released: the closing
 * thread may free it then. While the device is open, nobody waits, and no lock is taken. */
void tl_device_leave(tile_device *d)
{
    uint_fast64_t users = atomic_load_explicit(&d->users, memory_order_relaxed);
    TL_DEBUG_INVARIANT(users >= TL_DEVICE_USER, "device %s is left by more than entered", d->name);
    while (!(users & TL_DEVICE_CLOSED))
        if (atomic_compare_exchange_weak(&d->users, &users, users - TL_DEVICE_USER))
            return;
    pthread_mutex_lock(&d->lock);
    if (!has_users(atomic_fetch_sub(&d->users, TL_DEVICE_USER) - TL_DEVICE_USER))
        pthread_cond_broadcast(&d->left);
    pthread_mutex_unlock(&d->lock);
}

tile_status tile_set_default_device(tile_device *device)
{
    pthread_mutex_lock(&defaults.lock);
    defaults.chosen = device;
    pthread_mutex_unlock(&defaults.lock);
    return TILE_OK;
}

/* The caller holds the defaults' lock. */
static tile_status find_default(tile_device **out_device)
{
    tile_status status = TILE_OK;
    if (!defaults.chosen && !defaults.opened)
        status = open_device(default_name(), NULL, &defaults.opened);
    if (status == TILE_OK)
        *out_device = defaults.chosen ? defaults.chosen : defaults.opened;
    TL_DEBUG_INVARIANT(status != TILE_OK || *out_device, "no default device");
    return status;
}

tile_status tile_default_device(tile_device **out_device)
{
    if (!out_device)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_default_device: out_device is NULL");
    pthread_mutex_lock(&defaults.lock);
    tile_status status = find_default(out_device);
    pthread_mutex_unlock(&defaults.lock);
    return status;
}

/* The default device is entered before its lock is released, so that a thread that closes it
 * waits. */
tile_status tl_device_enter(tile_device *device, tile_device **out_device)
{
    *out_device = device;
    if (device)
        return enter(device);
    pthread_mutex_lock(&defaults.lock);
    tile_status status = find_default(out_device);
    if (status == TILE_OK)
        status = enter(*out_device);
    pthread_mutex_unlock(&defaults.lock);
    return status;
}

tile_status tile_device_get_info(tile_device *device, tile_device_info *out_info)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_device *d;
    if (!out_info)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_device_get_info: out_info is NULL");
    tile_status status = TL_TAKE(tile_device_info, NULL, out_info, name);
    if (status == TILE_OK)
        status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    d->driver->info(d->dev, &info);
    tl_device_leave(d);
    tl_struct_give(out_info, &info, sizeof info);
    return TILE_OK;
}

tile_status tile_device_configure(tile_device *device, const char *key, const char *value)
{
    tile_device *d;
    tile_status status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    if (!key || !value)
        status = tl_fail(TILE_BAD_ARGUMENT, "tile_device_configure: the %s is NULL",
                         key ? "value" : "key");
    else if (!d->driver->configure)
        status = tl_fail(TILE_BAD_ARGUMENT, "device %s has no setting '%s'", d->name, key);
    else
        status = d->driver->configure(d->dev, key, value);
    tl_device_leave(d);
    return status;
}

size_t tile_device_counters(tile_device *device, char *text, size_t size)
{
    TL_FP_SCOPE();
    tile_device *d;
    if (tl_device_enter(device, &d) != TILE_OK)
        return 0;
    char *counted = d->driver->stats ? d->driver->stats(d->dev) : NULL;
    tl_device_leave(d);
    int length = snprintf(text, text ? size : 0, "%s", counted ? counted : "");
    free(counted);
    return length < 0 ? 0 : (size_t)length;
}

tile_status tile_device_set_callbacks(tile_device *device, const tile_callbacks *callbacks)
{
    tile_callbacks given = TILE_CALLBACKS_INIT;
    tile_device *d;
    tile_status status = callbacks ? TL_TAKE(tile_callbacks, &given, callbacks, print) : TILE_OK;
    if (status == TILE_OK)
        status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    pthread_mutex_lock(&d->lock);
    d->callbacks = callbacks ? given : own_callbacks(d);
    pthread_mutex_unlock(&d->lock);
    tl_device_leave(d);
    return TILE_OK;
}
