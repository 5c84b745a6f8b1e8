/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - the certificate of this process in its job.
 *
 *     FLUID_TLS_CERT   file with the certificate of this process, in PEM
 *     FLUID_TLS_KEY    file with its key
 *     FLUID_TLS_CA     file with the certificate of the job's authority
 *
 * A launcher sets them; by hand they are set on every host. */
#ifndef FL_CLUSTER_TLS_H
#define FL_CLUSTER_TLS_H

#include "net/tls.h"

/* *out is NULL where none of the variables is set: the job has no TLS. Own:
 * *out. Err: EINVAL (some are set and some are not), and of fl_tls_new. */
fl_err fl_job_tls_read(fl_tls **out) FL_MUST_CHECK;

/* Is one of them set? */
bool fl_job_has_tls(void);

#endif
