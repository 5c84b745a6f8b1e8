/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of calls holds of calls over TLS: the same tests, and the same
 * limits for strangers who have a certificate. */
#define FL_TEST_TLS
#include "net/grpc_test.c" /* NOLINT */
