# SPDX-License-Identifier: Apache-2.0
"""A job whose trainers see different clicks, and count them together.

    auc_job.py sync|async

Trainers tell their own counts and what train_from_dataset has shown. An
asynchronous trainer 1 begins when trainer 0 has ended its pass.
"""
import json
import os
import sys
import time

import numpy as np

import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \
    import DistributeTranspilerConfig, fleet

LINES, BATCH, BINS = 200, 10, 100


def write_file(rank):
    """Trainer 1 sees fewer clicks, which say nothing."""
    rng = np.random.RandomState(rank)
    name = "part-%d" % rank
    with open(name, "w") as f:
        for _ in range(LINES):
            x = rng.rand()
            click = rng.rand() < (0.2 if rank else x)
            f.write("1 %g 1 %d\n" % (x, click))
    return name


def network():
    x = fluid.layers.data("x", [1])
    label = fluid.layers.data("label", [1], dtype="int64")
    w = fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.))
    predict = fluid.layers.fc(x, 2, act="softmax", param_attr=w)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, label))
    score = fluid.layers.concat([x, x], axis=1)  # the AUC is that of x
    states = fluid.layers.auc(score, label, num_thresholds=BINS)[2]
    return [x, label], loss, states[2:]


def train(exe, feeds, rank, wait):
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(feeds)
    dataset.set_batch_size(BATCH)
    dataset.set_thread(1)
    dataset.set_filelist([write_file(rank)])
    while rank and wait and not os.path.exists("done-0"):
        time.sleep(0.01)
    exe.train_from_dataset(fleet.main_program, dataset)
    open("done-%d" % rank, "w").close()


def main(mode):
    fleet.init(role_maker.PaddleCloudRoleMaker())
    feeds, loss, states = network()
    config = DistributeTranspilerConfig()
    config.sync_mode = mode == "sync"
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.01),
                                config).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        return fleet.run_server()
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    train(exe, feeds, fleet.worker_index(), mode == "async")
    print("counts", json.dumps([
        np.array(fluid.global_scope().find_var(s.name).get_tensor())
        .ravel().tolist() for s in states]))
    return fleet.stop_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
