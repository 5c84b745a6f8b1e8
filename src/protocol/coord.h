/* coord.h - the coordinator: who is a member, and what each round consists of.
 *
 * A pure machine. Messages and ticks go in; what it answers stands in the
 * outbox. It lives in the process of server 0 and alone grants ranks and
 * leases, numbers views, and decides P(k), the members whose gradients make
 * version k + 1.
 * Thread: one at a time. */
#ifndef FL_PROTOCOL_COORD_H
#define FL_PROTOCOL_COORD_H

#include "protocol/message.h"

typedef struct fl_coord fl_coord;

/* `state` is that of server 0; `job` has its defaults (both `job` and `out`
 * outlive the coordinator). Own: new. */
fl_coord *fl_coord_new(const fl_job *job, fl_state state, fl_outbox *out,
                       int64_t now);
void fl_coord_free(fl_coord *c);

/* A message; `from` is the call it came on, or the server. */
void fl_coord_recv(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now);

/* The rank of who sent m, if it is a member. -1: it is not, and is answered so;
 * nothing else happens. For requests that are not the coordinator's. */
int fl_coord_admit(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now);

/* A call broke: its parked JOIN is forgotten, its member has a second left. */
void fl_coord_hangup(fl_coord *c, uint64_t call, int64_t now);

/* A server that was there cannot be reached. Some time after END that is as
 * good as an answer. Before it the job ends if the server's host is there and
 * says for a while that nobody listens. */
void fl_coord_refused(fl_coord *c, int server, bool no_listener, int64_t now);

/* Time passes: to be called several times a second. A gap longer than a third
 * of the lease means that this process slept; leases are moved on by it. */
void fl_coord_tick(fl_coord *c, int64_t now);

/* End the job now, for instance because of a signal. */
void fl_coord_end(fl_coord *c, int code, const char *why, int64_t now);

/* It has ended and every server knows: the process may leave. */
bool fl_coord_over(const fl_coord *c, int64_t now);

/* It has ended and every server has said that it knows. */
bool fl_coord_told(const fl_coord *c);

/* The verdict once it has ended; *why is borrowed. */
bool fl_coord_ended(const fl_coord *c, int *code, const char **why);

/* Rows "who waits for whom: for what, how long". */
void fl_coord_waits(const fl_coord *c, int64_t now, fl_str *rows);

int64_t fl_coord_round(const fl_coord *c); /* the open one */
int64_t fl_coord_view(const fl_coord *c);
int fl_coord_done(const fl_coord *c);                    /* ranks that are */
int fl_coord_parked(const fl_coord *c);                  /* JOINs that wait */
bool fl_coord_has(const fl_coord *c, fl_id session);     /* a member now */
int fl_coord_members(const fl_coord *c, fl_member *out); /* by rank */

#endif
