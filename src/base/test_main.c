/* SPDX-License-Identifier: Apache-2.0 */
/* test_main.c - runs the table of one test file. */
#include "base/test.h"

#include "base/disk.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[256]; /* the test's own directory, once asked for */

void fl_check(bool ok, const char *text, const char *file, int line)
{
    if (!ok)
        print_error("%s is false\n", text);
    _assert_true(ok, text, file, line);
}

void fl_check_int(int64_t got, int64_t want, const char *text, const char *file,
                  int line)
{
    if (got != want)
        print_error("%s is %lld, expected %lld\n", text, (long long)got,
                    (long long)want);
    _assert_true(got == want, text, file, line);
}

void fl_check_near(double got, double want, double tolerance, const char *text,
                   const char *file, int line)
{
    bool ok = got == want || fabs(got - want) <= tolerance;
    if (!ok)
        print_error("%s is %.9g, expected %.9g within %g\n", text, got, want,
                    tolerance);
    _assert_true(ok, text, file, line);
}

void fl_check_str(const char *got, const char *want, const char *file, int line)
{
    bool ok = got && want && !strcmp(got, want);
    if (!ok)
        print_error("got      %s\nexpected %s\n", got ? got : "(null)",
                    want ? want : "(null)");
    _assert_true(ok, "texts are equal", file, line);
}

void fl_check_ok(fl_err err, const char *text, const char *file, int line)
{
    if (err)
        print_error("%s failed: %s\n", text, fl_errmsg());
    _assert_true(!err, text, file, line);
}

void fl_check_err(fl_err err, fl_err want, const char *part, const char *text,
                  const char *file, int line)
{
    bool ok = err == want && strstr(fl_errmsg(), part);
    if (!ok)
        print_error("%s gave code %d \"%s\", expected code %d \"%s\"\n", text,
                    err, err ? fl_errmsg() : "", want, part);
    _assert_true(ok, text, file, line);
}

const char *fl_test_dir(void)
{
    if (!*dir) {
        const char *tmp = getenv("TMPDIR");
        snprintf(dir, sizeof dir, "%s/fluid-test-XXXXXX", tmp ? tmp : "/tmp");
        if (!mkdtemp(dir)) {
            print_error("%s: %s\n", dir, strerror(errno));
            abort();
        }
    }
    return dir;
}

static int remove_one(const char *path, const struct stat *st, int flag,
                      struct FTW *ftw)
{
    return remove(path);
}

static void remove_dir(void)
{
    if (*dir)
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void fl_test_print(const char *lines)
{
    for (const char *end; *lines; lines = end) {
        end = strchrnul(lines, '\n');
        end += *end == '\n';
        print_error("%.*s", (int)(end - lines), lines);
    }
}

void fl_test_skip(const char *why)
{
    print_message("           skipped: %s\n", why);
    skip();
}

/* The file `name` of a tar: a header of 512 bytes, then the bytes in blocks of
 * 512; the size is octal, at 124. */
static bool untar(const fl_str *tar, const char *name, fl_str *out)
{
    for (size_t at = 0; at + 512 <= tar->n && tar->at[at];) {
        size_t size = strtoul(tar->at + at + 124, NULL, 8);
        const char *base = strrchr(tar->at + at, '/');
        if (!strcmp(base ? base + 1 : tar->at + at, name) &&
            size <= tar->n - at - 512) {
            fl_str_bytes(out, tar->at + at + 512, size);
            return true;
        }
        at += 512 + (size + 511) / 512 * 512;
    }
    return false;
}

void fl_test_original(const char *name, fl_str *out)
{
    char path[512];
    const char *shared = getenv("FLUID_SHARED");
    const fl_disk *d = fl_disk_real();
    fl_str tar = {0};
    snprintf(path, sizeof path, "%s/data/paddle_models/fit_a_line.fluid.tar",
             shared ? shared : "../shared");
    if (d->read(d, path, 1 << 20, &tar))
        fl_test_skip("no models of the original at FLUID_SHARED");
    const bool found = untar(&tar, name, out);
    fl_str_fini(&tar);
    CHECK(found);
}

static void run_one(void **state)
{
    ((const fl_test *)*state)->run();
}

int main(void)
{
    setenv("FLUID_DURABILITY", "memory",
           1); /* a test that ends early must leave no state in /dev/shm */
    setvbuf(stdout, NULL, _IOLBF,
            0); /* the log is complete even after a crash */
    int n = 0;
    while (fl_tests[n].name)
        n++;
    struct CMUnitTest *tests = fl_mem_alloc((size_t)n * sizeof *tests);
    for (int i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){fl_tests[i].name, run_one, NULL, NULL,
                                       (void *)&fl_tests[i]};
    int failed = _cmocka_run_group_tests("fluid", tests, (size_t)n, NULL, NULL);
    fl_mem_free(tests);
    remove_dir();
    return failed ? 1 : 0;
}
