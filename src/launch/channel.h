/* SPDX-License-Identifier: Apache-2.0 */
/* channel.h - notices between a launcher and the agents on its hosts.
 *
 *     kind number size\n, `size` bytes, \n
 *
 * Both ends are pipes or sockets that never block: what cannot be sent yet is
 * queued. hosts.c and agent.c say which notices there are. */
#ifndef FL_LAUNCH_CHANNEL_H
#define FL_LAUNCH_CHANNEL_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    FL_NOTICE_KIND = 16,       /* bytes of a kind, with the NUL */
    FL_NOTICE_BYTES = 1 << 20, /* largest size of a body */
    FL_CHANNEL_CHUNK = 1 << 16 /* bytes that are read at a time */
};

typedef struct fl_notice {
    char kind[FL_NOTICE_KIND];
    int64_t number;
    const char *body; /* NUL-terminated; valid until the next call of take */
    size_t size;
} fl_notice;

/* Thread: one. */
typedef struct fl_channel {
    int in, out;   /* -1: none, or closed */
    fl_str got;    /* bytes that were read */
    size_t taken;  /* of them */
    fl_str queued; /* bytes to send */
    size_t sent;   /* of them */
} fl_channel;

/* Make the descriptors for a process that is started with a channel: ends[0] is
 * for its stdin and stdout, ends[1] for our end of the channel; errors[1] is
 * for its stderr, which is read from errors[0] without waiting. Programs that
 * are started do not inherit them. Own: all. False: errno says why, and none is
 * left open. */
bool fl_channel_pipes(int ends[2], int errors[2]);

/* Own: the channel closes both descriptors. */
void fl_channel_init(fl_channel *c, int in, int out);
void fl_channel_fini(fl_channel *c);

/* Queue a notice. A body of more than FL_NOTICE_BYTES is cut. */
void fl_channel_put(fl_channel *c, const char *kind, int64_t number,
                    const void *body, size_t size);
void fl_channel_text(fl_channel *c, const char *kind, int64_t number,
                     const char *text);

/* Bytes that are queued and not sent. */
size_t fl_channel_left(const fl_channel *c);

/* Wait up to `ms` until bytes can be read, or sent if some are queued; then
 * read and send what can be without waiting. Err: EIO (the other end has
 * closed; what it said before can still be taken). */
fl_err fl_channel_move(fl_channel *c, int ms) FL_MUST_CHECK;

/* The next notice; false: there is no whole one yet. Err: EPROTO. */
fl_err fl_channel_take(fl_channel *c, fl_notice *out,
                       bool *found) FL_MUST_CHECK;

/* End a line that a login script of this host may have begun and not ended.
 * Before the first notice only. */
void fl_channel_begin(fl_channel *c);

/* Drop what precedes the first notice of a kind, such as the output of a login
 * script. Returns false if that notice has not come yet. */
bool fl_channel_skip_to(fl_channel *c, const char *kind);

#endif
