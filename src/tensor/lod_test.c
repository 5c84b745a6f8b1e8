/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/test.h"
#include "tensor/tensor.h"

/* Two groups of 2 and 1 sequences, of 3, 0 and 4 rows. */
static const int64_t group[] = {2, 1}, sequence[] = {3, 0, 4};
static const int64_t *const lengths[] = {group, sequence};

static void offsets_come_from_lengths(void)
{
    fl_lod l = {0};
    CHECK_OK(fl_lod_from_lengths(&l, 2, (int64_t[]){2, 3}, lengths));
    const int64_t upper[] = {0, 2, 3}, lower[] = {0, 3, 3, 7};
    fl_lod want = {.levels = 2, .n = {3, 4}, .off = {upper, lower}};
    CHECK(fl_lod_equal(&l, &want));
    CHECK_OK(fl_lod_check(&l, 7));
    CHECK_ERR(fl_lod_check(&l, 8), FL_EINVAL,
              "level 1 ends at 7, but there are 8 rows");
    fl_lod_fini(&l);
}

static void bad_lengths_are_refused(void)
{
    fl_lod l = {0};
    const int64_t minus[] = {3, -1};
    const int64_t *const bad[] = {minus};
    CHECK_ERR(fl_lod_from_lengths(&l, 1, (int64_t[]){2}, bad), FL_EINVAL,
              "length 1 of level 0 is -1");
    CHECK_INT(l.levels, 0);
    CHECK_ERR(fl_lod_from_lengths(&l, 2, (int64_t[]){2, 2}, lengths), FL_EINVAL,
              "level 0 ends at 3, but there are 2 sequences");
    CHECK_ERR(fl_lod_from_lengths(&l, 5, (int64_t[]){2}, lengths), FL_EINVAL,
              "5 levels");
    fl_lod_fini(&l);
}

static void bad_offsets_are_refused(void)
{
    const int64_t late[] = {1, 2}, falls[] = {0, 3, 2};
    fl_lod l = {.levels = 1, .n = {2}, .off = {late}};
    CHECK_ERR(fl_lod_check(&l, -1), FL_EINVAL, "starts at 1");
    l = (fl_lod){.levels = 1, .n = {3}, .off = {falls}};
    CHECK_ERR(fl_lod_check(&l, -1), FL_EINVAL, "offset 3 is followed by 2");
    l.n[0] = 0;
    CHECK_ERR(fl_lod_check(&l, -1), FL_EINVAL, "no offsets");
    l.levels = -1;
    CHECK_ERR(fl_lod_check(&l, -1), FL_EINVAL, "-1 levels");
}

static void references_share_and_copies_do_not(void)
{
    fl_lod a = {0}, b = {0}, c = {0};
    CHECK_OK(fl_lod_from_lengths(&a, 2, (int64_t[]){2, 3}, lengths));
    CHECK_OK(fl_lod_ref(&b, &a));
    CHECK(b.buf == a.buf);
    CHECK_OK(fl_lod_copy(&c, &a));
    CHECK(c.buf != a.buf && fl_lod_equal(&c, &a));
    fl_lod_fini(&a);
    CHECK(fl_lod_equal(&c, &b));
    CHECK_OK(fl_lod_copy(&b, &a)); /* none */
    CHECK(!fl_lod_equal(&c, &b));
    fl_lod_fini(&b);
    fl_lod_fini(&c);
}

static void memory_is_kept_through_no_levels(void)
{
    fl_lod a = {0}, none = {0};
    for (int i = 0; i < 3; i++) {
        uint64_t before = fl_mem_count();
        CHECK_OK(fl_lod_from_lengths(&a, 2, (int64_t[]){2, 3}, lengths));
        CHECK_OK(fl_lod_copy(&a, &none));
        CHECK_INT((int64_t)(fl_mem_count() - before), i == 0);
    }
    fl_lod_fini(&a);
}

const fl_test fl_tests[] = {
    {"lod offsets come from lengths", offsets_come_from_lengths},
    {"lod refuses bad lengths", bad_lengths_are_refused},
    {"lod refuses bad offsets", bad_offsets_are_refused},
    {"lod references share and copies do not",
     references_share_and_copies_do_not},
    {"lod keeps its memory through no levels",
     memory_is_kept_through_no_levels},
    {0},
};
