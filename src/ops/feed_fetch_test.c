/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static fl_err run(fl_vars *v, const char *type, const char *in, const char *out,
                  int64_t col)
{
    fl_desc *d = fl_desc_new(v->arena, type);
    fl_desc_set_in1(d, "X", in);
    fl_desc_set_out1(d, "Out", out);
    fl_desc_set_attr(d, &(fl_attr){"col", FL_ATTR_INT, .i = col});
    return fl_vars_run(v, d);
}

static void values_pass_through(void)
{
    fl_vars v;
    fl_vars_init(&v);
    const fl_tensor *x = fl_vars_set(&v, "x", 2, (float[]){3, 4});
    CHECK_OK(run(&v, "fetch", "x", "list", 1));
    fl_value *list = fl_vars_get(&v, "list");
    CHECK_INT(list->kind, FL_FETCH_LIST);
    CHECK_INT(list->array.n, 2);
    CHECK(list->array.at[1].data != x->data);
    list->kind = FL_FEED_MINIBATCH;
    CHECK_OK(run(&v, "feed", "list", "y", 1));
    const fl_tensor *y = &fl_vars_get(&v, "y")->tensor;
    CHECK_INT(fl_tensor_numel(y), 2);
    CHECK_NEAR(((float *)y->data)[1], 4, 0);
    fl_checked("feed", false);
    fl_checked("fetch", false);
    fl_vars_fini(&v);
}

static void columns_that_are_not_there_are_refused(void)
{
    fl_vars v;
    fl_vars_init(&v);
    fl_vars_set(&v, "x", 1, (float[]){3});
    CHECK_OK(run(&v, "fetch", "x", "list", 1));
    CHECK_ERR(
        run(&v, "feed", "list", "y", 2), FL_EINVAL,
        "feed: col is 2, which is not one of the columns that are fed (2, "
        "counted from 0)");
    CHECK_ERR(
        run(&v, "feed", "list", "y", 0), FL_EINVAL,
        "feed: col is 0, which is not one of the columns that are fed (2, "
        "counted from 0)");
    CHECK_ERR(run(&v, "fetch", "x", "list", 1 << 30), FL_EINVAL,
              "fetch: col is 1073741824, expected 0 to 4095");
    CHECK_ERR(run(&v, "fetch", "nothing", "list", 0), FL_ENOENT,
              "fetch: X holds no tensor");
    fl_vars_fini(&v);
}

const fl_test fl_tests[] = {
    {"feed and fetch pass values through", values_pass_through},
    {"feed and fetch refuse columns that are not there",
     columns_that_are_not_there_are_refused},
    {0},
};
