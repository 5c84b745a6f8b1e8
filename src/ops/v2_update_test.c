/* SPDX-License-Identifier: Apache-2.0 */
/* Two steps of every rule of paddle.v2, values computed apart from the code
 * under test. */
#include "kernel/test_rule.h"

static void momentum_steps(void)
{
    test_rule(&(test_rule_case){
        .type = "v2_momentum",
        .attr = {{"mu", FL_ATTR_FLOAT, .f = 0.9f},
                 {"l2", FL_ATTR_FLOAT, .f = 0.5f}},
        .param = {{0.9, -1.8, 0.45, 2.85}, {0.79, -1.58, 0.2825, 2.7725}},
        .state = {{"Velocity",
                   0,
                   {{-0.1, 0.2, -0.05, -0.15},
                    {-0.11, 0.22, -0.1675, -0.0775}}}},
    });
}

static void adagrad_steps(void)
{
    test_rule(&(test_rule_case){
        .type = "v2_adagrad",
        .attr = {{"mu", FL_ATTR_FLOAT, .f = 0.9f},
                 {"l2", FL_ATTR_FLOAT, .f = 0.5f},
                 {"epsilon", FL_ATTR_FLOAT, .f = 0.01f}},
        .param = {{0.803883865, -1.80099256, 0.314304662, 1.5},
                  {0.600623861, -1.58620682, 0.0354431755, 0.212422021}},
        .state = {{"Velocity",
                   0,
                   {{-0.196116135, 0.199007438, -0.185695338, -1.5},
                    {-0.203260004, 0.214785739, -0.278861486, -1.28757798}}},
                  {"Square",
                   0,
                   {{0.25, 1, 0.0625, 0}, {0.3125, 1.25, 1.0625, 4}}}},
    });
}

static void decayed_adagrad_steps(void)
{
    test_rule(&(test_rule_case){
        .type = "v2_decayed_adagrad",
        .attr = {{"mu", FL_ATTR_FLOAT, .f = 0.9f},
                 {"l2", FL_ATTR_FLOAT, .f = 0.5f},
                 {"epsilon", FL_ATTR_FLOAT, .f = 0.01f},
                 {"rho", FL_ATTR_FLOAT, .f = 0.75f}},
        .param = {{0.803883865, -1.80099256, 0.314304662, 1.5},
                  {0.594466875, -1.57772572, -0.0617073571, 0.274379649}},
        .state = {{"Velocity",
                   0,
                   {{-0.196116135, 0.199007438, -0.185695338, -1.5},
                    {-0.209416989, 0.223266844, -0.376012019, -1.22562035}}},
                  {"Square",
                   0,
                   {{0.25, 1, 0.0625, 0}, {0.203125, 0.8125, 0.296875, 1}}}},
    });
}

static void rmsprop_steps(void)
{
    test_rule(&(test_rule_case){
        .type = "v2_rmsprop",
        .attr = {{"mu", FL_ATTR_FLOAT, .f = 0.9f},
                 {"l2", FL_ATTR_FLOAT, .f = 0.5f},
                 {"epsilon", FL_ATTR_FLOAT, .f = 0.01f},
                 {"rho", FL_ATTR_FLOAT, .f = 0.75f}},
        .param = {{0.797711305, -1.7945338, 0.309090416, 1.5},
                  {0.58333341, -1.56570577, -0.109585869, 0.293384834}},
        .state = {{"Velocity",
                   0,
                   {{-0.202288695, 0.205466199, -0.190909584, -1.5},
                    {-0.214377895, 0.228828035, -0.418676285, -1.20661517}}},
                  {"Square",
                   0,
                   {{0.25, 1, 0.0625, 0}, {0.203125, 0.8125, 0.296875, 1}}},
                  {"MeanGrad",
                   0,
                   {{0.125, -0.25, 0.0625, 0},
                    {0.03125, -0.0625, 0.296875, -0.5}}}},
    });
}

static void adadelta_steps(void)
{
    test_rule(&(test_rule_case){
        .type = "v2_adadelta",
        .attr = {{"mu", FL_ATTR_FLOAT, .f = 0.9f},
                 {"l2", FL_ATTR_FLOAT, .f = 0.5f},
                 {"epsilon", FL_ATTR_FLOAT, .f = 0.01f},
                 {"rho", FL_ATTR_FLOAT, .f = 0.75f}},
        .param = {{0.962860932, -1.96077677, 0.468765248, 2.85},
                  {0.917707084, -1.91228103, 0.410609121, 2.72072146}},
        .state =
            {{"Velocity",
              0,
              {{-0.0371390676, 0.039223227, -0.0312347524, -0.15},
               {-0.0451538482, 0.0484957477, -0.0581561268, -0.129278536}}},
             {"Square",
              0,
              {{0.0625, 0.25, 0.015625, 0}, {0.0625, 0.25, 0.26171875, 1}}},
             {"SquareUpdate",
              0,
              {{0.00862068966, 0.00961538462, 0.00609756098, 0},
               {0.0104785969, 0.0119267751, 0.0193840376, 0.0099009901}}}},
    });
}

static void l1_moves_towards_zero(void)
{
    fl_check_op(&(fl_op_case){
        .type = "v2_momentum",
        .attr = {{"l1", FL_ATTR_FLOAT, .f = 6.0f},
                 {"l2", FL_ATTR_FLOAT, .f = 0.5f}},
        .in = {{"Param", {2, 2}, {1, -2, 0.5, 3}},
               {"Grad", {2, 2}, {0.5, -1, 0.25, 0}},
               {"LearningRate", {1}, {0.1}},
               {"Velocity", {2, 2}, {0, 0, 0, 0}}},
        .out = {{"ParamOut",
                 {2, 2},
                 {0.333333333, -1.23809524, 0, 2.28571429},
                 .same = "Param"},
                {"VelocityOut",
                 {2, 2},
                 {-0.05, 0.1, -0.025, 0},
                 .same = "Velocity"}},
    });
}

const fl_test fl_tests[] = {
    {"v2_momentum keeps the learning rate in its velocity", momentum_steps},
    {"v2_adagrad has epsilon inside the root", adagrad_steps},
    {"v2_decayed_adagrad starts with the whole square", decayed_adagrad_steps},
    {"v2_rmsprop centres on the mean gradient", rmsprop_steps},
    {"v2_adadelta uses the learning rate", adadelta_steps},
    {"l1 moves a parameter of paddle.v2 towards zero", l1_moves_towards_zero},
    {0},
};
