/* SPDX-License-Identifier: Apache-2.0 */
/* test_talk.h - talk to one machine in a test and read its answers. */
#ifndef FL_PROTOCOL_TEST_TALK_H
#define FL_PROTOCOL_TEST_TALK_H

#include "base/test.h"
#include "protocol/message.h"

#include <stdio.h>
#include <string.h>

static const fl_id job_id = {7, 9};

static inline fl_id session(uint64_t n)
{
    return (fl_id){n, n};
}

static inline fl_peer on_call(uint64_t call)
{
    return (fl_peer){FL_PEER_CALL, 0, call};
}

static inline fl_peer at_coord(void)
{
    return (fl_peer){FL_PEER_COORD, 0, 0};
}

static inline fl_peer at_server(int index)
{
    return (fl_peer){FL_PEER_SERVER, index, 0};
}

/* The last message of that kind on that call since the last clear, or NULL. */
static inline const fl_msg *heard(const fl_outbox *o, uint64_t call,
                                  fl_msg_kind kind)
{
    for (int64_t i = o->out.n - 1; i >= 0; i--)
        if (o->out.at[i].to.kind == FL_PEER_CALL &&
            o->out.at[i].to.call == call && o->out.at[i].msg.kind == kind)
            return &o->out.at[i].msg;
    return NULL;
}

/* The last message of that kind to any peer since the last clear, or NULL. */
static inline const fl_msg *said(const fl_outbox *o, fl_msg_kind kind)
{
    for (int64_t i = o->out.n - 1; i >= 0; i--)
        if (o->out.at[i].msg.kind == kind)
            return &o->out.at[i].msg;
    return NULL;
}

static inline bool mentions(const fl_msg *m, const char *part)
{
    return m && m->text && strstr(m->text, part);
}

#endif
