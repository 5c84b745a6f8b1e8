/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - counts of all trainers of a job, added up.
 *
 * The process of server 0 adds them up; training does not depend on them. An
 * example are the bins of an AUC: with their sums every trainer can show the
 * AUC of the whole job. A report of a rank replaces its earlier one, so a
 * repeated report does no harm, and a trainer that was started again starts
 * from 0. The last report of a rank that has left still counts. */
#ifndef FL_PSERVER_TALLY_H
#define FL_PSERVER_TALLY_H

#include "wire/parcel.h"

enum {
    FL_TALLIES_MOST = 16,       /* names */
    FL_TALLY_BYTES = 128 << 20, /* memory of all names and ranks */
};

typedef struct fl_tallies fl_tallies; /* Thread: one at a time */

fl_tallies *fl_tallies_new(int trainers);
void fl_tallies_free(fl_tallies *t); /* NULL is fine */

/* Take the report m (a TALLY) of a rank. The answer is VALUES with the sums, or
 * ERROR if the report is refused and has no effect. Own: the answer's blob
 * (fl_keeper_parcels); its text is fl_errmsg. */
fl_msg fl_tallies_report(fl_tallies *t, int rank, const fl_msg *m);

#endif
