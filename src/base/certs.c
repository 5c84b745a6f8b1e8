/* SPDX-License-Identifier: Apache-2.0 */
/* certs.c - certificates by OpenSSL, with keys on the curve P-256. */
#include "base/certs.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

enum {
    CA_DAYS = 3650,
    DAY = 24 * 3600,
    CLOCKS = 3600 /* seconds by which the clocks of hosts may differ */
};

struct fl_ca {
    EVP_PKEY *key;
    X509 *self;
    char *pem;
};

static fl_err fail_openssl(const char *what)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    const fl_err err =
        fl_fail(FL_EIO, "%s: %s", what, why ? why : "OpenSSL does not say why");
    ERR_clear_error();
    return err;
}

/* The content of a memory BIO, which is freed. */
static char *text_of(BIO *bio)
{
    char *at;
    const long n = BIO_get_mem_data(bio, &at);
    fl_str s = {0};
    fl_str_bytes(&s, at, (size_t)n);
    BIO_free(bio);
    return fl_str_take(&s);
}

static char *pem_of_certificate(X509 *x)
{
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, x);
    return text_of(bio);
}

static char *pem_of_key(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    return text_of(bio);
}

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    const bool ok = e && X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
    return ok;
}

static bool set_serial(X509 *x)
{
    unsigned char bytes[8];
    uint64_t serial;
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    memcpy(&serial, bytes, sizeof serial);
    return ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), serial >> 1);
}

/* A new certificate, not signed yet; NULL: OpenSSL refused. */
static X509 *new_certificate(EVP_PKEY *key, const char *name, long days)
{
    X509 *x = X509_new();
    if (!x)
        return NULL;
    X509_NAME *subject = X509_get_subject_name(x);
    const long from = days < 0 ? 2 * days * DAY : -CLOCKS;
    if (X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
        X509_gmtime_adj(X509_getm_notBefore(x), from) &&
        X509_gmtime_adj(X509_getm_notAfter(x), days * DAY) &&
        X509_set_pubkey(x, key) &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                   (const unsigned char *)name, -1, -1, 0))
        return x;
    X509_free(x);
    return NULL;
}

fl_err fl_ca_new(fl_ca **out)
{
    fl_ca *ca = fl_mem_alloc(sizeof *ca);
    ca->key = EVP_EC_gen("P-256");
    if (ca->key)
        ca->self = new_certificate(ca->key, "Fluid job", CA_DAYS);
    if (!ca->self ||
        !X509_set_issuer_name(ca->self, X509_get_subject_name(ca->self)) ||
        !add_extension(ca->self, ca->self, NID_basic_constraints,
                       "critical,CA:TRUE") ||
        !add_extension(ca->self, ca->self, NID_key_usage,
                       "critical,keyCertSign") ||
        !add_extension(ca->self, ca->self, NID_subject_key_identifier,
                       "hash") ||
        !X509_sign(ca->self, ca->key, EVP_sha256())) {
        fl_ca_free(ca);
        return fail_openssl("a certificate authority cannot be made");
    }
    ca->pem = pem_of_certificate(ca->self);
    *out = ca;
    return FL_OK;
}

void fl_ca_free(fl_ca *ca)
{
    if (!ca)
        return;
    EVP_PKEY_free(ca->key);
    X509_free(ca->self);
    fl_mem_free(ca->pem);
    fl_mem_free(ca);
}

const char *fl_ca_pem(const fl_ca *ca)
{
    return ca->pem;
}

/* Append "DNS:node1," or "IP:10.0.0.1,". False: the host is neither a name nor
 * an address. */
static bool write_name(fl_str *s, const char *host, size_t n)
{
    unsigned char at[16];
    char name[256];
    if (!n || n >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)n, host);
    const bool numbers =
        inet_pton(AF_INET, name, at) == 1 || inet_pton(AF_INET6, name, at) == 1;
    fl_str_printf(s, "%s:%s,", numbers ? "IP" : "DNS", name);
    return numbers || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
                                   "RSTUVWXYZ0123456789.-_") == n;
}

/* "DNS:node1,DNS:localhost,IP:127.0.0.1,IP:::1" */
static bool write_names(fl_str *s, const char *hosts)
{
    for (;;) {
        const size_t n = strcspn(hosts, ",");
        if (!write_name(s, hosts, n))
            return false;
        hosts += n;
        if (!*hosts++)
            break;
    }
    fl_str_add(s, "DNS:localhost,IP:127.0.0.1,IP:::1");
    return true;
}

static bool sign_for_host(fl_ca *ca, X509 *x, const char *names)
{
    return X509_set_issuer_name(x, X509_get_subject_name(ca->self)) &&
           add_extension(x, ca->self, NID_basic_constraints,
                         "critical,CA:FALSE") &&
           add_extension(x, ca->self, NID_ext_key_usage,
                         "serverAuth,clientAuth") &&
           add_extension(x, ca->self, NID_subject_alt_name, names) &&
           add_extension(x, ca->self, NID_authority_key_identifier,
                         "keyid:always") &&
           X509_sign(x, ca->key, EVP_sha256());
}

fl_err fl_ca_issue(fl_ca *ca, const char *hosts, int days, char **certificate,
                   char **key)
{
    fl_str names = {0};
    if (!write_names(&names, hosts)) {
        fl_str_fini(&names);
        return fl_fail(FL_EINVAL,
                       "\"%s\" cannot be in a certificate: expected host names "
                       "or addresses with commas between them",
                       hosts);
    }
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    X509 *x = pair ? new_certificate(pair, "Fluid process", days) : NULL;
    const bool ok = x && sign_for_host(ca, x, names.at);
    if (ok) {
        *certificate = pem_of_certificate(x);
        *key = pem_of_key(pair);
    }
    X509_free(x);
    EVP_PKEY_free(pair);
    fl_str_fini(&names);
    return ok ? FL_OK : fail_openssl("a certificate cannot be issued");
}
