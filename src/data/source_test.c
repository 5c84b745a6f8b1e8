/* SPDX-License-Identifier: Apache-2.0 */
#include "data/test_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *one = "2 1 2 1 3 1 4\n";
static const char *one_read = "[1 2] {0 1}[3] [4]\n";

static void fails(const char *file, fl_err code, const char *sentence)
{
    test_fails(&(fl_dataset_opts){.n_files = 1, .files = &file}, code,
               sentence);
}

static void missing_file_tells_where_it_was_looked_for(void)
{
    char here[512], sentence[600];
    CHECK(getcwd(here, sizeof here));
    snprintf(sentence, sizeof sentence,
             "no/part: cannot open it: No such file or directory "
             "(looked for in %s)",
             here);
    fails("no/part", FL_ENOENT, sentence);
}

/* Root may read everything: be somebody else for a while. */
static void file_of_others_is_named(void)
{
    const char *file = test_file("secret", one);
    const bool root = !geteuid();
    CHECK_INT(chmod(file, 0), 0);
    CHECK_INT(chmod(fl_test_dir(), 0755), 0);
    CHECK_INT(root ? seteuid(65534) : 0, 0);
    const int fd = open(file, O_RDONLY);
    const int why = errno;
    if (fd < 0 && why == EACCES)
        fails(file, FL_EIO, "secret: cannot open it: Permission denied");
    CHECK_INT(root ? seteuid(0) : 0, 0);
    CHECK(fd < 0);
}

static void folder_is_no_file(void)
{
    fails(fl_test_dir(), FL_EIO, ": cannot read it: Is a directory");
}

/* The bytes of a disk that fails: reading memory at 0 does. */
static void reading_that_fails_is_told(void)
{
    fails("/proc/self/mem", FL_EIO,
          "/proc/self/mem: cannot read it: Input/output error");
}

static void names_may_have_any_bytes(void)
{
    static const char *const names[] = {"two words", "it's \"q\"; $x `y`",
                                        "\xc3\xa4\xc3\xb6", "\xff\xfe", "-n"};
    for (int i = 0; i < 5; i++) {
        const char *file = test_file(names[i], one);
        fl_dataset_opts o = {.n_files = 1, .files = &file};
        test_reads(&o, one_read);
        o.pipe = "sed ''";
        test_reads(&o, one_read);
    }
}

/* Bytes behind what gzip packed: another file's, or a broken copy. */
static void gzip_with_rubbish_behind_it_is_refused(void)
{
    static const unsigned char packed[] = {
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x33,
        0x52, 0x30, 0x54, 0x30, 0x02, 0x62, 0x63, 0x20, 0x36, 0xe1, 0x02,
        0x00, 0x84, 0x64, 0x4a, 0x21, 0x0e, 0x00, 0x00, 0x00, 'x',  'y',
    };
    fails(
        test_file_of("z", packed, sizeof packed), FL_EPROTO,
        "z: this gzip file is damaged: other bytes follow its compressed data");
}

/* --- what never writes --- */

static void silent(const char *file, const char *pipe, const char *sentence)
{
    setenv("FLUID_STALL", "0", 1);
    setenv("FLUID_SILENCE", "0.05", 1);
    test_fails(&(fl_dataset_opts){.n_files = 1, .files = &file, .pipe = pipe},
               FL_EIO, sentence);
    unsetenv("FLUID_STALL");
    unsetenv("FLUID_SILENCE");
}

static void silence_is_an_error_in_the_end(void)
{
    const char *file = test_file("raw", one);
    silent(file, "sleep 600", "pipe command \"sleep 600\" writes nothing (on ");
    silent(file, "cat; sleep 600",
           "raw, for 0.05 s, as long as "
           "FLUID_SILENCE allows)");
    silent(file, "cat; exec >&-; sleep 600", "raw, for 0.05 s");
}

static void pipe_without_a_writer_is_one_too(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fifo", fl_test_dir());
    CHECK_INT(mkfifo(path, 0600), 0);
    silent(path, NULL, "no process writes to this pipe (on ");
}

static void wrong_limit_is_told(void)
{
    const char *file = test_file("raw", one);
    setenv("FLUID_SILENCE", "soon", 1);
    fails(file, FL_EINVAL, "FLUID_SILENCE is \"soon\"");
    unsetenv("FLUID_SILENCE");
}

/* --- files that change --- */

typedef struct drain {
    fl_reader *r;
    fl_tensor t[TEST_SLOTS];
} drain;

static int64_t rows_of(drain *d)
{
    int64_t rows;
    CHECK_OK(fl_reader_next(d->r, d->t, &rows));
    return rows;
}

/* What is open stays, and what is appended meanwhile is read. */
static void file_may_grow_and_vanish_while_read(void)
{
    drain all = {0};
    const char *file = test_file("grows", one);
    fl_dataset *d =
        test_set(&(fl_dataset_opts){.n_files = 1, .files = &file, .batch = 1});
    CHECK_OK(fl_dataset_open(d, 1, NULL, &all.r));
    CHECK_INT(rows_of(&all), 1);
    FILE *f = fopen(file, "a");
    CHECK(f && fputs(one, f) >= 0 && !fclose(f));
    CHECK_INT(unlink(file), 0);
    CHECK_INT(rows_of(&all), 1);
    CHECK_INT(rows_of(&all), 0);
    for (int i = 0; i < TEST_SLOTS; i++)
        fl_tensor_fini(&all.t[i]);
    fl_reader_free(all.r);
    fl_dataset_free(d);
}

const fl_test fl_tests[] = {
    {"source tells where a file was looked for",
     missing_file_tells_where_it_was_looked_for},
    {"source names a file that may not be read", file_of_others_is_named},
    {"source reads no folder", folder_is_no_file},
    {"source tells that reading failed", reading_that_fails_is_told},
    {"source takes names of any bytes", names_may_have_any_bytes},
    {"source refuses rubbish behind gzip",
     gzip_with_rubbish_behind_it_is_refused},
    {"source that writes nothing ends in the end",
     silence_is_an_error_in_the_end},
    {"source without a writer does too", pipe_without_a_writer_is_one_too},
    {"source limits are numbers", wrong_limit_is_told},
    {"source may grow and vanish while it is read",
     file_may_grow_and_vanish_while_read},
    {0},
};
