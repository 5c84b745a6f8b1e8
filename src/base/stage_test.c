/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stage.h"

#include "base/folder.h"
#include "base/memdisk.h"
#include "base/path.h"
#include "base/test.h"

#include <stdio.h>

static const char *const names[] = {"a", "b", "sub/c", "sub/deep/d"};

enum {
    NAMES = sizeof names / sizeof *names
};

/* What a file has after save number k. */
static void text_of(const char *name, int k, char out[64])
{
    snprintf(out, 64, "%s after save %d", name, k);
}

/* Stage every file but do not commit. */
static fl_err stage_all(fl_stage *s, int k)
{
    for (int i = 0; i < NAMES; i++) {
        char text[64];
        text_of(names[i], k, text);
        FL_TRY(fl_stage_write(
            s, names[i], (fl_part[]){{text, 2}, {text + 2, strlen(text) - 2}},
            2));
    }
    return FL_OK;
}

static fl_err save(const fl_disk *d, int k, bool *committed)
{
    fl_stage s;
    fl_err err = fl_stage_init(&s, d, "m", "model");
    if (!err)
        err = stage_all(&s, k);
    if (!err)
        err = fl_stage_commit(&s);
    if (committed)
        *committed = s.committed;
    fl_stage_fini(&s);
    return err;
}

static bool is_after(const fl_str *text, const char *name, int k)
{
    char want[64];
    text_of(name, k, want);
    return text->n == strlen(want) && !memcmp(text->at, want, text->n);
}

/* Which save a reader sees: one and the same for every file. */
static fl_err see(const fl_folder *f, void *user)
{
    int *seen = user;
    fl_str text = {0};
    fl_err err = FL_OK;
    *seen = -1;
    for (int i = 0; i < NAMES && !err; i++) {
        err = fl_folder_read(f, names[i], 1000, &text);
        for (int k = 0; k < 4 && !err && !i; k++)
            if (is_after(&text, names[i], k))
                *seen = k;
        CHECK(err || is_after(&text, names[i], *seen));
    }
    fl_str_fini(&text);
    return err;
}

static int seen(const fl_disk *d)
{
    int k;
    CHECK_OK(fl_folder_visit(d, "m", see, &k));
    return k;
}

/* The folder as tools that know no manifest see it. */
static void check_plain(const fl_disk *d, int k)
{
    fl_str text = {0};
    fl_file_names found = {0};
    for (int i = 0; i < NAMES; i++) {
        char *path = fl_path_join("m", names[i]);
        CHECK_OK(d->read(d, path, 1000, &text));
        CHECK(is_after(&text, names[i], k));
        fl_mem_free(path);
    }
    CHECK_OK(d->list(d, "m", &found)); /* nothing else is left */
    CHECK_INT(found.n, 5);
    CHECK_STR(found.at[0], "__manifest__");
    CHECK_STR(found.at[3], "other");
    CHECK_STR(found.at[4], "sub");
    fl_file_names_fini(&found);
    fl_str_fini(&text);
}

static void write_other(const fl_disk *d)
{
    CHECK_OK(fl_disk_write(d, "m/other", "mine", 4, true));
}

/* Save 0 is one of the original: no manifest. */
static void write_original(const fl_disk *d)
{
    for (int i = 0; i < NAMES; i++) {
        char text[64], *path = fl_path_join("m", names[i]);
        text_of(names[i], 0, text);
        CHECK_OK(fl_disk_write(d, path, text, strlen(text), true));
        fl_mem_free(path);
    }
}

static void files_come_into_place(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_str text = {0};
    write_other(d);
    CHECK_OK(save(d, 1, NULL));
    CHECK_INT(seen(d), 1);
    check_plain(d, 1);
    CHECK_OK(d->read(d, "m/__manifest__", 1000, &text));
    CHECK_STR(text.at, "fluid manifest 1\n"
                       "kind model\n"
                       "file 14 25d0fdff a\n"
                       "file 14 d9d90235 b\n"
                       "file 18 1e1b234c sub/c\n"
                       "file 23 da5a2dd0 sub/deep/d\n"
                       "end 8ed4695b\n");
    CHECK_OK(save(d, 2, NULL));
    CHECK_INT(seen(d), 2);
    check_plain(d, 2);
    fl_str_fini(&text);
    fl_memdisk_free(m);
}

typedef enum mishap {
    KILLED,          /* kill -9 */
    FAILS_ONCE,      /* an error; then the process cleans up */
    FULL,            /* so after so many bytes: a write is short */
    POWER_LOST,      /* nothing that was not synced is left */
    POWER_LOST_LATE, /* all names are left, bytes only if synced */
    MISHAPS,
} mishap;

/* Save 2 with a mishap at change n, or after n bytes; true: there was none. */
static bool suffer(mishap what, int64_t n, bool original)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    bool committed = false;
    if (original)
        write_original(d);
    else
        CHECK_OK(save(d, 0, NULL));
    write_other(d);
    (what == FAILS_ONCE ? fl_memdisk_fail_once
     : what == FULL     ? fl_memdisk_fill
                        : fl_memdisk_fail_after)(m, n);
    const fl_err err = save(d, 2, &committed);
    fl_memdisk_fail_after(m, -1);
    fl_memdisk_fill(m, -1);
    if (what >= POWER_LOST)
        fl_memdisk_crash(m, what == POWER_LOST_LATE);
    const int k = seen(d);
    CHECK(k == 0 || k == 2);
    if (!err)
        CHECK(k == 2);
    if (what < POWER_LOST)
        CHECK((k == 2) == committed);
    CHECK_OK(save(d, 3, NULL)); /* whatever is left, the next one is whole */
    CHECK_INT(seen(d), 3);
    check_plain(d, 3);
    fl_memdisk_free(m);
    return !err;
}

static void every_mishap_leaves_the_old_or_the_new(void)
{
    for (mishap what = 0; what < MISHAPS; what++)
        for (int original = 0; original < 2; original++) {
            int64_t n = 0;
            while (!suffer(what, n, original))
                n++;
            CHECK(n > 40 && n < 400); /* each change had its turn */
        }
}

/* The save that goes on after a kill is killed, too. */
static void a_second_kill_changes_nothing(void)
{
    for (int64_t first = 0;; first++) {
        bool over = false;
        for (int64_t second = 0; !over; second++) {
            fl_memdisk *m = fl_memdisk_new();
            const fl_disk *d = fl_memdisk_disk(m);
            write_other(d);
            CHECK_OK(save(d, 0, NULL));
            fl_memdisk_fail_after(m, first);
            const bool whole = !save(d, 1, NULL);
            fl_memdisk_fail_after(m, second);
            over = !save(d, 2, NULL);
            fl_memdisk_fail_after(m, -1);
            const int k = seen(d);
            CHECK(k >= 0 && k <= 2 && (!over || k == 2) && (!whole || k));
            fl_memdisk_free(m);
            if (whole && over)
                return;
            second += first % 7; /* a sample of the square */
        }
    }
}

static void saves_at_once_do_not_meet(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_stage one, two;
    write_other(d);
    CHECK_OK(save(d, 0, NULL));
    CHECK_OK(fl_stage_init(&one, d, "m", "model"));
    CHECK_OK(stage_all(&one, 1));
    CHECK_OK(fl_stage_init(&two, d, "m", "model"));
    CHECK_OK(stage_all(&two, 2));
    CHECK_INT(seen(d), 0);
    CHECK_OK(fl_stage_commit(&two));
    CHECK_INT(seen(d), 2);
    CHECK_OK(fl_stage_commit(&one));
    CHECK_INT(seen(d), 1);
    fl_stage_fini(&one);
    fl_stage_fini(&two);
    check_plain(d, 1);
    fl_memdisk_free(m);
}

static void write_one(const fl_disk *d, const char *name, const char *text)
{
    fl_stage s;
    CHECK_OK(fl_stage_init(&s, d, "m", "model"));
    CHECK_OK(fl_stage_write(&s, name, &(fl_part){text, strlen(text)}, 1));
    CHECK_OK(fl_stage_commit(&s));
    fl_stage_fini(&s);
}

static void files_of_earlier_saves_stay_listed(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_folder f;
    fl_str text = {0};
    write_one(d, "params", "one");
    write_one(d, "state", "two");
    CHECK_OK(fl_folder_init(&f, d, "m"));
    CHECK_INT(f.manifest.file.n, 2);
    CHECK_OK(fl_folder_read(&f, "params", 10, &text));
    fl_folder_fini(&f);
    CHECK_OK(d->remove(d, "m/params")); /* by hand */
    write_one(d, "state", "three");
    CHECK_OK(fl_folder_init(&f, d, "m"));
    CHECK_INT(f.manifest.file.n, 1);
    fl_folder_fini(&f);
    fl_str_fini(&text);
    fl_memdisk_free(m);
}

/* --- a save that replaces the folder --- */

static fl_err replace_by(const fl_disk *d, const char *const name[2])
{
    fl_stage s;
    fl_err err = fl_stage_init(&s, d, "m", "model");
    s.replaces = true;
    for (int i = 0; i < 2 && !err; i++)
        err = fl_stage_write(&s, name[i], &(fl_part){name[i], 3}, 1);
    if (!err)
        err = fl_stage_commit(&s);
    fl_stage_fini(&s);
    return err;
}

static fl_err read_both(const fl_folder *f, void *user)
{
    const char *const *name = user;
    fl_str text = {0};
    fl_err err = f->manifest.file.n == 2 ? FL_OK : fl_fail(FL_EPROTO, "others");
    for (int i = 0; i < 2 && !err; i++) {
        err = fl_folder_read(f, name[i], 10, &text);
        CHECK(err || !memcmp(text.at, name[i], 3));
    }
    fl_str_fini(&text);
    return err;
}

static bool has_both(const fl_disk *d, const char *const name[2])
{
    return !fl_folder_visit(d, "m", read_both, (void *)name);
}

static int count_names(const fl_disk *d, const char *dir)
{
    fl_file_names found = {0};
    CHECK_OK(d->list(d, dir, &found));
    const int n = (int)found.n;
    fl_file_names_fini(&found);
    return n;
}

/* Replace files with a mishap at change n, or after n bytes; true: there was
 * none. */
static bool replace_badly(mishap what, int64_t n)
{
    static const char *const one[] = {"sub/one", "away/two"};
    static const char *const next[] = {"sub/two", "three"};
    static const char *const last[] = {"sub/three", "two"};
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    CHECK_OK(replace_by(d, one));
    (what == FAILS_ONCE ? fl_memdisk_fail_once
     : what == FULL     ? fl_memdisk_fill
                        : fl_memdisk_fail_after)(m, n);
    const bool whole = !replace_by(d, next);
    fl_memdisk_fail_after(m, -1);
    fl_memdisk_fill(m, -1);
    if (what >= POWER_LOST)
        fl_memdisk_crash(m, what == POWER_LOST_LATE);
    CHECK(has_both(d, next) || (!whole && has_both(d, one)));
    CHECK_OK(replace_by(d, last)); /* nothing else is left */
    CHECK(has_both(d, last));
    CHECK_INT(count_names(d, "m"), 3);
    CHECK_INT(count_names(d, "m/sub"), 1);
    fl_memdisk_free(m);
    return whole;
}

static void a_save_that_replaces_leaves_only_its_files(void)
{
    for (mishap what = 0; what < MISHAPS; what++) {
        int64_t n = 0;
        while (!replace_badly(what, n))
            n++;
        CHECK(n > 20);
    }
}

/* --- reading --- */

static fl_err read_w(const fl_disk *d)
{
    fl_str text = {0};
    const fl_err err = fl_file_read(d, "m/w", 100, &text);
    fl_str_fini(&text);
    return err;
}

static void what_was_not_saved_is_refused(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    write_one(d, "w", "123456789");
    CHECK_OK(read_w(d));
    CHECK_OK(fl_disk_write(d, "m/w", "12345678", 8, false));
    CHECK_ERR(read_w(d), FL_EPROTO,
              "m/w has 8 bytes, but m/__manifest__ says 9 (it was changed "
              "after the save: save again, restore it, or remove "
              "m/__manifest__ to load the files as they are)");
    CHECK_OK(fl_disk_write(d, "m/w", "123456788", 9, false));
    CHECK_ERR(read_w(d), FL_EPROTO,
              "m/w has the CRC-32C 116d1180, but m/__manifest__ says e3069283");
    CHECK_OK(d->remove(d, "m/w"));
    CHECK_ERR(read_w(d), FL_ENOENT,
              "m/w is missing: m/__manifest__ lists it with 9 bytes");
    CHECK_OK(fl_disk_write(d, "m/w", "any", 3, false));
    CHECK_OK(d->remove(d, "m/__manifest__"));
    CHECK_OK(read_w(d));
    CHECK_OK(fl_disk_write(d, "m/__manifest__", "", 0, false));
    CHECK_ERR(read_w(d), FL_EPROTO,
              "m/__manifest__: it has 0 bytes, too few for a manifest");
    fl_memdisk_free(m);
}

static void a_file_that_is_open_is_checked_in_parts(void)
{
    enum {
        LARGE = (5 << 20) / 2 /* bytes: three parts */
    };
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    char *bytes = fl_mem_alloc(LARGE + 1);
    fl_folder f;
    fl_file *file;
    int64_t size;
    char *path;
    memset(bytes, 'x', LARGE);
    write_one(d, "w", bytes);
    for (int bad = 0; bad < 2; bad++) {
        bytes[LARGE - 1] = bad ? 'y' : 'x';
        CHECK_OK(fl_disk_write(d, "m/w", bytes, LARGE, false));
        CHECK_OK(fl_folder_init(&f, d, "m"));
        CHECK_OK(fl_folder_find(&f, "w", &path));
        CHECK_OK(d->look(d, path, &file, &size));
        fl_mem_free(path);
        CHECK_INT(size, LARGE);
        const fl_err err = fl_folder_check(&f, "w", file, size);
        CHECK(err == (bad ? FL_EPROTO : FL_OK));
        CHECK_OK(d->close(file));
        fl_folder_fini(&f);
    }
    fl_mem_free(bytes);
    fl_memdisk_free(m);
}

/* Another save is completed while the files are read. */
typedef struct meeting {
    const fl_disk *disk;
    int saves; /* still to be made in the midst */
    int seen;
} meeting;

static fl_err read_amid_saves(const fl_folder *f, void *user)
{
    meeting *w = user;
    fl_str text = {0};
    FL_TRY(fl_folder_read(f, names[0], 100, &text));
    fl_str_fini(&text);
    if (w->saves)
        CHECK_OK(save(w->disk, w->saves--, NULL));
    return see(f, &w->seen);
}

static void a_reader_sees_one_save(void)
{
    for (int original = 0; original < 2; original++) {
        fl_memdisk *m = fl_memdisk_new();
        meeting w = {fl_memdisk_disk(m), 2, -1};
        if (original)
            write_original(w.disk);
        else
            CHECK_OK(save(w.disk, 0, NULL));
        CHECK_OK(fl_folder_visit(w.disk, "m", read_amid_saves, &w));
        CHECK_INT(w.seen, 1); /* the last: they are counted down */
        fl_memdisk_free(m);
    }
}

/* --- refusals --- */

static void bad_names_are_refused(void)
{
    fl_memdisk *m = fl_memdisk_new();
    fl_stage s;
    const fl_part part = {"x", 1};
    CHECK_OK(fl_stage_init(&s, fl_memdisk_disk(m), "m", "model"));
    CHECK_ERR(fl_stage_write(&s, "../w", &part, 1), FL_EINVAL, "\"../w\"");
    CHECK(!s.failed);
    CHECK_OK(fl_stage_write(&s, "w", &part, 1));
    CHECK_ERR(fl_stage_write(&s, "w", &part, 1), FL_EINVAL,
              "\"w\" would be saved twice into m");
    fl_stage_fini(&s);
    fl_memdisk_free(m);
}

static void what_is_in_the_way_is_found_before_the_commit(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_stage s;
    CHECK_OK(fl_disk_write(d, "m/w/x", "x", 1, false));
    CHECK_OK(fl_stage_init(&s, d, "m", "model"));
    CHECK_OK(fl_stage_write(&s, "w", &(fl_part){"x", 1}, 1));
    CHECK_ERR(fl_stage_commit(&s), FL_EIO, "m/w: cannot save a file here");
    CHECK(!s.committed && s.failed);
    fl_stage_fini(&s);
    fl_memdisk_free(m);
}

static void a_folder_holds_one_kind(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_stage s;
    write_one(d, "w", "x");
    CHECK_ERR(fl_stage_init(&s, d, "m", "checkpoint"), FL_EINVAL,
              "m holds a model, and a checkpoint cannot be saved into it");
    fl_stage_fini(&s);
    fl_memdisk_free(m);
}

static void a_damaged_manifest_is_replaced(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    write_one(d, "w", "x");
    CHECK_OK(fl_disk_write(d, "m/__manifest__", "rubbish", 7, false));
    CHECK_ERR(read_w(d), FL_EPROTO,
              "remove m/__manifest__ to load the files unchecked");
    write_one(d, "w", "y");
    CHECK_OK(read_w(d));
    fl_memdisk_free(m);
}

/* --- one file by its path --- */

static void a_file_is_listed_where_others_are(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    int64_t size;
    const fl_part part = {"x", 1};
    CHECK_OK(fl_file_write(d, "n/w", &part, 1));
    CHECK(d->size(d, "n/__manifest__", &size) == FL_ENOENT);
    write_one(d, "w", "old");
    CHECK_OK(fl_file_write(d, "m/w", &part, 1));
    CHECK_OK(read_w(d));
    CHECK_ERR(fl_file_write(d, "m/__manifest__", &part, 1), FL_EINVAL,
              "keeps this name for itself");
    fl_memdisk_free(m);
}

/* A disk that notes what was made to survive. */
static fl_str persisted;

static fl_err note_persist(const fl_disk *d, const char *path)
{
    fl_str_printf(&persisted, "%s ", path);
    return FL_OK;
}

static void folders_above_a_new_one_are_synced(void)
{
    fl_memdisk *m = fl_memdisk_new();
    fl_disk d = *fl_memdisk_disk(m);
    fl_stage s;
    d.persist = note_persist;
    CHECK_OK(fl_stage_init(&s, &d, "/x/y/model", "model"));
    fl_stage_fini(&s);
    CHECK_STR(persisted.at, "/ /x /x/y ");
    fl_str_fini(&persisted);
    fl_memdisk_free(m);
}

const fl_test fl_tests[] = {
    {"staged files come into place", files_come_into_place},
    {"every mishap leaves the old files or the new",
     every_mishap_leaves_the_old_or_the_new},
    {"a second kill changes nothing", a_second_kill_changes_nothing},
    {"saves at once do not meet", saves_at_once_do_not_meet},
    {"files of earlier saves stay listed", files_of_earlier_saves_stay_listed},
    {"a save that replaces the folder leaves only its files",
     a_save_that_replaces_leaves_only_its_files},
    {"what was not saved is refused", what_was_not_saved_is_refused},
    {"a file that is open is checked in parts",
     a_file_that_is_open_is_checked_in_parts},
    {"a reader sees one save", a_reader_sees_one_save},
    {"bad names are refused", bad_names_are_refused},
    {"what is in the way is found before the commit",
     what_is_in_the_way_is_found_before_the_commit},
    {"a folder holds one kind", a_folder_holds_one_kind},
    {"a damaged manifest is replaced", a_damaged_manifest_is_replaced},
    {"a file is listed where others are", a_file_is_listed_where_others_are},
    {"the folders above a new one are synced",
     folders_above_a_new_one_are_synced},
    {0},
};
