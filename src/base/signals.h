/* SPDX-License-Identifier: Apache-2.0 */
/* signals.h - SIGINT, SIGTERM and SIGUSR1, heard where nobody else hears them.
 *
 *     fl_signals s;
 *     fl_signals_begin(&s);
 *     while (!fl_signals_ends(&s)) ...
 *     fl_signals_end(&s);
 *
 * A handler is set only where the disposition was the default, and taken back
 * at the end: what a front or a user has set stays theirs. */
#ifndef FL_BASE_SIGNALS_H
#define FL_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

enum {
    FL_SIGNALS = 3
};

/* Thread: one at a time; several may listen at once. */
typedef struct fl_signals {
    bool ours[FL_SIGNALS]; /* the handler is */
    struct sigaction old[FL_SIGNALS];
    int seen[FL_SIGNALS]; /* how many had come when it last looked */
} fl_signals;

void fl_signals_begin(fl_signals *s);
void fl_signals_end(fl_signals *s);

/* SIGINT or SIGTERM, if one came since it began; else 0. */
int fl_signals_ends(const fl_signals *s);

/* SIGUSR1 came since it was last asked. */
bool fl_signals_asks(fl_signals *s);

#endif
