/* SPDX-License-Identifier: Apache-2.0 */
/* meta_test.c - no operator without a test, no gradient without a check.
 *
 * Other tests note in $FL_CHECKED_DIR what they have checked (check/check.h); a
 * full run of the tests comes here last. */
#include "check/check.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool was_checked(const char *dir, const char *type, const char *ending)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s%s", dir, type, ending);
    return access(path, F_OK) == 0;
}

/* Names of forward operators that lack a note; differentiable ones only, where
 * a gradient is asked for. */
static void check_all(const char *ending, bool gradients)
{
    const fl_registry *r = fl_check_registry();
    const char *dir = getenv("FL_CHECKED_DIR");
    fl_str lacking = {0};
    if (!dir)
        fl_test_skip("FL_CHECKED_DIR is not set: run all tests");
    for (int i = 0; i < fl_registry_count(r); i++) {
        const fl_op_def *def = fl_registry_at(r, i);
        bool derived = fl_registry_forward(r, def->type);
        if (derived || (gradients && !fl_op_differentiable(def)))
            continue;
        if (!was_checked(dir, def->type, ending))
            fl_str_printf(&lacking, " %s", def->type);
    }
    if (lacking.n)
        print_error("no test has checked%s:%s\n",
                    gradients ? " the gradient of" : "", lacking.at);
    bool complete = !lacking.n;
    fl_str_fini(&lacking);
    CHECK(complete);
}

static void every_operator_was_checked(void)
{
    check_all("", false);
}

static void every_gradient_was_checked(void)
{
    check_all(".grad", true);
}

/* Without one a gradient in a program from elsewhere could bring inputs of
 * other shapes, and its kernel would read beyond them. */
static void every_gradient_has_a_shape_rule(void)
{
    const fl_registry *r = fl_check_registry();
    for (int i = 0; i < fl_registry_count(r); i++) {
        const fl_op_def *def = fl_registry_at(r, i);
        if (def->grad_run && !def->grad_infer)
            print_error("%s: .grad_run without .grad_infer\n", def->type);
        CHECK(!def->grad_run || def->grad_infer);
    }
}

const fl_test fl_tests[] = {
    {"every operator was checked", every_operator_was_checked},
    {"every gradient was compared with differences",
     every_gradient_was_checked},
    {"every gradient has a shape rule", every_gradient_has_a_shape_rule},
    {0},
};
