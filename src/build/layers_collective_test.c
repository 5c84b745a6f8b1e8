/* SPDX-License-Identifier: Apache-2.0 */
#include "build/layer.h"
#include "build/test_net.h"
#include "check/check.h"

#include <stdio.h>

/* The lines of the ops that a call has made. */
static const char *emitted(fl_net *n, const char *name, const fl_arg *args)
{
    static char kept[1000];
    fl_var *out;
    CHECK_OK(fl_layer_get(n, name, args, &out));
    char *text = fl_program_brief(n->main);
    const char *at = strstr(text, ") -> ");
    while (at > text && at[-1] != '\n')
        at--;
    snprintf(kept, sizeof kept, "%s", at);
    fl_free(text);
    return kept;
}

static void results_are_new_or_in_place(void)
{
    const struct {
        const char *name;
        fl_arg args[4];
        const char *line;
    } cases[] = {
        {"_allreduce",
         {{"reduce_type", .s = "max"}},
         "  allreduce(X=x) -> Out=allreduce_0.tmp_0 {reduce_type=2}\n"},
        {"_broadcast",
         {{"root", .i = 1}},
         "  broadcast(X=x) -> Out=x {root=1}\n"},
        {"_c_allreduce",
         {{"ring_id", .i = 3}},
         "  c_allreduce_sum(X=x) -> Out=c_allreduce_0.tmp_0 {ring_id=3}\n"},
        {"_c_broadcast", {{0}}, "  c_broadcast(X=x) -> Out=x\n"},
        {"_c_allgather",
         {{"nranks", .i = 2}},
         "  c_allgather(X=x) -> Out=c_allgather_0.tmp_0 {nranks=2}\n"},
        {"_c_reducescatter",
         {{"nranks", .i = 2}},
         "  c_reducescatter(X=x) -> Out=c_reducescatter_0.tmp_0 "
         "{nranks=2}\n"},
        {"_c_sync_calc_stream", {{0}}, "  c_sync_calc_stream(X=x) -> Out=x\n"},
        {"_c_sync_comm_stream",
         {{"ring_id", .i = 1}},
         "  c_sync_comm_stream(X=x) -> Out=x {ring_id=1}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fl_net *n = fl_net_make(fl_check_registry());
        fl_arg args[6] = {
            {"x", .var = test_data(n, "x", FL_F32, 1, (const int64_t[]){4})}};
        memcpy(args + 1, cases[i].args, sizeof cases[i].args);
        CHECK_STR(emitted(n, cases[i].name, args), cases[i].line);
        fl_net_free(n);
    }
}

static void an_unknown_reduction_is_named(void)
{
    fl_var *out;
    fl_net *n = fl_net_make(fl_check_registry());
    fl_var *x = test_data(n, "x", FL_F32, 1, (const int64_t[]){4});
    CHECK_ERR(fl_layer_get(n, "_c_allreduce",
                           (const fl_arg[]){{"x", .var = x},
                                            {"reduce_type", .s = "mean"},
                                            {0}},
                           &out),
              FL_EINVAL,
              "_c_allreduce: reduce_type is \"mean\", expected \"sum\", "
              "\"prod\", \"max\" or \"min\"");
    fl_net_free(n);
}

const fl_test fl_tests[] = {
    {"results of collective layers are new or in place",
     results_are_new_or_in_place},
    {"an unknown reduction is named", an_unknown_reduction_is_named},
    {0},
};
