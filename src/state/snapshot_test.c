/* SPDX-License-Identifier: Apache-2.0 */
#include "state/snapshot.h"

#include "base/folder.h"
#include "base/memdisk.h"
#include "base/path.h"
#include "base/test.h"

#include <stdio.h>

enum {
    SERVERS = 2,
    VALUES = 6 /* elements of the variable on each server */
};

/* The piece of a variable on a server, in the snapshot of a version. */
static int32_t value_of(int64_t version, int server, int i)
{
    return (int32_t)(version * 1000 + server * 100 + i);
}

static fl_err write_part(const fl_disk *d, int64_t number, int server)
{
    int32_t bytes[VALUES];
    fl_stage s;
    fl_snapshot_index x = {.server = server,
                           .servers = SERVERS,
                           .number = number,
                           .version = number * 10};
    for (int i = 0; i < VALUES; i++)
        bytes[i] = value_of(number * 10, server, i);
    fl_push(&x.tensor, ((fl_snapshot_tensor){.name = fl_mem_strdup("w.block"),
                                             .var = fl_mem_strdup("w"),
                                             .first = server * VALUES,
                                             .dtype = 2,
                                             .rank = 2,
                                             .dim = {VALUES / 2, 2},
                                             .bytes = sizeof bytes}));
    fl_str_bytes(&x.image, "\0\xff image", 8);
    fl_err err = fl_snapshot_begin(&s, d, "snap", &x);
    if (!err)
        err = fl_stage_append(&s, bytes, sizeof bytes);
    fl_push(&x.table, ((fl_snapshot_table){.name = fl_mem_strdup("rows"),
                                           .dtype = 5,
                                           .row = 8,
                                           .rows = 1,
                                           .at = s.size}));
    if (!err)
        err = fl_stage_append(&s, "idididid12345678", 16);
    if (!err)
        err = fl_snapshot_end(&s, &x);
    fl_stage_fini(&s);
    fl_snapshot_index_fini(&x);
    return err;
}

static fl_err write_snapshot(const fl_disk *d, int64_t number)
{
    const fl_snapshot_job job = {.number = number,
                                 .version = number * 10,
                                 .generation = 3,
                                 .servers = SERVERS,
                                 .trainers = 4,
                                 .state = UINT64_MAX,
                                 .digest = "0123456789abcdef0123456789abcdef",
                                 .run = "12.34"};
    for (int i = 0; i < SERVERS; i++)
        FL_TRY(write_part(d, number, i));
    return fl_snapshot_commit(d, "snap", &job, "coordinator", 11);
}

static fl_err read_values(const fl_snapshot_part *p, int server)
{
    int32_t bytes[VALUES];
    const fl_snapshot_tensor *t = &p->index.tensor.at[0];
    FL_TRY(p->disk->read_at(p->data, t->at, bytes, sizeof bytes));
    for (int i = 0; i < VALUES; i++)
        CHECK_INT(bytes[i], value_of(p->index.version, server, i));
    CHECK_INT(t->first, server * VALUES);
    CHECK_STR(t->name, "w.block");
    CHECK_STR(t->var, "w");
    CHECK_INT(t->dim[1], 2);
    CHECK_INT(p->index.table.at[0].rows, 1);
    CHECK_INT(p->index.image.n, 8);
    return FL_OK;
}

/* Read all of a snapshot. */
static fl_err read_snapshot(const fl_disk *d, int64_t number)
{
    fl_snapshot_job job;
    fl_str image = {0};
    fl_err err = fl_snapshot_read(d, "snap", number, &job, &image);
    if (!err) {
        CHECK_INT(job.version, number * 10);
        CHECK_INT(job.generation, 3);
        CHECK_INT(job.servers, SERVERS);
        CHECK_INT(job.trainers, 4);
        CHECK(job.state == UINT64_MAX && !job.async);
        CHECK_STR(job.run, "12.34");
        CHECK_INT(image.n, 11);
    }
    for (int i = 0; i < SERVERS && !err; i++) {
        fl_snapshot_part p;
        err = fl_snapshot_part_init(&p, d, "snap", number, i);
        if (err)
            break;
        CHECK_INT(p.index.version, number * 10);
        err = read_values(&p, i);
        fl_snapshot_part_fini(&p);
    }
    fl_str_fini(&image);
    return err;
}

static int64_t newest(const fl_disk *d)
{
    int64_t last, whole;
    CHECK_OK(fl_snapshot_find(d, "snap", &last, &whole));
    CHECK(last >= whole);
    return whole;
}

static int count_folders(const fl_disk *d)
{
    fl_file_names names = {0};
    CHECK_OK(d->list(d, "snap", &names));
    const int n = (int)names.n;
    fl_file_names_fini(&names);
    return n;
}

static void two_snapshots_are_kept(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    CHECK_INT(newest(d), 0);
    for (int64_t k = 1; k <= 4; k++) {
        CHECK_OK(write_snapshot(d, k));
        CHECK_INT(newest(d), k);
    }
    CHECK_INT(count_folders(d), FL_SNAPSHOT_KEEP);
    CHECK_OK(read_snapshot(d, 3));
    CHECK_OK(read_snapshot(d, 4));
    CHECK_ERR(read_snapshot(d, 2), FL_ENOENT, "not a whole snapshot");
    fl_memdisk_free(m);
}

static void parts_alone_are_no_snapshot(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    CHECK_OK(write_snapshot(d, 1));
    CHECK_OK(write_part(d, 2, 0));
    CHECK_OK(write_part(d, 2, 1));
    CHECK_INT(newest(d), 1);
    CHECK_OK(write_snapshot(d, 3)); /* it removes what is left of 2 */
    CHECK_INT(count_folders(d), 2);
    fl_memdisk_free(m);
}

/* A disk that has room for three, of which one was given up, takes the next. */
static void what_was_given_up_makes_room(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    CHECK_OK(write_snapshot(d, 1));
    CHECK_OK(write_snapshot(d, 2));
    CHECK_OK(write_part(d, 3, 0));
    CHECK_OK(write_part(d, 4, 1)); /* of the one that begins */
    fl_snapshot_clear(d, "snap", 4);
    CHECK_INT(count_folders(d), 3);
    CHECK_INT(newest(d), 2);
    CHECK_OK(read_snapshot(d, 1));
    CHECK_OK(read_snapshot(d, 2));
    CHECK_OK(write_snapshot(d, 4));
    CHECK_INT(newest(d), 4);
    fl_memdisk_free(m);
}

/* Fail a change of the disk while the third snapshot is written. A reader then
 * finds the second or the third one, and the next one is written. False: the
 * disk has seen fewer changes. */
static bool fail_one(int64_t n, int what)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    CHECK_OK(write_snapshot(d, 1));
    CHECK_OK(write_snapshot(d, 2));
    (what ? fl_memdisk_fail_after : fl_memdisk_fail_once)(m, n);
    const fl_err err = write_snapshot(d, 3);
    fl_memdisk_fail_after(m, -1);
    if (what == 2)
        fl_memdisk_crash(m, n % 2);
    const int64_t found = newest(d);
    CHECK(found == 3 || (found == 2 && err));
    CHECK_OK(read_snapshot(d, found));
    CHECK_OK(write_snapshot(d, 4));
    CHECK_INT(newest(d), 4);
    CHECK_OK(read_snapshot(d, 4));
    CHECK_INT(count_folders(d), FL_SNAPSHOT_KEEP);
    fl_memdisk_free(m);
    return err;
}

/* Changes whose failure a save reports, tried one after the other. */
static void every_write_fails_in_turn(void)
{
    for (int what = 0; what < 3; what++) {
        int failed = 0;
        for (int64_t n = 0; n < 150; n++)
            failed += fail_one(n, what);
        CHECK(failed > 40);
    }
}

/* The disk is full after any number of bytes: the second snapshot stays, until
 * there is room for the third. */
static void a_full_disk_leaves_the_old_one(void)
{
    int failed = 0;
    fl_err err = FL_EIO;
    for (int64_t room = 0; err; room++) {
        fl_memdisk *m = fl_memdisk_new();
        const fl_disk *d = fl_memdisk_disk(m);
        CHECK_OK(write_snapshot(d, 1));
        CHECK_OK(write_snapshot(d, 2));
        fl_memdisk_fill(m, room);
        err = write_snapshot(d, 3);
        failed += err != FL_OK;
        fl_memdisk_fill(m, -1);
        const int64_t found = newest(d);
        CHECK(found == 3 || (found == 2 && err));
        CHECK_OK(read_snapshot(d, found));
        CHECK_OK(write_snapshot(d, 4));
        CHECK_INT(newest(d), 4);
        fl_memdisk_free(m);
    }
    CHECK(failed > 700); /* as many as it has bytes */
}

/* A disk that cannot read one of its files, as when the process has too many
 * files open. */
static struct {
    const fl_disk *below;
    const char *path;
} unread;

static fl_err refuse_file(const fl_disk *d, const char *path, size_t limit,
                          fl_str *out)
{
    const fl_disk *below = unread.below;
    int64_t bytes;
    if (strcmp(path, unread.path) != 0 || below->size(below, path, &bytes))
        return below->read(below, path, limit, out);
    return fl_fail(FL_EIO, "%s: cannot open it", path);
}

/* One whose manifest cannot be read may be whole: it stays. */
static void a_snapshot_that_cannot_be_read_stays(void)
{
    static const char *const paths_of[] = {"snap/snapshot-2/__manifest__",
                                           "snap/snapshot-3/__manifest__"};
    for (int i = 0; i < 2; i++) {
        fl_memdisk *m = fl_memdisk_new();
        fl_disk d = *fl_memdisk_disk(m);
        CHECK_OK(write_snapshot(&d, 1));
        CHECK_OK(write_snapshot(&d, 2));
        unread.below = fl_memdisk_disk(m);
        unread.path = paths_of[i];
        d.read = refuse_file;
        CHECK_OK(write_snapshot(&d, 3));
        CHECK_OK(read_snapshot(unread.below, 2));
        CHECK_OK(read_snapshot(unread.below, 3));
        CHECK_OK(write_snapshot(unread.below, 4));
        CHECK_INT(count_folders(&d), FL_SNAPSHOT_KEEP);
        fl_memdisk_free(m);
    }
}

/* Server 1 does not remove its part of one, either, though its parts of two
 * newer snapshots were given up. */
static void nor_is_a_part_of_it_removed(void)
{
    fl_memdisk *m = fl_memdisk_new();
    fl_disk d = *fl_memdisk_disk(m);
    CHECK_OK(write_snapshot(&d, 1));
    for (int64_t k = 2; k <= 4; k++)
        CHECK_OK(write_part(&d, k, 1));
    unread.below = fl_memdisk_disk(m);
    unread.path = "snap/snapshot-1/__manifest__";
    d.read = refuse_file;
    fl_snapshot_tidy(&d, "snap", 1, 4);
    CHECK_OK(read_snapshot(unread.below, 1));
    fl_memdisk_free(m);
}

/* --- damage --- */

static void a_damaged_one_is_set_aside(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_snapshot_numbers all = {0};
    int64_t last, whole;
    char *path;
    CHECK_OK(write_snapshot(d, 1));
    CHECK_OK(write_snapshot(d, 2));
    CHECK_OK(fl_snapshot_set_aside(d, "snap", 2, &path));
    CHECK_STR(path, "snap/snapshot-2.damaged");
    fl_mem_free(path);
    CHECK_OK(fl_snapshot_find(d, "snap", &last, &whole));
    CHECK_INT(last, 2); /* its number is not given again */
    CHECK_INT(whole, 1);
    CHECK_OK(write_snapshot(d, 3));
    CHECK_OK(fl_snapshot_list(d, "snap", &all));
    CHECK(all.n == 2 && all.at[0] == 1 && all.at[1] == 3);
    CHECK_INT(count_folders(d), 3); /* it is not one of the two that are kept */
    CHECK_OK(write_snapshot(d, 4));
    CHECK_INT(count_folders(d), 2);
    CHECK_INT(fl_snapshot_set_aside(d, "snap", 9, &path), FL_ENOENT);
    fl_mem_free(path);
    fl_vec_fini(&all);
    fl_memdisk_free(m);
}

typedef FL_VEC(char *) paths;

static void list_files(const fl_disk *d, const char *dir, paths *out)
{
    fl_file_names names = {0};
    CHECK_OK(d->list(d, dir, &names));
    for (int64_t i = 0; i < names.n; i++) {
        int64_t size;
        char *path = fl_path_join(dir, names.at[i]);
        if (d->size(d, path, &size)) {
            list_files(d, path, out);
            fl_mem_free(path);
        } else {
            fl_push(out, path);
        }
    }
    fl_file_names_fini(&names);
}

static fl_err check_folder(const fl_folder *f, void *user)
{
    fl_str text = {0};
    fl_err err = FL_OK;
    for (int64_t i = 0; i < f->manifest.file.n && !err; i++)
        err = fl_folder_read(f, f->manifest.file.at[i].name, 1 << 20, &text);
    fl_str_fini(&text);
    return err;
}

typedef struct checking {
    const fl_disk *disk;
    fl_err err;
} checking;

static void check_part(void *user, const char *path)
{
    checking *c = user;
    if (!c->err)
        c->err = fl_folder_visit(c->disk, path, check_folder, NULL);
}

/* Every flipped byte is found, and the sentence names the file. */
static void every_flipped_byte_is_found(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    paths all = {0};
    fl_str text = {0};
    int64_t flipped = 0;
    CHECK_OK(write_snapshot(d, 1));
    list_files(d, "snap", &all);
    CHECK_INT(all.n, 9); /* 3 in each part, 3 above them */
    for (int64_t i = 0; i < all.n; i++) {
        CHECK_OK(d->read(d, all.at[i], 1 << 20, &text));
        for (size_t k = 0; k < text.n; k++, flipped++) {
            checking c = {.disk = d};
            text.at[k] ^= 1;
            CHECK_OK(fl_disk_write(d, all.at[i], text.at, text.n, false));
            check_part(&c, "snap/snapshot-1");
            CHECK_OK(fl_snapshot_parts(d, "snap/snapshot-1", check_part, &c));
            CHECK(c.err);
            CHECK(strstr(fl_errmsg(), all.at[i]));
            text.at[k] ^= 1;
        }
        CHECK_OK(fl_disk_write(d, all.at[i], text.at, text.n, false));
        fl_mem_free(all.at[i]);
    }
    CHECK(flipped > 700);
    CHECK_OK(read_snapshot(d, 1));
    fl_vec_fini(&all);
    fl_str_fini(&text);
    fl_memdisk_free(m);
}

static void copy_file(const fl_disk *d, const char *from, const char *to)
{
    fl_str text = {0};
    CHECK_OK(d->read(d, from, 1 << 20, &text));
    CHECK_OK(fl_disk_write(d, to, text.at, text.n, false));
    fl_str_fini(&text);
}

/* A part that is whole, but of another snapshot, or of another server. */
static void a_foreign_part_is_refused(void)
{
    static const char *const from[] = {"snapshot-1/server-1",
                                       "snapshot-2/server-0"};
    static const char *const files[] = {"data", "index", "__manifest__"};
    for (int i = 0; i < 2; i++) {
        fl_memdisk *m = fl_memdisk_new();
        const fl_disk *d = fl_memdisk_disk(m);
        fl_snapshot_part part;
        CHECK_OK(write_snapshot(d, 1));
        CHECK_OK(write_snapshot(d, 2));
        for (int k = 0; k < 3; k++) {
            char source[64], to[64];
            snprintf(source, sizeof source, "snap/%s/%s", from[i], files[k]);
            snprintf(to, sizeof to, "snap/snapshot-2/server-1/%s", files[k]);
            copy_file(d, source, to);
        }
        CHECK_ERR(fl_snapshot_part_init(&part, d, "snap", 2, 1), FL_EPROTO,
                  "snap/snapshot-2/server-1/__manifest__");
        CHECK_OK(d->remove(d, "snap/snapshot-2/__manifest__"));
        CHECK_ERR(fl_snapshot_part_init(&part, d, "snap", 2, 1), FL_EPROTO,
                  "snap/snapshot-2/server-1 is the part of server");
        fl_memdisk_free(m);
    }
}

static void a_name_with_an_end_of_line_is_refused(void)
{
    fl_memdisk *m = fl_memdisk_new();
    fl_stage s;
    fl_snapshot_index x = {.servers = 1, .number = 1};
    fl_push(&x.table, ((fl_snapshot_table){.name = fl_mem_strdup("a\nb")}));
    CHECK_OK(fl_snapshot_begin(&s, fl_memdisk_disk(m), "snap", &x));
    CHECK_ERR(fl_snapshot_end(&s, &x), FL_EINVAL, "end of line");
    fl_stage_fini(&s);
    fl_snapshot_index_fini(&x);
    fl_memdisk_free(m);
}

const fl_test fl_tests[] = {
    {"two snapshots are kept", two_snapshots_are_kept},
    {"parts alone are no snapshot", parts_alone_are_no_snapshot},
    {"what was given up makes room", what_was_given_up_makes_room},
    {"every write fails in turn", every_write_fails_in_turn},
    {"every flipped byte is found", every_flipped_byte_is_found},
    {"a full disk leaves the old snapshot", a_full_disk_leaves_the_old_one},
    {"a snapshot that cannot be read stays",
     a_snapshot_that_cannot_be_read_stays},
    {"nor is a part of it removed", nor_is_a_part_of_it_removed},
    {"a damaged snapshot is set aside", a_damaged_one_is_set_aside},
    {"a foreign part is refused", a_foreign_part_is_refused},
    {"a name with an end of line is refused",
     a_name_with_an_end_of_line_is_refused},
    {0},
};
