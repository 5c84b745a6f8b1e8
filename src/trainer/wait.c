/* wait.c - waits of a trainer's caller.
 *
 * A wait is made of short rests. Between them, with the lock free, whoever
 * watches is asked whether to go on, and a wait that takes long says for whom:
 *
 *     trainer0:4711 waits for server 0 (ps0:6174): answer to PULL (round 7),
 *     12.0 s (limit 55.0 s)
 *     coordinator waits for trainer 1: to come, 12.1 s (limit 600.0 s) */
#include "trainer/trainer_in.h"

#include "base/log.h"

#define REST (200 * FL_MS) /* Ctrl-C is heard within it */

enum {
    ROWS = 3 /* of a report; the others are counted */
};

fl_err fl_trainer_failed(const fl_trainer *t)
{
    return fl_fail(FL_EIO, "%s", t->why);
}

static bool asks_to_stop(const fl_watch *w)
{
    return w && w->poll && w->poll(w->user);
}

void fl_waits_join(const char *rows, const char *start, fl_str *line)
{
    int n = 0;
    for (const char *end; (end = strchr(rows, '\n')); rows = end + 1)
        if (fl_starts_with(rows, start) && n++ < ROWS)
            fl_str_printf(line, "%s%.*s", n > 1 ? "; " : "", (int)(end - rows),
                          rows);
    if (n > ROWS)
        fl_str_printf(line, "; and %d more", n - ROWS);
}

/* One line about who is waited for, or NULL; the coordinator is asked for what
 * stands behind it. */
static char *report(fl_trainer *t)
{
    fl_str rows = {0}, line = {0};
    fl_client_waits(t->client, fl_link_now(), &rows);
    fl_waits_join(rows.at ? rows.at : "", "", &line);
    if (t->trouble[0])
        fl_str_printf(&line, "; %s", t->trouble);
    t->trouble[0] = 0;
    fl_str_fini(&rows);
    fl_link_ask_why(t);
    return line.n ? fl_str_take(&line) : NULL;
}

/* One look around with the lock free; ends the line. */
static fl_err look_around(fl_trainer *t, const fl_watch *by, char *line)
{
    fl_link_unlock(t);
    if (line)
        FL_INFO("%s", line);
    fl_mem_free(line);
    const bool stop = asks_to_stop(by);
    fl_link_lock(t);
    return stop ? fl_fail(FL_EINTR, "the wait for servers was interrupted")
                : FL_OK;
}

fl_err fl_trainer_wait(fl_trainer *t, fl_goal reached, const void *of,
                       const fl_watch *by, int64_t until)
{
    const int64_t began = fl_link_now();
    int64_t looked = began, counted = began;
    while (!reached(t, of)) {
        if (t->over)
            return fl_trainer_failed(t);
        fl_link_rest(t, REST);
        const int64_t now = fl_link_now();
        fl_watch_waited(by, now - counted);
        counted = now;
        if (until && now >= until)
            return fl_fail(FL_ETIMEOUT, "nobody answered in %.0f s",
                           (double)(until - began) / (double)FL_SEC);
        if (now - looked < REST)
            continue;
        looked = now;
        const bool say =
            now - began >= t->job.stall && now - t->said >= t->job.stall;
        t->said = say ? now : t->said;
        FL_TRY(look_around(t, by, say ? report(t) : NULL));
    }
    return FL_OK;
}

fl_err fl_trainer_connect(const fl_trainer *t, const fl_watch *by)
{
    fl_wait_opts opts = {.limit_ms = (t->job.start + FL_MS - 1) / FL_MS};
    if (by) {
        opts.poll = by->poll;
        opts.user = by->user;
    }
    const int64_t since = fl_link_now();
    const fl_err err =
        fl_wait_ports(t->place->n_servers, t->place->servers, &opts);
    fl_watch_waited(by, fl_link_now() - since);
    return err;
}
