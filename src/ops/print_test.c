/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include "op/frame.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Run `fn` and read what it wrote to stderr. */
static const char *shown(void (*fn)(void))
{
    static char text[1024];
    char path[512];
    snprintf(path, sizeof path, "%s/stderr", fl_test_dir());
    fflush(stderr);
    int old = dup(2);
    FILE *f = freopen(path, "w+", stderr);
    CHECK(f && old >= 0);
    fn();
    fflush(stderr);
    dup2(old, 2);
    close(old);
    f = fopen(path, "r");
    CHECK(f != NULL);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

static fl_value *find(void *self, const char *name)
{
    return fl_vars_get(self, name);
}

/* One print, run three times. */
static void print_with(const fl_attr *attrs, int n)
{
    fl_vars v;
    fl_frame f;
    const fl_op_def *def;
    fl_vars_init(&v);
    fl_vars_set(&v, "x", 3, (float[]){1, 2.5f, 3});
    fl_desc *d = fl_desc_new(v.arena, "print");
    fl_desc_set_in1(d, "In", "x");
    fl_desc_set_out1(d, "Out", "y");
    for (int i = 0; i < n; i++)
        fl_desc_set_attr(d, &attrs[i]);
    CHECK_OK(fl_registry_get(fl_check_registry(), "print", &def));
    CHECK_OK(fl_frame_init(&f, v.arena, def, d, &v.hooks, NULL, find, &v));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fl_frame_prepare(&f));
        CHECK_OK(fl_frame_run(&f));
    }
    CHECK_NEAR(((float *)fl_vars_get(&v, "y")->tensor.data)[1], 2.5, 0);
    fl_frame_fini(&f);
    fl_vars_fini(&v);
}

static void once(void)
{
    const fl_attr attrs[] = {
        {"message", FL_ATTR_STRING, .s = "look:"},
        {"first_n", FL_ATTR_INT, .i = 1},
        {"summarize", FL_ATTR_INT, .i = 2},
    };
    print_with(attrs, 3);
}

static void elements_only(void)
{
    const fl_attr attrs[] = {
        {"first_n", FL_ATTR_INT, .i = 2},
        {"print_tensor_name", FL_ATTR_BOOL, .b = false},
        {"print_tensor_shape", FL_ATTR_BOOL, .b = false},
        {"print_tensor_type", FL_ATTR_BOOL, .b = false},
    };
    print_with(attrs, 4);
}

static void backward_only(void)
{
    const fl_attr attrs[] = {{"print_phase", FL_ATTR_STRING, .s = "BACKWARD"}};
    print_with(attrs, 1);
}

static void shows_name_shape_type_and_some_elements(void)
{
    CHECK_STR(shown(once), "look:\nTensor[x]\n\tshape: [3]\n\tdtype: f32\n"
                           "\tdata: 1,2.5\n");
    CHECK_STR(shown(elements_only), "\tdata: 1,2.5,3\n\tdata: 1,2.5,3\n");
    CHECK_STR(shown(backward_only), "");
}

static void check_case(void)
{
    fl_check_op(&(fl_op_case){
        .type = "print",
        .in = {{"In", {2, 1}, {1, 2}, .lod = "0,2"}},
        .out = {{"Out", {2, 1}, {1, 2}, .lod = "0,2"}},
        .grad = {"In"},
    });
}

static void passes_values_and_gradients_on(void)
{
    const char *text = shown(check_case);
    CHECK(strstr(text, "lod: [[0,2]]") != NULL);
    CHECK(strstr(text, "Tensor[Out@GRAD]") != NULL);
}

const fl_test fl_tests[] = {
    {"print shows name, shape, type and some elements",
     shows_name_shape_type_and_some_elements},
    {"print passes values and gradients on", passes_values_and_gradients_on},
    {0},
};
