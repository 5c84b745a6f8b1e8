/* layers_click.c - layers of click models. */
#include "build/layer.h"

const fl_layer_def fl_layers_click[] = {
    {
        .name = "continuous_value_model",
        .doc = "The first two columns of input, shows and clicks, as "
               "logarithms, or without use_cvm left out; their gradient is "
               "cvm.",
        .prefix = "cvm",
        .args = {{"input", FL_ARG_VAR},
                 {"cvm", FL_ARG_VAR},
                 {"use_cvm", FL_ARG_BOOL, "True"}},
        .op = "cvm",
        .in = {{"X", "input"}, {"CVM", "cvm"}},
        .out = {{"Y"}},
    },
    {
        .name = "hash",
        .doc = "num_hash ids below hash_size for each row of input, which are "
               "hashes of its ids.",
        .args = {{"input", FL_ARG_VAR},
                 {"hash_size", FL_ARG_INT},
                 {"num_hash", FL_ARG_INT, "1"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "hash",
        .in = {{"X", "input"}},
        .out = {{"Out", FL_STOP}},
        .map = {{"hash_size", "mod_by"}},
    },
    {
        .name = "teacher_student_sigmoid_loss",
        .doc = "The cross entropy of sigmoid(input) with a click, and with "
               "what a teacher thinks of it, both in label: -2 no click, -1 a "
               "click; p no click and a teacher's p, 1 + p a click and p.",
        .args = {{"input", FL_ARG_VAR},
                 {"label", FL_ARG_VAR},
                 {"soft_max_up_bound", FL_ARG_FLOAT, "15.0"},
                 {"soft_max_lower_bound", FL_ARG_FLOAT, "-15.0"}},
        .op = "teacher_student_sigmoid_loss",
        .in = {{"X", "input"}, {"Label", "label"}},
        .out = {{"Y"}},
    },
    {0},
};
