/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/tally.h"

#include "base/test.h"

#include <stdio.h>

/* A parcel with n counts: a, b, then zeros. */
static fl_parcel *counts(const char *name, int64_t n, int64_t a, int64_t b)
{
    const fl_shape shape = fl_shape_of(1, &n);
    fl_tensor t = {0};
    CHECK_OK(fl_tensor_resize(&t, FL_I64, &shape));
    int64_t *x = t.data;
    memset(x, 0, fl_tensor_bytes(&t));
    x[0] = a;
    if (n > 1)
        x[1] = b;
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, name, &t);
    fl_tensor_fini(&t);
    return p;
}

/* The answer to a report. Own: takes p; the caller frees the answer's blob. */
static fl_msg hear(fl_tallies *t, int rank, fl_parcel *p)
{
    const fl_msg m = {.kind = FL_MSG_TALLY,
                      .job = {1, 2},
                      .session = {3, 4},
                      .tag = 5,
                      .blob = fl_parcel_blob(p)};
    const fl_msg answer = fl_tallies_report(t, rank, &m);
    CHECK(answer.job.lo == 2 && answer.session.hi == 3 && answer.tag == 5);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_parcel_unref(p);
    return answer;
}

static void sums(fl_tallies *t, int rank, fl_parcel *p, int ranks, int64_t a,
                 int64_t b)
{
    int64_t got[2];
    fl_msg m = hear(t, rank, p);
    CHECK_INT(m.kind, FL_MSG_VALUES);
    CHECK_INT(m.count, ranks);
    const fl_item *item = fl_parcel_of(m.blob)->item;
    CHECK_INT(item->dtype, FL_I64);
    fl_bytes_copy(item->data, 0, got, sizeof got);
    CHECK_INT(got[0], a);
    CHECK_INT(got[1], b);
    fl_keeper_parcels.drop(NULL, m.blob);
}

static void refuses(fl_tallies *t, int rank, fl_parcel *p, fl_err code,
                    const char *words)
{
    fl_msg m = hear(t, rank, p);
    CHECK_INT(m.kind, FL_MSG_ERROR);
    CHECK_INT(m.code, code);
    CHECK(!m.blob.owner);
    if (!strstr(m.text, words))
        CHECK_STR(m.text, words);
}

static void the_last_word_of_each_rank_counts(void)
{
    fl_tallies *t = fl_tallies_new(3);
    sums(t, 0, counts("auc", 2, 1, 10), 1, 1, 10);
    sums(t, 2, counts("auc", 2, 5, 0), 2, 6, 10);
    sums(t, 2, counts("auc", 2, 5, 0), 2, 6,
         10); /* a new report replaces the old one */
    sums(t, 0, counts("auc", 2, 2, 30), 2, 7, 30);
    sums(t, 1, counts("other", 2, 8, 9), 1, 8, 9);
    sums(t, 2, counts("auc", 2, 0, 1), 2, 2,
         31); /* the trainer was started again */
    fl_tallies_free(t);
    fl_tallies_free(NULL);
}

static void what_is_no_count_is_refused(void)
{
    const float x[] = {1, 2};
    const fl_shape shape = {1, {2}};
    const fl_tensor f = fl_tensor_view(FL_F32, &shape, x);
    fl_tallies *t = fl_tallies_new(2);
    sums(t, 0, counts("auc", 2, 1, 2), 1, 1, 2);
    refuses(t, 1, fl_parcel_new(), FL_EINVAL, "0 tensors came, expected one");
    fl_parcel *two = counts("auc", 2, 1, 1);
    fl_parcel_add(two, "f", &f);
    refuses(t, 1, two, FL_EINVAL, "2 tensors came, expected one");
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, "f", &f);
    refuses(t, 1, p, FL_EINVAL, "\"f\" is not a whole tensor of int64 counts");
    p = fl_parcel_new();
    fl_parcel_want(p, "auc", -1, NULL);
    refuses(t, 1, p, FL_EINVAL, "\"auc\" is not a whole tensor");
    refuses(t, 1, counts("auc", 3, 1, 1), FL_ESHAPE,
            "\"auc\" is [3], another trainer reported [2]");
    refuses(t, 1, counts("auc", 2, 1, -3), FL_EINVAL,
            "count 1 of \"auc\" is -3, expected 0 to 562949953421312");
    refuses(t, 1, counts("auc", 2, INT64_MAX, 0), FL_EINVAL,
            "count 0 of \"auc\" is 9223372036854775807");
    sums(t, 0, counts("auc", 2, 1, 2), 1, 1,
         2); /* refused reports do not count */
    fl_tallies_free(t);
}

static void names_and_counts_have_limits(void)
{
    fl_tallies *t = fl_tallies_new(2);
    char name[16];
    refuses(t, 0, counts("auc", FL_TALLY_MOST + 1, 1, 1), FL_EINVAL,
            "\"auc\" has 131073 counts, expected 1 to 131072");
    for (int i = 0; i < FL_TALLIES_MOST; i++) {
        snprintf(name, sizeof name, "auc%d", i);
        sums(t, 0, counts(name, FL_TALLY_MOST, 1, i), 1, 1, i);
    }
    refuses(t, 0, counts("more", 2, 1, 1), FL_EINVAL,
            "\"more\" is one name too many, at most 16 are kept");
    sums(t, 1, counts("auc3", FL_TALLY_MOST, 1, 1), 2, 2, 4);
    fl_tallies_free(t);
}

/* Each rank reports 1 MiB; the limit is 128 MiB. */
static void memory_has_a_limit(void)
{
    fl_tallies *t = fl_tallies_new(200);
    int rank = 0;
    for (; rank < 126; rank++)
        sums(t, rank, counts("auc", FL_TALLY_MOST, 1, 0), rank + 1, rank + 1,
             0);
    refuses(t, rank, counts("more", FL_TALLY_MOST, 1, 0), FL_EINVAL,
            "of 134217728 are left");
    sums(t, 0, counts("auc", FL_TALLY_MOST, 2, 0), 126, 127, 0);
    sums(t, 0, counts("small", 2, 1, 0), 1, 1, 0);
    fl_tallies_free(t);
}

const fl_test fl_tests[] = {
    {"the last word of each rank counts", the_last_word_of_each_rank_counts},
    {"what is no count is refused", what_is_no_count_is_refused},
    {"names and counts have limits", names_and_counts_have_limits},
    {"memory has a limit", memory_has_a_limit},
    {0},
};
