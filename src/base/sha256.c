/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.c - the compression function of FIPS 180-4, section 6.2. */
#include "base/sha256.h"

#include <string.h>

static uint32_t rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void mix_block(uint32_t h[8], const unsigned char *p)
{
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
        0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
        0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
        0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
        0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
        0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
        0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
        0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] +
               (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) +
               (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i++) {
        const uint32_t a = s[0], e = s[4];
        const uint32_t t1 =
            s[7] +
            (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
            ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
        const uint32_t t2 =
            (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
            ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += s[i];
}

void fl_sha256_init(fl_sha256 *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                      0xa54ff53a, 0x510e527f, 0x9b05688c,
                                      0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, start, sizeof start);
    s->size = 0;
}

void fl_sha256_add(fl_sha256 *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    while (n) {
        const size_t at = s->size % FL_SHA256_BLOCK,
                     room = sizeof s->block - at;
        const size_t some = n < room ? n : room;
        memcpy(s->block + at, p, some);
        if (some == room)
            mix_block(s->h, s->block);
        s->size += some;
        p += some;
        n -= some;
    }
}

void fl_sha256_end(fl_sha256 *s, unsigned char out[FL_SHA256])
{
    static const unsigned char pad[FL_SHA256_BLOCK] = {0x80};
    const uint64_t bits = s->size * 8;
    const size_t at = s->size % FL_SHA256_BLOCK;
    unsigned char length[8];
    fl_sha256_add(s, pad, (at < 56 ? 56 : 120) - at);
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    fl_sha256_add(s, length, sizeof length);
    for (int i = 0; i < FL_SHA256; i++)
        out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void fl_hmac_sha256(const void *key, size_t key_size, const void *bytes,
                    size_t n, unsigned char out[FL_SHA256])
{
    unsigned char k[FL_SHA256_BLOCK] = {0}, pad[FL_SHA256_BLOCK];
    fl_sha256 s;
    fl_sha256_init(&s);
    if (key_size > sizeof k) {
        fl_sha256_add(&s, key, key_size);
        fl_sha256_end(&s, k);
        fl_sha256_init(&s);
    } else if (key_size) {
        memcpy(k, key, key_size);
    }
    for (size_t i = 0; i < sizeof k; i++)
        pad[i] = k[i] ^ 0x36;
    fl_sha256_add(&s, pad, sizeof pad);
    fl_sha256_add(&s, bytes, n);
    fl_sha256_end(&s, out);
    for (size_t i = 0; i < sizeof k; i++)
        pad[i] = k[i] ^ 0x5c;
    fl_sha256_init(&s);
    fl_sha256_add(&s, pad, sizeof pad);
    fl_sha256_add(&s, out, FL_SHA256);
    fl_sha256_end(&s, out);
}

bool fl_sha256_same(const unsigned char a[FL_SHA256],
                    const unsigned char b[FL_SHA256])
{
    unsigned differ = 0;
    for (int i = 0; i < FL_SHA256; i++)
        differ |= a[i] ^ b[i];
    return !differ;
}
