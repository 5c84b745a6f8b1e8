/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_reverse  Y = X with the rows of each sequence in reverse order
 * gradient          the same with Y@GRAD */
#include "kernel/sequence.h"

#include <string.h>

static void turn(const fl_lod *lod, const fl_tensor *x, fl_tensor *y)
{
    const fl_sequences of = fl_sequences_of(lod);
    const size_t row = (size_t)fl_sequence_width(x) * fl_dtype_size(x->dtype);
    for (int64_t s = 0; row && s < of.n; s++)
        for (int64_t i = of.off[s]; i < of.off[s + 1]; i++) {
            const int64_t to = of.off[s] + of.off[s + 1] - 1 - i;
            memcpy((char *)y->data + (size_t)to * row,
                   (const char *)x->data + (size_t)i * row, row);
        }
}

static fl_err sequence_reverse(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    turn(&x->lod, x, fl_out(c, "Y"));
    return FL_OK;
}

static fl_err sequence_reverse_grad(fl_call *c)
{
    turn(&fl_in(c, "X")->lod, fl_in(c, "Y@GRAD"), fl_out(c, "X@GRAD"));
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_sequence_check(x, "X", 0));
    fl_meta_set(x, "Y", 0, in->dtype, &in->shape);
    fl_meta_share_lod(x, "X", "Y");
    return FL_OK;
}

const fl_op_def fl_op_sequence_reverse = {
    .type = "sequence_reverse",
    .in = {{"X"}},
    .out = {{"Y"}},
    .infer = infer,
    .run = sequence_reverse,
    .grad_in = {"X", "Y@GRAD"},
    .grad_run = sequence_reverse_grad,
    .grad_infer = fl_infer_grad_of_rule,
};
