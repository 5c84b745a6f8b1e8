/* SPDX-License-Identifier: Apache-2.0 */
/* aes.h - a faster AES-GCM for the TLS of this process, from a plug-in.
 *
 * OpenSSL 3.0 does not use the wide AES instructions of newer processors. The
 * plug-in libfluid-aes.so (plugins/aes.c) is a provider of OpenSSL that does.
 * Only those who ask for it get it: everybody else in the process, such as
 * Python's ssl module, keeps OpenSSL's own ciphers.
 *
 * gRPC does not ask. It calls SSL_CTX_new, which takes the ciphers of OpenSSL's
 * default provider, and calls it again on threads of its own whenever it has
 * looked up a name. So this library has a function of that name, which the
 * dynamic linker finds first when gRPC was loaded by this library. If gRPC was
 * loaded before by somebody else, it calls OpenSSL's function, and its
 * connections have OpenSSL's cipher. */
#ifndef FL_NET_AES_H
#define FL_NET_AES_H

/* Load the plug-in, if it is there and is of use on this host; otherwise the
 * log says at debug level why not. Call it before contexts are made. Thread:
 * any. */
void fl_aes_load(void);

#endif
