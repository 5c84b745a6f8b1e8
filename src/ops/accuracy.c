/* SPDX-License-Identifier: Apache-2.0 */
/* accuracy  Correct  = rows where one of Indices is the Label
 *           Total    = rows
 *           Accuracy = Correct / Total
 *
 * Indices are those of top_k; its values, Out, are not read. */
#include "op/op.h"

static int32_t count_correct(int64_t rows, int64_t k, const int64_t *index,
                             const int64_t *label)
{
    int32_t correct = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < k; j++)
            if (index[r * k + j] == label[r]) {
                correct++;
                break;
            }
    return correct;
}

static fl_err accuracy(fl_call *c)
{
    const fl_tensor *index = fl_in(c, "Indices");
    int64_t rows = index->shape.dim[0];
    int32_t correct = count_correct(rows, index->shape.dim[1], index->data,
                                    fl_in(c, "Label")->data);
    *(int32_t *)fl_out(c, "Correct")->data = correct;
    *(int32_t *)fl_out(c, "Total")->data = (int32_t)rows;
    *(float *)fl_out(c, "Accuracy")->data =
        rows ? (float)correct / (float)rows : 0;
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *index = fl_meta_in(x, "Indices", 0);
    fl_shape one = {1, {1}};
    FL_TRY(fl_meta_check(x, "Out", FL_REALS));
    FL_TRY(fl_meta_check(x, "Indices", FL_SET(FL_I64)));
    if (index->shape.rank != 2)
        return fl_fail(FL_ESHAPE, "%s: Indices has %d dims, expected 2",
                       fl_meta_type(x), index->shape.rank);
    fl_shape label = {2, {index->shape.dim[0], 1}};
    FL_TRY(fl_meta_expect(x, "Label", FL_I64, &label));
    fl_meta_set(x, "Accuracy", 0, FL_F32, &one);
    fl_meta_set(x, "Correct", 0, FL_I32, &one);
    fl_meta_set(x, "Total", 0, FL_I32, &one);
    return FL_OK;
}

const fl_op_def fl_op_accuracy = {
    .type = "accuracy",
    .in = {{"Out"}, {"Indices"}, {"Label"}},
    .out = {{"Accuracy"}, {"Correct"}, {"Total"}},
    .infer = infer,
    .run = accuracy,
};
