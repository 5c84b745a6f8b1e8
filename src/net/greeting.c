/* SPDX-License-Identifier: Apache-2.0 */
/* greeting.c - the bytes of a greeting and their proofs. */
#include "net/greeting.h"

#include <string.h>

static const char hello_magic[8] = "FLHELLO", reply_magic[8] = "FLREPLY";

void fl_greeting_draw(fl_entropy *e, unsigned char out[FL_SHARE_NAME])
{
    for (size_t i = 0; i < FL_SHARE_NAME; i += 8) {
        const uint64_t x = e->draw(e);
        memcpy(out + i, &x, 8);
    }
}

static void prove_side(const char *side, const fl_hello *h,
                       const fl_hello_reply *r, fl_greeting_key key,
                       unsigned char out[FL_SHA256])
{
    unsigned char text[8 + sizeof *h + sizeof r->nonce] = {0};
    memcpy(text, side, strlen(side));
    memcpy(text + 8, h, sizeof *h);
    memcpy(text + 8 + sizeof *h, r->nonce, sizeof r->nonce);
    fl_hmac_sha256(key.at, key.size, text, sizeof text, out);
}

void fl_hello_seal(fl_hello *h, fl_entropy *e)
{
    memcpy(h->magic, hello_magic, sizeof h->magic);
    h->version = FL_GREETING_VERSION;
    fl_greeting_draw(e, h->nonce);
}

bool fl_hello_is(const fl_hello *h)
{
    return !memcmp(h->magic, hello_magic, sizeof h->magic);
}

void fl_hello_answer(const fl_hello *h, fl_greeting_key key, fl_entropy *e,
                     fl_hello_reply *r)
{
    memcpy(r->magic, reply_magic, sizeof r->magic);
    r->version = FL_GREETING_VERSION;
    fl_greeting_draw(e, r->nonce);
    prove_side("server", h, r, key, r->proof);
}

bool fl_hello_reply_is(const fl_hello_reply *r)
{
    return !memcmp(r->magic, reply_magic, sizeof r->magic) &&
           r->version == FL_GREETING_VERSION;
}

bool fl_hello_trusts(const fl_hello *h, const fl_hello_reply *r,
                     fl_greeting_key key)
{
    unsigned char proof[FL_SHA256];
    prove_side("server", h, r, key, proof);
    return fl_sha256_same(proof, r->proof);
}

void fl_hello_prove(const fl_hello *h, const fl_hello_reply *r,
                    fl_greeting_key key, unsigned char out[FL_SHA256])
{
    prove_side("client", h, r, key, out);
}
