/* SPDX-License-Identifier: Apache-2.0 */
/* port.h - addresses to listen on, which process holds a port, and the file
 * that tells other processes the port of a server. */
#ifndef FL_NET_PORT_H
#define FL_NET_PORT_H

#include "base/err.h"
#include "base/str.h"

/* Resolve "host:port" to one numeric address, "127.0.0.1:80" or "[::1]:80";
 * IPv4 is preferred. "unix:path" is not changed. Err: EINVAL, ENOENT. */
fl_err fl_port_resolve(const char *address, fl_str *out) FL_MUST_CHECK;

/* Find out why such an address cannot be bound. Err: always EIO, with a message
 * that names the process that holds the port, if possible. */
fl_err fl_port_why(const char *exact) FL_MUST_CHECK;

/* Write the port as text to /tmp/paddle.PID.port, as Fluid's servers do. Other
 * users can guess the name, so a file that they have put there is replaced or
 * left alone, but never opened. Servers of one process share the file. Err:
 * EIO.
 */
fl_err fl_port_file_write(int port) FL_MUST_CHECK;
void fl_port_file_remove(void);

#endif
