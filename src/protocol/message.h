/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - the messages of a job, and the outbox they are sent through.
 *
 * src/protocol/list.h has a row for every message. A trainer sends each
 * request on a call (an RPC) of its own, and each call is answered once: when
 * the request is done, or with PARKED when the trainer repeats the request on a
 * newer call. RENEW and PROBE use the open call, a stream that lives as long
 * as the session. docs/protocol.md says
 * what the messages mean. */
#ifndef FL_PROTOCOL_MESSAGE_H
#define FL_PROTOCOL_MESSAGE_H

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "protocol/job.h"

typedef enum fl_msg_kind {
    FL_MSG_NONE,
#define FL_MESSAGE(kind, number, ...) FL_MSG_##kind = (number),
#include "protocol/list.h"
#undef FL_MESSAGE
    FL_MSG_KINDS
} fl_msg_kind;

/* Who sends or receives a kind of message. */
typedef enum fl_party {
    FL_PARTY_TRAINER = 1,
    FL_PARTY_SERVER = 2,
    FL_PARTY_COORD = 4,
    FL_PARTY_ANY = FL_PARTY_SERVER | FL_PARTY_COORD,
} fl_party;

/* How a kind of message travels. */
typedef enum fl_msg_by {
    FL_BY_CALL = 1, /* a request, on a call of its own */
    FL_BY_OPEN,     /* on the open call of a session */
    FL_BY_ANSWER,   /* only as the answer to a request */
} fl_msg_by;

/* A row of src/protocol/list.h. */
typedef struct fl_msg_info {
    const char *name;
    fl_party from, to;
    fl_msg_by by;
    const char *method;  /* "/fluid.Server/Push"; NULL: it has none */
    fl_msg_kind answer;  /* FL_MSG_NONE: it is no request */
    const char *carries; /* names of fields, with a space between */
} fl_msg_info;

enum {
    FL_TALLY_MOST = 1 << 17,    /* counts of one name in TALLY */
    FL_POSITION_MOST = 1 << 16, /* bytes of a position, with its NUL */
};

/* One session in a view or a decision. */
typedef struct fl_member {
    int rank;
    fl_id session;
    int64_t g; /* number of the first view that has the session */
} fl_member;

/* How a session ended. */
typedef enum fl_left {
    FL_LEFT_LEASE,  /* its lease ran out */
    FL_LEFT_CALL,   /* its open call broke */
    FL_LEFT_FAILED, /* it sent FAILED */
    FL_LEFT_DONE,   /* it sent COMPLETE */
} fl_left;

/* The end of the last session that held a rank. */
typedef struct fl_leave {
    int rank;
    fl_id session;
    int64_t view; /* the first view without the session */
    fl_left why;
    int64_t ago; /* nanoseconds from the end to the making of the message */
} fl_leave;

/* Bytes that the protocol passes on and never reads. */
typedef struct fl_blob {
    const void *at;
    size_t size;
    void *owner; /* for the fl_keeper only: what it must release */
} fl_blob;

/* src/protocol/list.h says which kind uses which field, and for what. A message
 * that was received borrows everything that it points to. */
typedef struct fl_msg {
    fl_msg_kind kind;
    fl_id job, session;
    uint64_t
        tag;   /* number of a request at its trainer; the answer has the same */
    int64_t g; /* the first view with the session */
    int64_t view;
    int64_t round;
    int64_t seq; /* number of a push, per session and server: 1, 2, 3 .. */
    int64_t count;
    int64_t step; /* steps of the rank whose examples have a position: number of
                     this one; GRANT: of the last one that counts; 0: none */
    int64_t part; /* PUSH: its number among those of its step: 1, 2, 3 .. */
    uint64_t echo;     /* RENEW: number of the last PROBE; between servers: the
                          receiver's secret */
    uint64_t secret;   /* random number of the server process that sends this */
    fl_state state;    /* of the server or coordinator that sends this */
    uint64_t expected; /* the receiver's state id, as the sender knows it */
    const uint64_t
        *seen; /* state ids that a trainer process knows, by server */
    int n_seen;
    int server; /* index of the server that sends this */
    int rank;
    bool explicit_id; /* the rank was given by a user or launcher */
    int code;         /* exit code or fl_err */
    bool over;        /* STATE, END: the server has ended */
    const fl_member *member;
    int n_member;
    const fl_leave *left;
    int n_left;
    const char *text;     /* NULL: none */
    const char *about;    /* lines of fl_job_about; NULL: none */
    const char *position; /* which examples are used up after the step; only the
                          trainer reads it; NULL: none */
    int64_t snapshot;     /* VIEW, CLOSE: to be taken; REWIND: to go back to;
                             STATE: the newest that the server has written; 0:
                             none */
    int64_t damaged;    /* STATE: a snapshot that the server cannot restore; 0:
                           none */
    int64_t generation; /* how often the job has gone back to a snapshot, as the
                           sender knows it */
    fl_blob blob;
} fl_msg;

/* How a field is stored in fl_msg, fl_member or fl_leave. */
typedef enum fl_field_type {
    FL_FIELD_INT = 1, /* int or an enum */
    FL_FIELD_WORD,    /* int64_t or uint64_t */
    FL_FIELD_BOOL,
    FL_FIELD_TEXT,  /* const char *, one line; NULL: none */
    FL_FIELD_LINES, /* const char *, several lines; NULL: none */
    FL_FIELD_LIST,  /* a pointer, and an int that counts */
} fl_field_type;

typedef struct fl_msg_field {
    const char *name; /* as in proto/fluid.proto */
    int number;       /* as in proto/fluid.proto */
    fl_field_type type;
    size_t at;                       /* offset in the struct */
    size_t count_at;                 /* LIST: offset of the int that counts */
    size_t size;                     /* LIST: bytes of an element */
    const struct fl_msg_field *list; /* LIST: fields of an element; NULL: the
                                        elements are words */
} fl_msg_field;

/* The fields of fl_msg except the blob, in the order of their numbers in
 * proto/fluid.proto. The name of the last entry is NULL. */
extern const fl_msg_field fl_msg_fields[];

/* The row of a kind. A number that is no kind gets a row with the name "?". */
const fl_msg_info *fl_msg_info_of(fl_msg_kind kind);

const char *fl_msg_name(fl_msg_kind kind);
const char *fl_msg_method(fl_msg_kind kind); /* NULL: it has none */

/* Whether messages of this kind use the field of that name. The name of the
 * blob is "blob". */
bool fl_msg_carries(fl_msg_kind kind, const char *field);

/* Write "rank 1 lost: lease ran out 12.0 s ago (view 17)" to buf. */
void fl_leave_text(const fl_leave *left, char *buf, size_t size);

/* Set all pointers of m, except the blob's, to NULL and their counts to 0. */
void fl_msg_forget(fl_msg *m);

/* Own: a copy with all it points to; end with fl_msg_free. */
fl_msg *fl_msg_dup(const fl_msg *m);
void fl_msg_free(fl_msg *m);

/* --- receivers --- */

typedef enum fl_peer_kind {
    FL_PEER_COORD,  /* the coordinator */
    FL_PEER_SERVER, /* server `index` */
    FL_PEER_CALL,   /* whoever made call `call` */
} fl_peer_kind;

typedef struct fl_peer {
    fl_peer_kind kind;
    int index;
    uint64_t call;
} fl_peer;

/* A message in an outbox, and its receiver. */
typedef struct fl_envelope {
    fl_peer to;
    fl_msg msg;
} fl_envelope;

/* Messages and log lines that a state machine has produced. After every event
 * the machine's owner sends them and clears the outbox. Thread: one at a time.
 */
typedef struct fl_outbox {
    fl_state state;            /* the machine's; put into every message, and */
    int64_t generation;        /* so is this */
    FL_VEC(fl_envelope) out;   /* in order */
    FL_VEC(const char *) note; /* lines for the log */
    fl_arena *arena;           /* holds what messages and notes point to */
} fl_outbox;

void fl_outbox_init(fl_outbox *o);
void fl_outbox_fini(fl_outbox *o);
void fl_outbox_clear(fl_outbox *o);
void fl_outbox_note(fl_outbox *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Append a message. All that it points to is copied, except the blob, which is
 * borrowed until fl_outbox_clear. */
void fl_outbox_send(fl_outbox *o, fl_peer to, fl_msg msg);

/* fl_outbox_send, with msg.text formatted from fmt. */
void fl_outbox_say(fl_outbox *o, fl_peer to, fl_msg msg, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Answer m, which is of another job than `own`, with ERROR. The answer does not
 * contain the digest of `own`. */
void fl_outbox_wrong_job(fl_outbox *o, fl_peer to, const fl_msg *m,
                         const fl_job *own);

/* --- blobs that must outlive their message --- */

/* How a machine keeps a blob after the message that brought it is gone. */
typedef struct fl_keeper {
    void *self;
    fl_blob (*keep)(void *self, fl_blob b); /* returns a reference or a copy */
    void (*drop)(void *self, fl_blob b);    /* releases what keep returned */
} fl_keeper;

extern const fl_keeper fl_keeper_copies; /* keeps copies on the heap */

/* --- waits --- */

/* Append "WAITER waits for WHOM: WHAT, 3.2 s (limit 10 s)". `age` and `limit`
 * are ns; limit 0: there is none. */
void fl_wait_row(fl_str *rows, const char *waiter, const char *whom,
                 const char *what, int64_t age, int64_t limit);

/* Append rows of fl_wait_row as log lines that begin with "stalled: ". Only the
 * first few are logged. */
void fl_outbox_stalled(fl_outbox *o, const fl_str *rows);

#endif
