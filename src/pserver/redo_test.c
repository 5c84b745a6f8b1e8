/* SPDX-License-Identifier: Apache-2.0 */
/* redo_test.c - base and journal on a disk of which each change fails in turn.
 * What was reported as durable is there when the host is lost, and nothing that
 * the state has dropped.
 *
 * The files lie in memory where that is possible: ext4 looks for an inode that
 * was not deleted within the last 5 s, which takes long if thousands were. */
#include "pserver/redo.h"

#include "base/mem.h"
#include "base/path.h"
#include "base/test.h"
#include "state/extents.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PUSHES = 2,
    EACH = 1 /* pushes after which there is a new base */
};

/* --- a disk that fails --- */

typedef enum fault {
    ERROR, /* one change fails; an append writes nothing */
    SHORT, /* one change fails; an append writes half of its bytes */
    KILL,  /* the same, and each further change fails */
    FAULTS
} fault;

static struct {
    pthread_mutex_t lock; /* the journal has a thread */
    fault kind;
    int64_t left; /* changes that do not fail; -1: none fails */
} faults = {PTHREAD_MUTEX_INITIALIZER, ERROR, -1};

static void set_fault(fault kind, int64_t left)
{
    pthread_mutex_lock(&faults.lock);
    faults.kind = kind;
    faults.left = left;
    pthread_mutex_unlock(&faults.lock);
}

/* Whether the next change is to fail. */
static bool is_failing(void)
{
    pthread_mutex_lock(&faults.lock);
    const bool fails = !faults.left;
    if (faults.left > 0 || (fails && faults.kind != KILL))
        faults.left--;
    pthread_mutex_unlock(&faults.lock);
    return fails;
}

static fl_err fail_change(void)
{
    return fl_fail(FL_EIO, "the disk was told to fail");
}

static fl_err open_file(const fl_disk *d, const char *path, fl_file **out)
{
    return is_failing() ? fail_change()
                        : fl_disk_real()->open(fl_disk_real(), path, out);
}

static fl_err append_bytes(fl_file *f, const void *bytes, size_t n)
{
    const fl_disk *real = fl_disk_real();
    if (!is_failing())
        return real->append(f, bytes, n);
    if (faults.kind != ERROR)
        CHECK_OK(real->append(f, bytes, n / 2));
    return fail_change();
}

/* Only the process is killed: there is nothing to sync. */
static fl_err sync_file(fl_file *f)
{
    return is_failing() ? fail_change() : FL_OK;
}

static fl_err persist_path(const fl_disk *d, const char *path)
{
    return is_failing() ? fail_change() : FL_OK;
}

static fl_err write_file(const fl_disk *d, const char *path,
                         const fl_part *part, int64_t n, bool sync)
{
    return is_failing()
               ? fail_change()
               : fl_disk_real()->write(fl_disk_real(), path, part, n, false);
}

static fl_err make_folders(const fl_disk *d, const char *path)
{
    return is_failing() ? fail_change()
                        : fl_disk_real()->mkdirs(fl_disk_real(), path);
}

static fl_err make_temporary(const fl_disk *d, char *path)
{
    return is_failing() ? fail_change()
                        : fl_disk_real()->mkdtemp(fl_disk_real(), path);
}

static fl_err remove_path(const fl_disk *d, const char *path)
{
    return is_failing() ? fail_change()
                        : fl_disk_real()->remove(fl_disk_real(), path);
}

static fl_err rename_path(const fl_disk *d, const char *from, const char *to)
{
    return is_failing() ? fail_change()
                        : fl_disk_real()->rename(fl_disk_real(), from, to);
}

static fl_disk failing_disk(void)
{
    fl_disk d = *fl_disk_real();
    d.open = open_file;
    d.append = append_bytes;
    d.sync = sync_file;
    d.persist = d.persist_tree = persist_path;
    d.write = write_file;
    d.mkdirs = make_folders;
    d.mkdtemp = make_temporary;
    d.remove = remove_path;
    d.rename = rename_path;
    return d;
}

/* --- a server whose store only counts ---
 *
 * Each push moves the store into a new extent, as a table that grows does. */

typedef struct server {
    fl_job job;
    fl_disk disk;
    fl_redo *redo;
    fl_recovery *recovery;
    fl_mapping *map;
    int64_t *count; /* pushes, the sum of their numbers, and the number of the
                       extent, which has the first of them; in the state */
    fl_extents *extents;
    int64_t *extent; /* NULL: nothing was pushed */
    fl_store inner, store;
    bool replaying;
    pthread_mutex_t lock;
    int64_t durable; /* records that are on disk */
} server;

static void on_durable(void *self, uint64_t number)
{
    server *v = self;
    pthread_mutex_lock(&v->lock);
    v->durable = (int64_t)(number & ((UINT64_C(1) << 40) - 1));
    pthread_mutex_unlock(&v->lock);
}

static void move_extent(server *v)
{
    void *next;
    CHECK_OK(fl_extents_make(v->extents, sizeof *v->count, &next));
    if (v->extent)
        fl_extents_drop(v->extents, v->extent);
    v->extent = next;
    *v->extent = v->count[0];
    v->count[2] = fl_extents_number(v->extents, next);
}

static void apply_push(void *self, int64_t round, const fl_staged *by, int n)
{
    server *v = self;
    CHECK_INT(by->seq, v->count[0] + 1);
    v->count[0]++;
    v->count[1] += by->seq;
    move_extent(v);
    if (v->replaying)
        fl_redo_applied(v->redo, NULL);
    else
        fl_redo_finished(v->redo);
}

static void forget_session(void *self, fl_id session)
{
}

/* The number of extents in a directory. */
static int count_extents(const char *dir)
{
    fl_file_names names = {0};
    int n = 0;
    CHECK_OK(fl_disk_real()->list(fl_disk_real(), dir, &names));
    for (int64_t i = 0; i < names.n; i++)
        n += !strncmp(names.at[i], "extent-", strlen("extent-"));
    fl_file_names_fini(&names);
    return n;
}

/* A state that was made from a base has only what the base was copied from. */
static void find_extent(server *v, fl_statedir *d)
{
    size_t bytes;
    v->extents = fl_extents_new(d);
    CHECK_INT(count_extents(fl_statedir_path(d)), v->count[0] > 0);
    if (!v->count[0])
        return;
    void *at;
    CHECK_OK(fl_extents_find(v->extents, (uint32_t)v->count[2], &at, &bytes));
    v->extent = at;
    CHECK_INT(*v->extent, v->count[0]);
}

/* With the state that is there, or with base and journal. */
static void open_server(server *v)
{
    *v = (server){.disk = failing_disk()};
    pthread_mutex_init(&v->lock, NULL);
    v->job =
        fl_job_defaults((fl_job){.id = {7, 8}, .trainers = 1, .async = true});
    v->inner = (fl_store){.self = v,
                          .keep = fl_keeper_copies,
                          .apply = apply_push,
                          .forget = forget_session};
    v->redo = fl_redo_new(
        &(fl_redo_opts){.disk = &v->disk, .durable = on_durable, .self = v});
    CHECK_OK(fl_recovery_open(&(fl_recovery_opts){.job = &v->job,
                                                  .owners = 1,
                                                  .id = 5,
                                                  .fill = fl_redo_fill,
                                                  .fill_self = v->redo},
                              &v->recovery));
    fl_statedir *d = fl_recovery_dir(v->recovery);
    CHECK_OK(fl_statedir_map(d, "dense", 64, 0, &v->map));
    v->count = fl_mapping_at(v->map);
    find_extent(v, d);
    v->replaying = fl_redo_filled(v->redo);
    if (v->replaying)
        CHECK_OK(fl_redo_replay(v->redo, v->recovery, &v->inner));
    v->replaying = false;
    fl_statedir_ready(d);
    v->store = fl_redo_wrap(v->redo, &v->inner);
}

/* The host is lost: of the server only base and journal are left. */
static void lose_server(server *v)
{
    fl_redo_free(v->redo);
    fl_mapping_unref(v->map);
    fl_extents_free(v->extents);
    fl_recovery_remove(v->recovery);
    fl_recovery_close(v->recovery);
    pthread_mutex_destroy(&v->lock);
}

/* Whether the first n records become durable; else the journal has failed. */
static bool is_durable(server *v, int64_t n)
{
    for (;;) {
        const bool failed = fl_redo_tick(v->redo);
        pthread_mutex_lock(&v->lock);
        const bool durable = v->durable >= n;
        pthread_mutex_unlock(&v->lock);
        if (durable || failed)
            return durable;
        usleep(100); /* nobody says that the journal has failed */
    }
}

static void settle(void *store)
{
}

/* A new base. If it cannot be made, the old one and its records stay. */
static void renew_base(server *v)
{
    bool copied = false;
    fl_err err = fl_redo_renew(v->redo, settle, NULL, &copied);
    if (!err && copied)
        err = fl_redo_commit(v->redo);
    (void)err;
}

/* Push so many times, with a new base now and then. The number of pushes that
 * are durable. */
static int64_t push_some(server *v, int64_t n)
{
    const int64_t first = v->count[0];
    const fl_blob none = {0};
    if (fl_redo_begin(v->redo, v->recovery))
        return first;
    for (int64_t i = 1; i <= n; i++) {
        const fl_staged by = {
            .session = {1, 1}, .n = 1, .part = &none, .seq = first + i};
        v->store.apply(v->store.self, 0, &by, 1);
        if (!is_durable(v, i))
            return first + i - 1;
        if (i % EACH == 0)
            renew_base(v);
    }
    return first + n;
}

/* The folder of the base has the files of the state, and no others. */
static void check_base(const server *v)
{
    char *all = fl_path_join(fl_test_dir(), "journal");
    char *name = fl_path_join(
        all, fl_path_base(fl_statedir_path(fl_recovery_dir(v->recovery))));
    char *base = fl_path_join(name, "base");
    CHECK_INT(count_extents(base), 1);
    fl_mem_free(base);
    fl_mem_free(name);
    fl_mem_free(all);
}

/* Whether the change `n` was made, and failed. */
static bool fail_one(fault kind, int64_t n)
{
    char *journal = fl_path_join(fl_test_dir(), "journal");
    server v;
    open_server(&v);
    CHECK_INT(v.count[0], 0);
    set_fault(kind, n);
    const int64_t durable = push_some(&v, PUSHES), pushed = v.count[0];
    pthread_mutex_lock(&faults.lock);
    const bool failed = faults.left <= 0;
    pthread_mutex_unlock(&faults.lock);
    fl_redo_free(v.redo); /* a process that is killed changes nothing more */
    v.redo = NULL;
    set_fault(ERROR, -1);
    lose_server(&v);

    open_server(&v);
    CHECK(v.count[0] >= durable && v.count[0] <= pushed);
    CHECK_INT(v.count[1], v.count[0] * (v.count[0] + 1) / 2);
    const int64_t found = v.count[0];
    CHECK_INT(push_some(&v, EACH + 1), found + EACH + 1);
    lose_server(&v);

    open_server(&v);
    CHECK_INT(v.count[0], found + EACH + 1);
    CHECK_OK(fl_redo_begin(v.redo, v.recovery));
    check_base(&v);
    lose_server(&v);
    CHECK_OK(fl_disk_remove_tree(fl_disk_real(), journal));
    fl_mem_free(journal);
    return failed;
}

static void set_folders(void)
{
    if (!access("/dev/shm", W_OK))
        setenv("TMPDIR", "/dev/shm", 0);
    char *journal = fl_path_join(fl_test_dir(), "journal");
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    setenv("FLUID_JOURNAL_DIR", journal, 1);
    setenv("FLUID_JOURNAL_BYTES", "1", 1);
    fl_mem_free(journal);
}

static void unset_folders(void)
{
    (void)!fl_disk_remove_tree(fl_disk_real(), getenv("FLUID_JOURNAL_DIR"));
    unsetenv("FLUID_JOURNAL_BYTES");
    unsetenv("FLUID_JOURNAL_DIR");
    unsetenv("FLUID_STATE_DIR");
}

static void every_change_fails_in_turn(void)
{
    set_folders();
    for (fault kind = ERROR; kind < FAULTS; kind++) {
        int64_t n = 0;
        while (fail_one(kind, n))
            n++;
        CHECK(n > 80);
    }
    unset_folders();
}

/* Somebody removes the files of the state, but not the folder. What is on disk
 * is then all that there is. */
static void a_removed_state_does_not_replace_the_base(void)
{
    server v;
    set_folders();
    open_server(&v);
    CHECK_INT(push_some(&v, 1), 1);
    const char *state = fl_statedir_path(fl_recovery_dir(v.recovery));
    CHECK_OK(fl_disk_remove_tree(fl_disk_real(), state));
    CHECK_OK(fl_disk_real()->mkdirs(fl_disk_real(), state));
    const fl_blob none = {0};
    const fl_staged by = {
        .session = {1, 1}, .n = 1, .part = &none, .seq = v.count[0] + 1};
    v.store.apply(v.store.self, 0, &by, 1);
    CHECK(is_durable(&v, 2));
    renew_base(&v);
    lose_server(&v);

    open_server(&v);
    CHECK_INT(v.count[0], 2);
    lose_server(&v);
    unset_folders();
}

/* A base that lacks a file is damaged: it does not count as none. So it is with
 * a journal whose whole base is missing, with or without records. */
static void refuse_base(bool records)
{
    server v;
    fl_recovery *none;
    fl_str path = {0};
    set_folders();
    if (records) /* the base is never made anew */
        setenv("FLUID_JOURNAL_BYTES", "1e9", 1);
    open_server(&v);
    CHECK_INT(push_some(&v, 2), 2);
    fl_str_printf(&path, "%s/journal/%s/base/after", fl_test_dir(),
                  fl_path_base(fl_statedir_path(fl_recovery_dir(v.recovery))));
    lose_server(&v);
    CHECK_OK(fl_disk_real()->remove(fl_disk_real(), path.at));

    v.redo = fl_redo_new(&(fl_redo_opts){.durable = on_durable, .self = &v});
    const fl_recovery_opts o = {.job = &v.job,
                                .owners = 1,
                                .id = 5,
                                .fill = fl_redo_fill,
                                .fill_self = v.redo};
    CHECK_ERR(fl_recovery_open(&o, &none), FL_EPROTO, "after is missing");
    path.at[path.n - strlen("/after")] = 0;
    CHECK_OK(fl_disk_remove_tree(fl_disk_real(), path.at));
    CHECK_ERR(fl_recovery_open(&o, &none), FL_EPROTO,
              "has a journal, but there is no base in ");
    fl_redo_free(v.redo);
    fl_str_fini(&path);
    unset_folders();
}

static void a_base_that_lacks_files_is_refused(void)
{
    refuse_base(true);
    refuse_base(false);
}

/* A server was killed before its first base was complete: nobody has heard of
 * it, and its journal has no record. */
static void a_journal_that_has_just_begun_needs_no_base(void)
{
    server v;
    fl_str path = {0};
    set_folders();
    open_server(&v);
    CHECK_INT(push_some(&v, 0), 0);
    fl_str_printf(&path, "%s/journal/%s/base", fl_test_dir(),
                  fl_path_base(fl_statedir_path(fl_recovery_dir(v.recovery))));
    lose_server(&v);
    CHECK_OK(fl_disk_remove_tree(fl_disk_real(), path.at));
    open_server(&v);
    CHECK(!v.replaying);
    CHECK_INT(push_some(&v, 1), 1);
    lose_server(&v);
    fl_str_fini(&path);
    unset_folders();
}

/* The error names what the user can remove: the state is not left. */
static void a_base_of_other_owners_is_refused(void)
{
    server v;
    fl_recovery *none;
    set_folders();
    open_server(&v);
    CHECK_INT(push_some(&v, 1), 1);
    lose_server(&v);
    v.redo = fl_redo_new(&(fl_redo_opts){.durable = on_durable, .self = &v});
    const fl_recovery_opts o = {.job = &v.job,
                                .owners = 2,
                                .id = 5,
                                .fill = fl_redo_fill,
                                .fill_self = v.redo};
    CHECK_ERR(fl_recovery_open(&o, &none), FL_EINVAL,
              "-server-0 cannot be made from its journal: it was made with 1 "
              "owner threads; FLUID_OWNERS is now 2; `paddle state ls` names");
    fl_redo_free(v.redo);
    unset_folders();
}

const fl_test fl_tests[] = {
    {"every change of base and journal fails in turn",
     every_change_fails_in_turn},
    {"a state whose files were removed does not replace the base",
     a_removed_state_does_not_replace_the_base},
    {"a base that lacks files is refused", a_base_that_lacks_files_is_refused},
    {"a base of other owners is refused", a_base_of_other_owners_is_refused},
    {"a journal that has just begun needs no base",
     a_journal_that_has_just_begun_needs_no_base},
    {0},
};
