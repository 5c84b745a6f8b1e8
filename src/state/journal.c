/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - groups of records, one sync each.
 *
 *     file     head, records
 *     head     magic, layout, order of bytes, owner, first number, checksum
 *     record   mark, kind, number, size, checksum of the bytes, checksum of
 *              these; then the bytes
 *
 * The name of a file is journal-FIRST-TRY. A group that did not fit on the disk
 * is written again as a whole, from its first record on, to the next try. So a
 * reader goes from a torn file to the next one if that begins at or before the
 * record that is missing, and leaves out the records that it has seen. All
 * records from FIRST on are in this file or in later ones: that is why older
 * files can be dropped. Therefore no group has records before and after a turn:
 * if such a group were written again, its file would come before that of the
 * turn, and be dropped with the records after it.
 *
 * Easy to get wrong: after a failed sync the system may have dropped the bytes
 * and forgotten it. The next sync would succeed and prove nothing. */
#include "state/journal.h"

#include "base/clock.h"
#include "base/crc.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    LAYOUT = 1,
    NUMBERS = 0x01020304, /* how this machine orders bytes */
    MARK = 0x524a4c46,    /* "FLJR" */
    MOST = 64 << 20,      /* bytes that may wait, if nobody says more */
    NAME = 64,            /* bytes of a file's name */
};

static const char magic[8] = "FLJOURN";

typedef struct file_head {
    char magic[8];
    uint32_t layout, numbers;
    uint64_t owner, first;
    uint32_t unused, crc;
} file_head;

typedef struct record_head {
    uint32_t mark, kind;
    uint64_t number, size;
    uint32_t bytes_crc, crc;
} record_head;

/* Records that are written together. */
typedef struct group {
    fl_str bytes;
    uint64_t first, last; /* 0: there are no records */
    bool turns;           /* a new file begins, */
    uint64_t turn_first;  /* with this record, */
    size_t turn_at; /* after so many bytes; 0 in a group that is written */
} group;

typedef enum journal_state {
    GOOD,
    FULL,  /* the group is kept until there is room */
    FAILED /* for good */
} journal_state;

struct fl_journal {
    fl_journal_opts opts;
    char *folder;
    fl_pool *pool;
    fl_group tasks;

    /* The writer's own. */
    fl_file *file; /* NULL: the next group begins one */
    char *bare;    /* its path, if it was begun for a group that had no room
                      before, and has no whole group yet; else NULL */
    group out;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    group in;       /* what waits */
    size_t writing; /* bytes of the group that is being written */
    uint64_t next, written;
    uint64_t bytes; /* of records since the last turn */
    uint64_t drop;  /* remove files that have only records below it */
    bool running;   /* the writer has a task */
    journal_state state;
    char why[512]; /* it is full, or has failed */
};

/* --- files --- */

static uint32_t head_sum(const file_head *h)
{
    return fl_crc32c(0, h, offsetof(file_head, crc));
}

static uint32_t record_sum(const record_head *r)
{
    return fl_crc32c(0, r, offsetof(record_head, crc));
}

static bool is_full(void)
{
    return errno == ENOSPC || errno == EDQUOT;
}

/* The path of a file that is not there yet. Own: new. */
static fl_err choose_path(const fl_journal *j, uint64_t first, char **out)
{
    for (int try = 0;; try++) {
        char name[NAME];
        int64_t bytes;
        snprintf(name, sizeof name, "journal-%020" PRIu64 "-%04d", first, try);
        *out = fl_path_join(j->folder, name);
        const fl_err err = j->opts.disk->size(j->opts.disk, *out, &bytes);
        if (err == FL_ENOENT)
            return FL_OK;
        fl_mem_free(*out);
        if (err)
            return err;
    }
}

static void set_bare(fl_journal *j, char *path)
{
    fl_mem_free(j->bare);
    j->bare = path;
}

/* Begin a file that is on the disk, and whose name is. *full: there was no
 * room, and nothing of it is left. */
static fl_err begin_file(fl_journal *j, uint64_t first, bool *full)
{
    const fl_disk *d = j->opts.disk;
    file_head h = {.layout = LAYOUT,
                   .numbers = NUMBERS,
                   .owner = j->opts.owner,
                   .first = first};
    char *path;
    memcpy(h.magic, magic, sizeof magic);
    h.crc = head_sum(&h);
    FL_TRY(choose_path(j, first, &path));
    errno = 0;
    fl_err err = d->open(d, path, &j->file);
    if (!err)
        err = d->append(j->file, &h, sizeof h);
    *full = err && is_full();
    if (*full && j->file) {
        (void)!d->close(j->file);
        j->file = NULL;
        if (d->remove(d, path))
            *full = false; /* bytes of it might be taken for records */
    }
    if (!err)
        err = d->sync(j->file);
    if (!err)
        err = d->persist(d, j->folder);
    set_bare(j, path);
    return err;
}

static fl_err close_file(fl_journal *j)
{
    fl_file *f = j->file;
    j->file = NULL;
    return f ? j->opts.disk->close(f) : FL_OK;
}

/* Write bytes to the file, and sync it. */
static fl_err write_part(fl_journal *j, const char *at, size_t n, bool *full)
{
    if (!n)
        return FL_OK;
    errno = 0;
    const fl_err err = j->opts.disk->append(j->file, at, n);
    *full = err && is_full();
    FL_TRY(err);
    fl_failpoint_hit("journal.write");
    FL_TRY(j->opts.disk->sync(j->file));
    fl_failpoint_hit("journal.sync");
    set_bare(j, NULL);
    return FL_OK;
}

static fl_err write_group(fl_journal *j, bool *full)
{
    group *g = &j->out;
    if (g->turns)
        FL_TRY(close_file(j));
    if (!j->file)
        FL_TRY(begin_file(j, g->turns ? g->turn_first : g->first, full));
    if (g->turns)
        set_bare(j, NULL); /* older files are dropped because it is there */
    return write_part(j, g->bytes.at, g->bytes.n, full);
}

/* --- which files there are --- */

/* The first record of the file of that name. */
static bool read_name(const char *name, uint64_t *first)
{
    int try, n = 0;
    return sscanf(name, "journal-%20" SCNu64 "-%4d%n", first, &try, &n) == 2 &&
           !name[n];
}

/* The names of all files of the journal, in order. */
static fl_err list_files(const fl_disk *d, const char *folder,
                         fl_file_names *out)
{
    uint64_t first;
    const fl_err err = d->list(d, folder, out);
    if (err)
        return err == FL_ENOENT ? FL_OK : err;
    for (int64_t i = out->n - 1; i >= 0; i--)
        if (!read_name(out->at[i], &first)) {
            fl_mem_free(out->at[i]);
            fl_remove(out, i);
        }
    return FL_OK;
}

/* The last file that begins at or before the record; -1: none does. */
static int64_t find_file(const fl_file_names *names, uint64_t number)
{
    uint64_t first;
    for (int64_t i = names->n - 1; i >= 0; i--)
        if (read_name(names->at[i], &first) && first <= number)
            return i;
    return -1;
}

static fl_err remove_files(const fl_disk *d, const char *folder,
                           const fl_file_names *names, int64_t n)
{
    for (int64_t i = 0; i < n;
         i++) { /* the oldest first: a kill leaves no gap */
        char *path = fl_path_join(folder, names->at[i]);
        const fl_err err = d->remove(d, path);
        fl_mem_free(path);
        FL_TRY(err);
    }
    return FL_OK;
}

static fl_err drop_files(fl_journal *j, uint64_t below)
{
    fl_file_names names = {0};
    fl_err err = list_files(j->opts.disk, j->folder, &names);
    if (!err)
        err = remove_files(j->opts.disk, j->folder, &names,
                           find_file(&names, below));
    fl_file_names_fini(&names);
    return err;
}

fl_err fl_journal_has_more(const fl_disk *disk, const char *folder,
                           uint64_t first, bool *has)
{
    fl_file_names names = {0};
    fl_err err = list_files(disk, folder, &names);
    *has = false;
    for (int64_t i = 0; !err && i < names.n && !*has; i++) {
        char *path = fl_path_join(folder, names.at[i]);
        uint64_t begin = 0;
        int64_t bytes = 0;
        err = disk->size(disk, path, &bytes);
        read_name(names.at[i], &begin);
        *has = !err &&
               ((!i && begin != first) || bytes > (int64_t)sizeof(file_head));
        fl_mem_free(path);
    }
    fl_file_names_fini(&names);
    return err;
}

fl_err fl_journal_remove(const fl_disk *disk, const char *folder)
{
    fl_file_names names = {0};
    fl_err err = list_files(disk, folder, &names);
    if (!err)
        err = remove_files(disk, folder, &names, names.n);
    fl_file_names_fini(&names);
    return err;
}

/* --- the writer --- */

/* Leave the records after a turn to the next group. The caller holds the lock.
 */
static void split_group(fl_journal *j)
{
    group *out = &j->out, *in = &j->in;
    const size_t after = out->bytes.n - out->turn_at;
    in->turns = true;
    in->turn_first = out->turn_first;
    if (after) {
        in->first = out->turn_first;
        in->last = out->last;
        fl_str_bytes(&in->bytes, out->bytes.at + out->turn_at, after);
    }
    out->turns = false;
    out->last = out->turn_first - 1;
    out->bytes.n = out->turn_at;
}

/* Take what waits, unless a group is left that did not fit. *drop: files to
 * drop; some of them must wait for a turn that is not written. False: there is
 * nothing to do. The caller holds the lock. */
static bool take_group(fl_journal *j, uint64_t *drop)
{
    *drop = j->drop;
    if (j->state == FAILED)
        return false;
    if (j->state == FULL) /* its bytes are still there */
        return true;
    const fl_str room = j->out.bytes;
    j->out = j->in;
    j->in = (group){.bytes = room};
    j->in.bytes.n = 0;
    if (j->out.turns && j->out.turn_at)
        split_group(j);
    if (!j->in.turns)
        j->drop = 0;
    j->writing = j->out.bytes.n;
    return j->out.bytes.n || j->out.turns || *drop;
}

/* Note how the group went. The caller holds the lock. */
static void settle_group(fl_journal *j, fl_err err, bool full, uint64_t drop)
{
    if (full && !j->drop)
        j->drop = drop;
    j->state = !err ? GOOD : full ? FULL : FAILED;
    if (err)
        snprintf(j->why, sizeof j->why, "%s", fl_errmsg());
    if (!err && j->out.last)
        j->written = j->out.last;
    if (!err)
        j->writing = j->out.bytes.n = 0;
    if (full) { /* the whole group goes to the next file */
        j->out.turns = false;
        if (!j->out.bytes.n)
            j->state = GOOD; /* only a new file was asked for: later */
    }
    pthread_cond_broadcast(&j->changed);
}

static void tell_caller(const fl_journal *j, fl_err err, bool full,
                        uint64_t written)
{
    const fl_journal_opts *o = &j->opts;
    if (!err && o->written)
        o->written(o->user, written);
    else if (err && o->failed)
        o->failed(o->user, full ? FL_ENOMEM : FL_EIO, j->why);
}

/* The disk is full, and fl_errmsg says so: go on in another file, and drop what
 * is not needed now, since that may be all that there is to give up. A part of
 * the group is not needed: it would take the room that the group waits for. */
static void make_room(fl_journal *j, uint64_t drop)
{
    const fl_sentence why = fl_sentence_keep();
    const bool bare = j->file && j->bare;
    (void)!close_file(j);
    if (drop)
        (void)!drop_files(j, drop); /* it looks for a file that comes after */
    if (bare)
        (void)!j->opts.disk->remove(j->opts.disk, j->bare);
    fl_sentence_restore(&why);
}

static void run_writer(void *self)
{
    fl_journal *j = self;
    for (fl_err err = FL_OK;;) {
        uint64_t drop;
        bool full = false;
        pthread_mutex_lock(&j->lock);
        const bool works = !err && take_group(j, &drop);
        j->running = works;
        pthread_mutex_unlock(&j->lock);
        if (!works)
            return;
        if (j->out.bytes.n || j->out.turns)
            err = write_group(j, &full);
        if (full)
            make_room(j, drop);
        else if (!err && drop)
            err = drop_files(j, drop);
        pthread_mutex_lock(&j->lock);
        settle_group(j, err, full, drop);
        const uint64_t written = j->written;
        pthread_mutex_unlock(&j->lock);
        tell_caller(j, err, full, written);
    }
}

/* Let the writer look for work. */
static void wake_writer(fl_journal *j)
{
    pthread_mutex_lock(&j->lock);
    const bool asleep = !j->running;
    j->running = true;
    pthread_mutex_unlock(&j->lock);
    if (asleep)
        fl_pool_submit(j->pool, &j->tasks, run_writer, j);
}

/* --- life --- */

static void init_locks(fl_journal *j)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&j->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&j->lock, NULL);
}

fl_err fl_journal_new(const fl_journal_opts *opts, fl_journal **out)
{
    fl_journal *j = fl_mem_alloc(sizeof *j);
    bool full;
    j->opts = *opts;
    j->opts.most = opts->most ? opts->most : MOST;
    j->folder = fl_mem_strdup(opts->folder);
    j->next = opts->next;
    j->written = opts->next - 1;
    init_locks(j);
    fl_err err = opts->disk->mkdirs(opts->disk, j->folder);
    if (!err)
        err = begin_file(j, j->next, &full);
    set_bare(j, NULL);
    if (!err)
        err = fl_pool_new("journal", 1, &j->pool);
    if (err) {
        fl_journal_free(j);
        return err;
    }
    *out = j;
    return FL_OK;
}

void fl_journal_free(fl_journal *j)
{
    if (!j)
        return;
    fl_pool_free(j->pool); /* does what was submitted */
    (void)!close_file(j);
    set_bare(j, NULL);
    fl_str_fini(&j->in.bytes);
    fl_str_fini(&j->out.bytes);
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
    fl_mem_free(j->folder);
    fl_mem_free(j);
}

/* --- adding --- */

/* Why records do not reach the disk. The caller holds the lock. */
static fl_err state_error(const fl_journal *j)
{
    if (j->state == GOOD)
        return FL_OK;
    return fl_fail(j->state == FULL ? FL_ENOMEM : FL_EIO, "%s", j->why);
}

/* Whether there is room for n more bytes. One record always fits. The caller
 * holds the lock. */
static fl_err check_room(const fl_journal *j, size_t n)
{
    const size_t held = j->in.bytes.n + j->writing;
    FL_TRY(state_error(j));
    if (held && n > j->opts.most - (held < j->opts.most ? held : j->opts.most))
        return fl_fail(FL_ENOMEM,
                       "%s: %zu bytes wait for the disk, %zu more are too many "
                       "(at most %zu)",
                       j->folder, held, n, j->opts.most);
    return FL_OK;
}

fl_err fl_journal_check(fl_journal *j, size_t bytes)
{
    pthread_mutex_lock(&j->lock);
    const fl_err err = check_room(j, sizeof(record_head) + bytes);
    pthread_mutex_unlock(&j->lock);
    return err;
}

fl_err fl_journal_add(fl_journal *j, uint32_t kind, const fl_part *part, int n,
                      uint64_t *number)
{
    record_head r = {.mark = MARK, .kind = kind};
    for (int i = 0; i < n; i++) {
        r.size += part[i].n;
        r.bytes_crc = fl_crc32c(r.bytes_crc, part[i].at, part[i].n);
    }
    pthread_mutex_lock(&j->lock);
    const fl_err err = j->state == FAILED ? state_error(j) : FL_OK;
    if (!err) {
        j->bytes += sizeof r + r.size;
        *number = r.number = j->next++;
        r.crc = record_sum(&r);
        if (!j->in.first)
            j->in.first = r.number;
        j->in.last = r.number;
        fl_str_bytes(&j->in.bytes, &r, sizeof r);
        for (int i = 0; i < n; i++)
            fl_str_bytes(&j->in.bytes, part[i].at, part[i].n);
    }
    pthread_mutex_unlock(&j->lock);
    if (!err)
        wake_writer(j);
    return err;
}

/* A number that the lock guards. */
static uint64_t read_number(fl_journal *j, const uint64_t *of)
{
    pthread_mutex_lock(&j->lock);
    const uint64_t number = *of;
    pthread_mutex_unlock(&j->lock);
    return number;
}

uint64_t fl_journal_written(fl_journal *j)
{
    return read_number(j, &j->written);
}

uint64_t fl_journal_bytes(fl_journal *j)
{
    return read_number(j, &j->bytes);
}

fl_err fl_journal_wait(fl_journal *j, uint64_t number, int64_t timeout)
{
    const int64_t until = fl_clock_now(fl_clock_real()) + timeout;
    const struct timespec t = {.tv_sec = until / FL_SEC,
                               .tv_nsec = until % FL_SEC};
    int late = 0;
    pthread_mutex_lock(&j->lock);
    while (j->written < number && j->state == GOOD && !late)
        late = pthread_cond_timedwait(&j->changed, &j->lock, &t);
    fl_err err = j->written >= number ? FL_OK : state_error(j);
    if (!err && j->written < number)
        err = fl_fail(FL_ETIMEOUT, "%s: record %" PRIu64 " is not written yet",
                      j->folder, number);
    pthread_mutex_unlock(&j->lock);
    return err;
}

void fl_journal_retry(fl_journal *j)
{
    pthread_mutex_lock(&j->lock);
    const bool full = j->state == FULL;
    pthread_mutex_unlock(&j->lock);
    if (full)
        wake_writer(j);
}

void fl_journal_turn(fl_journal *j, uint64_t *first)
{
    pthread_mutex_lock(&j->lock);
    *first = j->in.turn_first = j->next;
    j->in.turns = true;
    j->in.turn_at = j->in.bytes.n;
    j->bytes = 0;
    pthread_mutex_unlock(&j->lock);
    wake_writer(j);
}

void fl_journal_drop(fl_journal *j, uint64_t first)
{
    pthread_mutex_lock(&j->lock);
    j->drop = first;
    pthread_mutex_unlock(&j->lock);
    wake_writer(j);
}

/* --- reading --- */

/* One file that is read. */
typedef struct reading {
    const fl_disk *disk;
    fl_file *file;
    const char *path;
    int64_t at, bytes; /* read so far, and in all */
    char *room;        /* of a record */
    size_t cap;
    fl_journal_end *end;
} reading;

/* The file has no more whole records. */
static fl_err note_torn(reading *r, const char *why)
{
    r->end->torn = true;
    r->end->at = r->at;
    snprintf(r->end->why, sizeof r->end->why, "%s: byte %lld: %s", r->path,
             (long long)r->at, why);
    return FL_OK;
}

/* Check the head. *whole: records follow. */
static fl_err read_head(reading *r, uint64_t owner, uint64_t first, bool *whole)
{
    file_head h;
    *whole = false;
    if (r->bytes < (int64_t)sizeof h)
        return note_torn(r, "the file is cut in its head");
    FL_TRY(r->disk->read_at(r->file, 0, &h, sizeof h));
    if (memcmp(h.magic, magic, sizeof magic) || h.crc != head_sum(&h) ||
        h.numbers != NUMBERS || h.first != first)
        return note_torn(r, "the head of the file is damaged");
    if (h.layout != LAYOUT)
        return fl_fail(FL_EINVAL, "%s has layout %u, this version knows %d",
                       r->path, h.layout, LAYOUT);
    if (h.owner != owner)
        return fl_fail(FL_EINVAL,
                       "%s belongs to state %016" PRIx64
                       ", expected %016" PRIx64,
                       r->path, h.owner, owner);
    r->at = sizeof h;
    *whole = true;
    return FL_OK;
}

static fl_err reserve_room(reading *r, size_t n)
{
    if (n <= r->cap)
        return FL_OK;
    fl_mem_free(r->room);
    r->cap = 0;
    r->room = fl_mem_try(n);
    if (!r->room)
        return fl_fail(FL_ENOMEM, "%s: no memory for a record of %zu bytes",
                       r->path, n);
    r->cap = n;
    return FL_OK;
}

/* Read the record with this number. *whole: it is there. */
static fl_err read_record(reading *r, uint64_t number, fl_journal_record *out,
                          bool *whole)
{
    record_head h;
    const int64_t left = r->bytes - r->at;
    *whole = false;
    if (!left)
        return FL_OK;
    if (left < (int64_t)sizeof h)
        return note_torn(r, "a record is cut in its head");
    FL_TRY(r->disk->read_at(r->file, r->at, &h, sizeof h));
    if (h.mark != MARK || h.crc != record_sum(&h))
        return note_torn(r, "the head of a record is damaged");
    if (h.number != number)
        return note_torn(r, "a record has another number than expected");
    if (h.size > (uint64_t)left - sizeof h)
        return note_torn(r, "a record is cut");
    FL_TRY(reserve_room(r, (size_t)h.size));
    if (h.size)
        FL_TRY(r->disk->read_at(r->file, r->at + (int64_t)sizeof h, r->room,
                                (size_t)h.size));
    if (fl_crc32c(0, r->room, (size_t)h.size) != h.bytes_crc)
        return note_torn(r, "the bytes of a record are damaged");
    r->at += (int64_t)(sizeof h + h.size);
    *out = (fl_journal_record){number, h.kind, r->room, (size_t)h.size};
    *whole = true;
    return FL_OK;
}

typedef fl_err (*on_record)(void *user, const fl_journal_record *r);

/* Read the whole records of one file. */
static fl_err read_records(reading *r, uint64_t owner, uint64_t first,
                           on_record fn, void *user)
{
    bool whole;
    FL_TRY(read_head(r, owner, first, &whole));
    for (uint64_t number = first; whole; number++) {
        fl_journal_record record;
        FL_TRY(read_record(r, number, &record, &whole));
        if (!whole || number < r->end->next)
            continue;
        FL_TRY(fn(user, &record));
        r->end->next = number + 1;
    }
    return FL_OK;
}

static fl_err read_file(reading *r, const char *folder, const char *name,
                        uint64_t owner, on_record fn, void *user)
{
    uint64_t first = 0;
    char *path = fl_path_join(folder, name);
    r->path = path;
    r->at = 0;
    read_name(name, &first);
    fl_err err = FL_OK;
    if (first > r->end->next && !r->end->torn)
        err = note_torn(r, "records before the first one are missing");
    if (!err && first <= r->end->next) {
        r->end->torn = false; /* this file goes on where that one ends */
        r->end->at = 0;
        r->end->why[0] = 0;
        err = r->disk->look(r->disk, path, &r->file, &r->bytes);
        if (!err) {
            err = read_records(r, owner, first, fn, user);
            (void)!r->disk->close(r->file);
        }
    }
    fl_mem_free(path);
    return err;
}

fl_err fl_journal_read(const fl_disk *disk, const char *folder, uint64_t owner,
                       uint64_t from, on_record fn, void *user,
                       fl_journal_end *end)
{
    fl_file_names names = {0};
    reading r = {.disk = disk, .end = end};
    *end = (fl_journal_end){.next = from};
    fl_err err = list_files(disk, folder, &names);
    const int64_t first = find_file(&names, from);
    if (!err && names.n && first < 0)
        err = fl_fail(FL_ENOENT,
                      "%s: record %" PRIu64 " is missing: the oldest file is "
                      "%s",
                      folder, from, names.at[0]);
    for (int64_t i = first; !err && names.n && i < names.n; i++)
        err = read_file(&r, folder, names.at[i], owner, fn, user);
    fl_mem_free(r.room);
    fl_file_names_fini(&names);
    return err;
}
