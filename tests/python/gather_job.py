# SPDX-License-Identifier: Apache-2.0
"""A job whose result is known to the last bit, however gradients travel.

The gradients do not depend on the parameters and are small whole numbers: after
all of them were applied at a rate of 1, w is minus the sum of all x, and row i
of the table minus how often i was seen.

    gather_job.py async|half run|dataset THREADS [end]

Trainer 0 saves when the file "go" is there; the others just end, or with "end"
call stop_worker.
"""
import os
import sys
import time

import numpy as np

import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \
    import DistributeTranspilerConfig, fleet

STEPS, BATCH, ROWS = 150, 4, 50


def batch(rank, step):
    """x of 3 columns, and ids."""
    whole = np.arange(BATCH * 3).reshape(BATCH, 3) + step + 100 * rank
    return (whole % 7).astype("float32"), whole[:, :1] * 3 % ROWS


def expected(trainers):
    w, table = np.zeros((3, 1)), np.zeros((ROWS, 1))
    for rank in range(trainers):
        for step in range(STEPS):
            x, ids = batch(rank, step)
            w[:, 0] -= x.sum(0)
            np.subtract.at(table, ids[:, 0], 1)
    return w, table


def network():
    def zero(name):
        return fluid.ParamAttr(
            name, initializer=fluid.initializer.Constant(0.))
    x = fluid.layers.data("x", [3])
    ids = fluid.layers.data("ids", [1], dtype="int64")
    y = fluid.layers.fc(x, 1, param_attr=zero("w"), bias_attr=False)
    rows = fluid.layers.embedding(ids, [ROWS, 1], is_sparse=True,
                                  param_attr=zero("table"))
    return [x, ids], fluid.layers.reduce_sum(y + rows)


def write_file(rank):
    name = "part-%d" % rank
    with open(name, "w") as f:
        for step in range(STEPS):
            for x, i in zip(*batch(rank, step)):
                f.write("3 %d %d %d 1 %d\n" % (*x, i[0]))
    return name


def train(exe, feeds, how, threads, rank):
    if how == "run":
        for step in range(STEPS):
            x, ids = batch(rank, step)
            exe.run(fleet.main_program, feed={"x": x, "ids": ids})
        return
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_use_var(feeds)
    dataset.set_batch_size(BATCH)
    dataset.set_thread(threads)
    dataset.set_filelist([write_file(rank)])
    dataset.load_into_memory()
    exe.train_from_dataset(fleet.main_program, dataset)


def main(mode, how, threads, end=None):
    fleet.init(role_maker.PaddleCloudRoleMaker())
    feeds, loss = network()
    config = DistributeTranspilerConfig()
    config.sync_mode = False
    config.half_async = mode == "half"
    fleet.distributed_optimizer(fluid.optimizer.SGD(1.0),
                                config).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    train(exe, feeds, how, int(threads), fleet.worker_index())
    if fleet.is_first_worker():
        while not os.path.exists("go"):
            time.sleep(0.01)
        fleet.save_persistables(exe, "model")
        w = fluid.global_scope().find_var("w").get_tensor()
        print("w", *np.array(w))
    if end:
        fleet.stop_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
