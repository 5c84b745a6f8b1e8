/* The operator that is a server, and one that all servers hear.
 *
 *     listen_and_serv    hold the parameters, run optimize_blocks on what
 *                        arrives
 *     checkpoint_notify  servers write their part of a table to disk
 *
 * Here are slots and attributes, so that programs can be made, checked, saved
 * and shown; a program that holds one of them runs under a service. */
#include "op/op.h"

/* checkpint_block_id is spelled as in Fluid's programs. */
const fl_op_def fl_op_listen_and_serv = {
    .type = "listen_and_serv",
    .in = {{"X", FL_MANY | FL_OPTIONAL}},
    .attr =
        {
            {"endpoint", FL_ATTR_STRING, .required = true},
            {"Fanin", FL_ATTR_INT, .i = 1}, /* trainers */
            {"sync_mode", FL_ATTR_BOOL},
            {"optimize_blocks", FL_ATTR_BLOCKS, .required = true},
            {"grad_to_block_id", FL_ATTR_STRINGS},     /* "grad:block" */
            {"sparse_grad_to_param", FL_ATTR_STRINGS}, /* "grad:param" */
            {"prefetch_var_name_to_block_id", FL_ATTR_STRINGS},
            {"dc_asgd", FL_ATTR_BOOL},
            {"checkpint_block_id", FL_ATTR_INT, .i = -1},
            {"pserver_id", FL_ATTR_INT},
        },
    .infer = fl_infer_none,
};

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
