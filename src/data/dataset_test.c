/* SPDX-License-Identifier: Apache-2.0 */
#include "data/test_data.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Lines whose label tells their number, from `from` on. */
static const char *numbered(const char *name, int from, int n)
{
    fl_str text = {0};
    fl_str_add(&text, "");
    for (int i = from; i < from + n; i++)
        fl_str_printf(&text, "2 %d 0.5 1 %d 1 %d\n", i, i * 10, i);
    const char *path = test_file(name, text.at);
    fl_str_fini(&text);
    return path;
}

static void batches_go_over_files(void)
{
    const char *files[] = {numbered("a", 0, 3), numbered("b", 3, 0),
                           numbered("c", 3, 2)};
    test_reads(&(fl_dataset_opts){.n_files = 3, .files = files, .batch = 2},
               "[0 0.5|1 0.5] {0 1 2}[0|10] [0|1]\n"
               "[2 0.5|3 0.5] {0 1 2}[20|30] [2|3]\n"
               "[4 0.5] {0 1}[40] [4]\n");
}

static const char *zipped(const char *name, const char *text, size_t cut)
{
    unsigned char out[4096];
    z_stream z = {0};
    CHECK_INT(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, 0), Z_OK);
    z.next_in = (unsigned char *)text;
    z.avail_in = (uInt)strlen(text);
    z.next_out = out;
    z.avail_out = sizeof out;
    CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t n = sizeof out - z.avail_out;
    deflateEnd(&z);
    return test_file_of(name, out, n - cut);
}

static const char *one = "2 1 2 1 3 1 4\n";

static void gzip_is_unpacked(void)
{
    const char *file = zipped("z.gz", one, 0);
    const fl_dataset_opts o = {.n_files = 1, .files = &file};
    test_reads(&o, "[1 2] {0 1}[3] [4]\n");
    fl_str member = {0}, all = {0};
    CHECK_OK(fl_disk_real()->read(fl_disk_real(), file, 4096, &member));
    fl_str_bytes(&all, member.at, member.n);
    fl_str_bytes(&all, member.at, member.n);
    fl_str_bytes(&all, "\0\0\0", 3); /* padding, as tapes have it */
    file = test_file_of("zz.gz", all.at, all.n);
    test_reads(&o, "[1 2|1 2] {0 1 2}[3|3] [4|4]\n");
    fl_str_fini(&member);
    fl_str_fini(&all);
}

static void gzip_that_is_cut_off_is_an_error(void)
{
    const char *file = zipped("cut.gz", one, 9);
    const fl_dataset_opts o = {.n_files = 1, .files = &file};
    test_fails(&o, FL_EPROTO, "cut.gz: this gzip file is cut off");
    file = test_file("mark.gz", "\x1f\x8b no more than the mark");
    test_fails(&o, FL_EPROTO, "mark.gz: this gzip file is damaged");
}

static void pipe_command_is_asked(void)
{
    const char *file = test_file("raw", "4\n5\n");
    test_reads(&(fl_dataset_opts){.n_files = 1,
                                  .files = &file,
                                  .pipe = "sed 's/.*/2 1 2 1 3 1 &/'"},
               "[1 2|1 2] {0 1 2}[3|3] [4|5]\n");
}

static void pipe_command_that_fails_says_so(void)
{
    const char *file = test_file("raw", "2 1 2 1 3 1 4\n2 1 2");
    fl_dataset_opts o = {.n_files = 1, .files = &file};
    o.pipe = "cat; echo it broke >&2; exit 7"; /* half a line is no bad line */
    test_fails(&o, FL_EIO, "ended with code 7; its last output: it broke (on ");
    o.pipe = "no-such-reader-here";
    test_fails(&o, FL_EIO, "ended with code 127");
    o.pipe = "kill -TERM $$";
    test_fails(&o, FL_EIO, "ended by signal 15");
    o.pipe = "yes flood | head -c 2000000 >&2; exit 2";
    test_fails(&o, FL_EIO, "ended with code 2");
}

static void flood_with_success_is_read(void)
{
    const char *file = test_file("raw", one);
    test_reads(&(fl_dataset_opts){.n_files = 1,
                                  .files = &file,
                                  .pipe = "yes | head -c 2000000 >&2; cat; "
                                          "yes | head -c 2000000 >&2"},
               "[1 2] {0 1}[3] [4]\n");
}

/* Has this process opened the file? */
static bool is_open(const char *path)
{
    char link[64], target[512];
    for (int fd = 0; fd < 64; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(link, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = 0;
        if (!strcmp(target, path))
            return true;
    }
    return false;
}

/* A reader, and what there is when it hangs: a file that its command made, or
 * the pipe that it has opened. */
typedef struct hanging {
    fl_reader *r;
    const char *sign;
} hanging;

static void cancel(void *user)
{
    const hanging *h = user;
    struct stat s;
    while (stat(h->sign, &s) || (S_ISFIFO(s.st_mode) && !is_open(h->sign)))
        usleep(1000);
    fl_reader_cancel(h->r);
}

/* A read that would take for ever ends when another thread says so. */
static void hangs_until_cancelled(const fl_dataset_opts *o, const char *sign)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        fl_pool *pool;
        fl_group group = {0};
        hanging h = {.sign = sign};
        fl_err err;
        fl_dataset *d = test_set(o);
        CHECK_OK(fl_pool_new("cancel", 1, &pool));
        CHECK_OK(
            fl_dataset_open(d, 1, &(fl_reader_opts){.ahead = ahead}, &h.r));
        fl_pool_submit(pool, &group, cancel, &h);
        char *text = test_drain(h.r, &err);
        CHECK_ERR(err, FL_EINTR, "cancelled");
        fl_mem_free(text);
        CHECK_OK(fl_pool_wait(pool, &group, -1));
        fl_reader_free(h.r);
        fl_dataset_free(d);
        fl_pool_free(pool);
        if (o->pipe)
            CHECK_INT(unlink(sign), 0);
    }
}

static void pipe_command_that_hangs_is_cancelled(void)
{
    char sign[512], command[1024];
    const char *file = test_file("raw", one);
    snprintf(sign, sizeof sign, "%s/hangs", fl_test_dir());
    snprintf(command, sizeof command, "cat; touch '%s'; sleep 600", sign);
    hangs_until_cancelled(
        &(fl_dataset_opts){.n_files = 1, .files = &file, .pipe = command},
        sign);
}

static void fifo_without_writer_is_cancelled(void)
{
    char path[512];
    const char *file = path;
    snprintf(path, sizeof path, "%s/fifo", fl_test_dir());
    CHECK_INT(mkfifo(path, 0600), 0);
    hangs_until_cancelled(&(fl_dataset_opts){.n_files = 1, .files = &file},
                          path);
}

static void reader_may_end_before_its_command(void)
{
    fl_reader *r;
    const char *file = test_file("raw", one);
    fl_dataset *d = test_set(&(fl_dataset_opts){
        .n_files = 1, .files = &file, .pipe = "yes 2 1 2 1 3 1 4"});
    CHECK_OK(fl_dataset_open(d, 1, &(fl_reader_opts){.ahead = 3}, &r));
    fl_tensor t[TEST_SLOTS] = {0};
    int64_t rows;
    CHECK_OK(fl_reader_next(r, t, &rows));
    CHECK_INT(rows, 32);
    for (int i = 0; i < TEST_SLOTS; i++)
        fl_tensor_fini(&t[i]);
    fl_reader_free(r);
    fl_dataset_free(d);
}

static void missing_file_is_named(void)
{
    const char *files[] = {"/no/such/file"};
    fl_dataset_opts o = {.n_files = 1, .files = files};
    test_fails(&o, FL_ENOENT, "/no/such/file: cannot open it: No such file");
    o.pipe = "cat -";
    test_fails(&o, FL_ENOENT, "/no/such/file: cannot open it");
    files[0] = fl_test_dir();
    test_fails(&o, FL_EIO, "Is a directory");
}

static void empty_list_is_an_error(void)
{
    fl_reader *r;
    fl_dataset *d = test_set(&(fl_dataset_opts){.n_files = 0});
    CHECK_ERR(fl_dataset_open(d, 1, NULL, &r), FL_EINVAL,
              "the list of files is empty");
    CHECK_OK(fl_dataset_load(d)); /* a share of nothing is nothing yet */
    CHECK_OK(fl_dataset_wait(d, -1));
    CHECK(fl_dataset_loaded(d));
    CHECK_OK(fl_dataset_shuffle(d, 1));
    CHECK_ERR(fl_dataset_open(d, 1, NULL, &r), FL_EINVAL,
              "the list of files is empty");
    fl_dataset_free(d);
}

static void line_without_end_is_an_error(void)
{
    const char *file = test_file("raw", one);
    test_fails(&(fl_dataset_opts){.n_files = 1,
                                  .files = &file,
                                  .pipe = "cat; yes '1 ' | tr -d '\\n'"},
               FL_EPROTO, "raw:2:1: the line has more than 16777216 bytes");
}

static void bad_lines_are_skipped_within_the_budget(void)
{
    fl_reader *r;
    fl_err err;
    const char *file = test_file("bad", "2 1 2 1 3 1 4\n"
                                        "2 1 2 1 x 1 4\n"
                                        "nothing\n"
                                        "2 5 6 2 7 8 1 9\n");
    fl_dataset_opts o = {.n_files = 1, .files = &file, .bad_lines = 2};
    test_reads(&o, "[1 2|5 6] {0 1 3}[3|7|8] [4|9]\n");
    fl_dataset *d = test_set(&o);
    CHECK_OK(fl_dataset_open(d, 1, NULL, &r));
    fl_mem_free(test_drain(r, &err));
    CHECK_INT(fl_reader_look(r).bad_lines, 2);
    CHECK(strstr(fl_reader_bad_line(r, 1), "bad:3:1: the count of slot"));
    CHECK(!fl_reader_bad_line(r, 2));
    fl_reader_free(r);
    fl_dataset_free(d);
    o.bad_lines = 1;
    test_fails(
        &o, FL_EPROTO,
        "(bad lines that were skipped before it: 1, which is the limit)");
}

static void failure_stays(void)
{
    fl_reader *r;
    fl_tensor t[TEST_SLOTS] = {0};
    int64_t rows;
    const char *file = test_file("bad", "x\n2 1 2 1 3 1 4\n");
    fl_dataset *d = test_set(&(fl_dataset_opts){.n_files = 1, .files = &file});
    CHECK_OK(fl_dataset_open(d, 1, NULL, &r));
    CHECK_ERR(fl_reader_next(r, t, &rows), FL_EPROTO, "bad:1:1:");
    CHECK_ERR(fl_reader_next(r, t, &rows), FL_EPROTO, "bad:1:1:");
    for (int i = 0; i < TEST_SLOTS; i++)
        fl_tensor_fini(&t[i]);
    fl_reader_free(r);
    fl_dataset_free(d);
}

/* The sum of all labels, and how many readers had any. */
typedef struct sum {
    fl_reader *reader;
    int64_t labels, examples;
    fl_err err;
} sum;

static void add_up(void *arg)
{
    sum *s = arg;
    fl_tensor t[TEST_SLOTS] = {0};
    int64_t rows = 1;
    while (!(s->err = fl_reader_next(s->reader, t, &rows)) && rows)
        for (int64_t i = 0; i < rows; i++)
            s->labels += ((int64_t *)t[2].data)[i];
    s->examples = fl_reader_look(s->reader).examples;
    for (int i = 0; i < TEST_SLOTS; i++)
        fl_tensor_fini(&t[i]);
}

static void shares_all(fl_dataset *d, int readers, int ahead)
{
    fl_reader *r[8];
    sum s[8] = {0};
    fl_pool *pool;
    fl_group group = {0};
    int64_t labels = 0, examples = 0;
    CHECK_OK(fl_pool_new("sum", readers, &pool));
    CHECK_OK(fl_dataset_open(d, readers, &(fl_reader_opts){.ahead = ahead}, r));
    for (int i = 0; i < readers; i++) {
        s[i].reader = r[i];
        fl_pool_submit(pool, &group, add_up, &s[i]);
    }
    CHECK_OK(fl_pool_wait(pool, &group, -1));
    for (int i = 0; i < readers; i++) {
        CHECK_OK(s[i].err);
        labels += s[i].labels;
        examples += s[i].examples;
        fl_reader_free(r[i]);
    }
    fl_pool_free(pool);
    CHECK_INT(examples, 3000);
    CHECK_INT(labels, 3000 * 2999 / 2);
}

static void readers_share_a_pass(void)
{
    const char *files[] = {numbered("a", 0, 1000), numbered("b", 1000, 1000),
                           numbered("c", 2000, 1000)};
    fl_dataset *d = test_set(&(fl_dataset_opts){
        .n_files = 3, .files = files, .batch = 7, .threads = 8});
    CHECK_INT(fl_dataset_width(d), 3); /* more threads than files */
    shares_all(d, 2, 0);
    shares_all(d, 8, 0);
    shares_all(d, 3, 2);
    CHECK_OK(fl_dataset_load(d));
    CHECK_OK(fl_dataset_wait(d, -1));
    CHECK_INT(fl_dataset_width(d), 8);
    shares_all(d, 4, 0);
    shares_all(d, 2, 1);
    fl_dataset_free(d);
}

/* --- in memory --- */

static fl_dataset *loaded(int threads, int batch)
{
    const char *files[] = {numbered("a", 0, 3), numbered("b", 3, 1),
                           numbered("c", 4, 4)};
    fl_dataset *d = test_set(&(fl_dataset_opts){
        .n_files = 3, .files = files, .threads = threads, .batch = batch});
    CHECK_OK(fl_dataset_load(d));
    CHECK_OK(fl_dataset_wait(d, -1));
    return d;
}

static char *labels(fl_dataset *d)
{
    fl_reader *r;
    fl_tensor t[TEST_SLOTS] = {0};
    fl_str out = {0};
    int64_t rows = 1;
    CHECK_OK(fl_dataset_open(d, 1, NULL, &r));
    while (rows) {
        CHECK_OK(fl_reader_next(r, t, &rows));
        for (int64_t i = 0; i < rows; i++) {
            const int64_t label = ((int64_t *)t[2].data)[i];
            CHECK_INT(((int64_t *)t[1].data)[i], 10 * label);
            fl_str_printf(&out, "%lld ", (long long)label);
        }
    }
    for (int i = 0; i < TEST_SLOTS; i++)
        fl_tensor_fini(&t[i]);
    fl_reader_free(r);
    return fl_str_take(&out);
}

static void memory_keeps_the_order_of_files(void)
{
    for (int threads = 1; threads < 5; threads++) {
        fl_dataset *d = loaded(threads, 3);
        char *order = labels(d);
        CHECK_INT(fl_dataset_size(d), 8);
        CHECK_STR(order, "0 1 2 3 4 5 6 7 ");
        fl_mem_free(order);
        fl_dataset_free(d);
    }
}

static void shuffling_follows_the_seed(void)
{
    fl_dataset *d = loaded(1, 3), *e = loaded(2, 5);
    CHECK_OK(fl_dataset_shuffle(d, 5));
    CHECK_OK(fl_dataset_shuffle(e, 5));
    char *a = labels(d), *b = labels(e);
    CHECK_STR(a, b);
    CHECK(strcmp(a, "0 1 2 3 4 5 6 7 "));
    CHECK_OK(fl_dataset_shuffle(d, 5)); /* goes on from where it is */
    char *c = labels(d);
    CHECK(strcmp(a, c));
    fl_mem_free(a);
    fl_mem_free(b);
    fl_mem_free(c);
    fl_dataset_free(d);
    fl_dataset_free(e);
}

static void memory_is_released(void)
{
    fl_dataset *d = loaded(1, 3);
    fl_dataset_release(d);
    CHECK_INT(fl_dataset_size(d), 0);
    CHECK_ERR(fl_dataset_shuffle(d, 1), FL_EINVAL,
              "cannot be shuffled: load it first");
    CHECK_ERR(fl_dataset_wait(d, -1), FL_EINVAL, "is not being loaded");
    fl_dataset_release(d); /* twice does no harm */
    fl_dataset_free(d);
    d = fl_dataset_new();
    CHECK_ERR(fl_dataset_load(d), FL_EINVAL, "set its slots and files first");
    fl_dataset_release(d);
    fl_dataset_free(d);
}

static void memory_is_loaded_anew(void)
{
    fl_dataset *d = loaded(2, 3);
    CHECK_OK(fl_dataset_load(d));
    CHECK_OK(fl_dataset_wait(d, -1));
    char *order = labels(d);
    CHECK_STR(order, "0 1 2 3 4 5 6 7 ");
    fl_mem_free(order);
    fl_dataset_free(d);
}

static void load_tells_the_cause(void)
{
    const char *files[] = {test_file("slow", one), test_file("x", "x\n")};
    fl_dataset *d = test_set(&(fl_dataset_opts){
        .n_files = 2,
        .files = files,
        .threads = 2,
        .pipe = "read x; test \"$x\" = x && echo x || sleep 600"});
    CHECK_OK(fl_dataset_load(d));
    CHECK_ERR(fl_dataset_wait(d, -1), FL_EPROTO, "x:1:1: the count");
    CHECK_INT(fl_dataset_size(d), 0);
    fl_dataset_free(d);
}

static void load_that_hangs_is_released(void)
{
    const char *file = test_file("slow", one);
    fl_dataset *d = test_set(
        &(fl_dataset_opts){.n_files = 1, .files = &file, .pipe = "sleep 600"});
    CHECK_OK(fl_dataset_load(d));
    CHECK_ERR(fl_dataset_wait(d, 1000000), FL_ETIMEOUT, "not done");
    CHECK_ERR(fl_dataset_load(d), FL_EINVAL, "still being loaded");
    fl_dataset_free(d);
}

static void open_readers_keep_it_as_it_is(void)
{
    fl_reader *r;
    fl_dataset *d = loaded(1, 3);
    const fl_dataset_opts o = {.n_slots = 1, .slots = test_slots};
    CHECK_OK(fl_dataset_open(d, 1, NULL, &r));
    CHECK_ERR(fl_dataset_shuffle(d, 1), FL_EINVAL, "1 open readers");
    CHECK_ERR(fl_dataset_set(d, &o), FL_EINVAL, "1 open readers");
    fl_reader_free(r);
    CHECK_ERR(fl_dataset_set(d, &o), FL_EINVAL, "in memory have other slots");
    fl_dataset_free(d);
}

/* After the first pass over the ring nothing is allocated any more. */
static void steady_state_allocates_nothing(void)
{
    const char *file = numbered("a", 100, 640);
    for (int load = 0; load < 2; load++) {
        fl_reader *r;
        fl_tensor t[TEST_SLOTS] = {0};
        int64_t rows;
        fl_dataset *d =
            test_set(&(fl_dataset_opts){.n_files = 1, .files = &file});
        if (load) {
            CHECK_OK(fl_dataset_load(d));
            CHECK_OK(fl_dataset_wait(d, -1));
        }
        CHECK_OK(fl_dataset_open(d, 1, NULL, &r));
        for (int i = 0; i < 3; i++)
            CHECK_OK(fl_reader_next(r, t, &rows));
        const uint64_t before = fl_mem_count();
        for (int i = 3; i < 20; i++) {
            CHECK_OK(fl_reader_next(r, t, &rows));
            CHECK_INT(rows, 32);
        }
        CHECK_INT((int64_t)fl_mem_count(), (int64_t)before);
        for (int i = 0; i < TEST_SLOTS; i++)
            fl_tensor_fini(&t[i]);
        fl_reader_free(r);
        fl_dataset_free(d);
    }
}

/* A tensor that someone else holds a share of keeps its values. */
static void shared_tensors_are_left_alone(void)
{
    fl_reader *r;
    fl_tensor t[TEST_SLOTS] = {0}, kept = {0};
    int64_t rows;
    fl_dataset *d = loaded(1, 4);
    CHECK_OK(fl_dataset_open(d, 1, NULL, &r));
    CHECK_OK(fl_reader_next(r, t, &rows));
    CHECK_OK(fl_tensor_ref(&kept, &t[1]));
    CHECK_OK(fl_reader_next(r, t, &rows));
    CHECK_INT(((int64_t *)kept.data)[1], 10);
    CHECK_INT(((int64_t *)t[1].data)[1], 50);
    fl_tensor_fini(&kept);
    for (int i = 0; i < TEST_SLOTS; i++)
        fl_tensor_fini(&t[i]);
    fl_reader_free(r);
    fl_dataset_free(d);
}

/* Read `n` batches, then go on from their position with new readers: together
 * they are all batches. */
static void read_in_two(fl_dataset *d, int n, int ahead, const char *want)
{
    const fl_reader_opts opts = {.ahead = ahead};
    fl_reader *r;
    fl_tensor t[TEST_SLOTS] = {0};
    fl_position at = {0};
    fl_str got = {0};
    fl_err err;
    int64_t rows;
    CHECK_OK(fl_dataset_open(d, 1, &opts, &r));
    for (int k = 0; k < n; k++) {
        CHECK_OK(fl_reader_next(r, t, &rows));
        for (int i = 0; i < TEST_SLOTS; i++) {
            fl_str_add(&got, i ? " " : "");
            test_show(&t[i], &got);
        }
        fl_str_add(&got, "\n");
        for (int64_t i = 0; i < fl_reader_used(r)->n; i++)
            fl_position_add(&at, fl_reader_used(r)->at[i]);
    }
    fl_reader_free(r);
    CHECK_OK(fl_dataset_open_at(d, 1, &opts, &at, &r));
    char *rest = test_drain(r, &err);
    CHECK_OK(err);
    fl_str_add(&got, rest);
    CHECK_STR(got.at, want);
    fl_mem_free(rest);
    fl_str_fini(&got);
    fl_reader_free(r);
    for (int i = 0; i < TEST_SLOTS; i++)
        fl_tensor_fini(&t[i]);
    fl_position_fini(&at);
}

/* Batches of two go over the ends of files; the last line has no end. */
static void readers_go_on_from_a_position(void)
{
    static const char *const pipe[] = {NULL, "sed s/7/8/", NULL};
    const char *files[] = {
        test_file("a", "2 1 0 1 7 1 0\n2 2 0 1 8 1 1\n2 3 0 1 9 1 0\n"),
        test_file("empty", ""),
        test_file("b", "2 4 0 1 7 1 0\n2 5 0 2 8 9 1 1")};
    for (int kind = 0; kind < 3; kind++) {
        fl_dataset_opts o = {
            .files = files, .n_files = 3, .batch = 2, .pipe = pipe[kind]};
        fl_err err;
        char *want = test_read(&o, 0, &err);
        fl_dataset *d = test_set(&o);
        if (kind == 2) {
            CHECK_OK(fl_dataset_load(d));
            CHECK_OK(fl_dataset_wait(d, -1));
        }
        for (int n = 0; n <= 3; n++)
            for (int ahead = 0; ahead < 3; ahead++)
                read_in_two(d, n, ahead, want);
        fl_dataset_free(d);
        fl_mem_free(want);
    }
}

static void a_file_that_got_shorter_is_named(void)
{
    const char *file = test_file("a", "2 1 0 1 7 1 0\n");
    fl_dataset *d = test_set(&(fl_dataset_opts){.files = &file, .n_files = 1});
    fl_position at = {0};
    fl_reader *r;
    fl_tensor t[TEST_SLOTS] = {0};
    int64_t rows;
    fl_position_add(&at, (fl_used){0, 100, 7});
    CHECK_OK(fl_dataset_open_at(d, 1, NULL, &at, &r));
    CHECK(fl_reader_next(r, t, &rows) == FL_EIO);
    CHECK(strstr(fl_errmsg(), "/a: the data ends before byte 100"));
    for (int i = 0; i < TEST_SLOTS; i++)
        fl_tensor_fini(&t[i]);
    fl_reader_free(r);
    fl_dataset_free(d);
    fl_position_fini(&at);
}

const fl_test fl_tests[] = {
    {"dataset readers go on from a position", readers_go_on_from_a_position},
    {"dataset names a file that got shorter", a_file_that_got_shorter_is_named},
    {"dataset batches go over files", batches_go_over_files},
    {"dataset unpacks gzip", gzip_is_unpacked},
    {"dataset refuses gzip that is cut off", gzip_that_is_cut_off_is_an_error},
    {"dataset asks the pipe command", pipe_command_is_asked},
    {"dataset says how a pipe command failed", pipe_command_that_fails_says_so},
    {"dataset reads through a flood of stderr", flood_with_success_is_read},
    {"dataset cancels a pipe command that hangs",
     pipe_command_that_hangs_is_cancelled},
    {"dataset cancels a fifo without a writer",
     fifo_without_writer_is_cancelled},
    {"dataset ends a command that goes on", reader_may_end_before_its_command},
    {"dataset names a missing file", missing_file_is_named},
    {"dataset refuses an empty list of files", empty_list_is_an_error},
    {"dataset refuses a line without end", line_without_end_is_an_error},
    {"dataset skips bad lines within its budget",
     bad_lines_are_skipped_within_the_budget},
    {"dataset fails again where it failed", failure_stays},
    {"dataset readers share a pass", readers_share_a_pass},
    {"dataset in memory keeps the order of files",
     memory_keeps_the_order_of_files},
    {"dataset shuffles by its seed", shuffling_follows_the_seed},
    {"dataset releases memory", memory_is_released},
    {"dataset is loaded anew", memory_is_loaded_anew},
    {"dataset load tells the cause", load_tells_the_cause},
    {"dataset load that hangs is released", load_that_hangs_is_released},
    {"dataset stays as it is while it is read", open_readers_keep_it_as_it_is},
    {"dataset allocates nothing from the third batch on",
     steady_state_allocates_nothing},
    {"dataset leaves shared tensors alone", shared_tensors_are_left_alone},
    {0},
};
