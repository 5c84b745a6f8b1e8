/* SPDX-License-Identifier: Apache-2.0 */
/* service.c - the trainers of an engine, by placement. */
#include "trainer/service.h"

#include "exec/plan.h"

#include <pthread.h>
#include <stdio.h>

/* A job that programs of the engine are in. */
typedef struct entry {
    fl_trainer *trainer;
    fl_communicator *communicator; /* NULL: none runs */
    fl_handle *found; /* the placement that it was found by last; a reference,
                         so that no other placement gets its address */
} entry;

/* The lock guards the list. It is not held while a trainer works. */
struct fl_service {
    pthread_mutex_t lock;
    FL_VEC(entry) jobs;
};

fl_service *fl_service_new(void)
{
    fl_service *s = fl_mem_alloc(sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void fl_service_free(fl_service *s)
{
    if (!s)
        return;
    const fl_err ignored = fl_service_leave(s, 0, NULL, NULL);
    (void)ignored; /* free cannot report an error */
    for (int64_t i = 0; i < s->jobs.n; i++) {
        fl_trainer_free(s->jobs.at[i].trainer);
        fl_handle_unref(s->jobs.at[i].found);
    }
    fl_vec_fini(&s->jobs);
    pthread_mutex_destroy(&s->lock);
    fl_mem_free(s);
}

/* --- jobs, under the lock --- */

static entry *find_job(fl_service *s, const fl_placement *place)
{
    fl_handle *handle = (fl_handle *)&place->handle;
    for (int64_t i = 0; i < s->jobs.n; i++)
        if (s->jobs.at[i].found == handle) /* no texts are compared */
            return &s->jobs.at[i];
    for (int64_t i = 0; i < s->jobs.n; i++) {
        entry *e = &s->jobs.at[i];
        if (!fl_trainer_is_at(e->trainer, place))
            continue;
        fl_handle_unref(e->found);
        e->found = fl_handle_ref(handle);
        return e;
    }
    return NULL;
}

static fl_err find_or_add_job(fl_service *s, const fl_placement *place,
                              entry **out)
{
    fl_trainer *t;
    *out = find_job(s, place);
    if (*out)
        return FL_OK;
    FL_TRY(fl_trainer_new(place, NULL, &t));
    fl_push(&s->jobs, (entry){.trainer = t});
    *out = &s->jobs.at[s->jobs.n - 1];
    return FL_OK;
}

fl_err fl_service_trainer(fl_service *s, const fl_placement *place,
                          fl_trainer **out)
{
    entry *of;
    pthread_mutex_lock(&s->lock);
    const fl_err err = find_or_add_job(s, place, &of);
    if (!err)
        *out = of->trainer;
    pthread_mutex_unlock(&s->lock);
    return err;
}

fl_trainer *fl_service_find_trainer(fl_service *s, const fl_placement *place)
{
    pthread_mutex_lock(&s->lock);
    const entry *of = place            ? find_job(s, place)
                      : s->jobs.n == 1 ? &s->jobs.at[0]
                                       : NULL;
    fl_trainer *t = of ? of->trainer : NULL;
    pthread_mutex_unlock(&s->lock);
    return t;
}

static bool holds_var(const fl_placement *place, const char *var)
{
    for (int i = 0; i < place->n_pieces; i++)
        if (!strcmp(place->pieces[i].var, var))
            return true;
    return false;
}

const fl_placement *fl_service_find_placement(fl_service *s, const char *var)
{
    const fl_placement *found = NULL;
    pthread_mutex_lock(&s->lock);
    for (int64_t i = s->jobs.n; var && !found && i-- > 0;) {
        const fl_placement *place = fl_trainer_placement(s->jobs.at[i].trainer);
        if (holds_var(place, var))
            found = place;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* --- communicators --- */

static fl_err start_communicator(fl_service *s, const fl_program *p)
{
    entry *of;
    if (!p->job)
        return fl_fail(FL_EINVAL,
                       "communicator: the program is not part of a job; start "
                       "it with the one that get_trainer_program returns");
    FL_TRY(find_or_add_job(s, fl_placement_of(p->job), &of));
    if (of->communicator)
        return fl_fail(FL_EINVAL, "the communicator runs already");
    return fl_communicator_new(of->trainer, p, &of->communicator);
}

fl_err fl_service_start_communicator(fl_service *s, const fl_program *p)
{
    pthread_mutex_lock(&s->lock);
    const fl_err err = start_communicator(s, p);
    pthread_mutex_unlock(&s->lock);
    return err;
}

fl_communicator *fl_service_communicator(fl_service *s,
                                         const fl_placement *place)
{
    pthread_mutex_lock(&s->lock);
    const entry *of = place ? find_job(s, place) : NULL;
    fl_communicator *c = of ? of->communicator : NULL;
    pthread_mutex_unlock(&s->lock);
    return c;
}

fl_err fl_service_flush(fl_service *s, const fl_placement *place,
                        fl_scope *scope, const fl_watch *by)
{
    fl_communicator *c = fl_service_communicator(s, place);
    if (!c)
        return FL_OK;
    FL_TRY(fl_communicator_flush(c, by));
    return scope ? fl_communicator_fill(c, scope) : FL_OK;
}

static fl_communicator *take_communicator(fl_service *s,
                                          const fl_placement *place)
{
    pthread_mutex_lock(&s->lock);
    entry *of = find_job(s, place);
    fl_communicator *c = of ? of->communicator : NULL;
    if (c)
        of->communicator = NULL;
    pthread_mutex_unlock(&s->lock);
    return c;
}

fl_err fl_service_stop_communicator(fl_service *s, const fl_placement *place,
                                    const fl_watch *by)
{
    const fl_err err = fl_service_flush(s, place, NULL, by);
    fl_communicator_free(take_communicator(s, place));
    return err;
}

/* --- the end --- */

/* Leave a job. With a code other than 0 the communicator is not flushed. */
static fl_err leave_job(entry of, int code, const char *why, int64_t limit,
                        const fl_watch *by)
{
    fl_err err = FL_OK;
    char text[512];
    if (fl_trainer_check_process(of.trainer))
        return FL_OK; /* in a forked child: the parent leaves the job */
    if (of.communicator && !code)
        err = fl_communicator_flush(of.communicator, by);
    snprintf(text, sizeof text, "%s", fl_errmsg());
    fl_communicator_free(of.communicator);
    const fl_err left = fl_trainer_leave(of.trainer, by, code, why, limit);
    return err ? fl_fail(err, "%s", text) : left;
}

/* Get job i and take over its communicator. False: there is no job i. */
static bool take_job(fl_service *s, int64_t i, entry *out)
{
    pthread_mutex_lock(&s->lock);
    const bool found = i < s->jobs.n;
    if (found) {
        *out = s->jobs.at[i];
        s->jobs.at[i].communicator = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* All trainers leave, even if one fails. The first failure is returned. */
fl_err fl_service_leave(fl_service *s, int code, const char *why,
                        const fl_wait_opts *opts)
{
    fl_watch watch = {.clock = fl_clock_real()};
    int64_t limit = 0;
    if (opts) {
        watch.poll = opts->poll;
        watch.user = opts->user;
        limit = opts->limit_ms * FL_MS;
    }
    fl_err first = FL_OK;
    char text[512];
    entry of;
    for (int64_t i = 0; take_job(s, i, &of); i++) {
        const fl_err err = leave_job(of, code, why, limit, &watch);
        if (err && !first) {
            first = err;
            snprintf(text, sizeof text, "%s", fl_errmsg());
        }
    }
    return first ? fl_fail(first, "%s", text) : FL_OK;
}

/* --- for the operators --- */

fl_err fl_call_placement(fl_call *c, const fl_placement **out)
{
    const char *type = c->def->type;
    if (!c->hooks || !c->hooks->service)
        return fl_fail(FL_EINVAL,
                       "%s: nothing here connects it to servers; only trainers "
                       "can run it: exe.run of the program that "
                       "get_trainer_program or fleet.main_program gives",
                       type);
    *out = fl_placement_of(fl_call_site(c).program->job);
    if (!*out)
        *out = fl_service_find_placement(c->hooks->service,
                                         fl_desc_in1(c->desc, "W"));
    if (!*out)
        return fl_fail(FL_EINVAL,
                       "%s: the program is not part of a job; run the one that "
                       "get_trainer_program returns (a program that was read "
                       "from a file does not know its servers)",
                       type);
    return FL_OK;
}

fl_err fl_call_trainer(fl_call *c, fl_trainer **out)
{
    const fl_placement *place;
    FL_TRY(fl_call_placement(c, &place));
    return fl_service_trainer(c->hooks->service, place, out);
}

const fl_watch *fl_call_watch(const fl_call *c)
{
    return fl_call_site(c).env->watch;
}

fl_communicator *fl_call_communicator(fl_call *c)
{
    if (!c->hooks || !c->hooks->service)
        return NULL;
    return fl_service_communicator(
        c->hooks->service, fl_placement_of(fl_call_site(c).program->job));
}

fl_err fl_call_server(fl_call *c, const char *endpoint, int *out)
{
    const fl_placement *place;
    FL_TRY(fl_call_placement(c, &place));
    for (int i = 0; i < place->n_servers; i++)
        if (!strcmp(place->servers[i], endpoint)) {
            *out = i;
            return FL_OK;
        }
    return fl_fail(FL_EINVAL,
                   "%s: \"%s\" is not among the job's %d servers, of which the "
                   "first is \"%s\"",
                   c->def->type, endpoint, place->n_servers, place->servers[0]);
}
