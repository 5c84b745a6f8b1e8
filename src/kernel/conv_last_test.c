/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "kernel/conv.h"

enum {
    MOST = 27 /* rows and columns */
};

static void turns_any_size(void)
{
    static float from[MOST * MOST], to[MOST * MOST + 1];
    for (int64_t i = 0; i < MOST * MOST; i++)
        from[i] = (float)(i + 1);
    for (int64_t rows = 1; rows <= MOST; rows++)
        for (int64_t columns = 1; columns <= MOST; columns++) {
            to[rows * columns] = -1;
            fl_turn_f32(rows, columns, from, to);
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < columns; j++)
                    CHECK(to[j * rows + i] == from[i * columns + j]);
            CHECK(to[rows * columns] == -1);
        }
}

const fl_test fl_tests[] = {
    {"a matrix of any size is turned", turns_any_size},
    {0},
};
