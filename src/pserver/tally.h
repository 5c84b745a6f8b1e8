/* tally.h - counts of all trainers of a job, added up.
 *
 * Beside the coordinator, and of no meaning to it: the bins of an AUC, for
 * instance, so that every trainer can show that of the whole job. What a rank
 * tells takes the place of what it told before, so to tell twice does no harm;
 * a trainer that was started again begins anew. A rank that left counts on. */
#ifndef FL_PSERVER_TALLY_H
#define FL_PSERVER_TALLY_H

#include "wire/parcel.h"

enum {
    FL_TALLIES_MOST = 16,       /* names */
    FL_TALLY_BYTES = 128 << 20, /* of all names and ranks */
};

typedef struct fl_tallies fl_tallies; /* Thread: one at a time */

fl_tallies *fl_tallies_new(int trainers);
void fl_tallies_free(fl_tallies *t); /* NULL is fine */

/* The answer to TALLY m of that rank: VALUES, or ERROR for what is refused and
 * has no effect. Own: its blob (fl_keeper_parcels); its text is fl_errmsg. */
fl_msg fl_tallies_hear(fl_tallies *t, int rank, const fl_msg *m);

#endif
