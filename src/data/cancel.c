/* SPDX-License-Identifier: Apache-2.0 */
/* cancel.c - a flag for threads that compute, a descriptor for threads that
 * wait. */
#include "data/cancel.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

fl_err fl_cancel_init(fl_cancel *c)
{
    fl_count_init(&c->on, 0);
    c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->fd < 0)
        return fl_fail(FL_EIO,
                       "cannot open an event descriptor for a reader: %s",
                       strerror(errno));
    return FL_OK;
}

void fl_cancel_fini(fl_cancel *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

void fl_cancel_now(fl_cancel *c)
{
    fl_count_up(&c->on);
    eventfd_write(c->fd, 1); /* an error means that it is readable already */
}
