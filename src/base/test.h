/* SPDX-License-Identifier: Apache-2.0 */
/* test.h - a test file is a table of functions; cmocka runs it.
 *
 *     static void adds(void) { CHECK_INT(1 + 1, 2); }
 *     const fl_test fl_tests[] = {{"a sum adds", adds}, {0}};
 *
 * Tests only: nothing here is in the library. */
#ifndef FL_BASE_TEST_H
#define FL_BASE_TEST_H

#include "base/err.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct fl_test {
    const char *name;
    void (*run)(void);
} fl_test;

extern const fl_test fl_tests[]; /* ends with {0} */

void fl_check(bool ok, const char *text, const char *file, int line);
void fl_check_int(int64_t got, int64_t want, const char *text, const char *file,
                  int line);
void fl_check_near(double got, double want, double tolerance, const char *text,
                   const char *file, int line);
void fl_check_str(const char *got, const char *want, const char *file,
                  int line);
void fl_check_ok(fl_err err, const char *text, const char *file, int line);
/* The code, and a sentence that contains `part`. */
void fl_check_err(fl_err err, fl_err want, const char *part, const char *text,
                  const char *file, int line);

#define CHECK(ok) fl_check((ok), #ok, __FILE__, __LINE__)
#define CHECK_INT(got, want)                                                   \
    fl_check_int((got), (want), #got, __FILE__, __LINE__)
#define CHECK_NEAR(got, want, tolerance)                                       \
    fl_check_near((got), (want), (tolerance), #got, __FILE__, __LINE__)
#define CHECK_STR(got, want) fl_check_str((got), (want), __FILE__, __LINE__)
#define CHECK_OK(call)       fl_check_ok((call), #call, __FILE__, __LINE__)
#define CHECK_ERR(call, code, part)                                            \
    fl_check_err((call), (code), (part), #call, __FILE__, __LINE__)

/* A directory of this test's own, made on first use, removed at the end. */
const char *fl_test_dir(void);

/* A file of the model "fit a line" that the original program saved: its bytes,
 * or the test is left with a notice where FLUID_SHARED has no such model. */
void fl_test_original(const char *name, fl_str *out);

/* Print lines of any number; cmocka cuts a text after 1,024 bytes. */
void fl_test_print(const char *lines);

/* Leave this test with a notice: what it needs is not here. */
void fl_test_skip(const char *why);

#endif
