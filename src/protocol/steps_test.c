/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/steps.h"

#include "base/test.h"

static void a_part_counts_once(void)
{
    fl_steps *s = fl_steps_new(2);
    CHECK(!fl_steps_has(s, 1, 1, 1));
    fl_steps_mark(s, 1, 1, 1);
    fl_steps_mark(s, 1, 1, 1);
    fl_steps_mark(s, 1, 1, 3); /* pushes may be applied in any order */
    CHECK(fl_steps_has(s, 1, 1, 1));
    CHECK(!fl_steps_has(s, 1, 1, 2));
    CHECK(fl_steps_has(s, 1, 1, 3));
    CHECK(!fl_steps_has(s, 0, 1, 1)); /* of another rank */
    fl_steps_free(s);
}

static void a_newer_step_completes_the_older_ones(void)
{
    fl_steps *s = fl_steps_new(1);
    fl_steps_mark(s, 0, 3, 2);
    CHECK(fl_steps_has(s, 0, 2, 9));
    CHECK(!fl_steps_has(s, 0, 3, 1));
    fl_steps_mark(s, 0, 4, 1);
    CHECK(fl_steps_has(s, 0, 3, 1));
    fl_steps_mark(s, 0, 3, 2); /* too late: it changes nothing */
    CHECK(fl_steps_has(s, 0, 4, 1));
    CHECK(!fl_steps_has(s, 0, 4, 2));
    fl_steps_free(s);
}

static void a_push_of_no_step_is_not_marked(void)
{
    fl_steps *s = fl_steps_new(1);
    fl_steps_mark(s, 0, 0, 1);
    CHECK(!fl_steps_has(s, 0, 1, 1));
    fl_steps_free(s);
}

static void an_image_has_the_steps_of_a_copy(void)
{
    const fl_job job = {.servers = 1, .trainers = 2};
    fl_str bytes = {0};
    fl_steps *s = fl_steps_new(2), *read = fl_steps_new(2);
    fl_steps_mark(s, 1, 7, 2);
    fl_steps *copy = fl_steps_dup(s);
    fl_steps_mark(copy, 1, 7, 5);
    CHECK(!fl_steps_has(s, 1, 7, 5));
    fl_image to = fl_image_begin(&bytes, FL_IMAGE_CUT, &job, 0), from;
    fl_steps_visit(copy, &to);
    fl_image_finish(&to);
    CHECK(!memcmp(bytes.at, "FLIM\3\3", 6)); /* kind and format: they stay */
    CHECK_OK(fl_image_open(&from, bytes.at, bytes.n, FL_IMAGE_CUT, &job, 0));
    fl_steps_visit(read, &from);
    CHECK_OK(fl_image_check(&from));
    CHECK(fl_steps_has(read, 1, 7, 2) && fl_steps_has(read, 1, 7, 5));
    CHECK(!fl_steps_has(read, 1, 7, 3) && !fl_steps_has(read, 0, 1, 1));
    fl_str_fini(&bytes);
    fl_steps_free(copy);
    fl_steps_free(read);
    fl_steps_free(s);
}

const fl_test fl_tests[] = {
    {"a part of a step counts once", a_part_counts_once},
    {"a newer step completes the older ones",
     a_newer_step_completes_the_older_ones},
    {"a push of no step is not marked", a_push_of_no_step_is_not_marked},
    {"an image has the steps of a copy", an_image_has_the_steps_of_a_copy},
    {0},
};
