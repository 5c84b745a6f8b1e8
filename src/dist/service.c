/* service.c - the trainers of an engine, by place. */
#include "dist/service.h"

#include "exec/plan.h"

#include <pthread.h>
#include <stdio.h>

/* The lock is held while a trainer is looked for or made, not while it works.
 */
struct fl_service {
    pthread_mutex_t lock;
    FL_VEC(fl_trainer *) trainers;
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
    (void)ignored; /* nobody is left to tell */
    for (int64_t i = 0; i < s->trainers.n; i++)
        fl_trainer_free(s->trainers.at[i]);
    fl_vec_fini(&s->trainers);
    pthread_mutex_destroy(&s->lock);
    fl_mem_free(s);
}

static fl_err find_or_make(fl_service *s, const fl_place *place,
                           fl_trainer **out)
{
    for (int64_t i = 0; i < s->trainers.n; i++)
        if (fl_trainer_is_at(s->trainers.at[i], place)) {
            *out = s->trainers.at[i];
            return FL_OK;
        }
    FL_TRY(fl_trainer_new(place, NULL, NULL, out));
    fl_push(&s->trainers, *out);
    return FL_OK;
}

fl_err fl_service_trainer(fl_service *s, const fl_place *place, fl_watch *watch,
                          fl_trainer **out)
{
    pthread_mutex_lock(&s->lock);
    const fl_err err = find_or_make(s, place, out);
    pthread_mutex_unlock(&s->lock);
    if (!err)
        fl_trainer_watch(*out, watch);
    return err;
}

/* The first failure is told; the others leave all the same. */
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
    for (int64_t i = 0;; i++) {
        pthread_mutex_lock(&s->lock);
        fl_trainer *t = i < s->trainers.n ? s->trainers.at[i] : NULL;
        pthread_mutex_unlock(&s->lock);
        if (!t)
            break;
        fl_trainer_watch(t, &watch);
        const fl_err err = fl_trainer_leave(t, code, why, limit);
        fl_trainer_watch(t, NULL);
        if (err && !first) {
            first = err;
            snprintf(text, sizeof text, "%s", fl_errmsg());
        }
    }
    return first ? fl_fail(first, "%s", text) : FL_OK;
}

/* --- for the operators --- */

static fl_err place_of(const fl_call *c, const fl_place **out)
{
    const char *type = c->def->type;
    if (!c->hooks || !c->hooks->service)
        return fl_fail(FL_EINVAL, "%s: nothing here connects it to servers",
                       type);
    *out = fl_call_site(c).program->place;
    if (!*out)
        return fl_fail(FL_EINVAL,
                       "%s: the program is no part of a job; run what "
                       "get_trainer_program gave (a program read from a file "
                       "has lost its servers)",
                       type);
    return FL_OK;
}

fl_err fl_call_trainer(fl_call *c, fl_trainer **out)
{
    const fl_place *place;
    FL_TRY(place_of(c, &place));
    return fl_service_trainer(c->hooks->service, place,
                              fl_call_site(c).env->watch, out);
}

fl_err fl_call_server(fl_call *c, const char *endpoint, int *out)
{
    const fl_place *place;
    FL_TRY(place_of(c, &place));
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
