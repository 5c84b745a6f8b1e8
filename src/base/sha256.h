/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104).
 *
 * For digests that are compared and for proofs that a peer knows a key. */
#ifndef FL_BASE_SHA256_H
#define FL_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FL_SHA256 = 32,       /* bytes of a digest */
    FL_SHA256_BLOCK = 64, /* bytes of a block */
};

/* A digest while it is computed. Thread: one at a time. */
typedef struct fl_sha256 {
    uint32_t h[8];
    uint64_t size; /* bytes so far */
    unsigned char block[FL_SHA256_BLOCK];
} fl_sha256;

void fl_sha256_init(fl_sha256 *s);
void fl_sha256_add(fl_sha256 *s, const void *bytes, size_t n);
void fl_sha256_end(fl_sha256 *s, unsigned char out[FL_SHA256]);

void fl_hmac_sha256(const void *key, size_t key_size, const void *bytes,
                    size_t n, unsigned char out[FL_SHA256]);

/* Compare two digests in constant time. */
bool fl_sha256_same(const unsigned char a[FL_SHA256],
                    const unsigned char b[FL_SHA256]);

#endif
