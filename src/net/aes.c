/* SPDX-License-Identifier: Apache-2.0 */
/* aes.c - loads the plug-in into OpenSSL, and lets TLS use it.
 *
 * OpenSSL's default properties are not changed: that would give the cipher to
 * the whole process, and OpenSSL 3.0 changes them without a lock. */
#include "net/aes.h"

#include "base/log.h"
#include "base/plugin_file.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <stdbool.h>

static const char provider[] = "fluid";
static const char preferred[] = "?provider=fluid"; /* "?": if it is there */
static const char own[] = "default";               /* OpenSSL's provider */

/* Why the plug-in must not be used in this process; NULL: it may be. */
static const char *why_not(void)
{
    if (OpenSSL_version_num() >= 0x30100000)
        return "OpenSSL uses the wide instructions itself";
    if (EVP_default_properties_is_fips_enabled(NULL))
        return "this process may use FIPS ciphers only";
    if (!OSSL_PROVIDER_available(NULL, own))
        return "OpenSSL's default provider is switched off";
    return NULL;
}

/* End a load at the end of the process, so that OpenSSL frees the provider. */
static void unload_provider(const char *name)
{
    OSSL_PROVIDER *p = OSSL_PROVIDER_available(NULL, name)
                           ? OSSL_PROVIDER_load(NULL, name)
                           : NULL;
    for (int i = 0; p && i < 2; i++) /* this load and the first one */
        OSSL_PROVIDER_unload(p);
}

static void unload_providers(void)
{
    unload_provider(provider);
    unload_provider(own);
}

/* An explicit load of any provider ends OpenSSL's implicit use of its default
 * one, so that one is loaded explicitly, too, and first: where nobody asks for
 * a provider, OpenSSL takes the first that has the cipher. */
static const char *add_provider(void)
{
    void *library = fl_plugin_file_open("aes", false);
    if (!library)
        return dlerror();
    OSSL_provider_init_fn *init = NULL;
    *(void **)&init = dlsym(library, "OSSL_provider_init");
    if (!init)
        return dlerror();
    OSSL_PROVIDER *first = OSSL_PROVIDER_load(NULL, own);
    if (first && OSSL_PROVIDER_add_builtin(NULL, provider, init) &&
        OSSL_PROVIDER_load(NULL, provider)) {
        OPENSSL_atexit(unload_providers);
        return NULL;
    }
    if (first)
        OSSL_PROVIDER_unload(first);
    return "this processor has no AVX-512 with VAES, or OpenSSL refuses it";
}

void fl_aes_load(void)
{
    if (OSSL_PROVIDER_available(NULL, provider))
        return;
    const char *why = why_not();
    if (!why)
        why = add_provider();
    ERR_clear_error();
    if (why)
        FL_DEBUG("TLS has OpenSSL's own AES, without libfluid-aes.so: %s", why);
    else
        FL_DEBUG("TLS has the AES of libfluid-aes.so");
}

/* OpenSSL's function, but with the plug-in's ciphers if it is loaded. It is
 * weak, so that a program may link OpenSSL statically, which has its own. */
__attribute__((weak)) SSL_CTX *SSL_CTX_new(const SSL_METHOD *method)
{
    const bool loaded = OSSL_PROVIDER_available(NULL, provider);
    return SSL_CTX_new_ex(NULL, loaded ? preferred : NULL, method);
}
