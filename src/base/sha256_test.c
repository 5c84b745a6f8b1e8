/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors are those of FIPS 180-4's examples and of RFC 4231. */
#include "base/sha256.h"

#include "base/test.h"

#include <stdio.h>
#include <string.h>

static const char *hex_of(const unsigned char digest[FL_SHA256])
{
    static char text[2 * FL_SHA256 + 1];
    for (int i = 0; i < FL_SHA256; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

static const char *digest_of(const char *text, size_t step)
{
    unsigned char out[FL_SHA256];
    fl_sha256 s;
    fl_sha256_init(&s);
    for (size_t n = strlen(text), at = 0; at < n; at += step)
        fl_sha256_add(&s, text + at, n - at < step ? n - at : step);
    fl_sha256_end(&s, out);
    return hex_of(out);
}

static void digests_the_published_texts(void)
{
    CHECK_STR(
        digest_of("", 1),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_STR(
        digest_of("abc", 3),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_STR(
        digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  100),
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void adds_a_million_bytes_in_odd_steps(void)
{
    static char text[1000001];
    memset(text, 'a', 1000000);
    CHECK_STR(
        digest_of(text, 977),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void signs_the_published_texts(void)
{
    unsigned char out[FL_SHA256], key[131];
    fl_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, out);
    CHECK_STR(
        hex_of(out),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    fl_hmac_sha256(key, sizeof key,
                   "Test Using Larger Than Block-Size Key - Hash Key First", 54,
                   out);
    CHECK_STR(
        hex_of(out),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void compares_every_byte(void)
{
    unsigned char a[FL_SHA256] = {0}, b[FL_SHA256] = {0};
    CHECK(fl_sha256_same(a, b));
    b[FL_SHA256 - 1] = 1;
    CHECK(!fl_sha256_same(a, b));
}

const fl_test fl_tests[] = {
    {"sha256 digests the published texts", digests_the_published_texts},
    {"sha256 adds a million bytes in odd steps",
     adds_a_million_bytes_in_odd_steps},
    {"hmac signs the published texts", signs_the_published_texts},
    {"sha256 compares every byte", compares_every_byte},
    {0},
};
