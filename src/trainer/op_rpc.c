/* checkpoint_notify  servers write their part of a table to disk
 *
 * Here are slots and attributes, so that programs can be made, checked, saved
 * and shown. */
#include "op/op.h"

const fl_op_def fl_op_checkpoint_notify = {
    .type = "checkpoint_notify",
    .attr =
        {
            {"epmap", FL_ATTR_STRINGS},
            {"dir", FL_ATTR_STRING},
            {"lookup_table", FL_ATTR_STRING},
            {"trainer_id", FL_ATTR_INT},
        },
    .infer = fl_infer_none,
};
