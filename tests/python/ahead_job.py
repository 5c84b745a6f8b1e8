# SPDX-License-Identifier: Apache-2.0
"""A synchronous job that learns from files and looks rows up on its servers:
python ahead_job.py FILE ... Each trainer reads the file of its number, and
writes its weights to out-NUMBER.npz.
"""
import os
import sys

import numpy as np

import data_job
import paddle.fluid as fluid


def main(files):
    me = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    fluid.default_startup_program().random_seed = 3
    feeds, _, loss = data_job.network()
    fluid.optimizer.SGD(0.5).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.runtime_split_send_recv = True
    t = fluid.DistributeTranspiler(config)
    t.transpile(me, pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"],
                trainers=len(files))
    exe = fluid.Executor(fluid.CPUPlace())
    if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
        program, startup = t.get_pserver_programs(
            os.environ["PADDLE_CURRENT_ENDPOINT"])
        exe.run(startup)
        return exe.run(program)
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    exe.train_from_dataset(program, data_job.dataset_of(
        feeds, files[me:me + 1], lambda key, default: default))
    np.savez("out-%d.npz" % me, **{
        name: np.array(fluid.global_scope().find_var(name).get_tensor())
        for name in ("fc_0.w_0", "fc_0.b_0")})
    return exe.close()


if __name__ == "__main__":
    main(sys.argv[1:])
