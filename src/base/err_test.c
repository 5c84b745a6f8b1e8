/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "base/pool.h"
#include "base/test.h"

#include <string.h>

static fl_err inner(bool bad)
{
    return bad ? fl_fail(FL_ESHAPE, "mul: X has %d columns, Y has %d rows", 3,
                         4)
               : FL_OK;
}

static fl_err outer(bool bad, int *reached)
{
    FL_TRY(inner(bad));
    *reached = 1;
    return FL_OK;
}

static void sentence_comes_with_the_code(void)
{
    int reached = 0;
    CHECK_ERR(outer(true, &reached), FL_ESHAPE,
              "mul: X has 3 columns, Y has 4 rows");
    CHECK_INT(reached, 0);
    CHECK_OK(outer(false, &reached));
    CHECK_INT(reached, 1);
}

static void place_is_added_behind(void)
{
    fl_err err = inner(true);
    CHECK_INT(fl_fail_at(err, "op %d in block %d", 12, 0), FL_ESHAPE);
    CHECK_STR(fl_errmsg(),
              "mul: X has 3 columns, Y has 4 rows (op 12 in block 0)");
    (void)fl_fail(FL_EENDED, "server 1 was ended by SIGTERM");
    CHECK_INT(fl_fail_at(FL_EENDED, "op 12 in block 0"), FL_EENDED);
    CHECK_STR(fl_errmsg(), "server 1 was ended by SIGTERM");
}

static void long_sentences_are_cut(void)
{
    char text[3000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    CHECK_INT(fl_fail(FL_EIO, "%s", text), FL_EIO);
    size_t n = strlen(fl_errmsg());
    CHECK(n > 500 && n < sizeof text);
    CHECK_INT(fl_fail_at(FL_EIO, "%s", text), FL_EIO);
    CHECK_INT((int64_t)strlen(fl_errmsg()), (int64_t)n);
}

static void own_sentence(void *arg)
{
    strcpy(arg, fl_errmsg());
    if (fl_fail(FL_EIO, "from the other thread") != FL_EIO)
        strcpy(arg, "?");
}

static void threads_have_their_own_sentence(void)
{
    fl_pool *p;
    fl_group g = {0};
    char other[64] = "?";
    CHECK_OK(fl_pool_new("err", 1, &p));
    CHECK_INT(fl_fail(FL_EINVAL, "from this thread"), FL_EINVAL);
    fl_pool_submit(p, &g, own_sentence, other);
    CHECK_OK(fl_pool_wait(p, &g, -1));
    fl_pool_free(p);
    CHECK_STR(other, "");
    CHECK_STR(fl_errmsg(), "from this thread");
}

const fl_test fl_tests[] = {
    {"error sentence comes with the code", sentence_comes_with_the_code},
    {"error place is added behind", place_is_added_behind},
    {"long error sentences are cut", long_sentences_are_cut},
    {"threads have their own error sentence", threads_have_their_own_sentence},
    {0},
};
