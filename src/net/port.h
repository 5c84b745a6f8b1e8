/* port.h - addresses to listen on, and who has them already. */
#ifndef FL_NET_PORT_H
#define FL_NET_PORT_H

#include "base/err.h"
#include "base/str.h"

/* "host:port" with the host's one address ("127.0.0.1:80", "[::1]:80"; of
 * several, one of IPv4 is taken); "unix:path" stays. Err: EINVAL, ENOENT. */
fl_err fl_port_resolve(const char *address, fl_str *out) FL_MUST_CHECK;

/* Why such an address cannot be had: EIO with a sentence. */
fl_err fl_port_why(const char *exact) FL_MUST_CHECK;

#endif
