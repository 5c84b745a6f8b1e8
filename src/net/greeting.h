/* SPDX-License-Identifier: Apache-2.0 */
/* greeting.h - the first bytes of a connection between two ranks.
 *
 *     client  HELLO    who it is, whom it means to reach, a nonce
 *     server  REPLY    a nonce, and its proof that it has the job key
 *     client  proof    the same for the client
 *     server  VERDICT  welcome, or the reason why not
 *
 * A proof is the HMAC-SHA-256 of the HELLO, the server's nonce and the side,
 * with the job key. Numbers travel in the byte order of the machine; a machine
 * of the other order is refused, because the version reads differently there.
 * Nothing here touches a socket. */
#ifndef FL_NET_GREETING_H
#define FL_NET_GREETING_H

#include "base/random.h"
#include "base/sha256.h"
#include "net/share.h"

#include <stdint.h>

enum {
    FL_GREETING_VERSION = 3,
    FL_GREETING_REASON = 700, /* bytes of a sentence that is sent */
};

/* The two connections of a pair of ranks. */
typedef enum fl_mesh_channel {
    FL_MESH_CONTROL,
    FL_MESH_DATA,
    FL_MESH_CHANNELS,
} fl_mesh_channel;

typedef struct fl_hello {
    char magic[8];
    uint32_t version;
    int32_t world, rank;
    int32_t to; /* the rank that the client means to reach */
    uint32_t channel;
    uint32_t unused;
    unsigned char process[FL_SHARE_NAME]; /* the same for all connections of a
                                           * process */
    unsigned char nonce[FL_SHARE_NAME];
    unsigned char host[FL_SHARE_HOST];
} fl_hello;

typedef struct fl_hello_reply {
    char magic[8];
    uint32_t version;
    uint32_t local; /* both ranks are on one host; `process` names the server's
                     * Unix socket for shared memory */
    unsigned char nonce[FL_SHARE_NAME];
    unsigned char process[FL_SHARE_NAME];
    unsigned char proof[FL_SHA256];
} fl_hello_reply;

typedef struct fl_hello_verdict {
    uint32_t refused;
    uint32_t shares; /* a descriptor of shared memory follows */
    char reason[FL_GREETING_REASON];
} fl_hello_verdict;

/* The job key; of size 0 it proves nothing. */
typedef struct fl_greeting_key {
    const void *at;
    size_t size;
} fl_greeting_key;

void fl_greeting_draw(fl_entropy *e, unsigned char out[FL_SHARE_NAME]);

/* Set magic, version and nonce. The caller has set the other fields. */
void fl_hello_seal(fl_hello *h, fl_entropy *e);
bool fl_hello_is(const fl_hello *h); /* the magic is right */

/* Set magic, version, nonce and proof of the server's answer to h. */
void fl_hello_answer(const fl_hello *h, fl_greeting_key key, fl_entropy *e,
                     fl_hello_reply *r);
/* False: another program, or another version of this one. */
bool fl_hello_reply_is(const fl_hello_reply *r);

/* Whether the reply proves that the server has the key. */
bool fl_hello_trusts(const fl_hello *h, const fl_hello_reply *r,
                     fl_greeting_key key);

/* Compute the client's proof: the client sends it, the server compares. */
void fl_hello_prove(const fl_hello *h, const fl_hello_reply *r,
                    fl_greeting_key key, unsigned char out[FL_SHA256]);

#endif
