/* SPDX-License-Identifier: Apache-2.0 */
#include "train/common.h"

#include "base/str.h"
#include "base/test.h"
#include "check/check.h"

/* w is trained; rate is computed in each step; seen is a persistable temporary;
 * count is a state that its op reads first. */
static const char text[] =
    "block 0\n"
    "  data x: f32[-1,2]\n"
    "  param w: f32[2,1]\n"
    "  var rate: f32[1] persistable\n"
    "  var still: f32[1] persistable\n"
    "  var count: f32[1] persistable\n"
    "  var seen: f32[-1,1] persistable\n"
    "  var g: f32[2,1]\n"
    "  increment(X=count) -> Out=count {step=1.0}\n"
    "  scale(X=count) -> Out=rate {scale=0.5}\n"
    "  mul(X=x, Y=w) -> Out=seen\n"
    "  scale(X=w) -> Out=g {scale=2.0}\n"
    "  elementwise_add(X=seen, Y=still) -> Out=seen\n"
    "  sgd(Param=w, LearningRate=rate, Grad=g) -> ParamOut=w\n";

static fl_program *program(void)
{
    fl_program *p;
    CHECK_OK(fl_program_parse(fl_check_registry(), text, &p));
    return p;
}

static void state_is_what_a_step_reads_of_the_last(void)
{
    fl_program *p = program();
    fl_common c;
    fl_str got = {0};
    fl_common_init(&c, p);
    for (int64_t i = 0; i < c.state.n; i++)
        fl_str_printf(&got, "%s ", c.state.at[i]);
    fl_str_add(&got, "| ");
    for (int64_t i = 0; i < c.fresh.n; i++)
        fl_str_printf(&got, "%s ", c.fresh.at[i]);
    CHECK_STR(got.at, "count w | rate seen ");
    fl_str_fini(&got);
    fl_common_fini(&c);
    fl_program_free(p);
}

static void a_thread_has_what_is_written_anew_for_itself(void)
{
    fl_program *p = program();
    fl_scope *s = fl_scope_new();
    fl_common c;
    fl_common_init(&c, p);
    fl_value *w = fl_scope_var(s, "w"), *rate = fl_scope_var(s, "rate");
    fl_scope *mine = fl_common_scope(&c, s);
    CHECK(fl_scope_find(mine, "w") == w);
    CHECK(fl_scope_find(mine, "rate") && fl_scope_find(mine, "rate") != rate);
    fl_scope_free(mine);
    fl_common_fini(&c);
    fl_scope_free(s);
    fl_program_free(p);
}

/* A tensor whose memory is shared is copied before threads start. */
static void memory_that_is_written_is_shared_with_nobody(void)
{
    fl_program *p = program();
    fl_scope *s = fl_scope_new();
    fl_common c;
    fl_tensor *w, other = {0};
    const float x[] = {1, 2};
    const fl_tensor view = fl_tensor_view(FL_F32, &(fl_shape){2, {2, 1}}, x);
    fl_common_init(&c, p);
    CHECK_OK(fl_scope_set(s, "w", &view));
    CHECK_OK(fl_value_tensor(fl_scope_find(s, "w"), &w));
    CHECK_OK(fl_tensor_ref(&other, w));
    CHECK(other.data == w->data);
    CHECK_OK(fl_common_settle(&c, s));
    CHECK(other.data != w->data);
    CHECK_NEAR(((float *)w->data)[1], 2, 0);
    fl_tensor_fini(&other);
    fl_common_fini(&c);
    fl_scope_free(s);
    fl_program_free(p);
}

const fl_test fl_tests[] = {
    {"state is what a step reads of the last",
     state_is_what_a_step_reads_of_the_last},
    {"a thread has what is written anew for itself",
     a_thread_has_what_is_written_anew_for_itself},
    {"memory that is written is shared with nobody",
     memory_that_is_written_is_shared_with_nobody},
    {0},
};
