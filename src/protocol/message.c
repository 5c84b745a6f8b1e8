/* message.c - copies of messages, and the box in which they leave. */
#include "protocol/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    STALLED_MOST = 8 /* rows of a report */
};

const fl_msg_info *fl_msg_info_of(fl_msg_kind kind)
{
    static const fl_msg_info unknown = {.name = "?", .carries = ""};
    static const fl_msg_info table[FL_MSG_KINDS] = {
        [FL_MSG_NONE] = {.name = "NONE", .carries = ""},
#define FL_MESSAGE(kind, number, from, to, by, method, answer, carries)        \
    [FL_MSG_##kind] = {#kind,  FL_PARTY_##from, FL_PARTY_##to, FL_BY_##by,     \
                       method, FL_MSG_##answer, carries},
#include "protocol/list.h"
#undef FL_MESSAGE
    };
    const size_t i = (size_t)kind;
    return i < FL_MSG_KINDS ? &table[i] : &unknown;
}

const char *fl_msg_name(fl_msg_kind kind)
{
    return fl_msg_info_of(kind)->name;
}

const char *fl_msg_method(fl_msg_kind kind)
{
    return fl_msg_info_of(kind)->method;
}

bool fl_msg_carries(fl_msg_kind kind, const char *field)
{
    const size_t n = strlen(field);
    const char *at = fl_msg_info_of(kind)->carries;
    for (; *at; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        if (word == n && !strncmp(at, field, n))
            return true;
        at += word;
    }
    return false;
}

void fl_leave_text(const fl_leave *left, char *buf, size_t size)
{
    static const char *const why[] = {
        [FL_LEFT_LEASE] = "lost: lease ran out",
        [FL_LEFT_CALL] = "lost: its open call broke",
        [FL_LEFT_FAILED] = "lost: it failed",
        [FL_LEFT_DONE] = "gone: it completed",
    };
    const size_t i = (size_t)left->why;
    snprintf(buf, size, "rank %d %s %.1f s ago (view %lld)", left->rank,
             i < sizeof why / sizeof *why ? why[i] : "gone",
             (double)left->ago / (double)FL_SEC, (long long)left->view);
}

static void *dup_bytes(const void *from, size_t size)
{
    if (!size)
        return NULL;
    void *to = fl_mem_alloc(size);
    memcpy(to, from, size);
    return to;
}

fl_msg *fl_msg_dup(const fl_msg *m)
{
    fl_msg *copy = dup_bytes(m, sizeof *m);
    copy->member =
        dup_bytes(m->member, (size_t)m->n_member * sizeof *m->member);
    copy->left = dup_bytes(m->left, (size_t)m->n_left * sizeof *m->left);
    copy->seen = dup_bytes(m->seen, (size_t)m->n_seen * sizeof *m->seen);
    copy->text = m->text ? fl_mem_strdup(m->text) : NULL;
    copy->about = m->about ? fl_mem_strdup(m->about) : NULL;
    copy->blob.at = dup_bytes(m->blob.at, m->blob.size);
    copy->blob.owner = NULL;
    return copy;
}

void fl_msg_free(fl_msg *m)
{
    if (!m)
        return;
    fl_mem_free((void *)m->member);
    fl_mem_free((void *)m->left);
    fl_mem_free((void *)m->seen);
    fl_mem_free((void *)m->text);
    fl_mem_free((void *)m->about);
    fl_mem_free((void *)m->blob.at);
    fl_mem_free(m);
}

void fl_outbox_init(fl_outbox *o)
{
    *o = (fl_outbox){.arena = fl_arena_new()};
}

void fl_outbox_fini(fl_outbox *o)
{
    fl_vec_fini(&o->out);
    fl_vec_fini(&o->note);
    fl_arena_free(o->arena);
    o->arena = NULL;
}

void fl_outbox_clear(fl_outbox *o)
{
    o->out.n = o->note.n = 0;
    fl_arena_reset(o->arena);
}

static const char *format(fl_arena *a, const char *fmt, va_list ap)
{
    char line[1024];
    vsnprintf(line, sizeof line, fmt, ap);
    return fl_arena_strdup(a, line);
}

void fl_outbox_note(fl_outbox *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fl_push(&o->note, format(o->arena, fmt, ap));
    va_end(ap);
}

void fl_outbox_send(fl_outbox *o, fl_peer to, fl_msg msg)
{
    msg.state = o->state;
    if (msg.n_member)
        msg.member = fl_arena_dup(o->arena, msg.member,
                                  (size_t)msg.n_member * sizeof *msg.member);
    if (msg.n_left)
        msg.left = fl_arena_dup(o->arena, msg.left,
                                (size_t)msg.n_left * sizeof *msg.left);
    if (msg.n_seen)
        msg.seen = fl_arena_dup(o->arena, msg.seen,
                                (size_t)msg.n_seen * sizeof *msg.seen);
    if (msg.text)
        msg.text = fl_arena_strdup(o->arena, msg.text);
    if (msg.about)
        msg.about = fl_arena_strdup(o->arena, msg.about);
    fl_push(&o->out, (fl_letter){to, msg});
}

void fl_outbox_say(fl_outbox *o, fl_peer to, fl_msg msg, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    msg.text = format(o->arena, fmt, ap);
    va_end(ap);
    fl_outbox_send(o, to, msg);
}

void fl_outbox_wrong_job(fl_outbox *o, fl_peer to, const fl_msg *m,
                         const fl_job *own)
{
    fl_str about = {0};
    fl_msg answer = {.kind = FL_MSG_ERROR,
                     .session = m->session,
                     .tag = m->tag,
                     .code = FL_EPROTO};
    if (m->kind == FL_MSG_JOIN || m->kind == FL_MSG_STATE ||
        m->kind == FL_MSG_VIEW) {
        fl_job_about(own, &about);
        answer.about = about.at;
    }
    fl_outbox_say(o, to, answer,
                  "this is another job: not the same programs, servers (%d "
                  "here), number of trainers (%d here), mode (%ssynchronous "
                  "here) or version",
                  own->servers, own->trainers, own->async ? "a" : "");
    fl_str_fini(&about);
}

static fl_blob keep_copy(void *self, fl_blob b)
{
    return (fl_blob){dup_bytes(b.at, b.size), b.size, NULL};
}

static void drop_copy(void *self, fl_blob b)
{
    fl_mem_free((void *)b.at);
}

const fl_keeper fl_keeper_copies = {NULL, keep_copy, drop_copy};

void fl_wait_row(fl_str *rows, const char *waiter, const char *whom,
                 const char *what, int64_t age, int64_t limit)
{
    fl_str_printf(rows, "%s waits for %s: %s, %.1f s", waiter, whom, what,
                  (double)age / (double)FL_SEC);
    if (limit > 0)
        fl_str_printf(rows, " (limit %.1f s)", (double)limit / (double)FL_SEC);
    fl_str_add(rows, "\n");
}

void fl_outbox_stalled(fl_outbox *o, const fl_str *rows)
{
    int n = 0;
    const char *row = rows->at ? rows->at : "";
    for (const char *end; (end = strchr(row, '\n')); row = end + 1)
        if (n++ < STALLED_MOST)
            fl_outbox_note(o, "stalled: %.*s", (int)(end - row), row);
    if (n > STALLED_MOST)
        fl_outbox_note(o, "stalled: and %d more", n - STALLED_MOST);
}
