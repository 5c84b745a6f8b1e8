/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - what the parties of a job say to each other.
 *
 * src/protocol/list.h has a row for every message. A trainer's request comes on
 * a call and each call is answered once: at the end, or with PARKED when the
 * same request comes again on a newer call. RENEW comes on the open call, which
 * lives as long as the session and also carries PROBE. docs/protocol.md says
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

typedef enum fl_party {
    FL_PARTY_TRAINER = 1,
    FL_PARTY_SERVER = 2,
    FL_PARTY_COORD = 4,
    FL_PARTY_ANY = FL_PARTY_SERVER | FL_PARTY_COORD,
} fl_party;

typedef enum fl_msg_by {
    FL_BY_CALL = 1, /* a request, on a call of its own */
    FL_BY_OPEN,     /* on the open call of a session */
    FL_BY_ANSWER,   /* only as an answer */
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
    FL_TALLY_MOST = 1 << 17 /* counts of one name in TALLY */
};

/* One session in a view or a decision. */
typedef struct fl_member {
    int rank;
    fl_id session;
    int64_t g; /* number of the first view that has the session */
} fl_member;

typedef enum fl_left {
    FL_LEFT_LEASE,  /* its lease ran out */
    FL_LEFT_CALL,   /* its open call broke */
    FL_LEFT_FAILED, /* it said so */
    FL_LEFT_DONE,   /* it completed */
} fl_left;

/* The last session that left a rank. */
typedef struct fl_leave {
    int rank;
    fl_id session;
    int64_t view; /* the first view without the session */
    fl_left why;
    int64_t ago; /* ns before the message was made */
} fl_leave;

/* Bytes that the protocol passes on and never reads. */
typedef struct fl_blob {
    const void *at;
    size_t size;
    void *owner; /* used by the fl_keeper alone */
} fl_blob;

/* src/protocol/list.h says which kind uses which field, and for what. A message
 * that was received borrows everything that it points to. */
typedef struct fl_msg {
    fl_msg_kind kind;
    fl_id job, session;
    uint64_t tag; /* the trainer's number of a request, copied to its answer */
    int64_t g;    /* the first view with the session */
    int64_t view;
    int64_t round;
    int64_t seq; /* of a push, per session and server: 1, 2, 3 .. */
    int64_t count;
    uint64_t echo;
    uint64_t secret;   /* drawn by a server process, told to servers only */
    fl_state state;    /* of the server or coordinator that sends this */
    uint64_t expected; /* the server's state id, as the coordinator knows it */
    const uint64_t
        *seen; /* state ids that a trainer process knows, by server */
    int n_seen;
    int server; /* index of the server that sends this */
    int rank;
    bool explicit_id; /* the rank was given by a user or launcher */
    int code;
    bool over; /* the server has obeyed END */
    const fl_member *member;
    int n_member;
    const fl_leave *left;
    int n_left;
    const char *text;  /* NULL: none */
    const char *about; /* lines of fl_job_about; NULL: none */
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
    size_t at;                       /* offset */
    size_t count_at;                 /* LIST: offset of the int that counts */
    size_t size;                     /* LIST: bytes of an element */
    const struct fl_msg_field *list; /* LIST: fields of an element; NULL: the
                                        elements are words */
} fl_msg_field;

/* The fields of fl_msg but for the blob, in order of their numbers: the schema
 * has the same. The last one has no name. */
extern const fl_msg_field fl_msg_fields[];

/* For any number, also one that is no kind: then the name is "?". */
const fl_msg_info *fl_msg_info_of(fl_msg_kind kind);

const char *fl_msg_name(fl_msg_kind kind);
const char *fl_msg_method(fl_msg_kind kind); /* NULL: it has none */

/* Does that kind of message use the field of that name, or every kind? The blob
 * is the field "blob". */
bool fl_msg_carries(fl_msg_kind kind, const char *field);

/* "rank 1 lost: lease ran out 12.0 s ago (view 17)" */
void fl_leave_text(const fl_leave *left, char *buf, size_t size);

/* All that m points to is forgotten, but for the blob. */
void fl_msg_forget(fl_msg *m);

/* Own: a copy with all it points to; end with fl_msg_free. */
fl_msg *fl_msg_dup(const fl_msg *m);
void fl_msg_free(fl_msg *m);

/* --- who gets it --- */

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

/* A message that a machine wants sent. */
typedef struct fl_letter {
    fl_peer to;
    fl_msg msg;
} fl_letter;

/* Messages and log lines of a machine. The driver sends them and clears the
 * outbox after every event. Thread: one at a time. */
typedef struct fl_outbox {
    fl_state state;            /* the machine's, for every message */
    FL_VEC(fl_letter) out;     /* in order */
    FL_VEC(const char *) note; /* lines for the log */
    fl_arena *arena;           /* holds what messages and notes point to */
} fl_outbox;

void fl_outbox_init(fl_outbox *o);
void fl_outbox_fini(fl_outbox *o);
void fl_outbox_clear(fl_outbox *o);
void fl_outbox_note(fl_outbox *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Append a message. All that it points to is copied, but the blob is borrowed
 * until fl_outbox_clear. */
void fl_outbox_send(fl_outbox *o, fl_peer to, fl_msg msg);

/* fl_outbox_send with a text. */
void fl_outbox_say(fl_outbox *o, fl_peer to, fl_msg msg, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Answer m, which is of another job than `own`, with ERROR. The answer does not
 * contain the digest of `own`. */
void fl_outbox_wrong_job(fl_outbox *o, fl_peer to, const fl_msg *m,
                         const fl_job *own);

/* --- blobs that must outlive their message --- */

typedef struct fl_keeper {
    void *self;
    fl_blob (*keep)(void *self, fl_blob b); /* a reference or a copy */
    void (*drop)(void *self, fl_blob b);    /* end what keep returned */
} fl_keeper;

extern const fl_keeper fl_keeper_copies; /* copies the bytes */

/* --- waits --- */

/* Append "WAITER waits for WHOM: WHAT, 3.2 s (limit 10 s)". `age` and `limit`
 * are ns; limit 0: there is none. */
void fl_wait_row(fl_str *rows, const char *waiter, const char *whom,
                 const char *what, int64_t age, int64_t limit);

/* Rows of fl_wait_row as log lines that begin with "stalled: ". Only the first
 * few are logged. */
void fl_outbox_stalled(fl_outbox *o, const fl_str *rows);

#endif
