/* SPDX-License-Identifier: Apache-2.0 */
#include "api/engine.h"
#include "base/memdisk.h"
#include "base/stage.h"
#include "base/test.h"
#include "state/snapshot.h"

#include <stdio.h>
#include <string.h>

/* Folders on a disk in memory. */
typedef struct world {
    fl_engine *e;
    fl_memdisk *disk;
} world;

static void world_init(world *w)
{
    *w = (world){fl_engine_new(), fl_memdisk_new()};
    w->e->disk = fl_memdisk_disk(w->disk);
}

static void world_fini(world *w)
{
    fl_engine_free(w->e);
    fl_memdisk_free(w->disk);
}

/* Save files whose names are letters; each holds `text`. */
static void save(world *w, const char *dir, const char *names, const char *text)
{
    fl_stage s;
    CHECK_OK(fl_stage_init(&s, w->e->disk, dir, "model"));
    for (; *names; names++) {
        const char name[] = {*names, 0};
        CHECK_OK(fl_stage_write(&s, name, &(fl_part){text, strlen(text)}, 1));
    }
    CHECK_OK(fl_stage_commit(&s));
    fl_stage_fini(&s);
}

static void a_digest_is_that_of_sha256sum(void)
{
    world w;
    char hex[FL_DIGEST_TEXT];
    world_init(&w);
    save(&w, "d", "ba", "hello\n");
    CHECK_OK(fl_digest(w.e, "d", hex));
    /* printf 'hello\n' to a and b; sha256sum a b | sha256sum */
    CHECK_STR(
        hex,
        "079ee2d23876143cdec4fe58ada08e1d57cb0d37b6553e7babdc944181972334");
    world_fini(&w);
}

static void equal_folders_have_equal_digests(void)
{
    world w;
    char a[FL_DIGEST_TEXT], b[FL_DIGEST_TEXT], *text;
    world_init(&w);
    save(&w, "x", "abc", "1");
    save(&w, "y", "c", "1"); /* in another order, in two saves */
    save(&w, "y", "ab", "1");
    CHECK_OK(fl_digest(w.e, "x", a));
    CHECK_OK(fl_digest(w.e, "y", b));
    CHECK_STR(a, b);
    CHECK_OK(fl_differ(w.e, "x", "y", &text));
    CHECK_STR(text, "");
    fl_free(text);
    save(&w, "y", "bd", "2");
    CHECK_OK(fl_digest(w.e, "y", b));
    CHECK(strcmp(a, b));
    CHECK_OK(fl_differ(w.e, "x", "y", &text));
    CHECK_STR(text, "b differs\nd is only in y\n");
    fl_free(text);
    world_fini(&w);
}

/* Flip one byte of a file, call fl_verify, and flip it back. */
static void check_flip(world *w, const char *name, size_t at)
{
    fl_str bytes = {0};
    char path[64], *text;
    const fl_disk *d = w->e->disk;
    snprintf(path, sizeof path, "d/%s", name);
    CHECK_OK(d->read(d, path, 1 << 20, &bytes));
    bytes.at[at] ^= 1;
    CHECK_OK(fl_disk_write(d, path, bytes.at, bytes.n, false));
    CHECK(fl_verify(w->e, "d", &text) != FL_OK);
    CHECK(strstr(text, name) != NULL);
    fl_free(text);
    bytes.at[at] ^= 1;
    CHECK_OK(fl_disk_write(d, path, bytes.at, bytes.n, false));
    fl_str_fini(&bytes);
}

static void every_flipped_byte_is_named(void)
{
    world w;
    char *text;
    static const char *const names[] = {"a", "b", FL_MANIFEST};
    world_init(&w);
    save(&w, "d", "ab", "some numbers");
    CHECK_OK(fl_verify(w.e, "d", &text));
    CHECK_STR(text, "");
    fl_free(text);
    for (int i = 0; i < 3; i++) {
        int64_t size;
        char path[64];
        snprintf(path, sizeof path, "d/%s", names[i]);
        CHECK_OK(w.e->disk->size(w.e->disk, path, &size));
        for (int64_t at = 0; at < size; at++)
            check_flip(&w, names[i], (size_t)at);
    }
    world_fini(&w);
}

static void a_missing_file_is_named(void)
{
    world w;
    char *text, hex[FL_DIGEST_TEXT];
    world_init(&w);
    save(&w, "d", "ab", "x");
    CHECK_OK(w.e->disk->remove(w.e->disk, "d/b"));
    CHECK_INT(fl_verify(w.e, "d", &text), FL_ENOENT);
    CHECK(strstr(text, "d/b") != NULL);
    fl_free(text);
    CHECK_INT(fl_digest(w.e, "d", hex), FL_ENOENT);
    CHECK_OK(fl_disk_write(w.e->disk, "plain/a", "x", 1, false));
    CHECK_ERR(fl_digest(w.e, "plain", hex), FL_EINVAL,
              "plain has no __manifest__");
    world_fini(&w);
}

static void a_missing_folder_is_named(void)
{
    static const char sentence[] =
        "no/such does not exist, expected a saved folder";
    world w;
    char *text, hex[FL_DIGEST_TEXT];
    world_init(&w);
    save(&w, "d", "ab", "x");
    CHECK_ERR(fl_digest(w.e, "no/such", hex), FL_ENOENT, sentence);
    CHECK_ERR(fl_differ(w.e, "d", "no/such", &text), FL_ENOENT, sentence);
    CHECK_ERR(fl_checkpoint_list(w.e, "no/such", &text), FL_ENOENT, sentence);
    CHECK_ERR(fl_verify(w.e, "no/such", &text), FL_ENOENT, sentence);
    CHECK_STR(text, "");
    fl_free(text);
    world_fini(&w);
}

/* --- snapshots --- */

enum {
    VALUES = 12, /* elements of the variable */
    ROWS = 4     /* rows of the table, of one number each */
};

/* What one server of `servers` writes: its share of the variable w, the
 * learning rate, and the rows of the table whose id falls to it. */
static void write_part(world *w, const char *base, int server, int servers,
                       int change)
{
    const int n = VALUES / servers;
    int32_t value[VALUES], rate = 7;
    fl_stage s;
    fl_snapshot_index x = {
        .server = server, .servers = servers, .number = 1, .version = 5};
    for (int i = 0; i < n; i++)
        value[i] = 100 + server * n + i;
    value[0] += change;
    fl_push(&x.tensor,
            ((fl_snapshot_tensor){.name = fl_mem_strdup("w.block"),
                                  .var = fl_mem_strdup("w"),
                                  .first = server * n,
                                  .dtype = 2,
                                  .rank = 1,
                                  .dim = {n},
                                  .bytes = n * (int64_t)sizeof *value}));
    fl_push(&x.tensor, ((fl_snapshot_tensor){.name = fl_mem_strdup("rate"),
                                             .var = fl_mem_strdup("rate"),
                                             .dtype = 2,
                                             .rank = 1,
                                             .dim = {1},
                                             .at = x.tensor.at[0].bytes,
                                             .bytes = sizeof rate}));
    CHECK_OK(fl_snapshot_begin(&s, w->e->disk, base, &x));
    CHECK_OK(fl_stage_append(&s, value, (size_t)n * sizeof *value));
    CHECK_OK(fl_stage_append(&s, &rate, sizeof rate));
    fl_push(&x.table, ((fl_snapshot_table){.name = fl_mem_strdup("rows"),
                                           .dtype = 5,
                                           .row = 8,
                                           .at = s.size}));
    for (int64_t i = ROWS - 1; i >= 0; i--)
        if (i % servers == server) {
            const int64_t row[2] = {i, 1000 + i};
            CHECK_OK(fl_stage_append(&s, row, sizeof row));
            x.table.at[0].rows++;
        }
    CHECK_OK(fl_snapshot_end(&s, &x));
    fl_stage_fini(&s);
    fl_snapshot_index_fini(&x);
}

static void write_snapshot(world *w, const char *base, int servers, int change)
{
    const fl_snapshot_job job = {.number = 1,
                                 .version = 5,
                                 .generation = 1,
                                 .servers = servers,
                                 .trainers = 1,
                                 .state = 1,
                                 .digest = "0123456789abcdef0123456789abcdef"};
    for (int i = 0; i < servers; i++)
        write_part(w, base, i, servers, change);
    CHECK_OK(fl_snapshot_commit(w->e->disk, base, &job, "coordinator", 11));
}

static void the_digest_of_a_snapshot_is_of_what_it_holds(void)
{
    world w;
    char one[FL_DIGEST_TEXT], three[FL_DIGEST_TEXT], other[FL_DIGEST_TEXT];
    world_init(&w);
    write_snapshot(&w, "one", 1, 0);
    write_snapshot(&w, "three", 3, 0);
    write_snapshot(&w, "other", 3, 1);
    CHECK_OK(fl_digest(w.e, "one/snapshot-1", one));
    CHECK_OK(fl_digest(w.e, "three/snapshot-1", three));
    CHECK_OK(fl_digest(w.e, "other/snapshot-1", other));
    CHECK_STR(one, three);
    CHECK(strcmp(one, other) != 0);
    world_fini(&w);
}

const fl_test fl_tests[] = {
    {"a digest is that of sha256sum", a_digest_is_that_of_sha256sum},
    {"equal folders have equal digests", equal_folders_have_equal_digests},
    {"every flipped byte is found and named", every_flipped_byte_is_named},
    {"a missing file is named", a_missing_file_is_named},
    {"a missing folder is named", a_missing_folder_is_named},
    {"the digest of a snapshot does not depend on the number of servers",
     the_digest_of_a_snapshot_is_of_what_it_holds},
    {0},
};
