/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.h - values that a trainer asks its servers for, beside its steps. */
#ifndef FL_TRAINER_LOOKUP_H
#define FL_TRAINER_LOOKUP_H

#include "trainer/link.h"
#include "wire/parcel.h"

/* One thing that a server is asked for:
 *
 *     n >= 0, most 0   the n rows `rows` of a table
 *     n < 0            all elements of a variable
 *     most > 0         the next `most` ids that a table has, or fewer at its
 *                      end: after the id rows[0] (n 1), or from the first (n 0)
 */
typedef struct fl_lookup {
    int server;
    const char *table; /* name on the server */
    int64_t n;
    const int64_t *rows; /* row numbers of the server */
    fl_tensor *out; /* gets the answer: [n, width], the variable, or [ids]. A
                       view of that shape is filled where it lies. */
    int64_t most;
} fl_lookup;

/* The lookups of a trainer that are not answered yet. Several threads may look
 * up at the same time. Thread: the link's lock is held in all calls. */
typedef struct fl_lookups fl_lookups;

/* Own: new. link, place and job outlive it. */
fl_lookups *fl_lookups_new(fl_link *link, const fl_placement *place,
                           const fl_job *job);
void fl_lookups_free(fl_lookups *s); /* NULL is allowed; no lookup runs */

/* Ask all servers at once and wait for the answers. The lock is released while
 * it waits and while values are copied. If the session is lost everything is
 * asked for again, so that all values are of one session.
 * Err: as fl_link_wait; EPROTO. */
fl_err fl_lookups_run(fl_lookups *s, const fl_watch *by, int n,
                      const fl_lookup *lookups) FL_MUST_CHECK;

/* The answer of a server to the request `tag` has arrived. */
void fl_lookups_answer(fl_lookups *s, int server, uint64_t tag,
                       fl_parcel *values);

/* A session was lost: no request of it will be answered. */
void fl_lookups_lose(fl_lookups *s);

#endif
