/* tune_compile.c: the compilations of tile_tune: the list of configurations, one image for each,
 * and the keys of the launch. */
#define TILE_UNSTABLE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/contract/form_text.h"
#include "runtime/host/processors.h"
#include "runtime/threads.h"
#include "runtime/tune/tune.h"

static tilec_options compiler_options(const tl_tuner *t, const char *target, const char *config,
                                      tl_heard *heard)
{
    tilec_options o = tl_jit_compiler_options(t->o->jit, heard);
    o.target = tilec_device_target(target);
    o.kernel = t->kernel;
    o.one_kernel = 1;
    o.consts = t->consts;
    o.nconsts = t->nconsts;
    o.config = config;
    o.cache = "off"; /* nobody asks for these images again */
    return o;
}

/* ---- the list ---- */

static tile_status choose_tuning(tl_tuner *t)
{
    size_t n;
    const tilec_tuning *rows = tilec_output_tunings(t->listed, &n);
    if (n == 0 && t->kernel)
        return tl_fail(TILE_NOT_FOUND,
                       "kernel '%s' has no tune clause, such as tune(B in {64, 128}) after its "
                       "parameters",
                       t->kernel);
    if (n == 0)
        return tl_fail(TILE_NOT_FOUND, "no kernel of '%s' has a tune clause", t->path);
    if (n > 1)
        return tl_fail(TILE_NOT_FOUND, "several kernels have tune clauses (%s, %s, ...): name one",
                       rows[0].kernel, rows[1].kernel);
    if (rows->nconfigs == 0)
        return tl_fail(TILE_NOT_FOUND,
                       "kernel '%s': no configuration of tune has the values given%s", rows->kernel,
                       strcmp(t->info.target, "ref") == 0 || strncmp(t->info.target, "cpu", 3) == 0
                           ? ", or only warps and stages differ, which change nothing on the host"
                           : "");
    t->tuning = rows;
    t->kernel = rows->kernel;
    return TILE_OK;
}

tile_status tl_tune_list(tl_tuner *t)
{
    tl_heard h = {0};
    tilec_options o = compiler_options(t, t->info.target, NULL, &h);
    o.one_kernel = 0;
    o.tunings = 1;
    tilec_status compiled = tilec_compile_file(t->path, &o, &t->listed);
    tile_status status = tl_jit_status(compiled, t->listed, &h);
    free(h.text);
    return status == TILE_OK ? choose_tuning(t) : status;
}

/* ---- the launch's sizes ---- */

static tile_status evaluate_keys(tl_tuner *t, const tl_instance *in, const tl_bound *bound)
{
    const char *wrong;
    t->like.nkeys = in->kernel->nkeys;
    if (!tl_find_keys(in, t->device, bound, t->like.sizes, &wrong))
        return tl_fail(TILE_BAD_ARGUMENT, "kernel '%s': the key '%s' has no value", t->kernel,
                       wrong);
    for (size_t i = 0; i < t->like.nkeys; i++)
        t->like.bucket[i] = tl_bucket(t->like.sizes[i]);
    return TILE_OK;
}

static tile_status bind_sizes(tl_tuner *t, const void *image, size_t size)
{
    tl_bound *bound = malloc(sizeof *bound);
    tl_instance in = {.image = image, .kernel = tl_image_kernels(image)};
    tile_status status = tl_image_check(image, size);
    if (!bound)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    if (status == TILE_OK &&
        tl_bind(t->device, &in, t->args, t->nargs, NULL, 0, bound) == TL_BIND_ERROR)
        status = TILE_BAD_ARGUMENT;
    if (status == TILE_OK)
        status = evaluate_keys(t, &in, bound);
    free(bound);
    return status;
}

/* The image of the interpreter is made in a few milliseconds and has the same parameters. */
tile_status tl_tune_sizes(tl_tuner *t)
{
    tl_heard h = {0};
    tilec_output *output = NULL;
    size_t size;
    tilec_options o = compiler_options(t, "ref", t->tuning->configs[0], &h);
    tilec_status compiled = tilec_compile_file(t->path, &o, &output);
    tile_status status = tl_jit_status(compiled, output, &h);
    if (status == TILE_OK) {
        const void *image = tilec_output_data(output, &size);
        status = bind_sizes(t, image, size);
    }
    tilec_output_free(output);
    free(h.text);
    return status;
}

/* ---- the images ---- */

/* Threads that take the next trial until there is none. */
typedef struct crew {
    tl_tuner *t;
    pthread_mutex_t lock;
    pthread_cond_t ready;
    size_t begin, next, end, running, finished;
    bool stop;
} crew;

/* The first line that says what is wrong, without its position. */
static const char *reason(char *text)
{
    char *error = strstr(text, "error[");
    char *from = error ? error : text;
    from[strcspn(from, "\n")] = 0;
    char *after = error ? strstr(from, "]: ") : NULL;
    return after ? after + 3 : from;
}

/* Only in this form. */
static bool compile_form(tl_tuner *t, tl_trial *trial, const char *form)
{
    tl_heard h = {0};
    tilec_options o = compiler_options(t, t->info.target, trial->config, &h);
    bool model = t->o->model != 0;
    if (model && strncmp(o.target, "emu:", 4) == 0)
        o.target = tilec_device_target(o.target + 4);
    o.report = model;
    o.forms = form;
    tilec_status status = tilec_compile_file(t->path, &o, &trial->output);
    if (status == TILEC_ERRORS)
        tl_tune_reject(trial, "%s", h.text ? reason(h.text) : "it does not compile");
    trial->passing = status == TILEC_NO_MEMORY;
    if (status != TILEC_OK && status != TILEC_ERRORS)
        tl_tune_reject(trial, "%s",
                       trial->output ? tilec_output_message(trial->output) : "out of memory");
    free(h.text);
    return status == TILEC_OK;
}

/* In the form that will run with the launch's arguments, as a program would. */
static void compile_one(tl_tuner *t, tl_trial *trial)
{
    char *form = NULL;
    size_t size;
    if (!compile_form(t, trial, TL_FORM_ALIGNED))
        return;
    const void *image = tilec_output_data(trial->output, &size);
    tile_status status = tl_image_check(image, size);
    if (status == TILE_OK)
        status = tl_form_wanted(t->device, image, t->args, t->nargs, &form);
    if (status != TILE_OK)
        tl_tune_reject_failed(trial, status);
    if (form) {
        tilec_output_free(trial->output);
        trial->output = NULL;
        compile_form(t, trial, form);
    }
    free(form);
}

static void *work(void *user)
{
    crew *c = user;
    TL_FP_SCOPE();
    pthread_mutex_lock(&c->lock);
    while (!c->stop && c->next < c->end) {
        tl_trial *trial = &c->t->trials[c->next++];
        pthread_mutex_unlock(&c->lock);
        compile_one(c->t, trial);
        pthread_mutex_lock(&c->lock);
        c->finished++;
        pthread_cond_signal(&c->ready);
    }
    c->running--;
    pthread_cond_signal(&c->ready);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

size_t tl_tune_processors(void)
{
    tl_processors allowed;
    tl_processors_allowed(&allowed);
    return (size_t)tl_processors_quota("", tl_processors_count(&allowed));
}

/* The calling thread only watches, so that it can tell how far this is, and be stopped. */
static void watch(crew *c)
{
    while (c->running) {
        pthread_cond_wait(&c->ready, &c->lock);
        if (c->stop)
            continue;
        c->t->compiled = c->begin + c->finished;
        pthread_mutex_unlock(&c->lock);
        bool go_on = tl_tune_report(c->t, "compile", NULL);
        pthread_mutex_lock(&c->lock);
        c->stop |= !go_on;
    }
}

bool tl_tune_compile(tl_tuner *t, size_t begin, size_t end)
{
    enum { MOST_THREADS = 64 };
    crew c = {.t = t, .begin = begin, .next = begin, .end = end};
    pthread_t threads[MOST_THREADS];
    size_t wanted = end - begin, n = 0, processors = tl_tune_processors();
    wanted = wanted > processors ? processors : wanted;
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.ready, NULL);
    pthread_mutex_lock(&c.lock);
    while (n < wanted && n < MOST_THREADS && tl_thread_start(&threads[n], work, &c) == 0) {
        n++;
        c.running++;
    }
    watch(&c);
    pthread_mutex_unlock(&c.lock);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    if (n == 0) { /* no thread can be had */
        c.running = 1;
        work(&c);
    }
    pthread_cond_destroy(&c.ready);
    pthread_mutex_destroy(&c.lock);
    return !c.stop;
}
