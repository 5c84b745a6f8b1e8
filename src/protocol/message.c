/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - the table of messages, copies of messages, the outbox. */
#include "protocol/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    STALLED_MOST = 8 /* waits that a report lists */
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

static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        const size_t m = strcspn(at, " ");
        if (m == n && !strncmp(at, word, n))
            return true;
        at += m;
    }
    return false;
}

bool fl_msg_carries(fl_msg_kind kind, const char *field)
{
    static const char every[] = "kind job_hi job_lo session_hi session_lo tag "
                                "state incarnation generation";
    return has_word(fl_msg_info_of(kind)->carries, field) ||
           has_word(every, field);
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

/* --- fields --- */

/* The value of a pointer field: TEXT, LINES or LIST. */
static const void *get_pointer(const fl_msg *m, const fl_msg_field *f)
{
    const void *at;
    memcpy(&at, (const char *)m + f->at, sizeof at);
    return at;
}

static void set_pointer(fl_msg *m, const fl_msg_field *f, const void *at)
{
    memcpy((char *)m + f->at, &at, sizeof at);
}

static bool is_pointer(const fl_msg_field *f)
{
    return f->type >= FL_FIELD_TEXT;
}

/* How many bytes a pointer field points to. */
static size_t pointed_bytes(const fl_msg *m, const fl_msg_field *f)
{
    const void *at = get_pointer(m, f);
    int n;
    if (f->type != FL_FIELD_LIST)
        return at ? strlen(at) + 1 : 0;
    memcpy(&n, (const char *)m + f->count_at, sizeof n);
    return (size_t)n * f->size;
}

static void *dup_bytes(const void *from, size_t size)
{
    if (!size)
        return NULL;
    void *to = fl_mem_alloc(size);
    memcpy(to, from, size);
    return to;
}

/* Replace the pointers of m, except the blob's, by pointers to copies in the
 * arena, or on the heap if arena is NULL. */
static void dup_fields(fl_msg *m, fl_arena *arena)
{
    for (const fl_msg_field *f = fl_msg_fields; f->name; f++) {
        if (!is_pointer(f))
            continue;
        const void *from = get_pointer(m, f);
        const size_t n = pointed_bytes(m, f);
        set_pointer(m, f,
                    !n      ? NULL
                    : arena ? fl_arena_dup(arena, from, n)
                            : dup_bytes(from, n));
    }
}

void fl_msg_forget(fl_msg *m)
{
    for (const fl_msg_field *f = fl_msg_fields; f->name; f++) {
        if (is_pointer(f))
            set_pointer(m, f, NULL);
        if (f->type == FL_FIELD_LIST)
            memset((char *)m + f->count_at, 0, sizeof(int));
    }
}

fl_msg *fl_msg_dup(const fl_msg *m)
{
    fl_msg *copy = dup_bytes(m, sizeof *m);
    dup_fields(copy, NULL);
    copy->blob.at = dup_bytes(m->blob.at, m->blob.size);
    copy->blob.owner = NULL;
    return copy;
}

void fl_msg_free(fl_msg *m)
{
    if (!m)
        return;
    for (const fl_msg_field *f = fl_msg_fields; f->name; f++)
        if (is_pointer(f))
            fl_mem_free((void *)get_pointer(m, f));
    fl_mem_free((void *)m->blob.at);
    fl_mem_free(m);
}

/* --- the outbox --- */

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

static const char *format_line(fl_arena *a, const char *fmt, va_list ap)
{
    char line[1024];
    vsnprintf(line, sizeof line, fmt, ap);
    return fl_arena_strdup(a, line);
}

void fl_outbox_note(fl_outbox *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fl_push(&o->note, format_line(o->arena, fmt, ap));
    va_end(ap);
}

void fl_outbox_send(fl_outbox *o, fl_peer to, fl_msg msg)
{
    msg.state = o->state;
    msg.generation = o->generation;
    dup_fields(&msg, o->arena);
    fl_push(&o->out, (fl_envelope){to, msg});
}

void fl_outbox_say(fl_outbox *o, fl_peer to, fl_msg msg, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    msg.text = format_line(o->arena, fmt, ap);
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
                  "this is another job: programs, servers (%d "
                  "here), number of trainers (%d here), mode (%ssynchronous "
                  "here) or version differ",
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

#define FIELD(name, number, type, at)                                          \
    {                                                                          \
        name, number, FL_FIELD_##type, at                                      \
    }

static const fl_msg_field member_fields[] = {
    FIELD("rank", 1, INT, offsetof(fl_member, rank)),
    FIELD("session_hi", 2, WORD, offsetof(fl_member, session.hi)),
    FIELD("session_lo", 3, WORD, offsetof(fl_member, session.lo)),
    FIELD("g", 4, WORD, offsetof(fl_member, g)),
    {0},
};

static const fl_msg_field leave_fields[] = {
    FIELD("rank", 1, INT, offsetof(fl_leave, rank)),
    FIELD("session_hi", 2, WORD, offsetof(fl_leave, session.hi)),
    FIELD("session_lo", 3, WORD, offsetof(fl_leave, session.lo)),
    FIELD("view", 4, WORD, offsetof(fl_leave, view)),
    FIELD("why", 5, INT, offsetof(fl_leave, why)),
    FIELD("ago", 6, WORD, offsetof(fl_leave, ago)),
    {0},
};

const fl_msg_field fl_msg_fields[] = {
    FIELD("kind", 1, INT, offsetof(fl_msg, kind)),
    FIELD("job_hi", 2, WORD, offsetof(fl_msg, job.hi)),
    FIELD("job_lo", 3, WORD, offsetof(fl_msg, job.lo)),
    FIELD("session_hi", 4, WORD, offsetof(fl_msg, session.hi)),
    FIELD("session_lo", 5, WORD, offsetof(fl_msg, session.lo)),
    FIELD("tag", 6, WORD, offsetof(fl_msg, tag)),
    FIELD("g", 7, WORD, offsetof(fl_msg, g)),
    FIELD("view", 8, WORD, offsetof(fl_msg, view)),
    FIELD("round", 9, WORD, offsetof(fl_msg, round)),
    FIELD("seq", 10, WORD, offsetof(fl_msg, seq)),
    FIELD("count", 11, WORD, offsetof(fl_msg, count)),
    FIELD("echo", 12, WORD, offsetof(fl_msg, echo)),
    FIELD("secret", 13, WORD, offsetof(fl_msg, secret)),
    FIELD("server", 14, INT, offsetof(fl_msg, server)),
    FIELD("rank", 15, INT, offsetof(fl_msg, rank)),
    FIELD("code", 17, INT, offsetof(fl_msg, code)),
    FIELD("over", 18, BOOL, offsetof(fl_msg, over)),
    {"member", 19, FL_FIELD_LIST, offsetof(fl_msg, member),
     offsetof(fl_msg, n_member), sizeof(fl_member), member_fields},
    {"left", 20, FL_FIELD_LIST, offsetof(fl_msg, left),
     offsetof(fl_msg, n_left), sizeof(fl_leave), leave_fields},
    FIELD("text", 21, TEXT, offsetof(fl_msg, text)),
    FIELD("state", 22, WORD, offsetof(fl_msg, state.id)),
    FIELD("incarnation", 23, WORD, offsetof(fl_msg, state.incarnation)),
    {"seen", 24, FL_FIELD_LIST, offsetof(fl_msg, seen),
     offsetof(fl_msg, n_seen), sizeof(uint64_t), NULL},
    FIELD("expected", 25, WORD, offsetof(fl_msg, expected)),
    FIELD("explicit_id", 26, BOOL, offsetof(fl_msg, explicit_id)),
    FIELD("about", 27, LINES, offsetof(fl_msg, about)),
    FIELD("step", 28, WORD, offsetof(fl_msg, step)),
    FIELD("part", 29, WORD, offsetof(fl_msg, part)),
    FIELD("position", 30, TEXT, offsetof(fl_msg, position)),
    FIELD("snapshot", 31, WORD, offsetof(fl_msg, snapshot)),
    FIELD("generation", 32, WORD, offsetof(fl_msg, generation)),
    FIELD("damaged", 33, WORD, offsetof(fl_msg, damaged)),
    {0},
};
