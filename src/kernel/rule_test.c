/* SPDX-License-Identifier: Apache-2.0 */
/* Two steps of every rule, values computed apart from the code under test. */
#include "kernel/test_rule.h"

static void sgd_steps(void)
{
    test_rule(&(test_rule_case){
        .type = "sgd",
        .param = {{0.95, -1.9, 0.475, 3}, {0.975, -1.95, 0.375, 3.2}},
    });
}

static void momentum_gathers_speed(void)
{
    test_rule(&(test_rule_case){
        .type = "momentum",
        .attr = {{"mu", FL_ATTR_FLOAT, .f = 0.9f}},
        .param = {{0.95, -1.9, 0.475, 3}, {0.93, -1.86, 0.3525, 3.2}},
        .state = {{"Velocity",
                   0,
                   {{0.5, -1, 0.25, 0}, {0.2, -0.4, 1.225, -2}}}},
    });
}

static void momentum_looks_ahead(void)
{
    test_rule(&(test_rule_case){
        .type = "momentum",
        .attr = {{"mu", FL_ATTR_FLOAT, .f = 0.9f},
                 {"use_nesterov", FL_ATTR_BOOL, .b = true}},
        .param = {{0.905, -1.81, 0.4525, 3}, {0.912, -1.824, 0.24225, 3.38}},
        .state = {{"Velocity",
                   0,
                   {{0.5, -1, 0.25, 0}, {0.2, -0.4, 1.225, -2}}}},
    });
}

static void lars_scales_the_step(void)
{
    test_rule(&(test_rule_case){
        .type = "lars_momentum",
        .attr = {{"mu", FL_ATTR_FLOAT, .f = 0.9f},
                 {"lars_coeff", FL_ATTR_FLOAT, .f = 0.01f},
                 {"lars_weight_decay", FL_ATTR_FLOAT, .f = 0.5f}},
        .param = {{0.998755427, -1.99751085, 0.499377714, 2.99813314},
                  {0.997410869, -1.99482174, 0.497692924, 2.99690381}},
        .state = {{"Velocity",
                   0,
                   {{0.0012445729, -0.0024891458, 0.00062228645, 0.00186685935},
                    {0.00134455788, -0.00268911576, 0.00168478943,
                     0.00122932866}}}},
    });
}

static void adagrad_slows_down(void)
{
    test_rule(&(test_rule_case){
        .type = "adagrad",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 1e-06f}},
        .param = {{0.915484717, -1.90465383, 0.437982787, 3},
                  {0.954409604, -1.94768694, 0.345235093, 3.09877291}},
        .state = {{"Moment",
                   0.1,
                   {{0.35, 1.1, 0.1625, 0.1}, {0.4125, 1.35, 1.1625, 4.1}}}},
    });
}

static void adam_corrects_its_start(void)
{
    test_rule(&(test_rule_case){
        .type = "adam",
        .attr = {{"beta1", FL_ATTR_FLOAT, .f = 0.9f},
                 {"beta2", FL_ATTR_FLOAT, .f = 0.999f},
                 {"epsilon", FL_ATTR_FLOAT, .f = 1e-08f}},
        .param = {{0.900000063, -1.90000003, 0.400000126, 3},
                  {0.873366374, -1.87336634, 0.311562505, 3.07441367}},
        .state = {{"Moment1",
                   0,
                   {{0.05, -0.1, 0.025, 0}, {0.02, -0.04, 0.1225, -0.2}}},
                  {"Moment2",
                   0,
                   {{0.00025, 0.001, 6.25e-05, 0},
                    {0.00031225, 0.001249, 0.0010624375, 0.004}}}},
    });
}

static void adamax_keeps_the_largest(void)
{
    test_rule(&(test_rule_case){
        .type = "adamax",
        .attr = {{"beta1", FL_ATTR_FLOAT, .f = 0.9f},
                 {"beta2", FL_ATTR_FLOAT, .f = 0.999f},
                 {"epsilon", FL_ATTR_FLOAT, .f = 1e-08f}},
        .param = {{0.9, -1.9, 0.4, 3},
                  {0.878926295, -1.87892629, 0.335526316, 3.05263158}},
        .state = {{"Moment",
                   0,
                   {{0.05, -0.1, 0.025, 0}, {0.02, -0.04, 0.1225, -0.2}}},
                  {"InfNorm",
                   0,
                   {{0.5, 1, 0.25, 1e-08}, {0.49950001, 0.99900001, 1, 2}}}},
    });
}

static void decayed_adagrad_forgets(void)
{
    test_rule(&(test_rule_case){
        .type = "decayed_adagrad",
        .attr = {{"decay", FL_ATTR_FLOAT, .f = 0.8f},
                 {"epsilon", FL_ATTR_FLOAT, .f = 1e-06f}},
        .param = {{0.861325336, -1.81101812, 0.417800777, 3},
                  {0.934569963, -1.90653803, 0.226760962, 3.21516551}},
        .state = {{"Moment",
                   0.1,
                   {{0.13, 0.28, 0.0925, 0.08},
                    {0.1165, 0.274, 0.274, 0.864}}}},
    });
}

static void adadelta_needs_no_rate(void)
{
    test_rule(&(test_rule_case){
        .type = "adadelta",
        .attr = {{"rho", FL_ATTR_FLOAT, .f = 0.95f},
                 {"epsilon", FL_ATTR_FLOAT, .f = 1e-06f}},
        .param = {{0.995528043, -1.99552791, 0.495528579, 3},
                  {0.99841464, -1.99841462, 0.489384366, 3.00447212}},
        .state =
            {{"AvgSquaredGrad",
              0,
              {{0.0125, 0.05, 0.003125, 0}, {0.015, 0.06, 0.05296875, 0.2}}},
             {"AvgSquaredUpdate",
              0,
              {{9.99920006e-07, 9.9998e-07, 9.99680102e-07, 0},
               {1.36654623e-06, 1.36663656e-06, 2.8372641e-06, 9.99995e-07}}}},
    });
}

static void rmsprop_divides_by_the_mean(void)
{
    test_rule(&(test_rule_case){
        .type = "rmsprop",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 1e-06f},
                 {"decay", FL_ATTR_FLOAT, .f = 0.9f},
                 {"momentum", FL_ATTR_FLOAT, .f = 0.5f}},
        .param = {{0.683778558, -1.68377382, 0.183797529, 3},
                  {0.67310723, -1.67310204, -0.281994557, 3.31622737}},
        .state = {{"Moment",
                   0,
                   {{0.316221442, -0.316226185, 0.316202471, 0},
                    {0.0106713288, -0.0106717773, 0.465792087, -0.316227371}}},
                  {"MeanSquare",
                   0,
                   {{0.025, 0.1, 0.00625, 0},
                    {0.02875, 0.115, 0.105625, 0.4}}}},
    });
}

static void rmsprop_centres(void)
{
    test_rule(&(test_rule_case){
        .type = "rmsprop",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 1e-06f},
                 {"decay", FL_ATTR_FLOAT, .f = 0.9f},
                 {"momentum", FL_ATTR_FLOAT, .f = 0.5f},
                 {"centered", FL_ATTR_BOOL, .b = true}},
        .param = {{0.666674074, -1.66666852, 0.166696292, 3},
                  {0.64848696, -1.64848059, -0.332147103, 3.33333287}},
        .state = {{"Moment",
                   0,
                   {{0.333325926, -0.333331481, 0.333303708, 0},
                    {0.018187114, -0.0181879277, 0.498843395, -0.33333287}}},
                  {"MeanSquare",
                   0,
                   {{0.025, 0.1, 0.00625, 0}, {0.02875, 0.115, 0.105625, 0.4}}},
                  {"MeanGrad",
                   0,
                   {{0.05, -0.1, 0.025, 0}, {0.02, -0.04, 0.1225, -0.2}}}},
    });
}

static void ftrl_shrinks(void)
{
    test_rule(&(test_rule_case){
        .type = "ftrl",
        .attr = {{"l1", FL_ATTR_FLOAT, .f = 0.4f},
                 {"l2", FL_ATTR_FLOAT, .f = 0.2f},
                 {"lr_power", FL_ATTR_FLOAT, .f = -0.5f}},
        .param = {{0.293505178, -1.21707512, 0, 0},
                  {0.330148013, -1.2586761, -0.0371648202, 0.0774876312}},
        .state = {{"SquaredAccumulator",
                   0.1,
                   {{0.35, 1.1, 0.1625, 0.1}, {0.4125, 1.35, 1.1625, 4.1}}},
                  {"LinearAccumulator",
                   0,
                   {{-2.25380212, 13.6516216, -0.184425607, 0},
                    {-2.65247321, 15.5279651, 0.815574393, -2}}}},
    });
}

static void ftrl_takes_another_power(void)
{
    test_rule(&(test_rule_case){
        .type = "ftrl",
        .attr = {{"l1", FL_ATTR_FLOAT, .f = 0.1f},
                 {"l2", FL_ATTR_FLOAT, .f = 0.1f},
                 {"lr_power", FL_ATTR_FLOAT, .f = -0.7f}},
        .param = {{0.440460925, -1.49581637, 0.0179116714, 0},
                  {0.485262351, -1.53569615, -0.0528124314, 0.0702395878}},
        .state = {{"SquaredAccumulator",
                   0.1,
                   {{0.35, 1.1, 0.1625, 0.1}, {0.4125, 1.35, 1.1625, 4.1}}},
                  {"LinearAccumulator",
                   0,
                   {{-2.30038936, 16.3893363, -0.153785774, 0},
                    {-2.80785103, 19.3540728, 0.697391037, -2}}}},
    });
}

const fl_test fl_tests[] = {
    {"sgd steps against the gradient", sgd_steps},
    {"momentum gathers speed", momentum_gathers_speed},
    {"momentum looks ahead with nesterov", momentum_looks_ahead},
    {"lars_momentum scales the step by the norms", lars_scales_the_step},
    {"adagrad slows down where gradients were", adagrad_slows_down},
    {"adam corrects its start", adam_corrects_its_start},
    {"adamax keeps the largest gradient", adamax_keeps_the_largest},
    {"decayed_adagrad forgets", decayed_adagrad_forgets},
    {"adadelta needs no learning rate", adadelta_needs_no_rate},
    {"rmsprop divides by the mean square", rmsprop_divides_by_the_mean},
    {"rmsprop centres on the mean gradient", rmsprop_centres},
    {"ftrl shrinks small weights to nothing", ftrl_shrinks},
    {"ftrl takes another power", ftrl_takes_another_power},
    {0},
};
