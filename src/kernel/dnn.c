/* SPDX-License-Identifier: Apache-2.0 */
/* dnn.c - steps of oneDNN: a primitive between reorders. */
#include "kernel/dnn.h"

#include <omp.h>
#include <stddef.h>
#include <string.h>

#define TRY(call)                                                              \
    do {                                                                       \
        if ((call) != dnnl_success)                                            \
            return false;                                                      \
    } while (0)

void fl_dnn_alone(void)
{
    static _Thread_local bool alone;
    if (!alone)
        omp_set_num_threads(1);
    alone = true;
}

void fl_dnn_enter(sigset_t *was)
{
    sigset_t all;
    fl_dnn_alone();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, was);
}

void fl_dnn_leave(const sigset_t *was)
{
    pthread_sigmask(SIG_SETMASK, was, NULL);
}

static dnnl_status_t add_relu(dnnl_primitive_attr_t attr)
{
    dnnl_post_ops_t ops;
    dnnl_status_t status = dnnl_post_ops_create(&ops);
    if (status != dnnl_success)
        return status;
    status = dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(attr, ops);
    dnnl_post_ops_destroy(ops);
    return status;
}

bool fl_dnn_choose(const void *op, bool relu, dnnl_engine_t engine,
                   const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr;
    const char *made_by = "";
    TRY(dnnl_primitive_attr_create(&attr));
    dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode(
        attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && relu)
        status = add_relu(attr);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(out, op, attr, engine, hint);
    dnnl_primitive_attr_destroy(attr);
    TRY(status);
    dnnl_primitive_desc_query(*out, dnnl_query_impl_info_str, 0, &made_by);
    if (strncmp(made_by, "ref", 3))
        return true;
    dnnl_primitive_desc_destroy(*out);
    return false;
}

static bool init_reorder(fl_dnn_arg *a, dnnl_engine_t engine,
                         const dnnl_memory_desc_t *plain,
                         const dnnl_memory_desc_t *packed)
{
    const dnnl_memory_desc_t *from = a->out ? packed : plain;
    const dnnl_memory_desc_t *to = a->out ? plain : packed;
    dnnl_primitive_desc_t pd;
    TRY(dnnl_memory_create(&a->packed, packed, engine, DNNL_MEMORY_NONE));
    TRY(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine,
                                           NULL));
    dnnl_status_t status = dnnl_primitive_create(&a->reorder, pd);
    dnnl_primitive_desc_destroy(pd);
    return status == dnnl_success;
}

static bool init_arg(fl_dnn_step *s, const_dnnl_primitive_desc_t pd,
                     const fl_dnn_spec *spec)
{
    fl_dnn_arg *a = &s->arg[s->n++];
    const dnnl_memory_desc_t *want =
        dnnl_primitive_desc_query_md(pd, spec->query, spec->index);
    a->id = spec->id;
    a->out = spec->out;
    TRY(dnnl_memory_create(&a->plain, spec->plain, s->engine,
                           DNNL_MEMORY_NONE));
    return dnnl_memory_desc_equal(want, spec->plain) ||
           init_reorder(a, s->engine, spec->plain, want);
}

static const dnnl_memory_desc_t *desc_of(dnnl_memory_t m)
{
    const dnnl_memory_desc_t *d = NULL;
    dnnl_memory_get_memory_desc(m, &d);
    return d;
}

static size_t reserve(fl_dnn_step *s, dnnl_memory_t m)
{
    const size_t at = s->bytes;
    s->bytes += (dnnl_memory_desc_get_size(desc_of(m)) + 63) / 64 * 64;
    return at;
}

/* Place the packed arguments one after the other, beginning with `first`. */
static void lay_out(fl_dnn_step *s, int first)
{
    s->bytes = 0;
    for (int i = 0; i < s->n; i++) {
        fl_dnn_arg *a = &s->arg[(first + i) % s->n];
        if (a->packed)
            a->at = reserve(s, a->packed);
    }
    s->space_at = reserve(s, s->space);
}

bool fl_dnn_step_init(fl_dnn_step *s, dnnl_engine_t engine,
                      const_dnnl_primitive_desc_t pd, int n,
                      const fl_dnn_spec *spec)
{
    *s = (fl_dnn_step){.engine = engine};
    TRY(dnnl_stream_create(&s->stream, engine, dnnl_stream_default_flags));
    TRY(dnnl_primitive_create(&s->prim, pd));
    TRY(dnnl_memory_create(
        &s->space,
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0), engine,
        DNNL_MEMORY_NONE));
    for (int i = 0; i < n; i++)
        if (!init_arg(s, pd, &spec[i]))
            return false;
    lay_out(s, 0);
    return true;
}

void fl_dnn_step_fini(fl_dnn_step *s)
{
    for (int i = 0; i < s->n; i++) {
        fl_dnn_arg *a = &s->arg[i];
        dnnl_memory_destroy(a->plain);
        if (a->reorder)
            dnnl_memory_destroy(a->packed);
        dnnl_primitive_destroy(a->reorder);
    }
    dnnl_memory_destroy(s->space);
    dnnl_primitive_destroy(s->prim);
    dnnl_stream_destroy(s->stream);
    *s = (fl_dnn_step){0};
}

void fl_dnn_share(fl_dnn_step *s, int a, fl_dnn_step *first, int b)
{
    fl_dnn_arg *to = &s->arg[a];
    const fl_dnn_arg *from = &first->arg[b];
    if (!to->packed || !from->packed ||
        !dnnl_memory_desc_equal(desc_of(to->packed), desc_of(from->packed)))
        return;
    dnnl_memory_destroy(to->packed);
    dnnl_primitive_destroy(to->reorder);
    to->packed = from->packed;
    to->reorder = NULL;
    lay_out(s, a); /* both at the start of the workspace */
    lay_out(first, b);
}

static bool move_arg(const fl_dnn_step *s, const fl_dnn_arg *a)
{
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, a->out ? a->packed : a->plain},
                              {DNNL_ARG_TO, a->out ? a->plain : a->packed}};
    return dnnl_primitive_execute(a->reorder, s->stream, 2, args) ==
           dnnl_success;
}

static bool run_step(fl_dnn_step *s, void *const *at, char *workspace)
{
    dnnl_exec_arg_t args[FL_DNN_ARGS + 1];
    TRY(dnnl_memory_set_data_handle(s->space, workspace + s->space_at));
    for (int i = 0; i < s->n; i++) {
        const fl_dnn_arg *a = &s->arg[i];
        TRY(dnnl_memory_set_data_handle(a->plain, at[i]));
        if (a->packed)
            TRY(dnnl_memory_set_data_handle(a->packed, workspace + a->at));
        if (!a->out && a->reorder && !move_arg(s, a))
            return false;
        args[i].arg = a->id;
        args[i].memory = a->packed ? a->packed : a->plain;
    }
    args[s->n].arg = DNNL_ARG_SCRATCHPAD;
    args[s->n].memory = s->space;
    TRY(dnnl_primitive_execute(s->prim, s->stream, s->n + 1, args));
    for (int i = 0; i < s->n; i++)
        if (s->arg[i].out && s->arg[i].reorder && !move_arg(s, &s->arg[i]))
            return false;
    return dnnl_stream_wait(s->stream) == dnnl_success;
}

bool fl_dnn_step_run(fl_dnn_step *s, void *const *at, void *workspace)
{
    sigset_t was;
    fl_dnn_enter(&was);
    bool good = run_step(s, at, workspace);
    fl_dnn_leave(&was);
    return good;
}
