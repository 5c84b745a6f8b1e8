/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c - a handler counts signals; listeners compare the count with the
 * one that they saw last. */
#include "base/signals.h"

#include <string.h>

static const int numbers[FL_SIGNALS] = {SIGINT, SIGTERM, SIGUSR1};

/* Global, because a signal handler gets no pointer. */
static volatile sig_atomic_t signals_heard[FL_SIGNALS];

static void count_signal(int number)
{
    for (int i = 0; i < FL_SIGNALS; i++)
        if (numbers[i] == number)
            signals_heard[i] = signals_heard[i] + 1;
}

void fl_signals_begin(fl_signals *s)
{
    struct sigaction mine = {.sa_handler = count_signal,
                             .sa_flags = SA_RESTART};
    memset(s, 0, sizeof *s);
    sigemptyset(&mine.sa_mask);
    for (int i = 0; i < FL_SIGNALS; i++) {
        s->seen[i] = signals_heard[i];
        s->ours[i] = !sigaction(numbers[i], NULL, &s->old[i]) &&
                     !(s->old[i].sa_flags & SA_SIGINFO) &&
                     s->old[i].sa_handler == SIG_DFL &&
                     !sigaction(numbers[i], &mine, NULL);
    }
}

void fl_signals_end(fl_signals *s)
{
    for (int i = 0; i < FL_SIGNALS; i++)
        if (s->ours[i])
            sigaction(numbers[i], &s->old[i], NULL);
}

int fl_signals_ends(const fl_signals *s)
{
    for (int i = 0; i < 2; i++)
        if (signals_heard[i] != s->seen[i])
            return numbers[i];
    return 0;
}

bool fl_signals_asks(fl_signals *s)
{
    const int now = signals_heard[2];
    const bool asked = now != s->seen[2];
    s->seen[2] = now;
    return asked;
}
