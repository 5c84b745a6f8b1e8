/* server_in.h - the inside of a shard server, shared by its files. */
#ifndef FL_PROTOCOL_SERVER_IN_H
#define FL_PROTOCOL_SERVER_IN_H

#include "protocol/server.h"
#include "protocol/window.h"

enum {
    FL_SENTENCE_MAX = 256, /* bytes of END's sentence that are kept */
    FL_AHEAD_MAX = 16,     /* CLOSEs that came before their time */
};

/* What one session has staged on one shard for the round that is open here. */
typedef struct fl_staging {
    fl_window window;
    FL_VEC(fl_blob) part; /* by seq */
    FL_VEC(int64_t) seq;
    int64_t count; /* pushes there must be; 0: the last is not here */
} fl_staging;

typedef struct fl_seat {
    fl_id session;
    int rank;
    bool gone; /* no member any more; kept for a decision that may name it */
    fl_staging *shard;
} fl_seat;

typedef struct fl_parked {
    fl_peer from;
    fl_msg msg; /* its blob is kept, all other pointers are NULL */
    int64_t since;
} fl_parked;

/* Async: pushes that the store is applying, in order. */
typedef struct fl_flying {
    fl_id session;
    int64_t seq;
    uint64_t tag;
    fl_peer from;
    fl_blob blob;
} fl_flying;

typedef struct fl_shard {
    bool applying; /* sync: the round being closed */
    FL_VEC(fl_flying) flying;
} fl_shard;

typedef struct fl_close {
    int64_t round;
    fl_member *member;
    int n;
} fl_close;

struct fl_server {
    const fl_job *job;
    const fl_store *store;
    fl_outbox *out;
    int index;
    uint64_t coordinator; /* its state id; 0: not heard of yet */
    fl_refusals refused;  /* by the coordinator */
    int64_t heard, ticked, told, stalled;
    int64_t version, view;
    bool closing; /* round `version` is being applied */
    FL_VEC(fl_member) member;
    FL_VEC(fl_leave) left;
    int64_t left_at;      /* when `left` came */
    FL_VEC(fl_seat) seat; /* in order of their first push */
    FL_VEC(fl_parked) parked;
    FL_VEC(fl_close) ahead;
    fl_shard *shard;
    size_t bytes;
    bool ending, ended; /* END is known; END is obeyed */
    int code;
    char sentence[FL_SENTENCE_MAX];
    int64_t end_version, ended_at;
};

fl_msg fl_server_answer(const fl_server *s, fl_msg_kind kind, const fl_msg *m);
void fl_server_state(fl_server *s, int64_t now); /* STATE to the coordinator */
void fl_server_fence(fl_server *s, fl_peer to, const fl_msg *m, int64_t now);

/* A fault ends the job. The server's name is put before the reason. */
void fl_server_fault(fl_server *s, int64_t now, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A view, a CLOSE or END came: look at parked requests again, go on. */
void fl_server_settle(fl_server *s, int64_t now);

/* --- server_stage.c: pushes --- */

void fl_server_push(fl_server *s, fl_peer from, const fl_msg *m, int64_t now);
fl_seat *fl_server_seat(const fl_server *s, fl_id session);
void fl_server_drop_seats(fl_server *s, int64_t open); /* of who left */
void fl_server_begin_close(fl_server *s, const fl_close *c, int64_t now);
void fl_server_finish_close(fl_server *s);
void fl_server_free_seats(fl_server *s);

#endif
