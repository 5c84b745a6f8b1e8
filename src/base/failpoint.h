/* SPDX-License-Identifier: Apache-2.0 */
/* failpoint.h - named places at which a process can be told to die.
 *
 *     FLUID_FAILPOINT=owner.live:3    SIGKILL when owner.live is hit the third
 *                                     time; *:3 counts all names
 *     FLUID_FAILPOINT=step.push:3:stop   SIGSTOP in place of SIGKILL
 *
 * Tests of recovery use them. The variable is read once; if it is not set, a
 * hit costs one load and one branch. */
#ifndef FL_BASE_FAILPOINT_H
#define FL_BASE_FAILPOINT_H

/* Thread: any. */
void fl_failpoint_hit(const char *name);

/* Set the failpoint as the variable does; NULL: none. For tests that fork. */
void fl_failpoint_arm(const char *text);

#endif
