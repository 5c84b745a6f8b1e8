/* trainer_wait.c - waits of a trainer's caller.
 *
 * A wait is made of short rests. Between them, with the lock free, whoever
 * watches is asked whether to go on, and a wait that takes long says for whom:
 *
 *     trainer0:4711 waits for the coordinator: answer to BARRIER (round 7),
 *     12.0 s (limit 55.0 s); it says: rank 1 has not arrived */
#include "dist/trainer_in.h"

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

/* The first rows of a table, in one line. */
static void cut_rows(fl_str *rows, fl_str *line)
{
    int n = 0;
    char *row = rows->at ? rows->at : "";
    for (char *end; (end = strchr(row, '\n')); row = end + 1) {
        *end = 0;
        if (n++ < ROWS)
            fl_str_printf(line, "%s%s", n > 1 ? "; " : "", row);
    }
    if (n > ROWS)
        fl_str_printf(line, "; and %d more", n - ROWS);
}

static char *waits(const fl_trainer *t)
{
    fl_str rows = {0}, line = {0};
    fl_client_waits(t->client, fl_link_now(), &rows);
    cut_rows(&rows, &line);
    if (t->parked[0])
        fl_str_printf(&line, "; it says: %s", t->parked);
    fl_str_fini(&rows);
    return line.n ? fl_str_take(&line) : NULL;
}

/* One look around with the lock free; the report is the caller's to end. */
static fl_err look_around(fl_trainer *t, const fl_watch *by, char *report)
{
    fl_link_unlock(t);
    if (report)
        FL_INFO("%s", report);
    fl_mem_free(report);
    const bool stop = asks_to_stop(by);
    fl_link_lock(t);
    return stop ? fl_fail(FL_EINTR, "the wait for servers was interrupted")
                : FL_OK;
}

fl_err fl_trainer_wait(fl_trainer *t, fl_goal reached, const void *of,
                       const fl_watch *by, int64_t until)
{
    const int64_t began = fl_link_now();
    int64_t looked = began, said = began;
    t->parked[0] = 0;
    while (!reached(t, of)) {
        if (t->over)
            return fl_trainer_failed(t);
        fl_link_rest(t, REST);
        const int64_t now = fl_link_now();
        if (until && now >= until)
            return fl_fail(FL_ETIMEOUT, "nobody answered in %.0f s",
                           (double)(until - began) / (double)FL_SEC);
        if (now - looked < REST)
            continue;
        looked = now;
        const bool say = now - said >= t->job.stall;
        said = say ? now : said;
        FL_TRY(look_around(t, by, say ? waits(t) : NULL));
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
    return fl_wait_ports(t->place.n_servers, t->place.servers, &opts);
}
