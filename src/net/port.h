/* SPDX-License-Identifier: Apache-2.0 */
/* port.h - addresses to listen on, who has them already, and the file that
 * tells others which port it became. */
#ifndef FL_NET_PORT_H
#define FL_NET_PORT_H

#include "base/err.h"
#include "base/str.h"

/* "host:port" with the host's one address ("127.0.0.1:80", "[::1]:80"; of
 * several, one of IPv4 is taken); "unix:path" stays. Err: EINVAL, ENOENT. */
fl_err fl_port_resolve(const char *address, fl_str *out) FL_MUST_CHECK;

/* Why such an address cannot be used: EIO with a sentence. */
fl_err fl_port_why(const char *exact) FL_MUST_CHECK;

/* /tmp/paddle.PID.port: the port as text, as Fluid's servers have written it.
 * The name can be guessed, so whatever others have put there is replaced or
 * left alone, never opened. Servers of one process share the file. Err: EIO. */
fl_err fl_port_file_write(int port) FL_MUST_CHECK;
void fl_port_file_remove(void);

#endif
