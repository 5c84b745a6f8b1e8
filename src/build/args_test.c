/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "build/args.h"

static const fl_arg_def table[] = {
    {"input", FL_ARG_VARS},
    {"size", FL_ARG_INT},
    {"axes", FL_ARG_INTS, "None"},
    {"rate", FL_ARG_FLOAT, "-0.5"},
    {"act", FL_ARG_STR, "None"},
    {"mode", FL_ARG_STR, "'sum'"},
    {"dtype", FL_ARG_DTYPE, "'int64'"},
    {"is_test", FL_ARG_BOOL, "True"},
    {"k", FL_ARG_INT_OR_VAR, "1"},
    {"pads", FL_ARG_INTS, "[0, -1, 12]"},
    {0},
};

static fl_err bind(fl_arena *a, const fl_arg *args, fl_bound *b)
{
    return fl_args_bind(a, "fc", table, args, b);
}

static fl_var *const some_var = (fl_var *)(void *)table; /* never followed */

static void fills_in_defaults(void)
{
    fl_arena *a = fl_arena_new();
    fl_bound b;
    CHECK_OK(bind(
        a, (fl_arg[]){{"size", .i = 3}, {"input", .var = some_var}, {0}}, &b));
    int n = 0;
    CHECK(fl_arg_vars(&b, "input", &n)[0] == some_var);
    CHECK_INT(n, 1);
    CHECK_INT(fl_arg_int(&b, "size"), 3);
    CHECK_NEAR(fl_arg_float(&b, "rate"), -0.5, 0);
    CHECK_STR(fl_arg_str(&b, "mode"), "sum");
    CHECK_INT(fl_arg_dtype(&b, "dtype"), FL_I64);
    CHECK(fl_arg_bool(&b, "is_test"));
    CHECK_INT(fl_arg_get(&b, "k")->i, 1);
    CHECK(!fl_arg_given(&b, "act"));
    CHECK(!fl_arg_get(&b, "axes"));
    CHECK(!fl_arg_ints(&b, "axes", &n));
    CHECK_INT(n, 0);
    CHECK_INT(fl_arg_ints(&b, "pads", &n)[2], 12);
    CHECK_INT(fl_arg_ints(&b, "pads", &n)[1], -1);
    CHECK_INT(n, 3);
    fl_arena_free(a);
}

static void takes_lists_of_any_length(void)
{
    fl_arena *a = fl_arena_new();
    fl_bound b;
    fl_arg args[] = {
        {"input", .n = 2, .vars = (fl_var *[]){some_var, some_var}},
        {"size", .i = 3},
        {"axes", .n = 2, .ints = (int64_t[]){4, 5}},
        {0}};
    int n = 0;
    CHECK_OK(bind(a, args, &b));
    CHECK_INT(fl_arg_ints(&b, "axes", &n)[1], 5);
    CHECK_INT(n, 2);
    args[2] = (fl_arg){"axes", .i = 7};
    CHECK_OK(bind(a, args, &b));
    CHECK_INT(fl_arg_ints(&b, "axes", &n)[0], 7);
    CHECK_INT(n, 1);
    args[2] = (fl_arg){"axes", .n = -1};
    CHECK_OK(bind(a, args, &b));
    CHECK(fl_arg_given(&b, "axes"));
    fl_arg_ints(&b, "axes", &n);
    CHECK_INT(n, 0);
    fl_arena_free(a);
}

static void null_reads_as_not_given(void)
{
    fl_arena *a = fl_arena_new();
    fl_bound b;
    fl_arg args[] = {{"input", .var = some_var},
                     {"size", .i = 3},
                     {"mode", .s = NULL},
                     {"act", .s = NULL},
                     {0}};
    CHECK_OK(bind(a, args, &b));
    CHECK_STR(fl_arg_str(&b, "mode"), "sum");
    CHECK(!fl_arg_given(&b, "act"));
    args[0].var = NULL;
    CHECK_ERR(bind(a, args, &b), FL_EINVAL, "fc: argument \"input\" is NULL");
    fl_var *vars[] = {some_var, NULL};
    args[0] = (fl_arg){"input", .n = 2, .vars = vars};
    CHECK_ERR(bind(a, args, &b), FL_EINVAL,
              "fc: argument \"input\" has a NULL at index 1");
    args[0] = (fl_arg){"input", .n = -1};
    CHECK_ERR(bind(a, args, &b), FL_EINVAL,
              "fc: argument \"input\" is an empty list");
    fl_arena_free(a);
}

static void says_what_is_wrong_with_a_call(void)
{
    fl_arena *a = fl_arena_new();
    fl_bound b;
    const fl_arg x = {"input", .var = some_var}, size = {"size", .i = 3};
    CHECK_ERR(bind(a, (fl_arg[]){x, {"sise", .i = 3}, {0}}, &b), FL_EINVAL,
              "fc: unknown argument \"sise\"; did you mean \"size\"?");
    CHECK_ERR(bind(a, (fl_arg[]){x, {"regularizer"}, {0}}, &b), FL_EINVAL,
              "fc: unknown argument \"regularizer\"");
    CHECK_ERR(bind(a, (fl_arg[]){x, {0}}, &b), FL_EINVAL,
              "fc: argument \"size\" is missing (int)");
    CHECK_ERR(bind(a, NULL, &b), FL_EINVAL,
              "fc: argument \"input\" is missing (variable or list of");
    CHECK_ERR(bind(a, (fl_arg[]){x, size, size, {0}}, &b), FL_EINVAL,
              "fc: argument \"size\" is given twice");
    CHECK_ERR(bind(a, (fl_arg[]){x, size, {"dtype", .i = 77}, {0}}, &b),
              FL_EINVAL, "fc: argument \"dtype\": there is no dtype 77");
    fl_arena_free(a);
}

const fl_test fl_tests[] = {
    {"a call gets the table's defaults", fills_in_defaults},
    {"a call takes lists of any length", takes_lists_of_any_length},
    {"NULL reads as not given", null_reads_as_not_given},
    {"a wrong call is told what is wrong", says_what_is_wrong_with_a_call},
    {0},
};
