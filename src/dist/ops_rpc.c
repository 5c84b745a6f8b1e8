/* Operators that talk to servers, and the one that is a server.
 *
 *     send           X* to the servers of epmap; Out* is a token
 *     recv           Out* from the servers of epmap, after X*
 *     send_barrier   all has been sent: every server may go on
 *     fetch_barrier  all has been received
 *     listen_and_serv    hold the parameters, run optimize_blocks on what
 *                        arrives
 *     checkpoint_notify  servers write their part of a table to disk
 *
 * Here are slots and attributes, so that programs can be made, checked, saved
 * and shown; a program that holds one of them runs under a service. */
#include "op/op.h"

/* Tokens order the ops of a trainer, and no shape can be wrong. */
const fl_op_def fl_op_send = {
    .type = "send",
    .in = {{"X", FL_MANY}},
    .out = {{"Out", FL_MANY | FL_OPTIONAL}},
    .attr =
        {
            {"epmap", FL_ATTR_STRINGS},         /* a server for each piece */
            {"sections", FL_ATTR_LONGS},        /* rows of the pieces of X */
            {"send_varnames", FL_ATTR_STRINGS}, /* their names */
            {"trainer_id", FL_ATTR_INT},
            {"num", FL_ATTR_INT},
        },
    .infer = fl_infer_none,
};

const fl_op_def fl_op_recv = {
    .type = "recv",
    .in = {{"X", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out", FL_MANY}},
    .attr =
        {
            {"epmap", FL_ATTR_STRINGS},
            {"recv_varnames", FL_ATTR_STRINGS}, /* pieces of the one Out */
            {"trainer_id", FL_ATTR_INT},
            {"num", FL_ATTR_INT},
            {"do_not_run", FL_ATTR_INT}, /* a communicator does it */
        },
    .infer = fl_infer_none,
};

const fl_op_def fl_op_send_barrier = {
    .type = "send_barrier",
    .in = {{"X", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out", FL_MANY | FL_OPTIONAL}},
    .attr =
        {
            {"endpoints", FL_ATTR_STRINGS},
            {"trainer_id", FL_ATTR_INT},
        },
    .infer = fl_infer_none,
};

const fl_op_def fl_op_fetch_barrier = {
    .type = "fetch_barrier",
    .in = {{"X", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out", FL_MANY | FL_OPTIONAL}},
    .attr =
        {
            {"endpoints", FL_ATTR_STRINGS},
            {"trainer_id", FL_ATTR_INT},
        },
    .infer = fl_infer_none,
};

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
