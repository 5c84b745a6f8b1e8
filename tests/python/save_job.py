# SPDX-License-Identifier: Apache-2.0
"""A small model with a sparse table, saved: python save_job.py WORD [FOLDER]

train  some steps, alone or as a job; then `whole` and `model` are saved
       ($MIDST: trainer 0 saves `whole` after so many of them, the others go on)
load   servers start from FOLDER; what they then hold is saved as `again`

$BY_ID: the table lies on the servers, by id; so many rows. $RULE: sgd
$GATE: nothing is saved before there is a file of this name
"""
import os
import resource
import signal
import sys
import time

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \
    import DistributeTranspilerConfig, fleet

BY_ID = int(os.environ.get("BY_ID", 0))
ROWS, WIDTH, STEPS = BY_ID or 1000, 20, 4  # large enough to be cut


def network():
    ids = fluid.layers.data("ids", [1], dtype="int64", lod_level=1)
    y = fluid.layers.data("y", [1])
    table = fluid.layers.embedding(ids, [ROWS, WIDTH], is_sparse=True,
                                   is_distributed=BY_ID > 0,
                                   param_attr=fluid.ParamAttr("table"))
    out = fluid.layers.fc(fluid.layers.sequence_pool(table, "sum"), 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    return out, loss


def train(exe, loss, saves):
    rng = np.random.RandomState(2)
    midst = int(os.environ.get("MIDST", STEPS))
    for step in range(STEPS):
        if step == midst and saves:
            fluid.io.save_persistables(exe, "whole")
        ids = rng.randint(0, ROWS, (30, 1)).astype("int64")
        feed = {"ids": fluid.create_lod_tensor(ids, [[3] * 10],
                                               fluid.CPUPlace()),
                "y": rng.randn(10, 1).astype("float32")}
        exe.run(fluid.default_main_program(), feed=feed, fetch_list=[loss])


def save(exe, word, out):
    if "GATE" in os.environ:
        print("trained", flush=True)
        while not os.path.exists(os.environ["GATE"]):
            time.sleep(0.01)
    if "LIMIT" in os.environ:  # a disk that is full after so many bytes
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        most = int(os.environ["LIMIT"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    if word == "load":
        return fluid.io.save_persistables(exe, "again")
    if "MIDST" not in os.environ:
        fluid.io.save_persistables(exe, "whole")
    return fluid.io.save_inference_model("model", ["ids"], [out], exe)


def main(word, folder=None):
    fluid.default_startup_program().random_seed = 7
    out, loss = network()
    optimizer = fluid.optimizer.SGD(0.1) if os.environ.get("RULE") == "sgd" \
        else fluid.optimizer.Adagrad(0.1)
    exe = fluid.Executor(fluid.CPUPlace())
    if "PADDLE_TRAINING_ROLE" not in os.environ:
        optimizer.minimize(loss)
        exe.run(fluid.default_startup_program())
        train(exe, loss, True)
        return save(exe, word, out)
    fleet.init(role_maker.PaddleCloudRoleMaker())
    config = DistributeTranspilerConfig()
    config.sync_mode = os.environ.get("SYNC", "1") == "1"
    fleet.distributed_optimizer(optimizer, config).minimize(loss)
    if fleet.is_server():
        fleet.init_server(folder)
        return fleet.run_server()
    fleet.init_worker()
    exe.run(fleet.startup_program)
    if word == "train":
        train(exe, loss, fleet.is_first_worker())
    if fleet.is_first_worker():
        save(exe, word, out)
    return fleet.stop_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
