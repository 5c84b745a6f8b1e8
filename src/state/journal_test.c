/* SPDX-License-Identifier: Apache-2.0 */
#include "state/journal.h"

#include "base/failpoint.h"
#include "base/mem.h"
#include "base/memdisk.h"
#include "base/path.h"
#include "base/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OWNER = 77,
    LONG = 10, /* s, in ns below: nobody waits that long */
};

#define LIMIT (LONG * INT64_C(1000000000))

/* Records have a content that follows from their number: its digits, so many
 * times. */
static size_t content_of(uint64_t number, char text[256])
{
    size_t n = 0;
    for (uint64_t i = 0; i < number % 7; i++)
        n += (size_t)snprintf(text + n, 256 - n, "%llu,",
                              (unsigned long long)number);
    return n;
}

static fl_err add_next(fl_journal *j, uint64_t expected)
{
    char text[256];
    uint64_t number = 0;
    const size_t n = content_of(expected, text);
    const fl_part part[2] = {{text, n / 2}, {text + n / 2, n - n / 2}};
    FL_TRY(fl_journal_add(j, (uint32_t)(expected % 3), part, 2, &number));
    CHECK_INT((int64_t)number, (int64_t)expected);
    return FL_OK;
}

/* Check a record, and that it is the next. */
static fl_err check_record(void *user, const fl_journal_record *r)
{
    uint64_t *next = user;
    char text[256];
    CHECK_INT((int64_t)r->number, (int64_t)*next);
    CHECK_INT(r->kind, (int)(*next % 3));
    CHECK_INT((int64_t)r->n, (int64_t)content_of(*next, text));
    CHECK(!r->n || !memcmp(r->bytes, text, r->n));
    ++*next;
    return FL_OK;
}

/* Read all from `from` on, and return the number of the first that is missing.
 */
static uint64_t read_all(const fl_disk *d, uint64_t from, fl_journal_end *end)
{
    uint64_t next = from;
    CHECK_OK(fl_journal_read(d, "j", OWNER, from, check_record, &next, end));
    CHECK_INT((int64_t)end->next, (int64_t)next);
    CHECK_INT(end->torn, *end->why != 0);
    return next;
}

static fl_err open_journal(const fl_disk *d, uint64_t next, fl_journal **out)
{
    return fl_journal_new(
        &(fl_journal_opts){
            .disk = d, .folder = "j", .owner = OWNER, .next = next},
        out);
}

static void what_is_written_is_read(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_journal *j;
    fl_journal_end end;
    CHECK_INT((int64_t)read_all(d, 1, &end), 1); /* there is none */
    CHECK_OK(open_journal(d, 1, &j));
    for (uint64_t i = 1; i <= 100; i++)
        CHECK_OK(add_next(j, i));
    CHECK_OK(fl_journal_wait(j, 100, LIMIT));
    CHECK_INT((int64_t)fl_journal_written(j), 100);
    CHECK_ERR(fl_journal_wait(j, 101, 0), FL_ETIMEOUT,
              "record 101 is not written yet");
    fl_memdisk_crash(m, false); /* nothing else has reached the disk */
    CHECK_INT((int64_t)read_all(d, 1, &end), 101);
    CHECK(!end.torn);
    CHECK_INT((int64_t)read_all(d, 60, &end), 101);
    fl_journal_free(j);
    fl_memdisk_free(m);
}

static void a_process_that_goes_on_begins_a_file(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_journal *j;
    fl_journal_end end;
    for (int start = 0; start < 4; start++) {
        const uint64_t next = read_all(d, 1, &end);
        CHECK_OK(open_journal(d, next, &j));
        for (uint64_t i = next; start != 2 && i < next + 5; i++)
            CHECK_OK(add_next(j, i)); /* the third writes nothing */
        fl_journal_free(j);
    }
    CHECK_INT((int64_t)read_all(d, 1, &end), 16);
    fl_memdisk_free(m);
}

static int count_files(const fl_disk *d)
{
    fl_file_names names = {0};
    const fl_err err = d->list(d, "j", &names);
    CHECK(!err || err == FL_ENOENT); /* an empty folder of a memdisk */
    const int n = (int)names.n;
    fl_file_names_fini(&names);
    return n;
}

static void a_snapshot_makes_old_files_needless(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_journal *j;
    fl_journal_end end;
    uint64_t number = 1, first = 0;
    CHECK_OK(open_journal(d, 1, &j));
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 10; i++)
            CHECK_OK(add_next(j, number++));
        fl_journal_turn(j, &first);
        CHECK_INT((int64_t)first, (int64_t)number);
        CHECK_OK(add_next(j, number++));
        CHECK_OK(fl_journal_wait(j, number - 1, LIMIT));
    }
    CHECK_INT(count_files(d), 4);
    fl_journal_drop(j, first - 1); /* a record of the file before is needed */
    CHECK_OK(add_next(j, number++));
    CHECK_OK(fl_journal_wait(j, number - 1, LIMIT));
    CHECK_INT(count_files(d), 2);
    fl_journal_drop(j, first);
    fl_journal_free(j);
    CHECK_INT(count_files(d), 1);
    CHECK_INT((int64_t)read_all(d, first, &end), (int64_t)number);
    CHECK_ERR(fl_journal_read(d, "j", OWNER, 1, check_record, &number, &end),
              FL_ENOENT, "record 1 is missing");
    CHECK_OK(fl_journal_remove(d, "j"));
    CHECK_INT(count_files(d), 0);
    fl_memdisk_free(m);
}

static void a_journal_of_another_state_is_refused(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_journal *j;
    fl_journal_end end;
    uint64_t next = 1;
    CHECK_OK(open_journal(d, 1, &j));
    fl_journal_free(j);
    CHECK_ERR(fl_journal_read(d, "j", 5, 1, check_record, &next, &end),
              FL_EINVAL,
              "belongs to state 000000000000004d, expected 0000000000000005");
    fl_memdisk_free(m);
}

/* Write 12 records on a disk that fails; the number up to which all were
 * reported as written. */
static uint64_t write_badly(fl_memdisk *m, uint64_t next)
{
    fl_journal *j;
    uint64_t written = next - 1, first;
    if (open_journal(fl_memdisk_disk(m), next, &j))
        return written;
    for (uint64_t i = next; i < next + 12; i++) {
        if (add_next(j, i) || fl_journal_wait(j, i, LIMIT))
            break;
        written = i;
        if (i % 4 == 0)
            fl_journal_turn(j, &first);
        if (i % 8 == 0)
            fl_journal_drop(j, 1); /* nothing yet */
    }
    fl_journal_free(j);
    return written;
}

/* Every change of the disk fails in turn: once, as by an error, or for good, as
 * if the process were killed there. Then the power is lost. What was reported
 * as written is there, and a new process goes on. */
static void every_write_may_fail(void)
{
    bool failed = true;
    for (int64_t n = 0; failed; n++)
        for (int how = 0; how < 4; how++) {
            fl_memdisk *m = fl_memdisk_new();
            fl_journal_end end;
            if (how & 1)
                fl_memdisk_fail_once(m, n);
            else
                fl_memdisk_fail_after(m, n);
            const uint64_t written = write_badly(m, 1);
            failed = written < 12;
            fl_memdisk_fail_after(m, -1);
            fl_memdisk_crash(m, how & 2);
            const uint64_t next = read_all(fl_memdisk_disk(m), 1, &end);
            CHECK(next > written && next <= 13);
            CHECK_INT((int64_t)write_badly(m, next), (int64_t)next + 11);
            CHECK_INT((int64_t)read_all(fl_memdisk_disk(m), 1, &end),
                      (int64_t)next + 12);
            CHECK(!end.torn);
            fl_memdisk_free(m);
        }
}

static void after_a_failed_sync_nothing_is_reported(void)
{
    fl_memdisk *m = fl_memdisk_new();
    fl_journal *j;
    CHECK_OK(open_journal(fl_memdisk_disk(m), 1, &j));
    fl_memdisk_fail_once(m, 1); /* the append passes, the sync does not */
    CHECK_OK(add_next(j, 1));
    CHECK_ERR(fl_journal_wait(j, 1, LIMIT), FL_EIO, "told to fail");
    CHECK_ERR(add_next(j, 2), FL_EIO, "told to fail");
    fl_journal_retry(j); /* has no effect */
    CHECK_ERR(fl_journal_wait(j, 1, LIMIT), FL_EIO, "told to fail");
    CHECK_INT((int64_t)fl_journal_written(j), 0);
    fl_journal_free(j);
    fl_memdisk_free(m);
}

/* --- a disk that is full at times --- */

static struct {
    pthread_mutex_t lock; /* the journal has a thread */
    bool shut;            /* nothing fits */
    int64_t left;         /* appends that fit before one does not; -1: all do */
    int removed;          /* how often the first file was removed */
    fl_err (*append)(fl_file *f, const void *bytes, size_t n);
    fl_err (*remove)(const fl_disk *d, const char *path);
} full = {PTHREAD_MUTEX_INITIALIZER, false, -1, 0, NULL, NULL};

static void set_full(bool shut, int64_t left)
{
    pthread_mutex_lock(&full.lock);
    full.shut = shut;
    full.left = left;
    pthread_mutex_unlock(&full.lock);
}

/* As fl_memdisk_fill, while the journal may append. */
static void set_room(fl_memdisk *m, int64_t bytes)
{
    pthread_mutex_lock(&full.lock);
    fl_memdisk_fill(m, bytes);
    pthread_mutex_unlock(&full.lock);
}

/* Half of the bytes fit in an append that fails. */
static fl_err append_if_fits(fl_file *f, const void *bytes, size_t n)
{
    pthread_mutex_lock(&full.lock);
    const bool fits = !full.shut && full.left;
    full.left -= !full.shut && full.left >= 0;
    const fl_err err = full.append(f, bytes, fits ? n : n / 2);
    pthread_mutex_unlock(&full.lock);
    if (fits)
        return err;
    CHECK_OK(err);
    errno = ENOSPC;
    return fl_fail(FL_EIO, "the disk is full");
}

static fl_err remove_file(const fl_disk *d, const char *path)
{
    const fl_err err = full.remove(d, path);
    pthread_mutex_lock(&full.lock);
    full.removed += strstr(path, "001-0000") != NULL;
    pthread_mutex_unlock(&full.lock);
    return err;
}

static fl_disk full_disk(fl_memdisk *m)
{
    fl_disk d = *fl_memdisk_disk(m);
    full.append = d.append;
    full.remove = d.remove;
    full.removed = 0;
    d.append = append_if_fits;
    d.remove = remove_file;
    return d;
}

static void wait_until_written(fl_journal *j, uint64_t number)
{
    while (fl_journal_wait(j, number, LIMIT)) {
        fl_journal_retry(j);
        usleep(100); /* nobody says when the writer looks */
    }
}

/* The disk is full after any number of bytes; then there is room again. */
static void a_full_disk_is_waited_for(void)
{
    for (int64_t room = 0; room < 300; room++) {
        fl_memdisk *m = fl_memdisk_new();
        const fl_disk d = full_disk(m);
        fl_journal *j;
        fl_journal_end end;
        CHECK_OK(open_journal(&d, 1, &j));
        set_room(m, room);
        uint64_t i = 1;
        fl_err err = FL_OK;
        while (!err && i <= 20) {
            err = add_next(j, i);
            if (!err)
                err = fl_journal_wait(j, i++, LIMIT);
        }
        CHECK_ERR(err, FL_ENOMEM, "the disk is full");
        CHECK_ERR(fl_journal_check(j, 1), FL_ENOMEM, "the disk is full");
        CHECK_OK(add_next(j, i++)); /* it waits as well */
        fl_journal_retry(j);        /* there is no room yet */
        CHECK_ERR(fl_journal_wait(j, i - 1, LIMIT), FL_ENOMEM, "is full");
        while (fl_journal_wait(j, i - 1, LIMIT)) {
            set_room(m, -1);
            fl_journal_retry(j);
            usleep(100); /* nobody says when the writer looks */
        }
        for (; i <= 20; i++)
            CHECK_OK(add_next(j, i));
        CHECK_OK(fl_journal_wait(j, 20, LIMIT));
        fl_memdisk_crash(m, false);
        CHECK_INT((int64_t)read_all(&d, 1, &end), 21);
        CHECK(!end.torn);
        fl_journal_free(j);
        fl_memdisk_free(m);
    }
}

/* Whether the failing append of set_full was tried. */
static bool has_failed(void)
{
    pthread_mutex_lock(&full.lock);
    const bool has = full.left < 0;
    pthread_mutex_unlock(&full.lock);
    return has;
}

/* What a try has written is given back: else each would take what room there
 * is, and the group would never fit. */
static void a_try_in_vain_leaves_no_file(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk d = full_disk(m);
    fl_journal *j;
    fl_journal_end end;
    CHECK_OK(open_journal(&d, 1, &j));
    CHECK_OK(add_next(j, 1));
    CHECK_OK(fl_journal_wait(j, 1, LIMIT));
    set_full(true, -1);
    CHECK_OK(add_next(j, 2));
    CHECK_ERR(fl_journal_wait(j, 2, LIMIT), FL_ENOMEM, "the disk is full");
    for (set_full(false, 1); !has_failed();) { /* the head of a file fits */
        fl_journal_retry(j);
        usleep(100); /* nobody says when the writer looks */
    }
    set_full(false, -1);
    wait_until_written(j, 2);
    fl_journal_free(j);
    CHECK_INT(count_files(&d), 2);
    CHECK_INT((int64_t)read_all(&d, 1, &end), 3);
    CHECK(!end.torn);
    fl_memdisk_free(m);
}

/* A turn comes among records that wait for a full disk, and the disk is full
 * once more after n writes. True: it was. Older files are dropped then. */
static bool turn_while_full(int64_t n)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk d = full_disk(m);
    fl_journal *j;
    fl_journal_end end;
    uint64_t first, i = 1;
    CHECK_OK(open_journal(&d, 1, &j));
    set_full(true, -1);
    CHECK_OK(add_next(j, i++));
    CHECK_ERR(fl_journal_wait(j, 1, LIMIT), FL_ENOMEM, "the disk is full");
    for (; i < 4; i++)
        CHECK_OK(add_next(j, i));
    fl_journal_turn(j, &first);
    for (; i < 8; i++)
        CHECK_OK(add_next(j, i));
    set_full(false, n);
    wait_until_written(j, 7);
    CHECK_OK(add_next(j, i++));
    wait_until_written(j, 8);
    fl_journal_drop(j, first);
    fl_journal_free(j);
    CHECK_INT((int64_t)read_all(&d, first, &end), 9);
    CHECK(!end.torn);
    CHECK(count_files(&d) <= 2); /* the last record may be in its own */
    const bool was = full.left < 0;
    fl_memdisk_free(m);
    set_full(false, -1);
    return was;
}

static void a_turn_waits_for_a_full_disk(void)
{
    int64_t n = 0;
    while (turn_while_full(n))
        n++;
    CHECK(n >= 5);
}

static void old_files_are_dropped_while_the_disk_is_full(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk d = full_disk(m);
    fl_journal *j;
    fl_journal_end end;
    uint64_t first;
    CHECK_OK(open_journal(&d, 1, &j));
    CHECK_OK(add_next(j, 1));
    fl_journal_turn(j, &first);
    CHECK_OK(add_next(j, 2));
    CHECK_OK(fl_journal_wait(j, 2, LIMIT));
    CHECK_INT(count_files(&d), 2);
    set_full(true, -1);
    CHECK_OK(add_next(j, 3));
    CHECK_ERR(fl_journal_wait(j, 3, LIMIT), FL_ENOMEM, "the disk is full");
    fl_journal_drop(j, first);
    for (bool removed = false; !removed;) {
        fl_journal_retry(j);
        usleep(100); /* nobody says when the writer looks */
        pthread_mutex_lock(&full.lock);
        removed = full.removed;
        pthread_mutex_unlock(&full.lock);
    }
    fl_journal_free(j);
    set_full(false, -1);
    CHECK_INT(count_files(&d), 1);
    CHECK_INT((int64_t)read_all(&d, first, &end), 3);
    fl_memdisk_free(m);
}

static void files_are_dropped_when_a_full_disk_has_room(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk d = full_disk(m);
    fl_journal *j;
    fl_journal_end end;
    uint64_t first;
    CHECK_OK(open_journal(&d, 1, &j));
    set_full(true, -1);
    CHECK_OK(add_next(j, 1));
    CHECK_ERR(fl_journal_wait(j, 1, LIMIT), FL_ENOMEM, "the disk is full");
    fl_journal_turn(j, &first);
    CHECK_OK(add_next(j, 2));
    fl_journal_drop(j, first); /* no file begins with it yet */
    CHECK_ERR(fl_journal_wait(j, 2, LIMIT), FL_ENOMEM, "the disk is full");
    set_full(false, -1);
    wait_until_written(j, 2);
    fl_journal_free(j);
    CHECK_INT(count_files(&d), 1);
    CHECK_INT((int64_t)read_all(&d, first, &end), 3);
    fl_memdisk_free(m);
}

/* --- damage --- */

/* The bytes of a journal of one file, its only name, and where records end. */
static void make_small(fl_memdisk *m, fl_str *bytes, char **path)
{
    const fl_disk *d = fl_memdisk_disk(m);
    fl_file_names names = {0};
    fl_journal *j;
    CHECK_OK(open_journal(d, 1, &j));
    for (uint64_t i = 1; i <= 6; i++)
        CHECK_OK(add_next(j, i));
    fl_journal_free(j);
    CHECK_OK(d->list(d, "j", &names));
    CHECK_INT(names.n, 1);
    *path = fl_path_join("j", names.at[0]);
    fl_file_names_fini(&names);
    CHECK_OK(d->read(d, *path, 1 << 20, bytes));
}

static void every_cut_is_found(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_str bytes = {0};
    char *path;
    uint64_t last = 1;
    int whole = 0;
    fl_journal_end end;
    make_small(m, &bytes, &path);
    for (size_t n = 0; n <= bytes.n; n++) {
        CHECK_OK(fl_disk_write(d, path, bytes.at, n, true));
        const uint64_t next = read_all(d, 1, &end);
        CHECK(next >= last); /* never fewer of a longer file */
        last = next;
        whole += !end.torn;
        CHECK(!end.torn || (end.at <= (int64_t)n && strstr(end.why, path)));
    }
    CHECK_INT((int64_t)last, 7);
    CHECK_INT(whole, 7); /* behind the head and behind each record */
    fl_str_fini(&bytes);
    fl_mem_free(path);
    fl_memdisk_free(m);
}

static void every_flipped_bit_is_found(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_str bytes = {0};
    char *path;
    fl_journal_end end;
    make_small(m, &bytes, &path);
    for (size_t i = 0; i < 8 * bytes.n; i++) {
        bytes.at[i / 8] ^= (char)(1 << i % 8);
        CHECK_OK(fl_disk_write(d, path, bytes.at, bytes.n, true));
        CHECK(read_all(d, 1, &end) < 7);
        CHECK(end.torn && end.at <= (int64_t)(i / 8));
        CHECK(strstr(end.why, "damaged") || strstr(end.why, "cut"));
        bytes.at[i / 8] ^= (char)(1 << i % 8);
    }
    fl_str_fini(&bytes);
    fl_mem_free(path);
    fl_memdisk_free(m);
}

static void a_hole_is_not_read_over(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_file_names names = {0};
    fl_journal_end end;
    fl_journal *j;
    uint64_t first;
    CHECK_OK(open_journal(d, 1, &j));
    for (uint64_t i = 1; i <= 9; i++) {
        CHECK_OK(add_next(j, i));
        CHECK_OK(fl_journal_wait(j, i, LIMIT));
        if (i % 3 == 0)
            fl_journal_turn(j, &first);
    }
    fl_journal_free(j);
    CHECK_OK(d->list(d, "j", &names));
    char *path = fl_path_join("j", names.at[1]);
    CHECK_OK(d->remove(d, path)); /* records 4 to 6 */
    CHECK_INT((int64_t)read_all(d, 1, &end), 4);
    CHECK(strstr(end.why, "records before the first one are missing"));
    fl_mem_free(path);
    fl_file_names_fini(&names);
    fl_memdisk_free(m);
}

static void memory_is_bounded(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    static char large[1000];
    const fl_part part = {large, sizeof large};
    fl_journal *j;
    uint64_t number;
    CHECK_OK(fl_journal_new(
        &(fl_journal_opts){
            .disk = d, .folder = "j", .owner = OWNER, .next = 1, .most = 500},
        &j));
    fl_memdisk_fill(m, 0);
    CHECK_OK(fl_journal_check(j, sizeof large)); /* one always fits */
    CHECK_OK(fl_journal_add(j, 1, &part, 1, &number));
    CHECK_ERR(fl_journal_check(j, sizeof large), FL_ENOMEM, "j");
    fl_journal_free(j);
    fl_memdisk_free(m);
}

/* A process that is killed between a write and its sync, or behind that. */
static void a_killed_process_leaves_what_it_reported(void)
{
    static const char *const points[] = {"journal.write:3", "journal.sync:3",
                                         "journal.write:1", "*:6"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        const fl_disk *d = fl_disk_real();
        char *folder = fl_path_join(fl_test_dir(), points[i]);
        int told[2], status;
        CHECK_INT(pipe(told), 0);
        const pid_t pid = fork();
        if (!pid) {
            fl_journal *j;
            fl_failpoint_arm(points[i]);
            if (fl_journal_new(
                    &(fl_journal_opts){
                        .disk = d, .folder = folder, .owner = OWNER, .next = 1},
                    &j))
                _exit(1);
            for (uint64_t n = 1; n <= 8; n++)
                if (add_next(j, n) || fl_journal_wait(j, n, LIMIT) ||
                    write(told[1], "", 1) != 1)
                    _exit(1);
            _exit(2);
        }
        close(told[1]);
        uint64_t reported = 0, next = 1;
        for (char c; read(told[0], &c, 1) == 1;)
            reported++;
        close(told[0]);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        fl_journal_end end;
        CHECK_OK(
            fl_journal_read(d, folder, OWNER, 1, check_record, &next, &end));
        CHECK(next > reported && next <= reported + 2);
        fl_mem_free(folder);
    }
}

const fl_test fl_tests[] = {
    {"what is written to a journal is read", what_is_written_is_read},
    {"a process that goes on begins a file of the journal",
     a_process_that_goes_on_begins_a_file},
    {"a snapshot makes old files of a journal needless",
     a_snapshot_makes_old_files_needless},
    {"a journal of another state is refused",
     a_journal_of_another_state_is_refused},
    {"every write of a journal may fail", every_write_may_fail},
    {"after a failed sync a journal reports nothing",
     after_a_failed_sync_nothing_is_reported},
    {"a journal waits for a full disk", a_full_disk_is_waited_for},
    {"a try to write to a full disk leaves no file",
     a_try_in_vain_leaves_no_file},
    {"a turn waits for a full disk, and loses nothing",
     a_turn_waits_for_a_full_disk},
    {"old files are dropped while the disk is full",
     old_files_are_dropped_while_the_disk_is_full},
    {"files are dropped as soon as a full disk has room",
     files_are_dropped_when_a_full_disk_has_room},
    {"every cut of a journal is found", every_cut_is_found},
    {"every flipped bit of a journal is found", every_flipped_bit_is_found},
    {"a hole in a journal is not read over", a_hole_is_not_read_over},
    {"a journal takes so much memory", memory_is_bounded},
    {"a killed process leaves what its journal reported",
     a_killed_process_leaves_what_it_reported},
    {0},
};
