/* SPDX-License-Identifier: Apache-2.0 */
/* notes.c - the lines, and what was said last about trainers and versions. */
#include "pserver/notes.h"

#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdarg.h>
#include <stdio.h>

#define VERSION_LINES (60 * FL_SEC) /* between two lines on the version */

struct fl_notes {
    FL_VEC(char *) lines; /* own */
    int trainers;
    fl_id *session;     /* last session that was noted, by rank */
    int64_t version;    /* newest version that was noted */
    int64_t version_at; /* when it was */
};

fl_notes *fl_notes_new(void)
{
    return fl_mem_alloc(sizeof(fl_notes));
}

void fl_notes_free(fl_notes *n)
{
    fl_notes_write(fl_notes_take(n));
    fl_mem_free(n->session);
    fl_mem_free(n);
}

void fl_notes_begin(fl_notes *n, int trainers)
{
    fl_mem_free(n->session);
    n->trainers = trainers;
    n->session = fl_mem_alloc((size_t)trainers * sizeof *n->session);
    n->version = 0;
}

void fl_notes_add(fl_notes *n, const char *fmt, ...)
{
    char line[FL_LOG_LINE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fl_push(&n->lines, fl_mem_strdup(line));
}

void fl_notes_add_outbox(fl_notes *n, const fl_outbox *box)
{
    for (int64_t i = 0; i < box->note.n; i++)
        fl_notes_add(n, "%s", box->note.at[i]);
}

static void note_leave(fl_notes *n, int rank, const fl_msg *view)
{
    char why[128] = "";
    for (int i = 0; i < view->n_left && !why[0]; i++)
        if (fl_id_same(view->left[i].session, n->session[rank]))
            fl_leave_text(&view->left[i], why, sizeof why);
    fl_notes_add(n, "trainer %d has left; %d of %d are here%s%s", rank,
                 view->n_member, n->trainers, why[0] ? "; " : "", why);
}

void fl_notes_view(fl_notes *n, const fl_msg *view)
{
    int at = 0; /* members are sorted by rank */
    for (int rank = 0; rank < n->trainers; rank++) {
        while (at < view->n_member && view->member[at].rank < rank)
            at++;
        const bool is = at < view->n_member && view->member[at].rank == rank;
        const fl_id now = is ? view->member[at].session : (fl_id){0};
        if (fl_id_same(now, n->session[rank]))
            continue;
        if (!fl_id_same(n->session[rank], (fl_id){0}))
            note_leave(n, rank, view);
        if (is)
            fl_notes_add(n, "trainer %d has joined; %d of %d are here", rank,
                         view->n_member, n->trainers);
        n->session[rank] = now;
    }
}

void fl_notes_version(fl_notes *n, int64_t version, const fl_clock *clock)
{
    const int64_t more = version - n->version;
    if (!more)
        return;
    const int64_t now = fl_clock_now(clock), since = now - n->version_at;
    if (!n->version)
        fl_notes_add(n, "version %lld: the job trains", (long long)version);
    else if (since >= VERSION_LINES)
        fl_notes_add(n, "version %lld, %.3g a second", (long long)version,
                     (double)more * (double)FL_SEC / (double)since);
    else
        return;
    n->version = version;
    n->version_at = now;
}

char **fl_notes_take(fl_notes *n)
{
    if (!n->lines.n)
        return NULL;
    fl_push(&n->lines, NULL);
    char **lines = n->lines.at;
    memset(&n->lines, 0, sizeof n->lines);
    return lines;
}

void fl_notes_write(char **lines)
{
    for (int i = 0; lines && lines[i]; i++) {
        if (fl_starts_with(lines[i], "stalled"))
            FL_WARN("%s", lines[i]);
        else
            FL_INFO("%s", lines[i]);
        fl_mem_free(lines[i]);
    }
    fl_mem_free(lines);
}
