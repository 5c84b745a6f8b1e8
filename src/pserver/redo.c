/* SPDX-License-Identifier: Apache-2.0 */
/* redo.c - base and journal of a server, written and used.
 *
 *     record   payload                                   written when
 *     STAGE    a push_note, the push                     synchronous: it is
 *                                                        staged
 *     APPLY    round, number of participants, a          the store begins to
 *              push_note for each; asynchronous: the     apply
 *              push, whose push_note is the only one
 *     CLOSED   version                                   staged pushes of older
 *                                                        rounds are dropped
 *     FORGET   session                                   a session is gone
 *     IMAGES   size of the first image; both images      an image is saved
 *
 * Numbers are those of this machine: the files never leave it.
 *
 * Easy to get wrong: the base may be copied only while no owner applies
 * anything, because records say what was begun, not how far it came. */
#include "pserver/redo.h"

#include "base/failpoint.h"
#include "base/flag.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/stage.h"
#include "state/journal.h"
#include "wire/parcel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    STAGE = 1,
    APPLY,
    CLOSED,
    FORGET,
    IMAGES,
};

enum {
    CHUNK = 1 << 20, /* bytes that are copied at a time */
    ERA = 40,        /* bits of a record's number; those above are the number of
                        the process */
};

#define AFTER       "after"             /* the file of the base; see redo.h */
#define LEAST_BYTES (INT64_C(4) << 30)  /* of a journal before a new base */
#define WAITING     ((size_t)256 << 20) /* bytes that wait for the disk */

/* What an APPLY record begins with. */
enum {
    ROUND,
    PARTICIPANTS,
    ASYNC,
    HEAD_WORDS
};

/* What is recorded of a push besides its bytes. */
typedef struct push_note {
    fl_id session;
    int64_t rank, seq, round, count, step, first, last;
} push_note;

static push_note note_push(const fl_push_id *id)
{
    return (push_note){.session = id->session,
                       .rank = id->rank,
                       .seq = id->seq,
                       .round = id->round,
                       .count = id->count};
}

/* A push that is staged while records are replayed. */
typedef struct replayed {
    push_note note;
    fl_blob blob;
} replayed;

/* A message that waits until the records that it rests on are on disk. */
typedef struct held_message {
    uint64_t number; /* of the last of these records */
    fl_peer to;
    fl_msg *msg; /* own */
} held_message;

struct fl_redo {
    fl_redo_opts opts;
    char *dir;           /* of this server; NULL: not known yet */
    bool filled;         /* the state comes from the base */
    bool begun;          /* what is in `dir` is this process's own */
    fl_journal *journal; /* NULL: nothing is recorded yet */
    uint64_t last;       /* number of the last record. Thread: the machine's */
    FL_VEC(held_message) held; /* in order. Thread: the machine's */
    bool full;                 /* the disk is, and the log says so. Thread: the
                                  journal's */
    fl_store inner;
    const char *state; /* path of the state directory; borrowed */
    fl_stage stage;    /* between copy and commit */
    bool staging;
    int applying;    /* rounds or pushes that the store applies */
    uint64_t copied; /* number of the last record that the copy contains */
    int64_t base_bytes;
    double limit; /* bytes of records after which a new base is due; 0: by the
                     size of the base */

    pthread_mutex_t lock;
    pthread_cond_t told;
    bool applied;   /* the store has finished what replay gave it */
    char why[512];  /* what went wrong with that; "": nothing */
    char lost[512]; /* why the journal has failed; "": it has not */
    bool rebasing;  /* pushes wait until there is a new base */
};

/* --- where --- */

static char *journal_base(void)
{
    const char *own = fl_flag_text("FLUID_JOURNAL_DIR");
    fl_str s = {0};
    if (own)
        return fl_mem_strdup(own);
    fl_str_printf(&s, "/var/tmp/fluid.%lld", (long long)getuid());
    return fl_str_take(&s);
}

/* Make the directory of the state `name`, or check that nobody else may write
 * to it: what is in it becomes the state of a server. */
static fl_err open_dir(fl_redo *r, const char *name)
{
    const fl_disk *d = fl_disk_real();
    char *base = journal_base();
    fl_mem_free(r->dir);
    r->dir = fl_path_join(base, name);
    fl_err err = fl_disk_make_parents(d, base);
    if (!err)
        err = fl_statedir_make_private(base);
    if (!err)
        err = fl_statedir_make_private(r->dir);
    fl_mem_free(base);
    return err ? fl_fail_at(err, "FLUID_JOURNAL_DIR chooses it") : FL_OK;
}

fl_err fl_redo_find_base(const char *name, char **out)
{
    char *all = journal_base(), *dir = fl_path_join(all, name);
    char *base = fl_path_join(dir, "base");
    fl_statedir_info info;
    const fl_err err = fl_statedir_look(base, &info);
    fl_mem_free(all);
    fl_mem_free(dir);
    if (err)
        fl_mem_free(base);
    else
        *out = base;
    return err;
}

void fl_redo_each(void (*fn)(void *user, const char *path, const char *base),
                  void *user)
{
    const fl_disk *d = fl_disk_real();
    fl_file_names names = {0};
    char *all = journal_base();
    const fl_err err = d->list(d, all, &names);
    for (int64_t i = 0; i < names.n && !err; i++) {
        char *path = fl_path_join(all, names.at[i]);
        char *base = fl_path_join(path, "base");
        if (strstr(names.at[i], "server-"))
            fn(user, path, base);
        fl_mem_free(base);
        fl_mem_free(path);
    }
    fl_file_names_fini(&names);
    fl_mem_free(all);
}

fl_redo *fl_redo_new(const fl_redo_opts *opts)
{
    fl_redo *r = fl_mem_alloc(sizeof *r);
    r->opts = *opts;
    r->opts.disk = opts->disk ? opts->disk : fl_disk_real();
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->told, NULL);
    return r;
}

void fl_redo_free(fl_redo *r)
{
    if (!r)
        return;
    fl_journal_free(r->journal);
    if (r->staging)
        fl_stage_fini(&r->stage);
    for (int64_t i = 0; i < r->held.n; i++)
        fl_msg_free(r->held.at[i].msg);
    fl_vec_fini(&r->held);
    pthread_cond_destroy(&r->told);
    pthread_mutex_destroy(&r->lock);
    fl_mem_free(r->dir);
    fl_mem_free(r);
}

/* --- the base: copying the state --- */

/* A file is copied through so many bytes: most files of a state are small. */
static size_t room_for(int64_t size)
{
    return size < CHUNK ? (size_t)size : CHUNK;
}

static fl_err copy_file(fl_stage *s, const char *dir, const char *name)
{
    const fl_disk *d = fl_disk_real();
    char *path = fl_path_join(dir, name), *buf = NULL;
    fl_file *from = NULL;
    int64_t size = 0;
    fl_err err = d->look(d, path, &from, &size);
    if (!err)
        buf = fl_mem_alloc(room_for(size));
    if (!err)
        err = fl_stage_open(s, name);
    for (int64_t at = 0; !err && at < size; at += CHUNK) {
        const size_t n = room_for(size - at);
        err = d->read_at(from, at, buf, n);
        if (!err)
            err = fl_stage_append(s, buf, n);
    }
    if (!err)
        err = fl_stage_close(s);
    if (from)
        (void)!d->close(from);
    fl_mem_free(buf);
    fl_mem_free(path);
    return err;
}

static fl_err stage_base(fl_redo *r, fl_stage *s)
{
    const fl_disk *d = fl_disk_real();
    fl_file_names names = {0};
    char after[32];
    fl_err err = d->list(d, r->state, &names);
    for (int64_t i = 0; i < names.n && !err; i++)
        if (strcmp(names.at[i], "lock"))
            err = copy_file(s, r->state, names.at[i]);
    fl_file_names_fini(&names);
    FL_TRY(err);
    if (!fl_manifest_find(&s->list, "head"))
        return fl_fail(FL_EIO, "the files of %s were removed", r->state);
    snprintf(after, sizeof after, "%llu", (unsigned long long)r->copied);
    return fl_stage_write(s, AFTER, &(fl_part){after, strlen(after)}, 1);
}

static int64_t staged_bytes(const fl_stage *s)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < s->list.file.n; i++)
        bytes += s->list.file.at[i].size;
    return bytes;
}

/* Nobody may change the state meanwhile. */
static fl_err copy_state(fl_redo *r)
{
    char *base = fl_path_join(r->dir, "base");
    uint64_t next;
    fl_journal_turn(r->journal, &next);
    r->copied = next - 1;
    r->staging = true;
    fl_err err = fl_stage_init(&r->stage, r->opts.disk, base, "state");
    r->stage.replaces = true; /* the state drops files, as a table grows */
    if (!err)
        err = stage_base(r, &r->stage);
    if (!err)
        r->base_bytes = staged_bytes(&r->stage);
    if (err) {
        fl_stage_fini(&r->stage);
        r->staging = false;
    }
    fl_mem_free(base);
    return err;
}

fl_err fl_redo_commit(fl_redo *r)
{
    fl_failpoint_hit("journal.base");
    fl_err err = fl_stage_commit(&r->stage);
    fl_stage_fini(&r->stage);
    r->staging = false;
    if (!err)
        fl_journal_drop(r->journal, r->copied + 1);
    return err;
}

static void on_written(void *self, uint64_t number)
{
    fl_redo *r = self;
    r->full = false;
    r->opts.durable(r->opts.self, number);
}

static void on_failed(void *self, fl_err err, const char *why)
{
    fl_redo *r = self;
    if (err == FL_ENOMEM && !r->full)
        FL_WARN("the journal has no room: %s; pushes wait until there is, and "
                "pulls are answered",
                why);
    r->full = err == FL_ENOMEM;
    if (r->full)
        return;
    pthread_mutex_lock(&r->lock);
    snprintf(r->lost, sizeof r->lost, "%s", why);
    pthread_mutex_unlock(&r->lock);
}

fl_err fl_redo_begin(fl_redo *r, fl_recovery *recovery)
{
    const fl_statedir *state = fl_recovery_dir(recovery);
    r->state = fl_statedir_path(state);
    r->last = (uint64_t)fl_statedir_incarnation(state) << ERA;
    FL_TRY(open_dir(r, fl_path_base(r->state)));
    FL_TRY(fl_flag_number("FLUID_JOURNAL_BYTES", &r->limit));
    r->begun = true;
    FL_TRY(fl_journal_new(&(fl_journal_opts){.disk = r->opts.disk,
                                             .folder = r->dir,
                                             .owner = fl_statedir_id(state),
                                             .next = r->last + 1,
                                             .most = WAITING,
                                             .written = on_written,
                                             .failed = on_failed,
                                             .user = r},
                          &r->journal));
    FL_TRY(copy_state(r));
    FL_TRY(fl_redo_commit(r));
    FL_INFO("durability: host; the journal is in %s", r->dir);
    return FL_OK;
}

/* Whether the journal has grown so much that a new base is due. */
static bool is_due(const fl_redo *r)
{
    const int64_t most =
        2 * r->base_bytes > LEAST_BYTES ? 2 * r->base_bytes : LEAST_BYTES;
    const double limit = r->limit > 0 ? r->limit : (double)most;
    return r->journal && (double)fl_journal_bytes(r->journal) > limit;
}

static void set_rebasing(fl_redo *r, bool is)
{
    pthread_mutex_lock(&r->lock);
    r->rebasing = is;
    pthread_mutex_unlock(&r->lock);
}

bool fl_redo_rebasing(fl_redo *r)
{
    pthread_mutex_lock(&r->lock);
    const bool is = r->rebasing;
    pthread_mutex_unlock(&r->lock);
    return is;
}

fl_err fl_redo_renew(fl_redo *r, void (*settle)(void *store), void *store,
                     bool *copied)
{
    const bool due = is_due(r), ready = due && !r->applying;
    fl_err err = FL_OK;
    set_rebasing(r, due);
    if (ready) {
        settle(store);
        err = copy_state(r);
        set_rebasing(r, false);
    }
    *copied = ready && !err;
    return err;
}

void fl_redo_remove(fl_redo *r)
{
    fl_journal_free(r->journal);
    r->journal = NULL;
    if (r->begun && fl_disk_remove_tree(r->opts.disk, r->dir))
        FL_WARN("%s", fl_errmsg());
}

/* --- the base: filling a state --- */

typedef struct filling {
    const char *path; /* of the state directory */
    bool heads;       /* the file `head`, which comes last, or all others */
} filling;

/* A folder's disk has the base; a state directory is on the real one. */
static fl_err copy_bytes(const fl_disk *d, fl_file *from, int64_t size,
                         fl_file *to)
{
    char *buf = fl_mem_alloc(room_for(size));
    fl_err err = FL_OK;
    for (int64_t at = 0; !err && at < size; at += CHUNK) {
        const size_t n = room_for(size - at);
        err = d->read_at(from, at, buf, n);
        if (!err)
            err = fl_disk_real()->append(to, buf, n);
    }
    fl_mem_free(buf);
    return err;
}

/* Write a file of the base, which was compared with the manifest, to `path`. */
static fl_err fill_from(const fl_folder *f, const char *name, fl_file *from,
                        int64_t size, const char *path)
{
    const fl_disk *d = fl_disk_real();
    fl_file *to;
    FL_TRY(fl_folder_check(f, name, from, size));
    (void)!d->remove(d, path); /* left by a process that was killed here */
    FL_TRY(d->open(d, path, &to));
    const fl_err err = copy_bytes(f->disk, from, size, to);
    const fl_err closed = d->close(to);
    return err ? err : closed;
}

static fl_err fill_file(const fl_folder *f, const char *name, const char *to)
{
    const fl_disk *d = f->disk;
    fl_file *from;
    int64_t size;
    char *source;
    FL_TRY(fl_folder_find(f, name, &source));
    fl_err err = d->look(d, source, &from, &size);
    fl_mem_free(source);
    FL_TRY(err);
    char *path = fl_path_join(to, name);
    err = fill_from(f, name, from, size, path);
    fl_mem_free(path);
    (void)!d->close(from);
    return err;
}

static fl_err fill_files(const fl_folder *f, void *user)
{
    const filling *to = user;
    for (int64_t i = 0; i < f->manifest.file.n; i++) {
        const char *name = f->manifest.file.at[i].name;
        if (!strcmp(name, AFTER) || to->heads != !strcmp(name, "head"))
            continue;
        FL_TRY(fill_file(f, name, to->path));
    }
    return FL_OK;
}

static fl_err read_after(const fl_disk *disk, const char *base, uint64_t *out)
{
    fl_str text = {0};
    char *path = fl_path_join(base, AFTER);
    const fl_err err = fl_file_read(disk, path, 64, &text);
    if (!err)
        *out = strtoull(text.at, NULL, 10);
    fl_str_fini(&text);
    fl_mem_free(path);
    return err;
}

/* Say what to do about a base or a journal that lacks files or is damaged. To
 * callers ENOENT means that there is nothing, and never this. */
static fl_err cannot_use(const fl_redo *r, fl_err err)
{
    return fl_fail_at(err == FL_ENOENT ? FL_EPROTO : err,
                      "in %s; remove it to begin the job anew", r->dir);
}

/* Whether there is a base, which may lack files. */
static bool has_base(const fl_disk *disk, const char *base)
{
    fl_folder f;
    const bool has = fl_folder_init(&f, disk, base) || f.manifest.kind;
    fl_folder_fini(&f);
    return has;
}

/* There is no file AFTER. Err: ENOENT: nor was there ever a base: a process was
 * killed before it had made the first one; EPROTO: files are missing. */
static fl_err check_none(const fl_redo *r, const char *base)
{
    const uint64_t first = (UINT64_C(1) << ERA) + 1;
    bool has = has_base(r->opts.disk, base);
    if (has) /* fl_errmsg names the file */
        return cannot_use(r, FL_EPROTO);
    FL_TRY(fl_journal_has_more(r->opts.disk, r->dir, first, &has));
    if (has)
        return fl_fail(FL_EPROTO,
                       "%s has a journal, but there is no base in %s; remove "
                       "%s to begin the job anew",
                       r->dir, base, r->dir);
    return FL_ENOENT;
}

fl_err fl_redo_fill(void *redo, const char *name, const char *path,
                    bool *filled)
{
    fl_redo *r = redo;
    filling to = {path, false};
    FL_TRY(open_dir(r, name));
    char *base = fl_path_join(r->dir, "base");
    fl_err err = read_after(r->opts.disk, base, &r->copied);
    *filled = r->filled = !err;
    if (err == FL_ENOENT)
        err = check_none(r, base);
    if (err == FL_ENOENT) {
        rmdir(r->dir); /* fl_redo_begin makes it, if the state can be made */
        fl_mem_free(base);
        return FL_OK;
    }
    if (!err)
        err = fl_folder_visit(r->opts.disk, base, fill_files, &to);
    to.heads = true;
    if (!err)
        err = fl_folder_visit(r->opts.disk, base, fill_files, &to);
    fl_mem_free(base);
    return err && r->filled ? cannot_use(r, err) : err;
}

bool fl_redo_filled(const fl_redo *r)
{
    return r->filled;
}

/* --- replay --- */

typedef struct replay {
    fl_redo *redo;
    fl_recovery *recovery;
    const fl_store *store;
    FL_VEC(replayed) push; /* what is staged */
    fl_str images;         /* the last record of them */
    int64_t applied;
} replay;

static fl_err short_record(const fl_journal_record *r)
{
    return fl_fail(FL_EPROTO,
                   "record %llu of kind %u is cut off after %zu bytes",
                   (unsigned long long)r->number, r->kind, r->n);
}

static void drop_push(replay *p, int64_t i)
{
    fl_keeper_parcels.drop(NULL, p->push.at[i].blob);
    fl_remove(&p->push, i);
}

/* Decode a push that follows the first `from` bytes of a record. Synchronous:
 * it is copied into the stage. Own: *blob. */
static fl_err decode_push(replay *p, const fl_journal_record *r, size_t from,
                          fl_blob *blob)
{
    fl_packet *packet = fl_packet_new();
    fl_arena *arena = fl_arena_new();
    fl_msg m = {0};
    fl_packet_copy(packet, (const char *)r->bytes + from, r->n - from);
    fl_err err = fl_msg_decode(NULL, packet, arena, &m);
    if (!err)
        err = fl_recovery_stage(p->recovery, packet, arena, &m);
    *blob = m.blob;
    fl_arena_free(arena);
    fl_packet_unref(packet);
    return err;
}

static fl_err replay_stage(replay *p, const fl_journal_record *r)
{
    push_note note;
    fl_blob came;
    if (r->n < sizeof note)
        return short_record(r);
    memcpy(&note, r->bytes, sizeof note);
    FL_TRY(decode_push(p, r, sizeof note, &came));
    const fl_push_id id = {.session = note.session,
                           .rank = (int)note.rank,
                           .seq = note.seq,
                           .round = note.round,
                           .count = note.count};
    const fl_blob kept = fl_recovery_keep(p->recovery, &id, came);
    fl_keeper_parcels.drop(NULL, came);
    fl_push(&p->push, (replayed){note, kept});
    return FL_OK;
}

/* The staged pushes of a participant, by seq. Own: by->part. */
static void gather_round(const replay *p, const push_note *note, fl_staged *by)
{
    fl_blob *part = fl_mem_alloc((size_t)(p->push.n + 1) * sizeof *part);
    int64_t seq = -1;
    *by = (fl_staged){
        .rank = (int)note->rank, .session = note->session, .part = part};
    for (;;) {
        const replayed *next = NULL;
        for (int64_t i = 0; i < p->push.n; i++) {
            const replayed *x = &p->push.at[i];
            if (fl_id_same(x->note.session, note->session) &&
                x->note.round == note->round && x->note.seq > seq &&
                (!next || x->note.seq < next->note.seq))
                next = x;
        }
        if (!next)
            break;
        part[by->n++] = next->blob;
        seq = next->note.seq;
    }
}

static void wait_applied(fl_redo *r, char why[512])
{
    pthread_mutex_lock(&r->lock);
    while (!r->applied)
        pthread_cond_wait(&r->told, &r->lock);
    r->applied = false;
    snprintf(why, sizeof r->why, "%s", r->why);
    pthread_mutex_unlock(&r->lock);
}

void fl_redo_applied(fl_redo *r, const char *why)
{
    pthread_mutex_lock(&r->lock);
    r->applied = true;
    snprintf(r->why, sizeof r->why, "%s", why ? why : "");
    pthread_cond_signal(&r->told);
    pthread_mutex_unlock(&r->lock);
}

static fl_err apply_again(replay *p, int64_t round, const fl_staged *by, int n)
{
    char why[512];
    p->store->apply(p->store->self, round, by, n);
    wait_applied(p->redo, why);
    p->applied++;
    return why[0] ? fl_fail(FL_EIO, "round %lld cannot be applied again: %s",
                            (long long)round, why)
                  : FL_OK;
}

static fl_err apply_push(replay *p, const push_note *note, fl_blob blob)
{
    const fl_staged by = {.rank = (int)note->rank,
                          .session = note->session,
                          .n = 1,
                          .part = &blob,
                          .last = note->last,
                          .seq = note->seq,
                          .step = note->step,
                          .first = note->first};
    return apply_again(p, note->round, &by, 1);
}

static fl_err apply_round(replay *p, int64_t round, const push_note *note,
                          int64_t n)
{
    fl_staged *by = fl_mem_alloc((size_t)(n + 1) * sizeof *by);
    for (int64_t i = 0; i < n; i++)
        gather_round(p, &note[i], &by[i]);
    const fl_err err = apply_again(p, round, by, (int)n);
    for (int64_t i = 0; i < n; i++)
        fl_mem_free((void *)by[i].part);
    fl_mem_free(by);
    return err;
}

static fl_err replay_apply(replay *p, const fl_journal_record *r)
{
    int64_t head[HEAD_WORDS];
    if (r->n < sizeof head)
        return short_record(r);
    memcpy(head, r->bytes, sizeof head);
    const int64_t n = head[PARTICIPANTS];
    const size_t most = (r->n - sizeof head) / sizeof(push_note);
    if (n < 0 || (size_t)n > most || (head[ASYNC] && n != 1))
        return short_record(r);
    const size_t end = sizeof head + (size_t)n * sizeof(push_note);
    push_note *note = fl_mem_alloc(end);
    memcpy(note, (const char *)r->bytes + sizeof head, end - sizeof head);
    fl_blob push = {0};
    fl_err err = head[ASYNC] ? decode_push(p, r, end, &push) : FL_OK;
    if (!err && head[ASYNC])
        err = apply_push(p, note, push);
    else if (!err)
        err = apply_round(p, head[ROUND], note, n);
    fl_keeper_parcels.drop(NULL, push);
    fl_mem_free(note);
    return err;
}

static fl_err replay_closed(replay *p, const fl_journal_record *r)
{
    int64_t version;
    if (r->n < sizeof version)
        return short_record(r);
    memcpy(&version, r->bytes, sizeof version);
    for (int64_t i = p->push.n - 1; i >= 0; i--)
        if (p->push.at[i].note.round < version)
            drop_push(p, i);
    fl_recovery_closed(p->recovery, version);
    return FL_OK;
}

static fl_err replay_forget(replay *p, const fl_journal_record *r)
{
    fl_id session;
    if (r->n < sizeof session)
        return short_record(r);
    memcpy(&session, r->bytes, sizeof session);
    for (int64_t i = p->push.n - 1; i >= 0; i--)
        if (fl_id_same(p->push.at[i].note.session, session))
            drop_push(p, i);
    p->store->forget(p->store->self, session);
    return FL_OK;
}

static fl_err replay_record(void *self, const fl_journal_record *r)
{
    replay *p = self;
    switch (r->kind) {
    case STAGE:
        return replay_stage(p, r);
    case APPLY:
        return replay_apply(p, r);
    case CLOSED:
        return replay_closed(p, r);
    case FORGET:
        return replay_forget(p, r);
    case IMAGES:
        p->images.n = 0;
        fl_str_bytes(&p->images, r->bytes, r->n);
        return FL_OK;
    default:
        return fl_fail(FL_EPROTO,
                       "record %llu is of kind %u, which this version of Fluid "
                       "does not know",
                       (unsigned long long)r->number, r->kind);
    }
}

/* A push that the base had staged. */
static void add_staged(void *self, const fl_push_id *id, fl_blob kept)
{
    replay *p = self;
    fl_push(&p->push, (replayed){note_push(id), kept});
}

static fl_err save_images(replay *p)
{
    uint64_t first;
    if (p->images.n < sizeof first)
        return FL_OK;
    memcpy(&first, p->images.at, sizeof first);
    const char *at = p->images.at + sizeof first;
    const size_t n = p->images.n - sizeof first;
    if (first > n)
        return fl_fail(FL_EPROTO, "an image of %llu bytes is cut off",
                       (unsigned long long)first);
    return fl_recovery_save(p->recovery, at, first, at + first, n - first);
}

fl_err fl_redo_replay(fl_redo *r, fl_recovery *recovery, const fl_store *store)
{
    const uint64_t owner = fl_statedir_id(fl_recovery_dir(recovery));
    replay p = {.redo = r, .recovery = recovery, .store = store};
    fl_journal_end end = {0};
    fl_err err = fl_recovery_each_staged(recovery, add_staged, &p);
    if (!err)
        err = fl_journal_read(r->opts.disk, r->dir, owner, r->copied + 1,
                              replay_record, &p, &end);
    if (!err)
        err = save_images(&p);
    while (p.push.n)
        drop_push(&p, p.push.n - 1);
    if (!err)
        FL_INFO("the state was made again from %s: %lld records, %lld %s",
                r->dir, (long long)(end.next - r->copied - 1),
                (long long)p.applied, store->stage ? "rounds" : "pushes");
    if (!err && end.torn)
        FL_WARN("the last records were not acknowledged to anybody, and are "
                "left out: %s",
                end.why);
    fl_vec_fini(&p.push);
    fl_str_fini(&p.images);
    r->filled = false;
    return err ? cannot_use(r, err) : FL_OK;
}

/* --- recording --- */

static void record_parts(fl_redo *r, uint32_t kind, const fl_part *part, int n)
{
    uint64_t number;
    if (!r->journal)
        return;
    if (!fl_journal_add(r->journal, kind, part, n, &number))
        r->last = number;
    else
        r->last++; /* never durable: fl_redo_tick says why */
}

static void record_bytes(fl_redo *r, uint32_t kind, const void *at, size_t n)
{
    record_parts(r, kind, &(fl_part){at, n}, 1);
}

/* Record some parts, and a push behind them. */
static void record_push(fl_redo *r, uint32_t kind, const fl_part *head, int n,
                        const fl_msg *push)
{
    const fl_span *span;
    fl_packet *packet = fl_msg_encode(push);
    const int spans = fl_packet_spans(packet, &span);
    fl_part *part = fl_mem_alloc((size_t)(n + spans) * sizeof *part);
    memcpy(part, head, (size_t)n * sizeof *part);
    for (int i = 0; i < spans; i++)
        part[n + i] = (fl_part){span[i].at, span[i].size};
    record_parts(r, kind, part, n + spans);
    fl_mem_free(part);
    fl_packet_unref(packet);
}

fl_err fl_redo_room(fl_redo *r, size_t bytes)
{
    if (fl_redo_rebasing(r))
        return fl_fail(FL_ENOMEM, "a new copy of the state is being written, "
                                  "and then the journal begins anew");
    return r->journal ? fl_journal_check(r->journal, bytes) : FL_OK;
}

void fl_redo_images(fl_redo *r, const void *server, size_t n_server,
                    const void *coord, size_t n_coord)
{
    const uint64_t first = n_server;
    record_parts(r, IMAGES,
                 (fl_part[]){{&first, sizeof first},
                             {server, n_server},
                             {coord, n_coord}},
                 3);
}

static fl_blob stage_recorded(void *self, const fl_push_id *id, fl_blob b)
{
    fl_redo *r = self;
    const push_note note = note_push(id);
    record_push(r, STAGE, &(fl_part){&note, sizeof note}, 1,
                &(fl_msg){.kind = FL_MSG_PUSH,
                          .session = id->session,
                          .seq = id->seq,
                          .round = id->round,
                          .count = id->count,
                          .blob = b});
    return r->inner.stage(r->inner.self, id, b);
}

static void record_apply(fl_redo *r, int64_t round, const fl_staged *by, int n)
{
    const bool async = !r->inner.stage;
    const int64_t head[HEAD_WORDS] = {
        [ROUND] = round, [PARTICIPANTS] = n, [ASYNC] = async};
    const size_t bytes = (size_t)n * sizeof(push_note);
    push_note *note = fl_mem_alloc(bytes + sizeof *note);
    for (int i = 0; i < n; i++)
        note[i] = (push_note){.session = by[i].session,
                              .rank = by[i].rank,
                              .seq = by[i].seq,
                              .round = round,
                              .step = by[i].step,
                              .first = by[i].first,
                              .last = by[i].last};
    const fl_part part[] = {{head, sizeof head}, {note, bytes}};
    if (async)
        record_push(r, APPLY, part, 2,
                    &(fl_msg){.kind = FL_MSG_PUSH,
                              .session = by->session,
                              .seq = by->seq,
                              .blob = by->part[0]});
    else
        record_parts(r, APPLY, part, 2);
    fl_mem_free(note);
}

static void apply_recorded(void *self, int64_t round, const fl_staged *by,
                           int n)
{
    fl_redo *r = self;
    r->applying++;
    if (r->journal)
        record_apply(r, round, by, n);
    r->inner.apply(r->inner.self, round, by, n);
}

static void close_recorded(void *self, int64_t version)
{
    fl_redo *r = self;
    record_bytes(r, CLOSED, &version, sizeof version);
    r->inner.closed(r->inner.self, version);
}

static void forget_recorded(void *self, fl_id session)
{
    fl_redo *r = self;
    record_bytes(r, FORGET, &session, sizeof session);
    r->inner.forget(r->inner.self, session);
}

static fl_err check_inner(void *self, const fl_staged *by)
{
    fl_redo *r = self;
    return r->inner.check(r->inner.self, by);
}

static void read_inner(void *self, fl_blob names, fl_peer to,
                       const fl_msg *reply)
{
    fl_redo *r = self;
    r->inner.read(r->inner.self, names, to, reply);
}

static void cut_inner(void *self, const fl_moment *cut)
{
    fl_redo *r = self;
    r->inner.cut(r->inner.self, cut);
}

fl_store fl_redo_wrap(fl_redo *r, const fl_store *inner)
{
    r->inner = *inner;
    return (fl_store){.self = r,
                      .keep = inner->keep,
                      .check = check_inner,
                      .apply = apply_recorded,
                      .read = read_inner,
                      .stage = inner->stage ? stage_recorded : NULL,
                      .closed = inner->closed ? close_recorded : NULL,
                      .forget = forget_recorded,
                      .cut = inner->cut ? cut_inner : NULL};
}

void fl_redo_finished(fl_redo *r)
{
    r->applying--;
}

/* --- messages that wait for records --- */

bool fl_redo_hold(fl_redo *r, const fl_envelope *e)
{
    const uint64_t number = r->journal ? r->last : 0;
    const uint64_t durable = r->journal ? fl_journal_written(r->journal) : 0;
    const bool failed = e->msg.kind == FL_MSG_END && e->msg.code;
    if (failed || (!r->held.n && durable >= number))
        return false;
    fl_push(&r->held, (held_message){number, e->to, fl_msg_dup(&e->msg)});
    return true;
}

bool fl_redo_holds(const fl_redo *r)
{
    return r->held.n > 0;
}

void fl_redo_release(fl_redo *r, uint64_t number,
                     void (*send)(void *self, const fl_envelope *e), void *self)
{
    int64_t n = 0;
    while (n < r->held.n && r->held.at[n].number <= number) {
        const held_message *h = &r->held.at[n++];
        send(self, &(fl_envelope){h->to, *h->msg});
        fl_msg_free(h->msg);
    }
    if (n)
        memmove(r->held.at, r->held.at + n,
                (size_t)(r->held.n - n) * sizeof *r->held.at);
    r->held.n -= n;
}

fl_err fl_redo_tick(fl_redo *r)
{
    char lost[sizeof r->lost];
    pthread_mutex_lock(&r->lock);
    snprintf(lost, sizeof lost, "%s", r->lost);
    pthread_mutex_unlock(&r->lock);
    if (lost[0])
        return fl_fail(FL_EIO, "cannot write its journal any more: %s", lost);
    if (r->journal)
        fl_journal_retry(r->journal);
    return FL_OK;
}

void fl_redo_about(fl_redo *r, fl_str *lines)
{
    fl_str_printf(
        lines, "; journal in %s, %llu MB since its base", r->dir,
        (unsigned long long)(r->journal ? fl_journal_bytes(r->journal) : 0) >>
            20);
    if (fl_redo_room(r, 0))
        fl_str_printf(lines, "; %s", fl_errmsg());
}
