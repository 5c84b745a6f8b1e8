/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shuffle.h"
#include "base/test.h"

/* numpy.random.seed(seed); numpy.random.permutation(10) */
static void gives_the_order_of_numpy(void)
{
    static const struct {
        uint32_t seed;
        int want[10];
    } rows[] = {
        {0, {2, 8, 4, 9, 1, 6, 7, 3, 0, 5}},
        {42, {8, 1, 5, 0, 7, 2, 9, 4, 3, 6}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        int got[10];
        fl_shuffle(rows[k].seed, 10, got);
        for (int i = 0; i < 10; i++)
            CHECK_INT(got[i], rows[k].want[i]);
    }
}

const fl_test fl_tests[] = {
    {"a shuffle gives the order of numpy", gives_the_order_of_numpy},
    {0},
};
