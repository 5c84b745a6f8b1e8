/* SPDX-License-Identifier: Apache-2.0 */
/* aes.c - a provider of OpenSSL 3.0 with AES-GCM by Intel's ipsec-mb, for
 * processors whose wide AES instructions OpenSSL 3.0 does not use.
 *
 * There is no cryptography here. A message with an IV of 12 bytes, which is
 * what TLS 1.3 sends, is encrypted by ipsec-mb. Everything else (TLS 1.2, other
 * IVs, random IVs, much additional data) is passed on to OpenSSL's own cipher,
 * which every context has beside it, with the same key:
 *
 *     NO_IV --IV--> HAVE_IV --text--> RUNNING --final--> ENDED --IV--> HAVE_IV
 *       |              |
 *       +--------------+--> PASSED_ON, until the next IV; for TLS 1.2 always
 *
 * Easy to get wrong: an IV must never encrypt two messages. A message that
 * ipsec-mb has begun is never passed on, and after its end a new IV is needed.
 */
#include <intel-ipsec-mb.h>
#include <limits.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/proverr.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    IV = 12,       /* bytes */
    TAG = 16,      /* bytes */
    AAD_MOST = 64, /* bytes of additional data that are gathered; TLS has 5 */
};
/* Bytes of a message: the counter of blocks has 32 bits (SP 800-38D). */
#define TEXT_MOST ((UINT64_C(1) << 36) - 32)

/* Without them ipsec-mb is not faster than OpenSSL 3.0. */
#define FEATURES                                                               \
    (IMB_FEATURE_AVX512_SKX | IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ)

/* What ipsec-mb does for one size of key. The functions use key and context
 * only, so that threads may share them. */
typedef struct methods {
    size_t key_size; /* bytes */
    aes_gcm_pre_t pre;
    aes_gcm_init_t init;
    aes_gcm_enc_dec_update_t update[2]; /* decrypt, encrypt */
    aes_gcm_enc_dec_finalize_t finalize[2];
    EVP_CIPHER *own; /* OpenSSL's cipher */
} methods;

/* Thread: immutable after OSSL_provider_init, except `messages`. */
typedef struct provider {
    IMB_MGR *mb;
    OSSL_LIB_CTX *library; /* where OpenSSL's own ciphers come from */
    methods of[2];         /* 128 bits, 256 bits */
    _Atomic uint64_t messages;
} provider;

typedef enum state {
    NO_IV,
    HAVE_IV,
    RUNNING,
    ENDED,
    PASSED_ON, /* OpenSSL's own cipher has the message */
} state;

typedef struct context {
    struct gcm_key_data key;
    struct gcm_context_data gcm;
    provider *p;
    const methods *m;
    EVP_CIPHER_CTX *own;
    state state;
    bool encrypt, keyed;
    bool tls12; /* stays PASSED_ON */
    unsigned char iv[IV], aad[AAD_MOST], tag[TAG];
    size_t iv_size, aad_size, tag_size; /* tag_size 0: there is none */
    uint64_t text_size;
} context;

/* --- OpenSSL's own cipher --- */

/* Set key and IV of OpenSSL's own cipher; NULL: they stay. */
static int set_own(context *c, const unsigned char *key,
                   const unsigned char *iv)
{
    return EVP_CipherInit_ex2(c->own, NULL, key, iv, c->encrypt, NULL);
}

static int set_own_tag(context *c)
{
    return EVP_CIPHER_CTX_ctrl(c->own, EVP_CTRL_AEAD_SET_TAG, (int)c->tag_size,
                               c->tag);
}

/* Pass a message on of which ipsec-mb has encrypted nothing yet. */
static int pass_on(context *c)
{
    int n;
    const bool have_iv = c->state == HAVE_IV;
    c->state = PASSED_ON;
    return set_own(c, NULL, have_iv ? c->iv : NULL) &&
           (c->encrypt || !c->tag_size || set_own_tag(c)) &&
           (!have_iv || !c->aad_size ||
            EVP_CipherUpdate(c->own, NULL, &n, c->aad, (int)c->aad_size));
}

static int update_own(context *c, unsigned char *out, size_t *out_size,
                      const unsigned char *in, size_t size)
{
    int n = 0;
    if (size > INT_MAX || !EVP_CipherUpdate(c->own, out, &n, in, (int)size))
        return 0;
    *out_size = (size_t)n;
    return 1;
}

/* --- a message --- */

static int fail_cipher(int reason)
{
    ERR_raise(ERR_LIB_PROV, reason);
    return 0;
}

static int init_cipher(context *c, const unsigned char *key, size_t key_size,
                       const unsigned char *iv, size_t iv_size, bool encrypt)
{
    c->encrypt = encrypt;
    if (key && key_size != c->m->key_size)
        return fail_cipher(PROV_R_INVALID_KEY_LENGTH);
    if (key) {
        c->m->pre(key, &c->key);
        c->keyed = true;
        if (c->state == RUNNING) /* half a message with each of two keys */
            c->state = ENDED;
    }
    if (iv)
        c->aad_size = 0;
    if (iv && iv_size == IV && !c->tls12) {
        memcpy(c->iv, iv, IV);
        c->state = HAVE_IV;
        iv = NULL;
    } else if (iv) {
        c->state = PASSED_ON;
    }
    return !key && !iv && c->state != PASSED_ON ? 1 : set_own(c, key, iv);
}

static int begin_message(context *c)
{
    if (!c->keyed || c->state != HAVE_IV)
        return 0;
    c->m->init(&c->key, &c->gcm, c->iv, c->aad, c->aad_size);
    c->text_size = 0;
    c->state = RUNNING;
    atomic_fetch_add_explicit(&c->p->messages, 1, memory_order_relaxed);
    return 1;
}

static int add_aad(context *c, const unsigned char *in, size_t size,
                   size_t *out_size)
{
    if (!c->keyed || c->state != HAVE_IV)
        return 0;
    if (size > AAD_MOST - c->aad_size)
        return pass_on(c) && update_own(c, NULL, out_size, in, size);
    memcpy(c->aad + c->aad_size, in, size);
    c->aad_size += size;
    *out_size = size;
    return 1;
}

static int add_text(context *c, unsigned char *out, size_t *out_size,
                    const unsigned char *in, size_t size)
{
    if (c->state == HAVE_IV && !begin_message(c))
        return 0;
    if (c->state != RUNNING || size > TEXT_MOST - c->text_size)
        return 0;
    c->m->update[c->encrypt](&c->key, &c->gcm, out, in, size);
    c->text_size += size;
    *out_size = size;
    return 1;
}

/* Encrypted text without an IV gets a random one, from OpenSSL. */
static int find_iv(context *c)
{
    return c->state != NO_IV || (c->keyed && c->encrypt && pass_on(c));
}

static int update_cipher(void *self, unsigned char *out, size_t *out_size,
                         size_t room, const unsigned char *in, size_t size)
{
    context *c = self;
    *out_size = 0;
    if (!size)
        return 1;
    if (room < size)
        return fail_cipher(PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    if (!find_iv(c))
        return fail_cipher(PROV_R_CIPHER_OPERATION_FAILED);
    if (c->state == PASSED_ON)
        return update_own(c, out, out_size, in, size);
    if (!(out ? add_text(c, out, out_size, in, size)
              : add_aad(c, in, size, out_size)))
        return fail_cipher(PROV_R_CIPHER_OPERATION_FAILED);
    return 1;
}

/* Make the tag, or compare it with the one that came. */
static int finish_message(context *c)
{
    unsigned char tag[TAG];
    if (!c->encrypt && !c->tag_size)
        return fail_cipher(PROV_R_TAG_NOT_SET);
    if (c->state == HAVE_IV && !begin_message(c))
        return 0;
    if (c->state != RUNNING)
        return 0;
    c->m->finalize[c->encrypt](&c->key, &c->gcm, tag, TAG);
    c->state = ENDED;
    if (!c->encrypt)
        return !CRYPTO_memcmp(tag, c->tag, c->tag_size);
    memcpy(c->tag, tag, TAG);
    c->tag_size = TAG;
    return 1;
}

static int final_cipher(void *self, unsigned char *out, size_t *out_size,
                        size_t room)
{
    context *c = self;
    unsigned char none[EVP_MAX_BLOCK_LENGTH];
    int n = 0;
    (void)out;
    (void)room;
    *out_size = 0;
    if (!find_iv(c))
        return 0;
    return c->state == PASSED_ON ? EVP_CipherFinal_ex(c->own, none, &n)
                                 : finish_message(c);
}

/* EVP_Cipher: what TLS 1.2 calls for a record. Without `in` it is the end. */
static int run_cipher(void *self, unsigned char *out, size_t *out_size,
                      size_t room, const unsigned char *in, size_t size)
{
    context *c = self;
    if (room < size)
        return fail_cipher(PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    if (c->state == PASSED_ON || (c->state == NO_IV && find_iv(c))) {
        const int n =
            size > INT_MAX ? -1 : EVP_Cipher(c->own, out, in, (unsigned)size);
        *out_size = n < 0 ? 0 : (size_t)n;
        return n >= 0;
    }
    if (in)
        return update_cipher(c, out, out_size, room, in, size);
    if (!final_cipher(c, out, out_size, room))
        return 0;
    *out_size = size;
    return 1;
}

/* --- parameters --- */

static bool is_named(const OSSL_PARAM *p, const char *name)
{
    return !strcmp(p->key, name);
}

static int set_tag(context *c, const OSSL_PARAM *p)
{
    if (p->data_type != OSSL_PARAM_OCTET_STRING)
        return fail_cipher(PROV_R_FAILED_TO_GET_PARAMETER);
    if (c->encrypt)
        return fail_cipher(PROV_R_TAG_NOT_NEEDED);
    if (!p->data || !p->data_size || p->data_size > TAG)
        return fail_cipher(PROV_R_INVALID_TAG);
    memcpy(c->tag, p->data, p->data_size);
    c->tag_size = p->data_size;
    return c->state != PASSED_ON || set_own_tag(c);
}

static int set_own_param(context *c, const OSSL_PARAM *p)
{
    const OSSL_PARAM one[] = {*p, OSSL_PARAM_construct_end()};
    return EVP_CIPHER_CTX_set_params(c->own, one) > 0;
}

/* An IV that was set for another length is not valid any more. */
static int set_iv_size(context *c, const OSSL_PARAM *p)
{
    size_t size;
    if (!OSSL_PARAM_get_size_t(p, &size) || !set_own_param(c, p))
        return 0;
    if (size != c->iv_size && (c->state == HAVE_IV || c->state == RUNNING))
        c->state = ENDED;
    c->iv_size = size;
    return 1;
}

/* From here on OpenSSL's own cipher does everything. It draws an IV of its own
 * when the fixed part of it is set, so that can be done at any time. */
static int set_tls12(context *c, const OSSL_PARAM *p)
{
    if (!is_named(p, OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED) &&
        (c->state == RUNNING || c->state == ENDED))
        return fail_cipher(PROV_R_CIPHER_OPERATION_FAILED);
    if (c->state != PASSED_ON && !pass_on(c))
        return 0;
    c->tls12 = true;
    return set_own_param(c, p);
}

static int set_param(context *c, const OSSL_PARAM *p)
{
    if (is_named(p, OSSL_CIPHER_PARAM_AEAD_TAG))
        return set_tag(c, p);
    if (is_named(p, OSSL_CIPHER_PARAM_IVLEN))
        return set_iv_size(c, p);
    if (is_named(p, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD) ||
        is_named(p, OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED) ||
        is_named(p, OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV))
        return set_tls12(c, p);
    return set_own_param(c, p);
}

static int set_params(void *self, const OSSL_PARAM params[])
{
    for (const OSSL_PARAM *p = params; p && p->key; p++)
        if (!set_param(self, p))
            return 0;
    return 1;
}

static int get_tag(const context *c, OSSL_PARAM *p)
{
    if (!c->encrypt || !c->tag_size)
        return fail_cipher(PROV_R_TAG_NOT_SET);
    if (!p->data_size || p->data_size > TAG)
        return fail_cipher(PROV_R_INVALID_TAG);
    return OSSL_PARAM_set_octet_string(p, c->tag, p->data_size);
}

static int get_iv(const context *c, OSSL_PARAM *p)
{
    if (c->state == NO_IV || c->iv_size != IV || p->data_size < IV)
        return fail_cipher(PROV_R_INVALID_IV_LENGTH);
    return p->data_type == OSSL_PARAM_OCTET_PTR
               ? OSSL_PARAM_set_octet_ptr(p, c->iv, IV)
               : OSSL_PARAM_set_octet_string(p, c->iv, IV);
}

static int get_own_param(const context *c, OSSL_PARAM *p)
{
    OSSL_PARAM one[] = {*p, OSSL_PARAM_construct_end()};
    const int ok = EVP_CIPHER_CTX_get_params(c->own, one) > 0;
    p->return_size = one->return_size;
    return ok;
}

static int get_param(context *c, OSSL_PARAM *p)
{
    const bool iv = is_named(p, OSSL_CIPHER_PARAM_IV) ||
                    is_named(p, OSSL_CIPHER_PARAM_UPDATED_IV);
    if (iv && c->encrypt && c->state == NO_IV)
        (void)find_iv(c);
    if (c->state == PASSED_ON)
        return get_own_param(c, p);
    if (is_named(p, OSSL_CIPHER_PARAM_AEAD_TAG))
        return get_tag(c, p);
    if (is_named(p, OSSL_CIPHER_PARAM_AEAD_TAGLEN))
        return OSSL_PARAM_set_size_t(p, c->tag_size ? c->tag_size : TAG);
    return iv ? get_iv(c, p) : get_own_param(c, p);
}

static int get_params(void *self, OSSL_PARAM params[])
{
    for (OSSL_PARAM *p = params; p && p->key; p++)
        if (!get_param(self, p))
            return 0;
    return 1;
}

static const OSSL_PARAM *list_settable(void *self, void *of)
{
    static const OSSL_PARAM all[] = {
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, NULL),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV, NULL,
                                0),
        OSSL_PARAM_END,
    };
    (void)self;
    (void)of;
    return all;
}

static const OSSL_PARAM *list_gettable(void *self, void *of)
{
    static const OSSL_PARAM all[] = {
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, NULL),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, NULL),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_TAGLEN, NULL),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_IV, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_UPDATED_IV, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, 0),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD_PAD, NULL),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN, NULL,
                                0),
        OSSL_PARAM_END,
    };
    (void)self;
    (void)of;
    return all;
}

static int init_encrypt(void *self, const unsigned char *key, size_t key_size,
                        const unsigned char *iv, size_t iv_size,
                        const OSSL_PARAM params[])
{
    return init_cipher(self, key, key_size, iv, iv_size, true) &&
           set_params(self, params);
}

static int init_decrypt(void *self, const unsigned char *key, size_t key_size,
                        const unsigned char *iv, size_t iv_size,
                        const OSSL_PARAM params[])
{
    return init_cipher(self, key, key_size, iv, iv_size, false) &&
           set_params(self, params);
}

/* --- contexts --- */

static void free_context(void *self)
{
    context *c = self;
    if (!c)
        return;
    EVP_CIPHER_CTX_free(c->own);
    OPENSSL_cleanse(c, sizeof *c);
    free(c);
}

static context *new_context(provider *p, const methods *m)
{
    context *c = aligned_alloc(_Alignof(context), sizeof *c);
    if (!c)
        return NULL;
    memset(c, 0, sizeof *c);
    c->p = p;
    c->m = m;
    c->iv_size = IV;
    c->own = EVP_CIPHER_CTX_new();
    if (c->own && EVP_CipherInit_ex2(c->own, m->own, NULL, NULL, 0, NULL))
        return c;
    free_context(c);
    return NULL;
}

static void *new_128(void *self)
{
    provider *p = self;
    return new_context(p, &p->of[0]);
}

static void *new_256(void *self)
{
    provider *p = self;
    return new_context(p, &p->of[1]);
}

static void *dup_context(void *self)
{
    const context *from = self;
    context *c = aligned_alloc(_Alignof(context), sizeof *c);
    if (!c)
        return NULL;
    *c = *from;
    c->own = EVP_CIPHER_CTX_new();
    if (c->own && EVP_CIPHER_CTX_copy(c->own, from->own))
        return c;
    free_context(c);
    return NULL;
}

/* --- what the ciphers are --- */

static const OSSL_PARAM *list_cipher(void *of)
{
    static const OSSL_PARAM all[] = {
        OSSL_PARAM_uint(OSSL_CIPHER_PARAM_MODE, NULL),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, NULL),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, NULL),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_BLOCK_SIZE, NULL),
        OSSL_PARAM_int(OSSL_CIPHER_PARAM_AEAD, NULL),
        OSSL_PARAM_int(OSSL_CIPHER_PARAM_CUSTOM_IV, NULL),
        OSSL_PARAM_int(OSSL_CIPHER_PARAM_CTS, NULL),
        OSSL_PARAM_int(OSSL_CIPHER_PARAM_TLS1_MULTIBLOCK, NULL),
        OSSL_PARAM_int(OSSL_CIPHER_PARAM_HAS_RAND_KEY, NULL),
        OSSL_PARAM_END,
    };
    (void)of;
    return all;
}

static int set_number(OSSL_PARAM params[], const char *name, unsigned value)
{
    OSSL_PARAM *p = OSSL_PARAM_locate(params, name);
    return !p || OSSL_PARAM_set_uint(p, value);
}

static int describe_cipher(OSSL_PARAM params[], unsigned key_size)
{
    return set_number(params, OSSL_CIPHER_PARAM_MODE, EVP_CIPH_GCM_MODE) &&
           set_number(params, OSSL_CIPHER_PARAM_KEYLEN, key_size) &&
           set_number(params, OSSL_CIPHER_PARAM_IVLEN, IV) &&
           set_number(params, OSSL_CIPHER_PARAM_BLOCK_SIZE, 1) &&
           set_number(params, OSSL_CIPHER_PARAM_AEAD, 1) &&
           set_number(params, OSSL_CIPHER_PARAM_CUSTOM_IV, 1) &&
           set_number(params, OSSL_CIPHER_PARAM_CTS, 0) &&
           set_number(params, OSSL_CIPHER_PARAM_TLS1_MULTIBLOCK, 0) &&
           set_number(params, OSSL_CIPHER_PARAM_HAS_RAND_KEY, 0);
}

static int describe_128(OSSL_PARAM params[])
{
    return describe_cipher(params, IMB_GCM_128_KEY_LEN);
}

static int describe_256(OSSL_PARAM params[])
{
    return describe_cipher(params, IMB_GCM_256_KEY_LEN);
}

typedef void (*function)(void);

#define FUNCTIONS(new_fn, describe_fn)                                         \
    {                                                                          \
        {OSSL_FUNC_CIPHER_NEWCTX, (function)(new_fn)},                         \
            {OSSL_FUNC_CIPHER_FREECTX, (function)free_context},                \
            {OSSL_FUNC_CIPHER_DUPCTX, (function)dup_context},                  \
            {OSSL_FUNC_CIPHER_ENCRYPT_INIT, (function)init_encrypt},           \
            {OSSL_FUNC_CIPHER_DECRYPT_INIT, (function)init_decrypt},           \
            {OSSL_FUNC_CIPHER_UPDATE, (function)update_cipher},                \
            {OSSL_FUNC_CIPHER_FINAL, (function)final_cipher},                  \
            {OSSL_FUNC_CIPHER_CIPHER, (function)run_cipher},                   \
            {OSSL_FUNC_CIPHER_GET_PARAMS, (function)(describe_fn)},            \
            {OSSL_FUNC_CIPHER_GETTABLE_PARAMS, (function)list_cipher},         \
            {OSSL_FUNC_CIPHER_GET_CTX_PARAMS, (function)get_params},           \
            {OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS, (function)list_gettable},   \
            {OSSL_FUNC_CIPHER_SET_CTX_PARAMS, (function)set_params},           \
            {OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS, (function)list_settable},   \
        {                                                                      \
            0, NULL                                                            \
        }                                                                      \
    }

static const OSSL_DISPATCH functions_128[] = FUNCTIONS(new_128, describe_128);
static const OSSL_DISPATCH functions_256[] = FUNCTIONS(new_256, describe_256);

/* --- the provider --- */

static const OSSL_ALGORITHM ciphers[] = {
    {"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6", "provider=fluid",
     functions_128, "AES-128-GCM by ipsec-mb"},
    {"AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46", "provider=fluid",
     functions_256, "AES-256-GCM by ipsec-mb"},
    {NULL, NULL, NULL, NULL},
};

static const OSSL_ALGORITHM *query_provider(void *self, int operation,
                                            int *no_cache)
{
    (void)self;
    *no_cache = 0;
    return operation == OSSL_OP_CIPHER ? ciphers : NULL;
}

static const OSSL_PARAM *list_provider(void *self)
{
    static const OSSL_PARAM all[] = {
        OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_NAME, NULL, 0),
        OSSL_PARAM_int(OSSL_PROV_PARAM_STATUS, NULL),
        OSSL_PARAM_uint64("messages", NULL),
        OSSL_PARAM_END,
    };
    (void)self;
    return all;
}

/* "messages": how many ipsec-mb has begun, for tests. */
static int describe_provider(void *self, OSSL_PARAM params[])
{
    provider *p = self;
    OSSL_PARAM *name = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_NAME);
    OSSL_PARAM *messages = OSSL_PARAM_locate(params, "messages");
    return (!name || OSSL_PARAM_set_utf8_ptr(name, "AES-GCM by ipsec-mb")) &&
           (!messages ||
            OSSL_PARAM_set_uint64(messages, atomic_load(&p->messages))) &&
           set_number(params, OSSL_PROV_PARAM_STATUS, 1);
}

static void free_provider(void *self)
{
    provider *p = self;
    for (int i = 0; i < 2; i++)
        EVP_CIPHER_free(p->of[i].own);
    OSSL_LIB_CTX_free(p->library);
    if (p->mb)
        free_mb_mgr(p->mb);
    free(p);
}

static void set_methods(provider *p)
{
    const IMB_MGR *mb = p->mb;
    p->of[0] = (methods){IMB_GCM_128_KEY_LEN,
                         mb->gcm128_pre,
                         mb->gcm128_init,
                         {mb->gcm128_dec_update, mb->gcm128_enc_update},
                         {mb->gcm128_dec_finalize, mb->gcm128_enc_finalize},
                         EVP_CIPHER_fetch(p->library, "AES-128-GCM", NULL)};
    p->of[1] = (methods){IMB_GCM_256_KEY_LEN,
                         mb->gcm256_pre,
                         mb->gcm256_init,
                         {mb->gcm256_dec_update, mb->gcm256_enc_update},
                         {mb->gcm256_dec_finalize, mb->gcm256_enc_finalize},
                         EVP_CIPHER_fetch(p->library, "AES-256-GCM", NULL)};
}

static const OSSL_DISPATCH provider_functions[] = {
    {OSSL_FUNC_PROVIDER_TEARDOWN, (function)free_provider},
    {OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, (function)list_provider},
    {OSSL_FUNC_PROVIDER_GET_PARAMS, (function)describe_provider},
    {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (function)query_provider},
    {0, NULL},
};

OSSL_provider_init_fn OSSL_provider_init;
int OSSL_provider_init(const OSSL_CORE_HANDLE *core, const OSSL_DISPATCH *in,
                       const OSSL_DISPATCH **out, void **self)
{
    provider *p = calloc(1, sizeof *p);
    (void)core;
    (void)in;
    if (!p)
        return 0;
    p->mb = alloc_mb_mgr(0);
    if (p->mb)
        init_mb_mgr_auto(p->mb, NULL);
    p->library = OSSL_LIB_CTX_new();
    if (p->mb && p->library && (p->mb->features & FEATURES) == FEATURES)
        set_methods(p);
    if (!p->of[0].own || !p->of[1].own) {
        free_provider(p);
        return 0;
    }
    *out = provider_functions;
    *self = p;
    return 1;
}
