/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memdisk.h"
#include "check/check.h"

typedef struct scene {
    fl_vars vars;
    fl_memdisk *disk;
} scene;

static void open_scene(scene *s)
{
    fl_vars_init(&s->vars);
    s->disk = fl_memdisk_new();
    s->vars.hooks.disk = fl_memdisk_disk(s->disk);
}

static void close_scene(scene *s)
{
    fl_vars_fini(&s->vars);
    fl_memdisk_free(s->disk);
}

static fl_err run(scene *s, const char *type, int n, const char *const *names,
                  const fl_attr *attr)
{
    fl_desc *d = fl_desc_new(s->vars.arena, type);
    if (*type == 's')
        fl_desc_set_in(d, "X", n, names);
    else
        fl_desc_set_out(d, "Out", n, names);
    fl_desc_set_attr(d,
                     &(fl_attr){"file_path", FL_ATTR_STRING, .s = "model/w"});
    if (attr)
        fl_desc_set_attr(d, attr);
    return fl_vars_run(&s->vars, d);
}

#define NAMES(...)                                                             \
    sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[])   \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static float element(scene *s, const char *name, int i)
{
    return ((float *)fl_vars_get(&s->vars, name)->tensor.data)[i];
}

static void one_tensor_comes_back(void)
{
    scene s;
    open_scene(&s);
    fl_vars_set(&s.vars, "w", 2, (float[]){3, 4});
    CHECK_OK(run(&s, "save", NAMES("w"), NULL));
    CHECK_OK(run(&s, "load", NAMES("again"), NULL));
    CHECK_NEAR(element(&s, "again", 1), 4, 0);
    CHECK_INT(fl_vars_get(&s.vars, "again")->tensor.shape.dim[0], 2);
    close_scene(&s);
    fl_checked("save", false);
    fl_checked("load", false);
}

static void selected_rows_come_back(void)
{
    scene s;
    open_scene(&s);
    fl_value *v = fl_vars_get(&s.vars, "rows");
    fl_value *again = fl_vars_get(&s.vars, "again");
    fl_shape shape = {2, {9, 1}};
    v->kind = again->kind = FL_SELECTED_ROWS;
    CHECK_OK(fl_rows_resize(&v->rows, FL_F32, &shape, 1));
    *fl_rows_index(&v->rows) = 7;
    *(float *)v->rows.value.data = 5;
    CHECK_OK(run(&s, "save", NAMES("rows"), NULL));
    CHECK_OK(run(&s, "load", NAMES("again"), NULL));
    CHECK_INT(again->rows.height, 9);
    CHECK_INT(*fl_rows_index(&again->rows), 7);
    CHECK_NEAR(*(float *)again->rows.value.data, 5, 0);
    close_scene(&s);
}

static void many_share_a_file(void)
{
    scene s;
    open_scene(&s);
    fl_vars_set(&s.vars, "a", 1, (float[]){1});
    fl_vars_set(&s.vars, "b", 2, (float[]){2, 3});
    CHECK_OK(run(&s, "save_combine", NAMES("a", "b"), NULL));
    CHECK_OK(run(&s, "load_combine", NAMES("c", "d"), NULL));
    CHECK_NEAR(element(&s, "c", 0), 1, 0);
    CHECK_NEAR(element(&s, "d", 1), 3, 0);
    CHECK_ERR(run(&s, "load_combine", NAMES("c"), NULL), FL_EPROTO, "model/w");
    CHECK_ERR(run(&s, "load_combine", NAMES("c", "d", "e"), NULL), FL_EPROTO,
              "model/w");
    close_scene(&s);
    fl_checked("save_combine", false);
    fl_checked("load_combine", false);
}

static void halves_are_written_and_kept(void)
{
    scene s;
    open_scene(&s);
    fl_vars_set(&s.vars, "w", 1, (float[]){1.5f});
    CHECK_OK(run(&s, "save", NAMES("w"),
                 &(fl_attr){"save_as_fp16", FL_ATTR_BOOL, .b = true}));
    CHECK_OK(run(&s, "load", NAMES("half"), NULL));
    CHECK_INT(fl_vars_get(&s.vars, "half")->tensor.dtype, FL_F16);
    CHECK_OK(run(&s, "save", NAMES("w"), NULL));
    CHECK_OK(run(&s, "load", NAMES("again"),
                 &(fl_attr){"load_as_fp16", FL_ATTR_BOOL, .b = true}));
    const fl_tensor *t = &fl_vars_get(&s.vars, "again")->tensor;
    CHECK_INT(t->dtype, FL_F16);
    CHECK_NEAR(fl_f16_to_f32(*(uint16_t *)t->data), 1.5, 0);
    close_scene(&s);
}

static void a_file_is_overwritten_only_when_allowed(void)
{
    scene s;
    fl_attr keep = {"overwrite", FL_ATTR_BOOL, .b = false};
    open_scene(&s);
    fl_vars_set(&s.vars, "w", 1, (float[]){1});
    CHECK_OK(run(&s, "save", NAMES("w"), &keep));
    CHECK_ERR(run(&s, "save", NAMES("w"), &keep), FL_EINVAL,
              "save: model/w exists, and overwrite is false");
    CHECK_OK(run(&s, "save", NAMES("w"), NULL));
    close_scene(&s);
}

static void failures_name_the_file(void)
{
    scene s;
    open_scene(&s);
    CHECK_ERR(run(&s, "load", NAMES("w"), NULL), FL_ENOENT,
              "model does not exist, expected a saved folder");
    CHECK_ERR(run(&s, "save", NAMES("nothing"), NULL), FL_EINVAL, "model/w");
    CHECK_ERR(run(&s, "save", NAMES(FL_EMPTY), NULL), FL_EINVAL,
              "save: input X is missing");
    CHECK_ERR(run(&s, "save_combine", NAMES(FL_EMPTY), NULL), FL_EINVAL,
              "save_combine: input X is missing");
    CHECK_ERR(run(&s, "load", NAMES(FL_EMPTY), NULL), FL_EINVAL,
              "load: output Out is missing");
    s.vars.hooks.disk = NULL;
    CHECK_ERR(run(&s, "load", NAMES("w"), NULL), FL_EINVAL,
              "load: this process has no disk");
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"save and load bring a tensor back", one_tensor_comes_back},
    {"save and load bring selected rows back", selected_rows_come_back},
    {"save_combine puts many into a file", many_share_a_file},
    {"save and load know halves", halves_are_written_and_kept},
    {"save overwrites only when allowed",
     a_file_is_overwritten_only_when_allowed},
    {"save and load name the file that fails", failures_name_the_file},
    {0},
};
