/* SPDX-License-Identifier: Apache-2.0 */
/* listen_and_serv  holds parameters, runs optimize_blocks on gradients that
 *                  trainers push
 *
 * The operator is a server process: it returns when the job has ended. */
#include "op/op.h"
#include "pserver/pserver.h"

/* The op of the global block that has this description, or NULL. */
static const fl_op *find_op(const fl_program *p, const fl_desc *d)
{
    const fl_block *b = fl_program_block(p, 0);
    for (int64_t i = 0; i < b->ops.n; i++)
        if (&b->ops.at[i]->desc == d)
            return b->ops.at[i];
    return NULL;
}

static fl_err listen_and_serv(fl_call *c)
{
    const fl_site site = fl_call_site(c);
    const fl_op *op = find_op(site.program, c->desc);
    if (!op)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: the op must be in the global block");
    return fl_pserve(&(fl_pserver_opts){.env = site.env,
                                        .program = site.program,
                                        .op = op,
                                        .scope = site.scope});
}

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
            {"sum_gradients", FL_ATTR_BOOL}, /* not their mean */
        },
    .flags = FL_OP_NO_INFER | FL_OP_LOCAL | FL_OP_HEARS,
    .infer = fl_infer_none,
    .run = listen_and_serv,
};
