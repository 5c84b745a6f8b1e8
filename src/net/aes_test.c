/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in's cipher beside OpenSSL's own, in all that EVP and TLS ask of it.
 */
#include "net/aes.h"

#include "base/mem.h"
#include "net/test_tls.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    ROOM = (16 << 10) + 64, /* bytes of the largest text */
    AAD_MOST = 200,
    TAG = 16
};
static const char ours[] = "provider=fluid", theirs[] = "provider=default";

static EVP_CIPHER *fetch(int bits, const char *provider)
{
    char name[20];
    snprintf(name, sizeof name, "AES-%d-GCM", bits);
    EVP_CIPHER *c = EVP_CIPHER_fetch(NULL, name, provider);
    CHECK(c != NULL);
    return c;
}

/* Numbers that look random and are the same in every run. */
static unsigned draw(uint64_t *seed, unsigned below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33) % below;
}

static void draw_bytes(uint64_t *seed, unsigned char *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)draw(seed, 256);
}

typedef struct message {
    const unsigned char *key, *iv, *aad, *in;
    size_t iv_size, aad_size, size;
    unsigned char *out; /* may be `in` */
    unsigned char tag[TAG];
    size_t tag_size;
    uint64_t cuts; /* seed of the pieces; 0: in one piece */
} message;

/* Feed bytes in pieces. `out` NULL: they are additional data. */
static bool feed(EVP_CIPHER_CTX *c, unsigned char *out, const unsigned char *in,
                 size_t size, uint64_t *cuts)
{
    int n;
    for (size_t at = 0; at < size;) {
        size_t k = size - at;
        if (*cuts && draw(cuts, 4))
            k = 1 + draw(cuts, (unsigned)(k < 300 ? k : 300));
        if (EVP_CipherUpdate(c, out ? out + at : NULL, &n, in + at, (int)k) !=
            1)
            return false;
        CHECK_INT(n, (int)k);
        at += k;
    }
    return true;
}

/* The key is set with the first message of a context, as TLS does. */
static bool run(EVP_CIPHER_CTX *c, const EVP_CIPHER *cipher, message *m,
                bool encrypt)
{
    int n;
    if (cipher && (!EVP_CipherInit_ex(c, cipher, NULL, NULL, NULL, encrypt) ||
                   !EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN,
                                        (int)m->iv_size, NULL) ||
                   !EVP_CipherInit_ex(c, NULL, NULL, m->key, NULL, encrypt)))
        return false;
    if (!EVP_CipherInit_ex(c, NULL, NULL, NULL, m->iv, encrypt) ||
        (!encrypt && !EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG,
                                          (int)m->tag_size, m->tag)) ||
        !feed(c, NULL, m->aad, m->aad_size, &m->cuts) ||
        !feed(c, m->out, m->in, m->size, &m->cuts) ||
        !EVP_CipherFinal_ex(c, m->out, &n))
        return false;
    CHECK_INT(n, 0);
    return !encrypt || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG,
                                           (int)m->tag_size, m->tag);
}

static bool run_once(const EVP_CIPHER *cipher, message *m, bool encrypt)
{
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    const bool ok = run(c, cipher, m, encrypt);
    EVP_CIPHER_CTX_free(c);
    return ok;
}

/* --- known answers --- */

static size_t parse(const char *hex, unsigned char *out)
{
    const size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        CHECK_INT(sscanf(hex + 2 * i, "%2x", &byte), 1);
        out[i] = (unsigned char)byte;
    }
    return n;
}

#define ZERO "00000000000000000000000000000000"
#define KEY  "feffe9928665731c6d6a8f9467308308"
#define IV   "cafebabefacedbaddecaf888"
#define AAD  "feedfacedeadbeeffeedfacedeadbeefabaddad2"
#define TEXT60                                                                 \
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95" \
    "956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
#define CIPHER60_128                                                           \
    "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b2" \
    "5466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
#define CIPHER60_256                                                           \
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48" \
    "590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"

/* Test cases 1 to 4 and 13 to 16 of the submission of GCM to NIST. */
static const struct {
    const char *key, *iv, *aad, *text, *cipher, *tag;
} known[] = {
    {ZERO, "000000000000000000000000", "", "", "",
     "58e2fccefa7e3061367f1d57a4e7455a"},
    {ZERO, "000000000000000000000000", "", ZERO,
     "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"},
    {KEY, IV, "", TEXT60 "1aafd255", CIPHER60_128 "473f5985",
     "4d5c2af327cd64a62cf35abd2ba6fab4"},
    {KEY, IV, AAD, TEXT60, CIPHER60_128, "5bc94fbc3221a5db94fae95ae7121a47"},
    {ZERO ZERO, "000000000000000000000000", "", "", "",
     "530f8afbc74536b9a963b4f1c4cb738b"},
    {ZERO ZERO, "000000000000000000000000", "", ZERO,
     "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"},
    {KEY KEY, IV, "", TEXT60 "1aafd255", CIPHER60_256 "898015ad",
     "b094dac5d93471bdec1a502270e3cc6c"},
    {KEY KEY, IV, AAD, TEXT60, CIPHER60_256,
     "76fc6ece0f4e1768cddf8853bb2d551b"},
};

static void gives_the_known_answers(void)
{
    need_plugin();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        unsigned char key[32], iv[12], aad[64], text[64], cipher[64], tag[TAG];
        unsigned char out[64] = {0};
        message m = {.key = key, .iv = iv, .aad = aad, .in = text, .out = out};
        const size_t bits = 8 * parse(known[i].key, key);
        m.iv_size = parse(known[i].iv, iv);
        m.aad_size = parse(known[i].aad, aad);
        m.size = parse(known[i].text, text);
        parse(known[i].cipher, cipher);
        m.tag_size = parse(known[i].tag, tag);
        EVP_CIPHER *c = fetch((int)bits, ours);
        CHECK(run_once(c, &m, true));
        CHECK_INT(memcmp(out, cipher, m.size), 0);
        CHECK_INT(memcmp(m.tag, tag, TAG), 0);
        m.in = cipher;
        CHECK(run_once(c, &m, false));
        CHECK_INT(memcmp(out, text, m.size), 0);
        EVP_CIPHER_free(c);
    }
}

/* --- beside OpenSSL's own --- */

/* Of all sizes up to 300, about 16 KB, and between. */
static size_t draw_size(uint64_t *seed)
{
    switch (draw(seed, 3)) {
    case 0:
        return draw(seed, 301);
    case 1:
        return (16 << 10) - 17 + draw(seed, 35);
    default:
        return draw(seed, ROOM);
    }
}

/* Encrypt with one and decrypt with the other; what each makes is the same. The
 * contexts stay for a few messages, of which each has its own IV. */
static void check_pair(uint64_t seed, int messages)
{
    static _Thread_local unsigned char text[ROOM], a[ROOM], b[ROOM], back[ROOM];
    unsigned char key[32], iv[20], aad[AAD_MOST];
    EVP_CIPHER_CTX *c[4] = {NULL};
    EVP_CIPHER *cipher[2] = {NULL};
    message m = {.key = key, .iv = iv, .aad = aad};
    for (int i = 0; i < messages; i++) {
        const bool fresh = i % 8 == 0;
        if (fresh) {
            const int bits = draw(&seed, 2) ? 128 : 256;
            for (int k = 0; k < 4; k++) {
                EVP_CIPHER_CTX_free(c[k]);
                c[k] = EVP_CIPHER_CTX_new();
            }
            for (int k = 0; k < 2; k++) {
                EVP_CIPHER_free(cipher[k]);
                cipher[k] = fetch(bits, k ? theirs : ours);
            }
            draw_bytes(&seed, key, sizeof key);
            m.iv_size = draw(&seed, 4) ? 12 : 8 + draw(&seed, 12);
        }
        const size_t size = draw_size(&seed);
        const bool in_place = draw(&seed, 2);
        unsigned char *out[2] = {a, b};
        draw_bytes(&seed, iv, sizeof iv);
        m.aad_size = draw(&seed, 3) ? draw(&seed, 20) : draw(&seed, AAD_MOST);
        draw_bytes(&seed, aad, m.aad_size);
        draw_bytes(&seed, text, size);
        message made[2];
        for (int k = 0; k < 2; k++) {
            made[k] = m;
            made[k].in = in_place ? memcpy(out[k], text, size) : text;
            made[k].out = out[k];
            made[k].size = size;
            made[k].tag_size = TAG;
            made[k].cuts = draw(&seed, 2) ? seed : 0;
            CHECK(run(c[k], fresh ? cipher[k] : NULL, &made[k], true));
        }
        CHECK_INT(memcmp(a, b, size), 0);
        CHECK_INT(memcmp(made[0].tag, made[1].tag, TAG), 0);
        for (int k = 0; k < 2; k++) {
            message m2 = made[!k];
            m2.in = in_place ? memcpy(back, out[!k], size) : out[!k];
            m2.out = back;
            m2.tag_size = draw(&seed, 2) ? TAG : 12 + draw(&seed, 4);
            m2.cuts = draw(&seed, 2) ? seed : 0;
            CHECK(run(c[2 + k], fresh ? cipher[k] : NULL, &m2, false));
            CHECK_INT(memcmp(back, text, size), 0);
        }
    }
    for (int k = 0; k < 4; k++)
        EVP_CIPHER_CTX_free(c[k]);
    for (int k = 0; k < 2; k++)
        EVP_CIPHER_free(cipher[k]);
}

static void makes_what_openssl_makes(void)
{
    need_plugin();
    check_pair(1, 4000);
}

static void *check_thread(void *seed)
{
    check_pair(*(uint64_t *)seed, 500);
    return NULL;
}

static void threads_do_not_disturb_each_other(void)
{
    pthread_t thread[4];
    uint64_t seed[4] = {2, 3, 4, 5};
    need_plugin();
    for (int i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&thread[i], NULL, check_thread, &seed[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

/* One bit of the text, the additional data or the tag is wrong. */
static void refuses_what_was_changed(void)
{
    unsigned char key[32] = {1}, iv[12] = {2}, aad[5] = {3}, text[1000] = {4};
    unsigned char cipher[1000], back[1000];
    need_plugin();
    for (int bits = 128; bits <= 256; bits += 128) {
        EVP_CIPHER *c = fetch(bits, ours);
        message m = {key, iv, aad, text, 12, 5, 1000, cipher, {0}, TAG, 0};
        CHECK(run_once(c, &m, true));
        message good = m;
        good.in = cipher;
        good.out = back;
        CHECK(run_once(c, &good, false));
        for (unsigned i = 0; i < 8 * TAG; i++) {
            message bad = good;
            bad.tag[i / 8] ^= (unsigned char)(1 << i % 8);
            CHECK(!run_once(c, &bad, false));
        }
        cipher[999] ^= 1;
        CHECK(!run_once(c, &good, false));
        cipher[999] ^= 1;
        aad[0] ^= 1;
        CHECK(!run_once(c, &good, false));
        aad[0] ^= 1;
        CHECK(run_once(c, &good, false));
        EVP_CIPHER_free(c);
    }
}

/* After its end, or when its key or the size of its IV was changed, a message
 * cannot go on without another IV. */
static void never_uses_an_iv_twice(void)
{
    unsigned char key[32] = {1}, iv[12] = {2}, text[100] = {3}, out[100];
    int n;
    need_plugin();
    EVP_CIPHER *cipher = fetch(256, ours);
    for (int how = 0; how < 5; how++) {
        EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
        message m = {key, iv, NULL, text, 12, 0, 100, out, {0}, TAG, 0};
        CHECK(run(c, cipher, &m, true));
        if (how)
            CHECK(EVP_CipherInit_ex(c, NULL, NULL, NULL, iv, 1) &&
                  EVP_CipherUpdate(c, out, &n, text, 100));
        if (how == 1)
            CHECK(EVP_CipherInit_ex(c, NULL, NULL, key, NULL, 1));
        if (how == 2)
            CHECK(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, 16, NULL));
        if (how == 3) /* additional data comes first */
            CHECK(!EVP_CipherUpdate(c, NULL, &n, text, 5));
        if (how == 4)
            CHECK(EVP_CipherFinal_ex(c, out, &n));
        if (how != 3)
            CHECK(!EVP_CipherUpdate(c, out, &n, text, 100));
        if (how != 3)
            CHECK(!EVP_CipherFinal_ex(c, out, &n));
        CHECK(
            EVP_CipherInit_ex(c, NULL, NULL, NULL, (unsigned char[16]){9}, 1));
        CHECK(EVP_CipherUpdate(c, out, &n, text, 100));
        EVP_CIPHER_CTX_free(c);
    }
    EVP_CIPHER_free(cipher);
}

static void draws_an_iv_where_none_is_set(void)
{
    unsigned char key[16] = {1}, iv[12] = {0}, text[50] = {3}, a[50], b[50];
    unsigned char tag[TAG];
    int n;
    need_plugin();
    EVP_CIPHER *cipher = fetch(128, ours);
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    CHECK(EVP_CipherInit_ex(c, cipher, NULL, key, NULL, 1));
    CHECK(EVP_CipherUpdate(c, a, &n, text, 50));
    CHECK(EVP_CipherFinal_ex(c, a, &n));
    CHECK(EVP_CIPHER_CTX_get_updated_iv(c, iv, sizeof iv));
    CHECK(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, TAG, tag));
    EVP_CIPHER *own = fetch(128, theirs);
    message m = {key, iv, NULL, text, 12, 0, 50, b, {0}, TAG, 0};
    CHECK(run_once(own, &m, true));
    CHECK_INT(memcmp(a, b, 50), 0);
    CHECK_INT(memcmp(tag, m.tag, TAG), 0);
    CHECK(EVP_CipherInit_ex(c, NULL, NULL, key, NULL, 0));
    EVP_CIPHER_CTX_free(c);
    EVP_CIPHER_free(own);
    EVP_CIPHER_free(cipher);
}

/* A duplicate is possible where it is of OpenSSL's own cipher, and goes on with
 * the message. */
static void a_duplicate_goes_on(void)
{
    unsigned char key[32] = {1}, iv[12] = {2}, text[100] = {3}, out[2][100];
    int n;
    need_plugin();
    bool can[2];
    for (int k = 0; k < 2; k++) {
        EVP_CIPHER *cipher = fetch(256, k ? theirs : ours);
        EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new(), *d = EVP_CIPHER_CTX_new();
        CHECK(EVP_CipherInit_ex(c, cipher, NULL, key, iv, 1));
        CHECK(EVP_CipherUpdate(c, out[0], &n, text, 33));
        can[k] = EVP_CIPHER_CTX_copy(d, c);
        if (can[k]) {
            CHECK(EVP_CipherUpdate(c, out[0], &n, text + 33, 67));
            CHECK(EVP_CipherUpdate(d, out[1], &n, text + 33, 67));
            CHECK_INT(memcmp(out[0], out[1], 67), 0);
        }
        EVP_CIPHER_CTX_free(c);
        EVP_CIPHER_CTX_free(d);
        EVP_CIPHER_free(cipher);
    }
    CHECK_INT(can[0], can[1]);
}

static void describes_itself_as_openssl_does(void)
{
    need_plugin();
    for (int bits = 128; bits <= 256; bits += 128) {
        EVP_CIPHER *a = fetch(bits, ours), *b = fetch(bits, theirs);
        CHECK_STR(EVP_CIPHER_get0_name(a), EVP_CIPHER_get0_name(b));
        CHECK_INT(EVP_CIPHER_get_nid(a), EVP_CIPHER_get_nid(b));
        CHECK_INT(EVP_CIPHER_get_mode(a), EVP_CIPHER_get_mode(b));
        CHECK_INT((int64_t)EVP_CIPHER_get_flags(a),
                  (int64_t)EVP_CIPHER_get_flags(b));
        CHECK_INT(EVP_CIPHER_get_key_length(a), bits / 8);
        CHECK_INT(EVP_CIPHER_get_iv_length(a), 12);
        CHECK_INT(EVP_CIPHER_get_block_size(a), 1);
        EVP_CIPHER_free(a);
        EVP_CIPHER_free(b);
    }
}

/* --- TLS --- */

typedef struct side {
    SSL_CTX *context;
    SSL *ssl;
} side;

static fl_ca *authority(void)
{
    static fl_ca *ca;
    if (!ca)
        CHECK_OK(fl_ca_new(&ca));
    return ca;
}

static void show_certificate(SSL_CTX *context)
{
    char *pem, *key;
    CHECK_OK(fl_ca_issue(authority(), "node1", 1, &pem, &key));
    BIO *a = BIO_new_mem_buf(pem, -1), *b = BIO_new_mem_buf(key, -1);
    X509 *x = PEM_read_bio_X509(a, NULL, NULL, NULL);
    EVP_PKEY *k = PEM_read_bio_PrivateKey(b, NULL, NULL, NULL);
    CHECK(SSL_CTX_use_certificate(context, x) == 1);
    CHECK(SSL_CTX_use_PrivateKey(context, k) == 1);
    X509_free(x);
    EVP_PKEY_free(k);
    BIO_free(a);
    BIO_free(b);
    fl_mem_free(pem);
    fl_mem_free(key);
}

static void make_side(side *s, const char *provider, int version, int bits,
                      bool server)
{
    char suite[60];
    char preferred[40];
    snprintf(preferred, sizeof preferred, "?%s", provider);
    s->context = SSL_CTX_new_ex(NULL, preferred, TLS_method());
    CHECK(SSL_CTX_set_min_proto_version(s->context, version) == 1);
    CHECK(SSL_CTX_set_max_proto_version(s->context, version) == 1);
    snprintf(suite, sizeof suite, "TLS_AES_%d_GCM_SHA%d", bits,
             bits == 128 ? 256 : 384);
    CHECK(SSL_CTX_set_ciphersuites(s->context, suite) == 1);
    snprintf(suite, sizeof suite, "ECDHE-ECDSA-AES%d-GCM-SHA%d", bits,
             bits == 128 ? 256 : 384);
    CHECK(SSL_CTX_set_cipher_list(s->context, suite) == 1);
    if (server)
        show_certificate(s->context);
    s->ssl = SSL_new(s->context);
    if (server)
        SSL_set_accept_state(s->ssl);
    else
        SSL_set_connect_state(s->ssl);
}

static void join_sides(side *a, side *b)
{
    BIO *x, *y;
    CHECK(BIO_new_bio_pair(&x, 1 << 20, &y, 1 << 20) == 1);
    SSL_set_bio(a->ssl, x, x);
    SSL_set_bio(b->ssl, y, y);
    for (int i = 0; i < 20; i++) {
        (void)SSL_do_handshake(a->ssl);
        (void)SSL_do_handshake(b->ssl);
    }
    CHECK(SSL_is_init_finished(a->ssl) && SSL_is_init_finished(b->ssl));
}

/* Send `size` bytes in writes of random sizes. */
static void send_bytes(side *from, side *to, size_t size, uint64_t seed)
{
    static unsigned char text[70000], got[70000];
    for (size_t at = 0; at < size;) {
        const int n = 1 + (int)draw(&seed, sizeof text);
        draw_bytes(&seed, text, (size_t)n);
        CHECK_INT(SSL_write(from->ssl, text, n), n);
        for (int k = 0, more; k < n; k += more) {
            more = SSL_read(to->ssl, got + k, n - k);
            CHECK(more > 0);
        }
        CHECK_INT(memcmp(text, got, (size_t)n), 0);
        at += (size_t)n;
    }
}

static void free_side(side *s)
{
    SSL_free(s->ssl);
    SSL_CTX_free(s->context);
}

static void check_tls(const char *client, const char *server, int version,
                      int bits)
{
    side a, b;
    make_side(&a, client, version, bits, false);
    make_side(&b, server, version, bits, true);
    const uint64_t before = count_plugin();
    join_sides(&a, &b);
    send_bytes(&a, &b, 3 << 20, 1);
    send_bytes(&b, &a, 3 << 20, 2);
    if (version == TLS1_3_VERSION) { /* the keys change, too */
        CHECK(SSL_key_update(a.ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
        send_bytes(&a, &b, 1 << 20, 3);
        send_bytes(&b, &a, 1 << 20, 4);
    }
    CHECK_INT(count_plugin() - before > 300, version == TLS1_3_VERSION);
    SSL_shutdown(a.ssl);
    free_side(&a);
    free_side(&b);
}

static void speaks_tls_with_openssl(void)
{
    need_plugin();
    for (int bits = 128; bits <= 256; bits += 128)
        for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION;
             version++) {
            check_tls(ours, theirs, version, bits);
            check_tls(theirs, ours, version, bits);
            check_tls(ours, ours, version, bits);
        }
}

/* --- the process --- */

static bool is_from(const EVP_CIPHER *c, const char *provider)
{
    return !strcmp(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(c)),
                   provider);
}

/* Who does not ask for the plug-in does not get it. */
static void leaves_the_rest_of_the_process_alone(void)
{
    need_plugin();
    for (int bits = 128; bits <= 256; bits += 128) {
        EVP_CIPHER *c = fetch(bits, NULL);
        CHECK(is_from(c, "default"));
        EVP_CIPHER_free(c);
    }
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new(); /* an implicit fetch */
    CHECK(EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, NULL, NULL, 1));
    CHECK(is_from(EVP_CIPHER_CTX_get0_cipher(c), "default"));
    EVP_CIPHER_CTX_free(c);
    EVP_MD *md = EVP_MD_fetch(NULL, "SHA256", NULL); /* all else is there */
    CHECK(md != NULL);
    EVP_MD_free(md);
    fl_aes_load(); /* again: nothing happens */
}

const fl_test fl_tests[] = {
    {"the plug-in gives the known answers", gives_the_known_answers},
    {"the plug-in makes what OpenSSL makes", makes_what_openssl_makes},
    {"threads do not disturb each other", threads_do_not_disturb_each_other},
    {"the plug-in refuses what was changed", refuses_what_was_changed},
    {"the plug-in never uses an IV twice", never_uses_an_iv_twice},
    {"the plug-in draws an IV where none is set",
     draws_an_iv_where_none_is_set},
    {"a duplicate goes on", a_duplicate_goes_on},
    {"the plug-in describes itself as OpenSSL does",
     describes_itself_as_openssl_does},
    {"the plug-in speaks TLS with OpenSSL", speaks_tls_with_openssl},
    {"the plug-in leaves the rest of the process alone",
     leaves_the_rest_of_the_process_alone},
    {0},
};
