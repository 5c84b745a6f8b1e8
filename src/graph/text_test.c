/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/test_ops.h"

static const char fit_a_line[] =
    "random_seed 90\n"
    "block 0\n"
    "  data x: f32[-1,13]\n"
    "  param fc_0.w_0: f32[13,1] lr=0.5 !trainable\n"
    "  var fc_0.tmp_0: f32[-1,1] lod=1\n"
    "  var step: i64[1] persistable stop_gradient\n"
    "  var rows: selected_rows f32[10,4]\n"
    "  var feed: feed_minibatch persistable\n"
    "  mul(X=x, Y=fc_0.w_0) -> Out=fc_0.tmp_0 {x_num_col_dims=1, "
    "y_num_col_dims=1}\n"
    "  conditional_block(Cond=[], Input=[x, fc_0.w_0]) -> Out=fc_0.tmp_0 "
    "{sub_block=@1}\n"
    "block 1 parent=0 forward=0\n"
    "  var \"odd name, quoted\": bool[]\n"
    "  scale(X=x) -> Out=\"odd name, quoted\" {scale=2.0, bias=0.1} target\n";

static const char every_type[] =
    "block 0\n"
    "  every() {i=-1, f=1e-05, s=\"a \\\"b\\\"\\\\\\n\\x01\", ints=[1, 2], "
    "floats=[0.1, -3.0, inf], strings=[\"\", \"x\"], b=true, "
    "bools=[true, false], l=9223372036854775807l, blocks=[@1, @2], "
    "longs=[-1l], unknown=3}\n"
    "  every() {ints=ints[], floats=floats[], strings=strings[], "
    "bools=bools[], blocks=blocks[], longs=longs[]}\n"
    "block 1 parent=0\n"
    "block 2 parent=1\n";

static void check_round_trip(const char *text)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    CHECK_OK(fl_program_parse(r, text, &p));
    char *again = fl_program_text(p);
    CHECK_STR(again, text);
    fl_mem_free(again);
    fl_program_free(p);
    fl_registry_free(r);
}

static void comes_back_as_it_was(void)
{
    check_round_trip(fit_a_line);
    check_round_trip(every_type);
    check_round_trip("block 0\n");
}

static void means_what_it_says(void)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    CHECK_OK(fl_program_parse(r, fit_a_line, &p));
    const fl_block *b = fl_program_block(p, 0);
    const fl_var *x = fl_block_var(b, "x"), *w = fl_block_var(b, "fc_0.w_0");
    CHECK_INT(p->random_seed, 90);
    CHECK(x->is_data && x->stop_gradient && !x->persistable);
    CHECK_INT(x->shape.dim[0], -1);
    CHECK(w->persistable && !w->param->trainable && w->param->do_model_average);
    CHECK_NEAR(w->param->learning_rate, 0.5, 0);
    CHECK_INT(fl_block_var(b, "fc_0.tmp_0")->lod_level, 1);
    CHECK_INT(fl_block_var(b, "rows")->kind, FL_SELECTED_ROWS);
    CHECK_INT(b->ops.n, 2);
    CHECK_INT(fl_desc_in(&b->ops.at[1]->desc, "Input")->n, 2);
    CHECK_INT(fl_program_block(p, 1)->forward, 0);
    fl_program_free(p);
    fl_registry_free(r);
}

static void may_be_wrapped_and_commented(void)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    CHECK_OK(fl_program_parse(r,
                              "# a net\n\nblock 0 # global\n"
                              "\tdata x: float32[ -1, 4 ]\n"
                              "  var y: f32[-1,4]\n"
                              "  scale(X=x) -> Out=y {scale=2, # an int\n"
                              "      bias=1.5}",
                              &p));
    char *text = fl_program_brief(p);
    CHECK_STR(text, "block 0\n"
                    "  data x: f32[-1,4]\n"
                    "  var y: f32[-1,4]\n"
                    "  scale(X=x) -> Out=y {scale=2, bias=1.5}\n");
    fl_mem_free(text);
    fl_program_free(p);
    fl_registry_free(r);
}

static void brief_leaves_out_what_tables_say(void)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    CHECK_OK(fl_program_parse(
        r,
        "block 0\n  data x: f32[4]\n"
        "  scale(X=x) -> Out=x {scale=1.0, bias=2.0, bias_after_scale=true, "
        "op_role=0, op_namescope=\"/\"}\n"
        "  conditional_block() {sub_block=@1, op_role=2}\n"
        "block 1 parent=0\n",
        &p));
    char *text = fl_program_brief(p);
    CHECK_STR(text, "block 0\n  data x: f32[4]\n"
                    "  scale(X=x) -> Out=x {bias=2.0}\n"
                    "  conditional_block() {sub_block=@1, op_role=2}\n"
                    "block 1 parent=0\n");
    fl_mem_free(text);
    fl_program_free(p);
    fl_registry_free(r);
}

static void floats_keep_every_bit(void)
{
    fl_registry *r = test_registry();
    const float hard[] = {0.1f,          1.f / 3, 16777217.f, 1e-45f,
                          3.4028235e38f, -0.f,    123456.79f, 1e10f};
    fl_program *p = fl_program_make(r), *q = NULL;
    fl_arena *a = fl_arena_new();
    fl_desc *d = fl_desc_new(a, "every");
    const fl_attr floats = {"floats", FL_ATTR_FLOATS, .n = 8, .floats = hard};
    fl_desc_set_attr(d, &floats);
    CHECK_OK(fl_block_append_op(p->blocks.at[0], d, NULL));
    char *text = fl_program_text(p);
    CHECK_OK(fl_program_parse(r, text, &q));
    CHECK(fl_attr_equal(
        fl_desc_attr(&q->blocks.at[0]->ops.at[0]->desc, "floats"), &floats));
    fl_mem_free(text);
    fl_program_free(p);
    fl_program_free(q);
    fl_arena_free(a);
    fl_registry_free(r);
}

static void faults_name_their_place(void)
{
    static const struct {
        const char *text, *part;
        fl_err code;
    } faults[] = {
        {"", "text 1:1: expected \"block 0\", found the end", FL_EINVAL},
        {"var x: f32[]", "text 1:1: expected \"block 0\", found \"var\"",
         FL_EINVAL},
        {"block 1", "1:7: 1 is not within 0 and 0", FL_EINVAL},
        {"block 0\n  var x f32[1]", "2:9: expected \":\", found \"f32\"",
         FL_EINVAL},
        {"block 0\n  var x: g32[1]",
         "2:10: expected a kind or an element type, found \"g32\"", FL_EINVAL},
        {"block 0\n  var x: raw g32[1]", "expected an element type", FL_EINVAL},
        {"block 0\n var x: f32[1,2,3,4,5,6,7,8,9,10]", "at most 9 dimensions",
         FL_EINVAL},
        {"block 0\n var x: f32[-2]", "-2 is not within -1 and", FL_EINVAL},
        {"block 0\n var x: f32[1] lr=2", "expected lod=, a flag or the end",
         FL_EINVAL},
        {"block 0\n var x: raw\n var x: raw",
         "text 3:7: variable x is declared twice in block 0", FL_EINVAL},
        {"block 0\n  scales(X=x)",
         "2:3: unknown op \"scales\"; did you mean \"scale\"?", FL_ENOENT},
        {"block 0\n  scale(X=x", "2:12: expected \")\", found the end",
         FL_EINVAL},
        {"block 0\n  scale(X=x, X=y)", "slot X is given twice", FL_EINVAL},
        {"block 0\n  scale(X)", "expected \"=\", found \")\"", FL_EINVAL},
        {"block 0\n  scale(Z=x)", "2:3: scale: the operator has no input Z",
         FL_EINVAL},
        {"block 0\n  scale(X=x) {scale=\"a\"}",
         "attribute scale is string, expected float", FL_EINVAL},
        {"block 0\n  scale(X=x) {scale=}", "expected a value", FL_EINVAL},
        {"block 0\n  every() {i=2147483648}",
         "2:14: 2147483648 is not within -2147483648 and 2147483647",
         FL_EINVAL},
        {"block 0\n  every() {ints=[1, 2.0]}", "a list of ints holds a float",
         FL_EINVAL},
        {"block 0\n  every() {s=\"a}", "expected a closing \"", FL_EINVAL},
        {"block 0\n  every() {s=\"\\q\"}", "expected one of n, x", FL_EINVAL},
        {"block 0\n  every() {i=1, i=1}", "attribute i is given twice",
         FL_EINVAL},
        {"block 0\n  every() every()", "expected the end of the line",
         FL_EINVAL},
        {"block 0\n  every() {blocks=[@1]}",
         "every: attribute blocks is block 1, but the program has 1 blocks",
         FL_EINVAL},
        {"block 0\nblock 1 parent=1", "1 is not within -1 and 0", FL_EINVAL},
    };
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        CHECK_ERR(fl_program_parse(r, faults[i].text, &p), faults[i].code,
                  faults[i].part);
    CHECK(!p);
    fl_registry_free(r);
}

const fl_test fl_tests[] = {
    {"a program's text comes back as it was", comes_back_as_it_was},
    {"a program's text means what it says", means_what_it_says},
    {"a program's text may be wrapped and commented",
     may_be_wrapped_and_commented},
    {"the brief text leaves out what tables say",
     brief_leaves_out_what_tables_say},
    {"floats in text keep every bit", floats_keep_every_bit},
    {"faults in text name their place", faults_name_their_place},
    {0},
};
