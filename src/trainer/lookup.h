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

/* An item of an answer, and a reference to its parcel. */
typedef struct fl_received {
    fl_parcel *parcel;
    const fl_item *item;
} fl_received;

/* What has come of a variable: one item, or several ranges of it in order. */
typedef FL_VEC(fl_received) fl_received_list;
void fl_received_clear(fl_received_list *l);

typedef struct fl_lookup {
    int server;
    const char *table; /* name on the server */
    int64_t n;
    const int64_t *rows; /* row numbers of the server */
    fl_tensor *out; /* gets the answer: [n, width], the variable, or [ids]. A
                       view of that shape is filled where it lies. */
    int64_t most;
    fl_received_list *kept; /* of a variable, in place of `out`: the answer is
                               not copied but kept; NULL: it is copied */
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

/* Ask ahead: send the requests and return. The lookups stay as they are, and
 * their outputs are not touched, until fl_lookups_wait is called with the
 * number that this returns. The client is ready. 0: nothing was asked, since
 * the answer would need several messages. Of many that were never waited for,
 * the oldest are forgotten. */
uint64_t fl_lookups_ask(fl_lookups *s, int n, const fl_lookup *lookups);

/* The same for a synchronous job: nothing is sent. The rows are asked for with
 * the pull of the next step, so that they are those of the version after it.
 * 0: the answer would need several messages. */
uint64_t fl_lookups_ask_by_pull(fl_lookups *s, int n, const fl_lookup *lookups);

/* At the beginning of a step: the most bytes that these add to the answer of a
 * server; add their rows to its pull; the step begins, and its pull brings
 * version `round`. */
size_t fl_lookups_pull_bytes(const fl_lookups *s, int server);
void fl_lookups_add_to_pull(fl_lookups *s, int server, fl_parcel *pull);
void fl_lookups_pull_begins(fl_lookups *s, int64_t round);

/* The pull of a step was answered with version `round`. */
void fl_lookups_pulled(fl_lookups *s, int server, int64_t round,
                       fl_parcel *values);

/* Wait for the answers. False: the number is not known, or the rows are not of
 * the trainer's version; ask now. */
bool fl_lookups_wait(fl_lookups *s, const fl_watch *by, uint64_t ticket,
                     fl_err *err);

/* The answer of a server to the request `tag` has arrived. False: no lookup has
 * made that request. */
bool fl_lookups_answer(fl_lookups *s, int server, uint64_t tag,
                       fl_parcel *values);

/* A session was lost: no request of it will be answered. */
void fl_lookups_lose(fl_lookups *s);

#endif
