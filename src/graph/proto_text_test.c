/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/test_ops.h"

#include "base/test.h"

static fl_program *parse(fl_registry *r, const char *text)
{
    fl_program *p = NULL;
    CHECK_OK(fl_program_parse(r, text, &p));
    return p;
}

static void check(char *text, const char *want)
{
    CHECK_STR(text, want);
    fl_free(text);
}

static const char whole[] = "blocks {\n"
                            "  idx: 0\n"
                            "  parent_idx: -1\n"
                            "  vars {\n"
                            "    name: \"x\"\n"
                            "    type {\n"
                            "      type: LOD_TENSOR\n"
                            "      lod_tensor {\n"
                            "        tensor {\n"
                            "          data_type: FP32\n"
                            "          dims: -1\n"
                            "          dims: 2\n"
                            "        }\n"
                            "        lod_level: 1\n"
                            "      }\n"
                            "    }\n"
                            "    persistable: false\n"
                            "  }\n"
                            "  vars {\n"
                            "    name: \"y\"\n"
                            "    type {\n"
                            "      type: LOD_TENSOR\n"
                            "      lod_tensor {\n"
                            "        tensor {\n"
                            "          data_type: FP32\n"
                            "          dims: -1\n"
                            "          dims: 2\n"
                            "        }\n"
                            "        lod_level: 0\n"
                            "      }\n"
                            "    }\n"
                            "    persistable: true\n"
                            "  }\n"
                            "  ops {\n"
                            "    inputs {\n"
                            "      parameter: \"X\"\n"
                            "      arguments: \"x\"\n"
                            "    }\n"
                            "    outputs {\n"
                            "      parameter: \"Out\"\n"
                            "      arguments: \"y\"\n"
                            "    }\n"
                            "    type: \"sum\"\n"
                            "    attrs {\n"
                            "      name: \"op_role\"\n"
                            "      type: INT\n"
                            "      i: 1\n"
                            "    }\n"
                            "  }\n"
                            "}\n"
                            "version {\n"
                            "  version: 0\n"
                            "}\n";

static void prints_every_message(void)
{
    fl_registry *r = test_registry();
    fl_program *p = parse(r, "block 0\n"
                             "  data x: f32[-1,2] lod=1\n"
                             "  var y: f32[-1,2] persistable\n"
                             "  sum(X=x) -> Out=y {op_role=1}\n");
    check(fl_program_proto(p), whole);
    check(fl_var_proto(fl_block_var(fl_program_block(p, 0), "y")),
          "name: \"y\"\n"
          "type {\n"
          "  type: LOD_TENSOR\n"
          "  lod_tensor {\n"
          "    tensor {\n"
          "      data_type: FP32\n"
          "      dims: -1\n"
          "      dims: 2\n"
          "    }\n"
          "    lod_level: 0\n"
          "  }\n"
          "}\n"
          "persistable: true\n");
    fl_program_free(p);
    fl_registry_free(r);
}

/* The lines of an op's last attribute. */
static void check_attr(const fl_attr *value, const char *want)
{
    fl_registry *r = test_registry();
    fl_program *p = parse(r, "block 0\n"
                             "  data x: f32[2]\n"
                             "  sum(X=x) -> Out=y\n");
    fl_op *op = fl_block_op(fl_program_block(p, 0), 0);
    fl_desc_set_attr(&op->desc, value);
    char *text = fl_op_proto(op);
    const char *at = strstr(text, want);
    CHECK(at);
    if (at)
        CHECK_STR(at, want);
    fl_free(text);
    fl_program_free(p);
    fl_registry_free(r);
}

static void floats_are_pythons(void)
{
    const float f[] = {1, 0.1f, 1e-5f, 2e16f, 0, -2.5f, 1e15f};
    check_attr(&(fl_attr){"f", FL_ATTR_FLOATS, .n = 7, .floats = f},
               "  type: FLOATS\n"
               "  floats: 1.0\n"
               "  floats: 0.10000000149011612\n"
               "  floats: 9.999999747378752e-06\n"
               "  floats: 2.000000054512845e+16\n"
               "  floats: 0.0\n"
               "  floats: -2.5\n"
               "  floats: 999999986991104.0\n"
               "}\n");
}

static void other_types(void)
{
    const char *const s[] = {"a\"b\n", "\xc3\xa9"};
    const int64_t i[] = {3, -4};
    const bool b[] = {true, false};
    check_attr(&(fl_attr){"s", FL_ATTR_STRINGS, .n = 2, .strings = s},
               "  type: STRINGS\n"
               "  strings: \"a\\\"b\\n\"\n"
               "  strings: \"\\303\\251\"\n"
               "}\n");
    check_attr(&(fl_attr){"l", FL_ATTR_LONGS, .n = 2, .longs = i},
               "  longs: 3\n  longs: -4\n}\n");
    check_attr(&(fl_attr){"n", FL_ATTR_INTS, .n = 2, .longs = i},
               "  ints: 3\n  ints: -4\n}\n");
    check_attr(&(fl_attr){"b", FL_ATTR_BOOLS, .n = 2, .bools = b},
               "  bools: true\n  bools: false\n}\n");
    check_attr(&(fl_attr){"k", FL_ATTR_BLOCK, .i = 0},
               "  type: BLOCK\n  block_idx: 0\n}\n");
}

const fl_test fl_tests[] = {
    {"protobuf text of a program, a block and a var", prints_every_message},
    {"protobuf text has Python's floats", floats_are_pythons},
    {"protobuf text of every type of attribute", other_types},
    {0},
};
