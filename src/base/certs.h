/* SPDX-License-Identifier: Apache-2.0 */
/* certs.h - a certificate authority for one job.
 *
 * It is made when the job starts, issues a certificate for each host and is
 * gone: its key never leaves the process, so nobody can join later. */
#ifndef FL_BASE_CERTS_H
#define FL_BASE_CERTS_H

#include "base/err.h"

typedef struct fl_ca fl_ca; /* Thread: one */

/* Own: *out. Err: EIO. */
fl_err fl_ca_new(fl_ca **out) FL_MUST_CHECK;
void fl_ca_free(fl_ca *ca); /* NULL is fine */

/* Its own certificate, in PEM. */
const char *fl_ca_pem(const fl_ca *ca);

/* A certificate for hosts ("a,b"), by name or address, and for localhost. It is
 * good for clients and servers, for so many days (below 0: it has expired).
 * Own: both end with fl_mem_free. Err: EIO, EINVAL (no such name can be in
 * one). */
fl_err fl_ca_issue(fl_ca *ca, const char *hosts, int days, char **certificate,
                   char **key) FL_MUST_CHECK;

#endif
