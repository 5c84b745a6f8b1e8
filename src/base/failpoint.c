/* SPDX-License-Identifier: Apache-2.0 */
/* failpoint.c - counts the hits of a name, and sends the signal at the last
 * one. */
#include "base/failpoint.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNREAD, /* the environment was not read yet */
    OFF,
    ARMED,
    ARMED_TO_STOP /* SIGSTOP instead of SIGKILL */
};

static _Atomic int failpoint_state;
static _Atomic(const char *) failpoint_text; /* NAME:COUNT */
static _Atomic long failpoint_left;          /* hits until the signal */

void fl_failpoint_arm(const char *text)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    char *end = NULL;
    const long n = colon ? strtol(colon + 1, &end, 10) : 1;
    atomic_store(&failpoint_left, n > 0 ? n : 1);
    atomic_store(&failpoint_text, text);
    atomic_store(&failpoint_state, !text || !*text ? OFF
                                   : end && !strcmp(end, ":stop")
                                       ? ARMED_TO_STOP
                                       : ARMED);
}

static int read_state(void)
{
    const int state =
        atomic_load_explicit(&failpoint_state, memory_order_relaxed);
    if (state != UNREAD)
        return state;
    fl_failpoint_arm(getenv("FLUID_FAILPOINT"));
    return atomic_load(&failpoint_state);
}

static int is_named(const char *name)
{
    const char *text = atomic_load(&failpoint_text);
    const size_t n = strcspn(text, ":");
    return (n == 1 && *text == '*') ||
           (n == strlen(name) && !strncmp(text, name, n));
}

void fl_failpoint_hit(const char *name)
{
    const int state = read_state();
    if (state < ARMED || !is_named(name))
        return;
    if (atomic_fetch_sub(&failpoint_left, 1) == 1)
        raise(state == ARMED ? SIGKILL : SIGSTOP); /* to this thread: one that
                                    is sent to the process may come later */
}
