/* SPDX-License-Identifier: Apache-2.0 */
/* signals.h - SIGINT, SIGTERM and SIGUSR1 for waits of the library.
 *
 *     fl_signals s;
 *     fl_signals_begin(&s);
 *     while (!fl_signals_ends(&s)) ...
 *     fl_signals_end(&s);
 *
 * A handler is set only if the signal had the default handler, and removed at
 * the end. Handlers that a script or a program has set are not touched. */
#ifndef FL_BASE_SIGNALS_H
#define FL_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

enum {
    FL_SIGNALS = 3
};

/* Thread: one at a time; several may listen at once. */
typedef struct fl_signals {
    bool ours[FL_SIGNALS]; /* the handler of this signal was set here */
    struct sigaction old[FL_SIGNALS];
    int seen[FL_SIGNALS]; /* the count when it was last read */
} fl_signals;

void fl_signals_begin(fl_signals *s);
void fl_signals_end(fl_signals *s);

/* SIGINT or SIGTERM if one arrived since fl_signals_begin; else 0. */
int fl_signals_ends(const fl_signals *s);

/* Whether SIGUSR1 arrived since the last call. */
bool fl_signals_asks(fl_signals *s);

#endif
