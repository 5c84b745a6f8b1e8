/* SPDX-License-Identifier: Apache-2.0 */
#include "base/disk.h"

#include "base/memdisk.h"
#include "base/test.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *in_dir(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", fl_test_dir(), name);
    return path;
}

/* What any disk must do, in an empty directory. */
static void behaves(const fl_disk *d, const char *dir)
{
    char a[300], b[300];
    fl_str s = {0};
    fl_file_names names = {0};
    int64_t size;
    const fl_part two[] = {{"two", 3}, {"s", 1}};
    snprintf(a, sizeof a, "%s/x/y/a", dir);
    snprintf(b, sizeof b, "%s/x/y/b", dir);
    CHECK_OK(fl_disk_make_parents(d, a));
    CHECK_OK(fl_disk_make_parents(d, a)); /* again: no harm */
    CHECK_OK(fl_disk_write(d, a, "one", 3, true));
    CHECK_OK(d->write(d, a, two, 2, false));
    CHECK_OK(fl_disk_write(d, b, NULL, 0, false));
    CHECK_OK(d->read(d, a, 4, &s));
    CHECK_STR(s.at, "twos");
    CHECK_OK(d->size(d, a, &size));
    CHECK_INT(size, 4);
    CHECK_ERR(d->read(d, a, 3, &s), FL_EINVAL, "4 bytes, the limit is 3");
    CHECK_OK(d->read(d, b, 100, &s));
    CHECK_INT((int64_t)s.n, 0);
    *strrchr(a, '/') = 0;
    CHECK_OK(d->list(d, a, &names));
    CHECK_INT(names.n, 2); /* no temporary file is left */
    CHECK_STR(names.at[0], "a");
    CHECK_STR(names.at[1], "b");
    a[strlen(a)] = '/';
    CHECK_OK(d->rename(d, a, b));
    CHECK_OK(d->read(d, b, 100, &s));
    CHECK_STR(s.at, "twos");
    CHECK_ERR(d->size(d, a, &size), FL_ENOENT, a);
    CHECK_ERR(d->read(d, a, 1, &s), FL_ENOENT, a);
    CHECK_ERR(d->remove(d, a), FL_ENOENT, a);
    CHECK_ERR(d->rename(d, a, b), FL_ENOENT, a);
    CHECK_OK(d->remove(d, b));
    CHECK_ERR(d->list(d, "/no/such", &names), FL_ENOENT, "/no/such");
    fl_file_names_fini(&names);
    fl_str_fini(&s);
}

static void appends(const fl_disk *d, const char *path)
{
    fl_file *f;
    fl_str s = {0};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(d->open(d, path, &f));
        CHECK_OK(d->append(f, "ab", 2));
        CHECK_OK(d->append(f, "c", 1));
        CHECK_OK(d->sync(f));
        d->close(f);
    }
    CHECK_OK(d->read(d, path, 100, &s));
    CHECK_STR(s.at, "abcabc");
    fl_str_fini(&s);
}

static void reads_parts(const fl_disk *d, const char *path)
{
    fl_file *f;
    int64_t size;
    char part[4] = {0};
    CHECK_OK(fl_disk_write(d, path, "abcdef", 6, false));
    CHECK_OK(d->look(d, path, &f, &size));
    CHECK_INT(size, 6);
    CHECK_OK(d->read_at(f, 2, part, 3));
    CHECK_STR(part, "cde");
    CHECK_OK(d->read_at(f, 6, part, 0));
    CHECK_ERR(d->read_at(f, 4, part, 3), FL_EIO, "it ends after 6 bytes");
    d->close(f);
    CHECK_ERR(d->look(d, "/no/such", &f, &size), FL_ENOENT, "/no/such");
}

static void locks_exclude(const fl_disk *d, const char *path)
{
    fl_file *one, *two;
    int64_t size;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(d->lock(d, path, 0, &one));
        CHECK_ERR(d->lock(d, path, 0, &two), FL_ETIMEOUT, path);
        d->unlock(one);
        CHECK(d->size(d, path, &size) == FL_ENOENT);
    }
    d->unlock(NULL);
}

static void trees_are_removed(const fl_disk *d, const char *dir)
{
    char tree[300], deep[400];
    fl_file_names names = {0};
    snprintf(tree, sizeof tree, "%s/tree", dir);
    snprintf(deep, sizeof deep, "%s/a/b/c", tree);
    CHECK_OK(fl_disk_make_parents(d, deep));
    CHECK_OK(fl_disk_write(d, deep, "x", 1, false));
    CHECK_OK(d->persist(d, deep));
    CHECK_OK(d->persist(d, tree));
    CHECK_OK(fl_disk_remove_tree(d, tree));
    CHECK(d->list(d, tree, &names) == FL_ENOENT);
    CHECK_OK(fl_disk_remove_tree(d, tree)); /* again: no harm */
    fl_file_names_fini(&names);
}

static void real_disk_behaves(void)
{
    locks_exclude(fl_disk_real(), in_dir("lock"));
    trees_are_removed(fl_disk_real(), fl_test_dir());
    behaves(fl_disk_real(), fl_test_dir());
    appends(fl_disk_real(), in_dir("journal"));
    reads_parts(fl_disk_real(), in_dir("parts"));
}

static void memory_disk_behaves(void)
{
    fl_memdisk *m = fl_memdisk_new();
    locks_exclude(fl_memdisk_disk(m), "/d/lock");
    trees_are_removed(fl_memdisk_disk(m), "/d");
    behaves(fl_memdisk_disk(m), "/d");
    appends(fl_memdisk_disk(m), "/d/journal");
    reads_parts(fl_memdisk_disk(m), "/d/parts");
    fl_memdisk_free(m);
}

static void failures_name_path_and_cause(void)
{
    const fl_disk *d = fl_disk_real();
    fl_str s = {0};
    fl_file *f;
    CHECK_ERR(fl_disk_write(d, in_dir("no/file"), "x", 1, false), FL_ENOENT,
              "no/file: cannot make it: No such file or directory");
    CHECK_ERR(d->read(d, fl_test_dir(), 100, &s), FL_EIO, "Is a directory");
    CHECK_ERR(d->open(d, in_dir("no/file"), &f), FL_ENOENT, "no/file");
    CHECK_OK(fl_disk_write(d, in_dir("plain"), "x", 1, false));
    CHECK_ERR(d->mkdirs(d, in_dir("plain")), FL_EIO, "not a directory");
    CHECK_ERR(d->mkdirs(d, in_dir("plain/below")), FL_EIO, "Not a directory");
}

/* Names in the directory `left`, parted by blanks. */
static const char *left_names(void)
{
    static fl_str all;
    fl_file_names names = {0};
    CHECK_OK(fl_disk_real()->list(fl_disk_real(), in_dir("left"), &names));
    all.n = 0;
    for (int64_t i = 0; i < names.n; i++)
        fl_str_printf(&all, "%s%s", i ? " " : "", names.at[i]);
    fl_file_names_fini(&names);
    return all.at;
}

/* The system kills it with the fifth byte. */
static void be_killed_writing(const char *path)
{
    const fl_part two[] = {{"1234", 4}, {"5678", 4}};
    const pid_t child = fork();
    if (!child) {
        signal(SIGXFSZ, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){4, 4});
        (void)!fl_disk_real()->write(fl_disk_real(), path, two, 2, false);
        _exit(0);
    }
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
}

static void the_next_write_uses_what_a_killed_one_left(void)
{
    const fl_disk *d = fl_disk_real();
    fl_str s = {0};
    CHECK_OK(d->mkdirs(d, in_dir("left")));
    be_killed_writing(in_dir("left/w"));
    be_killed_writing(in_dir("left/w"));
    CHECK_STR(left_names(), "w.tmp0");
    CHECK_OK(fl_disk_write(d, in_dir("left/w"), "new", 3, false));
    CHECK_STR(left_names(), "w");
    CHECK_OK(d->read(d, in_dir("left/w"), 100, &s));
    CHECK_STR(s.at, "new");
    fl_str_fini(&s);
    CHECK_OK(fl_disk_remove_tree(d, in_dir("left")));
}

/* A link there could lead anywhere, and another's lock says that it writes. */
static void files_of_others_are_not_used(void)
{
    const fl_disk *d = fl_disk_real();
    fl_file *other;
    fl_str s = {0};
    CHECK_OK(d->mkdirs(d, in_dir("left")));
    CHECK_OK(fl_disk_write(d, in_dir("precious"), "kept", 4, false));
    CHECK(!symlink("../precious", in_dir("left/w.tmp0")));
    CHECK_OK(d->lock(d, in_dir("left/w.tmp1"), 0, &other));
    CHECK_OK(fl_disk_write(d, in_dir("left/w"), "new", 3, false));
    CHECK_STR(left_names(), "w w.tmp0 w.tmp1");
    CHECK_OK(d->read(d, in_dir("precious"), 100, &s));
    CHECK_STR(s.at, "kept");
    fl_str_fini(&s);
    d->unlock(other);
    CHECK_OK(fl_disk_remove_tree(d, in_dir("left")));
}

static void the_longest_names_are_written(void)
{
    char name[NAME_MAX + 1] = {0};
    memset(name, 'n', NAME_MAX);
    CHECK_OK(fl_disk_write(fl_disk_real(), in_dir(name), "x", 1, false));
    CHECK_OK(fl_disk_real()->remove(fl_disk_real(), in_dir(name)));
}

/* In a process of its own, which is not root's: root may write anywhere. */
static void a_lock_in_a_read_only_folder_tells_why(void)
{
    const fl_disk *d = fl_disk_real();
    const pid_t child = fork();
    if (!child) {
        fl_file *f;
        const bool ready = !mkdir(in_dir("fixed"), 0555) &&
                           !chdir(in_dir("fixed")) &&
                           (geteuid() || !setuid(65534));
        const bool told = ready && d->lock(d, "lock", 0, &f) == FL_EIO &&
                          strstr(fl_errmsg(), "lock: cannot open it: "
                                              "Permission denied");
        _exit(told ? 0 : 1);
    }
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}

static void devices_are_written_where_they_are(void)
{
    struct stat st;
    const fl_disk *d = fl_disk_real();
    CHECK(!symlink("/dev/null", in_dir("null")));
    CHECK_OK(fl_disk_write(d, in_dir("null"), "x", 1, true));
    CHECK(!stat(in_dir("null"), &st) && S_ISCHR(st.st_mode));
}

static void files_without_a_size_are_read(void)
{
    const fl_disk *d = fl_disk_real();
    fl_str s = {0};
    CHECK_OK(d->read(d, "/proc/self/maps", 1 << 20, &s));
    CHECK(s.n > 0 && strlen(s.at) == s.n);
    CHECK_ERR(d->read(d, "/dev/zero", 10000, &s), FL_EINVAL,
              "the limit is 10000");
    fl_str_fini(&s);
}

static void memory_disk_fails_when_told(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_file *f;
    fl_str s = {0};
    CHECK_OK(d->open(d, "j", &f));
    fl_memdisk_fail_after(m, 1);
    CHECK_OK(d->append(f, "1234", 4));
    CHECK_ERR(d->append(f, "5678", 4), FL_EIO, "j: the disk");
    CHECK_ERR(fl_disk_write(d, "k", "x", 1, false), FL_EIO, "k: the disk");
    CHECK_OK(d->read(d, "j", 100, &s));
    CHECK_STR(s.at, "123456");
    d->close(f);
    fl_str_fini(&s);
    fl_memdisk_free(m);
}

static void memory_disk_forgets_what_was_not_synced(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_file *f;
    fl_str s = {0};
    CHECK_OK(d->open(d, "j", &f));
    CHECK_OK(d->append(f, "safe", 4));
    CHECK_OK(d->sync(f));
    CHECK_OK(d->append(f, "lost", 4));
    CHECK_OK(d->close(f));
    CHECK_OK(d->persist(d, "."));
    CHECK_OK(fl_disk_write(d, "k", "x", 1, false));
    fl_memdisk_crash(m, false);
    CHECK_OK(d->read(d, "j", 100, &s));
    CHECK_STR(s.at, "safe");
    CHECK(d->read(d, "k", 100, &s) == FL_ENOENT);
    fl_str_fini(&s);
    fl_memdisk_free(m);
}

const fl_test fl_tests[] = {
    {"real disk behaves", real_disk_behaves},
    {"memory disk behaves", memory_disk_behaves},
    {"disk failures name path and cause", failures_name_path_and_cause},
    {"the next write uses what a killed one left",
     the_next_write_uses_what_a_killed_one_left},
    {"files of others are not used for writing", files_of_others_are_not_used},
    {"the longest names are written", the_longest_names_are_written},
    {"a lock in a read-only folder tells why",
     a_lock_in_a_read_only_folder_tells_why},
    {"devices are written where they are", devices_are_written_where_they_are},
    {"files without a size are read", files_without_a_size_are_read},
    {"memory disk fails when told", memory_disk_fails_when_told},
    {"memory disk forgets what was not synced",
     memory_disk_forgets_what_was_not_synced},
    {0},
};
