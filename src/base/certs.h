/* SPDX-License-Identifier: Apache-2.0 */
/* certs.h - a certificate authority for one job.
 *
 * A launcher makes it when a job starts, issues a certificate for each host and
 * frees it. The key never leaves the process, so that nobody can issue further
 * certificates for the job. */
#ifndef FL_BASE_CERTS_H
#define FL_BASE_CERTS_H

#include "base/err.h"

typedef struct fl_ca fl_ca; /* Thread: one */

/* Own: *out. Err: EIO. */
fl_err fl_ca_new(fl_ca **out) FL_MUST_CHECK;
void fl_ca_free(fl_ca *ca); /* NULL is fine */

/* The authority's own certificate, in PEM. */
const char *fl_ca_pem(const fl_ca *ca);

/* Issue a certificate for hosts ("a,b"), by name or address, and for localhost.
 * It is valid for clients and servers, for `days` days (below 0: it has
 * expired). Own: the caller frees both texts with fl_mem_free. Err: EIO, EINVAL
 * (a host cannot be in a certificate). */
fl_err fl_ca_issue(fl_ca *ca, const char *hosts, int days, char **certificate,
                   char **key) FL_MUST_CHECK;

#endif
