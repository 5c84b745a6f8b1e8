/* service.c - the trainers of an engine, by place. */
#include "trainer/service.h"

#include "exec/plan.h"

#include <pthread.h>
#include <stdio.h>

/* A job that programs are parts of. */
typedef struct seat {
    fl_trainer *trainer;
    fl_communicator *communicator; /* or NULL */
} seat;

/* The lock is held while a seat is looked for or made, not while it works. */
struct fl_service {
    pthread_mutex_t lock;
    FL_VEC(seat) seats;
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
    for (int64_t i = 0; i < s->seats.n; i++)
        fl_trainer_free(s->seats.at[i].trainer);
    fl_vec_fini(&s->seats);
    pthread_mutex_destroy(&s->lock);
    fl_mem_free(s);
}

/* --- jobs, under the lock --- */

static seat *find(fl_service *s, const fl_placement *place)
{
    for (int64_t i = 0; i < s->seats.n; i++)
        if (fl_trainer_is_at(s->seats.at[i].trainer, place))
            return &s->seats.at[i];
    return NULL;
}

static fl_err find_or_make(fl_service *s, const fl_placement *place, seat **out)
{
    fl_trainer *t;
    *out = find(s, place);
    if (*out)
        return FL_OK;
    FL_TRY(fl_trainer_new(place, NULL, &t));
    fl_push(&s->seats, (seat){t, NULL});
    *out = &s->seats.at[s->seats.n - 1];
    return FL_OK;
}

fl_err fl_service_trainer(fl_service *s, const fl_placement *place,
                          fl_trainer **out)
{
    seat *of;
    pthread_mutex_lock(&s->lock);
    const fl_err err = find_or_make(s, place, &of);
    if (!err)
        *out = of->trainer;
    pthread_mutex_unlock(&s->lock);
    return err;
}

fl_trainer *fl_service_find(fl_service *s, const fl_placement *place)
{
    pthread_mutex_lock(&s->lock);
    const seat *of = place             ? find(s, place)
                     : s->seats.n == 1 ? &s->seats.at[0]
                                       : NULL;
    fl_trainer *t = of ? of->trainer : NULL;
    pthread_mutex_unlock(&s->lock);
    return t;
}

static bool is_placed(const fl_placement *place, const char *var)
{
    for (int i = 0; i < place->n_pieces; i++)
        if (!strcmp(place->pieces[i].var, var))
            return true;
    return false;
}

const fl_placement *fl_service_keeper(fl_service *s, const char *var)
{
    const fl_placement *found = NULL;
    pthread_mutex_lock(&s->lock);
    for (int64_t i = s->seats.n; var && !found && i-- > 0;) {
        const fl_placement *place = fl_trainer_place(s->seats.at[i].trainer);
        if (is_placed(place, var))
            found = place;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* --- communicators --- */

static fl_err communicate(fl_service *s, const fl_program *p)
{
    seat *of;
    if (!p->job)
        return fl_fail(FL_EINVAL,
                       "communicator: the program is no part of a job");
    FL_TRY(find_or_make(s, fl_placement_of(p->job), &of));
    if (of->communicator)
        return fl_fail(FL_EINVAL, "the communicator runs already");
    return fl_communicator_new(of->trainer, p, &of->communicator);
}

fl_err fl_service_communicate(fl_service *s, const fl_program *p)
{
    pthread_mutex_lock(&s->lock);
    const fl_err err = communicate(s, p);
    pthread_mutex_unlock(&s->lock);
    return err;
}

fl_communicator *fl_service_communicator(fl_service *s,
                                         const fl_placement *place)
{
    pthread_mutex_lock(&s->lock);
    const seat *of = place ? find(s, place) : NULL;
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
    seat *of = find(s, place);
    fl_communicator *c = of ? of->communicator : NULL;
    if (c)
        of->communicator = NULL;
    pthread_mutex_unlock(&s->lock);
    return c;
}

fl_err fl_service_hush(fl_service *s, const fl_placement *place,
                       const fl_watch *by)
{
    const fl_err err = fl_service_flush(s, place, NULL, by);
    fl_communicator_free(take_communicator(s, place));
    return err;
}

/* --- the end --- */

/* What has gathered is no loss to a job that fails. */
static fl_err leave_job(seat of, int code, const char *why, int64_t limit,
                        const fl_watch *by)
{
    fl_err err = FL_OK;
    char text[512];
    if (fl_trainer_check_process(of.trainer))
        return FL_OK; /* its job is the parent's to leave */
    if (of.communicator && !code)
        err = fl_communicator_flush(of.communicator, by);
    snprintf(text, sizeof text, "%s", fl_errmsg());
    fl_communicator_free(of.communicator);
    const fl_err left = fl_trainer_leave(of.trainer, by, code, why, limit);
    return err ? fl_fail(err, "%s", text) : left;
}

/* The next one, whose communicator is the caller's. */
static bool next_seat(fl_service *s, int64_t i, seat *out)
{
    pthread_mutex_lock(&s->lock);
    const bool is = i < s->seats.n;
    if (is) {
        *out = s->seats.at[i];
        s->seats.at[i].communicator = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    return is;
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
    seat of;
    for (int64_t i = 0; next_seat(s, i, &of); i++) {
        const fl_err err = leave_job(of, code, why, limit, &watch);
        if (err && !first) {
            first = err;
            snprintf(text, sizeof text, "%s", fl_errmsg());
        }
    }
    return first ? fl_fail(first, "%s", text) : FL_OK;
}

/* --- for the operators --- */

fl_err fl_call_place(fl_call *c, const fl_placement **out)
{
    const char *type = c->def->type;
    if (!c->hooks || !c->hooks->service)
        return fl_fail(FL_EINVAL, "%s: nothing here connects it to servers",
                       type);
    *out = fl_placement_of(fl_call_site(c).program->job);
    if (!*out)
        *out = fl_service_keeper(c->hooks->service, fl_desc_in1(c->desc, "W"));
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
    const fl_placement *place;
    FL_TRY(fl_call_place(c, &place));
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
    FL_TRY(fl_call_place(c, &place));
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
