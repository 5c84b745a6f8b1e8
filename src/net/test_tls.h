/* SPDX-License-Identifier: Apache-2.0 */
/* test_tls.h - certificates for tests. */
#ifndef FL_NET_TEST_TLS_H
#define FL_NET_TEST_TLS_H

#include "base/certs.h"
#include "base/disk.h"
#include "base/flag.h"
#include "base/test.h"
#include "net/aes.h"
#include "net/tls.h"

#include <openssl/params.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <unistd.h>

/* The plug-in is used where it is there, unless FLUID_TLS_NO_PLUGIN is 1. */
static inline void load_plugin(void)
{
    bool without = false;
    CHECK_OK(fl_flag_bool("FLUID_TLS_NO_PLUGIN", &without));
    if (!without)
        fl_aes_load();
}

static inline void need_plugin(void)
{
    load_plugin();
    if (!OSSL_PROVIDER_available(NULL, "fluid"))
        fl_test_skip("libfluid-aes.so is not built, or of no use here");
}

/* Messages that the ciphers of the plug-in have begun. */
static inline uint64_t count_plugin(void)
{
    uint64_t n = 0;
    OSSL_PROVIDER *p = OSSL_PROVIDER_try_load(NULL, "fluid", 1);
    OSSL_PARAM ask[] = {OSSL_PARAM_construct_uint64("messages", &n),
                        OSSL_PARAM_construct_end()};
    CHECK(p && OSSL_PROVIDER_get_params(p, ask) == 1);
    OSSL_PROVIDER_unload(p);
    return n;
}

/* A process of the job of `ca`, for 127.0.0.1; `shown` of another authority, if
 * given, is what it shows. */
static inline fl_tls *make_tls(fl_ca *ca, fl_ca *shown, int days)
{
    char folder[200], path[3][256];
    char *pem[3] = {NULL, NULL, (char *)fl_ca_pem(ca)};
    fl_tls *t = NULL;
    load_plugin();
    snprintf(folder, sizeof folder, "%s/tls-XXXXXX", fl_test_dir());
    CHECK_OK(fl_disk_real()->mkdtemp(fl_disk_real(), folder));
    CHECK_OK(
        fl_ca_issue(shown ? shown : ca, "127.0.0.1", days, &pem[0], &pem[1]));
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d", folder, i);
        CHECK_OK(fl_disk_write(fl_disk_real(), path[i], pem[i], strlen(pem[i]),
                               false));
    }
    CHECK_OK(fl_tls_new(path[0], path[1], path[2], &t));
    CHECK_OK(fl_disk_remove_tree(fl_disk_real(), folder));
    fl_mem_free(pem[0]);
    fl_mem_free(pem[1]);
    return t;
}

#endif
